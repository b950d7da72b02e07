/* narrow.h - f16 and bf16 to f32, which is exact, and back, to the nearest and of two the even one. NaN stays NaN.
 *
 * A set of instructions says how it has f16: HALF_F16C, HALF_512, HALF_NEON; else the bits are worked on. */
typedef uint32_t SET(vu) __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t  SET(vi) __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t SET(vuu) __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef uint16_t SET(vh) __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef uint16_t SET(vhu) __attribute__((vector_size(VECTOR_BYTES / 2), aligned(2), may_alias));
typedef int16_t  SET(vs) __attribute__((vector_size(VECTOR_BYTES / 2)));

#if defined(HALF_512)
/* The bytes of 64 that the mask has, and zeros for the others, which are not read. */
INLINE void SET(hlort_put_first)(void *to, const void *from, uint64_t mask)
{
    SET(vu) x;
    __asm__("vmovdqu8 %1, %0%{%2%}%{z%}" : "=v"(x) : "m"(*(const char(*)[64])from), "Yk"(mask));
    *(SET(vu) *)to = x;
}
#endif

/* Halves of words and back: gcc converts vectors by halves, four instructions instead of one. */
INLINE SET(vu) SET(hlort_words)(const uint16_t *from)
{
#if defined(HALF_512) && !defined(__clang__)
    return (SET(vu))__builtin_ia32_pmovzxwd512_mask((SET(vs))*(const SET(vhu) *)from, (SET(vi)){ 0 }, (unsigned short)-1);
#elif defined(HALF_F16C) && !defined(__clang__)
    return (SET(vu))__builtin_ia32_pmovzxwd256((SET(vs))*(const SET(vhu) *)from);
#else
    return __builtin_convertvector(*(const SET(vhu) *)from, SET(vu));
#endif
}

INLINE SET(vh) SET(hlort_halves)(SET(vu) x)
{
#if defined(HALF_512) && !defined(__clang__)
    return (SET(vh))__builtin_ia32_pmovdw512_mask((SET(vi))x, (SET(vs)){ 0 }, (unsigned short)-1);
#else
    return __builtin_convertvector(x, SET(vh));
#endif
}

INLINE SET(vf) SET(hlort_from_bf16)(const uint16_t *from)
{
    return (SET(vf))(SET(hlort_words)(from) << 16);
}

INLINE SET(vh) SET(hlort_to_bf16)(SET(vf) x)
{
    SET(vu) u = (SET(vu))x, even = u + 0x7fff + ((u >> 16) & 1), nan = ((u >> 16) & 0x8000) | 0x7fc0;
    SET(vu) is_nan = (SET(vu))(x != x);
    return SET(hlort_halves)((even >> 16 & ~is_nan) | (nan & is_nan));
}

#if defined(__clang__)
#define EVERY_LANE ((unsigned short)-1)
#else
#define EVERY_LANE (-1) /* its builtin takes a short */
#endif

/* The exponent of f16 moves to f32's by a product with 2^112, which is exact, for subnormals too. */
INLINE SET(vf) SET(hlort_from_f16)(const uint16_t *from)
{
#if defined(HALF_512)
    return (SET(vf))__builtin_ia32_vcvtph2ps512_mask((SET(vs))*(const SET(vhu) *)from, (SET(vf)){ 0 }, EVERY_LANE, 4);
#elif defined(HALF_F16C)
    return (SET(vf))__builtin_ia32_vcvtph2ps256((SET(vs))*(const SET(vhu) *)from);
#elif defined(HALF_NEON)
    typedef __fp16 half4 __attribute__((vector_size(8)));
    return __builtin_convertvector((half4)*(const SET(vhu) *)from, SET(vf));
#else
    SET(vu) h = SET(hlort_words)(from), size = h & 0x7fff;
    SET(vu) special = (SET(vu))(size > 0x7bff) & 0x7f800000;
    SET(vf) v = (SET(vf))(size << 13) * 5192296858534827628530496329220096.0f;
    return (SET(vf))((SET(vu))v | special | ((h & 0x8000) << 16));
#endif
}

/* Above f16's smallest normal number the half of the last place is added in integers, below it by a sum with 0.5, whose last place is f16's. */
INLINE SET(vh) SET(hlort_to_f16)(SET(vf) x)
{
#if defined(HALF_512)
    return (SET(vh))__builtin_ia32_vcvtps2ph512_mask(x, 0, (SET(vs)){ 0 }, (unsigned short)-1);
#elif defined(HALF_F16C)
    return (SET(vh))__builtin_ia32_vcvtps2ph256(x, 0);
#elif defined(HALF_NEON)
    typedef __fp16 half4 __attribute__((vector_size(8)));
    return (SET(vh))__builtin_convertvector(x, half4);
#else
    SET(vu) u = (SET(vu))x & 0x7fffffff, sign = ((SET(vu))x >> 16) & 0x8000;
    SET(vu) normal = (u - 0x38000000 + 0xfff + ((u >> 13) & 1)) >> 13, small = (SET(vu))((SET(vf))u + 0.5f) - 0x3f000000;
    SET(vu) is_small = (SET(vu))(u < 0x38800000), is_large = (SET(vu))(u > 0x477fefff), is_nan = (SET(vu))(u > 0x7f800000);
    SET(vu) finite = (small & is_small) | (normal & ~is_small), odd = (is_nan & 0x7e00) | (~is_nan & 0x7c00);
    return SET(hlort_halves)(sign | (odd & is_large) | (finite & ~is_large));
#endif
}

/* What is left at the end is made together with what lies before it. `from` and `to` do not overlap. */
#define NARROW(type)                                                                                   \
    static void SET(hlort_narrow_##type)(uint16_t *to, const float *from, int64_t n)                   \
    {                                                                                                  \
        const int64_t lanes = VECTOR_BYTES / 4;                                                        \
        int64_t       j = 0;                                                                           \
        for (; j + lanes <= n; j += lanes)                                                             \
            *(SET(vhu) *)(to + j) = SET(hlort_to_##type)(*(const SET(vfu) *)(from + j));               \
        if (j < n && n > lanes) {                                                                      \
            *(SET(vhu) *)(to + n - lanes) = SET(hlort_to_##type)(*(const SET(vfu) *)(from + n - lanes));\
        } else if (j < n) {                                                                            \
            float    few[VECTOR_BYTES / 4] = { 0 };                                                    \
            uint16_t out[VECTOR_BYTES / 4];                                                            \
            __builtin_memcpy(few, from + j, (uint64_t)(n - j) * sizeof *few);                          \
            *(SET(vhu) *)out = SET(hlort_to_##type)(*(const SET(vfu) *)few);                           \
            __builtin_memcpy(to + j, out, (uint64_t)(n - j) * sizeof *out);                            \
        }                                                                                              \
    }
NARROW(bf16)
NARROW(f16)
#undef NARROW

#define WIDEN_ALL(type)                                                                                \
    static void SET(hlort_widen_##type)(float *to, const uint16_t *from, int64_t n)                    \
    {                                                                                                  \
        const int64_t lanes = VECTOR_BYTES / 4;                                                        \
        int64_t       j = 0;                                                                           \
        for (; j + lanes <= n; j += lanes)                                                             \
            *(SET(vfu) *)(to + j) = SET(hlort_from_##type)(from + j);                                  \
        if (j < n) {                                                                                   \
            uint16_t few[VECTOR_BYTES / 4] = { 0 };                                                    \
            float    out[VECTOR_BYTES / 4];                                                            \
            __builtin_memcpy(few, from + j, (uint64_t)(n - j) * sizeof *few);                          \
            *(SET(vfu) *)out = SET(hlort_from_##type)(few);                                            \
            __builtin_memcpy(to + j, out, (uint64_t)(n - j) * sizeof *out);                            \
        }                                                                                              \
    }
WIDEN_ALL(bf16)
WIDEN_ALL(f16)
#undef WIDEN_ALL
