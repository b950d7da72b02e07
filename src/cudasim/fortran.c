/* Routines of LAPACK and BLAS as a device's library does them: when their turn comes, by the library of the system, which is loaded then. All arguments are addresses; those of
 * texts have no lengths behind them here, since each is one letter, of which nobody asks the length. */
#define _GNU_SOURCE
#include "cudasim/sim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGS = 16 };

typedef struct Routine {
    char             symbol[16];
    int64_t          calls;
    int              n;
    cudasim_argument args[MOST_ARGS];
} Routine;

/* What an argument's address is of, while the routine runs. */
typedef struct Value {
    int    number;
    char   text;
    double one[2];
    float  narrow[2];
    void  *room;
} Value;

typedef void Function(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, size_t, size_t, size_t, size_t);

static Function *function_of(const char *symbol)
{
    static const char *const files[] = { "libopenblas.so.0", "liblapack.so.3", "libopenblas.so", "liblapack.so" };
    void    *found = dlsym(RTLD_DEFAULT, symbol);
    Function *f = NULL;
    for (size_t k = 0; k < sizeof files / sizeof files[0] && !found; k++) {
        void *file = dlopen(files[k], RTLD_NOW | RTLD_LOCAL);
        found = file ? dlsym(file, symbol) : NULL;
    }
    memcpy(&f, &found, sizeof f);
    return f;
}

static bool is_there(const cudasim_argument *x, const void *p)
{
    return x->value <= 0 || (cudasim_memory_is_device(p, (size_t)x->value) && (uintptr_t)p % x->align == 0);
}

static void *address(const cudasim_argument *x, Value *v, int64_t call)
{
    switch (x->kind) {
    case CUDASIM_TEXT: v->text = (char)x->value; return &v->text;
    case CUDASIM_INT: v->number = (int)x->value; return &v->number;
    case CUDASIM_ROOM: return v->room = calloc(1, x->value > 0 ? (size_t)x->value : 1);
    case CUDASIM_ONE:
        v->one[0] = v->narrow[0] = 1;
        return x->value ? (void *)v->narrow : (void *)v->one;
    case CUDASIM_TABLE: {
        void *p = ((void *const *)x->array)[call];
        if (!is_there(x, p))
            cudasim_fault(NULL, 0, "pointer %lld of a table is no array of %lld bytes on the device", (long long)call, (long long)x->value);
        return is_there(x, p) ? p : NULL;
    }
    case CUDASIM_EACH: return (char *)(uintptr_t)x->array + call * x->value;
    case CUDASIM_ARRAY: break;
    }
    return (void *)(uintptr_t)x->array;
}

static void call_once(const Routine *r, Function *f, int64_t call)
{
    Value          values[MOST_ARGS] = { 0 };
    void          *p[MOST_ARGS] = { 0 };
    bool           good = true;
    for (int k = 0; k < r->n; k++) {
        p[k] = address(&r->args[k], &values[k], call);
        good &= p[k] != NULL || r->args[k].kind == CUDASIM_ARRAY;
    }
    if (!good)
        cudasim_fault(NULL, 0, "no memory for %s", r->symbol);
    else
        f(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14], p[15], 1, 1, 1, 1);
    for (int k = 0; k < r->n; k++)
        free(values[k].room);
}

static void run(void *cookie)
{
    const Routine *r = cookie;
    Function      *f = function_of(r->symbol);
    if (!f)
        cudasim_fault(NULL, 0, "the system has no library with %s", r->symbol);
    for (int64_t call = 0; call < r->calls && f; call++)
        call_once(r, f, call);
}

cudaError_t cudasim_enqueue_fortran(const char *symbol, const cudasim_argument *args, size_t n, cudaStream_t s)
{
    return cudasim_enqueue_fortran_batch(symbol, 1, args, n, s);
}

cudaError_t cudasim_enqueue_fortran_batch(const char *symbol, int64_t calls, const cudasim_argument *args, size_t n, cudaStream_t s)
{
    LOCKED;
    Routine r = { .calls = calls, .n = (int)n };
    if (n > MOST_ARGS || strlen(symbol) >= sizeof r.symbol)
        return cudaErrorInvalidValue;
    snprintf(r.symbol, sizeof r.symbol, "%s", symbol);
    memcpy(r.args, args, n * sizeof *args);
    for (size_t k = 0; k < n; k++)
        if ((args[k].kind == CUDASIM_ARRAY && !is_there(&args[k], args[k].array)) ||
            (args[k].kind == CUDASIM_EACH && calls > 0 && !cudasim_memory_is_device(args[k].array, (size_t)(calls * args[k].value))) ||
            (args[k].kind == CUDASIM_TABLE && calls > 0 && !cudasim_memory_is_device(args[k].array, (size_t)calls * sizeof(void *))))
            return cudaErrorInvalidValue;
    return cudasim_enqueue_work(run, &r, sizeof r, s);
}
