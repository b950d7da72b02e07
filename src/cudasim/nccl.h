/* As much of NCCL as emitted text uses, on the CPU: ranks are devices of one process (cudasim_communicate), which meet in the order of their streams. In place of the toolkit's header
 * of that name. */
#ifndef CUDASIM_NCCL_H
#define CUDASIM_NCCL_H

#include <cuda_runtime.h>

#define HLO_NCCL_IS_LINKED 1

enum ncclResult_t { ncclSuccess = 0, ncclUnhandledCudaError = 1, ncclInvalidArgument = 4, ncclInvalidUsage = 5 };
enum ncclDataType_t { ncclUint8 = 1 };
typedef cudasim_rank *ncclComm_t;

static inline ncclResult_t ncclCommInitAll(ncclComm_t *to, int n, const int *devices)
{
    return !cudasim_has_library("nccl") || devices ? ncclInvalidUsage : cudasim_ranks(to, n) ? ncclUnhandledCudaError : ncclSuccess;
}
static inline ncclResult_t ncclCommDestroy(ncclComm_t x)
{
    cudasim_rank_end(x, false);
    return ncclSuccess;
}
static inline ncclResult_t ncclCommAbort(ncclComm_t x)
{
    cudasim_rank_end(x, true);
    return ncclSuccess;
}
static inline ncclResult_t cudasim_told(cudaError_t e) { return e == cudaSuccess ? ncclSuccess : e == cudaErrorInvalidValue ? ncclInvalidArgument : ncclUnhandledCudaError; }
static inline ncclResult_t ncclCommCount(const ncclComm_t x, int *n)
{
    int rank;
    cudasim_rank_here(x, n, &rank);
    return ncclSuccess;
}
static inline ncclResult_t ncclCommUserRank(const ncclComm_t x, int *rank)
{
    int n;
    cudasim_rank_here(x, &n, rank);
    return ncclSuccess;
}
static inline ncclResult_t ncclGroupStart(void) { return cudasim_told(cudasim_group(true)); }
static inline ncclResult_t ncclGroupEnd(void) { return cudasim_told(cudasim_group(false)); }
static inline ncclResult_t ncclSend(const void *in, size_t n, ncclDataType_t, int to, ncclComm_t x, cudaStream_t s)
{
    return cudasim_told(cudasim_communicate(x, CUDASIM_SEND, to, in, nullptr, n, s));
}
static inline ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t, int from, ncclComm_t x, cudaStream_t s)
{
    return cudasim_told(cudasim_communicate(x, CUDASIM_RECEIVE, from, nullptr, out, n, s));
}
static inline ncclResult_t ncclAllGather(const void *in, void *out, size_t n, ncclDataType_t, ncclComm_t x, cudaStream_t s)
{
    return cudasim_told(cudasim_communicate(x, CUDASIM_ALL_GATHER, 0, in, out, n, s));
}
static inline ncclResult_t ncclBroadcast(const void *in, void *out, size_t n, ncclDataType_t, int root, ncclComm_t x, cudaStream_t s)
{
    return cudasim_told(cudasim_communicate(x, CUDASIM_BROADCAST, root, in, out, n, s));
}

#endif
