/* The order that a sort's comparison is. */
#ifndef ANALYSIS_ORDER_H
#define ANALYSIS_ORDER_H

#include "ir/inst.h"

typedef struct Order {
    int32_t key; /* the operand whose two elements are compared */
    bool    descending;
    bool    total;     /* by the total order of floats, not by < */
    bool    canonical; /* all zeros are equal, and all NaNs are positive and equal */
} Order;

/* Whether the comparison of the sort i is less or greater of one operand's two elements, as they are or with zeros and NaNs made equal:
 *
 *     k(p) = p      or      k(p) = select(p != p, NaN, select(p == 0, 0, p))
 *     ROOT r = compare(k(p0), k(p1)), direction=LT
 */
bool order_of(const Inst *i, Order *out);

#endif
