/* Two texts of a module, computation by computation. Of one that differs the common lines at both ends are left out but for a few next to the
 * difference: one rewrite changes lines that stand close together. */
#include "config.h"

#include "driver/bisect.h"

#include <string.h>

#include "support/vec.h"

enum { CONTEXT = 2 };

typedef struct Line {
    const char *p;
    size_t      n; /* without its end */
} Line;

/* The lines of a computation: "%name (...) -> ... {" to "}". */
typedef struct Block {
    Line        name;  /* up to the first blank behind it */
    const Line *lines;
    int32_t     n;
} Block;

typedef VEC(Line) Lines;
typedef VEC(Block) Blocks;

static Lines lines_of(Arena *a, const Buf *text)
{
    Lines lines = {0};
    for (size_t at = 0; at < text->n;) {
        const char *p = text->p + at, *stop = memchr(p, '\n', text->n - at);
        size_t      n = stop ? (size_t)(stop - p) : text->n - at;
        vec_push(a, &lines, ((Line){p, n}));
        at += n + 1;
    }
    return lines;
}

static bool same_line(Line x, Line y)
{
    return x.n == y.n && (!x.n || memcmp(x.p, y.p, x.n) == 0);
}

static Line name_in(Line l)
{
    static const char entry[] = "ENTRY ";
    size_t            skip = l.n > sizeof entry && memcmp(l.p, entry, sizeof entry - 1) == 0 ? sizeof entry - 1 : 0;
    const char       *stop = memchr(l.p + skip, ' ', l.n - skip);
    return (Line){l.p, stop ? (size_t)(stop - l.p) : l.n};
}

static bool opens(Line l)
{
    return l.n > 0 && *l.p != ' ' && l.p[l.n - 1] == '{';
}

static Blocks blocks_of(Arena *a, const Lines *lines)
{
    Blocks blocks = {0};
    for (int32_t k = 0; k < lines->n; k++) {
        if (!opens(lines->v[k]))
            continue;
        Block b = {.name = name_in(lines->v[k]), .lines = &lines->v[k]};
        while (k < lines->n && lines->v[k].n && *lines->v[k].p != '}')
            k++;
        b.n = (int32_t)(&lines->v[k] - b.lines) + (k < lines->n);
        vec_push(a, &blocks, b);
    }
    return blocks;
}

static void put_lines(Buf *out, char mark, const Block *b, int32_t from, int32_t to)
{
    for (int32_t k = from; k < to; k++) {
        buf_putc(out, mark);
        buf_put(out, b->lines[k].p, b->lines[k].n);
        buf_putc(out, '\n');
    }
}

static void put_skipped(Buf *out, int32_t n)
{
    if (n > 0)
        buf_printf(out, "   ... %d more line%s\n", n, n == 1 ? "" : "s");
}

/* The first line, which names the computation, is always shown. */
static void put_both(Buf *out, const Block *x, const Block *y)
{
    int32_t head = 0, tail = 0, least = x->n < y->n ? x->n : y->n;
    while (head < least && same_line(x->lines[head], y->lines[head]))
        head++;
    while (tail < least - head && same_line(x->lines[x->n - 1 - tail], y->lines[y->n - 1 - tail]))
        tail++;
    if (head == x->n && head == y->n)
        return;
    int32_t from = head > CONTEXT + 1 ? head - CONTEXT : head > 0, after = tail > CONTEXT ? CONTEXT : tail;
    put_lines(out, ' ', x, 0, head > 0);
    put_skipped(out, from - 1);
    put_lines(out, ' ', x, from, head);
    put_lines(out, '-', x, head, x->n - tail);
    put_lines(out, '+', y, head, y->n - tail);
    put_lines(out, ' ', x, x->n - tail, x->n - tail + after);
    put_skipped(out, tail - after);
}

static const Block *find(const Blocks *blocks, Line name)
{
    for (int32_t k = 0; k < blocks->n; k++)
        if (same_line(blocks->v[k].name, name))
            return &blocks->v[k];
    return NULL;
}

void put_text_difference(Buf *out, const Buf *before, const Buf *after)
{
    Arena *a = arena_new();
    Lines  old = lines_of(a, before), new_ = lines_of(a, after);
    Blocks x = blocks_of(a, &old), y = blocks_of(a, &new_);
    if (!after->n)
        x.n = 0; /* a pass that crashed has left nothing */
    for (int32_t k = 0; k < x.n; k++) {
        const Block *other = find(&y, x.v[k].name);
        if (other)
            put_both(out, &x.v[k], other);
        else
            put_lines(out, '-', &x.v[k], 0, x.v[k].n);
    }
    for (int32_t k = 0; k < y.n; k++)
        if (!find(&x, y.v[k].name))
            put_lines(out, '+', &y.v[k], 0, y.v[k].n);
    arena_free(a);
}
