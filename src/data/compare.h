/* Comparing results: which elements differ by more than is allowed, and a report of it. */
#ifndef DATA_COMPARE_H
#define DATA_COMPARE_H

#include "ir/literal.h"
#include "support/buf.h"

typedef enum CompareRule {
    COMPARE_SUM,  /* |a - e| <= atol + rtol |e| */
    COMPARE_BOTH, /* XLA's: wrong only when above atol and above rtol */
    COMPARE_ULP
} CompareRule;

typedef struct Tolerance {
    CompareRule rule;
    double      atol, rtol;
    int64_t     ulp;
} Tolerance;

typedef struct Comparison {
    int64_t count, wrong, nan_actual, nan_expected, inf_actual, inf_expected;
    double  max_abs, max_rel, mean_abs;
    int64_t worst[5]; /* linear indices, worst first */
    int32_t n_worst;
    int64_t histogram[8]; /* exact, <=1e-7 ... of the relative error, see compare.c */
    double  needed; /* the factor on the tolerance that would pass */
} Comparison;

/* Arrays of one type and dims; integers and pred exactly. NaN equals NaN, infinities by sign. */
bool compare_literals(const Literal *actual, const Literal *expected, const Tolerance *t, Comparison *out);
void compare_report(Buf *b, const char *name, const Literal *actual, const Literal *expected, const Tolerance *t, const Comparison *c);

#endif
