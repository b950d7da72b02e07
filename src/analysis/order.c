/* The order that a sort's comparison is: what JAX, TensorFlow and PyTorch/XLA write. */
#include "analysis/order.h"

#include "ir/literal.h"

#include <math.h>

static bool is_scalar_constant(const Inst *x)
{
    return x->op == OP_CONSTANT && shape_is_scalar(x->shape) && !x->literal->elided;
}

static bool is_zero(const Inst *x)
{
    return is_scalar_constant(x) && literal_get_f64(x->literal, 0) == 0;
}

static bool is_nan(const Inst *x)
{
    double v = is_scalar_constant(x) ? literal_get_f64(x->literal, 0) : 0;
    return isnan(v) && !signbit(v);
}

static bool compares(const Inst *x, const Inst *p, Word direction)
{
    return x->op == OP_COMPARE && inst_operand(x, 0) == p && inst_word(x, ATTR_DIRECTION) == direction;
}

/* select(p == 0, 0, p): p; select(p != p, NaN, p): likewise. NULL: x is none. */
static const Inst *without_zeros(const Inst *x)
{
    if (x->op != OP_SELECT || !is_zero(inst_operand(x, 1)))
        return NULL;
    const Inst *p = inst_operand(x, 2), *test = inst_operand(x, 0);
    return compares(test, p, CMP_EQ) && is_zero(inst_operand(test, 1)) ? p : NULL;
}

static const Inst *without_nans(const Inst *x)
{
    if (x->op != OP_SELECT || !is_nan(inst_operand(x, 1)))
        return NULL;
    const Inst *rest = inst_operand(x, 2), *test = inst_operand(x, 0), *p = without_zeros(rest);
    return p && compares(test, p, CMP_NE) && inst_operand(test, 1) == p ? p : NULL;
}

/* The parameter behind one side of the comparison; NULL. */
static const Inst *side(const Inst *x, bool *canonical)
{
    const Inst *p = x->op == OP_PARAMETER ? x : without_nans(x);
    *canonical = p != x;
    return p && p->op == OP_PARAMETER ? p : NULL;
}

bool order_of(const Inst *i, Order *out)
{
    const Inst *root = inst_callee(i, 0)->root;
    Word        direction = root->op == OP_COMPARE ? inst_word(root, ATTR_DIRECTION) : CMP_EQ;
    bool        left, right;
    if (direction != CMP_LT && direction != CMP_GT)
        return false;
    const Inst *a = side(inst_operand(root, 0), &left), *b = side(inst_operand(root, 1), &right);
    if (!a || !b || left != right || a->param / 2 != b->param / 2 || a == b || a->shape->type != b->shape->type)
        return false;
    *out = (Order){ .key = (int32_t)(a->param / 2),
                    .descending = (direction == CMP_GT) != (a->param > b->param),
                    .total = compare_is_total(root),
                    .canonical = left };
    return a->shape->type == inst_operand(i, out->key)->shape->type;
}
