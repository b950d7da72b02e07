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

static bool is_reduced(const Inst *x, Op op)
{
    return x->op == OP_ALL_REDUCE && x->n_operands == 1 && x->n_uses == 1 && inst_is_free(x) && shape_equal(x->shape, inst_operand(x, 0)->shape) &&
           comp_binary_op(inst_callee(x, 0)) == op;
}

static bool is_exact(Op op, Type t)
{
    return op == OP_MAXIMUM || op == OP_MINIMUM || op == OP_AND || op == OP_OR || type_is_int(t) || t == TYPE_PRED;
}

static Inst *reassociate(PassCtx *cx, Inst *i)
{
    if (i->n_operands != 2 || !op_has(i->op, F_COMMUTES) || (pass_arg_is(cx, "exact") && !is_exact(i->op, i->shape->type)))
        return NULL;
    Inst *a = inst_operand(i, 0), *b = inst_operand(i, 1);
    if (a == b || !is_reduced(a, i->op) || !is_reduced(b, i->op) || !collectives_alike(a, b) || !shape_equal(a->shape, i->shape))
        return NULL;
    Inst *both = expand_op(i, i->op, i->shape, 2, (Inst *[]){inst_operand(a, 0), inst_operand(b, 0)});
    Inst *r = expand_op(i, OP_ALL_REDUCE, i->shape, 1, &both);
    for (int32_t k = 0; k < a->n_attrs; k++)
        inst_set_attr(r, a->attrs[k]);
    inst_set_callees(r, 1, a->callees);
    return r;
}

bool pass_all_reduce_reassociate(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, reassociate);
}
