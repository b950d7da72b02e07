/* Random modules that are legal, for testing whatever reads, changes or runs modules. */
#ifndef DRIVER_RANDOM_MODULE_H
#define DRIVER_RANDOM_MODULE_H

#include "support/arena.h"
#include "support/buf.h"

/* How two right computations of one array of the result may differ. */
typedef struct RandomLeaf {
    double error; /* at most this far apart; 0: equal */
    bool   vague; /* zeros of either sign are equal, and so are all NaN */
} RandomLeaf;

typedef struct RandomModule {
    const char *text;
    size_t      n;
    bool        specials; /* arguments may be NaN, infinite, of any size; else floats are within [-1.5, 1.5] */
    int32_t     n_leaves; /* of the result, depth first */
    RandomLeaf *leaves;
} RandomModule;

/* About `size` instructions. The same seed and size give the same bytes everywhere. */
RandomModule random_module(Arena *a, uint64_t seed, int32_t size);

#endif
