/* The roles of a convolution's arrays are tried one after another; of those that fit, the one that moves the fewest bytes is taken. Sizes with x image, y result, w window, in pixels of one
 * dimension, as the library has them:
 *
 *     y = (x + pre + post - (w - 1) dilation - 1) / stride + 1
 *
 * The padding behind may be any that gives this; where it can be that in front, it is, since more of the library is made for that. */
#include "emit/conv_graph.h"

#include "emit/kernel_ir.h"
#include "emit/product_call.h"
#include "passes/util.h"

enum {
    LEAST_WORK = 1 << 18,  /* multiplications, as for dots */
    WORK = 4 << 20,        /* bytes beside what copies of the arrays take, */
    MOST_COPIES = 1 << 30, /* but of larger ones no more than this */
    PIXELS = 2             /* where pixels begin among the dimensions */
};

typedef struct Roles {
    const Inst      *conv;
    const Shape     *lhs, *rhs, *out;
    const DimLabels *labels;
    const Window    *window;
    int64_t          groups, batch_groups;
} Roles;

static bool roles_of(Roles *r, const Inst *conv, const Shape *result)
{
    if (conv->op != OP_CONVOLUTION)
        return false;
    *r = (Roles){ conv, inst_operand(conv, 0)->shape, inst_operand(conv, 1)->shape, result, inst_attr(conv, ATTR_DIM_LABELS)->value.dim_labels, inst_window(conv),
                  inst_int(conv, ATTR_FEATURE_GROUP_COUNT, 1), inst_int(conv, ATTR_BATCH_GROUP_COUNT, 1) };
    const Type t = r->lhs->type;
    return (t == TYPE_F32 || t == TYPE_F16 || t == TYPE_BF16) && r->rhs->type == t && result->type == t && r->labels->spatial >= 1 && r->labels->spatial <= CONV_MOST_SPATIAL &&
           r->lhs->rank == r->labels->spatial + 2 && shape_count(r->lhs) > 0 && shape_count(r->rhs) > 0 && shape_count(result) > 0;
}

/* ---- the arrays ---- */

/* The dimensions of pixels, outermost in the image's memory first. */
static void order_pixels(const Roles *r, int32_t *order)
{
    int64_t strides[CONV_MOST_DIMS];
    shape_strides(r->lhs, strides);
    for (int32_t k = 0; k < r->labels->spatial; k++) {
        int32_t at = k;
        for (; at > 0 && strides[r->labels->lhs_spatial[order[at - 1]]] < strides[r->labels->lhs_spatial[k]]; at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
}

static ConvArray array_of(const Shape *s, int64_t first, int64_t second, const int64_t *spatial, const int32_t *order, int32_t n)
{
    ConvArray     x = { .size = { s->dims[first], s->dims[second], 1 }, .dim = { (int32_t)first, (int32_t)second, -1 } };
    const int32_t skipped = n == 1; /* a line is a picture of height 1 */
    for (int32_t k = 0; k < n; k++) {
        x.dim[PIXELS + skipped + k] = (int32_t)spatial[order[k]];
        x.size[PIXELS + skipped + k] = s->dims[spatial[order[k]]];
    }
    return x;
}

/* The dimensions of an array from the innermost one on. */
static int32_t inner_dim(const ConvGraph *g, int32_t k)
{
    const int32_t rank = g->n_spatial + PIXELS;
    return !g->last ? rank - 1 - k : k == 0 ? 1 : k < rank - 1 ? rank - k : 0;
}

/* Does it lie in memory as the library has it? */
static bool is_packed(const ConvGraph *g, const ConvArray *x, const Shape *s)
{
    int64_t strides[CONV_MOST_DIMS], all = 1;
    shape_strides(s, strides);
    for (int32_t k = 0; k < g->n_spatial + PIXELS; k++) {
        const int32_t d = inner_dim(g, k);
        if (x->size[d] > 1 && strides[x->dim[d]] != all)
            return false;
        all *= x->size[d];
    }
    return true;
}

static const Shape *packed(Arena *a, const ConvGraph *g, const ConvArray *x, const Shape *s)
{
    Ints    order = ints_make(a, s->rank);
    int32_t n = 0;
    for (int32_t k = 0; k < g->n_spatial + PIXELS; k++)
        if (x->dim[inner_dim(g, k)] >= 0)
            *ints_at(order, n++) = x->dim[inner_dim(g, k)];
    return shape_with_layout(a, s, layout_from_order(a, order));
}

/* ---- the window ---- */

/* Paddings that lead from x to y; false: there are none of 0 and more. */
static bool take_window(ConvGraph *g, int32_t d, int64_t x, int64_t y, int64_t w, int64_t pre, int64_t stride, int64_t dilation)
{
    int64_t reach, last;
    if (!size_mul(w - 1, dilation, &reach) || !size_mul(y - 1, stride, &last) || pre < 0 || pre > INT32_MAX || reach > INT32_MAX || last > INT32_MAX || stride > INT32_MAX || dilation > INT32_MAX)
        return false;
    const int64_t least = last + reach + 1 - x - pre, most = least + stride - 1;
    if (most < 0)
        return false;
    g->pre[d] = pre;
    g->post[d] = pre >= least && pre <= most ? pre : least > 0 ? least : 0;
    g->stride[d] = stride;
    g->dilation[d] = dilation;
    return true;
}

/* What dimension k of the window is to the library, whose dimension is d. */
static bool take_dimension(ConvGraph *g, const WindowDim *w, int32_t d)
{
    const int64_t x = g->image.size[PIXELS + d], y = g->result.size[PIXELS + d], f = g->filter.size[PIXELS + d];
    switch (g->way) {
    case CONV_FORWARD: return w->base_dilation == 1 && take_window(g, d, x, y, f, w->pad_lo, w->stride, w->window_dilation);
    case CONV_TO_IMAGE: {
        int64_t reach;
        return w->stride == 1 && size_mul(f - 1, w->window_dilation, &reach) && w->pad_lo > -INT32_MAX &&
               take_window(g, d, x, y, f, reach - w->pad_lo, w->base_dilation, w->window_dilation);
    }
    case CONV_TO_FILTER: return w->base_dilation == 1 && take_window(g, d, x, y, f, w->pad_lo, w->window_dilation, w->stride);
    }
    die("a convolution of no way");
}

/* Windows are read backwards in all dimensions or in none; to an image's gradient the other way round. */
static bool take_direction(ConvGraph *g, const Window *window)
{
    bool some = false, all = true;
    for (int32_t k = 0; k < window->n; k++) {
        some |= window->v[k].size > 1 && window->v[k].reversal;
        all &= window->v[k].size == 1 || window->v[k].reversal;
    }
    g->turned = g->way == CONV_TO_IMAGE ? !all : some;
    return (all || !some) && !(g->way == CONV_TO_FILTER && some);
}

/* ---- one way ---- */

/* A gradient of the image has its groups' outputs beside each other in the filter, where the library has the inputs: that is the same for groups of one and one. */
static bool take_groups(const ConvGraph *g, const Roles *r)
{
    if (g->way == CONV_TO_FILTER)
        return r->groups == 1;
    return r->batch_groups == 1 && (g->way == CONV_FORWARD || r->groups == 1 || (r->rhs->dims[r->labels->rhs_in] == 1 && r->rhs->dims[r->labels->rhs_out] == r->groups));
}

static bool take_way(ConvGraph *g, const Roles *r, ConvWay way, bool last)
{
    const DimLabels *l = r->labels;
    int32_t          order[CONV_MOST_SPATIAL];
    const int32_t    n = l->spatial, skipped = n == 1;
    *g = (ConvGraph){ .way = way, .type = r->out->type, .last = last, .n_spatial = n == 1 ? 2 : n };
    order_pixels(r, order);
    const ConvArray lhs = way == CONV_TO_FILTER ? array_of(r->lhs, l->lhs_feature, l->lhs_batch, l->lhs_spatial, order, n) : array_of(r->lhs, l->lhs_batch, l->lhs_feature, l->lhs_spatial, order, n);
    const ConvArray rhs = way == CONV_FORWARD ? array_of(r->rhs, l->rhs_out, l->rhs_in, l->rhs_spatial, order, n) : array_of(r->rhs, l->rhs_in, l->rhs_out, l->rhs_spatial, order, n);
    const ConvArray out = way == CONV_TO_FILTER ? array_of(r->out, l->out_feature, l->out_batch, l->out_spatial, order, n) : array_of(r->out, l->out_batch, l->out_feature, l->out_spatial, order, n);
    g->image = way == CONV_TO_IMAGE ? out : lhs;
    g->filter = way == CONV_TO_FILTER ? out : rhs;
    g->result = way == CONV_FORWARD ? out : way == CONV_TO_IMAGE ? lhs : rhs;
    if (way == CONV_TO_IMAGE && r->groups > 1) { /* of one and one */
        g->filter.size[0] = r->groups;
        g->filter.size[1] = 1;
        g->filter.dim[0] = (int32_t)l->rhs_out;
        g->filter.dim[1] = (int32_t)l->rhs_in;
    }
    if (!take_groups(g, r) || !take_direction(g, r->window))
        return false;
    if (skipped && !take_window(g, 0, 1, 1, 1, 0, 1, 1))
        return false;
    for (int32_t k = 0; k < n; k++)
        if (!take_dimension(g, &r->window->v[order[k]], skipped + k))
            return false;
    g->image.moves = !is_packed(g, &g->image, way == CONV_TO_IMAGE ? r->out : r->lhs);
    g->filter.moves = !is_packed(g, &g->filter, way == CONV_TO_FILTER ? r->out : r->rhs);
    g->result.moves = !is_packed(g, &g->result, way == CONV_FORWARD ? r->out : way == CONV_TO_IMAGE ? r->lhs : r->rhs);
    return true;
}

static int64_t count(const ConvGraph *g, const ConvArray *x)
{
    int64_t n = 1;
    for (int32_t d = 0; d < g->n_spatial + PIXELS; d++)
        n *= x->size[d];
    return n;
}

static int64_t moved(const ConvGraph *g)
{
    return g->image.moves * count(g, &g->image) + g->filter.moves * count(g, &g->filter) + g->result.moves * count(g, &g->result);
}

/* A gradient of the filter has large windows and a small result; a convolution the other way round. */
static bool may_be_gradient(const Roles *r)
{
    double window = 1, out = 1;
    for (int32_t k = 0; k < r->labels->spatial; k++) {
        window *= (double)r->window->v[k].size;
        out *= (double)r->out->dims[r->labels->out_spatial[k]];
    }
    return r->batch_groups > 1 || window > out;
}

static bool find_way(ConvGraph *best, const Roles *r)
{
    static const ConvWay ways[] = { CONV_FORWARD, CONV_TO_IMAGE, CONV_TO_FILTER };
    bool                 found = false, dilated = false;
    ConvGraph            g;
    for (int32_t k = 0; k < r->window->n; k++)
        dilated |= r->window->v[k].base_dilation > 1;
    for (int32_t k = 0; k < 6; k++) {
        const ConvWay way = ways[k / 2];
        if (dilated != (way == CONV_TO_IMAGE) || (way == CONV_TO_FILTER && !may_be_gradient(r)) || !take_way(&g, r, way, k % 2 == 0))
            continue;
        if (!found || moved(&g) < moved(best))
            *best = g;
        found = true;
    }
    return found;
}

static double work_of(const ConvGraph *g)
{
    double n = (double)count(g, &g->result) * (double)g->filter.size[1];
    for (int32_t d = 0; d < g->n_spatial; d++)
        n *= (double)g->filter.size[PIXELS + d];
    return n;
}

static bool conv_as_graph(const Inst *conv, const Shape *result, ConvGraph *out)
{
    Roles   r;
    int64_t bytes;
    if (!roles_of(&r, conv, result) || !find_way(out, &r) || work_of(out) < LEAST_WORK || !size_add(shape_bytes(r.lhs), shape_bytes(r.rhs), &bytes) ||
        !size_add(bytes, shape_bytes(result), &bytes))
        return false;
    out->work = WORK + (bytes < MOST_COPIES ? bytes : MOST_COPIES);
    return true;
}

/* ---- instructions ---- */

bool conv_graph_alone(const Inst *conv)
{
    ConvGraph g;
    return conv->op == OP_CONVOLUTION && inst_operand(conv, 0)->op == OP_PARAMETER && inst_operand(conv, 1)->op == OP_PARAMETER && conv_as_graph(conv, conv->shape, &g);
}

/* One value for each feature of the result. */
static bool is_along_features(const Inst *broadcast, const Inst *conv)
{
    const Shape *v = inst_operand(broadcast, 0)->shape;
    const Ints   dims = inst_ints(broadcast, ATTR_DIMENSIONS);
    const int64_t feature = inst_attr(conv, ATTR_DIM_LABELS)->value.dim_labels->out_feature;
    for (int32_t k = 0; k < v->rank; k++)
        if (v->dims[k] > 1 && dims.v[k] != feature)
            return false;
    return shape_count(v) == conv->shape->dims[feature];
}

/* The library has a copy only of what is the convolution's alone. */
static bool can_move(const Inst *i, const ConvGraph *g)
{
    const Inst *conv = g->epilogue.hero;
    for (int32_t k = 0; k < 2 && conv != i; k++) {
        const ConvArray *x = k == 0 ? &g->image : &g->filter;
        if (x->moves && inst_operand(conv, k)->n_uses > 1)
            return false;
    }
    return conv == i || !g->result.moves;
}

static bool fusion_graph(const Inst *i, ConvGraph *out)
{
    ProductEpilogue e;
    if (!product_epilogue(i, OP_CONVOLUTION, &e) || e.alpha != 1 || e.bias < 0 || (e.added >= 0 && e.beta != 1) || e.act == ACT_GELU || !is_along_features(e.along, e.hero) ||
        !conv_as_graph(e.hero, i->shape, out) || out->way != CONV_FORWARD)
        return false;
    out->epilogue = e;
    return can_move(i, out);
}

bool conv_graph(const Inst *i, ConvGraph *out)
{
    if (i->op == OP_FUSION)
        return i->n_callees == 1 && fusion_graph(i, out);
    if (i->op != OP_CONVOLUTION || splat_value(inst_operand(i, 0)) || splat_value(inst_operand(i, 1)) || !conv_as_graph(i, i->shape, out))
        return false;
    out->epilogue = (ProductEpilogue){ .hero = i, .rhs = 1, .added = -1, .bias = -1, .alpha = 1 };
    return true;
}

/* ---- arrays that move ---- */

bool conv_graph_moves(const Inst *i)
{
    ConvGraph g;
    return conv_graph(i, &g) && (g.image.moves || g.filter.moves || g.result.moves);
}

/* What an operand of the convolution is to the library; k 2: the result. */
static const ConvArray *array_at(const ConvGraph *g, int32_t k)
{
    static const uint8_t at[][3] = { [CONV_FORWARD] = { 0, 1, 2 }, [CONV_TO_IMAGE] = { 2, 1, 0 }, [CONV_TO_FILTER] = { 0, 2, 1 } };
    const ConvArray     *arrays[] = { &g->image, &g->filter, &g->result };
    return arrays[at[g->way][k]];
}

static Inst *copied(Inst *before, const Shape *to, Inst *from)
{
    Inst *copy = inst_new(before->comp, before, OP_COPY, to, 1, &from, NULL);
    copy->meta = before->meta;
    copy->loc = before->loc;
    return copy;
}

Inst *conv_graph_move(Inst *i)
{
    ConvGraph g;
    if (!conv_graph(i, &g))
        return i;
    Arena        *a = i->comp->module->arena;
    const int32_t at[] = { g.epilogue.lhs, g.epilogue.rhs };
    for (int32_t k = 0; k < 2; k++) {
        const ConvArray *x = array_at(&g, k);
        if (!x->moves)
            continue;
        const Shape *to = packed(a, &g, x, inst_operand(i, at[k])->shape);
        inst_set_operand(i, at[k], copied(i, to, inst_operand(i, at[k])));
        if (g.epilogue.hero != i)
            inst_operand(g.epilogue.hero, k)->shape = to;
    }
    if (!array_at(&g, 2)->moves)
        return i;
    Inst *operands[] = { inst_operand(i, 0), inst_operand(i, 1) };
    Inst *conv = inst_clone_into(i->comp, i, i, 2, operands);
    conv->shape = packed(a, &g, array_at(&g, 2), i->shape);
    inst_replace(i, copied(i, i->shape, conv));
    inst_delete(i);
    return conv;
}

/* ---- kernels ---- */

bool conv_graph_of_kernel(const Kernel *k, ConvGraph *out)
{
    const Inst *i = k->inst;
    return k->n_operands == i->n_operands && k->n_results == 1 && conv_graph(i, out) && !out->image.moves && !out->filter.moves && !out->result.moves &&
           kernel_has_operands(k, &out->epilogue);
}

void kernel_for_graph(Kernel *k)
{
    ConvGraph g;
    if (!conv_graph_of_kernel(k, &g))
        return;
    if (k->temp_bytes < g.work + CONV_ALIGN)
        k->temp_bytes = g.work + CONV_ALIGN;
    for (int32_t o = 0; o < k->n_operands; o++) /* what the library reads it does not find overwritten */
        k->may_alias[o] = false;
}
