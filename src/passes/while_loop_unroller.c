/* while_loop_unroller - a loop of few trips becomes its body, once for each trip.
 *
 *   while (i < 3) (i, x) = (i + 1, f(i, x)), from (0, x)        =>        f(2, f(1, f(0, x)))
 *
 * trips=N (64), body=N (800 instructions) and total=N (10000 of all trips) bound one loop. With elementwise=true only bodies are taken
 * of which fusion makes one kernel or few: elementwise instructions, and those that only move. Left alone: loops with effects, control edges,
 * loops, branches or collectives in the body, and loops over arrays in what is applied to elements: code has a place for their state, none for each trip's. */
#include "config.h"

#include "analysis/loops.h"
#include "passes/pass.h"
#include "passes/util.h"
#include "passes/while.h"

enum { MAX_TRIPS = 64, MAX_BODY = 800, MAX_TOTAL = 10000 };

typedef struct Unroller {
    Flow    f;
    int64_t trips, body, total;
    bool    elementwise;
    Map     applied; /* computations that are applied to elements */
} Unroller;

static bool is_cheap(const Inst *i)
{
    switch (i->op) {
    case OP_PARAMETER: case OP_CONSTANT: case OP_IOTA: case OP_BROADCAST: case OP_TUPLE: case OP_GET_TUPLE_ELEMENT: case OP_RESHAPE:
    case OP_SLICE: case OP_CONCATENATE: case OP_DYNAMIC_SLICE:
        return true;
    default:
        return op_has(i->op, F_ELEMENTWISE);
    }
}

static bool may_repeat(const Unroller *u, const Inst *i)
{
    if (i->op == OP_WHILE || i->op == OP_CONDITIONAL || i->op == OP_CALL || i->n_control || shape_is_dynamic(i->shape))
        return false;
    if (u->elementwise && !is_cheap(i))
        return false;
    return i->op == OP_PARAMETER || inst_is_value(i);
}

static bool has_arrays(const Shape *state)
{
    for (int32_t k = 0; k < state->n_elems; k++)
        if (!shape_is_array(state->elems[k]) || shape_count(state->elems[k]) > 1)
            return true;
    return false;
}

/* How often w is to be repeated, or -1. */
static int64_t unrolled_trips(const Unroller *u, const Inst *w)
{
    const Comp *body = while_body(w);
    LoopCount   count;
    if (w->n_control || w->n_control_succs || inst_has_effect(w) || !shape_is_tuple(w->shape) || body->n_insts > u->body ||
        !while_could_be_edited(&u->f, w) || !while_counted(w, &count) || count.trips > u->trips)
        return -1;
    if (count.trips * body->n_insts > u->total || (map_has(&u->applied, w->comp) && has_arrays(w->shape)))
        return -1;
    for (const Inst *i = body->first; i; i = i->next)
        if (!may_repeat(u, i))
            return -1;
    return count.trips;
}

/* The copy of i in this trip, which begins with state. */
static Inst *copy(Unroller *u, const Inst *i, Inst *w, Inst *const *state)
{
    if (i->op == OP_PARAMETER)
        return NULL;
    if (i->op == OP_GET_TUPLE_ELEMENT && inst_operand(i, 0)->op == OP_PARAMETER)
        return state[inst_int(i, ATTR_INDEX, 0)];
    Inst **operands = ARENA_ARRAY(u->f.scratch, Inst *, i->n_operands);
    for (int32_t o = 0; o < i->n_operands; o++) {
        operands[o] = inst_operand(i, o)->aux;
        if (!operands[o]) /* the state as a whole */
            operands[o] = inst_new(w->comp, w, OP_TUPLE, w->shape, w->shape->n_elems, state, NULL);
    }
    return inst_clone_into(w->comp, w, i, i->n_operands, operands);
}

static void repeat(Unroller *u, Inst *w, int64_t trips)
{
    int32_t     n = w->shape->n_elems;
    Inst      **state = ARENA_ARRAY(u->f.scratch, Inst *, n), **next = ARENA_ARRAY(u->f.scratch, Inst *, n);
    const Comp *body = while_body(w);
    for (int32_t k = 0; k < n; k++)
        state[k] = tuple_element(inst_operand(w, 0), k);
    for (int64_t t = 0; t < trips; t++) {
        for (Inst *i = body->first; i; i = i->next)
            i->aux = copy(u, i, w, state);
        for (int32_t k = 0; k < n; k++)
            next[k] = body->root->op == OP_PARAMETER ? state[k] : tuple_element(body->root->aux, k);
        for (int32_t k = 0; k < n; k++)
            state[k] = next[k];
    }
    while_replace(&u->f, w, state);
}

bool pass_while_loop_unroller(Module *m, PassCtx *cx)
{
    Unroller u = {.trips = pass_arg_int(cx, "trips", MAX_TRIPS), .body = pass_arg_int(cx, "body", MAX_BODY), .total = pass_arg_int(cx, "total", MAX_TOTAL),
                  .elementwise = pass_arg_is(cx, "elementwise"), .applied = comps_applied(m, cx->scratch)};
    u.f = flow_of(m, cx->scratch);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c), *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            int64_t trips = i->op == OP_WHILE ? unrolled_trips(&u, i) : -1;
            if (trips < 0 || trips * while_body(i)->n_insts > u.f.room)
                continue;
            u.f.room -= trips * while_body(i)->n_insts;
            cx->did_at = i->name;
            pass_remark(cx, i, "%lld trips of %d instructions take the place of the loop", (long long)trips, while_body(i)->n_insts);
            repeat(&u, i, trips);
            cx->rewrites++;
        }
    if (cx->rewrites)
        module_remove_dead_comps(m);
    return cx->rewrites > 0;
}
