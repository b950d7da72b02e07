/* inline - put the body of a called computation in place of the call.
 *
 *   %f (p: f32[4]) -> f32[4] { ROOT %n = negate(%p) }
 *   ROOT %c = f32[4] call(%x), to_apply=%f              =>     ROOT %n = f32[4] negate(%x)
 *
 * Computations stand after what they call, so one walk in module order inlines everything, inner calls first. Composite calls are
 * inlined too: what they compute is their body. Arrays of which only the layout is another one inside are copied. A call stays when its attributes ask for that, when it runs on another thread,
 * when control edges would have to order effects inside the body, and when copying a body for several calls would make the module
 * huge. */
#include "config.h"

#include "passes/pass.h"
#include "passes/util.h"

#include <string.h>

enum { MIN_GROWTH = 50000 }; /* instructions that copies may always add; more in a module that has more itself */

static bool marked_to_stay(const Inst *call)
{
    const Attr *x = inst_attr(call, ATTR_FRONTEND_ATTRIBUTES);
    for (int32_t k = 0; x && k < x->value.key_values->n; k++) {
        const KeyValue *kv = &x->value.key_values->v[k];
        if (strcmp(kv->key, "inlineable") == 0 && (strcmp(kv->value, "false") == 0 || strcmp(kv->value, "xla_late") == 0))
            return true;
    }
    const char *config = inst_string(call, ATTR_BACKEND_CONFIG);
    return config && *config;
}

static bool same_thread(const Comp *a, const Comp *b)
{
    const char *x = a->execution_thread ? a->execution_thread : "main", *y = b->execution_thread ? b->execution_thread : "main";
    return strcmp(x, y) == 0;
}

/* Equal, or arrays of which a copy makes one the other. */
static bool copies_to(const Shape *x, const Shape *y)
{
    return shape_equal(x, y) || (shape_is_array(x) && shape_is_array(y) && x->type == y->type && shape_same_dims(x, y) && !shape_is_dynamic(x) && !shape_is_dynamic(y));
}

static bool may_inline(const Inst *call)
{
    const Comp *body = inst_callee(call, 0);
    if (marked_to_stay(call) || !same_thread(call->comp, body))
        return false;
    if ((call->n_control || call->n_control_succs) && inst_has_effect(call))
        return false;
    for (int32_t k = 0; k < body->n_params; k++)
        if (!copies_to(comp_param(body, k)->shape, inst_operand(call, k)->shape))
            return false;
    return copies_to(body->root->shape, call->shape);
}

/* x in the layout of shape. */
static Inst *in_layout(Inst *call, Inst *x, const Shape *shape)
{
    if (shape_equal(x->shape, shape))
        return x;
    Inst *y = inst_new(call->comp, call, OP_COPY, shape, 1, &x, NULL);
    y->meta = call->meta;
    y->loc = call->loc;
    return y;
}

/* The copy of i for this call. Parameters are the call's operands. */
static Inst *copy(const Inst *i, Inst *call, Inst **operands, Inst *before)
{
    if (i->op == OP_PARAMETER)
        return in_layout(call, inst_operand(call, (int32_t)i->param), i->shape);
    for (int32_t k = 0; k < i->n_operands; k++)
        operands[k] = inst_operand(i, k)->aux;
    Inst *j = inst_clone_into(call->comp, before, i, i->n_operands, operands);
    for (int32_t k = 0; k < i->n_control; k++)
        if (i->control_preds[k]->op != OP_PARAMETER)
            inst_add_control(j, i->control_preds[k]->aux);
    if (!j->meta)
        j->meta = call->meta;
    return j;
}

void inst_inline(Inst *call, Arena *scratch)
{
    const Comp *body = inst_callee(call, 0);
    int32_t     most = 0;
    for (const Inst *i = body->first; i; i = i->next)
        most = i->n_operands > most ? i->n_operands : most;
    Inst **operands = ARENA_ARRAY(scratch, Inst *, most);
    for (Inst *i = body->first; i; i = i->next)
        i->aux = copy(i, call, operands, call);
    Inst *result = in_layout(call, body->root->aux, call->shape);
    if (body->root->op == OP_PARAMETER && result == inst_operand(call, (int32_t)body->root->param))
        inst_drop_control(call); /* an older instruction cannot wait for what the call waited for */
    inst_replace(call, result);
    inst_delete(call);
}

/* comp->aux is set where the form of a computation is fixed: an asynchronous one is its parameters and one instruction. */
static void mark_wrappers(Module *m)
{
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        c->aux = c->mark & COMP_OPAQUE ? c : NULL;
}

/* comp->mark becomes the number of calls to it; the result is the number of instructions. */
static int64_t count(Module *m)
{
    int64_t total = 0;
    for (Comp *c = m->first; c; c = c->next) {
        c->mark = 0;
        total += c->n_insts;
    }
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c); i; i = i->next)
            for (int32_t k = 0; k < i->n_callees; k++)
                i->callees[k]->mark++;
    return total;
}

bool pass_inline(Module *m, PassCtx *cx)
{
    mark_wrappers(m);
    int64_t room = count(m);
    room = room < MIN_GROWTH ? MIN_GROWTH : room;
    for (Comp *c = m->first; c; c = c->next) {
        if (c->aux)
            continue;
        for (Inst *i = comp_calling(c), *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            if (i->op != OP_CALL || !may_inline(i))
                continue;
            const Comp *body = inst_callee(i, 0);
            int64_t copied = body->mark > 1 ? body->n_insts : 0;
            if (copied > room) {
                pass_remark(cx, i, "%%%s stays a call: %%%s has %d instructions and %lld calls, copies may add %lld more", i->name, body->name,
                            body->n_insts, (long long)body->mark, (long long)room);
                continue;
            }
            room -= copied;
            cx->did_at = i->name;
            pass_remark(cx, i, "%%%s is replaced by the body of %%%s, instructions: %d", i->name, body->name, body->n_insts);
            inst_inline(i, cx->scratch);
            cx->rewrites++;
        }
    }
    if (cx->rewrites)
        module_remove_dead_comps(m);
    return cx->rewrites > 0;
}
