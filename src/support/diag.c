/* Messages are kept in the order of report and shown by the tool. A message after the limit of errors is dropped with its notes. */
#include "config.h"

#include "support/diag.h"

#include <stdlib.h>
#include <string.h>

#include "support/buf.h"

void diag_init(Diag *d, Arena *a)
{
    *d = (Diag){.arena = a, .file = "<unknown>", .max_errors = 20};
}

void diag_source(Diag *d, const char *file, const char *text, size_t len)
{
    d->file = file;
    d->text = text;
    d->len = len;
}

void diag_soften(Diag *d, DiagMessage *after)
{
    if (d->werror || diag_full(d))
        return;
    for (DiagMessage *m = after ? after->next : d->first; m; m = m->next)
        if (m->kind == DIAG_ERROR) {
            m->kind = DIAG_WARNING;
            d->errors--;
            d->warnings++;
        }
}

bool diag_full(const Diag *d)
{
    return d->max_errors > 0 && d->errors >= d->max_errors;
}

void diag_vreport(Diag *d, DiagKind kind, Loc loc, const char *fmt, va_list ap)
{
    if (kind == DIAG_WARNING && d->werror)
        kind = DIAG_ERROR;
    if (kind == DIAG_ERROR)
        d->errors++;
    if (kind == DIAG_WARNING)
        d->warnings++;
    if (d->max_errors > 0 && d->errors > d->max_errors)
        return; /* also drops the notes that follow: nothing but an error comes after the limit */
    DiagMessage *m = ARENA_NEW(d->arena, DiagMessage);
    *m = (DiagMessage){.kind = kind, .loc = loc, .text = arena_vprintf(d->arena, fmt, ap)};
    if (d->context && kind != DIAG_NOTE)
        m->text = arena_printf(d->arena, "%s%s", d->context, m->text);
    if (d->last)
        d->last->next = m;
    else
        d->first = m;
    d->last = m;
}

#define REPORT(kind)                                                                                                            \
    va_list ap;                                                                                                                 \
    va_start(ap, fmt);                                                                                                          \
    diag_vreport(d, kind, loc, fmt, ap);                                                                                        \
    va_end(ap)

void diag_error(Diag *d, Loc loc, const char *fmt, ...)
{
    REPORT(DIAG_ERROR);
}

void diag_warning(Diag *d, Loc loc, const char *fmt, ...)
{
    REPORT(DIAG_WARNING);
}

void diag_note(Diag *d, Loc loc, const char *fmt, ...)
{
    REPORT(DIAG_NOTE);
}

void diag_note_at(Diag *d, const char *where, const char *fmt, ...)
{
    DiagMessage *before = d->last;
    Loc          loc = LOC_NONE;
    REPORT(DIAG_NOTE);
    if (d->last != before)
        d->last->where = arena_strndup(d->arena, where, strlen(where));
}

void diag_position(const Diag *d, int64_t off, int *line, int *col)
{
    int64_t start = 0;
    int     n = 1;
    if (off > (int64_t)d->len)
        off = (int64_t)d->len;
    for (int64_t k = 0; k < off; k++)
        if (d->text[k] == '\n') {
            n++;
            start = k + 1;
        }
    *line = n + d->first_line;
    *col = (int)(off - start) + 1;
}

/* The source line with a caret. Long lines are cut around the place; tabs stay tabs so that the caret stays below. */
static void show_source(const Diag *d, Loc loc, Buf *b)
{
    int64_t off = loc.off > (int64_t)d->len ? (int64_t)d->len : loc.off;
    int64_t start = off, end = off;
    while (start > 0 && d->text[start - 1] != '\n')
        start--;
    while (end < (int64_t)d->len && d->text[end] != '\n')
        end++;
    enum { WIDTH = 160, LEAD = 60 };
    bool cut_left = off - start > WIDTH - LEAD;
    if (cut_left)
        start = off - LEAD;
    bool cut_right = end - start > WIDTH;
    if (cut_right)
        end = start + WIDTH;
    buf_puts(b, cut_left ? "..." : "");
    for (int64_t k = start; k < end; k++) {
        unsigned char c = (unsigned char)d->text[k];
        buf_putc(b, c == '\t' || (c >= 32 && c != 127) ? (char)c : '?');
    }
    buf_puts(b, cut_right ? "...\n" : "\n");
    buf_puts(b, cut_left ? "   " : "");
    for (int64_t k = start; k < off; k++)
        buf_putc(b, d->text[k] == '\t' ? '\t' : ' ');
    buf_putc(b, '^');
    for (int64_t k = off + 1; k < off + loc.len && k < end; k++)
        buf_putc(b, '~');
    buf_putc(b, '\n');
}

void diag_print(Diag *d, FILE *to, bool color)
{
    static const char *const words[] = {"error", "warning", "note", "remark"};
    static const char *const colors[] = {"\033[1;31m", "\033[1;35m", "\033[1;36m", "\033[1;34m"};
    Buf     b = {0};
    int64_t shown = -1; /* a note about the place of the message before it needs no second picture */
    for (const DiagMessage *m = d->first; m; m = m->next) {
        bool placed = m->loc.off >= 0 && d->text && !m->where;
        if (m->where)
            buf_printf(&b, "%s: ", m->where);
        else if (placed) {
            int line, col;
            diag_position(d, m->loc.off, &line, &col);
            buf_printf(&b, "%s:%d:%d: ", d->file, line, col);
        } else
            buf_printf(&b, "%s: ", d->file);
        if (color)
            buf_printf(&b, "%s%s:\033[0m ", colors[m->kind], words[m->kind]);
        else
            buf_printf(&b, "%s: ", words[m->kind]);
        buf_printf(&b, "%s\n", m->text);
        if (placed && (m->kind != DIAG_NOTE || m->loc.off != shown))
            show_source(d, m->loc, &b);
        shown = placed ? m->loc.off : shown;
    }
    if (d->max_errors > 0 && d->errors > d->max_errors)
        buf_printf(&b, "%s: note: too many errors, only the first %d are shown\n", d->file, d->max_errors);
    if (b.n)
        fwrite(b.p, 1, b.n, to);
    fflush(to);
    buf_free(&b);
    d->first = d->last = NULL;
}

/* Edit distance with swaps of neighbours, given up beyond `limit`. Words are short. */
static int distance(const char *a, const char *b, int limit)
{
    enum { MAX = 64 };
    int na = (int)strlen(a), nb = (int)strlen(b);
    if (na >= MAX || nb >= MAX || abs(na - nb) > limit)
        return limit + 1;
    int row[3][MAX + 1];
    for (int j = 0; j <= nb; j++)
        row[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *cur = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        cur[0] = i;
        for (int j = 1; j <= nb; j++) {
            int best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best)
                best = up[j] + 1;
            if (cur[j - 1] + 1 < best)
                best = cur[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < best)
                best = up2[j - 2] + 1;
            cur[j] = best;
        }
    }
    return row[na % 3][nb];
}

const char *nearest_word(const char *word, const char *const *names, int n)
{
    size_t      len = strlen(word);
    int         limit = len <= 1 ? 0 : len <= 3 ? 1 : len <= 8 ? 2 : 3;
    const char *best = NULL;
    for (int k = 0; k < n; k++) {
        int dist = distance(word, names[k], limit);
        if (dist <= limit) {
            best = names[k];
            limit = dist - 1;
            if (limit < 0)
                break;
        }
    }
    return best;
}
