/* Offsets in the scratch arena: the largest sets first, each into the smallest gap that fits between those it is live with, or behind
 * them. The sets already placed are found through a tree over their beginnings that knows the latest end below each node. */
#include "emit/plan.h"

#include <stdlib.h>

#define MOST_NEIGHBOURS 2048

typedef struct Item {
    Slot   *slot;
    int64_t bytes;    /* rounded up */
    int32_t from, to; /* everything between the first and the last range */
    int32_t place;    /* in the order of beginnings */
} Item;

typedef struct Placed {
    int32_t  n, leaves; /* leaves: a power of two */
    int32_t *latest;    /* per node the latest end of what is placed below it, 0: nothing */
    Item   **by_begin;
} Placed;

typedef struct Taken {
    int64_t from, to;
} Taken;

typedef VEC(Taken) TakenList;

static int by_begin(const void *x, const void *y)
{
    const Item *a = *(Item *const *)x, *b = *(Item *const *)y;
    return a->from != b->from ? (a->from < b->from ? -1 : 1) : (a->slot->id < b->slot->id ? -1 : a->slot->id > b->slot->id);
}

static int by_size(const void *x, const void *y)
{
    const Item *a = *(Item *const *)x, *b = *(Item *const *)y;
    return a->bytes != b->bytes ? (a->bytes > b->bytes ? -1 : 1) : by_begin(x, y);
}

static int by_offset(const void *x, const void *y)
{
    const Taken *a = x, *b = y;
    return a->from != b->from ? (a->from < b->from ? -1 : 1) : (a->to < b->to ? -1 : a->to > b->to);
}

static void placed_add(Placed *t, const Item *x)
{
    for (int32_t k = t->leaves + x->place; k > 0; k /= 2)
        if (t->latest[k] < x->to)
            t->latest[k] = x->to;
}

/* The places of everything below node, which covers [lo, hi) of the order, that is live with x. */
static void collect(Arena *a, const Placed *t, int32_t node, int32_t lo, int32_t hi, const Item *x, TakenList *out)
{
    Range at;
    if (lo >= t->n || t->latest[node] <= x->from || t->by_begin[lo]->from >= x->to)
        return;
    if (hi - lo > 1) {
        int32_t mid = lo + (hi - lo) / 2;
        collect(a, t, 2 * node, lo, mid, x, out);
        collect(a, t, 2 * node + 1, mid, hi, x, out);
        return;
    }
    const Item *y = t->by_begin[lo];
    if (!ranges_overlap(x->slot->ranges, y->slot->ranges, &at))
        return;
    Taken taken = { y->slot->buffer.offset, y->slot->buffer.offset + y->bytes };
    vec_push(a, out, taken);
}

/* The smallest gap that fits. Among very many neighbours the search would cost more than the gap is worth: then behind them all. */
static int64_t best_gap(const TakenList *taken, int64_t bytes)
{
    int64_t end = 0, best = -1, best_size = INT64_MAX;
    if (taken->n > 1 && taken->n <= MOST_NEIGHBOURS)
        qsort(taken->v, (size_t)taken->n, sizeof *taken->v, by_offset);
    if (taken->n > MOST_NEIGHBOURS)
        best_size = 0;
    for (int32_t k = 0; k < taken->n; k++) {
        int64_t gap = taken->v[k].from - end;
        if (gap >= bytes && gap < best_size) {
            best = end;
            best_size = gap;
        }
        if (taken->v[k].to > end)
            end = taken->v[k].to;
    }
    return best >= 0 ? best : end;
}

static int64_t round_up(int64_t bytes)
{
    int64_t n;
    if (!size_add(bytes, PROGRAM_ALIGN - 1, &n))
        return -1;
    n = n / PROGRAM_ALIGN * PROGRAM_ALIGN;
    return n > 0 ? n : PROGRAM_ALIGN;
}

/* False when an offset does not fit in 63 bits. */
static bool place(Plan *p, Placed *t, Item *x, TakenList *taken)
{
    int64_t end;
    taken->n = 0;
    collect(p->work, t, 1, 0, t->leaves, x, taken);
    x->slot->buffer.offset = best_gap(taken, x->bytes);
    if (!size_add(x->slot->buffer.offset, x->bytes, &end))
        return false;
    if (end > p->program->scratch_bytes)
        p->program->scratch_bytes = end;
    placed_add(t, x);
    return true;
}

static Item **scratch_items(Plan *p, int32_t *n)
{
    Item **v = ARENA_ARRAY(p->work, Item *, p->slots.n);
    *n = 0;
    for (int32_t k = 0; k < p->slots.n; k++) {
        Slot *s = p->slots.v[k];
        if (s->same || s->buffer.kind != BUFFER_SCRATCH || !s->ranges)
            continue;
        Item *x = ARENA_NEW(p->work, Item);
        *x = (Item){ .slot = s, .bytes = round_up(s->buffer.bytes), .from = s->ranges->from };
        for (const Range *r = s->ranges; r; r = r->next)
            x->to = r->to;
        v[(*n)++] = x;
    }
    return v;
}

void plan_offsets(Plan *p)
{
    int32_t   n;
    Placed    t = { .leaves = 1 };
    TakenList taken = { 0 };
    Item    **items = scratch_items(p, &n);
    if (n == 0)
        return;
    qsort(items, (size_t)n, sizeof *items, by_begin);
    for (int32_t k = 0; k < n; k++)
        items[k]->place = k;
    while (t.leaves < n)
        t.leaves *= 2;
    t.n = n;
    t.latest = ARENA_ARRAY(p->work, int32_t, 2 * (int64_t)t.leaves);
    t.by_begin = arena_copy(p->work, items, (size_t)n * sizeof *items);
    qsort(items, (size_t)n, sizeof *items, by_size);
    for (int32_t k = 0; k < n; k++)
        if (items[k]->bytes < 0 || !size_add(p->program->buffer_bytes, items[k]->bytes, &p->program->buffer_bytes) ||
            !place(p, &t, items[k], &taken)) {
            plan_fail(p, items[k]->slot->inst, "the working memory of the module does not fit in 63 bits");
            return;
        }
}
