// Products on tensor cores: every order of factors and sums, what lanes hold, and mistakes.
#include <mma.h>
#include <stdio.h>
#include <string.h>

using namespace nvcuda;

static __device__ __half half_of(int v)
{
    static const unsigned short bits[] = { 0xc200, 0xc000, 0xbc00, 0, 0x3c00, 0x4000, 0x4200 }; // -3 to 3
    return __half{ bits[v + 3] };
}
static __device__ int lhs_of(int m, int k) { return (m * 5 + k * 3) % 7 - 3; }
static __device__ int rhs_of(int k, int n) { return (k * 2 + n * 4 + 1) % 7 - 3; }

template <typename A, typename B, wmma::layout_t order> static __global__ void product(float *out)
{
    __shared__ __align__(32) __half lhs[16 * 24], rhs[16 * 24];
    __shared__ __align__(32) float  sums[16 * 20];
    for (int at = threadIdx.x; at < 256; at += 32) {
        const int i = at / 16, j = at % 16;
        lhs[std::is_same<A, wmma::row_major>::value ? i * 24 + j : j * 24 + i] = half_of(lhs_of(i, j));
        rhs[std::is_same<B, wmma::row_major>::value ? i * 24 + j : j * 24 + i] = half_of(rhs_of(i, j));
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, A>        a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, B>        b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float>         c;
    for (int at = threadIdx.x; at < 256; at += 32)
        sums[order == wmma::mem_row_major ? at / 16 * 20 + at % 16 : at % 16 * 20 + at / 16] = (float)at;
    __syncwarp();
    wmma::load_matrix_sync(c, sums, 20, order);
    __syncwarp();
    wmma::load_matrix_sync(a, lhs, 24);
    wmma::load_matrix_sync(b, rhs, 24);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(sums, c, 20, order);
    __syncwarp();
    for (int at = threadIdx.x; at < 256; at += 32)
        out[at] = sums[order == wmma::mem_row_major ? at / 16 * 20 + at % 16 : at % 16 * 20 + at / 16];
}

// Each element is some lane's, once.
template <typename Use> static int holders()
{
    int seen[16][16] = { { 0 } }, good = 0;
    for (int lane = 0; lane < 32; lane++)
        for (int e = 0; e < 8; e++)
            seen[wmma::cudasim_place_of<Use>(lane, e).row][wmma::cudasim_place_of<Use>(lane, e).col]++;
    for (auto &row : seen)
        for (int n : row)
            good += n == 1;
    return good;
}

static __global__ void mistake(float *out, int which)
{
    __shared__ __align__(32) float sums[16 * 20 + 8];
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 1.0f);
    if (which == 0)
        wmma::store_matrix_sync(sums + 4, c, 20, wmma::mem_row_major);
    if (which == 1)
        wmma::store_matrix_sync(sums, c, 18, wmma::mem_row_major);
    if (which == 2 && threadIdx.x < 16)
        wmma::store_matrix_sync(sums, c, 20, wmma::mem_row_major);
    if (which == 3)
        wmma::store_matrix_sync(sums, c, 20, wmma::mem_row_major);
    out[threadIdx.x] = sums[threadIdx.x % 16 * 20 + threadIdx.x / 16];
}

template <typename A, typename B, wmma::layout_t order> static int check(cudaLaunchConfig_t *config, float *device)
{
    float v[256];
    int   bad = 0;
    if (cudaLaunchKernelEx(config, product<A, B, order>, device) || cudaMemcpy(v, device, sizeof v, cudaMemcpyDeviceToHost))
        return -1;
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            float sum = (float)(m * 16 + n);
            for (int k = 0; k < 16; k++)
                sum += (float)(lhs_of(m, k) * rhs_of(k, n));
            bad += v[m * 16 + n] != sum;
        }
    return bad;
}

int main(int argc, char **argv)
{
    float             *device;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1), config.blockDim = dim3(32);
    cudaMalloc(&device, 256 * sizeof *device);
    if (argc > 1) {
        cudaError_t e = cudaLaunchKernelEx(&config, mistake, device, atoi(argv[1]));
        e = e ? e : cudaDeviceSynchronize();
        printf("%d %s\n", (int)e, cudaGetErrorString(e));
        return 0;
    }
    const int bad[] = { check<wmma::row_major, wmma::row_major, wmma::mem_row_major>(&config, device), check<wmma::row_major, wmma::col_major, wmma::mem_row_major>(&config, device),
                        check<wmma::col_major, wmma::row_major, wmma::mem_row_major>(&config, device), check<wmma::col_major, wmma::col_major, wmma::mem_col_major>(&config, device) };
    printf("wrong: %d %d %d %d; held once: %d %d %d\n", bad[0], bad[1], bad[2], bad[3], holders<wmma::matrix_a>(), holders<wmma::matrix_b>(), holders<wmma::accumulator>());
    return 0;
}
