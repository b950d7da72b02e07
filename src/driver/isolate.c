/* Trials are collected while the evaluator runs and are judged in batches. A batch that cannot be compiled is halved until the instruction
 * that is to blame is alone. */
#include "config.h"

#include "driver/isolate.h"

#include <inttypes.h>

#include "driver/find.h"
#include "driver/inputs.h"
#include "ir/custom_call.h"
#include "support/vec.h"

enum { BATCH = 100 };
#define BATCH_BYTES (INT64_C(1) << 28)

typedef struct Trial {
    const Inst *inst;
    const char *place; /* "in trip 0 of while.1", or nothing */
    Literal   **operands, *value;
} Trial;

typedef struct Isolate {
    Arena                *arena;
    Buf                  *report;
    const Execution      *like;
    const IsolateOptions *options;
    Map                   seen; /* Inst */
    VEC(Trial)            trials;
    int64_t               bytes; /* of the trials' values */
    int64_t               agree, differ, refused;
} Isolate;

/* ---- what is tried ---- */

static bool is_tried(const Inst *i)
{
    switch (i->op) {
    case OP_PARAMETER: case OP_TUPLE: case OP_GET_TUPLE_ELEMENT: case OP_WHILE: case OP_CALL: case OP_CONDITIONAL: case OP_OPT_BARRIER:
    case OP_DOMAIN: case OP_AFTER_ALL: case OP_ADD_DEPENDENCY: case OP_COPY_START: case OP_COPY_DONE: case OP_PARTITION_ID:
    case OP_REPLICA_ID: return false;
    case OP_CUSTOM_CALL: /* a function from outside is the same on both sides */
        if (custom_call_kind(inst_string(i, ATTR_CUSTOM_CALL_TARGET)) == CALL_UNKNOWN)
            return false;
        /* fallthrough */
    default: return !op_has(i->op, F_EFFECT) && !op_has(i->op, F_COLLECTIVE) && !inst_has_effect(i);
    }
}

/* Arrays alone, of the sizes that the type says: compiled code has no others. */
static bool is_plain(const Literal *l, const Shape *s)
{
    if (shape_is_dynamic(s) || l->type != s->type)
        return false;
    if (l->type != TYPE_TUPLE)
        return type_is_array(l->type);
    for (int32_t k = 0; k < l->n_elems; k++)
        if (!is_plain(l->elems[k], s->elems[k]))
            return false;
    return true;
}

static bool is_plain_step(const EvalStep *s)
{
    bool plain = is_plain(s->value, s->inst->shape);
    for (int32_t k = 0; k < s->inst->n_operands && plain; k++)
        plain = is_plain(s->operands[k], inst_operand(s->inst, k)->shape);
    return plain;
}

static int64_t bytes_of(const Literal *l)
{
    int64_t n = 0;
    if (l->type != TYPE_TUPLE)
        return literal_bytes(l);
    for (int32_t k = 0; k < l->n_elems; k++)
        n += bytes_of(l->elems[k]);
    return n;
}

static void add_trial(Isolate *x, const EvalStep *s)
{
    int32_t n = s->inst->n_operands;
    Trial   t = {.inst = s->inst, .operands = ARENA_ARRAY(x->arena, Literal *, n), .value = literal_ref(s->value)};
    Buf     place = {0};
    for (int32_t k = 0; k < n; k++) {
        t.operands[k] = literal_ref(s->operands[k]);
        x->bytes += bytes_of(t.operands[k]);
    }
    x->bytes += bytes_of(t.value);
    place_text(&place, s->frame);
    t.place = arena_strndup(x->arena, place.p ? place.p : "", place.n);
    buf_free(&place);
    vec_push(x->arena, &x->trials, t);
}

static void drop_trials(Isolate *x)
{
    for (int32_t k = 0; k < x->trials.n; k++) {
        literals_unref(x->trials.v[k].inst->n_operands, x->trials.v[k].operands);
        literal_unref(x->trials.v[k].value);
    }
    x->trials.n = 0;
    x->bytes = 0;
}

/* ---- a module of trials ---- */

typedef struct Sheet {
    Arena    *arena;
    Module   *module;
    Comp     *entry;
    Map       copies; /* Inst of the module that runs -> the same in this one */
    Map       params; /* Inst -> the parameter that has its value */
    VEC(Literal *) args; /* by parameter; the trials hold them */
} Sheet;

static void map_copies(Sheet *s, const Module *m)
{
    for (const Comp *c = m->first, *d = s->module->first; c; c = c->next, d = d->next)
        for (const Inst *i = c->first, *j = d->first; i; i = i->next, j = j->next)
            map_put(&s->copies, i, (void *)(uintptr_t)j);
}

static Inst *param_for(Sheet *s, const Inst *i, Literal *value)
{
    Inst *p = map_get(&s->params, i);
    if (p && s->args.v[p->param] == value)
        return p;
    const Inst *copy = map_get(&s->copies, i);
    p = inst_parameter(s->entry, NULL, s->args.n, copy->shape, inst_unique_name(s->module, "p"));
    map_put(&s->params, i, p);
    vec_push(s->arena, &s->args, value);
    return p;
}

/* Parameters stand before what uses them because each is made right before its first user. */
static Inst *put_trial(Sheet *s, const Trial *t)
{
    int32_t n = t->inst->n_operands;
    Inst  **operands = ARENA_ARRAY(s->arena, Inst *, n);
    for (int32_t k = 0; k < n; k++)
        operands[k] = param_for(s, inst_operand(t->inst, k), t->operands[k]);
    return inst_clone_into(s->entry, NULL, map_get(&s->copies, t->inst), n, operands);
}

static void set_interface(Module *m)
{
    ShapeList    *params = ARENA_NEW(m->arena, ShapeList);
    const Shape **v = ARENA_ARRAY(m->arena, const Shape *, m->entry->n_params);
    for (int32_t k = 0; k < m->entry->n_params; k++)
        v[k] = comp_param(m->entry, k)->shape;
    *params = (ShapeList){m->entry->n_params, v};
    m->entry_params = params;
    m->entry_result = m->entry->root->shape;
    m->n_aliases = m->n_donors = 0;
}

static void make_sheet(Sheet *s, const Module *m, int32_t n, const Trial *trials)
{
    Inst        **results = ARENA_ARRAY(s->arena, Inst *, n);
    const Shape **shapes = ARENA_ARRAY(s->arena, const Shape *, n);
    s->module = module_clone(m);
    map_copies(s, m);
    s->entry = comp_new(s->module, comp_unique_name(s->module, "isolate"));
    for (int32_t k = 0; k < n; k++) {
        results[k] = put_trial(s, &trials[k]);
        shapes[k] = results[k]->shape;
    }
    s->entry->root = inst_new(s->entry, NULL, OP_TUPLE, shape_tuple(s->module->arena, n, shapes), n, results, NULL);
    s->module->entry = s->entry;
    set_interface(s->module);
    module_remove_dead_comps(s->module);
}

/* ---- judging ---- */

/* {"instruction": "add.1", "opcode": "add", "status": "differs", "place": "in trip 0 of while.1", "source": "model.py:7" */
static void put_object(Isolate *x, const Trial *t, const char *status)
{
    const char *line = inst_source_line(x->arena, t->inst);
    buf_puts(x->report, "{\"instruction\": ");
    json_text(x->report, t->inst->name);
    buf_printf(x->report, ", \"opcode\": \"%s\", \"status\": \"%s\", \"place\": ", op_name(t->inst->op), status);
    json_text(x->report, t->place);
    if (line) {
        buf_puts(x->report, ", \"source\": ");
        json_text(x->report, line);
    }
}

static void put_title(Isolate *x, const Trial *t)
{
    const char *line = inst_source_line(x->arena, t->inst);
    buf_printf(x->report, "%s (%s) is computed otherwise", t->inst->name, op_name(t->inst->op));
    if (*t->place)
        buf_printf(x->report, ", %s", t->place);
    if (line)
        buf_printf(x->report, ", from %s", line);
    buf_putc(x->report, '\n');
}

/* actual: the leaves of t's result, from *next on. */
static bool judge_trial(Isolate *x, const Trial *t, Literal *const **next)
{
    int32_t   n = shape_leaf_count(t->inst->shape, false);
    Literal **expected = ARENA_ARRAY(x->arena, Literal *, n);
    bool      ok = true;
    leaves_flatten(1, &t->value, expected);
    for (int32_t k = 0; k < n; k++) {
        Literal   *actual = *(*next)++;
        Tolerance  tol = tolerance_of_inst(t->inst, expected[k]);
        Comparison c;
        if (compare_literals(actual, expected[k], &tol, &c))
            continue;
        if (ok && !x->options->json)
            put_title(x, t);
        ok = false;
        if (x->options->json) {
            put_object(x, t, "differs");
            buf_printf(x->report, ", \"leaf\": %d", k);
            comparison_json(x->report, actual, expected[k], &tol, "opcode", &c);
            buf_puts(x->report, "}\n");
        } else
            compare_report(x->report, n > 1 ? arena_printf(x->arena, "%s{%d}", t->inst->name, k) : t->inst->name, actual, expected[k], &tol, &c);
    }
    literals_unref(n, expected);
    return ok;
}

/* True: the compiled module ran. */
static bool run_sheet(Isolate *x, Sheet *s, const Signature *sig, const Compiled *compiled, int32_t n, const Trial *trials, Diag *d)
{
    Execution e = {.signature = sig, .compiled = compiled, .threads = x->like->threads, .seed = x->like->seed};
    Literal **args = ARENA_ARRAY(s->arena, Literal *, sig->n_args), **results = ARENA_ARRAY(s->arena, Literal *, sig->n_results);
    RunTimes  times;
    leaves_flatten(s->args.n, s->args.v, args);
    bool ran = execution_run(&e, args, results, &times, d);
    literals_unref(sig->n_args, args);
    if (!ran)
        return false;
    Literal *const *next = results;
    for (int32_t k = 0; k < n; k++) {
        bool stop = x->differ > 0 && !x->options->all;
        if (stop)
            break;
        bool ok = judge_trial(x, &trials[k], &next);
        x->agree += ok;
        x->differ += !ok;
    }
    literals_unref(sig->n_results, results);
    return true;
}

static bool try_sheet(Isolate *x, int32_t n, const Trial *trials, Diag *d)
{
    Arena    *a = arena_new();
    Sheet     s = {.arena = a, .copies = map_new(a), .params = map_new(a)};
    RunTimes  times;
    make_sheet(&s, x->like->module, n, trials);
    Signature *sig = signature_of(a, s.module, d);
    Compiled  *c = sig ? compiled_build(a, x->options->cache, s.module, sig, NULL, &x->options->compile, &times, d) : NULL;
    bool       ran = c && run_sheet(x, &s, sig, c, n, trials, d);
    module_free(s.module);
    arena_free(a);
    return ran;
}

static void put_refused(Isolate *x, const Trial *t, const Diag *d)
{
    const char *why = d->first ? d->first->text : "it failed";
    x->refused++;
    if (x->options->json) {
        put_object(x, t, "refused");
        buf_puts(x->report, ", \"why\": ");
        json_text(x->report, why);
        buf_puts(x->report, "}\n");
    } else
        buf_printf(x->report, "%s (%s) cannot be tried alone: %s\n", t->inst->name, op_name(t->inst->op), why);
}

/* Halves come in the order of evaluation, so the first that differs is the first that is reported. */
static void judge(Isolate *x, int32_t n, const Trial *trials)
{
    Arena *a = arena_new();
    Diag   own;
    diag_init(&own, a);
    if (n > 0 && (x->differ == 0 || x->options->all) && !try_sheet(x, n, trials, &own)) {
        if (n == 1)
            put_refused(x, trials, &own);
        else {
            judge(x, n / 2, trials);
            judge(x, n - n / 2, trials + n / 2);
        }
    }
    arena_free(a);
}

static bool judge_batch(Isolate *x)
{
    judge(x, x->trials.n, x->trials.v);
    drop_trials(x);
    return x->differ == 0 || x->options->all;
}

static bool after(void *cookie, const EvalStep *s)
{
    Isolate *x = cookie;
    if (s->inst->comp->module != x->like->module || !is_tried(s->inst) || map_has(&x->seen, s->inst) || !is_plain_step(s))
        return true;
    map_put(&x->seen, s->inst, x);
    add_trial(x, s);
    return (x->trials.n < BATCH && x->bytes < BATCH_BYTES) || judge_batch(x);
}

Verdict isolate_run(Buf *b, const Execution *like, Literal *const *args, const IsolateOptions *o, Diag *d)
{
    Arena    *a = arena_new();
    Isolate   x = {.arena = a, .report = b, .like = like, .options = o, .seen = map_new(a)};
    EvalWatch watch = {.cookie = &x, .wants_operands = true, .after = after};
    Execution e = *like;
    RunTimes  times;
    Literal **results = ARENA_ARRAY(a, Literal *, like->signature->n_results);
    e.watch = &watch;
    bool ran = execution_run(&e, args, results, &times, d);
    if (ran)
        literals_unref(like->signature->n_results, results);
    if (ran || d->errors == 0)
        judge_batch(&x);
    drop_trials(&x);
    if (o->json)
        buf_printf(b, "{\"agree\": %" PRId64 ", \"differ\": %" PRId64 ", \"refused\": %" PRId64 "}\n", x.agree, x.differ, x.refused);
    else
        buf_printf(b, "%" PRId64 " instructions agree, %" PRId64 " differ%s, %" PRId64 " could not be tried\n", x.agree, x.differ,
               x.differ > 0 && !o->all ? " (the others were not tried)" : "", x.refused);
    Verdict v = x.differ > 0 ? RESULTS_DIFFER : d->errors > 0 || (x.agree == 0 && x.refused > 0) ? RESULTS_TROUBLE : RESULTS_AGREE;
    arena_free(a);
    return v;
}
