/* Element types: the table of types.def and the questions asked of it. */
#ifndef IR_TYPE_H
#define IR_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum Type {
#define TYPE(id, ...) TYPE_##id,
#include "ir/types.def"
#undef TYPE
    TYPE_COUNT
} Type;

typedef enum {
    CLASS_BOOLEAN, CLASS_SIGNED, CLASS_UNSIGNED, CLASS_FLOAT, CLASS_COMPLEX, CLASS_TOKEN, CLASS_OPAQUE, CLASS_TUPLE
} TypeClass;
typedef enum { SPECIALS_NONE, SPECIALS_IEEE, SPECIALS_FN, SPECIALS_FNUZ, SPECIALS_FINITE, SPECIALS_FNU } Specials;

typedef struct TypeInfo {
    const char *text;
    int         bits;  /* of the value; 8 for pred */
    int         bytes; /* one value in our arrays; types below 8 bits take a byte each */
    TypeClass   cls;
    int         exp, man, bias; /* floats and the parts of complex types */
    Specials    specials;
} TypeInfo;

extern const TypeInfo type_info[TYPE_COUNT];

static inline const char *type_name(Type t) { return type_info[t].text; }
static inline int         type_bytes(Type t) { return type_info[t].bytes; }
static inline int         type_bits(Type t) { return type_info[t].bits; }
static inline bool        type_is_signed_int(Type t) { return type_info[t].cls == CLASS_SIGNED; }
static inline bool        type_is_unsigned_int(Type t) { return type_info[t].cls == CLASS_UNSIGNED; }
static inline bool        type_is_int(Type t) { return type_is_signed_int(t) || type_is_unsigned_int(t); } /* not pred */
static inline bool        type_is_float(Type t) { return type_info[t].cls == CLASS_FLOAT; }
static inline bool        type_is_complex(Type t) { return type_info[t].cls == CLASS_COMPLEX; }
static inline bool        type_is_array(Type t) { return type_info[t].cls <= CLASS_COMPLEX; }

/* c64 -> f32, c128 -> f64, every other type itself. */
Type type_component(Type t);

/* Equal, or both floats: what XLA calls the same element type up to precision. */
bool type_same_kind(Type a, Type b);

/* Of two floats the one with the larger overflow exponent, then the wider significand, then more bits. For other pairs a. */
Type type_higher_precision(Type a, Type b);

/* The type with this name (n bytes), or TYPE_COUNT. "tuple" is no word of the language and is not found. */
enum { TYPE_NAME_MAX = 13 }; /* letters and digits alone */
Type type_lookup(const char *name, size_t n);

#endif
