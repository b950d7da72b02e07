/* Is what a pass has made merely rounded otherwise? A rewrite that rounds (x / c as x * (1 / c)) moves a value by one place, and what follows may carry
 * that on: differences of equal numbers, steps that stop at a distance. How far is no property of the pass, but of the module, and the module says it itself:
 * by as much as its results are off already. With e the results of the module before in double precision (shadow.h),
 *
 *     rms(after - e) <= FARTHER rms(before - e)      max |after - e| <= FARTHEST max |before - e|
 *
 * for each array of floats, and no more elements of integers, and no more elements that are finite on one side alone, may differ from e than before:
 * a rewrite that computes something else does not come as near. */
#include "config.h"

#include "driver/check_int.h"

#include "driver/shadow_int.h"

enum { FARTHER = 4, FARTHEST = 8 }; /* two bits and three: the errors of a few elements scatter, and the largest of them more than their mean */

static bool array_as_near(const Literal *exact, const Literal *before, const Literal *after)
{
    if (exact->count != before->count || exact->count != after->count)
        return false;
    Distance x = distance_of(after, exact), y = distance_of(before, exact);
    return x.wrong <= y.wrong && x.mean <= FARTHER * y.mean && x.largest <= FARTHEST * y.largest;
}

/* The sign of a zero is not rounded. */
static bool may_be_rounding(const Literal *before, const Difference *how)
{
    return how->inexact || !shadow_inexact(before->type);
}

bool values_as_near(Arena *a, const Literal *exact, const Literal *before, const Literal *after, const ErrorModel *error)
{
    if (exact->type == TYPE_TUPLE) {
        bool near = true;
        for (int32_t k = 0; k < exact->n_elems && near; k++)
            near = values_as_near(a, exact->elems[k], before->elems[k], after->elems[k], error);
        return near;
    }
    Difference how;
    return !values_differ(a, before, after, error, false, &how) || (may_be_rounding(before, &how) && array_as_near(exact, before, after));
}
