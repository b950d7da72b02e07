/* Shape inference: dispatch by ops.def and the checks that hold for every opcode. The rules are in infer_*.c. */
#include "ir/infer.h"

#include <string.h>

#include "ir/infer_rules.h"

typedef const Shape *(*InferRule)(const Infer *x);
static const InferRule rules[OP_COUNT] = {
#define OP(id, text, n, family, rule, flags) [OP_##id] = infer_##rule,
#include "ir/ops.def"
#undef OP
};

static void report(const Infer *x, const char *fmt, va_list ap)
{
    inst_error(x->d, x->i, "%s: %s", op_name(x->i->op), arena_vprintf(x->a, fmt, ap));
}

const Shape *infer_fail(const Infer *x, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(x, fmt, ap);
    va_end(ap);
    return NULL;
}

bool infer_bad(const Infer *x, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(x, fmt, ap);
    va_end(ap);
    return false;
}

const char *infer_text(const Infer *x, const Shape *s) { return shape_brief(x->a, s); }

bool infer_is_array(const Infer *x, int32_t k)
{
    const Shape *s = operand_shape(x, k);
    if (!shape_is_array(s))
        return infer_bad(x, "operand %d must be an array, got %s", k, infer_text(x, s));
    if (shape_is_unbounded(s) && (x->i->shape || !op_has(x->i->op, F_ELEMENTWISE)))
        return infer_bad(x, "operand %d has a dimension without bound: %s", k, infer_text(x, s));
    return true;
}

bool infer_are_arrays(const Infer *x)
{
    for (int32_t k = 0; k < x->i->n_operands; k++)
        if (!infer_is_array(x, k))
            return false;
    return true;
}

bool infer_is_scalar(const Infer *x, int32_t k)
{
    const Shape *s = operand_shape(x, k);
    return shape_is_scalar(s) || infer_bad(x, "operand %d must be a scalar, got %s", k, infer_text(x, s));
}

bool infer_same_dims(const Infer *x, int32_t a, int32_t b)
{
    const Shape *s = operand_shape(x, a), *t = operand_shape(x, b);
    return shape_same_dims(s, t) ||
           infer_bad(x, "operands %d and %d differ in dimensions: %s and %s", a, b, infer_text(x, s), infer_text(x, t));
}

bool infer_same_kind(const Infer *x, int32_t a, int32_t b)
{
    const Shape *s = operand_shape(x, a), *t = operand_shape(x, b);
    return type_same_kind(s->type, t->type) ||
           infer_bad(x, "operands %d and %d differ in element type: %s and %s", a, b, infer_text(x, s), infer_text(x, t));
}

bool infer_same_type(const Infer *x, int32_t a, int32_t b)
{
    const Shape *s = operand_shape(x, a), *t = operand_shape(x, b);
    if (!x->i->shape)
        return infer_same_kind(x, a, b);
    return s->type == t->type ||
           infer_bad(x, "operands %d and %d differ in element type: %s and %s", a, b, infer_text(x, s), infer_text(x, t));
}

bool infer_dim_list(const Infer *x, const char *what, Ints dims, int32_t rank)
{
    bool *seen = ARENA_ARRAY(x->a, bool, rank);
    for (int32_t k = 0; k < dims.n; k++) {
        int64_t v = dims.v[k];
        if (v < 0 || v >= rank)
            return infer_bad(x, "%s names dimension %lld, but the rank is %d", what, (long long)v, rank);
        if (seen[v])
            return infer_bad(x, "%s names dimension %lld twice", what, (long long)v);
        seen[v] = true;
    }
    return true;
}

bool infer_dim_list_ascending(const Infer *x, const char *what, Ints dims, int32_t rank)
{
    if (!infer_dim_list(x, what, dims, rank))
        return false;
    for (int32_t k = 1; k < dims.n; k++)
        if (dims.v[k] < dims.v[k - 1])
            return infer_bad(x, "%s must be ascending, but %lld comes before %lld", what, (long long)dims.v[k - 1],
                             (long long)dims.v[k]);
    return true;
}

int32_t infer_one_dimension(const Infer *x, int32_t rank)
{
    Ints dims = inst_ints(x->i, ATTR_DIMENSIONS);
    if (dims.n != 1) {
        infer_bad(x, "dimensions must name one dimension, got %d of them", dims.n);
        return -1;
    }
    if (dims.v[0] < 0 || dims.v[0] >= rank) {
        infer_bad(x, "dimension %lld is out of range for rank %d", (long long)dims.v[0], rank);
        return -1;
    }
    return (int32_t)dims.v[0];
}

static bool any(const bool *b, int32_t n)
{
    for (int32_t k = 0; b && k < n; k++)
        if (b[k])
            return true;
    return false;
}

const Shape *infer_array(const Infer *x, Type t, int32_t rank, const int64_t *dims, const bool *dynamic)
{
    const Shape *s = shape_array(x->a, t, rank, dims);
    if (!any(dynamic, rank))
        return s;
    Shape *u = ARENA_NEW(x->a, Shape);
    *u = *s;
    u->dynamic = arena_copy(x->a, dynamic, (size_t)rank * sizeof(bool));
    return u;
}

const Shape *infer_merge_dynamic(const Infer *x, const Shape *s, const Shape *other)
{
    if (!any(other->dynamic, other->rank) || s->rank != other->rank)
        return s;
    bool *dynamic = ARENA_ARRAY(x->a, bool, s->rank);
    for (int32_t k = 0; k < s->rank; k++)
        dynamic[k] = dim_is_dynamic(s, k) || dim_is_dynamic(other, k);
    Shape *u = ARENA_NEW(x->a, Shape);
    *u = *s;
    u->dynamic = dynamic;
    return u;
}

const Shape *infer_one_or_tuple(const Infer *x, int32_t n, const Shape *const *elems)
{
    return n == 1 ? elems[0] : shape_tuple(x->a, n, elems);
}

const Shape **infer_operand_shapes(const Infer *x, int32_t first, int32_t n)
{
    const Shape **v = ARENA_ARRAY(x->a, const Shape *, n);
    for (int32_t k = 0; k < n; k++)
        v[k] = operand_shape(x, first + k);
    return v;
}

const Shape *callee_result(const Infer *x, int32_t k) { return inst_callee(x->i, k)->root->shape; }

const Shape *callee_param(const Infer *x, int32_t k, int32_t p) { return comp_param(inst_callee(x->i, k), p)->shape; }

bool infer_callee_arity(const Infer *x, int32_t k, int64_t n)
{
    const Comp *c = inst_callee(x->i, k);
    return c->n_params == n || infer_bad(x, "%%%s must have %lld parameter%s, has %d", c->name, (long long)n, n == 1 ? "" : "s",
                                         c->n_params);
}

/* How many computations an opcode calls; -1: its rule says. */
static int32_t callee_count(Op op)
{
    switch (op) {
    case OP_WHILE:
    case OP_SELECT_AND_SCATTER:
        return 2;
    case OP_CONDITIONAL:
    case OP_CUSTOM_CALL:
    case OP_ASYNC_UPDATE:
    case OP_ASYNC_DONE:
        return -1;
    default:
        return op_has(op, F_CALLS) ? 1 : 0;
    }
}

static bool has_required(const Infer *x)
{
    int           n;
    const OpAttr *rows = op_attrs(x->i->op, &n);
    for (int k = 0; k < n; k++) {
        AttrClass cls = attr_info[rows[k].attr].cls;
        bool      is_callee = cls == ATTR_CLASS_COMP || cls == ATTR_CLASS_COMPS;
        if (rows[k].required && !is_callee && !inst_attr(x->i, rows[k].attr))
            return infer_bad(x, "attribute %s is missing", attr_info[rows[k].attr].text);
    }
    return true;
}

/* Operand and callee counts and required attributes, so that the rules need not look. */
static bool well_formed(const Infer *x)
{
    const Inst *i = x->i;
    int         want = op_info[i->op].operands;
    if (want != MANY && i->n_operands != want)
        return infer_bad(x, "expects %d operand%s, has %d", want, want == 1 ? "" : "s", i->n_operands);
    int32_t calls = callee_count(i->op);
    if (calls >= 0 && i->n_callees != calls)
        return infer_bad(x, "calls %d computation%s, has %d", calls, calls == 1 ? "" : "s", i->n_callees);
    for (int32_t k = 0; k < i->n_callees; k++)
        if (!inst_callee(i, k)->root)
            return infer_bad(x, "computation %%%s has no root", inst_callee(i, k)->name);
    if (!i->shape && !op_has(i->op, F_INFERS))
        return infer_bad(x, "the result type must be written");
    return has_required(x);
}

const Shape *infer_shape(Arena *a, const Inst *i, Diag *d)
{
    Infer x = {a, i, d};
    return well_formed(&x) ? rules[i->op](&x) : NULL;
}
