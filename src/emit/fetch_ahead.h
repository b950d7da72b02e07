/* Rows that go abreast are read, and written, in bursts, of which processors foresee less the longer the rest of a row takes. So a loop that goes through a row in lanes fetches what it
 * touches of the rows that come next:
 *
 *     for j < n / 64 { fetch_ahead(&x[2 (i + 1) + r][64 j], 256);
 *         for l < 64: lane[l] += (x[2 i + r][64 j + l] - mean[r]) * ... }
 *
 * So does a loop that makes something dear of a row which another one has read before: memory has nothing to do meanwhile.
 *
 * Where a row of a large array makes a number, processors foresee no more than the page at hand, and what they do between rows and between pages adds up to a third of the time:
 * such loops fetch what is two pages ahead.
 *
 *     for j < n / 64 { fetch_far_ahead(&x[i][64 j + 2048], 256); ... }
 *
 * One thread of a Zen 5: maxima of 300 rows of 50257 of f32 1710 and 1190 us, of bf16 714 and 587; 4096 rows of 1024 of f32: a layer norm 484 and 443 us, a softmax, whose
 * result is stored through the caches, 700 and 620, one of 128 rows of 32000 795 and 640. */
#ifndef EMIT_FETCH_AHEAD_H
#define EMIT_FETCH_AHEAD_H

#include "emit/kernel_ir.h"

/* Sets what loops fetch (KStmt.fetched) whose `ahead` is set, for a kernel whose results that go past the caches are known. */
void kernel_fetch_ahead(Kernel *k, IxCtx *cx);

/* The one of the prelude's. */
const char *kernel_fetching_function(const KFetch *x);

#endif
