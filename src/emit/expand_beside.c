/* A dot of one row, or of rows with rows, whose batch lies innermost in memory is a sum down columns, which vectors make side by side:
 *
 *     f32[1000,16] dot(f32[32,1000] x, f32[32,16,1000] y), batch = {1}, {2}, k = {0}, {0}   =>   transpose(reduce(y * broadcast(x), dimensions={0}))
 *
 * Each element of the larger operand is used once: to bring it into another order would take longer than its products. Numbers below f32 are multiplied and summed in f32. */
#include "emit/expand.h"

#include "passes/expand.h"
#include "passes/util.h"

enum { LEAST_BESIDE = 16 /* neighbours */, MOST_RANK = 16 };

static Ints batch_of(const Inst *dot, int32_t k)
{
    return inst_ints(dot, k ? ATTR_RHS_BATCH_DIMS : ATTR_LHS_BATCH_DIMS);
}

static Ints terms_of(const Inst *dot, int32_t k)
{
    return inst_ints(dot, k ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS);
}

/* Elements of operand k along its own dimensions. */
static int64_t own_count(const Inst *dot, int32_t k)
{
    const Shape *x = inst_operand(dot, k)->shape;
    int64_t      n = 1;
    for (int32_t d = 0; d < x->rank; d++)
        n *= ints_has(batch_of(dot, k), d) || ints_has(terms_of(dot, k), d) ? 1 : x->dims[d];
    return n;
}

static bool is_plain(const Shape *s)
{
    return shape_is_array(s) && !s->layout && !shape_is_dynamic(s) && s->rank > 0 && s->rank <= MOST_RANK && shape_count(s) > 0;
}

/* The operand that is the larger one: the other one has a row for each product. -1: dot is no such thing. */
static int32_t larger(const Inst *dot)
{
    const Type t = dot->shape->type;
    if (dot->n_operands != 2 || inst_attr(dot, ATTR_SPARSITY_CONFIG) || inst_attr(dot, ATTR_BLOCK_SCALING_CONFIG) || !is_plain(dot->shape) ||
        (t != TYPE_F32 && t != TYPE_F64 && t != TYPE_BF16 && t != TYPE_F16))
        return -1;
    for (int32_t k = 0; k < 2; k++)
        if (!is_plain(inst_operand(dot, k)->shape) || inst_operand(dot, k)->shape->type != t || terms_of(dot, k).n == 0)
            return -1;
    const int32_t k = own_count(dot, 1) == 1 ? 0 : 1;
    if (own_count(dot, 1 - k) != 1)
        return -1;
    for (int32_t e = 0; e < 2; e++) {
        const Shape *x = inst_operand(dot, e)->shape;
        if (x->dims[x->rank - 1] < LEAST_BESIDE || !ints_has(batch_of(dot, e), x->rank - 1))
            return -1;
    }
    return k;
}

bool dot_is_beside(const Inst *dot)
{
    return dot->op == OP_DOT && larger(dot) >= 0;
}

/* y, the smaller operand, repeated for each element of the larger one. */
static Inst *repeated(Inst *i, int32_t k, Inst *y, const Shape *shape)
{
    Arena  *a = i->comp->module->arena;
    int64_t dims[MOST_RANK], to[MOST_RANK];
    int32_t n = 0;
    for (int32_t d = 0; d < y->shape->rank; d++) {
        int32_t at = -1;
        for (int32_t b = 0; b < batch_of(i, k).n; b++)
            at = batch_of(i, 1 - k).v[b] == d ? (int32_t)batch_of(i, k).v[b] : at;
        for (int32_t c = 0; c < terms_of(i, k).n; c++)
            at = terms_of(i, 1 - k).v[c] == d ? (int32_t)terms_of(i, k).v[c] : at;
        if (at < 0)
            continue;
        dims[n] = y->shape->dims[d];
        to[n++] = at;
    }
    if (n < y->shape->rank)
        y = expand_reshape(i, shape_array(a, y->shape->type, n, dims), y);
    return expand_broadcast(i, shape, y, (Ints){ arena_copy(a, to, (size_t)n * sizeof *to), n });
}

/* sums, which has the other dimensions of operand k in its order, in the order of the result. */
static Inst *in_order(Inst *i, int32_t k, Inst *sums)
{
    Arena       *a = i->comp->module->arena;
    const Shape *x = inst_operand(i, k)->shape;
    int64_t      perm[MOST_RANK], place[MOST_RANK], dims[MOST_RANK];
    int32_t      n = 0, at = 0;
    for (int32_t d = 0; d < x->rank; d++)
        place[d] = ints_has(terms_of(i, k), d) ? -1 : at++;
    for (int32_t b = 0; b < batch_of(i, k).n; b++)
        perm[n++] = place[batch_of(i, k).v[b]];
    for (int32_t d = 0; d < x->rank; d++)
        if (place[d] >= 0 && !ints_has(batch_of(i, k), d))
            perm[n++] = place[d];
    bool same = true;
    for (int32_t d = 0; d < n; d++) {
        dims[d] = sums->shape->dims[perm[d]];
        same &= perm[d] == d;
    }
    if (!same) {
        Inst *t = inst_new(i->comp, i, OP_TRANSPOSE, shape_array(a, sums->shape->type, n, dims), 1, &sums, NULL);
        inst_set_ints(t, ATTR_DIMENSIONS, (Ints){ perm, n });
        sums = t;
    }
    return shape_same_dims(sums->shape, i->shape) ? sums : expand_reshape(i, i->shape, sums);
}

/* The sums as a fusion of their own. */
static Inst *summed(Inst *i, int32_t k)
{
    Module *m = i->comp->module;
    Arena  *a = m->arena;
    Comp   *c = comp_new(m, comp_unique_name(m, "sums"));
    comp_move_before(c, i->comp);
    Inst       *of[2];
    const Type  t = i->shape->type == TYPE_F64 ? TYPE_F64 : TYPE_F32;
    const Ints  terms = terms_of(i, k);
    int64_t     dims[MOST_RANK];
    int32_t     n = 0;
    for (int32_t e = 0; e < 2; e++)
        of[e] = inst_parameter(c, NULL, e, inst_operand(i, e)->shape, NULL);
    Inst *dot = inst_clone_into(c, NULL, i, 2, of); /* what follows stands before it, and has its origin */
    for (int32_t e = 0; e < 2; e++)
        of[e] = expand_convert(dot, OP_CONVERT, t, of[e]);
    Inst *product = expand_binary(dot, OP_MULTIPLY, of[k], repeated(dot, k, of[1 - k], of[k]->shape));
    for (int32_t d = 0; d < product->shape->rank; d++)
        if (!ints_has(terms, d))
            dims[n++] = product->shape->dims[d];
    c->root = expand_convert(dot, OP_CONVERT, i->shape->type, expand_sum(dot, shape_array(a, t, n, dims), product, terms));
    comp_sweep_dead(c, c->n_insts);
    return expand_fusion(i, FUSION_INPUT, c, 2, (Inst *[]){ inst_operand(i, 0), inst_operand(i, 1) });
}

void expand_beside(Inst *i)
{
    const int32_t k = larger(i);
    inst_replace(i, in_order(i, k, summed(i, k)));
    inst_delete(i);
}
