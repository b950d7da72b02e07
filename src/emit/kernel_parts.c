/* Statements stay in order. Only a body without declarations of its own is divided, so that a part needs nothing but arrays. */
#include "emit/kernel_parts.h"

#include "support/vec.h"

enum { WHOLE = 32, PART = 16 }; /* loops: how many stay one function, how many go into each else */

static int32_t loops_in(const KBlock *b);

static int32_t loops_of(const KStmt *s)
{
    return (s->kind == KS_FOR) + (s->body ? loops_in(s->body) : 0) + (s->other ? loops_in(s->other) : 0);
}

static int32_t loops_in(const KBlock *b)
{
    int32_t n = 0;
    for (const KStmt *s = b->first; s; s = s->next)
        n += loops_of(s);
    return n;
}

static bool can_be_divided(const KBlock *b)
{
    for (const KStmt *s = b->first; s; s = s->next)
        if (s->kind != KS_FOR && s->kind != KS_IF && s->kind != KS_STORE)
            return false;
    return true;
}

/* ---- what a part uses ---- */

typedef struct Uses {
    bool *seen; /* by serial number of the array */
} Uses;

static void see(Uses *u, const KArray *x)
{
    if (x)
        u->seen[x->serial] = true;
}

static void see_expr(void *cookie, const KExpr *x)
{
    see(cookie, x->array);
    see(cookie, x->other);
}

static void see_stmt(void *cookie, const KStmt *s)
{
    if (s->kind == KS_STORE)
        see(cookie, s->array);
}

KernelPart kernel_part(Arena *a, const Kernel *k, const KBlock *body)
{
    KernelPart part = { .body = body };
    Uses       u = { ARENA_ARRAY(a, bool, k->n_arrays) };
    KVisitor   v = { see_expr, see_stmt, &u };
    KArray   **others = ARENA_ARRAY(a, KArray *, k->n_arrays);
    int32_t    n = k->n_operands + k->n_results;
    part.uses = ARENA_ARRAY(a, bool, n + 1);
    part.arrays = others;
    kernel_visit(part.body, &v);
    for (int32_t j = 0; j < k->n_arrays; j++) {
        KArray *x = k->arrays[j];
        if (!u.seen[j])
            continue;
        if (x->kind == KARRAY_PARAM)
            part.uses[x->param] = true;
        else
            others[part.n_arrays++] = x;
        part.uses[n] |= x->kind == KARRAY_TEMP;
    }
    return part;
}

static void note_all(Arena *a, const Kernel *k, KernelPart *part)
{
    int32_t n = k->n_operands + k->n_results;
    part->uses = ARENA_ARRAY(a, bool, n + 1);
    for (int32_t p = 0; p <= n; p++)
        part->uses[p] = kernel_uses_param(k, p);
    part->n_arrays = k->n_arrays;
    part->arrays = k->arrays;
}

/* ---- dividing ---- */

static KBlock *new_block(Arena *a, const KBlock *like)
{
    KBlock *b = arena_copy(a, like, sizeof *like);
    b->first = b->last = NULL;
    return b;
}

int32_t kernel_parts(Arena *a, const Kernel *k, KernelPart **parts)
{
    VEC(KernelPart) v = { 0 };
    KBlock         *b = NULL;
    int32_t         room = 0;
    if (loops_in(k->body) <= WHOLE || !can_be_divided(k->body)) {
        *parts = ARENA_NEW(a, KernelPart);
        (*parts)->body = k->body;
        note_all(a, k, *parts);
        return 1;
    }
    for (const KStmt *s = k->body->first; s; s = s->next) {
        if (!b || room < loops_of(s)) {
            b = new_block(a, k->body);
            room = PART;
            vec_push(a, &v, (KernelPart){ .body = b });
        }
        kblock_append_copy(a, b, s);
        room -= loops_of(s);
    }
    for (int32_t j = 0; j < v.n; j++)
        v.v[j] = kernel_part(a, k, v.v[j].body);
    *parts = v.v;
    return v.n;
}
