/* Fields in, fields out. Nothing here knows HLO. */
#include "config.h"

#include "proto/wire.h"

#include <string.h>

#include "support/host.h"

bool wire_varint(Bytes *r, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 70 && r->n > 0; shift += 7) {
        uint8_t x = *r->p++;
        r->n--;
        if (shift < 64)
            *v |= (uint64_t)(x & 0x7f) << shift;
        if (x < 0x80)
            return true;
    }
    return false;
}

bool wire_take(Bytes *r, uint64_t n, Bytes *out)
{
    if (n > r->n)
        return false;
    *out = (Bytes){r->p, (size_t)n};
    r->p += n;
    r->n -= (size_t)n;
    return true;
}

uint64_t wire_little_endian(Bytes b)
{
    uint64_t v = 0;
    for (size_t k = 0; k < b.n; k++)
        v |= (uint64_t)b.p[k] << (8 * k);
    return v;
}

static bool take_value(Bytes *r, WireField *f)
{
    uint64_t n;
    switch (f->type) {
    case WIRE_VARINT: return wire_varint(r, &f->value);
    case WIRE_BYTES: return wire_varint(r, &n) && wire_take(r, n, &f->bytes);
    case WIRE_FIXED64:
    case WIRE_FIXED32:
        if (!wire_take(r, f->type == WIRE_FIXED64 ? 8 : 4, &f->bytes))
            return false;
        f->value = wire_little_endian(f->bytes);
        return true;
    default: return false; /* groups ended with proto2 */
    }
}

bool wire_next(Bytes *rest, WireField *f)
{
    Bytes    r = *rest;
    uint64_t tag;
    if (r.n == 0 || !wire_varint(&r, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return false;
    *f = (WireField){.number = (uint32_t)(tag >> 3), .type = (int)(tag & 7)};
    if (!take_value(&r, f))
        return false;
    f->whole = (Bytes){rest->p, rest->n - r.n};
    *rest = r;
    return true;
}

void wire_take_numbers(Arena *a, const WireField *f, WireNumbers *v)
{
    Bytes    packed = f->bytes;
    uint64_t x;
    if (f->type == WIRE_VARINT)
        vec_push(a, v, (int64_t)f->value);
    while (f->type == WIRE_BYTES && wire_varint(&packed, &x))
        vec_push(a, v, (int64_t)x);
}

static bool is_piece(const WireField *f, uint32_t number)
{
    return f->number == number && f->type == WIRE_BYTES && f->bytes.n > 0;
}

Bytes wire_field(Arena *a, Bytes message, uint32_t number)
{
    WireField f;
    Bytes     r = message, one = {0};
    size_t    n = 0, pieces = 0;
    while (wire_next(&r, &f))
        if (is_piece(&f, number)) {
            one = f.bytes;
            n += one.n;
            pieces++;
        }
    if (pieces < 2)
        return one;
    uint8_t *all = arena_alloc(a, n), *to = all;
    while (wire_next(&message, &f))
        if (is_piece(&f, number)) {
            memcpy(to, f.bytes.p, f.bytes.n);
            to += f.bytes.n;
        }
    return (Bytes){all, n};
}

bool wire_split(Arena *a, Bytes message, uint32_t cut, Buf *others, BytesVec *v)
{
    WireField f;
    while (wire_next(&message, &f)) {
        if (f.number != cut)
            buf_put(others, f.whole.p, f.whole.n);
        else if (f.type == WIRE_BYTES)
            vec_push(a, v, f.bytes);
        else
            return false;
    }
    return message.n == 0;
}

/* ---- checking ---- */

typedef struct Check {
    int64_t      memory, limit; /* what unpacking would allocate */
    WireUnknown *unknown;
    const char  *error;
} Check;

static bool fits_wire_type(const ProtobufCFieldDescriptor *f, const WireField *w)
{
    bool packed = f->label == PROTOBUF_C_LABEL_REPEATED && w->type == WIRE_BYTES;
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES: return w->type == WIRE_BYTES;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32: return packed || w->type == WIRE_FIXED32;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64: return packed || w->type == WIRE_FIXED64;
    default: return packed || w->type == WIRE_VARINT;
    }
}

/* What the bytes of a field become, besides the field itself: packed varints may be a byte each. */
static int64_t bytes_unpacked(const ProtobufCFieldDescriptor *f, const WireField *w)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE: return 0; /* its fields are counted */
    case PROTOBUF_C_TYPE_STRING: case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_FLOAT: case PROTOBUF_C_TYPE_FIXED32: case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_DOUBLE: case PROTOBUF_C_TYPE_FIXED64: case PROTOBUF_C_TYPE_SFIXED64: return (int64_t)w->bytes.n;
    default: return (int64_t)w->bytes.n * 8;
    }
}

static bool check_message(Check *c, const ProtobufCMessageDescriptor *desc, Bytes m, int depth)
{
    enum { SLOT = 8 }; /* of a repeated field */
    WireField f;
    if (depth > WIRE_DEPTH) {
        c->error = "messages are nested too deeply";
        return false;
    }
    c->memory += (int64_t)desc->sizeof_message + 2 * SLOT;
    while (wire_next(&m, &f)) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(desc, f.number);
        c->memory += (field && f.type == WIRE_BYTES ? bytes_unpacked(field, &f) : 0) + 4 * SLOT;
        if (!field) {
            if (c->unknown->count++ == 0)
                *c->unknown = (WireUnknown){1, f.number, desc->short_name};
        } else if (!fits_wire_type(field, &f)) {
            c->error = "a field has a value of the wrong kind";
            return false;
        } else if (field->type == PROTOBUF_C_TYPE_MESSAGE && !check_message(c, field->descriptor, f.bytes, depth + 1))
            return false;
        if (c->memory > c->limit) {
            c->error = "it would take more memory than there is";
            return false;
        }
    }
    if (m.n > 0)
        c->error = "it is cut off or damaged";
    return m.n == 0;
}

bool wire_check(const ProtobufCMessageDescriptor *desc, Bytes message, const char *what, WireUnknown *unknown, Diag *d)
{
    Check c = {.limit = host_memory(), .unknown = unknown};
    if (check_message(&c, desc, message, 0))
        return true;
    diag_error(d, LOC_NONE, "%s: %s", what, c.error);
    return false;
}

/* ---- writing ---- */

size_t wire_varint_size(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

void wire_put_varint(Buf *b, uint64_t v)
{
    uint8_t x[10];
    size_t  n = 0;
    for (; v >= 0x80; v >>= 7)
        x[n++] = (uint8_t)(v | 0x80);
    x[n++] = (uint8_t)v;
    buf_put(b, x, n);
}

void wire_put_tag(Buf *b, uint32_t number, int type)
{
    wire_put_varint(b, (uint64_t)number << 3 | (uint64_t)type);
}

void wire_put_bytes(Buf *b, uint32_t number, const void *p, size_t n)
{
    wire_put_tag(b, number, WIRE_BYTES);
    wire_put_varint(b, n);
    buf_put(b, p, n);
}

typedef struct BufSink {
    ProtobufCBuffer base;
    Buf            *b;
} BufSink;

static void append(ProtobufCBuffer *to, size_t n, const uint8_t *p)
{
    buf_put(((BufSink *)to)->b, p, n);
}

void wire_put_message(Buf *b, uint32_t number, const ProtobufCMessage *m)
{
    BufSink sink = {{append}, b};
    if (number) {
        wire_put_tag(b, number, WIRE_BYTES);
        wire_put_varint(b, protobuf_c_message_get_packed_size(m));
    }
    protobuf_c_message_pack_to_buffer(m, &sink.base);
}
