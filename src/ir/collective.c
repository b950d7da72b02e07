/* Ids have devices, sizes fit how many there are. */
#include "ir/collective.h"

static bool is_permute(Op op)
{
    return op == OP_COLLECTIVE_PERMUTE || op == OP_COLLECTIVE_PERMUTE_START;
}

static bool is_done(Op op)
{
    return op == OP_ALL_REDUCE_DONE || op == OP_ALL_GATHER_DONE || op == OP_COLLECTIVE_PERMUTE_DONE;
}

static const char *id_name(GroupMode mode)
{
    return mode == GROUP_FLATTENED ? "device" : mode == GROUP_CROSS_PARTITION ? "partition" : "replica";
}

/* An id that there is no device for. */
static const char *too_few(Arena *a, const char *what, int64_t id, GroupMode mode, Devices on)
{
    static const char *const options[] = {[GROUP_CROSS_REPLICA] = "--replicas", [GROUP_CROSS_BOTH] = "--replicas",
                                          [GROUP_CROSS_PARTITION] = "--partitions", [GROUP_FLATTENED] = "--replicas, --partitions"};
    if (devices_n(on) == 1)
        return "needs more devices than one (--replicas, --partitions)";
    long long n = group_ids(mode, on.replicas, on.partitions);
    return arena_printf(a, "names %s %lld in its %s, but there %s %lld (%s)", id_name(mode), (long long)id, what, n == 1 ? "is" : "are", n,
                        options[mode]);
}

/* Every id has a device, and every device is in a group, but for broadcasts. */
static const char *groups_refused(Arena *a, const Inst *i, IntsList lists, Devices on)
{
    GroupMode mode = group_mode(i);
    int64_t   have = group_ids(mode, on.replicas, on.partitions), named = 0;
    for (int32_t k = 0; k < lists.n; k++) {
        named += lists.v[k].n;
        for (int32_t j = 0; j < lists.v[k].n; j++)
            if (lists.v[k].v[j] < 0 || lists.v[k].v[j] >= have)
                return too_few(a, "replica_groups", lists.v[k].v[j], mode, on);
    }
    if (lists.n > 0 && named < have && i->op != OP_COLLECTIVE_BROADCAST)
        return arena_printf(a, "has %lld ids in its replica_groups, but there are %lld %ss (%s)", (long long)named, (long long)have, id_name(mode),
                            mode == GROUP_CROSS_PARTITION ? "--partitions" : mode == GROUP_FLATTENED ? "--replicas, --partitions" : "--replicas");
    return NULL;
}

static const char *pairs_refused(Arena *a, const Inst *i, Devices on)
{
    const IntsList *pairs = inst_attr(i, ATTR_SOURCE_TARGET_PAIRS)->value.lists;
    GroupMode       mode = group_mode(i);
    int64_t         have = group_ids(mode, on.replicas, on.partitions);
    for (int32_t k = 0; k < pairs->n; k++)
        for (int32_t j = 0; j < 2; j++)
            if (pairs->v[k].v[j] < 0 || pairs->v[k].v[j] >= have)
                return too_few(a, "source_target_pairs", pairs->v[k].v[j], mode, on);
    return NULL;
}

const Shape *collective_part(const Shape *s, int32_t k)
{
    return shape_is_tuple(s) ? s->elems[k] : s;
}

const Shape *collective_given(const Inst *i)
{
    return i->op == OP_ALL_GATHER_START || i->op == OP_COLLECTIVE_PERMUTE_START ? i->shape->elems[1] : i->shape;
}

static bool equal_rows(const Shape *a, const Shape *b)
{
    bool same = a->rank == b->rank;
    for (int32_t d = 1; d < a->rank && same; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

/* Do the shapes fit n participants? */
static bool sizes_fit_group(const Inst *i, int64_t n)
{
    Ints    dims = inst_ints(i, ATTR_DIMENSIONS);
    int64_t whole;
    switch (i->op) {
    case OP_ALL_GATHER: case OP_ALL_GATHER_START: case OP_REDUCE_SCATTER:
        for (int32_t k = 0; k < i->n_operands; k++) {
            int64_t in = inst_operand(i, k)->shape->dims[dims.v[0]], out = collective_part(collective_given(i), k)->dims[dims.v[0]];
            bool    gathers = i->op != OP_REDUCE_SCATTER;
            if (!size_mul(gathers ? in : out, n, &whole) || whole != (gathers ? out : in))
                return false;
        }
        return true;
    case OP_ALL_TO_ALL:
        return dims.n > 0 ? inst_operand(i, 0)->shape->dims[dims.v[0]] % n == 0 : i->n_operands == n;
    case OP_RAGGED_ALL_TO_ALL:
        return inst_operand(i, 2)->shape->dims[0] == n;
    default:
        return true;
    }
}

static const char *sizes_refused_for(Arena *a, const Inst *i, IntsList lists, Devices on)
{
    GroupMode mode = group_mode(i);
    int64_t   each = mode == GROUP_CROSS_BOTH ? on.partitions : 1, all = group_ids(mode, on.replicas, on.partitions);
    for (int32_t k = 0; k < (lists.n > 0 ? lists.n : 1); k++) {
        int64_t n = each * (lists.n > 0 ? lists.v[k].n : all);
        if (sizes_fit_group(i, n))
            continue;
        if (devices_n(on) == 1)
            return "needs more devices than one (--replicas, --partitions)";
        return arena_printf(a, "has sizes that do not fit the %lld participants of a group (--replicas, --partitions)", (long long)n);
    }
    return NULL;
}

static const char *grouped_refused(Arena *a, const Inst *i, Devices on)
{
    bool        ok;
    IntsList    lists = group_lists(a, i, &ok);
    if (!ok)
        return "names too many devices in its replica_groups";
    const char *refused = groups_refused(a, i, lists, on);
    return refused ? refused : sizes_refused_for(a, i, lists, on);
}

const char *collective_refused(Arena *a, const Inst *i, Devices on)
{
    if (i->op == OP_RAGGED_ALL_TO_ALL && !equal_rows(inst_operand(i, 0)->shape, i->shape))
        return "moves rows between arrays whose rows differ";
    if (is_done(i->op))
        return NULL;
    return is_permute(i->op) ? pairs_refused(a, i, on) : grouped_refused(a, i, on);
}
