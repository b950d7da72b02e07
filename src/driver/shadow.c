/* The two evaluations, and their decisions: instructions that make integers or pred of floats. Where the two decide differently, what follows may
 * have nothing to do with rounding. Decisions are compared step by step, by the path of the step (place_key). */
#include "config.h"

#include "driver/shadow_int.h"

#include "driver/find.h"
#include "driver/inputs.h"

static void free_shadow(void *cookie)
{
    Shadow *s = cookie;
    for (int32_t k = 0; k < s->held.n; k++)
        literal_unref(s->held.v[k]);
    if (s->exact)
        literals_unref(s->n_results, s->exact);
    module_free(s->own);
    module_free(s->raised);
}

Shadow *shadow_open(Arena *a, const Module *m, const EvalHost *host, Diag *d)
{
    Shadow *s = ARENA_NEW(a, Shadow);
    *s = (Shadow){.arena = a, .own = module_clone(m), .raised = shadow_module(m), .names = interner_new(a), .values = map_new(a), .decisions = map_new(a)};
    arena_defer(a, free_shadow, s);
    Devices one = {1, 1};
    return eval_supported_with(s->own, host, one, d) && eval_supported_with(s->raised, host, one, d) ? s : NULL;
}

bool shadow_inexact(Type t)
{
    return type_is_float(t) || type_is_complex(t);
}

/* ---- decisions ---- */

static bool has_exact_leaf(const Shape *s)
{
    bool has = type_is_array(s->type) && !shadow_inexact(s->type);
    for (int32_t k = 0; k < s->n_elems && !has; k++)
        has = has_exact_leaf(s->elems[k]);
    return has;
}

static bool is_decision(const Inst *i)
{
    bool floats = false;
    switch (i->op) {
    case OP_BITCAST: case OP_BITCAST_CONVERT: case OP_TUPLE: case OP_OPT_BARRIER: case OP_GET_DIMENSION_SIZE: return false;
    default: break;
    }
    if (inst_has_steps(i))
        return false;
    for (int32_t k = 0; k < i->n_operands; k++)
        floats |= shadow_inexact(inst_operand(i, k)->shape->type);
    return floats && has_exact_leaf(i->shape);
}

static const char *key_of(Shadow *s, const EvalStep *step)
{
    Buf b = {0};
    place_key(&b, NULL, step);
    const char *key = intern_str(s->names, b.p);
    buf_free(&b);
    return key;
}

static bool keep_decision(void *cookie, const EvalStep *step)
{
    Shadow *s = cookie;
    if (!is_decision(step->inst))
        return true;
    Literal *l = literal_ref(step->value);
    map_put(&s->values, key_of(s, step), l);
    vec_push(s->arena, &s->held, l);
    return true;
}

static void count_changed(Decision *d, const Literal *own, const Literal *raised)
{
    if (own->type == TYPE_TUPLE) {
        for (int32_t k = 0; k < own->n_elems; k++)
            count_changed(d, own->elems[k], raised->elems[k]);
        return;
    }
    if (shadow_inexact(own->type) || own->count != raised->count) /* of another size: what decided that is counted */
        return;
    d->elements += own->count;
    for (int64_t k = 0; k < own->count; k++)
        d->changed += literal_get_s64(own, k) != literal_get_s64(raised, k);
}

static bool compare_decision(void *cookie, const EvalStep *step)
{
    Shadow *s = cookie;
    if (!is_decision(step->inst))
        return true;
    const Literal *own = map_get(&s->values, key_of(s, step));
    if (!own) {
        s->unmatched++;
        return true;
    }
    const char *name = intern_str(s->names, step->inst->name);
    Decision   *d = map_get(&s->decisions, name);
    if (!d) {
        d = ARENA_NEW(s->arena, Decision);
        *d = (Decision){.name = name, .op = step->inst->op};
        map_put(&s->decisions, name, d);
        vec_push(s->arena, &s->list, d);
    }
    s->matched++;
    d->runs++;
    count_changed(d, own, step->value);
    return true;
}

bool shadow_run(Shadow *s, const Execution *like, Literal *const *args, Diag *d)
{
    const Signature *sig = like->signature;
    EvalWatch        keep = {.cookie = s, .after = keep_decision}, compare = {.cookie = s, .after = compare_decision};
    Execution        e = {.signature = sig, .seed = like->seed, .calls = like->calls, .feeds = like->feeds, .max_trips = like->max_trips, .threads = like->threads};
    Literal        **own = ARENA_ARRAY(s->arena, Literal *, sig->n_results), **raised = ARENA_ARRAY(s->arena, Literal *, sig->n_args);
    RunTimes         times;
    e.module = s->own;
    e.watch = &keep;
    if (!execution_run(&e, args, own, &times, d))
        return false;
    literals_unref(sig->n_results, own);
    for (int32_t k = 0; k < sig->n_args; k++)
        raised[k] = shadow_raise(args[k]);
    Literal **exact = ARENA_ARRAY(s->arena, Literal *, sig->n_results);
    e.module = s->raised;
    e.watch = &compare;
    bool ok = execution_run(&e, raised, exact, &times, d);
    literals_unref(sig->n_args, raised);
    if (ok) {
        s->exact = exact;
        s->n_results = sig->n_results;
    }
    return ok;
}
