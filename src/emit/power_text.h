/* Powers of f32 as text of the program: 16 at once where the processor has AVX-512 and gcc takes a function's form for vectors by its name, libmvec's elsewhere.
 *
 * |x| = 2^e m, 1 <= m < 2. Of 32 intervals that of m says by which multiple of 1/64, c, it is multiplied, so that r = c m - 1 is a float and |r| <= 1/32; log2 |x| is
 * e - log2 c + log2(1 + r) as two floats, with the first two terms of the series exact. y times that is two floats again, w + wl = n + f, and |x|^y = 2^n 2^f. Before
 * the last step nothing but f has been rounded to a float's precision: below 1.25 ulp (10^7 samples of each of: any bits; x from 0.01 to 4; results near the
 * largest and the smallest; x near 1; small integers and halves as y). Zeros, infinities, NaN and negative x are put right in a function that is called when there
 * are any; scalef rounds once where the result is a denormal. libmvec's has 0.73 ulp and takes two and a half times as long. */
#ifndef EMIT_POWER_TEXT_H
#define EMIT_POWER_TEXT_H

#include "emit/lanes_text.h"

static const char power_text[] =
    LANES_BEGIN("pow", "float", LANES_OF_F32)
    "typedef uint32_t pow_bits __attribute__((vector_size(64)));\n"
    "typedef int32_t  pow_mask __attribute__((vector_size(64)));\n"
    "\n"
    "static inline pow_v16 pow_fma(pow_v16 a, pow_v16 b, pow_v16 c)\n"
    "{\n"
    "    return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);\n"
    "}\n"
    "\n"
    "static inline pow_v16 pow_of(pow_bits table_at, const float *table) /* table[table_at % 32] */\n"
    "{\n"
    "    return __builtin_ia32_vpermt2varps512_mask((pow_mask)table_at, *(const pow_v16 *)table, *(const pow_v16 *)(table + 16), (unsigned short)-1);\n"
    "}\n"
    "\n"
    "static inline pow_v16 pow_all(float x)\n"
    "{\n"
    "    return (pow_v16){ x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x };\n"
    "}\n"
    "\n"
    "/* What is special: x not a positive number, |y| above 2^32, NaN; o is right for the others' |x|. */\n"
    "static __attribute__((noinline)) pow_v16 pow_special(pow_v16 x, pow_v16 y, pow_v16 o)\n"
    "{\n"
    "    pow_bits u = (pow_bits)x & 0x7fffffffu, minus = (pow_bits)((pow_mask)x >> 31), v = (pow_bits)y & 0x7fffffffu;\n"
    "    pow_bits ends = (pow_bits)((u == 0) | (u == 0x7f800000u)), far = (pow_bits)(v > 0x4f800000u) | ends;\n"
    "    pow_bits to = (pow_bits)(((pow_mask)y ^ (pow_mask)(u - 0x3f800000u)) >> 31); /* all ones: towards 0 */\n"
    "    pow_bits one = (pow_bits)((u == 0x3f800000u) | (v == 0)), nan = (pow_bits)((u > 0x7f800000u) | (v > 0x7f800000u));\n"
    "    pow_v16  h = 0.5f * y;\n"
    "    pow_bits whole = (pow_bits)(__builtin_ia32_rndscaleps_mask(y, 11, y, -1, 4) == y);\n"
    "    pow_bits odd = whole & (pow_bits)(__builtin_ia32_rndscaleps_mask(h, 11, h, -1, 4) != h);\n"
    "    pow_bits r = (far & ~to & 0x7f800000u) | (~far & (pow_bits)o);\n"
    "    r = (one & 0x3f800000u) | (~one & r), nan = (nan & ~one) | (minus & ~whole & ~ends);\n"
    "    r = (nan & 0x7fc00000u) | (~nan & r);\n"
    "    return (pow_v16)(r | (minus & odd & 0x80000000u));\n"
    "}\n"
    "\n"
    LANES_HEAD("pow_v16", "_ZGVeN16vv_pow_f32", TWO)
    "    static const float inverse[32] __attribute__((aligned(64))) = {\n"
    "        1.0f, 0.953125f, 0.921875f, 0.90625f, 0.875f, 0.859375f, 0.828125f, 0.8125f,\n"
    "        0.796875f, 0.765625f, 0.75f, 0.734375f, 0.71875f, 0.703125f, 0.6875f, 0.671875f,\n"
    "        0.65625f, 0.640625f, 0.640625f, 0.625f, 0.609375f, 0.59375f, 0.59375f, 0.578125f,\n"
    "        0.5625f, 0.5625f, 0.546875f, 0.53125f, 0.53125f, 0.515625f, 0.515625f, 0.5f\n"
    "    };\n"
    "    static const float high[32] __attribute__((aligned(64))) = {\n"
    "        0.0f, 0.0692749023f, 0.117370605f, 0.142028809f, 0.192626953f, 0.21862793f, 0.272094727f, 0.299560547f,\n"
    "        0.327575684f, 0.385314941f, 0.415039062f, 0.44543457f, 0.47644043f, 0.508117676f, 0.540588379f, 0.573730469f,\n"
    "        0.607666016f, 0.642456055f, 0.642456055f, 0.678100586f, 0.714599609f, 0.752075195f, 0.752075195f, 0.790527344f,\n"
    "        0.830078125f, 0.830078125f, 0.870727539f, 0.912536621f, 0.912536621f, 0.955627441f, 0.955627441f, 1.0f\n"
    "    };\n"
    "    static const float low[32] __attribute__((aligned(64))) = {\n"
    "        0.0f, -1.22399069e-05f, -1.36548306e-05f, -9.8037217e-06f, 1.81248179e-05f, 1.23567879e-05f, -1.51811255e-05f, -2.65016098e-07f,\n"
    "        -1.02556521e-06f, -2.47855223e-05f, -1.56322119e-06f, -2.34219897e-05f, -2.38574444e-06f, 2.92278892e-05f, -1.99975439e-05f, 4.77654794e-06f,\n"
    "        1.65615966e-05f, -8.0593054e-06f, -8.0593054e-06f, -2.86808245e-05f, -1.82823726e-06f, -2.70875603e-06f, -2.70875603e-06f, 1.92906209e-05f,\n"
    "        -3.12644238e-06f, -3.12644238e-06f, -1.05560075e-05f, 5.37655922e-07f, 5.37655922e-07f, -2.15607652e-05f, -2.15607652e-05f, 0.0f\n"
    "    };\n"
    "    pow_bits u = (pow_bits)x & 0x7fffffffu;\n"
    "    pow_v16  m = __builtin_ia32_getmantps512_mask((pow_v16)u, 0, x, -1, 4);\n"
    "    pow_bits j = (pow_bits)m >> 18;\n"
    "    pow_v16  e = __builtin_ia32_getexpps512_mask((pow_v16)u, x, -1, 4) + pow_of(j, high);\n"
    "    pow_v16  r = pow_fma(m, pow_of(j, inverse), pow_all(-1.0f)), h = r * -0.5f, s = pow_fma(h, r, r), sl = pow_fma(h, r, r - s), rr = r * r;\n"
    "    pow_v16  q = pow_fma(pow_fma(r, pow_all(-0.16687881012f), pow_all(0.20019445829f)), rr, pow_fma(r, pow_all(-0.24999991223f), pow_all(0.33333327469f)));\n"
    "    pow_v16  l = pow_fma(s, pow_all(1.44269502f), e), ll = pow_of(j, low) + pow_fma(s, pow_all(1.44269502f), e - l);\n"
    "    ll = pow_fma(s, pow_all(1.92596303e-8f), ll), ll = pow_fma(pow_fma(rr * r, q, sl), pow_all(1.44269502f), ll);\n"
    "    pow_v16  w = y * l, wl = pow_fma(y, ll, pow_fma(y, l, -w)), n = __builtin_ia32_rndscaleps_mask(w + wl, 8, w, -1, 4), f = (w - n) + wl;\n"
    "    f = __builtin_ia32_minps512_mask(f, pow_all(1.0f), f, -1, 4), f = __builtin_ia32_maxps512_mask(f, pow_all(-1.0f), f, -1, 4);\n"
    "    pow_v16  ff = f * f, p = pow_fma(pow_fma(f, pow_all(1.53533618e-4f), pow_all(1.33988745e-3f)), ff, pow_fma(f, pow_all(9.61843736e-3f), pow_all(0.0555033247f)));\n"
    "    p = pow_fma(p, ff, pow_fma(f, pow_all(0.240226479f), pow_all(0.693147203f)));\n"
    "    pow_v16  o = __builtin_ia32_scalefps512_mask(pow_fma(p, f, pow_all(1.0f)), n, x, -1, 4);\n"
    "    unsigned special = __builtin_ia32_ucmpd512_mask((pow_mask)((pow_bits)x - 1), (pow_mask)((pow_bits){ 0 } + 0x7f7fffffu), 5, (unsigned short)-1);\n"
    "    special |= __builtin_ia32_ucmpd512_mask((pow_mask)((pow_bits)y & 0x7fffffffu), (pow_mask)((pow_bits){ 0 } + 0x4f800000u), 6, (unsigned short)-1);\n"
    "    return __builtin_expect(special != 0, 0) ? pow_special(x, y, o) : o;\n"
    "}\n"
    LANES_END("pow", "float", "pow_f32", "vv", TWO, "_ZGVeN16vv_pow_f32(pow_all(x), pow_all(y))[0]", "powf(x, y)", LANES_OF_F32);

#endif
