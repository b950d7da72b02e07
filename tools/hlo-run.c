/* hlo-run: runs one module on data from files, compares, times. The work is in src/driver; here is its order:
 *
 *   text -> (cache hit: signature and code) | parse, verify -> arguments -> passes, C, compiler -> run
 *        -> store, show, compare, time */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "data/fill.h"
#include "data/manifest.h"
#include "driver/devices.h"
#include "driver/externs.h"
#include "driver/feeds.h"
#include "driver/find.h"
#include "driver/inputs.h"
#include "driver/isolate.h"
#include "driver/results.h"
#include "driver/shadow.h"
#include "eval/eval.h"
#include "ir/spread_sizes.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "proto/read.h"
#include "support/buf.h"
#include "support/host.h"
#include "support/options.h"
#include "support/outfile.h"
#include "support/tool.h"

typedef struct Args {
    const char *backend, *outputs, *expect, *fake, *fill, *against, *time, *rule, *fill_elided, *constants, *infeed, *outfeed, *cc, *compile, *subnormals, *convolutions, *libraries, *device;
    const Device *machine; /* device, read; NULL: the target's first */
    const char *trace, *trace_file, *profile, *shadow;
    OptionList  inputs, raws, texts, calls, dists;
    int         level;
    int64_t     threads, repeat, ulp, seed, trace_limit, max_trip, worst;
    double      atol, rtol;
    bool        deterministic, pack_constants, full, stats, cache, cuda_check, first_nonfinite, isolate, all, json;
    Devices on;
    const char *assignment, *axis;
    MessageArgs messages;
} Args;

#define ARG(member) offsetof(Args, member)
#define NOT_GIVEN INT64_MIN /* of --ulp; -infinity of --atol and --rtol */

static const Option options[] = {
    {"backend", 0, OPT_CHOICE, ARG(backend), "c|eval|cuda|cudasim", "as C (default), evaluated, as CUDA, on the CPU", "Running"},
    {"O", 'O', OPT_LEVEL, ARG(level), "0-3", "optimize first (default: 2, for eval 0)", "Running"},
    {"threads", 0, OPT_INT, ARG(threads), "N", "threads (default: the usable processors)", "Running"},
    {"cc", 0, OPT_STRING, ARG(cc), "PROGRAM", "the compiler", "Running"},
    {"compile", 0, OPT_CHOICE, ARG(compile), "best|fast", "code that is fast (default), or compiled fast", "Running"},
    {"subnormals", 0, OPT_CHOICE, ARG(subnormals), "keep|flush", "tiny floats as IEEE (default), or zeros", "Running"},
    {"convolutions", 0, OPT_CHOICE, ARG(convolutions), "direct|auto", "as defined, or fewer products (default: auto)", "Running"},
    {"pack-constants", 0, OPT_SWITCH, ARG(pack_constants), NULL, "products pack constants once (default)", "Running"},
    {"deterministic", 0, OPT_FLAG, ARG(deterministic), NULL, "cuda, cudasim: floats of a scatter in order", "Running"},
    {"libraries", 0, OPT_CHOICE, ARG(libraries), "none|auto", "cuda, cudasim: cuBLASLt, cuDNN (default: auto)", "Running"},
    {"device", 0, OPT_STRING, ARG(device), "D", "cuda, cudasim: sm_90 (default), ... or a table", "Running"},
    {"cuda-check", 0, OPT_SWITCH, ARG(cuda_check), NULL, "cudasim: check accesses (default)", "Running"},
    {"custom-call", 0, OPT_LIST, ARG(calls), "LIBRARY", "functions for custom calls: a shared library", "Running"},
    {"cache", 0, OPT_SWITCH, ARG(cache), NULL, "keep compiled modules (default)", "Running"},
    {"seed", 0, OPT_INT, ARG(seed), "N", "of the opcode rng, evaluated (default: 0)", "Running"},
    {"max-trip", 0, OPT_INT, ARG(max_trip), "N", "iterations that a loop may have", "Running"},
    {"replicas", 0, OPT_INT, ARG(on.replicas), "N", "replicas (default: 1)", "Devices"},
    {"partitions", 0, OPT_INT, ARG(on.partitions), "N", "partitions of each replica (default: 1)", "Devices"},
    {"device-assignment", 0, OPT_STRING, ARG(assignment), "LIST", "device of each partition, replica by replica", "Devices"},
    {"device-axis", 0, OPT_CHOICE, ARG(axis), "yes|no", "results of each device (default: if an input is)", "Devices"},
    {"inputs", 'i', OPT_LIST, ARG(inputs), "FILE", "arguments: .npz, .safetensors, .npy in order", "Data"},
    {"arg", 0, OPT_LIST, ARG(texts), "[NAME=]LITERAL", "one argument as HLO text: {1, 2}", "Data"},
    {"raw", 0, OPT_LIST, ARG(raws), "[NAME=]FILE", "one argument as bytes, last dimension fastest", "Data"},
    {"fake", 0, OPT_STRING, ARG(fake), "SEED|random", "make up the arguments that no file has", "Data"},
    {"fake-dist", 0, OPT_LIST, ARG(dists), "[NAME=]DIST", "with --fake: how, as normal(0,1) or special", "Data"},
    {"fill", 0, OPT_STRING, ARG(fill), "FILE[:KEY]", "make missing arguments as a manifest says", "Data"},
    ELIDED_OPTIONS(ARG(fill_elided), ARG(constants)),
    {"infeed", 0, OPT_STRING, ARG(infeed), "FILE", "what infeeds take: .npz (infeed0, ...)", "Data"},
    {"outputs", 'o', OPT_STRING, ARG(outputs), "FILE", "store the results: .npz, .safetensors, one .npy", "Results"},
    {"outfeed", 0, OPT_STRING, ARG(outfeed), "FILE", "store what outfeeds give: .npz (outfeed0, ...)", "Results"},
    {"full", 0, OPT_FLAG, ARG(full), NULL, "print long results whole", "Results"},
    {"expect", 0, OPT_STRING, ARG(expect), "FILE", "compare with the results in a file", "Comparing"},
    {"against", 0, OPT_STRING, ARG(against), "FILE", "compare with this module, evaluated", "Comparing"},
    {"atol", 0, OPT_DOUBLE, ARG(atol), "X", "allowed absolute error (default: by type)", "Comparing"},
    {"rtol", 0, OPT_DOUBLE, ARG(rtol), "X", "allowed relative error", "Comparing"},
    {"ulp", 0, OPT_INT, ARG(ulp), "N", "allowed distance in representable values", "Comparing"},
    {"rule", 0, OPT_CHOICE, ARG(rule), "sum|both|ulp", "atol + rtol |e|; wrong above both; ulp", "Comparing"},
    {"worst", 0, OPT_INT, ARG(worst), "N", "show N elements of each result (default: 5)", "Comparing"},
    {"json", 0, OPT_FLAG, ARG(json), NULL, "the report as JSON, a line for each result", "Comparing"},
    {"trace", 0, OPT_STRING, ARG(trace), "REGEX", "store values of instructions so named", "Finding"},
    {"trace-file", 0, OPT_STRING, ARG(trace_file), "FILE", "where to (default: trace.npz)", "Finding"},
    {"trace-limit", 0, OPT_INT, ARG(trace_limit), "BYTES", "how much at most (default: 1073741824)", "Finding"},
    {"first-nonfinite", 0, OPT_FLAG, ARG(first_nonfinite), NULL, "stop at the first NaN or infinity that is made", "Finding"},
    {"isolate", 0, OPT_FLAG, ARG(isolate), NULL, "which instruction is compiled wrong?", "Finding"},
    {"all", 0, OPT_FLAG, ARG(all), NULL, "with --isolate: do not stop at the first", "Finding"},
    {"shadow", 0, OPT_CHOICE, ARG(shadow), "f64", "how far is it from double precision?", "Finding"},
    {"repeat", 0, OPT_INT, ARG(repeat), "N", "run N more times, timed", "Measuring"},
    {"profile", 0, OPT_MAYBE, ARG(profile), "FILE", "times by instruction; FILE: as JSON", "Measuring"},
    {"time", 0, OPT_STRING, ARG(time), "FILE", "write times as JSON", "Measuring"},
    {"stats", 0, OPT_FLAG, ARG(stats), NULL, "say on stderr what was run", "Measuring"},
    MESSAGE_OPTIONS(ARG(messages)),
    {0},
};

static const ToolInfo tool = {
    .name = "hlo-run",
    .summary = "run an HLO module on data from files",
    .usage = "[OPTION...] [FILE|-]",
    .options = options,
    .max_files = 1,
};

typedef struct Run {
    const Args     *args;
    Arena          *arena;
    const char     *path; /* of the module, "-": stdin */
    Diag            diag;  /* about the module's text */
    Diag            world; /* about everything else */
    Buf             text;
    Module         *module; /* NULL while it is not needed */
    Cache          *cache;
    Compiled       *compiled;
    Signature      *signature;
    const Manifest *manifest;
    Literal       **inputs, **results;
    const ExternCalls *calls; /* NULL: no library was given */
    Feeds          *feeds; /* NULL: neither option was given */
    EvalHost        host;  /* both of them, for the evaluator */
    Ints            assignment; /* of devices; none: in order */
    RunTimes        times;
    Trace          *trace;     /* NULL: not asked for, as the next two */
    Nonfinite      *nonfinite;
    Profile        *profile;
    Shadow         *shadow;
} Run;

/* ---- the module ---- */

static bool read_text(const char *path, Buf *text, Diag *d, Diag *world)
{
    if (!buf_read_file(text, path)) {
        diag_error(world, LOC_NONE, "%s: %s", tool_shown(path), strerror(errno));
        return false;
    }
    diag_source(d, tool_shown(path), NULL, 0);
    return module_input(text, d);
}

/* Parsed and verified, with all its constants. */
static Module *load_module(const Args *args, Buf *text, Diag *d)
{
    Module *m = module_read_in_place(text, NULL, d);
    if (!m)
        return NULL;
    Arena     *scratch = arena_new();
    Signature *s = verify_module(m, d) ? signature_of(scratch, m, d) : NULL;
    bool       ok = s && execution_fits(s, m, d) && elided_fill(m, args->fill_elided, args->constants, d) && elided_check(m, d);
    arena_free(scratch);
    if (ok) {
        spread_sizes(m);
        return m;
    }
    module_free(m);
    return NULL;
}

static void free_module(void *m)
{
    module_free(m);
}

static bool need_module(Run *r)
{
    if (r->module)
        return true;
    double start = seconds_now();
    r->module = load_module(r->args, &r->text, &r->diag);
    r->times.parse_s = seconds_now() - start;
    if (r->module)
        arena_defer(r->arena, free_module, r->module);
    return r->module != NULL;
}

static bool is_compiled(const Args *args)
{
    return strcmp(args->backend, "eval") != 0;
}

static bool is_cuda(const Args *args)
{
    return strncmp(args->backend, "cuda", 4) == 0;
}

static Code code_of(const Args *args)
{
    if (strcmp(args->backend, "cudasim") == 0)
        return args->cuda_check ? CODE_CUDASIM : CODE_CUDASIM_UNCHECKED;
    return is_cuda(args) ? CODE_CUDA : CODE_C;
}

/* A scheduled module is the product of a compiler and runs as it stands. */
static int level_of(const Args *args, const Module *m)
{
    if (args->level >= 0)
        return args->level;
    return is_compiled(args) && !args->isolate && !m->is_scheduled ? 2 : 0;
}

/* Passes ask the header how many devices there are: one partition's shardings mean nothing. */
static bool declare_devices(Run *r)
{
    Devices on = r->args->on;
    if (devices_count(on) == 1)
        return true;
    r->module->replica_count = on.replicas;
    r->module->num_partitions = on.partitions;
    return verify_module(r->module, &r->diag);
}

static bool optimize(Run *r)
{
    double          start = seconds_now();
    PipelineOptions o = {.target = is_cuda(r->args) ? "cuda" : "cpu", .device = r->args->machine, .log = stderr};
    const char     *passes = pipeline_for_level(level_of(r->args, r->module), o.target);
    bool            ok = !*passes || (declare_devices(r) && pipeline_run(r->module, passes, &o, &r->diag));
    r->times.optimize_s = seconds_now() - start;
    return ok && r->diag.errors == 0;
}

/* Compiled code tells what it does. */
static bool is_watched(const Args *args)
{
    return args->trace || args->profile;
}

/* Constants from other sources than the text are not in the key, so such a module is not looked up; nor is one whose steps are wanted. */
static bool has_key(const Args *args)
{
    return !args->fill_elided && !args->constants && !is_watched(args);
}

static bool is_fast(const Args *args)
{
    return args->compile && !strcmp(args->compile, "fast");
}

static int threads_of(const Args *a)
{
    return a->threads ? (int)a->threads : host_processors();
}

/* Do several threads share the loops of kernels? */
static bool in_ranges(const Args *a)
{
    return threads_of(a) > 1 && a->on.replicas * a->on.partitions == 1;
}

static CacheKey key_of(const Run *r)
{
    const char *cc = r->args->cc ? r->args->cc : "";
    return compiled_key(r->text.p ? r->text.p : "", r->text.n, arena_printf(r->arena, "O%d code=%d fast=%d cc=%s convolutions=%s pack=%d ranges=%d libraries=%s deterministic=%d %s %" PRId64 "*%" PRId64, r->args->level, code_of(r->args), is_fast(r->args), cc, r->args->convolutions, r->args->pack_constants, in_ranges(r->args), r->args->libraries, r->args->deterministic, r->args->machine ? device_text(r->arena, r->args->machine) : "",
                                                                               r->args->on.replicas, r->args->on.partitions));
}

/* Opens the cache and looks there. */
static void look_up(Run *r)
{
    r->cache = cache_open(r->arena, r->args->cache);
    if (has_key(r->args)) {
        CacheKey key = key_of(r);
        r->compiled = compiled_from_cache(r->arena, r->cache, &key, &r->signature);
        r->times.cache_hit = r->compiled != NULL;
    }
    if (!r->compiled)
        r->signature = NULL;
}

static bool is_traced(void *trace, const Inst *i)
{
    return trace_wants(trace, i);
}

static bool build(Run *r)
{
    CacheKey key = key_of(r);
    CompileOptions o = {.code = code_of(r->args), .cc = r->args->cc, .fast = is_fast(r->args), .device = r->args->machine, .direct_convolutions = strcmp(r->args->convolutions, "direct") == 0, .plain_constants = !r->args->pack_constants, .ranges = in_ranges(r->args), .no_libraries = strcmp(r->args->libraries, "none") == 0, .deterministic = r->args->deterministic,
                        .calls = r->calls, .on = r->args->on};
    if (is_watched(r->args)) {
        o.watched = true;
        o.is_shown = r->trace ? is_traced : NULL;
        o.shown_cookie = r->trace;
    }
    r->compiled = compiled_build(r->arena, r->cache, r->module, r->signature, has_key(r->args) ? &key : NULL, &o, &r->times, &r->diag);
    return r->compiled != NULL;
}

/* ---- arguments ---- */

static bool parse_seed(Run *r, const char *text, uint64_t *seed)
{
    char *end;
    if (strcmp(text, "random") == 0) {
        *seed = fill_hash((uint64_t)time(NULL), (uint64_t)getpid()) >> 32;
        fprintf(stderr, "hlo-run: --fake=%" PRIu64 "\n", *seed);
        return true;
    }
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno)
        return true;
    diag_error(&r->world, LOC_NONE, "--fake expects a number or random, got '%s'", text);
    return false;
}

/* Made up before any pass runs, so that a seed means the same values on every level and backend. */
static Literal **make_fakes(Run *r)
{
    uint64_t seed;
    if (!parse_seed(r, r->args->fake, &seed) || !need_module(r))
        return NULL;
    int32_t   n = r->module->entry->n_params;
    Literal **params = ARENA_ARRAY(r->arena, Literal *, n), **leaves = ARENA_ARRAY(r->arena, Literal *, r->signature->n_args);
    FakeDists dists;
    if (!inputs_dists(r->arena, r->signature, r->args->dists.n, r->args->dists.v, &dists, &r->world))
        return NULL;
    bool made = fake_arguments(r->module, seed, &dists, params, &r->diag);
    if (made)
        leaves_flatten(n, params, leaves);
    literals_unref(n, params);
    return made ? leaves : NULL;
}

/* FILE, or FILE:KEY. */
static bool read_manifest(Run *r)
{
    const char *path = r->args->fill, *key = NULL, *colon = strrchr(path, ':');
    if (colon && access(path, F_OK) != 0) {
        key = colon + 1;
        path = arena_strndup(r->arena, path, (size_t)(colon - path));
    }
    r->manifest = manifest_read(r->arena, path, key, r->path, &r->world);
    return r->manifest != NULL;
}

static bool bind_inputs(Run *r)
{
    const Args  *o = r->args;
    InputSources from = {.n_files = o->inputs.n, .files = o->inputs.v, .n_raws = o->raws.n, .raws = o->raws.v, .n_texts = o->texts.n,
                         .texts = o->texts.v};
    Literal    **fakes = NULL;
    if (r->args->fill && !read_manifest(r))
        return false;
    if (r->args->fake && !(fakes = make_fakes(r)))
        return false;
    from.manifest = r->manifest;
    from.devices = devices_count(r->args->on);
    from.fakes = fakes;
    r->inputs = ARENA_ARRAY(r->arena, Literal *, r->signature->n_args);
    bool ok = inputs_bind(r->arena, r->signature, &from, r->inputs, &r->world);
    if (fakes)
        literals_unref(r->signature->n_args, fakes);
    if (!ok && !r->args->fill && strcmp(r->path, "-") != 0 && manifest_near(r->arena, r->path))
        diag_note(&r->world, LOC_NONE, "--fill=%s may have them", manifest_near(r->arena, r->path));
    return ok;
}

/* ---- running ---- */

/* What comes from outside. */
static bool open_host(Run *r)
{
    const Args *a = r->args;
    bool        feeds = a->infeed || a->outfeed;
    if (feeds && !(r->feeds = feeds_open(r->arena, a->infeed, a->outfeed != NULL, devices_count(a->on), r->assignment, &r->world)))
        return false;
    if (a->calls.n > 0 && !(r->calls = externs_open(r->arena, a->calls.n, a->calls.v, &r->world)))
        return false;
    if (feeds)
        r->host = *feeds_host(r->feeds);
    r->host.calls = r->calls;
    return true;
}

static bool assign_devices(Run *r)
{
    const Args *a = r->args;
    return !a->assignment || devices_assignment(r->arena, a->assignment, devices_count(a->on), &r->assignment, &r->world);
}

static DeviceAxis axis_of(const Args *a)
{
    return !a->axis ? AXIS_AS_INPUTS : !strcmp(a->axis, "yes") ? AXIS_YES : AXIS_NO;
}

static bool open_shadow(Run *r)
{
    if (!r->args->shadow)
        return true;
    if (need_module(r))
        r->shadow = shadow_open(r->arena, r->module, &r->host, &r->diag);
    return r->shadow != NULL;
}

/* At most one of these was asked for. Of the module as it runs. */
static bool open_watch(Run *r)
{
    const Args *a = r->args;
    if (a->trace && !(r->trace = trace_open(r->arena, r->module, a->trace, a->trace_limit, &r->world)))
        return false;
    if (a->trace)
        trace_on(r->trace, devices_count(a->on), r->assignment);
    if (a->first_nonfinite)
        r->nonfinite = nonfinite_open(r->arena, devices_count(a->on), r->assignment);
    if (a->profile)
        r->profile = profile_open(r->arena, devices_count(a->on));
    return true;
}

static const EvalWatch *watch_of(const Run *r)
{
    return r->trace ? trace_watch(r->trace) : r->nonfinite ? nonfinite_watch(r->nonfinite) : r->profile ? profile_watch(r->profile) : NULL;
}

static bool prepare(Run *r)
{
    bool c = is_compiled(r->args) && !r->args->isolate;
    if (code_of(r->args) == CODE_CUDA && !gpu_ready(r->args->cc, &r->world))
        return false;
    if (!assign_devices(r) || !open_host(r) || !open_shadow(r))
        return false;
    if (c)
        look_up(r);
    if (!r->compiled) {
        if (!need_module(r))
            return false;
        r->signature = signature_of(r->arena, r->module, &r->diag);
        if (!r->signature)
            return false;
    }
    if (!bind_inputs(r))
        return false;
    if (r->compiled)
        return execution_fits(r->signature, NULL, &r->world);
    if (!optimize(r) || !open_watch(r))
        return false;
    return c ? build(r) && execution_fits(r->signature, NULL, &r->world) : eval_supported_with(r->module, &r->host, r->args->on, &r->diag);
}


static bool flushes(const Args *a)
{
    return a->subnormals && !strcmp(a->subnormals, "flush");
}

/* A module found in the cache has not been read. */
static const Module *module_for_messages(void *of)
{
    Run *r = of;
    return need_module(r) ? r->module : NULL;
}

static bool execute(Run *r)
{
    int64_t   repeat = r->args->repeat ? r->args->repeat : r->args->time ? 1 : 0;
    Execution e = {.signature = r->signature,
                   .compiled = r->compiled,
                   .module = r->module,
                   .find_module = module_for_messages,
                   .cookie = r,
                   .seed = (uint64_t)r->args->seed,
                   .watch = watch_of(r),
                   .steps = r->compiled && is_watched(r->args) ? steps_open(r->arena, r->compiled, r->profile, r->trace) : NULL,
                   .watch_repeats = r->profile != NULL,
                   .max_trips = r->args->max_trip,
                   .calls = r->calls,
                   .feeds = r->feeds,
                   .repeat = repeat,
                   .on = r->args->on,
                   .assignment = r->assignment,
                   .axis = axis_of(r->args)};
    e.threads = threads_of(r->args);
    e.flush = flushes(r->args);
    r->times.threads = e.threads;
    r->results = ARENA_ARRAY(r->arena, Literal *, r->signature->n_results);
    return execution_run(&e, r->inputs, r->results, &r->times, &r->diag) && r->world.errors == 0;
}

/* ---- comparing ---- */

static Tolerances tolerances_of(const Run *r)
{
    const Args *a = r->args;
    Tolerances  t = {.manifest = r->manifest, .json = a->json, .worst = (int32_t)a->worst};
    t.given = a->rule || a->atol >= 0 || a->rtol >= 0 || a->ulp >= 0;
    t.value.rule = a->ulp >= 0 ? COMPARE_ULP : COMPARE_SUM;
    if (a->rule)
        t.value.rule = !strcmp(a->rule, "ulp") ? COMPARE_ULP : !strcmp(a->rule, "both") ? COMPARE_BOTH : COMPARE_SUM;
    t.value.atol = a->atol >= 0 ? a->atol : 0;
    t.value.rtol = a->rtol >= 0 ? a->rtol : 0;
    t.value.ulp = a->ulp >= 0 ? a->ulp : 0;
    return t;
}

/* Two modules can be compared when they take and give arrays of the same types and sizes. */
static bool same_interface(const Signature *x, const Signature *y)
{
    bool same = x->n_args == y->n_args && x->n_results == y->n_results;
    for (int32_t k = 0; same && k < x->n_args; k++)
        same = shape_compatible(x->args[k].shape, y->args[k].shape);
    for (int32_t k = 0; same && k < x->n_results; k++)
        same = shape_compatible(x->results[k].shape, y->results[k].shape);
    return same;
}

static Verdict compare_modules(Run *r, Diag *d, Buf *text, Buf *report)
{
    Verdict v = RESULTS_TROUBLE;
    Module *m = read_text(r->args->against, text, d, &r->world) ? load_module(r->args, text, d) : NULL;
    if (!m)
        return v;
    Signature *s = signature_of(r->arena, m, d);
    Execution  e = {.signature = s, .module = m, .seed = (uint64_t)r->args->seed, .calls = r->calls, .feeds = r->feeds, .threads = 1,
                   .on = r->args->on, .assignment = r->assignment, .axis = axis_of(r->args)};
    Literal  **expected = ARENA_ARRAY(r->arena, Literal *, s ? s->n_results : 0);
    RunTimes   times;
    if (s && !same_interface(r->signature, s)) {
        diag_error(&r->world, LOC_NONE, "%s has other arguments or results than %s", tool_shown(r->args->against),
                   tool_shown(r->path));
    } else if (s && eval_supported_with(m, &r->host, r->args->on, d) &&
               execution_run(&e, r->inputs, expected, &times, d)) {
        Tolerances t = tolerances_of(r);
        v = results_against(report, s, r->results, expected, &t);
        literals_unref(s->n_results, expected);
    }
    module_free(m);
    return v;
}

static Verdict against(Run *r, Buf *report)
{
    Buf    text = {0};
    Arena *a = arena_new();
    Diag   d;
    diag_init(&d, a);
    tool_messages_begin(&d, &r->args->messages);
    Verdict v = compare_modules(r, &d, &text, report);
    tool_messages_print(&d, &r->args->messages);
    arena_free(a);
    buf_free(&text);
    return v;
}

/* ---- output ---- */

static bool write_text(Run *r, const Buf *b, const char *path)
{
    OutFile f;
    outfile_open(&f, r->arena, path);
    outfile_put(&f, b->p, b->n);
    if (outfile_close(&f))
        return true;
    diag_error(&r->world, LOC_NONE, "%s: %s", strcmp(path, "-") ? path : "<stdout>", strerror(f.error));
    return false;
}

static bool is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* Reports go to stdout like diff's, unless data goes there. */
static bool write_report(Run *r, const Buf *report)
{
    if (!is_stdout(r->args->outputs) && !is_stdout(r->args->time))
        return write_text(r, report, "-");
    fwrite(report->p ? report->p : "", 1, report->n, stderr);
    return true;
}

static bool write_times(Run *r)
{
    Buf b = {0};
    run_times_json(&b, &r->times);
    bool ok = write_text(r, &b, r->args->time);
    buf_free(&b);
    return ok;
}

static bool write_trace(Run *r)
{
    const char *fused = r->compiled ? steps_fused(r->arena, r->compiled, r->trace) : NULL;
    return trace_write(r->trace, r->args->trace_file, fused);
}

static bool write_profile(Run *r)
{
    const char *path = r->args->profile;
    Buf         b = {0};
    (*path ? profile_json : profile_table)(&b, r->profile);
    bool ok = !*path || write_text(r, &b, path);
    if (!*path)
        fwrite(b.p, 1, b.n, stderr);
    buf_free(&b);
    return ok;
}

/* The exit status. */
static int finish_nonfinite(Run *r, bool ran)
{
    Buf b = {0};
    if (!ran && !nonfinite_stopped(r->nonfinite))
        return EXIT_TROUBLE;
    bool found = nonfinite_report(&b, r->nonfinite, ran ? r->signature->n_results : 0, r->results);
    bool ok = write_text(r, &b, "-");
    buf_free(&b);
    return !ok ? EXIT_TROUBLE : found ? EXIT_NO : EXIT_SUCCESS;
}

static void show_stats(const Run *r)
{
    const Signature *s = r->signature;
    const RunTimes  *t = &r->times;
    if (r->compiled)
        fprintf(stderr, "hlo-run: %" PRId64 " kernels, %" PRId64 " copies, %" PRId64 " bytes of working memory, cache %s\n",
                s->n_kernels, s->n_copies, s->scratch_bytes, t->cache_hit ? "hit" : "miss");
    fprintf(stderr, "hlo-run: parse %.3f s, optimize %.3f s, emit %.3f s, compile %.3f s\n", t->parse_s, t->optimize_s, t->emit_s,
            t->compile_s);
    if (t->runs)
        fprintf(stderr, "hlo-run: %" PRId64 " runs: min %.1f us, median %.1f us\n", t->runs, t->run_min_us, t->run_median_us);
}

static Verdict compare(Run *r)
{
    const Args *a = r->args;
    Tolerances  t = tolerances_of(r);
    Buf         report = {0};
    Verdict     v = RESULTS_AGREE;
    if (a->expect)
        v = results_expect(&report, r->arena, a->expect, r->signature, r->results, &t, &r->world);
    if (a->against) {
        Verdict other = against(r, &report);
        v = other > v ? other : v;
    }
    if (report.n && !write_report(r, &report))
        v = RESULTS_TROUBLE;
    buf_free(&report);
    return v;
}

/* Its verdict counts instead of the comparison's: other results may be as good. */
static Verdict hold_against_shadow(Run *r)
{
    const Signature *s = r->signature;
    Literal        **expected = r->args->expect ? ARENA_ARRAY(r->arena, Literal *, s->n_results) : NULL;
    Execution        like = {.signature = s, .seed = (uint64_t)r->args->seed, .calls = r->calls, .feeds = r->feeds, .max_trips = r->args->max_trip, .threads = 1};
    Verdict          v = RESULTS_TROUBLE;
    if (expected && !results_read(r->arena, r->args->expect, s, r->results, expected, &r->world))
        return v;
    if (shadow_run(r->shadow, &like, r->inputs, &r->diag)) {
        Buf b = {0};
        v = shadow_report(&b, r->shadow, s, r->results, expected, r->args->json);
        v = write_report(r, &b) ? v : RESULTS_TROUBLE;
        buf_free(&b);
    }
    if (expected)
        literals_unref(s->n_results, expected);
    return v;
}

/* Everything that is done with results. The exit status. */
static int finish(Run *r)
{
    const Args *a = r->args;
    bool        ok = !a->outputs || results_write(r->arena, a->outputs, r->signature, r->results, &r->world);
    ok = ok && (!a->outfeed || feeds_write(r->feeds, a->outfeed, axis_of(a) != AXIS_NO));
    if (ok && a->time)
        ok = write_times(r);
    ok = ok && (!r->trace || write_trace(r)) && (!r->profile || write_profile(r));
    if (ok && !a->outputs && !a->time && !a->expect && !a->against && !a->shadow) {
        Buf b = {0};
        results_print(&b, r->signature, r->results, a->full);
        ok = write_text(r, &b, "-");
        buf_free(&b);
    }
    if (a->stats)
        show_stats(r);
    if (!ok)
        return EXIT_TROUBLE;
    Verdict v = compare(r);
    if (r->shadow && v != RESULTS_TROUBLE)
        v = hold_against_shadow(r);
    return v == RESULTS_AGREE ? EXIT_SUCCESS : v == RESULTS_DIFFER ? EXIT_NO : EXIT_TROUBLE;
}

/* The exit status. */
static int isolate(Run *r)
{
    const Args    *a = r->args;
    IsolateOptions o = {.all = a->all, .json = a->json, .cache = cache_open(r->arena, a->cache), .compile = {.cc = a->cc, .fast = is_fast(a), .calls = r->calls}};
    Execution      like = {.signature = r->signature, .module = r->module, .seed = (uint64_t)a->seed, .calls = r->calls, .threads = threads_of(a)};
    Buf            b = {0};
    Verdict        v = isolate_run(&b, &like, r->inputs, &o, &r->diag);
    if (!write_text(r, &b, "-"))
        v = RESULTS_TROUBLE;
    buf_free(&b);
    return v == RESULTS_AGREE ? EXIT_SUCCESS : v == RESULTS_DIFFER ? EXIT_NO : EXIT_TROUBLE;
}

static int process_file(void *given, Arena *a, const char *path)
{
    const Args *args = given;
    Run         r = {.args = args, .arena = a, .path = path ? path : "-"};
    int         status = EXIT_TROUBLE;
    diag_init(&r.diag, a);
    diag_init(&r.world, a);
    diag_source(&r.world, "hlo-run", NULL, 0);
    tool_messages_begin(&r.diag, &args->messages);
    tool_messages_begin(&r.world, &args->messages);
    bool ready = read_text(r.path, &r.text, &r.diag, &r.world) && prepare(&r);
    if (ready && args->isolate)
        status = isolate(&r);
    else if (ready) {
        bool ran = execute(&r);
        status = r.nonfinite ? finish_nonfinite(&r, ran) : ran ? finish(&r) : EXIT_TROUBLE;
    }
    if (status == EXIT_SUCCESS && r.diag.errors + r.world.errors > 0) /* a warning that counts as one */
        status = EXIT_TROUBLE;
    tool_messages_print(&r.diag, &args->messages);
    tool_messages_print(&r.world, &args->messages);
    if (r.signature && r.inputs)
        literals_unref(r.signature->n_args, r.inputs);
    if (r.signature && r.results)
        literals_unref(r.signature->n_results, r.results);
    buf_free(&r.text);
    return status;
}

static bool in_range(const char *name, int64_t v, int64_t lo, int64_t hi)
{
    if (v < lo || v > hi)
        tool_error(tool.name, "--%s expects a number from %" PRId64 " to %" PRId64, name, lo, hi);
    return v >= lo && v <= hi;
}

static bool check_finding(const Args *a)
{
    if ((a->trace != NULL) + a->first_nonfinite + (a->profile != NULL) + a->isolate > 1) {
        tool_error(tool.name, "--trace, --first-nonfinite, --isolate and --profile exclude each other");
        return false;
    }
    if (a->isolate && (!is_compiled(a) || is_cuda(a) || a->shadow || a->expect || a->against || a->outputs || a->time || a->repeat)) {
        tool_error(tool.name, "--isolate tries --backend=c and makes a report, no results");
        return false;
    }
    if (a->first_nonfinite && (a->shadow || a->expect || a->against || a->outputs || a->time || a->repeat)) {
        tool_error(tool.name, "--first-nonfinite makes a report, no results");
        return false;
    }
    if (a->all && !a->isolate) {
        tool_error(tool.name, "--all belongs to --isolate");
        return false;
    }
    const char *name = a->first_nonfinite ? "first-nonfinite" : a->max_trip ? "max-trip" : NULL;
    if (name && is_compiled(a))
        tool_error(tool.name, "--%s needs --backend=eval", name);
    return !(name && is_compiled(a)) && in_range("trace-limit", a->trace_limit, 0, INT64_MAX) && in_range("max-trip", a->max_trip, 0, INT64_MAX);
}

/* What compiled CUDA has no part in. */
static bool check_cuda(Args *a, Arena *arena)
{
    const char *bad = a->trace ? "trace" : a->profile ? "profile" : a->calls.n > 0 ? "custom-call" : NULL;
    if (is_cuda(a) && bad)
        tool_error(tool.name, "--%s: not with --backend=%s", bad, a->backend);
    if (!a->cuda_check && strcmp(a->backend, "cudasim") != 0) {
        tool_error(tool.name, "--no-cuda-check belongs to --backend=cudasim");
        return false;
    }
    if (a->device && !is_cuda(a)) {
        tool_error(tool.name, "--device belongs to --backend=cuda and cudasim");
        return false;
    }
    if (is_cuda(a) && !(a->machine = device_option(arena, tool.name, a->device, "cuda", &a->messages)))
        return false;
    return !is_cuda(a) || !bad;
}

/* A number from 0, or none was given. */
static bool is_bound(double v)
{
    return v >= 0 || v == -INFINITY;
}

/* What the evaluator alone can do chooses it. */
static const char *backend_for(const Args *a)
{
    return a->first_nonfinite || a->max_trip || a->infeed || a->outfeed ? "eval" : "c";
}

/* What the options ask for is checked before anything is read. */
static bool check_options(void *given, Arena *arena, const char *path)
{
    Args *a = given;
    if (!a->backend)
        a->backend = backend_for(a);
    if (!in_range("seed", a->seed, 0, INT64_MAX) || !in_range("threads", a->threads, 0, 4096) ||
        !in_range("repeat", a->repeat, 0, 1000000000) || !tool_messages_good(tool.name, &a->messages) ||
        (a->ulp != NOT_GIVEN && !in_range("ulp", a->ulp, 0, INT64_MAX)) || !in_range("worst", a->worst, 1, COMPARE_WORST))
        return false;
    if (a->json && !(a->expect || a->against || a->shadow || a->isolate)) {
        tool_error(tool.name, "--json is the form of what --expect, --against, --shadow and --isolate report");
        return false;
    }
    if (a->dists.n > 0 && !a->fake) {
        tool_error(tool.name, "--fake-dist belongs to --fake");
        return false;
    }
    if (!check_finding(a) || !check_cuda(a, arena))
        return false;
    if (a->subnormals && strcmp(a->backend, "c") != 0) {
        tool_error(tool.name, "--subnormals is of --backend=c");
        return false;
    }
    if (!in_range("replicas", a->on.replicas, 1, MOST_DEVICES) ||
        !in_range("partitions", a->on.partitions, 1, MOST_DEVICES / a->on.replicas))
        return false;
    if (devices_count(a->on) > 1 && (a->shadow || a->isolate)) {
        tool_error(tool.name, "--shadow and --isolate look at one device");
        return false;
    }
    if (devices_count(a->on) > 1 && (a->trace || a->profile) && is_compiled(a)) {
        tool_error(tool.name, "--trace and --profile of several devices need --backend=eval");
        return false;
    }
    if (!is_bound(a->atol) || !is_bound(a->rtol)) {
        tool_error(tool.name, "--atol and --rtol expect numbers from 0");
        return false;
    }
    if (a->rule && strcmp(a->rule, "ulp") == 0 ? a->atol >= 0 || a->rtol >= 0
                                               : a->ulp >= 0 && (a->rule || a->atol >= 0 || a->rtol >= 0)) {
        tool_error(tool.name, "--ulp and the bounds --atol and --rtol exclude each other");
        return false;
    }
    if ((a->atol >= 0 || a->rtol >= 0 || a->ulp >= 0 || a->rule) && !a->expect && !a->against) {
        tool_error(tool.name, "--atol, --rtol, --ulp and --rule belong to --expect and --against");
        return false;
    }
    int stdins = (!path || !strcmp(path, "-")) + (a->against && !strcmp(a->against, "-")) + is_stdout(a->expect) + is_stdout(a->constants) + is_stdout(a->infeed);
    for (int k = 0; k < a->inputs.n; k++)
        stdins += is_stdout(a->inputs.v[k]);
    if (stdins > 1) {
        tool_error(tool.name, "stdin can be read only once; name a file");
        return false;
    }
    if (is_stdout(a->outputs) && isatty(STDOUT_FILENO)) {
        tool_error(tool.name, "--outputs=- would write binary data to a terminal");
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    Args args = {.messages = MESSAGE_DEFAULTS, .level = -1, .atol = -INFINITY, .rtol = -INFINITY, .ulp = NOT_GIVEN, .cache = true, .cuda_check = true, .pack_constants = true, .convolutions = "auto", .libraries = "auto",
                 .worst = COMPARE_SHOWN, .trace_file = "trace.npz", .trace_limit = 1 << 30,
                 .on = {1, 1}};
    return tool_main(&tool, &(ToolJob){.check = check_options, .run = process_file}, &args, argc, argv);
}
