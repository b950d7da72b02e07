/* What gather_simplifier and scatter_simplifier do alike to places. */
#ifndef PASSES_PLACES_H
#define PASSES_PLACES_H

#include "ir/inst.h"

/* The order of an operand's dimensions in which those that places look up (map) come first, in the order of map, then the others as they were. */
Ints places_first(Arena *a, Ints map, int32_t rank);

/* indices with a place along index_vector_dim (its rank: scalars) as a matrix with a place in each row. */
Inst *places_matrix(Inst *at, Inst *indices, int64_t index_vector_dim);

#endif
