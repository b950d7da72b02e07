/* send and recv between devices. A send hands its arrays over, one exchange each; the recv-done takes them; their starts and ends are nothing but
 * values in between. One device sends to itself. Source: reference operations 17. */
#include "emit/plan.h"
#include "ir/message.h"

static const Inst *recv_of(const Inst *done, const Inst *than)
{
    for (const Comp *c = done->comp->module->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next)
            if (i->op == OP_RECV && i != than && inst_int(i, ATTR_CHANNEL_ID, 0) == inst_int(done, ATTR_CHANNEL_ID, 0))
                return i;
    return NULL;
}

/* Who sends to whom, as devices. */
static IntsList pairs_of(Plan *p, const Inst *i)
{
    Devices on = p->program->on;
    Ints   *v = ARENA_ARRAY(p->arena, Ints, devices_n(on));
    int32_t n = 0;
    for (int64_t from = 0; from < devices_n(on); from++) {
        int64_t to = message_partner(p->work, i, MESSAGE_TARGET, on, from);
        if (to < 0)
            continue;
        v[n] = ints_make(p->arena, 2);
        *ints_at(v[n], 0) = from;
        *ints_at(v[n++], 1) = to;
    }
    return (IntsList){ v, n };
}

/* The recv that a recv-done belongs to; around loops any of its channel, which then has one only. NULL after reporting. */
static const Inst *start_of(Plan *p, const Inst *done)
{
    const Inst *start = done->operands[0].def->op == OP_RECV ? done->operands[0].def : recv_of(done, NULL);
    if (start && (start == done->operands[0].def || !recv_of(done, start)))
        return start;
    plan_fail(p, done, "belongs to no recv or to several (%%%s)", done->name);
    return NULL;
}

/* Exchange k of an instruction, made when it is first asked for; pairs: the send or recv that has them. */
static const Exchange *message(Plan *p, const Inst *i, const Inst *pairs, int32_t k, const Shape *leaf)
{
    Exchange *all = map_get(&p->messages, i);
    if (!all) {
        all = ARENA_ARRAY(p->arena, Exchange, shape_leaf_count(i->shape, true));
        map_put(&p->messages, i, all);
    }
    if (!all[k].id) {
        all[k] = (Exchange){ .kind = i->op == OP_SEND ? EXCHANGE_SEND : EXCHANGE_RECEIVE, .step = k, .channel = inst_int(i, ATTR_CHANNEL_ID, 0),
                             .bytes = shape_bytes(leaf), .pairs = pairs_of(p, pairs), .op = op_name(i->op), .name = i->name,
                             .type = shape_text(p->arena, leaf), .id = names_take(&p->names, "x_", i->name) };
        vec_push(p->arena, &p->exchanged, &all[k]);
    }
    return &all[k];
}

static void hand_over(Plan *p, StepList *out, const Inst *i, const Value *x)
{
    int32_t       n;
    const Shape **want = leaf_shapes(p, i->shape->elems[0], &n);
    for (int32_t k = 0; k < n; k++) {
        if (!x->v[k].slot)
            continue;
        Leaf      leaf = leaf_as(p, out, x->v[k], want[k], i);
        PlanStep *s = step_new(p, out, STEP_EXCHANGE, i, 1);
        s->step.exchange = message(p, i, i, k, want[k]);
        s->step.n_operands = 1;
        s->slots[0] = leaf.slot;
    }
}

/* (data, token): the arrays lie as the recv says. */
static Value *take(Plan *p, StepList *out, const Inst *i, const Inst *start)
{
    int32_t       n;
    Value        *y = value_fresh(p, i->shape, i);
    const Shape **shapes = leaf_shapes(p, start->shape->elems[0], &n);
    for (int32_t k = 0; k < n; k++) {
        if (!y->v[k].slot)
            continue;
        PlanStep *s = step_new(p, out, STEP_EXCHANGE, i, 1);
        y->v[k] = (Leaf){ slot_new(p, BUFFER_SCRATCH, shapes[k], i), shapes[k] };
        s->step.exchange = message(p, i, start, k, shapes[k]);
        s->slots[0] = y->v[k].slot;
        s->n_results = 1;
    }
    return y;
}

Value *plan_message(Plan *p, StepList *out, const Inst *i)
{
    Value      *y = value_fresh(p, i->shape, i);
    const char *why = message_refused(p->work, i, p->program->on);
    if (why) {
        plan_fail(p, i, "%s (%%%s)", why, i->name);
        return y;
    }
    if (i->op == OP_SEND) {
        const Value *x = value_of(p, i->operands[0].def);
        hand_over(p, out, i, x);
        for (int32_t k = 0; k < x->n; k++)
            y->v[k] = x->v[k];
    } else if (i->op == OP_RECV_DONE) {
        const Inst *start = start_of(p, i);
        return start ? take(p, out, i, start) : y;
    }
    return y;
}
