/* One kernel as CUDA: a __global__ function for each of its parts (emit/threads.h), or several that are one launch (abreast.c), and a host function that launches
 * them in order.
 *
 *     // %bias_tanh = f32[128,256]{1,0} fusion(%x, %bias), kind=kLoop, calls=%body
 *     static __global__ void __launch_bounds__(256) bias_tanh_kernel(float *__restrict__ t, const float *__restrict__ p0)
 *     {
 *         for (int thread = ...; thread < 32768; thread += ...) {
 *             const int i0 = thread / 256, i1 = thread % 256;
 *
 * Names end in _kernel, _kernel_2, _part, _launch, so that none is another's or one of CUDA's. */
#include "emit/c_text.h"
#include "support/vec.h"
#include "target-cuda/part.h"
#include "target-cuda/routine.h"

/* What parts call, which may be less than what their kernels would. */
void cuda_prelude(Buf *b, const Program *p, bool tensor)
{
    Dialect dialect = cuda_dialect;
    if (tensor)
        dialect.helper = "[[maybe_unused]] static __device__ inline";
    cuda_complex_prelude(b, p);
    Arena *a = arena_new();
    VEC(const Kernel *) v = { 0 };
    for (int32_t f = 0; f < p->n_functions; f++) {
        ThreadPart *parts;
        int32_t     n = kernel_threads(a, p->functions[f].kernel, &parts);
        for (int32_t j = 0; j < n; j++) {
            Kernel *part = arena_copy(a, p->functions[f].kernel, sizeof *part);
            part->body = (KBlock *)(uintptr_t)parts[j].whole.body;
            vec_push(a, &v, part);
        }
    }
    VEC(const char *) called = { 0 };
    const char *name;
    for (int32_t at = 0; (name = cuda_attention_function(p, &at));)
        vec_push(a, &called, name);
    vec_push(a, &called, NULL);
    dialect.called = called.v;
    dialect_prelude(b, &dialect, v.n, v.v);
    arena_free(a);
}

/* ---- kernels ---- */

static bool is_memory(const Kernel *k, int32_t p)
{
    return p == k->n_operands + k->n_results;
}

/* The number'th of a kernel's functions of one kind, from 0. */
static const char *name_of(Arena *a, const Function *f, const char *kind, int32_t number)
{
    return number == 0 ? arena_printf(a, "%s_%s", f->name, kind) : arena_printf(a, "%s_%s_%d", f->name, kind, number + 1);
}

static void put_signature(Buf *b, const Function *f, const char *name, const bool *uses)
{
    const Kernel *k = f->kernel;
    bool          first = true;
    buf_printf(b, "%s(", name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t p = dialect_param_number(k, r);
        if (!uses[p])
            continue;
        buf_puts(b, first ? "" : ", ");
        dialect_param(b, &cuda_dialect, k, p);
        first = false;
    }
    buf_puts(b, ")\n{\n");
}

static int64_t trips(const IxAtom *loop)
{
    return loop->hi - loop->lo + 1;
}

void cuda_loop_values(Buf *b, const CudaPart *part, const char *number, const Ix *of, int depth)
{
    int         width = part->share == BY_THREAD ? part->width : 1;
    int64_t     inner = part->threads.count / width;
    const char *before = ""; /* what stands between two of them */
    buf_printf(b, "%*sconst %s ", 4 * depth, "", part->dialect->index);
    for (int32_t j = 0; j < part->threads.n_loops; j++) {
        const IxAtom *loop = part->threads.loops[j];
        bool          cut = width > 1 && j + 1 == part->threads.n_loops;
        int64_t       n = trips(loop) / (cut ? width : 1);
        inner /= n;
        if (of && !ix_has(of, loop))
            continue;
        buf_printf(b, "%s%s = %s", before, cut ? "base" : loop->name, number);
        if (inner > 1)
            buf_printf(b, " / %lld", (long long)inner);
        if (j > 0)
            buf_printf(b, " %% %lld", (long long)n);
        if (cut)
            buf_printf(b, " * %d", width);
        if (loop->lo != 0)
            buf_printf(b, " + %lld", (long long)loop->lo);
        before = ", ";
    }
    buf_puts(b, ";\n");
}

static bool has_inner_packs(const CudaPart *part)
{
    for (int32_t j = 0; j < part->n_inner; j++)
        if (part->inner[j].n > 0)
            return true;
    return false;
}

static void put_threads(Buf *b, const CudaPart *part)
{
    const ThreadPart *t = &part->threads;
    const IxAtom     *only = t->n_loops == 1 && t->loops[0]->lo == 0 && part->width == 1 ? t->loops[0] : NULL;
    const char       *i = only ? only->name : "thread";
    bool              braces = !only || dialect_wants_braces(t->body);
    cuda_grid_loop(b, part, i, THREADS, "threadIdx.x");
    buf_puts(b, braces ? " {\n" : "\n");
    if (!only)
        cuda_loop_values(b, part, i, NULL, 2);
    if (part->width > 1)
        cuda_put_packs(b, part, part->packs, 2);
    else if (has_inner_packs(part))
        cuda_put_inner(b, part, 2);
    else
        dialect_block(b, part->dialect, t->body, 2);
    buf_puts(b, braces ? "    }\n" : "");
}

static void put_body(Buf *b, const CudaPart *part)
{
    const ThreadPart *t = &part->threads;
    if (part->share == BY_ONE && part->blocks > 0)
        buf_puts(b, "    if (threadIdx.x > 0)\n        return;\n");
    dialect_arrays(b, part->dialect, &t->whole);
    if (part->share == BY_TILE || part->share == BY_TURN) {
        (part->share == BY_TILE ? cuda_tile_body : cuda_turn_body)(b, part);
        buf_puts(b, "}\n");
        return;
    }
    if (part->share == BY_ONE || (part->share == BY_THREAD && part->n_alone == 0))
        dialect_block(b, part->dialect, t->before, 1);
    if (part->share == BY_ONE)
        dialect_block(b, part->dialect, t->body, 1);
    else if (part->share == BY_THREAD)
        (part->n_alone > 0 ? cuda_alone_body : put_threads)(b, part);
    else
        cuda_row_body(b, part);
    buf_puts(b, "}\n");
}

/* "name(out, in)", of the parameters that are used; what is handed on has its own name. */
static void put_call(Buf *b, const Function *f, const char *name, const bool *uses)
{
    const Kernel *k = f->kernel;
    bool          first = true;
    buf_printf(b, "%s(", name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t p = dialect_param_number(k, r);
        if (!uses[p])
            continue;
        buf_printf(b, "%s%s", first ? "" : ", ", is_memory(k, p) ? "memory" : k->params[p]->name);
        first = false;
    }
    buf_puts(b, ");\n");
}

/* The blocks of a launch go to its parts. */
static void put_choice(Buf *b, Arena *a, const Function *f, int32_t at, const CudaPart *parts)
{
    for (int32_t j = 0; j < parts[0].abreast; j++) {
        buf_puts(b, j ? "    else" : "    ");
        if (j + 1 < parts[0].abreast)
            buf_printf(b, "%sif (blockIdx.x < %lld)", j ? " " : "", (long long)parts[j + 1].first_block);
        buf_puts(b, "\n        ");
        put_call(b, f, name_of(a, f, "part", at + j), parts[j].threads.whole.uses);
    }
    buf_puts(b, "}\n");
}

/* The functions of launch `number`, which begins with part `at`. */
static void put_kernel(Buf *b, Arena *a, const Function *f, int32_t number, int32_t at, const CudaPart *parts)
{
    for (int32_t j = 0; j < parts[0].abreast && parts[0].abreast > 1 && !parts[0].passes; j++) {
        buf_puts(b, "static __device__ inline void ");
        put_signature(b, f, name_of(a, f, "part", at + j), parts[j].threads.whole.uses);
        put_body(b, &parts[j]);
        buf_putc(b, '\n');
    }
    buf_printf(b, "static __global__ void __launch_bounds__(%d) ", cuda_part_threads(&parts[0]));
    put_signature(b, f, name_of(a, f, "kernel", number), parts[0].uses);
    if (parts[0].passes) {
        cuda_passes_body(b, parts);
        buf_puts(b, "}\n");
    } else if (parts[0].abreast > 1)
        put_choice(b, a, f, at, parts);
    else
        put_body(b, &parts[0]);
}

/* ---- launches ---- */

/* A launcher's own name for parameter p: r0, p0, memory. */
static const char *launch_name(Arena *a, const Kernel *k, int32_t p)
{
    if (is_memory(k, p))
        return "memory";
    return p < k->n_operands ? arena_printf(a, "p%d", p) : arena_printf(a, "r%d", p - k->n_operands);
}

static void put_launch(Buf *b, Arena *a, const Function *f, const char *name, const CudaPart *part)
{
    const Kernel   *k = f->kernel;
    if (part->copy) {
        const KArray *to = part->copy->array;
        buf_printf(b, "hlo_copy(stream, %s, %s, %lld)", launch_name(a, k, to->param), launch_name(a, k, part->copy->value->array->param),
                   (long long)(to->count * type_bytes(storage_type(to->type))));
        return;
    }
    const CudaPart *last = part + part->abreast - 1;
    int64_t         blocks = part->abreast > 1 && !part->passes ? last->first_block + last->blocks : cuda_part_blocks(part);
    if (cuda_part_shared(part) > 0)
        buf_printf(b, "hlo_launch_shared(stream, %lld, %d, %lld, %s", (long long)blocks, cuda_part_threads(part), (long long)cuda_part_shared(part), name);
    else
        buf_printf(b, "hlo_launch(stream, %lld, %d, %s", (long long)blocks, cuda_part_threads(part), name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t p = dialect_param_number(k, r);
        if (!part->uses[p])
            continue;
        buf_puts(b, ", (");
        dialect_param_type(b, &cuda_dialect, k, p);
        buf_printf(b, ")%s", launch_name(a, k, p));
    }
    buf_puts(b, ")");
}

static void put_launcher_head(Buf *b, Arena *a, const Function *f, const char *linkage)
{
    const Kernel *k = f->kernel;
    buf_printf(b, "%s cudaError_t %s_launch(cudaStream_t stream", linkage, f->name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t p = dialect_param_number(k, r);
        if (kernel_uses_param(k, p) && !(is_memory(k, p) && k->temp_asked))
            buf_printf(b, ", %svoid *%s", p < k->n_operands ? "const " : "", launch_name(a, k, p));
    }
    buf_putc(b, ')');
}

static void put_launcher(Buf *b, Arena *a, const Program *p, int32_t function, int32_t n, const CudaPart *parts, const char *linkage)
{
    const Function *f = &p->functions[function];
    buf_putc(b, '\n');
    put_launcher_head(b, a, f, linkage);
    buf_puts(b, "\n{\n");
    cuda_put_product(b, p, function);
    cuda_put_convolution(b, p, function);
    cuda_put_transform(b, p, function);
    const bool asks = f->kernel->temp_asked;
    if (asks)
        buf_printf(b, "    void       *memory = NULL;\n    cudaError_t e = cudaMallocAsync(&memory, %lld, stream);\n", (long long)f->kernel->temp_bytes);
    for (int32_t j = 0, number = 0; j < n; j += parts[j].abreast) {
        const bool first = j == 0 && !asks, last = j + parts[j].abreast == n && !asks;
        buf_puts(b, last && first ? "    return " : first ? "    cudaError_t e = " : !last ? "    e = e ? e : " : "    return e ? e : ");
        put_launch(b, a, f, name_of(a, f, "kernel", number), &parts[j]);
        number += !parts[j].copy;
        buf_puts(b, ";\n");
    }
    if (asks)
        buf_puts(b, "    const cudaError_t freed = memory ? cudaFreeAsync(memory, stream) : cudaSuccess;\n    return e ? e : freed;\n");
    buf_puts(b, "}\n");
}

/* "if (out != in) out[i] = in[i];" of all elements; NULL: something else. */
static const KStmt *whole_copy(const CudaPart *part)
{
    const KStmt *test = part->threads.body->first, *s = test && test->kind == KS_IF && !test->next && !test->other ? test->body->first : NULL;
    if (part->share != BY_THREAD || !s || s->next || test->value->kind != KX_DISTINCT || s->kind != KS_STORE || s->atomic || s->value->kind != KX_LOAD)
        return NULL;
    const KArray *to = s->array, *from = s->value->array;
    bool same = to == test->value->array && from == test->value->other && ix_equal(s->index, s->value->index) && storage_type(to->type) == storage_type(from->type);
    return same && part->threads.count == to->count && to->count == from->count ? s : NULL;
}

static int32_t parts_of(Arena *a, const Kernel *k, CudaPart **out)
{
    ThreadPart *threads;
    int32_t     n = kernel_threads(a, k, &threads);
    int64_t     at = k->split_offset;
    int32_t     m = 0;
    CudaPart   *v = ARENA_ARRAY(a, CudaPart, 2 * n);
    for (int32_t j = 0; j < n; j++, m++) {
        v[m].threads = threads[j];
        v[m].dialect = cuda_dialect_for(&threads[j]);
        v[m].device = k->device;
        cuda_choose_share(a, k, &v[m]);
        v[m].copy = whole_copy(&v[m]);
        if (cuda_split(a, k, &v[m], &v[m + 1], &at))
            cuda_choose_packs(a, k, &v[m++]);
        cuda_choose_packs(a, k, &v[m]);
        cuda_choose_between(&v[m]);
    }
    cuda_set_abreast(a, k, m, v);
    *out = v;
    return m;
}

typedef struct Updates {
    bool some, of_bytes, of_complex;
} Updates;

static void note_update(void *cookie, const KStmt *s)
{
    Updates *u = cookie;
    if (s->kind == KS_STORE && dialect_is_update(s))
        *(type_bytes(storage_type(s->array->type)) == 1 ? &u->of_bytes : &u->some) = true;
    else if (s->kind == KS_STORE && s->atomic && type_is_complex(s->array->type))
        u->of_complex = true;
}

static void find_updates(const CudaPart *part, Updates *u)
{
    KVisitor v = { NULL, note_update, u };
    kernel_visit(part->threads.body, &v);
}

/* The first exchange only looks: a 0 in the place of one. */
static void put_update(Buf *b)
{
    buf_puts(b, "\ntemplate <int bytes> struct hlo_word { typedef unsigned type; };\n"
                "template <> struct hlo_word<2> { typedef unsigned short type; };\n"
                "template <> struct hlo_word<8> { typedef unsigned long long type; };\n"
                "\n/* An element becomes that of itself and value, which other threads may do at the same time. */\n"
                "template <typename T, typename X, typename Combine> static __device__ inline void hlo_update(T *at, X value, Combine combine)\n"
                "{\n"
                "    typedef typename hlo_word<sizeof(T)>::type word;\n"
                "    union { T value; word bits; } old, now;\n"
                "    old.bits = atomicCAS((word *)at, (word)0, (word)0);\n"
                "    while (1) {\n"
                "        const word was = old.bits;\n"
                "        now.value = (T)combine(old.value, value);\n"
                "        if (now.bits == was)\n"
                "            break;\n"
                "        old.bits = atomicCAS((word *)at, was, now.bits);\n"
                "        if (old.bits == was)\n"
                "            break;\n"
                "    }\n"
                "}\n");
}

/* Arrays that bytes are updated in are whole words. */
static void put_update_of_bytes(Buf *b)
{
    buf_puts(b, "\n/* The same of a byte, as one of the word that it is in. */\n"
                "template <typename T, typename X, typename Combine> static __device__ inline void hlo_update_byte(T *at, X value, Combine combine)\n"
                "{\n"
                "    unsigned *const word = (unsigned *)((size_t)at / 4 * 4);\n"
                "    const unsigned shift = (unsigned)((size_t)at % 4 * 8);\n"
                "    unsigned old = atomicCAS(word, 0u, 0u);\n"
                "    while (1) {\n"
                "        const unsigned was = old, now = (was & ~(255u << shift)) | (unsigned)(uint8_t)combine((T)(was >> shift), value) << shift;\n"
                "        if (now == was)\n"
                "            break;\n"
                "        old = atomicCAS(word, was, now);\n"
                "        if (old == was)\n"
                "            break;\n"
                "    }\n"
                "}\n");
}

static const char complex_update[] =
    "\ntemplate <typename R> static __device__ inline void hlo_atomicAdd(hlo_complex<R> *at, hlo_complex<R> z)\n"
    "{\n"
    "    atomicAdd(&at->re, z.re);\n"
    "    atomicAdd(&at->im, z.im);\n"
    "}\n";

bool cuda_kernels(Buf *b, const Program *p, const char *linkage)
{
    Arena *a = arena_new();
    Buf    kernels = { 0 };
    bool   shares[BY_TURN + 1] = { false }, scans[BY_TURN + 1] = { false }, groups = false, between = false, asked = false, tensor = false, packs = false, copies = false;
    Updates updates = { 0 };
    for (int32_t f = 0; f < p->n_functions; f++) {
        CudaPart *parts;
        if (kernel_tile_row(p->functions[f].kernel)) /* its caller's */
            continue;
        int32_t n = parts_of(a, p->functions[f].kernel, &parts);
        buf_putc(&kernels, '\n');
        c_origin(&kernels, p->functions[f].inst);
        for (int32_t j = 0, number = 0; j < n; j += parts[j].abreast) {
            if (parts[j].copy)
                continue;
            buf_puts(&kernels, number ? "\n" : "");
            put_kernel(&kernels, a, &p->functions[f], number++, j, &parts[j]);
        }
        for (int32_t j = 0; j < n; j++) {
            copies |= parts[j].copy != NULL;
            find_updates(&parts[j], &updates);
            asked |= cuda_part_shared(&parts[j]) > 0;
            between |= parts[j].between > 1;
            packs |= parts[j].width > 1 || has_inner_packs(&parts[j]);
            tensor |= parts[j].share == BY_TILE && cuda_tile_on_tensor_cores(&parts[j]);
        }
        for (int32_t j = 0; j < n; j++)
            scans[parts[j].share] |= parts[j].row.scans;
        for (int32_t j = 0; j < n; j++)
            if (parts[j].share == BY_WARP && parts[j].row.sums && parts[j].lanes < WARP)
                groups = true;
            else if (parts[j].row.sums || parts[j].share == BY_TILE)
                shares[parts[j].share] = true;
        put_launcher(&kernels, a, p, f, n, parts, linkage);
    }
    const AttentionUses attention = cuda_attention_uses(p);
    asked |= attention.shared;
    packs |= attention.some;
    tensor |= attention.tensor;
    cuda_row_services(b, groups, shares[BY_WARP], shares[BY_BLOCK], shares[BY_COLUMN], asked);
    if (between)
        cuda_between_services(b);
    cuda_scan_services(b, scans[BY_WARP], scans[BY_BLOCK]);
    if (copies)
        buf_puts(b, "\n/* What a result begins with, unless it is where the operand is. */\n"
                    "static cudaError_t hlo_copy(cudaStream_t stream, void *to, const void *from, size_t bytes)\n"
                    "{\n"
                    "    return to == from ? cudaSuccess : cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);\n"
                    "}\n");
    if (updates.some)
        put_update(b);
    if (updates.of_bytes)
        put_update_of_bytes(b);
    if (updates.of_complex)
        buf_puts(b, complex_update);
    if (packs)
        cuda_pack_services(b);
    if (shares[BY_TILE])
        cuda_tile_services(b);
    buf_put(b, kernels.p ? kernels.p : "", kernels.n);
    buf_free(&kernels);
    arena_free(a);
    return tensor;
}

void cuda_prototypes(Buf *b, const Program *p, const char *linkage)
{
    Arena *a = arena_new();
    for (int32_t f = 0; f < p->n_functions; f++) {
        if (kernel_tile_row(p->functions[f].kernel))
            continue;
        put_launcher_head(b, a, &p->functions[f], linkage);
        buf_puts(b, ";\n");
    }
    arena_free(a);
}

void cuda_kernel_call(Buf *b, const Function *f, const char *const *args)
{
    const Kernel *k = f->kernel;
    buf_printf(b, "%s_launch(stream", f->name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t p = dialect_param_number(k, r);
        if (kernel_uses_param(k, p) && !(is_memory(k, p) && k->temp_asked))
            buf_printf(b, ", %s", args[p]);
    }
    buf_putc(b, ')');
}
