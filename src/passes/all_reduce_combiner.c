/* all-reduce-combiner - several all-reduces over the same devices become one.
 *
 *   %a = f32[4] all-reduce(%x), to_apply=%sum                    %r = (f32[4], f32[8]) all-reduce(%x, %y), to_apply=%sum
 *   %b = f32[8] all-reduce(%y), to_apply=%sum            =>      %r#0, %r#1
 *
 * Neither needs the other, and groups, element type and reducer are the same. Devices meet once and not twice. */
#include "config.h"

#include "passes/combine.h"

bool pass_all_reduce_combiner(Module *m, PassCtx *cx)
{
    return combine_collectives(m, cx, OP_ALL_REDUCE);
}
