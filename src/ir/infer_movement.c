/* Result shapes of data movement: broadcast, reshape, transpose, slices, pad, concatenate, tuples, sources of data.
 * Source: reference operations 5 and 6.1. */
#include "ir/infer_rules.h"

const Shape *infer_same(const Infer *x) { return operand_shape(x, 0); }

const Shape *infer_add_dependency(const Infer *x)
{
    if (!shape_is_token(operand_shape(x, 1)))
        return infer_fail(x, "operand 1 must be a token, got %s", infer_text(x, operand_shape(x, 1)));
    return operand_shape(x, 0);
}

const Shape *infer_parameter(const Infer *x) { return x->i->shape; }

const Shape *infer_constant(const Infer *x)
{
    if (!x->i->literal)
        return infer_fail(x, "has no value");
    if (!literal_matches(x->i->literal, x->i->shape))
        return infer_fail(x, "its value is %s, the written type %s", infer_text(x, literal_shape(x->a, x->i->literal)),
                          infer_text(x, x->i->shape));
    return x->i->shape;
}

const Shape *infer_iota(const Infer *x)
{
    const Shape *s = x->i->shape;
    int64_t      k = inst_int(x->i, ATTR_IOTA_DIMENSION, 0);
    if (!shape_is_array(s) || s->rank == 0)
        return infer_fail(x, "makes arrays of rank 1 and more, not %s", infer_text(x, s));
    if (s->type == TYPE_PRED)
        return infer_fail(x, "does not make pred");
    if (k < 0 || k >= s->rank)
        return infer_fail(x, "iota_dimension %lld is out of range for %s", (long long)k, infer_text(x, s));
    return s;
}

/* Left-out type: XLA reads the dimension numbers as sizes, followed by the operand's own. */
static const Shape *broadcast_left_out(const Infer *x, const Shape *s, Ints dims)
{
    int64_t  n = (int64_t)dims.n + s->rank;
    int64_t *sizes = ARENA_ARRAY(x->a, int64_t, n);
    if (n > INT32_MAX)
        return infer_fail(x, "too many dimensions");
    for (int32_t k = 0; k < n; k++) {
        sizes[k] = k < dims.n ? dims.v[k] : s->dims[k - dims.n];
        if (sizes[k] < 0)
            return infer_fail(x, "dimensions must not be negative, got %lld", (long long)sizes[k]);
    }
    return infer_array(x, s->type, (int32_t)n, sizes, NULL);
}

const Shape *infer_broadcast(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape *s = operand_shape(x, 0), *r = x->i->shape;
    Ints         dims = inst_ints(x->i, ATTR_DIMENSIONS);
    if (!r)
        return broadcast_left_out(x, s, dims);
    if (!shape_is_array(r) || r->type != s->type)
        return infer_fail(x, "cannot make %s from %s", infer_text(x, r), infer_text(x, s));
    if (dims.n != s->rank)
        return infer_fail(x, "dimensions must have one entry per dimension of %s, got %d", infer_text(x, s), dims.n);
    if (!infer_dim_list(x, "dimensions", dims, r->rank))
        return NULL;
    for (int32_t k = 0; k < dims.n; k++)
        if (s->dims[k] != r->dims[dims.v[k]])
            return infer_fail(x, "operand dimension %d is %lld, result dimension %lld is %lld (size 1 does not stretch)", k,
                              (long long)s->dims[k], (long long)dims.v[k], (long long)r->dims[dims.v[k]]);
    return r;
}

static const Shape *same_count(const Infer *x)
{
    const Shape *s = operand_shape(x, 0), *r = x->i->shape;
    if (!shape_is_array(r) || r->type != s->type)
        return infer_fail(x, "cannot make %s from %s", infer_text(x, r), infer_text(x, s));
    int64_t from = shape_count(s), to = shape_count(r);
    if (from != to || from < 0)
        return infer_fail(x, "element counts differ: %s and %s", infer_text(x, s), infer_text(x, r));
    return r;
}

const Shape *infer_reshape(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape *r = same_count(x);
    int64_t      k = inst_int(x->i, ATTR_INFERRED_DIMENSION, -1);
    if (r && (k < -1 || k >= r->rank))
        return infer_fail(x, "inferred_dimension %lld is out of range for %s", (long long)k, infer_text(x, r));
    return r;
}

/* One s32 scalar for each result dimension. */
const Shape *infer_dynamic_reshape(const Infer *x)
{
    if (x->i->n_operands < 1)
        return infer_fail(x, "expects an operand");
    if (!infer_are_arrays(x))
        return NULL;
    const Shape *r = same_count(x);
    if (!r)
        return NULL;
    if (x->i->n_operands - 1 != r->rank)
        return infer_fail(x, "expects %d sizes for %s, has %d", r->rank, infer_text(x, r), x->i->n_operands - 1);
    for (int32_t k = 1; k < x->i->n_operands; k++)
        if (operand_shape(x, k)->type != TYPE_S32 || operand_shape(x, k)->rank != 0)
            return infer_fail(x, "operand %d must be s32[], got %s", k, infer_text(x, operand_shape(x, k)));
    return r;
}

/* Bytes in memory are what a bitcast keeps; types below 8 bits may count packed or unpacked. */
const Shape *infer_bitcast(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape *s = operand_shape(x, 0), *r = x->i->shape;
    if (!shape_is_array(r))
        return infer_fail(x, "the result must be an array, not %s", infer_text(x, r));
    int64_t n = shape_count(s), m = shape_count(r), from, to;
    bool    ok = n >= 0 && m >= 0 && size_mul(n, type_bits(s->type), &from) && size_mul(m, type_bits(r->type), &to);
    if (!ok || (from != to && shape_bytes(s) != shape_bytes(r)))
        return infer_fail(x, "sizes in memory differ: %s and %s", infer_text(x, s), infer_text(x, r));
    return r;
}

/* Layout of the transposed array that leaves memory as it is: result dimension inverse[d] is operand dimension d. */
static const Layout *transposed_layout(const Infer *x, const Shape *s, const int32_t *inverse)
{
    Ints order = ints_make(x->a, s->rank);
    for (int32_t k = 0; k < s->rank; k++) {
        int64_t d = layout_dim(s, k);
        if (d < 0 || d >= s->rank)
            return NULL; /* a layout that is no permutation: the verifier reports it */
        ints_at(order, k)[0] = inverse[d];
    }
    if (!s->layout)
        return layout_from_order(x->a, order);
    Layout *l = ARENA_NEW(x->a, Layout);
    *l = *s->layout;
    l->minor_to_major = order;
    return l;
}

const Shape *infer_transpose(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape *s = operand_shape(x, 0);
    Ints         p = inst_ints(x->i, ATTR_DIMENSIONS);
    if (p.n != s->rank)
        return infer_fail(x, "dimensions must be a permutation of the %d dimensions of %s, got %d entries", s->rank,
                          infer_text(x, s), p.n);
    if (!infer_dim_list(x, "dimensions", p, s->rank))
        return NULL;
    int64_t *dims = ARENA_ARRAY(x->a, int64_t, s->rank);
    bool    *dynamic = ARENA_ARRAY(x->a, bool, s->rank);
    int32_t *inverse = ARENA_ARRAY(x->a, int32_t, s->rank);
    for (int32_t k = 0; k < s->rank; k++) {
        dims[k] = s->dims[p.v[k]];
        dynamic[k] = dim_is_dynamic(s, (int32_t)p.v[k]);
        inverse[p.v[k]] = k;
    }
    const Shape *r = infer_array(x, s->type, s->rank, dims, dynamic);
    return shape_with_layout(x->a, r, transposed_layout(x, s, inverse));
}

const Shape *infer_reverse(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape *s = operand_shape(x, 0);
    return infer_dim_list(x, "dimensions", inst_ints(x->i, ATTR_DIMENSIONS), s->rank) ? s : NULL;
}

const Shape *infer_shuffle(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape *s = operand_shape(x, 0);
    Ints         dims = inst_ints(x->i, ATTR_DIMENSIONS), shifts = inst_ints(x->i, ATTR_SHIFTS);
    if (dims.n == 0)
        return infer_fail(x, "expects a dimension");
    if (dims.n != shifts.n)
        return infer_fail(x, "%d dimensions and %d shifts are given", dims.n, shifts.n);
    return infer_dim_list(x, "dimensions", dims, s->rank) ? s : NULL;
}

const Shape *infer_slice(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape  *s = operand_shape(x, 0);
    const Slices *v = inst_attr(x->i, ATTR_SLICE)->value.slices;
    if (v->n != s->rank)
        return infer_fail(x, "expects one range for each dimension of %s, got %d", infer_text(x, s), v->n);
    int64_t *dims = ARENA_ARRAY(x->a, int64_t, s->rank);
    bool    *dynamic = ARENA_ARRAY(x->a, bool, s->rank);
    for (int32_t k = 0; k < s->rank; k++) {
        SliceRange r = v->v[k];
        if (r.stride <= 0)
            return infer_fail(x, "the stride of dimension %d must be positive, got %lld", k, (long long)r.stride);
        if (r.start < 0 || r.start > r.limit || r.limit > s->dims[k])
            return infer_fail(x, "range [%lld:%lld] of dimension %d is not within %s", (long long)r.start, (long long)r.limit, k,
                              infer_text(x, s));
        int64_t span = r.limit - r.start;
        dims[k] = span / r.stride + (span % r.stride != 0);
        dynamic[k] = dim_is_dynamic(s, k) && dims[k] != 1;
    }
    return infer_array(x, s->type, s->rank, dims, dynamic);
}

/* lo + d + hi + max(d - 1, 0) * interior */
static bool padded_size(const Infer *x, int32_t k, int64_t d, PadDim p, int64_t *out)
{
    if (p.interior < 0)
        return infer_bad(x, "interior padding of dimension %d must not be negative, got %lld", k, (long long)p.interior);
    __int128 n = (__int128)p.lo + d + p.hi + (__int128)(d > 0 ? d - 1 : 0) * p.interior;
    if (n < 0 || n > INT64_MAX)
        return infer_bad(x, "padding %lld_%lld_%lld leaves no valid size for dimension %d of size %lld", (long long)p.lo,
                         (long long)p.hi, (long long)p.interior, k, (long long)d);
    *out = (int64_t)n;
    return true;
}

const Shape *infer_pad(const Infer *x)
{
    if (!infer_are_arrays(x) || !infer_is_scalar(x, 1) || !infer_same_type(x, 0, 1))
        return NULL;
    const Shape   *s = operand_shape(x, 0);
    const Padding *p = inst_attr(x->i, ATTR_PADDING)->value.padding;
    if (p->n != s->rank)
        return infer_fail(x, "expects padding for each dimension of %s, got %d", infer_text(x, s), p->n);
    int64_t *dims = ARENA_ARRAY(x->a, int64_t, s->rank);
    for (int32_t k = 0; k < s->rank; k++)
        if (!padded_size(x, k, s->dims[k], p->v[k], &dims[k]))
            return NULL;
    return infer_array(x, type_higher_precision(s->type, operand_shape(x, 1)->type), s->rank, dims, s->dynamic);
}

/* Adds operand k to the running sizes. */
static bool join(const Infer *x, int32_t k, int32_t along, int64_t *dims, bool *dynamic)
{
    const Shape *first = operand_shape(x, 0), *s = operand_shape(x, k);
    if (s->rank != first->rank)
        return infer_bad(x, "operands 0 and %d differ in rank: %s and %s", k, infer_text(x, first), infer_text(x, s));
    if (!infer_same_type(x, 0, k))
        return false;
    for (int32_t m = 0; m < s->rank; m++) {
        dynamic[m] = dynamic[m] || dim_is_dynamic(s, m);
        if (m != along && s->dims[m] != dims[m])
            return infer_bad(x, "operands 0 and %d differ in dimension %d: %s and %s", k, m, infer_text(x, first),
                             infer_text(x, s));
    }
    return size_add(dims[along], s->dims[along], &dims[along]) || infer_bad(x, "the size of dimension %d overflows", along);
}

const Shape *infer_concatenate(const Infer *x)
{
    if (x->i->n_operands == 0)
        return infer_fail(x, "expects an operand");
    if (!infer_are_arrays(x))
        return NULL;
    const Shape *s = operand_shape(x, 0);
    int32_t      along = infer_one_dimension(x, s->rank);
    if (along < 0)
        return NULL;
    int64_t *dims = arena_copy(x->a, s->dims, (size_t)s->rank * sizeof *dims);
    bool    *dynamic = ARENA_ARRAY(x->a, bool, s->rank);
    Type     t = s->type;
    dims[along] = 0;
    for (int32_t k = 0; k < x->i->n_operands; k++) {
        if (!join(x, k, along, dims, dynamic))
            return NULL;
        t = type_higher_precision(t, operand_shape(x, k)->type);
    }
    return infer_array(x, t, s->rank, dims, dynamic);
}

/* tuple(t, t) again and again doubles a type that nobody has to write out; tuple(t) again and again nests one that nobody can read. */
enum { MAX_TUPLE_NODES = 1 << 18, MAX_TUPLE_DEPTH = 1 << 10 };

const Shape *infer_tuple(const Infer *x)
{
    const Shape *s = shape_tuple(x->a, x->i->n_operands, infer_operand_shapes(x, 0, x->i->n_operands));
    if (s->inside.nodes > MAX_TUPLE_NODES)
        return infer_fail(x, "its type would have more than %d parts", MAX_TUPLE_NODES);
    if (s->inside.depth > MAX_TUPLE_DEPTH)
        return infer_fail(x, "its type would be nested more than %d levels deep", MAX_TUPLE_DEPTH);
    return s;
}

const Shape *infer_get_tuple_element(const Infer *x)
{
    const Shape *s = operand_shape(x, 0);
    int64_t      k = inst_int(x->i, ATTR_INDEX, 0);
    if (!shape_is_tuple(s) || s->buffer)
        return infer_fail(x, "operand 0 must be a tuple, got %s", infer_text(x, s));
    if (k < 0 || k >= s->n_elems)
        return infer_fail(x, "index %lld is out of range for %s", (long long)k, infer_text(x, s));
    return s->elems[k];
}

/* Start indices from operand `first` on: one integer scalar for each dimension, or (old spelling) one array of rank 1. */
static bool check_starts(const Infer *x, int32_t first, int32_t rank)
{
    int32_t n = x->i->n_operands - first;
    for (int32_t k = first; k < x->i->n_operands; k++) {
        const Shape *s = operand_shape(x, k);
        if (!infer_is_array(x, k))
            return false;
        if (!type_is_int(s->type) || s->type != operand_shape(x, first)->type)
            return infer_bad(x, "start indices must be integers of one type, operand %d is %s", k, infer_text(x, s));
    }
    if (n == 1 && operand_shape(x, first)->rank == 1) {
        const Shape *s = operand_shape(x, first);
        return s->dims[0] == rank || infer_bad(x, "expects %d start indices, got %s", rank, infer_text(x, s));
    }
    if (n != rank)
        return infer_bad(x, "expects %d start indices, has %d", rank, n);
    for (int32_t k = first; k < x->i->n_operands; k++)
        if (!infer_is_scalar(x, k))
            return false;
    return true;
}

const Shape *infer_dynamic_slice(const Infer *x)
{
    if (x->i->n_operands < 1)
        return infer_fail(x, "expects an operand");
    if (!infer_is_array(x, 0))
        return NULL;
    const Shape *s = operand_shape(x, 0);
    Ints         sizes = inst_ints(x->i, ATTR_DYNAMIC_SLICE_SIZES);
    if (!check_starts(x, 1, s->rank))
        return NULL;
    if (sizes.n != s->rank)
        return infer_fail(x, "dynamic_slice_sizes must have one entry per dimension of %s, got %d", infer_text(x, s), sizes.n);
    bool *dynamic = ARENA_ARRAY(x->a, bool, s->rank);
    for (int32_t k = 0; k < s->rank; k++) {
        if (sizes.v[k] < 0 || sizes.v[k] > s->dims[k])
            return infer_fail(x, "slice size %lld of dimension %d is not within %s", (long long)sizes.v[k], k, infer_text(x, s));
        dynamic[k] = dim_is_dynamic(s, k) && sizes.v[k] == s->dims[k] && sizes.v[k] > 1;
    }
    return infer_array(x, s->type, s->rank, sizes.v, dynamic);
}

const Shape *infer_dynamic_update_slice(const Infer *x)
{
    if (x->i->n_operands < 2)
        return infer_fail(x, "expects at least 2 operands, has %d", x->i->n_operands);
    const Shape *s = operand_shape(x, 0), *u = operand_shape(x, 1);
    bool         buffer = s->buffer && type_is_array(s->type) && !shape_is_unbounded(s); /* updated in place */
    if ((!buffer && !infer_is_array(x, 0)) || !infer_is_array(x, 1) || !infer_same_type(x, 0, 1))
        return NULL;
    if (u->rank != s->rank)
        return infer_fail(x, "the update must have the rank of operand 0: %s and %s", infer_text(x, u), infer_text(x, s));
    for (int32_t k = 0; k < s->rank; k++)
        if (u->dims[k] > s->dims[k])
            return infer_fail(x, "the update %s is larger than %s in dimension %d", infer_text(x, u), infer_text(x, s), k);
    return check_starts(x, 2, s->rank) ? s : NULL;
}
