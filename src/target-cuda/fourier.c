/* Fourier transforms by cuFFT. The launcher of an fft asks the library first, and starts its kernels, for which it gets working memory, when that has nothing: when the toolkit had no header, the library is not
 * there, or it would allocate while work is captured.
 *
 *     #ifdef HLO_CUFFT
 *         // irfft of 20, times 3
 *         static const hlo_fourier fourier = { CUFFT_C2R, 1, { 20 }, 3, CUFFT_INVERSE, 264, 60, 0.05 };
 *         static hlo_transform *plans;
 *         const cudaError_t done = hlo_transformed(&fourier, &plans, stream, r0, p0);
 *         if (done != cudaErrorNotSupported)
 *             return done;
 *     #endif
 *
 * The library does not divide: a kernel scales what comes out of an inverse transform. One to real numbers destroys its input, of which it gets a copy. Working memory is the stream's. */
#include "emit/fft_call.h"
#include "target-cuda/part.h"

bool cuda_is_transform(const Program *p, int32_t function)
{
    return p->products && kernel_is_transform(p->functions[function].kernel);
}

static const char services[] =
    "\n#ifdef HLO_CUFFT\n"
    "/* batch transforms of size[0] by ... of arrays that lie side by side. */\n"
    "struct hlo_fourier {\n"
    "    cufftType type;\n"
    "    int       rank;\n"
    "    long long size[3], batch;\n"
    "    int       direction;\n"
    "    size_t    bytes;   /* of the input */\n"
    "    int64_t   reals;   /* in the result */\n"
    "    double    scale;\n"
    "};\n"
    "\n#define HLO_CUFFT_FUNCTIONS(F) \\\n"
    "    F(cufftCreate) F(cufftSetAutoAllocation) F(cufftMakePlanMany64) F(cufftSetWorkArea) F(cufftSetStream) \\\n"
    "    F(cufftExecC2C) F(cufftExecR2C) F(cufftExecC2R) F(cufftExecZ2Z) F(cufftExecD2Z) F(cufftExecZ2D)\n"
    "\nstruct hlo_fft_library {\n"
    "    bool tried, good;\n"
    "#define HLO_POINTER(name) decltype(&::name) name;\n"
    "    HLO_CUFFT_FUNCTIONS(HLO_POINTER)\n"
    "#undef HLO_POINTER\n"
    "};\n"
    "\n/* The library's plan on one device. */\n"
    "struct hlo_transform {\n"
    "    int            device;\n"
    "    bool           good;\n"
    "    cufftHandle    handle;\n"
    "    size_t         work;\n"
    "    hlo_transform *next;\n"
    "};\n"
    "\nstatic pthread_mutex_t hlo_fft_lock = PTHREAD_MUTEX_INITIALIZER; /* of plans, and of the streams that they are set to */\n"
    "static hlo_fft_library hlo_fft;\n"
    "\nstatic bool hlo_load_fft(hlo_fft_library *x)\n"
    "{\n"
    "#ifdef HLO_CUFFT_IS_LINKED\n"
    "#define HLO_SEEK(name) x->name = ::name;\n"
    "    HLO_CUFFT_FUNCTIONS(HLO_SEEK)\n"
    "    return true;\n"
    "#else\n"
    "#define HLO_FFT_FILE_OF(version) \"libcufft.so.\" #version\n"
    "#define HLO_FFT_FILE(version) HLO_FFT_FILE_OF(version)\n"
    "    void *file = dlopen(HLO_FFT_FILE(CUFFT_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);\n"
    "    bool  all = file != NULL;\n"
    "#define HLO_SEEK(name) all = all && (x->name = (decltype(x->name))dlsym(file, #name)) != NULL;\n"
    "    HLO_CUFFT_FUNCTIONS(HLO_SEEK)\n"
    "    return all;\n"
    "#endif\n"
    "}\n"
    "\nstatic bool hlo_make_transform(const hlo_fft_library *x, const hlo_fourier *p, hlo_transform *to)\n"
    "{\n"
    "    long long size[3] = { p->size[0], p->size[1], p->size[2] };\n"
    "    return !x->cufftCreate(&to->handle) && !x->cufftSetAutoAllocation(to->handle, 0) &&\n"
    "           !x->cufftMakePlanMany64(to->handle, p->rank, size, NULL, 1, 0, NULL, 1, 0, p->type, p->batch, &to->work);\n"
    "}\n"
    "\n/* NULL: the library has none, or it would be made while work is captured, which may not be. */\n"
    "static const hlo_transform *hlo_transform_on(hlo_fft_library *x, const hlo_fourier *p, hlo_transform **plans, int device, bool captured)\n"
    "{\n"
    "    hlo_transform *plan = *plans;\n"
    "    while (plan && plan->device != device)\n"
    "        plan = plan->next;\n"
    "    if (!plan && !captured && (plan = (hlo_transform *)calloc(1, sizeof *plan)) != NULL) {\n"
    "        x->good = x->tried ? x->good : hlo_load_fft(x);\n"
    "        x->tried = true;\n"
    "        plan->device = device;\n"
    "        plan->good = x->good && hlo_make_transform(x, p, plan);\n"
    "        plan->next = *plans;\n"
    "        *plans = plan;\n"
    "    }\n"
    "    return plan && plan->good ? plan : NULL;\n"
    "}\n"
    "\ntemplate <typename T> static __global__ void hlo_scale_kernel(T *x, int64_t n, T by)\n"
    "{\n"
    "    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += (int64_t)gridDim.x * 256)\n"
    "        x[i] *= by;\n"
    "}\n"
    "\nstatic cufftResult hlo_execute(const hlo_fft_library *x, const hlo_fourier *p, const hlo_transform *plan, void *out, void *in)\n"
    "{\n"
    "    switch (p->type) {\n"
    "    case CUFFT_C2C: return x->cufftExecC2C(plan->handle, (cufftComplex *)in, (cufftComplex *)out, p->direction);\n"
    "    case CUFFT_R2C: return x->cufftExecR2C(plan->handle, (cufftReal *)in, (cufftComplex *)out);\n"
    "    case CUFFT_C2R: return x->cufftExecC2R(plan->handle, (cufftComplex *)in, (cufftReal *)out);\n"
    "    case CUFFT_Z2Z: return x->cufftExecZ2Z(plan->handle, (cufftDoubleComplex *)in, (cufftDoubleComplex *)out, p->direction);\n"
    "    case CUFFT_D2Z: return x->cufftExecD2Z(plan->handle, (cufftDoubleReal *)in, (cufftDoubleComplex *)out);\n"
    "    case CUFFT_Z2D: return x->cufftExecZ2D(plan->handle, (cufftDoubleComplex *)in, (cufftDoubleReal *)out);\n"
    "    }\n"
    "    return CUFFT_INVALID_VALUE;\n"
    "}\n"
    "\nstatic cudaError_t hlo_scaled(const hlo_fourier *p, cudaStream_t stream, void *out)\n"
    "{\n"
    "    const int64_t  most = 4096, needed = (p->reals + 255) / 256;\n"
    "    const unsigned blocks = (unsigned)(needed < most ? needed : most);\n"
    "    if (p->scale == 1)\n"
    "        return cudaSuccess;\n"
    "    if (p->type == CUFFT_C2C || p->type == CUFFT_C2R)\n"
    "        return hlo_launch(stream, blocks, 256, hlo_scale_kernel<float>, (float *)out, p->reals, (float)p->scale);\n"
    "    return hlo_launch(stream, blocks, 256, hlo_scale_kernel<double>, (double *)out, p->reals, p->scale);\n"
    "}\n"
    "\n/* cudaErrorNotSupported: the library has nothing for it, or is not there. */\n"
    "static cudaError_t hlo_transformed(const hlo_fourier *p, hlo_transform **plans, cudaStream_t stream, void *out, const void *in)\n"
    "{\n"
    "    const bool              keeps = p->type != CUFFT_C2R && p->type != CUFFT_Z2D;\n"
    "    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;\n"
    "    void                   *memory = NULL, *from = const_cast<void *>(in);\n"
    "    int                     device;\n"
    "    cudaError_t             e = cudaGetDevice(&device);\n"
    "    e = e ? e : cudaStreamIsCapturing(stream, &capture);\n"
    "    if (e)\n"
    "        return e;\n"
    "    const bool captured = capture != cudaStreamCaptureStatusNone;\n"
    "    pthread_mutex_lock(&hlo_fft_lock);\n"
    "    const hlo_transform *const plan = hlo_transform_on(&hlo_fft, p, plans, device, captured);\n"
    "    const size_t               work = plan ? (plan->work + 255) / 256 * 256 : 0, bytes = work + (keeps ? 0 : p->bytes);\n"
    "    e = !plan || (captured && bytes > 0) || (out == in && p->type != CUFFT_C2C && p->type != CUFFT_Z2Z) ? cudaErrorNotSupported : cudaSuccess;\n"
    "    if (!e && bytes > 0)\n"
    "        e = cudaMallocAsync(&memory, bytes, stream);\n"
    "    if (!e && !keeps) {\n"
    "        from = (char *)memory + work;\n"
    "        e = cudaMemcpyAsync(from, in, p->bytes, cudaMemcpyDeviceToDevice, stream);\n"
    "    }\n"
    "    if (!e && (hlo_fft.cufftSetStream(plan->handle, stream) || (work > 0 && hlo_fft.cufftSetWorkArea(plan->handle, memory)) ||\n"
    "               hlo_execute(&hlo_fft, p, plan, out, from)))\n"
    "        e = cudaErrorUnknown;\n"
    "    e = e ? e : hlo_scaled(p, stream, out);\n"
    "    const cudaError_t freed = memory ? cudaFreeAsync(memory, stream) : cudaSuccess;\n"
    "    pthread_mutex_unlock(&hlo_fft_lock);\n"
    "    return e ? e : freed;\n"
    "}\n"
    "#endif\n";

void cuda_transform_services(Buf *b)
{
    buf_puts(b, services);
}

void cuda_put_transform(Buf *b, const Program *p, int32_t function)
{
    const Inst *i = p->functions[function].inst;
    if (!cuda_is_transform(p, function))
        return;
    const Word  type = inst_word(i, ATTR_FFT_TYPE);
    const Ints  size = inst_ints(i, ATTR_FFT_LENGTH);
    const Type  number = type_component(i->shape->type);
    const bool  inverse = type == FFT_IFFT || type == FFT_IRFFT, wide = number == TYPE_F64;
    const char *name = type == FFT_RFFT ? wide ? "D2Z" : "R2C" : type == FFT_IRFFT ? wide ? "Z2D" : "C2R" : wide ? "Z2Z" : "C2C";
    int64_t     batch = 1, all = 1;
    for (int32_t k = 0; k < i->shape->rank - size.n; k++)
        batch *= i->shape->dims[k];
    for (int32_t k = 0; k < size.n; k++)
        all *= size.v[k];
    buf_printf(b, "#ifdef HLO_CUFFT\n    static const hlo_fourier fourier = { CUFFT_%s, %d, { ", name, size.n);
    for (int32_t k = 0; k < size.n; k++)
        buf_printf(b, "%s%lld", k ? ", " : "", (long long)size.v[k]);
    const Shape *from = inst_operand(i, 0)->shape;
    buf_printf(b, " }, %lld, CUFFT_%s, %lld, %lld, %.17g };\n"
                  "    static hlo_transform *plans;\n"
                  "    const cudaError_t done = hlo_transformed(&fourier, &plans, stream, r0, p0);\n"
                  "    if (done != cudaErrorNotSupported)\n"
                  "        return done;\n"
                  "#endif\n",
               (long long)batch, inverse ? "INVERSE" : "FORWARD", (long long)(shape_count(from) * type_bytes(from->type)),
               (long long)(shape_count(i->shape) * (type_is_complex(i->shape->type) ? 2 : 1)), inverse ? 1.0 / (double)all : 1.0);
}
