/* As much of cuDNN's graphs as emitted text uses, on the CPU: convolutions by their definition (cudasim_enqueue_convolution), in the order of the stream. In place of the toolkit's header of that
 * name, with its numbers. Descriptors take the attributes that they have, in the types that these have, until they are finalized; a graph is a convolution, or one with a bias, a matrix that
 * is added before it or not, a relu behind it or not, and other patterns have no engine, as in the library. Engines that round or sum otherwise than in f32 come first and give coarse results; one
 * wants more memory than there is. CUDASIM_WITHOUT=cudnn is a machine without the library, =cudnn-engines one where that has no engine for anything. */
#ifndef CUDASIM_CUDNN_GRAPH_H
#define CUDASIM_CUDNN_GRAPH_H

#include <cuda_runtime.h>
#include <stdlib.h>

#define HLO_CUDNN_IS_LINKED 1
#define CUDNN_MAJOR 9

enum cudnnStatus_t {
    CUDNN_STATUS_SUCCESS = 0, CUDNN_STATUS_NOT_INITIALIZED = 1001, CUDNN_STATUS_BAD_PARAM = 2000, CUDNN_STATUS_BAD_PARAM_NULL_POINTER = 2002,
    CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER = 2003, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED = 2004, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH = 2008,
    CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE = 2010, CUDNN_STATUS_NOT_SUPPORTED = 3000, CUDNN_STATUS_EXECUTION_FAILED = 5000
};
enum cudnnDataType_t { CUDNN_DATA_FLOAT = 0, CUDNN_DATA_DOUBLE = 1, CUDNN_DATA_HALF = 2, CUDNN_DATA_BFLOAT16 = 9 };
enum cudnnConvolutionMode_t { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 };
enum cudnnPointwiseMode_t { CUDNN_POINTWISE_ADD = 0, CUDNN_POINTWISE_RELU_FWD = 100 };
enum cudnnBackendHeurMode_t { CUDNN_HEUR_MODE_FALLBACK = 2, CUDNN_HEUR_MODE_A = 3 };
enum cudnnBackendNumericalNote_t {
    CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION = 2, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4,
    CUDNN_NUMERICAL_NOTE_WINOGRAD = 5, CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP = 9
};
enum cudnnBackendAttributeType_t {
    CUDNN_TYPE_HANDLE = 0, CUDNN_TYPE_DATA_TYPE = 1, CUDNN_TYPE_BOOLEAN = 2, CUDNN_TYPE_INT64 = 3, CUDNN_TYPE_FLOAT = 4, CUDNN_TYPE_VOID_PTR = 6, CUDNN_TYPE_CONVOLUTION_MODE = 7,
    CUDNN_TYPE_HEUR_MODE = 8, CUDNN_TYPE_NUMERICAL_NOTE = 11, CUDNN_TYPE_POINTWISE_MODE = 14, CUDNN_TYPE_BACKEND_DESCRIPTOR = 15
};
enum cudnnBackendDescriptorType_t {
    CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1, CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
    CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12,
    CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16, CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17
};
enum cudnnBackendAttributeName_t {
    CUDNN_ATTR_POINTWISE_MODE = 0, CUDNN_ATTR_POINTWISE_MATH_PREC = 1,
    CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100, CUDNN_ATTR_CONVOLUTION_CONV_MODE = 101, CUDNN_ATTR_CONVOLUTION_DILATIONS = 102, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES = 103,
    CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 104, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS = 105, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 106,
    CUDNN_ATTR_ENGINEHEUR_MODE = 200, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201, CUDNN_ATTR_ENGINEHEUR_RESULTS = 202, CUDNN_ATTR_ENGINECFG_ENGINE = 300,
    CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA = 701, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 703, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X = 704, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 705,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA = 707, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W = 709, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX = 710, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY = 711,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA = 713, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW = 715, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X = 716, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY = 717,
    CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750, CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751, CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752, CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
    CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800, CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,
    CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900, CUDNN_ATTR_TENSOR_DATA_TYPE = 901, CUDNN_ATTR_TENSOR_DIMENSIONS = 902, CUDNN_ATTR_TENSOR_STRIDES = 903, CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
    CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,
    CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001, CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
    CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303
};

struct cudasim_dnn { cudaStream_t stream; };
typedef cudasim_dnn *cudnnHandle_t;
typedef void        *cudnnBackendDescriptor_t;

/* ---- descriptors ---- */

enum { CUDASIM_MOST_VALUES = 8 };
struct cudasim_dnn_value {
    int     name, n;
    int64_t v[CUDASIM_MOST_VALUES]; /* numbers; pointers; floats as their bits */
};
struct cudasim_descriptor {
    cudnnBackendDescriptorType_t type;
    bool                         final;
    int                          n;
    cudasim_dnn_value            values[10];
    int                          engine; /* of a configuration and its engine */
    const cudasim_descriptor    *graph;
};

/* Attributes: whose, which, in what type, how many values, must it be there. */
struct cudasim_dnn_attribute { int descriptor, name, type, least, most; bool needed; };
static const cudasim_dnn_attribute cudasim_dnn_attributes[] = {
    { 17, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true }, { 17, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 5, true },
    { 17, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 5, true }, { 17, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1, true },
    { 17, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1, true }, { 17, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1, false },
    { 1, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 1, true }, { 1, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true },
    { 1, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1, true }, { 1, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, 3, true },
    { 1, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, 3, true }, { 1, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, 3, true },
    { 1, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, 3, true },
    { 10, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, true }, { 10, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, 1, true },
    { 10, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 10, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 10, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 10, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 12, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, true }, { 12, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1, 1, true },
    { 12, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 12, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 12, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 12, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 11, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, true }, { 11, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 1, 1, true },
    { 11, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 11, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 11, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 11, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 0, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1, true }, { 0, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1, true },
    { 13, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 13, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true }, { 13, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, false },
    { 13, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 15, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, true }, { 15, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 8, true },
    { 4, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true }, { 4, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1, true },
    { 5, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, true }, { 5, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true },
    { 16, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1, 8, true }, { 16, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, 8, true },
    { 16, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1, true },
};

static inline cudasim_descriptor *cudasim_dnn_of(cudnnBackendDescriptor_t d) { return static_cast<cudasim_descriptor *>(d); }

static inline const cudasim_dnn_value *cudasim_dnn_find(const cudasim_descriptor *d, int name)
{
    for (int k = 0; k < d->n; k++)
        if (d->values[k].name == name)
            return &d->values[k];
    return nullptr;
}

static inline int64_t cudasim_dnn_number(const cudasim_descriptor *d, int name)
{
    const cudasim_dnn_value *const x = cudasim_dnn_find(d, name);
    return x ? x->v[0] : 0;
}

static inline const cudasim_descriptor *cudasim_dnn_part(const cudasim_descriptor *d, int name)
{
    return reinterpret_cast<const cudasim_descriptor *>(static_cast<intptr_t>(cudasim_dnn_number(d, name)));
}

static inline size_t cudasim_dnn_bytes(int type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    case CUDNN_TYPE_HANDLE: case CUDNN_TYPE_INT64: case CUDNN_TYPE_VOID_PTR: case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    default: return 4;
    }
}

static inline cudnnStatus_t cudnnCreate(cudnnHandle_t *h)
{
    *h = cudasim_has_library("cudnn") ? static_cast<cudnnHandle_t>(calloc(1, sizeof **h)) : nullptr;
    return *h ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_INITIALIZED;
}

static inline cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t s)
{
    h->stream = s;
    return CUDNN_STATUS_SUCCESS;
}

static inline cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *to)
{
    cudasim_descriptor *const d = static_cast<cudasim_descriptor *>(calloc(1, sizeof *d));
    if (d)
        d->type = type;
    *to = d;
    return d ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_INITIALIZED;
}

static inline cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    free(d);
    return CUDNN_STATUS_SUCCESS;
}

static inline cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t x, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *from)
{
    cudasim_descriptor *const    d = cudasim_dnn_of(x);
    const cudasim_dnn_attribute *takes = nullptr;
    if (!d || !from)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    for (const cudasim_dnn_attribute &a : cudasim_dnn_attributes)
        if (a.descriptor == d->type && a.name == name)
            takes = &a;
    if (!takes || d->final || n < takes->least || n > takes->most || cudasim_dnn_find(d, name))
        return CUDNN_STATUS_BAD_PARAM;
    if (type != takes->type)
        return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    cudasim_dnn_value *const to = &d->values[d->n];
    *to = cudasim_dnn_value{ name, static_cast<int>(n), {} };
    for (int64_t k = 0; k < n; k++)
        memcpy(&to->v[k], static_cast<const char *>(from) + static_cast<size_t>(k) * cudasim_dnn_bytes(type), cudasim_dnn_bytes(type));
    for (int64_t k = 0; k < n && type == CUDNN_TYPE_BACKEND_DESCRIPTOR; k++)
        if (!to->v[k] || !reinterpret_cast<const cudasim_descriptor *>(static_cast<intptr_t>(to->v[k]))->final)
            return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    d->n++;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- what is described ---- */

/* How the three operations call their parts: image, filter, result, alpha, beta, window. */
static inline const int *cudasim_dnn_names(const cudasim_descriptor *op)
{
    static const int names[][6] = { { 704, 703, 705, 700, 701, 702 }, { 710, 709, 711, 706, 707, 708 }, { 716, 715, 717, 712, 713, 714 } };
    return op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ? names[0]
           : op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? names[1]
           : op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR ? names[2] : nullptr;
}

static inline const int64_t *cudasim_dnn_sizes(const cudasim_descriptor *array) { return cudasim_dnn_find(array, CUDNN_ATTR_TENSOR_DIMENSIONS)->v; }
static inline int cudasim_dnn_rank(const cudasim_descriptor *array) { return cudasim_dnn_find(array, CUDNN_ATTR_TENSOR_DIMENSIONS)->n; }
static inline bool cudasim_dnn_is_between(const cudasim_descriptor *array) { return cudasim_dnn_number(array, CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0; }

static inline bool cudasim_dnn_is_packed(const cudasim_descriptor *array, bool last)
{
    const int64_t *const size = cudasim_dnn_sizes(array), *const by = cudasim_dnn_find(array, CUDNN_ATTR_TENSOR_STRIDES)->v;
    const int            rank = cudasim_dnn_rank(array);
    int64_t              all = last ? size[1] : 1;
    for (int k = rank - 1; k >= 2; all *= size[k--])
        if (size[k] > 1 && by[k] != all)
            return false;
    return (size[1] == 1 || by[1] == (last ? 1 : all)) && (size[0] == 1 || by[0] == (last ? all : all * size[1]));
}

/* The sizes of an operation's arrays are those of its window. */
static inline bool cudasim_dnn_fits(const cudasim_descriptor *op)
{
    const int *const                names = cudasim_dnn_names(op);
    const cudasim_descriptor *const window = cudasim_dnn_part(op, names[5]), *arrays[3];
    const int64_t                   spatial = cudasim_dnn_number(window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    for (int k = 0; k < 3; k++) {
        arrays[k] = cudasim_dnn_part(op, names[k]);
        if (cudasim_dnn_rank(arrays[k]) != spatial + 2)
            return false;
    }
    const int64_t *const x = cudasim_dnn_sizes(arrays[0]), *const w = cudasim_dnn_sizes(arrays[1]), *const y = cudasim_dnn_sizes(arrays[2]);
    if (x[0] != y[0] || w[0] != y[1] || w[1] < 1 || x[1] % w[1] != 0 || y[1] % (x[1] / w[1]) != 0)
        return false;
    for (int k = 0; k < spatial; k++) {
        const int64_t pre = cudasim_dnn_find(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->v[k], post = cudasim_dnn_find(window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)->v[k];
        const int64_t stride = cudasim_dnn_find(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->v[k], dilation = cudasim_dnn_find(window, CUDNN_ATTR_CONVOLUTION_DILATIONS)->v[k];
        const int64_t room = x[2 + k] + pre + post - (w[2 + k] - 1) * dilation - 1;
        if (pre < 0 || post < 0 || stride < 1 || dilation < 1 || room < 0 || room / stride + 1 != y[2 + k])
            return false;
    }
    return true;
}

static inline cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t x)
{
    cudasim_descriptor *const d = cudasim_dnn_of(x);
    if (!d)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    for (const cudasim_dnn_attribute &a : cudasim_dnn_attributes)
        if (a.descriptor == d->type && a.needed && !cudasim_dnn_find(d, a.name))
            return CUDNN_STATUS_BAD_PARAM;
    if (d->type == CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
        for (int name = CUDNN_ATTR_CONVOLUTION_DILATIONS; name <= CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS; name++)
            if (cudasim_dnn_find(d, name)->n != cudasim_dnn_number(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS))
                return CUDNN_STATUS_BAD_PARAM;
    if (cudasim_dnn_names(d) && !cudasim_dnn_fits(d))
        return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
    d->final = true;
    return CUDNN_STATUS_SUCCESS;
}

/* A graph that there are engines for. */
struct cudasim_dnn_graph {
    const cudasim_descriptor *image, *filter, *result, *added, *bias;
    cudasim_convolution       c;
};

static inline bool cudasim_dnn_is_like(const cudasim_descriptor *x, const cudasim_descriptor *y)
{
    return cudasim_dnn_rank(x) == cudasim_dnn_rank(y) && memcmp(cudasim_dnn_sizes(x), cudasim_dnn_sizes(y), static_cast<size_t>(cudasim_dnn_rank(x)) * sizeof(int64_t)) == 0;
}

static inline bool cudasim_dnn_is_bias(const cudasim_descriptor *x, const cudasim_descriptor *of)
{
    const int64_t *const size = cudasim_dnn_sizes(x);
    for (int k = 0; k < cudasim_dnn_rank(x); k++)
        if (size[k] != (k == 1 ? cudasim_dnn_sizes(of)[1] : 1))
            return false;
    return cudasim_dnn_rank(x) == cudasim_dnn_rank(of);
}

/* The steps behind the sums: what is added, the bias, the relu, of which the bias must be there. */
static inline bool cudasim_dnn_steps(cudasim_dnn_graph *g, const cudasim_dnn_value *ops)
{
    const cudasim_descriptor *from = g->result;
    for (int k = 1; k < ops->n; k++) {
        const cudasim_descriptor *const op = reinterpret_cast<const cudasim_descriptor *>(static_cast<intptr_t>(ops->v[k]));
        if (op->type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR || cudasim_dnn_part(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != from || !cudasim_dnn_is_between(from))
            return false;
        const cudasim_descriptor *const what = cudasim_dnn_part(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), *const other = cudasim_dnn_part(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
        const int64_t                   mode = cudasim_dnn_number(what, CUDNN_ATTR_POINTWISE_MODE);
        if (mode == CUDNN_POINTWISE_RELU_FWD && !other && g->bias && k + 1 == ops->n)
            g->c.relu = true;
        else if (mode == CUDNN_POINTWISE_ADD && other && !g->bias && cudasim_dnn_is_bias(other, g->result))
            g->bias = other;
        else if (mode == CUDNN_POINTWISE_ADD && other && !g->bias && !g->added && cudasim_dnn_is_like(other, g->result) && cudasim_dnn_is_packed(other, g->c.last))
            g->added = other;
        else
            return false;
        from = cudasim_dnn_part(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
        if (!cudasim_dnn_is_like(from, g->result) || cudasim_dnn_number(what, CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_FLOAT)
            return false;
    }
    g->result = from;
    return (ops->n == 1 || g->bias) && !cudasim_dnn_is_between(from);
}

static inline bool cudasim_dnn_understands(const cudasim_descriptor *graph, cudasim_dnn_graph *g)
{
    const cudasim_dnn_value *const  ops = cudasim_dnn_find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    const cudasim_descriptor *const op = reinterpret_cast<const cudasim_descriptor *>(static_cast<intptr_t>(ops->v[0]));
    const int *const                names = cudasim_dnn_names(op);
    if (!names || !cudasim_has_library("cudnn-engines"))
        return false;
    const cudasim_descriptor *const window = cudasim_dnn_part(op, names[5]);
    *g = cudasim_dnn_graph{};
    g->image = cudasim_dnn_part(op, names[0]);
    g->filter = cudasim_dnn_part(op, names[1]);
    g->result = cudasim_dnn_part(op, names[2]);
    const int64_t type = cudasim_dnn_number(g->image, CUDNN_ATTR_TENSOR_DATA_TYPE);
    float         one, zero;
    const int64_t alpha = cudasim_dnn_number(op, names[3]), beta = cudasim_dnn_number(op, names[4]);
    memcpy(&one, &alpha, sizeof one);
    memcpy(&zero, &beta, sizeof zero);
    g->c.last = cudasim_dnn_is_packed(g->image, true) && cudasim_dnn_is_packed(g->filter, true) && cudasim_dnn_is_packed(g->result, true);
    if (!g->c.last && !(cudasim_dnn_is_packed(g->image, false) && cudasim_dnn_is_packed(g->filter, false) && cudasim_dnn_is_packed(g->result, false)))
        return false;
    g->c.way = op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ? 2 : op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 0 : 1;
    g->c.type = type == CUDNN_DATA_HALF ? CUDASIM_F16 : type == CUDNN_DATA_BFLOAT16 ? CUDASIM_BF16 : CUDASIM_F32;
    g->c.n_spatial = static_cast<int>(cudasim_dnn_number(window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
    g->c.turned = cudasim_dnn_number(window, CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CONVOLUTION;
    for (int k = 0; k < g->c.n_spatial + 2; k++) {
        g->c.image[k] = cudasim_dnn_sizes(g->image)[k];
        g->c.filter[k] = cudasim_dnn_sizes(g->filter)[k];
        g->c.result[k] = cudasim_dnn_sizes(g->result)[k];
    }
    for (int k = 0; k < g->c.n_spatial; k++) {
        g->c.pre[k] = cudasim_dnn_find(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->v[k];
        g->c.stride[k] = cudasim_dnn_find(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->v[k];
        g->c.dilation[k] = cudasim_dnn_find(window, CUDNN_ATTR_CONVOLUTION_DILATIONS)->v[k];
    }
    if (one != 1 || zero != 0 || cudasim_dnn_number(window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT || (ops->n > 1 && g->c.way != 2) || !cudasim_dnn_steps(g, ops))
        return false;
    const cudasim_descriptor *const all[] = { g->image, g->filter, g->result, g->added, g->bias };
    for (const cudasim_descriptor *x : all)
        if (x && (cudasim_dnn_number(x, CUDNN_ATTR_TENSOR_DATA_TYPE) != type || cudasim_dnn_is_between(x)))
            return false;
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}

/* ---- engines ---- */

/* In the order of preference; of groups only the last, in the list of fallbacks. */
enum { CUDASIM_TENSOR_CORE, CUDASIM_ANY_ORDER, CUDASIM_WINOGRAD, CUDASIM_GREEDY, CUDASIM_PLAIN, CUDASIM_FALLBACK };

static inline int64_t cudasim_dnn_work(int engine) { return engine == CUDASIM_GREEDY ? INT64_C(1) << 50 : engine == CUDASIM_PLAIN ? 4099 : 0; }

static inline int64_t cudasim_dnn_notes(int engine, cudnnBackendNumericalNote_t *to)
{
    static const cudnnBackendNumericalNote_t notes[] = { CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_WINOGRAD };
    if (engine == CUDASIM_GREEDY || engine == CUDASIM_PLAIN)
        return 0;
    to[0] = engine == CUDASIM_FALLBACK ? CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP : notes[engine];
    return 1;
}

static inline cudnnStatus_t cudasim_dnn_results(const cudasim_descriptor *choice, int64_t room, int64_t *n, void *const *to)
{
    const cudasim_descriptor *const graph = cudasim_dnn_part(choice, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const bool                      fallback = cudasim_dnn_number(choice, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
    cudasim_dnn_graph               g;
    *n = 0;
    if (!cudasim_dnn_understands(graph, &g) || (!fallback && g.c.image[1] != g.c.filter[1]))
        return CUDNN_STATUS_SUCCESS;
    for (int e = fallback ? CUDASIM_FALLBACK : CUDASIM_TENSOR_CORE; e <= (fallback ? CUDASIM_FALLBACK : CUDASIM_PLAIN) && *n < room; e++) {
        cudasim_descriptor *const x = cudasim_dnn_of(to[*n]);
        if (!x || x->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
            return CUDNN_STATUS_BAD_PARAM;
        x->engine = e;
        x->graph = graph;
        x->final = true;
        ++*n;
    }
    return CUDNN_STATUS_SUCCESS;
}

static inline cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t x, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room, int64_t *n, void *to)
{
    const cudasim_descriptor *const d = cudasim_dnn_of(x);
    if (!d || !to || !n)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!d->final && d->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR)
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (d->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return cudasim_dnn_results(d, room, n, static_cast<void *const *>(to));
    if (d->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && name == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR && room == 1) {
        cudasim_descriptor *const engine = cudasim_dnn_of(*static_cast<void **>(to));
        if (!engine || engine->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR)
            return CUDNN_STATUS_BAD_PARAM;
        engine->engine = d->engine;
        *n = 1;
        return CUDNN_STATUS_SUCCESS;
    }
    if (d->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE && room >= 1) {
        *n = cudasim_dnn_notes(d->engine, static_cast<cudnnBackendNumericalNote_t *>(to));
        return CUDNN_STATUS_SUCCESS;
    }
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64 && room == 1) {
        *static_cast<int64_t *>(to) = cudasim_dnn_work(cudasim_dnn_part(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->engine);
        *n = 1;
        return CUDNN_STATUS_SUCCESS;
    }
    return CUDNN_STATUS_BAD_PARAM;
}

/* The array's place in this run; NULL: it has none, or one that is less aligned than was said. */
static inline void *cudasim_dnn_place(const cudasim_descriptor *run, const cudasim_descriptor *array)
{
    const cudasim_dnn_value *const ids = cudasim_dnn_find(run, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS), *const at = cudasim_dnn_find(run, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (int k = 0; k < ids->n && k < at->n; k++)
        if (ids->v[k] == cudasim_dnn_number(array, CUDNN_ATTR_TENSOR_UNIQUE_ID) && at->v[k] % cudasim_dnn_number(array, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) == 0)
            return reinterpret_cast<void *>(static_cast<intptr_t>(at->v[k]));
    return nullptr;
}

static inline cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t p, cudnnBackendDescriptor_t r)
{
    const cudasim_descriptor *const plan = cudasim_dnn_of(p), *const run = cudasim_dnn_of(r);
    cudasim_dnn_graph               g;
    if (!plan || !run || !plan->final || !run->final || plan->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || run->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    const cudasim_descriptor *const with = cudasim_dnn_part(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const int64_t                   bytes = cudasim_dnn_work(with->engine);
    if (!cudasim_dnn_understands(with->graph, &g) || cudasim_dnn_part(with->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE) != reinterpret_cast<cudasim_descriptor *>(h))
        return CUDNN_STATUS_BAD_PARAM;
    void *const places[] = { cudasim_dnn_place(run, g.image), cudasim_dnn_place(run, g.filter), cudasim_dnn_place(run, g.result), g.added ? cudasim_dnn_place(run, g.added) : nullptr,
                             g.bias ? cudasim_dnn_place(run, g.bias) : nullptr };
    if (!places[0] || !places[1] || !places[2] || (g.added && !places[3]) || (g.bias && !places[4]))
        return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    void *const work = reinterpret_cast<void *>(static_cast<intptr_t>(cudasim_dnn_number(run, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)));
    if (bytes > 0 && cudasim_enqueue_set(work, 0xff, static_cast<size_t>(bytes), h->stream) != cudaSuccess)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    g.c.coarse = with->engine <= CUDASIM_WINOGRAD && (with->engine != CUDASIM_TENSOR_CORE || g.c.type == CUDASIM_F32);
    return cudasim_enqueue_convolution(&g.c, places[0], places[1], places[2], places[3], places[4], h->stream) ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

#endif
