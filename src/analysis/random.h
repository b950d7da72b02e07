/* How the counters of a generator of random bits lie in an array. */
#ifndef ANALYSIS_RANDOM_H
#define ANALYSIS_RANDOM_H

#include "ir/shape.h"

/* The dimension along which even and odd elements share a counter of Threefry: the first of even size, else the first of the largest. 0 of a scalar. */
static inline int32_t threefry_split_dim(const Shape *s)
{
    int32_t largest = 0;
    for (int32_t d = 0; d < s->rank; d++) {
        if (s->dims[d] % 2 == 0)
            return d;
        if (s->dims[d] > s->dims[largest])
            largest = d;
    }
    return largest;
}

#endif
