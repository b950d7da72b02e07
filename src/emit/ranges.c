/* Which loops are divided, and how long the ranges are. Work is counted in operations of the innermost loops; one takes about 0.1 ns. */
#include "emit/ranges.h"

#include <math.h>

#include "emit/threads.h"
#include "support/map.h"
#include "support/vec.h"

enum {
    WORTH = 1 << 18, /* least work for which threads are asked */
    RANGE = 1 << 18, /* work of a range, of little work an eighth */
    TURN = 1 << 13,  /* least work of a range each time that loops around it come to it: every range goes through all of them */
    MOST_RANGES = 256,
    CALL = 8,        /* work of a call */
    LINE = 64        /* elements: a range of a long loop begins where no other one writes */
};

static double expr_work(const KExpr *x)
{
    double work = x->kind == KX_CALL ? CALL : 1;
    for (int32_t k = 0; k < x->n; k++)
        work += expr_work(x->arg[k]);
    return work;
}

static double block_work(const KBlock *b);

static double stmt_work(const KStmt *s)
{
    double work = 1 + (double)s->fill_work + (s->value ? expr_work(s->value) : 0);
    if (s->body)
        work += block_work(s->body);
    if (s->other)
        work += block_work(s->other);
    return s->kind == KS_FOR ? work * (double)(s->loop->hi - s->loop->lo + 1) : work;
}

static double block_work(const KBlock *b)
{
    double work = 0;
    for (const KStmt *s = b->first; s; s = s->next)
        work += stmt_work(s);
    return work;
}

static void note_endless(void *cookie, const KStmt *s)
{
    *(bool *)cookie |= s->kind == KS_LOOP;
}

double kernel_work(const Kernel *k)
{
    bool endless = false;
    kernel_visit(k->body, &(KVisitor){ .stmt = note_endless, .cookie = &endless });
    return endless ? HUGE_VAL : block_work(k->body);
}

/* Of the loops that may be divided the outermost one with enough trips, else the one with the most. */
static const IxAtom *divided_loop(int32_t n, const IxAtom *const *loops)
{
    enum { ENOUGH = 8 };
    const IxAtom *best = NULL;
    for (int32_t k = 0; k < n; k++) {
        int64_t trips = loops[k]->hi - loops[k]->lo + 1;
        if (trips >= ENOUGH)
            return loops[k];
        if (!best || trips > best->hi - best->lo + 1)
            best = loops[k];
    }
    return best;
}

static const Ix *bound(Arena *a, IxCtx *cx, const char *name, const IxAtom *loop)
{
    KTemp *t = ARENA_NEW(a, KTemp);
    *t = (KTemp){ .name = name, .type = TYPE_S64 };
    return ix_of(cx, ix_new_atom(cx, IX_VALUE, name, loop->lo, loop->hi + 1, 0, t));
}

/* s, with that loop in it from `from` to `end`. A nest's inner loop is the last statement of what is around it. */
static KStmt *with_range(Arena *a, const KStmt *s, const IxAtom *loop, const Ix *from, const Ix *end)
{
    KStmt *copy = arena_copy(a, s, sizeof *s);
    copy->next = NULL;
    if (s->kind == KS_FOR && s->loop == loop) {
        copy->from = from;
        copy->end = end;
        return copy;
    }
    copy->body = arena_copy(a, s->body, sizeof *s->body);
    copy->body->first = copy->body->last = NULL;
    for (const KStmt *x = s->body->first; x; x = x->next)
        kblock_append_copy(a, copy->body, x->next ? x : with_range(a, x, loop, from, end));
    return copy;
}

/* That loop in the nest s. */
static const KStmt *find_loop(const KStmt *s, const IxAtom *loop)
{
    while (s->kind != KS_FOR || s->loop != loop)
        s = s->body->last;
    return s;
}

static void set_sizes(RangePart *p, const KStmt *s, const IxAtom *loop)
{
    p->lo = loop->lo;
    p->end = loop->hi + 1;
    const int64_t trips = p->end - p->lo;
    const double  work = stmt_work(s), range = work / 8 < RANGE ? work / 8 : RANGE;
    double  size = range / (work / (double)trips), least = TURN / (stmt_work(find_loop(s, loop)) / (double)trips);
    size = size < least ? least : size;
    p->size = size < 1 ? 1 : size > (double)trips ? trips : (int64_t)size;
    if (p->size < trips / MOST_RANGES)
        p->size = trips / MOST_RANGES;
    if (p->size > LINE)
        p->size = (p->size + LINE - 1) / LINE * LINE;
    p->n = (trips + p->size - 1) / p->size;
}

/* The part that is s in ranges; false when it is not worth it, or cannot be. */
static bool range_part(Arena *a, const Kernel *k, const KStmt *s, RangePart *part)
{
    const IxAtom *const *loops;
    IxCtx                cx = ix_context(a);
    part->distinct = s->kind == KS_IF && !s->other && s->value->kind == KX_DISTINCT ? s->value : NULL;
    if ((s->kind != KS_FOR && !part->distinct) || stmt_work(s) < WORTH)
        return false;
    int32_t       n = kernel_independent_loops(a, k, s, &loops);
    const IxAtom *loop = divided_loop(n, loops);
    if (!loop)
        return false;
    set_sizes(part, s, loop);
    if (part->n < 2)
        return false;
    KBlock *body = ARENA_NEW(a, KBlock);
    kblock_append_copy(a, body, with_range(a, s, loop, bound(a, &cx, RANGE_FROM, loop), bound(a, &cx, RANGE_END, loop)));
    part->whole = kernel_part_with_values(a, k, body);
    return true;
}

typedef struct Uses {
    const KStmt *now;
    Map          by; /* the statement that has used an array first */
    bool         shared;
} Uses;

static void note_use(Uses *u, const KArray *array)
{
    const KStmt *before = array->kind == KARRAY_LOCAL ? map_get(&u->by, array) : u->now;
    if (!before)
        map_put(&u->by, array, (void *)u->now);
    u->shared |= before && before != u->now;
}

static void note_load(void *cookie, const KExpr *x)
{
    if (x->kind == KX_LOAD)
        note_use(cookie, x->array);
}

static void note_store(void *cookie, const KStmt *s)
{
    if (s->kind == KS_STORE)
        note_use(cookie, s->array);
}

/* Whether an array of the function's own is used by several of the statements that may become functions. */
static bool shares_arrays(Arena *a, const Kernel *k)
{
    Uses     u = { .by = map_new(a) };
    KVisitor v = { note_load, note_store, &u };
    for (u.now = k->body->first; u.now; u.now = u.now->next)
        kernel_visit_stmt(u.now, &v);
    return u.shared;
}

int32_t kernel_ranges(Arena *a, const Kernel *k, RangePart **parts)
{
    VEC(RangePart) v = { 0 };
    KBlock *serial = NULL; /* the body of the last part, when that has no ranges */
    bool    any = false;
    if (block_work(k->body) < WORTH || !kernel_is_divisible(k) || shares_arrays(a, k))
        return 0;
    for (const KStmt *s = k->body->first; s; s = s->next) {
        RangePart part = { .n = 1 };
        if (s->kind == KS_DECLARE)
            continue;
        if (range_part(a, k, s, &part)) {
            vec_push(a, &v, part);
            serial = NULL;
            any = true;
            continue;
        }
        if (!serial) {
            serial = ARENA_NEW(a, KBlock);
            vec_push(a, &v, ((RangePart){ .whole.body = serial, .n = 1 }));
        }
        kblock_append_copy(a, serial, s);
    }
    for (int32_t j = 0; j < v.n; j++)
        if (v.v[j].n == 1)
            v.v[j].whole = kernel_part_with_values(a, k, v.v[j].whole.body);
    *parts = v.v;
    return any ? v.n : 0;
}
