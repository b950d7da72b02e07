// What works: each kernel's result is compared with plain C++.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 5000, ROWS = 37, COLUMNS = 70 };

extern __shared__ __align__(128) unsigned char hlo_smem[];

static __device__ float warp_sum(float v)
{
    for (int by = 16; by > 0; by /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}

// One block a row; N is no multiple of the block.
static __global__ void __launch_bounds__(128) row_sums(float *out, const float *x, int n)
{
    float *const parts = (float *)hlo_smem;
    float acc = 0;
    for (int k = (int)threadIdx.x; k < n; k += 128)
        acc += x[(size_t)blockIdx.x * (size_t)n + (size_t)k];
    acc = warp_sum(acc);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = acc;
    __syncthreads();
    if (threadIdx.x < 32) {
        acc = warp_sum(threadIdx.x < 4 ? parts[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0)
            out[blockIdx.x] = acc;
    }
}

static __global__ void __launch_bounds__(256) transposed(float *out, const float *x)
{
    __shared__ float tile[32][33];
    const int column = (int)(blockIdx.x * 32 + threadIdx.x), row = (int)(blockIdx.y * 32);
    for (int j = (int)threadIdx.y; j < 32; j += 8)
        if (row + j < ROWS && column < COLUMNS)
            tile[j][threadIdx.x] = x[(row + j) * COLUMNS + column];
    __syncthreads();
    const int from = row + (int)threadIdx.x, to = (int)(blockIdx.x * 32);
    for (int j = (int)threadIdx.y; j < 32; j += 8)
        if (from < ROWS && to + j < COLUMNS)
            out[(to + j) * ROWS + from] = tile[threadIdx.x][j];
}

static __global__ void counted(int *bins, int *most, const int *x)
{
    const int k = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (k < N) {
        atomicAdd(&bins[x[k] % 10], 1);
        atomicMax(most, x[k]);
    }
}

static __global__ void voted(unsigned *out)
{
    const unsigned odd = __ballot_sync(0xffffffffu, threadIdx.x & 1);
    const int      many = __syncthreads_count(threadIdx.x > 40);
    const int      last = __shfl_sync(0xffffffffu, (int)threadIdx.x, 31), up = __shfl_up_sync(0xffffffffu, (int)threadIdx.x, 1, 8);
    if (threadIdx.x == 40)
        out[0] = odd, out[1] = (unsigned)many, out[2] = (unsigned)last, out[3] = (unsigned)up;
}

static __global__ void scaled(float4 *x, float by)
{
    float4 v = x[threadIdx.x];
    v.x *= by, v.y *= by, v.z *= by, v.w *= by;
    x[threadIdx.x] = v;
}

static int bad;
#define CHECK(x)                                      \
    do {                                              \
        if (!(x)) {                                   \
            printf("line %d: %s\n", __LINE__, #x);    \
            bad = 1;                                  \
        }                                             \
    } while (0)
#define CALL(x)                                                        \
    do {                                                               \
        const cudaError_t e_ = (x);                                    \
        if (e_) {                                                      \
            printf("line %d: %s\n", __LINE__, cudaGetErrorString(e_)); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

template <typename T> static T *upload(const T *host, size_t n)
{
    T *p;
    CALL(cudaMalloc(&p, n * sizeof *p));
    CALL(cudaMemcpy(p, host, n * sizeof *p, cudaMemcpyHostToDevice));
    return p;
}

static cudaLaunchConfig_t shape(dim3 grid, dim3 block, cudaStream_t stream = nullptr)
{
    cudaLaunchConfig_t c = {};
    c.gridDim = grid, c.blockDim = block, c.stream = stream;
    return c;
}

static void check_values()
{
    static float x[ROWS * COLUMNS], y[ROWS * COLUMNS], sums[ROWS];
    static int   words[N], bins[11], got[11];
    for (int k = 0; k < ROWS * COLUMNS; k++)
        x[k] = (float)(k % 101);
    for (int k = 0; k < N; k++)
        words[k] = k * 7919 % 10007;
    float *const dx = upload(x, ROWS * COLUMNS), *const dy = upload(x, ROWS * COLUMNS), *const ds = upload(sums, ROWS);
    int *const dw = upload(words, N), *const db = upload(bins, 11);
    cudaLaunchConfig_t c = shape(ROWS, 128);
    c.dynamicSmemBytes = 16;
    CALL(cudaLaunchKernelEx(&c, row_sums, ds, (const float *)dx, (int)COLUMNS));
    c = shape(dim3((COLUMNS + 31) / 32, (ROWS + 31) / 32), dim3(32, 8));
    CALL(cudaLaunchKernelEx(&c, transposed, dy, (const float *)dx));
    c = shape((N + 255) / 256, 256);
    CALL(cudaLaunchKernelEx(&c, counted, db, db + 10, (const int *)dw));
    CALL(cudaMemcpy(sums, ds, sizeof sums, cudaMemcpyDeviceToHost));
    CALL(cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost));
    CALL(cudaMemcpy(got, db, sizeof got, cudaMemcpyDeviceToHost));
    for (int r = 0; r < ROWS; r++) {
        float sum = 0;
        for (int k = 0; k < COLUMNS; k++) {
            sum += x[r * COLUMNS + k];
            CHECK(y[k * ROWS + r] == x[r * COLUMNS + k]);
        }
        CHECK(sums[r] == sum);
    }
    for (int k = 0; k < N; k++) {
        bins[words[k] % 10]++;
        bins[10] = words[k] > bins[10] ? words[k] : bins[10];
    }
    for (int k = 0; k < 11; k++)
        CHECK(got[k] == bins[k]);
    unsigned       votes[4] = { 0 };
    unsigned *const dv = upload(votes, 4);
    c = shape(1, 64);
    CALL(cudaLaunchKernelEx(&c, voted, dv));
    CALL(cudaMemcpy(votes, dv, sizeof votes, cudaMemcpyDeviceToHost));
    CHECK(votes[0] == 0xaaaaaaaa && votes[1] == 23 && votes[2] == 63 && votes[3] == 40);
    CALL(cudaFree(dx));
    CHECK(cudaFree(dy + 1) == cudaErrorInvalidValue);
}

// Work waits for whoever waits for it; events order streams; a graph does its work again.
static void check_streams()
{
    float        x[64], seen = 0;
    cudaStream_t a, b;
    cudaEvent_t  ready;
    for (int k = 0; k < 64; k++)
        x[k] = 1;
    float *const d = upload(x, 64);
    CALL(cudaStreamCreate(&a));
    CALL(cudaStreamCreate(&b));
    CALL(cudaEventCreate(&ready));
    cudaLaunchConfig_t c = shape(1, 16, a);
    CALL(cudaLaunchKernelEx(&c, scaled, (float4 *)d, 2.0f));
    CALL(cudaMemcpyAsync(&seen, d, sizeof seen, cudaMemcpyDeviceToHost, b));
    CHECK(seen == 0);
    CALL(cudaStreamSynchronize(b));
    CHECK(seen == 1); // b did not wait for a
    CALL(cudaEventRecord(ready, a));
    CALL(cudaStreamWaitEvent(b, ready));
    CALL(cudaMemcpyAsync(&seen, d, sizeof seen, cudaMemcpyDeviceToHost, b));
    CALL(cudaStreamSynchronize(b));
    CHECK(seen == 2);
    cudaGraph_t     g;
    cudaGraphExec_t again;
    CALL(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CALL(cudaLaunchKernelEx(&c, scaled, (float4 *)d, 3.0f));
    CHECK(cudaStreamSynchronize(a) == cudaErrorStreamCaptureUnsupported);
    CALL(cudaMemcpyAsync(&seen, d, sizeof seen, cudaMemcpyDeviceToHost, a));
    CALL(cudaStreamEndCapture(a, &g));
    CALL(cudaGraphInstantiate(&again, g, 0));
    CALL(cudaStreamSynchronize(a));
    CHECK(seen == 2);
    for (int k = 0; k < 3; k++)
        CALL(cudaGraphLaunch(again, a));
    CALL(cudaStreamSynchronize(a));
    CHECK(seen == 54);
    CALL(cudaGraphExecDestroy(again));
    CALL(cudaGraphDestroy(g));
    CALL(cudaEventDestroy(ready));
    CALL(cudaStreamDestroy(b));
    CALL(cudaStreamDestroy(a));
}

int main(void)
{
    check_values();
    check_streams();
    cudaDeviceReset();
    return bad;
}
