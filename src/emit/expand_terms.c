/* A dot over several dimensions that no routine takes as one, since they lie apart or in different orders in its operands, has an operand, or both, copied so that they are one:
 *
 *     dot(f32[b,h,q,d]{3,2,1,0} x, f32[h,d,m] w), k = {1,3}     =>     dot(f32[b,h,q,d]{3,1,2,0} copy(x), w)      where h and d lie beside each other as in w
 *
 * It costs a pass over the smaller operand where the other one's terms are one already. What was fastest stays it where it can, so that the copy has lines to move.
 *
 * So has an operand whose neighbours are the batch's, each of which is in another product: the copy has the batch outside, and what was next stays inside.
 *
 *     dot(f32[24,16,256] x, f32[24,20,256] y), batch = {2}, k = {0}                =>     dot(f32[24,16,256]{0,1,2} copy(x), f32[24,20,256]{0,1,2} copy(y)) */
#include "emit/dot_call.h"
#include "emit/expand.h"

#include "passes/util.h"

enum { LEAST_USES = 4, LEAST_APART = 2, /* products for each element that is copied */ LEAST_BESIDE = 8 /* neighbours */, MOST_TURNED = 32 /* columns of f16 */, MOST_RANK = 16 };

/* The number of elements from an element of s to the next one in dimensions v, the outermost first; false: they are not one. */
static bool is_one(const Shape *s, const int64_t *strides, const int64_t *v, int32_t n)
{
    int64_t inner = 0;
    for (int32_t k = n - 1; k >= 0; k--) {
        if (s->dims[v[k]] == 1)
            continue;
        if (inner && strides[v[k]] != inner)
            return false;
        inner = strides[v[k]] * s->dims[v[k]];
    }
    return true;
}

/* Numbers of the terms' dimensions, the outermost of operand x first. */
static void order_of_terms(const Shape *x, const int64_t *strides, Ints terms, int32_t *order)
{
    for (int32_t k = 0; k < terms.n; k++) {
        int32_t at = k;
        for (; at > 0 && (strides[terms.v[order[at - 1]]] < strides[terms.v[k]] || x->dims[terms.v[order[at - 1]]] == 1); at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
}

/* The dimensions of x that are neither the batch's nor terms, the outermost one in the result first; how many. */
static int32_t free_dims(const Inst *dot, int32_t operand, int64_t *free)
{
    const Shape *x = inst_operand(dot, operand)->shape, *lhs = inst_operand(dot, 0)->shape;
    const Ints   batch = inst_ints(dot, operand ? ATTR_RHS_BATCH_DIMS : ATTR_LHS_BATCH_DIMS);
    const Ints   terms = inst_ints(dot, operand ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS);
    int64_t      result[MOST_RANK], by[MOST_RANK];
    int32_t      n = 0, in_result = batch.n + (operand ? lhs->rank - batch.n - terms.n : 0);
    shape_strides(dot->shape, result);
    for (int32_t k = 0; k < x->rank; k++) {
        if (ints_has(batch, k) || ints_has(terms, k))
            continue;
        const int64_t distance = result[in_result++];
        int32_t       at = n++;
        for (; at > 0 && by[at - 1] < distance; at--) {
            by[at] = by[at - 1];
            free[at] = free[at - 1];
        }
        by[at] = distance;
        free[at] = k;
    }
    return n;
}

static int64_t count_of(const Shape *x, const int64_t *dims, int32_t n)
{
    int64_t count = 1;
    for (int32_t k = 0; k < n; k++)
        count *= x->dims[dims[k]];
    return count;
}

/* x with the batch outside and terms in this order beside each other. */
static const Shape *shape_joined(Arena *a, const Inst *dot, int32_t operand, const int32_t *order)
{
    const Shape *x = inst_operand(dot, operand)->shape;
    const Ints   batch = inst_ints(dot, operand ? ATTR_RHS_BATCH_DIMS : ATTR_LHS_BATCH_DIMS);
    const Ints   terms = inst_ints(dot, operand ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS);
    int64_t      free[MOST_RANK], minor[MOST_RANK];
    int32_t      n_free = free_dims(dot, operand, free), n = 0, fastest = 0;
    while (fastest + 1 < x->rank && ints_has(batch, layout_dim(x, fastest)))
        fastest++;
    if (operand == 1 && x->type == TYPE_F16 && count_of(x, free, n_free) > MOST_TURNED)
        fastest = 0; /* panels of columns that lie across are slow to convert */
    const bool   terms_inside = n_free == 0 || ints_has(terms, layout_dim(x, fastest));
    for (int turn = 0; turn < 2; turn++) {
        const bool of_terms = terms_inside == (turn == 0);
        for (int32_t k = (of_terms ? terms.n : n_free) - 1; k >= 0; k--)
            minor[n++] = of_terms ? terms.v[order[k]] : free[k];
    }
    for (int32_t k = x->rank - 1; k >= 0; k--)
        if (ints_has(batch, layout_dim(x, x->rank - 1 - k)))
            minor[n++] = layout_dim(x, x->rank - 1 - k);
    Layout *l = ARENA_NEW(a, Layout);
    *l = (Layout){ .minor_to_major = { arena_copy(a, minor, (size_t)n * sizeof *minor), n }, .tail_padding = 1, .index_type = TYPE_COUNT, .pointer_type = TYPE_COUNT };
    return shape_with_layout(a, x, l);
}

/* Sets `as` to the operands' shapes where terms lie as in `kept`; how many elements are copied for that. */
static double copied(Arena *a, const Inst *dot, int32_t kept, const Shape *as[2])
{
    const Ints terms[] = { inst_ints(dot, ATTR_LHS_CONTRACTING_DIMS), inst_ints(dot, ATTR_RHS_CONTRACTING_DIMS) };
    int64_t    strides[MOST_RANK], v[MOST_RANK];
    int32_t    order[MOST_RANK];
    double     n = 0;
    shape_strides(inst_operand(dot, kept)->shape, strides);
    order_of_terms(inst_operand(dot, kept)->shape, strides, terms[kept], order);
    for (int32_t e = 0; e < 2; e++) {
        const Shape *x = inst_operand(dot, e)->shape;
        shape_strides(x, strides);
        for (int32_t k = 0; k < terms[e].n; k++)
            v[k] = terms[e].v[order[k]];
        as[e] = is_one(x, strides, v, terms[e].n) ? x : shape_joined(a, dot, e, order);
        n += as[e] == x ? 0 : (double)shape_count(x);
    }
    return n;
}

/* Neighbours of x are of different products. */
static bool is_batch_inside(const Inst *dot, int32_t operand)
{
    const Shape *x = inst_operand(dot, operand)->shape;
    const Ints   batch = inst_ints(dot, operand ? ATTR_RHS_BATCH_DIMS : ATTR_LHS_BATCH_DIMS);
    int64_t      strides[MOST_RANK];
    bool         inside = false;
    shape_strides(x, strides);
    for (int32_t k = 0; k < x->rank; k++)
        if (x->dims[k] > 1 && strides[k] == 1)
            inside = ints_has(batch, k) && x->dims[k] >= LEAST_BESIDE && shape_count(x) > x->dims[k];
    return inside;
}

/* Likewise where the batch goes outside. */
static double copied_apart(Arena *a, const Inst *dot, const Shape *as[2])
{
    const Ints terms = inst_ints(dot, ATTR_LHS_CONTRACTING_DIMS);
    int32_t    order[MOST_RANK];
    double     n = 0;
    for (int32_t k = 0; k < terms.n; k++)
        order[k] = k;
    for (int32_t e = 0; e < 2; e++) {
        const Shape *x = inst_operand(dot, e)->shape;
        as[e] = is_batch_inside(dot, e) ? shape_joined(a, dot, e, order) : x;
        n += as[e] == x ? 0 : (double)shape_count(x);
    }
    return n;
}

/* The operands' shapes with which dot is a call, or a faster one; false: it is one already, or copies are not worth it. */
static bool joined_shapes(Arena *a, const Inst *dot, const Shape *as[2])
{
    const Shape *lhs = inst_operand(dot, 0)->shape, *rhs = inst_operand(dot, 1)->shape, *other[2];
    DotCall      d;
    if (lhs->rank > MOST_RANK || rhs->rank > MOST_RANK || dot->shape->rank > MOST_RANK)
        return false;
    const Ints terms = inst_ints(dot, ATTR_LHS_CONTRACTING_DIMS);
    double     n = copied_apart(a, dot, as), products = (double)shape_count(dot->shape);
    const int  least = n > 0 ? LEAST_APART : LEAST_USES;
    if (n == 0 && (terms.n < 2 || dot_call_sizes(dot, lhs, rhs, dot->shape, &d)))
        return false;
    if (n == 0) {
        n = copied(a, dot, 0, as);
        if (copied(a, dot, 1, other) < n)
            n = copied(a, dot, 1, as);
    }
    for (int32_t k = 0; k < terms.n; k++)
        products *= (double)lhs->dims[terms.v[k]];
    return n > 0 && products >= least * n && dot_call(dot, as[0], as[1], dot->shape, &d);
}

bool dot_joins(const Inst *dot)
{
    const Shape *as[2];
    if (dot->op != OP_DOT || dot->n_operands != 2 || inst_attr(dot, ATTR_SPARSITY_CONFIG) || !shape_is_array(dot->shape) || shape_count(dot->shape) == 0)
        return false;
    Arena     *a = arena_new();
    const bool joins = joined_shapes(a, dot, as);
    arena_free(a);
    return joins;
}

Inst *dot_joined(Inst *at, const Inst *dot, Inst *const *operands)
{
    const Shape *as[2];
    Inst        *joined[2];
    joined_shapes(at->comp->module->arena, dot, as);
    for (int32_t e = 0; e < 2; e++)
        joined[e] = as[e] == inst_operand(dot, e)->shape ? operands[e] : inst_new(at->comp, at, OP_COPY, as[e], 1, &operands[e], NULL);
    return inst_clone_into(at->comp, at, dot, 2, joined);
}

void expand_terms(Inst *i)
{
    inst_replace(i, dot_joined(i, i, (Inst *[]){ inst_operand(i, 0), inst_operand(i, 1) }));
    inst_delete(i);
}
