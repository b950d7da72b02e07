#include "emit/written_out.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 2, MOST = 4 /* elements of a row */, ROWS = 16 /* at least */, FAR = 8 /* elements from one row to the next, at most */,
       VECTOR = 32 /* bytes, of which vectors are made along a row */, MOST_OUT = 48 /* statements of a row */, MOST_VALUES = 16 };

typedef struct Row {
    const IxAtom *rows;
    int64_t       trips;
    int32_t       statements, values;
    bool          no;
} Row;

static int64_t trips_of(const KStmt *s)
{
    return s->loop->hi - s->loop->lo + 1;
}

/* Elements of rows that follow each other, or the same ones for all rows; nothing about them is found out. */
static bool is_near(const Row *r, const Ix *x)
{
    bool near = llabs(ix_coef(x, r->rows)) <= FAR;
    for (int32_t k = 0; k < x->n; k++)
        near &= x->t[k].atom->kind == IX_LOOP;
    return near;
}

static bool is_of_f16(const char *fn)
{
    const char *at = strstr(fn, "f16");
    return at && (at == fn || at[-1] != 'b');
}

/* Of f16 vectors are made block by block; what takes long may be no vector at all. */
static void note_expr(void *cookie, const KExpr *x)
{
    Row *r = cookie;
    r->no |= x->kind == KX_CALL && (kx_is_dear_call(x) || is_of_f16(x->fn));
    r->no |= x->kind == KX_LOAD && (x->array->type == TYPE_F16 || !is_near(r, x->index));
    r->no |= x->kind == KX_UNARY && x->op == KOP_PLACE;
}

static void note_stmt(void *cookie, const KStmt *s)
{
    Row *r = cookie;
    r->no |= s->kind == KS_STORE && (r->trips * type_bytes(s->array->type) >= VECTOR || ix_coef(s->index, r->rows) == 0 /* sums */);
    r->no |= (s->kind != KS_DECLARE && s->kind != KS_STORE) || s->atomic || (s->kind == KS_STORE && (s->fill_work > 0 || s->array->type == TYPE_F16 || !is_near(r, s->index)));
    r->statements++;
    r->values += s->kind == KS_DECLARE;
}

static bool is_along(const KStmt *s)
{
    return s->kind == KS_FOR && !s->from && !s->end && !s->beside && !s->n_fetched && trips_of(s) >= LEAST && trips_of(s) <= MOST;
}

/* A loop over rows, of which nothing is left when they are written out but values and elements. */
static bool has_short_rows(const KStmt *rows)
{
    int32_t statements = 0, loops = 0;
    bool    shared = false;
    if (rows->kind != KS_FOR || rows->n_fetched || trips_of(rows) < ROWS)
        return false;
    for (const KStmt *s = rows->body->first; s; s = s->next) {
        Row      r = { .rows = rows->loop, .trips = is_along(s) ? trips_of(s) : 1 };
        KVisitor v = { note_expr, note_stmt, &r };
        if (is_along(s))
            kernel_visit(s->body, &v);
        else
            kernel_visit_stmt(s, &v);
        if (r.no || r.values > MOST_VALUES)
            return false;
        statements += r.statements * (is_along(s) ? (int32_t)trips_of(s) : 1);
        loops += is_along(s);
        shared |= s->kind == KS_DECLARE;
    }
    return loops > 0 && shared && statements <= MOST_OUT;
}

typedef struct Out {
    Kernel *k;
    IxCtx  *cx;
    int32_t serial;
    int32_t n;
    const KTemp *was[MOST_VALUES];
    KTemp       *is[MOST_VALUES];
} Out;

static const KExpr *element(const Out *o, const KExpr *x, const IxAtom *along, const Ix *at)
{
    KExpr *y = arena_copy(o->k->arena, x, sizeof *x);
    y->index = x->index ? ix_replace(o->cx, x->index, along, at) : NULL;
    y->depth = x->depth < along->depth ? x->depth : along->depth - 1;
    for (int32_t k = 0; k < o->n && x->kind == KX_TEMP; k++)
        y->temp = x->temp == o->was[k] ? o->is[k] : y->temp;
    for (int32_t k = 0; k < x->n; k++)
        y->arg[k] = element(o, x->arg[k], along, at);
    return y;
}

static KTemp *new_value(Out *o, const KTemp *was)
{
    KTemp *t = arena_copy(o->k->arena, was, sizeof *was);
    t->serial = o->serial++;
    t->depth = was->depth - 1;
    o->was[o->n] = was;
    return o->is[o->n++] = t;
}

static void write_row(Out *o, KBlock *to, const KStmt *loop)
{
    for (int64_t j = loop->loop->lo; j <= loop->loop->hi; j++) {
        const Ix *at = ix_const(o->cx, j);
        o->n = 0;
        for (const KStmt *s = loop->body->first; s; s = s->next) {
            KStmt *copy = arena_copy(o->k->arena, s, sizeof *s);
            copy->value = s->value ? element(o, s->value, loop->loop, at) : NULL;
            copy->index = s->index ? ix_replace(o->cx, s->index, loop->loop, at) : NULL;
            copy->temp = s->kind == KS_DECLARE ? new_value(o, s->temp) : s->temp;
            kblock_append(to, copy);
        }
    }
}

static void write_rows(Out *o, KBlock *b)
{
    KStmt *s = b->first;
    b->first = b->last = NULL;
    for (KStmt *next; s; s = next) {
        next = s->next;
        if (is_along(s))
            write_row(o, b, s);
        else
            kblock_append(b, s);
    }
}

static void in_block(Out *o, KBlock *b)
{
    for (KStmt *s = b->first; s; s = s->next) {
        if (has_short_rows(s))
            write_rows(o, s->body);
        else if (s->body)
            in_block(o, s->body);
        if (s->other)
            in_block(o, s->other);
    }
}

static void note_serial(void *most, const KStmt *s)
{
    int32_t *n = most;
    if (s->kind == KS_DECLARE && s->temp->serial >= *n)
        *n = s->temp->serial + 1;
}

void kernel_write_out(Kernel *k, IxCtx *cx)
{
    Out o = { .k = k, .cx = cx };
    kernel_visit(k->body, &(KVisitor){ NULL, note_serial, &o.serial });
    in_block(&o, k->body);
}
