/* batchnorm_expander - batch normalization as the arithmetic that it stands for.
 *
 *   %y = (f32[2,8,3], f32[3], f32[3]) batch-norm-training(%x, %scale, %offset), epsilon=e, feature_index=2      =>
 *
 *   training    mean = sum(x) / N     var = sum(x x) / N - mean mean     y = ((x - mean) rsqrt(var + e)) scale + offset     (y, mean, var)
 *   inference   s = scale rsqrt(var + e)                                 y = x s + (offset - mean s)
 *   grad        goffset = sum(g)      S = sum(g (x - mean))              gscale = S rsqrt(var + e)
 *               gx = (scale rsqrt(var + e) / N) ((g N - goffset) - (S (x - mean)) / (var + e))                              (gx, gscale, goffset)
 *
 * Statistics are per index of the feature dimension, N is the number of elements that one has. Each step is what the opcode is defined to
 * round to, so the results are the same but for the order of sums. {inner}: training and grad only where features are the last dimension, the sums of which
 * are computed side by side, or the first, so that each has a row (PyTorch's layer norm is such a one); other sums cost more passes over the array than the
 * backend's own routine. */
#include "config.h"

#include "passes/expand.h"

typedef struct Norm {
    Inst        *at, *x;
    const Shape *features; /* of what there is one of per feature */
    Ints         feature, others; /* dimensions of x */
    double       n, epsilon;
} Norm;

static bool norm_begin(Norm *n, PassCtx *cx, Inst *i)
{
    Inst        *x = inst_operand(i, 0);
    const Shape *s = x->shape;
    int32_t      d = (int32_t)inst_int(i, ATTR_FEATURE_INDEX, 0);
    for (int32_t k = 1; k < i->n_operands; k++)
        if (inst_operand(i, k)->shape->type != s->type)
            return false;
    if (shape_count(s) <= 0)
        return false;
    const Attr *e = inst_attr(i, ATTR_EPSILON);
    *n = (Norm){.at = i, .x = x, .features = shape_array(i->comp->module->arena, s->type, 1, &s->dims[d]), .feature = ints_make(cx->scratch, 1),
                .others = ints_make(cx->scratch, s->rank - 1), .n = (double)(shape_count(s) / s->dims[d]), .epsilon = e ? e->value.f : 0};
    *ints_at(n->feature, 0) = d;
    for (int32_t k = 0; k < s->rank - 1; k++)
        *ints_at(n->others, k) = k + (k >= d);
    return true;
}

static Inst *apply(const Norm *n, Op op, Inst *a, Inst *b)
{
    return expand_binary(n->at, op, a, b);
}

static Inst *spread(const Norm *n, Inst *v)
{
    return expand_broadcast(n->at, n->x->shape, v, n->feature);
}

static Inst *sum(const Norm *n, Inst *x)
{
    return expand_sum(n->at, n->features, x, n->others);
}

static Inst *number(const Norm *n, double v)
{
    return expand_number(n->at, n->features, v);
}

static Inst *inverse_deviation(const Norm *n, Inst *above)
{
    return expand_unary(n->at, OP_RSQRT, above);
}

static Inst *above_zero(const Norm *n, Inst *var)
{
    return apply(n, OP_ADD, var, number(n, n->epsilon));
}

static Inst *training(const Norm *n)
{
    Inst *count = number(n, n->n), *scale = inst_operand(n->at, 1), *offset = inst_operand(n->at, 2);
    Inst *mean = apply(n, OP_DIVIDE, sum(n, n->x), count);
    Inst *squares = apply(n, OP_DIVIDE, sum(n, apply(n, OP_MULTIPLY, n->x, n->x)), count);
    Inst *var = apply(n, OP_SUBTRACT, squares, apply(n, OP_MULTIPLY, mean, mean));
    Inst *y = apply(n, OP_MULTIPLY, apply(n, OP_SUBTRACT, n->x, spread(n, mean)), spread(n, inverse_deviation(n, above_zero(n, var))));
    y = apply(n, OP_ADD, apply(n, OP_MULTIPLY, y, spread(n, scale)), spread(n, offset));
    return expand_tuple(n->at, 3, (Inst *[]){y, mean, var});
}

static Inst *inference(const Norm *n)
{
    Inst *scale = inst_operand(n->at, 1), *offset = inst_operand(n->at, 2), *mean = inst_operand(n->at, 3), *var = inst_operand(n->at, 4);
    Inst *s = apply(n, OP_MULTIPLY, scale, inverse_deviation(n, above_zero(n, var)));
    Inst *shift = apply(n, OP_SUBTRACT, offset, apply(n, OP_MULTIPLY, mean, s));
    return apply(n, OP_ADD, apply(n, OP_MULTIPLY, n->x, spread(n, s)), spread(n, shift));
}

static Inst *grad(const Norm *n)
{
    Inst *scale = inst_operand(n->at, 1), *mean = inst_operand(n->at, 2), *var = inst_operand(n->at, 3), *g = inst_operand(n->at, 4);
    Inst *count = number(n, n->n), *above = above_zero(n, var), *rsqrt = inverse_deviation(n, above), *goffset = sum(n, g);
    Inst *centered = apply(n, OP_SUBTRACT, n->x, spread(n, mean));
    Inst *s = sum(n, apply(n, OP_MULTIPLY, g, centered)), *gscale = apply(n, OP_MULTIPLY, s, rsqrt);
    Inst *factor = spread(n, apply(n, OP_DIVIDE, apply(n, OP_MULTIPLY, scale, rsqrt), count));
    Inst *left = apply(n, OP_SUBTRACT, apply(n, OP_MULTIPLY, g, spread(n, count)), spread(n, goffset));
    Inst *right = apply(n, OP_DIVIDE, apply(n, OP_MULTIPLY, spread(n, s), centered), spread(n, above));
    return expand_tuple(n->at, 3, (Inst *[]){apply(n, OP_MULTIPLY, factor, apply(n, OP_SUBTRACT, left, right)), gscale, goffset});
}

static bool has_quick_sums(const Inst *i)
{
    const Shape *s = i->operands[0].def->shape;
    int64_t      feature = inst_int(i, ATTR_FEATURE_INDEX, 0), before = 1;
    for (int64_t d = 0; d < feature; d++)
        before *= s->dims[d];
    return feature == s->rank - 1 || (before == 1 && !s->layout);
}

static Inst *expand(PassCtx *cx, Inst *i)
{
    Norm n;
    bool is_training = i->op == OP_BATCH_NORM_TRAINING, is_inference = i->op == OP_BATCH_NORM_INFERENCE;
    if (!is_training && !is_inference && i->op != OP_BATCH_NORM_GRAD)
        return NULL;
    if ((pass_arg_is(cx, "inner") && !is_inference && !has_quick_sums(i)) || !norm_begin(&n, cx, i))
        return NULL;
    return is_training ? training(&n) : is_inference ? inference(&n) : grad(&n);
}

bool pass_batchnorm_expander(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, expand);
}
