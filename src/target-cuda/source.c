/* A Program as one .cu file: types, constants in device memory, kernels with their launchers, and the entry on the host, which is the tree of steps.
 *
 *     extern "C" int NAME_run(const hlo_env *env, const void *const *args, void *const *results, void *scratch)
 *     {
 *         void *const v_dot_3 = mem + 64; // f32[128,256]
 *         if (hlo_failed(env, "%dot.3", dot_3_launch(stream, v_dot_3, args[0], args[1])))
 *             return 1;
 *
 * args, results and scratch are device memory. All work is on one stream. Loops that do not count and branches are conditional nodes of a graph, or a predicate is read back, which waits for
 * it (flow.c). NAME_enqueue returns when everything is on the stream; NAME_run, when the results are there.
 * The host part is C as well as C++, and can be printed as a file of its own.
 *
 * The text includes the toolkit's header alone and depends on nothing but the Program. */
#include "emit/c_text.h"
#include "support/map.h"
#include "support/vec.h"
#include "target-cuda/devices.h"
#include "target-cuda/flow.h"
#include "target-cuda/part.h"
#include "target-cuda/routine.h"
#include "target-cuda/solver.h"
#include "target-cuda/target_cuda.h"

#include <string.h>

typedef struct Out {
    Buf           *b;
    const Program *p;
    Arena         *arena;
    int            indent;
    bool           c;     /* the text is C, not C++ */
    bool           split; /* kernels are in a file of their own */
    int32_t        choices; /* loops and branches that have a name */
    int32_t        turns;   /* pairs of buffers that have one, */
    struct Turned *turned;  /* and those of the loops around */
} Out;

typedef struct Turned {
    Turn           of;
    const char    *name, *trip;
    struct Turned *outer;
} Turned;

static void line_start(Out *o)
{
    buf_printf(o->b, "%*s", 4 * o->indent, "");
}

static void put_line(Out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put_line(Out *o, const char *fmt, ...)
{
    va_list ap;
    line_start(o);
    va_start(ap, fmt);
    buf_vprintf(o->b, fmt, ap);
    va_end(ap);
    buf_putc(o->b, '\n');
}

/* ---- the steps ---- */

/* The number of the trip, in loop number `loop`. */
static const char *trip_name(Out *o, int32_t loop)
{
    return loop == 0 ? "trip" : arena_printf(o->arena, "trip_%d", loop + 1);
}

static const char *address(Out *o, const Buffer *x)
{
    for (const Turned *t = o->turned; t; t = t->outer)
        if (x == t->of.now || x == t->of.next)
            return arena_printf(o->arena, x == t->of.now ? "%s[%s %% 2]" : "%s[(%s + 1) %% 2]", t->name, t->trip);
    switch (x->kind) {
    case BUFFER_ARG: return arena_printf(o->arena, "args[%d]", x->index);
    case BUFFER_RESULT: return arena_printf(o->arena, "results[%d]", x->index);
    case BUFFER_CONST: return arena_printf(o->arena, "constants[%d]", x->index);
    case BUFFER_SCRATCH: return x->name;
    case BUFFER_COUNT: return arena_printf(o->arena, x->ahead ? "(const char *)constants[%d] + (%s + %d) * %lld" : "(const char *)constants[%d] + %s%.0d * %lld", x->index, trip_name(o, x->loop), x->ahead, (long long)x->bytes);
    }
    die("a buffer of no kind");
}

/* What functions that are no launchers begin with. */
static const char *service_prefix(const Out *o)
{
    return o->split ? o->p->name : "hlo";
}

/* "if (hlo_failed(env, "%add.3", CALL)) return 1;" with the call in between. */
static void checked_begin(Out *o, const Inst *i)
{
    line_start(o);
    buf_puts(o->b, "if (hlo_failed(env, ");
    c_string(o->b, arena_printf(o->arena, "%s %%%s", op_name(i->op), i->name));
    buf_puts(o->b, ", ");
}

static void checked_end(Out *o)
{
    buf_puts(o->b, "))\n");
    put_line(o, "    return 1;");
}

static void put_kernel(Out *o, const Step *s)
{
    const char **args = ARENA_ARRAY(o->arena, const char *, s->n_buffers);
    for (int32_t k = 0; k < s->n_buffers; k++)
        args[k] = s->buffers[k] ? address(o, s->buffers[k]) : "";
    checked_begin(o, s->inst);
    cuda_kernel_call(o->b, &o->p->functions[s->function], args);
    checked_end(o);
}

static void put_call(Out *o, const Step *s)
{
    const char **args = ARENA_ARRAY(o->arena, const char *, s->n_buffers);
    for (int32_t k = 0; k < s->n_buffers; k++)
        args[k] = s->buffers[k] ? address(o, s->buffers[k]) : "";
    checked_begin(o, s->inst);
    cuda_solver_call(o->b, s->call, o->split ? o->p->name : NULL, args);
    checked_end(o);
}

static void put_memcpy(Out *o, const Inst *i, const char *to, const char *from, int64_t bytes, const char *kind)
{
    checked_begin(o, i);
    buf_printf(o->b, "cudaMemcpyAsync(%s, %s, %lld, cudaMemcpy%s, stream)", to, from, (long long)bytes, kind);
    checked_end(o);
}

/* A donated argument may be the result itself. */
static void put_copy(Out *o, const Step *s)
{
    const Buffer *from = s->buffers[0], *to = s->buffers[1];
    bool          maybe = from->kind == BUFFER_ARG && to->kind == BUFFER_RESULT && o->p->results[to->index].alias == from->index;
    if (to->bytes == 0)
        return;
    if (maybe) {
        put_line(o, "if (results[%d] != args[%d])", to->index, from->index);
        o->indent++;
    }
    put_memcpy(o, s->inst, address(o, to), address(o, from), to->bytes, "DeviceToDevice");
    if (maybe)
        o->indent--;
}

/* Words come as a launch's parameters, which a graph keeps. */
static void put_words(Out *o, const Step *s, const char *second)
{
    checked_begin(o, s->inst);
    buf_printf(o->b, "%s_words(stream, %s, words[0], %s)", service_prefix(o), address(o, s->buffers[0]), second);
    checked_end(o);
}

static void put_random(Out *o, const Step *s)
{
    int64_t delta = inst_int(s->inst, ATTR_DELTA, 0);
    put_line(o, "hlo_random(random, words, %lluu, %su);", (unsigned long long)delta, delta < 0 ? "18446744073709551615" : "0");
    put_words(o, s, "words[1], 2");
}

static void put_seed(Out *o, const Step *s)
{
    put_line(o, "words[0] = env && env->size >= __builtin_offsetof(hlo_env, random) ? env->seed : 0;");
    put_words(o, s, "0, 1");
}

/* "if (CALL) return 1;" of what has put its text. */
static void told_begin(Out *o)
{
    line_start(o);
    buf_puts(o->b, "if (");
}

static void told_end(Out *o)
{
    buf_puts(o->b, ")\n");
    put_line(o, "    return 1;");
}

static void put_exchange(Out *o, const Step *s)
{
    told_begin(o);
    cuda_exchange_call(o->b, s->exchange, s->n_operands > 0 ? address(o, s->buffers[0]) : NULL,
                       s->n_buffers > s->n_operands ? address(o, s->buffers[s->n_operands]) : NULL);
    told_end(o);
}

static void put_check(Out *o, const Step *s)
{
    told_begin(o);
    cuda_check_call(o->b, s->exchange, address(o, s->buffers[0]));
    told_end(o);
}

static void put_device_number(Out *o, const Step *s)
{
    checked_begin(o, s->inst);
    cuda_number_call(o->b, service_prefix(o), address(o, s->buffers[0]), s->kind == STEP_REPLICA);
    checked_end(o);
}

static void put_block(Out *o, const Block *x);

static void put_inner(Out *o, const Block *x)
{
    o->indent++;
    put_block(o, x);
    o->indent--;
}

static void put_choice(Out *o, const Step *s, const char *name)
{
    const char *why = cuda_choice_hindrance(s);
    if (why) {
        line_start(o);
        buf_puts(o->b, "if (flow->captures && hlo_failed(env, ");
        c_string(o->b, arena_printf(o->arena, "%s in %s %%%s", why, op_name(s->inst->op), s->inst->name));
        buf_puts(o->b, ", cudaErrorStreamCaptureUnsupported))\n");
        put_line(o, "    return 1;");
    }
    put_line(o, "hlo_choice %s = hlo_begin_choice();", name);
}

static void put_choice_end(Out *o, const Step *s)
{
    checked_begin(o, s->inst);
    buf_puts(o->b, "flow->status");
    checked_end(o);
}

/* "void *const turns_1[2] = { results[0], v_n };" */
static void put_turns(Out *o, const Step *s, const char *trip)
{
    for (int32_t k = 0; k < s->n_turns; k++) {
        Turned *t = ARENA_NEW(o->arena, Turned);
        *t = (Turned){ s->turns[k], arena_printf(o->arena, "turns_%d", ++o->turns), trip, o->turned };
        put_line(o, "void *const %s[2] = { %s, %s };", t->name, address(o, t->of.now), address(o, t->of.next));
        o->turned = t;
    }
}

static void put_while(Out *o, const Step *s)
{
    if (s->n_buffers == 0) {
        const char *trip = trip_name(o, s->loop);
        put_turns(o, s, trip);
        put_line(o, "for (int64_t %s = 0; %s < %lld; %s++) {", trip, trip, (long long)s->trips, trip);
        put_inner(o, &s->blocks[0]);
        put_line(o, "}");
        for (int32_t k = 0; k < s->n_turns; k++)
            o->turned = o->turned->outer;
        return;
    }
    const char *name = arena_printf(o->arena, "loop_%d", ++o->choices);
    put_choice(o, s, name);
    put_line(o, "while (1) {");
    o->indent++;
    put_block(o, &s->condition);
    put_line(o, "if (!hlo_goes_on(flow, &stream, &%s, %s))", name, address(o, s->buffers[0]));
    put_line(o, "    break;");
    put_block(o, &s->blocks[0]);
    o->indent--;
    put_line(o, "}");
    put_choice_end(o, s);
}

/* Of a predicate the first branch is the one that is true. */
static void put_if(Out *o, const Step *s)
{
    const char   *name = arena_printf(o->arena, "branch_%d", ++o->choices);
    const bool    pred = s->buffers[0]->shape->type == TYPE_PRED;
    const int32_t n = cuda_branches(s);
    put_choice(o, s, name);
    put_line(o, "while (hlo_next_branch(flow, &stream, &%s, %s, %d, %d)) {", name, address(o, s->buffers[0]), n, pred);
    o->indent++;
    for (int32_t k = 0; k < n; k++) {
        if (n > 1 && k + 1 < n)
            put_line(o, "%sif (%s.at == %d) {", k > 0 ? "} else " : "", name, k);
        else if (n > 1)
            put_line(o, "} else {%s", pred ? "" : arena_printf(o->arena, " // %d, and what is out of range", k));
        o->indent += n > 1;
        put_block(o, &s->blocks[k]);
        o->indent -= n > 1;
    }
    if (n > 1)
        put_line(o, "}");
    o->indent--;
    put_line(o, "}");
    put_choice_end(o, s);
}

static void put_step(Out *o, const Step *s)
{
    switch (s->kind) {
    case STEP_KERNEL: put_kernel(o, s); return;
    case STEP_CALL: put_call(o, s); return;
    case STEP_COPY: put_copy(o, s); return;
    case STEP_RANDOM: put_random(o, s); return;
    case STEP_SEED: put_seed(o, s); return;
    case STEP_WHILE:
    case STEP_IF:
        line_start(o);
        c_step_origin(o->b, s->inst);
        (s->kind == STEP_WHILE ? put_while : put_if)(o, s);
        return;
    case STEP_EXCHANGE: put_exchange(o, s); return;
    case STEP_CHECK: put_check(o, s); return;
    case STEP_REPLICA:
    case STEP_PARTITION: put_device_number(o, s); return;
    case STEP_VALUE: break;
    }
    die("a step that target_cuda_supported refuses");
}

static void put_block(Out *o, const Block *x)
{
    for (int32_t k = 0; k < x->n; k++)
        put_step(o, x->v[k]);
}

/* ---- the file ---- */

static void put_top(Buf *b, const Program *p, const char *how, const char *includes, bool tensor, bool kernels, bool host)
{
    buf_puts(b, "/* HLO module ");
    c_comment_text(b, p->module->name);
    buf_printf(b, ".  Compile: %s\n *\n * %s_run returns 0, or 1 with a text in env->error; %s_enqueue does not wait for\n * the results. env may be NULL. All arrays are in the"
                  " device's memory; args and results are tables of\n * pointers in the host's.\n",
               how, p->name, p->name);
    c_interface_comment(b, p);
    buf_puts(b, includes);
    if (cuda_replays(p))
        buf_puts(b, "#include <pthread.h>\n");
    if (tensor)
        buf_puts(b, "#include <mma.h>\n\n");
    cuda_library_includes(b, p, kernels, host);
    if (p->n_exchanges > 0)
        buf_puts(b, "#include <stdlib.h>\n");
    c_int_types(b);
    c_env_type(b);
    if (p->on_devices)
        c_devices_types(b);
}

static void put_constants(Buf *b, const Program *p)
{
    for (int32_t k = 0; k < p->n_constants; k++) {
        const Constant *c = &p->constants[k];
        Arena          *a = arena_new();
        Type            t = type_component(c->shape->type);
        int64_t         n = c->literal->count * (type_is_complex(c->shape->type) ? 2 : 1);
        buf_printf(b, "%sstatic __device__ __align__(%d) const %s %s[%lld] = {", k ? "" : "\n", PROGRAM_ALIGN, c_storage(t), c->name, (long long)(n > 0 ? n : 1));
        if (n > 0)
            c_elements(b, t, c_memory_order(a, c), n);
        buf_puts(b, "}; // ");
        shape_print(b, c->shape, !layout_is_row_major(c->shape));
        buf_puts(b, " %");
        c_comment_text(b, c->inst->name);
        buf_putc(b, '\n');
        arena_free(a);
    }
}

static const char services[] =
    "\n/* A failed call's text goes where the caller has room for it. */\n"
    "static int hlo_fails(const hlo_env *env, const char *what, const char *why)\n"
    "{\n"
    "    if (env && env->size >= __builtin_offsetof(hlo_env, seed) && env->error && env->error_bytes > 0) {\n"
    "        const char *const pieces[] = { what, \": \", why };\n"
    "        uint64_t n = 0;\n"
    "        for (int k = 0; k < 3; k++)\n"
    "            for (const char *s = pieces[k]; *s && n + 1 < env->error_bytes; s++)\n"
    "                env->error[n++] = *s;\n"
    "        env->error[n] = 0;\n"
    "    }\n"
    "    return 1;\n"
    "}\n"
    "\nstatic int hlo_failed(const hlo_env *env, const char *what, cudaError_t e)\n"
    "{\n"
    "    return e != cudaSuccess && hlo_fails(env, what, cudaGetErrorString(e));\n"
    "}\n";

static const char launch_service[] =
    "\ntemplate <typename... Params, typename... Args>\n"
    "static cudaError_t hlo_launch(cudaStream_t stream, unsigned blocks, unsigned threads, void (*kernel)(Params...), Args... args)\n"
    "{\n"
    "    cudaLaunchConfig_t config = {};\n"
    "    config.gridDim = dim3(blocks);\n"
    "    config.blockDim = dim3(threads);\n"
    "    config.stream = stream;\n"
    "    return cudaLaunchKernelEx(&config, kernel, args...);\n"
    "}\n";

static const char words_service[] =
    "\nstatic __global__ void hlo_words_kernel(uint64_t *to, uint64_t first, uint64_t second, int n)\n"
    "{\n"
    "    to[0] = first;\n"
    "    if (n > 1)\n"
    "        to[1] = second;\n"
    "}\n"
    "\n%s cudaError_t %s_words(cudaStream_t stream, void *to, uint64_t first, uint64_t second, int n)\n"
    "{\n"
    "    return hlo_launch(stream, 1, 1, hlo_words_kernel, (uint64_t *)to, first, second, n);\n"
    "}\n";

static const char stream_service[] =
    "\nstatic cudaStream_t hlo_stream(const hlo_env *env)\n"
    "{\n"
    "    return env && env->size >= __builtin_offsetof(hlo_env, stream) + sizeof(void *) ? (cudaStream_t)env->stream : (cudaStream_t)0;\n"
    "}\n";

/* Text that is not for kernels may be C, and then has no extern "C". */
static const char *linkage(const Out *o)
{
    return o->c ? "" : "extern \"C\" ";
}

static void put_constant_addresses(Buf *b, const Program *p, const char *link, const char *prefix)
{
    buf_printf(b, "\n%scudaError_t %s_constants(void **at)\n{\n", link, prefix);
    for (int32_t k = 0; k < p->n_constants; k++) {
        buf_puts(b, p->n_constants == 1 ? "    return " : k == 0 ? "    cudaError_t e = " : k + 1 < p->n_constants ? "    e = e ? e : " : "    return e ? e : ");
        buf_printf(b, "cudaGetSymbolAddress(&at[%d], %s);\n", k, p->constants[k].name);
    }
    buf_puts(b, "}\n");
}

static bool has_words(const Program *p)
{
    bool has = p->random;
    for (int32_t k = 0; k < p->n_steps; k++)
        has |= p->steps[k]->kind == STEP_SEED;
    return has;
}

/* True: there are some for tensor cores. prefix: of what the host's text calls besides launchers. */
static bool put_kernels(Buf *b, const Program *p, const char *launchers, const char *prefix)
{
    Buf  kernels = { 0 };
    bool tensor = cuda_kernels(&kernels, p, launchers);
    cuda_prelude(b, p, tensor);
    if (p->n_functions > 0 || has_words(p) || p->on_devices || cuda_has_choices(p) || cuda_has_calls(p))
        buf_puts(b, launch_service);
    cuda_devices_kernels(b, p, launchers, prefix);
    if (has_words(p))
        buf_printf(b, words_service, launchers, prefix);
    if (cuda_has_choices(p)) {
        cuda_flow_guard(b, p);
        cuda_flow_kernels(b, launchers, prefix);
    }
    cuda_library_services(b, p);
    buf_put(b, kernels.p ? kernels.p : "", kernels.n);
    buf_free(&kernels);
    if (cuda_has_calls(p)) {
        cuda_number_services(b, p);
        cuda_solver_services(b, p);
        cuda_routine_services(b, p);
        cuda_solver_functions(b, p, launchers, strcmp(launchers, "static") == 0 ? NULL : prefix);
    }
    return tensor;
}

static void put_scratch(Out *o)
{
    const Program *p = o->p;
    buf_printf(o->b, "    if (!scratch || (__UINTPTR_TYPE__)scratch %% %d != 0)\n"
                  "        return hlo_failed(env, \"%s_enqueue: scratch must be %lld bytes, aligned to %d\", cudaErrorInvalidValue);\n"
                  "    char *const mem = (char *)scratch;\n",
               PROGRAM_ALIGN, p->name, (long long)p->scratch_bytes, PROGRAM_ALIGN);
    for (int32_t k = 0; k < p->n_buffers; k++) {
        const Buffer *x = p->buffers[k];
        buf_printf(o->b, "    void *const %s = mem + %lld; // ", x->name, (long long)x->offset);
        shape_print(o->b, x->shape, !layout_is_row_major(x->shape));
        buf_putc(o->b, '\n');
    }
}

static void put_variables(Out *o)
{
    const Program *p = o->p;
    put_line(o, cuda_has_choices(p) ? "cudaStream_t stream = flow->streams[0];" : "const cudaStream_t stream = hlo_stream(env);");
    if (has_words(p))
        put_line(o, "uint64_t words[2];");
    if (p->random) {
        put_line(o, "uint64_t own[2] = { 0x%x, 0 };", RANDOM_START);
        put_line(o, "uint64_t *const random = env && env->size >= __builtin_offsetof(hlo_env, devices) && env->random ? env->random : own;");
    }
    if (p->n_constants > 0) {
        put_line(o, "void *constants[%d];", p->n_constants);
        put_line(o, "if (hlo_failed(env, \"constants\", %s_constants(constants)))", o->split ? p->name : "hlo");
        put_line(o, "    return 1;");
    }
}

/* The steps, and in front of them which names they do not use. */
static void put_body(Out *o)
{
    static const char *const names[] = { "args", "results", "scratch", "stream" };
    Buf  steps = { 0 }, *all = o->b;
    bool some = false;
    o->b = &steps;
    put_block(o, &o->p->body);
    o->b = all;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!c_has_name(steps.n ? steps.p : "", names[k]) && (o->p->scratch_bytes == 0 || strcmp(names[k], "scratch") != 0)) {
            buf_printf(all, "%s(void)%s", some ? ", " : "    ", names[k]);
            some = true;
        }
    buf_puts(all, some ? ";\n\n" : "\n");
    buf_put(all, steps.p, steps.n);
    buf_free(&steps);
}

/* The body of NAME_enqueue, or of NAME_steps, which it calls. */
static void put_steps(Out *o)
{
    const Program *p = o->p;
    cuda_devices_check(o->b, p);
    if (p->scratch_bytes > 0)
        put_scratch(o);
    o->indent = 1;
    put_variables(o);
    put_body(o);
    put_line(o, "return 0;");
    buf_puts(o->b, "}\n");
}

static void put_flow(Out *o)
{
    const Program *p = o->p;
    buf_printf(o->b, "\nstatic int %s_steps(const hlo_env *env, hlo_flow *flow, const void *const *args, void *const *results, void *scratch)\n{\n", p->name);
    put_steps(o);
    if (cuda_replays(p))
        cuda_flow_replay(o->b, p);
}

/* The smallest arrays are read and written at once, too. */
static int alignment(int64_t bytes)
{
    int align = 1;
    while (align < PACK_BYTES && 2 * align <= bytes)
        align *= 2;
    return align;
}

static void put_alignment(Buf *b, const Program *p, const char *table, const ProgramLeaf *leaves, int32_t n)
{
    for (int32_t k = 0; k < n; k++) {
        const int align = alignment(leaves[k].bytes);
        if (align > 1)
            buf_printf(b, "    if ((__UINTPTR_TYPE__)%s[%d] %% %d != 0)\n"
                          "        return hlo_fails(env, \"%s_enqueue\", \"%s[%d] must be aligned to %d bytes\");\n",
                       table, k, align, p->name, table, k, align);
    }
}

static void put_entry(Out *o)
{
    const Program *p = o->p;
    if (p->random)
        c_random_function(o->b);
    buf_puts(o->b, stream_service);
    if (p->n_constants > 0 && !o->split)
        put_constant_addresses(o->b, p, "static ", "hlo");
    const char *link = linkage(o);
    buf_printf(o->b, "\n%s %s_scratch_bytes;\n"
                     "%sconst uint64_t %s_scratch_bytes = %lld;\n"
                     "\n%sint %s_enqueue(const hlo_env *env, const void *const *args, void *const *results, void *scratch);\n"
                     "%sint %s_run(const hlo_env *env, const void *const *args, void *const *results, void *scratch);\n",
               o->c ? "extern const uint64_t" : "extern \"C\" const uint64_t", p->name, link, p->name, (long long)p->scratch_bytes, link, p->name, link, p->name);
    if (cuda_has_choices(p)) {
        cuda_flow_services(o->b, p, service_prefix(o));
        put_flow(o);
    }
    buf_printf(o->b, "\n%sint %s_enqueue(const hlo_env *env, const void *const *args, void *const *results, void *scratch)\n{\n", link, p->name);
    put_alignment(o->b, p, "args", p->args, p->n_args);
    put_alignment(o->b, p, "results", p->results, p->n_results);
    cuda_solver_test(o->b, o->arena, p, service_prefix(o));
    if (cuda_has_choices(p)) {
        cuda_flow_enqueue(o->b, p);
        buf_puts(o->b, "}\n");
    } else {
        put_steps(o);
    }
    buf_printf(o->b, "\n%sint %s_run(const hlo_env *env, const void *const *args, void *const *results, void *scratch)\n{\n"
                     "    return %s_enqueue(env, args, results, scratch) || hlo_failed(env, \"%s_run\", cudaStreamSynchronize(hlo_stream(env)));\n}\n",
               link, p->name, p->name, p->name);
}

/* All that is for the device; q: p with names for launchers. */
static void put_device_text(Buf *b, const Program *p, const Program *q, const char *how, const char *includes, const char *launchers,
                            const char *prefix)
{
    Buf  kernels = { 0 };
    bool tensor = put_kernels(&kernels, q, launchers, prefix);
    put_top(b, p, how, includes, tensor, true, strcmp(launchers, "static") == 0);
    put_constants(b, p);
    buf_put(b, kernels.p ? kernels.p : "", kernels.n);
    buf_free(&kernels);
}

static void put_source(Buf *b, const Program *p, const char *includes)
{
    Out o = { .b = b, .p = p, .arena = arena_new() };
    put_device_text(b, p, p, "nvcc -arch=sm_90 -c FILE.cu", includes, "static", "hlo");
    buf_puts(b, services);
    cuda_devices_services(b, p);
    put_entry(&o);
    arena_free(o.arena);
}

void target_cuda_source(Buf *b, const Program *p)
{
    put_source(b, p, "#include <cuda_runtime.h>\n\n");
}

/* ---- in two files ---- */

/* p as launchers of both files have it: no other module's have their names. */
static Program prefixed(Arena *a, const Program *p)
{
    Program q = *p;
    q.functions = arena_copy(a, p->functions, (size_t)p->n_functions * sizeof *p->functions);
    for (int32_t f = 0; f < p->n_functions; f++)
        q.functions[f].name = arena_printf(a, "%s_%s", p->name, p->functions[f].name);
    return q;
}

void target_cuda_kernels(Buf *b, const Program *p)
{
    Arena  *a = arena_new();
    Program q = prefixed(a, p);
    put_device_text(b, p, &q, "nvcc -arch=sm_90 -c FILE.cu; it belongs to what --emit=host prints", "#include <cuda_runtime.h>\n\n", "extern \"C\"", p->name);
    if (p->n_constants > 0)
        put_constant_addresses(b, p, "extern \"C\" ", p->name);
    arena_free(a);
}

void target_cuda_host(Buf *b, const Program *p)
{
    Out     o = { .b = b, .arena = arena_new(), .c = true, .split = true };
    Program q = prefixed(o.arena, p);
    o.p = &q;
    put_top(b, p, "cc -c FILE.c; it belongs to what --emit=kernels prints", "#include <cuda_runtime_api.h>\n\n", false, false, true);
    buf_puts(b, "\n");
    cuda_prototypes(b, &q, "extern");
    cuda_solver_prototypes(b, &q, "extern", p->name);
    if (p->n_constants > 0)
        buf_printf(b, "extern cudaError_t %s_constants(void **at);\n", p->name);
    if (has_words(p))
        buf_printf(b, "extern cudaError_t %s_words(cudaStream_t stream, void *to, uint64_t first, uint64_t second, int n);\n", p->name);
    if (cuda_has_choices(p)) {
        cuda_flow_guard(b, p);
        cuda_flow_prototype(b, p->name);
    }
    cuda_devices_prototypes(b, &q, p->name);
    buf_puts(b, services);
    cuda_devices_services(b, p);
    put_entry(&o);
    arena_free(o.arena);
}

/* ---- its header, and a program ---- */

void target_cuda_header(Buf *b, const Program *p)
{
    Buf own = { 0 };
    buf_printf(&own, "/* The same without waiting for the results; can be captured as a graph. */\n"
                     "int %s_enqueue(const hlo_env *env, const void *const *args, void *const *results, void *scratch);\n",
               p->name);
    Buf types = { 0 };
    if (p->on_devices)
        c_devices_types(&types);
    c_header(b, p, types.p ? types.p : "", own.p);
    buf_free(&types);
    buf_free(&own);
}

/* What main calls: memory of the device's for the time of a run. */
static const char run_on_device[] =
    "\nstatic int run_on_device(const hlo_env *env, const void *const *args, void *const *results, void *scratch)\n"
    "{\n"
    "    void *in[N_ARGS + 1] = { 0 }, *out[N_RESULTS + 1] = { 0 };\n"
    "    int   devices;\n"
    "    if (hlo_failed(env, \"no GPU\", cudaGetDeviceCount(&devices)) || hlo_failed(env, \"scratch\", cudaMalloc(&scratch, %lld)))\n"
    "        return 1;\n"
    "    for (int k = 0; k < N_ARGS; k++)\n"
    "        if (hlo_failed(env, arguments[k].name, cudaMalloc(&in[k], (size_t)arguments[k].bytes + 1)) ||\n"
    "            hlo_failed(env, arguments[k].name, cudaMemcpy(in[k], args[k], (size_t)arguments[k].bytes, cudaMemcpyHostToDevice)))\n"
    "            return 1;\n"
    "    for (int k = 0; k < N_RESULTS; k++)\n"
    "        if (hlo_failed(env, outputs[k].name, cudaMalloc(&out[k], (size_t)outputs[k].bytes + 1)))\n"
    "            return 1;\n"
    "    if (%s_run(env, (const void *const *)in, out, scratch))\n"
    "        return 1;\n"
    "    for (int k = 0; k < N_RESULTS; k++)\n"
    "        if (hlo_failed(env, outputs[k].name, cudaMemcpy(results[k], out[k], (size_t)outputs[k].bytes, cudaMemcpyDeviceToHost)) || cudaFree(out[k]))\n"
    "            return 1;\n"
    "    for (int k = 0; k < N_ARGS; k++)\n"
    "        cudaFree(in[k]);\n"
    "    return cudaFree(scratch) != cudaSuccess;\n"
    "}\n";

void target_cuda_main(Buf *b, const Program *p)
{
    Arena *a = arena_new();
    put_source(b, p, arena_printf(a, "%s#include <cuda_runtime.h>\n\n", c_main_includes));
    c_main(b, p, "run_on_device", 0, arena_printf(a, run_on_device, (long long)p->scratch_bytes + 1, p->name));
    arena_free(a);
}
