/* The computations that reduce, map, scatter, sort and their like apply to scalars.
 *
 * Such a body is compiled once into a list of kernels over registers and then runs on many elements (lanes) at a time, so no
 * instruction tree is walked for an element. A body with anything but scalar arithmetic in it is run through the engine, lane by lane. */
#ifndef EVAL_BODY_H
#define EVAL_BODY_H

#include "eval/engine.h"
#include "eval/arith.h"
#include "eval/walk.h"

typedef struct Body Body;

/* The body c of caller: scalar parameters; a scalar or a tuple of scalars. Compiled at the first call. */
Body *body_get(Eval *e, const Inst *caller, const Comp *c);

/* Runs it on n lanes: params[k] and results[k] are arrays of n values of the body's own types. A result may be the same array as a
 * parameter. False after failing. */
bool body_run(Eval *e, Body *b, const void *const *params, void *const *results, int64_t n);

/* Folds arrays into arrays: over the whole of o, for all k < n at once,
 *   acc_k[at 0] = body(acc_1[at 0] .. acc_n[at 0], x_1[at 1] .. x_n[at 1])_k
 * Array 0 of o walks the acc, array 1 the x; no two indices of o have the same place in acc. Types are those of the body's
 * parameters. False after failing. */
bool body_fold(Eval *e, Body *b, int32_t n, Literal *const *acc, Literal *const *x, const Odometer *o);

/* The opcode when the body is one operation on its two parameters, in either order where that makes no difference; OP_COUNT if not. */
Op body_binary_op(const Body *b);

Type body_result_type(const Body *b, int32_t k);
Type body_param_type(const Body *b, int32_t k);

#endif
