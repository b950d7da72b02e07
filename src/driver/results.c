/* What is done with results. */
#include "config.h"

#include "driver/results.h"

#include <math.h>
#include <string.h>

#include "data/manifest.h"
#include "data/npz.h"
#include "driver/find.h"
#include "driver/inputs.h"

/* Printing. */

enum { SHORTEN_ABOVE = 100, EDGE = 3 };

static void print_element(Buf *b, const Literal *l, int64_t i)
{
    Literal *x = literal_borrow(l->type, 0, NULL, (char *)l->data + i * type_bytes(l->type));
    literal_print(b, x, true);
    literal_unref(x);
}

/* The part of l with leading indices fixed, which starts at element `at` and has `count` elements. */
static void print_short(Buf *b, const Literal *l, int32_t dim, int64_t at, int64_t count)
{
    if (dim == l->rank) {
        print_element(b, l, at);
        return;
    }
    int64_t n = l->dims[dim], step = n ? count / n : 0;
    buf_puts(b, dim + 1 < l->rank ? "{ " : "{");
    for (int64_t k = 0; k < n; k++) {
        if (k)
            buf_puts(b, ", ");
        if (n > 2 * EDGE && k == EDGE) {
            buf_puts(b, "..., ");
            k = n - EDGE;
        }
        print_short(b, l, dim + 1, at + k * step, step);
    }
    buf_puts(b, dim + 1 < l->rank ? " }" : "}");
}

void results_print(Buf *b, const Signature *s, Literal *const *results, bool full)
{
    Arena *a = arena_new();
    for (int32_t k = 0; k < s->n_results; k++) {
        const Literal *l = results[k];
        buf_printf(b, "%s = %s ", s->results[k].name, shape_text(a, literal_shape(a, l)));
        if (l->count == 0 && literal_braces(l->rank, l->dims) > SHORTEN_ABOVE)
            buf_puts(b, "{...}");
        else if (full || l->count <= SHORTEN_ABOVE)
            literal_print(b, l, true);
        else
            print_short(b, l, 0, 0, l->count);
        buf_putc(b, '\n');
    }
    arena_free(a);
}

bool results_write(Arena *a, const char *path, const Signature *s, Literal *const *results, Diag *d)
{
    const char **names = ARENA_ARRAY(a, const char *, s->n_results);
    for (int32_t k = 0; k < s->n_results; k++)
        names[k] = s->results[k].name;
    return array_file_write(a, path, s->n_results, names, results, d);
}

/* Comparing. */

/* True: t is set. */
static bool chosen_tolerance(const Tolerances *from, int32_t k, Tolerance *t)
{
    if (from->given) {
        *t = from->value;
        return true;
    }
    if (from->manifest && k < from->manifest->n_results) {
        *t = (Tolerance){ .rule = COMPARE_SUM, .atol = from->manifest->results[k].atol, .rtol = from->manifest->results[k].rtol };
        return true;
    }
    return false;
}

/* Dynamic dimensions are as large as the values made them. */
static bool same_dims(const Literal *x, const Literal *y)
{
    return x->type == y->type && x->rank == y->rank && !memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims);
}

static bool is_exact_type(Type t)
{
    return !type_is_float(t) && !type_is_complex(t);
}

/* What the default tolerance was made of. */
static void put_default(Buf *b, const Signature *s, const Literal *expected)
{
    double eps = fmax(compare_epsilon(expected->type), compare_epsilon(s->error.coarsest));
    buf_printf(b, "by default, of eps %.3g and sums of %lld term%s", eps, (long long)s->error.reduction, s->error.reduction == 1 ? "" : "s");
}

static void put_agreement(Buf *b, const Signature *s, int32_t k, const Literal *expected, const Tolerance *t, bool by_default, const Comparison *c)
{
    buf_printf(b, "%s: agrees, %lld element%s", s->results[k].name, (long long)c->count, c->count == 1 ? "" : "s");
    if (c->max_abs > 0)
        buf_printf(b, ", largest error %.3g, %.2g of the tolerance", c->max_abs, c->needed);
    buf_puts(b, "; rule: ");
    compare_rule(b, expected->type, t);
    if (by_default && !is_exact_type(expected->type)) {
        buf_puts(b, ", ");
        put_default(b, s, expected);
    }
    buf_putc(b, '\n');
}

static void put_difference(Buf *b, const Signature *s, int32_t k, const Literal *actual, const Literal *expected, const Tolerance *t,
                           bool by_default, const Comparison *c)
{
    compare_report(b, s->results[k].name, actual, expected, t, c);
    if (by_default && !is_exact_type(expected->type)) {
        buf_puts(b, "  the tolerance is ");
        put_default(b, s, expected);
        buf_putc(b, '\n');
    }
}

/* A report that is nothing but text. */
static void put_text(Buf *b, const char *name, const Buf *text, bool agrees, const Tolerances *from)
{
    if (!from->json) {
        buf_put(b, text->p, text->n);
        return;
    }
    buf_puts(b, "{\"result\": ");
    json_text(b, name);
    buf_printf(b, ", \"agrees\": %s, \"report\": ", agrees ? "true" : "false");
    json_text(b, text->p);
    buf_puts(b, "}\n");
}

static bool compare_one(Buf *b, const Signature *s, int32_t k, const Literal *actual, const Literal *expected, const Tolerances *from)
{
    Tolerance  t;
    Comparison c;
    if (!same_dims(actual, expected)) {
        Buf text = { 0 };
        Arena *a = arena_new();
        buf_printf(&text, "%s: the sizes differ: expected %s, got %s\n", s->results[k].name, shape_text(a, literal_shape(a, expected)),
                   shape_text(a, literal_shape(a, actual)));
        arena_free(a);
        put_text(b, s->results[k].name, &text, false, from);
        buf_free(&text);
        return false;
    }
    bool chosen = chosen_tolerance(from, k, &t);
    if (!chosen)
        t = tolerance_default(expected, &s->error);
    bool same = compare_literals(actual, expected, &t, &c);
    c.shown = from->worst;
    if (from->json)
        results_json(b, s->results[k].name, actual, expected, &t, !chosen ? "default" : from->given ? "given" : "manifest", &c);
    else if (same)
        put_agreement(b, s, k, expected, &t, !chosen, &c);
    else
        put_difference(b, s, k, actual, expected, &t, !chosen, &c);
    return same;
}

typedef struct Expected {
    Arena           *arena;
    const ArrayFile *file;
    bool            *used;
    Diag            *d;
} Expected;

static const NpyArray *take(Expected *e, const char *name)
{
    const NpyArray *x = array_file_find(e->file, name);
    if (x)
        e->used[x - e->file->v] = true;
    return x;
}

static const char *member_text(const Expected *e, const char *name)
{
    return arena_printf(e->arena, "%s: member '%s'", e->file->path, name);
}

/* One number (or two, complex) in float64. */
static bool take_number(Expected *e, const char *name, double *re, double *im)
{
    const NpyArray *x = take(e, name);
    if (!x || x->count != 1 || !((x->kind == 'f' && x->bytes == 8) || (x->kind == 'c' && x->bytes == 16))) {
        diag_error(e->d, LOC_NONE, "%s: expected one float64 or complex128", member_text(e, name));
        return false;
    }
    memcpy(re, x->data, sizeof *re);
    *im = 0;
    if (x->kind == 'c')
        memcpy(im, (const char *)x->data + sizeof *re, sizeof *im);
    return true;
}

static Literal *take_edge(Expected *e, const char *name, Type t)
{
    const NpyArray *x = take(e, name);
    if (!x) {
        diag_error(e->d, LOC_NONE, "%s is missing", member_text(e, name));
        return NULL;
    }
    int64_t n = x->count;
    return literal_from_array(x, shape_array(e->arena, t, 1, &n), member_text(e, name), e->d);
}

static Verdict expect_fingerprint(Buf *b, Expected *e, const Signature *s, int32_t k, const Literal *actual, const Tolerances *from)
{
    const char *name = s->results[k].name;
    Fingerprint f;
    double      none;
    Literal    *head = take_edge(e, arena_printf(e->arena, "%s.head", name), actual->type);
    Literal    *tail = take_edge(e, arena_printf(e->arena, "%s.tail", name), actual->type);
    bool sums = take_number(e, arena_printf(e->arena, "%s.sum", name), &f.sum[0], &f.sum[1]) &&
                take_number(e, arena_printf(e->arena, "%s.sumsq", name), &f.sumsq, &none);
    Verdict v = RESULTS_TROUBLE;
    if (head && tail && sums) {
        Tolerance t;
        bool      chosen = chosen_tolerance(from, k, &t);
        f.head = head;
        f.tail = tail;
        Buf text = { 0 };
        v = compare_fingerprint(&text, name, actual, &f, chosen ? &t : NULL, &s->error) ? RESULTS_AGREE : RESULTS_DIFFER;
        if (v == RESULTS_AGREE)
            buf_printf(&text, "%s: agrees with its fingerprint, %lld elements\n", name, (long long)actual->count);
        put_text(b, name, &text, v == RESULTS_AGREE, from);
        buf_free(&text);
    }
    literal_unref(head);
    literal_unref(tail);
    return v;
}

/* The array that is result k; NULL: there is none. */
static const NpyArray *take_result(Expected *e, const Signature *s, int32_t k)
{
    const NpyArray *x = e->file->npy && k == 0 ? &e->file->v[0] : take(e, s->results[k].name);
    if (!x)
        x = take(e, arena_printf(e->arena, "arr_%d", k));
    if (x == e->file->v)
        e->used[0] = true;
    return x;
}

static Literal *result_from(const Expected *e, const Signature *s, int32_t k, const NpyArray *x, const Literal *actual)
{
    const char  *what = arena_printf(e->arena, "%s: %s", e->file->path, s->results[k].name);
    const Shape *own = s->results[k].shape, *found = literal_shape(e->arena, actual);
    bool         any_size = shape_is_dynamic(own) && own->rank == actual->rank; /* another one is a difference */
    return literal_from_array(x, any_size ? own : found, what, e->d);
}

static Verdict expect_one(Buf *b, Expected *e, const Signature *s, int32_t k, const Literal *actual, const Tolerances *from)
{
    const char     *name = s->results[k].name;
    const NpyArray *x = take_result(e, s, k);
    if (!x && array_file_find(e->file, arena_printf(e->arena, "%s.head", name)))
        return expect_fingerprint(b, e, s, k, actual, from);
    if (!x) {
        diag_error(e->d, LOC_NONE, "%s: nothing to compare %s (%s) with", e->file->path, name,
                   shape_text(e->arena, s->results[k].shape));
        return RESULTS_TROUBLE;
    }
    Literal *want = result_from(e, s, k, x, actual);
    if (!want)
        return RESULTS_TROUBLE;
    Verdict v = compare_one(b, s, k, actual, want, from) ? RESULTS_AGREE : RESULTS_DIFFER;
    literal_unref(want);
    return v;
}

Verdict results_expect(Buf *b, Arena *a, const char *path, const Signature *s, Literal *const *results, const Tolerances *t, Diag *d)
{
    Expected e = { .arena = a, .file = array_file_read(a, path, signature_bytes(s), d), .d = d };
    Verdict  v = RESULTS_AGREE;
    if (!e.file)
        return RESULTS_TROUBLE;
    e.used = ARENA_ARRAY(a, bool, e.file->n);
    for (int32_t k = 0; k < s->n_results; k++) {
        Verdict one = expect_one(b, &e, s, k, results[k], t);
        v = one > v ? one : v;
    }
    for (int32_t k = 0; k < e.file->n; k++)
        if (!e.used[k] && v != RESULTS_TROUBLE) {
            diag_error(d, LOC_NONE, "%s is left over: the module has %d result%s",
                       e.file->npy ? e.file->path : member_text(&e, e.file->v[k].name), s->n_results, s->n_results == 1 ? "" : "s");
            v = RESULTS_TROUBLE;
        }
    return v;
}

bool results_read(Arena *a, const char *path, const Signature *s, Literal *const *results, Literal **expected, Diag *d)
{
    Expected e = { .arena = a, .file = array_file_read(a, path, signature_bytes(s), d), .d = d };
    if (!e.file)
        return false;
    e.used = ARENA_ARRAY(a, bool, e.file->n);
    for (int32_t k = 0; k < s->n_results; k++) {
        const NpyArray *x = take_result(&e, s, k);
        if (!x)
            diag_error(d, LOC_NONE, "%s: the values of %s are not there", e.file->path, s->results[k].name);
        expected[k] = x ? result_from(&e, s, k, x, results[k]) : NULL;
        if (!expected[k]) {
            literals_unref(k, expected);
            return false;
        }
    }
    return true;
}

Verdict results_against(Buf *b, const Signature *s, Literal *const *results, Literal *const *expected, const Tolerances *t)
{
    bool ok = true;
    for (int32_t k = 0; k < s->n_results; k++)
        ok &= compare_one(b, s, k, results[k], expected[k], t);
    return ok ? RESULTS_AGREE : RESULTS_DIFFER;
}
