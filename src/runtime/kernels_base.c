/* kernels_base.c - for any processor: 128-bit vectors, as the compiler's options allow. On aarch64 that is NEON, with 32 registers. */
#define HLORT_SET    base
#define VECTOR_BYTES 16
#if defined(__aarch64__)
#define TILE_ROWS    6
#define TILE_VECTORS 4
#define BLOCK_ROWS   96
#define HALF_NEON
#else
#define TILE_ROWS    5
#define TILE_VECTORS 2
#define BLOCK_ROWS   80
#endif
#define BLOCK_K       256
#define BLOCK_COLUMNS 240
#include "runtime/gemm_types.h"
