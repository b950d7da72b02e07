/* Numbers as C reads them back to the same bits: decimal for floats that C has a type for, the bit patterns of others. The order is that of memory, not
 * of the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/c_text.h"

#define LINE 100 /* columns */

/* ---- order in memory ---- */

/* The elements of c as they lie in memory; the literal's own data when that is row-major. */
const void *c_memory_order(Arena *a, const Constant *c)
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

void c_element(Buf *b, Type t, const void *data, int64_t k)
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

/* What C keeps the elements in: complex numbers are pairs, floats without a C type are their bits. */
const char *c_storage(Type t)
{
    static const char *const ints[2][9] = { { 0, "uint8_t", "uint16_t", 0, "uint32_t", 0, 0, 0, "uint64_t" },
                                            { 0, "int8_t", "int16_t", 0, "int32_t", 0, 0, 0, "int64_t" } };
    if (t == TYPE_F32 || t == TYPE_C64)
        return "float";
    if (t == TYPE_F64 || t == TYPE_C128)
        return "double";
    return ints[type_is_signed_int(t)][type_bytes(t)];
}

void c_elements(Buf *b, Type t, const void *data, int64_t n)
{
    size_t line = b->n;
    buf_puts(b, "\n    ");
    for (int64_t k = 0; k < n; k++) {
        if (b->n - line > LINE) {
            line = b->n;
            buf_puts(b, "\n    ");
        }
        c_element(b, t, data, k);
        buf_puts(b, k + 1 < n ? ", " : "\n");
    }
}

/* ---- tables that gcc misreads ---- */

/* For processors with AVX-512 gcc 12 copies what it knows in pieces of 32 and 64 bytes. A piece that is two or more equal words of 8 bytes and then nothing but the
 * sign of these is taken for equal words throughout (ix86_convert_const_wide_int_to_broadcast, seen in gcc 12.2; later ones are not trusted either). What it does not know it loads. */
const char c_table_macro[] =
    "#ifndef HLO_TABLE\n"
    "#if defined __GNUC__ && !defined __clang__ && __GNUC__ >= 12 && defined __AVX512F__ /* copies of such constants go wrong there, where they are known */\n"
    "#define HLO_TABLE __attribute__((used))\n"
    "#else\n"
    "#define HLO_TABLE const\n"
    "#endif\n"
    "#endif\n";

static uint64_t word_at(const void *data, int64_t at)
{
    uint64_t w;
    memcpy(&w, (const char *)data + at, sizeof w);
    return w;
}

const char *c_table(const void *data, int64_t bytes, int64_t element)
{
    enum { PIECE = 32, WORD = 8, MOST = 4096 /* longer copies are calls */ };
    for (int64_t at = 0; bytes <= MOST && at + PIECE <= bytes; at += element) {
        uint64_t first = word_at(data, at), sign = first >> 63 ? UINT64_MAX : 0, third = word_at(data, at + 2 * WORD), last = word_at(data, at + 3 * WORD);
        if (first != sign && word_at(data, at + WORD) == first && last == sign && (third == sign || third == first))
            return "HLO_TABLE";
    }
    return "const";
}
