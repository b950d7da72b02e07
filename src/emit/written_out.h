/* Rows of two to four elements that follow each other, with values that each makes once: such as pixels of four features, one of which says how much of the others is there. Compilers
 * make no vectors of a loop in a loop, or vectors of one row; of the elements written out they make vectors of rows, which they read and write in order:
 *
 *     for i: { a = x[4 i + 3];                          for i: { a = x[4 i + 3];
 *              for j < 4: r[4 i + j] = x[4 i + j] a }  =>        r[4 i] = x[4 i] a;  r[4 i + 1] = x[4 i + 1] a;  ... }
 *
 * (200 x 300 pixels of bytes laid over others 88 and 7.1 us, of f32 37 and 13, of bf16 99 and 20.) */
#ifndef EMIT_WRITTEN_OUT_H
#define EMIT_WRITTEN_OUT_H

#include "emit/kernel_ir.h"

void kernel_write_out(Kernel *k, IxCtx *cx);

#endif
