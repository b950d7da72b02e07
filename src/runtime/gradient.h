/* gradient.h - a convolution with large windows that makes few pixels: the gradient of a filter, whose features read are the images and whose batch is features.
 *
 *     Y[b, o, f] = sum over images i and taps t of X[b, i, c] * W[t, i, f]          rows b, columns f, one product for each pixel o
 *
 * The taps along a line of the image are a run (walk.h): X is read where it lies, and what lies beside it is in no sum. */
#ifndef HLORT_GRADIENT_H
#define HLORT_GRADIENT_H

#include "runtime/gemm.h"

/* 0: it is not one of those, nothing is done. */
int hlort_gradient(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y);

#endif
