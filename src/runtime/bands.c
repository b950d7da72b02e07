/* bands.c - see bands.h. A band is some pixels of some lines: of the last dimension and of the one before it; of others it has one pixel each.
 *
 * The border is zeros. Products with them would show where the kernel has infinities or NaN: then this is left to others. */
#include "runtime/bands.h"
#include "runtime/pool.h"
#include "runtime/vec.h"
#include "runtime/walk.h"

enum {
    PARTS = 4,            /* for each thread */
    TILES = 16,           /* of pixels, of a band's line, at most */
    TOGETHER_MOST = 16,   /* features, where an instruction multiplies several products of narrow words, which is twice as fast when it has many */
    FEW_LINES = 4,        /* of a band, of which neighbours have others in common */
    STAGE_BYTES = 256 * 1024, KERNEL_BYTES = 1024 * 1024 /* of working memory */
};
_Static_assert(STAGE_BYTES + KERNEL_BYTES <= HLORT_WORK_BYTES, "work");
_Static_assert(HLORT_MOST_BAND * sizeof(double) <= STAGE_BYTES, "work");

enum { IN, OUT };

typedef struct Job {
    const hlort_conv  *v;
    const KernelSet   *set;
    const WalkKernels *kernels;
    GemmType           type;
    const char        *x, *w;
    char              *y;
    int64_t            last, terms;                           /* the dimension of lines; of a sum */
    int64_t            band[HLORT_MOST_SPATIAL];              /* pixels */
    int64_t            bands[HLORT_MOST_SPATIAL], of_image, all, of_part; /* of an image; of all images and blocks of groups */
    int64_t            groups, group_bytes;                   /* of a block; of a group's panels */
    int64_t            staged[HLORT_MOST_SPATIAL], by[HLORT_MOST_SPATIAL]; /* pixels of the image for a band, and their distances */
    WalkRun            runs[HLORT_MOST_BAND_RUNS];
    int64_t            n_runs;
} Job;

/* ---- the kernel ---- */

/* Where the weights of run `number` of a window begin, as the runs are numbered. */
static int64_t find_weights(const Job *job, int64_t number)
{
    const hlort_conv *v = job->v;
    int64_t           at = 0;
    for (int64_t d = v->n_spatial - 1; d >= 0; d--) {
        const int64_t n = d == job->last && v->spatial[d].window_dilation == 1 ? 1 : v->spatial[d].window;
        at += number % n * v->spatial[d].w;
        number /= n;
    }
    return at;
}

static int64_t panel_of(const Job *job, int64_t column, WalkWidth *width)
{
    const int64_t n = hlort_min(job->kernels->columns[WALK_PANEL], job->v->out - column);
    *width = walk_width(job->kernels, n);
    return n;
}

#define COPY(name, T)                                                            \
    static void name(char *to, const char *from, int64_t by, int64_t n)          \
    {                                                                            \
        for (int64_t q = 0; q < n; q++)                                          \
            __builtin_memcpy(to + q * (int64_t)sizeof(T), from + q * by, sizeof(T)); \
    }
typedef struct Two { uint64_t v[2]; } Two;
typedef struct Four { uint64_t v[4]; } Four;
typedef struct Eight { uint64_t v[8]; } Eight;
COPY(copy_2, uint16_t)
COPY(copy_4, uint32_t)
COPY(copy_8, uint64_t)
COPY(copy_16, Two)
COPY(copy_32, Four)
COPY(copy_64, Eight)
#undef COPY

/* n pieces of `bytes` bytes, `by` bytes apart. */
static void copy_pieces(char *to, const char *from, int64_t bytes, int64_t by, int64_t n)
{
    if (bytes == by) {
        __builtin_memcpy(to, from, (uint64_t)(n * bytes));
        return;
    }
    switch (bytes) {
    case 2: copy_2(to, from, by, n); return;
    case 4: copy_4(to, from, by, n); return;
    case 8: copy_8(to, from, by, n); return;
    case 16: copy_16(to, from, by, n); return;
    case 32: copy_32(to, from, by, n); return;
    case 64: copy_64(to, from, by, n); return;
    }
    for (int64_t q = 0; q < n; q++)
        __builtin_memcpy(to + q * bytes, from + q * by, (uint64_t)bytes);
}

/* n times m elements as words, `by` and `step` apart. */
static void copy_elements(const Job *job, char *to, const char *from, int64_t by, int64_t n, int64_t step, int64_t m)
{
    enum { SOME = 1024 };
    const int64_t bytes = hlort_bytes[job->type][IN];
    if (step != 1 && m > 1) {
        for (int64_t q = 0; q < n; q++)
            copy_elements(job, to + q * m * hlort_sum_bytes(job->type), from + q * by * bytes, step, m, 1, 1);
        return;
    }
    if (!job->set->widen[job->type]) {
        copy_pieces(to, from, m * bytes, by * bytes, n);
        return;
    }
    if (m == by || m > SOME) { /* neighbours */
        for (int64_t q = 0; q < (m == by ? 1 : n); q++)
            job->set->widen[job->type]((float *)(void *)to + q * m, (const uint16_t *)(const void *)from + q * by, m == by ? n * m : m);
        return;
    }
    for (int64_t q = 0, some; q < n; q += some) {
        uint16_t few[SOME];
        some = hlort_min(SOME / m, n - q);
        copy_pieces((char *)few, from + q * by * 2, m * 2, by * 2, some);
        job->set->widen[job->type]((float *)(void *)to + q * m, few, some * m);
    }
}

/* A group's panels: [panel][term][width]. */
static void pack_kernel(const Job *job, const char *w, char *to)
{
    const hlort_conv *v = job->v;
    const int64_t     in = hlort_bytes[job->type][IN], word = hlort_sum_bytes(job->type);
    for (int64_t j = 0, n; j < v->out; j += n) {
        WalkWidth     width;
        int64_t       columns;
        n = panel_of(job, j, &width);
        columns = job->kernels->columns[width];
        if (n < columns)
            __builtin_memset(to, 0, (uint64_t)(job->terms * columns * word));
        for (int64_t r = 0; r < job->n_runs; r++) {
            const int64_t at = find_weights(job, r) + j * v->w_out;
            for (int64_t q = 0; q < job->runs[r].n; q++, to += columns * word)
                copy_elements(job, to, w + (at + q / v->in * v->spatial[job->last].w + q % v->in * v->w_in) * in, v->w_out, n, 1, 1);
        }
    }
}

/* An exponent of ones lies in the last 16 bits of an element: lanes that hold others equal nothing. */
typedef struct Ones {
    uint16_t bits;
    uint16_t mask[8], same[8];
} Ones;

static void set_ones(Ones *o, GemmType type)
{
    const int64_t parts = hlort_bytes[type][IN] / 2;
    o->bits = type == GEMM_F64 ? 0x7ff0 : type == GEMM_F16 || type == GEMM_F16_F32 ? 0x7c00 : 0x7f80;
    for (int64_t l = 0; l < 8; l++) {
        const int last = l % parts == parts - 1;
        o->mask[l] = last ? o->bits : 0;
        o->same[l] = last ? o->bits : 1;
    }
}

static int are_finite(const Ones *o, const char *from, int64_t bytes, int64_t by, int64_t n)
{
    typedef uint16_t Lanes __attribute__((vector_size(16)));
    Lanes            mask, same, odd = { 0 };
    const int64_t    whole = by == 1 ? n * bytes / 16 * 16 : 0;
    uint64_t         any[2];
    __builtin_memcpy(&mask, o->mask, sizeof mask);
    __builtin_memcpy(&same, o->same, sizeof same);
    for (int64_t at = 0; at < whole; at += 16) {
        Lanes x;
        __builtin_memcpy(&x, from + at, sizeof x);
        odd |= (Lanes)((x & mask) == same);
    }
    __builtin_memcpy(any, &odd, sizeof any);
    for (int64_t q = whole / bytes; q < n; q++) {
        uint16_t x;
        __builtin_memcpy(&x, from + q * by * bytes + bytes - 2, sizeof x);
        any[0] |= (x & o->bits) == o->bits;
    }
    return !(any[0] | any[1]);
}

static int kernel_is_finite(const Job *job)
{
    const hlort_conv *v = job->v;
    const int64_t     in = hlort_bytes[job->type][IN], tap = v->spatial[job->last].w;
    const int         lines = v->w_out == 1 && v->w_in == v->out; /* of a tap, one behind the other */
    Ones              ones;
    set_ones(&ones, job->type);
    for (int64_t g = 0; g < v->groups; g++)
        for (int64_t r = 0; r < job->n_runs; r++) {
            const int64_t at = v->w_first + g * v->w_group + find_weights(job, r), pixels = job->runs[r].n / v->in;
            for (int64_t q = 0; q < pixels; q++)
                for (int64_t e = 0; e < (lines ? 1 : v->in); e++)
                    if (!are_finite(&ones, job->w + (at + q * tap + e * v->w_in) * in, in, v->w_out, lines ? v->in * v->out : v->out))
                        return 0;
        }
    return 1;
}

/* ---- the image ---- */

/* Staged pixels of a line from coordinate `first` on; from: coordinate 0. */
static void stage_line(const Job *job, char *to, const char *from, int64_t first)
{
    const hlort_conv *v = job->v;
    const int64_t     d = job->last, n = job->staged[d], in = hlort_bytes[job->type][IN], pixel = v->in * hlort_sum_bytes(job->type);
    const int64_t     low = first < 0 ? hlort_min(-first, n) : 0, high = hlort_max(low, hlort_min(n, v->spatial[d].in - first));
    __builtin_memset(to, 0, (uint64_t)(low * pixel));
    from += (first + low) * v->spatial[d].x * in;
    copy_elements(job, to + low * pixel, from, v->spatial[d].x, high - low, v->x_in, v->in);
    __builtin_memset(to + high * pixel, 0, (uint64_t)((n - high) * pixel));
}

/* What the band that begins at pixel o needs. */
static void stage(const Job *job, const int64_t *o, const char *x, char *to)
{
    const hlort_conv *v = job->v;
    const int64_t     in = hlort_bytes[job->type][IN], line = job->staged[job->last] * v->in * hlort_sum_bytes(job->type);
    int64_t           lines = 1;
    for (int64_t d = 0; d < job->last; d++)
        lines *= job->staged[d];
    for (int64_t k = 0; k < lines; k++, to += line) {
        int64_t rest = k, at = 0, inside = 1;
        for (int64_t d = job->last - 1; d >= 0; d--) {
            const int64_t c = o[d] * v->spatial[d].stride - v->spatial[d].pad + rest % job->staged[d];
            rest /= job->staged[d];
            inside &= c >= 0 && c < v->spatial[d].in;
            at += c * v->spatial[d].x;
        }
        if (inside)
            stage_line(job, to, x + at * in, o[job->last] * v->spatial[job->last].stride - v->spatial[job->last].pad);
        else
            __builtin_memset(to, 0, (uint64_t)line);
    }
}

/* ---- bands ---- */

/* Sums of a tile that lie aside go to Y. */
static void finish_tile(const Job *job, const Walk *w, int64_t columns, char *y)
{
    const int64_t by = job->v->spatial[job->last].y, out = hlort_bytes[job->type][OUT], sum = hlort_sum_bytes(job->type);
    for (int64_t r = 0; r < w->rows; r++) {
        const char *from = (const char *)w->c + r * w->c_row * sum;
        char       *to = y + r * by * out;
        if (job->set->narrow[job->type])
            job->set->narrow[job->type]((uint16_t *)(void *)to, (const float *)(const void *)from, columns);
        else
            __builtin_memcpy(to, from, (uint64_t)(columns * sum));
    }
}

/* n pixels of a line, staged from a on: all of them by a panel, which stays in the first cache. */
static void sum_line(const Job *job, const char *a, const char *kernel, int64_t n, char *y)
{
    const hlort_conv *v = job->v;
    const int64_t     word = hlort_sum_bytes(job->type), out = hlort_bytes[job->type][OUT], step = v->spatial[job->last].stride * v->in, tiles = hlort_ceildiv(n, job->kernels->rows);
    for (int64_t j = 0, columns; j < v->out; j += columns) {
        char edge[WALK_MOST_ROWS * WALK_MOST_COLUMN_BYTES] __attribute__((aligned(64)));
        Walk w = { .b = kernel, .a_row = step, .a_step = 1, .runs = job->runs, .n_runs = job->n_runs };
        columns = panel_of(job, j, &w.width);
        const int64_t width = job->kernels->columns[w.width];
        const int     aside = columns < width || job->set->narrow[job->type];
        w.c_row = aside ? width : v->spatial[job->last].y;
        for (int64_t t = 0, first = 0; t < tiles; t++, first += w.rows) {
            char *to = y + (first * v->spatial[job->last].y + j) * out;
            w.a = a + first * step * word;
            w.rows = n * (t + 1) / tiles - first;
            w.c = aside ? edge : to;
            job->kernels->run(&w);
            if (aside)
                finish_tile(job, &w, columns, to);
        }
        kernel += job->terms * width * word;
    }
}

static void sum_band(const Job *job, int64_t number, const char *x, const char *kernel, char *stage_at, char *y)
{
    const hlort_conv *v = job->v;
    int64_t           o[HLORT_MOST_SPATIAL], rest = number;
    for (int64_t d = job->last; d >= 0; d--) {
        o[d] = rest % job->bands[d] * job->band[d];
        rest /= job->bands[d];
        y += o[d] * v->spatial[d].y * hlort_bytes[job->type][OUT];
    }
    stage(job, o, x, stage_at);
    const int64_t above = job->last - 1, lines = above < 0 ? 1 : hlort_min(job->band[above], v->spatial[above].out - o[above]);
    for (int64_t k = 0; k < lines; k++) {
        const int64_t a = above < 0 ? 0 : k * v->spatial[above].stride * job->by[above], to = above < 0 ? 0 : k * v->spatial[above].y;
        sum_line(job, stage_at + a * hlort_sum_bytes(job->type), kernel, hlort_min(job->band[job->last], v->spatial[job->last].out - o[job->last]),
                 y + to * hlort_bytes[job->type][OUT]);
    }
}

static void part(void *data, int64_t number, void *work)
{
    const Job        *job = data;
    const hlort_conv *v = job->v;
    const int64_t     in = hlort_bytes[job->type][IN], out = hlort_bytes[job->type][OUT], of_block = job->of_image * v->batch;
    const int64_t     first = number * job->of_part, end = hlort_min(job->all, first + job->of_part);
    char             *kernels = (char *)work + STAGE_BYTES;
    for (int64_t k = first; k < end; k++) {
        const int64_t group = k / of_block * job->groups, groups = hlort_min(job->groups, v->groups - group), image = k % of_block / job->of_image;
        if (k == first || k % of_block == 0)
            for (int64_t g = 0; g < groups; g++)
                pack_kernel(job, job->w + (v->w_first + (group + g) * v->w_group) * in, kernels + g * job->group_bytes);
        for (int64_t g = 0; g < groups; g++)
            sum_band(job, k % job->of_image, job->x + (image * v->x_batch + (group + g) * v->x_group) * in, kernels + g * job->group_bytes, work,
                     job->y + (image * v->y_batch + (group + g) * v->y_group) * out);
    }
}

/* ---- all of them ---- */

/* Pixels of the image along d that n pixels of the result need. */
static int64_t reach(const hlort_conv *v, int64_t d, int64_t n)
{
    return (n - 1) * v->spatial[d].stride + (v->spatial[d].window - 1) * v->spatial[d].window_dilation + 1;
}

/* As many lines as fit, of all groups of a block into the second cache, and as leave every thread some bands. */
static void choose_bands(Job *job, int threads)
{
    const hlort_conv *v = job->v;
    const int64_t     last = job->last, above = last - 1, tile = job->kernels->rows;
    int64_t           others = v->in, members = v->batch * hlort_ceildiv(v->groups, job->groups);
    for (int64_t d = 0; d < v->n_spatial; d++) {
        job->band[d] = 1;
        others *= d < last ? reach(v, d, 1) : 1;
        members *= d < above ? v->spatial[d].out : 1;
    }
    int64_t n = hlort_even(v->spatial[last].out, TILES * tile, tile);
    while (n > tile && others * reach(v, last, n) > HLORT_MOST_BAND)
        n -= tile;
    job->band[last] = hlort_min(n, v->spatial[last].out);
    if (above >= 0) {
        const int64_t line = others / reach(v, above, 1) * reach(v, last, job->band[last]), wanted = threads == 1 ? 1 : hlort_ceildiv(PARTS * threads, members);
        int64_t       lines = hlort_ceildiv(v->spatial[above].out, hlort_min(wanted, v->spatial[above].out));
        while (lines > 1 && line * reach(v, above, lines) > HLORT_MOST_BAND)
            lines = hlort_ceildiv(lines, 2);
        while (lines > FEW_LINES && line * reach(v, above, lines) * job->groups > HLORT_MOST_BAND)
            lines = hlort_ceildiv(lines, 2);
        job->band[above] = lines;
    }
    job->of_image = 1;
    int64_t by = v->in;
    for (int64_t d = last; d >= 0; d--) {
        job->bands[d] = hlort_ceildiv(v->spatial[d].out, job->band[d]);
        job->of_image *= job->bands[d];
        job->staged[d] = reach(v, d, job->band[d]);
        job->by[d] = by;
        by *= job->staged[d];
    }
    job->all = hlort_ceildiv(v->groups, job->groups) * v->batch * job->of_image;
    const int64_t parts = threads == 1 ? 1 : hlort_min(job->all, hlort_min(PARTS * threads, POOL_MOST_PARTS));
    job->of_part = hlort_ceildiv(job->all, parts);
}

/* Groups whose panels fit. */
static void choose_groups(Job *job)
{
    const hlort_conv *v = job->v;
    for (int64_t j = 0, n; j < v->out; j += n) {
        WalkWidth width;
        n = panel_of(job, j, &width);
        job->group_bytes += job->terms * job->kernels->columns[width] * hlort_sum_bytes(job->type);
    }
    job->groups = hlort_min(v->groups, KERNEL_BYTES / job->group_bytes);
}

static void find_runs(Job *job)
{
    const hlort_conv *v = job->v;
    const int64_t     last = job->last, whole = v->spatial[last].window_dilation == 1;
    const int64_t     n = whole ? v->spatial[last].window * v->in : v->in;
    for (int64_t r = 0; r < job->n_runs; r++) {
        int64_t a = 0, rest = r;
        for (int64_t d = last; d >= 0; d--) {
            const int64_t taps = d == last && whole ? 1 : v->spatial[d].window;
            a += rest % taps * v->spatial[d].window_dilation * job->by[d];
            rest /= taps;
        }
        job->runs[r] = (WalkRun){ a, r * n, n };
    }
}

/* Whether pixels' windows reach beyond the image. */
static int has_border(const hlort_conv *v)
{
    for (int64_t d = 0; d < v->n_spatial; d++)
        if (v->spatial[d].pad > 0 || reach(v, d, v->spatial[d].out) - v->spatial[d].pad > v->spatial[d].in)
            return 1;
    return 0;
}

int hlort_bands(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y)
{
    Job job = { .v = v, .set = s, .kernels = walk_kernels(s, type), .type = type, .x = x, .w = w, .y = y, .last = v->n_spatial - 1 };
    if (!job.kernels || how->epilogue || !hlort_conv_fits_bands(v) || (s->together[type] && v->out > TOGETHER_MOST))
        return 0;
    job.n_runs = v->spatial[job.last].window_dilation == 1 ? 1 : v->spatial[job.last].window;
    job.terms = v->in * v->spatial[job.last].window;
    for (int64_t d = 0; d < job.last; d++) {
        job.n_runs *= v->spatial[d].window;
        job.terms *= v->spatial[d].window;
    }
    choose_groups(&job);
    if (job.groups == 0)
        return 0;
    choose_bands(&job, pool_threads(how->pool));
    find_runs(&job);
    if (has_border(v) && !kernel_is_finite(&job))
        return 0;
    pool_run(how->pool, part, &job, hlort_ceildiv(job.all, job.of_part), how->work);
    return 1;
}
