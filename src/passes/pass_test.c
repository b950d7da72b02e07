/* Pipelines as text: what is read, what is refused and in which words; how passes are run, repeated and stopped. */
#include "config.h"

#include "passes/pass.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "text/parse.h"

/* NULL when the pipeline is good, else the only message. */
static const char *complaint(Arena *a, const char *text)
{
    Diag d;
    diag_init(&d, a);
    bool good = pipeline_check(text, &d);
    CHECK(good == (d.errors == 0) && d.errors <= 1);
    return good ? NULL : d.first->text;
}

static void test_good(Arena *a)
{
    static const char *const good[] = {
        "", "  ", "dce", " dce , cse ", "algsimp{only=x,disable=y}", "algsimp{}", "algsimp{exact=true}", "all-reduce-combiner{count=0,bytes=12}",
        "fix(dce)", "fix(dce,fix(cse,dce)),dce", "fix( dce )",
    };
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        const char *got = complaint(a, good[k]);
        if (got)
            fprintf(stderr, "%s: %s\n", good[k], got);
        CHECK(!got);
    }
    for (int level = 0; level <= 3; level++)
        CHECK(!complaint(a, pipeline_for_level(level, "cpu")) && !complaint(a, pipeline_for_level(level, "cuda")));
    CHECK(!*pipeline_for_level(0, "cpu"));
    puts("ok good");
}

static void test_bad(Arena *a)
{
    static const struct { const char *text, *error; } bad[] = {
        { ",", "expected a pass" },
        { "dce,", "expected a pass" },
        { "dce cse", "expected ','" },
        { "dce)", "expected ','" },
        { "dse", "unknown pass 'dse', did you mean" },
        { "certainly-no-pass", "--list-passes" },
        { "fix", "expected '(' behind fix at the end" },
        { "fix(dce", "expected ')'" },
        { "fix()", "expected a pass" },
        { "fix(dce,nope-nope-nope)", "unknown pass 'nope-nope-nope'" },
        { "dce{x=1}", "no option 'x'" },
        { "algsimp{only=x", "expected '}'" },
        { "algsimp{=x}", "expected a key" },
        { "algsimp{only=x,}", "expected a key" },
        { "algsimp{only}", "option 'only' expects a value: only=RULE" },
        { "algsimp{disable=,exact}", "option 'disable' expects a value: disable=RULE" },
        { "algsimp{finite=no}", "option 'finite' takes no value, got 'no'" },
        { "algsimp{exac}", "no option 'exac', only: only=RULE,disable=RULE,exact,finite,loose" },
        { "algsimp{exactly}", "no option 'exactly'" },
        { "all-reduce-combiner{byte=1}", "no option 'byte'" },
        { "constant_folding{max=4x}", "pass 'constant_folding': option 'max' expects a number from 0 up, got '4x'" },
        { "constant_folding{max=-1}", "a number from 0 up" },
        { "constant_folding{max=9223372036854775807}", "a number from 0 up" },
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        const char *got = complaint(a, bad[k].text);
        if (!got || !strstr(got, bad[k].error))
            fprintf(stderr, "%s: got %s\n", bad[k].text, got ? got : "no error");
        CHECK(got && strstr(got, bad[k].error));
    }
    puts("ok bad");
}

static void test_nesting(Arena *a)
{
    Buf b = { 0 };
    for (int k = 0; k < 100000; k++)
        buf_puts(&b, "fix(");
    const char *got = complaint(a, b.p);
    CHECK(got && strstr(got, "nested"));
    buf_free(&b);
    puts("ok nesting");
}

static void test_args(Arena *a)
{
    static const KeyValue pairs[] = { { "max", "4" }, { "only", "x" }, { "max", "17" } };
    PassCtx               cx = { .n_args = 3, .args = pairs };
    CHECK(strcmp(pass_arg(&cx, "only"), "x") == 0 && !pass_arg(&cx, "on") && !pass_arg(&cx, "other"));
    CHECK(pass_arg_int(&cx, "max", 1) == 17 && pass_arg_int(&cx, "other", 9) == 9);
    puts("ok args");
}

typedef struct Watch {
    int calls, stop_after;
} Watch;

static bool watch_begin(void *cookie, const Module *m, const PassRun *run)
{
    const Watch *w = cookie;
    CHECK(m && run->number == w->calls + 1 && run->before == (w->calls > 0) && !run->changed);
    return true;
}

static bool watch_end(void *cookie, const Module *m, const PassRun *run)
{
    Watch *w = cookie;
    CHECK(m && strcmp(run->pass, "dce") == 0 && strcmp(run->stage, "dce") == 0);
    CHECK(run->changed == (w->calls == 0) && run->rewrites == run->changed);
    return ++w->calls != w->stop_after;
}

static const char dead_sum[] =
    "HloModule m\n\nENTRY e {\n  p = f32[2] parameter(0)\n  s = f32[2] add(p, p)\n  ROOT r = f32[2] negate(p)\n}\n";

/* fix runs its list once more after the last change. */
static void test_run(Arena *a)
{
    static const struct { const char *text; int stop_after, calls; bool good; } runs[] = {
        { "", 0, 0, true },  { "dce", 0, 1, true },         { "dce,dce", 0, 2, true },
        { "fix(dce)", 0, 2, true }, { "dce,fix(dce)", 0, 2, true }, { "dce,dce,dce", 2, 2, false },
    };
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
        Diag d;
        diag_init(&d, a);
        Module         *m = parse_module(dead_sum, sizeof dead_sum - 1, &d);
        Watch           w = { .stop_after = runs[k].stop_after };
        PipelineWatch   watches = { .cookie = &w, .begin = watch_begin, .end = watch_end };
        PipelineOptions o = { .verify_each = true, .log = stderr, .n_watches = 1, .watches = &watches };
        CHECK(m);
        bool good = pipeline_run(m, runs[k].text, &o, &d);
        if (good != runs[k].good || w.calls != runs[k].calls)
            fprintf(stderr, "%s: %d calls, %s\n", runs[k].text, w.calls, good ? "good" : "stopped");
        CHECK(good == runs[k].good && w.calls == runs[k].calls && m->changed == (w.calls > 0));
        module_free(m);
    }
    puts("ok run");
}

int main(void)
{
    Arena *a = arena_new();
    test_good(a);
    test_bad(a);
    test_nesting(a);
    test_args(a);
    test_run(a);
    arena_free(a);
    return 0;
}
