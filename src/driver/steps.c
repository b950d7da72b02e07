/* Compiled code that tells what it does, as rows of a profile and as values of a trace.
 *
 * Loops that run are kept in a stack, since the text of a step says which instructions called its computation, but not in which trip. */
#include "config.h"

#include "driver/find.h"

#include "driver/compiled.h"
#include "driver/order.h"
#include "support/vec.h"
#include "target-c/target_c.h"

struct StepWatch {
    Arena         *arena;
    const Program *program;
    Profile       *profile; /* NULL: none, as the next */
    Trace         *trace;
    VEC(int64_t)   trips;   /* of the loops that run, the innermost last */
    bool           stopped; /* the trace has too much */
};

StepWatch *steps_open(Arena *a, const Compiled *c, Profile *p, Trace *t)
{
    StepWatch *w = ARENA_NEW(a, StepWatch);
    *w = (StepWatch){.arena = a, .program = c->program, .profile = p, .trace = t};
    if (t)
        trace_of(t, c->program->module);
    return w;
}

/* ---- times ---- */

static const char *what_it_is(const Step *s)
{
    return s->kind == STEP_COPY ? "copying" : op_name(s->inst->op);
}

/* Copies for a loop or the like are apart from the instruction itself; each is a row. */
static void begin(StepWatch *w, const Step *s)
{
    const void *key = s->kind == STEP_COPY ? (const void *)s : s->inst;
    profile_begin(w->profile, key, s->inst, what_it_is(s));
}

/* ---- values ---- */

/* The array of shape s at p. */
static Literal *array_at(const Shape *s, const void *p)
{
    Literal *l = literal_new(s->type, s->rank, s->dims);
    order_from_memory(s, l->data, p);
    return l;
}

/* The value of shape s; its leaves are in the places that step s has them in. */
static Literal *value_at(const Shape *s, const Step *step, const void *const *values, int32_t *leaf)
{
    if (!shape_is_tuple(s)) {
        int32_t k = (*leaf)++;
        return step->buffers[k] ? array_at(step->shapes[k], values[k]) : literal_token();
    }
    Literal *l = literal_tuple(s->n_elems, NULL);
    for (int32_t k = 0; k < s->n_elems; k++)
        l->elems[k] = value_at(s->elems[k], step, values, leaf);
    return l;
}

static EvalFrame *frame_of(Arena *a, const StepWatch *w, const Callers *c, int32_t loops)
{
    EvalFrame *f = ARENA_NEW(a, EvalFrame);
    bool       loop = c && c->caller->op == OP_WHILE;
    *f = (EvalFrame){.trip = -1};
    if (!c)
        return f;
    f->caller = c->caller;
    if (loop)
        f->trip = w->trips.v[loops - 1];
    f->outer = frame_of(a, w, c->outer, loops - loop); /* as deep as calls may nest in a plan */
    return f;
}

static void record(StepWatch *w, const Step *s, const void *const *values)
{
    Arena   *a = arena_new();
    int32_t  leaf = 0;
    Literal *l = value_at(s->inst->shape, s, values, &leaf);
    EvalStep step = {.inst = s->inst, .frame = frame_of(a, w, s->callers, w->trips.n), .value = l};
    w->stopped = w->stopped || !trace_step(w->trace, &step);
    literal_unref(l);
    arena_free(a);
}

/* ---- events ---- */

void steps_watcher(void *steps, int32_t event, int32_t number, const void *const *values)
{
    StepWatch  *w = steps;
    const Step *s = w->program->steps[number];
    switch ((WatchEvent)event) {
    case WATCH_BEGIN:
        if (s->kind == STEP_WHILE)
            vec_push(w->arena, &w->trips, -1);
        if (w->profile)
            begin(w, s);
        break;
    case WATCH_END:
        if (s->kind == STEP_WHILE)
            w->trips.n--;
        if (w->profile)
            profile_end(w->profile);
        break;
    case WATCH_TRIP:
        w->trips.v[w->trips.n - 1]++;
        break;
    case WATCH_VALUE:
        if (!w->stopped)
            record(w, s, values);
        break;
    }
}

/* ---- what has no value ---- */

const char *steps_fused(Arena *a, const Compiled *c, const Trace *t)
{
    enum { SHOWN = 5 };
    Buf         b = {0};
    int32_t     n = 0;
    Map         shown = map_new(a);
    const char *text = NULL;
    for (int32_t k = 0; k < c->program->n_steps; k++)
        if (c->program->steps[k]->kind == STEP_VALUE)
            map_put(&shown, c->program->steps[k]->inst, a);
    for (const Comp *x = c->program->module->first; x; x = x->next)
        for (const Inst *i = x->first; i; i = i->next)
            if (trace_wants(t, i) && !map_has(&shown, i) && n++ < SHOWN)
                buf_printf(&b, "%s%s", n > 1 ? ", " : "", i->name);
    if (n > SHOWN)
        buf_printf(&b, " and %d more", n - SHOWN);
    if (n > 0)
        text = arena_printf(a, "%s %s no memory in compiled code: %s part of a kernel or not needed; --backend=eval -O0 has every value", b.p, n == 1 ? "has" : "have",
                            n == 1 ? "it is" : "they are");
    buf_free(&b);
    return text;
}
