/* What mostly stands behind the '=' of an attribute, as one token: a string without escapes, a list of a few plain integers, metadata
 * as XLA prints it. That is half of a module's text. Everything else - comments, blanks, signs, mistakes - is left to the scanner and
 * the grammar, without a word. So this file takes less than the language, and what it takes means the same. */
#include "config.h"

#include "text/parse_int.h"

#include "hlo_parse.h"

const char *plain_string(const Parser *p, const char *s)
{
    const char *end = *s == '"' ? memchr(s + 1, '"', p->len - (size_t)(s + 1 - p->buf)) : NULL;
    if (!end || memchr(s, '\\', (size_t)(end - s)) || memchr(s, '\0', (size_t)(end - s)) || end - s > INT32_MAX)
        return NULL;
    return end + 1;
}

const char *plain_int(const char *s, int64_t *v)
{
    enum { SURE = 18 }; /* digits that fit */
    const char *from = s;
    for (*v = 0; *s >= '0' && *s <= '9' && s - from < SURE; s++)
        *v = *v * 10 + (*s - '0');
    return s > from && !(*s >= '0' && *s <= '9') ? s : NULL;
}

/* "{2,0,1}" */
static const char *plain_ints(Parser *p, const char *s, Ints *out)
{
    enum { MOST = 32 };
    int64_t v[MOST];
    int32_t n = 0;
    do
        if (n == MOST || !(s = plain_int(s + 1, &v[n++])))
            return NULL;
    while (*s == ',');
    if (*s != '}')
        return NULL;
    *out = ints_copy(p->a, (Ints){v, n});
    return s + 1;
}

int plain_value(Parser *p, int attr, HLO_STYPE *v, Loc *loc, int64_t at)
{
    const char *s = p->buf + at, *end = NULL;
    int         kind = 0;
    if (attr == S_STRING || attr == A_STRING) {
        kind = T_STRING;
        end = plain_string(p, s);
        if (end)
            v->name = intern(p->strings, s + 1, (size_t)(end - s - 2));
    } else if (*s == '{' && attr == A_METADATA) {
        kind = T_METADATA;
        end = meta_plain(p, s, &v->meta);
    } else if (*s == '{') {
        kind = T_INTS;
        end = plain_ints(p, s, &v->list);
    }
    if (!end)
        return 0;
    *loc = (Loc){at, (int32_t)(end - s)};
    return kind;
}
