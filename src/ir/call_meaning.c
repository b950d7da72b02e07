/* One function a target, which builds the computation in a module of its own. */
#include "ir/call_meaning.h"

#include <string.h>

#include "ir/call_build.h"
#include "ir/call_options.h"
#include "ir/custom_call.h"
#include "ir/infer.h"
#include "ir/old_lapack.h"

typedef Inst *MeaningFn(Build *b); /* the root; NULL after build_refuse */

/* ---- elementwise functions ---- */

static Inst *mean_unary(Build *b)
{
    static const struct { const char *name; Op op; } rows[] = {
        { "acos", OP_ACOS },   { "acosh", OP_ACOSH }, { "asin", OP_ASIN }, { "asinh", OP_ASINH }, { "atanh", OP_ATANH },
        { "cosh", OP_COSH },   { "erf", OP_ERF },     { "sinh", OP_SINH }, { "tan", OP_TAN },
    };
    if (!build_takes(b, 1) || !build_arrays(b, false))
        return NULL;
    Inst *x = b->in[0];
    Type  t = x->shape->type;
    size_t k = 0;
    while (strcmp(rows[k].name, b->argument) != 0)
        if (++k == sizeof rows / sizeof *rows)
            die("no opcode for %s", b->argument);
    if (!type_is_float(t) && (!type_is_complex(t) || rows[k].op == OP_ERF))
        return build_refuse(b, "it does not take %s", type_name(t));
    return build_unary(b, rows[k].op, t, x);
}

static Inst *mean_square(Build *b)
{
    return build_takes(b, 1) && build_arrays(b, false) ? build_binary(b, OP_MULTIPLY, b->in[0], b->in[0]) : NULL;
}

static Inst *mean_atan(Build *b)
{
    if (!build_takes(b, 1) || !build_arrays(b, false))
        return NULL;
    Inst *x = b->in[0];
    if (!type_is_float(x->shape->type))
        return build_refuse(b, "it does not take %s", type_name(x->shape->type));
    return build_binary(b, OP_ATAN2, x, build_whole(b, x->shape, 1));
}

static Inst *mean_conj(Build *b)
{
    if (!build_takes(b, 1) || !build_arrays(b, false))
        return NULL;
    Inst *x = b->in[0];
    Type  real = x->shape->type == TYPE_C64 ? TYPE_F32 : TYPE_F64;
    if (!type_is_complex(x->shape->type))
        return x;
    Inst *parts[] = { build_unary(b, OP_REAL, real, x), build_unary(b, OP_NEGATE, real, build_unary(b, OP_IMAG, real, x)) };
    return inst_new(b->body, NULL, OP_COMPLEX, x->shape, 2, parts, NULL);
}

/* is_inf: |x| is; is_pos_inf, is_neg_inf: x is. An infinity is 1 / 0, signed. */
static Inst *mean_is_inf(Build *b)
{
    if (!build_takes(b, 1) || !build_arrays(b, false))
        return NULL;
    Inst *x = b->in[0];
    if (!type_is_float(x->shape->type))
        return build_refuse(b, "it does not take %s", type_name(x->shape->type));
    int64_t sign = strcmp(b->argument, "-") == 0 ? -1 : 1;
    Inst   *inf = build_binary(b, OP_DIVIDE, build_whole(b, x->shape, sign), build_whole(b, x->shape, 0));
    return build_compare(b, *b->argument ? x : build_unary(b, OP_ABS, x->shape->type, x), inf, CMP_EQ);
}

/* ---- order ---- */

/* A comparator that orders by two values, as they are or as their places in the total order: true for "greater first". */
static bool greater_first(Build *b, bool *greater)
{
    *greater = true;
    if (b->call->n_callees == 0)
        return true;
    const Inst *root = inst_callee(b->call, 0)->root, *value[2];
    for (int32_t k = 0; k < 2; k++) {
        const Inst *x = root->op == OP_COMPARE ? inst_operand(root, k) : root, *key = compare_key_float(x);
        value[k] = key ? key : x;
        if (value[k]->op != OP_PARAMETER)
            return false;
    }
    int64_t first = value[0]->param, second = value[1]->param;
    Word    direction = inst_word(root, ATTR_DIRECTION);
    *greater = (direction == CMP_GT) == (first == 0);
    return (direction == CMP_GT || direction == CMP_LT) && first + second == 1 && first * second == 0;
}

static Inst *mean_topk(Build *b)
{
    const CallOption *largest, *k = NULL;
    bool              greater;
    if (!build_takes(b, 1) || !build_arrays(b, false))
        return NULL;
    if (!call_options_read(b->arena, b->call, &b->options) || !greater_first(b, &greater))
        return build_refuse(b, "its order or its options are not understood");
    largest = call_option(&b->options, "largest");
    k = call_option(&b->options, "k");
    const Shape *s = b->in[0]->shape, *values = build_result(b, 0);
    if (!shape_is_tuple(b->call->shape) || b->call->shape->n_elems != 2 || !shape_is_array(values) || s->rank == 0 || values->rank != s->rank ||
        values->dims[s->rank - 1] > s->dims[s->rank - 1] || type_is_complex(s->type))
        return build_refuse(b, "%s is no result of %s", shape_brief(b->arena, b->call->shape), shape_brief(b->arena, s));
    if (k && k->number != values->dims[s->rank - 1])
        return build_refuse(b, "its k is %s, and its result has %lld", k->text, (long long)values->dims[s->rank - 1]);
    const Shape *parts[] = { build_dense(b, s->type, values), build_dense(b, TYPE_S32, values) };
    Inst        *x = inst_new(b->body, NULL, OP_TOPK, shape_tuple(b->module->arena, 2, parts), 1, b->in, NULL);
    inst_set_int(x, ATTR_K, values->dims[s->rank - 1]);
    inst_set_attr(x, (Attr){ .id = ATTR_LARGEST, .value.i = largest ? largest->number != 0 : greater });
    return x;
}

static Inst *first_of(Build *b, Inst *x, int64_t dim, int64_t n)
{
    Arena      *a = b->module->arena;
    SliceRange *r = ARENA_ARRAY(a, SliceRange, x->shape->rank);
    int64_t    *dims = ARENA_ARRAY(a, int64_t, x->shape->rank);
    Slices     *v = ARENA_NEW(a, Slices);
    for (int32_t k = 0; k < x->shape->rank; k++) {
        dims[k] = k == dim ? n : x->shape->dims[k];
        r[k] = (SliceRange){ 0, dims[k], 1 };
    }
    *v = (Slices){ x->shape->rank, r };
    Inst *y = inst_new(b->body, NULL, OP_SLICE, shape_array(a, x->shape->type, x->shape->rank, dims), 1, &x, NULL);
    inst_set_attr(y, (Attr){ .id = ATTR_SLICE, .value.slices = v });
    return y;
}

/* An exact answer to an approximate question: the arrays in the comparator's order, of which the first are kept. The initial values would only fill
 * what there is too little of. */
static Inst *mean_partial_reduce(Build *b)
{
    int32_t           n = b->call->n_operands / 2;
    const CallOption *o;
    if (n == 0 || b->call->n_operands % 2 || b->call->n_callees != 1 || inst_callee(b->call, 0)->n_params != 2 * n)
        return build_refuse(b, "it takes arrays, as many initial values, and a comparator");
    if (!call_options_read(b->arena, b->call, &b->options) || !(o = call_option(&b->options, "reduction_dim")) || !o->is_number)
        return build_refuse(b, "its backend_config says no reduction_dim");
    const Shape *s = b->in[0]->shape, *out = build_result(b, 0);
    if (shape_is_tuple(b->call->shape) ? b->call->shape->n_elems != n : n != 1)
        return build_refuse(b, "it has %d results", n);
    if (!shape_is_array(s) || !shape_is_array(out) || out->rank != s->rank || o->number < 0 || o->number >= s->rank ||
        out->dims[o->number] > s->dims[o->number])
        return build_refuse(b, "%s is no result of %s", shape_brief(b->arena, out), shape_brief(b->arena, s));
    const Shape **shapes = ARENA_ARRAY(b->module->arena, const Shape *, n);
    Inst        **kept = ARENA_ARRAY(b->arena, Inst *, n);
    for (int32_t k = 0; k < n; k++) {
        shapes[k] = b->in[k]->shape;
        const Shape *p = comp_param(inst_callee(b->call, 0), 2 * k)->shape, *q = comp_param(inst_callee(b->call, 0), 2 * k + 1)->shape;
        if (!shape_is_array(shapes[k]) || !shape_same_dims(shapes[k], s) || !shape_is_scalar(p) || !shape_is_scalar(q) ||
            p->type != shapes[k]->type || q->type != shapes[k]->type)
            return build_refuse(b, "its operand %d is %s", k, shape_brief(b->arena, shapes[k]));
    }
    if (!shape_is_scalar(inst_callee(b->call, 0)->root->shape) || inst_callee(b->call, 0)->root->shape->type != TYPE_PRED)
        return build_refuse(b, "its comparator gives no pred");
    Inst *sorted = inst_new(b->body, NULL, OP_SORT, n == 1 ? shapes[0] : shape_tuple(b->module->arena, n, shapes), n, b->in, NULL);
    inst_set_ints(sorted, ATTR_DIMENSIONS, (Ints){ &o->number, 1 });
    inst_set_attr(sorted, (Attr){ .id = ATTR_IS_STABLE, .value.i = 1 });
    inst_set_callees(sorted, 1, (Comp *const[]){ inst_callee(b->call, 0) });
    for (int32_t k = 0; k < n; k++)
        kept[k] = first_of(b, n == 1 ? sorted : build_element(b, sorted, k), o->number, out->dims[o->number]);
    return shape_is_tuple(b->call->shape) ? build_tuple(b, n, kept) : kept[0];
}

/* ---- linear algebra ---- */

static Inst *library(Build *b, const char *name, const char *config, const Shape *result, int32_t n)
{
    static const char letters[TYPE_COUNT] = { [TYPE_F32] = 's', [TYPE_F64] = 'd', [TYPE_C64] = 'c', [TYPE_C128] = 'z' };
    Type              t = b->in[0]->shape->type;
    Interner         *strings = b->module->strings;
    if (!letters[t])
        return build_refuse(b, "LAPACK has no routine for %s", type_name(t));
    Inst *x = inst_new(b->body, NULL, OP_CUSTOM_CALL, result, n, b->in, NULL);
    inst_set_attr(x, (Attr){ .id = ATTR_CUSTOM_CALL_TARGET, .value.s = intern_printf(strings, "lapack_%c%s_ffi", letters[t], name) });
    inst_set_attr(x, (Attr){ .id = ATTR_BACKEND_CONFIG, .value.s = intern_str(strings, config) });
    b->why = custom_call_refused(b->arena, x);
    return b->why ? NULL : x;
}

static Inst *mean_qr(Build *b)
{
    return build_takes(b, 1) ? library(b, "geqrf", "", b->call->shape, 1) : NULL;
}

static Inst *mean_householder(Build *b)
{
    if (!build_takes(b, 2))
        return NULL;
    return library(b, type_is_complex(b->in[0]->shape->type) ? "ungqr" : "orgqr", "", b->call->shape, 2);
}

/* The configuration is "lower,sort,iterations,tolerance"; LAPACK sorts always. */
static Inst *mean_eigh(Build *b)
{
    const char *config = call_config_text(b->call);
    const Shape *s = b->call->shape;
    if (!build_takes(b, 1) || !build_arrays(b, false))
        return NULL;
    if (!shape_is_tuple(s) || s->n_elems != 2 || b->in[0]->shape->rank < 2)
        return build_refuse(b, "its result is not vectors and values");
    if ((config[0] != '0' && config[0] != '1') || config[1] != ',')
        return build_refuse(b, "its backend_config is not \"lower,sort,iterations,tolerance\"");
    Shape info = { .type = TYPE_S32, .rank = b->in[0]->shape->rank - 2, .dims = b->in[0]->shape->dims };
    const Shape *parts[] = { s->elems[0], s->elems[1], build_dense(b, TYPE_S32, &info) };
    const char *options = config[0] == '1' ? "{mode = 86 : ui8, uplo = 76 : ui8}" : "{mode = 86 : ui8, uplo = 85 : ui8}";
    Inst       *x = library(b, type_is_complex(b->in[0]->shape->type) ? "heevd" : "syevd", options, shape_tuple(b->module->arena, 3, parts), 1);
    return x ? build_tuple(b, 2, (Inst *const[]){ build_element(b, x, 0), build_element(b, x, 1) }) : NULL;
}

static Inst *mean_old_lapack(Build *b)
{
    return old_lapack(b->arena, b->body, b->in, b->call, b->argument, &b->why);
}

/* ---- bits ---- */

static bool has_type(Build *b, const Shape *s, Type t, Type u)
{
    bool ok = shape_is_array(s) && (s->type == t || s->type == u);
    if (!ok)
        build_refuse(b, "it does not take or give %s", shape_brief(b->arena, s));
    return ok;
}

static Inst *mean_combine(Build *b)
{
    if (!build_takes(b, 2) || !build_arrays(b, true) || !has_type(b, b->in[0]->shape, TYPE_U32, TYPE_U32) || !has_type(b, b->call->shape, TYPE_U64, TYPE_S64))
        return NULL;
    Inst *low = build_unary(b, OP_CONVERT, TYPE_U64, b->in[0]), *high = build_unary(b, OP_CONVERT, TYPE_U64, b->in[1]);
    Inst *x = build_binary(b, OP_OR, low, build_binary(b, OP_SHIFT_LEFT, high, build_whole(b, high->shape, 32)));
    return b->call->shape->type == TYPE_S64 ? build_unary(b, OP_CONVERT, TYPE_S64, x) : x;
}

static Inst *mean_split(Build *b)
{
    if (!build_takes(b, 1) || !has_type(b, b->in[0]->shape, TYPE_U64, TYPE_S64))
        return NULL;
    Inst *x = b->in[0];
    if (strcmp(b->argument, "high") == 0)
        x = build_binary(b, OP_SHIFT_RIGHT_LOGICAL, x, build_whole(b, x->shape, 32));
    return build_unary(b, OP_CONVERT, TYPE_U32, x);
}

static Inst *rotate_left(Build *b, Inst *x, int n)
{
    Inst *left = build_binary(b, OP_SHIFT_LEFT, x, build_whole(b, x->shape, n));
    return build_binary(b, OP_OR, left, build_binary(b, OP_SHIFT_RIGHT_LOGICAL, x, build_whole(b, x->shape, 32 - n)));
}

/* Threefry2x32 of 20 rounds. */
static Inst *mean_threefry(Build *b)
{
    static const int rotations[2][4] = { { 13, 15, 26, 6 }, { 17, 29, 16, 24 } };
    if (!build_takes(b, 4) || !build_arrays(b, true) || !has_type(b, b->in[0]->shape, TYPE_U32, TYPE_U32))
        return NULL;
    Inst *parity = build_whole(b, b->in[0]->shape, 0x1BD11BDA);
    Inst *key[] = { b->in[0], b->in[1], build_binary(b, OP_XOR, parity, build_binary(b, OP_XOR, b->in[0], b->in[1])) };
    Inst *x0 = build_binary(b, OP_ADD, b->in[2], key[0]), *x1 = build_binary(b, OP_ADD, b->in[3], key[1]);
    for (int i = 0; i < 5; i++) {
        for (int r = 0; r < 4; r++) {
            x0 = build_binary(b, OP_ADD, x0, x1);
            x1 = build_binary(b, OP_XOR, rotate_left(b, x1, rotations[i % 2][r]), x0);
        }
        x0 = build_binary(b, OP_ADD, x0, key[(i + 1) % 3]);
        x1 = build_binary(b, OP_ADD, build_binary(b, OP_ADD, x1, key[(i + 2) % 3]), build_whole(b, x1->shape, i + 1));
    }
    return build_tuple(b, 2, (Inst *const[]){ x0, x1 });
}

/* ---- sizes ---- */

/* (the whole array, its sizes) */
static Inst *mean_pad_to_static(Build *b)
{
    if (!build_takes(b, 1) || !build_arrays(b, false))
        return NULL;
    const Shape *s = inst_operand(b->call, 0)->shape;
    Inst       **parts = ARENA_ARRAY(b->arena, Inst *, s->rank + 1);
    parts[0] = b->in[0];
    for (int32_t d = 0; d < s->rank; d++)
        parts[d + 1] = inst_constant(b->body, NULL, literal_from_s64(TYPE_S32, s->dims[d]), NULL);
    return build_tuple(b, s->rank + 1, parts);
}

/* A size that is known to be the whole: a constant, or what PadToStatic says. */
static bool is_whole(const Inst *size, const Shape *s, int32_t d)
{
    if (size->op == OP_CONSTANT && shape_is_scalar(size->shape) && !size->literal->elided)
        return literal_get_s64(size->literal, 0) == s->dims[d];
    const Inst *from = size->op == OP_GET_TUPLE_ELEMENT && inst_int(size, ATTR_INDEX, 0) == d + 1 ? inst_operand(size, 0) : NULL;
    const char *target = from && from->op == OP_CUSTOM_CALL ? inst_string(from, ATTR_CUSTOM_CALL_TARGET) : NULL;
    return target && strcmp(target, "PadToStatic") == 0 && shape_compatible(from->shape->elems[0], s);
}

/* The array with sizes of its own: they must be those of its shape. */
static Inst *mean_slice_to_dynamic(Build *b)
{
    const Shape *s = inst_operand(b->call, 0)->shape;
    if (!shape_is_array(s))
        return build_refuse(b, "it does not take %s as operand 0", shape_brief(b->arena, s));
    if (!build_takes(b, s->rank + 1))
        return NULL;
    for (int32_t d = 0; d < s->rank; d++)
        if (!is_whole(inst_operand(b->call, d + 1), s, d))
            return build_refuse(b, "its size of dimension %d is not known to be %lld, and arrays smaller than their bound are not supported", d,
                          (long long)s->dims[d]);
    return b->in[0];
}

/* ---- the table ---- */

typedef struct Row {
    const char *target;
    MeaningFn  *build; /* NULL: the computation that the call names */
    const char *argument;
} Row;

static const Row rows[] = {
#define MEANING(target, build, argument) { target, build, argument },
#include "ir/call_meanings.def"
#undef MEANING
};

/* A ? of the table is one of LAPACK's letters of types. */
static bool is_target(const char *pattern, const char *target)
{
    for (; *pattern && *target; pattern++, target++)
        if (*pattern != *target && (*pattern != '?' || !strchr("sdcz", *target)))
            return false;
    return *pattern == *target;
}

static const Row *find_row(const char *target)
{
    for (size_t k = 0; target && k < sizeof rows / sizeof *rows; k++)
        if (is_target(rows[k].target, target))
            return &rows[k];
    return NULL;
}

bool call_has_meaning(const char *target)
{
    return find_row(target) != NULL;
}

static const Comp *callee(Build *b)
{
    const Comp *c = b->call->n_callees == 1 ? inst_callee(b->call, 0) : NULL;
    if (!c || c->n_params != b->call->n_operands) {
        build_refuse(b, "it names no computation of its operands");
        return NULL;
    }
    for (int32_t k = 0; k < c->n_params; k++)
        if (!shape_compatible(comp_param(c, k)->shape, inst_operand(b->call, k)->shape)) {
            build_refuse(b, "its computation takes %s as parameter %d", shape_brief(b->arena, comp_param(c, k)->shape), k);
            return NULL;
        }
    return c;
}

static void free_module(void *m)
{
    module_free(m);
}

static const Comp *built(Build *b, MeaningFn *build)
{
    b->module = module_new();
    arena_defer(b->arena, free_module, b->module);
    b->body = comp_new(b->module, intern_str(b->module->strings, "meaning"));
    b->in = ARENA_ARRAY(b->arena, Inst *, b->call->n_operands);
    for (int32_t k = 0; k < b->call->n_operands; k++)
        b->in[k] = inst_parameter(b->body, NULL, k, shape_copy(b->module->arena, inst_operand(b->call, k)->shape), NULL);
    b->body->root = build(b);
    for (Inst *i = b->body->first; i; i = i->next) {
        i->loc = b->call->loc;
        i->meta = b->call->meta;
    }
    return b->body->root ? b->body : NULL;
}

const Comp *call_meaning(Arena *a, const Inst *i, const char **why)
{
    const Row  *row = find_row(inst_string(i, ATTR_CUSTOM_CALL_TARGET));
    Build       b = { .arena = a, .call = i, .argument = row->argument };
    const Comp *c = row->build ? built(&b, row->build) : callee(&b);
    if (c && !shape_compatible(c->root->shape, i->shape)) {
        build_refuse(&b, "its result is %s, not %s", shape_brief(a, c->root->shape), shape_brief(a, i->shape));
        c = NULL;
    }
    *why = b.why;
    return c;
}
