/* The rule of algsimp about products with one-hot rows, of which each chooses a row:
 *
 *   %hot = f32[m,k] convert(%index [m] == iota)         dot(%hot, %x [k,n])    =>    rows %index of %x
 *
 * What the product shows of all of x must show still. It multiplies each row that is not chosen by 0, which of an infinity or a NaN is NaN: such elements of a column are
 * counted, and there must be no more of them than the chosen one. An index that is no place chooses nothing, which is 0. A sum of zeros is never -0. */
#include "config.h"

#include "ir/numeric.h"
#include "passes/algsimp.h"
#include "passes/expand.h"

enum { LEAST_PLACES = 16, LEAST_CHOICES = 8 }; /* with fewer the product takes no longer than to read x */

typedef struct OneHot {
    Inst   *index;      /* integers, [the free dimensions of the one-hot operand] */
    int64_t places;
    Inst   *x;
    int32_t along, side; /* the dimension of x that is chosen from; which operand x is */
} OneHot;

/* What says of each place whether it is the chosen one, or NULL. */
static const Inst *choice(const Inst *i)
{
    if (i->op != OP_SELECT && i->op != OP_CONVERT)
        return NULL;
    const Inst *p = inst_operand(i, 0);
    if (i->op == OP_CONVERT)
        return p->shape->type == TYPE_PRED ? p : NULL;
    return p->shape->rank == i->shape->rank && splat_is(inst_operand(i, 1), 1) && splat_is(inst_operand(i, 2), 0) ? p : NULL;
}

/* 0, 1, 2, ... along that dimension. */
static bool counts(const Inst *i, int64_t along)
{
    if (i->op == OP_IOTA)
        return inst_int(i, ATTR_IOTA_DIMENSION, 0) == along;
    return is_broadcast(i) && inst_operand(i, 0)->op == OP_IOTA && inst_operand(i, 0)->shape->rank == 1 && dimensions(i).v[0] == along;
}

static Ints sizes_without(Simp *s, const Shape *x, int32_t dim)
{
    Ints sizes = scratch_ints(s, x->rank - 1);
    for (int32_t d = 0; d < sizes.n; d++)
        *ints_at(sizes, d) = x->dims[d + (d >= dim)];
    return sizes;
}

/* The index that a comparison of it with the places along a dimension is made of, with the other dimensions alone. */
static Inst *compared_index(Simp *s, const Inst *compare, int32_t along)
{
    const Shape *all = compare->shape;
    for (int32_t k = 0; k < 2; k++) {
        const Inst *b = inst_operand(compare, k);
        const Ints  dims = dimensions(b);
        if (!counts(inst_operand(compare, 1 - k), along) || !is_broadcast(b) || ints_has(dims, along) || b->shape->layout || inst_operand(b, 0)->shape->layout)
            continue;
        const Ints to = scratch_ints(s, dims.n), sizes = sizes_without(s, all, along);
        for (int32_t d = 0; d < dims.n; d++)
            *ints_at(to, d) = dims.v[d] - (dims.v[d] > along);
        return simp_broadcast(s, simp_shape(s, b->shape->type, sizes.n, sizes.v), inst_operand(b, 0), to);
    }
    return NULL;
}

static bool may_be_chosen(Type t)
{
    return type_is_int(t) ? type_bits(t) >= 8 : t == TYPE_F16 || t == TYPE_BF16 || t == TYPE_F32 || t == TYPE_F64;
}

static bool find_one_hot(Simp *s, const Inst *i, OneHot *h)
{
    static const AttrId contracting_ids[] = {ATTR_LHS_CONTRACTING_DIMS, ATTR_RHS_CONTRACTING_DIMS};
    for (int32_t side = 0; side < 2; side++) {
        const Inst *hot = inst_operand(i, 1 - side), *c = choice(hot);
        Inst       *x = inst_operand(i, side);
        int64_t     along = inst_ints(i, contracting_ids[1 - side]).v[0];
        if (!c || c->op != OP_COMPARE || inst_word(c, ATTR_DIRECTION) != CMP_EQ || c->shape->layout || hot->shape->layout || x->shape->layout)
            continue;
        const Type    t = inst_operand(c, 0)->shape->type;
        const int64_t places = hot->shape->dims[along];
        if (!type_is_int(t) || type_bits(t) < 8 || int_wrap(t, places - 1) != places - 1 || places < LEAST_PLACES ||
            shape_count(hot->shape) / places < LEAST_CHOICES)
            continue;
        *h = (OneHot){compared_index(s, c, (int32_t)along), places, x, (int32_t)inst_ints(i, contracting_ids[side]).v[0], side};
        if (h->index)
            return true;
    }
    return false;
}

static Inst *compare(Simp *s, Inst *x, Inst *y, Word direction)
{
    Inst *c = simp_new(s, OP_COMPARE, shape_with_type(s->arena, x->shape, TYPE_PRED), 2, (Inst *[]){x, y});
    inst_set_word(c, ATTR_DIRECTION, direction);
    return c;
}

/* 1 for each infinity and NaN. */
static Inst *not_finite(Simp *s, Inst *x)
{
    Inst *finite = simp_new(s, OP_IS_FINITE, shape_with_type(s->arena, x->shape, TYPE_PRED), 1, &x);
    Inst *not = simp_new(s, OP_NOT, finite->shape, 1, &finite);
    return simp_new(s, OP_CONVERT, shape_with_type(s->arena, x->shape, TYPE_S32), 1, &not);
}

/* Where the dimensions of the index, or of x without the chosen one, are in the result. */
static Ints in_result(Simp *s, int32_t first, int32_t n)
{
    Ints dims = scratch_ints(s, n);
    for (int32_t k = 0; k < n; k++)
        *ints_at(dims, k) = first + k;
    return dims;
}

/* Rows of x, those at the nearest places where an index is none. */
static Inst *chosen_rows(Simp *s, const OneHot *h, const Shape *shape, Ints offset)
{
    const Shape *x = h->x->shape;
    Ints         sizes = scratch_ints(s, x->rank);
    for (int32_t d = 0; d < x->rank; d++)
        *ints_at(sizes, d) = d == h->along ? 1 : x->dims[d];
    Inst *g = simp_new(s, OP_GATHER, shape, 2, (Inst *[]){h->x, h->index});
    inst_set_ints(g, ATTR_OFFSET_DIMS, offset);
    inst_set_ints(g, ATTR_COLLAPSED_SLICE_DIMS, (Ints){(int64_t[]){h->along}, 1});
    inst_set_ints(g, ATTR_START_INDEX_MAP, (Ints){(int64_t[]){h->along}, 1});
    inst_set_int(g, ATTR_INDEX_VECTOR_DIM, h->index->shape->rank);
    inst_set_ints(g, ATTR_SLICE_SIZES, sizes);
    return g;
}

/* rows, or NaN in columns of x that have more infinities and NaN than the row's own. */
static Inst *with_nan(Simp *s, const OneHot *h, Inst *rows, Ints offset)
{
    Inst *bad = not_finite(s, h->x), *of_row = not_finite(s, rows), *zero = simp_splat(s, shape_scalar(s->arena, TYPE_S32), 0);
    Comp *add = expand_reducer(s->at, OP_ADD, TYPE_S32);
    Ints  sizes = sizes_without(s, h->x->shape, h->along);
    Inst *count = simp_new(s, OP_REDUCE, simp_shape(s, TYPE_S32, sizes.n, sizes.v), 2, (Inst *[]){bad, zero});
    inst_set_ints(count, ATTR_DIMENSIONS, (Ints){(int64_t[]){h->along}, 1});
    inst_set_callees(count, 1, &add);
    Inst *more = compare(s, simp_broadcast(s, of_row->shape, count, offset), of_row, CMP_GT);
    Inst *nan = simp_splat_literal(s, rows->shape, literal_from_f64(rows->shape->type, __builtin_nan("")));
    Inst *sum = simp_new(s, OP_ADD, rows->shape, 2, (Inst *[]){rows, simp_splat(s, rows->shape, 0)});
    return simp_new(s, OP_SELECT, rows->shape, 3, (Inst *[]){more, nan, sum});
}

Inst *rule_dot_one_hot(Simp *s, Inst *i)
{
    const Type t = inst_operand(i, 0)->shape->type, to = i->shape->type;
    OneHot     h;
    if (i->n_operands != 2 || inst_attr(i, ATTR_SPARSITY_CONFIG) || inst_attr(i, ATTR_BLOCK_SCALING_CONFIG) || inst_attr(i, ATTR_ALGORITHM) ||
        inst_ints(i, ATTR_LHS_BATCH_DIMS).n || inst_ints(i, ATTR_LHS_CONTRACTING_DIMS).n != 1 || t != inst_operand(i, 1)->shape->type || !may_be_chosen(t) ||
        !may_be_chosen(to) || type_is_float(t) != type_is_float(to) || i->shape->layout || shape_count(i->shape) <= 0 || !find_one_hot(s, i, &h))
        return NULL;
    const int32_t n_index = h.index->shape->rank, n_x = h.x->shape->rank - 1;
    const Ints    offset = in_result(s, h.side ? n_index : 0, n_x), chooses = in_result(s, h.side ? 0 : n_x, n_index);
    Inst *first = simp_splat(s, h.index->shape, 0), *last = simp_splat(s, h.index->shape, h.places - 1);
    Inst *inside[] = {compare(s, h.index, first, CMP_GE), compare(s, h.index, last, CMP_LE)};
    const Shape *shape = shape_with_type(s->arena, i->shape, t);
    Inst *is_place = simp_broadcast(s, shape_with_type(s->arena, shape, TYPE_PRED), simp_new(s, OP_AND, inside[0]->shape, 2, inside), chooses);
    Inst *rows = simp_new(s, OP_SELECT, shape, 3, (Inst *[]){is_place, chosen_rows(s, &h, shape, offset), simp_splat(s, shape, 0)});
    if (type_is_float(t))
        rows = with_nan(s, &h, rows, offset);
    return t == to ? rows : simp_new(s, OP_CONVERT, i->shape, 1, &rows);
}
