/* The pass manager. A pass is a row of passes.def and a function; lookup, timing, printing, verifying and pipelines are here. */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include <regex.h>

#include "analysis/device.h"
#include "ir/inst.h"

typedef struct PassCtx {
    Arena      *scratch; /* emptied when the pass returns */
    Diag       *diag;
    const char *pass;    /* its name */
    const regex_t *remarks; /* --remarks, or NULL */
    const char *target;  /* "cpu", "cuda" */
    const Device *device; /* what is faster there */
    int         n_args;  /* k=v pairs of --passes=name{k=v}; "k" alone is k=true */
    const KeyValue *args;
    int64_t     rewrites; /* counted by the pass, shown by --stats */
    int64_t     limit;    /* --rewrite-limit: no rewrite begins unless rewrites < limit */
    bool        finite;   /* set by the pass: with infinities or NaN the module may compute something else now */
    const char *did, *did_at; /* where the pass can say it: what its last rewrite was, and of which instruction (interned) */
} PassCtx;

typedef struct PassInfo {
    const char *name;
    const char *options; /* the keys of {k=v}, comma-separated: "max=N,only=RULE,exact"; "" for none */
    const char *summary;
    bool (*run)(Module *m, PassCtx *cx); /* true: it changed something */
} PassInfo;

#define PASS(id, ...) bool pass_##id(Module *m, PassCtx *cx);
#include "passes/passes.def"
#undef PASS

extern const PassInfo pass_table[];
extern const int      pass_count;

/* A run of a pass, as those that watch a pipeline see it. */
typedef struct PassRun {
    const char *pass;
    const char *stage;        /* as a pipeline has it: algsimp{only=x} */
    int64_t     number;       /* from 1, as --bisect-limit counts */
    int64_t     before;       /* rewrites of the runs before */
    int64_t     limit;        /* rewrites that this one may make */
    bool        changed;      /* from here on: once it has ended */
    int64_t     rewrites;
    bool        finite;
    const char *did, *did_at; /* of PassCtx */
} PassRun;

/* Called around each run that is not left out; each may be NULL. False stops the pipeline. */
typedef struct PipelineWatch {
    void *cookie;
    bool (*begin)(void *cookie, const Module *m, const PassRun *run);
    void (*ran)(void *cookie, const PassRun *run); /* the module has not been verified: it may be broken */
    bool (*end)(void *cookie, const Module *m, const PassRun *run); /* the module has been verified */
} PipelineWatch;

/* The nth run of a pass, from 1; pass NULL: none. */
typedef struct RunName {
    const char *pass;
    int64_t     nth;
} RunName;

typedef struct PipelineOptions {
    const char *target;            /* NULL: "cpu" */
    const Device *device;          /* NULL: the target's first one */
    bool        verify_each;       /* else once at the end */
    bool        verify_none;       /* --no-verify */
    bool        time_passes, print_after_all, print_changed;
    bool        makers;            /* instructions know which pass has made them: inst_maker */
    bool        print_diff;        /* what changed, as the hunks of a unified diff */
    bool        stats, stats_json; /* counts as a table, or as one JSON object that has the times too */
    const char *print_after, *print_before; /* comma-separated pass names, NULL: none */
    const char *print_dir;         /* NULL, or a folder for files NNN.pass.hlo after passes that changed something */
    bool        print_unchanged;   /* after the other ones too */
    const regex_t *only_comps;     /* NULL, or the dumps in the log show only computations with such names */
    const regex_t *remarks;        /* NULL, or remarks that match become messages of the Diag */
    RunName     start_at, stop_after; /* runs before the one and after the other are left out */
    bool        bisect, limit_rewrites;
    int64_t     bisect_limit;      /* bisect: pass runs before the others are left out, -1: all run; the log says which ran */
    int64_t     rewrite_limit;     /* limit_rewrites: rewrites of all passes together */
    FILE       *log;               /* where dumps and timings go: stderr */
    int         n_watches;
    const PipelineWatch *watches;
} PipelineOptions;

/* The pass names that -O<level> stands for, comma-separated; "" for level 0. */
const char *pipeline_for_level(int level, const char *target);

/* Runs text such as "inline,algsimp,fusion{max=4},fix(dce,cse)" (fix repeats its list until nothing changes). False after reporting
 * to d: an unknown name (with the nearest one), a bad option of a pass. Sets m->changed when something changed. A pass that
 * breaks the module is a bug of ours: what the verifier says goes to the log, then die(). */
bool pipeline_run(Module *m, const char *text, const PipelineOptions *o, Diag *d);
bool pipeline_check(const char *text, Diag *d); /* names, syntax, which options take a value or a number */
bool pass_known(const char *name, Diag *d);      /* false after reporting, with the nearest name */

/* Tells what the pass did or why it did not, with the numbers that decided, at the instruction's place in the text; shown when --remarks picks
 * "PASS: text". What is dear to compute for a text is computed only where cx->remarks is set. */
void pass_remark(PassCtx *cx, const Inst *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The last value given for key, NULL when there is none; as a number, which the reader of the pipeline has looked at. */
const char *pass_arg(const PassCtx *cx, const char *key);
bool        pass_arg_is(const PassCtx *cx, const char *key); /* given as key or key=true */
int64_t     pass_arg_int(const PassCtx *cx, const char *key, int64_t otherwise);

#endif
