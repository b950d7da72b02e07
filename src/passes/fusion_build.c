/* From the groups that fusion.c has made to fusion instructions: the members of a group, and what it looks through, are copied into a computation, and
 * its results become the fusion or elements of it. The instructions that were fused are dead then. */
#include "config.h"

#include "passes/fusion.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct Body {
    VEC(Inst *) members, operands;
    Comp   *comp;
    int32_t number;
} Body;

bool fusion_goes_inside(const Inst *i)
{
    const Node *n = node(i);
    if (n->fused || n->role == ROLE_LEAF)
        return true;
    return i->op == OP_BROADCAST && n->role == ROLE_MOVE && shape_count(inst_operand(i, 0)->shape) < shape_count(i->shape);
}

static int by_order(const void *a, const void *b)
{
    int32_t x = node(*(Inst *const *)a)->order, y = node(*(Inst *const *)b)->order;
    return (x > y) - (x < y);
}

static void add_member(Fuser *f, Body *b, Inst *i)
{
    node(i)->seen = b->number;
    vec_push(f->scratch, &b->members, i);
}

/* Result r of a group: the first in the computation is number 0. */
static Inst *result_of(const Group *g, int32_t r)
{
    return r == g->n_more ? g->root : g->more[g->n_more - 1 - r];
}

/* The results and what goes inside, in the order of the computation. */
static void collect_members(Fuser *f, Body *b, const Group *g)
{
    add_member(f, b, g->root);
    for (int32_t r = 0; r < g->n_more; r++)
        add_member(f, b, g->more[r]);
    for (int32_t at = 0; at < b->members.n; at++) {
        Inst *i = b->members.v[at];
        for (int32_t k = 0; k < i->n_operands; k++) {
            Inst *o = inst_operand(i, k);
            if (node(o)->seen != b->number && fusion_goes_inside(o))
                add_member(f, b, o);
        }
    }
    qsort(b->members.v, (size_t)b->members.n, sizeof *b->members.v, by_order);
}

static void collect_operands(Fuser *f, Body *b)
{
    for (int32_t at = 0; at < b->members.n; at++)
        for (int32_t k = 0; k < b->members.v[at]->n_operands; k++) {
            Inst *o = inst_operand(b->members.v[at], k);
            if (node(o)->seen != b->number) {
                node(o)->seen = b->number;
                vec_push(f->scratch, &b->operands, o);
            }
        }
    if (b->operands.n)
        qsort(b->operands.v, (size_t)b->operands.n, sizeof *b->operands.v, by_order);
}

static void add_parameters(Body *b)
{
    for (int32_t k = 0; k < b->operands.n; k++) {
        Inst *o = b->operands.v[k];
        char  name[32];
        snprintf(name, sizeof name, "param_%d", k);
        node(o)->copy = inst_parameter(b->comp, NULL, k, o->shape, inst_unique_name(b->comp->module, name));
    }
}

/* An instruction that will be dead hands its name to its first copy. */
static void hand_on_name(Inst *i, Inst *copy)
{
    Node *n = node(i);
    if (n->named || !(n->fused || (n->role == ROLE_LEAF && i->n_uses == 1)))
        return;
    const char *made = copy->name;
    copy->name = i->name;
    i->name = made;
    n->named = true;
}

/* The arrays of a result: of a reduce of several, its elements. */
static int32_t arrays_of(const Inst *i)
{
    return shape_is_tuple(i->shape) ? i->shape->n_elems : 1;
}

static Inst *array_of(Inst *i, int32_t k)
{
    if (!shape_is_tuple(i->shape))
        return i;
    Inst *element = inst_new(i->comp, NULL, OP_GET_TUPLE_ELEMENT, i->shape->elems[k], 1, &i, NULL);
    inst_set_int(element, ATTR_INDEX, k);
    return element;
}

static int32_t count_arrays(const Group *g)
{
    int32_t n = 0;
    for (int32_t r = 0; r <= g->n_more; r++)
        n += arrays_of(result_of(g, r));
    return n;
}

/* The root, or a tuple of the results' arrays in the order of the computation. */
static Inst *body_root(Fuser *f, const Body *b, const Group *g)
{
    if (!g->n_more)
        return node(g->root)->copy;
    int32_t       n = count_arrays(g), at = 0;
    Inst        **results = ARENA_ARRAY(f->scratch, Inst *, n);
    const Shape **shapes = ARENA_ARRAY(f->scratch, const Shape *, n);
    for (int32_t r = 0; r <= g->n_more; r++)
        for (int32_t k = 0; k < arrays_of(result_of(g, r)); k++) {
            results[at] = array_of(node(result_of(g, r))->copy, k);
            shapes[at] = results[at]->shape;
            at++;
        }
    Module *m = b->comp->module;
    return inst_new(b->comp, NULL, OP_TUPLE, shape_tuple(m->arena, n, shapes), n, results, inst_unique_name(m, "tuple"));
}

static Comp *build_body(Fuser *f, Body *b, const Group *g)
{
    Inst   *root = g->root;
    Module *m = root->comp->module;
    b->comp = comp_new(m, comp_unique_name(m, "fused_computation"));
    comp_move_before(b->comp, root->comp);
    collect_operands(f, b);
    add_parameters(b);
    for (int32_t at = 0; at < b->members.n; at++) {
        Inst  *i = b->members.v[at];
        Inst **operands = ARENA_ARRAY(f->scratch, Inst *, i->n_operands);
        for (int32_t k = 0; k < i->n_operands; k++)
            operands[k] = node(inst_operand(i, k))->copy;
        Inst *copy = inst_clone_into(b->comp, NULL, i, i->n_operands, operands);
        hand_on_name(i, copy);
        node(i)->copy = copy;
    }
    b->comp->root = body_root(f, b, g);
    return b->comp;
}

/* To later groups an operand like any other. */
static void set_node(Fuser *f, Inst *i, const Inst *instead)
{
    i->aux = ARENA_NEW(f->scratch, Node);
    node(i)->order = node(instead)->order;
}

/* Element r of the fusion, which is an array of the result. */
static Inst *element_of(Fuser *f, Inst *fusion, Inst *result, const Shape *shape, int32_t r)
{
    Inst *element = inst_new(fusion->comp, result, OP_GET_TUPLE_ELEMENT, shape, 1, &fusion, NULL);
    inst_set_int(element, ATTR_INDEX, r);
    set_node(f, element, result);
    return element;
}

/* A tuple's elements stand for themselves; only who wants it whole gets it put together. */
static void replace_tuple(Fuser *f, Inst *result, int32_t n, Inst **arrays)
{
    for (Use *u = result->uses, *next; u; u = next) {
        next = u->next;
        if (u->user->op == OP_GET_TUPLE_ELEMENT)
            inst_replace(u->user, arrays[inst_int(u->user, ATTR_INDEX, 0)]);
    }
    Inst *whole = inst_new(result->comp, result, OP_TUPLE, result->shape, n, arrays, NULL);
    set_node(f, whole, result);
    inst_replace(result, whole);
}

static void replace_results(Fuser *f, const Group *g, Inst *fusion)
{
    if (!g->n_more) {
        set_node(f, fusion, g->root);
        inst_replace(g->root, fusion);
        return;
    }
    for (int32_t r = 0, at = 0; r <= g->n_more; r++) {
        Inst   *result = result_of(g, r);
        int32_t n = arrays_of(result);
        Inst  **arrays = ARENA_ARRAY(f->scratch, Inst *, n);
        for (int32_t k = 0; k < n; k++, at++)
            arrays[k] = element_of(f, fusion, result, fusion->shape->elems[at], at);
        if (shape_is_tuple(result->shape))
            replace_tuple(f, result, n, arrays);
        else
            inst_replace(result, arrays[0]);
    }
}

/* An update takes something in, be it a broadcast that others have in memory. */
static bool update_gains(const Group *g)
{
    const Inst *part = inst_operand(g->root, 1);
    return g->size > 1 || (part->op == OP_BROADCAST && fusion_goes_inside(part));
}

bool fusion_build(Fuser *f, const Group *g, int32_t number)
{
    Inst *root = g->root;
    Body  b = {.number = number};
    collect_members(f, &b, g);
    if (b.members.n < 2 || (node(root)->role == ROLE_WINDOW && g->size < 2) || (node(root)->role == ROLE_UPDATE && !update_gains(g)) ||
        (node(root)->role == ROLE_SCATTER && !fusion_scatter_gains(root, f->cx->device->shared == 0)))
        return false;
    Comp *body = build_body(f, &b, g);
    Inst *fusion = inst_new(root->comp, root, OP_FUSION, body->root->shape, b.operands.n, b.operands.v, NULL);
    bool  contracts = g->hero && node(g->hero)->role == ROLE_CONTRACT;
    inst_set_word(fusion, ATTR_FUSION_KIND, g->attention ? FUSION_CUSTOM : contracts ? FUSION_OUTPUT : g->reduces ? FUSION_INPUT : FUSION_LOOP);
    inst_set_callees(fusion, 1, &body);
    if (!fusion->meta && g->n_more)
        fusion->meta = root->meta;
    replace_results(f, g, fusion);
    return true;
}

void fusion_restore_order(Fuser *f, Comp *c)
{
    Inst **order = comp_post_order(f->scratch, c);
    for (int32_t k = 0, n = c->n_insts; k < n; k++)
        inst_move_before(order[k], NULL);
}
