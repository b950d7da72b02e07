/* comparison-expander - the total order of floats as an order of integers.
 *
 *   %c = pred[4] compare(%x, %y), direction=LT, type=TOTALORDER               (%x and %y are f32[4])
 *     =>
 *   with   b = bitcast-convert(x) as s32,   k(x) = b < 0 ? b ^ 0x7fffffff : b
 *   %c = pred[4] compare(k(x), k(y)), direction=LT
 *
 * Bits of floats are a sign and a magnitude, in which -NaN < -inf < ... < -0 < 0 < ... < inf < NaN; with the magnitude of negative ones turned around
 * they are two's complement. Of f16, bf16, f32 and f64: types of 8 bits and fewer are not all made that way. */
#include "config.h"

#include "passes/expand.h"

static Type integer_of(Type t)
{
    switch (t) {
    case TYPE_F64: return TYPE_S64;
    case TYPE_F32: return TYPE_S32;
    case TYPE_F16: case TYPE_BF16: return TYPE_S16;
    default: return TYPE_COUNT;
    }
}

static Inst *ordered(Inst *at, Inst *x)
{
    Type    t = integer_of(x->shape->type);
    Inst   *bits = expand_convert(at, OP_BITCAST_CONVERT, t, x);
    int64_t magnitude = (int64_t)(UINT64_MAX >> (65 - type_bits(t)));
    Inst   *negative = expand_compare(at, bits, expand_integer(at, bits->shape, 0), CMP_LT);
    Inst   *turned = expand_binary(at, OP_XOR, bits, expand_integer(at, bits->shape, magnitude));
    return expand_op(at, OP_SELECT, bits->shape, 3, (Inst *[]){negative, turned, bits});
}

static Inst *expand(PassCtx *cx, Inst *i)
{
    (void)cx;
    if (i->op != OP_COMPARE || !compare_is_total(i) || integer_of(inst_operand(i, 0)->shape->type) == TYPE_COUNT ||
        inst_operand(i, 1)->shape->type != inst_operand(i, 0)->shape->type)
        return NULL;
    return expand_compare(i, ordered(i, inst_operand(i, 0)), ordered(i, inst_operand(i, 1)), inst_word(i, ATTR_DIRECTION));
}

bool pass_comparison_expander(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, expand);
}
