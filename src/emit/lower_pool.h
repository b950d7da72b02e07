/* lower_window.c and lower_running.c: a reduce-window that is lowered. */
#ifndef EMIT_LOWER_POOL_H
#define EMIT_LOWER_POOL_H

#include "emit/lower.h"

typedef struct Pool {
    const Inst    *x;
    int32_t        n;
    KArray *const *to;
    Type          *types;  /* of the accumulators: the reducer's parameters */
    KTemp        **acc;
    KArray       **block;
    int32_t        column; /* the fastest dimension when it has no window, or neighbours along it are reduced together, else -1 */
    int32_t        running; /* the dimension along which each result is the one before and one element more, else -1 */
    bool           backwards; /* the one behind */
    bool           slides;   /* neighbouring windows along `column` are reduced together; window is without that */
    bool           in_turn;  /* likewise, but each takes its elements in their order */
    const Window  *window;
    bool           single;   /* it has no other */
    int64_t        first;    /* of all blocks' windows */
    const Ix      *from, *end, *base; /* sliding: the elements of the block that are there, and where its first one is */
    int64_t        width;
    int64_t        n_lanes; /* 0: none */
    KArray        *lanes;
    const Ix      *lane;
} Pool;

/* Element `at` of its k'th operand, the k'th start, in the reducer's types. */
const KExpr *pool_operand(Lower *L, const Pool *p, int32_t k, const Ix *const *at);
const KExpr *pool_start(Lower *L, const Pool *p, int32_t k);
/* What changes nothing: of an extreme its first value, which may be taken as often as one likes. */
const KExpr *pool_neutral(Lower *L, const Pool *p);
/* The accumulators to the results' elements. */
void pool_store(Lower *L, const Pool *p, const Ix *const *index);
/* May the elements be taken in any order? Narrow floats round too much for that. */
bool pool_may_regroup(const Pool *p);

/* lower_running.c: lowers a running window for many threads. False: it has another form. */
bool pool_runs_in_pieces(Lower *L, Pool *p);

#endif
