/* A while that does the same for each element becomes a fusion of it: operands are what the state begins with, results what is left of it.
 *
 *     w = (s32[], f32[N], f32[T,N]) while(tuple(0, h, ys)), body = { ... fusion ... }   =>   f = (f32[N], f32[T,N]) fusion(h), calls = { while, body without fusions } */
#include "emit/element_loop.h"
#include "emit/expand.h"

#include "analysis/loops.h"
#include "passes/expand.h"
#include "passes/util.h"

#include <string.h>

typedef struct Job {
    Inst        *w;    /* as it was */
    Comp        *body; /* a copy without calls */
    Comp        *fused;
    ElementLoop  loop;
    int32_t      n;    /* operands of the fusion */
    Inst       **operands, **init, **left;
} Job;

static bool calls_one(const Inst *x)
{
    return x->op == OP_FUSION || x->op == OP_CALL;
}

/* Elements of tuples are what the tuples are made of; of a default layout, a bitcast of one type is a reshape. */
static void tidy(Comp *c)
{
    for (Inst *x = c->first; x; x = x->next)
        if (x->op == OP_GET_TUPLE_ELEMENT && inst_operand(x, 0)->op == OP_TUPLE)
            inst_replace(x, inst_operand(inst_operand(x, 0), (int32_t)inst_int(x, ATTR_INDEX, 0)));
        else if (x->op == OP_BITCAST && shape_is_array(x->shape) && x->shape->type == inst_operand(x, 0)->shape->type && layout_is_row_major(x->shape) &&
            layout_is_row_major(inst_operand(x, 0)->shape) && shape_count(x->shape) == shape_count(inst_operand(x, 0)->shape))
            x->op = OP_RESHAPE;
}

/* ---- is it worth a look? ---- */

/* Nothing in c rules it out. */
static bool may_fit(const Comp *c, int32_t depth)
{
    enum { MOST_DEPTH = 4, MOST = 1000 };
    if (depth == MOST_DEPTH || c->n_insts > MOST)
        return false;
    for (const Inst *x = c->first; x; x = x->next)
        switch (x->op) {
        case OP_PARAMETER: case OP_TUPLE: case OP_GET_TUPLE_ELEMENT: case OP_CONSTANT: case OP_IOTA: case OP_BROADCAST: case OP_RESHAPE: case OP_BITCAST: case OP_COPY:
        case OP_DYNAMIC_SLICE: case OP_DYNAMIC_UPDATE_SLICE: case OP_SLICE: case OP_TRANSPOSE: case OP_REVERSE:
            break;
        case OP_FUSION: case OP_CALL:
            if (!may_fit(inst_callee(x, 0), depth + 1))
                return false;
            break;
        default:
            if (!op_has(x->op, F_ELEMENTWISE) || x->op == OP_MAP)
                return false;
        }
    return true;
}

bool loop_expands(const Inst *i)
{
    LoopCount count;
    if (i->op != OP_WHILE || i->n_control || i->n_control_succs || !shape_is_tuple(i->shape) || !may_fit(while_body(i), 0))
        return false;
    bool elements = false;
    for (int32_t k = 0; k < i->shape->n_elems; k++)
        elements |= shape_is_array(i->shape->elems[k]) && i->shape->elems[k]->rank > 0;
    return elements && while_counted(i, &count) && count.trips > 1;
}

/* ---- the fusion ---- */

static Inst *start_of(Job *j, int32_t k)
{
    Inst *from = inst_operand(j->w, 0);
    if (!j->init[k])
        j->init[k] = from->op == OP_TUPLE ? inst_operand(from, k) : expand_element(j->w, from, k);
    return j->init[k];
}

/* A scalar constant, or an array of one: the kernel has a copy of its own. */
static const Inst *value_of_all(const Inst *x)
{
    while (x->op == OP_BROADCAST && inst_operand(x, 0)->shape->rank == 0)
        x = inst_operand(x, 0);
    return x->op == OP_CONSTANT && !x->literal->elided && x->literal->count > 0 && literal_all_equal_bits(x->literal) ? x : NULL;
}

static Inst *filled_in(Comp *c, Inst *before, const Shape *s, Literal *value)
{
    Inst *x = inst_constant(c, before, value, NULL);
    return s->rank == 0 ? x : inst_new(c, before, OP_BROADCAST, s, 1, &x, NULL);
}

static Inst *copy_of_all(Comp *c, Inst *before, const Shape *s, const Inst *value)
{
    Literal *one = literal_new(value->shape->type, 0, NULL);
    memcpy(one->data, value->literal->data, (size_t)literal_bytes(one));
    return filled_in(c, before, s, one);
}

/* What leaf k begins with, inside of the fusion. */
static Inst *start_inside(Job *j, int32_t k)
{
    const LoopLeaf *leaf = &j->loop.leaf[k];
    const Shape    *s = j->w->shape->elems[k];
    const Inst     *all = value_of_all(start_of(j, k));
    if (leaf->kind == LEAF_COUNT)
        return filled_in(j->fused, NULL, s, literal_from_s64(s->type, leaf->init));
    if (leaf->kind == LEAF_ROWS)
        return filled_in(j->fused, NULL, s, literal_new_zero(s->type, 0, NULL));
    if (all)
        return copy_of_all(j->fused, NULL, s, all);
    for (int32_t e = 0; e < j->n; e++)
        if (j->operands[e] == start_of(j, k))
            return comp_param(j->fused, e);
    j->operands[j->n] = start_of(j, k);
    return inst_parameter(j->fused, NULL, j->n++, start_of(j, k)->shape, inst_unique_name(j->w->comp->module, start_of(j, k)->name));
}

/* Elements of the state that are one value from first to last are that value in the body. */
static void settle_constants(Job *j)
{
    Inst *param = comp_param(j->body, 0);
    for (Inst *x = j->body->first, *next; x; x = next) {
        next = x->next;
        if (x->op != OP_GET_TUPLE_ELEMENT || inst_operand(x, 0) != param)
            continue;
        const int32_t k = (int32_t)inst_int(x, ATTR_INDEX, 0);
        const Inst   *all = value_of_all(start_of(j, k)), *root = inst_operand(j->body->root, k);
        if (!all || root->op != OP_GET_TUPLE_ELEMENT || inst_operand(root, 0) != param || inst_int(root, ATTR_INDEX, 0) != k)
            continue;
        Inst *value = copy_of_all(j->body, x, x->shape, all);
        for (Use *u = x->uses, *after; u; u = after) {
            after = u->next;
            if (u->user != j->body->root || u->index != k) /* it stays what no trip changes */
                inst_set_operand(u->user, u->index, value);
        }
    }
}

static bool is_wanted(const Inst *w, int32_t k)
{
    bool wanted = w->comp->root == w;
    for (const Use *u = w->uses; u && !wanted; u = u->next)
        wanted = u->user->op != OP_GET_TUPLE_ELEMENT || (inst_int(u->user, ATTR_INDEX, 0) == k && (u->user->n_uses > 0 || u->user->comp->root == u->user));
    return wanted;
}

static const char *name_of(const LoopLeaf *leaf, const Inst *w)
{
    return leaf->read ? leaf->read->name : w->name;
}

/* What is left of each leaf, behind the loop. False: nothing of it is wanted. */
static bool make_fusion(Job *j, Inst *looped)
{
    const int32_t n = j->w->shape->n_elems;
    Arena        *a = j->w->comp->module->arena;
    Inst        **inside = ARENA_ARRAY(a, Inst *, n), *f;
    const Shape **shapes = ARENA_ARRAY(a, const Shape *, n);
    int32_t      *leaf = ARENA_ARRAY(a, int32_t, n), results = 0;
    for (int32_t k = 0; k < n; k++)
        if (j->loop.leaf[k].kind >= LEAF_ALIKE && is_wanted(j->w, k)) {
            inside[results] = inst_new(j->fused, NULL, OP_GET_TUPLE_ELEMENT, j->w->shape->elems[k], 1, &looped,
                                        inst_unique_name(j->w->comp->module, name_of(&j->loop.leaf[k], j->w)));
            inst_set_int(inside[results], ATTR_INDEX, k);
            leaf[results++] = k;
        }
    if (results == 0)
        return false;
    for (int32_t e = 0; e < results; e++)
        shapes[e] = inside[e]->shape;
    j->fused->root = results == 1 ? inside[0] : inst_new(j->fused, NULL, OP_TUPLE, shape_tuple(a, results, shapes), results, inside, NULL);
    f = expand_fusion(j->w, FUSION_LOOP, j->fused, j->n, j->operands);
    for (int32_t e = 0; e < results; e++)
        j->left[leaf[e]] = results == 1 ? f : expand_element(j->w, f, e);
    return true;
}

static Inst *what_is_left(Job *j, int32_t k)
{
    const LoopLeaf *leaf = &j->loop.leaf[k];
    const Shape    *s = j->w->shape->elems[k];
    if (!j->left[k])
        j->left[k] = leaf->kind == LEAF_COUNT ? inst_constant(j->w->comp, j->w, literal_from_s64(s->type, leaf->init + leaf->step * j->loop.trips), NULL) : start_of(j, k);
    return j->left[k];
}

static void replace(Job *j)
{
    Arena *scratch = arena_new();
    Inst  *w = j->w, *from = inst_operand(w, 0);
    for (Use *u = w->uses, *next; u; u = next) {
        Inst *x = u->user;
        next = u->next;
        if (x->op != OP_GET_TUPLE_ELEMENT)
            continue;
        inst_replace(x, what_is_left(j, (int32_t)inst_int(x, ATTR_INDEX, 0)));
        inst_delete(x);
    }
    if (w->n_uses > 0 || w->comp->root == w) {
        for (int32_t k = 0; k < w->shape->n_elems; k++)
            what_is_left(j, k);
        inst_replace(w, expand_tuple(w, w->shape->n_elems, j->left));
    }
    inst_delete(w);
    inst_delete_dead(from, scratch);
    arena_free(scratch);
}

void expand_loop(Inst *i)
{
    Module *m = i->comp->module;
    Arena  *scratch = arena_new();
    int32_t n = i->shape->n_elems;
    Job     j = {.w = i, .operands = ARENA_ARRAY(scratch, Inst *, n), .init = ARENA_ARRAY(scratch, Inst *, n), .left = ARENA_ARRAY(scratch, Inst *, n)};
    Comp   *test = comp_clone(while_condition(i), while_condition(i)->name);
    Inst  **starts = ARENA_ARRAY(scratch, Inst *, n);
    j.body = comp_clone(while_body(i), while_body(i)->name);
    expand_calls(j.body, calls_one);
    expand_calls(test, calls_one);
    tidy(j.body);
    settle_constants(&j);
    comp_sweep_dead(j.body, j.body->n_insts);
    Inst *probe = inst_new(i->comp, i, OP_WHILE, i->shape, 1, (Inst *[]){inst_operand(i, 0)}, NULL);
    inst_set_callees(probe, 2, (Comp *[]){j.body, test});
    const bool found = element_loop_find(scratch, probe, &j.loop);
    inst_delete(probe);
    if (found) {
        j.fused = comp_new(m, comp_unique_name(m, i->name));
        comp_move_before(j.fused, i->comp);
        for (int32_t k = 0; k < n; k++)
            starts[k] = start_inside(&j, k);
        Inst *state = inst_new(j.fused, NULL, OP_TUPLE, i->shape, n, starts, NULL);
        Inst *looped = inst_new(j.fused, NULL, OP_WHILE, i->shape, 1, &state, i->name);
        inst_set_callees(looped, 2, (Comp *[]){j.body, test});
        looped->meta = i->meta;
        looped->loc = i->loc;
        if (make_fusion(&j, looped))
            replace(&j);
    }
    arena_free(scratch);
}
