/* Rows that go through several loops, a few at a time.
 *
 *     for i { m = -inf; for j: m = max(m, x[i][j]);  for j: e[j] = exp(x[i][j] - m);  ... }
 *
 * One row's loops wait for each other: the end of a maximum is a chain of steps, and nothing of the next loop can begin before it. So each loop does
 * ABREAST rows before the next one begins, and what the loops hand on gets an element, or a row, for each:
 *
 *     for i { float m[4], e[4][n];
 *         for r < 4 { m[r] = -inf; for j: m[r] = max(m[r], x[4i + r][j]); }
 *         for r < 4 { for j: e[r][j] = exp(x[4i + r][j] - m[r]); }  ... }
 *
 * So do ABREAST_DEAR rows where numbers of a row are dear, which a row alone has no vectors for: exp(g[i]) in front of a loop over x[i][j], the logarithm of a row's sum,
 * what is rounded to bf16 or f16, and, unless rows come from memory, square roots and quotients. Fewer than ABREAST_DEAR rows that are left go ABREAST by ABREAST.
 *
 * Of long rows ABREAST_LONG go together where three loops or more wait for each other; lanes are joined in the stage that fills them, and the second stage fetches what the next rows begin with (fetch_ahead.h).
 *
 * Every row sees the same operations in the same order. Measured, 20000 rows of 64 and 65536 of 128 elements of a softmax with AVX-512: 1.46 -> 0.78 ms, 4.9 -> 4.4; long ones on a
 * Zen 5: 96 rows of 1000 of f32 of a layer norm 10.1 -> 7.3 us, of bf16 13.0 -> 9.5, 2000 of 2048 of a softmax 796 -> 581, of bf16 757 -> 604. */
#ifndef EMIT_ABREAST_H
#define EMIT_ABREAST_H

#include "emit/kernel_ir.h"

/* Changes the kernel, whose loops are collapsed. Those stay as they are of whose rows the first cache has no room for several, whose long loops wait for no number of a row, unless such
 * numbers are dear, or that hand on values through memory that is not theirs. */
void kernel_rows_abreast(Kernel *k, IxCtx *cx);

#endif
