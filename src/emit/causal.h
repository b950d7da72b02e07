/* Attention in which a row sees no key beyond its own place: what is behind need not be computed, where scores that are seen turn out to be well above c.
 *
 *   masked = select(i + below >= j, f(scores), c)        or        masked = f(scores) + select(i + below >= j, 0, c)
 *   weights = exp(masked - max(masked)) / sum(..)
 *
 * for row i and key j; of several masks that all have to be true, when every row sees a key. Weights of keys behind are zeros, as long as the scores that are seen are well above c: that is so where a bound of them, from the largest
 * factors of the first dot, is below a limit. They add nothing, as long as no value behind is an infinity or NaN. */
#ifndef EMIT_CAUSAL_H
#define EMIT_CAUSAL_H

#include "analysis/attention.h"

typedef struct Causal {
    int32_t row, key; /* dimensions of the scores */
    int64_t below;    /* 0 or more: row i sees key i + below, and none behind it */
    int64_t above;    /* it sees none before i - above; INT64_MAX: it does */
    double  hidden;   /* c */
    bool    added;    /* it is beside the score */
    const Inst *masked; /* the select, or the sum */
    bool    bounded;       /* there is such a limit: */
    double  factor, limit; /* weights behind are zeros where factor * |score| <= limit; factor 0: whatever the scores are */
} Causal;

bool causal_find(const Attention *a, Causal *c);

#endif
