/* What a module costs, counted on its text: which instructions are kernels, what they read and write, how many operations they do.
 *
 *   kernel   a fusion, or an instruction outside of fusions that moves data. Parameters, constants, tuples and their elements, and what
 *            only gives another name to bytes that are there (bitcasts, reshapes and transposes that change no order, loops, branches
 *            and calls, whose computations are counted) are none.
 *   bytes    the operands of a kernel, each of the first 64 once, and its result, in full
 *   flops    one for each element of an elementwise operation that computes, two for a multiplication with its addition in dot and
 *            convolution; what is applied by a reduction counts as often as it is applied. Padding counts as data.
 *
 * Sums stay at INT64_MAX when they reach it; sizes that are not known count as 0. */
#ifndef ANALYSIS_COST_H
#define ANALYSIS_COST_H

#include "ir/inst.h"

/* A row that several loops of one kernel need is kept, not computed again, up to this size, that of all such rows together: they stay in a second-level cache. */
enum { KEPT_ROW_BYTES = 1 << 18 };

int64_t cost_add(int64_t a, int64_t b); /* of numbers from 0 on */
int64_t cost_mul(int64_t a, int64_t b);

bool inst_names_buffer(const Inst *i);
/* Of a computation that runs as such: not of a fusion, not applied to elements. */
bool    inst_is_kernel(const Inst *i);
bool    inst_is_dear(const Inst *i);         /* costs tens of cycles an element, or memory accesses out of order: better computed once */
bool    inst_is_library_call(const Inst *i); /* a kernel that is a dot, convolution, sort, fft, ... by itself: mostly a routine's work */
int64_t inst_bytes(const Inst *i);
/* How often each computation runs when the module does, by computation; those that are fused or applied to elements are not in it. A
 * loop of unknown trips runs once, and is counted in *unknown_trips when that is not NULL; of a conditional, every branch runs. In a. */
Map module_runs(Arena *a, const Module *m, int64_t *unknown_trips);

/* What each computation does when it runs once, by computation; what it runs through while, conditional and call is left out. In a. */
Map     module_flops(Arena *a, const Module *m);
int64_t inst_flops(const Inst *i, const Map *of_comps); /* with what it applies or has fused */

#endif
