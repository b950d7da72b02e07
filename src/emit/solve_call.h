/* A triangular solve as a call of the runtime (src/runtime/hlort.h). */
#ifndef EMIT_SOLVE_CALL_H
#define EMIT_SOLVE_CALL_H

#include "ir/inst.h"
#include "runtime/hlort.h"

typedef struct SolveCall {
    const char *symbol; /* of the function */
    Type        type;
    hlort_solve d;
} SolveCall;

/* The call for triangular-solve i. False: the runtime has nothing for it, or it is too small to be worth a call. */
bool solve_call(const Inst *i, SolveCall *out);
/* Whether it would be one if its narrow floats were f32. */
bool solve_widens(const Inst *i);
bool solve_call_equal(const SolveCall *x, const SolveCall *y);

#endif
