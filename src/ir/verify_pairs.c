/* Steps that belong together: copies, collectives, transfers and asynchronous calls with their done.
 * Source: reference operations 15 to 17. */
#include <string.h>

#include "ir/verify_rules.h"

/* The done of a start that has its own opcodes; OP_COUNT for other opcodes. */
static Op done_of(Op start)
{
    switch (start) {
    case OP_COPY_START:               return OP_COPY_DONE;
    case OP_ALL_GATHER_START:         return OP_ALL_GATHER_DONE;
    case OP_ALL_REDUCE_START:         return OP_ALL_REDUCE_DONE;
    case OP_COLLECTIVE_PERMUTE_START: return OP_COLLECTIVE_PERMUTE_DONE;
    default:                          return OP_COUNT;
    }
}

static Op start_of(Op done)
{
    for (Op op = 0; op < OP_COUNT; op++)
        if (done_of(op) == done)
            return op;
    return OP_COUNT;
}

static void check_start(const Verify *v, const Inst *i, Op done)
{
    if (i->n_uses != 1 || i->uses->user->op != done)
        verify_fail(v, i, "must be used once, by %s; it has %d user%s", op_name(done), i->n_uses, i->n_uses == 1 ? "" : "s");
}

static void check_done(const Verify *v, const Inst *i)
{
    Op          start = start_of(i->op);
    const Inst *o = inst_operand(i, 0);
    if (o->op != start)
        verify_fail(v, i, "operand 0 must be %s, is %s", op_name(start), op_name(o->op));
}

/* send, recv: one user, which is the done or (around a loop) a tuple; or the result of an asynchronous computation. */
static void check_transfer(const Verify *v, const Inst *i)
{
    Op done = i->op == OP_SEND ? OP_SEND_DONE : OP_RECV_DONE;
    if (i == i->comp->root && map_has(&v->wrapped, i->comp))
        return;
    if (i->n_uses != 1 || (i->uses->user->op != done && i->uses->user->op != OP_TUPLE))
        verify_fail(v, i, "must be used once, by %s or tuple; it has %d user%s", op_name(done), i->n_uses,
                    i->n_uses == 1 ? "" : "s");
}

static void check_transfer_done(const Verify *v, const Inst *i)
{
    Op          start = i->op == OP_SEND_DONE ? OP_SEND : OP_RECV;
    const Inst *o = inst_operand(i, 0);
    if (o->op != start && o->op != OP_GET_TUPLE_ELEMENT) {
        verify_fail(v, i, "operand 0 must be %s or get-tuple-element, is %s", op_name(start), op_name(o->op));
        return;
    }
    if (o->op != start)
        return;
    if (inst_int(i, ATTR_CHANNEL_ID, 0) != inst_int(o, ATTR_CHANNEL_ID, 0))
        verify_fail(v, i, "channel_id is %lld, that of %%%s %lld", (long long)inst_int(i, ATTR_CHANNEL_ID, 0), o->name,
                    (long long)inst_int(o, ATTR_CHANNEL_ID, 0));
    if (inst_bool(i, ATTR_IS_HOST_TRANSFER) != inst_bool(o, ATTR_IS_HOST_TRANSFER))
        verify_fail(v, i, "is_host_transfer differs from that of %%%s", o->name);
}

void verify_pairs(const Verify *v, const Inst *i)
{
    switch (i->op) {
    case OP_COPY_START:
    case OP_ALL_GATHER_START:
    case OP_ALL_REDUCE_START:
    case OP_COLLECTIVE_PERMUTE_START:
        check_start(v, i, done_of(i->op));
        break;
    case OP_COPY_DONE:
    case OP_ALL_GATHER_DONE:
    case OP_ALL_REDUCE_DONE:
    case OP_COLLECTIVE_PERMUTE_DONE:
        check_done(v, i);
        break;
    case OP_SEND:
    case OP_RECV:
        check_transfer(v, i);
        break;
    case OP_SEND_DONE:
    case OP_RECV_DONE:
        check_transfer_done(v, i);
        break;
    default:
        break;
    }
}

/* Asynchronous calls */

static bool is_async(Op op) { return op == OP_ASYNC_START || op == OP_ASYNC_UPDATE || op == OP_ASYNC_DONE; }
static bool is_pending(Op op) { return op == OP_ASYNC_START || op == OP_ASYNC_UPDATE; }

/* Opcodes through which an asynchronous value may pass on its way to its done. */
static bool carries_async(Op op)
{
    switch (op) {
    case OP_TUPLE:
    case OP_GET_TUPLE_ELEMENT:
    case OP_WHILE:
    case OP_CALL:
    case OP_CONDITIONAL:
    case OP_OPT_BARRIER:
    case OP_DOMAIN:
    case OP_COPY:
        return true;
    default:
        return false;
    }
}

/* One done or update ends a step; a step that is carried elsewhere (a loop, the result of a computation) is excused. */
static void check_async_users(const Verify *v, const Inst *i)
{
    int32_t ends = 0;
    bool    carried = i->comp->root == i;
    for (const Use *u = i->uses; u; u = u->next) {
        bool end = (u->user->op == OP_ASYNC_UPDATE || u->user->op == OP_ASYNC_DONE) && u->index == 0;
        if (!end && !carries_async(u->user->op)) {
            verify_fail(v, i, "its value may only go to async-update and async-done, not to %s %%%s", op_name(u->user->op),
                        u->user->name);
            return;
        }
        ends += end;
        carried |= !end;
    }
    if (ends > 1 || (ends == 0 && !carried))
        verify_fail(v, i, "must end in one async-done, has %d", ends);
}

/* The step that operand 0 continues; NULL when it comes from elsewhere (a parameter, a loop). */
static const Inst *previous_step(const Verify *v, const Inst *i)
{
    const Inst *o = inst_operand(i, 0);
    if (is_pending(o->op))
        return o;
    if (o->op != OP_PARAMETER && !carries_async(o->op))
        verify_fail(v, i, "operand 0 must be an async-start or async-update, is %s", op_name(o->op));
    return NULL;
}

/* What a chain wraps: the computation of its start. Every link comes before the next, and each was checked, so this ends. */
static const Comp *wrapped(const Inst *i)
{
    while (i->n_callees == 0 && i->n_operands > 0 && i->op != OP_ASYNC_START && is_async(i->op))
        i = inst_operand(i, 0);
    return is_async(i->op) && i->n_callees ? inst_callee(i, 0) : NULL;
}

/* One operation and the elements of tuples that it takes; sends and receives; or a group of collectives, which says so. */
static void check_wrapper(const Verify *v, const Inst *i)
{
    const Comp *c = inst_callee(i, 0);
    const Inst *other = NULL;
    bool        transfers = true;
    for (const Inst *k = c->first; k; k = k->next) {
        if (k != c->root && k->op != OP_PARAMETER && k->op != OP_GET_TUPLE_ELEMENT && !other)
            other = k;
        transfers = transfers && (k->op == OP_SEND || k->op == OP_RECV || k->op == OP_BITCAST || k->op == OP_PARAMETER || k->op == OP_TUPLE);
    }
    if (other && !transfers && !frontend_attribute(i, "_collectives_group"))
        verify_fail(v, i, "%%%s must consist of its parameters and a root, but has %%%s", c->name, other->name);
}

/* Aliases of an update concern the context: elements 2 and later. */
static void check_context_aliases(const Verify *v, const Inst *i)
{
    const Attr *a = inst_attr(i, ATTR_OUTPUT_TO_OPERAND_ALIASING);
    for (int32_t k = 0; a && k < a->value.aliasing->n; k++) {
        Ints out = a->value.aliasing->v[k].output;
        if (out.n == 0 || out.v[0] < 2)
            verify_fail(v, i, "output_to_operand_aliasing may only concern the context, not %s", index_text(v, out));
    }
}

static void check_continued(const Verify *v, const Inst *i)
{
    const Inst *before = previous_step(v, i);
    const Comp *c = before ? wrapped(before) : NULL;
    if (!c)
        return;
    if (i->n_callees && inst_callee(i, 0) != c)
        verify_fail(v, i, "wraps %%%s, but %%%s wraps %%%s", inst_callee(i, 0)->name, before->name, c->name);
    int32_t bound = before->shape->elems[0]->n_elems;
    if (i->op == OP_ASYNC_DONE && bound != c->n_params)
        verify_fail(v, i, "%d of the %d arguments of %%%s are bound", bound, c->n_params, c->name);
}

void verify_async(const Verify *v, const Inst *i)
{
    if (!is_async(i->op))
        return;
    if (is_pending(i->op))
        check_async_users(v, i);
    if (i->op == OP_ASYNC_START)
        check_wrapper(v, i);
    else
        check_continued(v, i);
    if (i->op == OP_ASYNC_UPDATE)
        check_context_aliases(v, i);
}

/* A wrapped computation belongs to asynchronous steps alone. */
void verify_async_callees(Verify *v)
{
    v->wrapped = map_new(v->a);
    for (const Comp *c = v->m->first; c; c = c->next)
        for (Inst *i = comp_calling(c); i; i = i->next)
            for (int32_t k = 0; is_async(i->op) && k < i->n_callees; k++)
                map_put(&v->wrapped, inst_callee(i, k), i);
    if (v->wrapped.n == 0)
        return;
    for (const Comp *c = v->m->first; c; c = c->next)
        for (const Inst *i = comp_calling(c); i; i = i->next)
            for (int32_t k = 0; !is_async(i->op) && k < i->n_callees; k++) {
                const Inst *other = map_get(&v->wrapped, inst_callee(i, k));
                if (other)
                    verify_fail(v, i, "%%%s is wrapped by %%%s and cannot be called by others", inst_callee(i, k)->name,
                                other->name);
            }
}
