/* sort_body.h - sort_kernels.h for one set of instructions. */
#define SET(x) HLORT_PASTE(x, HLORT_SET)

/* Two vectors of keys at a time are compared with all keys, one after the other; an equal one that stands before it is less, too. */
#ifndef RANKS
#define RANKS HLORT_SET
#define RANK(NAME, U, S, SIGN)                                                                            \
    typedef S SET(NAME##_v) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(S)), may_alias));    \
    static void SET(NAME)(U *key, int64_t n, U *place)                                                    \
    {                                                                                                     \
        enum { LANES = VECTOR_BYTES / sizeof(S) };                                                        \
        const S      *x = (const S *)key;                                                                 \
        SET(NAME##_v) lane;                                                                               \
        for (int64_t k = 0; k < n; k++)                                                                   \
            key[k] ^= SIGN;                                                                               \
        for (int j = 0; j < LANES; j++)                                                                   \
            lane[j] = (S)j;                                                                               \
        for (int64_t i = 0; i < n; i += 2 * LANES) {                                                      \
            const SET(NAME##_v) a = *(const SET(NAME##_v) *)(x + i), b = *(const SET(NAME##_v) *)(x + i + LANES); \
            const int64_t middle = hlort_min(i + LANES, n), end = hlort_min(i + 2 * LANES, n);            \
            SET(NAME##_v) ra = (S)i - (lane ^ lane), rb = ra + LANES;                                     \
            int64_t       j = 0;                                                                          \
            FOUR_TIMES for (; j < i; j++) {                                                               \
                ra += x[j] > a;                                                                           \
                rb += x[j] > b;                                                                           \
            }                                                                                             \
            for (; j < middle; j++) {                                                                     \
                ra -= (a > x[j]) | ((a == x[j]) & (lane > (S)(j - i)));                                   \
                rb += x[j] > b;                                                                           \
            }                                                                                             \
            for (; j < end; j++) {                                                                        \
                ra -= a > x[j];                                                                           \
                rb -= (b > x[j]) | ((b == x[j]) & (lane > (S)(j - i - LANES)));                           \
            }                                                                                             \
            FOUR_TIMES for (; j < n; j++) {                                                               \
                ra -= a > x[j];                                                                           \
                rb -= b > x[j];                                                                           \
            }                                                                                             \
            *(SET(NAME##_v) *)((S *)place + i) = ra;                                                      \
            *(SET(NAME##_v) *)((S *)place + i + LANES) = rb;                                              \
        }                                                                                                 \
        for (int64_t k = 0; k < n; k++)                                                                   \
            key[k] ^= SIGN;                                                                               \
    }
RANK(rank_32, uint32_t, int32_t, 0x80000000u)
RANK(rank_64, uint64_t, int64_t, 0x8000000000000000u)
#undef RANK

/* Each key goes along those that are kept, takes the place of the first that it is less than, and from there on each goes one back. */
static void SET(first_32)(const uint32_t *key, int64_t by_line, int64_t by_key, int64_t n, int64_t kept, uint32_t *restrict least, uint32_t *restrict place)
{
    enum { LANES = VECTOR_BYTES / 4, VECTORS = SORT_BESIDE / LANES };
    typedef int32_t Vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
    for (int64_t i = 0; i < n; i++, key += by_key) {
        const int64_t before = hlort_min(i, kept);
        int32_t       one[SORT_BESIDE];
        for (int j = 0; j < SORT_BESIDE; j++)
            one[j] = (int32_t)(key[j * by_line] ^ 0x80000000u);
        for (int v = 0; v < VECTORS; v++) {
            Vec  x = *(const Vec *)(one + v * LANES), at = (int32_t)i - (x ^ x), goes = x ^ x;
            Vec *to = (Vec *)(least + v * LANES), *to_place = (Vec *)(place + v * LANES);
            for (int64_t k = 0; k < before; k++, to += VECTORS, to_place += VECTORS) {
                goes |= x < *to;
                const Vec keys = (x ^ *to) & goes, places = (at ^ *to_place) & goes;
                *to ^= keys;
                *to_place ^= places;
                x ^= keys;
                at ^= places;
            }
            if (i < kept) {
                *to = x;
                *to_place = at;
            }
        }
    }
    for (int64_t k = 0; k < kept * SORT_BESIDE; k++)
        least[k] ^= 0x80000000u;
}
#endif
#define RANKED(x) HLORT_PASTE(x, RANKS)

#define BITS 8
#include "runtime/sort_word.h"
#define BITS 16
#include "runtime/sort_word.h"
#define BITS 32
#include "runtime/sort_word.h"
#define BITS 64
#include "runtime/sort_word.h"

/* Behind n entries. */
#define COLLECT(NAME, U, ENTRY, MAKE)                                                                     \
    static int64_t SET(NAME)(const U *restrict key, int64_t m, int64_t first, U bar, ENTRY *restrict x, int64_t n) \
    {                                                                                                     \
        enum { LANES = SORT_LINE / sizeof(U) };                                                           \
        int64_t k = 0;                                                                                    \
        for (; k + LANES <= m; k += LANES) {                                                              \
            U some = 0;                                                                                   \
            for (int j = 0; j < LANES; j++)                                                               \
                some |= key[k + j] <= bar;                                                                \
            for (int j = 0; some && j < LANES; j++) {                                                     \
                x[n] = MAKE(key[k + j], (uint64_t)(first + k + j));                                       \
                n += key[k + j] <= bar;                                                                   \
            }                                                                                             \
        }                                                                                                 \
        for (; k < m; k++) {                                                                              \
            x[n] = MAKE(key[k], (uint64_t)(first + k));                                                   \
            n += key[k] <= bar;                                                                           \
        }                                                                                                 \
        return n;                                                                                         \
    }
#define PACKED(key, at) ((uint64_t)(key) << 32 | (at))
#define BESIDE(key, at) ((SortWide){ key, at })
COLLECT(collect_32, uint32_t, uint64_t, PACKED)
COLLECT(collect_64, uint64_t, SortWide, BESIDE)
#undef COLLECT
#undef PACKED
#undef BESIDE

static const SortKernels SET(sort_kernels) = {
    .of = { { SET(keys_8), SET(least_8), SET(bar_8), SET(next_8) },
            { SET(keys_16), SET(least_16), SET(bar_16), SET(next_16) },
            { SET(keys_32), SET(least_32), SET(bar_32), SET(next_32) },
            { SET(keys_64), SET(least_64), SET(bar_64), SET(next_64) } },
    .rank_32 = RANKED(rank_32), .rank_64 = RANKED(rank_64), .collect_32 = SET(collect_32), .collect_64 = SET(collect_64), .first_32 = RANKED(first_32),
    .most_32 = MOST_RANKED, .most_64 = MOST_RANKED / 2
};

#undef RANKED
#undef RANKS
#undef MOST_RANKED
#undef SET
#undef HLORT_SET
#undef VECTOR_BYTES
