/* Collectives of the same kind that do not need each other become one that has all their operands. */
#ifndef PASSES_COMBINE_H
#define PASSES_COMBINE_H

#include "passes/pass.h"

/* Combines those of this opcode. Options of the pass: bytes=N of all operands together, count=N operands. */
bool combine_collectives(Module *m, PassCtx *cx, Op op);

/* Whether two collectives do the same to different arrays: groups, reducer, dimensions, all but their channels. */
bool collectives_alike(const Inst *a, const Inst *b);

/* The order of the operands is nothing to the result: maxima, minima, and, or, and integers. */
bool reduces_exactly(Op op, Type t);

/* i, an operation on the results of two such collectives that reduce by it, as one collective of the operation on their operands; NULL: it is none. Option of
 * the pass: exact (all_reduce_reassociate.c). */
Inst *reduced_together(PassCtx *cx, Inst *i, Op collective);

#endif
