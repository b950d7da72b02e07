/* spread.c - see spread.h.
 *
 *     base dilated       rows are pixels, columns taps, a product for each feature: taps that follow each other are neighbours in Y
 *     base not dilated   rows are taps of all features, columns pixels: pixels are
 *
 * A part is one image, or some lines of it: those lines are nobody else's, and pixels that reach into two parts are multiplied for both. How many parts there are,
 * and so the order in which sums are added, does not depend on threads. Results that are narrower than their sums are summed aside. */
#include "runtime/spread.h"
#include "runtime/pool.h"
#include "runtime/vec.h"

#include <stdbool.h>

enum {
    FEW_FEATURES = 4,      /* of a group, where phases or windows are slower (measured) */
    FEW_LINES = 16,        /* the same where pixels are neighbours in Y, and phases are not */
    LEAST_IN = 8,          /* features of the image, where the base is not dilated */
    PARTS = 8,             /* wanted, where they have work enough */
    LINES = 4,             /* of a part: so many times what it shares with the next one, at least */
    TILE = 128,            /* rows of a tile */
    KERNEL_BYTES = HLORT_SUMS_BYTES / 2, ASIDE_BYTES = HLORT_SUMS_BYTES / 2
};

typedef struct Job {
    const hlort_conv *v;
    const KernelSet  *set;
    GemmType          type;
    const char       *x, *w;
    char             *y;
    int64_t           inner;         /* pixels of a line of the image */
    int64_t           taps, x_step, w_step;
    int64_t           lines, pieces; /* of the result: lines of a part, parts of an image */
    int               dilated;
} Job;

/* Pixels low .. high - 1 of the result; sums are where the first of them is, of the feature at hand. */
typedef struct Part {
    const Job *job;
    char      *sums;
    int64_t    feature;              /* from one feature's sums to the next */
    int64_t    low[HLORT_MOST_SPATIAL], high[HLORT_MOST_SPATIAL], by[HLORT_MOST_SPATIAL];
} Part;

/* ---- lines of sums ---- */

typedef float    Floats __attribute__((vector_size(16), aligned(4), may_alias));
typedef double   Doubles __attribute__((vector_size(16), aligned(8), may_alias));
typedef uint32_t Words __attribute__((vector_size(16), aligned(4), may_alias));

#define ADD(name, T, V, ...)                                                                            \
    static void name(void *sums, const void *terms, int64_t n, int64_t step)                            \
    {                                                                                                   \
        enum { LANES = sizeof(V) / sizeof(T) };                                                         \
        T       *to = sums;                                                                             \
        const T *from = terms;                                                                          \
        int64_t  q = 0;                                                                                 \
        if (step == 1)                                                                                  \
            for (; q + LANES <= n; q += LANES)                                                          \
                *(V *)(to + q) += *(const V *)(from + q);                                               \
        if (step == -1)                                                                                 \
            for (; q + LANES <= n; q += LANES) {                                                        \
                V x = *(const V *)(from + q);                                                           \
                *(V *)(to - q - (LANES - 1)) += __builtin_shufflevector(x, x, __VA_ARGS__);             \
            }                                                                                           \
        for (; q < n; q++)                                                                              \
            to[q * step] += from[q];                                                                    \
    }
ADD(add_floats, float, Floats, 3, 2, 1, 0)
ADD(add_doubles, double, Doubles, 1, 0)
ADD(add_words, uint32_t, Words, 3, 2, 1, 0)
#undef ADD

static void add(const Part *p, void *sums, const void *terms, int64_t n, int64_t step)
{
    switch (p->job->type) {
    case GEMM_F64: add_doubles(sums, terms, n, step); break;
    case GEMM_S32:
    case GEMM_S8_S32:
    case GEMM_U8_S32: add_words(sums, terms, n, step); break;
    default: add_floats(sums, terms, n, step); break;
    }
}

static int64_t lines_of(const Part *p)
{
    int64_t n = 1;
    for (int64_t d = 0; d < p->job->v->n_spatial - 1; d++)
        n *= p->high[d] - p->low[d];
    return n;
}

/* Where line `number` begins, from the part's first one, by these distances. */
static int64_t line_at(const Part *p, int64_t number, const int64_t *by)
{
    int64_t at = 0;
    for (int64_t d = p->job->v->n_spatial - 2; d >= 0; d--) {
        at += number % (p->high[d] - p->low[d]) * by[d];
        number /= p->high[d] - p->low[d];
    }
    return at;
}

static void clear(const Part *p)
{
    const int64_t last = p->job->v->n_spatial - 1, n = p->high[last] - p->low[last], bytes = hlort_sum_bytes(p->job->type), lines = lines_of(p);
    for (int64_t k = 0; k < lines; k++) {
        char *line = p->sums + line_at(p, k, p->by) * bytes;
        if (p->by[last] == 1)
            __builtin_memset(line, 0, (uint64_t)(n * bytes));
        else
            for (int64_t q = 0; q < n; q++)
                __builtin_memset(line + q * p->by[last] * bytes, 0, (uint64_t)bytes);
    }
}

/* Sums that were made aside go to the result. */
static void narrow_lines(const Part *p, uint16_t *y)
{
    const hlort_conv *v = p->job->v;
    const int64_t     last = v->n_spatial - 1, n = p->high[last] - p->low[last], step = v->spatial[last].y, lines = lines_of(p);
    int64_t           by[HLORT_MOST_SPATIAL];
    uint16_t          few[TILE];
    for (int64_t d = 0; d < last; d++)
        by[d] = v->spatial[d].y;
    for (int64_t k = 0; k < lines; k++) {
        const float *from = (const float *)(const void *)p->sums + line_at(p, k, p->by);
        uint16_t    *to = y + line_at(p, k, by);
        for (int64_t q = 0; q < n; q += TILE) {
            const int64_t some = hlort_min(TILE, n - q);
            p->job->set->narrow[p->job->type](few, from + q, some);
            for (int64_t e = 0; e < some; e++)
                to[(q + e) * step] = few[e];
        }
    }
}

/* ---- tiles ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

typedef struct Pixel {
    int64_t c[HLORT_MOST_SPATIAL]; /* base * coordinate + pad: where tap 0 goes */
} Pixel;

static void find_pixels(const Job *x, int64_t first, int64_t n, Pixel *out)
{
    const hlort_conv *v = x->v;
    for (int64_t k = 0; k < n; k++) {
        int64_t rest = first + k;
        for (int64_t d = v->n_spatial - 1; d >= 0; d--) {
            out[k].c[d] = rest % v->spatial[d].in * v->spatial[d].base_dilation + v->spatial[d].pad;
            rest /= v->spatial[d].in;
        }
    }
}

/* Tap `number`, counted over features, which is returned. */
static int64_t find_taps(const hlort_conv *v, int64_t number, int64_t *t)
{
    for (int64_t d = v->n_spatial - 1; d >= 0; d--) {
        t[d] = number % v->spatial[d].window;
        number /= v->spatial[d].window;
    }
    return number;
}

/* Whether what tap t of the pixel gives is the part's as far as the first n dimensions say; and where these begin, in sums. */
static bool is_in_part(const Part *p, const Pixel *pixel, const int64_t *t, int64_t n, int64_t *at)
{
    *at = 0;
    for (int64_t d = 0; d < n; d++) {
        const int64_t o = pixel->c[d] - t[d] * p->job->v->spatial[d].window_dilation;
        if (o < p->low[d] || o >= p->high[d])
            return false;
        *at += (o - p->low[d]) * p->by[d];
    }
    return true;
}

/* n taps from t on, which differ along the last dimension alone, of one pixel. */
static void spread_taps(const Part *p, const Pixel *pixel, const int64_t *t, int64_t n, const char *terms)
{
    const hlort_conv *v = p->job->v;
    const int64_t     last = v->n_spatial - 1, dilation = v->spatial[last].window_dilation, bytes = hlort_sum_bytes(p->job->type);
    int64_t           at;
    if (!is_in_part(p, pixel, t, last, &at))
        return;
    const int64_t most = floor_div(pixel->c[last] - p->low[last], dilation), least = floor_div(pixel->c[last] - p->high[last], dilation) + 1;
    const int64_t from = least > t[last] ? least : t[last], end = hlort_min(most + 1, t[last] + n);
    if (from >= end)
        return;
    at += (pixel->c[last] - from * dilation - p->low[last]) * p->by[last];
    add(p, p->sums + at * bytes, terms + (from - t[last]) * bytes, end - from, -dilation * p->by[last]);
}

static void spread_tile(const void *context, const hlort_tile *tile)
{
    const Part       *p = context;
    const hlort_conv *v = p->job->v;
    const int64_t     last = v->n_spatial - 1, bytes = hlort_sum_bytes(p->job->type);
    Pixel             pixels[TILE];
    find_pixels(p->job, tile->row, tile->rows, pixels);
    for (int64_t j = 0, n; j < tile->columns; j += n) {
        int64_t t[HLORT_MOST_SPATIAL];
        find_taps(v, tile->column + j, t);
        n = hlort_min(v->spatial[last].window - t[last], tile->columns - j);
        for (int64_t i = 0; i < tile->rows; i++)
            spread_taps(p, &pixels[i], t, n, (const char *)tile->sums + (i * tile->stride + j) * bytes);
    }
}

/* n pixels from `pixel` on, which differ along the last dimension alone, of one tap. */
static void spread_pixels(const Part *p, const Pixel *pixel, const int64_t *t, int64_t n, const char *sums, const char *terms)
{
    const hlort_conv *v = p->job->v;
    const int64_t     last = v->n_spatial - 1, bytes = hlort_sum_bytes(p->job->type);
    int64_t           at;
    if (!is_in_part(p, pixel, t, last, &at))
        return;
    const int64_t o = pixel->c[last] - t[last] * v->spatial[last].window_dilation;
    const int64_t from = o < p->low[last] ? p->low[last] - o : 0, end = hlort_min(n, p->high[last] - o);
    if (from < end)
        add(p, (char *)sums + (at + (o + from - p->low[last]) * p->by[last]) * bytes, terms + from * bytes, end - from, p->by[last]);
}

static void spread_lines(const void *context, const hlort_tile *tile)
{
    const Part       *p = context;
    const hlort_conv *v = p->job->v;
    const int64_t     last = v->n_spatial - 1, bytes = hlort_sum_bytes(p->job->type);
    for (int64_t j = 0, n; j < tile->columns; j += n) {
        Pixel pixel;
        find_pixels(p->job, tile->column + j, 1, &pixel);
        n = hlort_min(v->spatial[last].in + v->spatial[last].pad - pixel.c[last], tile->columns - j);
        for (int64_t i = 0; i < tile->rows; i++) {
            int64_t       t[HLORT_MOST_SPATIAL];
            const int64_t feature = find_taps(v, tile->row + i, t);
            spread_pixels(p, &pixel, t, n, p->sums + feature * p->feature * bytes, (const char *)tile->sums + (i * tile->stride + j) * bytes);
        }
    }
}

/* ---- parts ---- */

enum { IN, OUT };

/* The kernel of several features as [feature][tap][in]. */
static const char *copy_kernel(const Job *job, const char *w, char *to)
{
    const hlort_conv *v = job->v;
    const int64_t     bytes = hlort_bytes[job->type][IN];
    char             *out = to;
    for (int64_t f = 0; f < v->out; f++)
        for (int64_t t = 0; t < job->taps; t++)
            for (int64_t i = 0; i < v->in; i++, out += bytes)
                __builtin_memcpy(out, w + (f * v->w_out + t * job->w_step + i * v->w_in) * bytes, (uint64_t)bytes);
    return to;
}

static void multiply(Part *p, const char *x, const char *w, char *work)
{
    const Job        *job = p->job;
    const hlort_conv *v = job->v;
    const int64_t     base = v->spatial[0].base_dilation, reach = (v->spatial[0].window - 1) * v->spatial[0].window_dilation, bytes = hlort_bytes[job->type][IN];
    int64_t           first = -floor_div(v->spatial[0].pad - p->low[0], base), end = floor_div(p->high[0] - 1 - v->spatial[0].pad + reach, base) + 1;
    first = first < 0 ? 0 : first;
    end = hlort_min(end, v->spatial[0].in);
    if (first >= end)
        return;
    const char   *from = x + first * job->inner * job->x_step * bytes;
    const int64_t pixels = (end - first) * job->inner;
    Gemm          g;
    if (job->dilated) {
        g = (Gemm){ .way = GEMM_TILES, .m = pixels, .n = job->taps, .k = v->in, .a = from, .a_row = job->x_step, .a_col = v->x_in, .b = w, .b_row = v->w_in,
                    .b_col = job->w_step, .work = work, .epilogue = spread_tile, .context = p, .row = first * job->inner };
    } else {
        const int one = v->out == 1;
        g = (Gemm){ .way = GEMM_TILES, .m = v->out * job->taps, .n = pixels, .k = v->in, .a = one ? w : copy_kernel(job, w, work + HLORT_TILES_BYTES),
                    .a_row = one ? job->w_step : v->in, .a_col = one ? v->w_in : 1, .b = from, .b_row = v->x_in, .b_col = job->x_step, .work = work,
                    .epilogue = spread_lines, .context = p, .column = first * job->inner };
    }
    hlort_kernel(job->set, job->type)(&g);
}

static void part(void *data, int64_t number, void *work)
{
    const Job        *job = data;
    const hlort_conv *v = job->v;
    const int64_t     piece = number % job->pieces, group = number / job->pieces % v->groups, image = number / job->pieces / v->groups;
    const int64_t     in = hlort_bytes[job->type][IN], out = hlort_bytes[job->type][OUT], first = piece * job->lines;
    const int         aside = job->set->narrow[job->type] != 0;
    Part              p = { .job = job };
    char             *y = job->y + (image * v->y_batch + group * v->y_group + first * v->spatial[0].y) * out;
    const char       *x = job->x + (image * v->x_batch + group * v->x_group) * in, *w = job->w + (v->w_first + group * v->w_group) * in;
    int64_t           all = 1;
    for (int64_t d = v->n_spatial - 1; d >= 0; d--) {
        p.low[d] = d == 0 ? first : 0;
        p.high[d] = d == 0 ? hlort_min(first + job->lines, v->spatial[0].out) : v->spatial[d].out;
        p.by[d] = aside ? all : v->spatial[d].y;
        all *= p.high[d] - p.low[d];
    }
    p.feature = aside ? all : v->y_out;
    char *const sums = aside ? (char *)work + HLORT_TILES_BYTES + KERNEL_BYTES : y;
    for (int64_t f = 0; f < v->out; f++) {
        p.sums = sums + f * p.feature * hlort_sum_bytes(job->type);
        clear(&p);
        if (job->dilated)
            multiply(&p, x, w + f * v->w_out * in, work);
    }
    p.sums = sums;
    if (!job->dilated)
        multiply(&p, x, w, work);
    for (int64_t f = 0; f < v->out && aside; f++) {
        p.sums = sums + f * p.feature * hlort_sum_bytes(job->type);
        narrow_lines(&p, (uint16_t *)(void *)y + f * v->y_out);
    }
}

/* ---- which convolutions ---- */

/* Adds a dimension in front of others, which are `all` elements `step` apart. */
static int is_even(int64_t size, int64_t distance, int64_t all, int64_t *step)
{
    if (all == 1 && size != 1)
        *step = distance;
    return size == 1 || distance == all * *step;
}

static int is_spread(Job *x)
{
    const hlort_conv *v = x->v;
    int64_t           pixels = 1;
    double            made = 1, needed = 1; /* for each tap: products, pixels of the result that it has */
    x->taps = 1;
    for (int64_t d = v->n_spatial - 1; d >= 0; d--) {
        x->dilated |= v->spatial[d].base_dilation > 1;
        if (v->spatial[d].stride != 1 || v->spatial[d].in == 0 || v->spatial[d].window == 0)
            return 0;
        if (!is_even(v->spatial[d].in, v->spatial[d].x, pixels, &x->x_step) || !is_even(v->spatial[d].window, v->spatial[d].w, x->taps, &x->w_step))
            return 0;
        x->inner = pixels;
        pixels *= v->spatial[d].in;
        x->taps *= v->spatial[d].window;
        made *= (double)v->spatial[d].in;
        needed *= (double)v->spatial[d].out / (double)v->spatial[d].base_dilation;
    }
    if (x->taps == 1 || made > 2 * needed)
        return 0;
    if (!x->dilated && (v->in < LEAST_IN || v->out * x->taps * v->in * hlort_bytes[x->type][IN] > KERNEL_BYTES))
        return 0;
    return v->in > 0 && v->out <= (v->spatial[v->n_spatial - 1].y == 1 ? FEW_LINES : FEW_FEATURES);
}

/* Sums of a part that is made aside have to find place there. */
static int cut_lines(Job *x)
{
    const hlort_conv *v = x->v;
    const int64_t     all = v->spatial[0].out, members = v->batch * v->groups;
    const int64_t     shared = (v->spatial[0].window - 1) * v->spatial[0].window_dilation + v->spatial[0].base_dilation;
    int64_t           line = v->out * (int64_t)sizeof(float);
    x->lines = hlort_ceildiv(all, hlort_ceildiv(PARTS, members));
    x->lines = hlort_min(all, x->lines > LINES * shared ? x->lines : LINES * shared);
    for (int64_t d = 1; d < v->n_spatial; d++)
        line *= v->spatial[d].out;
    if (x->set->narrow[x->type] && x->lines > ASIDE_BYTES / line)
        x->lines = ASIDE_BYTES / line;
    x->pieces = x->lines ? hlort_ceildiv(all, x->lines) : 0;
    return x->lines > 0 && members <= POOL_MOST_PARTS / x->pieces;
}

int hlort_spread(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y)
{
    Job job = { .v = v, .set = s, .type = type, .x = x, .w = w, .y = y };
    if (!is_spread(&job) || !cut_lines(&job))
        return 0;
    pool_run(how->pool, part, &job, v->batch * v->groups * job.pieces, how->work);
    return 1;
}
