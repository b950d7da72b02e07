/* A second run in double precision, which says how far results are from what exact arithmetic would give: so a result that is worse
 * can be told from one that is merely another. */
#ifndef DRIVER_SHADOW_H
#define DRIVER_SHADOW_H

#include "driver/driver.h"
#include "driver/results.h"
#include "eval/eval.h"

/* m with f64 for every float type and c128 for every complex one (shadow_module.c); the caller frees it. */
Module  *shadow_module(const Module *m);
Literal *shadow_raise(const Literal *l); /* a value of m as one of that: one reference */

typedef struct Shadow Shadow;

/* Of m as it stands, before any pass: m may change afterwards. It goes with the arena. NULL after reporting what the evaluator cannot do. */
Shadow *shadow_open(Arena *a, const Module *m, const EvalHost *host, Diag *d);

/* Evaluates m twice on args, in its own types and in double precision. like: whose seed, functions and feeds are used. False after reporting. */
bool    shadow_run(Shadow *s, const Execution *like, Literal *const *args, Diag *d);

/* For every result: the error of results[k], and of expected[k] when that is given, and which is worse. Elements of integers and pred that
 * double precision decides otherwise are counted, in results and at each instruction that makes them of floats.
 * json: an object a line for each result, and one of the decisions. DIFFER: a result is worse than what was expected; without expected: it is farther off than the default tolerance allows. */
Verdict shadow_report(Buf *b, const Shadow *s, const Signature *sig, Literal *const *results, Literal *const *expected, bool json);

#endif
