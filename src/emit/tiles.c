/* Every loop of the nest, every value declared in it and every condition belongs to the factors that depend on the same loops of the part. */
#include "emit/tiles.h"

#include "support/map.h"
#include "support/vec.h"

#include <string.h>

enum { MOST_LOOPS = 16, LONG_ROW = 32 /* neighbours that are enough by themselves */ };
enum { ON_ROWS = 1, ON_COLS = 2 }; /* what something depends on */

typedef struct Tiles {
    Arena            *arena;
    const ThreadPart *part;
    TilePart         *out;
    const KStmt      *declared, *nest; /* of the sum */
    const KExpr      *factor[2];
    VEC(const KStmt *) inside;         /* values and conditions of the nest, from outside in */
    Map               values;          /* temporaries of the nest -> their statements */
    Map               outer;           /* temporaries declared before it */
    bool              bad;
} Tiles;

/* ---- what an expression uses ---- */

typedef struct Uses {
    const Tiles *t;
    bool         loops[MOST_LOOPS]; /* of the part */
    Map          temps;             /* declared in the nest */
    bool         outer;             /* something declared before the nest */
} Uses;

static void use_temp(Uses *u, const KTemp *x);

static void use_index(Uses *u, const Ix *x)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        const IxAtom *atom = x->t[i].atom;
        for (int32_t j = 0; j < u->t->part->n_loops; j++)
            u->loops[j] |= u->t->part->loops[j] == atom;
        if (atom->kind == IX_VALUE)
            use_temp(u, atom->owner);
        use_index(u, atom->arg);
    }
}

static void use_expr(void *cookie, const KExpr *x)
{
    Uses *u = cookie;
    if (x->temp)
        use_temp(u, x->temp);
    use_index(u, x->index);
}

static void visit_value(const KExpr *x, Uses *u)
{
    KVisitor v = { use_expr, NULL, u };
    kernel_visit_stmt(&(KStmt){ .kind = KS_ASSIGN, .value = x }, &v);
}

static void use_temp(Uses *u, const KTemp *x)
{
    const KStmt *s = map_get(&u->t->values, x);
    u->outer |= map_has(&u->t->outer, x);
    if (!s || map_has(&u->temps, x))
        return;
    map_put(&u->temps, x, u);
    visit_value(s->value, u);
}

static Uses uses_of(const Tiles *t, const KExpr *x)
{
    Uses u = { .t = t, .temps = map_new(t->arena) };
    visit_value(x, &u);
    return u;
}

/* ---- the form ---- */

static bool is_zero(const KExpr *x)
{
    return x && ((x->kind == KX_INT && x->i == 0) || (x->kind == KX_FLOAT && x->f == 0));
}

static bool is_operation(const KExpr *x, KOp op, const char *fn)
{
    return x->n == 2 && ((x->kind == KX_BINARY && x->op == op && type_is_float(x->type)) || (x->kind == KX_CALL && strncmp(x->fn, fn, strlen(fn)) == 0));
}

/* acc = acc + x * y */
static bool is_step(Tiles *t, const KStmt *s)
{
    const KExpr *v = s->kind == KS_ASSIGN ? s->value : NULL;
    if (!v || !is_operation(v, KOP_ADD, "add_") || v->arg[0]->kind != KX_TEMP || v->arg[0]->temp != s->temp || !is_operation(v->arg[1], KOP_MUL, "mul_"))
        return false;
    t->out->step = v;
    t->out->acc = s->temp;
    t->factor[0] = v->arg[1]->arg[0];
    t->factor[1] = v->arg[1]->arg[1];
    return true;
}

static bool add_loop(TileLoops *to, const IxAtom *loop)
{
    if (to->n == MOST_LOOPS || __builtin_mul_overflow(to->n ? to->count : 1, loop->hi - loop->lo + 1, &to->count))
        return false;
    to->v[to->n++] = loop;
    return true;
}

/* Loops, values and conditions down to the step. */
static bool walk_nest(Tiles *t, const KStmt *s)
{
    for (; s; s = s->body ? s->body->first : s->next) {
        if (s->kind == KS_FOR && (s->from || s->end || s->next || s->loop->hi < s->loop->lo || !add_loop(&t->out->k, s->loop)))
            return false;
        if (s->kind == KS_IF && (s->other || s->next))
            return false;
        if (s->kind == KS_DECLARE && (!s->value || s->temp->assigned))
            return false;
        if (s->kind == KS_DECLARE)
            map_put(&t->values, s->temp, (void *)(uintptr_t)s);
        if (s->kind == KS_DECLARE || s->kind == KS_IF)
            vec_push(t->arena, &t->inside, s);
        if (s->kind != KS_FOR && s->kind != KS_IF && s->kind != KS_DECLARE)
            return !s->next && is_step(t, s);
    }
    return false;
}

/* The declaration of acc, the nest, and all else as the epilogue. */
static bool divide(Tiles *t)
{
    KBlock *epilogue = ARENA_NEW(t->arena, KBlock);
    for (const KStmt *s = t->part->body->first; s; s = s->next)
        if (s->kind == KS_FOR && !t->nest) {
            TilePart empty = { 0 };
            KStmt   *alone = arena_copy(t->arena, s, sizeof *s);
            alone->next = NULL;
            *t->out = empty;
            if (!walk_nest(t, alone))
                return false;
            t->nest = s;
        }
    for (const KStmt *s = t->part->body->first; s && t->nest; s = s->next) {
        if (s->kind == KS_DECLARE && s->temp == t->out->acc)
            t->declared = s;
        else if (s != t->nest)
            kblock_append_copy(t->arena, epilogue, s);
        if (s->kind == KS_DECLARE && s->temp != t->out->acc)
            map_put(&t->outer, s->temp, t);
    }
    t->out->epilogue = epilogue;
    return t->nest && t->declared && is_zero(t->declared->value);
}

/* ---- who depends on what ---- */

static bool deal_loops(Tiles *t)
{
    const ThreadPart *part = t->part;
    Uses              u[2] = { uses_of(t, t->factor[0]), uses_of(t, t->factor[1]) };
    if (u[0].outer || u[1].outer)
        return false;
    for (int32_t j = 0; j < part->n_loops; j++) {
        TileLoops *to = u[0].loops[j] == u[1].loops[j] ? &t->out->batch : u[0].loops[j] ? &t->out->rows : &t->out->cols;
        if (!add_loop(to, part->loops[j]))
            return false;
    }
    t->out->batch.count = t->out->batch.n ? t->out->batch.count : 1;
    return t->out->rows.n > 0 && t->out->cols.n > 0;
}

static bool has_loop(const TileLoops *x, const IxAtom *loop)
{
    for (int32_t j = 0; j < x->n; j++)
        if (x->v[j] == loop)
            return true;
    return false;
}

static int depends(const Tiles *t, const Uses *u)
{
    int on = 0;
    for (int32_t j = 0; j < t->part->n_loops; j++) {
        if (u->loops[j] && has_loop(&t->out->rows, t->part->loops[j]))
            on |= ON_ROWS;
        if (u->loops[j] && has_loop(&t->out->cols, t->part->loops[j]))
            on |= ON_COLS;
    }
    return on;
}

/* The columns are those whose neighbours the results are stored beside each other for. */
static void choose_columns(Tiles *t)
{
    const ThreadPart *part = t->part;
    if (!has_loop(&t->out->rows, part->loops[part->n_loops - 1]))
        return;
    TileLoops    rows = t->out->rows;
    const KExpr *lhs = t->factor[0];
    t->out->rows = t->out->cols;
    t->out->cols = rows;
    t->factor[0] = t->factor[1];
    t->factor[1] = lhs;
}

/* ---- a side ---- */

typedef struct Neighbours {
    const IxAtom *k, *free;
    bool          along, across;
    int32_t       loads, rows_along, rows_across; /* that depend on both; short rows of one behind each other in the other */
} Neighbours;

static int64_t trips(const IxAtom *loop)
{
    return loop->hi - loop->lo + 1;
}

static void see_load(void *cookie, const KExpr *x)
{
    Neighbours *n = cookie;
    if (x->kind != KX_LOAD)
        return;
    int64_t k = ix_coef(x->index, n->k), free = ix_coef(x->index, n->free);
    n->along |= k == 1 || k == -1;
    n->across |= free == 1 || free == -1;
    n->loads += k != 0 && free != 0;
    n->rows_along += k == 1 && free == trips(n->k) && free > 1;
    n->rows_across += free == 1 && k == trips(n->free) && k > 1;
}

static int32_t short_row(const Neighbours *n, bool along)
{
    const int64_t row = trips(along ? n->k : n->free);
    return n->loads > 0 && (along ? n->rows_along : n->rows_across) == n->loads && row < LONG_ROW ? (int32_t)row : 0;
}

/* Conditions that are of both sides would not be a product's. */
static bool side_body(Tiles *t, int side, TileSide *out)
{
    Uses    own = uses_of(t, t->factor[side]);
    KBlock *whole = ARENA_NEW(t->arena, KBlock), *b = whole;
    KTemp  *value = ARENA_NEW(t->arena, KTemp);
    for (int32_t j = 0; j < t->inside.n; j++) {
        const KStmt *s = t->inside.v[j];
        Uses         u = uses_of(t, s->value);
        int          on = depends(t, &u);
        if (s->kind == KS_DECLARE) { /* what a condition of this side needs, too: see below */
            bool wanted = map_has(&own.temps, s->temp);
            for (int32_t i = j + 1; i < t->inside.n && !wanted; i++) {
                Uses later = uses_of(t, t->inside.v[i]->value);
                int  where = depends(t, &later);
                wanted = t->inside.v[i]->kind == KS_IF && (side == 0 ? !(where & ON_COLS) : where == ON_COLS) && map_has(&later.temps, s->temp);
            }
            if (wanted)
                kblock_append_copy(t->arena, b, s);
            continue;
        }
        if (on == (ON_ROWS | ON_COLS) || u.outer)
            return false;
        if ((on == ON_COLS) != (side == 1))
            continue;
        KBlock *inner = ARENA_NEW(t->arena, KBlock);
        kblock_append_copy(t->arena, b, s);
        b->last->body = inner;
        b = inner;
    }
    *value = (KTemp){ .name = side ? "b_at" : "a_at", .type = t->factor[side]->type, .assigned = true };
    kblock_append_copy(t->arena, b, &(KStmt){ .kind = KS_ASSIGN, .temp = value, .value = t->factor[side] });
    const TileLoops *free = side ? &t->out->cols : &t->out->rows;
    Neighbours       n = { .k = t->out->k.v[t->out->k.n - 1], .free = free->v[free->n - 1] };
    KVisitor         v = { see_load, NULL, &n };
    kernel_visit(whole, &v);
    *out = (TileSide){ .body = whole, .value = value, .along = n.along && !n.across };
    out->row = short_row(&n, out->along);
    return true;
}

bool kernel_tile_part(Arena *a, const ThreadPart *part, TilePart *out)
{
    Tiles t = { .arena = a, .part = part, .out = out, .values = map_new(a), .outer = map_new(a) };
    if (part->n_loops < 2 || part->n_loops > MOST_LOOPS || !divide(&t) || !deal_loops(&t))
        return false;
    choose_columns(&t);
    return side_body(&t, 0, &out->lhs) && side_body(&t, 1, &out->rhs);
}
