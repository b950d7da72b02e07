/* Between check.c, which evaluates, check_shadow.c, which knows rounding, and check_locate.c, which says where two evaluations part. */
#ifndef DRIVER_CHECK_INT_H
#define DRIVER_CHECK_INT_H

#include "data/compare.h"
#include "driver/check.h"
#include "eval/eval.h"

enum { MAX_PATH = 8 }; /* deeper elements are not told apart */

/* Where two values differ. */
typedef struct Difference {
    int32_t     n_path, path[MAX_PATH]; /* of a tuple: which element, of that which, ... */
    const char *index;         /* "[2,0]"; "" for a scalar */
    const char *before, *after; /* the two elements; NULL when the sizes differ */
    int64_t     wrong, count;  /* elements of the array */
    Tolerance   allowed;
    bool        inexact;       /* allowed counts: a float, not compared exactly */
} Difference;

/* Leaf by leaf: the first leaf that differs, at its worst element. Texts are in a. */
bool values_differ(Arena *a, const Literal *before, const Literal *after, const ErrorModel *error, bool exact, Difference *out);

/* Values that differ (values_differ, not exactly): is `after`, leaf by leaf, about as near to what double precision gives as `before` is?
 * exact: of the module before, each float as f64. */
bool values_as_near(Arena *a, const Literal *exact, const Literal *before, const Literal *after, const ErrorModel *error);

/* Evaluates both modules once more and reports the first instruction whose values differ, in the order in which they are computed. root is how the
 * results differ: what is said when no instruction of `after` has the name of one before. `which` says on what arguments. */
typedef Literal *EvaluateFn(void *cookie, const Module *m, const EvalWatch *o);
void locate_difference(const Module *before, const Module *after, EvaluateFn *evaluate, void *cookie, const ErrorModel *error, bool exact,
                       const Difference *root, const char *by, const char *which, Diag *d);

#endif
