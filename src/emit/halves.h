/* Innermost loops that read or write f16 one after the other, in blocks of vectors: compilers make no vectors of conversions between f16 and f32 by themselves.
 *
 *     for i < n: r[i] = f32_to_f16(f16_to_f32(x[i + 3]) * y[i])
 *     =>  for from < n, by 16: { in[16] = x[from + 3 ...];  for k < 16: out[k] = in[k] * y[from + k];  r[from ...] = out }, and what is left as before */
#ifndef EMIT_HALVES_H
#define EMIT_HALVES_H

#include "emit/kernel_ir.h"

enum { MOST_HALVES = 8, HALVES_BLOCK = 16 };

typedef struct Half {
    const KArray *array;
    const Ix     *index;
} Half;

typedef struct Halves {
    int32_t n_in, n_out;
    Half    in[MOST_HALVES], out[MOST_HALVES];
    int64_t size; /* of a block */
    bool    rest; /* the loop may have elements that fill no block */
} Halves;

/* False: the loop has none, or cannot be in blocks. */
bool halves_of(const KStmt *loop, Halves *h);

/* The number of what x loads, of what s stores; -1: none of them. */
int32_t halves_in(const Halves *h, const KExpr *x);
int32_t halves_out(const Halves *h, const KStmt *s);

#endif
