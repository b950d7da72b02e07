/* A GPU made of a CPU: what cuda_runtime.h of this folder calls. C, so that a program may also be written against it directly.
 *
 * Kernels are C++ compiled by the system's compiler. Threads of a block are fibers of one host thread, one block runs at a time, and nothing depends on
 * time: a run gives the same bits and the same complaint again. There are several devices; threads of the host that call wait for each other. Streams are queues
 * whose work is done when somebody waits for it, as late as it may be.
 *
 * Whatever is wrong ends the launch, and from then on launches, copies and waiting return cudaErrorLaunchFailure; cudasim_error_string says what, in which kernel, block and
 * thread, and on which line. cudasim_reset makes the device new. Accesses are checked in code that was compiled with -fsanitize=thread (and linked without
 * it); barriers and warps are checked always. */
#ifndef CUDASIM_H
#define CUDASIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers as in CUDA. */
typedef enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInvalidDevice = 101,
    cudaErrorLaunchFailure = 719,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorUnknown = 999
} cudaError_t;

enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };

typedef struct cudasim_stream *cudaStream_t; /* NULL: the default stream, which is one as others */
typedef struct cudasim_event  *cudaEvent_t;
typedef struct cudasim_graph  *cudaGraph_t;

enum { CUDASIM_MOST_SHARED = 227 * 1024, CUDASIM_MOST_DEVICES = 64 };

struct uint3 { unsigned x, y, z; };
typedef struct uint3 uint3;

/* Of the thread that runs. */
extern uint3 cudasim_thread, cudasim_block, cudasim_block_size, cudasim_grid_size;

/* ---- for the host ---- */

typedef struct cudasim_launch {
    void      (*run)(const void *args); /* calls the kernel */
    const void *kernel;                 /* its address */
    const void *args;
    size_t      args_bytes;             /* copied */
    uint3       grid, block;
    size_t      shared_bytes;           /* dynamic shared memory, */
    void     *(*shared)(void);          /* and where it is, CUDASIM_MOST_SHARED bytes */
} cudasim_launch;

cudaError_t cudasim_enqueue_launch(const cudasim_launch *l, cudaStream_t s);
cudaError_t cudasim_allow_shared(const void *kernel, int64_t bytes); /* from now on, of dynamic shared memory; 48 KiB until then */
cudaError_t cudasim_enqueue_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudasim_enqueue_set(void *to, int byte, size_t bytes, cudaStream_t s);
cudaError_t cudasim_enqueue_call(void (*f)(void *), void *cookie, cudaStream_t s);

cudaError_t cudasim_enqueue_work(void (*f)(void *), const void *args, size_t bytes, cudaStream_t s); /* args are copied */

/* out[i, j] = act(alpha * (sum over l of lhs[i, l] rhs[l, j]) + beta * added[i, j] + bias[i]), for each member of a batch: what libraries do, as plain loops that add in
 * double. Distances are in elements. added is not read where beta is 0; bias: NULL, or a value for each row; a gelu is the form with tanh, a relu of what is no number 0. */
typedef enum cudasim_type {
    CUDASIM_F32, CUDASIM_F64, CUDASIM_F16, CUDASIM_BF16, CUDASIM_S8, CUDASIM_S32, CUDASIM_C64, CUDASIM_C128, CUDASIM_F8E4M3, CUDASIM_F8E5M2
} cudasim_type;
typedef enum cudasim_act { CUDASIM_NO_ACT, CUDASIM_RELU, CUDASIM_GELU } cudasim_act;
typedef struct cudasim_matrix {
    cudasim_type type;
    int64_t      row, col, batch;
} cudasim_matrix;
typedef struct cudasim_product {
    int64_t        m, n, k, batch;
    cudasim_matrix lhs, rhs, out, added;
    cudasim_type   bias;
    double         alpha, beta;
    cudasim_act    act;
} cudasim_product;
cudaError_t cudasim_enqueue_product(const cudasim_product *p, void *out, const void *lhs, const void *rhs, const void *added, const void *bias, cudaStream_t s);
/* result[n, k, p] = sum over c, w of image[n, c, stride p + dilation w - pre] filter[k, c, w], with c and k in groups; or the gradient by one of the factors in its place. Sums are added in double.
 * Arrays have no gaps; features are next to each other (last) or outside of the pixels. added, bias: NULL, or what is added to a result before the relu. */
typedef struct cudasim_convolution {
    int          way; /* what is computed: 0 the image, 1 the filter, 2 the result */
    cudasim_type type;
    int          n_spatial;
    bool         last, turned /* the filter is read backwards */, relu, coarse /* factors have 8 bits */;
    int64_t      image[5], filter[5], result[5];
    int64_t      pre[3], stride[3], dilation[3];
} cudasim_convolution;
cudaError_t cudasim_enqueue_convolution(const cudasim_convolution *c, void *image, void *filter, void *result, const void *added, const void *bias, cudaStream_t s);

/* A routine of LAPACK or BLAS by its Fortran name, as the library of the system has it. */
typedef enum cudasim_kind {
    CUDASIM_TEXT, CUDASIM_INT, CUDASIM_ARRAY, CUDASIM_ROOM /* working memory */, CUDASIM_ONE /* the number, in single precision where value is not 0 */,
    CUDASIM_TABLE /* on the device, of arrays of so many bytes, of which each call has its own */, CUDASIM_EACH /* likewise arrays side by side */
} cudasim_kind;
typedef struct cudasim_argument {
    cudasim_kind kind;
    int64_t      value; /* the letter; the number; bytes */
    const void  *array; /* on the device */
    size_t       align;
} cudasim_argument;
cudaError_t cudasim_enqueue_fortran(const char *symbol, const cudasim_argument *args, size_t n, cudaStream_t s);
cudaError_t cudasim_enqueue_fortran_batch(const char *symbol, int64_t calls, const cudasim_argument *args, size_t n, cudaStream_t s);

/* Sums over all j of in[j] exp(-+ 2 pi i j k / size), not divided; of a complex array beside a real one half of the last dimension is there. An input that becomes real numbers is destroyed. */
typedef struct cudasim_transform {
    int     rank;
    int64_t size[3], batch;
    bool    wide, from_real, to_real, inverse;
} cudasim_transform;
cudaError_t cudasim_enqueue_transform(const cudasim_transform *t, void *out, const void *in, cudaStream_t s);
/* Ranks that meet, each with a thread of the host that waits for its stream. Between the two ends of a group calls of one rank and stream become one. */
typedef struct cudasim_rank cudasim_rank;
typedef enum cudasim_meeting { CUDASIM_SEND, CUDASIM_RECEIVE, CUDASIM_ALL_GATHER, CUDASIM_BROADCAST } cudasim_meeting;
cudaError_t cudasim_ranks(cudasim_rank **to, int n); /* of the first n devices */
void        cudasim_rank_here(cudasim_rank *r, int *n, int *number); /* this thread works for it */
void        cudasim_rank_end(cudasim_rank *r, bool aborts);
cudaError_t cudasim_group(bool begins);
cudaError_t cudasim_communicate(cudasim_rank *r, cudasim_meeting kind, int other, const void *in, void *out, size_t bytes, cudaStream_t s); /* other: the partner, or the root */
double cudasim_half_value(uint16_t bits);
bool cudasim_has_library(const char *name); /* unless CUDASIM_WITHOUT names it */

/* Each thread of the host has a current device, the first until it says otherwise: whose default stream it means, for which it waits, where new streams are. */
int         cudasim_devices(void); /* CUDASIM_DEVICES, 64 */
int         cudasim_device(void);
cudaError_t cudasim_use(int device);

cudaError_t cudasim_malloc(void **p, size_t bytes); /* filled with bytes 255: NaNs */
cudaError_t cudasim_malloc_async(void **p, size_t bytes, cudaStream_t s);
cudaError_t cudasim_free_async(void *p, cudaStream_t s);
cudaError_t cudasim_free(void *p);                  /* when the work on all streams is done */

cudaError_t cudasim_stream_create(cudaStream_t *s);
cudaError_t cudasim_stream_destroy(cudaStream_t s);
cudaError_t cudasim_stream_synchronize(cudaStream_t s);
cudaError_t cudasim_device_synchronize(void);
cudaError_t cudasim_event_create(cudaEvent_t *e);
cudaError_t cudasim_event_destroy(cudaEvent_t e);
cudaError_t cudasim_event_record(cudaEvent_t e, cudaStream_t s);
cudaError_t cudasim_event_synchronize(cudaEvent_t e);
cudaError_t cudasim_stream_wait(cudaStream_t s, cudaEvent_t e);

/* Work that is enqueued between these becomes a graph instead; that of begin_to is added to a graph that there is, a body's, which end does not give. A stream that is
 * captured waits for the last node of its graph; whoever adds one says that the stream waits for it. */
typedef struct Work *cudasim_node;
cudaError_t cudasim_capture_begin(cudaStream_t s);
cudaError_t cudasim_capture_begin_to(cudaStream_t s, cudaGraph_t g, const cudasim_node *behind, size_t n);
bool        cudasim_stream_is_capturing(cudaStream_t s);
bool        cudasim_capture_info(cudaStream_t s, cudaGraph_t *g, const cudasim_node **behind, size_t *n);
cudaError_t cudasim_capture_wait(cudaStream_t s, const cudasim_node *behind, size_t n);
cudaError_t cudasim_capture_end(cudaStream_t s, cudaGraph_t *g); /* g may be NULL */
cudaError_t cudasim_graph_instantiate(cudaGraph_t *to, cudaGraph_t g); /* a copy that can be launched; checks what stands in it */
cudaError_t cudasim_graph_launch(cudaGraph_t g, cudaStream_t s);
cudaError_t cudasim_graph_destroy(cudaGraph_t g);

/* Nodes whose bodies the device chooses by a condition that a kernel sets. first: its value when a launch of the graph begins, where flags is 1. */
enum cudasim_conditional { CUDASIM_IF, CUDASIM_WHILE, CUDASIM_SWITCH };
cudaError_t cudasim_condition_create(uint64_t *handle, cudaGraph_t g, unsigned first, unsigned flags);
cudaError_t cudasim_graph_add_conditional(cudasim_node *node, cudaGraph_t g, const cudasim_node *behind, size_t n_behind, uint64_t handle, enum cudasim_conditional kind,
                                          unsigned n, cudaGraph_t **bodies);

cudaError_t cudasim_last_error(int keep);
const char *cudasim_error_string(cudaError_t e);
void        cudasim_reset(void);

/* ---- for kernels; line: of the call ---- */

int      cudasim_barrier(int line, int is); /* how many threads said `is` */
uint64_t cudasim_shuffle(unsigned mask, uint64_t value, unsigned from, int line); /* from: a lane of the warp */
unsigned cudasim_ballot(unsigned mask, int is, int line);
unsigned cudasim_active(void);              /* the lanes that have not ended */
void     cudasim_warp_barrier(unsigned mask, int line);
void     cudasim_atomic(const void *p, size_t bytes, const void *caller); /* is about to be read and written in one */
void     cudasim_set_condition(uint64_t handle, unsigned value);
void     cudasim_aligned(uintptr_t p, size_t bytes);  /* must be a multiple of that */

#ifdef __cplusplus
}
#endif
#endif
