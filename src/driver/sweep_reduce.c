/* Reductions, windows, scans, batch normalization. Whole numbers make sums exact, so that order does not matter. */
#include "driver/sweep.h"

#include <string.h>

static const Op bodies[] = {OP_ADD, OP_MAXIMUM, OP_MINIMUM, OP_MULTIPLY, OP_AND, OP_OR, OP_XOR};
enum { N_BODIES = sizeof bodies / sizeof *bodies };

/* Narrow floats round sums of whole numbers, products of complex ones grow; then order shows. */
static Same same_sum(Type t, Op op)
{
    bool rounds =
        type_is_complex(t) ? op == OP_MULTIPLY : type_is_float(t) && type_bits(t) < 32 && (op == OP_ADD || op == OP_MULTIPLY);
    return rounds ? SAME_NORM : SAME_NUMBER;
}

static void reduce_case(Sweep *s, Type t, Op body, Values v, const char *in, const char *out, const char *dims)
{
    Case *c = sweep_case(s, OP_REDUCE);
    const char *x = case_param(c, v, "%s%s", type_name(t), in), *init = case_param(c, VALUES_SMALL, "%s[]", type_name(t)),
               *f = case_reducer(c, body, t);
    case_units(c, 8); /* each step rounds */
    case_refusable(c, type_is_complex(t));
    case_root_if_valid(c, same_sum(t, body), "%s%s reduce(%s, %s), dimensions={%s}, to_apply=%s", type_name(t), out, x, init,
                       dims, f);
}

/* The largest and its place, as argmax has it. */
static void argmax_case(Sweep *s, Type t, const char *in, const char *out, const char *dims, int d, const char *layout)
{
    Case *c = sweep_case(s, OP_REDUCE);
    const char *x = case_param(c, VALUES_SPECIAL, "%s%s%s", type_name(t), in, layout),
               *lowest = case_param(c, VALUES_SMALL, "%s[]", type_name(t));
    const char *i = case_let(c, "s32%s iota(), iota_dimension=%d", in, d), *zero = case_let(c, "s32[] constant(0)");
    const char *f = case_comp(
        c,
        "  a = %s[] parameter(0)\n  i = s32[] parameter(1)\n  b = %s[] parameter(2)\n  j = s32[] parameter(3)\n"
        "  gt = pred[] compare(a, b), direction=GT\n  no = pred[] compare(a, a), direction=NE\n  keep = pred[] or(gt, no)\n"
        "  eq = pred[] compare(a, b), direction=EQ\n  lt = pred[] compare(i, j), direction=LT\n  tie = pred[] and(eq, lt)\n"
        "  first = pred[] or(keep, tie)\n  v = select(keep, a, b)\n  k = select(first, i, j)\n  ROOT r = tuple(v, k)\n",
        type_name(t), type_name(t));
    case_root(c, SAME_NUMBER, "(%s%s, s32%s) reduce(%s, %s, %s, %s), dimensions={%s}, to_apply=%s", type_name(t), out, out, x, i,
              lowest, zero, dims, f);
}

void sweep_reduce(Sweep *s, Op op)
{
    static const struct {
        const char *in, *out, *dims;
    } r[] = {
        {"[5,19]", "[5]", "1"},
        {"[5,19]", "[19]", "0"},
        {"[67,33]{0,1}", "[67]", "1"},
        {"[67,33]{0,1}", "[33]", "0"},
        {"[1000]", "[]", "0"},
        {"[3,4,5]", "[4]", "0,2"},
        {"[3,4,5]", "[3,5]{0,1}", "1"},
        {"[3,4,5]{0,2,1}", "[]", "2,0,1"},
        {"[0]", "[]", "0"},
        {"[3,0,5]", "[3,5]", "1"},
        {"[0,5]", "[0]", "1"},
        {"[7]", "[7]", ""},
        {"[]", "[]", ""},
        {"[2,3,4,5,2]{3,1,0,4,2}", "[3,2]", "0,2,3"},
        {"[1,129]", "[1]", "1"},
        {"[17,128]", "[17]", "1"},
        {"[4,1,300]", "[4,1]", "2"},
        {"[300,1,4]", "[1,4]", "0"},
    };
    static const Type types[] = {TYPE_F32, TYPE_S32, TYPE_BF16, TYPE_F64, TYPE_U8};
    (void)op;
    for (Type t = 0; t < TYPE_COUNT; t++)
        for (int b = 0; b < N_BODIES && type_is_array(t); b++) {
            bool extreme = bodies[b] == OP_MAXIMUM || bodies[b] == OP_MINIMUM;
            reduce_case(s, t, bodies[b], extreme ? VALUES_SPECIAL : VALUES_SMALL, "[7,45]", "[7]", "1");
            reduce_case(s, t, bodies[b], extreme ? VALUES_SPECIAL : VALUES_SMALL, "[45,7]", "[7]", "0");
        }
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (int j = 0; j < 5 * 2; j++)
            reduce_case(s, types[j / 2], bodies[j % 2], VALUES_SPECIAL, r[k].in, r[k].out, r[k].dims);
    for (int k = 0; k < 3; k++) {
        static const Type keys[] = {TYPE_F32, TYPE_BF16, TYPE_S8};
        argmax_case(s, keys[k], "[5,37]", "[5]", "1", 1, "");
        argmax_case(s, keys[k], "[37,5]", "[5]", "0", 0, "{0,1}");
        argmax_case(s, keys[k], "[3,11,4]", "[4]", "0,1", 1, "");
        argmax_case(s, keys[k], "[3,0]", "[3]", "1", 1, "");
    }
    for (int k = 0; k < 4; k++) { /* a body that is more than one opcode, and one whose order shows */
        Case *c = sweep_case(s, OP_REDUCE);
        const char *x = case_param(c, VALUES_SMALL, k % 2 ? "s32[5,23]" : "f32[5,23]{0,1}"),
                   *init = case_param(c, VALUES_SMALL, k % 2 ? "s32[]" : "f32[]");
        const char *t = k % 2 ? "s32" : "f32";
        const char *f = case_comp(c, "  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n  n = negate(b)\n  ROOT r = %s(n, a)\n",
                                  t, t, k < 2 ? "maximum" : "add");
        case_root(c, SAME_NUMBER, "%s[5] reduce(%s, %s), dimensions={1}, to_apply=%s", t, x, init, f);
    }
}

typedef struct WindowRow {
    const char *in, *window;
} WindowRow;

static const WindowRow windows[] = {
    {"[9]", "size=3 pad=1_1"},
    {"[12]", "size=12 pad=11_0"},
    {"[12]", "size=12 pad=0_11"},
    {"[9]", "size=2 pad=-1_0"},
    {"[6]", "size=2 stride=2 lhs_dilate=2 rhs_dilate=2"},
    {"[6]", "size=2 stride=2 pad=1_0 lhs_dilate=2 rhs_dilate=2"},
    {"[7,9]", "size=3x2 stride=2x1 pad=1_1x0_1"},
    {"[7,9]{0,1}", "size=2x3 stride=1x3 pad=0_0x2_2 rhs_dilate=2x1"},
    {"[5,1]", "size=1x1 pad=3_-4x2_2"},
    {"[2,8,8,3]", "size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_1x0_1x0_0"},
    {"[2,3,17]", "size=1x1x4 stride=1x1x4"},
    {"[4]", "size=7 pad=1_1"},
    {"[0]", "size=2 pad=2_2"},
    {"[3,0]", "size=2x1"},
    {"[8,40]", "size=1x40 pad=0_0x39_0"},
    {"[40,8]", "size=40x1 pad=39_0x0_0"},
    {"[5,5]", "size=2x2 pad=-1_-1x-2_1 lhs_dilate=1x3"},
    {"[]", ""},
};

void sweep_reduce_window(Sweep *s, Op op)
{
    (void)op;
    for (size_t k = 0; k < sizeof windows / sizeof *windows; k++)
        for (int j = 0; j < 8; j++) {
            static const Type types[] = {TYPE_F32, TYPE_S32, TYPE_BF16, TYPE_F64};
            Type t = types[j / 2];
            Op body = j % 2 ? OP_MAXIMUM : OP_ADD;
            Case *c = sweep_case(s, OP_REDUCE_WINDOW);
            const char *x = case_param(c, VALUES_SPECIAL, "%s%s", type_name(t), windows[k].in),
                       *init = case_param(c, VALUES_SMALL, "%s[]", type_name(t));
            const char *f = case_reducer(c, body, t);
            const char *w = windows[k].window;
            case_root(c, SAME_NUMBER, "reduce-window(%s, %s)%s%s%s, to_apply=%s", x, init, *w ? ", window={" : "", w,
                      *w ? "}" : "", f);
        }
    for (Type t = 0; t < TYPE_COUNT; t++)
        for (int b = 0; b < N_BODIES && type_is_array(t); b++) {
            Case *c = sweep_case(s, OP_REDUCE_WINDOW);
            const char *x = case_param(c, VALUES_SMALL, "%s[3,21]", type_name(t)),
                       *init = case_param(c, VALUES_SMALL, "%s[]", type_name(t));
            const char *f = case_reducer(c, bodies[b], t);
            case_units(c, 4);
            case_refusable(c, type_is_complex(t));
            case_root_if_valid(c, same_sum(t, bodies[b]), "reduce-window(%s, %s), window={size=1x5 pad=0_0x2_2}, to_apply=%s", x,
                               init, f);
        }
    for (int k = 0; k < 2; k++) { /* two arrays at once */
        Case *c = sweep_case(s, OP_REDUCE_WINDOW);
        const char *x = case_param(c, VALUES_SMALL, "f32[3,21]"),
                   *y = case_param(c, VALUES_SMALL, "s32[3,21]%s", k ? "{0,1}" : ""), *u = case_param(c, VALUES_SMALL, "f32[]");
        const char *v = case_param(c, VALUES_SMALL, "s32[]");
        const char *f = case_comp(c, "  a = f32[] parameter(0)\n  b = s32[] parameter(1)\n  c = f32[] parameter(2)\n  d = s32[] "
                                     "parameter(3)\n  e = f32[] maximum(a, c)\n"
                                     "  f = s32[] add(b, d)\n  ROOT r = tuple(e, f)\n");
        case_root(c, SAME_NUMBER, "reduce-window(%s, %s, %s, %s), window={size=2x3 stride=1x2 pad=1_0x1_1}, to_apply=%s", x, y, u,
                  v, f);
    }
}

void sweep_select_and_scatter(Sweep *s, Op op)
{
    static const struct {
        const char *in, *source, *window;
    } r[] = {
        {"[4]", "[3]", "size=2"},
        {"[9]", "[4]", "size=3 stride=2"},
        {"[9]", "[5]", "size=3 stride=2 pad=1_1"},
        {"[6,9]", "[3,3]", "size=2x3 stride=2x3"},
        {"[6,9]{0,1}", "[6,9]", "size=3x3 pad=1_1x1_1"},
        {"[2,8,8,3]", "[2,4,4,3]", "size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_1x0_1x0_0"},
        {"[5]", "[7]", "size=1 pad=1_1"},
        {"[3]", "[0]", "size=4"},
        {"[7]", "[3]", "size=2 stride=2 pad=-1_0"},
    };
    static const Type types[] = {TYPE_F32, TYPE_S32, TYPE_BF16, TYPE_F64, TYPE_U8, TYPE_F16, TYPE_S4};
    static const char *const directions[] = {"GE", "GT", "LE", "LT"};
    (void)op;
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (int j = 0; j < 7 * 4; j++) {
            Type t = types[j / 4];
            Case *c = sweep_case(s, OP_SELECT_AND_SCATTER);
            const char *x = case_param(c, j % 3 ? VALUES_SMALL : VALUES_SPECIAL, "%s%s", type_name(t), r[k].in),
                       *y = case_param(c, VALUES_SMALL, "%s%s", type_name(t), r[k].source);
            const char *init = case_param(c, VALUES_SMALL, "%s[]", type_name(t)),
                       *scatter = case_reducer(c, j % 2 ? OP_MAXIMUM : OP_ADD, t);
            const char *select =
                case_comp(c, "  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=%s\n",
                          type_name(t), type_name(t), directions[j % 4]);
            case_root(c, SAME_NUMBER, "%s%s select-and-scatter(%s, %s, %s), window={%s}, select=%s, scatter=%s", type_name(t),
                      r[k].in, x, y, init, r[k].window, select, scatter);
        }
}

void sweep_map(Sweep *s, Op op)
{
    static const struct {
        const char *dims, *of;
    } r[] = {{"[13,7]", "0,1"}, {"[]", ""}, {"[0]", "0"}, {"[300]", "0"}, {"[3,5,7]{0,2,1}", "0,1,2"}};
    (void)op;
    for (Type t = 0; t < TYPE_COUNT; t++)
        for (size_t k = 0; k < sizeof r / sizeof *r; k++) {
            if (!type_is_array(t) || (k && t != TYPE_F32 && t != TYPE_S8))
                continue;
            Case *c = sweep_case(s, OP_MAP);
            const char *x = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].dims),
                       *y = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].dims);
            const char *f = case_comp(c,
                                      "  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n  p = pred[] compare(a, b), "
                                      "direction=EQ\n  c = %s[] add(a, b)\n"
                                      "  ROOT r = %s[] select(p, a, c)\n",
                                      type_name(t), type_name(t), type_name(t), type_name(t));
            case_root(c, SAME_VALUE, "%s%s map(%s, %s), dimensions={%s}, to_apply=%s", type_name(t), r[k].dims, x, y, r[k].of, f);
        }
}

void sweep_scan(Sweep *s, Op op)
{
    static const struct {
        const char *in, *carry;
        int d;
    } r[] = {{"[5,3]", "[3]", 0}, {"[5,3]", "[5]", 1}, {"[17]", "[]", 0}, {"[0,3]", "[3]", 0}, {"[2,1,4]{0,1,2}", "[2,4]", 1}};
    static const Type types[] = {TYPE_F32, TYPE_S32, TYPE_BF16, TYPE_U8, TYPE_C64, TYPE_S4};
    (void)op;
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (int j = 0; j < 6 * 2; j++) {
            Type t = types[j / 2];
            Case *c = sweep_case(s, OP_SCAN);
            const char *x = case_param(c, VALUES_SMALL, "%s%s", type_name(t), r[k].in),
                       *z = case_param(c, VALUES_SMALL, "%s%s", type_name(t), r[k].carry);
            const char *f =
                case_comp(c, "  x = %s%s parameter(0)\n  c = %s%s parameter(1)\n  s = subtract(x, c)\n  ROOT r = tuple(c, s)\n",
                          type_name(t), r[k].carry, type_name(t), r[k].carry);
            case_root(c, SAME_NUMBER, "(%s%s, %s%s) scan(%s, %s), dimensions={%d}, num_carries=1%s, to_apply=%s", type_name(t),
                      r[k].in, type_name(t), r[k].carry, x, z, r[k].d, j % 2 ? ", is_reverse=true" : "", f);
        }
}

/* Statistics in another order: sums of squares of numbers near 1. */
void sweep_batch_norm(Sweep *s, Op op)
{
    static const struct {
        const char *in;
        int feature, n;
    } r[] = {{"[4,3]", 1, 3},   {"[2,5,5,7]", 3, 7}, {"[2,7,3,3]{0,1,2,3}", 1, 7},
             {"[33,2]", 0, 33}, {"[5,1,3]", 0, 5},   {"[40,17]{0,1}", 1, 17}};
    static const Type types[] = {TYPE_F32, TYPE_F64, TYPE_BF16, TYPE_F16};
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (int j = 0; j < 4; j++) {
            const char *t = type_name(types[j]);
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_REAL, "%s%s", t, r[k].in),
                       *scale = case_param(c, VALUES_ABOVE, "%s[%d]", t, r[k].n),
                       *offset = case_param(c, VALUES_REAL, "%s[%d]", t, r[k].n);
            case_units(c, 64);
            if (op == OP_BATCH_NORM_TRAINING) {
                case_root(c, SAME_NORM, "batch-norm-training(%s, %s, %s), epsilon=0.25, feature_index=%d", x, scale, offset,
                          r[k].feature);
                continue;
            }
            const char *mean = case_param(c, VALUES_REAL, "%s[%d]", t, r[k].n),
                       *var = case_param(c, VALUES_ABOVE, "%s[%d]", t, r[k].n);
            if (op == OP_BATCH_NORM_INFERENCE) {
                case_root(c, SAME_NORM, "batch-norm-inference(%s, %s, %s, %s, %s), epsilon=0.001, feature_index=%d", x, scale,
                          offset, mean, var, r[k].feature);
                continue;
            }
            const char *gy = case_param(c, VALUES_REAL, "%s%s", t, r[k].in);
            case_root(c, SAME_NORM, "batch-norm-grad(%s, %s, %s, %s, %s), epsilon=0.001, feature_index=%d", x, scale, mean, var,
                      gy, r[k].feature);
        }
}
