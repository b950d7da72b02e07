/* Sizes that are known only when run. An array keeps its full size wherever emitted code sees it; its size is a number of its own, and where elements
 * beyond it would count something else stands in their place:
 *
 *   d = f32[<=8] set-dimension-size(x, n)          size = s32[] clamp(0, n, 8)
 *   s = s32[] get-dimension-size(d)                s = size
 *   r = f32[] reduce(d, init), to_apply=add        r = reduce(select(iota < size, x, -0), init)
 *
 * A size goes with the values through what computes element by element, broadcast, transpose and copy, and ends in a reduction. A computation in which
 * one gets elsewhere, to its root above all, stays as it is, and is refused by its set-dimension-size. Source: reference operations 18. */
#include "emit/expand.h"

#include <math.h>
#include <string.h>

/* Of an array: the set-dimension-size that gives each dimension its size; NULL: it is full. */
typedef const Inst *Size;

typedef struct Sizes {
    Arena *arena;
    Map    of; /* Inst -> Size[rank]; absent: all are full */
} Sizes;

/* ---- where sizes go ---- */

static Size *sizes_of(const Sizes *s, const Inst *i)
{
    return map_get(&s->of, i);
}

static Size *no_sizes(const Sizes *s, const Inst *i)
{
    return ARENA_ARRAY(s->arena, Size, i->shape->rank);
}

static bool any_sized(const Sizes *s, const Inst *i)
{
    for (int32_t k = 0; k < i->n_operands; k++)
        if (sizes_of(s, inst_operand(i, k)))
            return true;
    return false;
}

static int64_t first_dim(const Inst *i)
{
    return inst_ints(i, ATTR_DIMENSIONS).v[0];
}

bool size_is_full(const Inst *set)
{
    const Inst *size = inst_operand(set, 1);
    return size->op == OP_CONSTANT && !size->literal->elided && literal_get_s64(size->literal, 0) == set->shape->dims[first_dim(set)];
}

/* One that is set again would be filled up with zeros. */
/* A size that is set anew is one of what was there before it was cut; what was computed from a part has no more. */
static bool put_set(Sizes *s, const Inst *i)
{
    int64_t     d = first_dim(i);
    const Inst *x = inst_operand(i, 0);
    const Size *from = sizes_of(s, x);
    Size       *to = no_sizes(s, i);
    if (from && from[d] && (x->op != OP_SET_DIMENSION_SIZE || first_dim(x) != d))
        return false;
    if (from)
        memcpy(to, from, (size_t)i->shape->rank * sizeof *to);
    to[d] = size_is_full(i) ? NULL : i;
    bool any = false;
    for (int32_t k = 0; k < i->shape->rank; k++)
        any |= to[k] != NULL;
    if (any)
        map_put(&s->of, i, to);
    return true;
}

/* What is full in one operand and sized in another is cut. */
static bool put_alike(Sizes *s, const Inst *i)
{
    Size *to = no_sizes(s, i);
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Size *from = sizes_of(s, inst_operand(i, k));
        for (int32_t d = 0; from && d < i->shape->rank; d++) {
            if (from[d] && to[d] && from[d] != to[d])
                return false;
            to[d] = from[d] ? from[d] : to[d];
        }
    }
    map_put(&s->of, i, to);
    return true;
}

/* Dimension k of the operand becomes dims[k]; of transpose, dims[k] of the operand becomes k. */
static bool put_moved(Sizes *s, const Inst *i)
{
    const Size *from = sizes_of(s, inst_operand(i, 0));
    Size       *to = no_sizes(s, i);
    Ints        dims = inst_ints(i, ATTR_DIMENSIONS);
    for (int32_t k = 0; k < dims.n; k++)
        *(i->op == OP_TRANSPOSE ? &to[k] : &to[dims.v[k]]) = i->op == OP_TRANSPOSE ? from[dims.v[k]] : from[k];
    map_put(&s->of, i, to);
    return true;
}

static bool is_reduced(const Inst *i, int32_t d)
{
    Ints dims = inst_ints(i, ATTR_DIMENSIONS);
    for (int32_t k = 0; k < dims.n; k++)
        if (dims.v[k] == d)
            return true;
    return false;
}

/* x of `f(x, y) == y` for each y, one reference; NULL: it is not known. */
static Literal *neutral(const Comp *f, Type t)
{
    const Inst *root = f->root;
    bool        real = t == TYPE_F16 || t == TYPE_BF16 || t == TYPE_F32 || t == TYPE_F64, sign = type_is_signed_int(t);
    if (root->n_operands != 2 || inst_operand(root, 0)->op != OP_PARAMETER || inst_operand(root, 1)->op != OP_PARAMETER ||
        inst_operand(root, 0) == inst_operand(root, 1) || root->shape->type != t || !(real || type_is_int(t)))
        return NULL;
    int64_t most = sign ? (int64_t)(UINT64_MAX >> (65 - type_bits(t))) : (int64_t)(UINT64_MAX >> (64 - type_bits(t))), least = sign ? -most - 1 : 0;
    switch (root->op) {
    case OP_ADD: return real ? literal_from_f64(t, -0.0) : literal_from_s64(t, 0);
    case OP_MULTIPLY: return literal_from_s64(t, 1);
    case OP_MAXIMUM: return real ? literal_from_f64(t, -INFINITY) : literal_from_s64(t, least);
    case OP_MINIMUM: return real ? literal_from_f64(t, INFINITY) : literal_from_s64(t, most);
    default: return NULL;
    }
}

static bool put_reduced(Sizes *s, const Inst *i)
{
    const Inst *x = inst_operand(i, 0);
    Size       *from = i->n_operands == 2 ? sizes_of(s, x) : NULL, *to = no_sizes(s, i);
    Literal    *l = from ? neutral(inst_callee(i, 0), x->shape->type) : NULL;
    bool        any = false;
    for (int32_t d = 0, k = 0; l && d < x->shape->rank; d++)
        if (!is_reduced(i, d)) {
            to[k++] = from[d];
            any |= from[d] != NULL;
        }
    if (any)
        map_put(&s->of, i, to);
    literal_unref(l);
    return l != NULL;
}

static bool follow(Sizes *s, const Inst *i)
{
    if (i->op == OP_SET_DIMENSION_SIZE)
        return !sizes_of(s, inst_operand(i, 1)) && put_set(s, i);
    if (!any_sized(s, i) || i->op == OP_GET_DIMENSION_SIZE)
        return true;
    if (op_has(i->op, F_ELEMENTWISE) || i->op == OP_COPY)
        return put_alike(s, i);
    if (i->op == OP_BROADCAST || i->op == OP_TRANSPOSE)
        return put_moved(s, i);
    return i->op == OP_REDUCE && put_reduced(s, i);
}

/* ---- what they become ---- */

static Inst *number(Inst *at, int64_t v)
{
    return inst_constant(at->comp, at, literal_from_s64(TYPE_S32, v), NULL);
}

/* What is out of range counts as the nearest size that is not. */
static void expand_set(Inst *i, Map *numbers)
{
    const Shape *s32 = shape_scalar(i->comp->module->arena, TYPE_S32);
    Inst        *bound = number(i, i->shape->dims[first_dim(i)]), *zero = number(i, 0);
    Inst        *size = inst_new(i->comp, i, OP_CLAMP, s32, 3, (Inst *const[]){ zero, inst_operand(i, 1), bound }, NULL);
    size->meta = i->meta;
    map_put(numbers, i, size);
    inst_set_operand(i, 1, bound);
}

/* select(iota < size, x, neutral) along dimension d. */
static Inst *masked(Inst *at, Inst *x, int32_t d, Inst *size, const Comp *f)
{
    Comp        *c = at->comp;
    Arena       *a = c->module->arena;
    const Shape *s = shape_array(a, x->shape->type, x->shape->rank, x->shape->dims), *s32 = shape_with_type(a, s, TYPE_S32);
    Inst        *place = inst_new(c, at, OP_IOTA, s32, 0, NULL, NULL), *sizes = inst_new(c, at, OP_BROADCAST, s32, 1, &size, NULL);
    Inst        *value = inst_constant(c, at, neutral(f, s->type), NULL), *values = inst_new(c, at, OP_BROADCAST, s, 1, &value, NULL);
    Inst        *inside = inst_new(c, at, OP_COMPARE, shape_with_type(a, s, TYPE_PRED), 2, (Inst *const[]){ place, sizes }, NULL);
    inst_set_int(place, ATTR_IOTA_DIMENSION, d);
    inst_set_word(inside, ATTR_DIRECTION, CMP_LT);
    return inst_new(c, at, OP_SELECT, s, 3, (Inst *const[]){ inside, x, values }, NULL);
}

static void expand_reduce(Inst *i, const Size *from, const Map *numbers)
{
    for (int32_t d = 0; d < inst_operand(i, 0)->shape->rank; d++)
        if (from[d] && is_reduced(i, d))
            inst_set_operand(i, 0, masked(i, inst_operand(i, 0), d, map_get(numbers, from[d]), inst_callee(i, 0)));
}

static void expand_inst(const Sizes *s, Inst *i, Map *numbers)
{
    const Size *from = i->n_operands > 0 ? sizes_of(s, inst_operand(i, 0)) : NULL;
    if (i->op == OP_SET_DIMENSION_SIZE && !size_is_full(i))
        expand_set(i, numbers);
    else if (i->op == OP_GET_DIMENSION_SIZE && from && from[first_dim(i)])
        inst_replace(i, map_get(numbers, from[first_dim(i)]));
    else if (i->op == OP_REDUCE && from)
        expand_reduce(i, from, numbers);
}

void expand_sizes(Comp *c)
{
    Sizes s = { arena_new(), { 0 } };
    bool  good = true;
    s.of = map_new(s.arena);
    for (Inst *i = c->first; i && good; i = i->next)
        good = follow(&s, i);
    Map numbers = map_new(s.arena);
    if (good && !sizes_of(&s, c->root))
        for (Inst *i = c->first, *next; i; i = next) {
            next = i->next;
            expand_inst(&s, i, &numbers);
        }
    arena_free(s.arena);
}
