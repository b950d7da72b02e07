/* computation-deduplicator - of computations that are equal by structure the first is used.
 *
 *   %a = call(%x), to_apply=%f                 %a = call(%x), to_apply=%f
 *   %b = call(%y), to_apply=%g          =>     %b = call(%y), to_apply=%f          (%g is written as %f is)
 *
 * Not the bodies of fusions and of what has a fixed form: each of these has one caller. */
#include "config.h"

#include "passes/pass.h"
#include "passes/util.h"

static bool share_callees(Inst *i, Arena *scratch)
{
    Comp **callees = ARENA_ARRAY(scratch, Comp *, i->n_callees);
    bool   any = false;
    for (int32_t k = 0; k < i->n_callees; k++) {
        Comp *c = i->callees[k], *first = c->aux;
        bool  shares = !(c->mark & (COMP_FUSED | COMP_OPAQUE)) && !(first->mark & (COMP_FUSED | COMP_OPAQUE));
        callees[k] = shares ? first : c;
        any |= callees[k] != c;
    }
    if (any)
        inst_set_callees(i, i->n_callees, callees);
    return any;
}

bool pass_computation_deduplicator(Module *m, PassCtx *cx)
{
    comps_find_equal(m, cx->scratch);
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c); i && cx->rewrites < cx->limit; i = i->next)
            if (i->n_callees > 0 && share_callees(i, cx->scratch)) {
                cx->did_at = i->name;
                cx->rewrites++;
            }
    if (cx->rewrites)
        module_remove_dead_comps(m);
    return cx->rewrites > 0;
}
