/* What the files of this folder share. */
#ifndef PROTO_PROTO_INT_H
#define PROTO_PROTO_INT_H

#include "hlo.pb-c.h"
#include "ir/attr_rare.h"
#include "proto/proto.h"
#include "proto/wire.h"

/* Field numbers of what is taken apart by hand. */
enum {
    FIELD_MODULE_COMPUTATIONS = 3, FIELD_COMPUTATION_INSTRUCTIONS = 2, FIELD_INSTRUCTION_LITERAL = 8, FIELD_MODULE_EXTRA = 15000
};

/* An empty message in a. */
void *message_new(Arena *a, const ProtobufCMessageDescriptor *desc);

/* ---- literals (literal.c) ---- */

/* The LiteralProto m as a literal, one reference, and the shape it has there (shape may be NULL). NULL after reporting; what names it. */
Literal *literal_decode(Arena *a, Bytes m, const Shape **shape, const char *what, Diag *d);
/* The literal that the bytes are outside of a message, all of them. Likewise. */
Literal *literal_decode_raw(Arena *a, Bytes bytes, const char *what, Diag *d);
/* l as a LiteralProto in the layout of s, as field `number`. */
void literal_encode(Buf *b, uint32_t number, Arena *a, const Literal *l, const Shape *s);
/* The raw form of a literal of shape s. False after reporting: a type that has none. */
bool literal_encode_raw(Buf *b, const Literal *l, const Shape *s, const char *what, Diag *d);

/* ---- shapes (shape.c) ---- */

/* In a. NULL after reporting an element type or dimension that there is none of; what names the owner. */
const Shape    *shape_decode(Arena *a, const Pb__ShapeProto *p, const char *what, Diag *d);
bool            shape_has_layouts(const Pb__ShapeProto *p); /* every array in it */
bool            shape_same_order(const Shape *x, const Shape *y); /* do arrays in the same places have the same order in memory and dynamic dimensions? */
Pb__ShapeProto *shape_encode(Arena *a, const Shape *s);
Pb__ProgramShapeProto *program_shape_encode(Arena *a, int32_t n, const Shape *const *params, const char *const *names, const Shape *result);

/* ---- what a message becomes as text (decode*.c) ---- */

/* decode.c: the module in a HloModuleProto, as proto_read has it. Messages give places in file. */
Module *module_decode(Bytes message, Bytes file, Diag *d);

typedef struct Decoder {
    Buf      *b;       /* the text so far */
    Arena    *arena;   /* as long as the text */
    Interner *strings; /* names in the text */
    Diag     *d;
    const char *what;  /* the instruction at hand, for messages */
    bool      on_pred; /* its first operand is a pred */
    size_t    n_payloads;
    const ProtobufCBinaryData *payloads; /* that metadata refer to */
    const char *lost;  /* something that the text has no place for, NULL: nothing yet */
    int64_t   n_lost;
} Decoder;

void decode_lost(Decoder *x, const char *field); /* field was there and is left out */
Ints decode_ints(Arena *a, size_t n, const int64_t *v);
void decode_string(Decoder *x, const char *s);            /* quoted */
void decode_bytes(Decoder *x, ProtobufCBinaryData s);     /* quoted */
void decode_list(Decoder *x, size_t n, const int64_t *v); /* {1,2} */
bool decode_shape(Decoder *x, const Pb__ShapeProto *p);
bool decode_metadata(Decoder *x, const Pb__OpMetadata *m); /* {...} */
/* Bytes that are written in p, or those that it names by their number in the module's list; NULL: none. False after reporting. */
bool decode_payload(Decoder *x, const Pb__Payload *p, const ProtobufCBinaryData **bytes);
bool metadata_is_empty(const Pb__OpMetadata *m);
void decode_frontend(Decoder *x, const Pb__FrontendAttributes *f); /* ", frontend_attributes={...}" */

/* The attributes of an instruction, each with ", " before it. callees[k] is the name in the text of the k-th called computation. literal: that of a
 * custom call, or NULL. False after reporting. */
bool decode_attrs(Decoder *x, Op op, const Pb__HloInstructionProto *p, const char *const *callees, const Literal *literal);

/* decode_rare.c: the value alone. */
bool decode_sharding(Decoder *x, const Pb__OpSharding *s);
bool decode_groups(Decoder *x, const Pb__HloInstructionProto *p); /* replica_groups */
bool decode_origin(Decoder *x, const Pb__OriginalValueProto *o);
bool decode_origin_array(Decoder *x, const Pb__OriginalArrayProto *o);

/* ---- and the other way (encode*.c): everything in a ---- */

char *encode_string(Arena *a, const char *s); /* NULL stays NULL */
ProtobufCBinaryData encode_bytes(Arena *a, const char *s);
int64_t *encode_ints(Arena *a, Ints x);
Pb__OpMetadata *encode_metadata(Arena *a, const Metadata *m);
Pb__FrontendAttributes *encode_frontend(Arena *a, const KeyValues *kv);
void encode_attrs(Arena *a, Pb__HloInstructionProto *p, const Inst *i);

Pb__OpSharding *encode_sharding(Arena *a, const Sharding *s);
void encode_groups(Arena *a, Pb__HloInstructionProto *p, const ReplicaGroups *g);
Pb__OriginalValueProto *encode_origin(Arena *a, const Origin *o);
Pb__OriginalArrayProto *encode_origin_array(Arena *a, const OriginArray *x);

#endif
