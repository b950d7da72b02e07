// A module as a graph: made once, run twice with other arguments in the same place.
#include MODULE
#include <stdio.h>

int main(void)
{
    float         x[8], y[8];
    float        *dx, *dy;
    void         *scratch;
    cudaStream_t  stream;
    cudaGraph_t   graph;
    cudaGraphExec_t again;
    int           bad = 0;
    bad |= cudaMalloc(&dx, sizeof x) || cudaMalloc(&dy, sizeof y) || cudaMalloc(&scratch, net_scratch_bytes + 64) || cudaStreamCreate(&stream);
    char          error[200] = "";
    hlo_env       env = {};
    env.size = sizeof env;
    env.error = error;
    env.error_bytes = sizeof error;
    env.stream = stream;
    const void *const args[] = { dx };
    void *const       results[] = { dy };
#ifdef RUNS_BEFORE /* libraries are open then, and their plans are made */
    bad |= net_run(&env, args, results, scratch);
#endif
    bad |= cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) != cudaSuccess;
    const int failed = net_enqueue(&env, args, results, scratch);
    bad |= cudaStreamEndCapture(stream, &graph) != cudaSuccess;
    if (failed) {
        printf("no graph: %s\n", error);
        return bad | (cudaGraphDestroy(graph) != cudaSuccess);
    }
    bad |= cudaGraphInstantiate(&again, graph, 0) != cudaSuccess;
    for (int turn = 1; turn <= 2; turn++) {
        for (int k = 0; k < 8; k++)
            x[k] = (float)(k * turn);
        bad |= cudaMemcpyAsync(dx, x, sizeof x, cudaMemcpyHostToDevice, stream) || cudaGraphLaunch(again, stream) ||
               cudaMemcpyAsync(y, dy, sizeof y, cudaMemcpyDeviceToHost, stream) || cudaStreamSynchronize(stream);
        printf("%g %g\n", y[0], y[7]);
    }
    bad |= cudaGraphExecDestroy(again) || cudaGraphDestroy(graph) || cudaStreamDestroy(stream);
    return bad | (cudaFree(dx) || cudaFree(dy) || cudaFree(scratch));
}
