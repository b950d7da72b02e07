/* The Program: what a module does, as a tree of kernels, loops, branches and copies over planned buffers. Shared by all targets. */
#ifndef EMIT_PROGRAM_H
#define EMIT_PROGRAM_H

#include "emit/kernel.h"

typedef enum BufferKind {
    BUFFER_ARG,    /* flattened ENTRY parameter leaf number `index` (tokens left out) */
    BUFFER_RESULT, /* flattened ENTRY result leaf */
    BUFFER_SCRATCH,/* at byte `offset` of the scratch arena */
    BUFFER_CONST   /* the values of constant number `index` of the program */
} BufferKind;

typedef struct Buffer {
    BufferKind kind;
    int32_t    index;
    int64_t    offset, bytes;
    Type       type;
} Buffer;

typedef enum StepKind { STEP_KERNEL, STEP_COPY, STEP_WHILE, STEP_IF } StepKind;

typedef struct Step Step;
typedef struct Block {
    int32_t n;
    Step  **v;
} Block;

struct Step {
    StepKind    kind;
    const Inst *inst;      /* where it came from */
    Kernel     *kernel;    /* STEP_KERNEL */
    int32_t     function;  /* STEP_KERNEL: index into Program.functions (equal kernels share one) */
    int32_t     n_buffers; /* KERNEL: operand leaves then result leaves; COPY: to, from; WHILE, IF: the predicate or index */
    const Buffer **buffers;
    Block       condition; /* WHILE: computes the predicate into buffers[0] */
    int32_t     n_blocks;  /* WHILE: 1, the body; IF: one per branch */
    Block      *blocks;
};

typedef struct Function { /* one emitted kernel */
    const char *name;
    Kernel     *kernel;
    const Inst *inst; /* the first instruction that it was made for */
} Function;

typedef struct ProgramLeaf { /* an argument or a result */
    const char  *name;   /* parameter name, or out0 */
    const Shape *shape;  /* with the layout of entry_computation_layout */
    int64_t      bytes;
    int32_t      alias;  /* results: the argument whose memory may be given (input_output_alias), or -1 */
} ProgramLeaf;

typedef struct Program {
    const Module *module;
    const char   *name;  /* C identifier: the prefix of every exported symbol */
    int32_t       n_args, n_results, n_constants, n_functions;
    ProgramLeaf  *args, *results;
    const Inst  **constants;
    Function     *functions;
    Block         body;
    int64_t       scratch_bytes;
    int32_t       n_kernels; /* kernel steps, for the report */
} Program;

/* Plans m as it stands (one kernel an instruction where nothing is fused). NULL after reporting everything that cannot be emitted. */
Program *program_plan(Arena *a, const Module *m, const char *name, Diag *d);

#endif
