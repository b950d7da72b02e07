/* depthwise.c - see depthwise.h. A row is what the last spatial dimension goes through; parts are rows, and an element's sum is the same whatever part it is in. */
#include "runtime/depthwise.h"
#include "runtime/pool.h"
#include "runtime/vec.h"

enum {
    TILE_BYTES = 64 * 1024,  /* of sums that are not made in Y; the kernel is behind them */
    PARTS = 4,               /* for each thread */
    LARGE = 4 << 20,         /* bytes of an image */
    LINE = 64
};

enum { IN, OUT };

typedef struct Job {
    const hlort_conv *v;
    const KernelSet  *set;
    GemmType          type;
    const char       *x, *w;
    char             *y;
    const hlort_how  *how;
    PixelsFunction   *run;
    int64_t           rows, rows_of_part;
    int               large;         /* the image */
} Job;

/* A row, and the kernel as it is read. */
typedef struct Row {
    const Job *job;
    int64_t    w_step[HLORT_MOST_SPATIAL];
    PixelRun   run;
    int64_t    whole, whole_end; /* pixels of a row that have all taps */
    int64_t    place;            /* in Y */
    char      *tile;
} Row;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : 0;
}

/* Taps of dimension d that pixel o has: first .. end - 1. */
static void find_taps(const hlort_conv *v, int64_t d, int64_t o, int64_t *first, int64_t *end)
{
    const int64_t at = o * v->spatial[d].stride - v->spatial[d].pad, dilation = v->spatial[d].window_dilation;
    *first = ceil_div(-at, dilation);
    *end = hlort_min(v->spatial[d].window, ceil_div(v->spatial[d].in - at, dilation));
}

/* The kernel as [tap][channel]. */
static const char *copy_kernel(const Job *job, Row *row, char *to)
{
    const hlort_conv *v = job->v;
    const int64_t     bytes = hlort_bytes[job->type][IN];
    int64_t           taps = 1;
    for (int64_t d = v->n_spatial - 1; d >= 0; d--) {
        row->w_step[d] = taps * v->groups;
        taps *= v->spatial[d].window;
    }
    for (int64_t t = 0; t < taps; t++) {
        const char *from = job->w + v->w_first * bytes;
        char       *out = to + t * v->groups * bytes;
        for (int64_t d = v->n_spatial - 1, rest = t; d >= 0; rest /= v->spatial[d--].window)
            from += rest % v->spatial[d].window * v->spatial[d].w * bytes;
        if (bytes == 4)
            for (int64_t c = 0; c < v->groups; c++)
                __builtin_memcpy(out + c * 4, from + c * v->w_group * 4, 4);
        else
            for (int64_t c = 0; c < v->groups; c++)
                __builtin_memcpy(out + c * bytes, from + c * v->w_group * bytes, (uint64_t)bytes);
    }
    return to;
}

/* Hands on what was made of pixels first .. first + n - 1. */
static void finish(const Row *row, int64_t first, int64_t n)
{
    const Job       *job = row->job;
    const hlort_how *how = job->how;
    const PixelRun  *r = &row->run;
    const int64_t    by = job->v->spatial[job->v->n_spatial - 1].y, at = row->place + first * by;
    if (how->epilogue)
        how->epilogue(how->context, &(hlort_tile){ .sums = r->sums, .stride = r->stride, .row = first, .rows = n, .columns = r->channels,
                                                   .place = at, .by = by });
    if (job->y && job->set->narrow[job->type])
        for (int64_t p = 0; p < n; p++)
            job->set->narrow[job->type]((uint16_t *)(void *)job->y + at + p * by, (const float *)r->sums + p * r->stride, r->channels);
}

/* Pixels first .. end - 1: those that have all taps at once, others one by one. */
static void sum_pixels(const Row *row, int64_t first, int64_t end)
{
    const hlort_conv *v = row->job->v;
    const int64_t     d = v->n_spatial - 1, bytes = hlort_sum_bytes(row->job->type);
    for (int64_t o = first; o < end;) {
        const int64_t next = o >= row->whole && o < row->whole_end ? hlort_min(end, row->whole_end) : o + 1;
        int64_t       from, to;
        find_taps(v, d, o, &from, &to);
        PixelRun r = row->run;
        r.sums = (char *)r.sums + (o - first) * r.stride * bytes;
        r.taps = to - from;
        r.x_first += (o * v->spatial[d].stride - v->spatial[d].pad + from * v->spatial[d].window_dilation) * v->spatial[d].x;
        r.w_first += from * r.w_tap;
        r.pixels = next - o;
        row->job->run(&r);
        o = next;
    }
}

/* What the other dimensions say of a row: its taps, and its place. */
static void find_row(Row *row, int64_t number, int64_t *x_outer, int64_t *w_outer)
{
    const hlort_conv *v = row->job->v;
    int64_t           o[HLORT_MOST_SPATIAL], n = 1;
    for (int64_t d = v->n_spatial - 2; d >= 0; number /= v->spatial[d--].out)
        o[d] = number % v->spatial[d].out;
    x_outer[0] = number * v->x_batch;
    w_outer[0] = 0;
    row->place = number * v->y_batch;
    for (int64_t d = 0; d < v->n_spatial - 1; d++) {
        int64_t from, to;
        find_taps(v, d, o[d], &from, &to);
        n = to > from ? n * (to - from) : 0;
        for (int64_t k = n - 1; k >= 0; k--) { /* from the end on: what it is made of stands in front */
            const int64_t t = from + k % (to - from), of = k / (to - from);
            x_outer[k] = x_outer[of] + (o[d] * v->spatial[d].stride - v->spatial[d].pad + t * v->spatial[d].window_dilation) * v->spatial[d].x;
            w_outer[k] = w_outer[of] + t * row->w_step[d];
        }
        row->place += o[d] * v->spatial[d].y;
    }
    row->run.n_outer = n;
    row->run.x_outer = x_outer;
    row->run.w_outer = w_outer;
}

/* Brings what the next row needs of a large image: by itself the processor follows too few of the lines that a row meets. */
static void fetch_next(const Row *row)
{
    const Job        *job = row->job;
    const hlort_conv *v = job->v;
    const int64_t     last = v->n_spatial - 1, bytes = hlort_bytes[job->type][IN], lines = v->spatial[0].stride;
    const char       *next = job->x + (row->run.x_outer[row->run.n_outer - 1] + lines * v->spatial[0].x) * bytes;
    for (int64_t b = 0; b < lines * v->spatial[last].in * v->spatial[last].x * bytes; b += LINE)
        __builtin_prefetch(next + b, 0, 2);
}

static void sum_row(Row *row, int64_t number)
{
    const Job        *job = row->job;
    const hlort_conv *v = job->v;
    const int64_t     last = v->n_spatial - 1, bytes = hlort_sum_bytes(job->type);
    int64_t           x_outer[HLORT_MOST_OUTER], w_outer[HLORT_MOST_OUTER];
    find_row(row, number, x_outer, w_outer);
    const int     aside = !job->y || job->set->narrow[job->type];
    const int64_t by = v->spatial[last].y, pixels = v->spatial[last].out, most = aside ? TILE_BYTES / (v->groups * bytes) : pixels;
    row->run.stride = aside ? v->groups : by;
    if (job->large && row->run.n_outer > 0)
        fetch_next(row);
    for (int64_t first = 0; first < pixels; first += most) {
        row->run.sums = aside ? row->tile : job->y + (row->place + first * by) * bytes;
        sum_pixels(row, first, hlort_min(first + most, pixels));
        finish(row, first, hlort_min(most, pixels - first));
    }
}

/* Pixels of a row that have all taps of it. */
static void find_whole(Row *row)
{
    const hlort_conv *v = row->job->v;
    const int64_t     d = v->n_spatial - 1, room = v->spatial[d].in - 1 + v->spatial[d].pad - (v->spatial[d].window - 1) * v->spatial[d].window_dilation;
    row->whole = ceil_div(v->spatial[d].pad, v->spatial[d].stride);
    row->whole_end = room < 0 ? 0 : room / v->spatial[d].stride + 1;
}

static void part(void *data, int64_t number, void *work)
{
    const Job        *job = data;
    const hlort_conv *v = job->v;
    const int64_t     last = v->n_spatial - 1, first = number * job->rows_of_part, end = hlort_min(first + job->rows_of_part, job->rows);
    Row               row = { .job = job, .tile = work };
    find_whole(&row);
    row.run = (PixelRun){ .x = job->x, .channels = v->groups, .x_tap = v->spatial[last].window_dilation * v->spatial[last].x, .x_pixel = v->spatial[last].stride * v->spatial[last].x };
    if (v->w_group == 1) {
        row.run.w = job->w;
        row.run.w_first = v->w_first;
        for (int64_t d = 0; d <= last; d++)
            row.w_step[d] = v->spatial[d].w;
    } else {
        row.run.w = copy_kernel(job, &row, (char *)work + TILE_BYTES);
    }
    row.run.w_tap = row.w_step[last];
    for (int64_t k = first; k < end; k++)
        sum_row(&row, k);
}

int hlort_depthwise(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y)
{
    const KernelSet *set = s->depthwise[type] ? s : s->rest;
    Job              job = { .v = v, .set = s, .type = type, .x = x, .w = w, .y = y, .how = how, .run = set ? set->depthwise[type] : 0, .rows = v->batch };
    if (!job.run || !hlort_conv_by_channel(v))
        return 0;
    for (int64_t d = 0; d < v->n_spatial - 1; d++)
        job.rows *= v->spatial[d].out;
    job.large = v->n_spatial > 1 && job.rows * v->spatial[v->n_spatial - 1].in * v->groups * hlort_bytes[type][IN] > LARGE;
    const int64_t threads = pool_threads(how->pool), parts = threads == 1 ? 1 : hlort_min(job.rows, threads * PARTS);
    job.rows_of_part = hlort_ceildiv(job.rows, parts);
    pool_run(how->pool, part, &job, hlort_ceildiv(job.rows, job.rows_of_part), how->work);
    return 1;
}
