/* Scalar arithmetic: one HLO operation on machine scalars. Integers wrap, division and shifts are guarded, floats narrower than f32 are computed
 * in f32 and rounded after every instruction. What one C operator cannot say is a call of a helper that the target's prelude
 * defines (add_s32, max_f32, bf16_round, f32_to_s8, ...). */
#include "analysis/int_range.h"
#include "emit/lower.h"
#include "ir/numeric.h"

#include <math.h>
#include <string.h>

static const KExpr *call1(Arena *a, Type t, const char *fn, const KExpr *x)
{
    return kx_call(a, fn, t, 1, &x);
}

static const KExpr *call2(Arena *a, Type t, const char *fn, const KExpr *x, const KExpr *y)
{
    return kx_call(a, fn, t, 2, (const KExpr *const[]){ x, y });
}

static bool is_narrow_float(Type t) { return type_is_float(t) && t != TYPE_F32 && t != TYPE_F64; }
static bool is_narrow_int(Type t) { return type_is_int(t) && type_bits(t) < 8; }

static Type unsigned_of(Type t)
{
    switch (type_bits(t)) {
    case 16: return TYPE_U16;
    case 32: return TYPE_U32;
    case 64: return TYPE_U64;
    default: return TYPE_U8;
    }
}

static Type signed_of(Type t)
{
    switch (type_bits(t)) {
    case 16: return TYPE_S16;
    case 32: return TYPE_S32;
    case 64: return TYPE_S64;
    default: return TYPE_S8;
    }
}

const KExpr *scalar_zero(Arena *a, Type t)
{
    Type m = machine_type(t);
    return type_is_float(m) ? kx_float(a, m, 0.0) : type_is_complex(m) ? kx_cast(a, m, kx_float(a, type_component(m), 0.0)) : kx_int(a, m, 0);
}

const KExpr *scalar_one(Arena *a, Type t)
{
    Type m = machine_type(t);
    return type_is_float(m) ? kx_float(a, m, 1.0) : type_is_complex(m) ? kx_cast(a, m, kx_float(a, type_component(m), 1.0)) : kx_int(a, m, 1);
}

const KExpr *scalar_constant(Arena *a, const Literal *l, int64_t i)
{
    Type m = machine_type(l->type);
    if (type_is_complex(m)) {
        Type c = type_component(m);
        return call2(a, m, "__builtin_complex", kx_float(a, c, literal_get_f64(l, i)), kx_float(a, c, literal_get_imag(l, i)));
    }
    return type_is_float(m) ? kx_float(a, m, literal_get_f64(l, i)) : kx_int(a, m, literal_get_s64(l, i));
}

/* Keeps the low bits of an integer below 8 bits. */
static const KExpr *wrapped(Arena *a, Type t, const KExpr *x)
{
    return is_narrow_int(t) ? call1(a, machine_type(t), arena_printf(a, "wrap_%s", type_name(t)), x) : x;
}

static bool calls(const KExpr *x, const char *type, const char *suffix)
{
    size_t n = strlen(type);
    return x->kind == KX_CALL && strncmp(x->fn, type, n) == 0 && strcmp(x->fn + n, suffix) == 0;
}

/* A float of a byte or less, all of whose values bf16 has. */
static bool is_small(const KExpr *x)
{
    bool small = false;
    for (Type t = 0; t < TYPE_COUNT && !small; t++)
        small = type_is_float(t) && type_bits(t) <= 8 && calls(x, type_name(t), "_to_f32");
    return small;
}

static bool is_rounded(Type t, const KExpr *x)
{
    return calls(x, type_name(t), "_round") || calls(x, type_name(t), "_near");
}

static bool is_in(Type t, const KExpr *x)
{
    static const char *const keep[] = { "max_f32", "min_f32", "fabsf", "floorf", "ceilf", "rintf" };
    switch (x->kind) {
    case KX_FLOAT: return float_decode(t, float_encode(t, x->f)) == x->f;
    case KX_TEMP: return t == TYPE_BF16 ? x->temp->in_bf16 : x->temp->in_f16;
    case KX_SELECT: return is_in(t, x->arg[1]) && is_in(t, x->arg[2]);
    case KX_UNARY: return x->op == KOP_NEG && is_in(t, x->arg[0]);
    case KX_CAST: return type_is_int(x->arg[0]->type) && type_bits(x->arg[0]->type) <= 8; /* 8 digits: all that bf16 has */
    case KX_CALL:
        for (size_t k = 0; k < sizeof keep / sizeof *keep; k++)
            if (strcmp(x->fn, keep[k]) == 0)
                return is_in(t, x->arg[0]) && (x->n == 1 || is_in(t, x->arg[1]));
        return calls(x, type_name(t), "_to_f32") || is_rounded(t, x) || (t == TYPE_BF16 && is_small(x));
    default: return false;
    }
}

bool scalar_in_bf16(const KExpr *x)
{
    return is_in(TYPE_BF16, x);
}

bool scalar_in_f16(const KExpr *x)
{
    return is_in(TYPE_F16, x);
}

const KExpr *scalar_round(Arena *a, Type t, const KExpr *x)
{
    if (!is_narrow_float(t) || calls(x, type_name(t), "_to_f32") || is_rounded(t, x) || (t == TYPE_BF16 && scalar_in_bf16(x)))
        return x;
    return call1(a, TYPE_F32, arena_printf(a, "%s_round", type_name(t)), x);
}

const KExpr *scalar_round_near(Arena *a, Type t, const KExpr *x)
{
    const bool rounded = t != TYPE_BF16 || calls(x, "bf16", "_to_f32") || scalar_in_bf16(x);
    return rounded ? scalar_round(a, t, x) : call1(a, TYPE_F32, "bf16_near", x);
}

const KExpr *scalar_decode(Arena *a, Type t, const KExpr *raw)
{
    if (is_narrow_float(t))
        return call1(a, TYPE_F32, arena_printf(a, "%s_to_f32", type_name(t)), raw);
    return kx_cast(a, machine_type(t), raw);
}

const KExpr *scalar_encoded(Arena *a, Type t, const KExpr *x)
{
    if (x->kind == KX_FLOAT)
        return kx_int(a, storage_type(t), (int64_t)float_convert_from_f64(t, x->f));
    if (calls(x, type_name(t), "_to_f32"))
        return x->arg[0];
    if (x->kind == KX_TEMP && x->temp->decoded)
        return scalar_encoded(a, t, x->temp->decoded);
    if (type_bits(t) == 16 && ((x->kind == KX_UNARY && x->op == KOP_NEG) || (x->kind == KX_CALL && strcmp(x->fn, "fabsf") == 0))) {
        const KExpr *e = scalar_encoded(a, t, x->arg[0]);
        return e ? kx_binary(a, x->kind == KX_UNARY ? KOP_XOR : KOP_AND, storage_type(t), e, kx_int(a, storage_type(t), x->kind == KX_UNARY ? 0x8000 : 0x7fff)) : NULL;
    }
    if (x->kind != KX_SELECT)
        return NULL;
    const KExpr *p = scalar_encoded(a, t, x->arg[1]), *q = scalar_encoded(a, t, x->arg[2]);
    return p && q ? kx_select(a, x->arg[0], p, q) : NULL;
}

const KExpr *scalar_encode(Arena *a, Type t, const KExpr *x)
{
    if (!is_narrow_float(t))
        return t == TYPE_PRED ? x : kx_cast(a, storage_type(t), x);
    if (calls(x, type_name(t), "_to_f32"))
        return x->arg[0];
    if (is_rounded(t, x))
        x = x->arg[0];
    if ((x->kind == KX_SELECT || x->kind == KX_UNARY || x->kind == KX_CALL) && scalar_encoded(a, t, x)) /* not widened, chosen and narrowed */
        return scalar_encoded(a, t, x);
    if (t == TYPE_BF16 && x->kind != KX_FLOAT && scalar_in_bf16(x))
        return call1(a, storage_type(t), "upper_bf16", x);
    return call1(a, storage_type(t), arena_printf(a, "f32_to_%s", type_name(t)), x);
}

const KExpr *scalar_bits(Arena *a, Type t, const KExpr *x)
{
    if (t == TYPE_F32 || t == TYPE_F64)
        return call1(a, unsigned_of(t), t == TYPE_F32 ? "f32_as_u32" : "f64_as_u64", x);
    if (type_is_float(t))
        return scalar_encode(a, t, x);
    if (is_narrow_int(t) && type_is_signed_int(t))
        return call1(a, TYPE_U8, arena_printf(a, "wrap_u%d", type_bits(t)), kx_cast(a, TYPE_U8, x));
    return kx_cast(a, unsigned_of(t), x);
}

const KExpr *scalar_from_bits(Arena *a, Type t, const KExpr *x)
{
    if (t == TYPE_F32 || t == TYPE_F64)
        return call1(a, t, t == TYPE_F32 ? "u32_as_f32" : "u64_as_f64", x);
    if (type_bits(t) == 6) /* a byte in memory */
        x = kx_binary(a, KOP_AND, TYPE_U8, x, kx_int(a, TYPE_U8, 63));
    if (type_is_float(t))
        return scalar_decode(a, t, x);
    return wrapped(a, t, kx_cast(a, machine_type(t), x));
}

static const KExpr *float_to_float(Arena *a, Type from, Type to, const KExpr *x)
{
    if (from == TYPE_F64 && type_bits(to) <= 8) /* one rounding */
        return call1(a, TYPE_F32, arena_printf(a, "%s_to_f32", type_name(to)),
                     call1(a, TYPE_U8, arena_printf(a, "f64_to_%s", type_name(to)), x));
    x = kx_cast(a, machine_type(to), x);
    return from == to ? x : scalar_round(a, to, x);
}

const KExpr *scalar_convert(Arena *a, Type from, Type to, const KExpr *x)
{
    if (from == to)
        return x;
    if (type_is_complex(from) && !type_is_complex(to) && to != TYPE_PRED)
        return scalar_convert(a, type_component(from), to, kx_unary(a, KOP_REAL, type_component(from), x));
    if (type_is_complex(to))
        return kx_cast(a, to, type_is_complex(from) ? x : scalar_convert(a, from, type_component(to), x));
    if (to == TYPE_PRED)
        return from == TYPE_F8E8M0FNU ? kx_int(a, TYPE_PRED, 1) : kx_cast(a, TYPE_PRED, x);
    if (type_is_float(from) && type_is_float(to))
        return float_to_float(a, from, to, x);
    if (type_is_float(from)) {
        Type m = machine_type(from);
        return call1(a, machine_type(to), arena_printf(a, "%s_to_%s", type_name(m), type_name(to)), x);
    }
    if (type_is_float(to)) {
        const Type m = machine_type(to); /* a choice is made in vectors, which a cast of a truth value is not */
        return scalar_round(a, to, from == TYPE_PRED ? kx_select(a, x, scalar_one(a, m), scalar_zero(a, m)) : kx_cast(a, m, x));
    }
    bool keeps = from == TYPE_PRED ? type_bits(to) > 1 || to == TYPE_U1
                                   : type_is_unsigned_int(from) && type_is_unsigned_int(to) && type_bits(from) <= type_bits(to);
    x = kx_cast(a, machine_type(to), x);
    return keeps ? x : wrapped(a, to, x);
}

/* Names of C's functions: tanhf, tanh, ctanhf, ctanh. */
static const KExpr *math1(Arena *a, Type t, const char *fn, const KExpr *x)
{
    bool single = type_component(machine_type(t)) == TYPE_F32;
    return call1(a, machine_type(t), arena_printf(a, "%s%s%s", type_is_complex(t) ? "c" : "", fn, single ? "f" : ""), x);
}

static const KExpr *helper1(Arena *a, Type t, const char *fn, const KExpr *x)
{
    return call1(a, machine_type(t), arena_printf(a, "%s_%s", fn, type_name(machine_type(t))), x);
}

static const KExpr *helper2(Arena *a, Type t, const char *fn, const KExpr *x, const KExpr *y)
{
    return call2(a, machine_type(t), arena_printf(a, "%s_%s", fn, type_name(machine_type(t))), x, y);
}

/* Operations of one float argument that C has under one name. */
static const char *math_name(Op op)
{
    switch (op) {
    case OP_ACOS: return "acos";
    case OP_ACOSH: return "acosh";
    case OP_ASIN: return "asin";
    case OP_ASINH: return "asinh";
    case OP_ATANH: return "atanh";
    case OP_CBRT: return "cbrt";
    case OP_COSINE: return "cos";
    case OP_COSH: return "cosh";
    case OP_ERF: return "erf";
    case OP_EXPONENTIAL: return "exp";
    case OP_LOG: return "log";
    case OP_SINE: return "sin";
    case OP_SINH: return "sinh";
    case OP_SQRT: return "sqrt";
    case OP_TAN: return "tan";
    case OP_TANH: return "tanh";
    default: return NULL;
    }
}

/* Of these C has no complex form; the prelude does. */
static const char *real_math_name(Op op)
{
    switch (op) {
    case OP_EXP2: return "exp2";
    case OP_EXPONENTIAL_MINUS_ONE: return "expm1";
    case OP_LOG2: return "log2";
    case OP_LOG_PLUS_ONE: return "log1p";
    case OP_FLOOR: return "floor";
    case OP_CEIL: return "ceil";
    case OP_ROUND_NEAREST_AFZ: return "round";
    case OP_ROUND_NEAREST_EVEN: return "rint";
    default: return NULL;
    }
}

static const KExpr *float_unary(Arena *a, Op op, Type t, const KExpr *x)
{
    Type  m = machine_type(t);
    const KExpr *one = scalar_one(a, t);
    if (math_name(op))
        return math1(a, t, math_name(op), x);
    if (real_math_name(op))
        return type_is_complex(t) ? helper1(a, t, real_math_name(op), x) : math1(a, t, real_math_name(op), x);
    switch (op) {
    case OP_NEGATE: return kx_unary(a, KOP_NEG, m, x);
    case OP_ABS: return math1(a, t, "fabs", x);
    case OP_SIGN: return helper1(a, t, "sign", x);
    case OP_RSQRT: return kx_binary(a, KOP_DIV, m, one, math1(a, t, "sqrt", x));
    case OP_LOGISTIC:
        return kx_binary(a, KOP_DIV, m, one, kx_binary(a, KOP_ADD, m, one, math1(a, t, "exp", kx_unary(a, KOP_NEG, m, x))));
    default: die("%s of a float is not lowered", op_name(op));
    }
}

static const KExpr *int_unary(Arena *a, Op op, Type t, const KExpr *x)
{
    const KExpr *bits;
    switch (op) {
    case OP_ABS: return type_is_unsigned_int(t) ? x : wrapped(a, t, helper1(a, t, "abs", x));
    case OP_NEGATE: return wrapped(a, t, helper1(a, t, "neg", x));
    case OP_SIGN: return type_is_unsigned_int(t) ? kx_cast(a, machine_type(t), kx_cast(a, TYPE_PRED, x)) : helper1(a, t, "sign", x);
    case OP_NOT: return wrapped(a, t, kx_cast(a, machine_type(t), kx_unary(a, KOP_NOT, machine_type(t), x)));
    case OP_POPCNT:
        bits = scalar_bits(a, t, x);
        return wrapped(a, t, kx_cast(a, machine_type(t), helper1(a, bits->type, "popcnt", bits)));
    case OP_COUNT_LEADING_ZEROS:
        bits = helper1(a, unsigned_of(t), "clz", scalar_bits(a, t, x));
        if (is_narrow_int(t))
            bits = kx_binary(a, KOP_SUB, TYPE_U8, bits, kx_int(a, TYPE_U8, 8 - type_bits(t)));
        return wrapped(a, t, kx_cast(a, machine_type(t), bits));
    default: die("%s of an integer is not lowered", op_name(op));
    }
}

/* An operation on c64, c128 that changes the type, or abs and sign. */
static const KExpr *complex_unary(Arena *a, Op op, Type t, const KExpr *x)
{
    Type c = type_component(t);
    switch (op) {
    case OP_REAL: return kx_unary(a, KOP_REAL, c, x);
    case OP_IMAG: return kx_unary(a, KOP_IMAG, c, x);
    case OP_ABS: return call1(a, c, c == TYPE_F32 ? "cabsf" : "cabs", x);
    default: return float_unary(a, op, t, x);
    }
}

/* These give a value of the type for every value of the type: no rounding after them. */
static bool is_exact(Op op)
{
    switch (op) {
    case OP_NEGATE: case OP_ABS: case OP_SIGN: case OP_FLOOR: case OP_CEIL: case OP_ROUND_NEAREST_AFZ: case OP_ROUND_NEAREST_EVEN:
    case OP_REAL: case OP_IMAG: case OP_MAXIMUM: case OP_MINIMUM: case OP_REMAINDER:
        return true;
    default:
        return false;
    }
}

/* Unsigned floats and those without -0 or infinity are rounded in any case: the sign may not exist, ceil may overflow. */
static const KExpr *settle(Arena *a, Op op, Type t, const KExpr *x)
{
    return is_exact(op) && (type_bits(t) >= 16 || op == OP_MAXIMUM || op == OP_MINIMUM) ? x : scalar_round_near(a, t, x);
}

static const KExpr *scalar_unary(Arena *a, Op op, Type t, const KExpr *x)
{
    if (op == OP_IS_FINITE)
        return call1(a, TYPE_PRED, machine_type(t) == TYPE_F32 ? "is_finite_f32" : "is_finite_f64", x);
    if (type_is_complex(t))
        return complex_unary(a, op, t, x);
    if (t == TYPE_PRED)
        return op == OP_NOT ? kx_unary(a, KOP_NOT, TYPE_PRED, x) : x;
    if (type_is_int(t))
        return int_unary(a, op, t, x);
    if (op == OP_REAL)
        return x;
    if (op == OP_IMAG)
        return scalar_zero(a, t);
    return settle(a, op, t, float_unary(a, op, t, x));
}

static const KExpr *pred_binary(Arena *a, Op op, const KExpr *x, const KExpr *y)
{
    switch (op) {
    case OP_ADD: case OP_OR: case OP_MAXIMUM: return kx_binary(a, KOP_OR, TYPE_PRED, x, y);
    case OP_MULTIPLY: case OP_AND: case OP_MINIMUM: return kx_binary(a, KOP_AND, TYPE_PRED, x, y);
    case OP_XOR: return kx_binary(a, KOP_NE, TYPE_PRED, x, y);
    default: die("%s of pred is not lowered", op_name(op));
    }
}

/* A constant is the second one, which then is not compared with itself; a zero stays where it is, since the first of two zeros is taken. */
static const KExpr *extreme(Arena *a, Type t, const char *fn, const KExpr *x, const KExpr *y)
{
    const bool first = x->kind == KX_FLOAT && x->f == x->f && x->f != 0;
    return first ? helper2(a, t, fn, y, x) : helper2(a, t, fn, x, y);
}

/* x - trunc(x / 2^k) 2^k with x's sign, of which no step is rounded: quotients that are subnormal are cut off, none is too large, what is infinite or no number has a NaN. */
static const KExpr *float_remainder(Arena *a, Type t, const KExpr *x, const KExpr *y)
{
    const bool single = t == TYPE_F32;
    int        exponent;
    if (y->kind == KX_FLOAT && y->f >= 1 && y->f <= 1 << 20 && frexp(y->f, &exponent) == 0.5)
        return helper2(a, t, "rest", x, y);
    return call2(a, t, single ? "fmodf" : "fmod", x, y);
}

static bool is_half(const KExpr *y)
{
    return y->kind == KX_FLOAT && y->f == 0.5;
}

/* Of a power of 0.5 gcc makes a plain root in vectors, whatever x is. */
static const KExpr *float_power(Arena *a, Type t, const KExpr *x, const KExpr *y)
{
    if (type_is_complex(t))
        return helper2(a, t, "pow", x, y);
    const Type m = machine_type(t);
    return is_half(y) ? helper1(a, m, "root", x) : call2(a, m, m == TYPE_F32 ? "powf" : "pow", x, y);
}

static const KExpr *float_binary(Arena *a, Op op, Type t, const KExpr *x, const KExpr *y)
{
    Type m = machine_type(t);
    bool single = type_component(m) == TYPE_F32;
    switch (op) {
    case OP_ADD: return kx_binary(a, KOP_ADD, m, x, y);
    case OP_SUBTRACT: return kx_binary(a, KOP_SUB, m, x, y);
    case OP_MULTIPLY: return kx_binary(a, KOP_MUL, m, x, y);
    case OP_DIVIDE: return kx_binary(a, KOP_DIV, m, x, y);
    case OP_MAXIMUM: return extreme(a, t, "max", x, y);
    case OP_MINIMUM: return extreme(a, t, "min", x, y);
    case OP_REMAINDER: return float_remainder(a, m, x, y);
    case OP_POWER: return float_power(a, t, x, y);
    case OP_ATAN2:
        if (m == TYPE_F32 && y->kind == KX_FLOAT && y->f == 1) /* of a quotient that front ends make of an arc tangent */
            return call1(a, m, "atanf", x);
        return type_is_complex(t) ? helper2(a, t, "atan2", x, y) : call2(a, m, single ? "atan2f" : "atan2", x, y);
    default: die("%s of floats is not lowered", op_name(op));
    }
}

/* x shifted right; the type says how x is stored, not how the sign bit fills. */
static const KExpr *shift_right(Arena *a, Op op, Type t, const KExpr *x, const KExpr *n)
{
    Type u = unsigned_of(t), s = signed_of(t);
    const KExpr *amount = kx_cast(a, u, n), *bits = scalar_bits(a, t, x), *r;
    if (op == OP_SHIFT_RIGHT_LOGICAL)
        r = call2(a, u, arena_printf(a, "shr_%s", type_name(u)), bits, amount);
    else {
        const KExpr *v = is_narrow_int(t) ? call1(a, TYPE_S8, arena_printf(a, "wrap_s%d", type_bits(t)), kx_cast(a, TYPE_S8, x)) : kx_cast(a, s, x);
        r = call2(a, s, arena_printf(a, "shr_%s", type_name(s)), v, amount);
    }
    return wrapped(a, t, kx_cast(a, machine_type(t), r));
}

static const KExpr *int_binary(Arena *a, Op op, Type t, const KExpr *x, const KExpr *y)
{
    Type m = machine_type(t);
    bool plain = m == TYPE_U32 || m == TYPE_U64; /* wraps by itself */
    switch (op) {
    case OP_ADD: return plain ? kx_binary(a, KOP_ADD, m, x, y) : wrapped(a, t, helper2(a, t, "add", x, y));
    case OP_SUBTRACT: return plain ? kx_binary(a, KOP_SUB, m, x, y) : wrapped(a, t, helper2(a, t, "sub", x, y));
    case OP_MULTIPLY: return plain ? kx_binary(a, KOP_MUL, m, x, y) : wrapped(a, t, helper2(a, t, "mul", x, y));
    case OP_DIVIDE: return wrapped(a, t, helper2(a, t, "div", x, y));
    case OP_REMAINDER: return wrapped(a, t, helper2(a, t, "rem", x, y));
    case OP_POWER: return wrapped(a, t, helper2(a, t, "pow", x, y));
    case OP_MULHI: return helper2(a, t, "mulhi", x, y);
    case OP_MAXIMUM: return helper2(a, t, "max", x, y);
    case OP_MINIMUM: return helper2(a, t, "min", x, y);
    case OP_AND: return kx_binary(a, KOP_AND, m, x, y);
    case OP_OR: return kx_binary(a, KOP_OR, m, x, y);
    case OP_XOR: return kx_binary(a, KOP_XOR, m, x, y);
    case OP_SHIFT_LEFT: return wrapped(a, t, helper2(a, t, "shl", x, y));
    case OP_SHIFT_RIGHT_ARITHMETIC:
    case OP_SHIFT_RIGHT_LOGICAL: return shift_right(a, op, t, x, y);
    default: die("%s of integers is not lowered", op_name(op));
    }
}

const KExpr *scalar_binary(Arena *a, Op op, Type t, const KExpr *x, const KExpr *y)
{
    if (op == OP_COMPLEX)
        return call2(a, t == TYPE_F64 ? TYPE_C128 : TYPE_C64, "__builtin_complex", x, y);
    if (t == TYPE_PRED)
        return pred_binary(a, op, x, y);
    if (type_is_int(t))
        return int_binary(a, op, t, x, y);
    return settle(a, op, t, float_binary(a, op, t, x, y));
}

static KOp compare_operator(Word direction)
{
    switch (direction) {
    case CMP_EQ: return KOP_EQ;
    case CMP_NE: return KOP_NE;
    case CMP_GE: return KOP_GE;
    case CMP_GT: return KOP_GT;
    case CMP_LE: return KOP_LE;
    case CMP_LT: return KOP_LT;
    default: die("no direction of compare");
    }
}

const KExpr *scalar_order_key(Arena *a, Type t, const KExpr *x)
{
    if (!type_is_float(t))
        return x;
    if (t == TYPE_F8E8M0FNU)
        return scalar_encode(a, t, x);
    Type s = type_bits(t) <= 8 ? TYPE_S8 : t == TYPE_F64 ? TYPE_S64 : t == TYPE_F32 ? TYPE_S32 : TYPE_S16;
    const KExpr *bits = scalar_bits(a, t, x);
    if (type_bits(t) < 8) /* the sign to the top */
        bits = kx_cast(a, TYPE_U8, kx_binary(a, KOP_SHL, TYPE_U8, bits, kx_int(a, TYPE_U8, 8 - type_bits(t))));
    return call1(a, s, arena_printf(a, "total_%s", type_name(s)), kx_cast(a, s, bits));
}

static const KExpr *scalar_compare(Arena *a, const Inst *i, Type t, const KExpr *x, const KExpr *y)
{
    if (type_is_float(t) && (compare_is_total(i) || t == TYPE_F8E8M0FNU)) {
        x = scalar_order_key(a, t, x);
        y = scalar_order_key(a, t, y);
    }
    return kx_binary(a, compare_operator(inst_word(i, ATTR_DIRECTION)), TYPE_PRED, x, y);
}

/* NaN is behind all numbers, up or down. */
static const KExpr *compare_nan_last(Arena *a, Word direction, const KExpr *x, const KExpr *y)
{
    switch (direction) {
    case CMP_LE: return kx_unary(a, KOP_NOT, TYPE_PRED, compare_nan_last(a, CMP_LT, y, x));
    case CMP_GE: return kx_unary(a, KOP_NOT, TYPE_PRED, compare_nan_last(a, CMP_GT, y, x));
    case CMP_LT: case CMP_GT: break;
    default: return kx_binary(a, compare_operator(direction), TYPE_PRED, x, y);
    }
    const KExpr *number = kx_binary(a, KOP_EQ, TYPE_PRED, x, x), *nan = kx_binary(a, KOP_NE, TYPE_PRED, y, y);
    return kx_binary(a, KOP_OR, TYPE_PRED, kx_binary(a, compare_operator(direction), TYPE_PRED, x, y), kx_binary(a, KOP_AND, TYPE_PRED, number, nan));
}

static const KExpr *clamp(Arena *a, Type t, const KExpr *lo, const KExpr *x, const KExpr *hi)
{
    return scalar_binary(a, OP_MINIMUM, t, scalar_binary(a, OP_MAXIMUM, t, lo, x), hi);
}

static const KExpr *reduce_precision(Arena *a, const Inst *i, Type t, const KExpr *x)
{
    Type m = machine_type(t);
    return kx_call(a, m == TYPE_F32 ? "reduce_precision_f32" : "reduce_precision_f64", m, 3,
                   (const KExpr *const[]){ x, kx_int(a, TYPE_S32, inst_int(i, ATTR_EXPONENT_BITS, 0)),
                                           kx_int(a, TYPE_S32, inst_int(i, ATTR_MANTISSA_BITS, 0)) });
}

static const KExpr *stochastic(Arena *a, const Inst *i, Type random, const KExpr *x, const KExpr *r)
{
    Type to = i->shape->type;
    return kx_cast(a, machine_type(to),
                   kx_call(a, arena_printf(a, "stochastic_%s", type_name(to)), TYPE_S64, 3,
                           (const KExpr *const[]){ kx_cast(a, TYPE_F64, x), kx_cast(a, TYPE_U64, r), kx_int(a, TYPE_S32, type_bits(random)) }));
}

/* Floats of several types, the result's among them, meet in one instruction of arithmetic. */
static bool is_mixed(const Inst *x, const Type *types)
{
    bool differ = false;
    if (!type_is_float(x->shape->type))
        return false;
    for (int32_t k = 0; k < x->n_operands; k++) {
        if (!type_is_float(types[k]))
            return false;
        differ |= types[k] != x->shape->type;
    }
    return differ && (x->op == OP_CLAMP || (op_has(x->op, F_ELEMENTWISE) && x->op != OP_CONVERT));
}

/* They are computed in the machine type that holds all operands and rounded once, to the result's type. */
static const KExpr *mixed_floats(Lower *L, const Inst *x, const Type *types, const KExpr *const *args)
{
    Arena       *a = L->arena;
    Type         wide = TYPE_F32;
    const KExpr *v[3] = {NULL}, *r;
    for (int32_t k = 0; k < x->n_operands; k++)
        if (types[k] == TYPE_F64)
            wide = TYPE_F64;
    for (int32_t k = 0; k < x->n_operands; k++)
        v[k] = scalar_convert(a, types[k], wide, args[k]);
    if (x->op == OP_CLAMP)
        r = clamp(a, wide, v[0], v[1], v[2]);
    else if (x->op == OP_REDUCE_PRECISION)
        r = reduce_precision(a, x, wide, v[0]);
    else
        r = x->n_operands == 1 ? scalar_unary(a, x->op, wide, v[0]) : scalar_binary(a, x->op, wide, v[0], v[1]);
    return scalar_convert(a, wide, x->shape->type, r);
}

/* Whether all elements of x are one constant. */
static bool is_everywhere(const Lower *L, const Inst *x, double *v)
{
    int32_t leaf = 0;
    for (x = resolve(L, x, &leaf); x->op == OP_BROADCAST || x->op == OP_RESHAPE; x = resolve(L, inst_operand(x, 0), &leaf))
        ;
    const Literal *l = x->op == OP_CONSTANT ? x->literal : map_get(&L->inlined, x);
    bool           known = l && l->count == 1 && type_is_float(l->type) && !l->elided;
    *v = known ? literal_get_f64(l, 0) : NAN;
    return known;
}

/* Whether the floats of x are NaN, or between bounds that the integers of type t have, however they are rounded: they were clamped. */
static bool fits_in(const Lower *L, const Inst *x, Type t)
{
    int32_t leaf = 0;
    double  lo, hi;
    for (x = resolve(L, x, &leaf); x->op == OP_ROUND_NEAREST_EVEN || x->op == OP_ROUND_NEAREST_AFZ || x->op == OP_FLOOR || x->op == OP_CEIL;
         x = resolve(L, inst_operand(x, 0), &leaf))
        ;
    if (x->op != OP_CLAMP || !is_everywhere(L, inst_operand(x, 0), &lo) || !is_everywhere(L, inst_operand(x, 2), &hi))
        return false;
    int    bits = type_bits(t);
    double end = ldexp(1.0, type_is_signed_int(t) ? bits - 1 : bits);
    return lo >= (type_is_signed_int(t) ? -end : 0) && hi <= end - 1 && (float)hi < end;
}

/* Integers that f16 or bf16 has, as bytes are. */
static bool has_integers_of(Type t, const Inst *x)
{
    enum { OF_F16 = 2048, OF_BF16 = 256 };
    const int64_t most = t == TYPE_F16 ? OF_F16 : t == TYPE_BF16 ? OF_BF16 : -1;
    IntRange      r;
    return most > 0 && type_is_int(x->shape->type) && int_range(x, &r) && r.lo >= -most && r.hi <= most;
}

/* Arithmetic of f32, or of f16, and of integers that become f32, without a choice: gcc 12 makes no vectors of a loop that has a choice and calls a function for vectors. */
static bool is_straight(const Inst *i)
{
    const Type t = shape_is_array(i->shape) ? i->shape->type : TYPE_COUNT;
    switch (i->op) {
    case OP_IOTA: return t == TYPE_F32 || t == TYPE_S32;
    case OP_CONVERT: return t == TYPE_F32 && inst_operand(i, 0)->shape->type == TYPE_S32;
    case OP_PARAMETER: case OP_CONSTANT: case OP_BROADCAST: case OP_RESHAPE: case OP_BITCAST: case OP_TRANSPOSE: case OP_ADD: case OP_SUBTRACT: case OP_MULTIPLY: case OP_NEGATE:
        return t == TYPE_F32 || t == TYPE_F16 || t == TYPE_S32;
    case OP_DIVIDE: case OP_SQRT: case OP_RSQRT: case OP_POWER: return t == TYPE_F32 || t == TYPE_F16;
    default: return false;
    }
}

/* Whether x is computed in loops of vectors that nothing else is in: not once a row beside sums, where a function for vectors has one number and costs what they hold. */
static bool is_along_loops(const Lower *L, const Inst *x)
{
    enum { LEAST = 64 };
    bool along = !L->plan->plain && shape_count(x->shape) >= LEAST && is_straight(x) && shape_is_array(L->inst->shape) &&
                 shape_count(x->shape) >= shape_count(L->inst->shape);
    for (const Inst *i = L->body && along ? L->body->first : NULL; i; i = i->next)
        along &= is_straight(i);
    return along;
}

const KExpr *scalar_op(Lower *L, const Inst *x, const Type *types, const KExpr *const *args)
{
    enum { LEAST = 16 /* elements */ };
    Arena *a = L->arena;
    Type   t = types[0], to = x->shape->type;
    const KExpr *chosen;
    if (is_mixed(x, types))
        return mixed_floats(L, x, types, args);
    switch (x->op) {
    case OP_COMPARE:
        if (L->nan_last && type_is_float(t) && t != TYPE_F8E8M0FNU && !compare_is_total(x))
            return compare_nan_last(a, inst_word(x, ATTR_DIRECTION), args[0], args[1]);
        if (!compare_is_total(x) && (chosen = compare_chosen(L, inst_word(x, ATTR_DIRECTION), t, args[0], args[1])) != NULL)
            return chosen;
        return scalar_compare(a, x, t, args[0], args[1]);
    case OP_SELECT:
        if ((chosen = select_chosen(L, x, args)) != NULL)
            return chosen;
        return kx_select(a, args[0], scalar_convert(a, types[1], to, args[1]), scalar_convert(a, types[2], to, args[2]));
    case OP_CLAMP: return clamp(a, to, args[0], args[1], args[2]);
    case OP_CONVERT:
        if ((t == TYPE_F32 || t == TYPE_F64) && type_is_int(to) && fits_in(L, inst_operand(x, 0), to))
            return call1(a, machine_type(to), arena_printf(a, "%s_in_%s", type_name(t), type_name(to)), args[0]);
        if (has_integers_of(to, inst_operand(x, 0)))
            return kx_cast(a, TYPE_F32, args[0]);
        return scalar_convert(a, t, to, args[0]);
    case OP_RSQRT: /* no number of f16 has one that is nearer than 2.9 ulp of f32 to where the next one of f16 begins */
        if (is_along_loops(L, x))
            return scalar_round(a, to, math1(a, to, "rsqrt", args[0]));
        break;
    case OP_POWER: /* else C's, which gcc may call for vectors whether it is wanted or not */
        if (to == TYPE_F32 && !is_half(args[1]) && is_along_loops(L, x))
            return call2(a, TYPE_F32, "pow_f32", args[0], args[1]);
        break;
    case OP_DIVIDE: case OP_REMAINDER: /* by floats, which vectors divide; one alone is divided sooner by the processor */
        if ((to == TYPE_S64 || to == TYPE_U64) && !L->plan->plain && shape_count(x->shape) >= LEAST)
            return call2(a, to, arena_printf(a, "%s_along_%s", x->op == OP_DIVIDE ? "div" : "rem", type_name(to)), args[0], args[1]);
        break;
    case OP_REDUCE_PRECISION: return reduce_precision(a, x, t, args[0]);
    case OP_STOCHASTIC_CONVERT: return stochastic(a, x, types[1], args[0], args[1]);
    case OP_BITCAST_CONVERT:
    case OP_BITCAST: return t == to ? args[0] : scalar_from_bits(a, to, scalar_bits(a, t, args[0]));
    default: break;
    }
    /* real, imag, abs, complex and is-finite go by their operand's type. */
    bool by_operand = x->op == OP_REAL || x->op == OP_IMAG || x->op == OP_ABS || x->op == OP_COMPLEX || x->op == OP_IS_FINITE;
    Type of = by_operand ? t : to;
    return x->n_operands == 1 ? scalar_unary(a, x->op, of, args[0]) : scalar_binary(a, x->op, of, args[0], args[1]);
}

/* False for type combinations that have no meaning when run. */
bool scalar_op_supported(const Inst *x)
{
    Type t = x->n_operands ? inst_operand(x, 0)->shape->type : TYPE_COUNT, to = x->shape->type;
    switch (x->op) {
    case OP_REMAINDER: case OP_MAXIMUM: case OP_MINIMUM: case OP_CLAMP: return !type_is_complex(to);
    case OP_MULHI: return type_is_int(to) && type_bits(to) >= 8;
    case OP_AND: case OP_OR: case OP_XOR: case OP_NOT: return type_is_int(to) || to == TYPE_PRED;
    case OP_SHIFT_LEFT: case OP_SHIFT_RIGHT_ARITHMETIC: case OP_SHIFT_RIGHT_LOGICAL: case OP_POPCNT: case OP_COUNT_LEADING_ZEROS:
        return type_is_int(to);
    case OP_COMPLEX: return t == TYPE_F32 || t == TYPE_F64;
    case OP_IS_FINITE: return type_is_float(t);
    case OP_STOCHASTIC_CONVERT: return type_is_signed_int(to);
    case OP_BITCAST_CONVERT: case OP_BITCAST: return t == to || (!type_is_complex(t) && !type_is_complex(to));
    case OP_POWER: return to != TYPE_PRED;
    default: return true;
    }
}
