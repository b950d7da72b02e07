/* Arguments: from files, from a manifest, made up. */
#ifndef DRIVER_INPUTS_H
#define DRIVER_INPUTS_H

#include "data/fill.h"
#include "driver/signature.h"

typedef struct InputSources {
    int               n_files; /* .npz, .safetensors and .npy files, in the order given */
    const char *const *files;
    int               n_raws;  /* [NAME=]FILE: the bytes of one argument, of NAME or of the next that has none yet */
    const char *const *raws;
    int               n_texts; /* [NAME=]LITERAL, likewise */
    const char *const *texts;
    const struct Manifest *manifest; /* NULL: none */
    int64_t           devices; /* arrays may have an axis of so many in front; 0, 1: none has */
    Literal *const   *fakes;  /* one per argument, made up; NULL: none */
} InputSources;

/* Fills args[0..n_args), one reference each: what the files have, then what the manifest makes, then the made-up ones. Everything that
 * is missing, left over, given twice or of another shape or type is reported to d; false then (args may be partly filled). */
bool inputs_bind(Arena *a, const Signature *s, const InputSources *from, Literal **args, Diag *d);

/* The argument called so: argK, arr_K, or the parameter's name with the index of the leaf; also the name in the text where that was taken, and the
 * parameter is now name.1, if one alone can be meant. -1: there is none. */
int32_t argument_called(const Signature *s, const char *name);
/* [NAME=]DISTRIBUTION entries (data/dist.h), the last for an argument counts, one without a name is for all. False after reporting. */
bool    inputs_dists(Arena *a, const Signature *s, int n, const char *const *entries, FakeDists *out, Diag *d);

/* The array leaves of values[0..n) (tuples flattened, tokens left out), one reference each, into out. Gives their number. */
int32_t leaves_flatten(int32_t n, Literal *const *values, Literal **out);
/* The other way: a value of shape s made of leaves from *next on. */
Literal *leaves_gather(const Shape *s, Literal *const **next);

void literals_unref(int32_t n, Literal **v);

#endif
