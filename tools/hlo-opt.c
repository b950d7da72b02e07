/* hlo-opt: HLO text in, checked and optimized HLO text out.
 * A file is one module, or with --split-input-file pieces that lines "// -----" separate; each piece goes through alone. */
#include "config.h"

#include <errno.h>
#include <regex.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "driver/bisect.h"
#include "driver/check.h"
#include "driver/checks.h"
#include "driver/driver.h"
#include "driver/reproducer.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "proto/proto.h"
#include "proto/read.h"
#include "support/buf.h"
#include "support/expected.h"
#include "support/options.h"
#include "support/outfile.h"
#include "support/tool.h"
#include "text/print.h"

/* What --[no-]print-X says of a form's parts: 1, 0, or -1 for nothing. */
typedef struct PrintToggles {
#define PART(field, name, l, s, c, f, help) int field;
#include "text/print_parts.def"
#undef PART
} PrintToggles;

typedef struct Args {
    const char *memory_limit;
    const char *extract_constants, *constants, *passes, *target, *emit, *print, *print_comp, *callees, *output;
    const char *print_after, *print_before, *print_dir, *filter, *stats, *check_inputs, *check_bound, *test, *crash_reproducer;
    int         level;
    int64_t     print_indent, bisect_limit, rewrite_limit, check_seed, check_work, max_trip, test_timeout;
    bool        check_each, bisect, run_reproducer, verify, verify_each, verify_only, verify_diagnostics, split;
    const char *check_prefix;
    const char *print_changed, *start_at, *stop_after, *remarks, *device;
    const Device *machine;             /* device, read; NULL: the target's own */
    bool        annotate, list_passes, print_pipeline, print_after_all, print_unchanged, time_passes;
    regex_t    *only_comps, *remarked; /* filter and remarks, compiled */
    RunName     first_run, last_run;   /* start_at and stop_after, read */
    MessageArgs messages;
    PrintToggles parts;
} Args;

#define NO_LIMIT INT64_MIN
enum { MAX_CHECK_WORK = 1000000000 };

#define ARG(member) offsetof(Args, member)
static const Option options[] = {
    OUTPUT_OPTION(ARG(output)),
    {"emit", 0, OPT_CHOICE, ARG(emit), "hlo|checks|none", "the module, a FileCheck test, nothing", "Output"},
    {"check-prefix", 0, OPT_STRING, ARG(check_prefix), "NAME", "of the test's directives (default: CHECK)", "Output"},
    {"print", 0, OPT_CHOICE, ARG(print), "long|short|types|canonical|fingerprint|module-fingerprint", "XLA's forms", "Output"},
#define PART(field, name, l, s, c, f, help) {"print-" name, 0, OPT_TOGGLE, ARG(parts.field), NULL, help, "Printing"},
#include "text/print_parts.def"
#undef PART
    {"print-subcomputations", 0, OPT_CHOICE, ARG(callees), "off|names|bodies|parallel", "how called computations are shown", "Printing"},
    {"print-computation", 0, OPT_STRING, ARG(print_comp), "NAME", "this computation alone", "Printing"},
    {"print-indent", 0, OPT_INT, ARG(print_indent), "N", "levels of two blanks before every line", "Printing"},
    {"extract-constants", 0, OPT_STRING, ARG(extract_constants), "FILE", "put constants above 10 elements there (.npz)", "Data"},
    {"constants", 0, OPT_STRING, ARG(constants), "FILE", "values for constants printed as {...}, by name", "Data"},
    {"passes", 0, OPT_STRING, ARG(passes), "LIST", "run these: a,b{key=value},fix(c,d); empty: none", "Passes"},
    {"O", 'O', OPT_LEVEL, ARG(level), "0-3", "run the passes of a level (default: 2)", "Passes"},
    {"target", 0, OPT_CHOICE, ARG(target), "cpu|cuda", "what the levels optimize for", "Passes"},
    {"device", 0, OPT_STRING, ARG(device), "D", "cpu, sm_80, sm_90, sm_100 or a table of costs", "Passes"},
    {"memory-limit", 0, OPT_STRING, ARG(memory_limit), "BYTES", "most temporary memory: N, NK, NM, NG", "Passes"},
    {"list-passes", 0, OPT_FLAG, ARG(list_passes), NULL, "show the passes and exit", "Passes"},
    {"print-pipeline", 0, OPT_FLAG, ARG(print_pipeline), NULL, "show what would run and exit", "Passes"},
    {"print-after", 0, OPT_STRING, ARG(print_after), "LIST", "show the module after these passes, on stderr", "Passes"},
    {"print-before", 0, OPT_STRING, ARG(print_before), "LIST", "show the module before these passes", "Passes"},
    {"print-after-all", 0, OPT_FLAG, ARG(print_after_all), NULL, "show the module after every pass", "Passes"},
    {"print-changed", 0, OPT_FORM, ARG(print_changed), "module|diff", "show the module after passes that changed it", "Passes"},
    {"filter-computations", 0, OPT_STRING, ARG(filter), "RE", "show only computations with such names", "Passes"},
    {"print-dir", 0, OPT_STRING, ARG(print_dir), "DIR", "write NNN.pass.hlo there after each change", "Passes"},
    {"print-unchanged", 0, OPT_FLAG, ARG(print_unchanged), NULL, "there: after every pass", "Passes"},
    {"time-passes", 0, OPT_FLAG, ARG(time_passes), NULL, "show how long each pass took", "Passes"},
    {"stats", 0, OPT_FORM, ARG(stats), "text|json", "show how many rewrites each pass made", "Passes"},
    {"annotate-origin", 0, OPT_FLAG, ARG(annotate), NULL, "say behind instructions which pass made them", "Passes"},
    {"remarks", 0, OPT_MAYBE, ARG(remarks), "RE", "say why rewrites and fusions are made or not", "Passes"},
    {"start-at", 0, OPT_STRING, ARG(start_at), "PASS[,N]", "leave out what runs before (the Nth run of) PASS", "Passes"},
    {"stop-after", 0, OPT_STRING, ARG(stop_after), "PASS[,N]", "leave out what runs after it", "Passes"},
    {"bisect-limit", 0, OPT_INT, ARG(bisect_limit), "N", "leave out what follows N runs of passes", "Passes"},
    {"rewrite-limit", 0, OPT_INT, ARG(rewrite_limit), "N", "stop after N rewrites of all passes", "Passes"},
    {"check-each", 0, OPT_FLAG, ARG(check_each), NULL, "evaluate before and after each pass, compare", "Wrong passes"},
    {"bisect", 0, OPT_FLAG, ARG(bisect), NULL, "find the wrong pass and the wrong rewrite in it", "Wrong passes"},
    {"test", 0, OPT_STRING, ARG(test), "COMMAND", "for --bisect: 0 if the file $1 or {} is right", "Wrong passes"},
    {"test-timeout", 0, OPT_INT, ARG(test_timeout), "N", "seconds of a try or pass, 0: any (default: 300)", "Wrong passes"},
    {"crash-reproducer", 0, OPT_STRING, ARG(crash_reproducer), "FILE|none", "what a pass crashed on (default: none)", "Wrong passes"},
    {"run-reproducer", 0, OPT_FLAG, ARG(run_reproducer), NULL, "run the pass that FILE names on it", "Wrong passes"},
    {"check-inputs", 0, OPT_CHOICE, ARG(check_inputs), "all|plain|special", "arguments: made up, with NaN, -0, ...", "Wrong passes"},
    {"check-bound", 0, OPT_CHOICE, ARG(check_bound), "rounding|exact", "what counts as a difference", "Wrong passes"},
    {"check-seed", 0, OPT_INT, ARG(check_seed), "N", "of the made-up arguments (default: 1)", "Wrong passes"},
    {"check-work", 0, OPT_INT, ARG(check_work), "N", "most millions of operations (default: 40000)", "Wrong passes"},
    {"max-trip", 0, OPT_INT, ARG(max_trip), "N", "iterations that a checked loop may have", "Wrong passes"},
    VERIFY_OPTION(ARG(verify)),
    {"verify-each", 0, OPT_SWITCH, ARG(verify_each), NULL, "verify after every pass (default)", "Checks"},
    {"verify-only", 0, OPT_FLAG, ARG(verify_only), NULL, "parse and verify, run and write nothing", "Checks"},
    {"verify-diagnostics", 0, OPT_FLAG, ARG(verify_diagnostics), NULL, "compare messages with // expected-error {{text}}", "Checks"},
    {"split-input-file", 0, OPT_FLAG, ARG(split), NULL, "treat pieces between // ----- lines as modules", "Checks"},
    MESSAGE_OPTIONS(ARG(messages)),
    {0},
};

static const ToolInfo tool = {
    .name = "hlo-opt",
    .summary = "check, optimize and print HLO text",
    .usage = "[OPTION...] [FILE|-]",
    .options = options,
    .max_files = 1,
};

static PrintOptions print_form_named(const char *name)
{
    PrintOptions o = strcmp(name, "short") == 0       ? print_options_short()
                     : strcmp(name, "canonical") == 0 ? print_options_canonical()
                     : strstr(name, "fingerprint")    ? print_options_fingerprint()
                                                      : print_options_default();
    if (strcmp(name, "types") == 0 || strcmp(name, "module-fingerprint") == 0)
        o.operand_shapes = strcmp(name, "types") == 0;
    return o;
}

static CalleeForm callee_form(const char *word)
{
    static const char *const words[] = {
        [CALLEES_NAMED] = "names", [CALLEES_WHOLE] = "bodies", [CALLEES_PARALLEL] = "parallel", [CALLEES_LEFT_OUT] = "off"};
    int form = CALLEES_NAMED;
    while (strcmp(words[form], word) != 0)
        form++;
    return (CalleeForm)form;
}

static PrintOptions print_form(const Args *args)
{
    const PrintToggles *t = &args->parts;
    PrintOptions        o = print_form_named(args->print);
#define PART(field, name, l, s, c, f, help) o.field = t->field < 0 ? o.field : t->field;
#include "text/print_parts.def"
#undef PART
    if (args->callees)
        o.callees = callee_form(args->callees);
    o.indent = (int32_t)args->print_indent;
    o.makers = args->annotate;
    return o;
}

static bool is_named(const Comp *c, const void *name)
{
    return strcmp(c->name, name) == 0;
}

/* --print-computation */
static bool put_computation(Buf *out, const Module *m, const char *wanted, const PrintOptions *form, Diag *d)
{
    if (print_computations(out, m, form, is_named, wanted) > 0)
        return true;
    Arena       *a = arena_new();
    const char **names = ARENA_ARRAY(a, const char *, m->n_comps);
    int          n = 0;
    for (const Comp *c = m->first; c != NULL; c = c->next)
        names[n++] = c->name;
    const char *near = nearest_word(wanted, names, n);
    diag_error(d, LOC_NONE, "--print-computation: the module has no computation %s%s%s%s", wanted, near ? ", did you mean " : "",
               near ? near : "", near ? "?" : "");
    arena_free(a);
    return false;
}

static bool put_text(const Args *args, Buf *out, const Module *m, const PrintOptions *form, Diag *d)
{
    if (args->print_comp)
        return put_computation(out, m, args->print_comp, form, d);
    print_module(out, m, form);
    return true;
}

/* source: the text that the module was read from. */
static bool put_module(const Args *args, Buf *out, const Module *m, const Buf *source, Diag *d)
{
    PrintOptions form = print_form(args);
    if (!print_is_feasible(m, &form, d))
        return false;
    if (strcmp(args->emit, "hlo") == 0)
        return put_text(args, out, m, &form, d);
    if (strcmp(args->emit, "none") == 0 && !args->print_comp)
        return true;
    Buf  text = {0};
    bool good = put_text(args, &text, m, &form, d);
    if (good && strcmp(args->emit, "checks") == 0) {
        bool readable = source->n && !proto_is(source->p, source->n);
        checks_write(out, source->p, readable ? source->n : 0, &text, args->check_prefix);
    }
    buf_free(&text);
    return good;
}

/* The passes to run. A scheduled module is already the product of a compiler: as in XLA's hlo-opt it passes through unless passes
 * are asked for. */
static const char *choose_passes(const Args *args, const Module *m, Diag *d)
{
    if (args->passes)
        return args->passes;
    if (args->level < 0 && m && m->is_scheduled) {
        diag_warning(d, LOC_NONE, "the module is scheduled and passes through unchanged (-O2 or --passes= would run on it)");
        return "";
    }
    return pipeline_for_level(args->level < 0 ? 2 : args->level, args->target);
}

static PipelineOptions pipeline_options(const Args *args)
{
    return (PipelineOptions){
        .target = args->target,
        .device = args->machine,
        .verify_each = args->verify_each,
        .verify_none = !args->verify,
        .time_passes = args->time_passes,
        .stats = args->stats != NULL,
        .stats_json = args->stats && strcmp(args->stats, "json") == 0,
        .print_dir = args->print_dir,
        .print_unchanged = args->print_unchanged,
        .only_comps = args->only_comps,
        .bisect = args->bisect_limit != NO_LIMIT,
        .bisect_limit = args->bisect_limit,
        .limit_rewrites = args->rewrite_limit != NO_LIMIT,
        .rewrite_limit = args->rewrite_limit,
        .print_after = args->print_after,
        .print_before = args->print_before,
        .print_after_all = args->print_after_all,
        .print_changed = args->print_changed && strcmp(args->print_changed, "module") == 0,
        .print_diff = args->print_changed && strcmp(args->print_changed, "diff") == 0,
        .remarks = args->remarked,
        .makers = args->annotate,
        .start_at = args->first_run,
        .stop_after = args->last_run,
        .log = stderr,
    };
}

static CheckOptions check_options_of(const Args *args)
{
    return (CheckOptions){
        .plain = strcmp(args->check_inputs, "special") != 0,
        .special = strcmp(args->check_inputs, "plain") != 0,
        .exact = strcmp(args->check_bound, "exact") == 0,
        .seed = (uint64_t)args->check_seed,
        .work = args->check_work * 1000000,
        .trips = args->max_trip,
        .seconds = args->test_timeout,
    };
}

/* check: NULL, or what --check-each asks after each pass. Gives the exit status. */
static int run_watched(const Args *args, Module *m, Check *check, Diag *d)
{
    PipelineWatch   watches[2];
    PipelineOptions o = pipeline_options(args);
    const char     *pipeline = choose_passes(args, m, d);
    bool            keeps = args->crash_reproducer && strcmp(args->crash_reproducer, "none") != 0;
    Reproducer     *left = keeps ? reproducer_new(d->arena, args->crash_reproducer, pipeline, args->target) : NULL;
    if (left)
        watches[o.n_watches++] = reproducer_watch(left);
    if (check)
        watches[o.n_watches++] = check_watch(check, d);
    o.watches = watches;
    bool good = pipeline_run(m, pipeline, &o, d);
    reproducer_end(left);
    if (check && check_failed(check))
        return EXIT_NO;
    if (good && check)
        check_summary(check, stderr);
    return good ? EXIT_SUCCESS : EXIT_TROUBLE;
}

static bool needs_check(const Args *args)
{
    return args->check_each || (args->bisect && !args->test);
}

/* --bisect: what is found goes to out. */
static int run_bisect(const Args *args, Module *m, Check *check, Buf *out, Diag *d)
{
    PipelineOptions passes = {.target = args->target, .device = args->machine, .verify_each = args->verify_each, .verify_none = !args->verify,
                              .start_at = args->first_run, .stop_after = args->last_run};
    BisectOptions   o = {.pipeline = choose_passes(args, m, d), .passes = &passes, .check = check, .test = args->test, .timeout = args->test_timeout};
    switch (bisect_pipeline(m, &o, out, d)) {
    case BISECT_RIGHT: return EXIT_SUCCESS;
    case BISECT_FOUND: return EXIT_NO;
    case BISECT_TROUBLE: return EXIT_TROUBLE;
    }
    die("no such verdict");
}

/* Gives the exit status. */
static int run_passes(const Args *args, Module *m, Buf *out, Diag *d)
{
    CheckOptions how = check_options_of(args);
    Check       *check = needs_check(args) ? check_begin(m, &how, d) : NULL;
    if (needs_check(args) && !check)
        return EXIT_TROUBLE;
    int status = args->bisect ? run_bisect(args, m, check, out, d) : run_watched(args, m, check, d);
    check_end(check);
    return status;
}

static bool extract_constants(const Args *args, Module *m, Diag *d)
{
    return !args->extract_constants || elided_extract(m, args->extract_constants, d);
}

/* A module that has been read: passes, then text. Gives the exit status. */
static int optimize_module(const Args *args, Module *m, const Buf *source, Buf *out, Diag *d)
{
    int status = run_passes(args, m, out, d);
    if (status != EXIT_SUCCESS || args->bisect)
        return status;
    m->changed |= !args->passes && args->level < 0; /* what passes through is read by the next tool as well */
    return extract_constants(args, m, d) && d->errors == 0 && put_module(args, out, m, source, d) ? EXIT_SUCCESS : EXIT_TROUBLE;
}

/* One module, to text. in has no capacity when it is a part of another buffer. Gives the exit status. */
static int process_module(const Args *args, Buf *in, Buf *out, Diag *d)
{
    Module *m = in->cap ? module_read_in_place(in, NULL, d) : module_read(in, NULL, d);
    if (!m)
        return EXIT_TROUBLE;
    bool good = (!args->verify || verify_module(m, d)) && elided_fill(m, NULL, args->constants, d) && d->errors == 0;
    int  status = good ? EXIT_SUCCESS : EXIT_TROUBLE;
    if (good && !args->verify_only)
        status = optimize_module(args, m, in, out, d);
    module_free(m);
    return status;
}

/* A piece of the file, which starts after `line` line ends. Gives the exit status. */
static int process_piece(const Args *args, const char *file, Buf *in, int line, Buf *out)
{
    Diag d;
    Arena *a = arena_new();
    diag_init(&d, a);
    diag_source(&d, file, in->p ? in->p : "", in->n);
    d.first_line = line;
    tool_messages_begin(&d, &args->messages);
    int status = process_module(args, in, out, &d);
    if (args->verify_diagnostics)
        status = expected_check(&d, stderr) ? EXIT_SUCCESS : EXIT_NO;
    tool_messages_print(&d, &args->messages);
    arena_free(a);
    return status;
}

static bool is_separator(const char *p, const char *end)
{
    static const char mark[] = "// -----";
    return (size_t)(end - p) >= sizeof mark - 1 && memcmp(p, mark, sizeof mark - 1) == 0;
}

/* Comments and blanks alone: what stands before the first separator of a test, and is no module. */
static bool is_blank(const char *p, const char *end)
{
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop + 1 : end;
        p += strspn(p, " \t\r");
        if (p < stop && *p != '\n' && !(stop - p >= 2 && p[0] == '/' && p[1] == '/'))
            return false;
        p = stop;
    }
    return true;
}

static int process_split(const Args *args, const char *file, const Buf *in, Buf *out)
{
    int         status = EXIT_SUCCESS, line = 0, piece_line = 0;
    bool        tests = strcmp(args->emit, "checks") == 0 && !args->verify_only; /* these keep what stands between modules */
    const char *end = in->p + in->n, *piece = in->p;
    bool        any = false;
    for (const char *p = in->p; p <= end; line++) {
        const char *stop = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        const char *next = stop ? stop + 1 : p < end ? end : end + 1;
        if (p >= end || is_separator(p, end)) {
            if (tests && is_blank(piece, p)) {
                buf_put(out, piece, (size_t)(p - piece));
            } else if (!is_blank(piece, p)) {
                if (any && strcmp(args->emit, "hlo") == 0 && !args->verify_only)
                    buf_puts(out, "// -----\n");
                Buf part = {.p = (char *)(uintptr_t)piece, .n = (size_t)(p - piece)};
                int s = process_piece(args, file, &part, piece_line, out);
                status = s > status ? s : status;
                any = true;
            }
            if (tests && p < end)
                buf_put(out, p, (size_t)(next - p));
            piece = next;
            piece_line = line + 1;
        }
        p = next;
    }
    return status;
}

static void list_passes(void)
{
    for (int k = 0; k < pass_count; k++)
        printf("%s\t%s\n", pass_table[k].name, pass_table[k].summary);
}

static bool gunzip_input(const Args *args, const char *shown, Buf *in)
{
    Diag   d;
    Arena *a = arena_new();
    diag_init(&d, a);
    diag_source(&d, shown, NULL, 0);
    bool ok = module_input(in, &d);
    tool_messages_print(&d, &args->messages);
    arena_free(a);
    if (!ok)
        buf_free(in);
    return ok;
}

/* Where large output goes while it is printed: by then it is known to be good. */
typedef struct Stream {
    Arena      *arena;
    const char *path;
    OutFile     file;
    bool        open;
} Stream;

static void stream_spill(Buf *b)
{
    Stream *s = b->spill_to;
    if (!s->open)
        outfile_open(&s->file, s->arena, s->path ? s->path : "-");
    s->open = true;
    outfile_put(&s->file, b->p, b->n);
    buf_clear(b);
}

/* What is left in out, or all of it; false when it could not be written, reported. */
static bool stream_end(Stream *s, Buf *out)
{
    if (!s->open)
        return tool_write(tool.name, out, s->path);
    stream_spill(out);
    if (outfile_close(&s->file))
        return true;
    if (s->file.error != EPIPE)
        tool_error(tool.name, "%s: %s", s->path && strcmp(s->path, "-") != 0 ? s->path : "<stdout>", strerror(s->file.error));
    return false;
}

/* The options that the text names replace the command line's. */
static bool follow_reproducer(Args *args, Arena *a, const char *shown, const Buf *in)
{
    Diag              d;
    ReproducerOptions o;
    diag_init(&d, a);
    diag_source(&d, shown, NULL, 0);
    bool good = reproducer_read(a, in->p, in->n, &o, &d) && pipeline_check(o.passes, &d);
    tool_messages_print(&d, &args->messages);
    args->passes = o.passes;
    args->target = o.target;
    args->rewrite_limit = o.rewrite_limit < 0 ? args->rewrite_limit : o.rewrite_limit;
    return good;
}

static void put_word(Buf *b, const char *word)
{
    bool plain = *word && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=,.+:/@%")] == 0;
    buf_puts(b, plain ? " " : " '");
    for (; *word; word++)
        if (*word == '\'')
            buf_puts(b, "'\\''");
        else
            buf_putc(b, *word);
    buf_puts(b, plain ? "" : "'");
}

static void put_option(Buf *b, Arena *a, const char *name, const char *value)
{
    if (value)
        put_word(b, arena_printf(a, "--%s=%s", name, value));
}

/* What lit is to run so that it prints what this command does. */
static const char *run_line(Arena *a, const Args *args)
{
    Buf b = {0};
    buf_puts(&b, "// RUN: hlo-opt");
    put_option(&b, a, "passes", args->passes);
    if (args->level >= 0)
        buf_printf(&b, " -O%d", args->level);
    put_option(&b, a, "target", strcmp(args->target, "cpu") == 0 ? NULL : args->target);
    put_option(&b, a, "device", args->device);
    put_option(&b, a, "start-at", args->start_at);
    put_option(&b, a, "stop-after", args->stop_after);
    put_option(&b, a, "rewrite-limit", args->rewrite_limit == NO_LIMIT ? NULL : arena_printf(a, "%lld", (long long)args->rewrite_limit));
    put_option(&b, a, "bisect-limit", args->bisect_limit == NO_LIMIT ? NULL : arena_printf(a, "%lld", (long long)args->bisect_limit));
    put_option(&b, a, "constants", args->constants);
    put_option(&b, a, "print", strcmp(args->print, "long") == 0 ? NULL : args->print);
#define PART(field, name, l, s, c, f, help) if (args->parts.field >= 0) buf_puts(&b, args->parts.field ? " --print-" name : " --no-print-" name);
#include "text/print_parts.def"
#undef PART
    put_option(&b, a, "print-subcomputations", args->callees);
    put_option(&b, a, "print-computation", args->print_comp);
    put_option(&b, a, "print-indent", args->print_indent ? arena_printf(a, "%lld", (long long)args->print_indent) : NULL);
    buf_puts(&b, args->annotate ? " --annotate-origin" : "");
    buf_puts(&b, args->verify ? "" : " --no-verify");
    buf_puts(&b, args->split ? " --split-input-file" : "");
    buf_puts(&b, " %s | FileCheck %s");
    put_option(&b, a, "check-prefix", strcmp(args->check_prefix, "CHECK") == 0 ? NULL : args->check_prefix);
    const char *line = arena_strndup(a, b.p, b.n);
    buf_free(&b);
    return line;
}

/* --emit=checks of a text that has none. */
static bool wants_run_line(const Args *args, const Buf *in)
{
    return strcmp(args->emit, "checks") == 0 && in->n && !proto_is(in->p, in->n) && !checks_have_run(in->p, in->n);
}

static int process_file(void *given, Arena *a, const char *path)
{
    Args       *args = given;
    const char *shown = tool_shown(path);
    Buf         in = {0}, out = {0};
    if (!buf_read_file(&in, path))
        return tool_error(tool.name, "%s: %s", shown, strerror(errno));
    if (!gunzip_input(args, shown, &in))
        return EXIT_TROUBLE;
    if (args->run_reproducer && !follow_reproducer(args, a, shown, &in)) {
        buf_free(&in);
        return EXIT_TROUBLE;
    }
    if (wants_run_line(args, &in))
        buf_printf(&out, "%s%s", run_line(a, args), checks_line_end(in.p, in.n));
    Stream stream = {.arena = arena_new(), .path = args->output};
    bool   pieces = args->split && in.p && !proto_is(in.p, in.n);
    if (!pieces && !args->verify_diagnostics)
        out.spill = stream_spill, out.spill_to = &stream;
    int status = pieces ? process_split(args, shown, &in, &out) : process_piece(args, shown, &in, 0, &out);
    bool product = status == EXIT_SUCCESS && !args->verify_only && strcmp(args->emit, "none") != 0;
    bool report = status != EXIT_TROUBLE && args->bisect;
    if ((product || report) && !stream_end(&stream, &out))
        status = EXIT_TROUBLE;
    buf_free(&in);
    buf_free(&out);
    arena_free(stream.arena);
    return status;
}

static void free_regex(void *re)
{
    regfree(re);
}

/* The expression that an option gives, or NULL after a message. */
static regex_t *compile_regex(Arena *a, const char *option, const char *expression)
{
    char     text[128];
    regex_t *re = ARENA_NEW(a, regex_t);
    int      status = regcomp(re, expression, REG_EXTENDED | REG_NOSUB);
    if (status == 0) {
        arena_defer(a, free_regex, re);
        return re;
    }
    regerror(status, re, text, sizeof text);
    tool_error(tool.name, "%s=%s: %s", option, expression, text);
    return NULL;
}

static bool compile_expressions(Args *args, Arena *a)
{
    if (args->filter && !(args->only_comps = compile_regex(a, "--filter-computations", args->filter)))
        return false;
    return !args->remarks || (args->remarked = compile_regex(a, "--remarks", *args->remarks ? args->remarks : "."));
}

/* "PASS" or "PASS,N". */
static bool read_run(RunName *run, const char *option, const char *text, Arena *a, Diag *d)
{
    if (!text)
        return true;
    const char *comma = strchr(text, ',');
    char       *end = NULL;
    *run = (RunName){arena_strndup(a, text, comma ? (size_t)(comma - text) : strlen(text)), comma ? strtoll(comma + 1, &end, 10) : 1};
    if (comma && (end == comma + 1 || *end || run->nth < 1)) {
        diag_error(d, LOC_NONE, "%s expects PASS or PASS,N with N from 1 up, got '%s'", option, text);
        return false;
    }
    return pass_known(run->pass, d);
}

static bool check_limits(const Args *args)
{
    const char *bad = NULL;
    if (!tool_messages_good(tool.name, &args->messages))
        return false;
    if (args->bisect_limit < -1 && args->bisect_limit != NO_LIMIT)
        bad = "--bisect-limit expects a number from 0 up, or -1 to see the runs";
    else if (args->rewrite_limit < 0 && args->rewrite_limit != NO_LIMIT)
        bad = "--rewrite-limit expects a number from 0 up";
    else if (args->check_seed < 0)
        bad = "--check-seed expects a number from 0 up";
    else if (args->check_work < 0 || args->check_work > MAX_CHECK_WORK)
        bad = "--check-work expects a number from 0 (no limit) to 1000000000";
    else if (args->max_trip < 0)
        bad = "--max-trip expects a number from 0 (no limit) up";
    else if (args->test_timeout < 0 || args->test_timeout > 1000000000)
        bad = "--test-timeout expects a number of seconds from 0 (no limit) to 1000000000";
    else if (args->print_indent < 0 || args->print_indent > 1000)
        bad = "--print-indent expects a number from 0 to 1000";
    else if (!checks_prefix_is_good(args->check_prefix))
        bad = "--check-prefix expects a letter, then letters, digits, - and _";
    else if (args->passes && args->level >= 0)
        bad = "--passes and -O exclude each other";
    else if (args->run_reproducer && (args->passes || args->level >= 0 || args->split))
        bad = "--run-reproducer takes the passes from the file: no --passes, -O or --split-input-file";
    else if (args->run_reproducer && (args->memory_limit || args->device))
        bad = "--run-reproducer and --memory-limit or --device exclude each other";
    else if (args->bisect && (args->check_each || args->bisect_limit != NO_LIMIT || args->rewrite_limit != NO_LIMIT))
        bad = "--bisect excludes --check-each, --bisect-limit and --rewrite-limit";
    else if (args->test && !args->bisect)
        bad = "--test is an option of --bisect";
    else if (args->crash_reproducer && (!*args->crash_reproducer || strcmp(args->crash_reproducer, "-") == 0))
        bad = "--crash-reproducer expects the name of a file, or none";
    else if (args->print_dir && args->split)
        bad = "--print-dir and --split-input-file exclude each other";
    if (bad)
        tool_error(tool.name, "%s", bad);
    return !bad;
}

/* A device is of one target, which --target need not say again. */
static bool choose_device(Args *args, Arena *a)
{
    if (args->device && !(args->machine = device_option(a, tool.name, args->device, args->target, &args->messages)))
        return false;
    if (!args->target)
        args->target = args->machine ? args->machine->target : "cpu";
    return true;
}

/* --memory-limit is one pass more, after all others. */
static bool add_memory_limit(Args *args, Arena *a)
{
    const char *limit = args->memory_limit;
    if (!limit)
        return true;
    size_t digits = strspn(limit, "0123456789");
    if (digits == 0 || strlen(limit + digits) > 1 || (limit[digits] && !strchr("KMG", limit[digits]))) {
        tool_error(tool.name, "--memory-limit expects bytes: a number, and K, M or G if need be");
        return false;
    }
    const char *before = args->passes ? args->passes : pipeline_for_level(args->level < 0 ? 2 : args->level, args->target);
    args->passes = arena_printf(a, "%s%srematerialization{limit=%s}", before, *before ? "," : "", limit);
    args->level = -1;
    return true;
}

/* What the options ask for is checked before anything is read. */
static bool check_options(void *given, Arena *a, const char *path)
{
    Args *args = given;
    (void)path;
    if (!check_limits(args) || !compile_expressions(args, a) || !choose_device(args, a) || !add_memory_limit(args, a))
        return false;
    Diag d;
    diag_init(&d, a);
    diag_source(&d, "hlo-opt", NULL, 0);
    const char *lists[] = {args->passes, args->print_after, args->print_before};
    for (int k = 0; k < 3; k++)
        if (lists[k] && !pipeline_check(lists[k], &d))
            break;
    if (d.errors == 0 && read_run(&args->first_run, "--start-at", args->start_at, a, &d))
        read_run(&args->last_run, "--stop-after", args->stop_after, a, &d);
    tool_messages_print(&d, &args->messages);
    return d.errors == 0;
}

/* What is asked of the passes, not of a module. */
static bool tell(const void *given)
{
    const Args *args = given;
    if (args->list_passes)
        list_passes();
    else if (args->print_pipeline)
        puts(args->verify_only ? "" : choose_passes(args, NULL, NULL));
    return args->list_passes || args->print_pipeline;
}

int main(int argc, char **argv)
{
#define PART(field, name, l, s, c, f, help) .parts.field = -1,
    Args args = {
#include "text/print_parts.def"
#undef PART
                 .emit = "hlo", .check_prefix = "CHECK", .print = "long", .messages = MESSAGE_DEFAULTS, .level = -1,
                 .check_inputs = "all", .check_bound = "rounding", .check_seed = 1, .check_work = 40000, .test_timeout = 300, .bisect_limit = NO_LIMIT, .rewrite_limit = NO_LIMIT, .verify = true, .verify_each = true};
    return tool_main(&tool, &(ToolJob){.check = check_options, .tell = tell, .run = process_file}, &args, argc, argv);
}
