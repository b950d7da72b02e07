/* Products against plain loops, on every set of instructions that this processor has. The values are small whole numbers, so that sums are exact
 * in any order and every result must be equal, rounded once to C's type. Operands are allocated to the byte: a sanitizer sees what is read beside them. */
#include "runtime/packed.h"
#include "runtime/pool.h"
#include "runtime/test_types.h"

#include <string.h>

/* ---- operands ---- */

typedef struct Case {
    hlort_dot d;
    int64_t   a_count, b_count, c_count; /* elements */
    int      *a, *b, *want;              /* the values, in memory as the operands lie; C likewise */
} Case;

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
static void add_up(Case *c)
{
    const hlort_dot *d = &c->d;
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

static void expect(Case *c)
{
    const hlort_dot *d = &c->d;
    c->a = values(c->a_count, (uint32_t)(d->m * 1681 + d->n * 41 + d->k));
    c->b = values(c->b_count, (uint32_t)(d->k * 1681 + d->m * 41 + d->n + 5));
    add_up(c);
}

static void forget(Case *c)
{
    free(c->a);
    free(c->b);
    free(c->want);
}

/* ---- one type at a time ---- */

/* An epilogue that doubles the sums and counts them; without a C it puts them where they belong. */
typedef struct Seen {
    Kind             sums, out;
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
            double  v = get(s->sums, t->sums, i * t->stride + j) * s->factor;
            s->times[at]++;
            CHECK(at == t->place + i * t->by + j);
            if (s->c)
                put(s->out, s->c, at, stored(s->out, v));
            else
                put(s->sums, t->sums, i * t->stride + j, v);
        }
}

enum { BARE, DOUBLED, TILES_ONLY, MODES };

static hlort_pool *pool; /* whose threads work, if any */

/* Once more, with B packed by the first of two calls: the same bits. */
static void run_packed(const Case *c, const KernelSet *s, GemmType t, const hlort_how *how, const void *a, const void *b, const void *result)
{
    const int64_t bytes = hlort_panels_bytes(hlort_bytes[t][0], c->d.k, c->d.n);
    const size_t  all = (size_t)c->c_count * size_of[kinds[t].out];
    hlort_packed  packed = { .bytes = bytes, .memory = aligned_alloc(64, (size_t)bytes) };
    void         *again = malloc(all);
    hlort_how     with = *how;
    with.packed = &packed;
    for (int call = 0; call < 2; call++) {
        memcpy(again, result, all);
        for (int64_t k = 0; k < c->c_count; k++)
            if (c->want[k] != UNTOUCHED)
                put(kinds[t].out, again, k, 1);
        hlort_gemm(s, t, &c->d, &with, a, b, again);
        CHECK(memcmp(again, result, all) == 0);
    }
    free(again);
    free(packed.memory);
}

static void run_values(const Case *c, const KernelSet *s, GemmType t, int mode)
{
    static char work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    void       *a = operand(kinds[t].in, c->a, c->a_count), *b = operand(kinds[t].in, c->b, c->b_count);
    int        *times = calloc((size_t)c->c_count + 1, sizeof *times), *before = malloc((size_t)(c->c_count + 1) * sizeof *before);
    for (int64_t k = 0; k < c->c_count; k++)
        before[k] = UNTOUCHED;
    void     *result = operand(kinds[t].out, before, c->c_count);
    if (mode == DOUBLED && kinds[t].out != kinds[t].sums)
        mode = TILES_ONLY;
    Seen      seen = { kinds[t].sums, kinds[t].out, &c->d, mode == TILES_ONLY ? result : NULL, times, 2 };
    hlort_how how = { .work = work, .pool = pool, .epilogue = mode == BARE ? NULL : see, .context = &seen };
    hlort_gemm(s, t, &c->d, &how, a, b, mode == TILES_ONLY ? NULL : result);
    for (int64_t k = 0; k < c->c_count; k++) {
        int    of_c = c->want[k] != UNTOUCHED || (mode != BARE && times[k]);
        double want = stored(kinds[t].out, mode == BARE || !of_c ? c->want[k] : 2.0 * c->want[k]);
        if (get(kinds[t].out, result, k) != want || (mode != BARE && times[k] != of_c)) {
            const hlort_dot *d = &c->d;
            fprintf(stderr, "%s type %d mode %d: m %lld n %lld k %lld, a %lld %lld, b %lld %lld: element %lld is %g, not %g (seen %d times)\n", s->name, t,
                    mode, (long long)d->m, (long long)d->n, (long long)d->k, (long long)d->a_row, (long long)d->a_col, (long long)d->b_row,
                    (long long)d->b_col, (long long)k, get(kinds[t].out, result, k), want, times[k]);
            exit(1);
        }
    }
    if (mode == BARE)
        run_packed(c, s, t, &how, a, b, result);
    free(a);
    free(b);
    free(result);
    free(before);
    free(times);
}

static void run(const Case *c, const KernelSet *s, GemmType t, int mode)
{
    if (kinds[t].in != U8) {
        run_values(c, s, t, mode);
        return;
    }
    Case u = *c;
    u.a = magnitudes(c->a, c->a_count);
    u.b = magnitudes(c->b, c->b_count);
    add_up(&u);
    run_values(&u, s, t, mode);
    forget(&u);
}

/* On every set, with some of the types. */
static void run_everywhere(const Case *c, int mode)
{
    static uint32_t state = 7;
    for (int s = 0; s < N_SETS; s++)
        for (int t = 0; t < GEMM_C64 /* complex_test.c has the rest */ && has(sets[s]); t++)
            if ((random_bits(&state) >> 16) % 3 == 0)
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
                    run(&c, sets[s], (GemmType)(r / LAYOUTS / MODES / N_SETS % GEMM_C64), (int)(r / LAYOUTS % MODES));
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
        { 30, 385, 40 }, { 28, 130, 800 }, { 120, 40, 520 }, { 16, 130, 101 }, { 12, 1030, 33 }, { 1, 333, 77 }, { 1, 5000, 40 }, { 70, 3, 100 }, { 130, 8, 300 },
        { 65, 7, 64 },   { 9, 40, 1100 }, { 70, 11, 1100 }, { 300, 16, 90 }, { 600, 2, 600 }, { 16, 17, 9001 }, { 18, 16, 9001 }, { 5, 40, 2100 },
        { 1, 1237, 61 }, { 1, 4101, 75 }, { 1, 70, 1003 }, { 30, 7, 33 }, { 1, 64, 31000 },
        { 3, 3, 1100 }, { 8, 8, 2049 }, { 1, 7, 5001 }, { 5, 16, 300 }, { 16, 9, 1025 }, { 11, 5, 256 }, { 6, 1, 3000 }, { 16, 16, 2050 }, { 2, 12, 1500 }, { 7, 4, 1024 },
        { 3, 5001, 3 }, { 1, 9003, 1 }, { 40, 2003, 2 }, { 12, 1003, 30 }, { 70, 1030, 9 }, { 11, 700, 200 }, { 9, 69, 300 },  { 10, 47, 259 },  { 11, 31, 70 }, { 12, 50, 513 },
        { 200, 10, 64 }, { 131, 32, 33 }, { 70, 17, 41 }, { 150, 8, 127 }, { 67, 5, 2 },
    };
    for (size_t e = 0; e < sizeof sizes / sizeof *sizes; e++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            Case c = make(sizes[e][0], sizes[e][1], sizes[e][2], layout);
            expect(&c);
            run_everywhere(&c, layout % MODES);
            forget(&c);
        }
    Case row = make(1, 10, 4000, 0); /* there is no other one: its distance says nothing */
    row.d.a_row = 1;
    expect(&row);
    run_everywhere(&row, BARE);
    forget(&row);
    puts("ok blocks");
}

/* B of more than the third cache is thought to hold, of four bytes, of two, of one; as many rows as any kernel takes, and more. */
static void test_far(void)
{
    static const int64_t sizes[][2] = { { 1, 1001 }, { 2, 1001 }, { 4, 2101 }, { 5, 1001 }, { 6, 1001 }, { 6, 4005 }, { 8, 2101 }, { 9, 1001 }, { 12, 1001 }, { 12, 4005 }, { 13, 1001 } };
    for (size_t e = 0; e < sizeof sizes / sizeof *sizes; e++) {
        Case c = make(sizes[e][0], 4205, sizes[e][1], 0);
        expect(&c);
        run_everywhere(&c, sizes[e][0] == 1 ? BARE : TILES_ONLY);
        forget(&c);
    }
    puts("ok far");
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
    static const int64_t sizes[][3] = { { 5, 7, 6 }, { 16, 16, 16 }, { 3, 40, 9 }, { 20, 3, 17 }, { 2, 2, 100 } };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int layout = 0; layout < 4; layout++) { /* members one behind the other, of which narrow ones are converted together */
            const int64_t m = sizes[k][0], n = sizes[k][1], terms = sizes[k][2];
            Case          c = make(m, n, terms, layout);
            c.d.n_batch = 2;
            c.d.batch[0].count = 2;
            c.d.batch[0].a = 41 * m * terms;
            c.d.batch[0].b = 41 * terms * n;
            c.d.batch[0].c = 41 * m * n;
            c.d.batch[1].count = 41;
            c.d.batch[1].a = m * terms;
            c.d.batch[1].b = terms * n;
            c.d.batch[1].c = m * n;
            c.a_count = 82 * m * terms;
            c.b_count = 82 * terms * n;
            c.c_count = 82 * m * n;
            expect(&c);
            run_everywhere(&c, (int)k % MODES);
            forget(&c);
        }
    for (int layout = 0; layout < 4; layout++) {
        Case wide = make(11, 2100, 9, layout); /* more columns than are converted at once */
        expect(&wide);
        run_everywhere(&wide, layout % MODES);
        forget(&wide);
    }
    Case one = make(5, 1, 7, 0); /* columns of one element: a row of the transposed product */
    one.d.n_batch = 1;
    one.d.batch[0].count = 3;
    one.d.batch[0].a = 35;
    one.d.batch[0].b = 7;
    one.d.batch[0].c = 5;
    one.a_count = 3 * 35;
    one.b_count = 3 * 7;
    one.c_count = 3 * 5;
    expect(&one);
    run_everywhere(&one, BARE);
    forget(&one);
    puts("ok batch");
}

/* What is not finite arrives in its row and column, and nowhere else; a product with zero is not left out, and none is counted that is not there. */
static void run_not_finite(const KernelSet *s, int64_t m, int by, int64_t at, float odd)
{
    enum { M = 9, N = 37, K = 94 };
    static char work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    for (int columns = 0; columns < 2; columns++)
        for (int b_is = 0; b_is < 2; b_is++) {
            float     a[M * K], b[K * N], c[M * N];
            hlort_dot d = { .m = m, .n = N, .k = K, .a_row = K, .a_col = 1, .b_row = by ? 1 : N, .b_col = by ? K : 1, .c_row = N };
            if (columns)
                d = (hlort_dot){ .m = N, .n = m, .k = K, .a_row = d.b_col, .a_col = d.b_row, .b_row = 1, .b_col = K, .c_row = m };
            for (int k = 0; k < M * K; k++)
                a[k] = 1;
            for (int k = 0; k < K * N; k++)
                b[k] = (float)b_is;
            a[m / 2 * K + at] = odd;
            hlort_gemm(s, GEMM_F32, &d, &(hlort_how){ .work = work }, columns ? b : a, columns ? a : b, c);
            for (int k = 0; k < m * N; k++) {
                const float is = c[k], want = (columns ? k % m : k / N) != m / 2 ? (float)(b_is * K) : odd * (float)b_is;
                CHECK(want != want ? is != is : is == want);
            }
        }
}

static void test_not_finite(void)
{
    static const float odd[] = { __builtin_inff(), -__builtin_inff(), __builtin_nanf("") };
    static const int   at[] = { 0, 79, 87, 91, 93 }; /* of 94: a vector that ends there has them, and so may the one before */
    for (int s = 0; s < N_SETS; s++)
        for (int m = 1; m <= 9 && has(sets[s]); m++)
            for (int e = 0; e < 3; e++)
                for (int k = 0; k < 5; k++)
                    for (int by = 0; by < 2; by++)
                        run_not_finite(sets[s], m, by, at[k], odd[e]);
    puts("ok not finite");
}

/* Sums of the largest products of bytes, of u8 beyond 32 bits: what is left of them is exact. */
static void test_bytes(void)
{
    enum { M = 17, N = 40, K = 66000 + 5 };
    static const int8_t pairs[][2] = { { -128, -128 }, { -128, 127 }, { 127, -128 }, { -1, -1 }, { -1, -128 } };
    static char         work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    static int8_t       a[M * K], b[N * K];
    for (int s = 0; s < N_SETS; s++)
        for (size_t e = 0; e < sizeof pairs / sizeof *pairs && has(sets[s]); e++)
            for (int64_t m = 1; m <= M; m += 8) {
                uint32_t  c[M * N], want = (uint32_t)((int64_t)pairs[e][0] * pairs[e][1] * K);
                uint32_t  want_u8 = (uint32_t)((int64_t)(uint8_t)pairs[e][0] * (uint8_t)pairs[e][1] * K);
                hlort_dot d = { .m = m, .n = N, .k = K, .a_row = K, .a_col = 1, .b_row = e % 2 ? 1 : N, .b_col = e % 2 ? K : 1, .c_row = N };
                memset(a, pairs[e][0], sizeof a);
                memset(b, pairs[e][1], sizeof b);
                hlort_gemm(sets[s], GEMM_S8_S32, &d, &(hlort_how){ .work = work }, a, b, c);
                for (int64_t k = 0; k < m * N; k++)
                    CHECK(c[k] == want);
                hlort_gemm(sets[s], GEMM_U8_S32, &d, &(hlort_how){ .work = work }, a, b, c);
                for (int64_t k = 0; k < m * N; k++)
                    CHECK(c[k] == want_u8);
            }
    puts("ok bytes");
}

/* bf16 that is not finite, overflows, or is subnormal, which may count as zero, in each way to multiply. */
static void test_bf16(void)
{
    enum { N = 40, K = 1000 };
    static const struct {
        uint16_t a, b;
        float    product;
    } rows[] = {
        { 0x7f80, 0x3f80, __builtin_inff() },  { 0xff80, 0x3f80, -__builtin_inff() }, { 0x7f80, 0x0000, __builtin_nanf("") }, { 0x7fc0, 0x3f80, __builtin_nanf("") },
        { 0x7f80, 0xff80, -__builtin_inff() }, { 0x7f00, 0x7f00, __builtin_inff() },  { 0x7f7f, 0x3f80, 0x1.fep127f },        { 0x0001, 0x3f80, 0x1p-133f },
        { 0x8040, 0x3f80, -0x1p-127f },        { 0x0080, 0x3f00, 0x1p-127f },         { 0x4049, 0xc02e, -0x1.113cp3f },
    };
    static char     work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    static uint16_t a[17 * K], b[K * N];
    for (int s = 0; s < N_SETS; s++)
        for (size_t e = 0; e < sizeof rows / sizeof *rows && has(sets[s]); e++)
            for (int64_t m = 1; m <= 17; m += 4)
                for (int by = 0; by < 2; by++) {
                    float     c[17 * N];
                    hlort_dot d = { .m = m, .n = N, .k = K, .a_row = K, .a_col = 1, .b_row = by ? 1 : N, .b_col = by ? K : 1, .c_row = N };
                    memset(a, 0, sizeof a);
                    memset(b, 0, sizeof b);
                    a[m / 2 * K + 777] = rows[e].a;
                    for (int64_t j = 0; j < N; j++)
                        b[777 * d.b_row + j * d.b_col] = rows[e].b;
                    hlort_gemm(sets[s], GEMM_BF16_F32, &d, &(hlort_how){ .work = work }, a, b, c);
                    for (int64_t j = m / 2 * N; j < m / 2 * N + N; j++)
                        CHECK(c[j] == rows[e].product || (c[j] != c[j] && rows[e].product != rows[e].product) ||
                              (c[j] == 0 && __builtin_fabsf(rows[e].product) < 0x1p-126f));
                }
    puts("ok bf16");
}

/* The same bits whatever is computed beside an element, where both have many rows: rows and columns of a part are those of the whole. */
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
        d.m = 21;
        d.n = 37;
        hlort_gemm(sets[s], GEMM_F32, &d, &how, a + 13 * K, b + 21, part);
        for (int i = 0; i < 21; i++)
            CHECK(memcmp(part + i * N, whole + (13 + i) * N + 21, 37 * sizeof(float)) == 0);
    }
    puts("ok parts");
}

/* Rows that are zeros in parts, as masks make them: not multiplied where B is finite there, else NaN comes of them. Signs of zeros are as if all were. */
static void test_zeros(void)
{
    enum { M = 150, N = 70, K = 1000 };
    static char     work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    static float    a[M * K], b[K * N], c[M * N];
    static uint16_t ha[M * K], hb[K * N];
    uint32_t        state = 17;
    for (int odd = 0; odd < 3; odd++)
        for (int by = 0; by < 2; by++) {
            for (int k = 0; k < K * N; k++)
                b[k] = (float)(random_bits(&state) % 7) - 3;
            for (int i = 0; i < M; i++)
                for (int p = 0; p < K; p++)
                    a[by ? p * M + i : i * K + p] = p / 100 == i / 20 ? (float)(random_bits(&state) % 5) - 2 : i % 3 ? 0.0f : -0.0f;
            if (odd)
                b[555 * N + 33] = odd == 1 ? __builtin_inff() : __builtin_nanf("");
            for (int k = 0; k < M * K; k++)
                ha[k] = (uint16_t)(((union { float f; uint32_t u; }){ a[k] }).u >> 16);
            for (int k = 0; k < K * N; k++)
                hb[k] = (uint16_t)(((union { float f; uint32_t u; }){ b[k] }).u >> 16);
            for (int s = 0; s < N_SETS; s++)
                for (int narrow = 0; narrow < 2 && has(sets[s]); narrow++) {
                    hlort_dot d = { .m = M, .n = N, .k = K, .a_row = by ? 1 : K, .a_col = by ? M : 1, .b_row = N, .b_col = 1, .c_row = N };
                    if (narrow)
                        hlort_gemm(sets[s], GEMM_BF16_F32, &d, &(hlort_how){ .work = work }, ha, hb, c);
                    else
                        hlort_gemm(sets[s], GEMM_F32, &d, &(hlort_how){ .work = work }, a, b, c);
                    for (int i = 0; i < M; i++)
                        for (int j = 0; j < N; j++) {
                            float sum = 0;
                            for (int p = 0; p < K; p++)
                                sum += a[by ? p * M + i : i * K + p] * b[p * N + j];
                            CHECK(sum != sum ? c[i * N + j] != c[i * N + j] : memcmp(&c[i * N + j], &sum, sizeof sum) == 0);
                        }
                }
        }
    puts("ok zeros");
}

/* What underflows before zeros is 0, whoever has them beside it. */
static void test_underflow(void)
{
    enum { M = 40, N = 40, K = 500 };
    static char  work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    static float a[M * K], b[K * N], c[M * N];
    const float  zero = 0;
    for (int k = 0; k < K * N; k++)
        b[k] = k % 2 ? -1e-30f : 1e-30f;
    for (int i = 0; i < M; i++)
        a[i * K + 3] = 1e-30f;
    a[5 * K + 400] = 1e-30f;
    for (int s = 0; s < N_SETS; s++) {
        hlort_dot d = { .m = M, .n = N, .k = K, .a_row = K, .a_col = 1, .b_row = N, .b_col = 1, .c_row = N };
        if (!has(sets[s]))
            continue;
        hlort_gemm(sets[s], GEMM_F32, &d, &(hlort_how){ .work = work }, a, b, c);
        for (int k = 0; k < M * N; k++)
            CHECK(memcmp(&c[k], &zero, sizeof zero) == 0);
    }
    puts("ok underflow");
}

static float float_of(uint32_t u)
{
    union {
        uint32_t u;
        float    f;
    } x = { u };
    return x.f;
}

/* f16 and bf16 that are halfway between two, around the largest, subnormal, not finite: as 1 x 1 products, exact in f32. Every f16 comes back. */
static void test_narrow(void)
{
    static const struct {
        float    v;
        uint16_t f16, bf16;
    } rows[] = {
        { 1.0f, 0x3c00, 0x3f80 },          { -0.0f, 0x8000, 0x8000 },          { 65504.0f, 0x7bff, 0x4780 },     { 65519.0f, 0x7bff, 0x4780 },
        { 65520.0f, 0x7c00, 0x4780 },      { 0x1p-24f, 0x0001, 0x3380 },       { 0x1p-25f, 0x0000, 0x3300 },     { 0x1.8p-24f, 0x0002, 0x33c0 },
        { 0x1.002p0f, 0x3c00, 0x3f80 },    { 0x1.006p0f, 0x3c02, 0x3f80 },     { 0x1.01p0f, 0x3c04, 0x3f80 },    { 0x1.03p0f, 0x3c0c, 0x3f82 },
        { 0x1.ff8p-15f, 0x03ff, 0x3880 },  { 0x1.ffep-15f, 0x0400, 0x3880 },   { 3e38f, 0x7c00, 0x7f62 },        { -__builtin_inff(), 0xfc00, 0xff80 },
        { 0x1.fffffep127f, 0x7c00, 0x7f80 },
    };
    for (int s = 0; s < N_SETS; s++) {
        if (!has(sets[s]))
            continue;
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            for (int64_t n = 1; n <= 17; n += 16) {
                float    from[17];
                uint16_t to[17];
                for (int e = 0; e < 17; e++)
                    from[e] = rows[k].v;
                sets[s]->narrow[GEMM_F16](to, from, n);
                CHECK(to[0] == rows[k].f16 && to[n - 1] == rows[k].f16);
                sets[s]->narrow[GEMM_BF16](to, from, n);
                CHECK(to[0] == rows[k].bf16 && to[n - 1] == rows[k].bf16);
                from[n - 1] = float_of(0x7f800001);
                sets[s]->narrow[GEMM_F16](to, from, n);
                CHECK((to[n - 1] & 0x7fff) > 0x7c00);
                sets[s]->narrow[GEMM_BF16](to, from, n);
                CHECK((to[n - 1] & 0x7fff) > 0x7f80);
            }
        for (size_t k = 0; k < sizeof rows / sizeof *rows && sets[s]->narrow_rows[GEMM_BF16]; k++)
            for (int64_t n = 1; n <= 17; n++)
                for (int64_t apart = n; apart <= n + 3; apart += 3) {
                    enum { ROWS = 3, MOST = 20 };
                    float    from[ROWS * MOST];
                    uint16_t to[ROWS * MOST] = { 0 };
                    for (int e = 0; e < ROWS * MOST; e++)
                        from[e] = rows[k].v;
                    from[apart + n - 1] = float_of(0x7f800001);
                    sets[s]->narrow_rows[GEMM_BF16](to, apart, from, apart, ROWS, n);
                    for (int64_t i = 0; i < ROWS; i++)
                        for (int64_t j = 0; j < apart; j++)
                            if (i == 1 && j == n - 1)
                                CHECK((to[i * apart + j] & 0x7fff) > 0x7f80);
                            else
                                CHECK(to[i * apart + j] == (j < n ? rows[k].bf16 : 0));
                }
        static char work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
        for (uint32_t bits = 0; bits < 0x10000; bits += 8) {
            uint16_t  a[8], one = 0x3c00, c[8];
            hlort_dot d = { .m = 1, .n = 8, .k = 1, .a_row = 1, .a_col = 1, .b_row = 8, .b_col = 1, .c_row = 8 };
            for (uint32_t e = 0; e < 8; e++)
                a[e] = (uint16_t)(bits + e);
            hlort_gemm(sets[s], GEMM_F16, &d, &(hlort_how){ .work = work }, &one, a, c);
            for (int e = 0; e < 8; e++)
                CHECK((a[e] & 0x7fff) > 0x7c00 ? (c[e] & 0x7fff) > 0x7c00 : c[e] == a[e] || a[e] == 0x8000); /* 0 + -0 is 0 */
        }
    }
    puts("ok narrow");
}

/* Parts are all run, each once, by whoever; products are the same for any number of threads. */
static void count_part(void *job, int64_t part, void *memory)
{
    ((char *)memory)[part % HLORT_WORK_BYTES] = 1;
    __atomic_fetch_add((int *)job + part, 1, __ATOMIC_RELAXED);
}

/* Sums that are rounded, of a B packed before, by the first call and for the second one; memory that is too small is left alone. */
static void test_packed(void)
{
    static char work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    uint32_t    state = 31;
    for (int layout = 0; layout < 4; layout++)
        for (int e = 0; e < N_SETS; e++) {
            Case      c = make(50, 300, 1100, layout);
            float    *a = malloc((size_t)c.a_count * sizeof *a), *b = malloc((size_t)c.b_count * sizeof *b), *plain = calloc((size_t)c.c_count, sizeof *plain),
                     *result = calloc((size_t)c.c_count, sizeof *result);
            const int64_t bytes = hlort_panels_bytes(sizeof *b, c.d.k, c.d.n);
            hlort_packed  packed = { .bytes = bytes - 1, .memory = aligned_alloc(64, (size_t)bytes) };
            hlort_how     how = { .work = work };
            for (int64_t k = 0; k < c.a_count; k++)
                a[k] = (float)(random_bits(&state) >> 8) / 1e7f - 0.8f;
            for (int64_t k = 0; k < c.b_count; k++)
                b[k] = (float)(random_bits(&state) >> 8) / 1e7f - 0.8f;
            for (int call = 0; call < 4 && has(sets[e]); call++) {
                hlort_gemm(sets[e], GEMM_F32, &c.d, &how, a, b, call ? result : plain);
                CHECK(call == 0 || memcmp(plain, result, (size_t)c.c_count * sizeof *plain) == 0);
                CHECK(packed.state == (call > 1 ? PACKED_FILLED : PACKED_FRESH));
                how.packed = &packed;
                packed.bytes = call ? bytes : bytes - 1;
            }
            free(packed.memory);
            free(result);
            free(plain);
            free(b);
            free(a);
        }
    puts("ok packed");
}

/* Jobs that follow each other before everyone has seen the one before end. */
static void test_jobs(hlort_pool *p, char *work)
{
    static int times[64];
    uint32_t   state = 7;
    for (int job = 0; job < 300; job++) {
        const int64_t parts = (int64_t)(random_bits(&state) % 64);
        memset(times, 0, sizeof times);
        pool_run(p, count_part, times, parts, work);
        for (int64_t k = 0; k < 64; k++)
            CHECK(times[k] == (k < parts));
    }
}

static void test_pool(void)
{
    static char work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    static int  times[POOL_MOST_PARTS];
    for (int threads = 0; threads <= 9; threads += 3) {
        hlort_pool *p = hlort_pool_new(threads);
        for (int64_t parts = 0, round = 1; parts <= POOL_MOST_PARTS; parts = parts < 60 ? parts + 7 : parts * 31, round++) {
            memset(times, 0, sizeof times);
            pool_run(p, count_part, times, parts, work);
            for (int64_t k = 0; k < POOL_MOST_PARTS; k++)
                CHECK(times[k] == (k < parts));
        }
        test_jobs(p, work);
        for (int layout = 0; layout < 4; layout++) {
            Case  c = make(200, 330, 90, layout);
            Case  few = make(3, 3000, 50, layout), columns = make(3000, 5, 70, layout), held = make(703, 21, 30, layout), narrow = make(4001, 3, 30, layout);
            Case *cases[] = { &c, &few, &columns, &held, &narrow };
            for (int k = 0; k < 5; k++) {
                expect(cases[k]);
                pool = p;
                run_everywhere(cases[k], layout % MODES);
                pool = NULL;
                forget(cases[k]);
            }
        }
        hlort_pool_free(p);
    }
    hlort_pool *many = hlort_pool_new(21); /* more than there are shares */
    test_jobs(many, work);
    hlort_pool_free(many);
    puts("ok pool");
}

int main(void)
{
    test_narrow();
    test_small();
    test_blocks();
    test_far();
    test_batch();
    test_not_finite();
    test_bytes();
    test_bf16();
    test_parts();
    test_zeros();
    test_underflow();
    test_packed();
    test_pool();
    return 0;
}
