/* convert-async-collectives-to-sync - exchanges that are awaited as soon as they are started are calls that wait.
 *
 *   %s = f32[8] all-reduce-start(%x), to_apply=%add
 *   %d = f32[8] all-reduce-done(%s)                        =>      %d = f32[8] all-reduce(%x), to_apply=%add
 *
 * Likewise async-start and async-done of a collective. Between the two stands nothing that computes, but for other starts and dones: that follows from the
 * schedule, so that a module without one stays as it is, unless {all} takes every pair, whatever stands between: on a backend that waits in the start
 * the two are worth nothing, and no other pass looks into them. The exchange stands where it was awaited. */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"

static bool is_start(const Inst *i)
{
    switch (i->op) {
    case OP_ALL_REDUCE_START: case OP_ALL_GATHER_START: case OP_COLLECTIVE_PERMUTE_START: return true;
    case OP_ASYNC_START: return op_has(inst_callee(i, 0)->root->op, F_COLLECTIVE);
    default: return false;
    }
}

/* Of a start; OP_COUNT: it is none. */
static Op awaited(Op start)
{
    switch (start) {
    case OP_ALL_REDUCE_START: return OP_ALL_REDUCE;
    case OP_ALL_GATHER_START: return OP_ALL_GATHER;
    case OP_COLLECTIVE_PERMUTE_START: return OP_COLLECTIVE_PERMUTE;
    default: return OP_COUNT;
    }
}

static bool is_done(const Inst *i)
{
    switch (i->op) {
    case OP_ALL_REDUCE_DONE: case OP_ALL_GATHER_DONE: case OP_COLLECTIVE_PERMUTE_DONE: case OP_ASYNC_DONE: return is_start(inst_operand(i, 0));
    default: return false;
    }
}

static bool computes_nothing(const Inst *i)
{
    switch (i->op) {
    case OP_PARAMETER: case OP_CONSTANT: case OP_BITCAST: case OP_TUPLE: case OP_GET_TUPLE_ELEMENT: case OP_AFTER_ALL: return true;
    default: return is_start(i) || is_done(i);
    }
}

static bool follows_at_once(const Inst *start, const Inst *done)
{
    const Inst *i = start->next;
    while (i != done && computes_nothing(i))
        i = i->next;
    return i == done;
}

/* Edges that begin at the start or end at the done may reach what stands between them. */
static bool may_be_one(const Inst *start, const Inst *done)
{
    return start->n_uses == 1 && start->n_control_succs == 0 && done->n_control == 0 && !inst_attr(start, ATTR_SLICE_SIZES) &&
           !shape_is_dynamic(done->shape);
}

/* The operands of a wrapped operation are parameters of its computation, here those of the start; NULL: it is more than one operation. */
static Inst **unwrapped_operands(Arena *scratch, const Inst *start)
{
    const Inst *r = inst_callee(start, 0)->root;
    Inst      **x = ARENA_ARRAY(scratch, Inst *, r->n_operands + 1);
    for (int32_t k = 0; k < r->n_operands; k++) {
        const Inst *p = inst_operand(r, k);
        if (p->op != OP_PARAMETER || p->param >= start->n_operands)
            return NULL;
        x[k] = inst_operand(start, (int32_t)p->param);
        if (!shape_equal(x[k]->shape, p->shape))
            return NULL;
    }
    return inst_callee(start, 0)->n_insts == inst_callee(start, 0)->n_params + 1 && shape_equal(r->shape, start->shape->elems[1]) ? x : NULL;
}

static Inst **own_operands(Arena *scratch, const Inst *start)
{
    Inst **x = ARENA_ARRAY(scratch, Inst *, start->n_operands + 1);
    for (int32_t k = 0; k < start->n_operands; k++)
        x[k] = inst_operand(start, k);
    return x;
}

/* One operation in the place of done, where it can be. */
static void make_one(PassCtx *cx, Inst *start, Inst *done)
{
    bool        wrapped = start->op == OP_ASYNC_START;
    const char *thread = inst_string(start, ATTR_ASYNC_EXECUTION_THREAD);
    const Inst *what = wrapped ? inst_callee(start, 0)->root : start;
    Inst      **x = wrapped ? unwrapped_operands(cx->scratch, start) : own_operands(cx->scratch, start);
    if (!x || thread)
        return;
    Inst *one = expand_op(done, wrapped ? what->op : awaited(start->op), done->shape, what->n_operands, x);
    inst_take_attrs(one, what);
    inst_set_callees(one, what->n_callees, what->callees);
    cx->did_at = done->name;
    inst_replace(done, one);
    inst_delete(done);
    inst_replace(start, one); /* its control edges */
    inst_delete(start);
    cx->rewrites++;
}

bool pass_convert_async_collectives_to_sync(Module *m, PassCtx *cx)
{
    bool all = pass_arg_is(cx, "all");
    VEC(Inst *) dones = {0};
    for (Comp *c = m->first; c && (all || m->is_scheduled); c = c->next)
        for (Inst *i = c->first; i && !c->async_wrapped; i = i->next)
            if (is_done(i) && may_be_one(inst_operand(i, 0), i) && (all || follows_at_once(inst_operand(i, 0), i)))
                vec_push(cx->scratch, &dones, i);
    for (int32_t k = 0; k < dones.n && cx->rewrites < cx->limit; k++)
        make_one(cx, inst_operand(dones.v[k], 0), dones.v[k]);
    return cx->rewrites > 0;
}
