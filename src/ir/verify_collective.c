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

/* One end of the pairs: no device twice; devices beyond the module's are wrong when it says how many there are. */
static bool check_ends(const Verify *v, const Inst *i, const IntsList *pairs, int end, int64_t devices)
{
    const char *what = end == 0 ? "source" : "target";
    Map         seen = map_new(v->a);
    for (int32_t k = 0; k < pairs->n; k++) {
        int64_t id = pairs->v[k].v[end];
        if (id < 0 || (devices > 1 && id >= devices))
            return verify_fail(v, i, "%s %lld is out of range for %lld devices", what, (long long)id, (long long)devices);
        if (map_get_u64(&seen, (uint64_t)id))
            return verify_fail(v, i, "%lld is the %s of two pairs", (long long)id, what);
        map_put_u64(&seen, (uint64_t)id, &seen);
    }
    return true;
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
    if (check_ends(v, i, pairs, 0, devices))
        check_ends(v, i, pairs, 1, devices);
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
