/* Values that are the operands' own. Collectives of one participant: each is the identity, or zeros for a device that nothing is sent to. What
 * names a device that is not there is refused. On several devices: exchanges, and which of them this one is. Source: reference
 * operations 16. */
#include "emit/plan.h"
#include "ir/attr_rare.h"
#include "ir/collective.h"

static void check_devices(Plan *p, const Inst *i)
{
    const char *why = i->op == OP_COLLECTIVE_REDUCE && devices_n(p->program->on) > 1 ? "on several devices cannot be emitted"
                    : inst_bool(i, ATTR_HAS_DYNAMIC_ROOT) ? "with a root that is an operand cannot be emitted"
                    : inst_attr(i, ATTR_SLICE_SIZES) ? "of slices in place cannot be emitted" : collective_refused(p->work, i, p->program->on);
    if (why)
        plan_fail(p, i, "%s (%%%s)", why, i->name);
}

/* Whether a device gets its own operand back; else it gets zeros. */
static bool sends_to_itself(const Inst *i)
{
    return inst_attr(i, ATTR_SOURCE_TARGET_PAIRS)->value.lists->n > 0;
}

/* The operands' leaves, `times` over. */
static Value *operands_again(Plan *p, const Inst *i, int32_t times)
{
    int32_t n = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        n += value_of(p, i->operands[k].def)->n;
    Value *x = value_new(p, n * times);
    n = 0;
    for (int32_t t = 0; t < times; t++)
        for (int32_t k = 0; k < i->n_operands; k++)
            for (int32_t e = 0; e < value_of(p, i->operands[k].def)->n; e++)
                x->v[n++] = value_of(p, i->operands[k].def)->v[e];
    return x;
}

/* x has the structure of s, and what is behind it in s is memory of the backend's own. */
static Value *shaped(Plan *p, const Inst *i, const Value *x, bool zeros)
{
    int32_t       n;
    const Shape **want = leaf_shapes(p, i->shape, &n);
    Value        *y = value_fresh(p, i->shape, i);
    if (x->n > n) {
        plan_fail(p, i, "the result %s has fewer parts than the operation gives", shape_text(p->work, i->shape));
        return y;
    }
    for (int32_t k = 0; k < x->n; k++) {
        if (x->v[k].slot && (x->v[k].shape->type != want[k]->type || !shape_same_dims(x->v[k].shape, want[k])))
            plan_fail(p, i, "the result %s is not the operand %s, which it is on one device", shape_text(p->work, want[k]),
                      shape_text(p->work, x->v[k].shape));
        else if (zeros && x->v[k].slot)
            y->v[k].slot = slot_constant(p, literal_keep(p->arena, literal_for_shape(want[k], true)), want[k], i);
        else
            y->v[k] = x->v[k];
    }
    return y;
}

Value *plan_tuple(Plan *p, const Inst *i)
{
    Value *x = operands_again(p, i, 1);
    return i->op == OP_TUPLE ? x : shaped(p, i, x, false);
}

Value *plan_collective(Plan *p, const Inst *i)
{
    check_devices(p, i);
    switch (i->op) {
    case OP_ALL_REDUCE:
    case OP_ALL_REDUCE_START:
    case OP_ALL_GATHER:
    case OP_REDUCE_SCATTER:
    case OP_ALL_TO_ALL:
    case OP_COLLECTIVE_BROADCAST:
    case OP_COLLECTIVE_REDUCE:
        return shaped(p, i, operands_again(p, i, 1), false);
    case OP_ALL_GATHER_START:
        return shaped(p, i, operands_again(p, i, 2), false);
    case OP_COLLECTIVE_PERMUTE:
        return shaped(p, i, operands_again(p, i, 1), !sends_to_itself(i));
    case OP_COLLECTIVE_PERMUTE_START:
        return shaped(p, i, operands_again(p, i, 2), !sends_to_itself(i));
    default:
        plan_fail(p, i, "cannot be emitted");
        return value_fresh(p, i->shape, i);
    }
}

/* ---- several devices ---- */

static Value *checked(Plan *p, StepList *out, const Inst *i, const Exchange *x)
{
    PlanStep *s = step_new(p, out, STEP_CHECK, i, 1);
    s->step.exchange = x;
    s->step.n_operands = 1;
    s->slots[0] = value_of(p, i->operands[1].def)->v[0].slot;
    return value_of(p, i->operands[0].def);
}

Value *plan_exchange(Plan *p, StepList *out, const Inst *i, Exchange *x)
{
    if (x->kind == EXCHANGE_CHECK)
        return checked(p, out, i, x);
    const Inst *from = i->operands[0].def;
    Leaf        in = leaf_as(p, out, value_of(p, from)->v[0], from->shape, i);
    Value      *y = value_fresh(p, i->shape, i);
    PlanStep   *s = step_new(p, out, STEP_EXCHANGE, i, 2);
    if (!x->id) {
        x->id = names_take(&p->names, "x_", i->name);
        vec_push(p->arena, &p->exchanged, x);
    }
    s->step.exchange = x;
    s->step.n_operands = 1;
    s->slots[0] = in.slot;
    s->slots[1] = y->v[0].slot;
    s->n_results = 1;
    return y;
}

Value *plan_device_number(Plan *p, StepList *out, const Inst *i)
{
    bool    replica = i->op == OP_REPLICA_ID;
    Devices on = p->program->on;
    Value  *x = value_new(p, 1);
    if ((replica ? on.replicas : on.partitions) == 1) {
        x->v[0] = (Leaf){ slot_constant(p, literal_keep(p->arena, literal_for_shape(i->shape, true)), i->shape, i), i->shape };
        return x;
    }
    PlanStep *s = step_new(p, out, replica ? STEP_REPLICA : STEP_PARTITION, i, 1);
    x = value_fresh(p, i->shape, i);
    s->slots[0] = x->v[0].slot;
    s->n_results = 1;
    return x;
}
