/* Rows to columns, to[j * rows + r] = from[r * stride + j], and back, to[r * stride + j] = from[j * rows + r], for j < n, r < rows: pieces of four columns (two of 64 bits) are turned in
 * vectors. The last piece ends where the rows end and may overlap the one before. n is at least 4, rows a multiple of 8. 300000 floats in rows of 24: 18 us, as loops 55. */
#ifndef EMIT_TURNING_TEXT_H
#define EMIT_TURNING_TEXT_H

#define TURN_VECTORS "#if defined __has_builtin\n#if __has_builtin(__builtin_shufflevector)\n#define HLO_LANES\n#endif\n#endif\n#if defined HLO_LANES\n"
#define TURN_PIECES(width) "        for (int64_t j = 0;; j = j + 2 * " width " <= n ? j + " width " : n - " width ") {\n"
/* What lies behind is the next block of rows. */
#define TURN_FETCH(type) \
    "    for (int64_t k = 0; stride < 2 * n && k < rows * stride * (int64_t)sizeof(" type "); k += 64)\n" \
    "        __builtin_prefetch((const char *)(from) + rows * stride * (int64_t)sizeof(" type ") + k, 0, 2);\n"
#define TURN_NEXT(width) "            if (j + " width " >= n)\n                break;\n        }\n"
#define TURN_LOOPS(type, to, from) \
    "#else\n    for (int64_t r = 0; r < rows; r++)\n        for (int64_t j = 0; j < n; j++)\n" \
    "            ((" type " *)to)[" to "] = ((const " type " *)from)[" from "];\n#endif\n}\n"
#define TURN_SHUFFLE(to, a, b, places) "            " to " = __builtin_shufflevector(" a ", " b ", " places ");\n"

/* Four vectors p of a row in each half (rows r and r + 4, ...) to four q of a column, and the other way. */
#define TURN_8 \
    TURN_SHUFFLE("q[0]", "p[0]", "p[1]", "0, 8, 1, 9, 4, 12, 5, 13") TURN_SHUFFLE("q[1]", "p[0]", "p[1]", "2, 10, 3, 11, 6, 14, 7, 15") \
    TURN_SHUFFLE("q[2]", "p[2]", "p[3]", "0, 8, 1, 9, 4, 12, 5, 13") TURN_SHUFFLE("q[3]", "p[2]", "p[3]", "2, 10, 3, 11, 6, 14, 7, 15") \
    TURN_SHUFFLE("p[0]", "q[0]", "q[2]", "0, 1, 8, 9, 4, 5, 12, 13") TURN_SHUFFLE("p[1]", "q[0]", "q[2]", "2, 3, 10, 11, 6, 7, 14, 15") \
    TURN_SHUFFLE("p[2]", "q[1]", "q[3]", "0, 1, 8, 9, 4, 5, 12, 13") TURN_SHUFFLE("p[3]", "q[1]", "q[3]", "2, 3, 10, 11, 6, 7, 14, 15")
#define TURN_4 \
    TURN_SHUFFLE("q[0]", "p[0]", "p[1]", "0, 4, 1, 5") TURN_SHUFFLE("q[1]", "p[0]", "p[1]", "2, 6, 3, 7") \
    TURN_SHUFFLE("q[2]", "p[2]", "p[3]", "0, 4, 1, 5") TURN_SHUFFLE("q[3]", "p[2]", "p[3]", "2, 6, 3, 7") \
    TURN_SHUFFLE("p[0]", "q[0]", "q[2]", "0, 1, 4, 5") TURN_SHUFFLE("p[1]", "q[0]", "q[2]", "2, 3, 6, 7") \
    TURN_SHUFFLE("p[2]", "q[1]", "q[3]", "0, 1, 4, 5") TURN_SHUFFLE("p[3]", "q[1]", "q[3]", "2, 3, 6, 7")

static const char rows_to_columns_32_text[] =
    "void rows_to_columns_32(void *to, const void *from, int64_t stride, int64_t n, int64_t rows)\n{\n" TURN_VECTORS
    "    typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));\n"
    "    float       *t = to;\n    const float *f = from;\n"
    TURN_FETCH("float")
    "#if defined __AVX__\n    typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));\n"
    "    for (int64_t r = 0; r < rows; r += 8)\n" TURN_PIECES("4")
    "            v8 p[4], q[4];\n            for (int k = 0; k < 4; k++) {\n"
    "                v4 a = *(const v4 *)(f + (r + k) * stride + j), b = *(const v4 *)(f + (r + k + 4) * stride + j);\n"
    "                p[k] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);\n            }\n" TURN_8
    "            for (int k = 0; k < 4; k++)\n                *(v8 *)(t + (j + k) * rows + r) = p[k];\n" TURN_NEXT("4")
    "#else\n    for (int64_t r = 0; r < rows; r += 4)\n" TURN_PIECES("4")
    "            v4 p[4], q[4];\n            for (int k = 0; k < 4; k++)\n                p[k] = *(const v4 *)(f + (r + k) * stride + j);\n" TURN_4
    "            for (int k = 0; k < 4; k++)\n                *(v4 *)(t + (j + k) * rows + r) = p[k];\n" TURN_NEXT("4")
    "#endif\n" TURN_LOOPS("uint32_t", "j * rows + r", "r * stride + j");

static const char columns_to_rows_32_text[] =
    "void columns_to_rows_32(void *to, const void *from, int64_t stride, int64_t n, int64_t rows)\n{\n" TURN_VECTORS
    "    typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));\n"
    "    float       *t = to;\n    const float *f = from;\n"
    "#if defined __AVX__\n    typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));\n"
    "    for (int64_t r = 0; r < rows; r += 8)\n" TURN_PIECES("4")
    "            v8 p[4], q[4];\n            for (int k = 0; k < 4; k++)\n                p[k] = *(const v8 *)(f + (j + k) * rows + r);\n" TURN_8
    "            for (int k = 0; k < 4; k++) {\n                *(v4 *)(t + (r + k) * stride + j) = __builtin_shufflevector(p[k], p[k], 0, 1, 2, 3);\n"
    "                *(v4 *)(t + (r + k + 4) * stride + j) = __builtin_shufflevector(p[k], p[k], 4, 5, 6, 7);\n            }\n" TURN_NEXT("4")
    "#else\n    for (int64_t r = 0; r < rows; r += 4)\n" TURN_PIECES("4")
    "            v4 p[4], q[4];\n            for (int k = 0; k < 4; k++)\n                p[k] = *(const v4 *)(f + (j + k) * rows + r);\n" TURN_4
    "            for (int k = 0; k < 4; k++)\n                *(v4 *)(t + (r + k) * stride + j) = p[k];\n" TURN_NEXT("4")
    "#endif\n" TURN_LOOPS("uint32_t", "r * stride + j", "j * rows + r");

static const char rows_to_columns_64_text[] =
    "void rows_to_columns_64(void *to, const void *from, int64_t stride, int64_t n, int64_t rows)\n{\n" TURN_VECTORS
    "    typedef double v2 __attribute__((vector_size(16), aligned(8), may_alias));\n"
    "    double       *t = to;\n    const double *f = from;\n"
    TURN_FETCH("double")
    "    for (int64_t r = 0; r < rows; r += 2)\n" TURN_PIECES("2")
    "            v2 a = *(const v2 *)(f + r * stride + j), b = *(const v2 *)(f + (r + 1) * stride + j);\n"
    "            *(v2 *)(t + j * rows + r) = __builtin_shufflevector(a, b, 0, 2);\n"
    "            *(v2 *)(t + (j + 1) * rows + r) = __builtin_shufflevector(a, b, 1, 3);\n" TURN_NEXT("2")
    TURN_LOOPS("uint64_t", "j * rows + r", "r * stride + j");

static const char columns_to_rows_64_text[] =
    "void columns_to_rows_64(void *to, const void *from, int64_t stride, int64_t n, int64_t rows)\n{\n" TURN_VECTORS
    "    typedef double v2 __attribute__((vector_size(16), aligned(8), may_alias));\n"
    "    double       *t = to;\n    const double *f = from;\n"
    "    for (int64_t r = 0; r < rows; r += 2)\n" TURN_PIECES("2")
    "            v2 a = *(const v2 *)(f + j * rows + r), b = *(const v2 *)(f + (j + 1) * rows + r);\n"
    "            *(v2 *)(t + r * stride + j) = __builtin_shufflevector(a, b, 0, 2);\n"
    "            *(v2 *)(t + (r + 1) * stride + j) = __builtin_shufflevector(a, b, 1, 3);\n" TURN_NEXT("2")
    TURN_LOOPS("uint64_t", "r * stride + j", "j * rows + r");

/* Eight rows of four columns; the other way four columns of eight rows. */
static const char rows_to_columns_16_text[] =
    "void rows_to_columns_16(void *to, const void *from, int64_t stride, int64_t n, int64_t rows)\n{\n" TURN_VECTORS
    "    typedef uint16_t v4 __attribute__((vector_size(8), aligned(2), may_alias));\n    typedef uint16_t v8 __attribute__((vector_size(16), aligned(2), may_alias));\n"
    "    uint16_t       *t = to;\n    const uint16_t *f = from;\n"
    TURN_FETCH("uint16_t")
    "    for (int64_t r = 0; r < rows; r += 8)\n" TURN_PIECES("4")
    "            v8 p[4], q[4];\n            for (int k = 0; k < 4; k++) {\n"
    "                v4 a = *(const v4 *)(f + (r + 2 * k) * stride + j), b = *(const v4 *)(f + (r + 2 * k + 1) * stride + j);\n"
    "                p[k] = __builtin_shufflevector(a, b, 0, 4, 1, 5, 2, 6, 3, 7);\n            }\n"
    TURN_SHUFFLE("q[0]", "p[0]", "p[1]", "0, 1, 8, 9, 2, 3, 10, 11") TURN_SHUFFLE("q[1]", "p[0]", "p[1]", "4, 5, 12, 13, 6, 7, 14, 15")
    TURN_SHUFFLE("q[2]", "p[2]", "p[3]", "0, 1, 8, 9, 2, 3, 10, 11") TURN_SHUFFLE("q[3]", "p[2]", "p[3]", "4, 5, 12, 13, 6, 7, 14, 15")
    "            for (int k = 0; k < 2; k++) {\n"
    "                *(v8 *)(t + (j + 2 * k) * rows + r) = __builtin_shufflevector(q[k], q[k + 2], 0, 1, 2, 3, 8, 9, 10, 11);\n"
    "                *(v8 *)(t + (j + 2 * k + 1) * rows + r) = __builtin_shufflevector(q[k], q[k + 2], 4, 5, 6, 7, 12, 13, 14, 15);\n            }\n" TURN_NEXT("4")
    TURN_LOOPS("uint16_t", "j * rows + r", "r * stride + j");

static const char columns_to_rows_16_text[] =
    "void columns_to_rows_16(void *to, const void *from, int64_t stride, int64_t n, int64_t rows)\n{\n" TURN_VECTORS
    "    typedef uint16_t v4 __attribute__((vector_size(8), aligned(2), may_alias));\n    typedef uint16_t v8 __attribute__((vector_size(16), aligned(2), may_alias));\n"
    "    uint16_t       *t = to;\n    const uint16_t *f = from;\n"
    "    for (int64_t r = 0; r < rows; r += 8)\n" TURN_PIECES("4")
    "            v8 p[4], q[4];\n            for (int k = 0; k < 4; k++)\n                p[k] = *(const v8 *)(f + (j + k) * rows + r);\n"
    TURN_SHUFFLE("q[0]", "p[0]", "p[1]", "0, 8, 1, 9, 2, 10, 3, 11") TURN_SHUFFLE("q[1]", "p[0]", "p[1]", "4, 12, 5, 13, 6, 14, 7, 15")
    TURN_SHUFFLE("q[2]", "p[2]", "p[3]", "0, 8, 1, 9, 2, 10, 3, 11") TURN_SHUFFLE("q[3]", "p[2]", "p[3]", "4, 12, 5, 13, 6, 14, 7, 15")
    TURN_SHUFFLE("p[0]", "q[0]", "q[2]", "0, 1, 8, 9, 2, 3, 10, 11") TURN_SHUFFLE("p[1]", "q[0]", "q[2]", "4, 5, 12, 13, 6, 7, 14, 15")
    TURN_SHUFFLE("p[2]", "q[1]", "q[3]", "0, 1, 8, 9, 2, 3, 10, 11") TURN_SHUFFLE("p[3]", "q[1]", "q[3]", "4, 5, 12, 13, 6, 7, 14, 15")
    "            for (int k = 0; k < 4; k++) {\n                *(v4 *)(t + (r + 2 * k) * stride + j) = __builtin_shufflevector(p[k], p[k], 0, 1, 2, 3);\n"
    "                *(v4 *)(t + (r + 2 * k + 1) * stride + j) = __builtin_shufflevector(p[k], p[k], 4, 5, 6, 7);\n            }\n" TURN_NEXT("4")
    TURN_LOOPS("uint16_t", "r * stride + j", "j * rows + r");

/* Pieces of some bytes from the last one on: those that a vector holds are turned round by one shuffle of bytes, whose rest the next vector overwrites. (64 lines of 64 pixels of three floats
 * 1.9 and 0.7 us on one thread of Zen 5.) */
#define PIECES_OF(bytes, lanes) \
    "    typedef uint8_t v __attribute__((vector_size(" bytes "), aligned(1), may_alias));\n" \
    "    const v       lane = { " lanes " }, at = lane + (uint8_t)(" bytes " - size) - lane / (uint8_t)size * (uint8_t)(2 * size);\n" \
    "    const int64_t step = " bytes " / size * size;\n" \
    "    for (; 2 * size <= " bytes " && left >= " bytes "; left -= step, t += step, f -= step)\n        *(v *)t = __builtin_shuffle(*(const v *)(f - " bytes "), at);\n"
#define TENS(d) d "0, " d "1, " d "2, " d "3, " d "4, " d "5, " d "6, " d "7, " d "8, " d "9"

static const char pieces_backwards_text[] =
    "void pieces_block_backwards(void *to, const void *from, int64_t size, int64_t n)\n{\n"
    "    char       *t = to;\n    const char *f = (const char *)from + n * size;\n    int64_t     left = n * size;\n"
    "#if defined __AVX512VBMI__ && defined __GNUC__ && !defined __clang__\n"
    PIECES_OF("64", TENS("") ", " TENS("1") ", " TENS("2") ", " TENS("3") ", " TENS("4") ", " TENS("5") ", 60, 61, 62, 63")
    "    typedef char w __attribute__((vector_size(64)));\n"
    "    for (; 2 * size <= 64 && left > 0; left -= step, t += step, f -= step) {\n"
    "        const int64_t more = left < step ? left : step;\n"
    "        const v       last = (v)__builtin_ia32_loaddquqi512_mask(f - 64, (w){ 0 }, ~0ull << (64 - more));\n"
    "        __builtin_ia32_storedquqi512_mask(t, (w)__builtin_shuffle(last, at), ~0ull >> (64 - more));\n    }\n"
    "#elif defined __SSSE3__ && defined __GNUC__ && !defined __clang__\n"
    PIECES_OF("16", TENS("") ", 10, 11, 12, 13, 14, 15")
    "#endif\n"
    "    for (; left > 0; left -= size, t += size, f -= size)\n        for (int64_t k = 0; k < size; k++)\n            t[k] = f[k - size];\n}\n";

#endif
