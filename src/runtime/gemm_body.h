/* gemm_body.h - the tiled product, once for all element types and sets of instructions.
 *
 * Included after gemm_tile.h, with the names of the words that elements become when they are packed, and
 *
 *   N(x)                name of x for this type and set of instructions
 *   TE                  element in memory             G   elements in a word
 *   KC, MC, NC          words of k, rows and columns of a block
 *   FUSED               elements are words
 *   IN_PLACE            there are kernels that read B where it lies
 *   N(along)(const TE *)                   VW of VL * G elements that follow each other along k
 *   N(beside)(const TE *, ld)              VW: the words of VL columns, from G rows that are ld apart
 *   N(across)(VW *w, const TE *, ld)       NV vectors of them
 *   A_WORDS(w)                             what becomes of A's words when they are packed
 *   BEGUN                                  sums of a panel's columns begin at what N(begin)(TC *, const TW *panel, kc) says
 *
 * The plan, for C [m, n] = A [m, k] B [k, n]:
 *
 *   for each block of NC columns, for each block of KC words of k        B's block: packed, in the second cache
 *     for each block of MC rows
 *       for each group of up to MR rows: copy them                       in the first cache
 *         for each panel of NV * VL columns: a tile of accumulators
 *
 * B is packed as [panel][k][NV * VL] by the kernel of the first group, which reads it where it lies, multiplies, and stores what it has read.
 * A is packed as [row][k], which is a copy when rows lie along k. The rows of a block are divided evenly, so that no group is much shorter than others.
 * Where a group's rows begin or end with zeros, as masks make them, these are left out if the block of B is finite: the sums are what they would be.
 *
 * Nothing outside of the operands is read. */

/* ---- packing ---- */

#if VL == 2
#define LANES(F, s) F(0, s), F(1, s)
#elif VL == 4
#define LANES(F, s) F(0, s), F(1, s), F(2, s), F(3, s)
#elif VL == 8
#define LANES(F, s) F(0, s), F(1, s), F(2, s), F(3, s), F(4, s), F(5, s), F(6, s), F(7, s)
#elif VL == 16
#define LANES(F, s)                                                                                                                      \
    F(0, s), F(1, s), F(2, s), F(3, s), F(4, s), F(5, s), F(6, s), F(7, s), F(8, s), F(9, s), F(10, s), F(11, s), F(12, s), F(13, s),     \
        F(14, s), F(15, s)
#endif
#define LOW(l, s)  ((l) & (s) ? VL + (l) - (s) : (l))
#define HIGH(l, s) ((l) & (s) ? VL + (l) : (l) + (s))
/* Rows s apart exchange the blocks of s lanes that are on the wrong side of the diagonal. */
#define EXCHANGE(s)                                                             \
    UNROLL for (int i = 0; i < VL; i++)                                         \
        if (!(i & (s))) {                                                       \
            VW x = r[i], y = r[i + (s)];                                        \
            r[i] = __builtin_shufflevector(x, y, LANES(LOW, s));                \
            r[i + (s)] = __builtin_shufflevector(x, y, LANES(HIGH, s));         \
        }

/* r[i][j] becomes r[j][i]. */
INLINE void N(transpose)(VW r[VL])
{
#if VL > 8
    EXCHANGE(8)
#endif
#if VL > 4
    EXCHANGE(4)
#endif
#if VL > 2
    EXCHANGE(2)
#endif
    EXCHANGE(1)
}
#undef EXCHANGE

/* The words of `count` elements (at most VL * G) that lie `step` apart, zeros behind them. */
INLINE VW N(some)(const TE *from, int64_t step, int64_t count)
{
#if defined(HALF_512)
    if (step == 1) {
        TE             part[64 / sizeof(TE)] __attribute__((aligned(64)));
        const uint64_t bytes = (uint64_t)count * sizeof(TE), mask = bytes >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << bytes) - 1;
        SET(hlort_put_first)(part, from, mask);
        return N(along)(part);
    }
#endif
    TE few[VL * G] = { 0 };
    for (int64_t e = 0; e < count; e++)
        few[e] = from[e * step];
    return N(along)(few);
}

/* VL rows of words, `row` apart, of which `rows` are there; `count` elements along k. As columns. */
INLINE void N(load_columns)(VW r[VL], const TE *from, int64_t row, int64_t rows, int64_t count)
{
    if (rows >= VL && count >= VL * G) {
        UNROLL for (int i = 0; i < VL; i++)
            r[i] = N(along)(from + i * row);
    } else if (count >= VL * G) {
        for (int i = 0; i < VL; i++)
            r[i] = i < rows ? N(along)(from + i * row) : (VW){ 0 };
    } else {
        for (int i = 0; i < VL; i++)
            r[i] = i < rows ? N(some)(from + i * row, 1, hlort_min(count, VL * G)) : (VW){ 0 };
    }
    N(transpose)(r);
}

APART void N(pack_a_columns)(TW *out, const TE *a, int64_t a_col, int64_t rows, int64_t k);

/* `rows` rows of A, `k` elements of each, as [row][k / G]. */
APART void N(pack_a)(TW *out, const TE *a, int64_t a_row, int64_t a_col, int64_t rows, int64_t k)
{
    if (a_row == 1 && a_col != 1) {
        N(pack_a_columns)(out, a, a_col, rows, k);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        const TE *from = a + i * a_row;
        TW       *to = out + i * K(LDA);
        int64_t   p = 0;
        if (a_col == 1)
            for (; p + VL * G <= k; p += VL * G)
                *(VW *)(to + p / G) = A_WORDS(N(along)(from + p));
        for (; p < k; p += VL * G)
            *(VW *)(to + p / G) = A_WORDS(N(some)(from + p * a_col, a_col, hlort_min(VL * G, k - p)));
    }
}

/* VL words along k, at most k elements, of VL neighbours, of which `count` are there; G rows of them are a word. As rows of words. */
INLINE void N(load_rows)(VW r[VL], const TE *from, int64_t row, int64_t count, int64_t k)
{
    if (count >= VL && k >= VL * G) {
        UNROLL for (int q = 0; q < VL; q++)
            r[q] = N(beside)(from + q * G * row, row);
    } else {
        for (int64_t q = 0; q < VL; q++) {
            TE few[G][VL] = { 0 };
            for (int64_t g = 0; g < hlort_min(G, k - q * G); g++)
                __builtin_memcpy(few[g], from + (q * G + g) * row, (uint64_t)hlort_min(VL, count) * sizeof(TE));
            r[q] = N(beside)(few[0], VL);
        }
    }
    N(transpose)(r);
}

/* The same where A lies by columns: blocks of VL x VL words are transposed. */
APART void N(pack_a_columns)(TW *out, const TE *a, int64_t a_col, int64_t rows, int64_t k)
{
    for (int64_t p = 0; p < k; p += VL * G)
        for (int64_t i = 0; i < rows; i += VL) {
            VW r[VL];
            N(load_rows)(r, a + p * a_col + i, a_col, rows - i, k - p);
            for (int64_t q = 0; q < hlort_min(VL, rows - i); q++)
                *(VW *)(out + (i + q) * K(LDA) + p / G) = A_WORDS(r[q]);
        }
}

/* Rows of words whose whole panel lies within B: behind the last `columns` of a row come those of the next ones. */
INLINE int64_t N(rows_in_vectors)(int64_t row, int64_t columns, int64_t k)
{
    const int64_t behind = columns == K(NR) ? 0 : row > 0 ? hlort_ceildiv(K(NR) - columns, row) : k;
    return behind < k ? (k - behind) / G : 0;
}

/* All bytes of the words of the first columns. */
INLINE void N(keep_columns)(K(Bytes) keep[NV], int64_t columns)
{
    uint8_t bytes[NV * VECTOR_BYTES] = { 0 };
    __builtin_memset(bytes, 0xff, (uint64_t)columns * sizeof(TW));
    __builtin_memcpy(keep, bytes, sizeof bytes);
}

/* One panel of B, [k / G][NR]; `columns` of it are there, the others become 0. */
APART void N(pack_b)(TW *out, const TE *b, int64_t b_row, int64_t b_col, int64_t columns, int64_t k)
{
    const int64_t kc = hlort_ceildiv(k, G);
    if (b_row == 1 && b_col != 1) {
        for (int64_t j = 0; j < K(NR); j += VL)
            for (int64_t p = 0; p < kc; p += VL) {
                VW r[VL];
                N(load_columns)(r, b + j * b_col + p * G, b_col, columns - j, k - p * G);
                for (int64_t q = 0; q < hlort_min(VL, kc - p); q++)
                    *(VW *)(out + (p + q) * K(NR) + j) = r[q];
            }
        return;
    }
    const int64_t in_vectors = b_col == 1 ? N(rows_in_vectors)(b_row, columns, k) : 0;
    K(Bytes)      keep[NV];
    N(keep_columns)(keep, columns);
    for (int64_t p = 0; p < kc; p++) {
        VW        w[NV];
        TE        rows[G][K(NR)];
        const TE *from = b + p * G * b_row;
        if (p < in_vectors) {
            N(across)(w, from, b_row);
            UNROLL for (int v = 0; v < NV; v++)
                w[v] = (VW)((K(Bytes))w[v] & keep[v]);
        } else {
            __builtin_memset(rows, 0, sizeof rows);
            for (int64_t g = 0; g < hlort_min(G, k - p * G); g++)
                for (int64_t j = 0; j < columns; j++)
                    rows[g][j] = from[g * b_row + j * b_col];
            N(across)(w, &rows[0][0], K(NR));
        }
        UNROLL for (int v = 0; v < NV; v++)
            *(VW *)(out + p * K(NR) + v * VL) = w[v];
    }
}

enum { N(TOGETHER) = 256 / (K(NR) * (int)sizeof(TE)) > 1 ? 256 / (K(NR) * (int)sizeof(TE)) : 1 };

/* `panels` whole panels of B whose rows lie in memory, a row of all of them after the other: rows far apart are on pages of their own. */
APART void N(pack_panels)(TW *out, const TE *b, int64_t b_row, int64_t panels, int64_t k)
{
    const int64_t kc = hlort_ceildiv(k, G);
    for (int64_t p = 0; p < k / G; p++)
        for (int64_t q = 0; q < panels; q++) {
            VW w[NV];
            N(across)(w, b + p * G * b_row + q * K(NR), b_row);
            UNROLL for (int v = 0; v < NV; v++)
                *(VW *)(out + (q * kc + p) * K(NR) + v * VL) = w[v];
        }
    for (int64_t q = 0; q < panels && k % G; q++)
        N(pack_b)(out + (q * kc + k / G) * K(NR), b + k / G * G * b_row + q * K(NR), b_row, 1, K(NR), k % G);
}

#include "runtime/image_body.h"

/* ---- the blocks ---- */

/* A caller's working memory. */
typedef struct {
    TW b[KC * NC];
    TW a[MC * (KC + 16)];
    TC begin[BEGUN ? 2 * NC : VL]; /* of the panels of b */
    TC sums[MC * NC]; /* of products that have no C and more than one block of k */
    TC edge[MR * NV * VL];
    N(Windows) windows;
    int finite; /* whether the block of B is; -1: nobody has asked */
} N(Work);
_Static_assert(sizeof(N(Work)) <= HLORT_TILES_BYTES, "work");

typedef struct {
    const Gemm *g;
    N(Work)    *w;
    int64_t     i0, i1, j0, j1, p0, kc; /* rows, columns, words of k */
    int         first, last;            /* of the blocks of k */
    int         fresh;                  /* B's block is not packed yet */
    int64_t     from, end;              /* the rows that it is for */
    TW         *b;                      /* that block */
    TC         *begin;
} N(Block);

INLINE void N(finish)(const Gemm *g, TC *sums, int64_t stride, int64_t i, int64_t j, int64_t rows, int64_t columns)
{
    hlort_tile t = { sums, stride, g->batch, g->row + i, g->column + j, rows, columns, g->place + i * g->c_row + j, g->c_row };
    g->epilogue(g->context, &t);
}

/* Where element (i, j) of C is. */
INLINE TC *N(place)(const N(Block) *x, int64_t i, int64_t j)
{
    const Gemm *g = x->g;
    const int   by_pixels = g->image && !g->image->is_b;
    return (TC *)g->c + (by_pixels ? x->w->windows.rows[i - x->i0].y : i * g->c_row) + j;
}

/* Whether rows i .. i + rows - 1 of C are evenly apart, and how far. */
INLINE int N(is_even)(const N(Block) *x, int64_t i, int64_t rows, int64_t *c_row)
{
    const Gemm *g = x->g;
    *c_row = g->c_row;
    if (!g->image || g->image->is_b || rows < 2)
        return 1;
    const ImageRow *r = x->w->windows.rows + (i - x->i0);
    *c_row = r[1].y - r[0].y;
    for (int64_t k = 2; k < rows; k++)
        if (r[k].y - r[k - 1].y != *c_row)
            return 0;
    return 1;
}

/* n < VL elements. */
INLINE void N(copy_some)(TC *to, const TC *from, int64_t n)
{
#define SOME(s)                                                  \
    if (VL > (s) && (n & (s))) {                                 \
        __builtin_memcpy(to, from, (s) * sizeof *to);            \
        to += (s), from += (s);                                  \
    }
    SOME(8) SOME(4) SOME(2) SOME(1)
#undef SOME
}

/* n elements: of a tile's row, too few for a call. */
INLINE void N(copy_row)(TC *to, const TC *from, int64_t n)
{
    for (; n >= VL; n -= VL, to += VL, from += VL)
        *(VCU *)to = *(const VCU *)from;
    N(copy_some)(to, from, n);
}

/* Runs a kernel on the tile at (i, j). What does not fill its vectors, or is not evenly apart, goes through a whole tile aside. */
INLINE void N(at)(const N(Block) *x, K(Tile) *t, K(Kernel) *kernel, int64_t width, int64_t i, int64_t j, int64_t rows, int64_t columns)
{
    const Gemm *g = x->g;
    int         last = x->last && g->epilogue && !g->in_blocks;
    t->add = !x->first;
    if (!g->c) {
        int one = x->first && x->last && !g->in_blocks;
        t->c = one ? x->w->edge : x->w->sums + (i - x->i0) * NC + (j - x->j0);
        t->c_row = one ? (int64_t)K(NR) : (int64_t)NC;
        kernel(t);
        if (last)
            N(finish)(g, t->c, t->c_row, i, j, rows, columns);
        return;
    }
    if (N(is_even)(x, i, rows, &t->c_row) && columns == width) {
        t->c = N(place)(x, i, j);
        kernel(t);
        if (last)
            N(finish)(g, t->c, t->c_row, i, j, rows, columns);
        return;
    }
    t->c = x->w->edge;
    t->c_row = K(NR);
    if (t->add)
        for (int64_t r = 0; r < rows; r++)
            N(copy_row)(t->c + r * K(NR), N(place)(x, i + r, j), columns);
    kernel(t);
    if (last)
        N(finish)(g, t->c, K(NR), i, j, rows, columns);
    for (int64_t r = 0; r < rows; r++)
        N(copy_row)(N(place)(x, i + r, j), t->c + r * K(NR), columns);
}

/* ---- what comes next is fetched into the second cache while tiles are computed: rows that lie far apart, which no processor foresees ---- */

/* Of n pieces, `step` apart, of `size` elements those that fall to a tile which is the q-th of some. */
INLINE void N(foresee)(K(Tile) *t, const TE *from, int64_t step, int64_t n, int64_t size, int64_t q)
{
    const int64_t bytes = size * (int64_t)sizeof(TE), lines = hlort_ceildiv(bytes, 128), at = q * (lines > 0 && lines < t->kc ? t->kc / lines : 1);
    t->ahead = at < n ? (const char *)(from + at * step) : 0;
    t->ahead_bytes = bytes;
    t->ahead_step = step * (int64_t)sizeof(TE);
}

/* Rows of A that come after row i - 1 of the block: n of them. */
INLINE void N(foresee_rows)(const N(Block) *x, K(Tile) *t, int64_t i, int64_t n, int64_t q)
{
    const Gemm   *g = x->g;
    const int64_t kw = hlort_ceildiv(g->k, G), p = i < x->end ? x->p0 : x->p0 + x->kc < kw ? x->p0 + x->kc : 0, k = hlort_min(x->kc, kw - p) * G;
    const TE     *a = (const TE *)g->a + (i < x->end ? i : x->from) * g->a_row + p * G * g->a_col;
    if (g->a_col == 1)
        N(foresee)(t, a, g->a_row, n, k, q);
    else if (g->a_row == 1)
        N(foresee)(t, a, g->a_col, k, n, q);
}

/* The panels of B that are packed at column j, while a tile is computed that is the q-th before that. */
INLINE void N(foresee_panels)(const N(Block) *x, K(Tile) *t, int64_t j, int64_t panels, int64_t q)
{
    const Gemm   *g = x->g;
    const int64_t columns = hlort_min(panels * K(NR), x->j1 - j), k = hlort_min(x->kc * G, g->k - x->p0 * G);
    const TE     *b = (const TE *)g->b + x->p0 * G * g->b_row + j * g->b_col;
    if (g->b_col == 1)
        N(foresee)(t, b, g->b_row, k, columns, q);
    else if (g->b_row == 1)
        N(foresee)(t, b, g->b_col, columns, k, q);
}

/* Packs the panel at j, or has the kernel do so: its mode. */
INLINE int N(fresh_panel)(const N(Block) *x, K(Tile) *t, int64_t j, int64_t columns, int64_t k, int again)
{
    const Gemm   *g = x->g;
    const TE     *b = (const TE *)g->b + x->p0 * G * g->b_row + j * g->b_col;
    const int     lies = g->b_col == 1 && columns == K(NR);
    const int64_t together = lies && !IN_PLACE ? N(TOGETHER) : 1, turn = (j - x->j0) / K(NR) % together, next = j + (together - turn) * K(NR);
    const int     image = g->image && (g->image->is_b || !g->image->plain);
#if IN_PLACE
    if (!image && lies && k % G == 0) {
        t->from = b;
        t->from_row = g->b_row;
        t->from_next = j + 2 * K(NR) <= x->j1 ? K(NR) : 0;
        return again ? K(PACKING) : K(PLAIN);
    }
#else
    (void)again;
#endif
    if (image)
        N(pack_b_image)(t->b, g, &x->w->windows, j, columns, k);
    else if (!lies || IN_PLACE)
        N(pack_b)(t->b, b, g->b_row, g->b_col, columns, k);
    else if (turn == 0)
        N(pack_panels)(t->b, b, g->b_row, hlort_min(together, (x->j1 - j) / K(NR)), k);
    if (next < x->j1 && !g->image)
        N(foresee_panels)(x, t, next, together, turn);
#if BEGUN
    N(begin)(x->begin + (j - x->j0), t->b, x->kc);
#endif
    return K(PACKED);
}

/* ---- zeros ---- */

#if !BEGUN
#ifndef NOT_ZERO
#define NOT_ZERO(w)   ((w) != 0)
#define NOT_FINITE(w) ((w) - (w) != 0) /* of integers: never */
#endif

typedef uint64_t N(Bits) __attribute__((vector_size(VECTOR_BYTES)));

INLINE int N(any)(N(Bits) found)
{
    uint64_t all = 0, parts[VECTOR_BYTES / 8];
    __builtin_memcpy(parts, &found, sizeof parts);
    for (int e = 0; e < VECTOR_BYTES / 8; e++)
        all |= parts[e];
    return all != 0;
}

/* Whether one of packed rows has something other than zeros in the vector at a. */
INLINE int N(has_some)(const TW *a, int64_t rows)
{
    N(Bits) found = { 0 };
    for (int64_t r = 0; r < rows; r++)
        found |= (N(Bits))(NOT_ZERO(*(const VW *)(a + r * K(LDA))));
    return N(any)(found);
}

/* The words of packed rows that are before zeros only, and behind them, in whole vectors: behind the last word are zeros up to one. Most rows are told by their first and last ones. */
APART void N(span)(const TW *a, int64_t rows, int64_t kc, int64_t *from, int64_t *end)
{
    int64_t lo = 0, hi = hlort_ceildiv(kc, VL) * VL;
    while (lo < hi && !N(has_some)(a + lo, 1) && !N(has_some)(a + lo, rows))
        lo += VL;
    while (lo < hi && !N(has_some)(a + hi - VL, 1) && !N(has_some)(a + hi - VL, rows))
        hi -= VL;
    *from = lo;
    *end = hlort_min(hi, kc);
}

/* What is packed of B; asked once for a block. */
APART int N(is_finite)(const N(Block) *x)
{
    const int64_t words = hlort_ceildiv(x->j1 - x->j0, K(NR)) * K(NR) * x->kc;
    N(Bits)       found = { 0 };
    for (int64_t p = 0; p < words && x->w->finite < 0; p += VL) {
        const VW w = *(const VW *)(x->b + p);
        found |= (N(Bits))(NOT_FINITE(w));
    }
    if (x->w->finite < 0)
        x->w->finite = !N(any)(found);
    return x->w->finite;
}
#undef NOT_ZERO
#undef NOT_FINITE
#endif

/* A group of rows by all columns of the block: the rows stay in the first cache. */
INLINE void N(group)(const N(Block) *x, int64_t i, int64_t rows, int together)
{
    const Gemm   *g = x->g;
    const int64_t k = hlort_min(x->kc * G, g->k - x->p0 * G), next = i + rows;
    K(Tile)       t = { .kc = x->kc, .a = x->w->a + (i - x->i0) * K(LDA) };
    int64_t       from = 0, end = x->kc;
#if !BEGUN
    if (!(x->fresh && i == x->i0))
        N(span)(t.a, rows, x->kc, &from, &end);
    if (end - from < x->kc && !N(is_finite)(x))
        from = 0, end = x->kc;
#endif
    t.kc = end - from;
    t.a += from;
    for (int64_t j = x->j0, columns; j < x->j1; j += columns) {
        columns = hlort_min(K(NR), x->j1 - j);
        const int one = NV > 1 && columns <= VL;
        int       mode = K(PACKED);
        t.b = x->b + (j - x->j0) * x->kc + from * K(NR);
        t.begin = BEGUN ? x->begin + (j - x->j0) : 0;
        t.ahead = 0;
        if (x->fresh && i == x->i0)
            mode = N(fresh_panel)(x, &t, j, columns, k, next < x->end);
        if (!t.ahead && !g->image && (!together || next == x->i1))
            N(foresee_rows)(x, &t, next, together ? x->i1 - x->i0 : rows, x->fresh && mode == K(PACKED) ? 0 : (j - x->j0) / K(NR));
        N(at)(x, &t, K(kernels)[rows][one ? (int)K(NARROW) : mode], one ? VL : (int64_t)K(NR), i, j, rows, columns);
    }
}

static void N(block)(const N(Block) *x)
{
    const Gemm   *g = x->g;
    const TE     *a = (const TE *)g->a + x->i0 * g->a_row + x->p0 * G * g->a_col;
    const int64_t m = x->i1 - x->i0, groups = hlort_ceildiv(m, MR), k = hlort_min(x->kc * G, g->k - x->p0 * G);
    const int     windows = g->image && !(g->image->is_b && g->image->plain), together = windows || (g->a_row == 1 && g->a_col != 1);
    if (windows)
        N(pack_a_image)(x->w->a, g, &x->w->windows, x->i0, m, k);
    else if (together)
        N(pack_a)(x->w->a, a, g->a_row, g->a_col, m, k);
    for (int64_t q = 0, i = 0, rows; q < groups; q++, i += rows) {
        rows = m / groups + (q < m % groups);
        if (!together)
            N(pack_a)(x->w->a + i * K(LDA), a + i * g->a_row, g->a_row, g->a_col, rows, k);
        N(group)(x, x->i0 + i, rows, together);
    }
}

/* The epilogue of a block, in pieces whose rows are evenly apart. */
static void N(finish_block)(const N(Block) *x)
{
    const Gemm   *g = x->g;
    const int64_t columns = x->j1 - x->j0;
    if (!g->c) {
        N(finish)(g, x->w->sums, NC, x->i0, x->j0, x->i1 - x->i0, columns);
        return;
    }
    for (int64_t i = x->i0, n, c_row; i < x->i1; i += n) {
        for (n = x->i1 - i; !N(is_even)(x, i, n, &c_row);)
            n = n > 2 * MR ? MR : n - 1;
        N(finish)(g, N(place)(x, i, x->j0), c_row, i, x->j0, n, columns);
    }
}

/* ---- a B that is packed once: [block of k][panel][k][NR], behind that, for each block of k, what sums of columns begin at ---- */

/* Panels of the columns from j on, counted in all of B, of the block of k at p0. */
INLINE TW *N(packed)(const Gemm *g, int64_t p0, int64_t kc, int64_t j)
{
    return (TW *)g->packed + p0 * g->packed_columns + j * kc;
}

INLINE TC *N(packed_begin)(const Gemm *g, int64_t p0, int64_t kb, int64_t j)
{
    return (TC *)((TW *)g->packed + hlort_ceildiv(g->k, G) * g->packed_columns) + p0 / kb * g->packed_columns + j;
}

static void N(pack)(const Gemm *g)
{
    N(Work)      *w = g->work;
    const int64_t kw = hlort_ceildiv(g->k, G), kb = hlort_even(kw, KC, 16), all = g->n / K(NR), panels = g->image || g->b_col != 1 ? 0 : all;
    for (int64_t p0 = 0; p0 < kw; p0 += kb) {
        const int64_t kc = hlort_min(kb, kw - p0), k = hlort_min(kc * G, g->k - p0 * G);
        const TE     *b = (const TE *)g->b + p0 * G * g->b_row;
        if (g->image)
            w->windows.n_runs = image_runs(g->image, p0 * G, k, w->windows.runs);
        for (int64_t q = 0; q < panels; q += N(TOGETHER))
            N(pack_panels)(N(packed)(g, p0, kc, g->column + q * K(NR)), b + q * K(NR), g->b_row, hlort_min(N(TOGETHER), panels - q), k);
        for (int64_t j = panels * K(NR); j < g->n; j += K(NR)) {
            const int64_t columns = hlort_min(K(NR), g->n - j);
            TW           *to = N(packed)(g, p0, kc, g->column + j);
            if (g->image && !g->image->plain)
                N(pack_b_image)(to, g, &w->windows, j, columns, k);
            else
                N(pack_b)(to, b + j * g->b_col, g->b_row, g->b_col, columns, k);
        }
#if BEGUN
        for (int64_t j = 0; j < g->n; j += K(NR))
            N(begin)(N(packed_begin)(g, p0, kb, g->column + j), N(packed)(g, p0, kc, g->column + j), kc);
#endif
    }
}
_Static_assert(HLORT_PACKED_COLUMNS % K(NR) == 0, "panels of parts");

static void N(tiles)(const Gemm *g)
{
    enum { LEAST_COLUMNS = 3 * K(NR) };
    const int64_t kw = hlort_ceildiv(g->k, G), kb = hlort_even(kw, KC, 16), mb = hlort_even(g->m, MC, MR);
    /* Without a C the sums of some rows are finished before the next ones: B is packed for them again, or all of k stays packed if that leaves columns enough. */
    const int64_t far = g->c || kw <= kb ? g->m : mb;
    const int     whole = !g->packed && far < g->m && kw * LEAST_COLUMNS <= KC * NC;
    const int64_t nb = hlort_even(g->n, whole ? KC * NC / kw / K(NR) * K(NR) : NC, K(NR));
    N(Block)      x = { .g = g, .w = g->work };
    for (x.j0 = 0; x.j0 < g->n; x.j0 = x.j1) {
        x.j1 = hlort_min(g->n, x.j0 + nb);
        for (int64_t from = 0; from < g->m; from += far)
            for (x.p0 = 0; x.p0 < kw || x.p0 == 0; x.p0 += kb) {
                x.kc = hlort_min(kb, kw - x.p0);
                x.w->finite = -1;
                x.first = x.p0 == 0;
                x.last = x.p0 + kb >= kw;
                x.fresh = !g->packed && (!whole || from == 0);
                x.b = g->packed ? N(packed)(g, x.p0, x.kc, g->column + x.j0) : x.w->b + (whole ? x.p0 * nb : 0);
                x.begin = g->packed ? N(packed_begin)(g, x.p0, kb, g->column + x.j0) : x.w->begin + (whole && BEGUN ? x.p0 / kb * nb : 0);
                if (g->image)
                    x.w->windows.n_runs = image_runs(g->image, x.p0 * G, hlort_min(x.kc * G, g->k - x.p0 * G), x.w->windows.runs);
                for (x.i0 = from; x.i0 < hlort_min(g->m, from + far); x.i0 = x.i1) {
                    x.i1 = hlort_min(g->m, x.i0 + mb);
                    x.from = whole ? 0 : from;
                    x.end = whole ? g->m : hlort_min(g->m, from + far);
                    N(block)(&x);
                    x.fresh = 0;
                    if (x.last && g->epilogue && g->in_blocks)
                        N(finish_block)(&x);
                }
            }
    }
}
