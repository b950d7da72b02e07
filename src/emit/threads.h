/* A kernel as parts that many threads work on at once, for targets that have them. The parts are done one after the other, each when the one before is
 * over. Within a part every thread runs `body` for one value of all `loops`; what it computes and where is what the kernel's loops would.
 *
 *     for (i0 ...)            loops = { i0, i1 }       body:  out[i0 * 8 + i1] = ...
 *         for (i1 ...)
 *             out[i0 * 8 + i1] = ...
 *
 * A loop is such a loop only if its iterations do not depend on each other: what one writes no other reads or writes. That is shown by indices
 * alone: see threads.c. Updates of integers in any order are the exception: their stores are marked as atomic. A part without loops is for one thread. */
#ifndef EMIT_THREADS_H
#define EMIT_THREADS_H

#include "emit/kernel_parts.h"

typedef struct ThreadPart {
    KernelPart           whole;  /* for what it uses */
    const KBlock        *before; /* values that are the same for all threads */
    const KBlock        *body;
    int32_t              n_loops;
    const IxAtom *const *loops;  /* neighbours in the last one write neighbours in memory */
    int64_t              count;  /* the product of their trips, 1 without loops; 0: nothing is to be done */
} ThreadPart;

/* Is the kernel a row of loops and values, which may be done in parts? */
bool kernel_is_divisible(const Kernel *k);
/* The loops of the nest s, from the outside in, whose iterations do not depend on each other. */
int32_t kernel_independent_loops(Arena *a, const Kernel *k, const KStmt *s, const IxAtom *const **loops);
/* That body with those of the values before the kernel's loops that it needs. */
KernelPart kernel_part_with_values(Arena *a, const Kernel *k, const KBlock *body);

/* The number of parts, one or more; they live in a. */
int32_t kernel_threads(Arena *a, const Kernel *k, ThreadPart **parts);

/* The two may be the same place in memory. */
bool kernel_same_memory(const Kernel *k, const KArray *x, const KArray *y);

#endif
