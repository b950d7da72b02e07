/* Short loops as whole vectors and parts of one. */
#ifndef EMIT_LOOP_PARTS_H
#define EMIT_LOOP_PARTS_H

#include "emit/kernel_ir.h"

enum { LOOP_UNROLLED = 16 /* trips at most of what gcc unrolls before it makes vectors */ };

typedef struct LoopParts {
    int64_t n;      /* trips */
    int64_t vector; /* elements of one */
    int64_t least;  /* of one that ends with the loop, at least */
    bool    again;  /* what is stored is read, or may be: nothing is done twice */
} LoopParts;

/* Whether loop s is worth that. */
bool loop_in_parts(const KStmt *s, LoopParts *out);
/* How many of the `left` trips that are left are next; a loop of them and of `back` before them is a vector, or half or a quarter of one, or, at the end, a few trips. */
int64_t loop_next_part(const LoopParts *l, int64_t left, int64_t *back);

#endif
