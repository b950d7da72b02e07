/* Calls, loops, branches, tuples, and the opcodes whose value is an operand's. Source: reference operations 14, 15, 17, 18. */
#include <string.h>

#include "eval/engine.h"
#include "eval/loop.h"

EvalFn eval_tuple, eval_get_tuple_element, eval_call, eval_while, eval_conditional, eval_after_all, eval_copy_start,
    eval_copy_done, eval_async, eval_device_id;

Literal *eval_tuple(Eval *e, const Inst *i, Literal **x)
{
    Literal *r = literal_tuple(i->n_operands, x);
    for (int32_t k = 0; k < i->n_operands; k++)
        x[k] = NULL;
    return r;
}

Literal *eval_get_tuple_element(Eval *e, const Inst *i, Literal **x)
{
    return literal_ref(x[0]->elems[inst_int(i, ATTR_INDEX, 0)]);
}

/* call and fusion */
Literal *eval_call(Eval *e, const Inst *i, Literal **x)
{
    return eval_comp(e, i, inst_callee(i, 0), x);
}

static bool is_true(Eval *e, Literal *l)
{
    bool yes = l && *(const uint8_t *)l->data;
    eval_drop(e, l);
    return yes;
}

Literal *eval_while(Eval *e, const Inst *i, Literal **x)
{
    Literal *state = eval_move(x, 0);
    Loop *small = e->watch ? NULL : loop_get(e, i);
    if (small)
        return loop_run(e, small, state);
    for (int64_t trip = 0; !e->failed && eval_work(e, i, 1); trip++) {
        Literal *seen = literal_ref(state);
        e->trip = trip;
        if (!is_true(e, eval_comp(e, i, while_condition(i), &seen)))
            break;
        state = eval_trip(e, i, while_body(i), &state, trip);
    }
    return state;
}

/* pred: true takes branch 0. s32: what is out of range takes the last branch. */
Literal *eval_conditional(Eval *e, const Inst *i, Literal **x)
{
    int64_t v = literal_get_s64(x[0], 0), branch = v;
    if (x[0]->type == TYPE_PRED)
        branch = v ? 0 : 1;
    else if (v < 0 || v >= i->n_callees)
        branch = i->n_callees - 1;
    return eval_comp(e, i, inst_callee(i, (int32_t)branch), &x[1 + branch]);
}

Literal *eval_after_all(Eval *e, const Inst *i, Literal **x)
{
    return literal_token();
}

Literal *eval_zeros(Eval *e, const Inst *i, const Shape *s)
{
    if (s->type == TYPE_TOKEN)
        return literal_token();
    if (!shape_is_tuple(s)) {
        Literal *l = eval_new_for(e, i, s);
        if (l && l->data)
            memset(l->data, 0, (size_t)literal_bytes(l));
        return l;
    }
    Literal **v = ARENA_ARRAY(e->scratch, Literal *, s->n_elems);
    for (int32_t k = 0; k < s->n_elems; k++)
        v[k] = eval_zeros(e, i, s->elems[k]);
    return eval_tuple_of(e, s->n_elems, v);
}

/* (destination, source, context) */
Literal *eval_copy_start(Eval *e, const Inst *i, Literal **x)
{
    Literal *context = eval_zeros(e, i, i->shape->elems[2]);
    if (!context)
        return NULL;
    Literal *v[] = {literal_ref(x[0]), eval_move(x, 0), context};
    return literal_tuple(3, v);
}

Literal *eval_copy_done(Eval *e, const Inst *i, Literal **x)
{
    return literal_ref(x[0]->elems[0]);
}

/* Asynchronous steps: ((arguments), result, context...). The work is done by the step that binds the last argument. */
static Literal *async_value(Eval *e, const Inst *i, int32_t n, Literal **args)
{
    const Shape *s = i->shape;
    const Comp *c = inst_callee(i, 0);
    Literal **v = ARENA_ARRAY(e->scratch, Literal *, s->n_elems), **own = ARENA_ARRAY(e->scratch, Literal *, n);
    for (int32_t k = 0; k < n; k++)
        own[k] = literal_ref(args[k]);
    v[0] = literal_tuple(n, args);
    for (int32_t k = 0; k < n; k++)
        args[k] = NULL;
    v[1] = n == c->n_params ? eval_comp(e, i, c, own) : eval_zeros(e, i, s->elems[1]);
    for (int32_t k = 0; k < n; k++)
        eval_drop(e, own[k]);
    for (int32_t k = 2; k < s->n_elems; k++)
        v[k] = eval_zeros(e, i, s->elems[k]);
    return eval_tuple_of(e, s->n_elems, v);
}

static Literal *async_update(Eval *e, const Inst *i, Literal **x)
{
    if (i->n_operands == 1)
        return eval_move(x, 0);
    const Literal *bound = x[0]->elems[0];
    int32_t n = bound->n_elems + i->n_operands - 1;
    Literal **args = ARENA_ARRAY(e->scratch, Literal *, n);
    for (int32_t k = 0; k < n; k++)
        args[k] = k < bound->n_elems ? literal_ref(bound->elems[k]) : eval_move(x, k - bound->n_elems + 1);
    return async_value(e, i, n, args);
}

Literal *eval_async(Eval *e, const Inst *i, Literal **x)
{
    if (i->op == OP_ASYNC_START)
        return async_value(e, i, i->n_operands, x);
    return i->op == OP_ASYNC_UPDATE ? async_update(e, i, x) : literal_ref(x[0]->elems[1]);
}

Literal *eval_device_id(Eval *e, const Inst *i, Literal **x)
{
    Literal *r = eval_new_for(e, i, i->shape);
    if (r)
        literal_set_s64(r, 0, i->op == OP_REPLICA_ID ? e->device / e->on.partitions : e->device % e->on.partitions);
    return r;
}
