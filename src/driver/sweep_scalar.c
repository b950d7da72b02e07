/* Elementwise opcodes: every type, all patterns of narrow types, all pairs of remarkable values; then other shapes and layouts.
 */
#include "driver/sweep.h"

#include <string.h>

/* Dimensions and layout of operands, layout of the result. */
static const struct {
    const char *dims, *in, *out;
} arrays[] = {
    {"[]", "", ""},
    {"[0]", "", ""},
    {"[1]", "", ""},
    {"[7]", "", ""},
    {"[300]", "", ""},
    {"[3,0,2]", "", ""},
    {"[13,7]", "{0,1}", "{1,0}"},
    {"[7,13]", "{0,1}", "{0,1}"},
    {"[17,33]", "{1,0}", "{0,1}"},
    {"[2,3,4,5]", "{0,2,1,3}", "{3,0,1,2}"},
    {"[1,7,1,3,2]", "{2,0,1,4,3}", ""},
};
enum { N_ARRAYS = sizeof arrays / sizeof *arrays };

static const Type shape_types[] = {TYPE_F32, TYPE_BF16, TYPE_S32, TYPE_S4, TYPE_C64, TYPE_PRED, TYPE_F64};
enum { N_SHAPE_TYPES = sizeof shape_types / sizeof *shape_types };

static bool rounds_freely(Op op)
{
    return op_has(op, F_ACCURACY) || op == OP_POWER || op == OP_ATAN2;
}

/* Complex functions are sums and products of real ones in any order. */
static Same same_for(Op op, Type t)
{
    if (rounds_freely(op) || (type_is_complex(t) && op != OP_NEGATE && op != OP_COMPLEX && op != OP_REAL && op != OP_IMAG))
        return SAME_CLOSE;
    return op == OP_MAXIMUM || op == OP_MINIMUM ? SAME_NUMBER : SAME_VALUE;
}

/* What the shape rule lets through and no backend computes. */
static bool has_no_meaning(Op op, Type t)
{
    switch (op) {
    case OP_REMAINDER:
    case OP_MAXIMUM:
    case OP_MINIMUM: return type_is_complex(t);
    case OP_MULHI: return !type_is_int(t) || type_bits(t) < 8;
    case OP_SHIFT_LEFT:
    case OP_SHIFT_RIGHT_LOGICAL:
    case OP_SHIFT_RIGHT_ARITHMETIC: return !type_is_int(t);
    case OP_COMPLEX: return t != TYPE_F32 && t != TYPE_F64;
    default: return false;
    }
}

void sweep_unary(Sweep *s, Op op)
{
    for (Type t = 0; t < TYPE_COUNT; t++) {
        if (!type_is_array(t))
            continue;
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_EDGES, "%s[%lld]", type_name(t), (long long)values_single(t));
        case_root_if_valid(c, same_for(op, t), "%s(%s)", op_name(op), x);
    }
    for (int k = 0; k < N_SHAPE_TYPES * N_ARRAYS; k++) {
        Type t = shape_types[k / N_ARRAYS];
        int a = k % N_ARRAYS;
        if (op_has(op, F_ACCURACY) && k % 5) /* one loop is like another */
            continue;
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SHUFFLE, "%s%s%s", type_name(t), arrays[a].dims, arrays[a].in);
        case_root_if_valid(c, same_for(op, t), "%s(%s)", op_name(op), x);
    }
}

static void binary_shapes(Sweep *s, Op op)
{
    for (int k = 0; k < N_SHAPE_TYPES * N_ARRAYS; k++) {
        Type t = shape_types[k / N_ARRAYS];
        int a = k % N_ARRAYS;
        if (rounds_freely(op) && k % 5)
            continue;
        Case *c = sweep_case(s, op);
        Values v = op == OP_ATAN2 && type_is_complex(t) ? VALUES_REAL : VALUES_SHUFFLE;
        const char *x = case_param(c, v, "%s%s%s", type_name(t), arrays[a].dims, arrays[a].in);
        const char *y = case_param(c, v, "%s%s", type_name(t), arrays[a].dims);
        case_units(c, v == VALUES_REAL ? 256 : 0);
        case_refusable(c, has_no_meaning(op, t));
        if (op == OP_COMPLEX)
            case_root_if_valid(c, SAME_VALUE, "%s(%s, %s)", op_name(op), x, y);
        else
            case_root_if_valid(c, same_for(op, t), "%s%s%s %s(%s, %s)", type_name(t), arrays[a].dims, arrays[a].out, op_name(op),
                               x, y);
    }
}

/* Floats of different types meet in one instruction. */
static void mixed_floats(Sweep *s, Op op)
{
    static const Type pairs[][3] = {
        {TYPE_BF16, TYPE_F32, TYPE_F32}, {TYPE_F32, TYPE_F16, TYPE_F32}, {TYPE_F16, TYPE_BF16, TYPE_BF16},
        {TYPE_F32, TYPE_F32, TYPE_BF16}, {TYPE_F64, TYPE_F32, TYPE_F64}, {TYPE_F8E4M3FN, TYPE_F8E5M2, TYPE_F16},
        {TYPE_F32, TYPE_F64, TYPE_F32},
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SHUFFLE, "%s[1024]", type_name(pairs[k][0]));
        const char *y = case_param(c, VALUES_SHUFFLE, "%s[1024]", type_name(pairs[k][1]));
        case_refusable(c, has_no_meaning(op, TYPE_F32));
        case_root_if_valid(c, same_for(op, TYPE_F32), "%s[1024] %s(%s, %s)", type_name(pairs[k][2]), op_name(op), x, y);
    }
}

void sweep_binary(Sweep *s, Op op)
{
    for (Type t = 0; t < TYPE_COUNT; t++) {
        if (!type_is_array(t))
            continue;
        Case *c = sweep_case(s, op);
        long long n = values_pairs(t);
        bool tame = op == OP_ATAN2 && type_is_complex(t); /* squares of the rest overflow, and cuts are anywhere */
        const char *x = case_param(c, tame ? VALUES_REAL : VALUES_FAST, "%s[%lld]", type_name(t), n);
        const char *y = case_param(c, tame ? VALUES_REAL : VALUES_SLOW, "%s[%lld]", type_name(t), n);
        case_refusable(c, has_no_meaning(op, t));
        case_units(c, tame ? 256 : 0); /* x^2 + y^2 may be small */
        case_root_if_valid(c, same_for(op, t), "%s(%s, %s)", op_name(op), x, y);
    }
    if (op != OP_MULHI)
        binary_shapes(s, op);
    if (op != OP_COMPLEX)
        mixed_floats(s, op);
}

void sweep_compare(Sweep *s, Op op)
{
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    for (Type t = 0; t < TYPE_COUNT; t++)
        for (int k = 0; k < 12 && type_is_array(t); k++) {
            Case *c = sweep_case(s, op);
            long long n = values_pairs(t);
            const char *x = case_param(c, VALUES_FAST, "%s[%lld]", type_name(t), n);
            const char *y = case_param(c, VALUES_SLOW, "%s[%lld]", type_name(t), n);
            case_root_if_valid(c, SAME_BITS, "compare(%s, %s), direction=%s%s", x, y, directions[k % 6],
                               k >= 6 ? ", type=TOTALORDER" : "");
        }
    for (int k = 0; k < N_SHAPE_TYPES * N_ARRAYS; k++) {
        Type t = shape_types[k / N_ARRAYS];
        int a = k % N_ARRAYS;
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SHUFFLE, "%s%s%s", type_name(t), arrays[a].dims, arrays[a].in);
        const char *y = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), arrays[a].dims);
        case_root(c, SAME_BITS, "pred%s%s compare(%s, %s), direction=%s", arrays[a].dims, arrays[a].out, x, y, directions[k % 2]);
    }
}

void sweep_select(Sweep *s, Op op)
{
    for (Type t = 0; t < TYPE_COUNT; t++)
        for (int scalar = 0; scalar < 2 && type_is_array(t); scalar++) {
            Case *c = sweep_case(s, op);
            long long n = values_single(t);
            const char *p = scalar ? case_param(c, VALUES_SHUFFLE, "pred[]") : case_param(c, VALUES_SHUFFLE, "pred[%lld]", n);
            const char *x = case_param(c, VALUES_EDGES, "%s[%lld]", type_name(t), n),
                       *y = case_param(c, VALUES_SHUFFLE, "%s[%lld]", type_name(t), n);
            case_root(c, SAME_VALUE, "select(%s, %s, %s)", p, x, y);
        }
    for (int k = 0; k < N_SHAPE_TYPES * N_ARRAYS; k++) {
        Type t = shape_types[k / N_ARRAYS];
        int a = k % N_ARRAYS;
        Case *c = sweep_case(s, op);
        const char *p = case_param(c, VALUES_SHUFFLE, "pred%s%s", arrays[a].dims, arrays[a].out);
        const char *x = case_param(c, VALUES_SHUFFLE, "%s%s%s", type_name(t), arrays[a].dims, arrays[a].in);
        const char *y = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), arrays[a].dims);
        case_root(c, SAME_VALUE, "%s%s%s select(%s, %s, %s)", type_name(t), arrays[a].dims, arrays[a].out, p, x, y);
    }
    for (int k = 0; k < 2; k++) { /* the sides of different types */
        Case *c = sweep_case(s, op);
        const char *p = case_param(c, VALUES_SHUFFLE, "pred[999]"),
                   *x = case_param(c, VALUES_EDGES, k ? "f32[999]" : "bf16[999]");
        const char *y = case_param(c, VALUES_EDGES, k ? "f16[999]" : "f32[999]");
        case_root(c, SAME_VALUE, "f32[999] select(%s, %s, %s)", p, x, y);
    }
}

void sweep_clamp(Sweep *s, Op op)
{
    for (Type t = 0; t < TYPE_COUNT; t++)
        for (int scalar = 0; scalar < 2 && type_is_array(t); scalar++) {
            Case *c = sweep_case(s, op);
            long long n = values_pairs(t);
            const char *lo = scalar ? case_param(c, VALUES_SMALL, "%s[]", type_name(t))
                                    : case_param(c, VALUES_FAST, "%s[%lld]", type_name(t), n);
            const char *x = case_param(c, VALUES_SLOW, "%s[%lld]", type_name(t), n);
            const char *hi = scalar ? case_param(c, VALUES_SMALL, "%s[]", type_name(t))
                                    : case_param(c, VALUES_SHUFFLE, "%s[%lld]", type_name(t), n);
            case_refusable(c, type_is_complex(t));
            case_root_if_valid(c, SAME_NUMBER, "clamp(%s, %s, %s)", lo, x, hi);
        }
    for (int a = 0; a < N_ARRAYS; a++) {
        Case *c = sweep_case(s, op);
        const char *lo = case_param(c, VALUES_SHUFFLE, "f32%s%s", arrays[a].dims, arrays[a].in);
        const char *x = case_param(c, VALUES_SHUFFLE, "f32%s%s", arrays[a].dims, arrays[a].out),
                   *hi = case_param(c, VALUES_SHUFFLE, "f32[]");
        case_root(c, SAME_NUMBER, "clamp(%s, %s, %s)", lo, x, hi);
    }
}

void sweep_convert(Sweep *s, Op op)
{
    for (Type from = 0; from < TYPE_COUNT; from++)
        for (Type to = 0; to < TYPE_COUNT; to++) {
            if (!type_is_array(from) || !type_is_array(to))
                continue;
            Case *c = sweep_case(s, op);
            long long n = values_single(from);
            const char *x = case_param(c, VALUES_EDGES, "%s[%lld]", type_name(from), n);
            case_root_if_valid(c, SAME_VALUE, "%s[%lld] convert(%s)", type_name(to), n, x);
        }
    for (int a = 0; a < N_ARRAYS; a++) {
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SHUFFLE, "bf16%s%s", arrays[a].dims, arrays[a].in);
        case_root(c, SAME_VALUE, "f32%s%s convert(%s)", arrays[a].dims, arrays[a].out, x);
    }
}

void sweep_stochastic_convert(Sweep *s, Op op)
{
    for (Type from = 0; from < TYPE_COUNT; from++)
        for (Type to = 0; to < TYPE_COUNT; to++) {
            if (!type_is_array(from) || !type_is_float(from) || !type_is_array(to))
                continue;
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_EDGES, "%s[2048]", type_name(from)),
                       *r = case_param(c, VALUES_EDGES, "u%d[2048]", type_bits(from));
            case_refusable(c, !type_is_signed_int(to));
            case_root_if_valid(c, SAME_VALUE, "%s[2048] stochastic-convert(%s, %s)", type_name(to), x, r);
        }
}

void sweep_reduce_precision(Sweep *s, Op op)
{
    static const int formats[][2] = {{5, 10}, {8, 7},  {5, 2},   {4, 3},  {8, 0},  {1, 0},
                                     {2, 23}, {8, 23}, {11, 52}, {3, 60}, {20, 5}, {1, 22}};
    for (Type t = 0; t < TYPE_COUNT; t++)
        for (size_t k = 0; k < sizeof formats / sizeof *formats && type_is_array(t); k++) {
            Case *c = sweep_case(s, op);
            long long n = values_single(t);
            const char *x = case_param(c, VALUES_EDGES, "%s[%lld]", type_name(t), n);
            case_root_if_valid(c, SAME_VALUE, "%s[%lld] reduce-precision(%s), exponent_bits=%d, mantissa_bits=%d", type_name(t),
                               n, x, formats[k][0], formats[k][1]);
        }
}

static int stored_bits(Type t)
{
    return t == TYPE_F6E2M3FN || t == TYPE_F6E3M2FN ? 8 : type_bits(t);
}

/* The bits' owners of both widths; four groups of bits, and no group at all. */
void sweep_bitcast_convert(Sweep *s, Op op)
{
    for (Type from = 0; from < TYPE_COUNT; from++)
        for (Type to = 0; to < TYPE_COUNT; to++) {
            if (!type_is_array(from) || !type_is_array(to))
                continue;
            int a = stored_bits(from), b = stored_bits(to);
            Case *c = sweep_case(s, op);
            const char *x = a >= b ? case_param(c, VALUES_EDGES, "%s[3,67]", type_name(from))
                                   : case_param(c, VALUES_EDGES, "%s[67,%d]", type_name(from), b / a);
            case_refusable(c, type_is_complex(from) || type_is_complex(to));
            if (a == b)
                case_root_if_valid(c, SAME_BITS, "%s[3,67] bitcast-convert(%s)", type_name(to), x);
            else if (a > b)
                case_root_if_valid(c, SAME_BITS, "%s[3,67,%d] bitcast-convert(%s)", type_name(to), a / b, x);
            else
                case_root_if_valid(c, SAME_BITS, "%s[67] bitcast-convert(%s)", type_name(to), x);
        }
    static const char *const others[][2] = {
        {"u32[]", "u8[4]"},
        {"u8[4]", "u32[]"},
        {"u16[0]", "u8[0,2]"},
        {"s4[5,2]{0,1}", "s8[5]"},
        {"f32[3,5]{0,1}", "u16[3,5,2]{1,0,2}"},
        {"u8[3,5,4]{0,2,1}", "f32[3,5]{0,1}"},
        {"f64[2,3]{0,1}", "s32[2,3,2]"},
        {"pred[9]", "u8[9]"},
    };
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SHUFFLE, "%s", others[k][0]);
        case_root(c, SAME_BITS, "%s bitcast-convert(%s)", others[k][1], x);
    }
}
