#include "emit/loop_taken.h"

#include <string.h>

enum { LEAST = 17 /* iterations: gcc unrolls fewer before it makes vectors */, LEAST_DEAR = 16, LEAST_STORED = 8 /* of what is only stored */, FEW = 4 /* elements of a line */ };

typedef struct Look {
    const KStmt *loop;
    LoopTaken   *t;
    const KStmt *s[MOST_STATEMENTS];
    int32_t      uses[MOST_TAKEN]; /* of each load */
    bool         bare[MOST_TAKEN]; /* some use is not its value in f32 */
    bool         dear; /* something takes long to compute */
    bool         failed;
} Look;

static bool has_dear_call(const KExpr *x)
{
    bool found = kx_is_dear_call(x);
    for (int32_t k = 0; k < x->n && !found; k++)
        found = has_dear_call(x->arg[k]);
    return found;
}

/* Its depth does not tell: statements are moved into other loops. */
static bool is_of_body(const Look *l, const KTemp *temp)
{
    for (int32_t k = 0; k < l->t->n_statements; k++)
        if (l->s[k]->temp == temp)
            return true;
    return false;
}

static bool depends_on_body(const Look *l, const Ix *x)
{
    for (int32_t k = 0; k < x->n; k++) {
        const IxAtom *a = x->t[k].atom;
        if (a->arg ? depends_on_body(l, a->arg) : a->kind == IX_VALUE && is_of_body(l, a->owner))
            return true;
    }
    return false;
}

/* From the element of an iteration to that of the next one; 0: no such number. */
static int64_t step_of(const Look *l, const Ix *x)
{
    int32_t uses = 0;
    for (int32_t k = 0; k < x->n; k++) {
        const IxAtom *a = x->t[k].atom;
        uses += a == l->loop->loop || (a->arg && ix_has(a->arg, l->loop->loop));
    }
    return uses == 1 && !depends_on_body(l, x) ? ix_coef(x, l->loop->loop) : 0;
}

/* Neighbours in turn lie far from each other. */
static bool goes_across(const Look *l, const Ix *x)
{
    const int64_t by = step_of(l, x);
    return by < -FEW || by > FEW;
}

static int32_t stores_to(const Look *l, const KArray *array)
{
    int32_t n = 0;
    for (int32_t k = 0; k < l->t->n_statements; k++)
        n += l->s[k]->kind == KS_STORE && l->s[k]->array == array;
    return n;
}

/* Whatever is chosen with it, the element is there. wide: it is an f16 whose value is wanted, which takes long to compute in no block. */
static bool can_take(const Look *l, const KExpr *x, bool wide)
{
    int64_t lo, hi;
    if (x->array->count <= 0 || x->array->count > UINT32_MAX || stores_to(l, x->array) > 0)
        return false;
    if (!depends_on_body(l, x->index) && !((l->dear || wide) && goes_across(l, x->index)))
        return false;
    ix_range(x->index, &lo, &hi);
    return lo >= 0 && hi < x->array->count;
}

int32_t taken_load(const LoopTaken *t, const KExpr *x)
{
    for (int32_t k = 0; x->kind == KX_LOAD && k < t->n; k++)
        if (t->v[k].array == x->array && ix_equal(t->v[k].index, x->index))
            return k;
    return -1;
}

static int32_t place_of(LoopTaken *t, const Ix *index)
{
    int32_t k = 0;
    while (k < t->n_places && !ix_equal(t->places[k], index))
        k++;
    t->places[k] = index;
    t->n_places += k == t->n_places;
    return k;
}

static void take(Look *l, const KExpr *load, bool value)
{
    int32_t k = taken_load(l->t, load);
    if (k < 0 && l->t->n == MOST_TAKEN) {
        l->failed = true;
        return;
    }
    if (k < 0) {
        k = l->t->n++;
        l->t->v[k] = (Taken){ .array = load->array, .index = load->index, .by = goes_across(l, load->index) ? step_of(l, load->index) : 0 };
        l->t->v[k].place = l->t->v[k].by ? -1 : place_of(l->t, load->index);
    }
    l->uses[k]++;
    l->bare[k] |= !value;
}

static void mark(Look *l, const KExpr *x, uint8_t role);

static void mark_temp(Look *l, const KTemp *temp, uint8_t role)
{
    for (int32_t k = 0; k < l->t->n_statements; k++) {
        const KStmt *s = l->s[k];
        if (s->temp != temp)
            continue;
        l->failed |= role == TAKEN_PLACING && s->kind == KS_ASSIGN;
        if (s->kind != KS_DECLARE || l->t->role[k] & role)
            continue;
        l->t->role[k] |= role;
        if (s->value && !(role == TAKEN_REST && l->t->role[k] & TAKEN_KEPT))
            mark(l, s->value, role);
    }
}

static void mark_index(Look *l, const Ix *x, uint8_t role)
{
    for (int32_t k = 0; x && k < x->n; k++) {
        const IxAtom *a = x->t[k].atom;
        if (a->arg)
            mark_index(l, a->arg, role);
        else if (a->kind == IX_VALUE)
            mark_temp(l, a->owner, role);
    }
}

static bool is_widened(const KExpr *x)
{
    return x->kind == KX_CALL && strcmp(x->fn, "f16_to_f32") == 0 && x->arg[0]->kind == KX_LOAD;
}

/* What x is made of has that role. */
static void mark(Look *l, const KExpr *x, uint8_t role)
{
    const KExpr *load = is_widened(x) ? x->arg[0] : x;
    if (role == TAKEN_REST && load->kind == KX_LOAD && can_take(l, load, load != x)) {
        take(l, load, load != x);
        return;
    }
    if (x->kind == KX_TEMP)
        mark_temp(l, x->temp, role);
    if (x->kind == KX_LOAD)
        l->failed |= role == TAKEN_PLACING && stores_to(l, x->array) > 0;
    mark_index(l, x->index, role);
    for (int32_t k = 0; k < x->n; k++)
        mark(l, x->arg[k], role);
}

static bool is_loaded(const Look *l, const KArray *array)
{
    for (int32_t k = 0; k < l->t->n_statements; k++)
        if (l->s[k]->value && kx_loads_from(l->s[k]->value, array, NULL))
            return true;
    return false;
}

/* Elements that are stored as they are, and nothing else. */
static void find_stored(Look *l)
{
    for (int32_t k = 0; k < l->t->n_statements; k++) {
        const KStmt *s = l->s[k];
        int32_t      taken = s->kind == KS_STORE ? taken_load(l->t, s->value) : -1;
        if (taken >= 0 && l->uses[taken] == 1 && !s->atomic && storage_type(s->array->type) == storage_type(l->t->v[taken].array->type) && step_of(l, s->index) == 1 &&
            stores_to(l, s->array) == 1 && !is_loaded(l, s->array))
            l->t->v[taken].to = s;
    }
}

static bool find_statements(Look *l)
{
    LoopTaken *t = l->t;
    for (const KStmt *s = l->loop->body->first; s; s = s->next) {
        if (t->n_statements == MOST_STATEMENTS || (s->kind != KS_DECLARE && s->kind != KS_ASSIGN && s->kind != KS_STORE) || s->atomic)
            return false;
        t->role[t->n_statements] = s->kind == KS_DECLARE ? 0 : TAKEN_REST;
        l->s[t->n_statements++] = s;
        l->dear |= s->value && has_dear_call(s->value);
    }
    return true;
}

static void mark_all(Look *l)
{
    LoopTaken *t = l->t;
    t->n = t->n_places = 0;
    memset(l->uses, 0, sizeof l->uses);
    memset(l->bare, 0, sizeof l->bare);
    for (int32_t k = 0; k < t->n_statements && !l->failed; k++)
        if (l->s[k]->kind != KS_DECLARE) {
            mark(l, l->s[k]->value, TAKEN_REST);
            mark_index(l, l->s[k]->index, TAKEN_REST);
            if (l->s[k]->kind == KS_ASSIGN)
                mark_temp(l, l->s[k]->temp, TAKEN_REST);
        }
    for (int32_t k = 0; k < t->n_places && !l->failed; k++)
        mark_index(l, t->places[k], TAKEN_PLACING);
}

/* What is dear and would be computed twice is kept; then all is marked anew. */
static void keep_dear(Look *l)
{
    for (int32_t k = 0; k < l->t->n_statements; k++) {
        bool both = l->s[k]->kind == KS_DECLARE && l->t->role[k] == (TAKEN_PLACING | TAKEN_REST);
        bool kept = both && l->s[k]->value && has_dear_call(l->s[k]->value);
        l->t->role[k] = l->s[k]->kind != KS_DECLARE ? TAKEN_REST : kept ? TAKEN_KEPT : 0;
    }
}

/* Whether there are so many iterations that what is taken in them is worth blocks. */
static bool is_long(const Look *l)
{
    const int64_t n = l->loop->loop->hi - l->loop->loop->lo + 1;
    bool          stored = true;
    for (int32_t k = 0; k < l->t->n; k++)
        stored &= l->t->v[k].to != NULL;
    return n >= (stored ? LEAST_STORED : l->dear ? LEAST_DEAR : LEAST);
}

bool loop_taken(const KStmt *loop, LoopTaken *t)
{
    Look l = { .loop = loop, .t = t };
    t->n = t->n_places = t->n_statements = 0;
    if (!find_statements(&l) || loop->loop->hi - loop->loop->lo + 1 < LEAST_STORED)
        return false;
    mark_all(&l);
    if (t->n && !l.failed) {
        keep_dear(&l);
        mark_all(&l);
        for (int32_t k = 0; k < t->n_statements; k++)
            l.failed |= t->role[k] == (TAKEN_REST | TAKEN_KEPT);
    }
    if (l.failed)
        t->n = 0;
    for (int32_t k = 0; k < t->n; k++)
        t->v[k].half = !l.bare[k];
    find_stored(&l);
    if (!is_long(&l))
        t->n = 0;
    return t->n > 0;
}

int64_t taken_bytes(const LoopTaken *t)
{
    int64_t n = t->n_places * (int64_t)sizeof(uint32_t);
    for (int32_t k = 0; k < t->n_statements; k++)
        n += t->role[k] & TAKEN_KEPT ? (int64_t)sizeof(double) : 0;
    for (int32_t k = 0; k < t->n; k++)
        n += t->v[k].to ? 0 : type_bytes(t->v[k].array->type) + (t->v[k].half ? (int64_t)sizeof(float) : 0);
    return n;
}
