/* A large transpose inside a loop fusion, which would read or write memory with long steps, for itself: the runtime turns blocks that lie in the first cache.
 *
 *     out = fusion(x, y), kind=kLoop              =>   e = fusion(x), kind=kLoop        exp(x)
 *       transpose(exp(x)) + y                          t = transpose(e)
 *                                                      out = fusion(x, y, t), kind=kLoop    t + y
 *
 * One more pass over an array or two in order is less than one out of order. Where neighbours stay neighbours, and where less comes out than is turned, loops are as good.
 *
 * An operand in another layout than the result's is a transpose that nobody wrote (the sum of x and the transpose of y, whose result has the layout of either). It is copied to that layout where
 * the loop across its lines meets so many of them that the first cache does not hold them until the next element of each is wanted, or where it is repeated so often that a copy is little. */
#include "emit/expand.h"
#include "emit/order_call.h"

#include <string.h>

#include "passes/util.h"

enum { LEAST = 1 << 15 }; /* elements: below, all of it lies in caches */
enum { MOST_RANK = 8, MOST_LOOKS = 256, MANY_LINES = 512, LINE = 64 /* bytes: what has fewer beside each other is read again from the same line soon */ };
enum { OFTEN = 8, OFTEN_LINES = 16 }; /* copies of each element; lines that loops across meet then */

static bool is_called(const Inst *x)
{
    OrderCall    o;
    const Shape *from = x->op == OP_TRANSPOSE ? inst_operand(x, 0)->shape : NULL;
    return from && shape_count(x->shape) >= LEAST && transpose_call(x, from, x->shape, &o) && o.axes.axis[o.axes.n - 1].from != 1;
}

/* The first one of the body: what it is made of holds none. */
static const Inst *called_transpose(const Inst *i)
{
    const Comp *body = inst_callee(i, 0);
    if (!shape_is_array(i->shape) || !layout_equal(i->shape->layout, body->root->shape->layout, i->shape->rank))
        return NULL;
    for (const Inst *x = body->first; x; x = x->next)
        if (is_called(x))
            return shape_count(x->shape) <= shape_count(i->shape) ? x : NULL;
    return NULL;
}

/* ---- operands in other layouts ---- */

/* of_x: the dimensions of x in the order that y, which repeats x, has its own in; the fastest one of y is one of x's. */
static bool repeated_order(const Inst *x, const Inst *y, const int64_t *of_y, int64_t *of_x)
{
    const Ints dims = inst_ints(y, ATTR_DIMENSIONS);
    int32_t    n = 0;
    for (int32_t k = 0; k < y->shape->rank; k++)
        for (int32_t d = 0; d < dims.n; d++)
            if (dims.v[d] == of_y[k])
                of_x[n++] = d;
    return x->shape->rank > 0 && dims.v[of_x[0]] == of_y[0];
}

/* The dimensions of x, the fastest one first, in the order in which root goes through them. False: something asks for x in another order, or not element by element, or not along
 * root's fastest dimension. */
static bool asked_order(const Inst *x, const Inst *root, int32_t *looks, int64_t *order)
{
    bool asked = x == root;
    for (int32_t k = 0; asked && k < x->shape->rank; k++)
        order[k] = layout_dim(x->shape, k);
    if (asked)
        return true;
    for (const Use *u = x->uses; u; u = u->next) {
        const Inst *y = u->user;
        int64_t     of_y[MOST_RANK], of_x[MOST_RANK];
        const bool  turns = y->op == OP_TRANSPOSE, repeats = y->op == OP_BROADCAST, same = op_has(y->op, F_ELEMENTWISE) && shape_is_array(y->shape) && shape_same_dims(x->shape, y->shape);
        if (--*looks < 0 || y->shape->rank > MOST_RANK || !(turns || repeats || same) || !asked_order(y, root, looks, of_y) || (repeats && !repeated_order(x, y, of_y, of_x)))
            return false;
        for (int32_t k = 0; k < x->shape->rank && !repeats; k++)
            of_x[k] = turns ? inst_ints(y, ATTR_DIMENSIONS).v[of_y[k]] : of_y[k];
        if (asked && memcmp(of_x, order, (size_t)x->shape->rank * sizeof *order) != 0)
            return false;
        memcpy(order, of_x, sizeof of_x);
        asked = true;
    }
    return asked;
}

const Shape *expand_ordered(Arena *a, const Shape *s, const int64_t *order)
{
    bool usual = true;
    for (int32_t k = 0; k < s->rank; k++)
        usual &= order[k] == s->rank - 1 - k;
    if (usual)
        return shape_with_layout(a, s, NULL);
    Layout *l = ARENA_NEW(a, Layout);
    *l = (Layout){ .minor_to_major = { arena_copy(a, order, (size_t)s->rank * sizeof *order), s->rank }, .tail_padding = 1, .index_type = TYPE_COUNT, .pointer_type = TYPE_COUNT };
    return shape_with_layout(a, s, l);
}

/* A parameter of the body that is read across many lines, and the order in which its elements are wanted; NULL: none. */
static const Inst *read_across(const Inst *i, int64_t *order)
{
    const Inst *root = inst_callee(i, 0)->root;
    OrderCall   o;
    if (!shape_is_array(i->shape) || i->shape->rank < 2 || i->shape->rank > MOST_RANK || !layout_equal(i->shape->layout, root->shape->layout, i->shape->rank))
        return NULL;
    for (const Inst *x = inst_callee(i, 0)->first; x; x = x->next) {
        int32_t looks = MOST_LOOKS;
        if (x->op != OP_PARAMETER || x == root || !shape_is_array(x->shape) || x->shape->rank < 2 || x->shape->rank > root->shape->rank || !asked_order(x, root, &looks, order))
            continue;
        const int64_t fastest = layout_dim(x->shape, 0);
        const bool    often = shape_count(root->shape) / OFTEN >= shape_count(x->shape);
        if (x->shape->dims[order[0]] < (often ? OFTEN_LINES : MANY_LINES) || fastest == order[0] || x->shape->dims[fastest] * type_bytes(x->shape->type) < LINE)
            continue;
        if (often || transpose_call(i, x->shape, expand_ordered(i->comp->module->arena, x->shape, order), &o))
            return x;
    }
    return NULL;
}

/* The parameter as a copy in that order, in a body of i's own; the copy. */
static const Inst *copied_inside(Inst *i, const Inst *parameter, const int64_t *order)
{
    Comp *body = inst_callee(i, 0), *own = comp_clone(body, body->name);
    Inst *x = own->first;
    for (const Inst *y = body->first; y != parameter; y = y->next)
        x = x->next;
    Inst *copy = inst_new(own, x->next, OP_COPY, expand_ordered(i->comp->module->arena, x->shape, order), 1, &x, NULL);
    inst_replace(x, copy);
    inst_set_callees(i, 1, &own);
    return copy;
}

bool transpose_expands(const Inst *i)
{
    int64_t order[MOST_RANK];
    return i->op == OP_FUSION && i->n_callees == 1 && (called_transpose(i) || read_across(i, order));
}

/* x of i's body in front of i: an operand, or a fusion of what makes it. */
static Inst *made_before(Inst *i, const Inst *x)
{
    if (x->op == OP_PARAMETER)
        return inst_operand(i, (int32_t)x->param);
    Comp *body = inst_callee(i, 0), *part = comp_clone(body, body->name);
    Inst *root = part->first;
    for (const Inst *y = body->first; y != x; y = y->next)
        root = root->next;
    part->root = root;
    comp_sweep_dead(part, part->n_insts);
    Inst **operands = ARENA_ARRAY(i->comp->module->arena, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        operands[k] = inst_operand(i, k);
    return expand_fusion(i, FUSION_LOOP, part, i->n_operands, operands);
}

void expand_transposes(Inst *i)
{
    for (const Inst *x; (x = called_transpose(i));) {
        Inst *from = made_before(i, inst_operand(x, 0)), *turned = inst_clone_into(i->comp, i, x, 1, &from);
        if (x == inst_callee(i, 0)->root) {
            inst_replace(i, turned);
            inst_delete(i);
            return;
        }
        i = output_replace(i, 1, &x, &turned);
    }
    int64_t order[MOST_RANK];
    for (const Inst *x; (x = read_across(i, order));) {
        Inst       *from = inst_operand(i, (int32_t)x->param);
        const Inst *inside = copied_inside(i, x, order);
        Inst       *outside = inst_new(i->comp, i, OP_COPY, inside->shape, 1, &from, NULL);
        outside->meta = i->meta;
        outside->loc = i->loc;
        i = output_replace(i, 1, &inside, &outside);
    }
}
