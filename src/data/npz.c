/* Files of arrays: which format it is, where its bytes come from and go to, and what the bytes mean.
 * A regular file is mapped, anything else is read whole. An array that is stored and lies at a multiple of its element's size is used where
 * it is; every other one is copied. */
#include "config.h"

#include "data/npz.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data/zip.h"
#include "support/host.h"
#include "support/outfile.h"

/* Reading. */

typedef struct Bytes {
    const uint8_t *p;
    size_t         n;
} Bytes;

typedef struct Mapping {
    void  *p;
    size_t n;
} Mapping;

static void unmap(void *p)
{
    Mapping *m = p;
    munmap(m->p, m->n);
}

static bool file_error(Diag *d, const char *path, int error)
{
    diag_error(d, LOC_NONE, "%s: %s", path, strerror(error));
    return false;
}

static void free_bytes(void *p)
{
    free(p);
}

/* Whole of a pipe or device. */
static bool read_stream(Arena *a, const char *path, Bytes *out, Diag *d)
{
    Buf b = { 0 };
    if (!buf_read_file(&b, path)) {
        int error = errno;
        buf_free(&b);
        return file_error(d, path, error);
    }
    out->p = arena_copy(a, b.p, b.n);
    out->n = b.n;
    buf_free(&b);
    return true;
}

static bool read_bytes(Arena *a, const char *path, Bytes *out, Diag *d)
{
    struct stat st;
    if (!strcmp(path, "-"))
        return read_stream(a, path, out, d);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return file_error(d, path, errno);
    if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode)) {
        close(fd);
        return file_error(d, path, EISDIR);
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return read_stream(a, path, out, d);
    }
    *out = (Bytes){ (const uint8_t *)"", 0 };
    if (st.st_size > 0) {
        Mapping *m = ARENA_NEW(a, Mapping);
        m->n = (size_t)st.st_size;
        m->p = mmap(NULL, m->n, PROT_READ, MAP_PRIVATE, fd, 0);
        int error = errno;
        close(fd);
        if (m->p == MAP_FAILED)
            return file_error(d, path, error);
        arena_defer(a, unmap, m);
        *out = (Bytes){ m->p, m->n };
        return true;
    }
    close(fd);
    return true;
}

/* Unpacks gzip (all its parts), up to `most` bytes. Where those are any number, what was read must be enough for what comes of it. */
static bool gunzip(Arena *a, const char *path, int64_t most, Bytes *x, Diag *d)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)x->p };
    if (inflateInit2(&z, MAX_WBITS + 16) != Z_OK)
        die_out_of_memory("zlib");
    size_t   left = x->n, cap = 1 << 16, n = 0;
    int64_t  memory = host_memory();
    uint8_t *out = mem_alloc((int64_t)cap, 1);
    int      rc = Z_OK;
    while (rc == Z_OK) {
        if (!z.avail_in) {
            z.avail_in = left > UINT_MAX ? UINT_MAX : (uInt)left;
            left -= z.avail_in;
        }
        if (n == cap) {
            cap *= 2;
            out = mem_grow(out, (int64_t)cap, 1);
        }
        uInt room = cap - n > UINT_MAX ? UINT_MAX : (uInt)(cap - n);
        z.next_out = out + n;
        z.avail_out = room;
        rc = inflate(&z, Z_NO_FLUSH);
        n += room - z.avail_out;
        if ((int64_t)n > (most < memory ? most : host_unpacked_limit((int64_t)(x->n - left - z.avail_in))))
            rc = Z_MEM_ERROR;
        if (rc == Z_STREAM_END && (z.avail_in || left) && inflateReset(&z) == Z_OK)
            rc = Z_OK;
    }
    inflateEnd(&z);
    uint8_t *kept = aligned_alloc(64, (n + 64) / 64 * 64);
    if (!kept)
        die_out_of_memory(path);
    memcpy(kept, out, n);
    mem_free(out);
    arena_defer(a, free_bytes, kept);
    *x = (Bytes){ kept, n };
    if (rc != Z_STREAM_END)
        diag_error(d, LOC_NONE, "%s: %s", path, rc == Z_MEM_ERROR ? "unpacks to more bytes than are wanted from it" : "damaged gzip data");
    return rc == Z_STREAM_END;
}

static bool has_prefix(const Bytes *x, const char *text, size_t n)
{
    return x->n >= n && !memcmp(x->p, text, n);
}

static bool ends_in(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && !strcmp(s + n - m, tail);
}

static bool read_zip(Arena *a, const Bytes *x, uint64_t most, ArrayFile *f, Diag *d)
{
    Zip z = { 0, NULL };
    if (!zip_read(a, x->p, x->n, most, f->path, &z, d))
        return false;
    NpyArray *v = ARENA_ARRAY(a, NpyArray, z.n);
    for (int32_t k = 0; k < z.n; k++) {
        const ZipMember *m = &z.v[k];
        if (!npy_parse(a, m->data, m->held, m->size, arena_printf(a, "%s: member '%s'", f->path, m->name), &v[k], d))
            return false;
        v[k].name = ends_in(m->name, ".npy") ? arena_strndup(a, m->name, strlen(m->name) - 4) : m->name;
    }
    f->v = v;
    f->n = z.n;
    return true;
}

static int by_name(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* No two members of one name. */
static bool check_names(Arena *a, const ArrayFile *f, Diag *d)
{
    const char **names = ARENA_ARRAY(a, const char *, f->n);
    for (int32_t k = 0; k < f->n; k++)
        names[k] = f->v[k].name;
    qsort(names, (size_t)f->n, sizeof *names, by_name);
    for (int32_t k = 1; k < f->n; k++)
        if (!strcmp(names[k - 1], names[k])) {
            diag_error(d, LOC_NONE, "%s: two members are named '%s'", f->path, names[k]);
            return false;
        }
    return true;
}

static int64_t with_room(int64_t most, int64_t more)
{
    return most < 0 || most > INT64_MAX - more ? INT64_MAX : most + more;
}

const ArrayFile *array_file_parse(Arena *a, const char *name, const void *p, size_t n, int64_t most, Diag *d)
{
    enum { HEADERS = 1 << 26 }; /* what a file may have beside the data */
    ArrayFile *f = ARENA_NEW(a, ArrayFile);
    Bytes      x = { p, n };
    f->path = name;
    bool tensors = safetensors_looks(x.p, x.n); /* first: a length may begin with the bytes of another format's magic number */
    if (!tensors && has_prefix(&x, "\x1f\x8b", 2)) {
        if (!gunzip(a, f->path, with_room(most, HEADERS), &x, d))
            return NULL;
        tensors = safetensors_looks(x.p, x.n);
    }
    if (tensors || (x.n && ends_in(f->path, ".safetensors")))
        return safetensors_parse(a, x.p, x.n, f, d) && check_names(a, f, d) ? f : NULL;
    if (has_prefix(&x, "PK", 2))
        return read_zip(a, &x, most < 0 ? ZIP_ANY : (uint64_t)with_room(most, HEADERS), f, d) && check_names(a, f, d) ? f : NULL;
    if (!has_prefix(&x, "\x93NUMPY", 6)) {
        diag_error(d, LOC_NONE, "%s: %s", f->path, x.n ? "neither a .npy, .npz nor .safetensors file" : "the file is empty");
        return NULL;
    }
    NpyArray *v = ARENA_NEW(a, NpyArray);
    f->npy = true;
    f->n = 1;
    f->v = v;
    return npy_parse(a, x.p, x.n, x.n, f->path, v, d) ? f : NULL;
}

bool array_file_bytes(Arena *a, const char *path, const void **p, size_t *n, Diag *d)
{
    Bytes x;
    if (!read_bytes(a, path, &x, d))
        return false;
    *p = x.p;
    *n = x.n;
    return true;
}

const ArrayFile *array_file_read(Arena *a, const char *path, int64_t most, Diag *d)
{
    const char *name = strcmp(path, "-") ? arena_strndup(a, path, strlen(path)) : "<stdin>";
    Bytes       x;
    return read_bytes(a, path, &x, d) ? array_file_parse(a, name, x.p, x.n, most, d) : NULL;
}

const NpyArray *array_file_find(const ArrayFile *f, const char *name)
{
    for (int32_t k = 0; k < f->n; k++)
        if (f->v[k].name && !strcmp(f->v[k].name, name))
            return &f->v[k];
    return NULL;
}

/* Meaning. */

/* The types that may stand in a file for t: the one we write, or raw bytes of its width where NumPy has no name for t. */
static bool stands_for(const NpyArray *x, Type t)
{
    if (x->is)
        return x->is == &type_info[t];
    if (x->bytes != type_bytes(t))
        return false;
    bool nameless = type_bits(t) < 8 || (type_is_float(t) && npy_kind(t) == 'u');
    return x->kind == npy_kind(t) || (nameless && x->kind == 'V');
}

static bool dims_fit(const NpyArray *x, const Shape *s)
{
    if (x->rank != s->rank)
        return false;
    for (int32_t k = 0; k < s->rank; k++) {
        bool dynamic = s->dynamic && s->dynamic[k];
        if (x->dims[k] != s->dims[k] && !(dynamic && (s->dims[k] == DIM_UNBOUNDED || x->dims[k] < s->dims[k])))
            return false;
    }
    return true;
}

static void describe_mismatch(const NpyArray *x, const Shape *s, const char *what, Diag *d)
{
    Buf b = { 0 };
    shape_print(&b, s, false);
    diag_error(d, LOC_NONE, "%s: expected %s (%s), found %s", what, b.p, npy_type_text(npy_kind(s->type), type_bytes(s->type)),
               array_text(d->arena, x));
    buf_free(&b);
}

/* Values of types below 8 bits lie in the byte's low end; the byte may hold nothing else. A bool is 0 or 1. */
static bool check_range(const Literal *l, const char *what, Diag *d)
{
    int lo = 0, hi = 1;
    if (type_is_signed_int(l->type)) {
        lo = -(1 << (type_bits(l->type) - 1));
        hi = -lo - 1;
    } else if (l->type != TYPE_PRED) {
        hi = (1 << type_bits(l->type)) - 1;
    }
    const int8_t *v = l->data;
    for (int64_t k = 0; k < l->count; k++) {
        int value = lo < 0 ? v[k] : (uint8_t)v[k];
        if (value < lo || value > hi) {
            diag_error(d, LOC_NONE, "%s: element %lld is %d; %s holds %d to %d", what, (long long)k, value, type_name(l->type),
                       lo, hi);
            return false;
        }
    }
    return true;
}

Literal *literal_from_array(const NpyArray *x, const Shape *s, const char *what, Diag *d)
{
    if (!x->data || !shape_is_array(s) || !stands_for(x, s->type) || !dims_fit(x, s)) {
        describe_mismatch(x, s, what, d);
        return NULL;
    }
    Literal *l;
    if (x->count && (uintptr_t)x->data % (uintptr_t)type_bytes(type_component(s->type)) == 0) {
        l = literal_borrow(s->type, x->rank, x->dims, (void *)(uintptr_t)x->data);
    } else {
        l = literal_new(s->type, x->rank, x->dims);
        if (x->size)
            memcpy(l->data, x->data, x->size);
    }
    bool narrow = s->type == TYPE_PRED || type_bits(s->type) < 8;
    if (narrow && !check_range(l, what, d)) {
        literal_unref(l);
        return NULL;
    }
    return l;
}

/* Writing. */

static bool to_outfile(void *to, const void *p, size_t n)
{
    return outfile_put(to, p, n);
}

static void write_npz(Arena *a, OutFile *f, int32_t n, const char *const *names, Literal *const *values)
{
    ZipWriter z;
    zip_begin(&z, a, to_outfile, f);
    Buf head = { 0 };
    for (int32_t k = 0; k < n; k++) {
        buf_clear(&head);
        npy_header(&head, values[k]);
        zip_member(&z, arena_printf(a, "%s.npy", names[k]), head.p, head.n, values[k]->data, (size_t)literal_bytes(values[k]));
    }
    zip_end(&z);
    buf_free(&head);
}

/* Larger elements first, so that each array lies at a multiple of its element's size. */
static void sort_by_width(Arena *a, int32_t n, const char *const **names, Literal *const **values)
{
    const char **name = ARENA_ARRAY(a, const char *, n);
    Literal    **value = ARENA_ARRAY(a, Literal *, n);
    int32_t      at = 0;
    for (int bytes = 16; bytes; bytes /= 2)
        for (int32_t k = 0; k < n; k++)
            if (type_bytes((*values)[k]->type) == bytes) {
                name[at] = (*names)[k];
                value[at++] = (*values)[k];
            }
    *names = name;
    *values = value;
}

static void write_safetensors(OutFile *f, const Buf *head, int32_t n, Literal *const *values)
{
    outfile_put(f, head->p, head->n);
    for (int32_t k = 0; k < n; k++)
        outfile_put(f, values[k]->data, (size_t)literal_bytes(values[k]));
}

static void write_npy(OutFile *f, const Literal *l)
{
    Buf head = { 0 };
    npy_header(&head, l);
    outfile_put(f, head.p, head.n);
    outfile_put(f, l->data, (size_t)literal_bytes(l));
    buf_free(&head);
}

bool array_file_write(Arena *a, const char *path, int32_t n, const char *const *names, Literal *const *values, Diag *d)
{
    if (ends_in(path, ".npy") && n != 1) {
        diag_error(d, LOC_NONE, "%s: a .npy file holds one array, there are %d (name an .npz file)", path, n);
        return false;
    }
    Buf  head = { 0 };
    bool tensors = ends_in(path, ".safetensors");
    if (tensors) {
        sort_by_width(a, n, &names, &values);
        if (!safetensors_header(&head, n, names, values, d)) {
            buf_free(&head);
            return false;
        }
    }
    OutFile f;
    outfile_open(&f, a, path);
    if (tensors)
        write_safetensors(&f, &head, n, values);
    else if (ends_in(path, ".npy"))
        write_npy(&f, values[0]);
    else
        write_npz(a, &f, n, names, values);
    buf_free(&head);
    if (outfile_close(&f))
        return true;
    return file_error(d, strcmp(path, "-") ? path : "<stdout>", f.error);
}
