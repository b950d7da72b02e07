/* Steps that bring elements into another order, as calls of the runtime where that is worth it. Operands are read as they lie. */
#include "emit/order_call.h"
#include "emit/plan.h"

static PlanStep *order_step(Plan *p, StepList *out, const Inst *i, const OrderCall *o, int32_t n_slots)
{
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .order = arena_copy(p->arena, o, sizeof *o) };
    PlanStep *s = step_new(p, out, STEP_CALL, i, n_slots);
    s->step.function = plan_call_number(p, c);
    s->step.call = p->calls.v[s->step.function];
    return s;
}

Value *plan_transpose(Plan *p, StepList *out, const Inst *i, Leaf from)
{
    OrderCall o;
    if (!p->options->runtime || !transpose_call(i, from.shape, i->shape, &o))
        return NULL;
    Value    *result = value_fresh(p, i->shape, i);
    PlanStep *s = order_step(p, out, i, &o, 2);
    s->step.n_operands = s->n_results = 1;
    s->slots[0] = from.slot;
    s->slots[1] = result->v[0].slot;
    return result;
}
