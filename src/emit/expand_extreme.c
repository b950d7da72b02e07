/* The largest or the smallest of elements of bf16 or f16 in memory, which a fusion ends with, is one of integers of 16 bits, twice as many of which are in a vector and none of
 * which is compared with itself:
 *
 *     r = bf16[n] reduce(x, init), maximum     =>     r = bf16[n] from(s16[n] reduce(key(x), key(init)), maximum)
 *
 * So are several of them, and those of sizes, whose bits are in their order without the sign.
 *
 * The bits of a negative number in reverse, but for the sign, are in its order (b ^ (b >> 15 & 0x7fff)), with NaN at both ends. Those at the wrong end come to the other one when as many as
 * there are of either sign are subtracted (of the smallest: added), modulo 2^16. */
#include "emit/expand.h"

#include "ir/numeric.h"
#include "passes/util.h"

#include <math.h>

static bool is_moved(const Inst *x)
{
    while (x->op == OP_BITCAST || x->op == OP_RESHAPE || x->op == OP_TRANSPOSE || x->op == OP_SLICE || x->op == OP_COPY)
        x = inst_operand(x, 0);
    return x->op == OP_PARAMETER;
}

static bool is_extreme(const Inst *i)
{
    if (i->op != OP_REDUCE || i->n_operands != 2 || !shape_is_array(i->shape) || (i->shape->type != TYPE_BF16 && i->shape->type != TYPE_F16))
        return false;
    const Inst *x = inst_operand(i, 0), *init = inst_operand(i, 1);
    const Op    op = comp_binary_op(inst_callee(i, 0));
    return (op == OP_MAXIMUM || op == OP_MINIMUM) && x->shape->type == i->shape->type && init->shape->type == i->shape->type && is_moved(x->op == OP_ABS ? inst_operand(x, 0) : x);
}

/* What expand_extreme has put in the place of one. */
static bool was_extreme(const Inst *x)
{
    return x->op == OP_BITCAST_CONVERT && inst_operand(x, 0)->op == OP_XOR;
}

/* What the fusion ends with, or one of several such results: others would want the elements as floats in the same loop. */
bool extreme_expands(const Inst *i)
{
    const Inst *root = i->comp->root;
    if (!is_extreme(i) || i == root)
        return i == root && is_extreme(i);
    bool all = root->op == OP_TUPLE && inst_user(i) == root;
    for (int32_t k = 0; k < root->n_operands && all; k++)
        all = is_extreme(inst_operand(root, k)) || was_extreme(inst_operand(root, k));
    return all;
}

static Inst *made(Inst *i, Op op, const Shape *s, int32_t n, Inst *const *operands)
{
    Inst *x = inst_new(i->comp, i, op, s, n, operands, NULL);
    x->meta = i->meta;
    x->loc = i->loc;
    return x;
}

/* x op v everywhere. */
static Inst *with(Inst *i, Op op, Inst *x, int64_t v)
{
    Inst *c = inst_constant(i->comp, i, literal_from_s64(TYPE_S16, v), NULL);
    if (x->shape->rank > 0) {
        c = made(i, OP_BROADCAST, x->shape, 1, &c);
        inst_set_ints(c, ATTR_DIMENSIONS, (Ints){ NULL, 0 });
    }
    return made(i, op, x->shape, 2, (Inst *const[]){ x, c });
}

static Inst *as_type(Inst *i, Inst *x, Type t)
{
    return made(i, OP_BITCAST_CONVERT, shape_with_type(i->comp->module->arena, x->shape, t), 1, &x);
}

/* Its own inverse. */
static Inst *turned(Inst *i, Inst *x)
{
    Inst *lower = with(i, OP_AND, with(i, OP_SHIFT_RIGHT_ARITHMETIC, x, 15), 0x7fff);
    return made(i, OP_XOR, x->shape, 2, (Inst *const[]){ x, lower });
}

static Inst *key_of(Inst *i, Inst *x, int64_t shift)
{
    if (x->op == OP_ABS)
        return with(i, OP_ADD, with(i, OP_AND, as_type(i, inst_operand(x, 0), TYPE_S16), 0x7fff), shift);
    if (x->op != OP_CONSTANT || x->shape->rank > 0)
        return with(i, OP_ADD, turned(i, as_type(i, x, TYPE_S16)), shift);
    const int64_t bits = int_wrap(TYPE_S16, (int64_t)float_encode(x->shape->type, literal_get_f64(x->literal, 0)));
    return inst_constant(i->comp, i, literal_from_s64(TYPE_S16, int_wrap(TYPE_S16, (bits ^ (bits >> 15 & 0x7fff)) + shift)), NULL);
}

static Comp *extreme_of_words(Inst *i, Op op)
{
    Module      *m = i->comp->module;
    Comp        *c = comp_new(m, comp_unique_name(m, op == OP_MAXIMUM ? "largest" : "smallest"));
    const Shape *s = shape_scalar(m->arena, TYPE_S16);
    Inst        *two[] = { inst_parameter(c, NULL, 0, s, NULL), inst_parameter(c, NULL, 1, s, NULL) };
    comp_move_before(c, i->comp);
    c->root = inst_new(c, NULL, op, s, 2, two, NULL);
    return c;
}

void expand_extreme(Inst *i)
{
    const Type    t = i->shape->type;
    const Op      op = comp_binary_op(inst_callee(i, 0));
    const int64_t nans = 0x7fff - (int64_t)float_encode(t, INFINITY), shift = op == OP_MAXIMUM ? -nans : nans;
    Comp         *by = extreme_of_words(i, op);
    Inst         *keys[2];
    for (int32_t k = 0; k < 2; k++)
        keys[k] = key_of(i, inst_operand(i, k), shift);
    Inst *r = made(i, OP_REDUCE, shape_with_type(i->comp->module->arena, i->shape, TYPE_S16), 2, keys);
    inst_set_ints(r, ATTR_DIMENSIONS, inst_ints(i, ATTR_DIMENSIONS));
    inst_set_callees(r, 1, &by);
    inst_replace(i, as_type(i, turned(i, with(i, OP_ADD, r, -shift)), t));
    inst_delete(i);
}

/* ---- rows of a scatter, of which each element becomes the larger, or the smaller, of itself and another one: the one whose key is ---- */

bool scatter_extreme_expands(const Inst *i)
{
    enum { MOST = 32 /* elements beside each other: one loop, of which compilers make a few vectors; integers are less work where there is none, too */ };
    if (i->op != OP_SCATTER || i->n_operands != 3 || !shape_is_array(i->shape) || (i->shape->type != TYPE_BF16 && i->shape->type != TYPE_F16) ||
        inst_operand(i, 2)->shape->type != i->shape->type)
        return false;
    const Op     op = comp_binary_op(inst_callee(i, 0));
    const Shape *updates = inst_operand(i, 2)->shape;
    const Ints   window = inst_ints(i, ATTR_UPDATE_WINDOW_DIMS);
    return (op == OP_MAXIMUM || op == OP_MINIMUM) && updates->rank > 0 && ints_has(window, layout_dim(updates, 0)) &&
           updates->dims[layout_dim(updates, 0)] <= MOST;
}

void expand_scatter_extreme(Inst *i)
{
    Module       *m = i->comp->module;
    const Type    t = i->shape->type;
    const Op      op = comp_binary_op(inst_callee(i, 0));
    const int64_t nans = 0x7fff - (int64_t)float_encode(t, INFINITY), shift = op == OP_MAXIMUM ? -nans : nans;
    Comp         *c = comp_new(m, comp_unique_name(m, op == OP_MAXIMUM ? "larger" : "smaller"));
    const Shape  *s = shape_scalar(m->arena, t);
    Inst         *two[] = { inst_parameter(c, NULL, 0, s, NULL), inst_parameter(c, NULL, 1, s, NULL) }, *keys[2];
    comp_move_before(c, i->comp);
    Inst *end = inst_new(c, NULL, OP_COPY, s, 1, two, NULL); /* what follows stands before it */
    for (int32_t k = 0; k < 2; k++)
        keys[k] = key_of(end, two[k], shift);
    Inst *more = made(end, OP_COMPARE, shape_scalar(m->arena, TYPE_PRED), 2, keys);
    inst_set_word(more, ATTR_DIRECTION, op == OP_MAXIMUM ? CMP_GT : CMP_LT);
    c->root = made(end, OP_SELECT, s, 3, (Inst *const[]){ more, two[0], two[1] });
    inst_delete(end);
    inst_set_callees(i, 1, &c);
}
