// Products of the library's stand-in: what they give with all that can be done to them, and what is refused.
#include <cublasLt.h>
#include <stdio.h>

enum { M = 3, N = 2, K = 4 };

struct Call {
    cublasLtHandle_t       library;
    cublasLtMatmulDesc_t   d;
    cublasLtMatrixLayout_t a, b, c, out;
    float                 *lhs, *rhs, *added, *bias, *result;
    void                  *work;
    float                  alpha, beta;
};

static float *on_device(int n, float first)
{
    float *p, x[64];
    for (int k = 0; k < n; k++)
        x[k] = first + (float)k;
    cudaMalloc(&p, sizeof x);
    cudaMemcpy(p, x, sizeof x, cudaMemcpyHostToDevice);
    return p;
}

static int multiply(Call *x)
{
    cublasLtMatmulPreference_t      wish;
    cublasLtMatmulHeuristicResult_t best;
    int                             n = 0;
    const uint64_t                  bytes = 256;
    cublasLtMatmulPreferenceCreate(&wish);
    cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    const int e = cublasLtMatmulAlgoGetHeuristic(x->library, x->d, x->a, x->b, x->c, x->out, wish, 1, &best, &n);
    cublasLtMatmulPreferenceDestroy(wish);
    return e ? e : cublasLtMatmul(x->library, x->d, &x->alpha, x->lhs, x->a, x->rhs, x->b, &x->beta, x->added, x->c, x->result, x->out, &best.algo, x->work, bytes, nullptr);
}

static void set_epilogue(Call *x, int epilogue)
{
    cublasLtMatmulDescSetAttribute(x->d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
}

static void set_bias(Call *x, const void *bias)
{
    cublasLtMatmulDescSetAttribute(x->d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
}

static void show(const char *what, Call *x)
{
    float     v[M * N];
    const int e = multiply(x);
    printf("%s: %d", what, e);
    if (!e && !cudaMemcpy(v, x->result, sizeof v, cudaMemcpyDeviceToHost))
        for (float f : v)
            printf(" %.6g", f);
    printf("\n");
}

int main()
{
    Call  x = {};
    float host[M];
    cublasLtCreate(&x.library);
    cublasLtMatmulDescCreate(&x.d, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&x.a, CUDA_R_32F, M, K, M);
    cublasLtMatrixLayoutCreate(&x.b, CUDA_R_32F, K, N, K);
    cublasLtMatrixLayoutCreate(&x.c, CUDA_R_32F, M, N, M);
    cublasLtMatrixLayoutCreate(&x.out, CUDA_R_32F, M, N, M);
    x.lhs = on_device(M * K, 0), x.rhs = on_device(K * N, -3), x.added = on_device(M * N, 10), x.bias = on_device(M, 5), x.result = on_device(M * N, 0);
    x.work = on_device(64, 0), x.alpha = 0.5f, x.beta = 0;
    show("scaled", &x); // rows 0 3 6 9, 1 4 7 10, 2 5 8 11; columns -3 -2 -1 0, 1 2 3 4
    x.beta = -1;
    show("added", &x);
    x.beta = 0;
    set_bias(&x, x.bias);
    set_epilogue(&x, CUBLASLT_EPILOGUE_RELU_BIAS);
    show("relu", &x);
    x.alpha = 1.0f / 64;
    set_epilogue(&x, CUBLASLT_EPILOGUE_GELU);
    show("gelu", &x);
    set_epilogue(&x, CUBLASLT_EPILOGUE_BIAS);
    set_bias(&x, nullptr);
    show("no bias", &x);
    set_bias(&x, host);
    show("the host's bias", &x);
    set_epilogue(&x, CUBLASLT_EPILOGUE_DEFAULT);
    float *device = x.added;
    x.added = host, x.beta = 1;
    show("the host's matrix", &x);
    x.added = x.result, x.c->ld = 4;
    show("in place, elsewhere", &x);
    x.added = device, x.c->ld = M;
    x.a->type = x.b->type = x.c->type = x.out->type = CUDA_R_64F;
    set_epilogue(&x, CUBLASLT_EPILOGUE_RELU);
    show("relu of doubles", &x);
    x.a->type = x.b->type = CUDA_R_8F_E4M3, x.c->type = x.out->type = CUDA_R_32F;
    show("f8 by columns", &x);
    const cublasLtMatrixLayout_t layouts[] = { x.a, x.b, x.c, x.out };
    for (cublasLtMatrixLayout_t layout : layouts)
        cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(x.d);
    return 0;
}
