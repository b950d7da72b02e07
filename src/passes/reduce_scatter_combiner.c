/* reduce-scatter-combiner - several reduce-scatters over the same devices and dimension become one.
 *
 *   %a = f32[2,4] reduce-scatter(%x), dimensions={0}             %r = (f32[2,4], f32[2,2]) reduce-scatter(%x, %y), dimensions={0}
 *   %b = f32[2,2] reduce-scatter(%y), dimensions={0}     =>      %r#0, %r#1
 *
 * As all-reduce-combiner. */
#include "config.h"

#include "passes/combine.h"

bool pass_reduce_scatter_combiner(Module *m, PassCtx *cx)
{
    return combine_collectives(m, cx, OP_REDUCE_SCATTER);
}
