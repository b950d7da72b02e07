/* What is known of exp(x - max(x)) and its sum along a row, which softmax, its logarithm and cross-entropies are made of. */
#ifndef ANALYSIS_SOFTMAX_H
#define ANALYSIS_SOFTMAX_H

#include "ir/inst.h"

/* x - max(x) along some dimensions: at most 0, or NaN. */
bool inst_is_below_max(const Inst *i);

/* exp(x - m) that is only summed along the dimensions of m, which is max(x), or 0 where that is infinite or NaN: as logarithms of sums are written. Its argument is at most 0, or infinite, or
 * NaN; or what it gives, if no NaN, is added to infinity. */
bool inst_is_summed_below_max(const Inst *exponential);

/* A broadcast of the sum of exp(x - max(x)) along the dimensions of that maximum: 1 at least, or NaN. Its reciprocal is a normal number. */
bool inst_is_softmax_sum(const Inst *i);

/* i is an extreme of floats along rows, and where a row has a NaN, all of its computation's results that are made of i have NaN anyway: it may leave NaN out. */
bool inst_shows_nan_anyway(const Inst *i);

/* An exponential of 0 at most: of -|x|, as in log(1 + e^x) and in the logarithm of a logistic function, or of what is below its maximum. */
bool inst_is_one_at_most(const Inst *i);

#endif
