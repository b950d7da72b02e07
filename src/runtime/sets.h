/* sets.h - the sets of instructions beyond what the compiler's options allow, by their names in x86-64's levels.
 *
 * SET_BEGIN(SET_v3) ... SET_END: the functions between them may use that set. They stand outside functions. */
#ifndef HLORT_SETS_H
#define HLORT_SETS_H

#define SET_v2  "sse4.2,ssse3,popcnt"
#define SET_v3  "avx2,fma,f16c,bmi,bmi2"
#define SET_v4  "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c,bmi,bmi2"
#define SET_v4n "avx512f,avx512vl,avx512bw,avx512dq,avx512bf16,avx512vnni,avx2,fma,f16c,bmi,bmi2"

#define SET_PRAGMA(a) _Pragma(#a)
#ifdef __clang__
#define SET_BEGIN(features) SET_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define SET_END             SET_PRAGMA(clang attribute pop)
#else
#define SET_BEGIN(features) SET_PRAGMA(GCC push_options) SET_PRAGMA(GCC target(features))
#define SET_END             SET_PRAGMA(GCC pop_options)
#endif

#endif
