/* operand_upcaster - dots and convolutions whose operands have the type of their sums.
 *
 *   %d = s32[2,4] dot(%x, %y), ...        (%x is s8[2,3], %y is s8[3,4])
 *     =>
 *   %a = s32[2,3] convert(%x)      %b = s32[3,4] convert(%y)      %d = s32[2,4] dot(%a, %b), ...
 *
 * For whoever computes products in one type only. The narrower type converts without a loss, and products are taken in the wider one anyway. */
#include "config.h"

#include "passes/expand.h"

/* All values of `narrow` are values of `wide`, of the same kind. */
static bool widens(Type narrow, Type wide)
{
    if (type_is_float(wide))
        return type_is_float(narrow) && type_bits(narrow) < type_bits(wide) && (wide == TYPE_F32 || wide == TYPE_F64);
    if (!type_is_int(wide) || !type_is_int(narrow) || type_bits(narrow) >= type_bits(wide))
        return false;
    return type_is_unsigned_int(narrow) || type_is_signed_int(wide);
}

static Inst *upcast(PassCtx *cx, Inst *i)
{
    Type t = i->shape->type;
    (void)cx;
    if ((i->op != OP_DOT && i->op != OP_CONVOLUTION) || i->n_operands != 2 || inst_attr(i, ATTR_SPARSITY_CONFIG) ||
        inst_attr(i, ATTR_BLOCK_SCALING_CONFIG) || inst_attr(i, ATTR_ALGORITHM))
        return NULL;
    Inst *operands[2];
    bool  any = false;
    for (int32_t k = 0; k < 2; k++) {
        Type from = inst_operand(i, k)->shape->type;
        any |= from != t;
        if (from != t && !widens(from, t))
            return NULL;
    }
    if (!any)
        return NULL;
    for (int32_t k = 0; k < 2; k++)
        operands[k] = expand_convert(i, OP_CONVERT, t, inst_operand(i, k));
    return expand_like(i, i->shape, 2, operands);
}

bool pass_operand_upcaster(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, upcast);
}
