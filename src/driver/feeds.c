/* Arrays between a run and files. */
#include "config.h"

#include "driver/feeds.h"

#include "data/npz.h"

struct Feeds {
    Arena           *arena;
    Diag            *d;
    const ArrayFile *file; /* NULL: none */
    int32_t          next; /* infeed */
    VEC(Literal *)   out;
    EvalHost         host;
};

static Literal *next_array(void *cookie, const Shape *s)
{
    Feeds          *f = cookie;
    const char     *const forms[] = { "infeed", "outfeed", "arr_" };
    const char     *name = NULL;
    const NpyArray *x = NULL;
    for (size_t k = 0; k < sizeof forms / sizeof *forms && !x; k++) {
        name = arena_printf(f->arena, "%s%d", forms[k], f->next);
        x = array_file_find(f->file, name);
    }
    if (!x) {
        diag_error(f->d, LOC_NONE, "%s: there is no member 'infeed%d'", f->file->path, f->next);
        return NULL;
    }
    f->next++;
    return literal_from_array(x, s, arena_printf(f->arena, "%s: member '%s'", f->file->path, name), f->d);
}

static void keep_array(void *cookie, Literal *l)
{
    Feeds *f = cookie;
    vec_push(f->arena, &f->out, l);
}

static void drop_arrays(void *cookie)
{
    Feeds *f = cookie;
    for (int32_t k = 0; k < f->out.n; k++)
        literal_unref(f->out.v[k]);
    f->out.n = 0;
}

Feeds *feeds_open(Arena *a, const char *in, bool out, Diag *d)
{
    Feeds *f = ARENA_NEW(a, Feeds);
    *f = (Feeds){ .arena = a, .d = d, .host = { .cookie = f, .infeed = in ? next_array : NULL, .outfeed = out ? keep_array : NULL } };
    if (in && !(f->file = array_file_read(a, in, ARRAY_ANY, d)))
        return NULL;
    arena_defer(a, drop_arrays, f);
    return f;
}

const EvalHost *feeds_host(const Feeds *f)
{
    return &f->host;
}

void feeds_rewind(Feeds *f)
{
    f->next = 0;
    drop_arrays(f);
}

bool feeds_done(Feeds *f)
{
    if (!f->file || f->next == f->file->n)
        return true;
    diag_error(f->d, LOC_NONE, "%s: left over: it has %d arrays, infeeds took %d", f->file->path, f->file->n, f->next);
    return false;
}

bool feeds_write(Feeds *f, const char *path)
{
    const char **names = ARENA_ARRAY(f->arena, const char *, f->out.n);
    for (int32_t k = 0; k < f->out.n; k++)
        names[k] = arena_printf(f->arena, "outfeed%d", k);
    return array_file_write(f->arena, path, f->out.n, names, f->out.v, f->d);
}
