#include "emit/loop_rounds.h"

#include <string.h>

typedef struct Look {
    const KStmt *loop;
    LoopRounds  *r;
    int32_t      n;
    bool         apart[MOST_STATEMENTS];   /* stores, to what the block keeps until its end */
    const KStmt *s[MOST_STATEMENTS];
    bool         ordered[MOST_STATEMENTS]; /* in the last loop, with others of that kind as they stand */
} Look;

static bool is_round(const KExpr *x)
{
    return x && x->kind == KX_CALL && strcmp(x->fn, "f16_round") == 0;
}

/* The number of the statement of the loop that declares it, or -1. */
static int32_t declares(const Look *l, const KTemp *temp)
{
    for (int32_t k = 0; k < l->n; k++)
        if (l->s[k]->kind == KS_DECLARE && l->s[k]->temp == temp)
            return k;
    return -1;
}

static bool is_assigned(const Look *l, const KTemp *temp)
{
    for (int32_t k = 0; k < l->n; k++)
        if (l->s[k]->kind == KS_ASSIGN && l->s[k]->temp == temp)
            return true;
    return false;
}

static void meet_index(const Ix *x, RoundMeet *meet, void *cookie)
{
    for (int32_t k = 0; x && k < x->n; k++) {
        const IxAtom *a = x->t[k].atom;
        if (a->arg)
            meet_index(a->arg, meet, cookie);
        else if (a->kind == IX_VALUE)
            meet(cookie, a->owner);
    }
}

static void meet_temps(const KExpr *x, RoundMeet *meet, void *cookie)
{
    if (x->kind == KX_TEMP)
        meet(cookie, x->temp);
    meet_index(x->index, meet, cookie);
    for (int32_t k = 0; k < x->n; k++)
        meet_temps(x->arg[k], meet, cookie);
}

void round_meet(const KStmt *s, RoundMeet *meet, void *cookie)
{
    meet_index(s->index, meet, cookie);
    if (s->value)
        meet_temps(s->value, meet, cookie);
}

/* ---- which step ---- */

typedef struct Needs {
    const Look *l;
    int32_t     step;
    bool        ordered, computed; /* it comes after something that changes; of what this loop computes and would not compute again */
} Needs;

static void note_need(void *cookie, const KTemp *temp)
{
    Needs        *n = cookie;
    const int32_t k = declares(n->l, temp);
    n->ordered |= temp->assigned && is_assigned(n->l, temp);
    if (k < 0)
        return;
    const uint8_t role = n->l->r->role[k];
    const int32_t after = n->l->r->step[k] + (role & ROUND_BLOCK ? 1 : 0);
    n->step = after > n->step ? after : n->step;
    n->ordered |= n->l->ordered[k];
    n->computed |= !(role & ROUND_AGAIN);
}

static bool has_call(const KExpr *x)
{
    bool found = x->kind == KX_CALL && !(strcmp(x->fn, "f16_to_f32") == 0 && x->arg[0]->kind == KX_LOAD);
    for (int32_t k = 0; k < x->n && !found; k++)
        found = has_call(x->arg[k]);
    return found;
}

/* The only store to its array, element after element. */
static bool is_along(const Look *l, int32_t store)
{
    for (int32_t k = 0; k < l->n; k++)
        if (k != store && l->s[k]->kind == KS_STORE && l->s[k]->array == l->s[store]->array)
            return false;
    return ix_coef(l->s[store]->index, l->loop->loop) == 1;
}

/* What statement k loads, the loop stores itself: before it, or, each element in its turn, other elements than its iteration's own. */
static bool loads_stored(const Look *l, int32_t k)
{
    const KExpr *x = l->s[k]->value;
    for (int32_t j = 0; x && j < l->n; j++)
        if (l->s[j]->kind == KS_STORE && !l->apart[j] && kx_loads_other(x, l->s[j]->array, j >= k && is_along(l, j) ? l->s[j]->index : NULL))
            return true;
    return false;
}

/* False: there would be more steps than are counted. */
static bool place(Look *l, int32_t k)
{
    const KStmt *s = l->s[k];
    Needs        n = { .l = l };
    const bool   value = s->kind == KS_DECLARE && s->value && !(s->temp->assigned && is_assigned(l, s->temp));
    round_meet(s, note_need, &n);
    l->ordered[k] = n.ordered || !(value || l->apart[k]) || loads_stored(l, k);
    l->r->step[k] = (uint8_t)n.step;
    if (l->ordered[k] || !value)
        return n.step < UINT8_MAX - 1;
    if (is_round(s->value))
        l->r->role[k] = ROUND_KEPT | ROUND_BLOCK;
    else if (!has_call(s->value) && (!n.computed || s->temp->type == TYPE_PRED))
        l->r->role[k] = ROUND_AGAIN;
    return n.step < UINT8_MAX - 1;
}

/* ---- what a step wants ---- */

typedef struct Wants {
    const Look *l;
    bool       *wanted;
} Wants;

static void note_wanted(void *cookie, const KTemp *temp)
{
    Wants        *w = cookie;
    const int32_t k = declares(w->l, temp);
    if (k >= 0)
        w->wanted[k] = true;
}

static int32_t look_at(Look *l)
{
    l->n = 0;
    for (const KStmt *s = l->loop->body->first; s; s = s->next) {
        if (l->n == MOST_STATEMENTS)
            return -1;
        l->s[l->n++] = s;
    }
    return l->n;
}

bool round_is_in(const LoopRounds *r, int32_t statement, int32_t step, bool half, bool wanted)
{
    const uint8_t role = r->role[statement];
    return role & ROUND_AGAIN ? wanted : r->step[statement] == step && !(role & ROUND_HALF) == !half;
}

static void find_wanted(const Look *l, int32_t step, bool half, bool *wanted)
{
    Wants w = { l, wanted };
    memset(wanted, 0, (size_t)l->n * sizeof *wanted);
    for (int32_t k = l->n - 1; k >= 0; k--)
        if (round_is_in(l->r, k, step, half, wanted[k]))
            round_meet(l->s[k], note_wanted, &w);
}

void round_wants(const KStmt *loop, const LoopRounds *r, int32_t step, bool half, bool *wanted)
{
    LoopRounds same = *r;
    Look       l = { .loop = loop, .r = &same };
    if (look_at(&l) >= 0)
        find_wanted(&l, step, half, wanted);
}

/* ---- the loop ---- */

static bool place_all(Look *l)
{
    int32_t last = 0;
    for (int32_t k = 0; k < l->n; k++) {
        if (!place(l, k))
            return false;
        last = l->r->step[k] > last ? l->r->step[k] : last;
    }
    for (int32_t k = 0; k < l->n; k++)
        l->r->step[k] = l->ordered[k] ? (uint8_t)last : l->r->step[k];
    l->r->n_steps = last + 1;
    return last > 0;
}

typedef struct Uses {
    const Look *l;
    uint8_t     step, *first; /* of a statement that uses what it meets; of each of the loop's, the first such step */
} Uses;

static void note_first(void *cookie, const KTemp *temp)
{
    Uses         *u = cookie;
    const int32_t k = declares(u->l, temp);
    if (k >= 0 && u->first[k] > u->step)
        u->first[k] = u->step;
}

/* What no step before needs is computed where it is wanted. */
static void put_off(Look *l)
{
    uint8_t first[MOST_STATEMENTS];
    memset(first, UINT8_MAX, sizeof first);
    for (int32_t k = l->n - 1; k >= 0; k--) {
        uint8_t *step = &l->r->step[k];
        if (l->s[k]->kind == KS_DECLARE && !l->r->role[k] && !l->ordered[k] && first[k] < UINT8_MAX)
            *step = first[k] > *step ? first[k] : *step;
        round_meet(l->s[k], note_first, &(Uses){ l, *step, first });
    }
}

static void keep(Look *l)
{
    bool wanted[MOST_STATEMENTS];
    for (int32_t step = 1; step < l->r->n_steps; step++) {
        find_wanted(l, step, false, wanted);
        for (int32_t k = 0; k < l->n; k++)
            if (wanted[k] && l->r->step[k] < step && !(l->r->role[k] & ROUND_AGAIN))
                l->r->role[k] |= ROUND_KEPT;
    }
}

void loop_rounds(const KStmt *loop, bool (*is_apart)(void *cookie, const KStmt *s), void *cookie, LoopRounds *r)
{
    Look l = { .loop = loop, .r = r };
    memset(r, 0, sizeof *r);
    r->n_steps = 1;
    if (look_at(&l) < 0)
        return;
    bool any = false;
    for (int32_t k = 0; k < l.n; k++) {
        l.apart[k] = l.s[k]->kind == KS_STORE && is_apart(cookie, l.s[k]);
        any |= l.s[k]->kind == KS_DECLARE && is_round(l.s[k]->value);
    }
    if (any && place_all(&l)) {
        put_off(&l);
        keep(&l);
    } else {
        memset(r, 0, sizeof *r);
        r->n_steps = 1;
    }
}
