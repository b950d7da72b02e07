/* float-normalization-bf16 - arithmetic of bf16 in f32.
 *
 *   %s = bf16[4] add(%x, %y)
 *     =>
 *   %a = f32[4] convert(%x)      %b = f32[4] convert(%y)      %t = f32[4] add(%a, %b)      %s = bf16[4] convert(%t)
 *
 * Elementwise instructions alone, in reducers too, but for converts and what only moves or chooses
 * values; a sum, difference, product, quotient or square root that is rounded twice here is the one that is rounded once, since the wider type has more
 * than twice the digits. For a target that has no instructions of the narrow type; both backends do it inside of a kernel anyway. */
#include "config.h"

#include "passes/float_normalization.h"

static bool computes(Op op)
{
    switch (op) {
    case OP_CONVERT: case OP_BITCAST_CONVERT: case OP_COPY: case OP_SELECT: case OP_REDUCE_PRECISION: case OP_STOCHASTIC_CONVERT: case OP_COMPARE:
    case OP_CLAMP: case OP_MAXIMUM: case OP_MINIMUM: case OP_NEGATE: case OP_ABS:
        return false;
    default: return op_has(op, F_ELEMENTWISE);
    }
}

Inst *float_widen(PassCtx *cx, Inst *i, Type wide)
{
    if (!computes(i->op) || i->n_callees)
        return NULL;
    Inst **operands = ARENA_ARRAY(cx->scratch, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        if (inst_operand(i, k)->shape->type != i->shape->type)
            return NULL;
    for (int32_t k = 0; k < i->n_operands; k++)
        operands[k] = expand_convert(i, OP_CONVERT, wide, inst_operand(i, k));
    Inst *r = expand_like(i, shape_with_type(i->comp->module->arena, i->shape, wide), i->n_operands, operands);
    return expand_convert(i, OP_CONVERT, i->shape->type, r);
}

static Inst *widen(PassCtx *cx, Inst *i)
{
    return i->shape->type == TYPE_BF16 ? float_widen(cx, i, TYPE_F32) : NULL;
}

bool pass_float_normalization_bf16(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, widen);
}
