/* collective-permute-combiner - several collective-permutes between the same devices become one.
 *
 *   %a = f32[4] collective-permute(%x), source_target_pairs={{0,1}}            %r = (f32[4], s8[8]) collective-permute(%x, %y), source_target_pairs={{0,1}}
 *   %b = s8[8] collective-permute(%y), source_target_pairs={{0,1}}      =>     %r#0, %r#1
 *
 * Neither needs the other, and the pairs are the same. What is sent need not be of one type. */
#include "config.h"

#include "passes/combine.h"

bool pass_collective_permute_combiner(Module *m, PassCtx *cx)
{
    return combine_collectives(m, cx, OP_COLLECTIVE_PERMUTE);
}
