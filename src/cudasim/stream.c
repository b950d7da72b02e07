/* Streams: queues of work. Nothing is done before somebody waits for a stream, an event or the device, so that a program which forgot to wait sees memory
 * as it was. What is copied from the host's memory is taken at once, as CUDA does it with memory that is not pinned. */
#include "cudasim/work.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct cudasim_stream {
    struct cudasim_graph queue;
    uint32_t             queued;  /* since it was last empty */
    cudaGraph_t          capture; /* NULL: work is queued */
    bool                 into;    /* the graph is somebody's: the body of a node */
    Work                *behind;  /* what the next captured piece waits for */
    cudaStream_t         next;
    bool                 busy;    /* a thread does its work, this one: */
    pthread_t            by;
};

struct cudasim_event {
    uint64_t     recorded, done; /* records that were queued, were reached */
    cudaStream_t stream;         /* of the last one */
};

typedef struct Device {
    struct cudasim_stream standard;
    cudaStream_t          streams;
    cudaError_t           last;
} Device;

static Device         devices[CUDASIM_MOST_DEVICES];
static pthread_key_t  current_key; /* each thread's number */
static pthread_once_t current_once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
    pthread_key_create(&current_key, NULL);
}

int cudasim_device(void)
{
    pthread_once(&current_once, make_key);
    return (int)(intptr_t)pthread_getspecific(current_key);
}

int cudasim_devices(void)
{
    const char *given = getenv("CUDASIM_DEVICES");
    const int   n = given ? atoi(given) : CUDASIM_MOST_DEVICES;
    return n > 0 && n < CUDASIM_MOST_DEVICES ? n : CUDASIM_MOST_DEVICES;
}

static cudaError_t failed(cudaError_t e)
{
    if (e != cudaSuccess)
        devices[cudasim_device()].last = e;
    return e;
}

cudaError_t cudasim_use(int device)
{
    if (device < 0 || device >= cudasim_devices())
        return failed(cudaErrorInvalidDevice);
    pthread_once(&current_once, make_key);
    return pthread_setspecific(current_key, (void *)(intptr_t)device) ? cudaErrorMemoryAllocation : cudaSuccess;
}

static struct cudasim_stream *stream_of(cudaStream_t s)
{
    return s ? s : &devices[cudasim_device()].standard;
}

/* ---- doing it ---- */

static void drain(cudaStream_t s, cudaEvent_t until, uint64_t turn);

void work_do(const Work *w)
{
    switch (w->kind) {
    case LAUNCH: cudasim_run(&w->launch); return;
    case COPY: memmove(w->to, w->from, w->bytes); return;
    case SET: memset(w->to, w->byte, w->bytes); return;
    case CALL: case LIBRARY: w->f(w->to); return;
    case RECORD: w->event->done = w->turn; return;
    case FREE:
        if (!w->allocates) /* a graph's comes again */
            cudasim_memory_give_back(w->to);
        return;
    case CONDITIONAL: choice_do(&w->choice); return;
    case GRAPH: graph_do(w->choice.bodies[0]); return;
    case WAIT:
        if (w->event->done < w->turn)
            drain(w->event->stream, w->event, w->turn);
        return;
    }
}

/* Does a stream's work in order: all of it, or until an event is reached. What another thread has begun it waits for. */
static void drain(cudaStream_t s, cudaEvent_t until, uint64_t turn)
{
    while (s->busy && !pthread_equal(s->by, pthread_self()) && !cudasim_has_fault())
        cudasim_wait();
    if (s->busy)
        return;
    s->busy = true;
    s->by = pthread_self();
    while (s->queue.first && !cudasim_has_fault() && !(until && until->done >= turn)) {
        Work *w = s->queue.first;
        s->queue.first = w->next;
        if (!w->next)
            s->queue.last = NULL;
        work_do(w);
        work_free(w);
    }
    s->busy = false;
    cudasim_wake();
}

static cudaError_t finish(cudaStream_t s)
{
    if (s->capture)
        return failed(cudaErrorStreamCaptureUnsupported);
    drain(s, NULL, 0);
    s->queued = 0;
    return failed(cudasim_has_fault() ? cudaErrorLaunchFailure : cudaSuccess);
}

static cudaError_t finish_all(void)
{
    cudaError_t e = finish(&devices[cudasim_device()].standard);
    for (cudaStream_t s = devices[cudasim_device()].streams; s && !e; s = s->next)
        e = finish(s);
    return e;
}

/* ---- queuing ---- */

Work *work_new(WorkKind kind, const void *held, size_t bytes)
{
    Work *w = calloc(1, sizeof *w + bytes);
    if (w) {
        w->kind = kind;
        w->held_bytes = bytes;
        if (bytes > 0)
            memcpy(w->held, held, bytes);
    }
    return w;
}

enum { MOST_QUEUED = 1 << 14 }; /* a queue has an end, as a device's: who adds the next one waits for all */

/* What follows a node that was added by hand has to wait for it. */
static bool is_behind(const struct cudasim_stream *s)
{
    if (s->behind == s->capture->last)
        return true;
    cudasim_fault(NULL, 0, "captured work does not wait for the node that was added before it");
    return false;
}

static cudaError_t capture(cudaStream_t s, Work *w)
{
    if (!is_behind(s)) {
        work_free(w);
        return failed(cudaErrorLaunchFailure);
    }
    graph_put(s->capture, w);
    s->behind = w;
    return cudaSuccess;
}

static cudaError_t put(cudaStream_t s, Work *w)
{
    if (!w)
        return failed(cudaErrorMemoryAllocation);
    if (s->capture)
        return capture(s, w);
    graph_put(&s->queue, w);
    if (++s->queued == MOST_QUEUED) {
        s->queued = 0;
        drain(s, NULL, 0);
    }
    return cudaSuccess;
}

static bool good_size(uint3 v, uint64_t most)
{
    return v.x > 0 && v.y > 0 && v.z > 0 && v.y <= 65535 && v.z <= 65535 && (uint64_t)v.x <= most;
}

static bool good_launch(const cudasim_launch *l)
{
    return good_size(l->grid, INT32_MAX) && good_size(l->block, MOST_THREADS) && l->block.y <= MOST_THREADS && l->block.z <= 64 &&
           (uint64_t)l->block.x * l->block.y * l->block.z <= MOST_THREADS && l->shared_bytes <= CUDASIM_MOST_SHARED;
}

enum { UNASKED_SHARED = 48 * 1024 };

/* What kernels may have of dynamic shared memory beyond that. */
typedef struct Allowance {
    const void       *kernel;
    int64_t           bytes;
    struct Allowance *next;
} Allowance;
static Allowance *allowances;

static Allowance *allowance_of(const void *kernel)
{
    Allowance *x = allowances;
    while (x && x->kernel != kernel)
        x = x->next;
    return x;
}

cudaError_t cudasim_allow_shared(const void *kernel, int64_t bytes)
{
    LOCKED;
    Allowance *x = allowance_of(kernel);
    if (bytes < 0 || bytes > CUDASIM_MOST_SHARED)
        return failed(cudaErrorInvalidValue);
    if (!x && !(x = calloc(1, sizeof *x)))
        return failed(cudaErrorMemoryAllocation);
    if (!x->kernel) {
        *x = (Allowance){ kernel, 0, allowances };
        allowances = x;
    }
    x->bytes = bytes;
    return cudaSuccess;
}

static bool is_allowed(const cudasim_launch *l)
{
    const Allowance *x = allowance_of(l->kernel);
    return l->shared_bytes <= UNASKED_SHARED || (x && (int64_t)l->shared_bytes <= x->bytes);
}

cudaError_t cudasim_enqueue_launch(const cudasim_launch *l, cudaStream_t s)
{
    LOCKED;
    cudaError_t e = cudaErrorLaunchFailure;
    if (!good_launch(l)) {
        e = cudaErrorInvalidConfiguration;
    } else if (!is_allowed(l)) {
        e = cudaErrorInvalidValue;
    } else if (!cudasim_has_fault()) {
        Work *w = work_new(LAUNCH, l->args, l->args_bytes);
        if (w) {
            w->launch = *l;
            w->launch.args = w->held;
        }
        e = put(stream_of(s), w);
    }
    return failed(e);
}

cudaError_t cudasim_enqueue_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s)
{
    LOCKED;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    bool hold = kind == cudaMemcpyHostToDevice && !stream_of(s)->capture;
    Range block;
    if (bytes == 0)
        return cudaSuccess;
    if ((to_device && !cudasim_memory_is_device(to, bytes)) || (from_device && !cudasim_memory_is_device(from, bytes)))
        return failed(cudaErrorInvalidValue);
    if ((!to_device && cudasim_memory_find(to, &block)) || (!from_device && cudasim_memory_find(from, &block)))
        return failed(cudaErrorInvalidMemcpyDirection);
    if (cudasim_has_fault())
        return failed(cudaErrorLaunchFailure);
    Work *w = work_new(COPY, from, hold ? bytes : 0);
    if (w) {
        w->to = to;
        w->from = hold ? w->held : from;
        w->bytes = bytes;
        w->on_host = !to_device || !from_device;
    }
    return put(stream_of(s), w);
}

cudaError_t cudasim_enqueue_set(void *to, int byte, size_t bytes, cudaStream_t s)
{
    LOCKED;
    if (bytes == 0)
        return cudaSuccess;
    if (!cudasim_memory_is_device(to, bytes))
        return failed(cudaErrorInvalidValue);
    Work *w = work_new(SET, NULL, 0);
    if (w) {
        w->to = to;
        w->byte = byte;
        w->bytes = bytes;
    }
    return put(stream_of(s), w);
}

/* Memory in the order of the stream is there at once, and holds nothing until its turn. A graph keeps what it has. */
cudaError_t cudasim_malloc_async(void **p, size_t bytes, cudaStream_t s)
{
    LOCKED;
    cudaError_t e = bytes > 0 ? cudasim_malloc(p, bytes) : cudaErrorInvalidValue;
    if (e)
        return failed(e);
    Work *w = work_new(SET, NULL, 0);
    if (w) {
        w->to = *p;
        w->byte = 0xff;
        w->bytes = bytes;
        w->allocates = cudasim_stream_is_capturing(s);
    }
    return put(stream_of(s), w);
}

cudaError_t cudasim_free_async(void *p, cudaStream_t s)
{
    LOCKED;
    Work *w = work_new(FREE, NULL, 0);
    if (w) {
        w->to = p;
        w->allocates = cudasim_stream_is_capturing(s);
    }
    return put(stream_of(s), w);
}

cudaError_t cudasim_enqueue_call(void (*f)(void *), void *cookie, cudaStream_t s)
{
    LOCKED;
    Work *w = work_new(CALL, NULL, 0);
    if (w) {
        w->f = f;
        w->to = cookie;
    }
    return put(stream_of(s), w);
}

cudaError_t cudasim_enqueue_work(void (*f)(void *), const void *args, size_t bytes, cudaStream_t s)
{
    LOCKED;
    if (cudasim_has_fault())
        return failed(cudaErrorLaunchFailure);
    Work *w = work_new(LIBRARY, args, bytes);
    if (w) {
        w->f = f;
        w->to = w->held;
    }
    return put(stream_of(s), w);
}

bool cudasim_stream_is_capturing(cudaStream_t s)
{
    LOCKED;
    return stream_of(s)->capture != NULL;
}

/* ---- streams and events ---- */

cudaError_t cudasim_stream_create(cudaStream_t *s)
{
    LOCKED;
    *s = calloc(1, sizeof **s);
    if (!*s)
        return failed(cudaErrorMemoryAllocation);
    (*s)->next = devices[cudasim_device()].streams;
    devices[cudasim_device()].streams = *s;
    return cudaSuccess;
}

cudaError_t cudasim_stream_destroy(cudaStream_t s)
{
    LOCKED;
    cudaError_t   e = finish(s);
    cudaStream_t *at = NULL;
    for (int k = 0; k < CUDASIM_MOST_DEVICES && (!at || !*at); k++)
        for (at = &devices[k].streams; *at && *at != s;)
            at = &(*at)->next;
    if (!*at)
        return failed(cudaErrorInvalidValue);
    *at = s->next;
    graph_drop(&s->queue);
    free(s);
    return e;
}

cudaError_t cudasim_stream_synchronize(cudaStream_t s)
{
    LOCKED;
    return finish(stream_of(s));
}

cudaError_t cudasim_device_synchronize(void)
{
    LOCKED;
    return finish_all();
}

cudaError_t cudasim_event_create(cudaEvent_t *e)
{
    LOCKED;
    *e = calloc(1, sizeof **e);
    return *e ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}

cudaError_t cudasim_event_destroy(cudaEvent_t e)
{
    LOCKED;
    cudaError_t status = cudasim_device_synchronize();
    free(e);
    return status;
}

static cudaError_t put_event(WorkKind kind, cudaEvent_t e, cudaStream_t s)
{
    Work *w = work_new(kind, NULL, 0);
    if (w) {
        w->event = e;
        w->turn = e->recorded;
    }
    return put(s, w);
}

cudaError_t cudasim_event_record(cudaEvent_t e, cudaStream_t s)
{
    LOCKED;
    e->recorded++;
    e->stream = stream_of(s);
    return put_event(RECORD, e, stream_of(s));
}

cudaError_t cudasim_stream_wait(cudaStream_t s, cudaEvent_t e)
{
    LOCKED;
    return put_event(WAIT, e, stream_of(s));
}

cudaError_t cudasim_event_synchronize(cudaEvent_t e)
{
    LOCKED;
    if (e->done < e->recorded)
        drain(e->stream, e, e->recorded);
    return failed(cudasim_has_fault() ? cudaErrorLaunchFailure : cudaSuccess);
}

/* ---- graphs ---- */

static bool may_capture(cudaStream_t s)
{
    return s && !s->capture; /* the default stream cannot be captured */
}

cudaError_t cudasim_capture_begin(cudaStream_t s)
{
    LOCKED;
    if (!may_capture(s))
        return failed(cudaErrorStreamCaptureUnsupported);
    s->capture = calloc(1, sizeof *s->capture);
    s->behind = NULL;
    s->into = false;
    return s->capture ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}

cudaError_t cudasim_capture_begin_to(cudaStream_t s, cudaGraph_t g, const cudasim_node *behind, size_t n)
{
    LOCKED;
    if (!may_capture(s) || !g)
        return failed(cudaErrorStreamCaptureUnsupported);
    if (g->last ? n != 1 || behind[0] != g->last : n != 0)
        return failed(cudaErrorNotSupported);
    s->capture = g;
    s->behind = g->last;
    s->into = true;
    return cudaSuccess;
}

bool cudasim_capture_info(cudaStream_t s, cudaGraph_t *g, const cudasim_node **behind, size_t *n)
{
    LOCKED;
    struct cudasim_stream *x = stream_of(s);
    if (!x->capture)
        return false;
    *g = x->capture;
    *behind = &x->behind;
    *n = x->behind != NULL;
    return true;
}

cudaError_t cudasim_capture_wait(cudaStream_t s, const cudasim_node *behind, size_t n)
{
    LOCKED;
    struct cudasim_stream *x = stream_of(s);
    if (!x->capture || n != 1)
        return failed(cudaErrorInvalidValue);
    x->behind = behind[0];
    return cudaSuccess;
}

cudaError_t cudasim_capture_end(cudaStream_t s, cudaGraph_t *g)
{
    LOCKED;
    if (!s || !s->capture)
        return failed(cudaErrorInvalidValue);
    const bool good = is_behind(s);
    if (g)
        *g = s->capture;
    s->capture = NULL;
    return failed(good ? cudaSuccess : cudaErrorLaunchFailure);
}

cudaError_t cudasim_graph_launch(cudaGraph_t g, cudaStream_t s)
{
    LOCKED;
    Work *w = g ? work_new(GRAPH, NULL, 0) : NULL;
    if (!g)
        return failed(cudaErrorInvalidValue);
    if (w && !graph_hold(w, g)) {
        free(w);
        w = NULL;
    }
    return put(stream_of(s), w);
}

/* ---- errors ---- */

cudaError_t cudasim_last_error(int keep)
{
    LOCKED;
    cudaError_t e = devices[cudasim_device()].last;
    if (!keep && !cudasim_has_fault())
        devices[cudasim_device()].last = cudaSuccess;
    return e;
}

const char *cudasim_error_string(cudaError_t e)
{
    LOCKED;
    switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidMemcpyDirection: return "invalid copy direction: the host's memory or the device's, the other is named";
    case cudaErrorLaunchFailure: return cudasim_fault_text();
    case cudaErrorNotSupported: return "operation not supported";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorUnknown: break;
    }
    return "unknown error";
}

void cudasim_reset(void)
{
    LOCKED;
    for (int k = 0; k < CUDASIM_MOST_DEVICES; k++) {
        graph_drop(&devices[k].standard.queue);
        for (cudaStream_t s = devices[k].streams; s; s = s->next)
            graph_drop(&s->queue);
        devices[k].last = cudaSuccess;
    }
    conditions_reset();
    cudasim_fault_clear();
    cudasim_memory_reset();
    cudasim_check_reset();
    for (Allowance *x; (x = allowances);) {
        allowances = x->next;
        free(x);
    }
}
