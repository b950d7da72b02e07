/* Comparing results: which elements differ by more than is allowed, and a report of it.
 *
 * Rules. e is the expected, a the actual value; NaN equals NaN, infinities equal by sign, integers and pred are compared exactly
 * and complex numbers by their parts.
 *   sum    |a - e| <= atol + rtol |e|
 *   both   XLA's: wrong only when |a - e| > atol and |a - e| > rtol |e|
 *   ulp    at most `ulp` representable values apart, -0 and 0 being one */
#ifndef DATA_COMPARE_H
#define DATA_COMPARE_H

#include "data/histogram.h"
#include "ir/inst.h"

typedef enum CompareRule { COMPARE_SUM, COMPARE_BOTH, COMPARE_ULP } CompareRule;

typedef struct Tolerance {
    CompareRule rule;
    double      atol, rtol;
    int64_t     ulp;
} Tolerance;

/* What can make results differ when a module is computed in another order: the longest sum it forms and the coarsest float type that
 * it computes in. */
typedef struct ErrorModel {
    int64_t reduction; /* 1: it sums nothing */
    Type    coarsest;  /* TYPE_F64 when it computes in no float type */
} ErrorModel;

ErrorModel error_model(const Module *m);
int64_t    inst_terms(const Inst *i); /* how many terms one element of i's result sums, at most; 1 where it sums nothing */

double     compare_epsilon(Type t); /* from 1 to the next value; of a complex type's parts */

/* With eps the distance from 1 to the next value of the coarser of the result's type and the model's, K the model's reduction:
 *   rtol = 80 eps                               a chain of elementary functions, each some eps off
 *   atol = 4 eps (1 + sqrt(K)) max |e|          rounding errors of K terms of random sign, as large as the largest result
 * by the rule sum. */
Tolerance tolerance_default(const Literal *expected, const ErrorModel *e);

/* For one instruction, of which another backend was given the same operands:
 *   what moves or chooses, compares, converts, or is exact (negate, floor, ...)     equal
 *   add, subtract, multiply, divide, sqrt of floats                                 1 ulp
 *   anything else                                                                   the default of a module that is this instruction with
 *                                                                                   what it calls directly */
Tolerance tolerance_of_inst(const Inst *i, const Literal *expected);

enum { COMPARE_WORST = 100, COMPARE_SHOWN = 5 };

typedef struct Comparison {
    int64_t count, wrong, nan_actual, nan_expected, inf_actual, inf_expected;
    double  max_abs, max_rel, mean_abs; /* over pairs of finite values */
    int32_t n_worst;
    int64_t worst[COMPARE_WORST]; /* linear indices of wrong elements, worst first */
    Histogram relative; /* of |a - e| / |e| */
    int32_t shown;    /* how many of the worst a report shows; 0: COMPARE_SHOWN */
    double  least_rtol, least_ulp; /* what would pass alone, as max_abs does; infinity when nothing does */
    double  needed; /* the factor on the tolerance at which all would pass; infinity when none does */
} Comparison;

/* Two arrays of one type and dims. True when no element is wrong. */
bool compare_literals(const Literal *actual, const Literal *expected, const Tolerance *t, Comparison *out);
/* "|a - e| <= 0.1 + 0 |e|", "at most 2 ulp apart", "exact" */
void compare_rule(Buf *b, Type type, const Tolerance *t);
/* Several lines: the counts, the rule, the worst elements with their indices, the histogram, what would pass. */
void compare_report(Buf *b, const char *name, const Literal *actual, const Literal *expected, const Tolerance *t, const Comparison *c);

/* A large expected array may be given by a fingerprint: its first and last elements, the sum, and the sum of squares (f64;
 * complex: the complex sum, the sum of |x|^2). The sum may be off by n (atol + rtol mean |x|). */
typedef struct Fingerprint {
    const Literal *head, *tail; /* one-dimensional, of the array's type */
    double         sum[2], sumsq; /* sum: real and imaginary part */
} Fingerprint;

/* Reports to b what is wrong; true when nothing is. t is the tolerance, or NULL for the default one. */
bool compare_fingerprint(Buf *b, const char *name, const Literal *actual, const Fingerprint *f, const Tolerance *t,
                         const ErrorModel *e);

#endif
