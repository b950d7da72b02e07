/* As much of cuSOLVER as emitted text uses, on the CPU: each routine is LAPACK's of that name, which the library of the system does when its turn comes (cudasim_enqueue_fortran). In place
 * of the toolkit's header of that name. What the library asks of sizes is asked here, too. */
#ifndef CUDASIM_CUSOLVERDN_H
#define CUDASIM_CUSOLVERDN_H

#include <cublas_v2.h>

#define HLO_CUSOLVER_IS_LINKED 1
#define CUSOLVER_VERSION 12004

enum cusolverStatus_t { CUSOLVER_STATUS_SUCCESS = 0, CUSOLVER_STATUS_NOT_INITIALIZED = 1, CUSOLVER_STATUS_INVALID_VALUE = 3, CUSOLVER_STATUS_EXECUTION_FAILED = 6 };
enum cusolverEigMode_t { CUSOLVER_EIG_MODE_NOVECTOR = 0, CUSOLVER_EIG_MODE_VECTOR = 1 };
typedef cudasim_stream_of *cusolverDnHandle_t;

static inline cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *h)
{
    return cudasim_has_library("cusolver") && !cudasim_made(h, cudasim_stream_of{ nullptr }) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}
static inline cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t h) { free(h); return CUSOLVER_STATUS_SUCCESS; }
static inline cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t h, cudaStream_t s)
{
    h->stream = s;
    return CUSOLVER_STATUS_SUCCESS;
}

/* Working memory is written over, so that its size shows; what LAPACK needs it gets elsewhere. */
static inline int cudasim_work_for(int64_t n) { return (int)(n > 0 ? 3 * n + 1 : 1); }
template <typename T, typename... Rest>
static inline cusolverStatus_t cudasim_solve(cusolverDnHandle_t h, const char *symbol, bool good, T *work, int64_t n_work, Rest... rest)
{
    if (!good)
        return CUSOLVER_STATUS_INVALID_VALUE;
    return cudasim_enqueue_set(work, 0xff, (size_t)n_work * sizeof *work, h->stream) || cudasim_fortran(symbol, h->stream, rest...) ? CUSOLVER_STATUS_EXECUTION_FAILED
                                                                                                                                  : CUSOLVER_STATUS_SUCCESS;
}
static inline cusolverStatus_t cudasim_asked(int *room, bool good, int64_t n)
{
    *room = cudasim_work_for(n);
    return good ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}
enum { CUDASIM_BLOCK = 64 }; /* LAPACK's blocks are not wider */

#define CUDASIM_SOLVER(X, x, T, R, o, sy, he, complex)                                                                                                                    \
    static inline cusolverStatus_t cusolverDn##X##potrf_bufferSize(cusolverDnHandle_t, cublasFillMode_t, int n, T *, int lda, int *room)                                \
    {                                                                                                                                                                   \
        return cudasim_asked(room, lda >= n, n);                                                                                                                        \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##potrf(cusolverDnHandle_t h, cublasFillMode_t uplo, int n, T *a, int lda, T *work, int room, int *info)                \
    {                                                                                                                                                                   \
        return cudasim_solve(h, #x "potrf_", room >= cudasim_work_for(n), work, room, cudasim_text(cudasim_uplo(uplo)), cudasim_int(n),                                 \
                             cudasim_array(a, cudasim_columns(lda, n, n)), cudasim_int(lda), cudasim_array(info, 1));                                                   \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##potrfBatched(cusolverDnHandle_t h, cublasFillMode_t uplo, int n, T *a[], int lda, int *info, int count)                \
    {                                                                                                                                                                   \
        return cudasim_fortran_batch(#x "potrf_", count, h->stream, cudasim_text(cudasim_uplo(uplo)), cudasim_int(n), cudasim_table(a, cudasim_columns(lda, n, n)),     \
                                     cudasim_int(lda), cudasim_each(info))                                                                                              \
                   ? CUSOLVER_STATUS_EXECUTION_FAILED                                                                                                                   \
                   : CUSOLVER_STATUS_SUCCESS;                                                                                                                           \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##getrf_bufferSize(cusolverDnHandle_t, int m, int n, T *, int lda, int *room)                                           \
    {                                                                                                                                                                   \
        return cudasim_asked(room, lda >= m, n);                                                                                                                        \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##getrf(cusolverDnHandle_t h, int m, int n, T *a, int lda, T *work, int *pivots, int *info)                             \
    {                                                                                                                                                                   \
        return cudasim_solve(h, #x "getrf_", true, work, cudasim_work_for(n), cudasim_int(m), cudasim_int(n), cudasim_array(a, cudasim_columns(lda, m, n)),             \
                             cudasim_int(lda), cudasim_array(pivots, m < n ? m : n), cudasim_array(info, 1));                                                           \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##geqrf_bufferSize(cusolverDnHandle_t, int m, int n, T *, int lda, int *room)                                           \
    {                                                                                                                                                                   \
        return cudasim_asked(room, lda >= m, n);                                                                                                                        \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##geqrf(cusolverDnHandle_t h, int m, int n, T *a, int lda, T *tau, T *work, int room, int *info)                        \
    {                                                                                                                                                                   \
        return cudasim_solve(h, #x "geqrf_", room >= cudasim_work_for(n), work, room, cudasim_int(m), cudasim_int(n), cudasim_array(a, cudasim_columns(lda, m, n)),     \
                             cudasim_int(lda), cudasim_array(tau, m < n ? m : n), cudasim_room((int64_t)sizeof(T) * CUDASIM_BLOCK * (n + 1)),                           \
                             cudasim_int(CUDASIM_BLOCK * (n + 1)), cudasim_array(info, 1));                                                                             \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##o##gqr_bufferSize(cusolverDnHandle_t, int m, int n, int k, const T *, int lda, const T *, int *room)                 \
    {                                                                                                                                                                   \
        return cudasim_asked(room, lda >= m && n <= m && k <= n, n);                                                                                                    \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##o##gqr(cusolverDnHandle_t h, int m, int n, int k, T *a, int lda, const T *tau, T *work, int room, int *info)         \
    {                                                                                                                                                                   \
        return cudasim_solve(h, #x #o "gqr_", room >= cudasim_work_for(n), work, room, cudasim_int(m), cudasim_int(n), cudasim_int(k),                                 \
                             cudasim_array(a, cudasim_columns(lda, m, n)), cudasim_int(lda), cudasim_array(tau, k),                                                     \
                             cudasim_room((int64_t)sizeof(T) * CUDASIM_BLOCK * (n + 1)), cudasim_int(CUDASIM_BLOCK * (n + 1)), cudasim_array(info, 1));                 \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##o##mqr_bufferSize(cusolverDnHandle_t, cublasSideMode_t side, cublasOperation_t, int m, int n, int k, const T *,      \
                                                                     int lda, const T *, const T *, int ldc, int *room)                                                 \
    {                                                                                                                                                                   \
        return cudasim_asked(room, lda >= (side == CUBLAS_SIDE_LEFT ? m : n) && ldc >= m && k <= (side == CUBLAS_SIDE_LEFT ? m : n), m > n ? m : n);                    \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##o##mqr(cusolverDnHandle_t h, cublasSideMode_t side, cublasOperation_t trans, int m, int n, int k, const T *a,        \
                                                          int lda, const T *tau, T *c, int ldc, T *work, int room, int *info)                                           \
    {                                                                                                                                                                   \
        const int64_t most = m > n ? m : n, own = CUDASIM_BLOCK * (most + CUDASIM_BLOCK + 2);                                                                           \
        return cudasim_solve(h, #x #o "mqr_", room >= cudasim_work_for(most) && (complex ? trans != CUBLAS_OP_T : trans != CUBLAS_OP_C), work, room,                   \
                             cudasim_text(cudasim_side(side)), cudasim_text(cudasim_operation(trans)), cudasim_int(m), cudasim_int(n), cudasim_int(k),                  \
                             cudasim_array(a, cudasim_columns(lda, side == CUBLAS_SIDE_LEFT ? m : n, k)), cudasim_int(lda), cudasim_array(tau, k),                      \
                             cudasim_array(c, cudasim_columns(ldc, m, n)), cudasim_int(ldc), cudasim_room((int64_t)sizeof(T) * own), cudasim_int(own),                  \
                             cudasim_array(info, 1));                                                                                                                   \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##sy##trd_bufferSize(cusolverDnHandle_t, cublasFillMode_t, int n, const T *, int lda, const R *, const R *, const T *,  \
                                                                     int *room)                                                                                         \
    {                                                                                                                                                                   \
        return cudasim_asked(room, lda >= n, n);                                                                                                                        \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##sy##trd(cusolverDnHandle_t h, cublasFillMode_t uplo, int n, T *a, int lda, R *d, R *e, T *tau, T *work, int room,     \
                                                          int *info)                                                                                                    \
    {                                                                                                                                                                   \
        return cudasim_solve(h, #x #sy "trd_", room >= cudasim_work_for(n), work, room, cudasim_text(cudasim_uplo(uplo)), cudasim_int(n),                               \
                             cudasim_array(a, cudasim_columns(lda, n, n)), cudasim_int(lda), cudasim_array(d, n), cudasim_array(e, n - 1), cudasim_array(tau, n - 1),   \
                             cudasim_room((int64_t)sizeof(T) * CUDASIM_BLOCK * (n + 1)), cudasim_int(CUDASIM_BLOCK * (n + 1)), cudasim_array(info, 1));                 \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##he##evd_bufferSize(cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, int n, const T *, int lda, const R *,     \
                                                                     int *room)                                                                                         \
    {                                                                                                                                                                   \
        return cudasim_asked(room, lda >= n, n);                                                                                                                        \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##he##evd(cusolverDnHandle_t h, cusolverEigMode_t mode, cublasFillMode_t uplo, int n, T *a, int lda, R *w, T *work,     \
                                                          int room, int *info)                                                                                          \
    {                                                                                                                                                                   \
        const int64_t own = 1 + 6 * (int64_t)n + 2 * (int64_t)n * n, ints = 3 + 5 * (int64_t)n;                                                                         \
        const cudasim_argument text = cudasim_text(mode == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N'), matrix = cudasim_array(a, cudasim_columns(lda, n, n));                \
        if (complex)                                                                                                                                                    \
            return cudasim_solve(h, #x #he "evd_", room >= cudasim_work_for(n), work, room, text, cudasim_text(cudasim_uplo(uplo)), cudasim_int(n), matrix,             \
                                 cudasim_int(lda), cudasim_array(w, n), cudasim_room((int64_t)sizeof(T) * own), cudasim_int(own),                                       \
                                 cudasim_room((int64_t)sizeof(R) * own), cudasim_int(own), cudasim_room((int64_t)sizeof(int) * ints), cudasim_int(ints),                \
                                 cudasim_array(info, 1));                                                                                                               \
        return cudasim_solve(h, #x #he "evd_", room >= cudasim_work_for(n), work, room, text, cudasim_text(cudasim_uplo(uplo)), cudasim_int(n), matrix,                 \
                             cudasim_int(lda), cudasim_array(w, n), cudasim_room((int64_t)sizeof(T) * own), cudasim_int(own),                                           \
                             cudasim_room((int64_t)sizeof(int) * ints), cudasim_int(ints), cudasim_array(info, 1));                                                     \
    }                                                                                                                                                                   \
    static inline cusolverStatus_t cusolverDn##X##gesvd_bufferSize(cusolverDnHandle_t, int m, int n, int *room)                                                         \
    {                                                                                                                                                                   \
        return cudasim_asked(room, m >= n, n);                                                                                                                          \
    }                                                                                                                                                                   \
    /* Both modes are the same in emitted text: then LAPACK has a quicker one. */                                                                                       \
    static inline cusolverStatus_t cusolverDn##X##gesvd(cusolverDnHandle_t h, signed char mode, signed char other, int m, int n, T *a, int lda, R *s, T *u, int ldu,    \
                                                        T *vt, int ldvt, T *work, int room, R *, int *info)                                                             \
    {                                                                                                                                                                   \
        const int64_t own = 4 * (int64_t)n * n + 10 * (int64_t)n + CUDASIM_BLOCK * (int64_t)(m + n), reals = 7 * (int64_t)n * n + 7 * n + 2 * (int64_t)m * n + 1;       \
        const bool    good = m >= n && mode == other && room >= cudasim_work_for(n) && lda >= m && (mode == 'N' || (ldu >= m && ldvt >= n));                            \
        const int64_t columns = mode == 'A' ? m : mode == 'S' ? n : 0, rows = mode == 'N' ? 0 : n;                                                                      \
        const cudasim_argument matrix = cudasim_array(a, cudasim_columns(lda, m, n)), left = cudasim_array(u, cudasim_columns(ldu, m, columns)),                        \
                               right = cudasim_array(vt, cudasim_columns(ldvt, rows, rows)), ints = cudasim_room((int64_t)sizeof(int) * 8 * (n + 1));                   \
        if (complex)                                                                                                                                                    \
            return cudasim_solve(h, #x "gesdd_", good, work, room, cudasim_text((char)mode), cudasim_int(m), cudasim_int(n), matrix, cudasim_int(lda),                  \
                                 cudasim_array(s, n), left, cudasim_int(ldu), right, cudasim_int(ldvt), cudasim_room((int64_t)sizeof(T) * own), cudasim_int(own),       \
                                 cudasim_room((int64_t)sizeof(R) * reals), ints, cudasim_array(info, 1));                                                               \
        return cudasim_solve(h, #x "gesdd_", good, work, room, cudasim_text((char)mode), cudasim_int(m), cudasim_int(n), matrix, cudasim_int(lda), cudasim_array(s, n),  \
                             left, cudasim_int(ldu), right, cudasim_int(ldvt), cudasim_room((int64_t)sizeof(T) * own), cudasim_int(own), ints, cudasim_array(info, 1)); \
    }
CUDASIM_SOLVER(S, s, float, float, or, sy, sy, false)
CUDASIM_SOLVER(D, d, double, double, or, sy, sy, false)
CUDASIM_SOLVER(C, c, cuComplex, float, un, he, he, true)
CUDASIM_SOLVER(Z, z, cuDoubleComplex, double, un, he, he, true)
#undef CUDASIM_SOLVER

/* Eigenvalues of a general matrix; of a real one as LAPACK has them, real parts in front of imaginary ones. */
typedef struct cudasim_params { int made; } *cusolverDnParams_t;

static inline cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *p) { return cudasim_made(p, cudasim_params{ 1 }) ? CUSOLVER_STATUS_NOT_INITIALIZED : CUSOLVER_STATUS_SUCCESS; }
static inline cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t p) { free(p); return CUSOLVER_STATUS_SUCCESS; }

static inline cusolverStatus_t cusolverDnXgeev_bufferSize(cusolverDnHandle_t, cusolverDnParams_t params, cusolverEigMode_t left, cusolverEigMode_t right, int64_t n, cudaDataType_t type, const void *,
                                                          int64_t lda, cudaDataType_t w_type, const void *, cudaDataType_t, const void *, int64_t ldvl, cudaDataType_t vr_type, const void *,
                                                          int64_t ldvr, cudaDataType_t compute, size_t *room, size_t *host_room)
{
    const bool good = params && left == CUSOLVER_EIG_MODE_NOVECTOR && lda >= n && ldvl >= 1 && ldvr >= (right == CUSOLVER_EIG_MODE_VECTOR ? n : 1) && w_type == type && vr_type == type && compute == type;
    *room = *host_room = (size_t)cudasim_work_for(n);
    return good ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

template <typename T, typename R>
static inline cusolverStatus_t cudasim_geev(cusolverDnHandle_t h, const char *symbol, char right, int64_t n, void *a, int64_t lda, void *w, void *vr, int64_t ldvr, void *work, int64_t room, int *info)
{
    const bool             complex = sizeof(T) != sizeof(R);
    const int64_t          own = (CUDASIM_BLOCK + 4) * n + CUDASIM_BLOCK * (CUDASIM_BLOCK + 1);
    T *const               values = (T *)w;
    const cudasim_argument matrix = cudasim_array((T *)a, cudasim_columns(lda, n, n)), vectors = cudasim_array((T *)vr, right == 'V' ? cudasim_columns(ldvr, n, n) : 0),
                           none = cudasim_array((T *)nullptr, 0);
    if (complex)
        return cudasim_solve(h, symbol, true, (char *)work, room, cudasim_text('N'), cudasim_text(right), cudasim_int(n), matrix, cudasim_int(lda), cudasim_array(values, n), none, cudasim_int(1),
                             vectors, cudasim_int(ldvr), cudasim_room((int64_t)sizeof(T) * own), cudasim_int(own), cudasim_room((int64_t)sizeof(R) * 2 * n), cudasim_array(info, 1));
    return cudasim_solve(h, symbol, true, (char *)work, room, cudasim_text('N'), cudasim_text(right), cudasim_int(n), matrix, cudasim_int(lda), cudasim_array(values, n), cudasim_array(values + n, n),
                         none, cudasim_int(1), vectors, cudasim_int(ldvr), cudasim_room((int64_t)sizeof(T) * own), cudasim_int(own), cudasim_array(info, 1));
}

static inline cusolverStatus_t cusolverDnXgeev(cusolverDnHandle_t h, cusolverDnParams_t params, cusolverEigMode_t left, cusolverEigMode_t right, int64_t n, cudaDataType_t type, void *a, int64_t lda,
                                               cudaDataType_t w_type, void *w, cudaDataType_t vl_type, void *vl, int64_t ldvl, cudaDataType_t vr_type, void *vr, int64_t ldvr, cudaDataType_t compute,
                                               void *work, size_t room, void *host, size_t host_room, int *info)
{
    const char letter = right == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N';
    size_t     wanted, host_wanted;
    if (cusolverDnXgeev_bufferSize(h, params, left, right, n, type, a, lda, w_type, w, vl_type, vl, ldvl, vr_type, vr, ldvr, compute, &wanted, &host_wanted) || room < wanted || host_room < host_wanted || !host)
        return CUSOLVER_STATUS_INVALID_VALUE;
    memset(host, 0xff, host_room);
    switch (type) {
    case CUDA_R_32F: return cudasim_geev<float, float>(h, "sgeev_", letter, n, a, lda, w, vr, ldvr, work, (int64_t)room, info);
    case CUDA_R_64F: return cudasim_geev<double, double>(h, "dgeev_", letter, n, a, lda, w, vr, ldvr, work, (int64_t)room, info);
    case CUDA_C_32F: return cudasim_geev<cuComplex, float>(h, "cgeev_", letter, n, a, lda, w, vr, ldvr, work, (int64_t)room, info);
    case CUDA_C_64F: return cudasim_geev<cuDoubleComplex, double>(h, "zgeev_", letter, n, a, lda, w, vr, ldvr, work, (int64_t)room, info);
    default: return CUSOLVER_STATUS_INVALID_VALUE;
    }
}

#endif
