/* A local array of a block is found in a loop nest at its end, which reads each element once and stores a result's element in its place. Nothing else may touch that
 * row, or column, of the result. */
#include "emit/row_in_result.h"

#include "support/map.h"
#include "support/vec.h"

typedef struct Row {
    Kernel       *k;
    const KArray *array;
    const Map    *unread; /* results that the kernel does not read */
    const KStmt  *store;  /* the last statement, to one of those */
    int64_t       stride; /* in that result */
    VEC(const IxAtom *) around; /* its loops, from the array's block on */
} Row;

/* ---- looking ---- */

static int64_t trips(const IxAtom *x)
{
    return x->hi - x->lo + 1;
}

typedef struct Touch {
    const KArray *array;
    bool          loads;
    int32_t       stores;
} Touch;

static void touch_expr(void *cookie, const KExpr *x)
{
    Touch *t = cookie;
    t->loads |= x->kind == KX_LOAD && x->array == t->array;
}

static void touch_stmt(void *cookie, const KStmt *s)
{
    Touch *t = cookie;
    t->stores |= s->kind == KS_STORE && s->array == t->array;
}

static Touch touch(const KStmt *s, const KArray *array)
{
    Touch    t = { .array = array };
    KVisitor v = { touch_expr, touch_stmt, &t };
    kernel_visit_stmt(s, &v);
    return t;
}

/* The last store of a block to a result of the array's type, in loops alone; their variables are put into around. */
static const KStmt *find_store(Row *r, const KBlock *b)
{
    for (const KStmt *s = b->first; s; s = s->next) {
        if (s->kind == KS_STORE && !s->atomic && map_has(r->unread, s->array) && s->array->type == r->array->type)
            return s;
        if (s->kind != KS_FOR || s->from || s->end)
            continue;
        vec_push(r->k->arena, &r->around, s->loop);
        const KStmt *found = find_store(r, s->body);
        if (found)
            return found;
        r->around.n--;
    }
    return NULL;
}

/* What each load of the array in the nest has: one index, up to the store. */
typedef struct Loads {
    const KArray *array;
    const Ix     *index;
    bool          differ;
} Loads;

static void note_index(void *cookie, const KExpr *x)
{
    Loads *l = cookie;
    if (x->kind != KX_LOAD || x->array != l->array)
        return;
    l->differ |= l->index && !ix_equal(l->index, x->index);
    l->index = x->index;
}

/* The index runs through 0 .. count - 1, once: loops in mixed radix. */
static bool covers(const Row *r, const Ix *x)
{
    int64_t size = 1;
    if (x->c != 0 || x->n == 0)
        return false;
    for (int32_t done = 0; done < x->n; done++) {
        const IxAtom *next = NULL;
        for (int32_t i = 0; i < x->n; i++)
            if (x->t[i].k == size && trips(x->t[i].atom) > 1)
                next = x->t[i].atom;
        bool around = false;
        for (int32_t i = 0; next && i < r->around.n; i++)
            around |= r->around.v[i] == next;
        if (!around || next->lo != 0)
            return false;
        size *= trips(next);
    }
    int64_t all = 1;
    for (int32_t i = 0; i < r->around.n; i++)
        all *= trips(r->around.v[i]);
    return size == r->array->count && all == size;
}

/* No loads of the array behind the store, where its element is gone. */
static bool is_last_use(const KStmt *store, const KArray *array)
{
    for (const KStmt *s = store->next; s; s = s->next) {
        Touch t = touch(s, array);
        if (t.loads || t.stores)
            return false;
    }
    return true;
}

/* x is the same throughout the block b. */
static bool is_fixed(const KBlock *b, const Ix *x)
{
    for (int32_t i = 0; i < x->n; i++)
        if (x->t[i].atom->kind != IX_LOOP)
            return false;
    for (const KStmt *s = b->first; s; s = s->next) {
        if (s->kind == KS_FOR && ix_has(x, s->loop))
            return false;
        if ((s->body && !is_fixed(s->body, x)) || (s->other && !is_fixed(s->other, x)))
            return false;
    }
    return true;
}

/* Stores past the caches would gain less than what takes long to compute hides. */
static bool is_dear(const KBlock *b, const KArray *array)
{
    for (const KStmt *s = b->first; s; s = s->next)
        if (touch(s, array).stores && kernel_has_dear_call(s))
            return true;
    return false;
}

/* How far apart neighbours of the array are in the result: more than one element where the array is a column. */
static int64_t stride_of(const Row *r, const Ix *load)
{
    for (int32_t i = 0; i < load->n; i++)
        if (load->t[i].k == 1)
            return ix_coef(r->store->index, load->t[i].atom);
    return 0;
}

/* Where the row of the result begins that the array can be in; NULL. */
static const Ix *row_of_result(Row *r, IxCtx *cx, const KBlock *b)
{
    const KStmt *last = NULL;
    for (const KStmt *s = b->first; s; s = s->next) {
        Touch t = touch(s, r->array);
        if (t.loads || t.stores)
            last = s;
    }
    if (!last || last->kind != KS_FOR || last->from || last->end || touch(last, r->array).stores || !is_dear(b, r->array))
        return NULL;
    vec_push(r->k->arena, &r->around, last->loop);
    r->store = find_store(r, last->body);
    if (!r->store || !is_last_use(r->store, r->array))
        return NULL;
    for (const KStmt *s = b->first; s; s = s->next)
        if (touch(s, r->store->array).stores != (s == last))
            return NULL;
    Loads    l = { .array = r->array };
    KVisitor v = { note_index, NULL, &l };
    kernel_visit_stmt(last, &v);
    if (l.differ || !l.index || !covers(r, l.index))
        return NULL;
    r->stride = stride_of(r, l.index);
    const Ix *base = ix_add(cx, r->store->index, ix_times(cx, l.index, -r->stride));
    return r->stride > 0 && is_fixed(b, base) ? base : NULL;
}

/* ---- rewriting ---- */

typedef struct Move {
    IxCtx        *cx;
    const KArray *from;
    KArray       *to;
    const Ix     *base;
    int64_t       stride;
} Move;

static void move_load(void *cookie, const KExpr *x)
{
    Move  *m = cookie;
    KExpr *y = (KExpr *)(uintptr_t)x;
    if (x->kind != KX_LOAD || x->array != m->from)
        return;
    y->array = m->to;
    y->index = ix_add(m->cx, m->base, ix_times(m->cx, x->index, m->stride));
}

static void move_store(void *cookie, const KStmt *s)
{
    Move  *m = cookie;
    KStmt *t = (KStmt *)(uintptr_t)s;
    if (s->kind != KS_STORE || s->array != m->from)
        return;
    t->array = m->to;
    t->index = ix_add(m->cx, m->base, ix_times(m->cx, s->index, m->stride));
}

static void in_block(Kernel *k, IxCtx *cx, const Map *unread, KBlock *b)
{
    for (KStmt *s = b->first; s; s = s->next) {
        if (s->body)
            in_block(k, cx, unread, s->body);
        if (s->other)
            in_block(k, cx, unread, s->other);
        enum { IN_REGISTERS = 16 }; /* elements of rows that may be */
        Row       r = { .k = k, .array = s->array, .unread = unread };
        const Ix *base = s->kind == KS_ARRAY && s->array->count > IN_REGISTERS ? row_of_result(&r, cx, b) : NULL;
        if (!base)
            continue;
        Move     m = { .cx = cx, .from = s->array, .to = r.store->array, .base = base, .stride = r.stride };
        KVisitor v = { move_load, move_store, &m };
        kernel_visit(b, &v);
        m.to->rewritten = true;
    }
}

typedef struct Reads {
    Map read;
} Reads;

static void note_read(void *cookie, const KExpr *x)
{
    Reads *r = cookie;
    if (x->kind == KX_LOAD)
        map_put(&r->read, x->array, r);
}

void kernel_rows_in_results(Kernel *k, IxCtx *cx)
{
    Reads    r = { map_new(k->arena) };
    KVisitor v = { note_read, NULL, &r };
    Map      unread = map_new(k->arena);
    kernel_visit(k->body, &v);
    for (int32_t i = 0; i < k->n_results; i++) {
        KArray *result = k->params[k->n_operands + i];
        bool    in_place = false; /* an update's, which begins with what is there */
        for (int32_t o = 0; o < k->n_operands; o++)
            in_place |= k->may_alias[i * k->n_operands + o];
        if (!in_place && !map_has(&r.read, result) && (result->type == TYPE_F32 || result->type == TYPE_F64))
            map_put(&unread, result, k);
    }
    in_block(k, cx, &unread, k->body);
}
