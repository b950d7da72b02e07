/* A number for the state of a module, to find passes that change one and deny it. */
#include "config.h"

#include "passes/pass_int.h"

#include "passes/util.h"

static uint64_t add_pointer(uint64_t h, const void *p)
{
    return hash_u64(h, (uint64_t)(uintptr_t)p);
}

static uint64_t add_inst(uint64_t h, const Inst *i)
{
    h = hash_u64(h, (uint64_t)i->op);
    h = add_pointer(add_pointer(add_pointer(add_pointer(h, i), i->name), i->meta), i->literal);
    h = hash_u64(hash_u64(h, shape_hash(i->shape)), (uint64_t)i->param);
    for (int32_t k = 0; k < i->n_operands; k++)
        h = add_pointer(h, inst_operand(i, k));
    for (int32_t k = 0; k < i->n_callees; k++)
        h = add_pointer(h, i->callees[k]);
    for (int32_t k = 0; k < i->n_attrs; k++)
        h = hash_u64(hash_u64(h, (uint64_t)i->attrs[k].id), attr_value_hash(&i->attrs[k]));
    for (int32_t k = 0; k < i->n_control; k++)
        h = add_pointer(h, i->control_preds[k]);
    return h;
}

uint64_t module_state(const Module *m)
{
    uint64_t h = hash_u64(add_pointer(0, m->entry), (uint64_t)m->is_scheduled);
    for (const Comp *c = m->first; c; c = c->next) {
        h = add_pointer(add_pointer(add_pointer(h, c), c->name), c->root);
        for (const Inst *i = c->first; i; i = i->next)
            h = add_inst(h, i);
    }
    return h;
}
