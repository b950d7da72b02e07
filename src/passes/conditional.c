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

static bool may_reshape(const Flow *f, const Inst *c)
{
    if (inst_attr(c, ATTR_SHARDING) || shape_is_dynamic(c->shape) || !conditional_same_shapes(c) || callees_shared(c) > f->room)
        return false;
    for (int32_t k = 0; k < c->n_callees; k++)
        if (inst_attr(inst_callee(c, k)->root, ATTR_SHARDING) || inst_attr(comp_param(inst_callee(c, k), 0), ATTR_SHARDING))
            return false;
    return true;
}

static void own_all(Flow *f, Inst *c)
{
    f->room -= callees_shared(c);
    for (int32_t k = 0; k < c->n_callees; k++)
        if (!callee_is_later_slot(c, k))
            callee_own_slots(c, k);
}

/* The value that branch k hands on as its result r, as the caller has it; NULL: it computes something. */
static Inst *handed_on(const Inst *c, int32_t k, int64_t r)
{
    const Comp *body = inst_callee(c, k);
    const Inst *x = tuple_element_known(body->root, r);
    Inst       *operand = inst_operand(c, k + 1);
    if (x && x->op == OP_PARAMETER)
        return operand;
    if (!x || x->op != OP_GET_TUPLE_ELEMENT || inst_operand(x, 0)->op != OP_PARAMETER)
        return NULL;
    return tuple_element_known(operand, inst_int(x, ATTR_INDEX, 0));
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
    if (n == 0 || !may_reshape(f, c))
        return false;
    if (read_what_is_handed_on(c))
        return true;
    if (!find_read_results(c, read))
        return false;
    for (int32_t k = 0; k < n; k++)
        kept += read[k];
    if (kept == n || kept == 0)
        return false;
    own_all(f, c);
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
    for (int32_t k = 0; k < c->n_callees && may_reshape(f, c); k++)
        any |= drop_elements_of(f, c, k);
    return any;
}
