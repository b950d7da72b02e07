/* Random permutations of random arrays against plain loops, on every set of instructions that this processor has, with one thread and with several. Arrays are allocated to the byte: a sanitizer sees what is read beside them. */
#include "runtime/gemm.h"
#include "support/check.h"

#include <string.h>

extern const KernelSet hlort_wide; /* test_kernels.c */

static const KernelSet *const sets[] = {
    &hlort_base, &hlort_wide,
#if defined(__x86_64__)
    &hlort_v2, &hlort_v3, &hlort_v4, &hlort_v4n,
#endif
};
enum { N_SETS = sizeof sets / sizeof *sets };

static int has(const KernelSet *s)
{
    return s == &hlort_wide || hlort_has(s);
}

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* The axes of an array of `rank` random dimensions whose order is shuffled. */
static void shuffled(hlort_axes *d, int rank, uint32_t *state, int most)
{
    int64_t strides[8], count[8], n = 1;
    int     at[8];
    for (int k = rank; k-- > 0;) {
        at[k] = k;
        strides[k] = n;
        count[k] = 1 + random_bits(state) % (uint32_t)most;
        n *= count[k];
    }
    for (int k = rank; k-- > 1;) {
        int other = (int)(random_bits(state) % (uint32_t)(k + 1)), keep = at[k];
        at[k] = at[other];
        at[other] = keep;
    }
    d->n = 0;
    int64_t to = n;
    for (int k = 0; k < rank; k++) {
        to /= count[at[k]];
        if (count[at[k]] > 1)
            d->axis[d->n++] = (hlort_axis){ count[at[k]], to, strides[at[k]] };
    }
}

/* What every set makes is compared with plain loops. The result begins `beside` bytes behind a line of a cache. */
static void check(const hlort_axes *d, int64_t beside, hlort_pool *pool)
{
    const int64_t bytes = d->bytes;
    int64_t       n = 1;
    for (int64_t k = 0; k < d->n; k++)
        n *= d->axis[k].count;
    const size_t size = (size_t)(n * bytes);
    char        *from = malloc(size), *all = aligned_alloc(64, (size + (size_t)beside + 63) / 64 * 64), *to = all + beside, *expected = malloc(size);
    CHECK(from && all && expected);
    for (uint32_t k = 0; k < size; k++)
        from[k] = (char)(k * 2654435761u >> 13);
    const hlort_axis last = d->axis[d->n - 1];
    for (int64_t k = 0; k < n; k += last.count) {
        int64_t rest = k / last.count, a = 0, b = 0;
        for (int64_t j = d->n - 1; j-- > 0; rest /= d->axis[j].count) {
            a += rest % d->axis[j].count * d->axis[j].from;
            b += rest % d->axis[j].count * d->axis[j].to;
        }
        for (int64_t j = 0; j < last.count; j++)
            memcpy(expected + (b + j * last.to) * bytes, from + (a + j * last.from) * bytes, (size_t)bytes);
    }
    for (int s = 0; s < N_SETS; s++) {
        if (!has(sets[s]))
            continue;
        memset(to, 0, size);
        hlort_transpose_by(sets[s], d, &(hlort_how){ .pool = pool }, from, to);
        CHECK(memcmp(to, expected, size) == 0);
    }
    free(from);
    free(all);
    free(expected);
}

static void run(int64_t bytes, hlort_pool *pool)
{
    uint32_t state = 7;
    for (int rank = 2; rank <= 6; rank++)
        for (int round = 0; round < 12; round++) {
            static const int most[] = { 0, 0, 300, 60, 20, 9, 6 };
            hlort_axes       d = { .bytes = bytes };
            shuffled(&d, rank, &state, most[rank]);
            if (d.n > 0)
                check(&d, 0, round % 2 ? pool : NULL);
        }
    /* thin ones */
    check(&(hlort_axes){ .bytes = bytes, .n = 2, .axis = { { 3, 1000, 1 }, { 1000, 1, 3 } } }, 0, pool);
    check(&(hlort_axes){ .bytes = bytes, .n = 2, .axis = { { 1000, 4, 1 }, { 4, 1, 1000 } } }, 0, NULL);
    /* strips: rows of each number that leaves a smaller vector or none, columns likewise, alone and as members of a batch */
    for (int64_t rows = 2; rows <= 200 / bytes + 3; rows += 1 + rows / 9)
        for (int64_t columns = bytes < 16 ? 16 / bytes : 2; columns <= 150 / bytes + 18; columns += 1 + columns / 3) {
            check(&(hlort_axes){ .bytes = bytes, .n = 2, .axis = { { columns, rows, 1 }, { rows, 1, columns } } }, 0, NULL);
            check(&(hlort_axes){ .bytes = bytes, .n = 3, .axis = { { 3, rows * columns, rows * columns }, { columns, rows, 1 }, { rows, 1, columns } } }, 0, NULL);
        }
    /* 2 and 4 neighbours that come apart and together, some of them at once */
    for (int64_t n = 2; n <= 4; n += 2)
        for (int64_t k = 30 / bytes + 1; k < 90 / bytes + 4; k += 1 + k / 8) {
            check(&(hlort_axes){ .bytes = bytes, .n = 4, .axis = { { n, 35 * k, 1 }, { 5, 7 * k, k * n }, { 7, k, 5 * k * n }, { k, 1, n } } }, 0, NULL);
            check(&(hlort_axes){ .bytes = bytes, .n = 4, .axis = { { 5, 7 * k * n, k }, { 7, k * n, 5 * k }, { k, n, 1 }, { n, 1, 35 * k } } }, 0, NULL);
        }
    /* runs of half a line, an odd number and an even one */
    const int64_t half = 32 / bytes;
    for (int64_t rows = 2; rows <= 9; rows++)
        check(&(hlort_axes){ .bytes = bytes, .n = 3, .axis = { { 7, rows * half, half }, { rows, half, 7 * half }, { half, 1, 1 } } }, 0, NULL);
    /* rows of the result that lie in the same sets of a cache, of which few or many of the source's do, too: and columns that leave a rest */
    const int64_t page = 4096 / bytes;
    for (int64_t columns = 64 / bytes; columns <= 2 * page; columns += columns < 150 / bytes ? 1 + 16 / bytes : page - columns % page) {
        check(&(hlort_axes){ .bytes = bytes, .n = 2, .axis = { { columns, page, 1 }, { page, 1, columns } } }, 0, NULL);
        check(&(hlort_axes){ .bytes = bytes, .n = 3, .axis = { { 2, page * columns, page * columns }, { columns, page, 1 }, { page, 1, columns } } }, bytes, pool);
    }
    /* past the caches: rows that begin with a line, rows that do not, runs that are lines, runs that are none */
    const int64_t few = 128 / bytes, many = 69632 / few + 7;
    check(&(hlort_axes){ .bytes = bytes, .n = 2, .axis = { { many, 2048, 1 }, { 2048, 1, many } } }, 0, pool);
    check(&(hlort_axes){ .bytes = bytes, .n = 2, .axis = { { 1030, many * 8, 1 }, { many * 8, 1, 1030 } } }, bytes, pool);
    check(&(hlort_axes){ .bytes = bytes, .n = 3, .axis = { { 256, 260 * few, few }, { 260, few, 256 * few }, { few, 1, 1 } } }, 0, pool);
    check(&(hlort_axes){ .bytes = bytes, .n = 3, .axis = { { 64, 130 * 9 * few, 9 * few }, { 130, 9 * few, 64 * 9 * few }, { 9 * few, 1, 1 } } }, 32, NULL);
}

int main(void)
{
    hlort_pool *pool = hlort_pool_new(3);
    for (int64_t bytes = 1; bytes <= 16; bytes *= 2)
        run(bytes, pool);
    hlort_pool_free(pool);
    return 0;
}
