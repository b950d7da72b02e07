/* Steps that bring elements into another order, as calls of the runtime where that is worth it. Operands are read as they lie. */
#include "emit/order_call.h"
#include "emit/plan.h"

static PlanStep *order_step(Plan *p, StepList *out, const Inst *i, const OrderCall *o, int32_t n_slots, int64_t temp_bytes)
{
    LibraryCall *c = ARENA_NEW(p->arena, LibraryCall);
    *c = (LibraryCall){ .inst = i, .order = arena_copy(p->arena, o, sizeof *o), .temp_bytes = temp_bytes };
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
    PlanStep *s = order_step(p, out, i, &o, 2, 0);
    s->step.n_operands = s->n_results = 1;
    s->slots[0] = from.slot;
    s->slots[1] = result->v[0].slot;
    return result;
}

/* How many of x's first elements along dim its uses want, slices of them or slices in a fusion; `all` where one wants something else. */
static int64_t wanted(const Inst *x, int64_t dim, int64_t all)
{
    int64_t kept = x->comp->root == x ? all : 0;
    for (const Use *u = x->uses; u; u = u->next) {
        int64_t end = all;
        if (u->user->op == OP_SLICE)
            end = inst_attr(u->user, ATTR_SLICE)->value.slices->v[dim].limit;
        else if (u->user->op == OP_FUSION && x->op != OP_PARAMETER)
            end = wanted(comp_param(inst_callee(u->user, 0), u->index), dim, all);
        kept = end > kept ? end : kept;
    }
    return kept;
}

/* The first so many of each line are wanted. */
static int64_t kept_of(const Plan *p, const Inst *i, int64_t dim)
{
    const int64_t count = inst_operand(i, 0)->shape->dims[dim];
    const bool    several = shape_is_tuple(i->shape);
    int64_t       kept = several ? 0 : wanted(i, dim, count);
    if (p->options->is_shown || i->comp->root == i)
        return count;
    for (const Use *u = i->uses; u && several; u = u->next) {
        const int64_t end = u->user->op == OP_GET_TUPLE_ELEMENT ? wanted(u->user, dim, count) : count;
        kept = end > kept ? end : kept;
    }
    return kept > 0 ? kept : count;
}

static Value *order_value(Plan *p, StepList *out, const Inst *i, const OrderCall *o, const Leaf *from, Value *result)
{
    const int64_t bytes = hlort_sort_bytes(&o->sort), temp = bytes > HLORT_WORK_BYTES ? bytes : HLORT_WORK_BYTES;
    PlanStep     *s = order_step(p, out, i, o, o->n_operands + result->n + 1, temp);
    int32_t       n = 0;
    s->step.n_operands = o->n_operands;
    s->n_results = result->n;
    for (int32_t k = 0; k < o->n_operands; k++)
        s->slots[n++] = from[k].slot;
    for (int32_t k = 0; k < result->n; k++)
        s->slots[n++] = result->v[k].slot;
    s->slots[n++] = slot_new(p, BUFFER_SCRATCH, shape_array(p->arena, TYPE_U8, 1, &temp), i);
    return result;
}

/* The call for sort i, whose results are shapes. */
static bool is_called(Plan *p, const Inst *i, const Shape **shapes, OrderCall *o)
{
    for (int32_t k = 1; k < i->n_operands; k++)
        if (!layout_equal(shapes[k]->layout, shapes[0]->layout, shapes[0]->rank))
            return false;
    return p->options->runtime && sort_call(i, shapes[0], kept_of(p, i, inst_ints(i, ATTR_DIMENSIONS).v[0]), o);
}

bool plan_is_positions_alone(Plan *p, const Inst *i)
{
    OrderCall o;
    int32_t   n;
    bool      alone = i->n_uses > 0 && i != i->comp->root && i->op != OP_PARAMETER && !p->options->is_shown;
    for (const Use *u = i->uses; u && alone; u = u->next)
        alone = u->user->op == OP_BROADCAST ? plan_is_positions_alone(p, u->user)
                                            : u->user->op == OP_SORT && sort_takes_positions(u->user, u->index) &&
                                                  is_called(p, u->user, leaf_shapes(p, u->user->shape, &n), &o) && (o.positions >> u->index & 1);
    return alone;
}

Value *plan_sort(Plan *p, StepList *out, const Inst *i)
{
    OrderCall     o;
    int32_t       n;
    const Shape **shapes = leaf_shapes(p, i->shape, &n);
    if (!is_called(p, i, shapes, &o))
        return NULL;
    Leaf *from = ARENA_ARRAY(p->work, Leaf, i->n_operands);
    n = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (!(o.positions >> k & 1))
            from[n++] = leaf_as(p, out, value_of(p, i->operands[k].def)->v[0], shapes[k], i);
    return order_value(p, out, i, &o, from, value_fresh(p, i->shape, i));
}

Value *plan_topk(Plan *p, StepList *out, const Inst *i)
{
    OrderCall     o;
    int32_t       n;
    const Shape **shapes = leaf_shapes(p, i->shape, &n), *from = i->operands[0].def->shape;
    bool          rows = layout_is_row_major(from) && layout_is_row_major(shapes[0]) && layout_is_row_major(shapes[1]);
    if (!p->options->runtime || !rows || !topk_call(i, from, shapes[0], &o))
        return NULL;
    Leaf in = leaf_as(p, out, value_of(p, i->operands[0].def)->v[0], from, i);
    return order_value(p, out, i, &o, &in, value_fresh(p, i->shape, i));
}
