/* Rules of algsimp about indices and choices: iota, comparisons of known sides, selects of selects, gathers at one place. */
#include "config.h"

#include "analysis/int_range.h"
#include "passes/algsimp.h"

/* ---- iota ---- */

/* iota [4,8] along 1 -> broadcast(iota [8]), so that what is computed of it is computed once a number. */
Inst *rule_iota_broadcast(Simp *s, Inst *i)
{
    int64_t dim = inst_int(i, ATTR_IOTA_DIMENSION, 0), n = i->shape->rank ? i->shape->dims[dim] : 0;
    if (i->shape->rank < 2 || n < 2 || shape_count(i->shape) <= n)
        return NULL;
    Inst *small = simp_new(s, OP_IOTA, simp_shape(s, i->shape->type, 1, &n), 0, NULL);
    inst_set_int(small, ATTR_IOTA_DIMENSION, 0);
    return simp_broadcast(s, i->shape, small, (Ints){&dim, 1});
}

/* ---- compare, select ---- */

/* x < 0 is false and x >= 0 true where x is never below 0. Of floats NaN compares as false: x >= 0 is not known. */
Inst *rule_compare_non_negative(Simp *s, Inst *i)
{
    Word       w = inst_word(i, ATTR_DIRECTION);
    const Type t = inst_operand(i, 0)->shape->type;
    const bool whole = type_is_int(t);
    if (!whole && (!type_is_float(t) || compare_is_total(i)))
        return NULL;
    bool left = splat_is(inst_operand(i, 0), 0), right = splat_is(inst_operand(i, 1), 0);
    if (right && simp_non_negative(inst_operand(i, 0)) && (w == CMP_LT || (w == CMP_GE && whole)))
        return simp_splat(s, i->shape, w == CMP_GE);
    if (left && simp_non_negative(inst_operand(i, 1)) && (w == CMP_GT || (w == CMP_LE && whole)))
        return simp_splat(s, i->shape, w == CMP_LE);
    return NULL;
}

/* x < y where all that x may be is below all that y may be, or is not: an index behind its clamp, the negative ones of which front ends count from the end. */
Inst *rule_compare_range(Simp *s, Inst *i)
{
    const Word w = inst_word(i, ATTR_DIRECTION);
    IntRange   a, b;
    if (!int_range(inst_operand(i, 0), &a) || !int_range(inst_operand(i, 1), &b))
        return NULL;
    const bool above = a.lo > b.hi, below = a.hi < b.lo, never_below = a.lo >= b.hi, never_above = a.hi <= b.lo;
    switch (w) {
    case CMP_LT: return below || never_below ? simp_splat(s, i->shape, below) : NULL;
    case CMP_GT: return above || never_above ? simp_splat(s, i->shape, above) : NULL;
    case CMP_LE: return never_above || above ? simp_splat(s, i->shape, never_above) : NULL;
    case CMP_GE: return never_below || below ? simp_splat(s, i->shape, never_below) : NULL;
    case CMP_EQ: case CMP_NE: return above || below ? simp_splat(s, i->shape, w == CMP_NE) : NULL;
    default: return NULL;
    }
}

Inst *rule_clamp_range(Simp *s, Inst *i)
{
    IntRange low, x, high;
    if (!int_range(inst_operand(i, 0), &low) || !int_range(inst_operand(i, 1), &x) || !int_range(inst_operand(i, 2), &high))
        return NULL;
    return x.lo >= low.hi && x.hi <= high.lo ? simp_same(s, inst_operand(i, 1)) : NULL;
}

/* One of two known numbers: what converting a pred gives, or a select. */
typedef struct Choice {
    Inst  *p;
    double yes, no;
} Choice;

static bool known_number(const Inst *i, double *v)
{
    const Literal *l = splat_value(i);
    if (!l || l->type != i->shape->type || (!type_is_int(l->type) && !type_is_float(l->type) && l->type != TYPE_PRED))
        return false;
    int64_t whole = type_is_float(l->type) ? 0 : literal_get_s64(l, 0);
    *v = type_is_float(l->type) ? literal_get_f64(l, 0) : (double)whole;
    if (type_is_unsigned_int(l->type) && whole < 0)
        return false;
    return *v == *v && whole >= -(INT64_C(1) << 53) && whole <= INT64_C(1) << 53;
}

static bool is_choice(const Inst *i, Choice *c)
{
    if (i->op == OP_CONVERT && inst_operand(i, 0)->shape->type == TYPE_PRED && (type_is_int(i->shape->type) || type_is_float(i->shape->type))) {
        *c = (Choice){inst_operand(i, 0), 1, 0};
        return !type_is_signed_int(i->shape->type) || type_bits(i->shape->type) > 1;
    }
    if (i->op != OP_SELECT || inst_operand(i, 1)->shape->type != i->shape->type || inst_operand(i, 2)->shape->type != i->shape->type ||
        !known_number(inst_operand(i, 1), &c->yes) || !known_number(inst_operand(i, 2), &c->no))
        return false;
    c->p = inst_operand(i, 0);
    return true;
}

static bool compares(Word w, double a, double b)
{
    switch (w) {
    case CMP_EQ: return a == b;
    case CMP_NE: return a != b;
    case CMP_GE: return a >= b;
    case CMP_GT: return a > b;
    case CMP_LE: return a <= b;
    default: return a < b;
    }
}

/* select(p, 1, 0) != 0 -> p, convert(p) == 0 -> not(p), and so on: whatever is known of both numbers. */
Inst *rule_compare_choice(Simp *s, Inst *i)
{
    Choice c;
    double v;
    Word   w = inst_word(i, ATTR_DIRECTION);
    if (compare_is_total(i) && type_is_float(inst_operand(i, 0)->shape->type))
        return NULL; /* there -0 is below 0 */
    bool left = is_choice(inst_operand(i, 0), &c) && known_number(inst_operand(i, 1), &v);
    if (!left && !(is_choice(inst_operand(i, 1), &c) && known_number(inst_operand(i, 0), &v)))
        return NULL;
    if (!shape_same_dims(c.p->shape, i->shape) || i->shape->layout)
        return NULL;
    bool yes = left ? compares(w, c.yes, v) : compares(w, v, c.yes), no = left ? compares(w, c.no, v) : compares(w, v, c.no);
    if (yes == no)
        return simp_splat(s, i->shape, yes);
    return yes ? simp_same(s, c.p) : simp_new(s, OP_NOT, i->shape, 1, &c.p);
}

/* A select among those of one condition: only one of the inner one's values is ever seen. */
Inst *rule_select_select(Simp *s, Inst *i)
{
    Inst *p = inst_operand(i, 0);
    for (int32_t k = 1; k <= 2; k++) {
        const Inst *inner = inst_operand(i, k);
        if (inner->op != OP_SELECT || inst_operand(inner, 0) != p || inst_operand(inner, k)->shape->type != i->shape->type)
            continue;
        Inst *operands[] = {p, inst_operand(i, 1), inst_operand(i, 2)};
        operands[k] = inst_operand(inner, k);
        return simp_new(s, OP_SELECT, i->shape, 3, operands);
    }
    return NULL;
}

/* ---- gather ---- */

static Inst *zero_start(Simp *s, Type t)
{
    return simp_splat(s, shape_scalar(s->arena, t), 0);
}

/* Element k of the only index vector, as a scalar. */
static Inst *index_element(Simp *s, Inst *indices, int64_t k, int64_t n)
{
    Type         t = indices->shape->type;
    const Shape *scalar = shape_scalar(s->arena, t);
    if (n == 1)
        return simp_reshape(s, scalar, indices);
    Inst      *list = simp_reshape(s, simp_shape(s, t, 1, &n), indices);
    SliceRange one = {k, k + 1, 1};
    return simp_reshape(s, scalar, simp_slice(s, simp_shape(s, t, 1, (int64_t[]){1}), list, &one));
}

/* A gather of one slice is a dynamic-slice: both move a slice that would stick out back into the array. */
Inst *rule_gather_one(Simp *s, Inst *i)
{
    Inst   *x = inst_operand(i, 0), *indices = inst_operand(i, 1);
    Ints    sizes = inst_ints(i, ATTR_SLICE_SIZES), map = inst_ints(i, ATTR_START_INDEX_MAP);
    int32_t rank = x->shape->rank;
    Type    t = indices->shape->type;
    if (map.n == 0 || shape_count(indices->shape) != map.n || inst_ints(i, ATTR_OPERAND_BATCHING_DIMS).n || t == TYPE_U64 ||
        type_bits(t) < 32 || x->shape->layout || i->shape->layout || indices->shape->layout || shape_count(i->shape) <= 0)
        return NULL;
    Inst **operands = ARENA_ARRAY(s->scratch, Inst *, rank + 1);
    operands[0] = x;
    for (int32_t d = 0; d < rank; d++)
        operands[d + 1] = NULL;
    for (int32_t k = 0; k < map.n; k++)
        operands[map.v[k] + 1] = index_element(s, indices, k, map.n);
    for (int32_t d = 0; d < rank; d++)
        if (!operands[d + 1])
            operands[d + 1] = zero_start(s, t);
    Inst *slice = simp_new(s, OP_DYNAMIC_SLICE, simp_shape(s, i->shape->type, rank, sizes.v), rank + 1, operands);
    inst_set_ints(slice, ATTR_DYNAMIC_SLICE_SIZES, sizes);
    return simp_reshape(s, i->shape, slice);
}

/* ---- scatter ---- */

/* Nothing is added to anything. */
Inst *rule_scatter_nothing(Simp *s, Inst *i)
{
    return i->n_operands == 3 && shape_count(inst_operand(i, 2)->shape) == 0 ? simp_same(s, inst_operand(i, 0)) : NULL;
}

/* A scatter makes one operation of elements and updates, or takes one of the two. */
static bool combines(const Inst *scatter)
{
    const Comp *c = inst_callee(scatter, 0);
    const Type  t = scatter->shape->type;
    return c->root->shape->type == t && (c->root->op == OP_PARAMETER || (comp_binary_op(c) != OP_COUNT && comp_param(c, 0)->shape->type == t));
}

/* What such a one makes of whole arrays. */
static Inst *combined(Simp *s, const Inst *scatter, Inst *old, Inst *update)
{
    const Comp *c = inst_callee(scatter, 0);
    Inst       *sides[] = {old, update};
    if (c->root->op == OP_PARAMETER)
        return sides[c->root->param];
    int64_t first = inst_operand(c->root, 0)->param;
    return simp_new(s, comp_binary_op(c), old->shape, 2, (Inst *[]){sides[first], sides[1 - first]});
}

/* All of x is combined with all of the updates: there is one place, which nothing chooses. */
Inst *rule_scatter_whole(Simp *s, Inst *i)
{
    if (i->n_operands != 3 || inst_ints(i, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS).n || inst_ints(i, ATTR_UPDATE_WINDOW_DIMS).n != i->shape->rank ||
        shape_count(i->shape) <= 0 || !shape_equal(inst_operand(i, 0)->shape, i->shape) || !shape_equal(inst_operand(i, 2)->shape, i->shape) || !combines(i))
        return NULL;
    return combined(s, i, inst_operand(i, 0), inst_operand(i, 2));
}

/* One array of elements in the default order, of which the scatter's are of one type with the updates. */
static bool combines_plainly(const Inst *i)
{
    if (i->n_operands != 3 || !combines(i))
        return false;
    const Shape *indices = inst_operand(i, 1)->shape, *update = inst_operand(i, 2)->shape;
    return shape_equal(inst_operand(i, 0)->shape, i->shape) && !i->shape->layout && !indices->layout && type_bits(indices->type) >= 32 && !update->layout &&
           update->type == i->shape->type && shape_count(update) > 0;
}

static bool takes_update(const Inst *scatter)
{
    const Inst *root = inst_callee(scatter, 0)->root;
    return root->op == OP_PARAMETER && root->param == 1;
}

/* The sizes of a window as they are in the operand; false: there are several windows, or batches of them. */
static bool window_of_one(const Inst *i, int64_t *sizes)
{
    const Shape *u = inst_operand(i, 2)->shape;
    Ints         inserted = inst_ints(i, ATTR_INSERTED_WINDOW_DIMS), window = inst_ints(i, ATTR_UPDATE_WINDOW_DIMS);
    int32_t      at = 0;
    if (inst_ints(i, ATTR_INPUT_BATCHING_DIMS).n || shape_count(inst_operand(i, 1)->shape) != inst_ints(i, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS).n)
        return false;
    for (int32_t d = 0; d < i->shape->rank; d++)
        sizes[d] = ints_has(inserted, d) ? 1 : u->dims[window.v[at++]];
    return true;
}

/* The window is within the array wherever it may begin: none is left out. */
static bool places_within(const Inst *i, const int64_t *sizes)
{
    const Inst *indices = inst_operand(i, 1);
    Ints        places = inst_ints(i, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
    bool        apart = indices->op == OP_CONCATENATE && indices->n_operands == places.n, known = indices->op == OP_CONSTANT && !indices->literal->elided;
    for (int32_t k = 0; k < places.n; k++) {
        int64_t  last = i->shape->dims[places.v[k]] - sizes[places.v[k]];
        IntRange r;
        if (known)
            r.lo = r.hi = literal_get_s64(indices->literal, k);
        else if (!int_range(apart ? inst_operand(indices, k) : indices, &r))
            return false;
        if (r.lo < 0 || r.hi > last)
            return false;
    }
    return true;
}

/* Whether a kernel would make y of x, or does, as far as one looks: what is updated is stored. */
static bool is_made_of(Simp *s, const Inst *y, const Inst *x)
{
    enum { MOST = 64 };
    VEC(const Inst *) list = {0};
    vec_push(s->scratch, &list, y);
    for (int32_t at = 0; at < list.n && list.n < MOST; at++) {
        const Inst *i = list.v[at];
        bool        inside = i->op != OP_DYNAMIC_UPDATE_SLICE && (op_has(i->op, F_ELEMENTWISE | F_MOVES) || i->op == OP_REDUCE || i->op == OP_REDUCE_WINDOW || i->op == OP_FUSION || i->op == OP_GET_TUPLE_ELEMENT);
        if (i == x)
            return true;
        for (int32_t k = 0; inside && k < i->n_operands; k++)
            vec_push(s->scratch, &list, inst_operand(i, k));
    }
    return list.n >= MOST;
}

/* One window is what a dynamic-update-slice writes, where no place is outside. Not what a trip of a loop makes of the array itself, neighbours say: in one kernel with
 * that the update would not be in place, and the state be copied. */
Inst *rule_scatter_place(Simp *s, Inst *i)
{
    Inst   *x = inst_operand(i, 0), *indices = inst_operand(i, 1);
    Ints    places = inst_ints(i, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
    int32_t rank = i->shape->rank;
    int64_t *sizes = ARENA_ARRAY(s->scratch, int64_t, rank);
    if (!combines_plainly(i) || places.n == 0 || x->op == OP_BROADCAST || !window_of_one(i, sizes) || !places_within(i, sizes) ||
        (i->comp != i->comp->module->entry && is_made_of(s, inst_operand(i, 2), x)))
        return NULL;
    Inst **operands = ARENA_ARRAY(s->scratch, Inst *, rank + 2), **starts = operands + 2;
    for (int32_t k = 0; k < places.n; k++)
        starts[places.v[k]] = index_element(s, indices, k, places.n);
    for (int32_t d = 0; d < rank; d++)
        if (!starts[d])
            starts[d] = zero_start(s, indices->shape->type);
    const Shape *window = simp_shape(s, i->shape->type, rank, sizes);
    operands[0] = x;
    operands[1] = simp_reshape(s, window, inst_operand(i, 2));
    if (!takes_update(i))
        operands[1] = combined(s, i, simp_dynamic_slice(s, window, x, starts), operands[1]);
    return simp_new(s, OP_DYNAMIC_UPDATE_SLICE, i->shape, rank + 2, operands);
}

/* Of each dimension of a scatter's indices the one of the operand that it is a batch of; -1: a size of 1, or the vector of an index. False: a batch has
 * several places. */
static bool dims_of_indices(const Inst *i, int64_t vector, int64_t *to)
{
    const Shape *indices = inst_operand(i, 1)->shape;
    Ints         batch = inst_ints(i, ATTR_SCATTER_INDICES_BATCHING_DIMS), of = inst_ints(i, ATTR_INPUT_BATCHING_DIMS);
    for (int32_t d = 0; d < indices->rank; d++) {
        to[d] = -1;
        for (int32_t k = 0; k < batch.n; k++)
            if (batch.v[k] == d)
                to[d] = of.v[k];
        if (to[d] < 0 && d != vector && indices->dims[d] != 1)
            return false;
    }
    return true;
}

/* Likewise of the updates, whose windows are whole. */
static bool dims_of_updates(const Inst *i, int64_t vector, const int64_t *of_indices, int64_t *to)
{
    const Shape *u = inst_operand(i, 2)->shape;
    Ints         window = inst_ints(i, ATTR_UPDATE_WINDOW_DIMS), inserted = inst_ints(i, ATTR_INSERTED_WINDOW_DIMS), batch = inst_ints(i, ATTR_INPUT_BATCHING_DIMS);
    int32_t      next = 0, at = 0;
    for (int32_t d = 0; d < u->rank; d++)
        if (ints_has(window, d)) {
            while (ints_has(inserted, next) || ints_has(batch, next))
                next++;
            if (i->shape->dims[next] != u->dims[d])
                return false;
            to[d] = next++;
        } else {
            at += at == vector;
            to[d] = of_indices[at++];
        }
    return true;
}

/* Dimensions that stay (-1: it has size 1 and goes) are in the order of the result's. */
static bool rise(const int64_t *to, int32_t n)
{
    int64_t last = -1;
    for (int32_t d = 0; d < n; d++) {
        if (to[d] >= 0 && to[d] <= last)
            return false;
        last = to[d] >= 0 ? to[d] : last;
    }
    return true;
}

/* x along the dimensions of such a shape that its own are, which rise. */
static Inst *spread(Simp *s, const Shape *shape, Inst *x, const int64_t *to)
{
    int32_t n = 0;
    Ints    dims = scratch_ints(s, x->shape->rank), sizes = scratch_ints(s, x->shape->rank);
    for (int32_t d = 0; d < x->shape->rank; d++) {
        if (to[d] < 0)
            continue;
        *ints_at(sizes, n) = x->shape->dims[d];
        *ints_at(dims, n++) = to[d];
    }
    x = simp_reshape(s, simp_shape(s, x->shape->type, n, sizes.v), x);
    return simp_broadcast(s, simp_shape(s, x->shape->type, shape->rank, shape->dims), x, (Ints){dims.v, n});
}

/* Element k of each index is the place along dimension d. */
static Inst *at_place(Simp *s, const Inst *i, int64_t vector, int32_t k, int64_t d, const int64_t *to)
{
    Inst        *x = inst_operand(i, 1);
    const Shape *whole = x->shape;
    SliceRange  *part = ARENA_ARRAY(s->arena, SliceRange, whole->rank);
    int64_t     *sizes = ARENA_ARRAY(s->scratch, int64_t, whole->rank);
    for (int32_t j = 0; j < whole->rank; j++) {
        part[j] = j == vector ? (SliceRange){k, k + 1, 1} : (SliceRange){0, whole->dims[j], 1};
        sizes[j] = j == vector ? 1 : whole->dims[j];
    }
    if (vector < whole->rank && whole->dims[vector] > 1)
        x = simp_slice(s, simp_shape(s, whole->type, whole->rank, sizes), x, part);
    Inst *place = spread(s, i->shape, x, to);
    Inst *iota = simp_new(s, OP_IOTA, place->shape, 0, NULL);
    inst_set_int(iota, ATTR_IOTA_DIMENSION, d);
    Inst *equal = simp_new(s, OP_COMPARE, simp_shape(s, TYPE_PRED, i->shape->rank, i->shape->dims), 2, (Inst *[]){iota, place});
    inst_set_word(equal, ATTR_DIRECTION, CMP_EQ);
    return equal;
}

/* add-scatter, or add-float-scatter where it runs, scatters it into what it is added to. */
static bool is_scattered_later(const Simp *s, const Inst *i)
{
    return i->n_uses == 1 && i->uses->user->op == OP_ADD && comp_binary_op(inst_callee(i, 0)) == OP_ADD && (s->rounds || type_is_int(i->shape->type));
}

/* Where there was one number, all elements are written anyway. */
Inst *rule_scatter_choice(Simp *s, Inst *i)
{
    const Inst *old = inst_operand(i, 0);
    Ints        places = inst_ints(i, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS), inserted = inst_ints(i, ATTR_INSERTED_WINDOW_DIMS);
    int64_t     vector = inst_int(i, ATTR_INDEX_VECTOR_DIM, 0);
    if (i->n_operands != 3 || places.n < 1 || places.n != inserted.n || shape_count(i->shape) <= 0 || i->shape->layout || is_scattered_later(s, i) ||
        old->op != OP_BROADCAST || !shape_is_scalar(inst_operand(old, 0)->shape) || !shape_equal(old->shape, i->shape) ||
        inst_operand(i, 2)->shape->type != i->shape->type || type_bits(inst_operand(i, 1)->shape->type) < 32 || !combines(i))
        return NULL;
    for (int32_t k = 0; k < places.n; k++)
        if (!ints_has(inserted, places.v[k]))
            return NULL;
    int64_t *of_indices = ARENA_ARRAY(s->scratch, int64_t, inst_operand(i, 1)->shape->rank), *of_updates = ARENA_ARRAY(s->scratch, int64_t, inst_operand(i, 2)->shape->rank);
    if (!dims_of_indices(i, vector, of_indices) || !dims_of_updates(i, vector, of_indices, of_updates) ||
        !rise(of_indices, inst_operand(i, 1)->shape->rank) || !rise(of_updates, inst_operand(i, 2)->shape->rank))
        return NULL;
    Inst *update = spread(s, i->shape, inst_operand(i, 2), of_updates), *there = NULL;
    for (int32_t k = 0; k < places.n; k++) {
        Inst *equal = at_place(s, i, vector, k, places.v[k], of_indices);
        there = there ? simp_new(s, OP_AND, equal->shape, 2, (Inst *[]){there, equal}) : equal;
    }
    Inst *now = combined(s, i, inst_operand(i, 0), update);
    return simp_new(s, OP_SELECT, i->shape, 3, (Inst *[]){there, now, inst_operand(i, 0)});
}

/* ---- constants that count ---- */

/* constant({0, 1, 2, ...}) -> iota, constant({0, s, 2 s, ...}) -> iota * s */
Inst *rule_constant_iota(Simp *s, Inst *i)
{
    int64_t step = literal_step(i->literal);
    if (step <= 0)
        return NULL;
    Inst *iota = simp_new(s, OP_IOTA, i->shape, 0, NULL);
    inst_set_int(iota, ATTR_IOTA_DIMENSION, 0);
    return step == 1 ? iota : simp_new(s, OP_MULTIPLY, i->shape, 2, (Inst *[]){iota, simp_splat(s, i->shape, step)});
}
