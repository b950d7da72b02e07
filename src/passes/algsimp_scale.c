/* Rules of algsimp about factors behind dots and convolutions: those of one feature each, as normalization has them, go into weights that are constant.
 * What is multiplied then is known before the program runs. */
#include "config.h"

#include "passes/algsimp.h"

#include <math.h>

enum { KNOWN_DEPTH = 8 };

/* Made of constants alone, whose values the text has. */
static bool is_constant_made(const Inst *i, int depth)
{
    if (i->op == OP_CONSTANT)
        return !i->literal->elided;
    if (depth == 0 || i->n_operands == 0 || i->n_callees || !inst_is_value(i) || (!op_has(i->op, F_ELEMENTWISE | F_MOVES) && i->op != OP_RESHAPE))
        return false;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (!is_constant_made(inst_operand(i, k), depth - 1))
            return false;
    return true;
}

/* Far from the ends of the range of f32: times them weights stay numbers. */
static bool all_moderate(const Literal *l)
{
    for (int64_t k = 0; k < l->count; k++) {
        double v = fabs(literal_get_f64(l, k));
        if (v != 0 && !(v > 0x1p-60 && v < 0x1p60))
            return false;
    }
    return true;
}

/* A broadcast constant along one dimension of its own (*dim) or none (-1). */
static bool is_factor(const Inst *b, int64_t *dim)
{
    if (!is_broadcast(b) || inst_operand(b, 0)->op != OP_CONSTANT || inst_operand(b, 0)->shape->rank > 1)
        return false;
    const Literal *l = inst_operand(b, 0)->literal;
    *dim = dimensions(b).n ? dimensions(b).v[0] : -1;
    return !l->elided && all_moderate(l);
}

/* What a dimension of the product is of its operands: dimension *at of operand *side. False: of both. A factor of all goes to the constant operand. */
typedef bool DimensionOf(const Inst *product, int64_t dim, int32_t *side, int64_t *at);

static bool dimension_of_dot(const Inst *dot, int64_t dim, int32_t *side, int64_t *at)
{
    static const AttrId batch_ids[] = {ATTR_LHS_BATCH_DIMS, ATTR_RHS_BATCH_DIMS};
    static const AttrId contracting_ids[] = {ATTR_LHS_CONTRACTING_DIMS, ATTR_RHS_CONTRACTING_DIMS};
    int64_t k = inst_ints(dot, ATTR_LHS_BATCH_DIMS).n;
    for (*side = 0; *side < 2; ++*side)
        for (*at = 0; *at < inst_operand(dot, *side)->shape->rank; ++*at)
            if (!ints_has(inst_ints(dot, batch_ids[*side]), *at) && !ints_has(inst_ints(dot, contracting_ids[*side]), *at) && k++ == dim)
                return true;
    return false;
}

static bool dimension_of_convolution(const Inst *c, int64_t dim, int32_t *side, int64_t *at)
{
    const DimLabels *l = inst_attr(c, ATTR_DIM_LABELS)->value.dim_labels;
    *side = 1;
    *at = l->rhs_out;
    return dim == l->out_feature;
}

/* The product with its constant operand multiplied by the factor b along the product's dimension; NULL: it has none there. */
static Inst *scaled(Simp *s, const Inst *product, const Inst *b, int64_t dim)
{
    int32_t side = is_constant_made(inst_operand(product, 1), KNOWN_DEPTH) ? 1 : 0;
    int64_t at = -1;
    Type    t = product->shape->type;
    if (dim >= 0 && !(product->op == OP_DOT ? dimension_of_dot : dimension_of_convolution)(product, dim, &side, &at))
        return NULL;
    Inst *w = inst_operand(product, side);
    if (w->shape->type != t || inst_operand(product, 1 - side)->shape->type != t || !is_constant_made(w, KNOWN_DEPTH))
        return NULL;
    Inst *factor = simp_broadcast(s, w->shape, inst_operand(b, 0), (Ints){&at, at >= 0});
    Inst *operands[] = {inst_operand(product, 0), inst_operand(product, 1)};
    operands[side] = simp_new(s, OP_MULTIPLY, w->shape, 2, (Inst *[]){w, factor});
    return simp_like(s, product, product->shape, operands);
}

static bool is_product(const Simp *s, const Inst *i, Op op)
{
    return i->op == op && i->n_uses == 1 && i->n_operands == 2 && shape_equal(i->shape, s->at->shape) && inst_is_free(i) &&
           (i->shape->type == TYPE_F32 || i->shape->type == TYPE_F64);
}

/* product * b, (product + bias) * b and (product - bias) * b for a broadcast bias. */
static Inst *scale(Simp *s, const Inst *i, Op op)
{
    for (int32_t k = 0; k < 2; k++) {
        const Inst *x = inst_operand(i, k), *b = inst_operand(i, 1 - k);
        int64_t     dim;
        if (!is_factor(b, &dim))
            continue;
        if (is_product(s, x, op))
            return scaled(s, x, b, dim);
        bool shifted = (x->op == OP_ADD || x->op == OP_SUBTRACT) && x->n_uses == 1 && is_product(s, inst_operand(x, 0), op) &&
                       is_broadcast(inst_operand(x, 1)) && shape_equal(inst_operand(x, 1)->shape, i->shape);
        Inst *product = shifted ? scaled(s, inst_operand(x, 0), b, dim) : NULL;
        if (!product)
            continue;
        Inst *shift = simp_new(s, OP_MULTIPLY, i->shape, 2, (Inst *[]){inst_operand(x, 1), inst_operand(i, 1 - k)});
        return simp_new(s, x->op, i->shape, 2, (Inst *[]){product, shift});
    }
    return NULL;
}

Inst *rule_dot_scale(Simp *s, Inst *i)
{
    return scale(s, i, OP_DOT);
}

Inst *rule_convolution_scale(Simp *s, Inst *i)
{
    return scale(s, i, OP_CONVOLUTION);
}
