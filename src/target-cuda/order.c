/* In which order threads go through a part's loops. Lowering has the one that is written along last; where much more is read in another order, that is taken instead:
 *
 *     for i0, i1:  for k:  out[i0 * 64 + i1] += x[i0 * 8 + k] * y[k * 3072 + i1 * 48 + i0]        i1 = row / 48, i0 = row % 48
 *
 * What does not move an operand may be innermost, too, as a row's columns are of a product of 8 by 8: lanes ask for the same. What counts is how many sectors of 32 bytes a warp
 * asks for in all trips of a thread's own loops. Steps that read on in the sectors of the step before find them in the first cache. */
#include "support/vec.h"
#include "target-cuda/part.h"

enum { SECTOR = 32 /* bytes */, WORTH = 2, MOST_ACCESSES = 64 };

typedef struct Access {
    const Ix *index;
    int       size;  /* of an element */
    double    times; /* that a thread does it, */
    double    fresh; /* and how much of a sector is new each time */
} Access;

typedef struct Order {
    Arena               *arena;
    const ThreadPart    *part;
    VEC(Access)          accesses;
    VEC(const IxAtom *)  around; /* loops of a thread's own */
    double               times;
    bool                 bad;
    bool                 branches; /* lanes that ask for the same might part in them */
} Order;

static int64_t magnitude(int64_t k)
{
    return k < 0 ? -k : k;
}

static int64_t trips(const IxAtom *loop)
{
    return loop->hi - loop->lo + 1;
}

/* ---- what a thread reads and stores ---- */

static double fresh_part(const Order *o, const Ix *x, int size)
{
    double least = SECTOR;
    for (int32_t j = 0; j < o->around.n; j++) {
        const double step = (double)magnitude(ix_coef(x, o->around.v[j])) * size;
        least = step > 0 && step < least ? step : least;
    }
    return least / SECTOR;
}

static void see(Order *o, const KArray *array, const Ix *x)
{
    const int size = type_bytes(storage_type(array->type));
    if (array->kind != KARRAY_PARAM && array->kind != KARRAY_TEMP)
        return;
    for (int32_t i = 0; i < x->n; i++)
        o->bad |= x->t[i].atom->arg != NULL;
    vec_push(o->arena, &o->accesses, ((Access){ x, size, o->times, fresh_part(o, x, size) }));
}

static void see_expr(Order *o, const KExpr *x)
{
    if (x->kind == KX_LOAD)
        see(o, x->array, x->index);
    for (int32_t j = 0; j < x->n; j++)
        see_expr(o, x->arg[j]);
}

static void see_block(Order *o, const KBlock *b)
{
    for (const KStmt *s = b->first; s; s = s->next) {
        const double times = o->times;
        if (s->value)
            see_expr(o, s->value);
        if (s->kind == KS_STORE)
            see(o, s->array, s->index);
        o->bad |= s->kind == KS_LOOP || (s->kind == KS_STORE && (s->atomic || s->group > 0 || s->apart));
        o->branches |= s->kind == KS_IF;
        if (s->kind == KS_FOR) {
            vec_push(o->arena, &o->around, s->loop);
            o->times *= (double)trips(s->loop);
        }
        if (s->body)
            see_block(o, s->body);
        if (s->other)
            see_block(o, s->other);
        o->around.n -= s->kind == KS_FOR;
        o->times = times;
    }
}

/* ---- orders ---- */

typedef struct Seen {
    int     n;
    int64_t at[WARP];
} Seen;

static void note(Seen *s, int64_t at)
{
    int k = 0;
    while (k < s->n && s->at[k] != at)
        k++;
    if (k == s->n)
        s->at[s->n++] = at;
}

/* Sectors of 32 bytes, and how many would hold the same bytes. */
typedef struct Sectors {
    double taken, fewest;
} Sectors;

/* Of the first warp. */
static Sectors sectors_of(const Order *o, const Access *x, const IxAtom *const *loops)
{
    Seen elements = { 0 }, sectors = { 0 };
    for (int lane = 0; lane < WARP && lane < o->part->count; lane++) {
        int64_t at = 0, rest = lane;
        for (int32_t j = o->part->n_loops; j-- > 0; rest /= trips(loops[j]))
            at += ix_coef(x->index, loops[j]) * (rest % trips(loops[j]));
        note(&elements, at);
        note(&sectors, at * x->size >= 0 ? at * x->size / SECTOR : (at * x->size - SECTOR + 1) / SECTOR);
    }
    const double fewest = (double)((elements.n * x->size + SECTOR - 1) / SECTOR), taken = sectors.n * x->fresh;
    return (Sectors){ taken > fewest ? taken : fewest, fewest };
}

static Sectors cost_of(const Order *o, const IxAtom *const *loops)
{
    Sectors sum = { 0, 0 };
    for (int32_t i = 0; i < o->accesses.n; i++) {
        const Access *x = &o->accesses.v[i];
        const Sectors s = sectors_of(o, x, loops);
        sum.taken += x->times * s.taken;
        sum.fewest += x->times * s.fewest;
    }
    return sum;
}

/* What does not move the access is farther apart than anything, or nearest: then its neighbours are lanes that ask for the same. */
static uint64_t stride(const Access *x, const IxAtom *loop, bool nearest)
{
    return (uint64_t)magnitude(ix_coef(x->index, loop)) - !nearest;
}

/* The loops as the access lies in memory. */
static const IxAtom *const *order_by(const Order *o, const Access *x, bool nearest)
{
    const IxAtom **v = ARENA_ARRAY(o->arena, const IxAtom *, o->part->n_loops);
    for (int32_t j = 0; j < o->part->n_loops; j++) {
        int32_t at = j;
        for (; at > 0 && stride(x, v[at - 1], nearest) < stride(x, o->part->loops[j], nearest); at--)
            v[at] = v[at - 1];
        v[at] = o->part->loops[j];
    }
    return v;
}

void cuda_order_loops(Arena *a, CudaPart *part)
{
    ThreadPart *t = &part->threads;
    Order       o = { .arena = a, .part = t, .times = 1 };
    if (t->n_loops < 2)
        return;
    see_block(&o, t->body);
    if (o.bad || o.accesses.n > MOST_ACCESSES)
        return;
    const IxAtom *const *best = t->loops;
    const Sectors        now = cost_of(&o, best);
    double               least = now.taken / WORTH;
    if (now.taken <= now.fewest * WORTH)
        return;
    for (int32_t i = 0; i < o.accesses.n * (o.branches ? 1 : 2); i++) {
        const IxAtom *const *loops = order_by(&o, &o.accesses.v[i % o.accesses.n], i >= o.accesses.n);
        const Sectors        cost = cost_of(&o, loops);
        if (cost.taken < least) {
            least = cost.taken;
            best = loops;
        }
    }
    t->loops = best;
}
