/* Operands and control predecessors stand before their users in both orders, so one sweep from the end finds what is needed. */
#include "analysis/schedule.h"

static Inst **stored_order(Arena *a, const Comp *c)
{
    Inst  **v = ARENA_ARRAY(a, Inst *, c->n_insts);
    int32_t n = 0;
    for (Inst *i = c->first; i; i = i->next)
        v[n++] = i;
    return v;
}

const Inst **schedule_comp(Arena *a, const Comp *c, int32_t *n)
{
    Inst       **all = c->module->is_scheduled ? stored_order(a, c) : comp_post_order(a, c);
    const Inst **run = ARENA_ARRAY(a, const Inst *, c->n_insts);
    Map          needed = map_new(a);
    int32_t      first = c->n_insts;
    map_put(&needed, c->root, c->root);
    for (int32_t k = c->n_insts - 1; k >= 0; k--) {
        Inst *i = all[k];
        if (!map_has(&needed, i) && !inst_has_effect(i))
            continue;
        for (int32_t o = 0; o < i->n_operands; o++)
            map_put(&needed, i->operands[o].def, i);
        for (int32_t o = 0; o < i->n_control; o++)
            if (inst_has_effect(i->control_preds[o]))
                map_put(&needed, i->control_preds[o], i);
        run[--first] = i;
    }
    *n = c->n_insts - first;
    return run + first;
}
