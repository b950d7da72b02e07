/* Rules of algsimp about reductions. A sum of floats is taken in the order of the elements, so that only what keeps that order is done to it. */
#include "config.h"

#include "passes/algsimp.h"

static bool keeps_everything(const Inst *i)
{
    Ints dims = inst_ints(i, ATTR_DIMENSIONS);
    for (int32_t k = 0; k < dims.n; k++)
        if (inst_operand(i, 0)->shape->dims[dims.v[k]] != 1)
            return false;
    return true;
}

/* Each result is op(c, one element): the initial value is not assumed to change nothing. The order of operands is that of the reducer,
 * whose first parameter is c: maximum(-0, 0) and maximum(0, -0) are not the same. */
Inst *rule_reduce_unit(Simp *s, Inst *i)
{
    if (i->n_operands != 2 || !keeps_everything(i))
        return NULL;
    const Comp *reducer = inst_callee(i, 0);
    Op          op = comp_binary_op(reducer);
    Inst       *x = inst_operand(i, 0), *c = inst_operand(i, 1);
    if (op == OP_COUNT || !op_has(op, F_COMMUTES) || x->shape->type != i->shape->type)
        return NULL;
    int64_t initial = inst_operand(reducer->root, 0)->param;
    Inst   *operands[2];
    operands[initial] = i->shape->rank ? simp_broadcast(s, i->shape, c, (Ints){NULL, 0}) : c;
    operands[1 - initial] = simp_reshape(s, i->shape, x);
    return simp_new(s, op, i->shape, 2, operands);
}

/* What stays must keep its order: else a transpose of the result would take its place. */
Inst *rule_reduce_transpose(Simp *s, Inst *i)
{
    Inst *t = inst_operand(i, 0);
    if (i->n_operands != 2 || t->op != OP_TRANSPOSE)
        return NULL;
    Ints    perm = inst_ints(t, ATTR_DIMENSIONS), dims = inst_ints(i, ATTR_DIMENSIONS), from = scratch_ints(s, dims.n);
    int64_t last = -1;
    for (int32_t k = 0; k < perm.n; k++)
        if (!ints_has(dims, k)) {
            if (perm.v[k] < last)
                return NULL;
            last = perm.v[k];
        }
    int32_t n = 0;
    for (int64_t d = 0; d < perm.n; d++) /* in increasing order */
        for (int32_t k = 0; k < perm.n; k++)
            if (perm.v[k] == d && ints_has(dims, k))
                *ints_at(from, n++) = d;
    Inst *operands[] = {inst_operand(t, 0), inst_operand(i, 1)};
    Inst *r = simp_like(s, i, i->shape, operands);
    inst_set_ints(r, ATTR_DIMENSIONS, from);
    return r;
}


/* The dimensions of the result, by the operand's: -1 for those that are reduced. */
static void kept_dims(const Inst *i, int32_t *to)
{
    Ints    dims = dimensions(i);
    int32_t n = 0;
    for (int32_t d = 0; d < inst_operand(i, 0)->shape->rank; d++)
        to[d] = ints_has(dims, d) ? -1 : n++;
}

static const Shape *shape_of_kept(Simp *s, const Shape *from, Ints reduced)
{
    Ints    sizes = scratch_ints(s, from->rank);
    int32_t n = 0;
    for (int32_t d = 0; d < from->rank; d++)
        if (!ints_has(reduced, d))
            *ints_at(sizes, n++) = from->dims[d];
    return simp_shape(s, from->type, n, sizes.v);
}

/* reduce(broadcast(x)) over dimensions of x alone: each result is one of few. */
Inst *rule_reduce_broadcast(Simp *s, Inst *i)
{
    const Inst *b = inst_operand(i, 0);
    if (i->n_operands != 2 || !is_broadcast(b) || !ints_increase(dimensions(b)))
        return NULL;
    Inst    *x = inst_operand(b, 0);
    Ints     from = dimensions(b), reduced = dimensions(i), inner = scratch_ints(s, reduced.n), dims = scratch_ints(s, from.n);
    int32_t *to = ARENA_ARRAY(s->scratch, int32_t, b->shape->rank), n = 0, m = 0;
    kept_dims(i, to);
    for (int32_t k = 0; k < from.n; k++)
        if (to[from.v[k]] < 0)
            *ints_at(inner, n++) = k;
        else
            *ints_at(dims, m++) = to[from.v[k]];
    if (n != reduced.n || shape_count(x->shape) >= shape_count(b->shape))
        return NULL;
    inner.n = n;
    const Shape *small = shape_with_type(s->arena, shape_of_kept(s, x->shape, inner), i->shape->type);
    Inst        *r = simp_like(s, i, small, (Inst *[]){x, inst_operand(i, 1)});
    inst_set_ints(r, ATTR_DIMENSIONS, inner);
    return simp_broadcast(s, i->shape, r, (Ints){dims.v, m});
}

/* Applying it again to the same value changes nothing. */
static bool is_idempotent(Op op)
{
    return op == OP_MAXIMUM || op == OP_MINIMUM || op == OP_AND || op == OP_OR;
}

static bool is_associative(Op op, Type t)
{
    return is_idempotent(op) || ((type_is_int(t) || t == TYPE_PRED) && (op == OP_ADD || op == OP_MULTIPLY || op == OP_XOR));
}

/* The largest of equal values: reduce(broadcast(x)) over the new dimensions. */
Inst *rule_reduce_same(Simp *s, Inst *i)
{
    const Inst *b = inst_operand(i, 0);
    Op          op = i->n_operands == 2 ? comp_binary_op(inst_callee(i, 0)) : OP_COUNT;
    if (!is_idempotent(op) || !is_broadcast(b) || b->shape->type != i->shape->type || shape_count(b->shape) <= 0)
        return NULL;
    Inst    *x = inst_operand(b, 0), *c = inst_operand(i, 1);
    Ints     from = dimensions(b), dims = scratch_ints(s, from.n);
    int32_t *to = ARENA_ARRAY(s->scratch, int32_t, b->shape->rank);
    kept_dims(i, to);
    for (int32_t k = 0; k < from.n; k++) {
        if (to[from.v[k]] < 0)
            return NULL;
        *ints_at(dims, k) = to[from.v[k]];
    }
    int64_t initial = inst_operand(inst_callee(i, 0)->root, 0)->param;
    Inst   *operands[2];
    operands[initial] = i->shape->rank ? simp_broadcast(s, i->shape, c, (Ints){NULL, 0}) : c;
    operands[1 - initial] = i->shape->rank ? simp_broadcast(s, i->shape, x, dims) : x;
    return simp_new(s, op, i->shape, 2, operands);
}

/* One computation that does not look at the order, with one initial value that may be taken more often. */
static bool same_reduction(const Inst *a, const Inst *b)
{
    Op          op = comp_binary_op(inst_callee(a, 0));
    const Inst *c = inst_operand(a, 1);
    if (op == OP_COUNT || comp_binary_op(inst_callee(b, 0)) != op || !is_associative(op, a->shape->type) || type_is_float(a->shape->type))
        return false;
    if (c != inst_operand(b, 1) && !simp_same_splat(c, inst_operand(b, 1)))
        return false;
    return is_idempotent(op) || splat_is(c, op == OP_MULTIPLY);
}

/* reduce(reduce(x)) -> reduce(x) over all of the dimensions. */
Inst *rule_reduce_reduce(Simp *s, Inst *i)
{
    const Inst *inner = inst_operand(i, 0);
    if (i->n_operands != 2 || inner->op != OP_REDUCE || inner->n_operands != 2 || inner->n_uses != 1 || !same_reduction(i, inner))
        return NULL;
    Inst    *x = inst_operand(inner, 0);
    Ints     first = dimensions(inner), outer = dimensions(i), all = scratch_ints(s, first.n + outer.n);
    int32_t *to = ARENA_ARRAY(s->scratch, int32_t, x->shape->rank), n = 0;
    kept_dims(inner, to);
    for (int32_t d = 0; d < x->shape->rank; d++)
        if (to[d] < 0 || ints_has(outer, to[d]))
            *ints_at(all, n++) = d;
    Inst *r = simp_like(s, i, i->shape, (Inst *[]){x, inst_operand(i, 1)});
    inst_set_ints(r, ATTR_DIMENSIONS, all);
    return r;
}

/* reduce(reshape(x)) where the reshape only joins or splits reduced dimensions, or only adds or drops sizes of 1:
 *   x [4,6,5], reshape [24,5], reduce {0}      =>     reduce x {0,1}
 * Runs of dimensions with as many elements are looked at together: a run is reduced, or kept. Where the kept ones change, nobody else may need the
 * reshape, whose users would meet the result in another shape. */
Inst *rule_reduce_reshape(Simp *s, Inst *i)
{
    const Inst *r = inst_operand(i, 0);
    if (i->n_operands != 2 || r->op != OP_RESHAPE || shape_count(r->shape) <= 0 || inst_operand(r, 0)->shape->layout || r->shape->layout)
        return NULL;
    Inst        *x = inst_operand(r, 0);
    const Shape *from = x->shape, *to = r->shape;
    Ints         dims = dimensions(i), before = scratch_ints(s, from->rank);
    int32_t      n = 0;
    for (ShapeRun run = {0}; shape_next_run(from, to, &run);) {
        bool reduced = false, kept = false;
        for (int32_t d = run.to; d < run.to_end; d++)
            *(ints_has(dims, d) ? &reduced : &kept) |= to->dims[d] != 1 || ints_has(dims, d);
        if (reduced && kept)
            return NULL;
        for (int32_t d = run.from; reduced && d < run.from_end; d++)
            *ints_at(before, n++) = d;
    }
    before.n = n;
    const Shape *small = shape_with_type(s->arena, shape_of_kept(s, from, before), i->shape->type);
    if (r->n_uses != 1 && !shape_same_dims(small, i->shape))
        return NULL;
    Inst *reduce = simp_like(s, i, small, (Inst *[]){x, inst_operand(i, 1)});
    inst_set_ints(reduce, ATTR_DIMENSIONS, before);
    return simp_reshape(s, i->shape, reduce);
}
