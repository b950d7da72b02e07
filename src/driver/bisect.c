/* A try is a child process: it runs the pipeline with limits on runs and rewrites and says through its exit status whether the result is right. How far it
 * came is in shared memory, what it printed and what it said in files without names. */
#include "config.h"

#include "driver/bisect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver/driver.h"
#include "driver/process.h"
#include "support/interrupt.h"
#include "text/print.h"

/* Written by the child around each run of a pass, so that it stays when the child dies. */
typedef struct Progress {
    int64_t run;            /* the last one that began */
    int64_t before;         /* rewrites of the runs before it */
    int64_t rewrites;       /* its own, once it has ended */
    bool    ended;
    char    stage[256], did[128], did_at[256];
} Progress;

typedef enum Outcome { OUT_RIGHT, OUT_WRONG, OUT_TROUBLE } Outcome;
enum { STATUS_RIGHT, STATUS_WRONG = 11, STATUS_TROUBLE = 12 }; /* of a child; every other end is a crash */

typedef struct Limits {
    int64_t runs, rewrites; /* -1: none */
} Limits;

/* What a try has said. */
typedef struct Try {
    Outcome     outcome;
    Progress    progress;
    const char *how; /* wrong: in which way */
    Buf         text, log;
} Try;

typedef struct Bisect {
    Module              *m;
    const BisectOptions *o;
    Diag                *d;
    Arena               *arena;
    Progress            *shared;
    const char          *folder, *file; /* of a test */
    const char          *shell;
} Bisect;

static void try_free(Try *t)
{
    buf_free(&t->text);
    buf_free(&t->log);
}

/* ---- the child ---- */

static void keep_word(char *to, size_t size, const char *word)
{
    snprintf(to, size, "%s", word ? word : "");
}

static bool note_begin(void *cookie, const Module *m, const PassRun *run)
{
    Progress *p = cookie;
    p->run = run->number;
    p->before = run->before;
    p->rewrites = 0;
    p->ended = false;
    keep_word(p->stage, sizeof p->stage, run->stage);
    return true;
}

static void note_ran(void *cookie, const PassRun *run)
{
    Progress *p = cookie;
    p->rewrites = run->rewrites;
    p->ended = true;
    keep_word(p->did, sizeof p->did, run->did);
    keep_word(p->did_at, sizeof p->did_at, run->did_at);
}

static bool write_text(int fd, const Module *m)
{
    Buf          b = {0};
    PrintOptions o = print_options_default();
    print_module(&b, m, &o);
    bool good = true;
    for (size_t at = 0; at < b.n && good;) {
        ssize_t n = write(fd, b.p + at, b.n - at);
        good = n > 0 || (n < 0 && errno == EINTR);
        at += n > 0 ? (size_t)n : 0;
    }
    buf_free(&b);
    return good;
}

static int child_status(Bisect *b, Limits limits, int text)
{
    PipelineOptions o = *b->o->passes;
    PipelineWatch   watch = {.cookie = b->shared, .begin = note_begin, .ran = note_ran};
    o.bisect = limits.runs >= 0;
    o.bisect_limit = limits.runs;
    o.limit_rewrites = limits.rewrites >= 0;
    o.rewrite_limit = limits.rewrites;
    o.watches = &watch;
    o.n_watches = 1;
    o.log = stderr;
    if (!pipeline_run(b->m, b->o->pipeline, &o, b->d) || !write_text(text, b->m))
        return STATUS_TROUBLE;
    if (!b->o->check)
        return STATUS_RIGHT;
    const Progress *p = b->shared;
    const char *by = arena_printf(b->arena, "pass %s (run %lld)", p->stage, (long long)p->run);
    if (limits.rewrites >= 0)
        by = arena_printf(b->arena, "%s at rewrite %lld", by, (long long)p->rewrites);
    return check_module(b->o->check, b->m, by, b->d) ? STATUS_RIGHT : STATUS_WRONG;
}

static _Noreturn void child(Bisect *b, Limits limits, int text, int log)
{
    static const int to_end[] = {SIGHUP, SIGINT, SIGTERM};
    struct rlimit    none = {0, 0};
    for (size_t k = 0; k < sizeof to_end / sizeof *to_end; k++)
        signal(to_end[k], SIG_DFL);
    setrlimit(RLIMIT_CORE, &none);
    if (dup2(log, STDERR_FILENO) < 0)
        _exit(STATUS_TROUBLE);
    int status = child_status(b, limits, text);
    diag_print(b->d, stderr, false);
    _exit(status);
}

/* ---- the parent ---- */

static void read_back(FILE *f, Buf *to)
{
    char   part[4096];
    size_t n;
    rewind(f);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        buf_put(to, part, n);
}

/* *late: it was ended after so many seconds (0: any number). */
static int wait_for(pid_t pid, int64_t seconds, bool *late)
{
    struct timespec nap = {0, 2000000};
    double          end = seconds_now() + (double)seconds;
    int             status;
    pid_t           ended;
    while ((ended = waitpid(pid, &status, WNOHANG)) <= 0) {
        if (ended < 0 && errno != EINTR)
            return -1;
        bool over = seconds > 0 && seconds_now() > end;
        if (over || interrupt_seen())
            kill(pid, SIGKILL);
        *late |= over;
        nanosleep(&nap, NULL);
    }
    return status;
}

static bool trouble(Bisect *b, const char *what)
{
    diag_error(b->d, LOC_NONE, "--bisect: %s: %s", what, strerror(errno));
    return false;
}

/* The command with every {} as "$1"; where it names no file, the file is its last word. */
static const char *test_command(Arena *a, const char *test)
{
    const char *text = "", *at;
    bool        named = strstr(test, "{}") || strstr(test, "$1") || strstr(test, "${1") || strstr(test, "$@") || strstr(test, "$*");
    for (; (at = strstr(test, "{}")) != NULL; test = at + 2)
        text = arena_printf(a, "%s%.*s\"$1\"", text, (int)(at - test), test);
    return arena_printf(a, "%s%s%s", text, test, named ? "" : " \"$1\"");
}

/* 126 and 127 are the shell's own: the command could not be run. */
static Outcome ask_test(Bisect *b, Try *t)
{
    enum { NOT_RUN = 126, NOT_FOUND = 127 };
    const char *argv[] = {b->shell, "-c", test_command(b->arena, b->o->test), "hlo-opt", b->file, NULL};
    buf_clear(&t->log);
    int         status = buf_write_file(&t->text, b->file) ? program_run_for(b->o->timeout, argv, NULL, &t->log) : -1;
    if (status < 0 && errno == ETIMEDOUT) {
        t->how = arena_printf(b->arena, "the test has not ended after %lld s", (long long)b->o->timeout);
        return OUT_WRONG;
    }
    if (status < 0) {
        trouble(b, "the test cannot be started");
        return OUT_TROUBLE;
    }
    if (status == NOT_RUN || status == NOT_FOUND) {
        diag_error(b->d, LOC_NONE, "--test: the command cannot be run: %s", t->log.n ? t->log.p : b->o->test);
        return OUT_TROUBLE;
    }
    t->how = arena_printf(b->arena, "the test's exit status is %d", status);
    return status ? OUT_WRONG : OUT_RIGHT;
}

static Outcome outcome_of(Bisect *b, Try *t, int status)
{
    if (WIFSIGNALED(status)) {
        t->how = arena_printf(b->arena, "it ends with signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
        return OUT_WRONG;
    }
    switch (WEXITSTATUS(status)) {
    case STATUS_RIGHT: return b->o->check ? OUT_RIGHT : ask_test(b, t);
    case STATUS_WRONG: t->how = "the module computes something else"; return OUT_WRONG;
    case STATUS_TROUBLE: return OUT_TROUBLE;
    default: t->how = arena_printf(b->arena, "it ends with exit status %d", WEXITSTATUS(status)); return OUT_WRONG;
    }
}

static bool fork_try(Bisect *b, Limits limits, Try *t)
{
    FILE *text = tmpfile(), *log = tmpfile();
    bool  good = text && log;
    pid_t pid = -1;
    memset(b->shared, 0, sizeof *b->shared);
    fflush(NULL);
    if (good)
        pid = fork();
    if (pid == 0)
        child(b, limits, fileno(text), fileno(log));
    good = pid > 0 || trouble(b, "cannot start a process");
    bool late = false;
    int  status = good ? wait_for(pid, b->o->timeout, &late) : -1;
    if (good && !interrupt_seen()) {
        t->progress = *b->shared;
        read_back(text, &t->text);
        read_back(log, &t->log);
        t->outcome = late ? OUT_WRONG : outcome_of(b, t, status);
        if (late)
            t->how = arena_printf(b->arena, "it has not ended after %lld s", (long long)b->o->timeout);
    }
    if (text)
        fclose(text);
    if (log)
        fclose(log);
    return good && !interrupt_seen();
}

/* What the child had to say when it cannot be told whether the module is right. */
static void pass_on(Bisect *b, const Try *t)
{
    if (b->d->errors == 0)
        diag_error(b->d, LOC_NONE, "--bisect: a try has failed: %s", t->log.n ? t->log.p : "no reason is known");
}

/* False: no answer; reported. Else t->outcome is right or wrong. The caller frees t. */
static bool try_with(Bisect *b, Limits limits, Try *t)
{
    *t = (Try){.outcome = OUT_TROUBLE};
    if (fork_try(b, limits, t) && t->outcome != OUT_TROUBLE)
        return true;
    if (!interrupt_seen())
        pass_on(b, t);
    return false;
}

static bool is_wrong_how(Bisect *b, Limits limits, bool *wrong, const char **how)
{
    Try  t;
    bool good = try_with(b, limits, &t);
    *wrong = t.outcome == OUT_WRONG;
    *how = t.how;
    try_free(&t);
    return good;
}

static bool is_wrong(Bisect *b, Limits limits, bool *wrong)
{
    const char *how;
    return is_wrong_how(b, limits, wrong, &how);
}

/* *hi is wrong, lo is right; *hi becomes the first wrong one between them. */
static bool narrow(Bisect *b, bool by_runs, int64_t runs, int64_t lo, int64_t *hi)
{
    while (*hi - lo > 1) {
        int64_t mid = lo + (*hi - lo) / 2;
        bool    wrong;
        if (!is_wrong(b, by_runs ? (Limits){mid, -1} : (Limits){runs, mid}, &wrong))
            return false;
        if (wrong)
            *hi = mid;
        else
            lo = mid;
    }
    return true;
}

/* Rewrites after which it is wrong, where the run of the pass did not come to its end and so has no count: doubled until it is. */
static bool find_wrong(Bisect *b, int64_t runs, int64_t before, int64_t *hi)
{
    bool wrong = false;
    for (int64_t step = 1; !wrong; step *= 2) {
        *hi = before + step;
        if (!is_wrong(b, (Limits){runs, *hi}, &wrong))
            return false;
        if (step > INT64_MAX / 4) /* all rewrites there can be, and still right */
            return true;
    }
    return true;
}

/* ---- what was found ---- */

/* The pass manager's own lines are left out. */
static void put_log(Buf *out, const Buf *log)
{
    static const char own[] = "BISECT: ";
    for (size_t at = 0; at < log->n;) {
        const char *line = log->p + at, *stop = memchr(line, '\n', log->n - at);
        size_t      n = stop ? (size_t)(stop - line) + 1 : log->n - at;
        if (n < sizeof own - 1 || memcmp(line, own, sizeof own - 1) != 0)
            buf_put(out, line, n);
        at += n;
    }
}

static void put_rewrite(Buf *out, const Progress *p, int64_t number)
{
    buf_printf(out, "rewrite: %lld of this run", (long long)(number - p->before));
    if (*p->did)
        buf_printf(out, ", %s", p->did);
    if (*p->did_at)
        buf_printf(out, " at %%%s", p->did_at);
    buf_putc(out, '\n');
}

static void put_found(Bisect *b, Buf *out, Limits at, const Try *bad)
{
    const Progress *p = &bad->progress;
    buf_printf(out, "pass: %s\nrun: %lld\n", p->stage, (long long)at.runs);
    if (at.rewrites > p->before)
        put_rewrite(out, p, at.rewrites);
    else
        buf_puts(out, "rewrite: none, it goes wrong before its first one\n");
    buf_printf(out, "wrong: %s\n", bad->how);
    buf_printf(out, "again: hlo-opt --passes='%s' --bisect-limit=%lld --rewrite-limit=%lld\n", b->o->pipeline, (long long)at.runs,
               (long long)at.rewrites);
    put_log(out, &bad->log);
}

static bool report(Bisect *b, Limits at, Buf *out)
{
    Try  bad, right = {0};
    bool good = try_with(b, at, &bad);
    if (good) {
        Limits less = at.rewrites > bad.progress.before ? (Limits){at.runs, at.rewrites - 1} : (Limits){at.runs - 1, -1};
        good = try_with(b, less, &right);
    }
    if (good) {
        put_found(b, out, at, &bad);
        put_text_difference(out, &right.text, &bad.text);
    }
    try_free(&bad);
    try_free(&right);
    return good;
}

/* The first wrong rewrite of a run that is wrong; runs before it are right. */
static bool find_rewrite(Bisect *b, int64_t runs, Limits *at)
{
    Try  whole;
    bool good = try_with(b, (Limits){runs, -1}, &whole), wrong = false;
    *at = (Limits){runs, whole.progress.before};
    try_free(&whole);
    if (!good || !is_wrong(b, *at, &wrong) || wrong)
        return good && wrong;
    const Progress *p = &whole.progress;
    at->rewrites = p->before + p->rewrites;
    if (!p->ended && !find_wrong(b, runs, p->before, &at->rewrites))
        return false;
    return narrow(b, false, runs, p->before, &at->rewrites);
}

static BisectVerdict search(Bisect *b, Buf *out)
{
    Try     all;
    bool    wrong;
    Limits  at = {-1, -1};
    const char *how;
    if (!is_wrong_how(b, (Limits){0, -1}, &wrong, &how))
        return BISECT_TROUBLE;
    if (wrong) {
        diag_error(b->d, LOC_NONE, "--bisect: the module is wrong before any pass has run: %s", how);
        return BISECT_TROUBLE;
    }
    bool    good = try_with(b, at, &all);
    int64_t runs = all.progress.run;
    wrong = all.outcome == OUT_WRONG;
    try_free(&all);
    if (!good)
        return BISECT_TROUBLE;
    if (!wrong) {
        buf_printf(out, "right: after %lld runs of passes the module is as it should be\n", (long long)runs);
        return BISECT_RIGHT;
    }
    if (!narrow(b, true, 0, 0, &runs) || !find_rewrite(b, runs, &at) || !report(b, at, out))
        return BISECT_TROUBLE;
    return BISECT_FOUND;
}

/* A folder of our own for the file that tests get: nobody else can put something in its place. */
static bool make_folder(Bisect *b)
{
    const char *base = getenv("TMPDIR");
    char       *folder = arena_printf(b->arena, "%s/hlo-opt-XXXXXX", base && *base ? base : "/tmp");
    b->shell = program_find(b->arena, "sh");
    if (!b->shell) {
        errno = ENOENT;
        return trouble(b, "sh");
    }
    if (!mkdtemp(folder))
        return trouble(b, folder);
    b->folder = folder;
    b->file = arena_printf(b->arena, "%s/module.hlo", folder);
    return true;
}

BisectVerdict bisect_pipeline(Module *m, const BisectOptions *o, Buf *out, Diag *d)
{
    Bisect b = {.m = m, .o = o, .d = d, .arena = arena_new()};
    b.shared = mmap(NULL, sizeof *b.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BisectVerdict v = BISECT_TROUBLE;
    interrupt_hold();
    if (b.shared == MAP_FAILED)
        trouble(&b, "no memory to share");
    else if (o->check || make_folder(&b))
        v = search(&b, out);
    if (b.folder) {
        unlink(b.file);
        rmdir(b.folder);
    }
    if (b.shared != MAP_FAILED)
        munmap(b.shared, sizeof *b.shared);
    arena_free(b.arena);
    interrupt_release();
    return v;
}
