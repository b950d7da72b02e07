/* sort.c - lines of arrays in the order of a key, stable.
 *
 * A key is mapped to an unsigned integer that orders as it does, so that there is one sort for all types:
 *
 *     unsigned  x     signed  x ^ sign     floats, total order  x & sign ? ~x : x | sign     from the largest  ~key
 *
 * What is sorted are entries: keys alone where the element can be made of its key again, else keys with their positions, from which each array is gathered. Few entries
 * are inserted one by one; more go through a radix sort from the lowest digit up, without the digits that all keys share.
 *
 * Of a line of which only the first ones are kept, entries that come before the worst of the best so far are collected; each time the room for them is full it is
 * sorted, and the best stay. */
#include "runtime/pool.h"
#include "runtime/vec.h"

#include <string.h>

#ifndef __clang__
#pragma GCC optimize("O3") /* the loops over keys as vectors */
#endif

enum { FEW = 40, WIDE_FROM = 8192, MOST_DIGITS = 8, MOST_VALUES = 2048, BLOCK = 256, PART = 4096 };

typedef struct Wide {
    uint64_t key, at;
} Wide;

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
#define KEYS(TYPE, KIND)                                                                                  \
    for (int64_t k = 0; k < n; k++) {                                                                     \
        TYPE x;                                                                                           \
        memcpy(&x, p + k * step, sizeof x);                                                               \
        out[k] = (WORD)(key_of(x, KIND, sign, mask, infinity) ^ flip);                                    \
    }                                                                                                     \
    break;
#define KINDS(TYPE)                                                                                       \
    switch (d->kind) {                                                                                    \
    case HLORT_KEY_UNSIGNED: KEYS(TYPE, HLORT_KEY_UNSIGNED)                                               \
    case HLORT_KEY_SIGNED: KEYS(TYPE, HLORT_KEY_SIGNED)                                                   \
    case HLORT_KEY_TOTAL: KEYS(TYPE, HLORT_KEY_TOTAL)                                                     \
    default: KEYS(TYPE, HLORT_KEY_CANONICAL)                                                              \
    }

/* Keys of up to 32 bits; the common case, neighbours of 32 bits, as a loop over vectors. */
static void keys_32(const hlort_sort *d, const char *p, int64_t step, int64_t n, uint32_t *out)
{
    typedef uint32_t WORD;
    const uint32_t sign = (uint32_t)sign_of(d), mask = (uint32_t)mask_of(d), infinity = (uint32_t)d->infinity, flip = d->descending ? mask : 0;
    if (d->key_bytes == 4 && step == 4 && d->kind == HLORT_KEY_TOTAL) {
        for (int64_t k = 0; k < n; k++) {
            int32_t x;
            memcpy(&x, p + 4 * k, 4);
            out[k] = ((uint32_t)x ^ ((uint32_t)(x >> 31) | 0x80000000u)) ^ flip;
        }
        return;
    }
    if (d->key_bytes == 1)
        KINDS(uint8_t)
    else if (d->key_bytes == 2)
        KINDS(uint16_t)
    else
        KINDS(uint32_t)
}

static void keys_64(const hlort_sort *d, const char *p, int64_t step, int64_t n, uint64_t *out)
{
    typedef uint64_t WORD;
    const uint64_t sign = sign_of(d), mask = mask_of(d), infinity = (uint64_t)d->infinity, flip = d->descending ? mask : 0;
    KINDS(uint64_t)
}

/* ---- sorting entries ---- */

/* x or y, whichever has them sorted in the end. From bit `low` on, `bits` bits of KEY(e) matter. */
#define SORT(NAME, ENTRY, KEY)                                                                            \
    static void insert_##NAME(ENTRY *x, int64_t n)                                                        \
    {                                                                                                     \
        for (int64_t k = 1; k < n; k++) {                                                                 \
            const ENTRY e = x[k];                                                                         \
            int64_t     j = k;                                                                            \
            for (; j > 0 && KEY(x[j - 1]) > KEY(e); j--)                                                  \
                x[j] = x[j - 1];                                                                          \
            x[j] = e;                                                                                     \
        }                                                                                                 \
    }                                                                                                     \
    static ENTRY *sort_##NAME(ENTRY *x, ENTRY *y, int64_t n, int low, int bits)                           \
    {                                                                                                     \
        const int      digit = n >= WIDE_FROM && bits > 16 ? 11 : 8, digits = (bits + digit - 1) / digit; \
        const uint64_t values = (uint64_t)1 << digit;                                                     \
        uint32_t       count[MOST_DIGITS][MOST_VALUES];                                                   \
        if (n <= FEW) {                                                                                   \
            insert_##NAME(x, n);                                                                          \
            return x;                                                                                     \
        }                                                                                                 \
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
            for (uint64_t v = 0; v < values; v++) {                                                       \
                const uint32_t here = count[k][v];                                                        \
                count[k][v] = before;                                                                     \
                before += here;                                                                           \
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

/* ---- lines ---- */

typedef struct Lines {
    const hlort_sort  *d;
    const void *const *from;
    void *const       *to;
    int64_t            parts;
    char              *memory;
} Lines;

typedef struct Line {
    const hlort_sort *d;
    const char       *key; /* of the first element; the others are `step` bytes apart */
    int64_t           step;
    char             *x, *y; /* working memory */
} Line;

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
    keys_32(d, l->key, l->step, d->count, (uint32_t *)(void *)l->x);
    const uint32_t *e = sort_32((uint32_t *)(void *)l->x, (uint32_t *)(void *)l->y, d->count, 0, (int)(8 * d->key_bytes));
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
    keys_64(d, l->key, l->step, d->count, (uint64_t *)(void *)l->x);
    const uint64_t *e = sort_64((uint64_t *)(void *)l->x, (uint64_t *)(void *)l->y, d->count, 0, 64);
    STORE(uint64_t)
}

/* The keys from `first` on with their positions, packed where they have up to 32 bits. */
static void entries(const Line *l, int64_t first, int64_t n, void *out)
{
    const char *p = l->key + first * l->step;
    if (l->d->key_bytes <= 4) {
        uint32_t  key[BLOCK];
        uint64_t *e = out;
        for (int64_t at = 0; at < n; at += BLOCK) {
            const int64_t m = hlort_min(BLOCK, n - at);
            keys_32(l->d, p + at * l->step, l->step, m, key);
            for (int64_t k = 0; k < m; k++)
                e[at + k] = (uint64_t)key[k] << 32 | (uint64_t)(first + at + k);
        }
    } else {
        uint64_t key[BLOCK];
        Wide    *e = out;
        for (int64_t at = 0; at < n; at += BLOCK) {
            const int64_t m = hlort_min(BLOCK, n - at);
            keys_64(l->d, p + at * l->step, l->step, m, key);
            for (int64_t k = 0; k < m; k++)
                e[at + k] = (Wide){ key[k], (uint64_t)(first + at + k) };
        }
    }
}

static void *sorted(const Line *l, void *x, void *y, int64_t n)
{
    const int bits = (int)(8 * l->d->key_bytes);
    return bits <= 32 ? (void *)sort_64(x, y, n, 32, bits) : sort_wide(x, y, n, 0, bits);
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
        keys_32(l->d, l->key + at * l->step, l->step, m, key);
        for (int64_t k = 0; k < m; k++)
            e[at + k] = (Wide){ key[k], (uint64_t)(at + k) };
    }
    return merge_unordered(e, (Wide *)(void *)l->y, l->d->count, nan);
}

/* ---- the first ones of a line ---- */

/* Whether one of the neighbours at p, of 32 bits, comes before the limit: the order of signed integers is that of floats with the size of negative ones inverted. */
static int some_before(const hlort_sort *d, const char *p, int64_t n, uint32_t limit)
{
    const int32_t size = d->kind == HLORT_KEY_TOTAL ? 0x7fffffff : 0, flip = d->descending ? -1 : 0, most = (int32_t)(limit ^ 0x80000000u);
    int32_t       some = 0;
    for (int64_t k = 0; k < n; k++) {
        int32_t x;
        memcpy(&x, p + 4 * k, 4);
        some |= ((x ^ (x >> 31 & size)) ^ flip) < most ? -1 : 0;
    }
    return some;
}

/* Puts an entry where it belongs among the best, of which the last one leaves. */
#define INSERT(KEY)                                      \
    int64_t j = kept - 1;                                         \
    for (; j > 0 && KEY(x[j - 1]) > KEY(e); j--)                  \
        x[j] = x[j - 1];                                          \
    x[j] = e;

/* Of m keys, at positions from `first` on, those that are less than the worst of the best: few best ones are kept sorted, else they are collected behind the n that
 * there are. */
static int64_t collect_32(const uint32_t *key, int64_t m, int64_t first, int64_t kept, uint64_t *x, int64_t n)
{
    for (int64_t k = 0; k < m; k++) {
        const uint64_t e = (uint64_t)key[k] << 32 | (uint64_t)(first + k);
        if (e >= x[kept - 1])
            continue;
        if (kept <= FEW) {
            INSERT(ITSELF)
        } else
            x[n++] = e;
    }
    return n;
}

static int64_t collect_64(const uint64_t *key, int64_t m, int64_t first, int64_t kept, Wide *x, int64_t n)
{
    for (int64_t k = 0; k < m; k++) {
        const Wide e = { key[k], (uint64_t)(first + k) };
        if (e.key >= x[kept - 1].key)
            continue;
        if (kept <= FEW) {
            INSERT(FIELD)
        } else
            x[n++] = e;
    }
    return n;
}

/* Sorts n entries; the best are in x. */
static void best(const Line *l, int64_t n)
{
    const int64_t bytes = l->d->key_bytes <= 4 ? 8 : 16;
    void         *e = sorted(l, l->x, l->y, n);
    if (e != l->x)
        memcpy(l->x, e, (size_t)(hlort_min(n, l->d->kept) * bytes));
}

static const void *select_first(const Line *l)
{
    const hlort_sort *d = l->d;
    const int64_t     kept = d->kept, step = l->step;
    const int         plain = step == 4 && d->key_bytes == 4 && (d->kind == HLORT_KEY_TOTAL || d->kind == HLORT_KEY_SIGNED);
    int64_t           n = kept;
    entries(l, 0, kept, l->x);
    best(l, n);
    for (int64_t at = kept, m; at < d->count; at += m) {
        const char *p = l->key + at * step;
        m = hlort_min(at < 4 * BLOCK ? BLOCK / 4 : BLOCK, d->count - at);
        if (n + m > hlort_sort_entries(d)) {
            best(l, n);
            n = kept;
        }
        if (d->key_bytes <= 4) {
            uint32_t  key[BLOCK];
            uint64_t *x = (uint64_t *)(void *)l->x;
            if (plain && !some_before(d, p, m, (uint32_t)(x[kept - 1] >> 32)))
                continue;
            keys_32(d, p, step, m, key);
            n = collect_32(key, m, at, kept, x, n);
        } else {
            uint64_t key[BLOCK];
            keys_64(d, p, step, m, key);
            n = collect_64(key, m, at, kept, (Wide *)(void *)l->x, n);
        }
    }
    best(l, n);
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

static void positions(const hlort_sort *d, const void *e, int wide, char *to)
{
    for (int64_t k = 0; k < d->kept; k++) {
        const int32_t at = wide ? (int32_t)((const Wide *)e)[k].at : (int32_t)((const uint64_t *)e)[k];
        memcpy(to + k * d->inner * 4, &at, 4);
    }
}

static void sort_line(const Lines *s, int64_t number, char *memory)
{
    const hlort_sort *d = s->d;
    const int64_t     outer = number / d->inner, column = number % d->inner;
    const int64_t     from = outer * d->count * d->inner + column, to = outer * d->to_count * d->inner + column;
    const Line l = { .d = d, .key = (const char *)s->from[d->key] + from * d->key_bytes, .step = d->key_bytes * d->inner,
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
    else if (d->kept < d->count)
        e = select_first(&l);
    else {
        entries(&l, 0, d->count, l.x);
        e = sorted(&l, l.x, l.y, d->count);
    }
    for (int64_t k = 0; k < d->n; k++)
        if (s->from[k])
            gather(d, e, wide, d->bytes[k], (const char *)s->from[k] + from * d->bytes[k], (char *)s->to[k] + to * d->bytes[k]);
        else
            positions(d, e, wide, (char *)s->to[k] + to * 4);
}

static void part(void *job, int64_t number, void *memory)
{
    const Lines  *s = job;
    const int64_t lines = s->d->outer * s->d->inner;
    for (int64_t k = lines * number / s->parts; k < lines * (number + 1) / s->parts; k++)
        sort_line(s, k, s->memory ? s->memory : memory);
}

void hlort_sort_lines(const hlort_sort *d, const hlort_how *how, const void *const *from, void *const *to)
{
    Lines         s = { .d = d, .from = from, .to = to, .parts = 1 };
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
