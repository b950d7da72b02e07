/* How attention is shared among a device's threads. */
#include "emit/attention_device.h"

enum { LANES = 16, FRAGMENT = 16, PARTS = 64 /* rows of a block's threads: of all its groups */, MOST_HEAD = 256, FEW_WORK = 1024 /* elements of rows in the registers of lanes */, FEW_WEIGHTS = 2048 /* of shared memory */, LEAST_PIECE = 64 };

static int64_t ceil_div(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

int64_t attention_sums(const AttentionSteps *s)
{
    return s->wide - 4;
}

int64_t attention_members(const hlort_attention *d)
{
    int64_t n = 1;
    for (int64_t k = 0; k < d->n_batch; k++)
        n *= d->batch[k].count;
    return n;
}

/* Of what is multiplied: operands that the fusion converts have weights in f32. */
static Type type_of(const AttentionCall *c)
{
    return c->widened ? TYPE_F32 : c->in;
}

static bool is_few(const hlort_attention *d)
{
    return d->rows <= ATTENTION_FEW && d->k_col == 1 && d->v_col == 1 && d->rows * d->head <= FEW_WORK && d->rows * d->wide <= FEW_WORK;
}

/* Blocks of a member's keys: as many as leave no multiprocessor idle, if reading all keys in one block takes longer than the kernel that joins them. */
static void cut_few(const AttentionCall *c, const Device *v, AttentionLaunch *l)
{
    const hlort_attention *d = &c->d;
    const int64_t members = attention_members(d), most = FEW_WEIGHTS / d->rows;
    const double  bytes = (double)(d->keys * (d->head + d->wide)) * type_bytes(c->in), alone = bytes / (v->l2_rate / v->units);
    int64_t       pieces = ceil_div(d->keys, most);
    if (pieces > 1 || ((double)members < v->units && alone > v->launch)) {
        const int64_t wanted = ceil_div((int64_t)(2 * v->units), members), fit = ceil_div(d->keys, LEAST_PIECE);
        pieces = wanted > pieces ? wanted : pieces;
        pieces = pieces > fit ? fit : pieces;
    }
    l->by.step = LEAST_PIECE;
    l->piece = ceil_div(ceil_div(d->keys, pieces), LEAST_PIECE) * LEAST_PIECE;
    l->pieces = ceil_div(d->keys, l->piece);
    l->tiles = members * l->pieces;
}

/* ns that a block works on all keys with a tile of so many rows. */
static double block_ns(const AttentionCall *c, const Device *v, int64_t rows)
{
    const hlort_attention *d = &c->d;
    return 2 * (double)rows * (double)d->keys * (double)(d->head + d->wide) / (attention_rate(type_of(c), v) / v->units);
}

/* The queries, keys, values, weights; in the end what groups have of the result. */
static int64_t plain_shared(const AttentionSteps *s, int64_t tile)
{
    const int64_t rows = s->groups * tile, weights = s->kept ? 4 * rows + 2 * tile * s->kept : 4 * rows * (s->step / s->groups + 4);
    const int64_t bytes = 4 * (tile * s->head + s->step * (s->head + s->wide)) + weights, end = 4 * rows * (s->wide + 2);
    return bytes > end ? bytes : end;
}

/* Likewise; a warp's scores lie there, too, and how much its sums fade (attention_tensor.c). */
static int64_t tensor_shared(const AttentionSteps *s, int64_t tile)
{
    const int64_t rows = s->groups * tile, scores = 4 * rows * (s->step / s->groups + 4), more = s->kept ? 4 * rows + 2 * tile * s->kept : 4 * rows * ATTENTION_FADES;
    const int64_t bytes = 2 * (tile * s->head + s->step * (s->head + s->wide)) + scores + more, end = 4 * rows * (attention_sums(s) + 2);
    return bytes > end ? bytes : end;
}

/* Groups and steps of tiles of that many rows: two blocks for a multiprocessor, or one where they have no room. */
static void cut_steps(const hlort_attention *d, const Device *v, int64_t tile, AttentionSteps *s, int64_t most, int64_t group_rows, int64_t (*shared)(const AttentionSteps *, int64_t))
{
    s->groups = group_rows / tile;
    for (s->each = most;; s->each /= 2) {
        s->step = s->each * LANES * s->groups;
        s->kept = d->rounded ? ceil_div(d->keys, s->step) * s->step + 8 : 0;
        s->shared = shared(s, tile);
        if (s->each == 1 || (s->shared <= (int64_t)(v->shared / 2) - SHARED_BESIDE / 2 && s->step / 2 < d->keys))
            return;
    }
}

/* Rows of 16 bytes more than whole fragments, so that they spread over banks. */
static void cut_tensor(const AttentionCall *c, const Device *v, AttentionLaunch *l)
{
    if (type_bits(type_of(c)) != 16 || v->tensor <= 0)
        return;
    l->tensor.head = ceil_div(c->d.head, FRAGMENT) * FRAGMENT + 8;
    l->tensor.wide = ceil_div(c->d.wide, FRAGMENT) * FRAGMENT + 8;
    cut_steps(&c->d, v, l->rows, &l->tensor, 2, 2 * PARTS, tensor_shared);
}

static void cut_both(const AttentionCall *c, const Device *v, AttentionLaunch *l)
{
    const int64_t vector = c->d.wide >= 64 ? 64 : c->d.wide >= 32 ? 32 : 16;
    l->by.head = (ceil_div(c->d.head, 4) | 1) * 4;
    l->by.wide = ceil_div(c->d.wide, vector) * vector;
    cut_steps(&c->d, v, l->rows, &l->by, 4, PARTS, plain_shared);
    cut_tensor(c, v, l);
}

int64_t attention_shared(const AttentionLaunch *l)
{
    return l->by.shared > l->tensor.shared ? l->by.shared : l->tensor.shared;
}

static bool has_room(const AttentionLaunch *l, const Device *v)
{
    return attention_shared(l) <= (int64_t)v->shared - SHARED_BESIDE;
}

static void cut_tiles(const AttentionCall *c, const Device *v, AttentionLaunch *l)
{
    const hlort_attention *d = &c->d;
    const int64_t members = attention_members(d);
    l->rows = PARTS;
    while (l->rows > LANES && (l->rows / 2 >= d->rows || (double)(members * ceil_div(d->rows, l->rows)) < 0.75 * v->units))
        l->rows /= 2;
    for (cut_both(c, v, l); d->rounded && !has_room(l, v) && l->rows > LANES; cut_both(c, v, l))
        l->rows /= 2;
    const int64_t blocks = members * ceil_div(d->rows, l->rows), step = l->by.step > l->tensor.step ? l->by.step : l->tensor.step;
    l->pieces = 1;
    if (!d->rounded && (double)blocks * 2 <= v->units && block_ns(c, v, l->rows) > 2 * v->launch) {
        const int64_t wanted = (int64_t)(v->units / (double)blocks), fit = ceil_div(d->keys, 2 * step);
        l->pieces = wanted < fit ? wanted : fit;
    }
    l->piece = ceil_div(ceil_div(d->keys, l->pieces), step) * step;
    l->pieces = ceil_div(d->keys, l->piece);
    l->tiles = blocks * l->pieces;
}

void attention_launch(const AttentionCall *c, const Device *v, AttentionLaunch *out)
{
    const hlort_attention *d = &c->d;
    *out = (AttentionLaunch){ .few = is_few(d) && !d->rounded, .rows = d->rows };
    (out->few ? cut_few : cut_tiles)(c, v, out);
    if (out->pieces > 1) {
        const int64_t parts = attention_members(d) * d->rows * out->pieces;
        out->stats = parts * d->wide;
        out->bytes = (parts * (d->wide + 2) * 4 + 63) / 64 * 64;
    }
}

int64_t attention_memory(const AttentionCall *c, const Device *v)
{
    AttentionLaunch l;
    attention_launch(c, v, &l);
    return l.bytes;
}

bool attention_on_device(const Inst *i, const Shape *const *lie, const Device *v, AttentionCall *out)
{
    const hlort_attention *d = &out->d;
    AttentionLaunch        l;
    if (!attention_kernel(i, lie, out) || (d->rounded && is_few(d) && (double)attention_members(d) < v->units) || d->head > MOST_HEAD || d->wide > MOST_HEAD || d->keys == 0 || d->rows == 0 || attention_members(d) == 0)
        return false;
    const bool          half = out->plain && d->masked && !d->beside_it && d->n_rows == 1 && (d->below < d->keys / 4 || d->above < d->keys / 4);
    const AttentionSize size = { .type = type_of(out), .half = half, .members = attention_members(d), .rows = d->rows, .keys = d->keys, .head = d->head, .wide = d->wide };
    attention_launch(out, v, &l);
    return attention_pays(&size, v) && has_room(&l, v);
}
