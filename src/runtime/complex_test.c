/* Products of complex numbers against the definition, on every set of instructions that this processor has. The values are small whole numbers: sums are
 * exact in any order. Operands are allocated to the byte: a sanitizer sees what is read beside them. */
#include "runtime/gemm.h"
#include "runtime/pool.h"
#include "support/check.h"

static const KernelSet *const sets[] = {
    &hlort_base,
#if defined(__x86_64__)
    &hlort_v2, &hlort_v3, &hlort_v4,
#endif
};
enum { N_SETS = sizeof sets / sizeof *sets };

static int whole(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return (int)(*state >> 24) % 9 - 4;
}

static double get(GemmType t, const void *p, int64_t k)
{
    return t == GEMM_C64 ? (double)((const float *)p)[k] : ((const double *)p)[k];
}

static void put(GemmType t, void *p, int64_t k, double v)
{
    if (t == GEMM_C64)
        ((float *)p)[k] = (float)v;
    else
        ((double *)p)[k] = v;
}

static void *numbers(GemmType t, int64_t n, uint32_t seed)
{
    void *p = malloc((size_t)n * (t == GEMM_C64 ? 8 : 16));
    for (int64_t k = 0; k < 2 * n; k++)
        put(t, p, k, whole(&seed));
    return p;
}

static int64_t reach(int64_t rows, int64_t row, int64_t columns, int64_t column)
{
    return rows > 0 && columns > 0 ? (rows - 1) * row + (columns - 1) * column + 1 : 0;
}

enum { A_BY_COLUMNS = 1, B_BY_COLUMNS = 2, APART_BY_2 = 4, LAYOUTS = 8 };

/* Doubles what it gets. */
static void twice(const void *context, const hlort_tile *t)
{
    GemmType type = *(const GemmType *)context;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < 2 * t->columns; j++) {
            int64_t at = 2 * i * t->stride + j;
            put(type, t->sums, at, 2 * get(type, t->sums, at));
        }
}

static void check_element(const hlort_dot *d, GemmType t, const void *a, const void *b, const void *c, int64_t i, int64_t j, double factor)
{
    double re = 0, im = 0;
    for (int64_t p = 0; p < d->k; p++) {
        int64_t x = 2 * (i * d->a_row + p * d->a_col), y = 2 * (p * d->b_row + j * d->b_col);
        re += get(t, a, x) * get(t, b, y) - get(t, a, x + 1) * get(t, b, y + 1);
        im += get(t, a, x) * get(t, b, y + 1) + get(t, a, x + 1) * get(t, b, y);
    }
    CHECK(get(t, c, 2 * (i * d->c_row + j)) == factor * re);
    CHECK(get(t, c, 2 * (i * d->c_row + j) + 1) == factor * im);
}

static void run(const KernelSet *s, GemmType t, int64_t m, int64_t n, int64_t k, int layout, hlort_pool *pool)
{
    static char work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    const int64_t step = layout & APART_BY_2 ? 2 : 1;
    hlort_dot     d = { .m = m, .n = n, .k = k, .c_row = n == 1 && step == 1 ? 1 : n + step };
    d.a_row = layout & A_BY_COLUMNS ? step : k * step;
    d.a_col = layout & A_BY_COLUMNS ? m * step : step;
    d.b_row = layout & B_BY_COLUMNS ? step : n * step;
    d.b_col = layout & B_BY_COLUMNS ? k * step : step;
    void *a = numbers(t, reach(m, d.a_row, k, d.a_col), 1), *b = numbers(t, reach(k, d.b_row, n, d.b_col), 2), *c = numbers(t, reach(m, d.c_row, n, 1), 3);
    for (int doubled = 0; doubled < 2; doubled++) {
        hlort_how how = { .work = work, .pool = pool, .epilogue = doubled ? twice : NULL, .context = &t };
        hlort_gemm(s, t, &d, &how, a, b, c);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                check_element(&d, t, a, b, c, i, j, doubled ? 2 : 1);
    }
    free(a);
    free(b);
    free(c);
}

int main(void)
{
    static const int64_t sizes[][3] = { { 0, 3, 2 }, { 3, 0, 2 }, { 1, 1, 0 }, { 4, 9, 0 }, { 1, 1, 1 }, { 1, 40, 7 }, { 40, 1, 7 }, { 5, 17, 130 },
                                        { 2, 3, 300 }, { 37, 33, 65 }, { 90, 20, 150 }, { 13, 270, 9 },
                                        { 200, 6, 40 }, { 60, 100, 130 }, { 40, 200, 100 }, { 2000, 5, 9 },
                                        { 1, 700, 40 }, { 8, 100, 33 }, { 3, 2000, 5 }, { 7, 9, 400 }, { 300, 1, 20 } };
    hlort_pool *pool = hlort_pool_new(3);
    for (int s = 0; s < N_SETS; s++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes && hlort_has(sets[s]); k++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                run(sets[s], GEMM_C64, sizes[k][0], sizes[k][1], sizes[k][2], layout, NULL);
                run(sets[s], GEMM_C128, sizes[k][0], sizes[k][1], sizes[k][2], layout, pool);
            }
    hlort_pool_free(pool);
    puts("ok complex");
    return 0;
}
