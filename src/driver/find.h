/* Finding what is wrong with a run: what the evaluator computes is recorded, judged or timed while it runs. Each of these gives a
 * watch for EvalOptions and says afterwards what it saw.
 *
 * A value's key is the instruction's name, then for every frame around it, from the outside in: "@" and the caller's name when the
 * computation is called from several places, "#" and the trip when the caller is a loop; and for leaves of tuples their index:
 *
 *   add.1   add.1#2   add.1#2#0 (a loop in a loop)   add.1@call.3   sort.2{1}   t.4{0,1} */
#ifndef DRIVER_FIND_H
#define DRIVER_FIND_H

#include "driver/driver.h"

/* ---- keys and places (place.c) ---- */

/* Which computations are called from several places. */
typedef struct Places {
    Arena *arena;
    Map    callers; /* Comp -> its only caller, or shared */
} Places;

Places places_of(Arena *a, const Module *m);
void   place_key(Buf *b, const Places *p, const EvalStep *s); /* p NULL: "@caller" for every call */
/* It runs other instructions, each a step of its own. */
bool   inst_has_steps(const Inst *i);
/* "in trip 2 of %while.1, called by %call.3", the innermost first; nothing for the entry. */
void   place_text(Buf *b, const EvalFrame *f);
/* "[1,0]", of element i. */
void   place_index(Buf *b, const Literal *l, int64_t i);
/* "text", and a number, as JSON has them; those that it does not have are strings: "nan", "inf", "-inf". */
void   json_text(Buf *b, const char *text);
void   json_real(Buf *b, double v);

/* ---- values (trace.c) ---- */

typedef struct Trace Trace;

/* Of instructions whose name matches the extended regular expression, at most `limit` bytes. NULL after reporting: a bad expression, or
 * one that matches no instruction of m. */
Trace           *trace_open(Arena *a, const Module *m, const char *expression, int64_t limit, Diag *d);
const EvalWatch *trace_watch(const Trace *t);
bool             trace_wants(const Trace *t, const Inst *i); /* by its name */
/* Of so many devices; what all of them have under one key is written as one array with an axis of them in front, anything else as "key:device". */
void             trace_on(Trace *t, int64_t devices, Ints assignment);
/* Calls are counted in m from now on, which may be another form of the module. */
void             trace_of(Trace *t, const Module *m);
/* Records one value; false: too much, which was reported. */
bool             trace_step(Trace *t, const EvalStep *s);
/* Writes them as a file of arrays. False after reporting; nothing to write is reported, too. note: where those are to be had that have no
 * value here; NULL: there are none such. */
bool             trace_write(Trace *t, const char *path, const char *note);

/* ---- the first value that is not finite (nonfinite.c) ---- */

typedef struct Nonfinite Nonfinite;

Nonfinite       *nonfinite_open(Arena *a, int64_t devices, Ints assignment); /* of several, the first one in the order of their turns */
const EvalWatch *nonfinite_watch(const Nonfinite *n);
/* An instruction was found and the run stopped there. */
bool             nonfinite_stopped(const Nonfinite *n);
/* Reports what was found. results: of a run that came to its end. True: an instruction made such a value, or a result has one. */
bool             nonfinite_report(Buf *b, const Nonfinite *n, int32_t n_results, Literal *const *results);

/* ---- times (profile.c) ---- */

typedef struct Profile Profile;

Profile         *profile_open(Arena *a, int64_t devices); /* whose times are added up */
const EvalWatch *profile_watch(const Profile *p);
/* What runs between the two is of a row of its own for each key: "name (what) from model.py:88", of instruction i. */
void             profile_begin(Profile *p, const void *key, const Inst *i, const char *what);
void             profile_end(Profile *p);
void             profile_table(Buf *b, const Profile *p);
void             profile_json(Buf *b, const Profile *p);

/* ---- compiled code (steps.c) ---- */

/* What a watched module tells while it runs, handed on to either of the two. */
typedef struct StepWatch StepWatch;

StepWatch *steps_open(Arena *a, const Compiled *c, Profile *p, Trace *t);
void       steps_watcher(void *steps, int32_t event, int32_t step, const void *const *values);
/* "a, b and 3 more": instructions that t wants and that are inside of kernels; NULL: there are none. */
const char *steps_fused(Arena *a, const Compiled *c, const Trace *t);

#endif
