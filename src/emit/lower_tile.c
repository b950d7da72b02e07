/* What a routine of the runtime calls for a row of finished sums (hlort_epilogue in src/runtime/hlort.h), made of a fusion around a dot or a convolution:
 *
 *     d = dot(x, w);  out = tanh(d + broadcast(bias))     =>     for (i0 = range_from; i0 < range_end; i0++)
 *                                                                    out[range_row * 3072 + i0] = tanhf(sums[i0 - range_from] + bias[i0]);
 *
 * The element that is range_row * row + i0 in the hero's memory leads to one element of every result, as in lower_epilogue.c. A result that lies like the hero and
 * is of the sums' type is written over them: these are its memory then, or go there. */
#include "emit/lower.h"

#include "emit/ranges.h"

#include <string.h>

static const Ix *argument(Lower *L, const char *name, int64_t hi, int32_t serial)
{
    KTemp *t = ARENA_NEW(L->arena, KTemp);
    *t = (KTemp){ .name = name, .type = TYPE_S64, .serial = serial };
    return ix_of(&L->ix, ix_new_atom(&L->ix, IX_VALUE, name, 0, hi, 0, t));
}

/* Of what type the runtime sums up a hero of that type. */
static Type sums_type(Type t)
{
    return t == TYPE_BF16 || t == TYPE_F16 ? TYPE_F32 : t;
}

void tile_param(Lower *L)
{
    KArray *x = ARENA_NEW(L->arena, KArray);
    *x = (KArray){ .kind = KARRAY_PARAM, .type = sums_type(L->plan->tile_hero->shape->type), .name = "sums", .count = L->plan->tile_row, .param = L->arrays.n,
                   .restricted = true, .serial = L->arrays.n };
    vec_push(L->arena, &L->arrays, x);
}

/* The index of an element of s by its place in memory. */
static const Ix **index_of_place(Lower *L, const Shape *s, const Ix *place)
{
    int32_t   *order = major_order(L, s);
    int64_t   *dims = ARENA_ARRAY(L->arena, int64_t, s->rank);
    const Ix **digits = ARENA_ARRAY(L->arena, const Ix *, s->rank), **at = ARENA_ARRAY(L->arena, const Ix *, s->rank);
    for (int32_t k = 0; k < s->rank; k++)
        dims[k] = s->dims[order[k]];
    ix_split(&L->ix, place, s->rank, dims, digits);
    for (int32_t k = 0; k < s->rank; k++)
        at[order[k]] = digits[k];
    return at;
}

/* Everything but the hero is computed element by element. */
static bool has_loops(const Lower *L)
{
    for (const Inst *x = L->body->first; x; x = x->next)
        if (x != L->plan->tile_hero && is_staged(x))
            return true;
    return false;
}

static bool lead_to_results(const Lower *L)
{
    for (int32_t k = 0; k < L->k->n_results; k++)
        if (!epilogue_index(L, L->results[k].x))
            return false;
    return true;
}

static int32_t find_in_place(Lower *L, const KArray *sums, const Ix *place)
{
    const Inst *hero = L->plan->tile_hero;
    int32_t     found = -1;
    for (int32_t k = 0; k < L->k->n_results && hero->shape->type == sums->type; k++) {
        const Result *r = &L->results[k];
        bool          there = r->to->type == sums->type && ix_equal(shape_index(L, r->to->shape, epilogue_index(L, r->x)), place);
        if (there && (found < 0 || r->x == hero))
            found = k;
    }
    return found;
}

static void store_row(Lower *L, KArray *sums, const Ix *at_sum)
{
    const KExpr **v = ARENA_ARRAY(L->arena, const KExpr *, L->k->n_results);
    for (int32_t k = 0; k < L->k->n_results; k++)
        v[k] = value_at(L, L->results[k].x, 0, epilogue_index(L, L->results[k].x));
    for (int32_t k = 0; k < L->k->n_results; k++) {
        const Result *r = &L->results[k];
        if (k != L->k->tile_in_place)
            store_at(L, r->to, epilogue_index(L, r->x), v[k]);
        else if (r->x != L->plan->tile_hero)
            store(L, sums, at_sum, v[k]);
    }
}

void tile_stage(Lower *L)
{
    const Inst    *hero = L->plan->tile_hero;
    const int64_t  row = L->plan->tile_row, rows = shape_count(hero->shape) / row;
    KArray        *sums = L->k->params[L->k->n_operands - 1];
    const Ix      *from = argument(L, RANGE_FROM, row - 1, -1), *end = argument(L, RANGE_END, row, -2), *i = from;
    L->failed = has_loops(L) || !(L->plan->tile_alone || loop_between(L, from, end, &i));
    if (L->failed)
        return;
    const Ix  *place = ix_add(&L->ix, ix_times(&L->ix, argument(L, KERNEL_ROW, rows - 1, -3), row), i);
    const Ix  *at_sum = ix_add(&L->ix, i, ix_times(&L->ix, from, -1));
    const Ix **at = index_of_place(L, hero->shape, place);
    if (!epilogue_follow(L, hero, at) || !lead_to_results(L)) {
        L->failed = true;
    } else {
        L->k->tile_row = row;
        L->k->tile_in_place = find_in_place(L, sums, place);
        known_value(L, hero, 0, at, frozen(L, scalar_round(L->arena, hero->shape->type, load(L, sums, at_sum)), hero->name));
        store_row(L, sums, at_sum);
    }
    if (!L->plan->tile_alone)
        block_close(L);
}

/* ---- what is in the indices ---- */

static bool has_value(const Ix *x, const char *name)
{
    bool found = false;
    for (int32_t k = 0; x && k < x->n && !found; k++) {
        const IxAtom *t = x->t[k].atom;
        found = t->arg ? has_value(t->arg, name) : t->kind == IX_VALUE && t->name && strcmp(t->name, name) == 0;
    }
    return found;
}

static void note_row_expr(void *cookie, const KExpr *x)
{
    Kernel *k = cookie;
    k->tile_uses_row |= has_value(x->index, KERNEL_ROW);
}

static void note_row_stmt(void *cookie, const KStmt *s)
{
    Kernel *k = cookie;
    k->tile_uses_row |= has_value(s->index, KERNEL_ROW);
}

void tile_finish(Kernel *k)
{
    KVisitor v = { note_row_expr, note_row_stmt, k };
    kernel_visit(k->body, &v);
}

typedef struct Divisions {
    const IxAtom *loop;
    int64_t       row; /* without those that were seen */
    bool          nested;
} Divisions;

static int64_t common(int64_t x, int64_t y)
{
    while (y) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

static void note_index(Divisions *d, const Ix *x)
{
    for (int32_t k = 0; x && k < x->n; k++) {
        const IxAtom *t = x->t[k].atom;
        if (!t->arg || !ix_has(t->arg, d->loop))
            continue;
        d->row = t->arg->c ? 0 : common(d->row, t->by);
        note_index(d, t->arg);
    }
}

static void note_expr(void *cookie, const KExpr *x)
{
    note_index(cookie, x->index);
}

static void note_stmt(void *cookie, const KStmt *s)
{
    Divisions *d = cookie;
    d->nested |= s->body != NULL;
    note_index(d, s->index);
}

int64_t tile_shorter_row(const Kernel *k)
{
    const KStmt *s = k->body->first;
    while (s && s->kind == KS_DECLARE)
        s = s->next;
    if (!s || s->kind != KS_FOR || s->next)
        return 0;
    Divisions d = { .loop = s->loop, .row = k->tile_row };
    KVisitor  v = { note_expr, note_stmt, &d };
    kernel_visit(s->body, &v);
    return d.nested ? 0 : d.row;
}
