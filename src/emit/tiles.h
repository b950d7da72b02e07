/* Parts (threads.h) that are products of matrices, for targets whose threads share tiles of them: a dot, a convolution, whatever a fusion makes of the factors
 * before and of the sums after.
 *
 *     for b, m, n:                              loops that both factors depend on are batch, the others rows and cols
 *         acc = 0
 *         for k:                                may be several loops; some (m, k) or (k, n) may be left out by a condition
 *             acc = acc + lhs(b, m, k) * rhs(b, k, n)
 *         out[b, m, n] = f(acc, b, m, n)
 *
 * What a condition leaves out is added as a product with 0, which is no number where the other factor is infinite or none. */
#ifndef EMIT_TILES_H
#define EMIT_TILES_H

#include "emit/threads.h"

typedef struct TileLoops { /* as one number, the last loop fastest */
    int32_t       n;
    const IxAtom *v[16];
    int64_t       count;
} TileLoops;

typedef struct TileSide {
    const KBlock *body;  /* ends in an assignment to value; under the conditions, which may leave it as it is */
    KTemp        *value;
    bool          along; /* neighbours in k are neighbours in memory */
    int32_t       row;   /* 0, or so many neighbours are all of a short loop, behind which the next value of the other side's last loop follows in memory */
} TileSide;

typedef struct TilePart {
    TileLoops    batch, rows, cols, k;
    TileSide     lhs, rhs;
    const KExpr *step;      /* acc + lhs * rhs */
    const KTemp *acc;
    const KBlock *epilogue; /* with the sum in acc: the part's statements but for the sum's */
} TilePart;

/* False: the part has another form. */
bool kernel_tile_part(Arena *a, const ThreadPart *part, TilePart *out);

#endif
