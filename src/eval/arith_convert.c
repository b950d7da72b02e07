/* convert and stochastic-convert. Source: reference operations 1.3, 4.1, 4.4.
 *
 *   to pred                  x != 0 (NaN is true)
 *   integer -> integer       the low bits; pred is 0 or 1
 *   integer -> float         nearest even, types narrower than f32 through f32
 *   float -> integer         NaN is 0, out of range saturates, else truncation
 *   float -> float           f64 to f16 and bf16 through f32, else one rounding
 *   complex -> real          the real part;  real -> complex: imaginary part 0 */
#include "eval/arith.h"

#include <math.h>
#include <string.h>

#include "ir/numeric.h"

/* One block each; v holds the source values as value_domain(from) has them. */

static void store_truth(Domain d, const void *v, uint8_t *out, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        switch (d) {
        case DOMAIN_PRED: out[j] = ((const uint8_t *)v)[j] != 0; break;
        case DOMAIN_S64: case DOMAIN_U64: out[j] = ((const int64_t *)v)[j] != 0; break;
        case DOMAIN_F32: out[j] = ((const float *)v)[j] != 0; break;
        case DOMAIN_F64: out[j] = ((const double *)v)[j] != 0; break;
        case DOMAIN_C64: out[j] = ((const float *)v)[2 * j] != 0 || ((const float *)v)[2 * j + 1] != 0; break;
        default: out[j] = ((const double *)v)[2 * j] != 0 || ((const double *)v)[2 * j + 1] != 0;
        }
}

static void put_bits(Type t, void *out, int64_t j, uint64_t bits)
{
    memcpy((char *)out + j * type_bytes(t), &bits, (size_t)type_bytes(t));
}

/* 64-bit integers (signed or not) to any float. */
static void int_to_float(bool is_signed, const int64_t *v, Type to, void *out, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        if (to == TYPE_F32)
            ((float *)out)[j] = is_signed ? (float)v[j] : (float)(uint64_t)v[j];
        else
            put_bits(to, out, j, is_signed ? float_convert_from_s64(to, v[j]) : float_convert_from_u64(to, (uint64_t)v[j]));
}

static void float_to_int(const double *v, Type to, void *out, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        bool fits = fabs(v[j]) < 0x1p31; /* false for NaN */
        if (to == TYPE_S32 && fits)
            ((int32_t *)out)[j] = (int32_t)v[j];
        else
            put_bits(to, out, j, (uint64_t)int_convert_from_f64(to, v[j]));
    }
}

static void float_to_float(Type from, const void *v, Type to, void *out, int64_t n)
{
    if (from != TYPE_F64) { /* f32 domain: every target is one rounding away */
        value_store(to, out, DOMAIN_F32, v, n);
        return;
    }
    const double *x = v;
    for (int64_t j = 0; j < n; j++)
        if (to == TYPE_F32)
            ((float *)out)[j] = (float)x[j];
        else
            put_bits(to, out, j, float_convert_from_f64(to, x[j]));
}

/* The real parts of n complex values, in place of them. */
static void take_real(Domain d, const void *v, void *out, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        if (d == DOMAIN_C64)
            ((float *)out)[j] = ((const float *)v)[2 * j];
        else
            ((double *)out)[j] = ((const double *)v)[2 * j];
}

static void convert_real(Type from, const void *p, Type to, void *out, int64_t n)
{
    Block room, wide;
    Domain d = value_domain(from);
    const void *v = value_load(d, from, p, n, &room);
    if (d == DOMAIN_PRED)
        v = value_load(DOMAIN_U64, from, p, n, &room);
    bool to_int = type_is_int(to), from_int = !type_is_float(from);
    if (to == TYPE_PRED)
        store_truth(d == DOMAIN_PRED ? DOMAIN_U64 : d, v, out, n);
    else if (from_int && to_int)
        value_store(to, out, type_is_signed_int(to) ? DOMAIN_S64 : DOMAIN_U64, v, n);
    else if (from_int)
        int_to_float(d == DOMAIN_S64, v, to, out, n);
    else if (to_int)
        float_to_int(value_load(DOMAIN_F64, d == DOMAIN_F32 ? TYPE_F32 : TYPE_F64, v, n, &wide), to, out, n);
    else
        float_to_float(from, v, to, out, n);
}

/* Parts are converted as real values are and then interleaved. */
static void convert_to_complex(Type from, const void *p, Type to, void *out, int64_t n)
{
    Type part = type_component(to);
    if (type_is_complex(from)) {
        convert_real(type_component(from), p, part, out, n);
        convert_real(type_component(from), (const char *)p + n * type_bytes(from) / 2, part, (char *)out + n * type_bytes(to) / 2, n);
        return;
    }
    Block re;
    convert_real(from, p, part, &re, n);
    for (int64_t j = 0; j < n; j++)
        if (part == TYPE_F32)
            ((float *)out)[2 * j] = re.f[j], ((float *)out)[2 * j + 1] = 0;
        else
            ((double *)out)[2 * j] = re.d[j], ((double *)out)[2 * j + 1] = 0;
}

static void convert_block(Type from, const void *p, Type to, void *out, int64_t n)
{
    if (type_is_complex(to)) {
        convert_to_complex(from, p, to, out, n);
        return;
    }
    if (!type_is_complex(from)) {
        convert_real(from, p, to, out, n);
        return;
    }
    if (to == TYPE_PRED) {
        store_truth(value_domain(from), p, out, n);
        return;
    }
    Block re;
    take_real(value_domain(from), p, &re, n);
    convert_real(type_component(from), &re, to, out, n);
}

void arith_convert(const Arith *k, void *out, const void *const *x, int64_t n)
{
    Type from = k->type[0], to = k->out;
    for (int64_t j = 0; j < n; j += BLOCK) {
        int64_t m = n - j < BLOCK ? n - j : BLOCK;
        convert_block(from, (const char *)x[0] + j * type_bytes(from), to, (char *)out + j * type_bytes(to), m);
    }
}

void arith_copy(const Arith *k, void *out, const void *const *x, int64_t n)
{
    if (out != x[0])
        memcpy(out, x[0], (size_t)n * (size_t)type_bytes(k->out));
}

/* One value of stochastic-convert: |x| = t + fraction is rounded up when the random bits, read as a fraction, are below it.
 * f16 multiplies in f32 and so do the narrower types. */
static int64_t stochastic(Type from, double x, uint64_t random, Type to)
{
    int bits = type_bits(to), width = type_bits(from);
    int64_t hi = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1, lo = -hi - 1;
    if (isnan(x))
        return 0;
    if (x <= (double)lo)
        return lo;
    if (x >= (double)hi)
        return hi;
    double t = floor(fabs(x)), fraction = fabs(x) - t;
    uint64_t below = (uint64_t)ldexp(fraction, width);
    int64_t magnitude = (int64_t)t + (random < below);
    return x < 0 ? -magnitude : magnitude;
}

void arith_stochastic_convert(const Arith *k, void *out, const void *const *x, int64_t n)
{
    Block values, random, results;
    for (int64_t j = 0; j < n; j += BLOCK) {
        int64_t m = n - j < BLOCK ? n - j : BLOCK;
        const double *v = value_load(DOMAIN_F64, k->type[0], (const char *)x[0] + j * type_bytes(k->type[0]), m, &values);
        const uint64_t *r = value_load(DOMAIN_U64, k->type[1], (const char *)x[1] + j * type_bytes(k->type[1]), m, &random);
        for (int64_t b = 0; b < m; b++)
            results.i[b] = stochastic(k->type[0], v[b], r[b], k->out);
        value_store(k->out, (char *)out + j * type_bytes(k->out), DOMAIN_S64, &results, m);
    }
}
