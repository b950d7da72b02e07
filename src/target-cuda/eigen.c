/* Eigenvalues of general matrices, by cuSOLVER, which has right vectors alone.
 *
 *     status = status ? status : hlo_solved(solver->cusolverDnXgeev(solver->handle, params, CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR, 3, CUDA_R_32F, memory + 256, 3,
 *         CUDA_R_32F, memory + 512, CUDA_R_32F, NULL, 3, CUDA_R_32F, memory + 768, 3, CUDA_R_32F, memory + 1024, room, host, host_room, info));
 *     status = status ? status : hlo_launch(stream, 1, 256, hlo_unpack_kernel<float, cuComplex>, wr, wi, vr, ...);
 *
 * The matrix is destroyed, hence a copy. Of a real one the library makes what LAPACK makes: real parts of the eigenvalues, then imaginary parts, and vectors of a conjugate pair as columns of real and
 * imaginary parts, the eigenvalue with the positive imaginary part being the first. The library uses memory of the host as well, which is free again when the stream is there. */
#include "target-cuda/solver_text.h"

void solver_eigen_guard(Buf *b)
{
    buf_puts(b, "\n#if defined(HLO_CUSOLVER) && CUSOLVER_VERSION < 11701 /* which had no cusolverDnXgeev */\n#undef HLO_CUSOLVER\n#endif\n");
}

void solver_eigen_services(Buf *b)
{
    buf_puts(b, "\n/* w: n real parts, n imaginary parts. packed: columns, of a pair a real and an imaginary one; v: NULL, or zeros that they are unpacked into. */\n"
                "template <typename R, typename C> static __global__ void hlo_unpack_kernel(R *wr, R *wi, C *v, const R *w, const R *packed, int64_t n, const int *info)\n"
                "{\n"
                "    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += (int64_t)gridDim.x * 256)\n"
                "        wr[i] = w[i], wi[i] = w[n + i];\n"
                "    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; v && *info == 0 && i < n * n; i += (int64_t)gridDim.x * 256) {\n"
                "        const int64_t j = i / n;\n"
                "        const bool    first = w[n + j] > 0 && j + 1 < n, second = w[n + j] < 0 && j > 0;\n"
                "        v[i].x = packed[second ? i - n : i];\n"
                "        v[i].y = first ? packed[i + n] : second ? -packed[i] : 0;\n"
                "    }\n"
                "}\n");
}

static const char *data_type(Type t)
{
    return t == TYPE_F32 ? "CUDA_R_32F" : t == TYPE_F64 ? "CUDA_R_64F" : t == TYPE_C64 ? "CUDA_C_32F" : "CUDA_C_64F";
}

typedef struct Places {
    int64_t copy, values, vectors, work; /* values and vectors: of real matrices */
} Places;

/* The arguments that the routine has in common with the question for its working memory, which looks at no number. */
static void put_common(Buf *b, const LapackCall *c, const Places *at, bool asks)
{
    const bool        complex = type_is_complex(c->type), vectors = solver_option(c, "compute_right") == 'V';
    const long long   n = (long long)solver_size(c, "n");
    const char *const type = data_type(c->type);
    buf_printf(b, "solver->handle, params, CUSOLVER_EIG_MODE_NOVECTOR, %s, %lld, %s, ", vectors ? "CUSOLVER_EIG_MODE_VECTOR" : "CUSOLVER_EIG_MODE_NOVECTOR", n, type);
    if (asks)
        buf_puts(b, "a");
    else
        buf_printf(b, "memory + %lld", (long long)at->copy);
    buf_printf(b, ", %lld, %s, ", n, type);
    if (asks)
        buf_puts(b, complex ? "w" : "wr");
    else if (complex)
        solver_member(b, c, "w");
    else
        buf_printf(b, "memory + %lld", (long long)at->values);
    buf_printf(b, ", %s, NULL, %lld, %s, ", type, n, type);
    if (asks)
        buf_puts(b, "vr");
    else if (complex)
        solver_member(b, c, "vr");
    else
        buf_printf(b, "memory + %lld", (long long)at->vectors);
    buf_printf(b, ", %lld, %s, %s", n, type, asks ? "&room, &host_room" : "");
}

static void put_unpacking(Buf *b, const LapackCall *c, const Places *at)
{
    const bool        vectors = solver_option(c, "compute_right") == 'V';
    const int64_t     n = solver_size(c, "n"), blocks = ((vectors ? n * n : n) + 255) / 256;
    const char *const real = solver_type(c->type), *const complex = solver_type(c->type == TYPE_F32 ? TYPE_C64 : TYPE_C128);
    buf_printf(b, "        status = status ? status : hlo_launch(stream, %lld, 256, hlo_unpack_kernel<%s, %s>, ", (long long)(blocks < 1024 ? blocks : 1024), real, complex);
    solver_member(b, c, "wr");
    buf_puts(b, ", ");
    solver_member(b, c, "wi");
    buf_puts(b, ", ");
    if (vectors)
        solver_member(b, c, "vr");
    else
        buf_printf(b, "(%s *)NULL", complex);
    buf_printf(b, ", (const %s *)(memory + %lld), (const %s *)(memory + %lld), (int64_t)%lld, ", real, (long long)at->values, real, (long long)at->vectors, (long long)n);
    solver_info(b, c);
    buf_puts(b, ");\n");
}

void solver_eigen(Buf *b, const LapackCall *c)
{
    const bool    real = !type_is_complex(c->type);
    const int64_t n = solver_size(c, "n"), bytes = type_bytes(c->type);
    int64_t       end = SOLVER_HEAD;
    Places        at = { .copy = solver_take(&end, n * n * bytes) };
    if (real) {
        at.values = solver_take(&end, 2 * n * bytes);
        at.vectors = solver_take(&end, solver_option(c, "compute_right") == 'V' ? n * n * bytes : 0);
    }
    at.work = (end + 255) / 256 * 256;
    buf_puts(b, "    char  *memory = NULL;\n"
                "    void  *host = NULL;\n"
                "    size_t room = 0, host_room = 0;\n"
                "    cusolverDnParams_t params = NULL;\n"
                "    hlo_solver *const  solver = hlo_begin_solving(stream, &status);\n"
                "    status = status ? status : hlo_solved(solver->cusolverDnCreateParams(&params));\n"
                "    status = status ? status : hlo_solved(solver->cusolverDnXgeev_bufferSize(");
    put_common(b, c, &at, true);
    buf_printf(b, "));\n"
                  "    status = status ? status : cudaMallocAsync((void **)&memory, %lld + room, stream);\n"
                  "    if (!status && (host = malloc(host_room + 1)) == NULL)\n"
                  "        status = cudaErrorMemoryAllocation;\n",
               (long long)at.work);
    solver_members(b, c);
    solver_finite(b, c, at.copy, true, "        ");
    buf_puts(b, "        status = status ? status : hlo_solved(solver->cusolverDnXgeev(");
    put_common(b, c, &at, false);
    buf_printf(b, "memory + %lld, room, host, host_room, ", (long long)at.work);
    solver_info(b, c);
    buf_puts(b, "));\n");
    if (real)
        put_unpacking(b, c, &at);
    solver_take_back(b, c, 0, "        ");
    buf_puts(b, "        status = status ? status : cudaStreamSynchronize(stream);\n"
                "    }\n"
                "    free(host);\n"
                "    if (params)\n"
                "        solver->cusolverDnDestroyParams(params);\n"
                "    return hlo_end_solving(stream, memory, status);\n");
}
