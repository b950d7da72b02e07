/* gemm_simple.h - both bodies for a type of which a word is one element, as an accumulator: WIDEN(from) makes a vector of VL of them, WIDEN1(x) one. */
#define G 1

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
    return N(widen1)(*from);
}
INLINE VW N(along)(const TE *from)
{
    return N(widen)(from);
}
INLINE VW N(beside)(const TE *from, int64_t row)
{
    (void)row;
    return N(widen)(from);
}
INLINE void N(across)(VW w[NV], const TE *from, int64_t row)
{
    (void)row;
    UNROLL for (int v = 0; v < NV; v++)
        w[v] = N(widen)(from + v * VL);
}
#include "runtime/gemm_body.h"
#include "runtime/gemv_body.h"
#ifdef ATTENTION
#include "runtime/attention_body.h"
#endif
#ifdef DEPTHWISE
#include "runtime/depthwise_body.h"
#endif
#ifdef WINOGRAD
#include "runtime/winograd_body.h"
#endif

#undef N
#undef TE
#undef G
#undef WIDEN
#undef WIDEN1
#undef RESULTS
