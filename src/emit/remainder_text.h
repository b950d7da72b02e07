/* Remainders of f32 and f64 as text of the program, the same bits as libm's: 16 or 8 at once where the processor has AVX-512 and gcc takes a function's form for vectors by its name.
 *
 * a = |x|, b = |y|, both of p bits; q is a / b cut off behind p bits, n what is whole of it, 2^s the value of q's last bit. a - n b is not negative, and below b where s <= 0: the remainder.
 * Else n is q, and a - n b is below 2^s b and a multiple of 2^s times the value of b's last bit: p bits again, so that the fused product and difference is exact. As long as q is 2^p or more,
 * a - n b takes a's place. Quotients above 2^100, which may be none of the type's numbers, and what has no remainder are libm's.
 *
 * One alone is made of the quotient as f64. f32: below 2^29 none rounds to a whole number that it is not, and n b has 53 bits. f64, where there is a fused product: n may be too large by 1. */
#ifndef EMIT_REMAINDER_TEXT_H
#define EMIT_REMAINDER_TEXT_H

#include "emit/lanes_text.h"

/* X: the type's name, T: C's, U: its bits', MINUS, END, FAR: the bits of -0, 2^100, 2^p; P: what instructions call it, M: a mask of all N lanes, which come last. */
#define REMAINDERS_AT_ONCE(X, T, U, MINUS, END, FAR, LIBM, P, M, N, ...) \
    LANES_BEGIN("rem_" X, T, __VA_ARGS__) \
    "typedef " U " rem_" X "_bits __attribute__((vector_size(64)));\n" \
    "\n" \
    "static inline rem_" X "_v" N " rem_" X "_size(rem_" X "_v" N " x)\n" \
    "{\n" \
    "    return (rem_" X "_v" N ")((rem_" X "_bits)x & ~((rem_" X "_bits){ 0 } + " MINUS "));\n" \
    "}\n" \
    "\n" \
    "static inline rem_" X "_v" N " rem_" X "_sign(rem_" X "_v" N " a, rem_" X "_v" N " x) /* x's for a */\n" \
    "{\n" \
    "    return (rem_" X "_v" N ")((rem_" X "_bits)a | ((rem_" X "_bits)x & ((rem_" X "_bits){ 0 } + " MINUS ")));\n" \
    "}\n" \
    "\n" \
    "static inline rem_" X "_v" N " rem_" X "_quotient(rem_" X "_v" N " a, rem_" X "_v" N " b)\n" \
    "{\n" \
    "    return __builtin_ia32_div" P "512_mask(a, b, a, (" M ")-1, 11);\n" \
    "}\n" \
    "\n" \
    "/* a - n b; a where that is less than b, which may be an infinity */\n" \
    "static inline rem_" X "_v" N " rem_" X "_rest(rem_" X "_v" N " a, rem_" X "_v" N " b, rem_" X "_v" N " q)\n" \
    "{\n" \
    "    rem_" X "_v" N " n = __builtin_ia32_rndscale" P "_mask(q, 11, q, (" M ")-1, 4);\n" \
    "    return __builtin_ia32_vfmadd" P "512_mask3(-n, b, a, __builtin_ia32_cmp" P "512_mask(a, b, 21, (" M ")-1, 4), 4);\n" \
    "}\n" \
    "\n" \
    "static __attribute__((noinline)) rem_" X "_v" N " rem_" X "_far(rem_" X "_v" N " x, rem_" X "_v" N " y)\n" \
    "{\n" \
    "    rem_" X "_v" N " a = rem_" X "_size(x), b = rem_" X "_size(y), q = rem_" X "_quotient(a, b);\n" \
    "    const " M " own = (" M ")__builtin_ia32_cmp" P "512_mask(q, (rem_" X "_v" N "){ 0 } + " END ", 18, (" M ")-1, 4);\n" \
    "    while (__builtin_ia32_cmp" P "512_mask(q, (rem_" X "_v" N "){ 0 } + " FAR ", 29, own, 4)) {\n" \
    "        a = rem_" X "_rest(a, b, q);\n" \
    "        q = rem_" X "_quotient(a, b);\n" \
    "    }\n" \
    "    a = rem_" X "_sign(rem_" X "_rest(a, b, q), x);\n" \
    "#pragma GCC unroll 1\n" \
    "    for (int k = 0; k < " N "; k++)\n" \
    "        a[k] = own >> k & 1 ? a[k] : " LIBM "(x[k], y[k]);\n" \
    "    return a;\n" \
    "}\n" \
    "\n" \
    LANES_HEAD("rem_" X "_v" N, "_ZGVeN" N "vv_rem_" X, TWO) \
    "    rem_" X "_v" N " a = rem_" X "_size(x), b = rem_" X "_size(y), q = rem_" X "_quotient(a, b);\n" \
    "    if (__builtin_expect(__builtin_ia32_cmp" P "512_mask(q, (rem_" X "_v" N "){ 0 } + " FAR ", 21, (" M ")-1, 4) != 0, 0))\n" \
    "        return rem_" X "_far(x, y);\n" \
    "    return rem_" X "_sign(rem_" X "_rest(a, b, q), x);\n" \
    "}\n" \
    LANES_END("rem_" X, T, "rem_" X, "vv", TWO, "rem_" X "_alone(x, y)", "rem_" X "_alone(x, y)", __VA_ARGS__)

static const char remainder_f32_text[] =
    "static inline float rem_f32_alone(float x, float y)\n"
    "{\n"
    "    const double a = __builtin_fabs((double)x), b = __builtin_fabs((double)y), q = a / b;\n"
    "    return !(q < 0x1p29) ? fmodf(x, y) : a < b ? x : __builtin_copysignf((float)(a - (int32_t)q * b), x);\n"
    "}\n"
    "\n"
    REMAINDERS_AT_ONCE("f32", "float", "uint32_t", "0x80000000u", "0x1p100f", "0x1p24f", "fmodf", "ps", "unsigned short", "16", LANES_OF_F32);

static const char remainder_f64_text[] =
    "static inline double rem_f64_alone(double x, double y)\n"
    "{\n"
    "#if defined __FP_FAST_FMA\n"
    "    const double a = __builtin_fabs(x), b = __builtin_fabs(y), q = a / b;\n"
    "    if (q < 0x1p53) {\n"
    "        const double r = __builtin_fma(-(double)(int64_t)q, b, a);\n"
    "        return a < b ? x : __builtin_copysign(r < 0 ? r + b : r, x);\n"
    "    }\n"
    "#endif\n"
    "    return fmod(x, y);\n"
    "}\n"
    "\n"
    REMAINDERS_AT_ONCE("f64", "double", "uint64_t", "0x8000000000000000u", "0x1p100", "0x1p53", "fmod", "pd", "unsigned char", "8", LANES_OF_F64);

#undef REMAINDERS_AT_ONCE
#endif
