/* Rules of algsimp about gathers and scatters of which one coordinate of each place is the number of the place, as x[arange(n), y] has it: their dimensions go along with each other.
 *
 *   %i = s32[n,1] reshape(iota)   %p = s32[n,2] concatenate(%i, %y)   gather(%x [n,m], %p)   =>   gather(%x, %y), operand_batching_dims={0}, start_indices_batching_dims={0}
 *
 * Then there is one place in each batch, which scatter-choice knows, and nobody has to put places together. */
#include "config.h"

#include "passes/algsimp.h"

/* The attributes in which gather and scatter say the same. */
typedef struct Names {
    AttrId map, left_out, of_operand, of_places;
} Names;

static const Names gather_names = { ATTR_START_INDEX_MAP, ATTR_COLLAPSED_SLICE_DIMS, ATTR_OPERAND_BATCHING_DIMS, ATTR_START_INDICES_BATCHING_DIMS };
static const Names scatter_names = { ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, ATTR_INSERTED_WINDOW_DIMS, ATTR_INPUT_BATCHING_DIMS, ATTR_SCATTER_INDICES_BATCHING_DIMS };

/* The dimension along which x is 0, 1, 2, ...; -1: it is something else. */
static int64_t counts_along(Simp *s, const Inst *x)
{
    const Shape *from;
    int64_t      d;
    if (!type_is_int(x->shape->type) || type_bits(x->shape->type) < 32)
        return -1;
    switch (x->op) {
    case OP_IOTA:
        return inst_int(x, ATTR_IOTA_DIMENSION, 0);
    case OP_BROADCAST:
        d = is_broadcast(x) ? counts_along(s, inst_operand(x, 0)) : -1;
        return d < 0 ? -1 : dimensions(x).v[d];
    case OP_RESHAPE:
        from = inst_operand(x, 0)->shape;
        int32_t *where = ARENA_ARRAY(s->scratch, int32_t, from->rank + 1);
        d = shape_unit_dims(from, x->shape, where) ? counts_along(s, inst_operand(x, 0)) : -1;
        return d < 0 ? -1 : where[d];
    default:
        return -1;
    }
}

static Ints without(Simp *s, Ints a, int32_t k)
{
    Ints b = scratch_ints(s, a.n - 1);
    for (int32_t j = 0; j < b.n; j++)
        *ints_at(b, j) = a.v[j + (j >= k)];
    return b;
}

static Ints with(Simp *s, Ints a, int32_t k, int64_t v)
{
    Ints b = scratch_ints(s, a.n + 1);
    for (int32_t j = 0; j < b.n; j++)
        *ints_at(b, j) = j < k ? a.v[j] : j == k ? v : a.v[j - 1];
    return b;
}

static int32_t place_of(Ints a, int64_t v)
{
    int32_t k = 0;
    while (k < a.n && a.v[k] < v)
        k++;
    return k;
}

/* Places without their first coordinate, or without operand k of those that are put together. */
static Inst *fewer(Simp *s, Inst *places, int32_t k, int64_t vector)
{
    const int32_t rank = places->shape->rank;
    Inst        **rest = ARENA_ARRAY(s->scratch, Inst *, places->n_operands);
    int64_t      *sizes = ARENA_ARRAY(s->scratch, int64_t, rank);
    SliceRange   *part = ARENA_ARRAY(s->arena, SliceRange, rank);
    int32_t       n = 0;
    for (int32_t d = 0; d < rank; d++) {
        part[d] = (SliceRange){ d == vector, places->shape->dims[d], 1 };
        sizes[d] = part[d].limit - part[d].start;
    }
    const Shape *shape = simp_shape(s, places->shape->type, rank, sizes);
    if (places->op != OP_CONCATENATE)
        return simp_slice(s, shape, places, part);
    for (int32_t j = 0; j < places->n_operands; j++)
        if (j != k)
            rest[n++] = inst_operand(places, j);
    if (n == 1)
        return rest[0];
    Inst *c = simp_new(s, OP_CONCATENATE, shape, n, rest);
    inst_set_ints(c, ATTR_DIMENSIONS, dimensions(places));
    return c;
}

/* i whose places' coordinate `at`, which counts along their dimension `along`, is a batch; NULL: it cannot be one. */
static Inst *with_batch(Simp *s, const Inst *i, const Names *names, int32_t side, int32_t k, int32_t at, int64_t along)
{
    Inst      *places = inst_operand(i, side);
    const Ints map = inst_ints(i, names->map), left_out = inst_ints(i, names->left_out), of_operand = inst_ints(i, names->of_operand);
    const Ints of_places = inst_ints(i, names->of_places);
    const int64_t vector = inst_int(i, ATTR_INDEX_VECTOR_DIM, 0), d = map.v[at];
    if (along < 0 || along == vector || ints_has(of_places, along) || !ints_has(left_out, d) || inst_operand(i, 0)->shape->dims[d] != places->shape->dims[along])
        return NULL;
    const int32_t to = place_of(of_operand, d);
    Inst        **operands = ARENA_ARRAY(s->scratch, Inst *, i->n_operands);
    for (int32_t o = 0; o < i->n_operands; o++)
        operands[o] = inst_operand(i, o);
    operands[side] = fewer(s, places, k, vector);
    Inst *r = simp_like(s, i, i->shape, operands);
    inst_set_ints(r, names->map, without(s, map, at));
    inst_set_ints(r, names->left_out, without(s, left_out, place_of(left_out, d)));
    inst_set_ints(r, names->of_operand, with(s, of_operand, to, d));
    inst_set_ints(r, names->of_places, with(s, of_places, to, along));
    return r;
}

static Inst *find_batch(Simp *s, const Inst *i, const Names *names, int32_t side)
{
    const Inst   *places = inst_operand(i, side);
    const int64_t vector = inst_int(i, ATTR_INDEX_VECTOR_DIM, 0);
    Inst         *r = NULL;
    if (inst_ints(i, names->map).n < 2)
        return NULL;
    if (places->op != OP_CONCATENATE)
        return with_batch(s, i, names, side, 0, 0, counts_along(s, places));
    for (int32_t k = 0, at = 0; dimensions(places).v[0] == vector && k < places->n_operands && !r; k++) {
        const Inst *part = inst_operand(places, k);
        const int32_t width = (int32_t)part->shape->dims[vector];
        r = width == 1 ? with_batch(s, i, names, side, k, at, counts_along(s, part)) : NULL;
        at += width;
    }
    return r;
}

Inst *rule_gather_batch(Simp *s, Inst *i)
{
    return find_batch(s, i, &gather_names, 1);
}

Inst *rule_scatter_batch(Simp *s, Inst *i)
{
    return find_batch(s, i, &scatter_names, i->n_operands / 2);
}
