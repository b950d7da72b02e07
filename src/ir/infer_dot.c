/* dot, ragged-dot, scaled-dot.
 *   lhs [batch, m, k]   rhs [batch, k, n]   ->   [batch, m, n]     each letter a list of dimensions, in any order
 * The element type is the written one. Source: reference operations 9. */
#include "ir/attr_rare.h"
#include "ir/infer_rules.h"

typedef struct DotDims {
    Ints lhs_batch, lhs_contracting, rhs_batch, rhs_contracting;
} DotDims;

static DotDims dot_dims(const Inst *i)
{
    return (DotDims){inst_ints(i, ATTR_LHS_BATCH_DIMS), inst_ints(i, ATTR_LHS_CONTRACTING_DIMS),
                     inst_ints(i, ATTR_RHS_BATCH_DIMS), inst_ints(i, ATTR_RHS_CONTRACTING_DIMS)};
}

/* Marks the batch and contracting dimensions of one side; each may be named once. */
static bool mark_side(const Infer *x, const char *side, Ints batch, Ints contracting, const Shape *s, bool *named)
{
    for (int32_t k = 0; k < batch.n + contracting.n; k++) {
        bool    is_batch = k < batch.n;
        int64_t d = is_batch ? batch.v[k] : contracting.v[k - batch.n];
        if (d < 0 || d >= s->rank)
            return infer_bad(x, "%s_%s_dims names dimension %lld, but the operand is %s", side,
                             is_batch ? "batch" : "contracting", (long long)d, infer_text(x, s));
        if (named[d])
            return infer_bad(x, "%s dimension %lld is named twice", side, (long long)d);
        named[d] = true;
    }
    return true;
}

static bool same_sizes(const Infer *x, const char *what, const Shape *lhs, Ints l, const Shape *rhs, Ints r)
{
    for (int32_t k = 0; k < l.n; k++)
        if (lhs->dims[l.v[k]] != rhs->dims[r.v[k]])
            return infer_bad(x, "%s sizes differ: lhs dim %lld is %lld, rhs dim %lld is %lld (%s and %s)", what,
                             (long long)l.v[k], (long long)lhs->dims[l.v[k]], (long long)r.v[k],
                             (long long)rhs->dims[r.v[k]], infer_text(x, lhs), infer_text(x, rhs));
    return true;
}

/* The size that dimension d stands for: of a sparse one n of every m elements are stored. -1: no multiple of n. */
static int64_t full_size(const Shape *s, int64_t d, const SparsitySide *side)
{
    int64_t size = s->dims[d];
    if (!side->given || side->dimension != d)
        return size;
    if (side->nonzero <= 0 || side->block <= 0 || size % side->nonzero != 0)
        return -1;
    return size_mul(size / side->nonzero, side->block, &size) ? size : -1;
}

static bool same_contracting_sizes(const Infer *x, const Shape *lhs, Ints l, const Shape *rhs, Ints r)
{
    const Attr *sparse = inst_attr(x->i, ATTR_SPARSITY_CONFIG);
    if (!sparse)
        return same_sizes(x, "contracting", lhs, l, rhs, r);
    const Sparsity *v = sparse->value.sparsity;
    for (int32_t k = 0; k < l.n; k++) {
        int64_t a = full_size(lhs, l.v[k], &v->lhs), b = full_size(rhs, r.v[k], &v->rhs);
        if (a != b || a < 0)
            return infer_bad(x, "lhs dimension %lld and rhs dimension %lld do not fit by sparsity_config: %s and %s", (long long)l.v[k],
                             (long long)r.v[k], infer_text(x, lhs), infer_text(x, rhs));
    }
    return true;
}

static bool check_dot(const Infer *x, const Shape *lhs, const Shape *rhs, bool *in_lhs, bool *in_rhs)
{
    DotDims v = dot_dims(x->i);
    if (v.lhs_batch.n != v.rhs_batch.n)
        return infer_bad(x, "lhs has %d batch dimensions, rhs %d", v.lhs_batch.n, v.rhs_batch.n);
    if (v.lhs_contracting.n != v.rhs_contracting.n)
        return infer_bad(x, "lhs has %d contracting dimensions, rhs %d", v.lhs_contracting.n, v.rhs_contracting.n);
    return mark_side(x, "lhs", v.lhs_batch, v.lhs_contracting, lhs, in_lhs) &&
           mark_side(x, "rhs", v.rhs_batch, v.rhs_contracting, rhs, in_rhs) &&
           same_sizes(x, "batch", lhs, v.lhs_batch, rhs, v.rhs_batch) &&
           same_contracting_sizes(x, lhs, v.lhs_contracting, rhs, v.rhs_contracting);
}

Type infer_preferred_type(const Infer *x, const Shape *lhs, const Shape *rhs)
{
    const Shape *w = x->i->shape;
    return w && shape_is_array(w) ? w->type : type_higher_precision(lhs->type, rhs->type);
}

/* Sizes under construction. */
typedef struct Sizes {
    int32_t  n;
    int64_t *dims;
    bool    *dynamic;
} Sizes;

static Sizes sizes_new(const Infer *x, int64_t room)
{
    return (Sizes){0, ARENA_ARRAY(x->a, int64_t, room), ARENA_ARRAY(x->a, bool, room)};
}

static void sizes_add(Sizes *v, const Shape *s, int64_t d)
{
    v->dims[v->n] = s->dims[d];
    v->dynamic[v->n++] = dim_is_dynamic(s, (int32_t)d);
}

static void add_free(Sizes *v, const Shape *s, const bool *named)
{
    for (int32_t k = 0; k < s->rank; k++)
        if (!named[k])
            sizes_add(v, s, k);
}

static const Shape *product(const Infer *x, const Shape *lhs, const Shape *rhs)
{
    bool *in_lhs = ARENA_ARRAY(x->a, bool, lhs->rank), *in_rhs = ARENA_ARRAY(x->a, bool, rhs->rank);
    if (!check_dot(x, lhs, rhs, in_lhs, in_rhs))
        return NULL;
    Ints  batch = inst_ints(x->i, ATTR_LHS_BATCH_DIMS);
    Sizes v = sizes_new(x, (int64_t)lhs->rank + rhs->rank);
    for (int32_t k = 0; k < batch.n; k++)
        sizes_add(&v, lhs, batch.v[k]);
    add_free(&v, lhs, in_lhs);
    add_free(&v, rhs, in_rhs);
    return infer_array(x, infer_preferred_type(x, lhs, rhs), v.n, v.dims, v.dynamic);
}

const Shape *infer_dot(const Infer *x)
{
    if (x->i->n_operands < 2)
        return infer_fail(x, "expects 2 operands, has %d", x->i->n_operands);
    bool extra = inst_attr(x->i, ATTR_SPARSITY_CONFIG) || inst_attr(x->i, ATTR_BLOCK_SCALING_CONFIG);
    if (x->i->n_operands > 2 && !extra && x->i->shape) /* XLA's parser does not look */
        return infer_fail(x, "expects 2 operands, has %d", x->i->n_operands);
    if (!infer_are_arrays(x))
        return NULL;
    return product(x, operand_shape(x, 0), operand_shape(x, 1));
}

/* What one side of scaled-dot asks of its scale: a divisor of each dimension, or, on bf16 operands, a single bf16 element for none. */
static bool check_scale(const Infer *x, int32_t k, Ints contracting)
{
    const Shape *s = operand_shape(x, k), *c = operand_shape(x, k + 2);
    if (contracting.n != 1)
        return infer_bad(x, "expects one contracting dimension for operand %d, has %d", k, contracting.n);
    if (s->type == TYPE_BF16 && c->type == TYPE_BF16 && shape_count(c) == 1 && shape_count(s) != 1)
        return true;
    if (c->rank != s->rank)
        return infer_bad(x, "the scale of operand %d must have its rank: %s and %s", k, infer_text(x, s), infer_text(x, c));
    for (int32_t d = 0; d < s->rank; d++)
        if (c->dims[d] == 0 ? s->dims[d] != 0 : s->dims[d] % c->dims[d] != 0)
            return infer_bad(x, "dimension %d of %s is no multiple of that of its scale %s", d, infer_text(x, s),
                             infer_text(x, c));
    return true;
}

const Shape *infer_scaled_dot(const Infer *x)
{
    if (!x->i->shape) /* XLA's parser takes operand 2 for the right-hand side and looks at no other */
        return infer_is_array(x, 0) && infer_is_array(x, 2) ? product(x, operand_shape(x, 0), operand_shape(x, 2)) : NULL;
    if (!infer_are_arrays(x))
        return NULL;
    if (operand_shape(x, 2)->rank == 0 && operand_shape(x, 3)->rank == 0)
        return infer_fail(x, "one of the scales must be an array");
    if (!check_scale(x, 0, inst_ints(x->i, ATTR_LHS_CONTRACTING_DIMS)) ||
        !check_scale(x, 1, inst_ints(x->i, ATTR_RHS_CONTRACTING_DIMS)))
        return NULL;
    return product(x, operand_shape(x, 0), operand_shape(x, 1));
}

/* ragged-dot */

typedef enum { RAGGED_FREE, RAGGED_CONTRACTING, RAGGED_BATCH } RaggedMode;

/* group_sizes is [G], or has before G the sizes of the lhs dimensions that stand outside of the ragged one: the batch dimensions
 * (those before it when it is one itself), then the dimensions of its own kind before it. */
static bool check_group_sizes(const Infer *x, RaggedMode mode, int64_t ragged, const bool *named)
{
    const Shape *lhs = operand_shape(x, 0), *g = operand_shape(x, 2);
    DotDims      v = dot_dims(x->i);
    Sizes        prefix = sizes_new(x, lhs->rank);
    if (!type_is_int(g->type) || g->rank == 0)
        return infer_bad(x, "group sizes must be integers of rank 1 or more, got %s", infer_text(x, g));
    if (g->rank == 1)
        return true;
    for (int32_t k = 0; k < v.lhs_batch.n && !(mode == RAGGED_BATCH && v.lhs_batch.v[k] == ragged); k++)
        sizes_add(&prefix, lhs, v.lhs_batch.v[k]);
    for (int32_t k = 0; mode == RAGGED_CONTRACTING && k < v.lhs_contracting.n && v.lhs_contracting.v[k] != ragged; k++)
        sizes_add(&prefix, lhs, v.lhs_contracting.v[k]);
    for (int32_t k = 0; mode == RAGGED_FREE && k < ragged; k++)
        if (!named[k])
            sizes_add(&prefix, lhs, k);
    if (g->rank != prefix.n + 1)
        return infer_bad(x, "group sizes must have rank 1 or %d, got %s", prefix.n + 1, infer_text(x, g));
    for (int32_t k = 0; k < prefix.n; k++)
        if (g->dims[k] != prefix.dims[k])
            return infer_bad(x, "dimension %d of the group sizes %s must be %lld as in lhs", k, infer_text(x, g),
                             (long long)prefix.dims[k]);
    return true;
}

/* The one group dimension of rhs, sized G, neither batch nor contracting. It leaves the product. */
static bool check_group_dim(const Infer *x, RaggedMode mode, bool *in_rhs)
{
    const Shape *rhs = operand_shape(x, 1), *g = operand_shape(x, 2);
    Ints         group = inst_ints(x->i, ATTR_RHS_GROUP_DIMS);
    int          want = mode == RAGGED_FREE ? 1 : 0;
    if (group.n != want)
        return infer_bad(x, "expects %d rhs_group_dims when lhs_ragged_dims is a %s dimension, has %d", want,
                         mode == RAGGED_FREE ? "free" : mode == RAGGED_BATCH ? "batch" : "contracting", group.n);
    if (want == 0)
        return true;
    int64_t d = group.v[0];
    if (d < 0 || d >= rhs->rank)
        return infer_bad(x, "rhs_group_dims names dimension %lld, but rhs is %s", (long long)d, infer_text(x, rhs));
    if (in_rhs[d])
        return infer_bad(x, "rhs group dimension %lld must be neither batch nor contracting", (long long)d);
    if (rhs->dims[d] != g->dims[g->rank - 1])
        return infer_bad(x, "rhs has %lld groups in dimension %lld, the group sizes %s have %lld", (long long)rhs->dims[d],
                         (long long)d, infer_text(x, g), (long long)g->dims[g->rank - 1]);
    in_rhs[d] = true;
    return true;
}

const Shape *infer_ragged_dot(const Infer *x)
{
    Ints ragged = inst_ints(x->i, ATTR_LHS_RAGGED_DIMS);
    if (!infer_are_arrays(x))
        return NULL;
    const Shape *lhs = operand_shape(x, 0), *rhs = operand_shape(x, 1), *g = operand_shape(x, 2);
    bool        *in_lhs = ARENA_ARRAY(x->a, bool, lhs->rank), *in_rhs = ARENA_ARRAY(x->a, bool, rhs->rank);
    if (!check_dot(x, lhs, rhs, in_lhs, in_rhs))
        return NULL;
    if (ragged.n != 1 || ragged.v[0] < 0 || ragged.v[0] >= lhs->rank)
        return infer_fail(x, "lhs_ragged_dims must name one dimension of %s", infer_text(x, lhs));
    DotDims    v = dot_dims(x->i);
    RaggedMode mode = ints_has(v.lhs_batch, ragged.v[0])         ? RAGGED_BATCH
                      : ints_has(v.lhs_contracting, ragged.v[0]) ? RAGGED_CONTRACTING
                                                                 : RAGGED_FREE;
    if (!check_group_sizes(x, mode, ragged.v[0], in_lhs) || !check_group_dim(x, mode, in_rhs))
        return NULL;
    Sizes out = sizes_new(x, (int64_t)lhs->rank + rhs->rank + 1);
    if (mode == RAGGED_CONTRACTING)
        sizes_add(&out, g, g->rank - 1);
    for (int32_t k = 0; k < v.lhs_batch.n; k++)
        sizes_add(&out, lhs, v.lhs_batch.v[k]);
    add_free(&out, lhs, in_lhs);
    add_free(&out, rhs, in_rhs);
    return infer_array(x, infer_preferred_type(x, lhs, rhs), out.n, out.dims, out.dynamic);
}
