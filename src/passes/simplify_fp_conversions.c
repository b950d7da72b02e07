/* simplify-fp-conversions - chains of conversions between floats without the steps between.
 *
 *   %a = bf16[8] convert(%x)                                     (%x is f32[8])
 *   ROOT %b = f32[8] convert(%a)        =>     ROOT %x
 *
 * What the narrow step would have rounded away stays: the result is more exact than was asked for, which XLA does where excess precision is
 * allowed, and so no level does it. Keeps: conversions from and to what is no float; the type of the result. */
#include "config.h"

#include "passes/pass.h"

#include "passes/util.h"

static bool is_float_convert(const Inst *i)
{
    return i->op == OP_CONVERT && type_is_float(i->shape->type) && type_is_float(inst_operand(i, 0)->shape->type) && inst_is_free(i);
}

static bool simplify_chain(PassCtx *cx, Inst *i)
{
    if (!is_float_convert(i) || !is_float_convert(inst_operand(i, 0)))
        return false;
    Inst *x = inst_operand(i, 0);
    while (is_float_convert(x))
        x = inst_operand(x, 0);
    pass_remark(cx, i, "%%%s is converted from %%%s at once", i->name, x->name);
    Inst *new_ = x;
    if (!shape_equal(x->shape, i->shape)) {
        new_ = inst_new(i->comp, i, OP_CONVERT, i->shape, 1, &x, NULL);
        new_->meta = i->meta;
        new_->loc = i->loc;
    }
    inst_replace(i, new_);
    inst_delete_dead(i, cx->scratch);
    return true;
}

bool pass_simplify_fp_conversions(Module *m, PassCtx *cx)
{
    int64_t before = cx->rewrites;
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first, *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            cx->rewrites += simplify_chain(cx, i);
        }
    return cx->rewrites > before;
}
