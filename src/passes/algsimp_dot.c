/* Rules of algsimp about dots and convolutions. */
#include "config.h"

#include <math.h>

#include "passes/algsimp.h"
#include "passes/expand.h"

/* ---- dot ---- */

static bool plain_dot(const Inst *i)
{
    return i->n_operands == 2 && !inst_attr(i, ATTR_SPARSITY_CONFIG) && !inst_attr(i, ATTR_BLOCK_SCALING_CONFIG);
}

/* The operand spread over the result [batch..., lhs free..., rhs free...]; `at` is where its free dimensions start. */
static Inst *spread(Simp *s, const Inst *i, Inst *x, Ints batch, int64_t at)
{
    Ints dims = scratch_ints(s, x->shape->rank);
    for (int32_t k = 0; k < x->shape->rank; k++)
        *ints_at(dims, k) = -1;
    for (int32_t k = 0; k < batch.n; k++)
        *ints_at(dims, (int32_t)batch.v[k]) = k;
    for (int32_t k = 0; k < x->shape->rank; k++)
        if (dims.v[k] < 0)
            *ints_at(dims, k) = at++;
    return simp_broadcast(s, shape_with_type(s->arena, i->shape, x->shape->type), x, dims);
}

/* A dot's sum starts at 0, so that it never is -0. Floats below f32 are summed in f32 and rounded at the end, after the 0 was added: there a
 * small negative product gives -0. */
Inst *rule_dot_outer(Simp *s, Inst *i)
{
    Type t = i->shape->type, wide = t == TYPE_BF16 || t == TYPE_F16 ? TYPE_F32 : t;
    Ints lhs_batch = inst_ints(i, ATTR_LHS_BATCH_DIMS), rhs_batch = inst_ints(i, ATTR_RHS_BATCH_DIMS);
    Inst *x[] = {inst_operand(i, 0), inst_operand(i, 1)};
    if (!plain_dot(i) || inst_ints(i, ATTR_LHS_CONTRACTING_DIMS).n || x[0]->shape->type != t || x[1]->shape->type != t)
        return NULL;
    if (type_is_complex(t) || (type_is_float(t) && wide != TYPE_F32 && wide != TYPE_F64) || shape_count(i->shape) <= 0)
        return NULL;
    for (int k = 0; k < 2; k++)
        if (wide != t)
            x[k] = simp_new(s, OP_CONVERT, shape_with_type(s->arena, x[k]->shape, wide), 1, &x[k]);
    const Shape  *shape = shape_with_type(s->arena, i->shape, wide);
    const int64_t lhs_rank = x[0]->shape->rank;
    Inst *operands[] = {spread(s, i, x[0], lhs_batch, lhs_batch.n), spread(s, i, x[1], rhs_batch, lhs_rank)};
    Inst *product = simp_new(s, OP_MULTIPLY, shape, 2, operands);
    if (type_is_float(t))
        product = simp_new(s, OP_ADD, shape, 2, (Inst *[]){product, simp_splat(s, shape, 0)});
    return wide == t ? product : simp_new(s, OP_CONVERT, i->shape, 1, &product);
}

Inst *rule_dot_empty(Simp *s, Inst *i)
{
    if (!plain_dot(i) || shape_count(inst_operand(i, 0)->shape) != 0 || shape_count(i->shape) <= 0)
        return NULL;
    return simp_splat(s, i->shape, 0);
}

enum { MOST_PARTS = 8 };

/* dot(concatenate(x, y), w) over what is concatenated -> dot(x, part of w) + dot(y, rest of w), for a constant w: the parts are not brought together. */
Inst *rule_dot_concatenate(Simp *s, Inst *i)
{
    static const AttrId contracting_ids[] = {ATTR_LHS_CONTRACTING_DIMS, ATTR_RHS_CONTRACTING_DIMS};
    for (int32_t side = 0; plain_dot(i) && side < 2; side++) {
        const Inst *c = inst_operand(i, side);
        Inst       *w = inst_operand(i, 1 - side), *sum = NULL;
        Ints        over = inst_ints(i, contracting_ids[side]);
        if (c->op != OP_CONCATENATE || c->n_uses != 1 || c->n_operands > MOST_PARTS || w->op != OP_CONSTANT || w->shape->layout || over.n != 1 ||
            dimensions(c).v[0] != over.v[0] || inst_ints(i, ATTR_LHS_BATCH_DIMS).n || i->shape->rank != 2)
            continue;
        int32_t     along = (int32_t)inst_ints(i, contracting_ids[1 - side]).v[0];
        SliceRange *cut = ARENA_ARRAY(s->scratch, SliceRange, w->shape->rank);
        Ints        sizes = scratch_ints(s, w->shape->rank);
        for (int32_t k = 0; k < w->shape->rank; k++) {
            cut[k] = (SliceRange){0, w->shape->dims[k], 1};
            *ints_at(sizes, k) = w->shape->dims[k];
        }
        cut[along].limit = 0;
        for (int32_t k = 0; k < c->n_operands; k++) {
            Inst *operands[2];
            operands[side] = inst_operand(c, k);
            *ints_at(sizes, along) = operands[side]->shape->dims[over.v[0]];
            cut[along] = (SliceRange){cut[along].limit, cut[along].limit + sizes.v[along], 1};
            operands[1 - side] = simp_slice(s, simp_shape(s, w->shape->type, sizes.n, sizes.v), w, cut);
            Inst *part = simp_like(s, i, i->shape, operands);
            sum = sum ? simp_new(s, OP_ADD, i->shape, 2, (Inst *[]){sum, part}) : part;
        }
        return sum;
    }
    return NULL;
}

static Ints through(Simp *s, Ints dims, Ints perm)
{
    Ints out = scratch_ints(s, dims.n);
    for (int32_t k = 0; k < dims.n; k++)
        *ints_at(out, k) = perm.v[dims.v[k]];
    return out;
}

/* Whether the dimensions of t that are neither batch nor contracting keep their order in the transposed array. */
static bool keeps_free_order(const Inst *t, Ints batch, Ints contracting)
{
    Ints    perm = inst_ints(t, ATTR_DIMENSIONS);
    int64_t last = -1;
    for (int32_t k = 0; k < perm.n; k++) {
        if (ints_has(batch, k) || ints_has(contracting, k))
            continue;
        if (perm.v[k] < last)
            return false;
        last = perm.v[k];
    }
    return true;
}

/* The dimension numbers name what the transpose would move. */
Inst *rule_dot_transpose(Simp *s, Inst *i)
{
    static const AttrId batch_ids[] = {ATTR_LHS_BATCH_DIMS, ATTR_RHS_BATCH_DIMS};
    static const AttrId contracting_ids[] = {ATTR_LHS_CONTRACTING_DIMS, ATTR_RHS_CONTRACTING_DIMS};
    for (int32_t side = 0; plain_dot(i) && side < 2; side++) {
        Inst *t = inst_operand(i, side);
        Ints  batch = inst_ints(i, batch_ids[side]), contracting = inst_ints(i, contracting_ids[side]);
        if (t->op != OP_TRANSPOSE || !keeps_free_order(t, batch, contracting))
            continue;
        Ints  perm = inst_ints(t, ATTR_DIMENSIONS);
        Inst *operands[] = {inst_operand(i, 0), inst_operand(i, 1)};
        operands[side] = inst_operand(t, 0);
        Inst *dot = simp_like(s, i, i->shape, operands);
        if (batch.n)
            inst_set_ints(dot, batch_ids[side], through(s, batch, perm));
        inst_set_ints(dot, contracting_ids[side], through(s, contracting, perm));
        return dot;
    }
    return NULL;
}

/* The free dimensions of the one side in front of those of the other, all else as it is: what the exchanged product has. */
bool simp_exchanges_sides(const Inst *t, const Inst *dot)
{
    Ints    perm = inst_ints(t, ATTR_DIMENSIONS);
    int32_t batch = inst_ints(dot, ATTR_LHS_BATCH_DIMS).n, contracted = inst_ints(dot, ATTR_LHS_CONTRACTING_DIMS).n;
    int32_t left = inst_operand(dot, 0)->shape->rank - batch - contracted, right = perm.n - batch - left;
    for (int32_t k = 0; k < perm.n; k++)
        if (perm.v[k] != (k < batch ? k : k < batch + right ? k + left : k - right))
            return false;
    return true;
}

/* A transpose's layout is that of its operand where nobody has chosen another one, and then the transpose moves nothing; but who reads both its elements and those of arrays
 * with the default layout has one of them across. */
Inst *rule_transpose_dot(Simp *s, Inst *i)
{
    const Inst *d = inst_operand(i, 0);
    if (d->op != OP_DOT || d->n_uses != 1 || !plain_dot(d) || d->shape->layout || (i->shape->layout && !simp_seen_by_index(i)) || !simp_exchanges_sides(i, d))
        return NULL;
    const Shape *shape = i->shape->layout ? simp_shape(s, i->shape->type, i->shape->rank, i->shape->dims) : i->shape;
    Inst        *dot = simp_like(s, d, shape, (Inst *[]){inst_operand(d, 1), inst_operand(d, 0)});
    Ints  precision = inst_ints(d, ATTR_OPERAND_PRECISION);
    if (inst_ints(d, ATTR_LHS_BATCH_DIMS).n) {
        inst_set_ints(dot, ATTR_LHS_BATCH_DIMS, inst_ints(d, ATTR_RHS_BATCH_DIMS));
        inst_set_ints(dot, ATTR_RHS_BATCH_DIMS, inst_ints(d, ATTR_LHS_BATCH_DIMS));
    }
    inst_set_ints(dot, ATTR_LHS_CONTRACTING_DIMS, inst_ints(d, ATTR_RHS_CONTRACTING_DIMS));
    inst_set_ints(dot, ATTR_RHS_CONTRACTING_DIMS, inst_ints(d, ATTR_LHS_CONTRACTING_DIMS));
    if (precision.n == 2) {
        Ints other = scratch_ints(s, 2);
        *ints_at(other, 0) = precision.v[1];
        *ints_at(other, 1) = precision.v[0];
        inst_set_ints(dot, ATTR_OPERAND_PRECISION, other);
    }
    return dot;
}

/* The contracted dimensions of size 1 are dropped: nothing is summed over them. Dots without other ones become products. */
Inst *rule_dot_unit(Simp *s, Inst *i)
{
    Type t = i->shape->type;
    Ints contracting = inst_ints(i, ATTR_LHS_CONTRACTING_DIMS);
    if (!plain_dot(i) || contracting.n == 0 || (t != TYPE_F32 && t != TYPE_F64 && t != TYPE_BF16 && t != TYPE_F16 && !type_is_int(t)))
        return NULL;
    for (int32_t k = 0; k < contracting.n; k++)
        if (inst_operand(i, 0)->shape->dims[contracting.v[k]] != 1)
            return NULL;
    for (int32_t side = 0; side < 2; side++)
        if (inst_operand(i, side)->shape->type != t || inst_operand(i, side)->shape->layout)
            return NULL;
    static const AttrId contracting_ids[] = {ATTR_LHS_CONTRACTING_DIMS, ATTR_RHS_CONTRACTING_DIMS};
    static const AttrId batch_ids[] = {ATTR_LHS_BATCH_DIMS, ATTR_RHS_BATCH_DIMS};
    Inst *operands[2];
    Ints  batch[2];
    for (int32_t side = 0; side < 2; side++) {
        Inst *x = inst_operand(i, side);
        Ints  drop = inst_ints(i, contracting_ids[side]), kept = inst_ints(i, batch_ids[side]);
        Ints  sizes = scratch_ints(s, x->shape->rank - drop.n), where = scratch_ints(s, x->shape->rank);
        int32_t n = 0;
        for (int32_t d = 0; d < x->shape->rank; d++) {
            *ints_at(where, d) = n;
            if (!ints_has(drop, d))
                *ints_at(sizes, n++) = x->shape->dims[d];
        }
        batch[side] = scratch_ints(s, kept.n);
        for (int32_t d = 0; d < kept.n; d++)
            *ints_at(batch[side], d) = where.v[kept.v[d]];
        operands[side] = simp_reshape(s, simp_shape(s, t, n, sizes.v), x);
    }
    Inst *dot = simp_like(s, i, i->shape, operands);
    for (int32_t side = 0; side < 2; side++) {
        inst_set_ints(dot, contracting_ids[side], (Ints){NULL, 0});
        if (batch[side].n)
            inst_set_ints(dot, batch_ids[side], batch[side]);
    }
    return dot;
}

enum { MOST_FOLDED = 1 << 16, MOST_WORK = 1 << 20 }; /* elements and products: what is folded for sure */

static bool known_matrix(const Inst *i)
{
    return i->op == OP_CONSTANT && i->shape->rank == 2 && !i->shape->layout && !i->literal->elided;
}

/* dot(row i of c, d) of constants -> row i of dot(c, d), which is a constant too, and not larger than both. */
Inst *rule_dot_row(Simp *s, Inst *i)
{
    static const AttrId contracting_ids[] = {ATTR_LHS_CONTRACTING_DIMS, ATTR_RHS_CONTRACTING_DIMS};
    for (int32_t side = 0; plain_dot(i) && side < 2; side++) {
        const Inst *row = inst_operand(i, side), *other = inst_operand(i, 1 - side);
        Ints        over = inst_ints(i, contracting_ids[side]);
        if (row->op != OP_DYNAMIC_SLICE || row->n_operands != 3 || !known_matrix(inst_operand(row, 0)) || !known_matrix(other) || over.n != 1 ||
            inst_ints(i, ATTR_LHS_BATCH_DIMS).n || i->shape->layout)
            continue;
        const Shape *c = inst_operand(row, 0)->shape;
        int32_t      k = (int32_t)over.v[0], free = 1 - k;
        int64_t      sizes[2] = {i->shape->dims[0], i->shape->dims[1]};
        if (row->shape->dims[k] != c->dims[k] || row->shape->dims[free] != 1)
            continue;
        sizes[side] = c->dims[free];
        const Shape *all = simp_shape(s, i->shape->type, 2, sizes);
        int64_t      n = shape_count(all), both = shape_count(c) + shape_count(other->shape);
        if (n <= 0 || n > both || both > MOST_FOLDED - n || n > MOST_WORK / c->dims[k])
            continue;
        Inst *operands[2], *at[2];
        operands[side] = inst_operand(row, 0);
        operands[1 - side] = inst_operand(i, 1 - side);
        at[side] = inst_operand(row, 1 + free);
        at[1 - side] = simp_splat(s, at[side]->shape, 0);
        return simp_dynamic_slice(s, i->shape, simp_like(s, i, all, operands), at);
    }
    return NULL;
}

/* Dimension `dim` of a constant split into those of t from `begin` on, with the order that t gave to them taken back, and joined again. */
static Inst *reordered(Simp *s, Inst *c, int32_t dim, const Inst *t, int32_t begin, int32_t end)
{
    int32_t n = end - begin, rank = c->shape->rank + n - 1;
    Ints    perm = dimensions(t), split = scratch_ints(s, rank), order = scratch_ints(s, rank), sizes = scratch_ints(s, rank);
    for (int32_t d = 0; d < rank; d++) {
        *ints_at(split, d) = d < dim ? c->shape->dims[d] : d < dim + n ? t->shape->dims[begin + d - dim] : c->shape->dims[d - n + 1];
        *ints_at(order, d) = d;
    }
    for (int32_t k = 0; k < n; k++)
        *ints_at(order, dim + (int32_t)perm.v[begin + k] - begin) = dim + k;
    for (int32_t d = 0; d < rank; d++)
        *ints_at(sizes, d) = split.v[order.v[d]];
    Inst *parts = simp_reshape(s, simp_shape(s, c->shape->type, rank, split.v), c);
    Inst *moved = simp_new(s, OP_TRANSPOSE, simp_shape(s, c->shape->type, rank, sizes.v), 1, &parts);
    inst_set_ints(moved, ATTR_DIMENSIONS, order);
    return simp_reshape(s, c->shape, moved);
}

/* Whether t only exchanges dimensions from begin to end. */
static bool moves_within(const Inst *t, int32_t begin, int32_t end)
{
    Ints perm = dimensions(t);
    for (int32_t k = 0; k < perm.n; k++)
        if (k < begin || k >= end ? perm.v[k] != k : perm.v[k] < begin || perm.v[k] >= end)
            return false;
    return true;
}

/* dot(reshape(transpose(x)), c) where the reshape joins what the transpose exchanges, and the dot sums over it -> dot(reshape(x), c in that order):
 * the constant is transposed once. */
Inst *rule_dot_reorder(Simp *s, Inst *i)
{
    static const AttrId contracting_ids[] = {ATTR_LHS_CONTRACTING_DIMS, ATTR_RHS_CONTRACTING_DIMS};
    for (int32_t side = 0; plain_dot(i) && side < 2; side++) {
        const Inst *r = inst_operand(i, side), *t = r->op == OP_RESHAPE ? inst_operand(r, 0) : r;
        Inst       *c = inst_operand(i, 1 - side);
        Ints        over = inst_ints(i, contracting_ids[side]);
        if (r == t || t->op != OP_TRANSPOSE || c->op != OP_CONSTANT || c->literal->elided || over.n != 1 || shape_count(t->shape) <= 0 || r->shape->layout ||
            t->shape->layout || inst_operand(t, 0)->shape->layout || c->shape->layout)
            continue;
        ShapeRun run = {0};
        while (shape_next_run(t->shape, r->shape, &run) && run.to_end <= over.v[0])
            ;
        if (run.to != over.v[0] || run.to_end != run.to + 1 || run.from_end < run.from + 2 || !moves_within(t, run.from, run.from_end))
            continue;
        Inst *operands[2];
        operands[side] = simp_reshape(s, r->shape, inst_operand(t, 0));
        operands[1 - side] = reordered(s, c, (int32_t)inst_ints(i, contracting_ids[1 - side]).v[0], t, run.from, run.from_end);
        return simp_like(s, i, i->shape, operands);
    }
    return NULL;
}

/* ---- convolution ---- */

static bool plain_convolution(const Inst *i)
{
    static const AttrId others[] = {ATTR_SPARSITY_CONFIG, ATTR_BLOCK_SCALING_CONFIG};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (inst_attr(i, others[k]))
            return false;
    return i->n_operands == 2 && inst_int(i, ATTR_FEATURE_GROUP_COUNT, 1) == 1 && inst_int(i, ATTR_BATCH_GROUP_COUNT, 1) == 1;
}

/* The window stays at one place with each of its elements at one of x's, or has one element that goes over x from end to end. */
typedef enum { OTHER_WINDOW, WINDOW_COVERS, WINDOW_OF_ONE } WindowKind;

static WindowKind window_kind(const WindowDim *w, int64_t size)
{
    if (w->pad_lo || w->pad_hi || (w->base_dilation != 1 && size > 1))
        return OTHER_WINDOW;
    if (w->size == 1)
        return w->stride == 1 || size == 1 ? WINDOW_OF_ONE : OTHER_WINDOW;
    return w->size == size && w->window_dilation == 1 && !w->reversal ? WINDOW_COVERS : OTHER_WINDOW;
}

/* A convolution as a dot: x contracted over its features and the dimensions that the window covers, w reshaped so that the dimensions of one
 * element are gone; result dimensions as the dot orders them. */
typedef struct ConvDot {
    Ints          x_contract, w_contract;
    Ints          x_free, w_free;  /* dimensions of the convolution's result, in the order of the dot's */
    Ints          w_sizes;
    const Shape  *out;
} ConvDot;

static int32_t spatial_of(const int64_t *spatial, int32_t n, int64_t dim)
{
    for (int32_t k = 0; k < n; k++)
        if (spatial[k] == dim)
            return k;
    return -1;
}

/* Which result dimension each free dimension of x becomes. */
static Ints free_of_x(Simp *s, const DimLabels *l, const WindowKind *kinds, int32_t rank)
{
    Ints    out = scratch_ints(s, rank);
    int32_t n = 0;
    for (int32_t d = 0; d < rank; d++) {
        int32_t k = spatial_of(l->lhs_spatial, l->spatial, d);
        if (d == l->lhs_batch)
            *ints_at(out, n++) = l->out_batch;
        else if (k >= 0 && kinds[k] == WINDOW_OF_ONE)
            *ints_at(out, n++) = l->out_spatial[k];
    }
    return (Ints){out.v, n};
}

/* w without its dimensions of one element; where its dimensions have gone is set in `where`. */
static Ints sizes_of_w(Simp *s, const DimLabels *l, const WindowKind *kinds, const Shape *w, int32_t *where)
{
    Ints    sizes = scratch_ints(s, w->rank);
    int32_t n = 0;
    for (int32_t d = 0; d < w->rank; d++) {
        int32_t k = spatial_of(l->rhs_spatial, l->spatial, d);
        where[d] = n;
        if (k < 0 || kinds[k] == WINDOW_COVERS)
            *ints_at(sizes, n++) = w->dims[d];
    }
    return (Ints){sizes.v, n};
}

static bool conv_as_dot(Simp *s, const Inst *i, ConvDot *c)
{
    const DimLabels *l = inst_attr(i, ATTR_DIM_LABELS)->value.dim_labels;
    const Window    *window = inst_window(i);
    const Shape     *x = inst_operand(i, 0)->shape, *w = inst_operand(i, 1)->shape;
    WindowKind      *kinds = ARENA_ARRAY(s->scratch, WindowKind, l->spatial);
    int32_t         *where = ARENA_ARRAY(s->scratch, int32_t, w->rank), n = 1;
    for (int32_t k = 0; k < l->spatial; k++) {
        kinds[k] = window_kind(&window->v[k], x->dims[l->lhs_spatial[k]]);
        if (kinds[k] == OTHER_WINDOW)
            return false;
    }
    *c = (ConvDot){.x_contract = scratch_ints(s, 1 + l->spatial), .w_contract = scratch_ints(s, 1 + l->spatial), .w_free = scratch_ints(s, 1),
                   .x_free = free_of_x(s, l, kinds, x->rank), .w_sizes = sizes_of_w(s, l, kinds, w, where), .out = i->shape};
    *ints_at(c->x_contract, 0) = l->lhs_feature;
    *ints_at(c->w_contract, 0) = where[l->rhs_in];
    for (int32_t k = 0; k < l->spatial; k++)
        if (kinds[k] == WINDOW_COVERS) {
            *ints_at(c->x_contract, n) = l->lhs_spatial[k];
            *ints_at(c->w_contract, n++) = where[l->rhs_spatial[k]];
        }
    c->x_contract.n = c->w_contract.n = n;
    *ints_at(c->w_free, 0) = l->out_feature;
    return ints_increase(c->x_contract) && ints_increase(c->w_contract);
}

/* The dimensions in this order, sizes of 1 aside, are those of the result, so that a reshape is all it takes. */
static bool in_result_order(const ConvDot *c, Ints first, Ints second)
{
    int64_t last = -1;
    for (int32_t k = 0; k < first.n + second.n; k++) {
        int64_t d = k < first.n ? first.v[k] : second.v[k - first.n];
        if (c->out->dims[d] == 1)
            continue;
        if (d < last)
            return false;
        last = d;
    }
    return true;
}

static const Shape *dot_shape(Simp *s, const ConvDot *c, Ints first, Ints second)
{
    Ints sizes = scratch_ints(s, first.n + second.n);
    for (int32_t k = 0; k < sizes.n; k++)
        *ints_at(sizes, k) = c->out->dims[k < first.n ? first.v[k] : second.v[k - first.n]];
    return simp_shape(s, c->out->type, sizes.n, sizes.v);
}

static void copy_attr(Inst *to, const Inst *from, AttrId id)
{
    const Attr *a = inst_attr(from, id);
    if (a)
        inst_set_attr(to, *a);
}

/* A window of one element, or one that takes all: each result is a sum over features (and window), which is a dot. The products are summed in the
 * same order, features first; where they do not lie so in memory the dot would be the slower one. Not of integers, whose convolutions saturate. */
Inst *rule_convolution_dot(Simp *s, Inst *i)
{
    Inst   *x = inst_operand(i, 0), *w = inst_operand(i, 1);
    Type    t = i->shape->type;
    ConvDot c;
    if (!plain_convolution(i) || !type_is_float(t) || x->shape->type != t || w->shape->type != t || x->shape->layout ||
        w->shape->layout || i->shape->layout || shape_count(i->shape) <= 0 || shape_count(x->shape) <= 0 || !conv_as_dot(s, i, &c))
        return NULL;
    bool x_first = in_result_order(&c, c.x_free, c.w_free);
    if (!x_first && (inst_attr(i, ATTR_OPERAND_PRECISION) || !in_result_order(&c, c.w_free, c.x_free)))
        return NULL;
    Inst *v = simp_reshape(s, simp_shape(s, t, c.w_sizes.n, c.w_sizes.v), w);
    Inst *dot = simp_new(s, OP_DOT, x_first ? dot_shape(s, &c, c.x_free, c.w_free) : dot_shape(s, &c, c.w_free, c.x_free), 2,
                         x_first ? (Inst *[]){x, v} : (Inst *[]){v, x});
    inst_set_ints(dot, ATTR_LHS_CONTRACTING_DIMS, x_first ? c.x_contract : c.w_contract);
    inst_set_ints(dot, ATTR_RHS_CONTRACTING_DIMS, x_first ? c.w_contract : c.x_contract);
    copy_attr(dot, i, ATTR_OPERAND_PRECISION);
    copy_attr(dot, i, ATTR_ALGORITHM);
    return simp_reshape(s, i->shape, dot);
}

/* A convolution of each feature with a window of its own, of one element or over all of x:
 *   x [N,H,W,C], w [1,1,1,C] or [H,W,1,C]    =>    x * broadcast(w) + 0, or its sum over H and W */
typedef struct Depthwise {
    Ints w_sizes, w_dims; /* w without its dimensions of one element, and where these are in x */
    Ints covered, free;   /* dimensions of x that a window covers; of the result, what the others become */
} Depthwise;

static bool is_depthwise(Simp *s, const Inst *i, Depthwise *d)
{
    const DimLabels *l = inst_attr(i, ATTR_DIM_LABELS)->value.dim_labels;
    const Shape     *x = inst_operand(i, 0)->shape, *w = inst_operand(i, 1)->shape;
    int64_t          groups = inst_int(i, ATTR_FEATURE_GROUP_COUNT, 1);
    int32_t          n = 0, covered = 0, free = 0;
    if (groups < 2 || x->dims[l->lhs_feature] != groups || w->dims[l->rhs_out] != groups || w->dims[l->rhs_in] != 1)
        return false;
    *d = (Depthwise){scratch_ints(s, w->rank), scratch_ints(s, w->rank), scratch_ints(s, x->rank), scratch_ints(s, x->rank)};
    for (int32_t k = 0; k < w->rank; k++) {
        int32_t at = spatial_of(l->rhs_spatial, l->spatial, k);
        if (k == l->rhs_in || (at >= 0 && w->dims[k] == 1))
            continue;
        *ints_at(d->w_sizes, n) = w->dims[k];
        *ints_at(d->w_dims, n++) = at < 0 ? l->lhs_feature : l->lhs_spatial[at];
    }
    for (int32_t k = 0; k < x->rank; k++) {
        int32_t    at = spatial_of(l->lhs_spatial, l->spatial, k);
        WindowKind kind = at < 0 ? WINDOW_OF_ONE : window_kind(&inst_window(i)->v[at], x->dims[k]);
        if (kind == OTHER_WINDOW)
            return false;
        if (kind == WINDOW_COVERS)
            *ints_at(d->covered, covered++) = k;
        else
            *ints_at(d->free, free++) = at >= 0 ? l->out_spatial[at] : k == l->lhs_batch ? l->out_batch : l->out_feature;
    }
    d->w_sizes.n = d->w_dims.n = n;
    d->covered.n = covered;
    d->free.n = free;
    return true;
}

static Inst *depthwise(Simp *s, const Inst *i, bool sums)
{
    Inst     *x = inst_operand(i, 0), *w = inst_operand(i, 1);
    Type      t = i->shape->type;
    Depthwise d;
    if (i->n_operands != 2 || inst_attr(i, ATTR_SPARSITY_CONFIG) || inst_attr(i, ATTR_BLOCK_SCALING_CONFIG) || (t != TYPE_F32 && t != TYPE_F64) ||
        inst_int(i, ATTR_BATCH_GROUP_COUNT, 1) != 1 || x->shape->type != t || w->shape->type != t || x->shape->layout || w->shape->layout ||
        i->shape->layout || shape_count(i->shape) <= 0 || shape_count(x->shape) <= 0 || !is_depthwise(s, i, &d) || (d.covered.n > 0) != sums)
        return NULL;
    if (!in_result_order(&(ConvDot){.out = i->shape}, d.free, (Ints){NULL, 0}))
        return NULL;
    Inst *spread = simp_broadcast(s, x->shape, simp_reshape(s, simp_shape(s, t, d.w_sizes.n, d.w_sizes.v), w), d.w_dims);
    Inst *product = simp_new(s, OP_MULTIPLY, x->shape, 2, (Inst *[]){x, spread});
    if (!sums)
        return simp_reshape(s, i->shape, simp_new(s, OP_ADD, x->shape, 2, (Inst *[]){product, simp_splat(s, x->shape, 0)}));
    Comp *add = expand_reducer(i, OP_ADD, t);
    Ints  sizes = scratch_ints(s, d.free.n);
    for (int32_t k = 0; k < d.free.n; k++)
        *ints_at(sizes, k) = i->shape->dims[d.free.v[k]];
    Inst *sum = simp_new(s, OP_REDUCE, simp_shape(s, t, sizes.n, sizes.v), 2, (Inst *[]){product, simp_splat(s, shape_scalar(s->arena, t), 0)});
    inst_set_ints(sum, ATTR_DIMENSIONS, d.covered);
    inst_set_callees(sum, 1, &add);
    return simp_reshape(s, i->shape, sum);
}

/* One product each, added to 0. */
Inst *rule_convolution_product(Simp *s, Inst *i)
{
    return depthwise(s, i, false);
}

/* Sums of products, in another order. */
Inst *rule_convolution_product_sum(Simp *s, Inst *i)
{
    return depthwise(s, i, true);
}

static Inst *with_window(Simp *s, const Inst *i, const Shape *shape, Inst *const *operands, const WindowDim *v)
{
    Window *window = ARENA_NEW(s->arena, Window);
    *window = (Window){inst_window(i)->n, arena_copy(s->arena, v, (size_t)inst_window(i)->n * sizeof *v)};
    Inst *j = simp_like(s, i, shape, operands);
    inst_set_attr(j, (Attr){.id = ATTR_WINDOW, .value.window = window});
    return j;
}

/* What is padded between elements is dilation, what is padded at the ends of `size` elements is the window's: each with what the window puts behind it. */
static bool take_padding(WindowDim *w, const PadDim *p, int64_t size)
{
    int64_t lo, hi, dilation = w->base_dilation;
    if (p->lo < 0 || p->hi < 0 || (size == 0 && dilation != 1) || !size_mul(p->lo, dilation, &lo) || !size_mul(p->hi, dilation, &hi))
        return false;
    return size_mul(p->interior + 1, dilation, &w->base_dilation) && size_add(w->pad_lo, lo, &w->pad_lo) && size_add(w->pad_hi, hi, &w->pad_hi) &&
           ((!lo && !hi) || (w->pad_lo >= 0 && w->pad_hi >= 0));
}

/* Sums of nothing. */
Inst *rule_convolution_empty(Simp *s, Inst *i)
{
    if (!plain_convolution(i) || (shape_count(inst_operand(i, 0)->shape) != 0 && shape_count(inst_operand(i, 1)->shape) != 0) || shape_count(i->shape) <= 0)
        return NULL;
    return simp_splat(s, i->shape, 0);
}

/* With weights that are not finite a zero that is there and one that is not differ. */
Inst *rule_convolution_pad(Simp *s, Inst *i)
{
    const Inst *pad = inst_operand(i, 0);
    if (pad->op != OP_PAD || i->n_operands != 2 || !splat_is(inst_operand(pad, 1), 0))
        return NULL;
    const DimLabels *l = inst_attr(i, ATTR_DIM_LABELS)->value.dim_labels;
    const PadDim    *p = simp_padding(pad);
    const PadDim    *whole[] = {&p[l->lhs_batch], &p[l->lhs_feature]};
    WindowDim       *v = arena_copy(s->scratch, inst_window(i)->v, (size_t)inst_window(i)->n * sizeof *v);
    for (int32_t k = 0; k < 2; k++)
        if (whole[k]->lo || whole[k]->hi || whole[k]->interior)
            return NULL;
    for (int32_t k = 0; k < l->spatial; k++)
        if (!take_padding(&v[k], &p[l->lhs_spatial[k]], inst_operand(pad, 0)->shape->dims[l->lhs_spatial[k]]))
            return NULL;
    return with_window(s, i, i->shape, (Inst *[]){inst_operand(pad, 0), inst_operand(i, 1)}, v);
}

/* Zeros between the weights are dilation. */
Inst *rule_convolution_dilate(Simp *s, Inst *i)
{
    const Inst *pad = inst_operand(i, 1);
    if (pad->op != OP_PAD || i->n_operands != 2 || !splat_is(inst_operand(pad, 1), 0))
        return NULL;
    const DimLabels *l = inst_attr(i, ATTR_DIM_LABELS)->value.dim_labels;
    const PadDim    *p = simp_padding(pad);
    const Shape     *w = inst_operand(pad, 0)->shape;
    WindowDim       *v = arena_copy(s->scratch, inst_window(i)->v, (size_t)inst_window(i)->n * sizeof *v);
    for (int32_t d = 0; d < w->rank; d++) {
        int32_t k = spatial_of(l->rhs_spatial, l->spatial, d);
        if (p[d].lo || p[d].hi || (p[d].interior && (k < 0 || v[k].window_dilation != 1)))
            return NULL;
        if (k >= 0 && p[d].interior) {
            v[k].size = w->dims[d];
            v[k].window_dilation = p[d].interior + 1;
        }
    }
    return with_window(s, i, i->shape, (Inst *[]){inst_operand(i, 0), inst_operand(pad, 0)}, v);
}

/* ---- reduce-window ---- */

/* Meeting the initial value once more changes nothing. */
static bool may_meet_again(const Inst *initial, const Comp *reducer)
{
    switch (comp_binary_op(reducer)) {
    case OP_MAXIMUM: case OP_MINIMUM: case OP_AND: case OP_OR: return true;
    case OP_ADD: case OP_XOR: return splat_is(initial, 0);
    case OP_MULTIPLY: return splat_is(initial, 1);
    default: return false;
    }
}

/* What pad pads, in the type of what window reduction i reads. */
static Inst *unpadded(Simp *s, const Inst *i, const Inst *pad)
{
    Inst *x = inst_operand(pad, 0);
    Type  t = inst_operand(i, 0)->shape->type;
    return x->shape->type == t ? x : simp_new(s, OP_CONVERT, shape_with_type(s->arena, x->shape, t), 1, &x);
}

/* All elements up to each one of n, padded in front, or from each one on, padded behind. */
static bool is_running(const WindowDim *v, const PadDim *p, int64_t n)
{
    if (v->size != n || v->stride != 1 || v->window_dilation != 1 || v->base_dilation != 1 || p->interior != 0)
        return false;
    return p->hi == 0 ? p->lo > 0 && v->pad_lo == n - 1 && v->pad_hi == 0 : p->hi > 0 && p->lo == 0 && v->pad_hi == n - 1 && v->pad_lo == 0;
}

/* Running sums of what begins with zeros begin with zeros: of the rest they are running sums, as calls of the runtime make them. */
static Inst *running_behind_pad(Simp *s, Inst *i, Inst *pad)
{
    const PadDim *p = simp_padding(pad);
    const Shape  *x = inst_operand(pad, 0)->shape;
    WindowDim    *v = arena_copy(s->scratch, inst_window(i)->v, (size_t)inst_window(i)->n * sizeof *v);
    int64_t      *dims = arena_copy(s->scratch, i->shape->dims, (size_t)i->shape->rank * sizeof *dims);
    int32_t       found = 0;
    for (int32_t k = 0; k < x->rank; k++) {
        if (p[k].lo == 0 && p[k].hi == 0 && p[k].interior == 0)
            continue;
        if (!is_running(&v[k], &p[k], pad->shape->dims[k]) || x->dims[k] == 0)
            return NULL;
        v[k].size = dims[k] = x->dims[k];
        v[k].pad_lo -= p[k].lo;
        v[k].pad_hi -= p[k].hi;
        found++;
    }
    if (found != 1)
        return NULL;
    const Shape *shape = simp_shape(s, i->shape->type, i->shape->rank, dims);
    Inst        *running = with_window(s, i, shape, (Inst *[]){unpadded(s, i, pad), inst_operand(i, 1)}, v);
    return simp_pad(s, i->shape, running, inst_operand(i, 1), p);
}

/* Converted to the type of y, x is y. */
static bool becomes(const Inst *x, const Inst *y)
{
    const Literal *v = splat_value(x), *w = splat_value(y);
    if (v && w && type_is_int(v->type) && type_is_int(w->type))
        return literal_get_s64(v, 0) == literal_get_s64(w, 0);
    if (!v || !w || !type_is_float(v->type) || !type_is_float(w->type))
        return simp_same_splat(x, y);
    double a = literal_get_f64(v, 0), b = literal_get_f64(w, 0);
    return a == b && signbit(a) == signbit(b);
}

/* Elements of the padding are met, places outside of the array are not: a window begins with the initial value, once. */
Inst *rule_reduce_window_pad(Simp *s, Inst *i)
{
    Inst *running, *x = inst_operand(i, 0), *pad = x->op == OP_CONVERT && x->n_uses == 1 ? inst_operand(x, 0) : x;
    if (i->n_operands != 2 || pad->op != OP_PAD || !becomes(inst_operand(pad, 1), inst_operand(i, 1)) ||
        !may_meet_again(inst_operand(i, 1), inst_callee(i, 0)))
        return NULL;
    if ((running = running_behind_pad(s, i, pad)) != NULL)
        return running;
    WindowDim *v = arena_copy(s->scratch, inst_window(i)->v, (size_t)inst_window(i)->n * sizeof *v);
    for (int32_t k = 0; k < inst_window(i)->n; k++)
        if (!take_padding(&v[k], &simp_padding(pad)[k], inst_operand(pad, 0)->shape->dims[k]))
            return NULL;
    return with_window(s, i, i->shape, (Inst *[]){unpadded(s, i, pad), inst_operand(i, 1)}, v);
}
