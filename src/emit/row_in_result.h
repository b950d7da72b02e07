/* Rows that are kept in the result. What a row is made of at last often takes the place of what was kept for it:
 *
 *     for i: { float e[N];                                        for i: {
 *         for j: e[j] = exp(x[i][j] - max)                            for j: out[i][j] = exp(x[i][j] - max)
 *         for j: sum += e[j]                                =>        for j: sum += out[i][j]
 *         for j: out[i][j] = e[j] * reciprocal }                      for j: out[i][j] = out[i][j] * reciprocal }
 *
 * so that the lines of the result come into the caches while exponentials are computed, not when nothing else is left to do. */
#ifndef EMIT_ROW_IN_RESULT_H
#define EMIT_ROW_IN_RESULT_H

#include "emit/kernel_ir.h"

void kernel_rows_in_results(Kernel *k, IxCtx *cx);

#endif
