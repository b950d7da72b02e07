/* A value is recorded by holding a reference: the evaluator writes over no literal that somebody else holds. */
#include "config.h"

#include "driver/find.h"

#include <inttypes.h>
#include <regex.h>

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
    EvalWatch       watch;
};

static bool record(Trace *t, const char *key, const Literal *l)
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
    return true;
}

/* index: of l in the value, "" or "0,1". */
static bool record_leaves(Trace *t, const char *key, const char *index, const Literal *l)
{
    if (l->type != TYPE_TUPLE)
        return record(t, *index ? arena_printf(t->arena, "%s{%s}", key, index) : key, l);
    bool ok = true;
    for (int32_t k = 0; ok && k < l->n_elems; k++)
        ok = record_leaves(t, key, arena_printf(t->arena, *index ? "%s,%d" : "%s%d", index, k), l->elems[k]);
    return ok;
}

bool trace_step(Trace *t, const EvalStep *s)
{
    Buf key = {0};
    place_key(&key, &t->places, s);
    bool ok = record_leaves(t, arena_strndup(t->arena, key.p, key.n), "", s->value);
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
    *t = (Trace){.arena = a, .d = d, .expression = expression, .places = places_of(a, m), .wanted = map_new(a), .limit = limit};
    t->watch = (EvalWatch){.cookie = t, .after = after};
    arena_defer(a, drop_values, t);
    return find_wanted(t, m) ? t : NULL;
}

const EvalWatch *trace_watch(const Trace *t)
{
    return &t->watch;
}

bool trace_write(Trace *t, const char *path, const char *note)
{
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
