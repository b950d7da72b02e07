/* Tridiagonal systems, as LAPACK's gtsv solves them: rows are exchanged where the one below has the larger number, all factors are results, and the first pivot that is 0 ends it. No library leaves the factors or
 * says where the zero is, so these are two kernels: a thread for each matrix finds its factors, then one for each right-hand side goes down and up.
 *
 *     status = status ? status : hlo_launch(stream, 1, 256, hlo_tridiagonal_kernel<float>, dl, d, du, (float *)memory, memory + 1280, info, (int64_t)5, (int64_t)64);
 *     status = status ? status : hlo_launch(stream, 1, 256, hlo_down_and_up_kernel<float>, b, dl, d, du, (const float *)memory, memory + 1280, info, (int64_t)5, (int64_t)2, (int64_t)64); */
#include "target-cuda/solver_text.h"

void solver_tridiagonal_services(Buf *b)
{
    buf_puts(b, "\n/* Of complex numbers the sum of the parts; those below a diagonal that are 0 already are no work then. */\n"
                "template <typename T> static __device__ bool hlo_stays(T d, T below)\n"
                "{\n"
                "    return fabs(d) >= fabs(below);\n"
                "}\n"
                "template <template <typename> class C, typename R> static __device__ bool hlo_stays(C<R> d, C<R> below)\n"
                "{\n"
                "    return below == C<R>(0) || fabs(d.re) + fabs(d.im) >= fabs(below.re) + fabs(below.im);\n"
                "}\n"
                "\n/* The factors of batch matrices of n rows: dl becomes the second diagonal above. What step k takes of row k is by[k], after an exchange where turned[k]. info: 0, or from 1 on the row that is 0. */\n"
                "template <typename T>\n"
                "static __global__ void hlo_tridiagonal_kernel(T *dl, T *d, T *du, T *by, char *turned, int *info, int64_t n, int64_t batch)\n"
                "{\n"
                "    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < batch; i += (int64_t)gridDim.x * 256) {\n"
                "        T *const below = dl + i * n + 1, *const at = d + i * n, *const above = du + i * n;\n"
                "        int64_t  k = 0;\n"
                "        for (; k + 1 < n; k++) {\n"
                "            const T    x = at[k], y = below[k], next = at[k + 1];\n"
                "            const bool turn = !hlo_stays(x, y);\n"
                "            if (!turn && x == T(0))\n"
                "                break;\n"
                "            const T f = turn ? x / y : y == T(0) ? T(0) : y / x;\n"
                "            by[i * n + k] = f;\n"
                "            turned[i * n + k] = turn;\n"
                "            if (turn) {\n"
                "                at[k] = y;\n"
                "                at[k + 1] = above[k] - f * next;\n"
                "                above[k] = next;\n"
                "            } else if (!(f == T(0)))\n"
                "                at[k + 1] = next - f * above[k];\n"
                "            if (k + 2 < n) {\n"
                "                below[k] = turn ? above[k + 1] : T(0);\n"
                "                if (turn)\n"
                "                    above[k + 1] = -(f * above[k + 1]);\n"
                "            }\n"
                "        }\n"
                "        info[i] = k + 1 < n || at[k] == T(0) ? (int)(k + 1) : 0;\n"
                "    }\n"
                "}\n"
                "\n/* b: count columns for each matrix. */\n"
                "template <typename T>\n"
                "static __global__ void hlo_down_and_up_kernel(T *b, const T *dl, const T *d, const T *du, const T *by, const char *turned, const int *info, int64_t n, int64_t count, int64_t batch)\n"
                "{\n"
                "    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < batch * count; i += (int64_t)gridDim.x * 256) {\n"
                "        const int64_t  from = i / count * n, end = info[i / count];\n"
                "        const T *const beyond = dl + from + 1, *const at = d + from, *const above = du + from;\n"
                "        T *const       x = b + i * n;\n"
                "        for (int64_t k = 0; k + 1 < (end ? end : n); k++) {\n"
                "            const T f = by[from + k], here = x[k], next = x[k + 1];\n"
                "            if (turned[from + k]) {\n"
                "                x[k] = next;\n"
                "                x[k + 1] = here - f * next;\n"
                "            } else if (!(f == T(0)))\n"
                "                x[k + 1] = next - f * here;\n"
                "        }\n"
                "        if (end)\n"
                "            continue;\n"
                "        T last = x[n - 1] / at[n - 1], before = last;\n"
                "        x[n - 1] = last;\n"
                "        for (int64_t k = n - 2; k >= 0; k--) {\n"
                "            T sum = x[k] - above[k] * last;\n"
                "            if (k + 2 < n)\n"
                "                sum = sum - beyond[k] * before;\n"
                "            before = last;\n"
                "            x[k] = last = sum / at[k];\n"
                "        }\n"
                "    }\n"
                "}\n");
}

static void put_launch(Buf *b, const char *kernel, const char *type, int64_t threads)
{
    const int64_t blocks = (threads + 255) / 256;
    buf_printf(b, "    status = status ? status : hlo_launch(stream, %lld, 256, %s<%s>, ", (long long)(blocks < 65536 ? blocks : 65536), kernel, type);
}

void solver_tridiagonal(Buf *b, const LapackCall *c)
{
    const char *const type = solver_kernel_type(c->type);
    const long long   n = (long long)solver_size(c, "n"), count = (long long)solver_size(c, "k"), batch = (long long)c->batch;
    int64_t           turned = 0;
    solver_take(&turned, batch * n * type_bytes(c->type));
    buf_printf(b, "    char *memory = NULL;\n"
                  "    status = status ? status : cudaMallocAsync((void **)&memory, %lld, stream);\n",
               (long long)turned + batch * n);
    put_launch(b, "hlo_tridiagonal_kernel", type, batch);
    buf_printf(b, "dl, d, du, (%s *)memory, memory + %lld, info, (int64_t)%lld, (int64_t)%lld);\n", type, (long long)turned, n, batch);
    if (count > 0) {
        put_launch(b, "hlo_down_and_up_kernel", type, batch * count);
        buf_printf(b, "b, dl, d, du, (const %s *)memory, memory + %lld, info, (int64_t)%lld, (int64_t)%lld, (int64_t)%lld);\n", type, (long long)turned, n, count, batch);
    }
    buf_puts(b, "    const cudaError_t freed = memory ? cudaFreeAsync(memory, stream) : cudaSuccess;\n"
                "    return status ? status : freed;\n");
}
