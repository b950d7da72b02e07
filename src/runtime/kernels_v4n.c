/* kernels_v4n.c - v4's narrow types where the processor has AVX512_BF16 and AVX512_VNNI; v4 has the others.
 *
 * vdpbf16ps rounds to the nearest after each of its products' sums, takes subnormal operands as zeros of their sign and makes subnormal results zeros, whatever the
 * control word says; NaN and infinities are as elsewhere. vpdpbusd, unlike vpdpbusds, does not saturate. Source: Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 2, under both names. They are written as assembly since compilers do not agree on the names and types of builtins.
 *
 * Intel's processors begin a vdpbf16ps every other cycle where they begin two multiply-adds of f32 in each: for those there is v4b, bytes alone (one thread of an Emerald Rapids:
 * 88 GFLOP/s and 179). */
#if defined(__x86_64__) && defined(HLORT_ONLY) && HLORT_ONLY != 4
#include "runtime/gemm.h"
const KernelSet hlort_v4n = { .name = "v4n" }, hlort_v4b = { .name = "v4b" };
#elif defined(__x86_64__)
#include "runtime/sets.h"

SET_BEGIN(SET_v4n)

#include "runtime/vec.h"

typedef float    Floats __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

INLINE Floats multiply_bf16(Floats c, Words a, Words b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}

INLINE Halves narrow_bf16(Floats x)
{
    Halves y;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"(x));
    return y;
}

INLINE Words multiply_bytes(Words c, Words a, Words b)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}

#define HLORT_SET      v4n
#define VECTOR_BYTES   64
#define TILE_ROWS      14
#define TILE_VECTORS   2
#define BLOCK_K        384
#define BLOCK_ROWS     112
#define BLOCK_COLUMNS  384
#define HALF_512
#define REST           hlort_v4
#define BYTES_SET      v4b
#define MULTIPLY_BF16  multiply_bf16
#define NARROW_BF16    narrow_bf16
#define MULTIPLY_BYTES multiply_bytes
#include "runtime/gemm_narrow.h"

SET_END
#endif
