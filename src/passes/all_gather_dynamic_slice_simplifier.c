/* all-gather-dynamic-slice-simplifier - of what all devices put together each takes its own part again.
 *
 *   %g = f32[8] all-gather(%x), replica_groups={{0,1}}, dimensions={0}
 *   %i = u32[] replica-id()
 *   %o = u32[] multiply(%i, 4)                                                                 =>        %x
 *   %s = f32[4] dynamic-slice(%g, %o), dynamic_slice_sizes={4}
 *
 * Others may need the whole. */
#include "config.h"

#include "passes/expand.h"
#include "passes/own_part.h"
#include "passes/util.h"

static Inst *own(PassCtx *cx, Inst *i)
{
    const Inst *g = i->op == OP_DYNAMIC_SLICE ? inst_operand(i, 0) : NULL;
    if (!g || g->op != OP_ALL_GATHER || g->n_operands != 1 || !inst_is_free(g) || g->comp->async_wrapped || !shape_equal(inst_operand(g, 0)->shape, i->shape))
        return NULL;
    int32_t dim = own_part_dim(cx->scratch, i, g);
    return dim >= 0 && dim == inst_ints(g, ATTR_DIMENSIONS).v[0] ? inst_operand(g, 0) : NULL;
}

bool pass_all_gather_dynamic_slice_simplifier(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, own);
}
