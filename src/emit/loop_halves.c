#include "emit/loop_halves.h"

#include <string.h>

#include "ir/numeric.h"

typedef struct Look {
    const KStmt *loop;
    LoopBlocks  *b;
    int32_t      n;
    const KStmt *s[MOST_STATEMENTS];
    bool         known[MOST_STATEMENTS];  /* loops of f16 can have its value, */
    bool         stored[MOST_STATEMENTS]; /* which is nothing but what becomes of elements */
} Look;

static bool is_call(const KExpr *x, const char *fn)
{
    return x && x->kind == KX_CALL && strcmp(x->fn, fn) == 0;
}

static int32_t declares(const Look *l, const KTemp *temp)
{
    for (int32_t k = 0; k < l->n; k++)
        if (l->s[k]->kind == KS_DECLARE && l->s[k]->temp == temp)
            return k;
    return -1;
}

bool half_is_around(const KStmt *loop, const KExpr *x)
{
    bool around = x->kind == KX_TEMP && x->type == TYPE_F32;
    if (x->kind == KX_LOAD)
        return x->type == TYPE_F32;
    for (const KStmt *s = loop->body->first; s && around; s = s->next)
        around = s->kind != KS_DECLARE || s->temp != x->temp;
    return around;
}

const char *half_function(const KExpr *x)
{
    static const char *const of[][2] = { { "max_f32", "max_half" }, { "min_f32", "min_half" }, { "larger_f32", "larger_half" }, { "smaller_f32", "smaller_half" } };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        if (is_call(x, of[k][0]))
            return of[k][1];
    return NULL;
}

/* ---- what can be computed as f16 ---- */

static bool is_number(const Look *l, const KExpr *x);

/* Of 32 bits at most, and at hand. */
static bool is_integer(const Look *l, const KExpr *x)
{
    const int32_t k = x->kind == KX_TEMP ? declares(l, x->temp) : -1;
    if (!type_is_int(x->type) || type_bytes(x->type) > 4)
        return false;
    switch (x->kind) {
    case KX_INT: case KX_LOAD: return true;
    case KX_TEMP: return k >= 0 ? l->known[k] : !x->temp->assigned;
    case KX_CAST: return x->arg[0]->kind == KX_INDEX || is_integer(l, x->arg[0]);
    default: return false;
    }
}

static bool is_comparison(KOp op)
{
    return op == KOP_LT || op == KOP_LE || op == KOP_GT || op == KOP_GE || op == KOP_EQ || op == KOP_NE;
}

static bool is_truth(const Look *l, const KExpr *x)
{
    const int32_t k = x->kind == KX_TEMP ? declares(l, x->temp) : -1;
    if (x->type != TYPE_PRED)
        return false;
    switch (x->kind) {
    case KX_INT: return true;
    case KX_TEMP: return k >= 0 ? l->known[k] : !x->temp->assigned;
    case KX_CAST: return x->arg[0]->kind == KX_LOAD && type_bytes(x->arg[0]->type) == 1;
    case KX_UNARY: return x->op == KOP_NOT && is_truth(l, x->arg[0]);
    case KX_BINARY:
        if (is_comparison(x->op) && x->arg[0]->type != TYPE_PRED)
            return (is_number(l, x->arg[0]) && is_number(l, x->arg[1])) || (is_integer(l, x->arg[0]) && is_integer(l, x->arg[1]));
        return is_truth(l, x->arg[0]) && is_truth(l, x->arg[1]);
    default: return false;
    }
}

static bool is_stored_to(const Look *l, const KArray *array)
{
    bool found = false;
    for (int32_t k = 0; k < l->n && !found; k++)
        found = l->s[k]->kind == KS_STORE && l->s[k]->array == array;
    return found;
}

/* One of f16, which nothing rounds. */
static bool is_number(const Look *l, const KExpr *x)
{
    const int32_t k = x->kind == KX_TEMP ? declares(l, x->temp) : -1, in = blocked_in(l->b, x);
    if (x->type != TYPE_F32)
        return false;
    switch (x->kind) {
    case KX_FLOAT: return float_decode(TYPE_F16, float_encode(TYPE_F16, x->f)) == x->f;
    case KX_TEMP: return k >= 0 ? l->known[k] && !l->stored[k] : x->temp->in_f16 && !x->temp->assigned;
    case KX_LOAD: return x->array->in_f16 && !ix_has(x->index, l->loop->loop) && !is_stored_to(l, x->array);
    case KX_UNARY: return x->op == KOP_NEG && is_number(l, x->arg[0]);
    case KX_SELECT: return is_truth(l, x->arg[0]) && is_number(l, x->arg[1]) && is_number(l, x->arg[2]);
    case KX_CALL:
        if (is_call(x, "fabsf") || half_function(x))
            return is_number(l, x->arg[0]) && (x->n == 1 || is_number(l, x->arg[1]));
        return in >= 0 && l->b->in[in].array->type == TYPE_F16;
    default: return false;
    }
}

/* Rounded once, at most. */
static bool is_result(const Look *l, const KExpr *x)
{
    const int32_t k = x->kind == KX_TEMP ? declares(l, x->temp) : -1;
    if (k >= 0)
        return l->known[k] && x->type == TYPE_F32;
    if (x->kind == KX_SELECT && x->type == TYPE_F32)
        return is_truth(l, x->arg[0]) && is_result(l, x->arg[1]) && is_result(l, x->arg[2]);
    if (x->kind == KX_UNARY && x->op == KOP_NEG && x->type == TYPE_F32)
        return is_result(l, x->arg[0]);
    if (x->kind == KX_BINARY && x->type == TYPE_F32 && (x->op == KOP_ADD || x->op == KOP_SUB || x->op == KOP_MUL || x->op == KOP_DIV))
        return is_number(l, x->arg[0]) && is_number(l, x->arg[1]);
    return is_number(l, is_call(x, "sqrtf") ? x->arg[0] : x);
}

/* A store of f16 that the block keeps until its end. */
static bool is_half_store(const Look *l, const KStmt *s)
{
    const int32_t out = blocked_out(l->b, s);
    return out >= 0 && l->b->out[out].half && s->array->type == TYPE_F16 && is_call(s->value, "f32_to_f16");
}

typedef struct Uses {
    const KTemp *temp;
    int32_t      n;
} Uses;

static void note_use(void *cookie, const KTemp *temp)
{
    Uses *u = cookie;
    u->n += temp == u->temp;
}

/* How often x is that temporary, or chosen among others of which one is. */
static int32_t values(const KExpr *x, const KTemp *temp)
{
    int32_t n = x->kind == KX_TEMP && x->temp == temp;
    if (x->kind == KX_SELECT || (x->kind == KX_UNARY && x->op == KOP_NEG))
        for (int32_t k = x->kind == KX_SELECT; k < x->n; k++)
            n += values(x->arg[k], temp);
    return n;
}

static bool is_only_stored(const Look *l, const KTemp *temp, int depth)
{
    enum { DEEPEST = 4 /* choices among choices */ };
    Uses u = { temp, 0 };
    for (int32_t k = 0; k < l->n && depth < DEEPEST; k++) {
        const KStmt *s = l->s[k];
        const bool   chosen = s->kind == KS_DECLARE && s->value && !s->temp->assigned && s->temp->type == TYPE_F32;
        round_meet(s, note_use, &u);
        if (is_half_store(l, s))
            u.n -= values(s->value->arg[0], temp);
        else if (chosen && values(s->value, temp) > 0 && is_only_stored(l, s->temp, depth + 1))
            u.n -= values(s->value, temp);
    }
    return depth < DEEPEST && u.n == 0;
}

/* Whether the statement can be in a loop of f16. */
static bool find_known(Look *l, int32_t k)
{
    const KStmt  *s = l->s[k];
    const uint8_t role = l->b->rounds.role[k];
    if (s->kind == KS_STORE)
        return is_half_store(l, s) && is_result(l, s->value->arg[0]);
    if (s->kind != KS_DECLARE || !s->value || s->temp->assigned)
        return false;
    if (role & ROUND_BLOCK) {
        l->known[k] = true;
        return is_result(l, s->value->arg[0]);
    }
    l->known[k] = is_number(l, s->value) || is_truth(l, s->value) || (role & ROUND_AGAIN && is_integer(l, s->value));
    if (!l->known[k] && !(role & ROUND_AGAIN) && s->temp->type == TYPE_F32 && is_result(l, s->value))
        l->known[k] = l->stored[k] = is_only_stored(l, s->temp, 0);
    return l->known[k] && !(role & ROUND_AGAIN);
}

/* More than a value that is stored as it is. */
static bool is_computed(const KStmt *s, uint8_t role)
{
    const KExpr *x = s->kind == KS_STORE || role & ROUND_BLOCK ? s->value->arg[0] : s->value;
    return x->kind != KX_TEMP && x->type == TYPE_F32;
}

/* False: nothing is worth it. */
static bool find_halves(Look *l)
{
    LoopRounds *r = &l->b->rounds;
    bool        any = false, all = true;
    for (int32_t k = 0; k < l->n; k++) {
        const bool half = find_known(l, k), again = r->role[k] & ROUND_AGAIN;
        r->role[k] |= half ? ROUND_HALF : 0;
        any |= half && is_computed(l->s[k], r->role[k]);
        all &= half || again;
    }
    return any && (all || r->n_steps > 1);
}

static bool loads_bytes(const KExpr *x)
{
    bool found = x->kind == KX_LOAD && type_bytes(x->type) == 1;
    for (int32_t k = 0; k < x->n && !found; k++)
        found = loads_bytes(x->arg[k]);
    return found;
}

bool loop_halves_by_bytes(const KStmt *loop, const LoopBlocks *b)
{
    bool found = false;
    for (const KStmt *s = loop->body->first; s && (b->rounds.halves || b->n_out > 0) && !found; s = s->next)
        found = s->value && loads_bytes(s->value);
    return found;
}

/* ---- what loops want ---- */

static void want_in(LoopBlocks *b, const KExpr *x, bool half)
{
    const int32_t in = blocked_in(b, x);
    if (in >= 0) {
        b->in[in].as_f16 |= half;
        b->in[in].as_f32 |= !half;
    }
    for (int32_t k = 0; k < x->n; k++)
        want_in(b, x->arg[k], half);
}

static void want(Look *l, int32_t step, bool half)
{
    LoopRounds *r = &l->b->rounds;
    bool        wanted[MOST_STATEMENTS];
    round_wants(l->loop, r, step, half, wanted);
    for (int32_t k = 0; k < l->n; k++)
        if (round_is_in(r, k, step, half, wanted[k]))
            want_in(l->b, l->s[k]->value ? l->s[k]->value : &(KExpr){ .kind = KX_INT }, half);
        else if (wanted[k] && l->s[k]->temp->type == TYPE_F32)
            r->role[k] |= ROUND_KEPT | (half ? ROUND_AS_F16 : ROUND_AS_F32);
        else if (wanted[k])
            r->role[k] |= ROUND_KEPT;
}

void loop_halves(const KStmt *loop, LoopBlocks *b)
{
    Look l = { .loop = loop, .b = b };
    for (const KStmt *s = loop->body->first; s; s = s->next) {
        if (l.n == MOST_STATEMENTS)
            return;
        l.s[l.n++] = s;
    }
    b->rounds.halves = find_halves(&l);
    if (!b->rounds.halves) {
        for (int32_t k = 0; k < l.n; k++)
            b->rounds.role[k] &= (uint8_t)~ROUND_HALF;
        return;
    }
    for (int32_t k = 0; k < b->n_in; k++)
        b->in[k].as_f32 = false;
    for (int32_t k = 0; k < l.n; k++)
        if (l.s[k]->kind == KS_STORE && b->rounds.role[k] & ROUND_HALF)
            b->out[blocked_out(b, l.s[k])].as_f16 = true;
    for (int32_t step = 0; step < b->rounds.n_steps; step++) {
        want(&l, step, true);
        want(&l, step, false);
    }
}
