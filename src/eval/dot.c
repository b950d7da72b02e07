/* dot: lhs [B..., M..., K...] and rhs [B..., K..., N...] in any dimension order give [B..., M..., N...]. Source: reference operations 9.1.
 *
 * Operands are converted to the type that the result is computed in and brought into order, so that every batch is a matrix product.
 * Floats are summed in f64 and rounded once, as plain sums are: what is compared with this result has its own order of summation and no
 * error of ours on top. Integers are summed in 64 bits and wrap. */
#include <string.h>

#include "eval/dot.h"
#include "eval/arith.h"
#include "eval/gemm.h"
#include "eval/walk.h"

EvalFn eval_dot;

int64_t dot_count(const Literal *l, Ints dims)
{
    int64_t n = 1;
    for (int32_t k = 0; k < dims.n; k++)
        n *= l->dims[dims.v[k]];
    return n;
}

DotOperand dot_operand(Arena *a, const Literal *l, Ints batch, Ints contracting)
{
    DotOperand o = {.batch = batch, .contracting = contracting};
    o.free = ints_make(a, l->rank);
    int32_t n = 0;
    for (int32_t d = 0; d < l->rank; d++)
        if (!ints_has(batch, d) && !ints_has(contracting, d))
            *ints_at(o.free, n++) = d;
    o.free.n = n;
    o.free_count = dot_count(l, o.free);
    return o;
}

Literal *dot_in_order(Eval *e, const Inst *i, Literal *l, Ints a, Ints b, Ints c)
{
    if (!l)
        return NULL;
    const Ints parts[] = {a, b, c};
    int64_t strides[WALK_RANK];
    walk_strides(l->rank, l->dims, strides);
    Odometer o = {.arrays = 2};
    for (int p = 0; p < 3; p++)
        for (int32_t k = 0; k < parts[p].n; k++) {
            o.dims[o.rank] = l->dims[parts[p].v[k]];
            o.stride[1][o.rank++] = strides[parts[p].v[k]];
        }
    walk_strides(o.rank, o.dims, o.stride[0]);
    Odometer merged = o;
    walk_simplify(&merged);
    if (merged.rank == 0 || (merged.rank == 1 && merged.stride[1][0] == 1))
        return l;
    Literal *r = eval_new(e, i, l->type, o.rank, o.dims);
    if (r)
        walk_copy(&o, r->data, l->data, type_bytes(l->type));
    eval_drop(e, l);
    return r;
}

Literal *dot_zeros(Eval *e, const Inst *i, Type t, int64_t batch, int64_t rows, int64_t columns)
{
    Literal *r = eval_new(e, i, t, 3, (int64_t[]){batch, rows, columns});
    if (r)
        memset(r->data, 0, (size_t)literal_bytes(r));
    return r;
}

/* left [batch, m, k] times right [batch, k, n]. */
static Literal *products(Eval *e, const Inst *i, const Literal *left, const Literal *right, int64_t batch, int64_t m, int64_t n, int64_t k)
{
    Literal *r = dot_zeros(e, i, left->type, batch, m, n);
    int64_t work;
    if (!r || !size_mul(r->count, k, &work) || !eval_work(e, i, work))
        return r;
    int bytes = type_bytes(r->type);
    for (int64_t b = 0; b < batch; b++)
        eval_gemm(r->type, m, n, k, (const char *)left->data + b * m * k * bytes, (const char *)right->data + b * k * n * bytes,
             (char *)r->data + b * m * n * bytes);
    return r;
}

/* Takes over r [batch, columns, rows]; gives [batch, rows, columns]. */
static Literal *transposed(Eval *e, const Inst *i, Literal *r)
{
    static const int64_t order[] = {0, 2, 1};
    return dot_in_order(e, i, r, (Ints){order, 3}, (Ints){NULL, 0}, (Ints){NULL, 0});
}

void dot_drop_signs_of_zeros(Literal *l)
{
    float *v = l->data;
    for (int64_t k = 0; k < l->count; k++)
        v[k] += 0.0f;
}

Literal *dot_finish(Eval *e, const Inst *i, Literal *r)
{
    Literal *out = r ? eval_new_for(e, i, i->shape) : NULL;
    if (out && r->count > 0)
        value_store(out->type, out->data, value_domain(r->type), r->data, r->count);
    if (out && out->type == TYPE_F32)
        dot_drop_signs_of_zeros(out);
    eval_drop(e, r);
    return out;
}

#define NARROW 16 /* a product with fewer columns than this is computed the other way round, with its rows as columns */

Literal *eval_dot(Eval *e, const Inst *i, Literal **x)
{
    DotOperand l = dot_operand(e->scratch, x[0], inst_ints(i, ATTR_LHS_BATCH_DIMS), inst_ints(i, ATTR_LHS_CONTRACTING_DIMS));
    DotOperand r = dot_operand(e->scratch, x[1], inst_ints(i, ATTR_RHS_BATCH_DIMS), inst_ints(i, ATTR_RHS_CONTRACTING_DIMS));
    int64_t batch = dot_count(x[0], l.batch), k = dot_count(x[0], l.contracting), m = l.free_count, n = r.free_count;
    bool swap = n < NARROW && m > n;
    Type t = product_type(i->shape->type);
    Literal *lhs = eval_cast(e, i, eval_move(x, 0), t), *rhs = eval_cast(e, i, eval_move(x, 1), t), *out = NULL;
    if (swap) {
        lhs = dot_in_order(e, i, lhs, l.batch, l.contracting, l.free);
        rhs = dot_in_order(e, i, rhs, r.batch, r.free, r.contracting);
    } else {
        lhs = dot_in_order(e, i, lhs, l.batch, l.free, l.contracting);
        rhs = dot_in_order(e, i, rhs, r.batch, r.contracting, r.free);
    }
    if (!e->failed)
        out = swap ? transposed(e, i, products(e, i, rhs, lhs, batch, n, m, k)) : products(e, i, lhs, rhs, batch, m, n, k);
    eval_drop(e, lhs);
    eval_drop(e, rhs);
    return dot_finish(e, i, out);
}
