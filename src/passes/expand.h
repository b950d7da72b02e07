/* What a pass is written with that puts several instructions in the place of one: instructions in front of `at`, with its origin. */
#ifndef PASSES_EXPAND_H
#define PASSES_EXPAND_H

#include "passes/pass.h"

/* Calls expand for every instruction that stood in m when the pass began, outside of fusions and what others have wrapped. What it gives takes the
 * instruction's place; NULL: it stays as it is. Those that are not inst_is_free or read arrays of dynamic size are left alone. */
typedef Inst *ExpandFn(PassCtx *cx, Inst *i);
bool expand_each(Module *m, PassCtx *cx, ExpandFn *expand);

Inst *expand_op(Inst *at, Op op, const Shape *shape, int32_t n, Inst *const *x);
Inst *expand_like(Inst *at, const Shape *shape, int32_t n, Inst *const *x); /* opcode, attributes and callees of at */
Inst *expand_unary(Inst *at, Op op, Inst *x);              /* of the shape of x */
Inst *expand_binary(Inst *at, Op op, Inst *x, Inst *y);    /* likewise */
Inst *expand_convert(Inst *at, Op op, Type t, Inst *x);    /* OP_CONVERT or OP_BITCAST_CONVERT; x itself when it has the type */
Inst *expand_reshape(Inst *at, const Shape *shape, Inst *x);
Inst *expand_broadcast(Inst *at, const Shape *shape, Inst *x, Ints dims);
Inst *expand_transpose(Inst *at, Inst *x, Ints perm);
Inst *expand_slice(Inst *at, Inst *x, int32_t dim, int64_t start, int64_t limit); /* all of the other dimensions */
Inst *expand_number(Inst *at, const Shape *like, double v); /* everywhere v */
Inst *expand_integer(Inst *at, const Shape *like, int64_t v);
Inst *expand_compare(Inst *at, Inst *x, Inst *y, Word direction);
Inst *expand_iota(Inst *at, const Shape *shape, int32_t dim);
Inst *expand_tuple(Inst *at, int32_t n, Inst *const *x);
Inst *expand_element(Inst *at, Inst *tuple, int32_t k);
Inst *expand_sum(Inst *at, const Shape *shape, Inst *x, Ints dims);

/* A new computation (x, y) -> op(x, y) of scalars, ready to be called where `at` is. */
Comp *expand_reducer(const Inst *at, Op op, Type t);

#endif
