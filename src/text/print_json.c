/* Sorting JSON without understanding more of it than its braces, brackets, strings and words: s is read from left to right, values are
 * written as they come, the fields of an object are kept until its end and then sorted. As XLA's SortJson, which checks no more. */
#include "text/print_json.h"

#include <stdlib.h>
#include <string.h>

#include "support/vec.h"

enum { MAX_JSON_DEPTH = 200 };

typedef struct Json {
    const char *s, *end;
    int         depth;
} Json;

static bool put_value(Buf *b, Json *j);

static void skip_blanks(Json *j)
{
    while (j->s < j->end && memchr(" \t\n\v\f\r", *j->s, 6) != NULL)
        j->s++;
}

static bool take(Json *j, char c)
{
    skip_blanks(j);
    if (j->s == j->end || *j->s != c)
        return false;
    j->s++;
    return true;
}

/* "text", 1.5, true: everything that starts no object and no array. */
static bool put_word(Buf *b, Json *j)
{
    skip_blanks(j);
    const char *start = j->s;
    if (j->s == j->end || memchr("\"+-ftn0123456789", *j->s, 16) == NULL)
        return false;
    bool quoted = *j->s++ == '"';
    while (j->s < j->end && (quoted ? *j->s != '"' : memchr(" \t\n\v\f\r,{}[]:", *j->s, 12) == NULL))
        j->s += *j->s == '\\' && j->end - j->s > 1 ? 2 : 1;
    if (quoted && j->s == j->end)
        return false;
    j->s += quoted;
    buf_put(b, start, (size_t)(j->s - start));
    return true;
}

static bool put_array(Buf *b, Json *j)
{
    buf_putc(b, '[');
    for (bool first = true; !take(j, ']'); first = false) {
        buf_puts(b, first ? "" : ",");
        if (!put_value(b, j))
            return false;
        take(j, ',');
    }
    buf_putc(b, ']');
    return true;
}

static int compare_fields(const void *pa, const void *pb)
{
    const Buf *a = pa, *b = pb;
    int        order = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);
    return order != 0 ? order : (a->n > b->n) - (a->n < b->n);
}

static bool put_field(Buf *b, Json *j)
{
    if (!put_word(b, j) || !take(j, ':'))
        return false;
    buf_putc(b, ':');
    return put_value(b, j);
}

/* Each field in a buffer of its own. */
static bool put_object(Buf *b, Json *j)
{
    Arena   *a = arena_new();
    VEC(Buf) fields = {0};
    bool     good = true;
    while (good && !take(j, '}')) {
        vec_push(a, &fields, (Buf){0});
        good = put_field(&fields.v[fields.n - 1], j);
        take(j, ',');
    }
    if (good && fields.n > 0)
        qsort(fields.v, (size_t)fields.n, sizeof *fields.v, compare_fields);
    buf_putc(b, '{');
    for (int64_t k = 0; k < fields.n; k++) {
        buf_puts(b, k > 0 ? "," : "");
        buf_put(b, fields.v[k].p, fields.v[k].n);
        buf_free(&fields.v[k]);
    }
    buf_putc(b, '}');
    arena_free(a);
    return good;
}

static bool put_value(Buf *b, Json *j)
{
    bool good = false;
    if (++j->depth <= MAX_JSON_DEPTH)
        good = take(j, '{') ? put_object(b, j) : take(j, '[') ? put_array(b, j) : put_word(b, j);
    j->depth--;
    return good;
}

bool json_print_sorted(Buf *b, const char *s, size_t n)
{
    Json j = {.s = s, .end = s + n};
    Buf  sorted = {0};
    bool good = put_value(&sorted, &j);
    skip_blanks(&j);
    good = good && j.s == j.end;
    if (good)
        buf_put(b, sorted.p, sorted.n);
    buf_free(&sorted);
    return good;
}
