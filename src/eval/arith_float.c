/* Floats, in f32 and f64. p and q are the operands; M(f) is the function of libm for the domain, W(f) that of the next wider type, for functions that
 * libm has with errors of more than one unit in the last place.
 * maximum and minimum give NaN when either operand is one. Source: reference operations 3. */
#include "eval/arith.h"

#include <math.h>
#include <string.h>

#include "eval/engine.h"

/* A pattern with se exponent and sm mantissa bits rounded to e and m bits: nearest even on the pattern, then overflow to
 * infinity and flush of what is below the narrow type's smallest normal. NaN stays NaN while there are mantissa bits. */
static uint64_t round_pattern(uint64_t v, int se, int sm, int e, int m)
{
    uint64_t sign = v & (UINT64_C(1) << (se + sm)), magnitude = v ^ sign;
    uint64_t infinity = ((UINT64_C(1) << se) - 1) << sm;
    if (magnitude > infinity)
        return m > 0 ? v : infinity;
    if (m < sm) {
        int dropped = sm - m;
        uint64_t last = magnitude >> dropped & 1, half = UINT64_C(1) << (dropped - 1);
        magnitude = (magnitude + half - 1 + last) >> dropped << dropped;
    }
    if (e < se) {
        int64_t wide = (INT64_C(1) << (se - 1)) - 1, narrow = (INT64_C(1) << (e - 1)) - 1;
        int64_t exponent = (int64_t)(magnitude >> sm);
        if (exponent > wide + narrow)
            magnitude = infinity;
        else if (exponent <= wide - narrow)
            magnitude = 0;
    }
    return sign | magnitude;
}

static float reduce_f32(float p, int e, int m)
{
    uint32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits = (uint32_t)round_pattern(bits, 8, 23, e, m);
    memcpy(&p, &bits, sizeof p);
    return p;
}

static double reduce_f64(double p, int e, int m)
{
    uint64_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits = round_pattern(bits, 11, 52, e, m);
    memcpy(&p, &bits, sizeof p);
    return p;
}

#define FLOAT_ARITH(S, T)                                                                                                     \
    ARITH1(S##_abs, T, T, M(fabs)(p))                                                                                          \
    ARITH1(S##_negate, T, T, -p)                                                                                               \
    ARITH1(S##_sign, T, T, p > 0 ? 1 : p < 0 ? -1 : p)                                                                         \
    ARITH1(S##_floor, T, T, M(floor)(p))                                                                                       \
    ARITH1(S##_ceil, T, T, M(ceil)(p))                                                                                         \
    ARITH1(S##_round_away, T, T, M(round)(p))                                                                                  \
    ARITH1(S##_round_even, T, T, M(rint)(p))                                                                                   \
    ARITH1(S##_is_finite, T, uint8_t, isfinite(p) != 0)                                                                        \
    ARITH1(S##_real, T, T, p)                                                                                                  \
    ARITH1(S##_imag, T, T, ((void)p, (T)0))                                                                                       \
    ARITH1(S##_acos, T, T, M(acos)(p))                                                                                         \
    ARITH1(S##_acosh, T, T, W(acosh)(p))                                                                                       \
    ARITH1(S##_asin, T, T, M(asin)(p))                                                                                         \
    ARITH1(S##_asinh, T, T, W(asinh)(p))                                                                                       \
    ARITH1(S##_atanh, T, T, W(atanh)(p))                                                                                       \
    ARITH1(S##_cbrt, T, T, W(cbrt)(p))                                                                                         \
    ARITH1(S##_cosine, T, T, M(cos)(p))                                                                                        \
    ARITH1(S##_cosh, T, T, M(cosh)(p))                                                                                         \
    ARITH1(S##_erf, T, T, M(erf)(p))                                                                                           \
    ARITH1(S##_exp2, T, T, M(exp2)(p))                                                                                         \
    ARITH1(S##_exp, T, T, M(exp)(p))                                                                                           \
    ARITH1(S##_expm1, T, T, M(expm1)(p))                                                                                       \
    ARITH1(S##_log, T, T, M(log)(p))                                                                                           \
    ARITH1(S##_log2, T, T, M(log2)(p))                                                                                         \
    ARITH1(S##_log1p, T, T, M(log1p)(p))                                                                                       \
    ARITH1(S##_logistic, T, T, 1 / (1 + M(exp)(-p)))                                                                           \
    ARITH1(S##_rsqrt, T, T, 1 / W(sqrt)(p))                                                                                    \
    ARITH1(S##_sine, T, T, M(sin)(p))                                                                                          \
    ARITH1(S##_sinh, T, T, W(sinh)(p))                                                                                         \
    ARITH1(S##_sqrt, T, T, M(sqrt)(p))                                                                                         \
    ARITH1(S##_tan, T, T, M(tan)(p))                                                                                           \
    ARITH1(S##_tanh, T, T, W(tanh)(p))                                                                                         \
    ARITH1(S##_reduce_precision, T, T, reduce_##S(p, k->exponent_bits, k->mantissa_bits))                                      \
    ARITH2(S##_add, T, T, p + q)                                                                                               \
    ARITH2(S##_subtract, T, T, p - q)                                                                                          \
    ARITH2(S##_multiply, T, T, p * q)                                                                                          \
    ARITH2(S##_divide, T, T, p / q)                                                                                            \
    ARITH2(S##_remainder, T, T, M(fmod)(p, q))                                                                                 \
    ARITH2(S##_power, T, T, p == 1 || q == 0 ? 1 : q == 2 ? p * p : M(pow)(p, q))                                              \
    ARITH2(S##_atan2, T, T, W(atan2)(p, q))                                                                                    \
    ARITH2(S##_maximum, T, T, p != p ? p : q != q || p < q ? q : p)                                                            \
    ARITH2(S##_minimum, T, T, p != p ? p : q != q || p > q ? q : p)

#define M(name) name##f
#define W(name) name
FLOAT_ARITH(f32, float)
#undef M
#undef W
#define M(name) name
#define W(name) name##l
FLOAT_ARITH(f64, double)
#undef M
#undef W

ArithFn *arith_float(Op op, Domain d)
{
#define BOTH(name) {[DOMAIN_F32] = f32_##name, [DOMAIN_F64] = f64_##name}
    static ArithFn *const table[OP_COUNT][DOMAIN_COUNT] = {
        [OP_ABS] = BOTH(abs), [OP_NEGATE] = BOTH(negate), [OP_SIGN] = BOTH(sign), [OP_FLOOR] = BOTH(floor), [OP_CEIL] = BOTH(ceil),
        [OP_ROUND_NEAREST_AFZ] = BOTH(round_away), [OP_ROUND_NEAREST_EVEN] = BOTH(round_even), [OP_IS_FINITE] = BOTH(is_finite),
        [OP_REAL] = BOTH(real), [OP_IMAG] = BOTH(imag), [OP_ACOS] = BOTH(acos), [OP_ACOSH] = BOTH(acosh), [OP_ASIN] = BOTH(asin),
        [OP_ASINH] = BOTH(asinh), [OP_ATANH] = BOTH(atanh), [OP_CBRT] = BOTH(cbrt), [OP_COSINE] = BOTH(cosine),
        [OP_COSH] = BOTH(cosh), [OP_ERF] = BOTH(erf), [OP_EXP2] = BOTH(exp2), [OP_EXPONENTIAL] = BOTH(exp),
        [OP_EXPONENTIAL_MINUS_ONE] = BOTH(expm1), [OP_LOG] = BOTH(log), [OP_LOG2] = BOTH(log2), [OP_LOG_PLUS_ONE] = BOTH(log1p),
        [OP_LOGISTIC] = BOTH(logistic), [OP_RSQRT] = BOTH(rsqrt), [OP_SINE] = BOTH(sine), [OP_SINH] = BOTH(sinh),
        [OP_SQRT] = BOTH(sqrt), [OP_TAN] = BOTH(tan), [OP_TANH] = BOTH(tanh), [OP_REDUCE_PRECISION] = BOTH(reduce_precision),
        [OP_ADD] = BOTH(add), [OP_SUBTRACT] = BOTH(subtract), [OP_MULTIPLY] = BOTH(multiply), [OP_DIVIDE] = BOTH(divide),
        [OP_REMAINDER] = BOTH(remainder), [OP_POWER] = BOTH(power), [OP_ATAN2] = BOTH(atan2), [OP_MAXIMUM] = BOTH(maximum),
        [OP_MINIMUM] = BOTH(minimum),
    };
#undef BOTH
    return table[op][d];
}
