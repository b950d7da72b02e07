/* Slots that may be one. Two sets of slots merge when they are never live at once, but for single points at which one step reads the one and
 * writes the other and may do so in place: a copy (which then vanishes), or a kernel that kernel_may_alias allows it.
 *
 * Copies at the end of loop bodies come first, the deepest first: those run most. Then all other copies, then the in-place results that
 * only save memory. Arguments and constants are never written, so nothing merges with them; a result of the program is memory like
 * any other, except that it may be the memory of its donated argument, which must have been read by then. */
#include "emit/plan.h"

static bool is_fixed(const Slot *s)
{
    return s->buffer.kind != BUFFER_SCRATCH;
}

/* The steps stand in the order of their ticks. */
static const PlanStep *step_at(const Plan *p, int32_t tick)
{
    int32_t lo = 0, hi = p->steps.n;
    while (lo < hi) {
        int32_t mid = lo + (hi - lo) / 2;
        if (p->steps.v[mid]->tick < tick)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < p->steps.n && p->steps.v[lo]->tick == tick ? p->steps.v[lo] : NULL;
}

/* Whether s may write result r over operand o. */
static bool may_alias(const PlanStep *s, int32_t r, int32_t o)
{
    if (s->step.kind == STEP_EXCHANGE || s->step.kind == STEP_CHECK)
        return false;
    return s->step.kind == STEP_CALL ? library_may_alias(s->step.call, r, o) : kernel_may_alias(s->step.kernel, r, o);
}

/* Whether s may write each of its results that is in set a or b over each of its operands that is. */
static bool step_in_place(const PlanStep *s, const Slot *a, const Slot *b)
{
    if (s->step.kind == STEP_COPY)
        return true;
    for (int32_t r = s->step.n_operands; r < s->step.n_operands + s->n_results; r++) {
        const Slot *result = s->slots[r] ? slot_root(s->slots[r]) : NULL;
        if (!result || (result != a && result != b))
            continue;
        for (int32_t o = 0; o < s->step.n_operands; o++) {
            const Slot *operand = s->slots[o] ? slot_root(s->slots[o]) : NULL;
            if (operand && (operand == a || operand == b) && !may_alias(s, r - s->step.n_operands, o))
                return false;
        }
    }
    return true;
}

/* Whether the live ranges of sets a and b touch only where a step may work in place. */
static bool compatible(const Plan *p, const Slot *a, const Slot *b)
{
    const Range *x = a->ranges, *y = b->ranges;
    Range        at;
    while (ranges_overlap(x, y, &at)) {
        if (at.to != at.from + 1 || at.from % 2 != 0)
            return false;
        const PlanStep *s = step_at(p, at.from / 2);
        if (!s || !step_in_place(s, a, b))
            return false;
        while (x && x->to <= at.to)
            x = x->next;
        while (y && y->to <= at.to)
            y = y->next;
        /* One of the two ends at this point, so one of the two has moved on. */
    }
    return true;
}

static Slot *donor_of(const Slot *s)
{
    return s->buffer.kind == BUFFER_RESULT ? s->donee : NULL;
}

static void merge(Plan *p, Slot *a, Slot *b)
{
    Slot *from = is_fixed(a) ? b : a, *into = is_fixed(a) ? a : b;
    if (from == into)
        return;
    if (is_fixed(from) || into->buffer.kind == BUFFER_ARG || into->buffer.kind == BUFFER_CONST || into->buffer.kind == BUFFER_COUNT || from->buffer.bytes != into->buffer.bytes ||
        from->buffer.shape->type != into->buffer.shape->type || !compatible(p, from, into))
        return;
    if (donor_of(into) && !compatible(p, from, donor_of(into)))
        return;
    from->same = into;
    into->ranges = ranges_union(into->ranges, from->ranges);
}

static void merge_copies(Plan *p, int32_t depth)
{
    for (int32_t k = p->steps.n - 1; k >= 0; k--) {
        PlanStep *s = p->steps.v[k];
        if (s->step.kind == STEP_COPY && s->depth == depth)
            merge(p, slot_root(s->slots[0]), slot_root(s->slots[1]));
    }
}

static void merge_in_place(Plan *p, const PlanStep *s)
{
    for (int32_t r = s->step.n_operands; r < s->step.n_operands + s->n_results; r++)
        for (int32_t o = 0; o < s->step.n_operands; o++)
            if (s->slots[r] && s->slots[o] && may_alias(s, r - s->step.n_operands, o))
                merge(p, slot_root(s->slots[o]), slot_root(s->slots[r]));
}

void plan_share(Plan *p)
{
    int32_t deepest = 0;
    for (int32_t k = 0; k < p->steps.n; k++)
        if (p->steps.v[k]->depth > deepest)
            deepest = p->steps.v[k]->depth;
    for (int32_t depth = deepest; depth >= 0; depth--)
        merge_copies(p, depth);
    for (int32_t k = 0; k < p->steps.n; k++)
        if (p->steps.v[k]->step.kind != STEP_COPY)
            merge_in_place(p, p->steps.v[k]);
    for (int32_t k = 0; k < p->steps.n; k++) {
        PlanStep *s = p->steps.v[k];
        if (s->step.kind == STEP_COPY && slot_root(s->slots[0]) == slot_root(s->slots[1]))
            s->dropped = true;
    }
}
