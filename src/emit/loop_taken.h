/* Elements that an innermost loop takes at places which it computes: gathers. Compilers make no vectors of such loops, or gathers, in which processors take no less time for
 * each element and several operations for its place. So blocks of places are computed first, in vectors, then their elements are taken one by one; what is made of these is vectors again.
 *
 *     for i < n: r[i] = f(t[clamp(x[i])])
 *     =>  for from < n, by 256: { for k < 256: place[k] = clamp(x[from + k]);  take(taken, t, place, 256);  for k < 256: r[from + k] = f(taken[k]) }
 *
 * Where something takes long to compute, elements of a loop that goes across lines are taken likewise, by steps instead of places: compilers make vectors of some such loops alone
 * (exp(x^T y) + x^T of 1000 x 64 168 and 49 us, a choice between functions of every sixth element 56 and 12).
 *
 * What is only stored is taken to where it is stored. All places of a block are computed before anything of it is stored, so they depend on nothing that the loop stores. */
#ifndef EMIT_LOOP_TAKEN_H
#define EMIT_LOOP_TAKEN_H

#include "emit/kernel_ir.h"

enum { MOST_TAKEN = 16, MOST_STATEMENTS = 192 /* of the loop */ };

typedef struct Taken {
    KArray      *array;
    const Ix    *index;
    int64_t      by;     /* 0, or from one to the next, where the loop goes across lines */
    int32_t      place;  /* if 0: the number of its places, which several may have in common */
    const KStmt *to;     /* the store that is all that wants it; NULL: it is kept in an array of the block */
    bool         half;   /* f16, of which nothing but its value is wanted */
} Taken;

typedef struct LoopTaken {
    int32_t n, n_places;
    Taken   v[MOST_TAKEN];
    const Ix *places[MOST_TAKEN];
    int32_t n_statements;
    uint8_t role[MOST_STATEMENTS]; /* of each of the loop's statements: bits */
} LoopTaken;

enum { TAKEN_PLACING = 1 /* computes places */, TAKEN_REST = 2 /* something else wants it, or it stores */, TAKEN_KEPT = 4 /* both, and so dear that the block keeps it */ };

/* False: there are none, or the loop cannot be changed so. */
bool loop_taken(const KStmt *loop, LoopTaken *t);

/* The number of what x loads; -1: none of them. */
int32_t taken_load(const LoopTaken *t, const KExpr *x);

/* Bytes of a block's arrays for each iteration. */
int64_t taken_bytes(const LoopTaken *t);

#endif
