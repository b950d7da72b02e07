/* A number for the state of a module, to find passes that change one and deny it. */
#include "config.h"

#include "passes/pass_int.h"

#include "passes/util.h"

/* What an instruction is made of are digits that are added up, each times an odd number of its own: no one waits for the other, as in a chain of hashes. */
typedef struct Digits {
    uint64_t sum, times;
} Digits;

static void add(Digits *d, uint64_t x)
{
    d->sum += (x + 1) * (d->times | 1);
    d->times += 0x9E3779B97F4A7C15u;
}

static void add_pointer(Digits *d, const void *p)
{
    add(d, (uint64_t)(uintptr_t)p);
}

typedef struct State {
    uint64_t     h;
    const Shape *shape; /* the last one, and its hash: many instructions share one */
    uint64_t     shape_hash;
} State;

static void add_inst(State *s, const Inst *i)
{
    Digits d = {0, 0xBF58476D1CE4E5B9u};
    if (i->shape != s->shape) {
        s->shape = i->shape;
        s->shape_hash = shape_hash(i->shape);
    }
    add(&d, (uint64_t)i->op);
    add(&d, s->shape_hash);
    add(&d, (uint64_t)i->param);
    add_pointer(&d, i);
    add_pointer(&d, i->name);
    add_pointer(&d, i->meta);
    add_pointer(&d, i->literal);
    for (int32_t k = 0; k < i->n_operands; k++)
        add_pointer(&d, inst_operand(i, k));
    for (int32_t k = 0; k < i->n_callees; k++)
        add_pointer(&d, i->callees[k]);
    for (int32_t k = 0; k < i->n_attrs; k++) {
        add(&d, (uint64_t)i->attrs[k].id);
        add(&d, attr_value_hash(&i->attrs[k]));
    }
    for (int32_t k = 0; k < i->n_control; k++)
        add_pointer(&d, i->control_preds[k]);
    s->h = hash_u64(s->h, d.sum);
}

uint64_t module_state(const Module *m)
{
    State s = {0};
    s.h = hash_u64((uint64_t)(uintptr_t)m->entry, (uint64_t)m->is_scheduled);
    s.h = hash_u64(hash_u64(s.h, (uint64_t)m->n_aliases), (uint64_t)m->n_donors);
    for (const Comp *c = m->first; c; c = c->next) {
        s.h = hash_u64(s.h, (uint64_t)(uintptr_t)c);
        s.h = hash_u64(hash_u64(s.h, (uint64_t)(uintptr_t)c->name), (uint64_t)(uintptr_t)c->root);
        for (const Inst *i = c->first; i; i = i->next)
            add_inst(&s, i);
    }
    return s.h;
}
