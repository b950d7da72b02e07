/* conditional-to-select - in what is applied to elements, a choice computes both branches.
 *
 *   map(x), to_apply: conditional(p, a, b), true: negate, false: cosine
 *         =>
 *   map(x), to_apply: select(p, negate(a), cosine(b))
 *
 * Bodies of map, reduce, sort, ... : scalars, where a branch costs more than what it saves, and where loops over elements cannot branch. Two
 * branches that give one array and have no effects become calls, which inlining takes in. */
#include "config.h"

#include "passes/pass.h"
#include "passes/util.h"

static Inst *call_branch(Inst *c, int32_t branch)
{
    Inst *x = inst_operand(c, branch + 1);
    Comp *body = inst_callee(c, branch);
    Inst *call = inst_new(c->comp, c, OP_CALL, c->shape, 1, &x, NULL);
    inst_set_callees(call, 1, &body);
    call->meta = c->meta;
    return call;
}

static bool fits(const Inst *c)
{
    return c->op == OP_CONDITIONAL && c->n_callees == 2 && inst_is_free(c) && shape_is_scalar(c->shape) &&
           inst_operand(c, 0)->shape->type == TYPE_PRED && shape_equal(inst_callee(c, 0)->root->shape, c->shape) &&
           shape_equal(inst_callee(c, 1)->root->shape, c->shape);
}

bool pass_conditional_to_select(Module *m, PassCtx *cx)
{
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first, *next; i && cx->rewrites < cx->limit && (c->mark & COMP_EMBEDDED); i = next) {
            next = i->next;
            if (!fits(i))
                continue;
            Inst *operands[] = {inst_operand(i, 0), call_branch(i, 0), call_branch(i, 1)};
            Inst *s = inst_new(c, i, OP_SELECT, i->shape, 3, operands, NULL);
            cx->did_at = i->name;
            inst_replace(i, s);
            inst_delete_dead(i, cx->scratch);
            cx->rewrites++;
        }
    return cx->rewrites > 0;
}
