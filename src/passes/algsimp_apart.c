/* Rules of algsimp about an array with a line more, of which every line is summed, or looked at, in the end: no array need have both (a softmax with a score more in each row).
 *
 *   %c = f32[m,k+1] concatenate(%x [m,k], %t [m,1])        max(%c)                =>    maximum(max(%x), reshape(%t))
 *   %e = f32[m,k+1] exponential(%c - broadcast(%m))        sum(%e)                =>    sum(exponential(%x - broadcast(%m))) + reshape(exponential(%t - ...))
 *                                                          slice(%e), [:, 0:k]    =>    exponential(%x - broadcast(%m))
 *
 * A sum of floats has the element as its last term then, too, and is rounded before that: the rule about these is one of its own.
 *
 * A rule rewrites one of them where it and all others become such: then nothing is left of the whole. Reductions are first, what is looked at waits for them. */
#include "config.h"

#include "passes/algsimp.h"

enum { MOST_DEEP = 8 };

typedef struct Apart {
    const Inst *c; /* the concatenation */
    int64_t     along;
    bool        reduces; /* some use of what is made of it is a reduction */
} Apart;

static bool is_plain(const Inst *x)
{
    return shape_is_array(x->shape) && !x->shape->layout && !shape_is_dynamic(x->shape);
}

/* All operands of one line but one. */
static bool is_line_more(const Inst *c)
{
    int32_t more = 0;
    if (c->op != OP_CONCATENATE || c->n_operands != 2 || !is_plain(c))
        return false;
    for (int32_t k = 0; k < c->n_operands; k++)
        more += inst_operand(c, k)->shape->dims[dimensions(c).v[0]] > 1;
    return more == 1;
}

/* The same along the dimension. */
static bool is_repeated(const Apart *a, const Inst *x)
{
    return x->op == OP_BROADCAST && is_plain(x) && x->shape->rank == a->c->shape->rank && !ints_has(dimensions(x), a->along);
}

static bool is_elementwise(const Inst *x)
{
    return op_has(x->op, F_ELEMENTWISE) && x->n_operands > 0 && x->n_callees == 0 && is_plain(x);
}

/* x is c, or made of it element by element: sets c, the first time. */
static bool is_made(Apart *a, const Inst *x, int deep)
{
    bool made = false;
    if (is_line_more(x)) {
        a->c = a->c ? a->c : x;
        a->along = dimensions(a->c).v[0];
        return a->c == x;
    }
    if (deep == MOST_DEEP || !is_elementwise(x))
        return false;
    for (int32_t k = 0; k < x->n_operands; k++)
        made |= inst_operand(x, k)->op != OP_BROADCAST && is_made(a, inst_operand(x, k), deep + 1);
    for (int32_t k = 0; k < x->n_operands && made; k++)
        if (!shape_same_dims(inst_operand(x, k)->shape, x->shape) || !(is_repeated(a, inst_operand(x, k)) || is_made(a, inst_operand(x, k), deep + 1)))
            return false;
    return made;
}

static bool is_reduction(const Apart *a, const Inst *x)
{
    const Op op = x->op == OP_REDUCE && x->n_operands == 2 ? comp_binary_op(inst_callee(x, 0)) : OP_COUNT;
    const bool last = inst_operand(a->c, 1)->shape->dims[a->along] == 1 || type_is_int(x->shape->type);
    const bool sum = op == OP_ADD && last && (splat_is(inst_operand(x, 1), 0) || splat_is_minus_zero(inst_operand(x, 1)));
    return is_plain(x) && dimensions(x).n == 1 && dimensions(x).v[0] == a->along && x->shape->type == inst_operand(x, 0)->shape->type &&
           (sum || op == OP_MAXIMUM || op == OP_MINIMUM);
}

/* Which operand of c the slice is a part of; -1: it has some of both. */
static int32_t part_of_slice(const Apart *a, const Inst *x)
{
    const SliceRange *v = simp_ranges(x);
    int64_t           start = 0;
    for (int32_t k = 0; k < a->c->n_operands; k++) {
        const int64_t end = start + inst_operand(a->c, k)->shape->dims[a->along];
        if (is_plain(x) && v[a->along].start >= start && v[a->along].limit <= end && v[a->along].limit > v[a->along].start)
            return k;
        start = end;
    }
    return -1;
}

/* All uses of x, which is c or made of it, become some of parts. */
static bool ends_apart(Apart *a, const Inst *x, int deep)
{
    if (x == x->comp->root || deep == MOST_DEEP)
        return false;
    for (const Use *u = x->uses; u; u = u->next) {
        const bool reduces = is_reduction(a, u->user) && inst_operand(u->user, 0) == x;
        a->reduces |= reduces;
        if (reduces || (u->user->op == OP_SLICE && part_of_slice(a, u->user) >= 0))
            continue;
        if (!is_elementwise(u->user) || !is_made(a, u->user, 0) || !ends_apart(a, u->user, deep + 1))
            return false;
    }
    return true;
}

static bool find(Apart *a, const Inst *x)
{
    *a = (Apart){ .c = NULL };
    return is_made(a, x, 0) && ends_apart(a, a->c, 0);
}

/* x of operand k of c in its place. */
static Inst *part(Simp *s, const Apart *a, const Inst *x, int32_t k)
{
    Inst  **of = ARENA_ARRAY(s->scratch, Inst *, x->n_operands);
    int64_t dims[32];
    if (x == a->c)
        return inst_operand(x, k);
    for (int32_t d = 0; d < x->shape->rank; d++)
        dims[d] = inst_operand(a->c, k)->shape->dims[d];
    const Shape *shape = simp_shape(s, x->shape->type, x->shape->rank, dims);
    if (is_repeated(a, x))
        return simp_broadcast(s, shape, inst_operand(x, 0), dimensions(x));
    for (int32_t o = 0; o < x->n_operands; o++)
        of[o] = part(s, a, inst_operand(x, o), k);
    return simp_like(s, x, shape, of);
}

static Inst *reduced_apart(Simp *s, Inst *i)
{
    Apart a;
    if (i->op != OP_REDUCE || i->n_operands != 2 || inst_operand(i, 0)->shape->rank > 32 || !find(&a, inst_operand(i, 0)) || !is_reduction(&a, i) ||
        (a.c == inst_operand(i, 0) && a.c->n_uses == 1))
        return NULL;
    Inst *all = NULL;
    for (int32_t k = 0; k < a.c->n_operands; k++) {
        Inst *x = part(s, &a, inst_operand(i, 0), k);
        x = x->shape->dims[a.along] == 1 ? simp_reshape(s, i->shape, x) : simp_like(s, i, i->shape, (Inst *[]){ x, inst_operand(i, 1) });
        all = all ? simp_new(s, comp_binary_op(inst_callee(i, 0)), i->shape, 2, (Inst *[]){ all, x }) : x;
    }
    return all;
}

/* A plain sum, which is rounded once as a whole where the terms are added in a wider type. */
static bool sums_floats(const Inst *i)
{
    Type t = i->n_operands == 2 ? i->shape->type : TYPE_PRED;
    return (type_is_float(t) || type_is_complex(t)) && comp_binary_op(inst_callee(i, 0)) == OP_ADD;
}

Inst *rule_reduce_apart(Simp *s, Inst *i)
{
    return sums_floats(i) ? NULL : reduced_apart(s, i);
}

Inst *rule_reduce_float_apart(Simp *s, Inst *i)
{
    return sums_floats(i) ? reduced_apart(s, i) : NULL;
}

Inst *rule_slice_apart(Simp *s, Inst *i)
{
    Apart       a;
    const Inst *x = inst_operand(i, 0);
    if (x->shape->rank > 32 || x->op == OP_CONCATENATE || !find(&a, x) || a.reduces)
        return NULL;
    const int32_t k = part_of_slice(&a, i);
    SliceRange   *v = arena_copy(s->scratch, simp_ranges(i), (size_t)i->shape->rank * sizeof *v);
    for (int32_t before = 0; before < k; before++) {
        v[a.along].start -= inst_operand(a.c, before)->shape->dims[a.along];
        v[a.along].limit -= inst_operand(a.c, before)->shape->dims[a.along];
    }
    return simp_slice(s, i->shape, part(s, &a, x, k), v);
}
