/* all-reduce-splitter - a sum over more devices than it is cut into parts for: first the parts, then the sums of equal parts.
 *
 *   %r = f32[8] all-reduce(%x), replica_groups={{0,1,2,3}}, to_apply=%add
 *   %s = f32[4] dynamic-slice(%r, %o)                                                devices 0 and 2 take the first half, 1 and 3 the second one
 *     =>
 *   %r = f32[8] all-reduce(%x), replica_groups={{0,1},{2,3}}, to_apply=%add
 *   %p = f32[4] dynamic-slice(%r, %o)
 *   %s = f32[4] all-reduce(%p), replica_groups={{0,2},{1,3}}, to_apply=%add
 *
 * The first exchange and the slice are what reduce-scatter-creator looks for, and the second one has as many elements as are wanted. As many devices of
 * each group take each part; nobody else needs the whole sum. Floats are added up in another order then, so {exact} takes only integers and maxima,
 * minima, and, or. */
#include "config.h"

#include "ir/attr_rare.h"
#include "ir/groups.h"
#include "passes/combine.h"
#include "passes/expand.h"
#include "passes/own_part.h"
#include "passes/util.h"

static bool is_whole(const Inst *r)
{
    return r->op == OP_ALL_REDUCE && r->n_operands == 1 && r->n_uses == 1 && inst_is_free(r) && shape_equal(r->shape, inst_operand(r, 0)->shape) &&
           !r->comp->async_wrapped;
}

/* The j-th device of a group that takes this part, -1. */
static int64_t taker(Ints group, Ints numbers, int64_t part, int32_t j)
{
    for (int32_t k = 0; k < group.n; k++)
        if (numbers.v[k] == part && j-- == 0)
            return group.v[k];
    return -1;
}

/* Devices that take all parts between them, as many groups as take each of them: first, and those that take the same: second. */
static bool split_group(Arena *a, Ints group, Ints numbers, int32_t parts, Ints *first, Ints *second)
{
    int32_t each = group.n / parts;
    for (int32_t j = 0; j < each; j++)
        first[j] = ints_make(a, parts);
    for (int32_t p = 0; p < parts; p++) {
        second[p] = ints_make(a, each);
        for (int32_t j = 0; j < each; j++) {
            int64_t id = taker(group, numbers, p, j);
            if (id < 0)
                return false;
            *ints_at(first[j], p) = *ints_at(second[p], j) = id;
        }
    }
    return true;
}

static const ReplicaGroups *lists_of(Arena *a, const Ints *v, int32_t n)
{
    ReplicaGroups *g = ARENA_NEW(a, ReplicaGroups);
    *g = (ReplicaGroups){.version = GROUPS_LISTS, .lists = {v, n}};
    return g;
}

/* Groups of the two exchanges; false: the parts are not as many. */
static bool split_groups(Arena *a, IntsList groups, IntsList numbers, int64_t parts, const ReplicaGroups *both[2])
{
    int32_t n = 0, m = 0, most = 0;
    for (int32_t g = 0; g < groups.n; g++)
        most += groups.v[g].n;
    Ints *first = ARENA_ARRAY(a, Ints, most), *second = ARENA_ARRAY(a, Ints, most);
    for (int32_t g = 0; g < groups.n; g++) {
        if (parts < 2 || groups.v[g].n % parts || groups.v[g].n == parts || !split_group(a, groups.v[g], numbers.v[g], (int32_t)parts, &first[n], &second[m]))
            return false;
        n += groups.v[g].n / (int32_t)parts;
        m += (int32_t)parts;
    }
    both[0] = lists_of(a, first, n);
    both[1] = lists_of(a, second, m);
    return true;
}

static Inst *exchanged(Inst *at, const Inst *like, const Shape *shape, Inst *x, const ReplicaGroups *groups)
{
    Inst *r = expand_op(at, OP_ALL_REDUCE, shape, 1, &x);
    inst_take_attrs(r, like);
    inst_set_attr(r, (Attr){.id = ATTR_REPLICA_GROUPS, .value.groups = groups});
    inst_set_callees(r, 1, like->callees);
    return r;
}

static Inst *split(PassCtx *cx, Inst *i)
{
    const Inst *r = i->op == OP_DYNAMIC_SLICE ? inst_operand(i, 0) : NULL;
    if (!r || !is_whole(r) || i->shape->layout)
        return NULL;
    Op op = comp_binary_op(inst_callee(r, 0));
    if (op == OP_COUNT || !op_has(op, F_COMMUTES) || (pass_arg_is(cx, "exact") && !reduces_exactly(op, r->shape->type)))
        return NULL;
    IntsList numbers;
    bool     good;
    int32_t  dim = own_part_numbers(cx->scratch, i, r, &numbers);
    const ReplicaGroups *groups[2];
    if (dim < 0 || !split_groups(i->comp->module->arena, group_lists(cx->scratch, r, &good), numbers, r->shape->dims[dim] / i->shape->dims[dim], groups))
        return NULL;
    Inst **x = ARENA_ARRAY(cx->scratch, Inst *, i->n_operands);
    x[0] = exchanged(i, r, r->shape, inst_operand(r, 0), groups[0]);
    for (int32_t k = 1; k < i->n_operands; k++)
        x[k] = inst_operand(i, k);
    return exchanged(i, r, i->shape, expand_like(i, i->shape, i->n_operands, x), groups[1]);
}

bool pass_all_reduce_splitter(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, split);
}
