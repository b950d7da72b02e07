/* slice-hoister - only the part is computed that is looked at.
 *
 *   %s = f32[8] add(%x, %y)                                 %a = f32[4] slice(%x), slice={[0:4]}
 *   %r = f32[4] slice(%s), slice={[0:4]}            =>      %b = f32[4] slice(%y), slice={[0:4]}
 *                                                           %r = f32[4] add(%a, %b)
 *
 * Slices of elementwise instructions that nobody else reads. No level runs it: fusion computes only what is looked at. */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"

static Inst *hoist(PassCtx *cx, Inst *i)
{
    if (i->op != OP_SLICE || i->shape->layout)
        return NULL;
    Inst *e = inst_operand(i, 0);
    if (!op_has(e->op, F_ELEMENTWISE) || e->n_uses != 1 || !e->n_operands || e->n_callees || !inst_is_free(e) || e->shape->layout)
        return NULL;
    Inst **parts = ARENA_ARRAY(cx->scratch, Inst *, e->n_operands);
    for (int32_t k = 0; k < e->n_operands; k++) {
        Inst *x = inst_operand(e, k);
        if (x->shape->layout || (!shape_same_dims(x->shape, e->shape) && x->shape->rank))
            return NULL;
    }
    for (int32_t k = 0; k < e->n_operands; k++) {
        Inst *x = inst_operand(e, k);
        parts[k] = shape_same_dims(x->shape, e->shape) ? expand_like(i, shape_with_type(i->comp->module->arena, i->shape, x->shape->type), 1, &x) : x;
    }
    Inst *r = expand_op(i, e->op, i->shape, e->n_operands, parts);
    inst_take_attrs(r, e);
    return r;
}

bool pass_slice_hoister(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, hoist);
}
