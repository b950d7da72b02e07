/* Kernels whose results may be made where an operand is. */
#ifndef ANALYSIS_OVERWRITE_H
#define ANALYSIS_OVERWRITE_H

#include "ir/inst.h"

/* The array that is element `result` of i's value (0: i has one) may be written over operand k, an array of as many bytes that nobody reads afterwards: i is elementwise,
 * or a fusion each of whose elements needs that operand at its own place alone, or at all places of its row, of which the result then is the last thing made:
 *
 *   s = reduce(p), dimensions={1};  b = broadcast(s), dimensions={0};  ROOT d = divide(p, b)        d over p: yes       subtract(b, reverse(p)): no
 *
 * What the code generators do where they can, seen from the text. */
bool inst_may_overwrite(const Inst *i, int32_t result, int32_t k);

#endif
