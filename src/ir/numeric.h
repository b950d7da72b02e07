/* Numbers of every element type: bits to double and back, and the text of one value.
 * The rounding rules are those of reference operations 1.3 and 4.1; every layer below the emitters uses these functions. */
#ifndef IR_NUMERIC_H
#define IR_NUMERIC_H

#include "ir/type.h"
#include "support/buf.h"

/* Floats of every format up to 64 bits, exactly. bits holds the pattern in its low type_bits(t) bits. */
double   float_decode(Type t, uint64_t bits);
/* One rounding, nearest even, from a double; overflow, infinities and NaN as the type's row in the reference says. */
uint64_t float_encode(Type t, double v);
/* Fast paths used by inner loops. */
float    bf16_to_f32(uint16_t x);
uint16_t f32_to_bf16(float x);
float    f16_to_f32(uint16_t x);
uint16_t f32_to_f16(float x);

/* The steps that convert takes (reference operations 1.3): f64 -> f16 and bf16 round through f32, integers -> floats narrower
 * than f32 too. */
uint64_t float_convert_from_f64(Type to, double v);
uint64_t float_convert_from_s64(Type to, int64_t v);
uint64_t float_convert_from_u64(Type to, uint64_t v);
/* Float to integer: NaN is 0, out of range saturates, else truncation. The result is the integer's value (u64 by pattern). */
int64_t  int_convert_from_f64(Type to, double v);
/* Keeps the low bits of v that type to has, sign- or zero-extended. */
int64_t  int_wrap(Type to, int64_t v);

bool     float_is_nan(Type t, uint64_t bits);
/* NaN payloads as text writes them (reference text 3.1). */
int      nan_payload_bits(Type t);
uint64_t nan_quiet_payload(Type t);
uint64_t nan_make(Type t, bool negative, uint64_t payload); /* payload 0: the quiet one */

/* One value in XLA's form (reference text 8.5). bits as above; signed_zero as in literal_print. */
void     number_print_float(Buf *b, Type t, uint64_t bits, bool signed_zero);
/* printf's %.<digits>g without a locale; nan, inf by these words: epsilon, statistics and the like have 6 digits. */
void     number_print_g(Buf *b, int digits, double v);

#endif
