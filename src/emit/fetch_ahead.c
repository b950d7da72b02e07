/* Arrays of the kernel's parameters that the lanes touch one element behind the other, each once; and what later loops over the same rows store, since those have little else to do. */
#include "emit/fetch_ahead.h"

#include <stdlib.h>

enum {
    MOST_FETCHED = 4,
    MOST_UNROLLED = 16, /* trips of a loop that compilers unroll whole */
    LEAST_ROW = 1024, LEAST_ALONE = 8192, MOST_ROW = 256 * 1024, /* bytes from a row to the next, from one that goes by itself to the next: more find no room in the second cache until they are wanted */
    MOST_WRITTEN = 32 * 1024 /* likewise, in the first, which takes what is fetched to be written */
};

typedef struct Lanes {
    Kernel      *k;
    IxCtx       *cx;
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

static void fetch(Lanes *l, const KArray *array, const Ix *index, bool written)
{
    const IxAtom *lane = l->loop->loop;
    if (array->kind != KARRAY_PARAM || type_bits(array->type) < 8 || ix_coef(index, lane) != 1 || l->n == MOST_FETCHED || is_fetched(l, array))
        return;
    const int64_t next = ix_coef(index, l->ahead), apart = llabs(next) * type_bytes(array->type);
    if (apart < LEAST_ROW || apart > (written ? MOST_WRITTEN : MOST_ROW))
        return;
    const Ix *first = ix_plus(l->cx, ix_add(l->cx, index, ix_times(l->cx, ix_of(l->cx, lane), -1)), next);
    l->fetched[l->n++] = (KFetch){ array, first, (lane->hi - lane->lo + 1) * type_bytes(array->type), written };
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
        const Ix *first = ix_replace(l->cx, ix_add(l->cx, t->index, ix_times(l->cx, ix_of(l->cx, last->loop), -1)), rows->loop, ix_of(l->cx, row->loop));
        l->fetched[l->n++] = (KFetch){ t->array, ix_add(l->cx, first, ix_times(l->cx, ix_of(l->cx, s->loop), lanes)), lanes * type_bytes(t->array->type), true };
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

static void find_again(void *cookie, const KExpr *x)
{
    Again *a = cookie;
    a->any |= x->kind == KX_LOAD && x->array->kind == KARRAY_PARAM && type_bits(x->array->type) >= 8 &&
              llabs(ix_coef(x->index, a->row)) >= LEAST_ALONE / type_bytes(x->array->type) && loads(a->before, x->array);
}

/* u loads of an operand with long rows that `before` loads of. */
static bool reads_again(const KStmt *u, const KStmt *before, const IxAtom *row)
{
    Again a = { before, row, false };
    kernel_visit_stmt(u, &(KVisitor){ find_again, NULL, &a });
    return a.any;
}

static void note_dear(void *cookie, const KExpr *x)
{
    *(bool *)cookie |= kx_is_dear_call(x);
}

static bool is_dear(const KStmt *s)
{
    bool dear = false;
    kernel_visit_stmt(s, &(KVisitor){ note_dear, NULL, &dear });
    return dear;
}

static bool has_loop(const KBlock *b)
{
    for (const KStmt *s = b->first; s; s = s->next)
        if (s->kind == KS_FOR)
            return true;
    return false;
}

/* The loop in s, or s, that goes through lanes of which something dear is made. */
static KStmt *dear_lanes(KStmt *s)
{
    if (s->kind != KS_FOR || s->turning || s->beside || !is_dear(s))
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

/* row: the loop that the block is the body of; NULL. */
static void in_block(Kernel *k, IxCtx *cx, KBlock *b, const KStmt *row)
{
    for (KStmt *s = b->first; s; s = s->next) {
        if (s->kind == KS_FOR && !s->turning && !s->beside)
            look_at_rows(s);
        if (s->body)
            in_block(k, cx, s->body, s->kind == KS_FOR ? s : NULL);
        if (s->other)
            in_block(k, cx, s->other, NULL);
        const KStmt *lanes = s->ahead && is_whole_loop(s) ? s->body->first : NULL;
        if (!is_whole_loop(lanes) || lanes->next)
            continue;
        Lanes l = { .k = k, .cx = cx, .loop = lanes, .ahead = s->ahead };
        kernel_visit(lanes->body, &(KVisitor){ NULL, fetch_stored, &l });
        kernel_visit(lanes->body, &(KVisitor){ fetch_loaded, NULL, &l });
        if (row)
            fetch_results(&l, s, row);
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
    return x->written ? "fetch_to_write" : "fetch_ahead";
}
