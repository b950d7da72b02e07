/* winograd_body.h - a block of tiles by a block of features (winograd.h), for sums of one set of instructions.
 *
 * Included after gemm_body.h, with its names. For each block of k, which is some features read at one tap of the other dimensions:
 *
 *     U [tile][point, k]        what becomes of pixels: four points in a row of A, as its kernels want it
 *     V [point][panel][k][NR]   what becomes of taps: panels of B
 *     M [tile][point, feature]  += U V, point by point
 *
 * All three lie in the second cache. Features are lanes, in the image and in the kernel: where they are no neighbours there, blocks of them are transposed on the way. */

enum {
    N(WK) = KC / 4,
    N(WF) = 64 / K(NR) * K(NR),
    N(U_STEP) = WINOGRAD_TILES * K(LDA), /* four points */
    N(V_STEP) = N(WK) * N(WF) + 16,      /* points that are a power of two apart would share their place in the cache */
    N(M_FEW) = 4 * N(WF) + 16,
    N(M_ALL) = 16 * N(WF) + 16,
    N(LINE) = 2 * WINOGRAD_RUN + 2,      /* pixels that a run meets */
    N(CHUNK) = 16                        /* features read of which taps are transposed together */
};

typedef struct {
    TW u[4 * N(U_STEP)];
    TW v[16 * N(V_STEP)];
    TC m[4 * WINOGRAD_TILES * N(M_FEW)];
    TW stage[4 * N(LINE) * VL];
    TW zero[N(WK) + VL];
    TC sink[N(WF) + VL];
} N(Points);
_Static_assert(sizeof(N(Points)) <= HLORT_WORK_BYTES && 9 * N(CHUNK) <= 4 * N(LINE) && N(M_ALL) <= 4 * N(M_FEW), "work");

/* ---- the image ---- */

INLINE void N(image_points)(VW b[4], VW d0, VW d1, VW d2, VW d3)
{
    b[0] = d0 - d2;
    b[1] = d1 + d2;
    b[2] = d2 - d1;
    b[3] = d1 - d3;
}

/* A vector of features of a tile: its pixels, line after line; `count` of the features are there where it says so. */
INLINE void N(image_vector)(int two, const TE *const *pixels, int64_t at, int64_t count, TW *to, int64_t slot)
{
    const int lines = two ? 4 : 1;
    VW        t[4][4], b[4];
    UNROLL for (int j = 0; j < 4; j++) {
        VW d[4];
        UNROLL for (int i = 0; i < lines; i++)
            d[i] = count < VL ? N(some)(pixels[4 * i + j] + at, 1, count) : N(along)(pixels[4 * i + j] + at);
        if (two)
            N(image_points)(b, d[0], d[1], d[2], d[3]);
        UNROLL for (int i = 0; i < lines; i++)
            t[i][j] = two ? b[i] : d[i];
    }
    UNROLL for (int i = 0; i < lines; i++) {
        N(image_points)(b, t[i][0], t[i][1], t[i][2], t[i][3]);
        UNROLL for (int j = 0; j < 4; j++)
            *(VW *)(to + i * N(U_STEP) + j * slot) = b[j];
    }
}

/* k features of a tile. What is read behind them is not used, but it has to be there. */
INLINE void N(image_tile)(int two, const TE *const *pixels, int64_t k, int at_end, TW *to, int64_t slot)
{
    int64_t c = 0;
    for (; c + (at_end ? VL : 1) <= k; c += VL)
        N(image_vector)(two, pixels, c, VL, to + c, slot);
    if (c < k)
        N(image_vector)(two, pixels, c, k - c, to + c, slot);
}

/* n pixels of a line from coordinate `first` on, a vector of features each; line: where coordinate 0 is, or NULL. */
INLINE void N(stage_line)(TW *to, const Winograd *g, const TE *line, int64_t first, int64_t n, int64_t features)
{
    const int64_t size = g->v->spatial[g->d[1]].in, step = g->v->spatial[g->d[1]].x, x_in = g->v->x_in;
    const int64_t low = !line ? n : first < 0 ? hlort_min(-first, n) : 0, room = hlort_min(n, size - first), high = room > low ? room : low;
    for (int64_t p = 0; p < n; p++)
        if (p < low || p >= high)
            *(VW *)(to + p * VL) = (VW){ 0 };
    for (int64_t p = low; p < high; p += VL) {
        const TE *from = line + (first + p) * step;
        VW        r[VL];
        if (step == 1)
            N(load_columns)(r, from, x_in, features, g->x_end - from >= (features - 1) * x_in + VL ? VL : high - p);
        for (int64_t q = 0; q < hlort_min(VL, high - p); q++)
            *(VW *)(to + (p + q) * VL) = step == 1 ? r[q] : N(some)(from + q * step, x_in, features);
    }
}

typedef struct {
    const TE *line[4]; /* where coordinate 0 of each is, of the block's first feature; NULL beside the image */
    int64_t   first;   /* coordinate along it */
} N(Lines);

/* Of a run, at tap `tap` of the other dimensions. */
static N(Lines) N(find_lines)(const WinogradBlock *x, const WinogradRun *run, int64_t tap, int64_t k)
{
    const Winograd   *g = x->g;
    const hlort_conv *v = g->v;
    N(Lines)          l = { .first = 2 * run->column - v->spatial[g->d[1]].pad };
    int64_t           at = x->group * v->x_group + k * v->x_in, image = run->image;
    int               inside = 1;
    for (int64_t e = g->n_outer - 1; e >= 0; e--) {
        const int64_t d = g->outer[e], o = image % v->spatial[d].out, t = tap % v->spatial[d].window;
        const int64_t c = o * v->spatial[d].stride + t * v->spatial[d].window_dilation - v->spatial[d].pad;
        inside &= c >= 0 && c < v->spatial[d].in;
        at += c * v->spatial[d].x;
        image /= v->spatial[d].out;
        tap /= v->spatial[d].window;
    }
    at += image * v->x_batch;
    for (int64_t i = 0; i < (g->n == 2 ? 4 : 1); i++) {
        const int64_t c = g->n == 2 ? 2 * run->row - v->spatial[g->d[0]].pad + i : 0;
        const int     here = inside && (g->n == 1 || (c >= 0 && c < v->spatial[g->d[0]].in));
        l.line[i] = here ? g->x + at + (g->n == 2 ? c * v->spatial[g->d[0]].x : 0) : 0;
    }
    return l;
}

/* Features that are neighbours are read where they lie. */
INLINE void N(image_in_place)(int two, const Winograd *g, const N(Lines) *l, const WinogradRun *run, N(Points) *w, int64_t k, TW *to, int64_t slot)
{
    const int64_t size = g->v->spatial[g->d[1]].in, step = g->v->spatial[g->d[1]].x;
    for (int64_t t = 0; t < run->n; t++) {
        const TE *pixels[16];
        int       at_end = 0;
        for (int i = 0; i < (two ? 4 : 1); i++)
            for (int j = 0; j < 4; j++) {
                const int64_t c = l->first + 2 * t + j;
                const int     here = l->line[i] && c >= 0 && c < size;
                pixels[4 * i + j] = here ? l->line[i] + c * step : w->zero;
                at_end |= here && g->x_end - pixels[4 * i + j] < k + VL;
            }
        N(image_tile)(two, pixels, k, at_end, to + t * K(LDA), slot);
    }
}

INLINE void N(image_staged)(int two, const Winograd *g, const N(Lines) *l, const WinogradRun *run, N(Points) *w, int64_t k, TW *to, int64_t slot)
{
    for (int64_t c = 0; c < k; c += VL) {
        for (int i = 0; i < (two ? 4 : 1); i++)
            N(stage_line)(w->stage + i * N(LINE) * VL, g, l->line[i] ? l->line[i] + c * g->v->x_in : 0, l->first, 2 * run->n + 2, hlort_min(VL, k - c));
        for (int64_t t = 0; t < run->n; t++) {
            const TE *pixels[16];
            for (int i = 0; i < (two ? 4 : 1); i++)
                for (int j = 0; j < 4; j++)
                    pixels[4 * i + j] = w->stage + (i * N(LINE) + 2 * t + j) * VL;
            N(image_vector)(two, pixels, 0, VL, to + t * K(LDA) + c, slot);
        }
    }
}

INLINE void N(image_block)(int two, const WinogradBlock *x, int64_t tap, int64_t at, int64_t k, int64_t slot)
{
    N(Points) *w = x->work;
    TW        *to = w->u;
    for (int64_t r = 0; r < x->n_runs; r++) {
        const N(Lines) l = N(find_lines)(x, &x->runs[r], tap, at);
        if (x->g->v->x_in == 1)
            N(image_in_place)(two, x->g, &l, &x->runs[r], w, k, to, slot);
        else
            N(image_staged)(two, x->g, &l, &x->runs[r], w, k, to, slot);
        to += x->runs[r].n * K(LDA);
    }
}

/* ---- the kernel ---- */

INLINE void N(kernel_points)(VW b[4], VW g0, VW g1, VW g2)
{
    const VW half = (g0 + g2) * 0.5f;
    b[0] = g0;
    b[1] = half + g1 * 0.5f;
    b[2] = half - g1 * 0.5f;
    b[3] = g2;
}

/* Taps of a vector of features made, by, by_y and by_x apart. */
INLINE void N(kernel_vector)(int two, const TE *from, int64_t by_y, int64_t by_x, TW *to)
{
    const int lines = two ? 3 : 1, four = two ? 4 : 1;
    VW        t[4][3], b[4];
    UNROLL for (int j = 0; j < 3; j++) {
        VW g[3];
        UNROLL for (int i = 0; i < lines; i++)
            g[i] = *(const VWU *)(from + i * by_y + j * by_x);
        if (two)
            N(kernel_points)(b, g[0], g[1], g[2]);
        UNROLL for (int i = 0; i < four; i++)
            t[i][j] = two ? b[i] : g[i];
    }
    UNROLL for (int i = 0; i < four; i++) {
        N(kernel_points)(b, t[i][0], t[i][1], t[i][2]);
        UNROLL for (int j = 0; j < 4; j++)
            *(VW *)(to + (4 * i + j) * N(V_STEP)) = b[j];
    }
}

typedef struct {
    int64_t count, by, staged; /* elements apart; vectors apart in what is staged */
    int     backward;
} N(Axis);

/* Brings `features` features made of some features read and their taps side by side, in the order of memory. axes: those of memory, in any order; returns the first. */
static const TE *N(stage_kernel)(TW *to, const Winograd *g, const TE *from, N(Axis) *axes[3], int64_t features)
{
    const int64_t w_out = g->v->w_out;
    int64_t       run = 1, merged = 0, first = 0, all = 1;
    for (int k = 0; k < 3; k++) {
        axes[k]->backward = axes[k]->by < 0;
        from += axes[k]->backward ? (axes[k]->count - 1) * axes[k]->by : 0;
        axes[k]->by = axes[k]->count == 1 ? 0 : axes[k]->backward ? -axes[k]->by : axes[k]->by;
    }
    for (int k = 1; k < 3; k++)
        for (int j = k; j > 0 && axes[j]->by < axes[j - 1]->by; j--) {
            N(Axis) *a = axes[j];
            axes[j] = axes[j - 1];
            axes[j - 1] = a;
        }
    for (int k = 0; k < 3; k++) {
        axes[k]->staged = all;
        all *= axes[k]->count;
        first += axes[k]->backward ? (axes[k]->count - 1) * axes[k]->staged : 0;
        if (merged == k && (axes[k]->count == 1 || axes[k]->by == run)) {
            run *= axes[k]->count;
            merged++;
        }
    }
    for (int64_t e = 0; e < all; e += run) {
        int64_t at = 0, rest = e / run;
        for (int64_t k = merged; k < 3; rest /= axes[k++]->count)
            at += rest % axes[k]->count * axes[k]->by;
        for (int64_t q = 0; q < run; q += VL) {
            const TE *run_from = from + at + q;
            VW        r[VL];
            if (run == 1) {
                *(VW *)(to + e * VL) = N(some)(run_from, w_out, features);
                continue;
            }
            N(load_columns)(r, run_from, w_out, features, g->w_end - run_from >= (features - 1) * w_out + VL ? VL : run - q);
            for (int64_t p = 0; p < hlort_min(VL, run - q); p++)
                *(VW *)(to + (e + q + p) * VL) = r[p];
        }
    }
    return to + first * VL;
}

/* Whole vectors of features made, which are neighbours. Their taps lie far apart: what comes AHEAD features later is fetched. */
INLINE void N(kernel_in_place)(int two, const WinogradBlock *x, const TE *from, int64_t k, int64_t features, TW *to)
{
    enum { AHEAD = 8 };
    const hlort_conv *v = x->g->v;
    const int64_t     by_y = two ? v->spatial[x->g->d[0]].w : 0, by_x = v->spatial[x->g->d[1]].w;
    const int         lines = two ? 3 : 1;
    for (int64_t c = 0; c < k; c++)
        for (int64_t j = 0; j + VL <= features; j += VL) {
            const TE *at = from + c * v->w_in + j;
            UNROLL for (int i = 0; i < lines; i++)
                UNROLL for (int e = 0; e < 3; e++)
                    __builtin_prefetch((const char *)at + (AHEAD * v->w_in + i * by_y + e * by_x) * (int64_t)sizeof(TE), 0, 3);
            N(kernel_vector)(two, at, by_y, by_x, to + j / K(NR) * K(NR) * k + j % K(NR) + c * K(NR));
        }
}

/* k features read by up to VL made. */
INLINE void N(kernel_lanes)(int two, const Winograd *g, N(Points) *w, const TE *from, int64_t k, int64_t features, TW *to)
{
    const hlort_conv *v = g->v;
    const int64_t     by_y = two ? v->spatial[g->d[0]].w : 0, by_x = v->spatial[g->d[1]].w;
    for (int64_t c = 0; c < k; c += N(CHUNK)) {
        const int64_t n = hlort_min(N(CHUNK), k - c);
        N(Axis)       in = { n, v->w_in, 0, 0 }, y = { two ? 3 : 1, by_y, 0, 0 }, x = { 3, by_x, 0, 0 };
        const TE     *at = N(stage_kernel)(w->stage, g, from + c * v->w_in, (N(Axis) *[3]){ &in, &y, &x }, features);
        for (int64_t e = 0; e < n; e++)
            N(kernel_vector)(two, at + e * in.staged * VL, (y.backward ? -y.staged : y.staged) * VL, (x.backward ? -x.staged : x.staged) * VL, to + (c + e) * K(NR));
    }
}

INLINE void N(kernel_block)(int two, const WinogradBlock *x, int64_t tap, int64_t at, int64_t k, TW *points)
{
    const Winograd   *g = x->g;
    const hlort_conv *v = g->v;
    N(Points)        *w = x->work;
    const TE         *from = g->w + v->w_first + x->group * v->w_group + x->feature * v->w_out + at * v->w_in;
    for (int64_t e = g->n_outer - 1; e >= 0; e--) {
        from += tap % v->spatial[g->outer[e]].window * v->spatial[g->outer[e]].w;
        tap /= v->spatial[g->outer[e]].window;
    }
    const int64_t done = v->w_out == 1 ? x->features / VL * VL : 0;
    if (done > 0)
        N(kernel_in_place)(two, x, from, k, done, points);
    for (int64_t j = done; j < hlort_ceildiv(x->features, K(NR)) * K(NR); j += VL) {
        TW *to = points + j / K(NR) * K(NR) * k + j % K(NR);
        if (j < x->features) {
            N(kernel_lanes)(two, g, w, from + j * v->w_out, k, hlort_min(VL, x->features - j), to);
            continue;
        }
        for (int64_t p = 0; p < (two ? 16 : 4); p++)
            for (int64_t c = 0; c < k; c++)
                *(VW *)(to + p * N(V_STEP) + c * K(NR)) = (VW){ 0 };
    }
}

/* ---- the products ---- */

INLINE void N(point_products)(int two, const WinogradBlock *x, const TW *points, int64_t k, int64_t slot, int first)
{
    N(Points)    *w = x->work;
    const int64_t row = two ? N(M_ALL) : N(M_FEW), groups = hlort_ceildiv(x->tiles, MR);
    for (int64_t p = 0; p < (two ? 16 : 4); p++)
        for (int64_t j = 0; j < x->features; j += K(NR)) {
            K(Tile)   t = { .kc = k, .b = (TW *)points + p * N(V_STEP) + j * k, .c_row = row, .add = !first };
            const int one = NV > 1 && x->features - j <= VL;
            int64_t   i = 0;
            for (int64_t q = 0; q < groups; q++) {
                const int64_t rows = x->tiles / groups + (q < x->tiles % groups);
                t.a = w->u + p / 4 * N(U_STEP) + i * K(LDA) + p % 4 * slot;
                t.c = w->m + i * row + p * N(WF) + j;
                K(kernels)[rows][one ? K(NARROW) : K(PACKED)](&t);
                i += rows;
            }
        }
}

/* ---- the result ---- */

/* A tile's pixels of a vector of features. */
INLINE void N(result_vector)(int two, const TC *m, VC y[2][2])
{
    const int four = two ? 4 : 1, pair = two ? 2 : 1;
    VC        t[2][4];
    UNROLL for (int j = 0; j < 4; j++) {
        VC p[4];
        UNROLL for (int i = 0; i < four; i++)
            p[i] = *(const VC *)(m + (4 * i + j) * N(WF));
        t[0][j] = two ? p[0] + p[1] + p[2] : p[0];
        t[1][j] = two ? p[1] - p[2] - p[3] : p[0];
    }
    UNROLL for (int i = 0; i < pair; i++) {
        y[i][0] = t[i][0] + t[i][1] + t[i][2];
        y[i][1] = t[i][1] - t[i][2] - t[i][3];
    }
}

INLINE int N(has_nan)(VC v)
{
    uint64_t bits[VECTOR_BYTES / 8], any = 0;
    const __typeof__(v != v) found = v != v;
    __builtin_memcpy(bits, &found, sizeof bits);
    UNROLL for (int k = 0; k < VECTOR_BYTES / 8; k++)
        any |= bits[k];
    return any != 0;
}

INLINE void N(store_some)(TC *to, VC v, int64_t n)
{
    if (n >= VL)
        *(VCU *)to = v;
    else
        __builtin_memcpy(to, &v, (uint64_t)n * sizeof(TC));
}

/* Where a run's first pixel is, of the block's first feature. */
static TC *N(find_result)(const WinogradBlock *x, const WinogradRun *run)
{
    const Winograd   *g = x->g;
    const hlort_conv *v = g->v;
    int64_t           at = x->group * v->y_group + x->feature * v->y_out + 2 * run->column * v->spatial[g->d[1]].y, image = run->image;
    at += g->n == 2 ? 2 * run->row * v->spatial[g->d[0]].y : 0;
    for (int64_t e = g->n_outer - 1; e >= 0; e--) {
        at += image % v->spatial[g->outer[e]].out * v->spatial[g->outer[e]].y;
        image /= v->spatial[g->outer[e]].out;
    }
    return g->y + at + image * v->y_batch;
}

/* Differences with themselves add up to a NaN where one is not finite. */
INLINE VC N(result_in_place)(int two, const WinogradBlock *x, const WinogradRun *run, const TC *m, int64_t lines, int64_t line, TC *y)
{
    const int64_t by = x->g->v->spatial[x->g->d[1]].y, left = x->g->v->spatial[x->g->d[1]].out - 2 * run->column;
    const int     pair = two ? 2 : 1;
    N(Points)    *w = x->work;
    VC            bad = { 0 };
    for (int64_t t = 0; t < run->n; t++, m += two ? N(M_ALL) : N(M_FEW)) {
        TC *to[2][2];
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                to[i][j] = i < lines && 2 * t + j < left ? y + i * line + (2 * t + j) * by : w->sink;
        for (int64_t f = 0; f < x->features; f += VL) {
            VC v[2][2];
            N(result_vector)(two, m + f, v);
            UNROLL for (int i = 0; i < pair; i++)
                UNROLL for (int j = 0; j < 2; j++) {
                    bad += v[i][j] - v[i][j];
                    N(store_some)(to[i][j] + f, v[i][j], x->features - f);
                }
        }
    }
    return bad;
}

/* n pixels of a line, a vector of features each, to where pixels are neighbours. */
INLINE void N(unstage_line)(TC *y, const TW *from, int64_t n, int64_t by, int64_t y_out, int64_t features)
{
    for (int64_t p = 0; p < n; p += VL) {
        VW            r[VL];
        const int64_t pixels = hlort_min(VL, n - p);
        UNROLL for (int q = 0; q < VL; q++)
            r[q] = *(const VW *)(from + (p + q) * VL);
        if (by == 1) {
            N(transpose)(r);
            for (int64_t f = 0; f < hlort_min(VL, features); f++)
                N(store_some)(y + f * y_out + p, r[f], pixels);
            continue;
        }
        for (int64_t q = 0; q < pixels; q++)
            for (int64_t f = 0; f < hlort_min(VL, features); f++)
                y[(p + q) * by + f * y_out] = from[(p + q) * VL + f];
    }
}

INLINE VC N(result_staged)(int two, const WinogradBlock *x, const WinogradRun *run, const TC *m, int64_t lines, int64_t line, TC *y)
{
    enum { HALF = N(LINE) * VL };
    const hlort_conv *c = x->g->v;
    const int64_t     d = x->g->d[1], left = c->spatial[d].out - 2 * run->column;
    const int         pair = two ? 2 : 1;
    N(Points)        *w = x->work;
    VC                bad = { 0 };
    for (int64_t f = 0; f < x->features; f += VL) {
        for (int64_t t = 0; t < run->n; t++) {
            VC v[2][2];
            N(result_vector)(two, m + t * (two ? N(M_ALL) : N(M_FEW)) + f, v);
            UNROLL for (int i = 0; i < pair; i++)
                UNROLL for (int j = 0; j < 2; j++) {
                    bad += v[i][j] - v[i][j];
                    *(VW *)(w->stage + i * HALF + (2 * t + j) * VL) = v[i][j];
                }
        }
        for (int64_t i = 0; i < lines; i++)
            N(unstage_line)(y + i * line + f * c->y_out, w->stage + i * HALF, hlort_min(2 * run->n, left), c->spatial[d].y, c->y_out, x->features - f);
    }
    return bad;
}

INLINE void N(result_block)(int two, const WinogradBlock *x)
{
    const Winograd *g = x->g;
    const TC       *m = ((N(Points) *)x->work)->m;
    const int64_t   line = two ? g->v->spatial[g->d[0]].y : 0;
    for (int64_t r = 0; r < x->n_runs; r++) {
        WinogradRun  *run = &x->runs[r];
        const int64_t lines = two ? hlort_min(2, g->v->spatial[g->d[0]].out - 2 * run->row) : 1;
        TC           *y = N(find_result)(x, run);
        const VC      bad = g->v->y_out == 1 ? N(result_in_place)(two, x, run, m, lines, line, y) : N(result_staged)(two, x, run, m, lines, line, y);
        run->again = N(has_nan)(bad);
        m += run->n * (two ? N(M_ALL) : N(M_FEW));
    }
}

INLINE void N(winograd_block)(int two, const WinogradBlock *x)
{
    const Winograd *g = x->g;
    N(Points)      *w = x->work;
    const int64_t   size = hlort_even(g->v->in, N(WK), 16);
    TW             *points = x->packed ? x->packed : w->v;
    __builtin_memset(w->zero, 0, sizeof w->zero);
    for (int64_t tap = 0; tap < g->taps; tap++)
        for (int64_t at = 0; at < g->v->in; at += size) {
            const int64_t k = hlort_min(size, g->v->in - at), slot = hlort_ceildiv(k, VL) * VL;
            if (x->tiles > 0)
                N(image_block)(two, x, tap, at, k, slot);
            if (x->tiles == 0 || !x->packed)
                N(kernel_block)(two, x, tap, at, k, points);
            if (x->tiles > 0)
                N(point_products)(two, x, points, k, slot, tap == 0 && at == 0);
            points += x->packed ? (two ? 16 : 4) * N(V_STEP) : 0;
        }
    if (x->tiles > 0)
        N(result_block)(two, x);
}

static void N(winograd)(const WinogradBlock *x)
{
    if (x->g->n == 2)
        N(winograd_block)(1, x);
    else
        N(winograd_block)(0, x);
}
