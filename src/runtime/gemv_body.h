/* gemv_body.h - products with few rows or few columns: the memory is the limit, the large operand is read once and as it lies.
 *
 * Included after gemm_body.h, with its names and
 *   N(widen)(const TE *)     VC of VL elements, as accumulators
 *   N(widen1)(TE)            one
 *   ROWS_AT_ONCE
 *   B_WORDS(w)               what becomes of B's words where they are multiplied as they lie, and then
 *   FEW_BEGUN                sums of a row begin at what N(begin_row)(a, step, k) says
 *
 *   held     B is small: sums of a few rows and columns stay in registers for all of k
 *   sweep    B's rows lie in memory: a few of them at a time are swept over all columns, each of them one long stream; all rows of C meet them in registers
 *   rows     B's columns do: sums of products along k in lanes, a few columns at a time, which are added up at the end
 *   columns  few columns: B is turned, and A's rows are such columns */

enum {
    N(SPAN) = 2048,  /* columns that are finished before the next ones */
    N(BESIDE) = 4096 /* elements of C likewise, of several rows: they stay in the first cache */,
    N(FEW) = 4,      /* rows of a kernel */
    N(ALONE) = 8,    /* columns of one with a single row: so many streams, each of them slow, together are as fast as memory */
    N(SWEPT) = G > 2 ? 2 : 4, /* words of B's rows at a time */
    N(WIDE) = 4      /* and vectors of columns, where C has one row */
};

/* mr rows and nv vectors of C, from where a, b and c are. */
INLINE void N(held)(int mr, int nv, const Gemm *g, const TE *a, const TE *b, TC *c, int64_t c_row)
{
    VC acc[4][8];
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++)
            acc[r][v] = (VC){ 0 };
    ROLLED for (int64_t p = 0; p < g->k; p++, a += g->a_col, b += g->b_row) {
        VC w[8];
        UNROLL for (int v = 0; v < nv; v++)
            w[v] = N(widen)(b + v * VL);
        UNROLL for (int r = 0; r < mr; r++) {
            TC x = N(widen1)(a[r * g->a_row]);
            UNROLL for (int v = 0; v < nv; v++)
                acc[r][v] += x * w[v];
        }
    }
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++)
            *(VCU *)(c + r * c_row + v * VL) = acc[r][v];
}

/* One row of fewer columns than a vector has. */
static void N(hold_few)(const Gemm *g, const TE *a, const TE *b, TC *c, int64_t n)
{
    TC few[VL] = { 0 };
    for (int64_t p = 0; p < g->k; p++)
        for (int64_t q = 0; q < n; q++)
            few[q] += N(widen1)(a[p * g->a_col]) * N(widen1)(b[p * g->b_row + q]);
    __builtin_memcpy(c, few, (uint64_t)n * sizeof *c);
}

/* mr rows of C. The last columns are summed twice where they do not fill a vector. */
INLINE void N(hold)(int mr, const Gemm *g, const TE *a, const TE *b, TC *c, int64_t c_row, int64_t n)
{
    int64_t j = 0;
    if (mr == 1)
        for (; j + VL * 8 <= n; j += VL * 8)
            N(held)(1, 8, g, a, b + j, c + j, c_row);
    for (; j + VL * 2 <= n; j += VL * 2)
        N(held)(mr, 2, g, a, b + j, c + j, c_row);
    for (; j < n && n >= VL; j += VL) {
        const int64_t at = hlort_min(j, n - VL);
        N(held)(mr, 1, g, a, b + at, c + at, c_row);
    }
    for (int r = 0; r < mr && n < VL; r++)
        N(hold_few)(g, a + r * g->a_row, b, c + r * c_row, n);
}

/* `rows` rows of C, n columns. */
APART void N(hold_rows)(const Gemm *g, const TE *a, const TE *b, TC *c, int64_t c_row, int64_t rows, int64_t n)
{
    for (; rows >= 4; rows -= 4, a += 4 * g->a_row, c += 4 * c_row)
        N(hold)(4, g, a, b, c, c_row, n);
    for (; rows >= 2; rows -= 2, a += 2 * g->a_row, c += 2 * c_row)
        N(hold)(2, g, a, b, c, c_row, n);
    if (rows)
        N(hold)(1, g, a, b, c, c_row, n);
}

/* nv vectors of words, of G rows of B or of the first `there` of them. */
INLINE void N(words)(int nv, int64_t there, VW w[NV], const TE *b, int64_t b_row)
{
    if (there < G) {
        TE few[G][K(NR)] = { 0 };
        for (int64_t g = 0; g < there; g++)
            __builtin_memcpy(few[g], b + g * b_row, (uint64_t)(nv * VL) * sizeof *b);
        N(across)(w, few[0], K(NR));
    } else if (nv == NV) {
        N(across)(w, b, b_row);
    } else {
        w[0] = N(beside)(b, b_row);
    }
    UNROLL for (int v = 0; v < nv; v++)
        w[v] = B_WORDS(w[v]);
}

/* A's columns p .. p + kr * G - 1, of which those before k are there, as words; what sums begin at: those of C, or nothing. */
typedef struct {
    TW        x[GEMM_MOST_SWEPT][N(SWEPT)];
    const TC *begin; /* of rows, or NULL: C */
    int64_t   there; /* rows of the last word */
} N(Columns);

/* The word of G elements, of which the first `there` are there. */
INLINE TW N(strided)(const TE *from, int64_t step, int64_t there)
{
    TE few[G] = { 0 };
    if (there == G)
        UNROLL for (int g = 0; g < G; g++)
            few[g] = from[g * step];
    else
        for (int64_t g = 0; g < there; g++)
            few[g] = from[g * step];
    return N(word)(few);
}

INLINE VC N(begun)(int first, const N(Columns) *a, int64_t r, const TC *c)
{
    if (!first)
        return *(const VCU *)c;
    return FEW_BEGUN ? (VC){ 0 } + a->begin[r] : (VC){ 0 };
}

/* WIDE vectors of C's only row, from where c and b are, (+)= kr words by those of B. */
INLINE void N(sweep_line)(int kr, int first, const N(Columns) *a, const TE *b, int64_t b_row, TC *c)
{
    VC acc[N(WIDE)];
    UNROLL for (int v = 0; v < N(WIDE); v++)
        acc[v] = N(begun)(first, a, 0, c + v * VL);
    UNROLL for (int q = 0; q < kr; q++)
        UNROLL for (int v = 0; v < N(WIDE); v += NV) {
            VW w[NV];
            N(words)(NV, kr > 1 ? G : a->there, w, b + q * G * b_row + v * VL, b_row);
            UNROLL for (int e = 0; e < NV; e++)
                acc[v + e] = MULTIPLY_FEW(acc[v + e], a->x[0][q], w[e]);
        }
    UNROLL for (int v = 0; v < N(WIDE); v++)
        *(VCU *)(c + v * VL) = acc[v];
}

/* nv vectors of all m rows: B's stay in registers. */
INLINE void N(sweep_rows)(int kr, int nv, int first, const N(Columns) *a, int64_t m, const TE *b, int64_t b_row, TC *c, int64_t c_row)
{
    VW w[N(SWEPT)][NV];
    UNROLL for (int q = 0; q < kr; q++)
        N(words)(nv, kr > 1 ? G : a->there, w[q], b + q * G * b_row, b_row);
    ROLLED for (int64_t r = 0; r < m; r++, c += c_row) {
        VC acc[NV];
        UNROLL for (int v = 0; v < nv; v++)
            acc[v] = N(begun)(first, a, r, c + v * VL);
        UNROLL for (int q = 0; q < kr; q++)
            UNROLL for (int v = 0; v < nv; v++)
                acc[v] = MULTIPLY_FEW(acc[v], a->x[r][q], w[q][v]);
        UNROLL for (int v = 0; v < nv; v++)
            *(VCU *)(c + v * VL) = acc[v];
    }
}

/* C (+)= kr words of A from column p on by those rows of B, for all columns of the span. */
INLINE void N(sweep)(int kr, int first, const Gemm *g, const TC *begin, TC *c, int64_t c_row, int64_t p, int64_t j0, int64_t n)
{
    const int64_t b_row = g->b_row, m = g->m, k = hlort_min(kr * G, g->k - p);
    const TE     *a = (const TE *)g->a + p * g->a_col, *b = (const TE *)g->b + p * b_row + j0;
    N(Columns)    x = { .begin = begin, .there = k - (kr - 1) * G };
    for (int64_t r = 0; r < m; r++)
        UNROLL for (int q = 0; q < kr; q++)
            x.x[r][q] = N(strided)(a + r * g->a_row + q * G * g->a_col, g->a_col, kr > 1 ? G : x.there);
    __asm__ volatile("" : : "r"(&x) : "memory"); /* from memory to all lanes is cheaper than from a register */
    int64_t j = 0;
    if (m == 1)
        ROLLED for (; j + VL * N(WIDE) <= n; j += VL * N(WIDE))
            N(sweep_line)(kr, first, &x, b + j, b_row, c + j);
    ROLLED for (; j + VL * NV <= n; j += VL * NV)
        N(sweep_rows)(kr, NV, first, &x, m, b + j, b_row, c + j, c_row);
    for (; j + VL <= n; j += VL)
        N(sweep_rows)(kr, 1, first, &x, m, b + j, b_row, c + j, c_row);
    for (; j < n; j++)
        for (int64_t r = 0; r < m; r++) {
            TC s = first ? 0 : c[r * c_row + j];
            for (int64_t q = 0; q < k; q++)
                s += N(widen1)(a[r * g->a_row + q * g->a_col]) * N(widen1)(b[q * b_row + j]);
            c[r * c_row + j] = s;
        }
}

APART void N(sweep_all)(const Gemm *g, const TC *begin, TC *c, int64_t c_row, int64_t j0, int64_t n)
{
    int64_t p = 0;
    for (; p + N(SWEPT) * G <= g->k; p += N(SWEPT) * G)
        N(sweep)(N(SWEPT), p == 0, g, begin, c, c_row, p, j0, n);
    for (; p < g->k; p += G)
        N(sweep)(1, p == 0, g, begin, c, c_row, p, j0, n);
}

/* The words of the last elements along k, zeros behind them. */
INLINE VW N(last)(const TE *from, int64_t count)
{
    TE few[VL * G] = { 0 };
    __builtin_memcpy(few, from, (uint64_t)count * sizeof *from);
    return N(along)(few);
}

/* C[i .. i + mr, j .. j + nc] by sums along k. */
INLINE void N(rows)(int mr, int nc, const Gemm *g, const TC *begin, TC *c, int64_t c_row, int64_t c_col, int64_t i, int64_t j)
{
    const TE *a = (const TE *)g->a + i * g->a_row, *b = (const TE *)g->b + j * g->b_col;
    VC        acc[N(FEW)][N(ALONE)];
    int64_t   p = 0, end = g->k;
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int q = 0; q < nc; q++)
            acc[r][q] = (VC){ 0 };
    ROLLED for (; p + VL * G <= g->k; p += VL * G) {
        VW x[N(FEW)];
        UNROLL for (int r = 0; r < mr; r++)
            x[r] = N(along)(a + r * g->a_row + p);
        UNROLL for (int q = 0; q < nc; q++) {
            VW w = B_WORDS(N(along)(b + q * g->b_col + p));
            UNROLL for (int r = 0; r < mr; r++)
                acc[r][q] = MULTIPLY_FEW(acc[r][q], x[r], w);
        }
    }
#if G > 1
    if (p < g->k) {
        VW x[N(FEW)];
        end = p;
        for (int r = 0; r < mr; r++)
            x[r] = N(last)(a + r * g->a_row + p, g->k - p);
        UNROLL for (int q = 0; q < nc; q++) {
            VW w = B_WORDS(N(last)(b + q * g->b_col + p, g->k - p));
            UNROLL for (int r = 0; r < mr; r++)
                acc[r][q] = MULTIPLY_FEW(acc[r][q], x[r], w);
        }
    }
#endif
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int q = 0; q < nc; q++) {
            TC s = FEW_BEGUN ? begin[i + r] : 0;
            UNROLL for (int e = 0; e < VL; e++)
                s += acc[r][q][e];
            for (int64_t t = p; t < end; t++)
                s += N(widen1)(a[r * g->a_row + t]) * N(widen1)(b[q * g->b_col + t]);
            c[r * c_row + q * c_col] = s;
        }
}

#define ROWS_OF(r, nc)                                                                                                              \
    APART void N(rows_##r)(const Gemm *g, const TC *begin, TC *c, int64_t c_row, int64_t c_col, int64_t i, int64_t j, int64_t columns) \
    {                                                                                                                               \
        if (columns == nc)                                                                                                          \
            N(rows)(r, nc, g, begin, c, c_row, c_col, i, j);                                                                        \
        else                                                                                                                        \
            for (int64_t q = 0; q < columns; q++)                                                                                   \
                N(rows)(r, 1, g, begin, c + q * c_col, c_row, c_col, i, j + q);                                                     \
    }
ROWS_OF(1, N(ALONE))
ROWS_OF(2, 4)
ROWS_OF(3, ROWS_AT_ONCE)
ROWS_OF(4, ROWS_AT_ONCE)
#undef ROWS_OF

/* Columns j0 .. j1 - 1 of all rows; c is where the first of them is. */
static void N(rows_all)(const Gemm *g, const TC *begin, TC *c, int64_t c_row, int64_t c_col, int64_t j0, int64_t j1)
{
    typedef void Rows(const Gemm *, const TC *, TC *, int64_t, int64_t, int64_t, int64_t, int64_t);
    static Rows *const rows[] = { 0, N(rows_1), N(rows_2), N(rows_3), N(rows_4) };
    const int64_t groups = hlort_ceildiv(g->m, N(FEW)), wide = g->m / groups + (g->m % groups > 0), step = wide > 2 ? ROWS_AT_ONCE : wide > 1 ? 4 : N(ALONE);
    for (int64_t j = j0; j < j1; j += step)
        for (int64_t q = 0, i = 0; q < groups; q++) {
            const int64_t mr = g->m / groups + (q < g->m % groups);
            rows[mr](g, begin, c + i * c_row + (j - j0) * c_col, c_row, c_col, i, j, hlort_min(step, j1 - j));
            i += mr;
        }
}

/* Columns j0 .. j1 - 1 of all rows. */
static void N(span)(const Gemm *g, const TC *begin, TC *c, int64_t c_row, int64_t j0, int64_t j1)
{
    if (g->way == GEMM_ROWS) {
        N(rows_all)(g, begin, c, c_row, 1, j0, j1);
        return;
    }
    for (int64_t i = 0; i < g->m && g->k == 0; i++)
        __builtin_memset(c + i * c_row, 0, (uint64_t)(j1 - j0) * sizeof *c);
    N(sweep_all)(g, begin, c, c_row, j0, j1 - j0);
}

/* What sums of A's rows begin at. */
INLINE void N(begin_rows)(TC *begin, const TE *a, int64_t a_row, int64_t a_col, int64_t m, int64_t k)
{
#if FEW_BEGUN
    for (int64_t r = 0; r < m; r++)
        begin[r] = N(begin_row)(a + r * a_row, a_col, k);
#else
    (void)begin, (void)a, (void)a_row, (void)a_col, (void)m, (void)k;
#endif
}

/* Rows of C that are a power of two apart would share their place in the cache: several of them are swept aside. */
static void N(few_rows)(const Gemm *g)
{
    N(Work)      *w = g->work;
    const int     swept = g->way == GEMM_SWEEP && g->m > 1, aside = swept || !g->c;
    TC            begin[GEMM_MOST_SWEPT];
    const int64_t span = swept ? N(BESIDE) / g->m / (VL * 4) * (VL * 4) : (int64_t)N(SPAN);
    N(begin_rows)(begin, g->a, g->a_row, g->a_col, g->m, g->k);
    for (int64_t j = 0; j < g->n; j += span) {
        const int64_t columns = hlort_min(span, g->n - j), c_row = aside ? span + 16 : g->c_row;
        TC           *c = aside ? w->sums : (TC *)g->c + j;
        N(span)(g, begin, c, c_row, j, j + columns);
        if (g->epilogue)
            N(finish)(g, c, c_row, 0, j, g->m, columns);
        for (int64_t i = 0; i < g->m && aside && g->c; i++)
            __builtin_memcpy((TC *)g->c + i * g->c_row + j, c + i * c_row, (uint64_t)columns * sizeof *c);
    }
}

/* Fewer columns than a vector has, of several rows: B gets zeros beside it. */
static void N(small_narrow)(const Gemm *g)
{
    N(Work) *w = g->work;
    Gemm     t = *g;
    TE      *b = (TE *)(void *)w->b;
    TC      *c = w->sums;
    t.b_row = VL;
    for (int64_t p = 0; p < g->k; p++)
        for (int64_t q = 0; q < VL; q++)
            b[p * VL + q] = q < g->n ? ((const TE *)g->b)[p * g->b_row + q] : 0;
    for (int64_t i = 0; i < g->m; i += GEMM_FEW) {
        const int64_t rows = hlort_min(GEMM_FEW, g->m - i);
        N(hold_rows)(&t, (const TE *)g->a + i * g->a_row, b, c, VL, rows, VL);
        if (g->epilogue)
            N(finish)(g, c, VL, i, 0, rows, g->n);
        for (int64_t r = 0; r < rows && g->c; r++)
            __builtin_memcpy((TC *)g->c + (i + r) * g->c_row, c + r * VL, (uint64_t)g->n * sizeof *c);
    }
}

/* B is read again for a few rows at a time. */
static void N(small)(const Gemm *g)
{
    N(Work) *w = g->work;
    if (g->n < VL && g->m > 1) {
        N(small_narrow)(g);
        return;
    }
    for (int64_t j = 0; j < g->n; j += N(SPAN))
        for (int64_t i = 0; i < g->m; i += GEMM_FEW) {
            const int64_t columns = hlort_min(N(SPAN), g->n - j), rows = hlort_min(GEMM_FEW, g->m - i), c_row = g->c ? g->c_row : (int64_t)N(SPAN);
            TC           *c = g->c ? (TC *)g->c + i * c_row + j : w->sums;
            N(hold_rows)(g, (const TE *)g->a + i * g->a_row, (const TE *)g->b + j, c, c_row, rows, columns);
            if (g->epilogue)
                N(finish)(g, c, c_row, i, j, rows, columns);
        }
}

_Static_assert(N(BESIDE) + 16 * GEMM_MOST_SWEPT <= MC * NC && GEMM_FEW * (N(SPAN) + 16) <= MC * NC, "sums");
_Static_assert(GEMM_MOST_TURNED + GEMM_FEW * 16 * sizeof(TE) <= sizeof(((N(Work) *)0)->b), "turned");
_Static_assert(GEMM_MOST_HELD * VL <= sizeof(((N(Work) *)0)->b), "held");

/* The transposed product has few rows. */
static void N(few_columns)(const Gemm *g)
{
    enum { BLOCK = 64 };
    N(Work) *w = g->work;
    TE      *turned = (TE *)(void *)w->b;
    TC       begin[GEMM_FEW];
    /* + 16: as in tiles */
    Gemm     t = { .m = g->n, .n = g->m, .k = g->k, .a = turned, .a_row = g->k + 16, .a_col = 1, .b = g->a, .b_row = 1, .b_col = g->a_row };
    for (int64_t j = 0; j < g->n; j++)
        for (int64_t p = 0; p < g->k; p++)
            turned[j * t.a_row + p] = ((const TE *)g->b)[p * g->b_row + j * g->b_col];
    N(begin_rows)(begin, turned, t.a_row, 1, g->n, g->k);
    for (int64_t i = 0; i < g->m; i += BLOCK) {
        const int64_t rows = hlort_min(BLOCK, g->m - i), c_row = g->c ? g->c_row : g->n;
        TC           *c = g->c ? (TC *)g->c + i * c_row : w->sums;
        N(rows_all)(&t, begin, c, 1, c_row, i, i + rows);
        if (g->epilogue)
            N(finish)(g, c, c_row, i, 0, rows, g->n);
    }
}

static void N(gemm)(const Gemm *g)
{
    if (g->way == GEMM_TILES)
        N(tiles)(g);
    else if (g->way == GEMM_HELD)
        N(small)(g);
    else if (g->way == GEMM_COLUMNS)
        N(few_columns)(g);
    else
        N(few_rows)(g);
}
