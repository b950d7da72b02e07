/* Manifests: a JSON file beside or above modules that says, for each of them, how its arguments are made and how near its results
 * must come.
 *
 *   { "nets/mlp": {
 *       "args":    [ {"shape": "f32[4,8]", "fill": {"kind": "uniform", "seed": 3, "scale": 0.5, "offset": 0.0}}, ... ],
 *       "results": [ {"shape": "f32[4]", "rtol": 1e-05, "atol": 0.0}, ... ] }, ... }
 *
 * The key is the module's path from the manifest's folder without ".hlo". Kinds of fill: uniform (seed, scale, offset), int
 * (seed, lo, hi exclusive), const (value), file (the values are in an .npz only). Other members are ignored. */
#ifndef DATA_MANIFEST_H
#define DATA_MANIFEST_H

#include "ir/literal.h"
#include "support/diag.h"

typedef enum FillKind { FILL_FILE, FILL_UNIFORM, FILL_INT, FILL_CONST } FillKind;

typedef struct Fill {
    FillKind kind;
    uint64_t seed;
    double   scale, offset, value;
    int64_t  lo, hi;
} Fill;

typedef struct ManifestArg {
    const char *shape; /* as written */
    Fill        fill;
} ManifestArg;

typedef struct ManifestResult {
    double rtol, atol;
} ManifestResult;

typedef struct Manifest {
    const char     *path, *key;
    int32_t         n_args, n_results;
    ManifestArg    *args;
    ManifestResult *results;
} Manifest;

/* The entry called key in the manifest at path; key NULL: the module's. NULL after reporting: no such file, not a manifest, no
 * entry. */
const Manifest *manifest_read(Arena *a, const char *path, const char *key, const char *module_path, Diag *d);

/* The nearest manifest.json beside or above the module, NULL when there is none. */
const char *manifest_near(Arena *a, const char *module_path);

/* Argument k as a literal of shape s; the shape in the manifest must be s. NULL after reporting, and for FILL_FILE without a
 * report. */
Literal *manifest_arg(const Manifest *m, int32_t k, const Shape *s, Diag *d);

#endif
