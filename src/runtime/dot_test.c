/* Products against plain loops, on every set of instructions that this processor has. The values are small whole numbers, so that sums are exact
 * in any order and every result must be equal. Operands are allocated to the byte: a sanitizer sees what is read beside them. */
#include "runtime/gemm.h"
#include "support/check.h"

#include <string.h>

/* The tile and the blocks of v4 in whatever vectors there are, so that they are tried on every machine. */
#define HLORT_SET     wide
#define VECTOR_BYTES  64
#define TILE_ROWS     14
#define TILE_VECTORS  2
#define BLOCK_K       384
#define BLOCK_ROWS    112
#define BLOCK_COLUMNS 384
#include "runtime/gemm_types.h"
static const KernelSet wide = { "wide", { hlort_f32_gemm_wide, hlort_f64_gemm_wide } };

static const KernelSet *const sets[] = {
    &hlort_base, &wide,
#if defined(__x86_64__)
    &hlort_v2, &hlort_v3, &hlort_v4,
#endif
};
enum { N_SETS = sizeof sets / sizeof *sets };

static int has(const KernelSet *s)
{
    return s == &wide || hlort_has(s);
}

/* ---- operands ---- */

typedef struct Case {
    hlort_dot d;
    int64_t   a_count, b_count, c_count; /* elements */
    int      *a, *b, *want;              /* the values, in memory as the operands lie; C likewise */
} Case;

static uint32_t random_bits(uint32_t *state)
{
    return *state = *state * 1664525 + 1013904223;
}

static int *values(int64_t n, uint32_t seed)
{
    int *v = malloc((size_t)(n + 1) * sizeof *v);
    for (int64_t k = 0; k < n; k++)
        v[k] = (int)(random_bits(&seed) >> 24) % 9 - 4;
    return v;
}

/* Lengths that `count` rows of `length` take when they are `row` apart. */
static int64_t reach(int64_t count, int64_t row, int64_t length, int64_t step)
{
    return count > 0 && length > 0 ? (count - 1) * row + (length - 1) * step + 1 : 0;
}

enum { A_BY_COLUMNS = 1, B_BY_COLUMNS = 2, PADDED = 4, A_STRIDED = 8, B_STRIDED = 16, LAYOUTS = 32 };

static Case make(int64_t m, int64_t n, int64_t k, int layout)
{
    int64_t pad = layout & PADDED ? 3 : 0, as = layout & A_STRIDED ? 2 : 1, bs = layout & B_STRIDED ? 3 : 1;
    Case    c = { .d = { .m = m, .n = n, .k = k, .c_row = n + pad } };
    c.d.a_row = layout & A_BY_COLUMNS ? as : k * as + pad;
    c.d.a_col = layout & A_BY_COLUMNS ? m * as + pad : as;
    c.d.b_row = layout & B_BY_COLUMNS ? bs : n * bs + pad;
    c.d.b_col = layout & B_BY_COLUMNS ? k * bs + pad : bs;
    c.a_count = reach(m, c.d.a_row, k, c.d.a_col);
    c.b_count = reach(k, c.d.b_row, n, c.d.b_col);
    c.c_count = reach(m, c.d.c_row, n, 1);
    return c;
}

enum { UNTOUCHED = 77 };

/* What the sums are, by the definition. */
static void expect(Case *c)
{
    const hlort_dot *d = &c->d;
    c->a = values(c->a_count, (uint32_t)(d->m * 1681 + d->n * 41 + d->k));
    c->b = values(c->b_count, (uint32_t)(d->k * 1681 + d->m * 41 + d->n + 5));
    c->want = malloc((size_t)(c->c_count + 1) * sizeof *c->want);
    for (int64_t k = 0; k < c->c_count; k++)
        c->want[k] = UNTOUCHED;
    int64_t count = 1;
    for (int64_t k = 0; k < d->n_batch; k++)
        count *= d->batch[k].count;
    for (int64_t e = 0; e < count; e++) {
        int64_t a = 0, b = 0, to = 0, rest = e;
        for (int64_t k = d->n_batch - 1; k >= 0; rest /= d->batch[k].count, k--) {
            a += rest % d->batch[k].count * d->batch[k].a;
            b += rest % d->batch[k].count * d->batch[k].b;
            to += rest % d->batch[k].count * d->batch[k].c;
        }
        for (int64_t i = 0; i < d->m; i++)
            for (int64_t j = 0; j < d->n; j++) {
                int sum = 0;
                for (int64_t p = 0; p < d->k; p++)
                    sum += c->a[a + i * d->a_row + p * d->a_col] * c->b[b + p * d->b_row + j * d->b_col];
                c->want[to + i * d->c_row + j] = sum;
            }
    }
}

static void forget(Case *c)
{
    free(c->a);
    free(c->b);
    free(c->want);
}

/* ---- one type at a time ---- */

static double get(GemmType t, const void *p, int64_t k)
{
    return t == GEMM_F64 ? ((const double *)p)[k] : ((const float *)p)[k];
}

static void put(GemmType t, void *p, int64_t k, double v)
{
    if (t == GEMM_F64)
        ((double *)p)[k] = v;
    else
        ((float *)p)[k] = (float)v;
}

static void *operand(GemmType t, const int *v, int64_t n)
{
    void *p = malloc((size_t)n * (t == GEMM_F64 ? 8 : 4));
    for (int64_t k = 0; k < n; k++)
        put(t, p, k, v[k]);
    return p;
}

/* An epilogue that doubles the sums and counts them; without a C it puts them where they belong. */
typedef struct Seen {
    GemmType         type;
    const hlort_dot *d;
    void            *c;   /* to write to, or NULL: they stay in the tile */
    int             *times;
    double           factor;
} Seen;

static int64_t place(const hlort_dot *d, int64_t batch, int64_t row, int64_t column)
{
    int64_t at = row * d->c_row + column;
    for (int64_t k = d->n_batch - 1; k >= 0; batch /= d->batch[k].count, k--)
        at += batch % d->batch[k].count * d->batch[k].c;
    return at;
}

static void see(const void *context, const hlort_tile *t)
{
    const Seen *s = context;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j++) {
            int64_t at = place(s->d, t->batch, t->row + i, t->column + j);
            double  v = get(s->type, t->sums, i * t->stride + j) * s->factor;
            s->times[at]++;
            if (s->c)
                put(s->type, s->c, at, v);
            else
                put(s->type, t->sums, i * t->stride + j, v);
        }
}

enum { BARE, DOUBLED, TILES_ONLY, MODES };

static void run(const Case *c, const KernelSet *s, GemmType t, int mode)
{
    static char work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    void       *a = operand(t, c->a, c->a_count), *b = operand(t, c->b, c->b_count);
    int        *times = calloc((size_t)c->c_count + 1, sizeof *times), *before = malloc((size_t)(c->c_count + 1) * sizeof *before);
    for (int64_t k = 0; k < c->c_count; k++)
        before[k] = UNTOUCHED;
    void     *result = operand(t, before, c->c_count);
    Seen      seen = { t, &c->d, mode == TILES_ONLY ? result : NULL, times, 2 };
    hlort_how how = { .work = work, .epilogue = mode == BARE ? NULL : see, .context = &seen };
    hlort_gemm(s, t, &c->d, &how, a, b, mode == TILES_ONLY ? NULL : result);
    for (int64_t k = 0; k < c->c_count; k++) {
        int    of_c = c->want[k] != UNTOUCHED || (mode != BARE && times[k]);
        double want = mode == BARE || !of_c ? c->want[k] : 2.0 * c->want[k];
        if (get(t, result, k) != want || (mode != BARE && times[k] != of_c)) {
            const hlort_dot *d = &c->d;
            fprintf(stderr, "%s type %d mode %d: m %lld n %lld k %lld, a %lld %lld, b %lld %lld: element %lld is %g, not %g (seen %d times)\n", s->name, t,
                    mode, (long long)d->m, (long long)d->n, (long long)d->k, (long long)d->a_row, (long long)d->a_col, (long long)d->b_row,
                    (long long)d->b_col, (long long)k, get(t, result, k), want, times[k]);
            exit(1);
        }
    }
    free(a);
    free(b);
    free(result);
    free(before);
    free(times);
}

static void run_everywhere(const Case *c, int mode)
{
    for (int s = 0; s < N_SETS; s++)
        for (int t = 0; t < GEMM_TYPES && has(sets[s]); t++)
            run(c, sets[s], (GemmType)t, mode);
}

/* ---- the tests ---- */

enum { SMALL = 40 };

/* All small sizes: every edge of a tile, each in some layout. */
static void test_small(void)
{
    uint32_t state = 1;
    for (int64_t m = 0; m <= SMALL; m++)
        for (int64_t n = 0; n <= SMALL; n++)
            for (int64_t k = 0; k <= SMALL; k++) {
                uint32_t r = random_bits(&state) >> 8;
                int      s = (int)(r / LAYOUTS / MODES % N_SETS);
                Case     c = make(m, n, k, (int)(r % LAYOUTS));
                expect(&c);
                if (has(sets[s]))
                    run(&c, sets[s], (GemmType)(r / LAYOUTS / MODES / N_SETS % GEMM_TYPES), (int)(r / LAYOUTS % MODES));
                forget(&c);
            }
    puts("ok small");
}

/* Sizes around those of tiles and blocks, and few rows, in every layout. */
static void test_blocks(void)
{
    static const int64_t sizes[][3] = {
        { 1, 70, 50 },   { 2, 33, 100 },  { 3, 2100, 9 }, { 4, 130, 37 },   { 5, 48, 260 },   { 6, 16, 256 },   { 7, 17, 257 },  { 8, 66, 129 },
        { 9, 1, 400 },   { 60, 1, 70 },   { 13, 32, 384 }, { 15, 33, 385 }, { 71, 31, 130 },  { 73, 257, 12 },  { 113, 64, 20 }, { 145, 20, 31 },
        { 30, 385, 40 }, { 28, 130, 800 }, { 120, 40, 520 },
    };
    for (size_t e = 0; e < sizeof sizes / sizeof *sizes; e++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            Case c = make(sizes[e][0], sizes[e][1], sizes[e][2], layout);
            expect(&c);
            run_everywhere(&c, layout % MODES);
            forget(&c);
        }
    puts("ok blocks");
}

/* A batch of two dimensions, of which B has one and A none, in any order of memory. */
static void test_batch(void)
{
    for (int mode = 0; mode < MODES; mode++)
        for (int64_t m = 1; m <= 20; m += 19) {
            Case c = make(m, 18, 7, 0);
            c.d.n_batch = 2;
            c.d.batch[0].count = 3;
            c.d.batch[0].a = m * 7;
            c.d.batch[0].c = m * 18;
            c.d.batch[1].count = 4;
            c.d.batch[1].b = 18 * 7;
            c.d.batch[1].c = 3 * m * 18;
            c.a_count = 3 * m * 7;
            c.b_count = 4 * 18 * 7;
            c.c_count = 12 * m * 18;
            expect(&c);
            run_everywhere(&c, mode);
            forget(&c);
        }
    puts("ok batch");
}

/* What is not finite arrives in its row and column, and nowhere else; a product with zero is not left out. */
static void test_not_finite(void)
{
    enum { M = 9, N = 37, K = 30 };
    static const float odd[] = { __builtin_inff(), -__builtin_inff(), __builtin_nanf("") };
    static char        work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    for (int s = 0; s < N_SETS; s++)
        for (int m = 1; m <= M && has(sets[s]); m++)
            for (int e = 0; e < 3; e++)
                for (int by = 0; by < 2; by++) {
                    float     a[M * K], b[K * N], c[M * N];
                    hlort_dot d = { .m = m, .n = N, .k = K, .a_row = K, .a_col = 1, .b_row = by ? 1 : N, .b_col = by ? K : 1, .c_row = N };
                    hlort_how how = { .work = work };
                    for (int k = 0; k < M * K; k++)
                        a[k] = 1;
                    for (int k = 0; k < K * N; k++)
                        b[k] = 0;
                    a[m / 2 * K + 29] = odd[e];
                    hlort_gemm(sets[s], GEMM_F32, &d, &how, a, b, c);
                    for (int k = 0; k < m * N; k++)
                        CHECK(k / N == m / 2 ? c[k] != c[k] : c[k] == 0);
                }
    puts("ok not finite");
}

/* The same bits whatever is computed beside an element: rows and columns of a part are those of the whole. */
static void test_parts(void)
{
    enum { M = 40, N = 70, K = 300 };
    static char  work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    static float a[M * K], b[K * N], whole[M * N], part[M * N];
    uint32_t     state = 3;
    for (int k = 0; k < M * K; k++)
        a[k] = (float)random_bits(&state) / 3e9f;
    for (int k = 0; k < K * N; k++)
        b[k] = (float)random_bits(&state) / 3e9f - 0.5f;
    for (int s = 0; s < N_SETS; s++) {
        hlort_dot d = { .m = M, .n = N, .k = K, .a_row = K, .a_col = 1, .b_row = N, .b_col = 1, .c_row = N };
        hlort_how how = { .work = work };
        if (!has(sets[s]))
            continue;
        hlort_gemm(sets[s], GEMM_F32, &d, &how, a, b, whole);
        d.m = 11;
        d.n = 37;
        hlort_gemm(sets[s], GEMM_F32, &d, &how, a + 13 * K, b + 21, part);
        for (int i = 0; i < 11; i++)
            CHECK(memcmp(part + i * N, whole + (13 + i) * N + 21, 37 * sizeof(float)) == 0);
    }
    puts("ok parts");
}

int main(void)
{
    test_small();
    test_blocks();
    test_batch();
    test_not_finite();
    test_parts();
    return 0;
}
