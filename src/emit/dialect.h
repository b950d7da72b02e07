/* Kernels as text: what C and its relatives have in common is printed here, what they write differently is a Dialect. */
#ifndef EMIT_DIALECT_H
#define EMIT_DIALECT_H

#include "emit/kernel_parts.h"
#include "support/buf.h"

typedef struct Dialect {
    const char *helper;     /* in front of a helper function: "static inline" */
    const char *boolean;    /* "_Bool" */
    const char *restricted; /* "restrict" */
    const char *index;      /* the type of loops' values and of sums of their multiples: "int64_t", or "int" where that holds all of them */
    bool        hints;      /* loops carry HLO_INDEPENDENT, HLO_ROLLED and the like */
    bool        blocks;     /* loops over f16 and to large results are in blocks: loop_blocks.h */
    bool        prototypes; /* functions of libm are declared */
    bool        own_math;   /* some of them have forms in the prelude that loops take in */
    const char *(*form)(const char *fn); /* NULL, or lines at the head of a function of the prelude, up to #else: what machines do that have an instruction for it; or NULL */
    const char *const *called;  /* NULL, or functions of the prelude that the target's own text calls, up to NULL */
    const char *complex_types[2];                       /* of two floats, of two doubles */
    const char *(*complex_function)(const char *fn);    /* NULL, or complex numbers are a class that the target brings: what the class calls a function of C's */
} Dialect;

/* What the function is called of which x is a call in the text; NULL: it is none. Products of complex numbers are calls where there is no class of them: C's
 * operator looks for infinities to repair, with a branch, and XLA's does not. */
const char *dialect_function(const Dialect *d, const KExpr *x);

/* What the functions of these kernels need in front of them, each thing only if it is used: prototypes of libm, conversions of small floats,
 * guarded integer arithmetic. The text relies on int8_t ... uint64_t only. */
void dialect_prelude(Buf *b, const Dialect *d, int32_t n, const Kernel *const *kernels);

/* The functions of the prelude whose names have no type in them to fill in, one after the other: *at is 0 at first. NULL: there are no more. */
const char *dialect_helper(size_t *at);

/* The name of a machine type. */
const char *dialect_type(const Dialect *d, Type t);

/* Parameter p of a kernel in kernel.h's order, "const float *restrict x"; its type alone, "const float *". */
void dialect_param(Buf *b, const Dialect *d, const Kernel *k, int32_t p);
void dialect_param_type(Buf *b, const Dialect *d, const Kernel *k, int32_t p);
/* The order in which functions take them: the results, the operands, working memory. The r-th of n_operands + n_results + 1. */
int32_t dialect_param_number(const Kernel *k, int32_t r);

/* What lies in working memory: "(float *)(memory + 256)", the first "(float *)memory". */
void dialect_memory(Buf *b, const char *type, int64_t offset);

/* The arrays of a part that are no parameters; statements. */
void dialect_arrays(Buf *b, const Dialect *d, const KernelPart *part);
void dialect_block(Buf *b, const Dialect *d, const KBlock *x, int depth);
bool dialect_wants_braces(const KBlock *x); /* of a loop or a condition around it */
void dialect_expr(Buf *b, const Dialect *d, const KExpr *x);
void dialect_index(Buf *b, const Dialect *d, const Ix *x);
bool dialect_is_update(const KStmt *s); /* an atomic store for which CUDA has no function: the text calls hlo_update(&out[i], x, [](T a, T b) { return a * b; }) */
const char *dialect_update_function(const KStmt *s); /* NULL: it is a product as C has it */
const char *dialect_update_code(Arena *a, const KStmt *s, bool decode); /* what makes a number of such an element, or an element of a number; NULL: nothing */
void dialect_stmt(Buf *b, const Dialect *d, const KStmt *s, int depth); /* s alone */

#endif
