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

/* ---- loop bodies ---- */

/* Which element of the one parameter i is, or -1. */
static int64_t state_index(const Inst *i)
{
    return i->op == OP_GET_TUPLE_ELEMENT && i->operands[0].def->op == OP_PARAMETER ? inst_int(i, ATTR_INDEX, 0) : -1;
}

/* The element that i computes anew from its old value, for the root alone, or -1. */
static int64_t updated_state(const Inst *i)
{
    const Inst *root = i->comp->root;
    if (i->n_uses != 1 || i->uses->user != root || i->n_control_succs > 0)
        return -1;
    for (int32_t o = 0; o < i->n_operands; o++)
        if (state_index(i->operands[o].def) == i->uses->index)
            return i->uses->index;
    return -1;
}

/* New state can be written over the old when nobody reads that afterwards. So an update that only the root waits for goes to the end,
 * just before the root, when a reader of the old value comes after it.
 *
 *     next = add(i, one)                       new = dynamic-update-slice(acc, x, i)
 *     new = dynamic-update-slice(acc, x, i)    next = add(i, one)
 *     ROOT tuple(next, new)             =>     ROOT tuple(next, new) */
void schedule_delay_updates(Arena *a, const Comp *c, const Inst **run, int32_t n)
{
    if (c->n_params != 1 || c->root->op != OP_TUPLE || n == 0 || run[n - 1] != c->root)
        return;
    int32_t      *last_read = ARENA_ARRAY(a, int32_t, c->root->n_operands), n_late = 0, kept = 0;
    const Inst  **late = ARENA_ARRAY(a, const Inst *, n);
    for (int32_t k = 0; k < n - 1; k++)
        for (int32_t o = 0; o < run[k]->n_operands; o++) {
            int64_t s = state_index(run[k]->operands[o].def);
            if (s >= 0 && s < c->root->n_operands)
                last_read[s] = k;
        }
    for (int32_t k = 0; k < n - 1; k++) {
        int64_t s = updated_state(run[k]);
        if (s >= 0 && last_read[s] > k)
            late[n_late++] = run[k];
        else
            run[kept++] = run[k];
    }
    for (int32_t k = 0; k < n_late; k++)
        run[kept++] = late[k];
}

/* Side effects happen in the order in which they are written. */
static bool has_effects(const Comp *c)
{
    int32_t n = 0;
    for (const Inst *i = c->first; i && n < 2; i = i->next)
        n += inst_has_effect(i);
    return n == 2;
}

bool schedule_is_fixed(const Comp *c)
{
    return c->module->is_scheduled || has_effects(c);
}

const Inst **schedule_comp(Arena *a, const Comp *c, int32_t *n)
{
    Inst       **all = schedule_is_fixed(c) ? stored_order(a, c) : comp_post_order(a, c);
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
    if (!c->module->is_scheduled)
        schedule_delay_updates(a, c, run + first, *n);
    return run + first;
}
