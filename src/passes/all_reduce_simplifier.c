/* all-reduce-simplifier - exchanges with nobody, or of what all have already.
 *
 *   %r = f32[4] all-reduce(%x), replica_groups={{0},{1}}, to_apply=%add                        =>        %x
 *   %s = f32[4] all-reduce(%x), replica_groups={{0,1}}, to_apply=%max
 *   %t = f32[4] all-reduce(%s), replica_groups={{0,1}}, to_apply=%max                          =>        %s
 *
 * The first for all-reduce, all-gather, reduce-scatter and all-to-all of groups that are written as one device each. The second for maximum, minimum, and, or,
 * of which a value that is the same on all devices of the group makes itself: constants, results of an all-reduce or all-gather over the same
 * groups, and what is computed of these alone. Sums of such values are left: to multiply rounds otherwise. */
#include "config.h"

#include "ir/groups.h"
#include "passes/pass.h"
#include "passes/util.h"

enum { MAX_LOOKED_AT = 64 };

static bool is_alone(const Inst *i, Arena *scratch)
{
    bool     good;
    IntsList lists = group_lists(scratch, i, &good);
    bool     alone = good && lists.n > 0 && group_mode(i) != GROUP_CROSS_BOTH;
    for (int32_t k = 0; alone && k < lists.n; k++)
        alone = lists.v[k].n == 1;
    return alone && i->n_operands == 1 && shape_equal(i->shape, inst_operand(i, 0)->shape);
}

static bool same_groups(const Inst *a, const Inst *b)
{
    static const AttrId ids[] = {ATTR_REPLICA_GROUPS, ATTR_USE_GLOBAL_DEVICE_IDS};
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
        const Attr *x = inst_attr(a, ids[k]), *y = inst_attr(b, ids[k]);
        if (!x != !y || (x && !attr_value_equal(x, y)))
            return false;
    }
    return group_mode(a) == group_mode(b);
}

/* Whether i is the same on all devices of a group of r. */
static bool is_replicated(const Inst *i, const Inst *r, int *left)
{
    if (--*left < 0)
        return false;
    if (i->op == OP_ALL_REDUCE || i->op == OP_ALL_GATHER)
        return same_groups(i, r);
    if (i->op == OP_GET_TUPLE_ELEMENT)
        return inst_operand(i, 0)->op != OP_PARAMETER && is_replicated(inst_operand(i, 0), r, left);
    if (!inst_is_value(i) || i->n_callees || i->op == OP_CUSTOM_CALL || i->op == OP_PARTITION_ID || i->op == OP_REPLICA_ID)
        return false;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (!is_replicated(inst_operand(i, k), r, left))
            return false;
    return true;
}

static bool keeps_what_is_equal(const Inst *r)
{
    Op op = comp_binary_op(inst_callee(r, 0));
    return op == OP_MAXIMUM || op == OP_MINIMUM || op == OP_AND || op == OP_OR;
}

static bool gives_operand(const Inst *i, Arena *scratch)
{
    int left = MAX_LOOKED_AT;
    if ((i->op != OP_ALL_REDUCE && i->op != OP_ALL_GATHER && i->op != OP_REDUCE_SCATTER && i->op != OP_ALL_TO_ALL) || !inst_is_free(i))
        return false;
    if (is_alone(i, scratch))
        return true;
    return i->op == OP_ALL_REDUCE && i->n_operands == 1 && shape_equal(i->shape, inst_operand(i, 0)->shape) && keeps_what_is_equal(i) &&
           is_replicated(inst_operand(i, 0), i, &left);
}

bool pass_all_reduce_simplifier(Module *m, PassCtx *cx)
{
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first, *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            if (c->async_wrapped || !gives_operand(i, cx->scratch))
                continue;
            cx->did_at = i->name;
            inst_replace(i, inst_operand(i, 0));
            inst_delete_dead(i, cx->scratch);
            cx->rewrites++;
        }
    return cx->rewrites > 0;
}
