/* Editing the state of a loop. Every function leaves a module that computes the same. */
#include "config.h"

#include "passes/while.h"

#include <string.h>

#include "passes/util.h"

enum { FEW = 1024 /* elements of a constant that may be said twice */ };

/* ---- which loops ---- */

static bool same_shape(const Inst *w, const Inst *i)
{
    return shape_equal(w->shape, i->shape) && !inst_attr(i, ATTR_SHARDING);
}

bool while_could_be_edited(const Flow *f, const Inst *w)
{
    if (!shape_is_tuple(w->shape) || shape_is_dynamic(w->shape) || shape_has_buffer(w->shape) || inst_attr(w, ATTR_SHARDING))
        return false;
    return same_shape(w, inst_operand(w, 0)) && same_shape(w, comp_param(while_body(w), 0)) &&
           same_shape(w, comp_param(while_condition(w), 0)) && same_shape(w, while_body(w)->root) && callees_shared(w) <= f->room;
}

bool while_editable(Flow *f, Inst *w)
{
    if (!while_could_be_edited(f, w))
        return false;
    f->room -= callees_shared(w);
    callee_own(w, 0);
    callee_own(w, 1);
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
    return is_element_of(next, k) && inst_operand(next, 0)->op == OP_PARAMETER;
}

static bool hands_on(const Use *u, int64_t k)
{
    return u->user == u->user->comp->root && u->user->op == OP_TUPLE && u->index == k;
}

void state_find_elements_read(const Comp *c, bool *read)
{
    for (const Use *u = comp_param(c, 0)->uses; u; u = u->next) {
        const Inst *e = u->user;
        int64_t     k = inst_int(e, ATTR_INDEX, 0);
        if (e->op != OP_GET_TUPLE_ELEMENT)
            continue;
        for (const Use *v = e->uses; v && !read[k]; v = v->next)
            read[k] = !hands_on(v, k);
        read[k] |= c->root == e;
    }
}

void state_find_read(const Comp *c, bool *read)
{
    const Inst *p = comp_param(c, 0);
    state_find_elements_read(c, read);
    for (const Use *u = p->uses; u; u = u->next)
        for (int32_t j = 0; u->user->op != OP_GET_TUPLE_ELEMENT && j < p->shape->n_elems; j++)
            read[j] = true;
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
    state_find_elements_read(c, sink);
    for (int32_t k = 0; k < w->shape->n_elems; k++) {
        const Inst *init = while_init(w, k);
        sink[k] = sink[k] && sinks(init, scalars) && shape_equal(init->shape, w->shape->elems[k]) && while_keeps(w, k);
        any |= sink[k];
    }
    return any;
}

bool while_sink_constants(Flow *f, Inst *w, bool scalars)
{
    if (!while_could_be_edited(f, w))
        return false;
    int32_t n = w->shape->n_elems;
    bool   *sink[2], any = false, did = false;
    for (int32_t c = 0; c < 2; c++) {
        sink[c] = ARENA_ARRAY(f->scratch, bool, n);
        any |= find_sinks(w, w->callees[c], sink[c], scalars);
    }
    if (!any || !while_editable(f, w))
        return false;
    for (int32_t c = 0; c < 2; c++) {
        Inst **instead = ARENA_ARRAY(f->scratch, Inst *, n);
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

void while_keep(Flow *f, Inst *w, const bool *keep)
{
    Comp    *body = while_body(w), *condition = while_condition(w);
    Inst    *init = inst_operand(w, 0);
    int32_t *to = ARENA_ARRAY(f->scratch, int32_t, w->shape->n_elems);
    const Shape *shape = tuple_kept_shape(w->comp->module->arena, w->shape, keep, to);
    inst_set_operand(w, 0, tuple_kept(init, w, shape, keep, f->scratch));
    if (!init->n_uses)
        inst_delete_dead(init, f->scratch);
    comp_set_root(body, tuple_kept(body->root, NULL, shape, keep, f->scratch), f->scratch);
    comp_sweep_dead(body, INT64_MAX);
    comp_sweep_dead(condition, INT64_MAX);
    Inst *tuples[] = {comp_param(body, 0), comp_param(condition, 0), w};
    for (int k = 0; k < 3; k++) {
        tuple_spell_out(tuples[k]);
        tuple_sweep(tuples[k]);
        tuple_renumber(tuples[k], shape, to);
    }
    forget_numbers(w);
}

int32_t while_append(Flow *f, Inst *w, int32_t n, Inst *const *init)
{
    Arena        *a = w->comp->module->arena;
    Comp         *body = while_body(w), *condition = while_condition(w);
    int32_t       before = w->shape->n_elems, all = before + n;
    const Shape **shapes = ARENA_ARRAY(a, const Shape *, all);
    Inst        **elems = ARENA_ARRAY(f->scratch, Inst *, all);
    Inst         *tuples[] = {w, comp_param(body, 0), comp_param(condition, 0)};
    inst_move_before(tuples[1], body->first); /* those who will read new elements need not stand after it */
    for (int32_t k = 0; k < all; k++) {
        shapes[k] = k < before ? w->shape->elems[k] : init[k - before]->shape;
        elems[k] = k < before ? inst_operand(w, 0)->op == OP_TUPLE ? inst_operand(inst_operand(w, 0), k)
                                                                  : tuple_new_element(inst_operand(w, 0), k, w)
                              : init[k - before];
    }
    const Shape *shape = shape_tuple(a, all, shapes);
    Inst        *old = inst_operand(w, 0);
    inst_set_operand(w, 0, tuple_new(w->comp, w, shape, elems, old));
    if (!old->n_uses)
        inst_delete_dead(old, f->scratch);
    for (int k = 0; k < 3; k++) {
        tuple_spell_out(tuples[k]);
        inst_set_shape(tuples[k], shape);
    }
    for (int32_t k = 0; k < all; k++)
        elems[k] = k < before && body->root->op == OP_TUPLE ? inst_operand(body->root, k)
                   : k < before                             ? tuple_new_element(body->root, k, NULL)
                                                            : tuple_new_element(tuples[1], k, tuples[1]->next);
    comp_set_root(body, tuple_new(body, NULL, shape, elems, body->root), f->scratch);
    return before;
}

void while_replace(const Flow *f, Inst *w, Inst *const *state)
{
    Inst *result = inst_new(w->comp, w, OP_TUPLE, w->shape, w->shape->n_elems, state, NULL);
    inst_replace(w, result);
    inst_delete_dead(w, f->scratch);
    for (Use *use = result->uses, *following; use; use = following) {
        Inst *e = use->user;
        following = use->next;
        if (e->op != OP_GET_TUPLE_ELEMENT || e->n_control || e->n_control_succs)
            continue;
        inst_replace(e, state[inst_int(e, ATTR_INDEX, 0)]);
        inst_delete(e);
    }
    if (!result->n_uses)
        inst_delete_dead(result, f->scratch);
}

bool while_pass_moves_out(Module *m, PassCtx *cx, int64_t (*move_out)(Flow *f, Inst *w), const char *what)
{
    Flow f = flow_of(m, cx->scratch);
    f.device = cx->device;
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c); i && cx->rewrites < cx->limit; i = i->next) {
            int64_t moved = i->op == OP_WHILE ? move_out(&f, i) : 0;
            if (!moved)
                continue;
            cx->did_at = i->name;
            cx->rewrites++;
            pass_remark(cx, i, "%lld %s are computed before the loop", (long long)moved, what);
        }
    return cx->rewrites > 0;
}
