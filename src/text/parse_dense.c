/* Long constants: braces, commas and plain decimal numbers, which become values as they are read. Tokens would need eight times the
 * memory and ten times the time. Anything else between the braces - nan, inf, words, dots, complex values, comments, a number that
 * the type does not hold, a wrong count - makes dense_read give up without a word, and the same text is read token by token, with
 * messages. So this file takes less than the language, and what it takes means the same. Source: reference text 7. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "text/parse_int.h"

#include "ir/numeric.h"

enum { DENSE_FROM = 64 }; /* elements */

typedef struct Dense {
    const char   *s; /* ends in a NUL, which is in no number */
    const Shape  *shape;
    Literal      *l;
    int64_t      *seen; /* entries so far at each depth */
    int32_t       depth;
    int64_t       next; /* element */
} Dense;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number ends where no other token could go on. */
static bool ends_number(char c)
{
    return c == ',' || c == '}' || c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* digits * 10^exponent, exact when both factors are: then one multiplication or division rounds once, as strtod does. */
static double decimal_value(const char *text, uint64_t digits, int64_t exponent, bool all)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (!all || digits > (uint64_t)1 << 53 || exponent < -22 || exponent > 22)
        return strtod(text, NULL);
    return exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
}

typedef struct Scanned {
    bool     negative, whole; /* whole: no point, no exponent */
    uint64_t digits;          /* without the point */
    double   value;           /* of a number that is not whole, without its sign */
} Scanned;

/* -?D+ and -?D+(.D*)?([eE][+-]?D+)? */
static bool scan_number(Dense *x, Scanned *out)
{
    enum { MOST = 19 }; /* digits that always fit in 64 bits */
    const char *s = x->s;
    int64_t     exponent = 0, n = 0;
    *out = (Scanned){.negative = *s == '-', .whole = true};
    s += out->negative;
    const char *first = s;
    if (!is_digit(*s))
        return false;
    for (; is_digit(*s); s++, n++)
        out->digits = out->digits * 10 + (uint64_t)(*s - '0');
    if (*s == '.')
        for (out->whole = false, s++; is_digit(*s); s++, n++, exponent--)
            out->digits = out->digits * 10 + (uint64_t)(*s - '0');
    if (*s == 'e' || *s == 'E') {
        bool    minus = s[1] == '-';
        int64_t e = 0;
        out->whole = false;
        s += 1 + (s[1] == '-' || s[1] == '+');
        if (!is_digit(*s))
            return false;
        for (; is_digit(*s); s++)
            e = e < 100000 ? e * 10 + (*s - '0') : e;
        exponent += minus ? -e : e;
    }
    if (!ends_number(*s) || (out->whole && n > MOST))
        return false;
    if (!out->whole)
        out->value = decimal_value(first, out->digits, exponent, n <= MOST);
    x->s = s;
    return true;
}

static bool float_value(Type t, const Scanned *n, uint64_t *bits)
{
    double v = n->whole ? (double)n->digits : n->value;
    if (n->whole && n->digits > INT64_MAX)
        return false;
    if (n->negative && (!n->whole || n->digits))
        v = -v; /* the integer -0 is 0 */
    if (t == TYPE_F32) {
        float    f = (float)v;
        uint32_t word;
        memcpy(&word, &f, sizeof word);
        *bits = word;
        return isfinite(f);
    }
    *bits = float_convert_from_f64(t, v);
    return isfinite(float_decode(t, *bits));
}

static bool int_value(Type t, const Scanned *n, uint64_t *bits)
{
    int      width = type_bits(t);
    bool     is_signed = type_is_signed_int(t);
    uint64_t most = width == 64 ? UINT64_MAX : ((uint64_t)1 << (is_signed ? width - 1 : width)) - 1;
    if (width == 64 && n->negative)
        most = (uint64_t)INT64_MAX + 1;
    else if (n->negative)
        most = is_signed ? most + 1 : 0;
    *bits = n->negative ? 0 - n->digits : n->digits;
    return n->whole && n->digits <= most;
}

static bool pred_value(const Scanned *n, uint64_t *bits)
{
    *bits = n->digits != 0;
    return n->whole;
}

static bool put_number(Dense *x)
{
    Type     t = x->shape->type;
    int32_t  last = x->shape->rank - 1;
    Scanned  n;
    uint64_t bits;
    if (x->depth <= last || ++x->seen[last] > x->shape->dims[last] || !scan_number(x, &n))
        return false;
    if (!(t == TYPE_PRED ? pred_value(&n, &bits) : type_is_float(t) ? float_value(t, &n, &bits) : int_value(t, &n, &bits)))
        return false;
    lit_put_bits(x->l->data, x->next++, type_bytes(t), bits);
    return true;
}

static bool open_brace(Dense *x)
{
    if (x->depth == x->shape->rank || (x->depth > 0 && ++x->seen[x->depth - 1] > x->shape->dims[x->depth - 1]))
        return false;
    x->seen[x->depth++] = 0;
    x->s++;
    return true;
}

static bool close_brace(Dense *x)
{
    x->depth--;
    x->s++;
    return x->seen[x->depth] == x->shape->dims[x->depth];
}

/* From the first brace to behind the last one. */
static bool read_values(Dense *x)
{
    do {
        switch (*x->s) {
        case ' ':
        case '\t':
        case '\r':
        case '\n': x->s++; break;
        case ',':
            if (x->depth == 0)
                return false;
            x->s++;
            break;
        case '{':
            if (!open_brace(x))
                return false;
            break;
        case '}':
            if (x->depth == 0 || !close_brace(x))
                return false;
            break;
        default:
            if (!put_number(x))
                return false;
        }
    } while (x->depth > 0 || x->next == 0);
    return true;
}

int64_t dense_read(Parser *p, const Shape *s, int64_t at)
{
    if (!type_is_array(s->type) || type_is_complex(s->type) || s->rank == 0 || shape_is_unbounded(s))
        return -1;
    int64_t count = shape_count(s), left = (int64_t)p->len - at;
    if (count < DENSE_FROM || count > left / 2) /* a value takes two bytes at least: else nothing is allocated */
        return -1;
    Dense x = {.s = p->buf + at, .shape = s, .seen = ARENA_ARRAY(p->tmp, int64_t, s->rank)};
    x.l = literal_new(s->type, s->rank, s->dims);
    if (!read_values(&x)) {
        literal_unref(x.l);
        return -1;
    }
    p->dense = x.l;
    literal_keep(p->tmp, x.l);
    return x.s - p->buf;
}
