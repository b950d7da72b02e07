/* The inside of the generator of random modules: what is known of values, and the computation that is being written.
 *
 * Compiled code and the evaluator round differently where more than one rounding is involved (sums in another order, multiply and add as
 * one instruction, elementary functions). So that a difference between them is a bug, every float carries facts, and what jumps (compare,
 * floor, convert to an integer, sort) is given only values that are the same everywhere. */
#ifndef DRIVER_RANDOM_INT_H
#define DRIVER_RANDOM_INT_H

#include "driver/random_module.h"
#include "ir/shape.h"
#include "support/vec.h"
#include "text/fuzz.h"

enum { MAX_RANK = 5, MAX_COUNT = 600 };

typedef enum Accuracy {
    WHOLE, /* a whole number, and every one up to the bound is representable: sums and products are exact in any order */
    EXACT, /* the same value everywhere: data, or one rounding of what is the same everywhere */
    ROUGH  /* off by at most `error` */
} Accuracy;

typedef struct Facts {
    Accuracy acc;
    double   bound; /* of the magnitude; infinity: none, and infinities are possible */
    double   error;
    bool     nan;   /* may be NaN */
    bool     vague; /* the sign of zero and the bits of NaN may differ, so nobody may look at them */
} Facts;

/* A type with its facts; every leaf of a tuple has its own. Immutable. */
typedef struct Ty Ty;
struct Ty {
    Type    type;
    int32_t rank;
    int64_t dims[MAX_RANK];
    int32_t order[MAX_RANK]; /* minor to major */
    Facts   facts;
    int32_t n; /* of tuples */
    const Ty *const *elems;
};

typedef struct Value {
    const char *name; /* with '%' */
    const Ty   *ty;
    int32_t     uses;
} Value;

typedef VEC(Value *) Values;

typedef struct Gen {
    Arena   *a;
    uint64_t rng;
    Buf      done;    /* finished computations, callees first */
    int32_t  next;    /* for names */
    int32_t  left;    /* instructions still wanted */
    int32_t  n_types, n_shapes;
    Type     types[6];            /* what parameters and constants prefer */
    int64_t  shapes[4][MAX_RANK]; /* likewise */
    int32_t  ranks[4];
    int32_t  sizes[4];
    bool     specials; /* data has NaN, infinities, values of any size */
    bool     layouts;  /* arrays in any order of memory */
    bool     notes;    /* metadata and the like */
} Gen;

/* What may stand in a computation. */
typedef enum Scope { SCOPE_ANY, SCOPE_FUSION, SCOPE_SCALAR } Scope;

typedef struct Body {
    Gen    *g;
    Scope   scope;
    int32_t depth;  /* of called computations around it */
    Buf     text;
    Values  values; /* everything that may be used */
} Body;

/* ---- random_module.c ---- */

size_t  below(Gen *g, size_t n);
bool    chance(Gen *g, size_t one_in);
int64_t between(Gen *g, int64_t lo, int64_t hi); /* both included */

/* Types. order NULL: a random one where the module has such, else row-major. */
int64_t   ty_count(const Ty *t);
Ty       *ty_array(Gen *g, Type t, int32_t rank, const int64_t *dims, Facts f);
const Ty *ty_as(Gen *g, const Ty *t, Type type, Facts f); /* the same dims and order */
const Ty *ty_tuple(Gen *g, int32_t n, const Ty *const *elems);
const Ty *ty_random(Gen *g, Type t); /* an array of data */
Type      type_random(Gen *g);
bool      ty_same(const Ty *a, const Ty *b); /* type and dims, tuples recursively */
void      ty_print(Buf *b, const Ty *t);
Ints      dims_random(Gen *g);

/* Writes an instruction: fmt is what stands behind the type. The value is not yet for use; keep puts it among the values unless it
 * is too inexact to say anything about. */
Value *body_emit(Body *b, const Ty *t, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
Value *body_keep(Body *b, Value *v);
char  *ints_text(Gen *g, const char *before, int32_t n, const int64_t *v); /* "dimensions={0,1}" */

/* Values. */
Value *any_array(Body *b);
Value *any_of(Body *b, bool (*good)(const Ty *t)); /* NULL when none was met */
Value *want(Body *b, Type t, int32_t rank, const int64_t *dims); /* one of this type and these dims, made when there is none */
Value *want_exact(Body *b, Type t, int32_t rank, const int64_t *dims); /* not ROUGH */
Value *want_ty(Body *b, const Ty *t);  /* of this type, tuple or array */
Value *constant_scalar(Body *b, Type t, double v); /* v is a small number that t has */
Value *constant_random(Body *b, const Ty *t);
Value *tuple_of(Body *b, int32_t n, Value *const *v);
Value *element_of(Body *b, Value *tuple, int32_t k);
Value *broadcast_scalar(Body *b, Value *scalar, const Ty *like);
Value *clamped(Body *b, Value *x, double bound);

/* Computations. */
void        body_start(Body *b, Gen *g, Scope scope, int32_t depth);
Value      *body_param(Body *b, int32_t number, const Ty *t);
const char *body_finish(Body *b, Value *root); /* its name, with '%' */
void        body_fill(Body *b, int32_t n);     /* about n random instructions */
Value      *body_root(Body *b);                /* something worth returning */
const char *body_prune(Body *b, const Value *root);
bool        is_used(const char *text, const char *name);

/* ---- random_facts.c ---- */

double whole_limit(Type t); /* WHOLE needs a bound up to this; 0: the type does no arithmetic */
bool   is_arith_float(Type t);
Facts  facts_whole(double bound);
Facts  facts_int(Type t);
Facts  facts_data(const Gen *g, Type t);
Facts  facts_join(Facts a, Facts b); /* either of the two */
Facts  facts_add(Type t, Facts a, Facts b);
Facts  facts_mul(Type t, Facts a, Facts b);
Facts  facts_sum(Type t, Facts a, double n); /* of n terms, in any order */
Facts  facts_convert(Type to, Type from, Facts f);
Facts  facts_loop(Type t, Facts f); /* what holds of a value carried through a loop */
bool   facts_within(Facts a, Facts b);

/* ---- random_ops.c, random_calls.c: one instruction or a few; false: the values at hand do not allow it ---- */

typedef struct RandomOp {
    bool (*make)(Body *b);
    int32_t weight;
    Scope   most; /* the narrowest scope that may have it */
} RandomOp;

extern const RandomOp random_ops[], random_calls[];
extern const int32_t  random_op_count, random_call_count;

#endif
