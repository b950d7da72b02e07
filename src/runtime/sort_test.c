/* Lines in the order of keys of every kind and size against a merge sort by comparison, with few values (ties, zeros of both signs, NaNs) and with many. Arrays are
 * allocated to the byte: a sanitizer sees what is read beside them. */
#include "runtime/sort_kernels.h"
#include "support/check.h"

#include <string.h>

static const SortKernels *kernels;

static uint64_t random_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static uint64_t element(const char *p, int64_t bytes)
{
    uint64_t x = 0;
    memcpy(&x, p, (size_t)bytes);
    return x;
}

/* A number that orders as the element does; NaN, which some kinds have no number for, is the largest. */
static __int128 rank_of(const hlort_sort *d, uint64_t x, int *nan)
{
    const uint64_t sign = (uint64_t)1 << (8 * d->key_bytes - 1), size = x & (sign - 1);
    __int128       r = (__int128)size;
    *nan = d->kind == HLORT_KEY_PARTIAL && size > (uint64_t)d->infinity;
    if (d->kind == HLORT_KEY_UNSIGNED)
        return x;
    if (d->kind == HLORT_KEY_SIGNED)
        return x & sign ? r - (__int128)sign : r;
    if (d->kind == HLORT_KEY_TOTAL)
        return x & sign ? -r - 1 : r;
    if (size > (uint64_t)d->infinity)
        return (__int128)1 << 70;
    return x & sign ? -r : r;
}

static int before(const hlort_sort *d, uint64_t x, uint64_t y)
{
    int      a, b;
    __int128 p = rank_of(d, x, &a), q = rank_of(d, y, &b);
    return !a && !b && (d->descending ? p > q : p < q);
}

/* Positions of a line in order, by merging runs of 1, 2, 4, ... */
static int32_t *order_of(const hlort_sort *d, const char *key, int64_t step)
{
    int32_t *x = malloc((size_t)d->count * sizeof *x), *y = malloc((size_t)d->count * sizeof *x);
    for (int32_t k = 0; k < d->count; k++)
        x[k] = k;
    for (int64_t run = 1; run < d->count; run *= 2) {
        for (int64_t low = 0; low < d->count; low += 2 * run) {
            int64_t middle = low + run < d->count ? low + run : d->count, high = low + 2 * run < d->count ? low + 2 * run : d->count;
            for (int64_t k = low, a = low, b = middle; k < high; k++)
                if (a == middle || (b < high && before(d, element(key + x[b] * step, d->key_bytes), element(key + x[a] * step, d->key_bytes))))
                    y[k] = x[b++];
                else
                    y[k] = x[a++];
        }
        int32_t *swap = x;
        x = y;
        y = swap;
    }
    free(y);
    return x;
}

static void check_line(const hlort_sort *d, int64_t line, char *const *from, char *const *to)
{
    const int64_t outer = line / d->inner, column = line % d->inner, in = outer * d->count * d->inner + column,
                  out = outer * d->to_count * d->inner + column;
    int32_t *order = order_of(d, from[d->key] + in * d->key_bytes, d->inner * d->key_bytes);
    for (int64_t a = 0; a < d->n; a++)
        for (int64_t k = 0; k < d->kept; k++) {
            const int64_t at = order[k];
            const char   *got = to[a] + (out + k * d->inner) * d->bytes[a];
            if (from[a])
                CHECK(memcmp(got, from[a] + (in + order[k] * d->inner) * d->bytes[a], (size_t)d->bytes[a]) == 0);
            else
                CHECK(d->bytes[a] == 8 ? memcmp(got, &at, 8) == 0 : memcmp(got, &order[k], 4) == 0);
        }
    free(order);
}

/* Of `different` values; the last array may be of positions. */
static void check(hlort_sort d, uint64_t different, int positions, hlort_pool *pool, uint64_t *state)
{
    char         *from[HLORT_MOST_SORTED], *to[HLORT_MOST_SORTED], *work;
    const int64_t elements = d.outer * d.count * d.inner, bytes = hlort_sort_bytes(&d);
    const uint64_t sign = (uint64_t)1 << (8 * d.key_bytes - 1);
    for (int64_t a = 0; a < d.n; a++) {
        from[a] = malloc((size_t)(elements * d.bytes[a]));
        to[a] = malloc((size_t)(d.outer * d.to_count * d.inner * d.bytes[a]));
        CHECK(from[a] && to[a]);
        for (int64_t k = 0; k < elements * d.bytes[a]; k++)
            from[a][k] = (char)random_bits(state);
    }
    for (int64_t k = 0; k < elements; k++) {
        const uint64_t r = random_bits(state), special[] = { 0, sign, (uint64_t)d.infinity + 1, sign | ((uint64_t)d.infinity + 1), sign | (uint64_t)d.infinity };
        uint64_t       x = r % 7 == 0 ? special[r / 7 % 5] : r % different * (d.key_bytes > 2 ? 0x01000193 : 1);
        memcpy(from[d.key] + k * d.key_bytes, &x, (size_t)d.key_bytes);
    }
    if (positions) {
        free(from[d.n - 1]);
        from[d.n - 1] = NULL;
    }
    work = aligned_alloc(64, (size_t)((bytes > HLORT_WORK_BYTES ? bytes : HLORT_WORK_BYTES)));
    hlort_sort_with(kernels, &d, &(hlort_how){ .work = work, .pool = pool }, (const void *const *)from, (void *const *)to);
    for (int64_t line = 0; line < d.outer * d.inner; line++)
        check_line(&d, line, from, to);
    for (int64_t a = 0; a < d.n; a++) {
        free(from[a]);
        free(to[a]);
    }
    free(work);
}

static int64_t infinity_of(int64_t bytes)
{
    return bytes == 2 ? 0x7c00 : bytes == 4 ? 0x7f800000 : 0x7ff0000000000000;
}

/* Of the first ones of a line: that they are in order, and that no other element comes before the last one. */
static void check_first_line(const hlort_sort *d, int64_t column, const char *from, const char *value, const char *place)
{
    int64_t  before_last = 0;
    int32_t  at = -1, next;
    uint64_t last = 0, x;
    for (int64_t k = 0; k < d->kept; k++, at = next, last = x) {
        memcpy(&next, place + (k * d->inner + column) * 4, 4);
        CHECK(next >= 0 && next < d->count);
        x = element(from + (next * d->inner + column) * d->key_bytes, d->key_bytes);
        CHECK(x == element(value + (k * d->inner + column) * d->key_bytes, d->key_bytes));
        CHECK(k == 0 || before(d, last, x) || (!before(d, x, last) && at < next));
    }
    for (int64_t k = 0; k < d->count; k++) {
        x = element(from + (k * d->inner + column) * d->key_bytes, d->key_bytes);
        before_last += before(d, x, last) || (k < at && !before(d, last, x));
    }
    CHECK(before_last == d->kept - 1);
}

enum Input { RANDOM, RISING, FALLING, ONE_VALUE, FEW_LAST };

/* The first ones of long lines, whatever order the elements come in. */
static void check_first(int64_t bytes, hlort_key kind, enum Input input, int64_t count, int64_t inner, int64_t kept, int descending, uint64_t *state)
{
    hlort_sort  d = { .kind = kind, .descending = descending, .key_bytes = bytes, .infinity = kind > HLORT_KEY_SIGNED ? infinity_of(bytes) : 0, .outer = 1, .count = count,
                      .inner = inner, .kept = kept, .to_count = kept, .n = 2, .bytes = { bytes, 4 } };
    char       *from = malloc((size_t)(count * inner * bytes)), *value = malloc((size_t)(kept * inner * bytes)), *place = malloc((size_t)(kept * inner * 4));
    const int64_t work_bytes = hlort_sort_bytes(&d) > HLORT_WORK_BYTES ? hlort_sort_bytes(&d) : HLORT_WORK_BYTES;
    void       *work = aligned_alloc(64, (size_t)work_bytes);
    for (int64_t k = 0; k < count; k++)
        for (int64_t j = 0; j < inner; j++) {
            uint64_t x = random_bits(state);
            x = input == RISING ? (uint64_t)k : input == FALLING ? (uint64_t)(count - k) : input == ONE_VALUE ? 5 : input == FEW_LAST ? (uint64_t)(k > count - 300) : x;
            memcpy(from + (k * inner + j) * bytes, &x, (size_t)bytes);
        }
    hlort_sort_with(kernels, &d, &(hlort_how){ .work = work }, (const void *const[]){ from, NULL }, (void *const[]){ value, place });
    for (int64_t j = 0; j < inner; j++)
        check_first_line(&d, j, from, value, place);
    free(from);
    free(value);
    free(place);
    free(work);
}

static void check_firsts(uint64_t *state)
{
    static const int64_t counts[][2] = { { 64, 16 }, { 100, 5 }, { 777, 30 }, { 8192, 1 }, { 9001, 8 }, { 9001, 600 }, { 30000, 64 }, { 70001, 8 }, { 66000, 2047 } };
    for (int64_t bytes = 1; bytes <= 8; bytes *= 2)
        for (int kind = HLORT_KEY_UNSIGNED; kind <= HLORT_KEY_CANONICAL; kind++)
            for (int c = 0; c < 9 && (bytes > 1 || kind <= HLORT_KEY_SIGNED); c++)
                for (int input = RANDOM; input <= FEW_LAST; input++)
                    check_first(bytes, (hlort_key)kind, (enum Input)input, counts[c][0], (c + input + kind) % 4 == 3 ? 3 : 1, counts[c][1], input & 1 ? (int)bytes & 1 : kind != 1, state);
}

/* Few keys, of any number of bits, each number of lanes beyond the last vector. */
static void check_ranks(uint64_t *state)
{
    for (int64_t n = 1; n <= SORT_MOST_RANKED; n++) {
        uint32_t key_32[SORT_MOST_RANKED + 16], place_32[SORT_MOST_RANKED + 16];
        uint64_t key_64[SORT_MOST_RANKED + 8], place_64[SORT_MOST_RANKED + 8];
        for (int64_t k = 0; k < n; k++) {
            key_32[k] = (uint32_t)(n % 2 ? random_bits(state) % 9 * 0x20000000u : random_bits(state));
            key_64[k] = n % 2 ? random_bits(state) % 9 << 61 : random_bits(state);
        }
        kernels->rank_32(key_32, n, place_32);
        kernels->rank_64(key_64, n, place_64);
        for (int64_t k = 0; k < n; k++) {
            int64_t less_32 = 0, less_64 = 0;
            for (int64_t j = 0; j < n; j++) {
                less_32 += key_32[j] < key_32[k] || (key_32[j] == key_32[k] && j < k);
                less_64 += key_64[j] < key_64[k] || (key_64[j] == key_64[k] && j < k);
            }
            CHECK(place_32[k] == (uint32_t)less_32 && place_64[k] == (uint64_t)less_64);
        }
    }
}

/* Short lines, more than are gone through at a time, one behind the other and beside each other. */
static void check_short(hlort_pool *pool, uint64_t *state)
{
    static const int64_t counts[][2] = { { 1, 1 }, { 2, 1 }, { 7, 2 }, { 8, 8 }, { 16, 1 }, { 15, 15 }, { 16, 16 }, { 17, 16 }, { 33, 17 }, { 64, 8 }, { 256, 8 }, { 256, 9 } };
    for (int64_t bytes = 1; bytes <= 8; bytes *= 2)
        for (int kind = HLORT_KEY_UNSIGNED; kind <= HLORT_KEY_PARTIAL; kind++)
            for (int c = 0; c < (int)(sizeof counts / sizeof counts[0]) && (bytes > 1 || kind <= HLORT_KEY_SIGNED); c++)
                for (int way = 0; way < 4; way++) {
                    hlort_sort d = { .kind = (hlort_key)kind, .descending = way & 1, .key_bytes = bytes, .infinity = kind > HLORT_KEY_SIGNED ? infinity_of(bytes) : 0,
                                     .outer = way & 2 ? 2 : 70, .count = counts[c][0], .inner = way & 2 ? 35 : 1, .kept = counts[c][1], .to_count = counts[c][1],
                                     .n = 2, .bytes = { bytes, 4 } };
                    if (kind == HLORT_KEY_PARTIAL)
                        d.kept = d.to_count = d.count;
                    check(d, (c + kind) % 2 ? 5 : 1000003, c % 2, way & 1 ? pool : NULL, state);
                }
}

static void check_all(hlort_pool *pool)
{
    static const int64_t counts[] = { 2, 3, 17, 40, 41, 300, 9000 };
    uint64_t             state = 88172645463325252u;
    for (int64_t bytes = 1; bytes <= 8; bytes *= 2)
        for (int kind = HLORT_KEY_UNSIGNED; kind <= HLORT_KEY_PARTIAL; kind++)
            for (int c = 0; c < 7 && (bytes > 1 || kind <= HLORT_KEY_SIGNED); c++)
                for (int way = 0; way < 12; way++) {
                    hlort_sort d = { .kind = (hlort_key)kind, .descending = way & 1, .key_bytes = bytes, .infinity = kind > HLORT_KEY_SIGNED ? infinity_of(bytes) : 0,
                                     .outer = counts[c] > 1000 ? 1 : 3, .count = counts[c], .inner = way % 3 == 2 ? 4 : 1, .n = 1 + way / 4,
                                     .bytes = { bytes, way % 2 && c % 2 ? 8 : 4, 16 }, .kept = counts[c], .to_count = counts[c] };
                    if (way / 4 == 2 && bytes == 4)
                        d.key = 1;
                    if (way % 4 > 1 && kind != HLORT_KEY_PARTIAL) {
                        d.kept = way % 4 == 2 ? (d.count + 9) / 10 : (d.count + 3) / 4;
                        d.to_count = way < 6 ? d.kept : d.count;
                    }
                    check(d, way < 6 ? 1000003 : 5, way / 4 == 1 && way % 2, way % 2 ? pool : NULL, &state);
                }
    /* more than a thread's memory; keys that come in the wrong order for few and for many that are kept */
    check((hlort_sort){ .kind = HLORT_KEY_TOTAL, .key_bytes = 4, .infinity = infinity_of(4), .outer = 2, .count = 400000, .inner = 1, .kept = 400000, .to_count = 400000,
                        .n = 2, .bytes = { 4, 4 } }, 1u << 31, 1, pool, &state);
    for (int64_t kept = 8; kept <= 800; kept *= 10)
        check((hlort_sort){ .kind = HLORT_KEY_TOTAL, .key_bytes = 4, .infinity = infinity_of(4), .outer = 2, .count = 50000, .inner = 1, .kept = kept, .to_count = kept,
                            .n = 2, .bytes = { 4, 4 }, .descending = 1 }, 1u << 31, 1, pool, &state);
    check_short(pool, &state);
    check_firsts(&state);
    check_ranks(&state);
}

int main(void)
{
    const KernelSet *sets[] = {
        &hlort_base,
#if defined(__x86_64__)
        &hlort_v2, &hlort_v3, &hlort_v4
#endif
    };
    hlort_pool *pool = hlort_pool_new(3);
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++)
        if (hlort_has(sets[k])) {
            kernels = hlort_sort_kernels(sets[k]);
            check_all(pool);
        }
    hlort_pool_free(pool);
    return 0;
}
