/* Which instruction does the compiled backend compute otherwise than the evaluator?
 *
 * The module is evaluated; every instruction that ran goes, alone, with the operands that it had when it first ran, through the compiled
 * backend, and its result is held against the evaluated one. What calls others (a loop, a call) is not tried itself, the instructions of
 * its computations are; a fusion is both. Starting the compiler is what costs, so some hundred instructions become one module:
 *
 *   ENTRY { p0 = f32[4] parameter(0)   p1 = f32[4] parameter(1)   p2 = f32[8] parameter(2)
 *           add = f32[4] add(p0, p1)   exp = f32[8] exponential(p2)   ROOT r = (f32[4], f32[8]) tuple(add, exp) } */
#ifndef DRIVER_ISOLATE_H
#define DRIVER_ISOLATE_H

#include "driver/driver.h"
#include "driver/results.h"

typedef struct IsolateOptions {
    bool        all; /* go on behind the first that differs */
    bool        json; /* the report: an object a line for each that differs or cannot be tried, and one of counts */
    Cache      *cache;
    CompileOptions compile;
} IsolateOptions;

/* like: module, signature, seed, threads. What differs is reported to b, with a last line of counts, and what the compiled backend cannot do
 * alone, with the reason. TROUBLE after reporting to d: the evaluation failed, or nothing could be tried. */
Verdict isolate_run(Buf *b, const Execution *like, Literal *const *args, const IsolateOptions *o, Diag *d);

#endif
