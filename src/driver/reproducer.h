/* What is left when a pass crashes or stops with an internal error: the module before it, with the options that run this pass on it in the first line.
 *
 *   // hlo-opt --passes='algsimp{only=copy-noop}' --target=cpu
 *   // Pass algsimp{only=copy-noop}, run 3 of the pipeline dce,fix(algsimp,cse), did not return from the module below.
 *   HloModule ...
 *
 * The module is printed before each pass, which takes time; so there is no such file unless it was asked for. */
#ifndef DRIVER_REPRODUCER_H
#define DRIVER_REPRODUCER_H

#include "passes/pass.h"

typedef struct Reproducer Reproducer;

/* Everything is in a, which outlives the pipeline. */
Reproducer   *reproducer_new(Arena *a, const char *path, const char *pipeline, const char *target);
PipelineWatch reproducer_watch(Reproducer *r);
void          reproducer_end(Reproducer *r); /* after the pipeline; NULL is allowed */

/* The options of such a text's first line. */
typedef struct ReproducerOptions {
    const char *passes, *target;
    int64_t     rewrite_limit; /* -1: none */
} ReproducerOptions;

/* False after reporting: the text does not begin as above. */
bool reproducer_read(Arena *a, const char *text, size_t n, ReproducerOptions *out, Diag *d);

#endif
