/* Rules of algsimp about arithmetic of several instructions: signs, constants, strength, maxima. As in algsimp_value.c what holds for floats holds
 * for every value of them, unless the row says that the result may be rounded otherwise. */
#include "config.h"

#include "passes/algsimp.h"

#include <math.h>

#include "ir/numeric.h"

static Inst *binary(Simp *s, Op op, Inst *x, Inst *y)
{
    return simp_new(s, op, s->at->shape, 2, (Inst *[]){x, y});
}

/* What a - is in front of, NULL when there is none or when it also has another type. */
static Inst *negated(const Inst *i)
{
    return i->op == OP_NEGATE && shape_equal(inst_operand(i, 0)->shape, i->shape) ? inst_operand(i, 0) : NULL;
}

/* ---- signs ---- */

/* x + -y is x - y by definition, zeros included. */
Inst *rule_add_negate(Simp *s, Inst *i)
{
    for (int32_t k = 1; k >= 0; k--) {
        Inst *y = negated(inst_operand(i, k));
        if (y)
            return binary(s, OP_SUBTRACT, inst_operand(i, 1 - k), y);
    }
    return NULL;
}

Inst *rule_subtract_negate(Simp *s, Inst *i)
{
    Inst *y = negated(inst_operand(i, 1));
    return y ? binary(s, OP_ADD, inst_operand(i, 0), y) : NULL;
}

Inst *rule_multiply_negates(Simp *s, Inst *i)
{
    Inst *x = negated(inst_operand(i, 0)), *y = negated(inst_operand(i, 1));
    return x && y ? binary(s, OP_MULTIPLY, x, y) : NULL;
}

/* The product or quotient x op y of (-x) op y or x op (-y), where nobody else needs it; rounding does not look at signs. Integers divide
 * otherwise: the smallest one has no opposite. */
static Inst *without_sign(Simp *s, const Inst *m)
{
    if ((m->op != OP_MULTIPLY && m->op != OP_DIVIDE) || m->n_uses != 1 || !shape_equal(m->shape, s->at->shape))
        return NULL;
    if (m->op == OP_DIVIDE && !type_is_float(m->shape->type))
        return NULL;
    for (int32_t k = 0; k < 2; k++) {
        Inst *x = negated(inst_operand(m, k));
        if (x)
            return k == 0 ? binary(s, m->op, x, inst_operand(m, 1)) : binary(s, m->op, inst_operand(m, 0), x);
    }
    return NULL;
}

Inst *rule_add_product_negate(Simp *s, Inst *i)
{
    if (type_is_complex(i->shape->type))
        return NULL;
    for (int32_t k = 1; k >= 0; k--) {
        Inst *product = without_sign(s, inst_operand(i, k));
        if (product)
            return binary(s, OP_SUBTRACT, inst_operand(i, 1 - k), product);
    }
    return NULL;
}

Inst *rule_subtract_product_negate(Simp *s, Inst *i)
{
    Inst *product = type_is_complex(i->shape->type) ? NULL : without_sign(s, inst_operand(i, 1));
    return product ? binary(s, OP_ADD, inst_operand(i, 0), product) : NULL;
}

Inst *rule_negate_product_negate(Simp *s, Inst *i)
{
    return type_is_complex(i->shape->type) ? NULL : without_sign(s, inst_operand(i, 0));
}

/* ---- constants ---- */

static Inst *splat_f64(Simp *s, const Shape *shape, double v)
{
    return simp_splat_literal(s, shape, literal_from_f64(shape->type, v));
}

/* op(op(x, c), d): gives x, and the literals of c and d. */
static Inst *two_constants(const Inst *i, const Literal **c, const Literal **d)
{
    const Inst *inner = inst_operand(i, 0);
    *d = splat_value(inst_operand(i, 1));
    if (!*d || inner->op != i->op || !shape_equal(inner->shape, i->shape))
        return NULL;
    *c = splat_value(inst_operand(inner, 1));
    Type t = i->shape->type;
    return *c && (*c)->type == t && (*d)->type == t && inst_operand(inner, 0)->shape->type == t ? inst_operand(inner, 0) : NULL;
}

/* A constant as the first operand of what commutes. */
Inst *rule_constant_right(Simp *s, Inst *i)
{
    if (i->n_operands != 2 || !op_has(i->op, F_COMMUTES) || !splat_value(inst_operand(i, 0)) || splat_value(inst_operand(i, 1)))
        return NULL;
    if (i->op == OP_MAXIMUM || i->op == OP_MINIMUM) /* of two zeros or NaNs the order decides */
        return NULL;
    return simp_like(s, i, i->shape, (Inst *[]){inst_operand(i, 1), inst_operand(i, 0)});
}

Inst *rule_add_constants(Simp *s, Inst *i)
{
    const Literal *c, *d;
    Inst          *x = type_is_int(i->shape->type) ? two_constants(i, &c, &d) : NULL;
    if (!x)
        return NULL;
    uint64_t sum = (uint64_t)literal_get_s64(c, 0) + (uint64_t)literal_get_s64(d, 0);
    return binary(s, OP_ADD, x, simp_splat(s, i->shape, int_wrap(i->shape->type, (int64_t)sum)));
}

Inst *rule_multiply_constants(Simp *s, Inst *i)
{
    const Literal *c, *d;
    Inst          *x = type_is_int(i->shape->type) ? two_constants(i, &c, &d) : NULL;
    if (!x)
        return NULL;
    uint64_t product = (uint64_t)literal_get_s64(c, 0) * (uint64_t)literal_get_s64(d, 0);
    return binary(s, OP_MULTIPLY, x, simp_splat(s, i->shape, int_wrap(i->shape->type, (int64_t)product)));
}

/* Neither is near the ends of the range of f32, the narrowest type that rules round in. */
static bool is_moderate(double c)
{
    return fabs(c) > 0x1p-100 && fabs(c) < 0x1p100;
}

static bool is_wide_float(Type t)
{
    return t == TYPE_F32 || t == TYPE_F64;
}

/* (x * c) * d where the first product overflows or vanishes no sooner than both. */
Inst *rule_multiply_float_constants(Simp *s, Inst *i)
{
    const Literal *c, *d;
    Inst          *x = is_wide_float(i->shape->type) ? two_constants(i, &c, &d) : NULL;
    if (!x || inst_operand(i, 0)->n_uses != 1)
        return NULL;
    double a = literal_get_f64(c, 0), b = literal_get_f64(d, 0);
    if (!is_moderate(a) || !is_moderate(b) || !is_moderate(a * b) || (fabs(a) < 1) != (fabs(b) < 1))
        return NULL;
    return binary(s, OP_MULTIPLY, x, splat_f64(s, i->shape, a * b));
}

/* ---- division ---- */

static bool is_power_of_two(double c)
{
    int e;
    return c != 0 && isfinite(c) && fabs(frexp(c, &e)) == 0.5;
}

/* x / c as x * (1 / c), in the types whose 1 / c is a normal number again. */
static Inst *times_reciprocal(Simp *s, const Inst *i, double c)
{
    return binary(s, OP_MULTIPLY, inst_operand(i, 0), splat_f64(s, i->shape, 1 / c));
}

static bool known_divisor(const Inst *i, double *c)
{
    const Literal *l = type_is_float(i->shape->type) ? splat_value(inst_operand(i, 1)) : NULL;
    if (!l || l->type != i->shape->type || splat_value(inst_operand(i, 0)))
        return false;
    *c = literal_get_f64(l, 0);
    return true;
}

/* Both are the exact quotient, rounded once. bf16 and wider have 2^-100, f16 has 2^-14. */
Inst *rule_divide_power_of_two(Simp *s, Inst *i)
{
    double c, most = i->shape->type == TYPE_F16 ? 0x1p14 : 0x1p100;
    if (!known_divisor(i, &c) || !is_power_of_two(c) || fabs(c) > most || fabs(c) < 1 / most)
        return NULL;
    return is_wide_float(i->shape->type) || i->shape->type == TYPE_F16 || i->shape->type == TYPE_BF16 ? times_reciprocal(s, i, c) : NULL;
}

Inst *rule_divide_constant(Simp *s, Inst *i)
{
    double c;
    return is_wide_float(i->shape->type) && known_divisor(i, &c) && is_moderate(c) ? times_reciprocal(s, i, c) : NULL;
}

/* 2^k as a positive integer of i's type, with its k. */
static bool int_power_of_two(const Inst *i, int64_t *k, int64_t *value)
{
    const Literal *l = type_is_int(i->shape->type) ? splat_value(i) : NULL;
    if (!l || l->type != i->shape->type || literal_get_s64(l, 0) <= 0)
        return false;
    *value = literal_get_s64(l, 0);
    *k = __builtin_ctzll((uint64_t)*value);
    return (*value & (*value - 1)) == 0;
}

Inst *rule_divide_shift(Simp *s, Inst *i)
{
    int64_t k, value;
    if (!int_power_of_two(inst_operand(i, 1), &k, &value) || !simp_non_negative(inst_operand(i, 0)))
        return NULL;
    return binary(s, OP_SHIFT_RIGHT_LOGICAL, inst_operand(i, 0), simp_splat(s, i->shape, k));
}

Inst *rule_remainder_and(Simp *s, Inst *i)
{
    int64_t k, value;
    if (!int_power_of_two(inst_operand(i, 1), &k, &value) || !simp_non_negative(inst_operand(i, 0)))
        return NULL;
    return binary(s, OP_AND, inst_operand(i, 0), simp_splat(s, i->shape, value - 1));
}

/* What is left after dividing by y is smaller than y, with the same sign as before. */
Inst *rule_remainder_remainder(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    return inner->op == OP_REMAINDER && inst_operand(inner, 1) == inst_operand(i, 1) ? simp_same(s, inner) : NULL;
}

/* The largest value of an iota that may lie below broadcasts, reshapes and transposes; -1: it is none. */
static int64_t iota_last(const Inst *i)
{
    while (i->op == OP_BROADCAST || i->op == OP_RESHAPE || i->op == OP_TRANSPOSE)
        i = inst_operand(i, 0);
    if (i->op != OP_IOTA || !type_is_int(i->shape->type))
        return -1;
    int64_t last = i->shape->dims[inst_int(i, ATTR_IOTA_DIMENSION, 0)] - 1;
    return int_wrap(i->shape->type, last) == last ? last : -1;
}

Inst *rule_remainder_iota(Simp *s, Inst *i)
{
    const Literal *n = splat_value(inst_operand(i, 1));
    int64_t        last = n && n->type == i->shape->type && type_is_int(i->shape->type) ? iota_last(inst_operand(i, 0)) : -1;
    return last >= 0 && literal_get_s64(n, 0) > last ? simp_same(s, inst_operand(i, 0)) : NULL;
}

/* (iota + m) % n -> iota % n for a multiple m of n, as long as the sum does not wrap around. */
Inst *rule_remainder_shifted(Simp *s, Inst *i)
{
    const Inst    *sum = inst_operand(i, 0);
    const Literal *n = splat_value(inst_operand(i, 1)), *m = sum->op == OP_ADD ? splat_value(inst_operand(sum, 1)) : NULL;
    Type           t = i->shape->type;
    int64_t        last = m && n && n->type == t && m->type == t && type_is_int(t) ? iota_last(inst_operand(sum, 0)) : -1, most;
    if (last < 0 || literal_get_s64(n, 0) <= 0 || literal_get_s64(m, 0) <= 0 || literal_get_s64(m, 0) % literal_get_s64(n, 0) ||
        !size_add(last, literal_get_s64(m, 0), &most) || int_wrap(t, most) != most)
        return NULL;
    return binary(s, OP_REMAINDER, inst_operand(sum, 0), inst_operand(i, 1));
}

/* ---- power ---- */

/* x^3 -> x * (x * x), x^-1 -> 1 / x. */
Inst *rule_power_known(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0), *e = inst_operand(i, 1);
    if (!is_wide_float(i->shape->type))
        return NULL;
    if (splat_is(e, 3))
        return binary(s, OP_MULTIPLY, x, binary(s, OP_MULTIPLY, x, x));
    return splat_is(e, -1) ? binary(s, OP_DIVIDE, simp_splat(s, i->shape, 1), x) : NULL;
}

/* Of what is never negative nor -0: pow(-0, 0.5) is 0. */
Inst *rule_power_half(Simp *s, Inst *i)
{
    Inst          *x = inst_operand(i, 0);
    const Literal *e = is_wide_float(i->shape->type) ? splat_value(inst_operand(i, 1)) : NULL;
    return e && literal_get_f64(e, 0) == 0.5 && simp_non_negative(x) ? simp_new(s, OP_SQRT, i->shape, 1, &x) : NULL;
}

/* ---- maxima, minima ---- */

/* Whether no value is above (sign 1) or below (sign -1) c. */
static bool is_extreme(const Inst *i, int sign)
{
    const Literal *l = splat_value(i);
    Type           t = i->shape->type;
    if (!l || l->type != t)
        return false;
    if (type_is_float(t))
        return (is_wide_float(t) || t == TYPE_F16 || t == TYPE_BF16) && literal_get_f64(l, 0) == sign * (double)INFINITY;
    if (!type_is_int(t))
        return false;
    int64_t v = literal_get_s64(l, 0);
    int     bits = type_bits(t);
    if (type_is_unsigned_int(t))
        return v == (sign > 0 ? int_wrap(t, -1) : 0);
    return v == (sign > 0 ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1) : (int64_t)(UINT64_MAX << (bits - 1)));
}

/* max(x, -inf) is x, NaN too. */
static Inst *without_extreme(Simp *s, const Inst *i, int sign)
{
    for (int32_t k = 1; k >= 0; k--)
        if (is_extreme(inst_operand(i, k), sign))
            return simp_same(s, inst_operand(i, 1 - k));
    return NULL;
}

Inst *rule_maximum_lowest(Simp *s, Inst *i)
{
    return without_extreme(s, i, -1);
}

Inst *rule_minimum_highest(Simp *s, Inst *i)
{
    return without_extreme(s, i, 1);
}

/* max(max(x, y), y) and so on: the inner one, as long as of two equal values the same one is taken. */
static Inst *nested(Simp *s, const Inst *i)
{
    Inst *a = inst_operand(i, 0), *b = inst_operand(i, 1);
    if (a->op == i->op && (inst_operand(a, 0) == b || inst_operand(a, 1) == b))
        return simp_same(s, a);
    if (b->op != i->op || !shape_equal(b->shape, i->shape))
        return NULL;
    if (inst_operand(b, 0) == a)
        return b;
    return inst_operand(b, 1) == a && !type_is_float(i->shape->type) ? b : NULL;
}

Inst *rule_maximum_maximum(Simp *s, Inst *i)
{
    return nested(s, i);
}

Inst *rule_minimum_minimum(Simp *s, Inst *i)
{
    return nested(s, i);
}

/* ---- never negative ---- */

enum { FACT_DEPTH = 6 };

static bool non_negative(const Inst *i, int depth);

static bool all_non_negative(const Inst *i, int32_t from, int depth)
{
    for (int32_t k = from; k < i->n_operands; k++)
        if (!non_negative(inst_operand(i, k), depth))
            return false;
    return true;
}

static bool constant_non_negative(const Inst *i)
{
    const Literal *l = splat_value(i);
    if (!l)
        return false;
    return type_is_float(l->type) ? literal_get_f64(l, 0) >= 0 && !signbit(literal_get_f64(l, 0)) : literal_get_s64(l, 0) >= 0;
}

/* A signed integer that the type cannot hold comes out as another one. */
static bool convert_non_negative(const Inst *i, int depth)
{
    const Inst *x = inst_operand(i, 0);
    Type        from = x->shape->type, to = i->shape->type;
    if (type_is_int(from) && type_is_int(to) && type_bits(to) < type_bits(from) + (type_is_unsigned_int(from) ? 1 : 0))
        return false;
    return non_negative(x, depth - 1);
}

/* No element is negative or -0; NaN may be. */
static bool non_negative(const Inst *i, int depth)
{
    Type t = i->shape->type;
    if (type_is_unsigned_int(t) || t == TYPE_PRED)
        return true;
    if ((!type_is_int(t) && !type_is_float(t)) || depth == 0)
        return false;
    switch (i->op) {
    case OP_CONSTANT:
        return constant_non_negative(i);
    case OP_IOTA:
        return type_is_float(t) || iota_last(i) >= 0;
    case OP_ABS:
        return type_is_float(t);
    case OP_EXPONENTIAL: case OP_EXP2: case OP_LOGISTIC:
        return true;
    case OP_MULTIPLY:
        return type_is_float(t) && (inst_operand(i, 0) == inst_operand(i, 1) || all_non_negative(i, 0, depth - 1));
    case OP_AND: case OP_REMAINDER: case OP_SHIFT_RIGHT_ARITHMETIC:
        return type_is_int(t) && non_negative(inst_operand(i, 0), depth - 1);
    case OP_MINIMUM:
        return all_non_negative(i, 0, depth - 1);
    case OP_ADD: case OP_DIVIDE:
        return type_is_float(t) && all_non_negative(i, 0, depth - 1);
    case OP_MAXIMUM:
        return type_is_int(t) ? non_negative(inst_operand(i, 0), depth - 1) || non_negative(inst_operand(i, 1), depth - 1)
                              : all_non_negative(i, 0, depth - 1);
    case OP_CLAMP:
        return type_is_int(t) && non_negative(inst_operand(i, 0), depth - 1) && non_negative(inst_operand(i, 2), depth - 1);
    case OP_SELECT:
        return all_non_negative(i, 1, depth - 1);
    case OP_BROADCAST: case OP_RESHAPE: case OP_TRANSPOSE: case OP_SLICE: case OP_REVERSE: case OP_COPY: case OP_SQRT: case OP_FLOOR: case OP_CEIL:
    case OP_ROUND_NEAREST_AFZ: case OP_ROUND_NEAREST_EVEN:
        return inst_operand(i, 0)->shape->type == t && non_negative(inst_operand(i, 0), depth - 1);
    case OP_CONVERT:
        return convert_non_negative(i, depth);
    default:
        return false;
    }
}

bool simp_non_negative(const Inst *i)
{
    return non_negative(i, FACT_DEPTH);
}
