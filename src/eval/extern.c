/* Custom calls of functions from outside (ir/hlo_custom_call.h). Values are row-major here; arrays whose type wants another order are
 * brought into it and back. */
#include "eval/engine.h"

#include <stdlib.h>
#include <string.h>

#include "eval/walk.h"

EvalFn eval_extern;

/* The values of from in l, of the same type and sizes; both orders of memory are given by strides. */
static void copy_ordered(const Literal *l, const int64_t *to_strides, const Literal *from, const int64_t *from_strides)
{
    Odometer o = {.rank = l->rank, .arrays = 2};
    for (int32_t d = 0; d < l->rank; d++) {
        o.dims[d] = l->dims[d];
        o.stride[0][d] = to_strides[d];
        o.stride[1][d] = from_strides[d];
    }
    walk_copy(&o, l->data, from->data, type_bytes(l->type));
}

/* Row-major values in the order of memory that s has, or back. NULL after failing. Takes over the reference. */
static Literal *ordered(Eval *e, const Inst *i, Literal *l, const Shape *s, bool back)
{
    int64_t own[WALK_RANK], plain[WALK_RANK];
    if (!l || layout_is_row_major(s))
        return l;
    Literal *r = eval_new_for(e, i, s);
    if (r) {
        shape_strides(s, own);
        walk_strides(s->rank, s->dims, plain);
        copy_ordered(r, back ? plain : own, l, back ? own : plain);
    }
    eval_drop(e, l);
    return r;
}

typedef struct Call {
    const ExternCall *what;
    Literal   **operands, **results; /* one reference each */
    int32_t     n_operands;
} Call;

static void add_operands(Eval *e, const Inst *i, Call *c, Literal *l)
{
    if (l->type == TYPE_TUPLE)
        for (int32_t k = 0; k < l->n_elems; k++)
            add_operands(e, i, c, l->elems[k]);
    else if (type_is_array(l->type)) {
        c->operands[c->n_operands] = ordered(e, i, literal_ref(l), c->what->operands[c->n_operands], false);
        c->n_operands++;
    }
}

static hlo_buffer buffer_of(Arena *a, const Shape *s, const Literal *l)
{
    Ints order = ints_make(a, s->rank);
    for (int32_t k = 0; k < s->rank; k++)
        *ints_at(order, k) = layout_dim(s, k);
    return (hlo_buffer){ type_name(s->type), s->rank, s->dims, order.v, l->data, literal_bytes(l) };
}

/* Runs it; an operand that is paired with a result is handed over as that. */
static void run_extern(Eval *e, const Inst *i, hlo_custom_call *run, const Call *c)
{
    const ExternCall *x = c->what;
    Arena            *a = arena_new();
    hlo_buffer       *in = ARENA_ARRAY(a, hlo_buffer, x->n_operands), *out = ARENA_ARRAY(a, hlo_buffer, x->n_results);
    char              text[512] = "it failed";
    for (int32_t k = 0; k < x->n_operands; k++)
        in[k] = buffer_of(a, x->operands[k], c->operands[k]);
    for (int32_t k = 0; k < x->n_results; k++) {
        out[k] = buffer_of(a, x->results[k], c->results[k]);
        if (x->alias[k] >= 0)
            in[x->alias[k]].data = out[k].data;
    }
    const hlo_call call = { sizeof call, x->api_version, x->target, x->name, x->config, (uint64_t)x->config_bytes, x->n_operands, x->n_results,
                            x->n_attributes, in, out, x->attributes, text, sizeof text };
    int status = run(&call);
    text[sizeof text - 1] = 0;
    if (status)
        eval_fail(e, i, "%s%s", x->who, text);
    arena_free(a);
}

static Literal *new_result(Eval *e, const Inst *i, const Call *c, int32_t k)
{
    int32_t o = c->what->alias[k];
    return o >= 0 ? eval_copy(e, i, c->operands[o]) : eval_new_for(e, i, c->what->results[k]);
}

/* The value of shape s from the leaves at *next; the references pass on. */
static Literal *gathered(const Shape *s, Literal **leaves, int32_t *next)
{
    if (s->type == TYPE_TOKEN)
        return literal_token();
    if (!shape_is_tuple(s))
        return eval_move(leaves, (*next)++);
    Literal *r = literal_tuple(s->n_elems, NULL);
    for (int32_t k = 0; k < s->n_elems; k++)
        r->elems[k] = gathered(s->elems[k], leaves, next);
    return r;
}

static const ExternCall *described(Eval *e, const Inst *i)
{
    ExternCall *x = map_get(&e->externs, i);
    const char *why;
    if (x)
        return x;
    x = ARENA_NEW(e->arena, ExternCall);
    if ((why = extern_call(e->arena, i, x)) != NULL) {
        eval_fail(e, i, "custom-call %%%s: %s", i->name, why);
        return NULL;
    }
    map_put(&e->externs, i, x);
    return x;
}

static hlo_custom_call *function(const Eval *e, const ExternCall *x)
{
    const ExternCalls *calls = e->options->host ? e->options->host->calls : NULL;
    return calls ? calls->find(calls->cookie, x->symbol) : NULL;
}

Literal *eval_extern(Eval *e, const Inst *i, Literal **x)
{
    Call c = {.what = described(e, i)};
    if (!c.what)
        return NULL;
    hlo_custom_call *run = function(e, c.what);
    if (!run)
        return eval_fail(e, i, "no implementation for custom-call target \"%s\" (%%%s)", c.what->target, i->name);
    int32_t  n = c.what->n_operands, m = c.what->n_results, next = 0;
    Literal **all = mem_alloc(n + m, sizeof *all), *r = NULL;
    c.operands = all;
    c.results = all + n;
    memset(all, 0, (size_t)(n + m) * sizeof *all);
    for (int32_t k = 0; k < i->n_operands; k++)
        add_operands(e, i, &c, x[k]);
    for (int32_t k = 0; k < m && !e->failed; k++)
        c.results[k] = new_result(e, i, &c, k);
    if (!e->failed)
        run_extern(e, i, run, &c);
    for (int32_t k = 0; k < m && !e->failed; k++)
        c.results[k] = ordered(e, i, c.results[k], c.what->results[k], true);
    if (!e->failed)
        r = gathered(i->shape, c.results, &next);
    for (int32_t k = 0; k < n + m; k++)
        eval_drop(e, all[k]);
    free(all);
    return r;
}
