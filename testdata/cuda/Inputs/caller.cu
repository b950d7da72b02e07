/* Calls a module through its header; HEADER, and HOST and KERNELS, the two files that it is. The host's is C: here it is compiled with the simulator's header, which is C++. */
#include <cuda_runtime.h>
#include <stdio.h>

#include HEADER

#include KERNELS

extern "C" {
#include HOST
}

int main(void)
{
    float       x[4] = { 1, 2, 3, 4 }, y[4];
    void       *in, *out, *scratch;
    const void *args[twice_N_ARGS];
    void       *results[twice_N_RESULTS];
    if (sizeof x != twice_args[0].bytes || cudaMalloc(&in, sizeof x) || cudaMalloc(&out, sizeof y) || cudaMalloc(&scratch, twice_SCRATCH_BYTES + 1))
        return 1;
    args[0] = in;
    results[0] = out;
    cudaMemcpy(in, x, sizeof x, cudaMemcpyHostToDevice);
    if (twice_enqueue(NULL, args, results, scratch) || twice_run(NULL, args, results, scratch))
        return 1;
    cudaMemcpy(y, out, sizeof y, cudaMemcpyDeviceToHost);
    printf("%s %s: %g %g %g %g\n", twice_args[0].name, twice_args[0].shape, y[0], y[1], y[2], y[3]);
    return 0;
}
