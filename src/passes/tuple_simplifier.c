/* tuple-simplifier - elements of tuples that are put together right before, tuples of the elements of a tuple.
 *
 *   %t = (f32[4], f32[4]) tuple(%x, %y)
 *   ROOT %e = f32[4] get-tuple-element(%t), index=1        =>        ROOT %y
 *
 *   %t = (f32[4], f32[4]) tuple(%s#0, %s#1)                =>        %s
 *
 * Operands stand before their users, so that one walk follows nested tuples, too. */
#include "config.h"

#include "passes/pass.h"
#include "passes/util.h"

static Inst *whole_of(const Inst *t)
{
    Inst *s = t->n_operands && inst_operand(t, 0)->op == OP_GET_TUPLE_ELEMENT ? inst_operand(inst_operand(t, 0), 0) : NULL;
    for (int32_t k = 0; s && k < t->n_operands; k++) {
        const Inst *e = inst_operand(t, k);
        if (e->op != OP_GET_TUPLE_ELEMENT || inst_operand(e, 0) != s || inst_int(e, ATTR_INDEX, 0) != k)
            return NULL;
    }
    return s;
}

static Inst *simpler(const Inst *i)
{
    Inst *s = NULL;
    if (i->op == OP_GET_TUPLE_ELEMENT && inst_operand(i, 0)->op == OP_TUPLE)
        s = inst_operand(inst_operand(i, 0), (int32_t)inst_int(i, ATTR_INDEX, 0));
    else if (i->op == OP_TUPLE)
        s = whole_of(i);
    return s && shape_equal(s->shape, i->shape) ? s : NULL;
}

bool pass_tuple_simplifier(Module *m, PassCtx *cx)
{
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first, *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            Inst *s = inst_is_free(i) && (i->n_uses || c->root == i) ? simpler(i) : NULL;
            if (!s)
                continue;
            cx->did_at = i->name;
            inst_replace(i, s);
            inst_delete_dead(i, cx->scratch);
            cx->rewrites++;
        }
    return cx->rewrites > 0;
}
