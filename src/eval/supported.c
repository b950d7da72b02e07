/* What the evaluator can do, asked before anything runs: the instructions that ENTRY's root reaches, through calls, and those with an effect. */
#include "eval/engine.h"
#include "eval/sizes.h"
#include "ir/custom_call.h"
#include "ir/region.h"

EvalFn eval_collective, eval_transfer;

static bool extern_is_there(const Inst *i, const EvalHost *host, Diag *d)
{
    const char *target = inst_string(i, ATTR_CUSTOM_CALL_TARGET), *symbol = extern_symbol(d->arena, target);
    if (host && host->calls && host->calls->find(host->calls->cookie, symbol))
        return true;
    inst_error(d, i, "the evaluator has no implementation for custom-call target \"%s\" (%%%s)", target, i->name);
    diag_note(d, LOC_NONE, "hlo-run --custom-call=LIBRARY brings functions of one's own: this one would be %s", symbol);
    return false;
}

static bool custom_call_supported(const Inst *i, const EvalHost *host, Devices on, Diag *d)
{
    const char *target = inst_string(i, ATTR_CUSTOM_CALL_TARGET);
    CallKind    kind = custom_call_kind(target);
    bool        cuts = kind == CALL_CUT || kind == CALL_JOIN;
    ExternCall  call;
    if (kind == CALL_UNKNOWN && !extern_is_there(i, host, d))
        return false;
    const char *why = kind == CALL_UNKNOWN ? extern_call(d->arena, i, &call)
                    : cuts && on.partitions > 1 ? region_refused(d->arena, i, on) : custom_call_refused(d->arena, i);
    if (why)
        inst_error(d, i, "custom-call \"%s\" %%%s: %s", target, i->name, why);
    else
        return true;
    return false;
}

static bool inst_supported(const Inst *i, const EvalHost *host, Devices on, Diag *d)
{
    if (i->op == OP_CUSTOM_CALL && !custom_call_supported(i, host, on, d))
        return false;
    const char *refused = eval_handlers[i->op] == eval_collective ? eval_collective_refused(d->arena, i, on)
                        : eval_handlers[i->op] == eval_transfer ? transfer_refused(d->arena, i, host, on) : NULL;
    if (refused) {
        inst_error(d, i, "%s %s (%%%s)", op_name(i->op), refused, i->name);
        return false;
    }
    const char *sizes = sizes_refused(d->arena, i);
    if (sizes) {
        inst_error(d, i, "%s %s (%%%s)", op_name(i->op), sizes, i->name);
        return false;
    }
    if ((i->op == OP_DOT || i->op == OP_CONVOLUTION) && i->n_operands > 2) {
        inst_error(d, i, "the evaluator does not support sparse operands (%s %%%s)", op_name(i->op), i->name);
        return false;
    }
    return true;
}

typedef VEC(const Comp *) Comps;

/* Marks the operands of needed instructions, last to first, and adds the computations that they call to todo. */
static bool comp_supported(Arena *a, const Comp *c, Map *reached, Comps *todo, const EvalHost *host, Devices on, Diag *d)
{
    static char yes;
    bool ok = true;
    Map needed = map_new(a);
    map_put(&needed, c->root, &yes);
    for (const Inst *i = c->last; i; i = i->prev) {
        if (!map_has(&needed, i) && !inst_has_effect(i))
            continue;
        ok = inst_supported(i, host, on, d) && ok;
        for (int32_t k = 0; k < i->n_operands; k++)
            map_put(&needed, inst_operand(i, k), &yes);
        for (int32_t k = 0; k < i->n_callees; k++)
            if (!map_has(reached, i->callees[k])) {
                map_put(reached, i->callees[k], &yes);
                vec_push(a, todo, i->callees[k]);
            }
    }
    return ok;
}

bool eval_supported_with(const Module *m, const EvalHost *host, Devices on, Diag *d)
{
    Arena *a = arena_new();
    Map reached = map_new(a);
    Comps todo = {0};
    vec_push(a, &todo, m->entry);
    bool ok = true;
    for (int32_t k = 0; k < todo.n; k++)
        ok = comp_supported(a, todo.v[k], &reached, &todo, host, on, d) && ok;
    arena_free(a);
    return ok;
}

bool eval_supported(const Module *m, Diag *d)
{
    return eval_supported_with(m, NULL, (Devices){1, 1}, d);
}
