/* permutation_sort_simplifier - what is sorted by the places that a sort gave goes to these places.
 *
 *   %s = (f32[n], s32[n]) sort(%x, iota)                                       %s = (f32[n], s32[n]) sort(%x, iota)
 *   %p = s32[n] get-tuple-element(%s), index=1                                 %p = s32[n] get-tuple-element(%s), index=1
 *   %r = (s32[n], f32[n]) sort(%p, %v), smallest of %p first           =>      %t = f32[n] scatter(zeros, %p, %v), each place once
 *                                                                              %r = (s32[n], f32[n]) tuple(iota, %t)
 *
 * %p has each of 0, 1, ..., n - 1 once in each row along the sorted dimension, so that the comparator never sees equal keys. Keys are integers of 32 bits and
 * more, compared with nothing else (analysis/order.h), the smallest first. */
#include "config.h"

#include "analysis/order.h"
#include "passes/expand.h"
#include "passes/util.h"

static int64_t sorted_dim(const Inst *sort)
{
    return inst_ints(sort, ATTR_DIMENSIONS).v[0];
}

/* What a sort along dim has made of 0, 1, 2, ... along dim. */
static bool is_permutation(const Inst *p, int64_t dim)
{
    if (p->op != OP_GET_TUPLE_ELEMENT || inst_operand(p, 0)->op != OP_SORT)
        return false;
    const Inst *sort = inst_operand(p, 0);
    return sorted_dim(sort) == dim && inst_counts_along(inst_operand(sort, (int32_t)inst_int(p, ATTR_INDEX, 0)), dim);
}

/* A new computation (x, y) -> y. */
static Comp *second_one(Inst *at, Type t)
{
    Module      *m = at->comp->module;
    const Shape *scalar = shape_scalar(m->arena, t);
    Comp        *c = comp_new(m, comp_unique_name(m, "second"));
    inst_parameter(c, NULL, 0, scalar, NULL);
    c->root = inst_parameter(c, NULL, 1, scalar, NULL);
    c->mark = COMP_EMBEDDED;
    comp_move_before(c, at->comp);
    return c;
}

/* The places [dims..., rank] of the elements: their own but along dim. */
static Inst *places(Inst *at, Inst *p, int64_t dim)
{
    Arena  *a = at->comp->module->arena;
    int32_t rank = p->shape->rank;
    Ints    sizes = ints_make(a, rank + 1);
    Inst  **parts = ARENA_ARRAY(a, Inst *, rank);
    for (int32_t k = 0; k < rank; k++)
        *ints_at(sizes, k) = p->shape->dims[k];
    *ints_at(sizes, rank) = 1;
    const Shape *one = shape_array(a, p->shape->type, rank + 1, sizes.v);
    for (int32_t k = 0; k < rank; k++)
        parts[k] = k == dim ? expand_reshape(at, one, p) : expand_iota(at, one, k);
    if (rank == 1)
        return parts[0];
    *ints_at(sizes, rank) = rank;
    int64_t along = rank;
    Inst   *c = expand_op(at, OP_CONCATENATE, shape_array(a, p->shape->type, rank + 1, sizes.v), rank, parts);
    inst_set_ints(c, ATTR_DIMENSIONS, (Ints){&along, 1});
    return c;
}

static Inst *put(Inst *at, Inst *where, Inst *v)
{
    Arena  *a = at->comp->module->arena;
    int32_t rank = v->shape->rank;
    Inst   *zeros = expand_integer(at, v->shape, 0);
    Comp   *second = second_one(at, v->shape->type);
    Inst   *s = expand_op(at, OP_SCATTER, v->shape, 3, (Inst *[]){zeros, where, v});
    inst_set_ints(s, ATTR_UPDATE_WINDOW_DIMS, (Ints){NULL, 0});
    inst_set_ints(s, ATTR_INSERTED_WINDOW_DIMS, ints_iota(a, rank));
    inst_set_ints(s, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, ints_iota(a, rank));
    inst_set_int(s, ATTR_INDEX_VECTOR_DIM, rank);
    inst_set_int(s, ATTR_UNIQUE_INDICES, 1);
    inst_set_callees(s, 1, &second);
    return s;
}

/* Zeros of the type can be written, and what is sorted is written as it stands. */
static bool can_be_put(const Inst *x, const Shape *like)
{
    Type t = x->shape->type;
    return shape_same_dims(x->shape, like) && !x->shape->layout && (type_is_int(t) || type_is_float(t) || t == TYPE_PRED);
}

static Inst *as_scatter(PassCtx *cx, Inst *i)
{
    if (i->op != OP_SORT)
        return NULL;
    Inst   *p = inst_operand(i, 0);
    int64_t dim = sorted_dim(i);
    Order   by;
    if (!is_permutation(p, dim) || !order_of(i, &by) || by.key != 0 || by.descending || type_bits(p->shape->type) < 32 || !type_is_int(p->shape->type))
        return NULL;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (!can_be_put(inst_operand(i, k), p->shape))
            return NULL;
    Inst **results = ARENA_ARRAY(cx->scratch, Inst *, i->n_operands), *where = i->n_operands > 1 ? places(i, p, dim) : NULL;
    results[0] = expand_iota(i, p->shape, (int32_t)dim);
    for (int32_t k = 1; k < i->n_operands; k++)
        results[k] = put(i, where, inst_operand(i, k));
    return i->n_operands == 1 ? results[0] : expand_op(i, OP_TUPLE, i->shape, i->n_operands, results);
}

bool pass_permutation_sort_simplifier(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, as_scatter);
}
