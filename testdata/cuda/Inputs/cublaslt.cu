// The numbers of cuBLASLt's constants, of the toolkit's header and of the simulator's alike.
#include <cublasLt.h>

static_assert(CUDA_R_32F == 0 && CUDA_R_64F == 1 && CUDA_R_16F == 2 && CUDA_R_8I == 3 && CUDA_C_32F == 4 && CUDA_C_64F == 5 && CUDA_R_32I == 10 && CUDA_R_16BF == 14, "");
static_assert(CUBLAS_STATUS_SUCCESS == 0 && CUBLAS_STATUS_NOT_INITIALIZED == 1 && CUBLAS_STATUS_INVALID_VALUE == 7 && CUBLAS_STATUS_EXECUTION_FAILED == 13 &&
                  CUBLAS_STATUS_NOT_SUPPORTED == 15, "");
static_assert(CUBLAS_COMPUTE_32F == 68 && CUBLAS_COMPUTE_64F == 70 && CUBLAS_COMPUTE_32I == 72 && CUBLAS_COMPUTE_32F_FAST_16BF == 75 &&
                  CUBLAS_COMPUTE_32F_FAST_TF32 == 77 && CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1, "");
static_assert(CUBLASLT_MATMUL_DESC_TRANSA == 3 && CUBLASLT_MATMUL_DESC_TRANSB == 4 && CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT == 5 &&
                  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET == 6, "");
static_assert(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES == 1 && CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES == 5 && CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES == 6 &&
                  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES == 7 && CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES == 8, "");
static_assert(cudaErrorNotSupported == 801 && cudaErrorUnknown == 999, "");
