/* conv.c - a convolution as products of matrices, of which one operand is the windows of an image (image.h), packed from it as tiles need them.
 *
 * There is one product for each group and each phase. Where the base is dilated by L, neighbouring pixels of the result meet other taps, and every L-th pixel the
 * same ones: these are a convolution for themselves, of an image without holes. With dilation 2, 3 taps and stride 1:
 *
 *     image        a   .   b   .   c             phase 0: tap 0 and 2       y0 = a w0 + b w2,  y2 = b w0 + c w2
 *     pixels       0   1   2   3                 phase 1: tap 1             y1 = b w1,         y3 = c w1
 *
 * With few features that is left to spread.c, or each phase to bands.c. Features are the columns of the product when they are neighbours in Y; else pixels are, and the image is B. */
#include "runtime/bands.h"
#include "runtime/border.h"
#include "runtime/depthwise.h"
#include "runtime/gradient.h"
#include "runtime/packed.h"
#include "runtime/pool.h"
#include "runtime/spread.h"
#include "runtime/vec.h"
#include "runtime/winograd.h"

#include <stddef.h>

enum { IN, OUT };

/* Pixels o, o + pixels, ... of a dimension, for which taps t, t + taps, ... are there. */
typedef struct Phase {
    int64_t o, t;
    int64_t pixels, taps;  /* from one to the next */
    int64_t first;         /* coordinate */
    int64_t window;        /* taps that are there */
} Phase;

typedef struct Job {
    const hlort_conv *v;
    const KernelSet  *set;
    GemmType          type;
    const char       *x, *w;
    char             *y;
    const void       *x_end;
    int64_t           phases[HLORT_MOST_SPATIAL];
    int64_t           images;                     /* whose products are members of their own */
    int               swapped;                    /* pixels are columns */
    Cut               cut;
    const hlort_how  *how;
    char             *packed;                     /* the kernel's panels, of all groups; NULL */
    int               packing;                    /* nothing is multiplied, they are made */
} Job;

/* One member: the product, and how its tiles are mended, handed to the caller's epilogue, and go to Y when that is not where the kernels put them. */
typedef struct Member {
    Image   im;
    Gemm    g;
    int64_t out, y_out; /* features */
    char   *y;          /* NULL: there is none */
    int64_t place;      /* of that in the whole of Y, in elements */
    int     placed;     /* tiles go to Y here */
    int     checked;    /* border.h */
    GemmType        type;
    hlort_epilogue *epilogue;
    const void     *context;
    void (*narrow)(uint16_t *to, const float *from, int64_t n);
    int64_t bytes_in, bytes[2]; /* of an element of the operands; of a sum, of Y */
    int64_t *known;             /* border.h */
} Member;

enum { MOST = 512, KNOWN = 1024, MOST_PHASES = 16 }; /* rows and columns of a tile; features; of a dilated base, in bands */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    return (a % b + b) % b;
}

/* The greatest common divisor g of a and b > 0, and x with a * x = g modulo b. */
static int64_t common(int64_t a, int64_t b, int64_t *x)
{
    int64_t r = b, s = floor_mod(a, b), u = 0, v = 1;
    while (s) {
        int64_t q = r / s, t = r - q * s;
        r = s;
        s = t;
        t = u - q * v;
        u = v;
        v = t;
    }
    *x = floor_mod(u, b / r);
    return r;
}

/* The phase of pixel o, which is less than the distance of pixels of one phase. */
static Phase phase_at(const hlort_conv *v, int64_t d, int64_t o)
{
    const int64_t base = v->spatial[d].base_dilation, dilation = v->spatial[d].window_dilation;
    int64_t       inverse, unused, g = common(dilation, base, &inverse), at = o * v->spatial[d].stride - v->spatial[d].pad;
    Phase         p = { .o = o, .pixels = base / common(v->spatial[d].stride, base, &unused), .taps = base / g };
    if (at % g)
        return p;
    p.t = floor_mod(-at / g, p.taps) * inverse % p.taps;
    p.first = (at + p.t * dilation) / base;
    p.window = p.t < v->spatial[d].window ? (v->spatial[d].window - p.t + p.taps - 1) / p.taps : 0;
    return p;
}

/* One as a convolution of its own, whose base is not dilated. */
static void set_phase(hlort_conv *v, int64_t d, const Phase *p, int64_t *y_first)
{
    const int64_t base = v->spatial[d].base_dilation;
    v->w_first += p->t * v->spatial[d].w;
    *y_first += p->o * v->spatial[d].y;
    v->spatial[d].out = hlort_ceildiv(v->spatial[d].out - p->o, p->pixels);
    v->spatial[d].stride = p->pixels * v->spatial[d].stride / base;
    v->spatial[d].pad = -p->first;
    v->spatial[d].window = p->window;
    v->spatial[d].window_dilation = p->taps * v->spatial[d].window_dilation / base;
    v->spatial[d].base_dilation = 1;
    v->spatial[d].w *= p->taps;
    v->spatial[d].y *= p->pixels;
}

static int64_t count_phases(const hlort_conv *v, int64_t d)
{
    int64_t unused;
    return least(v->spatial[d].base_dilation / common(v->spatial[d].stride, v->spatial[d].base_dilation, &unused), v->spatial[d].out);
}

/* ---- one product ---- */

static void add_dim(Member *m, const hlort_conv *v, int64_t d, const Phase *p, int64_t *w, int64_t *y)
{
    const int64_t base = v->spatial[d].base_dilation;
    m->im.d[m->im.n++] = (ImageDim){ .out = hlort_ceildiv(v->spatial[d].out - p->o, p->pixels),
                                     .first = p->first,
                                     .step = p->pixels * v->spatial[d].stride / base,
                                     .window = p->window,
                                     .dilation = p->taps * v->spatial[d].window_dilation / base,
                                     .size = v->spatial[d].in,
                                     .x = v->spatial[d].x,
                                     .w = p->taps * v->spatial[d].w,
                                     .y = p->pixels * v->spatial[d].y };
    *w += p->t * v->spatial[d].w;
    *y += p->o * v->spatial[d].y;
}

/* Sums of a tile that are NaN because of zeros beside the image. */
static void mend_tile(const Member *m, const hlort_tile *t)
{
    const Gemm *whole = &m->g;
    const int   b = m->im.is_b;
    border_mend(&(Border){ .im = &m->im,
                           .type = m->type,
                           .x = b ? whole->b : whole->a,
                           .w = b ? whole->a : whole->b,
                           .w_out = b ? whole->a_row : whole->b_col,
                           .sums = t->sums,
                           .stride = t->stride,
                           .pixel = b ? t->column : t->row,
                           .pixels = b ? t->columns : t->rows,
                           .feature = b ? t->row : t->column,
                           .features = b ? t->rows : t->columns,
                           .known = m->known,
                           .n_known = KNOWN });
}

/* How many of n pixels from the first one on are evenly apart, and how far; with by != 0 those that are so far. */
static int64_t even_pixels(const ImageRow *pixels, int64_t n, int64_t by, int64_t *distance)
{
    int64_t k = 1;
    *distance = by ? by : n > 1 ? pixels[1].y - pixels[0].y : 0;
    while (k < n && pixels[k].y - pixels[k - 1].y == *distance)
        k++;
    return k;
}

/* Hands a tile to the caller's epilogue: in pieces whose rows are evenly apart, and whose columns are neighbours. */
static void call_tile(const Member *m, const hlort_tile *t, const ImageRow *pixels)
{
    const int64_t features = m->y_out == 1 || m->out == 1;
    hlort_tile    part = *t;
    for (int64_t i = 0, n; i < t->rows; i += n) {
        int64_t by = m->y_out;
        n = m->im.is_b ? t->rows : even_pixels(pixels + i, t->rows - i, 0, &by);
        for (int64_t j = 0, c; j < t->columns; j += c) {
            int64_t one;
            c = !m->im.is_b ? (features ? t->columns : 1) : even_pixels(pixels + j, t->columns - j, 1, &one);
            part.sums = (char *)t->sums + (i * t->stride + j) * m->bytes[IN];
            part.row = t->row + i;
            part.column = t->column + j;
            part.rows = n;
            part.columns = c;
            part.by = by;
            part.place = m->place + (m->im.is_b ? pixels[j].y + (t->row + i) * m->y_out : pixels[i].y + (t->column + j) * m->y_out);
            m->epilogue(m->context, &part);
        }
    }
}

/* n elements to places `step` apart. */
static void place_apart(char *to, int64_t step, const char *from, int64_t n, int64_t bytes)
{
    if (bytes == 2)
        for (int64_t k = 0; k < n; k++)
            __builtin_memcpy(to + k * step * 2, from + k * 2, 2);
    else if (bytes == 4)
        for (int64_t k = 0; k < n; k++)
            __builtin_memcpy(to + k * step * 4, from + k * 4, 4);
    else
        for (int64_t k = 0; k < n; k++)
            __builtin_memcpy(to + k * step * 8, from + k * 8, 8);
}

/* At most MOST sums, rounded if Y is narrower, as elements `step` apart. */
static void place_line(const Member *m, char *to, int64_t step, const char *sums, int64_t n)
{
    uint16_t narrow[MOST];
    if (m->narrow && (step == 1 || n == 1)) {
        m->narrow((uint16_t *)(void *)to, (const float *)(const void *)sums, n);
        return;
    }
    if (m->narrow) {
        m->narrow(narrow, (const float *)(const void *)sums, n);
        sums = (const char *)narrow;
    }
    if (step == 1)
        __builtin_memcpy(to, sums, (uint64_t)(n * m->bytes[OUT]));
    else
        place_apart(to, step, sums, n, m->bytes[OUT]);
}

/* Puts a tile's elements where they belong. */
static void place_tile(const Member *m, const hlort_tile *t, const ImageRow *pixels)
{
    const char   *sums = t->sums;
    const int64_t row = t->stride * m->bytes[IN];
    if (!m->im.is_b) {
        for (int64_t i = 0; i < t->rows; i++)
            place_line(m, m->y + (pixels[i].y + t->column * m->y_out) * m->bytes[OUT], m->y_out, sums + i * row, t->columns);
        return;
    }
    for (int64_t j = 0, n, by; j < t->columns; j += n) {
        n = even_pixels(pixels + j, t->columns - j, 0, &by);
        for (int64_t i = 0; i < t->rows; i++)
            place_line(m, m->y + (pixels[j].y + (t->row + i) * m->y_out) * m->bytes[OUT], by, sums + i * row + j * m->bytes[IN], n);
    }
}

static void finish_tile(const void *context, const hlort_tile *t)
{
    const Member *m = context;
    ImageRow      pixels[MOST];
    if (m->checked)
        mend_tile(m, t);
    if (!m->epilogue && !m->placed)
        return;
    image_rows(&m->im, m->im.is_b ? t->column : t->row, m->im.is_b ? t->columns : t->rows, pixels);
    if (m->epilogue)
        call_tile(m, t, pixels);
    if (m->placed)
        place_tile(m, t, pixels);
}

/* Pixels are neighbours in Y from the first to the last. */
static int pixels_are_neighbours(const Image *im)
{
    int64_t y = 1;
    for (int64_t d = im->n - 1; d >= 0; d--) {
        if (im->d[d].out > 1 && im->d[d].y != y)
            return 0;
        y *= im->d[d].out;
    }
    return 1;
}

static void set_product(Member *m, const hlort_conv *v, const char *x, const char *w)
{
    Gemm         *g = &m->g;
    const Image  *im = &m->im;
    const int     matrix = image_is_matrix(im);
    const int64_t row = matrix ? im->d[0].x : 0, pixels = image_pixels(im);
    g->way = GEMM_TILES;
    g->k = image_taps(im) * v->in;
    g->image = matrix ? NULL : im;
    if (matrix)
        x += im->x_first * m->bytes_in;
    if (im->is_b) {
        g->m = m->out;
        g->n = pixels;
        g->a = w;
        g->a_row = v->w_out;
        g->a_col = im->w_step;
        g->b = x;
        g->b_row = v->x_in;
        g->b_col = row;
        g->c_row = m->y_out;
    } else {
        g->m = pixels;
        g->n = m->out;
        g->a = x;
        g->a_row = row;
        g->a_col = v->x_in;
        g->b = w;
        g->b_row = im->w_step;
        g->c_row = im->d[0].y;
    }
}

static void make_member(const Job *x, int64_t number, Member *m)
{
    const hlort_conv *v = x->v;
    const int64_t     image = number % x->images;
    int64_t           rest = number / x->images, at_w = v->w_first, at_y = image * v->y_batch, at_x = image * v->x_batch;
    *m = (Member){ .im = { .in = v->in, .x_in = v->x_in, .w_in = v->w_in, .is_b = x->swapped, .x_end = x->x_end },
                   .g = { .b_col = v->w_out },
                   .out = v->out,
                   .y_out = v->y_out,
                   .narrow = x->set->narrow[x->type],
                   .type = x->type,
                   .epilogue = x->how->epilogue,
                   .context = x->how->context,
                   .bytes_in = hlort_bytes[x->type][IN],
                   .bytes = { hlort_sum_bytes(x->type), hlort_bytes[x->type][OUT] } };
    if (!x->swapped)
        m->im.d[m->im.n++] = (ImageDim){ .out = v->batch, .step = 1, .window = 1, .dilation = 1, .size = v->batch, .x = v->x_batch, .y = v->y_batch };
    for (int64_t d = 0; d < v->n_spatial; d++) {
        Phase p = phase_at(v, d, rest % x->phases[d]);
        rest /= x->phases[d];
        add_dim(m, v, d, &p, &at_w, &at_y);
    }
    if (m->im.n == 0)
        m->im.d[m->im.n++] = (ImageDim){ .out = 1, .step = 1, .window = 1, .dilation = 1, .size = 1 };
    at_x += rest * v->x_group;
    at_w += rest * v->w_group;
    at_y += rest * v->y_group;
    image_order(&m->im);
    set_product(m, v, x->x + at_x * m->bytes_in, x->w + at_w * m->bytes_in);
    if (x->packed) {
        m->g.way = x->packing ? GEMM_PACK : m->g.way;
        m->g.packed = x->packed + rest * hlort_panels_bytes(m->bytes_in, m->g.k, m->g.n);
        m->g.packed_columns = packed_columns(m->g.n);
    }
    const int neighbours = m->im.is_b ? pixels_are_neighbours(&m->im) : m->y_out == 1 || m->out == 1;
    m->place = m->g.place = at_y;
    m->y = x->y ? x->y + at_y * m->bytes[OUT] : NULL;
    m->placed = m->y && (m->narrow || !neighbours);
    m->checked = m->g.image && border_is_checked(&m->im, m->type);
    if (m->placed || m->epilogue || m->checked) {
        m->g.in_blocks = m->epilogue || !m->placed;
        m->g.epilogue = finish_tile;
        m->g.context = m;
    }
    if (!m->placed)
        m->g.c = m->y;
}

/* The operands of a piece begin where it does, but those that are images: their pixels are counted from the first. */
static void cut_piece(Gemm *g, const Member *m, const Cut *cut, int64_t piece)
{
    const int64_t from = piece * cut->size, size = least(cut->size, (cut->by_rows ? g->m : g->n) - from);
    const int     counted = g->image && m->im.is_b != cut->by_rows; /* pixels are what is cut */
    int64_t       c = from;
    if (cut->by_rows) {
        g->row = from;
        g->m = size;
        g->a = counted ? g->a : (const char *)g->a + from * g->a_row * m->bytes_in;
        c = counted ? 0 : from * g->c_row;
    } else {
        g->column = from;
        g->n = size;
        g->b = counted ? g->b : (const char *)g->b + from * g->b_col * m->bytes_in;
    }
    g->place += c;
    if (g->c)
        g->c = (char *)g->c + c * m->bytes[OUT];
}

static void part(void *job, int64_t number, void *work)
{
    const Job *x = job;
    const Cut *c = &x->cut;
    int64_t    first = number / c->pieces * c->members, rest = c->count - first;
    for (int64_t k = 0; k < c->members && k < rest; k++) {
        int64_t known[KNOWN];
        Member  m;
        make_member(x, first + k, &m);
        if (m.checked)
            __builtin_memset(known, 0, sizeof known);
        m.known = known;
        m.g.work = work;
        m.g.batch = first + k;
        Gemm g = m.g;
        if (c->pieces > 1) {
            if (number % c->pieces * c->size >= (c->by_rows ? g.m : g.n))
                continue;
            cut_piece(&g, &m, c, number % c->pieces);
        }
        hlort_kernel(x->set, x->type)(&g);
    }
}

/* ---- all of them ---- */

static const void *end_of_image(const hlort_conv *v, const char *x, int64_t bytes)
{
    int64_t last = (v->batch - 1) * v->x_batch + (v->groups - 1) * v->x_group + (v->in - 1) * v->x_in;
    for (int64_t d = 0; d < v->n_spatial; d++)
        last += (v->spatial[d].in - 1) * v->spatial[d].x;
    return x + (last + 1) * bytes;
}

static int is_empty(const hlort_conv *v)
{
    for (int64_t d = 0; d < v->n_spatial; d++)
        if (v->spatial[d].out == 0)
            return 1;
    return v->batch == 0 || v->groups == 0 || v->out == 0;
}

/* Some dimension of pixels has neighbours in Y, and features do not. */
static int is_swapped(const Job *x)
{
    const hlort_conv *v = x->v;
    if (v->y_out == 1)
        return 0;
    for (int64_t d = 0; d < v->n_spatial; d++)
        if (v->spatial[d].y == 1 && v->spatial[d].out > 1)
            return 1;
    return 0;
}

/* One tap for each pixel: a dot. */
static int as_dot(const Job *x, const hlort_how *how)
{
    const hlort_conv *v = x->v;
    Member            m;
    hlort_dot         d = { .n_batch = 2 };
    if (x->cut.count != x->images * v->groups)
        return 0;
    make_member(x, 0, &m);
    if (m.g.image || !(m.im.is_b ? pixels_are_neighbours(&m.im) : m.y_out == 1 || m.out == 1))
        return 0;
    d.m = m.g.m;
    d.n = m.g.n;
    d.k = m.g.k;
    d.a_row = m.g.a_row;
    d.a_col = m.g.a_col;
    d.b_row = m.g.b_row;
    d.b_col = m.g.b_col;
    d.c_row = m.g.c_row;
    d.batch[0].count = v->groups;
    d.batch[0].a = m.im.is_b ? v->w_group : v->x_group;
    d.batch[0].b = m.im.is_b ? v->x_group : v->w_group;
    d.batch[0].c = v->y_group;
    d.batch[1].count = x->images;
    d.batch[1].a = m.im.is_b ? 0 : v->x_batch;
    d.batch[1].b = m.im.is_b ? v->x_batch : 0;
    d.batch[1].c = v->y_batch;
    hlort_how dot_how = *how;
    if (m.im.is_b)
        dot_how.packed = NULL; /* that is the kernel */
    hlort_gemm(x->set, x->type, &d, &dot_how, m.g.a, m.g.b, m.y);
    return 1;
}

/* Has tiles take the kernel's panels from memory, which they are put into if nobody has done so: one product for each group. */
static void use_packed(Job *x, const Gemm *g)
{
    hlort_packed *p = x->how->packed;
    if (x->swapped || x->cut.count != x->v->groups || g->k == 0)
        return;
    const Cut cut = packed_cut(x->cut.count, packed_columns(g->n));
    if (hlort_cut_parts(&cut) > POOL_MOST_PARTS)
        return;
    const PackedUse use = packed_use(p, x->cut.count * hlort_panels_bytes(hlort_bytes[x->type][IN], g->k, g->n));
    if (use == PACKED_NOT)
        return;
    x->packed = p->memory;
    if (use == PACKED_READ)
        return;
    Job fill = *x;
    fill.cut = cut;
    fill.packing = 1;
    pool_run(x->how->pool, part, &fill, hlort_cut_parts(&cut), x->how->work);
    packed_done(p);
}

/* The phases of a dilated base in bands, each of the image as it is. */
static int in_bands(const Job *x, const hlort_how *how)
{
    hlort_conv of[MOST_PHASES];
    int64_t    y_first[MOST_PHASES] = { 0 }, count = 1;
    for (int64_t d = 0; d < x->v->n_spatial; d++) {
        const int64_t n = count_phases(x->v, d);
        if (n > MOST_PHASES / count)
            return 0;
        count *= n;
    }
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = k;
        of[k] = *x->v;
        for (int64_t d = 0; d < x->v->n_spatial; d++) {
            const int64_t n = count_phases(x->v, d);
            const Phase   p = phase_at(x->v, d, rest % n);
            rest /= n;
            set_phase(&of[k], d, &p, &y_first[k]);
        }
        if (!hlort_conv_fits_bands(&of[k]))
            return 0;
    }
    for (int64_t k = 0; k < count; k++)
        if (!hlort_bands(x->set, x->type, &of[k], how, x->x, x->w, x->y + y_first[k] * hlort_bytes[x->type][OUT]))
            return 0;
    return 1;
}

void hlort_convolve(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y)
{
    Job j = { .v = v, .set = s, .type = type, .x = x, .w = w, .y = y, .images = 1, .how = how };
    if (is_empty(v) || hlort_winograd(s, type, v, how, x, w, y) || hlort_depthwise(s, type, v, how, x, w, y) ||
        hlort_gradient(s, type, v, how, x, w, y) || (hlort_conv_in_bands(v) && hlort_bands(s, type, v, how, x, w, y)) || (!how->epilogue && (hlort_spread(s, type, v, how, x, w, y) || in_bands(&j, how))))
        return;
    j.x_end = end_of_image(v, x, hlort_bytes[type][IN]);
    j.swapped = is_swapped(&j);
    j.images = j.swapped ? v->batch : 1;
    j.cut.count = j.images * v->groups;
    for (int64_t d = 0; d < v->n_spatial; d++) {
        j.phases[d] = count_phases(v, d);
        j.cut.count *= j.phases[d];
    }
    if (as_dot(&j, how))
        return;
    Member m;
    make_member(&j, 0, &m);
    if (how->packed)
        use_packed(&j, &m.g);
    hlort_cut(&j.cut, &m.g, pool_threads(how->pool));
    pool_run(how->pool, part, &j, hlort_cut_parts(&j.cut), how->work);
}

#define FUNCTION(name, type, in, out)                                                                          \
    void hlort_conv_##name(const hlort_conv *v, const hlort_how *how, const in *x, const in *w, out *y)        \
    {                                                                                                          \
        hlort_convolve(hlort_kernels(), type, v, how, x, w, y);                                                \
    }
FUNCTION(f32, GEMM_F32, float, float)
FUNCTION(f64, GEMM_F64, double, double)
FUNCTION(bf16, GEMM_BF16, uint16_t, uint16_t)
FUNCTION(bf16_f32, GEMM_BF16_F32, uint16_t, float)
FUNCTION(f16, GEMM_F16, uint16_t, uint16_t)
FUNCTION(f16_f32, GEMM_F16_F32, uint16_t, float)
FUNCTION(s32, GEMM_S32, uint32_t, uint32_t)
FUNCTION(s8_s32, GEMM_S8_S32, int8_t, uint32_t)
FUNCTION(u8_s32, GEMM_U8_S32, uint8_t, uint32_t)
#undef FUNCTION
