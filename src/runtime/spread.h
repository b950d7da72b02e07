/* spread.h - a convolution with stride 1 whose groups make few features: each pixel of the image is spread over pixels of the result.
 *
 *     S[pixel, tap] = sum over features i of X[pixel, i] * W[tap, i]          Y[base * pixel + pad - dilation * tap] += S[pixel, tap]
 *
 * The product has a column or row for each tap, where others have one for each feature; and X is read as it lies. Holes and border are in no sum. */
#ifndef HLORT_SPREAD_H
#define HLORT_SPREAD_H

#include "runtime/gemm.h"

/* 0: it is not one of those, nothing is done. */
int hlort_spread(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y);

#endif
