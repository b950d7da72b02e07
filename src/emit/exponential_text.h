/* The exponential of f64 as text of the program: 8 at once where the processor has AVX-512 and gcc takes a function's form for vectors by its name, libmvec's elsewhere.
 *
 * e^x = 2^n e^r, n the multiple of 1/16 that is nearest to x / log 2, |r| <= log 2 / 32, log 2 in two parts. Adding 1.5 * 2^48 rounds to such a multiple, whose last bits say
 * which of 16 powers of 2^(1/16) it takes; scalef takes the whole part, and rounds once where the result is a denormal. Below 1.13 ulp (2^20 samples of each of: -1 to 1;
 * -750 to 750; what comes out as denormals). NaN stays, what is too large is infinite. libmvec's takes twice as long. */
#ifndef EMIT_EXPONENTIAL_TEXT_H
#define EMIT_EXPONENTIAL_TEXT_H

#include "emit/lanes_text.h"

static const char exponential_text[] =
    LANES_BEGIN("exp", "double", LANES_OF_F64)
    "typedef long long exp_bits __attribute__((vector_size(64)));\n"
    "\n"
    "static inline exp_v8 exp_fma(exp_v8 a, exp_v8 b, double c)\n"
    "{\n"
    "    return __builtin_ia32_vfmaddpd512_mask(a, b, (exp_v8){ c, c, c, c, c, c, c, c }, -1, 4);\n"
    "}\n"
    "\n"
    LANES_HEAD("exp_v8", "_ZGVeN8v_exp_f64", ONE)
    "    static const double power[16] __attribute__((aligned(64))) = {\n"
    "        1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916, 1.189207115002721, 1.241857812073484, 1.2968395546510096, 1.3542555469368927,\n"
    "        1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543, 1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474\n"
    "    };\n"
    "    const unsigned char all = (unsigned char)-1;\n"
    "    const unsigned char some = __builtin_ia32_cmppd512_mask(x, (exp_v8){ 0 } - 745.2, 21, all, 4); /* not below: else it is 0, and nothing underflows */\n"
    "    exp_v8 c = __builtin_ia32_minpd512_mask((exp_v8){ 0 } + 710.0, x, x, all, 4); /* NaN stays */\n"
    "    exp_v8 t = exp_fma(c, (exp_v8){ 0 } + 1.4426950408889634, 422212465065984.0), n = t - 422212465065984.0;\n"
    "    exp_v8 r = __builtin_ia32_vfmaddpd512_mask(n, (exp_v8){ 0 } - 0.693147180369123816490, c, all, 4);\n"
    "    r = __builtin_ia32_vfmaddpd512_mask(n, (exp_v8){ 0 } - 1.90821492927058770002e-10, r, all, 4);\n"
    "    exp_v8 q = exp_fma(r, (exp_v8){ 0 } + 0.0013870443094578249, 0.008333478752197435);\n"
    "    q = exp_fma(exp_fma(exp_fma(q, r, 0.041666668028717706), r, 0.1666666666412791), r, 0.49999999999976164);\n"
    "    q = __builtin_ia32_vfmaddpd512_mask(r * r, q, r, all, 4);\n"
    "    exp_v8 p = __builtin_ia32_vpermt2varpd512_mask((exp_bits)t, *(const exp_v8 *)power, *(const exp_v8 *)(power + 8), all);\n"
    "    return __builtin_ia32_scalefpd512_mask(__builtin_ia32_vfmaddpd512_mask(p, q, p, all, 4), n, (exp_v8){ 0 }, some, 4);\n"
    "}\n"
    LANES_END("exp", "double", "exp_f64", "v", ONE, "_ZGVeN8v_exp_f64((exp_v8){ x })[0]", "exp(x)", LANES_OF_F64);

#endif
