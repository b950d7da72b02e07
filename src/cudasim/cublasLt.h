/* As much of cuBLASLt as emitted text uses, on the CPU: products of matrices are plain loops (cudasim_enqueue_product), in the order of the stream. In place of the
 * toolkit's header of that name, with its numbers. The functions are here, not in a library that is loaded. */
#ifndef CUDASIM_CUBLASLT_H
#define CUDASIM_CUBLASLT_H

#include <cuda_runtime.h>
#include <stdlib.h>

#define HLO_CUBLASLT_IS_LINKED 1

enum cudaDataType_t {
    CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_8I = 3, CUDA_C_32F = 4, CUDA_C_64F = 5, CUDA_R_32I = 10, CUDA_R_16BF = 14,
    CUDA_R_8F_E4M3 = 28, CUDA_R_8F_E5M2 = 29
};
enum cublasStatus_t {
    CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasComputeType_t {
    CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32I = 72, CUBLAS_COMPUTE_32F_FAST_16BF = 75, CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasLtEpilogue_t {
    CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_RELU = 2, CUBLASLT_EPILOGUE_BIAS = 4, CUBLASLT_EPILOGUE_RELU_BIAS = 6, CUBLASLT_EPILOGUE_GELU = 32,
    CUBLASLT_EPILOGUE_GELU_BIAS = 36
};
enum cublasLtMatmulDescAttributes_t {
    CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB = 4, CUBLASLT_MATMUL_DESC_EPILOGUE = 7, CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
    CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
};
enum cublasLtMatrixLayoutAttribute_t { CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6 };
enum cublasLtMatmulPreferenceAttributes_t {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};

struct cudasim_cublaslt { int open; };
struct cudasim_matmul {
    cublasComputeType_t compute;
    cudaDataType_t      scale;
    int32_t             turned[2];
    cublasLtEpilogue_t  epilogue;
    const void         *bias;
    int32_t             bias_type; /* -1: the result's */
    int8_t              fast;
};
struct cudasim_layout { cudaDataType_t type; uint64_t rows, cols; int64_t ld, batch_by; int32_t batch; };
struct cudasim_preference { uint64_t bytes; };
typedef cudasim_cublaslt   *cublasLtHandle_t;
typedef cudasim_matmul     *cublasLtMatmulDesc_t;
typedef cudasim_layout     *cublasLtMatrixLayout_t;
typedef cudasim_preference *cublasLtMatmulPreference_t;
struct cublasLtMatmulAlgo_t { uint64_t data[8]; };
struct cublasLtMatmulHeuristicResult_t { cublasLtMatmulAlgo_t algo; size_t workspaceSize; cublasStatus_t state; float wavesCount; int reserved[4]; };

template <typename T> static inline cublasStatus_t cudasim_made(T **to, const T &x)
{
    *to = static_cast<T *>(malloc(sizeof **to));
    if (*to)
        **to = x;
    return *to ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

template <typename T> static inline cublasStatus_t cudasim_set(T *to, const void *from, size_t bytes)
{
    if (bytes != sizeof *to)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
    return cudasim_has_library("cublasLt") ? cudasim_made(h, cudasim_cublaslt{ 1 }) : CUBLAS_STATUS_NOT_INITIALIZED;
}

static inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType_t scale)
{
    return cudasim_made(d, cudasim_matmul{ compute, scale, {}, CUBLASLT_EPILOGUE_DEFAULT, nullptr, -1, 0 });
}

static inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes)
{
    switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return cudasim_set(&d->turned[0], value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return cudasim_set(&d->turned[1], value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return cudasim_set(&d->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return cudasim_set(&d->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return cudasim_set(&d->bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM: return cudasim_set(&d->fast, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

static inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *x, cudaDataType_t type, uint64_t rows, uint64_t cols, int64_t ld)
{
    return cudasim_made(x, cudasim_layout{ type, rows, cols, ld, 0, 1 });
}

static inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t x, cublasLtMatrixLayoutAttribute_t what, const void *value, size_t bytes)
{
    return what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? cudasim_set(&x->batch, value, bytes) : cudasim_set(&x->batch_by, value, bytes);
}

static inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    return cudasim_made(p, cudasim_preference{ 0 });
}

static inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what, const void *value, size_t bytes)
{
    uint32_t align = 0;
    return what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? cudasim_set(&p->bytes, value, bytes) : cudasim_set(&align, value, bytes);
}

static inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { free(d); return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t x) { free(x); return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { free(p); return CUBLAS_STATUS_SUCCESS; }

static inline cudasim_type cudasim_type_of(cudaDataType_t x)
{
    cudasim_type t = CUDASIM_F32;
    switch (x) {
    case CUDA_R_32F: t = CUDASIM_F32; break;
    case CUDA_R_64F: t = CUDASIM_F64; break;
    case CUDA_R_16F: t = CUDASIM_F16; break;
    case CUDA_R_16BF: t = CUDASIM_BF16; break;
    case CUDA_R_8I: t = CUDASIM_S8; break;
    case CUDA_R_32I: t = CUDASIM_S32; break;
    case CUDA_C_32F: t = CUDASIM_C64; break;
    case CUDA_C_64F: t = CUDASIM_C128; break;
    case CUDA_R_8F_E4M3: t = CUDASIM_F8E4M3; break;
    case CUDA_R_8F_E5M2: t = CUDASIM_F8E5M2; break;
    }
    return t;
}

/* Element [i, j] of a matrix whose columns lie beside each other, or of one that is turned. */
static inline cudasim_matrix cudasim_matrix_of(const cudasim_layout *x, int32_t turned)
{
    const cudasim_type t = cudasim_type_of(x->type);
    return turned ? cudasim_matrix{ t, x->ld, 1, x->batch_by } : cudasim_matrix{ t, 1, x->ld, x->batch_by };
}

static inline bool cudasim_is_f8(cudaDataType_t t) { return t == CUDA_R_8F_E4M3 || t == CUDA_R_8F_E5M2; }

/* What the library asks of sizes. */
static inline bool cudasim_fits(const cudasim_matmul *d, const cudasim_layout *a, const cudasim_layout *b, const cudasim_layout *c)
{
    const uint64_t k = d->turned[0] ? a->rows : a->cols;
    return (d->turned[0] ? a->cols : a->rows) == c->rows && (d->turned[1] ? b->rows : b->cols) == c->cols && (d->turned[1] ? b->cols : b->rows) == k &&
           a->batch == c->batch && b->batch == c->batch && a->ld >= (int64_t)a->rows && b->ld >= (int64_t)b->rows && c->ld >= (int64_t)c->rows;
}

/* What it has no kernels for: f8 of another form than rows by rows, in columns of 16, with a bias beside a result in f32; something to do with a product of doubles,
 * complex or whole numbers on its way out. */
static inline bool cudasim_has_kernel(const cudasim_matmul *d, const cudasim_layout *a, const cudasim_layout *b, const cudasim_layout *c)
{
    const bool f8 = cudasim_is_f8(a->type), plain = d->epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    if (f8 != cudasim_is_f8(b->type) || (f8 && a->type == CUDA_R_8F_E5M2 && b->type == CUDA_R_8F_E5M2))
        return false;
    if (f8 && (!d->turned[0] || d->turned[1] || a->rows % 16 || a->cols % 16 || b->cols % 16 || (d->bias && c->type == CUDA_R_32F)))
        return false;
    return plain || c->type == CUDA_R_32F || c->type == CUDA_R_16F || c->type == CUDA_R_16BF;
}

static inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                            cublasLtMatrixLayout_t, cublasLtMatrixLayout_t out, cublasLtMatmulPreference_t p, int wanted,
                                                            cublasLtMatmulHeuristicResult_t *results, int *found)
{
    *found = 0;
    if (wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!cudasim_fits(d, a, b, out) || !cudasim_has_kernel(d, a, b, out) || ((d->epilogue & CUBLASLT_EPILOGUE_BIAS) && !d->bias))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *found = 1;
    results[0] = cublasLtMatmulHeuristicResult_t{};
    results[0].workspaceSize = p->bytes;
    return CUBLAS_STATUS_SUCCESS;
}

static inline double cudasim_scale(cudaDataType_t type, const void *x)
{
    return type == CUDA_R_64F || type == CUDA_C_64F ? *static_cast<const double *>(x) : type == CUDA_R_32I ? *static_cast<const int32_t *>(x) : *static_cast<const float *>(x);
}

/* C where it is the result's own place has its layout. Complex numbers are not scaled in emitted text. */
static inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void *alpha, const void *lhs, cublasLtMatrixLayout_t a, const void *rhs,
                                            cublasLtMatrixLayout_t b, const void *beta, const void *added, cublasLtMatrixLayout_t c, void *to, cublasLtMatrixLayout_t out,
                                            const cublasLtMatmulAlgo_t *, void *work, size_t work_bytes, cudaStream_t stream)
{
    const cudasim_type bias_type = cudasim_type_of(d->bias_type < 0 ? out->type : static_cast<cudaDataType_t>(d->bias_type));
    const bool         has_bias = (d->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
    if (!cudasim_fits(d, a, b, out) || !cudasim_has_kernel(d, a, b, out) || (added == to && memcmp(c, out, sizeof *c) != 0) || c->type != out->type || (has_bias && !d->bias))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cudasim_enqueue_set(work, 0xff, work_bytes, stream) != cudaSuccess || (reinterpret_cast<uintptr_t>(work) & 255) != 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    const cudasim_product p = { (int64_t)out->rows, (int64_t)out->cols, (int64_t)(d->turned[0] ? a->rows : a->cols), out->batch,
                                cudasim_matrix_of(a, d->turned[0]), cudasim_matrix_of(b, d->turned[1]), cudasim_matrix_of(out, 0), cudasim_matrix_of(c, 0), bias_type,
                                cudasim_scale(d->scale, alpha), cudasim_scale(d->scale, beta),
                                d->epilogue & CUBLASLT_EPILOGUE_RELU ? CUDASIM_RELU : d->epilogue & CUBLASLT_EPILOGUE_GELU ? CUDASIM_GELU : CUDASIM_NO_ACT };
    return cudasim_enqueue_product(&p, to, lhs, rhs, added, has_bias ? d->bias : nullptr, stream) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

#endif
