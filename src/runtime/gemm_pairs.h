/* gemm_pairs.h - both bodies for bytes of which a word is a pair, each as s16. Beside gemm_simple.h's names: WIDEN2(from), a vector of pairs. */
#define G 2
INLINE VC N(widen)(const TE *from)
{
    return WIDEN(from);
}
INLINE TC N(widen1)(TE x)
{
    return WIDEN1(x);
}
INLINE TW N(word)(const TE *from)
{
    return (uint32_t)(uint16_t)from[0] | (uint32_t)(uint16_t)from[1] << 16;
}
INLINE VW N(along)(const TE *from)
{
    return WIDEN2(from);
}
INLINE VW N(beside)(const TE *from, int64_t row)
{
    return (N(widen)(from) & 0xffff) | (N(widen)(from + row) << 16);
}
INLINE void N(across)(VW w[NV], const TE *from, int64_t row)
{
    UNROLL for (int v = 0; v < NV; v++)
        w[v] = N(beside)(from + v * VL, row);
}
#include "runtime/gemm_body.h"
#include "runtime/gemv_body.h"

#undef N
#undef TE
#undef G
#undef WIDEN
#undef WIDEN1
#undef WIDEN2
