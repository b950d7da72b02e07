/* The verifier: what XLA checks after parsing. Structure, shapes (through infer_shape), called computations, aliases, schedule,
 * collectives, async pairs. Source: reference operations 2, 14 to 20.
 *
 * Strictness is that of XLA's run_hlo_module: layouts and dynamic marks are ignored where shapes are compared, and mixed
 * precision is allowed in operations that compute (elementwise ones, reductions, dots, convolutions): floats of different types
 * may meet in one instruction, and the written result may be another float type than the inferred one. What moves or hands on
 * data is exact. Stricter than XLA, since nothing could run such modules: floats of different types in concatenate, pad, updates,
 * scatter, scan and sort; byte sizes of bitcast; the state of rng-bit-generator; fft_length; batching dimensions of gather and scatter
 * that are also indexed. */
#ifndef IR_VERIFY_H
#define IR_VERIFY_H

#include "ir/inst.h"

/* Reports everything that is wrong, up to d->max_errors; true when nothing is. Uses the marks of computations and instructions. */
bool verify_module(const Module *m, Diag *d);

#endif
