/* Editing the state of a loop. Every function leaves a module that computes the same. */
#include "config.h"

#include "passes/while.h"

#include <string.h>

#include "passes/util.h"

enum { MIN_ROOM = 50000, FEW = 1024 /* elements of a constant that may be said twice */ };

Loops loops_of(Module *m, Arena *scratch)
{
    int64_t total = 0;
    for (Comp *c = m->first; c; c = c->next) {
        c->mark = c == m->entry;
        total += c->n_insts;
    }
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first; i; i = i->next)
            for (int32_t k = 0; k < i->n_callees; k++)
                i->callees[k]->mark++;
    return (Loops){scratch, total < MIN_ROOM ? MIN_ROOM : total};
}

/* ---- which loops ---- */

static bool same_shape(const Inst *w, const Inst *i)
{
    return shape_equal(w->shape, i->shape) && !inst_attr(i, ATTR_SHARDING);
}

static int64_t growth(const Inst *w)
{
    int64_t n = 0;
    for (int32_t k = 0; k < w->n_callees; k++)
        n += w->callees[k]->mark > 1 ? w->callees[k]->n_insts : 0;
    return n;
}

bool while_could_be_edited(const Loops *l, const Inst *w)
{
    if (!shape_is_tuple(w->shape) || shape_is_dynamic(w->shape) || shape_has_buffer(w->shape) || inst_attr(w, ATTR_SHARDING))
        return false;
    return same_shape(w, inst_operand(w, 0)) && same_shape(w, comp_param(while_body(w), 0)) &&
           same_shape(w, comp_param(while_condition(w), 0)) && same_shape(w, while_body(w)->root) && growth(w) <= l->room;
}

static void own(Inst *w, int32_t k)
{
    Comp *c = w->callees[k];
    if (c->mark == 1)
        return;
    Comp *callees[2] = {w->callees[0], w->callees[1]};
    callees[k] = comp_clone(c, c->name);
    callees[k]->mark = 1;
    c->mark--;
    for (const Inst *i = callees[k]->first; i; i = i->next)
        for (int32_t j = 0; j < i->n_callees; j++)
            i->callees[j]->mark++;
    inst_set_callees(w, 2, callees);
}

bool while_editable(Loops *l, Inst *w)
{
    if (!while_could_be_edited(l, w))
        return false;
    l->room -= growth(w);
    own(w, 0);
    own(w, 1);
    return true;
}

/* ---- elements ---- */

Inst *tuple_element_known(const Inst *t, int64_t k)
{
    return t->op == OP_TUPLE ? inst_operand(t, (int32_t)k) : NULL;
}

static Inst *new_element(Inst *t, int64_t k, Inst *before)
{
    Inst *e = inst_new(t->comp, before, OP_GET_TUPLE_ELEMENT, t->shape->elems[k], 1, &t, NULL);
    inst_set_int(e, ATTR_INDEX, k);
    e->meta = t->meta;
    e->loc = t->loc;
    return e;
}

static bool is_element(const Inst *i, int64_t k)
{
    return i->op == OP_GET_TUPLE_ELEMENT && inst_int(i, ATTR_INDEX, 0) == k;
}

Inst *tuple_element(Inst *t, int64_t k)
{
    return t->op == OP_TUPLE ? inst_operand(t, (int32_t)k) : new_element(t, k, t->next);
}

static Inst *new_tuple(Comp *c, Inst *before, const Shape *shape, Inst *const *elems, const Inst *like)
{
    Inst *t = inst_new(c, before, OP_TUPLE, shape, shape->n_elems, elems, NULL);
    t->meta = like->meta;
    t->loc = like->loc;
    return t;
}

static bool is_read_whole(const Inst *t)
{
    bool whole = t->comp->root == t;
    for (const Use *u = t->uses; u && !whole; u = u->next)
        whole = u->user->op != OP_GET_TUPLE_ELEMENT;
    return whole;
}

bool tuple_spell_out(Inst *t)
{
    if (!is_read_whole(t))
        return false;
    Inst  *at = t->next;
    Inst **elems = mem_alloc(t->shape->n_elems, sizeof *elems);
    Use   *uses = t->uses; /* of new elements come before these */
    for (int32_t k = 0; k < t->shape->n_elems; k++)
        elems[k] = new_element(t, k, at);
    Inst *whole = new_tuple(t->comp, at, t->shape, elems, t);
    mem_free(elems);
    for (Use *u = uses, *next; u; u = next) {
        next = u->next;
        if (u->user->op != OP_GET_TUPLE_ELEMENT)
            inst_set_operand(u->user, u->index, whole);
    }
    if (t->comp->root == t)
        t->comp->root = whole;
    return true;
}

/* ---- what a trip does ---- */

Inst *while_init(const Inst *w, int64_t k)
{
    return tuple_element_known(inst_operand(w, 0), k);
}

Inst *while_next(const Inst *w, int64_t k)
{
    return tuple_element_known(while_body(w)->root, k);
}

bool while_keeps(const Inst *w, int64_t k)
{
    const Inst *root = while_body(w)->root, *next = tuple_element_known(root, k);
    if (!next)
        return root->op == OP_PARAMETER;
    return is_element(next, k) && inst_operand(next, 0)->op == OP_PARAMETER;
}

static bool hands_on(const Use *u, int64_t k)
{
    return u->user == u->user->comp->root && u->user->op == OP_TUPLE && u->index == k;
}

void state_find_read(const Comp *c, bool *read)
{
    const Inst *p = comp_param(c, 0);
    for (const Use *u = p->uses; u; u = u->next) {
        const Inst *e = u->user;
        int64_t     k = inst_int(e, ATTR_INDEX, 0);
        for (int32_t j = 0; e->op != OP_GET_TUPLE_ELEMENT && j < p->shape->n_elems; j++)
            read[j] = true;
        for (const Use *v = e->uses; v && !read[k]; v = v->next)
            read[k] = !hands_on(v, k);
        read[k] |= c->root == e;
    }
}

bool state_read_instead(Comp *c, Inst *const *instead)
{
    bool any = false;
    for (Use *u = comp_param(c, 0)->uses; u; u = u->next) {
        Inst   *e = u->user;
        int64_t k = e->op == OP_GET_TUPLE_ELEMENT ? inst_int(e, ATTR_INDEX, 0) : -1;
        if (k < 0 || !instead[k] || instead[k] == e)
            continue;
        for (Use *v = e->uses, *next; v; v = next) {
            next = v->next;
            if (hands_on(v, k))
                continue;
            inst_set_operand(v->user, v->index, instead[k]);
            any = true;
        }
        if (c->root == e) {
            c->root = instead[k];
            any = true;
        }
    }
    return any;
}

/* ---- constants ---- */

static bool sinks(const Inst *i, bool scalars)
{
    if (!i || i->op == OP_BROADCAST)
        return i && !scalars && sinks(inst_operand(i, 0), true);
    if (i->op != OP_CONSTANT || !shape_is_array(i->shape) || i->literal->elided)
        return false;
    return scalars ? shape_is_scalar(i->shape) : i->n_uses == 1 || i->literal->count <= FEW;
}

/* A copy of a constant, or of a broadcast one, at the beginning of c. */
static Inst *copy_constant(Comp *c, const Inst *i)
{
    Inst *operand = i->op == OP_BROADCAST ? copy_constant(c, inst_operand(i, 0)) : NULL;
    return inst_clone_into(c, operand ? operand->next : c->first, i, operand ? 1 : 0, &operand);
}

/* Elements of c that a copy of a constant is to be read for. */
static bool find_sinks(const Inst *w, const Comp *c, bool *sink, bool scalars)
{
    bool any = false;
    state_find_read(c, sink);
    for (int32_t k = 0; k < w->shape->n_elems; k++) {
        const Inst *init = while_init(w, k);
        sink[k] = sink[k] && sinks(init, scalars) && shape_equal(init->shape, w->shape->elems[k]) && while_keeps(w, k);
        any |= sink[k];
    }
    return any;
}

bool while_sink_constants(Loops *l, Inst *w, bool scalars)
{
    if (!while_could_be_edited(l, w))
        return false;
    int32_t n = w->shape->n_elems;
    bool   *sink[2], any = false, did = false;
    for (int32_t c = 0; c < 2; c++) {
        sink[c] = ARENA_ARRAY(l->scratch, bool, n);
        any |= find_sinks(w, w->callees[c], sink[c], scalars);
    }
    if (!any || !while_editable(l, w))
        return false;
    for (int32_t c = 0; c < 2; c++) {
        Inst **instead = ARENA_ARRAY(l->scratch, Inst *, n);
        for (int32_t k = 0; k < n; k++)
            instead[k] = sink[c][k] ? copy_constant(w->callees[c], while_init(w, k)) : NULL;
        did |= state_read_instead(w->callees[c], instead);
    }
    return did;
}

/* ---- another state ---- */

/* backend_config may name elements by number: all of it is about the loop's count, which can be counted again. */
static void forget_numbers(Inst *w)
{
    const char *config = inst_string(w, ATTR_BACKEND_CONFIG);
    if (config && strstr(config, "\"tuple_index\""))
        inst_drop_attr(w, ATTR_BACKEND_CONFIG);
    inst_drop_attr(w, ATTR_ORIGIN);
}

/* Element k of t becomes element to[k]. */
static void renumber(Inst *t, const Shape *shape, const int32_t *to)
{
    t->shape = shape;
    inst_drop_attr(t, ATTR_ORIGIN);
    for (Use *u = t->uses; u; u = u->next) {
        int32_t now = to[inst_int(u->user, ATTR_INDEX, 0)];
        if (now < 0)
            die("%s reads an element of %s that has been taken away", u->user->name, t->name);
        inst_set_int(u->user, ATTR_INDEX, now);
    }
}

/* Elements of t that are read by nobody. */
static void sweep_elements(Inst *t, Arena *scratch)
{
    for (Use *u = t->uses, *next; u; u = next) {
        next = u->next;
        if (u->user->op == OP_GET_TUPLE_ELEMENT && !u->user->n_uses)
            inst_delete_dead(u->user, scratch);
    }
}

static const Shape *kept_shape(Arena *a, const Shape *s, const bool *keep, int32_t *to)
{
    const Shape **elems = ARENA_ARRAY(a, const Shape *, s->n_elems);
    int32_t       n = 0;
    for (int32_t k = 0; k < s->n_elems; k++) {
        to[k] = keep[k] ? n : -1;
        if (keep[k])
            elems[n++] = s->elems[k];
    }
    return shape_tuple(a, n, elems);
}

/* A tuple of the elements of t that are kept. */
static Inst *kept_tuple(Inst *t, Inst *before, const Shape *shape, const bool *keep, Arena *scratch)
{
    Inst  **elems = ARENA_ARRAY(scratch, Inst *, t->shape->n_elems);
    int32_t n = 0;
    for (int32_t k = 0; k < t->shape->n_elems; k++)
        if (keep[k])
            elems[n++] = t->op == OP_TUPLE ? inst_operand(t, k) : new_element(t, k, before);
    return new_tuple(t->comp, before, shape, elems, t);
}

/* After a new root: the old one, and what only it needed. */
static void set_root(Comp *c, Inst *root, Arena *scratch)
{
    Inst *old = c->root;
    c->root = root;
    if (!old->n_uses)
        inst_delete_dead(old, scratch);
}

void while_keep(Loops *l, Inst *w, const bool *keep)
{
    Comp    *body = while_body(w), *condition = while_condition(w);
    Inst    *init = inst_operand(w, 0);
    int32_t *to = ARENA_ARRAY(l->scratch, int32_t, w->shape->n_elems);
    const Shape *shape = kept_shape(w->comp->module->arena, w->shape, keep, to);
    inst_set_operand(w, 0, kept_tuple(init, w, shape, keep, l->scratch));
    if (!init->n_uses)
        inst_delete_dead(init, l->scratch);
    set_root(body, kept_tuple(body->root, NULL, shape, keep, l->scratch), l->scratch);
    comp_sweep_dead(body, INT64_MAX);
    comp_sweep_dead(condition, INT64_MAX);
    Inst *tuples[] = {comp_param(body, 0), comp_param(condition, 0), w};
    for (int k = 0; k < 3; k++) {
        tuple_spell_out(tuples[k]);
        sweep_elements(tuples[k], l->scratch);
        renumber(tuples[k], shape, to);
    }
    forget_numbers(w);
}

int32_t while_append(Loops *l, Inst *w, int32_t n, Inst *const *init)
{
    Arena        *a = w->comp->module->arena;
    Comp         *body = while_body(w), *condition = while_condition(w);
    int32_t       before = w->shape->n_elems, all = before + n;
    const Shape **shapes = ARENA_ARRAY(a, const Shape *, all);
    Inst        **elems = ARENA_ARRAY(l->scratch, Inst *, all);
    Inst         *tuples[] = {w, comp_param(body, 0), comp_param(condition, 0)};
    inst_move_before(tuples[1], body->first); /* those who will read new elements need not stand after it */
    for (int32_t k = 0; k < all; k++) {
        shapes[k] = k < before ? w->shape->elems[k] : init[k - before]->shape;
        elems[k] = k < before ? inst_operand(w, 0)->op == OP_TUPLE ? inst_operand(inst_operand(w, 0), k)
                                                                  : new_element(inst_operand(w, 0), k, w)
                              : init[k - before];
    }
    const Shape *shape = shape_tuple(a, all, shapes);
    Inst        *old = inst_operand(w, 0);
    inst_set_operand(w, 0, new_tuple(w->comp, w, shape, elems, old));
    if (!old->n_uses)
        inst_delete_dead(old, l->scratch);
    for (int k = 0; k < 3; k++) {
        tuple_spell_out(tuples[k]);
        tuples[k]->shape = shape;
        inst_drop_attr(tuples[k], ATTR_ORIGIN);
    }
    for (int32_t k = 0; k < all; k++)
        elems[k] = k < before && body->root->op == OP_TUPLE ? inst_operand(body->root, k)
                   : k < before                             ? new_element(body->root, k, NULL)
                                                            : new_element(tuples[1], k, tuples[1]->next);
    set_root(body, new_tuple(body, NULL, shape, elems, body->root), l->scratch);
    inst_drop_attr(w, ATTR_ORIGIN);
    return before;
}
