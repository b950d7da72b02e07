/* sort_kernels.c - the sets of instructions of sort_kernels.h. They are small: all are compiled here. */
#include "runtime/sets.h"
#include "runtime/sort_kernels.h"
#include "runtime/vec.h"

#ifndef __clang__
#pragma GCC optimize("O3") /* loops over lines as vectors */
#endif

#ifdef __clang__
#define FOUR_TIMES _Pragma("unroll 4")
#else
#define FOUR_TIMES _Pragma("GCC unroll 4")
#endif

#define HLORT_SET    base
#define VECTOR_BYTES 16
#define MOST_RANKED  64
#include "runtime/sort_body.h"

#if defined(__x86_64__)
SET_BEGIN(SET_v2)
#define HLORT_SET    v2
#define VECTOR_BYTES 16
#define MOST_RANKED  64
#include "runtime/sort_body.h"
SET_END

SET_BEGIN(SET_v3)
#define HLORT_SET    v3
#define VECTOR_BYTES 32
#define MOST_RANKED  128
#include "runtime/sort_body.h"
SET_END

SET_BEGIN(SET_v4)
#define HLORT_SET    v4
#define VECTOR_BYTES 64
#define MOST_RANKED  128
#define RANKS        v3 /* whose comparisons leave vectors, not masks: half the time */
#include "runtime/sort_body.h"
SET_END
#endif

const SortKernels *hlort_sort_kernels(const KernelSet *s)
{
#if defined(__x86_64__)
    if (s == &hlort_v4n || s == &hlort_v4b || s == &hlort_v4)
        return &sort_kernels_v4;
    if (s == &hlort_v3)
        return &sort_kernels_v3;
    if (s == &hlort_v2)
        return &sort_kernels_v2;
#endif
    (void)s;
    return &sort_kernels_base;
}
