/* The pass manager. A pass is a row of passes.def and a function; lookup, timing, printing, verifying and pipelines are here. */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "ir/inst.h"

typedef struct PassCtx {
    Arena      *scratch; /* emptied when the pass returns */
    Diag       *diag;
    const char *target;  /* "cpu", "cuda" */
    int         n_args;  /* k=v pairs of --passes=name{k=v} */
    const KeyValue *args;
    int64_t     rewrites; /* counted by the pass, shown by --stats */
} PassCtx;

typedef struct PassInfo {
    const char *name, *summary;
    bool (*run)(Module *m, PassCtx *cx); /* true: it changed something */
} PassInfo;

extern const PassInfo pass_table[];
extern const int      pass_count;

typedef struct PipelineOptions {
    const char *target;            /* NULL: "cpu" */
    bool        verify_each;       /* else once at the end */
    bool        verify_none;       /* --no-verify */
    bool        time_passes, print_after_all, print_changed, stats;
    const char *print_after, *print_before; /* comma-separated pass names, NULL: none */
    FILE       *log;               /* where dumps and timings go: stderr */
    bool (*also)(const Module *m, const char *pass, void *cookie); /* NULL; called after each pass */
    void       *cookie;
} PipelineOptions;

/* The pass names that -O<level> stands for, comma-separated; "" for level 0. */
const char *pipeline_for_level(int level, const char *target);

/* Runs text such as "inline,algsimp,fusion{max=4},fix(dce,cse)" (fix repeats its list until nothing changes). False after reporting
 * to d: an unknown name (with the nearest one), a pass that broke the module. Sets m->changed when something changed. */
bool pipeline_run(Module *m, const char *text, const PipelineOptions *o, Diag *d);
bool pipeline_check(const char *text, Diag *d); /* names and syntax only */

#endif
