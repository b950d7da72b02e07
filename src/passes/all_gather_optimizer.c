/* all-gather-optimizer - what is computed of two arrays that were put together is computed of their parts.
 *
 *   %a = f32[8] all-gather(%x), dimensions={0}, ...                           %s = f32[4] add(%x, %y)
 *   %b = f32[8] all-gather(%y), dimensions={0}, ...                   =>      %r = f32[8] all-gather(%s), dimensions={0}, ...
 *   %r = f32[8] add(%a, %b)
 *
 * One exchange for two, over the same devices along the same dimension, where nobody else reads them. */
#include "config.h"

#include "passes/combine.h"
#include "passes/expand.h"
#include "passes/util.h"

static bool is_gathered(const Inst *x)
{
    return x->op == OP_ALL_GATHER && x->n_operands == 1 && x->n_uses == 1 && inst_is_free(x) && shape_is_array(x->shape) && !x->shape->layout &&
           !x->comp->async_wrapped;
}

static Inst *of_parts(PassCtx *cx, Inst *i)
{
    (void)cx;
    if (i->n_operands != 2 || !op_has(i->op, F_ELEMENTWISE) || i->shape->layout)
        return NULL;
    Inst *a = inst_operand(i, 0), *b = inst_operand(i, 1);
    if (a == b || !is_gathered(a) || !is_gathered(b) || !shape_same_dims(inst_operand(a, 0)->shape, inst_operand(b, 0)->shape) || !collectives_alike(a, b))
        return NULL;
    Inst *x = inst_operand(a, 0);
    Inst *both = expand_like(i, shape_with_type(i->comp->module->arena, x->shape, i->shape->type), 2, (Inst *[]){x, inst_operand(b, 0)});
    Inst *r = expand_op(i, OP_ALL_GATHER, i->shape, 1, &both);
    inst_take_attrs(r, a);
    return r;
}

bool pass_all_gather_optimizer(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, of_parts);
}
