/* Loops one after the other that read the same elements and write different ones: parts that are stacked. One loop reads them once, and where they lie apart takes them out of the
 * same vectors (cross products of 10000 rows of 3 of f32 4.1 and 1.6 us).
 *
 *     for i < n: r[i] = x[3 i] y[3 i + 1]         for i < n: {
 *     for i < n: r[n + i] = x[3 i] y[3 i + 2]  =>     r[i] = x[3 i] y[3 i + 1];  r[n + i] = x[3 i] y[3 i + 2] } */
#ifndef EMIT_LOOPS_TOGETHER_H
#define EMIT_LOOPS_TOGETHER_H

#include "emit/kernel_ir.h"

/* The kernel's results are no operands. */
void kernel_loops_together(Kernel *k, IxCtx *cx);

#endif
