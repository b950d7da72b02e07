/* Dynamic sizes. The dimensions of a value are its sizes when run: an array smaller than its bound is a smaller array. Where it was cut by
 * set-dimension-size, or updated, it keeps what it was cut from: a size that is set anew shows it. An instruction whose operands are smaller
 * than their types say runs as the static instruction that their sizes make of it: operand types, attributes that mean a whole dimension, and
 * the result type are those of arrays of these sizes.
 * Source: reference operations 18. */
#ifndef EVAL_SIZES_H
#define EVAL_SIZES_H

#include "eval/engine.h"

/* Runs i by its handler, on operands that may be smaller than their types. */
Literal *eval_sized(Eval *e, const Inst *i, Literal **x);

/* Why i cannot run on operands whose types are dynamic; NULL when it can, or when none is. */
const char *sizes_refused(Arena *a, const Inst *i);

/* True for a value that s may have: the type, and the dimensions, dynamic ones up to their bound. */
bool sizes_fit(const Literal *l, const Shape *s);

/* Reshape moves the dynamic mark within groups of dimensions of equal product, and there between one dimension and several
 * (sizes_reshape.c). dims: the result's sizes for an operand of these sizes. Returns NULL, or why there are none. */
const char *sizes_reshape(const Inst *i, const int64_t *from, int64_t *dims);

static inline bool dim_is_dynamic(const Shape *s, int64_t d) { return s->dynamic && s->dynamic[d]; }

#endif
