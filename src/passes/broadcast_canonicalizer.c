/* broadcast_canonicalizer - broadcasts that name their dimensions in rising order.
 *
 *   %b = f32[3,2] broadcast(%x), dimensions={1,0}    (%x is f32[2,3])
 *     =>
 *   %t = f32[3,2] transpose(%x), dimensions={1,0}      %b = f32[3,2] broadcast(%t), dimensions={0,1}
 *
 * The smaller array is turned. algsimp drops a broadcast that adds nothing afterwards. */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"

static Inst *canonical(PassCtx *cx, Inst *i)
{
    if (i->op != OP_BROADCAST || ints_increase(inst_ints(i, ATTR_DIMENSIONS)))
        return NULL;
    Ints dims = inst_ints(i, ATTR_DIMENSIONS), perm = ints_make(cx->scratch, dims.n), sorted = ints_make(cx->scratch, dims.n);
    for (int32_t k = 0; k < dims.n; k++) {
        int32_t place = 0;
        for (int32_t j = 0; j < dims.n; j++)
            place += dims.v[j] < dims.v[k];
        *ints_at(perm, place) = k;
        *ints_at(sorted, place) = dims.v[k];
    }
    return expand_broadcast(i, i->shape, expand_transpose(i, inst_operand(i, 0), perm), sorted);
}

bool pass_broadcast_canonicalizer(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, canonical);
}
