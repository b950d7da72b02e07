/* Control flow. A loop's state lives in slots that the loop owns: filled before it, assigned at the end of each iteration, read as the
 * loop's value after it. Assignments are copies here; most vanish when plan_share.c finds that source and target may be one.
 *
 *     state <- init                       copy, unless no iteration changes the leaf: then it is init itself
 *     while (condition(state)) {
 *         new = body(state)
 *         state <- new                    all leaves at once: a leaf may be another one's old value
 *     }
 *
 * For a device, which would have to be asked after each iteration, a loop that counts has no condition: analysis/loops.h says how often it runs. What
 * grows by a constant in each of its iterations is no step: its values stand in a constant, one for each trip. */
#include "analysis/loops.h"
#include "analysis/memory.h"
#include "emit/plan.h"
#include "passes/util.h"

#include <string.h>

/* ---- parallel copies ---- */

/* The target that writing would change what from reads: itself, or the result that a donated argument may be the memory of. */
static Slot *overwritten_with(Slot *from)
{
    return from->donee && from->buffer.kind == BUFFER_ARG ? from->donee : from;
}

typedef struct Copies {
    Plan     *p;
    StepList *out;
    Slot *const *to;
    Slot    **from; /* changed when a cycle is broken */
    int32_t  *ready, n_ready;
    bool     *done;
    const Inst *inst;
} Copies;

/* Performs copy k; whoever waited for its source to be read may go on. */
static void copy_now(Copies *c, int32_t k)
{
    Slot *target = overwritten_with(c->from[k]);
    c->done[k] = true;
    step_copy(c->p, c->out, c->to[k], c->from[k], c->inst);
    if (target != c->to[k] && target->copy >= 0 && --target->readers == 0)
        c->ready[c->n_ready++] = target->copy;
}

/* Saves the old value of to[k] for those who still have to read it. */
static void save_old(Copies *c, int32_t n, int32_t k)
{
    for (int32_t j = 0; j < n; j++) {
        Slot *from = c->from[j];
        if (c->done[j] || j == k || overwritten_with(from) != c->to[k])
            continue;
        Slot *saved = slot_new(c->p, BUFFER_SCRATCH, from->buffer.shape, from->inst);
        step_copy(c->p, c->out, saved, from, c->inst);
        for (int32_t other = j; other < n; other++)
            if (!c->done[other] && c->from[other] == from && other != k)
                c->from[other] = saved;
    }
    c->to[k]->readers = 0;
}

void parallel_copy(Plan *p, StepList *out, int32_t n, Slot *const *to, Slot *const *from, const Inst *i)
{
    Copies c = { p, out, to, ARENA_ARRAY(p->work, Slot *, n), ARENA_ARRAY(p->work, int32_t, n), 0, ARENA_ARRAY(p->work, bool, n), i };
    for (int32_t k = 0; k < n; k++) {
        c.from[k] = slot_root(from[k]);
        to[k]->copy = k;
        to[k]->readers = 0;
    }
    for (int32_t k = 0; k < n; k++) {
        Slot *target = overwritten_with(c.from[k]);
        if (target != to[k] && target->copy >= 0)
            target->readers++;
    }
    for (int32_t k = 0; k < n; k++)
        if (to[k]->readers == 0)
            c.ready[c.n_ready++] = k;
    for (int32_t done = 0, next = 0; done < n; done++) {
        if (c.n_ready == 0) { /* only cycles are left */
            while (c.done[next])
                next++;
            save_old(&c, n, next);
            c.ready[c.n_ready++] = next;
        }
        copy_now(&c, c.ready[--c.n_ready]);
    }
    for (int32_t k = 0; k < n; k++)
        to[k]->copy = -1;
}

/* ---- loops ---- */

typedef struct Loop {
    Value     *state;
    PlanStep **init; /* the copy that fills each leaf; NULL for tokens and counters */
    const Literal **counts; /* of each element of the state: NULL, or its values from the first one to that behind the loop */
} Loop;

/* The values of element k in a loop of so many trips. NULL: they are not known, or too many, or made along with others. */
static const Literal *counts_of(Plan *p, const Inst *w, int64_t k, int64_t trips)
{
    const Inst *root = while_body(w)->root, *next = root->op == OP_TUPLE ? inst_operand(root, (int32_t)k) : NULL;
    int64_t     init, step, last;
    if (!next || (next->op != OP_ADD && next->op != OP_SUBTRACT && next->op != OP_FUSION) || trips > LOOPS_MOST_COUNTS || !shape_is_array(next->shape) || next->shape->rank > 0 ||
        !type_is_int(next->shape->type) || type_bits(next->shape->type) < 32 || !while_steps(w, k, &init, &step) || step == 0 ||
        __builtin_mul_overflow(step, trips, &last) || __builtin_add_overflow(last, init, &last) || (init < last ? init : last) < (type_is_signed_int(next->shape->type) ? INT32_MIN : 0) ||
        (init > last ? init : last) > INT32_MAX)
        return NULL;
    Literal *l = literal_new(next->shape->type, 1, (int64_t[]){ trips + 1 });
    for (int64_t t = 0; t <= trips; t++)
        literal_set_s64(l, t, init + t * step);
    return literal_keep(p->arena, l);
}

/* The value in the trip at hand of the loop that is planned, or in a later one. */
static Slot *slot_count(Plan *p, const Literal *counts, const Shape *s, int32_t ahead, const Inst *i)
{
    Slot *x = slot_new(p, BUFFER_COUNT, s, i);
    x->counts = slot_constant(p, counts, literal_shape(p->arena, counts), i);
    x->buffer.loop = p->loops;
    x->buffer.ahead = ahead;
    return x;
}

static Value *value_count(Plan *p, const Literal *counts, const Shape *s, int32_t ahead, const Inst *i)
{
    Value *x = value_new(p, 1);
    x->v[0] = (Leaf){ slot_count(p, counts, s, ahead, i), s };
    return x;
}

/* Counted elements have no slot of their own; trips < 0: there are none. */
static Loop loop_enter(Plan *p, StepList *out, const Inst *i, int64_t trips)
{
    const Value *init = value_of(p, i->operands[0].def);
    const Shape *shape = comp_param(while_body(i), 0)->shape;
    Loop         l = { value_fresh(p, shape, i), ARENA_ARRAY(p->work, PlanStep *, init->n), ARENA_ARRAY(p->work, const Literal *, shape->n_elems + 1) };
    for (int32_t k = 0; k < shape->n_elems && trips >= 0; k++) {
        l.counts[k] = counts_of(p, i, k, trips);
        if (l.counts[k])
            *value_element(p, l.state, shape, k)->v = value_count(p, l.counts[k], shape->elems[k], 0, i)->v[0];
    }
    for (int32_t k = 0; k < init->n; k++)
        if (init->v[k].slot && !l.state->v[k].slot->counts) {
            Leaf x = leaf_as(p, out, init->v[k], l.state->v[k].shape, i);
            l.init[k] = step_copy(p, out, l.state->v[k].slot, slot_root(x.slot), i);
        }
    return l;
}

/* What makes the next value of a counted element is given, or no more. */
static void give_counts(Plan *p, const Loop *l, const Inst *i, bool given)
{
    const Inst *root = while_body(i)->root;
    for (int32_t k = 0; root->op == OP_TUPLE && k < root->n_operands; k++)
        if (l->counts[k])
            map_put(&p->given, inst_operand(root, k), given ? value_count(p, l->counts[k], inst_operand(root, k)->shape, 1, i) : NULL);
}

/* The state behind the loop. */
static Value *loop_leave(Plan *p, const Loop *l, const Inst *i, int64_t trips)
{
    Value *x = value_new(p, l->state->n);
    memcpy(x->v, l->state->v, (size_t)x->n * sizeof *x->v);
    for (int32_t k = 0; k < i->shape->n_elems; k++)
        if (l->counts[k]) {
            const Shape   *s = i->shape->elems[k];
            const Literal *last = literal_keep(p->arena, literal_from_s64(s->type, literal_get_s64(l->counts[k], trips)));
            *value_element(p, x, i->shape, k)->v = (Leaf){ slot_constant(p, last, s, i), s };
        }
    return x;
}

/* The end of an iteration: new values become the state. */
static void loop_assign(Plan *p, StepList *body, const Loop *l, const Value *new, const Inst *i)
{
    int32_t n = 0;
    Slot  **to = ARENA_ARRAY(p->work, Slot *, new->n), **from = ARENA_ARRAY(p->work, Slot *, new->n);
    for (int32_t k = 0; k < new->n; k++) {
        Slot *state = l->state->v[k].slot;
        if (!state || state->counts)
            continue;
        Slot *value = slot_root(leaf_as(p, body, new->v[k], l->state->v[k].shape, i).slot);
        if (value == state) { /* no iteration changes it */
            l->init[k]->dropped = true;
            state->same = slot_root(l->init[k]->slots[0]);
        } else {
            to[n] = state;
            from[n++] = value;
        }
    }
    parallel_copy(p, body, n, to, from, i);
}

/* It does nothing but look. */
static bool only_looks(const Comp *condition)
{
    for (const Inst *i = condition->first; i; i = i->next)
        if (inst_must_stay(i) || (i->n_callees > 0 && i->op != OP_FUSION))
            return false;
    return true;
}

/* A device would have to be asked after each iteration. */
static bool needs_no_test(const Plan *p, const Inst *i, LoopCount *count)
{
    return p->options->device && while_counted(i, count) && only_looks(while_condition(i));
}

Value *plan_while(Plan *p, StepList *out, const Inst *i)
{
    LoopCount  count = { 0 };
    const bool counted = needs_no_test(p, i, &count);
    Loop       l = loop_enter(p, out, i, counted ? count.trips : -1);
    PlanStep  *s = step_new(p, out, STEP_WHILE, i, counted ? 0 : 1);
    s->step.n_operands = counted ? 0 : 1;
    s->step.trips = counted ? count.trips : -1;
    s->step.loop = p->loops;
    s->step.n_blocks = 1;
    s->blocks = ARENA_ARRAY(p->arena, StepList, 1);
    give_counts(p, &l, i, true);
    p->loops++;
    if (!counted)
        s->slots[0] = plan_comp(p, &s->condition, while_condition(i), &l.state, i)->v[0].slot;
    Value *new = plan_comp(p, &s->blocks[0], while_body(i), &l.state, i);
    loop_assign(p, &s->blocks[0], &l, new, i);
    p->loops--;
    give_counts(p, &l, i, false);
    return loop_leave(p, &l, i, count.trips);
}

/* ---- branches and calls ---- */

Value *plan_conditional(Plan *p, StepList *out, const Inst *i)
{
    Value    *result = value_fresh(p, i->shape, i);
    PlanStep *s = step_new(p, out, STEP_IF, i, 1);
    Slot    **to = ARENA_ARRAY(p->work, Slot *, result->n), **from = ARENA_ARRAY(p->work, Slot *, result->n);
    s->step.n_operands = 1;
    s->step.n_blocks = i->n_callees;
    s->slots[0] = value_of(p, i->operands[0].def)->v[0].slot;
    s->blocks = ARENA_ARRAY(p->arena, StepList, i->n_callees);
    for (int32_t b = 0; b < i->n_callees; b++) {
        Value  *x = value_of(p, i->operands[b + 1].def);
        Value  *y = plan_comp(p, &s->blocks[b], inst_callee(i, b), &x, i);
        int32_t n = 0;
        for (int32_t k = 0; k < result->n; k++)
            if (result->v[k].slot) {
                to[n] = result->v[k].slot;
                from[n++] = leaf_as(p, &s->blocks[b], y->v[k], result->v[k].shape, i).slot;
            }
        parallel_copy(p, &s->blocks[b], n, to, from, i);
    }
    return result;
}

Value *plan_call(Plan *p, StepList *out, const Inst *i, const Comp *c)
{
    Value **params = ARENA_ARRAY(p->work, Value *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        params[k] = value_of(p, i->operands[k].def);
    return plan_comp(p, out, c, params, i);
}

/* ---- asynchronous steps: the work is done at the start ---- */

/* The leaves of x, then those of y, then zeros for what is left of i's shape (contexts of the backend). */
static Value *started_value(Plan *p, const Inst *i, int32_t n, Value *const *parts)
{
    Value  *whole = value_fresh(p, i->shape, i);
    int32_t at = 0;
    for (int32_t k = 0; k < n; k++)
        for (int32_t e = 0; e < parts[k]->n; e++) {
            if (at == whole->n) {
                plan_fail(p, i, "the result has fewer parts than operands and results of the operation");
                return whole;
            }
            whole->v[at++] = parts[k]->v[e];
        }
    for (; at < whole->n; at++)
        whole->v[at].slot = slot_zeros(p, whole->v[at].shape, i);
    return whole;
}

Value *plan_async_start(Plan *p, StepList *out, const Inst *i)
{
    const Comp *c = inst_callee(i, 0);
    Value     **parts = ARENA_ARRAY(p->work, Value *, i->n_operands + 1);
    if (c->n_params != i->n_operands) {
        plan_fail(p, i, "has %d of %d arguments, and binding the others later is not supported", i->n_operands, c->n_params);
        return value_fresh(p, i->shape, i);
    }
    for (int32_t k = 0; k < i->n_operands; k++)
        parts[k] = value_of(p, i->operands[k].def);
    parts[i->n_operands] = plan_call(p, out, i, c);
    return started_value(p, i, i->n_operands + 1, parts);
}

Value *plan_started(Plan *p, const Inst *i)
{
    Value *x = value_of(p, i->operands[0].def), *both[] = { x, x };
    return started_value(p, i, 2, both);
}
