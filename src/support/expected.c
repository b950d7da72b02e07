/* Expected diagnostics: in comes a source text with the messages reported about it, out go complaints. */
#include "config.h"

#include "support/expected.h"

#include <ctype.h>
#include <regex.h>
#include <string.h>

#include "support/buf.h"
#include "support/vec.h"

typedef struct Expected {
    DiagKind    kind;
    int         line; /* 0: a message without a place */
    int         written_line;
    const char *text;
    regex_t    *pattern; /* the text compiled; NULL: it stands for itself */
    bool        met;
} Expected;

typedef VEC(Expected) ExpectedList;

static const char *const kind_words[] = {
    [DIAG_ERROR] = "error", [DIAG_WARNING] = "warning", [DIAG_NOTE] = "note", [DIAG_REMARK] = "remark"};

static bool take(const char **p, const char *end, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(end - *p) < n || memcmp(*p, word, n) != 0)
        return false;
    *p += n;
    return true;
}

static bool take_kind(const char **p, const char *end, DiagKind *kind)
{
    for (int k = 0; k < (int)(sizeof kind_words / sizeof *kind_words); k++)
        if (take(p, end, kind_words[k])) {
            *kind = (DiagKind)k;
            return true;
        }
    return false;
}

/* Lines of comments that expect something are skipped by @above and @below, so that several may stand over one another. */
typedef struct Lines {
    int here, above; /* above: the last line before here that only holds no expectations */
} Lines;

enum { LINE_BELOW = -1 }; /* not known yet */

/* What follows the kind: "@+2", "@above", ... Gives the line that is meant. */
static bool take_line(const char **p, const char *end, Lines at, int *line)
{
    *line = at.here;
    if (!take(p, end, "@"))
        return true;
    if (take(p, end, "above")) {
        *line = at.above;
    } else if (take(p, end, "below")) {
        *line = LINE_BELOW;
    } else if (take(p, end, "unknown")) {
        *line = 0;
    } else {
        bool back = *p < end && **p == '-';
        if (*p == end || (**p != '+' && **p != '-'))
            return false;
        int n = 0, digits = 0;
        for (++*p; *p < end && isdigit((unsigned char)**p) && digits < 6; ++*p, digits++)
            n = n * 10 + (**p - '0');
        *line = back ? at.here - n : at.here + n;
        return digits > 0;
    }
    return true;
}

/* The "}}" that closes what was opened before p: pairs inside may be nested, and of "{{shape {1}}}" it is the last one. Where they do
 * not pair up it is the last of the line. */
static const char *closing_braces(const char *p, const char *end)
{
    const char *last = NULL;
    int         depth = 1;
    for (; end - p >= 2; p++) {
        bool open = p[0] == '{' && p[1] == '{', close = p[0] == '}' && p[1] == '}';
        if (close && (end - p == 2 || p[2] != '}' || depth > 1))
            last = p;
        depth += open ? 1 : close && last == p ? -1 : 0;
        if (depth == 0)
            return p;
        p += open || (close && last == p);
    }
    return last;
}

static void free_pattern(void *re)
{
    regfree(re);
}

/* "a {{b+}} c" as a regular expression: b+ between texts that stand for themselves. */
static bool compile_pattern(Arena *a, Expected *e)
{
    Buf         b = {0};
    const char *p = e->text;
    while (*p) {
        const char *close = strncmp(p, "{{", 2) == 0 ? strstr(p, "}}") : NULL;
        if (close) {
            buf_putc(&b, '(');
            buf_put(&b, p + 2, (size_t)(close - p - 2));
            buf_putc(&b, ')');
            p = close + 2;
        } else {
            if (strchr("\\^$.[]|()*+?{}", *p))
                buf_putc(&b, '\\');
            buf_putc(&b, *p++);
        }
    }
    e->pattern = ARENA_NEW(a, regex_t);
    bool good = regcomp(e->pattern, b.p ? b.p : "", REG_EXTENDED | REG_NOSUB) == 0;
    if (good)
        arena_defer(a, free_pattern, e->pattern);
    buf_free(&b);
    return good;
}

/* p stands behind "expected-". */
static bool read_expected(Arena *a, const char *p, const char *end, Lines at, Expected *e)
{
    *e = (Expected){.written_line = at.here};
    if (!take_kind(&p, end, &e->kind))
        return false;
    bool pattern = take(&p, end, "-re");
    if (!take_line(&p, end, at, &e->line))
        return false;
    while (p < end && *p == ' ')
        p++;
    if (!take(&p, end, "{{"))
        return false;
    const char *close = closing_braces(p, end);
    if (!close)
        return false;
    e->text = arena_strndup(a, p, (size_t)(close - p));
    return !pattern || compile_pattern(a, e);
}

static bool collect_line(Diag *d, const char *p, const char *end, Lines at, ExpectedList *out, FILE *to)
{
    static const char word[] = "expected-";
    bool        good = true;
    const char *comment = memmem(p, (size_t)(end - p), "//", 2);
    for (p = comment ? comment : end; (p = memmem(p, (size_t)(end - p), word, sizeof word - 1)) != NULL;) {
        Expected    e;
        const char *after = p + sizeof word - 1, *kind = after;
        DiagKind    ignored;
        if (take_kind(&kind, end, &ignored)) {
            if (read_expected(d->arena, after, end, at, &e)) {
                vec_push(d->arena, out, e);
            } else {
                fprintf(to, "%s:%d: error: malformed expectation, write expected-error@+1 {{text}}\n", d->file, at.here);
                good = false;
            }
        }
        p = after;
    }
    return good;
}

static bool is_comment(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return end - p >= 2 && p[0] == '/' && p[1] == '/';
}

/* The line that the expectations from *settled on with @below have waited for. */
static void settle_below(ExpectedList *list, int64_t *settled, int line)
{
    for (; *settled < list->n; ++*settled)
        if (list->v[*settled].line == LINE_BELOW)
            list->v[*settled].line = line;
}

static bool collect(Diag *d, ExpectedList *out, FILE *to)
{
    bool        good = true;
    const char *p = d->text, *end = d->text + d->len;
    int64_t     settled = 0;
    Lines       at = {.here = 1 + d->first_line, .above = d->first_line};
    for (; p < end; at.here++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p)), *line_end = stop ? stop : end;
        int64_t     before = out->n;
        good &= collect_line(d, p, line_end, at, out, to);
        if (out->n == before || !is_comment(p, line_end)) {
            settle_below(out, &settled, at.here);
            at.above = at.here;
        }
        p = stop ? stop + 1 : end;
    }
    settle_below(out, &settled, at.here);
    return good;
}

static int message_line(const Diag *d, const DiagMessage *m)
{
    int line = 0, col;
    if (m->loc.off >= 0 && !m->where)
        diag_position(d, m->loc.off, &line, &col);
    return line;
}

static bool says(const Expected *e, const char *text)
{
    return e->pattern ? regexec(e->pattern, text, 0, NULL, 0) == 0 : strstr(text, e->text) != NULL;
}

static bool meet(ExpectedList *list, DiagKind kind, int line, const char *text)
{
    for (int k = 0; k < list->n; k++) {
        Expected *e = &list->v[k];
        if (!e->met && e->kind == kind && e->line == line && says(e, text)) {
            e->met = true;
            return true;
        }
    }
    return false;
}

bool expected_check(Diag *d, FILE *to)
{
    ExpectedList list = {0};
    bool         good = collect(d, &list, to);
    for (const DiagMessage *m = d->first; m; m = m->next) {
        int line = message_line(d, m);
        if (meet(&list, m->kind, line, m->text) || m->kind == DIAG_NOTE)
            continue;
        fprintf(to, "%s:%d: error: unexpected %s: %s\n", d->file, line, kind_words[m->kind], m->text);
        good = false;
    }
    for (int k = 0; k < list.n; k++)
        if (!list.v[k].met) {
            fprintf(to, "%s:%d: error: expected %s was not reported: %s\n", d->file, list.v[k].written_line,
                    kind_words[list.v[k].kind], list.v[k].text);
            good = false;
        }
    d->first = d->last = NULL;
    return good;
}
