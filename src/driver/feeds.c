/* Arrays between a run and files. */
#include "config.h"

#include "driver/feeds.h"

#include <stdlib.h>
#include <string.h>

#include "data/npz.h"
#include "driver/devices.h"
#include "driver/inputs.h"

typedef struct Line { /* of one device */
    int32_t        next; /* infeed */
    VEC(Literal *) out;
} Line;

struct Feeds {
    Arena           *arena;
    Diag            *d;
    const ArrayFile *file; /* NULL: none */
    int64_t          n;
    Line            *lines; /* by device */
    Ints             assignment;
    EvalHost         host;
};

static int64_t device_of(const Feeds *f, int32_t process)
{
    return f->assignment.n > 0 ? f->assignment.v[process] : process;
}

/* The array, or the device's slice of it. */
static Literal *array_for(const Feeds *f, int64_t device, const NpyArray *x, const Shape *s, const char *what)
{
    if (f->n == 1 || x->rank != s->rank + 1)
        return literal_from_array(x, s, what, f->d);
    Literal *all = literal_from_array(x, devices_shape(f->arena, s, f->n), what, f->d);
    if (!all)
        return NULL;
    Literal *own = literal_new(s->type, all->rank - 1, all->dims + 1);
    size_t   bytes = (size_t)literal_bytes(own);
    if (bytes > 0)
        memcpy(own->data, (const char *)all->data + (size_t)device * bytes, bytes);
    literal_unref(all);
    return own;
}

static Literal *next_array(void *cookie, int32_t process, const Shape *s)
{
    Feeds          *f = cookie;
    int64_t         device = device_of(f, process);
    int32_t         number = f->lines[device].next;
    const char     *const forms[] = { "infeed", "outfeed", "arr_" };
    const char     *name = NULL;
    const NpyArray *x = NULL;
    for (size_t k = 0; k < sizeof forms / sizeof *forms && !x; k++) {
        name = arena_printf(f->arena, "%s%d", forms[k], number);
        x = array_file_find(f->file, name);
    }
    if (!x) {
        diag_error(f->d, LOC_NONE, "%s: there is no member 'infeed%d'", f->file->path, number);
        return NULL;
    }
    f->lines[device].next++;
    return array_for(f, device, x, s, arena_printf(f->arena, "%s: member '%s'", f->file->path, name));
}

static void keep_array(void *cookie, int32_t process, Literal *l)
{
    Feeds *f = cookie;
    Line  *line = &f->lines[device_of(f, process)];
    vec_push(f->arena, &line->out, l);
}

static void drop_arrays(void *cookie)
{
    Feeds *f = cookie;
    for (int64_t d = 0; d < f->n; d++) {
        literals_unref(f->lines[d].out.n, f->lines[d].out.v);
        f->lines[d].out.n = 0;
    }
}

Feeds *feeds_open(Arena *a, const char *in, bool out, int64_t n, Ints assignment, Diag *d)
{
    Feeds *f = ARENA_NEW(a, Feeds);
    *f = (Feeds){ .arena = a, .d = d, .n = n, .lines = ARENA_ARRAY(a, Line, n), .assignment = assignment };
    f->host = (EvalHost){ .cookie = f, .infeed = in ? next_array : NULL, .outfeed = out ? keep_array : NULL };
    if (in && !(f->file = array_file_read(a, in, ARRAY_ANY, d)))
        return NULL;
    arena_defer(a, drop_arrays, f);
    return f;
}

const EvalHost *feeds_host(const Feeds *f)
{
    return &f->host;
}

/* The shape that emitted text writes as "f32[2,3]". */
static const Shape *shape_of(Arena *a, const char *text)
{
    size_t  n = strcspn(text, "[");
    Type    t = type_lookup(text, n);
    VEC(int64_t) dims = {0};
    for (const char *p = text + n; (*p == '[' || *p == ',') && p[1] != ']'; p += strcspn(p, ",]")) {
        p++;
        vec_push(a, &dims, strtoll(p, NULL, 10));
    }
    return t == TYPE_COUNT ? NULL : shape_array(a, t, dims.n, dims.v);
}

bool feeds_put(Feeds *f, int32_t process, const char *type, int64_t bytes, void *to)
{
    Arena       *a = arena_new();
    const Shape *s = shape_of(a, type);
    Literal     *l = s && f->host.infeed ? f->host.infeed(f, process, s) : NULL;
    bool         ok = l && literal_bytes(l) == bytes;
    if (ok && bytes > 0)
        memcpy(to, l->data, (size_t)bytes);
    literal_unref(l);
    arena_free(a);
    return ok;
}

bool feeds_take(Feeds *f, int32_t process, const char *type, int64_t bytes, const void *from)
{
    Arena       *a = arena_new();
    const Shape *s = shape_of(a, type);
    bool         ok = s && f->host.outfeed && shape_bytes(s) == bytes;
    if (ok) {
        Literal *l = literal_new(s->type, s->rank, s->dims);
        if (bytes > 0)
            memcpy(l->data, from, (size_t)bytes);
        f->host.outfeed(f, process, l);
    }
    arena_free(a);
    return ok;
}

void feeds_rewind(Feeds *f)
{
    for (int64_t d = 0; d < f->n; d++)
        f->lines[d].next = 0;
    drop_arrays(f);
}

bool feeds_done(Feeds *f)
{
    for (int64_t d = 0; f->file && d < f->n; d++) {
        int32_t taken = f->lines[d].next;
        if (taken == f->file->n)
            continue;
        diag_error(f->d, LOC_NONE, "%s: left over: it has %d arrays, infeeds%s took %d", f->file->path, f->file->n,
                   f->n > 1 ? arena_printf(f->arena, " of device %lld", (long long)d) : "", taken);
        return false;
    }
    return true;
}

/* Array k of all devices; NULL: one has none, or one of another type or size. */
static Literal *stacked(const Feeds *f, int32_t k)
{
    const Literal **v = ARENA_ARRAY(f->arena, const Literal *, f->n);
    for (int64_t d = 0; d < f->n; d++) {
        if (k >= f->lines[d].out.n)
            return NULL;
        v[d] = f->lines[d].out.v[k];
    }
    return literal_stack(f->n, v);
}

/* One reference each; false after reporting. */
static bool collect(Feeds *f, int32_t n, Literal **v, bool axis)
{
    for (int32_t k = 0; k < n; k++) {
        v[k] = !axis && k < f->lines[0].out.n ? literal_ref(f->lines[0].out.v[k]) : axis ? stacked(f, k) : NULL;
        if (v[k])
            continue;
        diag_error(f->d, LOC_NONE, "outfeed%d is not given by all devices, or not of one size: --device-axis=no stores what device 0 gives",
                   k);
        literals_unref(k, v);
        return false;
    }
    return true;
}

bool feeds_write(Feeds *f, const char *path, bool axis)
{
    int32_t n = f->lines[0].out.n;
    for (int64_t d = 1; d < f->n && axis; d++)
        n = f->lines[d].out.n > n ? f->lines[d].out.n : n;
    const char **names = ARENA_ARRAY(f->arena, const char *, n);
    Literal    **v = ARENA_ARRAY(f->arena, Literal *, n);
    if (!collect(f, n, v, axis && f->n > 1))
        return false;
    for (int32_t k = 0; k < n; k++)
        names[k] = arena_printf(f->arena, "outfeed%d", k);
    bool ok = array_file_write(f->arena, path, n, names, v, f->d);
    literals_unref(n, v);
    return ok;
}
