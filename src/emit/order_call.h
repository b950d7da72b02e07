/* Calls of the runtime that bring elements into another order (src/runtime/hlort.h). */
#ifndef EMIT_ORDER_CALL_H
#define EMIT_ORDER_CALL_H

#include "ir/inst.h"
#include "runtime/hlort.h"

typedef struct OrderCall {
    const char *symbol; /* of the function */
    int32_t     n_operands;
    uint32_t    positions; /* arrays of a sort that are no operand: their elements are positions in the line */
    hlort_axes  axes;   /* of a transpose, n = 0: */
    hlort_sort  sort;   /* of a sort or a topk */
} OrderCall;

/* The call for a transpose or a copy i of an array that lies in memory as `from` says to one that lies as `to` says. False: it is too small to be worth one. */
bool transpose_call(const Inst *i, const Shape *from, const Shape *to, OrderCall *out);
/* The call for sort i of arrays that lie in memory as its result does (`like`), by one key; of every line the first `kept` are wanted. False: i compares otherwise. */
bool sort_call(const Inst *i, const Shape *like, int64_t kept, OrderCall *out);
/* Likewise of a topk, whose operand lies as `from` says; one array of values, one of positions. */
bool topk_call(const Inst *i, const Shape *from, const Shape *to, OrderCall *out);
/* Operand k of sort i numbers the elements along the sort's dimension from 0 on, in 4 or 8 bytes. */
bool sort_takes_positions(const Inst *i, int32_t k);
bool order_call_equal(const OrderCall *x, const OrderCall *y);

#endif
