/* zero_sized_hlo_elimination - arrays without elements are constants.
 *
 *   %r = f32[0,4] exponential(%x)        =>        %r = f32[0,4] constant({ })
 *
 * What computes them goes. Effects, control edges and dynamic sizes stay, and so does what would take much text to say nothing. */
#include "config.h"

#include "passes/pass.h"
#include "passes/util.h"

enum { MAX_BRACES = 4096 };

static bool is_empty(const Inst *i)
{
    return i->op != OP_CONSTANT && i->op != OP_PARAMETER && shape_is_array(i->shape) && inst_is_free(i) && shape_count(i->shape) == 0 &&
           literal_braces(i->shape->rank, i->shape->dims) <= MAX_BRACES && (i->n_uses || i->comp->root == i);
}

bool pass_zero_sized_hlo_elimination(Module *m, PassCtx *cx)
{
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first, *next; i && cx->rewrites < cx->limit && !(c->mark & (COMP_FUSED | COMP_OPAQUE)); i = next) {
            next = i->next;
            if (!is_empty(i))
                continue;
            Inst *empty = inst_constant(c, i, literal_for_shape(i->shape, true), NULL);
            empty->shape = i->shape;
            cx->did_at = i->name;
            inst_replace(i, empty);
            inst_delete_dead(i, cx->scratch);
            cx->rewrites++;
        }
    return cx->rewrites > 0;
}
