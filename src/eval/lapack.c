/* Custom calls of LAPACK routines: matrix by matrix, by columns, through the Fortran routine in OpenBLAS. The library is loaded when the
 * first such call runs, since most modules have none; it runs one thread. Source: reference operations 19.2. */
#include "eval/engine.h"
#include "ir/lapack.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

EvalFn eval_lapack;

/* Fortran takes addresses alone, and behind them the length of every text; what lies behind the arguments of a routine it does not read. */
enum { FORTRAN_ARGS = 20 };
typedef uintptr_t A;
typedef void Fortran(A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A);

static void *open_library(void)
{
    static const char *const names[] = { "libopenblas.so.0", "libopenblas.so" };
    void *library = NULL;
    for (size_t k = 0; !library && k < sizeof names / sizeof *names; k++)
        library = dlopen(names[k], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void (*set_threads)(int);
    void *symbol = library ? dlsym(library, "openblas_set_num_threads") : NULL;
    memcpy(&set_threads, &symbol, sizeof symbol);
    if (symbol)
        set_threads(1);
    return library;
}

/* It stays after dlclose: the library is not deleted. */
static Fortran *find_routine(Eval *e, const Inst *i, const char *symbol)
{
    void *library = open_library(), *found = library ? dlsym(library, symbol) : NULL;
    Fortran *f;
    memcpy(&f, &found, sizeof f);
    if (!found) {
        const char *why = dlerror();
        eval_fail(e, i, "%%%s needs %s of OpenBLAS: %s", i->name, symbol, why ? why : "it is not there");
    }
    if (library)
        dlclose(library);
    return f;
}

typedef struct Work {
    const LapackCall *call;
    Literal *buffer[LAPACK_MOST_BUFFERS]; /* one member of the batch, by columns */
    Literal *extra[LAPACK_MOST_ARGS];     /* of the argument: working memory, copies, packed vectors */
    union { char letter; int32_t size; double one[2]; float one32[2]; } value[LAPACK_MOST_ARGS];
} Work;

static Literal *new_vector(Eval *e, const Inst *i, Type t, int64_t count)
{
    return eval_new(e, i, t, 1, &count);
}

static void get_memory(Eval *e, const Inst *i, Work *w)
{
    const LapackCall *c = w->call;
    for (int32_t k = 0; k < c->n_buffers; k++)
        w->buffer[k] = new_vector(e, i, c->buffers[k].type, c->buffers[k].count);
    for (int32_t k = 0; k < c->n_args; k++) {
        const LapackArg *x = &c->args[k];
        switch (x->kind) {
        case LAPACK_COPY:
            w->extra[k] = new_vector(e, i, c->type, c->buffers[x->value].count);
            break;
        case LAPACK_PACKED:
            w->extra[k] = new_vector(e, i, c->type, c->buffers[x->value].count);
            break;
        case LAPACK_WORK:
            w->extra[k] = new_vector(e, i, c->type, c->work);
            break;
        case LAPACK_RWORK:
            w->extra[k] = new_vector(e, i, lapack_real_type(c->type), c->rwork);
            break;
        case LAPACK_IWORK:
            w->extra[k] = new_vector(e, i, TYPE_S32, c->iwork);
            break;
        case LAPACK_INFO:
            w->extra[k] = new_vector(e, i, TYPE_S32, 1);
            break;
        case LAPACK_OPTION:
            w->value[k].letter = (char)x->value;
            break;
        case LAPACK_SIZE:
            w->value[k].size = (int32_t)x->value;
            break;
        case LAPACK_ONE:
            if (lapack_real_type(c->type) == TYPE_F32)
                w->value[k].one32[0] = 1;
            else
                w->value[k].one[0] = 1;
            break;
        case LAPACK_BUFFER:
        case LAPACK_SECOND:
        case LAPACK_NULL:
            break;
        }
    }
}

static void drop_memory(Eval *e, Work *w)
{
    for (int32_t k = 0; k < w->call->n_buffers; k++)
        eval_drop(e, w->buffer[k]);
    for (int32_t k = 0; k < w->call->n_args; k++)
        eval_drop(e, w->extra[k]);
}

/* Member b of whole, which is row-major, from or to a matrix by columns. */
static void copy_member(Literal *whole, int64_t b, const LapackBuffer *x, Literal *member, bool out)
{
    size_t size = (size_t)type_bytes(x->type);
    for (int64_t r = 0; r < x->rows; r++)
        for (int64_t c = 0; c < x->columns; c++) {
            char *by_rows = (char *)whole->data + (size_t)(b * x->count + r * x->columns + c) * size;
            char *by_columns = (char *)member->data + (size_t)(c * x->rows + r) * size;
            memcpy(out ? by_rows : by_columns, out ? by_columns : by_rows, size);
        }
}

static bool all_finite(const Literal *l)
{
    for (int64_t k = 0; k < l->count; k++)
        if (!isfinite(literal_get_f64(l, k)) || (type_is_complex(l->type) && !isfinite(literal_get_imag(l, k))))
            return false;
    return true;
}

/* Column j of v from the columns that LAPACK gives: of a real eigenvalue the vector, of a conjugate pair real part and imaginary part.
 *   v[:,j] = p[:,j] + i p[:,j+1],   v[:,j+1] = p[:,j] - i p[:,j+1] */
static void unpack(const Literal *imaginary, const Literal *packed, int64_t n, Literal *v)
{
    for (int64_t j = 0; j < n; j++) {
        double w = literal_get_f64(imaginary, j);
        bool   pair = w != 0 && !isnan(w) && j + 1 < n;
        for (int64_t r = 0; r < n; r++) {
            double re = literal_get_f64(packed, j * n + r), im = pair ? literal_get_f64(packed, (j + 1) * n + r) : 0;
            literal_set_f64(v, j * n + r, re, im);
            if (pair)
                literal_set_f64(v, (j + 1) * n + r, re, -im);
        }
        j += pair;
    }
}

static A argument(Work *w, int32_t k)
{
    const LapackArg *x = &w->call->args[k];
    switch (x->kind) {
    case LAPACK_OPTION: return (A)&w->value[k].letter;
    case LAPACK_SIZE: return (A)&w->value[k].size;
    case LAPACK_ONE: return (A)&w->value[k].one;
    case LAPACK_BUFFER: return (A)w->buffer[x->value]->data;
    case LAPACK_SECOND: return (A)w->buffer[x->value]->data + (A)type_bytes(w->call->buffers[x->value].type);
    case LAPACK_NULL: return 0;
    default: return (A)w->extra[k]->data;
    }
}

static void set_info(Work *w, int32_t info)
{
    literal_set_s64(w->buffer[lapack_buffer(w->call, "info")], 0, info);
}

static void call_routine(Fortran *f, Work *w)
{
    const LapackCall *c = w->call;
    A       x[FORTRAN_ARGS] = { 0 };
    int32_t texts = 0;
    for (int32_t k = 0; k < c->n_args; k++) {
        x[k] = argument(w, k);
        if (c->args[k].kind == LAPACK_OPTION)
            x[c->n_args + texts++] = 1;
        if (c->args[k].kind == LAPACK_COPY)
            memcpy(w->extra[k]->data, w->buffer[c->args[k].value]->data, (size_t)literal_bytes(w->extra[k]));
    }
    if (c->finite && !all_finite(w->buffer[0])) {
        set_info(w, -4);
        return;
    }
    f(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], x[13], x[14], x[15], x[16], x[17], x[18], x[19]);
    for (int32_t k = 0; k < c->n_args; k++)
        if (c->args[k].kind == LAPACK_PACKED && literal_get_s64(w->buffer[lapack_buffer(c, "info")], 0) == 0)
            unpack(w->buffer[lapack_buffer(c, "wi")], w->extra[k], c->buffers[0].rows, w->buffer[c->args[k].value]);
}

static void run_member(Fortran *f, Work *w, Literal **x, Literal **results, int64_t b)
{
    const LapackCall *c = w->call;
    for (int32_t k = 0; k < c->n_buffers; k++) {
        memset(w->buffer[k]->data, 0, (size_t)literal_bytes(w->buffer[k]));
        if (c->buffers[k].operand >= 0)
            copy_member(x[c->buffers[k].operand], b, &c->buffers[k], w->buffer[k], false);
    }
    for (int32_t k = 0; k < c->n_args; k++)
        if (c->args[k].kind == LAPACK_PACKED)
            memset(w->extra[k]->data, 0, (size_t)literal_bytes(w->extra[k]));
    if (!lapack_is_empty(c))
        call_routine(f, w);
    for (int32_t k = 0; k < c->n_buffers; k++)
        if (c->buffers[k].result >= 0)
            copy_member(results[c->buffers[k].result], b, &c->buffers[k], w->buffer[k], true);
}

static int64_t work_of(const LapackCall *c)
{
    int64_t work = 1;
    for (int32_t k = 0; k < c->n_buffers; k++)
        work = c->buffers[k].rows * c->buffers[k].count > work ? c->buffers[k].rows * c->buffers[k].count : work;
    return work;
}

typedef struct Routine {
    LapackCall call;
    Fortran   *f;
} Routine;

/* What the call's attributes say, read when it first runs, and its routine; NULL after failing. */
static const Routine *routine_of(Eval *e, const Inst *i)
{
    Routine *r = map_get(&e->lapack, i);
    if (r)
        return r;
    r = ARENA_NEW(e->arena, Routine);
    const char *why = lapack_call(e->arena, i, &r->call);
    if (why) {
        eval_fail(e, i, "custom-call \"%s\" %%%s: %s", inst_string(i, ATTR_CUSTOM_CALL_TARGET), i->name, why);
        return NULL;
    }
    r->f = find_routine(e, i, r->call.symbol);
    if (!r->f)
        return NULL;
    map_put(&e->lapack, i, r);
    return r;
}

Literal *eval_lapack(Eval *e, const Inst *i, Literal **x)
{
    const Routine *routine = routine_of(e, i);
    if (!routine)
        return NULL;
    const LapackCall *call = &routine->call;
    int32_t   n = shape_is_tuple(i->shape) ? i->shape->n_elems : 1;
    Literal **results = ARENA_ARRAY(e->scratch, Literal *, n);
    Work      w = { .call = call };
    for (int32_t k = 0; k < n && !e->failed; k++)
        results[k] = eval_new_for(e, i, shape_is_tuple(i->shape) ? i->shape->elems[k] : i->shape);
    if (!e->failed)
        get_memory(e, i, &w);
    bool any = false;
    for (int32_t k = 0; k < n && !e->failed; k++)
        any = any || results[k]->count > 0;
    for (int64_t b = 0; any && b < call->batch && eval_work(e, i, work_of(call)); b++)
        run_member(routine->f, &w, x, results, b);
    drop_memory(e, &w);
    return eval_results(e, i, n, results);
}
