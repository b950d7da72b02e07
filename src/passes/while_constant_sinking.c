/* while-loop-constant-sinking - constants that a loop carries are read in it from where they come.
 *
 *   (i, c, x) = (i + 1, c, x + c)             (%w = while(tuple(0, constant({1, 2}), x)))
 *         =>
 *   (i, c, x) = (i + 1, c, x + constant({1, 2}))
 *
 * Constants, and broadcasts of scalar ones. Rules that know constants see them then; simplify-while-loops takes the element away, which nobody reads
 * any more. A large constant that is also needed elsewhere stays: the text would say it twice. */
#include "config.h"

#include "passes/pass.h"
#include "passes/while.h"

bool pass_while_constant_sinking(Module *m, PassCtx *cx)
{
    Flow f = flow_of(m, cx->scratch);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c); i && cx->rewrites < cx->limit; i = i->next)
            if (i->op == OP_WHILE && while_sink_constants(&f, i, false)) {
                cx->did_at = i->name;
                cx->rewrites++;
            }
    return cx->rewrites > 0;
}
