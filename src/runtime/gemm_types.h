/* gemm_types.h - the products of one set of instructions: for each element type its words, and the size of tiles and blocks.
 *
 * Who includes it defines HLORT_SET, VECTOR_BYTES, the tile TILE_ROWS x TILE_VECTORS, and the block of 32-bit words BLOCK_K, BLOCK_ROWS, BLOCK_COLUMNS. Blocks
 * of 64-bit words have half as many k. MULTIPLY_PAIRS(a, b), if there is one, adds the two products of pairs of s16 in each lane. */
#include "runtime/attention.h"
#include "runtime/depthwise.h"
#include "runtime/fft.h"
#include "runtime/image.h"
#include "runtime/vec.h"
#include "runtime/walk.h"
#include "runtime/winograd.h"

#define SET(x) HLORT_PASTE(x, HLORT_SET)

typedef float  SET(vf) __attribute__((vector_size(VECTOR_BYTES)));
typedef double SET(vd) __attribute__((vector_size(VECTOR_BYTES)));
typedef float  SET(vfu) __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef double SET(vdu) __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

#include "runtime/narrow.h"

#define MR            TILE_ROWS
#define NV            TILE_VECTORS
#define MC            BLOCK_ROWS
#define NC            BLOCK_COLUMNS

#define MULTIPLY_ADD(c, a, b) ((c) + (a) * (b))
#define BEGUN         0
#define A_WORDS(w)    (w)
#define B_WORDS(w)    (w)
#define FEW_BEGUN     0
#define MULTIPLY_FEW  MULTIPLY_ADD

#define LOAD_VECTORS(w, from, row) UNROLL for (int v = 0; v < NV; v++) (w)[v] = *(const VWU *)((from) + v * VL)

/* ---- f64 ---- */
#define DEPTHWISE
#define K(x)        SET(hlort_f64_##x)
#define TW          double
#define TC          double
#define VW          SET(vd)
#define VC          SET(vd)
#define VWU         SET(vdu)
#define VCU         SET(vdu)
#define VL          (VECTOR_BYTES / 8)
#define KC          (BLOCK_K / 2)
#define FUSED       1
#define IN_PLACE    1
#define TB          double
#define IN_WORD     1
#define LOAD_WORDS  LOAD_VECTORS
#include "runtime/gemm_tile.h"
#include "runtime/walk_body.h"
#define N(x)        SET(hlort_f64_##x)
#define TE          double
#define WIDEN(from) (*(const VCU *)(from))
#define WIDEN1(x)   (x)
#include "runtime/gemm_simple.h"
#define N(x)        SET(hlort_c128_##x)
#include "runtime/gemm_complex.h"
#define Z(x)        SET(hlort_f64_fft_##x)
#define FEW         2
#include "runtime/fft_body.h"
#include "runtime/gemm_words_end.h"

/* ---- f32, and what is summed in it ---- */
#define K(x)        SET(hlort_f32_##x)
#define TW          float
#define TC          float
#define VW          SET(vf)
#define VC          SET(vf)
#define VWU         SET(vfu)
#define VCU         SET(vfu)
#define VL          (VECTOR_BYTES / 4)
#define KC          BLOCK_K
#define FUSED       1
#define IN_PLACE    1
#define TB          float
#define IN_WORD     1
#define LOAD_WORDS  LOAD_VECTORS
#include "runtime/gemm_tile.h"
#include "runtime/walk_body.h"
#define N(x)        SET(hlort_f32_##x)
#define TE          float
#define WIDEN(from) (*(const VCU *)(from))
#define WIDEN1(x)   (x)
#define ATTENTION
#define WINOGRAD
#include "runtime/gemm_simple.h"
#undef WINOGRAD
#define N(x)        SET(hlort_c64_##x)
#include "runtime/gemm_complex.h"
#define Z(x)        SET(hlort_f32_fft_##x)
#define FEW         4
#include "runtime/fft_body.h"
#undef FUSED
#undef IN_PLACE
#define FUSED       0
#define IN_PLACE    0

#define N(x)        SET(hlort_bf16_##x)
#define TE          uint16_t
#define WIDEN(from) SET(hlort_from_bf16)(from)
#define WIDEN1(x)   (((union { uint32_t u; float f; }){ .u = (uint32_t)(x) << 16 }).f)
#define RESULTS     SET(hlort_to_bf16)
#include "runtime/gemm_simple.h"

INLINE float SET(hlort_from_f16_1)(uint16_t x)
{
#if defined(HALF_F16C) || defined(HALF_512)
    typedef short short8 __attribute__((vector_size(16)));
    return __builtin_ia32_vcvtph2ps((short8){ (short)x })[0];
#elif defined(HALF_NEON)
    union {
        uint16_t bits;
        __fp16   half;
    } h = { x };
    return h.half;
#else
    uint16_t few[VECTOR_BYTES / 4] = { x };
    return SET(hlort_from_f16)(few)[0];
#endif
}
#define N(x)        SET(hlort_f16_##x)
#define TE          uint16_t
#define WIDEN(from) SET(hlort_from_f16)(from)
#define WIDEN1(x)   SET(hlort_from_f16_1)(x)
#define RESULTS     SET(hlort_to_f16)
#include "runtime/gemm_simple.h"
#undef ATTENTION
#include "runtime/gemm_words_end.h"

/* ---- s32, u32: modulo 2^32 ---- */
#undef DEPTHWISE
#define K(x)        SET(hlort_u32_##x)
#define TW          uint32_t
#define TC          uint32_t
#define VW          SET(vu)
#define VC          SET(vu)
#define VWU         SET(vuu)
#define VCU         SET(vuu)
#define VL          (VECTOR_BYTES / 4)
#define KC          BLOCK_K
#define FUSED       0
#define IN_PLACE    0
#include "runtime/gemm_tile.h"
#define N(x)        SET(hlort_s32_##x)
#define TE          uint32_t
#define WIDEN(from) (*(const VCU *)(from))
#define WIDEN1(x)   (x)
#include "runtime/gemm_simple.h"

/* ---- s8 and u8, summed in 32 bits ---- */
typedef int8_t SET(vb) __attribute__((vector_size(VECTOR_BYTES / 4), aligned(1), may_alias));
typedef uint8_t SET(vub) __attribute__((vector_size(VECTOR_BYTES / 4), aligned(1), may_alias));
INLINE SET(vu) SET(hlort_from_s8)(const int8_t *from)
{
    return (SET(vu))__builtin_convertvector(__builtin_convertvector(*(const SET(vb) *)from, SET(vs)), SET(vi));
}
INLINE SET(vu) SET(hlort_from_u8)(const uint8_t *from)
{
    return __builtin_convertvector(__builtin_convertvector(*(const SET(vub) *)from, SET(vh)), SET(vu));
}
#ifdef MULTIPLY_PAIRS
/* Two products of s8 or u8 fit into a lane's sum. */
typedef int8_t SET(vbb) __attribute__((vector_size(VECTOR_BYTES / 2), aligned(1), may_alias));
typedef uint8_t SET(vubb) __attribute__((vector_size(VECTOR_BYTES / 2), aligned(1), may_alias));
typedef int16_t SET(vp) __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t SET(vup) __attribute__((vector_size(VECTOR_BYTES)));
#undef K
#undef MULTIPLY_ADD
#define K(x)                  SET(hlort_pair_##x)
#define MULTIPLY_ADD(c, a, b) ((c) + (VC)MULTIPLY_PAIRS((VW){ 0 } + (a), b))
#include "runtime/gemm_tile.h"
#endif
#define N(x)         SET(hlort_s8_##x)
#define TE           int8_t
#define WIDEN(from)  SET(hlort_from_s8)(from)
#define WIDEN1(x)    ((uint32_t)(int32_t)(x))
#ifdef MULTIPLY_PAIRS
#define WIDEN2(from) (VW)__builtin_convertvector(*(const SET(vbb) *)(from), SET(vp))
#include "runtime/gemm_pairs.h"
#else
#include "runtime/gemm_simple.h"
#endif
#define N(x)         SET(hlort_u8_##x)
#define TE           uint8_t
#define WIDEN(from)  SET(hlort_from_u8)(from)
#define WIDEN1(x)    ((uint32_t)(x))
#ifdef MULTIPLY_PAIRS
#define WIDEN2(from) (VW)__builtin_convertvector(*(const SET(vubb) *)(from), SET(vup))
#include "runtime/gemm_pairs.h"
#undef MULTIPLY_PAIRS
#else
#include "runtime/gemm_simple.h"
#endif
#include "runtime/gemm_words_end.h"
#undef MULTIPLY_ADD
#undef BEGUN
#undef A_WORDS
#undef B_WORDS
#undef FEW_BEGUN
#undef MULTIPLY_FEW
#undef LOAD_VECTORS

#include "runtime/scan_types.h"
#include "runtime/transpose_sizes.h"

extern const KernelSet SET(hlort);
const KernelSet SET(hlort) = {
    .name = HLORT_TEXT(HLORT_SET),
    .gemm = {
        [GEMM_F32] = SET(hlort_f32_gemm),
        [GEMM_F64] = SET(hlort_f64_gemm),
        [GEMM_BF16] = SET(hlort_bf16_gemm),
        [GEMM_BF16_F32] = SET(hlort_bf16_gemm),
        [GEMM_F16] = SET(hlort_f16_gemm),
        [GEMM_F16_F32] = SET(hlort_f16_gemm),
        [GEMM_S32] = SET(hlort_s32_gemm),
        [GEMM_S8_S32] = SET(hlort_s8_gemm),
        [GEMM_U8_S32] = SET(hlort_u8_gemm),
        [GEMM_C64] = SET(hlort_c64_gemm),
        [GEMM_C128] = SET(hlort_c128_gemm),
    },
    .attention = {
        [GEMM_F32] = &SET(hlort_f32_attention),
        [GEMM_BF16] = &SET(hlort_bf16_attention),
        [GEMM_BF16_F32] = &SET(hlort_bf16_attention),
        [GEMM_F16] = &SET(hlort_f16_attention),
        [GEMM_F16_F32] = &SET(hlort_f16_attention),
    },
    .depthwise = {
        [GEMM_F32] = SET(hlort_f32_run_pixels),
        [GEMM_F64] = SET(hlort_f64_run_pixels),
        [GEMM_BF16] = SET(hlort_bf16_run_pixels),
        [GEMM_BF16_F32] = SET(hlort_bf16_run_pixels),
        [GEMM_F16] = SET(hlort_f16_run_pixels),
        [GEMM_F16_F32] = SET(hlort_f16_run_pixels),
    },
    .winograd = SET(hlort_f32_winograd),
    .winograd_features = SET(hlort_f32_WF),
    .winograd_panel = SET(hlort_f32_NR),
    .winograd_terms = SET(hlort_f32_WK),
    .winograd_point = SET(hlort_f32_V_STEP),
    .walk = { &SET(hlort_f32_walk_kernels), &SET(hlort_f64_walk_kernels) },
    .fft = { SET(hlort_f32_fft_run), SET(hlort_f64_fft_run) },
    .narrow = { [GEMM_BF16] = SET(hlort_narrow_bf16), [GEMM_F16] = SET(hlort_narrow_f16) },
    .widen = { [GEMM_BF16] = SET(hlort_widen_bf16), [GEMM_BF16_F32] = SET(hlort_widen_bf16), [GEMM_F16] = SET(hlort_widen_f16), [GEMM_F16_F32] = SET(hlort_widen_f16) },
    .turn = { HLORT_PASTE(hlort_turn_any_1, HLORT_SET), HLORT_PASTE(hlort_turn_any_2, HLORT_SET), HLORT_PASTE(hlort_turn_any_4, HLORT_SET), HLORT_PASTE(hlort_turn_any_8, HLORT_SET), HLORT_PASTE(hlort_turn_any_16, HLORT_SET) },
    .grid = { HLORT_PASTE(hlort_turn_grid_1, HLORT_SET), HLORT_PASTE(hlort_turn_grid_2, HLORT_SET), HLORT_PASTE(hlort_turn_grid_4, HLORT_SET), HLORT_PASTE(hlort_turn_grid_8, HLORT_SET), HLORT_PASTE(hlort_turn_grid_16, HLORT_SET) },
    .runs = SET(hlort_runs),
    .scan = { &SET(hlort_scan_f32_kernels), &SET(hlort_scan_f64_kernels), &SET(hlort_scan_s32_kernels), &SET(hlort_scan_s64_kernels) },
    .scan_narrow = { { SET(hlort_scan_f16_add_lines), SET(hlort_scan_f16_multiply_lines), SET(hlort_scan_f16_minimum_lines), SET(hlort_scan_f16_maximum_lines) },
                     { SET(hlort_scan_bf16_add_lines), SET(hlort_scan_bf16_multiply_lines), SET(hlort_scan_bf16_minimum_lines), SET(hlort_scan_bf16_maximum_lines) } },
};

#include "runtime/gemm_set_end.h"
