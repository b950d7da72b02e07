/* Shape inference on instructions that no text could give: every opcode with operands, attributes and callees drawn at random must
 * end in a shape or in a report, and never in anything else. Some results by hand, for the types that the text leaves out. */
#include "ir/infer.h"
#include "ir/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

static uint64_t state = 1;

static uint64_t below(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

static int64_t some_number(void)
{
    static const int64_t odd[] = {-1, 7, INT64_MAX, INT64_MIN, (int64_t)1 << 40, INT32_MAX, -9};
    return below(12) == 0 ? odd[below(sizeof odd / sizeof *odd)] : (int64_t)below(4);
}

static Ints some_numbers(Arena *a)
{
    Ints x = ints_make(a, (int32_t)below(4));
    for (int32_t k = 0; k < x.n; k++)
        *ints_at(x, k) = some_number();
    return x;
}

static const Shape *some_array(Arena *a)
{
    static const Type types[] = {TYPE_F32,  TYPE_F32, TYPE_PRED, TYPE_S32, TYPE_U32,
                                 TYPE_BF16, TYPE_C64, TYPE_S4,   TYPE_U64, TYPE_F8E4M3FN};
    int64_t           dims[4];
    int32_t           rank = (int32_t)below(5);
    for (int32_t k = 0; k < rank; k++)
        dims[k] = below(30) == 0 ? (below(2) ? DIM_UNBOUNDED : INT64_MAX) : (int64_t)below(4);
    Shape *s = ARENA_NEW(a, Shape);
    *s = *shape_array(a, types[below(10)], rank, dims);
    bool *dynamic = ARENA_ARRAY(a, bool, rank);
    for (int32_t k = 0; k < rank; k++)
        dynamic[k] = dims[k] == DIM_UNBOUNDED || below(3) == 0;
    if (below(4) == 0)
        s->dynamic = dynamic;
    if (below(10) == 0) {
        Layout *l = ARENA_NEW(a, Layout); /* often no permutation */
        l->minor_to_major = ints_make(a, rank);
        for (int32_t k = 0; k < rank; k++)
            *ints_at(l->minor_to_major, k) = some_number();
        s->layout = l;
    }
    s->buffer = below(30) == 0;
    return s;
}

static const Shape *some_shape(Arena *a, int depth)
{
    uint64_t kind = below(12);
    if (kind == 0)
        return shape_scalar(a, below(4) ? TYPE_TOKEN : TYPE_OPAQUE);
    if (kind > 2 || depth > 2)
        return some_array(a);
    const Shape *elems[4];
    int32_t      n = (int32_t)below(5);
    for (int32_t k = 0; k < n; k++)
        elems[k] = some_shape(a, depth + 1);
    return shape_tuple(a, n, elems);
}

/* Shapes from a small pool, so that operands often agree. */
enum { POOL = 6 };
static const Shape *pool[POOL];

static Comp *some_comp(Module *m, Inst **out, int32_t n)
{
    Comp *c = comp_new(m, comp_unique_name(m, "c"));
    for (int32_t k = 0; k < n; k++)
        out[k] = inst_parameter(c, NULL, k, below(3) ? pool[below(POOL)] : some_shape(m->arena, 0), NULL);
    c->root = out[below((uint64_t)n)];
    return c;
}

static bool some_value(Arena *a, AttrId id, Attr *x)
{
    *x = (Attr){.id = id};
    switch (attr_info[id].cls) {
    case ATTR_CLASS_INT:
        x->value.i = some_number();
        return true;
    case ATTR_CLASS_BOOL:
        x->value.i = (int64_t)below(2);
        return true;
    case ATTR_CLASS_NUMBER:
        x->value.f = 0.5;
        return true;
    case ATTR_CLASS_STRING:
        x->value.s = below(3) ? "Pin" : "other";
        return true;
    case ATTR_CLASS_WORD:
        x->value.i = attr_word_default(id) + (int64_t)below(3);
        return x->value.i < WORD_COUNT && attr_words[x->value.i].attr == id;
    case ATTR_CLASS_INTS:
    case ATTR_CLASS_INTS_OR_LISTS:
        x->value.ints = some_numbers(a);
        return true;
    case ATTR_CLASS_LISTS: {
        IntsList *l = ARENA_NEW(a, IntsList);
        Ints     *v = ARENA_ARRAY(a, Ints, 3);
        *l = (IntsList){v, (int32_t)below(4)};
        for (int32_t k = 0; k < l->n; k++)
            v[k] = below(9) ? ints_copy(a, (Ints){(int64_t[]){some_number(), some_number()}, 2}) : some_numbers(a);
        x->value.lists = l;
        return true;
    }
    case ATTR_CLASS_SLICES: {
        Slices     *l = ARENA_NEW(a, Slices);
        SliceRange *v = ARENA_ARRAY(a, SliceRange, 4);
        *l = (Slices){(int32_t)below(5), v};
        for (int32_t k = 0; k < l->n; k++)
            v[k] = (SliceRange){some_number(), some_number(), some_number()};
        x->value.slices = l;
        return true;
    }
    case ATTR_CLASS_PADDING: {
        Padding *l = ARENA_NEW(a, Padding);
        PadDim  *v = ARENA_ARRAY(a, PadDim, 4);
        *l = (Padding){(int32_t)below(5), v, true};
        for (int32_t k = 0; k < l->n; k++)
            v[k] = (PadDim){some_number(), some_number(), some_number()};
        x->value.padding = l;
        return true;
    }
    case ATTR_CLASS_WINDOW: {
        Window    *l = ARENA_NEW(a, Window);
        WindowDim *v = ARENA_ARRAY(a, WindowDim, 4);
        *l = (Window){(int32_t)below(5), v};
        for (int32_t k = 0; k < l->n; k++)
            v[k] = (WindowDim){some_number(), some_number(), some_number(), some_number(), some_number(), some_number(), false};
        x->value.window = l;
        return true;
    }
    case ATTR_CLASS_DIM_LABELS: {
        DimLabels *l = ARENA_NEW(a, DimLabels);
        *l = (DimLabels){(int32_t)below(3), some_number(), some_number(), some_number(), some_number(),
                         some_number(),     some_number(), {0},           {0},           {0}};
        for (int32_t k = 0; k < l->spatial; k++) {
            l->lhs_spatial[k] = k + 2;
            l->rhs_spatial[k] = below(5) ? k + 2 : some_number();
            l->out_spatial[k] = below(5) ? k + 2 : some_number();
        }
        x->value.dim_labels = l;
        return true;
    }
    case ATTR_CLASS_SHAPE:
        x->value.shape = some_shape(a, 0);
        return true;
    default:
        return false;
    }
}

/* One instruction of this opcode in a module of its own. */
static Inst *some_inst(Module *m, Op op)
{
    Inst   *params[8], *operands[8];
    Comp   *callees[4];
    int32_t n = op_info[op].operands, calls = (int32_t)below(4);
    for (int32_t k = 0; k < POOL; k++)
        pool[k] = k == 0 ? shape_scalar(m->arena, TYPE_PRED) : some_array(m->arena);
    if (op == OP_WHILE || op == OP_SELECT_AND_SCATTER)
        calls = 2;
    else if (op_has(op, F_CALLS) && below(8))
        calls = 1;
    for (int32_t k = 0; k < calls; k++)
        callees[k] = some_comp(m, params, 1 + (int32_t)below(6));
    Comp *c = some_comp(m, params, 8);
    m->entry = c;
    if (n == MANY || below(20) == 0)
        n = (int32_t)below(8);
    for (int32_t k = 0; k < n; k++)
        operands[k] = params[below(8)];
    const Shape *s = op_has(op, F_INFERS) && below(2) ? NULL : below(2) ? pool[below(POOL)] : some_shape(m->arena, 0);
    Inst        *i = inst_new(c, NULL, op, s, n, operands, NULL);
    if (op_has(op, F_CALLS))
        inst_set_callees(i, calls, callees);
    int           rows;
    const OpAttr *row = op_attrs(op, &rows);
    for (int k = 0; k < rows; k++) {
        Attr x;
        if ((row[k].required ? below(30) : below(2)) && some_value(m->arena, row[k].attr, &x))
            inst_set_attr(i, x);
    }
    return i;
}

static void test_hostile(void)
{
    int good = 0;
    for (Op op = 0; op < OP_COUNT; op++) {
        if (op == OP_PARAMETER)
            continue;
        for (int k = 0; k < 250; k++) {
            Module *m = module_new();
            Diag    d;
            diag_init(&d, m->arena);
            Inst        *i = some_inst(m, op);
            const Shape *s = infer_shape(m->arena, i, &d);
            CHECK((s != NULL) == (d.errors == 0));
            good += s != NULL;
            if (!i->shape)
                i->shape = s;
            if (s)
                (void)shape_text(m->arena, s);
            i->comp->root = i;
            verify_module(m, &d);
            CHECK(s || d.errors > 0);
            module_free(m);
        }
    }
    CHECK(good > 5000);
    puts("ok hostile");
}

static void test_windows(void)
{
    WindowDim w = {.size = 3, .stride = 1, .pad_lo = 1, .pad_hi = 1, .base_dilation = 1, .window_dilation = 1};
    CHECK(window_output_size(&w, 4) == 4);
    CHECK(window_output_size(&w, 0) == 0);
    w = (WindowDim){.size = 2, .stride = 2, .base_dilation = 2, .window_dilation = 2};
    CHECK(window_output_size(&w, 4) == 3); /* 7 with holes, the window spans 3 */
    w = (WindowDim){.size = 2, .stride = 1, .pad_lo = -1, .base_dilation = 1, .window_dilation = 1};
    CHECK(window_output_size(&w, 4) == 2);
    CHECK(window_output_size(&w, 0) == -1); /* less than nothing is left */
    w = (WindowDim){.size = 1, .stride = 1, .pad_lo = INT64_MAX, .base_dilation = INT64_MAX, .window_dilation = 1};
    CHECK(window_output_size(&w, 4) == -1);
    puts("ok windows");
}

static void expect(Module *m, Inst *i, const char *text)
{
    Diag d;
    diag_init(&d, m->arena);
    const Shape *s = infer_shape(m->arena, i, &d);
    Buf          b = {0};
    if (s)
        shape_print(&b, s, true);
    if (strcmp(s ? b.p : "none", text) != 0) {
        fprintf(stderr, "%s: got %s, expected %s\n", op_name(i->op), s ? b.p : "none", text);
        diag_print(&d, stderr, false);
        exit(1);
    }
    buf_free(&b);
}

/* Types left out: scalars and ones stretch, transpose keeps memory as it is, mixed precision widens. */
static void test_left_out(void)
{
    Module *m = module_new();
    Comp   *c = comp_new(m, "c");
    Arena  *a = m->arena;
    int64_t d23[] = {2, 3}, d13[] = {1, 3}, d21[] = {2, 1}, order[] = {1, 0};
    Inst   *p = inst_parameter(c, NULL, 0, shape_array(a, TYPE_F32, 2, d23), NULL);
    Inst   *row = inst_parameter(c, NULL, 1, shape_array(a, TYPE_BF16, 2, d13), NULL);
    Inst   *column = inst_parameter(c, NULL, 2, shape_array(a, TYPE_F16, 2, d21), NULL);
    Inst   *scalar = inst_parameter(c, NULL, 3, shape_scalar(a, TYPE_F32), NULL);
    expect(m, inst_new(c, NULL, OP_ADD, NULL, 2, (Inst *[]){row, column}, NULL), "bf16[2,3]{1,0}");
    expect(m, inst_new(c, NULL, OP_ADD, NULL, 2, (Inst *[]){scalar, p}, NULL), "f32[2,3]{1,0}");
    expect(m, inst_new(c, NULL, OP_COMPLEX, NULL, 2, (Inst *[]){p, p}, NULL), "c64[2,3]{1,0}");
    expect(m, inst_new(c, NULL, OP_ADD, shape_array(a, TYPE_F32, 2, d23), 2, (Inst *[]){scalar, p}, NULL), "none");
    Inst *t = inst_new(c, NULL, OP_TRANSPOSE, NULL, 1, &p, NULL);
    inst_set_ints(t, ATTR_DIMENSIONS, (Ints){order, 2});
    expect(m, t, "f32[3,2]{0,1}");
    module_free(m);
    puts("ok left_out");
}

int main(void)
{
    test_windows();
    test_left_out();
    test_hostile();
    return 0;
}
