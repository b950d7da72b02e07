/* A dot of floats of a byte, of which the runtime has no products, becomes one of bf16 or f16, which have all of their values:
 *
 *     f32[m,n] dot(f8e4m3fn x, f8e5m2 w)     =>     f32[m,n] dot(bf16 convert(x), bf16 convert(w))
 *
 * Sums are f32 as before. Few products stay as they are, since loops convert their operands once, too. */
#include "emit/dot_call.h"
#include "emit/expand.h"

enum { LEAST = 32768 }; /* multiplications from which a call and the conversions are faster (measured: f8e4m3fn of 32 x 32 x 32 1.8 us as text, 1.2) */

static bool is_byte(Type t)
{
    return type_is_float(t) && type_bits(t) == 8 && t != TYPE_F8E8M0FNU; /* whose powers reach as far as those of f32 */
}

/* Sets t to what has the values of both; false: there is nothing, or neither is of a byte. */
static bool wide_type(const Shape *lhs, const Shape *rhs, Type *t)
{
    const Type x = lhs->type, y = rhs->type;
    *t = x == TYPE_F16 || y == TYPE_F16 ? TYPE_F16 : TYPE_BF16;
    return (is_byte(x) || x == *t) && (is_byte(y) || y == *t) && (is_byte(x) || is_byte(y));
}

/* The type in which the dot is computed, of which its own is made in one rounding. */
static Type result_type(const Inst *dot, Type operands)
{
    const Type t = dot->shape->type;
    return t == operands || !type_is_float(t) || type_bits(t) > 32 ? t : TYPE_F32;
}

bool dot_widens(const Inst *dot)
{
    DotCall d;
    if (dot->op != OP_DOT || dot->n_operands != 2 || inst_attr(dot, ATTR_SPARSITY_CONFIG) || !shape_is_array(dot->shape))
        return false;
    Arena       *a = arena_new();
    const Shape *lhs = inst_operand(dot, 0)->shape, *rhs = inst_operand(dot, 1)->shape;
    Type         t;
    const bool   called = wide_type(lhs, rhs, &t) && dot_call(dot, shape_with_type(a, lhs, t), shape_with_type(a, rhs, t), shape_with_type(a, dot->shape, result_type(dot, t)), &d);
    arena_free(a);
    return called && (double)d.m * (double)d.n * (double)d.k >= LEAST;
}

static Inst *converted(Inst *at, Inst *x, Type t)
{
    return x->shape->type == t ? x : inst_new(at->comp, at, OP_CONVERT, shape_with_type(at->comp->module->arena, x->shape, t), 1, &x, NULL);
}

Inst *dot_widened(Inst *at, const Inst *dot, Inst *const *operands)
{
    Type t;
    wide_type(operands[0]->shape, operands[1]->shape, &t);
    Inst *wide[] = { converted(at, operands[0], t), converted(at, operands[1], t) };
    Inst *x = inst_clone_into(at->comp, at, dot, 2, wide);
    x->shape = shape_with_type(at->comp->module->arena, dot->shape, result_type(dot, t));
    return converted(at, x, dot->shape->type);
}

void expand_narrow_dot(Inst *i)
{
    inst_replace(i, dot_widened(i, i, (Inst *[]){ inst_operand(i, 0), inst_operand(i, 1) }));
    inst_delete(i);
}
