/* A Program as one C file: types, constants, kernels, and the entry, which is the tree of steps as C statements.
 *
 *     int NAME_run(const hlo_env *env, const void *const *args, void *const *results, void *scratch)
 *     {
 *         void *const v_dot_3 = mem + 64; // f32[128,256]
 *         dot_3(v_dot_3, args[0], args[1]);
 *         ...
 *
 * A block of very many steps is several functions that are called one after the other: compilers do badly with long ones.
 *
 * The text includes no header and depends on nothing but the Program: no date, no path, no address. */
#include "support/map.h"
#include "support/vec.h"
#include "target-c/target_c.h"
#include "target-c/text.h"

enum { BLOCK_STEPS = 400, PART_STEPS = 200 }; /* how many stay one function, how many go into each else */

typedef VEC(const Buffer *) BufferList;

typedef struct Out {
    Buf            *b;
    const Program  *p;
    const int64_t  *places; /* of constants in the weights file */
    Arena          *arena;
    Map             parts;   /* Block -> the number of its first part, for those that are functions */
    Map             locals;  /* Buffer -> itself: scalars that are variables */
    BufferList      results; /* those among them that are results */
    int32_t         n_parts;
    int             indent;
} Out;

static void line_start(Out *o)
{
    for (int k = 0; k < o->indent; k++)
        buf_puts(o->b, "    ");
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

static void put_address(Buf *b, const Out *o, const Buffer *x)
{
    if (x->kind == BUFFER_ARG)
        buf_printf(b, "args[%d]", x->index);
    else if (x->kind == BUFFER_RESULT)
        buf_printf(b, map_get(&o->locals, x) ? "&hlo_result_%d" : "results[%d]", x->index);
    else if (x->kind == BUFFER_CONST)
        c_constant_address(b, o->p, x->index, o->places);
    else
        buf_puts(b, x->name);
}

static const char *address_text(const Out *o, Arena *a, const Buffer *x)
{
    Buf text = { 0 };
    put_address(&text, o, x);
    const char *s = arena_strndup(a, text.p, text.n);
    buf_free(&text);
    return s;
}

static void put_exchange(Out *o, const Step *s)
{
    Arena      *a = arena_new();
    const char *in = s->n_operands > 0 ? address_text(o, a, s->buffers[0]) : "0";
    const char *out = s->n_buffers > s->n_operands ? address_text(o, a, s->buffers[s->n_operands]) : "0";
    line_start(o);
    buf_printf(o->b, "if (env->devices->exchange(env->devices->context, &%s, %s, %s))\n", s->exchange->id, in, out);
    line_start(o);
    buf_puts(o->b, "    return hlo_fail(env, ");
    c_string(o->b, arena_printf(a, "%s %%%s: %s", s->exchange->op, s->exchange->name, c_exchange_failure(s->exchange)));
    buf_puts(o->b, ");\n");
    arena_free(a);
}

static void put_check(Out *o, const Step *s)
{
    Arena *a = arena_new();
    line_start(o);
    buf_puts(o->b, "if (!*(const uint8_t *)");
    put_address(o->b, o, s->buffers[0]);
    buf_puts(o->b, ")\n");
    line_start(o);
    buf_puts(o->b, "    return hlo_fail(env, ");
    c_string(o->b, arena_printf(a, "%s %%%s: %s", s->exchange->op, s->exchange->name, s->exchange->failure));
    buf_puts(o->b, ");\n");
    arena_free(a);
}

static void put_device_number(Out *o, const Step *s)
{
    line_start(o);
    buf_puts(o->b, "*(uint32_t *)");
    put_address(o->b, o, s->buffers[0]);
    buf_printf(o->b, " = (uint32_t)env->devices->%s;\n", s->kind == STEP_REPLICA ? "replica" : "partition");
}

/* A call of a kernel or of a library's function. */
static void put_kernel(Out *o, const Step *s)
{
    Arena       *a = arena_new();
    const char **args = ARENA_ARRAY(a, const char *, s->n_buffers);
    for (int32_t k = 0; k < s->n_buffers; k++)
        args[k] = s->buffers[k] ? address_text(o, a, s->buffers[k]) : "";
    if (s->kind == STEP_CALL) {
        line_start(o);
        if (s->call->outside) {
            buf_puts(o->b, "if (");
            target_c_extern_call(o->b, s->call, args);
            buf_puts(o->b, ")\n");
            put_line(o, "    return 1;");
        } else {
            if (library_is_runtime(s->call))
                target_c_runtime_call(o->b, s, args);
            else
                target_c_library_call(o->b, s->call, args);
            buf_putc(o->b, '\n');
        }
    } else if (o->p->functions[s->function].n_ranges)
        target_c_ranges_call(o->b, o->indent, &o->p->functions[s->function], args);
    else
        target_c_kernel_call(o->b, o->indent, s->kernel, o->p->functions[s->function].name, args);
    arena_free(a);
}

/* A donated argument may be the result itself. */
static bool may_be_same(const Program *p, const Buffer *x, const Buffer *y)
{
    return x->kind == BUFFER_ARG && y->kind == BUFFER_RESULT && p->results[y->index].alias == x->index;
}

static void put_copy(Out *o, const Step *s)
{
    const Buffer *from = s->buffers[0], *to = s->buffers[1];
    if (may_be_same(o->p, from, to)) {
        put_line(o, "if (results[%d] != args[%d])", to->index, from->index);
        buf_puts(o->b, "    ");
    }
    line_start(o);
    buf_puts(o->b, "__builtin_memcpy(");
    put_address(o->b, o, to);
    buf_puts(o->b, ", ");
    put_address(o->b, o, from);
    buf_printf(o->b, ", %lld);\n", (long long)to->bytes);
}

static void put_random(Out *o, const Step *s)
{
    int64_t delta = inst_int(s->inst, ATTR_DELTA, 0);
    line_start(o);
    buf_puts(o->b, "hlo_random(random, ");
    put_address(o->b, o, s->buffers[0]);
    buf_printf(o->b, ", %lluu, %su);\n", (unsigned long long)delta, delta < 0 ? "18446744073709551615" : "0");
}

static void put_block(Out *o, const Block *x);

/* What the text of a watched program tells: the events of WatchEvent, in a call of hlo_watch. */
static void put_event(Out *o, const Step *s, WatchEvent event)
{
    if (o->p->watched)
        put_line(o, "hlo_watch(%d, %d, 0);", event, s->number);
}

static void put_value(Out *o, const Step *s)
{
    Arena *a = arena_new();
    line_start(o);
    buf_printf(o->b, "hlo_watch(%d, %d, (const void *const[]){ ", WATCH_VALUE, s->number);
    for (int32_t k = 0; k < s->n_buffers; k++)
        buf_printf(o->b, "%s, ", s->buffers[k] ? address_text(o, a, s->buffers[k]) : "0");
    buf_puts(o->b, "0 });\n");
    arena_free(a);
}

static void put_while(Out *o, const Step *s)
{
    line_start(o);
    c_step_origin(o->b, s->inst);
    put_line(o, "while (1) {");
    o->indent++;
    put_event(o, s, WATCH_TRIP);
    put_block(o, &s->condition);
    line_start(o);
    buf_puts(o->b, "if (!*(const uint8_t *)");
    put_address(o->b, o, s->buffers[0]);
    buf_puts(o->b, ")\n");
    put_line(o, "    break;");
    put_block(o, &s->blocks[0]);
    o->indent--;
    put_line(o, "}");
}

static void put_if_pred(Out *o, const Step *s)
{
    line_start(o);
    buf_puts(o->b, "if (*(const uint8_t *)");
    put_address(o->b, o, s->buffers[0]);
    buf_puts(o->b, ") {\n");
    o->indent++;
    put_block(o, &s->blocks[0]);
    o->indent--;
    if (s->blocks[1].n > 0) {
        put_line(o, "} else {");
        o->indent++;
        put_block(o, &s->blocks[1]);
        o->indent--;
    }
    put_line(o, "}");
}

static void put_switch(Out *o, const Step *s)
{
    line_start(o);
    buf_puts(o->b, "switch (*(const int32_t *)");
    put_address(o->b, o, s->buffers[0]);
    buf_puts(o->b, ") {\n");
    for (int32_t k = 0; k < s->n_blocks; k++) {
        if (k + 1 < s->n_blocks)
            put_line(o, "case %d:", k);
        else
            put_line(o, "default: // %d, and what is out of range", k);
        o->indent++;
        put_block(o, &s->blocks[k]);
        put_line(o, "break;");
        o->indent--;
    }
    put_line(o, "}");
}

static void put_step(Out *o, const Step *s)
{
    switch (s->kind) {
    case STEP_KERNEL:
    case STEP_CALL:
        put_kernel(o, s);
        break;
    case STEP_COPY:
        put_copy(o, s);
        break;
    case STEP_EXCHANGE:
        put_exchange(o, s);
        break;
    case STEP_CHECK:
        put_check(o, s);
        break;
    case STEP_REPLICA:
    case STEP_PARTITION:
        put_device_number(o, s);
        break;
    case STEP_RANDOM:
        put_random(o, s);
        break;
    case STEP_SEED:
        line_start(o);
        buf_puts(o->b, "*(uint64_t *)");
        put_address(o->b, o, s->buffers[0]);
        buf_puts(o->b, " = env && env->size >= __builtin_offsetof(hlo_env, random) ? env->seed : 0;\n");
        break;
    case STEP_VALUE:
        put_value(o, s);
        break;
    case STEP_WHILE:
        put_while(o, s);
        break;
    case STEP_IF:
    line_start(o);
        c_step_origin(o->b, s->inst);
        if (s->buffers[0]->shape->type == TYPE_PRED)
            put_if_pred(o, s);
        else
            put_switch(o, s);
        break;
    }
}

static void put_told_step(Out *o, const Step *s)
{
    if (s->kind != STEP_VALUE)
        put_event(o, s, WATCH_BEGIN);
    put_step(o, s);
    if (s->kind != STEP_VALUE)
        put_event(o, s, WATCH_END);
}

/* ---- blocks as functions ---- */

static int32_t parts_of(const Block *x)
{
    return (x->n + PART_STEPS - 1) / PART_STEPS;
}

static const int32_t *first_part(const Out *o, const Block *x)
{
    return map_get(&o->parts, x);
}

static void put_block(Out *o, const Block *x)
{
    const int32_t *first = first_part(o, x);
    for (int32_t k = 0; first && k < parts_of(x); k++) {
        const char *mem = o->p->scratch_bytes > 0 ? ", mem" : "", *random = o->p->random ? ", random" : "";
        if (o->p->may_fail) {
            put_line(o, "if (hlo_steps_part%d(env, args, results%s%s))", *first + k, mem, random);
            put_line(o, "    return 1;");
        } else
            put_line(o, "hlo_steps_part%d(env, args, results%s%s);", *first + k, mem, random);
    }
    for (int32_t k = 0; !first && k < x->n; k++)
        put_told_step(o, x->v[k]);
}

static void list_block(const Out *o, const Block *x, Map *seen, BufferList *list);

/* The scratch buffers that a step names, those of steps inside it too, each once. */
static void list_step(const Out *o, const Step *s, Map *seen, BufferList *list)
{
    for (int32_t k = 0; k < s->n_buffers; k++) {
        const Buffer *x = s->buffers[k];
        if (x && x->kind == BUFFER_SCRATCH && !map_has(seen, x)) {
            map_put(seen, x, seen);
            vec_push(o->arena, list, x);
        }
    }
    list_block(o, &s->condition, seen, list);
    for (int32_t k = 0; k < s->n_blocks; k++)
        list_block(o, &s->blocks[k], seen, list);
}

static void list_block(const Out *o, const Block *x, Map *seen, BufferList *list)
{
    for (int32_t k = 0; k < x->n && !first_part(o, x); k++)
        list_step(o, x->v[k], seen, list);
}

static void put_buffers(Out *o, const BufferList *list)
{
    for (int32_t k = 0; k < list->n; k++) {
        const Buffer *x = list->v[k];
        if (map_get(&o->locals, x))
            buf_printf(o->b, "    %s hlo_%s = 0; void *const %s = &hlo_%s; // ", target_c_element_type(x->shape->type), x->name, x->name, x->name);
        else
            buf_printf(o->b, "    void *const %s = mem + %lld; // ", x->name, (long long)x->offset);
        shape_print(o->b, x->shape, !layout_is_row_major(x->shape));
        buf_putc(o->b, '\n');
    }
}

static void put_part(Out *o, const Block *x, int32_t part)
{
    Map        seen = map_new(o->arena);
    BufferList used = { 0 };
    int32_t    from = part * PART_STEPS, end = x->n - from > PART_STEPS ? from + PART_STEPS : x->n;
    bool       scratch = o->p->scratch_bytes > 0, random = o->p->random;
    for (int32_t k = from; k < end; k++)
        list_step(o, x->v[k], &seen, &used);
    buf_printf(o->b,
               "\nstatic HLO_STEPS %s hlo_steps_part%d(const hlo_env *env, const void *const *args, void *const *results%s%s)\n{\n",
               o->p->may_fail ? "int" : "void", o->n_parts++, scratch ? ", char *mem" : "", random ? ", uint64_t *random" : "");
    put_buffers(o, &used);
    buf_printf(o->b, "    (void)env, (void)args, (void)results%s%s;\n\n", scratch ? ", (void)mem" : "",
               random ? ", (void)random" : "");
    o->indent = 1;
    for (int32_t k = from; k < end; k++)
        put_told_step(o, x->v[k]);
    buf_puts(o->b, o->p->may_fail ? "    return 0;\n}\n" : "}\n");
}

/* Calls and copies gain nothing from the optimizer, and there are enough of them to feel it. */
static const char steps_attribute[] = "\n#ifdef __clang__\n"
                                      "#define HLO_STEPS __attribute__((noinline))\n"
                                      "#else\n"
                                      "#define HLO_STEPS __attribute__((noinline, optimize(\"O1\")))\n"
                                      "#endif\n";

static void put_inner_parts(Out *o, const Block *x);

/* x's own functions, after those of the blocks inside it. */
static void put_parts(Out *o, const Block *x)
{
    put_inner_parts(o, x);
    if (x->n <= BLOCK_STEPS)
        return;
    int32_t first = o->n_parts;
    if (first == 0)
        buf_puts(o->b, steps_attribute);
    for (int32_t k = 0; k < parts_of(x); k++)
        put_part(o, x, k);
    map_put(&o->parts, x, arena_copy(o->arena, &first, sizeof first));
}

static void put_inner_parts(Out *o, const Block *x)
{
    for (int32_t k = 0; k < x->n; k++) {
        put_parts(o, &x->v[k]->condition);
        for (int32_t e = 0; e < x->v[k]->n_blocks; e++)
            put_parts(o, &x->v[k]->blocks[e]);
    }
}

/* ---- the file ---- */

static void put_top(Buf *b, const Program *p)
{
    buf_puts(b, "/* HLO module ");
    c_comment_text(b, p->module->name);
    buf_printf(b, ".  Compile: cc -O3 -march=native -fno-math-errno -fno-trapping-math -c FILE.c; link with %s-lm%s", p->runtime ? "libhlort.a " : "",
               p->lapack ? " -lopenblas (LAPACK)" : "");
    target_c_extern_symbols(b, p);
    buf_printf(b, ".\n *\n * %s_run returns 0, or 1 with a text in env->error. env may be NULL.\n", p->name);
    c_interface_comment(b, p);
}

static void put_types(Buf *b, const Program *p)
{
    c_int_types(b);
    if (p->on_devices)
        c_devices_types(b);
    c_env_type(b);
}

static void put_kernels(Buf *b, const Program *p)
{
    Arena         *a = arena_new();
    const Kernel **v = ARENA_ARRAY(a, const Kernel *, p->n_functions);
    bool           minor = false;
    for (int32_t k = 0; k < p->n_functions; k++) {
        v[k] = p->functions[k].kernel;
        minor |= p->functions[k].minor;
    }
    target_c_prelude(b, p->n_functions, v, minor);
    for (int32_t k = 0; k < p->n_functions; k++) {
        if (kernel_tile_row(v[k]))
            continue;
        buf_putc(b, '\n');
        if (p->functions[k].n_ranges)
            target_c_ranges(b, &p->functions[k]);
        else
            target_c_kernel(b, &p->functions[k]);
    }
    target_c_library_prelude(b, p);
    target_c_runtime_prelude(b, p);
    target_c_extern_prelude(b, p);
    for (int32_t k = 0; k < p->n_functions; k++)
        if (kernel_tile_row(v[k])) {
            buf_putc(b, '\n');
            target_c_tile(b, &p->functions[k]);
        }
    for (int32_t k = 0; k < p->n_calls; k++) {
        buf_putc(b, '\n');
        if (p->calls[k]->outside)
            target_c_extern(b, p->calls[k]);
        else if (library_is_runtime(p->calls[k]))
            target_c_runtime(b, p, p->calls[k]);
        else
            target_c_library(b, p->calls[k]);
    }
    arena_free(a);
}

/* A failed call's text goes where the caller has room for it. */
static void put_fail(Buf *b)
{
    buf_puts(b, "\nstatic int hlo_fail(const hlo_env *env, const char *text)\n"
                "{\n"
                "    if (env && env->size >= __builtin_offsetof(hlo_env, seed) && env->error && env->error_bytes > 0) {\n"
                "        uint64_t n = 0;\n"
                "        for (; text[n] && n + 1 < env->error_bytes; n++)\n"
                "            env->error[n] = text[n];\n"
                "        env->error[n] = 0;\n"
                "    }\n"
                "    return 1;\n"
                "}\n");
}

/* Who looks on is told to the library, not to a call: only hlo-run has such text. */
static void put_watch(Buf *b, const Program *p)
{
    buf_printf(b, "\ntypedef void hlo_watcher(void *cookie, int32_t event, int32_t step, const void *const *values);\n"
                  "static hlo_watcher *hlo_watcher_now;\n"
                  "static void *hlo_watcher_cookie;\n"
                  "\nvoid %s_watch(hlo_watcher *f, void *cookie);\n"
                  "void %s_watch(hlo_watcher *f, void *cookie)\n"
                  "{\n"
                  "    hlo_watcher_now = f;\n"
                  "    hlo_watcher_cookie = cookie;\n"
                  "}\n"
                  "\nstatic void hlo_watch(int32_t event, int32_t step, const void *const *values)\n"
                  "{\n"
                  "    if (hlo_watcher_now)\n"
                  "        hlo_watcher_now(hlo_watcher_cookie, event, step, values);\n"
                  "}\n",
               p->name, p->name);
}

/* ---- scalars of loops: as variables they stay in registers, where stores to memory from one iteration to the next would have to be waited for ---- */

static void note_block(Out *o, const Block *x, bool looped, Map *refused, BufferList *list);

static void note_step(Out *o, const Step *s, bool looped, Map *refused, BufferList *list)
{
    const bool computes = s->kind == STEP_KERNEL || s->kind == STEP_COPY || s->kind == STEP_WHILE || s->kind == STEP_IF;
    for (int32_t k = 0; k < s->n_buffers; k++) {
        const Buffer *x = s->buffers[k];
        if (!x || (x->kind != BUFFER_SCRATCH && x->kind != BUFFER_RESULT))
            continue;
        if (!computes || shape_count(x->shape) != 1)
            map_put(refused, x, (void *)x);
        else if ((looped || s->kind == STEP_WHILE) && !map_has(&o->locals, x)) {
            map_put(&o->locals, x, (void *)x);
            vec_push(o->arena, list, x);
        }
    }
    note_block(o, &s->condition, true, refused, list);
    for (int32_t k = 0; k < s->n_blocks; k++)
        note_block(o, &s->blocks[k], looped || s->kind == STEP_WHILE, refused, list);
}

static void note_block(Out *o, const Block *x, bool looped, Map *refused, BufferList *list)
{
    for (int32_t k = 0; k < x->n; k++)
        note_step(o, x->v[k], looped, refused, list);
}

/* Not where others look at them, or several functions. */
static void note_locals(Out *o)
{
    Map        refused = map_new(o->arena);
    BufferList found = { 0 };
    if (o->p->watched || o->n_parts > 0)
        return;
    note_block(o, &o->p->body, false, &refused, &found);
    for (int32_t k = 0; k < found.n; k++)
        if (map_has(&refused, found.v[k]))
            map_put(&o->locals, found.v[k], NULL);
        else if (found.v[k]->kind == BUFFER_RESULT)
            vec_push(o->arena, &o->results, found.v[k]);
}

static void put_result_variables(Out *o)
{
    for (int32_t k = 0; k < o->results.n; k++) {
        const Buffer *x = o->results.v[k];
        buf_printf(o->b, "    %s hlo_result_%d = 0; // ", target_c_element_type(x->shape->type), x->index);
        shape_print(o->b, x->shape, false);
        buf_putc(o->b, '\n');
    }
}

static void put_variables_to_results(Out *o)
{
    for (int32_t k = 0; k < o->results.n; k++) {
        const Buffer *x = o->results.v[k];
        put_line(o, "__builtin_memcpy(results[%d], &hlo_result_%d, %lld);", x->index, x->index, (long long)x->bytes);
    }
}

static void put_scratch(Out *o)
{
    const Program *p = o->p;
    Map            seen = map_new(o->arena);
    BufferList     used = { 0 };
    buf_printf(o->b, "    if (!scratch || (__UINTPTR_TYPE__)scratch %% %d != 0)\n"
                  "        return hlo_fail(env, \"%s_run: scratch must be %lld bytes, aligned to %d\");\n"
                  "    char *const mem = scratch;\n",
               PROGRAM_ALIGN, p->name, (long long)p->scratch_bytes, PROGRAM_ALIGN);
    list_block(o, &p->body, &seen, &used);
    put_buffers(o, &used);
    bool named = false;
    for (int32_t k = 0; k < used.n; k++)
        named |= !map_get(&o->locals, used.v[k]);
    if (!named)
        buf_puts(o->b, "    (void)mem;\n"); /* kernels that do nothing name no result */
}

static void put_check_devices(Buf *b, const Program *p)
{
    buf_printf(b, "    if (!env || env->size < __builtin_offsetof(hlo_env, devices) + sizeof env->devices || !env->devices ||\n"
                  "        env->devices->replicas != %lld || env->devices->partitions != %lld)\n"
                  "        return hlo_fail(env, \"%s_run: env->devices must say which of %lld * %lld devices this is\");\n",
               (long long)p->on.replicas, (long long)p->on.partitions, p->name, (long long)p->on.replicas, (long long)p->on.partitions);
}

static void put_entry(Out *o)
{
    const Program *p = o->p;
    if (p->random)
        c_random_function(o->b);
    if (p->watched)
        put_watch(o->b, p);
    put_parts(o, &p->body);
    buf_printf(o->b, "\nextern const uint64_t %s_scratch_bytes;\n"
                     "const uint64_t %s_scratch_bytes = %lld;\n"
                     "\nint %s_run(const hlo_env *env, const void *const *args, void *const *results, void *scratch);\n"
                     "int %s_run(const hlo_env *env, const void *const *args, void *const *results, void *scratch)\n{\n",
               p->name, p->name, (long long)p->scratch_bytes, p->name, p->name);
    if (p->on_devices)
        put_check_devices(o->b, p);
    note_locals(o);
    if (p->scratch_bytes > 0)
        put_scratch(o);
    put_result_variables(o);
    if (p->random)
        buf_printf(o->b, "    uint64_t own[2] = { 0x%x, 0 };\n"
                         "    const int known = env && env->size >= __builtin_offsetof(hlo_env, devices);\n"
                         "    uint64_t *const random = known && env->random ? env->random : own;\n",
                   RANDOM_START);
    buf_printf(o->b, "    (void)env, (void)args, (void)results%s;\n\n", p->scratch_bytes > 0 ? "" : ", (void)scratch");
    o->indent = 1;
    put_block(o, &p->body);
    put_variables_to_results(o);
    buf_puts(o->b, "    return 0;\n}\n");
}

static void put_source(Buf *b, const Program *p, const TargetCOptions *options, const char *includes)
{
    Arena *a = arena_new();
    Out    o = { .b = b, .p = p, .places = weights_places(a, p, options->weights), .arena = a, .parts = map_new(a), .locals = map_new(a) };
    put_top(b, p);
    buf_puts(b, includes);
    put_types(b, p);
    buf_putc(b, '\n');
    c_constants(b, p, options->weights, o.places);
    if (p->scratch_bytes > 0 || p->may_fail || p->on_devices)
        put_fail(b);
    put_kernels(b, p);
    c_exchanges(b, p);
    target_c_packed(b, p);
    put_entry(&o);
    arena_free(a);
}

void target_c_source(Buf *b, const Program *p, const TargetCOptions *options)
{
    put_source(b, p, options, "");
}

void target_c_main(Buf *b, const Program *p, const TargetCOptions *options)
{
    Arena *a = arena_new();
    put_source(b, p, options, c_main_includes);
    c_main(b, p, arena_printf(a, "%s_run", p->name), p->scratch_bytes, "");
    arena_free(a);
}

void target_c_header(Buf *b, const Program *p)
{
    Buf types = { 0 };
    if (p->on_devices)
        c_devices_types(&types);
    c_header(b, p, types.p ? types.p : "", "");
    buf_free(&types);
}
