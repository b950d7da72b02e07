/* The largest and the smallest of f16 over windows that overlap in some dimensions are those of f32, which has all of them; elements are converted once for all windows:
 *
 *     r = f16[m,n] reduce-window(x, init)     =>     r = f16[m,n] convert(f32[m,n] reduce-window(f32 convert(x), f32 convert(init)))
 *
 * Sums stay as they are: they are rounded at every step. */
#include "emit/expand.h"

#include "passes/util.h"

/* In how many dimensions windows have elements in common. */
static int32_t dims_shared(const Inst *r)
{
    const Window *w = inst_window(r);
    int32_t       n = 0;
    for (int32_t d = 0; d < w->n; d++)
        n += w->v[d].size > w->v[d].stride || (w->v[d].size > 1 && w->v[d].window_dilation > 1);
    return n;
}

bool narrow_window_expands(const Inst *i)
{
    if (i->op != OP_REDUCE_WINDOW || i->n_operands != 2 || !shape_is_array(i->shape) || shape_count(i->shape) == 0)
        return false;
    const Op op = comp_binary_op(inst_callee(i, 0));
    return (op == OP_MAXIMUM || op == OP_MINIMUM) && i->shape->type == TYPE_F16 && inst_operand(i, 0)->shape->type == TYPE_F16 && inst_operand(i, 1)->shape->type == TYPE_F16 &&
           dims_shared(i) > 1;
}

static Inst *converted(Inst *i, Inst *x, Type t)
{
    Inst *c = inst_new(i->comp, i, OP_CONVERT, shape_with_type(i->comp->module->arena, x->shape, t), 1, &x, NULL);
    c->meta = i->meta;
    c->loc = i->loc;
    return c;
}

static Comp *body_of_floats(const Inst *i)
{
    Module      *m = i->comp->module;
    Comp        *c = comp_new(m, comp_unique_name(m, "of_floats"));
    const Shape *s = shape_scalar(m->arena, TYPE_F32);
    Inst        *two[] = { inst_parameter(c, NULL, 0, s, NULL), inst_parameter(c, NULL, 1, s, NULL) };
    comp_move_before(c, i->comp);
    c->root = inst_new(c, NULL, comp_binary_op(inst_callee(i, 0)), s, 2, two, NULL);
    c->mark = inst_callee(i, 0)->mark;
    return c;
}

void expand_narrow_window(Inst *i)
{
    Inst *operands[] = { converted(i, inst_operand(i, 0), TYPE_F32), converted(i, inst_operand(i, 1), TYPE_F32) };
    Comp *by = body_of_floats(i);
    Inst *r = inst_clone_into(i->comp, i, i, 2, operands);
    r->shape = shape_with_type(i->comp->module->arena, i->shape, TYPE_F32);
    inst_set_callees(r, 1, &by);
    inst_replace(i, converted(i, r, i->shape->type));
    inst_delete(i);
}
