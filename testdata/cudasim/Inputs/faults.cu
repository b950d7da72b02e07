// One mistake for each thing that the simulator looks for; the argument says which.
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

extern __shared__ __align__(128) unsigned char hlo_smem[];

static __global__ void no_barrier(float *out)
{
    __shared__ float x[64];
    x[threadIdx.x] = (float)threadIdx.x;
    out[threadIdx.x] = x[63 - threadIdx.x]; // READ
}

static __global__ void no_warp_barrier(float *out)
{
    float *x = (float *)hlo_smem;
    x[threadIdx.x] = 1;
    out[threadIdx.x] = x[threadIdx.x ^ 1];
}

static __global__ void overwritten(float *out)
{
    __shared__ float x[64];
    x[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    const float y = x[threadIdx.x ^ 32];
    x[threadIdx.x] = y;
    __syncthreads();
    out[threadIdx.x] = x[threadIdx.x];
}

static __global__ void blocks_meet(float *out)
{
    if (threadIdx.x == 0)
        *out += 1;
}

static __global__ void atomic_and_not(int *out)
{
    if (blockIdx.x == 0)
        atomicAdd(out, 1);
    else if (threadIdx.x == 3)
        *out = 5;
}

static __global__ void out_of_bounds(float *out, int n)
{
    if (threadIdx.x == 5)
        out[n] = 1;
}

static __global__ void shared_too_small(float *out)
{
    float *x = (float *)hlo_smem;
    x[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = x[threadIdx.x];
}

static __global__ void misaligned(float *out)
{
    if (threadIdx.x == 7)
        *(float4 *)(out + 1) = make_float4(1, 2, 3, 4);
}

static __global__ void ends_early(float *out)
{
    if (threadIdx.x > 20)
        return;
    __syncthreads();
    out[threadIdx.x] = 1;
}

static __global__ void two_barriers(float *out)
{
    if (threadIdx.x & 1) {
        __syncthreads();
        out[threadIdx.x] = 1;
    } else {
        __syncthreads();
        out[threadIdx.x] = 2;
    }
}

static __global__ void half_a_warp(float *out)
{
    float v = 0;
    if (threadIdx.x < 16)
        v = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
    else
        __syncthreads();
    out[threadIdx.x] = v;
}

static __global__ void outside_of_mask(float *out)
{
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_down_sync(0x0000ffffu, 1.0f, 8);
}

static __global__ void not_initialized(float *out)
{
    __shared__ float x[64];
    if (out[threadIdx.x] == 1)
        x[threadIdx.x] = 1;
    out[threadIdx.x] = x[threadIdx.x];
}

/* Words first, whose bytes then are of several threads: cells of the page become narrower. */
static __global__ void bytes(float *out)
{
    out[threadIdx.x] = 0;
    __syncthreads();
    reinterpret_cast<unsigned char *>(out)[threadIdx.x] = 0;
}

static __global__ void byte_of_word(float *out)
{
    out[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 9)
        out[2] = 1;
    if (threadIdx.x == 40)
        reinterpret_cast<unsigned char *>(out)[10] = 1;
}

static __global__ void word_of_bytes(float *out)
{
    unsigned char *const bytes = reinterpret_cast<unsigned char *>(out);
    bytes[threadIdx.x] = 0;
    if (threadIdx.x == 63)
        out[3] = 1;
}

static __global__ void outside_in_block(float *out, int block)
{
    if ((int)blockIdx.x == block && threadIdx.x == 3)
        out[3] = out[70];
}

static cudaError_t call(const char *which, float *device, float *host, cudaLaunchConfig_t *c)
{
    int *const words = (int *)device;
#define CASE(name, ...)           \
    if (strcmp(which, #name) == 0) \
        return cudaLaunchKernelEx(c, name, __VA_ARGS__);
    CASE(no_barrier, device)
    CASE(no_warp_barrier, device)
    CASE(overwritten, device)
    CASE(misaligned, device)
    CASE(ends_early, device)
    CASE(two_barriers, device)
    CASE(half_a_warp, device)
    CASE(outside_of_mask, device)
    CASE(not_initialized, device)
    CASE(bytes, device)
    CASE(byte_of_word, device)
    CASE(word_of_bytes, device)
    CASE(out_of_bounds, device, 64)
    if (strcmp(which, "host_memory") == 0)
        return cudaLaunchKernelEx(c, out_of_bounds, host, 0);
    c->gridDim = dim3(9);
    if (strncmp(which, "outside_in_block_", 17) == 0)
        return cudaLaunchKernelEx(c, outside_in_block, device, which[17] - '0');
    c->gridDim = dim3(2);
    CASE(blocks_meet, device)
    CASE(atomic_and_not, words)
    c->gridDim = dim3(1);
    c->dynamicSmemBytes = 128;
    CASE(shared_too_small, device)
    if (strcmp(which, "shared_not_asked_for") == 0 || strcmp(which, "shared_more_than_asked_for") == 0) {
        if (which[7] == 'm')
            cudaFuncSetAttribute(shared_too_small, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000);
        c->dynamicSmemBytes = 50001;
        return cudaLaunchKernelEx(c, shared_too_small, device);
    }
    if (strcmp(which, "copy_too_long") == 0)
        return cudaMemcpyAsync(device, host, 65 * sizeof(float), cudaMemcpyHostToDevice);
    if (strcmp(which, "wrong_direction") == 0)
        return cudaMemcpyAsync(host, device, 4, cudaMemcpyHostToHost);
    c->blockDim = dim3(2048);
    return cudaLaunchKernelEx(c, no_barrier, device);
}

int main(int argc, char **argv)
{
    float *device, host[65] = { 0 };
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(1), c.blockDim = dim3(64), c.dynamicSmemBytes = 256;
    cudaMalloc(&device, 64 * sizeof *device);
    cudaError_t e = call(argc > 1 ? argv[1] : "", device, host, &c);
    e = e ? e : cudaMemcpy(host, device, 64 * sizeof *device, cudaMemcpyDeviceToHost);
    printf("%d %s, %g\n", (int)e, cudaGetErrorString(e), host[0]);
    cudaDeviceReset();
    e = cudaMalloc(&device, 256);
    e = e ? e : cudaMemcpy(device, host, 256, cudaMemcpyHostToDevice);
    printf("reset: %s\n", cudaGetErrorString(e));
    return 0;
}
