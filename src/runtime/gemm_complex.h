/* gemm_complex.h - the product of complex numbers, in tiles of real ones of twice as many rows and twice as many k:
 *
 *     | re |     | Ar  -Ai |   | Br |
 *     |    |  =  |         | * |    |
 *     | im |     | Ai   Ar |   | Bi |
 *
 * Included after gemm_tile.h, with N(x) for the names. A's element (i, p) becomes two by two words, B's element (p, j) one above the other. Without a
 * C of complex numbers there is no place for the sums, so this product has one. */

enum { N(MOST_ROWS) = MR / 2, N(MOST_K) = KC / 2, N(BLOCK) = MC / 2 };

typedef struct {
    TW b[KC * NC];
    TW a[MC * (KC + 16)];
    TC sums[MR * NV * VL];
} N(Work);
_Static_assert(sizeof(N(Work)) <= HLORT_TILES_BYTES, "work");

/* Loops of as many trips as a vector has lanes are vectors to a compiler. */
INLINE void N(put_a)(TW *restrict re, TW *restrict im, const TW *restrict from)
{
    const TW x = from[0], y = from[1];
    re[0] = x;
    re[1] = -y;
    im[0] = y;
    im[1] = x;
}

APART void N(pack_a)(TW *out, const TW *a, int64_t a_row, int64_t a_col, int64_t rows, int64_t k)
{
    for (int64_t i = 0; i < rows; i++) {
        const TW *from = a + 2 * i * a_row;
        TW       *re = out + 2 * i * K(LDA), *im = re + K(LDA);
        int64_t   p = 0;
        for (; p + VL <= k && a_col == 1; p += VL)
            for (int64_t q = p; q < p + VL; q++)
                N(put_a)(re + 2 * q, im + 2 * q, from + 2 * q);
        for (; p < k; p++)
            N(put_a)(re + 2 * p, im + 2 * p, from + 2 * p * a_col);
    }
}

INLINE void N(split)(TW *restrict re, TW *restrict im, const TW *restrict from)
{
    for (int64_t j = 0; j < VL; j++) {
        re[j] = from[2 * j];
        im[j] = from[2 * j + 1];
    }
}

/* Columns behind the last one are zeros. */
APART void N(pack_b)(TW *out, const TW *b, int64_t b_row, int64_t b_col, int64_t columns, int64_t k)
{
    TW few[2 * VL] = { 0 };
    if (columns < K(NR))
        __builtin_memset(out, 0, (uint64_t)(2 * k * K(NR)) * sizeof *out);
    for (int64_t p = 0; p < k && b_col == 1; p++, out += 2 * K(NR), b += 2 * b_row) {
        int64_t j = 0;
        for (; j + VL <= columns; j += VL)
            N(split)(out + j, out + K(NR) + j, b + 2 * j);
        if (j < columns) {
            __builtin_memcpy(few, b + 2 * j, (uint64_t)(2 * (columns - j)) * sizeof *b);
            N(split)(out + j, out + K(NR) + j, few);
        }
    }
    for (int64_t j = 0; j < columns && b_col != 1; j++, out++, b += 2 * b_col)
        for (int64_t p = 0; p < k; p++) {
            out[2 * p * K(NR)] = b[2 * p * b_row];
            out[(2 * p + 1) * K(NR)] = b[2 * p * b_row + 1];
        }
}

/* VL neighbours of C (+)= real and imaginary parts. */
INLINE void N(join)(TC *restrict to, const TC *restrict re, const TC *restrict im, int add)
{
    for (int64_t j = 0; j < VL; j++) {
        to[2 * j] = (add ? to[2 * j] : 0) + re[j];
        to[2 * j + 1] = (add ? to[2 * j + 1] : 0) + im[j];
    }
}

/* The sums of a tile to their place in C. */
INLINE void N(store)(TC *c, int64_t c_row, const TC *sums, int64_t rows, int64_t columns, int add)
{
    TC few[2 * VL];
    for (int64_t r = 0; r < rows; r++, c += 2 * c_row, sums += 2 * K(NR)) {
        int64_t j = 0;
        for (; j + VL <= columns && add; j += VL)
            N(join)(c + 2 * j, sums + j, sums + K(NR) + j, 1);
        for (; j + VL <= columns; j += VL)
            N(join)(c + 2 * j, sums + j, sums + K(NR) + j, 0);
        if (j == columns)
            continue;
        N(join)(few, sums + j, sums + K(NR) + j, 0);
        for (int64_t e = 0; e < 2 * (columns - j); e++)
            c[2 * j + e] = (add ? c[2 * j + e] : 0) + few[e];
    }
}

INLINE void N(fetch_c)(const TC *c, int64_t c_row, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j += 32 / (int64_t)sizeof *c)
            __builtin_prefetch(c + 2 * (r * c_row + j), 1);
}

/* One panel of columns from j on by the rows i0 to i1, which are packed; k from p on. */
INLINE void N(panel)(const Gemm *g, N(Work) *w, TW *b, int64_t i0, int64_t i1, int64_t j, int64_t columns, int64_t p, int64_t kc)
{
    const int64_t m = i1 - i0, groups = hlort_ceildiv(m, N(MOST_ROWS));
    K(Tile)       t = { .kc = 2 * kc, .a = w->a, .b = b, .c = w->sums, .c_row = K(NR) };
    int64_t       i = i0;
    for (int64_t q = 0; q < groups; q++) {
        const int64_t rows = m / groups + (q < m % groups);
        TC           *c = (TC *)g->c + 2 * (i * g->c_row + j);
        N(fetch_c)(c, g->c_row, rows, columns);
        K(kernels)[2 * rows][NV > 1 && columns <= VL ? K(NARROW) : K(PACKED)](&t);
        N(store)(c, g->c_row, w->sums, rows, columns, p > 0);
        if (g->epilogue && p + kc >= g->k) {
            hlort_tile done = { c, g->c_row, g->batch, g->row + i, g->column + j, rows, columns, 0, 0 };
            g->epilogue(g->context, &done);
        }
        i += rows;
        t.a += 2 * rows * K(LDA);
    }
}

static void N(gemm)(const Gemm *g)
{
    N(Work)      *w = g->work;
    const TW     *a = g->a, *b = g->b;
    const int64_t kb = hlort_even(g->k, N(MOST_K), 8), nb = hlort_even(g->n, NC, K(NR)), mb = hlort_even(g->m, N(BLOCK), 1);
    for (int64_t j0 = 0; j0 < g->n; j0 += nb)
        for (int64_t p = 0; p < g->k || p == 0; p += kb) {
            const int64_t kc = hlort_min(kb, g->k - p), j1 = hlort_min(g->n, j0 + nb);
            for (int64_t j = j0; j < j1; j += K(NR))
                N(pack_b)(w->b + (j - j0) * 2 * kc, b + 2 * (p * g->b_row + j * g->b_col), g->b_row, g->b_col, hlort_min(K(NR), j1 - j), kc);
            for (int64_t i = 0; i < g->m; i += mb) {
                const int64_t i1 = hlort_min(g->m, i + mb);
                N(pack_a)(w->a, a + 2 * (i * g->a_row + p * g->a_col), g->a_row, g->a_col, i1 - i, kc);
                for (int64_t j = j0; j < j1; j += K(NR))
                    N(panel)(g, w, w->b + (j - j0) * 2 * kc, i, i1, j, hlort_min(K(NR), j1 - j), p, kc);
            }
        }
}
#undef N
