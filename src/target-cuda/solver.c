/* Calls of LAPACK's routines by cuSOLVER, which has many of them with the same arguments, and of triangular solves by cuBLAS.
 *
 *     static cudaError_t lu_launch(cudaStream_t stream, void *a_to, void *ipiv_to, void *info_to, const void *a_in)
 *     {
 *         float *const a = (float *)a_to;
 *         ...
 *         hlo_solver *const solver = hlo_begin_solving(stream, &status);
 *         if (!status)
 *             status = hlo_solved(solver->cusolverDnSgetrf_bufferSize(solver->handle, 4, 4, a, 4, &room));
 *         if (!status)
 *             status = cudaMallocAsync(&memory, 256 + room * sizeof(float), stream);
 *         for (int i = 0; i < 3 && !status; i++)
 *             status = hlo_solved(solver->cusolverDnSgetrf(solver->handle, 4, 4, a + 16 * i, 4, work, ipiv + 4 * i, info + i));
 *         return hlo_end_solving(stream, memory, status);
 *     }
 *
 * Eigenvalues of general matrices are in eigen.c; what is kernels in tridiagonal.c, reflectors.c and schur.c.
 *
 * Working memory is asked for in the order of the stream: how much it is, only the library knows. A wide matrix's singular values are those of its adjoint: the library takes tall ones. What
 * goes on for ever on numbers that are not finite gets zeros instead, and what comes out is taken back (see LapackCall.finite). */
#include "target-cuda/routine.h"
#include "target-cuda/solver.h"
#include "target-cuda/solver_text.h"
#include "emit/c_text.h"
#include "support/diag.h"
#include "text/print.h"

#include <string.h>

/* Numbers in cuSOLVER's and cuBLAS's names. */
static const char *routine(const LapackCall *c)
{
    const bool complex = type_is_complex(c->type);
    switch (c->id) {
    case LAPACK_POTRF: return "potrf";
    case LAPACK_GETRF: return "getrf";
    case LAPACK_GEQRF: return "geqrf";
    case LAPACK_ORGQR: return complex ? "ungqr" : "orgqr";
    case LAPACK_ORMQR: return complex ? "unmqr" : "ormqr";
    case LAPACK_SYTRD: return complex ? "hetrd" : "sytrd";
    case LAPACK_SYEVD: case LAPACK_HEEVD: return complex ? "heevd" : "syevd";
    case LAPACK_GESDD: case LAPACK_GESVD: return "gesvd";
    case LAPACK_TRSM: return "trsm"; /* of no elements: else the plan has the opcode's routine */
    case LAPACK_GEEV: return "geev";
    case LAPACK_GEES: case LAPACK_GEHRD: case LAPACK_GEQP3: case LAPACK_GTSV: break;
    }
    return NULL;
}

/* It is kernels, with or without the libraries. */
static bool is_kernels(const LapackCall *c)
{
    return c->id == LAPACK_GTSV || c->id == LAPACK_GEHRD || c->id == LAPACK_GEQP3 || c->id == LAPACK_GEES;
}

static char letter(const LapackCall *c)
{
    return (char)(c->symbol[0] - 'a' + 'A');
}

const char *solver_type(Type t)
{
    switch (t) {
    case TYPE_S32: return "int";
    case TYPE_F32: return "float";
    case TYPE_F64: return "double";
    case TYPE_C64: return "cuComplex";
    case TYPE_C128: return "cuDoubleComplex";
    default: die("%s is no type of LAPACK's", type_name(t));
    }
}

static bool is_svd(const LapackCall *c)
{
    return c->id == LAPACK_GESDD || c->id == LAPACK_GESVD;
}

int64_t solver_size(const LapackCall *c, const char *name)
{
    for (int32_t k = 0; k < c->n_args; k++)
        if (c->args[k].kind == LAPACK_SIZE && strcmp(c->args[k].name, name) == 0)
            return c->args[k].value;
    die("%s has no size %s", c->symbol, name);
}

char solver_option(const LapackCall *c, const char *name)
{
    for (int32_t k = 0; k < c->n_args; k++)
        if (c->args[k].kind == LAPACK_OPTION && strcmp(c->args[k].name, name) == 0)
            return (char)c->args[k].value;
    die("%s has no option %s", c->symbol, name);
}

static bool is_wide(const LapackCall *c)
{
    return is_svd(c) && solver_size(c, "m") < solver_size(c, "n");
}

const char *cuda_solver_refuses(const LibraryCall *x)
{
    const LapackCall *c = &x->lapack;
    if (x->routine || x->attention)
        return NULL;
    if (!library_is_lapack(x) || (!routine(c) && !is_kernels(c)))
        return "";
    return c->id == LAPACK_GEEV && solver_option(c, "compute_left") == 'V' ? " with left vectors" : NULL;
}

bool cuda_needs_solver(const LibraryCall *x)
{
    return library_is_lapack(x) && !is_kernels(&x->lapack) && x->lapack.id != LAPACK_TRSM;
}

bool cuda_has_calls(const Program *p)
{
    return p->n_calls > 0;
}

bool cuda_has_solves(const Program *p)
{
    bool has = cuda_routine_functions(p, false, NULL, NULL) || cuda_routine_functions(p, true, NULL, NULL);
    for (int32_t k = 0; k < p->n_calls; k++)
        has |= cuda_needs_solver(p->calls[k]);
    return has;
}

/* ---- what is in front of everything ---- */

static const char opening[] =
    "\n/* The libraries on one device, from the first call on to the process's end. */\n"
    "struct hlo_solver {\n"
    "    int                device;\n"
    "    bool               good;\n"
    "    cusolverDnHandle_t handle;\n"
    "    cublasHandle_t     blas;\n"
    "#define HLO_POINTER(name) decltype(&::name) name;\n"
    "    HLO_CUSOLVER_FUNCTIONS(HLO_POINTER)\n"
    "    HLO_CUBLAS_FUNCTIONS(HLO_POINTER)\n"
    "#undef HLO_POINTER\n"
    "    hlo_solver *next;\n"
    "};\n"
    "\nstatic pthread_mutex_t hlo_solver_lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, and of the streams that handles are set to */\n"
    "static hlo_solver     *hlo_solvers;\n"
    "\n#define HLO_FILE_OF(name, version) \"lib\" name \".so.\" #version\n"
    "#define HLO_FILE(name, version) HLO_FILE_OF(name, version)\n"
    "static bool hlo_load_solver(hlo_solver *x)\n"
    "{\n"
    "#ifdef HLO_CUSOLVER_IS_LINKED\n"
    "#define HLO_FIND(name) x->name = ::name;\n"
    "    HLO_CUSOLVER_FUNCTIONS(HLO_FIND)\n"
    "    HLO_CUBLAS_FUNCTIONS(HLO_FIND)\n"
    "    return true;\n"
    "#else\n"
    "    void *file = dlopen(HLO_FILE(\"cublas\", CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);\n"
    "    bool  all = file != NULL;\n"
    "#define HLO_FIND(name) all = all && (x->name = (decltype(x->name))dlsym(file, #name)) != NULL;\n"
    "    HLO_CUBLAS_FUNCTIONS(HLO_FIND)\n"
    "    file = dlopen(HLO_FILE(\"cusolver\", CUSOLVER_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);\n"
    "    all = all && file;\n"
    "    HLO_CUSOLVER_FUNCTIONS(HLO_FIND)\n"
    "    return all;\n"
    "#endif\n"
    "}\n"
    "\n/* NULL: there is none, or it would be opened while work is captured, which may not be. */\n"
    "static hlo_solver *hlo_solver_on(int device, cudaStream_t stream)\n"
    "{\n"
    "    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;\n"
    "    hlo_solver             *x = hlo_solvers;\n"
    "    while (x && x->device != device)\n"
    "        x = x->next;\n"
    "    if (!x && !cudaStreamIsCapturing(stream, &capture) && capture == cudaStreamCaptureStatusNone && (x = (hlo_solver *)calloc(1, sizeof *x)) != NULL) {\n"
    "        x->device = device;\n"
    "        x->next = hlo_solvers;\n"
    "        hlo_solvers = x;\n"
    "        x->good = hlo_load_solver(x) && !x->cusolverDnCreate(&x->handle) && !x->cublasCreate_v2(&x->blas);\n"
    "    }\n"
    "    return x && x->good && !x->cusolverDnSetStream(x->handle, stream) && !x->cublasSetStream_v2(x->blas, stream) ? x : NULL;\n"
    "}\n"
    "\n/* Until its end the libraries are this call's. */\n"
    "static hlo_solver *hlo_begin_solving(cudaStream_t stream, cudaError_t *status)\n"
    "{\n"
    "    int device = 0;\n"
    "    pthread_mutex_lock(&hlo_solver_lock);\n"
    "    *status = *status ? *status : cudaGetDevice(&device);\n"
    "    hlo_solver *const x = *status ? NULL : hlo_solver_on(device, stream);\n"
    "    if (!x && !*status)\n"
    "        *status = cudaErrorNotSupported;\n"
    "    return x;\n"
    "}\n"
    "\nstatic cudaError_t hlo_end_solving(cudaStream_t stream, void *memory, cudaError_t status)\n"
    "{\n"
    "    const cudaError_t freed = memory ? cudaFreeAsync(memory, stream) : cudaSuccess;\n"
    "    pthread_mutex_unlock(&hlo_solver_lock);\n"
    "    return status ? status : freed;\n"
    "}\n"
    "\n/* Of either library. */\n"
    "template <typename Status> static cudaError_t hlo_solved(Status status)\n"
    "{\n"
    "    return (int)status == 0 ? cudaSuccess : cudaErrorUnknown;\n"
    "}\n";

static const char turning[] =
    "\n/* Of a complex number, which has a y; of a real one, for which there is the second one alone. */\n"
    "template <typename T> static __device__ auto hlo_conjugate(T x, int) -> decltype(x.y = -x.y, T())\n"
    "{\n"
    "    x.y = -x.y;\n"
    "    return x;\n"
    "}\n"
    "template <typename T> static __device__ T hlo_conjugate(T x, long)\n"
    "{\n"
    "    return x;\n"
    "}\n"
    "\n/* to [cols, rows] = the adjoint of from [rows, cols], columns side by side */\n"
    "template <typename T> static __global__ void hlo_adjoint_kernel(T *to, const T *from, int64_t rows, int64_t cols)\n"
    "{\n"
    "    for (int64_t i = blockIdx.x * 256 + threadIdx.x; i < rows * cols; i += gridDim.x * 256)\n"
    "        to[i % rows * cols + i / rows] = hlo_conjugate(from[i], 0);\n"
    "}\n"
    "\ntemplate <typename T> static cudaError_t hlo_adjoint(cudaStream_t stream, T *to, const T *from, int64_t rows, int64_t cols)\n"
    "{\n"
    "    const int64_t blocks = (rows * cols + 255) / 256;\n"
    "    return hlo_launch(stream, (unsigned)(blocks < 1024 ? blocks : 1024), 256, hlo_adjoint_kernel<T>, to, from, rows, cols);\n"
    "}\n";

static const char finite_service[] =
    "\n/* A matrix with numbers that are not finite becomes zeros, and *bad 1. */\n"
    "template <typename T> static __global__ void hlo_finite_kernel(T *a, int64_t n, int *bad)\n"
    "{\n"
    "    int is = 0;\n"
    "    for (int64_t i = threadIdx.x; i < n; i += 256)\n"
    "        is |= !isfinite(a[i]);\n"
    "    is = __syncthreads_or(is);\n"
    "    for (int64_t i = threadIdx.x; i < n && is; i += 256)\n"
    "        a[i] = 0;\n"
    "    if (threadIdx.x == 0)\n"
    "        *bad = is;\n"
    "}\n"
    "\n/* What came out of that is taken back: it is what `from` is, or zeros. */\n"
    "static __global__ void hlo_take_back_kernel(const int *bad, char *to, const char *from, int64_t n)\n"
    "{\n"
    "    for (int64_t i = blockIdx.x * 256 + threadIdx.x; i < n && *bad; i += gridDim.x * 256)\n"
    "        to[i] = from ? from[i] : 0;\n"
    "}\n"
    "\nstatic __global__ void hlo_not_finite_kernel(const int *bad, int *info)\n"
    "{\n"
    "    if (*bad)\n"
    "        *info = -4;\n"
    "}\n";

/* Each function once. */
typedef struct Names {
    Buf    *b;
    Arena  *arena;
    int32_t n;
    const char *v[256];
} Names;

static void add_name(void *cookie, const char *name)
{
    Names *x = cookie;
    for (int32_t k = 0; k < x->n; k++)
        if (strcmp(x->v[k], name) == 0)
            return;
    if (x->n == 256)
        die("more than 256 functions of a library");
    x->v[x->n++] = arena_printf(x->arena, "%s", name);
    buf_printf(x->b, " \\\n    F(%s)", name);
}

static void put_functions(Buf *b, const Program *p, bool blas)
{
    Names x = { .b = b, .arena = arena_new() };
    buf_puts(b, blas ? "#define HLO_CUBLAS_FUNCTIONS(F) F(cublasCreate_v2) F(cublasSetStream_v2)" : "\n#define HLO_CUSOLVER_FUNCTIONS(F) F(cusolverDnCreate) F(cusolverDnSetStream)");
    for (int32_t k = 0; k < p->n_calls && !blas; k++) {
        const LapackCall *c = &p->calls[k]->lapack;
        if (!cuda_needs_solver(p->calls[k]))
            continue;
        if (c->id == LAPACK_GEEV) {
            static const char *const names[] = { "cusolverDnXgeev_bufferSize", "cusolverDnXgeev", "cusolverDnCreateParams", "cusolverDnDestroyParams" };
            for (size_t j = 0; j < sizeof names / sizeof *names; j++)
                add_name(&x, names[j]);
        } else {
            add_name(&x, arena_printf(x.arena, "cusolverDn%c%s_bufferSize", letter(c), routine(c)));
            add_name(&x, arena_printf(x.arena, "cusolverDn%c%s", letter(c), routine(c)));
        }
    }
    cuda_routine_functions(p, blas, add_name, &x);
    buf_putc(b, '\n');
    arena_free(x.arena);
}

static bool is_called(const LapackCall *c)
{
    return !lapack_is_empty(c) && c->batch > 0 && c->id != LAPACK_TRSM;
}

void cuda_solver_services(Buf *b, const Program *p)
{
    bool wide = false, finite = false, eigen = false, vectors = false, tridiagonal = false, hessenberg = false, pivots = false, schur = false, complex = false;
    for (int32_t k = 0; k < p->n_calls; k++) {
        const LapackCall *c = &p->calls[k]->lapack;
        if (!library_is_lapack(p->calls[k]))
            continue;
        wide |= is_called(c) && is_wide(c);
        finite |= is_called(c) && c->finite && !is_kernels(c);
        eigen |= c->id == LAPACK_GEEV;
        vectors |= is_called(c) && c->id == LAPACK_GEEV && !type_is_complex(c->type);
        tridiagonal |= is_called(c) && c->id == LAPACK_GTSV;
        hessenberg |= is_called(c) && c->id == LAPACK_GEHRD;
        pivots |= is_called(c) && c->id == LAPACK_GEQP3;
        schur |= is_called(c) && c->id == LAPACK_GEES && !type_is_complex(c->type);
        complex |= is_called(c) && c->id == LAPACK_GEES && type_is_complex(c->type);
    }
    if (hessenberg || pivots || schur || complex)
        solver_reflector_services(b);
    if (hessenberg || schur || complex)
        solver_hessenberg_services(b);
    if (pivots)
        solver_pivots_services(b);
    if (schur || complex)
        solver_schur_services(b, schur, complex);
    if (tridiagonal)
        solver_tridiagonal_services(b);
    if (!cuda_has_solves(p))
        return;
    if (eigen)
        solver_eigen_guard(b);
    buf_puts(b, "\n#ifdef HLO_CUSOLVER");
    put_functions(b, p, false);
    put_functions(b, p, true);
    buf_puts(b, opening);
    if (wide)
        buf_puts(b, turning);
    if (finite)
        buf_puts(b, finite_service);
    if (vectors)
        solver_eigen_services(b);
    buf_puts(b, "#endif\n");
}

/* ---- one call ---- */

static bool is_overwritten(const LapackBuffer *f)
{
    return f->operand >= 0 && f->result >= 0;
}

static const LapackBuffer *find(const LapackCall *c, bool result, int32_t number)
{
    for (int32_t k = 0; k < c->n_buffers; k++)
        if ((result ? c->buffers[k].result : c->buffers[k].operand) == number)
            return &c->buffers[k];
    return NULL;
}

static void put_name(Buf *b, const LibraryCall *x, const char *prefix)
{
    buf_printf(b, "%s%s%s_launch(", prefix ? prefix : "", prefix ? "_" : "", x->name);
}

static void put_head(Buf *b, const LibraryCall *x, const char *linkage, const char *prefix)
{
    const LapackBuffer *f;
    buf_printf(b, "%s cudaError_t ", linkage);
    put_name(b, x, prefix);
    buf_puts(b, "cudaStream_t stream");
    for (int32_t r = 0; (f = find(&x->lapack, true, r)) != NULL; r++)
        buf_printf(b, ", void *%s_to", f->name);
    for (int32_t o = 0; (f = find(&x->lapack, false, o)) != NULL; o++)
        buf_printf(b, ", const void *%s_in", f->name);
    buf_putc(b, ')');
}

/* "a + 16 * i", of one of the batch */
void solver_member(Buf *b, const LapackCall *c, const char *name)
{
    buf_puts(b, name);
    if (c->batch > 1)
        buf_printf(b, " + %lld * i", (long long)c->buffers[lapack_buffer(c, name)].count);
}

void solver_info(Buf *b, const LapackCall *c)
{
    if (lapack_buffer(c, "info") >= 0)
        buf_puts(b, c->batch > 1 ? "info + i" : "info");
    else
        buf_puts(b, "(int *)memory");
}

static const char *uplo(const LapackCall *c)
{
    return solver_option(c, "uplo") == 'L' ? "CUBLAS_FILL_MODE_LOWER" : "CUBLAS_FILL_MODE_UPPER";
}

static const char *operation(char x)
{
    return x == 'N' ? "CUBLAS_OP_N" : x == 'T' ? "CUBLAS_OP_T" : "CUBLAS_OP_C";
}

static const char *side(char x)
{
    return x == 'L' ? "CUBLAS_SIDE_LEFT" : "CUBLAS_SIDE_RIGHT";
}

/* Where in working memory a part begins. */
typedef struct Places {
    int64_t saved, turned, u, vt, work;
} Places;

int64_t solver_take(int64_t *at, int64_t bytes)
{
    const int64_t place = *at;
    *at += (bytes + PROGRAM_ALIGN - 1) / PROGRAM_ALIGN * PROGRAM_ALIGN;
    return place;
}

static Places places_of(const LapackCall *c)
{
    Places        x = { 0 };
    int64_t       at = SOLVER_HEAD;
    const int64_t bytes = type_bytes(c->type), matrix = c->buffers[0].count * bytes;
    if (c->finite)
        x.saved = solver_take(&at, matrix);
    if (is_wide(c)) {
        const int64_t m = solver_size(c, "m"), n = solver_size(c, "n");
        x.turned = solver_take(&at, matrix);
        x.u = solver_take(&at, (solver_option(c, "mode") == 'A' ? n : m) * n * bytes);
        x.vt = solver_take(&at, m * m * bytes);
    }
    x.work = at;
    return x;
}

/* A pointer to one of them: "(float *)(memory + 256)" */
static void put_place(Buf *b, const LapackCall *c, int64_t at)
{
    buf_printf(b, "(%s *)(memory + %lld)", solver_type(c->type), (long long)at);
}

/* The arguments that the routine has in common with the question for its working memory. */
static void put_common(Buf *b, const LapackCall *c, const Places *x, bool asks)
{
    switch (c->id) {
    case LAPACK_POTRF: buf_printf(b, "%s, %lld, ", uplo(c), (long long)solver_size(c, "n")); break;
    case LAPACK_GETRF: case LAPACK_GEQRF: buf_printf(b, "%lld, %lld, ", (long long)solver_size(c, "m"), (long long)solver_size(c, "n")); break;
    case LAPACK_ORGQR: buf_printf(b, "%lld, %lld, %lld, ", (long long)solver_size(c, "m"), (long long)solver_size(c, "n"), (long long)solver_size(c, "k")); break;
    case LAPACK_ORMQR:
        buf_printf(b, "%s, %s, %lld, %lld, %lld, ", side(solver_option(c, "left")), operation(solver_option(c, "transpose")), (long long)solver_size(c, "m"), (long long)solver_size(c, "n"),
                   (long long)solver_size(c, "k"));
        break;
    case LAPACK_SYTRD: buf_printf(b, "%s, %lld, ", uplo(c), (long long)solver_size(c, "n")); break;
    case LAPACK_SYEVD: case LAPACK_HEEVD:
        buf_printf(b, "%s, %s, %lld, ", solver_option(c, "mode") == 'V' ? "CUSOLVER_EIG_MODE_VECTOR" : "CUSOLVER_EIG_MODE_NOVECTOR", uplo(c), (long long)solver_size(c, "n"));
        break;
    case LAPACK_GESDD: case LAPACK_GESVD: {
        const bool    wide = is_wide(c);
        const int64_t m = solver_size(c, wide ? "n" : "m"), n = solver_size(c, wide ? "m" : "n");
        if (!asks)
            buf_printf(b, "'%c', '%c', ", solver_option(c, "mode"), solver_option(c, "mode"));
        buf_printf(b, "%lld, %lld", (long long)m, (long long)n);
        if (asks)
            return;
        buf_puts(b, ", ");
        if (wide)
            put_place(b, c, x->turned);
        else
            solver_member(b, c, "a");
        buf_printf(b, ", %lld, ", (long long)m);
        solver_member(b, c, "s");
        buf_puts(b, ", ");
        if (wide)
            put_place(b, c, x->u);
        else
            solver_member(b, c, "u");
        buf_printf(b, ", %lld, ", (long long)m);
        if (wide)
            put_place(b, c, x->vt);
        else
            solver_member(b, c, "vt");
        buf_printf(b, ", %lld", (long long)(wide ? n : solver_size(c, "ldv")));
        return;
    }
    default: die("%s is in no library for CUDA", c->symbol);
    }
    /* the matrices, with the distance of their columns */
    for (int32_t k = 0, matrix = 0; k < c->n_args; k++) {
        const LapackBuffer *f = c->args[k].kind == LAPACK_BUFFER ? &c->buffers[c->args[k].value] : NULL;
        const bool          vector = f && (strcmp(f->name, "tau") == 0 || strcmp(f->name, "w") == 0 || strcmp(f->name, "d") == 0 || strcmp(f->name, "e") == 0);
        if (!f || (!vector && f->rank != 2) || (vector && c->id == LAPACK_GEQRF && asks))
            continue;
        buf_puts(b, matrix++ > 0 ? ", " : "");
        if (asks)
            buf_puts(b, f->name);
        else
            solver_member(b, c, f->name);
        if (!vector)
            buf_printf(b, ", %lld", (long long)(f->rows > 1 ? f->rows : 1));
    }
}

static void put_one(Buf *b, const LapackCall *c, const Places *x, const char *indent)
{
    const char *type = solver_type(c->type);
    buf_printf(b, "%sstatus = hlo_solved(solver->cusolverDn%c%s(solver->handle, ", indent, letter(c), routine(c));
    put_common(b, c, x, false);
    buf_printf(b, ", (%s *)(memory + %lld), ", type, (long long)x->work);
    if (c->id == LAPACK_GETRF)
        solver_member(b, c, "ipiv");
    else
        buf_puts(b, is_svd(c) ? "room, NULL" : "room");
    buf_puts(b, ", ");
    solver_info(b, c);
    buf_puts(b, "));\n");
}

void solver_finite(Buf *b, const LapackCall *c, int64_t copy, bool of_copy, const char *indent)
{
    const int64_t     numbers = c->buffers[0].count * (type_is_complex(c->type) ? 2 : 1);
    const char *const real = solver_type(lapack_real_type(c->type));
    buf_printf(b, "%sstatus = cudaMemcpyAsync(memory + %lld, ", indent, (long long)copy);
    solver_member(b, c, "a");
    buf_printf(b, ", %lld, cudaMemcpyDeviceToDevice, stream);\n"
                  "%sstatus = status ? status : hlo_launch(stream, 1, 256, hlo_finite_kernel<%s>, (%s *)(",
               (long long)(c->buffers[0].count * type_bytes(c->type)), indent, real, real);
    if (of_copy)
        buf_printf(b, "memory + %lld", (long long)copy);
    else
        solver_member(b, c, "a");
    buf_printf(b, "), (int64_t)%lld, (int *)(memory + 4));\n", (long long)numbers);
}

/* Before it: its adjoint, or zeros. */
static void put_before(Buf *b, const LapackCall *c, const Places *x, const char *indent)
{
    if (c->finite)
        solver_finite(b, c, x->saved, false, indent);
    if (is_wide(c)) {
        buf_printf(b, "%sstatus = status ? status : hlo_adjoint<%s>(stream, ", indent, solver_type(c->type));
        put_place(b, c, x->turned);
        buf_puts(b, ", ");
        solver_member(b, c, "a");
        buf_printf(b, ", %lld, %lld);\n", (long long)solver_size(c, "m"), (long long)solver_size(c, "n"));
    }
}

static void put_adjoint(Buf *b, const LapackCall *c, const char *to, int64_t from, int64_t rows, int64_t cols, const char *indent)
{
    buf_printf(b, "%sstatus = status ? status : hlo_adjoint<%s>(stream, ", indent, solver_type(c->type));
    solver_member(b, c, to);
    buf_puts(b, ", ");
    put_place(b, c, from);
    buf_printf(b, ", %lld, %lld);\n", (long long)rows, (long long)cols);
}

void solver_take_back(Buf *b, const LapackCall *c, int64_t saved, const char *indent)
{
    for (int32_t k = 0; k < c->n_buffers && c->finite; k++) {
        const LapackBuffer *f = &c->buffers[k];
        const int64_t       bytes = f->count * type_bytes(f->type);
        if (f->result < 0 || bytes == 0)
            continue;
        if (strcmp(f->name, "info") == 0) {
            buf_printf(b, "%sstatus = status ? status : hlo_launch(stream, 1, 1, hlo_not_finite_kernel, (const int *)(memory + 4), (int *)(", indent);
            solver_info(b, c);
            buf_puts(b, "));\n");
            continue;
        }
        const int64_t blocks = (bytes + 255) / 256;
        buf_printf(b, "%sstatus = status ? status : hlo_launch(stream, %lld, 256, hlo_take_back_kernel, (const int *)(memory + 4), (char *)(", indent,
                   (long long)(blocks < 256 ? blocks : 256));
        solver_member(b, c, f->name);
        if (is_overwritten(f))
            buf_printf(b, "), (const char *)(memory + %lld), (int64_t)%lld);\n", (long long)saved, (long long)bytes);
        else
            buf_printf(b, "), (const char *)NULL, (int64_t)%lld);\n", (long long)bytes);
    }
}

static void put_after(Buf *b, const LapackCall *c, const Places *x, const char *indent)
{
    if (is_wide(c) && solver_option(c, "mode") != 'N') {
        const int64_t m = solver_size(c, "m"), n = solver_size(c, "n");
        put_adjoint(b, c, "u", x->vt, m, m, indent);
        put_adjoint(b, c, "vt", x->u, n, solver_option(c, "mode") == 'A' ? n : m, indent);
    }
    solver_take_back(b, c, x->saved, indent);
}

/* Results begin as the operands that they overwrite, or as zeros, as some routines leave what nobody asked for. */
static void put_beginnings(Buf *b, const LapackCall *c)
{
    for (int32_t k = 0; k < c->n_buffers; k++) {
        const LapackBuffer *f = &c->buffers[k];
        const long long     bytes = (long long)(c->batch * f->count * type_bytes(f->type));
        if (f->result < 0 || bytes == 0)
            continue;
        if (is_overwritten(f))
            buf_printf(b, "    if (!status && %s_to != %s_in)\n"
                          "        status = cudaMemcpyAsync(%s_to, %s_in, %lld, cudaMemcpyDeviceToDevice, stream);\n",
                       f->name, f->name, f->name, f->name, bytes);
        else if (is_svd(c) || c->id == LAPACK_GEEV || c->id == LAPACK_GEES || lapack_is_empty(c))
            buf_printf(b, "    status = status ? status : cudaMemsetAsync(%s_to, 0, %lld, stream);\n", f->name, bytes);
    }
}

static const char *pointer_type(const LapackCall *c, Type t)
{
    return is_kernels(c) && type_is_complex(t) ? solver_kernel_type(t) : solver_type(t);
}

static void put_pointers(Buf *b, const LapackCall *c)
{
    for (int32_t k = 0; k < c->n_buffers; k++) {
        const LapackBuffer *f = &c->buffers[k];
        const bool          reads = f->result < 0;
        const char *const   type = pointer_type(c, f->type);
        buf_printf(b, "    %s%s *const %s = (%s%s *)%s_%s;\n", reads ? "const " : "", type, f->name, reads ? "const " : "", type, f->name, reads ? "in" : "to");
    }
}

void solver_members(Buf *b, const LapackCall *c)
{
    if (c->batch > 1)
        buf_printf(b, "    for (int64_t i = 0; i < %lld && !status; i++) {\n", (long long)c->batch);
    else
        buf_puts(b, "    if (!status) {\n");
}

static void put_body(Buf *b, const LibraryCall *x)
{
    const LapackCall *c = &x->lapack;
    const Places      at = places_of(c);
    const char       *indent = "        ";
    put_pointers(b, c);
    buf_puts(b, "    char *memory = NULL;\n    int   room = 0;\n");
    buf_puts(b, "    hlo_solver *const solver = hlo_begin_solving(stream, &status);\n");
    buf_printf(b, "    status = status ? status : hlo_solved(solver->cusolverDn%c%s_bufferSize(solver->handle, ", letter(c), routine(c));
    put_common(b, c, &at, true);
    buf_printf(b, ", &room));\n"
                  "    status = status ? status : cudaMallocAsync((void **)&memory, %lld + (size_t)room * sizeof(%s), stream);\n",
               (long long)at.work, solver_type(c->type));
    solver_members(b, c);
    put_before(b, c, &at, indent);
    if (c->finite || is_wide(c)) {
        buf_printf(b, "%sif (!status)\n", indent);
        put_one(b, c, &at, "            ");
    } else
        put_one(b, c, &at, indent);
    put_after(b, c, &at, indent);
    buf_puts(b, "    }\n"
                "    return hlo_end_solving(stream, memory, status);\n");
}

static void put_function(Buf *b, const LibraryCall *x, const char *linkage, const char *prefix)
{
    const LapackCall   *c = &x->lapack;
    const LapackBuffer *f;
    const bool          by_library = is_called(c) && cuda_needs_solver(x);
    buf_putc(b, '\n');
    c_origin(b, x->inst);
    put_head(b, x, linkage, prefix);
    buf_puts(b, "\n{\n");
    if (by_library)
        buf_puts(b, "#ifdef HLO_CUSOLVER\n");
    buf_puts(b, "    cudaError_t status = cudaSuccess;\n");
    put_beginnings(b, c);
    if (is_called(c) && is_kernels(c)) {
        put_pointers(b, c);
        (c->id == LAPACK_GTSV ? solver_tridiagonal : c->id == LAPACK_GEHRD ? solver_hessenberg : c->id == LAPACK_GEQP3 ? solver_pivots : solver_schur)(b, c);
        buf_puts(b, "}\n");
        return;
    }
    if (is_called(c) && c->id == LAPACK_GEEV) {
        put_pointers(b, c);
        solver_eigen(b, c);
    } else if (is_called(c))
        put_body(b, x);
    if (by_library)
        buf_puts(b, "#else\n");
    buf_puts(b, "    (void)stream");
    for (int32_t r = 0; (f = find(c, true, r)) != NULL; r++)
        buf_printf(b, ", (void)%s_to", f->name);
    for (int32_t o = 0; (f = find(c, false, o)) != NULL; o++)
        buf_printf(b, ", (void)%s_in", f->name);
    buf_printf(b, ";\n    return %s;\n", by_library ? "cudaErrorNotSupported" : "status");
    buf_puts(b, by_library ? "#endif\n}\n" : "}\n");
}

static const LibraryCall *first_by_library(const Program *p)
{
    for (int32_t k = 0; k < p->n_calls; k++)
        if (library_is_lapack(p->calls[k]) && is_called(&p->calls[k]->lapack) && cuda_needs_solver(p->calls[k]))
            return p->calls[k];
    return NULL;
}

/* Asked before anything runs: there is nothing in the place of such a call. */
static void put_test(Buf *b, const char *linkage, const char *prefix)
{
    buf_printf(b, "\n%s int %s_solves(cudaStream_t stream)\n{\n"
                  "#ifdef HLO_CUSOLVER\n"
                  "    cudaError_t status = cudaSuccess;\n"
                  "    (void)hlo_begin_solving(stream, &status);\n"
                  "    return hlo_end_solving(stream, NULL, status) == cudaSuccess;\n"
                  "#else\n"
                  "    (void)stream;\n"
                  "    return 0;\n"
                  "#endif\n"
                  "}\n",
               linkage, prefix ? prefix : "hlo");
}

void cuda_solver_test(Buf *b, Arena *a, const Program *p, const char *prefix)
{
    const LibraryCall *x = first_by_library(p);
    if (!x)
        return;
    buf_printf(b, "    if (!%s_solves(hlo_stream(env)))\n        return hlo_fails(env, ", prefix);
    c_string(b, arena_printf(a, "custom-call %%%s", x->inst->name));
    buf_puts(b, ", \"a library is missing: cuSOLVER or cuBLAS\");\n");
}

void cuda_solver_functions(Buf *b, const Program *p, const char *linkage, const char *prefix)
{
    if (first_by_library(p))
        put_test(b, linkage, prefix);
    for (int32_t k = 0; k < p->n_calls; k++)
        if (p->calls[k]->attention)
            cuda_put_attention(b, p, p->calls[k], linkage, prefix);
        else if (p->calls[k]->routine)
            cuda_put_routine(b, p, p->calls[k], linkage, prefix);
        else
            put_function(b, p->calls[k], linkage, prefix);
}

void cuda_solver_prototypes(Buf *b, const Program *p, const char *linkage, const char *prefix)
{
    if (first_by_library(p))
        buf_printf(b, "%s int %s_solves(cudaStream_t stream);\n", linkage, prefix);
    for (int32_t k = 0; k < p->n_calls; k++) {
        (p->calls[k]->attention ? cuda_put_attention_head : p->calls[k]->routine ? cuda_put_routine_head : put_head)(b, p->calls[k], linkage, prefix);
        buf_puts(b, ";\n");
    }
}

void cuda_solver_call(Buf *b, const LibraryCall *x, const char *prefix, const char *const *args)
{
    const LapackCall *c = &x->lapack;
    int32_t           operands = 0;
    if (x->attention) {
        put_name(b, x, prefix);
        cuda_attention_call(b, x, args);
        return;
    }
    if (x->routine) {
        const int32_t n = x->inst->n_operands;
        put_name(b, x, prefix);
        buf_printf(b, "stream, %s", args[n]);
        for (int32_t o = 0; o < n + (x->temp_bytes > 0); o++)
            buf_printf(b, ", %s", args[o + (o == n)]);
        buf_putc(b, ')');
        return;
    }
    while (find(c, false, operands))
        operands++;
    put_name(b, x, prefix);
    buf_puts(b, "stream");
    for (int32_t r = 0; find(c, true, r); r++)
        buf_printf(b, ", %s", args[operands + r]);
    for (int32_t o = 0; o < operands; o++)
        buf_printf(b, ", %s", args[o]);
    buf_putc(b, ')');
}
