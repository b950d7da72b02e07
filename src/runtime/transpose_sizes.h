/* transpose_sizes.h - what turns and copies, of one set of instructions, for elements of every size. */
#include "runtime/transpose.h"

#include <stddef.h>

typedef long long SET(pairs) __attribute__((vector_size(VECTOR_BYTES)));
typedef long long SET(pairs_u) __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));

/* `to` is a multiple of the vector. */
INLINE void SET(hlort_past_caches)(char *to, SET(pairs) v)
{
#if defined(__clang__)
    __builtin_nontemporal_store(v, (SET(pairs) *)(void *)to);
#elif defined(HALF_512)
    __builtin_ia32_movntdq512((SET(pairs) *)(void *)to, v);
#elif defined(HALF_F16C)
    __builtin_ia32_movntdq256((SET(pairs) *)(void *)to, v);
#elif defined(__x86_64__) && VECTOR_BYTES == 16
    __builtin_ia32_movntdq((SET(pairs) *)(void *)to, v);
#else
    *(SET(pairs_u) *)(void *)to = v;
#endif
}

/* Whole vectors, the last one moved back. */
INLINE void SET(hlort_copy_run)(char *to, const char *from, int64_t bytes)
{
    int64_t k = 0;
    if (bytes < VECTOR_BYTES) {
        __builtin_memcpy(to, from, (uint64_t)bytes);
        return;
    }
    ROLLED for (; k + VECTOR_BYTES <= bytes; k += VECTOR_BYTES)
        *(SET(pairs_u) *)(void *)(to + k) = *(const SET(pairs_u) *)(const void *)(from + k);
    if (k < bytes)
        *(SET(pairs_u) *)(void *)(to + bytes - VECTOR_BYTES) = *(const SET(pairs_u) *)(const void *)(from + bytes - VECTOR_BYTES);
}

/* Lines that are whole go past the caches. */
INLINE void SET(hlort_put_run)(char *to, const char *from, int64_t bytes)
{
    const int64_t before = (int64_t)(-(uintptr_t)to % HLORT_LINE), lines = bytes > before ? (bytes - before) / HLORT_LINE * HLORT_LINE : 0, end = before + lines;
    if (lines == 0) {
        SET(hlort_copy_run)(to, from, bytes);
        return;
    }
    __builtin_memcpy(to, from, (uint64_t)before);
    ROLLED for (int64_t k = before; k < end; k += VECTOR_BYTES)
        SET(hlort_past_caches)(to + k, *(const SET(pairs_u) *)(const void *)(from + k));
    __builtin_memcpy(to + end, from + end, (uint64_t)(bytes - end));
}

#ifndef HLORT_TWO_WORDS
#define HLORT_TWO_WORDS
typedef uint64_t hlort_two_words __attribute__((vector_size(16)));

/* Fewer than 16 bytes, of which nothing is read or written twice beside its array: two halves that overlap, as numbers. */
static inline hlort_two_words hlort_load_part(const char *from, int64_t bytes)
{
    uint64_t a = 0, b = 0;
    if (bytes >= 8) {
        __builtin_memcpy(&a, from, 8);
        if (bytes > 8) {
            __builtin_memcpy(&b, from + bytes - 8, 8);
            b >>= 8 * (16 - bytes);
        }
    } else if (bytes >= 4) {
        uint32_t c, d;
        __builtin_memcpy(&c, from, 4);
        __builtin_memcpy(&d, from + bytes - 4, 4);
        a = c | (uint64_t)d << 8 * (bytes - 4);
    } else {
        for (int64_t k = 0; k < bytes; k++)
            a |= (uint64_t)(uint8_t)from[k] << 8 * k;
    }
    return (hlort_two_words){ a, b };
}

static inline void hlort_store_part(char *to, hlort_two_words x, int64_t bytes)
{
    const uint64_t a = x[0];
    if (bytes >= 8) {
        __builtin_memcpy(to, &a, 8);
        if (bytes > 8) {
            const uint64_t b = a >> 8 * (bytes - 8) | x[1] << 8 * (16 - bytes);
            __builtin_memcpy(to + bytes - 8, &b, 8);
        }
    } else if (bytes >= 4) {
        const uint32_t c = (uint32_t)a, d = (uint32_t)(a >> 8 * (bytes - 4));
        __builtin_memcpy(to, &c, 4);
        __builtin_memcpy(to + bytes - 4, &d, 4);
    } else {
        for (int64_t k = 0; k < bytes; k++)
            to[k] = (char)(a >> 8 * k);
    }
}
#endif

#if VECTOR_BYTES == 64
/* From memory, by instructions that shuffle nothing. */
INLINE SET(pairs) SET(hlort_four_pieces)(hlort_two_words a, hlort_two_words b, hlort_two_words c, hlort_two_words d)
{
#ifdef __clang__
    return (SET(pairs))__builtin_shufflevector(__builtin_shufflevector(a, b, 0, 1, 2, 3), __builtin_shufflevector(c, d, 0, 1, 2, 3), 0, 1, 2, 3, 4, 5, 6, 7);
#elif defined(HALF_512)
    typedef int four __attribute__((vector_size(16)));
    typedef int all __attribute__((vector_size(64)));
    all x = __builtin_ia32_si512_si((four)a);
    x = __builtin_ia32_inserti32x4_mask(x, (four)b, 1, x, (unsigned short)-1);
    x = __builtin_ia32_inserti32x4_mask(x, (four)c, 2, x, (unsigned short)-1);
    return (SET(pairs))__builtin_ia32_inserti32x4_mask(x, (four)d, 3, x, (unsigned short)-1);
#else
    return (SET(pairs))__builtin_shufflevector(__builtin_shufflevector(a, b, 0, 1, 2, 3), __builtin_shufflevector(c, d, 0, 1, 2, 3), 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}
#endif

#define TURN_WORD_1 uint8_t
#define TURN_WORD_2 uint16_t
#define TURN_WORD_4 uint32_t
#define TURN_WORD_8 uint64_t
#define TURN_WORD_16 uint64_t
#define TURN_BYTES  1
#include "runtime/transpose_body.h"
#define TURN_BYTES  2
#include "runtime/transpose_body.h"
#define TURN_BYTES  4
#include "runtime/transpose_body.h"
#define TURN_BYTES  8
#include "runtime/transpose_body.h"
#define TURN_BYTES  16
#include "runtime/transpose_body.h"

/* Runs that a line holds, as two halves that overlap. */
INLINE void SET(hlort_short_runs)(const RunsPart *x, const int half, const int once)
{
    enum { AHEAD = 8 };
    const int64_t  bytes = once ? half : x->bytes, rest = bytes - half, beside = x->beside, to_beside = x->to_beside, to_row = x->to_row, from_row = x->from_row, count = x->count;
    const int64_t *at = x->at;
    const char    *source = x->from;
    char          *to = x->to;
    ROLLED for (int64_t r = 0; r < count; r++, to += to_row) {
        const char *from = source + (at ? at[r] : r * from_row);
        if (from_row >= 4 * HLORT_LINE)
            __builtin_prefetch(from + AHEAD * from_row, 0, 2);
        ROLLED for (int64_t k = 0; k < beside; k++) {
            __builtin_memcpy(to + k * to_beside, from + k * bytes, (uint64_t)half);
            if (!once)
                __builtin_memcpy(to + k * to_beside + rest, from + k * bytes + rest, (uint64_t)half);
        }
    }
}

#if VECTOR_BYTES == 64
/* Runs of half a line, of which a line of the source has two, and neighbours in the result: two lines by two. True: done. */
INLINE int SET(hlort_half_lines)(const RunsPart *x)
{
    enum { AHEAD = 8 };
    const int64_t from_row = x->from_row, to_beside = x->to_beside, count = x->count;
    const char   *from = x->from;
    char         *to = x->to;
    if (x->at || x->beside != 2 || x->to_row != HLORT_LINE / 2 || count < 2)
        return 0;
    ROLLED for (int64_t r0 = 0; r0 < count; r0 += 2) {
        const int64_t    r = hlort_min(r0, count - 2);
        const SET(pairs) a = *(const SET(pairs_u) *)(from + r * from_row), b = *(const SET(pairs_u) *)(from + (r + 1) * from_row);
        UNROLL for (int k = 0; k < 2; k++) {
            __builtin_prefetch(from + (r + k + AHEAD) * from_row, 0, 2);
            __builtin_prefetch(to + k * to_beside + r * (HLORT_LINE / 2) + AHEAD * HLORT_LINE, 1, 3);
        }
        *(SET(pairs_u) *)(to + r * (HLORT_LINE / 2)) = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
        *(SET(pairs_u) *)(to + to_beside + r * (HLORT_LINE / 2)) = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    }
    return 1;
}
#endif

/* What lies a few runs ahead is fetched, where it is on another page or two. */
INLINE void SET(hlort_long_runs)(const RunsPart *x, const int64_t *at)
{
    enum { AHEAD = 4, MOST = 1024 };
    const int64_t bytes = x->bytes, fetched = hlort_min(bytes, MOST);
    for (int64_t r = 0; r < x->count; r++) {
        const char *from = x->from + (at ? at[r] : r * x->from_row);
        char       *to = x->to + r * x->to_row;
        if (r + AHEAD < x->count)
            ROLLED for (int64_t k = 0; k < fetched; k += HLORT_LINE)
                __builtin_prefetch(x->from + (at ? at[r + AHEAD] : (r + AHEAD) * x->from_row) + k, 0, 2);
        if (x->past == HLORT_STORED)
            SET(hlort_copy_run)(to, from, bytes);
        else
            SET(hlort_put_run)(to, from, bytes);
    }
}

static void SET(hlort_runs)(const RunsPart *x)
{
    const int64_t bytes = x->bytes;
    if (bytes < HLORT_LINE && bytes > 1 && x->past == HLORT_STORED) {
#if VECTOR_BYTES == 64
        if (bytes == HLORT_LINE / 2 && SET(hlort_half_lines)(x))
            return;
#endif
        if (bytes == 32)
            SET(hlort_short_runs)(x, 32, 1);
        else if (bytes > 32)
            SET(hlort_short_runs)(x, 32, 0);
        else if (bytes >= 16)
            SET(hlort_short_runs)(x, 16, 0);
        else if (bytes >= 8)
            SET(hlort_short_runs)(x, 8, 0);
        else if (bytes >= 4)
            SET(hlort_short_runs)(x, 4, 0);
        else
            SET(hlort_short_runs)(x, 2, 0);
        return;
    }
    if (x->at)
        SET(hlort_long_runs)(x, x->at);
    else
        SET(hlort_long_runs)(x, NULL);
}
