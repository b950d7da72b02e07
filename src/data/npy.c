/* The .npy format, versions 1 to 3.
 *
 *   "\x93NUMPY" major minor, length of the header (2 bytes, from version 2 on 4), header, data
 *   header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and blanks
 *
 * The header is a Python literal; here it is read by a small scanner that knows strings, booleans and tuples of numbers, in any
 * order of the keys. Source: numpy/lib/format.py. */
#include "config.h"

#include "data/npz.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/host.h"

enum { MAX_RANK = 64 };

typedef struct Scanner {
    const char *p, *end;
} Scanner;

static void skip_space(Scanner *s)
{
    while (s->p < s->end && isspace((unsigned char)*s->p))
        s->p++;
}

static bool accept(Scanner *s, char c)
{
    skip_space(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

/* 'text' or "text" of at most size - 1 bytes, without escapes. A u or b in front is Python's. */
static bool scan_string(Scanner *s, char *out, size_t size)
{
    skip_space(s);
    if (s->p < s->end && (*s->p == 'u' || *s->p == 'b'))
        s->p++;
    if (s->p == s->end || (*s->p != '\'' && *s->p != '"'))
        return false;
    char   quote = *s->p++;
    size_t n = 0;
    while (s->p < s->end && *s->p != quote) {
        if (*s->p == '\\' || n + 1 >= size)
            return false;
        out[n++] = *s->p++;
    }
    out[n] = 0;
    return s->p < s->end && *s->p++ == quote;
}

static bool scan_word(Scanner *s, const char *word)
{
    skip_space(s);
    size_t n = strlen(word);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return false;
    s->p += n;
    return true;
}

static bool scan_size(Scanner *s, int64_t *out)
{
    skip_space(s);
    if (s->p == s->end || !isdigit((unsigned char)*s->p))
        return false;
    int64_t v = 0;
    while (s->p < s->end && isdigit((unsigned char)*s->p))
        if (!size_mul(v, 10, &v) || !size_add(v, *s->p++ - '0', &v))
            return false;
    if (s->p < s->end && *s->p == 'L') /* Python 2 */
        s->p++;
    *out = v;
    return true;
}

/* (), (3,), (3, 4) */
static bool scan_dims(Scanner *s, int64_t *dims, int32_t *rank)
{
    *rank = 0;
    if (!accept(s, '('))
        return false;
    while (!accept(s, ')')) {
        if (*rank == MAX_RANK || !scan_size(s, &dims[*rank]))
            return false;
        ++*rank;
        if (!accept(s, ','))
            return accept(s, ')');
    }
    return true;
}

typedef struct Header {
    char    order; /* < > = | */
    char    kind;
    int     bytes;
    bool    fortran;
    int32_t rank;
    int64_t dims[MAX_RANK];
} Header;

static bool is_stored_kind(char kind, int bytes)
{
    bool power = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    switch (kind) {
    case 'b': return bytes == 1;
    case 'i': case 'u': return power;
    case 'f': return bytes == 2 || bytes == 4 || bytes == 8;
    case 'c': return bytes == 8 || bytes == 16;
    case 'V': return power || bytes == 16;
    default: return false;
    }
}

/* "<f4": byte order, kind, bytes. */
static bool read_descr(const char *t, Header *h)
{
    h->order = '=';
    if (*t && strchr("<>=|", *t))
        h->order = *t++;
    if (*t == '?' && !t[1]) {
        h->kind = 'b';
        h->bytes = 1;
        return true;
    }
    h->kind = *t;
    if (!*t || !isdigit((unsigned char)t[1]))
        return false;
    char *end;
    long  bytes = strtol(t + 1, &end, 10);
    h->bytes = bytes > 16 ? 17 : (int)bytes;
    return !*end && is_stored_kind(h->kind, h->bytes);
}

static bool header_error(Diag *d, const char *what, const char *text)
{
    diag_error(d, LOC_NONE, "%s: %s", what, text);
    return false;
}

static bool scan_descr(Scanner *s, Header *h, const char *what, Diag *d)
{
    char text[64];
    if (!scan_string(s, text, sizeof text))
        return header_error(d, what, "its type is not one that an array element can have (a structured type?)");
    if (read_descr(text, h))
        return true;
    diag_error(d, LOC_NONE,
               "%s: arrays of type '%.63s' cannot be read (bool, integers, floats up to 64 bits, complex, V1 and V2 can)", what,
               text);
    return false;
}

static bool scan_header(Scanner *s, Header *h, const char *what, Diag *d)
{
    const char *damaged = "damaged .npy header";
    char        key[32];
    bool        descr = false, order = false, shape = false;
    if (!accept(s, '{'))
        return header_error(d, what, damaged);
    while (!accept(s, '}')) {
        if (!scan_string(s, key, sizeof key) || !accept(s, ':'))
            return header_error(d, what, damaged);
        if (!strcmp(key, "descr") && !descr) {
            descr = true;
            if (!scan_descr(s, h, what, d))
                return false;
        } else if (!strcmp(key, "fortran_order") && !order) {
            order = true;
            h->fortran = scan_word(s, "True");
            if (!h->fortran && !scan_word(s, "False"))
                return header_error(d, what, damaged);
        } else if (!strcmp(key, "shape") && !shape) {
            shape = true;
            if (!scan_dims(s, h->dims, &h->rank))
                return header_error(d, what, damaged);
        } else {
            return header_error(d, what, damaged);
        }
        if (!accept(s, ',')) {
            if (!accept(s, '}'))
                return header_error(d, what, damaged);
            break;
        }
    }
    skip_space(s);
    return (descr && order && shape && s->p == s->end) || header_error(d, what, damaged);
}

/* The bytes of each element (of each half of a complex one) reversed, in place. */
static void swap_bytes(uint8_t *p, size_t size, int bytes, char kind)
{
    size_t unit = (size_t)(kind == 'c' ? bytes / 2 : bytes);
    for (size_t i = 0; i + unit <= size; i += unit)
        for (size_t k = 0; k < unit / 2; k++) {
            uint8_t t = p[i + k];
            p[i + k] = p[i + unit - 1 - k];
            p[i + unit - 1 - k] = t;
        }
}

/* out[i0, i1, ...] row-major from in, in which the first index runs fastest. */
static void from_fortran(uint8_t *out, const uint8_t *in, const NpyArray *x)
{
    int64_t index[MAX_RANK] = { 0 }, stride[MAX_RANK], step = x->bytes, at = 0;
    for (int32_t k = 0; k < x->rank; k++) {
        stride[k] = step;
        step *= x->dims[k];
    }
    for (int64_t n = 0; n < x->count; n++) {
        memcpy(out + n * x->bytes, in + at, (size_t)x->bytes);
        for (int32_t k = x->rank - 1; k >= 0; k--) {
            at += stride[k];
            if (++index[k] < x->dims[k])
                break;
            at -= stride[k] * x->dims[k];
            index[k] = 0;
        }
    }
}

static uint8_t *block(Arena *a, size_t n)
{
    uint8_t *p = aligned_alloc(64, (n + 64) / 64 * 64);
    if (!p)
        die_out_of_memory("array");
    arena_defer(a, free, p);
    return p;
}

static bool convert(Arena *a, const Header *h, NpyArray *x)
{
    if (h->order == '>' && x->bytes > 1 && x->kind != 'V') {
        uint8_t *copy = block(a, x->size);
        memcpy(copy, x->data, x->size);
        swap_bytes(copy, x->size, x->bytes, x->kind);
        x->data = copy;
    }
    if (h->fortran && x->rank > 1 && x->count > 1) {
        uint8_t *copy = block(a, x->size);
        from_fortran(copy, x->data, x);
        x->data = copy;
    }
    return true;
}

/* The header's text: s. The size of everything before the data, 0 when it is cut off. */
static size_t find_header(const uint8_t *p, size_t n, Scanner *s)
{
    size_t wide = n > 8 && p[6] >= 2 ? 4 : 2, size = 0;
    if (n < 8 + wide)
        return 0;
    for (size_t k = wide; k--;)
        size = size << 8 | p[8 + k];
    if (size > n - 8 - wide)
        return 0;
    s->p = (const char *)p + 8 + wide;
    s->end = s->p + size;
    return 8 + wide + size;
}

bool npy_parse(Arena *a, const uint8_t *p, size_t held, size_t n, const char *what, NpyArray *out, Diag *d)
{
    if (held < 8 || memcmp(p, "\x93NUMPY", 6) != 0)
        return header_error(d, what, "not an array (a .npy file starts with \"\\x93NUMPY\")");
    if (p[6] < 1 || p[6] > 3) {
        diag_error(d, LOC_NONE, "%s: .npy version %d.%d; versions 1 to 3 are read", what, p[6], p[7]);
        return false;
    }
    Scanner s;
    size_t  start = find_header(p, held, &s);
    if (!start)
        return header_error(d, what, "the .npy header is cut off");
    Header h = { .rank = 0 };
    if (!scan_header(&s, &h, what, d))
        return false;
    *out = (NpyArray){ .kind = h.kind, .bytes = h.bytes, .rank = h.rank, .data = p + start, .count = 1 };
    out->dims = arena_copy(a, h.dims, (size_t)h.rank * sizeof *h.dims);
    int64_t size = h.bytes, zero = 1;
    for (int32_t k = 0; k < h.rank; k++)
        zero = h.dims[k] ? zero : 0;
    for (int32_t k = 0; zero && k < h.rank; k++)
        if (!size_mul(size, h.dims[k], &size))
            return header_error(d, what, "the product of its sizes overflows");
    out->size = zero ? (size_t)size : 0;
    out->count = (int64_t)out->size / h.bytes;
    if (out->size != n - start) {
        diag_error(d, LOC_NONE, "%s: %s needs %zu bytes of data, the file has %zu", what, array_text(a, out), out->size, n - start);
        return false;
    }
    if (held < n)
        out->data = NULL;
    return held < n || convert(a, &h, out);
}

char npy_kind(Type t)
{
    switch (type_info[t].cls) {
    case CLASS_BOOLEAN: return 'b';
    case CLASS_SIGNED: return 'i';
    case CLASS_UNSIGNED: return 'u';
    case CLASS_COMPLEX: return 'c';
    case CLASS_FLOAT: return t == TYPE_F16 || t == TYPE_F32 || t == TYPE_F64 ? 'f' : 'u';
    case CLASS_TOKEN: case CLASS_OPAQUE: case CLASS_TUPLE: break;
    }
    die("no array type: %s", type_name(t));
}

void npy_header(Buf *b, const Literal *l)
{
    Buf text = { 0 };
    int bytes = type_bytes(l->type);
    buf_printf(&text, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (", bytes == 1 ? '|' : '<', npy_kind(l->type), bytes);
    for (int32_t k = 0; k < l->rank; k++)
        buf_printf(&text, k ? " %lld," : "%lld,", (long long)l->dims[k]);
    if (l->rank > 1) { /* only a tuple of one keeps its comma */
        text.n--;
        text.p[text.n] = 0;
    }
    buf_puts(&text, "), }");
    bool   wide = text.n + 64 > 0xffff;
    size_t before = wide ? 12 : 10, size = (before + text.n + 1 + 63) / 64 * 64 - before;
    while (text.n < size - 1)
        buf_putc(&text, ' ');
    buf_putc(&text, '\n');
    buf_put(b, wide ? "\x93NUMPY\2" : "\x93NUMPY\1", 7);
    buf_putc(b, 0);
    for (size_t k = 0; k < before - 8; k++)
        buf_putc(b, (char)(size >> 8 * k));
    buf_put(b, text.p, text.n);
    buf_free(&text);
}

const char *npy_type_text(char kind, int bytes)
{
    static const struct { char kind; int bytes; const char *text; } names[] = {
        { 'b', 1, "bool" },     { 'i', 1, "int8" },      { 'i', 2, "int16" },    { 'i', 4, "int32" },   { 'i', 8, "int64" },
        { 'u', 1, "uint8" },    { 'u', 2, "uint16" },    { 'u', 4, "uint32" },   { 'u', 8, "uint64" },  { 'f', 2, "float16" },
        { 'f', 4, "float32" },  { 'f', 8, "float64" },   { 'c', 8, "complex64" }, { 'c', 16, "complex128" },
        { 'V', 1, "V1" },       { 'V', 2, "V2" },        { 'V', 4, "V4" },       { 'V', 8, "V8" },      { 'V', 16, "V16" },
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].kind == kind && names[k].bytes == bytes)
            return names[k].text;
    return "unknown type";
}

char *array_text(Arena *a, const NpyArray *x)
{
    Buf b = { 0 };
    buf_printf(&b, "%s (", x->is ? x->is->text : npy_type_text(x->kind, x->bytes));
    for (int32_t k = 0; k < x->rank; k++)
        buf_printf(&b, k ? ", %lld" : "%lld", (long long)x->dims[k]);
    buf_puts(&b, x->rank == 1 ? ",)" : ")");
    char *text = arena_strndup(a, b.p, b.n);
    buf_free(&b);
    return text;
}
