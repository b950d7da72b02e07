/* The reference evaluator: the meaning of every opcode, written plainly, independent of passes and emitters.
 * One typed loop over whole arrays an instruction; dots and convolutions blocked. Source: reference operations. */
#ifndef EVAL_EVAL_H
#define EVAL_EVAL_H

#include "ir/extern_call.h"
#include "ir/groups.h"

/* What comes from outside: the host's side of infeed and outfeed, functions of custom calls. A function may be NULL. */
typedef struct EvalHost {
    const ExternCalls *calls; /* NULL: none */
    void *cookie; /* of the next two */
    Literal *(*infeed)(void *cookie, int32_t device, const Shape *s); /* its next array, of shape s: one reference, NULL after reporting */
    void (*outfeed)(void *cookie, int32_t device, Literal *l);        /* takes over the reference */
} EvalHost;

/* Looking on while a module runs.
 *
 * A frame is a computation that runs: which instruction called it, from which frame, and in which trip of that loop. The entry's has
 * neither. What reduce, sort, map and their like apply to elements runs many elements at once and is no frame: such an instruction is
 * one step. */
typedef struct EvalFrame {
    const struct EvalFrame *outer; /* NULL: the entry */
    const Inst *caller;            /* NULL: the entry */
    int64_t trip;                  /* of a while or scan, from 0; -1: the caller is no loop */
} EvalFrame;

typedef struct EvalStep {
    const Inst *inst;
    const EvalFrame *frame;
    Literal *const *operands; /* NULL unless the watch wants them */
    const Literal *value;
    int32_t device; /* whose step it is, of several; they take turns, so each of them sees its steps in order */
} EvalStep;

typedef struct EvalWatch {
    void *cookie;
    bool  wants_operands; /* then no instruction writes its result over one */
    void (*before)(void *cookie, const Inst *i, int32_t device); /* NULL: nothing to do */
    bool (*after)(void *cookie, const EvalStep *s);      /* false: the run ends here, without a report */
} EvalWatch;

typedef struct EvalOptions {
    int64_t work_limit;   /* element operations before it gives up, 0: no limit (constant folding sets one) */
    int64_t memory_limit; /* bytes alive at once, 0: no limit */
    bool    quiet;        /* report nothing (constant folding) */
    uint64_t seed;        /* of the run: rng */
    const EvalHost *host; /* NULL: none */
    int64_t max_trips;    /* iterations that one run of a loop may have, 0: no limit */
    const EvalWatch *watch; /* NULL: nobody looks on */
    struct EvalMemo *memo; /* values of earlier evaluations (memo.h); NULL: none. Not asked where somebody looks on */
    int64_t *work;        /* NULL, or what the element operations of each run are added to, up to the limit for each call and device */
} EvalOptions;

/* True when every instruction that can run in m is supported; else each that is not is reported by opcode, instruction and
 * the model's source line. Looks only at the module, before anything runs. Without a host and on one device, or with these. */
bool eval_supported(const Module *m, Diag *d);
bool eval_supported_with(const Module *m, const EvalHost *host, Devices on, Diag *d);

/* Runs ENTRY on args (one literal per parameter, shapes already checked; the caller keeps its references). Gives the root's
 * value, one reference, or NULL after reporting. */
Literal *eval_module(const Module *m, int32_t n_args, Literal *const *args, const EvalOptions *o, Diag *d);

/* The same several times: what is found out about m (the order of its steps, kernels, compiled loops) is kept between the runs, and m must stay
 * as it is. Every run starts anew, random state included; one that fails does no harm to the next. */
typedef struct Evaluation Evaluation;
Evaluation *evaluation_open(const Module *m);
Literal    *evaluation_run(Evaluation *v, int32_t n_args, Literal *const *args, const EvalOptions *o, Diag *d);
void        evaluation_close(Evaluation *v); /* NULL is allowed */

/* One run on several devices, each with arguments and a result of its own, as often as the options say the same numbers. They run in turns:
 * one until it waits for others or ends, then the next. False after reporting, with no results: one failed, or they wait for each other. */
bool eval_module_on(const Module *m, Devices on, Literal *const *const *args, const EvalOptions *o, Literal **results, Diag *d);

/* One instruction on operand values: constant folding's way in. */
Literal *eval_inst(const Inst *i, Literal *const *operands, const EvalOptions *o, Diag *d);

#endif
