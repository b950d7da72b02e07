/* Program to CUDA source, one .cu file. */
#ifndef TARGET_CUDA_H
#define TARGET_CUDA_H

#include "emit/program.h"
#include "support/buf.h"

/* Reports by instruction everything in p that cannot be emitted: library routines, functions from outside,
 * kernels whose arrays or parameters are too many for a thread. True when there is nothing. */
bool target_cuda_supported(const Program *p, Diag *d);

void target_cuda_source(Buf *b, const Program *p);  /* --emit=source: one .cu */
void target_cuda_kernels(Buf *b, const Program *p); /* --emit=kernels, --emit=host: the same as two files, a .cu of kernels with their launchers and a .c of the entry */
void target_cuda_host(Buf *b, const Program *p);
void target_cuda_header(Buf *b, const Program *p);  /* --emit=h */
void target_cuda_main(Buf *b, const Program *p);    /* --emit=main: source and a main */

/* What kernels call; tensor: on some devices they may call less. */
void cuda_prelude(Buf *b, const Program *p, bool tensor);
/* Each function's kernels, and NAME_launch, which starts them. Parameters of that: the stream, the results, then the operands, then working memory; only those
 * that the kernel uses. True: some are for tensor cores, and mma.h is wanted. */
bool cuda_kernels(Buf *b, const Program *p, const char *linkage);
/* The launchers' prototypes. linkage is "static", or what launchers of all files begin with: "extern \"C\"", "extern". */
void cuda_prototypes(Buf *b, const Program *p, const char *linkage);
/* A call of it; args[p] is the text of a pointer to device memory for kernel parameter p, in the order of kernel.h. */
void cuda_kernel_call(Buf *b, const Function *f, const char *const *args);

#endif
