/* sort, topk, scan. Source: reference operations 8. */
#include "ir/infer_rules.h"

/* Comparator: a0, b0, a1, b1, ... -> pred[] */
static bool check_comparator(const Infer *x)
{
    const char  *name = inst_callee(x->i, 0)->name;
    const Shape *r = callee_result(x, 0);
    if (!infer_callee_arity(x, 0, 2 * (int64_t)x->i->n_operands))
        return false;
    if (!shape_is_scalar(r) || r->type != TYPE_PRED)
        return infer_bad(x, "%%%s must return pred[], returns %s", name, infer_text(x, r));
    for (int32_t k = 0; k < 2 * x->i->n_operands; k++) {
        const Shape *p = callee_param(x, 0, k);
        Type         t = operand_shape(x, k / 2)->type;
        if (!shape_is_scalar(p) || !type_same_kind(p->type, t))
            return infer_bad(x, "parameter %d of %%%s must be %s[] as operand %d, is %s", k, name, type_name(t), k / 2,
                             infer_text(x, p));
    }
    return true;
}

const Shape *infer_sort(const Infer *x)
{
    int32_t n = x->i->n_operands;
    if (n == 0)
        return x->i->shape ? infer_fail(x, "expects an operand") : shape_tuple(x->a, 0, NULL);
    if (!x->i->shape && n == 1) /* XLA's parser does not look, and of several at their dimensions alone */
        return operand_shape(x, 0);
    for (int32_t k = 0; k < n; k++) {
        bool sizes = !x->i->shape && type_is_array(operand_shape(x, k)->type);
        if (!sizes && !infer_is_array(x, k))
            return NULL;
    }
    for (int32_t k = 1; k < n; k++)
        if (!infer_same_dims(x, 0, k))
            return NULL;
    if (x->i->shape && (infer_one_dimension(x, operand_shape(x, 0)->rank) < 0 || !check_comparator(x)))
        return NULL;
    return infer_one_or_tuple(x, n, infer_operand_shapes(x, 0, n));
}

const Shape *infer_topk(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape *s = operand_shape(x, 0);
    int64_t      k = inst_int(x->i, ATTR_K, 0);
    if (s->rank == 0)
        return infer_fail(x, "works on the last dimension, got %s", infer_text(x, s));
    if (k < 0 || k > s->dims[s->rank - 1])
        return infer_fail(x, "k is %lld, but the last dimension of %s has %lld", (long long)k, infer_text(x, s),
                          (long long)s->dims[s->rank - 1]);
    int64_t *dims = arena_copy(x->a, s->dims, (size_t)s->rank * sizeof *dims);
    dims[s->rank - 1] = k;
    const Shape *elems[2] = {infer_array(x, s->type, s->rank, dims, s->dynamic),
                             infer_array(x, TYPE_S32, s->rank, dims, s->dynamic)};
    return shape_tuple(x->a, 2, elems);
}

/* scan(inputs..., inits...) with a body (slices..., carries...) -> (slices of outputs..., carries...) */
typedef struct Scan {
    int64_t      dim, length, carries, inputs, outputs; /* length is -1 while unknown */
    const Shape *body;
} Scan;

static const Shape *part(const Shape *s, int64_t k) { return shape_is_tuple(s) ? s->elems[k] : s; }
static int64_t      parts(const Shape *s) { return shape_is_tuple(s) ? s->n_elems : 1; }

static const Shape *without_dim(const Infer *x, const Shape *s, int64_t d)
{
    int64_t *dims = ARENA_ARRAY(x->a, int64_t, s->rank);
    int32_t  n = 0;
    for (int32_t k = 0; k < s->rank; k++)
        if (k != d)
            dims[n++] = s->dims[k];
    return infer_array(x, s->type, n, dims, NULL);
}

/* The new dimension is the next more major one to the dimension that it pushes aside. */
static const Shape *with_dim(const Infer *x, const Shape *s, int64_t d, int64_t size)
{
    int64_t *dims = ARENA_ARRAY(x->a, int64_t, (int64_t)s->rank + 1);
    for (int32_t k = 0, n = 0; k <= s->rank; k++)
        dims[k] = k == d ? size : s->dims[n++];
    Ints    order = ints_make(x->a, s->rank + 1);
    int32_t n = 0;
    if (d == s->rank)
        *ints_at(order, n++) = d;
    for (int32_t k = 0; k < s->rank; k++) {
        int64_t old = layout_dim(s, k);
        *ints_at(order, n++) = old < d ? old : old + 1;
        if (old == d && n <= s->rank)
            *ints_at(order, n++) = d;
    }
    const Shape *result = infer_array(x, s->type, s->rank + 1, dims, NULL);
    return shape_with_layout(x->a, result, layout_from_order(x->a, order));
}

static bool scan_numbers(const Infer *x, Scan *v)
{
    Ints dims = inst_ints(x->i, ATTR_DIMENSIONS);
    v->carries = inst_int(x->i, ATTR_NUM_CARRIES, 0);
    v->body = callee_result(x, 0);
    if (dims.n != 1 || dims.v[0] < 0)
        return infer_bad(x, "dimensions must name one dimension");
    v->dim = dims.v[0];
    if (v->carries < 0 || v->carries > x->i->n_operands || (x->i->shape && v->carries > parts(v->body)))
        return infer_bad(x, "num_carries is %lld, with %d operands and a body that returns %s", (long long)v->carries,
                         x->i->n_operands, infer_text(x, v->body));
    v->inputs = x->i->n_operands - v->carries;
    v->outputs = parts(v->body) > v->carries ? parts(v->body) - v->carries : 0;
    if (v->inputs == 0 && v->outputs == 0)
        return infer_bad(x, "has neither inputs nor outputs");
    v->length = -1;
    return infer_callee_arity(x, 0, x->i->n_operands);
}

static bool scan_inputs(const Infer *x, Scan *v)
{
    for (int32_t k = 0; k < v->inputs; k++) {
        const Shape *s = operand_shape(x, k), *p = callee_param(x, 0, k);
        if (!infer_is_array(x, k))
            return false;
        if (v->dim >= s->rank)
            return infer_bad(x, "dimension %lld is out of range for input %s", (long long)v->dim, infer_text(x, s));
        if (x->i->shape && v->length >= 0 && s->dims[v->dim] != v->length)
            return infer_bad(x, "inputs differ in size along dimension %lld: %lld and %lld", (long long)v->dim,
                             (long long)v->length, (long long)s->dims[v->dim]);
        if (v->length < 0)
            v->length = s->dims[v->dim];
        const Shape *slice = without_dim(x, s, v->dim);
        if (x->i->shape && !shape_compatible(p, slice))
            return infer_bad(x, "parameter %d of %%%s must be %s, is %s", k, inst_callee(x->i, 0)->name, infer_text(x, slice),
                             infer_text(x, p));
    }
    return true;
}

static bool scan_carries(const Infer *x, const Scan *v)
{
    for (int64_t k = 0; x->i->shape && k < v->carries; k++) {
        const Shape *p = callee_param(x, 0, (int32_t)(v->inputs + k)), *r = part(v->body, v->outputs + k);
        const Shape *init = operand_shape(x, (int32_t)(v->inputs + k));
        if (!shape_compatible(p, r) || !shape_compatible(init, p))
            return infer_bad(x, "carry %lld must keep its type: initially %s, parameter %s, result %s", (long long)k,
                             infer_text(x, init), infer_text(x, p), infer_text(x, r));
    }
    return true;
}

/* Without inputs the length is that of the outputs as written. */
static bool scan_length(const Infer *x, Scan *v)
{
    const Shape *w = x->i->shape;
    if (v->length >= 0)
        return true;
    const Shape *first = w && parts(w) > 0 ? part(w, 0) : NULL;
    if (!first || !shape_is_array(first) || v->dim >= first->rank || first->dims[v->dim] < 0)
        return infer_bad(x, "without inputs, the written type of the outputs must have dimension %lld", (long long)v->dim);
    v->length = first->dims[v->dim];
    return true;
}

/* Where the type is left out, XLA's parser takes what the body returns without a look at its parameters. */
const Shape *infer_scan(const Infer *x)
{
    Scan v = {0};
    if (!scan_numbers(x, &v) || !scan_inputs(x, &v) || !scan_carries(x, &v) || !scan_length(x, &v))
        return NULL;
    int32_t       n = (int32_t)parts(v.body);
    const Shape **elems = ARENA_ARRAY(x->a, const Shape *, n);
    for (int32_t k = 0; k < n; k++) {
        const Shape *r = part(v.body, k);
        if (k >= v.outputs) {
            elems[k] = r;
            continue;
        }
        if (!shape_is_array(r) || v.dim > r->rank)
            return infer_fail(x, "result %d of %%%s, %s, cannot get dimension %lld", k, inst_callee(x->i, 0)->name,
                              infer_text(x, r), (long long)v.dim);
        elems[k] = with_dim(x, r, v.dim, v.length);
    }
    return shape_is_tuple(v.body) ? shape_tuple(x->a, n, elems) : elems[0];
}
