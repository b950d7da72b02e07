/* defuser - every fusion becomes the instructions in it.
 *
 *   %f = fusion(%x), calls={negate, exponential}        =>        exponential(negate(%x))
 *
 * To look at what was fused, and to fuse it anew. */
#include "config.h"

#include "passes/pass.h"
#include "passes/util.h"

static bool may_open(const Inst *i)
{
    const Comp *body = i->op == OP_FUSION ? inst_callee(i, 0) : NULL;
    if (!body || ((i->n_control || i->n_control_succs) && inst_has_effect(i)) || !shape_equal(body->root->shape, i->shape))
        return false;
    for (int32_t k = 0; k < body->n_params; k++)
        if (!shape_equal(comp_param(body, k)->shape, inst_operand(i, k)->shape))
            return false;
    return true;
}

bool pass_defuser(Module *m, PassCtx *cx)
{
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first, *next; i && cx->rewrites < cx->limit && !(c->mark & COMP_OPAQUE); i = next) {
            next = i->next;
            if (!may_open(i))
                continue;
            cx->did_at = i->name;
            inst_inline(i, cx->scratch);
            cx->rewrites++;
        }
    if (cx->rewrites)
        module_remove_dead_comps(m);
    return cx->rewrites > 0;
}
