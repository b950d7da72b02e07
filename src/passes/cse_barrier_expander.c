/* cse_barrier_expander - what opt-barrier gives is what it was given.
 *
 *   %b = (f32[4], f32[4]) opt-barrier(%t)      =>      %t
 *
 * Barriers keep passes from moving what is computed on the one side to the other, so this one stands behind all that a pipeline moves. */
#include "config.h"

#include "passes/expand.h"

static Inst *operand(PassCtx *cx, Inst *i)
{
    (void)cx;
    return i->op == OP_OPT_BARRIER && shape_equal(i->shape, inst_operand(i, 0)->shape) ? inst_operand(i, 0) : NULL;
}

bool pass_cse_barrier_expander(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, operand);
}
