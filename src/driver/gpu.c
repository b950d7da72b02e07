/* Can CUDA run here? The driver's own library is asked, which is there where a driver is; nothing of the toolkit is linked. */
#include "config.h"

#include "driver/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "driver/process.h"

typedef struct Driver {
    int (*init)(unsigned flags);
    int (*count)(int *n);
    int (*version)(int *v); /* 1000 * major + 10 * minor */
} Driver;

static bool load_driver(void *library, Driver *to)
{
    void *init = dlsym(library, "cuInit"), *count = dlsym(library, "cuDeviceGetCount"), *version = dlsym(library, "cuDriverGetVersion");
    memcpy(&to->init, &init, sizeof init);
    memcpy(&to->count, &count, sizeof count);
    memcpy(&to->version, &version, sizeof version);
    return init && count && version;
}

/* Of "... release 13.0, V13.0.88"; 0: not known. */
static int version_of(Arena *a, const char *nvcc)
{
    Buf         said = { 0 };
    int         version = 0;
    const char *release = NULL;
    if (program_run((const char *const[]){ nvcc, "--version", NULL }, NULL, &said) == 0)
        release = strstr(arena_strndup(a, said.p ? said.p : "", said.n), "release ");
    if (release) {
        char *end;
        long  major = strtol(release + strlen("release "), &end, 10);
        version = (int)major * 1000 + (*end == '.' ? 10 * (int)strtol(end + 1, NULL, 10) : 0);
    }
    buf_free(&said);
    return version;
}

/* A driver runs what toolkits of its major version make, and of earlier ones. */
static bool check_driver(const Driver *x, int nvcc, Diag *d)
{
    int n = 0, version = 0;
    int e = x->init(0);
    if (e || x->count(&n) || n == 0)
        diag_error(d, LOC_NONE, "--backend=cuda: no GPU: the driver finds none (cuInit gives %d)", e);
    else if (!x->version(&version) && version / 1000 < nvcc / 1000)
        diag_error(d, LOC_NONE, "--backend=cuda: wrong driver: it knows CUDA %d.%d, nvcc is of %d.%d", version / 1000, version % 1000 / 10, nvcc / 1000, nvcc % 1000 / 10);
    else
        return true;
    return false;
}

bool gpu_ready(const char *cc, Diag *d)
{
    const char *nvcc = cc ? program_find(d->arena, cc) : program_find(d->arena, "nvcc");
    if (!nvcc && !cc)
        nvcc = program_find(d->arena, "/usr/local/cuda/bin/nvcc");
    if (!nvcc) {
        diag_error(d, LOC_NONE, "--backend=cuda: no compiler: %s is not there (--cc=PROGRAM names it)", cc ? cc : "nvcc");
        return false;
    }
    Driver driver;
    void  *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    bool   ok = library && load_driver(library, &driver);
    if (!ok)
        diag_error(d, LOC_NONE, "--backend=cuda: no GPU: the driver's library, libcuda.so.1, is not there");
    ok = ok && check_driver(&driver, version_of(d->arena, nvcc), d);
    if (!ok)
        diag_note(d, LOC_NONE, "--backend=cudasim runs the same text on the CPU");
    return ok;
}
