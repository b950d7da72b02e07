/* reduce-scatter-creator - of a sum over devices only the part that is looked at.
 *
 *   %r = f32[8] all-reduce(%x), replica_groups={{0,1}}, to_apply=%add
 *   %i = u32[] replica-id()
 *   %o = u32[] multiply(%i, 4)                                                            (also element %i of a table of starts)
 *   %s = f32[4] dynamic-slice(%r, %o), dynamic_slice_sizes={4}
 *     =>
 *   %s = f32[4] reduce-scatter(%x), replica_groups={{0,1}}, dimensions={0}, to_apply=%add
 *
 * Device k of each group has to cut out part k of as many equal parts as the group has devices: the start is computed for each of them. One dimension is cut;
 * nobody else needs the whole sum. Floats are added up in another order by none of our backends, which fold in the order of the group. */
#include "config.h"

#include "passes/expand.h"
#include "passes/own_part.h"
#include "passes/util.h"

static bool is_whole_sum(const Inst *r)
{
    return r->op == OP_ALL_REDUCE && r->n_operands == 1 && r->n_uses == 1 && inst_is_free(r) && shape_equal(r->shape, inst_operand(r, 0)->shape) &&
           !r->comp->async_wrapped;
}

static Inst *scattered(PassCtx *cx, Inst *i)
{
    if (i->op != OP_DYNAMIC_SLICE || !is_whole_sum(inst_operand(i, 0)))
        return NULL;
    const Inst *r = inst_operand(i, 0);
    int64_t     dim = own_part_dim(cx->scratch, i, r);
    if (dim < 0)
        return NULL;
    Inst *x = inst_operand(r, 0), *s = expand_op(i, OP_REDUCE_SCATTER, i->shape, 1, &x);
    inst_take_attrs(s, r);
    inst_set_ints(s, ATTR_DIMENSIONS, (Ints){&dim, 1});
    inst_set_callees(s, 1, r->callees);
    return s;
}

bool pass_reduce_scatter_creator(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, scattered);
}
