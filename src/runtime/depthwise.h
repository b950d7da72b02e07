/* depthwise.h - a convolution whose groups read and make one feature each, features being neighbours in memory: lanes of a vector are features.
 *
 *     Y[pixel, c] = sum over taps t of X[pixel * stride + t, c] * W[t, c]
 *
 * Sums of a few pixels and some vectors of features stay in registers for all taps. Taps beside the image are left out, so there is nothing to mend. */
#ifndef HLORT_DEPTHWISE_H
#define HLORT_DEPTHWISE_H

#include "runtime/gemm.h"

/* Neighbours along the last spatial dimension that have the same taps. Distances are in elements; an outer tap is one in all dimensions but the last. */
typedef struct PixelRun {
    const void    *x, *w;
    int64_t        x_first, w_first; /* to the first pixel's first tap, within an outer tap */
    int64_t        n_outer;
    const int64_t *x_outer, *w_outer;
    int64_t        taps, x_tap, w_tap;
    int64_t        pixels, x_pixel;
    int64_t        channels;         /* at least HLORT_LEAST_CHANNELS */
    void          *sums;             /* of the first pixel */
    int64_t        stride;           /* to the next one's */
} PixelRun;

/* 0: it is not one of those (hlort_conv_by_channel), nothing is done. */
int hlort_depthwise(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y);

#endif
