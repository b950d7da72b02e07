/* Opcodes that go by indices and by order: dynamic slices, gather, scatter, sort, topk. Indices run over both ends. */
#include "driver/sweep.h"

static const Type index_types[] = {TYPE_S32, TYPE_S64, TYPE_U8, TYPE_S8, TYPE_U32, TYPE_U64, TYPE_S16, TYPE_S4};
enum { N_INDEX_TYPES = sizeof index_types / sizeof *index_types };
static const Type value_types[] = {TYPE_F32, TYPE_U8, TYPE_C128, TYPE_BF16, TYPE_S4, TYPE_PRED, TYPE_F8E4M3FN, TYPE_F64};
enum { N_VALUE_TYPES = sizeof value_types / sizeof *value_types };

void sweep_dynamic_slice(Sweep *s, Op op)
{
    static const struct {
        const char *in, *out, *sizes;
        int rank;
    } r[] = {
        {"[10]", "[4]", "4", 1},
        {"[10,9]", "[3,9]", "3,9", 2},
        {"[9,13]{0,1}", "[5,4]", "5,4", 2},
        {"[5,6,7]", "[1,6,2]{0,2,1}", "1,6,2", 3},
        {"[7]", "[0]", "0", 1},
        {"[0,3]", "[0,2]", "0,2", 2},
    };
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (int j = 0; j < N_INDEX_TYPES * 2; j++) {
            Type ti = index_types[j / 2], t = value_types[(j + (int)k) % N_VALUE_TYPES];
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].in), *i[3] = {"", "", ""};
            for (int d = 0; d < r[k].rank; d++)
                i[d] = case_param(c, j % 2 ? VALUES_SHUFFLE : VALUES_INDEX, "%s[]", type_name(ti));
            case_root(c, SAME_BITS, "%s%s dynamic-slice(%s, %s%s%s%s%s), dynamic_slice_sizes={%s}", type_name(t), r[k].out, x,
                      i[0], r[k].rank > 1 ? ", " : "", i[1], r[k].rank > 2 ? ", " : "", i[2], r[k].sizes);
        }
    Case *c = sweep_case(s, op);
    const char *x = case_param(c, VALUES_SHUFFLE, "f32[]");
    case_root(c, SAME_BITS, "f32[] dynamic-slice(%s), dynamic_slice_sizes={}", x);
}

void sweep_dynamic_update_slice(Sweep *s, Op op)
{
    static const struct {
        const char *in, *update;
        int rank;
    } r[] = {
        {"[10]", "[4]", 1}, {"[10,9]", "[3,9]", 2}, {"[9,13]{0,1}", "[5,4]", 2}, {"[5,6,7]", "[1,6,2]{0,2,1}", 3},
        {"[7]", "[0]", 1},  {"[7]", "[7]", 1},
    };
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (int j = 0; j < N_INDEX_TYPES * 2; j++) {
            Type ti = index_types[j / 2], t = value_types[(j + (int)k) % N_VALUE_TYPES];
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].in), *i[3] = {"", "", ""};
            const char *u = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r[k].update);
            for (int d = 0; d < r[k].rank; d++)
                i[d] = case_param(c, j % 2 ? VALUES_SHUFFLE : VALUES_INDEX, "%s[]", type_name(ti));
            case_root(c, SAME_BITS, "%s%s dynamic-update-slice(%s, %s, %s%s%s%s%s)", type_name(t), r[k].in, x, u, i[0],
                      r[k].rank > 1 ? ", " : "", i[1], r[k].rank > 2 ? ", " : "", i[2]);
        }
    Case *c = sweep_case(s, op);
    const char *x = case_param(c, VALUES_SHUFFLE, "f32[]"), *u = case_param(c, VALUES_SHUFFLE, "f32[]");
    case_root(c, SAME_BITS, "f32[] dynamic-update-slice(%s, %s)", x, u);
}

typedef struct GatherRow {
    const char *in, *indices, *out, *attributes;
} GatherRow;

static const GatherRow gathers[] = {
    {"[9,3]", "[5]", "[5,3]",
     "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}"},
    {"[9,7]", "[4,2]", "[4,2]",
     "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,2}"},
    {"[9,7]", "[2,4]", "[4]",
     "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0}, index_vector_dim=0, slice_sizes={1,1}"},
    {"[4,3]", "[4,2,1]", "[4,2]",
     "offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
     "index_vector_dim=2, slice_sizes={1,1}"},
    {"[3,8,2]", "[5,2,3]", "[5,4,2,2,3]",
     "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0}, "
     "start_indices_batching_dims={2}, index_vector_dim=3, slice_sizes={1,4,2}"},
    {"[9]", "[]", "[]", "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1}"},
    {"[9]", "[1]", "[3]", "offset_dims={0}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=0, slice_sizes={3}"},
    {"[6,5]{0,1}", "[3,7]{0,1}", "[2,3,7]",
     "offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=2, slice_sizes={2,1}"},
    {"[6,5]", "[0]", "[0,5]",
     "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5}"},
    {"[6,5]", "[3]", "[0,3]",
     "offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={0,1}"},
    {"[5,6,7]", "[4,2]", "[6,4,3]",
     "offset_dims={0,2}, collapsed_slice_dims={0}, start_index_map={2,0}, index_vector_dim=1, slice_sizes={1,6,3}"},
    {"[33,64]", "[70]", "[70,64]",
     "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}"},
};

void sweep_gather(Sweep *s, Op op)
{
    for (size_t k = 0; k < sizeof gathers / sizeof *gathers; k++)
        for (int j = 0; j < N_INDEX_TYPES * 2; j++) {
            Type ti = index_types[j / 2], t = value_types[(j + (int)k) % N_VALUE_TYPES];
            const GatherRow *r = &gathers[k];
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), r->in);
            const char *i = case_param(c, j % 2 ? VALUES_SHUFFLE : VALUES_INDEX, "%s%s", type_name(ti), r->indices);
            case_root(c, SAME_BITS, "%s%s gather(%s, %s), %s", type_name(t), r->out, x, i, r->attributes);
        }
    Case *c = sweep_case(s, op); /* nothing to take from */
    const char *x = case_param(c, VALUES_SHUFFLE, "f32[4,0]"), *i = case_param(c, VALUES_INDEX, "s32[3]");
    case_root(c, SAME_BITS,
              "f32[3,0] gather(%s, %s), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
              "slice_sizes={1,0}",
              x, i);
}

static const GatherRow scatters[] = {
    /* out: the updates */
    {"[9,3]", "[5]", "[5,3]",
     "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"},
    {"[3,3]", "[5,2]", "[5,2]",
     "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1"},
    {"[9,7]", "[2,4]", "[4]",
     "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=0"},
    {"[4,3]", "[4,2,1]", "[4,2]",
     "update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
     "scatter_indices_batching_dims={0}, index_vector_dim=2"},
    {"[9]", "[]", "[]", "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0"},
    {"[9]", "[1]", "[3]",
     "update_window_dims={0}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=0"},
    {"[6,5]{0,1}", "[3,7]{0,1}", "[2,3,7]",
     "update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=2"},
    {"[6,5]", "[0]", "[0,5]",
     "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"},
    {"[5,6,7]", "[4,2]", "[6,4,3]",
     "update_window_dims={0,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={2,0}, index_vector_dim=1"},
    {"[0,6]", "[4]", "[4,6]",
     "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"},
};

/* The last of equal indices wins, sums are exact. Subtraction tells the order of the two arguments. */
static void scatter_case(Sweep *s, const GatherRow *r, Type ti, Type t, int how)
{
    static const Op bodies[] = {OP_ADD, OP_MAXIMUM, OP_SUBTRACT, OP_MULTIPLY};
    Case *c = sweep_case(s, OP_SCATTER);
    const char *x = case_param(c, VALUES_SMALL, "%s%s", type_name(t), r->in);
    const char *i = case_param(c, how % 3 == 2 ? VALUES_SHUFFLE : VALUES_INDEX, "%s%s", type_name(ti), r->indices);
    const char *u = case_param(c, VALUES_SMALL, "%s%s", type_name(t), r->out);
    const char *f = how % 5 == 4
                        ? case_comp(c, "  a = %s[] parameter(0)\n  ROOT b = %s[] parameter(1)\n", type_name(t), type_name(t))
                        : case_reducer(c,
                                       t == TYPE_PRED       ? OP_XOR
                                       : type_is_complex(t) ? OP_ADD
                                                            : bodies[how % 5],
                                       t);
    case_root(c, SAME_NUMBER, "%s%s scatter(%s, %s, %s), %s, to_apply=%s", type_name(t), r->in, x, i, u, r->attributes, f);
}

void sweep_scatter(Sweep *s, Op op)
{
    for (size_t k = 0; k < sizeof scatters / sizeof *scatters; k++)
        for (int j = 0; j < 15; j++)
            scatter_case(s, &scatters[k], index_types[(j + (int)k) % N_INDEX_TYPES],
                         value_types[(j / 2 + (int)k) % N_VALUE_TYPES], j);
    for (int k = 0; k < 2; k++) { /* two arrays at once, each body result of both */
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SMALL, "f32[9,4]"),
                   *y = case_param(c, VALUES_SMALL, k ? "s8[9,4]{0,1}" : "s32[9,4]"), *i = case_param(c, VALUES_INDEX, "s32[7]");
        const char *u = case_param(c, VALUES_SMALL, "f32[7,4]"), *v = case_param(c, VALUES_SMALL, k ? "s8[7,4]" : "s32[7,4]");
        const char *t = k ? "s8" : "s32";
        const char *f =
            case_comp(c,
                      "  a = f32[] parameter(0)\n  b = %s[] parameter(1)\n  c = f32[] parameter(2)\n  d = %s[] parameter(3)\n"
                      "  e = f32[] add(a, c)\n  f = f32[] convert(b)\n  g = f32[] add(e, f)\n  h = %s[] subtract(d, b)\n  ROOT r "
                      "= tuple(g, h)\n",
                      t, t, t);
        case_root(
            c, SAME_NUMBER,
            "scatter(%s, %s, %s, %s, %s), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
            "index_vector_dim=1, to_apply=%s",
            x, y, i, u, v, f);
    }
}

static void sort_case(Sweep *s, Type t, const char *dims, int d, const char *direction, bool stable)
{
    Case *c = sweep_case(s, OP_SORT);
    const char *x = case_param(c, VALUES_SHUFFLE, "%s%s", type_name(t), dims);
    const char *f =
        case_comp(c, "  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=%s%s\n",
                  type_name(t), type_name(t), direction, type_is_float(t) ? ", type=TOTALORDER" : "");
    case_root_if_valid(c, SAME_VALUE, "%s%s sort(%s), dimensions={%d}%s, to_apply=%s", type_name(t), dims, x, d,
                       stable ? ", is_stable=true" : "", f);
}

void sweep_sort(Sweep *s, Op op)
{
    static const struct {
        const char *dims;
        int d;
    } r[] = {{"[33]", 0},   {"[0]", 0},    {"[1]", 0}, {"[5,17]", 0}, {"[5,17]", 1}, {"[3,40,2]{0,1,2}", 1},
             {"[1000]", 0}, {"[4,0,3]", 2}};
    for (Type t = 0; t < TYPE_COUNT; t++)
        if (type_is_array(t) && !type_is_complex(t)) {
            sort_case(s, t, "[517]", 0, "LT", false);
            sort_case(s, t, "[3,67]", 1, "GT", true);
        }
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        sort_case(s, k % 2 ? TYPE_S32 : TYPE_F32, r[k].dims, r[k].d, k % 3 ? "LT" : "GT", k % 2);
    for (size_t k = 0; k < sizeof r / sizeof *r; k++) /* keys with a value that goes along */
        for (int j = 0; j < 4; j++) {
            static const char *const keys[] = {"s8", "f32", "u64", "bf16"}, *const along[] = {"s32", "c128", "f8e5m2", "s4"};
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_SMALL, "%s%s", keys[j], r[k].dims),
                       *y = case_param(c, VALUES_SHUFFLE, "%s%s", along[j], r[k].dims);
            const char *f =
                case_comp(c,
                          "  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n  c = %s[] parameter(2)\n  d = %s[] parameter(3)\n"
                          "  ROOT r = pred[] compare(a, b), direction=LT\n",
                          keys[j], keys[j], along[j], along[j]);
            case_root(c, SAME_NUMBER, "sort(%s, %s), dimensions={%d}, is_stable=true, to_apply=%s", x, y, r[k].d, f);
        }
}

void sweep_topk(Sweep *s, Op op)
{
    for (Type t = 0; t < TYPE_COUNT; t++)
        for (int k = 0; k < 3; k++) {
            static const char *const in[] = {"[3,37]", "[20]", "[2,1,9]{0,1,2}"}, *const out[] = {"[3,5]", "[20]", "[2,1,0]"};
            static const int counts[] = {5, 20, 0};
            if (!type_is_array(t))
                continue;
            Case *c = sweep_case(s, op);
            case_refusable(c, type_is_complex(t));
            const char *x = case_param(c, k == 1 ? VALUES_SPECIAL : VALUES_SHUFFLE, "%s%s", type_name(t), in[k]);
            case_root_if_valid(c, SAME_VALUE, "(%s%s, s32%s) topk(%s), k=%d, largest=%s", type_name(t), out[k], out[k], x,
                               counts[k], k == 1 ? "false" : "true");
        }
}
