/* Evaluates a module before and after a pass. The arguments of a set are made when they are needed: set 0 is kept, the others share
 * one copy, and the results of every set. */
#include "config.h"

#include "driver/check.h"

#include <math.h>
#include <string.h>

#include "data/fill.h"
#include "driver/check_int.h"
#include "driver/shadow.h"
#include "eval/memo.h"
#include "ir/numeric.h"
#include "support/crash.h"
#include "support/host.h"

enum { MEMO_PART = 8 /* of the memory: what products of earlier evaluations may take */ };
enum { N_SETS = 9, KINDS = 4, FIRST_NONFINITE = KINDS + 1, AGAIN = 16 /* times as much memory: what a pass makes may cost more */ };
enum { MORE_WORK = 100, SOME_WORK = 1000000 }; /* element operations: times those before, and so many besides. A loop without end comes to it soon */

struct Check {
    Arena       *arena;
    CheckOptions options;
    ErrorModel   error;
    Devices      on;
    int32_t      n_params, n_args; /* n_args: of all devices, those of one after those of the other */
    Literal    **args, **specials; /* of set 0; of the last other one, NULL before it */
    EvalMemo    *memo;            /* a pass leaves most products as they are, and those are nearly all the work */
    Literal     *results[N_SETS]; /* of `before`; NULL: the set is left out */
    int64_t      work[N_SETS];    /* that they took */
    Module      *before;
    int64_t      runs;            /* of passes that were checked */
    bool         failed;
    Diag        *watch_diag;
};

/* ---- arguments ---- */

static bool takes_specials(const Literal *l)
{
    return type_is_float(l->type) || type_is_complex(l->type);
}

static bool any_takes_specials(const Literal *l)
{
    for (int32_t k = 0; k < l->n_elems; k++)
        if (any_takes_specials(l->elems[k]))
            return true;
    return takes_specials(l);
}

enum { PER_HASH = 32 /* elements */, AT_ONCE = 4, CASES = 256 /* of these */ };

/* What elements of type t become in a set: KINDS - 1 of them, as an array has them. */
static void special_values(Type t, int32_t set, char *v)
{
    double finites[] = {-0.0, 0, float_decode(t, 1)}, others[] = {NAN, INFINITY, -INFINITY};
    for (int kind = 0; kind < KINDS - 1; kind++) {
        Literal *one = literal_from_f64(t, set <= KINDS ? finites[kind] : others[kind]);
        memcpy(v + kind * type_bytes(t), one->data, (size_t)type_bytes(t));
        literal_unref(one);
    }
}

/* Two bits of a hash an element, four elements at once: what stays of them and what comes is in tables of all 256 cases. */
#define PUT(T)                                                                                                                  \
    static void put_##T(T *to, const T *from, int64_t n, const T *values, int32_t set, uint64_t seed)                           \
    {                                                                                                                           \
        T        keep[CASES][AT_ONCE], value[CASES][AT_ONCE];                                                                   \
        uint64_t hash = 0;                                                                                                      \
        for (int c = 0; c < CASES; c++)                                                                                         \
            for (int b = 0; b < AT_ONCE; b++) {                                                                                 \
                int kind = ((c >> 2 * b) + set) % KINDS;                                                                        \
                keep[c][b] = kind == KINDS - 1 ? (T)-1 : 0;                                                                     \
                value[c][b] = values[kind];                                                                                     \
            }                                                                                                                   \
        for (int64_t p = 0; p < n; p += AT_ONCE, hash >>= 2 * AT_ONCE) {                                                        \
            if (p % PER_HASH == 0)                                                                                              \
                hash = fill_hash(seed, (uint64_t)(p / PER_HASH));                                                               \
            const T *k = keep[hash % CASES], *v = value[hash % CASES];                                                          \
            if (n - p >= AT_ONCE)                                                                                               \
                for (int b = 0; b < AT_ONCE; b++)                                                                               \
                    to[p + b] = (T)((from[p + b] & k[b]) | v[b]);                                                               \
            else                                                                                                                \
                for (int b = 0; b < n - p; b++)                                                                                 \
                    to[p + b] = (T)((from[p + b] & k[b]) | v[b]);                                                               \
        }                                                                                                                       \
    }
PUT(uint8_t)
PUT(uint16_t)
PUT(uint32_t)
PUT(uint64_t)

/* Real and imaginary parts each get their own. */
static void put_specials(Literal *to, const Literal *from, int32_t set, uint64_t seed)
{
    Type     t = type_component(from->type);
    int64_t  n = type_is_complex(from->type) ? 2 * from->count : from->count;
    uint64_t v[KINDS] = {0}; /* the last one: nothing comes */
    special_values(t, set, (char *)v);
    switch (type_bytes(t)) {
    case 1: put_uint8_t(to->data, from->data, n, (uint8_t *)v, set, seed); break;
    case 2: put_uint16_t(to->data, from->data, n, (uint16_t *)v, set, seed); break;
    case 4: put_uint32_t(to->data, from->data, n, (uint32_t *)v, set, seed); break;
    default: put_uint64_t(to->data, from->data, n, v, set, seed);
    }
}

/* l with special values; *leaf numbers the arrays. old: what an earlier set had, or NULL; what nobody else holds of it is written over. */
static Literal *with_specials(Literal *old, const Literal *l, int32_t set, uint64_t seed, uint64_t *leaf)
{
    bool     tuple = l->type == TYPE_TUPLE, takes = takes_specials(l), own = old && old->refs == 1 && (tuple || takes);
    uint64_t array_seed = tuple ? 0 : fill_hash(seed, (*leaf)++);
    Literal *r = own ? old : tuple ? literal_tuple(l->n_elems, NULL) : takes ? literal_new(l->type, l->rank, l->dims) : literal_ref(l);
    if (!own)
        literal_unref(old);
    for (int32_t k = 0; k < l->n_elems; k++)
        r->elems[k] = with_specials(r->elems[k], l->elems[k], set, seed, leaf);
    if (takes)
        put_specials(r, l, set, array_seed);
    return r;
}

/* One reference each. */
static Literal **arguments(const Check *c, int32_t set)
{
    Literal **args = ARENA_ARRAY(c->arena, Literal *, c->n_args);
    uint64_t  leaf = 0;
    for (int32_t k = 0; k < c->n_args; k++) {
        if (set)
            c->specials[k] = with_specials(c->specials[k], c->args[k], set, c->options.seed, &leaf);
        args[k] = literal_ref(set ? c->specials[k] : c->args[k]);
    }
    return args;
}

/* ---- evaluating ---- */

/* The result; of several devices the tuple of all. */
static Literal *run(const Check *c, const Module *m, Literal **args, const EvalOptions *o, Diag *d)
{
    int32_t n = (int32_t)devices_n(c->on);
    if (n == 1)
        return eval_module(m, c->n_args, args, o, d);
    Literal        *all = literal_tuple(n, NULL);
    Literal *const **of_device = ARENA_ARRAY(c->arena, Literal *const *, n);
    for (int32_t k = 0; k < n; k++)
        of_device[k] = args + k * c->n_params;
    if (eval_module_on(m, c->on, of_device, o, all->elems, d))
        return all;
    literal_unref(all);
    return NULL;
}

/* Takes args. *work: what it took. */
static Literal *evaluate_on(const Check *c, const Module *m, Literal **args, EvalOptions o, int64_t *work, Diag *d)
{
    *work = 0;
    o.work = work;
    o.memo = c->memo;
    o.max_trips = c->options.trips;
    Literal *result = run(c, m, args, &o, d);
    for (int32_t k = 0; k < c->n_args; k++)
        literal_unref(args[k]);
    return result;
}

static Literal *evaluate(const Check *c, const Module *m, int32_t set, EvalOptions o, int64_t *work, Diag *d)
{
    return evaluate_on(c, m, arguments(c, set), o, work, d);
}

/* What the evaluator says of a run that has not come to its end. */
static const char *reason(const Diag *d)
{
    return d->first ? d->first->text : "no reason is known";
}

static const char *set_text(const Check *c, int32_t set)
{
    const char *what = set == 0 ? "made-up arguments" : "special values";
    return arena_printf(c->arena, "set %d of arguments, %s, --check-seed=%llu", set, what, (unsigned long long)c->options.seed);
}

/* Takes the device from the front of the path. */
static const char *set_and_device(const Check *c, int32_t set, Difference *root)
{
    if (devices_n(c->on) == 1)
        return set_text(c, set);
    int32_t device = root->path[0];
    root->n_path--;
    memmove(root->path, root->path + 1, (size_t)root->n_path * sizeof *root->path);
    return arena_printf(c->arena, "%s, device %d of %lld", set_text(c, set), device, (long long)devices_n(c->on));
}

/* ---- the beginning ---- */

static bool is_drawn(const Inst *i)
{
    return i->op == OP_RNG || i->op == OP_RNG_GET_AND_UPDATE_STATE;
}

/* What would make a comparison meaningless or impossible, by name. */
static bool is_comparable(const Module *m, Devices on, Diag *d)
{
    bool good = eval_supported_with(m, NULL, on, d);
    for (const Comp *c = m->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next) {
            if (is_drawn(i))
                inst_error(d, i, "%s %%%s cannot be checked: its numbers depend on how often they are drawn", op_name(i->op), i->name);
            else if (i->op == OP_CONSTANT && literal_has_elided(i->literal))
                inst_error(d, i, "constant %%%s cannot be checked: its values are not in the text; --constants=FILE gives them", i->name);
            else
                continue;
            good = false;
        }
    return good;
}

/* As many as the module is for. */
static bool devices_of(const Module *m, Devices *on, Diag *d)
{
    int64_t n;
    *on = (Devices){m->replica_count, m->num_partitions};
    if (size_mul(on->replicas, on->partitions, &n) && n >= 1 && n <= MOST_DEVICES)
        return true;
    diag_error(d, LOC_NONE, "more than %d devices cannot be checked", MOST_DEVICES);
    return false;
}

/* Two copies of them are alive at once, and results. */
static bool arguments_fit(const Module *m, Devices on, const CheckOptions *o, Diag *d)
{
    int64_t most = (o->memory ? o->memory : host_memory()) / 4, total = 0;
    for (int32_t k = 0; k < m->entry->n_params; k++) {
        const Inst *p = comp_param(m->entry, k);
        int64_t     bytes = shape_bytes(p->shape);
        if (bytes < 0 || !size_mul(bytes, devices_n(on), &bytes) || !size_add(total, bytes, &total) || total > most) {
            inst_error(d, p, "parameter %%%s cannot be checked: the arguments need too much memory", p->name);
            return false;
        }
    }
    return true;
}

/* Each device gets its own. */
static bool make_arguments(Check *c, const Module *m, Diag *d)
{
    bool good = true;
    c->args = ARENA_ARRAY(c->arena, Literal *, c->n_args);
    c->specials = ARENA_ARRAY(c->arena, Literal *, c->n_args);
    for (int32_t first = 0; first < c->n_args && good; first += c->n_params)
        good = fake_arguments(m, c->options.seed + (uint64_t)first, NULL, c->args + first, d);
    return good;
}

static bool wants_set(const Check *c, int32_t set)
{
    bool specials = false;
    for (int32_t k = 0; k < c->n_args; k++)
        specials |= any_takes_specials(c->args[k]);
    return set == 0 ? c->options.plain || !specials : c->options.special && specials;
}

/* MORE_WORK times that of a run, and SOME_WORK; 0, any number, where that is allowed. */
static int64_t work_like(const Check *c, int64_t work)
{
    int64_t most;
    bool    bounded = c->options.work && size_mul(work, MORE_WORK, &most) && size_add(most, SOME_WORK, &most);
    return bounded ? most : 0;
}

/* Special values can only make loops longer, and those may be without end. */
static int64_t first_work(const Check *c, int32_t set)
{
    int64_t like = set > 0 && c->results[0] ? work_like(c, c->work[0]) : 0;
    return like && like < c->options.work ? like : c->options.work;
}

static bool first_results(Check *c, const Module *m, Diag *d)
{
    for (int32_t set = 0; set < N_SETS; set++) {
        Diag own;
        diag_init(&own, c->arena);
        if (!wants_set(c, set))
            continue;
        EvalOptions o = {.work_limit = first_work(c, set), .memory_limit = c->options.memory};
        c->results[set] = evaluate(c, m, set, o, &c->work[set], set ? &own : d);
        if (!c->results[set] && set == 0)
            return false;
        if (!c->results[set])
            diag_warning(d, LOC_NONE, "%s: left out: %s", set_text(c, set), reason(&own));
    }
    return true;
}

Check *check_begin(const Module *m, const CheckOptions *o, Diag *d)
{
    Devices on;
    if (!devices_of(m, &on, d) || !is_comparable(m, on, d) || !arguments_fit(m, on, o, d))
        return NULL;
    Arena *a = arena_new();
    Check *c = ARENA_NEW(a, Check);
    *c = (Check){.arena = a, .options = *o, .error = error_model(m), .on = on, .n_params = m->entry->n_params};
    c->n_args = c->n_params * (int32_t)devices_n(on);
    c->memo = memo_new((o->memory ? o->memory : host_memory()) / MEMO_PART);
    c->error.coarsest = TYPE_F64; /* a pass computes in the types that are written: each value is as exact as its own */
    if (make_arguments(c, m, d) && first_results(c, m, d)) {
        c->before = module_clone(m);
        return c;
    }
    check_end(c);
    return NULL;
}

void check_end(Check *c)
{
    if (!c)
        return;
    for (int32_t k = 0; k < c->n_args; k++) {
        literal_unref(c->args[k]);
        literal_unref(c->specials[k]);
    }
    for (int32_t set = 0; set < N_SETS; set++)
        literal_unref(c->results[set]);
    if (c->before)
        module_free(c->before);
    memo_free(c->memo);
    arena_free(c->arena);
}

/* ---- after a pass ---- */

/* A pass may make a module dearer, but not without bounds; with any number allowed before, it is so now. */
static EvalOptions limits_again(const Check *c, int32_t set)
{
    return (EvalOptions){.work_limit = work_like(c, c->work[set]), .memory_limit = AGAIN * c->options.memory};
}

typedef struct Again {
    const Check *check;
    int32_t      set;
    Diag        *d;
} Again;

static Literal *evaluate_again(void *cookie, const Module *m, const EvalWatch *o)
{
    const Again *x = cookie;
    EvalOptions  limits = limits_again(x->check, x->set);
    int64_t      work;
    limits.watch = o;
    return evaluate(x->check, m, x->set, limits, &work, x->d);
}

/* What `before` gives in double precision; NULL: it does not come to an end, or is too much work. */
static Literal *evaluate_exactly(const Check *c, int32_t set)
{
    Diag      own;
    Literal **args = arguments(c, set);
    int64_t   work;
    diag_init(&own, c->arena);
    for (int32_t k = 0; k < c->n_args; k++) {
        Literal *raised = shadow_raise(args[k]);
        literal_unref(args[k]);
        args[k] = raised;
    }
    Module  *raised = shadow_module(c->before);
    Literal *exact = evaluate_on(c, raised, args, limits_again(c, set), &work, &own);
    module_free(raised);
    return exact;
}

/* The results differ, and no more than double precision shows them to be off anyway. */
static bool is_rounding(const Check *c, int32_t set, const Literal *now)
{
    Literal *exact = c->options.exact ? NULL : evaluate_exactly(c, set);
    bool     near = exact && values_as_near(c->arena, exact, c->results[set], now, &c->error);
    literal_unref(exact);
    return near;
}

static bool check_set(Check *c, const Module *m, int32_t set, const char *by, Diag *d)
{
    Diag       own;
    Difference root;
    diag_init(&own, c->arena);
    int64_t  work;
    Literal *now = evaluate(c, m, set, limits_again(c, set), &work, &own);
    if (!now) {
        diag_error(d, LOC_NONE, "%s: what is left does not evaluate any more: %s", by, reason(&own));
        diag_note(d, LOC_NONE, "%s", set_text(c, set));
        return false;
    }
    if (values_differ(c->arena, c->results[set], now, &c->error, c->options.exact, &root) && !is_rounding(c, set, now)) {
        Again       again = {c, set, &own};
        const char *which = set_and_device(c, set, &root);
        locate_difference(c->before, m, evaluate_again, &again, &c->error, c->options.exact, &root, by, which, d);
        literal_unref(now);
        return false;
    }
    literal_unref(c->results[set]);
    c->results[set] = now;
    c->work[set] = work > c->work[set] ? work : c->work[set];
    return true;
}

/* The results of the sets with NaN and infinities become those that m has now; what m cannot evaluate any more is left out from here on. */
static void accept_nonfinite(Check *c, const Module *m)
{
    for (int32_t set = FIRST_NONFINITE; set < N_SETS; set++) {
        Diag own;
        diag_init(&own, c->arena);
        if (!c->results[set])
            continue;
        literal_unref(c->results[set]);
        c->results[set] = evaluate(c, m, set, limits_again(c, set), &c->work[set], &own);
    }
}

static bool check_sets(Check *c, const Module *m, int32_t end, const char *by, Diag *d)
{
    c->failed = false;
    for (int32_t set = 0; set < end && !c->failed; set++)
        c->failed = c->results[set] && !check_set(c, m, set, by, d);
    memo_turn(c->memo);
    if (c->failed)
        return false;
    module_free(c->before);
    c->before = module_clone(m);
    return true;
}

bool check_module(Check *c, const Module *m, const char *by, Diag *d)
{
    return check_sets(c, m, N_SETS, by, d);
}

static bool before_pass(void *cookie, const Module *m, const PassRun *run)
{
    const Check *c = cookie;
    (void)m;
    crash_timer(c->options.seconds, arena_printf(c->arena, "hlo-opt: pass %s (run %lld) has not ended after %lld second%s (--test-timeout)\n", run->stage,
                                                 (long long)run->number, (long long)c->options.seconds, c->options.seconds == 1 ? "" : "s"));
    return true;
}

static void ran_pass(void *cookie, const PassRun *run)
{
    (void)cookie;
    (void)run;
    crash_timer(0, NULL);
}

static bool after_pass(void *cookie, const Module *m, const PassRun *run)
{
    Check *c = cookie;
    if (!run->changed)
        return true;
    c->runs++;
    const char *by = arena_printf(c->arena, "pass %s (run %lld)", run->stage, (long long)run->number);
    if (run->finite)
        accept_nonfinite(c, m);
    return check_sets(c, m, run->finite ? FIRST_NONFINITE : N_SETS, by, c->watch_diag);
}

PipelineWatch check_watch(Check *c, Diag *d)
{
    c->watch_diag = d;
    return (PipelineWatch){.cookie = c, .begin = before_pass, .ran = ran_pass, .end = after_pass};
}

bool check_failed(const Check *c)
{
    return c->failed;
}

void check_summary(const Check *c, FILE *to)
{
    int sets = 0;
    for (int32_t set = 0; set < N_SETS; set++)
        sets += c->results[set] != NULL;
    fprintf(to, "CHECK: %lld runs of passes made changes, results are the same on %d set%s of arguments, seed %llu\n", (long long)c->runs, sets,
            sets == 1 ? "" : "s", (unsigned long long)c->options.seed);
}
