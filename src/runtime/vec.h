/* vec.h - how the kernels are written: GNU C vectors, no header of intrinsics.
 *
 * A file of kernels is compiled once for each set of instructions. It sets VECTOR_BYTES and HLORT_SET (v2, v3, v4, base), and every name that it
 * defines goes through SET(name), so that all of them can stand in one translation unit. */
#ifndef HLORT_VEC_H
#define HLORT_VEC_H

#include <stdint.h>

#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed to functions that are always inline, and so never passed */

#define HLORT_PASTE_(a, b) a##_##b
#define HLORT_PASTE(a, b)  HLORT_PASTE_(a, b)

#define HLORT_TEXT_(a)     #a
#define HLORT_TEXT(a)      HLORT_TEXT_(a)

#define INLINE static inline __attribute__((always_inline))
#define APART  static __attribute__((noinline))
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("nounroll")
#else
#define UNROLL _Pragma("GCC unroll 64")
#define ROLLED _Pragma("GCC unroll 1")
#endif

/* A vector that several products read is loaded once: compilers would read it again in each of them. Who has vectors that no register holds says otherwise. */
#if defined(IN_REGISTER)
#elif defined(__x86_64__)
#define IN_REGISTER(x) __asm__("" : "+v"(x))
#elif defined(__aarch64__)
#define IN_REGISTER(x) __asm__("" : "+w"(x))
#else
#define IN_REGISTER(x) (void)(x)
#endif

INLINE int64_t hlort_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

INLINE int64_t hlort_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

INLINE int64_t hlort_ceildiv(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* Size of each of the fewest parts of n that have at most `most`, as a multiple of unit (which divides most). */
INLINE int64_t hlort_even(int64_t n, int64_t most, int64_t unit)
{
    int64_t parts = hlort_ceildiv(n, most);
    return parts == 0 ? most : hlort_min(most, hlort_ceildiv(hlort_ceildiv(n, parts), unit) * unit);
}

#endif
