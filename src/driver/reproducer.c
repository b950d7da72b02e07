/* The text is whole before the pass starts: the handler of the signal only writes it (support/crash.h). */
#include "config.h"

#include "driver/reproducer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/buf.h"
#include "support/crash.h"
#include "text/print.h"

struct Reproducer {
    Arena      *arena; /* the caller's */
    const char *path, *pipeline, *target;
    Buf         text;
    Buf         message;
    CrashFile   file;
};

static const char first_words[] = "// hlo-opt --passes='", target_word[] = "--target=", limit_word[] = "--rewrite-limit=";

static void drop_bufs(void *p)
{
    Reproducer *r = p;
    buf_free(&r->text);
    buf_free(&r->message);
}

Reproducer *reproducer_new(Arena *a, const char *path, const char *pipeline, const char *target)
{
    Reproducer *r = ARENA_NEW(a, Reproducer);
    *r = (Reproducer){.arena = a, .path = path, .pipeline = pipeline, .target = target};
    r->file.path = path;
    r->file.temporary = arena_printf(a, "%s.tmp.%lld", path, (long long)getpid());
    arena_defer(a, drop_bufs, r);
    return r;
}

/* A pipeline may be written in several lines. */
static void put_one_line(Buf *b, const char *text)
{
    for (; *text; text++)
        buf_putc(b, *text == '\n' || *text == '\r' ? ' ' : *text);
}

static void print_text(Reproducer *r, const Module *m, const PassRun *run)
{
    PrintOptions o = print_options_default();
    Module       changed = *m; /* -0 is printed so that it reads back */
    changed.changed = true;
    buf_clear(&r->text);
    buf_printf(&r->text, "%s%s' %s%s", first_words, run->stage, target_word, r->target);
    if (run->limit != INT64_MAX)
        buf_printf(&r->text, " %s%lld", limit_word, (long long)run->limit);
    buf_printf(&r->text, "\n// Pass %s, run %lld of the pipeline ", run->stage, (long long)run->number);
    put_one_line(&r->text, r->pipeline);
    buf_puts(&r->text, ", did not return from the module below.\n");
    print_module(&r->text, &changed, &o);
}

static bool before_pass(void *cookie, const Module *m, const PassRun *run)
{
    Reproducer *r = cookie;
    crash_watch(NULL);
    print_text(r, m, run);
    buf_clear(&r->message);
    buf_printf(&r->message, "hlo-opt: pass %s (run %lld) failed; the module before it is in %s, and hlo-opt --run-reproducer %s replays it\n",
               run->stage, (long long)run->number, r->path, r->path);
    r->file.text = r->text.p;
    r->file.n = r->text.n;
    r->file.message = r->message.p;
    crash_watch(&r->file);
    return true;
}

static bool after_pass(void *cookie, const Module *m, const PassRun *run)
{
    crash_watch(NULL);
    return true;
}

PipelineWatch reproducer_watch(Reproducer *r)
{
    return (PipelineWatch){.cookie = r, .begin = before_pass, .end = after_pass};
}

void reproducer_end(Reproducer *r)
{
    if (r)
        crash_watch(NULL);
}

/* ---- reading ---- */

static bool bad_head(Diag *d)
{
    diag_error(d, LOC_NONE, "this is no reproducer: its first line is not \"%s...' %s...\"", first_words, target_word);
    return false;
}

/* The value of the word when the line goes on with it, moved behind it and a blank; else NULL. */
static const char *take_word(Arena *a, const char **line, const char *word)
{
    size_t n = strlen(word), len;
    if (strncmp(*line, word, n) != 0)
        return NULL;
    *line += n;
    len = strcspn(*line, " ");
    const char *value = arena_strndup(a, *line, len);
    *line += len + ((*line)[len] == ' ');
    return value;
}

bool reproducer_read(Arena *a, const char *text, size_t n, ReproducerOptions *out, Diag *d)
{
    const char *stop = n ? memchr(text, '\n', n) : NULL;
    const char *line = arena_strndup(a, text, stop ? (size_t)(stop - text) : n);
    const char *end;
    *out = (ReproducerOptions){.rewrite_limit = -1};
    if (strncmp(line, first_words, sizeof first_words - 1) != 0)
        return bad_head(d);
    line += sizeof first_words - 1;
    end = strchr(line, '\'');
    if (!end)
        return bad_head(d);
    out->passes = arena_strndup(a, line, (size_t)(end - line));
    line = end + (end[1] == ' ' ? 2 : 1);
    out->target = take_word(a, &line, target_word);
    const char *limit = take_word(a, &line, limit_word);
    if (limit) {
        char     *after;
        long long v = strtoll(limit, &after, 10);
        if (*limit < '0' || *limit > '9' || *after || v == LLONG_MAX)
            return bad_head(d);
        out->rewrite_limit = v;
    }
    bool known = out->target && (strcmp(out->target, "cpu") == 0 || strcmp(out->target, "cuda") == 0);
    return (known && !*line) || bad_head(d);
}
