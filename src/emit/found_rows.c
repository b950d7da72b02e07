#include "emit/found_rows.h"

#include <string.h>

#include "emit/beside.h"
#include "support/vec.h"

enum { LEAST = 2, MOST = 4 /* elements of a row */, LEAST_ROWS = 32, MOST_FOUND = 4 /* rows: their elements are taken */ };

typedef struct FoundRow {
    const KExpr *load; /* of element j */
    KArray      *elements;
} FoundRow;

typedef struct Look {
    Kernel      *k;
    IxCtx       *cx;
    const KStmt *loop, *inner;
    bool         narrow, bad; /* something is rounded to f16 or bf16; it cannot be */
    VEC(FoundRow) found;
} Look;

static int64_t trips(const KStmt *s)
{
    return s->kind == KS_FOR && !s->from && !s->end && s->loop->lo == 0 ? s->loop->hi + 1 : 0;
}

static const FoundRow *found_row(const Look *l, const KExpr *load)
{
    for (int32_t k = 0; k < l->found.n; k++)
        if (l->found.v[k].load->array == load->array && ix_equal(l->found.v[k].load->index, load->index))
            return &l->found.v[k];
    return NULL;
}

static bool is_in_range(const KExpr *load)
{
    int64_t lo, hi;
    ix_range(load->index, &lo, &hi);
    return lo >= 0 && hi < load->array->count;
}

static bool rounds(const KExpr *x)
{
    return kx_rounds(x) || (x->kind == KX_CALL && (strcmp(x->fn, "f32_to_bf16") == 0 || strcmp(x->fn, "f32_to_f16") == 0));
}

static void look_at(void *cookie, const KExpr *x)
{
    Look *l = cookie;
    l->narrow |= rounds(x);
    l->bad |= x->index && kblock_computes(l->inner->body, x->index);
    if (x->kind != KX_LOAD || !kblock_computes(l->loop->body, x->index) || found_row(l, x))
        return;
    l->bad |= !is_in_range(x) || l->found.n == MOST_FOUND;
    vec_push(l->k->arena, &l->found, ((FoundRow){ .load = x }));
}

static bool only_declares(const KBlock *b, const KStmt *end, bool stores)
{
    for (const KStmt *s = b->first; s != end; s = s->next)
        if (!(s->kind == KS_DECLARE && s->value && !s->temp->assigned) && !(stores && s->kind == KS_STORE && !s->atomic))
            return false;
    return true;
}

static bool is_stored(const KBlock *b, const KArray *array)
{
    for (const KStmt *s = b->first; s; s = s->next)
        if (s->kind == KS_STORE && s->array == array)
            return true;
    return false;
}

/* Something of each row is computed of floats, such as its place or its weight. */
static bool weighs_rows(const Look *l)
{
    bool found = false;
    for (const KStmt *s = l->loop->body->first; s != l->inner && !found; s = s->next)
        found = type_is_float(s->temp->type) && s->value->kind != KX_LOAD;
    return found;
}

static bool has_found_rows(Look *l)
{
    l->inner = l->loop->body->last;
    const int64_t n = l->inner ? trips(l->inner) : 0;
    if (trips(l->loop) < LEAST_ROWS || n < LEAST || n > MOST || !only_declares(l->loop->body, l->inner, false) || !only_declares(l->inner->body, NULL, true))
        return false;
    kernel_visit(l->inner->body, &(KVisitor){ look_at, NULL, l });
    for (int32_t k = 0; k < l->found.n; k++)
        l->bad |= is_stored(l->inner->body, l->found.v[k].load->array);
    return !l->bad && l->found.n > 0 && (l->narrow || (l->found.n > 1 && weighs_rows(l)));
}

/* u16 found[3];  found[0] = t[p + 0];  found[1] = t[p + 1]; ... */
static void keep_row(Look *l, KBlock *body, FoundRow *f)
{
    Arena *a = l->k->arena;
    f->elements = ARENA_NEW(a, KArray);
    *f->elements = (KArray){ .kind = KARRAY_LOCAL, .type = f->load->array->type, .name = arena_printf(a, "%s_found", f->load->array->name), .count = trips(l->inner) };
    kernel_add_arrays(l->k, 1, &f->elements);
    kblock_append(body, arena_copy(a, &(KStmt){ .kind = KS_ARRAY, .array = f->elements }, sizeof(KStmt)));
    for (int64_t j = 0; j < trips(l->inner); j++) {
        const Ix    *at = ix_const(l->cx, j);
        const KExpr *x = kx_load(a, f->load->array, ix_replace(l->cx, f->load->index, l->inner->loop, at));
        kblock_append(body, arena_copy(a, &(KStmt){ .kind = KS_STORE, .array = f->elements, .index = at, .value = x }, sizeof(KStmt)));
    }
}

static const KExpr *load_found(void *cookie, const KExpr *x)
{
    const Look     *l = cookie;
    const FoundRow *f = found_row(l, x);
    return f ? kx_load(l->k->arena, f->elements, ix_of(l->cx, l->inner->loop)) : NULL;
}

static KStmt *with_rows(Look *l)
{
    Arena  *a = l->k->arena;
    KStmt  *loop = arena_copy(a, l->loop, sizeof *loop), *inner = arena_copy(a, l->inner, sizeof *inner);
    KBlock *body = arena_copy(a, l->loop->body, sizeof *body);
    body->first = body->last = NULL;
    for (const KStmt *s = l->loop->body->first; s != l->inner; s = s->next)
        kblock_append(body, arena_copy(a, s, sizeof *s));
    for (int32_t k = 0; k < l->found.n; k++)
        keep_row(l, body, &l->found.v[k]);
    inner->body = kernel_rewrite(a, l->inner->body, &(KRewriter){ load_found, NULL, l });
    kblock_append(body, inner);
    loop->body = body;
    return loop;
}

/* Puts the loop in the place of another one of b. */
static void replace(KBlock *b, const KStmt *was, KStmt *loop)
{
    KStmt **link = &b->first;
    while (*link != was)
        link = &(*link)->next;
    loop->next = was->next;
    *link = loop;
    b->last = b->last == was ? loop : b->last;
}

static bool in_block(Kernel *k, IxCtx *cx, KBlock *b)
{
    bool any = false;
    for (KStmt *s = b->first, *next; s; s = next) {
        Look l = { .k = k, .cx = cx, .loop = s };
        next = s->next;
        if (s->kind != KS_FOR || !has_found_rows(&l)) {
            any |= (s->body && in_block(k, cx, s->body)) | (s->other && in_block(k, cx, s->other));
            continue;
        }
        KStmt *loop = with_rows(&l);
        replace(b, s, loop);
        if (loop_rows_beside(k, cx, b, loop))
            any = true;
        else
            replace(b, loop, s);
    }
    return any;
}

bool kernel_found_rows_beside(Kernel *k, IxCtx *cx)
{
    return kernel_beside(k, cx, in_block);
}
