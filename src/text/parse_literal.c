/* Literals: from the flat list of tokens that the grammar recorded to dense values, checked against the type.
 * Source: reference text 7. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "text/parse_int.h"

#include "ir/numeric.h"

void lit_value(Parser *p, Number x, Loc loc)
{
    const uint64_t quiet = (uint64_t)1 << 51; /* of a double: what nan alone says, in every type */
    LitToken       t = {.off = (uint32_t)loc.off, .negative = x.negative};
    t.has_payload = x.has_payload && !(x.kind == NUM_NAN && x.payload == quiet);
    switch (x.kind) {
    case NUM_INT:
        t.kind = LIT_INT;
        t.i = x.i;
        break;
    case NUM_DECIMAL:
        t.kind = LIT_DECIMAL;
        t.f = x.f;
        break;
    case NUM_NAN:
        t.kind = LIT_NAN;
        t.payload = x.payload;
        break;
    case NUM_INF: t.kind = LIT_INF; break;
    }
    vec_push(p->tmp, &p->lits, t);
}

void lit_mark(Parser *p, LitKind kind, Loc loc)
{
    vec_push(p->tmp, &p->lits, ((LitToken){.kind = (uint8_t)kind, .off = (uint32_t)loc.off}));
}

void lit_dense(Parser *p, Loc loc)
{
    vec_push(p->tmp, &p->lits, ((LitToken){.kind = LIT_DENSE, .off = (uint32_t)loc.off, .dense = p->dense}));
}

/* The tokens of one literal that is being read. */
typedef struct Reader {
    Parser         *p;
    const LitToken *at, *end;
} Reader;

static Loc token_loc(const Reader *r, const LitToken *t)
{
    const Parser *p = r->p;
    if (t == r->end)
        return (Loc){t > p->lits.v ? (int64_t)t[-1].off : 0, 1};
    int64_t end = t->off;
    while (end < (int64_t)p->len && !strchr(" \t\r\n,{}()", p->text[end]))
        end++;
    return (Loc){t->off, end > t->off ? (int32_t)(end - t->off) : 1};
}

static bool fail(const Reader *r, const char *what)
{
    parse_error(r->p, token_loc(r, r->at), "%s", what);
    return false;
}

void lit_put_bits(void *data, int64_t i, int bytes, uint64_t bits)
{
    switch (bytes) {
    case 1: ((uint8_t *)data)[i] = (uint8_t)bits; break;
    case 2: ((uint16_t *)data)[i] = (uint16_t)bits; break;
    case 4: ((uint32_t *)data)[i] = (uint32_t)bits; break;
    default: ((uint64_t *)data)[i] = bits; break;
    }
}

/* ---- single values ---- */

static bool no_integer(const Reader *r, Type t)
{
    Loc loc = token_loc(r, r->at);
    parse_error(r->p, loc, "expected an integer for %s, found %.*s", type_name(t), (int)loc.len, r->p->text + loc.off);
    return false;
}

static bool int_bits(const Reader *r, Type t, uint64_t *bits)
{
    const LitToken *x = r->at;
    if (x->kind != LIT_INT)
        return x->kind == LIT_TRUE || x->kind == LIT_FALSE ? fail(r, "true and false are values of pred alone") : no_integer(r, t);
    int     width = type_bits(t);
    int64_t lo = type_is_signed_int(t) ? (width == 64 ? INT64_MIN : -((int64_t)1 << (width - 1))) : 0;
    int64_t hi = width == 64 ? INT64_MAX : ((int64_t)1 << (type_is_signed_int(t) ? width - 1 : width)) - 1;
    if (width < 64 && (x->i < lo || x->i > hi)) {
        parse_error(r->p, token_loc(r, x), "%lld is out of range for %s: %lld to %lld", (long long)x->i, type_name(t), (long long)lo,
                    (long long)hi);
        return false;
    }
    *bits = (uint64_t)x->i;
    return true;
}

static bool pred_bits(const Reader *r, uint64_t *bits)
{
    const LitToken *x = r->at;
    if (x->kind != LIT_TRUE && x->kind != LIT_FALSE && x->kind != LIT_INT)
        return fail(r, "expected true, false or an integer");
    *bits = x->kind == LIT_TRUE || (x->kind == LIT_INT && x->i != 0);
    return true;
}

/* Formats without NaN keep the sign bit for nan and clear it for -nan, as XLA does. */
static bool nan_bits(const Reader *r, Type t, uint64_t *bits)
{
    const LitToken *x = r->at;
    int             width = nan_payload_bits(t);
    if (x->has_payload && (width == 0 || x->payload >> width)) {
        parse_error(r->p, token_loc(r, x), "the NaN payload does not fit the %d bits that %s has for it", width, type_name(t));
        return false;
    }
    if (type_info[t].specials == SPECIALS_FINITE)
        *bits = x->negative ? 0 : (uint64_t)1 << (type_bits(t) - 1);
    else
        *bits = nan_make(t, x->negative, x->has_payload ? x->payload : 0);
    return true;
}

static bool float_bits(const Reader *r, Type t, uint64_t *bits)
{
    const LitToken *x = r->at;
    double          v;
    switch ((LitKind)x->kind) {
    case LIT_INT: v = (double)x->i; break;
    case LIT_DECIMAL: v = x->f; break;
    case LIT_INF: *bits = float_encode(t, x->negative ? -INFINITY : INFINITY); return true;
    case LIT_NAN: return nan_bits(r, t, bits);
    case LIT_TRUE:
    case LIT_FALSE: return fail(r, "true and false are values of pred alone");
    default: return fail(r, "expected a number");
    }
    *bits = float_convert_from_f64(t, v);
    double back = float_decode(t, *bits);
    if (isfinite(v) && isfinite(back))
        return true;
    Loc loc = token_loc(r, x);
    parse_error(r->p, loc, "%.*s is out of range for %s", (int)loc.len, r->p->text + loc.off, type_name(t));
    return false;
}

/* (re, im). A NaN in the real part fills both; one in the imaginary part of a c64 has the payload of a double and is rounded. */
static bool complex_bits(Reader *r, Type t, uint64_t bits[2])
{
    Type part = type_component(t);
    if (r->at == r->end || r->at->kind != LIT_LPAR)
        return fail(r, "a complex value is written (real, imaginary)");
    r->at++;
    if (r->at == r->end || !float_bits(r, part, &bits[0]))
        return false;
    bool real_nan = r->at->kind == LIT_NAN;
    r->at++;
    if (r->at->kind != LIT_COMMA)
        return fail(r, "expected ',' between the parts of a complex value");
    r->at++;
    if (r->at->kind == LIT_NAN && t == TYPE_C64)
        bits[1] = nan_make(part, r->at->negative, r->at->has_payload ? r->at->payload >> 29 | 1u << 22 : 0);
    else if (!float_bits(r, part, &bits[1]))
        return false;
    if (real_nan)
        bits[1] = bits[0];
    r->at++;
    if (r->at->kind != LIT_RPAR)
        return fail(r, "a complex value has two parts");
    return true;
}

/* The value at r->at becomes element i; r->at stays on its last token. */
static bool put_value(Reader *r, Literal *l, int64_t i)
{
    uint64_t bits[2] = {0, 0};
    Type     t = l->type;
    if (type_is_complex(t)) {
        if (!complex_bits(r, t, bits))
            return false;
        lit_put_bits(l->data, 2 * i, type_bytes(t) / 2, bits[0]);
        lit_put_bits(l->data, 2 * i + 1, type_bytes(t) / 2, bits[1]);
        return true;
    }
    if (!(t == TYPE_PRED ? pred_bits(r, bits) : type_is_float(t) ? float_bits(r, t, bits) : int_bits(r, t, bits)))
        return false;
    lit_put_bits(l->data, i, type_bytes(t), bits[0]);
    return true;
}

/* ---- arrays ---- */

static bool is_value(const LitToken *t, Type type)
{
    return t->kind <= LIT_FALSE || (t->kind == LIT_LPAR && type_is_complex(type));
}

/* One value for the whole array: element 0 gets it, the others are zero. A comma stands for no value: XLA skips it and is done. */
static Literal *scalar_for_array(Reader *r, const Shape *s)
{
    int64_t bytes = shape_bytes(s);
    bool    comma = r->at->kind == LIT_COMMA;
    if (bytes == 0 && !comma) {
        fail(r, "a value for an array without elements");
        return NULL;
    }
    if (bytes < 0 || bytes > (int64_t)1 << 31) {
        fail(r, "an array this large from one value");
        return NULL;
    }
    Literal *l = literal_new_zero(s->type, s->rank, s->dims);
    if (comma || put_value(r, l, 0)) {
        r->at++;
        return l;
    }
    literal_unref(l);
    return NULL;
}

/* The end of the braces that open at r->at, and whether there are dots right inside them; values in between are counted. */
static int64_t count_values(const Reader *r, Type type, bool *dots)
{
    int64_t depth = 0, n = 0;
    *dots = false;
    for (const LitToken *t = r->at; t < r->end; t++) {
        if (t->kind == LIT_OPEN)
            depth++;
        else if (t->kind == LIT_CLOSE && --depth == 0)
            break;
        *dots |= t->kind == LIT_DOTS;
        n += type_is_complex(type) ? t->kind == LIT_LPAR : is_value(t, type);
    }
    return n;
}

static bool too_many(const Reader *r, int64_t size, int32_t level)
{
    parse_error(r->p, token_loc(r, r->at), "more than the %lld elements of dimension %d", (long long)size, level);
    return false;
}

/* Braces at r->at. seen[d]: entries so far at level d. l may be NULL when there are dots: values are then checked for their
 * number only. */
static bool read_braces(Reader *r, const Shape *s, Literal *l, int64_t *seen)
{
    int32_t depth = 0, rank = s->rank;
    int64_t next = 0;
    for (; r->at < r->end; r->at++) {
        const LitToken *t = r->at;
        if (t->kind == LIT_OPEN) {
            if (depth == rank)
                return fail(
                    r, arena_printf(r->p->tmp, "braces deeper than the %d dimension%s of the type", rank, rank == 1 ? "" : "s"));
            if (depth > 0 && ++seen[depth - 1] > s->dims[depth - 1])
                return too_many(r, s->dims[depth - 1], depth - 1);
            seen[depth++] = 0;
        } else if (t->kind == LIT_CLOSE) {
            depth--;
            if (seen[depth] != s->dims[depth]) {
                parse_error(r->p, token_loc(r, t), "dimension %d has %lld elements, found %lld", depth, (long long)s->dims[depth],
                            (long long)seen[depth]);
                return false;
            }
            if (depth == 0) {
                r->at++;
                return true;
            }
        } else if (t->kind == LIT_DOTS) {
            if (depth != 1)
                return fail(r, "'...' stands directly inside the outermost braces");
            seen[0] = s->dims[0];
        } else {
            if (depth < rank)
                return fail(r, arena_printf(r->p->tmp, "a value inside %d level%s of braces, the type has %d dimensions", depth,
                                            depth == 1 ? "" : "s", rank));
            if (++seen[rank - 1] > s->dims[rank - 1])
                return too_many(r, s->dims[rank - 1], rank - 1);
            uint64_t unused[2];
            if (l ? !put_value(r, l, next++) : type_is_complex(s->type) && !complex_bits(r, s->type, unused))
                return false;
        }
    }
    return fail(r, "the braces are not closed");
}

static Literal *read_array(Reader *r, const Shape *s)
{
    if (r->at == r->end) {
        fail(r, "expected a literal");
        return NULL;
    }
    if (r->at->kind == LIT_DENSE)
        return literal_ref(r->at++->dense);
    if (r->at->kind == LIT_COMMA || (is_value(r->at, s->type) && (s->rank == 0 || r->at->kind != LIT_LPAR)))
        return scalar_for_array(r, s);
    if (r->at->kind != LIT_OPEN || s->rank == 0) {
        parse_error(r->p, token_loc(r, r->at), "expected a value of type %s", shape_text(r->p->tmp, s));
        return NULL;
    }
    bool     dots;
    int64_t  written = count_values(r, s->type, &dots), count = shape_count(s);
    bool     plausible = count >= 0 && count <= written; /* else an error comes: nothing is allocated for it */
    if (count < 0 && dots) {
        parse_error(r->p, token_loc(r, r->at), "%s has no number of elements", shape_text(r->p->tmp, s));
        return NULL;
    }
    int64_t *seen = ARENA_ARRAY(r->p->tmp, int64_t, s->rank);
    Literal *l = dots || !plausible ? NULL : literal_new(s->type, s->rank, s->dims);
    if (read_braces(r, s, l, seen))
        return dots ? literal_elided(s) : l;
    literal_unref(l);
    return NULL;
}

/* ---- tuples ---- */

static Literal *read_literal(Reader *r, const Shape **s);

static Literal *fail_tuple(const Reader *r, Literal **v, int32_t n, const char *what)
{
    if (what)
        fail(r, what);
    for (int32_t k = 0; k < n; k++)
        literal_unref(v[k]);
    return NULL;
}

/* () is taken for any tuple and makes one of as many empty tuples; *s is then that type. */
static Literal *empty_elements(Reader *r, const Shape **s)
{
    int32_t       n = (*s)->n_elems;
    Literal     **v = ARENA_ARRAY(r->p->tmp, Literal *, n);
    const Shape **types = ARENA_ARRAY(r->p->tmp, const Shape *, n);
    for (int32_t k = 0; k < n; k++) {
        v[k] = literal_tuple(0, NULL);
        types[k] = shape_tuple(r->p->a, 0, NULL);
    }
    *s = shape_tuple(r->p->a, n, types);
    r->at++;
    return literal_tuple(n, v);
}

static Literal *read_tuple(Reader *r, const Shape **s)
{
    if (r->at == r->end || r->at->kind != LIT_LPAR) {
        fail(r, "a tuple literal is written in parentheses");
        return NULL;
    }
    r->at++;
    if (r->at->kind == LIT_RPAR)
        return empty_elements(r, s);
    int32_t       n = (*s)->n_elems;
    Literal     **v = ARENA_ARRAY(r->p->tmp, Literal *, n);
    const Shape **types = ARENA_ARRAY(r->p->tmp, const Shape *, n);
    for (int32_t k = 0; k < n; k++) {
        if (k > 0 && r->at->kind == LIT_COMMA)
            r->at++;
        if (r->at->kind == LIT_RPAR)
            return fail_tuple(r, v, k, "too few elements for the tuple");
        types[k] = (*s)->elems[k];
        v[k] = read_literal(r, &types[k]);
        if (!v[k])
            return fail_tuple(r, v, k, NULL);
    }
    if (r->at->kind != LIT_RPAR)
        return fail_tuple(r, v, n, "too many elements for the tuple");
    r->at++;
    bool same = true;
    for (int32_t k = 0; k < n; k++)
        same = same && types[k] == (*s)->elems[k];
    if (!same)
        *s = shape_tuple(r->p->a, n, types);
    return literal_tuple(n, v);
}

static Literal *read_literal(Reader *r, const Shape **s)
{
    if (shape_is_tuple(*s))
        return read_tuple(r, s);
    if (!type_is_array((*s)->type) || shape_is_unbounded(*s)) {
        parse_error(r->p, token_loc(r, r->at), "there are no literals of type %s", shape_text(r->p->tmp, *s));
        return NULL;
    }
    return read_array(r, *s);
}

const Literal *literal_parse(Parser *p, const Shape **s, int32_t base)
{
    Reader   r = {p, p->lits.v + base, p->lits.v + p->lits.n};
    Literal *l = read_literal(&r, s);
    if (l && r.at < r.end) {
        fail(&r, "more than one literal");
        literal_unref(l);
        l = NULL;
    }
    p->lits.n = base;
    return l ? literal_keep(p->a, l) : NULL;
}

/* XLA takes layouts without an order, too, but then puts every element into the same place. */
const char *literal_fault(Parser *p, const Shape *s)
{
    for (int32_t k = 0; k < s->n_elems; k++) {
        const char *fault = literal_fault(p, s->elems[k]);
        if (fault)
            return fault;
    }
    return layout_has_no_order(s) ? "no order of the dimensions" : shape_is_tuple(s) ? NULL : layout_fault(p, s);
}

/* ---- literal= of custom-call ---- */

AttrLiteral literal_leaf(Parser *p, const Shape *s, int32_t base, Loc loc)
{
    const char *fault = literal_fault(p, s);
    if (fault)
        parse_error(p, loc, "the type of this literal has a layout with %s", fault);
    s = literal_type(p, s);
    const Literal *l = literal_parse(p, &s, base);
    return (AttrLiteral){s, l};
}

AttrLiteral literal_typed_tuple(Parser *p, const TypedVec *v)
{
    int32_t       n = v ? v->n : 0;
    Literal     **elems = ARENA_ARRAY(p->tmp, Literal *, n);
    const Shape **types = ARENA_ARRAY(p->tmp, const Shape *, n);
    bool          ok = true;
    for (int32_t k = 0; k < n; k++) {
        types[k] = v->v[k].shape;
        ok = ok && v->v[k].value;
    }
    for (int32_t k = 0; k < n && ok; k++)
        elems[k] = literal_ref(v->v[k].value);
    return (AttrLiteral){shape_tuple(p->a, n, types), ok ? literal_keep(p->a, literal_tuple(n, elems)) : NULL};
}
