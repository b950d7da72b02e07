/* One module, one set of arguments, one or many runs. Compiled code takes pointers to arrays in the order of memory that the module's
 * layouts say; literals are row-major, so other orders are copied on the way in and out. */
#include "config.h"

#include "driver/driver.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "driver/compiled.h"
#include "driver/devices.h"
#include "driver/feeds.h"
#include "driver/find.h"
#include "driver/inputs.h"
#include "driver/order.h"
#include "driver/meet.h"
#include "eval/eval.h"
#include "ir/message.h"
#include "runtime/hlort.h"
#include "support/host.h"

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void run_times_json(Buf *b, const RunTimes *t)
{
    buf_printf(b, "{\"parse_s\": %.6f, \"optimize_s\": %.6f, \"emit_s\": %.6f, \"compile_s\": %.6f, \"cache\": \"%s\",\n", t->parse_s,
               t->optimize_s, t->emit_s, t->compile_s, t->cache_hit ? "hit" : "miss");
    buf_printf(b, " \"run_us\": {\"min\": %.3f, \"median\": %.3f, \"n\": %" PRId64 "},", t->run_min_us, t->run_median_us, t->runs);
    buf_printf(b, " \"threads\": %d, \"peak_bytes\": %" PRId64 "}\n", t->threads, t->peak_bytes);
}

/* ---- memory ---- */

static bool too_much(Diag *d, const Inst *i, int64_t bytes)
{
    const char *have = arena_printf(d->arena, "this machine has %" PRId64, host_memory());
    if (!i && bytes < 0)
        diag_error(d, LOC_NONE, "arguments, results and working memory need more bytes than can be counted; %s", have);
    else if (!i)
        diag_error(d, LOC_NONE, "arguments, results and working memory need %" PRId64 " bytes; %s", bytes, have);
    else
        inst_error(d, i, "%s of %s does not fit into memory; %s", op_name(i->op), shape_text(d->arena, i->shape), have);
    return false;
}

bool execution_fits(const Signature *s, const Module *m, Diag *d)
{
    int64_t memory = host_memory(), total = signature_bytes(s);
    if (total < 0 || !size_add(total, s->scratch_bytes, &total) || total > memory)
        return too_much(d, NULL, total);
    for (const Comp *c = m ? m->first : NULL; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next) {
            int64_t bytes = shape_bytes(i->shape);
            if (bytes > memory || (bytes < 0 && !shape_is_unbounded(i->shape)))
                return too_much(d, i, bytes);
        }
    return true;
}

/* ---- arrays ---- */

static void *block(Arena *a, int64_t bytes)
{
    void *p = mem_array((size_t)bytes + 1, "arrays");
    arena_defer(a, free, p);
    return p;
}

/* ---- times ---- */

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

static void set_times(RunTimes *t, double *us, int64_t n)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    t->peak_bytes = (int64_t)u.ru_maxrss * 1024;
    t->runs = n;
    if (n == 0)
        return;
    qsort(us, (size_t)n, sizeof *us, by_value);
    t->run_min_us = us[0];
    t->run_median_us = n % 2 ? us[n / 2] : (us[n / 2 - 1] + us[n / 2]) / 2;
}

/* ---- compiled ---- */

typedef struct Arrays {
    const void **args;
    void       **results;
    void        *scratch;
} Arrays;

/* The result that argument k is donated to, or -1. */
static int32_t donated_to(const Signature *s, int32_t k)
{
    for (int32_t r = 0; r < s->n_results; r++)
        if (s->results[r].alias == k)
            return r;
    return -1;
}

/* Compiled code has the sizes of the types. */
static bool sizes_are_bounds(const Signature *s, Literal *const *args, Diag *d)
{
    for (int32_t k = 0; k < s->n_args; k++)
        if (args[k]->count != shape_count(s->args[k].shape)) {
            diag_error(d, LOC_NONE, "arg%d is smaller than %s allows, and only arrays of the full size can be given to compiled code", k,
                       shape_text(d->arena, s->args[k].shape));
            return false;
        }
    return true;
}

/* Arguments are used where they are, unless the order is another one, the code will write to them, or runs are timed several times: then those of a
 * mapped file, which lie at any address and on small pages, are moved to memory like that of the results (128 x 768 by 768 x 3072 of f32: 6.4 and
 * 5.4 ms). */
static Arrays make_arrays(Arena *a, const Execution *e, Literal *const *args)
{
    const Signature *s = e->signature;
    Arrays           x = { ARENA_ARRAY(a, const void *, s->n_args), ARENA_ARRAY(a, void *, s->n_results), NULL };
    for (int32_t k = 0; k < s->n_args; k++) {
        const Shape *shape = s->args[k].shape;
        int32_t      result = e->repeat ? donated_to(s, k) : -1;
        x.args[k] = args[k]->data;
        if (layout_is_row_major(shape) && result < 0 && !(e->repeat > 1 && args[k]->borrowed))
            continue;
        void *copy = block(a, shape_bytes(shape));
        order_to_memory(shape, copy, args[k]->data);
        x.args[k] = copy;
        if (result >= 0)
            x.results[result] = copy;
    }
    for (int32_t k = 0; k < s->n_results; k++)
        if (!x.results[k])
            x.results[k] = block(a, shape_bytes(s->results[k].shape));
    x.scratch = block(a, s->scratch_bytes);
    return x;
}

static void take_results(const Signature *s, const Arrays *x, Literal **results)
{
    for (int32_t k = 0; k < s->n_results; k++) {
        const Shape *shape = s->results[k].shape;
        results[k] = literal_new(shape->type, shape->rank, shape->dims);
        order_from_memory(shape, results[k]->data, x->results[k]);
    }
}

/* ---- a device's memory ---- */

typedef struct OnDevice {
    const DeviceMemory *memory;
    void               *p;
} OnDevice;

static void free_on_device(void *x)
{
    OnDevice *o = x;
    o->memory->free(o->p);
}

static bool device_failed(const DeviceMemory *m, int e, Diag *d)
{
    if (e)
        diag_error(d, LOC_NONE, "the device's memory: %s", m->error(e));
    return e != 0;
}

/* Memory that is given back with a. host: what it begins with, or NULL. */
static void *device_block(Arena *a, const DeviceMemory *m, int64_t bytes, const void *host, Diag *d)
{
    OnDevice *o = ARENA_NEW(a, OnDevice);
    *o = (OnDevice){ m, NULL };
    if (device_failed(m, m->alloc(&o->p, (size_t)(bytes > 0 ? bytes : 1)), d))
        return NULL;
    arena_defer(a, free_on_device, o);
    return host && device_failed(m, m->put(o->p, host, (size_t)bytes), d) ? NULL : o->p;
}

/* host again, in the device's memory; false after reporting. */
static bool make_device_arrays(Arena *a, const Execution *e, const Arrays *host, Arrays *out, Diag *d)
{
    const Signature    *s = e->signature;
    const DeviceMemory *m = &e->compiled->device;
    bool                ok = true;
    *out = (Arrays){ ARENA_ARRAY(a, const void *, s->n_args), ARENA_ARRAY(a, void *, s->n_results), NULL };
    for (int32_t k = 0; ok && k < s->n_args; k++)
        ok = (out->args[k] = device_block(a, m, shape_bytes(s->args[k].shape), host->args[k], d)) != NULL;
    for (int32_t k = 0; ok && k < s->n_results; k++) {
        int32_t arg = s->results[k].alias;
        bool    donated = arg >= 0 && host->results[k] == host->args[arg];
        out->results[k] = donated ? (void *)(uintptr_t)out->args[arg] : device_block(a, m, shape_bytes(s->results[k].shape), NULL, d);
        ok = out->results[k] != NULL;
    }
    return ok && (out->scratch = device_block(a, m, s->scratch_bytes, NULL, d)) != NULL;
}


/* Each device's arguments, and its pointers. */
typedef struct DeviceRun {
    int64_t     n;
    Literal  ***args;
    Arrays     *arrays;
    Arrays     *on_device; /* of compiled CUDA: the same in each one's memory */
    DeviceCall *calls;
    hlort_pool *pool; /* one device's */
} DeviceRun;

/* What lies in devices' memory becomes the host's. */
static bool get_results(const Execution *e, const DeviceRun *r, Diag *d)
{
    const Signature    *s = e->signature;
    const DeviceMemory *m = &e->compiled->device;
    for (int64_t p = 0; e->compiled->has_device && p < r->n; p++)
        for (int32_t k = 0; k < s->n_results; k++)
            if (device_failed(m, m->use((int)p), d) ||
                device_failed(m, m->get(r->arrays[p].results[k], r->on_device[p].results[k], (size_t)shape_bytes(s->results[k].shape)), d))
                return false;
    return true;
}

static bool call(const Execution *e, const DeviceRun *r, Diag *d)
{
    char   error[512] = "";
    HloEnv env = { sizeof env, (uint32_t)e->threads, error, sizeof error, e->seed, NULL, NULL, r->pool, NULL };
    if (r->n > 1 || e->signature->meets) {
        env.threads = e->threads / r->n > 0 ? (uint32_t)(e->threads / r->n) : 1;
        return meet_run(e, &env, r->calls, d);
    }
    const Arrays *x = e->compiled->has_device ? r->on_device : r->arrays;
    int           status = e->compiled->run(&env, x->args, x->results, x->scratch);
    if (status)
        diag_error(d, LOC_NONE, "the module failed with status %d%s%s", status, *error ? ": " : "", error);
    return status == 0;
}

/* What all devices need at once fits. */
static bool devices_fit(const Signature *s, int64_t n, Diag *d)
{
    int64_t total = signature_bytes(s);
    bool    known = total >= 0 && size_add(total, s->scratch_bytes, &total) && size_mul(total, n, &total);
    return (known && total <= host_memory()) || too_much(d, NULL, known ? total : -1);
}

static DeviceRun deal(Arena *a, const Execution *e, Literal *const *args)
{
    int64_t   n = devices_count(e->on);
    DeviceRun r = { n, ARENA_ARRAY(a, Literal **, n), ARENA_ARRAY(a, Arrays, n), ARENA_ARRAY(a, Arrays, n), ARENA_ARRAY(a, DeviceCall, n), NULL };
    for (int64_t p = 0; p < n; p++) {
        r.args[p] = ARENA_ARRAY(a, Literal *, e->signature->n_args);
        devices_deal(e, args, p, r.args[p]);
    }
    return r;
}

/* False after reporting. */
static bool make_calls(Arena *a, const Execution *e, DeviceRun *r, Diag *d)
{
    const Compiled *c = e->compiled;
    for (int64_t p = 0; p < r->n; p++) {
        const Arrays *x = &r->arrays[p];
        r->arrays[p] = make_arrays(a, e, r->args[p]);
        if (c->has_device && (device_failed(&c->device, c->device.use((int)p), d) || !make_device_arrays(a, e, x, &r->on_device[p], d)))
            return false;
        x = c->has_device ? &r->on_device[p] : x;
        r->calls[p] = (DeviceCall){ x->args, x->results, x->scratch };
    }
    return true;
}

static bool collect(Arena *a, const Execution *e, const DeviceRun *r, Literal *const *args, Literal **results, Diag *d)
{
    Literal ***all = ARENA_ARRAY(a, Literal **, r->n);
    if (r->n == 1) {
        take_results(e->signature, r->arrays, results);
        return true;
    }
    for (int64_t p = 0; p < r->n; p++) {
        all[p] = ARENA_ARRAY(a, Literal *, e->signature->n_results);
        take_results(e->signature, &r->arrays[p], all[p]);
    }
    bool ok = devices_collect(a, e, args, (Literal *const *const *)all, results, d);
    for (int64_t p = 0; p < r->n; p++)
        literals_unref(e->signature->n_results, all[p]);
    return ok;
}

static bool watches_repeats(const Execution *e)
{
    return e->watch_repeats && e->repeat > 0;
}

static void steps_watch(const Execution *e, bool on)
{
    if (e->steps)
        e->compiled->watch(on ? steps_watcher : NULL, e->steps);
}

/* One run of compiled code. */
static bool call_fed(const Execution *e, DeviceRun *r, Diag *d)
{
    if (e->feeds)
        feeds_rewind(e->feeds);
    return call(e, r, d) && (!e->feeds || feeds_done(e->feeds));
}

static bool run_calls(Arena *a, const Execution *e, DeviceRun *r, Literal *const *args, Literal **results, double *us, Diag *d)
{
    if (!make_calls(a, e, r, d))
        return false;
    steps_watch(e, !watches_repeats(e));
    if (!call_fed(e, r, d) || !get_results(e, r, d) || !collect(a, e, r, args, results, d))
        return false;
    steps_watch(e, watches_repeats(e));
    for (int64_t k = 0; k < e->repeat; k++) {
        double start = seconds_now();
        if (!call_fed(e, r, d)) {
            literals_unref(e->signature->n_results, results);
            return false;
        }
        us[k] = (seconds_now() - start) * 1e6;
    }
    return true;
}

/* Whether the host has what the module's infeeds and outfeeds need; else each of them is reported. */
static bool host_is_there(const Execution *e, Diag *d)
{
    const EvalHost *host = e->feeds ? feeds_host(e->feeds) : NULL;
    bool            in = host && host->infeed, out = host && host->outfeed;
    if ((in || !(e->signature->feeds & FEEDS_IN)) && (out || !(e->signature->feeds & FEEDS_OUT)))
        return true;
    const Module *m = e->find_module ? e->find_module(e->cookie) : NULL;
    for (const Comp *c = m ? m->first : NULL; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next) {
            const char *why = feed_refused(i, in, out);
            if (why)
                inst_error(d, i, "%s %s (%%%s)", op_name(i->op), why, i->name);
        }
    if (!m)
        diag_error(d, LOC_NONE, "its infeeds need --infeed=F.npz, its outfeeds --outfeed=F.npz");
    return false;
}

static bool run_compiled(Arena *a, const Execution *e, Literal *const *args, Literal **results, double *us, Diag *d)
{
    int64_t n = devices_count(e->on);
    if (!host_is_there(e, d) || (n > 1 && !devices_fit(e->signature, n, d)))
        return false;
    DeviceRun r = deal(a, e, args);
    bool      ok = true;
    for (int64_t p = 0; p < n && ok; p++)
        ok = sizes_are_bounds(e->signature, r.args[p], d);
    if (e->flush)
        host_flush_subnormals(true); /* before threads are made */
    r.pool = n == 1 && e->threads > 1 ? hlort_pool_new(e->threads) : NULL;
    ok = ok && run_calls(a, e, &r, args, results, us, d);
    hlort_pool_free(r.pool);
    if (e->flush)
        host_flush_subnormals(false);
    for (int64_t p = 0; p < n; p++)
        literals_unref(e->signature->n_args, r.args[p]);
    return ok;
}

/* ---- evaluated ---- */

/* leaves: the arguments; out: the results; memory: the machine's, which takes longer to ask for than a small module runs. One device runs v. */
static bool evaluate_once(Arena *a, const Execution *e, Evaluation *v, int64_t memory, const EvalWatch *watch, Literal *const *leaves,
                          Literal **out, Diag *d)
{
    const Comp     *entry = e->module->entry;
    Literal       **params = ARENA_ARRAY(a, Literal *, entry->n_params);
    Literal *const *next = leaves;
    EvalHost        host = e->feeds ? *feeds_host(e->feeds) : (EvalHost){0};
    EvalOptions     options = { .memory_limit = memory, .seed = e->seed, .host = &host, .max_trips = e->max_trips, .watch = watch };
    host.calls = e->calls;
    if (e->feeds)
        feeds_rewind(e->feeds);
    if (devices_count(e->on) > 1) {
        if (!devices_evaluate(a, e, leaves, &options, out, d))
            return false;
        if (!e->feeds || feeds_done(e->feeds))
            return true;
        literals_unref(e->signature->n_results, out);
        return false;
    }
    for (int32_t k = 0; k < entry->n_params; k++)
        params[k] = leaves_gather(comp_param(entry, k)->shape, &next);
    Literal *root = evaluation_run(v, entry->n_params, params, &options, d);
    literals_unref(entry->n_params, params);
    if (!root || (e->feeds && !feeds_done(e->feeds))) {
        literal_unref(root);
        return false;
    }
    leaves_flatten(1, &root, out);
    literal_unref(root);
    return true;
}

static bool run_evaluated(Arena *a, const Execution *e, Literal *const *args, Literal **results, double *us, Diag *d)
{
    const Signature *s = e->signature;
    Literal        **now = ARENA_ARRAY(a, Literal *, s->n_args), **then = ARENA_ARRAY(a, Literal *, s->n_results);
    Evaluation *v = evaluation_open(e->module);
    int64_t memory = host_memory();
    if (!evaluate_once(a, e, v, memory, watches_repeats(e) ? NULL : e->watch, args, results, d)) {
        evaluation_close(v);
        return false;
    }
    bool ok = true;
    for (int32_t k = 0; k < s->n_args; k++) {
        int32_t from = donated_to(s, k);
        now[k] = literal_ref(from < 0 ? args[k] : results[from]);
    }
    for (int64_t k = 0; ok && k < e->repeat; k++) {
        double start = seconds_now();
        ok = evaluate_once(a, e, v, memory, watches_repeats(e) ? e->watch : NULL, now, then, d);
        us[k] = (seconds_now() - start) * 1e6;
        for (int32_t r = 0; ok && r < s->n_results; r++) {
            int32_t arg = s->results[r].alias;
            if (arg >= 0) {
                literal_unref(now[arg]);
                now[arg] = literal_ref(then[r]);
            }
        }
        literals_unref(s->n_results, then);
    }
    evaluation_close(v);
    literals_unref(s->n_args, now);
    if (!ok)
        literals_unref(s->n_results, results);
    return ok;
}

bool execution_run(const Execution *e, Literal *const *args, Literal **results, RunTimes *t, Diag *d)
{
    Arena  *a = arena_new();
    double *us = ARENA_ARRAY(a, double, e->repeat);
    bool    ok = e->compiled ? run_compiled(a, e, args, results, us, d) : run_evaluated(a, e, args, results, us, d);
    if (ok)
        set_times(t, us, e->repeat);
    arena_free(a);
    return ok;
}
