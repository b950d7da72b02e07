/* dynamic-index-splitter - places that are given as one vector become scalars.
 *
 *   %d = f32[2,3] dynamic-slice(%x, %at), dynamic_slice_sizes={2,3}           (%at is s32[2])
 *     =>
 *   %s = s32[1] slice(%at), slice={[0:1]}      %a = s32[] reshape(%s)         and so on
 *   %d = f32[2,3] dynamic-slice(%x, %a, %b), dynamic_slice_sizes={2,3}
 *
 * The old form of both opcodes; rules about dynamic slices look at scalars alone. */
#include "config.h"

#include "passes/expand.h"

static Inst *split(PassCtx *cx, Inst *i)
{
    int32_t first = i->op == OP_DYNAMIC_SLICE ? 1 : 2;
    if ((i->op != OP_DYNAMIC_SLICE && i->op != OP_DYNAMIC_UPDATE_SLICE) || i->n_operands != first + 1 || inst_operand(i, first)->shape->rank != 1)
        return NULL;
    Inst        *at = inst_operand(i, first);
    int32_t      rank = inst_operand(i, 0)->shape->rank;
    const Shape *scalar = shape_scalar(i->comp->module->arena, at->shape->type);
    Inst       **operands = ARENA_ARRAY(cx->scratch, Inst *, first + rank);
    for (int32_t k = 0; k < first; k++)
        operands[k] = inst_operand(i, k);
    for (int32_t k = 0; k < rank; k++)
        operands[first + k] = expand_reshape(i, scalar, expand_slice(i, at, 0, k, k + 1));
    return expand_like(i, i->shape, first + rank, operands);
}

bool pass_dynamic_index_splitter(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, split);
}
