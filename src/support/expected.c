/* Expected diagnostics: in comes a source text with the messages reported about it, out go complaints. */
#include "config.h"

#include "support/expected.h"

#include <ctype.h>
#include <string.h>

#include "support/vec.h"

typedef struct Expected {
    DiagKind    kind;
    int         line; /* 0: a message without a place */
    int         written_line;
    const char *text;
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

/* What follows the kind: "@+2", "@above", ... Gives the line that is meant. */
static bool take_line(const char **p, const char *end, int here, int *line)
{
    *line = here;
    if (!take(p, end, "@"))
        return true;
    if (take(p, end, "above")) {
        *line = here - 1;
    } else if (take(p, end, "below")) {
        *line = here + 1;
    } else if (take(p, end, "unknown")) {
        *line = 0;
    } else {
        bool back = *p < end && **p == '-';
        if (*p == end || (**p != '+' && **p != '-'))
            return false;
        int n = 0, digits = 0;
        for (++*p; *p < end && isdigit((unsigned char)**p) && digits < 6; ++*p, digits++)
            n = n * 10 + (**p - '0');
        *line = back ? here - n : here + n;
        return digits > 0;
    }
    return true;
}

/* p stands behind "expected-". */
static bool read_expected(Arena *a, const char *p, const char *end, int here, Expected *e)
{
    *e = (Expected){.written_line = here};
    if (!take_kind(&p, end, &e->kind) || !take_line(&p, end, here, &e->line))
        return false;
    while (p < end && *p == ' ')
        p++;
    if (!take(&p, end, "{{"))
        return false;
    const char *close = memmem(p, (size_t)(end - p), "}}", 2);
    if (!close)
        return false;
    while (close + 2 < end && close[2] == '}') /* "{{shape {1}}}": the text ends before the last pair */
        close++;
    e->text = arena_strndup(a, p, (size_t)(close - p));
    return true;
}

static bool collect_line(Diag *d, const char *p, const char *end, int line, ExpectedList *out, FILE *to)
{
    static const char word[] = "expected-";
    bool        good = true;
    const char *comment = memmem(p, (size_t)(end - p), "//", 2);
    for (p = comment ? comment : end; (p = memmem(p, (size_t)(end - p), word, sizeof word - 1)) != NULL;) {
        Expected    e;
        const char *after = p + sizeof word - 1, *kind = after;
        DiagKind    ignored;
        if (take_kind(&kind, end, &ignored)) {
            if (read_expected(d->arena, after, end, line, &e)) {
                vec_push(d->arena, out, e);
            } else {
                fprintf(to, "%s:%d: error: malformed expectation, write expected-error@+1 {{text}}\n", d->file, line);
                good = false;
            }
        }
        p = after;
    }
    return good;
}

static bool collect(Diag *d, ExpectedList *out, FILE *to)
{
    bool        good = true;
    const char *p = d->text, *end = d->text + d->len;
    for (int line = 1 + d->first_line; p < end; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        good &= collect_line(d, p, stop ? stop : end, line, out, to);
        p = stop ? stop + 1 : end;
    }
    return good;
}

static int message_line(const Diag *d, const DiagMessage *m)
{
    int line = 0, col;
    if (m->loc.off >= 0 && !m->where)
        diag_position(d, m->loc.off, &line, &col);
    return line;
}

static bool meet(ExpectedList *list, DiagKind kind, int line, const char *text)
{
    for (int k = 0; k < list->n; k++) {
        Expected *e = &list->v[k];
        if (!e->met && e->kind == kind && e->line == line && strstr(text, e->text)) {
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
