/* test_types.h - for the tests of products and convolutions: every set of instructions that this processor has, small whole numbers in all types, and memory
 * to the byte. */
#ifndef HLORT_TEST_TYPES_H
#define HLORT_TEST_TYPES_H

#include "runtime/gemm.h"
#include "support/check.h"

extern const KernelSet hlort_wide, hlort_wide_n; /* test_kernels.c */

static const KernelSet *const sets[] = {
    &hlort_base, &hlort_wide, &hlort_wide_n,
#if defined(__x86_64__)
    &hlort_v2, &hlort_v3, &hlort_v4, &hlort_v4b, &hlort_v4n,
#endif
};
enum { N_SETS = sizeof sets / sizeof *sets };

static int has(const KernelSet *s)
{
    return s == &hlort_wide || s == &hlort_wide_n || hlort_has(s);
}

static uint32_t random_bits(uint32_t *state)
{
    return *state = *state * 1664525 + 1013904223;
}

static inline int *values(int64_t n, uint32_t seed)
{
    int *v = malloc((size_t)(n + 1) * sizeof *v);
    for (int64_t k = 0; k < n; k++)
        v[k] = (int)(random_bits(&seed) >> 24) % 9 - 4;
    return v;
}

/* Of numbers of either sign, for a type without one. */
static inline int *magnitudes(const int *v, int64_t n)
{
    int *to = malloc((size_t)(n + 1) * sizeof *to);
    for (int64_t k = 0; k < n; k++)
        to[k] = v[k] < 0 ? -v[k] : v[k];
    return to;
}

typedef enum Kind { F32, F64, BF16, F16, S32, S8, U8 } Kind;
static const struct {
    Kind in, out, sums;
} kinds[] = {
    [GEMM_F32] = { F32, F32, F32 }, [GEMM_F64] = { F64, F64, F64 },     [GEMM_BF16] = { BF16, BF16, F32 }, [GEMM_BF16_F32] = { BF16, F32, F32 },
    [GEMM_F16] = { F16, F16, F32 }, [GEMM_F16_F32] = { F16, F32, F32 }, [GEMM_S32] = { S32, S32, S32 },    [GEMM_S8_S32] = { S8, S32, S32 },
    [GEMM_U8_S32] = { U8, S32, S32 },
};
static const size_t size_of[] = { 4, 8, 2, 2, 4, 1, 1 };

/* A whole number in `bits` bits of mantissa, the nearest and of two the even one. */
static double rounded(double v, int bits)
{
    double unit = 1;
    while (v >= unit * (1 << bits) || -v >= unit * (1 << bits))
        unit *= 2;
    double down = (double)(int64_t)(v / unit), rest = v / unit - down; /* towards zero */
    double up = rest < 0 ? down - 1 : down + 1;
    if (rest < 0)
        rest = -rest;
    return unit * (rest > 0.5 || (rest == 0.5 && (int64_t)down % 2 != 0) ? up : down);
}

static inline double stored(Kind k, double v)
{
    return k == BF16 ? rounded(v, 8) : k == F16 ? rounded(v, 11) : v;
}

/* The bits of a small whole number with `bits` bits behind the point, exponents from -bias. */
static uint16_t half_bits(double v, int bits, int bias)
{
    int      e = 0;
    uint16_t sign = v < 0 ? 0x8000 : 0;
    if (v == 0)
        return 0;
    for (v = v < 0 ? -v : v; v >= 2; v /= 2)
        e++;
    return (uint16_t)(sign | (e + bias) << bits | (int)((v - 1) * (1 << bits)));
}

static double half_value(uint16_t x, int bits, int bias)
{
    if ((x & 0x7fff) == 0)
        return 0;
    double v = 1 + (double)(x & ((1 << bits) - 1)) / (1 << bits);
    for (int e = ((x & 0x7fff) >> bits) - bias; e > 0; e--)
        v *= 2;
    return x & 0x8000 ? -v : v;
}

static inline double get(Kind t, const void *p, int64_t k)
{
    switch (t) {
    case F32: return ((const float *)p)[k];
    case F64: return ((const double *)p)[k];
    case BF16: return half_value(((const uint16_t *)p)[k], 7, 127);
    case F16: return half_value(((const uint16_t *)p)[k], 10, 15);
    case S32: return ((const int32_t *)p)[k];
    case U8: return ((const uint8_t *)p)[k];
    default: return ((const int8_t *)p)[k];
    }
}

static void put(Kind t, void *p, int64_t k, double v)
{
    switch (t) {
    case F32: ((float *)p)[k] = (float)v; break;
    case F64: ((double *)p)[k] = v; break;
    case BF16: ((uint16_t *)p)[k] = half_bits(v, 7, 127); break;
    case F16: ((uint16_t *)p)[k] = half_bits(v, 10, 15); break;
    case S32: ((int32_t *)p)[k] = (int32_t)v; break;
    case U8: ((uint8_t *)p)[k] = (uint8_t)v; break;
    default: ((int8_t *)p)[k] = (int8_t)v; break;
    }
}

static inline void *operand(Kind t, const int *v, int64_t n)
{
    void *p = malloc((size_t)n * size_of[t]);
    for (int64_t k = 0; k < n; k++)
        put(t, p, k, v[k]);
    return p;
}

#endif
