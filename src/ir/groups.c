/* Ids of groups become devices. */
#include "ir/groups.h"

#include "ir/attr_rare.h"

bool group_takes_global_ids(Op op)
{
    switch (op) {
    case OP_ALL_GATHER:
    case OP_ALL_GATHER_START:
    case OP_ALL_REDUCE:
    case OP_ALL_REDUCE_START:
    case OP_REDUCE_SCATTER:
    case OP_COLLECTIVE_REDUCE:
        return true;
    default:
        return false;
    }
}

GroupMode group_mode(const Inst *i)
{
    if (inst_bool(i, ATTR_USE_GLOBAL_DEVICE_IDS))
        return GROUP_FLATTENED;
    if (!inst_attr(i, ATTR_CHANNEL_ID))
        return GROUP_CROSS_REPLICA;
    return group_takes_global_ids(i->op) ? GROUP_CROSS_BOTH : GROUP_CROSS_PARTITION;
}

IntsList group_lists(Arena *a, const Inst *i, bool *ok)
{
    const Attr *groups = inst_attr(i, ATTR_REPLICA_GROUPS);
    *ok = true;
    return groups ? replica_groups_lists(a, groups->value.groups, ok) : (IntsList){NULL, 0};
}

int64_t group_ids(GroupMode mode, int64_t replicas, int64_t partitions)
{
    switch (mode) {
    case GROUP_CROSS_REPLICA:
    case GROUP_CROSS_BOTH:
        return replicas;
    case GROUP_CROSS_PARTITION:
        return partitions;
    case GROUP_FLATTENED:
        return replicas * partitions;
    }
    die("group_ids: a mode without a rule");
}

/* The list that has id; without lists all n ids. */
static Ints list_of(Arena *a, IntsList lists, int64_t n, int64_t id)
{
    if (lists.n == 0)
        return ints_iota(a, (int32_t)n);
    for (int32_t k = 0; k < lists.n; k++)
        if (ints_has(lists.v[k], id))
            return lists.v[k];
    return (Ints){NULL, 0};
}

Ints group_devices(Arena *a, GroupMode mode, IntsList lists, int64_t replicas, int64_t partitions, int64_t device)
{
    int64_t replica = device / partitions, partition = device % partitions, n = group_ids(mode, replicas, partitions);
    int64_t each = mode == GROUP_CROSS_BOTH ? partitions : 1;
    int64_t id = mode == GROUP_FLATTENED ? device : mode == GROUP_CROSS_PARTITION ? partition : replica;
    Ints    ids = list_of(a, lists, n, id), devices = ints_make(a, (int32_t)(ids.n * each));
    for (int32_t k = 0; k < devices.n; k++) {
        int64_t v = ids.v[k / each];
        switch (mode) {
        case GROUP_CROSS_REPLICA: v = v * partitions + partition; break;
        case GROUP_CROSS_PARTITION: v = replica * partitions + v; break;
        case GROUP_CROSS_BOTH: v = v * partitions + k % each; break;
        case GROUP_FLATTENED: break;
        }
        *ints_at(devices, k) = v;
    }
    return devices;
}
