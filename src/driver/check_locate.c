/* Where the values of two modules part. The module before is evaluated first, and the values of its instructions are kept by name and by how often the
 * instruction has run (bodies of loops run often). The module after is evaluated next; the first value of it that differs from the one of the same
 * name is where a pass has gone wrong, or the first place behind it. So bodies of fusions, branches and loops come before what calls them. */
#include "config.h"

#include "driver/check_int.h"

#include <math.h>
#include <string.h>

/* ---- two values ---- */

static bool is_inexact(const Literal *l)
{
    return type_is_float(l->type) || type_is_complex(l->type);
}

static bool same_dims(const Literal *x, const Literal *y)
{
    return x->type == y->type && x->rank == y->rank && (!x->rank || !memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims));
}

/* The sign of a zero is no rounding error. */
static bool zeros_differ(double x, double y)
{
    return x == 0 && y == 0 && signbit(x) != signbit(y);
}

static bool numbers_differ(double x, double y, bool exact)
{
    return zeros_differ(x, y) || (exact && x != y && !(isnan(x) && isnan(y)));
}

/* By what compare.h does not ask: the sign of zero, every bit of the value. Sets the first such element and counts them all. */
static int64_t count_strictly(const Literal *x, const Literal *y, bool exact, int64_t *first)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < x->count; i++) {
        bool differ = numbers_differ(literal_get_f64(x, i), literal_get_f64(y, i), exact) ||
                      (type_is_complex(x->type) && numbers_differ(literal_get_imag(x, i), literal_get_imag(y, i), exact));
        if (differ && wrong++ == 0)
            *first = i;
    }
    return wrong;
}

static const char *index_text(Arena *a, const Literal *l, int64_t i)
{
    const char *text = "";
    for (int32_t k = l->rank - 1; k >= 0; k--) {
        text = arena_printf(a, "%lld%s%s", (long long)(i % l->dims[k]), *text ? "," : "", text);
        i /= l->dims[k];
    }
    return *text ? arena_printf(a, "[%s]", text) : "";
}

static const char *element_text(Arena *a, const Literal *l, int64_t i)
{
    Buf      b = {0};
    Literal *x = literal_borrow(l->type, 0, NULL, (char *)l->data + i * type_bytes(l->type));
    literal_print(&b, x, true);
    const char *text = arena_strndup(a, b.p, b.n);
    literal_unref(x);
    buf_free(&b);
    return text;
}

static bool arrays_differ(Arena *a, const Literal *x, const Literal *y, const ErrorModel *error, bool exact, Difference *out)
{
    Comparison c;
    int64_t    at = 0;
    *out = (Difference){.index = "", .count = x->count, .inexact = is_inexact(x) && !exact};
    if (!same_dims(x, y))
        return true;
    if (literal_equal(x, y))
        return false;
    out->allowed = tolerance_default(x, error);
    if (is_inexact(x))
        out->wrong = count_strictly(x, y, exact, &at);
    if (out->wrong)
        out->inexact = false;
    else if (!compare_literals(y, x, &out->allowed, &c)) {
        out->wrong = c.wrong;
        at = c.worst[0];
    }
    if (!out->wrong)
        return false;
    out->index = index_text(a, x, at);
    out->before = element_text(a, x, at);
    out->after = element_text(a, y, at);
    return true;
}

bool values_differ(Arena *a, const Literal *before, const Literal *after, const ErrorModel *error, bool exact, Difference *out)
{
    if (before->type == TYPE_TOKEN)
        return false;
    if (before->type != TYPE_TUPLE)
        return arrays_differ(a, before, after, error, exact, out);
    for (int32_t k = 0; k < before->n_elems; k++)
        if (values_differ(a, before->elems[k], after->elems[k], error, exact, out)) {
            int32_t kept = out->n_path < MAX_PATH ? out->n_path : MAX_PATH - 1;
            memmove(out->path + 1, out->path, (size_t)kept * sizeof *out->path);
            out->path[0] = k;
            out->n_path = kept + 1;
            return true;
        }
    return false;
}

/* ---- all values ---- */

/* What an instruction of the module before gave, run by run. */
typedef struct Past {
    const Inst *inst;
    VEC(Literal *) values;
    bool        full; /* there was no room for a value: none of later runs is kept */
    int32_t     runs; /* of the instruction of that name in the module after */
} Past;

typedef struct Locate {
    Arena            *arena;
    Interner         *names;
    Map               past;   /* key_of -> Past */
    VEC(Past *) all;
    int64_t           room;   /* bytes that may still be kept */
    const ErrorModel *error;
    bool              exact;
    const Past       *found;  /* NULL: nothing yet */
    const Inst       *inst;   /* of the module after */
    const Inst       *caller; /* the entry's instruction that runs it */
    Difference        how;
} Locate;

enum { ROOM = 1 << 29 };

/* Of one device: each has runs of its own. */
static const char *key_of(Locate *x, const EvalStep *s)
{
    return intern_str(x->names, s->device ? arena_printf(x->arena, "%s %d", s->inst->name, s->device) : s->inst->name);
}

static bool keep_value(void *cookie, const EvalStep *s)
{
    Locate     *x = cookie;
    const char *name = key_of(x, s);
    Past       *p = map_get(&x->past, name);
    if (!p) {
        p = ARENA_NEW(x->arena, Past);
        p->inst = s->inst;
        map_put(&x->past, name, p);
        vec_push(x->arena, &x->all, p);
    }
    int64_t bytes = literal_bytes(s->value);
    p->full |= bytes > x->room;
    if (p->full)
        return true;
    x->room -= bytes;
    vec_push(x->arena, &p->values, literal_ref(s->value));
    return true;
}

/* Values of another shape are those of another thing that has got the name. */
static bool is_same_thing(const Shape *before, const Shape *after)
{
    if (before->type != after->type || before->n_elems != after->n_elems)
        return false;
    if (type_is_array(before->type))
        return shape_same_dims(before, after);
    for (int32_t k = 0; k < before->n_elems; k++)
        if (!is_same_thing(before->elems[k], after->elems[k]))
            return false;
    return true;
}

/* The instruction of the entry in which a step is done. */
static const Inst *entry_inst(const EvalStep *s)
{
    const Inst *i = s->inst;
    for (const EvalFrame *f = s->frame; f->outer; f = f->outer)
        i = f->caller;
    return i;
}

/* False, the end of the evaluation, once the first one is found. */
static bool compare_value(void *cookie, const EvalStep *s)
{
    Locate     *x = cookie;
    const Inst *i = s->inst;
    Past *p = map_get(&x->past, key_of(x, s));
    if (!p || !is_same_thing(p->inst->shape, i->shape) || p->runs >= p->values.n)
        return true;
    if (!values_differ(x->arena, p->values.v[p->runs++], s->value, x->error, x->exact, &x->how))
        return true;
    x->found = p;
    x->inst = i;
    x->caller = entry_inst(s);
    return false;
}

/* ---- the report ---- */

static void note_how(Diag *d, Loc loc, const Difference *how)
{
    if (!how->before)
        return;
    if (how->inexact)
        diag_note(d, loc, "%lld of %lld elements differ by more than %.3g + %.3g |before|", (long long)how->wrong, (long long)how->count,
                  how->allowed.atol, how->allowed.rtol);
    else
        diag_note(d, loc, "%lld of %lld elements differ", (long long)how->wrong, (long long)how->count);
}

/* What a tuple is made of is to blame for it: %t{1} is %x. Gives %x. */
static const Inst *report_values(Diag *d, const Inst *i, const Difference *how, const char *changes)
{
    int32_t level = 0;
    for (; i->op == OP_TUPLE && level < how->n_path; level++)
        i = inst_operand(i, how->path[level]);
    const char *text = arena_printf(d->arena, "%%%s", i->name);
    for (; level < how->n_path; level++)
        text = arena_printf(d->arena, "%s{%d}", text, how->path[level]);
    text = arena_printf(d->arena, "%s:%s%s", text, *how->index ? " " : "", how->index);
    if (how->before)
        inst_error(d, i, "%s %s was %s, is %s", changes, text, how->before, how->after);
    else
        inst_error(d, i, "%s %s has another size", changes, text);
    note_how(d, i->loc, how);
    return i;
}

static void report_found(const Locate *x, const char *by, Diag *d)
{
    const Past *p = x->found;
    const Comp *c = x->inst->comp;
    const Inst *i = report_values(d, p->inst, &x->how, arena_printf(d->arena, "%s changes", by));
    if (c == c->module->entry)
        return;
    const char *often = p->runs > 1 || p->values.n > 1 ? arena_printf(d->arena, ", in run %d of it", p->runs) : "";
    diag_note(d, i->loc, "it stands in %%%s, which %%%s of the entry runs%s", c->name, x->caller->name, often);
}

static void locate_end(Locate *x, Literal *before, Literal *after)
{
    literal_unref(before);
    literal_unref(after);
    for (int32_t k = 0; k < x->all.n; k++)
        for (int32_t j = 0; j < x->all.v[k]->values.n; j++)
            literal_unref(x->all.v[k]->values.v[j]);
    arena_free(x->arena);
}

void locate_difference(const Module *before, const Module *after, EvaluateFn *evaluate, void *cookie, const ErrorModel *error, bool exact,
                       const Difference *root, const char *by, const char *which, Diag *d)
{
    Arena *a = arena_new();
    Locate x = {.arena = a, .names = interner_new(a), .past = map_new(a), .room = ROOM, .error = error, .exact = exact};
    EvalWatch    keep = {.cookie = &x, .after = keep_value}, compare = {.cookie = &x, .after = compare_value};
    Literal     *one = evaluate(cookie, before, &keep), *two = evaluate(cookie, after, &compare);
    if (x.found)
        report_found(&x, by, d);
    else
        report_values(d, before->entry->root, root, arena_printf(d->arena, "%s changes the result", by));
    diag_note(d, LOC_NONE, "%s", which);
    locate_end(&x, one, two);
}
