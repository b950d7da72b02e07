/* Where errors are counted, and what is shown of them. */
#include "config.h"

#include "data/histogram.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"

static bool shows(int n, const double *v, const char *want)
{
    Histogram h;
    Buf       b = { 0 };
    memset(&h, 0, sizeof h);
    for (int k = 0; k < n; k++)
        histogram_add(&h, v[k]);
    histogram_print(&b, &h);
    bool same = strcmp(b.p ? b.p : "", want) == 0;
    if (!same)
        fprintf(stderr, "expected %s\n     got %s\n", want, b.p ? b.p : "");
    buf_free(&b);
    return same;
}
#define SHOWS(want, ...) CHECK(shows((int)(sizeof(double[]){ __VA_ARGS__ } / sizeof(double)), (double[]){ __VA_ARGS__ }, want))

static void test_steps(void)
{
    SHOWS("0: 2", 0, 0.0);
    SHOWS("0: 1, beyond: 2", 0, INFINITY, NAN);
    SHOWS("<=1: 1", 1);
    SHOWS("<=1: 1, <=2: 2, <=5: 1", 1, 1.0000001, 2, 2.5); /* at a bound, above it */
    SHOWS("<=1e-7: 1, <=2e-7: 1, <=5e-7: 2, <=1e-6: 1", 1e-7, 1.5e-7, 3e-7, 5e-7, 6e-7); /* fine where they are close */
    SHOWS("<=1e-8: 1, <=1e-4: 2, <=1: 1", 3e-9, 1e-4, 2e-5, 0.3); /* nine decades: whole ones */
    SHOWS("<=1e-300: 1, <=1e-150: 1, <=1: 1", 1e-310, 1e-160, 1); /* a wide range: several a step */
    puts("ok steps");
}

/* Every number has a place, the smallest and the largest too, and there are never too many rows. */
static void test_range(void)
{
    Histogram    h;
    HistogramRow rows[HISTOGRAM_SHOWN + 2];
    memset(&h, 0, sizeof h);
    int64_t count = 0;
    for (int e = -1074; e <= 1023; e++, count++) {
        histogram_add(&h, ldexp(1, e));
        int     n = histogram_rows(&h, rows);
        int64_t sum = 0;
        CHECK(n >= 1 && n <= HISTOGRAM_SHOWN);
        for (int k = 0; k < n; k++) {
            sum += rows[k].count;
            CHECK(k == 0 || rows[k].upto > rows[k - 1].upto);
        }
        CHECK(sum == count + 1 && rows[n - 1].upto >= ldexp(1, e));
    }
    histogram_add(&h, DBL_MAX);
    int n = histogram_rows(&h, rows);
    CHECK(isinf(rows[n - 1].upto) == 0 || rows[n - 1].count > 0);
    puts("ok range");
}

int main(void)
{
    test_steps();
    test_range();
    return 0;
}
