#include "emit/loops_together.h"

enum { MOST_TOUCHED = 24, MOST_STORED = 12 /* of all that become one */ };

typedef struct Touched {
    int32_t      n, n_stored;
    bool         other; /* there is more than declarations of values, and stores */
    const KExpr *load[MOST_TOUCHED];
    const KStmt *store[MOST_STORED];
} Touched;

static void note_load(void *cookie, const KExpr *x)
{
    Touched *t = cookie;
    if (x->kind != KX_LOAD)
        return;
    for (int32_t k = 0; k < t->n; k++)
        if (t->load[k]->array == x->array && ix_equal(t->load[k]->index, x->index))
            return;
    t->other |= t->n == MOST_TOUCHED;
    if (!t->other)
        t->load[t->n++] = x;
}

static void note_stmt(void *cookie, const KStmt *s)
{
    Touched *t = cookie;
    t->other |= (s->kind != KS_DECLARE && s->kind != KS_STORE) || s->atomic || (s->kind == KS_STORE && t->n_stored == MOST_STORED);
    if (!t->other && s->kind == KS_STORE)
        t->store[t->n_stored++] = s;
}

/* What the loop touches, if it does nothing else, and none of what takes long, for which there may be no vectors. */
static bool touched_by(const KStmt *loop, Touched *t)
{
    *t = (Touched){ 0 };
    if (!loop || loop->kind != KS_FOR || loop->from || loop->end || loop->n_fetched || kernel_has_dear_call(loop))
        return false;
    kernel_visit(loop->body, &(KVisitor){ note_load, note_stmt, t });
    return !t->other && t->n_stored > 0;
}

static bool is_stored(const Touched *t, const KArray *array)
{
    bool stored = false;
    for (int32_t k = 0; k < t->n_stored; k++)
        stored |= t->store[k]->array == array;
    return stored;
}

static bool are_apart(const KStmt *s, const KStmt *t)
{
    int64_t lo, hi, least, most;
    ix_range(s->index, &lo, &hi);
    ix_range(t->index, &least, &most);
    return s->array->type == t->array->type && (s->array != t->array || hi < least || most < lo);
}

/* Neither sees what the other one stores. */
static bool are_independent(const Touched *s, const Touched *t)
{
    bool independent = s->n + t->n <= MOST_TOUCHED && s->n_stored + t->n_stored <= MOST_STORED;
    for (int32_t k = 0; k < s->n; k++)
        independent &= !is_stored(t, s->load[k]->array) && !is_stored(s, s->load[k]->array);
    for (int32_t k = 0; k < t->n; k++)
        independent &= !is_stored(s, t->load[k]->array) && !is_stored(t, t->load[k]->array);
    for (int32_t k = 0; k < s->n_stored; k++)
        for (int32_t j = 0; j < t->n_stored; j++)
            independent &= are_apart(s->store[k], t->store[j]);
    return independent;
}

/* The later loop's variable in trips of the one before. */
static const Ix *same_trip(IxCtx *cx, const KStmt *before, const KStmt *later)
{
    return ix_plus(cx, ix_of(cx, before->loop), later->loop->lo - before->loop->lo);
}

/* Of what t loads anew in every trip, the loop before it loads half, and something. */
static bool shares_loads(IxCtx *cx, const Touched *s, const KStmt *before, const Touched *t, const KStmt *loop)
{
    int32_t n = 0, shared = 0;
    for (int32_t k = 0; k < t->n; k++) {
        const Ix *at = ix_replace(cx, t->load[k]->index, loop->loop, same_trip(cx, before, loop));
        n += ix_has(t->load[k]->index, loop->loop);
        for (int32_t j = 0; j < s->n && ix_has(t->load[k]->index, loop->loop); j++)
            shared += s->load[j]->array == t->load[k]->array && ix_equal(s->load[j]->index, at);
    }
    return shared > 0 && 2 * shared >= n;
}

typedef struct Renamed {
    IxCtx        *cx;
    const IxAtom *from;
    const Ix     *to;
} Renamed;

static void rename_expr(void *cookie, const KExpr *x)
{
    const Renamed *r = cookie;
    if (x->index)
        ((KExpr *)(uintptr_t)x)->index = ix_replace(r->cx, x->index, r->from, r->to);
}

static void rename_stmt(void *cookie, const KStmt *s)
{
    const Renamed *r = cookie;
    if (s->index)
        ((KStmt *)(uintptr_t)s)->index = ix_replace(r->cx, s->index, r->from, r->to);
}

static void take_over(IxCtx *cx, KStmt *loop, KStmt *next)
{
    Renamed r = { cx, next->loop, same_trip(cx, loop, next) };
    kernel_visit(next->body, &(KVisitor){ rename_expr, rename_stmt, &r });
    for (KStmt *s = next->body->first, *after; s; s = after) {
        after = s->next;
        s->next = NULL;
        kblock_append(loop->body, s);
    }
}

static bool may_be_one(IxCtx *cx, const KStmt *loop, const KStmt *next)
{
    Touched s, t;
    return touched_by(loop, &s) && touched_by(next, &t) && loop->loop->hi - loop->loop->lo == next->loop->hi - next->loop->lo && are_independent(&s, &t) &&
           shares_loads(cx, &s, loop, &t, next);
}

void kernel_loops_together(Kernel *k, IxCtx *cx)
{
    for (int32_t i = 0; i < k->n_operands * k->n_results; i++)
        if (k->may_alias[i])
            return;
    for (KStmt *s = k->body->first; s; s = s->next)
        while (may_be_one(cx, s, s->next)) {
            take_over(cx, s, s->next);
            s->next = s->next->next;
            if (!s->next)
                k->body->last = s;
        }
}
