/* Loops and branches that the device decides, on the host's side of the text. The same lines do two things:
 *
 *     hlo_choice loop_1 = hlo_begin_choice();
 *     while (1) {
 *         (launches of the condition)
 *         if (!hlo_goes_on(flow, &stream, &loop_1, v_pred))
 *             break;
 *         (launches of the body)
 *     }
 *
 * Work that runs: hlo_goes_on reads the predicate back, and waits for it. Work that is captured: the first time it adds a conditional node and goes on capturing on a stream of the node's
 * body, the second time the body, which ends with the condition, is complete. A kernel of one thread brings the predicate into the node's condition.
 *
 *     hlo_choice branch_2 = hlo_begin_choice();
 *     while (hlo_next_branch(flow, &stream, &branch_2, args[4], 3, 0))
 *         switch (branch_2.at) {
 *
 * likewise goes once through the branch that is chosen, or in turn through all of them.
 *
 * NAME_enqueue makes such a graph itself when it gets the same arrays for the second time in a row, and launches it from then on: nothing is read back. Where the toolkit, the driver or the device has no
 * such nodes everything is as the first time. */
#include "target-cuda/flow.h"
#include "support/diag.h"

enum { MOST_LAUNCHES = 20000 }; /* in a graph that is made by itself: loops that count are as many launches as they have */

static bool is_choice(const Step *s)
{
    return s->kind == STEP_IF || (s->kind == STEP_WHILE && s->n_buffers > 0);
}

bool cuda_has_choices(const Program *p)
{
    for (int32_t k = 0; k < p->n_steps; k++)
        if (is_choice(p->steps[k]))
            return true;
    return false;
}

/* Random numbers are the host's: a graph would have the same again. Devices meet when the host comes there. Libraries' working memory is allocated, which may not be in a loop's body. */
static const char *hindrance(const Step *s);
static const char *hindrance_in(const Block *x)
{
    const char *why = NULL;
    for (int32_t k = 0; k < x->n && !why; k++)
        why = hindrance(x->v[k]);
    return why;
}

static const char *hindrance(const Step *s)
{
    const char *why = s->kind == STEP_RANDOM || s->kind == STEP_SEED ? "random numbers" : s->kind == STEP_CALL && !s->call->routine ? "a library's call"
                    : s->kind == STEP_EXCHANGE || s->kind == STEP_CHECK ? "devices that meet" : hindrance_in(&s->condition);
    for (int32_t k = 0; k < s->n_blocks && !why; k++)
        why = hindrance_in(&s->blocks[k]);
    return why;
}

const char *cuda_choice_hindrance(const Step *s)
{
    return hindrance(s);
}

/* How many choices stand inside of each other. A loop's condition is part of its body, too. */
static int32_t depth_of(const Block *x)
{
    int32_t deepest = 0;
    for (int32_t k = 0; k < x->n; k++) {
        const Step *s = x->v[k];
        int32_t     inner = depth_of(&s->condition);
        for (int32_t j = 0; j < s->n_blocks; j++) {
            const int32_t d = depth_of(&s->blocks[j]);
            inner = d > inner ? d : inner;
        }
        inner += is_choice(s);
        deepest = inner > deepest ? inner : deepest;
    }
    return deepest;
}

/* Launches and copies in a graph of x, MOST_LAUNCHES + 1 when there are more. */
static int64_t launches_of(const Block *x)
{
    int64_t n = 0;
    for (int32_t k = 0; k < x->n && n <= MOST_LAUNCHES; k++) {
        const Step *s = x->v[k];
        int64_t     of = (s->n_blocks == 0) + 2 * launches_of(&s->condition);
        for (int32_t j = 0; j < s->n_blocks; j++)
            of += launches_of(&s->blocks[j]);
        if (s->kind == STEP_WHILE && s->n_buffers == 0)
            of = s->trips > 0 && of > MOST_LAUNCHES / s->trips ? MOST_LAUNCHES + 1 : of * s->trips;
        n += of;
    }
    return n > MOST_LAUNCHES ? MOST_LAUNCHES + 1 : n;
}

bool cuda_replays(const Program *p)
{
    return cuda_has_choices(p) && !p->on_devices && !hindrance_in(&p->body) && launches_of(&p->body) <= MOST_LAUNCHES;
}

int32_t cuda_branches(const Step *s)
{
    return s->n_blocks == 2 && s->blocks[1].n == 0 && s->buffers[0]->shape->type == TYPE_PRED ? 1 : s->n_blocks;
}

/* Loops and branches of one body came first. */
static int32_t toolkit(const Program *p)
{
    for (int32_t k = 0; k < p->n_steps; k++)
        if (p->steps[k]->kind == STEP_IF && cuda_branches(p->steps[k]) > 1)
            return 12080;
    return 12040;
}

void cuda_flow_guard(Buf *b, const Program *p)
{
    buf_printf(b, "\n#if CUDART_VERSION >= %d && !defined(HLO_NO_CONDITIONS)\n#define HLO_CONDITIONS %d\n#endif\n", toolkit(p), toolkit(p));
}

static const char set_condition[] =
    "\n#ifdef HLO_CONDITIONS\n"
    "/* Of no branches: the predicate of a loop; else the branch that a number names, what is out of range the last one. */\n"
    "static __global__ void hlo_condition_kernel(cudaGraphConditionalHandle handle, const void *value, int32_t branches, int pred)\n"
    "{\n"
    "    if (pred)\n"
    "        cudaGraphSetConditional(handle, *(const uint8_t *)value != 0);\n"
    "    else\n"
    "        cudaGraphSetConditional(handle, *(const int32_t *)value < 0 || *(const int32_t *)value >= branches ? branches - 1 : *(const int32_t *)value);\n"
    "}\n"
    "\n%s cudaError_t %s_condition(cudaStream_t stream, cudaGraphConditionalHandle handle, const void *value, int32_t branches, int pred)\n"
    "{\n"
    "    return hlo_launch(stream, 1, 1, hlo_condition_kernel, handle, value, branches, pred);\n"
    "}\n"
    "#endif\n";

void cuda_flow_kernels(Buf *b, const char *linkage, const char *prefix)
{
    buf_printf(b, set_condition, linkage, prefix);
}

void cuda_flow_prototype(Buf *b, const char *prefix)
{
    buf_printf(b, "#ifdef HLO_CONDITIONS\n"
                  "extern cudaError_t %s_condition(cudaStream_t stream, cudaGraphConditionalHandle handle, const void *value, int32_t branches, int pred);\n"
                  "#endif\n",
               prefix);
}

static const char types[] =
    "\n/* Where work goes: to the caller's stream, or, while it is captured, to that of the body of the innermost conditional node. */\n"
    "typedef struct hlo_flow {\n"
    "    cudaStream_t streams[%d];\n"
    "    int          depth, captures;\n"
    "    cudaError_t  status;\n"
    "} hlo_flow;\n"
    "\n/* A loop or a branch. */\n"
    "typedef struct hlo_choice {\n"
    "    int at; /* the branch that is done, -1: none yet */\n"
    "#ifdef HLO_CONDITIONS\n"
    "    cudaGraphConditionalHandle handle;\n"
    "    cudaGraph_t               *bodies;\n"
    "#endif\n"
    "} hlo_choice;\n"
    "\nstatic hlo_choice hlo_begin_choice(void)\n"
    "{\n"
    "    hlo_choice x;\n"
    "    __builtin_memset(&x, 0, sizeof x);\n"
    "    x.at = -1;\n"
    "    return x;\n"
    "}\n"
    "\nstatic cudaError_t hlo_read(cudaStream_t stream, void *to, const void *from, size_t bytes)\n"
    "{\n"
    "    cudaError_t e = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);\n"
    "    return e ? e : cudaStreamSynchronize(stream);\n"
    "}\n";

static const char nodes[] =
    "\n#ifdef HLO_CONDITIONS\n"
    "#if CUDART_VERSION >= 13000\n"
    "#define HLO_CUDA_13(now, before) now\n"
    "#else\n"
    "#define HLO_CUDA_13(now, before) before\n"
    "#endif\n"
    "#ifdef __cplusplus\n"
    "#define HLO_ZEROS {}\n"
    "#else\n"
    "#define HLO_ZEROS { 0 }\n"
    "#endif\n"
    "\n/* A node behind what is captured, whose condition is set right before it. */\n"
    "static cudaError_t hlo_add_node(hlo_flow *flow, hlo_choice *x, enum cudaGraphConditionalNodeType type, const void *value, int32_t branches, int pred)\n"
    "{\n"
    "    const cudaStream_t           stream = flow->streams[flow->depth];\n"
    "    enum cudaStreamCaptureStatus is;\n"
    "    struct cudaGraphNodeParams   params = HLO_ZEROS;\n"
    "    const cudaGraphNode_t       *behind = NULL;\n"
    "    const cudaGraphEdgeData     *edges = NULL;\n"
    "    cudaGraphNode_t              node;\n"
    "    cudaGraph_t                  graph = NULL;\n"
    "    size_t                       n = 0;\n"
    "    cudaError_t                  e = HLO_CUDA_13(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_v3)(stream, &is, NULL, &graph, &behind, &edges, &n);\n"
    "    e = e ? e : cudaGraphConditionalHandleCreate(&x->handle, graph, 0, 0);\n"
    "    e = e ? e : %s_condition(stream, x->handle, value, branches, pred);\n"
    "    e = e ? e : HLO_CUDA_13(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_v3)(stream, &is, NULL, &graph, &behind, &edges, &n);\n"
    "    params.type = cudaGraphNodeTypeConditional;\n"
    "    params.conditional.handle = x->handle;\n"
    "    params.conditional.type = type;\n"
    "    params.conditional.size = (unsigned)branches;\n"
    "    e = e ? e : HLO_CUDA_13(cudaGraphAddNode, cudaGraphAddNode_v2)(&node, graph, behind, edges, n, &params);\n"
    "    x->bodies = params.conditional.phGraph_out;\n"
    "    return e ? e : HLO_CUDA_13(cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_v2)(stream, &node, NULL, 1, cudaStreamSetCaptureDependencies);\n"
    "}\n"
    "\n/* A new stream, made though others are captured. */\n"
    "static cudaError_t hlo_new_stream(cudaStream_t *to)\n"
    "{\n"
    "    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;\n"
    "    cudaError_t                e = cudaThreadExchangeStreamCaptureMode(&mode);\n"
    "    e = e ? e : cudaStreamCreateWithFlags(to, cudaStreamNonBlocking);\n"
    "    cudaThreadExchangeStreamCaptureMode(&mode);\n"
    "    return e;\n"
    "}\n"
    "\nstatic cudaError_t hlo_begin_body(hlo_flow *flow, cudaGraph_t body)\n"
    "{\n"
    "    cudaStream_t *inner = &flow->streams[flow->depth + 1];\n"
    "    cudaError_t   e = *inner ? cudaSuccess : hlo_new_stream(inner);\n"
    "    e = e ? e : cudaStreamBeginCaptureToGraph(*inner, body, NULL, NULL, 0, cudaStreamCaptureModeRelaxed);\n"
    "    flow->depth += !e;\n"
    "    return e;\n"
    "}\n"
    "\nstatic cudaError_t hlo_end_body(hlo_flow *flow)\n"
    "{\n"
    "    cudaGraph_t body;\n"
    "    return cudaStreamEndCapture(flow->streams[flow->depth--], &body);\n"
    "}\n"
    "#endif\n";

static const char choosing[] =
    "\nstatic void hlo_begin_flow(hlo_flow *flow, cudaStream_t stream)\n"
    "{\n"
    "    __builtin_memset(flow, 0, sizeof *flow);\n"
    "    flow->streams[0] = stream;\n"
    "#ifdef HLO_CONDITIONS\n"
    "    enum cudaStreamCaptureStatus is = cudaStreamCaptureStatusNone;\n"
    "    int                          driver = 0;\n"
    "    flow->captures = !cudaStreamIsCapturing(stream, &is) && is == cudaStreamCaptureStatusActive && !cudaDriverGetVersion(&driver) && driver >= HLO_CONDITIONS;\n"
    "#endif\n"
    "}\n"
    "\nstatic void hlo_end_flow(hlo_flow *flow)\n"
    "{\n"
    "#ifdef HLO_CONDITIONS\n"
    "    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;\n"
    "    while (flow->depth > 0) /* after a failure */\n"
    "        hlo_end_body(flow);\n"
    "    cudaThreadExchangeStreamCaptureMode(&mode);\n"
    "    for (unsigned k = 1; k < sizeof flow->streams / sizeof flow->streams[0]; k++)\n"
    "        if (flow->streams[k])\n"
    "            cudaStreamDestroy(flow->streams[k]);\n"
    "    cudaThreadExchangeStreamCaptureMode(&mode);\n"
    "#else\n"
    "    (void)flow;\n"
    "#endif\n"
    "}\n";

static const char looping[] =
    "\n/* Is there another iteration? Of a loop that becomes a node there is one. */\n"
    "static int hlo_goes_on(hlo_flow *flow, cudaStream_t *stream, hlo_choice *x, const void *pred)\n"
    "{\n"
    "    uint8_t on = 0;\n"
    "#ifdef HLO_CONDITIONS\n"
    "    if (flow->captures) {\n"
    "        cudaError_t e = ++x->at == 0 ? hlo_add_node(flow, x, cudaGraphCondTypeWhile, pred, 1, 1) : %s_condition(*stream, x->handle, pred, 1, 1);\n"
    "        e = e ? e : x->at == 0 ? hlo_begin_body(flow, x->bodies[0]) : hlo_end_body(flow);\n"
    "        *stream = flow->streams[flow->depth];\n"
    "        flow->status = e;\n"
    "        return !e && x->at == 0;\n"
    "    }\n"
    "#endif\n"
    "    (void)x;\n"
    "    flow->status = hlo_read(*stream, &on, pred, 1);\n"
    "    return !flow->status && on;\n"
    "}\n";

static const char branching[] =
    "\n/* The number of the next branch, x->at. There is one, or none; of what becomes a node there are all in turn. */\n"
    "static int hlo_next_branch(hlo_flow *flow, cudaStream_t *stream, hlo_choice *x, const void *value, int32_t branches, int pred)\n"
    "{\n"
    "    uint8_t on = 0;\n"
    "    int32_t chosen = 0;\n"
    "#ifdef HLO_CONDITIONS\n"
    "    if (flow->captures) {\n"
    "        cudaError_t e = x->at < 0 ? hlo_add_node(flow, x, pred ? cudaGraphCondTypeIf : cudaGraphCondTypeSwitch, value, branches, pred) : hlo_end_body(flow);\n"
    "        x->at++;\n"
    "        e = e ? e : x->at < branches ? hlo_begin_body(flow, x->bodies[x->at]) : cudaSuccess;\n"
    "        *stream = flow->streams[flow->depth];\n"
    "        flow->status = e;\n"
    "        return !e && x->at < branches;\n"
    "    }\n"
    "#endif\n"
    "    flow->status = cudaSuccess;\n"
    "    if (x->at >= 0)\n"
    "        return 0;\n"
    "    flow->status = hlo_read(*stream, pred ? (void *)&on : (void *)&chosen, value, pred ? sizeof on : sizeof chosen);\n"
    "    x->at = pred ? !on : chosen < 0 || chosen >= branches ? branches - 1 : chosen;\n"
    "    return !flow->status && x->at < branches;\n"
    "}\n";

static bool any(const Program *p, StepKind kind)
{
    for (int32_t k = 0; k < p->n_steps; k++)
        if (p->steps[k]->kind == kind && is_choice(p->steps[k]))
            return true;
    return false;
}

void cuda_flow_services(Buf *b, const Program *p, const char *prefix)
{
    buf_printf(b, types, depth_of(&p->body) + 1);
    buf_printf(b, nodes, prefix);
    buf_puts(b, choosing);
    if (any(p, STEP_WHILE))
        buf_printf(b, looping, prefix);
    if (any(p, STEP_IF))
        buf_puts(b, branching);
}

/* ---- the graph of all ---- */

static const char replaying[] =
    "\n#ifdef HLO_CONDITIONS\n"
    "/* A graph of all the work on these arrays. */\n"
    "typedef struct hlo_replay {\n"
    "    int             device, known, refused;\n"
    "    const void     *arrays[%d];\n"
    "    cudaGraphExec_t graph; /* NULL: there is none yet */\n"
    "} hlo_replay;\n"
    "\nstatic pthread_mutex_t hlo_replay_lock = PTHREAD_MUTEX_INITIALIZER;\n"
    "static hlo_replay      hlo_last;\n"
    "\n/* NULL: it cannot be made. */\n"
    "static cudaGraphExec_t hlo_make_graph(const void *const *args, void *const *results, void *scratch)\n"
    "{\n"
    "    cudaGraphExec_t made = NULL;\n"
    "    cudaGraph_t     graph = NULL;\n"
    "    cudaStream_t    stream;\n"
    "    hlo_flow        flow;\n"
    "    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))\n"
    "        return NULL;\n"
    "    cudaError_t e = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);\n"
    "    if (!e) {\n"
    "        hlo_begin_flow(&flow, stream);\n"
    "        const int failed = !flow.captures || %s_steps(NULL, &flow, args, results, scratch);\n"
    "        hlo_end_flow(&flow);\n"
    "        e = cudaStreamEndCapture(stream, &graph);\n"
    "        e = e ? e : failed ? cudaErrorNotSupported : cudaGraphInstantiate(&made, graph, 0);\n"
    "    }\n"
    "    if (graph)\n"
    "        cudaGraphDestroy(graph);\n"
    "    cudaStreamDestroy(stream);\n"
    "    return e ? NULL : made;\n"
    "}\n"
    "\n/* Launches it when it is the last call's or can be made because the last call had the same arrays. cudaErrorNotSupported: neither. */\n"
    "static cudaError_t hlo_launch_again(cudaStream_t stream, const void *const *args, void *const *results, void *scratch)\n"
    "{\n"
    "    hlo_replay  now;\n"
    "    cudaError_t e = cudaErrorNotSupported;\n"
    "    __builtin_memset(&now, 0, sizeof now);\n"
    "    if (cudaGetDevice(&now.device))\n"
    "        return e;\n"
    "    for (int k = 0; k < %d; k++)\n"
    "        now.arrays[k] = args[k];\n"
    "    for (int k = 0; k < %d; k++)\n"
    "        now.arrays[%d + k] = results[k];\n"
    "    now.arrays[%d] = scratch;\n"
    "    now.known = 1;\n"
    "    pthread_mutex_lock(&hlo_replay_lock);\n"
    "    hlo_replay *const last = &hlo_last;\n"
    "    if (!last->known || last->device != now.device || __builtin_memcmp(last->arrays, now.arrays, sizeof now.arrays) != 0) {\n"
    "        if (last->graph)\n"
    "            cudaGraphExecDestroy(last->graph);\n"
    "        *last = now;\n"
    "    } else if (!last->graph && !last->refused) {\n"
    "        last->graph = hlo_make_graph(args, results, scratch);\n"
    "        last->refused = !last->graph;\n"
    "    }\n"
    "    if (last->graph)\n"
    "        e = cudaGraphLaunch(last->graph, stream);\n"
    "    pthread_mutex_unlock(&hlo_replay_lock);\n"
    "    return e;\n"
    "}\n"
    "#endif\n";

void cuda_flow_replay(Buf *b, const Program *p)
{
    const int32_t n = p->n_args + p->n_results;
    buf_printf(b, replaying, n + 1, p->name, p->n_args, p->n_results, p->n_args, n);
}

void cuda_flow_enqueue(Buf *b, const Program *p)
{
    buf_puts(b, "    hlo_flow flow;\n"
                "    hlo_begin_flow(&flow, hlo_stream(env));\n");
    if (cuda_replays(p))
        buf_printf(b, "#ifdef HLO_CONDITIONS\n"
                      "    const cudaError_t again = flow.captures ? cudaErrorNotSupported : hlo_launch_again(flow.streams[0], args, results, scratch);\n"
                      "    if (again != cudaErrorNotSupported)\n"
                      "        return hlo_failed(env, \"%s_enqueue\", again);\n"
                      "#endif\n",
                   p->name);
    buf_printf(b, "    const int failed = %s_steps(env, &flow, args, results, scratch);\n"
                  "    hlo_end_flow(&flow);\n"
                  "    return failed;\n",
               p->name);
}
