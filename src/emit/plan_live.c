/* Where slots are live, from the end to the beginning, once over the tree of steps.
 *
 * A slot is written before it is read on every path (it holds an instruction's value, or a loop's state, which is filled before the
 * loop). So what flows around a loop is what is live behind it and what its steps read that was first written before it. */
#include "emit/plan.h"

typedef struct Live {
    Plan   *p;
    Slot  **v; /* the slots live at the moment */
    int32_t n;
} Live;

/* ---- ranges ---- */

bool ranges_overlap(const Range *x, const Range *y, Range *first)
{
    while (x && y) {
        int32_t from = x->from > y->from ? x->from : y->from, to = x->to < y->to ? x->to : y->to;
        if (from < to) {
            *first = (Range){ from, to, NULL };
            return true;
        }
        if (x->to < y->to)
            x = x->next;
        else
            y = y->next;
    }
    return false;
}

Range *ranges_union(Range *x, Range *y)
{
    Range *head = NULL, **end = &head, *last = NULL;
    while (x || y) {
        Range **least = !y || (x && x->from <= y->from) ? &x : &y, *r = *least;
        *least = r->next;
        if (last && r->from <= last->to) {
            if (r->to > last->to)
                last->to = r->to;
            continue;
        }
        *end = last = r;
        end = &r->next;
    }
    *end = NULL;
    return head;
}

/* Ranges come from the end to the beginning, so each goes to the front. */
static void add_range(Live *l, Slot *s, int32_t from, int32_t to)
{
    if (s->ranges && to >= s->ranges->from) {
        s->ranges->from = from;
        return;
    }
    Range *r = ARENA_NEW(l->p->work, Range);
    *r = (Range){ from, to, s->ranges };
    s->ranges = r;
}

/* ---- the set of live slots ---- */

static void open_slot(Live *l, Slot *s, int32_t to)
{
    if (s->live_at >= 0)
        return;
    s->live_at = l->n;
    s->live_to = to;
    l->v[l->n++] = s;
}

static void close_slot(Live *l, Slot *s, int32_t from)
{
    add_range(l, s, from, s->live_to);
    l->v[s->live_at] = l->v[--l->n];
    l->v[s->live_at]->live_at = s->live_at;
    s->live_at = -1;
}

static Slot **snapshot(Live *l)
{
    return arena_copy(l->p->work, l->v, (size_t)l->n * sizeof *l->v);
}

/* ---- steps ---- */

static void number(Plan *p, const StepList *list)
{
    for (int32_t k = 0; k < list->n; k++) {
        PlanStep *s = list->v[k];
        if (s->dropped)
            continue;
        for (int32_t b = 0; b < s->step.n_buffers; b++)
            if (s->slots[b])
                s->slots[b] = slot_root(s->slots[b]);
        s->tick = p->ticks++;
        if (s->step.kind != STEP_WHILE && s->step.kind != STEP_IF) {
            vec_push(p->work, &p->steps, s);
            for (int32_t b = s->step.n_operands; b < s->step.n_buffers; b++)
                if (s->slots[b] && s->slots[b]->first_def < 0)
                    s->slots[b]->first_def = s->tick;
            continue;
        }
        number(p, &s->condition);
        s->begin = ARENA_ARRAY(p->work, int32_t, s->step.n_blocks);
        for (int32_t b = 0; b < s->step.n_blocks; b++) {
            s->begin[b] = p->ticks++;
            number(p, &s->blocks[b]);
        }
        s->last = p->ticks++;
    }
}

/* Opens, to live on until `to`, the slots that list reads and that were first written before tick `before`. */
static void open_outer(Live *l, const StepList *list, int32_t before, int32_t to)
{
    for (int32_t k = 0; k < list->n; k++) {
        const PlanStep *s = list->v[k];
        if (s->dropped)
            continue;
        for (int32_t b = 0; b < s->step.n_operands; b++)
            if (s->slots[b] && s->slots[b]->first_def < before)
                open_slot(l, s->slots[b], to);
        open_outer(l, &s->condition, before, to);
        for (int32_t b = 0; b < s->step.n_blocks; b++)
            open_outer(l, &s->blocks[b], before, to);
    }
}



static void live_block(Live *l, const StepList *list);

/* Backwards: the body with what the next iteration or the steps behind the loop want, the test, from where both the body and the
 * steps behind are reached, the condition. */
static void live_while(Live *l, const PlanStep *s)
{
    int32_t test = s->begin[0], behind_n = l->n;
    Slot  **behind = snapshot(l);
    const bool tests = s->step.n_operands > 0;
    if (tests && s->slots[0]->first_def < s->tick) /* a test that is the same every time */
        open_slot(l, s->slots[0], 2 * s->last + 1);
    open_outer(l, &s->condition, s->tick, 2 * s->last + 1);
    open_outer(l, &s->blocks[0], s->tick, 2 * s->last + 1);
    int32_t around_n = l->n;
    Slot  **around = snapshot(l);
    live_block(l, &s->blocks[0]);
    for (int32_t k = 0; k < behind_n; k++)
        open_slot(l, behind[k], 2 * test + 2);
    if (tests)
        open_slot(l, s->slots[0], 2 * test + 1);
    live_block(l, &s->condition);
    for (int32_t k = 0; k < around_n; k++)
        open_slot(l, around[k], 2 * s->tick + 2);
}

/* Each branch with what the steps behind want. In the list the branches follow each other; a slot that a branch does not need has a
 * hole there. */
static void live_if(Live *l, const PlanStep *s)
{
    int32_t n = l->n;
    Slot  **behind = snapshot(l);
    VEC(Slot *) before = { 0 };
    for (int32_t b = s->step.n_blocks - 1; b >= 0; b--) {
        for (int32_t k = 0; k < n; k++)
            open_slot(l, behind[k], b + 1 < s->step.n_blocks ? 2 * s->begin[b + 1] : 0);
        live_block(l, &s->blocks[b]);
        while (l->n > 0) {
            vec_push(l->p->work, &before, l->v[l->n - 1]);
            close_slot(l, l->v[l->n - 1], 2 * s->begin[b]);
        }
    }
    for (int32_t k = 0; k < before.n; k++)
        open_slot(l, before.v[k], 2 * s->begin[0]);
    open_slot(l, s->slots[0], 2 * s->tick + 1);
}

static void live_block(Live *l, const StepList *list)
{
    for (int32_t k = list->n - 1; k >= 0; k--) {
        PlanStep *s = list->v[k];
        if (s->dropped)
            continue;
        if (s->step.kind == STEP_WHILE) {
            live_while(l, s);
            continue;
        }
        if (s->step.kind == STEP_IF) {
            live_if(l, s);
            continue;
        }
        for (int32_t b = s->step.n_operands; b < s->step.n_buffers; b++)
            if (s->slots[b]) {
                open_slot(l, s->slots[b], 2 * s->tick + 2); /* a result that nobody reads still takes room */
                close_slot(l, s->slots[b], 2 * s->tick);
            }
        for (int32_t b = 0; b < s->step.n_operands; b++)
            if (s->slots[b])
                open_slot(l, s->slots[b], 2 * s->tick + 1);
    }
}

void plan_liveness(Plan *p, const StepList *body)
{
    p->ticks = 1;
    number(p, body);
    Live l = { p, ARENA_ARRAY(p->work, Slot *, p->slots.n), 0 };
    for (int32_t k = 0; k < p->slots.n; k++)
        if (p->slots.v[k]->buffer.kind == BUFFER_RESULT)
            open_slot(&l, p->slots.v[k], 2 * p->ticks);
    live_block(&l, body);
    while (l.n > 0)
        close_slot(&l, l.v[l.n - 1], 0);
}
