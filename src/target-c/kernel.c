/* One kernel as a C function, or several.
 *
 *     // %bias_tanh = f32[128,256]{1,0} fusion(%x, %bias), kind=kLoop, calls=%body
 *     //   %b = f32[128,256]{1,0} broadcast(%p1), dimensions={1}
 *     static __attribute__((noinline)) void bias_tanh(float *restrict t, const float *restrict p0, const float *restrict p1)
 *
 * noinline: every kernel is called once or from several places, and clang takes ten times as long over one giant entry function. */
#include "emit/dialect.h"
#include "target-c/target_c.h"
#include "target-c/text.h"

static const Dialect dialect = { .helper = "static inline", .boolean = "_Bool", .restricted = "restrict", .hints = true, .prototypes = true,
                                 .own_math = true, .complex_types = { "float _Complex", "double _Complex" } };

void target_c_prelude(Buf *b, int32_t n, const Kernel *const *kernels)
{
    dialect_prelude(b, &dialect, n, kernels);
}

static void print_signature(Buf *b, const Kernel *k, const char *name, const KernelPart *part)
{
    bool first = true;
    buf_printf(b, "static __attribute__((noinline)) void %s(", name);
    for (int32_t r = 0; r <= k->n_operands + k->n_results; r++) {
        int32_t p = dialect_param_number(k, r);
        if (!part->uses[p])
            continue;
        buf_puts(b, first ? "" : ", ");
        dialect_param(b, &dialect, k, p);
        first = false;
    }
    buf_puts(b, first ? "void)\n{\n" : ")\n{\n");
}

/* No identifier made of an HLO name is of this form: those that begin with "hlo_" end in "_k" and a number (emit/names.c). */
static const char *part_name(Arena *a, const char *name, int32_t n_parts, int32_t part)
{
    return n_parts == 1 ? name : arena_printf(a, "hlo_%s_part%d", name, part + 1);
}

void target_c_kernel(Buf *b, const Kernel *k, const char *name, const Inst *i)
{
    Arena      *a = arena_new();
    KernelPart *parts;
    int32_t     n = kernel_parts(a, k, &parts);
    c_origin(b, i);
    for (int32_t j = 0; j < n; j++) {
        buf_puts(b, j ? "\n" : "");
        print_signature(b, k, part_name(a, name, n, j), &parts[j]);
        dialect_arrays(b, &dialect, &parts[j]);
        dialect_block(b, &dialect, parts[j].body, 1);
        buf_puts(b, "}\n");
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
