/* The geometry of manual regions. */
#include "ir/region.h"

#include "ir/custom_call.h"

bool region_joins(const Inst *i)
{
    return custom_call_kind(inst_string(i, ATTR_CUSTOM_CALL_TARGET)) == CALL_JOIN;
}

/* Of the array number k among i's results. */
static const Sharding *sharding_of(const Inst *i, int32_t k)
{
    const Attr *a = inst_attr(i, ATTR_SHARDING);
    if (!a || a->value.sharding->kind != SHARDING_TUPLE)
        return a ? a->value.sharding : NULL;
    return k < a->value.sharding->n_elems ? a->value.sharding->elems[k] : NULL;
}

/* The sharding that operand k has outside of the region. An element of a tuple of arrays has the tuple's. */
static const Sharding *outer_sharding(const Inst *i, int32_t k)
{
    if (region_joins(i))
        return sharding_of(i, k);
    const Inst *x = inst_operand(i, k);
    if (x->op != OP_GET_TUPLE_ELEMENT || inst_attr(x, ATTR_SHARDING))
        return sharding_of(x, 0);
    const Inst *tuple = inst_operand(x, 0);
    int32_t     at = 0;
    for (int64_t j = 0; j < inst_int(x, ATTR_INDEX, 0); j++)
        at += shape_leaf_count(tuple->shape->elems[j], true);
    return sharding_of(tuple, at);
}

static const Shape *result_part(const Inst *i, int32_t k)
{
    return shape_is_tuple(i->shape) ? i->shape->elems[k] : i->shape;
}

const Shape *region_whole(const Inst *i, int32_t k)
{
    return region_joins(i) ? result_part(i, k) : inst_operand(i, k)->shape;
}

const Shape *region_piece(const Inst *i, int32_t k)
{
    return region_joins(i) ? inst_operand(i, k)->shape : result_part(i, k);
}

static int64_t ceil_div(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

static const char *piece_refused(Arena *a, const Inst *i, int32_t k, Devices on)
{
    const Shape    *whole = region_whole(i, k), *piece = region_piece(i, k);
    const Sharding *s = outer_sharding(i, k);
    Tiling          t;
    if (!shape_is_array(whole) || !shape_is_array(piece) || whole->type != piece->type || whole->rank != piece->rank)
        return arena_printf(a, "%s is no piece of %s", shape_brief(a, piece), shape_brief(a, whole));
    if (shape_compatible(whole, piece))
        return NULL;
    if (!s)
        return arena_printf(a, "operand %d has no sharding that says how it is cut", k);
    const char *refused = tiling_of(a, s, whole->rank, on.partitions, 0, &t);
    if (refused)
        return arena_printf(a, "%s (--partitions)", refused);
    for (int32_t d = 0; d < whole->rank; d++)
        if (whole->dims[d] != piece->dims[d] && piece->dims[d] != ceil_div(whole->dims[d], t.tiles[d]))
            return arena_printf(a, "dimension %d of %s in %lld tiles does not give %s", d, shape_brief(a, whole), (long long)t.tiles[d],
                                shape_brief(a, piece));
    return NULL;
}

const char *region_refused(Arena *a, const Inst *i, Devices on)
{
    if (i->n_operands == 0 || (shape_is_tuple(i->shape) ? i->shape->n_elems : 1) != i->n_operands)
        return "its results are not as many as its operands";
    for (int32_t k = 0; k < i->n_operands; k++) {
        const char *refused = piece_refused(a, i, k, on);
        if (refused)
            return refused;
    }
    return NULL;
}

Place region_place(Arena *a, const Inst *i, int32_t k, Devices on, int64_t partition)
{
    const Shape *whole = region_whole(i, k), *piece = region_piece(i, k);
    Place        p;
    Tiling       t = {.rank = whole->rank};
    if (!shape_compatible(whole, piece) && tiling_of(a, outer_sharding(i, k), whole->rank, on.partitions, partition, &t))
        die("%%%s was not checked", i->name);
    for (int32_t d = 0; d < whole->rank; d++) {
        bool    cut = whole->dims[d] != piece->dims[d];
        int64_t start = cut ? t.at[d] * piece->dims[d] : 0, left = whole->dims[d] - start;
        p.start[d] = left > 0 ? start : whole->dims[d];
        p.size[d] = left < 0 ? 0 : left < piece->dims[d] ? left : piece->dims[d];
    }
    return p;
}
