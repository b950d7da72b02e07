/* Arrays from and to files: .npy, .npz (stored and deflated, zip64). Names of members are without ".npy".
 * Types follow NumPy where it has them; see DESIGN in doc/. What the bytes mean for bf16, f8, s4 is decided by the module. */
#ifndef DATA_NPZ_H
#define DATA_NPZ_H

#include "ir/literal.h"
#include "support/diag.h"

typedef struct NpyArray {
    const char    *name;   /* "arg0"; NULL for a lone .npy */
    char           kind;   /* NumPy's letter: b i u f c V */
    int            bytes;  /* per element */
    int32_t        rank;
    const int64_t *dims;
    int64_t        count;
    const void    *data;   /* row-major, little endian (converted on reading when it was not) */
} NpyArray;

typedef struct ArrayFile {
    const char     *path;
    int32_t         n;
    const NpyArray *v;
} ArrayFile;

/* Reads path ("-": stdin), content decides the format. NULL after reporting to d. Everything lives in a. */
const ArrayFile *array_file_read(Arena *a, const char *path, Diag *d);
const NpyArray  *array_file_find(const ArrayFile *f, const char *name); /* NULL when absent */

/* The array as a literal of shape s (dense; bf16 from uint16 or V2 bits, f8, f6 and f4 from uint8, sub-byte integers one a byte, pred from bool).
 * NULL after reporting which type or dims were expected and found; what names the array in messages. */
Literal *literal_from_array(const NpyArray *x, const Shape *s, const char *what, Diag *d);

/* Writes .npz (stored) or, for a path ending in .npy and one value, .npy. names[k] are the member names. False after reporting. */
bool array_file_write(const char *path, int32_t n, const char *const *names, Literal *const *values, Diag *d);

#endif
