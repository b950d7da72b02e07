/* Arrays from and to files: .npy, .npz (stored and deflated, zip64), .safetensors, each of them gzipped, too. Names of members are
 * without ".npy". Types follow NumPy where it has them. What the bytes mean for bf16, f8, s4 is decided by the module:
 *
 *   pred                          bool
 *   s8 ... s64, u8 ... u64        int8 ... uint64
 *   f16 f32 f64 c64 c128          the same
 *   bf16                          uint16, the bits (read also: V2)
 *   f8, f6, f4                    uint8, the bits in the low end (read also: V1)
 *   s4 s2 s1, u4 u2 u1            int8, uint8: one value each (read also: V1)
 *
 * A .safetensors file has names of its own for bf16 (BF16), f8e4m3fn (F8_E4M3), f8e5m2, f8e8m0fnu, their FNUZ forms and f4e2m1fn (F4, two
 * values a byte, read only); of the module they are that type and no other. The rest is as above; it has no c128.
 */
#ifndef DATA_NPZ_H
#define DATA_NPZ_H

#include "ir/literal.h"
#include "support/diag.h"

typedef struct NpyArray {
    const char    *name;   /* "arg0"; NULL for a lone .npy */
    char           kind;   /* NumPy's letter: b i u f c V */
    int            bytes;  /* per element */
    const TypeInfo *is;    /* the type itself, where the file names one that NumPy does not have (BF16); else NULL */
    int32_t        rank;
    const int64_t *dims;
    int64_t        count;
    const void    *data;   /* row-major, little endian (converted on reading when it was not); of any alignment. NULL: it was not unpacked */
    size_t         size;   /* count * bytes */
} NpyArray;

typedef struct ArrayFile {
    const char     *path;
    bool            npy; /* one array, without a name */
    int32_t         n;
    const NpyArray *v;
} ArrayFile;

/* Reads path ("-": stdin), content decides the format. NULL after reporting to d. Everything lives in a; large files are mapped.
 * most: nobody can want more bytes than that in all, and no larger array is unpacked (a small file may hold terabytes of zeros);
 * negative: nobody knows, and what is packed may become host_unpacked_limit. */
enum { ARRAY_ANY = -1 };
const ArrayFile *array_file_read(Arena *a, const char *path, int64_t most, Diag *d);
/* The same of the bytes p[0..n), which must outlive a. name stands for the path in messages. */
const ArrayFile *array_file_parse(Arena *a, const char *name, const void *p, size_t n, int64_t most, Diag *d);
/* What is in a file of no format, mapped likewise. False after reporting. */
bool array_file_bytes(Arena *a, const char *path, const void **p, size_t *n, Diag *d);
const NpyArray  *array_file_find(const ArrayFile *f, const char *name); /* NULL when absent */

/* The array as a literal of shape s. A dynamic dimension of s takes any size up to its bound. The literal may point into the file,
 * so the arena of the file must outlive it. NULL after reporting which type or dims were expected and found; what names the array in
 * messages. */
Literal *literal_from_array(const NpyArray *x, const Shape *s, const char *what, Diag *d);

/* Writes .npz (stored) or, for a path ending so, .safetensors or (one value) .npy; "-" is stdout. names[k] are the member names. A file
 * is written to a temporary and renamed. False after reporting. */
bool array_file_write(Arena *a, const char *path, int32_t n, const char *const *names, Literal *const *values, Diag *d);

/* "float32 (2, 3)" */
char *array_text(Arena *a, const NpyArray *x);

/* The .npy form (data/npy.c): one array's header and data, n bytes, of which the first `held` are at p; without data when those are fewer. */
bool        npy_parse(Arena *a, const uint8_t *p, size_t held, size_t n, const char *what, NpyArray *out, Diag *d);
void        npy_header(Buf *b, const Literal *l);
const char *npy_type_text(char kind, int bytes); /* "float32", "uint8", "bool", "V2" */
/* How a type is stored: NumPy's letter and size. */
char        npy_kind(Type t);

/* The .safetensors form (data/safetensors.c). It has no magic number; these look like one: a length and the brace of the header. */
bool safetensors_looks(const uint8_t *p, size_t n);
/* f gets the arrays; they point into p[0..n). f->path names the file in messages. */
bool safetensors_parse(Arena *a, const uint8_t *p, size_t n, ArrayFile *f, Diag *d);
/* Into the empty b: all that stands before the data, which are the values' bytes one after the other. False after reporting. */
bool safetensors_header(Buf *b, int32_t n, const char *const *names, Literal *const *values, Diag *d);

#endif
