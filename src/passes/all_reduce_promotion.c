/* all-reduce-promotion - numbers of 16 bits are exchanged and combined in 32.
 *
 *   %r = bf16[8] all-reduce(%x), to_apply=%add
 *     =>
 *   %w = f32[8] convert(%x)      %s = f32[8] all-reduce(%w), to_apply=%add32      %r = bf16[8] convert(%s)
 *
 * Floats are rounded once and not at each step, so no level runs it; integers wrap around as they did. Of one array, by one operation. */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"

static Type promoted(Type t)
{
    switch (t) {
    case TYPE_BF16: case TYPE_F16: return TYPE_F32;
    case TYPE_S16: return TYPE_S32;
    case TYPE_U16: return TYPE_U32;
    default: return TYPE_COUNT;
    }
}

static Inst *promote(PassCtx *cx, Inst *i)
{
    (void)cx;
    Type t = i->op == OP_ALL_REDUCE && i->n_operands == 1 && shape_is_array(i->shape) && !i->comp->async_wrapped ? promoted(i->shape->type) : TYPE_COUNT;
    Op   op = t == TYPE_COUNT ? OP_COUNT : comp_binary_op(inst_callee(i, 0));
    if (op == OP_COUNT || !op_has(op, F_COMMUTES))
        return NULL;
    Inst *x = expand_convert(i, OP_CONVERT, t, inst_operand(i, 0));
    Inst *wide = expand_like(i, x->shape, 1, &x);
    Comp *reducer = expand_reducer(i, op, t);
    inst_set_callees(wide, 1, &reducer);
    return expand_op(i, OP_CONVERT, i->shape, 1, &wide);
}

bool pass_all_reduce_promotion(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, promote);
}
