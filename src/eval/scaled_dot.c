/* scaled-dot: every element of an operand is first multiplied by the scale of its block, then follows the dot.
 *   out = sum of (lhs * lhs_scale) * (rhs * rhs_scale)
 * Index j of a dimension of size d reads scale j / (d / c) when the scale has size c there. A scalar scale stands for none, whatever its
 * value. The products are made in the type that the dot computes in. Source: reference operations 9.3. */
#include <string.h>

#include "eval/arith.h"
#include "eval/engine.h"
#include "eval/gemm.h"
#include "eval/walk.h"

EvalFn eval_scaled_dot, eval_dot;

/* Values of `scale` for the elements of x, one each. A scale of one element may have another rank. */
static Literal *spread(Eval *e, const Inst *i, const Literal *x, const Literal *scale)
{
    Literal *r = eval_new(e, i, scale->type, x->rank, x->dims);
    if (!r || r->count == 0)
        return r;
    if (scale->count == 1) {
        walk_fill(r->data, r->count, scale->data, type_bytes(r->type));
        return r;
    }
    int64_t strides[WALK_RANK];
    walk_strides(scale->rank, scale->dims, strides);
    Odometer o = {.rank = x->rank};
    for (int32_t d = 0; d < x->rank; d++)
        o.dims[d] = x->dims[d];
    int bytes = type_bytes(r->type);
    char *to = r->data;
    do {
        int64_t at = 0;
        for (int32_t d = 0; d < x->rank; d++)
            at += o.index[d] / (x->dims[d] / scale->dims[d]) * strides[d];
        memcpy(to, (const char *)scale->data + at * bytes, (size_t)bytes);
        to += bytes;
    } while (walk_next(&o));
    return r;
}

/* x[k] * x[k + 2] as type t, in place of x[k]. */
static bool scale_operand(Eval *e, const Inst *i, Literal **x, int32_t k, Type t)
{
    Literal *own = eval_cast(e, i, eval_take(e, i, x, k), t);
    eval_drop(e, x[k]); /* NULL when it was taken as it is */
    x[k] = own;
    if (!x[k] || x[k + 2]->rank == 0)
        return x[k] != NULL;
    Literal *scale = eval_cast(e, i, spread(e, i, x[k], x[k + 2]), t);
    Arith multiply;
    if (scale && arith_of(&multiply, OP_MULTIPLY, t, 2))
        arith_run(&multiply, x[k]->data, (const void *[]){x[k]->data, scale->data}, x[k]->count);
    eval_drop(e, scale);
    return scale != NULL;
}

Literal *eval_scaled_dot(Eval *e, const Inst *i, Literal **x)
{
    Type t = product_type(i->shape->type);
    return scale_operand(e, i, x, 0, t) && scale_operand(e, i, x, 1, t) ? eval_dot(e, i, x) : NULL;
}
