/* Fields in, fields out. Nothing here knows HLO. */
#include "config.h"

#include "proto/wire.h"

#include <string.h>

#include "support/host.h"

enum { WIRE_GROUP_END = 4, GROUP_DEPTH = 100 /* protobuf's own limit */ };

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

static bool take_value(Bytes *r, WireField *f, int depth);

/* What stands before the end of the group with that number, and the end. */
static bool skip_group(Bytes *r, uint32_t number, int depth)
{
    uint64_t tag;
    while (depth < GROUP_DEPTH && r->n > 0 && wire_varint(r, &tag) && tag >> 3 != 0 && tag >> 3 <= 0x1fffffff) {
        WireField f = {.number = (uint32_t)(tag >> 3), .type = (int)(tag & 7)};
        if (f.type == WIRE_GROUP_END)
            return f.number == number;
        if (!take_value(r, &f, depth + 1))
            return false;
    }
    return false;
}

static bool take_value(Bytes *r, WireField *f, int depth)
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
    case WIRE_GROUP: return skip_group(r, f->number, depth); /* of proto2; no message here has one */
    default: return false;
    }
}

bool wire_next(Bytes *rest, WireField *f)
{
    Bytes    r = *rest;
    uint64_t tag;
    if (r.n == 0 || !wire_varint(&r, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return false;
    *f = (WireField){.number = (uint32_t)(tag >> 3), .type = (int)(tag & 7)};
    if (!take_value(&r, f, 0))
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

static bool is_integer(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE: case PROTOBUF_C_TYPE_STRING: case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_FLOAT: case PROTOBUF_C_TYPE_FIXED32: case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_DOUBLE: case PROTOBUF_C_TYPE_FIXED64: case PROTOBUF_C_TYPE_SFIXED64: return false;
    default: return true;
    }
}

/* Bytes that a number of the field takes in a packed one; 0: they vary, or it has no numbers. */
static size_t number_size(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_FLOAT: case PROTOBUF_C_TYPE_FIXED32: case PROTOBUF_C_TYPE_SFIXED32: return 4;
    case PROTOBUF_C_TYPE_DOUBLE: case PROTOBUF_C_TYPE_FIXED64: case PROTOBUF_C_TYPE_SFIXED64: return 8;
    default: return 0;
    }
}

static bool fits_wire_type(const ProtobufCFieldDescriptor *f, const WireField *w)
{
    bool   has_numbers = is_integer(f) || number_size(f) > 0;
    bool   packed = has_numbers && f->label == PROTOBUF_C_LABEL_REPEATED && w->type == WIRE_BYTES;
    size_t size = number_size(f);
    if (!has_numbers)
        return w->type == WIRE_BYTES;
    return packed || w->type == (size == 4 ? WIRE_FIXED32 : size == 8 ? WIRE_FIXED64 : WIRE_VARINT);
}

static bool is_packed_well(const ProtobufCFieldDescriptor *f, Bytes b)
{
    uint64_t v;
    size_t   size = number_size(f);
    if (size > 0)
        return b.n % size == 0;
    while (b.n > 0)
        if (!wire_varint(&b, &v))
            return false;
    return true;
}

/* Length of the character at p, which has at most n bytes; 0: it is none. Source: table 3-7 of the Unicode standard. */
static size_t utf8_length(const uint8_t *p, size_t n)
{
    size_t  length = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    uint8_t low = *p == 0xe0 ? 0xa0 : *p == 0xf0 ? 0x90 : 0x80, high = *p == 0xed ? 0x9f : *p == 0xf4 ? 0x8f : 0xbf;
    if (length > n)
        return 0;
    for (size_t k = 1; k < length; k++) {
        if (p[k] < low || p[k] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

static bool is_utf8(Bytes b)
{
    for (size_t at = 0, n; at < b.n; at += n)
        if ((n = utf8_length(b.p + at, b.n - at)) == 0)
            return false;
    return true;
}

typedef struct Tidy {
    bool         strays; /* fields that protobuf-c would not take */
    WireUnknown *unknown;
    const char  *error, *field, *message; /* field: its name, NULL: of none */
    const uint8_t *at;
} Tidy;

static bool tidy_fault(Tidy *t, const char *error, const char *field, const ProtobufCMessageDescriptor *desc, const uint8_t *at)
{
    t->error = error;
    t->field = field;
    t->message = desc->short_name;
    t->at = at;
    return false;
}

static bool check_message(Tidy *t, const ProtobufCMessageDescriptor *desc, Bytes m, int depth)
{
    WireField f;
    if (depth > WIRE_DEPTH)
        return tidy_fault(t, "messages are nested too deeply", NULL, desc, m.p);
    while (wire_next(&m, &f)) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(desc, f.number);
        if (!field || !fits_wire_type(field, &f)) {
            if (t->unknown->count++ == 0)
                *t->unknown = (WireUnknown){1, f.number, desc->short_name};
            t->strays |= field || f.type == WIRE_GROUP;
        } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            if (!check_message(t, field->descriptor, f.bytes, depth + 1))
                return false;
        } else if (field->type == PROTOBUF_C_TYPE_STRING && !is_utf8(f.bytes)) {
            return tidy_fault(t, "it is no UTF-8", field->name, desc, f.whole.p);
        } else if (field->type == PROTOBUF_C_TYPE_STRING && f.bytes.n && memchr(f.bytes.p, 0, f.bytes.n)) {
            return tidy_fault(t, "it has a zero byte, which is not supported", field->name, desc, f.whole.p);
        } else if (f.type == WIRE_BYTES && field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_BYTES &&
                   !is_packed_well(field, f.bytes)) {
            return tidy_fault(t, "a number in it is cut off", field->name, desc, f.whole.p);
        }
    }
    return m.n == 0 || tidy_fault(t, "it is cut off or damaged", NULL, desc, m.p);
}

/* m without strays. */
static void copy_known(Buf *out, const ProtobufCMessageDescriptor *desc, Bytes m)
{
    WireField f;
    while (wire_next(&m, &f)) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(desc, f.number);
        if (!field || !fits_wire_type(field, &f))
            continue;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            Buf inner = {0};
            copy_known(&inner, field->descriptor, f.bytes);
            wire_put_bytes(out, f.number, inner.p, inner.n);
            buf_free(&inner);
        } else {
            buf_put(out, f.whole.p, f.whole.n);
        }
    }
}

bool wire_tidy(Arena *a, const ProtobufCMessageDescriptor *desc, Bytes *message, Bytes file, const char *what, WireUnknown *unknown, Diag *d)
{
    Tidy t = {.unknown = unknown};
    if (!check_message(&t, desc, *message, 0)) {
        uintptr_t at = (uintptr_t)t.at - (uintptr_t)file.p;
        char     *place = at <= file.n ? arena_printf(d->arena, "byte %zu: ", (size_t)at) : "";
        char     *field = t.field ? arena_printf(d->arena, "field %s of ", t.field) : "";
        diag_error(d, LOC_NONE, "%s: %s%s%s: %s", what, place, field, t.message, t.error);
        return false;
    }
    if (t.strays) {
        Buf clean = {0};
        copy_known(&clean, desc, *message);
        *message = (Bytes){arena_copy(a, clean.p ? clean.p : "", clean.n), clean.n};
        buf_free(&clean);
    }
    return true;
}

/* What unpacking would allocate: no more than limit is counted. */
static int64_t memory_needed(const ProtobufCMessageDescriptor *desc, Bytes m, int64_t limit)
{
    enum { SLOT = 8 }; /* of a repeated field */
    WireField f;
    int64_t   need = (int64_t)desc->sizeof_message + 2 * SLOT;
    while (need <= limit && wire_next(&m, &f)) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(desc, f.number);
        need += 4 * SLOT;
        if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
            need += memory_needed(field->descriptor, f.bytes, limit - need);
        else if (f.type == WIRE_BYTES) /* packed integers may be a byte each */
            need += (int64_t)f.bytes.n * (field && is_integer(field) ? SLOT : 1);
    }
    return need;
}

bool wire_fits(const ProtobufCMessageDescriptor *desc, Bytes message, const char *what, Diag *d)
{
    enum { ALWAYS = 1 << 26 }; /* there is so much; asking the machine takes longer than an instruction */
    if (memory_needed(desc, message, ALWAYS) <= ALWAYS)
        return true;
    int64_t limit = host_memory();
    if (memory_needed(desc, message, limit) <= limit)
        return true;
    diag_error(d, LOC_NONE, "%s: it would take more memory than there is", what);
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
