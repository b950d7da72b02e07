/* What a runner must know of a module: its arguments and results as flat lists of arrays (tuples flattened in order, tokens left out),
 * how exact its results can be, and what its compiled form needs. It can be written as text and read back, so that a module found in the
 * cache needs no parsing. */
#ifndef DRIVER_SIGNATURE_H
#define DRIVER_SIGNATURE_H

#include "data/compare.h"
#include "ir/inst.h"

typedef struct SigLeaf {
    const char  *name;  /* parameter name with the index of the leaf, "p.0.1"; results: "out0" */
    const Shape *shape; /* an array, with the order in memory of entry_computation_layout and no other field of a layout */
    int32_t      alias; /* results: the argument that is donated for it, or -1 */
} SigLeaf;

typedef struct Signature {
    const char *name;    /* C identifier: the prefix of the compiled form's symbols; NULL before it is compiled */
    int32_t     n_args, n_results;
    SigLeaf    *args, *results;
    ErrorModel  error;
    int64_t     scratch_bytes;
    int64_t     n_kernels, n_copies;
    int64_t     meets;   /* not 0: the compiled form asks which device it runs on, or exchanges something */
    int64_t     feeds;   /* FEEDS_IN: it takes arrays of the host's, FEEDS_OUT: it gives it some */
} Signature;

enum { FEEDS_IN = 1, FEEDS_OUT = 2 };

/* NULL after reporting: a parameter or result that no array can stand for. Names and shapes are copied into a. */
Signature *signature_of(Arena *a, const Module *m, Diag *d);

void       signature_write(Buf *b, const Signature *s);
Signature *signature_read(Arena *a, const char *text); /* NULL when it is not what signature_write wrote */

/* The bytes of all arguments and results; -1 when that overflows. */
int64_t signature_bytes(const Signature *s);

#endif
