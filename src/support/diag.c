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

void diag_remark(Diag *d, Loc loc, const char *fmt, ...)
{
    REPORT(DIAG_REMARK);
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

/* How many bytes the character at s has: a UTF-8 sequence, or 1 for what is none. */
static int64_t char_bytes(const char *s, const char *end)
{
    unsigned char c = (unsigned char)*s;
    int64_t       n = c >= 0xf0 && c < 0xf8 ? 4 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xc2 && c < 0xe0 ? 2 : 1;
    if (end - s < n)
        return 1;
    for (int64_t k = 1; k < n; k++)
        if (((unsigned char)s[k] & 0xc0) != 0x80)
            return 1;
    return n;
}

/* Bytes that a terminal would act on, or could not show, become '?'. */
static void put_shown(Buf *b, const char *s, int64_t n)
{
    unsigned char c = (unsigned char)*s;
    bool          control = c < 32 || c == 127 || (n == 1 && c >= 128) || (c == 0xc2 && (unsigned char)s[1] < 0xa0);
    if (control)
        buf_putc(b, '?');
    else
        buf_put(b, s, (size_t)n);
}

/* The part of the source line that is shown: [start, end), with the place inside. */
typedef struct Window {
    int64_t start, end;
    bool    cut_left, cut_right;
} Window;

/* Long lines are cut around the place, between characters; a line's end is no part of it. */
static Window window_around(const Diag *d, int64_t off)
{
    enum { WIDTH = 160, LEAD = 60 };
    Window w = {.start = off, .end = off};
    while (w.start > 0 && d->text[w.start - 1] != '\n')
        w.start--;
    while (w.end < (int64_t)d->len && d->text[w.end] != '\n')
        w.end++;
    if (w.end > off && d->text[w.end - 1] == '\r')
        w.end--;
    w.cut_left = off - w.start > WIDTH - LEAD;
    if (w.cut_left)
        for (w.start = off - LEAD; w.start < off && ((unsigned char)d->text[w.start] & 0xc0) == 0x80;)
            w.start++;
    w.cut_right = w.end - w.start > WIDTH;
    if (w.cut_right)
        for (w.end = w.start + WIDTH; w.end > off && ((unsigned char)d->text[w.end] & 0xc0) == 0x80;)
            w.end--;
    return w;
}

/* The source line with a caret. Tabs stay tabs, and a character is one column whatever its bytes, so that the caret stays below. */
static void show_source(const Diag *d, Loc loc, Buf *b)
{
    int64_t off = loc.off > (int64_t)d->len ? (int64_t)d->len : loc.off, n;
    Window  w = window_around(d, off);
    buf_puts(b, w.cut_left ? "..." : "");
    for (int64_t k = w.start; k < w.end; k += n) {
        n = char_bytes(d->text + k, d->text + w.end);
        if (d->text[k] == '\t')
            buf_putc(b, '\t');
        else
            put_shown(b, d->text + k, n);
    }
    buf_puts(b, w.cut_right ? "...\n" : "\n");
    buf_puts(b, w.cut_left ? "   " : "");
    for (int64_t k = w.start; k < off; k += char_bytes(d->text + k, d->text + off))
        buf_putc(b, d->text[k] == '\t' ? '\t' : ' ');
    for (int64_t k = off, end = off + loc.len < w.end ? off + loc.len : w.end; k == off || k < end;
         k += k < end ? char_bytes(d->text + k, d->text + end) : 1)
        buf_putc(b, k == off ? '^' : '~');
    buf_putc(b, '\n');
}

/* A message may quote any bytes of the source, and whole lines of another program's messages. */
static void put_text(Buf *b, const char *text)
{
    const char *end = text + strlen(text);
    for (int64_t n; text < end; text += n) {
        n = char_bytes(text, end);
        if (*text == '\n' || *text == '\t')
            buf_putc(b, *text);
        else
            put_shown(b, text, n);
    }
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
        put_text(&b, m->text);
        if (placed && (m->kind != DIAG_NOTE || m->loc.off != shown))
            show_source(d, m->loc, &b);
        shown = placed ? m->loc.off : shown;
    }
    if (d->max_errors > 1 && diag_full(d))
        buf_printf(&b, "%s: note: %d errors are enough, what follows was not looked at\n", d->file, d->max_errors);
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
