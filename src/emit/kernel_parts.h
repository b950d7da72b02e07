/* A kernel as the functions it is printed as: one, or several where it is a long row of loops (a concatenate of hundreds of arrays).
 * The time that compilers take grows with the square of the loops in a function: gcc 12 needs 0.2 s for 16, 15 s for 128. */
#ifndef EMIT_KERNEL_PARTS_H
#define EMIT_KERNEL_PARTS_H

#include "emit/kernel_ir.h"

typedef struct KernelPart {
    const KBlock  *body;
    bool          *uses;     /* by number of parameter, kernel.h's order; the last one is working memory */
    int32_t        n_arrays; /* those that are no parameters */
    KArray *const *arrays;
} KernelPart;

/* A part that is that body: what it uses. */
KernelPart kernel_part(Arena *a, const Kernel *k, const KBlock *body);

/* The number of parts, one or more; they live in a. */
int32_t kernel_parts(Arena *a, const Kernel *k, KernelPart **parts);

#endif
