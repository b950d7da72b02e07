/* One kernel as a C function, or several.
 *
 *     // %bias_tanh = f32[128,256]{1,0} fusion(%x, %bias), kind=kLoop, calls=%body
 *     //   %b = f32[128,256]{1,0} broadcast(%p1), dimensions={1}
 *     static __attribute__((noinline)) void bias_tanh(float *restrict t, const float *restrict p0, const float *restrict p1)
 *
 * noinline: every kernel is called once or from several places, and clang takes ten times as long over one giant entry function. Not so the short ones that a loop runs:
 * its steps over scalars cost less than their calls. */
#include "emit/dialect.h"
#include "emit/loop_blocks.h"
#include "target-c/target_c.h"
#include "target-c/text.h"

#include <string.h>

static const Dialect dialect = { .helper = "static inline", .boolean = "_Bool", .restricted = "restrict", .index = "int64_t", .hints = true, .blocks = true, .prototypes = true,
                                 .own_math = true, .complex_types = { "float _Complex", "double _Complex" } };

const char *target_c_element_type(Type t)
{
    return dialect_type(&dialect, storage_type(t));
}

/* gcc inlines nothing long that is compiled with more effort than its caller. */
static const char minor_macros[] = "\n/* Kernels that do little of the work are compiled with little effort, which does not keep what they call from being part of them. */\n"
                                   "#if defined __GNUC__ && !defined __clang__\n"
                                   "#define HLO_MINOR __attribute__((noinline, optimize(\"O1\", \"tree-vectorize\", \"expensive-optimizations\")))\n"
                                   "#define HLO_INLINE inline __attribute__((always_inline))\n"
                                   "#else\n"
                                   "#define HLO_MINOR __attribute__((noinline))\n"
                                   "#define HLO_INLINE inline\n"
                                   "#endif\n";

void target_c_prelude(Buf *b, int32_t n, const Kernel *const *kernels, bool minor)
{
    Dialect d = dialect;
    if (minor) {
        buf_puts(b, minor_macros);
        d.helper = "static HLO_INLINE";
    }
    dialect_prelude(b, &d, n, kernels);
}

/* At most so many statements are run, and loops have two trips: inside of a large function compilers do worse with longer ones (measured: some loops of small kernels took a
 * fifth longer). */
static bool is_short(const KBlock *b, int64_t times, int64_t *left)
{
    for (const KStmt *s = b ? b->first : NULL; s; s = s->next) {
        const bool    loop = s->kind == KS_FOR;
        const int64_t trips = loop ? s->loop->hi - s->loop->lo + 1 : 1;
        if (s->kind == KS_LOOP || (loop && (trips > 2 || s->from || s->end)))
            return false;
        if ((*left -= times) < 0 || !is_short(s->body, times * trips, left) || !is_short(s->other, times, left))
            return false;
    }
    return true;
}

static const char *linkage(const Kernel *k, const KernelPart *part, bool minor)
{
    enum { SHORT = 64 };
    int64_t     left = SHORT;
    const Comp *c = k->inst->comp;
    if (kernel_tile_row(k))
        return "static inline";
    if (c != c->module->entry && is_short(part->body, 1, &left))
        return "static";
    return minor ? "static HLO_MINOR" : "static __attribute__((noinline))";
}

static void print_signature(Buf *b, const Kernel *k, const char *name, const KernelPart *part, bool range, bool minor)
{
    bool first = true;
    buf_printf(b, "%s void %s(", linkage(k, part, minor), name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t p = dialect_param_number(k, r);
        if (!part->uses[p])
            continue;
        buf_puts(b, first ? "" : ", ");
        dialect_param(b, &dialect, k, p);
        first = false;
    }
    if (kernel_tile_uses_row(k))
        buf_puts(b, ", int64_t " KERNEL_ROW);
    if (range)
        buf_puts(b, ", int64_t " RANGE_FROM ", int64_t " RANGE_END ")\n{\n");
    else
        buf_puts(b, first ? "void)\n{\n" : ")\n{\n");
}

static void print_function(Buf *b, const Kernel *k, const char *name, const KernelPart *part, bool range, bool minor)
{
    print_signature(b, k, name, part, range, minor);
    dialect_arrays(b, &dialect, part);
    dialect_block(b, &dialect, part->body, 1);
    buf_puts(b, block_streams(part->body) ? "    end_stores_past_caches();\n}\n" : "}\n");
}

/* No identifier made of an HLO name is of this form: those that begin with "hlo_" end in "_k" and a number (emit/names.c). */
static const char *part_name(Arena *a, const char *name, int32_t n_parts, int32_t part)
{
    return n_parts == 1 ? name : arena_printf(a, "hlo_%s_part%d", name, part + 1);
}

void target_c_kernel(Buf *b, const Function *f)
{
    Arena      *a = arena_new();
    KernelPart *parts;
    int32_t     n = kernel_parts(a, f->kernel, &parts);
    c_origin(b, f->inst);
    for (int32_t j = 0; j < n; j++) {
        buf_puts(b, j ? "\n" : "");
        print_function(b, f->kernel, part_name(a, f->name, n, j), &parts[j], false, f->minor);
    }
    arena_free(a);
}

static void print_call_of(Buf *b, const Kernel *k, const char *name, const KernelPart *part, const char *const *args)
{
    bool first = true;
    buf_printf(b, "%s(", name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t param = dialect_param_number(k, r);
        if (!part->uses[param])
            continue;
        buf_printf(b, "%s%s", first ? "" : ", ", args[param]);
        first = false;
    }
    buf_puts(b, ");\n");
}

void target_c_kernel_call(Buf *b, int depth, const Kernel *k, const char *name, const char *const *args)
{
    Arena      *a = arena_new();
    KernelPart *parts;
    int32_t     n = kernel_parts(a, k, &parts);
    for (int32_t j = 0; j < n; j++) {
        buf_printf(b, "%*s", 4 * depth, "");
        print_call_of(b, k, part_name(a, name, n, j), &parts[j], args);
    }
    arena_free(a);
}

/* ---- in ranges ---- */

static const char *range_name(Arena *a, const char *part)
{
    return arena_printf(a, "%s%s_range", strncmp(part, "hlo_", 4) == 0 ? "" : "hlo_", part);
}

/* What the threads call:
 *
 *     static void hlo_add_range(void *job, int64_t part, void *memory)
 *     {
 *         void  **p = job;
 *         int64_t from = part * 8192, end = from + 8192;
 *         (void)memory;
 *         add(p[0], p[1], from, end < 65536 ? end : 65536);
 *     } */
static void print_range(Buf *b, const Kernel *k, const char *name, const RangePart *part)
{
    Arena *a = arena_new();
    bool   even = (part->end - part->lo) % part->size == 0;
    int    n = 0;
    buf_printf(b, "\nstatic void %s(void *job, int64_t part, void *memory)\n{\n    void  **p = job;\n", range_name(a, name));
    buf_puts(b, "    int64_t from = ");
    if (part->lo)
        buf_printf(b, "%lld + ", (long long)part->lo);
    buf_printf(b, "part * %lld, end = from + %lld;\n    (void)memory;\n    %s(", (long long)part->size, (long long)part->size, name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++)
        if (part->whole.uses[dialect_param_number(k, r)])
            buf_printf(b, "p[%d], ", n++);
    if (even)
        buf_puts(b, "from, end);\n}\n");
    else
        buf_printf(b, "from, end < %lld ? end : %lld);\n}\n", (long long)part->end, (long long)part->end);
    arena_free(a);
}

void target_c_ranges(Buf *b, const Function *f)
{
    Arena *a = arena_new();
    c_origin(b, f->inst);
    for (int32_t j = 0; j < f->n_ranges; j++) {
        const char *name = part_name(a, f->name, f->n_ranges, j);
        buf_puts(b, j ? "\n" : "");
        print_function(b, f->kernel, name, &f->ranges[j].whole, f->ranges[j].n > 1, f->minor);
        if (f->ranges[j].n > 1)
            print_range(b, f->kernel, name, &f->ranges[j]);
    }
    arena_free(a);
}

static void print_range_call(Buf *b, const Kernel *k, const char *name, const RangePart *part, const char *const *args)
{
    Arena *a = arena_new();
    bool   first = true;
    buf_printf(b, "hlort_run(hlo_pool(env), %s, (void *[]){ ", range_name(a, name));
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t param = dialect_param_number(k, r);
        if (!part->whole.uses[param])
            continue;
        bool plain = !strchr(args[param], ' ');
        buf_printf(b, plain ? "%s(void *)%s" : "%s(void *)(%s)", first ? "" : ", ", args[param]);
        first = false;
    }
    buf_printf(b, " }, %lld);\n", (long long)part->n);
    arena_free(a);
}

void target_c_ranges_call(Buf *b, int depth, const Function *f, const char *const *args)
{
    Arena *a = arena_new();
    for (int32_t j = 0; j < f->n_ranges; j++) {
        const char *name = part_name(a, f->name, f->n_ranges, j);
        buf_printf(b, "%*s", 4 * depth, "");
        const KExpr *distinct = f->ranges[j].n > 1 ? f->ranges[j].distinct : NULL;
        if (distinct && strcmp(args[distinct->array->param], args[distinct->other->param]) == 0) {
            buf_printf(b, "(void)%s; // in place\n", range_name(a, name));
            continue;
        }
        if (distinct)
            buf_printf(b, "if (%s != %s)\n%*s", args[distinct->array->param], args[distinct->other->param], 4 * (depth + 1), "");
        if (f->ranges[j].n > 1)
            print_range_call(b, f->kernel, name, &f->ranges[j], args);
        else
            print_call_of(b, f->kernel, name, &f->ranges[j].whole, args);
    }
    arena_free(a);
}

/* ---- tiles ---- */

const char *target_c_tile_name(Arena *a, const char *name)
{
    return arena_printf(a, "hlo_%s_tile", name);
}

static bool is_sums(const Kernel *k, int32_t param)
{
    return param == k->n_operands - 1;
}

/* What the runtime calls:
 *
 *     static void hlo_add_tile(const void *context, const hlort_tile *t)
 *     {
 *         void *const *p = context;
 *         for (int64_t i = 0; i < t->rows; i++) {
 *             float  *sums = (float *)t->sums + i * t->stride;
 *             int64_t place = t->place + i * t->by, left = t->columns;
 *             while (left > 0) {
 *                 const int64_t from = place % 3072, n = left < 3072 - from ? left : 3072 - from;
 *                 add(p[0], sums, place / 3072, from, from + n);
 *                 sums += n, place += n, left -= n;
 *             }
 *         }
 *     } */
static void print_tile(Buf *b, const Function *f, const KernelPart *part)
{
    Arena          *a = arena_new();
    const Kernel   *k = f->kernel;
    const char     *type = dialect_type(&dialect, k->params[k->n_operands - 1]->type);
    const long long row = kernel_tile_row(k);
    bool            has_context = false;
    int             n = 0;
    for (int32_t param = 0; param < k->n_operands + k->n_results; param++)
        has_context |= part->uses[param] && !is_sums(k, param);
    buf_printf(b,
               "\nstatic void %s(const void *context, const hlort_tile *t)\n{\n"
               "%s"
               "    for (int64_t i = 0; i < t->rows; i++) {\n"
               "        %s *sums = (%s *)t->sums + i * t->stride;\n"
               "        int64_t place = t->place + i * t->by, left = t->columns;\n"
               "        while (left > 0) {\n"
               "            const int64_t from = place %% %lld, n = left < %lld - from ? left : %lld - from;\n"
               "            %s(",
               target_c_tile_name(a, f->name), has_context ? "    void *const *p = context;\n" : "    (void)context;\n", type, type, row, row, row, f->name);
    for (int32_t r = 0; r < k->n_operands + k->n_results; r++) {
        const int32_t param = dialect_param_number(k, r);
        if (part->uses[param] && is_sums(k, param))
            buf_puts(b, "sums, ");
        else if (part->uses[param])
            buf_printf(b, "p[%d], ", n++);
    }
    if (kernel_tile_uses_row(k))
        buf_printf(b, "place / %lld, ", row);
    buf_puts(b, "from, from + n);\n            sums += n, place += n, left -= n;\n        }\n    }\n}\n");
    arena_free(a);
}

void target_c_tile(Buf *b, const Function *f)
{
    Arena     *a = arena_new();
    KernelPart part = kernel_part(a, f->kernel, f->kernel->body);
    c_origin(b, f->inst);
    print_function(b, f->kernel, f->name, &part, true, false);
    print_tile(b, f, &part);
    arena_free(a);
}

/* The parameters in the order of the context. */
static int32_t context_params(const Kernel *k, int32_t *params)
{
    int32_t n = 0;
    for (int32_t r = 0; r < k->n_operands + k->n_results; r++) {
        const int32_t param = dialect_param_number(k, r);
        if (kernel_uses_param(k, param) && !is_sums(k, param))
            params[n++] = param;
    }
    return n;
}

void target_c_tile_context(Buf *b, const Kernel *k, const char *const *args)
{
    Arena   *a = arena_new();
    int32_t *params = ARENA_ARRAY(a, int32_t, k->n_operands + k->n_results), n = context_params(k, params);
    buf_puts(b, n ? "(void *const[]){ " : "(void *const[]){ 0");
    for (int32_t e = 0; e < n; e++) {
        const char *arg = args[params[e] < k->n_operands ? params[e] : params[e] - 1];
        buf_printf(b, strchr(arg, ' ') ? "%s(void *)(%s)" : "%s(void *)%s", e > 0 ? ", " : "", arg);
    }
    buf_puts(b, " }");
    arena_free(a);
}
