/* A temporary or an array of the kernel's own ties everything from its declaration to its last use together, but for values that are the same wherever they are computed: those
 * that read nothing that is written between, and are made of nothing but such values. */
#include "emit/groups.h"

#include "emit/threads.h"
#include "support/map.h"

typedef struct Groups {
    Arena        *arena;
    const Kernel *k;
    StmtGroups   *out;
    Map           last;   /* temporaries and local arrays -> the last statement that uses them, and 1 */
    Map           needed; /* temporaries -> likewise the last one that uses them or what is declared by them, which may be computed there again */
    int32_t       at;     /* the statement at hand */
    Map           again;  /* temporaries that may be computed again */
    bool          found;  /* what a search has asked for */
    const KArray *sought;
} Groups;

/* ---- uses ---- */

static void note(Groups *g, const void *what)
{
    map_put(&g->last, what, (void *)(intptr_t)(g->at + 1));
}

static void note_index(Groups *g, const Ix *x)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        if (x->t[i].atom->kind == IX_VALUE)
            note(g, x->t[i].atom->owner);
        note_index(g, x->t[i].atom->arg);
    }
}

static void note_expr(void *cookie, const KExpr *x)
{
    if (x->temp)
        note(cookie, x->temp);
    if (x->array && x->array->kind == KARRAY_LOCAL)
        note(cookie, x->array);
    note_index(cookie, x->index);
}

static void note_stmt(void *cookie, const KStmt *s)
{
    if (s->kind == KS_ASSIGN)
        note(cookie, s->temp);
    if (s->kind == KS_STORE && s->array->kind == KARRAY_LOCAL)
        note(cookie, s->array);
    note_index(cookie, s->index);
    note_index(cookie, s->from);
    note_index(cookie, s->end);
}

static int32_t last_of(const Map *m, const void *what, int32_t at)
{
    int32_t last = (int32_t)(intptr_t)map_get(m, what) - 1;
    return last > at ? last : at;
}

static int32_t last_use(const Groups *g, const void *what, int32_t at)
{
    return last_of(&g->last, what, at);
}

/* ---- how long values are needed ---- */

static void need(Groups *g, const KTemp *x)
{
    map_put(&g->needed, x, (void *)(intptr_t)(last_of(&g->needed, x, g->at) + 1));
}

static void need_index(Groups *g, const Ix *x)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        if (x->t[i].atom->kind == IX_VALUE)
            need(g, x->t[i].atom->owner);
        need_index(g, x->t[i].atom->arg);
    }
}

static void need_expr(void *cookie, const KExpr *x)
{
    if (x->temp)
        need(cookie, x->temp);
    need_index(cookie, x->index);
}

/* From the last one on: what a value is made of is needed as long as the value is. */
static void find_needed(Groups *g)
{
    KVisitor v = { need_expr, NULL, g };
    for (int32_t j = g->out->n_stmts; j-- > 0;) {
        const KStmt *s = g->out->stmts[j];
        if (s->kind != KS_DECLARE)
            continue;
        g->at = last_of(&g->needed, s->temp, last_use(g, s->temp, j));
        kernel_visit_stmt(s, &v);
    }
}

/* ---- values that may be computed again ---- */

static void seek_store(void *cookie, const KStmt *s)
{
    Groups *g = cookie;
    g->found |= s->kind == KS_STORE && kernel_same_memory(g->k, s->array, g->sought);
}

static void check_index(Groups *g, const Ix *x)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        if (x->t[i].atom->kind == IX_VALUE)
            g->found |= !map_has(&g->again, x->t[i].atom->owner);
        check_index(g, x->t[i].atom->arg);
    }
}

/* What the value reads is written while it is needed, or is made of what cannot be computed again. */
static void check_expr(void *cookie, const KExpr *x)
{
    Groups  *g = cookie;
    KVisitor stores = { NULL, seek_store, g };
    if (x->temp)
        g->found |= !map_has(&g->again, x->temp);
    check_index(g, x->index);
    if (x->kind != KX_LOAD || g->found)
        return;
    g->found = x->array->kind == KARRAY_LOCAL;
    g->sought = x->array;
    const int32_t last = x->array->restricted && !x->array->written ? 0 : last_of(&g->needed, g->out->stmts[g->at]->temp, last_use(g, g->out->stmts[g->at]->temp, g->at));
    for (int32_t i = g->at + 1; i <= last && !g->found; i++)
        kernel_visit_stmt(g->out->stmts[i], &stores);
}

static bool may_again(Groups *g, const KStmt *s)
{
    KVisitor v = { check_expr, NULL, g };
    g->found = s->kind != KS_DECLARE || !s->value || s->temp->assigned;
    if (!g->found)
        kernel_visit_stmt(s, &v);
    return !g->found;
}

/* ---- groups ---- */

/* Statements up to *to belong to what begins at j. */
static void extend(const Groups *g, int32_t j, int32_t *to)
{
    const KStmt *s = g->out->stmts[j];
    const int32_t last = g->out->again[j] ? j : s->kind == KS_DECLARE ? last_use(g, s->temp, j) : s->kind == KS_ARRAY ? last_use(g, s->array, j) : j;
    *to = last + 1 > *to ? last + 1 : *to;
}

void kernel_groups(Arena *a, const Kernel *k, StmtGroups *out)
{
    Groups   g = { .arena = a, .k = k, .out = out, .last = map_new(a), .needed = map_new(a), .again = map_new(a) };
    KVisitor all = { note_expr, note_stmt, &g };
    *out = (StmtGroups){ 0 };
    for (const KStmt *s = k->body->first; s; s = s->next)
        out->n_stmts++;
    out->stmts = ARENA_ARRAY(a, const KStmt *, out->n_stmts);
    out->again = ARENA_ARRAY(a, bool, out->n_stmts);
    out->v = ARENA_ARRAY(a, StmtGroup, out->n_stmts);
    for (const KStmt *s = k->body->first; s; s = s->next, g.at++) {
        out->stmts[g.at] = s;
        kernel_visit_stmt(s, &all);
    }
    find_needed(&g);
    for (g.at = 0; g.at < out->n_stmts; g.at++)
        if (may_again(&g, out->stmts[g.at])) {
            out->again[g.at] = true;
            map_put(&g.again, out->stmts[g.at]->temp, &g);
        }
    for (int32_t j = 0; j < out->n_stmts;) {
        StmtGroup x = { j, j + 1 };
        for (extend(&g, j, &x.to); ++j < x.to;)
            extend(&g, j, &x.to);
        if (x.to > x.from + 1 || !out->again[x.from])
            out->v[out->n++] = x;
    }
}
