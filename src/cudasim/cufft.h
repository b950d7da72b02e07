/* As much of cuFFT as emitted text uses, on the CPU: transforms by their definition (cudasim_enqueue_transform), in the order of the stream. In place of the toolkit's header of that
 * name. A transform to real numbers destroys its input, one of more than 16 numbers wants working memory, as the library may. */
#ifndef CUDASIM_CUFFT_H
#define CUDASIM_CUFFT_H

#include <cuda_runtime.h>

#define HLO_CUFFT_IS_LINKED 1

enum cufftResult { CUFFT_SUCCESS = 0, CUFFT_INVALID_PLAN = 1, CUFFT_INVALID_VALUE = 4, CUFFT_EXEC_FAILED = 6, CUFFT_SETUP_FAILED = 7, CUFFT_NO_WORKSPACE = 14 };
enum cufftType { CUFFT_R2C = 0x2a, CUFFT_C2R = 0x2c, CUFFT_C2C = 0x29, CUFFT_D2Z = 0x6a, CUFFT_Z2D = 0x6c, CUFFT_Z2Z = 0x69 };
enum { CUFFT_FORWARD = -1, CUFFT_INVERSE = 1 };
typedef float  cufftReal;
typedef double cufftDoubleReal;
struct cufftComplex { float x, y; };
struct cufftDoubleComplex { double x, y; };
typedef int cufftHandle;

struct cudasim_fft {
    cufftType         type;
    cudasim_transform transform;
    cudaStream_t      stream;
    void             *work;
    size_t            work_bytes;
};
enum { CUDASIM_PLANS = 256 };
static cudasim_fft cudasim_plans[CUDASIM_PLANS];
static int         cudasim_n_plans;

static inline cudasim_fft *cudasim_plan(cufftHandle h) { return h > 0 && h <= cudasim_n_plans ? &cudasim_plans[h - 1] : nullptr; }
static inline cufftResult cufftCreate(cufftHandle *h)
{
    if (!cudasim_has_library("cufft") || cudasim_n_plans == CUDASIM_PLANS)
        return CUFFT_SETUP_FAILED;
    *h = ++cudasim_n_plans;
    return CUFFT_SUCCESS;
}
static inline cufftResult cufftSetAutoAllocation(cufftHandle h, int by_itself) { return cudasim_plan(h) && !by_itself ? CUFFT_SUCCESS : CUFFT_INVALID_VALUE; }
static inline cufftResult cufftMakePlanMany64(cufftHandle h, int rank, long long *size, long long *in, long long, long long, long long *out, long long, long long, cufftType type,
                                              long long batch, size_t *work)
{
    cudasim_fft *const x = cudasim_plan(h);
    long long          all = 1;
    if (!x || rank < 1 || rank > 3 || in || out || batch < 1)
        return CUFFT_INVALID_VALUE;
    x->type = type;
    x->transform = cudasim_transform{};
    x->transform.rank = rank;
    for (int k = 0; k < rank; k++) {
        if (size[k] < 1)
            return CUFFT_INVALID_VALUE;
        x->transform.size[k] = size[k];
        all *= size[k];
    }
    x->transform.batch = batch;
    x->transform.wide = type == CUFFT_D2Z || type == CUFFT_Z2D || type == CUFFT_Z2Z;
    x->transform.from_real = type == CUFFT_R2C || type == CUFFT_D2Z;
    x->transform.to_real = type == CUFFT_C2R || type == CUFFT_Z2D;
    *work = x->work_bytes = all > 16 ? (size_t)all * 8 + 4 : 0;
    return CUFFT_SUCCESS;
}
static inline cufftResult cufftSetWorkArea(cufftHandle h, void *work)
{
    cudasim_fft *const x = cudasim_plan(h);
    if (!x)
        return CUFFT_INVALID_PLAN;
    x->work = work;
    return CUFFT_SUCCESS;
}
static inline cufftResult cufftSetStream(cufftHandle h, cudaStream_t s)
{
    cudasim_fft *const x = cudasim_plan(h);
    if (!x)
        return CUFFT_INVALID_PLAN;
    x->stream = s;
    return CUFFT_SUCCESS;
}
static inline cufftResult cudasim_transformed(cufftHandle h, cufftType type, void *in, void *out, int direction)
{
    const cudasim_fft *const x = cudasim_plan(h);
    if (!x || x->type != type)
        return CUFFT_INVALID_PLAN;
    if (x->work_bytes > 0 && (!x->work || cudasim_enqueue_set(x->work, 0xff, x->work_bytes, x->stream)))
        return CUFFT_NO_WORKSPACE;
    cudasim_transform t = x->transform;
    t.inverse = direction == CUFFT_INVERSE;
    return cudasim_enqueue_transform(&t, out, in, x->stream) ? CUFFT_EXEC_FAILED : CUFFT_SUCCESS;
}
static inline cufftResult cufftExecC2C(cufftHandle h, cufftComplex *in, cufftComplex *out, int way) { return cudasim_transformed(h, CUFFT_C2C, in, out, way); }
static inline cufftResult cufftExecR2C(cufftHandle h, cufftReal *in, cufftComplex *out) { return cudasim_transformed(h, CUFFT_R2C, in, out, CUFFT_FORWARD); }
static inline cufftResult cufftExecC2R(cufftHandle h, cufftComplex *in, cufftReal *out) { return cudasim_transformed(h, CUFFT_C2R, in, out, CUFFT_INVERSE); }
static inline cufftResult cufftExecZ2Z(cufftHandle h, cufftDoubleComplex *in, cufftDoubleComplex *out, int way) { return cudasim_transformed(h, CUFFT_Z2Z, in, out, way); }
static inline cufftResult cufftExecD2Z(cufftHandle h, cufftDoubleReal *in, cufftDoubleComplex *out) { return cudasim_transformed(h, CUFFT_D2Z, in, out, CUFFT_FORWARD); }
static inline cufftResult cufftExecZ2D(cufftHandle h, cufftDoubleComplex *in, cufftDoubleReal *out) { return cudasim_transformed(h, CUFFT_Z2D, in, out, CUFFT_INVERSE); }

#endif
