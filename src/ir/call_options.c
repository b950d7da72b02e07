/* A flat reading of the text: names and values one after the other; braces between them only open or close a dictionary. */
#include "ir/call_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ir/numeric.h"

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

static bool is_whole(const char *text, const char *end)
{
    return end != text && !*end && !errno;
}

/* MLIR writes floats that have no short decimal form, and those that are not finite, by their bits: 0x7FC00000 : f32. */
static bool read_bits(CallOption *o)
{
    Type  t = type_lookup(o->type, strlen(o->type));
    char *end;
    if (t == TYPE_COUNT || !type_is_float(t) || strncmp(o->text, "0x", 2) != 0)
        return false;
    uint64_t bits = strtoull(o->text, &end, 16);
    o->is_real = is_whole(o->text, end) && (type_bits(t) == 64 || bits >> type_bits(t) == 0);
    if (o->is_real)
        o->real = float_decode(t, bits);
    return true;
}

static bool read_integer(CallOption *o)
{
    char *end;
    bool  yes = strcmp(o->text, "true") == 0;
    if (yes || strcmp(o->text, "false") == 0) {
        o->number = yes;
        return o->is_number = true;
    }
    errno = 0;
    int64_t v = strtoll(o->text, &end, 10);
    if (errno == ERANGE && *o->text != '-') {
        errno = 0;
        v = (int64_t)strtoull(o->text, &end, 10);
    }
    o->is_number = is_whole(o->text, end);
    o->number = o->is_number ? v : 0;
    return o->is_number;
}

static void read_number(CallOption *o)
{
    char *end;
    errno = 0;
    if (read_bits(o))
        return;
    bool integer = read_integer(o), decimal = strspn(o->text, "0123456789+-.eE") == strlen(o->text);
    o->real = decimal ? strtod(o->text, &end) : (double)o->number;
    o->is_real = decimal && !integer && end != o->text && !*end;
}

/* A word, or one with what stands in angle brackets behind it: array<i64: 1, 2>, tensor<2xf32>. */
static char *open_word(Reader *r)
{
    char *w = word(r);
    return *r->p == '<' ? arena_printf(r->arena, "%s%s", w, bracketed(r)) : w;
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
    o.type = "";
    o.is_string = *r->p == '"';
    o.text = *r->p == '[' ? bracketed(r) : open_word(r);
    if (mlir && take(r, ':')) {
        skip_space(r);
        o.type = open_word(r);
    }
    if (!o.is_string)
        read_number(&o);
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

/* [1.0 : f32, 2.0 : f32] or array<i64: 1, 2>: what stands between the commas. */
CallOption *call_option_entries(Arena *a, const CallOption *o, int32_t *n)
{
    VEC(CallOption) found = { 0 };
    size_t length = strlen(o->text);
    bool   array = strncmp(o->text, "array<", 6) == 0 && strchr(o->text, ':');
    if (o->is_string || (o->text[0] != '[' && !array)) {
        *n = 1;
        return arena_copy(a, o, sizeof *o);
    }
    const char *from = array ? strchr(o->text, ':') + 1 : o->text + 1;
    Reader      r = { .arena = a, .p = arena_strndup(a, from, (size_t)(o->text + length - 1 - from)) };
    for (skip_space(&r); *r.p && !r.bad; skip_space(&r)) {
        CallOption x = { .name = o->name, .type = "", .is_string = *r.p == '"' };
        x.text = *r.p == '[' ? bracketed(&r) : open_word(&r);
        if (take(&r, ':')) {
            skip_space(&r);
            x.type = open_word(&r);
        }
        if (!x.is_string)
            read_number(&x);
        vec_push(a, &found, x);
        skip_space(&r);
        r.bad |= *r.p && !take(&r, ',');
    }
    *n = r.bad ? 0 : found.n;
    return found.v;
}

const CallOption *call_option(const CallOptions *o, const char *name)
{
    for (int32_t k = 0; k < o->n; k++)
        if (strcmp(o->v[k].name, name) == 0)
            return &o->v[k];
    return NULL;
}
