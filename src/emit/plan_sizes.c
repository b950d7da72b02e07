/* Bounded dimensions, f32[<=8]. An array has its full size wherever emitted code sees it: arguments must have it, and set-dimension-size may
 * only set it, unless expand_sizes has made a number of it. So a bound is a size like any other. */
#include "emit/plan.h"

static int64_t bound(const Inst *i)
{
    return i->operands[0].def->shape->dims[inst_ints(i, ATTR_DIMENSIONS).v[0]];
}

Value *plan_dimension_size(Plan *p, const Inst *i)
{
    Literal *l = literal_for_shape(i->shape, true);
    Value   *x = value_new(p, 1);
    literal_set_s64(l, 0, bound(i));
    x->v[0] = (Leaf){ slot_constant(p, literal_keep(p->arena, l), i->shape, i), i->shape };
    return x;
}

void plan_check_size(Plan *p, const Inst *i)
{
    const Inst *size = i->operands[1].def;
    if (size->op != OP_CONSTANT || size->literal->elided)
        plan_fail(p, i, "sets a size that is known only when run (%%%s), and emitted code has arrays of their full size only", size->name);
    else if (literal_get_s64(size->literal, 0) != bound(i))
        plan_fail(p, i, "sets the size %lld of %lld, and emitted code has arrays of their full size only",
                  (long long)literal_get_s64(size->literal, 0), (long long)bound(i));
}
