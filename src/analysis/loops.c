/* An integer of a loop's state is followed through tuples, elements, copies and fusions to the form constant or state + constant. Types
 * do not change on the way, and sums are those of integers of any size: where the ends of a progression fit into the type, the sums that
 * wrap around in between do not matter. */
#include "analysis/loops.h"

#include <stdlib.h>
#include <string.h>

/* A computation that was entered, and by which instruction. */
typedef struct Frame {
    const Inst         *by; /* NULL: a condition or body, whose parameter is the state */
    const struct Frame *up;
} Frame;

typedef struct Linear {
    bool    known;
    int64_t state; /* which element of the state is added, -1: none */
    int64_t add;
} Linear;

enum { STEPS = 1000 }; /* from an integer to where it comes from; a sum takes both ways */

static const Linear unknown = {.state = -1};

static Linear follow(const Inst *i, const Frame *f, int *steps);

/* Element k of i: of a tuple, or i itself, which then has one element. */
static Linear follow_element(const Inst *i, int64_t k, const Frame *f, int *steps)
{
    if (!shape_is_tuple(i->shape))
        return follow(i, f, steps);
    if (--*steps < 0)
        return unknown;
    switch (i->op) {
    case OP_TUPLE: return follow(i->operands[k].def, f, steps);
    case OP_PARAMETER: return !f ? unknown : f->by ? follow_element(f->by->operands[i->param].def, k, f->up, steps) : (Linear){true, k, 0};
    case OP_FUSION: return follow_element(i->callees[0]->root, k, &(Frame){i, f}, steps);
    case OP_COPY: case OP_OPT_BARRIER: return follow_element(i->operands[0].def, k, f, steps);
    default: return unknown;
    }
}

static Linear sum(Linear a, Linear b, bool minus)
{
    Linear out = {true, a.state < 0 ? b.state : a.state, 0};
    bool   fits = minus ? !__builtin_sub_overflow(a.add, b.add, &out.add) : !__builtin_add_overflow(a.add, b.add, &out.add);
    return a.known && b.known && fits && (b.state < 0 || (a.state < 0 && !minus)) ? out : unknown;
}

static Linear follow(const Inst *i, const Frame *f, int *steps)
{
    if (--*steps < 0 || !shape_is_array(i->shape) || shape_count(i->shape) != 1 || !type_is_int(i->shape->type))
        return unknown;
    switch (i->op) {
    case OP_CONSTANT: return i->literal->elided ? unknown : (Linear){true, -1, literal_get_s64(i->literal, 0)};
    case OP_PARAMETER: return !f ? unknown : f->by ? follow(f->by->operands[i->param].def, f->up, steps) : (Linear){true, 0, 0};
    case OP_GET_TUPLE_ELEMENT: return follow_element(i->operands[0].def, inst_int(i, ATTR_INDEX, 0), f, steps);
    case OP_ADD: case OP_SUBTRACT:
        return sum(follow(i->operands[0].def, f, steps), follow(i->operands[1].def, f, steps), i->op == OP_SUBTRACT);
    case OP_FUSION: case OP_CALL: return follow(i->callees[0]->root, &(Frame){i, f}, steps);
    case OP_BITCAST: case OP_BROADCAST: case OP_COPY: case OP_RESHAPE:
        return i->operands[0].def->shape->type == i->shape->type ? follow(i->operands[0].def, f, steps) : unknown;
    default: return unknown;
    }
}

/* What element k of the state becomes in a trip. */
static Linear next_state(const Inst *w, int64_t k)
{
    static const Frame body = {0};
    int                steps = STEPS;
    return follow_element(while_body(w)->root, k, &body, &steps);
}

/* The k-th element of the state when the loop begins. */
static Linear first_state(const Inst *w, int64_t k)
{
    int steps = STEPS;
    return follow_element(w->operands[0].def, k, NULL, &steps);
}

/* A bound: itself, or what an element of the state that no trip changes has from the start. */
static Linear settled(const Inst *w, Linear x)
{
    if (!x.known || x.state < 0)
        return x;
    Linear next = next_state(w, x.state);
    if (!next.known || next.state != x.state || next.add != 0)
        return unknown;
    return sum(first_state(w, x.state), (Linear){true, -1, x.add}, false);
}

/* Trips of for (i = from; i DIRECTION to; i += step), -1 when it does not end by counting. */
static int64_t count_trips(Word direction, __int128 from, __int128 to, __int128 step)
{
    if (direction == CMP_LE)
        to++;
    else if (direction == CMP_GE)
        to--;
    if (direction == CMP_EQ)
        return from != to ? 0 : step != 0 ? 1 : -1;
    bool     up = direction == CMP_NE ? step > 0 : direction == CMP_LT || direction == CMP_LE;
    __int128 way = up ? to - from : from - to, stride = up ? step : -step;
    if (direction == CMP_NE && way != 0 && (way < 0 || stride == 0 || way % stride != 0))
        return -1; /* it ends when the integer has wrapped around, if at all */
    if (way <= 0)
        return 0;
    __int128 n = stride > 0 ? (way + stride - 1) / stride : -1;
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

/* Unsigned numbers of 64 bits from 2^63 on are read as negative, and do not fit. */
static bool fits(Type t, __int128 v)
{
    int bits = type_bits(t);
    return type_is_signed_int(t) ? v >= -((__int128)1 << (bits - 1)) && v < (__int128)1 << (bits - 1)
                             : v >= 0 && v < (__int128)1 << (bits < 63 ? bits : 63);
}

/* "known_trip_count":{"n":"12"} */
static int64_t written_count(const Inst *w)
{
    const char *config = inst_string(w, ATTR_BACKEND_CONFIG), *at = config ? strstr(config, "\"known_trip_count\"") : NULL;
    const char *n = at ? strstr(at, "\"n\"") : NULL;
    if (!n)
        return -1;
    n += strcspn(n + 3, "0123456789}") + 3;
    return *n >= '0' && *n <= '9' ? strtoll(n, NULL, 10) : -1;
}

/* The comparison that the condition ends in, and the computation that it stands in; negated: it is that it does not hold. NULL: it ends in something else. */
static const Inst *find_test(const Inst *w, Frame *entered, const Frame **f, bool *negated)
{
    static const Frame condition = {0};
    const Inst        *test = while_condition(w)->root;
    *f = &condition;
    if (test->op == OP_FUSION || test->op == OP_CALL) {
        *entered = (Frame){test, &condition};
        *f = entered;
        test = test->callees[0]->root;
    }
    for (*negated = false; test->op == OP_NOT; test = inst_operand(test, 0))
        *negated = !*negated;
    return test->op == OP_COMPARE && type_is_int(inst_operand(test, 0)->shape->type) ? test : NULL;
}

/* Of integers, one of which is not less than the other where that is not less than it. */
static Word opposite(Word direction)
{
    static const Word others[] = {[CMP_EQ] = CMP_NE, [CMP_NE] = CMP_EQ, [CMP_LT] = CMP_GE, [CMP_LE] = CMP_GT, [CMP_GT] = CMP_LE, [CMP_GE] = CMP_LT};
    return others[direction];
}

static void exchange(Linear *a, Linear *b, Word *direction)
{
    static const Word mirrored[] = {[CMP_EQ] = CMP_EQ, [CMP_NE] = CMP_NE, [CMP_LT] = CMP_GT, [CMP_LE] = CMP_GE, [CMP_GT] = CMP_LT, [CMP_GE] = CMP_LE};
    Linear            other = *a;
    *a = *b;
    *b = other;
    *direction = mirrored[*direction];
}

bool while_counted(const Inst *w, LoopCount *out)
{
    Frame        entered;
    const Frame *f;
    int          steps = STEPS;
    bool         negated;
    const Inst  *test = find_test(w, &entered, &f, &negated);
    if (!test)
        return false;
    Type   t = inst_operand(test, 0)->shape->type;
    Word   direction = negated ? opposite(inst_word(test, ATTR_DIRECTION)) : inst_word(test, ATTR_DIRECTION);
    Linear i = follow(inst_operand(test, 0), f, &steps), bound = follow(inst_operand(test, 1), f, &steps);
    if (i.state < 0 || !settled(w, bound).known) /* the other way round: bound > i */
        exchange(&i, &bound, &direction);
    bound = settled(w, bound);
    if (i.state < 0 || !bound.known || !fits(t, bound.add))
        return false;
    Linear start = first_state(w, i.state), next = next_state(w, i.state);
    if (!start.known || !next.known || next.state != i.state)
        return false;
    __int128 first = (__int128)start.add + i.add;
    int64_t  trips = count_trips(direction, first, bound.add, next.add);
    __int128 way = (__int128)(trips < 0 ? 0 : trips) * next.add;
    *out = (LoopCount){i.state, start.add, next.add, trips};
    return trips >= 0 && fits(t, start.add) && fits(t, start.add + way) && fits(t, first) && fits(t, first + way);
}

bool while_steps(const Inst *w, int64_t k, int64_t *init, int64_t *step)
{
    Linear first = first_state(w, k), next = next_state(w, k);
    *init = first.add;
    *step = next.add;
    return first.known && first.state < 0 && next.known && next.state == k;
}

int64_t while_trip_count(const Inst *w)
{
    int64_t   known = written_count(w);
    LoopCount count;
    if (known >= 0)
        return known;
    return while_counted(w, &count) ? count.trips : -1;
}

/* ---- counters ---- */

static void count_callers(Module *m, Map *callers)
{
    for (Comp *c = m->first; c; c = c->next)
        for (const Inst *i = comp_calling(c); i; i = i->next)
            for (int32_t k = 0; k < i->n_callees; k++)
                map_put(callers, i->callees[k], (void *)((intptr_t)map_get(callers, i->callees[k]) + 1));
}

void loops_note_counters(Module *m, Arena *a)
{
    Map callers = map_new(a);
    count_callers(m, &callers);
    for (Comp *c = m->first; c; c = c->next)
        for (const Inst *i = comp_calling(c); i; i = i->next) {
            LoopCount n;
            if (i->op != OP_WHILE || !shape_is_tuple(i->shape) || (intptr_t)map_get(&callers, while_body(i)) != 1 || !while_counted(i, &n) || n.trips < 1)
                continue;
            int64_t  last = n.init + n.step * (n.trips - 1);
            Counter *counter = ARENA_NEW(a, Counter);
            *counter = (Counter){n.index, n.init < last ? n.init : last, n.init < last ? last : n.init};
            while_body(i)->counter = counter;
        }
}

void loops_forget_counters(Module *m)
{
    for (Comp *c = m->first; c; c = c->next)
        c->counter = NULL;
}
