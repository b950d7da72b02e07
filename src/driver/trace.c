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

static bool after(void *cookie, const EvalStep *s)
{
    Trace *t = cookie;
    Buf    key = {0};
    if (!map_has(&t->wanted, s->inst))
        return true;
    place_key(&key, &t->places, s);
    bool ok = record_leaves(t, arena_strndup(t->arena, key.p, key.n), "", s->value);
    buf_free(&key);
    return ok;
}

static void drop_values(void *cookie)
{
    Trace *t = cookie;
    for (int32_t k = 0; k < t->values.n; k++)
        literal_unref(t->values.v[k]);
}

static bool find_wanted(Trace *t, const Module *m)
{
    regex_t re;
    int     status = regcomp(&re, t->expression, REG_EXTENDED | REG_NOSUB);
    if (status) {
        char why[200];
        regerror(status, &re, why, sizeof why);
        diag_error(t->d, LOC_NONE, "--trace: '%s': %s", t->expression, why);
        return false;
    }
    for (const Comp *c = m->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next)
            if (regexec(&re, i->name, 0, NULL, 0) == 0) {
                map_put(&t->wanted, i, t);
                t->n_wanted++;
            }
    regfree(&re);
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

bool trace_write(Trace *t, const char *path)
{
    if (t->values.n > 0)
        return array_file_write(t->arena, path, t->values.n, t->keys.v, t->values.v, t->d);
    diag_error(t->d, LOC_NONE, "--trace: of the %d instruction%s that '%s' matches none ran and gave an array; what is applied to elements is no step",
               t->n_wanted, t->n_wanted == 1 ? "" : "s", t->expression);
    return false;
}
