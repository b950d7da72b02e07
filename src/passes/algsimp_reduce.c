/* Rules of algsimp about reductions. A sum of floats is taken in the order of the elements, so that only what keeps that order is done to it. */
#include "config.h"

#include "passes/algsimp.h"

#include <math.h>

#include "analysis/choice.h"

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
static Inst *reduced_at_once(Simp *s, const Inst *i, const Inst *inner)
{
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

Inst *rule_reduce_reduce(Simp *s, Inst *i)
{
    const Inst *inner = inst_operand(i, 0);
    if (i->n_operands != 2 || inner->op != OP_REDUCE || inner->n_operands != 2 || inner->n_uses != 1 || !same_reduction(i, inner))
        return NULL;
    return reduced_at_once(s, i, inner);
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

/* ---- what is summed up ---- */

/* Nothing but the initial value. */
static Inst *initial_alone(Simp *s, const Inst *i)
{
    if (i->n_operands != 2 || shape_count(inst_operand(i, 0)->shape) != 0 || shape_count(i->shape) <= 0)
        return NULL;
    Inst *c = inst_operand(i, 1);
    return i->shape->rank ? simp_broadcast(s, i->shape, c, (Ints){NULL, 0}) : simp_same(s, c);
}

Inst *rule_reduce_empty(Simp *s, Inst *i)
{
    return initial_alone(s, i);
}

Inst *rule_reduce_window_empty(Simp *s, Inst *i)
{
    return initial_alone(s, i);
}

static bool is_sum(const Inst *i)
{
    return i->op == OP_REDUCE && i->n_operands == 2 && comp_binary_op(inst_callee(i, 0)) == OP_ADD && inst_operand(i, 0)->shape->type == i->shape->type;
}

/* Nothing is added to the sum at its beginning. */
static bool starts_at_zero(const Inst *sum)
{
    return splat_is(inst_operand(sum, 1), 0) || splat_is_minus_zero(inst_operand(sum, 1));
}

/* The sum of -x is minus the sum of x, with one sign to change and not many; of floats a sum of 0 has the other sign. */
Inst *rule_reduce_negate(Simp *s, Inst *i)
{
    const Inst *x = inst_operand(i, 0);
    if (!is_sum(i) || x->op != OP_NEGATE || !splat_is(inst_operand(i, 1), 0) || !shape_equal(inst_operand(x, 0)->shape, x->shape))
        return NULL;
    Inst *sum = simp_like(s, i, i->shape, (Inst *[]){inst_operand(x, 0), inst_operand(i, 1)});
    return simp_new(s, OP_NEGATE, i->shape, 1, &sum);
}

/* A sum of sums of floats as one, which adds them up in another order. */
Inst *rule_reduce_float_reduce(Simp *s, Inst *i)
{
    const Inst *inner = inst_operand(i, 0);
    if (!is_sum(i) || !is_sum(inner) || inner->n_uses != 1 || !type_is_float(i->shape->type) || !starts_at_zero(inner))
        return NULL;
    return reduced_at_once(s, i, inner);
}

/* The sum of n times the same -> n * x + the initial value. */
static Inst *sum_of_same(Simp *s, const Inst *i)
{
    const Inst *b = inst_operand(i, 0);
    Type        t = i->shape->type;
    if (!is_sum(i) || !is_broadcast(b) || !ints_increase(dimensions(b)))
        return NULL;
    Ints     from = dimensions(b), reduced = dimensions(i), dims = scratch_ints(s, from.n);
    int32_t *to = ARENA_ARRAY(s->scratch, int32_t, b->shape->rank);
    int64_t  n = 1;
    kept_dims(i, to);
    for (int32_t k = 0; k < from.n; k++) {
        if (to[from.v[k]] < 0)
            return NULL;
        *ints_at(dims, k) = to[from.v[k]];
    }
    for (int32_t k = 0; k < reduced.n; k++)
        if (!size_mul(n, b->shape->dims[reduced.v[k]], &n))
            return NULL;
    Literal *times = type_is_float(t) ? literal_from_f64(t, (double)n) : literal_from_s64(t, n);
    Inst    *x = inst_operand(b, 0), *c = inst_operand(i, 1);
    Inst    *product = simp_new(s, OP_MULTIPLY, x->shape, 2, (Inst *[]){x, simp_splat_literal(s, x->shape, times)});
    if (i->shape->rank) {
        product = simp_broadcast(s, i->shape, product, dims);
        c = simp_broadcast(s, i->shape, c, (Ints){NULL, 0});
    }
    return simp_new(s, OP_ADD, i->shape, 2, (Inst *[]){product, c});
}

Inst *rule_reduce_sum_same(Simp *s, Inst *i)
{
    return type_is_int(i->shape->type) ? sum_of_same(s, i) : NULL;
}

Inst *rule_reduce_float_sum_same(Simp *s, Inst *i)
{
    return i->shape->type == TYPE_F32 || i->shape->type == TYPE_F64 ? sum_of_same(s, i) : NULL;
}

enum { MOST_PARTS = 8 };

/* reduce(concatenate(x, y)) along it -> op(reduce(x), reduce(y)): the parts need not be brought together. */
static Inst *reduced_parts(Simp *s, const Inst *i)
{
    const Inst *c = inst_operand(i, 0);
    Op          op = i->n_operands == 2 ? comp_binary_op(inst_callee(i, 0)) : OP_COUNT;
    if (op == OP_COUNT || c->op != OP_CONCATENATE || c->n_uses != 1 || c->n_operands > MOST_PARTS || !ints_has(dimensions(i), dimensions(c).v[0]) ||
        c->shape->type != i->shape->type || (!is_idempotent(op) && (op != OP_ADD || !starts_at_zero(i))))
        return NULL;
    Inst *all = NULL;
    for (int32_t k = 0; k < c->n_operands; k++) {
        Inst *part = simp_like(s, i, i->shape, (Inst *[]){inst_operand(c, k), inst_operand(i, 1)});
        all = all ? simp_new(s, op, i->shape, 2, (Inst *[]){all, part}) : part;
    }
    return all;
}

Inst *rule_reduce_concatenate(Simp *s, Inst *i)
{
    return type_is_int(i->shape->type) || i->shape->type == TYPE_PRED ? reduced_parts(s, i) : NULL;
}

Inst *rule_reduce_float_concatenate(Simp *s, Inst *i)
{
    return type_is_float(i->shape->type) ? reduced_parts(s, i) : NULL;
}

/* ---- pairs of a value and a number ---- */

/* What is put into a tuple of one. */
static Inst *without_tuple(Simp *s, const Inst *i)
{
    const Comp *c = inst_callee(i, 0);
    if (i->n_operands != 2 || !shape_is_tuple(i->shape) || c->root->op != OP_TUPLE)
        return NULL;
    Comp *plain = comp_clone(c, c->name);
    Inst *tuple = plain->root;
    plain->root = inst_operand(tuple, 0);
    inst_delete(tuple);
    Inst *r = simp_like(s, i, i->shape->elems[0], (Inst *[]){inst_operand(i, 0), inst_operand(i, 1)});
    inst_set_callees(r, 1, &plain);
    return simp_new(s, OP_TUPLE, i->shape, 1, &r);
}

/* Sums of one result may be taken in another order, and in a wider type, than those of several. */
static bool sums_floats(const Inst *i)
{
    const Inst *root = inst_callee(i, 0)->root;
    if (root->op != OP_TUPLE || root->n_operands != 1)
        return false;
    Op op = inst_operand(root, 0)->op;
    return (type_is_float(root->shape->elems[0]->type) || type_is_complex(root->shape->elems[0]->type)) && op != OP_MAXIMUM && op != OP_MINIMUM;
}

Inst *rule_reduce_single(Simp *s, Inst *i)
{
    return sums_floats(i) ? NULL : without_tuple(s, i);
}

Inst *rule_reduce_float_single(Simp *s, Inst *i)
{
    return sums_floats(i) ? without_tuple(s, i) : NULL;
}

Inst *rule_reduce_window_single(Simp *s, Inst *i)
{
    return sums_floats(i) ? NULL : without_tuple(s, i);
}

Inst *rule_reduce_window_float_single(Simp *s, Inst *i)
{
    return sums_floats(i) ? without_tuple(s, i) : NULL;
}

/* The dimension along which i counts from 0 and never wraps around, -1: it does something else. */
static int64_t counts_along(const Inst *i)
{
    if (!type_is_int(i->shape->type) || type_bits(i->shape->type) < 32 || shape_count(i->shape) > INT32_MAX)
        return -1;
    if (i->op == OP_IOTA)
        return inst_int(i, ATTR_IOTA_DIMENSION, 0);
    return is_broadcast(i) && inst_operand(i, 0)->op == OP_IOTA && inst_operand(i, 0)->shape->rank == 1 ? dimensions(i).v[0] : -1;
}

/* Whether c is worse than v by op, or the same bits: then it is never seen beside v. */
static bool never_wins(Op op, const Literal *c, const Literal *v)
{
    if (!c || !v || c->type != v->type || (!type_is_int(v->type) && !type_is_float(v->type)))
        return false;
    if (type_is_int(v->type)) {
        int64_t a = literal_get_s64(c, 0), b = literal_get_s64(v, 0);
        return v->type != TYPE_U64 && (op == OP_MAXIMUM ? a <= b : a >= b);
    }
    double a = literal_get_f64(c, 0), b = literal_get_f64(v, 0);
    return (op == OP_MAXIMUM ? a < b : a > b) || (a == b && signbit(a) == signbit(b));
}

/* The largest of equal values is the first one: argmax(broadcast(v)) -> (v, 0), and so is the smallest. */
Inst *rule_reduce_choice_splat(Simp *s, Inst *i)
{
    if (i->n_operands != 4 || shape_count(inst_operand(i, 0)->shape) <= 0 || !ints_has(dimensions(i), counts_along(inst_operand(i, 1))) ||
        !splat_is(inst_operand(i, 3), 0))
        return NULL;
    const Literal *v = splat_value(inst_operand(i, 0)), *c = splat_value(inst_operand(i, 2));
    const Comp    *choose = inst_callee(i, 0);
    bool           largest = never_wins(OP_MAXIMUM, c, v) && choice_is_extreme(choose, OP_MAXIMUM, true);
    if (!largest && !(never_wins(OP_MINIMUM, c, v) && choice_is_extreme(choose, OP_MINIMUM, true)))
        return NULL;
    const Shape *const *shapes = i->shape->elems;
    if (v->type != shapes[0]->type)
        return NULL;
    return simp_new(s, OP_TUPLE, i->shape, 2, (Inst *[]){simp_splat_literal(s, shapes[0], simp_scalar(v)), simp_splat(s, shapes[1], 0)});
}

/* ---- numbers of a choice in as few bits as there are elements, but for those of the values, beside which compilers make vectors of them ---- */

static int64_t largest(Type t)
{
    return INT64_MAX >> (64 - type_bits(t));
}

static Type number_type(Type value, int64_t count)
{
    static const Type types[] = { TYPE_S8, TYPE_S16, TYPE_S32 };
    const int machine = !type_is_float(value) ? type_bits(value) : type_bits(value) > 32 ? 64 : 32;
    for (int k = 0; k < 3; k++)
        if (machine <= type_bits(types[k]) && count - 1 <= largest(types[k]))
            return types[k];
    return TYPE_S64;
}

static Comp *choice_with_numbers(const Comp *c, Type from, Type to)
{
    Arena        *a = c->module->arena;
    Comp         *narrow = comp_clone(c, c->name);
    const Shape **elems = ARENA_ARRAY(a, const Shape *, 2);
    for (Inst *i = narrow->first; i; i = i->next)
        if (shape_is_array(i->shape) && i->shape->type == from)
            i->shape = shape_with_type(a, i->shape, to);
    for (int k = 0; k < 2; k++)
        elems[k] = inst_operand(narrow->root, k)->shape;
    narrow->root->shape = shape_tuple(a, 2, elems);
    return narrow;
}

/* Of numbers that count, of type t. */
static Inst *narrow_numbers(Simp *s, const Inst *x, Type t)
{
    Inst *of = x->op == OP_BROADCAST ? narrow_numbers(s, inst_operand(x, 0), t) : NULL;
    return simp_like(s, x, shape_with_type(s->arena, x->shape, t), &of);
}

/* argmax(x) with numbers of 64 bits -> one with narrower ones, converted. */
Inst *rule_reduce_choice_narrow(Simp *s, Inst *i)
{
    const int64_t d = i->n_operands == 4 ? counts_along(inst_operand(i, 1)) : -1;
    if (d < 0 || choice_of(inst_callee(i, 0)) == CHOICE_NONE)
        return NULL;
    const Inst    *numbers = inst_operand(i, 1);
    const Literal *first = splat_value(inst_operand(i, 3));
    const Type     from = numbers->shape->type, to = number_type(inst_operand(i, 0)->shape->type, numbers->shape->dims[d]);
    if (type_bits(to) >= type_bits(from) || !first || literal_get_s64(first, 0) < 0 || literal_get_s64(first, 0) > largest(to))
        return NULL;
    const Shape *const *given = i->shape->elems;
    const Shape *elems[] = { given[0], shape_with_type(s->arena, given[1], to) };
    Comp        *by = choice_with_numbers(inst_callee(i, 0), from, to);
    Inst        *operands[] = { inst_operand(i, 0), narrow_numbers(s, numbers, to), inst_operand(i, 2), simp_splat(s, shape_scalar(s->arena, to), literal_get_s64(first, 0)) };
    Inst        *r = simp_like(s, i, shape_tuple(s->arena, 2, elems), operands), *e[2];
    inst_set_callees(r, 1, &by);
    for (int k = 0; k < 2; k++) {
        e[k] = simp_new(s, OP_GET_TUPLE_ELEMENT, elems[k], 1, &r);
        inst_set_int(e[k], ATTR_INDEX, k);
    }
    e[1] = simp_new(s, OP_CONVERT, given[1], 1, &e[1]);
    return simp_new(s, OP_TUPLE, i->shape, 2, e);
}

enum { NEAR = 256 }; /* instructions between one and the other */

static bool comes_soon(const Inst *first, const Inst *second)
{
    for (int k = 0; first && k < NEAR; k++, first = first->next)
        if (first == second)
            return true;
    return false;
}

/* max(x) beside argmax(x) is a part of that. */
static Inst *chosen_beside(Simp *s, const Inst *i)
{
    Op    op = i->n_operands == 2 ? comp_binary_op(inst_callee(i, 0)) : OP_COUNT;
    Inst *x = inst_operand(i, 0), *c = inst_operand(i, 1);
    int   left = NEAR;
    if (op != OP_MAXIMUM && op != OP_MINIMUM)
        return NULL;
    for (Use *u = x->uses; u && left-- > 0; u = u->next) {
        Inst *r = u->user;
        if (r->op != OP_REDUCE || r->n_operands != 4 || u->index != 0 || !shape_equal(r->shape->elems[0], i->shape) ||
            !ints_equal(dimensions(r), dimensions(i)) || (inst_operand(r, 2) != c && !simp_same_splat(inst_operand(r, 2), c)) ||
            !comes_soon(r, i) || !choice_is_extreme(inst_callee(r, 0), op, false))
            continue;
        Inst *e = simp_new(s, OP_GET_TUPLE_ELEMENT, i->shape, 1, &r);
        inst_set_int(e, ATTR_INDEX, 0);
        return e;
    }
    return NULL;
}

Inst *rule_reduce_beside_choice(Simp *s, Inst *i)
{
    return type_is_int(i->shape->type) ? chosen_beside(s, i) : NULL;
}

/* -0 and 0 are equal to a choice. */
Inst *rule_reduce_float_beside_choice(Simp *s, Inst *i)
{
    return type_is_float(i->shape->type) ? chosen_beside(s, i) : NULL;
}

/* ---- reduce-window ---- */

static bool is_plain_window(const WindowDim *w)
{
    return w->pad_lo == 0 && w->pad_hi == 0 && w->base_dilation == 1 && w->window_dilation == 1;
}

/* Windows of one element each: op(c, x), in the order of the reducer; those in the padding have the initial value alone. */
Inst *rule_reduce_window_unit(Simp *s, Inst *i)
{
    const Comp *reducer = inst_callee(i, 0);
    Op          op = i->n_operands == 2 ? comp_binary_op(reducer) : OP_COUNT;
    Inst       *x = inst_operand(i, 0), *c = inst_operand(i, 1), *operands[2];
    PadDim     *v = ARENA_ARRAY(s->scratch, PadDim, i->shape->rank + 1);
    bool        padded = false;
    if (op == OP_COUNT || !op_has(op, F_COMMUTES) || x->shape->type != i->shape->type)
        return NULL;
    for (int32_t k = 0; k < i->shape->rank; k++) {
        const WindowDim *w = &inst_window(i)->v[k];
        if (w->size != 1 || w->stride != 1 || w->base_dilation != 1)
            return NULL;
        v[k] = (PadDim){.lo = w->pad_lo, .hi = w->pad_hi};
        padded |= w->pad_lo || w->pad_hi;
    }
    if (!padded && !shape_equal(x->shape, i->shape))
        return NULL;
    int64_t initial = inst_operand(reducer->root, 0)->param;
    operands[initial] = i->shape->rank ? simp_broadcast(s, x->shape, c, (Ints){NULL, 0}) : c;
    operands[1 - initial] = x;
    Inst *inside = simp_new(s, op, x->shape, 2, operands);
    return padded ? simp_pad(s, i->shape, inside, c, v) : inside;
}

/* What window reduction w reduces, over the whole of the dimensions, as an array of that shape. */
static Inst *reduced_whole(Simp *s, const Shape *shape, const Inst *w, Ints over)
{
    Inst        *x = inst_operand(w, 0);
    const Shape *small = shape_with_type(s->arena, shape_of_kept(s, x->shape, over), shape->type);
    Inst        *r = simp_new(s, OP_REDUCE, small, 2, (Inst *[]){x, inst_operand(w, 1)});
    inst_set_ints(r, ATTR_DIMENSIONS, over);
    inst_set_callees(r, 1, w->callees);
    return simp_reshape(s, shape, r);
}

/* A window that stays at one place in each dimension that it covers, and has one element in the others: a reduction. */
static Inst *reduced_window(Simp *s, const Inst *i)
{
    Inst   *x = inst_operand(i, 0);
    int32_t rank = i->shape->rank, n = 0;
    Ints    covered = scratch_ints(s, rank);
    if (i->n_operands != 2 || i->shape->layout || x->shape->layout)
        return NULL;
    for (int32_t k = 0; k < rank; k++) {
        const WindowDim *w = &inst_window(i)->v[k];
        if (!is_plain_window(w) || (w->size == 1 ? w->stride != 1 : w->size != x->shape->dims[k]))
            return NULL;
        if (w->size > 1)
            *ints_at(covered, n++) = k;
    }
    if (n == 0)
        return NULL;
    covered.n = n;
    return reduced_whole(s, i->shape, i, covered);
}

Inst *rule_reduce_window_reduce(Simp *s, Inst *i)
{
    const bool rounds = type_is_float(i->shape->type) || type_is_complex(i->shape->type);
    return rounds && (i->n_operands != 2 || !is_idempotent(comp_binary_op(inst_callee(i, 0)))) ? NULL : reduced_window(s, i);
}

/* Whose sums may be taken in another order. */
Inst *rule_reduce_window_float_reduce(Simp *s, Inst *i)
{
    return type_is_float(i->shape->type) ? reduced_window(s, i) : NULL;
}

/* The dimension along which the sums of what came before and itself are taken, -1: this window does something else. */
static int32_t running_sum(const Inst *i)
{
    int32_t along = -1;
    for (int32_t k = 0; k < i->shape->rank; k++) {
        const WindowDim *w = &inst_window(i)->v[k];
        int64_t          n = i->shape->dims[k];
        if (w->stride != 1 || w->base_dilation != 1 || w->window_dilation != 1 || w->pad_hi)
            return -1;
        if (w->size == 1 && w->pad_lo == 0)
            continue;
        if (along >= 0 || w->size != n || w->pad_lo != n - 1)
            return -1;
        along = k;
    }
    return along;
}

/* The running sum of c, c, c, ... -> c * (iota + 1), of integers. */
Inst *rule_reduce_window_running(Simp *s, Inst *i)
{
    const Literal *c = i->n_operands == 2 ? splat_value(inst_operand(i, 0)) : NULL;
    Type           t = i->shape->type;
    int32_t        along = c ? running_sum(i) : -1;
    if (along < 0 || c->type != t || !type_is_int(t) || comp_binary_op(inst_callee(i, 0)) != OP_ADD || !splat_is(inst_operand(i, 1), 0))
        return NULL;
    Inst *iota = simp_new(s, OP_IOTA, i->shape, 0, NULL);
    inst_set_int(iota, ATTR_IOTA_DIMENSION, along);
    Inst *count = simp_new(s, OP_ADD, i->shape, 2, (Inst *[]){iota, simp_splat(s, i->shape, 1)});
    return simp_new(s, OP_MULTIPLY, i->shape, 2, (Inst *[]){count, simp_splat(s, i->shape, literal_get_s64(c, 0))});
}

/* Whether the slice takes the last window of each dimension along which windows of all sizes follow each other, and all of the others. Sets *covered to the former. */
static bool takes_last(Simp *s, const Inst *slice, const Inst *w, Ints *covered)
{
    const SliceRange *v = simp_ranges(slice);
    int32_t           n = 0;
    *covered = scratch_ints(s, w->shape->rank);
    for (int32_t k = 0; k < w->shape->rank; k++) {
        WindowDim d = inst_window(w)->v[k];
        int64_t   size = inst_operand(w, 0)->shape->dims[k];
        bool      all = v[k].start == 0 && v[k].limit == w->shape->dims[k];
        if (d.stride != 1 || d.base_dilation != 1 || d.window_dilation != 1 || d.pad_hi || v[k].stride != 1)
            return false;
        if (d.size == 1 && d.pad_lo == 0 && all)
            continue;
        if (d.size != size || d.pad_lo != size - 1 || v[k].start != size - 1)
            return false;
        *ints_at(*covered, n++) = k;
    }
    covered->n = n;
    return n > 0;
}

/* slice(reduce-window(x)) of the last one of running sums -> reduce(x) */
static Inst *last_of_running(Simp *s, const Inst *i)
{
    const Inst *w = inst_operand(i, 0);
    Ints        covered;
    if (w->op != OP_REDUCE_WINDOW || w->n_operands != 2 || w->n_uses != 1 || i->shape->layout || inst_operand(w, 0)->shape->layout ||
        shape_count(i->shape) <= 0 || !takes_last(s, i, w, &covered))
        return NULL;
    return reduced_whole(s, i->shape, w, covered);
}

Inst *rule_slice_running(Simp *s, Inst *i)
{
    return type_is_int(i->shape->type) ? last_of_running(s, i) : NULL;
}

/* Which adds them up in another order. */
Inst *rule_slice_float_running(Simp *s, Inst *i)
{
    return type_is_float(i->shape->type) ? last_of_running(s, i) : NULL;
}
