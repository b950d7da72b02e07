/* Four rows of c take two rows of b at a time:  c[r, j] += a[r, k] * b[k, j] + a[r, k+1] * b[k+1, j].
 * b is visited in panels of COLUMNS by DEPTH elements that stay in the second-level cache while all rows of c pass. */
#include "eval/gemm.h"

#include "eval/arith.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#define COLUMNS 256
#define DEPTH   64

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

#define GEMM(S, T)                                                                                                              \
    static void S##_four_rows(int64_t n, int64_t ldc, const T *restrict a, int64_t lda, const T *restrict b, int64_t ldb,       \
                              T *restrict c, int64_t depth)                                                                     \
    {                                                                                                                           \
        T *restrict c0 = c, *restrict c1 = c + ldc, *restrict c2 = c + 2 * ldc, *restrict c3 = c + 3 * ldc;                     \
        const T *a0 = a, *a1 = a + lda, *a2 = a + 2 * lda, *a3 = a + 3 * lda;                                                   \
        int64_t k = 0;                                                                                                          \
        for (; k + 1 < depth; k += 2) {                                                                                         \
            const T *restrict b0 = b + k * ldb, *restrict b1 = b0 + ldb;                                                        \
            T p0 = a0[k], p1 = a1[k], p2 = a2[k], p3 = a3[k], q0 = a0[k + 1], q1 = a1[k + 1], q2 = a2[k + 1], q3 = a3[k + 1];   \
            for (int64_t j = 0; j < n; j++) {                                                                                   \
                T x = b0[j], y = b1[j];                                                                                         \
                c0[j] = c0[j] + p0 * x + q0 * y;                                                                                \
                c1[j] = c1[j] + p1 * x + q1 * y;                                                                                \
                c2[j] = c2[j] + p2 * x + q2 * y;                                                                                \
                c3[j] = c3[j] + p3 * x + q3 * y;                                                                                \
            }                                                                                                                   \
        }                                                                                                                       \
        for (; k < depth; k++)                                                                                                  \
            for (int64_t j = 0; j < n; j++) {                                                                                   \
                T x = b[k * ldb + j];                                                                                           \
                c0[j] = c0[j] + a0[k] * x;                                                                                      \
                c1[j] = c1[j] + a1[k] * x;                                                                                      \
                c2[j] = c2[j] + a2[k] * x;                                                                                      \
                c3[j] = c3[j] + a3[k] * x;                                                                                      \
            }                                                                                                                   \
    }                                                                                                                           \
    static void S##_row(int64_t n, const T *restrict a, const T *restrict b, int64_t ldb, T *restrict c, int64_t depth)         \
    {                                                                                                                           \
        for (int64_t k = 0; k < depth; k++)                                                                                     \
            for (int64_t j = 0; j < n; j++)                                                                                     \
                c[j] = c[j] + a[k] * b[k * ldb + j];                                                                            \
    }                                                                                                                           \
    static void S##_gemm(int64_t m, int64_t n, int64_t k, const T *a, const T *b, T *c)                                         \
    {                                                                                                                           \
        for (int64_t j = 0; j < n; j += COLUMNS)                                                                                \
            for (int64_t d = 0; d < k; d += DEPTH) {                                                                            \
                int64_t columns = least(COLUMNS, n - j), depth = least(DEPTH, k - d), r = 0;                                    \
                for (; r + 4 <= m; r += 4)                                                                                      \
                    S##_four_rows(columns, n, a + r * k + d, k, b + d * n + j, n, c + r * n + j, depth);                        \
                for (; r < m; r++)                                                                                              \
                    S##_row(columns, a + r * k + d, b + d * n + j, n, c + r * n + j, depth);                                    \
            }                                                                                                                   \
    }

GEMM(f64, double)
GEMM(u64, uint64_t) /* wraps: the same bits for both signs */

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
    case TYPE_S64: case TYPE_U64: u64_gemm(m, n, k, a, b, c); return;
    case TYPE_F64: f64_gemm(m, n, k, a, b, c); return;
    case TYPE_C128: c128_gemm(m, n, k, a, b, c); return;
    default: die("no matrix product in %s", type_name(type));
    }
}
