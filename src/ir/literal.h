/* Literals: the values of constants, of arguments and of results. Dense, row-major whatever layout the text says, little endian,
 * type_bytes(type) bytes a value: types below 8 bits take one byte (signed ones sign-extended, others with zero upper bits).
 *
 * A literal is immutable once it is shared and counts its references; small data is in the literal's own block. An arena holds one
 * through literal_keep. The evaluator, which alone writes into a literal, does so only while it holds the one reference. */
#ifndef IR_LITERAL_H
#define IR_LITERAL_H

#include "ir/shape.h"

typedef struct Literal Literal;
struct Literal {
    int32_t   refs;
    Type      type;    /* TYPE_TUPLE: elems; TYPE_TOKEN: nothing */
    bool      elided;  /* the text had {...}: the values are unknown and data is NULL */
    bool      borrowed; /* data belongs to someone else (a mapped file) and is neither freed nor written */
    bool      inside;  /* data lies in the literal's own block */
    int32_t   rank;
    int64_t   count;   /* elements */
    void     *data;    /* aligned to 64 bytes, borrowed ones to their element; NULL for tuples, tokens, elided values; valid but empty for count 0 */
    int32_t   n_elems;
    Literal **elems;
    Literal  *whole; /* of an array that was cut: what it was cut from, or NULL (eval/sizes.h) */
    int64_t   dims[];
};

/* One reference each, values not set. Sizes are checked by the caller through shape_bytes; an overflow here is die_out_of_memory. */
Literal *literal_new(Type t, int32_t rank, const int64_t *dims);
Literal *literal_new_zero(Type t, int32_t rank, const int64_t *dims);
Literal *literal_for_shape(const Shape *s, bool zero); /* arrays, tokens and (recursively) tuples; dynamic dims get their bound */
Literal *literal_tuple(int32_t n, Literal *const *elems); /* takes over one reference of each element */
Literal *literal_token(void);
Literal *literal_elided(const Shape *s); /* an array without values */
Literal *literal_borrow(Type t, int32_t rank, const int64_t *dims, void *data); /* data outlives the literal */

Literal *literal_ref(const Literal *l);
void     literal_unref(Literal *l); /* frees at zero; NULL is allowed */
const Literal *literal_keep(Arena *a, Literal *l); /* the arena takes over the reference */
Literal *literal_own(Literal *l); /* l itself when it may be written, else a copy; the reference passes through */

/* Scalars. v is converted with wrapping to integers, with rounding to floats. */
Literal *literal_from_s64(Type t, int64_t v);
Literal *literal_from_f64(Type t, double v);

bool     literal_has_elided(const Literal *l);
bool     literal_matches(const Literal *l, const Shape *s); /* type and dims, tuples recursively; layouts do not matter */
bool     literal_equal(const Literal *a, const Literal *b); /* same type, dims and bits */
uint64_t literal_hash(const Literal *l);
int64_t  literal_bytes(const Literal *l);
/* n > 0 arrays one after the other along a new axis in front; NULL when they differ in type or sizes. */
Literal *literal_stack(int64_t n, const Literal *const *l);
const Shape *literal_shape(Arena *a, const Literal *l); /* default layout */
bool     literal_all_equal_bits(const Literal *l); /* every element has the bits of element 0; count >= 1 */

/* One element as a number: integers and pred exactly as int64 (u64 by bit pattern), floats and the parts of complex as double. */
int64_t  literal_get_s64(const Literal *l, int64_t i);
double   literal_get_f64(const Literal *l, int64_t i); /* complex: the real part */
double   literal_get_imag(const Literal *l, int64_t i);
void     literal_set_s64(Literal *l, int64_t i, int64_t v);
void     literal_set_f64(Literal *l, int64_t i, double re, double im);

/* How many pairs of braces the text of such an array has, INT64_MAX beyond counting: [1000,1000,0] has no element and a million
 * of them. */
int64_t  literal_braces(int32_t rank, const int64_t *dims);
/* Text as XLA prints it (reference text 8.5): "{1, 2, 3}". Elided values print as "{...}".
 * signed_zero: -0 of a float is written "-0.0", which reads back as such; XLA writes "-0", which reads back as 0. */
void     literal_print(Buf *b, const Literal *l, bool signed_zero);
/* The same with the type in front of every leaf, as in literal= of custom-call: "( s32[2]{0} {1, 2}, f32[] 0.5 )". */
void     literal_print_typed(Buf *b, const Shape *s, const Literal *l, bool signed_zero);

#endif
