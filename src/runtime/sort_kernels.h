/* sort_kernels.h - what sort.c does with vectors, for each set of instructions.
 *
 * A signed key is a signed integer of the element's size that orders as the element does: x ^ first, where that is negative ^ size, then ^ down. */
#ifndef HLORT_SORT_KERNELS_H
#define HLORT_SORT_KERNELS_H

#include "runtime/gemm.h"

enum {
    SORT_LINE = 64,          /* bytes: elements that lie so far apart are of one group */
    SORT_MOST_RANKED = 256,
    SORT_BESIDE = 16,        /* lines whose first elements are looked for at a time, */
    SORT_MOST_FIRST = 16,    /* at most so many of each */
    SORT_MOST_GROUPS = 4096
};

typedef struct SortWord {
    int64_t first, size, down;
    int64_t infinity; /* not 0: both zeros are one, and so is every NaN, which is larger than that */
} SortWord;

/* Of elements of 1, 2, 4 or 8 bytes, neighbours. */
typedef struct SortElements {
    /* Unsigned keys, of 32 bits for up to 4 bytes. */
    void (*keys)(const SortWord *w, const void *p, int64_t n, void *out);
    /* Of each block of `height` lines the least signed keys, one for each place in a line. */
    void (*least)(const SortWord *w, const void *p, int64_t blocks, int64_t height, void *out);
    /* A signed key that `kept` of n ones do not exceed, hardly more do; 1 <= kept <= n / 2. n is a multiple of a line. Changes them. */
    int64_t (*bar)(void *keys, int64_t n, int64_t kept);
    /* The first of lines from .. n - 1 in which a key does not exceed the bar; n: none. */
    int64_t (*next)(const void *lines, int64_t from, int64_t n, int64_t bar);
} SortElements;

typedef struct SortWide {
    uint64_t key, at;
} SortWide;

typedef struct SortKernels {
    SortElements of[4]; /* of 1, 2, 4, 8 bytes */
    /* place[k]: that of key k, or of entry k, in their order, equal ones as they stand. Room at both for SORT_LINE bytes more. */
    void (*rank_32)(uint32_t *key, int64_t n, uint32_t *place);
    void (*rank_64)(uint64_t *key, int64_t n, uint64_t *place);
    /* Entries of those of m keys that do not exceed the bar, behind the n that there are, with their places, of which the first is given: how many there are then. */
    int64_t (*collect_32)(const uint32_t *key, int64_t m, int64_t first, uint32_t bar, uint64_t *x, int64_t n); /* key << 32 | place */
    int64_t (*collect_64)(const uint64_t *key, int64_t m, int64_t first, uint64_t bar, SortWide *x, int64_t n);
    /* Of SORT_BESIDE lines of n keys the `kept` least in order, equal ones as they stand: the k'th of line j and its place are at k * SORT_BESIDE + j. Lines are by_line keys
     * apart, those of a line by_key. 1 <= kept <= n, SORT_MOST_FIRST. */
    void (*first_32)(const uint32_t *key, int64_t by_line, int64_t by_key, int64_t n, int64_t kept, uint32_t *least, uint32_t *place);
    int64_t most_32, most_64; /* so many are better ranked than sorted digit by digit; at most SORT_MOST_RANKED */
} SortKernels;

const SortKernels *hlort_sort_kernels(const KernelSet *s);

/* As hlort_sort_lines, by the kernels of a set. */
void hlort_sort_with(const SortKernels *v, const hlort_sort *d, const hlort_how *how, const void *const *from, void *const *to);

#endif
