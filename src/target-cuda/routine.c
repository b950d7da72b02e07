/* What the routines for opcodes have in common: arrays of matrices, launchers, the library that is asked first.
 *
 *     static cudaError_t l_launch(cudaStream_t stream, void *r0, const void *p0, void *memory)
 *     {
 *     #ifdef HLO_CUSOLVER
 *         const cudaError_t done = l_by_library(stream, (float *)r0, (const float *)p0);
 *         if (done != cudaErrorNotSupported)
 *             return done;
 *     #endif
 *         ...
 *
 * While work is captured kernels do it: the library's working memory would have to be allocated. */
#include "target-cuda/routine.h"
#include "emit/c_text.h"
#include "support/diag.h"
#include "target-cuda/solver.h"
#include "target-cuda/solver_text.h"

#include <string.h>

/* ---- where matrices lie ---- */

static bool is_one_with(int32_t n, int64_t (*strides)[64], int32_t d, int64_t size)
{
    bool one = true;
    for (int32_t k = 0; k < n; k++)
        one &= strides[k][d - 1] == strides[k][d] * size;
    return one;
}

void matrices_of(int32_t n, const Shape *const *shapes, Many *many, Matrices *to)
{
    const Shape *s = shapes[0];
    int64_t      strides[3][64];
    if (s->rank > 64)
        die("an array of %d dimensions", s->rank);
    for (int32_t k = 0; k < n; k++) {
        shape_strides(shapes[k], strides[k]);
        to[k] = (Matrices){ .row = strides[k][s->rank - 2], .col = strides[k][s->rank - 1] };
    }
    *many = (Many){ .count = 1 };
    for (int32_t d = 0; d < s->rank - 2; d++) {
        many->count *= s->dims[d];
        if (s->dims[d] == 1)
            continue;
        if (many->rank > 0 && d > 0 && s->dims[d - 1] != 1 && is_one_with(n, strides, d, s->dims[d]))
            many->sizes[many->rank - 1] *= s->dims[d];
        else
            many->sizes[many->rank++] = s->dims[d];
        for (int32_t k = 0; k < n; k++)
            to[k].steps[many->rank - 1] = strides[k][d];
    }
    if (many->rank == 0)
        many->sizes[many->rank++] = 1;
}

bool matrices_are_dense(const Matrices *x, int64_t rows, int64_t cols)
{
    return (x->col == 1 && x->row == cols) || (x->row == 1 && x->col == rows);
}

void routine_many(Buf *b, const Many *many)
{
    buf_printf(b, "hlo_many{ %lld, { ", (long long)many->count);
    for (int32_t d = 0; d < many->rank; d++)
        buf_printf(b, "%s%lld", d ? ", " : "", (long long)many->sizes[d]);
    buf_puts(b, " } }");
}

void routine_matrices(Buf *b, const Matrices *x, int32_t rank, int64_t at)
{
    buf_printf(b, "hlo_matrices{ %lld, %lld, %lld, { ", (long long)at, (long long)x->row, (long long)x->col);
    for (int32_t d = 0; d < rank; d++)
        buf_printf(b, "%s%lld", d ? ", " : "", (long long)x->steps[d]);
    buf_puts(b, " } }");
}

/* Unused dimensions of the batch come last, of size 0: the text's loops end there. */
static const char places[] =
    "\n/* Matrices whose element (r, c) lies at at + r * row + c * col, in a batch of up to %d dimensions. */\n"
    "struct hlo_matrices {\n"
    "    int64_t at, row, col, step[%d];\n"
    "};\n"
    "struct hlo_many {\n"
    "    int64_t count, size[%d]; /* a size of 0: there are no further dimensions */\n"
    "};\n"
    "\n/* Where matrix m is. */\n"
    "[[maybe_unused]] static __device__ inline int64_t hlo_place(const hlo_many &many, const hlo_matrices &x, int64_t m)\n"
    "{\n"
    "    int64_t at = x.at, left = many.count;\n"
    "    for (int d = 0; d < %d && many.size[d] > 0; d++) {\n"
    "        left /= many.size[d];\n"
    "        at += m / left * x.step[d];\n"
    "        m %%= left;\n"
    "    }\n"
    "    return at;\n"
    "}\n";

static const char real_numbers[] =
    "\n/* Of real numbers; of complex ones. */\n"
    "template <typename R> static __device__ inline R hlo_conj(R x)\n"
    "{\n"
    "    return x;\n"
    "}\n"
    "template <typename R> static __device__ inline R hlo_real_part(R x)\n"
    "{\n"
    "    return x;\n"
    "}\n"
    "template <typename R> static __device__ inline R hlo_divided(R x, R by)\n"
    "{\n"
    "    return x / by;\n"
    "}\n";

static const char complex_numbers[] =
    "template <template <typename> class C, typename R> static __device__ inline C<R> hlo_conj(C<R> x)\n"
    "{\n"
    "    return C<R>(x.re, -x.im);\n"
    "}\n"
    "template <template <typename> class C, typename R> static __device__ inline R hlo_real_part(C<R> x)\n"
    "{\n"
    "    return x.re;\n"
    "}\n"
    "template <template <typename> class C, typename R> static __device__ inline C<R> hlo_divided(C<R> x, R by)\n"
    "{\n"
    "    return C<R>(x.re / by, x.im / by);\n"
    "}\n";

static const char captured[] =
    "\nstatic bool hlo_is_captured(cudaStream_t stream)\n"
    "{\n"
    "    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;\n"
    "    return cudaStreamIsCapturing(stream, &capture) || capture != cudaStreamCaptureStatusNone;\n"
    "}\n"
    "\n/* A library's table of where matrices are. */\n"
    "template <typename T> static __global__ void hlo_pointers_kernel(T **to, T *a, hlo_many many, hlo_matrices x)\n"
    "{\n"
    "    for (int64_t m = (int64_t)blockIdx.x * 256 + threadIdx.x; m < many.count; m += (int64_t)gridDim.x * 256)\n"
    "        to[m] = a + hlo_place(many, x, m);\n"
    "}\n";

static const char gathering[] =
    "\n/* to = from, matrices of rows by cols, in the order of to's memory. */\n"
    "template <typename T> static __global__ void hlo_gather_kernel(T *to, const T *from, hlo_many many, hlo_matrices out, hlo_matrices in, int64_t rows, int64_t cols)\n"
    "{\n"
    "    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < many.count * rows * cols; i += (int64_t)gridDim.x * 256) {\n"
    "        const int64_t m = i / (rows * cols), e = i % (rows * cols), r = out.col == 1 ? e / cols : e % rows, c = out.col == 1 ? e % cols : e / rows;\n"
    "        to[hlo_place(many, out, m) + r * out.row + c * out.col] = from[hlo_place(many, in, m) + r * in.row + c * in.col];\n"
    "    }\n"
    "}\n";

const char *routine_type(Type t)
{
    return t == TYPE_F32 ? "float" : t == TYPE_F64 ? "double" : t == TYPE_C64 ? "hlo_c64" : "hlo_c128";
}

char routine_letter(Type t)
{
    return t == TYPE_F32 ? 'S' : t == TYPE_F64 ? 'D' : t == TYPE_C64 ? 'C' : 'Z';
}

int64_t routine_blocks(int64_t n)
{
    return n < 1 << 20 ? n : 1 << 20;
}

/* ---- a program's ---- */

bool cuda_has_routines(const Program *p, Op op)
{
    for (int32_t k = 0; k < p->n_calls; k++)
        if (p->calls[k]->routine && p->calls[k]->inst->op == op)
            return true;
    return false;
}

static bool is_for_library(const Program *p, const Inst *i)
{
    return i->op == OP_CHOLESKY ? cholesky_is_for_library(p, i) : triangular_is_for_library(p, i);
}

bool cuda_routine_functions(const Program *p, bool blas, void (*add)(void *cookie, const char *name), void *cookie)
{
    bool any = false;
    for (int32_t k = 0; k < p->n_calls; k++) {
        const Inst *i = p->calls[k]->inst;
        char        name[64];
        if (!p->calls[k]->routine || !is_for_library(p, i) || (i->op == OP_TRIANGULAR_SOLVE) != blas)
            continue;
        const char  letter = routine_letter(i->shape->type);
        const char *forms[] = { "cusolverDn%cpotrf_bufferSize", "cusolverDn%cpotrf", "cusolverDn%cpotrfBatched" }, *solves[] = { "cublas%ctrsm_v2", "cublas%ctrsmBatched" };
        const bool  many = shape_count(i->shape) > i->shape->dims[i->shape->rank - 1] * i->shape->dims[i->shape->rank - 2];
        any = true;
        for (int j = 0; j < (blas ? 2 : 3) && add; j++) {
            if (many != (j == (blas ? 1 : 2)))
                continue;
            const char *form = blas ? solves[j] : forms[j], *at = strchr(form, '%');
            memcpy(name, form, (size_t)(at - form));
            name[at - form] = letter;
            strcpy(name + (at - form) + 1, at + 2);
            add(cookie, name);
        }
    }
    return any;
}

void cuda_number_services(Buf *b, const Program *p)
{
    bool any = false, complex = false;
    for (int32_t k = 0; k < p->n_calls; k++) {
        const LibraryCall *x = p->calls[k];
        const bool         is = x->routine || (library_is_lapack(x) && !cuda_needs_solver(x));
        any |= is;
        complex |= is && type_is_complex(x->routine ? x->inst->shape->type : x->lapack.type);
    }
    buf_puts(b, any ? real_numbers : "");
    buf_puts(b, complex ? complex_numbers : "");
}

void cuda_routine_services(Buf *b, const Program *p)
{
    int rank = 0;
    for (int32_t k = 0; k < p->n_calls; k++)
        if (p->calls[k]->routine) {
            const int32_t own = p->calls[k]->inst->shape->rank - 2;
            rank = own > rank ? own : rank > 1 ? rank : 1;
        }
    if (rank == 0)
        return;
    buf_printf(b, places, rank, rank, rank, rank);
    const bool library = cuda_routine_functions(p, false, NULL, NULL), blas = cuda_routine_functions(p, true, NULL, NULL);
    if (library || blas) {
        buf_puts(b, "\n#ifdef HLO_CUSOLVER");
        buf_puts(b, captured);
        if (blas)
            buf_puts(b, gathering);
        buf_puts(b, "#endif\n");
    }
    if (cuda_has_routines(p, OP_CHOLESKY))
        cholesky_services(b, library);
    if (cuda_has_routines(p, OP_TRIANGULAR_SOLVE))
        triangular_services(b);
}

void cuda_put_routine_head(Buf *b, const LibraryCall *x, const char *linkage, const char *prefix)
{
    buf_printf(b, "%s cudaError_t %s%s%s_launch(cudaStream_t stream, void *r0", linkage, prefix ? prefix : "", prefix ? "_" : "", x->name);
    for (int32_t k = 0; k < x->inst->n_operands; k++)
        buf_printf(b, ", const void *p%d", k);
    buf_puts(b, x->temp_bytes > 0 ? ", void *memory)" : ")");
}

void cuda_put_routine(Buf *b, const Program *p, const LibraryCall *x, const char *linkage, const char *prefix)
{
    const bool        cholesky = x->inst->op == OP_CHOLESKY;
    const char *const type = routine_type(x->inst->shape->type);
    buf_putc(b, '\n');
    c_origin(b, x->inst);
    if (is_for_library(p, x->inst)) {
        buf_puts(b, "#ifdef HLO_CUSOLVER\n");
        (cholesky ? cholesky_by_library : triangular_by_library)(b, x);
        buf_puts(b, "#endif\n");
    }
    cuda_put_routine_head(b, x, linkage, prefix);
    buf_puts(b, "\n{\n");
    if (is_for_library(p, x->inst)) {
        buf_printf(b, "#ifdef HLO_CUSOLVER\n    const cudaError_t done = %s_by_library(stream, (%s *)r0", x->name, type);
        for (int32_t k = 0; k < x->inst->n_operands; k++)
            buf_printf(b, ", (const %s *)p%d", type, k);
        buf_puts(b, ");\n    if (done != cudaErrorNotSupported)\n        return done;\n#endif\n");
    }
    (cholesky ? cholesky_body : triangular_body)(b, p, x);
    buf_puts(b, "}\n");
}
