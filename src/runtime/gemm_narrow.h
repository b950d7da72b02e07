/* gemm_narrow.h - products of bf16 and of bytes by instructions that multiply neighbours along k in each lane of 32 bits and add all of them to its sum.
 *
 * Who includes it defines what gemm_types.h wants, with vectors of 64 bytes, and
 *
 *   REST                       the set that has the other types
 *   BYTES_SET                  the name of a second set, which leaves bf16 to that, too
 *   MULTIPLY_BF16(c, a, b)     f32 c + the products of two bf16
 *   NARROW_BF16(x)             f32 to bf16, of numbers that are not subnormal
 *   MULTIPLY_BYTES(c, a, b)    32-bit c + the products of four unsigned bytes of a and four signed ones of b, modulo 2^32
 *
 * where a is a word for all lanes. A's words lie in memory as they are, B's are interleaved when it is packed. */
#include "runtime/attention.h"
#include "runtime/gemm.h"
#include "runtime/image.h"
#include "runtime/vec.h"

#define SET(x) HLORT_PASTE(x, HLORT_SET)

typedef float SET(vf) __attribute__((vector_size(VECTOR_BYTES)));
typedef float SET(vfu) __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

#include "runtime/narrow.h"

#define MR           TILE_ROWS
#define NV           TILE_VECTORS
#define MC           BLOCK_ROWS
#define NC           BLOCK_COLUMNS

/* ---- bf16, summed in f32 ---- */
typedef uint16_t SET(vhh) __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t SET(vw1) __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));

/* Words of two rows. */
INLINE void SET(hlort_interleave)(SET(vu) w[NV], const uint16_t *from, int64_t row)
{
    _Static_assert(NV == 2, "a vector of elements is a row of the panel");
    SET(vhh) x = (SET(vhh))*(const SET(vw1) *)from, y = (SET(vhh))*(const SET(vw1) *)(from + row);
    w[0] = (SET(vu))__builtin_shufflevector(x, y, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
    w[1] = (SET(vu))__builtin_shufflevector(x, y, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30,
                                       62, 31, 63);
}

#define K(x)                  SET(hlort_pair_##x)
#define TW                    uint32_t
#define VW                    SET(vu)
#define VWU                   SET(vuu)
#define VL                    (VECTOR_BYTES / 4)
#define KC                    BLOCK_K
#define FUSED                 0
#define IN_PLACE              1
#define TB                    uint16_t
#define IN_WORD               2
#define LOAD_WORDS            SET(hlort_interleave)
#define N(x)                  SET(hlort_bf16_##x)
#define TE                    uint16_t
#define TC                    float
#define VC                    SET(vf)
#define VCU                   SET(vfu)
#define G                     2
#define BEGUN                 0
#define A_WORDS(w)            (w)
#define B_WORDS(w)            (w)
#define FEW_BEGUN             0
#define MULTIPLY_FEW          MULTIPLY_ADD
#define MULTIPLY_ADD(c, a, b) MULTIPLY_BF16(c, (VW){ 0 } + (a), b)
#include "runtime/gemm_tile.h"

INLINE VC N(widen)(const TE *from)
{
    return SET(hlort_from_bf16)(from);
}
INLINE TC N(widen1)(TE x)
{
    return ((union { uint32_t u; float f; }){ .u = (uint32_t)x << 16 }).f;
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
    return SET(hlort_words)(from) | (SET(hlort_words)(from + row) << 16);
}
INLINE void N(across)(VW w[NV], const TE *from, int64_t row)
{
    SET(hlort_interleave)(w, from, row);
}
#define NOT_ZERO(w)   (((w) & 0x7fff7fff) != 0)
#define NOT_FINITE(w) ((((w) & 0x7f80) == 0x7f80) | (((w) & 0x7f800000) == 0x7f800000))
#include "runtime/gemm_body.h"
#define HELD_PAIRS
#include "runtime/gemv_body.h"
#undef HELD_PAIRS
#define WEIGHTS NARROW_BF16
#define RESULTS SET(hlort_to_bf16)
#include "runtime/attention_body.h"
#undef WEIGHTS
#undef RESULTS
#include "runtime/gemm_words_end.h"
#undef N
#undef TE
#undef G
#undef BEGUN
#undef A_WORDS
#undef B_WORDS
#undef FEW_BEGUN
#undef MULTIPLY_FEW
#undef MULTIPLY_ADD

/* Sums of those products, which are never subnormal. What is left of a row at its end is made together with what lies before it. */
static void SET(hlort_bf16_narrow_rows)(uint16_t *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t n)
{
    const int64_t lanes = VECTOR_BYTES / 4;
    if (to_row == n && from_row == n) {
        n *= rows;
        rows = 1;
    }
    for (int64_t i = 0; i < rows; i++, to += to_row, from += from_row) {
        int64_t j = 0;
        for (; j + lanes <= n; j += lanes)
            *(SET(vhu) *)(to + j) = NARROW_BF16(*(const SET(vfu) *)(from + j));
        if (j < n && n > lanes) {
            *(SET(vhu) *)(to + n - lanes) = NARROW_BF16(*(const SET(vfu) *)(from + n - lanes));
        } else if (j < n) {
            float    few[VECTOR_BYTES / 4] = { 0 };
            uint16_t out[VECTOR_BYTES / 4];
            __builtin_memcpy(few, from + j, (uint64_t)(n - j) * sizeof *few);
            *(SET(vhu) *)out = NARROW_BF16(*(const SET(vfu) *)few);
            __builtin_memcpy(to + j, out, (uint64_t)(n - j) * sizeof *out);
        }
    }
}

/* ---- s8 and u8, summed in 32 bits ---- */
typedef int8_t SET(vb) __attribute__((vector_size(VECTOR_BYTES / 4), aligned(1), may_alias));
typedef uint8_t SET(vub) __attribute__((vector_size(VECTOR_BYTES / 4), aligned(1), may_alias));

#define K(x)      SET(hlort_bytes_##x)
#define N(x)      SET(hlort_s8_##x)
#define TE        int8_t
#define IS_SIGNED 1
#include "runtime/gemm_bytes.h"
#define K(x)      SET(hlort_ubytes_##x)
#define N(x)      SET(hlort_u8_##x)
#define TE        uint8_t
#define IS_SIGNED 0
#include "runtime/gemm_bytes.h"

extern const KernelSet SET(hlort);
const KernelSet SET(hlort) = {
    .name = HLORT_TEXT(HLORT_SET),
    .gemm = { [GEMM_BF16] = SET(hlort_bf16_gemm), [GEMM_BF16_F32] = SET(hlort_bf16_gemm), [GEMM_S8_S32] = SET(hlort_s8_gemm),
              [GEMM_U8_S32] = SET(hlort_u8_gemm) },
    .attention = { [GEMM_BF16] = &SET(hlort_bf16_attention), [GEMM_BF16_F32] = &SET(hlort_bf16_attention) },
    .narrow = { [GEMM_BF16] = SET(hlort_narrow_bf16), [GEMM_F16] = SET(hlort_narrow_f16) },
    .narrow_rows = { [GEMM_BF16] = SET(hlort_bf16_narrow_rows) },
    .widen = { [GEMM_BF16] = SET(hlort_widen_bf16), [GEMM_BF16_F32] = SET(hlort_widen_bf16), [GEMM_F16] = SET(hlort_widen_f16), [GEMM_F16_F32] = SET(hlort_widen_f16) },
    .together = { [GEMM_BF16] = 2, [GEMM_BF16_F32] = 2, [GEMM_S8_S32] = 4, [GEMM_U8_S32] = 4 },
    .rest = &REST,
};

extern const KernelSet HLORT_PASTE(hlort, BYTES_SET);
const KernelSet HLORT_PASTE(hlort, BYTES_SET) = {
    .name = HLORT_TEXT(BYTES_SET),
    .gemm = { [GEMM_S8_S32] = SET(hlort_s8_gemm), [GEMM_U8_S32] = SET(hlort_u8_gemm) },
    .narrow = { [GEMM_BF16] = SET(hlort_narrow_bf16), [GEMM_F16] = SET(hlort_narrow_f16) },
    .widen = { [GEMM_BF16] = SET(hlort_widen_bf16), [GEMM_BF16_F32] = SET(hlort_widen_bf16), [GEMM_F16] = SET(hlort_widen_f16), [GEMM_F16_F32] = SET(hlort_widen_f16) },
    .together = { [GEMM_S8_S32] = 4, [GEMM_U8_S32] = 4 },
    .rest = &REST,
};

#include "runtime/gemm_set_end.h"
#undef REST
#undef BYTES_SET
#undef MULTIPLY_BF16
#undef NARROW_BF16
#undef MULTIPLY_BYTES
