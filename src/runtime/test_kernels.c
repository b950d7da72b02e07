/* test_kernels.c - the vectors of v4 in whatever registers there are, so that they are tried on every machine. */
#define HLORT_SET     wide
#define VECTOR_BYTES  64
#define TILE_ROWS     6
#define TILE_VECTORS  2
#define BLOCK_K       384
#define BLOCK_ROWS    72
#define BLOCK_COLUMNS 384
#include "runtime/gemm_types.h"
