/* Rules of algsimp about movement: each element of the result is some element of an operand. */
#include "config.h"

#include "passes/algsimp.h"

#include <string.h>

static bool is_iota(Ints x)
{
    for (int32_t k = 0; k < x.n; k++)
        if (x.v[k] != k)
            return false;
    return true;
}

/* ---- copy, bitcast ---- */

Inst *rule_copy_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_copy_copy(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_COPY)
        return NULL;
    Inst *x = inst_operand(inner, 0);
    return simp_new(s, OP_COPY, i->shape, 1, &x);
}

/* What is made for the copy alone may as well be made in its layout. */
Inst *rule_copy_layout(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0), *of[] = {x->n_operands == 1 ? inst_operand(x, 0) : NULL};
    if ((x->op != OP_TRANSPOSE && x->op != OP_BROADCAST && x->op != OP_RESHAPE) || x->n_uses != 1 || !inst_is_free(x))
        return NULL;
    return simp_like(s, x, i->shape, of);
}

/* Other layouts come from transposes that were to move nothing, and are handed on from operand to result; where the transpose is gone the results alone lie across, and what scalars are
 * repeated to beside them. */
Inst *rule_layout_left(Simp *s, Inst *i)
{
    if (!shape_is_array(i->shape) || !i->shape->layout || !op_has(i->op, F_ELEMENTWISE) || !simp_seen_by_index(i))
        return NULL;
    Inst **operands = ARENA_ARRAY(s->scratch, Inst *, i->n_operands);
    bool   any = false;
    for (int32_t k = 0; k < i->n_operands; k++) {
        Inst *o = operands[k] = inst_operand(i, k);
        any |= !o->shape->layout;
        if (o->shape->layout && (o->op != OP_BROADCAST || !shape_is_scalar(inst_operand(o, 0)->shape)))
            return NULL;
    }
    for (int32_t k = 0; k < i->n_operands && any; k++) {
        const Shape *o = operands[k]->shape;
        if (o->layout)
            operands[k] = simp_like(s, operands[k], simp_shape(s, o->type, o->rank, o->dims), (Inst *[]){inst_operand(operands[k], 0)});
    }
    return any ? simp_like(s, i, simp_shape(s, i->shape->type, i->shape->rank, i->shape->dims), operands) : NULL;
}

/* A result that is a transpose in a layout that the caller does not want: it is turned for the caller anyway. What a contraction makes in another order is better turned behind it, by a
 * routine (16 products of 64 x 64 by 64 x 32 in another order 84 and 56 us). NULL: it is none. */
static Inst *turned_result(Simp *s, Inst *t, const Shape *wanted)
{
    if (t->op != OP_TRANSPOSE || !inst_is_free(t) || !t->shape->layout || wanted->layout || shape_is_dynamic(t->shape))
        return NULL;
    Inst *x = inst_operand(t, 0);
    if (x->op == OP_CONVOLUTION || (x->op == OP_DOT && (x->n_uses > 1 || !simp_exchanges_sides(t, x))))
        return NULL;
    return simp_like(s, t, simp_shape(s, t->shape->type, t->shape->rank, t->shape->dims), &x);
}

Inst *rule_result_layout(Simp *s, Inst *i)
{
    const Module *m = i->comp->module;
    if (i->comp != m->entry || i->comp->root != i || i->n_uses > 0 || !m->entry_result)
        return NULL;
    if (i->op != OP_TUPLE)
        return turned_result(s, i, m->entry_result);
    Inst        **operands = ARENA_ARRAY(s->scratch, Inst *, i->n_operands);
    const Shape **shapes = ARENA_ARRAY(s->arena, const Shape *, i->n_operands);
    bool          any = false;
    for (int32_t k = 0; k < i->n_operands; k++) {
        Inst *turned = turned_result(s, inst_operand(i, k), m->entry_result->elems[k]);
        any |= turned != NULL;
        operands[k] = turned ? turned : inst_operand(i, k);
        shapes[k] = operands[k]->shape;
    }
    return any ? simp_new(s, OP_TUPLE, shape_tuple(s->arena, i->n_operands, shapes), i->n_operands, operands) : NULL;
}

Inst *rule_bitcast_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

/* The inner one only says where the same bytes are. */
Inst *rule_bitcast_pair(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_BITCAST || inner->n_control > 0)
        return NULL;
    Inst *x = inst_operand(inner, 0);
    return simp_new(s, OP_BITCAST, i->shape, 1, &x);
}

/* Of its layout only the order says where an element is, and that is given. */
static bool lies_in_order(const Shape *s)
{
    const Layout *l = s->layout;
    return !l || (l->minor_to_major.n == s->rank && !l->n_tiles && !l->n_splits && !l->element_bits && !l->memory_space);
}

/* What is computed of each element is computed where it lies.
 *
 *     bitcast(negate(bitcast(x f32[4,8]) -> f32[32]) -> f32[32]) -> f32[8,4]   =>   bitcast(negate(x) -> f32[4,8]) -> f32[8,4] */
Inst *rule_bitcast_unary(Simp *s, Inst *i)
{
    const Inst *u = inst_operand(i, 0), *b = u->n_operands == 1 && op_has(u->op, F_ELEMENTWISE) ? inst_operand(u, 0) : NULL;
    if (!b || b->op != OP_BITCAST || u->n_uses != 1 || !inst_is_free(u) || b->n_control > 0 || !shape_equal(u->shape, b->shape))
        return NULL;
    Inst *x = inst_operand(b, 0);
    if (x->shape->type != u->shape->type || i->shape->type != u->shape->type || !lies_in_order(x->shape) || !lies_in_order(b->shape) || !lies_in_order(i->shape))
        return NULL;
    Inst *y = simp_like(s, u, x->shape, &x);
    return shape_equal(y->shape, i->shape) ? y : simp_new(s, OP_BITCAST, i->shape, 1, &y);
}

/* The same sizes from the most minor dimension on: a transpose that moves nothing. Sets which dimension of the result each one is. */
static bool bitcast_turns(const Shape *from, const Shape *to, int64_t *where)
{
    if (from->rank != to->rank || from->type != to->type || !lies_in_order(from) || !lies_in_order(to))
        return false;
    for (int32_t k = 0; k < from->rank; k++) {
        int64_t d = layout_dim(from, k), e = layout_dim(to, k);
        if (from->dims[d] != to->dims[e])
            return false;
        where[d] = e;
    }
    return true;
}

/* bitcast(broadcast(x)) that only names the dimensions in another order -> broadcast(x) along other dimensions. */
Inst *rule_bitcast_broadcast(Simp *s, Inst *i)
{
    const Inst *b = inst_operand(i, 0);
    int64_t    *where = ARENA_ARRAY(s->scratch, int64_t, b->shape->rank);
    if (!is_broadcast(b) || b->n_control > 0 || !bitcast_turns(b->shape, i->shape, where))
        return NULL;
    Ints from = dimensions(b), dims = scratch_ints(s, from.n);
    for (int32_t k = 0; k < from.n; k++)
        *ints_at(dims, k) = where[from.v[k]];
    return ints_increase(from) && !ints_increase(dims) ? NULL : simp_broadcast(s, i->shape, inst_operand(b, 0), dims);
}

Inst *rule_bitcast_convert_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_bitcast_convert_pair(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_BITCAST_CONVERT)
        return NULL;
    Inst *x = inst_operand(inner, 0);
    if (!shape_same_dims(x->shape, i->shape) || !shape_same_dims(inner->shape, i->shape))
        return NULL; /* widths that change split or join elements */
    return simp_new(s, OP_BITCAST_CONVERT, i->shape, 1, &x);
}

/* ---- reshape ---- */

Inst *rule_reshape_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_reshape_reshape(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    return inner->op == OP_RESHAPE ? simp_reshape(s, i->shape, inst_operand(inner, 0)) : NULL;
}

Inst *rule_reshape_broadcast(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    Ints  sizes, dims;
    if (!is_broadcast(inner) || !broadcast_reshaped(s->scratch, inner, i->shape, &sizes, &dims))
        return NULL;
    Inst *x = simp_reshape(s, simp_shape(s, i->shape->type, sizes.n, sizes.v), inst_operand(inner, 0));
    return simp_broadcast(s, i->shape, x, dims);
}

/* What is beside x takes part in its dimensions: a mask of each window, say, beside scores whose batch is taken apart for it. */
Inst *rule_reshape_around(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0), *of[2];
    if (inner->n_operands != 2 || !op_has(inner->op, F_ELEMENTWISE) || inner->n_uses != 1 || !inst_is_free(inner) || inner->shape->layout || i->shape->layout)
        return NULL;
    for (int32_t k = 0; k < 2; k++) {
        Inst *x = inst_operand(inner, k), *y = inst_operand(inner, 1 - k);
        if (x->op != OP_RESHAPE || !shape_equal(inst_operand(x, 0)->shape, i->shape) || !is_broadcast(y) || y->n_uses != 1 ||
            !shape_same_dims(x->shape, inner->shape) || !shape_same_dims(y->shape, inner->shape))
            continue;
        of[k] = inst_operand(x, 0);
        of[1 - k] = simp_reshape(s, shape_with_type(s->arena, i->shape, y->shape->type), y);
        return simp_like(s, inner, i->shape, of);
    }
    return NULL;
}

static bool is_read_by_reshapes(const Inst *x)
{
    for (const Use *u = x->uses; u; u = u->next)
        if (u->user->op != OP_RESHAPE)
            return false;
    return x->comp->root != x;
}

/* Dimensions that are not of size 1 change places among themselves, as in the transpose; those of size 1 are put where the result has them.
 *
 *     reshape(transpose([1,4,7,5], {0,1,3,2}) -> [1,4,5,7]) -> [4,5,7]   =>   transpose(reshape([1,4,7,5]) -> [4,7,5], {0,2,1}) */
Inst *rule_reshape_transpose(Simp *s, Inst *i)
{
    Inst   *t = inst_operand(i, 0);
    int32_t rank = i->shape->rank;
    if (t->op != OP_TRANSPOSE || i->shape->layout || !is_read_by_reshapes(t)) /* how the transpose lies is nobody's concern any more */
        return NULL;
    Inst    *x = inst_operand(t, 0);
    Ints     perm = dimensions(t), sizes = scratch_ints(s, rank), order = scratch_ints(s, rank);
    int32_t *where = ARENA_ARRAY(s->scratch, int32_t, perm.n), *result = ARENA_ARRAY(s->scratch, int32_t, perm.n);
    if (x->shape->layout || !shape_unit_dims(t->shape, i->shape, where))
        return NULL;
    for (int32_t k = 0; k < perm.n; k++)
        result[perm.v[k]] = where[k];
    for (int32_t k = 0; k < rank; k++) {
        *ints_at(sizes, k) = 1;
        *ints_at(order, k) = k;
    }
    int32_t place = 0;
    for (int32_t d = 0; d < perm.n; d++) {
        if (result[d] < 0)
            continue;
        while (i->shape->dims[place] == 1)
            place++;
        *ints_at(sizes, place) = x->shape->dims[d];
        *ints_at(order, result[d]) = place++;
    }
    Inst *y = simp_reshape(s, simp_shape(s, i->shape->type, rank, sizes.v), x);
    Inst *turned = simp_new(s, OP_TRANSPOSE, i->shape, 1, &y);
    inst_set_ints(turned, ATTR_DIMENSIONS, order);
    return turned;
}

/* Those dimensions of a shape that are not of size 1, numbered in order; the others have -1. */
static int32_t number_dims(Simp *s, const Shape *shape, int32_t **number)
{
    int32_t n = 0;
    *number = ARENA_ARRAY(s->scratch, int32_t, shape->rank);
    for (int32_t d = 0; d < shape->rank; d++)
        (*number)[d] = shape->dims[d] == 1 ? -1 : n++;
    return n;
}

/* Dimensions that a transpose leaves side by side are joined before it as well as behind it.
 *
 *     reshape(transpose([2,3,4,5], {2,3,0,1}) -> [4,5,2,3]) -> [20,6]   =>   transpose(reshape([2,3,4,5]) -> [6,20], {1,0}) */
Inst *rule_reshape_join(Simp *s, Inst *i)
{
    Inst        *t = inst_operand(i, 0);
    const Shape *to = i->shape, *turned = t->shape;
    if (t->op != OP_TRANSPOSE || inst_operand(t, 0)->op != OP_RESHAPE || to->layout || inst_operand(t, 0)->shape->layout || shape_count(to) <= 0 ||
        !is_read_by_reshapes(t))
        return NULL;
    Inst    *x = inst_operand(t, 0);
    int32_t *number, *first = ARENA_ARRAY(s->scratch, int32_t, to->rank), k = 0;
    int32_t  n = number_dims(s, x->shape, &number), *starts = ARENA_ARRAY(s->scratch, int32_t, n + 1);
    bool     joins = false;
    for (int32_t j = 0; j <= n; j++)
        starts[j] = -1;
    for (int32_t d = 0; d < to->rank; d++) { /* to its size come dimensions of the transpose, one after the other in x, too */
        int64_t size = 1;
        first[d] = -1;
        for (int32_t last = -1; size < to->dims[d] && k < turned->rank; k++) {
            int32_t here = number[dimensions(t).v[k]];
            if (here < 0)
                continue;
            if (last >= 0 && here != last + 1)
                return NULL;
            joins |= last >= 0;
            first[d] = last < 0 ? here : first[d];
            last = here;
            size *= turned->dims[k];
        }
        if (size != to->dims[d])
            return NULL;
        if (first[d] >= 0)
            starts[first[d]] = d;
    }
    if (!joins)
        return NULL;
    Ints    sizes = scratch_ints(s, to->rank), order = scratch_ints(s, to->rank);
    int32_t at = 0;
    for (int32_t j = 0; j < n; j++)
        if (starts[j] >= 0) {
            *ints_at(sizes, at) = to->dims[starts[j]];
            *ints_at(order, starts[j]) = at++;
        }
    for (int32_t d = 0; d < to->rank; d++)
        if (first[d] < 0) {
            *ints_at(sizes, at) = 1;
            *ints_at(order, d) = at++;
        }
    Inst *joined = simp_reshape(s, simp_shape(s, to->type, to->rank, sizes.v), x);
    Inst *r = simp_new(s, OP_TRANSPOSE, to, 1, &joined);
    inst_set_ints(r, ATTR_DIMENSIONS, order);
    return r;
}

enum { MOST_MOVES = 16 };

/* Both lie as the default layout says. */
static bool are_in_default_order(const Inst *i, const Inst *x)
{
    return i->shape->type == x->shape->type && !i->shape->layout && !x->shape->layout;
}

/* Of each dimension of j that is not of size 1 says which one of its operand it is; false: j does more than turn and add, drop or move sizes of 1. */
static bool moved_from(Simp *s, const Inst *j, int32_t **where)
{
    *where = ARENA_ARRAY(s->scratch, int32_t, j->shape->rank);
    if (j->op == OP_TRANSPOSE)
        for (int32_t d = 0; d < j->shape->rank; d++)
            (*where)[d] = (int32_t)dimensions(j).v[d];
    return j->op == OP_TRANSPOSE || ((j->op == OP_RESHAPE || (j->op == OP_BITCAST && are_in_default_order(j, inst_operand(j, 0)))) &&
                                     shape_unit_dims(j->shape, inst_operand(j, 0)->shape, *where));
}

/* What was there before such moves is there again: each dimension of i is the same one of it, or, loosely, they are but for those of size 1. */
static Inst *before_moves(Simp *s, const Inst *i, bool loosely)
{
    int32_t     *at = ARENA_ARRAY(s->scratch, int32_t, i->shape->rank), *where;
    const Inst  *j = i;
    Inst        *found = NULL;
    for (int32_t d = 0; d < i->shape->rank; d++)
        at[d] = d;
    for (int n = 0; n < MOST_MOVES && !shape_is_dynamic(j->shape) && moved_from(s, j, &where); n++) {
        Inst *x = inst_operand(j, 0);
        bool  same = shape_equal(x->shape, i->shape), rising = loosely && are_in_default_order(i, x) && !shape_is_dynamic(x->shape);
        for (int32_t d = 0, last = -1; d < i->shape->rank; d++)
            if (i->shape->dims[d] != 1) {
                at[d] = where[at[d]];
                same &= at[d] == d;
                rising &= at[d] > last;
                last = at[d];
            }
        if (same)
            return x;
        if (rising)
            found = x;
        j = x;
    }
    return found ? simp_reshape(s, i->shape, found) : NULL;
}

Inst *rule_reshape_undone(Simp *s, Inst *i) { return before_moves(s, i, false); }
Inst *rule_transpose_undone(Simp *s, Inst *i) { return before_moves(s, i, true); }
Inst *rule_bitcast_undone(Simp *s, Inst *i) { return before_moves(s, i, false); }

/* ---- transpose ---- */

Inst *rule_transpose_noop(Simp *s, Inst *i)
{
    return is_iota(dimensions(i)) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

Inst *rule_transpose_transpose(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_TRANSPOSE)
        return NULL;
    Ints  outer = dimensions(i), first = dimensions(inner), both = scratch_ints(s, outer.n);
    Inst *x = inst_operand(inner, 0);
    for (int32_t k = 0; k < outer.n; k++)
        *ints_at(both, k) = first.v[outer.v[k]];
    Inst *t = simp_new(s, OP_TRANSPOSE, i->shape, 1, &x);
    inst_set_ints(t, ATTR_DIMENSIONS, both);
    return t;
}

Inst *rule_transpose_unit(Simp *s, Inst *i)
{
    Ints    perm = dimensions(i);
    Inst   *x = inst_operand(i, 0);
    int64_t last = -1;
    if (is_iota(perm) || i->shape->layout || x->shape->layout)
        return NULL;
    for (int32_t k = 0; k < perm.n; k++)
        if (i->shape->dims[k] != 1) {
            if (perm.v[k] < last)
                return NULL;
            last = perm.v[k];
        }
    return simp_reshape(s, i->shape, x);
}

/* Result dimension k is the broadcast's perm[k]. */
Inst *rule_transpose_broadcast(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (!is_broadcast(inner))
        return NULL;
    Ints perm = dimensions(i), from = dimensions(inner), dims = scratch_ints(s, from.n);
    for (int32_t k = 0; k < from.n; k++)
        for (int32_t j = 0; j < perm.n; j++)
            if (perm.v[j] == from.v[k])
                *ints_at(dims, k) = j;
    return ints_increase(from) && !ints_increase(dims) ? NULL : simp_broadcast(s, i->shape, inst_operand(inner, 0), dims);
}

/* ---- broadcast ---- */

Inst *rule_broadcast_noop(Simp *s, Inst *i)
{
    return is_iota(dimensions(i)) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

Inst *rule_broadcast_reshape(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0);
    if (!ints_increase(dimensions(i)) || shape_count(x->shape) != shape_count(i->shape) || !is_broadcast(i))
        return NULL;
    return i->shape->rank > x->shape->rank ? simp_reshape(s, i->shape, x) : NULL;
}

Inst *rule_broadcast_broadcast(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (!is_broadcast(inner) || !is_broadcast(i))
        return NULL;
    Ints outer = dimensions(i), first = dimensions(inner), dims = scratch_ints(s, first.n);
    for (int32_t k = 0; k < first.n; k++)
        *ints_at(dims, k) = outer.v[first.v[k]];
    return simp_broadcast(s, i->shape, inst_operand(inner, 0), dims);
}

/*   broadcast x [1,8] -> [4,1,8], dimensions={1,2}   =>   reshape x [8], broadcast -> [4,1,8], dimensions={2} */
Inst *rule_broadcast_unit(Simp *s, Inst *i)
{
    Inst   *x = inst_operand(i, 0);
    Ints    from = dimensions(i), dims = scratch_ints(s, from.n), sizes = scratch_ints(s, from.n);
    int32_t n = 0;
    if (shape_count(x->shape) <= 0 || !is_broadcast(i))
        return NULL;
    for (int32_t k = 0; k < from.n; k++)
        if (x->shape->dims[k] != 1) {
            *ints_at(sizes, n) = x->shape->dims[k];
            *ints_at(dims, n++) = from.v[k];
        }
    if (n == from.n || shape_count(x->shape) == shape_count(i->shape))
        return NULL;
    Inst *small = simp_reshape(s, simp_shape(s, x->shape->type, n, sizes.v), x);
    return simp_broadcast(s, i->shape, small, (Ints){dims.v, n});
}

/* ---- annotations ---- */

Inst *rule_layout_constraint(Simp *s, Inst *i)
{
    const char *target = inst_string(i, ATTR_CUSTOM_CALL_TARGET);
    if (!target || strcmp(target, "LayoutConstraint") != 0 || i->n_operands != 1 || !shape_is_array(i->shape))
        return NULL;
    Inst *x = inst_operand(i, 0);
    return shape_equal(x->shape, i->shape) ? x : shape_compatible(x->shape, i->shape) ? simp_new(s, OP_COPY, i->shape, 1, &x) : NULL;
}

/* All dimensions in another order. */
Inst *rule_broadcast_transpose(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0);
    Ints  dims = dimensions(i), perm = scratch_ints(s, dims.n);
    if (dims.n != i->shape->rank || is_iota(dims) || !is_broadcast(i) || shape_count(x->shape) != shape_count(i->shape))
        return NULL;
    for (int32_t k = 0; k < dims.n; k++)
        *ints_at(perm, (int32_t)dims.v[k]) = k;
    Inst *t = simp_new(s, OP_TRANSPOSE, i->shape, 1, &x);
    inst_set_ints(t, ATTR_DIMENSIONS, perm);
    return t;
}

/* bitcast-convert(concatenate(bitcast-convert(x), ...)) back to the type of x -> concatenate(x, ...) */
Inst *rule_bitcast_convert_concatenate(Simp *s, Inst *i)
{
    const Inst *c = inst_operand(i, 0);
    if (c->op != OP_CONCATENATE || c->n_uses != 1 || !shape_same_dims(c->shape, i->shape))
        return NULL;
    Inst **operands = ARENA_ARRAY(s->scratch, Inst *, c->n_operands);
    for (int32_t k = 0; k < c->n_operands; k++) {
        const Inst *b = inst_operand(c, k);
        if (b->op != OP_BITCAST_CONVERT || !shape_same_dims(inst_operand(b, 0)->shape, b->shape) || inst_operand(b, 0)->shape->type != i->shape->type)
            return NULL;
        operands[k] = inst_operand(b, 0);
    }
    Inst *r = simp_new(s, OP_CONCATENATE, i->shape, c->n_operands, operands);
    inst_set_ints(r, ATTR_DIMENSIONS, dimensions(c));
    return r;
}

/* Numbers are drawn in the order of the elements. */
Inst *rule_reshape_rng(Simp *s, Inst *i)
{
    const Inst *r = inst_operand(i, 0);
    if (r->op != OP_RNG || r->n_uses != 1 || i->shape->layout || r->shape->layout)
        return NULL;
    return simp_like(s, r, i->shape, (Inst *[]){inst_operand(r, 0), inst_operand(r, 1)});
}
