/* Collectives: channels, source-target pairs, groups of participants and the sizes that follow from them.
 * Source: reference operations 16. */
#include "ir/verify_rules.h"

static bool has_channel(const Inst *i) { return inst_attr(i, ATTR_CHANNEL_ID) != NULL; }

static void check_channel(const Verify *v, const Inst *i)
{
    int64_t id = inst_int(i, ATTR_CHANNEL_ID, 1);
    if ((i->op == OP_ALL_REDUCE || i->op == OP_ALL_REDUCE_START) && id <= 0)
        verify_fail(v, i, "channel_id must be above 0, got %lld", (long long)id);
    if (inst_bool(i, ATTR_USE_GLOBAL_DEVICE_IDS) && !has_channel(i))
        verify_fail(v, i, "use_global_device_ids=true needs a channel_id");
}

/* One end of the pairs: no device more than so many times; devices beyond the module's are wrong when it says how many there are. */
static bool check_ends(const Verify *v, const Inst *i, const IntsList *pairs, int end, int64_t devices, int32_t most)
{
    const char *what = end == 0 ? "source" : "target";
    Map         seen = map_new(v->a);
    for (int32_t k = 0; k < pairs->n; k++) {
        int64_t  id = pairs->v[k].v[end];
        int32_t *times;
        if (id < 0 || (devices > 1 && id >= devices))
            return verify_fail(v, i, "%s %lld is out of range for %lld devices", what, (long long)id, (long long)devices);
        times = map_get_u64(&seen, (uint64_t)id);
        if (!times) {
            times = ARENA_ARRAY(v->a, int32_t, 1);
            *times = 0;
            map_put_u64(&seen, (uint64_t)id, times);
        }
        if (++*times > most)
            return most == 1 ? verify_fail(v, i, "%lld is the %s of two pairs", (long long)id, what)
                             : verify_fail(v, i, "%lld is the %s of more than %d pairs", (long long)id, what, most);
    }
    return true;
}

/* Where a buffer is read or written: a tuple of as many numbers as it has dimensions, or a tuple of such tuples. */
static bool check_places(const Verify *v, const Inst *i, const Shape *buffer, const Shape *places)
{
    if (!shape_is_tuple(places))
        return verify_fail(v, i, "the places of %s must be a tuple, not %s", verify_text(v, buffer), verify_text(v, places));
    int32_t tuples = 0;
    for (int32_t k = 0; k < places->n_elems; k++)
        tuples += shape_is_tuple(places->elems[k]);
    bool ok = tuples == places->n_elems || (tuples == 0 && places->n_elems == buffer->rank);
    for (int32_t k = 0; k < places->n_elems && ok && tuples; k++)
        ok = places->elems[k]->n_elems == buffer->rank;
    return ok || verify_fail(v, i, "the places of %s must have one number per dimension, got %s", verify_text(v, buffer), verify_text(v, places));
}

/* (in, out, places in in, places in out): arrays, or tuples of as many. */
static bool check_in_place(const Verify *v, const Inst *i)
{
    const Shape *buffers[] = {inst_operand(i, 0)->shape, inst_operand(i, 1)->shape};
    if (shape_is_array(buffers[0]) && shape_is_array(buffers[1]))
        return check_places(v, i, buffers[0], inst_operand(i, 2)->shape) && check_places(v, i, buffers[1], inst_operand(i, 3)->shape);
    if (!shape_is_tuple(buffers[0]) || !shape_is_tuple(buffers[1]) || buffers[0]->n_elems != buffers[1]->n_elems)
        return verify_fail(v, i, "cannot move parts of %s into %s", verify_text(v, buffers[0]), verify_text(v, buffers[1]));
    for (int32_t b = 0; b < 2; b++) {
        const Shape *places = inst_operand(i, 2 + b)->shape;
        if (!shape_is_tuple(places) || places->n_elems != buffers[b]->n_elems)
            return verify_fail(v, i, "expects places for each of %s, got %s", verify_text(v, buffers[b]), verify_text(v, places));
        for (int32_t k = 0; k < places->n_elems; k++)
            if (!check_places(v, i, buffers[b]->elems[k], places->elems[k]))
                return false;
    }
    return true;
}

/* How many pairs may name one device: in place as many as there are places. */
static int32_t most_pairs(const Inst *i)
{
    const Shape *places = inst_operand(i, 2)->shape;
    if (shape_is_tuple(inst_operand(i, 0)->shape))
        return places->n_elems ? places->elems[0]->n_elems : 1;
    return places->n_elems;
}

static void check_pairs(const Verify *v, const Inst *i)
{
    const IntsList *pairs = inst_attr(i, ATTR_SOURCE_TARGET_PAIRS)->value.lists;
    int64_t         devices = has_channel(i) ? v->m->num_partitions : v->m->replica_count;
    for (int32_t k = 0; k < pairs->n; k++)
        if (pairs->v[k].n != 2) {
            verify_fail(v, i, "source_target_pairs must be pairs, entry %d has %d numbers", k, pairs->v[k].n);
            return;
        }
    bool in_place = inst_attr(i, ATTR_SLICE_SIZES) && i->n_operands == 4;
    if (in_place && !check_in_place(v, i))
        return;
    int32_t most = in_place ? most_pairs(i) : 1;
    if (check_ends(v, i, pairs, 0, devices, most))
        check_ends(v, i, pairs, 1, devices, most);
}

void verify_collective(const Verify *v, const Inst *i)
{
    if (!op_has(i->op, F_COLLECTIVE))
        return;
    check_channel(v, i);
    verify_groups(v, i);
    if (i->op == OP_COLLECTIVE_PERMUTE || i->op == OP_COLLECTIVE_PERMUTE_START)
        check_pairs(v, i);
}
