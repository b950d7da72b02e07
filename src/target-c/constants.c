/* Constants as C arrays that have the bits of the literal: numbers in decimal that read back to the same float, the bit patterns of floats that
 * C has no type for, and long ones from a file next to the source. The order is that of the layout, not of the text.
 *
 * The weights file holds the long constants one after the other, each aligned to PROGRAM_ALIGN. */
#include "target-c/target_c.h"
#include "target-c/text.h"

#include <string.h>

static int64_t align_up(int64_t n)
{
    return (n + PROGRAM_ALIGN - 1) / PROGRAM_ALIGN * PROGRAM_ALIGN;
}

int64_t *weights_places(Arena *a, const Program *p, const char *weights)
{
    int64_t *at = ARENA_ARRAY(a, int64_t, p->n_constants), end = 0;
    for (int32_t k = 0; k < p->n_constants; k++) {
        const Constant *c = &p->constants[k];
        at[k] = -1;
        if (weights && c->bytes > WEIGHTS_FROM && !literal_all_equal_bits(c->literal)) {
            at[k] = end;
            end += align_up(c->bytes);
        }
    }
    return at;
}

/* ---- arrays ---- */

static bool all_bits_zero(const char *p, int64_t bytes)
{
    for (int64_t k = 0; k < bytes; k++)
        if (p[k])
            return false;
    return true;
}

/* "const", with the bytes that the array has in memory. */
static const char *table_kind(const Constant *c, const void *data)
{
    return c_table(data, c->bytes, type_bytes(type_component(c->shape->type)));
}

static bool needs_macro(const Program *p, const int64_t *places)
{
    Arena *a = arena_new();
    bool   any = false;
    for (int32_t k = 0; k < p->n_constants && !any; k++)
        any = places[k] < 0 && strcmp(table_kind(&p->constants[k], c_memory_order(a, &p->constants[k])), "const") != 0;
    arena_free(a);
    return any;
}

static void put_array(Buf *b, const Constant *c)
{
    Arena      *a = arena_new();
    const void *data = c_memory_order(a, c);
    bool        complex = type_is_complex(c->shape->type);
    Type        t = type_component(c->shape->type);
    int64_t     n = c->literal->count * (complex ? 2 : 1);
    buf_printf(b, "static %s %s %s[%lld] __attribute__((aligned(%d)))", table_kind(c, data), c_storage(t), c->name, (long long)(n > 0 ? n : 1), PROGRAM_ALIGN);
    if (n == 0 || all_bits_zero(data, c->bytes)) {
        buf_puts(b, " = { 0 };");
    } else if (n > 16 && !complex && literal_all_equal_bits(c->literal)) {
        buf_printf(b, " = { [0 ... %lld] = ", (long long)n - 1);
        c_element(b, t, data, 0);
        buf_puts(b, " };");
    } else {
        buf_puts(b, " = {");
        c_elements(b, t, data, n);
        buf_puts(b, "};");
    }
    arena_free(a);
}

static void put_origin(Buf *b, const Constant *c)
{
    buf_puts(b, " // ");
    shape_print(b, c->shape, !layout_is_row_major(c->shape));
    buf_puts(b, " %");
    c_comment_text(b, c->inst->name);
    buf_putc(b, '\n');
}

/* The assembler's string inside of C's string. */
static void put_incbin(Buf *b, const char *name, const char *weights)
{
    Buf path = { 0 }, line = { 0 };
    for (const char *s = weights; *s; s++) {
        if (*s == '"' || *s == '\\')
            buf_putc(&path, '\\');
        buf_putc(&path, *s);
    }
    buf_printf(&line, ".incbin \"%s\"", path.p ? path.p : "");
    buf_printf(b, "__asm__(\".pushsection .rodata, \\\"a\\\"\\n\"\n"
                  "        \".balign %d\\n\"\n"
                  "        \".globl %s_weights\\n\"\n"
                  "        \".hidden %s_weights\\n\"\n"
                  "        \"%s_weights:\\n\"\n        ",
               PROGRAM_ALIGN, name, name, name);
    c_string(b, line.p);
    buf_printf(b, " \"\\n\"\n        \".popsection\\n\");\n"
                  "extern const char %s_weights[] __attribute__((visibility(\"hidden\")));\n",
               name);
    buf_free(&path);
    buf_free(&line);
}

void c_constants(Buf *b, const Program *p, const char *weights, const int64_t *places)
{
    bool any = false;
    for (int32_t k = 0; k < p->n_constants; k++)
        any = any || places[k] >= 0;
    if (any)
        put_incbin(b, p->name, weights);
    if (needs_macro(p, places))
        buf_puts(b, c_table_macro);
    for (int32_t k = 0; k < p->n_constants; k++)
        if (places[k] < 0) {
            put_array(b, &p->constants[k]);
            put_origin(b, &p->constants[k]);
        }
    if (p->n_constants > 0)
        buf_putc(b, '\n');
}

void c_constant_address(Buf *b, const Program *p, int32_t k, const int64_t *places)
{
    if (places[k] >= 0)
        buf_printf(b, "(const void *)(%s_weights + %lld)", p->name, (long long)places[k]);
    else
        buf_printf(b, "(const void *)%s", p->constants[k].name);
}

bool target_c_has_weights(const Program *p, const TargetCOptions *o)
{
    Arena         *a = arena_new();
    const int64_t *places = weights_places(a, p, o->weights);
    bool           any = false;
    for (int32_t k = 0; k < p->n_constants; k++)
        any = any || places[k] >= 0;
    arena_free(a);
    return any;
}

bool target_c_weights(const Program *p, const TargetCOptions *o, bool (*put)(void *to, const void *bytes, size_t n), void *to)
{
    static const char zeros[PROGRAM_ALIGN];
    Arena            *a = arena_new();
    const int64_t    *places = weights_places(a, p, o->weights);
    bool              ok = true;
    for (int32_t k = 0; ok && k < p->n_constants; k++) {
        const Constant *c = &p->constants[k];
        if (places[k] < 0)
            continue;
        Arena *order = arena_new();
        ok = put(to, c_memory_order(order, c), (size_t)c->bytes) && put(to, zeros, (size_t)(align_up(c->bytes) - c->bytes));
        arena_free(order);
    }
    arena_free(a);
    return ok;
}
