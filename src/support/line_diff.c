/* Patience diff: the lines that are unique in both texts are anchors as far as their order agrees; from each anchor the match grows in
 * both directions while lines are equal. */
#include "config.h"

#include "support/line_diff.h"

#include "support/arena.h"
#include "support/map.h"

enum { CONTEXT = 3 };

typedef struct Line {
    const char *p;
    size_t      n;
} Line;

typedef struct Text {
    Line   *lines;
    int64_t n;
} Text;

/* A line that one of the texts has, by its hash. */
typedef struct Seen {
    int64_t count[2], at[2];
} Seen;

typedef struct Differ {
    Arena   *arena;
    Text     t[2];
    int64_t *match; /* by lines of t[0]: the line of t[1], or -1 */
    LineIsHeading *heading;
    Buf     *out;
} Differ;

static Text split(Arena *a, const Buf *b)
{
    Text        t = {0};
    const char *end = b->p + b->n;
    for (const char *p = b->n ? b->p : end; p < end; t.n++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        p = stop ? stop + 1 : end;
    }
    t.lines = ARENA_ARRAY(a, Line, t.n + 1);
    int64_t k = 0;
    for (const char *p = b->n ? b->p : end; p < end; k++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        t.lines[k] = (Line){p, (size_t)((stop ? stop : end) - p)};
        p = stop ? stop + 1 : end;
    }
    return t;
}

static bool same(const Differ *d, int64_t x, int64_t y)
{
    const Line *a = &d->t[0].lines[x], *b = &d->t[1].lines[y];
    return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

/* By lines of t[0]: the only line of t[1] that has the same text when it is the only one of t[0] too, else -1. */
static int64_t *unique_pairs(const Differ *d)
{
    Map      seen = map_new(d->arena);
    int64_t *pair = ARENA_ARRAY(d->arena, int64_t, d->t[0].n + 1);
    Seen   **of = ARENA_ARRAY(d->arena, Seen *, d->t[0].n + 1);
    for (int side = 0; side < 2; side++)
        for (int64_t k = 0; k < d->t[side].n; k++) {
            uint64_t hash = hash_bytes(0, d->t[side].lines[k].p, d->t[side].lines[k].n);
            Seen    *s = map_get_u64(&seen, hash);
            if (!s)
                map_put_u64(&seen, hash, s = ARENA_NEW(d->arena, Seen));
            s->count[side]++;
            s->at[side] = k;
            if (side == 0)
                of[k] = s;
        }
    for (int64_t k = 0; k < d->t[0].n; k++) {
        bool once = of[k]->count[0] == 1 && of[k]->count[1] == 1;
        pair[k] = once && same(d, k, of[k]->at[1]) ? of[k]->at[1] : -1;
    }
    return pair;
}

/* Keeps of the pairs a longest ascending row: top[n] is the line that ends the row of length n + 1 lowest. */
static void match_in_order(Differ *d, const int64_t *pair)
{
    int64_t *top = ARENA_ARRAY(d->arena, int64_t, d->t[0].n + 1), *before = ARENA_ARRAY(d->arena, int64_t, d->t[0].n + 1), n = 0;
    for (int64_t k = 0; k < d->t[0].n; k++) {
        d->match[k] = -1;
        if (pair[k] < 0)
            continue;
        int64_t low = 0, high = n;
        while (low < high) {
            int64_t mid = (low + high) / 2;
            if (pair[top[mid]] < pair[k])
                low = mid + 1;
            else
                high = mid;
        }
        before[k] = low ? top[low - 1] : -1;
        top[low] = k;
        n += low == n;
    }
    for (int64_t k = n ? top[n - 1] : -1; k >= 0; k = before[k])
        d->match[k] = pair[k];
}

/* Lines without a match between two that have one (or an end): equal ones beside these match. */
static void match_between(Differ *d)
{
    int64_t next = 0; /* of t[1]: behind the last match */
    for (int64_t k = 0; k < d->t[0].n; k++) { /* downwards from a match */
        if (d->match[k] >= 0) {
            next = d->match[k] + 1;
            continue;
        }
        int64_t stop = k;
        while (stop < d->t[0].n && d->match[stop] < 0)
            stop++;
        int64_t limit = stop < d->t[0].n ? d->match[stop] : d->t[1].n;
        for (; k < stop && next < limit && same(d, k, next); k++)
            d->match[k] = next++;
        for (int64_t up = stop; up > k && limit > next && same(d, up - 1, limit - 1);)
            d->match[--up] = --limit;
        k = stop - 1;
    }
}

static void put_line(Differ *d, char mark, const Line *l)
{
    buf_putc(d->out, mark);
    buf_put(d->out, l->p, l->n);
    buf_putc(d->out, '\n');
}

/* Lines x0..x1 of the one text became y0..y1 of the other; section is a heading above, or NULL. */
static void put_hunk(Differ *d, int64_t x0, int64_t x1, int64_t y0, int64_t y1, const Line *section)
{
    buf_printf(d->out, "@@ -%lld,%lld +%lld,%lld @@", (long long)(x0 + (x1 > x0)), (long long)(x1 - x0), (long long)(y0 + (y1 > y0)),
               (long long)(y1 - y0));
    if (section) {
        buf_putc(d->out, ' ');
        buf_put(d->out, section->p, section->n);
    }
    buf_putc(d->out, '\n');
    for (int64_t x = x0, y = y0; x < x1 || y < y1;) {
        if (x < x1 && d->match[x] < 0)
            put_line(d, '-', &d->t[0].lines[x++]);
        else if (y < y1 && (x == x1 || d->match[x] > y))
            put_line(d, '+', &d->t[1].lines[y++]);
        else
            put_line(d, ' ', &d->t[0].lines[x++]), y++;
    }
}

/* Where the next difference begins, from equal places on: false at the end. */
static bool next_difference(const Differ *d, int64_t *x, int64_t *y)
{
    while (*x < d->t[0].n && d->match[*x] == *y)
        ++*x, ++*y;
    return *x < d->t[0].n || *y < d->t[1].n;
}

/* The last heading among the lines x0..x1, or what was the section before them. */
static const Line *section_at(const Differ *d, int64_t x0, int64_t x1, const Line *section)
{
    for (int64_t x = x1; d->heading && x-- > x0;)
        if (d->heading(d->t[0].lines[x].p, d->t[0].lines[x].n))
            return &d->t[0].lines[x];
    return section;
}

/* Moves behind what differs and the equal lines after it, until more than two contexts of them follow. */
static void end_of_hunk(const Differ *d, int64_t *x, int64_t *y)
{
    for (int64_t x1 = *x, y1 = *y;;) {
        while (x1 < d->t[0].n && d->match[x1] < 0)
            x1++;
        y1 = x1 < d->t[0].n ? d->match[x1] : d->t[1].n;
        *x = x1, *y = y1;
        while (x1 < d->t[0].n && d->match[x1] == y1 && x1 - *x <= 2 * CONTEXT)
            x1++, y1++;
        bool ends = x1 == d->t[0].n && y1 == d->t[1].n;
        if (ends || x1 - *x > 2 * CONTEXT)
            return;
    }
}

static int64_t smaller(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

bool line_diff(Buf *out, const Buf *a, const Buf *b, LineIsHeading *heading)
{
    Arena  *arena = arena_new();
    Differ  d = {.arena = arena, .t = {split(arena, a), split(arena, b)}, .heading = heading, .out = out};
    d.match = ARENA_ARRAY(arena, int64_t, d.t[0].n + 1);
    match_in_order(&d, unique_pairs(&d));
    match_between(&d);
    int64_t     x = 0, y = 0, behind = 0, told = 0; /* behind: of the last hunk, in t[0]; told: whose sections are known */
    bool        any = false;
    const Line *section = NULL;
    for (; next_difference(&d, &x, &y); any = true) {
        int64_t lead = smaller(CONTEXT, x - behind), x1 = x, y1 = y;
        end_of_hunk(&d, &x1, &y1);
        int64_t tail = smaller(CONTEXT, d.t[0].n - x1);
        section = section_at(&d, told, x - lead, section);
        put_hunk(&d, x - lead, x1 + tail, y - lead, y1 + tail, section);
        told = x - lead;
        x = x1, y = y1, behind = x1 + tail;
    }
    arena_free(arena);
    return any;
}
