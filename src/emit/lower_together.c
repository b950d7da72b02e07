/* Reductions that share their loops. In a fusion, reductions of the same dimensions of arrays of the same sizes go over the same elements; when they read
 * an array in common and neither needs the other, the loops of the first make all of them:
 *
 *     for i: for j: sum += x[i][j]                              for i: for j: sum += x[i][j]
 *     for i: for j: most = max(most, x[i][j])           =>                    most = max(most, x[i][j])
 *
 * Inside the loops of others that goes for those that are computed there, in stages for those that get arrays; what a companion is made of must be in
 * memory by then, when it goes there at all. */
#include "emit/lower.h"

enum { MOST_REDUCTIONS = 64, MOST_BEHIND = 1000 };

/* What an instruction is made of, itself included. */
struct Behind {
    VEC(const Inst *) list;
    Map               set;
    bool              known; /* not more than MOST_BEHIND */
};

void together_begin(Lower *L)
{
    for (const Inst *i = L->body->first; i && L->reductions.n < MOST_REDUCTIONS; i = i->next)
        if (i->op == OP_REDUCE)
            vec_push(L->arena, &L->reductions, i);
}

static void add_behind(Lower *L, Behind *b, const Inst *x)
{
    if (map_has(&b->set, x))
        return;
    map_put(&b->set, x, b);
    vec_push(L->arena, &b->list, x);
}

static const Behind *behind(Lower *L, const Inst *x)
{
    Behind *b = map_get(&L->behind, x);
    if (b)
        return b;
    b = ARENA_NEW(L->arena, Behind);
    *b = (Behind){.set = map_new(L->arena)};
    add_behind(L, b, x);
    for (int32_t at = 0; at < b->list.n && b->list.n <= MOST_BEHIND; at++)
        for (int32_t k = 0; k < b->list.v[at]->n_operands; k++)
            add_behind(L, b, inst_operand(b->list.v[at], k));
    b->known = b->list.n <= MOST_BEHIND;
    map_put(&L->behind, x, b);
    return b;
}

/* Both read an array of about as many elements as the loops go over. */
static bool share_input(Lower *L, const Behind *x, const Behind *y, int64_t count)
{
    for (int32_t k = 0; k < x->list.n; k++) {
        const Inst *i = x->list.v[k];
        if (map_has(&L->memory, i) && map_has(&y->set, i) && shape_is_array(i->shape) && shape_count(i->shape) >= count / 2)
            return true;
    }
    return false;
}

static bool is_ready(Lower *L, const Inst *x, const Behind *b)
{
    for (int32_t k = 0; k < b->list.n; k++) {
        const Inst *i = b->list.v[k];
        if (i != x && map_has(&L->plan->materialise, i) && !map_has(&L->memory, i))
            return false;
    }
    return true;
}

/* y in the loops of x, beside the n others. */
static bool fits(Lower *L, const Inst *x, const Inst *y, int32_t n, const Inst *const *others)
{
    const Behind *b = behind(L, y);
    if (!b->known || map_has(&b->set, x) || !is_ready(L, y, b) || !share_input(L, behind(L, x), b, shape_count(inst_operand(x, 0)->shape)))
        return false;
    for (int32_t k = 0; k < n; k++)
        if (map_has(&b->set, others[k]) || map_has(&behind(L, others[k])->set, y))
            return false;
    return true;
}

/* Inline at that index, else in a stage. */
static bool is_wanted(Lower *L, const Inst *y, const Ix *const *index)
{
    bool staged = map_has(&L->plan->materialise, y);
    return index ? !staged && !value_is_known(L, y, 0, index) : staged && !epilogue_has(L, y);
}

static int32_t companions(Lower *L, const Inst *x, const Ix *const *index, const Inst **others)
{
    int32_t n = 0;
    if (!L->body || !behind(L, x)->known)
        return 0;
    for (int32_t k = 0; k < L->reductions.n && n < MOST_TOGETHER; k++) {
        const Inst *y = L->reductions.v[k];
        if (y != x && y->n_uses > 0 && !map_has(&L->memory, y) && inst_same_loops(x, y) && is_wanted(L, y, index) && !map_has(&behind(L, x)->set, y) &&
            fits(L, x, y, n, others))
            others[n++] = y;
    }
    return n;
}

int32_t together_inline(Lower *L, const Inst *x, const Ix *const *index, const Inst **others)
{
    return companions(L, x, index, others);
}

int32_t together_staged(Lower *L, const Inst *x, const Inst **others)
{
    return companions(L, x, NULL, others);
}
