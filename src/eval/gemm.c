/* c[r, j] += a[r, k] * b[k, j]: a panel of b, two vectors wide, is copied so that its rows follow each other, and stays in the first-level cache while all
 * rows of c pass it, four at a time in registers. Nothing is contracted: an element is the same whichever instructions the processor has. */
#include "eval/gemm.h"

#include <string.h>

#include "eval/arith.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("O3", "fp-contract=off")
#endif

enum { ROWS = 4, DEPTH = 256 };

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* depth rows of b [., n], of which a has columns [., lda] and c the rest. name_row: one row of c, any columns. */
#define GEMM(name, set, T, BYTES)                                                                                                  \
    set static void name##_row(int64_t n, const T *restrict a, const T *restrict b, int64_t ldb, T *restrict c, int64_t depth)      \
    {                                                                                                                               \
        for (int64_t k = 0; k < depth; k++)                                                                                         \
            for (int64_t j = 0; j < n; j++)                                                                                         \
                c[j] = c[j] + a[k] * b[k * ldb + j];                                                                                \
    }                                                                                                                               \
    set static void name##_rows(const T *restrict a, int64_t lda, const T *restrict panel, T *restrict c, int64_t ldc, int64_t depth) \
    {                                                                                                                               \
        enum { LANES = BYTES / sizeof(T) };                                                                                         \
        typedef T Vector __attribute__((vector_size(BYTES), aligned(8), may_alias));                                                \
        Vector sums[ROWS][2];                                                                                                       \
        for (int r = 0; r < ROWS; r++)                                                                                              \
            for (int v = 0; v < 2; v++)                                                                                             \
                sums[r][v] = *(const Vector *)(c + r * ldc + v * LANES);                                                            \
        for (int64_t k = 0; k < depth; k++) {                                                                                       \
            const Vector *x = (const Vector *)(panel + k * 2 * LANES);                                                              \
            for (int r = 0; r < ROWS; r++)                                                                                          \
                for (int v = 0; v < 2; v++)                                                                                         \
                    sums[r][v] = sums[r][v] + a[r * lda + k] * x[v];                                                                \
        }                                                                                                                           \
        for (int r = 0; r < ROWS; r++)                                                                                              \
            for (int v = 0; v < 2; v++)                                                                                             \
                *(Vector *)(c + r * ldc + v * LANES) = sums[r][v];                                                                  \
    }                                                                                                                               \
    set static void name(int64_t m, int64_t n, int64_t k, const T *a, const T *b, T *c)                                             \
    {                                                                                                                               \
        enum { COLUMNS = 2 * BYTES / sizeof(T) };                                                                                   \
        T       panel[DEPTH * COLUMNS];                                                                                             \
        int64_t whole = m - m % ROWS;                                                                                               \
        for (int64_t d = 0; d < k; d += DEPTH) {                                                                                    \
            int64_t depth = least(DEPTH, k - d), j = 0;                                                                             \
            for (; whole > 0 && j + COLUMNS <= n; j += COLUMNS) {                                                                   \
                for (int64_t x = 0; x < depth; x++)                                                                                 \
                    memcpy(panel + x * COLUMNS, b + (d + x) * n + j, sizeof(T) * COLUMNS);                                          \
                for (int64_t r = 0; r < whole; r += ROWS)                                                                           \
                    name##_rows(a + r * k + d, k, panel, c + r * n + j, n, depth);                                                  \
            }                                                                                                                       \
            for (int64_t r = 0; r < m; r++) {                                                                                       \
                int64_t first = r < whole ? j : 0;                                                                                  \
                name##_row(n - first, a + r * k + d, b + d * n + first, n, c + r * n + first, depth);                               \
            }                                                                                                                       \
        }                                                                                                                           \
    }

/* u64 wraps: the same bits for both signs. */
GEMM(f64_gemm_any, , double, 16)
GEMM(u64_gemm_any, , uint64_t, 16)
#ifdef __x86_64__
GEMM(f64_gemm_avx2, __attribute__((target("avx2"))), double, 32)
GEMM(f64_gemm_avx512, __attribute__((target("avx512f"))), double, 64)
#endif

static void f64_gemm(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        f64_gemm_avx512(m, n, k, a, b, c);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        f64_gemm_avx2(m, n, k, a, b, c);
        return;
    }
#endif
    f64_gemm_any(m, n, k, a, b, c);
}

/* Complex products are plain: no repair of infinities, as an optimized product has none. */
static void c128_gemm(int64_t m, int64_t n, int64_t k, const double *restrict a, const double *restrict b, double *restrict c)
{
    for (int64_t r = 0; r < m; r++)
        for (int64_t d = 0; d < k; d++) {
            double re = a[2 * (r * k + d)], im = a[2 * (r * k + d) + 1];
            const double *restrict x = b + 2 * d * n;
            double *restrict y = c + 2 * r * n;
            for (int64_t j = 0; j < n; j++) {
                y[2 * j] += re * x[2 * j] - im * x[2 * j + 1];
                y[2 * j + 1] += re * x[2 * j + 1] + im * x[2 * j];
            }
        }
}

static void pred_gemm(int64_t m, int64_t n, int64_t k, const uint8_t *restrict a, const uint8_t *restrict b, uint8_t *restrict c)
{
    for (int64_t r = 0; r < m; r++)
        for (int64_t d = 0; d < k; d++)
            for (int64_t j = 0; j < n && a[r * k + d]; j++)
                c[r * n + j] |= b[d * n + j];
}

Type product_type(Type t)
{
    if (type_is_float(t))
        return TYPE_F64;
    return type_is_complex(t) ? TYPE_C128 : domain_type(value_domain(t));
}

void eval_gemm(Type type, int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c)
{
    switch (type) {
    case TYPE_PRED: pred_gemm(m, n, k, a, b, c); return;
    case TYPE_S64: case TYPE_U64: u64_gemm_any(m, n, k, a, b, c); return;
    case TYPE_F64: f64_gemm(m, n, k, a, b, c); return;
    case TYPE_C128: c128_gemm(m, n, k, a, b, c); return;
    default: die("no matrix product in %s", type_name(type));
    }
}
