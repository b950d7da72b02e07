// Convolutions of the library's stand-in, what its engines say of themselves, and what it refuses as the library does.
#include <cudnn_graph.h>
#include <stdio.h>

typedef cudnnBackendDescriptor_t Part;

static cudnnStatus_t set(Part x, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *v) { return cudnnBackendSetAttribute(x, name, type, n, v); }

/* All that is made, until the end. */
enum { MOST_PARTS = 1024 };
static Part parts[MOST_PARTS];
static int  n_parts;

static Part make(cudnnBackendDescriptorType_t type)
{
    Part x;
    cudnnBackendCreateDescriptor(type, &x);
    if (n_parts < MOST_PARTS)
        parts[n_parts++] = x;
    return x;
}

/* n, c, h, w; features last, or outside of the pixels, or with a gap of one behind each row. */
static Part array(int64_t id, cudnnDataType_t type, int64_t n, int64_t c, int64_t h, int64_t w, char order, bool between)
{
    const int64_t size[] = { n, c, h, w }, last[] = { h * w * c, 1, w * c, c }, first[] = { c * h * w, h * w, w, 1 }, gap[] = { h * (w * c + 1), 1, w * c + 1, c }, align = 4;
    Part          x = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(x, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(x, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, size);
    set(x, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, order == 'l' ? last : order == 'f' ? first : gap);
    set(x, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(x, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    set(x, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &between);
    cudnnBackendFinalize(x);
    return x;
}

static Part sums(Part x, Part w, Part y, int64_t pad, cudnnDataType_t type, cudnnStatus_t *status)
{
    const int64_t                two = 2, pads[] = { pad, pad }, ones[] = { 1, 1 };
    const float                  one = 1, zero = 0;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    Part                         c = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR), op = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    set(c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &two);
    set(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
    set(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
    set(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones);
    set(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
    cudnnBackendFinalize(c);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
    *status = cudnnBackendFinalize(op);
    return op;
}

static Part pointwise(cudnnPointwiseMode_t mode, Part x, Part b, Part y)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    Part                  what = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR), op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    cudnnBackendFinalize(what);
    set(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &what);
    set(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    if (b)
        set(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b);
    set(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    cudnnBackendFinalize(op);
    return op;
}

/* The engines of a graph; the first `keep` of them in `to`. */
static int64_t engines(cudnnHandle_t h, int n, const Part *ops, Part *to, int64_t keep)
{
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    Part                         g = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR), choice = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), v[8];
    int64_t                      found = 0;
    set(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, ops);
    set(g, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
    cudnnBackendFinalize(g);
    set(choice, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g);
    set(choice, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    cudnnBackendFinalize(choice);
    for (Part &x : v)
        x = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    cudnnBackendGetAttribute(choice, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 8, &found, v);
    for (int64_t k = 0; k < keep; k++)
        to[k] = v[k];
    return found;
}

static int execute(cudnnHandle_t h, Part engine, const int64_t *ids, void **arrays, int64_t n, void *work)
{
    Part plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), run = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
    set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    cudnnBackendFinalize(plan);
    set(run, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
    set(run, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, arrays);
    set(run, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &work);
    cudnnBackendFinalize(run);
    return cudnnBackendExecute(h, plan, run);
}

static float *on_device(int n, float first, float step)
{
    float *p, x[64];
    for (int k = 0; k < n; k++)
        x[k] = first + step * (float)k;
    cudaMalloc(&p, sizeof x);
    cudaMemcpy(p, x, sizeof x, cudaMemcpyHostToDevice);
    return p;
}

static void show(const char *what, int status, const float *p, int n)
{
    float v[64];
    printf("%s: %d", what, status);
    if (!status && !cudaMemcpy(v, p, sizeof v, cudaMemcpyDeviceToHost))
        for (int k = 0; k < n; k++)
            printf(" %g", (double)v[k]);
    printf("\n");
}

int main()
{
    const cudnnDataType_t f = CUDNN_DATA_FLOAT;
    cudnnHandle_t         h;
    cudnnStatus_t         status;
    Part                  e[8], x, w, y, ops[4];
    void                 *work;
    cudnnCreate(&h);
    cudaMalloc(&work, 8192);
    /* 3 by 3 pixels of 1, 2.0001, 3.0002 and so on with 2 by 2 of 1, 2, 3, 4 */
    float *image = on_device(9, 1, 1.0001f), *filter = on_device(4, 1, 1), *result = on_device(16, 0, 0), *bias = on_device(1, -40, 0), *added = on_device(4, 0, 1);
    x = array(1, f, 1, 1, 3, 3, 'l', false);
    w = array(2, f, 1, 1, 2, 2, 'l', false);
    y = array(3, f, 1, 1, 2, 2, 'l', false);
    ops[0] = sums(x, w, y, 0, f, &status);
    printf("fits: %d, engines: %lld\n", status, (long long)engines(h, 1, ops, e, 5));
    for (int k = 0; k < 5; k++) {
        cudnnBackendNumericalNote_t notes[4];
        int64_t                     n = 0, bytes = 0, one;
        Part                        engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR), plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        cudnnBackendGetAttribute(e[k], CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);
        cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 4, &n, notes);
        set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
        set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &e[k]);
        cudnnBackendFinalize(plan);
        cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one, &bytes);
        printf("engine %d: note %d, %lld bytes\n", k, n ? (int)notes[0] : -1, (long long)bytes);
    }
    const int64_t ids[] = { 1, 2, 3, 4, 5 };
    void         *arrays[] = { image, filter, result, added, bias };
    show("plain", execute(h, e[4], ids, arrays, 3, work), result, 4);
    show("coarse", execute(h, e[0], ids, arrays, 3, work), result, 4);
    show("no memory", execute(h, e[4], ids, arrays, 3, nullptr), result, 4);
    show("an array is missing", execute(h, e[4], ids, arrays, 2, work), result, 4);
    void *shifted[] = { (char *)image + 2, filter, result };
    show("misaligned", execute(h, e[4], ids, shifted, 3, work), result, 4);
    void *host[] = { h, filter, result };
    show("the host's image", execute(h, e[4], ids, host, 3, work), result, 4);

    /* relu(sums + added + bias), as it is and in other orders */
    Part between[3], z = array(4, f, 1, 1, 2, 2, 'l', false), b = array(5, f, 1, 1, 1, 1, 'l', false);
    for (int k = 0; k < 3; k++)
        between[k] = array(6 + k, f, 1, 1, 2, 2, 'l', true);
    ops[0] = sums(x, w, between[0], 0, f, &status);
    ops[1] = pointwise(CUDNN_POINTWISE_ADD, between[0], z, between[1]);
    ops[2] = pointwise(CUDNN_POINTWISE_ADD, between[1], b, between[2]);
    ops[3] = pointwise(CUDNN_POINTWISE_RELU_FWD, between[2], nullptr, y);
    if (engines(h, 4, ops, e, 5))
        show("added, bias, relu", execute(h, e[4], ids, arrays, 5, work), result, 4);
    ops[1] = pointwise(CUDNN_POINTWISE_RELU_FWD, between[0], nullptr, y);
    printf("relu without a bias: %lld\n", (long long)engines(h, 2, ops, e, 0));
    ops[1] = pointwise(CUDNN_POINTWISE_ADD, between[0], b, between[1]);
    ops[2] = pointwise(CUDNN_POINTWISE_ADD, between[1], z, y);
    printf("added behind the bias: %lld\n", (long long)engines(h, 3, ops, e, 0));
    ops[1] = pointwise(CUDNN_POINTWISE_ADD, between[0], z, y);
    printf("added alone: %lld\n", (long long)engines(h, 2, ops, e, 0));

    ops[0] = sums(x, w, array(3, f, 1, 1, 3, 3, 'l', false), 0, f, &status);
    printf("another size: %d\n", status);
    ops[0] = sums(x, w, y, 0, CUDNN_DATA_HALF, &status);
    printf("sums in f16: %lld\n", (long long)engines(h, 1, ops, e, 0));
    ops[0] = sums(array(1, f, 1, 2, 3, 3, 'l', false), array(2, f, 2, 2, 2, 2, 'f', false), array(3, f, 1, 2, 2, 2, 'l', false), 0, f, &status);
    printf("a filter of another layout: %d %lld\n", status, (long long)engines(h, 1, ops, e, 0));
    ops[0] = sums(array(1, f, 1, 2, 3, 3, 'g', false), array(2, f, 2, 2, 2, 2, 'l', false), array(3, f, 1, 2, 2, 2, 'l', false), 0, f, &status);
    printf("gaps: %d %lld\n", status, (long long)engines(h, 1, ops, e, 0));
    ops[0] = sums(x, w, array(3, CUDNN_DATA_HALF, 1, 1, 2, 2, 'l', false), 0, f, &status);
    printf("a result of another type: %lld\n", (long long)engines(h, 1, ops, e, 0));

    const int64_t        id = 1;
    const cudnnDataType_t type = f;
    printf("set when final: %d\n", set(x, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id));
    Part fresh = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    printf("of another type: %d\n", set(fresh, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_FLOAT, 1, &id));
    printf("of another descriptor: %d\n", set(fresh, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type));
    printf("incomplete: %d\n", cudnnBackendFinalize(fresh));
    Part op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    printf("a part that is not final: %d\n", set(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &fresh));
    while (n_parts > 0)
        cudnnBackendDestroyDescriptor(parts[--n_parts]);
    return 0;
}
