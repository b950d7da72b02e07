/* Reading a manifest through cJSON. What is read is checked here: kinds, numbers in range. */
#include "config.h"

#include "data/manifest.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/fill.h"

static bool bad(const Manifest *m, const char *what, int32_t k, Diag *d)
{
    diag_error(d, LOC_NONE, "%s: %s: %s %d is not as a manifest has it", m->path, m->key, what, k);
    return false;
}

/* A number member; false when it is there and is none. Absent leaves *out alone. */
static bool number(const cJSON *o, const char *name, double *out)
{
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(o, name);
    if (!x)
        return true;
    if (!cJSON_IsNumber(x))
        return false;
    *out = x->valuedouble;
    return true;
}

static bool whole(const cJSON *o, const char *name, int64_t *out)
{
    double v = 0;
    if (!number(o, name, &v) || v != floor(v) || v < -0x1p62 || v > 0x1p62)
        return false;
    *out = (int64_t)v;
    return true;
}

static bool read_fill(const cJSON *o, Fill *f)
{
    static const char *const kinds[] = {
        [FILL_FILE] = "file", [FILL_UNIFORM] = "uniform", [FILL_INT] = "int", [FILL_CONST] = "const"};
    const cJSON *kind = cJSON_GetObjectItemCaseSensitive(o, "kind");
    if (!cJSON_IsString(kind))
        return false;
    int64_t seed = 0;
    for (int k = 0; k < 4; k++)
        if (!strcmp(kinds[k], kind->valuestring)) {
            f->kind = (FillKind)k;
            f->scale = 1;
            bool ok = whole(o, "seed", &seed) && whole(o, "lo", &f->lo) && whole(o, "hi", &f->hi) && number(o, "scale", &f->scale) &&
                      number(o, "offset", &f->offset) && number(o, "value", &f->value);
            f->seed = (uint64_t)seed;
            return ok && (f->kind != FILL_INT || f->lo < f->hi);
        }
    return false;
}

static bool read_args(Arena *a, Manifest *m, const cJSON *list, Diag *d)
{
    m->n_args = cJSON_GetArraySize(list);
    m->args = ARENA_ARRAY(a, ManifestArg, m->n_args);
    int32_t      k = 0;
    const cJSON *x;
    cJSON_ArrayForEach(x, list)
    {
        const cJSON *shape = cJSON_GetObjectItemCaseSensitive(x, "shape");
        if (!cJSON_IsString(shape) || !read_fill(cJSON_GetObjectItemCaseSensitive(x, "fill"), &m->args[k].fill))
            return bad(m, "argument", k, d);
        m->args[k++].shape = arena_strndup(a, shape->valuestring, strlen(shape->valuestring));
    }
    return true;
}

static bool read_results(Arena *a, Manifest *m, const cJSON *list, Diag *d)
{
    m->n_results = cJSON_GetArraySize(list);
    m->results = ARENA_ARRAY(a, ManifestResult, m->n_results);
    int32_t      k = 0;
    const cJSON *x;
    cJSON_ArrayForEach(x, list)
    {
        ManifestResult *r = &m->results[k];
        if (!number(x, "rtol", &r->rtol) || !number(x, "atol", &r->atol) || !(r->rtol >= 0) || !(r->atol >= 0))
            return bad(m, "result", k, d);
        k++;
    }
    return true;
}

static char *real_path(Arena *a, const char *path)
{
    char *real = realpath(path, NULL);
    if (!real)
        return NULL;
    char *kept = arena_strndup(a, real, strlen(real));
    free(real);
    return kept;
}

/* The module's path below the manifest's folder, without ".hlo"; NULL when it is not below it. */
static const char *key_of(Arena *a, const char *manifest, const char *module)
{
    char *m = real_path(a, manifest), *p = real_path(a, module);
    if (!m || !p)
        return NULL;
    size_t folder = (size_t)(strrchr(m, '/') + 1 - m), n = strlen(p);
    if (strncmp(m, p, folder) != 0)
        return NULL;
    if (n > 4 && !strcmp(p + n - 4, ".hlo"))
        p[n - 4] = 0;
    return p + folder;
}

static bool read_entry(Arena *a, Manifest *m, const cJSON *root, Diag *d)
{
    const cJSON *e = cJSON_GetObjectItemCaseSensitive(root, m->key);
    if (!e) {
        diag_error(d, LOC_NONE, "%s: no entry '%s'", m->path, m->key);
        return false;
    }
    return read_args(a, m, cJSON_GetObjectItemCaseSensitive(e, "args"), d) &&
           read_results(a, m, cJSON_GetObjectItemCaseSensitive(e, "results"), d);
}

const Manifest *manifest_read(Arena *a, const char *path, const char *key, const char *module_path, Diag *d)
{
    Manifest *m = ARENA_NEW(a, Manifest);
    Buf       b = { 0 };
    if (!buf_read_file(&b, path)) {
        diag_error(d, LOC_NONE, "%s: %s", path, strerror(errno));
        buf_free(&b);
        return NULL;
    }
    m->path = path;
    m->key = key ? key : key_of(a, path, module_path);
    cJSON *root = cJSON_ParseWithLength(b.p ? b.p : "", b.n);
    buf_free(&b);
    bool ok = false;
    if (!cJSON_IsObject(root))
        diag_error(d, LOC_NONE, "%s: not a JSON object", path);
    else if (!m->key)
        diag_error(d, LOC_NONE, "%s: the module %s is not below its folder (--fill=FILE:KEY names the entry)", path, module_path);
    else
        ok = read_entry(a, m, root, d);
    cJSON_Delete(root);
    return ok ? m : NULL;
}

const char *manifest_near(Arena *a, const char *module_path)
{
    char *p = real_path(a, module_path);
    for (char *slash = p ? strrchr(p, '/') : NULL; slash; slash = strrchr(p, '/')) {
        *slash = 0;
        const char *path = arena_printf(a, "%s/manifest.json", p);
        if (!access(path, R_OK))
            return path;
    }
    return NULL;
}

Literal *manifest_arg(const Manifest *m, int32_t k, const Shape *s, Diag *d)
{
    const char *shape = shape_text(d->arena, s);
    if (k >= m->n_args || strcmp(shape, m->args[k].shape) != 0) {
        diag_error(d, LOC_NONE, "%s: %s: argument %d is %s in the manifest, the module has %s", m->path, m->key, k,
                   k < m->n_args ? m->args[k].shape : "missing", shape);
        return NULL;
    }
    const Fill *f = &m->args[k].fill;
    if (f->kind == FILL_FILE)
        return NULL;
    Literal *l = literal_for_shape(s, false);
    switch (f->kind) {
    case FILL_UNIFORM: fill_uniform(l, f->seed, f->scale, f->offset); break;
    case FILL_INT: fill_int(l, f->seed, f->lo, f->hi); break;
    case FILL_CONST: fill_const(l, f->value); break;
    case FILL_FILE: break;
    }
    return l;
}
