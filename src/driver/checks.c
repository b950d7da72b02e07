/* Lines of a test are told apart by their beginnings alone, as FileCheck and lit do. */
#include "config.h"

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
    if (with_suffix && p < end && *p == '-')
        while (p < end && (*p == '-' || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '{' || *p == '}'))
            p++;
    return p < end && *p == ':';
}

static bool is_comment_or_blank(const char *line, size_t n)
{
    const char *p = line, *end = line + n;
    skip_blanks(&p, end);
    return p == end || *p == '\n' || *p == '\r' || skip(&p, end, "//");
}

/* One printed line as a directive. "{{" and "[[" would start a pattern. */
static void put_directive(Buf *out, const char *prefix, const char *line, size_t n, bool first)
{
    if (n == 0) {
        buf_printf(out, "// %s-EMPTY:\n", prefix);
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
    buf_putc(out, '\n');
}

static void put_directives(Buf *out, const char *prefix, const Buf *printed)
{
    size_t end = printed->n;
    while (end > 0 && printed->p[end - 1] == '\n')
        end--;
    for (size_t at = 0; at < end;) {
        const char *stop = memchr(printed->p + at, '\n', end - at);
        size_t      n = stop ? (size_t)(stop - (printed->p + at)) : end - at;
        put_directive(out, prefix, printed->p + at, n, at == 0);
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

bool checks_have_run(const char *test, size_t n)
{
    return has_directive(test, n, "RUN", false);
}

static void end_line(Buf *out)
{
    if (out->n && out->p[out->n - 1] != '\n')
        buf_putc(out, '\n');
}

void checks_write(Buf *out, const char *test, size_t n, const Buf *printed, const char *prefix)
{
    bool        has_old = has_directive(test, n, prefix, true), written = false;
    Lines       l = {test, test + n};
    const char *line;
    for (size_t k; next_line(&l, &line, &k);) {
        bool old = is_directive(line, k, prefix, true);
        if (!written && (has_old ? old : !is_comment_or_blank(line, k))) {
            end_line(out);
            put_directives(out, prefix, printed);
            written = true;
        }
        if (!old)
            buf_put(out, line, k);
    }
    end_line(out);
    if (!written)
        put_directives(out, prefix, printed);
}
