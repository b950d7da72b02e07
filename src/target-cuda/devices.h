/* Text of what devices do together: they know which one they are, exchange blocks, and fail together. */
#ifndef TARGET_CUDA_DEVICES_H
#define TARGET_CUDA_DEVICES_H

#include "emit/program.h"
#include "support/buf.h"

bool cuda_has_collectives(const Program *p); /* some may be NCCL's */
void cuda_devices_kernels(Buf *b, const Program *p, const char *linkage, const char *prefix); /* beside launchers */
void cuda_devices_prototypes(Buf *b, const Program *p, const char *prefix);
void cuda_devices_services(Buf *b, const Program *p); /* the host's: tables, what the entry calls */
void cuda_devices_check(Buf *b, const Program *p);    /* what the entry does first */

/* Calls that give 0, or have put a text where the caller has room for it. */
void cuda_exchange_call(Buf *b, const Exchange *x, const char *in, const char *out);
void cuda_check_call(Buf *b, const Exchange *x, const char *pred);
/* A call that gives a cudaError_t. */
void cuda_number_call(Buf *b, const char *prefix, const char *to, bool replica);

#endif
