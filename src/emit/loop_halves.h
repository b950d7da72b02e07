/* Steps of loops in blocks (loop_rounds.h) that are computed as f16 where processors do that. f32 has 24 digits, twice those of f16 and two, so a sum, a product, a quotient or a root that is rounded to f32
 * and then to f16 has the bits of one that is rounded to f16 at once; signs, extremes, comparisons and choices round nothing. Such a step is a loop of its own over blocks of `hlo_half`, which is float
 * elsewhere (prelude.c): as before, then, with the same bits.
 *
 *     for k < 32: out[k] = tanh(f16_round(in[k] * in[k]))
 *     =>  for k < 32: kept[k] = in[k] * in[k];  half_block_round(kept, 32);  floats = half_block_to_f32(kept);  for k < 32: out[k] = tanh(floats[k]) */
#ifndef EMIT_LOOP_HALVES_H
#define EMIT_LOOP_HALVES_H

#include "emit/loop_blocks.h"

/* Sets ROUND_HALF and what follows from it. Of a loop of one step all is computed as f16, or nothing. */
void loop_halves(const KStmt *loop, LoopBlocks *b);

/* Bytes are among what such steps have, or what becomes f16 or bf16: vectors of them and of f16 have as many elements in 64, of fewer compilers make halves of vectors of f32, and a load of two such waits for
 * both to be stored. */
bool loop_halves_by_bytes(const KStmt *loop, const LoopBlocks *b);

/* x is a float that is declared around the loop, or an element of an array there that is the same in all iterations. */
bool half_is_around(const KStmt *loop, const KExpr *x);

/* What of the prelude the call is for f16; NULL: it is no call of such a function. */
const char *half_function(const KExpr *x);

#endif
