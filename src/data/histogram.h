/* How errors are spread, whatever their size: counted finely, shown as finely as their range allows. */
#ifndef DATA_HISTOGRAM_H
#define DATA_HISTOGRAM_H

#include <stdint.h>

#include "support/buf.h"

/* Bounds are 1, 2 and 5 times the powers of ten from 1e-324 to 1e308; what is counted at a bound is no larger than it and larger than the one below. */
enum { HISTOGRAM_LEAST = -324, HISTOGRAM_BINS = 3 * (308 - HISTOGRAM_LEAST) + 2 };

typedef struct Histogram {
    int64_t zero, beyond; /* beyond: infinite, NaN */
    int64_t v[HISTOGRAM_BINS];
} Histogram;

void histogram_add(Histogram *h, double x); /* x >= 0, or NaN */

/* What there is to show: zeros, at most HISTOGRAM_SHOWN steps between the smallest and the largest of the others, and what is beyond. Steps are
 * 1, 2, 5, 10 where four decades or less are filled, else whole decades or several. Empty steps are left out. */
enum { HISTOGRAM_SHOWN = 12 };
typedef struct HistogramRow {
    double  upto; /* 0 of zeros, infinity of what is beyond */
    int64_t count;
} HistogramRow;

int  histogram_rows(const Histogram *h, HistogramRow rows[HISTOGRAM_SHOWN + 2]);
void histogram_print(Buf *b, const Histogram *h); /* "0: 12, <=2e-7: 3, <=1e-6: 1, beyond: 1" */

#endif
