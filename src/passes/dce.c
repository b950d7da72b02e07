/* dce - delete instructions that no result needs and computations that nobody calls.
 *
 *   %t = f32[4] multiply(%a, %a)
 *   ROOT %r = f32[4] add(%a, %b)        =>     ROOT %r = f32[4] add(%a, %b)
 *
 * Keeps: effects, parameters, and what has control edges. Users come after operands, so one sweep from the
 * end is enough. Callers are swept before what they call, so that a computation whose last caller goes needs no sweep. */
#include "config.h"

#include "passes/pass.h"
#include "passes/util.h"

bool pass_dce(Module *m, PassCtx *cx)
{
    for (Comp *c = m->last; c; c = c->prev) {
        int64_t dead = comp_sweep_dead(c, cx->limit - cx->rewrites);
        cx->rewrites += dead;
        if (dead)
            pass_remark(cx, c->root, "%%%s: %lld instructions that no result needs are gone", c->name, (long long)dead);
    }
    if (cx->rewrites < cx->limit) {
        int32_t comps = m->n_comps;
        module_remove_dead_comps(m);
        cx->rewrites += comps != m->n_comps; /* they go together */
    }
    return cx->rewrites > 0;
}
