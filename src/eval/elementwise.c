/* Handlers of the elementwise families: one kernel over whole arrays. The result takes the place of an operand that dies here. */
#include "eval/engine.h"
#include "eval/arith.h"

static int32_t operand_to_reuse(const Inst *i, Literal **x)
{
    for (int32_t k = 0; k < i->n_operands; k++)
        if (x[k]->refs == 1 && x[k]->type == i->shape->type && x[k]->rank == i->shape->rank)
            return k;
    return 0;
}

bool elementwise_kernel(const Inst *i, Arith *k)
{
    bool picks = i->op == OP_SELECT && shape_is_scalar(inst_operand(i, 0)->shape) && !shape_is_scalar(i->shape);
    if (!op_has(i->op, F_ELEMENTWISE) || picks || !arith_find(k, i))
        return false;
    for (int32_t j = 0; j < i->n_operands; j++)
        k->scalar[j] = inst_operand(i, j)->shape->rank == 0 && i->shape->rank > 0;
    return true;
}

static Literal *elementwise(Eval *e, const Inst *i, Literal **x)
{
    Arith k;
    if (!arith_find(&k, i))
        return eval_fail(e, i, "%s %%%s has no meaning for %s", op_name(i->op), i->name, type_name(x[0]->type));
    const void *data[ARITH_OPERANDS] = {0};
    for (int32_t j = 0; j < i->n_operands; j++) {
        k.scalar[j] = x[j]->rank == 0 && i->shape->rank > 0;
        data[j] = x[j]->data;
    }
    Literal *r = eval_result(e, i, x, operand_to_reuse(i, x));
    if (r)
        arith_run(&k, r->data, data, r->count);
    return r;
}

#define ELEMENTWISE(family)                                                                                                     \
    Literal *eval_##family(Eval *e, const Inst *i, Literal **x)                                                                 \
    {                                                                                                                           \
        return elementwise(e, i, x);                                                                                            \
    }

EvalFn eval_unary, eval_binary, eval_compare, eval_clamp, eval_convert, eval_reduce_precision, eval_stochastic_convert, eval_select,
    eval_identity;
ELEMENTWISE(unary)
ELEMENTWISE(binary)
ELEMENTWISE(compare)
ELEMENTWISE(clamp)
ELEMENTWISE(convert)
ELEMENTWISE(reduce_precision)
ELEMENTWISE(stochastic_convert)

/* A scalar predicate picks a whole array. */
Literal *eval_select(Eval *e, const Inst *i, Literal **x)
{
    int32_t chosen = x[0]->rank == 0 && *(const uint8_t *)x[0]->data ? 1 : 2;
    if (x[0]->rank == 0 && x[chosen]->type == i->shape->type)
        return eval_move(x, chosen);
    return elementwise(e, i, x);
}

/* copy, opt-barrier, domain, add-dependency. A copy may change the element type. */
Literal *eval_identity(Eval *e, const Inst *i, Literal **x)
{
    return type_is_array(x[0]->type) && x[0]->type != i->shape->type ? elementwise(e, i, x) : eval_move(x, 0);
}
