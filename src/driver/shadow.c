/* Errors are measured against the results in double precision: the largest and the root of the mean square, over elements that are finite
 * there. Which of two sides is worse is decided by the mean square; within a factor of two neither is.
 *
 * A decision is an instruction that makes integers or pred of floats: where the two evaluations decide differently, what follows may
 * have nothing to do with rounding. Decisions are compared step by step, by the path of the step (place_key). */
#include "config.h"

#include "driver/shadow.h"

#include <inttypes.h>
#include <math.h>

#include "driver/find.h"
#include "driver/inputs.h"
#include "ir/numeric.h"
#include "support/vec.h"

typedef struct Decision {
    const char *name;
    Op          op;
    int64_t     runs, elements, changed; /* elements: of all runs that both had */
} Decision;

struct Shadow {
    Arena           *arena;
    Module          *own, *raised;
    int32_t          n_results;
    Literal        **exact;
    Interner        *names;
    Map              values;    /* key -> Literal of the run in own types */
    VEC(Literal *)   held;
    Map              decisions; /* name -> Decision */
    VEC(Decision *)  list;
    int64_t          matched, unmatched; /* steps */
};

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

/* ---- decisions ---- */

static bool is_inexact(Type t)
{
    return type_is_float(t) || type_is_complex(t);
}

static bool has_exact_leaf(const Shape *s)
{
    bool has = type_is_array(s->type) && !is_inexact(s->type);
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
        floats |= is_inexact(inst_operand(i, k)->shape->type);
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
    if (is_inexact(own->type) || own->count != raised->count) /* of another size: what decided that is counted */
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

/* ---- errors ---- */

typedef struct Distance {
    int64_t finite;         /* elements that are finite on both sides */
    int64_t wrong;          /* elements that are finite on one side alone, or another infinity; of integers and pred: that differ */
    int64_t at;             /* where the largest error is */
    double  largest, mean;  /* mean: the root of the mean square */
} Distance;

static double part(const Literal *l, int64_t i, bool imag)
{
    return imag ? literal_get_imag(l, i) : literal_get_f64(l, i);
}

/* What is too large for the type is an infinity there, and right so. */
static double rounded(Type t, double v)
{
    return float_decode(t, float_encode(t, v));
}

static void measure_part(Distance *d, const Literal *l, const Literal *exact, int64_t i, bool imag)
{
    double v = part(l, i, imag), e = part(exact, i, imag);
    if (!isfinite(v) || !isfinite(e)) {
        double r = rounded(type_component(l->type), e);
        d->wrong += !(v == r || (isnan(v) && isnan(r)));
        return;
    }
    double off = fabs(v - e);
    d->finite++;
    d->mean += off * off;
    if (off > d->largest) {
        d->largest = off;
        d->at = i;
    }
}

static Distance distance_of(const Literal *l, const Literal *exact)
{
    Distance d = {0};
    for (int64_t i = 0; i < l->count; i++) {
        if (!is_inexact(l->type)) {
            d.wrong += literal_get_s64(l, i) != literal_get_s64(exact, i);
            continue;
        }
        measure_part(&d, l, exact, i, false);
        if (type_is_complex(l->type))
            measure_part(&d, l, exact, i, true);
    }
    d.mean = d.finite > 0 ? sqrt(d.mean / (double)d.finite) : 0;
    return d;
}

static void put_distance(Buf *b, const char *side, const Literal *l, const Distance *d)
{
    buf_printf(b, "  %-9s", side);
    if (is_inexact(l->type)) {
        buf_printf(b, "largest error %.3g", d->largest);
        if (d->largest > 0) {
            buf_puts(b, " at ");
            place_index(b, l, d->at);
        }
        buf_printf(b, ", root of the mean square %.3g", d->mean);
        if (d->wrong)
            buf_printf(b, ", %" PRId64 " finite on one side alone", d->wrong);
    } else
        buf_printf(b, "%" PRId64 " of %" PRId64 " differ", d->wrong, l->count);
    buf_putc(b, '\n');
}

/* < 0: x is worse, > 0: y is, 0: neither. */
static int worse(const Distance *x, const Distance *y)
{
    if (x->wrong != y->wrong)
        return x->wrong > y->wrong ? -1 : 1;
    return x->mean > 2 * y->mean ? -1 : y->mean > 2 * x->mean ? 1 : 0;
}

static void put_worse(Buf *b, const char *who, const Distance *bad, const Distance *good)
{
    buf_printf(b, "  %s worse", who);
    if (bad->wrong == good->wrong && good->mean > 0)
        buf_printf(b, ", %.3g times", bad->mean / good->mean);
    buf_putc(b, '\n');
}

static Verdict report_expected(Buf *b, const Literal *actual, const Literal *expected, const Literal *exact, const Distance *run)
{
    Distance d = distance_of(expected, exact);
    put_distance(b, "expected", expected, &d);
    int who = worse(run, &d);
    if (who < 0)
        put_worse(b, "the run is", run, &d);
    else if (who > 0)
        put_worse(b, "the expected values are", &d, run);
    else
        buf_puts(b, literal_equal(actual, expected) ? "  both are the same\n" : "  they differ, and neither is worse\n");
    return who < 0 ? RESULTS_DIFFER : RESULTS_AGREE;
}

/* exact in the type of a result. */
static Literal *lowered(const Literal *exact, Type t)
{
    Literal *l = literal_new(t, exact->rank, exact->dims);
    for (int64_t k = 0; k < l->count; k++)
        if (is_inexact(t))
            literal_set_f64(l, k, literal_get_f64(exact, k), type_is_complex(t) ? literal_get_imag(exact, k) : 0);
        else
            literal_set_s64(l, k, literal_get_s64(exact, k));
    return l;
}

static Verdict report_alone(Buf *b, const Literal *actual, const Literal *exact, const ErrorModel *error)
{
    Literal   *e = lowered(exact, actual->type);
    Tolerance  t = tolerance_default(e, error);
    Comparison c;
    bool       ok = compare_literals(actual, e, &t, &c);
    buf_printf(b, ok ? "  within the default tolerance\n" : "  %" PRId64 " of %" PRId64 " elements are beyond the default tolerance\n", c.wrong, c.count);
    literal_unref(e);
    return ok ? RESULTS_AGREE : RESULTS_DIFFER;
}

static void report_decisions(Buf *b, const Shadow *s)
{
    enum { SHOWN = 10 };
    int64_t instructions = 0, elements = 0, kept = (int64_t)s->held.n - s->matched;
    for (int32_t k = 0; k < s->list.n; k++) {
        instructions += s->list.v[k]->changed > 0;
        elements += s->list.v[k]->changed;
    }
    if (instructions == 0 && s->unmatched == 0 && kept == 0) {
        if (s->list.n > 0)
            buf_printf(b, "decisions: double precision makes the same, at %d instruction%s\n", s->list.n, s->list.n == 1 ? "" : "s");
        return;
    }
    buf_printf(b, "decisions: double precision makes %" PRId64 " otherwise, at %" PRId64 " of %d instructions; what follows differs by more than rounding\n",
               elements, instructions, s->list.n);
    int shown = 0;
    for (int32_t k = 0; k < s->list.n && shown < SHOWN; k++)
        if (s->list.v[k]->changed > 0) {
            const Decision *d = s->list.v[k];
            buf_printf(b, "  %s (%s): %" PRId64 " of %" PRId64 " elements\n", d->name, op_name(d->op), d->changed, d->elements);
            shown++;
        }
    if (s->unmatched + kept > 0)
        buf_printf(b, "  %" PRId64 " such steps ran in one precision alone\n", s->unmatched + kept);
}

Verdict shadow_report(Buf *b, const Shadow *s, const Signature *sig, Literal *const *results, Literal *const *expected)
{
    Verdict v = RESULTS_AGREE;
    for (int32_t k = 0; k < sig->n_results; k++) {
        const Literal *exact = s->exact[k];
        buf_printf(b, "%s against double precision:\n", sig->results[k].name);
        if (exact->count != results[k]->count) {
            buf_puts(b, "  the sizes differ\n");
            v = RESULTS_DIFFER;
            continue;
        }
        Distance run = distance_of(results[k], exact);
        put_distance(b, "run", results[k], &run);
        Verdict one = expected ? report_expected(b, results[k], expected[k], exact, &run) : report_alone(b, results[k], exact, &sig->error);
        v = one > v ? one : v;
    }
    report_decisions(b, s);
    return v;
}
