/* Products of matrices by cuBLASLt. A launcher of a dot that is one, by itself or with what a fusion makes of it (emit/product_call.h), asks the library first, and starts its kernel when that has nothing: when
 * the toolkit had no header, the library is not there, or it has no algorithm for these sizes.
 *
 *     static cudaError_t dot_3_launch(cudaStream_t stream, void *r0, const void *p0, const void *p1, void *memory)
 *     {
 *     #ifdef HLO_CUBLASLT
 *         // [64, 512] = [64, 256] [256, 512]
 *         static const hlo_product product = { CUDA_R_32F, ... };
 *         static hlo_plan *plans;
 *         const cudaError_t done = hlo_multiply(&product, &plans, stream, r0, p1, p0, NULL, NULL, memory);
 *         if (done != cudaErrorNotSupported)
 *             return done;
 *     #endif
 *         return hlo_launch(stream, ...
 *
 * The library has columns of a matrix beside each other, HLO rows: C = A B is the library's C' = B' A'. */
#include "emit/kernel_ir.h"
#include "emit/product_call.h"
#include "support/buf.h"
#include "target-cuda/part.h"

#include <math.h>

bool cuda_is_product(const Program *p, int32_t function)
{
    ProductCall x;
    return p->products && product_call_of_kernel(p->functions[function].kernel, &x);
}

/* ---- what is in front of everything ---- */

static const char types[] =
    "\n#ifdef HLO_CUBLASLT\n"
    "/* Matrices as cuBLASLt has them, columns side by side: out [m, n] = epilogue(alpha lhs [m, k] rhs [k, n] + beta added [m, n]), for each member of a batch;\n"
    " * a bias has a value for each row. */\n"
    "struct hlo_product {\n"
    "    cudaDataType_t      lhs, rhs, out, scale;\n"
    "    cublasComputeType_t compute;\n"
    "    int64_t             m, n, k;\n"
    "    bool                lhs_turned, rhs_turned;\n"
    "    int64_t             lhs_ld, rhs_ld, out_ld;          /* from column to column; of what is turned from row to row */\n"
    "    int32_t             batch;\n"
    "    int64_t             lhs_batch, rhs_batch, out_batch; /* from member to member */\n"
    "    int64_t             calls, lhs_by, rhs_by, out_by;   /* the same for batches of batches, in bytes */\n"
    "    uint64_t            work_bytes;\n"
    "    cublasLtEpilogue_t  epilogue;\n"
    "    double              alpha, beta;\n"
    "    int8_t              fast; /* sums of f8 may be rounded more often */\n"
    "};\n"
    "\n#define HLO_CUBLASLT_FUNCTIONS(F) \\\n"
    "    F(cublasLtCreate) F(cublasLtMatmulDescCreate) F(cublasLtMatmulDescSetAttribute) F(cublasLtMatrixLayoutCreate) F(cublasLtMatrixLayoutSetAttribute) \\\n"
    "    F(cublasLtMatmulPreferenceCreate) F(cublasLtMatmulPreferenceSetAttribute) F(cublasLtMatmulPreferenceDestroy) F(cublasLtMatmulAlgoGetHeuristic) \\\n"
    "    F(cublasLtMatmulDescDestroy) F(cublasLtMatrixLayoutDestroy) \\\n"
    "    F(cublasLtMatmul)\n"
    "\n/* The library on one device, from the first product on to the process's end. */\n"
    "struct hlo_library {\n"
    "    int              device;\n"
    "    cublasLtHandle_t handle; /* NULL: it is not there */\n"
    "#define HLO_POINTER(name) decltype(&::name) name;\n"
    "    HLO_CUBLASLT_FUNCTIONS(HLO_POINTER)\n"
    "    hlo_library *next;\n"
    "};\n"
    "\n/* How a product is done on one device with pointers that are multiples of `align`. The description has the bias of the last call. */\n"
    "struct hlo_plan {\n"
    "    int                    device;\n"
    "    uint32_t               align;\n"
    "    bool                   found;\n"
    "    cublasLtMatmulDesc_t   product;\n"
    "    cublasLtMatrixLayout_t lhs, rhs, out;\n"
    "    cublasLtMatmulAlgo_t   algorithm;\n"
    "    hlo_plan              *next;\n"
    "};\n"
    "\nstatic pthread_mutex_t hlo_lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists */\n"
    "static hlo_library    *hlo_libraries;\n";

static const char opening[] =
    "\n#ifdef HLO_CUBLASLT_IS_LINKED\n"
    "static bool hlo_load(hlo_library *x)\n"
    "{\n"
    "#define HLO_TAKE(name) x->name = ::name;\n"
    "    HLO_CUBLASLT_FUNCTIONS(HLO_TAKE)\n"
    "    return true;\n"
    "}\n"
    "#else\n"
    "#define HLO_TEXT_OF(x) #x\n"
    "#define HLO_TEXT(x) HLO_TEXT_OF(x)\n"
    "/* The library of the header's major version. */\n"
    "static bool hlo_load(hlo_library *x)\n"
    "{\n"
    "    void *file = dlopen(\"libcublasLt.so.\" HLO_TEXT(CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);\n"
    "    bool  all = file != NULL;\n"
    "#define HLO_TAKE(name) all = all && (x->name = (decltype(x->name))dlsym(file, #name)) != NULL;\n"
    "    HLO_CUBLASLT_FUNCTIONS(HLO_TAKE)\n"
    "    return all;\n"
    "}\n"
    "#endif\n"
    "\n/* NULL: there is none, or it would be opened while work is captured, which may not be. */\n"
    "static const hlo_library *hlo_library_on(int device, cudaStream_t stream)\n"
    "{\n"
    "    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;\n"
    "    hlo_library            *x = hlo_libraries;\n"
    "    while (x && x->device != device)\n"
    "        x = x->next;\n"
    "    if (x)\n"
    "        return x->handle ? x : NULL;\n"
    "    if (cudaStreamIsCapturing(stream, &capture) || capture != cudaStreamCaptureStatusNone || !(x = (hlo_library *)calloc(1, sizeof *x)))\n"
    "        return NULL;\n"
    "    x->device = device;\n"
    "    x->next = hlo_libraries;\n"
    "    hlo_libraries = x;\n"
    "    if (!hlo_load(x) || x->cublasLtCreate(&x->handle) != CUBLAS_STATUS_SUCCESS)\n"
    "        x->handle = NULL;\n"
    "    return x->handle ? x : NULL;\n"
    "}\n";

static const char planning[] =
    "\nstatic bool hlo_layout(const hlo_library *x, const hlo_product *p, cublasLtMatrixLayout_t *to, cudaDataType_t type, int64_t rows, int64_t cols, int64_t ld,\n"
    "                       int64_t batch_by)\n"
    "{\n"
    "    return !x->cublasLtMatrixLayoutCreate(to, type, (uint64_t)rows, (uint64_t)cols, ld) &&\n"
    "           !x->cublasLtMatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &p->batch, sizeof p->batch) &&\n"
    "           !x->cublasLtMatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_by, sizeof batch_by);\n"
    "}\n"
    "\nstatic bool hlo_set_bias(const hlo_library *x, const hlo_plan *plan, const void *bias)\n"
    "{\n"
    "    return !bias || !x->cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);\n"
    "}\n"
    "\nstatic bool hlo_describe(const hlo_library *x, const hlo_product *p, hlo_plan *to, const void *bias)\n"
    "{\n"
    "    const int32_t           bias_type = p->out;\n"
    "    const cublasOperation_t lhs = p->lhs_turned ? CUBLAS_OP_T : CUBLAS_OP_N, rhs = p->rhs_turned ? CUBLAS_OP_T : CUBLAS_OP_N;\n"
    "    return !x->cublasLtMatmulDescCreate(&to->product, p->compute, p->scale) &&\n"
    "           !x->cublasLtMatmulDescSetAttribute(to->product, CUBLASLT_MATMUL_DESC_TRANSA, &lhs, sizeof lhs) &&\n"
    "           !x->cublasLtMatmulDescSetAttribute(to->product, CUBLASLT_MATMUL_DESC_TRANSB, &rhs, sizeof rhs) &&\n"
    "           !x->cublasLtMatmulDescSetAttribute(to->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &p->epilogue, sizeof p->epilogue) &&\n"
    "           (!p->fast || !x->cublasLtMatmulDescSetAttribute(to->product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &p->fast, sizeof p->fast)) &&\n"
    "           (!bias || !x->cublasLtMatmulDescSetAttribute(to->product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof bias_type)) &&\n"
    "           hlo_set_bias(x, to, bias) &&\n"
    "           hlo_layout(x, p, &to->lhs, p->lhs, p->lhs_turned ? p->k : p->m, p->lhs_turned ? p->m : p->k, p->lhs_ld, p->lhs_batch) &&\n"
    "           hlo_layout(x, p, &to->rhs, p->rhs, p->rhs_turned ? p->n : p->k, p->rhs_turned ? p->k : p->n, p->rhs_ld, p->rhs_batch) &&\n"
    "           hlo_layout(x, p, &to->out, p->out, p->m, p->n, p->out_ld, p->out_batch);\n"
    "}\n"
    "\n/* The library's best algorithm. */\n"
    "static bool hlo_find(const hlo_library *x, const hlo_product *p, hlo_plan *to, const void *bias)\n"
    "{\n"
    "    static const cublasLtMatmulPreferenceAttributes_t aligns[] = { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,\n"
    "                                                                   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES };\n"
    "    cublasLtMatmulPreference_t      wish;\n"
    "    cublasLtMatmulHeuristicResult_t best;\n"
    "    int                             n = 0;\n"
    "    if (!hlo_describe(x, p, to, bias) || x->cublasLtMatmulPreferenceCreate(&wish))\n"
    "        return false;\n"
    "    bool good = !x->cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &p->work_bytes, sizeof p->work_bytes);\n"
    "    for (cublasLtMatmulPreferenceAttributes_t a : aligns)\n"
    "        good = good && !x->cublasLtMatmulPreferenceSetAttribute(wish, a, &to->align, sizeof to->align);\n"
    "    good = good && !x->cublasLtMatmulAlgoGetHeuristic(x->handle, to->product, to->lhs, to->rhs, to->out, to->out, wish, 1, &best, &n) && n > 0;\n"
    "    x->cublasLtMatmulPreferenceDestroy(wish);\n"
    "    if (good)\n"
    "        to->algorithm = best.algo;\n"
    "    return good;\n"
    "}\n"
    "\n/* What no algorithm was found for. */\n"
    "static void hlo_forget(const hlo_library *x, const hlo_plan *plan)\n"
    "{\n"
    "    const cublasLtMatrixLayout_t layouts[] = { plan->lhs, plan->rhs, plan->out };\n"
    "    if (plan->product)\n"
    "        x->cublasLtMatmulDescDestroy(plan->product);\n"
    "    for (cublasLtMatrixLayout_t layout : layouts)\n"
    "        if (layout)\n"
    "            x->cublasLtMatrixLayoutDestroy(layout);\n"
    "}\n"
    "\nstatic const hlo_plan *hlo_plan_for(const hlo_library *x, const hlo_product *p, hlo_plan **plans, uint32_t align, const void *bias)\n"
    "{\n"
    "    hlo_plan *plan = *plans;\n"
    "    while (plan && (plan->device != x->device || plan->align != align))\n"
    "        plan = plan->next;\n"
    "    if (!plan && (plan = (hlo_plan *)calloc(1, sizeof *plan))) {\n"
    "        plan->device = x->device;\n"
    "        plan->align = align;\n"
    "        plan->found = hlo_find(x, p, plan, bias);\n"
    "        if (!plan->found)\n"
    "            hlo_forget(x, plan);\n"
    "        plan->next = *plans;\n"
    "        *plans = plan;\n"
    "    }\n"
    "    return plan && plan->found ? plan : NULL;\n"
    "}\n";

static const char multiplying[] =
    "\n/* What the addresses of all matrices are multiples of. */\n"
    "static uint32_t hlo_alignment(uintptr_t addresses)\n"
    "{\n"
    "    addresses |= 256;\n"
    "    return (uint32_t)(addresses & (~addresses + 1));\n"
    "}\n"
    "\n/* A number in the type that the library scales by. */\n"
    "union hlo_scale {\n"
    "    double  wide[2];\n"
    "    float   narrow[2];\n"
    "    int32_t whole;\n"
    "};\n"
    "\nstatic hlo_scale hlo_scale_of(cudaDataType_t type, double v)\n"
    "{\n"
    "    hlo_scale x = {};\n"
    "    if (type == CUDA_R_64F || type == CUDA_C_64F)\n"
    "        x.wide[0] = v;\n"
    "    else if (type == CUDA_R_32I)\n"
    "        x.whole = (int32_t)v;\n"
    "    else\n"
    "        x.narrow[0] = (float)v;\n"
    "    return x;\n"
    "}\n"
    "\n/* added, bias: NULL where there are none. cudaErrorNotSupported: the library has nothing for it, or is not there. */\n"
    "static cudaError_t hlo_multiply(const hlo_product *p, hlo_plan **plans, cudaStream_t stream, void *out, const void *lhs, const void *rhs, const void *added,\n"
    "                                const void *bias, void *memory)\n"
    "{\n"
    "    const hlo_scale alpha = hlo_scale_of(p->scale, p->alpha), beta = hlo_scale_of(p->scale, p->beta);\n"
    "    const uint32_t  align = hlo_alignment((uintptr_t)out | (uintptr_t)lhs | (uintptr_t)rhs | (uintptr_t)added | (uintptr_t)bias |\n"
    "                                          (uintptr_t)(p->lhs_by | p->rhs_by | p->out_by));\n"
    "    void *const     work = (void *)(((uintptr_t)memory + 255) / 256 * 256);\n"
    "    int             device;\n"
    "    cudaError_t     e = cudaGetDevice(&device);\n"
    "    if (e)\n"
    "        return e;\n"
    "    pthread_mutex_lock(&hlo_lock);\n"
    "    const hlo_library *x = hlo_library_on(device, stream);\n"
    "    const hlo_plan    *plan = x ? hlo_plan_for(x, p, plans, align, bias) : NULL;\n"
    "    if (!bias) /* else the plan is this call's until the end */\n"
    "        pthread_mutex_unlock(&hlo_lock);\n"
    "    e = !plan ? cudaErrorNotSupported : hlo_set_bias(x, plan, bias) ? cudaSuccess : cudaErrorUnknown;\n"
    "    for (int64_t c = 0; c < p->calls && !e; c++) {\n"
    "        char       *to = (char *)out + c * p->out_by;\n"
    "        const char *from = added ? (const char *)added + c * p->out_by : to;\n"
    "        if (x->cublasLtMatmul(x->handle, plan->product, &alpha, (const char *)lhs + c * p->lhs_by, plan->lhs, (const char *)rhs + c * p->rhs_by, plan->rhs, &beta,\n"
    "                              from, plan->out, to, plan->out, &plan->algorithm, work, p->work_bytes, stream) != CUBLAS_STATUS_SUCCESS)\n"
    "            e = cudaErrorUnknown;\n"
    "    }\n"
    "    if (bias)\n"
    "        pthread_mutex_unlock(&hlo_lock);\n"
    "    return e;\n"
    "}\n"
    "#endif\n";

void cuda_product_services(Buf *b)
{
    buf_puts(b, types);
    buf_puts(b, opening);
    buf_puts(b, planning);
    buf_puts(b, multiplying);
}

/* ---- one product ---- */

static const char *data_type(Type t)
{
    switch (t) {
    case TYPE_F64: return "CUDA_R_64F";
    case TYPE_F16: return "CUDA_R_16F";
    case TYPE_BF16: return "CUDA_R_16BF";
    case TYPE_S8: return "CUDA_R_8I";
    case TYPE_S32: return "CUDA_R_32I";
    case TYPE_C64: return "CUDA_C_32F";
    case TYPE_C128: return "CUDA_C_64F";
    case TYPE_F8E4M3FN: return "CUDA_R_8F_E4M3";
    case TYPE_F8E5M2: return "CUDA_R_8F_E5M2";
    default: return "CUDA_R_32F";
    }
}

/* In which type the library counts: single precision for halves. */
static const char *scale_type(Type out)
{
    return data_type(out == TYPE_F16 || out == TYPE_BF16 ? TYPE_F32 : out);
}

static bool asks_for(const Inst *dot, Word algorithm)
{
    return inst_attr(dot, ATTR_ALGORITHM) && inst_word(dot, ATTR_ALGORITHM) == algorithm;
}

/* Do all dots that share the function ask for it? */
static bool all_ask_for(const Program *p, int32_t function, Word algorithm)
{
    ProductCall x;
    for (int32_t k = 0; k < p->n_steps; k++)
        if (p->steps[k]->kind == STEP_KERNEL && p->steps[k]->function == function && !(product_call(p->steps[k]->inst, &x) && asks_for(x.epilogue.hero, algorithm)))
            return false;
    return true;
}

/* Factors are rounded before they are multiplied only where the dot says so. */
static const char *compute_type(const Program *p, int32_t function, const DotCall *d)
{
    if (d->in == TYPE_F32 && all_ask_for(p, function, ALG_TF32_TF32_F32))
        return "CUBLAS_COMPUTE_32F_FAST_TF32";
    if (d->in == TYPE_F32 && all_ask_for(p, function, ALG_BF16_BF16_F32))
        return "CUBLAS_COMPUTE_32F_FAST_16BF";
    return d->out == TYPE_F64 || d->out == TYPE_C128 ? "CUBLAS_COMPUTE_64F" : d->out == TYPE_S32 ? "CUBLAS_COMPUTE_32I" : "CUBLAS_COMPUTE_32F";
}

static const char *epilogue(const ProductCall *x)
{
    static const char *const names[][2] = { [ACT_NONE] = { "DEFAULT", "BIAS" }, [ACT_RELU] = { "RELU", "RELU_BIAS" }, [ACT_GELU] = { "GELU", "GELU_BIAS" } };
    return names[x->epilogue.act][x->epilogue.bias >= 0];
}

/* "out = relu(0.5 * [64,80] + bias)", what the library does to the product. */
static void put_formula(Buf *b, const ProductCall *x)
{
    static const char *const acts[] = { [ACT_NONE] = "", [ACT_RELU] = "relu(", [ACT_GELU] = "gelu(" };
    const DotCall           *d = &x->dot;
    const ProductEpilogue   *e = &x->epilogue;
    buf_printf(b, "    // [%lld,%lld] = %s", (long long)d->m, (long long)d->n, acts[e->act]);
    if (e->alpha != 1)
        buf_printf(b, "%.9g ", e->alpha);
    buf_printf(b, "[%lld,%lld] [%lld,%lld]", (long long)d->m, (long long)d->k, (long long)d->k, (long long)d->n);
    if (e->added >= 0 && fabs(e->beta) != 1)
        buf_printf(b, " + %.9g p%d", e->beta, e->added);
    else if (e->added >= 0)
        buf_printf(b, " %c p%d", e->beta < 0 ? '-' : '+', e->added);
    if (e->bias >= 0)
        buf_printf(b, " + p%d[%lld]", e->bias, (long long)d->n);
    buf_puts(b, e->act != ACT_NONE ? ")" : "");
    for (int32_t k = 0; k < d->n_batch; k++)
        buf_printf(b, "%s%lld", k ? " by " : ", times ", (long long)d->batch[k].count);
}

static void put_product(Buf *b, const Program *p, int32_t function, const ProductCall *x)
{
    const DotCall *d = &x->dot;
    const bool    b_turned = d->b_col != 1, a_turned = d->a_col != 1;
    const int32_t inner = d->n_batch < 2 || d->batch[0].count >= d->batch[1].count ? 0 : 1, outer = 1 - inner;
    const bool    batch = d->n_batch > 0, calls = d->n_batch > 1;
    const int64_t in = type_bytes(d->in), out = type_bytes(d->out);
    const Type    factors[] = { inst_operand(x->epilogue.hero, 0)->shape->type, inst_operand(x->epilogue.hero, 1)->shape->type };
    put_formula(b, x);
    buf_printf(b, "\n    static const hlo_product product = { %s, %s, %s, %s, %s, %lld, %lld, %lld, %s, %s,\n", data_type(factors[!d->swapped]), data_type(factors[d->swapped]),
               data_type(d->out), scale_type(d->out), compute_type(p, function, d), (long long)d->n, (long long)d->m, (long long)d->k, b_turned ? "true" : "false",
               a_turned ? "true" : "false");
    buf_printf(b, "        %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld,\n",
               (long long)(b_turned ? d->b_col : d->b_row), (long long)(a_turned ? d->a_col : d->a_row), (long long)d->c_row,
               (long long)(batch ? d->batch[inner].count : 1), (long long)(batch ? d->batch[inner].b : 0), (long long)(batch ? d->batch[inner].a : 0),
               (long long)(batch ? d->batch[inner].c : 0), (long long)(calls ? d->batch[outer].count : 1), (long long)(calls ? d->batch[outer].b * in : 0),
               (long long)(calls ? d->batch[outer].a * in : 0), (long long)(calls ? d->batch[outer].c * out : 0), (long long)x->work);
    buf_printf(b, "        CUBLASLT_EPILOGUE_%s, %.17g, %.17g, %d };\n", epilogue(x), x->epilogue.alpha, x->epilogue.added >= 0 ? x->epilogue.beta : 0.0,
               all_ask_for(p, function, ALG_ANY_F8_ANY_F8_F32_FAST_ACCUM));
}

static const char *param(Arena *a, int32_t operand)
{
    return operand < 0 ? "NULL" : arena_printf(a, "p%d", operand);
}

void cuda_put_product(Buf *b, const Program *p, int32_t function)
{
    ProductCall x;
    if (!p->products || !product_call_of_kernel(p->functions[function].kernel, &x))
        return;
    const ProductEpilogue *e = &x.epilogue;
    Arena                 *a = arena_new();
    buf_puts(b, "#ifdef HLO_CUBLASLT\n");
    put_product(b, p, function, &x);
    buf_printf(b, "    static hlo_plan *plans;\n"
                  "    const cudaError_t done = hlo_multiply(&product, &plans, stream, r0, %s, %s, %s, %s, memory);\n"
                  "    if (done != cudaErrorNotSupported)\n"
                  "        return done;\n"
                  "#endif\n",
               param(a, x.dot.swapped ? e->lhs : e->rhs), param(a, x.dot.swapped ? e->rhs : e->lhs), param(a, e->added), param(a, e->bias));
    arena_free(a);
}
