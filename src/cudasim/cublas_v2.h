/* As much of cuBLAS as emitted text uses beside cuBLASLt, on the CPU: triangular solves, by the routine of BLAS. In place of the toolkit's header of that name. */
#ifndef CUDASIM_CUBLAS_V2_H
#define CUDASIM_CUBLAS_V2_H

#include <cublasLt.h>

struct cuComplex { float x, y; };
struct cuDoubleComplex { double x, y; };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 };
struct cudasim_stream_of { cudaStream_t stream; };
typedef cudasim_stream_of *cublasHandle_t;

/* The arguments of a routine, one after the other. */
static inline cudasim_argument cudasim_text(char c) { return cudasim_argument{ CUDASIM_TEXT, c, nullptr, 0 }; }
static inline cudasim_argument cudasim_int(int64_t v) { return cudasim_argument{ CUDASIM_INT, v, nullptr, 0 }; }
static inline cudasim_argument cudasim_room(int64_t bytes) { return cudasim_argument{ CUDASIM_ROOM, bytes, nullptr, 0 }; }
template <typename T> static inline cudasim_argument cudasim_array(const T *p, int64_t n) { return cudasim_argument{ CUDASIM_ARRAY, n * (int64_t)sizeof *p, p, alignof(T) }; }
static inline int64_t cudasim_columns(int64_t ld, int64_t rows, int64_t cols) { return cols > 0 ? (cols - 1) * ld + rows : 0; }
template <typename T> static inline cudasim_argument cudasim_table(T *const *p, int64_t n) { return cudasim_argument{ CUDASIM_TABLE, n * (int64_t)sizeof(T), p, alignof(T) }; }
template <typename T> static inline cudasim_argument cudasim_each(const T *p) { return cudasim_argument{ CUDASIM_EACH, sizeof(T), p, alignof(T) }; }
template <typename... Rest> static inline cudaError_t cudasim_fortran_batch(const char *symbol, int64_t calls, cudaStream_t s, Rest... rest)
{
    const cudasim_argument all[] = { rest... };
    return cudasim_enqueue_fortran_batch(symbol, calls, all, sizeof all / sizeof all[0], s);
}
template <typename... Rest> static inline cudaError_t cudasim_fortran(const char *symbol, cudaStream_t s, Rest... rest)
{
    const cudasim_argument all[] = { rest... };
    return cudasim_enqueue_fortran(symbol, all, sizeof all / sizeof all[0], s);
}

static inline cublasStatus_t cublasCreate_v2(cublasHandle_t *h)
{
    return cudasim_has_library("cusolver") ? cudasim_made(h, cudasim_stream_of{ nullptr }) : CUBLAS_STATUS_NOT_INITIALIZED;
}
static inline cublasStatus_t cublasDestroy_v2(cublasHandle_t h) { free(h); return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t s)
{
    h->stream = s;
    return CUBLAS_STATUS_SUCCESS;
}

static inline char cudasim_side(cublasSideMode_t x) { return x == CUBLAS_SIDE_LEFT ? 'L' : 'R'; }
static inline char cudasim_uplo(cublasFillMode_t x) { return x == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U'; }
static inline char cudasim_operation(cublasOperation_t x) { return x == CUBLAS_OP_N ? 'N' : x == CUBLAS_OP_T ? 'T' : 'C'; }

template <typename T> static inline cublasStatus_t cudasim_trsm(const char *symbol, cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,
                                                               cublasDiagType_t diag, int m, int n, const T *alpha, cudasim_argument a, int lda, cudasim_argument b, int ldb, int count)
{
    const int k = side == CUBLAS_SIDE_LEFT ? m : n;
    const T   one = { 1 };
    if (m < 0 || n < 0 || lda < k || ldb < m || memcmp(alpha, &one, sizeof one) != 0) /* emitted text does not scale */
        return CUBLAS_STATUS_INVALID_VALUE;
    return cudasim_fortran_batch(symbol, count, h->stream, cudasim_text(cudasim_side(side)), cudasim_text(cudasim_uplo(uplo)), cudasim_text(cudasim_operation(trans)),
                           cudasim_text(diag == CUBLAS_DIAG_UNIT ? 'U' : 'N'), cudasim_int(m), cudasim_int(n),
                           cudasim_argument{ CUDASIM_ONE, alignof(T) == alignof(float), nullptr, 0 },
                                 a, cudasim_int(lda), b, cudasim_int(ldb))
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}
#define CUDASIM_TRSM(name, symbol, T)                                                                                                                                   \
    static inline cublasStatus_t name##_v2(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, int m, int n, \
                                           const T *alpha, const T *a, int lda, T *b, int ldb)                                                                          \
    {                                                                                                                                                                   \
        const int k = side == CUBLAS_SIDE_LEFT ? m : n;                                                                                                                 \
        return cudasim_trsm(symbol, h, side, uplo, trans, diag, m, n, alpha, cudasim_array(a, cudasim_columns(lda, k, k)), lda,                                         \
                            cudasim_array(b, cudasim_columns(ldb, m, n)), ldb, 1);                                                                                      \
    }                                                                                                                                                                   \
    static inline cublasStatus_t name##Batched(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, int m,   \
                                               int n, const T *alpha, const T *const *a, int lda, T *const *b, int ldb, int count)                                      \
    {                                                                                                                                                                   \
        const int k = side == CUBLAS_SIDE_LEFT ? m : n;                                                                                                                 \
        return cudasim_trsm(symbol, h, side, uplo, trans, diag, m, n, alpha, cudasim_table(a, cudasim_columns(lda, k, k)), lda,                                         \
                            cudasim_table(b, cudasim_columns(ldb, m, n)), ldb, count);                                                                                  \
    }
CUDASIM_TRSM(cublasStrsm, "strsm_", float)
CUDASIM_TRSM(cublasDtrsm, "dtrsm_", double)
CUDASIM_TRSM(cublasCtrsm, "ctrsm_", cuComplex)
CUDASIM_TRSM(cublasZtrsm, "ztrsm_", cuDoubleComplex)
#undef CUDASIM_TRSM

#endif
