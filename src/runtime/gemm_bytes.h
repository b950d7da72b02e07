/* gemm_bytes.h - products of bytes of one kind by an instruction that multiplies unsigned ones by signed ones.
 *
 * Of s8, a is u - 128 where u has a's bits but the first, so that sums of u * b begin at -128 times the sum of b; of u8, where a - 128 has them, at 128 times
 * that. Where rows are few, b takes the part of a: sums begin at those of a, which are fewer.
 *
 * Who includes it defines K and N for the names, TE, and IS_SIGNED. */
#define TW                    uint32_t
#define VW                    SET(vu)
#define VWU                   SET(vuu)
#define VL                    (VECTOR_BYTES / 4)
#define KC                    BLOCK_K
#define FUSED                 0
#define IN_PLACE              0
#define TC                    uint32_t
#define VC                    SET(vu)
#define VCU                   SET(vuu)
#define G                     4
#define BEGUN                 1
#define A_WORDS(w)            ((w) ^ 0x80808080)
#define B_WORDS               A_WORDS
#define FEW_BEGUN             1
#if IS_SIGNED
#define LESS_128              -128U
#define MULTIPLY_ADD(c, a, b) MULTIPLY_BYTES(c, (VW){ 0 } + (a), b)
#define MULTIPLY_FEW(c, a, b) MULTIPLY_BYTES(c, b, (VW){ 0 } + (a))
#define SUM_OF(c, w)          MULTIPLY_BYTES(c, (VW){ 0 } + 0x01010101, w)
#else
#define LESS_128              128U
#define MULTIPLY_ADD(c, a, b) MULTIPLY_BYTES(c, b, (VW){ 0 } + (a))
#define MULTIPLY_FEW(c, a, b) MULTIPLY_BYTES(c, (VW){ 0 } + (a), b)
#define SUM_OF(c, w)          MULTIPLY_BYTES(c, w, (VW){ 0 } + 0x01010101)
#endif
#include "runtime/gemm_tile.h"

INLINE VC N(widen)(const TE *from)
{
#if IS_SIGNED
    return (VC)__builtin_convertvector(__builtin_convertvector(*(const SET(vb) *)from, SET(vs)), SET(vi));
#else
    return __builtin_convertvector(__builtin_convertvector(*(const SET(vub) *)from, SET(vh)), VC);
#endif
}
INLINE TC N(widen1)(TE x)
{
    return (uint32_t)(int32_t)x; /* of u8: itself */
}
INLINE TW N(word)(const TE *from)
{
    TW w;
    __builtin_memcpy(&w, from, sizeof w);
    return w;
}
INLINE VW N(along)(const TE *from)
{
    return *(const SET(vw1) *)from;
}
INLINE VW N(beside)(const TE *from, int64_t row)
{
    typedef uint16_t Pairs __attribute__((vector_size(VECTOR_BYTES / 4)));
    typedef uint64_t Longs __attribute__((vector_size(VECTOR_BYTES / 4)));
    SET(vb) r[4];
    Pairs   low[2], high[2];
    UNROLL for (int g = 0; g < G; g++)
        r[g] = *(const SET(vb) *)(from + g * row);
    UNROLL for (int g = 0; g < 2; g++) {
        low[g] = (Pairs)__builtin_shufflevector(r[2 * g], r[2 * g + 1], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        high[g] = (Pairs)__builtin_shufflevector(r[2 * g], r[2 * g + 1], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    Longs a = (Longs)__builtin_shufflevector(low[0], low[1], 0, 8, 1, 9, 2, 10, 3, 11), b = (Longs)__builtin_shufflevector(low[0], low[1], 4, 12, 5, 13, 6, 14, 7, 15);
    Longs c = (Longs)__builtin_shufflevector(high[0], high[1], 0, 8, 1, 9, 2, 10, 3, 11), d = (Longs)__builtin_shufflevector(high[0], high[1], 4, 12, 5, 13, 6, 14, 7, 15);
    return (VW)__builtin_shufflevector(__builtin_shufflevector(a, b, 0, 1, 2, 3), __builtin_shufflevector(c, d, 0, 1, 2, 3), 0, 1, 2, 3, 4, 5, 6, 7);
}
INLINE void N(across)(VW w[NV], const TE *from, int64_t row)
{
    UNROLL for (int v = 0; v < NV; v++)
        w[v] = N(beside)(from + v * VL, row);
}
INLINE void N(begin)(TC *begin, const TW *panel, int64_t kc)
{
    VC sums[NV] = { 0 };
    for (int64_t p = 0; p < kc; p++)
        UNROLL for (int v = 0; v < NV; v++)
            sums[v] = SUM_OF(sums[v], *(const VW *)(panel + p * K(NR) + v * VL));
    UNROLL for (int v = 0; v < NV; v++)
        *(VC *)(begin + v * VL) = sums[v] * LESS_128;
}
INLINE TC N(begin_row)(const TE *a, int64_t step, int64_t k)
{
    uint32_t sum = 0;
    for (int64_t p = 0; p < k; p++)
        sum = sum + N(widen1)(a[p * step]);
    return sum * LESS_128;
}
#include "runtime/gemm_body.h"
#include "runtime/gemv_body.h"
#include "runtime/gemm_words_end.h"
#undef LESS_128
#undef SUM_OF
#undef IS_SIGNED
#undef N
#undef TE
#undef G
#undef BEGUN
#undef A_WORDS
#undef B_WORDS
#undef FEW_BEGUN
#undef MULTIPLY_FEW
#undef MULTIPLY_ADD
