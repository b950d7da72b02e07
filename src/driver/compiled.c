/* From a module to loaded code.
 *
 *   text, options, this program, processor  --key-->  signature and the code's key         KEY.txt
 *   source, flags, compiler, processor      --key-->  module.c or .cu, module.so           KEY/
 *
 * so a module seen before is neither parsed nor optimized, and one whose source was seen before is not compiled. What backends have of their own is a
 * Language: C by the system's compiler, CUDA by nvcc, and CUDA by a C++ compiler with the simulator's header, whose functions are in this program. */
#include "config.h"

#include "driver/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cudasim/cudasim.h"
#include "driver/compiled.h"
#include "driver/cudasim_text.h"
#include "driver/process.h"
#include "emit/program.h"
#include "runtime/hlort.h"
#include "support/interrupt.h"
#include "support/outfile.h"
#include "target-c/target_c.h"
#include "target-cuda/target_cuda.h"

static const char code_file[] = "module.so";

enum { MOST_FLAGS = 13, MOST_REST = 8, MOST_NAMES = 5 };

/* Flags are tried one by one with a compiler that refuses them together. Without -fno-ipa-cp gcc unrolls loops over what is known of constants, and makes no vectors of them; what it finds out of ranges of values takes it up to five times as long as all else where it unrolls loops, and changes no run time that one could measure. Jumps that it threads through choices by constants become masks of each path (hard sigmoid of 100000 numbers 16.5 and 8 us). Nothing that changes NaN, infinities, signed zeros or rounding. */
typedef struct Language {
    const char *source;            /* the file */
    const char *name;              /* for -x */
    const char *compiler, *backend, *usual_names; /* of messages */
    const char *usual[MOST_NAMES]; /* compilers, the first that is there */
    const char *flags[MOST_FLAGS];
    const char *fast[MOST_FLAGS];  /* in their place for --compile=fast; none: flags */
    const char *rest[MOST_REST];   /* behind them, always */
    bool        device;            /* it is CUDA: memory of its own, device_services */
    bool        simulated;         /* the simulator's header lies beside it */
} Language;

#define CUDASIM_FLAGS "-std=gnu++17", "-O1", "-g", "-ffp-contract=off", "-fno-exceptions", "-w"
static const Language languages[] = {
    /* Of C compiled fast: a multiplication with its addition is one operation where gcc has its expensive optimizations, but hardly anything takes longer to compile. */
    [CODE_C] = { .source = "module.c", .name = "c", .compiler = "C compiler", .backend = "c", .usual_names = "cc, gcc and clang", .usual = { HLO_CC, "cc", "gcc", "clang" },
        .flags = { "-std=gnu11", "-O3", "-march=native", "-mprefer-vector-width=512", "-fno-math-errno", "-fno-trapping-math", "-fno-loop-interchange", "-fno-ipa-cp", "-fno-tree-vrp",
                   "-fno-thread-jumps", "-fopenmp-simd", "-w" },
        .fast = { "-std=gnu11", "-O1", "-ftree-vectorize", "-fexpensive-optimizations", "-march=native", "-mprefer-vector-width=512", "-fno-math-errno", "-fno-trapping-math",
                  "-fopenmp-simd", "-w" },
        .rest = { "-fPIC", "-shared", "-nostdlib" } }, /* what else it calls, this program has: half of the linker's time */
    [CODE_CUDASIM] = { .source = "module.cu", .name = "c++", .compiler = "C++ compiler", .backend = "cudasim", .usual_names = "g++ and clang++", .usual = { "g++", "clang++" },
        .flags = { CUDASIM_FLAGS }, .rest = { "-fsanitize=thread", "-fPIC", "-shared", "-nodefaultlibs", "-I.", "-x", "c++" }, .device = true, .simulated = true },
    [CODE_CUDASIM_UNCHECKED] = { .source = "module.cu", .name = "c++", .compiler = "C++ compiler", .backend = "cudasim", .usual_names = "g++ and clang++",
        .usual = { "g++", "clang++" }, .flags = { CUDASIM_FLAGS }, .rest = { "-fPIC", "-shared", "-nodefaultlibs", "-I.", "-x", "c++" }, .device = true, .simulated = true },
    [CODE_CUDA] = { .source = "module.cu", .name = "cu", .compiler = "CUDA compiler", .backend = "cuda", .usual_names = "nvcc and /usr/local/cuda/bin/nvcc",
        .usual = { "nvcc", "/usr/local/cuda/bin/nvcc" }, .rest = { "-arch=native", "-O3", "-shared", "-Xcompiler=-fPIC" }, .device = true },
};

/* ---- keys ---- */

static void add_file(CacheKey *k, const char *path)
{
    struct stat st;
    int         fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!fstat(fd, &st) && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            cache_key_add(k, p, (size_t)st.st_size);
            munmap(p, (size_t)st.st_size);
        }
    }
    close(fd);
}

/* The first processor's description: -march=native code of one machine need not run on another that shares the folder. */
static void add_processor(CacheKey *k)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char  line[8192];
    while (f && fgets(line, sizeof line, f) && line[0] != '\n')
        if (!strncmp(line, "model name", 10) || !strncmp(line, "flags", 5) || !strncmp(line, "Features", 8))
            cache_key_add_text(k, line);
    if (f)
        fclose(f);
}

CacheKey compiled_key(const char *text, size_t len, const char *options)
{
    CacheKey k = { { 0, 0 } };
    add_file(&k, "/proc/self/exe");
    add_processor(&k);
    cache_key_add_text(&k, options);
    cache_key_add(&k, text, len);
    return k;
}

/* ---- loading ---- */

static void close_code(void *handle)
{
    dlclose(handle);
}

/* A module that calls LAPACK has brought OpenBLAS along: one thread, whatever the machine has, so that results do not depend on it. */
static void one_thread(void *handle)
{
    void *symbol = dlsym(handle, "openblas_set_num_threads");
    void (*set_threads)(int);
    memcpy(&set_threads, &symbol, sizeof symbol);
    if (symbol)
        set_threads(1);
}

/* The functions of device_services; false without them. */
static bool load_device(void *handle, DeviceMemory *to)
{
    static const char *const names[] = { "hlo_device_use", "hlo_device_alloc", "hlo_device_free", "hlo_device_put", "hlo_device_get", "hlo_device_error" };
    enum { FUNCTIONS = sizeof names / sizeof *names };
    void *found[FUNCTIONS];
    for (int k = 0; k < FUNCTIONS; k++)
        if (!(found[k] = dlsym(handle, names[k])))
            return false;
    memcpy(&to->use, &found[0], sizeof found[0]);
    memcpy(&to->alloc, &found[1], sizeof found[1]);
    memcpy(&to->free, &found[2], sizeof found[2]);
    memcpy(&to->put, &found[3], sizeof found[3]);
    memcpy(&to->get, &found[4], sizeof found[4]);
    memcpy(&to->error, &found[5], sizeof found[5]);
    void *join = dlsym(handle, "hlo_device_join"), *part = dlsym(handle, "hlo_device_part");
    memcpy(&to->join, &join, sizeof join);
    memcpy(&to->part, &part, sizeof part);
    return true;
}

static Compiled *load(Arena *a, const char *path, const char *name)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return NULL;
    Compiled *c = ARENA_NEW(a, Compiled);
    void     *entry = dlsym(handle, arena_printf(a, "%s_run", name));
    memcpy(&c->run, &entry, sizeof entry);
    void *watch = dlsym(handle, arena_printf(a, "%s_watch", name));
    memcpy(&c->watch, &watch, sizeof watch);
    c->has_device = load_device(handle, &c->device);
    if (!c->has_device) /* the plans of CUDA's libraries, which it holds, last as long as the process */
        arena_defer(a, close_code, handle);
    one_thread(handle);
    return entry ? c : NULL;
}

/* Compiled modules find the runtime and the simulator in this program, which exports them (src/runtime/exports): they are loaded once for all. */
static void (*const runtime)(const hlort_dot *, const hlort_how *, const float *, const float *, float *) __attribute__((used)) = hlort_dot_f32;
static void (*const convolutions)(const hlort_conv *, const hlort_how *, const float *, const float *, float *) __attribute__((used)) = hlort_conv_f32;
static void (*const attentions)(const hlort_attention *, const hlort_how *, const float *, const float *, const float *, const void *, float *) __attribute__((used)) = hlort_attention_f32;
static void (*const runs)(hlort_pool *, void (*)(void *, int64_t, void *), void *, int64_t) __attribute__((used)) = hlort_run;
static void (*const transposes)(const hlort_axes *, const hlort_how *, const void *, void *) __attribute__((used)) = hlort_transpose;
static void (*const solves)(const hlort_solve *, const hlort_how *, const float *, const float *, float *) __attribute__((used)) = hlort_solve_f32;
static void (*const transforms)(const hlort_fft *, const hlort_how *, const float *, float *) __attribute__((used)) = hlort_fft_f32;
static void (*const scans)(const hlort_scan *, const hlort_how *, const void *, const void *, void *) __attribute__((used)) = hlort_scan_lines;
static void (*const sorts)(const hlort_sort *, const hlort_how *, const void *const *, void *const *) __attribute__((used)) = hlort_sort_lines;
static cudaError_t (*const simulator)(const cudasim_launch *, cudaStream_t) __attribute__((used)) = cudasim_enqueue_launch;
static bool (*const simulated_libraries)(const char *) __attribute__((used)) = cudasim_has_library;
static cudaError_t (*const simulated_routines)(const char *, const cudasim_argument *, size_t, cudaStream_t) __attribute__((used)) = cudasim_enqueue_fortran;
static cudaError_t (*const simulated_convolutions)(const cudasim_convolution *, void *, void *, void *, const void *, const void *, cudaStream_t) __attribute__((used)) = cudasim_enqueue_convolution;
static cudaError_t (*const simulated_ranks)(cudasim_rank **, int) __attribute__((used)) = cudasim_ranks;
static cudaError_t (*const simulated_transforms)(const cudasim_transform *, void *, const void *, cudaStream_t) __attribute__((used)) = cudasim_enqueue_transform;

Compiled *compiled_from_cache(Arena *a, Cache *cache, const CacheKey *key, Signature **s)
{
    const char *text;
    if (!cache_get_text(cache, a, cache_key_text(a, key), &text))
        return NULL;
    size_t n = strcspn(text, "\n"); /* the code's key, then the signature */
    if (!text[n])
        return NULL;
    *s = signature_read(a, text + n + 1);
    const char *path = *s ? cache_get_file(cache, a, arena_strndup(a, text, n), code_file) : NULL;
    return path ? load(a, path, (*s)->name) : NULL;
}

/* ---- the compiler ---- */

typedef struct Compiler {
    Arena      *arena;
    Cache      *cache;
    Diag       *d;
    const Language *language;
    bool        fast;
    const char *path;
    const char *version; /* what it says of itself */
    const char *flags[MOST_FLAGS];
    int         n_flags;
} Compiler;

static bool runs_with(const Compiler *c, int n, const char *const *flags)
{
    const char *argv[MOST_FLAGS + 8] = { c->path };
    int         k = 1;
    Buf         output = { 0 };
    for (int f = 0; f < n; f++)
        argv[k++] = flags[f];
    argv[k++] = "-fsyntax-only";
    argv[k++] = "-x";
    argv[k++] = c->language->name;
    argv[k++] = "/dev/null";
    int status = program_run(argv, NULL, &output);
    buf_free(&output);
    return status == 0;
}

/* The flags that the compiler takes: one letter each, y or n, kept in the cache. */
static void choose_flags(Compiler *c)
{
    CacheKey           key = { { 0, 0 } };
    const char        *known;
    Buf                found = { 0 };
    const char *const *wanted = c->fast && c->language->fast[0] ? c->language->fast : c->language->flags;
    int                n = 0;
    while (n < MOST_FLAGS && wanted[n])
        n++;
    cache_key_add_text(&key, c->path);
    cache_key_add_text(&key, c->version);
    for (int k = 0; k < n; k++)
        cache_key_add_text(&key, wanted[k]);
    const char *name = arena_printf(c->arena, "flags-%s", cache_key_text(c->arena, &key));
    if (!cache_get_text(c->cache, c->arena, name, &known) || strlen(known) != (size_t)n) {
        bool all = n == 0 || runs_with(c, n, wanted);
        for (int k = 0; k < n; k++)
            buf_putc(&found, all || runs_with(c, 1, &wanted[k]) ? 'y' : 'n');
        cache_put_text(c->cache, c->arena, name, &found);
        known = arena_strndup(c->arena, found.p, found.n);
        buf_free(&found);
    }
    for (int k = 0; k < n; k++)
        if (known[k] == 'y')
            c->flags[c->n_flags++] = wanted[k];
}

/* cc itself when it is given; else the one that this program was built with, else what machines usually have. */
static bool find_compiler(Compiler *c, const char *cc)
{
    const Language *l = c->language;
    c->path = NULL;
    if (cc)
        c->path = program_find(c->arena, cc);
    for (int k = 0; !cc && !c->path && k < MOST_NAMES && l->usual[k]; k++)
        c->path = program_find(c->arena, l->usual[k]);
    if (c->path)
        return true;
    if (cc)
        diag_error(c->d, LOC_NONE, "the %s '%s' is not there", l->compiler, cc);
    else
        diag_error(c->d, LOC_NONE, "no %s: %s are not in PATH", l->compiler, l->usual_names);
    diag_note(c->d, LOC_NONE, "--backend=%s compiles what it runs (--cc=PROGRAM names the compiler); --backend=eval needs none", l->backend);
    return false;
}

static bool open_compiler(Compiler *c, const char *cc)
{
    Buf version = { 0 };
    if (!find_compiler(c, cc))
        return false;
    int status = program_run((const char *const[]){ c->path, "--version", NULL }, NULL, &version);
    c->version = arena_strndup(c->arena, version.p ? version.p : "", version.n);
    buf_free(&version);
    if (status < 0) {
        diag_error(c->d, LOC_NONE, "%s: %s", c->path, strerror(errno));
        return false;
    }
    choose_flags(c);
    return true;
}

/* The first lines of what the compiler said. */
static const char *excerpt(Arena *a, const Buf *output)
{
    enum { LINES = 20 };
    size_t n = 0;
    for (int lines = 0; n < output->n && lines < LINES; n++)
        lines += output->p[n] == '\n';
    while (n > 0 && output->p[n - 1] == '\n')
        n--;
    return arena_strndup(a, output->p ? output->p : "", n);
}

/* The words of what pkg-config said of OpenBLAS. */
static int add_openblas(const Compiler *c, const char **argv, int most)
{
    static const char words[] = HLO_OPENBLAS;
    int               n = 0;
    for (const char *s = words + strspn(words, " "); *s && n < most; s += strspn(s, " ")) {
        size_t len = strcspn(s, " ");
        argv[n++] = arena_strndup(c->arena, s, len);
        s += len;
    }
    return n;
}

typedef struct Source {
    Arena         *arena; /* of the program */
    const Language *language;
    const Program *program;
    Buf            text;
    bool           openblas; /* it calls LAPACK */
    bool           whole;    /* C that calls nothing but what this program has: libmvec it has not */
} Source;

static bool compile(const Compiler *c, const char *folder, const Source *x)
{
    enum { LINK_WORDS = 16 };
    const char *argv[MOST_FLAGS + MOST_REST + LINK_WORDS + 10] = { c->path };
    int         k = 1;
    Buf         output = { 0 };
    for (int f = 0; f < c->n_flags; f++)
        argv[k++] = c->flags[f];
    for (int r = 0; r < MOST_REST && c->language->rest[r]; r++)
        argv[k++] = c->language->rest[r];
    const char *const files[] = { "-o", code_file, c->language->source, "-lgcc", "-lc", "-lm" };
    for (size_t r = 0; r < sizeof files / sizeof *files - (x->whole ? 2 : 0); r++)
        argv[k++] = files[r];
    if (x->openblas)
        k += add_openblas(c, &argv[k], LINK_WORDS);
    int status = program_run(argv, folder, &output);
    if (status < 0)
        diag_error(c->d, LOC_NONE, "%s: %s", c->path, strerror(errno));
    else if (status > 0) {
        diag_error(c->d, LOC_NONE, "%s failed with status %d", c->path, status);
        if (output.n)
            diag_note(c->d, LOC_NONE, "it says:\n%s", excerpt(c->arena, &output));
    }
    buf_free(&output);
    return status == 0;
}

/* ---- building ---- */

static const TargetCOptions source_options = { .weights = "weights.bin" }; /* beside the source, where the compiler runs */

static bool has_function(void *cookie, const char *symbol)
{
    const ExternCalls *calls = cookie;
    return calls->find(calls->cookie, symbol) != NULL;
}

/* What hlo-run itself needs of a device, behind the text. */
static const char device_services[] =
    "\nextern \"C\" int hlo_device_use(int device) { return (int)cudaSetDevice(device); }\n"
    "extern \"C\" int hlo_device_alloc(void **p, size_t bytes) { return (int)cudaMalloc(p, bytes); }\n"
    "extern \"C\" int hlo_device_free(void *p) { return (int)cudaFree(p); }\n"
    "extern \"C\" int hlo_device_put(void *to, const void *from, size_t bytes) { return (int)cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice); }\n"
    "extern \"C\" int hlo_device_get(void *to, const void *from, size_t bytes) { return (int)cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost); }\n"
    "extern \"C\" const char *hlo_device_error(int e) { return cudaGetErrorString((cudaError_t)e); }\n";

/* Communicators, when the text has exchanges by NCCL. */
static const char join_services[] =
    "#ifdef HLO_NCCL\n"
    "extern \"C\" int hlo_device_join(int n, void **to) { return hlo_nccl_library() ? (int)hlo_nccl_library()->ncclCommInitAll((ncclComm_t *)to, n, NULL) : 1; }\n"
    "extern \"C\" void hlo_device_part(void *x, int aborts)\n"
    "{\n"
    "    if (aborts)\n"
    "        hlo_nccl_library()->ncclCommAbort((ncclComm_t)x);\n"
    "    else\n"
    "        hlo_nccl_library()->ncclCommDestroy((ncclComm_t)x);\n"
    "}\n"
    "#endif\n";

static bool emit(Arena *a, const Module *m, Signature *s, const CompileOptions *with, Source *out, Diag *d)
{
    const ExternCalls *calls = with->calls;
    PlanOptions        o = { .has_function = calls ? has_function : NULL, .cookie = (void *)(uintptr_t)calls, .watched = with->watched, .is_shown = with->is_shown,
                              .shown_cookie = with->shown_cookie, .runtime = !out->language->device, .ranges = with->ranges && !out->language->device, .direct_convolutions = with->direct_convolutions, .plain_constants = with->plain_constants, .device = out->language->device ? with->device ? with->device : device_of_target("cuda") : NULL, .products = out->language->device && !with->no_libraries,
                              .any_order = out->language->device && !with->deterministic,
                              .on = with->on };
    Program           *p = program_plan(out->arena, m, &o, d);
    if (p && out->language->device && !target_cuda_supported(p, d))
        return false;
    if (p) {
        s->name = arena_strndup(a, p->name, strlen(p->name));
        s->scratch_bytes = p->scratch_bytes;
        s->n_kernels = p->n_kernels;
        s->n_copies = p->n_copies;
        s->meets = p->on_devices;
        s->feeds = (p->infeeds ? FEEDS_IN : 0) | (p->outfeeds ? FEEDS_OUT : 0);
        out->openblas = p->lapack && !out->language->device;
        if (out->language->device) {
            target_cuda_source(&out->text, p);
            buf_puts(&out->text, device_services);
            buf_puts(&out->text, join_services);
        } else {
            target_c_source(&out->text, p, &source_options);
            out->whole = !memmem(out->text.p, out->text.n, "HLO_VECTOR", strlen("HLO_VECTOR"));
        }
        out->program = p;
    }
    return p != NULL;
}

static bool to_outfile(void *to, const void *bytes, size_t n)
{
    return outfile_put(to, bytes, n);
}

static bool write_beside(Arena *a, const char *folder, const char *name, const char *text)
{
    OutFile f;
    outfile_open(&f, a, arena_printf(a, "%s/%s", folder, name));
    outfile_put(&f, text, strlen(text));
    bool ok = outfile_close(&f);
    errno = f.error;
    return ok;
}

/* What lies beside the source: weights of C, the headers of the simulator. */
static bool write_others(Arena *a, const char *folder, const Source *x)
{
    OutFile f;
    if (x->language->simulated)
        return write_beside(a, folder, "cuda_runtime.h", cudasim_header) && write_beside(a, folder, "cublasLt.h", cudasim_blas_header) &&
               write_beside(a, folder, "cublas_v2.h", cudasim_cublas_header) && write_beside(a, folder, "cusolverDn.h", cudasim_solver_header) &&
               write_beside(a, folder, "cufft.h", cudasim_fft_header) && write_beside(a, folder, "cudnn_graph.h", cudasim_dnn_header) &&
               write_beside(a, folder, "mma.h", cudasim_mma_header) &&
               write_beside(a, folder, "nccl.h", cudasim_nccl_header);
    if (x->language->device || !target_c_has_weights(x->program, &source_options))
        return true;
    outfile_open(&f, a, arena_printf(a, "%s/%s", folder, source_options.weights));
    target_c_weights(x->program, &source_options, to_outfile, &f);
    bool ok = outfile_close(&f);
    errno = f.error;
    return ok;
}

static bool write_source(Arena *a, const char *folder, const Source *x, Diag *d)
{
    if (buf_write_file(&x->text, arena_printf(a, "%s/%s", folder, x->language->source)) && write_others(a, folder, x))
        return true;
    diag_error(d, LOC_NONE, "%s: %s", folder, strerror(errno));
    return false;
}

/* Compiles in a folder of its own and moves that into the cache. The weights are in the code by then. */
static bool compile_into_cache(const Compiler *c, const Source *x, const char *key)
{
    char *folder = cache_new_folder(c->cache, c->arena);
    if (!folder) {
        diag_error(c->d, LOC_NONE, "the cache folder: %s", strerror(errno));
        return false;
    }
    bool ok = write_source(c->arena, folder, x, c->d) && compile(c, folder, x);
    if (ok) {
        unlink(arena_printf(c->arena, "%s/%s", folder, source_options.weights));
        ok = cache_put_folder(c->cache, c->arena, folder, key, code_file);
        if (!ok)
            diag_error(c->d, LOC_NONE, "the cache folder: %s", strerror(errno));
    }
    if (!ok)
        cache_drop_folder(folder);
    return ok;
}

static bool to_key(void *to, const void *bytes, size_t n)
{
    cache_key_add(to, bytes, n);
    return true;
}

static const char *code_key(const Compiler *c, const Source *x)
{
    CacheKey k = { { 0, 0 } };
    cache_key_add_text(&k, c->path);
    cache_key_add_text(&k, c->version);
    for (int f = 0; f < c->n_flags; f++)
        cache_key_add_text(&k, c->flags[f]);
    add_processor(&k);
    cache_key_add(&k, x->text.p, x->text.n);
    if (x->language->simulated) {
        cache_key_add_text(&k, cudasim_header);
        cache_key_add_text(&k, cudasim_blas_header);
        cache_key_add_text(&k, cudasim_cublas_header);
        cache_key_add_text(&k, cudasim_solver_header);
        cache_key_add_text(&k, cudasim_fft_header);
        cache_key_add_text(&k, cudasim_dnn_header);
        cache_key_add_text(&k, cudasim_mma_header);
        cache_key_add_text(&k, cudasim_nccl_header);
    } else if (!x->language->device)
        target_c_weights(x->program, &source_options, to_key, &k);
    return cache_key_text(c->arena, &k);
}

static void remember(const Compiler *c, const CacheKey *key, const char *code, const Signature *s)
{
    Buf b = { 0 };
    buf_printf(&b, "%s\n", code);
    signature_write(&b, s);
    cache_put_text(c->cache, c->arena, cache_key_text(c->arena, key), &b);
    buf_free(&b);
}

static Compiled *load_or_compile(const Compiler *c, const Source *x, const Signature *s, const CacheKey *key, RunTimes *t)
{
    const char *code = code_key(c, x);
    const char *path = cache_get_file(c->cache, c->arena, code, code_file);
    Compiled   *loaded = path ? load(c->arena, path, s->name) : NULL;
    t->cache_hit = loaded != NULL;
    if (!loaded) {
        if (!compile_into_cache(c, x, code))
            return NULL;
        path = cache_get_file(c->cache, c->arena, code, code_file);
        loaded = path ? load(c->arena, path, s->name) : NULL;
        if (!loaded) {
            const char *why = dlerror();
            diag_error(c->d, LOC_NONE, "the compiled module cannot be loaded: %s", why ? why : "it is gone from the cache");
            return NULL;
        }
    }
    if (key)
        remember(c, key, code, s);
    return loaded;
}

Compiled *compiled_build(Arena *a, Cache *cache, const Module *m, Signature *s, const CacheKey *key, const CompileOptions *o, RunTimes *t,
                         Diag *d)
{
    Source   x = { .arena = o->watched ? a : arena_new(), .language = &languages[o->code] }; /* the program of a watched module stays */
    Compiler c = { .arena = a, .cache = cache, .d = d, .language = &languages[o->code], .fast = o->fast };
    double   start = seconds_now();
    Compiled *loaded = NULL;
    if (emit(a, m, s, o, &x, d)) {
        t->emit_s = seconds_now() - start;
        start = seconds_now();
        interrupt_hold();
        if (!cache_begin(cache, a))
            diag_error(d, LOC_NONE, "no folder for compiled modules: %s", strerror(errno));
        else if (open_compiler(&c, o->cc))
            loaded = load_or_compile(&c, &x, s, key, t);
        if (loaded && o->watched)
            loaded->program = x.program;
        cache_end(cache);
        interrupt_release();
        t->compile_s = seconds_now() - start;
    }
    buf_free(&x.text);
    if (!o->watched)
        arena_free(x.arena);
    return loaded;
}
