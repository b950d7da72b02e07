/* collective-quantizer - what is narrow on one side of an exchange is narrow in it.
 *
 *   %g = f32[8] all-gather(%x), ...            %c = bf16[4] convert(%x)
 *   %r = bf16[8] convert(%g)            =>     %r = bf16[8] all-gather(%c), ...
 *
 *   %c = f32[4] convert(%x)                    %g = bf16[8] all-gather(%x), ...
 *   %r = f32[8] all-gather(%c), ...     =>     %r = f32[8] convert(%g)
 *
 * For all-gather, all-to-all of arrays and collective-permute, which only move elements; a 0 for devices that get none is 0 in every type. In the first case
 * nobody else reads the exchange. */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"

static bool is_exchange(const Inst *i)
{
    return (i->op == OP_ALL_GATHER || i->op == OP_ALL_TO_ALL || i->op == OP_COLLECTIVE_PERMUTE) && i->n_operands == 1 && shape_is_array(i->shape) &&
           !i->shape->layout && !inst_operand(i, 0)->shape->layout && inst_is_free(i) && !i->comp->async_wrapped;
}

static bool is_narrower(const Inst *x, const Inst *y)
{
    return type_bits(x->shape->type) < type_bits(y->shape->type);
}

static Inst *exchanged(Inst *at, const Inst *e, Inst *x)
{
    Inst *y = expand_op(at, e->op, shape_with_type(e->comp->module->arena, e->shape, x->shape->type), 1, &x);
    inst_take_attrs(y, e);
    return y;
}

static Inst *narrow(PassCtx *cx, Inst *i)
{
    (void)cx;
    const Inst *e = i->op == OP_CONVERT ? inst_operand(i, 0) : NULL;
    if (e && is_exchange(e) && e->n_uses == 1 && is_narrower(i, e) && !i->shape->layout)
        return exchanged(i, e, expand_convert(i, OP_CONVERT, i->shape->type, inst_operand(e, 0)));
    const Inst *c = is_exchange(i) ? inst_operand(i, 0) : NULL;
    if (c && c->op == OP_CONVERT && is_narrower(inst_operand(c, 0), c) && !inst_operand(c, 0)->shape->layout)
        return expand_convert(i, OP_CONVERT, i->shape->type, exchanged(i, i, inst_operand(c, 0)));
    return NULL;
}

bool pass_collective_quantizer(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, narrow);
}
