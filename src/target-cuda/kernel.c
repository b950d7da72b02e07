/* One kernel as CUDA: a __global__ function for each of its parts (emit/threads.h) and a host function that launches them in order.
 *
 *     // %bias_tanh = f32[128,256]{1,0} fusion(%x, %bias), kind=kLoop, calls=%body
 *     static __global__ void __launch_bounds__(256) bias_tanh_kernel(float *__restrict__ t, const float *__restrict__ p0)
 *     {
 *         for (int64_t thread = ...; thread < 32768; thread += ...) {
 *             const int64_t i0 = thread / 256, i1 = thread % 256;
 *
 * Names end in _kernel, _kernel_2, _launch, so that none is another's or one of CUDA's. */
#include "emit/c_text.h"
#include "emit/dialect.h"
#include "emit/threads.h"
#include "target-cuda/target_cuda.h"

enum { THREADS = 256, MOST_BLOCKS = 8192 /* threads go on to other elements: enough to fill any device */ };

static const Dialect dialect = { .helper = "static __device__ inline", .boolean = "bool", .restricted = "__restrict__" };

void cuda_prelude(Buf *b, const Program *p)
{
    Arena         *a = arena_new();
    const Kernel **v = ARENA_ARRAY(a, const Kernel *, p->n_functions);
    for (int32_t k = 0; k < p->n_functions; k++)
        v[k] = p->functions[k].kernel;
    dialect_prelude(b, &dialect, p->n_functions, v);
    arena_free(a);
}

/* ---- kernels ---- */

static const char *kernel_name_of(Arena *a, const Function *f, int32_t part)
{
    return part == 0 ? arena_printf(a, "%s_kernel", f->name) : arena_printf(a, "%s_kernel_%d", f->name, part + 1);
}

static void put_signature(Buf *b, const Function *f, const char *name, const ThreadPart *part)
{
    const Kernel *k = f->kernel;
    bool          first = true;
    buf_printf(b, "static __global__ void __launch_bounds__(%d) %s(", part->n_loops > 0 ? THREADS : 1, name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t p = dialect_param_number(k, r);
        if (!part->whole.uses[p])
            continue;
        buf_puts(b, first ? "" : ", ");
        dialect_param(b, &dialect, k, p);
        first = false;
    }
    buf_puts(b, ")\n{\n");
}

static int64_t trips(const IxAtom *loop)
{
    return loop->hi - loop->lo + 1;
}

/* The loops' values from the number of the thread, the last one fastest. */
static void put_values(Buf *b, const ThreadPart *part)
{
    int64_t inner = part->count;
    for (int32_t j = 0; j < part->n_loops; j++) {
        const IxAtom *loop = part->loops[j];
        inner /= trips(loop);
        buf_printf(b, "%s%s = thread", j ? ", " : "        const int64_t ", loop->name);
        if (inner > 1)
            buf_printf(b, " / %lld", (long long)inner);
        if (j > 0)
            buf_printf(b, " %% %lld", (long long)trips(loop));
        if (loop->lo != 0)
            buf_printf(b, " + %lld", (long long)loop->lo);
    }
    buf_puts(b, ";\n");
}

static void put_threads(Buf *b, const ThreadPart *part)
{
    const IxAtom *only = part->n_loops == 1 && part->loops[0]->lo == 0 ? part->loops[0] : NULL;
    const char   *i = only ? only->name : "thread";
    buf_printf(b, "    for (int64_t %s = (int64_t)blockIdx.x * %d + threadIdx.x; %s < %lld; %s += (int64_t)gridDim.x * %d) {\n", i, THREADS, i,
               (long long)part->count, i, THREADS);
    if (!only)
        put_values(b, part);
    dialect_block(b, &dialect, part->body, 2);
    buf_puts(b, "    }\n");
}

static void put_part(Buf *b, const Function *f, const char *name, const ThreadPart *part)
{
    put_signature(b, f, name, part);
    dialect_arrays(b, &dialect, &part->whole);
    dialect_block(b, &dialect, part->before, 1);
    if (part->n_loops > 0)
        put_threads(b, part);
    else
        dialect_block(b, &dialect, part->body, 1);
    buf_puts(b, "}\n");
}

/* ---- launches ---- */

static bool is_memory(const Kernel *k, int32_t p)
{
    return p == k->n_operands + k->n_results;
}

/* A launcher's own name for parameter p: r0, p0, memory. */
static const char *launch_name(Arena *a, const Kernel *k, int32_t p)
{
    if (is_memory(k, p))
        return "memory";
    return p < k->n_operands ? arena_printf(a, "p%d", p) : arena_printf(a, "r%d", p - k->n_operands);
}

static void put_launch(Buf *b, Arena *a, const Function *f, const char *name, const ThreadPart *part)
{
    const Kernel *k = f->kernel;
    int64_t       blocks = part->n_loops > 0 ? (part->count + THREADS - 1) / THREADS : 1;
    buf_printf(b, "hlo_launch(stream, %lld, %d, %s", (long long)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), part->n_loops > 0 ? THREADS : 1, name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t p = dialect_param_number(k, r);
        if (!part->whole.uses[p])
            continue;
        buf_puts(b, ", (");
        dialect_param_type(b, &dialect, k, p);
        buf_printf(b, ")%s", launch_name(a, k, p));
    }
    buf_puts(b, ")");
}

static void put_launcher(Buf *b, Arena *a, const Function *f, int32_t n, const ThreadPart *parts)
{
    const Kernel *k = f->kernel;
    buf_printf(b, "\nstatic cudaError_t %s_launch(cudaStream_t stream", f->name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t p = dialect_param_number(k, r);
        if (kernel_uses_param(k, p))
            buf_printf(b, ", %svoid *%s", p < k->n_operands ? "const " : "", launch_name(a, k, p));
    }
    buf_puts(b, ")\n{\n");
    for (int32_t j = 0; j < n; j++) {
        buf_puts(b, n == 1 ? "    return " : j == 0 ? "    cudaError_t e = " : j + 1 < n ? "    e = e ? e : " : "    return e ? e : ");
        put_launch(b, a, f, kernel_name_of(a, f, j), &parts[j]);
        buf_puts(b, ";\n");
    }
    buf_puts(b, "}\n");
}

void cuda_kernel(Buf *b, const Function *f)
{
    Arena      *a = arena_new();
    ThreadPart *parts;
    int32_t     n = kernel_threads(a, f->kernel, &parts);
    c_origin(b, f->inst);
    for (int32_t j = 0; j < n; j++) {
        buf_puts(b, j ? "\n" : "");
        put_part(b, f, kernel_name_of(a, f, j), &parts[j]);
    }
    put_launcher(b, a, f, n, parts);
    arena_free(a);
}

void cuda_kernel_call(Buf *b, const Function *f, const char *const *args)
{
    const Kernel *k = f->kernel;
    buf_printf(b, "%s_launch(stream", f->name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t p = dialect_param_number(k, r);
        if (kernel_uses_param(k, p))
            buf_printf(b, ", %s", args[p]);
    }
    buf_putc(b, ')');
}
