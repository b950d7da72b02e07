/* winograd.c - see winograd.h. Blocks of tiles and of features are parts for threads; sizes alone decide what they are. */
#include "runtime/winograd.h"
#include "runtime/packed.h"
#include "runtime/vec.h"

enum { PARTS = 16384 };

typedef struct Job {
    Winograd          g;
    const KernelSet  *set;
    WinogradFunction *block;
    int64_t           tiles, tiles_of_block, blocks;    /* of all images */
    int64_t           features_of_block, feature_blocks;
    int64_t           all, of_part;                     /* blocks, with groups */
    float            *packed;                           /* points of all taps, or NULL */
    int64_t           packed_step;                      /* from one block of features to the next */
} Job;

/* ---- lines that are made again ---- */

/* The part of the convolution that makes `rows` lines of tiles from a run on, of the block's features. */
static void make_again(const Job *job, const WinogradBlock *x, const WinogradRun *run, int64_t rows)
{
    const Winograd *g = &job->g;
    hlort_conv      v = *g->v;
    int64_t         image = run->image, y = x->group * v.y_group + x->feature * v.y_out;
    v.fewer = 0;
    for (int64_t e = g->n_outer - 1; e >= 0; e--) {
        const int64_t d = g->outer[e], o = image % v.spatial[d].out;
        image /= v.spatial[d].out;
        y += o * v.spatial[d].y;
        v.spatial[d].pad -= o * v.spatial[d].stride;
        v.spatial[d].out = 1;
    }
    for (int64_t e = 2 - g->n; e < 2; e++) {
        const int64_t d = g->d[e], o = 2 * (e == 0 ? run->row : run->column), n = 2 * (e == 0 ? rows : run->n);
        y += o * v.spatial[d].y;
        v.spatial[d].pad -= o;
        v.spatial[d].out = hlort_min(n, v.spatial[d].out - o);
    }
    v.batch = v.groups = 1;
    v.w_first += x->group * v.w_group + x->feature * v.w_out;
    v.out = x->features;
    hlort_convolve(job->set, GEMM_F32, &v, &(hlort_how){ .work = x->work }, g->x + x->group * v.x_group + image * v.x_batch, g->w, g->y + y + image * v.y_batch);
}

/* A window, of dimension d and those behind it, from x on. */
static int window_has_nan(const hlort_conv *v, int64_t d, const int64_t *o, const float *x)
{
    if (d == v->n_spatial) {
        int any = 0;
        for (int64_t i = 0; i < v->in && !any; i++)
            any = x[i * v->x_in] != x[i * v->x_in];
        return any;
    }
    for (int64_t t = 0; t < v->spatial[d].window; t++) {
        const int64_t c = o[d] * v->spatial[d].stride + t * v->spatial[d].window_dilation - v->spatial[d].pad;
        if (c >= 0 && c < v->spatial[d].in && window_has_nan(v, d + 1, o, x + c * v->spatial[d].x))
            return 1;
    }
    return 0;
}

/* Every pixel of a run meets a NaN of the image: so all of its results are, and rightly. */
static int is_nan(const WinogradBlock *x, const WinogradRun *run)
{
    const Winograd   *g = x->g;
    const hlort_conv *v = g->v;
    int64_t           o[HLORT_MOST_SPATIAL], image = run->image;
    for (int64_t e = g->n_outer - 1; e >= 0; e--) {
        o[g->outer[e]] = image % v->spatial[g->outer[e]].out;
        image /= v->spatial[g->outer[e]].out;
    }
    for (int64_t r = 0; r < (g->n == 2 ? 2 : 1); r++)
        for (int64_t c = 2 * run->column; c < hlort_min(v->spatial[g->d[1]].out, 2 * (run->column + run->n)); c++) {
            o[g->d[1]] = c;
            if (g->n == 2)
                o[g->d[0]] = hlort_min(v->spatial[g->d[0]].out - 1, 2 * run->row + r);
            if (!window_has_nan(v, 0, o, g->x + x->group * v->x_group + image * v->x_batch))
                return 0;
        }
    return 1;
}

/* Runs that lie below each other at once. */
static void make_bad_again(const Job *job, const WinogradBlock *x)
{
    for (int64_t r = 0; r < x->n_runs; r++)
        x->runs[r].again = x->runs[r].again && !is_nan(x, &x->runs[r]);
    for (int64_t r = 0; r < x->n_runs; r++) {
        const WinogradRun *run = &x->runs[r];
        int64_t            rows = 1;
        if (!run->again)
            continue;
        while (r + 1 < x->n_runs && run[rows].again && run[rows].image == run->image && run[rows].column == run->column && run[rows].n == run->n) {
            rows++;
            r++;
        }
        make_again(job, x, run, rows);
    }
}

/* ---- blocks ---- */

static void part(void *data, int64_t number, void *work)
{
    const Job      *job = data;
    const Winograd *g = &job->g;
    const int64_t   of_image = g->tiles[0] * g->tiles[1], end = hlort_min(job->all, (number + 1) * job->of_part);
    for (int64_t k = number * job->of_part; k < end; k++) {
        const int64_t feature = k % job->feature_blocks * job->features_of_block, block = k / job->feature_blocks;
        const int64_t first = block % job->blocks * job->tiles_of_block, last = hlort_min(job->tiles, first + job->tiles_of_block);
        WinogradRun   runs[4 * WINOGRAD_TILES];
        WinogradBlock x = { .g = g, .group = block / job->blocks, .feature = feature, .features = hlort_min(job->features_of_block, g->v->out - feature),
                            .runs = runs, .tiles = last - first, .work = work };
        if (job->packed)
            x.packed = job->packed + (x.group * job->feature_blocks + k % job->feature_blocks) * job->packed_step;
        for (int64_t t = first; t < last; t += runs[x.n_runs++].n) {
            const int64_t column = t % g->tiles[1];
            runs[x.n_runs] = (WinogradRun){ .image = t / of_image, .row = t / g->tiles[1] % g->tiles[0], .column = column,
                                            .n = hlort_min(hlort_min(g->tiles[1] - column, WINOGRAD_RUN), last - t) };
        }
        job->block(&x);
        make_bad_again(job, &x);
    }
}

/* ---- taps that never change ---- */

static void fill_part(void *data, int64_t number, void *work)
{
    const Job    *job = data;
    const int64_t feature = number % job->feature_blocks * job->features_of_block;
    job->block(&(WinogradBlock){ .g = &job->g, .group = number / job->feature_blocks, .feature = feature, .features = hlort_min(job->features_of_block, job->g.v->out - feature),
                                 .work = work, .packed = job->packed + number * job->packed_step });
}

static void use_packed(Job *job, const KernelSet *set, const hlort_how *how)
{
    const hlort_conv *v = job->g.v;
    const int64_t     blocks = hlort_ceildiv(v->in, hlort_even(v->in, set->winograd_terms, 16)), parts = v->groups * job->feature_blocks;
    job->packed_step = job->g.taps * blocks * (job->g.n == 2 ? 16 : 4) * set->winograd_point;
    if (parts > POOL_MOST_PARTS)
        return;
    const PackedUse use = packed_use(how->packed, parts * job->packed_step * (int64_t)sizeof *job->packed);
    if (use == PACKED_NOT)
        return;
    job->packed = how->packed->memory;
    if (use == PACKED_READ)
        return;
    pool_run(how->pool, fill_part, job, parts, how->work);
    packed_done(how->packed);
}

static void find_ends(Winograd *g)
{
    const hlort_conv *v = g->v;
    int64_t           x = (v->batch - 1) * v->x_batch + (v->groups - 1) * v->x_group + (v->in - 1) * v->x_in;
    int64_t           w = v->w_first + (v->groups - 1) * v->w_group + (v->in - 1) * v->w_in + (v->out - 1) * v->w_out;
    for (int64_t d = 0; d < v->n_spatial; d++) {
        x += (v->spatial[d].in - 1) * v->spatial[d].x;
        w += v->spatial[d].w > 0 ? (v->spatial[d].window - 1) * v->spatial[d].w : 0;
    }
    g->x_end = g->x + x + 1;
    g->w_end = g->w + w + 1;
}

/* Along which dimensions: the last two of 3 taps, that with the nearer pixels as lines. */
static void find_dimensions(Winograd *g)
{
    const hlort_conv *v = g->v;
    g->n = hlort_conv_fewer(v);
    g->taps = 1;
    for (int64_t d = v->n_spatial - 1, n = 0; d >= 0; d--) {
        if (n < g->n && hlort_conv_in_pairs(v, d)) {
            g->d[1 - n++] = d;
            continue;
        }
        g->outer[g->n_outer++] = d;
        g->taps *= v->spatial[d].window;
    }
    if (g->n == 2 && v->spatial[g->d[0]].x < v->spatial[g->d[1]].x) {
        const int64_t d = g->d[0];
        g->d[0] = g->d[1];
        g->d[1] = d;
    }
    g->tiles[0] = g->n == 2 ? hlort_ceildiv(v->spatial[g->d[0]].out, 2) : 1;
    g->tiles[1] = hlort_ceildiv(v->spatial[g->d[1]].out, 2);
}

int hlort_winograd(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y)
{
    const KernelSet *set = s->winograd ? s : s->rest;
    Job              job = { .g = { .v = v, .x = x, .w = w, .y = y }, .set = s };
    if (!v->fewer || type != GEMM_F32 || how->epilogue || !hlort_conv_fewer(v))
        return 0;
    for (int64_t d = 0; d < v->n_spatial; d++)
        if (v->spatial[d].in == 0 || v->spatial[d].window == 0)
            return 0;
    if (v->in == 0)
        return 0;
    job.block = set->winograd;
    find_dimensions(&job.g);
    find_ends(&job.g);
    job.tiles = v->batch * job.g.tiles[0] * job.g.tiles[1];
    for (int64_t e = 0; e < job.g.n_outer; e++)
        job.tiles *= v->spatial[job.g.outer[e]].out;
    job.tiles_of_block = hlort_even(job.tiles, job.g.n == 2 ? WINOGRAD_TILES : 4 * WINOGRAD_TILES, 1);
    job.blocks = hlort_ceildiv(job.tiles, job.tiles_of_block);
    job.features_of_block = hlort_even(v->out, set->winograd_features, set->winograd_panel);
    job.feature_blocks = hlort_ceildiv(v->out, job.features_of_block);
    job.all = v->groups * job.blocks * job.feature_blocks;
    job.of_part = hlort_ceildiv(job.all, PARTS);
    if (how->packed)
        use_packed(&job, set, how);
    pool_run(how->pool, part, &job, hlort_ceildiv(job.all, job.of_part), how->work);
    return 1;
}
