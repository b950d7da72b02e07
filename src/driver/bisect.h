/* Finds the run of a pass, and the rewrite in it, after which a module goes wrong. Each try starts from the module as it was read, in a process of its
 * own, so that a crash is an answer like any other: with the first N runs the module is right, with N + 1 it is wrong; likewise for rewrites. */
#ifndef DRIVER_BISECT_H
#define DRIVER_BISECT_H

#include "driver/check.h"
#include "support/buf.h"

typedef struct BisectOptions {
    const char            *pipeline;
    const PipelineOptions *passes; /* without limits, watches and dumps */
    Check                 *check;  /* who says what is right; NULL: */
    const char            *test;   /* a command of the shell, given a file with what the passes have left as "$1" or {}: 0 right, else wrong */
    int64_t                timeout; /* seconds that the passes of a try may take, and a test; 0: any number. What takes longer is wrong */
} BisectOptions;

typedef enum BisectVerdict { BISECT_RIGHT, BISECT_FOUND, BISECT_TROUBLE } BisectVerdict;

/* What was found, as text, is added to out: the pass, its run, the rewrite, what is wrong then, and the computations before and after the rewrite. */
BisectVerdict bisect_pipeline(Module *m, const BisectOptions *o, Buf *out, Diag *d);

/* The computations in which two texts of a module differ: lines with ' ', '-' and '+' in front; what is the same is shortened (bisect_diff.c). */
void put_text_difference(Buf *out, const Buf *before, const Buf *after);

#endif
