/* kernels_v3.c - x86-64 with AVX2 and FMA: 256-bit vectors, 16 registers, of which 12 are sums. */
#if defined(__x86_64__) && defined(HLORT_ONLY) && HLORT_ONLY != 3
#include "runtime/gemm.h"
const KernelSet hlort_v3 = { .name = "v3" };
#elif defined(__x86_64__)
#include "runtime/sets.h"

SET_BEGIN(SET_v3)

#define HLORT_SET     v3
#define VECTOR_BYTES  32
#define TILE_ROWS     6
#define TILE_VECTORS  2
#define BLOCK_K       256
#define BLOCK_ROWS    72
#define BLOCK_COLUMNS 256
#define HALF_F16C
#define MULTIPLY_PAIRS(a, b) __builtin_ia32_pmaddwd256((SET(vp))(a), (SET(vp))(b))
#include "runtime/gemm_types.h"

SET_END
#endif
