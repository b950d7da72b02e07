/* Inside the evaluator: what a handler of an opcode family is given and may call.
 *
 * A handler eval_<family>(e, i, x) gets the instruction and its operand values and returns the result with one reference, or NULL
 * after eval_fail. x[k] holds one reference that the engine drops afterwards; a handler that keeps one sets x[k] to NULL. A value
 * whose only reference is x[k] dies with this instruction, so the handler may write the result over it: eval_result does. */
#ifndef EVAL_ENGINE_H
#define EVAL_ENGINE_H

#include "eval/eval.h"

struct Arith;              /* arith.h */
typedef struct Sent Sent; /* transfer.c */
typedef struct Team Team; /* team.h */

typedef struct Eval {
    const EvalOptions *options;
    Diag    *diag;
    Arena   *arena;       /* of plans and compiled bodies: what is the same in every run */
    Arena   *scratch;     /* of this run */
    Map      plans;       /* Comp -> its plan */
    Map      bodies;      /* Comp -> its Body */
    Map      loops;       /* while -> its Loop, NULL when it has none */
    int64_t  loop_bytes;  /* that these take */
    Map      meanings;    /* custom-call -> the computation that it stands for */
    Map      externs;     /* custom-call -> ExternCall */
    Map      lapack;      /* custom-call -> Routine */
    Literal **args;       /* of the computation that runs; a parameter takes its own */
    int64_t  work;        /* element operations so far */
    int64_t *live, limit; /* bytes held by values (of all devices), and how many may be */
    int64_t  memory;      /* of the machine */
    int64_t  own_live;    /* where live points when there is one device */
    int      depth;       /* of calls */
    const EvalWatch *watch; /* NULL: nobody looks on */
    const EvalFrame *frame; /* of the computation that runs */
    int64_t  trip;          /* of the next call, -1 when its caller is no loop */
    bool     failed;
    Sent    *sent;        /* what no recv-done has taken yet */
    unsigned __int128 rng_state; /* of rng-get-and-update-state */
    Devices  on;          /* how many devices there are, */
    int32_t  device;      /* which of them this is */
    Team    *team;        /* and how they meet; NULL: there is one */
    Map      groups;      /* collective -> its participants (Ints), this device among them */
} Eval;

typedef Literal *EvalFn(Eval *e, const Inst *i, Literal **x);

/* The kernel of an elementwise instruction whose arrays have the sizes of their types; false where its handler does more. */
bool elementwise_kernel(const Inst *i, struct Arith *k);

/* The handler of every opcode. */
extern EvalFn *const eval_handlers[OP_COUNT];

/* Reports (unless quiet) and remembers the failure; returns NULL for the handler to return. */
Literal *eval_fail(Eval *e, const Inst *i, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Counts n element operations; false after failing when that is over the limit. */
bool eval_work(Eval *e, const Inst *i, int64_t n);

/* A new array, its values not set. NULL after failing: too large, too much memory, too much work. */
Literal *eval_new(Eval *e, const Inst *i, Type t, int32_t rank, const int64_t *dims);
/* The array that i's shape describes: over x[k] when that dies here and has the same type and dims, else new. */
Literal *eval_result(Eval *e, const Inst *i, Literal **x, int32_t k);
Literal *eval_new_for(Eval *e, const Inst *i, const Shape *s); /* an array of shape s */
Literal *eval_zeros(Eval *e, const Inst *i, const Shape *s);   /* of any shape: values that nobody reads */
/* x[k] itself when it dies here, else a copy. x[k] becomes NULL. */
Literal *eval_take(Eval *e, const Inst *i, Literal **x, int32_t k);
Literal *eval_copy(Eval *e, const Inst *i, const Literal *l);
/* l's values as type t; takes over the reference. l may be NULL. */
Literal *eval_cast(Eval *e, const Inst *i, Literal *l, Type t);
/* One array, or a tuple of n when the shape of i is one. Takes over the references; NULL after a failure. */
Literal *eval_results(Eval *e, const Inst *i, int32_t n, Literal *const *values);
/* The tuple of n values, some of which are NULL after a failure. Takes over the references. */
Literal *eval_tuple_of(Eval *e, int32_t n, Literal **v);
void     eval_drop(Eval *e, Literal *l); /* one reference; NULL is allowed */
static inline Literal *eval_move(Literal **x, int32_t k)
{
    Literal *l = x[k];
    x[k] = NULL;
    return l;
}

/* The plain sum of floats over the dimensions that are marked: added to acc, an f64 array of the kept ones, in row-major order, and
 * rounded once to t. Takes over acc, which may be NULL. */
Literal *eval_sum(Eval *e, const Inst *i, const Literal *from, const bool *reduced, Literal *acc, Type t);

/* The steps of a run: an evaluation, whether every array of m can be held, ENTRY's value, the work, the end. */
void     eval_start(Eval *e, const EvalOptions *o, Diag *d);
bool     eval_fits(Eval *e, const Module *m);
Literal *eval_entry(Eval *e, const Module *m, int32_t n_args, Literal *const *args);
void     eval_count_work(const Eval *e); /* adds it to what the options name */
void     eval_end(Eval *e);

/* Runs a computation. Takes over args[0..n_params), whose entries become NULL. */
Literal *eval_comp(Eval *e, const Inst *caller, const Comp *c, Literal **args);
/* Whether there may be an iteration t of a loop; false after failing. */
bool     eval_may_trip(Eval *e, const Inst *loop, int64_t t);
/* eval_comp for iteration t of a loop. */
Literal *eval_trip(Eval *e, const Inst *loop, const Comp *c, Literal **args, int64_t t);

/* Why a collective cannot be done on these devices, in a's memory; NULL when it can. */
const char *eval_collective_refused(Arena *a, const Inst *i, Devices on);
/* Why a transfer cannot be done, with this host; NULL when it can. */
const char *transfer_refused(Arena *a, const Inst *i, const EvalHost *host, Devices on);
void        transfer_end(Eval *e); /* gives up what was sent and never received */

#endif
