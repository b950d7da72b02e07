/* all-gather-combiner - several all-gathers over the same devices and dimension become one.
 *
 *   %a = f32[8,4] all-gather(%x), dimensions={0}                 %r = (f32[8,4], f32[8,2]) all-gather(%x, %y), dimensions={0}
 *   %b = f32[8,2] all-gather(%y), dimensions={0}         =>      %r#0, %r#1
 *
 * As all-reduce-combiner. */
#include "config.h"

#include "passes/combine.h"

bool pass_all_gather_combiner(Module *m, PassCtx *cx)
{
    return combine_collectives(m, cx, OP_ALL_GATHER);
}
