/* Bin k counts (bound k-1, bound k]. */
#include "config.h"

#include "data/histogram.h"

#include <math.h>

static int power_of(int k)
{
    return HISTOGRAM_LEAST + k / 3;
}

static int digit_of(int k)
{
    static const int digits[] = {1, 2, 5};
    return digits[k % 3];
}

static double bound(int k)
{
    double p = pow(10, power_of(k));
    return p > 0 ? digit_of(k) * p : digit_of(k) * 0x1p-1074; /* 1e-324 is below what there is */
}

void histogram_add(Histogram *h, double x)
{
    if (x == 0) {
        h->zero++;
        return;
    }
    if (!isfinite(x)) {
        h->beyond++;
        return;
    }
    int k = 3 * ((int)floor(log10(x)) - HISTOGRAM_LEAST);
    k = k < 0 ? 0 : k < HISTOGRAM_BINS ? k : HISTOGRAM_BINS - 1;
    while (k > 0 && x <= bound(k - 1))
        k--;
    while (k < HISTOGRAM_BINS - 1 && x > bound(k))
        k++;
    h->v[k]++;
}

/* The last bin of the step that k is in: its bound is ten to a multiple of `decades`, unless these are 0: then a bin is a step. */
static int step_end(int k, int decades)
{
    if (decades == 0)
        return k;
    int power = HISTOGRAM_LEAST + (k + 2) / 3; /* of the next bound that is a power of ten */
    power = (power > 0 ? power + decades - 1 : power) / decades * decades;
    int end = 3 * (power - HISTOGRAM_LEAST);
    return end < HISTOGRAM_BINS ? end : HISTOGRAM_BINS - 1;
}

static int steps_between(int first, int last, int decades)
{
    int n = 0;
    for (int k = first; k <= last; k = step_end(k, decades) + 1)
        n++;
    return n;
}

int histogram_rows(const Histogram *h, HistogramRow rows[HISTOGRAM_SHOWN + 2])
{
    static const int widths[] = {0, 1, 2, 5, 10, 20, 50, 100};
    int n = 0, first = 0, last = HISTOGRAM_BINS - 1, width = 0;
    if (h->zero)
        rows[n++] = (HistogramRow){0, h->zero};
    while (first < HISTOGRAM_BINS && !h->v[first])
        first++;
    while (last > first && !h->v[last])
        last--;
    while (first < HISTOGRAM_BINS && steps_between(first, last, widths[width]) > HISTOGRAM_SHOWN)
        width++; /* 100 is enough for 632 decades */
    for (int k = first; k < HISTOGRAM_BINS && k <= last;) {
        int          end = step_end(k, widths[width]);
        HistogramRow row = {bound(end), 0};
        for (; k <= end; k++)
            row.count += h->v[k];
        if (row.count)
            rows[n++] = row;
    }
    if (h->beyond)
        rows[n++] = (HistogramRow){INFINITY, h->beyond};
    return n;
}

/* 0.002, 20, 5e-7 */
static void put_bound(Buf *b, double v)
{
    int power = (int)floor(log10(v) + 1e-9);
    if (power >= -3 && power <= 3)
        buf_printf(b, "%g", v);
    else
        buf_printf(b, "%.0fe%d", v / pow(10, power), power);
}

void histogram_print(Buf *b, const Histogram *h)
{
    HistogramRow rows[HISTOGRAM_SHOWN + 2];
    int          n = histogram_rows(h, rows);
    for (int k = 0; k < n; k++) {
        buf_puts(b, k > 0 ? ", " : "");
        if (rows[k].upto == 0)
            buf_puts(b, "0");
        else if (isinf(rows[k].upto))
            buf_puts(b, "beyond");
        else {
            buf_puts(b, "<=");
            put_bound(b, rows[k].upto);
        }
        buf_printf(b, ": %lld", (long long)rows[k].count);
    }
}
