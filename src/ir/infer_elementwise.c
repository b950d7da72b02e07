/* Result shapes of elementwise operations and conversions. Dimensions of all operands are equal when the result type is written;
 * where it is left out, scalars and dimensions of size 1 stretch, as in XLA's parser (the verifier then refuses them).
 * Source: reference operations 3 and 4, text 5.7. */
#include "ir/infer_rules.h"

enum { B = 1, S = 2, U = 4, F = 8, C = 16, I = S | U, FC = F | C, ALL = B | I | FC };

static unsigned class_bit(Type t)
{
    switch (type_info[t].cls) {
    case CLASS_BOOLEAN:  return B;
    case CLASS_SIGNED:   return S;
    case CLASS_UNSIGNED: return U;
    case CLASS_FLOAT:    return F;
    case CLASS_COMPLEX:  return C;
    default:             return 0;
    }
}

/* Element types that an opcode takes. Some of them are refused only where they would run (a shift of floats). */
static unsigned accepted(Op op)
{
    switch (op) {
    case OP_ABS:
    case OP_SIGN:
        return S | FC;
    case OP_NEGATE:
        return I | FC;
    case OP_NOT:
    case OP_AND:
    case OP_OR:
    case OP_XOR:
        return B | I;
    case OP_POPCNT:
    case OP_COUNT_LEADING_ZEROS:
        return I;
    case OP_IS_FINITE:
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND_NEAREST_AFZ:
    case OP_ROUND_NEAREST_EVEN:
    case OP_CBRT:
    case OP_ERF:
    case OP_COMPLEX:
    case OP_REDUCE_PRECISION:
        return F;
    case OP_SUBTRACT:
    case OP_DIVIDE:
    case OP_REMAINDER:
    case OP_POWER:
    case OP_SHIFT_LEFT:
    case OP_SHIFT_RIGHT_LOGICAL:
    case OP_SHIFT_RIGHT_ARITHMETIC:
        return I | FC;
    case OP_ADD:
    case OP_MULTIPLY:
    case OP_MULHI:
    case OP_MAXIMUM:
    case OP_MINIMUM:
    case OP_COMPARE:
        return ALL;
    default:
        return FC; /* exponential, sine, ..., real, imag, atan2 */
    }
}

static bool check_type(const Infer *x, int32_t k)
{
    if (!infer_is_array(x, k))
        return false;
    Type t = operand_shape(x, k)->type;
    return (accepted(x->i->op) & class_bit(t)) || infer_bad(x, "does not take elements of type %s", type_name(t));
}

const Shape *infer_unary(const Infer *x) { return check_type(x, 0) ? operand_shape(x, 0) : NULL; }

/* abs, real, imag: a part of a complex number, or as real as it was. */
const Shape *infer_component(const Infer *x)
{
    if (!check_type(x, 0))
        return NULL;
    const Shape *s = operand_shape(x, 0);
    return shape_with_type(x->a, s, type_component(s->type));
}

const Shape *infer_predicate(const Infer *x)
{
    return check_type(x, 0) ? shape_with_type(x->a, operand_shape(x, 0), TYPE_PRED) : NULL;
}

const Shape *infer_reduce_precision(const Infer *x)
{
    int64_t e = inst_int(x->i, ATTR_EXPONENT_BITS, 0), m = inst_int(x->i, ATTR_MANTISSA_BITS, 0);
    if (!check_type(x, 0))
        return NULL;
    if (e < 1)
        return infer_fail(x, "exponent_bits must be at least 1, got %lld", (long long)e);
    if (m < 0)
        return infer_fail(x, "mantissa_bits must not be negative, got %lld", (long long)m);
    return operand_shape(x, 0);
}

/* Which of two sizes gives way to the other: 1, then '?'. Equal ones do not. */
static bool yields(int64_t a, int64_t b) { return a != b && (a == 1 || (a == DIM_UNBOUNDED && b != 1)); }

/* Sizes of 1 stretch to the other operand's, and what is known of one is taken for the other: [2,1] with [1,3] is [2,3], [?,2] with [3,2] is
 * [3,2]. The layout is the default one. */
static const Shape *stretch_ones(const Infer *x, const Shape *l, const Shape *r)
{
    int64_t *dims = ARENA_ARRAY(x->a, int64_t, l->rank);
    bool    *dynamic = ARENA_ARRAY(x->a, bool, l->rank);
    for (int32_t k = 0; k < l->rank; k++) {
        bool equal = l->dims[k] == r->dims[k], left = !yields(l->dims[k], r->dims[k]);
        if (!equal && left && !yields(r->dims[k], l->dims[k]))
            return infer_fail(x, "operands differ in dimension %d: %s and %s", k, infer_text(x, l), infer_text(x, r));
        dims[k] = left ? l->dims[k] : r->dims[k];
        dynamic[k] = (left && dim_is_dynamic(l, k)) || ((equal || !left) && dim_is_dynamic(r, k));
    }
    return infer_array(x, l->type, l->rank, dims, dynamic);
}

/* Dimensions and layout of a binary result. */
static const Shape *common_dims(const Infer *x, const Shape *l, const Shape *r)
{
    bool known = !shape_is_unbounded(l) && !shape_is_unbounded(r);
    if (shape_same_dims(l, r) && (known || x->i->shape || l->rank == 0))
        return infer_merge_dynamic(x, l, r);
    if (x->i->shape)
        return infer_fail(x, "operands differ in dimensions: %s and %s (nothing is broadcast implicitly)", infer_text(x, l),
                          infer_text(x, r));
    if (l->rank == 0 || r->rank == 0) { /* in the default layout */
        const Shape *s = l->rank == 0 ? r : l;
        return infer_array(x, s->type, s->rank, s->dims, s->dynamic);
    }
    if (l->rank != r->rank)
        return infer_fail(x, "operands differ in rank: %s and %s", infer_text(x, l), infer_text(x, r));
    return stretch_ones(x, l, r);
}

/* s with elements of type t; XLA takes bits per element, E(...), over from the operand only for types below a byte. */
static const Shape *binary_result(const Infer *x, const Shape *s, Type t)
{
    s = shape_with_type(x->a, s, t);
    if (!s->layout || !s->layout->element_bits || type_bits(t) < 8)
        return s;
    Layout *l = arena_copy(x->a, s->layout, sizeof *l);
    l->element_bits = 0;
    return shape_with_layout(x->a, s, l);
}

const Shape *infer_binary(const Infer *x)
{
    if (!check_type(x, 0) || !check_type(x, 1) || !infer_same_kind(x, 0, 1))
        return NULL;
    const Shape *l = operand_shape(x, 0), *r = operand_shape(x, 1);
    const Shape *s = common_dims(x, l, r);
    return s ? binary_result(x, s, type_higher_precision(l->type, r->type)) : NULL;
}

const Shape *infer_complex(const Infer *x)
{
    const Shape *s = infer_binary(x);
    if (!s)
        return NULL;
    Type l = operand_shape(x, 0)->type, r = operand_shape(x, 1)->type;
    if (l != r || (l != TYPE_F32 && l != TYPE_F64))
        return infer_fail(x, "expects two operands of f32 or two of f64, got %s and %s", type_name(l), type_name(r));
    return shape_with_type(x->a, s, l == TYPE_F32 ? TYPE_C64 : TYPE_C128);
}

const Shape *infer_compare(const Infer *x)
{
    const Shape *s = infer_binary(x);
    if (!s)
        return NULL;
    Word direction = inst_word(x->i, ATTR_DIRECTION);
    if (type_is_complex(s->type) && direction != CMP_EQ && direction != CMP_NE && x->i->shape)
        return infer_fail(x, "complex numbers compare only with EQ and NE, not %s", attr_words[direction].text);
    if (!type_is_float(s->type) && !type_is_complex(s->type) && !compare_is_total(x->i) && x->i->shape)
        return infer_fail(x, "%s has one order, a total one", type_name(s->type));
    return binary_result(x, s, TYPE_PRED);
}

const Shape *infer_select(const Infer *x)
{
    if (!infer_are_arrays(x) || !infer_same_dims(x, 1, 2) || !infer_same_kind(x, 1, 2))
        return NULL;
    const Shape *p = operand_shape(x, 0), *t = operand_shape(x, 1), *f = operand_shape(x, 2);
    if (p->type != TYPE_PRED)
        return infer_fail(x, "operand 0 must be pred, got %s", infer_text(x, p));
    if (p->rank != 0 && !shape_same_dims(p, t))
        return infer_fail(x, "operand 0 must be a scalar or have the dimensions of operand 1, got %s and %s", infer_text(x, p),
                          infer_text(x, t));
    const Shape *s = infer_merge_dynamic(x, infer_merge_dynamic(x, t, f), p);
    Shape       *result = arena_copy(x->a, s, sizeof *s);
    result->type = type_higher_precision(t->type, f->type);
    if (p->rank != 0)
        result->layout = p->layout;
    return result;
}

const Shape *infer_clamp(const Infer *x)
{
    if (!infer_are_arrays(x) || !infer_same_kind(x, 0, 1) || !infer_same_kind(x, 1, 2))
        return NULL;
    for (int32_t k = 0; k <= 2; k += 2)
        if (operand_shape(x, k)->rank != 0 && !infer_same_dims(x, k, 1))
            return NULL;
    return operand_shape(x, 1);
}

/* The written shape with the operand's dimensions: its element type is the one thing that the text decides. */
const Shape *infer_convert(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    if (!shape_is_array(x->i->shape))
        return infer_fail(x, "the result must be an array, not %s", infer_text(x, x->i->shape));
    return shape_with_type(x->a, operand_shape(x, 0), x->i->shape->type);
}

const Shape *infer_stochastic_convert(const Infer *x)
{
    if (!infer_are_arrays(x) || !infer_same_dims(x, 0, 1))
        return NULL;
    Type v = operand_shape(x, 0)->type, r = operand_shape(x, 1)->type;
    if (!type_is_float(v))
        return infer_fail(x, "operand 0 must be floating, got %s", type_name(v));
    if (!type_is_unsigned_int(r) || type_bits(r) != type_bits(v))
        return infer_fail(x, "operand 1 must be an unsigned integer of %d bits, got %s", type_bits(v), type_name(r));
    return infer_convert(x);
}

/* Bits of one element as bitcast-convert counts them: the six-bit floats take a byte. */
static int packed_bits(Type t) { return type_bits(t) == 6 ? 8 : type_bits(t); }

/* u32[3] -> u8[3,4], u8[3,4] -> u32[3] */
const Shape *infer_bitcast_convert(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape *s = operand_shape(x, 0), *w = x->i->shape;
    if (!shape_is_array(w))
        return infer_fail(x, "the result must be an array, not %s", infer_text(x, w));
    if (type_is_complex(s->type) != type_is_complex(w->type))
        return infer_fail(x, "cannot mix complex and other types: %s and %s", type_name(s->type), type_name(w->type));
    int from = packed_bits(s->type), to = packed_bits(w->type);
    if (from == to)
        return shape_with_type(x->a, s, w->type);
    if (from > to ? from % to : to % from)
        return infer_fail(x, "widths do not divide: %s has %d bits, %s %d", type_name(s->type), from, type_name(w->type), to);
    int64_t *dims = ARENA_ARRAY(x->a, int64_t, (int64_t)s->rank + 1);
    bool    *dynamic = ARENA_ARRAY(x->a, bool, (int64_t)s->rank + 1);
    for (int32_t k = 0; k < s->rank; k++) {
        dims[k] = s->dims[k];
        dynamic[k] = dim_is_dynamic(s, k);
    }
    if (from > to) {
        dims[s->rank] = from / to;
        return infer_array(x, w->type, s->rank + 1, dims, dynamic);
    }
    if (s->rank == 0 || s->dims[s->rank - 1] != to / from)
        return infer_fail(x, "the last dimension of %s must be %d to make %s", infer_text(x, s), to / from, type_name(w->type));
    return infer_array(x, w->type, s->rank - 1, dims, dynamic);
}
