/* scan.h - running sums and the like of neighbours: between scan.c and the code of each set of instructions. */
#ifndef HLORT_SCAN_H
#define HLORT_SCAN_H

#include "runtime/hlort.h"

/* y[k] = carry op x[0] op ... op x[k], of n elements, from the last one back when backward; the carry is one element before the first, and becomes the last result. */
typedef void ScanFunction(const void *x, void *y, int64_t n, void *carry, int backward);
/* What all n of x, at least 1, are together. */
typedef void FoldFunction(const void *x, int64_t n, void *all, int backward);

/* `lines` lines of f16 or bf16, rounded at every step. */
typedef void ScanLinesFunction(const uint16_t *x, uint16_t *y, int64_t count, int64_t lines, const uint16_t *start, int backward);

typedef struct ScanKernels {
    ScanFunction *scan[HLORT_SCAN_KINDS];
    FoldFunction *fold[HLORT_SCAN_KINDS];
} ScanKernels;

#endif
