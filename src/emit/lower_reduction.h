/* lower_reduction.h - between the files that lower reduce: what they know of a reduction, its elements, and loops over blocks of them. */
#ifndef EMIT_LOWER_REDUCTION_H
#define EMIT_LOWER_REDUCTION_H

#include "analysis/choice.h"
#include "emit/lower.h"

/* Loops of one instruction: plan_dims. */
enum { ROLE_KEPT = 1, ROLE_REDUCED = 2, ROLE_COLUMN = 4, ROLE_BLOCKS = 5, ROLE_BLOCK = 6, ROLE_REST = 7, ROLE_BEFORE_REST = 8, ROLE_AGAIN = 9,
       ROLE_PAIRS = 10, ROLE_LAST_ROW = 11, ROLE_NARROW = 12, ROLE_ABREAST = 16, ROLE_LAST_ROWS = 32 /* on top of the block's */ };

typedef struct Reduction Reduction;
struct Reduction {
    const Inst       *x;
    Reduction        *next;    /* another one that the same loops make */
    int32_t           n;       /* arrays */
    const Shape      *in;
    Ints              dims;    /* reduced */
    int32_t           n_reduced;
    int32_t          *reduced; /* most major first in memory */
    int32_t           joined;  /* so many of them, from number n_reduced - 1 on, are one loop */
    int64_t          *extents;
    int64_t           count;   /* elements a result */
    Op                op;      /* when the body is one operation */
    const Ix        **at;      /* operand index: kept dimensions set */
    KTemp           **acc;
    Type             *carry;   /* element type that the accumulators have */
    const Ix        **base;    /* of the first one's reduced dimensions: where the loops of a block begin */
    KArray           *lanes;   /* NULL: none */
    Choice            choice;  /* of pairs of an f32 and a number of 32 bits */
    KArray           *numbers; /* its other lanes */
    KArray           *last;    /* what is left of a row, before sums leave out of it what they have */
    KArray           *odd;     /* lanes that say whether there was a NaN; NULL: that does not matter */
    KArray          **block;   /* of column accumulators */
    KArray           *total;   /* what the sums of blocks are added to; NULL: none */
    KArray           *sums;    /* of an extreme's lanes: NaN if there was one */
    KArray *const    *to;      /* in a stage: the arrays */
    bool              paired;  /* rows are made two at a time, if there is another one */
    bool              own_row; /* `at` is its own, not the first one's: several rows are made at a time */
    bool              extremes_of_memory; /* it is one, and its elements lie in memory */
    bool              plain;   /* of kernel_lower */
    bool              beside;  /* rows are beside each other: the loop along one has no lanes */
    bool              down;    /* it is one of L->columns */
    KTemp            *part;    /* down: what a block of a long sum is added to; NULL: not in a block */
    bool              fills;   /* the loops of this sum keep the row that they go through, on their way: row_fill */
    bool              shows_nan; /* what is made of this extreme is NaN where its row has one, which it need not look for */
};

/* The loops over reduced dimensions, cut into blocks: those before number d, extents[d] / size blocks, in each of them size of d and all that follow. */
typedef struct Blocks Blocks;
struct Blocks {
    Reduction *first;
    int32_t    d;       /* -1: all of it is one block */
    int64_t    size;
    int64_t   *extents; /* rounds of each loop */
    int        role;    /* of the loops that block gets */
    int64_t    abreast; /* down the columns: so many rows at a time, */
    int64_t    row;     /* beginning here besides */
    void     (*block)(Lower *L, Blocks *b, int32_t n, LoopDim *dims); /* the last n loops, which have these sizes; base is set */
    void      *cookie;
};

/* ---- lower_reduction.c ---- */

/* paired: its row is made beside another one of it; joined: so many of the fastest dimensions that it reduces are one; alone: its loops make nothing besides */
Reduction reduction_of(Lower *L, const Inst *x, bool paired, int32_t joined, bool alone);
Reduction *reductions_of(Lower *L, const Inst *x, int32_t n, const Inst *const *others); /* of x and of what its loops make besides */

/* Of result k. */
const Shape *reduction_shape(const Inst *x, int32_t k);

/* One value, or pair, taken of parts in any order; some that can want none. */
bool reduction_can_have_lanes(const Reduction *r);
bool reductions_want_lanes(const Reduction *r);
int64_t reductions_lanes(const Reduction *first);

/* Extremes of long rows of floats in memory, in a stage of their own: what is computed is not worth computing again. */
bool reduction_wants_sums(const Reduction *r);

/* The fastest dimension of the operand when it is kept, else -1. */
int32_t reduction_column(const Reduction *r);

/* Elements of x that are neighbours along its n fastest dimensions are made of neighbours, whether those dimensions are one or several. */
bool reduction_neighbours(Lower *L, const Inst *x, int32_t n);

/* Whether what the loops make is little more than loads. */
bool reductions_are_cheap(Lower *L, const Reduction *first);

/* The index of the result: sets `at`. */
void reduction_set_kept(Reduction *r, const Ix *const *index);
const Ix **reduction_index(Lower *L, const Reduction *r, const Ix *const *index); /* of an element, by that of the loops over reduced dimensions */

/* Values: of result k at first; what changes no sum, or no product, that begins so; the larger or the smaller one, acc where either is NaN; body(acc, x), of n values each; the elements at an index, those of a sum as sum_type. */
const KExpr *reduction_start(Lower *L, const Reduction *r, int32_t k);
const KExpr *reduction_nothing(Lower *L, const Reduction *r, Type t);
const KExpr *reduction_extreme(Lower *L, const Reduction *r, const KExpr *acc, const KExpr *x);
void reduction_combine(Lower *L, const Reduction *r, const KExpr *const *acc, const KExpr *const *x, const KExpr **out);
const KExpr **reduction_elements(Lower *L, const Reduction *r, Type sum_type, const Ix *const *at);

/* acc = body(acc, the element at `at`) */
void reduction_step(Lower *L, const Reduction *r, const Ix *const *at);

/* Blocks of a sum are summed in f32. */
bool reduction_wants_blocks(const Reduction *r);
bool reductions_want_blocks(const Reduction *r);
void blocks_cut(Blocks *b);

/* Calls b->block for each block, or once for all of it. */
void blocks_each(Lower *L, Blocks *b);
void blocks_set_base(Blocks *b, const Ix *const *before, const Ix *from); /* before: indices of the loops around */

/* Where r is in a block's loops: index has the last ones, base says where those begin and what the others are. With a lane the last one counts rounds of lanes. */
const Ix **blocks_place(Lower *L, const Blocks *b, const Reduction *r, const Ix *const *index, const Ix *lane);

/* ---- lower_lanes.c ---- */

void reduce_in_lanes(Lower *L, Reduction *first);
KArray *lanes_new(Lower *L, Type t, int64_t n, const KExpr *start, const char *name); /* n of them, each `start` */
void lanes_add(Lower *L, KArray *total, KArray *block); /* total[l] += block[l], in the wider type */

/* ---- lower_columns.c ---- */

/* A stage: results whose dimension `column` of the operand, which they keep, is the fastest one, go to `to` of each. */
void reduce_in_columns(Lower *L, Reduction *first, int32_t column);

#endif
