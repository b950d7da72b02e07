/* Distributions: what text names one, and that values are where they should be. */
#include "config.h"

#include "data/dist.h"

#include <math.h>
#include <stdio.h>

#include "support/check.h"

enum { MANY = 20000 };

static Literal *filled(Type t, const char *text)
{
    int64_t  dims[] = {MANY};
    Dist     x;
    Literal *l = literal_new(t, 1, dims);
    CHECK(dist_parse(text, &x) && !dist_refused(&x, t));
    dist_fill(l, 5, &x);
    return l;
}

/* Smallest, largest, mean and deviation of the finite values; how many are not finite. */
typedef struct Sample {
    double  low, high, mean, deviation;
    int64_t infinite, nan, zeros, negative_zeros;
} Sample;

static Sample sample(Literal *l)
{
    Sample s = {INFINITY, -INFINITY, 0, 0, 0, 0, 0, 0};
    double square = 0, n = 0;
    for (int64_t k = 0; k < l->count; k++) {
        double v = type_is_float(l->type) || type_is_complex(l->type) ? literal_get_f64(l, k) : (double)literal_get_s64(l, k);
        s.infinite += isinf(v) != 0;
        s.nan += isnan(v) != 0;
        s.zeros += v == 0;
        s.negative_zeros += v == 0 && signbit(v);
        if (!isfinite(v))
            continue;
        s.low = fmin(s.low, v);
        s.high = fmax(s.high, v);
        s.mean += v;
        square += v * v;
        n++;
    }
    s.mean /= n;
    s.deviation = sqrt(square / n - s.mean * s.mean);
    literal_unref(l);
    return s;
}

static void test_text(void)
{
    static const char *const bad[] = {"", "uniform", "uniform()", "uniform(1)", "uniform(1,2", "uniform(1,2)x", "uniform(2,1)", "uniform(1,1)", "uniform(nan,1)",
                                      "uniform(0,inf)", "normal(0,-1)", "normal(0,1,2)", "large(1)", "special ", "const", "const()", "const(1,2)", "gauss(0,1)"};
    Dist x;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        CHECK(!dist_parse(bad[k], &x));
    CHECK(dist_parse("uniform(-1.5,2e3)", &x) && x.kind == DIST_UNIFORM && x.a == -1.5 && x.b == 2000);
    CHECK(dist_parse("normal(3,0)", &x) && x.kind == DIST_NORMAL && x.a == 3 && x.b == 0);
    puts("ok text");
}

/* Four standard errors: 20000 values of deviation s have a mean within 4 s / 141. */
static void test_floats(void)
{
    Sample s = sample(filled(TYPE_F32, "uniform(2,6)"));
    CHECK(s.low >= 2 && s.low < 2.01 && s.high <= 6 && s.high > 5.99 && fabs(s.mean - 4) < 0.033 && fabs(s.deviation - 1.1547) < 0.02);
    s = sample(filled(TYPE_F64, "normal(10,3)"));
    CHECK(fabs(s.mean - 10) < 0.085 && fabs(s.deviation - 3) < 0.06 && s.low < 1 && s.high > 19 && s.nan + s.infinite == 0);
    s = sample(filled(TYPE_C64, "uniform(0,1)"));
    CHECK(s.low >= 0 && s.high <= 1 && fabs(s.mean - 0.5) < 0.009);
    s = sample(filled(TYPE_BF16, "const(1.5)"));
    CHECK(s.low == 1.5 && s.high == 1.5);
    for (Type t = 0; t < TYPE_COUNT; t++) {
        if (!type_is_float(t))
            continue;
        s = sample(filled(t, "large"));
        CHECK(s.infinite + s.nan == 0 && s.high > 0);
        s = sample(filled(t, "special"));
        bool ieee = type_info[t].specials == SPECIALS_IEEE;
        CHECK(!ieee || (s.infinite > 0 && s.nan > 0 && s.negative_zeros > 0 && s.zeros > s.negative_zeros));
        CHECK(type_info[t].specials != SPECIALS_FINITE || s.infinite + s.nan == 0);
    }
    s = sample(filled(TYPE_F32, "large"));
    CHECK(s.high > 1e37 && s.low < -1e37);
    puts("ok floats");
}

static void test_integers(void)
{
    Sample s = sample(filled(TYPE_S32, "uniform(-2,3)"));
    CHECK(s.low == -2 && s.high == 2 && fabs(s.mean) < 0.04); /* -2 -1 0 1 2, deviation sqrt(2) */
    s = sample(filled(TYPE_U8, "uniform(-10,1e9)"));
    CHECK(s.low == 0 && s.high == 255);
    s = sample(filled(TYPE_S4, "normal(0,100)"));
    CHECK(s.low == -8 && s.high == 7);
    s = sample(filled(TYPE_PRED, "uniform(0,2)"));
    CHECK(s.low == 0 && s.high == 1 && fabs(s.mean - 0.5) < 0.015);
    s = sample(filled(TYPE_S64, "special"));
    CHECK(s.low == (double)INT64_MIN && s.high == (double)INT64_MAX && s.zeros > 0);
    s = sample(filled(TYPE_S64, "uniform(-9.3e18,9.3e18)")); /* all of them */
    CHECK(s.low < -9.2e18 && s.high > 9.2e18);
    s = sample(filled(TYPE_U32, "large"));
    CHECK(s.low == 0 && s.high > 2147483648.0);
    Dist x;
    CHECK(dist_parse("uniform(0.25,0.75)", &x) && dist_refused(&x, TYPE_S32) && !dist_refused(&x, TYPE_F16));
    CHECK(dist_parse("uniform(300,400)", &x) && dist_refused(&x, TYPE_U8) && !dist_refused(&x, TYPE_U16));
    puts("ok integers");
}

int main(void)
{
    test_text();
    test_floats();
    test_integers();
    return 0;
}
