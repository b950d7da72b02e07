/* reduce. Along a row the accumulator is a scalar, or for sums, products and extremes of floats a set of lanes, so that the loop has no chain of
 * dependent operations and adds numbers of like size:
 *
 *   float lane[16] = 0;  for r: for l: lane[l] += x[r*16 + l];  for l < 8: lane[l] += lane[l + 8];  ...  sum = init; for l < 4: sum += lane[l]
 *
 * The pairs of argmax and its like (analysis/choice.h) have lanes of values and lanes of numbers. Where the body minds NaN, a row with one is gone through again
 * in order.
 *
 * Down the columns a block of accumulators is carried along the rows, a few of them at a time, which memory brings beside each other:
 *
 *   for r: for j: acc[j] = acc[j] + x[4*r][j] + x[4*r + 1][j] + x[4*r + 2][j] + x[4*r + 3][j]
 *
 * Sums of more than CHAIN numbers one after another are cut into blocks of at most that many, whose sums are added up in f64:
 *
 *   double total[16] = 0;  for b: { float lane[16] = 0;  for r: for l: lane[l] += x[(b*R + r)*16 + l];  for l: total[l] += lane[l]; }
 *
 * The order is fixed by the shape.
 *
 * Extremes in lanes do not look for NaN at each element: lanes of sums beside them tell whether there may have been one, and then the row is gone through again.
 *
 * Extremes of long rows that a cache holds are made two at a time, so that two chains of them and of sums go on at once. From memory one stream is faster: what is
 * fetched ahead of a row is the next one.
 *
 * In a body that wants the results down the columns again (analysis/columns.h) a column is like a row, without lanes: columns.c puts columns beside each other.
 *
 * Reductions of a fusion that go over the same elements are made in the same loops, each with accumulators of its own (lower_together.c). */
#include "analysis/choice.h"
#include "analysis/softmax.h"
#include "emit/lower.h"

enum { ROLE_KEPT = 1, ROLE_REDUCED = 2, ROLE_COLUMN = 4, ROLE_BLOCKS = 5, ROLE_BLOCK = 6, ROLE_REST = 7, ROLE_BEFORE_REST = 8, ROLE_AGAIN = 9,
       ROLE_PAIRS = 10, ROLE_LAST_ROW = 11, ROLE_ABREAST = 16, ROLE_LAST_ROWS = 32 /* on top of the block's */ };
enum { MANY_SHARE = 8192, CHAIN = 256 /* numbers at most that are added one after another in f32 */, COLUMN_BYTES = 16384 /* of accumulators */,
       ROWS_ABREAST = 4, FEW = 4 /* lanes that are joined one by one */, LONG_ROW = 1024, SECOND_CACHE = 1 << 20 /* bytes */,
       MANY_LANES = 256 /* elements at least of rows whose lanes are several vectors */ };

typedef struct Reduction Reduction;
struct Reduction {
    const Inst       *x;
    Reduction        *next;    /* another one that the same loops make */
    int32_t           n;       /* arrays */
    const Shape      *in;
    Ints              dims;    /* reduced */
    int32_t           n_reduced;
    int32_t          *reduced; /* most major first in memory */
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
    KArray           *odd;     /* lanes that say whether there was a NaN; NULL: that does not matter */
    KArray          **block;   /* of column accumulators */
    KArray           *total;   /* what the sums of blocks are added to; NULL: none */
    KArray           *sums;    /* of an extreme's lanes: NaN if there was one */
    KArray *const    *to;      /* in a stage: the arrays */
    bool              paired;  /* rows are made two at a time, if there is another one */
    bool              own_row; /* `at` is its own, not the first one's: two rows are made at a time */
    bool              extremes_of_memory; /* it is one, and its elements lie in memory */
    bool              plain;   /* of kernel_lower */
    bool              down;    /* it is one of L->columns */
    KTemp            *part;    /* down: what a block of a long sum is added to; NULL: not in a block */
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
    int64_t    abreast; /* of column_body: so many rows at a time, */
    int64_t    row;     /* beginning here besides */
    void     (*block)(Lower *L, Blocks *b, int32_t n, LoopDim *dims); /* the last n loops, which have these sizes; base is set */
    void      *cookie;
};

static const Shape *leaf_shape(const Inst *x, int32_t k)
{
    return shape_is_tuple(x->shape) ? x->shape->elems[k] : x->shape;
}

static bool is_sum(const Reduction *r)
{
    return r->n == 1 && r->op == OP_ADD && (type_is_float(leaf_shape(r->x, 0)->type) || type_is_complex(leaf_shape(r->x, 0)->type));
}

/* The choice of pairs that r makes, if lanes are of one size. */
static Choice choice_made(const Reduction *r)
{
    const Comp *c = inst_callee(r->x, 0);
    if (r->plain || r->n != 2 || leaf_shape(r->x, 0)->type != TYPE_F32 || (leaf_shape(r->x, 1)->type != TYPE_S32 && leaf_shape(r->x, 1)->type != TYPE_U32))
        return CHOICE_NONE;
    for (int32_t k = 0; k < 2; k++)
        if (c->params[k]->shape->type != leaf_shape(r->x, k)->type || c->params[2 + k]->shape->type != leaf_shape(r->x, k)->type)
            return CHOICE_NONE;
    return choice_of(c);
}

/* One value, or pair, taken of parts in any order. */
static bool can_have_lanes(const Reduction *r)
{
    Type t = leaf_shape(r->x, 0)->type;
    bool op = r->op == OP_ADD || r->op == OP_MULTIPLY || r->op == OP_MAXIMUM || r->op == OP_MINIMUM;
    bool one = r->n == 1 && op && !type_is_complex(t);
    return !r->plain && !r->down && (one || r->choice) && r->n_reduced > 0 && r->extents[r->n_reduced - 1] >= 64;
}

/* Compilers make lanes of integers by themselves. */
static bool wants_lanes(const Reduction *r)
{
    return can_have_lanes(r) && type_is_float(leaf_shape(r->x, 0)->type);
}

/* Extremes of long rows of floats in memory, in a stage of their own: what is computed is not worth computing again. */
static bool wants_sums(const Reduction *r)
{
    return wants_lanes(r) && r->to && r->extents[r->n_reduced - 1] >= LONG_ROW && r->extremes_of_memory;
}

static bool any_wants_lanes(const Reduction *r)
{
    for (; r; r = r->next)
        if (wants_lanes(r))
            return true;
    return false;
}

/* Eight vectors of 256 bits for all that the loops make of long rows, two for short ones. */
static int64_t lane_count(const Reduction *first)
{
    int64_t lanes = first->extents[first->n_reduced - 1] >= MANY_LANES && !(first->next && first->next->next) ? 64 : 16;
    bool    wide = leaf_shape(first->x, 0)->type == TYPE_F64 || ((first->next || first->paired) && lanes == 64) || first->choice;
    bool    more = lanes == 64 && wants_sums(first);
    return lanes >> (wide + more);
}

/* The fastest dimension of the operand when it is kept, else -1. */
static int32_t fastest_kept(const Reduction *r)
{
    for (int32_t k = 0; k < r->in->rank && !r->plain; k++) {
        int32_t d = (int32_t)layout_dim(r->in, k);
        if (r->in->dims[d] > 1)
            return ints_has(r->dims, d) || r->in->dims[d] < 4 ? -1 : d;
    }
    return -1;
}

/* Sums of floats round once at the end, and those of long chains are carried in f64; everything else in its own type. */
static Type carry_type(const Reduction *r, int32_t k)
{
    Type    t = leaf_shape(r->x, k)->type;
    int64_t chain = wants_lanes(r) && fastest_kept(r) < 0 ? r->count / lane_count(r) : r->count;
    if (!is_sum(r) || type_is_complex(t))
        return t;
    if (r->plain) /* the threads of a warp share a chain, those of a block a long one: rows.h */
        chain = r->count / (r->count > MANY_SHARE ? 256 : 32);
    return t == TYPE_F64 || chain > CHAIN ? TYPE_F64 : TYPE_F32;
}

static Reduction reduction(Lower *L, const Inst *x, bool paired)
{
    Reduction r = { .paired = paired, .x = x, .n = x->n_operands / 2, .in = inst_operand(x, 0)->shape, .dims = inst_ints(x, ATTR_DIMENSIONS), .count = 1, .plain = L->plan->plain };
    int32_t  *order = major_order(L, r.in);
    r.reduced = ARENA_ARRAY(L->arena, int32_t, r.in->rank);
    r.extents = ARENA_ARRAY(L->arena, int64_t, r.in->rank);
    for (int32_t k = 0; k < r.in->rank; k++)
        if (ints_has(r.dims, order[k])) {
            r.extents[r.n_reduced] = r.in->dims[order[k]];
            r.count *= r.in->dims[order[k]];
            r.reduced[r.n_reduced++] = order[k];
        }
    r.op = apply_operation(inst_callee(x, 0));
    r.down = L->columns && columns_same(L->columns, x);
    r.choice = choice_made(&r);
    r.shows_nan = L->body && !r.plain && x->comp == L->body && inst_shows_nan_anyway(x);
    r.extremes_of_memory = (r.op == OP_MAXIMUM || r.op == OP_MINIMUM) && is_cheap(L, inst_operand(x, 0));
    r.at = ARENA_ARRAY(L->arena, const Ix *, r.in->rank);
    r.acc = ARENA_ARRAY(L->arena, KTemp *, r.n);
    r.carry = ARENA_ARRAY(L->arena, Type, r.n);
    for (int32_t k = 0; k < r.n; k++)
        r.carry[k] = carry_type(&r, k);
    r.base = ARENA_ARRAY(L->arena, const Ix *, r.n_reduced);
    for (int32_t k = 0; k < r.n_reduced; k++)
        r.base[k] = ix_const(&L->ix, 0);
    return r;
}

/* Blocks of it are summed in f32. */
static bool wants_blocks(const Reduction *r)
{
    return is_sum(r) && r->carry[0] == TYPE_F64 && leaf_shape(r->x, 0)->type != TYPE_F64;
}

static bool any_wants_blocks(const Reduction *r)
{
    for (; r; r = r->next)
        if (wants_blocks(r))
            return true;
    return false;
}

/* The reduction of x and of what its loops make besides. */
static Reduction *reductions(Lower *L, const Inst *x, int32_t n, const Inst *const *others)
{
    Reduction *first = ARENA_NEW(L->arena, Reduction);
    *first = reduction(L, x, false);
    for (int32_t k = n; k-- > 0;) {
        Reduction *r = ARENA_NEW(L->arena, Reduction);
        *r = reduction(L, others[k], false);
        r->next = first->next;
        first->next = r;
    }
    return first;
}

static void set_kept(Reduction *r, const Ix *const *index)
{
    for (int32_t d = 0, k = 0; d < r->in->rank; d++)
        if (!ints_has(r->dims, d))
            r->at[d] = index[k++];
}

static const KExpr *start_value(Lower *L, const Reduction *r, int32_t k)
{
    const Inst *init = inst_operand(r->x, r->n + k);
    return scalar_convert(L->arena, init->shape->type, r->carry[k], value_at(L, init, 0, NULL));
}

/* The larger or the smaller one, acc where either is NaN. */
static const KExpr *plain_extreme(Lower *L, const Reduction *r, const KExpr *acc, const KExpr *x)
{
    const char *fn = arena_printf(L->arena, "%s_%s", r->op == OP_MAXIMUM ? "larger" : "smaller", type_name(acc->type));
    return kx_call(L->arena, fn, acc->type, 2, (const KExpr *const[]){ acc, x });
}

/* acc' = body(acc, elements): out open. */
static void combine(Lower *L, const Reduction *r, const KExpr *const *acc, const KExpr *const *x, const KExpr **out)
{
    const KExpr **args = ARENA_ARRAY(L->arena, const KExpr *, 2 * r->n);
    if (is_sum(r)) {
        out[0] = kx_binary(L->arena, KOP_ADD, acc[0]->type, acc[0], x[0]);
        return;
    }
    if (r->shows_nan) {
        out[0] = plain_extreme(L, r, acc[0], x[0]);
        return;
    }
    for (int32_t k = 0; k < r->n; k++) {
        args[k] = acc[k];
        args[r->n + k] = x[k];
    }
    apply(L, inst_callee(r->x, 0), args, out);
}

/* The elements at an index, those of a sum as sum_type. */
static const KExpr **elements(Lower *L, const Reduction *r, Type sum_type, const Ix *const *at)
{
    const KExpr **x = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    for (int32_t k = 0; k < r->n; k++) {
        const Inst *from = inst_operand(r->x, k);
        Type        t = is_sum(r) ? sum_type : inst_callee(r->x, 0)->params[r->n + k]->shape->type;
        x[k] = scalar_convert(L->arena, from->shape->type, t, keep(L, from, value_at(L, from, 0, at)));
    }
    return x;
}

/* acc' of one of several, at element `at`. */
static void row_step(Lower *L, const Reduction *r, const Ix *const *at)
{
    const KExpr **acc = ARENA_ARRAY(L->arena, const KExpr *, r->n), **out = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    if (r->part) {
        assign(L, r->part, kx_binary(L->arena, KOP_ADD, TYPE_F32, current(L, r->part), elements(L, r, TYPE_F32, at)[0]));
        return;
    }
    for (int32_t k = 0; k < r->n; k++)
        acc[k] = current(L, r->acc[k]);
    combine(L, r, acc, elements(L, r, r->carry[0], at), out);
    for (int32_t k = 0; k < r->n && r->n > 1; k++)
        out[k] = bind(L, out[k], "next");
    for (int32_t k = 0; k < r->n; k++)
        assign(L, r->acc[k], out[k]);
}

static const Ix **element_index(Lower *L, const Reduction *r, const Ix *const *index)
{
    const Ix **at = arena_copy(L->arena, r->at, (size_t)r->in->rank * sizeof *at);
    for (int32_t k = 0; k < r->n_reduced; k++)
        at[r->reduced[k]] = index[k];
    return at;
}

/* The loops' body with scalar accumulators. */
static void row_body(Lower *L, void *cookie, const Ix *const *index)
{
    const Reduction  *first = cookie;
    const Ix *const *at = element_index(L, first, index);
    for (const Reduction *r = first; r; r = r->next)
        row_step(L, r, at);
}

/* ---- blocks ---- */

/* The largest divisor of n that is not much less than most, or most with a rest. */
static int64_t block_size(int64_t n, int64_t most)
{
    for (int64_t size = most; size > most / 2; size--)
        if (n % size == 0)
            return size;
    return most;
}

static void cut_blocks(Blocks *b)
{
    int64_t rounds = 1, most = b->first->paired ? CHAIN / 2 : CHAIN; /* half the lanes, and blocks of the same size */
    for (int32_t k = b->first->n_reduced; k-- > 0; rounds *= b->extents[k])
        if (b->extents[k] > most / rounds) {
            b->d = k;
            b->size = block_size(b->extents[k], most / rounds);
            return;
        }
}

/* The loops of number `from` and later, size times around that one. */
static void block_loops(Lower *L, Blocks *b, int role, int32_t from, int64_t size)
{
    int32_t  n = b->first->n_reduced - from;
    int64_t *extents = arena_copy(L->arena, b->extents + from, (size_t)n * sizeof *extents);
    extents[0] = size;
    b->role = role;
    b->block(L, b, n, plan_dims(L, b->first->x, role, n, extents));
}

static void set_base(Blocks *b, const Ix *const *before, const Ix *from)
{
    for (int32_t k = 0; k < b->d; k++)
        b->first->base[k] = before[k];
    b->first->base[b->d] = from;
}

static void full_block(Lower *L, void *cookie, const Ix *const *index)
{
    Blocks *b = cookie;
    set_base(b, index, ix_times(&L->ix, index[b->d], b->size));
    block_loops(L, b, ROLE_BLOCK, b->d, b->size);
}

static void rest_block(Lower *L, void *cookie, const Ix *const *index)
{
    Blocks *b = cookie;
    int64_t n = b->extents[b->d], rest = n % b->size;
    set_base(b, index, ix_const(&L->ix, n - rest));
    block_loops(L, b, ROLE_REST, b->d, rest);
}

/* Calls b->block for each block, or once for all of it. */
static void over_blocks(Lower *L, Blocks *b)
{
    const Inst *x = b->first->x;
    if (b->d < 0) {
        block_loops(L, b, ROLE_REDUCED, 0, b->extents[0]);
        return;
    }
    int64_t *extents = arena_copy(L->arena, b->extents, (size_t)(b->d + 1) * sizeof *extents);
    extents[b->d] /= b->size;
    nest(L, b->d + 1, plan_dims(L, x, ROLE_BLOCKS, b->d + 1, extents), NULL, full_block, b);
    if (b->extents[b->d] % b->size)
        nest(L, b->d, plan_dims(L, x, ROLE_BEFORE_REST, b->d, extents), NULL, rest_block, b);
}

/* Where r is in a block's loops: index has the last ones, base says where those begin and what the others are. */
static const Ix **place_in_block(Lower *L, const Blocks *b, const Reduction *r, const Ix *const *index)
{
    const Reduction *first = b->first;
    const Ix       **all = arena_copy(L->arena, first->base, (size_t)first->n_reduced * sizeof *all);
    int32_t          from = b->d < 0 ? 0 : b->d;
    for (int32_t k = from; k < first->n_reduced; k++)
        all[k] = ix_add(&L->ix, all[k], index[k - from]);
    return element_index(L, r->own_row ? r : first, all);
}

/* ---- lanes: the last reduced dimension is round * lanes + lane ---- */

static void load_lane(Lower *L, const Reduction *r, const Ix *lane, const KExpr **x)
{
    x[0] = load_current(L, r->lanes, lane);
    if (r->numbers)
        x[1] = load_current(L, r->numbers, lane);
}

/* lane = body(acc, x) */
static void set_lane(Lower *L, const Reduction *r, const Ix *lane, const KExpr *const *acc, const KExpr *const *x)
{
    const KExpr *out[2];
    if (r->sums)
        out[0] = plain_extreme(L, r, acc[0], x[0]);
    else
        combine(L, r, acc, x, out);
    for (int32_t k = 0; k < r->n && r->n > 1; k++)
        out[k] = bind(L, out[k], "next");
    store(L, r->lanes, lane, out[0]);
    if (r->numbers)
        store(L, r->numbers, lane, out[1]);
}

/* 1 when x is NaN */
static const KExpr *is_nan(Lower *L, const KExpr *x)
{
    return kx_cast(L->arena, TYPE_S32, kx_binary(L->arena, KOP_NE, TYPE_PRED, x, x));
}

static void lane_step(Lower *L, const Reduction *r, const Ix *lane, const Ix *const *at)
{
    const KExpr *acc[2], **x = elements(L, r, r->lanes->type, at);
    for (int32_t k = 0; k < r->n && (r->n > 1 || r->sums); k++)
        x[k] = bind(L, x[k], "x");
    load_lane(L, r, lane, acc);
    if (r->sums)
        store(L, r->sums, lane, kx_binary(L->arena, KOP_ADD, r->sums->type, load_current(L, r->sums, lane), x[0]));
    if (r->odd)
        store(L, r->odd, lane, kx_binary(L->arena, KOP_OR, TYPE_S32, load_current(L, r->odd, lane), is_nan(L, x[0])));
    set_lane(L, r, lane, acc, x);
}

static void lanes_body(Lower *L, const Blocks *b, const Ix *const *index, const Ix *lane)
{
    const Reduction *first = b->first;
    int32_t          last = first->reduced[first->n_reduced - 1];
    for (const Reduction *r = first; r; r = r->next) {
        const Ix **at = place_in_block(L, b, r, index);
        at[last] = ix_add(&L->ix, ix_times(&L->ix, at[last], lane_count(first)), lane);
        if (r->lanes)
            lane_step(L, r, lane, at);
        else
            row_step(L, r, at);
    }
}

static void lanes_loop(Lower *L, void *cookie, const Ix *const *index)
{
    const Blocks *b = cookie;
    const IxAtom *l = loop_open(L, 0, lane_count(b->first), NULL, 1);
    lanes_body(L, b, index, ix_of(&L->ix, l));
    block_close(L);
}

/* What does not fill the lanes: the last n % lanes elements of each row. */
static void tail_loop(Lower *L, void *cookie, const Ix *const *index)
{
    const Blocks    *b = cookie;
    const Reduction *r = b->first;
    int64_t          n = r->extents[r->n_reduced - 1], lanes = lane_count(r);
    int32_t          last = r->n_reduced - 1 - (b->d < 0 ? 0 : b->d);
    const Ix       **all = ARENA_ARRAY(L->arena, const Ix *, last + 1);
    for (int32_t k = 0; k < last; k++)
        all[k] = index[k];
    all[last] = ix_const(&L->ix, n / lanes);
    if (n % lanes == 1) {
        lanes_body(L, b, all, ix_const(&L->ix, 0));
        return;
    }
    const IxAtom *l = loop_open(L, 0, n % lanes, NULL, 1);
    lanes_body(L, b, all, ix_of(&L->ix, l));
    block_close(L);
}

/* The tails of rows that are cut into blocks. */
static void tail_alone(Lower *L, void *cookie, const Ix *const *index)
{
    Blocks *b = cookie;
    set_base(b, index, ix_const(&L->ix, 0));
    tail_loop(L, b, NULL);
}

static KArray *new_lanes(Lower *L, Type t, int64_t n, const KExpr *start, const char *name)
{
    KArray       *x = local_array(L, t, n, name);
    const IxAtom *l = loop_open(L, 0, n, NULL, 1);
    store(L, x, ix_of(&L->ix, l), start);
    block_close(L);
    return x;
}

/* What changes nothing: of an extreme its first value, which may be taken as often as one likes. */
static const KExpr *neutral(Lower *L, const Reduction *r, Type t)
{
    if (r->op == OP_ADD)
        return scalar_zero(L->arena, t);
    return r->op == OP_MULTIPLY ? scalar_one(L->arena, t) : kx_temp(L->arena, r->acc[0]);
}

/* total[l] += block[l], in the wider type. */
static void add_to_total(Lower *L, KArray *total, KArray *block)
{
    const Ix    *l = ix_of(&L->ix, loop_open(L, 0, block->count, NULL, 1));
    const KExpr *x = scalar_convert(L->arena, block->type, total->type, load_current(L, block, l));
    store(L, total, l, kx_binary(L->arena, KOP_ADD, total->type, load_current(L, total, l), x));
    block_close(L);
}

static void lanes_block(Lower *L, Blocks *b, int32_t n, LoopDim *dims)
{
    Reduction *first = b->first;
    bool       tail = first->extents[first->n_reduced - 1] % lane_count(first) != 0;
    for (Reduction *r = first; r; r = r->next)
        if (r->total)
            r->lanes = new_lanes(L, TYPE_F32, r->total->count, scalar_zero(L->arena, TYPE_F32), "lane");
    nest(L, n, dims, NULL, lanes_loop, b);
    if (tail && b->d < first->n_reduced - 1)
        nest(L, n - 1, dims, NULL, tail_loop, b);
    for (Reduction *r = first; r; r = r->next)
        if (r->total)
            add_to_total(L, r->total, r->lanes);
}

/* lane[l] = lane[l] op lane[l + half], until few are left: those go into the accumulator one by one. */
static void join_lanes(Lower *L, const Reduction *r)
{
    int64_t      n = r->lanes->count, few = !r->choice && (r->op == OP_MAXIMUM || r->op == OP_MINIMUM) ? 1 : FEW; /* the scalar code of one extreme is as long as a vector's */
    const KExpr *acc[2], *x[2], *out[2];
    for (; n > few; n /= 2) {
        const Ix *l = ix_of(&L->ix, loop_open(L, 0, n / 2, NULL, 1));
        load_lane(L, r, l, acc);
        load_lane(L, r, ix_plus(&L->ix, l, n / 2), x);
        set_lane(L, r, l, acc, x);
        block_close(L);
    }
    const Ix *l = ix_of(&L->ix, loop_open(L, 0, n, NULL, 1));
    for (int32_t k = 0; k < r->n; k++)
        acc[k] = current(L, r->acc[k]);
    load_lane(L, r, l, x);
    combine(L, r, acc, x, out);
    for (int32_t k = 0; k < r->n && r->n > 1; k++)
        out[k] = bind(L, out[k], "next");
    for (int32_t k = 0; k < r->n; k++)
        assign(L, r->acc[k], out[k]);
    block_close(L);
}

/* lane[l] += lane[l + n] */
static void add_lanes(Lower *L, KArray *lanes, int64_t n)
{
    const Ix *l = ix_of(&L->ix, loop_open(L, 0, n, NULL, 1));
    store(L, lanes, l, kx_binary(L->arena, KOP_ADD, lanes->type, load_current(L, lanes, l), load_current(L, lanes, ix_plus(&L->ix, l, n))));
    block_close(L);
}

/* Whether a row has to be gone through again. */
static const KExpr *met_nan(Lower *L, const Reduction *r)
{
    if (r->sums) {
        KTemp    *sum = accumulator(L, scalar_zero(L->arena, r->sums->type), r->sums->type, "sum");
        for (int64_t n = r->sums->count / 2; n >= FEW; n /= 2)
            add_lanes(L, r->sums, n);
        const Ix *l = ix_of(&L->ix, loop_open(L, 0, FEW, NULL, 1));
        assign(L, sum, kx_binary(L->arena, KOP_ADD, r->sums->type, current(L, sum), load_current(L, r->sums, l)));
        block_close(L);
        return kx_binary(L->arena, KOP_NE, TYPE_PRED, current(L, sum), current(L, sum));
    }
    KTemp    *odd = accumulator(L, kx_int(L->arena, TYPE_S32, 0), TYPE_S32, "odd");
    const Ix *l = ix_of(&L->ix, loop_open(L, 0, r->odd->count, NULL, 1));
    assign(L, odd, kx_binary(L->arena, KOP_OR, TYPE_S32, current(L, odd), load_current(L, r->odd, l)));
    block_close(L);
    return kx_binary(L->arena, KOP_NE, TYPE_PRED, current(L, odd), kx_int(L->arena, TYPE_S32, 0));
}

typedef struct Again {
    const Reduction *first, *r;
} Again;

static void again_body(Lower *L, void *cookie, const Ix *const *index)
{
    const Again *x = cookie;
    row_step(L, x->r, element_index(L, x->r->own_row ? x->r : x->first, index));
}

/* A row with NaN, in order. */
static void reduce_again(Lower *L, const Reduction *first, const Reduction *r)
{
    if_open(L, met_nan(L, r));
    for (int32_t k = 0; k < r->n; k++)
        assign(L, r->acc[k], start_value(L, r, k));
    Again x = { first, r };
    nest(L, first->n_reduced, plan_dims(L, first->x, ROLE_AGAIN, first->n_reduced, first->extents), NULL, again_body, &x);
    block_close(L);
}

static void reduce_in_lanes(Lower *L, Reduction *first)
{
    int32_t last = first->n_reduced - 1;
    int64_t lanes = lane_count(first), rest = first->extents[last] % lanes;
    Blocks  b = { .first = first, .d = -1, .block = lanes_block,
                  .extents = arena_copy(L->arena, first->extents, (size_t)first->n_reduced * sizeof *first->extents) };
    b.extents[last] /= lanes;
    if (any_wants_blocks(first))
        cut_blocks(&b);
    for (Reduction *r = first; r; r = r->next) {
        if (!can_have_lanes(r))
            continue;
        bool blocks = wants_blocks(r) && b.d >= 0;
        Type t = machine_type(r->carry[0]);
        r->lanes = new_lanes(L, t, lanes, neutral(L, r, t), blocks ? "total" : "lane");
        r->total = blocks ? r->lanes : NULL;
        if (r->choice)
            r->numbers = new_lanes(L, machine_type(r->carry[1]), lanes, kx_temp(L->arena, r->acc[1]), "number");
        if (wants_sums(r))
            r->sums = new_lanes(L, t, lanes, scalar_zero(L->arena, t), "sum");
        if (r->choice == CHOICE_OF_NUMBERS)
            r->odd = new_lanes(L, TYPE_S32, lanes, is_nan(L, kx_temp(L->arena, r->acc[0])), "odd");
    }
    over_blocks(L, &b);
    for (Reduction *r = first; r; r = r->next)
        r->lanes = r->total ? r->total : r->lanes;
    if (rest && b.d == last)
        nest(L, last, plan_dims(L, first->x, ROLE_BEFORE_REST, last, first->extents), NULL, tail_alone, &b);
    for (const Reduction *r = first; r; r = r->next)
        if (r->lanes)
            join_lanes(L, r);
    for (const Reduction *r = first; r; r = r->next)
        if (r->odd || r->sums)
            reduce_again(L, first, r);
}

/* ---- columns, each of which has accumulators like a row ---- */

static void down_body(Lower *L, void *cookie, const Ix *const *index)
{
    const Blocks     *b = cookie;
    const Ix *const *at = place_in_block(L, b, b->first, index);
    for (const Reduction *r = b->first; r; r = r->next)
        row_step(L, r, at);
}

static void down_block(Lower *L, Blocks *b, int32_t n, LoopDim *dims)
{
    for (Reduction *r = b->first; r; r = r->next)
        r->part = wants_blocks(r) ? accumulator(L, scalar_zero(L->arena, TYPE_F32), TYPE_F32, "part") : NULL;
    nest(L, n, dims, NULL, down_body, b);
    for (Reduction *r = b->first; r; r = r->next)
        if (r->part) {
            const KExpr *part = scalar_convert(L->arena, TYPE_F32, r->carry[0], current(L, r->part));
            assign(L, r->acc[0], kx_binary(L->arena, KOP_ADD, r->carry[0], current(L, r->acc[0]), part));
            r->part = NULL;
        }
}

static void reduce_down(Lower *L, Reduction *first)
{
    Blocks b = { .first = first, .d = -1, .block = down_block, .extents = first->extents };
    cut_blocks(&b);
    over_blocks(L, &b);
}

int32_t index_depth(const Ix *const *index, int32_t rank)
{
    int32_t depth = 0;
    for (int32_t d = 0; d < rank; d++)
        if (ix_depth(index[d]) > depth)
            depth = ix_depth(index[d]);
    return depth;
}

static void declare_accumulators(Lower *L, const Reduction *r)
{
    const char *name = map_has(&L->plan->materialise, r->x) || !L->body ? "acc" : r->x->name;
    for (int32_t k = 0; k < r->n; k++)
        r->acc[k] = accumulator(L, start_value(L, r, k), machine_type(r->carry[k]), r->n > 1 ? arena_printf(L->arena, "%s_%d", name, k) : name);
}

/* The values of one row of each. */
static void reduce_row(Lower *L, Reduction *first, const Ix *const *index)
{
    KBlock     *cur = L->cur;
    const Inst *consumer = L->consumer;
    L->consumer = first->x;
    L->cur = block_for(L, index_depth(index, leaf_shape(first->x, 0)->rank));
    set_kept(first, index);
    for (Reduction *r = first; r; r = r->next)
        declare_accumulators(L, r);
    if (first->count > 0 && any_wants_lanes(first))
        reduce_in_lanes(L, first);
    else if (first->count > 0 && first->down && any_wants_blocks(first))
        reduce_down(L, first);
    else if (first->count > 0)
        nest(L, first->n_reduced, plan_dims(L, first->x, ROLE_REDUCED, first->n_reduced, first->extents), NULL, row_body, first);
    L->consumer = consumer;
    L->cur = cur;
}

static const KExpr *row_result(Lower *L, const Reduction *r, int32_t k)
{
    return scalar_convert(L->arena, r->carry[k], leaf_shape(r->x, k)->type, kx_temp(L->arena, r->acc[k]));
}

void reduce_at(Lower *L, const Inst *x, const Ix *const *index, const KExpr **out)
{
    const Inst *others[MOST_TOGETHER];
    int32_t     n = together_inline(L, x, index, others);
    Reduction  *first = reductions(L, x, n, others);
    reduce_row(L, first, index);
    for (int32_t k = 0; k < first->n; k++)
        out[k] = row_result(L, first, k);
    for (const Reduction *r = first->next; r; r = r->next)
        for (int32_t k = 0; k < r->n; k++)
            known_value(L, r->x, k, index, row_result(L, r, k));
}

/* Inside loops over more than its result a reduction would run again and again: its index has to be made of the outer loops, all of
 * them. Columns are better summed in a stage of their own as well. */
bool reduce_is_inline(Lower *L, const Inst *x, const Ix *const *index)
{
    const Shape *s = leaf_shape(x, 0), *in = inst_operand(x, 0)->shape;
    int32_t      depth = index_depth(index, s->rank);
    int64_t      runs = 1, count = shape_count(in);
    for (const KBlock *b = L->cur; b; b = b->parent)
        if (b->depth <= depth && b->from && b->from->kind == KS_FOR)
            runs *= b->from->loop->hi - b->from->loop->lo + 1;
    if (runs > shape_count(s) || count == 0)
        return false;
    if (shape_count(s) == 1 || (L->columns && columns_same(L->columns, x)))
        return true;
    for (int32_t k = 0; k < in->rank; k++) {
        int32_t d = (int32_t)layout_dim(in, k);
        if (in->dims[d] > 1)
            return ints_has(inst_ints(x, ATTR_DIMENSIONS), d);
    }
    return true;
}

/* Stages. */
typedef struct ReduceStage {
    Reduction *first;
    int32_t    column; /* the kept dimension that varies fastest */
    int32_t    paired; /* the kept one whose rows are made two at a time */
    int64_t    width;
    const Ix  *start, *j;
} ReduceStage;

static const Ix **kept_index(Lower *L, const Reduction *r)
{
    const Ix **index = ARENA_ARRAY(L->arena, const Ix *, r->in->rank);
    for (int32_t d = 0, k = 0; d < r->in->rank; d++)
        if (!ints_has(r->dims, d))
            index[k++] = r->at[d];
    return index;
}

/* How many instructions give an element of x from what is in memory; more than `most`: too many. */
static int32_t steps_to(Lower *L, const Inst *x, int32_t most)
{
    int32_t leaf = 0, n = 1;
    x = resolve(L, x, &leaf);
    if (memory_of(L, x, leaf) || x->op == OP_CONSTANT || x->op == OP_IOTA)
        return 0;
    if (x->op == OP_REDUCE || x->op == OP_DOT || x->op == OP_CONVOLUTION || x->op == OP_REDUCE_WINDOW)
        return most + 1;
    for (int32_t k = 0; k < x->n_operands && n <= most; k++)
        n += steps_to(L, inst_operand(x, k), most - n);
    return n;
}

/* Elements of all that the loops make. */
static bool is_cheap_row(Lower *L, const Reduction *first)
{
    enum { FEW_STEPS = 12 };
    int32_t steps = 0;
    for (const Reduction *r = first; r; r = r->next)
        for (int32_t k = 0; k < r->n && steps <= FEW_STEPS; k++)
            steps += steps_to(L, inst_operand(r->x, k), FEW_STEPS - steps);
    return steps <= FEW_STEPS;
}

/* Rows that are computed at length are not computed in several places. */
static int64_t rows_abreast(Lower *L, const Reduction *first)
{
    return is_cheap_row(L, first) ? ROWS_ABREAST : 1;
}

static void store_row(Lower *L, const Reduction *r, const Ix *const *index)
{
    for (int32_t k = 0; k < r->n; k++)
        store_result(L, r->x, r->to[k], index, row_result(L, r, k));
}

static void row_stage(Lower *L, void *cookie, const Ix *const *index)
{
    ReduceStage *s = cookie;
    reduce_row(L, s->first, index);
    for (const Reduction *r = s->first; r; r = r->next)
        store_row(L, r, index);
}

/* Rows 2 * i and 2 * i + 1 of the last kept dimension. */
static void two_rows(Lower *L, void *cookie, const Ix *const *index)
{
    ReduceStage *s = cookie;
    int32_t      rank = leaf_shape(s->first->x, 0)->rank;
    const Ix   **even = arena_copy(L->arena, index, (size_t)rank * sizeof *even), **odd = arena_copy(L->arena, index, (size_t)rank * sizeof *odd);
    even[s->paired] = ix_times(&L->ix, index[s->paired], 2);
    odd[s->paired] = ix_plus(&L->ix, even[s->paired], 1);
    Reduction *second = ARENA_NEW(L->arena, Reduction);
    *second = reduction(L, s->first->x, true);
    second->to = s->first->to;
    second->own_row = true;
    set_kept(second, odd);
    s->first->next = second;
    reduce_row(L, s->first, even);
    store_row(L, s->first, even);
    store_row(L, second, odd);
    s->first->next = NULL;
}

static void last_row(Lower *L, void *cookie, const Ix *const *index)
{
    ReduceStage *s = cookie;
    int32_t      rank = leaf_shape(s->first->x, 0)->rank;
    const Ix   **at = arena_copy(L->arena, index, (size_t)rank * sizeof *at);
    at[s->paired] = ix_const(&L->ix, leaf_shape(s->first->x, 0)->dims[s->paired] - 1);
    row_stage(L, s, at);
}

/* The kept dimension whose rows are made two at a time: the last one of some length, where extremes of long rows are in a cache; else -1. */
static int32_t paired_dim(Lower *L, const Reduction *r)
{
    const Shape  *out = leaf_shape(r->x, 0);
    const int64_t elements = r->count * shape_count(out);
    if (r->next || r->n > 1 || !wants_sums(r) || elements * type_bytes(r->in->type) > SECOND_CACHE || !is_cheap_row(L, r))
        return -1;
    for (int32_t d = out->rank; d-- > 0;)
        if (out->dims[d] > 1)
            return d;
    return -1;
}

static void stage_two_rows(Lower *L, ReduceStage *s)
{
    const Shape   *out = leaf_shape(s->first->x, 0);
    int64_t       *extents = arena_copy(L->arena, out->dims, (size_t)out->rank * sizeof *extents), n = extents[s->paired];
    KArray *const *to = s->first->to;
    *s->first = reduction(L, s->first->x, true);
    s->first->to = to;
    extents[s->paired] = n / 2;
    nest(L, out->rank, plan_dims(L, s->first->x, ROLE_PAIRS, out->rank, extents), major_order(L, out), two_rows, s);
    extents[s->paired] = 1;
    if (n % 2)
        nest(L, out->rank, plan_dims(L, s->first->x, ROLE_LAST_ROW, out->rank, extents), major_order(L, out), last_row, s);
}

/* acc[j] = acc[j] and one element of each of the rows at[0], at[1], ... */
static void column_step(Lower *L, const Reduction *r, const Ix *j, int64_t rows, const Ix **const *at)
{
    const KExpr **acc = ARENA_ARRAY(L->arena, const KExpr *, r->n), **out = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    for (int32_t k = 0; k < r->n; k++)
        acc[k] = load_current(L, r->block[k], j);
    for (int64_t row = 0; row < rows; row++) {
        combine(L, r, acc, elements(L, r, r->block[0]->type, at[row]), out);
        for (int32_t k = 0; k < r->n; k++)
            acc[k] = r->n > 1 || row + 1 < rows ? bind(L, out[k], "next") : out[k];
    }
    for (int32_t k = 0; k < r->n; k++)
        store(L, r->block[k], j, acc[k]);
}

/* The loops' indices in row number `row` of those that are taken together. */
static const Ix *const *row_index(Lower *L, const Blocks *b, const Ix *const *index, int32_t n, int64_t row)
{
    const Ix **all = arena_copy(L->arena, index, (size_t)n * sizeof *all);
    all[n - 1] = ix_plus(&L->ix, ix_times(&L->ix, index[n - 1], b->abreast), b->row + row);
    return all;
}

static void column_body(Lower *L, void *cookie, const Ix *const *index)
{
    const Blocks *b = cookie;
    ReduceStage  *s = b->cookie;
    int32_t       n = b->first->n_reduced - (b->d < 0 ? 0 : b->d);
    const Ix     *j = ix_of(&L->ix, loop_open(L, 0, s->width, NULL, 1)), ***at = ARENA_ARRAY(L->arena, const Ix **, b->abreast);
    for (int64_t row = 0; row < b->abreast; row++) {
        at[row] = place_in_block(L, b, b->first, row_index(L, b, index, n, row));
        at[row][s->column] = ix_add(&L->ix, s->start, j);
    }
    for (const Reduction *r = s->first; r; r = r->next)
        column_step(L, r, j, b->abreast, at);
    block_close(L);
}

/* The rows in the last of the n loops, a few at a time, and what is left of them. */
static void column_loops(Lower *L, Blocks *b, int32_t n, LoopDim *dims)
{
    const Inst *x = b->first->x;
    int64_t    *extents = ARENA_ARRAY(L->arena, int64_t, n), rows = dims[n - 1].extent, abreast = rows_abreast(L, b->first);
    b->abreast = 1;
    b->row = 0;
    if (abreast == 1) {
        nest(L, n, dims, NULL, column_body, b);
        return;
    }
    for (int32_t k = 0; k < n; k++)
        extents[k] = dims[k].extent;
    extents[n - 1] = rows / abreast;
    b->abreast = abreast;
    if (rows >= abreast)
        nest(L, n, plan_dims(L, x, ROLE_ABREAST + b->role, n, extents), NULL, column_body, b);
    extents[n - 1] = 1;
    b->row = rows / abreast * abreast;
    b->abreast = rows % abreast;
    if (b->abreast)
        nest(L, n, plan_dims(L, x, ROLE_LAST_ROWS + b->role, n, extents), NULL, column_body, b);
}

static void column_rows(Lower *L, Blocks *b, int32_t n, LoopDim *dims)
{
    for (Reduction *r = b->first; r; r = r->next)
        if (r->total)
            r->block[0] = new_lanes(L, TYPE_F32, r->total->count, scalar_zero(L->arena, TYPE_F32), "acc");
    column_loops(L, b, n, dims);
    for (Reduction *r = b->first; r; r = r->next)
        if (r->total)
            add_to_total(L, r->total, r->block[0]);
}

static void start_columns(Lower *L, Reduction *r, int64_t width, bool blocks)
{
    const KExpr **init = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    r->block = ARENA_ARRAY(L->arena, KArray *, r->n);
    for (int32_t k = 0; k < r->n; k++) {
        r->block[k] = local_array(L, r->carry[k], width, blocks ? "total" : "acc");
        init[k] = start_value(L, r, k);
    }
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, width, NULL, 1));
    for (int32_t k = 0; k < r->n; k++)
        store(L, r->block[k], j, init[k]);
    block_close(L);
    r->total = blocks ? r->block[0] : NULL;
}

/* Results start .. start + width - 1 of one row of the result. */
static void column_block(Lower *L, ReduceStage *s)
{
    Reduction *first = s->first;
    Blocks     b = { .first = first, .d = -1, .extents = first->extents, .block = column_rows, .cookie = s };
    if (any_wants_blocks(first))
        cut_blocks(&b);
    for (Reduction *r = first; r; r = r->next)
        start_columns(L, r, s->width, wants_blocks(r) && b.d >= 0);
    over_blocks(L, &b);
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, s->width, NULL, 1));
    first->at[s->column] = ix_add(&L->ix, s->start, j);
    const Ix **index = kept_index(L, first);
    for (const Reduction *r = first; r; r = r->next)
        for (int32_t k = 0; k < r->n; k++) {
            KArray *from = r->total ? r->total : r->block[k];
            store_result(L, r->x, r->to[k], index, scalar_convert(L->arena, r->carry[k], leaf_shape(r->x, k)->type, load(L, from, j)));
        }
    block_close(L);
}

/* The widest divisor of n that fits a block, or the block with a rest. */
static int64_t block_width(const Reduction *r, int64_t n)
{
    int64_t most = COLUMN_BYTES / type_bytes(machine_type(leaf_shape(r->x, 0)->type));
    if (n <= most)
        return n;
    for (int64_t w = most; w >= most / 4; w -= 16)
        if (n % w == 0)
            return w;
    return most;
}

static void column_stage(Lower *L, void *cookie, const Ix *const *index)
{
    ReduceStage *s = cookie;
    int64_t      n = s->first->in->dims[s->column], w = block_width(s->first, n);
    set_kept(s->first, index);
    s->width = w;
    if (n > w)
        s->start = ix_times(&L->ix, ix_of(&L->ix, loop_open(L, 0, n / w, NULL, 1)), w);
    else
        s->start = ix_const(&L->ix, 0);
    column_block(L, s);
    if (n > w)
        block_close(L);
    if (n % w) {
        s->width = n % w;
        s->start = ix_const(&L->ix, n / w * w);
        column_block(L, s);
    }
}

void stage_reduce(Lower *L, int32_t n, const Inst *const *x, KArray *const *const *to)
{
    Reduction   *first = reductions(L, x[0], n - 1, x + 1);
    ReduceStage  s = {.first = first};
    const Shape *out = leaf_shape(x[0], 0);
    int32_t      at = 0;
    for (Reduction *r = first; r; r = r->next)
        r->to = to[at++];
    s.column = first->count > 1 && !first->down ? fastest_kept(first) : -1;
    s.paired = s.column < 0 ? paired_dim(L, first) : -1;
    if (s.paired >= 0) {
        stage_two_rows(L, &s);
        return;
    }
    if (s.column < 0) {
        nest(L, out->rank, plan_dims(L, x[0], ROLE_KEPT, out->rank, out->dims), major_order(L, out), row_stage, &s);
        return;
    }
    int64_t *extents = ARENA_ARRAY(L->arena, int64_t, out->rank);
    for (int32_t d = 0, k = 0; d < first->in->rank; d++)
        if (!ints_has(first->dims, d))
            extents[k++] = d == s.column ? 1 : first->in->dims[d];
    LoopDim *dims = plan_dims(L, x[0], ROLE_COLUMN, out->rank, extents);
    nest(L, out->rank, dims, major_order(L, out), column_stage, &s);
}
