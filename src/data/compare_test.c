/* The rules of comparison at their edges. */
#include "config.h"

#include "data/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"

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
    test_report();
    test_fingerprint();
    return 0;
}
