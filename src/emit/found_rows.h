/* Rows of a few elements that are made of rows at places which were computed, such as pixels between four others, of bf16 or f16, whose roundings are dear, or several of them with weights that
 * are computed, too; compilers make vectors along no such row:
 *
 *     for i: { p = place(x[i]);  for j < 3: r[i][j] = f(t[p][j]) }
 *     =>  for i: { p = place(x[i]);  u16 found[3];  found[0] = t[p][0], ...;  for j < 3: r[i][j] = f(found[j]) }
 *
 * Then nothing of a place is handed from one loop to the other, and rows go beside each other (beside.h): places are vectors, their elements are taken (loop_taken.h), and lanes are
 * rows (one thread of an Emerald Rapids, 48 x 64 pixels between four of 3 features, bf16 158 and 30 us, f16 186 and 31; one thread of a Zen 5, 200 x 200 of 256 x 256 x 3 of f32 384 and 161, XLA 171). */
#ifndef EMIT_FOUND_ROWS_H
#define EMIT_FOUND_ROWS_H

#include "emit/kernel_ir.h"

/* False, and nothing is changed: the kernel has no such rows. */
bool kernel_found_rows_beside(Kernel *k, IxCtx *cx);

#endif
