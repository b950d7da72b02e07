/* convert-mover - what moves elements moves narrow ones.
 *
 *   %c = f32[4,8] convert(%x)                  (%x is bf16[4,8])           %t = bf16[8,4] transpose(%x), dimensions={1,0}
 *   %t = f32[8,4] transpose(%c), ...                                 =>    %c = f32[8,4] convert(%t)
 *
 *   %t = f32[8,4] transpose(%x), dimensions={1,0}                          %c = bf16[4,8] convert(%x)
 *   %c = bf16[8,4] convert(%t)                                       =>    %t = bf16[8,4] transpose(%c), dimensions={1,0}
 *
 * Through reshape, transpose, slice, pad and concatenate. What is converted has no other user. Constants among the operands have to be values of the
 * narrow type, exactly; the value that pads is converted along. reshape-mover goes the other way, so the two do not belong into one fix(...). */
#include "config.h"

#include <math.h>

#include "passes/expand.h"
#include "passes/util.h"

static bool moves(Op op)
{
    return op == OP_RESHAPE || op == OP_TRANSPOSE || op == OP_SLICE || op == OP_PAD || op == OP_CONCATENATE;
}

static bool is_wider(Type a, Type b)
{
    bool plain = (type_is_float(a) || type_is_int(a)) && (type_is_float(b) || type_is_int(b)), complex = type_is_complex(a) && type_is_float(b);
    return (plain || complex) && type_bits(a) > type_bits(b) && type_bits(b) >= 8;
}

/* The value of all elements of x in another type, NULL when it is none there. */
static Literal *value_in(const Inst *x, Type t)
{
    const Literal *c = splat_value(x);
    if (!c || type_is_float(c->type) != type_is_float(t) || (!type_is_float(t) && !type_is_int(t)))
        return NULL;
    bool     real = type_is_float(t);
    double   v = real ? literal_get_f64(c, 0) : 0;
    Literal *r = real ? literal_from_f64(t, v) : literal_from_s64(t, literal_get_s64(c, 0));
    bool     same = real ? literal_get_f64(r, 0) == v && !signbit(literal_get_f64(r, 0)) == !signbit(v) : literal_get_s64(r, 0) == literal_get_s64(c, 0);
    if (same)
        return r;
    literal_unref(r);
    return NULL;
}

static bool is_upward(const Inst *c)
{
    return c->op == OP_CONVERT && c->n_uses == 1 && inst_is_free(c) && !c->shape->layout && is_wider(c->shape->type, inst_operand(c, 0)->shape->type);
}

/* The type that all converts among the operands come from, when nothing else is there but constants of it. */
static Type common_source(const Inst *i)
{
    Type t = TYPE_COUNT;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *x = inst_operand(i, k);
        if (!is_upward(x))
            continue;
        if (t != TYPE_COUNT && inst_operand(x, 0)->shape->type != t)
            return TYPE_COUNT;
        t = inst_operand(x, 0)->shape->type;
    }
    for (int32_t k = 0; k < i->n_operands && t != TYPE_COUNT; k++) {
        Literal *v = is_upward(inst_operand(i, k)) ? NULL : value_in(inst_operand(i, k), t);
        if (!v && !is_upward(inst_operand(i, k)))
            return TYPE_COUNT;
        literal_unref(v);
    }
    return t;
}

static Inst *constant_in(Inst *at, const Inst *x, Type t)
{
    Inst *c = inst_constant(at->comp, at, value_in(x, t), NULL);
    c->meta = x->meta;
    c->loc = x->loc;
    return x->shape->rank == 0 ? c : expand_broadcast(at, shape_with_type(at->comp->module->arena, x->shape, t), c, (Ints){NULL, 0});
}

/* op(convert(x), ...) -> convert(op(x, ...)) */
static Inst *sink(PassCtx *cx, Inst *i)
{
    Type t = moves(i->op) && !i->shape->layout ? common_source(i) : TYPE_COUNT;
    if (t == TYPE_COUNT)
        return NULL;
    Inst **operands = ARENA_ARRAY(cx->scratch, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        operands[k] = is_upward(inst_operand(i, k)) ? inst_operand(inst_operand(i, k), 0) : constant_in(i, inst_operand(i, k), t);
    Inst *moved = expand_like(i, shape_with_type(i->comp->module->arena, i->shape, t), i->n_operands, operands);
    return expand_convert(i, OP_CONVERT, i->shape->type, moved);
}

/* convert(op(x, ...)) -> op(convert(x), ...) */
static Inst *hoist(PassCtx *cx, Inst *i)
{
    Inst *m = i->op == OP_CONVERT ? inst_operand(i, 0) : NULL;
    if (!m || !moves(m->op) || m->n_uses != 1 || !inst_is_free(m) || m->shape->layout || i->shape->layout || !is_wider(m->shape->type, i->shape->type))
        return NULL;
    Inst **operands = ARENA_ARRAY(cx->scratch, Inst *, m->n_operands);
    for (int32_t k = 0; k < m->n_operands; k++)
        operands[k] = expand_convert(i, OP_CONVERT, i->shape->type, inst_operand(m, k));
    Inst *moved = expand_op(i, m->op, i->shape, m->n_operands, operands);
    inst_take_attrs(moved, m);
    return moved;
}

static Inst *move(PassCtx *cx, Inst *i)
{
    Inst *r = sink(cx, i);
    return r ? r : hoist(cx, i);
}

bool pass_convert_mover(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, move);
}
