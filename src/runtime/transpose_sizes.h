/* transpose_sizes.h - what turns and copies, of one set of instructions, for elements of every size. */
#include "runtime/transpose.h"

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

/* What lies a few runs ahead is fetched, where it is on another page or two. */
static void SET(hlort_runs)(const RunsPart *x)
{
    enum { AHEAD = 4, MOST = 1024 };
    const int64_t bytes = x->bytes, fetched = hlort_min(bytes, MOST);
    for (int64_t r = 0; r < x->count; r++) {
        const char *from = x->from + r * x->from_row;
        char       *to = x->to + r * x->to_row;
        if (r + AHEAD < x->count)
            ROLLED for (int64_t k = 0; k < fetched; k += HLORT_LINE)
                __builtin_prefetch(from + AHEAD * x->from_row + k, 0, 2);
        if (x->past == HLORT_STORED)
            SET(hlort_copy_run)(to, from, bytes);
        else
            SET(hlort_put_run)(to, from, bytes);
    }
}
