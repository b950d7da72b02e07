/* One pass over both arrays. Every element gets a badness: the factor on the tolerance at which it would pass (0: equal; 1: at the
 * bound; infinity: never). */
#include "config.h"

#include "data/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/numeric.h"

/* The default tolerance. */

static int64_t dims_product(const Shape *s, Ints dims)
{
    int64_t n = 1;
    for (int32_t k = 0; k < dims.n; k++)
        if (dims.v[k] >= 0 && dims.v[k] < s->rank && s->dims[dims.v[k]] > 0 && !size_mul(n, s->dims[dims.v[k]], &n))
            return INT64_MAX;
    return n;
}

static int64_t count_or_one(const Shape *s)
{
    int64_t n = shape_is_array(s) ? shape_count(s) : 1;
    return n > 0 ? n : 1;
}

static int64_t window_count(const Inst *i)
{
    const Window *w = inst_window(i);
    int64_t       n = 1;
    for (int32_t k = 0; k < w->n; k++)
        if (w->v[k].size > 0 && !size_mul(n, w->v[k].size, &n))
            return INT64_MAX;
    return n;
}

int64_t inst_terms(const Inst *i)
{
    switch (i->op) {
    case OP_DOT: return dims_product(inst_operand(i, 0)->shape, inst_ints(i, ATTR_LHS_CONTRACTING_DIMS));
    case OP_REDUCE: return dims_product(inst_operand(i, 0)->shape, inst_ints(i, ATTR_DIMENSIONS));
    case OP_REDUCE_WINDOW: case OP_SELECT_AND_SCATTER: return window_count(i);
    case OP_CONVOLUTION: { /* all of the kernel but its output features */
        int64_t n = count_or_one(inst_operand(i, 1)->shape);
        const Attr *labels = inst_attr(i, ATTR_DIM_LABELS);
        int64_t     out = labels ? inst_operand(i, 1)->shape->dims[labels->value.dim_labels->rhs_out] : 1;
        return out > 0 ? n / out : n;
    }
    case OP_SCATTER: case OP_RAGGED_DOT: case OP_SCALED_DOT: case OP_FFT: case OP_CHOLESKY: case OP_TRIANGULAR_SOLVE:
    case OP_BATCH_NORM_TRAINING: case OP_BATCH_NORM_GRAD: case OP_SCAN: return count_or_one(inst_operand(i, 0)->shape);
    default: return 1;
    }
}

double compare_epsilon(Type t)
{
    return ldexp(1, -type_info[type_component(t)].man);
}

/* Arithmetic rounds; moving values and changing their type does not count. */
static bool rounds(const Inst *i)
{
    if (!type_is_float(i->shape->type) && !type_is_complex(i->shape->type))
        return false;
    switch (i->op) {
    case OP_CONVERT: case OP_PARAMETER: case OP_CONSTANT: case OP_COPY: case OP_SELECT: case OP_CLAMP: return false;
    default: return !op_has(i->op, F_MOVES);
    }
}

static void model_inst(ErrorModel *e, const Inst *i)
{
    int64_t n = inst_terms(i);
    e->reduction = n > e->reduction ? n : e->reduction;
    if (rounds(i) && compare_epsilon(i->shape->type) > compare_epsilon(e->coarsest))
        e->coarsest = type_component(i->shape->type);
}

static void model_comp(ErrorModel *e, const Comp *c)
{
    for (const Inst *i = c->first; i; i = i->next)
        model_inst(e, i);
}

ErrorModel error_model(const Module *m)
{
    ErrorModel e = { 1, TYPE_F64 };
    for (const Comp *c = m->first; c; c = c->next)
        model_comp(&e, c);
    return e;
}

static bool is_inexact(Type t)
{
    return type_is_float(t) || type_is_complex(t);
}

/* Element i as a complex number with an imaginary part of 0 for the others. */
static void load(const Literal *l, int64_t i, double *re, double *im)
{
    *re = l->type == TYPE_F32 ? (double)((const float *)l->data)[i] : literal_get_f64(l, i); /* most arrays are f32 */
    *im = type_is_complex(l->type) ? literal_get_imag(l, i) : 0;
}

static double largest(const Literal *l)
{
    double top = 0;
    for (int64_t i = 0; i < l->count; i++) {
        double re, im;
        load(l, i, &re, &im);
        double v = fmax(fabs(re), fabs(im)); /* fmax ignores a NaN */
        if (isfinite(v) && v > top)
            top = v;
    }
    return top;
}

static Tolerance tolerance_for(Type t, double top, const ErrorModel *e)
{
    Tolerance r = { .rule = COMPARE_SUM };
    if (is_inexact(t)) {
        double eps = fmax(compare_epsilon(t), compare_epsilon(e->coarsest));
        r.rtol = fmin(80 * eps, 0.25);
        r.atol = fmin(4 * eps * (1 + sqrt((double)e->reduction)), 0.25) * top;
    }
    return r;
}

Tolerance tolerance_default(const Literal *expected, const ErrorModel *e)
{
    return tolerance_for(expected->type, is_inexact(expected->type) ? largest(expected) : 0, e);
}

static bool is_exact(const Inst *i)
{
    switch (i->op) {
    case OP_CEIL: case OP_COMPLEX: case OP_FLOOR: case OP_IMAG: case OP_IOTA: case OP_MAXIMUM: case OP_MINIMUM: case OP_NEGATE: case OP_REAL:
    case OP_REDUCE_PRECISION: case OP_ROUND_NEAREST_AFZ: case OP_ROUND_NEAREST_EVEN: return true;
    case OP_ABS: case OP_SIGN: return !type_is_complex(inst_operand(i, 0)->shape->type);
    default: return i->n_callees == 0 && !rounds(i) && type_is_array(i->shape->type);
    }
}

Tolerance tolerance_of_inst(const Inst *i, const Literal *expected)
{
    ErrorModel e = { 1, TYPE_F64 };
    if (is_exact(i))
        return (Tolerance){ .rule = COMPARE_ULP };
    switch (i->op) {
    case OP_ADD: case OP_SUBTRACT: case OP_MULTIPLY: case OP_DIVIDE: case OP_SQRT:
        if (!type_is_complex(i->shape->type))
            return (Tolerance){ .rule = COMPARE_ULP, .ulp = 1 };
        break;
    default: break;
    }
    model_inst(&e, i);
    for (int32_t k = 0; k < i->n_callees; k++)
        model_comp(&e, inst_callee(i, k));
    return tolerance_default(expected, &e);
}

/* Comparing. */

/* Floats of one type in order of value: equal numbers for -0 and 0, neighbours differ by one. */
static int64_t rank_of(Type t, uint64_t bits)
{
    int      width = type_info[t].specials == SPECIALS_FNU ? type_bits(t) : type_bits(t) - 1;
    uint64_t sign = bits >> width & 1, magnitude = bits & ((UINT64_C(1) << width) - 1);
    return sign ? -(int64_t)magnitude : (int64_t)magnitude;
}

/* Subtracted as integers: a double would not tell neighbours of f64 apart. */
static double ulps_apart(Type t, double a, double e)
{
    int64_t x = rank_of(t, float_encode(t, a)), y = rank_of(t, float_encode(t, e));
    return (double)(x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x);
}

static double ratio(double x, double bound)
{
    return x == 0 ? 0 : bound > 0 ? x / bound : INFINITY;
}

/* One real number. */
static double badness(Type t, double a, double e, const Tolerance *tol)
{
    if (isnan(a) && isnan(e))
        return 0;
    if (!isfinite(a) || !isfinite(e))
        return a == e ? 0 : INFINITY;
    double diff = fabs(a - e);
    switch (tol->rule) {
    case COMPARE_SUM: return ratio(diff, tol->atol + tol->rtol * fabs(e));
    case COMPARE_BOTH: return fmin(ratio(diff, tol->atol), ratio(diff, tol->rtol * fabs(e)));
    case COMPARE_ULP: return ratio(ulps_apart(t, a, e), (double)tol->ulp);
    }
    die("no such rule");
}

static void count_specials(double v, int64_t *nan, int64_t *inf)
{
    *nan += isnan(v) != 0;
    *inf += isinf(v) != 0; /* -1 for the negative one */
}

/* Distances of one element (of type t), for the statistics. */
static void measure(Comparison *c, Type t, double a, double e)
{
    count_specials(a, &c->nan_actual, &c->inf_actual);
    count_specials(e, &c->nan_expected, &c->inf_expected);
    bool   same = a == e || (isnan(a) && isnan(e));
    double diff = same ? 0 : fabs(a - e), rel = same ? 0 : diff / fabs(e);
    histogram_add(&c->relative, rel);
    if (!isfinite(diff)) {
        c->least_rtol = c->least_ulp = INFINITY;
        return;
    }
    c->mean_abs += diff;
    c->max_abs = fmax(c->max_abs, diff);
    c->max_rel = fmax(c->max_rel, rel);
    if (diff > 0 && type_is_float(t)) {
        c->least_rtol = fmax(c->least_rtol, nextafter(rel, INFINITY)); /* so that rtol |e| is no less than diff */
        c->least_ulp = fmax(c->least_ulp, ulps_apart(t, a, e));
    }
}

typedef struct Worst {
    double v[COMPARE_WORST];
} Worst;

/* Keeps the list of worst elements in order; of equally bad ones the first stays in front. */
static void note_worst(Comparison *c, Worst *w, int64_t i, double bad)
{
    int32_t k = c->n_worst;
    if (k == COMPARE_WORST) {
        if (bad <= w->v[k - 1])
            return;
        k--;
    } else {
        c->n_worst++;
    }
    for (; k > 0 && bad > w->v[k - 1]; k--) {
        w->v[k] = w->v[k - 1];
        c->worst[k] = c->worst[k - 1];
    }
    w->v[k] = bad;
    c->worst[k] = i;
}

/* The badness of element i, counted in c. Integers go by their own values: a double cannot tell all 64-bit ones apart. */
static double element(Comparison *c, const Literal *actual, const Literal *expected, int64_t i, const Tolerance *t)
{
    if (!is_inexact(expected->type)) {
        bool same = literal_get_s64(actual, i) == literal_get_s64(expected, i);
        double a = literal_get_f64(actual, i), e = literal_get_f64(expected, i);
        measure(c, expected->type, a, e);
        return same ? 0 : INFINITY;
    }
    Type   part = type_component(expected->type);
    double a, b, e, f;
    load(actual, i, &a, &b);
    load(expected, i, &e, &f);
    measure(c, part, a, e);
    double bad = badness(part, a, e, t);
    if (type_is_complex(expected->type)) {
        measure(c, part, b, f);
        bad = fmax(bad, badness(part, b, f, t));
    }
    return bad;
}

bool compare_literals(const Literal *actual, const Literal *expected, const Tolerance *t, Comparison *out)
{
    Worst w;
    memset(out, 0, sizeof *out);
    out->count = expected->count;
    for (int64_t i = 0; i < expected->count; i++) {
        double bad = element(out, actual, expected, i, t);
        out->needed = fmax(out->needed, bad);
        if (bad > 1) {
            out->wrong++;
            note_worst(out, &w, i, bad);
        }
    }
    if (out->count)
        out->mean_abs /= (double)out->count;
    return out->wrong == 0;
}

/* Reporting. */

static void put_index(Buf *b, const Literal *l, int64_t i)
{
    int64_t index[64];
    int32_t rank = l->rank < 64 ? l->rank : 64;
    for (int32_t k = rank - 1; k >= 0; k--) {
        index[k] = i % l->dims[k];
        i /= l->dims[k];
    }
    buf_putc(b, '[');
    for (int32_t k = 0; k < rank; k++)
        buf_printf(b, k ? ",%lld" : "%lld", (long long)index[k]);
    buf_putc(b, ']');
}

static void put_value(Buf *b, const Literal *l, int64_t i)
{
    double re, im;
    load(l, i, &re, &im);
    if (type_is_complex(l->type))
        buf_printf(b, "(%.9g, %.9g)", re, im);
    else if (l->type == TYPE_U64)
        buf_printf(b, "%llu", (unsigned long long)literal_get_s64(l, i));
    else if (!type_is_float(l->type))
        buf_printf(b, "%lld", (long long)literal_get_s64(l, i));
    else
        buf_printf(b, l->type == TYPE_F64 ? "%.17g" : "%.9g", re);
}

void compare_rule(Buf *b, Type type, const Tolerance *t)
{
    if (!is_inexact(type)) {
        buf_puts(b, "exact");
        return;
    }
    switch (t->rule) {
    case COMPARE_SUM: buf_printf(b, "|a - e| <= %g + %g |e|", t->atol, t->rtol); return;
    case COMPARE_BOTH: buf_printf(b, "|a - e| <= %g or |a - e| <= %g |e|", t->atol, t->rtol); return;
    case COMPARE_ULP: buf_printf(b, "at most %lld ulp apart", (long long)t->ulp); return;
    }
}

static void put_worst(Buf *b, const Literal *actual, const Literal *expected, const Comparison *c)
{
    int32_t shown = c->shown ? c->shown : COMPARE_SHOWN;
    for (int32_t k = 0; k < c->n_worst && k < shown; k++) {
        double a, b2, e, f;
        load(actual, c->worst[k], &a, &b2);
        load(expected, c->worst[k], &e, &f);
        buf_puts(b, "  ");
        put_index(b, expected, c->worst[k]);
        buf_puts(b, " expected ");
        put_value(b, expected, c->worst[k]);
        buf_puts(b, ", got ");
        put_value(b, actual, c->worst[k]);
        double off = fmax(fabs(a - e), fabs(b2 - f)); /* fmax ignores a NaN */
        if (isfinite(off) && !isnan(a - e))
            buf_printf(b, ", off by %.3g", off);
        buf_putc(b, '\n');
    }
}

static void put_histogram(Buf *b, const Comparison *c)
{
    buf_puts(b, "  relative error: ");
    histogram_print(b, &c->relative);
    buf_putc(b, '\n');
}

static void put_specials(Buf *b, const Comparison *c)
{
    if (c->nan_actual || c->nan_expected)
        buf_printf(b, "  NaN: expected %lld, got %lld\n", (long long)c->nan_expected, (long long)c->nan_actual);
    if (c->inf_actual || c->inf_expected)
        buf_printf(b, "  infinite: expected %lld, got %lld\n", (long long)c->inf_expected, (long long)c->inf_actual);
}

/* v, or a little more, with as few digits as do. */
static void put_at_least(Buf *b, double v)
{
    char text[40];
    for (int digits = 3; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) >= v)
            break;
    }
    buf_puts(b, text);
}

/* The smallest bounds, each with the others 0. */
static void put_passing(Buf *b, const Comparison *c)
{
    if (!isfinite(c->needed) && !isfinite(c->least_ulp)) {
        buf_puts(b, "  no tolerance would let it pass\n");
        return;
    }
    if (isfinite(c->needed))
        buf_printf(b, "  passes with %.3g times the tolerance,", c->needed);
    else
        buf_puts(b, "  passes");
    buf_puts(b, " with --atol=");
    put_at_least(b, c->max_abs);
    if (isfinite(c->least_rtol)) {
        buf_puts(b, ", with --rtol=");
        put_at_least(b, c->least_rtol);
    }
    buf_printf(b, ", with --ulp=%.0f\n", c->least_ulp);
}

void compare_report(Buf *b, const char *name, const Literal *actual, const Literal *expected, const Tolerance *t, const Comparison *c)
{
    buf_printf(b, "%s: %lld of %lld elements differ; rule: ", name, (long long)c->wrong, (long long)c->count);
    compare_rule(b, expected->type, t);
    buf_putc(b, '\n');
    put_worst(b, actual, expected, c);
    put_specials(b, c);
    put_histogram(b, c);
    buf_printf(b, "  largest error %.3g, relative %.3g; mean %.3g\n", c->max_abs, c->max_rel, c->mean_abs);
    if (is_inexact(expected->type))
        put_passing(b, c);
}

/* Fingerprints. */

typedef struct Sums {
    double re, im, squares, magnitude, top;
} Sums;

static Sums sums_of(const Literal *l)
{
    Sums s = { .re = 0 };
    for (int64_t i = 0; i < l->count; i++) {
        double re, im;
        load(l, i, &re, &im);
        double square = re * re + im * im;
        s.re += re;
        s.im += im;
        s.squares += square;
        s.magnitude += sqrt(square);
        s.top = fmax(s.top, sqrt(square));
    }
    return s;
}

/* The part of l that f has: its first or last elements, as a row. */
static bool compare_edge(Buf *b, const char *name, const char *edge, const Literal *l, const Literal *want, bool last,
                         const Tolerance *t)
{
    int64_t    n = want->count, start = last ? l->count - n : 0;
    Literal   *part = literal_new(l->type, 1, &n);
    Comparison c;
    if (n)
        memcpy(part->data, (const char *)l->data + start * type_bytes(l->type), (size_t)literal_bytes(part));
    bool ok = compare_literals(part, want, t, &c);
    if (!ok) {
        Buf title = { 0 };
        buf_printf(&title, "%s (%s)", name, edge);
        compare_report(b, title.p, part, want, t, &c);
        buf_free(&title);
    }
    literal_unref(part);
    return ok;
}

static bool compare_sum(Buf *b, const char *name, const char *what, double actual, double expected, double allowed)
{
    bool same = actual == expected || (isnan(actual) && isnan(expected)) || fabs(actual - expected) <= allowed;
    if (!same)
        buf_printf(b, "%s: the %s is %.17g, expected %.17g; allowed: %.3g\n", name, what, actual, expected, allowed);
    return same;
}

bool compare_fingerprint(Buf *b, const char *name, const Literal *actual, const Fingerprint *f, const Tolerance *t,
                         const ErrorModel *e)
{
    Sums   s = sums_of(actual);
    double n = (double)actual->count;
    Tolerance tol = t ? *t : tolerance_for(actual->type, isfinite(s.top) ? s.top : 0, e);
    /* Exact types: a double's own rounding in a sum of n terms. */
    double rounding = n * 0x1p-52;
    double allowed = is_inexact(actual->type) ? n * tol.atol + tol.rtol * s.magnitude : rounding * s.magnitude;
    double each = tol.atol + tol.rtol * s.top;
    double squares = is_inexact(actual->type) ? (2 * s.magnitude + n * each) * each : rounding * s.squares;
    bool ok = f->head->count <= actual->count && f->tail->count <= actual->count;
    if (!ok) {
        buf_printf(b, "%s: the fingerprint is of a larger array\n", name);
        return false;
    }
    ok &= compare_edge(b, name, "first elements", actual, f->head, false, &tol);
    ok &= compare_edge(b, name, "last elements", actual, f->tail, true, &tol);
    ok &= compare_sum(b, name, "sum", s.re, f->sum[0], allowed);
    ok &= compare_sum(b, name, "imaginary sum", s.im, f->sum[1], allowed);
    return ok & compare_sum(b, name, "sum of squares", s.squares, f->sumsq, squares);
}
