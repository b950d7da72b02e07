/* .safetensors: files as the format's page describes them are read, every lie in one is named, what is written is read back. */
#include "config.h"

#include "data/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"

static char path[80];

static void write_file(const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f)) {
        perror(path);
        exit(2);
    }
}

/* The length that the file states, the header, n bytes of data: 0, 1, 2, ... */
static const ArrayFile *read_text(Arena *a, uint64_t length, const char *header, size_t n, Diag *d)
{
    Buf b = { 0 };
    for (int k = 0; k < 8; k++)
        buf_putc(&b, (char)(length >> 8 * k));
    buf_puts(&b, header);
    for (size_t k = 0; k < n; k++)
        buf_putc(&b, (char)k);
    write_file(b.p, b.n);
    buf_free(&b);
    diag_init(d, a);
    return array_file_read(a, path, ARRAY_ANY, d);
}

static void check_refused(Arena *a, uint64_t length, const char *header, size_t n, const char *error)
{
    Diag d;
    bool read = read_text(a, length, header, n, &d) != NULL;
    if (read || !strstr(d.first->text, error))
        fprintf(stderr, "%s: got %s, not %s\n", header, read ? "no error" : d.first->text, error);
    CHECK(!read && strstr(d.first->text, error));
}

static void test_types(Arena *a)
{
    static const struct { const char *dtype; Type type; } rows[] = {
        { "BOOL", TYPE_PRED }, { "I8", TYPE_S8 },  { "I16", TYPE_S16 }, { "I32", TYPE_S32 }, { "I64", TYPE_S64 },
        { "U8", TYPE_U8 },     { "U16", TYPE_U16 }, { "U32", TYPE_U32 }, { "U64", TYPE_U64 }, { "F16", TYPE_F16 },
        { "BF16", TYPE_BF16 }, { "F32", TYPE_F32 }, { "F64", TYPE_F64 }, { "C64", TYPE_C64 },
        { "F8_E4M3", TYPE_F8E4M3FN }, { "F8_E5M2", TYPE_F8E5M2 }, { "F8_E8M0", TYPE_F8E8M0FNU },
        { "F8_E4M3FNUZ", TYPE_F8E4M3FNUZ }, { "F8_E5M2FNUZ", TYPE_F8E5M2FNUZ },
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        Diag        d;
        int         bytes = type_bytes(rows[k].type);
        const char *header = arena_printf(a, "{\"x\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,%d]}}  ", rows[k].dtype, 2 * bytes);
        const ArrayFile *f = read_text(a, strlen(header), header, 2 * (size_t)bytes, &d);
        CHECK(f && f->n == 1 && !strcmp(f->v[0].name, "x"));
        for (Type t = 0; f && t < TYPE_TUPLE; t++) { /* that type and no other */
            int64_t  dims[] = { 2 };
            Literal *l = type_is_array(t) ? literal_from_array(&f->v[0], shape_array(a, t, 1, dims), "x", &d) : NULL;
            bool     stored = type_bits(t) < 8 || (type_is_float(t) && npy_kind(t) == 'u'); /* as bits, when the file says only that */
            if (t == rows[k].type)
                CHECK(l && !memcmp(l->data, (const char[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, 2 * (size_t)bytes));
            else
                CHECK(!l || (stored && !f->v[0].is));
            literal_unref(l);
        }
    }
    puts("ok types");
}

/* read_text's data are bytes 0, 1, 2, ... */
static void test_packed(Arena *a, const char *header, size_t bytes, Type t, const char *want)
{
    Diag             d;
    const ArrayFile *f = read_text(a, strlen(header), header, bytes, &d);
    int64_t          dims[] = { 4 };
    Literal         *l = f ? literal_from_array(&f->v[0], shape_array(a, t, 1, dims), "x", &d) : NULL;
    CHECK(l && !memcmp(l->data, want, 4));
    literal_unref(l);
}


#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}"

static void test_layout(Arena *a)
{
    Diag d;
    const char *header = "{\"b\":" T("I16", "", "4,6") ",\"__metadata__\":{\"format\":\"pt\",\"arg9\":\"\"},\"\":" T("U8", "0,3", "4,4") ",\"a\":"
                         T("U8", "4,1", "0,4") "}\n";
    const ArrayFile *f = read_text(a, strlen(header), header, 6, &d);
    CHECK(f && f->n == 3 && !f->npy);
    const NpyArray *b = f ? array_file_find(f, "b") : NULL, *none = f ? array_file_find(f, "") : NULL;
    CHECK(b && b->rank == 0 && b->count == 1 && !memcmp(b->data, "\4\5", 2)); /* a scalar, not in the order of the text */
    CHECK(none && none->rank == 2 && none->count == 0 && none->size == 0);
    CHECK(f && !array_file_find(f, "__metadata__"));
    CHECK((f = read_text(a, 2, "{}", 0, &d)) && f->n == 0); /* no tensors, no data */
    CHECK((f = read_text(a, 0x4b50, arena_printf(a, "{%*s}", 0x4b50 - 2, ""), 0, &d)) && f->n == 0); /* "PK", as an archive begins */
    puts("ok layout");
}

static void test_lies(Arena *a)
{
    static const struct { const char *header; size_t n; const char *error; } bad[] = {
        { "{\"x\":" T("F32", "2", "0,8") "}", 7, "beyond the end" },
        { "{\"x\":" T("F32", "2", "0,8") "}", 9, "more data than the tensors" },
        { "{}", 1, "more data than the tensors" },
        { "{\"x\":" T("F32", "2", "1,9") "}", 9, "'x' leaves a gap" },
        { "{\"x\":" T("F32", "1", "0,4") ",\"y\":" T("F32", "1", "2,6") "}", 6, "'y' overlaps" },
        { "{\"x\":" T("F32", "1", "0,4") ",\"y\":" T("F32", "1", "0,4") "}", 4, "overlaps" },
        { "{\"x\":" T("F32", "1", "0,4") ",\"y\":" T("F32", "0", "2,2") "}", 4, "'y' overlaps" },
        { "{\"x\":" T("F32", "1", "0,4") ",\"y\":" T("F32", "1", "5,9") "}", 9, "'y' leaves a gap" },
        { "{\"x\":" T("F32", "1", "0,4") ",\"x\":" T("F32", "1", "4,8") "}", 8, "two members are named 'x'" },
        { "{\"x\":" T("F32", "2", "0,4") "}", 4, "needs 8 bytes, its offsets enclose 4" },
        { "{\"x\":" T("F4", "3", "0,2") "}", 2, "ends within a byte" },
        { "{\"x\":" T("F6_E2M3", "3", "0,3") "}", 3, "ends within a byte" },
        { "{\"x\":" T("F6_E1M4", "4", "0,3") "}", 3, "has the type 'F6_E1M4', which cannot be read" },
        { "{\"x\":" T("f32", "1", "0,4") "}", 4, "has the type 'f32'" },
        { "{\"x\":" T("F32", "4294967296,4294967296", "0,0") "}", 0, "overflows" },
        { "{\"x\":" T("F64", "2305843009213693952", "0,0") "}", 0, "shape that is not of sizes" },
        { "{\"x\":" T("F64", "1152921504606846976", "0,0") "}", 0, "shape that is not of sizes" },
        { "{\"x\":" T("F32", "-1", "0,4") "}", 4, "shape that is not of sizes" },
        { "{\"x\":" T("F32", "1.5", "0,6") "}", 6, "shape that is not of sizes" },
        { "{\"x\":" T("F32", "\"1\"", "0,4") "}", 4, "shape that is not of sizes" },
        { "{\"x\":" T("F32", "1e400", "0,4") "}", 4, "shape that is not of sizes" },
        { "{\"x\":" T("F32", "1", "4,0") "}", 4, "no data_offsets" },
        { "{\"x\":" T("F32", "1", "0,4,8") "}", 4, "no data_offsets" },
        { "{\"x\":" T("F32", "1", "0") "}", 4, "no data_offsets" },
        { "{\"x\":" T("F32", "1", "") "}", 4, "no data_offsets" },
        { "{\"x\":" T("F32", "1", "-4,0") "}", 4, "no data_offsets" },
        { "{\"x\":" T("F32", "1", "0,1e18") "}", 4, "no data_offsets" },
        { "{\"x\":" T("F32", "1", "0,4000000000000") "}", 4, "beyond the end" },
        { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "no data_offsets" },
        { "{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no shape" },
        { "{\"x\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype" },
        { "{\"x\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype" },
        { "{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "has 'dtype' twice" },
        { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"strides\":[1]}}", 4, "a 'strides', which is not known" },
        { "{\"x\":[]}", 0, "is not described by an object" },
        { "{\"__metadata__\":[]}", 0, "__metadata__ is no object" },
        { "{\"__metadata__\":{\"x\":1}}", 0, "__metadata__ holds what is no string" },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ is there twice" },
        { "{\"x\\u0000y\":{}}", 0, "a NUL in it" },
        { "{\"\\\\\\u0000\":{}}", 0, "a NUL in it" },
        { "{\"\\\\u0000\":{}}", 0, "tensor '\\u0000'" }, /* an escaped backslash and no NUL */
        { "{\"\xff\":{}}", 0, "no text in UTF-8" },
        { "{\"\xc0\x80\":{}}", 0, "no text in UTF-8" },
        { "{\"\xed\xa0\x80\":{}}", 0, "no text in UTF-8" },
        { "{\"\xf4\x90\x80\x80\":{}}", 0, "no text in UTF-8" },
        { "{\"x", 0, "no JSON object" },
        { "{\"x\":1,", 0, "no JSON object" },
        { "{} x", 0, "no JSON object" },
        { "[]", 0, "does not begin with '{'" },
        { " {}", 0, "does not begin with '{'" },
        { "", 0, "does not begin with '{'" },
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        check_refused(a, strlen(bad[k].header), bad[k].header, bad[k].n, bad[k].error);
    check_refused(a, 3, "{}", 0, "the header is cut off");
    check_refused(a, 100000000, "{}", 0, "the header is cut off");
    check_refused(a, 100000001, "{}", 0, "claims more than 100000000 bytes");
    check_refused(a, UINT64_MAX, "{}", 0, "claims more than 100000000 bytes");
    Buf deep = { 0 }; /* brackets without end */
    buf_puts(&deep, "{\"x\":");
    for (int k = 0; k < 100000; k++)
        buf_putc(&deep, '[');
    check_refused(a, deep.n, deep.p, 0, "no JSON object");
    buf_free(&deep);
    Buf many = { 0 };
    for (int k = 0; k < 65; k++)
        buf_puts(&many, k ? ",1" : "1");
    check_refused(a, 320, arena_printf(a, "%-320s", arena_printf(a, "{\"x\":" T("F32", "%s", "0,4") "}", many.p)), 4, "more than 64 dimensions");
    buf_free(&many);
    write_file("{}", 2);
    Diag d;
    diag_init(&d, a);
    CHECK(!array_file_read(a, path, ARRAY_ANY, &d) && strstr(d.first->text, "the header is cut off"));
    puts("ok lies");
}

static void test_round_trip(Arena *a)
{
    Diag        d;
    Literal    *v[TYPE_COUNT];
    const char *names[TYPE_COUNT];
    int32_t     n = 0;
    int64_t     dims[] = { 3, 5 };
    diag_init(&d, a);
    for (Type t = 0; t < TYPE_TUPLE; t++)
        if (type_is_array(t) && t != TYPE_C128) {
            names[n] = arena_printf(a, "a \"%s\"\\\n", type_name(t));
            v[n] = literal_new_zero(t, 2, dims);
            for (int64_t k = 0; k < 15; k++)
                literal_set_f64(v[n], k, (double)(k % 2), 1);
            n++;
        }
    CHECK(array_file_write(a, path, n, names, v, &d));
    const ArrayFile *f = array_file_read(a, path, ARRAY_ANY, &d);
    CHECK(f && f->n == n); /* read back */
    for (int32_t k = 0; f && k < n; k++) {
        const NpyArray *x = array_file_find(f, names[k]);
        CHECK(x && (uintptr_t)x->data % (unsigned)x->bytes == 0); /* each at a multiple of its element's size */
        Literal *l = x ? literal_from_array(x, literal_shape(a, v[k]), names[k], &d) : NULL;
        CHECK(l && literal_equal(l, v[k]));
        literal_unref(l);
        literal_unref(v[k]);
    }
    v[0] = literal_new_zero(TYPE_C128, 2, dims);
    unlink(path);
    CHECK(!array_file_write(a, path, 1, names, v, &d) && strstr(d.last->text, "no type for c128") && access(path, F_OK)); /* nothing is left */
    literal_unref(v[0]);
    v[0] = literal_new_zero(TYPE_F32, 2, (const int64_t[]){ 0, INT64_C(1) << 53 });
    CHECK(!array_file_write(a, path, 1, names, v, &d) && strstr(d.last->text, "dimensions below 2^53"));
    literal_unref(v[0]);
    CHECK(array_file_write(a, path, 0, names, v, &d) && (f = array_file_read(a, path, ARRAY_ANY, &d)) && f->n == 0);
    puts("ok round trip");
}

int main(void)
{
    Arena      *a = arena_new();
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.30s/safetensors_test.%ld.safetensors", tmp ? tmp : "/tmp", (long)getpid());
    test_types(a);
    test_packed(a, "{\"x\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]}}", 2, TYPE_F4E2M1FN, "\0\0\1\0");
    test_packed(a, "{\"x\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3, TYPE_F6E2M3FN, "\0\4\40\0"); /* 0x020100 */
    test_packed(a, "{\"x\":{\"dtype\":\"F6_E3M2\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3, TYPE_F6E3M2FN, "\0\4\40\0");
    puts("ok packed");
    test_layout(a);
    test_lies(a);
    test_round_trip(a);
    arena_free(a);
    unlink(path);
    return 0;
}
