/* Manual regions on several partitions. Which piece a device has is a number out of a table; where the pieces go is known.
 *
 *   CUT   padded = pad(whole) with zeros up to the end of the last piece;  piece = dynamic-slice(padded, starts of this partition)
 *   JOIN  GATHER of the pieces;  whole = zeros, each piece written over it, of equal ones the first partition's
 *
 * A join of one piece that all have is a BROADCAST of the first partition's. Source: reference operations 2.3, 19. */
#include "emit/expand_devices.h"

#include <string.h>

#include "ir/custom_call.h"
#include "ir/region.h"

bool region_expands(const Inst *i, Devices on)
{
    const char *target = i->op == OP_CUSTOM_CALL ? inst_string(i, ATTR_CUSTOM_CALL_TARGET) : NULL;
    CallKind    kind = target ? custom_call_kind(target) : CALL_UNKNOWN;
    if (on.partitions == 1 || (kind != CALL_CUT && kind != CALL_JOIN))
        return false;
    Arena *a = arena_new();
    bool   yes = !region_refused(a, i, on);
    arena_free(a);
    return yes;
}

static Place *places_of(const DeviceExpansion *x, int32_t k)
{
    Place *v = ARENA_ARRAY(x->arena, Place, x->on.partitions);
    for (int64_t p = 0; p < x->on.partitions; p++)
        v[p] = region_place(x->arena, x->i, k, x->on, p);
    return v;
}

/* ---- cutting ---- */

/* Where this device's piece starts in dimension d. */
static Inst *start_of(const DeviceExpansion *x, const Place *places, int32_t d)
{
    Ints v = ints_make(x->arena, (int32_t)devices_n(x->on));
    bool same = true;
    for (int32_t k = 0; k < v.n; k++) {
        *ints_at(v, k) = places[k % x->on.partitions].start[d];
        same &= v.v[k] == v.v[0];
    }
    return same ? dev_constant(x, literal_from_s64(TYPE_S32, v.v[0])) : dev_number(x, v);
}

static Inst *cut(const DeviceExpansion *x, int32_t k)
{
    Inst        *whole = inst_operand(x->i, k);
    const Shape *piece = region_piece(x->i, k);
    const Place *places = places_of(x, k);
    int32_t      rank = piece->rank;
    int64_t     *dims = arena_copy(x->arena, whole->shape->dims, (size_t)rank * sizeof *dims);
    Inst       **operands = ARENA_ARRAY(x->arena, Inst *, rank + 1);
    for (int64_t p = 0; p < x->on.partitions; p++)
        for (int32_t d = 0; d < rank; d++)
            if (places[p].start[d] + piece->dims[d] > dims[d])
                dims[d] = places[p].start[d] + piece->dims[d];
    operands[0] = dev_padded(x, whole, dims);
    for (int32_t d = 0; d < rank; d++)
        operands[1 + d] = start_of(x, places, d);
    Inst *y = dev_made(x, OP_DYNAMIC_SLICE, dev_array(x, piece->type, rank, piece->dims), rank + 1, operands, "piece");
    inst_set_ints(y, ATTR_DYNAMIC_SLICE_SIZES, (Ints){piece->dims, rank});
    return y;
}

/* ---- joining ---- */

static bool same_place(const Place *x, const Place *y, int32_t rank)
{
    size_t bytes = (size_t)rank * sizeof *x->start;
    return memcmp(x->start, y->start, bytes) == 0 && memcmp(x->size, y->size, bytes) == 0;
}

static bool is_first(const Place *places, int64_t p, int32_t rank)
{
    for (int64_t q = 0; q < p; q++)
        if (same_place(&places[q], &places[p], rank))
            return false;
    return true;
}

/* Piece p of all, what of it is in the whole array. */
static Inst *piece_of(const DeviceExpansion *x, Inst *all, int64_t p, const Place *place)
{
    int32_t  rank = all->shape->rank - 1;
    int64_t *from = ARENA_ARRAY(x->arena, int64_t, rank + 1), *end = ARENA_ARRAY(x->arena, int64_t, rank + 1);
    from[0] = p;
    end[0] = p + 1;
    memcpy(end + 1, place->size, (size_t)rank * sizeof *end);
    return dev_reshaped(x, dev_slice(x, all, from, end), rank, place->size);
}

static Inst *written(const DeviceExpansion *x, Inst *whole, Inst *piece, const Place *place)
{
    int32_t rank = whole->shape->rank;
    Inst  **operands = ARENA_ARRAY(x->arena, Inst *, rank + 2);
    operands[0] = whole;
    operands[1] = piece;
    for (int32_t d = 0; d < rank; d++)
        operands[2 + d] = dev_constant(x, literal_from_s64(TYPE_S64, place->start[d]));
    return dev_made(x, OP_DYNAMIC_UPDATE_SLICE, whole->shape, rank + 2, operands, "joined");
}

static Inst *join(DeviceExpansion *x, int32_t k)
{
    Inst        *piece = inst_operand(x->i, k);
    const Shape *whole = region_whole(x->i, k);
    const Place *places = places_of(x, k);
    int32_t      rank = whole->rank;
    int64_t     *dims = ARENA_ARRAY(x->arena, int64_t, rank + 1);
    if (shape_same_dims(piece->shape, whole))
        return dev_exchanged(x, EXCHANGE_BROADCAST, piece);
    dims[0] = 1;
    memcpy(dims + 1, piece->shape->dims, (size_t)rank * sizeof *dims);
    Inst *all = dev_exchanged(x, EXCHANGE_GATHER, dev_reshaped(x, piece, rank + 1, dims));
    Inst *zero = dev_zeros(x, shape_scalar(x->arena, whole->type));
    Inst *y = dev_made(x, OP_BROADCAST, dev_array(x, whole->type, rank, whole->dims), 1, &zero, "empty");
    inst_set_ints(y, ATTR_DIMENSIONS, (Ints){NULL, 0});
    for (int64_t p = x->on.partitions; p-- > 0;)
        if (is_first(places, p, rank))
            y = written(x, y, piece_of(x, all, p, &places[p]), &places[p]);
    return y;
}

/* The partitions of each replica. */
static void list_partitions(DeviceExpansion *x)
{
    Ints *v = ARENA_ARRAY(x->arena, Ints, x->on.replicas);
    for (int32_t r = 0; r < x->on.replicas; r++) {
        v[r] = ints_iota(x->arena, (int32_t)x->on.partitions);
        for (int32_t k = 0; k < v[r].n; k++)
            *ints_at(v[r], k) += r * x->on.partitions;
    }
    x->groups = (IntsList){v, (int32_t)x->on.replicas};
    x->n = x->on.partitions;
    x->even = true;
}

void expand_region(Inst *i, Devices on, Map *exchanges)
{
    DeviceExpansion x = {.i = i, .c = i->comp, .before = i, .arena = i->comp->module->arena, .on = on, .exchanges = exchanges};
    Inst          **results = ARENA_ARRAY(x.arena, Inst *, i->n_operands);
    bool            tuple = shape_is_tuple(i->shape);
    list_partitions(&x);
    for (int32_t k = 0; k < i->n_operands; k++) {
        results[k] = region_joins(i) ? join(&x, k) : cut(&x, k);
        results[k] = dev_shaped(&x, results[k], tuple ? i->shape->elems[k] : i->shape);
    }
    inst_replace(i, tuple ? dev_tuple(&x, i->n_operands, results) : results[0]);
    inst_delete(i);
}
