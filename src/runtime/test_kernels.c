/* test_kernels.c - the vectors of v4 in whatever registers there are, so that they are tried on every machine. */
#define IN_REGISTER(x) (void)(x) /* they fill several */
#define HLORT_SET     wide
#define VECTOR_BYTES  64
#define TILE_ROWS     6
#define TILE_VECTORS  2
#define BLOCK_K       384
#define BLOCK_ROWS    72
#define BLOCK_COLUMNS 384
#include "runtime/gemm_types.h"

/* Narrow types in the same way: what the processor's instructions do, lane by lane. */
typedef float    Floats __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));

INLINE Floats multiply_bf16(Floats c, Words a, Words b)
{
    c += (Floats)(a & 0xffff0000) * (Floats)(b & 0xffff0000);
    return c + (Floats)(a << 16) * (Floats)(b << 16);
}

INLINE Words multiply_bytes(Words c, Words a, Words b)
{
    typedef int32_t Ints __attribute__((vector_size(64)));
    for (int g = 0; g < 32; g += 8)
        c += (a >> g & 0xff) * (Words)((Ints)(b << (24 - g)) >> 24);
    return c;
}

#define HLORT_SET      wide_n
#define VECTOR_BYTES   64
#define TILE_ROWS      6
#define TILE_VECTORS   2
#define BLOCK_K        384
#define BLOCK_ROWS     72
#define BLOCK_COLUMNS  384
#define REST           hlort_wide
#define BYTES_SET      wide_b
#define MULTIPLY_BF16  multiply_bf16
#define NARROW_BF16    hlort_to_bf16_wide_n
#define MULTIPLY_BYTES multiply_bytes
#include "runtime/gemm_narrow.h"
