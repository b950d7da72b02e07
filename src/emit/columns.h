/* Columns beside each other. Softmax or a norm down the columns of an array (analysis/columns.h) is lowered one column at a time; here the loop over columns is
 * cut into blocks that a cache holds, and goes inside of all that was in it:
 *
 *     for i: for c: { float max = -inf;                         for i: for b: { float max[64];
 *                     for j: max = larger(max, x[i][j][c])  =>                  for c < 64: max[c] = -inf
 *                     ...                                                       for j: for c < 64: max[c] = larger(max[c], x[i][j][64*b + c])
 *
 * A scalar that is set in one loop over columns and used in another one becomes an array, an array of a column gets columns. */
#ifndef EMIT_COLUMNS_H
#define EMIT_COLUMNS_H

#include "emit/kernel_ir.h"

void kernel_columns(Kernel *k, IxCtx *cx);

/* The same for a loop over rows that lie one behind the other (beside.h): blocks of `width` of them, as many as there are, whose loops over rows are marked `beside`.
 * The loop stays as it is. NULL: that cannot be; else the statement that all blocks are, and the arrays that they declare. */
KStmt *columns_of_rows(Kernel *k, IxCtx *cx, KStmt *loop, int64_t width, int32_t *n_arrays, KArray *const **arrays);

#endif
