/* Pads between elements or rows, on a CPU. Where what asks for one is made at the places of its group's root, the code's loops go by steps (emit/lower_value.c),
 * and padding costs nothing; anywhere else they would ask at each element whether it is padding. So such pads are in kernels that end with what puts them together:
 *
 *   e = pad(x), padding=0_1_1;  o = pad(y), padding=1_0_1;  s = add(e, o)         =>       s = fusion(x, y)
 *
 * Elements by turns, as an associative scan makes them and a gradient of what takes every other one: nothing else is in the kernel but what little their
 * operands are made of, since loops by steps are no vectors as other loops are. Rows that go apart are vectors as ever.
 *
 * Threads each have an element, and such a pad is movement to them like any other. */
#include "config.h"

#include "analysis/cost.h"
#include "passes/fusion.h"
#include "passes/util.h"

static bool goes_apart(const Inst *pad, int32_t d)
{
    return inst_attr(pad, ATTR_PADDING)->value.padding->v[d].interior > 0;
}

bool fusion_parts(const Inst *pad)
{
    bool apart = false;
    for (int32_t k = 0; k < pad->shape->rank; k++)
        apart |= goes_apart(pad, k);
    return apart;
}

static bool takes_away(const Inst *pad)
{
    bool away = false;
    for (int32_t k = 0; k < pad->shape->rank; k++) {
        PadDim p = inst_attr(pad, ATTR_PADDING)->value.padding->v[k];
        away |= p.lo < 0 || p.hi < 0;
    }
    return away;
}

static bool is_apart(const Inst *pad)
{
    const Inst *x = pad->op == OP_PAD ? inst_operand(pad, 0) : NULL;
    return x && pad->n_uses == 1 && inst_is_free(pad) && fusion_is_static(pad) && fusion_is_static(x) && !pad->shape->layout && !x->shape->layout &&
           fusion_parts(pad) && !takes_away(pad);
}

bool fusion_parts_neighbours(const Inst *pad)
{
    enum { ROW = 16 };
    int64_t together = 1;
    for (int32_t d = pad->shape->rank; d-- > 0 && together < ROW; together *= pad->shape->dims[d])
        if (goes_apart(pad, d))
            return true;
    return together < ROW;
}

bool fusion_only_turns(const Inst *i)
{
    if (!op_has(i->op, F_ELEMENTWISE) || inst_is_dear(i) || i->n_operands == 0)
        return false;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        if (o->n_uses > 1 || (!node(o)->turns && !is_apart(o)))
            return false;
    }
    return true;
}

Role fusion_role_apart(const Inst *pad)
{
    const Inst *sum = is_apart(pad) ? pad->uses->user : NULL;
    bool        together = sum && (node(sum)->turns || (op_has(sum->op, F_ELEMENTWISE) && !fusion_parts_neighbours(pad)));
    return together ? ROLE_APART : ROLE_NONE;
}

bool fusion_puts_together(const Inst *i)
{
    bool together = false;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        together |= node(o)->role == ROLE_APART || node(o)->turns;
    }
    return together;
}

/* The loops of i's group go over its elements as they do over the root's. */
static bool is_at_root(const Inst *i)
{
    const Node *n = node(i);
    return n->n_contexts == 1 && n->contexts[0] == n->contexts[0]->group->all;
}

/* Elements of pads alone: to store these costs half of what it costs to store the pads. */
static bool is_stored_together(const Inst *i)
{
    bool neighbours = false;
    if (!node(i)->turns || (i->n_uses == 1 && node(i->uses->user)->turns && is_at_root(i)))
        return false;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        neighbours |= node(o)->turns || fusion_parts_neighbours(o);
    }
    return neighbours || !is_at_root(i);
}

bool fusion_stays_out(const Inst *i)
{
    bool apart = false;
    for (int32_t k = 0; k < node(i)->n_contexts; k++)
        apart |= node(i)->contexts[k]->apart;
    return (apart && inst_is_dear(i)) || is_stored_together(i);
}

static bool all_found(const Inst *i, int32_t number)
{
    bool all = true;
    for (const Use *u = i->uses; u && all; u = u->next)
        all = node(u->user)->searched == number;
    return all;
}

static bool may_be_inside(const Inst *user, const Inst *o)
{
    Role r = node(o)->role;
    if (node(o)->turns || r == ROLE_APART)
        return node(user)->turns;
    return r == ROLE_MOVE || r == ROLE_VIEW || (r == ROLE_ELEMENTWISE && !inst_is_dear(o));
}

static bool count_few(Fuser *f, const Group *g)
{
    enum { MOST = 100, FEW = 8 };
    const Inst *list[MOST];
    int32_t     number = ++f->searches, n = 0, computed = 0;
    list[n++] = g->root;
    node(g->root)->searched = number;
    for (int32_t at = 0; at < n && n < MOST; at++)
        for (int32_t k = 0; k < list[at]->n_operands && n < MOST; k++) {
            const Inst *o = inst_operand(list[at], k);
            if (node(o)->searched == number || !may_be_inside(list[at], o) || !all_found(o, number))
                continue;
            node(o)->searched = number;
            computed += node(o)->role == ROLE_ELEMENTWISE && !node(o)->turns;
            list[n++] = o;
        }
    return n < MOST && computed <= FEW;
}

/* For nothing but what g ends with. */
static bool computes_little(Fuser *f, Group *g)
{
    if (g->computes == COMPUTES_UNKNOWN)
        g->computes = count_few(f, g) ? COMPUTES_LITTLE : COMPUTES_NOTHING;
    return g->computes == COMPUTES_LITTLE;
}

bool fusion_decide_apart(Fuser *f, Inst *pad)
{
    if (!fusion_collect_contexts(f, pad) || !is_at_root(pad))
        return false;
    node(pad)->reads = fusion_parts_neighbours(pad) && !computes_little(f, node(pad)->contexts[0]->group);
    return true;
}
