/* Opcodes that move values: each row of a table for a few types of different widths, the first row for all types. */
#include "driver/sweep.h"

#include <string.h>

#include "ir/shape.h"

/* Dimensions with layouts of the operand and the result, and the attributes. */
typedef struct Row {
    const char *in, *out, *attributes;
} Row;

static bool moves_as(Type t)
{
    return t == TYPE_F32 || t == TYPE_U8 || t == TYPE_C128 || t == TYPE_BF16 || t == TYPE_S4;
}

static bool wants(Type t, size_t row)
{
    return type_is_array(t) && (row == 0 || moves_as(t));
}

static void rows(Sweep *s, Op op, size_t n, const Row *r)
{
    for (size_t k = 0; k < n; k++)
        for (Type t = 0; t < TYPE_COUNT; t++) {
            if (!wants(t, k))
                continue;
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].in);
            case_root(c, SAME_BITS, "%s%s %s(%s)%s%s", type_name(t), r[k].out, op_name(op), x, *r[k].attributes ? ", " : "",
                      r[k].attributes);
        }
}
#define ROWS(r) (sizeof r / sizeof *r), r

void sweep_iota(Sweep *s, Op op)
{
    static const struct {
        const char *dims;
        int k;
    } r[] = {
        {"[300]", 0}, {"[70000]", 0}, {"[3,5,7]", 0}, {"[3,5,7]{0,2,1}", 1}, {"[3,5,7]{1,2,0}", 2},
        {"[0]", 0},   {"[1]", 0},     {"[2,0]", 0},   {"[5,17]{0,1}", 1},
    };
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (Type t = 0; t < TYPE_COUNT; t++) {
            if (!type_is_array(t))
                continue;
            Case *c = sweep_case(s, op);
            case_root_if_valid(c, SAME_VALUE, "%s%s iota(), iota_dimension=%d", type_name(t), r[k].dims, r[k].k);
        }
}

void sweep_broadcast(Sweep *s, Op op)
{
    static const Row r[] = {
        {"[3]", "[5,3,2]", "dimensions={1}"},
        {"[]", "[]", "dimensions={}"},
        {"[]", "[257]", "dimensions={}"},
        {"[]", "[3,0]", "dimensions={}"},
        {"[7,5]{0,1}", "[7,3,5]{0,2,1}", "dimensions={0,2}"},
        {"[5,7]", "[7,3,5]", "dimensions={2,0}"},
        {"[5,7]{0,1}", "[7,5]{0,1}", "dimensions={1,0}"},
        {"[1]", "[1,33]", "dimensions={0}"},
        {"[2,3,4]", "[4,2,5,3,2]", "dimensions={1,3,0}"},
        {"[33]", "[17,33]{0,1}", "dimensions={1}"},
        {"[0]", "[3,0]", "dimensions={1}"},
        {"[13]", "[13,9]", "dimensions={0}"},
    };
    rows(s, op, ROWS(r));
}

void sweep_reshape(Sweep *s, Op op)
{
    static const Row r[] = {
        {"[6,4]", "[3,8]", ""},
        {"[1]", "[]", ""},
        {"[]", "[1,1,1]", ""},
        {"[0,3]", "[5,0,2]", ""},
        {"[6,4]{0,1}", "[3,8]", ""},
        {"[6,4]", "[2,3,4]{0,2,1}", ""},
        {"[7,11,13]{1,0,2}", "[1001]", ""},
        {"[30]", "[2,1,3,5,1]{3,0,4,2,1}", ""},
        {"[2,3,5,7]{2,0,3,1}", "[10,21]{0,1}", ""},
        {"[1,17,1]", "[17]", ""},
        {"[12,35]{0,1}", "[35,12]{0,1}", ""},
    };
    rows(s, op, ROWS(r));
}

void sweep_bitcast(Sweep *s, Op op)
{
    static const Row r[] = {
        {"[6,4]", "[3,8]", ""},
        {"[5,7]{1,0}", "[7,5]{0,1}", ""},
        {"[5,7]{0,1}", "[7,5]{1,0}", ""},
        {"[2,3,4]{0,2,1}", "[3,4,2]{2,1,0}", ""},
        {"[1]", "[]", ""},
        {"[0,2]", "[0]", ""},
        {"[6,4]{0,1}", "[24]", ""},
    };
    static const char *const pairs[][2] = {
        {"f32[3,5]", "s32[5,3]"}, {"s16[7]{0}", "bf16[7]"}, {"u8[4,3]{0,1}", "s8[3,4]{1,0}"}, {"u64[9]", "f64[3,3]{0,1}"}};
    rows(s, op, ROWS(r));
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SHUFFLE, "%s", pairs[k][0]);
        case_root(c, SAME_BITS, "%s bitcast(%s)", pairs[k][1], x);
    }
}

void sweep_transpose(Sweep *s, Op op)
{
    static const Row r[] = {
        {"[5,7]", "[7,5]", "dimensions={1,0}"},
        {"[]", "[]", "dimensions={}"},
        {"[9]", "[9]", "dimensions={0}"},
        {"[64,48]", "[48,64]", "dimensions={1,0}"},
        {"[33,65]{0,1}", "[65,33]", "dimensions={1,0}"},
        {"[33,65]", "[65,33]{0,1}", "dimensions={1,0}"},
        {"[2,3,4]", "[4,2,3]", "dimensions={2,0,1}"},
        {"[17,1,33]", "[33,17,1]", "dimensions={2,0,1}"},
        {"[3,18,20]", "[3,20,18]", "dimensions={0,2,1}"},
        {"[3,18,20]{1,2,0}", "[20,18,3]{0,2,1}", "dimensions={2,1,0}"},
        {"[2,3,4,5,6]", "[6,4,2,5,3]", "dimensions={4,2,0,3,1}"},
        {"[2,0,3]", "[0,3,2]", "dimensions={1,2,0}"},
        {"[16,3,7]", "[3,16,7]", "dimensions={1,0,2}"},
    };
    rows(s, op, ROWS(r));
}

void sweep_reverse(Sweep *s, Op op)
{
    static const Row r[] = {
        {"[5,7]", "[5,7]", "dimensions={0,1}"}, {"[37]", "[37]", "dimensions={0}"},
        {"[1,3]", "[1,3]", "dimensions={0}"},   {"[3,33]{0,1}", "[3,33]", "dimensions={1}"},
        {"[3,0]", "[3,0]", "dimensions={0}"},   {"[2,3,4,5]", "[2,3,4,5]{0,1,2,3}", "dimensions={1,3}"},
        {"[5]", "[5]", "dimensions={}"},        {"[]", "[]", "dimensions={}"},
    };
    rows(s, op, ROWS(r));
}

void sweep_shuffle(Sweep *s, Op op)
{
    static const Row r[] = {
        {"[37]", "[37]", "dimensions={0}, mode=rotate, shifts={5}"},
        {"[5,7]", "[5,7]", "dimensions={0,1}, mode=rotate, shifts={2,-1}"},
        {"[3,33]{0,1}", "[3,33]", "dimensions={1}, mode=rotate, shifts={100}"},
        {"[3,0]", "[3,0]", "dimensions={1}, mode=rotate, shifts={1}"},
        {"[2,3,4,5]", "[2,3,4,5]{0,1,2,3}", "dimensions={3,1}, mode=rotate, shifts={4,-7}"},
        {"[1,3]", "[1,3]", "dimensions={1,0}, mode=rotate, shifts={0,3}"},
    };
    rows(s, op, ROWS(r));
}

void sweep_slice(Sweep *s, Op op)
{
    static const Row r[] = {
        {"[40]", "[13]", "slice={[2:40:3]}"},
        {"[]", "[]", "slice={}"},
        {"[5,7]", "[0,3]", "slice={[2:2],[1:4]}"},
        {"[5,7]{0,1}", "[3,4]", "slice={[1:4],[0:7:2]}"},
        {"[33,65]", "[31,33]{0,1}", "slice={[1:32],[0:65:2]}"},
        {"[3,4,5]", "[1,4,2]", "slice={[2:3:7],[0:4],[0:5:4]}"},
        {"[0,4]", "[0,2]", "slice={[0:0],[0:4:2]}"},
        {"[9]", "[0]", "slice={[9:9]}"},
        {"[2,3,4,5,6]{0,4,2,1,3}", "[1,2,2,3,2]", "slice={[1:2],[0:3:2],[1:3],[0:5:2],[3:6:2]}"},
    };
    rows(s, op, ROWS(r));
}

void sweep_pad(Sweep *s, Op op)
{
    static const Row r[] = {
        {"[5]", "[9]", "padding=1_3"},
        {"[3]", "[9]", "padding=3_-1_2"},
        {"[3]", "[3]", "padding=-1_-1_1"},
        {"[5,7]", "[0,9]", "padding=-3_-2x1_1"},
        {"[0]", "[5]", "padding=2_3"},
        {"[0]", "[1]", "padding=2_-1_4"},
        {"[5,7]{0,1}", "[11,6]", "padding=1_1_1x-2_1"},
        {"[17,33]", "[20,97]{0,1}", "padding=3_0x0_0_2"},
        {"[2,3,4]", "[4,3,8]", "padding=1_1x0_0x2_2"},
        {"[4]", "[2]", "padding=-5_0_1"},
        {"[2,3,1,2]{1,3,0,2}", "[5,1,3,2]", "padding=1_1_1x-1_-1x1_1_5x0_0"},
        {"[1]", "[6]", "padding=5_0_7"},
    };
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (Type t = 0; t < TYPE_COUNT; t++) {
            if (!wants(t, k))
                continue;
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].in),
                       *v = case_param(c, VALUES_SHUFFLE, "%s[]", type_name(t));
            case_root(c, SAME_BITS, "%s%s pad(%s, %s), %s", type_name(t), r[k].out, x, v, r[k].attributes);
        }
}

void sweep_concatenate(Sweep *s, Op op)
{
    static const struct {
        const char *x, *y, *z, *out;
        int k;
    } r[] = {
        {"[5]", "[7]", "[0]", "[12]", 0},
        {"[3,5]", "[3,1]", "[3,33]", "[3,39]", 1},
        {"[1,9]{0,1}", "[2,9]", "[3,9]", "[6,9]", 0},
        {"[2,3,4]", "[2,0,4]", "[2,2,4]{0,2,1}", "[2,5,4]{1,0,2}", 1},
        {"[0,2]", "[0,1]", "[0,3]", "[0,6]", 1},
        {"[2,2,2,1]", "[2,2,2,1]", "[2,2,2,1]", "[2,2,2,3]", 3},
    };
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (Type t = 0; t < TYPE_COUNT; t++) {
            if (!wants(t, k))
                continue;
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].x),
                       *y = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].y);
            const char *z = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].z);
            case_root(c, SAME_BITS, "%s%s concatenate(%s, %s, %s), dimensions={%d}", type_name(t), r[k].out, x, y, z, r[k].k);
            c = sweep_case(s, op);
            x = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].x);
            case_root(c, SAME_BITS, "concatenate(%s), dimensions={%d}", x, r[k].k);
        }
}

/* copy, opt-barrier, domain, add-dependency. */
void sweep_identity(Sweep *s, Op op)
{
    static const Row r[] = {{"[5,7]", "[5,7]", ""},
                            {"[]", "[]", ""},
                            {"[0,3]", "[0,3]", ""},
                            {"[33,65]{0,1}", "[33,65]", ""},
                            {"[2,3,4,5]{2,0,3,1}", "[2,3,4,5]{1,3,0,2}", ""}};
    static const Row domain[] = {{"[5,7]", "[5,7]", "domain={kind=\"sharding\", entry={replicated}, exit={maximal device=0}}"}};
    if (op == OP_DOMAIN) {
        rows(s, op, ROWS(domain));
        return;
    }
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (Type t = 0; t < TYPE_COUNT; t++) {
            if (!wants(t, k))
                continue;
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].in);
            const char *out = op == OP_COPY ? r[k].out : r[k].in;
            const char *token = op == OP_ADD_DEPENDENCY ? case_let(c, "token[] after-all()") : NULL;
            case_root(c, SAME_BITS, "%s%s %s(%s%s%s)", type_name(t), out, op_name(op), x, token ? ", " : "", token ? token : "");
        }
}

void sweep_parameter(Sweep *s, Op op)
{
    static const char *const dims[] = {"[7]", "[]", "[0]", "[3,5]{0,1}", "[2,3,4]{0,2,1}"};
    for (size_t k = 0; k < sizeof dims / sizeof *dims; k++)
        for (Type t = 0; t < TYPE_COUNT; t++) {
            if (!wants(t, k))
                continue;
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), dims[k]);
            case_root(c, SAME_BITS, "tuple(%s, %s)", x, x);
        }
}

/* Constants of all types: their text, and what becomes of them in C. */
void sweep_constant(Sweep *s, Op op)
{
    static const char *const dims[] = {"[300]", "[]", "[0]", "[13,7]{0,1}"};
    for (size_t k = 0; k < sizeof dims / sizeof *dims; k++)
        for (Type t = 0; t < TYPE_COUNT; t++) {
            Case *c = type_is_array(t) ? sweep_case(s, op) : NULL;
            if (!c)
                continue;
            int64_t n[][2] = {{300, 0}, {0, 0}, {0, 0}, {13, 7}};
            Literal *l = literal_new(t, k == 1 ? 0 : k == 3 ? 2 : 1, n[k]);
            Buf b = {0};
            values_fill(l, k == 1 ? VALUES_SHUFFLE : VALUES_EDGES, (uint64_t)c->id);
            literal_print(&b, l, true);
            case_root(c, SAME_VALUE, "%s%s constant(%s)", type_name(t), dims[k], b.p);
            literal_unref(l);
            buf_free(&b);
        }
}

void sweep_tuple(Sweep *s, Op op)
{
    Case *c = sweep_case(s, op);
    const char *x = case_param(c, VALUES_SHUFFLE, "f32[5]"), *y = case_param(c, VALUES_SHUFFLE, "s4[3,2]{0,1}"),
               *z = case_let(c, "tuple(%s, %s)", x, y);
    case_root(c, SAME_BITS, "tuple(%s, %s, %s)", z, x, z);
}

void sweep_get_tuple_element(Sweep *s, Op op)
{
    for (int k = 0; k < 2; k++) {
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SHUFFLE, "f32[5]"), *y = case_param(c, VALUES_SHUFFLE, "c64[3,2]{0,1}"),
                   *z = case_let(c, "tuple(%s, %s)", x, y);
        case_root(c, SAME_BITS, "get-tuple-element(%s), index=%d", z, k);
    }
}
