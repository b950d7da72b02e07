/* What the parts of --shadow share: the two evaluations (shadow.c), the report (shadow_report.c). */
#ifndef DRIVER_SHADOW_INT_H
#define DRIVER_SHADOW_INT_H

#include "driver/shadow.h"
#include "support/vec.h"

typedef struct Decision {
    const char *name;
    Op          op;
    int64_t     runs, elements, changed; /* elements: of all runs that both had */
} Decision;

struct Shadow {
    Arena           *arena;
    Module          *own, *raised;
    int32_t          n_results;
    Literal        **exact;
    Interner        *names;
    Map              values;    /* key -> Literal of the run in own types */
    VEC(Literal *)   held;
    Map              decisions; /* name -> Decision */
    VEC(Decision *)  list;
    int64_t          matched, unmatched; /* steps */
};

bool shadow_inexact(Type t); /* floats and complex numbers */

/* How far an array is from what double precision makes of it. */
typedef struct Distance {
    int64_t finite;         /* elements that are finite on both sides */
    int64_t wrong;          /* elements that are finite on one side alone, or another infinity; of integers and pred: that differ */
    int64_t at;             /* where the largest error is */
    double  largest, mean;  /* mean: the root of the mean square */
} Distance;

Distance distance_of(const Literal *l, const Literal *exact);
/* < 0: x is worse, > 0: y is, 0: neither. */
int      distance_worse(const Distance *x, const Distance *y);

#endif
