/* Tuples between callers and what they call. Every function leaves a module that computes the same. */
#include "config.h"

#include "passes/flow.h"

#include "passes/util.h"

enum { MIN_ROOM = 50000 };

/* ---- callers ---- */

Flow flow_of(Module *m, Arena *scratch)
{
    int64_t total = 0;
    for (Comp *c = m->first; c; c = c->next) {
        c->mark = c == m->entry;
        total += c->n_insts;
    }
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c); i; i = i->next)
            for (int32_t k = 0; k < i->n_callees; k++)
                i->callees[k]->mark++;
    return (Flow){.scratch = scratch, .room = total < MIN_ROOM ? MIN_ROOM : total};
}

bool callee_is_later_slot(const Inst *i, int32_t k)
{
    for (int32_t j = 0; j < k; j++)
        if (i->callees[j] == i->callees[k])
            return true;
    return false;
}

/* How many callees of i, from k on, are callee k. */
static int64_t slots_of(const Inst *i, int32_t k)
{
    int64_t n = 0;
    for (int32_t j = k; j < i->n_callees; j++)
        n += i->callees[j] == i->callees[k];
    return n;
}

/* A copy for so many of the slots of i that have callee k, from k on. */
static void own(Inst *i, int32_t k, int64_t slots)
{
    Comp *c = i->callees[k];
    if (c->mark == slots)
        return;
    Comp **callees = mem_alloc(i->n_callees, sizeof(Comp *));
    Comp  *copy = comp_clone(c, c->name);
    copy->mark = slots;
    c->mark -= slots;
    for (int32_t j = 0; j < i->n_callees; j++)
        callees[j] = j >= k && i->callees[j] == c && slots-- > 0 ? copy : i->callees[j];
    for (const Inst *x = copy->first; x; x = x->next)
        for (int32_t j = 0; j < x->n_callees; j++)
            x->callees[j]->mark++;
    inst_set_callees(i, i->n_callees, callees);
    mem_free(callees);
}

void callee_own(Inst *i, int32_t k)
{
    own(i, k, 1);
}

void callee_own_slots(Inst *i, int32_t k)
{
    own(i, k, slots_of(i, k));
}

int64_t callees_shared(const Inst *i)
{
    int64_t n = 0;
    for (int32_t k = 0; k < i->n_callees; k++)
        if (!callee_is_later_slot(i, k) && i->callees[k]->mark > slots_of(i, k))
            n += i->callees[k]->n_insts;
    return n;
}

bool param_is_unread(const Inst *p)
{
    return !p->n_uses && p->comp->root != p && !p->n_control && !p->n_control_succs;
}

void comp_drop_unread(Comp *c, bool *kept)
{
    int32_t n = 0;
    for (int32_t k = 0; k < c->n_params; k++) {
        Inst *p = comp_param(c, k);
        kept[k] = !param_is_unread(p);
        if (!kept[k]) {
            inst_delete(p);
            continue;
        }
        p->param = n;
        c->params[n++] = p;
    }
    c->n_params = n;
}

void callee_drop_unread(Inst *i, Arena *scratch)
{
    Inst  **operands = ARENA_ARRAY(scratch, Inst *, i->n_operands);
    bool   *kept = ARENA_ARRAY(scratch, bool, i->n_operands);
    int32_t n = 0;
    comp_drop_unread(inst_callee(i, 0), kept);
    for (int32_t k = 0; k < i->n_operands; k++)
        if (kept[k])
            operands[n++] = inst_operand(i, k);
    inst_set_operands(i, n, operands);
}

/* ---- elements ---- */

Inst *tuple_element_known(const Inst *t, int64_t k)
{
    return t->op == OP_TUPLE ? inst_operand(t, (int32_t)k) : NULL;
}

Inst *tuple_new_element(Inst *t, int64_t k, Inst *before)
{
    Inst *e = inst_new(t->comp, before, OP_GET_TUPLE_ELEMENT, t->shape->elems[k], 1, &t, NULL);
    inst_set_int(e, ATTR_INDEX, k);
    e->meta = t->meta;
    e->loc = t->loc;
    return e;
}

bool is_element_of(const Inst *i, int64_t k)
{
    return i->op == OP_GET_TUPLE_ELEMENT && inst_int(i, ATTR_INDEX, 0) == k;
}

Inst *tuple_element(Inst *t, int64_t k)
{
    return t->op == OP_TUPLE ? inst_operand(t, (int32_t)k) : tuple_new_element(t, k, t->next);
}

Inst *tuple_new(Comp *c, Inst *before, const Shape *shape, Inst *const *elems, const Inst *like)
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
        elems[k] = tuple_new_element(t, k, at);
    Inst *whole = tuple_new(t->comp, at, t->shape, elems, t);
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

/* ---- other tuples ---- */

/* Element k of t becomes element to[k]. */
void tuple_renumber(Inst *t, const Shape *shape, const int32_t *to)
{
    inst_set_shape(t, shape);
    for (Use *u = t->uses; u; u = u->next) {
        int32_t now = to[inst_int(u->user, ATTR_INDEX, 0)];
        if (now < 0)
            die("%s reads an element of %s that has been taken away", u->user->name, t->name);
        inst_set_int(u->user, ATTR_INDEX, now);
    }
}

/* Elements of t that are read by nobody. */
void tuple_sweep(Inst *t)
{
    for (Use *u = t->uses, *next; u; u = next) {
        Inst *e = u->user;
        next = u->next;
        if (e->op == OP_GET_TUPLE_ELEMENT && !e->n_uses && e->comp->root != e && !inst_must_stay(e))
            inst_delete(e);
    }
}

const Shape *tuple_kept_shape(Arena *a, const Shape *s, const bool *keep, int32_t *to)
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
Inst *tuple_kept(Inst *t, Inst *before, const Shape *shape, const bool *keep, Arena *scratch)
{
    Inst  **elems = ARENA_ARRAY(scratch, Inst *, t->shape->n_elems);
    int32_t n = 0;
    for (int32_t k = 0; k < t->shape->n_elems; k++)
        if (keep[k])
            elems[n++] = t->op == OP_TUPLE ? inst_operand(t, k) : tuple_new_element(t, k, before);
    return tuple_new(t->comp, before, shape, elems, t);
}

/* After a new root: the old one, and what only it needed. */
void comp_set_root(Comp *c, Inst *root, Arena *scratch)
{
    Inst *old = c->root;
    c->root = root;
    if (!old->n_uses)
        inst_delete_dead(old, scratch);
}
