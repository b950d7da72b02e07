/* The Program: what a module does, as a tree of kernels, loops, branches and copies over planned buffers. Shared by all targets. */
#ifndef EMIT_PROGRAM_H
#define EMIT_PROGRAM_H

#include "emit/exchange.h"
#include "emit/kernel.h"
#include "emit/library.h"
#include "emit/ranges.h"

/* What a pointer is at run time. Every buffer is aligned to PROGRAM_ALIGN bytes (arguments and results: their element). */
#define PROGRAM_ALIGN 64
#define RANDOM_START  0x7012395 /* the random state of a run that is given none; source: reference operations 13.3 */

typedef enum BufferKind {
    BUFFER_ARG,    /* flattened ENTRY parameter leaf number `index` (tokens left out) */
    BUFFER_RESULT, /* flattened ENTRY result leaf */
    BUFFER_SCRATCH,/* at byte `offset` of the scratch arena */
    BUFFER_CONST,  /* the values of constant number `index` of the program */
    BUFFER_COUNT   /* one of them: that of the trip at hand of loop number `loop`, or `ahead` trips later */
} BufferKind;

/* Steps by number, from the first to the last one. */
typedef struct StepSpan {
    int32_t from, to;
} StepSpan;

typedef struct Buffer {
    BufferKind   kind;
    int32_t      index, loop, ahead;
    int64_t      offset, bytes;
    const Shape *shape; /* of the first value that it holds, with the order in memory; later ones have the same type and size */
    const char  *name;  /* C identifier of a scratch buffer, unique in the program; NULL for the other kinds */
    int32_t      n_lives, n_values; /* for the report: */
    const StepSpan *lives;     /* when its bytes are needed */
    const Inst *const *values; /* what is in it at one time or another, in the order of the text; a name may come again */
} Buffer;

/* Two buffers of one size that take turns in a loop: in every second trip each of them is the other one. */
typedef struct Turn {
    const Buffer *now, *next;
} Turn;

/* CALL is a routine of a library or of the runtime, or a function from outside, which may fail. EXCHANGE is one with the other devices, which may fail, too; CHECK fails
 * unless its pred is true. REPLICA and PARTITION write the number of this device's. RANDOM writes the run's random state, two words, and moves it on by
 * the delta of its instruction; SEED writes the run's seed. VALUE shows the value of an instruction to who looks on. COPY moves bytes; the two
 * pointers may be equal when a donated argument is returned as it came. A copy that changes the order in memory is a KERNEL. WHILE runs the
 * condition before every iteration. IF with a pred takes block 0 for true; with an s32 a value outside of [0, n) takes the last block. */
typedef enum StepKind {
    STEP_KERNEL, STEP_CALL, STEP_COPY, STEP_EXCHANGE, STEP_CHECK, STEP_REPLICA, STEP_PARTITION, STEP_RANDOM, STEP_SEED, STEP_VALUE, STEP_WHILE,
    STEP_IF
} StepKind;

typedef struct Step Step;
typedef struct Block {
    int32_t n;
    Step  **v;
} Block;

/* The instructions that called the computation that a step is of, the innermost first; NULL: the entry's. */
typedef struct Callers {
    const struct Callers *outer;
    const Inst           *caller;
} Callers;

struct Step {
    StepKind    kind;
    const Inst *inst;      /* where it came from */
    const Callers *callers;
    int32_t     number;    /* in Program.steps */
    Kernel     *kernel;    /* STEP_KERNEL */
    const LibraryCall *call; /* STEP_CALL */
    const Exchange *exchange; /* STEP_EXCHANGE, STEP_CHECK */
    int32_t     function;  /* STEP_KERNEL: index into Program.functions (equal kernels share one); STEP_CALL: into Program.calls */
    int32_t     n_operands; /* how many of the buffers are read; the others are written */
    int32_t     n_buffers; /* KERNEL, CALL: operand leaves, result leaves, working memory if any; COPY: from, to; EXCHANGE: likewise, but a SEND
                              has no `to` and a RECEIVE no `from`; REPLICA, PARTITION, RANDOM, SEED: to; CHECK, WHILE, IF: the predicate or
                              index; VALUE: what is shown */
    const Buffer **buffers;
    const Shape **shapes;  /* VALUE: of the buffers, each with the order in memory at that time; tokens have no buffer */
    Block       condition; /* WHILE: computes the predicate into buffers[0]; */
    int64_t     trips;     /* or there is neither, and the body runs so often; else -1 */
    int32_t     loop;      /* its number, another one than those of the loops around it */
    int32_t     n_turns;   /* WHILE: of trips that are known */
    Turn       *turns;
    int32_t     n_blocks;  /* WHILE: 1, the body; IF: one per branch */
    Block      *blocks;
};

typedef struct Function { /* one emitted kernel; what the runtime calls (kernel_tile_row) is no step */
    const char *name;
    Kernel     *kernel;
    const Inst *inst; /* the first instruction that it was made for */
    int32_t     n_ranges; /* 0: it is for one thread */
    RangePart  *ranges;   /* of its loops, which the runtime's threads share */
    bool        minor;    /* it does little of the program's work (effort.h) */
} Function;

typedef struct Constant {
    const char    *name;    /* C identifier */
    const Shape   *shape;   /* of an array; its layout is the order of the values in memory */
    const Literal *literal; /* never elided */
    int64_t        bytes;
    const Inst    *inst;
} Constant;

typedef struct ProgramLeaf { /* an argument or a result */
    const char  *name;   /* parameter name with the index of the leaf, "p.0.1"; results: "out0" */
    const Shape *shape;  /* with the layout of entry_computation_layout */
    int64_t      bytes;
    int32_t      alias;  /* results: the argument whose memory may be given (input_output_alias), or -1; arguments: the result */
} ProgramLeaf;

typedef struct Program {
    const Module *module;
    const char   *name;  /* C identifier: the prefix of every exported symbol */
    int32_t       n_args, n_results, n_constants, n_functions, n_calls, n_buffers;
    ProgramLeaf  *args, *results;
    Constant     *constants;
    Function     *functions;
    LibraryCall *const *calls;
    Devices       on;       /* that it is for */
    bool          may_fail;   /* once it runs: there are EXCHANGE or CHECK steps, or calls of functions from outside */
    bool          on_devices; /* it asks which of them it runs on, or exchanges something */
    bool          infeeds, outfeeds; /* likewise with the host */
    int32_t       n_exchanges;
    const Exchange *const *exchanges;
    const Buffer **buffers; /* the scratch buffers, in the order of their first use */
    Block         body;
    int32_t       n_steps;
    Step        **steps;         /* all of them, in the order of the text */
    bool          watched;       /* its text tells what it does */
    int64_t       scratch_bytes; /* a multiple of PROGRAM_ALIGN; 0: no scratch is needed */
    int64_t       buffer_bytes;  /* what all scratch buffers together would need without reuse, for the report */
    int32_t       n_kernels, n_copies, n_library; /* steps, for the report */
    bool          random;        /* there are RANDOM steps */
    bool          lapack, outside, runtime; /* what calls there are */
    bool          products;      /* of PlanOptions, */
    const Device *device;
} Program;

typedef struct PlanOptions {
    const char *name;  /* of the program; NULL: the module's */
    bool (*has_function)(void *cookie, const char *symbol); /* may a custom call of no known target call this? NULL: no */
    void *cookie;
    bool    watched;   /* the text tells of each step when it begins and ends, */
    bool (*is_shown)(void *cookie, const Inst *i); /* and the values of these instructions, which are kept until then; NULL: of none */
    void   *shown_cookie;
    bool    runtime;   /* the text may call the runtime library, */
    bool    ranges;    /* with several threads: of KernelOptions */
    bool    direct_convolutions; /* whose convolutions then make no product that the definition has not */
    bool    plain_constants;     /* whose products keep no second copy of constants, packed */
    bool    products;  /* large dots may be products of a device's library, for which their kernels have working memory */
    bool    any_order; /* of plain ones: updates of floats may be added up in any order */
    const Device *device; /* kernels are for its many threads, see kernel_lower; NULL: for one of a CPU */
    Devices on;        /* for which the Program is: one, which each of them runs; zeros: one device */
} PlanOptions;

/* Plans m as it stands (one kernel an instruction where nothing is fused). o may be NULL. Everything that is made lives
 * in a, and m must outlive it. NULL after reporting everything that cannot be emitted. */
Program *program_plan(Arena *a, const Module *m, const PlanOptions *o, Diag *d);

/* The plan for people: arguments, results, buffers with their offsets, when they are live and what they hold, steps as an indented list. */
void program_report(Buf *b, const Program *p);
int32_t program_kernel_functions(const Program *p); /* those that steps call */
void program_report_json(Buf *b, const Program *p); /* the same as one JSON object; plan_json.c */
/* The most bytes of scratch that are live at once, and the number of the first such step (-1: there are none). */
int64_t program_peak(const Program *p, int32_t *at);

#endif
