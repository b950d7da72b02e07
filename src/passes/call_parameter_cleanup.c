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

static bool is_unread(const Inst *p)
{
    return !p->n_uses && p->comp->root != p && !p->n_control && !p->n_control_succs;
}

static int32_t count_unread(const Comp *c)
{
    int32_t n = 0;
    for (int32_t k = 0; k < c->n_params; k++)
        n += is_unread(comp_param(c, k));
    return n;
}

static void drop_unread(Inst *call, Arena *scratch)
{
    Comp   *c = inst_callee(call, 0);
    Inst  **operands = ARENA_ARRAY(scratch, Inst *, call->n_operands);
    int32_t kept = 0;
    for (int32_t k = 0; k < c->n_params; k++) {
        Inst *p = comp_param(c, k);
        if (is_unread(p)) {
            inst_delete(p);
            continue;
        }
        operands[kept] = inst_operand(call, k);
        p->param = kept;
        c->params[kept++] = p;
    }
    c->n_params = kept;
    inst_set_operands(call, kept, operands);
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
            drop_unread(i, cx->scratch);
            cx->rewrites++;
        }
    return cx->rewrites > 0;
}
