/* Finds what is written as other instructions; the module that is read stays as it is. */
#include "emit/expand.h"

typedef void Expansion(Inst *i);

static Expansion *expansion_of(const Inst *i)
{
    switch (i->op) {
    case OP_SCAN: return expand_scan;
    case OP_RNG: return expand_rng;
    case OP_SCALED_DOT: return expand_scaled_dot;
    case OP_RAGGED_DOT: return expand_ragged_dot;
    default: return NULL;
    }
}

static void free_module(void *m)
{
    module_free(m);
}

const Module *module_expanded(Arena *a, const Module *m)
{
    bool any = false;
    for (const Comp *c = m->first; c && !any; c = c->next)
        for (const Inst *i = c->first; i && !any; i = i->next)
            any = expansion_of(i) != NULL;
    if (!any)
        return m;
    Module *copy = module_clone(m);
    arena_defer(a, free_module, copy);
    for (Comp *c = copy->first; c; c = c->next)
        for (Inst *i = c->first, *next; i; i = next) {
            Expansion *expand = expansion_of(i);
            next = i->next;
            if (expand)
                expand(i);
        }
    return copy;
}
