/* Inside lowering. One instruction becomes stages: loop nests that each compute one array (a result or working memory) from
 * arrays that exist by then. What lies between is expanded per element: value_at(x, index) gives the scalar x[index], made of loads at
 * indices that follow from index, each instruction's value named once per loop body.
 *
 * Lowering is tried a few times. A try learns which loops to cut (so that no division remains), where to break their range (so that no
 * condition remains) and what has to be kept in working memory (so that nothing is computed over and over), and the next
 * one does so. Plan is what is learned. */
#ifndef EMIT_LOWER_H
#define EMIT_LOWER_H

#include "analysis/columns.h"
#include "emit/kernel_ir.h"

/* One dimension that is looped over: extent = product of the loops it is cut into. */
enum { MAX_SPLITS = 20, MAX_CUTS = 64 };
typedef struct Cut { int64_t stride, at; } Cut; /* the loop of that stride breaks before value at */
typedef struct LoopDim {
    int64_t extent;
    int64_t lead; /* so many go before the first of the cut loops' */
    int32_t n_splits;
    int64_t splits[MAX_SPLITS]; /* ascending, each divides the next and the extent without lead (one that does not is alone): strides of the cut loops */
    int32_t n_cuts;
    Cut     cuts[MAX_CUTS];
    bool    fixed; /* belongs to a tiled nest: neither splits nor cuts */
} LoopDim;

typedef struct LoopRef { /* owner of a loop's atom */
    LoopDim *dim;
    int64_t  stride;
} LoopRef;

typedef struct Plan {
    Arena *arena;
    Map    dims;        /* see plan_dims */
    Map    materialise; /* Inst -> non-NULL: gets an array of its own */
    Map    divisors;    /* Inst -> non-NULL: what rows are divided by */
    Map    rows;        /* Inst -> RowDims: the rows of it that are kept: lower_rows.c */
    Map    norms;       /* Inst -> Comp: batch normalizations as computations */
    const Comp *body;   /* what is lowered as a fusion's body, or NULL */
    const Device *device; /* of kernel_lower */
    bool   plain, any_order, ranges; /* whether there is one; of kernel_lower */
    bool   whole_updates; /* a try has found that updates whose place is known are not in place: the result is made element by element, each once */
    bool   not_beside; /* a try has found that short rows cannot go beside each other */
    bool   no_epilogue; /* a try has found that what a hero makes is not wanted element by element: lower_epilogue.c */
    const Inst *tile_hero; /* NULL, or of kernel_lower_tile */
    int64_t     tile_row;
    bool        tile_alone; /* of kernel_lower_element */
} Plan;

typedef struct Epilogue Epilogue;
typedef struct Behind Behind;

/* One of a fusion's results. */
typedef struct Result {
    const Inst *x;
    int32_t     leaf;
    KArray     *to;
    bool        beside; /* a value of each row of another result, stored in the loops of that one, */
    const KBlock **rows; /* once it is: ElementStage.row of those */
} Result;

typedef struct RowDims { int32_t n, *d; } RowDims; /* dimensions that go through a row, the others choose one */

typedef struct WantedRow { const Inst *x; const RowDims *row; } WantedRow;

typedef struct InPlace { int32_t result, operand; /* numbers of parameters */ bool known; /* where the update goes */ } InPlace;

typedef struct Lower {
    Arena      *arena;
    Diag       *diag;
    const Inst *inst;
    const Comp *body; /* of a fusion or of what is lowered like one, else NULL */
    Kernel     *k;
    IxCtx       ix;
    KBlock     *cur;
    Map         memory; /* Inst -> KArray **: leaves that are in memory */
    Map         inlined; /* Inst -> Literal: parameters that are constants outside */
    Map         memo;
    Map         divisors; /* of lower_quotient.c */
    Map         chosen, computed, kept_rows; /* of lower_rows.c: what maximums are taken of; places where values were computed, are kept */
    VEC(WantedRow) wanted_rows; /* values that this try has found to be computed in several loops of one row */
    VEC(const Inst *) repeated; /* reductions that would run again and again where this try asked for them */
    bool      keeps_more; /* the next try keeps rows that this one did not */
    const Inst *filling;  /* the row of this is being made */
    const Inst *consumer; /* the reduction or the kept row that the innermost loops are of; NULL: the kernel's results */
    Plan       *plan;
    Result     *results;  /* of a body, n_results of the kernel */
    Epilogue   *epilogue; /* NULL: none */
    const Inst *columns;  /* a reduction down columns that the body wants in the columns again: emit/columns.h; NULL: none */
    bool      beside;   /* short rows, which go beside each other: emit/beside.h */
    bool      looped;   /* elements go through all trips of a loop: emit/element_loop.h */
    Map       behind;   /* of lower_together.c, as are the reductions of the body */
    VEC(const Inst *) reductions;
    VEC(KArray *) arrays;
    VEC(InPlace)  in_place; /* the copy is under a test that they are distinct */
    VEC(Cut *)  probe;    /* while probing: cuts asked for */
    LoopDim    *probed;   /* the loop whose cuts are looked for */
    int64_t     probed_stride;
    bool        again, failed;
    bool        nan_last; /* comparisons that are applied make one order of all floats */
    int32_t     nested;   /* value_at inside value_at */
    int64_t     work;     /* values expanded so far */
    int64_t     local_bytes; /* of arrays on the stack */
    int32_t     serial;
} Lower;

enum { MAX_NESTED = 40, MAX_WORK = 200000, MAX_BODY = 2000, MAX_BRANCHES = 16, LOCAL_BYTES = 16384,
       MOST_LOCAL_BYTES = 20 * LOCAL_BYTES /* a row as large as is kept, and lanes */ };

/* lower_block.c: where statements go. */
const IxAtom *loop_open(Lower *L, int64_t lo, int64_t end, LoopDim *dim, int64_t stride);
bool          loop_between(Lower *L, const Ix *from, const Ix *end, const Ix **i); /* bounds may depend on loops around; false: always empty */
void          if_open(Lower *L, const KExpr *cond);
void          if_else(Lower *L);
void          repeat_open(Lower *L); /* a loop without end, left by break_unless in its own block */
void          break_unless(Lower *L, const KExpr *cond);
void          block_open(Lower *L); /* of its own: what is in it stays in it */
void          block_close(Lower *L);
KBlock       *block_for(Lower *L, int32_t depth); /* the outermost open block that sees everything of that depth */
const KExpr  *bind(Lower *L, const KExpr *x, const char *name); /* a temporary, declared as far out as x allows */
const KExpr  *frozen(Lower *L, const KExpr *x, const char *name); /* as it is now, even when it is assigned again */
KTemp        *accumulator(Lower *L, const KExpr *init, Type t, const char *name); /* declared in the current block */
void          assign(Lower *L, KTemp *t, const KExpr *x);
void          store(Lower *L, KArray *array, const Ix *index, const KExpr *value); /* value encoded for the array's type */
const KExpr  *load(Lower *L, KArray *array, const Ix *index);                       /* decoded */
/* What changes while the block runs, as it is now: nothing made from these is moved out of the current block. */
const KExpr  *current(Lower *L, KTemp *t);
const KExpr  *load_current(Lower *L, KArray *array, const Ix *index);
KArray       *local_array(Lower *L, Type t, int64_t count, const char *name);       /* in the current block */
KArray       *temp_array(Lower *L, const Shape *s, const char *name);                /* local in the kernel's body, or working memory */
KArray       *stage_array(Lower *L, const Shape *s, const char *name);               /* likewise, for what a stage leaves to later ones */
KArray       *shared_array(Lower *L, const Shape *s, const char *name);              /* working memory, which threads may share */
void          copy_array(Lower *L, KArray *to, KArray *from); /* of the same shape */
void          store_at(Lower *L, KArray *array, const Ix *const *index, const KExpr *value);
const Ix     *shape_index(Lower *L, const Shape *s, const Ix *const *index);        /* element offset by its layout */

/* A nest of loops over dims[order[0]] (outermost) ... ; body gets one index per dimension. Loops are cut and broken as planned. */
typedef void NestBody(Lower *L, void *cookie, const Ix *const *index);
void     nest(Lower *L, int32_t n, LoopDim *dims, const int32_t *order, NestBody *body, void *cookie);
/* The loops of an instruction, kept from try to try; role tells several sets apart. */
LoopDim *plan_dims(Lower *L, const Inst *x, int role, int32_t n, const int64_t *extents);
/* Loop order of a shape: most major dimension first. */
int32_t *major_order(Lower *L, const Shape *s);
/* The IxCtx.split of lowering. */
void     lower_split(void *cookie, const IxAtom *loop, int64_t inner, int64_t lead);
/* lo <= x < end: 1 always, 0 never, -1 open (and the loops that x depends on are asked to break there). */
int      in_range(Lower *L, const Ix *x, int64_t lo, int64_t end);

/* lower_scalar.c: arithmetic on scalars. Operand types are HLO's, expressions have their machine types. */
const KExpr *scalar_op(Lower *L, const Inst *x, const Type *types, const KExpr *const *args);
bool         scalar_op_supported(const Inst *x);
const KExpr *scalar_convert(Arena *a, Type from, Type to, const KExpr *x);
const KExpr *scalar_binary(Arena *a, Op op, Type t, const KExpr *x, const KExpr *y);
const KExpr *scalar_round(Arena *a, Type t, const KExpr *x); /* to the precision of t */
const KExpr *scalar_round_near(Arena *a, Type t, const KExpr *x); /* likewise what an operation makes of numbers of t: a NaN is one of those or the processor's */
const KExpr *scalar_decode(Arena *a, Type t, const KExpr *raw);
bool scalar_in_bf16(const KExpr *x);                           /* bf16 has all that an f32 so made can be */
bool scalar_in_f16(const KExpr *x);
const KExpr *scalar_encoded(Arena *a, Type t, const KExpr *x); /* in t's format if that is at hand, else NULL */
const KExpr *scalar_encode(Arena *a, Type t, const KExpr *x);
const KExpr *scalar_bits(Arena *a, Type t, const KExpr *x);       /* as an unsigned integer of t's width (at least 8) */
const KExpr *scalar_from_bits(Arena *a, Type t, const KExpr *x);
const KExpr *scalar_order_key(Arena *a, Type t, const KExpr *x); /* orders as t does, floats by their total order */
const KExpr *scalar_constant(Arena *a, const Literal *l, int64_t i);
const KExpr *scalar_zero(Arena *a, Type t);
const KExpr *scalar_one(Arena *a, Type t);

/* lower_chosen.c: x in a relation to y, numbers of t, and what a select takes of args, without floats; NULL: they are needed. */
const KExpr *compare_chosen(const Lower *L, Word direction, Type t, const KExpr *x, const KExpr *y);
const KExpr *select_chosen(Lower *L, const Inst *x, const KExpr *const *args);

/* lower_quotient.c: args[0] / args[1], which are x's operands at index, without a division in the innermost loop; NULL: the divisor changes there, or nothing is gained. */
const KExpr *quotient(Lower *L, const Inst *x, const KExpr *const *args, const Ix *const *index);
void         quotients_begin(Lower *L); /* what earlier tries have found to be divided by in each row */

/* lower_apply.c: called computations from scalars to scalars. out gets one value per leaf of the root. Bound temporaries, a root left open. */
void apply(Lower *L, const Comp *c, const KExpr *const *args, const KExpr **out);
bool apply_supported(const Comp *c, const Inst *caller, Diag *d);
/* Marks what the root of c needs. */
Map  apply_needed(Lower *L, const Comp *c);
/* The one operation of a computation that is root = op(p0, p1), or OP_COUNT. */
Op   apply_operation(const Comp *c);

/* lower_body.c: what apply does with loops, branches and arrays. */
void apply_body(Lower *L, const Comp *c, const KExpr *const *args, const KExpr **out);

/* lower_value.c: elements. A leaf is one of the arrays of a shape, counted depth first. */
const KExpr *value_at(Lower *L, const Inst *x, int32_t leaf, const Ix *const *index);
const KExpr *open_value_at(Lower *L, const Inst *x, int32_t leaf, const Ix *const *index); /* the last operation without a name */
bool         value_is_known(Lower *L, const Inst *x, int32_t leaf, const Ix *const *index);
void         known_value(Lower *L, const Inst *x, int32_t leaf, const Ix *const *index, const KExpr *v); /* x[index] is v */
const Inst  *resolve(const Lower *L, const Inst *x, int32_t *leaf); /* through tuples, as far as what is in memory */
const Shape *shape_leaf(const Shape *s, int32_t leaf);
KArray      *memory_of(Lower *L, const Inst *x, int32_t leaf); /* NULL: has to be computed */
bool         is_pointwise(const Inst *x); /* value_at can expand it */
void         need_memory(Lower *L, const Inst *x);
Type         index_type(const Lower *L, int64_t hi); /* of values that are indices in 0..hi */
const Ix    *clamped_index(Lower *L, const KExpr *x, const Inst *of, int64_t hi, const char *name); /* a run-time index in 0..hi, made by `of`, or one of its elements */
const Ix   **update_starts(Lower *L, const Inst *x); /* clamped start indices of a dynamic-update-slice */
const KExpr *keep(Lower *L, const Inst *x, const KExpr *v); /* gives a bare load of x a name when it will be used again */

/* lower_reduce.c */
bool reduces_short_rows(const Inst *r, bool more); /* which lie together, many of them: emit/beside.h; more: more is made of them than that */
void reduce_at(Lower *L, const Inst *x, const Ix *const *index, const KExpr **out);
bool reduce_is_inline(Lower *L, const Inst *x, const Ix *const *index);
int32_t index_depth(const Ix *const *index, int32_t rank); /* of the innermost loop in it */

/* lower_together.c: reductions that are made in the loops of x, at the same index or in the same stage. */
enum { MOST_TOGETHER = 7 };
void    together_begin(Lower *L);
int32_t together_inline(Lower *L, const Inst *x, const Ix *const *index, const Inst **others);
int32_t together_staged(Lower *L, const Inst *x, const Inst **others);

/* lower_rows.c: values that a fusion needs in several loops of one row. */
void         rows_begin(Lower *L);
void         rows_end(Lower *L); /* what the next try keeps */
void         row_note(Lower *L, const Inst *x, const Ix *const *index, KBlock *block); /* x[index] was computed in block */
bool         same_index(const Ix *const *a, const Ix *const *b, int32_t n);
bool         row_is_kept(const Lower *L, const Inst *x);
/* Rows of x will be kept along dims, and none is there. The loops that are opened after row_fill go through each element of the row of x at index, some twice, and nothing else asks for
 * one before row_is_full: they fill the row. NULL: under a condition. */
typedef struct RowPlace RowPlace;
bool         row_is_to_come(const Lower *L, const Inst *x, Ints dims);
RowPlace    *row_fill(Lower *L, const Inst *x, const Ix *const *index);
void         row_is_full(RowPlace *p);
const KExpr *row_value(Lower *L, const Inst *x, const Ix *const *index); /* x[index] of what is kept; NULL: it has to be computed here */

/* lower_epilogue.c: what a fusion makes of its hero's elements. */
void epilogue_begin(Lower *L); /* finds a hero */
bool epilogue_has(const Lower *L, const Inst *x); /* the hero, or made of its elements */
void epilogue_stage(Lower *L);
int64_t epilogue_step(const Lower *L, const Inst *x, int32_t dim); /* of x's results along dim so many, or a multiple, belong together */
bool epilogue_follow(Lower *L, const Inst *hero, const Ix **at); /* from that element of the hero; false: that is not how it is wanted */
const Ix *const *epilogue_index(const Lower *L, const Inst *x); /* the element of x that it leads to; NULL: none */
void store_result(Lower *L, const Inst *x, KArray *to, const Ix *const *index, const KExpr *value); /* x[index], of x's type, is finished */

/* lower_tile.c: kernel_lower_tile. */
void tile_param(Lower *L); /* the sums, behind the operands */
void tile_stage(Lower *L); /* fails when it cannot be */
void tile_finish(Kernel *k);
int64_t tile_shorter_row(const Kernel *k); /* a row without divisions in its loop, or 0: there is none */

/* lower.c. Stages: x into its arrays, one a leaf. */
const Shape **leaves_of(Arena *a, const Shape *s, int32_t *n); /* the arrays of a shape, in order */
void stage(Lower *L, const Inst *x, KArray *const *to);
void stage_loops(Lower *L, int32_t n, const Inst *const *x, const int32_t *leaf, KArray *const *to);
void stage_concatenate(Lower *L, const Inst *x, KArray *const *to);
void stage_reduce(Lower *L, int32_t n, const Inst *const *x, KArray *const *const *to); /* n in the same loops */
void stage_dot(Lower *L, const Inst *x, KArray *const *to);
void stage_update(Lower *L, const Inst *x, KArray *const *to);             /* dynamic-update-slice */
const Inst *behind_bitcasts(const Lower *L, const Inst *x); /* what x is the same memory as */
void stage_scatter(Lower *L, const Inst *x, KArray *const *to);
void stage_select_and_scatter(Lower *L, const Inst *x, KArray *const *to);
void stage_reduce_window(Lower *L, const Inst *x, KArray *const *to);
void stage_convolution(Lower *L, const Inst *x, KArray *const *to);
void stage_fft(Lower *L, const Inst *x, KArray *const *to);
void stage_sort(Lower *L, const Inst *x, KArray *const *to);
void stage_topk(Lower *L, const Inst *x, KArray *const *to);
void stage_cholesky(Lower *L, const Inst *x, KArray *const *to);
void stage_triangular_solve(Lower *L, const Inst *x, KArray *const *to);
void stage_rng_bit_generator(Lower *L, const Inst *x, KArray *const *to);
void stage_element_loop(Lower *L, const Inst *x, KArray *const *to); /* a while; leaves whose array is NULL are not wanted */

/* lower_check.c: whether x can be lowered inside a fusion or an applied computation; else reports. */
bool        fused_supported(const Inst *x, Diag *d);

/* lower_norm.c: a batch normalization as a computation of ordinary instructions, in a module that lives as long as a. Those of its instructions that
 * want an array of their own are put into materialise. */
bool        norm_supported(const Inst *i, Diag *d);
const Comp *norm_body(Arena *a, const Inst *i, Map *materialise);
bool        is_norm(const Inst *i);

/* lower_window.c: body gets the index of each element of in that the window at out covers. wide: it does so much that loops with bounds of their own cost nothing beside it. */
void over_window(Lower *L, const Inst *x, const Shape *in, const Window *window, const Ix *const *out, bool wide, NestBody *body, void *cookie);

/* The fastest dimension of x's operand 0, if x's window leaves it alone, else -1; and a loop over blocks of it: body gets the index of a block's first element. */
typedef void ColumnBody(Lower *L, void *cookie, const Ix *const *index, int64_t width);
int32_t free_column(const Inst *x);
const Ix *clip(Lower *L, KOp op, const Ix *x, int64_t c, const char *name); /* the greater (KOP_GT) or the lesser (KOP_LT) of x and c */
void in_column_blocks(Lower *L, const Shape *shape, int32_t column, const Ix *const *index, ColumnBody *body, void *cookie);

/* lower_update.c: an update whose place is known. */
bool is_placed_update(const Inst *x);

/* What has a stage of its own wherever it stands. */
bool is_staged(const Inst *x);

/* lower_dot.c: for products. */
bool    is_cheap(Lower *L, const Inst *x); /* may be expanded for every use */
int64_t tile_width(int64_t n, int64_t wanted, int64_t least);

#endif
