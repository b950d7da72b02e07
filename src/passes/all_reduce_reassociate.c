/* all-reduce-reassociate - one exchange for a sum of sums over devices.
 *
 *   %a = f32[8] all-reduce(%x), to_apply=%add, ...                            %s = f32[8] add(%x, %y)
 *   %b = f32[8] all-reduce(%y), to_apply=%add, ...                    =>      %r = f32[8] all-reduce(%s), to_apply=%add, ...
 *   %r = f32[8] add(%a, %b)
 *
 * For whatever operation the exchange reduces by, over the same devices, when nobody else needs the two results. Floats are added up in another order
 * then, so {exact} takes only integers and maxima, minima, and, or. */
#include "config.h"

#include "passes/combine.h"
#include "passes/expand.h"
#include "passes/util.h"

static bool is_reduced(const Inst *x, Op collective, Op op)
{
    return x->op == collective && x->n_operands == 1 && x->n_uses == 1 && inst_is_free(x) && shape_is_array(x->shape) &&
           x->shape->type == inst_operand(x, 0)->shape->type && !x->comp->async_wrapped && comp_binary_op(inst_callee(x, 0)) == op;
}

bool reduces_exactly(Op op, Type t)
{
    return op == OP_MAXIMUM || op == OP_MINIMUM || op == OP_AND || op == OP_OR || type_is_int(t) || t == TYPE_PRED;
}

Inst *reduced_together(PassCtx *cx, Inst *i, Op collective)
{
    if (i->n_operands != 2 || !op_has(i->op, F_COMMUTES) || (pass_arg_is(cx, "exact") && !reduces_exactly(i->op, i->shape->type)))
        return NULL;
    Inst *a = inst_operand(i, 0), *b = inst_operand(i, 1);
    Inst *x = a->n_operands ? inst_operand(a, 0) : NULL, *y = b->n_operands ? inst_operand(b, 0) : NULL;
    if (a == b || !is_reduced(a, collective, i->op) || !is_reduced(b, collective, i->op) || !shape_equal(x->shape, y->shape) || !collectives_alike(a, b) ||
        !shape_equal(a->shape, i->shape))
        return NULL;
    Inst *both = expand_op(i, i->op, x->shape, 2, (Inst *[]){x, y});
    Inst *r = expand_op(i, collective, i->shape, 1, &both);
    inst_take_attrs(r, a);
    inst_set_callees(r, 1, a->callees);
    return r;
}

static Inst *reassociate(PassCtx *cx, Inst *i)
{
    return reduced_together(cx, i, OP_ALL_REDUCE);
}

bool pass_all_reduce_reassociate(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, reassociate);
}
