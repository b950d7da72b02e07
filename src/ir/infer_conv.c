/* convolution. dim_labels names the dimensions: batch and feature of lhs and output, input and output feature of the kernel (rhs), and
 * the spatial ones, which pair by number on all three and with the entries of the window.
 * Source: reference operations 10. */
#include "ir/infer_rules.h"

/* The named positions are each dimension of an array of rank spatial + 2 once. */
static bool check_labels(const Infer *x, const char *what, int64_t a, int64_t b, const int64_t *spatial, int32_t n, const Shape *s)
{
    Ints all = ints_make(x->a, n + 2);
    ints_at(all, 0)[0] = a;
    ints_at(all, 1)[0] = b;
    for (int32_t k = 0; k < n; k++)
        ints_at(all, k + 2)[0] = spatial[k];
    if (s && s->rank != n + 2)
        return infer_bad(x, "dim_labels has %d dimensions for the %s, which is %s", n + 2, what, infer_text(x, s));
    return infer_dim_list(x, what, all, n + 2);
}

static bool check_groups(const Infer *x, const DimLabels *l, const Shape *lhs, const Shape *rhs, int64_t groups, int64_t batches)
{
    int64_t batch = lhs->dims[l->lhs_batch], in = lhs->dims[l->lhs_feature];
    int64_t kernel_in = rhs->dims[l->rhs_in], out = rhs->dims[l->rhs_out];
    if (groups <= 0 || batches <= 0)
        return infer_bad(x, "feature_group_count and batch_group_count must be positive, got %lld and %lld", (long long)groups,
                         (long long)batches);
    if (groups > 1 && batches > 1)
        return infer_bad(x, "feature_group_count and batch_group_count cannot both be above 1, got %lld and %lld",
                         (long long)groups, (long long)batches);
    if (in % groups != 0 || in / groups != kernel_in)
        return infer_bad(x,
                         "the kernel's input features must be the input features divided by feature_group_count, "
                         "got %lld for %lld / %lld (%s and %s)",
                         (long long)kernel_in, (long long)in, (long long)groups, infer_text(x, lhs), infer_text(x, rhs));
    if (out % groups != 0 || out % batches != 0)
        return infer_bad(x, "%lld output features cannot be divided into %lld groups", (long long)out,
                         (long long)(groups > 1 ? groups : batches));
    if (batch % batches != 0)
        return infer_bad(x, "batch size %lld is no multiple of batch_group_count %lld", (long long)batch, (long long)batches);
    return true;
}

static bool check_operands(const Infer *x)
{
    int32_t n = x->i->n_operands;
    bool    extra = inst_attr(x->i, ATTR_SPARSITY_CONFIG) || inst_attr(x->i, ATTR_BLOCK_SCALING_CONFIG);
    if (n < 2 || (n > 2 && !extra && x->i->shape)) /* XLA's parser does not look */
        return infer_bad(x, "expects 2 operands, has %d", n);
    return infer_are_arrays(x);
}

/* Spatial sizes of the output, by spatial number. */
static bool spatial_sizes(const Infer *x, const DimLabels *l, const Shape *lhs, const Shape *rhs, int64_t *out)
{
    const Window *w = inst_window(x->i);
    int64_t       sizes[10];
    if (w->n != l->spatial)
        return infer_bad(x, "dim_labels has %d spatial dimensions, the window %d", l->spatial, w->n);
    for (int32_t k = 0; k < w->n; k++) {
        sizes[k] = lhs->dims[l->lhs_spatial[k]];
        if (w->v[k].size != rhs->dims[l->rhs_spatial[k]])
            return infer_bad(x, "window dimension %d has size %lld, the kernel %s has %lld", k, (long long)w->v[k].size,
                             infer_text(x, rhs), (long long)rhs->dims[l->rhs_spatial[k]]);
    }
    return infer_window_dims(x, w, sizes, out);
}

const Shape *infer_convolution(const Infer *x)
{
    if (!check_operands(x))
        return NULL;
    const Shape     *lhs = operand_shape(x, 0), *rhs = operand_shape(x, 1);
    const DimLabels *l = inst_attr(x->i, ATTR_DIM_LABELS)->value.dim_labels;
    int64_t          spatial[10], batches = inst_int(x->i, ATTR_BATCH_GROUP_COUNT, 1);
    int32_t          n = l->spatial;
    if (n < 0 || n > 10 || !check_labels(x, "input", l->lhs_batch, l->lhs_feature, l->lhs_spatial, n, lhs) ||
        !check_labels(x, "kernel", l->rhs_in, l->rhs_out, l->rhs_spatial, n, rhs) ||
        !check_labels(x, "output", l->out_batch, l->out_feature, l->out_spatial, n, NULL))
        return NULL;
    if (!check_groups(x, l, lhs, rhs, inst_int(x->i, ATTR_FEATURE_GROUP_COUNT, 1), batches) ||
        !spatial_sizes(x, l, lhs, rhs, spatial))
        return NULL;
    if (dim_is_dynamic(rhs, (int32_t)l->rhs_out))
        return infer_fail(x, "the kernel's output feature dimension must not be dynamic");
    int64_t dims[12];
    bool    dynamic[12] = {false};
    dims[l->out_batch] = lhs->dims[l->lhs_batch] / batches;
    dynamic[l->out_batch] = dim_is_dynamic(lhs, (int32_t)l->lhs_batch);
    dims[l->out_feature] = rhs->dims[l->rhs_out];
    for (int32_t k = 0; k < n; k++) {
        dims[l->out_spatial[k]] = spatial[k];
        dynamic[l->out_spatial[k]] = dim_is_dynamic(lhs, (int32_t)l->lhs_spatial[k]);
    }
    return infer_array(x, infer_preferred_type(x, lhs, rhs), n + 2, dims, dynamic);
}
