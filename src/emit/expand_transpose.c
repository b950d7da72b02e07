/* A large transpose inside a loop fusion, which would read or write memory with long steps, for itself: the runtime turns blocks that lie in the first cache.
 *
 *     out = fusion(x, y), kind=kLoop              =>   e = fusion(x), kind=kLoop        exp(x)
 *       transpose(exp(x)) + y                          t = transpose(e)
 *                                                      out = fusion(x, y, t), kind=kLoop    t + y
 *
 * One more pass over an array or two in order is less than one out of order. Where neighbours stay neighbours, and where less comes out than is turned, loops are as good. */
#include "emit/expand.h"
#include "emit/order_call.h"

#include "passes/util.h"

enum { LEAST = 1 << 15 }; /* elements: below, all of it lies in caches */

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

bool transpose_expands(const Inst *i)
{
    return i->op == OP_FUSION && i->n_callees == 1 && called_transpose(i);
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
    Inst *f = inst_new(i->comp, i, OP_FUSION, x->shape, i->n_operands, operands, NULL);
    inst_set_word(f, ATTR_FUSION_KIND, FUSION_LOOP);
    inst_set_callees(f, 1, &part);
    f->meta = i->meta;
    f->loc = i->loc;
    return f;
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
}
