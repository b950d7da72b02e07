/* Complex numbers: the platform's functions, as XLA's evaluator uses C++'s. p and q are the operands, M(f) the function of
 * complex.h for the domain, MAKE(re, im) builds a value. Source: reference operations 3.4. */
#include "eval/arith.h"

#include <complex.h>
#include <math.h>

#include "eval/engine.h"

/* -i log((x + iy) / sqrt(x^2 + y^2)), in f64 for both domains: squares of c64 do not overflow there. */
static double _Complex atan2_of(double _Complex y, double _Complex x)
{
    double _Complex w = clog(make_c128(creal(x) - cimag(y), cimag(x) + creal(y)) / csqrt(x * x + y * y));
    return make_c128(cimag(w), -creal(w));
}

/* sign z = z / |z|, 0 for 0.
 * exp(z) - 1 = (expm1(a) cos b + (cos b - 1), e^a sin b), where cos b - 1 = -2 sin(b/2)^2; a zero b stays even when e^a is
 *              infinite or NaN, as in exp(z).
 * log(1 + z) = (log1p(t) + log1p((n/m)^2) / 2, atan2(b, a + 1)), m and n the larger and smaller of |a+1| and |b|,
 *              t = a if m is a+1 itself, else m - 1.
 * p * q is plain, as in a dot: C's operator would repair infinities.
 * A power of 0, of 1 and by 0 is settled first; an infinite base under a real exponent is infinite or 0. */
#define COMPLEX_ARITH(S, T, R)                                                                                                \
    static T S##_sign_of(T p)                                                                                                   \
    {                                                                                                                           \
        R m = M(cabs)(p);                                                                                                       \
        return m == 0 ? 0 : MAKE(RE(p) / m, IM(p) / m);                                                                         \
    }                                                                                                                           \
    static T S##_expm1_of(T p)                                                                                                 \
    {                                                                                                                          \
        R a = RE(p), b = IM(p), s = F(sin)(b / 2);                                                                             \
        return MAKE(F(expm1)(a) * F(cos)(b) - 2 * s * s, b == 0 ? b : F(exp)(a) * F(sin)(b));                                  \
    }                                                                                                                          \
    static T S##_log1p_of(T p)                                                                                                 \
    {                                                                                                                          \
        R a = RE(p), b = IM(p), m = F(fmax)(F(fabs)(a + 1), F(fabs)(b)), n = F(fmin)(F(fabs)(a + 1), F(fabs)(b));              \
        if (isnan(a) || isnan(b)) /* fmax and fmin forget it */                                                                \
            return MAKE((R)NAN, (R)NAN);                                                                                       \
        R t = m == a + 1 ? a : m - 1, ratio = m == 0 ? 0 : n / m;                                                              \
        return MAKE(F(log1p)(t) + F(log1p)(ratio * ratio) / 2, F(atan2)(b, a + 1));                                            \
    }                                                                                                                          \
    static T S##_power_of(T p, T q)                                                                                             \
    {                                                                                                                           \
        if (p == 1 || q == 0)                                                                                                   \
            return 1;                                                                                                           \
        if (p == 0 && IM(q) == 0 && RE(q) > 0)                                                                                  \
            return 0;                                                                                                           \
        if (IM(q) == 0 && (isinf(RE(p)) || isinf(IM(p))))                                                                       \
            return RE(q) > 0 ? MAKE((R)INFINITY, 0) : 0;                                                                        \
        return (T)cpow(p, q); /* in f64: powf of complex numbers loses digits */                                                       \
    }                                                                                                                           \
    ARITH1(S##_abs, T, R, M(cabs)(p))                                                                                          \
    ARITH1(S##_real, T, R, RE(p))                                                                                              \
    ARITH1(S##_imag, T, R, IM(p))                                                                                              \
    ARITH1(S##_negate, T, T, -p)                                                                                               \
    ARITH1(S##_sign, T, T, S##_sign_of(p))                                                                                     \
    ARITH1(S##_acos, T, T, M(cacos)(p))                                                                                        \
    ARITH1(S##_acosh, T, T, M(cacosh)(p))                                                                                      \
    ARITH1(S##_asin, T, T, M(casin)(p))                                                                                        \
    ARITH1(S##_asinh, T, T, M(casinh)(p))                                                                                      \
    ARITH1(S##_atanh, T, T, M(catanh)(p))                                                                                      \
    ARITH1(S##_cosine, T, T, M(ccos)(p))                                                                                       \
    ARITH1(S##_cosh, T, T, M(ccosh)(p))                                                                                        \
    ARITH1(S##_exp, T, T, M(cexp)(p))                                                                                          \
    ARITH1(S##_exp2, T, T, M(cexp)(p * (R)0.6931471805599453))                                                                 \
    ARITH1(S##_expm1, T, T, S##_expm1_of(p))                                                                                   \
    ARITH1(S##_log, T, T, M(clog)(p))                                                                                          \
    ARITH1(S##_log2, T, T, M(clog)(p) / (R)0.6931471805599453)                                                                 \
    ARITH1(S##_log1p, T, T, S##_log1p_of(p))                                                                                   \
    ARITH1(S##_logistic, T, T, 1 / (1 + M(cexp)(-p)))                                                                          \
    ARITH1(S##_rsqrt, T, T, p == 0 ? MAKE((R)INFINITY, (R)NAN) : 1 / M(csqrt)(p))                                              \
    ARITH1(S##_sine, T, T, M(csin)(p))                                                                                         \
    ARITH1(S##_sinh, T, T, M(csinh)(p))                                                                                        \
    ARITH1(S##_sqrt, T, T, M(csqrt)(p))                                                                                        \
    ARITH1(S##_tan, T, T, M(ctan)(p))                                                                                          \
    ARITH1(S##_tanh, T, T, M(ctanh)(p))                                                                                        \
    ARITH2(S##_make, R, T, MAKE(p, q))                                                                                         \
    ARITH2(S##_add, T, T, p + q)                                                                                               \
    ARITH2(S##_subtract, T, T, p - q)                                                                                          \
    ARITH2(S##_multiply, T, T, MAKE(RE(p) * RE(q) - IM(p) * IM(q), RE(p) * IM(q) + IM(p) * RE(q)))                             \
    ARITH2(S##_divide, T, T, p / q)                                                                                            \
    ARITH2(S##_power, T, T, S##_power_of(p, q))                                                                                \
    ARITH2(S##_atan2, T, T, atan2_of(p, q))

#define M(name) name##f
#define F(name) name##f
#define MAKE make_c64
#define RE   crealf
#define IM   cimagf
COMPLEX_ARITH(c64, float _Complex, float)
#undef M
#undef F
#undef MAKE
#undef RE
#undef IM
#define M(name) name
#define F(name) name
#define MAKE make_c128
#define RE   creal
#define IM   cimag
COMPLEX_ARITH(c128, double _Complex, double)

ArithFn *arith_complex(Op op, Domain d)
{
#define BOTH(name) {[DOMAIN_C64] = c64_##name, [DOMAIN_C128] = c128_##name}
    static ArithFn *const table[OP_COUNT][DOMAIN_COUNT] = {
        [OP_ABS] = BOTH(abs), [OP_REAL] = BOTH(real), [OP_IMAG] = BOTH(imag), [OP_NEGATE] = BOTH(negate), [OP_SIGN] = BOTH(sign),
        [OP_ACOS] = BOTH(acos), [OP_ACOSH] = BOTH(acosh), [OP_ASIN] = BOTH(asin), [OP_ASINH] = BOTH(asinh),
        [OP_ATANH] = BOTH(atanh), [OP_COSINE] = BOTH(cosine), [OP_COSH] = BOTH(cosh), [OP_EXPONENTIAL] = BOTH(exp),
        [OP_EXP2] = BOTH(exp2), [OP_EXPONENTIAL_MINUS_ONE] = BOTH(expm1), [OP_LOG] = BOTH(log), [OP_LOG2] = BOTH(log2),
        [OP_LOG_PLUS_ONE] = BOTH(log1p), [OP_LOGISTIC] = BOTH(logistic), [OP_RSQRT] = BOTH(rsqrt), [OP_SINE] = BOTH(sine),
        [OP_SINH] = BOTH(sinh), [OP_SQRT] = BOTH(sqrt), [OP_TAN] = BOTH(tan), [OP_TANH] = BOTH(tanh), [OP_COMPLEX] = BOTH(make),
        [OP_ADD] = BOTH(add), [OP_SUBTRACT] = BOTH(subtract), [OP_MULTIPLY] = BOTH(multiply), [OP_DIVIDE] = BOTH(divide),
        [OP_POWER] = BOTH(power), [OP_ATAN2] = BOTH(atan2),
    };
#undef BOTH
    return table[op][d];
}
