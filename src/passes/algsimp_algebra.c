/* Rules of algsimp about sums, products and functions of several instructions. Those of integers hold as integers wrap around; those of floats say in
 * their row what they change. */
#include "config.h"

#include "passes/algsimp.h"

#include <math.h>

#include "ir/numeric.h"

static Inst *unary(Simp *s, Op op, Inst *x)
{
    return simp_new(s, op, s->at->shape, 1, &x);
}

static Inst *binary(Simp *s, Op op, Inst *x, Inst *y)
{
    return simp_new(s, op, s->at->shape, 2, (Inst *[]){x, y});
}

/* i is op, of the type and sizes of what is being replaced. */
static bool is_like(const Simp *s, const Inst *i, Op op)
{
    return i->op == op && shape_equal(i->shape, s->at->shape);
}

static bool is_wide_float(const Inst *i)
{
    return i->shape->type == TYPE_F32 || i->shape->type == TYPE_F64;
}

static bool is_int(const Inst *i)
{
    return type_is_int(i->shape->type);
}

/* The value of all elements of an operand, which has the type of the result. */
static const Literal *known(const Simp *s, const Inst *i)
{
    const Literal *l = splat_value(i);
    return l && l->type == s->at->shape->type ? l : NULL;
}

/* ---- sums ---- */

Inst *rule_abs_non_negative(Simp *s, Inst *i)
{
    return simp_non_negative(inst_operand(i, 0)) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

/* c + d, of one sign: else x might be lost beside c, which is how floats are rounded on purpose. NULL: they are not, or there is no such number. */
static Inst *float_sum(Simp *s, const Inst *i, const Literal *c, const Literal *d)
{
    if (!is_wide_float(i) || !c || !d)
        return NULL;
    const double a = literal_get_f64(c, 0), b = literal_get_f64(d, 0), sum = i->shape->type == TYPE_F32 ? (double)(float)(a + b) : a + b;
    return isfinite(sum) && signbit(a) == signbit(b) ? simp_splat_literal(s, i->shape, literal_from_f64(i->shape->type, sum)) : NULL;
}

Inst *rule_add_float_constants(Simp *s, Inst *i)
{
    const Inst *inner = inst_operand(i, 0);
    Inst       *sum = is_like(s, inner, OP_ADD) && inner->n_uses == 1 ? float_sum(s, i, known(s, inst_operand(inner, 1)), known(s, inst_operand(i, 1))) : NULL;
    return sum ? binary(s, OP_ADD, inst_operand(inner, 0), sum) : NULL;
}

Inst *rule_subtract_float_constants(Simp *s, Inst *i)
{
    const Inst *inner = inst_operand(i, 0);
    Inst       *sum = is_like(s, inner, OP_SUBTRACT) && inner->n_uses == 1 ? float_sum(s, i, known(s, inst_operand(inner, 0)), known(s, inst_operand(i, 1))) : NULL;
    return sum ? binary(s, OP_SUBTRACT, sum, inst_operand(inner, 1)) : NULL;
}

/* (c - x) + d -> (c + d) - x */
Inst *rule_add_constant_subtract(Simp *s, Inst *i)
{
    const Inst    *inner = inst_operand(i, 0);
    const Literal *c = is_like(s, inner, OP_SUBTRACT) ? known(s, inst_operand(inner, 0)) : NULL, *d = known(s, inst_operand(i, 1));
    if (!is_int(i) || !c || !d)
        return NULL;
    uint64_t sum = (uint64_t)literal_get_s64(c, 0) + (uint64_t)literal_get_s64(d, 0);
    return binary(s, OP_SUBTRACT, simp_splat(s, i->shape, int_wrap(i->shape->type, (int64_t)sum)), inst_operand(inner, 1));
}

/* x + (y - x), (y - x) + x -> y */
Inst *rule_add_subtract(Simp *s, Inst *i)
{
    for (int32_t k = 0; is_int(i) && k < 2; k++) {
        const Inst *difference = inst_operand(i, k);
        if (is_like(s, difference, OP_SUBTRACT) && inst_operand(difference, 1) == inst_operand(i, 1 - k))
            return simp_same(s, inst_operand(difference, 0));
    }
    return NULL;
}

/* x - (x - y) -> y, x - (x + y) -> -y, (x + y) - x -> y, (x - y) - x -> -y */
Inst *rule_subtract_sum(Simp *s, Inst *i)
{
    Inst *a = inst_operand(i, 0), *b = inst_operand(i, 1);
    if (!is_int(i))
        return NULL;
    if (is_like(s, b, OP_SUBTRACT) && inst_operand(b, 0) == a)
        return simp_same(s, inst_operand(b, 1));
    if (is_like(s, a, OP_SUBTRACT) && inst_operand(a, 0) == b)
        return unary(s, OP_NEGATE, inst_operand(a, 1));
    for (int32_t k = 0; k < 2; k++) {
        if (is_like(s, b, OP_ADD) && inst_operand(b, k) == a)
            return unary(s, OP_NEGATE, inst_operand(b, 1 - k));
        if (is_like(s, a, OP_ADD) && inst_operand(a, k) == b)
            return simp_same(s, inst_operand(a, 1 - k));
    }
    return NULL;
}

/* x - c is x + -c by definition, zeros included: one form, whose constants add up. */
Inst *rule_subtract_constant(Simp *s, Inst *i)
{
    const Literal *c = known(s, inst_operand(i, 1));
    Type           t = i->shape->type;
    if (!c || (!type_is_int(t) && !is_wide_float(i)) || splat_value(inst_operand(i, 0)))
        return NULL;
    Literal *opposite = type_is_int(t) ? literal_from_s64(t, int_wrap(t, (int64_t)(0 - (uint64_t)literal_get_s64(c, 0))))
                                       : literal_from_f64(t, -literal_get_f64(c, 0));
    return binary(s, OP_ADD, inst_operand(i, 0), simp_splat_literal(s, i->shape, opposite));
}

/* a * c + b * c -> (a + b) * c, where nobody else needs the products. */
static Inst *one_product(Simp *s, const Inst *i)
{
    const Inst *x = inst_operand(i, 0), *y = inst_operand(i, 1);
    if (!is_like(s, x, OP_MULTIPLY) || !is_like(s, y, OP_MULTIPLY) || x->n_uses != 1 || y->n_uses != 1)
        return NULL;
    for (int32_t k = 1; k >= 0; k--)
        for (int32_t j = 1; j >= 0; j--)
            if (inst_operand(x, k) == inst_operand(y, j)) {
                Inst *common = inst_operand(x, k);
                return binary(s, OP_MULTIPLY, binary(s, i->op, inst_operand(x, 1 - k), inst_operand(y, 1 - j)), common);
            }
    return NULL;
}

Inst *rule_add_products(Simp *s, Inst *i)
{
    return is_int(i) ? one_product(s, i) : NULL;
}

/* Times a power of two nothing is rounded, but a + b can be large where a * c + b * c is not. */
Inst *rule_add_float_products(Simp *s, Inst *i)
{
    const Inst    *x = inst_operand(i, 0);
    const Literal *c = is_like(s, x, OP_MULTIPLY) ? known(s, inst_operand(x, 1)) : NULL;
    int            e;
    if (!is_wide_float(i) || !c || fabs(frexp(literal_get_f64(c, 0), &e)) != 0.5)
        return NULL;
    return one_product(s, i);
}

/* ---- comparisons ---- */

/* The bound c of x < c or c > x; x goes to *of. */
static const Literal *upper_bound(const Inst *i, Inst **of)
{
    if (i->op != OP_COMPARE || !type_is_int(inst_operand(i, 0)->shape->type))
        return NULL;
    Word w = inst_word(i, ATTR_DIRECTION);
    if (w != CMP_LT && w != CMP_GT)
        return NULL;
    *of = inst_operand(i, w == CMP_LT ? 0 : 1);
    const Literal *c = splat_value(inst_operand(i, w == CMP_LT ? 1 : 0));
    return c && c->type == (*of)->shape->type ? c : NULL;
}

/* (x < c) and (x < d) -> x < min(c, d): the one of the two that says more. */
Inst *rule_and_less(Simp *s, Inst *i)
{
    Inst          *x, *y;
    const Literal *c = upper_bound(inst_operand(i, 0), &x), *d = upper_bound(inst_operand(i, 1), &y);
    if (!c || !d || x != y)
        return NULL;
    bool is_unsigned = type_is_unsigned_int(c->type);
    int64_t a = literal_get_s64(c, 0), b = literal_get_s64(d, 0);
    bool    first = is_unsigned ? (uint64_t)a <= (uint64_t)b : a <= b;
    return simp_same(s, inst_operand(i, first ? 0 : 1));
}

static bool compares_same(const Inst *a, const Inst *b)
{
    const Inst *x = inst_operand(a, 0), *y = inst_operand(a, 1), *p = inst_operand(b, 0), *q = inst_operand(b, 1);
    return (x == p && y == q) || (x == q && y == p);
}

/* x < y and x != y: what is below is no equal. Of floats NaN is neither below nor equal; in the total order -0 is below 0, so there all of it has to be in one order. */
Inst *rule_and_unequal(Simp *s, Inst *i)
{
    for (int32_t k = 0; k < 2; k++) {
        Inst *less = inst_operand(i, k), *unequal = inst_operand(i, 1 - k);
        if (less->op != OP_COMPARE || unequal->op != OP_COMPARE || inst_word(unequal, ATTR_DIRECTION) != CMP_NE || !compares_same(less, unequal) ||
            compare_is_total(less) != compare_is_total(unequal))
            continue;
        Word w = inst_word(less, ATTR_DIRECTION);
        if (w == CMP_LT || w == CMP_GT)
            return simp_same(s, less);
    }
    return NULL;
}

static Word mirrored(Word w)
{
    switch (w) {
    case CMP_LT: return CMP_GT;
    case CMP_GT: return CMP_LT;
    case CMP_LE: return CMP_GE;
    case CMP_GE: return CMP_LE;
    default: return w;
    }
}

/* max(a, b) > a -> b > a, a > min(a, b) -> a > b, and the same written from the other side. With NaN both are false. */
Inst *rule_compare_extreme(Simp *s, Inst *i)
{
    if (compare_is_total(i) && type_is_float(inst_operand(i, 0)->shape->type))
        return NULL;
    Word  w = inst_word(i, ATTR_DIRECTION);
    Inst *large = inst_operand(i, w == CMP_GT ? 0 : 1), *small = inst_operand(i, w == CMP_GT ? 1 : 0);
    if (w != CMP_GT && w != CMP_LT)
        return NULL;
    for (int32_t k = 0; k < 2; k++) {
        Inst *operands[2] = {NULL, NULL};
        if (large->op == OP_MAXIMUM && inst_operand(large, k) == small)
            operands[0] = inst_operand(large, 1 - k), operands[1] = small;
        else if (small->op == OP_MINIMUM && inst_operand(small, k) == large)
            operands[0] = large, operands[1] = inst_operand(small, 1 - k);
        if (!operands[0] || !shape_equal(operands[0]->shape, operands[1]->shape))
            continue;
        Inst *c = simp_like(s, i, i->shape, operands);
        inst_set_word(c, ATTR_DIRECTION, w == CMP_GT ? w : mirrored(w));
        return c;
    }
    return NULL;
}

/* What comparison-expander and XLA make of a comparison in the total order, back again: sorts and their like know that one. */
Inst *rule_compare_keys(Simp *s, Inst *i)
{
    Inst *x = compare_key_float(inst_operand(i, 0)), *y = x ? compare_key_float(inst_operand(i, 1)) : NULL;
    if (!y || !shape_equal(x->shape, y->shape) || !shape_equal(shape_with_type(s->arena, x->shape, TYPE_PRED), i->shape))
        return NULL;
    Inst *c = simp_new(s, OP_COMPARE, i->shape, 2, (Inst *[]){x, y});
    inst_set_word(c, ATTR_DIRECTION, inst_word(i, ATTR_DIRECTION));
    inst_set_word(c, ATTR_TYPE, CMP_TYPE_TOTALORDER);
    return c;
}

/* ---- maxima, minima, clamps ---- */

Inst *rule_clamp_clamp(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 1);
    if (inner->op != OP_CLAMP || inst_operand(inner, 0) != inst_operand(i, 0) || inst_operand(inner, 2) != inst_operand(i, 2))
        return NULL;
    return simp_same(s, inner);
}

/* Known numbers lo < hi of the result's type; of floats no zero, whose sign the order of operands would decide. */
static bool is_range(const Simp *s, const Inst *lo, const Inst *hi)
{
    const Literal *l = known(s, lo), *h = known(s, hi);
    if (!l || !h || (!type_is_int(l->type) && !type_is_float(l->type)))
        return false;
    if (type_is_float(l->type))
        return literal_get_f64(l, 0) < literal_get_f64(h, 0) && literal_get_f64(l, 0) != 0 && literal_get_f64(h, 0) != 0;
    int64_t a = literal_get_s64(l, 0), b = literal_get_s64(h, 0);
    return type_is_unsigned_int(l->type) ? (uint64_t)a < (uint64_t)b : a < b;
}

/* max(lo, min(x, hi)) and min(hi, max(x, lo)); the outer one's known operand is `first` of the range when it is a maximum. */
static Inst *as_clamp(Simp *s, const Inst *i)
{
    Op other = i->op == OP_MAXIMUM ? OP_MINIMUM : OP_MAXIMUM;
    for (int32_t k = 0; k < 2; k++) {
        Inst *inner = inst_operand(i, k), *bound = inst_operand(i, 1 - k);
        if (!is_like(s, inner, other))
            continue;
        for (int32_t j = 0; j < 2; j++) {
            Inst *lo = i->op == OP_MAXIMUM ? bound : inst_operand(inner, j), *hi = i->op == OP_MAXIMUM ? inst_operand(inner, j) : bound;
            if (is_range(s, lo, hi) && shape_equal(lo->shape, hi->shape))
                return simp_new(s, OP_CLAMP, i->shape, 3, (Inst *[]){lo, inst_operand(inner, 1 - j), hi});
        }
    }
    return NULL;
}

Inst *rule_maximum_minimum(Simp *s, Inst *i)
{
    return as_clamp(s, i);
}

Inst *rule_minimum_maximum(Simp *s, Inst *i)
{
    return as_clamp(s, i);
}

/* max(lo, clamp(lo, x, hi)) */
Inst *rule_maximum_clamp(Simp *s, Inst *i)
{
    for (int32_t k = 0; k < 2; k++) {
        Inst *c = inst_operand(i, k);
        if (c->op == OP_CLAMP && (inst_operand(c, 0) == inst_operand(i, 1 - k) || simp_same_splat(inst_operand(c, 0), inst_operand(i, 1 - k))) &&
            is_range(s, inst_operand(c, 0), inst_operand(c, 2)))
            return simp_same(s, c);
    }
    return NULL;
}

/* max(f(x), f(y)) -> f(max(x, y)) where f rises. */
Inst *rule_maximum_monotone(Simp *s, Inst *i)
{
    const Inst *x = inst_operand(i, 0), *y = inst_operand(i, 1);
    if (x->op != y->op || (x->op != OP_CBRT && x->op != OP_ERF && x->op != OP_LOGISTIC && x->op != OP_TANH) || !is_wide_float(i) ||
        x->n_uses != 1 || y->n_uses != 1 || !shape_equal(x->shape, i->shape) || !shape_equal(inst_operand(x, 0)->shape, i->shape) ||
        !shape_equal(inst_operand(y, 0)->shape, i->shape))
        return NULL;
    Inst *most = binary(s, OP_MAXIMUM, inst_operand(x, 0), inst_operand(y, 0));
    return simp_like(s, x, i->shape, &most);
}

/* ---- products ---- */

/* |x| * |x| -> x * x */
Inst *rule_multiply_abs(Simp *s, Inst *i)
{
    const Inst *a = inst_operand(i, 0), *b = inst_operand(i, 1);
    if (a->op != OP_ABS || b->op != OP_ABS || inst_operand(a, 0) != inst_operand(b, 0) || !shape_equal(inst_operand(a, 0)->shape, i->shape))
        return NULL;
    return binary(s, OP_MULTIPLY, inst_operand(a, 0), inst_operand(a, 0));
}

/* (x * c) * (y * d) -> (x * y) * (c * d) */
static Inst *constants_together(Simp *s, const Inst *i)
{
    const Inst *x = inst_operand(i, 0), *y = inst_operand(i, 1);
    if (!is_like(s, x, OP_MULTIPLY) || !is_like(s, y, OP_MULTIPLY) || x->n_uses != 1 || y->n_uses != 1 || !known(s, inst_operand(x, 1)) ||
        !known(s, inst_operand(y, 1)))
        return NULL;
    return binary(s, OP_MULTIPLY, binary(s, OP_MULTIPLY, inst_operand(x, 0), inst_operand(y, 0)),
                  binary(s, OP_MULTIPLY, inst_operand(x, 1), inst_operand(y, 1)));
}

Inst *rule_multiply_products(Simp *s, Inst *i)
{
    return is_int(i) ? constants_together(s, i) : NULL;
}

Inst *rule_multiply_float_products(Simp *s, Inst *i)
{
    return is_wide_float(i) ? constants_together(s, i) : NULL;
}

/* (x * c) * broadcast(b) -> x * broadcast(b * c), for fewer products. */
Inst *rule_multiply_broadcast(Simp *s, Inst *i)
{
    for (int32_t k = 0; k < 2; k++) {
        const Inst *product = inst_operand(i, k), *b = inst_operand(i, 1 - k);
        if (!is_broadcast(b) || splat_value(b) || !is_like(s, product, OP_MULTIPLY) || product->n_uses != 1)
            continue;
        const Literal *c = known(s, inst_operand(product, 1));
        Inst          *small = inst_operand(b, 0);
        if (!c || (!is_int(i) && !is_wide_float(i)) || shape_count(small->shape) >= shape_count(i->shape))
            continue;
        Inst *scale = simp_new(s, OP_MULTIPLY, small->shape, 2, (Inst *[]){small, simp_splat_literal(s, small->shape, simp_scalar(c))});
        return binary(s, OP_MULTIPLY, inst_operand(product, 0), simp_broadcast(s, i->shape, scale, dimensions(b)));
    }
    return NULL;
}

/* sqrt(x) * sqrt(x) -> x, rsqrt(x) * rsqrt(x) -> 1 / x, where x is never negative: of others both are NaN. */
Inst *rule_multiply_roots(Simp *s, Inst *i)
{
    const Inst *r = inst_operand(i, 0);
    if (r != inst_operand(i, 1) || !is_wide_float(i) || (!is_like(s, r, OP_SQRT) && !is_like(s, r, OP_RSQRT)) ||
        !simp_non_negative(inst_operand(r, 0)))
        return NULL;
    Inst *x = inst_operand(r, 0);
    return r->op == OP_SQRT ? simp_same(s, x) : binary(s, OP_DIVIDE, simp_splat(s, i->shape, 1), x);
}

Inst *rule_multiply_exponentials(Simp *s, Inst *i)
{
    const Inst *a = inst_operand(i, 0), *b = inst_operand(i, 1);
    if (!is_wide_float(i) || !is_like(s, a, OP_EXPONENTIAL) || !is_like(s, b, OP_EXPONENTIAL) || a->n_uses > (a == b ? 2 : 1) ||
        b->n_uses > (a == b ? 2 : 1))
        return NULL;
    return unary(s, OP_EXPONENTIAL, binary(s, OP_ADD, inst_operand(a, 0), inst_operand(b, 0)));
}

/* ---- quotients ---- */

/* a / sqrt(b) -> a * rsqrt(b), a / rsqrt(b) -> a * sqrt(b): at zeros, infinities and below both sides agree. */
Inst *rule_divide_root(Simp *s, Inst *i)
{
    const Inst *r = inst_operand(i, 1);
    if (!is_wide_float(i) || (r->op != OP_SQRT && r->op != OP_RSQRT) || !shape_equal(r->shape, i->shape) || r->n_uses != 1)
        return NULL;
    return binary(s, OP_MULTIPLY, inst_operand(i, 0), unary(s, r->op == OP_SQRT ? OP_RSQRT : OP_SQRT, inst_operand(r, 0)));
}

/* a / exp(b) -> a * exp(-b), exp(a) / exp(b) -> exp(a - b) */
Inst *rule_divide_exponential(Simp *s, Inst *i)
{
    const Inst *a = inst_operand(i, 0), *b = inst_operand(i, 1);
    if (!is_wide_float(i) || !is_like(s, b, OP_EXPONENTIAL) || b->n_uses != 1)
        return NULL;
    if (is_like(s, a, OP_EXPONENTIAL) && a->n_uses == 1)
        return unary(s, OP_EXPONENTIAL, binary(s, OP_SUBTRACT, inst_operand(a, 0), inst_operand(b, 0)));
    return binary(s, OP_MULTIPLY, inst_operand(i, 0), unary(s, OP_EXPONENTIAL, unary(s, OP_NEGATE, inst_operand(b, 0))));
}

/* a / pow(b, c) -> a * pow(b, -c) */
Inst *rule_divide_power(Simp *s, Inst *i)
{
    const Inst *p = inst_operand(i, 1);
    if (!is_wide_float(i) || !is_like(s, p, OP_POWER) || p->n_uses != 1)
        return NULL;
    return binary(s, OP_MULTIPLY, inst_operand(i, 0), binary(s, OP_POWER, inst_operand(p, 0), unary(s, OP_NEGATE, inst_operand(p, 1))));
}

/* a / broadcast(b) -> a * broadcast(1 / b) */
Inst *rule_divide_broadcast(Simp *s, Inst *i)
{
    const Inst *b = inst_operand(i, 1);
    if (!is_wide_float(i) || !is_broadcast(b) || splat_value(b) || shape_count(inst_operand(b, 0)->shape) >= shape_count(i->shape))
        return NULL;
    Inst *x = inst_operand(b, 0);
    Inst *inverse = simp_new(s, OP_DIVIDE, x->shape, 2, (Inst *[]){simp_splat(s, x->shape, 1), x});
    return binary(s, OP_MULTIPLY, inst_operand(i, 0), simp_broadcast(s, i->shape, inverse, dimensions(b)));
}

/* Of two numbers there are two quotients for each element of y, of which a choice is little beside a division. */
Inst *rule_divide_choice(Simp *s, Inst *i)
{
    enum { FEWER = 8 };
    Inst *x = inst_operand(i, 0), *b = inst_operand(i, 1), *chosen[3];
    if (!is_wide_float(i) || x->op != OP_SELECT || x->shape->type != i->shape->type || !is_broadcast(b) || splat_value(b) || FEWER * shape_count(inst_operand(b, 0)->shape) > shape_count(i->shape))
        return NULL;
    chosen[0] = inst_operand(x, 0);
    for (int32_t k = 1; k <= 2; k++)
        if (!splat_value(inst_operand(x, k)) || inst_operand(x, k)->shape->type != i->shape->type)
            return NULL;
    for (int32_t k = 1; k <= 2; k++) {
        Inst *y = inst_operand(b, 0), *c = simp_splat_literal(s, y->shape, simp_scalar(splat_value(inst_operand(x, k))));
        chosen[k] = simp_broadcast(s, i->shape, simp_new(s, OP_DIVIDE, y->shape, 2, (Inst *[]){c, y}), dimensions(b));
    }
    return simp_new(s, OP_SELECT, i->shape, 3, chosen);
}

/* (a / b) / (c / d) -> (a * d) / (b * c), (a / b) / c -> a / (b * c), a / (b / c) -> (a * c) / b */
Inst *rule_divide_quotient(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0), *y = inst_operand(i, 1);
    bool  over = is_like(s, x, OP_DIVIDE), under = is_like(s, y, OP_DIVIDE);
    if (!is_wide_float(i) || (!over && !under))
        return NULL;
    Inst *above = over ? inst_operand(x, 0) : x, *below = under ? inst_operand(y, 0) : y;
    if (over)
        below = binary(s, OP_MULTIPLY, inst_operand(x, 1), below);
    if (under)
        above = binary(s, OP_MULTIPLY, above, inst_operand(y, 1));
    return binary(s, OP_DIVIDE, above, below);
}

/* ---- powers, logarithms, roots ---- */

/* pow(exp(a), b) -> exp(a * b) */
Inst *rule_power_exponential(Simp *s, Inst *i)
{
    const Inst *e = inst_operand(i, 0);
    if (!is_wide_float(i) || !is_like(s, e, OP_EXPONENTIAL) || e->n_uses != 1)
        return NULL;
    return unary(s, OP_EXPONENTIAL, binary(s, OP_MULTIPLY, inst_operand(e, 0), inst_operand(i, 1)));
}

/* log(pow(a, b)) -> b = 0 ? 0 : b * log(|a|), log(sqrt(a)) -> log(a) / 2, log(rsqrt(a)) -> -log(a) / 2 */
Inst *rule_log_power(Simp *s, Inst *i)
{
    const Inst *p = inst_operand(i, 0);
    if (!is_wide_float(i) || p->n_uses != 1)
        return NULL;
    if (p->op == OP_SQRT || p->op == OP_RSQRT) {
        Literal *half = literal_from_f64(i->shape->type, p->op == OP_SQRT ? 0.5 : -0.5);
        return binary(s, OP_MULTIPLY, unary(s, OP_LOG, inst_operand(p, 0)), simp_splat_literal(s, i->shape, half));
    }
    if (p->op != OP_POWER)
        return NULL;
    Inst *b = inst_operand(p, 1), *zero = simp_splat(s, i->shape, 0);
    Inst *none = simp_new(s, OP_COMPARE, shape_with_type(s->arena, i->shape, TYPE_PRED), 2, (Inst *[]){b, zero});
    inst_set_word(none, ATTR_DIRECTION, CMP_EQ);
    Inst *product = binary(s, OP_MULTIPLY, b, unary(s, OP_LOG, unary(s, OP_ABS, inst_operand(p, 0))));
    return simp_new(s, OP_SELECT, i->shape, 3, (Inst *[]){none, zero, product});
}

/* rsqrt(1 / x) -> sqrt(x), rsqrt(pow(x, -2)) -> x, where x is never negative. */
Inst *rule_rsqrt_reciprocal(Simp *s, Inst *i)
{
    const Inst *q = inst_operand(i, 0);
    if (!is_wide_float(i))
        return NULL;
    if (is_like(s, q, OP_DIVIDE) && splat_is(inst_operand(q, 0), 1) && simp_non_negative(inst_operand(q, 1)))
        return unary(s, OP_SQRT, inst_operand(q, 1));
    if (is_like(s, q, OP_POWER) && splat_is(inst_operand(q, 1), -2) && simp_non_negative(inst_operand(q, 0)))
        return simp_same(s, inst_operand(q, 0));
    return NULL;
}

/* ---- conversions ---- */

/* The integer that a conversion widens, of the type t; NULL: it is none, or others need it too. */
static Inst *widened_from(const Inst *i, Type t)
{
    if (i->op != OP_CONVERT || i->n_uses != 1 || inst_operand(i, 0)->shape->type != t)
        return NULL;
    return type_is_signed_int(i->shape->type) == type_is_signed_int(t) && type_bits(i->shape->type) > type_bits(t) ? inst_operand(i, 0) : NULL;
}

/* narrow(wide(a) op wide(b)) -> a op b: the low digits of sums and products are those of the low digits; unsigned quotients fit. */
Inst *rule_convert_narrow(Simp *s, Inst *i)
{
    const Inst *wide = inst_operand(i, 0);
    Type        t = i->shape->type;
    if (!type_is_int(t) || type_bits(t) < 8 || wide->n_uses != 1 || wide->n_operands != 2 || !type_is_int(wide->shape->type))
        return NULL;
    bool low = wide->op == OP_ADD || wide->op == OP_SUBTRACT || wide->op == OP_MULTIPLY;
    if (!low && !((wide->op == OP_DIVIDE || wide->op == OP_REMAINDER) && type_is_unsigned_int(t)))
        return NULL;
    Inst *a = widened_from(inst_operand(wide, 0), t), *b = widened_from(inst_operand(wide, 1), t);
    if (!a || !b || !shape_equal(a->shape, i->shape) || !shape_equal(b->shape, i->shape))
        return NULL;
    return simp_like(s, wide, i->shape, (Inst *[]){a, b});
}

/* Rounding to the type's own precision. */
Inst *rule_reduce_precision_noop(Simp *s, Inst *i)
{
    const TypeInfo *t = &type_info[i->shape->type];
    if (inst_int(i, ATTR_EXPONENT_BITS, 0) != t->exp || inst_int(i, ATTR_MANTISSA_BITS, 0) != t->man || !is_wide_float(i))
        return NULL;
    return simp_same(s, inst_operand(i, 0));
}
