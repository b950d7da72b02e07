/* Arguments made up for a module. */
#ifndef DATA_FILL_H
#define DATA_FILL_H

#include "ir/inst.h"

/* Streams of numbers, addressed by element: splitmix64 by counter.
 *   uniform: v = ((hash(seed, i) >> 40) * 2^-23 - 1) * scale + offset, in double, then to float, then to the type (f64: no rounding to
 *            float; complex: real part from element 2i, imaginary part from 2i + 1, both in double)
 *   int:     v = lo + (hash(seed, i) >> 32) * (hi - lo) >> 32 */
uint64_t fill_hash(uint64_t seed, uint64_t i);
void     fill_uniform(Literal *l, uint64_t seed, double scale, double offset);
void     fill_int(Literal *l, uint64_t seed, int64_t lo, int64_t hi);
void     fill_const(Literal *l, double v);

/* Constrained arguments for every ENTRY parameter (tuples as tuples): indices stay in range, sort keys are distinct where that
 * matters, reduction starts are identities (reference operations 22). One literal per parameter in args; false after reporting. */
bool fake_arguments(const Module *m, uint64_t seed, Literal **args, Diag *d);

#endif
