/* Running what loop.c made: steps in order, each between places that are known. */
#include "eval/loop.h"

#include <string.h>

static void copy(char *to, const char *from, int64_t bytes)
{
    switch (bytes) {
    case 1: *to = *from; break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, (size_t)bytes);
    }
}

static void run_move(const LoopStep *s)
{
    for (int64_t j = 0; j < s->n; j++)
        copy(s->out + j * s->bytes, s->source[j], s->bytes);
}

/* Bytes from the first element of `whole` to the first of a window of size dims: starts are clamped, so that it lies inside. */
static int64_t window_at(const Shape *whole, const Shape *window, Value *const *starts, int bytes)
{
    int64_t at = 0, stride = bytes;
    for (int32_t k = whole->rank - 1; k >= 0; k--) {
        int64_t v = literal_get_s64(starts[k]->literal, 0), last = whole->dims[k] - window->dims[k];
        at += stride * (v < 0 ? 0 : v > last ? last : v);
        stride *= whole->dims[k];
    }
    return at;
}

static void run_slice(const LoopStep *s)
{
    const char *from = (const char *)s->from[0] + window_at(s->x[0]->shape, s->to->shape, s->x + 1, s->bytes);
    for (int64_t j = 0; j < s->n; j++)
        copy(s->out + j * s->bytes, from + s->where[j] * s->bytes, s->bytes);
}

static void run_update(const LoopStep *s)
{
    if (s->out != s->from[0])
        memcpy(s->out, s->from[0], (size_t)s->to->place->bytes);
    char *to = s->out + window_at(s->x[0]->shape, s->x[1]->shape, s->x + 2, s->bytes);
    for (int64_t j = 0; j < s->n; j++)
        copy(to + s->where[j] * s->bytes, (const char *)s->from[1] + j * s->bytes, s->bytes);
}

/* A value of the engine's into its place. */
static void store(const Value *to, const Literal *l)
{
    for (int32_t k = 0; k < to->n; k++)
        store(to->elems[k], l->elems[k]);
    if (!to->elems && l->count > 0)
        memcpy(to->literal->data, l->data, (size_t)literal_bytes(l));
}

static void run_handler(Eval *e, const LoopStep *s)
{
    Literal *few[8], **x = s->n_x <= 8 ? few : mem_alloc(s->n_x, sizeof *x);
    for (int32_t k = 0; k < s->n_x; k++)
        x[k] = literal_ref(s->x[k]->literal);
    Literal *r = eval_handlers[s->inst->op](e, s->inst, x);
    if (r && !e->failed)
        store(s->to, r);
    eval_drop(e, r);
    for (int32_t k = 0; k < s->n_x; k++)
        eval_drop(e, x[k]);
    if (x != few)
        mem_free(x);
}

static void run_loop(Eval *e, const Loop *l)
{
    for (int64_t trip = 0; !e->failed && eval_work(e, l->inst, 1); trip++) {
        loop_run_block(e, &l->test);
        if (e->failed || !*l->more || !eval_may_trip(e, l->inst, trip))
            break;
        loop_run_block(e, &l->body);
        for (const LoopCopy *c = l->nexts.v; c < l->nexts.v + l->nexts.n; c++)
            if (c->by)
                copy(c->by, c->from, c->bytes);
        for (const LoopCopy *c = l->nexts.v; c < l->nexts.v + l->nexts.n; c++)
            copy(c->to, c->by ? c->by : c->from, c->bytes);
    }
}

/* pred: true takes branch 0. s32: what is out of range takes the last branch. */
static void run_branch(Eval *e, const LoopStep *s)
{
    int64_t v = literal_get_s64(s->x[0]->literal, 0), last = s->inst->n_callees - 1;
    int64_t k = s->x[0]->shape->type == TYPE_PRED ? !v : v < 0 || v > last ? last : v;
    loop_run_block(e, &s->branch[k]);
    const Values *out = &s->branch[k].out;
    for (int32_t j = 0; j < out->n; j++) /* s->x has the leaves of the result behind the index */
        copy(s->x[1 + j]->literal->data, out->v[j]->literal->data, literal_bytes(out->v[j]->literal));
}

void loop_run_block(Eval *e, const LoopBlock *b)
{
    if (b->steps.n > 0 && !eval_work(e, b->steps.v[0].inst, b->work))
        return;
    for (const LoopStep *s = b->steps.v; s < b->steps.v + b->steps.n; s++)
        switch (s->kind) {
        case LOOP_KERNEL:
            if (s->direct)
                s->kernel->fn(s->kernel, s->out, s->from, s->n);
            else
                arith_run(s->kernel, s->out, s->from, s->n);
            break;
        case LOOP_MOVE: run_move(s); break;
        case LOOP_SLICE: run_slice(s); break;
        case LOOP_UPDATE: run_update(s); break;
        case LOOP_HANDLER:
            run_handler(e, s);
            if (e->failed)
                return;
            break;
        case LOOP_WHILE:
            for (const LoopCopy *c = s->loop->starts.v; c < s->loop->starts.v + s->loop->starts.n; c++)
                copy(c->to, c->from, c->bytes);
            run_loop(e, s->loop);
            if (e->failed)
                return;
            break;
        case LOOP_BRANCH:
            run_branch(e, s);
            if (e->failed)
                return;
        }
}

/* The engine's value of what is in its place; NULL after failing. */
static Literal *result(Eval *e, const Loop *l, const Value *v)
{
    if (v->elems) {
        Literal **elems = ARENA_ARRAY(e->scratch, Literal *, v->n);
        for (int32_t k = 0; k < v->n; k++)
            elems[k] = result(e, l, v->elems[k]);
        return eval_tuple_of(e, v->n, elems);
    }
    return eval_copy(e, l->inst, v->literal);
}

Literal *loop_run(Eval *e, Loop *l, Literal *state)
{
    store(l->tree, state);
    eval_drop(e, state);
    run_loop(e, l);
    return e->failed ? NULL : result(e, l, l->tree);
}
