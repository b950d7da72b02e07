/* send and recv between devices. A send hands its arrays over, one exchange each; the recv-done takes them; their starts and ends are nothing but
 * values in between. One device sends to itself. infeed and outfeed are the same with the host, whose arrays lie by rows.
 * Source: reference operations 17. */
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

/* What an infeed takes, or an outfeed gives away. */
static const Shape *host_data(const Inst *i)
{
    return i->op == OP_INFEED ? i->shape->elems[0] : i->operands[0].def->shape;
}

static ExchangeKind kind_of(const Inst *i)
{
    switch (i->op) {
    case OP_SEND: return EXCHANGE_SEND;
    case OP_RECV_DONE: return EXCHANGE_RECEIVE;
    case OP_INFEED: return EXCHANGE_INFEED;
    case OP_OUTFEED: return EXCHANGE_OUTFEED;
    default: die("%s exchanges nothing", op_name(i->op));
    }
}

/* Exchange k of an instruction, made when it is first asked for; pairs: the send or recv that has them, NULL: the other end is the host. */
static const Exchange *message(Plan *p, const Inst *i, const Inst *pairs, int32_t k, const Shape *leaf)
{
    Exchange *all = map_get(&p->messages, i);
    if (!all) {
        all = ARENA_ARRAY(p->arena, Exchange, shape_leaf_count(pairs ? i->shape : host_data(i), true));
        map_put(&p->messages, i, all);
    }
    if (!all[k].id) {
        all[k] = (Exchange){ .kind = kind_of(i), .step = k, .channel = pairs ? inst_int(i, ATTR_CHANNEL_ID, 0) : -1, .bytes = shape_bytes(leaf),
                             .pairs = pairs ? pairs_of(p, pairs) : (IntsList){ NULL, 0 }, .op = op_name(i->op), .name = i->name,
                             .type = shape_text(p->arena, leaf), .id = names_take(&p->names, "x_", i->name) };
        vec_push(p->arena, &p->exchanged, &all[k]);
    }
    return &all[k];
}

/* Gives away the arrays of x in the orders of these shapes. */
static void hand_over(Plan *p, StepList *out, const Inst *i, const Inst *pairs, const Value *x, int32_t n, const Shape *const *want)
{
    for (int32_t k = 0; k < n; k++) {
        if (!x->v[k].slot)
            continue;
        Leaf      leaf = leaf_as(p, out, x->v[k], want[k], i);
        PlanStep *s = step_new(p, out, STEP_EXCHANGE, i, 1);
        s->step.exchange = message(p, i, pairs, k, want[k]);
        s->step.n_operands = 1;
        s->slots[0] = leaf.slot;
    }
}

/* (data, token): the arrays lie as these shapes say. */
static Value *take(Plan *p, StepList *out, const Inst *i, const Inst *pairs, int32_t n, const Shape *const *shapes)
{
    Value *y = value_fresh(p, i->shape, i);
    for (int32_t k = 0; k < n; k++) {
        if (!y->v[k].slot)
            continue;
        PlanStep *s = step_new(p, out, STEP_EXCHANGE, i, 1);
        y->v[k] = (Leaf){ slot_new(p, BUFFER_SCRATCH, shapes[k], i), shapes[k] };
        s->step.exchange = message(p, i, pairs, k, shapes[k]);
        s->slots[0] = y->v[k].slot;
        s->n_results = 1;
    }
    return y;
}

Value *plan_message(Plan *p, StepList *out, const Inst *i)
{
    Value      *y = value_fresh(p, i->shape, i);
    const char *why = message_refused(p->work, i, p->program->on);
    int32_t     n;
    if (why) {
        plan_fail(p, i, "%s (%%%s)", why, i->name);
        return y;
    }
    if (i->op == OP_SEND) {
        const Value  *x = value_of(p, i->operands[0].def);
        const Shape **want = leaf_shapes(p, i->shape->elems[0], &n);
        hand_over(p, out, i, i, x, n, want);
        for (int32_t k = 0; k < x->n; k++)
            y->v[k] = x->v[k];
        for (int32_t k = x->n; k < y->n; k++)
            y->v[k].slot = slot_zeros(p, y->v[k].shape, i);
    } else if (i->op == OP_RECV) {
        for (int32_t k = 0; k < y->n; k++) /* what comes is had from recv-done */
            y->v[k].slot = slot_zeros(p, y->v[k].shape, i);
    } else if (i->op == OP_RECV_DONE) {
        const Inst *start = start_of(p, i);
        if (!start)
            return y;
        const Shape **shapes = leaf_shapes(p, start->shape->elems[0], &n);
        return take(p, out, i, start, n, shapes);
    }
    return y;
}

Value *plan_feed(Plan *p, StepList *out, const Inst *i)
{
    int32_t       n;
    const Shape **shapes = leaf_shapes(p, host_data(i), &n);
    if (shape_is_unbounded(host_data(i)) || shape_bytes(host_data(i)) < 0) {
        plan_fail(p, i, "of %s cannot be compiled (%%%s)", shape_text(p->work, host_data(i)), i->name);
        return value_fresh(p, i->shape, i);
    }
    for (int32_t k = 0; k < n; k++)
        if (shape_is_array(shapes[k]))
            shapes[k] = shape_array(p->arena, shapes[k]->type, shapes[k]->rank, shapes[k]->dims);
    if (i->op == OP_INFEED)
        return take(p, out, i, NULL, n, shapes);
    hand_over(p, out, i, NULL, value_of(p, i->operands[0].def), n, shapes);
    return value_fresh(p, i->shape, i);
}
