/* hlo-run's work: from a module and arguments to results, on a backend. */
#ifndef DRIVER_DRIVER_H
#define DRIVER_DRIVER_H

#include "ir/inst.h"

typedef struct RunTimes {
    double  parse_s, optimize_s, emit_s, compile_s;
    bool    cache_hit;
    int64_t runs;
    double  run_min_us, run_median_us;
    int64_t peak_bytes;
    int     threads;
} RunTimes;

/* A module compiled by the system's C compiler and loaded. */
typedef struct Compiled Compiled;

/* Emits m, compiles (or finds it in the cache) and loads it. NULL after reporting; the compiler's own messages are shown when it fails. */
Compiled *compiled_load(Arena *a, const Module *m, RunTimes *t, Diag *d);
void      compiled_free(Compiled *c);
/* One run. args and results are the flattened array leaves (tokens left out); results are new literals. */
bool      compiled_run(Compiled *c, int32_t n_args, Literal *const *args, int32_t n_results, Literal **results, Diag *d);

#endif
