/* Reductions, windows, map. Source: reference operations 2.4 and 7. */
#include "ir/infer_rules.h"

/* Result j of a reducer: the scalar itself or an element of the tuple. */
static const Shape *reducer_result(const Shape *root, int32_t j) { return shape_is_tuple(root) ? root->elems[j] : root; }

static bool check_accumulator(const Infer *x, int32_t callee, int32_t n, int32_t j, const Shape *init, Type type)
{
    const char  *name = inst_callee(x->i, callee)->name;
    const Shape *r = reducer_result(callee_result(x, callee), j);
    const Shape *acc = callee_param(x, callee, j), *value = callee_param(x, callee, n + j);
    if (!shape_is_scalar(r))
        return infer_bad(x, "%%%s must return scalars, result %d is %s", name, j, infer_text(x, r));
    if (!shape_compatible(r, acc))
        return infer_bad(x, "result %d of %%%s is %s, but its parameter %d is %s", j, name, infer_text(x, r), j,
                         infer_text(x, acc));
    if (!shape_compatible_ignoring_precision(r, init))
        return infer_bad(x, "result %d of %%%s is %s, but the initial value is %s", j, name, infer_text(x, r),
                         infer_text(x, init));
    if (!shape_compatible_ignoring_precision(r, value))
        return infer_bad(x, "result %d of %%%s is %s, but its parameter %d is %s", j, name, infer_text(x, r), n + j,
                         infer_text(x, value));
    if (!type_same_kind(r->type, type))
        return infer_bad(x, "result %d of %%%s is %s, but the elements are %s", j, name, infer_text(x, r), type_name(type));
    return true;
}

bool infer_check_reducer(const Infer *x, int32_t callee, int32_t n, const Shape *const *inits, const Type *types)
{
    const Shape *r = callee_result(x, callee);
    if (!infer_callee_arity(x, callee, 2 * (int64_t)n))
        return false;
    if (shape_is_tuple(r) ? r->n_elems != n : n != 1)
        return infer_bad(x, "%%%s must return %s, returns %s", inst_callee(x->i, callee)->name,
                         n == 1 ? "a scalar" : "a tuple with one scalar for each input", infer_text(x, r));
    for (int32_t j = 0; j < n; j++)
        if (!check_accumulator(x, callee, n, j, inits[j], types[j]))
            return false;
    return true;
}

/* The n inputs and the initial values behind them. */
static bool check_values(const Infer *x, int32_t n)
{
    Type *types = ARENA_ARRAY(x->a, Type, n);
    for (int32_t k = 0; k < n; k++) {
        if (!infer_same_dims(x, 0, k) || !infer_is_scalar(x, n + k))
            return false;
        types[k] = operand_shape(x, k)->type;
    }
    return infer_check_reducer(x, 0, n, infer_operand_shapes(x, n, n), types);
}

/* n becomes the number of inputs of a reduce or reduce-window. */
static bool check_inputs(const Infer *x, int32_t *n)
{
    *n = x->i->n_operands / 2;
    if (x->i->n_operands == 0 || x->i->n_operands % 2)
        return infer_bad(x, "expects inputs and as many initial values, has %d operand%s", x->i->n_operands,
                         x->i->n_operands == 1 ? "" : "s");
    if (x->i->op == OP_REDUCE_WINDOW && !x->i->shape) {
        *n = 1; /* XLA's parser infers that of the first input, and takes operand 1 for its initial value */
        return infer_is_array(x, 0) && check_values(x, *n);
    }
    return infer_are_arrays(x) && check_values(x, *n);
}

/* A result for each input, with the reducer's tuple-ness. */
static const Shape *results(const Infer *x, int32_t n, const Shape **elems)
{
    return shape_is_tuple(callee_result(x, 0)) ? shape_tuple(x->a, n, elems) : elems[0];
}

const Shape *infer_reduce(const Infer *x)
{
    int32_t n, rank = 0;
    Ints    reduced = inst_ints(x->i, ATTR_DIMENSIONS);
    if (!check_inputs(x, &n))
        return NULL;
    const Shape *s = operand_shape(x, 0);
    if (!infer_dim_list(x, "dimensions", reduced, s->rank))
        return NULL;
    bool    *gone = ARENA_ARRAY(x->a, bool, s->rank), *dynamic = ARENA_ARRAY(x->a, bool, s->rank);
    int64_t *dims = ARENA_ARRAY(x->a, int64_t, s->rank);
    for (int32_t k = 0; k < reduced.n; k++)
        gone[reduced.v[k]] = true;
    for (int32_t k = 0; k < s->rank; k++)
        if (!gone[k]) {
            dynamic[rank] = dim_is_dynamic(s, k);
            dims[rank++] = s->dims[k];
        }
    const Shape **elems = ARENA_ARRAY(x->a, const Shape *, n);
    for (int32_t k = 0; k < n; k++)
        elems[k] = infer_array(x, reducer_result(callee_result(x, 0), k)->type, rank, dims, dynamic);
    return results(x, n, elems);
}

/* A size with holes between its elements. */
static __int128 dilated(int64_t n, int64_t k) { return n == 0 ? 0 : (__int128)(n - 1) * k + 1; }

int64_t window_output_size(const WindowDim *w, int64_t size)
{
    __int128 padded = w->pad_lo + dilated(size, w->base_dilation) + w->pad_hi, span = dilated(w->size, w->window_dilation);
    if (padded < 0 || padded > INT64_MAX || w->stride < 1)
        return -1;
    return padded == 0 || span > padded ? 0 : (int64_t)((padded - span) / w->stride + 1);
}

bool infer_window_dims(const Infer *x, const Window *w, const int64_t *dims, int64_t *out)
{
    for (int32_t k = 0; k < w->n; k++) {
        const WindowDim *v = &w->v[k];
        if (v->size <= 0 || v->stride <= 0)
            return infer_bad(x, "window size and stride of dimension %d must be positive, got %lld and %lld", k,
                             (long long)v->size, (long long)v->stride);
        if (v->base_dilation < 1 || v->window_dilation < 1)
            return infer_bad(x, "dilations of window dimension %d must be at least 1, got %lld and %lld", k,
                             (long long)v->base_dilation, (long long)v->window_dilation);
        out[k] = window_output_size(v, dims[k]);
        if (out[k] < 0)
            return infer_bad(x, "padding %lld_%lld leaves no valid size for dimension %d of size %lld", (long long)v->pad_lo,
                             (long long)v->pad_hi, k, (long long)dims[k]);
    }
    return true;
}

/* The window has an entry for each dimension of s. */
static bool slide_over(const Infer *x, const Shape *s, int64_t **out)
{
    const Window *w = inst_window(x->i);
    *out = ARENA_ARRAY(x->a, int64_t, s->rank);
    if (w->n != s->rank)
        return infer_bad(x, "the window has %d dimensions, operand 0 is %s", w->n, infer_text(x, s));
    return infer_window_dims(x, w, s->dims, *out);
}

const Shape *infer_reduce_window(const Infer *x)
{
    int32_t  n;
    int64_t *dims;
    if (!check_inputs(x, &n) || !slide_over(x, operand_shape(x, 0), &dims))
        return NULL;
    const Shape  *s = operand_shape(x, 0);
    const Shape **elems = ARENA_ARRAY(x->a, const Shape *, n);
    for (int32_t k = 0; k < n; k++)
        elems[k] = infer_array(x, operand_shape(x, n + k)->type, s->rank, dims, s->dynamic);
    return results(x, n, elems);
}

/* select(x, x) -> pred[] */
static bool check_selector(const Infer *x)
{
    const Shape *elem = shape_scalar(x->a, operand_shape(x, 0)->type), *r = callee_result(x, 0);
    const char  *name = inst_callee(x->i, 0)->name;
    if (!infer_callee_arity(x, 0, 2))
        return false;
    if (!shape_is_scalar(r) || r->type != TYPE_PRED)
        return infer_bad(x, "%%%s must return pred[], returns %s", name, infer_text(x, r));
    for (int32_t k = 0; k < 2; k++)
        if (!shape_compatible_ignoring_precision(callee_param(x, 0, k), elem))
            return infer_bad(x, "parameter %d of %%%s must be %s, is %s", k, name, infer_text(x, elem),
                             infer_text(x, callee_param(x, 0, k)));
    return true;
}

const Shape *infer_select_and_scatter(const Infer *x)
{
    int64_t *dims;
    if (!infer_are_arrays(x) || !infer_is_scalar(x, 2) || !check_selector(x))
        return NULL;
    const Shape *s = operand_shape(x, 0), *source = operand_shape(x, 1), *init = operand_shape(x, 2);
    if (!infer_check_reducer(x, 1, 1, &init, &source->type) || !slide_over(x, s, &dims))
        return NULL;
    const Shape *want = infer_array(x, source->type, s->rank, dims, NULL);
    if (!shape_same_dims(want, source))
        return infer_fail(x, "the source must have the sizes of the windows, %s, got %s", infer_text(x, want),
                          infer_text(x, source));
    if (!infer_same_type(x, 0, 1))
        return NULL;
    return s;
}

static bool check_map_dimensions(const Infer *x, int32_t rank)
{
    Ints dims = inst_ints(x->i, ATTR_DIMENSIONS);
    bool given = inst_attr(x->i, ATTR_DIMENSIONS) != NULL;
    if (!given && x->i->shape)
        return true; /* all of them */
    if (!ints_equal(dims, ints_iota(x->a, rank)))
        return infer_bad(x, "dimensions must be 0 to %d in order, the dimensions of the operands", rank - 1);
    return true;
}

const Shape *infer_map(const Infer *x)
{
    const Inst *i = x->i;
    if (i->n_operands == 0)
        return infer_fail(x, "expects an operand");
    if (!infer_are_arrays(x) || !infer_callee_arity(x, 0, i->n_operands))
        return NULL;
    const Shape *s = operand_shape(x, 0), *r = callee_result(x, 0);
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Shape *p = callee_param(x, 0, k), *v = operand_shape(x, k);
        if (!infer_same_dims(x, 0, k))
            return NULL;
        if (!shape_is_scalar(p) || !type_same_kind(p->type, v->type))
            return infer_fail(x, "parameter %d of %%%s must be %s[], is %s", k, inst_callee(i, 0)->name, type_name(v->type),
                              infer_text(x, p));
        s = infer_merge_dynamic(x, s, v);
    }
    if (!shape_is_scalar(r))
        return infer_fail(x, "%%%s must return a scalar, returns %s", inst_callee(i, 0)->name, infer_text(x, r));
    if (!check_map_dimensions(x, s->rank))
        return NULL;
    return infer_array(x, r->type, s->rank, s->dims, s->dynamic);
}
