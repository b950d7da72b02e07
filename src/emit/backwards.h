/* Pieces of a few elements whose order is turned round, as the pixels of an image's lines are when left and right change places:
 *
 *     for i < 64: for j < 3: r[3 i + j] = f(x[189 - 3 i + j])
 *     =>  float x_backwards[192];  pieces_block_backwards(x_backwards, x, 12, 64);
 *         for i < 64: for j < 3: r[3 i + j] = f(x_backwards[3 i + j])
 *
 * No compiler makes vectors along that; the function turns some pieces of a vector round at once, and what is left is one loop. A mere copy is the call alone. */
#ifndef EMIT_BACKWARDS_H
#define EMIT_BACKWARDS_H

#include "emit/kernel_ir.h"

void kernel_pieces_backwards(Kernel *k, IxCtx *cx);

#endif
