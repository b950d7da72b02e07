/* What holds a module, and the values that come with it.
 *
 *   HloModuleProto                                                  the module itself
 *   HloProto                { 1: module }
 *   HloSnapshot             { 1: HloProto, 2: arguments, 3: result, 4: platform }
 *   HloUnoptimizedSnapshot  { 1: module, 2: partitions { 1: arguments } }
 *   its length, HloUnoptimizedSnapshot { 1: module, 2: partitions { 2: descriptors { 1: version, 2: bytes } }, 3: version }, the arguments
 *
 * The last is what XLA writes, since a message cannot be longer than 2 GiB: the length is a varint, and the arguments stand behind the message one after
 * the other, partition by partition, in the raw form of literal.c. Which of them a file is shows in its structure.
 * Source: XLA's service/hlo.proto and runtime/large_hlo_snapshot_serialization. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "proto/proto_int.h"

/* ---- which one it is ---- */

typedef struct Outer {
    ProtoKind kind;
    Bytes     message; /* the outermost one */
    Bytes     module;
    bool      has_raw;
    Bytes     raw;     /* what stands behind the message */
} Outer;

static bool is_message(Bytes m)
{
    WireField f;
    while (wire_next(&m, &f))
        continue;
    return m.n == 0;
}

/* The first field of that number that has bytes; n 0: there is none. */
static Bytes first_field(Bytes m, uint32_t number)
{
    WireField f;
    while (wire_next(&m, &f))
        if (f.number == number && f.type == WIRE_BYTES && f.bytes.n > 0)
            return f.bytes;
    return (Bytes){0};
}

static bool is_module(Bytes m)
{
    Bytes comp = is_message(m) ? first_field(m, FIELD_MODULE_COMPUTATIONS) : (Bytes){0};
    return comp.n && is_message(comp) && first_field(comp, FIELD_COMPUTATION_INSTRUCTIONS).n;
}

/* The module in the outermost message, if there is one. */
static bool find_module(Arena *a, Outer *o)
{
    Bytes inner = wire_field(a, o->message, 1), second = wire_field(a, inner, 1);
    if (is_module(second)) {
        o->kind = PROTO_SNAPSHOT;
        o->module = second;
    } else if (is_module(inner)) {
        o->kind = wire_field(a, o->message, 2).n ? PROTO_UNOPTIMIZED_SNAPSHOT : PROTO_HLO;
        o->module = inner;
    } else {
        o->kind = PROTO_MODULE;
        o->module = o->message;
        return is_module(o->message);
    }
    return true;
}

static bool find_module_behind_length(Arena *a, Outer *o)
{
    uint64_t n;
    Bytes    file = o->raw = o->message;
    o->has_raw = wire_varint(&o->raw, &n) && wire_take(&o->raw, n, &o->message) && find_module(a, o) && o->kind != PROTO_SNAPSHOT &&
                 o->kind != PROTO_MODULE;
    if (!o->has_raw)
        o->message = file;
    o->kind = PROTO_UNOPTIMIZED_SNAPSHOT;
    return o->has_raw;
}

/* Text has no control characters where it begins. */
static bool looks_binary(Bytes b)
{
    enum { LOOK_AT = 256 };
    for (size_t k = 0; k < b.n && k < LOOK_AT; k++)
        if (b.p[k] < 0x20 && !isspace(b.p[k]))
            return true;
    return false;
}

/* No name in a message has a blank. */
static bool begins_as_text(Bytes b)
{
    static const char word[] = "HloModule";
    size_t            n = sizeof word - 1;
    while (b.n > 0 && isspace(b.p[0]))
        b = (Bytes){b.p + 1, b.n - 1};
    return b.n > n && memcmp(b.p, word, n) == 0 && isspace(b.p[n]);
}

bool proto_is(const void *p, size_t n)
{
    Bytes    file = {p, n}, rest = file;
    uint64_t length;
    if (n > 0 && file.p[0] == '\n') /* the tag of field 1 */
        return looks_binary(file) || (is_message(file) && !begins_as_text(file));
    return n > 0 && !isspace(file.p[0]) && wire_varint(&rest, &length) && rest.n > 0 && rest.p[0] == '\n' && looks_binary(file);
}

/* ---- the values ---- */

typedef struct ValueReader {
    Snapshot *s;
    Diag     *d;
    VEC(const Literal *) args;
    Bytes     raw; /* what is left */
} ValueReader;

static Literal *read_message(Bytes m, const char *what, Diag *d)
{
    WireUnknown unknown = {0};
    if (!wire_tidy(d->arena, &pb__literal_proto__descriptor, &m, m, what, &unknown, d))
        return NULL;
    return literal_decode(d->arena, m, NULL, what, d);
}

/* The next raw literal, as long as its descriptor says. */
static Literal *read_raw(ValueReader *r, Bytes descriptor, const char *what)
{
    WireField f;
    uint64_t  version = 0, size = 0;
    Bytes     bytes;
    while (wire_next(&descriptor, &f)) {
        if (f.number == 1 && f.type == WIRE_VARINT)
            version = f.value;
        if (f.number == 2 && f.type == WIRE_VARINT)
            size = f.value;
    }
    if (descriptor.n || version != 0) {
        diag_error(r->d, LOC_NONE, descriptor.n ? "%s: its descriptor is damaged" : "%s: its form is of a version that is not known", what);
        return NULL;
    }
    if (!wire_take(&r->raw, size, &bytes)) {
        diag_error(r->d, LOC_NONE, "%s is cut off: it should take %llu bytes, %zu are left", what, (unsigned long long)size, r->raw.n);
        return NULL;
    }
    return literal_decode_raw(r->d->arena, bytes, what, r->d);
}

static bool keep_argument(ValueReader *r, Literal *l)
{
    if (l)
        vec_push(r->d->arena, &r->args, literal_keep(r->d->arena, l));
    return l != NULL;
}

/* The fields of that number in m are arguments, or their descriptors. */
static bool read_arguments(ValueReader *r, Bytes m, uint32_t number, bool raw)
{
    WireField f;
    int32_t   n = 0;
    while (wire_next(&m, &f)) {
        if (f.number != number || f.type != WIRE_BYTES)
            continue;
        const char *what = arena_printf(r->d->arena, "argument %d", n++);
        if (r->s->n_partitions > 0)
            what = arena_printf(r->d->arena, "%s of partition %d", what, r->s->n_partitions);
        if (!keep_argument(r, raw ? read_raw(r, f.bytes, what) : read_message(f.bytes, what, r->d)))
            return false;
    }
    if (m.n > 0)
        diag_error(r->d, LOC_NONE, "the arguments are cut off or damaged");
    else if (r->s->n_partitions++ > 0 && n != r->s->n_args)
        diag_error(r->d, LOC_NONE, "partition %d has another number of arguments than partition 0", r->s->n_partitions - 1);
    r->s->n_args = n;
    return r->d->errors == 0;
}

static bool read_partitions(ValueReader *r, Bytes m, bool raw)
{
    WireField f;
    while (wire_next(&m, &f)) {
        if (f.number == 2 && f.type == WIRE_BYTES && !read_arguments(r, f.bytes, raw ? 2 : 1, raw))
            return false;
        if (f.number == 3 && f.type == WIRE_VARINT && f.value != 0) {
            diag_error(r->d, LOC_NONE, "the snapshot is of a version that is not known");
            return false;
        }
    }
    if (r->raw.n > 0)
        diag_error(r->d, LOC_NONE, "%zu bytes stand behind the last argument", r->raw.n);
    return r->raw.n == 0;
}

static bool read_result(Bytes m, Snapshot *s, Diag *d)
{
    Bytes result = wire_field(d->arena, m, 3), platform = wire_field(d->arena, m, 4);
    s->platform = platform.n ? arena_strndup(d->arena, (const char *)platform.p, platform.n) : NULL;
    if (result.n == 0)
        return true;
    Literal *l = read_message(result, "the result", d);
    s->result = l ? literal_keep(d->arena, l) : NULL;
    return l != NULL;
}

static bool read_values(const Outer *o, Snapshot *s, Diag *d)
{
    ValueReader r = {.s = s, .d = d, .raw = o->raw};
    bool        good = true;
    *s = (Snapshot){.kind = o->kind};
    if (o->kind == PROTO_SNAPSHOT)
        good = read_arguments(&r, o->message, 2, false) && read_result(o->message, s, d);
    else if (o->kind == PROTO_UNOPTIMIZED_SNAPSHOT)
        good = read_partitions(&r, o->message, o->has_raw);
    s->args = r.args.v;
    return good;
}

Module *proto_read(const void *p, size_t n, Snapshot *s, Diag *d)
{
    Outer o = {.message = {p, n}};
    bool  has_header = n > 0 && *(const uint8_t *)p != '\n';
    if (!(has_header ? find_module_behind_length(d->arena, &o) : find_module(d->arena, &o))) {
        diag_error(d, LOC_NONE, !has_header && is_message(o.message) ? "this is no HloModuleProto, HloProto or snapshot of one"
                                                                     : "the message is cut off or damaged");
        return NULL;
    }
    return s && !read_values(&o, s, d) ? NULL : module_decode(o.module, (Bytes){p, n}, d);
}

/* ---- writing ---- */

static bool put_snapshot(Buf *b, const Module *m, const Snapshot *s, Diag *d)
{
    Buf  hlo = {0};
    bool good = proto_write(&hlo, m, PROTO_HLO, d);
    wire_put_bytes(b, 1, hlo.p, hlo.n);
    for (int32_t k = 0; good && k < s->n_args; k++)
        literal_encode(b, 2, d->arena, s->args[k], m->entry_params->v[k]);
    if (good && s->result)
        literal_encode(b, 3, d->arena, s->result, m->entry_result);
    if (good && s->platform)
        wire_put_bytes(b, 4, s->platform, strlen(s->platform));
    buf_free(&hlo);
    return good;
}

/* The arguments of one partition into raw, their descriptors into message. */
static bool put_partition(Buf *message, Buf *raw, const Module *m, const Literal *const *args, int32_t n, Diag *d)
{
    Buf  partition = {0};
    bool good = true;
    for (int32_t k = 0; good && k < n; k++) {
        Buf    descriptor = {0};
        size_t start = raw->n;
        good = literal_encode_raw(raw, args[k], m->entry_params->v[k], arena_printf(d->arena, "argument %d", k), d);
        wire_put_tag(&descriptor, 2, WIRE_VARINT);
        wire_put_varint(&descriptor, raw->n - start);
        wire_put_bytes(&partition, 2, descriptor.p, descriptor.n);
        buf_free(&descriptor);
    }
    wire_put_bytes(message, 2, partition.p, partition.n);
    buf_free(&partition);
    return good;
}

static bool put_unoptimized(Buf *b, const Module *m, const Snapshot *s, Diag *d)
{
    Buf  message = {0}, raw = {0};
    bool good = proto_write(&message, m, PROTO_HLO, d); /* field 1 is the module here, too */
    for (int32_t p = 0; good && p < s->n_partitions; p++)
        good = put_partition(&message, &raw, m, s->args + (size_t)p * (size_t)s->n_args, s->n_args, d);
    wire_put_varint(b, message.n);
    buf_put(b, message.p, message.n);
    buf_put(b, raw.p, raw.n);
    buf_free(&message);
    buf_free(&raw);
    return good;
}

bool snapshot_write(Buf *b, const Module *m, const Snapshot *s, Diag *d)
{
    return s->kind == PROTO_SNAPSHOT ? put_snapshot(b, m, s, d) : put_unoptimized(b, m, s, d);
}
