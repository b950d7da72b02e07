/* A kernel as functions of which each does a range of one loop's trips, for targets on which a few threads take ranges from each other. The functions
 * are done one after the other, each when all ranges of the one before are over.
 *
 *     for (i0 ...)                                 part(out, x, from, end):  for (i0 from .. end)
 *         for (i1 ...)                                                           for (i1 ...)
 *             out[i0 * 8 + i1] = ...                                                 out[i0 * 8 + i1] = ...
 *
 * Only loops whose iterations do not depend on each other are divided (threads.c), so that it does not matter who does which range. How long a
 * range is follows from the work in it, not from the number of threads. A copy that is made only where the result is not in place is a part of its own, so that
 * nobody is woken up for it where there is none. */
#ifndef EMIT_RANGES_H
#define EMIT_RANGES_H

#include "emit/kernel_parts.h"

/* What bodies call the ends of the range. */
#define RANGE_FROM "range_from"
#define RANGE_END "range_end"

typedef struct RangePart {
    KernelPart whole;
    int64_t    lo, end; /* trips of the loop; n == 1: the body has all of its loops */
    int64_t    size;    /* trips of a range */
    int64_t    n;       /* ranges */
    const KExpr *distinct; /* not NULL: nothing is done where the two arrays are the same memory */
} RangePart;

/* Operations of the innermost loops, of which one takes about 0.1 ns; without end when there are loops whose trips nobody knows. */
double kernel_work(const Kernel *k);

/* The number of parts, which live in a; 0: the kernel is too small, or none of its loops can be divided. */
int32_t kernel_ranges(Arena *a, const Kernel *k, RangePart **parts);

#endif
