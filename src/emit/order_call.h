/* Calls of the runtime that bring elements into another order (src/runtime/hlort.h). */
#ifndef EMIT_ORDER_CALL_H
#define EMIT_ORDER_CALL_H

#include "ir/inst.h"
#include "runtime/hlort.h"

typedef struct OrderCall {
    const char *symbol; /* of the function */
    hlort_axes  axes;   /* of a transpose */
} OrderCall;

/* The call for a transpose or a copy i of an array that lies in memory as `from` says to one that lies as `to` says. False: it is too small to be worth one. */
bool transpose_call(const Inst *i, const Shape *from, const Shape *to, OrderCall *out);
bool order_call_equal(const OrderCall *x, const OrderCall *y);

#endif
