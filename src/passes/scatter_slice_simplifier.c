/* scatter-slice-simplifier - of a scatter whose end is cut off the end is not made.
 *
 *   %s = f32[9] scatter(%x, %i, %u)                              %y = f32[8] slice(%x), slice={[0:8]}
 *   %n = f32[9] negate(%s)                            =>         %s = f32[8] scatter(%y, %i, %u)
 *   %r = f32[8] slice(%n), slice={[0:8]}                         %r = f32[8] negate(%s)
 *
 * Places behind the end that is cut off are outside then, where a scatter leaves out its update: so they are often written, as a place for what is not wanted.
 * Dimensions may be cut in which an update is one element at a place that is looked up; elementwise instructions may stand between, on several results
 * of one scatter too. All who read them are slices of the same beginnings. */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"

typedef struct Cut {
    const Inst  *scatter;
    const Shape *shape;      /* what is left; NULL: no slice was seen */
    VEC(Inst *) reached, slices; /* whole arrays that are cut, each after those that it is made of */
} Cut;

static bool cuts_ends(const Inst *slice)
{
    const SliceRange *r = inst_attr(slice, ATTR_SLICE)->value.slices->v;
    for (int32_t k = 0; k < slice->shape->rank; k++)
        if (r[k].start != 0 || r[k].stride != 1)
            return false;
    return true;
}

static bool is_reached(const Cut *c, const Inst *i)
{
    for (int32_t k = 0; k < c->reached.n; k++)
        if (c->reached.v[k] == i)
            return true;
    return false;
}

/* Takes in one that reads what is cut. */
static bool reach(Arena *scratch, Cut *c, Inst *user, const Shape *whole)
{
    enum { MOST = 32 };
    if (!inst_is_free(user) || user->shape->layout)
        return false;
    if (user->op == OP_SLICE && cuts_ends(user) && (!c->shape || shape_same_dims(c->shape, user->shape))) {
        c->shape = user->shape;
        vec_push(scratch, &c->slices, user);
        return true;
    }
    if (!op_has(user->op, F_ELEMENTWISE) || !shape_is_array(user->shape) || !shape_same_dims(user->shape, whole) || c->reached.n == MOST)
        return false;
    if (!is_reached(c, user))
        vec_push(scratch, &c->reached, user);
    return true;
}

static bool reach_users(Arena *scratch, Cut *c, const Inst *i, const Shape *whole)
{
    if (i == i->comp->root)
        return false;
    for (const Use *u = i->uses; u; u = u->next)
        if (!reach(scratch, c, u->user, whole))
            return false;
    return true;
}

static bool reach_all(Arena *scratch, Cut *c, Inst *s)
{
    const Shape *whole = inst_operand(s, 0)->shape;
    if (shape_is_array(s->shape))
        vec_push(scratch, &c->reached, s);
    for (Use *u = s->uses; u && shape_is_tuple(s->shape); u = u->next) {
        if (u->user->op != OP_GET_TUPLE_ELEMENT || !inst_is_free(u->user))
            return false;
        vec_push(scratch, &c->reached, u->user);
    }
    for (int32_t k = 0; k < c->reached.n; k++)
        if (!reach_users(scratch, c, c->reached.v[k], whole))
            return false;
    return c->shape && s != s->comp->root;
}

/* The dimensions that get shorter are looked up, an element each. */
static bool may_be_shorter(const Inst *s, const Shape *to)
{
    Ints         inserted = inst_ints(s, ATTR_INSERTED_WINDOW_DIMS), looked_up = inst_ints(s, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
    const Shape *from = inst_operand(s, 0)->shape;
    bool         shorter = false;
    for (int32_t d = 0; d < to->rank; d++) {
        if (to->dims[d] == from->dims[d])
            continue;
        if (!ints_has(inserted, d) || !ints_has(looked_up, d))
            return false;
        shorter = true;
    }
    return shorter && shape_count(to) > 0;
}

static Inst *beginning(Inst *at, Inst *x, const Shape *to)
{
    for (int32_t d = 0; d < to->rank; d++)
        if (x->shape->dims[d] != to->dims[d])
            x = expand_slice(at, x, d, 0, to->dims[d]);
    return x;
}

static const Shape *shorter(const Inst *i, const Shape *to)
{
    return shape_array(i->comp->module->arena, i->shape->type, to->rank, to->dims);
}

static Inst *shorter_scatter(Arena *scratch, Inst *s, const Shape *to)
{
    int32_t       n = s->n_operands / 2;
    Inst        **x = ARENA_ARRAY(scratch, Inst *, s->n_operands);
    const Shape **shapes = ARENA_ARRAY(scratch, const Shape *, n);
    for (int32_t k = 0; k < s->n_operands; k++)
        x[k] = k < n ? beginning(s, inst_operand(s, k), to) : inst_operand(s, k);
    for (int32_t k = 0; k < n; k++)
        shapes[k] = x[k]->shape;
    return expand_like(s, n == 1 ? shapes[0] : shape_tuple(s->comp->module->arena, n, shapes), s->n_operands, x);
}

/* The part of i, which is reached, that is left; those that it is made of have theirs in aux. */
static Inst *left_of(Arena *scratch, Inst *i, const Cut *c, Inst *scatter)
{
    if (i == c->scatter)
        return scatter;
    if (i->op == OP_GET_TUPLE_ELEMENT)
        return expand_element(i, scatter, (int32_t)inst_int(i, ATTR_INDEX, 0));
    Inst **x = ARENA_ARRAY(scratch, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++) {
        Inst *o = inst_operand(i, k);
        x[k] = is_reached(c, o) ? o->aux : shape_same_dims(o->shape, i->shape) ? beginning(i, o, c->shape) : o;
    }
    return expand_like(i, shorter(i, c->shape), i->n_operands, x);
}

static void cut(PassCtx *cx, Inst *s, const Cut *c)
{
    Inst *scatter = shorter_scatter(cx->scratch, s, c->shape);
    for (Inst *i = s; i; i = i->next)
        if (is_reached(c, i))
            i->aux = left_of(cx->scratch, i, c, scatter);
    for (int32_t k = 0; k < c->slices.n; k++) {
        Inst *slice = c->slices.v[k];
        inst_replace(slice, inst_operand(slice, 0)->aux);
        inst_delete_dead(slice, cx->scratch);
    }
}

static bool may_be_cut(const Inst *s)
{
    int32_t n = s->n_operands / 2;
    if (s->op != OP_SCATTER || !inst_is_free(s) || inst_ints(s, ATTR_INPUT_BATCHING_DIMS).n || shape_is_dynamic(inst_operand(s, 0)->shape))
        return false;
    for (int32_t k = 0; k < n; k++)
        if (inst_operand(s, k)->shape->layout || shape_is_dynamic(inst_operand(s, n + 1 + k)->shape))
            return false;
    return shape_is_tuple(s->shape) ? s->shape->n_elems == n : !s->shape->layout;
}

bool pass_scatter_slice_simplifier(Module *m, PassCtx *cx)
{
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->last, *prev; i && cx->rewrites < cx->limit && !(c->mark & (COMP_FUSED | COMP_OPAQUE)); i = prev) {
            prev = i->prev;
            Cut x = {.scatter = i};
            if (!may_be_cut(i) || !reach_all(cx->scratch, &x, i) || !may_be_shorter(i, x.shape))
                continue;
            cx->did_at = i->name;
            cut(cx, i, &x);
            cx->rewrites++;
        }
    return cx->rewrites > 0;
}
