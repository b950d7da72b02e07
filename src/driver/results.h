/* Results: shown, stored, compared. */
#ifndef DRIVER_RESULTS_H
#define DRIVER_RESULTS_H

#include "driver/signature.h"

/* One line a result: "out0 = f32[3] {1, 2, 3}". More than 100 elements are shortened to the ends of every dimension, unless full. */
void results_print(Buf *b, const Signature *s, Literal *const *results, bool full);

bool results_write(Arena *a, const char *path, const Signature *s, Literal *const *results, Diag *d);

/* Which tolerance holds for a result: the one given on the command line, else the manifest's, else the default. */
typedef struct Tolerances {
    bool             given;
    Tolerance        value;
    const struct Manifest *manifest; /* NULL: none */
    bool             json;   /* the report: an object a line for every result (results_json.c) */
    int32_t          worst;  /* how many of the worst elements it shows; 0: as ever */
} Tolerances;

/* {"result": "out0", ...} of one comparison, and a newline. from: "given", "manifest" or "default", where the tolerance comes from. */
/* The members of such an object behind its name, each with ", " in front. */
void comparison_json(Buf *b, const Literal *actual, const Literal *expected, const Tolerance *t, const char *from, const Comparison *c);
void results_json(Buf *b, const char *name, const Literal *actual, const Literal *expected, const Tolerance *t, const char *from, const Comparison *c);

typedef enum Verdict { RESULTS_AGREE, RESULTS_DIFFER, RESULTS_TROUBLE } Verdict;

/* Against the arrays of a file: out0, out1, ... or their fingerprints (outK.head, .tail, .sum, .sumsq), or arr_K, or one .npy. A line or a
 * report for every result goes to b. TROUBLE after reporting to d: a result that the file lacks, has too much or has in another shape. */
Verdict results_expect(Buf *b, Arena *a, const char *path, const Signature *s, Literal *const *results, const Tolerances *t, Diag *d);

/* The arrays of such a file, without fingerprints: one reference each, not to be used after a. False after reporting. */
bool results_read(Arena *a, const char *path, const Signature *s, Literal *const *results, Literal **expected, Diag *d);

/* Against other results of the same signature. */
Verdict results_against(Buf *b, const Signature *s, Literal *const *results, Literal *const *expected, const Tolerances *t);

#endif
