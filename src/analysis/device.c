#include "analysis/device.h"


#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const Device rows[] = {
#define DEVICE(id, ...) {#id, __VA_ARGS__},
#include "analysis/device.def"
#undef DEVICE
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct {
    const char *name;
    size_t      offset;
    bool        positive; /* something is divided by it */
} columns[] = {
#define COLUMN(name, positive) {#name, offsetof(Device, name), positive}
    COLUMN(launch, false), COLUMN(bundle, false), COLUMN(units, true),    COLUMN(warps, false), COLUMN(shared, false),
    COLUMN(tensor, false), COLUMN(flops, true), COLUMN(dear, false),    COLUMN(row, false),        COLUMN(l1, false),
    COLUMN(l1_rate, false), COLUMN(l2, false),    COLUMN(l2_rate, false), COLUMN(l3, false),   COLUMN(l3_rate, false), COLUMN(memory_rate, true),
#undef COLUMN
};
enum { COLUMNS = sizeof columns / sizeof *columns };

const Device *device_named(const char *name)
{
    for (int k = 0; k < ROWS; k++)
        if (strcmp(rows[k].name, name) == 0)
            return &rows[k];
    return NULL;
}

const Device *device_of_target(const char *target)
{
    for (int k = 0; k < ROWS; k++)
        if (strcmp(rows[k].target, target) == 0)
            return &rows[k];
    return NULL;
}

const char *device_names(Arena *a)
{
    const char *names = rows[0].name;
    for (int k = 1; k < ROWS; k++)
        names = arena_printf(a, "%s, %s", names, rows[k].name);
    return names;
}

/* ---- from text ---- */

typedef struct Line {
    const char *key, *value; /* copies */
    Loc         key_at, value_at;
} Line;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The word of text[*from, to) without blanks around it. */
static const char *cut(Arena *a, const char *text, size_t from, size_t to, Loc *at)
{
    while (from < to && is_blank(text[from]))
        from++;
    while (to > from && is_blank(text[to - 1]))
        to--;
    *at = (Loc){(int64_t)from, (int32_t)(to - from < 100 ? to - from : 100)};
    return arena_strndup(a, text + from, to - from);
}

/* text[from, to) as key and value; false after reporting. *empty: there is nothing. */
static bool read_line(Arena *a, const char *text, size_t from, size_t to, Line *out, bool *empty, Diag *d)
{
    const char *comment = memchr(text + from, '#', to - from), *equals;
    to = comment ? (size_t)(comment - text) : to;
    equals = memchr(text + from, '=', to - from);
    size_t middle = equals ? (size_t)(equals - text) : to;
    out->key = cut(a, text, from, middle, &out->key_at);
    *empty = !equals && !*out->key;
    if (*empty)
        return true;
    if (!equals) {
        diag_error(d, out->key_at, "expected 'column = number'");
        return false;
    }
    out->value = cut(a, text, middle + 1, to, &out->value_at);
    return true;
}

static double *find_column(Device *v, const Line *line, bool *positive, Diag *d)
{
    const char *names[COLUMNS];
    for (int k = 0; k < COLUMNS; k++) {
        names[k] = columns[k].name;
        if (strcmp(names[k], line->key) == 0) {
            *positive = columns[k].positive;
            return (double *)((char *)v + columns[k].offset);
        }
    }
    const char *near = nearest_word(line->key, names, COLUMNS);
    if (near)
        diag_error(d, line->key_at, "a device has no column '%s', did you mean '%s'?", line->key, near);
    else
        diag_error(d, line->key_at, "a device has no column '%s'", line->key);
    return NULL;
}

static bool set_column(Device *v, const Line *line, Diag *d)
{
    bool    positive;
    double *to = find_column(v, line, &positive, d);
    char   *end;
    double  x = strtod(line->value, &end);
    if (!to)
        return false;
    if (!*line->value || *end || !isfinite(x) || x < 0 || (positive && x == 0)) {
        diag_error(d, line->value_at, "%s is a number %s 0, not '%s'", line->key, positive ? "above" : "from", line->value);
        return false;
    }
    *to = x;
    return true;
}

static bool set_like(Arena *a, Device *v, const Line *line, bool first, Diag *d)
{
    const Device *like = device_named(line->value);
    if (like && first) {
        const char *name = v->name;
        *v = *like;
        v->name = name;
        return true;
    }
    if (!first)
        diag_error(d, line->key_at, "'like' comes first and once");
    else
        diag_error(d, line->value_at, "no device '%s' is known, only %s", line->value, device_names(a));
    return false;
}

const Device *device_read(Arena *a, const char *name, const char *text, size_t n, Diag *d)
{
    Device *v = ARENA_NEW(a, Device);
    bool    good = true, first = true, empty;
    v->name = name;
    for (size_t from = 0, to; from < n && good; from = to + 1) {
        const char *end = memchr(text + from, '\n', n - from);
        Line        line;
        to = end ? (size_t)(end - text) : n;
        good = read_line(a, text, from, to, &line, &empty, d);
        if (!good || empty)
            continue;
        if (strcmp(line.key, "like") == 0)
            good = set_like(a, v, &line, first, d);
        else if (first) {
            diag_error(d, line.key_at, "expected 'like = NAME' first, with one of %s", device_names(a));
            good = false;
        } else
            good = set_column(v, &line, d);
        first = false;
    }
    if (good && first)
        diag_error(d, LOC_NONE, "the device is empty: expected 'like = NAME', with one of %s", device_names(a));
    return good && !first ? v : NULL;
}

static const Device *named_or_read(Arena *a, const char *tool, const char *given, Diag *d)
{
    const Device *v = device_named(given);
    Buf           text = {0};
    if (v)
        return v;
    if (buf_read_file(&text, given)) {
        diag_source(d, given, arena_strndup(a, text.p ? text.p : "", text.n), text.n);
        v = device_read(a, given, text.p, text.n, d);
        buf_free(&text);
    } else {
        tool_error(tool, "--device expects one of %s, or a file: %s: %s", device_names(a), given, strerror(errno));
    }
    return v;
}

const Device *device_option(Arena *a, const char *tool, const char *given, const char *target, const MessageArgs *m)
{
    Diag d;
    if (!given)
        return device_of_target(target);
    diag_init(&d, a);
    const Device *v = named_or_read(a, tool, given, &d);
    tool_messages_print(&d, m);
    if (v && target && strcmp(v->target, target) != 0) {
        tool_error(tool, "--device=%s is one of --target=%s", given, v->target);
        return NULL;
    }
    return v;
}

const char *device_text(Arena *a, const Device *v)
{
    const char *text = v->target;
    for (int k = 0; k < COLUMNS; k++)
        text = arena_printf(a, "%s %s=%.17g", text, columns[k].name, *(const double *)((const char *)v + columns[k].offset));
    return text;
}

/* ---- times ---- */

double device_bytes_ns(const Device *v, double bytes, double within)
{
    if (within <= v->l1 && v->l1_rate > 0)
        return bytes / v->l1_rate;
    if (within <= v->l2 && v->l2_rate > 0)
        return bytes / v->l2_rate;
    return bytes / (within <= v->l3 && v->l3_rate > 0 ? v->l3_rate : v->memory_rate);
}

double device_work_ns(const Device *v, double bytes, double flops)
{
    double moves = device_bytes_ns(v, bytes, bytes), computes = flops / v->flops;
    return moves > computes ? moves : computes;
}

double device_unit_ns(const Device *v, double flops)
{
    return flops * v->units / v->flops;
}
