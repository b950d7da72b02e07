#include "emit/dear_rows.h"

#include <string.h>

#include "emit/beside.h"

enum { LEAST_ROWS = 32, LEAST = 5, MOST = 22 /* elements of a row: fewer are written out, more fill vectors */, LEAST_HALVES = 2 /* of f16, which in no vector takes a dozen instructions each */, HALF = 8, VECTOR = 16 /* and half as many of 64 bits */ };

static int64_t trips(const KStmt *s)
{
    return s->kind == KS_FOR && !s->from && !s->end ? s->loop->hi - s->loop->lo + 1 : 0;
}

typedef struct Dear {
    bool ours, libm, narrow, wide; /* functions with text, and others; something is f16 or bf16, or has 64 bits */
    bool halves; /* f16 is converted, or rounded to */
} Dear;

static bool is_of_libm(const char *fn)
{
    static const char *const names[] = { "sin", "sinf", "cos", "cosf", "tan", "tanf", "pow", "powf" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(fn, names[i]) == 0)
            return true;
    return false;
}

static void note_dear(void *cookie, const KExpr *x)
{
    Dear      *d = cookie;
    const bool dear = kx_is_dear_call(x), libm = dear && is_of_libm(x->fn);
    d->libm |= libm;
    d->ours |= dear && !libm;
    d->halves |= x->kind == KX_CALL && (strcmp(x->fn, "f16_to_f32") == 0 || strcmp(x->fn, "f32_to_f16") == 0 || strcmp(x->fn, "f16_round") == 0);
    d->wide |= x->kind == KX_LOAD && type_bits(x->array->type) == 64;
    d->narrow |= x->kind == KX_LOAD && (x->array->type == TYPE_F16 || x->array->type == TYPE_BF16);
}

/* Functions of libm for half a vector of f32 are as fast as what turning costs. */
static bool is_dear(const KStmt *s, int64_t n)
{
    Dear d = { 0 };
    kernel_visit_stmt(s, &(KVisitor){ note_dear, NULL, &d });
    const int64_t words = d.wide ? 2 * n : n;
    if (d.halves && n < HALF)
        return true;
    return words != VECTOR && words <= MOST && (d.ours || (d.libm && (words != HALF || d.narrow)));
}

/* Elements of a row that statement s goes through, where that is one loop in another and dear; 0: it is not. */
static int64_t dear_elements(const KStmt *s)
{
    const int64_t n = trips(s);
    if (n == 0 || n > MOST)
        return 0;
    for (const KStmt *t = s->body->first; t; t = t->next) {
        if (t->kind == KS_FOR && !t->next)
            return n * dear_elements(t);
        if ((t->kind != KS_DECLARE || !t->value || t->temp->assigned) && (t->kind != KS_STORE || t->atomic))
            return 0;
    }
    return is_dear(s, n) ? n : 0;
}

/* The least elements of rows that are worth it. */
static int64_t least_elements(const KStmt *s)
{
    Dear d = { 0 };
    kernel_visit_stmt(s, &(KVisitor){ note_dear, NULL, &d });
    return d.halves ? LEAST_HALVES : LEAST;
}

/* One loop after the other, as parts that are concatenated have them; single elements are beside them, or are all, of narrow floats. */
static bool has_dear_rows(const KStmt *loop)
{
    const bool halves = trips(loop) >= LEAST_ROWS && least_elements(loop) == LEAST_HALVES;
    int64_t    all = 0;
    if (trips(loop) < LEAST_ROWS)
        return false;
    for (const KStmt *s = loop->body->first; s; s = s->next) {
        const bool    single = (s->kind == KS_DECLARE && s->value && !s->temp->assigned) || (halves && s->kind == KS_STORE && !s->atomic);
        const int64_t n = s->kind == KS_FOR ? dear_elements(s) : s->kind == KS_STORE;
        if (!single && (s->kind != KS_FOR || n == 0))
            return false;
        all += n;
    }
    return all >= least_elements(loop) && all <= BESIDE_MOST;
}

static bool in_block(Kernel *k, IxCtx *cx, KBlock *b)
{
    bool any = false;
    for (KStmt *s = b->first, *next; s; s = next) {
        next = s->next;
        if (has_dear_rows(s) && loop_rows_beside(k, cx, b, s))
            any = true;
        else
            any |= (s->body && in_block(k, cx, s->body)) | (s->other && in_block(k, cx, s->other));
    }
    return any;
}

bool kernel_dear_rows_beside(Kernel *k, IxCtx *cx)
{
    return kernel_beside(k, cx, in_block);
}
