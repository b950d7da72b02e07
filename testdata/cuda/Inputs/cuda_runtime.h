/* As much of CUDA as emitted code uses, on the CPU: device memory is memory, a launch is done when it returns. The threads of a launch run one after
 * the other in an order that no grid has, from both ends by turns, so that work which depends on another thread's shows as a wrong value. */
#pragma once
#include <math.h>
#include <stddef.h>
#include <string.h>

#define __global__
#define __device__
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))

typedef enum cudaError_t { cudaSuccess, cudaErrorInvalidValue, cudaErrorInvalidConfiguration = 9 } cudaError_t;
typedef struct stream_on_cpu *cudaStream_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1) : x(x), y(1), z(1) {}
};

struct cudaLaunchConfig_t {
    dim3         gridDim, blockDim;
    cudaStream_t stream;
};

static thread_local dim3 threadIdx, blockIdx, gridDim, blockDim;

static inline const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess ? "no error" : e == cudaErrorInvalidValue ? "invalid argument" : "invalid configuration argument";
}

static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}

static inline cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}

template <typename T> static cudaError_t cudaGetSymbolAddress(void **at, const T &symbol)
{
    *at = (void *)&symbol;
    return cudaSuccess;
}

template <typename... Params, typename... Args>
static cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Params...), Args... args)
{
    const unsigned long n = (unsigned long)config->gridDim.x * config->blockDim.x;
    if (n == 0 || config->blockDim.x > 1024)
        return cudaErrorInvalidConfiguration;
    gridDim = config->gridDim;
    blockDim = config->blockDim;
    for (unsigned long turn = 0; turn < n; turn++) {
        const unsigned long thread = turn % 2 ? turn / 2 : n - 1 - turn / 2;
        blockIdx.x = (unsigned)(thread / blockDim.x);
        threadIdx.x = (unsigned)(thread % blockDim.x);
        kernel((Params)args...);
    }
    return cudaSuccess;
}
