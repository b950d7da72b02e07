/* Binding arguments. A member of an .npz or .safetensors file is argument K when it is called argK or arr_K, or when it has the argument's name. */
#include "config.h"

#include "driver/inputs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "data/manifest.h"
#include "data/npz.h"
#include "driver/devices.h"
#include "driver/inputs_text.h"

typedef struct Binder {
    Arena           *arena;
    const Signature *s;
    Literal        **args;
    const char     **from; /* which file gave it */
    Diag            *d;
    int32_t          next; /* the argument that the next .npy is */
    int64_t          devices;
} Binder;

/* K of "argK" and "arr_K"; -1 for other names. */
static int64_t position(const char *name)
{
    const char *digits = NULL;
    if (!strncmp(name, "arg", 3))
        digits = name + 3;
    else if (!strncmp(name, "arr_", 4))
        digits = name + 4;
    if (!digits || !*digits || strlen(digits) > 9 || strspn(digits, "0123456789") != strlen(digits))
        return -1;
    return strtol(digits, NULL, 10);
}

static const char *argument_text(const Binder *b, int32_t k)
{
    return arena_printf(b->arena, "arg%d (%s %s)", k, shape_text(b->arena, b->s->args[k].shape), b->s->args[k].name);
}

/* Whether argument k is free; it is path's then. */
static bool claim(Binder *b, int32_t k, const char *path)
{
    if (b->from[k]) {
        diag_error(b->d, LOC_NONE, "%s: %s was already given by %s", path, argument_text(b, k), b->from[k]);
        return false;
    }
    b->from[k] = path;
    return true;
}

static void bind(Binder *b, int32_t k, const NpyArray *x, const char *path)
{
    const Shape *s = b->s->args[k].shape;
    if (b->devices > 1 && x->rank == s->rank + 1)
        s = devices_shape(b->arena, s, b->devices);
    if (claim(b, k, path))
        b->args[k] = literal_from_array(x, s, arena_printf(b->arena, "%s: %s", path, argument_text(b, k)), b->d);
}

/* "x.1": the name x, which something else in the text has, too. */
static bool is_numbered(const char *numbered, const char *name)
{
    size_t n = strlen(name), digits;
    if (strncmp(numbered, name, n) != 0 || numbered[n] != '.')
        return false;
    digits = strspn(numbered + n + 1, "0123456789");
    return digits > 0 && !numbered[n + 1 + digits];
}

int32_t argument_called(const Signature *s, const char *name)
{
    int64_t k = position(name);
    int32_t numbered = -1, times = 0;
    if (k >= s->n_args)
        k = -1; /* a parameter may be called so */
    for (int32_t n = 0; k < 0 && n < s->n_args; n++)
        if (!strcmp(s->args[n].name, name)) {
            k = n;
        } else if (is_numbered(s->args[n].name, name)) {
            numbered = n;
            times++;
        }
    return k < 0 && times == 1 ? numbered : (int32_t)k;
}

bool inputs_dists(Arena *a, const Signature *s, int n, const char *const *entries, FakeDists *out, Diag *d)
{
    Dist *leaves = ARENA_ARRAY(a, Dist, s->n_args);
    *out = (FakeDists){.leaves = leaves};
    for (int e = 0; e < n; e++) {
        const char *eq = strchr(entries[e], '='), *text = eq ? eq + 1 : entries[e];
        int32_t     k = eq ? argument_called(s, arena_strndup(a, entries[e], (size_t)(eq - entries[e]))) : -1;
        if (eq && k < 0)
            diag_error(d, LOC_NONE, "--fake-dist=%s: this is no argument: the module has %d", entries[e], s->n_args);
        else if (!dist_parse(text, eq ? &leaves[k] : &out->all))
            diag_error(d, LOC_NONE, "--fake-dist=%s: expected uniform(A,B) with A < B, normal(M,S), large, special or const(V)", entries[e]);
    }
    return d->errors == 0;
}

static void bind_member(Binder *b, const NpyArray *x, const char *path)
{
    int32_t k = argument_called(b->s, x->name);
    if (k >= 0)
        bind(b, k, x, path);
    else
        diag_error(b->d, LOC_NONE, "%s: member '%s' is no argument: the module has %d%s", path, x->name, b->s->n_args,
                   b->s->n_args ? ", called arg0 on or by parameter name" : "");
}

static void bind_file(Binder *b, const char *path)
{
    int64_t          most = signature_bytes(b->s);
    const ArrayFile *f = array_file_read(b->arena, path, size_mul(most, b->devices, &most) ? most : ARRAY_ANY, b->d);
    if (!f)
        return;
    if (!f->npy) {
        for (int32_t k = 0; k < f->n; k++)
            bind_member(b, &f->v[k], f->path);
        return;
    }
    if (b->next < b->s->n_args)
        bind(b, b->next++, &f->v[0], f->path);
    else
        diag_error(b->d, LOC_NONE, "%s: left over: the module has %d argument%s", f->path, b->s->n_args, b->s->n_args == 1 ? "" : "s");
}

/* [NAME=]VALUE: which argument it is, -1 after reporting; *value is set. */
static int32_t named_or_next(Binder *b, const char *option, const char *entry, const char **value)
{
    const char *eq = strchr(entry, '=');
    *value = eq ? eq + 1 : entry;
    if (eq) {
        const char *name = arena_strndup(b->arena, entry, (size_t)(eq - entry));
        int32_t     k = argument_called(b->s, name);
        if (k < 0)
            diag_error(b->d, LOC_NONE, "%s=%s: '%s' is no argument: the module has %d", option, entry, name, b->s->n_args);
        return k;
    }
    for (int32_t k = 0; k < b->s->n_args; k++)
        if (!b->from[k])
            return k;
    diag_error(b->d, LOC_NONE, "%s=%s: left over: the module has %d argument%s", option, entry, b->s->n_args, b->s->n_args == 1 ? "" : "s");
    return -1;
}

static void bind_raw(Binder *b, const char *entry)
{
    const char *path;
    int32_t     k = named_or_next(b, "--raw", entry, &path);
    if (k < 0 || !claim(b, k, path))
        return;
    const Shape *s = b->s->args[k].shape, *all = b->devices > 1 && shape_count(s) > 0 ? devices_shape(b->arena, s, b->devices) : NULL;
    b->args[k] = literal_from_bytes(b->arena, path, s, all, argument_text(b, k), b->d);
}

/* The argument's shape, with the axis of devices where the text has one more pair of braces than the array has dimensions. */
static const Shape *text_shape(const Binder *b, int32_t k, const char *text)
{
    const Shape *s = b->s->args[k].shape;
    int32_t      braces = 0;
    for (text += strcspn(text, "{"); *text == '{' || *text == ' '; text++)
        braces += *text == '{';
    return b->devices > 1 && braces == s->rank + 1 ? devices_shape(b->arena, s, b->devices) : s;
}

static void bind_text(Binder *b, const char *entry)
{
    const char *text;
    int32_t     k = named_or_next(b, "--arg", entry, &text);
    if (k >= 0 && claim(b, k, "--arg"))
        b->args[k] = literal_from_text(text, text_shape(b, k, text), argument_text(b, k), b->d);
}

/* The argument's shape, with the axis of devices where the manifest has it. */
static const Shape *manifest_shape(const Binder *b, const Manifest *m, int32_t k)
{
    const Shape *s = b->s->args[k].shape, *all = devices_shape(b->arena, s, b->devices);
    return b->devices > 1 && k < m->n_args && !strcmp(shape_text(b->arena, all), m->args[k].shape) ? all : s;
}

static void bind_missing(Binder *b, const InputSources *from)
{
    for (int32_t k = 0; k < b->s->n_args; k++) {
        if (b->args[k] || b->from[k])
            continue;
        if (from->manifest)
            b->args[k] = manifest_arg(from->manifest, k, manifest_shape(b, from->manifest, k), b->d);
        if (!b->args[k] && from->fakes)
            b->args[k] = literal_ref(from->fakes[k]);
    }
}

static void report_missing(Binder *b, const InputSources *from)
{
    enum { SHOWN = 5 };
    int32_t missing = 0;
    for (int32_t k = 0; k < b->s->n_args; k++)
        if (!b->args[k] && missing++ < SHOWN)
            diag_error(b->d, LOC_NONE, "no value for argument %s", argument_text(b, k));
    if (missing > SHOWN)
        diag_error(b->d, LOC_NONE, "and for %d more", missing - SHOWN);
    if (missing && !from->n_files && !from->n_raws && !from->n_texts)
        diag_note(b->d, LOC_NONE, "give --inputs=FILE.npz with arg0, arg1, ..., --arg=LITERAL, or --fake=SEED to make values up");
}

bool inputs_bind(Arena *a, const Signature *s, const InputSources *from, Literal **args, Diag *d)
{
    Binder b = { a, s, args, ARENA_ARRAY(a, const char *, s->n_args), d, 0, from->devices > 1 ? from->devices : 1 };
    int    errors = d->errors;
    memset(args, 0, (size_t)s->n_args * sizeof *args);
    for (int k = 0; k < from->n_files; k++)
        bind_file(&b, from->files[k]);
    for (int k = 0; k < from->n_raws; k++)
        bind_raw(&b, from->raws[k]);
    for (int k = 0; k < from->n_texts; k++)
        bind_text(&b, from->texts[k]);
    if (d->errors == errors)
        bind_missing(&b, from);
    if (d->errors == errors)
        report_missing(&b, from);
    return d->errors == errors;
}

int32_t leaves_flatten(int32_t n, Literal *const *values, Literal **out)
{
    int32_t done = 0;
    for (int32_t k = 0; k < n; k++) {
        if (values[k]->type == TYPE_TUPLE)
            done += leaves_flatten(values[k]->n_elems, values[k]->elems, out + done);
        else if (values[k]->type != TYPE_TOKEN)
            out[done++] = literal_ref(values[k]);
    }
    return done;
}

Literal *leaves_gather(const Shape *s, Literal *const **next)
{
    if (s->type == TYPE_TOKEN)
        return literal_token();
    if (!shape_is_tuple(s))
        return literal_ref(*(*next)++);
    Literal *t = literal_tuple(s->n_elems, NULL);
    for (int32_t k = 0; k < s->n_elems; k++)
        t->elems[k] = leaves_gather(s->elems[k], next);
    return t;
}

void literals_unref(int32_t n, Literal **v)
{
    for (int32_t k = 0; k < n; k++) {
        literal_unref(v[k]);
        v[k] = NULL;
    }
}
