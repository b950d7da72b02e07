/* Arrays: what NumPy wrote is read, what is written is read back, and damage of any kind is an error and nothing worse. */
#include "config.h"

#include "data/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "data/zip.h"
#include "support/check.h"

/* numpy.savez(f, arg0=numpy.arange(6, dtype="<f4").reshape(2, 3) / 2, arg1=numpy.array([True, False])) */
static const unsigned char numpy_savez[] = {
    80, 75, 3, 4, 45, 0, 0, 0, 0, 0, 0, 0, 33, 0, 11, 192, 176, 118, 255, 255,
    255, 255, 255, 255, 255, 255, 8, 0, 20, 0, 97, 114, 103, 48, 46, 110, 112, 121, 1, 0,
    16, 0, 152, 0, 0, 0, 0, 0, 0, 0, 152, 0, 0, 0, 0, 0, 0, 0, 147, 78,
    85, 77, 80, 89, 1, 0, 118, 0, 123, 39, 100, 101, 115, 99, 114, 39, 58, 32, 39, 60,
    102, 52, 39, 44, 32, 39, 102, 111, 114, 116, 114, 97, 110, 95, 111, 114, 100, 101, 114, 39,
    58, 32, 70, 97, 108, 115, 101, 44, 32, 39, 115, 104, 97, 112, 101, 39, 58, 32, 40, 50,
    44, 32, 51, 41, 44, 32, 125, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
    32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
    32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
    32, 32, 32, 32, 32, 10, 0, 0, 0, 0, 0, 0, 0, 63, 0, 0, 128, 63, 0, 0,
    192, 63, 0, 0, 0, 64, 0, 0, 32, 64, 80, 75, 3, 4, 45, 0, 0, 0, 0, 0,
    0, 0, 33, 0, 238, 25, 187, 93, 255, 255, 255, 255, 255, 255, 255, 255, 8, 0, 20, 0,
    97, 114, 103, 49, 46, 110, 112, 121, 1, 0, 16, 0, 130, 0, 0, 0, 0, 0, 0, 0,
    130, 0, 0, 0, 0, 0, 0, 0, 147, 78, 85, 77, 80, 89, 1, 0, 118, 0, 123, 39,
    100, 101, 115, 99, 114, 39, 58, 32, 39, 124, 98, 49, 39, 44, 32, 39, 102, 111, 114, 116,
    114, 97, 110, 95, 111, 114, 100, 101, 114, 39, 58, 32, 70, 97, 108, 115, 101, 44, 32, 39,
    115, 104, 97, 112, 101, 39, 58, 32, 40, 50, 44, 41, 44, 32, 125, 32, 32, 32, 32, 32,
    32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
    32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
    32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 10, 1, 0, 80, 75,
    1, 2, 45, 3, 45, 0, 0, 0, 0, 0, 0, 0, 33, 0, 11, 192, 176, 118, 152, 0,
    0, 0, 152, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 1,
    0, 0, 0, 0, 97, 114, 103, 48, 46, 110, 112, 121, 80, 75, 1, 2, 45, 3, 45, 0,
    0, 0, 0, 0, 0, 0, 33, 0, 238, 25, 187, 93, 130, 0, 0, 0, 130, 0, 0, 0,
    8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 1, 210, 0, 0, 0, 97, 114,
    103, 49, 46, 110, 112, 121, 80, 75, 5, 6, 0, 0, 0, 0, 2, 0, 2, 0, 108, 0,
    0, 0, 142, 1, 0, 0, 0, 0,
};

/* numpy.savez_compressed(f, numpy.arange(6, dtype=">i2").reshape(2, 3),
 *                        numpy.asfortranarray(numpy.arange(6, dtype="<i4").reshape(2, 3))) */
static const unsigned char numpy_compressed[] = {
    80, 75, 3, 4, 45, 0, 0, 0, 8, 0, 0, 0, 33, 0, 144, 188, 221, 194, 255, 255,
    255, 255, 255, 255, 255, 255, 9, 0, 20, 0, 97, 114, 114, 95, 48, 46, 110, 112, 121, 1,
    0, 16, 0, 140, 0, 0, 0, 0, 0, 0, 0, 82, 0, 0, 0, 0, 0, 0, 0, 155,
    236, 23, 234, 27, 16, 201, 200, 80, 198, 80, 173, 158, 146, 90, 156, 92, 164, 110, 165, 160,
    110, 151, 105, 164, 174, 163, 160, 158, 150, 95, 84, 82, 148, 152, 23, 159, 95, 148, 146, 10,
    18, 119, 75, 204, 41, 78, 5, 138, 23, 103, 36, 22, 164, 2, 249, 26, 70, 58, 10, 198,
    154, 58, 10, 181, 10, 100, 3, 46, 6, 6, 6, 70, 6, 38, 6, 102, 6, 22, 6, 86,
    0, 80, 75, 3, 4, 45, 0, 0, 0, 8, 0, 0, 0, 33, 0, 202, 100, 116, 226, 255,
    255, 255, 255, 255, 255, 255, 255, 9, 0, 20, 0, 97, 114, 114, 95, 49, 46, 110, 112, 121,
    1, 0, 16, 0, 152, 0, 0, 0, 0, 0, 0, 0, 84, 0, 0, 0, 0, 0, 0, 0,
    155, 236, 23, 234, 27, 16, 201, 200, 80, 198, 80, 173, 158, 146, 90, 156, 92, 164, 110, 165,
    160, 110, 147, 105, 162, 174, 163, 160, 158, 150, 95, 84, 82, 148, 152, 23, 159, 95, 148, 146,
    10, 18, 15, 41, 42, 77, 5, 10, 23, 103, 36, 22, 164, 2, 185, 26, 70, 58, 10, 198,
    154, 58, 10, 181, 10, 228, 3, 46, 6, 32, 96, 6, 98, 70, 32, 102, 1, 98, 38, 32,
    102, 5, 98, 0, 80, 75, 1, 2, 45, 3, 45, 0, 0, 0, 8, 0, 0, 0, 33, 0,
    144, 188, 221, 194, 82, 0, 0, 0, 140, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 128, 1, 0, 0, 0, 0, 97, 114, 114, 95, 48, 46, 110, 112, 121, 80,
    75, 1, 2, 45, 3, 45, 0, 0, 0, 8, 0, 0, 0, 33, 0, 202, 100, 116, 226, 84,
    0, 0, 0, 152, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128,
    1, 141, 0, 0, 0, 97, 114, 114, 95, 49, 46, 110, 112, 121, 80, 75, 5, 6, 0, 0,
    0, 0, 2, 0, 2, 0, 110, 0, 0, 0, 28, 1, 0, 0, 0, 0,
};

static char path[64];

static void write_file(const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f)) {
        perror(path);
        exit(2);
    }
}

/* The first message of what goes wrong in reading these bytes; NULL when nothing does. */
static const char *read_error(Arena *a, const void *p, size_t n)
{
    Diag d;
    diag_init(&d, a);
    write_file(p, n);
    return array_file_read(a, path, ARRAY_ANY, &d) ? NULL : d.first->text;
}

static const Shape *shape2(Arena *a, Type t, int64_t x, int64_t y)
{
    int64_t dims[] = { x, y };
    return shape_array(a, t, 2, dims);
}

static void test_numpy(Arena *a)
{
    Diag d;
    diag_init(&d, a);
    write_file(numpy_savez, sizeof numpy_savez);
    const ArrayFile *f = array_file_read(a, path, ARRAY_ANY, &d);
    CHECK(f && f->n == 2); /* savez is read */
    const NpyArray *x = f ? array_file_find(f, "arg0") : NULL;
    Literal        *l = x ? literal_from_array(x, shape2(a, TYPE_F32, 2, 3), "arg0", &d) : NULL;
    CHECK(l && literal_get_f64(l, 5) == 2.5); /* values of savez */
    literal_unref(l);
    CHECK(x && !literal_from_array(x, shape2(a, TYPE_F32, 3, 2), "arg0", &d)); /* other dimensions are refused */
    CHECK(d.last && strstr(d.last->text, "arg0: expected f32[3,2] (float32), found float32 (2, 3)")); /* and named */
    CHECK(x && !literal_from_array(x, shape2(a, TYPE_S32, 2, 3), "arg0", &d)); /* another type is refused */
    CHECK(f && !array_file_find(f, "arg2")); /* no such member */

    write_file(numpy_compressed, sizeof numpy_compressed);
    f = array_file_read(a, path, ARRAY_ANY, &d);
    x = f ? array_file_find(f, "arr_0") : NULL;
    l = x ? literal_from_array(x, shape2(a, TYPE_S16, 2, 3), "arr_0", &d) : NULL;
    CHECK(l && literal_get_s64(l, 4) == 4); /* deflated, big endian */
    literal_unref(l);
    x = f ? array_file_find(f, "arr_1") : NULL;
    l = x ? literal_from_array(x, shape2(a, TYPE_S32, 2, 3), "arr_1", &d) : NULL;
    CHECK(l && literal_get_s64(l, 1) == 1 && literal_get_s64(l, 3) == 3); /* Fortran order */
    literal_unref(l);
    puts("ok numpy");
}

static void test_round_trip(Arena *a)
{
    Literal    *v[TYPE_COUNT];
    const char *names[TYPE_COUNT];
    int32_t     n = 0;
    Diag        d;
    diag_init(&d, a);
    for (int t = 0; t < TYPE_COUNT; t++)
        if (type_is_array((Type)t)) {
            int64_t dims[] = { 3, 1, 2 };
            v[n] = literal_new((Type)t, 3, dims);
            for (int64_t i = 0; i < 6; i++)
                literal_set_f64(v[n], i, type_is_signed_int((Type)t) ? -(double)(i % 2) : (double)(i % 2), 1);
            names[n++] = type_name((Type)t);
        }
    CHECK(array_file_write(a, path, n, names, v, &d)); /* write */
    const ArrayFile *f = array_file_read(a, path, ARRAY_ANY, &d);
    CHECK(f && f->n == n); /* read back */
    for (int32_t k = 0; f && k < n; k++) {
        const NpyArray *x = array_file_find(f, names[k]);
        CHECK((uintptr_t)x->data % 64 == 0); /* arrays are aligned in the file */
        Literal *l = literal_from_array(x, literal_shape(a, v[k]), names[k], &d);
        CHECK(l && literal_equal(l, v[k]) && l->borrowed && l->data == x->data); /* used where they are */
        literal_unref(l);
    }
    Buf one = { 0 }, two = { 0 };
    CHECK(buf_read_file(&one, path) && array_file_write(a, path, n, names, v, &d) && buf_read_file(&two, path)); /* write twice */
    CHECK(one.n == two.n && !memcmp(one.p, two.p, one.n)); /* the same bytes */
    buf_free(&one);
    buf_free(&two);
    CHECK(d.errors == 0); /* without errors */
    for (int32_t k = 0; k < n; k++)
        literal_unref(v[k]);
    puts("ok round trip");
}

/* The first array's header replaced by text, as a lone .npy with n bytes of data. */
static const char *header_error(Arena *a, const char *text, size_t data)
{
    unsigned char b[512] = "\x93NUMPY\1\0";
    size_t        n = strlen(text);
    b[8] = (unsigned char)n;
    b[9] = (unsigned char)(n >> 8);
    memcpy(b + 10, text, n);
    return read_error(a, b, 10 + n + data);
}

static void test_headers(Arena *a)
{
    CHECK(!header_error(a, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }   \n", 8)); /* plain */
    CHECK(!header_error(a, "{\"shape\":(2L,1L),\"fortran_order\":True,\"descr\":\"<f4\"}", 8)); /* other order, Python 2 */
    CHECK(!header_error(a, "{'descr': '|V2', 'fortran_order': False, 'shape': ()}", 2)); /* void, scalar */
    CHECK(!header_error(a, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4)}", 0)); /* empty */
    static const struct { const char *text; size_t data; const char *error; } bad[] = {
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8, "needs 12 bytes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 8, "needs 4 bytes" },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, "type '|O'" },
        { "{'descr': '<U8', 'fortran_order': False, 'shape': (1,), }", 32, "type '<U8'" },
        { "{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }", 16, "type '<f16'" },
        { "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, "structured" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807), }", 4, "overflows" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 4, "damaged" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, "damaged" },
        { "{'descr': '<f4', 'fortran_order': False, }", 4, "damaged" },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "damaged" },
        { "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4, "damaged" },
        { "{'descr': '<f4", 4, "structured" },
        { "", 0, "damaged" },
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        const char *got = header_error(a, bad[k].text, bad[k].data);
        if (!got || !strstr(got, bad[k].error))
            fprintf(stderr, "%s: got %s\n", bad[k].text, got ? got : "no error");
        CHECK(got && strstr(got, bad[k].error));
    }
    CHECK(strstr(read_error(a, "\x93NUMPY\7\0\0\0", 10), "version 7")); /* version */
    CHECK(strstr(read_error(a, "\x93NUMPY\1\0\xff\xff", 10), "cut off")); /* length beyond the end */
    CHECK(strstr(read_error(a, "", 0), "empty")); /* empty file */
    CHECK(strstr(read_error(a, "hello", 5), "neither")); /* another format */
    puts("ok headers");
}

/* Every cut and every changed byte of an archive: read or refused, never more than that. */
static void test_damage(const unsigned char *p, size_t n)
{
    for (size_t k = 0; k < n; k++)
        for (int way = 0; way < 4; way++) {
            Arena *a = arena_new();
            Diag   d;
            diag_init(&d, a);
            size_t         size = way ? n : k;
            unsigned char *copy = malloc(size ? size : 1); /* of its exact size, so that a checker sees reads behind it */
            memcpy(copy, p, size);
            if (way)
                copy[k] = (unsigned char)(way == 1 ? 0xff : way == 2 ? copy[k] ^ 0x80 : copy[k] + 1);
            Zip z = { 0, NULL };
            if (zip_read(a, copy, size, way == 2 ? 64 : ZIP_ANY, "x", &z, &d))
                for (int32_t m = 0; m < z.n; m++) {
                    NpyArray x;
                    npy_parse(a, z.v[m].data, z.v[m].held, z.v[m].size, "x", &x, &d);
                }
            CHECK(way || d.errors); /* an archive that is cut off is refused */
            arena_free(a);
            free(copy);
        }
}

/* ---- a bomb ---- */

static void put(Buf *b, uint64_t v, int bytes)
{
    for (int k = 0; k < bytes; k++)
        buf_putc(b, (char)(v >> 8 * k));
}

/* Local header or directory entry of member k, from "version needed" to the lengths. */
static void put_fields(Buf *b, uint64_t crc, uint64_t packed, uint64_t size)
{
    put(b, 45, 2);
    put(b, 0, 2); /* flags */
    put(b, Z_DEFLATED, 2);
    put(b, 0, 4); /* time */
    put(b, crc, 4);
    put(b, packed, 4);
    put(b, size, 4);
    put(b, 5, 2);
}

static void put_name(Buf *b, int k) { buf_printf(b, "%c.npy", 'a' + k); }

/* An archive of n members a.npy, b.npy, ... that are all the same. */
static void put_archive(Buf *file, int n, uint64_t crc, const Buf *packed, uint64_t size)
{
    Buf directory = { 0 };
    for (int k = 0; k < n; k++) {
        put(&directory, 0x02014b50, 4);
        put(&directory, 45, 2);
        put_fields(&directory, crc, packed->n, size);
        put(&directory, 0, 2 + 2 + 2 + 2);
        put(&directory, 0, 4);
        put(&directory, file->n, 4);
        put_name(&directory, k);
        put(file, 0x04034b50, 4);
        put_fields(file, crc, packed->n, size);
        put(file, 0, 2);
        put_name(file, k);
        buf_put(file, packed->p, packed->n);
    }
    size_t start = file->n;
    buf_put(file, directory.p, directory.n);
    put(file, 0x06054b50, 4);
    put(file, 0, 4);
    put(file, (uint64_t)n, 2);
    put(file, (uint64_t)n, 2);
    put(file, directory.n, 4);
    put(file, start, 4);
    put(file, 0, 2);
    buf_free(&directory);
}

/* Raw deflate of head and then as many mebibytes of zeros, by repeating the pieces of one mebibyte. Returns their CRC. */
static uint64_t put_deflated(Buf *b, const Buf *head, int mebibytes)
{
    enum { MEBIBYTE = 1 << 20 };
    unsigned char *zeros = calloc(1, MEBIBYTE), *out = malloc(MEBIBYTE);
    z_stream       z = { .next_in = (unsigned char *)head->p, .avail_in = (unsigned)head->n, .next_out = out, .avail_out = MEBIBYTE };
    CHECK(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK && deflate(&z, Z_FULL_FLUSH) == Z_OK);
    buf_put(b, (char *)out, MEBIBYTE - z.avail_out);
    z.next_in = zeros;
    z.avail_in = MEBIBYTE;
    z.next_out = out;
    z.avail_out = MEBIBYTE;
    CHECK(deflate(&z, Z_FULL_FLUSH) == Z_OK);
    for (int k = 0; k < mebibytes; k++)
        buf_put(b, (char *)out, MEBIBYTE - z.avail_out);
    z.next_out = out;
    z.avail_out = MEBIBYTE;
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    buf_put(b, (char *)out, MEBIBYTE - z.avail_out);
    deflateEnd(&z);
    uLong crc = crc32(0, (unsigned char *)head->p, (unsigned)head->n), more = crc32(0, zeros, MEBIBYTE);
    for (int k = 0; k < mebibytes; k++)
        crc = crc32_combine(crc, more, MEBIBYTE);
    free(zeros);
    free(out);
    return crc;
}

/* n arrays of so many mebibytes of zeros, each in a thousandth of that; read by somebody who wants `most` bytes. */
static const ArrayFile *read_bomb(Arena *a, int n, int mebibytes, int64_t most, Diag *d)
{
    Buf  head = { 0 }, packed = { 0 }, file = { 0 };
    char text[80];
    diag_init(d, a);
    snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }", mebibytes << 18);
    buf_put(&head, "\x93NUMPY\1\0", 8);
    put(&head, strlen(text), 2);
    buf_puts(&head, text);
    uint64_t crc = put_deflated(&packed, &head, mebibytes);
    put_archive(&file, n, crc, &packed, head.n + ((uint64_t)mebibytes << 20));
    write_file(file.p, file.n);
    const ArrayFile *f = array_file_read(a, path, most, d);
    buf_free(&head);
    buf_free(&packed);
    buf_free(&file);
    return f;
}

/* 3 GiB of zeros in 3 MB, with a header that says so: known by its header, and nothing of the zeros is unpacked. */
static void test_bomb(Arena *a)
{
    Diag             d;
    int64_t          dims[] = { 2 };
    const ArrayFile *f = read_bomb(a, 1, 3 << 10, 8, &d);
    CHECK(f && f->n == 1 && f->v[0].count == (int64_t)3 << 28 && !f->v[0].data);
    CHECK(f && !literal_from_array(&f->v[0], shape_array(a, TYPE_F32, 1, dims), "x", &d));
    CHECK(d.last && strstr(d.last->text, "x: expected f32[2] (float32), found float32 (805306368,)"));
    puts("ok bomb");
}

/* Each member could be wanted, but not all of them; and what is not known to be wanted is measured by its file. */
static void test_bombs(Arena *a)
{
    Diag             d;
    const ArrayFile *f = read_bomb(a, 20, 33, (int64_t)33 << 20, &d);
    CHECK(f && f->n == 20);
    for (int k = 0; f && k < f->n; k++)
        CHECK(f->v[k].count == (int64_t)33 << 18 && !f->v[k].data == (k >= 2));
    CHECK(!read_bomb(a, 1, 257, ARRAY_ANY, &d));
    CHECK(d.last && strstr(d.last->text, "member 'a.npy' unpacks to so much that it must be unpacked first"));
    puts("ok bombs");
}

/* Two directory entries for one member's bytes. */
static void test_overlap(Arena *a)
{
    unsigned char copy[sizeof numpy_savez];
    memcpy(copy, numpy_savez, sizeof copy);
    size_t second = sizeof copy - 22 - 54; /* arg1's entry becomes another one of arg0 */
    memcpy(copy + second, copy + second - 54, 54);
    CHECK(strstr(read_error(a, copy, sizeof copy), "two members overlap"));
    puts("ok overlap");
}

static void test_ranges(Arena *a)
{
    Diag d;
    diag_init(&d, a);
    int64_t  dims[] = { 2 };
    int8_t   v[] = { 7, 8 };
    NpyArray x = { .kind = 'i', .bytes = 1, .rank = 1, .dims = dims, .count = 2, .data = v, .size = 2 };
    CHECK(!literal_from_array(&x, shape_array(a, TYPE_S4, 1, dims), "x", &d)); /* 8 is no s4 */
    CHECK(strstr(d.last->text, "element 1 is 8; s4 holds -8 to 7")); /* range named */
    x.kind = 'u';
    Literal *l = literal_from_array(&x, shape_array(a, TYPE_U4, 1, dims), "x", &d);
    CHECK(l && literal_get_s64(l, 1) == 8); /* 8 is a u4 */
    literal_unref(l);
    x.kind = 'V';
    l = literal_from_array(&x, shape_array(a, TYPE_F8E5M2, 1, dims), "x", &d);
    CHECK(l != NULL); /* V1 is an f8 */
    literal_unref(l);
    CHECK(!literal_from_array(&x, shape_array(a, TYPE_U8, 1, dims), "x", &d)); /* V1 is no u8 */
    x.kind = 'b';
    CHECK(!literal_from_array(&x, shape_array(a, TYPE_PRED, 1, dims), "x", &d)); /* 7 is no bool */
    puts("ok ranges");
}

int main(void)
{
    Arena *a = arena_new();
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.30s/npz_test.XXXXXX", tmp ? tmp : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0) {
        perror(path);
        return 2;
    }
    close(fd);
    test_numpy(a);
    test_round_trip(a);
    test_headers(a);
    test_damage(numpy_savez, sizeof numpy_savez);
    test_damage(numpy_compressed, sizeof numpy_compressed);
    puts("ok damage");
    test_overlap(a);
    test_ranges(a);
    test_bomb(a);
    test_bombs(a);
    arena_free(a);
    unlink(path);
    return 0;
}
