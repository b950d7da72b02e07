/* The .safetensors format.
 *
 *   length of the header (8 bytes, little endian), header (JSON), data
 *   header: {"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}, ...} and blanks
 *
 * Offsets count from the end of the header; sorted, they cover the data without gap or overlap. Values are little endian and row-major,
 * an empty shape is a scalar. The metadata says nothing about the arrays and is dropped.
 * Source: the format's page (huggingface.co/docs/safetensors) and its reader, safetensors/src/tensor.rs, version 0.7. */
#include "config.h"

#include "data/npz.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/host.h"

enum { MAX_HEADER = 100000000, MAX_RANK = 64, LENGTH = 8, ALIGN = 64 };
#define MAX_SIZE (INT64_C(1) << 53) /* JSON's numbers are doubles here */

/* The format's types by our names for them. It does not say how values below 8 bits are packed: here one follows the other, low bits first, which is
 * how those who write F4 do it. */
static const struct {
    const char *name;
    Type        type;
} dtypes[] = {
    { "BOOL", TYPE_PRED },
    { "I8", TYPE_S8 },
    { "I16", TYPE_S16 },
    { "I32", TYPE_S32 },
    { "I64", TYPE_S64 },
    { "U8", TYPE_U8 },
    { "U16", TYPE_U16 },
    { "U32", TYPE_U32 },
    { "U64", TYPE_U64 },
    { "F4", TYPE_F4E2M1FN },
    { "F6_E2M3", TYPE_F6E2M3FN },
    { "F6_E3M2", TYPE_F6E3M2FN },
    { "F8_E4M3", TYPE_F8E4M3FN },
    { "F8_E5M2", TYPE_F8E5M2 },
    { "F8_E8M0", TYPE_F8E8M0FNU },
    { "F8_E4M3FNUZ", TYPE_F8E4M3FNUZ },
    { "F8_E5M2FNUZ", TYPE_F8E5M2FNUZ },
    { "F16", TYPE_F16 },
    { "BF16", TYPE_BF16 },
    { "F32", TYPE_F32 },
    { "F64", TYPE_F64 },
    { "C64", TYPE_C64 },
};

enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

/* Reading. */

typedef struct Reader {
    Arena         *arena;
    const char    *path;
    const uint8_t *data; /* behind the header */
    int64_t        size;
    Diag          *diag;
} Reader;

typedef struct Tensor {
    NpyArray array;
    int64_t  begin, end;
} Tensor;

static bool damaged(const Reader *r, const char *what)
{
    diag_error(r->diag, LOC_NONE, "%s: damaged .safetensors file: %s", r->path, what);
    return false;
}

static bool tensor_error(const Reader *r, const Tensor *t, const char *what)
{
    diag_error(r->diag, LOC_NONE, "%s: tensor '%s' %s", r->path, t->array.name, what);
    return false;
}

/* The bytes of the UTF-8 character at p; 0 when it is none (too long a form, a surrogate, beyond the last one). */
static size_t character(const uint8_t *p, size_t n)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t   bytes = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    uint32_t c = bytes > 1 ? p[0] & (0x7fu >> bytes) : p[0];
    if (!bytes || bytes > n)
        return 0;
    for (size_t k = 1; k < bytes; k++) {
        if (p[k] >> 6 != 2)
            return 0;
        c = c << 6 | (p[k] & 0x3f);
    }
    return c < least[bytes] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : bytes;
}

static bool is_utf8(const uint8_t *p, size_t n)
{
    for (size_t k = 0, bytes; k < n; k += bytes)
        if (!(bytes = character(p + k, n - k)))
            return false;
    return true;
}

/* A NUL byte, or \u0000 in a string: cJSON's strings would end there. */
static bool has_nul(const char *p, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (!p[k] || (p[k] == '\\' && n - k > 5 && !memcmp(p + k, "\\u0000", 6)))
            return true;
        k += p[k] == '\\'; /* what is escaped begins no escape */
    }
    return false;
}

/* Only white space from p on; text ends with a NUL byte. */
static bool is_blank(const char *p)
{
    return !p[strspn(p, " \t\r\n")];
}

/* A number that is a size. */
static bool read_size(const cJSON *x, int64_t *out)
{
    double v = cJSON_IsNumber(x) ? x->valuedouble : -1;
    if (!(v >= 0 && v < (double)MAX_SIZE) || v != floor(v))
        return false;
    *out = (int64_t)v;
    return true;
}

/* Each value gets a byte. The whole ends with a byte, so the second one of a value that crosses a border is there. */
static const void *unpack(Arena *a, const uint8_t *p, int64_t count, int bits)
{
    uint8_t *out = arena_array(a, count, 1);
    for (int64_t k = 0; k < count; k++) {
        int64_t  at = k * bits;
        unsigned low = (unsigned)p[at / 8] >> at % 8, high = at % 8 + bits > 8 ? (unsigned)p[at / 8 + 1] << (8 - at % 8) : 0;
        out[k] = (uint8_t)((low | high) & ((1u << bits) - 1));
    }
    return out;
}

static bool read_dtype(const Reader *r, Tensor *t, const cJSON *x, Type *type)
{
    for (int k = 0; cJSON_IsString(x) && k < N_DTYPES; k++)
        if (!strcmp(dtypes[k].name, x->valuestring)) {
            *type = dtypes[k].type;
            return true;
        }
    return tensor_error(r, t, cJSON_IsString(x) ? arena_printf(r->arena, "has the type '%.40s', which cannot be read", x->valuestring)
                                                : "has no dtype that is a string");
}

static bool read_shape(const Reader *r, Tensor *t, const cJSON *list)
{
    int64_t dims[MAX_RANK];
    int32_t rank = 0;
    if (!cJSON_IsArray(list))
        return tensor_error(r, t, "has no shape that is an array");
    for (const cJSON *x = list->child; x; x = x->next, rank++)
        if (rank == MAX_RANK || !read_size(x, &dims[rank]))
            return tensor_error(r, t, rank == MAX_RANK ? "has more than 64 dimensions" : "has a shape that is not of sizes");
    t->array.rank = rank;
    t->array.dims = arena_copy(r->arena, dims, (size_t)rank * sizeof *dims);
    return true;
}

static bool read_offsets(const Reader *r, Tensor *t, const cJSON *x)
{
    const cJSON *first = cJSON_IsArray(x) ? x->child : NULL, *second = first ? first->next : NULL;
    if (!second || second->next || !read_size(first, &t->begin) || !read_size(second, &t->end) || t->begin > t->end)
        return tensor_error(r, t, "has no data_offsets [begin, end]");
    return t->end <= r->size || tensor_error(r, t, "lies beyond the end of the file");
}

/* count from the dimensions, and what that takes in the file: what the offsets must enclose. */
static bool check_size(const Reader *r, Tensor *t, Type type)
{
    int64_t count = 1, bits = type_bits(type), zero = 1;
    for (int32_t k = 0; k < t->array.rank; k++)
        zero = t->array.dims[k] ? zero : 0;
    for (int32_t k = 0; zero && k < t->array.rank; k++)
        if (!size_mul(count, t->array.dims[k], &count))
            return tensor_error(r, t, "has a size that overflows");
    t->array.count = zero ? count : 0;
    if (!size_mul(t->array.count, bits, &bits))
        return tensor_error(r, t, "has a size that overflows");
    if (bits % 8)
        return tensor_error(r, t, "ends within a byte");
    if (bits / 8 != t->end - t->begin)
        return tensor_error(r, t, arena_printf(r->arena, "needs %lld bytes, its offsets enclose %lld", (long long)(bits / 8),
                                               (long long)(t->end - t->begin)));
    t->array.bytes = type_bytes(type);
    t->array.size = (size_t)t->array.count * (size_t)t->array.bytes;
    return true;
}

static bool read_tensor(const Reader *r, Tensor *t, const cJSON *o)
{
    const cJSON *dtype = NULL, *shape = NULL, *offsets = NULL;
    t->array.name = arena_strndup(r->arena, o->string, strlen(o->string));
    if (!cJSON_IsObject(o))
        return tensor_error(r, t, "is not described by an object");
    for (const cJSON *x = o->child; x; x = x->next) {
        const cJSON **to = !strcmp(x->string, "dtype") ? &dtype : !strcmp(x->string, "shape") ? &shape
                           : !strcmp(x->string, "data_offsets") ? &offsets : NULL;
        if (!to || *to)
            return tensor_error(r, t, arena_printf(r->arena, to ? "has '%.40s' twice" : "has a '%.40s', which is not known", x->string));
        *to = x;
    }
    Type type;
    if (!read_dtype(r, t, dtype, &type) || !read_shape(r, t, shape) || !read_offsets(r, t, offsets) || !check_size(r, t, type))
        return false;
    t->array.kind = npy_kind(type);
    t->array.is = type_is_float(type) && t->array.kind == 'u' ? &type_info[type] : NULL;
    t->array.data = r->data + t->begin;
    if (type_bits(type) < 8)
        t->array.data = unpack(r->arena, t->array.data, t->array.count, type_bits(type));
    return true;
}

static int by_offset(const void *x, const void *y)
{
    const Tensor *a = *(const Tensor *const *)x, *b = *(const Tensor *const *)y;
    int64_t first = a->begin != b->begin ? a->begin : a->end, second = a->begin != b->begin ? b->begin : b->end;
    return (first > second) - (first < second);
}

/* Every byte of the data belongs to one tensor. */
static bool check_cover(const Reader *r, int32_t n, const Tensor *v)
{
    const Tensor **order = ARENA_ARRAY(r->arena, const Tensor *, n);
    int64_t        at = 0;
    for (int32_t k = 0; k < n; k++)
        order[k] = &v[k];
    if (n)
        qsort(order, (size_t)n, sizeof *order, by_offset);
    for (int32_t k = 0; k < n; at = order[k++]->end)
        if (order[k]->begin != at)
            return tensor_error(r, order[k], order[k]->begin < at ? "overlaps another one" : "leaves a gap before it");
    return at == r->size || damaged(r, "there is more data than the tensors have");
}

static bool read_metadata(const Reader *r, const cJSON *o)
{
    if (!cJSON_IsObject(o))
        return damaged(r, "__metadata__ is no object");
    for (const cJSON *x = o->child; x; x = x->next)
        if (!cJSON_IsString(x))
            return damaged(r, "__metadata__ holds what is no string");
    return true;
}

static bool read_root(const Reader *r, const cJSON *root, ArrayFile *f)
{
    Tensor *v = ARENA_ARRAY(r->arena, Tensor, cJSON_GetArraySize(root));
    bool    metadata = false;
    int32_t n = 0;
    for (const cJSON *x = root->child; x; x = x->next) {
        bool is_metadata = !strcmp(x->string, "__metadata__");
        if (is_metadata && metadata)
            return damaged(r, "__metadata__ is there twice");
        metadata |= is_metadata;
        if (is_metadata ? !read_metadata(r, x) : !read_tensor(r, &v[n++], x))
            return false;
    }
    NpyArray *arrays = ARENA_ARRAY(r->arena, NpyArray, n);
    for (int32_t k = 0; k < n; k++)
        arrays[k] = v[k].array;
    f->v = arrays;
    f->n = n;
    return check_cover(r, n, v);
}

bool safetensors_looks(const uint8_t *p, size_t n)
{
    return n > LENGTH && !p[4] && !p[5] && !p[6] && !p[7] && p[LENGTH] == '{';
}

bool safetensors_parse(Arena *a, const uint8_t *p, size_t n, ArrayFile *f, Diag *d)
{
    Reader   r = { .arena = a, .path = f->path, .diag = d };
    uint64_t size = 0;
    for (size_t k = LENGTH; n >= LENGTH && k--;)
        size = size << 8 | p[k];
    if (size > MAX_HEADER)
        return damaged(&r, "the header claims more than 100000000 bytes");
    if (n < LENGTH || size > n - LENGTH)
        return damaged(&r, "the header is cut off");
    r.data = p + LENGTH + size;
    r.size = (int64_t)(n - LENGTH - size);
    p += LENGTH;
    if (!size || *p != '{')
        return damaged(&r, "the header does not begin with '{'");
    if (!is_utf8(p, size) || has_nul((const char *)p, size))
        return damaged(&r, "the header is no text in UTF-8, or has a NUL in it");
    Buf         text = { 0 };
    const char *end = NULL;
    buf_put(&text, p, size); /* with a NUL behind it, at which cJSON stops */
    cJSON *root = cJSON_ParseWithLengthOpts(text.p, text.n, &end, false);
    bool   ok = cJSON_IsObject(root) && is_blank(end) ? read_root(&r, root, f) : damaged(&r, "the header is no JSON object");
    cJSON_Delete(root);
    buf_free(&text);
    return ok;
}

/* Writing. */

/* The name that the file has for t; NULL: none. Types below 8 bits and floats without a name are written as bytes, one value each. */
static const char *dtype_name(Type t)
{
    if (type_bits(t) < 8)
        return npy_kind(t) == 'i' ? "I8" : "U8";
    for (int k = 0; k < N_DTYPES; k++)
        if (dtypes[k].type == t)
            return dtypes[k].name;
    return type_bits(t) == 8 ? "U8" : NULL;
}

static void put_string(Buf *b, const char *s)
{
    buf_putc(b, '"');
    for (; *s; s++) {
        if ((unsigned char)*s < ' ')
            buf_printf(b, "\\u%04x", (unsigned)*s);
        else
            buf_printf(b, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    }
    buf_putc(b, '"');
}

/* "w":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]} */
static void put_tensor(Buf *b, const char *name, const Literal *l, int64_t begin)
{
    put_string(b, name);
    buf_printf(b, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(l->type));
    for (int32_t i = 0; i < l->rank; i++)
        buf_printf(b, i ? ",%lld" : "%lld", (long long)l->dims[i]);
    buf_printf(b, "],\"data_offsets\":[%lld,%lld]}", (long long)begin, (long long)(begin + literal_bytes(l)));
}

/* Empty arrays may have dimensions that a double does not hold, and so no reader of JSON need. */
static bool has_wide_dimension(const Literal *l)
{
    for (int32_t k = 0; k < l->rank; k++)
        if (l->dims[k] >= MAX_SIZE)
            return true;
    return false;
}

static bool check_writable(int32_t n, const char *const *names, Literal *const *values, Diag *d)
{
    for (int32_t k = 0; k < n; k++) {
        if (!dtype_name(values[k]->type)) {
            diag_error(d, LOC_NONE, "%s: a .safetensors file has no type for %s (an .npz file has)", names[k], type_name(values[k]->type));
            return false;
        }
        if (has_wide_dimension(values[k]) || values[k]->rank > MAX_RANK) {
            diag_error(d, LOC_NONE, "%s: a .safetensors file is written with up to 64 dimensions below 2^53", names[k]);
            return false;
        }
    }
    return true;
}

bool safetensors_header(Buf *b, int32_t n, const char *const *names, Literal *const *values, Diag *d)
{
    int64_t at = 0;
    if (!check_writable(n, names, values, d))
        return false;
    for (int k = 0; k < LENGTH; k++)
        buf_putc(b, 0);
    buf_putc(b, '{');
    for (int32_t k = 0; k < n; at += literal_bytes(values[k++])) {
        if (k)
            buf_putc(b, ',');
        put_tensor(b, names[k], values[k], at);
    }
    buf_putc(b, '}');
    while (b->n % ALIGN)
        buf_putc(b, ' ');
    uint64_t size = b->n - LENGTH;
    for (int k = 0; k < LENGTH; k++)
        b->p[k] = (char)(size >> 8 * k);
    if (size > MAX_HEADER)
        diag_error(d, LOC_NONE, "so many arrays need a header of more than 100000000 bytes, which a .safetensors file cannot have");
    return size <= MAX_HEADER;
}
