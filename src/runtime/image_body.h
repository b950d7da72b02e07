/* image_body.h - packing of the windows of an image, and of a kernel whose columns are not evenly apart, once for all element types and sets of instructions.
 *
 * Included by gemm_body.h, with its names. The image is A, its pixels are rows, or B, its pixels are columns. What falls beside the image is 0.
 *
 * Where elements are words, rows are packed in place; else as elements first, and then all of them become words. A vector more than a run is written behind it,
 * which is the next run's or free. */

enum { N(VB) = VECTOR_BYTES / (int)sizeof(TE) };

typedef struct {
    int64_t  n_runs;
    ImageRun runs[KC * G];
    ImageRow rows[MC > NV * VL ? MC : NV * VL];
    TE       line[KC * G + VL * G + VECTOR_BYTES]; /* a row */
    TE       panel[FUSED ? 1 : KC * G * NV * VL];  /* of B */
} N(Windows);

INLINE void N(zero)(TE *to, int64_t n)
{
    for (int64_t q = 0; q < n; q += N(VB))
        __builtin_memset(to + q, 0, VECTOR_BYTES);
}

/* n elements, `step` apart. Nothing from `end` on is read. */
INLINE void N(copy)(TE *to, const TE *from, int64_t step, int64_t n, const TE *end)
{
    int64_t q = 0;
    if (step == 1 && end - from >= n + N(VB))
        for (; q < n; q += N(VB))
            __builtin_memcpy(to + q, from + q, VECTOR_BYTES);
    for (; q < n; q++)
        to[q] = from[q * step];
}

/* k elements of a row as words. */
INLINE void N(row_words)(TW *to, TE *line, int64_t k)
{
    for (int64_t p = k; p < hlort_ceildiv(k, G) * G; p++)
        line[p] = 0;
    for (int64_t p = 0; p < k; p += VL * G)
        *(VW *)(to + p / G) = A_WORDS(N(along)(line + p));
}

/* A row whose whole window is in the image, runs of neighbours. */
INLINE void N(pack_inside)(TE *line, const TE *x, const ImageRun *runs, int64_t n, const TE *end)
{
    for (int64_t r = 0; r < n; r++)
        N(copy)(line + runs[r].k, x + runs[r].x, 1, runs[r].length, end);
}

APART void N(pack_window)(TE *line, const Image *im, const TE *x, const ImageRow *row, const ImageRun *runs, int64_t n)
{
    if (im->x_step == 1 && image_has_window(im, row)) {
        N(pack_inside)(line, x + row->x, runs, n, im->x_end);
        return;
    }
    for (int64_t r = 0; r < n; r++) {
        const ImageRun *run = &runs[r];
        int64_t         low, high;
        image_inside(im, row, run, &low, &high);
        TE *to = line + run->k;
        N(zero)(to, low);
        N(copy)(to + low, x + row->x + run->x + low * im->x_step, im->x_step, high - low, im->x_end);
        if (high < run->length)
            N(zero)(to + high, run->length - high);
    }
}

/* Rows that are neighbours in the image, VL at a time: blocks of VL x VL are transposed. Those that lie beside it in part go element by element. */
#if G == 1
INLINE VW N(partly)(const Image *im, const TE *x, const ImageRow *rows, const ImageRun *run, int64_t e)
{
    TE few[VL];
    UNROLL for (int i = 0; i < VL; i++) {
        int64_t low, high;
        image_inside(im, &rows[i], run, &low, &high);
        few[i] = e >= low && e < high ? x[rows[i].x + run->x + e * im->x_step] : 0;
    }
    return N(along)(few);
}

APART void N(pack_neighbours)(TW *out, const Image *im, const TE *x, const ImageRow *rows, const ImageRun *runs, int64_t n)
{
    for (int64_t q = 0; q < n; q++) {
        const ImageRun *run = &runs[q];
        const TE       *from = x + rows->x + run->x;
        int64_t         low, high, first, last;
        image_inside(im, &rows[0], run, &low, &high);
        image_inside(im, &rows[VL - 1], run, &first, &last);
        first = first > low ? first : low;
        last = hlort_min(last, high);
        for (int64_t e = 0; e < run->length; e += VL) {
            VW r[VL];
            for (int64_t i = 0; i < VL; i++)
                r[i] = e + i >= run->length           ? (VW){ 0 }
                       : e + i >= first && e + i < last ? N(along)(from + (e + i) * im->x_step)
                                                        : N(partly)(im, x, rows, run, e + i);
            N(transpose)(r);
            UNROLL for (int i = 0; i < VL; i++)
                *(VWU *)(out + i * K(LDA) + run->k + e) = r[i];
        }
    }
}

INLINE int N(are_neighbours)(const Image *im, const ImageRow *r)
{
    for (int i = 1; i < VL; i++)
        if (r[i].x != r[0].x + i)
            return 0;
    for (int64_t d = 0; d + 1 < im->n; d++)
        if (r[0].c[d] != r[VL - 1].c[d])
            return 0;
    return im->x_step != 1;
}
#endif

INLINE void N(pack_pixels)(TW *out, const Gemm *g, N(Windows) *w, int64_t rows, int64_t k)
{
    const Image *im = g->image;
    for (int64_t i = 0; i < rows; i++) {
        TW *to = out + i * K(LDA);
#if G == 1
        if (rows - i >= VL && N(are_neighbours)(im, w->rows + i)) {
            N(pack_neighbours)(to, im, g->a, w->rows + i, w->runs, w->n_runs);
            i += VL - 1;
            continue;
        }
#endif
        TE *line = FUSED ? (TE *)(void *)to : w->line;
        N(pack_window)(line, im, g->a, w->rows + i, w->runs, w->n_runs);
        if (!FUSED)
            N(row_words)(to, line, k);
    }
}

/* `rows` rows of A from row i on, of the block's columns: the image's, or the kernel's. */
static void N(pack_a_image)(TW *out, const Gemm *g, N(Windows) *w, int64_t i, int64_t rows, int64_t k)
{
    if (!g->image->is_b) {
        image_rows(g->image, g->row + i, rows, w->rows);
        N(pack_pixels)(out, g, w, rows, k);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        const TE *from = (const TE *)g->a + (i + r) * g->a_row;
        TE       *line = FUSED ? (TE *)(void *)(out + r * K(LDA)) : w->line;
        for (int64_t q = 0; q < w->n_runs; q++)
            N(copy)(line + w->runs[q].k, from + w->runs[q].w, g->image->w_step, w->runs[q].length, from);
        if (!FUSED)
            N(row_words)(out + r * K(LDA), line, k);
    }
}

/* ---- B ---- */

/* n neighbours, at most a panel's row. */
INLINE void N(copy_few)(TE *to, const TE *from, int64_t n)
{
    enum { HALF = NV * VL / 2, QUARTER = NV * VL / 4 };
    if (n == K(NR)) {
        __builtin_memcpy(to, from, sizeof(TE) * K(NR));
    } else if (n >= HALF) {
        __builtin_memcpy(to, from, sizeof(TE) * HALF);
        __builtin_memcpy(to + n - HALF, from + n - HALF, sizeof(TE) * HALF);
    } else if (n >= QUARTER) {
        __builtin_memcpy(to, from, sizeof(TE) * QUARTER);
        __builtin_memcpy(to + n - QUARTER, from + n - QUARTER, sizeof(TE) * QUARTER);
    } else {
        for (int64_t q = 0; q < n; q++)
            to[q] = from[q];
    }
}

INLINE void N(zero_few)(TE *to, int64_t n)
{
    for (int64_t q = 0; q < n; q++)
        to[q] = 0;
}

/* Columns of a panel that are on one line of pixels, which begins at coordinate c: one row of the panel. */
INLINE void N(pack_line)(TE *to, const ImageDim *line, const TE *x, int64_t c, int64_t n)
{
    const int64_t distance = line->step * line->x;
    const int     all = !line->checked || (c >= 0 && c + (n - 1) * line->step < line->size);
    if (distance == 1 && all) {
        N(copy_few)(to, x, n);
    } else if (distance == 1 && line->step == 1) {
        const int64_t low = c >= 0 ? 0 : hlort_min(-c, n), room = hlort_min(line->size - c, n), high = room > low ? room : low;
        N(zero_few)(to, low);
        N(copy_few)(to + low, x + low, high - low);
        N(zero_few)(to + high, n - high);
    } else if (!all) {
        for (int64_t q = 0; q < n; q++, c += line->step)
            to[q] = c >= 0 && c < line->size ? x[q * distance] : 0;
    } else {
        for (int64_t q = 0; q < n; q++)
            to[q] = x[q * distance];
    }
}

/* Whether the line that element e of a run reads is in the image. */
INLINE int N(has_line)(const Image *im, const ImageRow *row, const ImageRun *run, int64_t along, int64_t e)
{
    int inside = 1;
    for (int64_t d = 0; d < im->n - 1; d++) {
        const int64_t at = row->c[d] + run->c[d] + (d == along ? e * im->d[d].dilation : 0);
        inside &= !im->d[d].checked || (at >= 0 && at < im->d[d].size);
    }
    return inside;
}

/* All of the block's columns for a piece of a line, n pixels from `row` on. */
APART void N(pack_piece)(TE *panel, const Image *im, const TE *x, const ImageRow *row, int64_t n, const ImageRun *runs, int64_t n_runs)
{
    const int64_t  last = im->n - 1, along = im->axis[im->axes - 1], step = im->x_step;
    const ImageDim line = im->d[last]; /* a copy: what is stored is nothing of it */
    const int64_t  next = last == along ? line.dilation : 0;
    for (int64_t r = 0; r < n_runs; r++) {
        const ImageRun *run = &runs[r];
        const int64_t   length = run->length;
        const TE       *from = x + row->x + run->x;
        TE             *to = panel + run->k * K(NR);
        int64_t         c = row->c[last] + run->c[last];
        int             inside = N(has_line)(im, row, run, along, 0);
        for (int64_t e = 0; e < length; e++, to += K(NR), from += step, c += next) {
            if (along < last && e > 0)
                inside = N(has_line)(im, row, run, along, e);
            if (inside)
                N(pack_line)(to, &line, from, c, n);
            else
                N(zero_few)(to, n);
        }
    }
}

INLINE void N(pack_image_panel)(TE *panel, const Gemm *g, N(Windows) *w, int64_t j, int64_t columns, int64_t k)
{
    const Image *im = g->image;
    image_rows(im, g->column + j, columns, w->rows);
    if (columns < K(NR))
        __builtin_memset(panel, 0, (uint64_t)k * K(NR) * sizeof(TE));
    for (int64_t q = 0, n; q < columns; q += n) {
        for (n = 1; q + n < columns && w->rows[q + n].c[im->n - 1] != im->d[im->n - 1].first; n++)
            ;
        N(pack_piece)(panel + q, im, g->b, w->rows + q, n, w->runs, w->n_runs);
    }
}

INLINE void N(pack_kernel_panel)(TE *panel, const Gemm *g, const N(Windows) *w, int64_t j, int64_t columns)
{
    for (int64_t r = 0; r < w->n_runs; r++) {
        const ImageRun *run = &w->runs[r];
        const TE       *from = (const TE *)g->b + j * g->b_col + run->w;
        for (int64_t e = 0; e < run->length; e++, from += g->image->w_step)
            for (int64_t q = 0; q < K(NR); q++)
                panel[(run->k + e) * K(NR) + q] = q < columns ? from[q * g->b_col] : 0;
    }
}

/* Pixels that lie apart in the image while what their windows cover along a run are neighbours: VL pixels at a time, blocks of VL x VL are transposed. */
#if G == 1
INLINE int N(is_apart)(const Image *im)
{
    const ImageDim *line = &im->d[im->n - 1];
    const int64_t   along = im->axis[im->axes - 1], length = along == IMAGE_FEATURES ? im->in : im->d[along].window;
    return im->x_step == 1 && line->step * line->x != 1 && length >= VL;
}

/* One element of a run for up to VL pixels, of which pixel i has those from low[i] to high[i] - 1. */
INLINE void N(pack_element)(TW *to, const TE *x, const ImageRow *rows, int64_t columns, const int64_t *low, const int64_t *high, int64_t e)
{
    for (int64_t i = 0; i < columns; i++)
        to[i] = e >= low[i] && e < high[i] ? N(word)(x + rows[i].x + e) : (TW)0;
}

/* The last block overlaps the one before. */
APART void N(pack_apart)(TW *out, const Image *im, const TE *x, const ImageRow *rows, int64_t columns, const ImageRun *run)
{
    int64_t low[VL], high[VL], first = 0, last = run->length;
    x += run->x;
    out += run->k * K(NR);
    for (int64_t i = 0; i < columns; i++) {
        image_inside(im, &rows[i], run, &low[i], &high[i]);
        first = hlort_max(first, low[i]);
        last = hlort_min(last, high[i]);
    }
    if (columns < VL || last - first < VL)
        first = last = run->length;
    for (int64_t e = first; e < last; e = last - e > VL && last - e < 2 * VL ? last - VL : e + VL) {
        VW r[VL];
        UNROLL for (int i = 0; i < VL; i++)
            r[i] = N(along)(x + rows[i].x + e);
        N(transpose)(r);
        UNROLL for (int i = 0; i < VL; i++)
            *(VW *)(out + (e + i) * K(NR)) = r[i];
    }
    for (int64_t e = 0; e < first; e++)
        N(pack_element)(out + e * K(NR), x, rows, columns, low, high, e);
    for (int64_t e = last; e < run->length; e++)
        N(pack_element)(out + e * K(NR), x, rows, columns, low, high, e);
}

INLINE void N(pack_apart_panel)(TW *out, const Gemm *g, N(Windows) *w, int64_t j, int64_t columns, int64_t k)
{
    image_rows(g->image, g->column + j, columns, w->rows);
    if (columns < K(NR))
        __builtin_memset(out, 0, (uint64_t)k * K(NR) * sizeof(TW));
    for (int64_t q = 0; q < columns; q += VL)
        for (int64_t r = 0; r < w->n_runs; r++)
            N(pack_apart)(out + q, g->image, g->b, w->rows + q, hlort_min(VL, columns - q), &w->runs[r]);
}
#endif

/* A panel of the block's columns: of the kernel, or of the image, whose columns then are pixels. */
static void N(pack_b_image)(TW *out, const Gemm *g, N(Windows) *w, int64_t j, int64_t columns, int64_t k)
{
    TE *panel = FUSED ? (TE *)(void *)out : w->panel;
#if G == 1
    if (g->image->is_b && N(is_apart)(g->image)) {
        N(pack_apart_panel)(out, g, w, j, columns, k);
        return;
    }
#endif
    if (g->image->is_b) {
        N(pack_image_panel)(panel, g, w, j, columns, k);
    } else if (G == 1) {
        for (int64_t r = 0; r < w->n_runs; r++)
            N(pack_b)(out + w->runs[r].k * K(NR), (const TE *)g->b + j * g->b_col + w->runs[r].w, g->image->w_step, g->b_col, columns, w->runs[r].length);
        return;
    } else {
        N(pack_kernel_panel)(panel, g, w, j, columns);
    }
    if (FUSED)
        return;
    if (k % G)
        __builtin_memset(panel + k * K(NR), 0, sizeof(TE) * K(NR));
    for (int64_t p = 0; p < hlort_ceildiv(k, G); p++) {
        VW words[NV];
        N(across)(words, panel + p * G * K(NR), K(NR));
        UNROLL for (int v = 0; v < NV; v++)
            *(VW *)(out + p * K(NR) + v * VL) = words[v];
    }
}
