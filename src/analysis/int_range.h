/* Between which numbers the elements of an integer array are, by what made them; of a loop's counter by its trips, where these are noted (loops.h). */
#ifndef ANALYSIS_INT_RANGE_H
#define ANALYSIS_INT_RANGE_H

#include "ir/inst.h"

typedef struct IntRange {
    int64_t lo, hi; /* both may be */
} IntRange;

/* False for what is no array of integers or truth values, and for u64, whose numbers s64 has not. Of what nothing is known all that the type has. */
bool int_range(const Inst *i, IntRange *r);

#endif
