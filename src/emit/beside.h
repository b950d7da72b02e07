/* Short rows beside each other. A row of a few elements that is summed, or goes through softmax or a norm, is too short for lanes; lanes may be rows:
 *
 *     for i: { m = -inf; for j < 10: m = max(m, x[i][j]);      for b: { float m[64], c[10][64];  turn 64 rows of x into the columns of c
 *              ... }                                      =>           for r < 64: m[r] = -inf;  for j < 10: for r < 64: m[r] = max(m[r], c[j][r])
 *                                                                      ... }  and rows that fill no block as before
 *
 * What a loop stores in rows is stored in columns, and turned. Every row sees the same operations in the same order. */
#ifndef EMIT_BESIDE_H
#define EMIT_BESIDE_H

#include "emit/kernel_ir.h"

enum { BESIDE_LEAST = 4, BESIDE_MOST = 64, /* elements of a row; of narrow floats, and pairs, fewer */
       BESIDE_LANES = 32, /* from here on only rows of which more is made than one value, or that take long, and that do not fill lanes: others have lanes */
       BESIDE_ROWS = 128 /* at least */ };

/* False, and nothing is changed: no loop of the kernel is over such rows. */
bool kernel_rows_beside(Kernel *k, IxCtx *cx);
/* Likewise of that loop of the block. */
bool loop_rows_beside(Kernel *k, IxCtx *cx, KBlock *in, KStmt *loop);
/* What `put` says of the kernel's body, whose loops it puts beside each other; false where a result may be an operand, which it is not asked about. */
bool kernel_beside(Kernel *k, IxCtx *cx, bool (*put)(Kernel *k, IxCtx *cx, KBlock *b));

/* What a nest does (KStmt.turning) that a function of the prelude does in vectors: to[column * rows + row] = from[row * stride + column]; back: to[row * stride + column] =
 * from[column * rows + row]; backwards: to[row * columns + column] = from[(rows - 1 - row) * columns + column]. */
typedef struct Turning {
    const KArray *to, *from;
    const Ix     *to_at, *from_at; /* the first element */
    int64_t       stride, rows, columns;
    bool          back, backwards;
} Turning;

/* Its name; NULL: there is none. */
const char *turning_function(const Turning *t);

#endif
