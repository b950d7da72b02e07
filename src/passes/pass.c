/* The pass manager: a pipeline's text becomes a list of stages; each stage runs a pass or repeats a list of stages.
 *
 *   pipeline = stage {"," stage}      stage = NAME ["{" KEY ["=" VALUE] {"," ...} "}"] | "fix" "(" pipeline ")"
 *
 * What enters a stage is a verified module; what leaves it is one too, or the process dies with the name of the pass. */
#include "config.h"

#include "passes/pass_int.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ir/canon.h"
#include "ir/verify.h"

enum { FIX_ROUNDS = 25, MAX_NESTING = 16 };

const PassInfo pass_table[] = {
#define PASS(id, name, options, summary) {name, options, summary, pass_##id},
#include "passes/passes.def"
#undef PASS
};
const int pass_count = (int)(sizeof pass_table / sizeof *pass_table);

#define LOOPS "simplify-conditional,conditional-code-motion,while-loop-constant-sinking,while-loop-fusible-sinking,simplify-while-loops,while_loop_unroller{elementwise,trips=8},while-loop-map,while-loop-invariant-code-motion,while-loop-dot-code-motion"
#define EXCHANGES(more, exact) "all-reduce-simplifier,all-gather-dynamic-slice-simplifier,all-gather-bcast-reorder,collective-quantizer," more "while-loop-all-reduce-code-motion" exact
#define FEWER(exact) "all-reduce-folder" exact ",all-reduce-reassociate" exact ",reduce-scatter-reassociate" exact ",all-gather-optimizer,"
#define AFTER(more) "reduce-scatter-creator,all-reduce-combiner,all-gather-combiner,reduce-scatter-combiner,collective-permute-combiner," \
    "tuple-simplifier,while-loop-trip-count-annotator," more "fusion,constant_folding,algsimp{only=tuple-gte},cse,dce"

/* What is done again and again, with the rules of algsimp that the level has and what the target adds; NARROW as well: it and reshape-mover undo each other. */
#define SIMPLIFY(algsimp, more, exchanges) "fix(inline," algsimp ",reshape-mover,simplify-sorts,topk-rewriter,permutation_sort_simplifier,scatter-slice-simplifier," more "constant_folding," LOOPS "," exchanges ",cse,dce)"
#define NARROW(algsimp) "fix(convert-mover," algsimp ",cse,dce)"
#define CPU(algsimp, exact) "sharding-remover,dce,conditional-to-select,batchnorm_expander{inner}," SIMPLIFY(algsimp, "", EXCHANGES("", exact)) "," AFTER("layout-assignment,")
#define CUDA(algsimp, exact) "sharding-remover,dce,conditional-to-select,batchnorm_expander," SIMPLIFY(algsimp, "slice-sinker,", EXCHANGES(FEWER(exact), exact)) "," \
    NARROW(algsimp) ",all-reduce-splitter" exact "," AFTER("layout-assignment{scores},")
#define O1 "sharding-remover,conditional-to-select,inline,dce,algsimp{exact},cse,constant_folding,simplify-conditional,simplify-while-loops,dce"

/* A kernel on a GPU costs its launch and its memory traffic, so there narrow elements are moved, one kernel computes on all parts of an array, sums over
 * devices are exchanged once and no more of them than is needed, features lie as they are given, and batch normalization joins the kernels around it wherever its features are. On a CPU sums
 * for each of the inner features alone are cheaper than its routine, and the others change nothing that could be measured. */
const char *pipeline_for_level(int level, const char *target)
{
    static const char *const levels[2][4] = {
        {"", O1, CPU("algsimp{finite}", "{exact}"), CPU("algsimp", "")},
        {"", O1, CUDA("algsimp{finite}", "{exact}"), CUDA("algsimp", "")},
    };
    return levels[strcmp(target, "cuda") == 0][level < 0 ? 0 : level > 3 ? 3 : level];
}

const char *pass_arg(const PassCtx *cx, const char *key)
{
    for (int k = cx->n_args - 1; k >= 0; k--)
        if (strcmp(cx->args[k].key, key) == 0)
            return cx->args[k].value;
    return NULL;
}

bool pass_arg_is(const PassCtx *cx, const char *key)
{
    const char *text = pass_arg(cx, key);
    return text && strcmp(text, "true") == 0;
}

int64_t pass_arg_int(const PassCtx *cx, const char *key, int64_t otherwise)
{
    const char *text = pass_arg(cx, key);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

/* ---- text to stages ---- */

typedef struct Reader {
    Arena      *a;
    const char *p;
    Diag       *d;
    int         depth;
} Reader;

static void skip_blanks(Reader *r)
{
    while (isspace((unsigned char)*r->p))
        r->p++;
}

static bool take(Reader *r, char c)
{
    skip_blanks(r);
    if (*r->p != c)
        return false;
    r->p++;
    return true;
}

/* A name, key or value: everything up to blanks and punctuation. */
static const char *word(Reader *r)
{
    skip_blanks(r);
    size_t n = strcspn(r->p, " \t\r\n,{}()=");
    char  *w = arena_strndup(r->a, r->p, n);
    r->p += n;
    return w;
}

static bool complain(Reader *r, const char *what)
{
    skip_blanks(r);
    if (*r->p)
        diag_error(r->d, LOC_NONE, "expected %s in the pipeline before '%s'", what, r->p);
    else
        diag_error(r->d, LOC_NONE, "expected %s at the end of the pipeline", what);
    return false;
}

static const PassInfo *find_pass(const char *name, Diag *d)
{
    const char *names[sizeof pass_table / sizeof *pass_table];
    for (int k = 0; k < pass_count; k++) {
        if (strcmp(pass_table[k].name, name) == 0)
            return &pass_table[k];
        names[k] = pass_table[k].name;
    }
    const char *near = nearest_word(name, names, pass_count);
    if (near)
        diag_error(d, LOC_NONE, "unknown pass '%s', did you mean '%s'?", name, near);
    else
        diag_error(d, LOC_NONE, "unknown pass '%s' (--list-passes shows them)", name);
    return NULL;
}

bool pass_known(const char *name, Diag *d)
{
    return find_pass(name, d) != NULL;
}

bool list_has(const char *list, const char *w)
{
    size_t n = strlen(w);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && memcmp(p, w, n) == 0)
            return true;
    return false;
}

/* What the table says of an option's value: "" for one without, NULL where the pass has no such option. It ends at a comma. */
static const char *option_value(const PassInfo *pass, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = pass->options; *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, key, n) == 0 && strchr(",=", p[n])) /* 0 ends the last one */
            return p[n] == '=' ? p + n + 1 : "";
    return NULL;
}

static bool is_number(const char *text)
{
    char *end;
    return isdigit((unsigned char)*text) && strtoll(text, &end, 10) < LLONG_MAX && !*end;
}

/* value: NULL where none is given. */
static bool check_option(const Reader *r, const PassInfo *pass, const char *key, const char *value)
{
    const char *wanted = option_value(pass, key);
    int         n = wanted ? (int)strcspn(wanted, ",") : 0;
    if (!wanted)
        diag_error(r->d, LOC_NONE, "pass '%s' has no option '%s'%s%s", pass->name, key, *pass->options ? ", only: " : "", pass->options);
    else if (n == 0 && value && strcmp(value, "true") != 0)
        diag_error(r->d, LOC_NONE, "pass '%s': option '%s' takes no value, got '%s'", pass->name, key, value);
    else if (n > 0 && (!value || !*value))
        diag_error(r->d, LOC_NONE, "pass '%s': option '%s' expects a value: %s=%.*s", pass->name, key, key, n, wanted);
    else if (n == 1 && *wanted == 'N' && !is_number(value))
        diag_error(r->d, LOC_NONE, "pass '%s': option '%s' expects a number from 0 up, got '%s'", pass->name, key, value);
    else
        return true;
    return false;
}

static bool read_args(Reader *r, Stage *s)
{
    if (take(r, '}'))
        return true;
    do {
        const char *key = word(r), *value = *key && take(r, '=') ? word(r) : NULL;
        if (!*key)
            return complain(r, "a key");
        if (!check_option(r, s->pass, key, value))
            return false;
        vec_push(r->a, &s->args, ((KeyValue){.key = key, .value = value ? value : "true"}));
    } while (take(r, ','));
    return take(r, '}') || complain(r, "'}'");
}

static bool read_stages(Reader *r, Stage **out);

static bool read_fix(Reader *r, Stage *s)
{
    if (++r->depth > MAX_NESTING) {
        diag_error(r->d, LOC_NONE, "fix(...) is nested more than %d deep", MAX_NESTING);
        return false;
    }
    bool good = read_stages(r, &s->body) && (take(r, ')') || complain(r, "')'"));
    r->depth--;
    return good;
}

static bool read_stage(Reader *r, Stage *s)
{
    const char *name = word(r);
    if (!*name)
        return complain(r, "a pass");
    if (strcmp(name, "fix") == 0)
        return take(r, '(') ? read_fix(r, s) : complain(r, "'(' behind fix");
    s->pass = find_pass(name, r->d);
    return s->pass && (!take(r, '{') || read_args(r, s));
}

static bool read_stages(Reader *r, Stage **out)
{
    do {
        Stage *s = ARENA_NEW(r->a, Stage);
        if (!read_stage(r, s))
            return false;
        *out = s;
        out = &s->next;
    } while (take(r, ','));
    return true;
}

static bool read_pipeline(Arena *a, const char *text, Stage **out, Diag *d)
{
    Reader r = {a, text, d, 0};
    skip_blanks(&r);
    if (!*r.p)
        return true;
    if (!read_stages(&r, out))
        return false;
    skip_blanks(&r);
    return !*r.p || complain(&r, "','");
}

bool pipeline_check(const char *text, Diag *d)
{
    Stage *ignored = NULL;
    return read_pipeline(d->arena, text, &ignored, d);
}

/* ---- running ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void verify_now(Run *r, const char *pass)
{
    if (!r->unverified || r->o->verify_none)
        return;
    Diag d;
    diag_init(&d, r->d->arena);
    d.context = arena_printf(r->d->arena, "after pass %s: ", pass);
    if (!verify_module(r->m, &d)) {
        diag_print(&d, r->log, false);
        die("pass %s broke module %s", pass, r->m->name);
    }
    r->unverified = false;
}

/* Counts a run of a pass; false when it is one too many. */
static bool next_run(Run *r, const char *pass)
{
    r->runs++;
    if (!r->o->bisect)
        return true;
    bool runs = r->o->bisect_limit < 0 || r->runs <= r->o->bisect_limit;
    fprintf(r->log, "BISECT: %s pass (%lld) %s\n", runs ? "running" : "NOT running", (long long)r->runs, pass);
    return runs;
}

/* As a pipeline has it. */
static const char *stage_text(Arena *a, const Stage *s)
{
    const char *text = s->pass->name;
    for (int k = 0; k < s->args.n; k++)
        text = arena_printf(a, "%s%c%s=%s", text, k ? ',' : '{', s->args.v[k].key, s->args.v[k].value);
    return s->args.n ? arena_printf(a, "%s}", text) : text;
}

static bool tell_begin(const Run *r, const PassRun *run)
{
    for (int k = 0; k < r->o->n_watches; k++) {
        const PipelineWatch *w = &r->o->watches[k];
        if (w->begin && !w->begin(w->cookie, r->m, run))
            return false;
    }
    return true;
}

static void tell_ran(const Run *r, const PassRun *run)
{
    for (int k = 0; k < r->o->n_watches; k++)
        if (r->o->watches[k].ran)
            r->o->watches[k].ran(r->o->watches[k].cookie, run);
}

static bool tell_end(const Run *r, const PassRun *run)
{
    for (int k = 0; k < r->o->n_watches; k++) {
        const PipelineWatch *w = &r->o->watches[k];
        if (w->end && !w->end(w->cookie, r->m, run))
            return false;
    }
    return true;
}

/* With --verify-each what a pass says of its run is held against the module too. */
static bool watches_state(const Run *r)
{
    return r->o->verify_each && !r->o->verify_none;
}

static void state_before(Run *r)
{
    if (watches_state(r) && !r->state_known)
        r->state = module_state(r->m);
    r->state_known = true;
}

static void state_after(Run *r, const char *pass, bool changed)
{
    if (!watches_state(r))
        return;
    uint64_t state = module_state(r->m);
    if (!changed && state != r->state)
        die("pass %s changed module %s and says that it did not", pass, r->m->name);
    if (changed && state == r->state)
        die("pass %s says that it changed module %s and did not", pass, r->m->name);
    r->state = state;
}

/* Runs the function of the pass and counts. */
static bool apply(Run *r, Stage *s, PassRun *run)
{
    PassCtx cx = {.scratch = arena_new(), .diag = r->d, .target = r->o->target ? r->o->target : "cpu", .pass = s->pass->name};
    cx.device = r->o->device ? r->o->device : device_of_target(cx.target);
    cx.remarks = r->o->remarks;
    cx.args = s->args.v;
    cx.n_args = s->args.n;
    cx.limit = r->rewrites_left;
    state_before(r);
    module_set_maker(r->m, r->o->makers ? s->pass->name : NULL);
    double start = now();
    bool   did = s->pass->run(r->m, &cx);
    s->seconds += now() - start;
    module_set_maker(r->m, NULL);
    state_after(r, s->pass->name, did);
    if (cx.rewrites > cx.limit)
        die("pass %s made %lld rewrites where %lld were left", s->pass->name, (long long)cx.rewrites, (long long)cx.limit);
    run->changed = did;
    run->rewrites = cx.rewrites;
    run->finite = cx.finite;
    run->did = cx.did;
    run->did_at = cx.did_at;
    r->rewrites += cx.rewrites;
    r->rewrites_left -= r->o->limit_rewrites ? cx.rewrites : 0;
    s->runs++;
    s->rewrites += cx.rewrites;
    s->changes += did;
    arena_free(cx.scratch);
    return did;
}

/* The run that --start-at or --stop-after means; seen: how many of the pass there were. */
static bool is_run(const RunName *wanted, const char *pass, int64_t *seen)
{
    return wanted->pass && strcmp(wanted->pass, pass) == 0 && ++*seen == wanted->nth;
}

/* Between --start-at and --stop-after. */
static bool is_within(Run *r, const char *pass)
{
    r->started |= is_run(&r->o->start_at, pass, &r->start_seen);
    bool within = r->started && !r->stopped;
    r->stopped |= is_run(&r->o->stop_after, pass, &r->stop_seen);
    return within;
}

static bool run_pass(Run *r, Stage *s, bool *changed)
{
    const char *name = s->pass->name;
    int         errors = r->d->errors;
    if (!is_within(r, name) || !next_run(r, name))
        return true;
    PassRun run = {.pass = name, .number = r->runs, .before = r->rewrites, .limit = r->rewrites_left};
    run.stage = r->o->n_watches ? stage_text(r->d->arena, s) : name;
    dump_before(r, name);
    if (!tell_begin(r, &run))
        return false;
    bool did = apply(r, s, &run);
    tell_ran(r, &run);
    if (did) {
        r->unverified = *changed = true;
        r->last_changed = name;
    }
    if (r->o->verify_each)
        verify_now(r, name);
    if (!dump_after(r, name, did))
        return false;
    return r->d->errors == errors && tell_end(r, &run);
}

static bool run_stages(Run *r, Stage *first, bool *changed);

static bool run_fix(Run *r, Stage *s, bool *changed)
{
    for (int round = 0; round < FIX_ROUNDS; round++) {
        bool again = false;
        if (!run_stages(r, s->body, &again))
            return false;
        if (!again)
            return true;
        *changed = true;
    }
    diag_warning(r->d, LOC_NONE, "fix(%s%s) has not settled after %d rounds; the last pass that changed something was %s", s->body->pass ? s->body->pass->name : "fix",
                 s->body->next ? ",..." : "", FIX_ROUNDS, r->last_changed);
    return true;
}

static bool run_stages(Run *r, Stage *first, bool *changed)
{
    for (Stage *s = first; s; s = s->next)
        if (!(s->pass ? run_pass(r, s, changed) : run_fix(r, s, changed)))
            return false;
    return true;
}

/* ---- the whole ---- */

/* What passes worked on is printed in an order, with stack-frame numbers and zeros that reading it keeps, whether they changed something or not: the text of
 * a pipe is a fixed point. A module that no pass is asked for keeps XLA's, which settle only when they are read again. */
static void settle(Module *m, const Stage *stages)
{
    if (!stages)
        return;
    m->changed = true;
    module_settle_order(m);
    module_rebuild_stack_frames(m);
}

static bool check_met(const Run *r, const char *option, const RunName *wanted, int64_t seen)
{
    if (!wanted->pass || seen >= wanted->nth)
        return true;
    if (wanted->nth > 1)
        diag_error(r->d, LOC_NONE, "%s: no run %lld of pass '%s', there were %lld", option, (long long)wanted->nth, wanted->pass, (long long)seen);
    else
        diag_error(r->d, LOC_NONE, "%s: no run of pass '%s' in the pipeline", option, wanted->pass);
    return false;
}

static bool check_names_met(const Run *r)
{
    return check_met(r, "--start-at", &r->o->start_at, r->start_seen) && check_met(r, "--stop-after", &r->o->stop_after, r->stop_seen);
}

bool pipeline_run(Module *m, const char *text, const PipelineOptions *o, Diag *d)
{
    Stage *stages = NULL;
    if (!read_pipeline(d->arena, text, &stages, d))
        return false;
    Run r = {.m = m, .o = o, .d = d, .log = o->log ? o->log : stderr};
    r.rewrites_left = o->limit_rewrites ? o->rewrite_limit : INT64_MAX;
    r.started = o->start_at.pass == NULL;
    if (!dump_open_dir(&r))
        return false;
    settle(m, stages);
    dump_start(&r);
    bool changed = false, good = run_stages(&r, stages, &changed) && check_names_met(&r);
    dump_end(&r);
    settle(m, stages);
    verify_now(&r, "pipeline");
    report_stages(&r, stages);
    return good;
}

void pass_remark(PassCtx *cx, const Inst *at, const char *fmt, ...)
{
    if (!cx->remarks)
        return;
    Buf     b = {0};
    va_list ap;
    buf_printf(&b, "%s: ", cx->pass);
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    if (regexec(cx->remarks, b.p, 0, NULL, 0) == 0)
        diag_remark(cx->diag, at->loc, "%s", b.p);
    buf_free(&b);
}
