/* walk.h - sums of products of which one operand is read where it lies, without being packed.
 *
 *     C[i, j] = sum over runs and their terms t of A[run.a + i * a_row + t * a_step] * B[run.b + t, j]
 *
 * That is a few pixels of a convolution by a panel of its features, where the pixels' windows lie evenly apart: a line of the window is a run. It is also a few rows of
 * a filter's gradient, where a line of the image is one. */
#ifndef HLORT_WALK_H
#define HLORT_WALK_H

#include "runtime/gemm.h"

typedef struct WalkRun {
    int64_t a, b, n; /* elements of A behind the first; rows of B; terms */
} WalkRun;

/* Columns: half of a vector's where those are 8 at least, a vector's, a panel's. */
typedef enum WalkWidth { WALK_HALF, WALK_VECTOR, WALK_PANEL, WALK_WIDTHS } WalkWidth;

typedef struct Walk {
    const void    *a, *b; /* words; B as [terms][columns], columns as width says */
    int64_t        a_row, a_step;
    const WalkRun *runs;
    int64_t        n_runs;
    void          *c;
    int64_t        c_row, rows;
    WalkWidth      width;
    int            add; /* C is begun */
} Walk;

typedef void WalkFunction(const Walk *w);

/* What a set of instructions has for words of one size. */
typedef struct WalkKernels {
    WalkFunction *run;
    int64_t       rows, columns[WALK_WIDTHS]; /* of a tile, at most; a width that there is not has 0 */
} WalkKernels;

enum { WALK_MOST_ROWS = 14, WALK_MOST_COLUMN_BYTES = 128 };

/* The narrowest width for n columns, or a panel. */
static inline WalkWidth walk_width(const WalkKernels *k, int64_t n)
{
    return n <= k->columns[WALK_HALF] ? WALK_HALF : n <= k->columns[WALK_VECTOR] ? WALK_VECTOR : WALK_PANEL;
}

/* The kernels for sums of a type, or NULL. */
static inline const WalkKernels *walk_kernels(const KernelSet *s, GemmType t)
{
    const KernelSet *set = s->walk[0] ? s : s->rest;
    return t == GEMM_F64 ? set->walk[1] : t <= GEMM_F16_F32 ? set->walk[0] : 0;
}

#endif
