/* float-normalization-f8 - arithmetic of floats of 8 bits and fewer in f16.
 *
 *   %s = f8e4m3fn[4] add(%x, %y)
 *     =>
 *   %a = f16[4] convert(%x)      %b = f16[4] convert(%y)      %t = f16[4] add(%a, %b)      %s = f8e4m3fn[4] convert(%t)
 *
 * As float-normalization-bf16 does for bf16. f8e3m4 in f32: with its 5 digits f16 has too few to round a square root twice. Not f8e8m0fnu, whose values
 * are powers of two up to 2^127. */
#include "config.h"

#include "passes/float_normalization.h"

static Inst *widen(PassCtx *cx, Inst *i)
{
    Type t = i->shape->type;
    if (!type_is_float(t) || type_bits(t) > 8 || t == TYPE_F8E8M0FNU)
        return NULL;
    return float_widen(cx, i, t == TYPE_F8E3M4 ? TYPE_F32 : TYPE_F16);
}

bool pass_float_normalization_f8(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, widen);
}
