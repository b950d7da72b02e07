/* logistic-expander - logistic as the arithmetic that it stands for.
 *
 *   ROOT %l = f32[8] logistic(%x)      =>     %n = f32[8] negate(%x)         %e = f32[8] exponential(%n)
 *                                             %s = f32[8] add(%one, %e)      ROOT %d = f32[8] divide(%one, %s)
 *
 * Rounds in each step. No level runs it: both backends know the opcode. */
#include "config.h"

#include "passes/pass.h"

#include "passes/util.h"

static Inst *step(const Inst *l, Op op, int32_t n, Inst *const *operands)
{
    Inst *i = inst_new(l->comp, (Inst *)(uintptr_t)l, op, l->shape, n, operands, NULL);
    i->meta = l->meta;
    i->loc = l->loc;
    return i;
}

static Inst *one_like(Inst *l)
{
    Inst *one = inst_constant(l->comp, l, literal_from_s64(l->shape->type, 1), NULL);
    one->meta = l->meta;
    one->loc = l->loc;
    if (l->shape->rank == 0)
        return one;
    Inst *b = step(l, OP_BROADCAST, 1, &one);
    inst_set_ints(b, ATTR_DIMENSIONS, (Ints){NULL, 0});
    return b;
}

static bool expand(PassCtx *cx, Inst *l)
{
    Inst *x = inst_operand(l, 0);
    if (!inst_is_free(l) || x->shape->type != l->shape->type)
        return false;
    Inst *one = one_like(l), *n = step(l, OP_NEGATE, 1, &x), *e = step(l, OP_EXPONENTIAL, 1, &n);
    Inst *sum = step(l, OP_ADD, 2, (Inst *[]){one, e});
    inst_replace(l, step(l, OP_DIVIDE, 2, (Inst *[]){one, sum}));
    inst_delete_dead(l, cx->scratch);
    return true;
}

bool pass_logistic_expander(Module *m, PassCtx *cx)
{
    int64_t before = cx->rewrites;
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first, *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            if (i->op == OP_LOGISTIC)
                cx->rewrites += expand(cx, i);
        }
    return cx->rewrites > before;
}
