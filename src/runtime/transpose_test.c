/* Random permutations of random arrays against plain loops, with one thread and with several. Arrays are allocated to the byte: a sanitizer sees what is read beside them. */
#include "runtime/hlort.h"
#include "support/check.h"

#include <string.h>

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* The axes of an array of `rank` random dimensions whose order is shuffled; its number of elements. */
static int64_t shuffled(hlort_axes *d, int rank, uint32_t *state, int most)
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
    return n;
}

static void check(const hlort_axes *d, int64_t n, hlort_pool *pool)
{
    const int64_t bytes = d->bytes;
    char         *from = malloc((size_t)(n * bytes)), *to = aligned_alloc(64, (size_t)((n * bytes + 63) / 64 * 64));
    CHECK(from && to);
    for (int64_t k = 0; k < n * bytes; k++)
        from[k] = (char)(k * 2654435761u >> 13);
    memset(to, 0, (size_t)(n * bytes));
    hlort_transpose(d, &(hlort_how){ .pool = pool }, from, to);
    for (int64_t k = 0; k < n; k++) {
        int64_t rest = k, a = 0, b = 0;
        for (int64_t j = d->n; j-- > 0; rest /= d->axis[j].count) {
            a += rest % d->axis[j].count * d->axis[j].from;
            b += rest % d->axis[j].count * d->axis[j].to;
        }
        CHECK(memcmp(to + b * bytes, from + a * bytes, (size_t)bytes) == 0);
    }
    free(from);
    free(to);
}

int main(void)
{
    uint32_t    state = 7;
    hlort_pool *pool = hlort_pool_new(3);
    for (int64_t bytes = 1; bytes <= 16; bytes *= 2)
        for (int rank = 2; rank <= 6; rank++)
            for (int round = 0; round < 12; round++) {
                static const int most[] = { 0, 0, 300, 60, 20, 9, 6 };
                hlort_axes       d = { .bytes = bytes };
                int64_t          n = shuffled(&d, rank, &state, most[rank]);
                if (d.n > 0)
                    check(&d, n, round % 2 ? pool : NULL);
            }
    /* thin ones, and some that are written past the caches */
    for (int64_t bytes = 1; bytes <= 16; bytes *= 2) {
        check(&(hlort_axes){ .bytes = bytes, .n = 2, .axis = { { 3, 1000, 1 }, { 1000, 1, 3 } } }, 3000, pool);
        check(&(hlort_axes){ .bytes = bytes, .n = 2, .axis = { { 1000, 4, 1 }, { 4, 1, 1000 } } }, 4000, NULL);
        check(&(hlort_axes){ .bytes = bytes, .n = 2, .axis = { { 2100, 2048, 1 }, { 2048, 1, 2100 } } }, 2100 * 2048, pool);
    }
    hlort_pool_free(pool);
    return 0;
}
