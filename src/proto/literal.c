/* Literals in messages: the shape, and the values in one of many fields, in the order that the shape's layout gives. And outside of messages, where
 * XLA writes the length of the shape's message (8 bytes), that message, and for each array of a tuple, depth first,
 *
 *   the sizes of all dimensions, 4 bytes each, if one of them is dynamic
 *   the values in the order that the layout gives, little endian; pred takes a bit, types below 8 bits as many as they have, low ones first, and the
 *   last byte is filled up
 *
 * Source: LiteralBase::SerializeWithShapeProto in XLA's literal.h. */
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

enum { FIELD_SHAPE = 1, FIELD_TUPLE = 10, FIELD_DYNAMIC_SIZES = 34 };

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

static void start_again(Reader *r, Arena *a, const Shape *s)
{
    r->n = 0;
    r->at = positions(a, s);
}

/* Is the values' field one of bytes, of which the last one counts? Of numbers, all are put together. */
static bool is_one_string(Type t)
{
    return values_of[t].encoding == BY_BYTES && t != TYPE_F32 && t != TYPE_F64 && t != TYPE_C64 && t != TYPE_C128;
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

/* Are there, at first sight, enough values? Not more than n bytes can hold, if each takes that many bits. */
static bool is_plausible(Arena *a, const Shape *s, size_t n, int bits, const char *what, Diag *d)
{
    int64_t count = shape_count(s), per_byte = bits < 8 ? 8 / bits : 1;
    if (shape_bytes(s) >= 0 && (uint64_t)(count / per_byte) <= n)
        return true;
    diag_error(d, LOC_NONE, "%s: the literal has fewer values than %s", what, shape_text(a, s));
    return false;
}

/* Where element k of l, which has a size of its own, stands in an array of shape s. */
static int64_t within_bound(const Shape *s, const Literal *l, int64_t k)
{
    int64_t at = 0, stride = 1;
    for (int32_t j = s->rank - 1; j >= 0; j--) {
        at += k % l->dims[j] * stride;
        k /= l->dims[j];
        stride *= s->dims[j];
    }
    return at;
}

/* The part of l that a dynamic shape has at the moment: as many elements of each dimension as sizes say. Takes over l. NULL when they are no sizes of
 * that shape. */
static Literal *cut_to_size(Literal *l, const Shape *s, int32_t n, const int64_t *sizes)
{
    bool fits = n == s->rank;
    for (int32_t k = 0; fits && k < n; k++)
        fits = sizes[k] >= 0 && sizes[k] <= s->dims[k] && (sizes[k] == s->dims[k] || (s->dynamic && s->dynamic[k]));
    Literal *part = fits ? literal_new(s->type, n, sizes) : NULL;
    size_t   size = (size_t)type_bytes(s->type);
    for (int64_t k = 0; part && k < part->count; k++)
        memcpy((char *)part->data + (size_t)k * size, (const char *)l->data + (size_t)within_bound(s, part, k) * size, size);
    literal_unref(l);
    return part;
}

static Literal *decode_array(Arena *a, Bytes m, const Shape *s, const char *what, Diag *d)
{
    /* A value takes a byte of the message at least: a shape that is larger than that is not allocated first. */
    if (!is_plausible(a, s, m.n, 8, what, d))
        return NULL;
    Reader    r = {.l = literal_for_shape(s, true), .at = positions(a, s)};
    WireNumbers sizes = {0};
    WireField f;
    while (!r.error && wire_next(&m, &f)) {
        if (f.number == FIELD_DYNAMIC_SIZES)
            wire_take_numbers(a, &f, &sizes);
        if (f.number != values_of[s->type].field)
            continue;
        if (is_one_string(s->type))
            start_again(&r, a, s);
        read_values(&r, &f);
    }
    if (!r.error && r.n < r.l->count)
        r.error = "it has fewer values than its shape";
    if (!r.error && shape_is_dynamic(s) && sizes.n > 0 && !(r.l = cut_to_size(r.l, s, sizes.n, sizes.v)))
        r.error = "its sizes are none of its shape";
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
        const Shape *own;
        Literal     *l = literal_decode(a, f.bytes, &own, what, d);
        ok = l != NULL;
        if (l)
            vec_push(a, &v, l);
        if (l && (v.n > s->n_elems || !shape_equal(own, s->elems[v.n - 1]))) {
            diag_error(d, LOC_NONE, "%s: element %d of the literal of a tuple has another shape than the tuple says", what, v.n - 1);
            ok = false;
        }
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

/* Are arrays in it as literals are: of whole values, and scalars without padding? */
static bool is_whole(const Shape *s)
{
    for (int32_t k = 0; k < s->n_elems; k++)
        if (!is_whole(s->elems[k]))
            return false;
    return !s->layout || (s->layout->element_bits == 0 && (s->rank > 0 || s->layout->tail_padding == 1));
}

static const Shape *literal_shape_of(Arena *a, Bytes shape, bool in_message, const char *what, Diag *d)
{
    if (!wire_fits(&pb__shape_proto__descriptor, shape, what, d))
        return NULL;
    Pb__ShapeProto *p = shape.n ? pb__shape_proto__unpack(NULL, shape.n, shape.p) : NULL;
    const Shape    *s = p ? shape_decode(a, p, what, d) : NULL;
    const char     *fault = NULL;
    if (!p)
        fault = shape.n ? "the shape of the literal is damaged" : "the literal has no shape";
    else if (s && in_message && !shape_has_layouts(p))
        fault = "the shape of the literal has no layout";
    else if (s && in_message && !is_whole(s))
        fault = "the layout of the literal gives a size of elements or pads a scalar";
    if (p)
        pb__shape_proto__free_unpacked(p, NULL);
    if (!fault)
        return s;
    diag_error(d, LOC_NONE, "%s: %s", what, fault);
    return NULL;
}

Literal *literal_decode(Arena *a, Bytes m, const Shape **shape, const char *what, Diag *d)
{
    const Shape *s = literal_shape_of(a, wire_field(a, m, FIELD_SHAPE), true, what, d);
    if (shape)
        *shape = s;
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

/* ---- reading what is not in messages ---- */

/* 0: the type has no such form. */
static int raw_bits(Type t)
{
    int bits = t == TYPE_PRED ? 1 : type_bits(t);
    return bits >= 8 || 8 % bits == 0 ? bits : 0;
}

static void read_bits(Reader *r, Bytes b, int bits)
{
    int per_byte = 8 / bits;
    for (int64_t k = 0; k < r->l->count; k++) {
        unsigned v = (unsigned)b.p[k / per_byte] >> (k % per_byte * bits) & ((1u << bits) - 1);
        ((uint8_t *)r->l->data)[positions_next(&r->at)] = widen(r->l->type, (uint8_t)v);
    }
    r->n = r->l->count;
}

static bool take_sizes(Arena *a, Bytes *rest, const Shape *s, int64_t *sizes)
{
    enum { SIZE = 4 };
    Bytes one;
    for (int32_t k = 0; k < s->rank; k++) {
        if (!wire_take(rest, SIZE, &one))
            return false;
        sizes[k] = (int32_t)wire_little_endian(one);
    }
    return true;
}

static Literal *raw_array(Arena *a, Bytes *rest, const Shape *s, const char *what, Diag *d)
{
    int      bits = raw_bits(s->type);
    int64_t *sizes = shape_is_dynamic(s) ? ARENA_ARRAY(a, int64_t, s->rank) : NULL;
    Bytes    values;
    if (bits == 0) {
        diag_error(d, LOC_NONE, "%s: a literal of %s has no form outside of messages", what, shape_text(a, s));
        return NULL;
    }
    if (!is_plausible(a, s, rest->n, bits, what, d))
        return NULL;
    int64_t n = bits < 8 ? (shape_count(s) + 8 / bits - 1) / (8 / bits) : shape_bytes(s);
    if ((sizes && !take_sizes(a, rest, s, sizes)) || !wire_take(rest, (uint64_t)n, &values)) {
        diag_error(d, LOC_NONE, "%s: the literal has fewer values than %s", what, shape_text(a, s));
        return NULL;
    }
    Reader r = {.l = literal_for_shape(s, false), .at = positions(a, s)};
    if (bits < 8)
        read_bits(&r, values, bits);
    else
        read_bytes(&r, values);
    if (sizes && !(r.l = cut_to_size(r.l, s, s->rank, sizes)))
        diag_error(d, LOC_NONE, "%s: the sizes of the literal are none of %s", what, shape_text(a, s));
    return r.l;
}

static Literal *raw_literal(Arena *a, Bytes *rest, const Shape *s, const char *what, Diag *d)
{
    if (shape_is_array(s))
        return raw_array(a, rest, s, what, d);
    if (!shape_is_tuple(s)) {
        diag_error(d, LOC_NONE, "%s: a literal of %s has no form outside of messages", what, shape_text(a, s));
        return NULL;
    }
    Literal **elems = ARENA_ARRAY(a, Literal *, s->n_elems);
    for (int32_t k = 0; k < s->n_elems; k++) {
        if ((elems[k] = raw_literal(a, rest, s->elems[k], what, d)))
            continue;
        while (k-- > 0)
            literal_unref(elems[k]);
        return NULL;
    }
    return literal_tuple(s->n_elems, elems);
}

Literal *literal_decode_raw(Arena *a, Bytes bytes, const char *what, Diag *d)
{
    enum { LENGTH = 8 };
    Bytes       length, shape;
    WireUnknown unknown = {0};
    if (!wire_take(&bytes, LENGTH, &length) || !wire_take(&bytes, wire_little_endian(length), &shape)) {
        diag_error(d, LOC_NONE, "%s: the shape of the literal is cut off", what);
        return NULL;
    }
    bool         tidy = wire_tidy(a, &pb__shape_proto__descriptor, &shape, shape, what, &unknown, d);
    const Shape *s = tidy ? literal_shape_of(a, shape, false, what, d) : NULL;
    Literal     *l = s ? raw_literal(a, &bytes, s, what, d) : NULL;
    if (!l || bytes.n == 0)
        return l;
    diag_error(d, LOC_NONE, "%s: %zu bytes stand behind the values of the literal", what, bytes.n);
    literal_unref(l);
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

/* Of a shape with dynamic dimensions there are always as many values as it can have, and the sizes besides. */
static const Literal *to_bound(Arena *a, const Literal *l, const Shape *s)
{
    if (!shape_is_dynamic(s) || memcmp(l->dims, s->dims, (size_t)s->rank * sizeof *s->dims) == 0)
        return l;
    Literal *whole = literal_new(s->type, s->rank, s->dims);
    size_t   size = (size_t)type_bytes(s->type);
    for (int64_t k = 0; k < l->count; k++)
        memcpy((char *)whole->data + (size_t)within_bound(s, l, k) * size, (const char *)l->data + (size_t)k * size, size);
    return literal_keep(a, whole);
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
        return n;
    }
    const Literal *whole = shape_is_array(s) ? to_bound(a, l, s) : l;
    if (shape_is_array(s) && whole->count > 0)
        n += field_size(values_of[l->type].field, values_size(whole));
    if (shape_is_array(s) && shape_is_dynamic(s)) {
        uint64_t sizes = 0;
        for (int32_t k = 0; k < l->rank; k++)
            sizes += wire_varint_size((uint64_t)l->dims[k]);
        n += field_size(FIELD_DYNAMIC_SIZES, sizes);
    }
    return n;
}

static void put_sizes(Buf *b, const Literal *l)
{
    Buf packed = {0};
    for (int32_t k = 0; k < l->rank; k++)
        wire_put_varint(&packed, (uint64_t)l->dims[k]);
    wire_put_bytes(b, FIELD_DYNAMIC_SIZES, packed.p, packed.n);
    buf_free(&packed);
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
        return;
    }
    const Literal *whole = shape_is_array(s) ? to_bound(a, l, s) : l;
    if (shape_is_array(s) && whole->count > 0)
        put_values(b, a, whole, s);
    if (shape_is_array(s) && shape_is_dynamic(s))
        put_sizes(b, l);
}

/* ---- writing what is not in messages ---- */

static void put_little_endian(Buf *b, uint64_t x, int bytes)
{
    for (int k = 0; k < bytes; k++)
        buf_putc(b, (char)(x >> 8 * k));
}

/* Several values a byte, the first in the low bits. */
static void put_bits(Buf *b, const Literal *l, Positions *at, int bits)
{
    int      per_byte = 8 / bits;
    unsigned byte = 0;
    for (int64_t k = 0; k < l->count; k++) {
        byte |= (((const uint8_t *)l->data)[positions_next(at)] & ((1u << bits) - 1)) << (k % per_byte * bits);
        if (k % per_byte == per_byte - 1 || k + 1 == l->count) {
            buf_putc(b, (char)byte);
            byte = 0;
        }
    }
}

static bool put_raw(Buf *b, Arena *a, const Literal *l, const Shape *s, const char *what, Diag *d)
{
    enum { SIZE = 4 };
    bool good = true;
    for (int32_t k = 0; shape_is_tuple(s) && k < s->n_elems; k++)
        good = good && put_raw(b, a, l->elems[k], s->elems[k], what, d);
    if (shape_is_tuple(s))
        return good;
    int bits = shape_is_array(s) ? raw_bits(s->type) : 0;
    if (bits == 0) {
        diag_error(d, LOC_NONE, "%s: a literal of %s has no form outside of messages", what, shape_text(a, s));
        return false;
    }
    for (int32_t k = 0; shape_is_dynamic(s) && k < s->rank; k++)
        put_little_endian(b, (uint64_t)l->dims[k], SIZE);
    const Literal *whole = to_bound(a, l, s);
    Positions      at = positions(a, s);
    size_t         size = (size_t)type_bytes(s->type);
    if (bits < 8)
        put_bits(b, whole, &at, bits);
    else
        for (int64_t k = 0; k < whole->count; k++)
            buf_put(b, (const char *)whole->data + (size_t)positions_next(&at) * size, size);
    return true;
}

bool literal_encode_raw(Buf *b, const Literal *l, const Shape *s, const char *what, Diag *d)
{
    enum { LENGTH = 8 };
    Arena          *a = d->arena;
    Pb__ShapeProto *shape = shape_encode(a, s);
    put_little_endian(b, pb__shape_proto__get_packed_size(shape), LENGTH);
    uint8_t *packed = arena_alloc(a, pb__shape_proto__get_packed_size(shape));
    buf_put(b, packed, pb__shape_proto__pack(shape, packed));
    return put_raw(b, a, l, s, what, d);
}
