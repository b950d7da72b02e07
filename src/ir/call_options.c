/* A flat reading of the text: names and values one after the other; braces between them only open or close a dictionary. */
#include "ir/call_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    Arena      *arena;
    const char *p;
    VEC(CallOption) found;
    bool        bad;
} Reader;

static void skip_space(Reader *r)
{
    while (isspace((unsigned char)*r->p))
        r->p++;
}

static bool take(Reader *r, char c)
{
    skip_space(r);
    if (*r->p != c)
        return false;
    r->p++;
    return true;
}

/* What stands between quotes; a backslash keeps the next character as it is. */
static char *quoted(Reader *r)
{
    size_t n = 0;
    while (r->p[n] && r->p[n] != '"')
        n += r->p[n] == '\\' && r->p[n + 1] ? 2 : 1;
    char *s = arena_alloc(r->arena, n + 1);
    n = 0;
    while (*r->p && *r->p != '"') {
        if (*r->p == '\\' && r->p[1])
            r->p++;
        s[n++] = *r->p++;
    }
    r->bad |= *r->p != '"';
    r->p += *r->p == '"';
    return s;
}

static bool ends_word(char c)
{
    return !c || isspace((unsigned char)c) || strchr("{}[]<>(),:=\"", c);
}

static char *word(Reader *r)
{
    skip_space(r);
    if (take(r, '"'))
        return quoted(r);
    const char *from = r->p;
    while (!ends_word(*r->p))
        r->p++;
    r->bad |= r->p == from;
    return arena_strndup(r->arena, from, (size_t)(r->p - from));
}

/* A list or what stands between angle brackets, as it is written. */
static char *bracketed(Reader *r)
{
    const char *from = r->p;
    int64_t     depth = 0;
    do {
        depth += *r->p != '\0' && strchr("[<(", *r->p) != NULL;
        depth -= *r->p != '\0' && strchr("]>)", *r->p) != NULL;
        r->bad |= !*r->p;
        r->p += *r->p != '\0';
    } while (depth > 0 && *r->p);
    r->bad |= depth > 0;
    return arena_strndup(r->arena, from, (size_t)(r->p - from));
}

static void read_number(CallOption *o)
{
    char *end;
    errno = 0;
    o->number = strtoll(o->text, &end, 10);
    o->is_number = end != o->text && !*end && !errno;
    if (strcmp(o->text, "true") == 0 || strcmp(o->text, "false") == 0) {
        o->number = o->text[0] == 't';
        o->is_number = true;
    }
}

/* name = value : type, or "name": value; when the value is a dictionary, only its beginning is taken. */
static void read_entry(Reader *r)
{
    CallOption o = { .name = word(r) };
    bool       mlir = take(r, '=');
    if (!mlir && !take(r, ':')) {
        r->bad = true;
        return;
    }
    if (take(r, '{'))
        return;
    skip_space(r);
    bool text = *r->p == '"';
    o.text = *r->p == '[' ? bracketed(r) : word(r);
    if (*r->p == '<')
        bracketed(r); /* array<...>, dense<...> */
    if (!text)
        read_number(&o);
    if (mlir && take(r, ':')) {
        word(r);
        if (*r->p == '<')
            bracketed(r);
    }
    vec_push(r->arena, &r->found, o);
}

static const char *frontend_config(const Inst *i)
{
    const Attr *x = inst_attr(i, ATTR_FRONTEND_ATTRIBUTES);
    for (int32_t k = 0; x && k < x->value.key_values->n; k++)
        if (strcmp(x->value.key_values->v[k].key, "mhlo.backend_config") == 0)
            return x->value.key_values->v[k].value;
    return "";
}

const char *call_config_text(const Inst *i)
{
    const char *text = inst_string(i, ATTR_BACKEND_CONFIG);
    return text && *text ? text : frontend_config(i);
}

bool call_options_read(Arena *a, const Inst *i, CallOptions *out)
{
    Reader r = { .arena = a, .p = call_config_text(i) };
    *out = (CallOptions){ 0 };
    skip_space(&r);
    if (*r.p && !take(&r, '{'))
        return false;
    for (skip_space(&r); *r.p && !r.bad; skip_space(&r))
        if (!take(&r, '}') && !take(&r, ',') && !take(&r, '{'))
            read_entry(&r);
    *out = (CallOptions){ r.found.v, r.found.n };
    return !r.bad;
}

const CallOption *call_option(const CallOptions *o, const char *name)
{
    for (int32_t k = 0; k < o->n; k++)
        if (strcmp(o->v[k].name, name) == 0)
            return &o->v[k];
    return NULL;
}
