#include "emit/helpers.h"

#include "emit/complex_text.h"
#include "emit/dot_rows_text.h"
#include "emit/exponential_text.h"
#include "emit/lanes_text.h"
#include "emit/philox_text.h"
#include "emit/power_text.h"
#include "emit/remainder_text.h"
#include "emit/turning_text.h"

/* 16 at once by the processor's first 14 bits and one step of Newton's, y + y (1 - x y y) / 2, below 1.05 ulp (each 37th float): a root and a division take one and
 * a half times as long. The step has no meaning at zeros and infinities, whose first bits are right. */
static const char rsqrt_text[] =
    LANES_BEGIN("rsqrt", "float", LANES_OF_F32)
    "\n" LANES_HEAD("rsqrt_v16", "_ZGVeN16v_rsqrt_f32", ONE)
    "    const unsigned short all = (unsigned short)-1;\n"
    "    rsqrt_v16 y = __builtin_ia32_rsqrt14ps512_mask(x, x, all), one = (rsqrt_v16){ 0 } + 1.0f;\n"
    "    rsqrt_v16 off = __builtin_ia32_vfmaddps512_mask(-x * y, y, one, all, 4); /* NaN at zeros and infinities */\n"
    "    return __builtin_ia32_vfmaddps512_mask(y, off * 0.5f, y, __builtin_ia32_cmpps512_mask(off, off, 7, all, 4), 4);\n"
    "}\n"
    LANES_END("rsqrt", "float", "rsqrt_f32", "v", ONE, "_ZGVeN16v_rsqrt_f32((rsqrt_v16){ x })[0]", "1.0f / sqrtf(x)", LANES_OF_F32);

/* There are vectors that convert between f64 and integers of 64 bits. */
#define DIVIDES_ALONG "#if defined __AVX512DQ__ && defined __GNUC__ && !defined __CUDACC__\n"

/* A quotient of 0 that is left as it is has its sign from q, but not by what adds a zero of the other sign. */
#define IS_LEFT "((rest - rest == 0) & ((__builtin_constant_p(c) && c > 0) || rest != 0))"
#define DIVIDES "#else\n    (void)inverse;\n    return x / c;\n#endif\n}\n"

/* Sines and cosines under names of their own: where both are taken of one number gcc makes one call of them, which has no form for vectors. */
#define APART(fn, type, name) \
    "#if defined __GNUC__ && !defined __clang__ && defined __x86_64__ && defined __gnu_linux__ && !defined HLO_NO_LIBMVEC\n" \
    "HLO_VECTOR __attribute__((const)) " type " " name "(" type ") __asm__(\"" fn "\");\n" \
    "#else\n" \
    "static inline " type " " name "(" type " x)\n{\n    return " fn "(x);\n}\n" \
    "#endif\n"

/* A number that is known and none of which is NaN asks the other one, and takes itself of two zeros, at once. */
#define NUMBER_FIRST(choice) "#if defined __GNUC__ && !defined __CUDACC__\n    if (__builtin_constant_p(a) && a == a)\n        return " choice ";\n#endif\n"

/* $T the type, $U the unsigned type of its width, $M one that arithmetic wraps in, $W one of twice the width, $Q a float that holds it, $N bits, $X the name's type,
 * $LO and $HI the bounds, $END the first value above, $f the suffix of libm, $R the real type, $C its name, $P the dialect's bool, $E $B $K exponent and mantissa bits, bias, kind. */
/* Of loops that are unrolled gcc would have the one that follows keep the first element in a register, and makes no vectors of such a loop. */
#define KEEP_FIRST "#if defined __GNUC__\n    if (n >= 16)\n        __asm__ volatile(\"\" : \"+m\"(*($T(*)[16])to)); /* the first one is read from there */\n#endif\n"

/* For vectors as wide as those that loops are made of. */
#define HALF_VECTOR(type, bytes, n, body) \
    "    typedef _Float16 " type " __attribute__((vector_size(" bytes "), aligned(2), may_alias));\n" \
    "    for (; done + " n " <= n; done += " n ")" body
#define HALF_VECTORS(of32, of16, of8) "    int64_t done = 0;\n" HALF_VECTOR("v32h", "64", "32", of32) HALF_VECTOR("v16h", "32", "16", of16) HALF_VECTOR("v8h", "16", "8", of8)
#define LOAD_HALVES(type) "\n        *(" type " *)(to + done) = *(const " type " *)(from + done);\n"
#define HIDE_HALVES(type) " {\n        " type " x = *(const " type " *)(from + done);\n        __asm__(\"\" : \"+v\"(x));\n        *(" type " *)(to + done) = x;\n    }\n"
#define EXTREME_OF_HALVES(name, choice, last) \
    { H_EXACT, name "_half", name "_f32", \
      "hlo_half " name "_half(hlo_half a, hlo_half b)\n{\n    hlo_half r = " choice "\n    (void)" name "_f32;\n" last "}\n" }

/* A float between two as patterns of bits: the smaller one of what is above 0 is the smaller number, of what is below the smaller one without a sign. */
#define BOUNDED(f, float_type, bits) \
    { H_EXACT, f "_bounded", f "_as_u" bits " u" bits "_as_" f, \
      float_type " " f "_bounded(" float_type " x, " float_type " low, " float_type " high) /* high is not below 0, low is not -0; NaN is 0 */\n{\n" \
      "    int" bits "_t most = (int" bits "_t)" f "_as_u" bits "(high), least = (int" bits "_t)" f "_as_u" bits "(low), i = (int" bits "_t)" f "_as_u" bits "(x);\n" \
      "    i = i < most ? i : most;\n" \
      "    uint" bits "_t u = low < 0 ? ((uint" bits "_t)i < (uint" bits "_t)least ? (uint" bits "_t)i : (uint" bits "_t)least) : (uint" bits "_t)(i > least ? i : least);\n" \
      "    return u" bits "_as_" f "(u & -(uint" bits "_t)(x == x));\n}\n" },
/* The last float below the first value above has all upper bits of the last integer. */
#define TO_INT(f, float_type, bits, suffix) \
    { H_TO_INT, f "_to_", f "_bounded", \
      "$T " f "_to_$X(" float_type " x)\n{\n" \
      "    " float_type " below = u" bits "_as_" f "(" f "_as_u" bits "($END" suffix ") - 1);\n" \
      "    return ($T)" f "_bounded(x, (" float_type ")$LO, below) | (-($T)(x >= $END" suffix ") & $HI);\n}\n" },

/* The least of eight numbers without sign is one instruction; FLIP makes such of what is sought. */
#define WORDS_IN_VECTOR(T, FLIP) \
    "#if defined __SSE4_1__ && defined __GNUC__ && !defined __clang__\n    typedef short v8 __attribute__((vector_size(16), aligned(2), may_alias));\n" \
    "    return (" T ")(__builtin_ia32_phminposuw128((v8)(*(const v8 *)x ^ " FLIP "))[0] ^ " FLIP ");\n#else\n"

static const Helper helpers[] = {
    { H_EXACT, "clamp_index", "", "int64_t clamp_index(int64_t i, int64_t hi)\n{\n    return i < 0 ? 0 : i > hi ? hi : i;\n}\n" },
    { H_EXACT, "clamp_s32", "", "int32_t clamp_s32(int32_t i, int32_t hi)\n{\n    return i < 0 ? 0 : i > hi ? hi : i;\n}\n" },
    { H_EXACT, "floor_div", "", "int64_t floor_div(int64_t a, int64_t b)\n{\n    return a / b - (a % b < 0);\n}\n" },
    { H_EXACT, "floor_mod", "", "int64_t floor_mod(int64_t a, int64_t b)\n{\n    int64_t r = a % b;\n    return r < 0 ? r + b : r;\n}\n" },
    { H_EXACT, "f32_as_u32", "", "uint32_t f32_as_u32(float x)\n{\n    union { float f; uint32_t u; } v = { x };\n    return v.u;\n}\n" },
    { H_EXACT, "u32_as_f32", "", "float u32_as_f32(uint32_t x)\n{\n    union { uint32_t u; float f; } v = { x };\n    return v.f;\n}\n" },
    { H_EXACT, "f64_as_u64", "", "uint64_t f64_as_u64(double x)\n{\n    union { double f; uint64_t u; } v = { x };\n    return v.u;\n}\n" },
    { H_EXACT, "u64_as_f64", "", "double u64_as_f64(uint64_t x)\n{\n    union { uint64_t u; double f; } v = { x };\n    return v.f;\n}\n" },

    /* Integers: two's complement that wraps; x / 0 is all ones, x % 0 is x. */
    { H_INT, "add", "", "$T add_$X($T a, $T b)\n{\n    return ($T)(($M)a + ($M)b);\n}\n" },
    { H_INT, "sub", "", "$T sub_$X($T a, $T b)\n{\n    return ($T)(($M)a - ($M)b);\n}\n" },
    { H_INT, "mul", "", "$T mul_$X($T a, $T b)\n{\n    return ($T)(($M)a * ($M)b);\n}\n" },
    { H_INT, "neg", "", "$T neg_$X($T a)\n{\n    return ($T)(0 - ($M)a);\n}\n" },
    { H_INT, "abs", "", "$T abs_$X($T a)\n{\n    return a < 0 ? ($T)(0 - ($M)a) : a;\n}\n" },
    { H_INT, "sign", "", "$T sign_$X($T a)\n{\n    return ($T)((a > 0) - (a < 0));\n}\n" },
    { H_INT, "max", "", "$T max_$X($T a, $T b)\n{\n    return a > b ? a : b;\n}\n" },
    { H_INT, "min", "", "$T min_$X($T a, $T b)\n{\n    return a < b ? a : b;\n}\n" },
    /* Floats have vectors that divide: quotients of up to 32 bits are next to a whole number only where they are one (1.5 M of s8 2440 and 180 us, of s32 2470 and 480). */
    { H_EXACT, "div_s64", "", "int64_t div_s64(int64_t a, int64_t b)\n{\n    return b == 0 ? -1 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;\n}\n" },
    { H_EXACT, "div_u64", "", "uint64_t div_u64(uint64_t a, uint64_t b)\n{\n    return b == 0 ? (uint64_t)-1 : a / b;\n}\n" },
    { H_SIGNED, "div", "",
      "$T div_$X($T a, $T b)\n{\n#if defined __GNUC__ && !defined __CUDACC__\n    if (!__builtin_constant_p(b))\n"
      "        return b == 0 ? -1 : b == -1 ? ($T)(0 - ($M)a) : ($T)(($Q)a / ($Q)b);\n#endif\n"
      "    return b == 0 ? -1 : b == -1 ? ($T)(0 - ($M)a) : ($T)(a / b);\n}\n" },
    { H_UNSIGNED, "div", "",
      "$T div_$X($T a, $T b)\n{\n#if defined __GNUC__ && !defined __CUDACC__\n    if (!__builtin_constant_p(b))\n"
      "        return b == 0 ? ($T)-1 : sizeof a < 4 ? ($T)(($Q)a / ($Q)b) : ($T)(($Q)(int64_t)a / ($Q)(int64_t)b); /* with a sign they are converted sooner */\n#endif\n"
      "    return b == 0 ? ($T)-1 : ($T)(a / b);\n}\n" },
    { H_EXACT, "rem_s64", "", "int64_t rem_s64(int64_t a, int64_t b)\n{\n    return b == 0 ? a : b == -1 ? 0 : a % b;\n}\n" },
    { H_EXACT, "rem_u64", "", "uint64_t rem_u64(uint64_t a, uint64_t b)\n{\n    return b == 0 ? a : a % b;\n}\n" },
    /* Above 32 bits 1 / b is made a little too small, so that no quotient is too large: the first one is too small by at most a / b / 2^49 + 1, what the rest has of b by 1
     * (64 K of s64 124 and 43 us). */
    { H_EXACT, "quotient_along", "",
      "uint64_t quotient_along(uint64_t a, uint64_t b)\n{\n    const double one_by = 0x1.ffffffffffff8p-1 / (double)b; /* b is not 0 */\n"
      "    const uint64_t most = (uint64_t)((double)a * one_by), rest = a - most * b, more = (uint64_t)((double)rest * one_by);\n"
      "    return most + more + (rest - more * b >= b);\n}\n" },
    /* By a constant d above 2^(n - 1), and below 2^n, a is multiplied by a number of 64 digits, the upper ones of 2^(63 + n) / d; where a has 64 digits itself, one more
     * has to be added (Granlund and Montgomery, "Division by invariant integers using multiplication"). Vectors have no such product, but of halves (300 K of s64 by 10 139 and 72 us). */
    { H_EXACT, "upper_product", "",
      "uint64_t upper_product(uint64_t a, uint64_t b) /* bits 64 to 127 */\n{\n    const uint64_t low = 0xffffffffu, c = (a >> 32) * (b & low) + ((a & low) * (b & low) >> 32);\n"
      "    const uint64_t d = (a & low) * (b >> 32) + (c & low);\n    return (a >> 32) * (b >> 32) + (c >> 32) + (d >> 32);\n}\n" },
    { H_EXACT, "is_divisor", "", "int is_divisor(uint64_t b) /* that is no shift */\n{\n    return (b & (b - 1)) != 0;\n}\n" },
    { H_EXACT, "div_along_s64", "quotient_along upper_product is_divisor div_s64",
      "int64_t div_along_s64(int64_t a, int64_t b)\n{\n    (void)quotient_along, (void)upper_product, (void)is_divisor;\n" DIVIDES_ALONG
      "    const uint64_t s = (uint64_t)(a >> 63), t = (uint64_t)(b >> 63), sign = s ^ t, of = ((uint64_t)a ^ s) - s, by = ((uint64_t)b ^ t) - t;\n"
      "    if (__builtin_constant_p(b) && is_divisor(by)) {\n        const int n = 64 - __builtin_clzll(by);\n"
      "        const uint64_t q = upper_product(of, (uint64_t)(((unsigned __int128)1 << (63 + n)) / by + 1)) >> (n - 1);\n        return (int64_t)((q ^ sign) - sign);\n    }\n"
      "    if (!__builtin_constant_p(b)) {\n        const uint64_t q = quotient_along(of, b == 0 ? 1 : by);\n"
      "        return b == 0 ? -1 : (int64_t)((q ^ sign) - sign);\n    }\n#endif\n    return div_s64(a, b);\n}\n" },
    { H_EXACT, "div_along_u64", "quotient_along upper_product is_divisor div_u64",
      "uint64_t div_along_u64(uint64_t a, uint64_t b)\n{\n    (void)quotient_along, (void)upper_product, (void)is_divisor;\n" DIVIDES_ALONG
      "    if (__builtin_constant_p(b) && is_divisor(b)) {\n        const int n = 64 - __builtin_clzll(b);\n"
      "        const uint64_t q = upper_product(a, (uint64_t)(((((unsigned __int128)1 << n) - b) << 64) / b + 1));\n"
      "        return (q + ((a - q) >> 1)) >> (n - 1);\n    }\n"
      "    if (!__builtin_constant_p(b)) {\n        const uint64_t q = quotient_along(a, b == 0 ? 1 : b);\n"
      "        return b == 0 ? (uint64_t)-1 : q;\n    }\n#endif\n    return div_u64(a, b);\n}\n" },
    { H_EXACT, "rem_along_s64", "div_along_s64 rem_s64",
      "int64_t rem_along_s64(int64_t a, int64_t b)\n{\n    (void)div_along_s64;\n" DIVIDES_ALONG
      "    if (!__builtin_constant_p(b) || is_divisor(b < 0 ? 0 - (uint64_t)b : (uint64_t)b))\n        return b == 0 ? a : (int64_t)((uint64_t)a - (uint64_t)div_along_s64(a, b) * (uint64_t)b);\n#endif\n    return rem_s64(a, b);\n}\n" },
    { H_EXACT, "rem_along_u64", "div_along_u64 rem_u64",
      "uint64_t rem_along_u64(uint64_t a, uint64_t b)\n{\n    (void)div_along_u64;\n" DIVIDES_ALONG
      "    if (!__builtin_constant_p(b) || is_divisor(b))\n        return b == 0 ? a : a - div_along_u64(a, b) * b;\n#endif\n    return rem_u64(a, b);\n}\n" },
    /* lower_quotient.c. What is left is made 2^24 times as large, so that it is no subnormal, with which some processors take a hundred times as long; it is not finite where x is not, and
     * where x or the quotient is at the end of the range. A quotient of 0 has its sign from q. */
    { H_EXACT, "div_known_f32", "",
      "float div_known_f32(float x, float c, float inverse) /* by c, which is positive; neither x nor the quotient is near the ends of the range */\n{\n#if defined __FMA__ && defined __GNUC__\n"
      "    const float q = x * inverse;\n    return __builtin_fmaf(-__builtin_fmaf(q, c, -x), inverse, q);\n" DIVIDES },
    { H_EXACT, "div_known_f64", "",
      "double div_known_f64(double x, double c, double inverse) /* by c, which is positive; neither x nor the quotient is near the ends of the range */\n{\n#if defined __FMA__ && defined __GNUC__\n"
      "    const double q = x * inverse;\n    return __builtin_fma(-__builtin_fma(q, c, -x), inverse, q);\n" DIVIDES },
    { H_EXACT, "div_by_f32", "",
      "float div_by_f32(float x, float c, float inverse) /* by c */\n{\n#if defined __AVX512F__ && defined __GNUC__\n"
      "    const float q = x * inverse, rest = __builtin_fmaf(q, c * 0x1p24f, x * -0x1p24f);\n    return " IS_LEFT " ? __builtin_fmaf(-rest, inverse * 0x1p-24f, q) : q;\n" DIVIDES },
    { H_EXACT, "div_by_f64", "",
      "double div_by_f64(double x, double c, double inverse) /* by c */\n{\n#if defined __AVX512F__ && defined __GNUC__\n"
      "    const double q = x * inverse, rest = __builtin_fma(q, c * 0x1p53, x * -0x1p53);\n    return " IS_LEFT " ? __builtin_fma(-rest, inverse * 0x1p-53, q) : q;\n" DIVIDES },
    { H_EXACT, "div_bounded_f32", "",
      "float div_bounded_f32(float x, float c, float inverse) /* by c, which is positive and near 1; x is not near the largest numbers, or NaN */\n{\n#if defined __FMA__ && defined __GNUC__\n"
      "    const float q = x * inverse, rest = __builtin_fmaf(q, c * 0x1p24f, x * -0x1p24f);\n    return __builtin_fmaf(rest, inverse * -0x1p-24f, q);\n" DIVIDES },
    { H_EXACT, "div_bounded_f64", "",
      "double div_bounded_f64(double x, double c, double inverse) /* by c, which is positive and near 1; x is not near the largest numbers, or NaN */\n{\n#if defined __FMA__ && defined __GNUC__\n"
      "    const double q = x * inverse, rest = __builtin_fma(q, c * 0x1p53, x * -0x1p53);\n    return __builtin_fma(rest, inverse * -0x1p-53, q);\n" DIVIDES },
    { H_EXACT, "div_scale_f32", "", "float div_scale_f32(float c) /* brings c near 1 */\n{\n    const float a = c < 0 ? -c : c;\n    return a < 0x1p-100f ? 0x1p100f : a > 0x1p100f ? 0x1p-100f : 1;\n}\n" },
    { H_EXACT, "div_scale_f64", "", "double div_scale_f64(double c) /* brings c near 1 */\n{\n    const double a = c < 0 ? -c : c;\n    return a < 0x1p-900 ? 0x1p900 : a > 0x1p900 ? 0x1p-900 : 1;\n}\n" },
    { H_SIGNED, "rem", "div_$",
      "$T rem_$X($T a, $T b)\n{\n#if defined __GNUC__ && !defined __CUDACC__\n    if (!__builtin_constant_p(b))\n"
      "        return ($T)(($M)a - ($M)div_$X(a, b) * ($M)b);\n#endif\n    return b == 0 ? a : b == -1 ? 0 : ($T)(a % b);\n}\n" },
    { H_UNSIGNED, "rem", "div_$",
      "$T rem_$X($T a, $T b)\n{\n#if defined __GNUC__ && !defined __CUDACC__\n    if (!__builtin_constant_p(b))\n"
      "        return ($T)(($M)a - ($M)div_$X(a, b) * ($M)b);\n#endif\n    return b == 0 ? a : ($T)(a % b);\n}\n" },
    { H_SIGNED, "pow", "",
      "$T pow_$X($T a, $T b)\n{\n    if (b < 0)\n        return a == 1;\n    $M r = 1, x = ($M)a;\n"
      "    for ($U n = ($U)b; n; n >>= 1, x *= x)\n        if (n & 1)\n            r *= x;\n    return ($T)r;\n}\n" },
    { H_UNSIGNED, "pow", "",
      "$T pow_$X($T a, $T b)\n{\n    $M r = 1, x = a;\n    for (; b; b >>= 1, x *= x)\n        if (b & 1)\n            r *= x;\n"
      "    return ($T)r;\n}\n" },
    { H_INT, "mulhi", "", "$T mulhi_$X($T a, $T b)\n{\n    return ($T)((($W)a * ($W)b) >> $N);\n}\n" },
    { H_INT, "shl", "", "$T shl_$X($T a, $T n)\n{\n    return ($U)n < $N ? ($T)(($M)a << ($U)n) : 0;\n}\n" },
    { H_UNSIGNED, "shr", "", "$T shr_$X($T a, $T n)\n{\n    return n < $N ? ($T)(a >> n) : 0;\n}\n" },
    { H_SIGNED, "shr", "", "$T shr_$X($T a, $U n)\n{\n    return ($T)(a >> (n < $N ? n : $N - 1));\n}\n" },
    /* Not __builtin_popcountll, nor a form that is taken for it: of two lanes that are constants gcc 12 says that they are what it counts in them. Lanes of 32 bits are four at least. */
    { H_UNSIGNED, "popcnt", "",
      "$T popcnt_$X($T a)\n{\n#if defined __AVX512VPOPCNTDQ__ && defined __GNUC__ && !defined __CUDACC__\n    if (sizeof a > 2)\n"
      "        return ($T)(__builtin_popcount((uint32_t)a) + __builtin_popcount((uint32_t)((uint64_t)a >> 32)));\n#endif\n    const $T ones = ($T)~($T)0;\n    $T b = a;\n    b = ($T)(b - (b >> 1 & ones / 3));\n    b = ($T)((b & ones / 5) + (b >> 2 & ones / 5));\n"
      "    b = ($T)((b & ones / 17) + (b >> 4 & ones / 17));\n    return ($T)(($T)(b * (ones / 255)) >> (sizeof b * 8 - 8));\n}\n" },
    /* Of numbers of 8 and 16 bits compilers make no vectors that count zeros. */
    { H_UNSIGNED, "clz", "popcnt_$",
      "$T clz_$X($T a)\n{\n    $T b = ($T)(a | a >> 1);\n    if (sizeof a > 2)\n        return ($T)(a ? __builtin_clzll(a) - (64 - $N) : $N);\n"
      "    b = ($T)(b | b >> 2);\n    b = ($T)(b | b >> 4);\n    b = ($T)(b | b >> 8);\n    return ($T)($N - popcnt_$X(b));\n}\n" },
    { H_SIGNED, "wrap", "", "int8_t wrap_$X(int8_t a)\n{\n    return (int8_t)((int8_t)((uint8_t)a << (8 - $N)) >> (8 - $N));\n}\n" },
    { H_UNSIGNED, "wrap", "", "uint8_t wrap_$X(uint8_t a)\n{\n    return a & ((1 << $N) - 1);\n}\n" },
    { H_SIGNED, "saturate", "", "$T saturate_$X(int64_t a)\n{\n    return a < $LO ? $LO : a > $HI ? $HI : ($T)a;\n}\n" },
    { H_UNSIGNED, "saturate", "", "$T saturate_$X(uint64_t a)\n{\n    return a > $HI ? $HI : ($T)a;\n}\n" },
    { H_SIGNED, "total", "", "$T total_$X($T a)\n{\n    return a < 0 ? ($T)(a ^ $HI) : a;\n}\n" },
    { H_SIGNED, "stochastic", "",
      "int64_t stochastic_$X(double x, uint64_t r, int bits)\n{\n    if (x != x)\n        return 0;\n"
      "    if (x <= (double)$LO)\n        return $LO;\n    if (x >= (double)$HI)\n        return $HI;\n"
      "    double a = x < 0 ? -x : x;\n    int64_t t = (int64_t)a;\n"
      "    uint64_t q = (uint64_t)((a - (double)t) * (bits == 64 ? 18446744073709551616.0 : (double)(1ull << (bits & 63))));\n"
      "    t += r < q;\n    return x < 0 ? -t : t;\n}\n" },

    /* Float to integer: NaN is 0, what is out of range the nearest bound. Bounds as patterns of bits: where floats are compared gcc computes what follows from each
     * bound on a path of its own (32000 of f32, scaled, to s8 on an Emerald Rapids 16.7 and 5.0 us; 400003 of f64 to s8 on Zen 5 87 and 36). */
    BOUNDED("f32", "float", "32")
    BOUNDED("f64", "double", "64")
    { H_TO_SHORT, "f32_to_", "f32_bounded", "$T f32_to_$X(float x)\n{\n    return ($T)(int32_t)f32_bounded(x, (float)$LO, (float)$HI);\n}\n" },
    { H_TO_SHORT, "f64_to_", "f64_bounded", "$T f64_to_$X(double x)\n{\n    return ($T)(int32_t)f64_bounded(x, (double)$LO, (double)$HI);\n}\n" },
    { H_TO_SHORT, "f32_within_", "f32_bounded", "$T f32_within_$X(float x, float low, float high)\n{\n    return ($T)(int32_t)f32_bounded(x, low, high);\n}\n" },
    TO_INT("f32", "float", "32", "f")
    { H_EXACT, "f64_to_s32", "instead_f64 f64_as_u64 u64_as_f64", /* of bounds that are chosen compilers make integers, and of those choices between lanes of two widths */
      "int32_t f64_to_s32(double x)\n{\n    double c = instead_f64(instead_f64(x, x < -2147483648.0, -2147483648.0), x > 2147483647.0, 2147483647.0);\n"
      "    return (int32_t)u64_as_f64(f64_as_u64(c) & ((uint64_t)(x != x) - 1));\n}\n" },
    TO_INT("f64", "double", "64", "")

    /* Likewise of what is NaN or in range. */
    { H_TO_SHORT, "f32_in_", "", "$T f32_in_$X(float x)\n{\n    return ($T)(int32_t)(x != x ? 0.0f : x);\n}\n" },
    { H_TO_INT, "f32_in_", "", "$T f32_in_$X(float x)\n{\n    return ($T)(x != x ? 0.0f : x);\n}\n" },
    { H_TO_INT, "f64_in_", "", "$T f64_in_$X(double x)\n{\n    return ($T)(x != x ? 0.0 : x);\n}\n" },

    /* Floats. Extremes give NaN when either operand is; b > a ? b : a is one instruction of many processors, a when b is NaN. */
    /* Of one element, in no vector: the choice of a NaN through a register of integers takes as long as all the rest. */
    { H_FLOAT, "max_alone", "max_$",
      "$T max_alone_$X($T a, $T b)\n{\n#if defined __AVX512FP16__ && defined __GNUC__ && !defined __clang__\n    __asm__(\"\" : \"+v\"(a), \"+v\"(b)); /* else gcc compares what f16 they were, and jumps */\n#endif\n#if defined __GNUC__\n"
      "    typedef $T v16 __attribute__((vector_size(16)));\n    typedef int$N_t s16 __attribute__((vector_size(16)));\n"
      "    v16 r = { b > a ? b : a }, v = { b };\n    r = (v16)((s16)r | (s16)(v != v));\n    (void)max_$X;\n    return r[0];\n#else\n    return max_$X(a, b);\n#endif\n}\n" },
    { H_FLOAT, "min_alone", "min_$",
      "$T min_alone_$X($T a, $T b)\n{\n#if defined __AVX512FP16__ && defined __GNUC__ && !defined __clang__\n    __asm__(\"\" : \"+v\"(a), \"+v\"(b)); /* else gcc compares what f16 they were, and jumps */\n#endif\n#if defined __GNUC__\n"
      "    typedef $T v16 __attribute__((vector_size(16)));\n    typedef int$N_t s16 __attribute__((vector_size(16)));\n"
      "    v16 r = { b < a ? b : a }, v = { b };\n    r = (v16)((s16)r | (s16)(v != v));\n    (void)min_$X;\n    return r[0];\n#else\n    return min_$X(a, b);\n#endif\n}\n" },
    { H_FLOAT, "max", "", "$T max_$X($T a, $T b)\n{\n" NUMBER_FIRST("b <= a ? a : b") "    $T r = b > a ? b : a;\n    return b != b ? b : r;\n}\n" },
    { H_FLOAT, "min", "", "$T min_$X($T a, $T b)\n{\n" NUMBER_FIRST("b >= a ? a : b") "    $T r = b < a ? b : a;\n    return b != b ? b : r;\n}\n" },
    { H_FLOAT, "larger", "", "$T larger_$X($T a, $T b) /* a where either is NaN */\n{\n    return b > a ? b : a;\n}\n" },
    { H_FLOAT, "smaller", "", "$T smaller_$X($T a, $T b)\n{\n    return b < a ? b : a;\n}\n" },
    /* Lanes are joined in vectors: gcc makes some thirty instructions of loops, with which sums of 25088 rows of 64 take twice as long. */
    { H_EXACT, "sum_lanes_f32", "",
      "float sum_lanes_f32(float acc, const float *x) /* acc and 16 numbers */\n{\n" LANES_IN_VECTORS
      "    typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));\n    typedef float v4 __attribute__((vector_size(16)));\n"
      "    v8 a = *(const v8 *)x + *(const v8 *)(x + 8);\n"
      "    v4 b = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);\n"
      "    b += __builtin_shufflevector(b, b, 2, 3, 0, 1);\n"
      "    return acc + (b[0] + b[1]);\n"
      "#else\n    float a[8];\n    for (int k = 0; k < 8; k++)\n        a[k] = x[k] + x[k + 8];\n"
      "    return acc + (((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])));\n#endif\n}\n" },
    { H_EXACT, "sum_lanes_f64", "",
      "double sum_lanes_f64(double acc, const double *x) /* acc and 8 numbers */\n{\n" LANES_IN_VECTORS
      "    typedef double v4 __attribute__((vector_size(32), aligned(8), may_alias));\n    typedef double v2 __attribute__((vector_size(16)));\n"
      "    v4 a = *(const v4 *)x + *(const v4 *)(x + 4);\n"
      "    v2 b = __builtin_shufflevector(a, a, 0, 1) + __builtin_shufflevector(a, a, 2, 3);\n"
      "    return acc + (b[0] + b[1]);\n"
      "#else\n    double a[4];\n    for (int k = 0; k < 4; k++)\n        a[k] = x[k] + x[k + 4];\n"
      "    return acc + ((a[0] + a[2]) + (a[1] + a[3]));\n#endif\n}\n" },
    { H_EXACT, "dot_rows_f32", "", dot_rows_f32_text },
    { H_EXACT, "dot_rows_f64", "", dot_rows_f64_text },
    { H_EXACT, "philox_blocks", "", philox_blocks_text },
    { H_EXACT, "philox_pairs", "", philox_pairs_text },
    /* The instruction gives its second operand where either is NaN: what it makes both ways round has the bits of the one NaN and others. */
    { H_EXACT, "max_lanes_f32", "max_f32",
      "float max_lanes_f32(const float *x) /* of 16 numbers */\n{\n#if defined __AVX__ && defined __GNUC__ && !defined __clang__\n"
      "    typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));\n    typedef float v4 __attribute__((vector_size(16)));\n"
      "    typedef int i8 __attribute__((vector_size(32)));\n    typedef int i4 __attribute__((vector_size(16)));\n"
      "    v8 a = *(const v8 *)x, b = *(const v8 *)(x + 8);\n    a = (v8)((i8)__builtin_ia32_maxps256(a, b) | (i8)__builtin_ia32_maxps256(b, a));\n"
      "    v4 p = __builtin_shufflevector(a, a, 0, 1, 2, 3), q = __builtin_shufflevector(a, a, 4, 5, 6, 7);\n"
      "    p = (v4)((i4)__builtin_ia32_maxps(p, q) | (i4)__builtin_ia32_maxps(q, p));\n"
      "    q = __builtin_shufflevector(p, p, 2, 3, 0, 1), p = (v4)((i4)__builtin_ia32_maxps(p, q) | (i4)__builtin_ia32_maxps(q, p));\n"
      "    q = __builtin_shufflevector(p, p, 1, 0, 3, 2), p = (v4)((i4)__builtin_ia32_maxps(p, q) | (i4)__builtin_ia32_maxps(q, p));\n"
      "    (void)max_f32;\n    return p[0];\n#else\n    float y = x[0];\n    for (int k = 1; k < 16; k++)\n        y = max_f32(y, x[k]);\n    return y;\n#endif\n}\n" },
    { H_EXACT, "max_lanes_f64", "max_f64",
      "double max_lanes_f64(const double *x) /* of 8 numbers */\n{\n#if defined __AVX__ && defined __GNUC__ && !defined __clang__\n"
      "    typedef double v4 __attribute__((vector_size(32), aligned(8), may_alias));\n    typedef double v2 __attribute__((vector_size(16)));\n"
      "    typedef long long i4 __attribute__((vector_size(32)));\n    typedef long long i2 __attribute__((vector_size(16)));\n"
      "    v4 a = *(const v4 *)x, b = *(const v4 *)(x + 4);\n    a = (v4)((i4)__builtin_ia32_maxpd256(a, b) | (i4)__builtin_ia32_maxpd256(b, a));\n"
      "    v2 p = __builtin_shufflevector(a, a, 0, 1), q = __builtin_shufflevector(a, a, 2, 3);\n"
      "    p = (v2)((i2)__builtin_ia32_maxpd(p, q) | (i2)__builtin_ia32_maxpd(q, p));\n"
      "    q = __builtin_shufflevector(p, p, 1, 0), p = (v2)((i2)__builtin_ia32_maxpd(p, q) | (i2)__builtin_ia32_maxpd(q, p));\n"
      "    (void)max_f64;\n    return p[0];\n#else\n    double y = x[0];\n    for (int k = 1; k < 8; k++)\n        y = max_f64(y, x[k]);\n    return y;\n#endif\n}\n" },
    { H_EXACT, "min_lanes_f32", "min_f32",
      "float min_lanes_f32(const float *x) /* of 16 numbers */\n{\n#if defined __AVX__ && defined __GNUC__ && !defined __clang__\n"
      "    typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));\n    typedef float v4 __attribute__((vector_size(16)));\n"
      "    typedef int i8 __attribute__((vector_size(32)));\n    typedef int i4 __attribute__((vector_size(16)));\n"
      "    v8 a = *(const v8 *)x, b = *(const v8 *)(x + 8);\n    a = (v8)((i8)__builtin_ia32_minps256(a, b) | (i8)__builtin_ia32_minps256(b, a));\n"
      "    v4 p = __builtin_shufflevector(a, a, 0, 1, 2, 3), q = __builtin_shufflevector(a, a, 4, 5, 6, 7);\n"
      "    p = (v4)((i4)__builtin_ia32_minps(p, q) | (i4)__builtin_ia32_minps(q, p));\n"
      "    q = __builtin_shufflevector(p, p, 2, 3, 0, 1), p = (v4)((i4)__builtin_ia32_minps(p, q) | (i4)__builtin_ia32_minps(q, p));\n"
      "    q = __builtin_shufflevector(p, p, 1, 0, 3, 2), p = (v4)((i4)__builtin_ia32_minps(p, q) | (i4)__builtin_ia32_minps(q, p));\n"
      "    (void)min_f32;\n    return p[0];\n#else\n    float y = x[0];\n    for (int k = 1; k < 16; k++)\n        y = min_f32(y, x[k]);\n    return y;\n#endif\n}\n" },
    { H_EXACT, "min_lanes_f64", "min_f64",
      "double min_lanes_f64(const double *x) /* of 8 numbers */\n{\n#if defined __AVX__ && defined __GNUC__ && !defined __clang__\n"
      "    typedef double v4 __attribute__((vector_size(32), aligned(8), may_alias));\n    typedef double v2 __attribute__((vector_size(16)));\n"
      "    typedef long long i4 __attribute__((vector_size(32)));\n    typedef long long i2 __attribute__((vector_size(16)));\n"
      "    v4 a = *(const v4 *)x, b = *(const v4 *)(x + 4);\n    a = (v4)((i4)__builtin_ia32_minpd256(a, b) | (i4)__builtin_ia32_minpd256(b, a));\n"
      "    v2 p = __builtin_shufflevector(a, a, 0, 1), q = __builtin_shufflevector(a, a, 2, 3);\n"
      "    p = (v2)((i2)__builtin_ia32_minpd(p, q) | (i2)__builtin_ia32_minpd(q, p));\n"
      "    q = __builtin_shufflevector(p, p, 1, 0), p = (v2)((i2)__builtin_ia32_minpd(p, q) | (i2)__builtin_ia32_minpd(q, p));\n"
      "    (void)min_f64;\n    return p[0];\n#else\n    double y = x[0];\n    for (int k = 1; k < 8; k++)\n        y = min_f64(y, x[k]);\n    return y;\n#endif\n}\n" },
    { H_EXACT, "max_lanes_s16", "",
      "int16_t max_lanes_s16(const int16_t *x) /* of 8 numbers */\n{\n" WORDS_IN_VECTOR("int16_t", "0x7fff")
      "    int16_t y = x[0];\n    for (int k = 1; k < 8; k++)\n        y = x[k] > y ? x[k] : y;\n    return y;\n#endif\n}\n" },
    { H_EXACT, "min_lanes_s16", "",
      "int16_t min_lanes_s16(const int16_t *x) /* of 8 numbers */\n{\n" WORDS_IN_VECTOR("int16_t", "-0x8000")
      "    int16_t y = x[0];\n    for (int k = 1; k < 8; k++)\n        y = x[k] < y ? x[k] : y;\n    return y;\n#endif\n}\n" },
    { H_EXACT, "max_lanes_u16", "",
      "uint16_t max_lanes_u16(const uint16_t *x) /* of 8 numbers */\n{\n" WORDS_IN_VECTOR("uint16_t", "-1")
      "    uint16_t y = x[0];\n    for (int k = 1; k < 8; k++)\n        y = x[k] > y ? x[k] : y;\n    return y;\n#endif\n}\n" },
    { H_EXACT, "min_lanes_u16", "",
      "uint16_t min_lanes_u16(const uint16_t *x) /* of 8 numbers */\n{\n" WORDS_IN_VECTOR("uint16_t", "0")
      "    uint16_t y = x[0];\n    for (int k = 1; k < 8; k++)\n        y = x[k] < y ? x[k] : y;\n    return y;\n#endif\n}\n" },
    { H_FLOAT, "sign", "", "$T sign_$X($T a)\n{\n    return a > 0 ? 1 : a < 0 ? -1 : a;\n}\n" },
    { H_FLOAT, "rest", "trunc# copysign#", "$T rest_$X($T x, $T y) /* y a power of two, 1 at least */\n{\n    return copysign$f(x - trunc$f(x * (1 / y)) * y, x);\n}\n" },
    { H_FLOAT, "root", "sqrt#", "$T root_$X($T x) /* x^0.5: 0 of -0, infinity of -infinity */\n{\n    return sqrt$f(x < 0 && x + x == x ? -x : x) + 0;\n}\n" },
    { H_FLOAT, "is_finite", "", "$P is_finite_$X($T a)\n{\n    return a - a == 0;\n}\n" },
    { H_EXACT, "reduce_precision_f32", "f32_as_u32 u32_as_f32",
      "float reduce_precision_f32(float x, int exponent, int mantissa)\n{\n    uint32_t u = f32_as_u32(x), sign = u & 0x80000000u;\n"
      "    if (x != x)\n        return mantissa > 0 ? x : __builtin_inff();\n    if (mantissa < 23) {\n        int drop = 23 - mantissa;\n"
      "        u += ((1u << (drop - 1)) - 1) + (u >> drop & 1);\n        u &= ~((1u << drop) - 1);\n    }\n    if (exponent < 8) {\n"
      "        int half = (1 << (exponent - 1)) - 1, e = (int)(u >> 23 & 255);\n        if (e > 127 + half)\n            u = sign | 0x7f800000u;\n"
      "        else if (e <= 127 - half)\n            u = sign;\n    }\n    return u32_as_f32(u);\n}\n" },
    { H_EXACT, "reduce_precision_f64", "f64_as_u64 u64_as_f64",
      "double reduce_precision_f64(double x, int exponent, int mantissa)\n{\n    uint64_t u = f64_as_u64(x), sign = u & 1ull << 63;\n"
      "    if (x != x)\n        return mantissa > 0 ? x : __builtin_inf();\n    if (mantissa < 52) {\n        int drop = 52 - mantissa;\n"
      "        u += ((1ull << (drop - 1)) - 1) + (u >> drop & 1);\n        u &= ~((1ull << drop) - 1);\n    }\n    if (exponent < 11) {\n"
      "        int half = (1 << (exponent - 1)) - 1, e = (int)(u >> 52 & 2047);\n        if (e > 1023 + half)\n            u = sign | 2047ull << 52;\n"
      "        else if (e <= 1023 - half)\n            u = sign;\n    }\n    return u64_as_f64(u);\n}\n" },

    /* Functions of libm in a form that becomes part of the loop: no call, no branch, vectors of any width. |relative error| of each below 4e-7, NaN, infinities, -0
     * and denormals as they should be; exp is below 0.89 ulp (every seventh float). Adding 1.5 * 2^23 rounds to an integer n, whose bits are the sum's lowest; e^x = 2^n e^r with r = x - n log 2, log 2 in two parts. tanh and erf are
     * x p(x^2) / q(x^2) with the coefficients of Eigen. Bounds are kept as patterns of bits: those of positive numbers are in order as signed integers, those of
     * negative ones, the other way round, as unsigned ones. Where floats are compared gcc computes what follows from a bound on a path of its own. */
    { H_EXACT, "between_f32", "f32_as_u32 u32_as_f32",
      "float between_f32(float x, uint32_t low, int32_t high) /* bits of a negative number and of a positive one; NaN is one of them */\n{\n"
      "    int32_t  i = (int32_t)f32_as_u32(x) < high ? (int32_t)f32_as_u32(x) : high;\n"
      "    uint32_t u = (uint32_t)i < low ? (uint32_t)i : low;\n    return u32_as_f32(u);\n}\n" },
    { H_EXACT, "within_f32", "f32_as_u32 u32_as_f32",
      "float within_f32(float x, uint32_t most) /* |x| at most what has these bits; NaN is that */\n{\n    uint32_t u = f32_as_u32(x) & 0x7fffffffu;\n"
      "    u = u < most ? u : most;\n    return u32_as_f32(u | (f32_as_u32(x) & 0x80000000u));\n}\n" },
    { H_EXACT, "exp_f32", "f32_as_u32 u32_as_f32 between_f32",
      "float exp_f32(float x)\n{\n    float c = between_f32(x, 0xc2d20000u, 0x42b20000); /* -105, 89 */\n"
      "    float t = c * 1.44269504f + 12582912.0f, n = t - 12582912.0f, r = n * -0.693359375f + c;\n    r = n * 2.12194440e-4f + r;\n"
      "    float q = r * 0.001381446285f + 0.008368780447f;\n"
      "    q = q * r + 0.04166839429f, q = q * r + 0.1666652011f, q = q * r + 0.4999999341f, q = (q * r + 1.0f) * r + 1.0f;\n"
      "    int32_t e = (int32_t)(f32_as_u32(q) + (f32_as_u32(t) << 23)); /* q 2^n, below 2^-126 of an exponent that no float has */\n"
      "    e = e < 0x7f800000 ? e : 0x7f800000;\n"
      "    int32_t low = (int32_t)(f32_as_u32(u32_as_f32((uint32_t)e + 0x20000000u) + 2.16840434e-19f) - 0x20800000u); /* 2^64 times that, rounded to 2^-85: there a denormal's bits, else less than e */\n"
      "    float   y = u32_as_f32((uint32_t)(low > e ? low : e)); /* of no product that underflows, for which Intel's processors take long (4096 denormals on an Emerald Rapids 14.4 and 1.0 us, below -104 7.9 and 1.2) */\n"
      "    return x != x ? x : y;\n}\n" },
    /* Below 2 ulp; what would be a denormal is 0. Added to 1.5 * 2^23 + 127, n is a float's exponent already. */
    { H_EXACT, "exp_below_f32", "f32_as_u32 u32_as_f32",
      "float exp_below_f32(float x) /* of 0 at most, or NaN */\n{\n"
      "    float t = x * 1.44269504f + 12583039.0f, n = t - 12583039.0f, r = n * -0.693359375f + x;\n    r = n * 2.12194440e-4f + r;\n"
      "    float q = r * 0.008312480188f + 0.04189054998f;\n"
      "    q = q * r + 0.1666711628f, q = q * r + 0.4999922883f, q = (q * r + 1.0f) * r + 1.0f;\n"
      "    float y = q * u32_as_f32(f32_as_u32(t) << 23);\n    return u32_as_f32(f32_as_u32(y) & ((uint32_t)(x < -88.0f) - 1u)); /* not a choice of 0, which gcc would compute what follows from on a path of its own */\n}\n" },
    { H_EXACT, "exp_summed_f32", "exp_below_f32",
      "float exp_summed_f32(float x) /* of 0 at most, or infinite, or NaN; of others something that is no NaN */\n{\n"
      "    float y = exp_below_f32(x > 88.0f ? 88.0f : x);\n    return x > 88.0f ? y + x : y;\n}\n" },
    { H_EXACT, "expm1_f32", "f32_as_u32 u32_as_f32 between_f32",
      "float expm1_f32(float x)\n{\n    float c = between_f32(x, 0xc2200000u, 0x42b20000); /* -40, 89 */\n"
      "    float t = c * 1.44269504f + 12582912.0f, n = t - 12582912.0f, r = n * -0.693359375f + c;\n    r = n * 2.12194440e-4f + r;\n"
      "    float q = r * 0.001381446285f + 0.008368780447f;\n"
      "    q = q * r + 0.04166839429f, q = q * r + 0.1666652011f, q = q * r + 0.4999999341f;\n"
      "    float half = u32_as_f32((f32_as_u32(t) - 0x4b400000u + 126u) << 23), y = 2.0f * (half * (r * r * q + r) + (half - 0.5f));\n"
      "    y = x != x ? x : y;\n"
      "    return u32_as_f32((f32_as_u32(y) & 0x7fffffffu) | (f32_as_u32(x) & 0x80000000u)); /* not a choice of 0, which gcc would compute what x is made of on a path of its own for */\n}\n" },
    { H_EXACT, "tanh_f32", "f32_as_u32 u32_as_f32 within_f32",
      "float tanh_f32(float x)\n{\n    uint32_t u = f32_as_u32(x) & 0x7fffffffu;\n    float    c = within_f32(x, 0x40fccccdu); /* 7.9 */\n"
      "    float    z = c * c, p = z * -2.76076847742355e-16f + 2.00018790482477e-13f;\n"
      "    p = p * z - 8.60467152213735e-11f, p = p * z + 5.12229709037114e-08f, p = p * z + 1.48572235717979e-05f;\n"
      "    p = p * z + 6.37261928875436e-04f, p = p * z + 4.89352455891786e-03f;\n"
      "    float    q = z * 1.19825839466702e-06f + 1.18534705686654e-04f;\n"
      "    q = q * z + 2.26843463243900e-03f, q = q * z + 4.89352518554385e-03f;\n"
      "    float    y = u > 0x40fccccdu ? u32_as_f32(0x3f800000u | (f32_as_u32(x) & 0x80000000u)) : c * p / q;\n"
      "    return u - 0x39d1b718u > 0x7f800000u - 0x39d1b718u ? x : y; /* up to 4e-4, NaN */\n}\n" },
    { H_EXACT, "erf_f32", "f32_as_u32 u32_as_f32 within_f32",
      "float erf_f32(float x)\n{\n    float c = within_f32(x, 0x40800000u); /* 4 */\n"
      "    float z = c * c, p = z * -2.72614225801306e-10f + 2.77068142495902e-08f;\n"
      "    p = p * z - 2.10102402082508e-06f, p = p * z - 5.69250639462346e-05f, p = p * z - 7.34990630326855e-04f;\n"
      "    p = p * z - 2.95459980854025e-03f, p = p * z - 1.60960333262415e-02f;\n"
      "    float q = z * -1.45660718464996e-05f - 2.13374055278905e-04f;\n"
      "    q = q * z - 1.68282697438203e-03f, q = q * z - 7.37332916720468e-03f, q = q * z - 1.42647390514189e-02f;\n"
      "    float y = c * (p / q);\n    return x != x ? x : y;\n}\n" },
    /* tanh |x| = (1 - e^-2|x|) / (1 + e^-2|x|), both times the denominator of Cephes' e^r = 1 + 2 r p(r^2) / (q(r^2) - r p(r^2)): below 4.5 ulp (2^24 samples). */
    { H_EXACT, "tanh_f64", "f64_as_u64 u64_as_f64",
      "double tanh_f64(double x)\n{\n    double c = 2.0 * u64_as_f64(f64_as_u64(x) | 1ull << 63);\n    c = c < -40.0 ? -40.0 : c;\n"
      "    double t = c * 1.4426950408889634 + 6755399441055744.0, n = t - 6755399441055744.0, r = n * -0.693145751953125 + c;\n"
      "    r = n * -1.42860682030941723212e-6 + r;\n"
      "    double z = r * r, p = z * 1.26177193074810590878e-4 + 3.02994407707441961300e-2, q = z * 3.00198505138664455042e-6 + 2.52448340349684104192e-3;\n"
      "    p = r * (p * z + 1.0), q = q * z + 2.27265548208155028766e-1, q = (q * z + 2.0) - p;\n"
      "    double s = u64_as_f64((f64_as_u64(t) + 1023) << 52), over = s * (p + p), y = (over + (s - 1.0) * q) / (over + (s + 1.0) * q);\n"
      "    return u64_as_f64((f64_as_u64(y) & ~(1ull << 63)) | (f64_as_u64(x) & 1ull << 63));\n}\n" },
    /* log(2^e (1 + r)), sqrt 1/2 <= 1 + r < sqrt 2, as Cephes has it. log is below 0.81 ulp, log1p, which puts back what 1 + x lost, below 1.4 (every 57th float). */
    { H_EXACT, "log_of_parts_f32", "",
      "float log_of_parts_f32(float e, float r)\n{\n    float z = r * r, p = r * 0.070376836292f - 0.11514610310f;\n"
      "    p = p * r + 0.11676998740f, p = p * r - 0.12420140846f, p = p * r + 0.14249322787f, p = p * r - 0.16668057665f;\n"
      "    p = p * r + 0.20000714765f, p = p * r - 0.24999993993f, p = p * r + 0.33333331174f;\n"
      "    float y = (e * -2.12194440e-4f + p * r * z) - 0.5f * z;\n    return (r + y) + e * 0.693359375f;\n}\n" },
    { H_EXACT, "log_f32", "f32_as_u32 u32_as_f32 log_of_parts_f32",
      "float log_f32(float x)\n{\n    float    a = x < 1.17549435e-38f ? x * 8388608.0f : x;\n"
      "    uint32_t t = f32_as_u32(a) - 0x3f3504f3u;\n"
      "    float    e = (float)((int32_t)t >> 23) - (x < 1.17549435e-38f ? 23.0f : 0.0f);\n"
      "    float    y = log_of_parts_f32(e, u32_as_f32((t & 0x7fffffu) + 0x3f3504f3u) - 1.0f);\n    y = x < __builtin_inff() ? y : x;\n"
      "    y = x == 0.0f ? -__builtin_inff() : y;\n    return x < 0.0f ? __builtin_nanf(\"\") : y;\n}\n" },
    { H_EXACT, "log1p_f32", "f32_as_u32 u32_as_f32 log_of_parts_f32",
      "float log1p_f32(float x)\n{\n    float    u = 1.0f + x, lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);\n"
      "    uint32_t t = f32_as_u32(u) - 0x3f3504f3u, scale = 0x3f800000u - (t & 0xff800000u);\n"
      "    float    r = u32_as_f32((t & 0x7fffffu) + 0x3f3504f3u) - 1.0f, more = lost * u32_as_f32((int32_t)scale < 0 ? 0 : scale);\n"
      "    float    y = log_of_parts_f32((float)((int32_t)t >> 23), r + more);\n    y = x == 0.0f ? x : y;\n    y = x < __builtin_inff() ? y : x;\n"
      "    y = x == -1.0f ? -__builtin_inff() : y;\n    return x < -1.0f ? __builtin_nanf(\"\") : y;\n}\n" },
    /* Below 1.5 ulp: x + x^2 p(x), p the minimax polynomial of degree 7. */
    { H_EXACT, "log1p_within_f32", "",
      "float log1p_within_f32(float x) /* of 0 to 1, or NaN */\n{\n    float p = x * 0.005364822689f - 0.03006578609f;\n"
      "    p = p * x + 0.07920452207f, p = p * x - 0.1375380158f, p = p * x + 0.1915365458f;\n"
      "    p = p * x - 0.2485716343f, p = p * x + 0.3332132399f, p = p * x - 0.4999964833f;\n    return p * (x * x) + x;\n}\n" },
    /* Below 1.6 ulp; beyond 1 that of 1 / x. */
    { H_EXACT, "atan_f32", "f32_as_u32 u32_as_f32",
      "float atan_f32(float x)\n{\n    float t = u32_as_f32(f32_as_u32(x) & 0x7fffffffu), r = t > 1.0f ? 1.0f / t : t, s = r * r;\n"
      "    float p = s * 0.00292068115f - 0.0163679197f;\n"
      "    p = p * s + 0.0432118475f, p = p * s - 0.0755221322f, p = p * s + 0.106660038f, p = p * s - 0.142110482f;\n"
      "    p = p * s + 0.199937671f, p = (p * s - 0.333331525f) * s, p = p * r + r;\n"
      "    p = t > 1.0f ? 1.57079637f - (p + 4.37113883e-8f) : p;\n"
      "    return u32_as_f32(f32_as_u32(p) | (f32_as_u32(x) & 0x80000000u));\n}\n" },
    { H_WHOLE, "pow_f32", "powf", power_text },
    { H_WHOLE, "exp_f64", "exp", exponential_text },
    { H_WHOLE, "rsqrt_f32", "sqrtf", rsqrt_text },
    { H_WHOLE, "rem_f32", "fmodf", remainder_f32_text },
    { H_WHOLE, "rem_f64", "fmod", remainder_f64_text },
    { H_EXACT, "choose_f32", "f32_as_u32 u32_as_f32",
      "float choose_f32(_Bool first, float x, float y) /* of numbers that are both computed */\n{\n    uint32_t m = 0u - (uint32_t)first;\n"
      "    return u32_as_f32((f32_as_u32(x) & m) | (f32_as_u32(y) & ~m));\n}\n" },
    { H_EXACT, "choose_f64", "f64_as_u64 u64_as_f64",
      "double choose_f64(_Bool first, double x, double y)\n{\n    uint64_t m = 0ull - (uint64_t)first;\n"
      "    return u64_as_f64((f64_as_u64(x) & m) | (f64_as_u64(y) & ~m));\n}\n" },
    { H_WHOLE, "sin_f32", "sinf", APART("sinf", "float", "sin_f32") },
    { H_WHOLE, "cos_f32", "cosf", APART("cosf", "float", "cos_f32") },
    { H_WHOLE, "sin_f64", "sin", APART("sin", "double", "sin_f64") },
    { H_WHOLE, "cos_f64", "cos", APART("cos", "double", "cos_f64") },

    { H_EXACT, "bf16_to_f32", "u32_as_f32", "float bf16_to_f32(uint16_t x)\n{\n    return u32_as_f32((uint32_t)x << 16);\n}\n" },
    { H_EXACT, "bf16_bits", "f32_as_u32",
      "uint32_t bf16_bits(float x) /* those of f32 that round to it, in the upper half */\n{\n    uint32_t u = f32_as_u32(x);\n"
      "    return x != x ? (u & 0x80000000u) | 0x7fc00000u : u + 0x7fff + (u >> 16 & 1);\n}\n" },
    { H_EXACT, "f32_to_bf16", "bf16_bits", "uint16_t f32_to_bf16(float x)\n{\n    return (uint16_t)(bf16_bits(x) >> 16);\n}\n" },
    { H_EXACT, "upper_bf16", "f32_as_u32", "uint16_t upper_bf16(float x) /* that has no other digits */\n{\n    return (uint16_t)(f32_as_u32(x) >> 16);\n}\n" },
    { H_EXACT, "bf16_round", "bf16_bits u32_as_f32", "float bf16_round(float x)\n{\n    return u32_as_f32(bf16_bits(x) & 0xffff0000u);\n}\n" },
    { H_EXACT, "bf16_near", "bf16_bits f32_as_u32 u32_as_f32",
      "float bf16_near(float x) /* a NaN has the upper half of an operand's, or of the processor's own, and no more */\n{\n#if defined __CUDACC__\n    return u32_as_f32(bf16_bits(x) & 0xffff0000u);\n#else\n"
      "    uint32_t u = f32_as_u32(x);\n    (void)bf16_bits;\n    return u32_as_f32((u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u);\n#endif\n}\n" },
    /* The instruction takes subnormal numbers for zeros: blocks that have one go another way. */
    { H_EXACT, "f32_block_to_bf16", "f32_to_bf16",
      "void f32_block_to_bf16(uint16_t *to, const float *from, int64_t n) /* n a multiple of 8 */\n{\n    int64_t done = 0;\n"
      "#if defined __AVX512BF16__ && defined __AVX512DQ__ && defined __AVX512VL__ && defined __GNUC__\n"
      "    typedef float v16f __attribute__((vector_size(64), aligned(4), may_alias));\n"
      "    typedef short v32s __attribute__((vector_size(64), aligned(2), may_alias));\n"
      "    typedef float v4f __attribute__((vector_size(16), aligned(4), may_alias));\n    typedef float v8f __attribute__((vector_size(32), aligned(4), may_alias));\n"
      "    typedef short v8s __attribute__((vector_size(16), aligned(2), may_alias));\n"
      "    for (; done + 32 <= n; done += 32) {\n        v16f low = *(const v16f *)(from + done), high = *(const v16f *)(from + done + 16);\n        v32s both;\n"
      "        if (__builtin_expect(__builtin_ia32_fpclassps512_mask(low, 32, (unsigned short)-1) | __builtin_ia32_fpclassps512_mask(high, 32, (unsigned short)-1), 0))\n"
      "            break;\n"
      "        __asm__(\"vcvtne2ps2bf16 %2, %1, %0\" : \"=v\"(both) : \"v\"(high), \"v\"(low));\n        *(v32s *)(to + done) = both;\n    }\n"
      "    for (; n % 32 && done + 8 <= n; done += 8) { /* from parts as narrow as what compilers may just have stored */\n        v8f x = *(const v8f *)(from + done);\n"
      "        if (n % 16)\n            x = (v8f)__builtin_shufflevector(*(const v4f *)(from + done), *(const v4f *)(from + done + 4), 0, 1, 2, 3, 4, 5, 6, 7);\n        v8s y;\n"
      "        if (__builtin_expect(__builtin_ia32_fpclassps256_mask(x, 32, (unsigned char)-1), 0))\n            break;\n"
      "        __asm__(\"vcvtneps2bf16 %1, %0\" : \"=v\"(y) : \"v\"(x));\n        *(v8s *)(to + done) = y;\n    }\n"
      "#endif\n    for (int64_t k = done; k < n; k++)\n        to[k] = f32_to_bf16(from[k]);\n}\n" },
    { H_EXACT, "float_block_join", "",
      "void float_block_join(float *x, int64_t n) /* of parts of vectors that were just stored whole ones, which are read */\n{\n"
      "#if defined __AVX512F__ && defined __GNUC__ && !defined __clang__\n"
      "    typedef float v4f __attribute__((vector_size(16), aligned(4), may_alias));\n    typedef float v8f __attribute__((vector_size(32), aligned(4), may_alias));\n"
      "    typedef float v16f __attribute__((vector_size(64), aligned(4), may_alias));\n"
      "    for (int64_t k = 0; k + 16 <= n; k += 16) {\n        v8f low = *(const v8f *)(x + k), high = *(const v8f *)(x + k + 8);\n"
      "        if (n % 32) {\n            low = (v8f)__builtin_shufflevector(*(const v4f *)(x + k), *(const v4f *)(x + k + 4), 0, 1, 2, 3, 4, 5, 6, 7);\n"
      "            high = (v8f)__builtin_shufflevector(*(const v4f *)(x + k + 8), *(const v4f *)(x + k + 12), 0, 1, 2, 3, 4, 5, 6, 7);\n        }\n"
      "        *(v16f *)(x + k) = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);\n    }\n"
      "#else\n    (void)x, (void)n;\n#endif\n}\n" },
    /* f16 as F16C's instructions have it: NaN keeps the bits that fit and becomes quiet. */
    { H_EXACT, "f16_to_f32", "f32_as_u32 u32_as_f32",
      "float f16_to_f32(uint16_t x)\n{\n#if defined __AVX512FP16__ /* processors of Intel's, on which a product of what is subnormal takes a hundred times as long */\n"
      "    uint32_t size = (uint32_t)(x & 0x7fff) << 13, tiny = size < 0x00800000u ? 0x38800000u : 0;\n"
      "    float    v = u32_as_f32(size + (tiny > 0x38000000u ? tiny : 0x38000000u)) - u32_as_f32(tiny);\n#else\n"
      "    float    v = u32_as_f32((uint32_t)(x & 0x7fff) << 13) * 5192296858534827628530496329220096.0f;\n#endif\n"
      "    uint32_t u = f32_as_u32(v), special = v > 65536.0f ? 0x7fc00000u : v == 65536.0f ? 0x7f800000u : 0;\n"
      "    return u32_as_f32(u | special | (uint32_t)(x & 0x8000) << 16);\n}\n" },
    { H_EXACT, "f32_to_f16", "f32_as_u32 u32_as_f32",
      "uint16_t f32_to_f16(float x)\n{\n    uint32_t u = f32_as_u32(x) & 0x7fffffff, sign = f32_as_u32(x) >> 16 & 0x8000;\n"
      "    uint32_t normal = (u + 0xc8000fffu + (u >> 13 & 1)) >> 13, tiny = f32_as_u32(u32_as_f32(u) + 0.5f) - 0x3f000000u, nan = 0x7e00 | (u >> 13 & 0x1ff);\n"
      "    uint32_t h = u > 0x7f800000u ? nan : u >= 0x47800000u ? 0x7c00 : u < 0x38800000u ? tiny : normal;\n    return (uint16_t)(sign | h);\n}\n" },
    /* The same as there and back, without narrow numbers in between. A sum with 2^13 times the number's power of two, or that of the least normal one, has the last digit of f16 as its
     * own; from 2^17 on any power will do, since that is infinite anyway. */
    { H_EXACT, "f16_round", "f32_as_u32 u32_as_f32",
      "float f16_round(float x)\n{\n    uint32_t u = f32_as_u32(x) & 0x7fffffffu;\n"
      "    int32_t  power = (int32_t)(u & 0x7f800000u), above = power > 0x38800000 ? power : 0x38800000, within = above < 0x48000000 ? above : 0x48000000;\n"
      "    float    y = (u32_as_f32(u) + u32_as_f32((uint32_t)within + (13u << 23))) - u32_as_f32((uint32_t)within + (13u << 23));\n"
      "    y = y >= 65536.0f ? __builtin_inff() : y;\n    return u32_as_f32(f32_as_u32(y) | (f32_as_u32(x) & 0x80000000u));\n}\n" },
    /* Of one element, in no vector. */
    { H_EXACT, "f16_alone_to_f32", "f16_to_f32",
      "float f16_alone_to_f32(uint16_t x) /* one of f16 into a register would wait for what was in that */\n{\n#if defined __F16C__ && defined __GNUC__\n"
      "    typedef short v8s __attribute__((vector_size(16)));\n    (void)f16_to_f32;\n"
      "    return __builtin_ia32_vcvtph2ps((v8s){ (short)x })[0];\n#else\n    return f16_to_f32(x);\n#endif\n}\n" },
    { H_EXACT, "f32_alone_to_f16", "f32_to_f16",
      "uint16_t f32_alone_to_f16(float x)\n{\n#if defined __AVX512FP16__ && defined __GNUC__ && !defined __clang__\n    _Float16 h = (_Float16)x;\n    uint16_t r;\n    __builtin_memcpy(&r, &h, sizeof r);\n    (void)f32_to_f16;\n    return r;\n"
      "#elif defined __F16C__ && defined __GNUC__\n    typedef float v4f __attribute__((vector_size(16)));\n    (void)f32_to_f16;\n"
      "    return (uint16_t)__builtin_ia32_vcvtps2ph((v4f){ x }, 4)[0];\n#else\n    return f32_to_f16(x);\n#endif\n}\n" },
    { H_EXACT, "f16_round_alone", "f16_round",
      "float f16_round_alone(float x)\n{\n#if defined __F16C__ && defined __GNUC__\n    typedef float v4f __attribute__((vector_size(16)));\n    (void)f16_round;\n"
      "    return __builtin_ia32_vcvtph2ps(__builtin_ia32_vcvtps2ph((v4f){ x }, 4))[0];\n#else\n    return f16_round(x);\n#endif\n}\n" },
    { H_EXACT, "fetch_ahead", "",
      "void fetch_ahead(const void *from, int64_t bytes) /* into the second cache */\n{\n#if defined __GNUC__\n    for (int64_t k = 0; k < bytes; k += 64)\n"
      "        __builtin_prefetch((const char *)from + k, 0, 2);\n#endif\n}\n" },
    { H_EXACT, "fetch_far_ahead", "",
      "void fetch_far_ahead(const void *from, int64_t bytes) /* pages ahead, into the first cache */\n{\n#if defined __GNUC__\n    for (int64_t k = 0; k < bytes; k += 64)\n"
      "        __builtin_prefetch((const char *)from + k, 0, 3);\n#endif\n}\n" },
    { H_EXACT, "fetch_to_write", "",
      "void fetch_to_write(const void *to, int64_t bytes) /* into the first cache */\n{\n#if defined __GNUC__\n    for (int64_t k = 0; k < bytes; k += 64)\n"
      "        __builtin_prefetch((const char *)to + k, 1, 3);\n#endif\n}\n" },
    { H_EXACT, "fetch_row_ahead", "fetch_ahead",
      "void fetch_row_ahead(const void *from, int64_t bytes) /* of which lines here and there are wanted: Intel's AVX-512 processors find these themselves sooner */\n{\n"
      "#if !defined __AVX512F__ || defined __znver4__ || defined __znver5__\n    fetch_ahead(from, bytes);\n#else\n    (void)fetch_ahead, (void)from, (void)bytes;\n#endif\n}\n" },
    { H_EXACT, "pieces_block_backwards", "", pieces_backwards_text },
    { H_EXACT, "rows_to_columns_16", "", rows_to_columns_16_text },
    { H_EXACT, "rows_to_columns_32", "", rows_to_columns_32_text },
    { H_EXACT, "rows_to_columns_64", "", rows_to_columns_64_text },
    { H_EXACT, "columns_to_rows_16", "", columns_to_rows_16_text },
    { H_EXACT, "columns_to_rows_32", "", columns_to_rows_32_text },
    { H_EXACT, "columns_to_rows_64", "", columns_to_rows_64_text },
    { H_ANY, "hlo_take", "",
      "void hlo_take_$X($T *restrict to, const $T *restrict from, const uint32_t *restrict place, int64_t n) /* no gathers of vectors, which take longer */\n{\n    const int64_t whole = n / 4 * 4;\n"
      "    for (int64_t k = 0; k < whole; k += 4) {\n#if defined __GNUC__\n        __asm__ volatile(\"\");\n#endif\n"
      "        $T a = from[place[k]], b = from[place[k + 1]], c = from[place[k + 2]], d = from[place[k + 3]];\n        to[k] = a;\n        to[k + 1] = b;\n        to[k + 2] = c;\n        to[k + 3] = d;\n    }\n"
      "    for (int64_t k = whole; k < n; k++) {\n#if defined __GNUC__\n        __asm__ volatile(\"\");\n#endif\n        to[k] = from[place[k]];\n    }\n"
      KEEP_FIRST "}\n" },
    { H_ANY, "hlo_step", "",
      "void hlo_step_$X($T *restrict to, const $T *restrict from, int64_t by, int64_t n) /* likewise */\n{\n    const int64_t whole = n / 4 * 4;\n"
      "    for (int64_t k = 0; k < whole; k += 4) {\n#if defined __GNUC__\n        __asm__ volatile(\"\");\n#endif\n"
      "        $T a = from[k * by], b = from[(k + 1) * by], c = from[(k + 2) * by], d = from[(k + 3) * by];\n        to[k] = a;\n        to[k + 1] = b;\n        to[k + 2] = c;\n        to[k + 3] = d;\n    }\n"
      "    for (int64_t k = whole; k < n; k++)\n        to[k] = from[k * by];\n" KEEP_FIRST "}\n" },
    { H_EXACT, "store_past_caches", "",
      "void store_past_caches(void *to, const void *from, int64_t bytes) /* a multiple of 32 */\n{\n#if defined __AVX__ && defined __GNUC__\n"
      "    typedef float v8f __attribute__((vector_size(32), aligned(1), may_alias));\n"
      "    typedef float v8s __attribute__((vector_size(32), may_alias));\n"
      "#if defined __AVX512F__ && !defined __clang__\n    typedef float v16f __attribute__((vector_size(64), aligned(1), may_alias));\n"
      "    if (bytes % 64 == 0 && (__UINTPTR_TYPE__)to % 64 == 0) { /* a line at a time */\n        for (int64_t k = 0; k < bytes; k += 64)\n"
      "            __builtin_ia32_movntps512((float *)((char *)to + k), *(const v16f *)((const char *)from + k));\n        return;\n    }\n#endif\n"
      "    if ((__UINTPTR_TYPE__)to % 32 == 0) {\n        for (int64_t k = 0; k < bytes; k += 32) {\n"
      "            v8s  v = *(const v8f *)((const char *)from + k);\n            v8s *at = (v8s *)((char *)to + k);\n"
      "#if defined __clang__\n            __builtin_nontemporal_store(v, at);\n#else\n            __builtin_ia32_movntps256((float *)at, v);\n#endif\n"
      "        }\n        return;\n    }\n"
      "#endif\n    __builtin_memcpy(to, from, (uint64_t)bytes);\n}\n\n"
      "static inline void end_stores_past_caches(void) /* before others read what was stored */\n{\n#if defined __AVX__ && defined __GNUC__\n"
      "    __builtin_ia32_sfence();\n#endif\n}\n" },
    { H_EXACT, "f16_block_to_f32", "f16_to_f32",
      "void f16_block_to_f32(float *to, const uint16_t *from, int64_t n)\n{\n#if defined __F16C__ && defined __GNUC__\n"
      "    typedef float v8f __attribute__((vector_size(32), aligned(4), may_alias));\n"
      "    typedef short v8s __attribute__((vector_size(16), aligned(2), may_alias));\n"
      "    const int64_t whole = n / 8 * 8;\n    int64_t done = 0;\n#if defined __AVX512F__ && !defined __clang__ /* what vectors of 512 bits read is written so */\n"
      "    typedef float v16f __attribute__((vector_size(64), aligned(4), may_alias));\n"
      "    typedef short v16s __attribute__((vector_size(32), aligned(2), may_alias));\n"
      "    for (; done + 16 <= n; done += 16)\n"
      "        *(v16f *)(to + done) = __builtin_ia32_vcvtph2ps512_mask(*(const v16s *)(from + done), (v16f){ 0 }, (unsigned short)-1, 4);\n#endif\n"
      "    for (; done < whole; done += 8)\n        *(v8f *)(to + done) = __builtin_ia32_vcvtph2ps256(*(const v8s *)(from + done));\n"
      "#else\n    const int64_t whole = 0;\n#endif\n    for (int64_t k = whole; k < n; k++)\n        to[k] = f16_to_f32(from[k]);\n}\n" },
    /* gcc is kept from taking the floats for integers, of which it chooses the larger by a mask. */
    { H_EXACT, "bf16_block_to_f32", "bf16_to_f32",
      "void bf16_block_to_f32(float *to, const uint16_t *from, int64_t n)\n{\n    int64_t done = 0;\n"
      "#if defined __AVX512F__ && defined __GNUC__ && !defined __clang__\n"
      "    typedef float v16f __attribute__((vector_size(64), aligned(4), may_alias));\n    typedef int v16i __attribute__((vector_size(64)));\n"
      "    typedef short v16s __attribute__((vector_size(32), aligned(2), may_alias));\n"
      "    for (; done + 16 <= n; done += 16) {\n"
      "        v16f x = (v16f)((v16i)__builtin_ia32_pmovzxwd512_mask(*(const v16s *)(from + done), (v16i){ 0 }, (unsigned short)-1) << 16);\n"
      "        __asm__(\"\" : \"+v\"(x));\n        *(v16f *)(to + done) = x;\n    }\n#endif\n"
      "#if defined __AVX2__ && defined __GNUC__ && !defined __clang__\n"
      "    typedef float v8f __attribute__((vector_size(32), aligned(4), may_alias));\n    typedef int v8i __attribute__((vector_size(32)));\n"
      "    typedef short v8s __attribute__((vector_size(16), aligned(2), may_alias));\n"
      "    for (; done + 8 <= n; done += 8) {\n"
      "        v8f x = (v8f)((v8i)__builtin_ia32_pmovzxwd256(*(const v8s *)(from + done)) << 16);\n"
      "        __asm__(\"\" : \"+v\"(x));\n        *(v8f *)(to + done) = x;\n    }\n#endif\n"
      "    for (; done < n; done++)\n        to[done] = bf16_to_f32(from[done]);\n}\n" },
    { H_EXACT, "f16_block_round", "f16_round",
      "void f16_block_round(float *x, int64_t n)\n{\n#if defined __F16C__ && defined __GNUC__\n"
      "    typedef float v8f __attribute__((vector_size(32), aligned(4), may_alias));\n"
      "    const int64_t whole = n / 8 * 8;\n    int64_t done = 0;\n#if defined __AVX512F__ && !defined __clang__ /* what vectors of 512 bits read is written so */\n"
      "    typedef float v16f __attribute__((vector_size(64), aligned(4), may_alias));\n"
      "    typedef short v16s __attribute__((vector_size(32)));\n"
      "    for (; done + 16 <= n; done += 16)\n"
      "        *(v16f *)(x + done) = __builtin_ia32_vcvtph2ps512_mask(__builtin_ia32_vcvtps2ph512_mask(*(const v16f *)(x + done), 0, (v16s){ 0 }, (unsigned short)-1),\n"
      "                                                               (v16f){ 0 }, (unsigned short)-1, 4);\n#endif\n"
      "    for (; done < whole; done += 8)\n"
      "        *(v8f *)(x + done) = __builtin_ia32_vcvtph2ps256(__builtin_ia32_vcvtps2ph256(*(const v8f *)(x + done), 0));\n"
      "#else\n    const int64_t whole = 0;\n#endif\n    for (int64_t k = whole; k < n; k++)\n        x[k] = f16_round(x[k]);\n}\n" },
    { H_EXACT, "f32_block_to_f16", "f32_to_f16",
      "void f32_block_to_f16(uint16_t *to, const float *from, int64_t n) /* n a multiple of 8 */\n{\n#if defined __F16C__ && defined __GNUC__\n"
      "    typedef float v8f __attribute__((vector_size(32), aligned(4), may_alias));\n"
      "    typedef short v8s __attribute__((vector_size(16), aligned(2), may_alias));\n"
      "    int64_t done = 0;\n#if defined __AVX512F__ && !defined __clang__ /* a line, which is read as one */\n"
      "    typedef float v16f __attribute__((vector_size(64), aligned(4), may_alias));\n"
      "    typedef short v16s __attribute__((vector_size(32), aligned(2), may_alias));\n"
      "    typedef long long v4q __attribute__((vector_size(32)));\n    typedef long long v8q __attribute__((vector_size(64), aligned(2), may_alias));\n"
      "    for (; done + 32 <= n; done += 32) {\n"
      "        v16s low = __builtin_ia32_vcvtps2ph512_mask(*(const v16f *)(from + done), 0, (v16s){ 0 }, (unsigned short)-1);\n"
      "        v16s high = __builtin_ia32_vcvtps2ph512_mask(*(const v16f *)(from + done + 16), 0, (v16s){ 0 }, (unsigned short)-1);\n"
      "        *(v8q *)(to + done) = __builtin_shufflevector((v4q)low, (v4q)high, 0, 1, 2, 3, 4, 5, 6, 7);\n    }\n"
      "    if (done + 16 <= n) {\n"
      "        *(v16s *)(to + done) = __builtin_ia32_vcvtps2ph512_mask(*(const v16f *)(from + done), 0, (v16s){ 0 }, (unsigned short)-1);\n        done += 16;\n    }\n#endif\n"
      "    for (int64_t k = done; k < n; k += 8)\n        *(v8s *)(to + k) = __builtin_ia32_vcvtps2ph256(*(const v8f *)(from + k), 0);\n    (void)f32_to_f16;\n"
      "#else\n    for (int64_t k = 0; k < n; k++)\n        to[k] = f32_to_f16(from[k]);\n#endif\n}\n" },
    /* Of blocks of f16, n a multiple of 8, as the processor computes them. A sum of a product is rounded twice: gcc is kept from seeing one in the other. */
    { H_EXACT, "half_block_load", "f16_block_to_f32",
      "void half_block_load(hlo_half *to, const uint16_t *from, int64_t n)\n{\n#if defined HLO_HALF\n" HALF_VECTORS(LOAD_HALVES("v32h"), LOAD_HALVES("v16h"), LOAD_HALVES("v8h"))
      "    (void)f16_block_to_f32;\n#else\n    f16_block_to_f32(to, from, n);\n#endif\n}\n" },
    { H_EXACT, "half_block_round", "f16_block_round",
      "void half_block_round(hlo_half *to, int64_t n)\n{\n#if defined HLO_HALF\n    const hlo_half *from = to;\n" HALF_VECTORS(HIDE_HALVES("v32h"), HIDE_HALVES("v16h"), HIDE_HALVES("v8h"))
      "    (void)f16_block_round;\n#else\n    f16_block_round(to, n);\n#endif\n}\n" },
    { H_EXACT, "half_block_store", "f32_block_to_f16",
      "void half_block_store(uint16_t *to, const hlo_half *from, int64_t n)\n{\n#if defined HLO_HALF\n" HALF_VECTORS(HIDE_HALVES("v32h"), HIDE_HALVES("v16h"), HIDE_HALVES("v8h"))
      "    (void)f32_block_to_f16;\n#else\n    f32_block_to_f16(to, from, n);\n#endif\n}\n" },
    { H_EXACT, "half_block_to_f32", "f16_block_to_f32",
      "const float *half_block_to_f32(float *room, const hlo_half *from, int64_t n)\n{\n#if defined HLO_HALF\n    f16_block_to_f32(room, (const uint16_t *)from, n);\n    return room;\n"
      "#else\n    (void)room;\n    (void)n;\n    return from;\n#endif\n}\n" },
    { H_EXACT, "half_block_of_f32", "f32_block_to_f16 f16_block_round",
      "const hlo_half *half_block_of_f32(hlo_half *room, float *from, int64_t n)\n{\n#if defined HLO_HALF\n    (void)f16_block_round;\n    f32_block_to_f16((uint16_t *)room, from, n);\n"
      "    return room;\n#else\n    (void)f32_block_to_f16;\n    (void)room;\n    f16_block_round(from, n);\n    return from;\n#endif\n}\n" },
    EXTREME_OF_HALVES("max", "b > a ? b : a;", "    return b != b ? b : r;\n"),
    EXTREME_OF_HALVES("min", "b < a ? b : a;", "    return b != b ? b : r;\n"),
    EXTREME_OF_HALVES("larger", "b > a ? b : a;", "    return r;\n"),
    EXTREME_OF_HALVES("smaller", "b < a ? b : a;", "    return r;\n"),

    /* Floats of 8 bits and fewer. Kinds: 0 has infinities, 1 one NaN and no infinity, 2 neither infinity nor -0, 3 no NaN either. */
    { H_EXACT, "small_decode", "u32_as_f32",
      "float small_decode(uint32_t x, int e, int m, int bias, int kind)\n{\n"
      "    uint32_t ones = (1u << e) - 1, sign = x >> (e + m) & 1, exponent = x >> m & ones, mantissa = x & ((1u << m) - 1);\n"
      "    uint32_t top = exponent ? exponent : 1, whole = exponent ? mantissa + (1u << m) : mantissa;\n"
      "    float v = (float)whole * u32_as_f32((top + 127 - (uint32_t)(bias + m)) << 23);\n"
      "    if (kind == 0 && exponent == ones)\n        v = mantissa ? __builtin_nanf(\"\") : __builtin_inff();\n"
      "    if ((kind == 1 && exponent == ones && mantissa == (1u << m) - 1) || (kind == 2 && x == 1u << (e + m)))\n        v = __builtin_nanf(\"\");\n"
      "    return sign ? -v : v;\n}\n" },
    { H_EXACT, "small_encode", "f64_as_u64 u64_as_f64",
      "uint8_t small_encode(double x, int e, int m, int bias, int kind)\n{\n"
      "    uint64_t u = f64_as_u64(x);\n    uint32_t minus = 1u << (e + m), sign = u >> 63 ? minus : 0, ones = minus - 1, top = ones >> m << m;\n"
      "    if (x != x)\n        return (uint8_t)(kind == 0 ? sign | top | 1u << (m - 1) : kind == 1 ? sign | ones : minus);\n"
      "    double a = u64_as_f64(u & ~(1ull << 63));\n    a = a > 1e30 ? 1e30 : a;\n"
      "    int exponent = (int)(f64_as_u64(a) >> 52) - 1023, least = 1 - bias, at = exponent < least ? least : exponent;\n"
      "    double steps = a * u64_as_f64((uint64_t)(1023 - at + m) << 52);\n"
      "    uint32_t n = (uint32_t)((steps + 4503599627370496.0) - 4503599627370496.0);\n"
      "    uint32_t code = exponent < least ? n : ((uint32_t)(at + bias - 1) << m) + n;\n"
      "    if (kind == 0 && code > top)\n        code = top;\n    if (kind == 1 && code > ones)\n        code = ones;\n"
      "    if (kind == 2 && code > ones)\n        return (uint8_t)minus;\n    if (kind == 3 && code > ones)\n        code = ones;\n"
      "    return (uint8_t)(kind == 2 && code == 0 ? 0 : sign | code);\n}\n" },
    { H_EXACT, "f8e8m0fnu_to_f32", "u32_as_f32",
      "float f8e8m0fnu_to_f32(uint8_t x)\n{\n    return x == 255 ? __builtin_nanf(\"\") : u32_as_f32(x ? (uint32_t)x << 23 : 0x400000u);\n}\n" },
    { H_EXACT, "f64_to_f8e8m0fnu", "f64_as_u64",
      "uint8_t f64_to_f8e8m0fnu(double x)\n{\n    uint64_t u = f64_as_u64(x);\n    int e = (int)(u >> 52) - 1023 + (int)(u >> 51 & 1);\n"
      "    return (uint8_t)(!(x > 0) || e > 127 ? 255 : e < -127 ? 0 : e + 127);\n}\n" },
    { H_EXACT, "f32_to_f8e8m0fnu", "f64_to_f8e8m0fnu", "uint8_t f32_to_f8e8m0fnu(float x)\n{\n    return f64_to_f8e8m0fnu(x);\n}\n" },
    { H_SMALL, "$_to_f32", "small_decode", "float $X_to_f32(uint8_t x)\n{\n    return small_decode(x, $E, $B, $K);\n}\n" },
    { H_SMALL, "f64_to_$", "small_encode", "uint8_t f64_to_$X(double x)\n{\n    return small_encode(x, $E, $B, $K);\n}\n" },
    { H_SMALL, "f32_to_$", "f64_to_$", "uint8_t f32_to_$X(float x)\n{\n    return f64_to_$X(x);\n}\n" },
    { H_SMALL, "$_round", "$_to_f32 f32_to_$", "float $X_round(float x)\n{\n    return $X_to_f32(f32_to_$X(x));\n}\n" },

    /* Complex functions that C does not have; its product without the repair of infinities. */
    { H_COMPLEX, "mul", "",
      "$T mul_$X($T x, $T y)\n{\n    $R a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y;\n"
      "    return __builtin_complex(a * c - b * d, a * d + b * c);\n}\n" },
    /* As C's operator: the quotient in f64, where no square overflows, and infinities and zeros repaired where both parts are NaN; by choices, of which loops of vectors are made. */
    { H_EXACT, "div_c64", "",
      "float _Complex div_c64(float _Complex x, float _Complex y)\n"
      "{\n"
      "    float a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y, inf = __builtin_inff(), nan = __builtin_nanf(\"\");\n"
      "    if (__builtin_constant_p(d) && d == 0 && !__builtin_signbit(d)) { /* a real divisor */\n"
      "        float side = __builtin_copysignf(1.0f, c), size = __builtin_fabsf(c), re = a * side + b * 0, im = b * side - a * 0;\n"
      "        int   plain = (c == 0) | ((re != re) & (im != im) & (size < inf) & ((__builtin_fabsf(a) == inf) | (__builtin_fabsf(b) == inf)));\n"
      "        re = plain ? a * side : re;\n"
      "        im = plain ? b * side : im;\n"
      "        return __builtin_complex(re / size, im / size);\n"
      "    }\n"
      "    double size = (double)c * c + (double)d * d, turn = 1 / size;\n"
      "    float  re = (float)(((double)a * c + (double)b * d) * turn), im = (float)(((double)b * c - (double)a * d) * turn);\n"
      "    int    lost = (re != re) & (im != im), p = __builtin_fabsf(a) == inf, q = __builtin_fabsf(b) == inf;\n"
      "    int    u = __builtin_fabsf(c) == inf, v = __builtin_fabsf(d) == inf, above = p | q, below = u | v;\n"
      "    float  e = above ? __builtin_copysignf(p ? 1.0f : 0.0f, a) : a, f = above ? __builtin_copysignf(q ? 1.0f : 0.0f, b) : b;\n"
      "    float  g = below ? __builtin_copysignf(u ? 1.0f : 0.0f, c) : c, h = below ? __builtin_copysignf(v ? 1.0f : 0.0f, d) : d;\n"
      "    float  k = above ? below ? nan : inf : below ? 0 : nan, s = __builtin_copysignf(inf, c), m = k * (e * g + f * h), n = k * (f * g - e * h);\n"
      "    m = size == 0 ? s * a : m;\n"
      "    n = size == 0 ? s * b : n;\n"
      "    re = lost ? m : re;\n"
      "    im = lost ? n : im;\n"
      "    return __builtin_complex(re, im);\n"
      "}\n" },
    { H_EXACT, "abs_c64", "sqrt",
      "float abs_c64(float _Complex z)\n{\n    double a = __real__ z, b = __imag__ z, inf = __builtin_inf();\n    int    endless = (a == inf) | (a == -inf) | (b == inf) | (b == -inf);\n"
      "    float  r = (float)sqrt(a * a + b * b);\n    return endless ? __builtin_inff() : r;\n}\n" },
    { H_EXACT, "instead_f32", "f32_as_u32 u32_as_f32", instead_f32_text },
    { H_EXACT, "instead_f64", "f64_as_u64 u64_as_f64", instead_f64_text },
    { H_EXACT, "abs_c128", "sqrt instead_f64", abs_c128_text },
    { H_COMPLEX, "sign", "abs_$",
      "$T sign_$X($T z)\n{\n    $R m = abs_$X(z), by = m == 0 ? 1 : m;\n    return __builtin_complex(__real__ z / by, __imag__ z / by);\n}\n" },
    { H_EXACT, "turn_for_c64", "instead_f64", turn_for_c64_text },
    { H_EXACT, "exp_for_c64", "instead_f64", exp_for_c64_text },
    { H_EXACT, "hyperbolic_for_c64", "f64_as_u64 u64_as_f64", hyperbolic_for_c64_text },
    { H_EXACT, "log_for_c64", "f64_as_u64 u64_as_f64", log_for_c64_text },
    { H_EXACT, "exp_c64", "instead_f32 turn_for_c64 exp_for_c64", exp_c64_text },
    { H_EXACT, "expm1_c64", "instead_f32 turn_for_c64 exp_for_c64", expm1_c64_text },
    { H_EXACT, "sin_c64", "instead_f32 turn_for_c64 hyperbolic_for_c64", sin_c64_text },
    { H_EXACT, "cos_c64", "instead_f32 turn_for_c64 hyperbolic_for_c64", cos_c64_text },
    { H_EXACT, "sinh_c64", "sin_c64", sinh_c64_text },
    { H_EXACT, "cosh_c64", "cos_c64", cosh_c64_text },
    { H_EXACT, "tanh_c64", "instead_f32 turn_for_c64 hyperbolic_for_c64", tanh_c64_text },
    { H_EXACT, "tan_c64", "tanh_c64", tan_c64_text },
    { H_EXACT, "sqrt_c64", "sqrt instead_f32", sqrt_c64_text },
    { H_EXACT, "log_c64", "instead_f32 log_for_c64", log_c64_text },
    { H_EXACT, "pow_c64", "instead_f64 exp_for_c64 log atan2 sin_f64 cos_f64", pow_c64_text },
    { H_EXACT, "div_c128", "instead_f64", div_c128_text },
    { H_EXACT, "sqrt_c128", "sqrt instead_f64", sqrt_c128_text },
    { H_EXACT, "exp_c128", "cexp", "double _Complex exp_c128(double _Complex z)\n{\n    return cexp(z);\n}\n" },
    { H_EXACT, "log_c128", "clog", "double _Complex log_c128(double _Complex z)\n{\n    return clog(z);\n}\n" },
    { H_COMPLEX, "exp2", "exp_$", "$T exp2_$X($T z)\n{\n    return exp_$X(z * ($R)0.6931471805599453094);\n}\n" },
    { H_COMPLEX, "log2", "log_$", "$T log2_$X($T z)\n{\n    return log_$X(z) * ($R)1.4426950408889634074;\n}\n" },
    { H_COMPLEX, "expm1", "expm1# exp# cos_@ sin_@",
      "$T expm1_$X($T z)\n{\n    $R a = __real__ z, b = __imag__ z, s = sin_$C(b / 2), t = exp$f(a) * sin_$C(b);\n"
      "    return __builtin_complex(expm1$f(a) * cos_$C(b) - 2 * s * s, b == 0 ? b : t);\n}\n" },
    { H_COMPLEX, "log1p", "log1p# atan2#",
      "$T log1p_$X($T z)\n{\n    $R a = __real__ z, b = __imag__ z, x = a + 1 < 0 ? -(a + 1) : a + 1, y = b < 0 ? -b : b;\n"
      "    $R m = x >= y ? x : y, n = x >= y ? y : x, t = x >= y && a + 1 > 0 ? a : m - 1, q = m == 0 ? 0 : n / m;\n"
      "    return __builtin_complex(log1p$f(t) + log1p$f(q * q) / 2, atan2$f(b, a + 1));\n}\n" },
    { H_COMPLEX, "pow", "cpow",
      "$T pow_$X($T a, $T b)\n{\n    $R inf = __builtin_inf();\n"
      "    if (a == 1 || b == 0)\n        return 1;\n"
      "    if (__imag__ b == 0 && (__real__ a == inf || __real__ a == -inf || __imag__ a == inf || __imag__ a == -inf))\n"
      "        return __real__ b > 0 ? inf : 0;\n    return ($T)cpow(a, b);\n}\n" },
    { H_COMPLEX, "atan2", "clog csqrt",
      "$T atan2_$X($T y, $T x)\n{\n    double _Complex u = y, v = x;\n"
      "    double _Complex w = clog(__builtin_complex(__real__ v - __imag__ u, __imag__ v + __real__ u) / csqrt(v * v + u * u));\n"
      "    return ($T)__builtin_complex(__imag__ w, -__real__ w);\n}\n" },
};

const Helper *helper_at(size_t k)
{
    return k < sizeof helpers / sizeof helpers[0] ? &helpers[k] : NULL;
}
