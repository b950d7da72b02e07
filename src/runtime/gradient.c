/* gradient.c - see gradient.h.
 *
 * For each block of terms, of whole lines where lines are short: panels of W are packed, and all units, some rows of one pixel, go through them. Units are divided among
 * threads; an element's blocks, and so the order of its sum, are the same however. */
#include "runtime/gradient.h"
#include "runtime/pool.h"
#include "runtime/vec.h"
#include "runtime/walk.h"

enum {
    TERMS_BYTES = 1536,   /* of a block, in words of a column */
    PANELS = 4,           /* of a block of columns */
    MOST_TERMS = TERMS_BYTES / 4,
    PARTS = 3,            /* for each thread */
    PANELS_BYTES = 256 * 1024, ASIDE_BYTES = 1024 * 1024 /* of working memory */
};
_Static_assert(PANELS_BYTES + ASIDE_BYTES <= HLORT_WORK_BYTES && TERMS_BYTES / 4 * PANELS * WALK_MOST_COLUMN_BYTES <= PANELS_BYTES, "work");

typedef struct Job {
    const hlort_conv  *v;
    const WalkKernels *kernels;
    const char        *x, *w;
    char              *y;
    int64_t            bytes;                       /* of an element */
    int64_t            n_outer, outer[HLORT_MOST_SPATIAL], last; /* dimensions: runs are along the last one */
    int64_t            terms, line, of_block;       /* of an element's sum, of a run, of a block */
    int64_t            groups_of_rows, units;       /* of a pixel; of all pixels */
    int64_t            columns, column_blocks;      /* of a block */
    int64_t            units_of_part, parts_of_block;
    int                aside;                       /* features are no neighbours in Y */
} Job;

/* Some units by a block of columns. */
typedef struct Part {
    const Job  *job;
    const char *x, *w;
    char       *y;       /* of the group, of the first column */
    int64_t     columns, first, n; /* units */
    char       *panels, *sums;
} Part;

static int64_t panel_columns(const Job *job)
{
    return job->kernels->columns[WALK_PANEL];
}

/* ---- W ---- */

/* Where term k is: distances of what is outside of its line, and how far along it. */
static int64_t find_term(const Job *job, int64_t k, int64_t *at_w, int64_t *t)
{
    const hlort_conv *v = job->v;
    const int64_t     along = k % job->line;
    int64_t           rest = k / job->line;
    *at_w = 0;
    for (int64_t e = job->n_outer - 1; e >= 0; e--) {
        const int64_t d = job->outer[e];
        t[d] = rest % v->spatial[d].window;
        rest /= v->spatial[d].window;
        *at_w += t[d] * v->spatial[d].w;
    }
    *at_w += rest * v->w_in;
    t[HLORT_MOST_SPATIAL] = rest;
    return along;
}

/* n terms of a line, `step` apart, of `columns` columns, `by` apart, as [term][width]. */
static void pack(char *to, const char *from, int64_t n, int64_t step, int64_t columns, int64_t by, int64_t width, int64_t bytes)
{
    if (by == 1) {
        for (int64_t q = 0; q < n; q++, to += width * bytes, from += step * bytes)
            __builtin_memcpy(to, from, (uint64_t)(columns * bytes));
    } else if (bytes == 4) {
        for (int64_t j = 0; j < columns; j++)
            for (int64_t q = 0; q < n; q++)
                __builtin_memcpy(to + (q * width + j) * 4, from + (q * step + j * by) * 4, 4);
    } else {
        for (int64_t j = 0; j < columns; j++)
            for (int64_t q = 0; q < n; q++)
                __builtin_memcpy(to + (q * width + j) * 8, from + (q * step + j * by) * 8, 8);
    }
}

/* Panels of terms k .. k + n - 1. What is behind their columns stays what it is: it is multiplied, and not kept. */
static void pack_panels(const Part *p, int64_t k, int64_t n)
{
    const Job        *job = p->job;
    const hlort_conv *v = job->v;
    const int64_t     whole = panel_columns(job), b = job->bytes;
    char             *to = p->panels;
    for (int64_t j = 0; j < p->columns; j += whole) {
        const int64_t columns = hlort_min(whole, p->columns - j), width = job->kernels->columns[walk_width(job->kernels, columns)];
        if (columns < width)
            __builtin_memset(to, 0, (uint64_t)(n * width * b));
        for (int64_t q = 0, some; q < n; q += some) {
            int64_t       at, t[HLORT_MOST_SPATIAL + 1];
            const int64_t along = find_term(job, k + q, &at, t);
            some = hlort_min(n - q, job->line - along);
            at += along * v->spatial[job->last].w + j * v->w_out;
            pack(to + q * width * b, p->w + at * b, some, v->spatial[job->last].w, columns, v->w_out, width, b);
        }
        to += n * width * b;
    }
}

/* ---- X ---- */

/* The runs of terms k .. k + n - 1 that pixel o has. */
static int64_t find_runs(const Job *job, const int64_t *o, int64_t k, int64_t n, WalkRun *runs)
{
    const hlort_conv *v = job->v;
    const int64_t     last = job->last, dilation = v->spatial[last].window_dilation, from = o[last] * v->spatial[last].stride - v->spatial[last].pad;
    const int64_t     low = hlort_max(0, hlort_ceildiv(-from, dilation)), high = hlort_ceildiv(v->spatial[last].in - from, dilation);
    int64_t           found = 0;
    for (int64_t q = 0, some; q < n; q += some) {
        int64_t       unused, t[HLORT_MOST_SPATIAL + 1];
        const int64_t along = find_term(job, k + q, &unused, t);
        some = hlort_min(n - q, job->line - along);
        int64_t a = t[HLORT_MOST_SPATIAL] * v->x_in, inside = 1;
        for (int64_t e = 0; e < job->n_outer; e++) {
            const int64_t d = job->outer[e], c = o[d] * v->spatial[d].stride - v->spatial[d].pad + t[d] * v->spatial[d].window_dilation;
            inside &= c >= 0 && c < v->spatial[d].in;
            a += c * v->spatial[d].x;
        }
        const int64_t first = hlort_max(along, low), end = hlort_min(along + some, high);
        if (inside && first < end)
            runs[found++] = (WalkRun){ a + (from + first * dilation) * v->spatial[last].x, q + first - along, end - first };
    }
    return found;
}

/* ---- units ---- */

/* The pixel of a unit and where it is in Y; returns its first row. */
static int64_t find_unit(const Job *job, int64_t unit, int64_t *o, int64_t *place, int64_t *rows)
{
    const hlort_conv *v = job->v;
    const int64_t     group = unit % job->groups_of_rows, row = v->batch * group / job->groups_of_rows;
    int64_t           rest = unit / job->groups_of_rows;
    *rows = v->batch * (group + 1) / job->groups_of_rows - row;
    *place = row * v->y_batch;
    for (int64_t d = v->n_spatial - 1; d >= 0; d--) {
        o[d] = rest % v->spatial[d].out;
        rest /= v->spatial[d].out;
        *place += o[d] * v->spatial[d].y;
    }
    return row;
}

/* Sums of `rows` rows from or to a tile of so many columns. */
static void copy_rows(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows, int64_t columns, int64_t bytes)
{
    for (int64_t r = 0; r < rows; r++)
        __builtin_memcpy(to + r * to_row * bytes, from + r * from_row * bytes, (uint64_t)(columns * bytes));
}

/* A unit by all panels of a block of terms. */
static void sum_unit(const Part *p, Walk *w, int64_t number, int64_t place, int64_t n)
{
    const Job        *job = p->job;
    const hlort_conv *v = job->v;
    const int64_t     whole = panel_columns(job), b = job->bytes, panels = hlort_ceildiv(p->columns, whole);
    char              edge[WALK_MOST_ROWS * WALK_MOST_COLUMN_BYTES] __attribute__((aligned(64)));
    const char       *panel = p->panels;
    for (int64_t j = 0; j < p->columns; j += whole) {
        const int64_t columns = hlort_min(whole, p->columns - j);
        w->width = walk_width(job->kernels, columns);
        const int64_t width = job->kernels->columns[w->width];
        char         *y = p->y + (place + j * v->y_out) * b;
        w->b = panel;
        w->c = job->aside ? p->sums + ((number * panels + j / whole) * WALK_MOST_ROWS * whole) * b : columns == width ? y : edge;
        w->c_row = job->aside ? whole : columns == width ? v->y_batch : width;
        if (w->c == edge && w->add)
            copy_rows(edge, width, y, v->y_batch, w->rows, columns, b);
        job->kernels->run(w);
        if (w->c == edge)
            copy_rows(y, v->y_batch, edge, width, w->rows, columns, b);
        panel += n * width * b;
    }
}

/* Sums that were made aside go to Y. */
static void place_sums(const Part *p, int64_t first, int64_t units)
{
    const Job        *job = p->job;
    const hlort_conv *v = job->v;
    const int64_t     whole = panel_columns(job), b = job->bytes, panels = hlort_ceildiv(p->columns, whole);
    for (int64_t u = 0; u < units; u++) {
        int64_t o[HLORT_MOST_SPATIAL], place, rows;
        find_unit(job, first + u, o, &place, &rows);
        for (int64_t j = 0; j < p->columns; j++) {
            const char *from = p->sums + ((u * panels + j / whole) * WALK_MOST_ROWS * whole + j % whole) * b;
            char       *to = p->y + (place + j * v->y_out) * b;
            for (int64_t r = 0; r < rows; r++)
                __builtin_memcpy(to + r * v->y_batch * b, from + r * whole * b, (uint64_t)b);
        }
    }
}

static void sum_units(const Part *p, int64_t first, int64_t units)
{
    const Job        *job = p->job;
    const hlort_conv *v = job->v;
    for (int64_t k = 0, n; k < job->terms; k += n) {
        WalkRun runs[MOST_TERMS];
        Walk    w = { .a_row = v->x_batch, .a_step = v->spatial[job->last].window_dilation * v->spatial[job->last].x, .runs = runs, .add = k > 0 };
        n = hlort_min(job->of_block, job->terms - k);
        pack_panels(p, k, n);
        for (int64_t u = 0; u < units; u++) {
            int64_t       o[HLORT_MOST_SPATIAL], place;
            const int64_t row = find_unit(job, first + u, o, &place, &w.rows);
            if (row == 0 || u == 0)
                w.n_runs = find_runs(job, o, k, n, runs);
            w.a = p->x + row * v->x_batch * job->bytes;
            if (w.n_runs > 0 || !w.add)
                sum_unit(p, &w, u, place, n);
        }
    }
    if (job->aside)
        place_sums(p, first, units);
}

static void part(void *data, int64_t number, void *work)
{
    const Job        *job = data;
    const hlort_conv *v = job->v;
    const int64_t     block = number / job->parts_of_block, group = block / job->column_blocks, column = block % job->column_blocks * job->columns;
    const int64_t     first = number % job->parts_of_block * job->units_of_part, end = hlort_min(job->units, first + job->units_of_part);
    Part              p = { .job = job,
                            .x = job->x + group * v->x_group * job->bytes,
                            .w = job->w + (v->w_first + group * v->w_group + column * v->w_out) * job->bytes,
                            .y = job->y + (group * v->y_group + column * v->y_out) * job->bytes,
                            .columns = hlort_min(job->columns, v->out - column),
                            .panels = work,
                            .sums = (char *)work + PANELS_BYTES };
    const int64_t     unit_bytes = PANELS * WALK_MOST_ROWS * panel_columns(job) * job->bytes, most = job->aside ? ASIDE_BYTES / unit_bytes : job->units;
    for (int64_t u = first, n; u < end; u += n) {
        n = hlort_min(most, end - u);
        sum_units(&p, u, n);
    }
}

/* ---- all of them ---- */

static void divide(Job *x, int threads)
{
    const hlort_conv *v = x->v;
    x->line = v->spatial[x->last].window;
    x->terms = v->in;
    for (int64_t d = 0; d < v->n_spatial; d++) {
        x->terms *= v->spatial[d].window;
        if (d != x->last)
            x->outer[x->n_outer++] = d;
    }
    const int64_t most = TERMS_BYTES / x->bytes;
    x->of_block = hlort_even(x->terms, most, 1);
    if (x->line <= most / 2)
        x->of_block = hlort_even(x->terms / x->line, most / x->line, 1) * x->line;
    x->groups_of_rows = hlort_ceildiv(v->batch, x->kernels->rows);
    x->units = x->groups_of_rows;
    for (int64_t d = 0; d < v->n_spatial; d++)
        x->units *= v->spatial[d].out;
    x->columns = hlort_even(v->out, PANELS * panel_columns(x), panel_columns(x));
    x->column_blocks = hlort_ceildiv(v->out, x->columns);
    const int64_t blocks = v->groups * x->column_blocks, wanted = threads == 1 ? 1 : hlort_ceildiv(PARTS * threads, blocks);
    x->units_of_part = hlort_ceildiv(x->units, hlort_min(wanted, x->units));
    x->parts_of_block = hlort_ceildiv(x->units, x->units_of_part);
    x->aside = v->y_out != 1;
}

int hlort_gradient(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y)
{
    Job job = { .v = v, .kernels = type == GEMM_F32 || type == GEMM_F64 ? walk_kernels(s, type) : 0, .x = x, .w = w, .y = y, .bytes = hlort_bytes[type][0], .last = hlort_conv_gradient(v) };
    if (!job.kernels || how->epilogue || job.last < 0)
        return 0;
    divide(&job, pool_threads(how->pool));
    if (v->groups * job.column_blocks > POOL_MOST_PARTS / job.parts_of_block)
        return 0;
    pool_run(how->pool, part, &job, v->groups * job.column_blocks * job.parts_of_block, how->work);
    return 1;
}
