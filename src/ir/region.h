/* Manual regions of a module that is not partitioned: outside of them every partition has whole arrays, inside it has its piece.
 *
 *   whole f32[8]  --CUT (SPMDFullToShardShape, xla.sdy.GlobalToLocalShape), by the operand's sharding-->  piece f32[2] on each of 4
 *   piece f32[2]  --JOIN (SPMDShardToFullShape, xla.sdy.LocalToGlobalShape), by the result's sharding-->  whole f32[8] on each
 *
 * A dimension that has one size inside and outside is not cut, whatever the sharding says: its axes are not of the region. Pieces beyond the
 * end are filled with zeros. Of devices that have the same piece, the first one's counts. Source: reference operations 2.3, 19. */
#ifndef IR_REGION_H
#define IR_REGION_H

#include "ir/groups.h"
#include "ir/tiling.h"

bool region_joins(const Inst *i); /* JOIN, else CUT */

/* Of operand k: the shapes outside and inside of the region. */
const Shape *region_whole(const Inst *i, int32_t k);
const Shape *region_piece(const Inst *i, int32_t k);

/* Why i cannot be done on these devices, in a's memory; NULL: it can. */
const char *region_refused(Arena *a, const Inst *i, Devices on);

/* Where the piece of a partition starts in the whole array, and how much of it there is; the rest of the piece lies beyond the end. */
typedef struct Place {
    int64_t start[MAX_TILED_RANK], size[MAX_TILED_RANK];
} Place;

/* Of an instruction that was not refused. */
Place region_place(Arena *a, const Inst *i, int32_t k, Devices on, int64_t partition);

#endif
