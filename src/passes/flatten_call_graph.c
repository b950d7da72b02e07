/* flatten-call-graph - every loop, branch and call has computations of its own.
 *
 *   %a = call(%x), to_apply=%f                 %a = call(%x), to_apply=%f
 *   %b = call(%y), to_apply=%f          =>     %b = call(%y), to_apply=%f.1
 *
 * So that each can be changed alone. No more is copied than the module has instructions, or 50000. */
#include "config.h"

#include "passes/flow.h"
#include "passes/pass.h"

static bool is_flow(const Inst *i)
{
    return i->op == OP_CALL || i->op == OP_WHILE || i->op == OP_CONDITIONAL;
}

bool pass_flatten_call_graph(Module *m, PassCtx *cx)
{
    Flow f = flow_of(m, cx->scratch);
    for (Comp *c = m->last; c; c = c->prev) /* a copy stands after its original, before the caller: callers first */
        for (Inst *i = c->first; i; i = i->next)
            for (int32_t k = 0; is_flow(i) && k < i->n_callees && cx->rewrites < cx->limit; k++) {
                const Comp *callee = i->callees[k];
                if (callee->mark < 2 || callee->n_insts > f.room)
                    continue;
                f.room -= callee->n_insts;
                cx->did_at = i->name;
                callee_own(i, k);
                cx->rewrites++;
            }
    return cx->rewrites > 0;
}
