/* A dot, a convolution or a triangular solve by itself that is worth it to a call of the runtime. Its operands are read as they lie. */
#include "emit/dot_call.h"
#include "emit/plan.h"
#include "runtime/hlort.h"

/* Its buffers: two operands, the result, working memory. */
static Value *call_of(Plan *p, StepList *out, LibraryCall *c, Slot *a, Slot *b)
{
    const Inst *i = c->inst;
    Value      *result = value_fresh(p, i->shape, i);
    PlanStep   *s = step_new(p, out, STEP_CALL, i, 4);
    s->step.function = plan_call_number(p, c);
    s->step.call = p->calls.v[s->step.function];
    s->step.n_operands = 2;
    s->n_results = 1;
    s->slots[0] = a;
    s->slots[1] = b;
    s->slots[2] = result->v[0].slot;
    s->slots[3] = slot_new(p, BUFFER_SCRATCH, shape_array(p->arena, TYPE_U8, 1, &c->temp_bytes), i);
    return result;
}

Value *plan_dot(Plan *p, StepList *out, const Inst *i)
{
    const Leaf *lhs = &value_of(p, i->operands[0].def)->v[0], *rhs = &value_of(p, i->operands[1].def)->v[0];
    DotCall    *d = ARENA_NEW(p->arena, DotCall);
    if (!p->options->runtime || inst_attr(i, ATTR_SPARSITY_CONFIG) || !dot_call(i, lhs->shape, rhs->shape, i->shape, d))
        return NULL;
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .dot = d, .temp_bytes = HLORT_WORK_BYTES };
    return call_of(p, out, c, (d->swapped ? rhs : lhs)->slot, (d->swapped ? lhs : rhs)->slot);
}

Value *plan_conv(Plan *p, StepList *out, const Inst *i)
{
    const Leaf *lhs = &value_of(p, i->operands[0].def)->v[0], *rhs = &value_of(p, i->operands[1].def)->v[0];
    ConvCall   *v = ARENA_NEW(p->arena, ConvCall);
    if (!p->options->runtime || !conv_call(i, lhs->shape, rhs->shape, i->shape, v))
        return NULL;
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .conv = v, .temp_bytes = HLORT_WORK_BYTES };
    return call_of(p, out, c, lhs->slot, rhs->slot);
}

Value *plan_solve(Plan *p, StepList *out, const Inst *i)
{
    SolveCall *d = ARENA_NEW(p->arena, SolveCall);
    if (!p->options->runtime || !solve_call(i, d))
        return NULL;
    Leaf a = leaf_as(p, out, value_of(p, i->operands[0].def)->v[0], i->operands[0].def->shape, i);
    Leaf b = leaf_as(p, out, value_of(p, i->operands[1].def)->v[0], i->operands[1].def->shape, i);
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .solve = d, .temp_bytes = HLORT_WORK_BYTES };
    return call_of(p, out, c, a.slot, b.slot);
}
