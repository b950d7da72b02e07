/* gemm_types.h - the products of one set of instructions: for each element type its words, and the size of tiles and blocks.
 *
 * Who includes it defines HLORT_SET, VECTOR_BYTES, the tile of 32-bit words TILE_ROWS x TILE_VECTORS, and the block of 32-bit words BLOCK_K, BLOCK_ROWS,
 * BLOCK_COLUMNS. Blocks of 64-bit words have as many bytes. */
#include "runtime/gemm.h"
#include "runtime/vec.h"

#define SET(x)       HLORT_PASTE(x, HLORT_SET)

typedef float  SET(vf) __attribute__((vector_size(VECTOR_BYTES)));
typedef double SET(vd) __attribute__((vector_size(VECTOR_BYTES)));
typedef float  SET(vfu) __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef double SET(vdu) __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

#define MR TILE_ROWS
#define NV TILE_VECTORS

/* ---- f32 ---- */
#define N(x) SET(hlort_f32_##x)
#define TE   float
#define TW   float
#define TC   float
#define VW   SET(vf)
#define VC   SET(vf)
#define VCU  SET(vfu)
#define G    1
#define VL   (VECTOR_BYTES / 4)
#define KC   BLOCK_K
#define MC   BLOCK_ROWS
#define NC   BLOCK_COLUMNS
#define SWEEP_VECTORS 4
#define ROWS_AT_ONCE  2
INLINE VC N(multiply_add)(VC c, TW a, VW b)
{
    return c + a * b;
}
INLINE VW N(along)(const TE *from)
{
    return *(const VCU *)from;
}
INLINE void N(across)(VW w[NV], const TE *from, int64_t row)
{
    (void)row;
    UNROLL for (int v = 0; v < NV; v++)
        w[v] = *(const VCU *)(from + v * VL);
}
INLINE VC N(widen)(const TE *from)
{
    return *(const VCU *)from;
}
INLINE TC N(widen1)(TE x)
{
    return x;
}
#include "runtime/gemm_body.h"
#include "runtime/gemv_body.h"
#undef N
#undef TE
#undef TW
#undef TC
#undef VW
#undef VC
#undef VCU
#undef VL
#undef KC
#undef NC

/* ---- f64 ---- */
#define N(x) SET(hlort_f64_##x)
#define TE   double
#define TW   double
#define TC   double
#define VW   SET(vd)
#define VC   SET(vd)
#define VCU  SET(vdu)
#define VL   (VECTOR_BYTES / 8)
#define KC   (BLOCK_K / 2)
#define NC   BLOCK_COLUMNS
INLINE VC N(multiply_add)(VC c, TW a, VW b)
{
    return c + a * b;
}
INLINE VW N(along)(const TE *from)
{
    return *(const VCU *)from;
}
INLINE void N(across)(VW w[NV], const TE *from, int64_t row)
{
    (void)row;
    UNROLL for (int v = 0; v < NV; v++)
        w[v] = *(const VCU *)(from + v * VL);
}
INLINE VC N(widen)(const TE *from)
{
    return *(const VCU *)from;
}
INLINE TC N(widen1)(TE x)
{
    return x;
}
#include "runtime/gemm_body.h"
#include "runtime/gemv_body.h"
#undef N
#undef TE
#undef TW
#undef TC
#undef VW
#undef VC
#undef VCU
#undef G
#undef VL
#undef KC
#undef MC
#undef NC
#undef MR
#undef NV
#undef SWEEP_VECTORS
#undef ROWS_AT_ONCE
#undef SET
#undef HLORT_SET
#undef VECTOR_BYTES
#undef TILE_ROWS
#undef TILE_VECTORS
#undef BLOCK_K
#undef BLOCK_ROWS
#undef BLOCK_COLUMNS
