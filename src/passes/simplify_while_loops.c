/* simplify-while-loops - loops that do not loop, and state that need not be state.
 *
 *   while (i < n) (i, x, y, z) = (i + 1, x, f(x, y), z + y)          (%w = while(tuple(0, x, y, z)), and z is not read after it)
 *   ROOT %r = tuple(%w.x, %w.y)        =>        while (i < n) (i, x, y) = (i + 1, x, f(x, y))
 *                                                ROOT %r = tuple(x, %w.y)
 *
 *   - never entered: what it begins with; entered once: a call of its body
 *   - an element that no trip changes is, after the loop, what it was before it; in it, a constant where it is a scalar one
 *   - an element that each trip sets to what it began as is one that no trip changes
 *   - two elements that begin alike and are computed alike are one
 *   - an element that counts as the loop's counter does, by a multiple of its steps, is computed from that
 *   - the elements of an element that is a tuple are elements of the state
 *   - elements that only they themselves need are taken away
 *
 * Loops without effects only, but for the last: elements are taken away from any loop, which runs as often as before. */
#include "config.h"

#include <string.h>

#include "analysis/loops.h"
#include "ir/numeric.h"
#include "passes/pass.h"
#include "passes/util.h"
#include "passes/while.h"

enum { MAX_ALIKE = 64, MAX_CLASSES = 4 };

static bool is_tied(const Inst *w)
{
    return w->n_control || w->n_control_succs;
}

/* ---- trips ---- */

static bool replace_by_trips(Flow *f, Inst *w)
{
    LoopCount count;
    Inst     *init = inst_operand(w, 0), *result = init;
    Comp     *body = while_body(w);
    if (is_tied(w) || inst_has_effect(w) || inst_attr(w, ATTR_SHARDING) || !shape_equal(w->shape, init->shape))
        return false;
    if (!while_counted(w, &count) || count.trips > 1)
        return false;
    if (count.trips == 1) {
        if (!shape_equal(w->shape, body->root->shape) || !shape_equal(w->shape, comp_param(body, 0)->shape))
            return false;
        result = inst_new(w->comp, w, OP_CALL, w->shape, 1, &init, NULL);
        inst_set_callees(result, 1, &body);
    }
    inst_replace(w, result);
    inst_delete_dead(w, f->scratch);
    return true;
}

/* ---- elements that no trip changes ---- */

static bool read_init_outside(Inst *w)
{
    bool any = false;
    for (Use *u = w->uses; u; u = u->next) {
        Inst *e = u->user;
        if (e->op != OP_GET_TUPLE_ELEMENT || is_tied(e) || (!e->n_uses && e->comp->root != e))
            continue;
        int64_t k = inst_int(e, ATTR_INDEX, 0);
        Inst   *init = while_init(w, k);
        if (init && while_keeps(w, k) && shape_equal(init->shape, e->shape)) {
            inst_replace(e, init);
            any = true;
        }
    }
    return any;
}

/* Sets what a trip sets to what it began as to what it was before the trip; not what has no elements, of which algsimp makes constants. */
static bool keep_constants(Flow *f, Inst *w)
{
    bool any = false;
    for (int32_t k = 0; k < w->shape->n_elems; k++) {
        const Inst *init = while_init(w, k), *next = while_next(w, k);
        if (!init || !next || init->op != OP_CONSTANT || next->op != OP_CONSTANT || literal_has_elided(init->literal) ||
            literal_has_elided(next->literal) || !literal_equal(init->literal, next->literal) ||
            (shape_is_array(init->shape) && shape_count(init->shape) == 0))
            continue;
        if (!any && !while_editable(f, w))
            return false;
        any = true;
        inst_set_operand(while_body(w)->root, k, tuple_element(comp_param(while_body(w), 0), k));
    }
    return any;
}

static bool sink_scalars(Flow *f, Inst *w)
{
    return while_sink_constants(f, w, true);
}

/* ---- elements that are alike ---- */

typedef struct Alike {
    const Inst *param;
    int64_t     j, k; /* the elements that are taken to be the same */
    int         left; /* instructions to look at */
} Alike;

static bool is_state(const Alike *x, const Inst *i, int64_t k)
{
    return i->op == OP_GET_TUPLE_ELEMENT && inst_operand(i, 0) == x->param && inst_int(i, ATTR_INDEX, 0) == k;
}

static bool compute_alike(Alike *x, const Inst *a, const Inst *b)
{
    if (a == b || (is_state(x, a, x->j) && is_state(x, b, x->k)))
        return true;
    if (--x->left < 0 || a->op != b->op || !shape_equal(a->shape, b->shape) || !inst_is_value(a) || !inst_is_value(b))
        return false;
    if (a->n_operands != b->n_operands || a->n_callees != b->n_callees || !inst_attrs_equal(a, b))
        return false;
    if (a->op == OP_CONSTANT)
        return literal_equal(a->literal, b->literal);
    for (int32_t c = 0; c < a->n_callees; c++)
        if (a->callees[c] != b->callees[c])
            return false;
    for (int32_t o = 0; o < a->n_operands; o++)
        if (!compute_alike(x, inst_operand(a, o), inst_operand(b, o)))
            return false;
    return true;
}

static bool stay_alike(const Inst *w, int64_t j, int64_t k)
{
    if (!shape_equal(w->shape->elems[j], w->shape->elems[k]))
        return false;
    if (while_keeps(w, j) && while_keeps(w, k))
        return true;
    Alike       x = {comp_param(while_body(w), 0), j, k, MAX_ALIKE};
    const Inst *a = while_next(w, j), *b = while_next(w, k);
    return a && b && compute_alike(&x, a, b);
}

/* Elements that begin as one instruction, of which no two are alike. */
typedef struct Classes {
    int32_t first[MAX_CLASSES], n;
} Classes;

/* same[k]: an earlier element that is always the same as element k, or k. */
static bool find_alike(Flow *f, const Inst *w, int32_t *same)
{
    Map  classes = map_new(f->scratch);
    bool any = false;
    for (int32_t k = 0; k < w->shape->n_elems; k++) {
        same[k] = k;
        const Inst *init = while_init(w, k);
        Classes    *c = init ? map_get(&classes, init) : NULL;
        if (init && !c)
            map_put(&classes, init, c = ARENA_NEW(f->scratch, Classes));
        for (int32_t j = 0; c && same[k] == k && j < c->n; j++)
            if (stay_alike(w, c->first[j], k))
                same[k] = c->first[j];
        if (c && same[k] == k && c->n < MAX_CLASSES)
            c->first[c->n++] = k;
        any |= same[k] != k;
    }
    return any;
}

/* Those who read an element that is the same as an earlier one read that. */
static bool read_alike_outside(Flow *f, Inst *w, const int32_t *same)
{
    Inst **element = ARENA_ARRAY(f->scratch, Inst *, w->shape->n_elems);
    bool   any = false;
    for (Use *u = w->uses; u; u = u->next) {
        Inst   *e = u->user;
        int64_t k = e->op == OP_GET_TUPLE_ELEMENT && !is_tied(e) ? inst_int(e, ATTR_INDEX, 0) : -1;
        if (k < 0 || same[k] == k || (!e->n_uses && e->comp->root != e))
            continue;
        if (!element[same[k]])
            element[same[k]] = tuple_element(w, same[k]);
        inst_replace(e, element[same[k]]);
        any = true;
    }
    return any;
}

static bool merge_alike(Flow *f, Inst *w)
{
    int32_t *same = ARENA_ARRAY(f->scratch, int32_t, w->shape->n_elems);
    if (!while_could_be_edited(f, w) || !find_alike(f, w, same))
        return false;
    bool any = callees_shared(w) > 0; /* those are copied */
    if (!while_editable(f, w))
        return false;
    any |= tuple_spell_out(w);
    for (int32_t c = 0; c < 2; c++) {
        bool  *read = ARENA_ARRAY(f->scratch, bool, w->shape->n_elems);
        Inst **instead = ARENA_ARRAY(f->scratch, Inst *, w->shape->n_elems);
        state_find_elements_read(w->callees[c], read);
        for (int32_t k = 0; k < w->shape->n_elems; k++)
            instead[k] = read[k] && same[k] != k ? tuple_element(comp_param(w->callees[c], 0), same[k]) : NULL;
        any |= state_read_instead(w->callees[c], instead);
    }
    return read_alike_outside(f, w, same) || any;
}

/* ---- elements that count ---- */

/* An element that is times the counter, and add. */
typedef struct Follower {
    int64_t times, add;
} Follower;

static bool follows(const Inst *w, const LoopCount *n, int32_t k, Follower *out)
{
    int64_t init, step;
    if (k == n->index || n->step == 0 || !shape_is_scalar(w->shape->elems[k]) || !shape_equal(w->shape->elems[k], w->shape->elems[n->index]) ||
        !while_steps(w, k, &init, &step) || step == 0 || step == INT64_MIN || step % n->step)
        return false;
    out->times = step / n->step;
    uint64_t begin = (uint64_t)init - (uint64_t)n->init * (uint64_t)out->times;
    out->add = int_wrap(w->shape->elems[k]->type, (int64_t)begin);
    return true;
}

/* i op v, behind both, with the origin of i. */
static Inst *with_number(Inst *i, Op op, int64_t v)
{
    Type  type = i->shape->type;
    Inst *c = inst_constant(i->comp, i->next, literal_from_s64(type, int_wrap(type, v)), NULL);
    Inst *result = inst_new(i->comp, c->next, op, i->shape, 2, (Inst *[]){i, c}, NULL);
    c->meta = result->meta = i->meta;
    c->loc = result->loc = i->loc;
    return result;
}

/* The follower where the counter is element n of tuple t. */
static Inst *followed(Inst *t, int64_t n, const Follower *x)
{
    Inst *i = tuple_new_element(t, n, t->next);
    if (x->times != 1)
        i = with_number(i, OP_MULTIPLY, x->times);
    return x->add != 0 ? with_number(i, OP_ADD, x->add) : i;
}

/* Every reader of w wants one element, so that each can be given what it is. */
static bool is_read_by_elements(const Inst *w)
{
    bool good = w->comp->root != w;
    for (const Use *u = w->uses; u && good; u = u->next)
        good = u->user->op == OP_GET_TUPLE_ELEMENT && !is_tied(u->user);
    return good;
}

static void read_followed(Inst *w, int64_t n, int32_t k, const Follower *x)
{
    Inst **instead = mem_alloc(w->shape->n_elems, sizeof *instead);
    memset(instead, 0, (size_t)w->shape->n_elems * sizeof *instead);
    for (int32_t c = 0; c < 2; c++) {
        instead[k] = followed(comp_param(w->callees[c], 0), n, x);
        state_read_instead(w->callees[c], instead);
    }
    mem_free(instead);
    Inst *after = NULL;
    for (Use *u = w->uses, *next; u; u = next) {
        Inst *e = u->user;
        next = u->next;
        if (!is_element_of(e, k))
            continue;
        after = after ? after : followed(w, n, x);
        inst_replace(e, after);
        inst_delete(e);
    }
}

static bool follow_counter(Flow *f, Inst *w)
{
    LoopCount count;
    Follower  x;
    int32_t   k = 0;
    if (!while_could_be_edited(f, w) || !is_read_by_elements(w) || !while_counted(w, &count))
        return false;
    while (k < w->shape->n_elems && !follows(w, &count, k, &x))
        k++;
    if (k == w->shape->n_elems || !while_editable(f, w))
        return false;
    tuple_spell_out(comp_param(while_body(w), 0));
    tuple_spell_out(comp_param(while_condition(w), 0));
    read_followed(w, count.index, k, &x);
    return true;
}

/* ---- elements that are tuples ---- */

static bool is_read_outside(const Inst *w, int32_t k)
{
    bool read = false;
    for (const Use *u = w->uses; u; u = u->next)
        read |= u->user->op != OP_GET_TUPLE_ELEMENT || (inst_int(u->user, ATTR_INDEX, 0) == k && u->user->n_uses > 0);
    return read || w == w->comp->root;
}

/* The first tuple that somebody reads, -1: none. */
static int32_t find_tuple(Flow *f, const Inst *w)
{
    bool *read = ARENA_ARRAY(f->scratch, bool, w->shape->n_elems);
    state_find_read(while_body(w), read);
    state_find_read(while_condition(w), read);
    for (int32_t k = 0; k < w->shape->n_elems; k++)
        if (shape_is_tuple(w->shape->elems[k]) && (read[k] || is_read_outside(w, k)))
            return k;
    return -1;
}

static bool has_tied_element(const Inst *w, int32_t k)
{
    bool tied = false;
    for (const Use *u = w->uses; u; u = u->next)
        tied |= is_element_of(u->user, k) && is_tied(u->user);
    return tied;
}

/* Element k of t, made of those from first on. */
static Inst *joined(Flow *f, Inst *t, int32_t k, int32_t first)
{
    const Shape *s = t->shape->elems[k];
    Inst       **elems = ARENA_ARRAY(f->scratch, Inst *, s->n_elems), *before = t->next;
    for (int32_t j = 0; j < s->n_elems; j++)
        elems[j] = tuple_new_element(t, first + j, before);
    return tuple_new(t->comp, before, s, elems, t);
}

static void drop_unread(Flow *f, Inst *t)
{
    if (!t->n_uses && t != t->comp->root)
        inst_delete_dead(t, f->scratch);
}

static void read_joined(Flow *f, Inst *w, int32_t k, int32_t first)
{
    Inst **instead = ARENA_ARRAY(f->scratch, Inst *, w->shape->n_elems);
    for (int32_t c = 0; c < 2; c++) {
        instead[k] = joined(f, comp_param(w->callees[c], 0), k, first);
        state_read_instead(w->callees[c], instead);
        drop_unread(f, instead[k]);
    }
    Inst *after = joined(f, w, k, first);
    for (Use *u = w->uses, *next; u; u = next) {
        Inst *e = u->user;
        next = u->next;
        if (is_element_of(e, k)) {
            inst_replace(e, after);
            inst_delete(e);
        }
    }
    drop_unread(f, after);
}

static bool flatten(Flow *f, Inst *w)
{
    int32_t k = while_could_be_edited(f, w) ? find_tuple(f, w) : -1;
    if (k < 0 || has_tied_element(w, k) || !while_editable(f, w))
        return false;
    int32_t n = w->shape->elems[k]->n_elems;
    Inst  **elems = ARENA_ARRAY(f->scratch, Inst *, n), *init = tuple_element(inst_operand(w, 0), k);
    for (int32_t j = 0; j < n; j++)
        elems[j] = tuple_element(init, j);
    int32_t first = while_append(f, w, n, elems);
    Inst   *root = while_body(w)->root;
    for (int32_t j = 0; j < n && !while_keeps(w, k); j++)
        inst_set_operand(root, first + j, tuple_element(inst_operand(root, k), j));
    read_joined(f, w, k, first);
    return true;
}

/* ---- elements that nobody needs ---- */

/* Who reads w whole keeps all of its elements alive. Those that no trip changes and nobody reads in the loop need not be. */
static bool spell_out_kept(Flow *f, Inst *w)
{
    bool *read = ARENA_ARRAY(f->scratch, bool, w->shape->n_elems), any = false;
    state_find_read(while_body(w), read);
    state_find_read(while_condition(w), read);
    for (int32_t k = 0; k < w->shape->n_elems && !any; k++)
        any = !read[k] && while_keeps(w, k) && while_init(w, k);
    return any && tuple_spell_out(w) && read_init_outside(w);
}

static bool drop_unneeded(Flow *f, Inst *w)
{
    bool spelled = while_could_be_edited(f, w) && spell_out_kept(f, w);
    return while_drop_unneeded(f, w) || spelled;
}

/* ---- the pass ---- */

static bool read_init(Flow *f, Inst *w)
{
    (void)f;
    return read_init_outside(w);
}

static bool simplify_state(Flow *f, Inst *w)
{
    static bool (*const rules[])(Flow *, Inst *) = {keep_constants, read_init, sink_scalars, merge_alike, follow_counter, flatten, drop_unneeded};
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
        if (rules[r](f, w))
            return true;
    return false;
}

bool pass_simplify_while_loops(Module *m, PassCtx *cx)
{
    Flow f = flow_of(m, cx->scratch);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c), *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            if (i->op != OP_WHILE || (!i->n_uses && c->root != i)) /* dce takes all of it */
                continue;
            cx->did_at = i->name;
            if (replace_by_trips(&f, i)) {
                cx->rewrites++;
                continue;
            }
            while (cx->rewrites < cx->limit && shape_is_tuple(i->shape) && simplify_state(&f, i))
                cx->rewrites++;
        }
    if (cx->rewrites)
        module_remove_dead_comps(m);
    return cx->rewrites > 0;
}
