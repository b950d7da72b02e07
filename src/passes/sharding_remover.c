/* sharding-remover - with one partition nothing need be said of where values are.
 *
 *   %c = f32[4] custom-call(%x), custom_call_target="Sharding", sharding={replicated}        =>        %x
 *
 * Likewise what begins and ends a part with shapes of its own, and Shardy's marks (xla.sdy.), of which some claim an effect to be kept until they were read. */
#include "config.h"

#include <string.h>

#include "ir/custom_call.h"
#include "passes/pass.h"
#include "passes/util.h"

static bool speaks_of_partitions(const char *target)
{
    return strcmp(target, "Sharding") == 0 || strcmp(target, "SPMDFullToShardShape") == 0 || strcmp(target, "SPMDShardToFullShape") == 0 ||
           (strncmp(target, "xla.sdy.", 8) == 0 && custom_call_is_marker(target));
}

static bool is_mark(const Inst *i)
{
    const char *target = i->op == OP_CUSTOM_CALL && i->n_operands == 1 && !i->n_control && !i->n_control_succs ? inst_string(i, ATTR_CUSTOM_CALL_TARGET) : NULL;
    return target && speaks_of_partitions(target) && shape_equal(i->shape, inst_operand(i, 0)->shape);
}

bool pass_sharding_remover(Module *m, PassCtx *cx)
{
    if (m->num_partitions != 1)
        return false;
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first, *next; i && cx->rewrites < cx->limit && !(c->mark & COMP_OPAQUE); i = next) {
            next = i->next;
            if (!is_mark(i))
                continue;
            cx->did_at = i->name;
            inst_replace(i, inst_operand(i, 0));
            inst_delete(i);
            cx->rewrites++;
        }
    if (cx->rewrites)
        module_forget_effects(m);
    return cx->rewrites > 0;
}
