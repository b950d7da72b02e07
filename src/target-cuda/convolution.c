/* Convolutions by cuDNN's graphs. A launcher of a convolution that is one (emit/conv_graph.h), by itself or with a bias, a matrix that is added and a relu, asks the library first, and starts its
 * kernel when that has nothing: when the toolkit had no header, the library is not there, no engine of it takes these arrays and the working memory, or its plan would be made while work is captured.
 *
 *     #ifdef HLO_CUDNN
 *         // relu([8,56,56,64] with [128,3,3,64] + p2[128])
 *         static const hlo_convolution convolution = { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, ... };
 *         static hlo_graph *graphs;
 *         const cudaError_t done = hlo_convolve(&convolution, &graphs, stream, r0, p0, p1, NULL, p2, memory);
 *         if (done != cudaErrorNotSupported)
 *             return done;
 *     #endif
 *
 * Engines are taken in the library's order, but for those that round f32 before they multiply, sum in less than f32, give other bits from run to run, or transform tiles (Winograd, FFT), which
 * spreads infinities and what is no number to their neighbours. */
#include "emit/conv_graph.h"
#include "emit/kernel_ir.h"
#include "target-cuda/part.h"

#include <string.h>

bool cuda_is_convolution(const Program *p, int32_t function)
{
    ConvGraph g;
    return p->products && conv_graph_of_kernel(p->functions[function].kernel, &g);
}

/* ---- what is in front of everything ---- */

static const char types[] =
    "\n#ifdef HLO_CUDNN\n"
    "/* result[n, k, p] = sum over c, w of image[n, c, stride p + dilation w - pre] filter[k, c, w], or one of its gradients; sizes in this order, arrays without gaps. */\n"
    "struct hlo_convolution {\n"
    "    cudnnBackendDescriptorType_t way;\n"
    "    cudnnDataType_t              type;\n"
    "    cudnnConvolutionMode_t       mode;\n"
    "    bool                         last;      /* features are next to each other, else outside of the pixels */\n"
    "    int64_t                      n_spatial; /* 2 or 3 */\n"
    "    int64_t                      image[5], filter[5], result[5];\n"
    "    int64_t                      pre[3], post[3], stride[3], dilation[3];\n"
    "    bool                         relu;\n"
    "    int64_t                      work_bytes;\n"
    "};\n"
    "\n#define HLO_CUDNN_FUNCTIONS(F) \\\n"
    "    F(cudnnCreate) F(cudnnSetStream) F(cudnnBackendCreateDescriptor) F(cudnnBackendDestroyDescriptor) F(cudnnBackendSetAttribute) F(cudnnBackendGetAttribute) \\\n"
    "    F(cudnnBackendFinalize) F(cudnnBackendExecute)\n"
    "\n/* The library on one device, from the first convolution on to the process's end. */\n"
    "struct hlo_graph_library {\n"
    "    int           device;\n"
    "    cudnnHandle_t handle; /* NULL: it is not there */\n"
    "#define HLO_CUDNN_POINTER(name) decltype(&::name) name;\n"
    "    HLO_CUDNN_FUNCTIONS(HLO_CUDNN_POINTER)\n"
    "    hlo_graph_library *next;\n"
    "};\n"
    "\nenum { HLO_MOST_PARTS = 24 };\n"
    "\n/* How a convolution is done on one device with pointers that are multiples of `align`. */\n"
    "struct hlo_graph {\n"
    "    int                      device;\n"
    "    int64_t                  align;\n"
    "    cudnnBackendDescriptor_t plan; /* NULL: the library has none */\n"
    "    cudnnBackendDescriptor_t parts[HLO_MOST_PARTS]; /* what the plan is made of, which the library refers to */\n"
    "    int                      n_parts;\n"
    "    hlo_graph               *next;\n"
    "};\n"
    "\nstatic pthread_mutex_t    hlo_graph_lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists, and of the streams that handles are set to */\n"
    "static hlo_graph_library *hlo_graph_libraries;\n";

static const char opening[] =
    "\n#ifdef HLO_CUDNN_IS_LINKED\n"
    "static bool hlo_load_graphs(hlo_graph_library *x)\n"
    "{\n"
    "#define HLO_CUDNN_TAKE(name) x->name = ::name;\n"
    "    HLO_CUDNN_FUNCTIONS(HLO_CUDNN_TAKE)\n"
    "    return true;\n"
    "}\n"
    "#else\n"
    "#define HLO_CUDNN_FILE_OF(version) \"libcudnn.so.\" #version\n"
    "#define HLO_CUDNN_FILE(version) HLO_CUDNN_FILE_OF(version)\n"
    "/* The library of the header's major version. */\n"
    "static bool hlo_load_graphs(hlo_graph_library *x)\n"
    "{\n"
    "    void *file = dlopen(HLO_CUDNN_FILE(CUDNN_MAJOR), RTLD_NOW | RTLD_LOCAL);\n"
    "    bool  all = file != NULL;\n"
    "#define HLO_CUDNN_TAKE(name) all = all && (x->name = (decltype(x->name))dlsym(file, #name)) != NULL;\n"
    "    HLO_CUDNN_FUNCTIONS(HLO_CUDNN_TAKE)\n"
    "    return all;\n"
    "}\n"
    "#endif\n"
    "\nstatic const hlo_graph_library *hlo_graph_library_on(int device)\n"
    "{\n"
    "    hlo_graph_library *x = hlo_graph_libraries;\n"
    "    while (x && x->device != device)\n"
    "        x = x->next;\n"
    "    if (!x && (x = (hlo_graph_library *)calloc(1, sizeof *x)) != NULL) {\n"
    "        x->device = device;\n"
    "        x->next = hlo_graph_libraries;\n"
    "        hlo_graph_libraries = x;\n"
    "        if (!hlo_load_graphs(x) || x->cudnnCreate(&x->handle) != CUDNN_STATUS_SUCCESS)\n"
    "            x->handle = NULL;\n"
    "    }\n"
    "    return x && x->handle ? x : NULL;\n"
    "}\n";

/* Descriptors of what a plan is made of live as long as it does: the library keeps references to them. */
static const char describing[] =
    "\n/* What is being described; after a failure nothing more is. */\n"
    "struct hlo_description {\n"
    "    const hlo_graph_library *x;\n"
    "    bool                     good;\n"
    "    hlo_graph               *graph; /* keeps what is described; NULL: the caller destroys it */\n"
    "};\n"
    "\nstatic cudnnBackendDescriptor_t hlo_new(hlo_description *d, cudnnBackendDescriptorType_t type)\n"
    "{\n"
    "    cudnnBackendDescriptor_t x = NULL;\n"
    "    d->good = d->good && (!d->graph || d->graph->n_parts < HLO_MOST_PARTS - 1) && d->x->cudnnBackendCreateDescriptor(type, &x) == CUDNN_STATUS_SUCCESS;\n"
    "    if (d->graph && x)\n"
    "        d->graph->parts[d->graph->n_parts++] = x;\n"
    "    return x;\n"
    "}\n"
    "\nstatic void hlo_set(hlo_description *d, cudnnBackendDescriptor_t x, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *v)\n"
    "{\n"
    "    d->good = d->good && d->x->cudnnBackendSetAttribute(x, name, type, n, v) == CUDNN_STATUS_SUCCESS;\n"
    "}\n"
    "\nstatic void hlo_set_part(hlo_description *d, cudnnBackendDescriptor_t x, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t part)\n"
    "{\n"
    "    hlo_set(d, x, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);\n"
    "}\n"
    "\nstatic cudnnBackendDescriptor_t hlo_done(hlo_description *d, cudnnBackendDescriptor_t x)\n"
    "{\n"
    "    d->good = d->good && d->x->cudnnBackendFinalize(x) == CUDNN_STATUS_SUCCESS;\n"
    "    return x;\n"
    "}\n"
    "\nenum { HLO_IMAGE = 1, HLO_FILTER, HLO_RESULT, HLO_ADDED, HLO_BIAS, HLO_BETWEEN };\n"
    "\n/* in_memory: else it is a value between two operations. */\n"
    "static cudnnBackendDescriptor_t hlo_array(hlo_description *d, const hlo_convolution *p, const int64_t *size, int64_t id, bool in_memory, int64_t align)\n"
    "{\n"
    "    const int64_t                  rank = p->n_spatial + 2;\n"
    "    const cudnnDataType_t          type = in_memory ? p->type : CUDNN_DATA_FLOAT;\n"
    "    const bool                     between = !in_memory;\n"
    "    const cudnnBackendDescriptor_t x = hlo_new(d, CUDNN_BACKEND_TENSOR_DESCRIPTOR);\n"
    "    int64_t                        by[5], all = p->last ? size[1] : 1;\n"
    "    for (int64_t k = rank - 1; k >= 2; k--) {\n"
    "        by[k] = all;\n"
    "        all *= size[k];\n"
    "    }\n"
    "    by[1] = p->last ? 1 : all;\n"
    "    by[0] = p->last ? all : all * size[1];\n"
    "    hlo_set(d, x, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);\n"
    "    hlo_set(d, x, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, size);\n"
    "    hlo_set(d, x, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, by);\n"
    "    hlo_set(d, x, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);\n"
    "    hlo_set(d, x, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);\n"
    "    hlo_set(d, x, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &between);\n"
    "    return hlo_done(d, x);\n"
    "}\n"
    "\n/* How each of the three operations calls its parts. */\n"
    "struct hlo_way {\n"
    "    cudnnBackendDescriptorType_t type;\n"
    "    cudnnBackendAttributeName_t  image, filter, result, alpha, beta, window;\n"
    "};\n"
    "\nstatic hlo_way hlo_way_of(const hlo_convolution *p)\n"
    "{\n"
    "    static const hlo_way ways[] = {\n"
    "        { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,\n"
    "          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,\n"
    "          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC },\n"
    "        { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,\n"
    "          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,\n"
    "          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC },\n"
    "        { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,\n"
    "          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,\n"
    "          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC },\n"
    "    };\n"
    "    return ways[p->way == ways[1].type ? 1 : p->way == ways[2].type ? 2 : 0];\n"
    "}\n"
    "\nstatic cudnnBackendDescriptor_t hlo_sums(hlo_description *d, const hlo_convolution *p, cudnnBackendDescriptor_t result, int64_t align)\n"
    "{\n"
    "    const hlo_way                  way = hlo_way_of(p);\n"
    "    const cudnnDataType_t          sums = CUDNN_DATA_FLOAT;\n"
    "    const float                    one = 1, zero = 0;\n"
    "    const cudnnBackendDescriptor_t window = hlo_new(d, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR), x = hlo_new(d, way.type);\n"
    "    hlo_set(d, window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &p->n_spatial);\n"
    "    hlo_set(d, window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);\n"
    "    hlo_set(d, window, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &p->mode);\n"
    "    hlo_set(d, window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, p->n_spatial, p->pre);\n"
    "    hlo_set(d, window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, p->n_spatial, p->post);\n"
    "    hlo_set(d, window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, p->n_spatial, p->stride);\n"
    "    hlo_set(d, window, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, p->n_spatial, p->dilation);\n"
    "    hlo_set_part(d, x, way.window, hlo_done(d, window));\n"
    "    hlo_set_part(d, x, way.image, hlo_array(d, p, p->image, HLO_IMAGE, true, align));\n"
    "    hlo_set_part(d, x, way.filter, hlo_array(d, p, p->filter, HLO_FILTER, true, align));\n"
    "    hlo_set_part(d, x, way.result, result);\n"
    "    hlo_set(d, x, way.alpha, CUDNN_TYPE_FLOAT, 1, &one);\n"
    "    hlo_set(d, x, way.beta, CUDNN_TYPE_FLOAT, 1, &zero);\n"
    "    return hlo_done(d, x);\n"
    "}\n"
    "\n/* to = from + other, or of from alone. */\n"
    "static cudnnBackendDescriptor_t hlo_pointwise(hlo_description *d, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t from, cudnnBackendDescriptor_t other,\n"
    "                                              cudnnBackendDescriptor_t to)\n"
    "{\n"
    "    const cudnnDataType_t          type = CUDNN_DATA_FLOAT;\n"
    "    const cudnnBackendDescriptor_t what = hlo_new(d, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), x = hlo_new(d, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);\n"
    "    hlo_set(d, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);\n"
    "    hlo_set(d, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);\n"
    "    hlo_set_part(d, x, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, hlo_done(d, what));\n"
    "    hlo_set_part(d, x, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from);\n"
    "    if (other)\n"
    "        hlo_set_part(d, x, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, other);\n"
    "    hlo_set_part(d, x, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);\n"
    "    return hlo_done(d, x);\n"
    "}\n"
    "\n/* The operations: the sums, what is added, the bias, the relu. */\n"
    "static cudnnBackendDescriptor_t hlo_operations(hlo_description *d, const hlo_convolution *p, bool added, bool bias, int64_t align)\n"
    "{\n"
    "    const int64_t                  features[5] = { 1, p->result[1], 1, 1, 1 };\n"
    "    const int                      n = 1 + added + bias + p->relu;\n"
    "    const cudnnBackendDescriptor_t x = hlo_new(d, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);\n"
    "    cudnnBackendDescriptor_t       v[4], to[4];\n"
    "    for (int k = 0; k < n; k++)\n"
    "        to[k] = k + 1 == n ? hlo_array(d, p, p->result, HLO_RESULT, true, align) : hlo_array(d, p, p->result, HLO_BETWEEN + k, false, align);\n"
    "    v[0] = hlo_sums(d, p, to[0], align);\n"
    "    if (added)\n"
    "        v[1] = hlo_pointwise(d, CUDNN_POINTWISE_ADD, to[0], hlo_array(d, p, p->result, HLO_ADDED, true, align), to[1]);\n"
    "    if (bias)\n"
    "        v[1 + added] = hlo_pointwise(d, CUDNN_POINTWISE_ADD, to[added], hlo_array(d, p, features, HLO_BIAS, true, align), to[1 + added]);\n"
    "    if (p->relu)\n"
    "        v[n - 1] = hlo_pointwise(d, CUDNN_POINTWISE_RELU_FWD, to[n - 2], NULL, to[n - 1]);\n"
    "    hlo_set(d, x, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, v);\n"
    "    hlo_set(d, x, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &d->x->handle);\n"
    "    return hlo_done(d, x);\n"
    "}\n";

static const char planning[] =
    "\n/* Is the engine one whose results are those of plain sums in f32, the same at each run? */\n"
    "static bool hlo_is_plain(hlo_description d, const hlo_convolution *p, cudnnBackendDescriptor_t configuration)\n"
    "{\n"
    "    enum { MOST = 32 };\n"
    "    cudnnBackendDescriptor_t    engine = hlo_new(&d, CUDNN_BACKEND_ENGINE_DESCRIPTOR);\n"
    "    cudnnBackendNumericalNote_t notes[MOST];\n"
    "    int64_t                     n = 0;\n"
    "    bool                        plain = d.good && !d.x->cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);\n"
    "    n = 0;\n"
    "    plain = plain && !d.x->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, MOST, &n, notes);\n"
    "    for (int64_t k = 0; k < n && k < MOST && plain; k++)\n"
    "        plain = notes[k] == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP || (notes[k] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && p->type != CUDNN_DATA_FLOAT);\n"
    "    if (engine)\n"
    "        d.x->cudnnBackendDestroyDescriptor(engine);\n"
    "    return plain;\n"
    "}\n"
    "\n/* NULL: the engine takes something else, or more memory. */\n"
    "static cudnnBackendDescriptor_t hlo_plan_with(hlo_description d, const hlo_convolution *p, cudnnBackendDescriptor_t configuration)\n"
    "{\n"
    "    const cudnnBackendDescriptor_t plan = hlo_new(&d, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);\n"
    "    int64_t                        bytes = 0, n = 0;\n"
    "    hlo_set(&d, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &d.x->handle);\n"
    "    hlo_set_part(&d, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);\n"
    "    hlo_done(&d, plan);\n"
    "    if (d.good && !d.x->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes) && bytes <= p->work_bytes)\n"
    "        return plan;\n"
    "    if (plan)\n"
    "        d.x->cudnnBackendDestroyDescriptor(plan);\n"
    "    return NULL;\n"
    "}\n"
    "\n/* The library's first choice that is one. */\n"
    "static cudnnBackendDescriptor_t hlo_first_plan(hlo_description d, const hlo_convolution *p, cudnnBackendDescriptor_t operations, cudnnBackendHeurMode_t mode)\n"
    "{\n"
    "    enum { MOST = 64 };\n"
    "    hlo_graph                     *graph = d.graph;\n"
    "    d.graph = NULL;\n"
    "    const cudnnBackendDescriptor_t choice = hlo_new(&d, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);\n"
    "    cudnnBackendDescriptor_t       v[MOST] = {}, plan = NULL;\n"
    "    int64_t                        n = 0, used = -1;\n"
    "    hlo_set_part(&d, choice, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);\n"
    "    hlo_set(&d, choice, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);\n"
    "    hlo_done(&d, choice);\n"
    "    for (int k = 0; k < MOST; k++)\n"
    "        v[k] = hlo_new(&d, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);\n"
    "    if (!d.good || d.x->cudnnBackendGetAttribute(choice, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST, &n, v))\n"
    "        n = 0;\n"
    "    for (int64_t k = 0; k < n && k < MOST && !plan; k++)\n"
    "        if (hlo_is_plain(d, p, v[k]) && (plan = hlo_plan_with(d, p, v[k])) != NULL)\n"
    "            used = k;\n"
    "    for (int64_t k = 0; k < MOST; k++)\n"
    "        if (v[k] && k != used)\n"
    "            d.x->cudnnBackendDestroyDescriptor(v[k]);\n"
    "    if (plan)\n"
    "        graph->parts[graph->n_parts++] = v[used];\n"
    "    if (choice)\n"
    "        d.x->cudnnBackendDestroyDescriptor(choice);\n"
    "    return plan;\n"
    "}\n"
    "\n/* What no plan was made of. */\n"
    "static void hlo_forget_parts(const hlo_graph_library *x, hlo_graph *g)\n"
    "{\n"
    "    while (g->n_parts > 0)\n"
    "        x->cudnnBackendDestroyDescriptor(g->parts[--g->n_parts]);\n"
    "}\n"
    "\n/* NULL: the library has none, or it would be made while work is captured, which may not be. */\n"
    "static cudnnBackendDescriptor_t hlo_graph_for(const hlo_graph_library **x, const hlo_convolution *p, hlo_graph **graphs, int device, bool captured, bool added, bool bias,\n"
    "                                              int64_t align)\n"
    "{\n"
    "    hlo_graph *g = *graphs;\n"
    "    while (g && (g->device != device || g->align != align))\n"
    "        g = g->next;\n"
    "    if (!g && captured)\n"
    "        return NULL;\n"
    "    *x = hlo_graph_library_on(device);\n"
    "    if (!g && (g = (hlo_graph *)calloc(1, sizeof *g)) != NULL) {\n"
    "        hlo_description d = { *x, *x != NULL, g };\n"
    "        g->device = device;\n"
    "        g->align = align;\n"
    "        if (d.good) {\n"
    "            const cudnnBackendDescriptor_t operations = hlo_operations(&d, p, added, bias, align);\n"
    "            g->plan = d.good ? hlo_first_plan(d, p, operations, CUDNN_HEUR_MODE_A) : NULL;\n"
    "            if (d.good && !g->plan)\n"
    "                g->plan = hlo_first_plan(d, p, operations, CUDNN_HEUR_MODE_FALLBACK);\n"
    "            if (!g->plan)\n"
    "                hlo_forget_parts(*x, g);\n"
    "        }\n"
    "        g->next = *graphs;\n"
    "        *graphs = g;\n"
    "    }\n"
    "    return g ? g->plan : NULL;\n"
    "}\n";

static const char convolving[] =
    "\n/* Arrays and working memory of one run. */\n"
    "static cudaError_t hlo_execute_graph(const hlo_graph_library *x, cudnnBackendDescriptor_t plan, const int64_t *ids, void *const *arrays, int64_t n, void *work)\n"
    "{\n"
    "    hlo_description                d = { x, true, NULL };\n"
    "    const cudnnBackendDescriptor_t run = hlo_new(&d, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);\n"
    "    hlo_set(&d, run, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);\n"
    "    hlo_set(&d, run, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, arrays);\n"
    "    hlo_set(&d, run, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &work);\n"
    "    hlo_done(&d, run);\n"
    "    const bool done = d.good && x->cudnnBackendExecute(x->handle, plan, run) == CUDNN_STATUS_SUCCESS;\n"
    "    if (run)\n"
    "        x->cudnnBackendDestroyDescriptor(run);\n"
    "    return done ? cudaSuccess : cudaErrorUnknown;\n"
    "}\n"
    "\n/* lhs, rhs: what the convolution of HLO has. added, bias: NULL where there are none. cudaErrorNotSupported: the library has nothing for it, or is not there. */\n"
    "static cudaError_t hlo_convolve(const hlo_convolution *p, hlo_graph **graphs, cudaStream_t stream, void *out, const void *lhs, const void *rhs, const void *added,\n"
    "                                const void *bias, void *memory)\n"
    "{\n"
    "    const bool              to_image = p->way == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;\n"
    "    const bool              to_filter = p->way == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;\n"
    "    void *const             from[2] = { const_cast<void *>(lhs), const_cast<void *>(rhs) };\n"
    "    void *const             all[] = { to_image ? out : from[0], to_filter ? out : from[1], to_image ? from[0] : to_filter ? from[1] : out, const_cast<void *>(added),\n"
    "                                      const_cast<void *>(bias) };\n"
    "    const uintptr_t         addresses = (uintptr_t)out | (uintptr_t)lhs | (uintptr_t)rhs | (uintptr_t)added | (uintptr_t)bias | 16;\n"
    "    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;\n"
    "    int64_t                 ids[5], n = 0;\n"
    "    void                   *arrays[5];\n"
    "    int                     device;\n"
    "    cudaError_t             e = cudaGetDevice(&device);\n"
    "    e = e ? e : cudaStreamIsCapturing(stream, &capture);\n"
    "    if (e)\n"
    "        return e;\n"
    "    for (int k = 0; k < 5; k++)\n"
    "        if (all[k]) {\n"
    "            ids[n] = HLO_IMAGE + k;\n"
    "            arrays[n++] = all[k];\n"
    "        }\n"
    "    pthread_mutex_lock(&hlo_graph_lock);\n"
    "    const hlo_graph_library       *x = NULL;\n"
    "    const cudnnBackendDescriptor_t plan = hlo_graph_for(&x, p, graphs, device, capture != cudaStreamCaptureStatusNone, added != NULL, bias != NULL,\n"
    "                                                        (int64_t)(addresses & (~addresses + 1)));\n"
    "    e = !plan ? cudaErrorNotSupported : x->cudnnSetStream(x->handle, stream) ? cudaErrorUnknown : cudaSuccess;\n"
    "    e = e ? e : hlo_execute_graph(x, plan, ids, arrays, n, (void *)(((uintptr_t)memory + 255) / 256 * 256));\n"
    "    pthread_mutex_unlock(&hlo_graph_lock);\n"
    "    return e;\n"
    "}\n"
    "#endif\n";

void cuda_convolution_services(Buf *b)
{
    buf_puts(b, types);
    buf_puts(b, opening);
    buf_puts(b, describing);
    buf_puts(b, planning);
    buf_puts(b, convolving);
}

/* ---- one convolution ---- */

static void put_numbers(Buf *b, const int64_t *v, int32_t n)
{
    buf_puts(b, "{ ");
    for (int32_t k = 0; k < n; k++)
        buf_printf(b, "%s%lld", k ? ", " : "", (long long)v[k]);
    buf_puts(b, " }");
}

/* "relu([8,64,56,56] with [128,64,3,3] + p3 + p2[128])", sizes in the library's order. */
static void put_formula(Buf *b, const ConvGraph *g)
{
    static const char *const  names[] = { [CONV_FORWARD] = "", [CONV_TO_IMAGE] = "gradient of the image: ", [CONV_TO_FILTER] = "gradient of the filter: " };
    const ProductEpilogue    *e = &g->epilogue;
    const ConvArray *const    pair[] = { g->way == CONV_TO_IMAGE ? &g->result : &g->image, g->way == CONV_TO_FILTER ? &g->result : &g->filter };
    buf_printf(b, "    // %s%s", names[g->way], e->act == ACT_RELU ? "relu(" : "");
    for (int32_t k = 0; k < 2; k++) {
        buf_puts(b, k ? " with [" : "[");
        for (int32_t d = 0; d < g->n_spatial + 2; d++)
            buf_printf(b, "%s%lld", d ? "," : "", (long long)pair[k]->size[d]);
        buf_puts(b, "]");
    }
    if (e->added >= 0)
        buf_printf(b, " + p%d", e->added);
    if (e->bias >= 0)
        buf_printf(b, " + p%d[%lld]", e->bias, (long long)g->result.size[1]);
    buf_puts(b, e->act == ACT_RELU ? ")\n" : "\n");
}

static void put_graph(Buf *b, const ConvGraph *g)
{
    static const char *const ways[] = { [CONV_FORWARD] = "FORWARD", [CONV_TO_IMAGE] = "BACKWARD_DATA", [CONV_TO_FILTER] = "BACKWARD_FILTER" };
    const ConvArray *const   arrays[] = { &g->image, &g->filter, &g->result };
    const int64_t *const     windows[] = { g->pre, g->post, g->stride, g->dilation };
    put_formula(b, g);
    buf_printf(b, "    static const hlo_convolution convolution = { CUDNN_BACKEND_OPERATION_CONVOLUTION_%s_DESCRIPTOR, CUDNN_DATA_%s, CUDNN_%s, %s, %d,\n        ", ways[g->way],
               g->type == TYPE_F16 ? "HALF" : g->type == TYPE_BF16 ? "BFLOAT16" : "FLOAT", g->turned ? "CONVOLUTION" : "CROSS_CORRELATION", g->last ? "true" : "false", g->n_spatial);
    for (int32_t k = 0; k < 3; k++) {
        put_numbers(b, arrays[k]->size, g->n_spatial + 2);
        buf_puts(b, ", ");
    }
    for (int32_t k = 0; k < 4; k++) {
        put_numbers(b, windows[k], g->n_spatial);
        buf_puts(b, ", ");
    }
    buf_printf(b, "%s, %lld };\n", g->epilogue.act == ACT_RELU ? "true" : "false", (long long)g->work);
}

void cuda_put_convolution(Buf *b, const Program *p, int32_t function)
{
    ConvGraph g;
    if (!p->products || !conv_graph_of_kernel(p->functions[function].kernel, &g))
        return;
    const ProductEpilogue *e = &g.epilogue;
    buf_puts(b, "#ifdef HLO_CUDNN\n");
    put_graph(b, &g);
    buf_printf(b, "    static hlo_graph *graphs;\n    const cudaError_t done = hlo_convolve(&convolution, &graphs, stream, r0, p%d, p%d, ", e->lhs, e->rhs);
    for (int32_t k = 0; k < 2; k++) {
        const int32_t operand = k ? e->bias : e->added;
        if (operand < 0)
            buf_puts(b, "NULL, ");
        else
            buf_printf(b, "p%d, ", operand);
    }
    buf_puts(b, "memory);\n    if (done != cudaErrorNotSupported)\n        return done;\n#endif\n");
}
