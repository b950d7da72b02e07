/* Affine index maps: sums of integer multiples of loop variables, and what is left of divisions by constants.
 *
 *   5*i0 + i1 + 3            an Ix: terms sorted by atom, no zero multiple, no atom twice
 *   i0/4, i0%4               atoms of their own: (argument, divisor), simplified first by what ranges tell
 *
 * Every atom knows its range, so that 4*i + j with j in [0,4) divided by 4 is i. Atoms are unique in their context: equal maps have
 * equal terms. Divisions that remain are reported to the context's owner (split), who may cut the loop in two so that
 * on the next try nothing remains of them. */
#ifndef EMIT_INDEX_H
#define EMIT_INDEX_H

#include "support/arena.h"
#include "support/buf.h"

#include <stdbool.h>

typedef enum IxKind { IX_LOOP, IX_VALUE, IX_DIV, IX_MOD } IxKind;

typedef struct Ix     Ix;
typedef struct IxAtom IxAtom;
struct IxAtom {
    IxKind      kind;
    int32_t     id;     /* order of making; sorts terms */
    int32_t     depth;  /* of the innermost loop or block that it depends on */
    int64_t     lo, hi; /* inclusive */
    const char *name;   /* LOOP */
    const void *owner;  /* LOOP: the loop, VALUE: the scalar, both the lowering's */
    const Ix   *arg;    /* DIV, MOD: floor(arg / by), arg - by * floor(arg / by) */
    int64_t     by;
};

typedef struct IxTerm {
    int64_t       k;
    const IxAtom *atom;
} IxTerm;

struct Ix {
    int64_t c;
    int32_t n;
    IxTerm  t[];
};

typedef struct IxCtx {
    Arena   *arena;
    int32_t  n_atoms;
    struct IxSlot *divisions; /* DIV and MOD atoms made so far */
    void   (*split)(void *cookie, const IxAtom *loop, int64_t inner, int64_t lead); /* NULL, or told that (loop - lead) % inner or (loop - lead) / inner stays */
    bool     digits;      /* inside ix_split: others are told of no lead */
    void    *cookie;
} IxCtx;

IxCtx ix_context(Arena *a);

/* A new loop variable or run-time scalar with values lo..hi. */
const IxAtom *ix_new_atom(IxCtx *cx, IxKind kind, const char *name, int64_t lo, int64_t hi, int32_t depth, const void *owner);

const Ix *ix_const(IxCtx *cx, int64_t c);
const Ix *ix_of(IxCtx *cx, const IxAtom *atom); /* a constant when its range is one value */
const Ix *ix_add(IxCtx *cx, const Ix *a, const Ix *b);
const Ix *ix_plus(IxCtx *cx, const Ix *a, int64_t c);
const Ix *ix_times(IxCtx *cx, const Ix *a, int64_t k);
const Ix *ix_div(IxCtx *cx, const Ix *a, int64_t by); /* floor, by > 0 */
const Ix *ix_mod(IxCtx *cx, const Ix *a, int64_t by); /* in [0, by) */
/* a with atom replaced by v everywhere, inside divisions too. */
const Ix *ix_replace(IxCtx *cx, const Ix *a, const IxAtom *atom, const Ix *v);

/* Mixed radix: linear = sum of index[d] * stride, and back into n digits (last fastest). */
const Ix *ix_linear(IxCtx *cx, int32_t n, const Ix *const *index, const int64_t *dims);
void      ix_split(IxCtx *cx, const Ix *linear, int32_t n, const int64_t *dims, const Ix **index);

bool    ix_equal(const Ix *a, const Ix *b);
bool    ix_is_const(const Ix *a, int64_t *c);
void    ix_range(const Ix *a, int64_t *lo, int64_t *hi); /* inclusive */
int64_t ix_coef(const Ix *a, const IxAtom *atom);
bool    ix_has(const Ix *a, const IxAtom *atom); /* also inside divisions */
bool    ix_is_line(const Ix *a, const IxAtom *loop); /* places that the loop meets lie one behind the other, or are one */
int32_t ix_depth(const Ix *a);
uint64_t ix_hash(uint64_t h, const Ix *a);

#endif
