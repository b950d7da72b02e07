/* Arrays of the kernel's parameters that the lanes touch one element behind the other, each once, be it by way of a local array; and what later loops over the same rows store, since those have little
 * else to do. */
#include "emit/fetch_ahead.h"

#include <stdlib.h>

enum {
    MOST_FETCHED = 4,
    MOST_UNROLLED = 16, /* trips of a loop that compilers unroll whole */
    LEAST_ROW = 1024, LEAST_ALONE = 8192, MOST_ROW = 256 * 1024, /* bytes from a row to the next, from one that goes by itself to the next: more find no room in the second cache until they are wanted */
    FAR = 8192, MOST_PIECES = 4,
    LEAST_FAR = 20 << 20, LEAST_ADDED = 48 << 20, /* bytes of an array of which caches keep little; where a vector is one addition, processors are far ahead themselves */
    MOST_WRITTEN = 32 * 1024 /* likewise, in the first, which takes what is fetched to be written */
};

/* The loops around. */
typedef struct Scope {
    const KStmt        *loop;
    const struct Scope *up;
} Scope;

typedef struct Lanes {
    Kernel      *k;
    IxCtx       *cx;
    const Scope *scope; /* of what is fetched */
    const KStmt *loop; /* through the lanes */
    const IxAtom *ahead;
    int32_t      n;
    KFetch       fetched[MOST_FETCHED];
} Lanes;

static bool is_fetched(const Lanes *l, const KArray *array)
{
    for (int32_t i = 0; i < l->n; i++)
        if (l->fetched[i].array == array)
            return true;
    return false;
}

/* x is made of the loops around alone. */
static bool in_scope(const Ix *x, const Scope *scope)
{
    for (int32_t i = 0; i < x->n; i++) {
        const IxAtom *a = x->t[i].atom;
        const Scope  *s = scope;
        while (s && s->loop->loop != a)
            s = s->up;
        if (a->arg ? !in_scope(a->arg, scope) : !s)
            return false;
    }
    return true;
}

/* first: where the lanes begin. */
static void fetch_from(Lanes *l, const KArray *array, const Ix *first, bool written)
{
    if (array->kind != KARRAY_PARAM || type_bits(array->type) < 8 || l->n == MOST_FETCHED || is_fetched(l, array) || !in_scope(first, l->scope))
        return;
    const int64_t next = ix_coef(first, l->ahead), apart = llabs(next) * type_bytes(array->type);
    if (apart >= LEAST_ROW && apart <= (written ? MOST_WRITTEN : MOST_ROW))
        l->fetched[l->n++] = (KFetch){ array, ix_plus(l->cx, first, next), (l->loop->loop->hi + 1) * type_bytes(array->type), written };
}

static const Ix *without(Lanes *l, const Ix *x, const IxAtom *loop)
{
    return ix_add(l->cx, x, ix_times(l->cx, ix_of(l->cx, loop), -1));
}

static void fetch(Lanes *l, const KArray *array, const Ix *index, bool written)
{
    if (ix_coef(index, l->loop->loop) == 1)
        fetch_from(l, array, without(l, index, l->loop->loop), written);
}

static void fetch_stored(void *cookie, const KStmt *s)
{
    if (s->kind == KS_STORE && !s->array->streamed)
        fetch(cookie, s->array, s->index, true);
}

static void fetch_loaded(void *cookie, const KExpr *x)
{
    if (x->kind == KX_LOAD && !x->array->written)
        fetch(cookie, x->array, x->index, false);
}

static bool is_whole_loop(const KStmt *s)
{
    return s && s->kind == KS_FOR && s->loop->lo == 0 && !s->from && !s->end;
}

/* What the loop `last` over as many elements or more stores of each row, its rows being those of `row`. */
static void fetch_result(Lanes *l, const KStmt *s, const KStmt *row, const KStmt *rows, const KStmt *last)
{
    const int64_t lanes = l->loop->loop->hi + 1;
    if (last->loop->hi + 1 < (s->loop->hi + 1) * lanes)
        return;
    for (const KStmt *t = last->body->first; t; t = t->next) {
        if (t->kind != KS_STORE || t->array->kind != KARRAY_PARAM || t->array->streamed || t->atomic || type_bits(t->array->type) < 8 || ix_coef(t->index, last->loop) != 1 ||
            ix_coef(t->index, rows->loop) == 0 || l->n == MOST_FETCHED || is_fetched(l, t->array))
            continue;
        const Ix *first = ix_replace(l->cx, without(l, t->index, last->loop), rows->loop, ix_of(l->cx, row->loop));
        const Ix *at = ix_add(l->cx, first, ix_times(l->cx, ix_of(l->cx, s->loop), lanes));
        if (in_scope(at, l->scope))
            l->fetched[l->n++] = (KFetch){ t->array, at, lanes * type_bytes(t->array->type), true };
    }
}

static void fetch_results(Lanes *l, const KStmt *s, const KStmt *row)
{
    for (const KStmt *rows = row->next; rows; rows = rows->next)
        if (is_whole_loop(rows) && rows->loop->hi == row->loop->hi)
            for (const KStmt *last = rows->body->first; last; last = last->next)
                if (is_whole_loop(last))
                    fetch_result(l, s, row, rows, last);
}

/* ---- what is read from a local array ---- */

static bool has_loop(const KBlock *b)
{
    for (const KStmt *s = b->first; s; s = s->next)
        if (s->kind == KS_FOR)
            return true;
    return false;
}

/* What the loop stores to the array, element by element; NULL. */
static const KStmt *maker_store(const KStmt *loop, const KArray *array)
{
    if (!is_whole_loop(loop) || has_loop(loop->body))
        return NULL;
    for (const KStmt *s = loop->body->first; s; s = s->next)
        if (s->kind == KS_STORE && s->array == array && ix_coef(s->index, loop->loop) == 1)
            return s;
    return NULL;
}

/* A loop before the lanes that makes a local array of operands: bf16 as f32, say. */
typedef struct Maker {
    Lanes        *l;
    const KStmt  *loop;
    const IxAtom *rows; /* the rows' there, NULL: as here */
    const Ix     *row, *at; /* the row's here, where in it the lanes begin */
} Maker;

static const Ix *here(const Maker *m, const Ix *x)
{
    return m->rows ? ix_replace(m->l->cx, x, m->rows, m->row) : x;
}

static void fetch_source(void *cookie, const KExpr *x)
{
    const Maker *m = cookie;
    if (x->kind == KX_LOAD && !x->array->written && ix_coef(x->index, m->loop->loop) == 1)
        fetch_from(m->l, x->array, ix_add(m->l->cx, without(m->l, here(m, x->index), m->loop->loop), m->at), false);
}

static void fetch_sources(Lanes *l, const KExpr *load, const KStmt *loop, const KStmt *rows, const KStmt *row)
{
    const KStmt *store = maker_store(loop, load->array);
    if (!store)
        return;
    Maker m = { l, loop, rows ? rows->loop : NULL, row ? ix_of(l->cx, row->loop) : NULL, NULL };
    m.at = ix_add(l->cx, without(l, load->index, l->loop->loop), ix_times(l->cx, without(l, here(&m, store->index), loop->loop), -1));
    kernel_visit(loop->body, &(KVisitor){ fetch_source, NULL, &m });
}

/* The lanes of s, in the loop `row` of several rows or in the body of `around` itself. */
typedef struct Locals {
    Lanes       *l;
    const KStmt *around, *row;
} Locals;

static void fetch_made(void *cookie, const KExpr *x)
{
    const Locals *a = cookie;
    if (x->kind != KX_LOAD || x->array->kind != KARRAY_LOCAL || ix_coef(x->index, a->l->loop->loop) != 1)
        return;
    for (const KStmt *t = a->around->body->first; t; t = t->next) {
        fetch_sources(a->l, x, t, NULL, NULL);
        if (is_whole_loop(t) && a->row && t != a->row && t->loop->hi == a->row->loop->hi)
            for (const KStmt *u = t->body->first; u; u = u->next)
                fetch_sources(a->l, x, u, t, a->row);
    }
}

static const KStmt *find_loop(const KBlock *b, const IxAtom *loop)
{
    const KStmt *found = NULL;
    for (const KStmt *s = b->first; s && !found; s = s->next)
        found = s->kind == KS_FOR && s->loop == loop ? s : s->body ? find_loop(s->body, loop) : NULL;
    return found;
}

/* ---- rows that go one by one ---- */

typedef struct Loaded {
    const KArray *array;
    bool          any;
} Loaded;

static void find_load(void *cookie, const KExpr *x)
{
    Loaded *l = cookie;
    l->any |= x->kind == KX_LOAD && x->array == l->array;
}

static bool loads(const KStmt *s, const KArray *array)
{
    Loaded l = { array, false };
    kernel_visit_stmt(s, &(KVisitor){ find_load, NULL, &l });
    return l.any;
}

typedef struct Again {
    const KStmt  *before;
    const IxAtom *row;
    bool          any;
} Again;

static bool is_long(const KExpr *x, const IxAtom *row)
{
    return x->kind == KX_LOAD && x->array->kind == KARRAY_PARAM && type_bits(x->array->type) >= 8 && llabs(ix_coef(x->index, row)) >= LEAST_ALONE / type_bytes(x->array->type);
}

static void find_long(void *cookie, const KExpr *x)
{
    Again *a = cookie;
    a->any |= is_long(x, a->row);
}

static void find_again(void *cookie, const KExpr *x)
{
    Again *a = cookie;
    if (is_long(x, a->row))
        a->any |= loads(a->before, x->array);
    else if (x->kind == KX_LOAD && x->array->kind == KARRAY_LOCAL && maker_store(a->before, x->array))
        kernel_visit(a->before->body, &(KVisitor){ find_long, NULL, a });
}

/* u loads of an operand with long rows that `before` loads of, or of what that makes of one. */
static bool reads_again(const KStmt *u, const KStmt *before, const IxAtom *row)
{
    Again a = { before, row, false };
    kernel_visit_stmt(u, &(KVisitor){ find_again, NULL, &a });
    return a.any;
}

/* The loop in s, or s, that goes through lanes of which something dear is made. */
static KStmt *dear_lanes(KStmt *s)
{
    if (s->kind != KS_FOR || s->turning || s->beside || !kernel_has_dear_call(s))
        return NULL;
    const KStmt *lanes = s->body->first;
    if (is_whole_loop(s) && is_whole_loop(lanes) && !lanes->next && !has_loop(lanes->body))
        return s;
    for (KStmt *t = s->body->first; t; t = t->next) {
        KStmt *found = dear_lanes(t);
        if (found)
            return found;
    }
    return NULL;
}

/* What computes a row while memory has nothing to do fetches the next one, where a loop before it has read the row. */
static void look_at_rows(const KStmt *row)
{
    for (KStmt *s = row->body->first; s; s = s->next) {
        KStmt *lanes = dear_lanes(s);
        if (!lanes || lanes->ahead)
            continue;
        for (const KStmt *t = row->body->first; t != s && !lanes->ahead; t = t->next)
            for (const KStmt *u = lanes->body->first->body->first; u; u = u->next)
                if (t->kind == KS_FOR && reads_again(u, t, row->loop))
                    lanes->ahead = row->loop;
        return;
    }
}

/* ---- rows that make a number each ---- */

static bool adds_up(const KStmt *lanes)
{
    for (const KStmt *s = lanes->body->first; s; s = s->next)
        if (s->kind == KS_STORE && s->array->kind != KARRAY_LOCAL)
            return false;
    return !has_loop(lanes->body);
}

static bool ends_with_number(const KStmt *row)
{
    for (const KStmt *s = row->body->first; s; s = s->next)
        if (s->kind == KS_STORE && s->array->kind == KARRAY_PARAM && ix_coef(s->index, row->loop) != 0)
            return true;
    return false;
}

/* No loop around goes over the elements again. */
static bool is_met_once(const Ix *x, const Scope *scope)
{
    for (const Scope *s = scope; s; s = s->up)
        if (s->loop->kind != KS_FOR || ix_coef(x, s->loop->loop) == 0)
            return false;
    return true;
}

/* Nothing but lane[l] += x[..]. */
static bool adds_alone(const KStmt *lanes)
{
    const KStmt *s = lanes->body->first;
    return !s->next && s->kind == KS_STORE && s->value->kind == KX_BINARY && s->value->arg[0]->kind == KX_LOAD && s->value->arg[1]->kind == KX_LOAD;
}

static void fetch_far(void *cookie, const KExpr *x)
{
    Lanes *l = cookie;
    if (x->kind != KX_LOAD || x->array->kind != KARRAY_PARAM || x->array->written || type_bits(x->array->type) < 8 || l->n == MOST_FETCHED || is_fetched(l, x->array))
        return;
    const int64_t bytes = type_bytes(x->array->type), lanes = l->loop->loop->hi + 1, least = adds_alone(l->loop) ? LEAST_ADDED : LEAST_FAR;
    const Ix     *first = without(l, x->index, l->loop->loop);
    const int64_t each = ix_coef(first, l->scope->loop->loop);
    if (x->array->count * bytes >= least && ix_coef(x->index, l->loop->loop) == 1 && each >= lanes && each <= MOST_PIECES * lanes && in_scope(first, l->scope) && is_met_once(first, l->scope))
        l->fetched[l->n++] = (KFetch){ x->array, ix_plus(l->cx, first, FAR / bytes), each * bytes, false, true };
}

/* What the lanes of s touch of the rows that come next. row: the loop around s, or NULL. */
static void fetch_next(Lanes *l, const KStmt *s, const KStmt *row)
{
    kernel_visit(l->loop->body, &(KVisitor){ NULL, fetch_stored, l });
    kernel_visit(l->loop->body, &(KVisitor){ fetch_loaded, NULL, l });
    const KStmt *around = find_loop(l->k->body, s->ahead);
    if (around)
        kernel_visit(l->loop->body, &(KVisitor){ fetch_made, NULL, &(Locals){ l, around, row == around ? NULL : row } });
    if (row)
        fetch_results(l, s, row);
}

static void in_block(Kernel *k, IxCtx *cx, KBlock *b, const Scope *up)
{
    for (KStmt *s = b->first; s; s = s->next) {
        const Scope  scope = { s, up };
        const KStmt *row = up ? up->loop : NULL;
        if (s->kind == KS_FOR && !s->turning && !s->beside)
            look_at_rows(s);
        if (s->body)
            in_block(k, cx, s->body, s->kind == KS_FOR ? &scope : up);
        if (s->other)
            in_block(k, cx, s->other, up);
        const KStmt *lanes = is_whole_loop(s) ? s->body->first : NULL;
        if (!is_whole_loop(lanes) || lanes->next)
            continue;
        Lanes l = { .k = k, .cx = cx, .scope = &scope, .loop = lanes, .ahead = s->ahead };
        if (s->ahead)
            fetch_next(&l, s, row);
        else if (row && ends_with_number(row) && adds_up(lanes))
            kernel_visit(lanes->body, &(KVisitor){ fetch_far, NULL, &l });
        if (l.n > 0 && lanes->loop->hi < MOST_UNROLLED) /* beside other statements compilers make no vectors of what they unroll first */
            ((KStmt *)(uintptr_t)lanes)->rolled = true;
        KFetch *kept = ARENA_ARRAY(k->arena, KFetch, l.n);
        for (int32_t i = 0; i < l.n; i++)
            kept[i] = l.fetched[i];
        s->n_fetched = l.n;
        s->fetched = kept;
    }
}

void kernel_fetch_ahead(Kernel *k, IxCtx *cx)
{
    if (!k->device)
        in_block(k, cx, k->body, NULL);
}

const char *kernel_fetching_function(const KFetch *x)
{
    return x->written ? "fetch_to_write" : x->far ? "fetch_far_ahead" : "fetch_ahead";
}
