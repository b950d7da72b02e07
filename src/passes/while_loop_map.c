/* while-loop-map - a loop whose trips make a row each, of what they slice, makes all rows at once.
 *
 *   %w = while(tuple(0, xs [t,m], ys [t,m])):  ys = dynamic-update-slice(ys, f(slice %i of xs), %i)
 *         =>
 *   f(xs) [t,m]
 *
 * Each trip writes the row of its number, or each from the last one on, and reads no row but that one, so that no trip waits for another. f is elementwise, moves elements
 * of a row, or sums them up: that becomes few kernels, where nothing is stored but what the loop stored. */
#include "config.h"

#include "analysis/cost.h"
#include "analysis/loops.h"
#include "passes/pass.h"
#include "passes/util.h"
#include "passes/while.h"

enum { LEAST_TRIPS = 2, MOST_BYTES = 64 << 20 };

/* What a value of the body is: another thing in each trip, or the same in all. */
typedef enum Kind { UNKNOWN, SAME, EACH } Kind;
typedef enum Place { NOWHERE, FORWARD, BACKWARD } Place;

typedef struct Loop {
    Flow   *f;
    Inst   *w;
    int64_t trips, counter;
    Place   place; /* which row a trip is about: the one of its number, or that many from the last one */
} Loop;

/* ---- which values ---- */

static bool is_plain_array(const Shape *s)
{
    return shape_is_array(s) && !s->layout && !shape_is_dynamic(s);
}

/* The element of the state that i is, or -1. */
static int64_t state_of(const Inst *i)
{
    return i->op == OP_GET_TUPLE_ELEMENT && inst_operand(i, 0)->op == OP_PARAMETER ? inst_int(i, ATTR_INDEX, 0) : -1;
}

static bool is_number(const Inst *i, int64_t n)
{
    const Literal *value = type_is_int(i->shape->type) ? splat_value(i) : NULL;
    return value && literal_get_s64(value, 0) == n;
}

/* What an index says of the row, when the counter goes from 0 on: the counter, or last - counter, or one of these unless it is negative. */
static Place place_of(const Loop *l, const Inst *i)
{
    const Inst *test = i->op == OP_SELECT ? inst_operand(i, 0) : NULL;
    if (test && test->op == OP_COMPARE && inst_word(test, ATTR_DIRECTION) == CMP_LT && inst_operand(test, 0) == inst_operand(i, 2) && is_number(inst_operand(test, 1), 0))
        i = inst_operand(i, 2);
    if (i->op == OP_SUBTRACT && is_number(inst_operand(i, 0), l->trips - 1) && state_of(inst_operand(i, 1)) == l->counter)
        return BACKWARD;
    return state_of(i) == l->counter ? FORWARD : NOWHERE;
}

/* A slice of x, of `cut`, begins at start: the first dimension that is longer than one has single rows, as many as there are trips, of which this is the trip's own. */
static bool is_own_row(Loop *l, const Shape *x, const Shape *cut, const Inst *i, int32_t start)
{
    int32_t along = 0;
    while (along < x->rank && x->dims[along] == 1)
        along++;
    if (along == x->rank || x->dims[along] != l->trips || cut->dims[along] != 1)
        return false;
    for (int32_t d = along + 1; d < x->rank; d++)
        if (cut->dims[d] != x->dims[d])
            return false;
    const Place place = place_of(l, inst_operand(i, start + along));
    if (place == NOWHERE || (l->place != NOWHERE && l->place != place))
        return false;
    l->place = place;
    return true;
}

/* Elements that trips change: the body reads them where it takes its row. */
static bool is_changed(const Loop *l, const Inst *i)
{
    const int64_t k = state_of(i);
    return k >= 0 && k != l->counter && !while_keeps(l->w, k);
}

static Kind kind_of_row_function(const Loop *l, const Inst *i)
{
    if (cost_mul(shape_bytes(i->shape), l->trips) > MOST_BYTES)
        return UNKNOWN;
    switch (i->op) {
    case OP_BROADCAST: case OP_RESHAPE: case OP_TRANSPOSE:
        return EACH;
    case OP_REDUCE:
        return i->n_operands == 2 && inst_operand(i, 1)->mark == SAME ? EACH : UNKNOWN;
    default:
        return op_has(i->op, F_ELEMENTWISE) ? EACH : UNKNOWN;
    }
}

static Kind kind_of(Loop *l, const Inst *i)
{
    const int64_t k = state_of(i);
    if (!is_plain_array(i->shape) || (k < 0 && (!inst_is_free(i) || (i->op != OP_CONSTANT && !inst_is_value(i)))))
        return UNKNOWN;
    if (k >= 0) {
        const Inst *init = while_init(l->w, k);
        return k == l->counter ? EACH : while_keeps(l->w, k) && init && shape_equal(init->shape, i->shape) ? SAME : UNKNOWN;
    }
    bool same = true;
    for (int32_t o = 0; o < i->n_operands; o++)
        same &= inst_operand(i, o)->mark == SAME;
    if (same)
        return SAME;
    if (i->op == OP_DYNAMIC_SLICE) {
        const Inst *x = inst_operand(i, 0);
        return (x->mark == SAME || is_changed(l, x)) && is_own_row(l, x->shape, i->shape, i, 1) ? EACH : UNKNOWN;
    }
    for (int32_t o = 0; o < i->n_operands; o++)
        if (inst_operand(i, o)->mark == UNKNOWN)
            return UNKNOWN;
    return kind_of_row_function(l, i);
}

/* Element k of the state is an array of which each trip sets its own row. */
static bool is_filled(Loop *l, int64_t k)
{
    const Inst *next = while_next(l->w, k), *init = while_init(l->w, k);
    return init && next && next->op == OP_DYNAMIC_UPDATE_SLICE && inst_is_free(next) && next->n_uses == 1 && is_plain_array(next->shape) && is_plain_array(init->shape) &&
           state_of(inst_operand(next, 0)) == k && inst_operand(next, 1)->mark != UNKNOWN && is_own_row(l, next->shape, inst_operand(next, 1)->shape, next, 2);
}

static bool find(Loop *l, Flow *f, Inst *w)
{
    LoopCount count;
    *l = (Loop){.f = f, .w = w};
    if (w->n_control || w->n_control_succs || inst_has_effect(w) || !while_could_be_edited(f, w) || !while_counted(w, &count) || count.trips < LEAST_TRIPS ||
        count.init != 0 || count.step != 1 || w->shape->elems[count.index]->rank != 0)
        return false;
    l->trips = count.trips;
    l->counter = count.index;
    for (Inst *i = while_body(w)->first; i; i = i->next)
        i->mark = kind_of(l, i);
    int32_t filled = 0;
    for (int64_t k = 0; k < w->shape->n_elems; k++) {
        if (k == l->counter || while_keeps(w, k))
            continue;
        if (!is_filled(l, k))
            return false;
        filled++;
    }
    return filled > 0;
}

/* ---- all rows at once ---- */

static Ints one_more(Arena *a, Ints dims)
{
    Ints more = ints_make(a, dims.n);
    for (int32_t k = 0; k < dims.n; k++)
        *ints_at(more, k) = dims.v[k] + 1;
    return more;
}

/* [trips] before the dimensions of s. */
static const Shape *shape_of_all(const Loop *l, const Shape *s)
{
    Ints dims = ints_make(l->f->scratch, s->rank + 1);
    *ints_at(dims, 0) = l->trips;
    for (int32_t d = 0; d < s->rank; d++)
        *ints_at(dims, d + 1) = s->dims[d];
    return shape_array(l->w->comp->module->arena, s->type, dims.n, dims.v);
}

static Inst *reshaped(const Loop *l, Inst *x, const Shape *shape, const Inst *like)
{
    if (shape_equal(x->shape, shape))
        return x;
    Inst *i = inst_new(l->w->comp, l->w, OP_RESHAPE, shape, 1, &x, NULL);
    i->meta = like->meta;
    return i;
}

/* x, a value of the body, for all rows in the shape of i's: what is the same in all, and one element beside arrays, is repeated. */
static Inst *for_all(const Loop *l, const Inst *x, const Inst *i)
{
    const bool scalar = x->shape->rank == 0 && i->shape->rank > 0;
    if (x->mark == EACH && !scalar)
        return x->aux;
    const Shape *shape = shape_of_all(l, scalar ? i->shape : x->shape);
    Inst        *all = inst_new(l->w->comp, l->w, OP_BROADCAST, shape_with_type(l->w->comp->module->arena, shape, x->shape->type), 1, (Inst *[]){x->aux}, NULL);
    Ints         dims = ints_make(l->f->scratch, x->mark == EACH ? 1 : x->shape->rank);
    for (int32_t d = 0; d < dims.n; d++)
        *ints_at(dims, d) = x->mark == EACH ? 0 : d + 1;
    inst_set_ints(all, ATTR_DIMENSIONS, dims);
    all->meta = i->meta;
    return all;
}

static Inst *all_numbers(const Loop *l, const Inst *i)
{
    Inst *iota = inst_new(l->w->comp, l->w, OP_IOTA, shape_of_all(l, i->shape), 0, NULL, NULL);
    inst_set_int(iota, ATTR_IOTA_DIMENSION, 0);
    iota->meta = l->w->meta;
    if (l->place != BACKWARD)
        return iota;
    Inst *reverse = inst_new(l->w->comp, l->w, OP_REVERSE, iota->shape, 1, &iota, NULL);
    inst_set_ints(reverse, ATTR_DIMENSIONS, (Ints){(int64_t[]){0}, 1});
    reverse->meta = l->w->meta;
    return reverse;
}

static Inst *all_of(const Loop *l, const Inst *i)
{
    Arena        *a = l->f->scratch;
    const int64_t k = state_of(i);
    if (k >= 0)
        return k == l->counter ? all_numbers(l, i) : while_init(l->w, k);
    Inst **operands = ARENA_ARRAY(a, Inst *, i->n_operands + 1);
    if (i->op == OP_DYNAMIC_SLICE && i->mark == EACH) {
        Inst *x = inst_operand(i, 0);
        return reshaped(l, is_changed(l, x) ? while_init(l->w, state_of(x)) : x->aux, shape_of_all(l, i->shape), i);
    }
    for (int32_t o = 0; o < i->n_operands; o++)
        operands[o] = i->mark == EACH && op_has(i->op, F_ELEMENTWISE) ? for_all(l, inst_operand(i, o), i) : inst_operand(i, o)->aux;
    Inst *all = inst_clone_into(l->w->comp, l->w, i, i->n_operands, operands);
    if (i->mark == SAME)
        return all;
    inst_set_shape(all, shape_of_all(l, i->shape));
    inst_drop_attr(all, ATTR_INFERRED_DIMENSION);
    if (i->op == OP_REDUCE)
        inst_set_ints(all, ATTR_DIMENSIONS, one_more(a, inst_ints(i, ATTR_DIMENSIONS)));
    if (i->op == OP_BROADCAST || i->op == OP_TRANSPOSE) {
        Ints dims = inst_ints(i, ATTR_DIMENSIONS), more = ints_make(a, dims.n + 1);
        for (int32_t d = 0; d < dims.n; d++)
            *ints_at(more, d + 1) = dims.v[d] + 1;
        *ints_at(more, 0) = 0;
        inst_set_ints(all, ATTR_DIMENSIONS, more);
    }
    return all;
}

/* Those that rows are made of: bodies are in order, each after its operands. */
static void mark_needed(Map *needed, const Loop *l)
{
    for (int64_t k = 0; k < l->w->shape->n_elems; k++)
        if (k != l->counter && !while_keeps(l->w, k)) {
            Inst *row = inst_operand(while_next(l->w, k), 1);
            map_put(needed, row, row);
        }
    for (Inst *i = while_body(l->w)->last; i; i = i->prev) {
        if (!map_has(needed, i))
            continue;
        for (int32_t o = 0; o < (i->op == OP_DYNAMIC_SLICE && i->mark == EACH ? 1 : i->n_operands); o++)
            if (!is_changed(l, inst_operand(i, o)))
                map_put(needed, inst_operand(i, o), i);
    }
}

/* What element k is after the loop. */
static Inst *at_end(const Loop *l, int64_t k)
{
    if (k == l->counter) {
        Inst *end = inst_constant(l->w->comp, l->w, literal_from_s64(l->w->shape->elems[k]->type, l->trips), NULL);
        end->meta = l->w->meta;
        return end;
    }
    if (while_keeps(l->w, k))
        return tuple_element(inst_operand(l->w, 0), k);
    const Inst *next = while_next(l->w, k), *row = inst_operand(next, 1);
    return reshaped(l, for_all(l, row, row), next->shape, next);
}

static void make_all(const Loop *l)
{
    Map    needed = map_new(l->f->scratch);
    Inst **state = ARENA_ARRAY(l->f->scratch, Inst *, l->w->shape->n_elems);
    mark_needed(&needed, l);
    for (Inst *i = while_body(l->w)->first; i; i = i->next)
        i->aux = map_has(&needed, i) && i->op != OP_PARAMETER ? all_of(l, i) : NULL;
    for (int64_t k = 0; k < l->w->shape->n_elems; k++)
        state[k] = at_end(l, k);
    while_replace(l->f, l->w, state);
}

bool pass_while_loop_map(Module *m, PassCtx *cx)
{
    Map applied = comps_applied(m, cx->scratch);
    Flow f = flow_of(m, cx->scratch);
    Loop l;
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = map_has(&applied, c) ? NULL : comp_calling(c), *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            if (i->op != OP_WHILE || !find(&l, &f, i))
                continue;
            cx->did_at = i->name;
            pass_remark(cx, i, "%lld rows are made at once", (long long)l.trips);
            make_all(&l);
            cx->rewrites++;
        }
    if (cx->rewrites)
        module_remove_dead_comps(m);
    return cx->rewrites > 0;
}
