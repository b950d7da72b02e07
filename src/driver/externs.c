/* Symbols are global, so that the loader binds compiled modules to them by itself. */
#include "config.h"

#include "driver/externs.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

typedef struct Externs {
    ExternCalls calls;
    int         n;
    void      **handles;
} Externs;

static hlo_custom_call *find(void *cookie, const char *symbol)
{
    const Externs   *x = cookie;
    hlo_custom_call *f = NULL;
    for (int k = 0; k < x->n && !f; k++) {
        void *found = dlsym(x->handles[k], symbol);
        memcpy(&f, &found, sizeof f);
    }
    return f;
}

static void close_library(void *handle)
{
    dlclose(handle);
}

/* A file of this folder needs no ./ before it, as with every other option; what is none is looked for where the loader looks. */
static void *open_library(Arena *a, const char *path)
{
    if (!strchr(path, '/') && access(path, F_OK) == 0)
        path = arena_printf(a, "./%s", path);
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

const ExternCalls *externs_open(Arena *a, int n, const char *const *paths, Diag *d)
{
    Externs *x = ARENA_NEW(a, Externs);
    *x = (Externs){.calls = {x, find}, .handles = ARENA_ARRAY(a, void *, n)};
    for (; x->n < n; x->n++) {
        void *handle = open_library(a, paths[x->n]);
        if (!handle) {
            const char *why = dlerror();
            diag_error(d, LOC_NONE, "--custom-call=%s: %s", paths[x->n], why ? why : "it cannot be loaded");
            return NULL;
        }
        arena_defer(a, close_library, handle);
        x->handles[x->n] = handle;
    }
    return &x->calls;
}
