/* control-dep-remover - instructions wait for their operands alone.
 *
 *   %b = f32[4] negate(%x), control-predecessors={%a}        =>        %b = f32[4] negate(%x)
 *
 * The order of the text stays, and with it that of effects. To see what control edges keep other passes from. */
#include "config.h"

#include "passes/pass.h"

bool pass_control_dep_remover(Module *m, PassCtx *cx)
{
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first; i && cx->rewrites < cx->limit; i = i->next) {
            if (!i->n_control)
                continue;
            for (int32_t k = 0; k < i->n_control; k++)
                i->control_preds[k]->n_control_succs--;
            i->n_control = 0;
            cx->did_at = i->name;
            cx->rewrites++;
        }
    return cx->rewrites > 0;
}
