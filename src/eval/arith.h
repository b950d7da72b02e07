/* Elementwise arithmetic: one kernel per opcode and type, run over n values at a time.
 *
 * Kernels are written for nine domains only. Integers below 32 bits are computed in 64 bits and cut to their width, floats below f32 in f32
 * and rounded after every instruction (reference operations 1.2); values are loaded into the domain and stored from it in blocks.
 * Whole arrays of an instruction and the lanes of a reducer (body.h) run through the same kernels. */
#ifndef EVAL_ARITH_H
#define EVAL_ARITH_H

#include <string.h>

#include "ir/inst.h"

typedef enum { DOMAIN_PRED, DOMAIN_S32, DOMAIN_U32, DOMAIN_S64, DOMAIN_U64, DOMAIN_F32, DOMAIN_F64, DOMAIN_C64, DOMAIN_C128, DOMAIN_COUNT } Domain;

typedef struct Arith Arith;
typedef void ArithFn(const Arith *k, void *out, const void *const *x, int64_t n);

#define ARITH_OPERANDS 3

struct Arith {
    ArithFn *fn;
    int32_t   n;
    Type      type[ARITH_OPERANDS], out; /* as stored */
    Domain    domain[ARITH_OPERANDS], out_domain;
    bool      raw;                     /* fn reads and writes the stored types itself */
    bool      scalar[ARITH_OPERANDS]; /* one value for all n */
    int       bits;                    /* of the integer type; total compare: the direction */
    int       exponent_bits, mantissa_bits;
};

/* The kernel of an elementwise instruction (also convert, reduce-precision, copy), by opcode, attributes and types alone. False
 * where the opcode has no meaning for the type. */
bool arith_find(Arith *k, const Inst *i);

/* That of an arithmetic opcode on n operands of one type. */
bool arith_of(Arith *k, Op op, Type t, int32_t n);

/* Whether fn reads and writes the values where they are stored. */
bool arith_is_direct(const Arith *k);

/* out[j] = f(x[0][j], ...) for j < n. out may be one of x. */
void arith_run(const Arith *k, void *out, const void *const *x, int64_t n);

/* Tables of the domains: the function of an opcode, NULL for none. fn(predicate) of compare by its Word. */
ArithFn *arith_int(Op op, Domain d);
ArithFn *arith_float(Op op, Domain d);
ArithFn *arith_complex(Op op, Domain d);
ArithFn *arith_compare(Word direction, Domain d);
ArithFn arith_compare_total;    /* raw; the direction is in bits */
ArithFn *arith_select(int bytes);             /* raw: by the bytes of a value */
ArithFn *arith_clamp(Domain d);
ArithFn arith_convert;            /* raw */
ArithFn arith_stochastic_convert; /* raw */
ArithFn arith_copy;               /* raw */

/* Values between memory and their domain. value_load gives p itself where nothing has to be converted. */
Domain      value_domain(Type t); /* any type of a class can be loaded into it: 64 bits of integers */
Type        domain_type(Domain d); /* the type that is stored as the domain has it */
const void *value_load(Domain d, Type t, const void *p, int64_t n, void *buffer);
void        value_store(Type t, void *p, Domain d, const void *v, int64_t n);
/* The pattern of a float as a number that orders as the total order does: sign and magnitude turned into two's complement.
 * f8e8m0fnu has no sign and orders as its byte. */
int64_t     value_total_key(Type t, const void *p, int64_t j);

#define BLOCK 256 /* values that are loaded, computed and stored at a time */
typedef union Block { /* room for a block of any domain */
    double d[2 * BLOCK];
    float  f[BLOCK];
    int64_t i[BLOCK];
} Block;

/* re + im i, without arithmetic: CMPLX is not there for every compiler. */
static inline float _Complex make_c64(float re, float im)
{
    float parts[] = {re, im};
    float _Complex z;
    memcpy(&z, parts, sizeof z);
    return z;
}

static inline double _Complex make_c128(double re, double im)
{
    double parts[] = {re, im};
    double _Complex z;
    memcpy(&z, parts, sizeof z);
    return z;
}

/* Kernels of one and two operands: p and q are the values, expr the result, converted to `to`. The loops say that iterations are independent,
 * since out and x may be the same array. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
#define ARITH1(name, from, to, expr)                                                                                           \
    static void name(const Arith *k, void *out, const void *const *x, int64_t n)                                               \
    {                                                                                                                           \
        const from *a = x[0];                                                                                                   \
        to *r = out;                                                                                                            \
        INDEPENDENT                                                                                                             \
        for (int64_t j = 0; j < n; j++) {                                                                                       \
            from p = a[j];                                                                                                      \
            r[j] = (to)(expr);                                                                                                  \
        }                                                                                                                       \
    }
#define ARITH2(name, from, to, expr)                                                                                           \
    static void name(const Arith *k, void *out, const void *const *x, int64_t n)                                               \
    {                                                                                                                           \
        const from *a = x[0], *b = x[1];                                                                                        \
        to *r = out;                                                                                                            \
        INDEPENDENT                                                                                                             \
        for (int64_t j = 0; j < n; j++) {                                                                                       \
            from p = a[j], q = b[j];                                                                                            \
            r[j] = (to)(expr);                                                                                                  \
        }                                                                                                                       \
    }

#endif
