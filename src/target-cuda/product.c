/* Products of matrices by cuBLASLt. A launcher of a dot that is one (emit/dot_call.h) asks the library first, and starts its kernel when that has nothing: when
 * the toolkit had no header, the library is not there, or it has no algorithm for these sizes.
 *
 *     static cudaError_t dot_3_launch(cudaStream_t stream, void *r0, const void *p0, const void *p1, void *memory)
 *     {
 *     #ifdef HLO_CUBLASLT
 *         // [64, 512] = [64, 256] [256, 512]
 *         static const hlo_product product = { CUDA_R_32F, ... };
 *         static hlo_plan *plans;
 *         const cudaError_t done = hlo_multiply(&product, &plans, stream, r0, p0, p1, memory);
 *         if (done != cudaErrorNotSupported)
 *             return done;
 *     #endif
 *         return hlo_launch(stream, ...
 *
 * The library has columns of a matrix beside each other, HLO rows: C = A B is the library's C' = B' A'. */
#include "emit/dot_call.h"
#include "emit/kernel_ir.h"
#include "support/buf.h"
#include "target-cuda/part.h"

bool cuda_has_products(const Program *p)
{
    DotCall d;
    int64_t work;
    for (int32_t f = 0; p->products && f < p->n_functions; f++)
        if (dot_call_of_kernel(p->functions[f].kernel, &d, &work))
            return true;
    return false;
}

/* ---- what is in front of everything ---- */

void cuda_product_includes(Buf *b)
{
    buf_puts(b, "#if !defined(HLO_NO_CUBLASLT) && defined(__has_include)\n"
                "#if __has_include(<cublasLt.h>)\n"
                "#define HLO_CUBLASLT 1\n"
                "#include <cublasLt.h>\n"
                "#include <dlfcn.h>\n"
                "#include <pthread.h>\n"
                "#include <stdlib.h>\n"
                "#endif\n"
                "#endif\n");
}

static const char types[] =
    "\n#ifdef HLO_CUBLASLT\n"
    "/* Matrices as cuBLASLt has them, columns side by side: out [m, n] = lhs [m, k] rhs [k, n], for each member of a batch. */\n"
    "struct hlo_product {\n"
    "    cudaDataType_t      in, out, scale;\n"
    "    cublasComputeType_t compute;\n"
    "    int64_t             m, n, k;\n"
    "    bool                lhs_turned, rhs_turned;\n"
    "    int64_t             lhs_ld, rhs_ld, out_ld;          /* from column to column; of what is turned from row to row */\n"
    "    int32_t             batch;\n"
    "    int64_t             lhs_batch, rhs_batch, out_batch; /* from member to member */\n"
    "    int64_t             calls, lhs_by, rhs_by, out_by;   /* the same for batches of batches, in bytes */\n"
    "    uint64_t            work_bytes;\n"
    "};\n"
    "\n#define HLO_CUBLASLT_FUNCTIONS(F) \\\n"
    "    F(cublasLtCreate) F(cublasLtMatmulDescCreate) F(cublasLtMatmulDescSetAttribute) F(cublasLtMatrixLayoutCreate) F(cublasLtMatrixLayoutSetAttribute) \\\n"
    "    F(cublasLtMatmulPreferenceCreate) F(cublasLtMatmulPreferenceSetAttribute) F(cublasLtMatmulPreferenceDestroy) F(cublasLtMatmulAlgoGetHeuristic) \\\n"
    "    F(cublasLtMatmul)\n"
    "\n/* The library on one device, from the first product on to the process's end. */\n"
    "struct hlo_library {\n"
    "    int              device;\n"
    "    cublasLtHandle_t handle; /* NULL: it is not there */\n"
    "#define HLO_POINTER(name) decltype(&::name) name;\n"
    "    HLO_CUBLASLT_FUNCTIONS(HLO_POINTER)\n"
    "    hlo_library *next;\n"
    "};\n"
    "\n/* How a product is done on one device with pointers that are multiples of `align`. */\n"
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
    "\nstatic bool hlo_describe(const hlo_library *x, const hlo_product *p, hlo_plan *to)\n"
    "{\n"
    "    const cublasOperation_t lhs = p->lhs_turned ? CUBLAS_OP_T : CUBLAS_OP_N, rhs = p->rhs_turned ? CUBLAS_OP_T : CUBLAS_OP_N;\n"
    "    return !x->cublasLtMatmulDescCreate(&to->product, p->compute, p->scale) &&\n"
    "           !x->cublasLtMatmulDescSetAttribute(to->product, CUBLASLT_MATMUL_DESC_TRANSA, &lhs, sizeof lhs) &&\n"
    "           !x->cublasLtMatmulDescSetAttribute(to->product, CUBLASLT_MATMUL_DESC_TRANSB, &rhs, sizeof rhs) &&\n"
    "           hlo_layout(x, p, &to->lhs, p->in, p->lhs_turned ? p->k : p->m, p->lhs_turned ? p->m : p->k, p->lhs_ld, p->lhs_batch) &&\n"
    "           hlo_layout(x, p, &to->rhs, p->in, p->rhs_turned ? p->n : p->k, p->rhs_turned ? p->k : p->n, p->rhs_ld, p->rhs_batch) &&\n"
    "           hlo_layout(x, p, &to->out, p->out, p->m, p->n, p->out_ld, p->out_batch);\n"
    "}\n"
    "\n/* The library's best algorithm. */\n"
    "static bool hlo_find(const hlo_library *x, const hlo_product *p, hlo_plan *to)\n"
    "{\n"
    "    static const cublasLtMatmulPreferenceAttributes_t aligns[] = { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,\n"
    "                                                                   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES };\n"
    "    cublasLtMatmulPreference_t      wish;\n"
    "    cublasLtMatmulHeuristicResult_t best;\n"
    "    int                             n = 0;\n"
    "    if (!hlo_describe(x, p, to) || x->cublasLtMatmulPreferenceCreate(&wish))\n"
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
    "\nstatic const hlo_plan *hlo_plan_for(const hlo_library *x, const hlo_product *p, hlo_plan **plans, uint32_t align)\n"
    "{\n"
    "    hlo_plan *plan = *plans;\n"
    "    while (plan && (plan->device != x->device || plan->align != align))\n"
    "        plan = plan->next;\n"
    "    if (!plan && (plan = (hlo_plan *)calloc(1, sizeof *plan))) {\n"
    "        plan->device = x->device;\n"
    "        plan->align = align;\n"
    "        plan->found = hlo_find(x, p, plan);\n"
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
    "\n/* cudaErrorNotSupported: the library has nothing for it, or is not there. */\n"
    "static cudaError_t hlo_multiply(const hlo_product *p, hlo_plan **plans, cudaStream_t stream, void *out, const void *lhs, const void *rhs, void *memory)\n"
    "{\n"
    "    static const double  one[2] = { 1, 0 }, zero[2] = { 0, 0 };\n"
    "    static const float   one_f[2] = { 1, 0 }, zero_f[2] = { 0, 0 };\n"
    "    static const int32_t one_i = 1, zero_i = 0;\n"
    "    const bool           wide = p->scale == CUDA_R_64F || p->scale == CUDA_C_64F, whole = p->scale == CUDA_R_32I;\n"
    "    const void *const    alpha = wide ? (const void *)one : whole ? (const void *)&one_i : (const void *)one_f;\n"
    "    const void *const    beta = wide ? (const void *)zero : whole ? (const void *)&zero_i : (const void *)zero_f;\n"
    "    const uint32_t       align = hlo_alignment((uintptr_t)out | (uintptr_t)lhs | (uintptr_t)rhs | (uintptr_t)(p->lhs_by | p->rhs_by | p->out_by));\n"
    "    void *const          work = (void *)(((uintptr_t)memory + 255) / 256 * 256);\n"
    "    int                  device;\n"
    "    const cudaError_t    e = cudaGetDevice(&device);\n"
    "    if (e)\n"
    "        return e;\n"
    "    pthread_mutex_lock(&hlo_lock);\n"
    "    const hlo_library *x = hlo_library_on(device, stream);\n"
    "    const hlo_plan    *plan = x ? hlo_plan_for(x, p, plans, align) : NULL;\n"
    "    pthread_mutex_unlock(&hlo_lock);\n"
    "    if (!plan)\n"
    "        return cudaErrorNotSupported;\n"
    "    for (int64_t c = 0; c < p->calls; c++) {\n"
    "        char *to = (char *)out + c * p->out_by;\n"
    "        if (x->cublasLtMatmul(x->handle, plan->product, alpha, (const char *)lhs + c * p->lhs_by, plan->lhs, (const char *)rhs + c * p->rhs_by, plan->rhs, beta, to,\n"
    "                              plan->out, to, plan->out, &plan->algorithm, work, p->work_bytes, stream) != CUBLAS_STATUS_SUCCESS)\n"
    "            return cudaErrorUnknown;\n"
    "    }\n"
    "    return cudaSuccess;\n"
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

/* Factors are rounded before they are multiplied only where all dots that share the function say so. */
static const char *compute_type(const Program *p, int32_t function, const DotCall *d)
{
    bool tf32 = d->in == TYPE_F32, bf16 = tf32;
    for (int32_t k = 0; k < p->n_steps; k++)
        if (p->steps[k]->kind == STEP_KERNEL && p->steps[k]->function == function) {
            tf32 &= asks_for(p->steps[k]->inst, ALG_TF32_TF32_F32);
            bf16 &= asks_for(p->steps[k]->inst, ALG_BF16_BF16_F32);
        }
    if (tf32 || bf16)
        return tf32 ? "CUBLAS_COMPUTE_32F_FAST_TF32" : "CUBLAS_COMPUTE_32F_FAST_16BF";
    return d->out == TYPE_F64 || d->out == TYPE_C128 ? "CUBLAS_COMPUTE_64F" : d->out == TYPE_S32 ? "CUBLAS_COMPUTE_32I" : "CUBLAS_COMPUTE_32F";
}

static void put_product(Buf *b, const Program *p, int32_t function, const DotCall *d, int64_t work)
{
    const bool    b_turned = d->b_col != 1, a_turned = d->a_col != 1;
    const int32_t inner = d->n_batch < 2 || d->batch[0].count >= d->batch[1].count ? 0 : 1, outer = 1 - inner;
    const bool    batch = d->n_batch > 0, calls = d->n_batch > 1;
    const int64_t in = type_bytes(d->in), out = type_bytes(d->out);
    buf_printf(b, "    // [%lld,%lld] = [%lld,%lld] [%lld,%lld]", (long long)d->m, (long long)d->n, (long long)d->m, (long long)d->k, (long long)d->k, (long long)d->n);
    for (int32_t k = 0; k < d->n_batch; k++)
        buf_printf(b, "%s%lld", k ? " by " : ", times ", (long long)d->batch[k].count);
    buf_printf(b, "\n    static const hlo_product product = { %s, %s, %s, %s, %lld, %lld, %lld, %s, %s,\n", data_type(d->in), data_type(d->out), scale_type(d->out),
               compute_type(p, function, d), (long long)d->n, (long long)d->m, (long long)d->k, b_turned ? "true" : "false", a_turned ? "true" : "false");
    buf_printf(b, "        %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld };\n",
               (long long)(b_turned ? d->b_col : d->b_row), (long long)(a_turned ? d->a_col : d->a_row), (long long)d->c_row,
               (long long)(batch ? d->batch[inner].count : 1), (long long)(batch ? d->batch[inner].b : 0), (long long)(batch ? d->batch[inner].a : 0),
               (long long)(batch ? d->batch[inner].c : 0), (long long)(calls ? d->batch[outer].count : 1), (long long)(calls ? d->batch[outer].b * in : 0),
               (long long)(calls ? d->batch[outer].a * in : 0), (long long)(calls ? d->batch[outer].c * out : 0), (long long)work);
}

void cuda_put_product(Buf *b, const Program *p, int32_t function)
{
    DotCall d;
    int64_t work;
    if (!p->products || !dot_call_of_kernel(p->functions[function].kernel, &d, &work))
        return;
    const char *lhs = "p0", *rhs = kernel_uses_param(p->functions[function].kernel, 1) ? "p1" : "p0"; /* of one array by itself */
    buf_puts(b, "#ifdef HLO_CUBLASLT\n");
    put_product(b, p, function, &d, work);
    buf_printf(b, "    static hlo_plan *plans;\n"
                  "    const cudaError_t done = hlo_multiply(&product, &plans, stream, r0, %s, %s, memory);\n"
                  "    if (done != cudaErrorNotSupported)\n"
                  "        return done;\n"
                  "#endif\n",
               d.swapped ? lhs : rhs, d.swapped ? rhs : lhs);
}
