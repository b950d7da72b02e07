/* gather and scatter. Both share the picture: an index vector, found along index_vector_dim of the indices, says where a window
 * starts; windows are the offset (window) dimensions of the result (updates), index positions the others.
 * Source: reference operations 6.2 and 6.3. */
#include "ir/infer_rules.h"

/* Sizes of the indices without index_vector_dim; *vector is the length of an index vector. */
typedef struct IndexShape {
    int32_t  rank;
    int64_t *dims;
    bool    *dynamic;
    int64_t  vector;
} IndexShape;

static bool index_shape(const Infer *x, const Shape *s, IndexShape *out)
{
    int64_t at = inst_int(x->i, ATTR_INDEX_VECTOR_DIM, 0);
    if (!type_is_int(s->type))
        return infer_bad(x, "indices must be integers, got %s", infer_text(x, s));
    if (at < 0 || at > s->rank)
        return infer_bad(x, "index_vector_dim %lld is out of range for %s", (long long)at, infer_text(x, s));
    *out = (IndexShape){0, ARENA_ARRAY(x->a, int64_t, s->rank), ARENA_ARRAY(x->a, bool, s->rank), 1};
    for (int32_t k = 0; k < s->rank; k++) {
        if (k == at) {
            out->vector = s->dims[k];
            continue;
        }
        out->dims[out->rank] = s->dims[k];
        out->dynamic[out->rank++] = dim_is_dynamic(s, k);
    }
    return true;
}

/* The attributes under the names of gather or scatter. */
typedef struct Names {
    const char *start_map, *collapsed, *batching, *index_batching;
} Names;
typedef struct Numbers {
    Ints start_map, collapsed, batching, index_batching;
} Numbers;

static bool check_batching(const Infer *x, const Names *n, const Numbers *v, const Shape *s, const Shape *indices)
{
    int64_t at = inst_int(x->i, ATTR_INDEX_VECTOR_DIM, 0);
    if (v->batching.n != v->index_batching.n)
        return infer_bad(x, "%s and %s must be of one length, got %d and %d", n->batching, n->index_batching, v->batching.n,
                         v->index_batching.n);
    for (int32_t k = 0; k < v->batching.n; k++) {
        int64_t d = v->batching.v[k], e = v->index_batching.v[k];
        if (e == at)
            return infer_bad(x, "%s names index_vector_dim %lld", n->index_batching, (long long)e);
        if (ints_has(v->collapsed, d) || ints_has(v->start_map, d))
            return infer_bad(x, "dimension %lld of %s is also in %s", (long long)d, n->batching,
                             ints_has(v->collapsed, d) ? n->collapsed : n->start_map);
        if (s->dims[d] != indices->dims[e])
            return infer_bad(x, "batching sizes differ: operand dimension %lld is %lld, indices dimension %lld is %lld",
                             (long long)d, (long long)s->dims[d], (long long)e, (long long)indices->dims[e]);
    }
    return true;
}

static bool check_numbers(const Infer *x, const Names *n, const Numbers *v, const Shape *s, const Shape *indices, int64_t vector)
{
    if (v->start_map.n != vector)
        return infer_bad(x, "%s has %d entries, but an index vector of %s has %lld", n->start_map, v->start_map.n,
                         infer_text(x, indices), (long long)vector);
    return infer_dim_list(x, n->start_map, v->start_map, s->rank) &&
           infer_dim_list_ascending(x, n->collapsed, v->collapsed, s->rank) &&
           infer_dim_list_ascending(x, n->batching, v->batching, s->rank) &&
           infer_dim_list(x, n->index_batching, v->index_batching, indices->rank) && check_batching(x, n, v, s, indices);
}

static const Names gather_names = {"start_index_map", "collapsed_slice_dims", "operand_batching_dims",
                                   "start_indices_batching_dims"};

/* Dimension k keeps a place in the windows: neither collapsed nor batching. */
static bool *window_dims(const Infer *x, const Numbers *v, int32_t rank)
{
    bool *kept = ARENA_ARRAY(x->a, bool, rank);
    for (int32_t k = 0; k < rank; k++)
        kept[k] = true;
    for (int32_t k = 0; k < v->collapsed.n; k++)
        kept[v->collapsed.v[k]] = false;
    for (int32_t k = 0; k < v->batching.n; k++)
        kept[v->batching.v[k]] = false;
    return kept;
}

static bool check_slice_sizes(const Infer *x, const Shape *s, const bool *kept, Ints sizes)
{
    if (sizes.n != s->rank)
        return infer_bad(x, "slice_sizes must have one entry per dimension of %s, got %d", infer_text(x, s), sizes.n);
    for (int32_t k = 0; k < s->rank; k++) {
        if (sizes.v[k] < 0 || sizes.v[k] > s->dims[k])
            return infer_bad(x, "slice size %lld of dimension %d is not within %s", (long long)sizes.v[k], k, infer_text(x, s));
        if (!kept[k] && sizes.v[k] > 1)
            return infer_bad(x, "slice size of the collapsed or batching dimension %d must be 0 or 1, got %lld", k,
                             (long long)sizes.v[k]);
    }
    return true;
}

/* Lays windows and index positions out: offsets in their places, the others in order. */
static const Shape *gathered(const Infer *x, const Shape *s, const bool *kept, Ints sizes, Ints offsets, const IndexShape *in)
{
    int32_t  rank = offsets.n + in->rank;
    int64_t *dims = ARENA_ARRAY(x->a, int64_t, rank);
    bool    *dynamic = ARENA_ARRAY(x->a, bool, rank);
    for (int32_t k = 0, o = 0, b = 0, d = 0; k < rank; k++) {
        if (o < offsets.n && offsets.v[o] == k) {
            while (!kept[d])
                d++;
            dims[k] = sizes.v[d];
            dynamic[k] = dim_is_dynamic(s, d) && sizes.v[d] == s->dims[d];
            d++;
            o++;
        } else {
            dims[k] = in->dims[b];
            dynamic[k] = in->dynamic[b++];
        }
    }
    return infer_array(x, s->type, rank, dims, dynamic);
}

const Shape *infer_gather(const Infer *x)
{
    if (!infer_are_arrays(x))
        return NULL;
    const Shape *s = operand_shape(x, 0), *indices = operand_shape(x, 1);
    const Attr  *nested = inst_attr(x->i, ATTR_SLICE_SIZES);
    Ints         offsets = inst_ints(x->i, ATTR_OFFSET_DIMS);
    Numbers v = {inst_ints(x->i, ATTR_START_INDEX_MAP), inst_ints(x->i, ATTR_COLLAPSED_SLICE_DIMS),
                 inst_ints(x->i, ATTR_OPERAND_BATCHING_DIMS), inst_ints(x->i, ATTR_START_INDICES_BATCHING_DIMS)};
    IndexShape in;
    if (nested->nested)
        return infer_fail(x, "slice_sizes must be one list of numbers");
    if (!index_shape(x, indices, &in) || !check_numbers(x, &gather_names, &v, s, indices, in.vector))
        return NULL;
    if ((int64_t)offsets.n + v.collapsed.n + v.batching.n != s->rank)
        return infer_fail(x, "offset_dims, collapsed_slice_dims and operand_batching_dims must have %d entries for %s, have %d",
                          s->rank, infer_text(x, s), offsets.n + v.collapsed.n + v.batching.n);
    bool *kept = window_dims(x, &v, s->rank);
    Ints  sizes = inst_ints(x->i, ATTR_SLICE_SIZES);
    if (!infer_dim_list_ascending(x, "offset_dims", offsets, offsets.n + in.rank) || !check_slice_sizes(x, s, kept, sizes))
        return NULL;
    return gathered(x, s, kept, sizes, offsets, &in);
}

static const Names scatter_names = {"scatter_dims_to_operand_dims", "inserted_window_dims", "input_batching_dims",
                                    "scatter_indices_batching_dims"};

/* Window sizes fit into the operand, the other dimensions of the updates are those of the indices. */
static bool check_updates(const Infer *x, const Shape *s, const Shape *u, const bool *kept, Ints window, const IndexShape *in)
{
    for (int32_t k = 0, w = 0, b = 0, d = 0; k < u->rank; k++) {
        if (w < window.n && window.v[w] == k) {
            while (!kept[d])
                d++;
            if (u->dims[k] > s->dims[d])
                return infer_bad(x, "window dimension %d of the updates %s is larger than dimension %d of %s", k,
                                 infer_text(x, u), d, infer_text(x, s));
            d++;
            w++;
        } else if (u->dims[k] != in->dims[b++]) {
            return infer_bad(x, "dimension %d of the updates %s must be %lld as in the indices", k, infer_text(x, u),
                             (long long)in->dims[b - 1]);
        }
    }
    return true;
}

/* One operand and its updates. */
static bool check_scatter_pair(const Infer *x, int32_t k, int32_t n, const Numbers *v, const IndexShape *in)
{
    const Shape *s = operand_shape(x, k), *u = operand_shape(x, n + 1 + k), *indices = operand_shape(x, n);
    Ints         window = inst_ints(x->i, ATTR_UPDATE_WINDOW_DIMS);
    if (!infer_same_dims(x, 0, k) || !infer_same_dims(x, n + 1, n + 1 + k) || !infer_same_type(x, k, n + 1 + k) ||
        !check_numbers(x, &scatter_names, v, s, indices, in->vector))
        return false;
    if ((int64_t)window.n + v->collapsed.n + v->batching.n != s->rank)
        return infer_bad(x,
                         "update_window_dims, inserted_window_dims and input_batching_dims must have %d entries for %s, have %d",
                         s->rank, infer_text(x, s), window.n + v->collapsed.n + v->batching.n);
    if (u->rank != in->rank + window.n)
        return infer_bad(x, "the updates must have rank %d, got %s", in->rank + window.n, infer_text(x, u));
    return infer_dim_list_ascending(x, "update_window_dims", window, u->rank) &&
           check_updates(x, s, u, window_dims(x, v, s->rank), window, in);
}

const Shape *infer_scatter(const Infer *x)
{
    int32_t n = x->i->n_operands / 2;
    if (x->i->n_operands % 2 == 0)
        return infer_fail(x, "expects an odd number of operands (inputs, indices, updates), has %d", x->i->n_operands);
    if (n == 0)
        return infer_fail(x, "expects an input, indices and updates, has 1 operand");
    if (!infer_are_arrays(x))
        return NULL;
    Numbers v = {inst_ints(x->i, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS), inst_ints(x->i, ATTR_INSERTED_WINDOW_DIMS),
                 inst_ints(x->i, ATTR_INPUT_BATCHING_DIMS), inst_ints(x->i, ATTR_SCATTER_INDICES_BATCHING_DIMS)};
    IndexShape    in;
    const Shape **scalars = ARENA_ARRAY(x->a, const Shape *, n);
    Type         *types = ARENA_ARRAY(x->a, Type, n);
    if (!index_shape(x, operand_shape(x, n), &in))
        return NULL;
    for (int32_t k = 0; k < n; k++) {
        if (!check_scatter_pair(x, k, n, &v, &in))
            return NULL;
        scalars[k] = shape_scalar(x->a, operand_shape(x, k)->type);
        types[k] = operand_shape(x, n + 1 + k)->type;
    }
    if (!infer_check_reducer(x, 0, n, scalars, types))
        return NULL;
    return infer_one_or_tuple(x, n, infer_operand_shapes(x, 0, n));
}
