/* One load is looked for that is read in any case, so that it may be read before, by another thread. */
#include "emit/turn.h"

enum { SHORT = 16, SECTOR = 32 /* bytes */ };

typedef struct Turn {
    Arena            *arena;
    const Kernel     *k;
    const ThreadPart *part;
    TurnPart         *out;
    int64_t           least; /* trips of both loops; of one of them there have to be SHORT */
    int32_t           found;
} Turn;

static int64_t trips(const IxAtom *loop)
{
    return loop->hi - loop->lo + 1;
}

static bool is_written(const Turn *t, const KArray *x)
{
    for (int32_t j = 0; j < t->k->n_arrays; j++)
        if (t->k->arrays[j]->written && kernel_same_memory(t->k, t->k->arrays[j], x))
            return true;
    return false;
}

/* An index of the part's loops alone. */
static bool is_of_loops(const Turn *t, const Ix *x)
{
    for (int32_t i = 0; i < x->n; i++) {
        bool known = false;
        for (int32_t j = 0; j < t->part->n_loops; j++)
            known |= t->part->loops[j] == x->t[i].atom;
        if (!known)
            return false;
    }
    return true;
}

/* The last loop if it goes along what the load reads, too, and only few elements, in rows that are no whole sectors. */
static const IxAtom *along_both(const Turn *t, const KExpr *load)
{
    const IxAtom *last = t->part->loops[t->part->n_loops - 1];
    const int64_t bytes = trips(last) * type_bytes(storage_type(load->array->type));
    return t->part->n_loops > 2 && ix_coef(load->index, last) == 1 && bytes < 2 * SECTOR && bytes % SECTOR != 0 ? last : NULL;
}

/* Loops that are long enough. Where the one that is written along is short, the other one is next to it there, so that a tile is written in one piece, or *around is what it is taken together with. */
static bool is_wanted(const Turn *t, const IxAtom *in, int32_t out, const IxAtom **around)
{
    const IxAtom *before = out > 0 ? t->part->loops[out - 1] : NULL;
    const int64_t n = trips(in), m = trips(t->part->loops[out]);
    *around = m < SHORT && before && before != in ? before : NULL;
    const int64_t all = *around ? m * trips(*around) : m;
    return n >= t->least && m >= t->least && (n >= SHORT || all >= SHORT) && (all >= SHORT || before == in);
}

/* Loads that are read in any case: not behind a choice. */
static void find_load(Turn *t, const KExpr *x)
{
    for (int32_t j = 0; j < (x->kind == KX_SELECT || (x->kind == KX_BINARY && (x->op == KOP_LAND || x->op == KOP_LOR)) ? 1 : x->n); j++)
        find_load(t, x->arg[j]);
    if (x->kind != KX_LOAD || x->array->kind != KARRAY_PARAM || !is_of_loops(t, x->index) || is_written(t, x->array))
        return;
    const IxAtom *each = along_both(t, x);
    const int64_t apart = each ? trips(each) : 1;
    const int32_t out = t->part->n_loops - (each ? 2 : 1);
    const IxAtom *around;
    for (int32_t j = 0; j < out; j++)
        if (ix_coef(x->index, t->part->loops[j]) == apart && ix_coef(x->index, t->part->loops[out]) > apart && is_wanted(t, t->part->loops[j], out, &around)) {
            t->found += !t->out->load || !ix_equal(t->out->load->index, x->index) || t->out->load->array != x->array;
            *t->out = (TurnPart){ .in = t->part->loops[j], .out = t->part->loops[out], .around = around, .each = each, .load = x };
        }
}

static const KExpr *turned(void *cookie, const KExpr *x)
{
    const Turn *t = cookie;
    return x->array == t->out->load->array && ix_equal(x->index, t->out->load->index) ? kx_temp(t->arena, (KTemp *)(uintptr_t)t->out->value) : NULL;
}

bool kernel_turn_part(Arena *a, const Kernel *k, const ThreadPart *part, TurnPart *out)
{
    Turn    t = { .arena = a, .k = k, .part = part, .out = out, .least = SHORT };
    KTemp  *value = ARENA_NEW(a, KTemp);
    *out = (TurnPart){ 0 };
    if (part->n_loops < 2)
        return false;
    for (const KStmt *s = part->body->first; s; s = s->next)
        if ((s->kind != KS_DECLARE && s->kind != KS_STORE) || !s->value || s->atomic)
            return false;
    for (; t.found == 0 && t.least > 0; t.least = t.least == SHORT ? 2 : 0)
        for (const KStmt *s = part->body->first; s; s = s->next)
            find_load(&t, s->value);
    if (t.found != 1)
        return false;
    *value = (KTemp){ .name = "turned", .type = out->load->type };
    out->value = value;
    out->body = kernel_rewrite(a, part->body, &(KRewriter){ turned, NULL, &t });
    return true;
}
