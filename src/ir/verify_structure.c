/* Structure: lists, operands, parameters, roots, called computations, names. Marks become positions here: comp->mark in the module,
 * inst->mark in the computation, so that "before" is a comparison. */
#include <string.h>

#include "ir/verify_rules.h"

static void number(const Module *m)
{
    int64_t nc = 0;
    for (Comp *c = m->first; c; c = c->next) {
        int64_t ni = 0;
        c->mark = nc++;
        for (Inst *i = c->first; i; i = i->next)
            i->mark = ni++;
    }
}

static void check_unique_names(const Verify *v)
{
    Map comps = map_new(v->a), insts = map_new(v->a);
    for (Comp *c = v->m->first; c; c = c->next) {
        if (map_has(&comps, c->name))
            diag_error(v->d, c->loc, "computation name %%%s is used twice", c->name);
        map_put(&comps, c->name, c);
        for (Inst *i = c->first; i; i = i->next) {
            Inst *other = map_get(&insts, i->name);
            if (other) {
                inst_error(v->d, i, "instruction name %%%s is used twice", i->name);
                diag_note(v->d, other->loc, "%%%s is also the name of this instruction", i->name);
            }
            map_put(&insts, i->name, i);
        }
    }
}

static void check_before(const Verify *v, const Inst *i, const Inst *def, const char *what)
{
    if (def->comp != i->comp) {
        verify_fail(v, i, "%s %%%s is in another computation, %%%s", what, def->name, def->comp->name);
        diag_note(v->d, def->loc, "%%%s is declared here", def->name);
    } else if (def->mark >= i->mark) {
        verify_fail(v, i, "%s %%%s does not come before it", what, def->name);
        diag_note(v->d, def->loc, "%%%s is declared here", def->name);
    }
}

static void check_callees(const Verify *v, const Inst *i)
{
    if (i->n_callees && !op_has(i->op, F_CALLS))
        verify_fail(v, i, "this opcode calls no computation");
    for (int32_t k = 0; k < i->n_callees; k++) {
        const Comp *c = inst_callee(i, k);
        if (c->module != v->m)
            verify_fail(v, i, "computation %%%s is in another module", c->name);
        else if (c->mark >= i->comp->mark)
            verify_fail(v, i, "computation %%%s does not come before its caller", c->name);
    }
}

static void check_parameters(const Verify *v, const Comp *c)
{
    int32_t found = 0;
    for (const Inst *i = c->first; i; i = i->next) {
        if (i->op != OP_PARAMETER)
            continue;
        found++;
        if (i->param < 0 || i->param >= c->n_params || comp_param(c, i->param) != i)
            verify_fail(v, i, "number %lld is used twice or out of range in %%%s", (long long)i->param, c->name);
    }
    for (int32_t k = 0; k < c->n_params && found < c->n_params; k++)
        if (!c->params[k]) {
            diag_error(v->d, c->loc, "computation %%%s has no parameter %d, but %d", c->name, k, c->n_params - 1);
            return;
        }
}

static void check_comp(const Verify *v, const Comp *c)
{
    if (!c->root || c->root->comp != c) {
        diag_error(v->d, c->loc, "computation %%%s has no root", c->name);
        return;
    }
    check_parameters(v, c);
    int32_t calling = 0;
    for (const Inst *i = c->first; i && !diag_full(v->d); i = i->next) {
        calling += i->n_callees > 0;
        if (!i->shape)
            verify_fail(v, i, "has no type");
        for (int32_t k = 0; k < i->n_operands; k++)
            check_before(v, i, inst_operand(i, k), "operand");
        for (int32_t k = 0; k < i->n_control; k++)
            check_before(v, i, i->control_preds[k], "control predecessor");
        check_callees(v, i);
    }
    if (calling != c->n_calling && !diag_full(v->d))
        die("%s has %d instructions that call computations and counts %d", c->name, calling, c->n_calling);
}

void verify_structure(const Verify *v)
{
    number(v->m);
    if (!v->m->entry) {
        diag_error(v->d, LOC_NONE, "module %s has no entry computation", v->m->name);
        return;
    }
    if (v->m->replica_count < 1 || v->m->num_partitions < 1)
        diag_error(v->d, LOC_NONE, "replica_count and num_partitions must be at least 1, got %lld and %lld",
                   (long long)v->m->replica_count, (long long)v->m->num_partitions);
    check_unique_names(v);
    for (const Comp *c = v->m->first; c && !diag_full(v->d); c = c->next)
        check_comp(v, c);
}
