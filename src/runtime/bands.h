/* bands.h - a convolution of few features: what a band of the result needs of the image, of one group, is copied once, with its border, and lies in the caches.
 *
 * Neighbouring pixels' windows then are evenly apart, and lines of a window are runs of neighbours (walk.h): nothing is copied for each window. */
#ifndef HLORT_BANDS_H
#define HLORT_BANDS_H

#include "runtime/gemm.h"

/* 0: it is not one of those, nothing is done. */
int hlort_bands(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y);

#endif
