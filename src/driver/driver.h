/* hlo-run's work: from a module and arguments to results, on a backend. */
#ifndef DRIVER_DRIVER_H
#define DRIVER_DRIVER_H

#include "analysis/device.h"
#include "driver/cache.h"
#include "driver/signature.h"
#include "eval/eval.h"

typedef struct RunTimes {
    double  parse_s, optimize_s, emit_s, compile_s;
    bool    cache_hit;
    int64_t runs; /* timed ones */
    double  run_min_us, run_median_us;
    int64_t peak_bytes;
    int     threads;
} RunTimes;

/* {"parse_s": ..., ..., "run_us": {"min": ..., "median": ..., "n": ...}, ...} */
void   run_times_json(Buf *b, const RunTimes *t);
double seconds_now(void); /* of a clock that only goes forward */

/* ---- compiled modules (compiled.c) ---- */

/* A module compiled by the system's C compiler and loaded. It is closed with its arena. */
typedef struct Compiled Compiled;

/* The key of a module's text with everything that decides what becomes of it: options (as text), this program, the processor. */
CacheKey compiled_key(const char *text, size_t len, const char *options);

/* What the cache has under key, loaded; NULL when it has nothing that can be used. *s is its signature. */
Compiled *compiled_from_cache(Arena *a, Cache *cache, const CacheKey *key, Signature **s);

typedef enum Code {
    CODE_C,
    CODE_CUDASIM,           /* CUDA on the CPU, by src/cudasim, every access checked */
    CODE_CUDASIM_UNCHECKED, /* only barriers and warps */
    CODE_CUDA
} Code;

typedef struct CompileOptions {
    Code               code;
    const char        *cc;    /* the compiler, NULL: the one found */
    bool               fast;  /* fast to compile: what takes the compiler long and gains least is left out */
    const Device      *device; /* of CUDA: NULL: the target's first */
    bool               direct_convolutions; /* as they are defined */
    bool               plain_constants;     /* products keep no packed copies of them */
    bool               ranges;    /* of C: several threads share the loops of kernels */
    bool               no_libraries;  /* of CUDA: kernels alone */
    bool               deterministic; /* of CUDA: the same bits in every run */
    const ExternCalls *calls; /* functions of custom calls, loaded; NULL: none */
    Devices            on;    /* zeros: one device */
    bool               watched; /* the code tells what it does, and the module must outlive it */
    bool (*is_shown)(void *cookie, const Inst *i); /* with watched: whose values; NULL: none */
    void              *shown_cookie;
} CompileOptions;

/* Plans m as it stands, emits C or CUDA, compiles it (or finds the same source in the cache) and loads it; s is completed. key: remember it
 * under that, too (NULL: do not). The compiler's own messages are shown when it fails. */
Compiled *compiled_build(Arena *a, Cache *cache, const Module *m, Signature *s, const CacheKey *key, const CompileOptions *o, RunTimes *t,
                         Diag *d);

/* Is there what CODE_CUDA needs: nvcc (cc: its name, or NULL), a driver, a GPU, one that knows nvcc's version? Else reports. */
bool gpu_ready(const char *cc, Diag *d);

/* ---- running (execute.c) ---- */

/* Do results have an axis of devices in front? */
typedef enum DeviceAxis { AXIS_AS_INPUTS, AXIS_YES, AXIS_NO } DeviceAxis;

typedef struct Execution {
    const Signature *signature;
    const Compiled  *compiled; /* NULL: the evaluator */
    const Module    *module;   /* of the evaluator */
    const Module  *(*find_module)(void *cookie); /* where messages of compiled code look for instructions; it, or its result, may be NULL */
    void            *cookie;   /* of find_module */
    uint64_t         seed;     /* of its random numbers */
    const struct EvalWatch *watch; /* of its first run; NULL: nobody looks on */
    struct StepWatch *steps;   /* of a watched compiled module, likewise */
    bool             watch_repeats; /* of the timed runs, where there are some, not of the first */
    int64_t          max_trips; /* of its loops, 0: any number */
    const ExternCalls *calls;  /* of its custom calls; NULL: none */
    struct Feeds    *feeds;    /* of its infeeds and outfeeds; NULL: none */
    int64_t          repeat;   /* timed runs after the first one, which is not timed; 0: only that */
    int              threads;
    bool             flush;      /* compiled C: subnormal floats are zeros */
    Devices          on;         /* zeros: one device */
    Ints             assignment; /* the device of each process; none: its number */
    DeviceAxis       axis;
} Execution;

/* Would arguments, results and working memory fit into this machine? Else reports. Looks at shapes alone. */
bool execution_fits(const Signature *s, const Module *m, Diag *d);

/* Runs on args (flattened leaves). results[0..n_results): the first run's, new literals. Donated arguments of a run are the next one's
 * arguments. Sets the times of the runs. */
bool execution_run(const Execution *e, Literal *const *args, Literal **results, RunTimes *t, Diag *d);

/* ---- constants without values (elided.c) ---- */

/* The rows of a tool's table for what elided_fill takes. */
#define ELIDED_OPTIONS(fill, constants)                                                                                 \
    {"fill-elided", 0, OPT_STRING, fill, "SEED|zeros", "values for constants printed as {...}", "Data"},               \
    {"constants", 0, OPT_STRING, constants, "FILE", "such values from .npz or .safetensors, by name", "Data"}

/* Gives values to constants that the text elides: from arrays of a file named like the instructions (constants), then by fill ("zeros" or a
 * seed). Either may be NULL. False after reporting: a member that fits no such constant, a bad fill. What has no value stays as it is. */
bool elided_fill(Module *m, const char *fill, const char *constants, Diag *d);
/* The other way: writes the values of constants with more than 10 elements to a file, by name, and elides them. False after reporting. */
bool elided_extract(Module *m, const char *path, Diag *d);
/* Reports the first constant that still has none. */
bool elided_check(const Module *m, Diag *d);

#endif
