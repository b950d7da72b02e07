/* Errors are measured against the results in double precision: the largest and the root of the mean square, over elements that are finite
 * there. Which of two sides is worse is decided by the mean square; within a factor of two neither is. */
#include "config.h"

#include "driver/shadow_int.h"

#include <inttypes.h>
#include <math.h>

#include "driver/find.h"
#include "ir/numeric.h"

/* ---- errors ---- */

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

Distance distance_of(const Literal *l, const Literal *exact)
{
    Distance d = {0};
    for (int64_t i = 0; i < l->count; i++) {
        if (!shadow_inexact(l->type)) {
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

int distance_worse(const Distance *x, const Distance *y)
{
    if (x->wrong != y->wrong)
        return x->wrong > y->wrong ? -1 : 1;
    return x->mean > 2 * y->mean ? -1 : y->mean > 2 * x->mean ? 1 : 0;
}

/* What there is to say of a result. */
typedef struct Finding {
    const char    *name;
    const Literal *actual, *expected; /* expected NULL: not given */
    bool           sizes_differ;      /* then nothing else is set */
    Distance       run, other;        /* other: of what was expected */
    int            who;               /* distance_worse of the two */
    bool           same;              /* the two are the same bits */
    int64_t        beyond;            /* without expected: elements beyond the default tolerance */
} Finding;

/* exact in the type of a result. */
static Literal *lowered(const Literal *exact, Type t)
{
    Literal *l = literal_new(t, exact->rank, exact->dims);
    for (int64_t k = 0; k < l->count; k++)
        if (shadow_inexact(t))
            literal_set_f64(l, k, literal_get_f64(exact, k), type_is_complex(t) ? literal_get_imag(exact, k) : 0);
        else
            literal_set_s64(l, k, literal_get_s64(exact, k));
    return l;
}

static int64_t beyond_default(const Literal *actual, const Literal *exact, const ErrorModel *error)
{
    Literal   *e = lowered(exact, actual->type);
    Tolerance  t = tolerance_default(e, error);
    Comparison c;
    compare_literals(actual, e, &t, &c);
    literal_unref(e);
    return c.wrong;
}

static Finding finding_of(const char *name, const Literal *actual, const Literal *expected, const Literal *exact, const ErrorModel *error)
{
    Finding f = {.name = name, .actual = actual, .expected = expected, .sizes_differ = exact->count != actual->count};
    f.sizes_differ |= expected && expected->count != actual->count;
    if (f.sizes_differ)
        return f;
    f.run = distance_of(actual, exact);
    if (expected) {
        f.other = distance_of(expected, exact);
        f.who = distance_worse(&f.run, &f.other);
        f.same = literal_equal(actual, expected);
    } else
        f.beyond = beyond_default(actual, exact, error);
    return f;
}

static Verdict verdict_of(const Finding *f)
{
    return f->sizes_differ || f->who < 0 || f->beyond > 0 ? RESULTS_DIFFER : RESULTS_AGREE;
}

/* How many times the mean error of the worse side is that of the other; 0: that is no measure. */
static double ratio_of(const Finding *f)
{
    const Distance *bad = f->who < 0 ? &f->run : &f->other, *good = f->who < 0 ? &f->other : &f->run;
    return f->who != 0 && bad->wrong == good->wrong && good->mean > 0 ? bad->mean / good->mean : 0;
}

/* ---- for people ---- */

static void put_distance(Buf *b, const char *side, const Literal *l, const Distance *d)
{
    buf_printf(b, "  %-9s", side);
    if (shadow_inexact(l->type)) {
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

static void put_judgement(Buf *b, const Finding *f)
{
    if (!f->expected && f->beyond)
        buf_printf(b, "  %" PRId64 " of %" PRId64 " elements are beyond the default tolerance\n", f->beyond, f->actual->count);
    else if (!f->expected)
        buf_puts(b, "  within the default tolerance\n");
    else if (f->who == 0)
        buf_puts(b, f->same ? "  both are the same\n" : "  they differ, and neither is worse\n");
    else {
        buf_puts(b, f->who < 0 ? "  the run is worse" : "  the expected values are worse");
        if (ratio_of(f) > 0)
            buf_printf(b, ", %.3g times", ratio_of(f));
        buf_putc(b, '\n');
    }
}

static void put_finding(Buf *b, const Finding *f)
{
    buf_printf(b, "%s against double precision:\n", f->name);
    if (f->sizes_differ) {
        buf_puts(b, "  the sizes differ\n");
        return;
    }
    put_distance(b, "run", f->actual, &f->run);
    if (f->expected)
        put_distance(b, "expected", f->expected, &f->other);
    put_judgement(b, f);
}

/* What the decisions come to. */
typedef struct Decided {
    int64_t instructions, elements; /* of which some, and which, are decided otherwise */
    int64_t alone;                  /* steps that ran in one precision alone */
} Decided;

static Decided decided(const Shadow *s)
{
    Decided d = {0, 0, s->unmatched + ((int64_t)s->held.n - s->matched)};
    for (int32_t k = 0; k < s->list.n; k++) {
        d.instructions += s->list.v[k]->changed > 0;
        d.elements += s->list.v[k]->changed;
    }
    return d;
}

static void put_decisions(Buf *b, const Shadow *s)
{
    enum { SHOWN = 10 };
    Decided all = decided(s);
    if (all.instructions == 0 && all.alone == 0) {
        if (s->list.n > 0)
            buf_printf(b, "decisions: double precision makes the same, at %d instruction%s\n", s->list.n, s->list.n == 1 ? "" : "s");
        return;
    }
    buf_printf(b, "decisions: double precision makes %" PRId64 " otherwise, at %" PRId64 " of %d instructions; what follows differs by more than rounding\n",
               all.elements, all.instructions, s->list.n);
    int shown = 0;
    for (int32_t k = 0; k < s->list.n && shown < SHOWN; k++)
        if (s->list.v[k]->changed > 0) {
            const Decision *d = s->list.v[k];
            buf_printf(b, "  %s (%s): %" PRId64 " of %" PRId64 " elements\n", d->name, op_name(d->op), d->changed, d->elements);
            shown++;
        }
    if (all.alone > 0)
        buf_printf(b, "  %" PRId64 " such steps ran in one precision alone\n", all.alone);
}

/* ---- as JSON ---- */

static void put_distance_json(Buf *b, const char *side, const Literal *l, const Distance *d)
{
    buf_printf(b, ", \"%s\": {", side);
    if (shadow_inexact(l->type)) {
        buf_puts(b, "\"largest_error\": ");
        json_real(b, d->largest);
        buf_puts(b, ", \"rms_error\": ");
        json_real(b, d->mean);
        if (d->largest > 0) {
            buf_puts(b, ", \"index\": ");
            place_index(b, l, d->at);
        }
        buf_puts(b, ", ");
    }
    buf_printf(b, "\"%s\": %" PRId64 "}", shadow_inexact(l->type) ? "finite_on_one_side" : "differ", d->wrong);
}

static void put_finding_json(Buf *b, const Finding *f)
{
    buf_puts(b, "{\"result\": ");
    json_text(b, f->name);
    buf_printf(b, ", \"against\": \"f64\", \"agrees\": %s, \"elements\": %" PRId64, verdict_of(f) == RESULTS_AGREE ? "true" : "false", f->actual->count);
    if (f->sizes_differ)
        buf_puts(b, ", \"sizes_differ\": true");
    else {
        put_distance_json(b, "run", f->actual, &f->run);
        if (f->expected) {
            put_distance_json(b, "expected", f->expected, &f->other);
            buf_printf(b, ", \"worse\": \"%s\", \"same\": %s", f->who < 0 ? "run" : f->who > 0 ? "expected" : "neither", f->same ? "true" : "false");
            if (ratio_of(f) > 0)
                buf_printf(b, ", \"times\": %.6g", ratio_of(f));
        } else
            buf_printf(b, ", \"beyond_default_tolerance\": %" PRId64, f->beyond);
    }
    buf_puts(b, "}\n");
}

static void put_decisions_json(Buf *b, const Shadow *s)
{
    Decided all = decided(s);
    bool    first = true;
    buf_printf(b, "{\"decisions\": {\"elements\": %" PRId64 ", \"instructions\": %" PRId64 ", \"of\": %d, \"in_one_precision_alone\": %" PRId64 ", \"otherwise\": [",
               all.elements, all.instructions, s->list.n, all.alone);
    for (int32_t k = 0; k < s->list.n; k++) {
        const Decision *d = s->list.v[k];
        if (d->changed == 0)
            continue;
        buf_puts(b, first ? "{\"instruction\": " : ", {\"instruction\": ");
        json_text(b, d->name);
        buf_printf(b, ", \"opcode\": \"%s\", \"changed\": %" PRId64 ", \"elements\": %" PRId64 "}", op_name(d->op), d->changed, d->elements);
        first = false;
    }
    buf_puts(b, "]}}\n");
}

Verdict shadow_report(Buf *b, const Shadow *s, const Signature *sig, Literal *const *results, Literal *const *expected, bool json)
{
    Verdict v = RESULTS_AGREE;
    for (int32_t k = 0; k < sig->n_results; k++) {
        Finding f = finding_of(sig->results[k].name, results[k], expected ? expected[k] : NULL, s->exact[k], &sig->error);
        (json ? put_finding_json : put_finding)(b, &f);
        v = verdict_of(&f) > v ? verdict_of(&f) : v;
    }
    (json ? put_decisions_json : put_decisions)(b, s);
    return v;
}
