/* What goes in and out of branches: results and elements of operands that nobody reads go, a result that all branches hand on is what they hand on. */
#include "config.h"

#include "passes/conditional.h"

#include "passes/util.h"

bool conditional_same_shapes(const Inst *c)
{
    for (int32_t k = 0; k < c->n_callees; k++)
        if (!shape_equal(inst_callee(c, k)->root->shape, c->shape) ||
            !shape_equal(comp_param(inst_callee(c, k), 0)->shape, inst_operand(c, k + 1)->shape))
            return false;
    return true;
}

/* ---- results ---- */

bool conditional_editable(const Flow *f, const Inst *c)
{
    if (inst_attr(c, ATTR_SHARDING) || shape_is_dynamic(c->shape) || !conditional_same_shapes(c) || callees_shared(c) > f->room)
        return false;
    for (int32_t k = 0; k < c->n_callees; k++)
        if (inst_attr(inst_callee(c, k)->root, ATTR_SHARDING) || inst_attr(comp_param(inst_callee(c, k), 0), ATTR_SHARDING))
            return false;
    return true;
}

void conditional_own(Flow *f, Inst *c)
{
    f->room -= callees_shared(c);
    for (int32_t k = 0; k < c->n_callees; k++)
        if (!callee_is_later_slot(c, k))
            callee_own_slots(c, k);
}

Inst *conditional_handed_on(const Inst *c, int32_t k, const Inst *x)
{
    Inst *operand = inst_operand(c, k + 1);
    if (x->op == OP_PARAMETER)
        return operand;
    if (x->op != OP_GET_TUPLE_ELEMENT || inst_operand(x, 0)->op != OP_PARAMETER)
        return NULL;
    return tuple_element_known(operand, inst_int(x, ATTR_INDEX, 0));
}

/* The same of result r of branch k. */
static Inst *handed_on(const Inst *c, int32_t k, int64_t r)
{
    const Inst *x = tuple_element_known(inst_callee(c, k)->root, r);
    return x ? conditional_handed_on(c, k, x) : NULL;
}

static bool read_what_is_handed_on(Inst *c)
{
    bool any = false;
    for (Use *u = c->uses; u; u = u->next) {
        Inst *e = u->user;
        if (e->op != OP_GET_TUPLE_ELEMENT || e->n_control || e->n_control_succs || (!e->n_uses && e->comp->root != e))
            continue;
        int64_t r = inst_int(e, ATTR_INDEX, 0);
        Inst   *same = handed_on(c, 0, r);
        for (int32_t k = 1; k < c->n_callees && same; k++)
            if (handed_on(c, k, r) != same)
                same = NULL;
        if (same && shape_equal(same->shape, e->shape)) {
            inst_replace(e, same);
            any = true;
        }
    }
    return any;
}

/* The first of the results that are the same instruction in every branch as result r is. */
static int32_t first_equal(const Inst *c, int32_t r)
{
    for (int32_t j = 0; j < r; j++) {
        bool equal = true;
        for (int32_t k = 0; k < c->n_callees && equal; k++) {
            const Inst *root = inst_callee(c, k)->root;
            equal = root->op == OP_TUPLE && inst_operand(root, j) == inst_operand(root, r);
        }
        if (equal)
            return j;
    }
    return r;
}

static bool read_first_of_equal(Inst *c)
{
    bool any = false;
    for (Use *u = c->uses, *next; u; u = next) {
        Inst *e = u->user;
        next = u->next;
        if (e->op != OP_GET_TUPLE_ELEMENT || e->n_control || e->n_control_succs || (!e->n_uses && e->comp->root != e))
            continue;
        int32_t r = (int32_t)inst_int(e, ATTR_INDEX, 0), first = first_equal(c, r);
        if (first < r && shape_equal(c->shape->elems[first], e->shape)) {
            inst_replace(e, tuple_new_element(c, first, c->next));
            any = true;
        }
    }
    return any;
}

static bool find_read_results(const Inst *c, bool *read)
{
    if (c->comp->root == c)
        return false;
    for (const Use *u = c->uses; u; u = u->next) {
        if (u->user->op != OP_GET_TUPLE_ELEMENT)
            return false;
        if (u->user->n_uses || u->user->comp->root == u->user || inst_must_stay(u->user))
            read[inst_int(u->user, ATTR_INDEX, 0)] = true;
    }
    return true;
}

bool conditional_drop_results(Flow *f, Inst *c)
{
    int32_t n = shape_is_tuple(c->shape) ? c->shape->n_elems : 0, kept = 0;
    bool   *read = ARENA_ARRAY(f->scratch, bool, n);
    if (n == 0 || !conditional_editable(f, c))
        return false;
    if (read_what_is_handed_on(c) || read_first_of_equal(c))
        return true;
    if (!find_read_results(c, read))
        return false;
    for (int32_t k = 0; k < n; k++)
        kept += read[k];
    if (kept == n || (kept == 0 && !inst_has_effect(c)))
        return false;
    conditional_own(f, c);
    int32_t     *to = ARENA_ARRAY(f->scratch, int32_t, n);
    const Shape *shape = tuple_kept_shape(c->comp->module->arena, c->shape, read, to);
    for (int32_t k = 0; k < c->n_callees; k++) {
        Comp *body = inst_callee(c, k);
        if (callee_is_later_slot(c, k))
            continue;
        comp_set_root(body, tuple_kept(body->root, NULL, shape, read, f->scratch), f->scratch);
        comp_sweep_dead(body, INT64_MAX);
    }
    tuple_sweep(c);
    tuple_renumber(c, shape, to);
    return true;
}

/* ---- operands ---- */

static bool find_read_elements(const Comp *body, bool *read)
{
    const Inst *p = comp_param(body, 0);
    if (body->root == p)
        return false;
    for (const Use *u = p->uses; u; u = u->next) {
        if (u->user->op != OP_GET_TUPLE_ELEMENT)
            return false;
        read[inst_int(u->user, ATTR_INDEX, 0)] = true;
    }
    return true;
}

static void keep_elements(Flow *f, Inst *c, int32_t k, const Shape *shape, const bool *read)
{
    Inst *operand = inst_operand(c, k + 1);
    inst_set_operand(c, k + 1, tuple_kept(operand, c, shape, read, f->scratch));
    if (!operand->n_uses)
        inst_delete_dead(operand, f->scratch);
}

static bool drop_elements_of(Flow *f, Inst *c, int32_t k)
{
    const Shape *whole = inst_operand(c, k + 1)->shape;
    int32_t  n = shape_is_tuple(whole) ? whole->n_elems : 0, kept = 0;
    bool    *read = ARENA_ARRAY(f->scratch, bool, n);
    int32_t *to = ARENA_ARRAY(f->scratch, int32_t, n);
    if (n == 0 || callee_is_later_slot(c, k) || !find_read_elements(inst_callee(c, k), read))
        return false;
    for (int32_t j = 0; j < n; j++)
        kept += read[j];
    if (kept == n)
        return false;
    f->room -= callees_shared(c);
    callee_own_slots(c, k);
    const Shape *shape = tuple_kept_shape(c->comp->module->arena, whole, read, to);
    for (int32_t j = k; j < c->n_callees; j++)
        if (inst_callee(c, j) == inst_callee(c, k))
            keep_elements(f, c, j, shape, read);
    tuple_renumber(comp_param(inst_callee(c, k), 0), shape, to);
    return true;
}

bool conditional_drop_elements(Flow *f, Inst *c)
{
    bool any = false;
    for (int32_t k = 0; k < c->n_callees && conditional_editable(f, c); k++)
        any |= drop_elements_of(f, c, k);
    return any;
}

/* ---- other results ---- */

static const Shape *with_element(Arena *a, const Shape *s, int32_t r, const Shape *x)
{
    const Shape **elems = ARENA_ARRAY(a, const Shape *, s->n_elems);
    for (int32_t j = 0; j < s->n_elems; j++)
        elems[j] = j == r ? x : s->elems[j];
    return shape_tuple(a, s->n_elems, elems);
}

static Inst *root_with_element(Flow *f, Comp *body, int32_t r, Inst *x, const Shape *shape)
{
    Inst **elems = ARENA_ARRAY(f->scratch, Inst *, shape->n_elems);
    for (int32_t j = 0; j < shape->n_elems; j++)
        elems[j] = j == r ? x : tuple_element(body->root, j);
    return tuple_new(body, NULL, shape, elems, body->root);
}

void conditional_set_result(Flow *f, Inst *c, int32_t r, Inst *const *values)
{
    const Shape *shape = r < 0 ? values[0]->shape : with_element(c->comp->module->arena, c->shape, r, values[0]->shape);
    for (int32_t k = 0; k < c->n_callees; k++) {
        Comp *body = inst_callee(c, k);
        if (callee_is_later_slot(c, k))
            continue;
        comp_set_root(body, r < 0 ? values[k] : root_with_element(f, body, r, values[k], shape), f->scratch);
        comp_sweep_dead(body, INT64_MAX);
    }
    inst_set_shape(c, shape);
}

/* ---- more operands ---- */

/* The number of the element that x is in every operand, or -1. */
static int32_t element_of_all(const Inst *c, const Inst *x)
{
    const Inst *first = inst_operand(c, 1);
    for (int32_t j = 0; first->op == OP_TUPLE && j < first->n_operands; j++) {
        bool all = true;
        for (int32_t k = 0; k < c->n_callees && all; k++)
            all = inst_operand(c, k + 1)->op == OP_TUPLE && j < inst_operand(c, k + 1)->n_operands && inst_operand(inst_operand(c, k + 1), j) == x;
        if (all)
            return j;
    }
    return -1;
}

static bool operand_of_all(const Inst *c, const Inst *x)
{
    bool all = true;
    for (int32_t k = 0; k < c->n_callees && all; k++)
        all = inst_operand(c, k + 1) == x;
    return all;
}

/* The shape of a tuple of s, or of what s has, and of x; *n is set to the number of those before. */
static const Shape *longer_shape(Arena *a, const Shape *s, const Shape *x, int32_t *n)
{
    *n = shape_is_tuple(s) ? s->n_elems : 1;
    const Shape **elems = ARENA_ARRAY(a, const Shape *, *n + 1);
    for (int32_t j = 0; j < *n; j++)
        elems[j] = shape_is_tuple(s) ? s->elems[j] : s;
    elems[*n] = x;
    return shape_tuple(a, *n + 1, elems);
}

static void lengthen_operand(Flow *f, Inst *c, int32_t k, Inst *x)
{
    Inst        *o = inst_operand(c, k + 1);
    int32_t      n;
    const Shape *shape = longer_shape(c->comp->module->arena, o->shape, x->shape, &n);
    Inst       **elems = ARENA_ARRAY(f->scratch, Inst *, n + 1);
    for (int32_t j = 0; j < n; j++)
        elems[j] = !shape_is_tuple(o->shape) ? o : o->op == OP_TUPLE ? inst_operand(o, j) : tuple_new_element(o, j, c);
    elems[n] = x;
    inst_set_operand(c, k + 1, tuple_new(c->comp, c, shape, elems, o));
    if (!o->n_uses)
        inst_delete_dead(o, f->scratch);
}

static void lengthen_parameter(Comp *body, const Shape *x)
{
    Inst        *p = comp_param(body, 0);
    int32_t      n;
    const Shape *shape = longer_shape(body->module->arena, p->shape, x, &n);
    if (shape_is_tuple(p->shape)) {
        tuple_spell_out(p);
        inst_set_shape(p, shape);
        return;
    }
    Use *uses = p->uses;
    bool root = body->root == p;
    inst_set_shape(p, shape);
    Inst *e = tuple_new_element(p, 0, p->next);
    for (Use *u = uses, *next; u; u = next) {
        next = u->next;
        inst_set_operand(u->user, u->index, e);
    }
    if (root)
        body->root = e;
}

static void lengthen(Flow *f, Inst *c, Inst *x)
{
    for (int32_t k = 0; k < c->n_callees; k++)
        if (!callee_is_later_slot(c, k))
            lengthen_parameter(inst_callee(c, k), x->shape);
    for (int32_t k = 0; k < c->n_callees; k++)
        lengthen_operand(f, c, k, x);
}

static void hand_in_one(Flow *f, Inst *c, Inst *x, int32_t v, Inst **const *in)
{
    bool    whole = operand_of_all(c, x);
    int32_t j = element_of_all(c, x);
    if (!whole && j < 0)
        lengthen(f, c, x);
    for (int32_t k = 0; k < c->n_callees; k++) {
        Inst *p = comp_param(inst_callee(c, k), 0);
        if (!callee_is_later_slot(c, k))
            in[k][v] = whole ? p : tuple_new_element(p, j < 0 ? p->shape->n_elems - 1 : j, p->next);
    }
}

void conditional_hand_in(Flow *f, Inst *c, int32_t n, Inst *const *values, Inst **const *in)
{
    for (int32_t v = 0; v < n; v++)
        hand_in_one(f, c, values[v], v, in);
}
