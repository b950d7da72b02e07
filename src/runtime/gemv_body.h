/* gemv_body.h - products with few rows: the memory is the limit, B is read once and as it lies, nothing is packed.
 *
 * Included after gemm_body.h, with its names and
 *   N(widen)(const TE *)     VC of VL elements, as accumulators
 *   N(widen1)(TE)            one
 *   SWEEP_VECTORS, ROWS_AT_ONCE
 *
 *   sweep   B's rows lie in memory: a few of them at a time are swept over all columns, each of them one long stream
 *   rows    B's columns do: sums of products along k in lanes, a few columns at a time, which are added up at the end */

enum { N(SPAN) = 2048, N(FEW) = 4 }; /* columns that are finished before the next ones; rows of a kernel */

/* C (+)= rows p .. p + kr of B, times the columns of A, for all columns of the span. */
INLINE void N(sweep)(int mr, int kr, const Gemm *g, TC *c, int64_t c_row, int64_t p, int64_t j0, int64_t n)
{
    const int     nv = SWEEP_VECTORS;
    const int64_t b_row = g->b_row;
    const TE     *a = (const TE *)g->a + p * g->a_col, *b = (const TE *)g->b + p * b_row + j0;
    TC            x[N(FEW)][8];
    for (int r = 0; r < mr; r++)
        for (int q = 0; q < kr; q++)
            x[r][q] = N(widen1)(a[r * g->a_row + q * g->a_col]);
    __asm__ volatile("" : : "r"(x) : "memory"); /* from memory to all lanes is cheaper than from a register */
    int64_t j = 0;
    ROLLED for (; j + VL * nv <= n; j += VL * nv) {
        VC acc[N(FEW)][SWEEP_VECTORS];
        UNROLL for (int r = 0; r < mr; r++)
            UNROLL for (int v = 0; v < nv; v++)
                acc[r][v] = p == 0 ? (VC){ 0 } : (VC) * (const VCU *)(c + r * c_row + j + v * VL);
        UNROLL for (int q = 0; q < kr; q++)
            UNROLL for (int v = 0; v < nv; v++) {
                VC w = N(widen)(b + q * b_row + j + v * VL);
                UNROLL for (int r = 0; r < mr; r++)
                    acc[r][v] += x[r][q] * w;
            }
        UNROLL for (int r = 0; r < mr; r++)
            UNROLL for (int v = 0; v < nv; v++)
                *(VCU *)(c + r * c_row + j + v * VL) = acc[r][v];
    }
    for (; j < n; j++)
        for (int r = 0; r < mr; r++) {
            TC s = p == 0 ? 0 : c[r * c_row + j];
            for (int q = 0; q < kr; q++)
                s += x[r][q] * N(widen1)(b[q * b_row + j]);
            c[r * c_row + j] = s;
        }
}

#define SWEEP(r, kr)                                                                             \
    APART void N(sweep_##r)(const Gemm *g, TC *c, int64_t c_row, int64_t j0, int64_t n)          \
    {                                                                                            \
        int64_t p = 0;                                                                           \
        for (; p + kr <= g->k; p += kr)                                                          \
            N(sweep)(r, kr, g, c, c_row, p, j0, n);                                              \
        for (; p < g->k; p++)                                                                    \
            N(sweep)(r, 1, g, c, c_row, p, j0, n);                                               \
    }
SWEEP(1, 4)
SWEEP(2, 8)
SWEEP(3, 4)
SWEEP(4, 4)
#undef SWEEP

/* C[i .. i + mr, j .. j + nc] by sums along k. nu: vectors of k at a time, each with sums of its own. */
INLINE void N(rows)(int mr, int nc, int nu, const Gemm *g, TC *c, int64_t c_row, int64_t i, int64_t j)
{
    const TE *a = (const TE *)g->a + i * g->a_row, *b = (const TE *)g->b + j * g->b_col;
    VC        acc[N(FEW)][N(FEW)][2];
    int64_t   p = 0;
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int q = 0; q < nc; q++)
            UNROLL for (int u = 0; u < nu; u++)
                acc[r][q][u] = (VC){ 0 };
    ROLLED for (; p + VL * nu <= g->k; p += VL * nu)
        UNROLL for (int u = 0; u < nu; u++) {
            VC x[N(FEW)];
            UNROLL for (int r = 0; r < mr; r++)
                x[r] = N(widen)(a + r * g->a_row + p + u * VL);
            UNROLL for (int q = 0; q < nc; q++) {
                VC w = N(widen)(b + q * g->b_col + p + u * VL);
                UNROLL for (int r = 0; r < mr; r++)
                    acc[r][q][u] += x[r] * w;
            }
        }
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int q = 0; q < nc; q++) {
            VC v = nu == 2 ? acc[r][q][0] + acc[r][q][1] : acc[r][q][0];
            TC s = 0;
            UNROLL for (int e = 0; e < VL; e++)
                s += v[e];
            for (int64_t t = p; t < g->k; t++)
                s += N(widen1)(a[r * g->a_row + t]) * N(widen1)(b[q * g->b_col + t]);
            c[r * c_row + q] = s;
        }
}

#define ROWS_OF(r, nc, nu)                                                                                          \
    APART void N(rows_##r)(const Gemm *g, TC *c, int64_t c_row, int64_t i, int64_t j0, int64_t j, int64_t columns)  \
    {                                                                                                               \
        if (columns == nc)                                                                                          \
            N(rows)(r, nc, nu, g, c + j - j0, c_row, i, j);                                                         \
        else                                                                                                        \
            for (int64_t q = 0; q < columns; q++)                                                                   \
                N(rows)(r, 1, nu, g, c + j + q - j0, c_row, i, j + q);                                              \
    }
ROWS_OF(1, 4, 2)
ROWS_OF(2, 4, 1)
ROWS_OF(3, ROWS_AT_ONCE, 1)
ROWS_OF(4, ROWS_AT_ONCE, 1)
#undef ROWS_OF

/* Columns j0 .. j1 of all rows. */
static void N(span)(const Gemm *g, TC *c, int64_t c_row, int64_t j0, int64_t j1)
{
    static void (*const sweeps[])(const Gemm *, TC *, int64_t, int64_t, int64_t) = { 0, N(sweep_1), N(sweep_2), N(sweep_3), N(sweep_4) };
    static void (*const rows[])(const Gemm *, TC *, int64_t, int64_t, int64_t, int64_t, int64_t) = { 0, N(rows_1), N(rows_2), N(rows_3), N(rows_4) };
    if (g->way == GEMM_SWEEP) {
        for (int64_t i = 0; i < g->m && g->k == 0; i++)
            __builtin_memset(c + i * c_row, 0, (uint64_t)(j1 - j0) * sizeof *c);
        sweeps[g->m](g, c, c_row, j0, j1 - j0);
        return;
    }
    const int64_t groups = hlort_ceildiv(g->m, N(FEW)), wide = g->m / groups + (g->m % groups > 0), step = wide > 2 ? ROWS_AT_ONCE : 4;
    for (int64_t j = j0; j < j1; j += step)
        for (int64_t q = 0, i = 0; q < groups; q++) {
            const int64_t mr = g->m / groups + (q < g->m % groups);
            rows[mr](g, c + i * c_row, c_row, i, j0, j, hlort_min(step, j1 - j));
            i += mr;
        }
}

static void N(few_rows)(const Gemm *g)
{
    N(Work) *w = g->work;
    for (int64_t j = 0; j < g->n; j += N(SPAN)) {
        const int64_t columns = hlort_min(N(SPAN), g->n - j);
        TC           *c = g->c ? (TC *)g->c + j : w->sums;
        int64_t       c_row = g->c ? g->c_row : (int64_t)N(SPAN);
        N(span)(g, c, c_row, j, j + columns);
        if (g->epilogue)
            N(finish)(g, c, c_row, 0, j, g->m, columns);
    }
}

static void N(gemm)(const Gemm *g)
{
    if (g->way == GEMM_TILES)
        N(tiles)(g);
    else
        N(few_rows)(g);
}
