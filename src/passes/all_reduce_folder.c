/* all-reduce-folder - two exchanges one after the other are one over more devices.
 *
 *   %a = f32[8] all-reduce(%x), replica_groups={{0,1},{2,3}}, to_apply=%add
 *   %b = f32[8] all-reduce(%a), replica_groups={{0,2},{1,3}}, to_apply=%add
 *     =>
 *   %b = f32[8] all-reduce(%x), replica_groups={{0,1,2,3}}, to_apply=%add
 *
 * The devices of a second group are each of another first group, and all devices of these first groups meet the same ones: then every device counts
 * once. Floats are added up in another order, so {exact} takes only integers and maxima, minima, and, or. */
#include "config.h"

#include "ir/attr_rare.h"
#include "ir/groups.h"
#include "passes/combine.h"
#include "passes/expand.h"
#include "passes/util.h"

enum { MAX_IDS = 1024 };

/* The group that has the id, -1. */
static int32_t group_of(IntsList lists, int64_t id)
{
    for (int32_t k = 0; k < lists.n; k++)
        if (ints_has(lists.v[k], id))
            return k;
    return -1;
}

/* The first groups that the devices of `second` are in, each once; n 0: one is met twice, or a device is in none. */
static Ints first_groups(Arena *a, IntsList first, Ints second)
{
    Ints met = ints_make(a, second.n);
    for (int32_t k = 0; k < second.n; k++) {
        int64_t g = group_of(first, second.v[k]);
        if (g < 0 || ints_has((Ints){met.v, k}, g))
            return (Ints){NULL, 0};
        *ints_at(met, k) = g;
    }
    return met;
}

static bool same_set(Ints a, Ints b)
{
    bool same = a.n == b.n;
    for (int32_t k = 0; same && k < a.n; k++)
        same = ints_has(b, a.v[k]);
    return same;
}

/* The devices of these first groups, every one of which meets the same first groups in its second one; n 0: not every one does. */
static Ints joined(Arena *a, Arena *scratch, IntsList first, IntsList second, Ints met)
{
    int32_t n = 0, size = 0;
    for (int32_t k = 0; k < met.n; k++)
        size += first.v[met.v[k]].n;
    Ints all = ints_make(a, size);
    for (int32_t k = 0; k < met.n; k++)
        for (int32_t j = 0; j < first.v[met.v[k]].n; j++) {
            int32_t s = group_of(second, first.v[met.v[k]].v[j]);
            if (s < 0 || !same_set(met, first_groups(scratch, first, second.v[s])))
                return (Ints){NULL, 0};
            *ints_at(all, n++) = first.v[met.v[k]].v[j];
        }
    return all;
}

static bool is_small(IntsList lists)
{
    int64_t n = 0;
    for (int32_t k = 0; k < lists.n; k++)
        n += lists.v[k].n;
    return lists.n > 0 && n <= MAX_IDS;
}

/* NULL: they do not join. */
static const ReplicaGroups *joined_groups(const Inst *outer, const Inst *inner, Arena *scratch)
{
    bool     good[2];
    Arena   *a = outer->comp->module->arena;
    IntsList first = group_lists(scratch, inner, &good[0]), second = group_lists(scratch, outer, &good[1]);
    if (!good[0] || !good[1] || group_mode(outer) != group_mode(inner) || group_mode(outer) == GROUP_CROSS_BOTH || !is_small(first) || !is_small(second))
        return NULL;
    Ints   *groups = ARENA_ARRAY(a, Ints, second.n);
    int32_t n = 0;
    for (int32_t k = 0; k < second.n; k++) {
        Ints met = first_groups(scratch, first, second.v[k]);
        Ints all = met.n ? joined(a, scratch, first, second, met) : met;
        if (!all.n)
            return NULL;
        if (group_of((IntsList){groups, n}, all.v[0]) < 0)
            groups[n++] = all;
    }
    ReplicaGroups *g = ARENA_NEW(a, ReplicaGroups);
    *g = (ReplicaGroups){.version = GROUPS_LISTS, .lists = {groups, n}};
    return g;
}

static bool is_plain(const Inst *i)
{
    return i->op == OP_ALL_REDUCE && i->n_operands == 1 && inst_is_free(i) && shape_equal(i->shape, inst_operand(i, 0)->shape);
}

static Inst *fold(PassCtx *cx, Inst *i)
{
    Inst *inner = i->n_operands ? inst_operand(i, 0) : NULL;
    if (!is_plain(i) || !is_plain(inner) || inner->n_uses != 1)
        return NULL;
    Op op = comp_binary_op(inst_callee(i, 0));
    if (op == OP_COUNT || !op_has(op, F_COMMUTES) || comp_binary_op(inst_callee(inner, 0)) != op ||
        (pass_arg_is(cx, "exact") && !reduces_exactly(op, i->shape->type)))
        return NULL;
    const ReplicaGroups *groups = joined_groups(i, inner, cx->scratch);
    if (!groups)
        return NULL;
    Inst *x = inst_operand(inner, 0), *r = expand_like(i, i->shape, 1, &x);
    inst_set_attr(r, (Attr){.id = ATTR_REPLICA_GROUPS, .value.groups = groups});
    return r;
}

bool pass_all_reduce_folder(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, fold);
}
