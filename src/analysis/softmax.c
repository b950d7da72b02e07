#include "analysis/softmax.h"

#include "ir/shape.h"

/* What x is the same number as, in a narrower type. */
static const Inst *narrow(const Inst *x)
{
    while (x->op == OP_CONVERT && type_is_float(x->shape->type) && type_is_float(inst_operand(x, 0)->shape->type) &&
           (inst_operand(x, 0)->shape->type == TYPE_BF16 || inst_operand(x, 0)->shape->type == TYPE_F16) && type_bytes(x->shape->type) > 2)
        x = inst_operand(x, 0);
    return x;
}

static int32_t next_dim(const Shape *s, int32_t d)
{
    while (d < s->rank && s->dims[d] == 1)
        d++;
    return d;
}

/* But for dimensions of 1 the shapes have the same. */
static bool same_but_units(const Shape *a, const Shape *b)
{
    int32_t d = next_dim(a, 0), e = next_dim(b, 0);
    while (d < a->rank && e < b->rank && a->dims[d] == b->dims[e]) {
        d = next_dim(a, d + 1);
        e = next_dim(b, e + 1);
    }
    return d == a->rank && e == b->rank;
}

static bool adds_units(const Inst *x)
{
    return x->op == OP_RESHAPE && same_but_units(x->shape, inst_operand(x, 0)->shape);
}

/* What x is with other dimensions of 1. */
static const Inst *without_units(const Inst *x)
{
    while (adds_units(x))
        x = inst_operand(x, 0);
    return x;
}

/* The operation by which i reduces one array of floats, or OP_COUNT. */
static Op reduces_by(const Inst *i)
{
    if (i->op != OP_REDUCE || i->n_operands != 2 || !shape_is_array(i->shape) || !type_is_float(i->shape->type))
        return OP_COUNT;
    const Comp *c = inst_callee(i, 0);
    const Inst *r = c->root;
    bool        both = r->n_operands == 2 && inst_operand(r, 0)->op == OP_PARAMETER && inst_operand(r, 1)->op == OP_PARAMETER && inst_operand(r, 0) != inst_operand(r, 1);
    return both ? r->op : OP_COUNT;
}

/* b repeats what `reduce` gives, be it with other dimensions of 1, along the dimensions that it reduces. */
static bool repeats_along(const Inst *b, const Inst *reduce)
{
    const Shape *in = inst_operand(reduce, 0)->shape;
    if (b->op != OP_BROADCAST || !shape_same_dims(b->shape, in) || !same_but_units(inst_operand(b, 0)->shape, reduce->shape))
        return false;
    const Shape *of = inst_operand(b, 0)->shape;
    const Ints   reduced = inst_ints(reduce, ATTR_DIMENSIONS), kept = inst_ints(b, ATTR_DIMENSIONS);
    int32_t      k = next_dim(of, 0);
    for (int32_t d = 0; d < in->rank; d++)
        if (in->dims[d] != 1 && !ints_has(reduced, d)) {
            if (k == of->rank || kept.v[k] != d)
                return false;
            k = next_dim(of, k + 1);
        }
    return k == of->rank;
}

/* The maximum of x, from the least number on, that b repeats along the dimensions it was taken of. */
static bool is_max_of(const Inst *max, const Inst *x, const Inst *b)
{
    if (reduces_by(max) != OP_MAXIMUM || !repeats_along(b, max) || narrow(inst_operand(max, 0)) != narrow(x))
        return false;
    const Inst *init = inst_operand(max, 1);
    double      least = init->op == OP_CONSTANT && !init->literal->elided ? literal_get_f64(init->literal, 0) : 0.0;
    return least < 0 && least - least != 0;
}

/* The maximum that i is below; NULL. */
static const Inst *max_above(const Inst *i)
{
    if (i->op != OP_SUBTRACT || inst_operand(i, 1)->op != OP_BROADCAST)
        return NULL;
    const Inst *b = inst_operand(i, 1), *max = without_units(narrow(without_units(inst_operand(b, 0))));
    return is_max_of(max, inst_operand(i, 0), b) ? max : NULL;
}

bool inst_is_below_max(const Inst *i)
{
    return max_above(i) != NULL;
}

bool inst_is_one_at_most(const Inst *i)
{
    const Inst *x = i->op == OP_EXPONENTIAL ? inst_operand(i, 0) : NULL;
    return x && ((x->op == OP_NEGATE && inst_operand(x, 0)->op == OP_ABS) || inst_is_below_max(x));
}

static bool is_zero(const Inst *x)
{
    x = x->op == OP_BROADCAST ? inst_operand(x, 0) : x;
    return x->op == OP_CONSTANT && !x->literal->elided && shape_count(x->shape) == 1 && literal_get_f64(x->literal, 0) == 0;
}

/* The maximum that i would be below if it were finite, where it is not being taken for 0; NULL. */
static const Inst *finite_max_above(const Inst *i)
{
    if (i->op != OP_SUBTRACT || inst_operand(i, 1)->op != OP_BROADCAST)
        return NULL;
    const Inst *b = inst_operand(i, 1), *s = without_units(inst_operand(b, 0));
    if (s->op != OP_SELECT || inst_operand(s, 0)->op != OP_IS_FINITE || inst_operand(inst_operand(s, 0), 0) != inst_operand(s, 1) || !is_zero(inst_operand(s, 2)))
        return NULL;
    const Inst *max = without_units(narrow(without_units(inst_operand(s, 1))));
    return is_max_of(max, inst_operand(i, 0), b) ? max : NULL;
}

static bool reduces_alike(const Inst *a, const Inst *b)
{
    Ints x = inst_ints(a, ATTR_DIMENSIONS), y = inst_ints(b, ATTR_DIMENSIONS);
    if (x.n != y.n || !shape_same_dims(inst_operand(a, 0)->shape, inst_operand(b, 0)->shape))
        return false;
    for (int32_t k = 0; k < x.n; k++)
        if (!ints_has(y, x.v[k]))
            return false;
    return true;
}

/* All that becomes of i are sums along the dimensions of the maximum. */
static bool is_summed(const Inst *i, const Inst *max)
{
    bool all = i != i->comp->root;
    for (const Use *u = i->uses; u && all; u = u->next)
        all = (u->user->op == OP_CONVERT && is_summed(u->user, max)) || (reduces_by(u->user) == OP_ADD && reduces_alike(u->user, max));
    return all;
}

bool inst_is_summed_below_max(const Inst *exponential)
{
    const Inst *max = exponential->op == OP_EXPONENTIAL ? finite_max_above(inst_operand(exponential, 0)) : NULL;
    return max && is_summed(exponential, max);
}

bool inst_is_softmax_sum(const Inst *i)
{
    if (i->op != OP_BROADCAST)
        return false;
    const Inst *sum = without_units(inst_operand(i, 0));
    sum = sum->op == OP_CONVERT ? without_units(inst_operand(sum, 0)) : sum;
    if (reduces_by(sum) != OP_ADD || !repeats_along(i, sum))
        return false;
    const Inst *init = inst_operand(sum, 1), *e = inst_operand(sum, 0);
    e = e->op == OP_CONVERT ? inst_operand(e, 0) : e;
    const Inst *max = e->op == OP_EXPONENTIAL ? max_above(inst_operand(e, 0)) : NULL;
    if (!max || init->op != OP_CONSTANT || init->literal->elided || literal_get_f64(init->literal, 0) != 0)
        return false;
    Ints a = inst_ints(max, ATTR_DIMENSIONS), b = inst_ints(sum, ATTR_DIMENSIONS);
    for (int32_t k = 0; k < a.n; k++)
        if (!ints_has(b, a.v[k]))
            return false;
    return a.n == b.n;
}

/* ---- NaN ---- */

enum { MADE = 1 /* of the extreme, row by row */, WHERE = 2 /* NaN wherever its operand is */, ROW = 4 /* NaN in all of a row in which its operand has one */ };

static bool hands_nan_on(const Inst *i)
{
    switch (i->op) {
    case OP_ADD: case OP_SUBTRACT: case OP_MULTIPLY: case OP_DIVIDE: case OP_MAXIMUM: case OP_MINIMUM: case OP_NEGATE: case OP_ABS: case OP_EXPONENTIAL: case OP_LOG:
    case OP_EXPONENTIAL_MINUS_ONE: case OP_LOG_PLUS_ONE: case OP_SQRT: case OP_RSQRT: case OP_TANH: case OP_LOGISTIC:
        return type_is_float(i->shape->type);
    case OP_CONVERT:
        return (i->shape->type == TYPE_F32 || i->shape->type == TYPE_F64 || i->shape->type == TYPE_BF16 || i->shape->type == TYPE_F16) && type_is_float(inst_operand(i, 0)->shape->type);
    default: return false;
    }
}

/* What is known of i, from what is known of its operands; -1: it mixes rows. */
static int known_of(const Map *known, const Inst *extreme, const Inst *i)
{
    int all = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        all |= (int)(intptr_t)map_get(known, inst_operand(i, k));
    if (!all || i->op == OP_TUPLE)
        return 0;
    if (op_has(i->op, F_ELEMENTWISE))
        return hands_nan_on(i) ? all : all & MADE;
    if ((i->op == OP_BROADCAST && repeats_along(i, extreme)) || adds_units(i))
        return all;
    if (i->op == OP_REDUCE && i->n_operands == 2 && reduces_alike(i, extreme))
        return (all & MADE) | (reduces_by(i) == OP_ADD && (all & (WHERE | ROW)) ? ROW : 0);
    return all & MADE ? -1 : 0;
}

static bool is_shown(const Map *known, const Inst *result)
{
    int what = (int)(intptr_t)map_get(known, result);
    return !(what & MADE) || (what & ROW);
}

bool inst_shows_nan_anyway(const Inst *extreme)
{
    enum { MOST = 500 };
    const Comp *c = extreme->comp;
    Op          op = reduces_by(extreme);
    if ((op != OP_MAXIMUM && op != OP_MINIMUM) || c->n_insts > MOST)
        return false;
    Arena      *a = arena_new();
    Map         known = map_new(a);
    const Inst *of = inst_operand(extreme, 0);
    bool        shown = true;
    map_put(&known, of, (void *)(intptr_t)WHERE);
    map_put(&known, narrow(of), (void *)(intptr_t)WHERE);
    for (const Inst *i = c->first; i && shown; i = i->next) {
        int what = i == extreme ? MADE : known_of(&known, extreme, i);
        shown = what >= 0;
        if (what > 0)
            map_put(&known, i, (void *)(intptr_t)(what | (int)(intptr_t)map_get(&known, i)));
    }
    if (c->root->op != OP_TUPLE)
        shown = shown && is_shown(&known, c->root);
    for (int32_t k = 0; c->root->op == OP_TUPLE && k < c->root->n_operands; k++)
        shown = shown && is_shown(&known, inst_operand(c->root, k));
    arena_free(a);
    return shown;
}
