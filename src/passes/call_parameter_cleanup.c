/* call-parameter-cleanup - what a called computation does not read is not handed to it.
 *
 *   %f (p, q) { ROOT negate(%q) }                              %f (q) { ROOT negate(%q) }
 *   %c = call(%x, %y), to_apply=%f             =>              %c = call(%y), to_apply=%f
 *
 * Calls alone; a computation that others call too is copied. */
#include "config.h"

#include "passes/flow.h"
#include "passes/pass.h"
#include "passes/util.h"

static int32_t count_unread(const Comp *c)
{
    int32_t n = 0;
    for (int32_t k = 0; k < c->n_params; k++)
        n += param_is_unread(comp_param(c, k));
    return n;
}

bool pass_call_parameter_cleanup(Module *m, PassCtx *cx)
{
    Flow f = flow_of(m, cx->scratch);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c); i && cx->rewrites < cx->limit; i = i->next) {
            if (i->op != OP_CALL || inst_attr(i, ATTR_SHARDING) || !count_unread(inst_callee(i, 0)) || callees_shared(i) > f.room)
                continue;
            f.room -= callees_shared(i);
            callee_own(i, 0);
            cx->did_at = i->name;
            callee_drop_unread(i, cx->scratch);
            cx->rewrites++;
        }
    return cx->rewrites > 0;
}
