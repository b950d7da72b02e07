/* Literals in messages: the shape, and the values in one of many fields, in the order that the shape's layout gives. */
#include "config.h"

#include <string.h>

#include "proto/proto_int.h"

/* How the values of a type are written: varints (bools, signed numbers with 64 bits, unsigned), numbers as they are in memory inside one
 * packed field, or bytes, which look the same on the wire. Values below 8 bits take a byte each, without the bits above. */
typedef enum { BY_BYTES, BY_UNSIGNED, BY_SIGNED } Encoding;

static const struct {
    uint32_t field;
    Encoding encoding;
} values_of[TYPE_COUNT] = {
    [TYPE_PRED] = {2, BY_UNSIGNED}, [TYPE_S1] = {30, BY_BYTES}, [TYPE_S2] = {26, BY_BYTES}, [TYPE_S4] = {21, BY_BYTES},
    [TYPE_S8] = {15, BY_BYTES}, [TYPE_S16] = {17, BY_BYTES}, [TYPE_S32] = {4, BY_SIGNED}, [TYPE_S64] = {5, BY_SIGNED},
    [TYPE_U1] = {31, BY_BYTES}, [TYPE_U2] = {27, BY_BYTES}, [TYPE_U4] = {22, BY_BYTES}, [TYPE_U8] = {3, BY_BYTES},
    [TYPE_U16] = {16, BY_BYTES}, [TYPE_U32] = {6, BY_UNSIGNED}, [TYPE_U64] = {7, BY_UNSIGNED}, [TYPE_F4E2M1FN] = {32, BY_BYTES},
    [TYPE_F6E2M3FN] = {36, BY_BYTES}, [TYPE_F6E3M2FN] = {35, BY_BYTES}, [TYPE_F8E3M4] = {29, BY_BYTES}, [TYPE_F8E4M3] = {28, BY_BYTES},
    [TYPE_F8E4M3FN] = {20, BY_BYTES}, [TYPE_F8E4M3B11FNUZ] = {23, BY_BYTES}, [TYPE_F8E4M3FNUZ] = {25, BY_BYTES},
    [TYPE_F8E5M2] = {19, BY_BYTES}, [TYPE_F8E5M2FNUZ] = {24, BY_BYTES}, [TYPE_F8E8M0FNU] = {33, BY_BYTES}, [TYPE_F16] = {11, BY_BYTES},
    [TYPE_BF16] = {13, BY_BYTES}, [TYPE_F32] = {8, BY_BYTES}, [TYPE_F64] = {9, BY_BYTES}, [TYPE_C64] = {12, BY_BYTES},
    [TYPE_C128] = {18, BY_BYTES},
};

enum { FIELD_SHAPE = 1, FIELD_TUPLE = 10 };

/* Positions in the order of a layout: offset(next) is the row-major position of the next value in memory. */
typedef struct Positions {
    const Shape *s;
    bool         row_major;
    int64_t      at, *index, *stride; /* by minor_to_major */
} Positions;

static Positions positions(Arena *a, const Shape *s)
{
    Positions p = {.s = s, .row_major = layout_is_row_major(s)};
    p.index = ARENA_ARRAY(a, int64_t, s->rank);
    p.stride = ARENA_ARRAY(a, int64_t, s->rank);
    int64_t stride = 1;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        for (int32_t k = 0; k < s->rank; k++)
            if (layout_dim(s, k) == d)
                p.stride[k] = stride;
        stride *= s->dims[d];
    }
    return p;
}

static int64_t positions_next(Positions *p)
{
    int64_t now = p->at;
    if (p->row_major) {
        p->at++;
        return now;
    }
    for (int32_t k = 0; k < p->s->rank; k++) {
        p->at += p->stride[k];
        if (++p->index[k] < p->s->dims[layout_dim(p->s, k)])
            break;
        p->at -= p->stride[k] * p->index[k];
        p->index[k] = 0;
    }
    return now;
}

/* Can the values be walked in the order of this layout? */
static bool layout_is_permutation(Arena *a, const Shape *s)
{
    Ints  x = s->layout ? s->layout->minor_to_major : ints_iota(a, s->rank);
    int32_t rank = s->rank;
    bool   *seen = ARENA_ARRAY(a, bool, rank);
    for (int32_t k = 0; k < x.n; k++) {
        if (x.v[k] < 0 || x.v[k] >= rank || seen[x.v[k]])
            return false;
        seen[x.v[k]] = true;
    }
    return x.n == rank;
}

/* ---- reading ---- */

typedef struct Reader {
    Literal    *l;
    Positions   at;
    int64_t     n; /* values read */
    const char *error;
} Reader;

/* The bits that a value of the type has in memory, from those on the wire. */
static uint8_t widen(Type t, uint8_t x)
{
    int      bits = type_bits(t);
    unsigned v = bits < 8 ? x & ((1u << bits) - 1) : x;
    return (uint8_t)(type_is_signed_int(t) && bits < 8 && v >> (bits - 1) ? v | 0xffu << bits : v);
}

static bool room(Reader *r, int64_t more)
{
    if (more > r->l->count - r->n) {
        r->error = "it has more values than its shape";
        return false;
    }
    return true;
}

static bool read_bytes(Reader *r, Bytes b)
{
    size_t size = (size_t)type_bytes(r->l->type);
    char  *to = r->l->data;
    if (b.n % size != 0) {
        r->error = "a part of a value is missing";
        return false;
    }
    int64_t n = (int64_t)(b.n / size);
    if (!room(r, n))
        return false;
    if (type_bits(r->l->type) < 8) {
        for (int64_t k = 0; k < n; k++)
            to[positions_next(&r->at)] = (char)widen(r->l->type, b.p[k]);
    } else if (r->at.row_major) {
        memcpy(to + (size_t)r->n * size, b.p, b.n);
        r->at.at += n;
    } else {
        for (int64_t k = 0; k < n; k++)
            memcpy(to + (size_t)positions_next(&r->at) * size, b.p + (size_t)k * size, size);
    }
    r->n += n;
    return true;
}

static void put_integer(Reader *r, uint64_t v)
{
    int64_t k = positions_next(&r->at);
    switch (type_bytes(r->l->type)) {
    case 1: ((uint8_t *)r->l->data)[k] = v != 0; break;
    case 4: ((uint32_t *)r->l->data)[k] = (uint32_t)v; break;
    default: ((uint64_t *)r->l->data)[k] = v; break;
    }
    r->n++;
}

/* Packed or, as old writers do, one by one. */
static bool read_values(Reader *r, const WireField *f)
{
    if (values_of[r->l->type].encoding == BY_BYTES)
        return read_bytes(r, f->bytes);
    if (f->type == WIRE_VARINT) {
        if (!room(r, 1))
            return false;
        put_integer(r, f->value);
        return true;
    }
    Bytes rest = f->bytes;
    while (rest.n > 0) {
        uint64_t v;
        if (!wire_varint(&rest, &v)) {
            r->error = "a part of a value is missing";
            return false;
        }
        if (!room(r, 1))
            return false;
        put_integer(r, v);
    }
    return true;
}

static Literal *decode_array(Arena *a, Bytes m, const Shape *s, const char *what, Diag *d)
{
    /* A value takes a byte of the message at least: a shape that is larger than that is not allocated first. */
    if (shape_bytes(s) < 0 || (uint64_t)shape_count(s) > m.n) {
        diag_error(d, LOC_NONE, "%s: the literal has fewer values than %s", what, shape_text(a, s));
        return NULL;
    }
    if (!layout_is_permutation(a, s)) {
        diag_error(d, LOC_NONE, "%s: the layout of the literal does not name each dimension once", what);
        return NULL;
    }
    Reader    r = {.l = literal_for_shape(s, true), .at = positions(a, s)};
    WireField f;
    while (!r.error && wire_next(&m, &f))
        if (f.number == values_of[s->type].field)
            read_values(&r, &f);
    if (!r.error && r.n < r.l->count)
        r.error = "it has fewer values than its shape";
    if (!r.error)
        return r.l;
    diag_error(d, LOC_NONE, "%s: a literal of %s: %s", what, shape_text(a, s), r.error);
    literal_unref(r.l);
    return NULL;
}

static Literal *decode_tuple(Arena *a, Bytes m, const Shape *s, const char *what, Diag *d)
{
    VEC(Literal *) v = {0};
    WireField f;
    bool      ok = true;
    while (ok && wire_next(&m, &f)) {
        if (f.number != FIELD_TUPLE)
            continue;
        Literal *l = literal_decode(a, f.bytes, what, d);
        ok = l != NULL;
        if (l)
            vec_push(a, &v, l);
    }
    if (ok && v.n != s->n_elems) {
        diag_error(d, LOC_NONE, "%s: the literal of a tuple has %d elements, its shape %d", what, v.n, s->n_elems);
        ok = false;
    }
    if (ok)
        return literal_tuple(v.n, v.v);
    for (int32_t k = 0; k < v.n; k++)
        literal_unref(v.v[k]);
    return NULL;
}

/* The shape alone. */
static const Shape *literal_shape_of(Arena *a, Bytes m, const char *what, Diag *d)
{
    WireField f;
    while (wire_next(&m, &f)) {
        if (f.number != FIELD_SHAPE)
            continue;
        Pb__ShapeProto *p = pb__shape_proto__unpack(NULL, f.bytes.n, f.bytes.p);
        const Shape    *s = p ? shape_decode(a, p, what, d) : NULL;
        if (!p)
            diag_error(d, LOC_NONE, "%s: the shape of the literal is damaged", what);
        else
            pb__shape_proto__free_unpacked(p, NULL);
        return s;
    }
    diag_error(d, LOC_NONE, "%s: the literal has no shape", what);
    return NULL;
}

Literal *literal_decode(Arena *a, Bytes m, const char *what, Diag *d)
{
    const Shape *s = literal_shape_of(a, m, what, d);
    if (!s)
        return NULL;
    if (shape_is_tuple(s))
        return decode_tuple(a, m, s, what, d);
    if (s->type == TYPE_TOKEN)
        return literal_token();
    if (shape_is_array(s))
        return decode_array(a, m, s, what, d);
    diag_error(d, LOC_NONE, "%s: a literal cannot have the type %s", what, shape_text(a, s));
    return NULL;
}

/* ---- writing ---- */

static uint64_t integer_at(const Literal *l, int64_t k)
{
    switch (type_bytes(l->type)) {
    case 1: return ((const uint8_t *)l->data)[k] != 0;
    case 4:
        return l->type == TYPE_S32 ? (uint64_t)(int64_t)((const int32_t *)l->data)[k] : ((const uint32_t *)l->data)[k];
    default: return ((const uint64_t *)l->data)[k];
    }
}

static uint64_t values_size(const Literal *l)
{
    if (values_of[l->type].encoding == BY_BYTES)
        return (uint64_t)literal_bytes(l);
    uint64_t n = 0;
    for (int64_t k = 0; k < l->count; k++)
        n += wire_varint_size(integer_at(l, k));
    return n;
}

static void put_value(Buf *b, const Literal *l, int64_t k)
{
    size_t size = (size_t)type_bytes(l->type);
    int    bits = type_bits(l->type);
    if (values_of[l->type].encoding != BY_BYTES)
        wire_put_varint(b, integer_at(l, k));
    else if (bits < 8)
        buf_putc(b, (char)(((const uint8_t *)l->data)[k] & ((1u << bits) - 1)));
    else
        buf_put(b, (const char *)l->data + (size_t)k * size, size);
}

static void put_values(Buf *b, Arena *a, const Literal *l, const Shape *s)
{
    Positions at = positions(a, s);
    wire_put_tag(b, values_of[l->type].field, WIRE_BYTES);
    wire_put_varint(b, values_size(l));
    if (at.row_major && values_of[l->type].encoding == BY_BYTES && type_bits(l->type) >= 8) {
        buf_put(b, l->data, (size_t)literal_bytes(l));
        return;
    }
    for (int64_t k = 0; k < l->count; k++)
        put_value(b, l, positions_next(&at));
}

static size_t field_size(uint32_t number, uint64_t n)
{
    return wire_varint_size((uint64_t)number << 3) + wire_varint_size(n) + n;
}

static size_t message_size(Arena *a, const Literal *l, const Shape *s)
{
    size_t n = field_size(FIELD_SHAPE, pb__shape_proto__get_packed_size(shape_encode(a, s)));
    if (shape_is_tuple(s)) {
        for (int32_t k = 0; k < s->n_elems; k++)
            n += field_size(FIELD_TUPLE, message_size(a, l->elems[k], s->elems[k]));
    } else if (shape_is_array(s) && l->count > 0) {
        n += field_size(values_of[l->type].field, values_size(l));
    }
    return n;
}

/* Fields stand in the order of their numbers. */
void literal_encode(Buf *b, uint32_t number, Arena *a, const Literal *l, const Shape *s)
{
    wire_put_tag(b, number, WIRE_BYTES);
    wire_put_varint(b, message_size(a, l, s));
    wire_put_message(b, FIELD_SHAPE, &shape_encode(a, s)->base);
    if (shape_is_tuple(s)) {
        for (int32_t k = 0; k < s->n_elems; k++)
            literal_encode(b, FIELD_TUPLE, a, l->elems[k], s->elems[k]);
    } else if (shape_is_array(s) && l->count > 0) {
        put_values(b, a, l, s);
    }
}
