/* Rows of a few elements for each of which something dear is computed, and that are no one loop, since what they are made of is repeated along them, or from row to row:
 *
 *     for i: for j < 6: r[i][j] = pow(x[i], 5 - j)
 *
 * A row fills no vector, but many rows beside each other (beside.h) do. So do parts of a row that are loops of their own, and rows of f16, of which each conversion is a dozen instructions
 * in no vector. */
#ifndef EMIT_DEAR_ROWS_H
#define EMIT_DEAR_ROWS_H

#include "emit/kernel_ir.h"

/* False, and nothing is changed: the kernel has no such rows. */
bool kernel_dear_rows_beside(Kernel *k, IxCtx *cx);

#endif
