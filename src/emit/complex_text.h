/* Functions of complex numbers as text of the program. Those of c64 are computed in f64, where squares and exponentials that a float can hold do not overflow and what cancels in f32 does not, by choices instead of
 * paths, so that loops make vectors of them with any compiler and any processor. Both parts are within 0.51 ulp (random arguments of all sizes, and beside the multiples of
 * pi / 2); infinities, NaN and zeros come out as C's functions have them (annex G). Roots and sizes of c128 are within 2.4 and 1.2 ulp.
 *
 * Polynomials are fitted to a relative error of 2^-33; e^x = 2^n (cosh r + sinh r), with r = x - n log 2 and log 2 in two parts. Adding 1.5 * 2^52 rounds to an integer, whose
 * bits are the sum's lowest. */
#ifndef EMIT_COMPLEX_TEXT_H
#define EMIT_COMPLEX_TEXT_H

/* sinh r and cosh r - 1 */
#define EXP_PARTS \
    "    double c = x < -700.0 ? -700.0 : x;\n" \
    "    c = c > 700.0 ? 700.0 : c;\n" \
    "    double t = c * 1.4426950408889634 + 6755399441055744.0, n = t - 6755399441055744.0, r = n * -0.693145751953125 + c;\n" \
    "    r = n * -1.42860682030941723212e-6 + r;\n" \
    "    double z = r * r, q = z * 0.00019904885039319234 + 0.00833328908120869, p = z * 0.0013946028699266878 + 0.04166627044263123;\n" \
    "    q = (q * z + 0.16666666754079162) * z * r + r, p = (p * z + 0.5000000077885489) * z;\n"

/* A choice gcc makes paths of, which come together with those of what follows, and what then chooses among truth values it makes no vectors of. */
static const char instead_f32_text[] =
    "float instead_f32(float x, int lost, float y) /* y where x is lost */\n"
    "{\n"
    "    uint32_t kept = (uint32_t)lost - 1;\n"
    "    return u32_as_f32((f32_as_u32(x) & kept) | (f32_as_u32(y) & ~kept));\n"
    "}\n";

static const char instead_f64_text[] =
    "double instead_f64(double x, int lost, double y)\n"
    "{\n"
    "    uint64_t kept = (uint64_t)lost - 1;\n"
    "    return u64_as_f64((f64_as_u64(x) & kept) | (f64_as_u64(y) & ~kept));\n"
    "}\n";

/* The quotient x / (pi / 2) as its whole part modulo 4 and the rest. Of 2 / pi three parts are taken: from the first bit whose product with x is no multiple of 4, 29 bits and 29 more,
 * whose products are exact, and what comes then; where they begin depends on the size of x, each 32 binary orders of it share them. No float is closer to a multiple of pi / 2 than 2^-30,
 * the sum of the parts is off by 2^-55. */
static const char turn_for_c64_text[] =
    "double _Complex turn_for_c64(float x) /* cos x + i sin x */\n"
    "{\n"
    "    double a = x, m = __builtin_fabs(a);\n"
    "    double u = m < 0x1p32 ? 0x1.45f306dp-1 : m < 0x1p64 ? 0x1.f306dc8p-9 : m < 0x1p96 ? 0x1.1054a7cp-42 : 0x1.3abe8f8p-75; /* 2 / pi, modulo 4 / x */\n"
    "    double v = m < 0x1p32 ? 0x1.9391054p-30 : m < 0x1p64 ? 0x1.c882a53p-37 : m < 0x1p96 ? 0x1.84eafa3p-69 : 0x1.4d37702p-102;\n"
    "    double w = m < 0x1p32 ? 0x1.4fe13abe8fa9ap-59 : m < 0x1p64 ? 0x1.f09d5f47d4d37p-66 : m < 0x1p96 ? 0x1.d4d377036d8a5p-98 : 0x1.6d8a5664f10e4p-130;\n"
    "    double p = a * u, q = a * v, last = a * w;\n"
    "    p -= 4 * __builtin_rint(p * 0.25), q -= 4 * __builtin_rint(q * 0.25);\n"
    "    double n = __builtin_rint(p), k = __builtin_rint(q), f = p - n, g = q - k, s = f + g, t = s - f, lost = (f - (s - t)) + (g - t), r = __builtin_rint(s + last);\n"
    "    f = (s - r) + (lost + last);\n"
    "    double z = f * f, sine = z * 0.0001581933056380287 - 0.004681259849547273, cosine = z * 0.0009037539758500408 - 0.020860159700046878;\n"
    "    sine = (((sine * z + 0.07969258173795374) * z - 0.6459640960980043) * z + 1.570796326787722) * f;\n"
    "    cosine = ((cosine * z + 0.25366922527121977) * z - 1.2337005425727343) * z + 1.0;\n"
    "    uint64_t turns = f64_as_u64(n + k + r + 6755399441055744.0), exchange = (f64_as_u64(sine) ^ f64_as_u64(cosine)) & (0 - (turns & 1));\n"
    "    sine = u64_as_f64(f64_as_u64(sine) ^ exchange ^ (turns & 2) << 62);\n"
    "    cosine = u64_as_f64(f64_as_u64(cosine) ^ exchange ^ ((turns + 1) & 2) << 62);\n"
    "    return __builtin_complex(cosine, instead_f64(sine, a == 0, a));\n"
    "}\n";

static const char exp_for_c64_text[] =
    "double _Complex exp_for_c64(double x) /* e^x and e^x - 1; beyond what floats can be made of by a sine, that at 700 */\n"
    "{\n"
    EXP_PARTS
    "    double s = u64_as_f64((f64_as_u64(t) + 1023) << 52), y = s * (p + q);\n"
    "    return __builtin_complex(y + s, instead_f64(y + (s - 1.0), x == 0, x));\n"
    "}\n";

static const char hyperbolic_for_c64_text[] =
    "double _Complex hyperbolic_for_c64(double x) /* cosh x + i sinh x */\n"
    "{\n"
    EXP_PARTS
    "    double up = u64_as_f64((f64_as_u64(t) + 1022) << 52), down = u64_as_f64((1022 - f64_as_u64(t)) << 52), cosh_n = up + down, sinh_n = up - down;\n"
    "    return __builtin_complex(cosh_n * (p + 1.0) + sinh_n * q, __builtin_copysign(sinh_n * (p + 1.0) + cosh_n * q, x));\n"
    "}\n";

/* log |z| = log(m^2 + n^2) / 2, near 1 of (m - 1)(m + 1) + n^2, whose products are exact; 2^k (1 + r) as in log_f32, its logarithm by t = r / (2 + r). */
static const char log_for_c64_text[] =
    "double _Complex log_for_c64(float x, float y) /* log |x + iy| and the angle; only the angle where a part is infinite or both are 0 */\n"
    "{\n"
    "    double   a = __builtin_fabs((double)x), b = __builtin_fabs((double)y), m = a < b ? b : a, n = a < b ? a : b, size = m * m + n * n;\n"
    "    uint64_t e = f64_as_u64(size) - 0x3fe6a09e667f3bcd;\n"
    "    double   k = u64_as_f64((e >> 52 ^ 0x800) | 0x4330000000000000) - 4503599627372544.0; /* e >> 52, of which vectors make no float */\n"
    "    double   r = u64_as_f64((e & 0xfffffffffffff) + 0x3fe6a09e667f3bcd) - 1, near = (m - 1) * (m + 1) + n * n;\n"
    "    r = k == 0 ? near : r;\n"
    "    double t = r / (r + 2), z = t * t, p = z * 0.23582890983532312 + 0.28537276706651427;\n"
    "    p = ((p * z + 0.40000335563311934) * z + 0.6666666564448096) * z * t + 2 * t;\n"
    "    double q = n / m;\n"
    "    q = m == 0 ? 0 : q;\n"
    "    q = n == __builtin_inf() ? 1 : q;\n"
    "    double w = q * q, c = w * -0.0006408120002241235 + 0.004610146552719604;\n"
    "    c = ((((c * w - 0.01554383044664716) * w + 0.03345567690813391) * w - 0.053661206064846534) * w + 0.07213498896354809) * w - 0.08969629403276441;\n"
    "    c = ((((c * w + 0.11091132215104595) * w - 0.14283753295508836) * w + 0.19999902030892736) * w - 0.3333333160136261) * w * q + q;\n"
    "    c = a < b ? 1.5707963267948966 - c : c;\n"
    "    c = __builtin_signbit(x) ? 3.141592653589793 - c : c;\n"
    "    return __builtin_complex(0.5 * (k * 0.6931471805599453 + p), __builtin_copysign(c, y));\n"
    "}\n";

static const char exp_c64_text[] =
    "float _Complex exp_c64(float _Complex z)\n"
    "{\n"
    "    float           a = __real__ z, b = __imag__ z, inf = __builtin_inff();\n"
    "    double _Complex turn = turn_for_c64(b);\n"
    "    double          size = __real__ exp_for_c64(a);\n"
    "    float           re = (float)(size * __real__ turn), im = (float)(size * __imag__ turn);\n"
    "    int             lost = (b - b != 0) & (__builtin_fabsf(a) == inf);\n"
    "    re = instead_f32(re, lost, a > 0 ? inf : 0);\n"
    "    im = instead_f32(im, (b == 0) | (lost & (a < 0)), __builtin_copysignf(0, b));\n"
    "    return __builtin_complex(re, im);\n"
    "}\n";

/* (e^a - 1) cos b - (1 - cos b), the latter as sin^2 b / (1 + cos b). */
static const char expm1_c64_text[] =
    "float _Complex expm1_c64(float _Complex z)\n"
    "{\n"
    "    float           b = __imag__ z;\n"
    "    double _Complex turn = turn_for_c64(b), size = exp_for_c64(__real__ z);\n"
    "    double          c = __real__ turn, s = __imag__ turn, over = s / (1 + c) * s, less = c > 0 ? over : 1 - c;\n"
    "    float           re = (float)(__imag__ size * c - less), im = (float)(__real__ size * s);\n"
    "    return __builtin_complex(re, instead_f32(im, b == 0, b));\n"
    "}\n";

static const char sin_c64_text[] =
    "float _Complex sin_c64(float _Complex z)\n"
    "{\n"
    "    float           a = __real__ z, b = __imag__ z, inf = __builtin_inff();\n"
    "    double _Complex turn = turn_for_c64(a), size = hyperbolic_for_c64(b);\n"
    "    float           re = (float)(__imag__ turn * __real__ size), im = (float)(__real__ turn * __imag__ size);\n"
    "    int             lost = a - a != 0;\n"
    "    re = instead_f32(re, a == 0, a);\n"
    "    im = instead_f32(im, lost & ((b == 0) | (__builtin_fabsf(b) == inf)), b == 0 ? b : inf);\n"
    "    return __builtin_complex(re, im);\n"
    "}\n";

static const char cos_c64_text[] =
    "float _Complex cos_c64(float _Complex z)\n"
    "{\n"
    "    float           a = __real__ z, b = __imag__ z, inf = __builtin_inff();\n"
    "    double _Complex turn = turn_for_c64(a), size = hyperbolic_for_c64(b);\n"
    "    float           re = (float)(__real__ turn * __real__ size), im = (float)(__imag__ turn * -__imag__ size);\n"
    "    int             lost = a - a != 0;\n"
    "    re = instead_f32(re, lost & (__builtin_fabsf(b) == inf), inf);\n"
    "    im = instead_f32(im, ((b != b) & (a == 0)) | (lost & (b == 0)), b == 0 ? 0 : a);\n"
    "    return __builtin_complex(re, im);\n"
    "}\n";

static const char sinh_c64_text[] =
    "float _Complex sinh_c64(float _Complex z) /* -i sin iz */\n"
    "{\n"
    "    float _Complex w = sin_c64(__builtin_complex(-__imag__ z, __real__ z));\n"
    "    return __builtin_complex(__imag__ w, -__real__ w);\n"
    "}\n";

static const char cosh_c64_text[] =
    "float _Complex cosh_c64(float _Complex z) /* cos iz */\n"
    "{\n"
    "    return cos_c64(__builtin_complex(-__imag__ z, __real__ z));\n"
    "}\n";

/* (sinh a cosh a + i sin b cos b) / (sinh^2 a + cos^2 b) */
static const char tanh_c64_text[] =
    "float _Complex tanh_c64(float _Complex z)\n"
    "{\n"
    "    float           a = __real__ z, b = __imag__ z, size = __builtin_fabsf(a), inf = __builtin_inff();\n"
    "    double _Complex turn = turn_for_c64(b), grown = hyperbolic_for_c64(__builtin_copysignf(size > 300.0f ? 300.0f : size, a));\n"
    "    double          scale = 1 / (__imag__ grown * __imag__ grown + __real__ turn * __real__ turn);\n"
    "    float           re = (float)(__real__ grown * __imag__ grown * scale), im = (float)(__real__ turn * __imag__ turn * scale);\n"
    "    int             ends = (b - b != 0) & (size == inf);\n"
    "    re = instead_f32(re, (a == 0) | ends, __builtin_copysignf(a == 0 ? 0.0f : 1.0f, a));\n"
    "    im = instead_f32(im, (b == 0) | ends, __builtin_copysignf(0, b));\n"
    "    return __builtin_complex(re, im);\n"
    "}\n";

static const char tan_c64_text[] =
    "float _Complex tan_c64(float _Complex z) /* -i tanh iz */\n"
    "{\n"
    "    float _Complex w = tanh_c64(__builtin_complex(-__imag__ z, __real__ z));\n"
    "    return __builtin_complex(__imag__ w, -__real__ w);\n"
    "}\n";

static const char sqrt_c64_text[] =
    "float _Complex sqrt_c64(float _Complex z)\n"
    "{\n"
    "    float  a = __real__ z, b = __imag__ z, inf = __builtin_inff();\n"
    "    double x = a, y = b, root = sqrt(0.5 * (sqrt(x * x + y * y) + __builtin_fabs(x))), other = 0.5 * __builtin_fabs(y) / root;\n"
    "    int    open = __builtin_fabsf(b) == inf, ends = __builtin_fabsf(a) == inf;\n"
    "    float  large = instead_f32((float)root, open | ends, inf), small = instead_f32((float)other, (root == 0) | open | (ends & (b == b)), open ? inf : 0);\n"
    "    float re = __builtin_signbit(a) ? small : large, im = __builtin_signbit(a) ? large : small;\n"
    "    return __builtin_complex(re, __builtin_copysignf(im, b));\n"
    "}\n";

static const char log_c64_text[] =
    "float _Complex log_c64(float _Complex z)\n"
    "{\n"
    "    float           a = __real__ z, b = __imag__ z, inf = __builtin_inff();\n"
    "    double _Complex w = log_for_c64(a, b);\n"
    "    float           re = (float)__real__ w, im = (float)__imag__ w;\n"
    "    int             none = (a != a) | (b != b), zero = (a == 0) & (b == 0), open = (__builtin_fabsf(a) == inf) | (__builtin_fabsf(b) == inf);\n"
    "    re = instead_f32(re, none, a + b);\n"
    "    re = instead_f32(re, zero | open, zero ? -inf : inf);\n"
    "    im = instead_f32(im, none, a + b);\n"
    "    return __builtin_complex(re, im);\n"
    "}\n";

/* e^(y log x), the product repaired as C's is, and what XLA has of 1, 0 and infinities. Here log x and the angle are precise to the last bits, since large powers make errors of theirs larger. */
static const char pow_c64_text[] =
    "float _Complex pow_c64(float _Complex x, float _Complex y)\n"
    "{\n"
    "    double inf = __builtin_inf(), a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y, s = __builtin_fabs(a), t = __builtin_fabs(b), m = s < t ? t : s, n = s < t ? s : t;\n"
    "    double size = m * m + n * n, off = (m - 1) * (m + 1) + n * n, near = 1 + off, more = (off - (near - 1)) / near;\n"
    "    int    by_one = (size > 0.5) & (size < 2), open = (s == inf) | (t == inf);\n"
    "    double l = 0.5 * (log(instead_f64(instead_f64(size, by_one, near), open, inf)) + instead_f64(0, by_one, more)), at = atan2(b, a);\n"
    "    double u = c * l - d * at, v = c * at + d * l;\n"
    "    int    wide = (__builtin_fabs(c) == inf) | (__builtin_fabs(d) == inf), deep = __builtin_fabs(l) == inf, lost = (u != u) & (v != v) & (wide | deep);\n"
    "    double e = instead_f64(c, c != c, 0), f = instead_f64(d, d != d, 0), g = instead_f64(l, l != l, 0), h = instead_f64(at, at != at, 0);\n"
    "    e = instead_f64(e, wide, __builtin_copysign((double)(__builtin_fabs(c) == inf), c));\n"
    "    f = instead_f64(f, wide, __builtin_copysign((double)(__builtin_fabs(d) == inf), d));\n"
    "    g = instead_f64(g, deep, __builtin_copysign(1.0, l)), h = instead_f64(h, deep, 0);\n"
    "    u = instead_f64(u, lost, inf * (e * g - f * h));\n"
    "    v = instead_f64(v, lost, inf * (e * h + f * g));\n"
    "    double scale = __real__ exp_for_c64(u), re = scale * cos_f64(v), im = scale * sin_f64(v);\n"
    "    int    real = d == 0, wild = (v - v != 0) & (__builtin_fabs(u) == inf), one = ((a == 1) & (b == 0)) | (real & (c == 0)), ends = real & (open | ((size == 0) & (c > 0)));\n"
    "    re = instead_f64(re, wild, u > 0 ? inf : 0);\n"
    "    re = instead_f64(re, ends, (open & (c > 0)) ? inf : 0);\n"
    "    re = instead_f64(re, one, 1);\n"
    "    im = instead_f64(im, one | ends | (v == 0) | (wild & (u < 0)), 0);\n"
    "    return __builtin_complex((float)re, (float)im);\n"
    "}\n";

/* Scaled by powers of two where squares would overflow or vanish. */
static const char abs_c128_text[] =
    "double abs_c128(double _Complex z)\n"
    "{\n"
    "    double a = __builtin_fabs(__real__ z), b = __builtin_fabs(__imag__ z), inf = __builtin_inf(), m = a < b ? b : a;\n"
    "    double by = m > 0x1p500 ? 0x1p-600 : m < 0x1p-450 ? 0x1p600 : 1, back = m > 0x1p500 ? 0x1p600 : m < 0x1p-450 ? 0x1p-600 : 1, x = a * by, y = b * by;\n"
    "    return instead_f64(sqrt(x * x + y * y) * back, (a == inf) | (b == inf), inf);\n"
    "}\n";

static const char sqrt_c128_text[] =
    "double _Complex sqrt_c128(double _Complex z)\n"
    "{\n"
    "    double a = __real__ z, b = __imag__ z, c = __builtin_fabs(a), d = __builtin_fabs(b), inf = __builtin_inf(), m = c < d ? d : c;\n"
    "    double by = m > 0x1p500 ? 0x1p-600 : m < 0x1p-450 ? 0x1p600 : 1, back = m > 0x1p500 ? 0x1p300 : m < 0x1p-450 ? 0x1p-300 : 1, x = c * by, y = d * by;\n"
    "    double root = sqrt(0.5 * (sqrt(x * x + y * y) + x)) * back, other = 0.5 * (d / root);\n"
    "    int    open = d == inf, ends = c == inf;\n"
    "    double large = instead_f64(root, open | ends, inf), small = instead_f64(instead_f64(other, (root == 0) | (ends & (b == b)), 0), open, inf);\n"
    "    int    left = __builtin_copysign(1.0, a) < 0;\n"
    "    return __builtin_complex(instead_f64(large, left, small), __builtin_copysign(instead_f64(small, left, large), b));\n"
    "}\n";

/* By the larger part of the divisor (Smith), scaled by powers of two where parts are near the ends of what doubles hold, as in libgcc; small / large, where it would vanish, times 2^900.
 * Infinities and zeros are repaired where both parts are NaN, as by C's operator. */
static const char div_c128_text[] =
    "double _Complex div_c128(double _Complex z, double _Complex w)\n"
    "{\n"
    "    double a = __real__ z, b = __imag__ z, c = __real__ w, d = __imag__ w, inf = __builtin_inf(), nan = __builtin_nan(\"\");\n"
    "    if (__builtin_constant_p(d) && d == 0 && !__builtin_signbit(d)) { /* a real divisor */\n"
    "        double side = __builtin_copysign(1.0, c), size = __builtin_fabs(c), re = a * side + b * 0, im = b * side - a * 0;\n"
    "        int    plain = (c == 0) | ((re != re) & (im != im) & (size < inf) & ((__builtin_fabs(a) == inf) | (__builtin_fabs(b) == inf)));\n"
    "        return __builtin_complex(instead_f64(re, plain, a * side) / size, instead_f64(im, plain, b * side) / size);\n"
    "    }\n"
    "    int    wide = __builtin_fabs(c) >= __builtin_fabs(d);\n"
    "    double p = wide ? b : a, q = wide ? a : b, s = wide ? d : c, t = wide ? c : d;\n"
    "    double most = __builtin_fabs(t), left = __builtin_fabs(p), right = __builtin_fabs(q), end = 0x1p970;\n"
    "    int    tiny = ((left < 0x1p-1022) & (right < end) & (most < end)) | ((right < 0x1p-1022) & (left < end) & (most < end));\n"
    "    double by = most >= 0x1p1023 ? 0.5 : (most < 0x1p-52) | tiny ? 0x1p52 : 1;\n"
    "    p *= by, q *= by, s *= by, t *= by;\n"
    "    double more = __builtin_fabs(s) < __builtin_fabs(t) * 0x1p-900 ? 0x1p900 : 1, less = __builtin_fabs(s) < __builtin_fabs(t) * 0x1p-900 ? 0x1p-900 : 1, r = s * more / t;\n"
    "    r = instead_f64(r, (r == 0) & (s != 0), __builtin_copysign(0x1p-1074, r)); /* vanishes in what it is part of, but for infinities */\n"
    "    double size = s * (r * less) + t, part = q * r * less, re = (p * r * less + q) / size, im = (wide ? p - part : part - p) / size;\n"
    "    int    lost = (re != re) & (im != im), u = __builtin_fabs(a) == inf, v = __builtin_fabs(b) == inf, k = __builtin_fabs(c) == inf, n = __builtin_fabs(d) == inf;\n"
    "    int    above = u | v, below = k | n, none = (c == 0) & (d == 0);\n"
    "    double e = instead_f64(a, above, __builtin_copysign((double)u, a)), f = instead_f64(b, above, __builtin_copysign((double)v, b));\n"
    "    double g = instead_f64(c, below, __builtin_copysign((double)k, c)), h = instead_f64(d, below, __builtin_copysign((double)n, d));\n"
    "    double scale = instead_f64(instead_f64(nan, above, inf), below, above ? nan : 0), infinite = __builtin_copysign(inf, c);\n"
    "    re = instead_f64(re, lost, instead_f64(scale * (e * g + f * h), none, infinite * a));\n"
    "    im = instead_f64(im, lost, instead_f64(scale * (f * g - e * h), none, infinite * b));\n"
    "    return __builtin_complex(re, im);\n"
    "}\n";

#endif
