/* Constants as C arrays that have the bits of the literal: numbers in decimal that read back to the same float, the bit patterns of floats that
 * C has no type for, and long ones from a file next to the source. The order is that of the layout, not of the text.
 *
 * The weights file holds the long constants one after the other, each aligned to PROGRAM_ALIGN. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target-c/target_c.h"
#include "target-c/text.h"

#define LINE 100 /* columns */

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

/* ---- order in memory ---- */

/* The elements of c as they lie in memory; the literal's own data when that is row-major. */
static const void *memory_order(Arena *a, const Constant *c)
{
    const Shape *s = c->shape;
    int64_t      count = c->literal->count, bytes = type_bytes(s->type);
    int64_t     *step, *at, from = 0;
    char        *data;
    if (layout_is_row_major(s) || count == 0)
        return c->literal->data;
    data = arena_array(a, count, (size_t)bytes);
    step = ARENA_ARRAY(a, int64_t, s->rank); /* row-major distance of the k-th most minor dimension */
    at = ARENA_ARRAY(a, int64_t, s->rank);
    for (int32_t k = 0; k < s->rank; k++) {
        step[k] = 1;
        for (int64_t d = layout_dim(s, k) + 1; d < s->rank; d++)
            step[k] *= s->dims[d];
    }
    for (int64_t n = 0; n < count; n++) {
        memcpy(data + n * bytes, (const char *)c->literal->data + from * bytes, (size_t)bytes);
        for (int32_t k = 0; k < s->rank; k++) {
            from += step[k];
            if (++at[k] < s->dims[layout_dim(s, k)])
                break;
            from -= step[k] * at[k];
            at[k] = 0;
        }
    }
    return data;
}

/* ---- one number ---- */

static void put_nan(Buf *b, uint64_t bits, int man, bool negative, const char *suffix)
{
    uint64_t quiet = UINT64_C(1) << (man - 1), payload = bits & (quiet - 1);
    buf_printf(b, "%s__builtin_nan%s%s(\"", negative ? "-" : "", bits & quiet ? "" : "s", suffix);
    if (payload)
        buf_printf(b, "0x%llx", (unsigned long long)payload);
    buf_puts(b, "\")");
}

/* "1" is an integer to C, "1.0" is not. */
static void put_decimal(Buf *b, const char *digits, const char *suffix)
{
    buf_puts(b, digits);
    if (!strpbrk(digits, ".e"))
        buf_puts(b, ".0");
    buf_puts(b, suffix);
}

static void put_f32(Buf *b, uint32_t bits)
{
    float v;
    char  text[32];
    memcpy(&v, &bits, sizeof v);
    if ((bits & 0x7f800000) == 0x7f800000) {
        if (bits & 0x7fffff)
            put_nan(b, bits, 23, bits >> 31, "f");
        else
            buf_puts(b, bits >> 31 ? "-__builtin_inff()" : "__builtin_inff()");
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)v);
        if (digits == 9 || strtof(text, NULL) == v)
            break;
    }
    put_decimal(b, text, "f");
}

static void put_f64(Buf *b, uint64_t bits)
{
    double v;
    char   text[40];
    memcpy(&v, &bits, sizeof v);
    if ((bits >> 52 & 0x7ff) == 0x7ff) {
        if (bits << 12)
            put_nan(b, bits, 52, bits >> 63, "");
        else
            buf_puts(b, bits >> 63 ? "-__builtin_inf()" : "__builtin_inf()");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (digits == 17 || strtod(text, NULL) == v)
            break;
    }
    put_decimal(b, text, "");
}

static uint64_t bits_at(const void *data, int bytes, int64_t k)
{
    uint64_t v = 0;
    memcpy(&v, (const char *)data + k * bytes, (size_t)bytes);
    return v;
}

static void put_s64(Buf *b, int64_t v)
{
    if (v == INT64_MIN)
        buf_puts(b, "-9223372036854775807 - 1");
    else
        buf_printf(b, "%lld", (long long)v);
}

static void put_element(Buf *b, Type t, const void *data, int64_t k)
{
    int      bytes = type_bytes(t);
    uint64_t bits = bits_at(data, bytes, k);
    if (t == TYPE_F32)
        put_f32(b, (uint32_t)bits);
    else if (t == TYPE_F64)
        put_f64(b, bits);
    else if (type_is_signed_int(t))
        put_s64(b, (int64_t)(bits << (64 - 8 * bytes)) >> (64 - 8 * bytes));
    else if (type_is_float(t))
        buf_printf(b, "0x%0*llx", 2 * bytes, (unsigned long long)bits);
    else
        buf_printf(b, bits > INT64_MAX ? "%lluu" : "%llu", (unsigned long long)bits);
}

/* ---- arrays ---- */

/* What C keeps the elements in: complex numbers are pairs, floats without a C type are their bits. */
static const char *storage(Type t)
{
    static const char *const ints[2][9] = { { 0, "uint8_t", "uint16_t", 0, "uint32_t", 0, 0, 0, "uint64_t" },
                                            { 0, "int8_t", "int16_t", 0, "int32_t", 0, 0, 0, "int64_t" } };
    if (t == TYPE_F32 || t == TYPE_C64)
        return "float";
    if (t == TYPE_F64 || t == TYPE_C128)
        return "double";
    return ints[type_is_signed_int(t)][type_bytes(t)];
}

static void put_elements(Buf *b, Type t, const void *data, int64_t n)
{
    size_t line = b->n;
    buf_puts(b, "\n    ");
    for (int64_t k = 0; k < n; k++) {
        if (b->n - line > LINE) {
            line = b->n;
            buf_puts(b, "\n    ");
        }
        put_element(b, t, data, k);
        buf_puts(b, k + 1 < n ? ", " : "\n");
    }
}

static bool all_bits_zero(const char *p, int64_t bytes)
{
    for (int64_t k = 0; k < bytes; k++)
        if (p[k])
            return false;
    return true;
}

static void put_array(Buf *b, const Constant *c)
{
    Arena      *a = arena_new();
    const void *data = memory_order(a, c);
    bool        complex = type_is_complex(c->shape->type);
    Type        t = type_component(c->shape->type);
    int64_t     n = c->literal->count * (complex ? 2 : 1);
    buf_printf(b, "static const %s %s[%lld] __attribute__((aligned(%d)))", storage(t), c->name, (long long)(n > 0 ? n : 1), PROGRAM_ALIGN);
    if (n == 0 || all_bits_zero(data, c->bytes)) {
        buf_puts(b, " = { 0 };");
    } else if (n > 16 && !complex && literal_all_equal_bits(c->literal)) {
        buf_printf(b, " = { [0 ... %lld] = ", (long long)n - 1);
        put_element(b, t, data, 0);
        buf_puts(b, " };");
    } else {
        buf_puts(b, " = {");
        put_elements(b, t, data, n);
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
        ok = put(to, memory_order(order, c), (size_t)c->bytes) && put(to, zeros, (size_t)(align_up(c->bytes) - c->bytes));
        arena_free(order);
    }
    arena_free(a);
    return ok;
}
