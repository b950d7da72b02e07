/* Lines of a test are told apart by their beginnings alone, as FileCheck and lit do. */
#include "config.h"

#include <ctype.h>

#include "driver/checks.h"

typedef struct Lines {
    const char *p, *end;
} Lines;

/* The next line with its end; false when there is none. */
static bool next_line(Lines *l, const char **line, size_t *n)
{
    if (l->p >= l->end)
        return false;
    const char *stop = memchr(l->p, '\n', (size_t)(l->end - l->p));
    *line = l->p;
    l->p = stop ? stop + 1 : l->end;
    *n = (size_t)(l->p - *line);
    return true;
}

static bool skip(const char **p, const char *end, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(end - *p) < n || memcmp(*p, word, n) != 0)
        return false;
    *p += n;
    return true;
}

static void skip_blanks(const char **p, const char *end)
{
    while (*p < end && (**p == ' ' || **p == '\t'))
        ++*p;
}

/* What FileCheck has behind a prefix. Anything else is part of another prefix, as in CHECK-CUDA. */
static void skip_suffix(const char **p, const char *end)
{
    static const char *const suffixes[] = {"-NEXT", "-SAME", "-EMPTY", "-NOT", "-DAG", "-LABEL"};
    for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++)
        if (skip(p, end, suffixes[k]))
            break;
    if (skip(p, end, "-COUNT-"))
        while (*p < end && **p >= '0' && **p <= '9')
            ++*p;
    skip(p, end, "{LITERAL}");
}

/* "// WORD:" or "// WORD-NEXT:", with_suffix. */
static bool is_directive(const char *line, size_t n, const char *word, bool with_suffix)
{
    const char *p = line, *end = line + n;
    skip_blanks(&p, end);
    if (!skip(&p, end, "//"))
        return false;
    skip_blanks(&p, end);
    if (!skip(&p, end, word))
        return false;
    if (with_suffix)
        skip_suffix(&p, end);
    return p < end && *p == ':';
}

static bool is_comment_or_blank(const char *line, size_t n)
{
    const char *p = line, *end = line + n;
    skip_blanks(&p, end);
    return p == end || *p == '\n' || *p == '\r' || skip(&p, end, "//");
}

/* One printed line as a directive, without its end. "{{" and "[[" would start a pattern. */
static void put_directive(Buf *out, const char *prefix, const char *line, size_t n, bool first)
{
    if (n == 0) {
        buf_printf(out, "// %s-EMPTY:", prefix);
        return;
    }
    buf_printf(out, first ? "// %s: " : "// %s-NEXT: ", prefix);
    for (size_t k = 0; k < n; k++) {
        bool pair = k + 1 < n && line[k] == line[k + 1];
        if (pair && line[k] == '{')
            buf_puts(out, "{{[{]}}");
        else if (pair && line[k] == '[')
            buf_puts(out, "{{\\[}}");
        else
            buf_putc(out, line[k]);
    }
}

static void put_directives(Buf *out, const char *prefix, const Buf *printed, const char *line_end)
{
    size_t end = printed->n;
    while (end > 0 && printed->p[end - 1] == '\n')
        end--;
    for (size_t at = 0; at < end;) {
        const char *stop = memchr(printed->p + at, '\n', end - at);
        size_t      n = stop ? (size_t)(stop - (printed->p + at)) : end - at;
        put_directive(out, prefix, printed->p + at, n, at == 0);
        buf_puts(out, line_end);
        at += n + 1;
    }
}

static bool has_directive(const char *test, size_t n, const char *word, bool with_suffix)
{
    Lines       l = {test, test + n};
    const char *line;
    for (size_t k; next_line(&l, &line, &k);)
        if (is_directive(line, k, word, with_suffix))
            return true;
    return false;
}

bool checks_prefix_is_good(const char *prefix)
{
    size_t n = 0;
    while (isalnum((unsigned char)prefix[n]) || prefix[n] == '-' || prefix[n] == '_')
        n++;
    return isalpha((unsigned char)*prefix) && !prefix[n];
}

bool checks_have_run(const char *test, size_t n)
{
    return has_directive(test, n, "RUN", false);
}

const char *checks_line_end(const char *test, size_t n)
{
    const char *first = n ? memchr(test, '\n', n) : NULL;
    return first > test && first[-1] == '\r' ? "\r\n" : "\n";
}

static void end_line(Buf *out, const char *line_end)
{
    if (out->n && out->p[out->n - 1] != '\n')
        buf_puts(out, line_end);
}

void checks_write(Buf *out, const char *test, size_t n, const Buf *printed, const char *prefix)
{
    bool        has_old = has_directive(test, n, prefix, true), written = false;
    const char *line_end = checks_line_end(test, n);
    Lines       l = {test, test + n};
    const char *line;
    for (size_t k; next_line(&l, &line, &k);) {
        bool old = is_directive(line, k, prefix, true);
        if (!written && (has_old ? old : !is_comment_or_blank(line, k))) {
            end_line(out, line_end);
            put_directives(out, prefix, printed, line_end);
            written = true;
        }
        if (!old)
            buf_put(out, line, k);
    }
    end_line(out, line_end);
    if (!written)
        put_directives(out, prefix, printed, line_end);
}
