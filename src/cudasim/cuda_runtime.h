/* As much of CUDA as emitted text uses, and a little more, on the CPU: cudasim.h says how. In place of the toolkit's header of that name:
 *
 *     g++ -x c++ -std=gnu++17 -g -O1 -fPIC -fsanitize=thread -I INCLUDE -I INCLUDE/cudasim -c model.cu
 *
 * links with libcudasim.a, without -fsanitize=thread; without that option nothing but barriers and warps is checked. A variable of the host's that is thread_local
 * counts as shared memory. Dynamic shared memory has one name, hlo_smem. Launches are calls of cudaLaunchKernelEx. */
#ifndef CUDASIM_CUDA_RUNTIME_H
#define CUDASIM_CUDA_RUNTIME_H

#include "cudasim/cudasim.h"

#include <math.h>
#include <string.h>
#include <tuple>

#define CUDART_VERSION 13000
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 900 /* unless -D says another device: kernels are compiled as for that one */
#endif
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __constant__
#define __shared__ thread_local /* one block runs at a time, on one thread of the host; and in a function it is static */

#define threadIdx cudasim_thread
#define blockIdx  cudasim_block
#define blockDim  cudasim_block_size
#define gridDim   cudasim_grid_size
#define warpSize  32

static __shared__ __align__(128) unsigned char hlo_smem[CUDASIM_MOST_SHARED];

static inline void *cudasim_dynamic_shared(void)
{
    return hlo_smem;
}

/* ---- types ---- */

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

/* Vectors that are moved as one: the address of a copy's source and target is checked, since compilers make the elements' moves of it. */
#define CUDASIM_COPIED(name, bytes, copy)                      \
        name() = default;                                      \
        __forceinline__ name(const name &o) { *this = o; }     \
        __forceinline__ name &operator=(const name &o)         \
        {                                                      \
            cudasim_aligned((uintptr_t)this, bytes);           \
            cudasim_aligned((uintptr_t)&o, bytes);             \
            copy;                                              \
            return *this;                                      \
        }
#define CUDASIM_VECTOR(name, type, bytes)                                                                              \
    struct __align__(2 * bytes) name##2 {                                                                              \
        type x, y;                                                                                                     \
        CUDASIM_COPIED(name##2, 2 * bytes, (x = o.x, y = o.y))                                                         \
        __forceinline__ name##2(type x, type y) : x(x), y(y) {}                                                        \
    };                                                                                                                 \
    struct __align__(4 * bytes > 16 ? 16 : 4 * bytes) name##4 {                                                        \
        type x, y, z, w;                                                                                               \
        CUDASIM_COPIED(name##4, 4 * bytes > 16 ? 16 : 4 * bytes, (x = o.x, y = o.y, z = o.z, w = o.w))                 \
        __forceinline__ name##4(type x, type y, type z, type w) : x(x), y(y), z(z), w(w) {}                            \
    };                                                                                                                 \
    static __forceinline__ name##2 make_##name##2(type x, type y) { return name##2(x, y); }                            \
    static __forceinline__ name##4 make_##name##4(type x, type y, type z, type w) { return name##4(x, y, z, w); }
CUDASIM_VECTOR(char, signed char, 1)
CUDASIM_VECTOR(uchar, unsigned char, 1)
CUDASIM_VECTOR(short, short, 2)
CUDASIM_VECTOR(ushort, unsigned short, 2)
CUDASIM_VECTOR(int, int, 4)
CUDASIM_VECTOR(uint, unsigned, 4)
CUDASIM_VECTOR(longlong, long long, 8)
CUDASIM_VECTOR(ulonglong, unsigned long long, 8)
CUDASIM_VECTOR(float, float, 4)
CUDASIM_VECTOR(double, double, 8)
#undef CUDASIM_VECTOR
#undef CUDASIM_COPIED

/* ---- the host's calls ---- */

struct cudaLaunchConfig_t {
    dim3         gridDim, blockDim;
    size_t       dynamicSmemBytes;
    cudaStream_t stream;
};

template <typename... Params> struct cudasim_call {
    void (*kernel)(Params...);
    std::tuple<Params...> args;
    static void run(const void *call)
    {
        const cudasim_call *c = static_cast<const cudasim_call *>(call);
        std::apply(c->kernel, c->args);
    }
};

template <typename... Params, typename... Args>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Params...), Args... args)
{
    const cudasim_call<Params...> call = { kernel, std::tuple<Params...>(args...) };
    cudasim_launch l = {};
    l.run = cudasim_call<Params...>::run;
    l.kernel = reinterpret_cast<const void *>(kernel);
    l.args = &call;
    l.args_bytes = sizeof call;
    l.grid = uint3{ config->gridDim.x, config->gridDim.y, config->gridDim.z };
    l.block = uint3{ config->blockDim.x, config->blockDim.y, config->blockDim.z };
    l.shared_bytes = config->dynamicSmemBytes;
    l.shared = cudasim_dynamic_shared;
    return cudasim_enqueue_launch(&l, config->stream);
}

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
template <typename... Params> static inline cudaError_t cudaFuncSetAttribute(void (*kernel)(Params...), cudaFuncAttribute, int value)
{
    return cudasim_allow_shared(reinterpret_cast<const void *>(kernel), value);
}

static inline cudaError_t cudaMalloc(void **p, size_t bytes) { return cudasim_malloc(p, bytes); }
template <typename T> static inline cudaError_t cudaMalloc(T **p, size_t bytes) { return cudasim_malloc(reinterpret_cast<void **>(p), bytes); }
static inline cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t s) { return cudasim_malloc_async(p, bytes, s); }
static inline cudaError_t cudaFreeAsync(void *p, cudaStream_t s) { return cudasim_free_async(p, s); }
static inline cudaError_t cudaFree(void *p) { return cudasim_free(p); }
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s = nullptr)
{
    return cudasim_enqueue_copy(to, from, bytes, kind, s);
}
static inline cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t s = nullptr) { return cudasim_enqueue_set(to, byte, bytes, s); }
static inline cudaError_t cudaLaunchHostFunc(cudaStream_t s, void (*f)(void *), void *cookie) { return cudasim_enqueue_call(f, cookie, s); }
static inline cudaError_t cudaDeviceSynchronize(void) { return cudasim_device_synchronize(); }
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    const cudaError_t e = cudasim_enqueue_copy(to, from, bytes, kind, nullptr);
    return e ? e : cudasim_device_synchronize();
}
static inline cudaError_t cudaStreamCreate(cudaStream_t *s) { return cudasim_stream_create(s); }
static inline cudaError_t cudaStreamDestroy(cudaStream_t s) { return cudasim_stream_destroy(s); }
static inline cudaError_t cudaStreamSynchronize(cudaStream_t s) { return cudasim_stream_synchronize(s); }
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned = 0) { return cudasim_stream_wait(s, e); }
static inline cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudasim_event_create(e); }
static inline cudaError_t cudaEventDestroy(cudaEvent_t e) { return cudasim_event_destroy(e); }
static inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s = nullptr) { return cudasim_event_record(e, s); }
static inline cudaError_t cudaEventSynchronize(cudaEvent_t e) { return cudasim_event_synchronize(e); }
static inline cudaError_t cudaGetLastError(void) { return cudasim_last_error(0); }
static inline cudaError_t cudaPeekAtLastError(void) { return cudasim_last_error(1); }
static inline const char *cudaGetErrorString(cudaError_t e) { return cudasim_error_string(e); }
static inline cudaError_t cudaGetDeviceCount(int *n)
{
    *n = cudasim_devices();
    return cudaSuccess;
}
static inline cudaError_t cudaGetDevice(int *device)
{
    *device = cudasim_device();
    return cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int device) { return cudasim_use(device); }
static inline cudaError_t cudaDeviceReset(void)
{
    cudasim_reset();
    return cudaSuccess;
}

static inline cudaError_t cudaDriverGetVersion(int *version)
{
    *version = cudasim_has_library("conditions") ? CUDART_VERSION : 12030;
    return cudaSuccess;
}

/* ---- graphs ---- */

typedef cudaGraph_t cudaGraphExec_t;
typedef cudasim_node cudaGraphNode_t;
typedef uint64_t cudaGraphConditionalHandle;
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaGraphCondAssignDefault = 1 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaStreamUpdateCaptureDependenciesFlags { cudaStreamAddCaptureDependencies, cudaStreamSetCaptureDependencies };
enum cudaGraphNodeType { cudaGraphNodeTypeConditional = 13 };
enum cudaGraphConditionalNodeType { cudaGraphCondTypeIf, cudaGraphCondTypeWhile, cudaGraphCondTypeSwitch };
struct cudaGraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
};
struct cudaConditionalNodeParams {
    cudaGraphConditionalHandle   handle;
    cudaGraphConditionalNodeType type;
    unsigned                     size;
    cudaGraph_t                 *phGraph_out;
};
struct cudaGraphNodeParams {
    cudaGraphNodeType         type;
    cudaConditionalNodeParams conditional;
};

static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) { return cudasim_stream_create(s); }
static inline cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
    static thread_local cudaStreamCaptureMode now = cudaStreamCaptureModeGlobal;
    const cudaStreamCaptureMode was = now;
    now = *mode;
    *mode = was;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) { return cudasim_capture_begin(s); }
static inline cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t s, cudaGraph_t g, const cudaGraphNode_t *behind, const cudaGraphEdgeData *, size_t n, cudaStreamCaptureMode)
{
    return cudasim_capture_begin_to(s, g, behind, n);
}
static inline cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *is)
{
    *is = cudasim_stream_is_capturing(s) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus *is, unsigned long long *id = nullptr, cudaGraph_t *g = nullptr,
                                                   const cudaGraphNode_t **behind = nullptr, const cudaGraphEdgeData **edges = nullptr, size_t *n = nullptr)
{
    cudaGraph_t            graph;
    const cudaGraphNode_t *nodes;
    size_t                 n_nodes;
    *is = cudasim_capture_info(s, &graph, &nodes, &n_nodes) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (*is == cudaStreamCaptureStatusNone)
        return cudaSuccess;
    if (id)
        *id = 1;
    if (g)
        *g = graph;
    if (behind)
        *behind = nodes;
    if (edges)
        *edges = nullptr;
    if (n)
        *n = n_nodes;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t *behind, const cudaGraphEdgeData *, size_t n, unsigned flags = 0)
{
    return flags == cudaStreamSetCaptureDependencies ? cudasim_capture_wait(s, behind, n) : cudaErrorNotSupported; /* a graph is a line here */
}
static inline cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) { return cudasim_capture_end(s, g); }
static inline cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t g, unsigned first = 0, unsigned flags = 0)
{
    return cudasim_condition_create(handle, g, first, flags);
}
static inline cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t g, const cudaGraphNode_t *behind, const cudaGraphEdgeData *, size_t n, cudaGraphNodeParams *params)
{
    cudaConditionalNodeParams *c = &params->conditional;
    if (params->type != cudaGraphNodeTypeConditional)
        return cudaErrorNotSupported;
    return cudasim_graph_add_conditional(node, g, behind, n, c->handle, static_cast<enum cudasim_conditional>(c->type), c->size, &c->phGraph_out);
}
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long = 0) { return cudasim_graph_instantiate(x, g); }
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) { return cudasim_graph_launch(x, s); }
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x) { return cudasim_graph_destroy(x); }
static inline cudaError_t cudaGraphDestroy(cudaGraph_t g) { return cudasim_graph_destroy(g); }
static inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) { cudasim_set_condition(handle, value); }

template <typename T> static inline cudaError_t cudaGetSymbolAddress(void **at, const T &symbol)
{
    *at = const_cast<void *>(reinterpret_cast<const void *>(&symbol));
    return cudaSuccess;
}

/* ---- a kernel's calls ---- */

static inline void __syncthreads(int line = __builtin_LINE()) { cudasim_barrier(line, 0); }
static inline int  __syncthreads_count(int is, int line = __builtin_LINE()) { return cudasim_barrier(line, is); }
static inline int  __syncthreads_or(int is, int line = __builtin_LINE()) { return cudasim_barrier(line, is) != 0; }
static inline int  __syncthreads_and(int is, int line = __builtin_LINE()) { return cudasim_barrier(line, !is) == 0; }
static inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) { cudasim_warp_barrier(mask, line); }
static inline void __threadfence(void) {}
static inline void __threadfence_block(void) {}
static inline unsigned __activemask(void) { return cudasim_active(); }
static inline unsigned __ballot_sync(unsigned mask, int is, int line = __builtin_LINE()) { return cudasim_ballot(mask, is, line); }
static inline int  __any_sync(unsigned mask, int is, int line = __builtin_LINE()) { return cudasim_ballot(mask, is, line) != 0; }
static inline int  __all_sync(unsigned mask, int is, int line = __builtin_LINE()) { return cudasim_ballot(mask, !is, line) == 0; }

/* The lane's number as kernels know it. */
static inline unsigned cudasim_lane(void)
{
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}

template <typename T> static inline T cudasim_exchange(unsigned mask, T value, unsigned from, int line)
{
    uint64_t bits = 0;
    T        result;
    static_assert(sizeof(T) <= sizeof bits, "a shuffle moves 8 bytes at most");
    memcpy(&bits, &value, sizeof value);
    bits = cudasim_shuffle(mask, bits, from, line);
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* A lane that is out of its group of `width` keeps its own value. */
template <typename T> static inline T __shfl_sync(unsigned mask, T v, int from, int width = 32, int line = __builtin_LINE())
{
    const unsigned w = (unsigned)width, lane = cudasim_lane();
    return cudasim_exchange(mask, v, lane / w * w + (unsigned)from % w, line);
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, int line = __builtin_LINE())
{
    const unsigned lane = cudasim_lane();
    return cudasim_exchange(mask, v, lane % (unsigned)width < by ? lane : lane - by, line);
}
template <typename T> static inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, int line = __builtin_LINE())
{
    const unsigned lane = cudasim_lane();
    return cudasim_exchange(mask, v, lane % (unsigned)width + by >= (unsigned)width ? lane : lane + by, line);
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32, int line = __builtin_LINE())
{
    const unsigned w = (unsigned)width, lane = cudasim_lane(), other = lane ^ (unsigned)with;
    return cudasim_exchange(mask, v, other / w > lane / w ? lane : other, line);
}

/* The element is looked at once, as one access that is atomic; nobody runs in between. */
#define CUDASIM_ATOMIC static __attribute__((noinline, no_sanitize_thread, unused))
#define CUDASIM_UPDATE(name, T, expression)         \
    CUDASIM_ATOMIC T name(T *p, T v)                \
    {                                               \
        cudasim_atomic(p, sizeof *p, __builtin_return_address(0));           \
        const T old = *p;                           \
        *p = expression;                            \
        return old;                                 \
    }
CUDASIM_UPDATE(atomicAdd, int, (int)((unsigned)old + (unsigned)v))
CUDASIM_UPDATE(atomicAdd, unsigned, old + v)
CUDASIM_UPDATE(atomicAdd, unsigned long long, old + v)
CUDASIM_UPDATE(atomicAdd, float, old + v)
CUDASIM_UPDATE(atomicAdd, double, old + v)
CUDASIM_UPDATE(atomicSub, int, (int)((unsigned)old - (unsigned)v))
CUDASIM_UPDATE(atomicSub, unsigned, old - v)
#define CUDASIM_INTEGERS(T)                            \
    CUDASIM_UPDATE(atomicMin, T, old < v ? old : v)    \
    CUDASIM_UPDATE(atomicMax, T, old > v ? old : v)    \
    CUDASIM_UPDATE(atomicAnd, T, old & v)              \
    CUDASIM_UPDATE(atomicOr, T, old | v)               \
    CUDASIM_UPDATE(atomicXor, T, old ^ v)
CUDASIM_INTEGERS(int)
CUDASIM_INTEGERS(unsigned)
CUDASIM_INTEGERS(long long)
CUDASIM_INTEGERS(unsigned long long)
CUDASIM_UPDATE(atomicExch, int, v)
CUDASIM_UPDATE(atomicExch, unsigned, v)
CUDASIM_UPDATE(atomicExch, unsigned long long, v)
CUDASIM_UPDATE(atomicExch, float, v)
#define CUDASIM_COMPARE(T)                           \
    CUDASIM_ATOMIC T atomicCAS(T *p, T was, T v)     \
    {                                                \
        cudasim_atomic(p, sizeof *p, __builtin_return_address(0));            \
        const T old = *p;                            \
        *p = old == was ? v : old;                   \
        return old;                                  \
    }
CUDASIM_COMPARE(unsigned short)
CUDASIM_COMPARE(int)
CUDASIM_COMPARE(unsigned)
CUDASIM_COMPARE(unsigned long long)
#undef CUDASIM_COMPARE
#undef CUDASIM_INTEGERS
#undef CUDASIM_UPDATE
#undef CUDASIM_ATOMIC

template <typename T> static inline T __ldg(const T *p) { return *p; }
static inline float  rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline int    __popc(unsigned x) { return __builtin_popcount(x); }
static inline int    __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int    __ffs(int x) { return __builtin_ffs(x); }

#define CUDASIM_BITS(name, To, From)        \
    static inline To name(From x)           \
    {                                       \
        To y;                               \
        memcpy(&y, &x, sizeof y);           \
        return y;                           \
    }
CUDASIM_BITS(__float_as_int, int, float)
CUDASIM_BITS(__float_as_uint, unsigned, float)
CUDASIM_BITS(__int_as_float, float, int)
CUDASIM_BITS(__uint_as_float, float, unsigned)
CUDASIM_BITS(__double_as_longlong, long long, double)
CUDASIM_BITS(__longlong_as_double, double, long long)
#undef CUDASIM_BITS

#endif
