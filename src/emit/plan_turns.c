/* Loops that count, of a device: what would be copied to the state at the end of each iteration takes turns with it instead.
 *
 *     for (trip ...) {                       at[2] = { s, n }
 *         n = f(s)                           for (trip ...)
 *         s <- n                =>               at[(trip + 1) % 2] = f(at[trip % 2])
 *     }                                      s <- n, after an odd number of trips
 *
 * Both are then needed from the loop's first step to its last one. What lies in n besides is of one iteration, and ends before the copy. */
#include "emit/plan.h"

/* All of s is needed within the iteration alone, up to the copy. */
static bool is_of_iteration(const Slot *s, const PlanStep *loop, const PlanStep *copy)
{
    for (const Range *r = s->ranges; r; r = r->next)
        if (r->from < 2 * loop->begin[0] || r->to > 2 * copy->tick + 1)
            return false;
    return s->ranges != NULL;
}

static bool is_free(const Slot *s, const Range *during)
{
    Range first;
    return !s || !ranges_overlap(s->ranges, during, &first);
}

static bool may_turn(const PlanStep *loop, const PlanStep *copy, const Range *during)
{
    const Slot *n = copy->slots[0], *s = copy->slots[1];
    return n->buffer.kind == BUFFER_SCRATCH && (s->buffer.kind == BUFFER_SCRATCH || s->buffer.kind == BUFFER_RESULT) && n != s && !n->turns && !s->turns &&
           n->buffer.bytes == s->buffer.bytes && n->buffer.bytes > 0 && is_of_iteration(n, loop, copy) && is_free(s->buffer.kind == BUFFER_RESULT ? s->donee : NULL, during);
}

static void extend(Plan *p, Slot *s, const Range *during)
{
    s->turns = true;
    s->ranges = ranges_union(s->ranges, arena_copy(p->work, during, sizeof *during));
}

/* The copy of the last value, behind step number `at` of list. */
static void copy_last(Plan *p, StepList *list, int32_t at, const PlanStep *copy)
{
    PlanStep *s = step_copy(p, list, copy->slots[1], copy->slots[0], copy->step.inst);
    s->step.callers = list->v[at]->step.callers;
    s->tick = list->v[at]->last;
    s->depth = list->v[at]->depth;
    for (int32_t k = list->n - 1; k > at + 1; k--)
        list->v[k] = list->v[k - 1];
    list->v[at + 1] = s;
}

static void turn_loop(Plan *p, StepList *list, int32_t at)
{
    PlanStep   *loop = list->v[at];
    StepList   *body = &loop->blocks[0];
    const Range during = { 2 * loop->tick, 2 * loop->last + 2, NULL };
    int32_t     k = body->n;
    for (; k > 0 && body->v[k - 1]->step.kind == STEP_COPY; k--) {
        PlanStep *copy = body->v[k - 1];
        copy->slots[0] = slot_root(copy->slots[0]);
        copy->slots[1] = slot_root(copy->slots[1]);
        if (copy->dropped || !may_turn(loop, copy, &during))
            continue;
        extend(p, copy->slots[0], &during);
        extend(p, copy->slots[1], &during);
        copy->dropped = true;
        vec_push(p->work, &loop->turned, copy);
        if (loop->step.trips % 2 != 0)
            copy_last(p, list, at, copy);
    }
}

void plan_turns(Plan *p, StepList *list)
{
    for (int32_t k = 0; k < list->n; k++) {
        PlanStep *s = list->v[k];
        if (s->dropped)
            continue;
        for (int32_t b = 0; b < s->step.n_blocks; b++)
            plan_turns(p, &s->blocks[b]);
        plan_turns(p, &s->condition);
        if (s->step.kind == STEP_WHILE && s->step.trips > 1)
            turn_loop(p, list, k);
    }
}
