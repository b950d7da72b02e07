/* Arrays become the arguments and the result of a snapshot: leaves are bound as for a run, parted between the partitions and put together to tuples. */
#include "config.h"

#include "driver/snapshot_values.h"

#include <string.h>

#include "data/npz.h"
#include "driver/devices.h"
#include "driver/inputs.h"

/* The signature with an axis of n in front of every argument. NULL after reporting: a size that is not known. */
static Signature *stacked(Arena *a, const Signature *s, int32_t n, Diag *d)
{
    Signature *t = arena_copy(a, s, sizeof *s);
    t->args = arena_copy(a, s->args, (size_t)s->n_args * sizeof *s->args);
    for (int32_t k = 0; k < t->n_args; k++) {
        if (shape_is_dynamic(s->args[k].shape)) {
            diag_error(d, LOC_NONE, "argument %s of several partitions cannot have a dynamic size", s->args[k].name);
            return NULL;
        }
        t->args[k].shape = devices_shape(a, s->args[k].shape, n);
    }
    return t;
}

/* Array p of the axis in front. */
static Literal *part(const Literal *all, int32_t p)
{
    Literal *one = literal_new(all->type, all->rank - 1, all->dims + 1);
    size_t   size = (size_t)literal_bytes(one);
    if (size > 0)
        memcpy(one->data, (const char *)all->data + (size_t)p * size, size);
    return one;
}

static bool read_arguments(const Module *m, const ValueFiles *files, const Signature *sig, Snapshot *s, Diag *d)
{
    Arena       *a = d->arena;
    int32_t      n = files->n_partitions;
    Signature   *want = n > 1 ? stacked(a, sig, n, d) : arena_copy(a, sig, sizeof *sig);
    Literal    **leaves = ARENA_ARRAY(a, Literal *, sig->n_args), **parts = ARENA_ARRAY(a, Literal *, sig->n_args);
    InputSources from = {.n_files = files->args != NULL, .files = &files->args};
    const Literal **args = ARENA_ARRAY(a, const Literal *, (int64_t)n * m->entry->n_params);
    bool            good = want && inputs_bind(a, want, &from, leaves, d);
    for (int32_t p = 0; good && p < n; p++) {
        for (int32_t k = 0; k < sig->n_args; k++)
            parts[k] = n > 1 ? part(leaves[k], p) : literal_ref(leaves[k]);
        Literal *const *next = parts;
        for (int32_t k = 0; k < m->entry->n_params; k++)
            args[p * m->entry->n_params + k] = literal_keep(a, leaves_gather(m->entry_params->v[k], &next));
        literals_unref(sig->n_args, parts);
    }
    if (want)
        literals_unref(sig->n_args, leaves);
    s->args = args;
    s->n_args = m->entry->n_params;
    s->n_partitions = n;
    return good;
}

static bool read_results(const Module *m, const char *path, const Signature *sig, Snapshot *s, Diag *d)
{
    Arena           *a = d->arena;
    const ArrayFile *f = array_file_read(a, path, signature_bytes(sig), d);
    Literal        **leaves = ARENA_ARRAY(a, Literal *, sig->n_results);
    bool             good = f != NULL;
    if (good && f->n != sig->n_results) {
        diag_error(d, LOC_NONE, "%s: %d arrays for a module with %d results", path, f->n, sig->n_results);
        good = false;
    }
    for (int32_t k = 0; good && k < sig->n_results; k++) {
        const char     *name = sig->results[k].name;
        const NpyArray *x = f->npy ? &f->v[0] : array_file_find(f, name);
        if (!x)
            diag_error(d, LOC_NONE, "%s: there is no array '%s'", path, name);
        leaves[k] = x ? literal_from_array(x, sig->results[k].shape, arena_printf(a, "%s: %s", path, name), d) : NULL;
        good = leaves[k] != NULL;
    }
    if (good) {
        Literal *const *next = leaves;
        s->result = literal_keep(a, leaves_gather(m->entry_result, &next));
    }
    literals_unref(sig->n_results, leaves);
    return good;
}

bool snapshot_values(const Module *m, const ValueFiles *files, Snapshot *s, Diag *d)
{
    const Signature *sig = signature_of(d->arena, m, d);
    return sig && read_arguments(m, files, sig, s, d) && (!files->results || read_results(m, files->results, sig, s, d));
}
