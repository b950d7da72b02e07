/* kernels_v4.c - x86-64 with AVX-512: 512-bit vectors, 32 registers, of which 28 are sums. */
#if defined(__x86_64__) && defined(HLORT_ONLY) && HLORT_ONLY != 4
#include "runtime/gemm.h"
const KernelSet hlort_v4 = { .name = "v4" };
#elif defined(__x86_64__)
#include "runtime/sets.h"

SET_BEGIN(SET_v4)

#define HLORT_SET     v4
#define VECTOR_BYTES  64
#define TILE_ROWS     14
#define TILE_VECTORS  2
#define BLOCK_K       384
#define BLOCK_ROWS    112
#define BLOCK_COLUMNS 384
#define HALF_512
#ifdef __clang__
#define MULTIPLY_PAIRS(a, b) __builtin_ia32_pmaddwd512((SET(vp))(a), (SET(vp))(b))
#else
#define MULTIPLY_PAIRS(a, b) __builtin_ia32_pmaddwd512_mask((SET(vp))(a), (SET(vp))(b), (SET(vi)){ 0 }, (unsigned short)-1)
#endif
#include "runtime/gemm_types.h"

SET_END
#endif
