/* Dealing out arguments, collecting results. */
#include "config.h"

#include "driver/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/inputs.h"

int64_t devices_count(Devices on)
{
    return on.replicas > 0 && on.partitions > 0 ? on.replicas * on.partitions : 1;
}

bool devices_assignment(Arena *a, const char *text, int64_t n, Ints *out, Diag *d)
{
    bool   *seen = ARENA_ARRAY(a, bool, n);
    int64_t k = 0;
    *out = ints_make(a, (int32_t)n);
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        long long id = strtoll(at, &end, 10);
        if (*at < '0' || *at > '9' || errno || (*end && *end != ',')) {
            diag_error(d, LOC_NONE, "--device-assignment expects device numbers with commas between them, got '%s'", text);
            return false;
        }
        if (id >= n || k >= n || seen[id]) {
            diag_error(d, LOC_NONE, "--device-assignment must name each of %lld devices once, %lld is %s", (long long)n, id,
                       id >= n ? "none of them" : seen[id] ? "named twice" : "too many");
            return false;
        }
        seen[id] = true;
        *ints_at(*out, (int32_t)k++) = id;
        at = end;
        if (!*at)
            break;
    }
    if (k == n)
        return true;
    diag_error(d, LOC_NONE, "--device-assignment names %lld of %lld devices", (long long)k, (long long)n);
    return false;
}

const Shape *devices_shape(Arena *a, const Shape *s, int64_t n)
{
    int64_t *dims = ARENA_ARRAY(a, int64_t, s->rank + 1);
    dims[0] = n;
    if (s->rank > 0)
        memcpy(dims + 1, s->dims, (size_t)s->rank * sizeof *dims);
    Shape *r = arena_copy(a, shape_array(a, s->type, s->rank + 1, dims), sizeof *r);
    if (s->dynamic) {
        bool *dynamic = ARENA_ARRAY(a, bool, s->rank + 1);
        memcpy(dynamic + 1, s->dynamic, (size_t)s->rank * sizeof *dynamic);
        r->dynamic = dynamic;
    }
    return r;
}

static int64_t device_of(const Execution *e, int64_t process)
{
    return e->assignment.n > 0 ? e->assignment.v[process] : process;
}

/* Row `device` of x, which has the axis. It points into x. */
static Literal *row_of(const Literal *x, int64_t device)
{
    int64_t bytes = literal_bytes(x) / x->dims[0];
    return literal_borrow(x->type, x->rank - 1, x->dims + 1, (char *)x->data + device * bytes);
}

void devices_deal(const Execution *e, Literal *const *leaves, int64_t p, Literal **own)
{
    const Signature *s = e->signature;
    for (int32_t k = 0; k < s->n_args; k++)
        own[k] = leaves[k]->rank > s->args[k].shape->rank ? row_of(leaves[k], device_of(e, p)) : literal_ref(leaves[k]);
}

static Literal **arguments_of(Arena *a, const Execution *e, Literal *const *leaves, int64_t process)
{
    const Signature *s = e->signature;
    const Comp      *entry = e->module->entry;
    Literal        **own = ARENA_ARRAY(a, Literal *, s->n_args), **params = ARENA_ARRAY(a, Literal *, entry->n_params);
    Literal *const  *next = own;
    devices_deal(e, leaves, process, own);
    for (int32_t k = 0; k < entry->n_params; k++)
        params[k] = leaves_gather(comp_param(entry, k)->shape, &next);
    literals_unref(s->n_args, own);
    return params;
}

/* All processes' result k in one array; NULL when they have different sizes. */
static Literal *stacked(Arena *a, const Execution *e, int64_t n, Literal *const *const *all, int32_t k)
{
    const Literal **of_device = ARENA_ARRAY(a, const Literal *, n);
    for (int64_t p = 0; p < n; p++)
        of_device[device_of(e, p)] = all[p][k];
    return literal_stack(n, of_device);
}

static bool has_axis(const Execution *e, Literal *const *leaves)
{
    bool has = e->axis == AXIS_YES;
    for (int32_t k = 0; e->axis == AXIS_AS_INPUTS && k < e->signature->n_args; k++)
        has |= leaves[k]->rank > e->signature->args[k].shape->rank;
    return has;
}

/* The process that runs on device 0. */
static int64_t first_process(const Execution *e)
{
    int64_t p = 0;
    while (device_of(e, p) != 0)
        p++;
    return p;
}

bool devices_collect(Arena *a, const Execution *e, Literal *const *leaves, Literal *const *const *all, Literal **out, Diag *d)
{
    const Signature *s = e->signature;
    int64_t          first = first_process(e), n = devices_count(e->on);
    bool             axis = has_axis(e, leaves);
    for (int32_t k = 0; k < s->n_results; k++) {
        bool same = true;
        for (int64_t p = 0; !axis && e->axis == AXIS_AS_INPUTS && same && p < n; p++)
            same = literal_equal(all[p][k], all[first][k]);
        out[k] = axis ? stacked(a, e, n, all, k) : literal_ref(all[first][k]);
        if (out[k] && same)
            continue;
        if (axis)
            diag_error(d, LOC_NONE, "%s has different sizes on different devices", s->results[k].name);
        else
            diag_error(d, LOC_NONE, "%s is not the same on all devices: --device-axis=yes gives what each has, =no what device 0 has",
                       s->results[k].name);
        literals_unref(out[k] ? k + 1 : k, out);
        return false;
    }
    return true;
}

bool devices_evaluate(Arena *a, const Execution *e, Literal *const *leaves, const EvalOptions *o, Literal **out, Diag *d)
{
    int64_t    n = devices_count(e->on);
    int32_t    n_params = e->module->entry->n_params;
    Literal ***args = ARENA_ARRAY(a, Literal **, n), ***all = ARENA_ARRAY(a, Literal **, n), **roots = ARENA_ARRAY(a, Literal *, n);
    for (int64_t p = 0; p < n; p++) {
        args[p] = arguments_of(a, e, leaves, p);
        all[p] = ARENA_ARRAY(a, Literal *, e->signature->n_results);
    }
    bool ok = eval_module_on(e->module, e->on, (Literal *const *const *)args, o, roots, d);
    for (int64_t p = 0; p < n; p++) {
        literals_unref(n_params, args[p]);
        if (ok)
            leaves_flatten(1, &roots[p], all[p]);
        literal_unref(roots[p]);
    }
    if (!ok)
        return false;
    ok = devices_collect(a, e, leaves, (Literal *const *const *)all, out, d);
    for (int64_t p = 0; p < n; p++)
        literals_unref(e->signature->n_results, all[p]);
    return ok;
}
