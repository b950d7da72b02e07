/* Groups of participants: the ids of a module's devices, each once, and the sizes that follow from the number in a group.
 * Source: reference operations 16.1, 16.2.
 *
 * Counts of 1 in the header are no promise: single devices' dumps leave them out, so that nothing is compared with them. */
#include "ir/groups.h"
#include "ir/verify_rules.h"

typedef struct Groups {
    IntsList lists;        /* none: one group of all */
    int64_t  devices;      /* ids there should be, 1: not said */
    int64_t  participants; /* of one group, 1: not known */
    bool     flattened;
} Groups;

static bool is_grouped(Op op)
{
    return group_takes_global_ids(op) || op == OP_ALL_TO_ALL || op == OP_RAGGED_ALL_TO_ALL || op == OP_COLLECTIVE_BROADCAST;
}

/* False after a report. */
static bool read_groups(const Verify *v, const Inst *i, Groups *g)
{
    bool        ok;
    int64_t     replicas = v->m->replica_count, partitions = v->m->num_partitions, both;
    GroupMode   mode = group_mode(i);
    if (!size_mul(replicas, partitions, &both))
        return verify_fail(v, i, "%lld replicas of %lld partitions are more devices than can be counted", (long long)replicas,
                           (long long)partitions);
    *g = (Groups){.devices = group_ids(mode, replicas, partitions), .flattened = mode == GROUP_FLATTENED};
    g->lists = group_lists(v->a, i, &ok);
    if (!ok)
        return verify_fail(v, i, "replica_groups names too many devices");
    int64_t factor = mode == GROUP_CROSS_BOTH ? partitions : 1;
    if (!size_mul(g->lists.n ? g->lists.v[0].n : g->devices, factor, &g->participants))
        return verify_fail(v, i, "a group has more participants than can be counted");
    return true;
}

/* Each of 0..n-1 once, n the number of ids. */
static bool check_ids(const Verify *v, const Inst *i, const Groups *g)
{
    int64_t n = 0;
    for (int32_t k = 0; k < g->lists.n; k++)
        n += g->lists.v[k].n;
    bool *seen = ARENA_ARRAY(v->a, bool, n);
    for (int32_t k = 0; k < g->lists.n; k++)
        for (int32_t j = 0; j < g->lists.v[k].n; j++) {
            int64_t id = g->lists.v[k].v[j];
            if (id < 0 || id >= n)
                return verify_fail(v, i, "replica_groups names device %lld, but has %lld ids (all of 0 to %lld must occur)",
                                   (long long)id, (long long)n, (long long)n - 1);
            if (seen[id])
                return verify_fail(v, i, "replica_groups names device %lld twice", (long long)id);
            seen[id] = true;
        }
    if (g->devices > 1 && n != g->devices)
        return verify_fail(v, i, "replica_groups has %lld ids, but there are %lld devices", (long long)n, (long long)g->devices);
    return true;
}

static bool check_lists(const Verify *v, const Inst *i, const Groups *g)
{
    bool equal_sizes = i->op != OP_ALL_REDUCE && i->op != OP_ALL_REDUCE_START;
    if (g->lists.n == 0)
        return !g->flattened || verify_fail(v, i, "use_global_device_ids=true needs replica_groups");
    for (int32_t k = 0; k < g->lists.n; k++) {
        if (g->lists.v[k].n == 0)
            return verify_fail(v, i, "replica_groups has an empty group");
        if (equal_sizes && g->lists.v[k].n != g->lists.v[0].n)
            return verify_fail(v, i, "groups must have one size, got %d and %d", g->lists.v[0].n, g->lists.v[k].n);
    }
    return check_ids(v, i, g);
}

/* big is small times the participants along dimension d, rounded up. */
static void check_ratio(const Verify *v, const Inst *i, const Shape *small, const Shape *big, int64_t d, int64_t n)
{
    int64_t a = small->dims[d], b = big->dims[d];
    int64_t ratio = a == 0 ? (b == 0 ? n : -1) : b / a + (b % a != 0);
    if (n > 1 && ratio != n)
        verify_fail(v, i, "dimension %lld of %s and %s must differ by the %lld participants of a group", (long long)d,
                    verify_text(v, small), verify_text(v, big), (long long)n);
    else if (i->op == OP_REDUCE_SCATTER && a > 0 && b % a != 0)
        verify_fail(v, i, "dimension %lld of %s cannot be cut into parts of %s", (long long)d, verify_text(v, big),
                    verify_text(v, small));
}

static const Shape *result_part(const Shape *s, int32_t k) { return shape_is_tuple(s) ? s->elems[k] : s; }

static void check_resize(const Verify *v, const Inst *i, const Groups *g)
{
    int64_t      d = inst_ints(i, ATTR_DIMENSIONS).v[0];
    const Shape *r = i->op == OP_ALL_GATHER_START ? i->shape->elems[1] : i->shape;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Shape *in = inst_operand(i, k)->shape, *out = result_part(r, k);
        bool         gathers = i->op != OP_REDUCE_SCATTER;
        check_ratio(v, i, gathers ? in : out, gathers ? out : in, d, g->participants);
    }
}

static void check_all_to_all(const Verify *v, const Inst *i, const Groups *g)
{
    Ints         dims = inst_ints(i, ATTR_DIMENSIONS);
    const Shape *s = inst_operand(i, 0)->shape;
    int64_t      n = g->participants;
    if (dims.n == 0) {
        if (n > 1 && i->n_operands != n)
            verify_fail(v, i, "without dimensions, expects an operand for each of %lld participants, has %d", (long long)n,
                        i->n_operands);
        return;
    }
    if (shape_is_dynamic(s))
        verify_fail(v, i, "cannot cut the dynamic %s", verify_text(v, s));
    else if (s->dims[dims.v[0]] % n != 0)
        verify_fail(v, i, "dimension %lld of %s cannot be cut into %lld parts", (long long)dims.v[0], verify_text(v, s),
                    (long long)n);
}

void verify_groups(const Verify *v, const Inst *i)
{
    Groups g;
    if (!is_grouped(i->op) || !read_groups(v, i, &g) || !check_lists(v, i, &g))
        return;
    switch (i->op) {
    case OP_ALL_GATHER:
    case OP_ALL_GATHER_START:
    case OP_REDUCE_SCATTER:
        check_resize(v, i, &g);
        break;
    case OP_ALL_TO_ALL:
        check_all_to_all(v, i, &g);
        break;
    default:
        break;
    }
}
