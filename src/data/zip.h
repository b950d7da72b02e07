/* The .zip container, as far as .npz uses it: stored and deflated members, zip64, data descriptors.
 * Source: PKWARE's APPNOTE 6.3.9, sections 4.3 and 4.5.3. */
#ifndef DATA_ZIP_H
#define DATA_ZIP_H

#include "support/arena.h"
#include "support/diag.h"

typedef struct ZipMember {
    const char    *name; /* as in the directory */
    const uint8_t *data; /* the contents: a part of the archive when stored, else a block that the arena owns */
    size_t         size;
    size_t         held; /* how much of it data has: all, or the beginning of what nobody can want */
} ZipMember;

typedef struct Zip {
    int32_t    n;
    ZipMember *v;
} Zip;

/* Reads every member of the archive p[0..n) and checks its CRC. False after reporting to d; path names it in messages. Nothing
 * is believed that the archive says of itself: offsets, sizes and counts are checked against its length. Nobody wants more
 * than most bytes in all: of a deflated member that goes beyond them only the first ZIP_HEAD are unpacked. With ZIP_ANY, more than an
 * archive of that size can mean is an error. */
enum { ZIP_HEAD = 4096 };
#define ZIP_ANY UINT64_MAX
bool zip_read(Arena *a, const uint8_t *p, size_t n, uint64_t most, const char *path, Zip *out, Diag *d);

/* Where bytes go, front to back. False: the write failed. */
typedef bool ZipSink(void *to, const void *p, size_t n);

/* Writes an archive of stored members, one after the other. Each member is a header and a body; the body starts at a multiple
 * of 64 bytes when the header's size is one, so that a reader can use it in place. Bytes depend on nothing but the arguments. */
typedef struct ZipWriter {
    ZipSink  *sink;
    void     *to;
    Arena    *arena;
    uint64_t  offset;
    int64_t   n, cap;
    struct ZipEntry *entries;
    bool      failed;
} ZipWriter;

void zip_begin(ZipWriter *z, Arena *a, ZipSink *sink, void *to);
void zip_member(ZipWriter *z, const char *name, const void *head, size_t head_size, const void *body, size_t body_size);
bool zip_end(ZipWriter *z); /* false when any write failed */

#endif
