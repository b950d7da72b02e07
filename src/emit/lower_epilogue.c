/* Epilogues. What a fusion makes of each element of a contraction, a pooling or a reduction (its hero) is computed where the hero's element is
 * finished, so the hero itself never goes to memory:
 *
 *     for tiles: acc = ...                                      for tiles: acc = ...
 *         for r, j: d[i + r][j] = acc[r][j]              =>         for r, j: d = acc[r][j]
 *     for i, j: out[i][j] = tanh(d[i][j] + bias[j])                           out[i + r][j] = tanh(d + bias[j])
 *
 * Each of the instructions that depend on the hero has to want it element by element: elementwise operations at the same index, and movement that
 * leaves no element out (transpose, reshape, bitcast, copy). Then an element of the hero leads to one element of every result: indices are
 * mapped forwards here, from operand to user, and value_at finds the hero's element again on the way back. */
#include "emit/lower.h"

enum { MOST_TRIES = 4, MOST_MEMBERS = 64, MOST_STEP = 96 };

/* An instruction that depends on the hero, and the element of it that an element of the hero leads to. */
typedef struct Member {
    const Inst *x;
    const Ix  **at;
} Member;

struct Epilogue {
    const Inst *hero;
    int64_t     step; /* see epilogue_step: along the last dimension */
    int32_t     n;
    Member      member[MOST_MEMBERS]; /* the hero first, then in the order of the body */
};

static Member *member_of(Epilogue *e, const Inst *x)
{
    for (int32_t k = 0; k < e->n; k++)
        if (e->member[k].x == x)
            return &e->member[k];
    return NULL;
}

static const Ix **transposed(Lower *L, const Inst *x, const Ix *const *at)
{
    const Ix **to = ARENA_ARRAY(L->arena, const Ix *, x->shape->rank);
    Ints       dims = inst_ints(x, ATTR_DIMENSIONS);
    for (int32_t d = 0; d < x->shape->rank; d++)
        to[d] = at[dims.v[d]];
    return to;
}

static const Ix **reshaped(Lower *L, const Inst *x, const Ix *const *at)
{
    const Shape *from = inst_operand(x, 0)->shape, *s = x->shape;
    const Ix   **to = ARENA_ARRAY(L->arena, const Ix *, s->rank);
    ix_split(&L->ix, ix_linear(&L->ix, from->rank, at, from->dims), s->rank, s->dims, to);
    return to;
}

/* The same place in memory, by the layouts of both. */
static const Ix **renamed(Lower *L, const Inst *x, const Ix *const *at)
{
    const Shape *s = x->shape;
    int32_t     *order = major_order(L, s);
    int64_t     *dims = ARENA_ARRAY(L->arena, int64_t, s->rank);
    const Ix   **digits = ARENA_ARRAY(L->arena, const Ix *, s->rank), **to = ARENA_ARRAY(L->arena, const Ix *, s->rank);
    for (int32_t k = 0; k < s->rank; k++)
        dims[k] = s->dims[order[k]];
    ix_split(&L->ix, shape_index(L, inst_operand(x, 0)->shape, at), s->rank, dims, digits);
    for (int32_t k = 0; k < s->rank; k++)
        to[order[k]] = digits[k];
    return to;
}

/* The element of x that needs element `at` of its operand k; NULL when there is not just one. */
static const Ix **forwards(Lower *L, const Inst *x, int32_t k, const Ix **at)
{
    const Shape *from = inst_operand(x, k)->shape;
    switch (x->op) {
    case OP_TRANSPOSE: return transposed(L, x, at);
    case OP_RESHAPE: return reshaped(L, x, at);
    case OP_BITCAST: return type_bits(from->type) == type_bits(x->shape->type) ? renamed(L, x, at) : NULL;
    case OP_COPY: case OP_OPT_BARRIER: case OP_BITCAST_CONVERT: return shape_is_array(from) && shape_same_dims(from, x->shape) ? at : NULL;
    default: return op_has(x->op, F_ELEMENTWISE) && shape_same_dims(from, x->shape) ? at : NULL;
    }
}

/* Fills in where x is asked for. True unless it depends on the hero in another way than element by element. */
static bool follow(Lower *L, Epilogue *e, const Inst *x)
{
    const Ix **at = NULL;
    if (x->op == OP_TUPLE)
        return true;
    for (int32_t k = 0; k < x->n_operands; k++) {
        const Member *m = member_of(e, inst_operand(x, k));
        const Ix    **here = m ? forwards(L, x, k, m->at) : NULL;
        if (!m)
            continue;
        if (!here || (at && !same_index(at, here, x->shape->rank)))
            return false;
        at = here;
    }
    if (!at)
        return true;
    if (e->n == MOST_MEMBERS || map_has(&L->plan->materialise, x))
        return false;
    e->member[e->n++] = (Member){x, at};
    return true;
}

/* Where an index is divided along the innermost loop, that loop is cut so that no division stays in it: a reshape of [24] to [6,4] makes steps of
 * 4. False when there is no such step. */
static bool find_step(Epilogue *e, const Ix *const *index, int32_t rank, const IxAtom *inner)
{
    for (int32_t d = 0; d < rank; d++)
        for (int32_t k = 0; k < index[d]->n; k++) {
            const IxAtom *x = index[d]->t[k].atom;
            if (!x->arg || !ix_has(x->arg, inner))
                continue;
            int64_t wide = x->by > e->step ? x->by : e->step, narrow = x->by > e->step ? e->step : x->by;
            if (x->arg->c != 0 || x->arg->n != 1 || x->arg->t[0].k != 1 || wide > MOST_STEP || wide % narrow != 0 || (inner->hi + 1) % wide != 0)
                return false;
            e->step = wide;
        }
    return true;
}

static bool try_hero(Lower *L, Epilogue *e, const Inst *hero)
{
    const Shape  *s = hero->shape;
    const Ix    **at = ARENA_ARRAY(L->arena, const Ix *, s->rank);
    const IxAtom *inner = NULL;
    for (int32_t d = 0; d < s->rank; d++) {
        const IxAtom *i = ix_new_atom(&L->ix, IX_LOOP, NULL, 0, s->dims[d] - 1, 1, NULL);
        at[d] = ix_of(&L->ix, i);
        inner = i;
    }
    e->hero = hero;
    e->step = e->n = 1;
    e->member[0] = (Member){hero, at};
    for (const Inst *x = hero->next; x; x = x->next)
        if (!follow(L, e, x))
            return false;
    for (int32_t k = 1; inner && k < e->n; k++)
        if (!find_step(e, e->member[k].at, e->member[k].x->shape->rank, inner))
            return false;
    return e->n > 1 && (e->step == 1 || hero->op == OP_DOT);
}

bool epilogue_follow(Lower *L, const Inst *hero, const Ix **at)
{
    Epilogue *e = ARENA_NEW(L->arena, Epilogue);
    *e = (Epilogue){ .hero = hero, .step = 1, .n = 1, .member[0] = { hero, at } };
    for (const Inst *x = hero->next; x; x = x->next)
        if (!follow(L, e, x))
            return false;
    L->epilogue = e;
    return true;
}

const Ix *const *epilogue_index(const Lower *L, const Inst *x)
{
    const Member *m = member_of(L->epilogue, x);
    return m ? m->at : NULL;
}

/* A reduction along rows is computed inside the loops that want it, unless a try has found that it cannot be. One of several that share their loops has
 * an array like the others. */
static bool may_be_hero(Lower *L, const Inst *x)
{
    const Inst *others[MOST_TOGETHER];
    if (!shape_is_array(x->shape) || shape_count(x->shape) == 0)
        return false;
    switch (x->op) {
    case OP_DOT: case OP_CONVOLUTION: case OP_REDUCE_WINDOW: return true;
    case OP_REDUCE: return map_has(&L->plan->materialise, x) && together_staged(L, x, others) == 0;
    default: return false;
    }
}

void epilogue_begin(Lower *L)
{
    Epilogue *e = ARENA_NEW(L->arena, Epilogue);
    int32_t   tries = 0;
    for (const Inst *x = L->body->last; x && tries < MOST_TRIES && !L->plan->no_epilogue; x = x->prev)
        if (may_be_hero(L, x) && tries++ < MOST_TRIES && try_hero(L, e, x)) {
            L->epilogue = e;
            return;
        }
}

bool epilogue_has(const Lower *L, const Inst *x)
{
    return L->epilogue && member_of(L->epilogue, x);
}

int64_t epilogue_step(const Lower *L, const Inst *x, int32_t dim)
{
    const Epilogue *e = L->epilogue;
    return e && e->hero == x && dim == x->shape->rank - 1 ? e->step : 1;
}

/* Its stage, with an array that only tells the shape. */
void epilogue_stage(Lower *L)
{
    const Inst *x = L->epilogue->hero;
    KArray     *to = ARENA_NEW(L->arena, KArray);
    *to = (KArray){.kind = KARRAY_TEMP, .type = x->shape->type, .name = x->name, .count = shape_count(x->shape), .shape = x->shape};
    stage(L, x, &to);
}

static void store_all(Lower *L, Epilogue *e)
{
    const KExpr **v = ARENA_ARRAY(L->arena, const KExpr *, L->k->n_results);
    int32_t       wanted = 0;
    for (int32_t k = 0; k < L->k->n_results; k++)
        wanted += epilogue_has(L, L->results[k].x);
    for (int32_t k = 0; k < L->k->n_results; k++) {
        const Member *m = member_of(e, L->results[k].x);
        if (m)
            v[k] = wanted == 1 ? open_value_at(L, m->x, 0, m->at) : value_at(L, m->x, 0, m->at);
    }
    for (int32_t k = 0; k < L->k->n_results; k++) {
        const Member *m = member_of(e, L->results[k].x);
        if (m)
            store_at(L, L->results[k].to, m->at, v[k]);
    }
}

void store_result(Lower *L, const Inst *x, KArray *to, const Ix *const *index, const KExpr *value)
{
    Epilogue *e = L->epilogue;
    if (!e || x != e->hero) {
        store_at(L, to, index, value);
        return;
    }
    known_value(L, x, 0, index, frozen(L, value, x->name));
    e->member[0].at = arena_copy(L->arena, index, (size_t)x->shape->rank * sizeof *index);
    e->n = 1;
    for (const Inst *u = x->next; u; u = u->next)
        follow(L, e, u);
    store_all(L, e);
}
