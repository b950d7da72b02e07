/* Reading and writing of .zip archives in memory.
 *
 *   [local header, name, extra, data] ... [central directory entry] ... ([zip64 end] [zip64 locator]) [end]
 *
 * The reader goes from the end record to the central directory and from there to the members; sizes come from the directory, so
 * data descriptors after the data need no attention. Everything is little endian and unaligned. */
#include "config.h"

#include "data/zip.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "support/host.h"

enum {
    LOCAL_SIZE = 30, CENTRAL_SIZE = 46, END_SIZE = 22, LOCATOR_SIZE = 20, END64_SIZE = 56,
    SIG_LOCAL = 0x04034b50, SIG_CENTRAL = 0x02014b50, SIG_END = 0x06054b50, SIG_LOCATOR = 0x07064b50, SIG_END64 = 0x06064b50,
    EXTRA_ZIP64 = 1, EXTRA_ALIGN = 0xd935,
    FLAG_ENCRYPTED = 1,
    VERSION_PLAIN = 20, VERSION_ZIP64 = 45,
    DATE_1980 = 0x21, /* 1980-01-01: the earliest date there is */
    DEFLATE_RATIO = 1040 /* deflate makes at most 1032 bytes of one */
};

static uint64_t get(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int k = bytes - 1; k >= 0; k--)
        v = v << 8 | p[k];
    return v;
}

typedef struct Reader {
    const uint8_t *p;
    uint64_t       n;
    const char    *path;
    Arena         *arena;
    Diag          *diag;
    bool           any;    /* nobody said how many bytes are wanted */
    uint64_t       budget; /* bytes that may still be inflated */
} Reader;

static bool bad(const Reader *r, const char *what)
{
    diag_error(r->diag, LOC_NONE, "%s: damaged .npz file: %s", r->path, what);
    return false;
}

/* Is [off, off + size) inside the archive? */
static bool inside(const Reader *r, uint64_t off, uint64_t size)
{
    return off <= r->n && size <= r->n - off;
}

/* The end record: the last one whose comment ends where the file ends. -1: none. */
static int64_t find_end(const Reader *r)
{
    for (uint64_t back = END_SIZE; back <= r->n && back <= END_SIZE + 0xffff; back++) {
        const uint8_t *e = r->p + (r->n - back);
        if (get(e, 4) == SIG_END && get(e + 20, 2) == back - END_SIZE)
            return (int64_t)(r->n - back);
    }
    return -1;
}

typedef struct Directory { uint64_t count, size, offset; } Directory;

static bool find_directory(const Reader *r, Directory *out)
{
    int64_t end = find_end(r);
    if (end < 0)
        return bad(r, "no end record (is it cut off?)");
    const uint8_t *e = r->p + end;
    *out = (Directory){ get(e + 10, 2), get(e + 12, 4), get(e + 16, 4) };
    if (end >= LOCATOR_SIZE && get(e - LOCATOR_SIZE, 4) == SIG_LOCATOR) {
        uint64_t at = get(e - LOCATOR_SIZE + 8, 8);
        if (!inside(r, at, END64_SIZE) || get(r->p + at, 4) != SIG_END64)
            return bad(r, "the zip64 end record is not where the locator says");
        *out = (Directory){ get(r->p + at + 32, 8), get(r->p + at + 40, 8), get(r->p + at + 48, 8) };
    }
    if (!inside(r, out->offset, out->size) || out->count > out->size / CENTRAL_SIZE)
        return bad(r, "the central directory is not inside the file");
    return true;
}

typedef struct Entry {
    const uint8_t *name;
    uint64_t       name_size, flags, method, crc, packed, size;
    uint64_t       local, start; /* of the local header and of the data */
} Entry;

/* The zip64 extra field holds, in this order, those of size, packed size and local offset that are all ones in the entry. */
static bool read_zip64(const Reader *r, const uint8_t *x, uint64_t n, Entry *e)
{
    while (n >= 4) {
        uint64_t id = get(x, 2), size = get(x + 2, 2);
        if (size > n - 4)
            return bad(r, "an extra field is cut off");
        if (id == EXTRA_ZIP64) {
            const uint8_t *v = x + 4, *end = v + size;
            uint64_t *want[] = { &e->size, &e->packed, &e->local };
            for (int k = 0; k < 3; k++)
                if (*want[k] == 0xffffffff) {
                    if (end - v < 8)
                        return bad(r, "a zip64 field is cut off");
                    *want[k] = get(v, 8);
                    v += 8;
                }
            return true;
        }
        x += 4 + size;
        n -= 4 + size;
    }
    return true;
}

/* The directory entry at *at, which moves on. */
static bool read_entry(const Reader *r, uint64_t *at, uint64_t end, Entry *e)
{
    const uint8_t *c = r->p + *at;
    if (end - *at < CENTRAL_SIZE || get(c, 4) != SIG_CENTRAL)
        return bad(r, "a directory entry is missing");
    uint64_t name = get(c + 28, 2), extra = get(c + 30, 2), comment = get(c + 32, 2);
    if (name + extra + comment > end - *at - CENTRAL_SIZE)
        return bad(r, "a directory entry is cut off");
    *e = (Entry){ .name = c + CENTRAL_SIZE, .name_size = name, .flags = get(c + 8, 2), .method = get(c + 10, 2),
                  .crc = get(c + 16, 4), .packed = get(c + 20, 4), .size = get(c + 24, 4), .local = get(c + 42, 4) };
    *at += CENTRAL_SIZE + name + extra + comment;
    return read_zip64(r, c + CENTRAL_SIZE + name, extra, e);
}

/* Raw deflate of exactly `size` bytes. */
static bool inflate_all(const uint8_t *in, uint64_t packed, uint8_t *out, uint64_t size)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)in, .next_out = out };
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        die_out_of_memory("zlib");
    uint8_t none;
    int rc = Z_OK;
    while (rc == Z_OK) { /* avail_in and avail_out are 32 bits wide */
        if (!z.avail_in) {
            z.avail_in = packed > UINT_MAX ? UINT_MAX : (uInt)packed;
            packed -= z.avail_in;
        }
        if (!z.avail_out) {
            z.avail_out = size > UINT_MAX ? UINT_MAX : (uInt)size;
            size -= z.avail_out;
            if (!z.avail_out) { /* full: only the end of the stream may follow */
                z.next_out = &none;
                z.avail_out = 1;
                rc = inflate(&z, Z_NO_FLUSH);
                if (rc == Z_OK || !z.avail_out)
                    rc = Z_DATA_ERROR;
                break;
            }
        }
        rc = inflate(&z, Z_NO_FLUSH);
    }
    bool filled = !size && (!z.avail_out || z.next_out == &none);
    inflateEnd(&z);
    return rc == Z_STREAM_END && filled;
}

/* The first ZIP_HEAD bytes of what is larger. */
static bool inflate_head(const uint8_t *in, uint64_t packed, uint8_t *out)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)in, .next_out = out, .avail_in = packed > UINT_MAX ? UINT_MAX : (uInt)packed };
    z.avail_out = ZIP_HEAD;
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        die_out_of_memory("zlib");
    inflate(&z, Z_NO_FLUSH);
    inflateEnd(&z);
    return z.avail_out == 0;
}

static uint32_t crc_of(uint32_t crc, const uint8_t *p, uint64_t n)
{
    while (n) {
        uInt part = n > UINT_MAX ? UINT_MAX : (uInt)n;
        crc = (uint32_t)crc32(crc, p, part);
        p += part;
        n -= part;
    }
    return crc;
}

static bool member_error(const Reader *r, const ZipMember *m, const char *what)
{
    diag_error(r->diag, LOC_NONE, "%s: member '%s' %s", r->path, m->name, what);
    return false;
}

static bool unpack(Reader *r, const Entry *e, const uint8_t *packed, ZipMember *m)
{
    if (e->method == 0) {
        if (e->packed != e->size)
            return member_error(r, m, "is stored, but its two sizes differ");
        m->data = packed;
        return true;
    }
    if (e->method != Z_DEFLATED)
        return member_error(r, m, arena_printf(r->arena, "is packed by method %d; only stored and deflated ones are read",
                                               (int)e->method));
    if (e->size / DEFLATE_RATIO > e->packed)
        return member_error(r, m, "claims a size that its data cannot have");
    m->held = !r->any && e->size > r->budget && e->size > ZIP_HEAD ? ZIP_HEAD : e->size;
    if (m->held > r->budget)
        return member_error(r, m, r->any ? "unpacks to so much that it must be unpacked first, if it is meant to"
                                         : "and those before it unpack to more bytes than are wanted");
    r->budget -= m->held;
    uint8_t *out = aligned_alloc(64, (m->held + 64) / 64 * 64); /* not zeroed; at least one block */
    if (!out)
        die_out_of_memory(m->name);
    arena_defer(r->arena, free, out);
    m->data = out;
    if (m->held < e->size ? !inflate_head(packed, e->packed, out) : !inflate_all(packed, e->packed, out, e->size))
        return member_error(r, m, "has damaged deflate data");
    return true;
}

/* Finds where the member's header and data lie: e->local to e->start + e->packed. */
static bool locate(const Reader *r, Entry *e, ZipMember *m)
{
    m->name = arena_strndup(r->arena, (const char *)e->name, e->name_size);
    m->size = m->held = e->size;
    if (strlen(m->name) != e->name_size)
        return bad(r, "a member's name holds a NUL byte");
    if (e->flags & FLAG_ENCRYPTED)
        return member_error(r, m, "is encrypted");
    if (!inside(r, e->local, LOCAL_SIZE) || get(r->p + e->local, 4) != SIG_LOCAL)
        return member_error(r, m, "has no local header");
    const uint8_t *l = r->p + e->local;
    uint64_t name = get(l + 26, 2), extra = get(l + 28, 2);
    e->start = e->local + LOCAL_SIZE + name + extra;
    if (!inside(r, e->start, e->packed) || name != e->name_size || memcmp(l + LOCAL_SIZE, e->name, name) != 0)
        return member_error(r, m, "has a local header that does not fit its directory entry");
    return true;
}

static int by_place(const void *x, const void *y)
{
    const Entry *a = *(const Entry *const *)x, *b = *(const Entry *const *)y;
    return (a->local > b->local) - (a->local < b->local);
}

/* Members that share bytes make a small archive that unpacks to terabytes. */
static bool check_apart(const Reader *r, int32_t n, const Entry *v)
{
    const Entry **order = ARENA_ARRAY(r->arena, const Entry *, n);
    for (int32_t k = 0; k < n; k++)
        order[k] = &v[k];
    if (n)
        qsort(order, (size_t)n, sizeof *order, by_place);
    for (int32_t k = 1; k < n; k++)
        if (order[k]->local < order[k - 1]->start + order[k - 1]->packed)
            return bad(r, "two members overlap");
    return true;
}

static bool read_member(Reader *r, const Entry *e, ZipMember *m)
{
    if (!unpack(r, e, r->p + e->start, m))
        return false;
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    return true;
#else
    return m->held < m->size || crc_of(0, m->data, m->size) == e->crc || member_error(r, m, "has a wrong CRC");
#endif
}

bool zip_read(Arena *a, const uint8_t *p, size_t n, uint64_t most, const char *path, Zip *out, Diag *d)
{
    Reader r = { .p = p, .n = n, .path = path, .arena = a, .diag = d, .any = most == ZIP_ANY };
    uint64_t memory = (uint64_t)host_memory();
    r.budget = r.any ? (uint64_t)host_unpacked_limit((int64_t)n) : most < memory ? most : memory;
    Directory dir = { 0, 0, 0 };
    if (!find_directory(&r, &dir))
        return false;
    if (dir.count > INT32_MAX)
        return bad(&r, "too many members");
    out->n = (int32_t)dir.count;
    out->v = ARENA_ARRAY(a, ZipMember, out->n);
    Entry   *entries = ARENA_ARRAY(a, Entry, out->n);
    uint64_t at = dir.offset, end = dir.offset + dir.size;
    for (int32_t k = 0; k < out->n; k++)
        if (!read_entry(&r, &at, end, &entries[k]) || !locate(&r, &entries[k], &out->v[k]))
            return false;
    if (!check_apart(&r, out->n, entries))
        return false;
    for (int32_t k = 0; k < out->n; k++)
        if (!read_member(&r, &entries[k], &out->v[k]))
            return false;
    return true;
}

/* Writing. */

typedef struct ZipEntry {
    const char *name;
    uint64_t    offset, size;
    uint32_t    crc;
} ZipEntry;

void zip_begin(ZipWriter *z, Arena *a, ZipSink *sink, void *to)
{
    *z = (ZipWriter){ .sink = sink, .to = to, .arena = a };
}

static void emit(ZipWriter *z, const void *p, size_t n)
{
    if (n && !z->failed && !z->sink(z->to, p, n))
        z->failed = true;
    z->offset += n;
}

static uint8_t *put(uint8_t *p, uint64_t v, int bytes)
{
    for (int k = 0; k < bytes; k++)
        *p++ = (uint8_t)(k < 8 ? v >> 8 * k : 0);
    return p;
}

static bool is_big(uint64_t v)
{
    return v >= 0xffffffff;
}

static uint64_t low32(uint64_t v)
{
    return is_big(v) ? 0xffffffff : v;
}

/* The fields that local header and directory entry share, from "version needed" to the name's length. */
static uint8_t *put_common(uint8_t *p, const ZipEntry *e, bool zip64)
{
    p = put(p, zip64 ? VERSION_ZIP64 : VERSION_PLAIN, 2);
    p = put(p, 0, 2); /* flags */
    p = put(p, 0, 2); /* stored */
    p = put(p, 0, 2); /* midnight */
    p = put(p, DATE_1980, 2);
    p = put(p, e->crc, 4);
    p = put(p, low32(e->size), 4);
    p = put(p, low32(e->size), 4);
    return put(p, strlen(e->name), 2);
}

static void add_entry(ZipWriter *z, ZipEntry e)
{
    if (z->n == z->cap) {
        z->cap = z->cap ? z->cap * 2 : 16;
        ZipEntry *grown = ARENA_ARRAY(z->arena, ZipEntry, z->cap);
        if (z->n)
            memcpy(grown, z->entries, (size_t)z->n * sizeof *grown);
        z->entries = grown;
    }
    z->entries[z->n++] = e;
}

void zip_member(ZipWriter *z, const char *name, const void *head, size_t head_size, const void *body, size_t body_size)
{
    ZipEntry e = { name, z->offset, (uint64_t)head_size + body_size, crc_of(crc_of(0, head, head_size), body, body_size) };
    add_entry(z, e);
    if (strlen(name) > 0xffff)
        z->failed = true;
    bool zip64 = is_big(e.size);
    uint8_t h[LOCAL_SIZE + 20 + 4 + 64], *p = put(h, SIG_LOCAL, 4);
    p = put_common(p, &e, zip64);
    uint64_t extra = zip64 ? 20 : 0, start = e.offset + LOCAL_SIZE + strlen(name) + extra + 4;
    uint64_t pad = (64 - start % 64) % 64;
    p = put(p, extra + 4 + pad, 2);
    emit(z, h, LOCAL_SIZE);
    emit(z, name, strlen(name));
    p = h;
    if (zip64) {
        p = put(put(p, EXTRA_ZIP64, 2), 16, 2);
        p = put(put(p, e.size, 8), e.size, 8);
    }
    p = put(put(p, EXTRA_ALIGN, 2), pad, 2);
    memset(p, 0, pad);
    emit(z, h, extra + 4 + pad);
    emit(z, head, head_size);
    emit(z, body, body_size);
}

static void write_directory_entry(ZipWriter *z, const ZipEntry *e)
{
    bool big_size = is_big(e->size), big_offset = is_big(e->offset), zip64 = big_size || big_offset;
    int wide = (big_size ? 16 : 0) + (big_offset ? 8 : 0);
    uint8_t h[CENTRAL_SIZE + 4 + 24], *p = put(h, SIG_CENTRAL, 4);
    p = put(p, VERSION_ZIP64, 2); /* made by */
    p = put_common(p, e, zip64);
    p = put(p, zip64 ? (uint64_t)wide + 4 : 0, 2);
    p = put(p, 0, 2 + 2 + 2 + 4); /* comment, disk, attributes */
    p = put(p, low32(e->offset), 4);
    emit(z, h, CENTRAL_SIZE);
    emit(z, e->name, strlen(e->name));
    if (!zip64)
        return;
    p = put(put(h, EXTRA_ZIP64, 2), (uint64_t)wide, 2);
    if (big_size)
        p = put(put(p, e->size, 8), e->size, 8);
    if (big_offset)
        p = put(p, e->offset, 8);
    emit(z, h, (size_t)(p - h));
}

bool zip_end(ZipWriter *z)
{
    uint64_t start = z->offset, n = (uint64_t)z->n;
    for (int64_t k = 0; k < z->n; k++)
        write_directory_entry(z, &z->entries[k]);
    uint64_t end = z->offset, size = end - start;
    uint8_t h[END64_SIZE + LOCATOR_SIZE + END_SIZE], *p = h;
    if (n >= 0xffff || is_big(start) || is_big(size)) {
        p = put(put(p, SIG_END64, 4), END64_SIZE - 12, 8);
        p = put(put(p, VERSION_ZIP64, 2), VERSION_ZIP64, 2);
        p = put(p, 0, 8); /* disks */
        p = put(put(p, n, 8), n, 8);
        p = put(put(p, size, 8), start, 8);
        p = put(put(p, SIG_LOCATOR, 4), 0, 4);
        p = put(put(p, end, 8), 1, 4);
    }
    p = put(put(p, SIG_END, 4), 0, 4);
    uint64_t n16 = n >= 0xffff ? 0xffff : n;
    p = put(put(p, n16, 2), n16, 2);
    p = put(put(p, low32(size), 4), low32(start), 4);
    p = put(p, 0, 2);
    emit(z, h, (size_t)(p - h));
    return !z->failed;
}
