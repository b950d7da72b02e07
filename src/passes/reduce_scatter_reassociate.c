/* reduce-scatter-reassociate - one exchange for a sum of parts of sums over devices.
 *
 *   %a = f32[4] reduce-scatter(%x), to_apply=%add, ...                         %s = f32[8] add(%x, %y)
 *   %b = f32[4] reduce-scatter(%y), to_apply=%add, ...                 =>      %r = f32[4] reduce-scatter(%s), to_apply=%add, ...
 *   %r = f32[4] add(%a, %b)
 *
 * As all-reduce-reassociate does: the same operation over the same devices, {exact} for what is not rounded. */
#include "config.h"

#include "passes/combine.h"
#include "passes/expand.h"

static Inst *reassociate(PassCtx *cx, Inst *i)
{
    return reduced_together(cx, i, OP_REDUCE_SCATTER);
}

bool pass_reduce_scatter_reassociate(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, reassociate);
}
