/* Eight rows times one, as text, in vectors of 256 bits: their lanes are added up across the rows, three steps (f64: two) for all of them, where row by row there would be as many for each. The rest
 * of a row that fills no vector is half a one, or the last of the one that ends with the row. A value each has 8 lanes (f64: 4), whatever the vectors of the processor are. */
#ifndef EMIT_DOT_ROWS_TEXT_H
#define EMIT_DOT_ROWS_TEXT_H

#include "emit/lanes_text.h"

/* Without shuffles: WIDTH lanes of type T. */
#define ROWS_IN_LANES(T, WIDTH, JOINED) \
    "#else\n" \
    "    for (int r = 0; r < 8; r++) {\n" \
    "        " T " s[" WIDTH "] = { 0 };\n" \
    "        for (int64_t k = 0; k < n / " WIDTH " * " WIDTH "; k += " WIDTH ")\n" \
    "            for (int l = 0; l < " WIDTH "; l++)\n" \
    "                s[l] += a[r * row + k + l] * x[k + l];\n" \
    "        for (int64_t k = n / " WIDTH " * " WIDTH "; k < n; k++)\n" \
    "            s[k % " WIDTH "] += a[r * row + k] * x[k];\n" \
    "        to[r] = " JOINED ";\n" \
    "    }\n" \
    "#endif\n" \
    "}\n"

static const char dot_rows_f32_text[] =
    "void dot_rows_f32(float *to, const float *a, int64_t row, const float *x, int64_t n) /* 8 rows of n >= 8 numbers, each by x */\n{\n" LANES_IN_VECTORS
    "    typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));\n"
    "    typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));\n"
    "    typedef int w8 __attribute__((vector_size(32)));\n"
    "    v8 s[8];\n"
    "    for (int r = 0; r < 8; r++)\n"
    "        s[r] = *(const v8 *)(a + r * row) * *(const v8 *)x;\n"
    "    for (int64_t k = 8; k + 8 <= n; k += 8)\n"
    "        for (int r = 0; r < 8; r++)\n"
    "            s[r] += *(const v8 *)(a + r * row + k) * *(const v8 *)(x + k);\n"
    "    if (n % 8 == 4)\n"
    "        for (int r = 0; r < 8; r++) {\n"
    "            v4 y = *(const v4 *)(a + r * row + n - 4) * *(const v4 *)(x + n - 4);\n"
    "            s[r] += __builtin_shufflevector(y, (v4){ 0 }, 0, 1, 2, 3, 4, 5, 6, 7);\n"
    "        }\n"
    "    else if (n % 8) {\n"
    "        w8 rest = (w8){ 0, 1, 2, 3, 4, 5, 6, 7 } >= 8 - (int)(n % 8);\n"
    "        for (int r = 0; r < 8; r++)\n"
    "            s[r] += (v8)((w8)(*(const v8 *)(a + r * row + n - 8) * *(const v8 *)(x + n - 8)) & rest);\n"
    "    }\n"
    "    for (int m = 4; m > 1; m /= 2)\n"
    "        for (int r = 0; r < m; r++)\n"
    "            s[r] = __builtin_shufflevector(s[2 * r], s[2 * r + 1], 0, 2, 8, 10, 4, 6, 12, 14) + __builtin_shufflevector(s[2 * r], s[2 * r + 1], 1, 3, 9, 11, 5, 7, 13, 15);\n"
    "    *(v8 *)to = __builtin_shufflevector(s[0], s[1], 0, 1, 2, 3, 8, 9, 10, 11) + __builtin_shufflevector(s[0], s[1], 4, 5, 6, 7, 12, 13, 14, 15);\n"
    ROWS_IN_LANES("float", "8", "((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))");

static const char dot_rows_f64_text[] =
    "void dot_rows_f64(double *to, const double *a, int64_t row, const double *x, int64_t n) /* 8 rows of n >= 4 numbers, each by x */\n{\n" LANES_IN_VECTORS
    "    typedef double v4 __attribute__((vector_size(32), aligned(8), may_alias));\n"
    "    typedef double v2 __attribute__((vector_size(16), aligned(8), may_alias));\n"
    "    typedef int64_t w4 __attribute__((vector_size(32)));\n"
    "    v4 s[8];\n"
    "    for (int r = 0; r < 8; r++)\n"
    "        s[r] = *(const v4 *)(a + r * row) * *(const v4 *)x;\n"
    "    for (int64_t k = 4; k + 4 <= n; k += 4)\n"
    "        for (int r = 0; r < 8; r++)\n"
    "            s[r] += *(const v4 *)(a + r * row + k) * *(const v4 *)(x + k);\n"
    "    if (n % 4 == 2)\n"
    "        for (int r = 0; r < 8; r++) {\n"
    "            v2 y = *(const v2 *)(a + r * row + n - 2) * *(const v2 *)(x + n - 2);\n"
    "            s[r] += __builtin_shufflevector(y, (v2){ 0 }, 0, 1, 2, 3);\n"
    "        }\n"
    "    else if (n % 4) {\n"
    "        w4 rest = (w4){ 0, 1, 2, 3 } >= 4 - n % 4;\n"
    "        for (int r = 0; r < 8; r++)\n"
    "            s[r] += (v4)((w4)(*(const v4 *)(a + r * row + n - 4) * *(const v4 *)(x + n - 4)) & rest);\n"
    "    }\n"
    "    for (int r = 0; r < 4; r++)\n"
    "        s[r] = __builtin_shufflevector(s[2 * r], s[2 * r + 1], 0, 4, 2, 6) + __builtin_shufflevector(s[2 * r], s[2 * r + 1], 1, 5, 3, 7);\n"
    "    for (int r = 0; r < 2; r++)\n"
    "        *(v4 *)(to + 4 * r) = __builtin_shufflevector(s[2 * r], s[2 * r + 1], 0, 1, 4, 5) + __builtin_shufflevector(s[2 * r], s[2 * r + 1], 2, 3, 6, 7);\n"
    ROWS_IN_LANES("double", "4", "(s[0] + s[1]) + (s[2] + s[3])");

#endif
