/* What the files of the pass manager share. */
#ifndef PASSES_PASS_INT_H
#define PASSES_PASS_INT_H

#include "passes/pass.h"
#include "support/buf.h"

/* A pipeline's text, read. */
typedef struct Stage Stage;
struct Stage {
    const PassInfo *pass; /* NULL: fix(body) */
    VEC(KeyValue) args;
    Stage  *body, *next;
    double  seconds;
    int64_t runs, rewrites, changes;
};

typedef struct Run {
    Module                *m;
    const PipelineOptions *o;
    Diag                  *d;
    FILE                  *log;
    bool                   unverified; /* changed since the verifier looked */
    bool                   state_known;
    uint64_t               state;      /* module_state */
    int64_t                runs;       /* of passes, as --bisect-limit and the files of --print-dir count them */
    int64_t                rewrites, rewrites_left;
    bool                   started, stopped; /* start_at has come, stop_after has been */
    int64_t                start_seen, stop_seen; /* runs of these passes that were met */
    const char            *last_changed; /* the last pass that changed something */
    Buf                    shown;      /* print_diff: the module's text after the last change */
} Run;

bool list_has(const char *list, const char *w); /* w is an item of the comma-separated list */

/* pass_dump.c. Those that give bool: false after reporting that a file could not be written. */
void dump_start(Run *r);
bool dump_open_dir(const Run *r); /* the folder of --print-dir, and in it the module before the first pass */
void dump_before(const Run *r, const char *pass);
bool dump_after(Run *r, const char *pass, bool changed);
void dump_end(Run *r);

/* pass_report.c: --time-passes and --stats */
void report_stages(const Run *r, const Stage *stages);

/* pass_state.c: a number that an edit of the module's computations changes, whatever is edited: instructions, operands, attributes, shapes,
 * order, names. */
uint64_t module_state(const Module *m);

#endif
