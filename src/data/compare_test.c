/* The rules of comparison at their edges. */
#include "config.h"

#include "data/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "text/parse.h"

static Literal *row(Type t, int n, const double *v)
{
    int64_t  dims[] = { n };
    Literal *l = literal_new(t, 1, dims);
    for (int k = 0; k < n; k++)
        literal_set_f64(l, k, v[k], 0);
    return l;
}

static bool same(Type t, double a, double e, Tolerance tol)
{
    Literal   *x = row(t, 1, &a), *y = row(t, 1, &e);
    Comparison c;
    bool       ok = compare_literals(x, y, &tol, &c);
    literal_unref(x);
    literal_unref(y);
    return ok;
}

static void test_rules(void)
{
    Tolerance exact = { .rule = COMPARE_SUM }, sum = { .rule = COMPARE_SUM, .atol = 0.5, .rtol = 0.25 };
    CHECK(same(TYPE_F32, NAN, NAN, exact) && !same(TYPE_F32, 1, NAN, sum) && !same(TYPE_F32, NAN, 1, sum)); /* NaN */
    CHECK(same(TYPE_F32, INFINITY, INFINITY, exact) && !same(TYPE_F32, -INFINITY, INFINITY, sum)); /* infinities */
    CHECK(same(TYPE_F32, -0.0, 0.0, exact)); /* zeros */
    CHECK(same(TYPE_F64, 5.5, 4, sum) && !same(TYPE_F64, 5.5625, 4, sum)); /* sum at its bound */
    Tolerance both = { .rule = COMPARE_BOTH, .atol = 0.5, .rtol = 0.25 };
    CHECK(same(TYPE_F64, 5, 4, both) && !same(TYPE_F64, 5.0625, 4, both) && same(TYPE_F64, 0.5, 0, both)); /* both */
    Tolerance ulp = { .rule = COMPARE_ULP, .ulp = 2 };
    CHECK(same(TYPE_F32, 1 + 0x1p-22, 1, ulp) && !same(TYPE_F32, 1 + 0x1.8p-22, 1, ulp)); /* ulp */
    CHECK(same(TYPE_F32, -0x1p-149, 0x1p-149, ulp)); /* ulp around zero */
    CHECK(!same(TYPE_S32, 3, 4, sum) && same(TYPE_PRED, 1, 1, sum)); /* integers are exact */
    puts("ok rules");
}

/* Of each float type: neighbours at 1, at the top of the range and around zero, worked out from bits, bias and specials by hand. */
static void test_ulps(void)
{
    static const struct { Type t; double after_one, last, before_last, least; } rows[] = {
        { TYPE_F4E2M1FN, 1.5, 6, 4, 0.5 },
        { TYPE_F6E2M3FN, 1.125, 7.5, 7, 0.125 },
        { TYPE_F6E3M2FN, 1.25, 28, 24, 0.0625 },
        { TYPE_F8E3M4, 1.0625, 15.5, 15, 0x1p-6 },
        { TYPE_F8E4M3, 1.125, 240, 224, 0x1p-9 },
        { TYPE_F8E4M3FN, 1.125, 448, 416, 0x1p-9 },
        { TYPE_F8E4M3B11FNUZ, 1.125, 30, 28, 0x1p-13 },
        { TYPE_F8E4M3FNUZ, 1.125, 240, 224, 0x1p-10 },
        { TYPE_F8E5M2, 1.25, 57344, 49152, 0x1p-16 },
        { TYPE_F8E5M2FNUZ, 1.25, 57344, 49152, 0x1p-17 },
        { TYPE_F8E8M0FNU, 2, 0x1p127, 0x1p126, 0 },
        { TYPE_F16, 1 + 0x1p-10, 65504, 65472, 0x1p-24 },
        { TYPE_BF16, 1 + 0x1p-7, 0x1.fep127, 0x1.fcp127, 0x1p-133 },
        { TYPE_F32, 1 + 0x1p-23, 0x1.fffffep127, 0x1.fffffcp127, 0x1p-149 },
        { TYPE_F64, 1 + 0x1p-52, 0x1.fffffffffffffp1023, 0x1.ffffffffffffep1023, 0x1p-1074 },
    };
    Tolerance none = { .rule = COMPARE_ULP }, one = { .rule = COMPARE_ULP, .ulp = 1 }, two = { .rule = COMPARE_ULP, .ulp = 2 };
    int       floats = 0;
    for (int t = 0; t < TYPE_COUNT; t++)
        floats += type_is_float((Type)t);
    CHECK(floats == (int)(sizeof rows / sizeof *rows)); /* none is left out */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        Type   t = rows[k].t;
        double least = rows[k].least;
        CHECK(same(t, 1, 1, none) && !same(t, rows[k].after_one, 1, none) && same(t, rows[k].after_one, 1, one) && same(t, 1, rows[k].after_one, one));
        CHECK(!same(t, rows[k].before_last, rows[k].last, none) && same(t, rows[k].before_last, rows[k].last, one));
        CHECK(t == TYPE_F8E8M0FNU || (same(t, least, 0, one) && !same(t, least, -least, one) && same(t, least, -least, two)));
        CHECK(t == TYPE_F8E8M0FNU || (same(t, -rows[k].after_one, -1, one) && !same(t, -1, 1, two)));
    }
    CHECK(!same(TYPE_F64, 1 + 0x1.8p-51, 1, two) && same(TYPE_F64, -3, -3 - 0x1p-50, two)); /* 3 and 2 of 62 bits */
    CHECK(!same(TYPE_F32, INFINITY, 0x1.fffffep127, two) && !same(TYPE_F8E4M3FN, NAN, 448, two)); /* what follows the last number is none */
    puts("ok ulps");
}

/* Wrong only when both bounds are passed; each alone is enough. */
static void test_both(void)
{
    Tolerance both = { .rule = COMPARE_BOTH, .atol = 0.5, .rtol = 0.25 }, relative = { .rule = COMPARE_BOTH, .rtol = 0.25 };
    CHECK(same(TYPE_F64, 100.5, 100, both) && same(TYPE_F64, 125, 100, both) && !same(TYPE_F64, 125.5, 100, both)); /* by rtol */
    CHECK(same(TYPE_F64, 0.5, 0.125, both) && same(TYPE_F64, -0.375, 0.125, both) && !same(TYPE_F64, 0.75, 0.125, both)); /* by atol */
    CHECK(!same(TYPE_F64, 0x1p-30, 0, relative) && same(TYPE_F64, 0, 0, relative)); /* nothing is near zero by rtol */
    CHECK(same(TYPE_F64, NAN, NAN, both) && !same(TYPE_F64, NAN, 1, both) && !same(TYPE_F64, INFINITY, 1, both));
    CHECK(same(TYPE_F64, INFINITY, INFINITY, both) && !same(TYPE_F64, INFINITY, -INFINITY, both));
    puts("ok both");
}

/* The parts of complex numbers count each by itself. */
static void test_complex(void)
{
    int64_t    dims[] = { 2 };
    Literal   *x = literal_new(TYPE_C64, 1, dims), *y = literal_new(TYPE_C64, 1, dims);
    Comparison c;
    Tolerance  t = { .rule = COMPARE_SUM, .atol = 1 };
    literal_set_f64(x, 0, 3, 4);
    literal_set_f64(y, 0, 4, 5); /* off by 1 in both, by sqrt(2) as a vector */
    literal_set_f64(x, 1, 3, NAN);
    literal_set_f64(y, 1, 3, NAN);
    CHECK(compare_literals(x, y, &t, &c) && c.max_abs == 1 && c.nan_actual == 1 && c.nan_expected == 1);
    literal_set_f64(y, 0, 3, 5.5);
    CHECK(!compare_literals(x, y, &t, &c) && c.wrong == 1 && c.worst[0] == 0 && c.needed == 1.5);
    literal_unref(x);
    literal_unref(y);
    puts("ok complex");
}

/* ---- tolerances ---- */

/* The tolerance for the instruction `r` of a module with these parameters and computations, when the expected value is {-3, 2}. */
static Tolerance tolerance_in(Arena *a, const char *before, const char *body)
{
    static const double v[] = { -3, 2 };
    Diag                d;
    diag_init(&d, a);
    const char *text = arena_printf(a, "HloModule m\n%s\nENTRY e {\n%s\n}\n", before, body);
    Module     *m = parse_module(text, strlen(text), &d);
    CHECK(m && d.errors == 0);
    Literal  *l = row(m->entry->root->shape->type, 2, v);
    Tolerance t = tolerance_of_inst(m->entry->root, l);
    literal_unref(l);
    module_free(m);
    return t;
}

static bool is_ulp(Tolerance t, int64_t n)
{
    return t.rule == COMPARE_ULP && t.ulp == n;
}

/* rtol = 80 eps, atol = 4 eps (1 + sqrt(K)) 3. */
static bool is_default(Tolerance t, double eps, double terms)
{
    return t.rule == COMPARE_SUM && t.rtol == fmin(80 * eps, 0.25) && fabs(t.atol - fmin(4 * eps * (1 + sqrt(terms)), 0.25) * 3) <= 1e-12 * t.atol;
}

static void test_instructions(void)
{
    static const char *const moves[] = {
        "ROOT r = f32[2] negate(x)", "ROOT r = f32[2] abs(x)", "ROOT r = f32[2] maximum(x, x)", "ROOT r = f32[2] reverse(x), dimensions={0}",
        "ROOT r = pred[2] compare(x, x), direction=LT", "ROOT r = f16[2] convert(x)", "ROOT r = f32[2] floor(x)",
        "ROOT r = f32[2] reduce-precision(x), exponent_bits=5, mantissa_bits=10", "ROOT r = s32[2] bitcast-convert(x)",
    };
    static const char *const rounded[] = { "add(x, x)", "subtract(x, x)", "multiply(x, x)", "divide(x, x)", "sqrt(x)" };
    static const char *const sum = "add { p = f32[] parameter(0)  q = f32[] parameter(1)  ROOT s = f32[] add(p, q) }";
    Arena *a = arena_new();
    for (size_t k = 0; k < sizeof moves / sizeof *moves; k++)
        CHECK(is_ulp(tolerance_in(a, "", arena_printf(a, "x = f32[2] parameter(0)\n%s", moves[k])), 0));
    for (size_t k = 0; k < sizeof rounded / sizeof *rounded; k++) {
        CHECK(is_ulp(tolerance_in(a, "", arena_printf(a, "x = f32[2] parameter(0)\nROOT r = f32[2] %s", rounded[k])), 1));
        CHECK(is_default(tolerance_in(a, "", arena_printf(a, "x = c64[2] parameter(0)\nROOT r = c64[2] %s", rounded[k])), 0x1p-23, 1));
    }
    CHECK(is_default(tolerance_in(a, "", "x = f32[2] parameter(0)\nROOT r = f32[2] exponential(x)"), 0x1p-23, 1));
    CHECK(is_default(tolerance_in(a, "", "x = bf16[2] parameter(0)\nROOT r = bf16[2] tanh(x)"), 0x1p-7, 1));
    CHECK(is_default(tolerance_in(a, "", "x = c64[2] parameter(0)\nROOT r = f32[2] abs(x)"), 0x1p-23, 1)); /* a root of squares */
    CHECK(is_default(tolerance_in(a, sum, "x = f32[2,9] parameter(0)\nz = f32[] constant(0)\n"
                                          "ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=add"), 0x1p-23, 9));
    CHECK(is_default(tolerance_in(a, "", "x = f32[2,16] parameter(0)\ny = f32[16] parameter(1)\n"
                                         "ROOT r = f32[2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"), 0x1p-23, 16));
    arena_free(a);
    puts("ok instructions");
}

static void test_report(void)
{
    double     a[] = { 1, 2, 30, 4, NAN, 6 }, e[] = { 1, 2, 3, 5, 5, 6 };
    Literal   *x = row(TYPE_F32, 6, a), *y = row(TYPE_F32, 6, e);
    Comparison c;
    Tolerance  t = { .rule = COMPARE_SUM, .atol = 0.5 };
    CHECK(!compare_literals(x, y, &t, &c)); /* differs */
    CHECK(c.wrong == 3 && c.n_worst == 3 && c.worst[0] == 4 && c.worst[1] == 2 && c.worst[2] == 3); /* worst first */
    Buf b = { 0 };
    compare_report(&b, "out0", x, y, &t, &c);
    CHECK(strstr(b.p, "out0: 3 of 6 elements differ; rule: |a - e| <= 0.5 + 0 |e|")); /* headline */
    CHECK(strstr(b.p, "  [2] expected 3, got 30, off by 27")); /* element */
    CHECK(strstr(b.p, "NaN: expected 0, got 1")); /* NaN count */
    buf_free(&b);
    literal_unref(x);
    literal_unref(y);
    puts("ok report");
}

static void test_fingerprint(void)
{
    double      v[4] = { 1, 2, 3, 4 };
    Literal    *x = row(TYPE_F32, 4, v), *head = row(TYPE_F32, 2, v), *tail = row(TYPE_F32, 2, v + 2);
    Fingerprint f = { head, tail, { 10, 0 }, 30 };
    Tolerance   t = { .rule = COMPARE_SUM, .atol = 0.01 };
    Buf         b = { 0 };
    CHECK(compare_fingerprint(&b, "out0", x, &f, &t, NULL) && b.n == 0); /* agrees */
    f.sum[0] = 10.05;
    CHECK(!compare_fingerprint(&b, "out0", x, &f, &t, NULL) && strstr(b.p, "out0: the sum is 10")); /* sum */
    f.sum[0] = 10;
    f.sumsq = 31;
    CHECK(!compare_fingerprint(&b, "out0", x, &f, &t, NULL)); /* sum of squares */
    f.sumsq = 30;
    f.tail = head;
    CHECK(!compare_fingerprint(&b, "out0", x, &f, &t, NULL) && strstr(b.p, "out0 (last elements)")); /* tail */
    buf_free(&b);
    literal_unref(x);
    literal_unref(head);
    literal_unref(tail);
    puts("ok fingerprint");
}

int main(void)
{
    test_rules();
    test_ulps();
    test_both();
    test_complex();
    test_instructions();
    test_report();
    test_fingerprint();
    return 0;
}
