/* Rules of algsimp about values: arithmetic, comparisons, conversions. What holds for floats holds for every value of them: NaN,
 * infinities, both zeros. x + 0 is no rule for floats, since -0 + 0 is 0. */
#include "config.h"

#include "passes/algsimp.h"

#include <string.h>

#include "ir/numeric.h"

static bool is_exact_type(Type t) /* x = x, x - x = 0, ... */
{
    return type_is_int(t) || t == TYPE_PRED;
}

static Inst *other_than(const Inst *i, bool (*is)(const Inst *))
{
    for (int32_t k = 1; k >= 0; k--)
        if (is(inst_operand(i, k)))
            return inst_operand(i, 1 - k);
    return NULL;
}

static bool is_zero(const Inst *i)
{
    return splat_is(i, 0);
}

static bool is_one(const Inst *i)
{
    return splat_is(i, 1);
}

static bool is_int_zero(const Inst *i)
{
    return is_exact_type(i->shape->type) && is_zero(i);
}

/* true, or every bit set */
static bool is_all_ones(const Inst *i)
{
    Type t = i->shape->type;
    if (t == TYPE_PRED)
        return splat_is(i, 1);
    return type_is_int(t) && splat_is(i, int_wrap(t, -1));
}

static bool is_neutral_of_add(const Inst *i)
{
    return is_int_zero(i) || splat_is_minus_zero(i);
}

static Inst *same_or_null(Simp *s, Inst *x)
{
    return x ? simp_same(s, x) : NULL;
}

/* The operand that is the known value itself, as the result. */
static Inst *absorb(Simp *s, const Inst *i, bool (*is)(const Inst *))
{
    Inst *x = other_than(i, is);
    return x ? simp_same(s, inst_operand(i, inst_operand(i, 0) == x ? 1 : 0)) : NULL;
}

static Inst *self(Simp *s, const Inst *i)
{
    return inst_operand(i, 0) == inst_operand(i, 1) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

static Inst *zero_of_self(Simp *s, const Inst *i)
{
    return inst_operand(i, 0) == inst_operand(i, 1) && is_exact_type(i->shape->type) ? simp_splat(s, i->shape, 0) : NULL;
}

/* f(f(x)) */
static Inst *twice(const Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    return inner->op == i->op ? inst_operand(inner, 0) : NULL;
}

Inst *rule_add_zero(Simp *s, Inst *i)
{
    return same_or_null(s, other_than(i, is_neutral_of_add));
}

Inst *rule_subtract_zero(Simp *s, Inst *i)
{
    return is_zero(inst_operand(i, 1)) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

Inst *rule_subtract_self(Simp *s, Inst *i)
{
    return zero_of_self(s, i);
}

Inst *rule_multiply_one(Simp *s, Inst *i)
{
    return same_or_null(s, other_than(i, is_one));
}

Inst *rule_multiply_zero(Simp *s, Inst *i)
{
    return absorb(s, i, is_int_zero);
}

Inst *rule_divide_one(Simp *s, Inst *i)
{
    return is_one(inst_operand(i, 1)) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

/* x * x is rounded once, as no power function is better. */
Inst *rule_power_small(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0), *e = inst_operand(i, 1);
    if (splat_is(e, 0))
        return simp_splat(s, i->shape, 1);
    if (splat_is(e, 1))
        return simp_same(s, x);
    Inst *both[] = {x, x};
    return splat_is(e, 2) ? simp_new(s, OP_MULTIPLY, i->shape, 2, both) : NULL;
}

Inst *rule_and_known(Simp *s, Inst *i)
{
    Inst *x = absorb(s, i, is_int_zero);
    if (!x)
        x = same_or_null(s, other_than(i, is_all_ones));
    return x ? x : self(s, i);
}

Inst *rule_or_known(Simp *s, Inst *i)
{
    Inst *x = absorb(s, i, is_all_ones);
    if (!x)
        x = same_or_null(s, other_than(i, is_int_zero));
    return x ? x : self(s, i);
}

Inst *rule_xor_known(Simp *s, Inst *i)
{
    Inst *x = same_or_null(s, other_than(i, is_int_zero));
    return x ? x : zero_of_self(s, i);
}

static Inst *shift_by_zero(Simp *s, const Inst *i)
{
    return is_int_zero(inst_operand(i, 1)) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

Inst *rule_shift_left_zero(Simp *s, Inst *i)
{
    return shift_by_zero(s, i);
}

Inst *rule_shift_right_zero(Simp *s, Inst *i)
{
    return shift_by_zero(s, i);
}

Inst *rule_shift_right_a_zero(Simp *s, Inst *i)
{
    return shift_by_zero(s, i);
}

Inst *rule_maximum_self(Simp *s, Inst *i)
{
    return self(s, i);
}

Inst *rule_minimum_self(Simp *s, Inst *i)
{
    return self(s, i);
}

Inst *rule_negate_negate(Simp *s, Inst *i)
{
    return same_or_null(s, twice(i));
}

Inst *rule_not_not(Simp *s, Inst *i)
{
    return same_or_null(s, twice(i));
}

Inst *rule_abs_abs(Simp *s, Inst *i)
{
    return inst_operand(i, 0)->op == OP_ABS ? simp_same(s, inst_operand(i, 0)) : NULL;
}

/* ---- complex ---- */

Inst *rule_real_complex(Simp *s, Inst *i)
{
    Inst *z = inst_operand(i, 0);
    return z->op == OP_COMPLEX ? simp_same(s, inst_operand(z, 0)) : NULL;
}

Inst *rule_imag_complex(Simp *s, Inst *i)
{
    Inst *z = inst_operand(i, 0);
    return z->op == OP_COMPLEX ? simp_same(s, inst_operand(z, 1)) : NULL;
}

Inst *rule_complex_parts(Simp *s, Inst *i)
{
    const Inst *re = inst_operand(i, 0), *im = inst_operand(i, 1);
    if (re->op != OP_REAL || im->op != OP_IMAG || inst_operand(re, 0) != inst_operand(im, 0))
        return NULL;
    return simp_same(s, inst_operand(re, 0));
}

/* ---- convert ---- */

Inst *rule_convert_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

static bool exact_float_to_float(const TypeInfo *a, const TypeInfo *b)
{
    /* Every format up to 16 bits has its finite values, subnormals and specials inside f32, and f32 inside f64. Between small
     * formats the specials differ, so only these are used. */
    return (b->cls == CLASS_FLOAT && b->bits == 64) || (b->cls == CLASS_FLOAT && b->bits == 32 && a->bits <= 16);
}

static bool exact_int_to_int(const TypeInfo *a, const TypeInfo *b)
{
    if (a->cls == CLASS_BOOLEAN)
        return b->cls == CLASS_UNSIGNED || (b->cls == CLASS_SIGNED && b->bits > 1);
    if (a->cls == b->cls)
        return b->bits >= a->bits;
    return a->cls == CLASS_UNSIGNED && b->cls == CLASS_SIGNED && b->bits > a->bits;
}

/* Whether every value of a is one of b, so that converting on from b is converting from a. */
static bool is_exact(Type from, Type to)
{
    const TypeInfo *a = &type_info[from], *b = &type_info[to];
    bool            whole_a = is_exact_type(from), whole_b = type_is_int(to);
    if (whole_a && whole_b)
        return exact_int_to_int(a, b);
    if (type_is_float(from) && type_is_float(to))
        return exact_float_to_float(a, b);
    if (whole_a && type_is_float(to)) /* the significand holds all digits; narrow floats are left alone */
        return b->bits >= 32 && (a->cls == CLASS_BOOLEAN ? 1 : a->bits) <= b->man + 1;
    return false;
}

/* From an integer through a float to an integer saturates where the direct way wraps; pred asks for "not zero". */
Inst *rule_convert_convert(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_CONVERT)
        return NULL;
    Inst *x = inst_operand(inner, 0);
    Type  from = x->shape->type, mid = inner->shape->type, to = i->shape->type;
    if (!is_exact(from, mid) || (is_exact_type(from) && type_is_float(mid) && !type_is_float(to)))
        return NULL;
    if (is_exact_type(from) && type_is_float(mid) && type_is_float(to) && type_bits(to) < 32)
        return NULL; /* the direct way rounds through f32 as well, but not from f64 */
    return from == to ? simp_same(s, x) : simp_new(s, OP_CONVERT, i->shape, 1, &x);
}

/* ---- compare, select ---- */

Inst *rule_compare_self(Simp *s, Inst *i)
{
    if (inst_operand(i, 0) != inst_operand(i, 1) || !is_exact_type(inst_operand(i, 0)->shape->type))
        return NULL;
    Word w = inst_word(i, ATTR_DIRECTION);
    return simp_splat(s, i->shape, w == CMP_EQ || w == CMP_GE || w == CMP_LE);
}

Inst *rule_compare_pred(Simp *s, Inst *i)
{
    Word w = inst_word(i, ATTR_DIRECTION);
    if (inst_operand(i, 0)->shape->type != TYPE_PRED || (w != CMP_EQ && w != CMP_NE))
        return NULL;
    return same_or_null(s, other_than(i, w == CMP_EQ ? is_one : is_zero));
}

Inst *rule_select_known(Simp *s, Inst *i)
{
    const Literal *p = splat_value(inst_operand(i, 0));
    return p ? simp_same(s, inst_operand(i, literal_get_s64(p, 0) ? 1 : 2)) : NULL;
}

Inst *rule_select_same(Simp *s, Inst *i)
{
    return inst_operand(i, 1) == inst_operand(i, 2) ? simp_same(s, inst_operand(i, 1)) : NULL;
}

Inst *rule_select_not(Simp *s, Inst *i)
{
    const Inst *p = inst_operand(i, 0);
    if (p->op != OP_NOT)
        return NULL;
    Inst *operands[] = {inst_operand(p, 0), inst_operand(i, 2), inst_operand(i, 1)};
    return simp_new(s, OP_SELECT, i->shape, 3, operands);
}

Inst *rule_select_pred(Simp *s, Inst *i)
{
    Inst *p = inst_operand(i, 0);
    if (i->shape->type != TYPE_PRED || !shape_equal(p->shape, i->shape))
        return NULL;
    if (is_one(inst_operand(i, 1)) && is_zero(inst_operand(i, 2)))
        return p;
    return is_zero(inst_operand(i, 1)) && is_one(inst_operand(i, 2)) ? simp_new(s, OP_NOT, i->shape, 1, &p) : NULL;
}

/* select(p > q, p, q) of preds, of which false is the smaller one: p or q, p and q, or one of them. */
Inst *rule_select_compare(Simp *s, Inst *i)
{
    const Inst *c = inst_operand(i, 0);
    Inst       *x = inst_operand(i, 1), *y = inst_operand(i, 2);
    if (c->op != OP_COMPARE || i->shape->type != TYPE_PRED || !shape_equal(x->shape, i->shape) || !shape_equal(y->shape, i->shape))
        return NULL;
    bool straight = inst_operand(c, 0) == x && inst_operand(c, 1) == y;
    if (!straight && (inst_operand(c, 0) != y || inst_operand(c, 1) != x))
        return NULL;
    Word w = inst_word(c, ATTR_DIRECTION);
    if (w == CMP_EQ || w == CMP_NE)
        return w == CMP_EQ ? y : x;
    bool larger = (w == CMP_GT || w == CMP_GE) == straight;
    return simp_new(s, larger ? OP_OR : OP_AND, i->shape, 2, (Inst *[]){x, y});
}

/* ---- constants ---- */

Inst *rule_constant_splat(Simp *s, Inst *i)
{
    const Literal *l = i->literal;
    if (!type_is_array(l->type) || l->elided || l->rank == 0 || l->count < 2 || !literal_all_equal_bits(l))
        return NULL;
    Literal *one = literal_new(l->type, 0, NULL);
    memcpy(one->data, l->data, (size_t)type_bytes(l->type));
    return simp_splat_literal(s, i->shape, one);
}

Inst *rule_iota_unit(Simp *s, Inst *i)
{
    return i->shape->dims[inst_int(i, ATTR_IOTA_DIMENSION, 0)] == 1 ? simp_splat(s, i->shape, 0) : NULL;
}

/* ---- real and imaginary parts of real numbers ---- */

Inst *rule_real_real(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_imag_real(Simp *s, Inst *i)
{
    return type_is_complex(inst_operand(i, 0)->shape->type) ? NULL : simp_splat(s, i->shape, 0);
}
