/* sort.c - lines of arrays in the order of a key, stable.
 *
 * A key is mapped to an unsigned integer that orders as it does, so that there is one sort for all types:
 *
 *     unsigned  x     signed  x ^ sign     floats, total order  x & sign ? ~x : x | sign     from the largest  ~key
 *
 * What is sorted are entries: keys alone where the element can be made of its key again, else keys with their positions, from which each array is gathered. Few entries
 * are ranked, each against all; more go through a radix sort from the lowest digit up, without the digits that all keys share.
 *
 * Of a line of which only the first ones are kept, few elements are looked at one by one: groups of 16 or 4 have a least key each, and of those the one as far back as
 * elements are kept is a bar that enough elements do not exceed. What does not is collected; each time the room for it is full it is sorted, and the best stay.
 *
 * Of short lines the few that are kept are found for a vector of lines at a time. */
#include "runtime/pool.h"
#include "runtime/sort_kernels.h"
#include "runtime/vec.h"

#include <string.h>

#ifndef __clang__
#pragma GCC optimize("O3") /* the loops over keys as vectors */
#endif

enum { WIDE_FROM = 8192, MOST_DIGITS = 8, MOST_VALUES = 2048, BLOCK = 256, PART = 4096 };

typedef SortWide Wide;

/* ---- keys ---- */

static uint64_t load(const char *p, int64_t bytes)
{
    uint64_t x8;
    uint32_t x4;
    uint16_t x2;
    switch (bytes) {
    case 1: return (uint8_t)*p;
    case 2: memcpy(&x2, p, 2); return x2;
    case 4: memcpy(&x4, p, 4); return x4;
    default: memcpy(&x8, p, 8); return x8;
    }
}

static uint64_t sign_of(const hlort_sort *d)
{
    return (uint64_t)1 << (8 * d->key_bytes - 1);
}

/* All bits of a key. */
static uint64_t mask_of(const hlort_sort *d)
{
    return (sign_of(d) - 1) << 1 | 1;
}

INLINE uint64_t key_of(uint64_t x, hlort_key kind, uint64_t sign, uint64_t mask, uint64_t infinity)
{
    if (kind == HLORT_KEY_UNSIGNED)
        return x;
    if (kind == HLORT_KEY_SIGNED)
        return x ^ sign;
    if (kind != HLORT_KEY_TOTAL) {
        uint64_t size = x & (sign - 1);
        x = size == 0 ? 0 : x;
        x = size > infinity ? infinity + 1 : x;
    }
    return (x & sign ? ~x : x | sign) & mask;
}

static uint64_t element_of(const hlort_sort *d, uint64_t key)
{
    const uint64_t sign = sign_of(d), mask = mask_of(d);
    key = d->descending ? ~key & mask : key;
    switch (d->kind) {
    case HLORT_KEY_UNSIGNED: return key;
    case HLORT_KEY_SIGNED: return key ^ sign;
    default: return key & sign ? key ^ sign : ~key & mask;
    }
}

/* n keys of elements `step` bytes apart. */
#define KEYS(TYPE, WORD)                                                                                  \
    for (int64_t k = 0; k < n; k++) {                                                                     \
        TYPE x;                                                                                           \
        memcpy(&x, p + k * step, sizeof x);                                                               \
        ((WORD *)out)[k] = (WORD)(key_of(x, d->kind, sign, mask, infinity) ^ flip);                       \
    }                                                                                                     \
    break;

static void keys_apart(const hlort_sort *d, const char *p, int64_t step, int64_t n, void *out)
{
    const uint64_t sign = sign_of(d), mask = mask_of(d), infinity = (uint64_t)d->infinity, flip = d->descending ? mask : 0;
    switch (d->key_bytes) {
    case 1: KEYS(uint8_t, uint32_t)
    case 2: KEYS(uint16_t, uint32_t)
    case 4: KEYS(uint32_t, uint32_t)
    default: KEYS(uint64_t, uint64_t)
    }
}

/* How the keys of neighbours are made by vectors. */
static SortWord word_of(const hlort_sort *d)
{
    const int64_t sign = (int64_t)sign_of(d), is_float = d->kind >= HLORT_KEY_TOTAL;
    return (SortWord){ .first = d->kind == HLORT_KEY_UNSIGNED ? sign : 0, .size = is_float ? (int64_t)(mask_of(d) >> 1) : 0, .down = d->descending ? -1 : 0,
                       .infinity = d->kind > HLORT_KEY_TOTAL ? d->infinity : 0 };
}

/* ---- lines ---- */

typedef struct Lines {
    const hlort_sort    *d;
    const SortKernels   *v;
    const SortElements  *e; /* for the keys */
    SortWord             word;
    const void *const   *from;
    void *const         *to;
    int64_t              parts;
    char                *memory;
} Lines;

typedef struct Line {
    const Lines      *of;
    const hlort_sort *d;
    const char       *key; /* of the first element; the others are `step` bytes apart */
    int64_t           step;
    char             *x, *y; /* working memory */
} Line;

/* Those of n elements from `first` on, of 32 bits for elements up to 4 bytes. */
static void keys(const Line *l, int64_t first, int64_t n, void *out)
{
    const char *p = l->key + first * l->step;
    if (l->step == l->d->key_bytes)
        l->of->e->keys(&l->of->word, p, n, out);
    else
        keys_apart(l->d, p, l->step, n, out);
}

/* ---- sorting entries ---- */

/* Few entries to where they belong. */
static int64_t most_32(const SortKernels *v)
{
    return v->most_32;
}

static int64_t most_64(const SortKernels *v)
{
    return v->most_64;
}

#define most_wide most_64

static uint32_t *rank_32(const SortKernels *v, uint32_t *x, uint32_t *y, int64_t n)
{
    uint32_t place[SORT_MOST_RANKED];
    v->rank_32(x, n, place);
    for (int64_t k = 0; k < n; k++)
        y[place[k]] = x[k];
    return y;
}

static uint64_t *rank_64(const SortKernels *v, uint64_t *x, uint64_t *y, int64_t n)
{
    uint64_t place[SORT_MOST_RANKED];
    v->rank_64(x, n, place);
    for (int64_t k = 0; k < n; k++)
        y[place[k]] = x[k];
    return y;
}

static Wide *rank_wide(const SortKernels *v, Wide *x, Wide *y, int64_t n)
{
    uint64_t key[SORT_MOST_RANKED], place[SORT_MOST_RANKED];
    for (int64_t k = 0; k < n; k++)
        key[k] = x[k].key;
    v->rank_64(key, n, place);
    for (int64_t k = 0; k < n; k++)
        y[place[k]] = x[k];
    return y;
}

/* x or y, whichever has them sorted in the end. From bit `low` on, `bits` bits of KEY(e) matter. */
#define SORT(NAME, ENTRY, KEY)                                                                            \
    static ENTRY *sort_##NAME(const SortKernels *v, ENTRY *x, ENTRY *y, int64_t n, int low, int bits)     \
    {                                                                                                     \
        const int      digit = n >= WIDE_FROM && bits > 16 ? 11 : 8, digits = (bits + digit - 1) / digit; \
        const uint64_t values = (uint64_t)1 << digit;                                                     \
        uint32_t       count[MOST_DIGITS][MOST_VALUES];                                                   \
        if (n <= most_##NAME(v))                                                                          \
            return rank_##NAME(v, x, y, n);                                                               \
        for (int k = 0; k < digits; k++)                                                                  \
            memset(count[k], 0, values * sizeof count[k][0]);                                             \
        for (int64_t j = 0; j < n; j++)                                                                   \
            for (int k = 0; k < digits; k++)                                                              \
                count[k][KEY(x[j]) >> (low + k * digit) & (values - 1)]++;                                \
        for (int k = 0; k < digits; k++) {                                                                \
            const int shift = low + k * digit;                                                            \
            uint32_t  before = 0;                                                                         \
            if (count[k][KEY(x[0]) >> shift & (values - 1)] == (uint32_t)n)                               \
                continue;                                                                                 \
            for (uint64_t here = 0; here < values; here++) {                                              \
                const uint32_t some = count[k][here];                                                     \
                count[k][here] = before;                                                                  \
                before += some;                                                                           \
            }                                                                                             \
            for (int64_t j = 0; j < n; j++)                                                               \
                y[count[k][KEY(x[j]) >> shift & (values - 1)]++] = x[j];                                  \
            ENTRY *swap = x;                                                                              \
            x = y;                                                                                        \
            y = swap;                                                                                     \
        }                                                                                                 \
        return x;                                                                                         \
    }
#define ITSELF(e) (e)
#define FIELD(e)  ((e).key)
SORT(32, uint32_t, ITSELF)
SORT(64, uint64_t, ITSELF) /* a key alone, or 32 bits of key above 32 of position */
SORT(wide, Wide, FIELD)

/* As a comparison that is false for every NaN orders it: runs of 1, 2, 4, ... are merged, the right one's head goes first if it is less. */
static Wide *merge_unordered(Wide *x, Wide *y, int64_t n, uint64_t nan)
{
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t low = 0; low < n; low += 2 * run) {
            const int64_t middle = hlort_min(low + run, n), high = hlort_min(low + 2 * run, n);
            int64_t       a = low, b = middle;
            for (int64_t k = low; k < high; k++) {
                int right = a == middle || (b < high && x[b].key != nan && x[a].key != nan && x[b].key < x[a].key);
                y[k] = right ? x[b++] : x[a++];
            }
        }
        Wide *swap = x;
        x = y;
        y = swap;
    }
    return x;
}

static int is_bare(const hlort_sort *d)
{
    return d->n == 1 && d->kind <= HLORT_KEY_TOTAL && d->kept == d->count;
}

#define STORE(TYPE)                                             \
    for (int64_t k = 0; k < d->count; k++) {                    \
        const TYPE v = (TYPE)element_of(d, e[k]);               \
        memcpy(to + k * l->step, &v, sizeof v);                 \
    }

static void sort_bare_32(const Line *l, char *to)
{
    const hlort_sort *d = l->d;
    keys(l, 0, d->count, l->x);
    const uint32_t *e = sort_32(l->of->v, (uint32_t *)(void *)l->x, (uint32_t *)(void *)l->y, d->count, 0, (int)(8 * d->key_bytes));
    if (d->key_bytes == 1)
        STORE(uint8_t)
    else if (d->key_bytes == 2)
        STORE(uint16_t)
    else
        STORE(uint32_t)
}

static void sort_bare_64(const Line *l, char *to)
{
    const hlort_sort *d = l->d;
    keys(l, 0, d->count, l->x);
    const uint64_t *e = sort_64(l->of->v, (uint64_t *)(void *)l->x, (uint64_t *)(void *)l->y, d->count, 0, 64);
    STORE(uint64_t)
}

/* The keys from `first` on with their positions, packed where they have up to 32 bits. */
static void entries(const Line *l, int64_t first, int64_t n, void *out)
{
    if (l->d->key_bytes <= 4) {
        uint32_t  key[BLOCK];
        uint64_t *e = out;
        for (int64_t at = 0; at < n; at += BLOCK) {
            const int64_t m = hlort_min(BLOCK, n - at);
            keys(l, first + at, m, key);
            for (int64_t k = 0; k < m; k++)
                e[at + k] = (uint64_t)key[k] << 32 | (uint64_t)(first + at + k);
        }
    } else {
        uint64_t key[BLOCK];
        Wide    *e = out;
        for (int64_t at = 0; at < n; at += BLOCK) {
            const int64_t m = hlort_min(BLOCK, n - at);
            keys(l, first + at, m, key);
            for (int64_t k = 0; k < m; k++)
                e[at + k] = (Wide){ key[k], (uint64_t)(first + at + k) };
        }
    }
}

static void *sorted(const Line *l, void *x, void *y, int64_t n)
{
    const int bits = (int)(8 * l->d->key_bytes);
    return bits <= 32 ? (void *)sort_64(l->of->v, x, y, n, 32, bits) : sort_wide(l->of->v, x, y, n, 0, bits);
}

/* A short line of keys of up to 32 bits. */
static const void *rank_line(const Line *l)
{
    uint32_t  key[SORT_MOST_RANKED], place[SORT_MOST_RANKED];
    uint64_t *e = (uint64_t *)(void *)l->x;
    keys(l, 0, l->d->count, key);
    l->of->v->rank_32(key, l->d->count, place);
    for (int64_t k = 0; k < l->d->count; k++)
        e[place[k]] = (uint64_t)key[k] << 32 | (uint64_t)k;
    return e;
}

static int is_short(const Line *l)
{
    return l->d->key_bytes <= 4 && l->d->count <= l->of->v->most_32;
}

/* The key of NaN in a line that has one, where comparisons have no place for it; else 0, which none of the keys that matter is. */
static uint64_t unordered(const Line *l)
{
    const hlort_sort *d = l->d;
    const uint64_t    sign = sign_of(d), mask = mask_of(d), infinity = (uint64_t)d->infinity;
    for (int64_t k = 0; d->kind == HLORT_KEY_PARTIAL && k < d->count; k++)
        if ((load(l->key + k * l->step, d->key_bytes) & (sign - 1)) > infinity)
            return key_of(infinity + 1, HLORT_KEY_CANONICAL, sign, mask, infinity) ^ (d->descending ? mask : 0);
    return 0;
}

static const Wide *sort_unordered(const Line *l, uint64_t nan)
{
    Wide *e = (Wide *)(void *)l->x;
    if (l->d->key_bytes > 4)
        entries(l, 0, l->d->count, e);
    for (int64_t at = 0; l->d->key_bytes <= 4 && at < l->d->count; at += BLOCK) {
        uint32_t      key[BLOCK];
        const int64_t m = hlort_min(BLOCK, l->d->count - at);
        keys(l, at, m, key);
        for (int64_t k = 0; k < m; k++)
            e[at + k] = (Wide){ key[k], (uint64_t)(at + k) };
    }
    return merge_unordered(e, (Wide *)(void *)l->y, l->d->count, nan);
}

/* ---- the first ones of a line ---- */

enum { CHUNK = 65536, CHUNK_APART = 8192, TALL = 16, LOW = 4 };

typedef struct First {
    const Line *l;
    int64_t     n;    /* entries */
    int         none; /* can come before the last one kept */
    uint64_t    bar;  /* keys that exceed it do not */
} First;

/* Sorts the entries; the best are in x. */
static void best(First *f)
{
    const hlort_sort *d = f->l->d;
    const int64_t     bytes = d->key_bytes <= 4 ? 8 : 16, n = hlort_min(f->n, d->kept);
    void             *e = sorted(f->l, f->l->x, f->l->y, f->n);
    if (e != f->l->x)
        memcpy(f->l->x, e, (size_t)(n * bytes));
    f->n = n;
    if (n < d->kept)
        return;
    const uint64_t last = bytes == 8 ? ((const uint64_t *)(void *)f->l->x)[n - 1] >> 32 : ((const Wide *)(void *)f->l->x)[n - 1].key;
    f->none = last == 0;
    f->bar = last - 1; /* what is as good stands behind it */
}

/* The elements from `first` on that do not exceed the bar. */
static void collect(First *f, int64_t first, int64_t n)
{
    const SortKernels *v = f->l->of->v;
    for (int64_t m; n > 0 && !f->none; first += m, n -= m) {
        m = hlort_min(BLOCK, n);
        if (f->n + m > hlort_sort_entries(f->l->d)) {
            best(f);
            if (f->none)
                return;
        }
        if (f->l->d->key_bytes <= 4) {
            uint32_t key[BLOCK];
            keys(f->l, first, m, key);
            f->n = v->collect_32(key, m, first, (uint32_t)f->bar, (uint64_t *)(void *)f->l->x, f->n);
        } else {
            uint64_t key[BLOCK];
            keys(f->l, first, m, key);
            f->n = v->collect_64(key, m, first, f->bar, (Wide *)(void *)f->l->x, f->n);
        }
    }
}

/* Of m elements from `first` on, which are neighbours at p. */
static void collect_chunk(First *f, const SortElements *e, const SortWord *w, const char *p, int64_t bytes, int64_t first, int64_t m)
{
    const int64_t  height = m > CHUNK_APART ? TALL : LOW, lanes = SORT_LINE / bytes, block = height * lanes, blocks = m / block, groups = blocks * lanes;
    const uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    char           least[SORT_MOST_GROUPS * 8] __attribute__((aligned(64))), copy[SORT_MOST_GROUPS * 8] __attribute__((aligned(64)));
    if (groups < 2 * f->l->d->kept) {
        collect(f, first, m);
        return;
    }
    e->least(w, p, blocks, height, least);
    memcpy(copy, least, (size_t)(groups * bytes));
    const uint64_t bar = ((uint64_t)e->bar(copy, groups, f->l->d->kept) ^ sign) & mask_of(f->l->d);
    f->bar = bar < f->bar ? bar : f->bar;
    for (int64_t b = -1; (b = e->next(least, b + 1, blocks, (int64_t)(f->bar ^ sign))) < blocks && !f->none;)
        collect(f, first + b * block, block);
    collect(f, first + blocks * block, m - blocks * block);
}

static const void *select_first(const Line *l)
{
    const hlort_sort *d = l->d;
    const int64_t     bytes = d->key_bytes <= 4 ? 4 : 8;
    const SortWord    keyed = { .first = (int64_t)((uint64_t)1 << (8 * bytes - 1)) };
    First             f = { .l = l, .bar = mask_of(d) };
    for (int64_t at = 0, m; at < d->count && !f.none; at += m) {
        if (l->step == d->key_bytes) {
            m = hlort_min(CHUNK, d->count - at);
            collect_chunk(&f, l->of->e, &l->of->word, l->key + at * l->step, d->key_bytes, at, m);
        } else {
            uint64_t key[CHUNK_APART];
            m = hlort_min(CHUNK_APART, d->count - at);
            keys(l, at, m, key);
            collect_chunk(&f, &l->of->v->of[bytes == 4 ? 2 : 3], &keyed, (const char *)key, bytes, at, m);
        }
    }
    best(&f);
    return l->x;
}

/* ---- results ---- */

#define GATHER(TYPE)                                                                                         \
    for (int64_t k = 0; k < d->kept; k++) {                                                                  \
        const int64_t at = wide ? (int64_t)((const Wide *)e)[k].at : (int64_t)(uint32_t)((const uint64_t *)e)[k]; \
        memcpy(to + k * step, from + at * step, sizeof(TYPE));                                               \
    }                                                                                                        \
    break;

static void gather(const hlort_sort *d, const void *e, int wide, int64_t bytes, const char *from, char *to)
{
    const int64_t step = bytes * d->inner;
    switch (bytes) {
    case 1: GATHER(uint8_t)
    case 2: GATHER(uint16_t)
    case 4: GATHER(uint32_t)
    case 8: GATHER(uint64_t)
    default: GATHER(Wide)
    }
}

static void positions(const hlort_sort *d, const void *e, int wide, int64_t bytes, char *to)
{
    for (int64_t k = 0; k < d->kept; k++) {
        const int64_t at = wide ? (int64_t)((const Wide *)e)[k].at : (int64_t)(uint32_t)((const uint64_t *)e)[k];
        const int32_t low = (int32_t)at;
        if (bytes == 4)
            memcpy(to + k * d->inner * 4, &low, 4);
        else
            memcpy(to + k * d->inner * 8, &at, 8);
    }
}

/* The line's elements, whose first ones are the from'th and the to'th of arrays, in the order of entries. */
static void write_line(const Lines *s, const void *e, int wide, int64_t from, int64_t to)
{
    const hlort_sort *d = s->d;
    for (int64_t k = 0; k < d->n; k++)
        if (s->from[k])
            gather(d, e, wide, d->bytes[k], (const char *)s->from[k] + from * d->bytes[k], (char *)s->to[k] + to * d->bytes[k]);
        else
            positions(d, e, wide, d->bytes[k], (char *)s->to[k] + to * d->bytes[k]);
}

static void sort_line(const Lines *s, int64_t number, char *memory)
{
    const hlort_sort *d = s->d;
    const int64_t     outer = number / d->inner, column = number % d->inner;
    const int64_t     from = outer * d->count * d->inner + column, to = outer * d->to_count * d->inner + column;
    const Line l = { .of = s, .d = d, .key = (const char *)s->from[d->key] + from * d->key_bytes, .step = d->key_bytes * d->inner,
                     .x = memory, .y = memory + hlort_sort_bytes(d) / 2 };
    if (is_bare(d)) {
        (d->key_bytes <= 4 ? sort_bare_32 : sort_bare_64)(&l, (char *)s->to[0] + to * d->key_bytes);
        return;
    }
    const uint64_t nan = unordered(&l);
    const int      wide = nan || d->key_bytes > 4;
    const void    *e;
    if (nan)
        e = sort_unordered(&l, nan);
    else if (is_short(&l) && d->count / LOW < 2 * d->kept)
        e = rank_line(&l);
    else if (d->kept < d->count)
        e = select_first(&l);
    else {
        entries(&l, 0, d->count, l.x);
        e = sorted(&l, l.x, l.y, d->count);
    }
    write_line(s, e, wide, from, to);
}

/* Lines from that one on are SORT_BESIDE that lie behind each other, or beside each other. */
static int are_beside(const hlort_sort *d, int64_t number, int64_t end)
{
    enum { MOST_WORK = 2048 };
    return d->key_bytes <= 4 && d->kind != HLORT_KEY_PARTIAL && !is_bare(d) && d->count <= SORT_MOST_RANKED && d->kept <= SORT_MOST_FIRST && d->count * d->kept <= MOST_WORK &&
           number + SORT_BESIDE <= end && (d->inner == 1 || number % d->inner + SORT_BESIDE <= d->inner);
}

static void sort_beside(const Lines *s, int64_t number)
{
    const hlort_sort *d = s->d;
    const int64_t     outer = number / d->inner, column = number % d->inner, from = outer * d->count * d->inner + column, to = outer * d->to_count * d->inner + column;
    const char       *p = (const char *)s->from[d->key] + from * d->key_bytes;
    uint32_t          key[SORT_BESIDE * SORT_MOST_RANKED], least[SORT_BESIDE * SORT_MOST_FIRST], place[SORT_BESIDE * SORT_MOST_FIRST];
    if (d->inner == 1)
        s->e->keys(&s->word, p, SORT_BESIDE * d->count, key);
    for (int64_t k = 0; d->inner > 1 && k < d->count; k++)
        s->e->keys(&s->word, p + k * d->inner * d->key_bytes, SORT_BESIDE, key + k * SORT_BESIDE);
    s->v->first_32(key, d->inner == 1 ? d->count : 1, d->inner == 1 ? 1 : SORT_BESIDE, d->count, d->kept, least, place);
    for (int64_t j = 0; j < SORT_BESIDE; j++) {
        const int64_t in = from + (d->inner == 1 ? j * d->count : j), out = to + (d->inner == 1 ? j * d->to_count : j);
        uint64_t      e[SORT_MOST_FIRST];
        for (int64_t k = 0; k < d->kept; k++)
            e[k] = place[k * SORT_BESIDE + j];
        write_line(s, e, 0, in, out);
    }
}

static void part(void *job, int64_t number, void *memory)
{
    const Lines  *s = job;
    const int64_t lines = s->d->outer * s->d->inner, end = lines * (number + 1) / s->parts;
    for (int64_t k = lines * number / s->parts, n; k < end; k += n) {
        n = are_beside(s->d, k, end) ? SORT_BESIDE : 1;
        if (n > 1)
            sort_beside(s, k);
        else
            sort_line(s, k, s->memory ? s->memory : memory);
    }
}

void hlort_sort_with(const SortKernels *v, const hlort_sort *d, const hlort_how *how, const void *const *from, void *const *to)
{
    const int     number = d->key_bytes == 1 ? 0 : d->key_bytes == 2 ? 1 : d->key_bytes == 4 ? 2 : 3;
    Lines         s = { .d = d, .v = v, .e = &v->of[number], .word = word_of(d), .from = from, .to = to, .parts = 1 };
    const int64_t lines = d->outer * d->inner;
    if (lines == 0 || d->kept == 0)
        return;
    if (hlort_sort_bytes(d) > HLORT_WORK_BYTES) { /* more than a thread has for itself */
        s.memory = how->work;
        part(&s, 0, NULL);
        return;
    }
    s.parts = hlort_min(hlort_min(lines, hlort_ceildiv(lines * d->count, PART)), 8 * (int64_t)pool_threads(how->pool));
    pool_run(how->pool, part, &s, s.parts, how->work);
}

void hlort_sort_lines(const hlort_sort *d, const hlort_how *how, const void *const *from, void *const *to)
{
    hlort_sort_with(hlort_sort_kernels(hlort_kernels()), d, how, from, to);
}
