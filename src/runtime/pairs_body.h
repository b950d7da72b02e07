/* pairs_body.h - products by a small B, two neighbours along k at once: a word of A, whose rows have k along them and stay as they lie, is two of its elements, and B's
 * words are made of two of its rows, once.
 *
 * Included by gemv_body.h, with its names, where HELD_PAIRS is set. */

enum {
    N(PAIR_ROWS) = 8,   /* of a kernel: as many sums do not wait for each other */
    N(PAIR_BLOCK) = 64, /* rows whose sums are finished at once */
    N(PAIR_SUMS) = N(PAIR_BLOCK) * NV * VL + NV * VL
};
_Static_assert(G == 2 && N(PAIR_SUMS) <= MC * NC, "sums");

/* B's words, nv vectors for each two of k. Vectors that would end behind B are read from where its last rows are copied to. */
INLINE void N(pair_rows)(TW *to, const Gemm *g, int nv)
{
    const TE *from = g->b, *end = from + (g->k - 1) * g->b_row + g->n;
    for (int64_t p = 0; p < g->k; p += G, from += G * g->b_row)
        UNROLL for (int v = 0; v < nv; v++, to += VL) {
            const TE     *x = from + v * VL;
            const int64_t left = hlort_min(g->n - v * VL, VL);
            if (p + 1 < g->k && x + g->b_row + VL <= end) {
                *(VW *)to = N(beside)(x, g->b_row);
                continue;
            }
            TE few[G * VL] = { 0 };
            for (int64_t q = 0; q < hlort_min(G, g->k - p); q++)
                __builtin_memcpy(few + q * VL, x + q * g->b_row, (uint64_t)left * sizeof *few);
            *(VW *)to = N(beside)(few, VL);
        }
}

/* Likewise where k lies along B's lines. */
INLINE void N(pair_lines)(TW *to, const Gemm *g, int nv)
{
    const int64_t words = hlort_ceildiv(g->k, G);
    for (int v = 0; v < nv; v++)
        for (int64_t p = 0; p < words; p += VL) {
            VW r[VL];
            N(load_columns)(r, (const TE *)g->b + v * VL * g->b_col + p * G, g->b_col, g->n - v * VL, g->k - p * G);
            for (int64_t q = 0; q < hlort_min(VL, words - p); q++)
                *(VW *)(to + (p + q) * nv * VL + v * VL) = r[q];
        }
}

/* mr rows of sums, each of which is written in whole vectors before the next one. */
INLINE void N(pair_sums)(int mr, int nv, const TE *a, int64_t a_row, const TW *b, int64_t k, TC *c, int64_t c_row)
{
    VC      acc[N(PAIR_ROWS)][NV];
    int64_t p = 0;
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++)
            acc[r][v] = (VC){ 0 };
    ROLLED for (; p + G <= k; p += G, b += nv * VL)
        UNROLL for (int r = 0; r < mr; r++)
            UNROLL for (int v = 0; v < nv; v++)
                acc[r][v] = MULTIPLY_ADD(acc[r][v], N(word)(a + r * a_row + p), *(const VW *)(b + v * VL));
    if (p < k)
        UNROLL for (int r = 0; r < mr; r++)
            UNROLL for (int v = 0; v < nv; v++)
                acc[r][v] = MULTIPLY_ADD(acc[r][v], (TW)a[r * a_row + p], *(const VW *)(b + v * VL));
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++)
            *(VCU *)(c + r * c_row + v * VL) = acc[r][v];
}

/* All of C, of at most nv vectors in a row. */
INLINE void N(pair_columns)(int nv, const Gemm *g)
{
    N(Work)  *w = g->work;
    const TE *a = g->a;
    (g->b_col == 1 ? N(pair_rows) : N(pair_lines))(w->b, g, nv);
    for (int64_t i = 0; i < g->m; i += N(PAIR_BLOCK)) {
        const int64_t rows = hlort_min(N(PAIR_BLOCK), g->m - i);
        TC           *c = (TC *)g->c + i * g->c_row;
        int64_t       r = 0;
        for (; r + N(PAIR_ROWS) <= rows; r += N(PAIR_ROWS), a += N(PAIR_ROWS) * g->a_row)
            N(pair_sums)(N(PAIR_ROWS), nv, a, g->a_row, w->b, g->k, w->sums + r * g->n, g->n);
        for (; r + 4 <= rows; r += 4, a += 4 * g->a_row)
            N(pair_sums)(4, nv, a, g->a_row, w->b, g->k, w->sums + r * g->n, g->n);
        for (; r < rows; r++, a += g->a_row)
            N(pair_sums)(1, nv, a, g->a_row, w->b, g->k, w->sums + r * g->n, g->n);
        if (g->epilogue)
            N(finish)(g, w->sums, g->n, i, 0, rows, g->n);
        for (int64_t q = 0; q < rows && g->c; q++)
            __builtin_memcpy(c + q * g->c_row, w->sums + q * g->n, (uint64_t)g->n * sizeof *c);
    }
}

APART void N(pair_one)(const Gemm *g)
{
    N(pair_columns)(1, g);
}

APART void N(pair_both)(const Gemm *g)
{
    N(pair_columns)(NV, g);
}

static void N(pairs)(const Gemm *g)
{
    if (g->n <= VL)
        N(pair_one)(g);
    else
        N(pair_both)(g);
}
