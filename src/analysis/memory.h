/* When two shapes, or an instruction and its operand, are the same bytes in the same order: what needs no work at run time; arrays in tuples. */
#ifndef ANALYSIS_MEMORY_H
#define ANALYSIS_MEMORY_H

#include "ir/inst.h"

/* Arrays of one element type whose elements lie in memory in the same order. The sizes may differ (a reshape, a bitcast) as long as
 * both are row-major; for equal sizes the order of dimensions of size 1 does not matter. */
bool shape_same_memory(const Shape *a, const Shape *b);

/* The number, of the arrays in s from left to right, of the one at index; -1: there is none. */
int32_t shape_leaf_at(const Shape *s, Ints index);

/* Instructions whose value is that of an operand, leaf by leaf: opt-barrier, domain, add-dependency, copy, copy-done, ... and calls of
 * the markers of reference operations 19.1. Only what one device does: a collective with one participant is one of them. Returns
 * the number of the operand, or -1. Shapes and layouts may still differ. */
int32_t inst_forwards(const Inst *i);

#endif
