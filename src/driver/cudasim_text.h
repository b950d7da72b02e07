/* The headers of src/cudasim as text, generated: cudasim_text.c. */
#ifndef DRIVER_CUDASIM_TEXT_H
#define DRIVER_CUDASIM_TEXT_H

extern const char cudasim_header[], cudasim_blas_header[], cudasim_cublas_header[], cudasim_solver_header[], cudasim_fft_header[], cudasim_dnn_header[],
    cudasim_mma_header[], cudasim_nccl_header[]; /* cuda_runtime.h, cublasLt.h, cublas_v2.h, cusolverDn.h, cufft.h, cudnn_graph.h, mma.h, nccl.h */

#endif
