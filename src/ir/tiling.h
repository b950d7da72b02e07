/* Which piece of an array a device has, by a sharding.
 *
 *   f32[6,8], devices=[2,2]<=[4]      tiles 2 and 2: device 3 has rows 3 to 5 of columns 4 to 7
 *   mesh['a'=2,'b'=4], [{'b'}, {}]    tiles 4 and 1: axis 'b' of the device's place in the mesh says which rows
 *
 * A dimension of size n in t tiles has pieces of size ceil(n / t); the last ones may be smaller or empty. Source: reference text 6.1. */
#ifndef IR_TILING_H
#define IR_TILING_H

#include "ir/attr_rare.h"

enum { MAX_TILED_RANK = 64 };

typedef struct Tiling {
    int32_t rank;
    int64_t tiles[MAX_TILED_RANK]; /* of each dimension */
    int64_t at[MAX_TILED_RANK];    /* which of them the device has */
} Tiling;

/* Of an array with this rank on one of n devices. NULL, or why there is no such piece, in a's memory. */
const char *tiling_of(Arena *a, const Sharding *s, int32_t rank, int64_t n, int64_t device, Tiling *out);

#endif
