/* Eight blocks of Philox4x32 as text, in vectors whose lanes are of 64 bits: a product of two halves is one instruction, whose operands' upper halves may hold anything. Compilers that make
 * vectors of the plain loop multiply whole lanes, three times the instructions, and sort words into halves and back. */
#ifndef EMIT_PHILOX_TEXT_H
#define EMIT_PHILOX_TEXT_H

#include "emit/lanes_text.h"

/* T: what words are stored as, one or two in each; NAME: the function; PLAIN: how the loop without vectors stores them. */
#define PHILOX_BLOCKS(T, NAME, PLAIN) \
    "void " NAME "(" T " *to, uint64_t key, uint64_t low, uint64_t high, int64_t first) /* 8 of them, from `first` on behind the counter */\n{\n" \
    LANES_ASKED \
    "#if defined HLO_LANES && defined __AVX2__\n" \
    "#if defined __AVX512F__\n" \
    "    enum { LANES = 8 };\n" \
    "    typedef uint64_t v __attribute__((vector_size(64)));\n" \
    "    typedef uint64_t any __attribute__((vector_size(64), aligned(4), may_alias));\n" \
    "    const v lane = { 0, 1, 2, 3, 4, 5, 6, 7 };\n" \
    "#else\n" \
    "    enum { LANES = 4 };\n" \
    "    typedef uint64_t v __attribute__((vector_size(32)));\n" \
    "    typedef uint64_t any __attribute__((vector_size(32), aligned(4), may_alias));\n" \
    "    const v lane = { 0, 1, 2, 3 };\n" \
    "#endif\n" \
    "    const v by0 = (v){ 0 } + 0xD2511F53u, by2 = (v){ 0 } + 0xCD9E8D57u;\n" \
    "    for (int64_t b = 0; b < 8; b += LANES) {\n" \
    "        v x0 = lane + (low + (uint64_t)(first + b)), x2 = high - (v)(x0 < (v){ 0 } + low), x1 = x0 >> 32, x3 = x2 >> 32, p, q; /* upper halves are anything */\n" \
    "        for (uint32_t r = 0; r < 10; r++) {\n" \
    "            __asm__(\"vpmuludq %2, %1, %0\" : \"=v\"(p) : \"v\"(by0), \"v\"(x0));\n" \
    "            __asm__(\"vpmuludq %2, %1, %0\" : \"=v\"(q) : \"v\"(by2), \"v\"(x2));\n" \
    "            x0 = q >> 32 ^ x1 ^ ((uint32_t)key + r * 0x9E3779B9u);\n" \
    "            x1 = q;\n" \
    "            x2 = p >> 32 ^ x3 ^ ((uint32_t)(key >> 32) + r * 0xBB67AE85u);\n" \
    "            x3 = p;\n" \
    "        }\n" \
    "        p = (x0 & 0xffffffffu) | x1 << 32, q = (x2 & 0xffffffffu) | x3 << 32;\n" \
    "        any *at = (any *)((uint32_t *)to + 4 * b);\n" \
    "#if defined __AVX512F__\n" \
    "        at[0] = __builtin_shufflevector(p, q, 0, 8, 1, 9, 2, 10, 3, 11), at[1] = __builtin_shufflevector(p, q, 4, 12, 5, 13, 6, 14, 7, 15);\n" \
    "#else\n" \
    "        at[0] = __builtin_shufflevector(p, q, 0, 4, 1, 5), at[1] = __builtin_shufflevector(p, q, 2, 6, 3, 7);\n" \
    "#endif\n" \
    "    }\n" \
    "#else\n" \
    "    for (int64_t b = 0; b < 8; b++) {\n" \
    "        uint64_t begin = low + (uint64_t)(first + b), above = high + (begin < low);\n" \
    "        uint32_t x0 = (uint32_t)begin, x1 = (uint32_t)(begin >> 32), x2 = (uint32_t)above, x3 = (uint32_t)(above >> 32);\n" \
    "        for (uint32_t r = 0; r < 10; r++) {\n" \
    "            uint64_t p = (uint64_t)0xD2511F53u * x0, q = (uint64_t)0xCD9E8D57u * x2;\n" \
    "            x0 = (uint32_t)(q >> 32) ^ x1 ^ ((uint32_t)key + r * 0x9E3779B9u);\n" \
    "            x1 = (uint32_t)q;\n" \
    "            x2 = (uint32_t)(p >> 32) ^ x3 ^ ((uint32_t)(key >> 32) + r * 0xBB67AE85u);\n" \
    "            x3 = (uint32_t)p;\n" \
    "        }\n" \
    PLAIN \
    "    }\n" \
    "#endif\n" \
    "}\n"

static const char philox_blocks_text[] = PHILOX_BLOCKS("uint32_t", "philox_blocks",
    "        to[4 * b] = x0, to[4 * b + 1] = x1, to[4 * b + 2] = x2, to[4 * b + 3] = x3;\n");

static const char philox_pairs_text[] = PHILOX_BLOCKS("uint64_t", "philox_pairs",
    "        to[2 * b] = x0 | (uint64_t)x1 << 32, to[2 * b + 1] = x2 | (uint64_t)x3 << 32;\n");

#endif
