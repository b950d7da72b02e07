/* How attention is shared among a device's threads. */
#include "emit/attention_device.h"

enum { GROUP_ROWS = 4, LANES = 16, MOST_HEAD = 256, FEW_WORK = 1024 /* elements of rows in the registers of lanes */, FEW_WEIGHTS = 2048 /* of shared memory */, LEAST_PIECE = 64 };

static int64_t ceil_div(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

int64_t attention_members(const hlort_attention *d)
{
    int64_t n = 1;
    for (int64_t k = 0; k < d->n_batch; k++)
        n *= d->batch[k].count;
    return n;
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
    l->step = LEAST_PIECE;
    l->piece = ceil_div(ceil_div(d->keys, pieces), l->step) * l->step;
    l->pieces = ceil_div(d->keys, l->piece);
    l->tiles = members * l->pieces;
}

/* ns that a block works on all keys with a tile of so many rows. */
static double block_ns(const hlort_attention *d, const Device *v, int64_t rows)
{
    return 4 * (double)rows * (double)d->keys * (double)(d->head + d->wide) / (v->flops / v->units);
}

/* The queries, keys, values, weights; in the end what groups have of the result. */
static int64_t shared_of(const AttentionLaunch *l)
{
    const int64_t rows = l->groups * l->rows, weights = l->kept ? 4 * rows + 2 * l->rows * l->kept : 4 * rows * (l->step / l->groups + 4);
    const int64_t bytes = 4 * (l->rows * l->head + l->step * (l->head + l->wide)) + weights, end = 4 * rows * (l->wide + 2);
    return bytes > end ? bytes : end;
}

/* Groups and steps of tiles of that many rows: two blocks for a multiprocessor, or one where they have no room. */
static void cut_steps(const hlort_attention *d, const Device *v, AttentionLaunch *l)
{
    l->groups = 64 / l->rows;
    for (l->each = 4;; l->each /= 2) {
        l->step = l->each * LANES * l->groups;
        l->kept = d->rounded ? ceil_div(d->keys, l->step) * l->step + 4 : 0;
        l->shared = shared_of(l);
        if (l->each == 1 || (l->shared <= (int64_t)(v->shared / 2) - SHARED_BESIDE / 2 && l->step / 2 < d->keys))
            return;
    }
}

static bool has_room(const AttentionLaunch *l, const Device *v)
{
    return l->shared <= (int64_t)v->shared - SHARED_BESIDE;
}

static void cut_tiles(const AttentionCall *c, const Device *v, AttentionLaunch *l)
{
    const hlort_attention *d = &c->d;
    const int64_t members = attention_members(d), vector = d->wide >= 64 ? 64 : d->wide >= 32 ? 32 : 16;
    l->rows = 64;
    while (l->rows > LANES && (l->rows / 2 >= d->rows || (double)(members * ceil_div(d->rows, l->rows)) < 0.75 * v->units))
        l->rows /= 2;
    l->head = (ceil_div(d->head, 4) | 1) * 4;
    l->wide = ceil_div(d->wide, vector) * vector;
    for (cut_steps(d, v, l); d->rounded && !has_room(l, v) && l->rows > LANES; cut_steps(d, v, l))
        l->rows /= 2;
    const int64_t blocks = members * ceil_div(d->rows, l->rows);
    l->pieces = 1;
    if (!d->rounded && (double)blocks * 2 <= v->units && block_ns(d, v, l->rows) > 2 * v->launch) {
        const int64_t wanted = (int64_t)(v->units / (double)blocks), fit = ceil_div(d->keys, 2 * l->step);
        l->pieces = wanted < fit ? wanted : fit;
    }
    l->piece = ceil_div(ceil_div(d->keys, l->pieces), l->step) * l->step;
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
    if (!attention_kernel(i, lie, out) || (d->rounded && (d->term || (is_few(d) && (double)attention_members(d) < v->units))) || d->head > MOST_HEAD || d->wide > MOST_HEAD || d->keys == 0 || d->rows == 0 || attention_members(d) == 0)
        return false;
    const bool          half = out->plain && d->masked && !d->beside_it && d->n_rows == 1 && (d->below < d->keys / 4 || d->above < d->keys / 4);
    const AttentionSize size = { .type = out->widened ? TYPE_F32 : out->in, .half = half, .members = attention_members(d), .rows = d->rows, .keys = d->keys, .head = d->head, .wide = d->wide };
    attention_launch(out, v, &l);
    return attention_pays(&size, v) && has_room(&l, v);
}
