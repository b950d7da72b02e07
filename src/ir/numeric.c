/* Numbers of every element type. The formats are rows of types.def: exponent bits, mantissa bits, bias and what the top
 * patterns mean; one decoder and one encoder serve all of them. Values pass through double, which holds every float type exactly.
 *
 *   pattern  s eeee mmm    e = 0: m * 2^(1 - bias - man)    else (2^man + m) * 2^(e - bias - man)
 *
 * Source: reference operations 1.3, 4.1; reference text 3.1, 8.5. */
#include "ir/numeric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/arena.h"

static uint64_t f64_bits(double v)
{
    uint64_t x;
    memcpy(&x, &v, sizeof x);
    return x;
}

static double f64_of_bits(uint64_t x)
{
    double v;
    memcpy(&v, &x, sizeof v);
    return v;
}

static uint32_t f32_bits(float v)
{
    uint32_t x;
    memcpy(&x, &v, sizeof x);
    return x;
}

static float f32_of_bits(uint32_t x)
{
    float v;
    memcpy(&v, &x, sizeof v);
    return v;
}

static int      magnitude_bits(const TypeInfo *f) { return f->exp + f->man; }
static uint64_t sign_mask(const TypeInfo *f) { return f->specials == SPECIALS_FNU ? 0 : (uint64_t)1 << magnitude_bits(f); }
static uint64_t all_ones(int bits) { return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1; }

/* The pattern of the largest finite magnitude. The pattern after it is infinity (IEEE) or NaN (FN). */
static uint64_t max_finite(const TypeInfo *f)
{
    if (f->specials == SPECIALS_IEEE)
        return (all_ones(f->exp) << f->man) - 1;
    if (f->specials == SPECIALS_FN || f->specials == SPECIALS_FNU)
        return all_ones(magnitude_bits(f)) - 1;
    return all_ones(magnitude_bits(f));
}

/* ---- NaN ---- */

bool float_is_nan(Type t, uint64_t bits)
{
    const TypeInfo *f = &type_info[t];
    uint64_t        magnitude = bits & all_ones(magnitude_bits(f));
    switch (f->specials) {
    case SPECIALS_IEEE: return magnitude > max_finite(f) + 1;
    case SPECIALS_FN:
    case SPECIALS_FNU: return magnitude > max_finite(f);
    case SPECIALS_FNUZ: return magnitude == 0 && (bits & sign_mask(f)) != 0;
    case SPECIALS_FINITE:
    case SPECIALS_NONE: return false;
    }
    return false;
}

int nan_payload_bits(Type t)
{
    return type_info[t].specials == SPECIALS_IEEE ? type_info[t].man : 0;
}

uint64_t nan_quiet_payload(Type t)
{
    int bits = nan_payload_bits(t);
    return bits > 0 ? (uint64_t)1 << (bits - 1) : 0;
}

/* The types without NaN get what XLA's casts make of one: a zero whose sign is the opposite. */
uint64_t nan_make(Type t, bool negative, uint64_t payload)
{
    const TypeInfo *f = &type_info[t];
    uint64_t        sign = negative ? sign_mask(f) : 0;
    switch (f->specials) {
    case SPECIALS_IEEE:
        return sign | all_ones(f->exp) << f->man | (payload != 0 ? payload & all_ones(f->man) : nan_quiet_payload(t));
    case SPECIALS_FN: return sign | all_ones(magnitude_bits(f));
    case SPECIALS_FNUZ: return sign_mask(f);
    case SPECIALS_FNU: return all_ones(magnitude_bits(f));
    case SPECIALS_FINITE: return sign ^ sign_mask(f);
    case SPECIALS_NONE: break;
    }
    die("nan_make: %s is no float", type_name(t));
}

/* ---- bits to double ---- */

static double decode_special(const TypeInfo *f, bool negative, uint64_t mantissa)
{
    uint64_t payload = 0;
    bool     infinite = f->specials == SPECIALS_IEEE && mantissa == 0;
    if (!infinite)
        payload = f->specials == SPECIALS_IEEE ? mantissa << (52 - f->man) : (uint64_t)1 << 51;
    return f64_of_bits((uint64_t)negative << 63 | all_ones(11) << 52 | payload);
}

double float_decode(Type t, uint64_t bits)
{
    const TypeInfo *f = &type_info[t];
    if (t == TYPE_F64)
        return f64_of_bits(bits);
    if (t == TYPE_F32)
        return (double)f32_of_bits((uint32_t)bits);
    uint64_t magnitude = bits & all_ones(magnitude_bits(f));
    bool     negative = (bits & sign_mask(f)) != 0;
    uint64_t mantissa = magnitude & all_ones(f->man);
    int      e = (int)(magnitude >> f->man);
    if (float_is_nan(t, bits) || (f->specials == SPECIALS_IEEE && magnitude > max_finite(f)))
        return decode_special(f, negative, mantissa);
    double v = e == 0 && f->specials != SPECIALS_FNU ? ldexp((double)mantissa, 1 - f->bias - f->man)
                                                     : ldexp((double)(mantissa | (uint64_t)1 << f->man), e - f->bias - f->man);
    return negative ? -v : v;
}

/* ---- double to bits ---- */

/* x / 2^shift, to nearest, ties to even. */
static uint64_t round_shift(uint64_t x, int shift)
{
    if (shift == 0)
        return x;
    if (shift > 63)
        return 0;
    uint64_t half = (uint64_t)1 << (shift - 1), rest = x & all_ones(shift), q = x >> shift;
    return q + (rest > half || (rest == half && (q & 1) != 0));
}

/* The rounded pattern of a finite magnitude, one past max_finite or more when it overflows. */
static uint64_t encode_magnitude(const TypeInfo *f, uint64_t f64_magnitude)
{
    int      e = (int)(f64_magnitude >> 52) - 1023 + f->bias; /* exponent field in the target; below 1: subnormal */
    uint64_t significand = (f64_magnitude & all_ones(52)) | (uint64_t)1 << 52;
    if (f64_magnitude >> 52 == 0)
        return 0; /* zero and the subnormals of double: nothing to see in any narrower type */
    if (e < 1)
        return round_shift(significand, 52 - f->man + 1 - e);
    if (e > (int)all_ones(f->exp))
        return max_finite(f) + 1;
    return ((uint64_t)(e - 1) << f->man) + round_shift(significand, 52 - f->man);
}

/* f8e8m0fnu: the nearest power of two, ties up; nothing below 2^-127, no zero, no sign. */
static uint64_t encode_e8m0(double v)
{
    int e;
    if (!(v > 0) || isinf(v))
        return 0xff;
    double m = frexp(v, &e); /* v = m * 2^e, m in [0.5, 1) */
    e += 126 + (m >= 0.75);
    return e > 0xfe ? 0xff : e < 0 ? 0 : (uint64_t)e;
}

uint64_t float_encode(Type t, double v)
{
    const TypeInfo *f = &type_info[t];
    if (t == TYPE_F64)
        return f64_bits(v);
    if (t == TYPE_F32)
        return f32_bits((float)v);
    if (f->specials == SPECIALS_FNU)
        return encode_e8m0(v);
    bool negative = signbit(v) != 0;
    if (isnan(v))
        return nan_make(t, negative, 0);
    uint64_t sign = negative ? sign_mask(f) : 0;
    uint64_t bits = isinf(v) ? max_finite(f) + 1 : encode_magnitude(f, f64_bits(v) & all_ones(63));
    if (bits > max_finite(f))
        switch (f->specials) {
        case SPECIALS_FINITE: return sign | max_finite(f);
        case SPECIALS_FNUZ: return sign_mask(f);
        default: return sign | (max_finite(f) + 1);
        }
    return bits == 0 && f->specials == SPECIALS_FNUZ ? 0 : sign | bits;
}

/* ---- the two common halves ---- */

float bf16_to_f32(uint16_t x)
{
    return f32_of_bits((uint32_t)x << 16);
}

uint16_t f32_to_bf16(float v)
{
    uint32_t x = f32_bits(v);
    if ((x & 0x7fffffff) > 0x7f800000)
        return (uint16_t)((x >> 16 & 0x8000) | 0x7fc0);
    return (uint16_t)((x + 0x7fff + (x >> 16 & 1)) >> 16);
}

float f16_to_f32(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, magnitude = (uint32_t)(x & 0x7fff) << 13;
    if (magnitude >= 0x7c00u << 13)
        return f32_of_bits(sign | magnitude | 0x7f800000);
    if (magnitude >= 0x0400u << 13)
        return f32_of_bits(sign | (magnitude + ((127 - 15) << 23)));
    float v = (float)(x & 0x7fff) * 0x1p-24f;
    return sign != 0 ? -v : v;
}

uint16_t f32_to_f16(float v)
{
    uint32_t x = f32_bits(v), sign = x >> 16 & 0x8000, magnitude = x & 0x7fffffff, h;
    if (magnitude > 0x7f800000)
        h = 0x7e00;
    else if (magnitude >= 0x477ff000) /* 65520 and more */
        h = 0x7c00;
    else if (magnitude < 0x38800000) /* below 2^-14: adding 0.5 lets the adder round at 2^-24 */
        h = f32_bits(f32_of_bits(magnitude) + 0.5f) - f32_bits(0.5f);
    else
        h = (magnitude - ((127 - 15) << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    return (uint16_t)(sign | h);
}

/* ---- conversions ---- */

uint64_t float_convert_from_f64(Type to, double v)
{
    if (to == TYPE_F16)
        return f32_to_f16((float)v);
    if (to == TYPE_BF16)
        return f32_to_bf16((float)v);
    return float_encode(to, v);
}

uint64_t float_convert_from_s64(Type to, int64_t v)
{
    return to == TYPE_F64 ? f64_bits((double)v) : float_encode(to, (double)(float)v);
}

uint64_t float_convert_from_u64(Type to, uint64_t v)
{
    return to == TYPE_F64 ? f64_bits((double)v) : float_encode(to, (double)(float)v);
}

int64_t int_convert_from_f64(Type to, double v)
{
    int bits = type_bits(to);
    if (to == TYPE_PRED)
        return v != 0;
    if (isnan(v))
        return 0;
    if (type_is_signed_int(to)) {
        double limit = ldexp(1.0, bits - 1);
        int64_t hi = (int64_t)all_ones(bits - 1);
        return v >= limit ? hi : v < -limit ? -hi - 1 : (int64_t)v;
    }
    if (v >= ldexp(1.0, bits))
        return (int64_t)all_ones(bits);
    return v <= 0 ? 0 : (int64_t)(uint64_t)v;
}

int64_t int_wrap(Type to, int64_t v)
{
    int spare = 64 - type_bits(to);
    if (to == TYPE_PRED)
        return v != 0;
    if (type_is_signed_int(to))
        return (int64_t)((uint64_t)v << spare) >> spare;
    return (int64_t)((uint64_t)v << spare >> spare);
}

/* ---- text ---- */

static const double ten_to[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
static const uint64_t five_to[] = { /* up to 2^63 */
    1u, 5u, 25u, 125u,
    625u, 3125u, 15625u, 78125u,
    390625u, 1953125u, 9765625u, 48828125u,
    244140625u, 1220703125u, 6103515625u, 30517578125u,
    152587890625u, 762939453125u, 3814697265625u, 19073486328125u,
    95367431640625u, 476837158203125u, 2384185791015625u, 11920928955078125u,
    59604644775390625u, 298023223876953125u, 1490116119384765625u, 7450580596923828125u,
};
enum { EXACT_TENS = sizeof ten_to / sizeof *ten_to, EXACT_FIVES = sizeof five_to / sizeof *five_to };

/* A decimal number of n digits: digits * 10^(exp10 - n + 1), digits in [10^(n-1), 10^n). */
typedef struct Decimal {
    uint64_t digits;
    int      n, exp10;
} Decimal;

__extension__ typedef unsigned __int128 Wide;

/* m * 2^e * 10^k, to nearest with ties to even. False when the numbers do not fit 128 bits. The result is below 10^19. */
static bool scale_exactly(uint64_t *result, uint64_t m, int e, int k)
{
    Wide q, rest, half;
    bool more = false; /* a remainder below rest */
    if (k >= EXACT_FIVES || -k >= EXACT_FIVES)
        return false;
    if (k >= 0) { /* m * 5^k * 2^(e + k) */
        Wide x = (Wide)m * five_to[k];
        if (e + k >= 0) {
            *result = (uint64_t)(x << (e + k));
            return true;
        }
        if (-(e + k) >= 127)
            return false;
        q = x >> -(e + k);
        rest = x - (q << -(e + k));
        half = (Wide)1 << (-(e + k) - 1);
    } else { /* the integer part of m * 2^e, divided by 10^-k */
        if (e > 74 || e < -63)
            return false;
        Wide x = e >= 0 ? (Wide)m << e : (Wide)(m >> -e), ten = (Wide)five_to[-k] << -k;
        more = e < 0 && (m & all_ones(-e)) != 0;
        q = x / ten;
        rest = x % ten;
        half = ten / 2;
    }
    *result = (uint64_t)q + (rest > half || (rest == half && (more || (q & 1) != 0)));
    return true;
}

/* v > 0, finite, to n <= 17 digits. False when v is too large or too small; the caller then asks the C library. */
static bool decimal_exact(Decimal *d, double v, int n)
{
    int      e2, x;
    double   fraction = frexp(v, &e2);
    uint64_t m = (uint64_t)(fraction * 0x1p53), limit = five_to[n] << n;
    if (!(v >= 1e-20 && v < 1e30))
        return false;
    x = (int)floor((e2 - 1) * 0.30102999566398119521); /* 10^x <= v < 10^(x+2) */
    if (!scale_exactly(&d->digits, m, e2 - 53, n - 1 - x))
        return false;
    if (d->digits >= limit && !scale_exactly(&d->digits, m, e2 - 53, n - 1 - ++x))
        return false;
    if (d->digits >= limit) { /* 99..9.5 became 100..0 */
        d->digits /= 10;
        x++;
    }
    d->n = n;
    d->exp10 = x;
    return true;
}

/* Whether d reads as the value v of t, f32 or f64: 1 yes, 0 no, -1 when this needs more than one rounding of doubles. */
static int decimal_reads_as(const Decimal *d, Type t, double v)
{
    int k = d->n - 1 - d->exp10;
    if (k >= EXACT_TENS || -k >= EXACT_TENS || d->digits >> 53 != 0)
        return -1;
    double   back = k >= 0 ? (double)d->digits / ten_to[k] : (double)d->digits * ten_to[-k];
    uint64_t low = f64_bits(back) & all_ones(29), middle = (uint64_t)1 << 28;
    if (t == TYPE_F64)
        return back == v;
    if (low + 1 >= middle && low <= middle + 1)
        return -1; /* near the middle between two floats */
    return (double)(float)back == v;
}

/* The %g form. Room for 24 bytes. */
static size_t decimal_format(const Decimal *d, char *out)
{
    char     text[20];
    int      n = d->n;
    uint64_t rest = d->digits;
    char    *p = out;
    for (int i = n - 1; i >= 0; i--, rest /= 10)
        text[i] = (char)('0' + rest % 10);
    while (n > 1 && text[n - 1] == '0')
        n--;
    if (d->exp10 < -4 || d->exp10 >= d->n) {
        *p++ = text[0];
        if (n > 1) {
            *p++ = '.';
            memcpy(p, text + 1, (size_t)(n - 1));
            p += n - 1;
        }
        int e = abs(d->exp10);
        *p++ = 'e';
        *p++ = d->exp10 < 0 ? '-' : '+';
        *p++ = (char)('0' + e / 10);
        *p++ = (char)('0' + e % 10);
        return (size_t)(p - out);
    }
    if (d->exp10 < 0) {
        *p++ = '0';
        *p++ = '.';
        for (int i = d->exp10 + 1; i < 0; i++)
            *p++ = '0';
    }
    for (int i = 0; i < n || i <= d->exp10; i++) {
        if (i == d->exp10 + 1 && i > 0)
            *p++ = '.';
        *p++ = i < n ? text[i] : '0';
    }
    return (size_t)(p - out);
}

static size_t format_by_library(char *out, size_t size, int digits, double v)
{
    size_t n = (size_t)snprintf(out, size, "%.*g", digits, v);
    for (size_t i = 0; i < n; i++)
        if (strchr("0123456789e+-", out[i]) == NULL)
            out[i] = '.'; /* the point of the locale */
    return n;
}

void number_print_g(Buf *b, int digits, double v)
{
    char    text[40];
    Decimal d;
    size_t  n;
    if (signbit(v)) {
        buf_putc(b, '-');
        v = -v;
    }
    if (v == 0 || isnan(v) || isinf(v)) {
        buf_puts(b, v == 0 ? "0" : isnan(v) ? "nan" : "inf");
        return;
    }
    if (digits <= 17 && decimal_exact(&d, v, digits))
        n = decimal_format(&d, text);
    else
        n = format_by_library(text, sizeof text, digits, v);
    buf_put(b, text, n);
}

/* Whether the short form of v > 0 is enough. Text and reading use the same locale here. */
static bool short_form_is_exact(Type t, double v)
{
    char    text[40];
    Decimal d;
    int     digits = t == TYPE_F32 ? 6 : 15, same = decimal_exact(&d, v, digits) ? decimal_reads_as(&d, t, v) : -1;
    if (same >= 0)
        return same == 1;
    (void)snprintf(text, sizeof text, "%.*g", digits, v);
    return t == TYPE_F32 ? (double)strtof(text, NULL) == v : strtod(text, NULL) == v;
}

/* Digits that always suffice, ceil(1 + p * log10 2) with p = man + 1, as used for the types below 32 bits. */
static int small_float_digits(const TypeInfo *f)
{
    return (int)ceil(1 + (f->man + 1) * 0.30102999566398119521);
}

static void put_nan(Buf *b, Type t, uint64_t bits)
{
    uint64_t payload = bits & all_ones(nan_payload_bits(t));
    buf_puts(b, (bits & sign_mask(&type_info[t])) != 0 ? "-nan" : "nan");
    if (payload != nan_quiet_payload(t))
        buf_printf(b, "(0x%llx)", (unsigned long long)payload);
}

void number_print_float(Buf *b, Type t, uint64_t bits, bool signed_zero)
{
    if (float_is_nan(t, bits)) {
        put_nan(b, t, bits);
        return;
    }
    double v = float_decode(t, bits);
    if (isinf(v))
        buf_puts(b, v < 0 ? "-inf" : "inf");
    else if (v == 0)
        buf_puts(b, !signbit(v) ? "0" : signed_zero ? "-0.0" : "-0");
    else if (t == TYPE_F32)
        number_print_g(b, short_form_is_exact(t, fabs(v)) ? 6 : 9, v);
    else if (t == TYPE_F64)
        number_print_g(b, short_form_is_exact(t, fabs(v)) ? 15 : 17, v);
    else
        number_print_g(b, small_float_digits(&type_info[t]), v);
}
