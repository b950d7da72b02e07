/* A value is recorded by holding a reference: the evaluator writes over no literal that somebody else holds. */
#include "config.h"

#include "driver/find.h"

#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "data/npz.h"
#include "support/vec.h"

struct Trace {
    Arena          *arena;
    Diag           *d;
    const char     *expression;
    regex_t         pattern;
    Places          places;
    Map             wanted; /* Inst: its name matches */
    int32_t         n_wanted;
    int64_t         bytes, limit;
    VEC(const char *) keys;
    VEC(Literal *)    values;
    VEC(int32_t)      devices; /* whose they are */
    int64_t           n_devices;
    Ints              assignment;
    EvalWatch       watch;
};

static bool record(Trace *t, const char *key, const Literal *l, int32_t device)
{
    if (l->type == TYPE_TOKEN)
        return true;
    int64_t bytes = literal_bytes(l);
    if (bytes > t->limit - t->bytes) {
        diag_error(t->d, LOC_NONE, "--trace: with %s (%" PRId64 " bytes) the values are more than %" PRId64 " bytes", key, bytes, t->limit);
        diag_note(t->d, LOC_NONE, "%d values before it have %" PRId64 " bytes; --trace-limit=BYTES allows more", t->values.n, t->bytes);
        return false;
    }
    t->bytes += bytes;
    vec_push(t->arena, &t->keys, key);
    vec_push(t->arena, &t->values, literal_ref(l));
    vec_push(t->arena, &t->devices, device);
    return true;
}

/* index: of l in the value, "" or "0,1". */
static bool record_leaves(Trace *t, const char *key, const char *index, const Literal *l, int32_t device)
{
    if (l->type != TYPE_TUPLE)
        return record(t, *index ? arena_printf(t->arena, "%s{%s}", key, index) : key, l, device);
    bool ok = true;
    for (int32_t k = 0; ok && k < l->n_elems; k++)
        ok = record_leaves(t, key, arena_printf(t->arena, *index ? "%s,%d" : "%s%d", index, k), l->elems[k], device);
    return ok;
}

bool trace_step(Trace *t, const EvalStep *s)
{
    Buf key = {0};
    place_key(&key, &t->places, s);
    bool ok = record_leaves(t, arena_strndup(t->arena, key.p, key.n), "", s->value, s->device);
    buf_free(&key);
    return ok;
}

static bool after(void *cookie, const EvalStep *s)
{
    Trace *t = cookie;
    return !map_has(&t->wanted, s->inst) || trace_step(t, s);
}

bool trace_wants(const Trace *t, const Inst *i)
{
    return regexec(&t->pattern, i->name, 0, NULL, 0) == 0;
}

void trace_of(Trace *t, const Module *m)
{
    t->places = places_of(t->arena, m);
}

static void free_pattern(void *pattern)
{
    regfree(pattern);
}

static void drop_values(void *cookie)
{
    Trace *t = cookie;
    for (int32_t k = 0; k < t->values.n; k++)
        literal_unref(t->values.v[k]);
}

static bool find_wanted(Trace *t, const Module *m)
{
    int status = regcomp(&t->pattern, t->expression, REG_EXTENDED | REG_NOSUB);
    if (status) {
        char why[200];
        regerror(status, &t->pattern, why, sizeof why);
        diag_error(t->d, LOC_NONE, "--trace: '%s': %s", t->expression, why);
        return false;
    }
    arena_defer(t->arena, free_pattern, &t->pattern);
    for (const Comp *c = m->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next)
            if (trace_wants(t, i)) {
                map_put(&t->wanted, i, t);
                t->n_wanted++;
            }
    if (t->n_wanted == 0)
        diag_error(t->d, LOC_NONE, "--trace: no instruction has a name that '%s' matches", t->expression);
    return t->n_wanted > 0;
}

Trace *trace_open(Arena *a, const Module *m, const char *expression, int64_t limit, Diag *d)
{
    Trace *t = ARENA_NEW(a, Trace);
    *t = (Trace){.arena = a, .d = d, .expression = expression, .places = places_of(a, m), .wanted = map_new(a), .limit = limit, .n_devices = 1};
    t->watch = (EvalWatch){.cookie = t, .after = after};
    arena_defer(a, drop_values, t);
    return find_wanted(t, m) ? t : NULL;
}

const EvalWatch *trace_watch(const Trace *t)
{
    return &t->watch;
}

void trace_on(Trace *t, int64_t devices, Ints assignment)
{
    t->n_devices = devices;
    t->assignment = assignment;
}

typedef struct Row {
    int64_t     first; /* value that has this key */
    int32_t     device;
    const char *key;
    Literal    *value;
} Row;

static int by_key(const void *x, const void *y)
{
    const Row *a = x, *b = y;
    return a->first != b->first ? (a->first > b->first) - (a->first < b->first) : (a->device > b->device) - (a->device < b->device);
}

/* Every value, those of one key together. */
static Row *rows_of(const Trace *t)
{
    Row      *rows = ARENA_ARRAY(t->arena, Row, t->values.n);
    Map       first = map_new(t->arena);
    Interner *strings = interner_new(t->arena);
    for (int32_t k = 0; k < t->values.n; k++) {
        const char *key = intern_str(strings, t->keys.v[k]);
        int32_t     device = t->devices.v[k];
        if (!map_has(&first, key))
            map_put(&first, key, &t->values.v[k]);
        int64_t at = (Literal **)map_get(&first, key) - t->values.v;
        rows[k] = (Row){at, t->assignment.n > 0 ? (int32_t)t->assignment.v[device] : device, key, t->values.v[k]};
    }
    qsort(rows, (size_t)t->values.n, sizeof *rows, by_key);
    return rows;
}

/* Of several devices: what all have under one key becomes one array with the axis of devices in front, else each is named "key:device". */
static void join_devices(Trace *t)
{
    int32_t n = t->values.n, out = 0;
    Row    *rows = rows_of(t);
    const Literal **values = ARENA_ARRAY(t->arena, const Literal *, n);
    for (int32_t k = 0, end; k < n; k = end) {
        Literal *all = NULL;
        for (end = k; end < n && rows[end].first == rows[k].first; end++)
            values[end - k] = rows[end].value;
        if (end - k == t->n_devices)
            all = literal_stack(end - k, values);
        if (all) {
            t->keys.v[out] = rows[k].key;
            t->values.v[out++] = all;
            for (int32_t j = k; j < end; j++)
                literal_unref(rows[j].value);
            continue;
        }
        for (int32_t j = k; j < end; j++) {
            t->keys.v[out] = arena_printf(t->arena, "%s:%d", rows[j].key, rows[j].device);
            t->values.v[out++] = rows[j].value;
        }
    }
    t->values.n = out;
}

bool trace_write(Trace *t, const char *path, const char *note)
{
    if (t->values.n > 0 && t->n_devices > 1)
        join_devices(t);
    if (t->values.n > 0) {
        if (note)
            diag_warning(t->d, LOC_NONE, "--trace: %s", note);
        return array_file_write(t->arena, path, t->values.n, t->keys.v, t->values.v, t->d);
    }
    diag_error(t->d, LOC_NONE, "--trace: of the %d instruction%s that '%s' matches none ran and gave an array; what is applied to elements is no step",
               t->n_wanted, t->n_wanted == 1 ? "" : "s", t->expression);
    if (note)
        diag_note(t->d, LOC_NONE, "%s", note);
    return false;
}
