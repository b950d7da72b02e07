/* Loops over scalars and small arrays, compiled: every value has its place in memory from the start, and a trip is a list of steps between
 * these places. Compiled code steps through such a loop in a few cycles an instruction; the engine, which makes and drops an array for each,
 * takes longer for that than for the values.
 *
 *   body { s, i = s#0, a = s#1, x = dynamic-slice(a, i), y = add(x, x), ROOT r = tuple(add(i, 1), dynamic-update-slice(a, y, i)) }
 *     =>   window x <- a at i;   kernel y = x + x;   kernel j = i + 1;   window a at i <- y;   then i = j
 *
 * Arithmetic runs the kernels of arith.h, as everywhere. A movement (reshape, slice, transpose, pad, ...) is run by its handler when the loop is
 * compiled, on the positions of the operands' elements: what comes out says which element stands where. One that keeps the order of a part
 * of its operand is no step, but another name for that part. All other opcodes without effects are run by their handlers on literals
 * that lie over the places. So no opcode has a second meaning here, but for the indices of dynamic slices and whose turn a loop or branch is.
 *
 * A loop is left to the engine when its values are large (copying them would take longer than the engine does), when a size is dynamic, when it
 * has an effect or talks to other devices, and when somebody looks on. */
#ifndef EVAL_LOOP_H
#define EVAL_LOOP_H

#include "eval/arith.h"
#include "eval/engine.h"
#include "eval/walk.h"

typedef struct Loop Loop;

/* The loop of a while, compiled at the first call; NULL where the engine has to run it. */
Loop *loop_get(Eval *e, const Inst *i);
/* Runs it from this state on, which is taken over; its last state, NULL after failing. */
Literal *loop_run(Eval *e, Loop *l, Literal *state);

/* ---- what a loop is compiled to: loop.c makes it, loop_run.c runs it ---- */

/* Where a value is: in a place of its own, or in a part of another's. */
typedef struct Place {
    char   *at;
    int64_t bytes;
    struct Place *over;      /* this one, as nobody reads that any more when this is written; NULL: memory of its own */
    const struct LoopBlock *home; /* the block whose run writes it; NULL: a constant */
} Place;

typedef struct Value {
    Place   *place;
    int64_t  offset;         /* bytes */
    const Shape *shape;
    Literal *literal;        /* over the place */
    int32_t  n;              /* of a tuple */
    struct Value **elems;    /* NULL: an array */
} Value;

typedef VEC(Value *) Values;

typedef enum LoopStepKind {
    LOOP_KERNEL,
    LOOP_MOVE,    /* element j from source[j] */
    LOOP_SLICE,   /* dynamic-slice */
    LOOP_UPDATE,  /* dynamic-update-slice */
    LOOP_HANDLER,
    LOOP_WHILE,
    LOOP_BRANCH,
} LoopStepKind;

typedef struct LoopStep {
    LoopStepKind kind;
    bool         direct;  /* arith_is_direct(kernel) */
    int          bytes;   /* of an element */
    int64_t      n;       /* elements: of the result, of the window of an update */
    char        *out;
    const void  *from[ARITH_OPERANDS];
    const Arith *kernel;
    const Inst  *inst;
    Value       *to;
    Value      **x;       /* operands */
    int32_t      n_x;
    int64_t     *where;   /* MOVE: which element of which operand; SLICE, UPDATE: elements of the window from its first */
    const char **source;
    struct Loop *loop;
    struct LoopBlock *branch;
} LoopStep;

typedef struct LoopBlock {
    VEC(LoopStep) steps;
    Values  out;          /* what is read when it has run */
    int64_t work;         /* element operations of a run, without those of handlers and of inner blocks */
} LoopBlock;

void loop_run_block(Eval *e, const LoopBlock *b);

typedef struct LoopCopy {
    char       *to;
    const char *from;
    int64_t     bytes;
    char       *by;       /* NULL, or where it stays until all have been read: it is a part of the state that is written */
} LoopCopy;

struct Loop {
    const Inst *inst;
    Values  state;        /* leaves */
    const uint8_t *more;  /* what test computes */
    LoopBlock test, body;   /* body.out: the next state, leaf by leaf */
    Values  first;        /* of an inner loop: the state that it starts with */
    VEC(LoopCopy) starts, nexts; /* only of what changes */
    Value  *tree;         /* the state as a whole */
};

#endif
