/* Calls a module with one of its arrays some bytes behind the beginning of an allocation, and says what the module says and whether it wrote its first result. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#include HEADER

#include MODULE

enum { N = net_N_ARGS + net_N_RESULTS };

static void call(int moved, int by)
{
    char        text[200] = "0";
    hlo_env     env = {};
    const void *args[net_N_ARGS];
    void       *results[net_N_RESULTS];
    static char bytes[16384];
    unsigned    first = 0;
    env.size = sizeof env;
    env.error = text;
    env.error_bytes = sizeof text;
    for (int k = 0; k < N; k++) {
        const hlo_leaf *leaf = k < net_N_ARGS ? &net_args[k] : &net_results[k - net_N_ARGS];
        char           *memory;
        memset(bytes, k < net_N_ARGS ? 0 : 255, sizeof bytes);
        if (cudaMalloc((void **)&memory, (size_t)leaf->bytes + 16))
            return;
        memory += k == moved ? by : 0;
        if (cudaMemcpy(memory, bytes, (size_t)leaf->bytes, cudaMemcpyHostToDevice))
            return;
        if (k < net_N_ARGS)
            args[k] = memory;
        else
            results[k - net_N_ARGS] = memory;
    }
    net_run(&env, args, results, NULL);
    cudaMemcpy(&first, results[0], sizeof first, cudaMemcpyDeviceToHost);
    if (moved < 0)
        printf("nothing moved");
    else
        printf("%s[%d] by %d", moved < net_N_ARGS ? "args" : "results", moved < net_N_ARGS ? moved : moved - net_N_ARGS, by);
    printf(": %s, %s\n", text, first == 0 ? "written" : "not written");
}

int main(void)
{
    static const int moves[][2] = { { -1, 0 }, { 0, 4 }, { 0, 16 }, { 1, 4 }, { 1, 2 }, { 2, 2 }, { 2, 1 }, { 3, 1 }, { 4, 8 }, { 6, 1 } };
    for (const int *m : moves)
        call(m[0], m[1]);
    return 0;
}
