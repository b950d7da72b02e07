/* The sweep: instances of every opcode, for every element type that it takes, run as compiled C and held against the evaluator.
 *
 * A case is one small computation: parameters with chosen values, a few instructions, a root. Recipes (sweep_*.c), one a family
 * of ops.def, write cases as HLO text; an opcode whose family has no recipe does not link. Each case is read, verified and
 * evaluated alone; what is valid and evaluates goes with some dozens of others into one module (a sheet), since starting the C
 * compiler is what costs. */
#ifndef DRIVER_SWEEP_H
#define DRIVER_SWEEP_H

#include "ir/inst.h"
#include "ir/literal.h"
#include "support/vec.h"

/* The values of a parameter. */
typedef enum Values {
    VALUES_EDGES,   /* the type's remarkable values (all patterns up to 8 bits, of 65536 elements up to 16), then random ones */
    VALUES_FAST,    /* two operands: every pair of remarkable values once, this one changing fast */
    VALUES_SLOW,    /* and this one slowly */
    VALUES_SHUFFLE, /* remarkable values in random order */
    VALUES_SMALL,   /* whole numbers from -3 to 3, so that sums are exact */
    VALUES_INDEX,   /* whole numbers from -4 to 12 */
    VALUES_REAL,    /* numbers between -1 and 1 */
    VALUES_ABOVE,   /* numbers between 1/2 and 3/2 */
    VALUES_SPECIAL, /* SMALL with NaN, infinities and -0 now and then */
    VALUES_DISTINCT /* whole numbers, each once, in random order */
} Values;

/* When two results are the same. */
typedef enum Same {
    SAME_BITS,   /* what moves keeps even the payload of NaN */
    SAME_VALUE,  /* NaN is NaN */
    SAME_NUMBER, /* and zeros have no sign */
    SAME_CLOSE,  /* floats: a few units of the last place (ulp); complex: of the larger part */
    SAME_NORM    /* within a few units in the last place of the largest of the result, times the terms of a sum */
} Same;

typedef struct CaseParam {
    const char *name, *shape;
    Values values;
} CaseParam;

typedef struct Case {
    struct Sweep *sweep;
    int id;
    Op op;
    VEC(CaseParam) params;
    int n_names;
    bool refusable; /* it may be more than a backend does */
    Buf comps, body;
    const char *root;
    Same same;
    double units;              /* of CLOSE and NORM; 0: by the type */
    Literal **args, **results; /* leaves of what the evaluator makes of args */
    int32_t n_results;
} Case;

typedef struct Sweep Sweep;

/* A case of the opcode, or NULL when it is not in the sample: then the other functions do nothing. */
Case *sweep_case(Sweep *s, Op op);
const char *case_param(Case *c, Values v, const char *shape, ...) __attribute__((format(printf, 3, 4)));
/* A computation, by what stands between its braces; gives its name. */
const char *case_comp(Case *c, const char *text, ...) __attribute__((format(printf, 2, 3)));
const char *case_reducer(Case *c, Op op, Type t); /* two scalars by a binary opcode */
const char *case_let(Case *c, const char *text, ...) __attribute__((format(printf, 2, 3)));
void case_refusable(Case *c, bool yes); /* a backend may refuse it */
void case_units(Case *c, double units);
/* The end of a case. It must be valid ... */
void case_root(Case *c, Same same, const char *text, ...) __attribute__((format(printf, 3, 4)));
/* ... or it is the verifier that says whether it is one. */
void case_root_if_valid(Case *c, Same same, const char *text, ...) __attribute__((format(printf, 3, 4)));

/* How many elements take all of a type's remarkable values, and pairs of them. */
int64_t values_single(Type t);
int64_t values_pairs(Type t);
void values_fill(Literal *l, Values v, uint64_t seed);
void values_print(Buf *b, const Literal *l, int64_t i);

/* The families' recipes. */
#define OP(id, text, n, family, shape, flags) void sweep_##family(Sweep *s, Op op);
#include "ir/ops.def"
#undef OP

#endif
