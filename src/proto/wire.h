/* The wire format of protocol buffers, as far as messages are taken apart here: protobuf-c unpacks a whole message into structures that are
 * many times its size and recurses without a limit, so a message is checked as a whole, cut into instructions, and these are unpacked one by one. Source: the encoding chapter of the protocol buffers documentation. */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "support/buf.h"
#include "support/diag.h"
#include "support/vec.h"

typedef struct Bytes {
    const uint8_t *p;
    size_t         n;
} Bytes;

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_GROUP = 3, WIRE_FIXED32 = 5 };

/* One field of a message. */
typedef struct WireField {
    uint32_t number;
    int      type;  /* WIRE_* */
    uint64_t value; /* of varints and fixed numbers */
    Bytes    bytes; /* of WIRE_BYTES */
    Bytes    whole; /* tag and all */
} WireField;

/* The number at the beginning of *r, which moves behind it. False when it is cut off. */
bool wire_varint(Bytes *r, uint64_t *v);

/* The first n bytes of *r, which moves behind them. False when there are fewer. */
bool wire_take(Bytes *r, uint64_t n, Bytes *out);

/* The number in at most 8 bytes. */
uint64_t wire_little_endian(Bytes b);

/* The field at the beginning of *rest, which moves behind it. False at the end and when the bytes are no field (then rest->n > 0). */
bool wire_next(Bytes *rest, WireField *f);

/* The bytes of the message that the fields of that number are: what several of them say is merged, which is to put them one behind the
 * other. n 0: there is none. */
Bytes wire_field(Arena *a, Bytes message, uint32_t number);

/* The integers that a repeated field has, packed or one by one, appended to v. */
typedef VEC(int64_t) WireNumbers;
void wire_take_numbers(Arena *a, const WireField *f, WireNumbers *v);

/* The fields of a message but for those numbered cut, which are appended to v. False when the bytes are no message. */
typedef VEC(Bytes) BytesVec;
bool wire_split(Arena *a, Bytes message, uint32_t cut, Buf *others, BytesVec *v);

/* Makes of *message what protobuf-c can unpack: fields that have another type than desc says are unknown ones, here as in every reader of protocol
 * buffers, and they and groups go (then *message is a copy in a). False after reporting, with the place in file: bytes that are no message, strings
 * that are no UTF-8, messages nested deeper than WIRE_DEPTH. Unknown fields are counted in *unknown, with the number of the first. */
enum { WIRE_DEPTH = 1000 };
typedef struct WireUnknown {
    int64_t     count;
    uint32_t    first;
    const char *message; /* the name of its message */
} WireUnknown;
bool wire_tidy(Arena *a, const ProtobufCMessageDescriptor *desc, Bytes *message, Bytes file, const char *what, WireUnknown *unknown, Diag *d);

/* Does a tidy message fit into memory when it is unpacked? */
bool wire_fits(const ProtobufCMessageDescriptor *desc, Bytes message, const char *what, Diag *d);

/* Writing. */
void   wire_put_varint(Buf *b, uint64_t v);
size_t wire_varint_size(uint64_t v);
void   wire_put_tag(Buf *b, uint32_t number, int type);
void   wire_put_bytes(Buf *b, uint32_t number, const void *p, size_t n);
void   wire_put_message(Buf *b, uint32_t number, const ProtobufCMessage *m); /* number 0: the fields alone */

#endif
