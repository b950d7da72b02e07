/* kernels_v2.c - x86-64 with SSE4.2: 128-bit vectors, 16 registers, no fused multiplication and addition. */
#if defined(__x86_64__) && defined(HLORT_ONLY) && HLORT_ONLY != 2
#include "runtime/gemm.h"
const KernelSet hlort_v2 = { .name = "v2" };
#elif defined(__x86_64__)
#include "runtime/sets.h"

SET_BEGIN(SET_v2)

#define HLORT_SET     v2
#define VECTOR_BYTES  16
#define TILE_ROWS     5
#define TILE_VECTORS  2
#define BLOCK_K       256
#define BLOCK_ROWS    80
#define BLOCK_COLUMNS 256
#define MULTIPLY_PAIRS(a, b) __builtin_ia32_pmaddwd128((SET(vp))(a), (SET(vp))(b))
#include "runtime/gemm_types.h"

SET_END
#endif
