// Conditional nodes by hand: what they do, and a mistake that the argument names.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

static __global__ void step(int *x, cudaGraphConditionalHandle handle, int sets)
{
    x[0] += 1;
    if (sets)
        cudaGraphSetConditional(handle, x[0] < 5);
}

static __global__ void set(cudaGraphConditionalHandle handle, unsigned value)
{
    cudaGraphSetConditional(handle, value);
}

template <typename... P, typename... A> static cudaError_t launch(cudaStream_t s, int threads, void (*kernel)(P...), A... args)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(threads);
    config.stream = s;
    return cudaLaunchKernelEx(&config, kernel, args...);
}

static void host(void *) {}

// A node behind what s has captured, which s waits for from now on.
static cudaError_t add(cudaStream_t s, cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type, unsigned n, cudaGraph_t **bodies, bool waits)
{
    cudaStreamCaptureStatus  is;
    cudaGraph_t              graph = nullptr;
    const cudaGraphNode_t   *behind = nullptr;
    const cudaGraphEdgeData *edges = nullptr;
    cudaGraphNode_t          node;
    size_t                   count = 0;
    cudaGraphNodeParams      params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = n;
    cudaError_t e = cudaStreamGetCaptureInfo(s, &is, nullptr, &graph, &behind, &edges, &count);
    e = e ? e : cudaGraphAddNode(&node, graph, behind, edges, count, &params);
    *bodies = params.conditional.phGraph_out;
    return e || !waits ? e : cudaStreamUpdateCaptureDependencies(s, &node, nullptr, 1, cudaStreamSetCaptureDependencies);
}

static int told(cudaError_t e)
{
    if (e)
        printf("%s\n", cudaGetErrorString(e));
    return e != cudaSuccess;
}

int main(int argc, char **argv)
{
    const int                  mistake = argc > 1 ? atoi(argv[1]) : 0;
    int                       *x, result[2] = { 0, 0 };
    cudaStream_t               s, inner;
    cudaStreamCaptureStatus    is;
    cudaGraph_t                graph, body, *bodies;
    cudaGraphExec_t            again = nullptr;
    cudaGraphConditionalHandle handle;
    int                        bad = cudaMalloc(&x, sizeof result) || cudaStreamCreate(&s) || cudaStreamCreate(&inner) || cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    bad |= cudaMemsetAsync(x, 0, sizeof result, s) || cudaStreamGetCaptureInfo(s, &is, nullptr, &graph);
    bad |= cudaGraphConditionalHandleCreate(&handle, graph, 1, mistake == 1 ? 0 : cudaGraphCondAssignDefault) != cudaSuccess;
    if (mistake == 2)
        bad |= launch(s, 2, set, handle, 1u) != cudaSuccess;
    const cudaGraphConditionalNodeType type = mistake == 10 ? cudaGraphCondTypeIf : cudaGraphCondTypeWhile;
    const cudaError_t                  added = mistake == 8 ? cudaSuccess : add(s, handle, type, mistake == 3 ? 2 : mistake == 10 ? 2 : 1, &bodies, mistake != 9);
    if (mistake == 4) { // one condition, two nodes
        cudaGraph_t *others;
        bad |= !told(add(s, handle, cudaGraphCondTypeIf, 1, &others, true));
    }
    if (told(added))
        return bad | cudaStreamEndCapture(s, &graph) | cudaGraphDestroy(graph) | cudaStreamDestroy(s) | cudaStreamDestroy(inner) | cudaFree(x);
    if (mistake != 8) {
        bad |= cudaStreamBeginCaptureToGraph(inner, bodies[mistake == 10], nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed) != cudaSuccess;
        bad |= launch(inner, 1, step, x, handle, mistake != 5) != cudaSuccess;
        if (mistake == 6)
            bad |= cudaLaunchHostFunc(inner, host, nullptr) != cudaSuccess;
        if (mistake == 7)
            bad |= cudaMemcpyAsync(result, x, sizeof(int), cudaMemcpyDeviceToHost, inner) != cudaSuccess;
        bad |= cudaStreamEndCapture(inner, &body) != cudaSuccess;
        bad |= mistake != 9 && cudaGraphDestroy(body) != cudaErrorInvalidValue; // it is the node's
    }
    told(launch(s, 1, step, x + 1, handle, 0));
    told(cudaStreamEndCapture(s, &graph));
    if (!told(cudaGraphInstantiate(&again, graph, 0))) {
        bad |= cudaGraphDestroy(graph) != cudaSuccess; // what was made of it stays
        for (int turn = 0; turn < 2; turn++)
            if (!told(cudaGraphLaunch(again, s)) && !told(cudaMemcpyAsync(result, x, sizeof result, cudaMemcpyDeviceToHost, s)) && !told(cudaStreamSynchronize(s)))
                printf("%d %d\n", result[0], result[1]);
        bad |= cudaGraphExecDestroy(again) != cudaSuccess;
    } else {
        bad |= cudaGraphDestroy(graph) != cudaSuccess;
    }
    cudaStreamDestroy(s);
    cudaStreamDestroy(inner);
    cudaFree(x);
    return bad;
}
