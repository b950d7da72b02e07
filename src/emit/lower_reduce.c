/* reduce. Along a row the accumulator is a scalar, or for sums and maxima of floats a set of lanes, so that the loop has no chain of dependent
 * additions and adds numbers of like size:
 *
 *   float lane[16] = 0;  for r: for l: lane[l] += x[r*16 + l];  sum = init; for l: sum += lane[l]
 *
 * Down the columns a block of accumulators is carried along the rows: for r: for j: acc[j] += x[r][j]. The order is fixed by the shape.
 *
 * Reductions of a fusion that go over the same elements are made in the same loops, each with accumulators of its own (lower_together.c). */
#include "emit/lower.h"

enum { ROLE_KEPT = 1, ROLE_REDUCED = 2, ROLE_LANES = 3, ROLE_COLUMN = 4 };
enum { LONG_CHAIN = 256 /* sums of f32 that add up more than that one after another are carried in f64 */, COLUMN_BLOCK = 256 };

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
    KArray           *lanes;   /* NULL: none */
    const Ix         *lane;    /* of the first one */
    KArray          **block;   /* of column accumulators */
    KArray *const    *to;      /* in a stage: the arrays */
};

static const Shape *leaf_shape(const Inst *x, int32_t k)
{
    return shape_is_tuple(x->shape) ? x->shape->elems[k] : x->shape;
}

static bool is_sum(const Reduction *r)
{
    return r->n == 1 && r->op == OP_ADD && (type_is_float(leaf_shape(r->x, 0)->type) || type_is_complex(leaf_shape(r->x, 0)->type));
}

/* One value, taken of parts in any order. */
static bool can_have_lanes(const Reduction *r)
{
    Type t = leaf_shape(r->x, 0)->type;
    bool op = r->op == OP_ADD || r->op == OP_MAXIMUM || r->op == OP_MINIMUM;
    return r->n == 1 && op && r->n_reduced > 0 && r->extents[r->n_reduced - 1] >= 64 && !type_is_complex(t);
}

/* Compilers make lanes of integers by themselves. */
static bool wants_lanes(const Reduction *r)
{
    return can_have_lanes(r) && type_is_float(leaf_shape(r->x, 0)->type);
}

static bool any_wants_lanes(const Reduction *r)
{
    for (; r; r = r->next)
        if (wants_lanes(r))
            return true;
    return false;
}

static int64_t lane_count(const Reduction *r)
{
    return r->extents[r->n_reduced - 1] >= 1024 ? 64 : 16;
}

/* The fastest dimension of the operand when it is kept, else -1. */
static int32_t fastest_kept(const Reduction *r)
{
    for (int32_t k = 0; k < r->in->rank; k++) {
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
    return t == TYPE_F64 || chain > LONG_CHAIN ? TYPE_F64 : TYPE_F32;
}

static Reduction reduction(Lower *L, const Inst *x)
{
    Reduction r = { .x = x, .n = x->n_operands / 2, .in = inst_operand(x, 0)->shape, .dims = inst_ints(x, ATTR_DIMENSIONS), .count = 1 };
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
    r.at = ARENA_ARRAY(L->arena, const Ix *, r.in->rank);
    r.acc = ARENA_ARRAY(L->arena, KTemp *, r.n);
    r.carry = ARENA_ARRAY(L->arena, Type, r.n);
    for (int32_t k = 0; k < r.n; k++)
        r.carry[k] = carry_type(&r, k);
    return r;
}

/* The reduction of x and of what its loops make besides. */
static Reduction *reductions(Lower *L, const Inst *x, int32_t n, const Inst *const *others)
{
    Reduction *first = ARENA_NEW(L->arena, Reduction);
    *first = reduction(L, x);
    for (int32_t k = n; k-- > 0;) {
        Reduction *r = ARENA_NEW(L->arena, Reduction);
        *r = reduction(L, others[k]);
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

/* acc' = body(acc, elements): out open. */
static void combine(Lower *L, const Reduction *r, const KExpr *const *acc, const KExpr *const *x, const KExpr **out)
{
    const KExpr **args = ARENA_ARRAY(L->arena, const KExpr *, 2 * r->n);
    if (is_sum(r)) {
        out[0] = kx_binary(L->arena, KOP_ADD, machine_type(r->carry[0]), acc[0], x[0]);
        return;
    }
    for (int32_t k = 0; k < r->n; k++) {
        args[k] = acc[k];
        args[r->n + k] = x[k];
    }
    apply(L, inst_callee(r->x, 0), args, out);
}

static const KExpr **elements(Lower *L, const Reduction *r, const Ix *const *at)
{
    const KExpr **x = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    for (int32_t k = 0; k < r->n; k++) {
        const Inst *from = inst_operand(r->x, k);
        Type        t = is_sum(r) ? r->carry[k] : inst_callee(r->x, 0)->params[r->n + k]->shape->type;
        x[k] = scalar_convert(L->arena, from->shape->type, t, keep(L, from, value_at(L, from, 0, at)));
    }
    return x;
}

/* acc' of one of several, at element `at`. */
static void row_step(Lower *L, const Reduction *r, const Ix *const *at)
{
    const KExpr **acc = ARENA_ARRAY(L->arena, const KExpr *, r->n), **out = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    for (int32_t k = 0; k < r->n; k++)
        acc[k] = current(L, r->acc[k]);
    combine(L, r, acc, elements(L, r, at), out);
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

static void lane_step(Lower *L, const Reduction *r, const Ix *lane, const Ix *const *at)
{
    const KExpr *acc = load_current(L, r->lanes, lane), *out;
    combine(L, r, &acc, elements(L, r, at), &out);
    store(L, r->lanes, lane, out);
}

/* The same with lanes: the last reduced dimension is r * L + l. */
static void lanes_body(Lower *L, void *cookie, const Ix *const *index)
{
    const Reduction *first = cookie;
    const Ix       **at = element_index(L, first, index);
    int32_t          last = first->reduced[first->n_reduced - 1];
    at[last] = ix_add(&L->ix, ix_times(&L->ix, at[last], lane_count(first)), first->lane);
    for (const Reduction *r = first; r; r = r->next)
        if (r->lanes)
            lane_step(L, r, first->lane, at);
        else
            row_step(L, r, at);
}

static void lanes_loop(Lower *L, void *cookie, const Ix *const *index)
{
    Reduction *r = cookie;
    r->lane = ix_of(&L->ix, loop_open(L, 0, lane_count(r), NULL, 1));
    lanes_body(L, cookie, index);
    block_close(L);
}

/* What does not fill the lanes: the last n % lanes elements of each row. */
static void tail_loop(Lower *L, void *cookie, const Ix *const *index)
{
    Reduction *r = cookie;
    int64_t    n = r->extents[r->n_reduced - 1], lanes = lane_count(r), full = n / lanes;
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, r->n_reduced);
    for (int32_t k = 0; k < r->n_reduced - 1; k++)
        at[k] = index[k];
    at[r->n_reduced - 1] = ix_const(&L->ix, full);
    if (n % lanes == 1) {
        r->lane = ix_const(&L->ix, 0);
        lanes_body(L, r, at);
        return;
    }
    r->lane = ix_of(&L->ix, loop_open(L, 0, n % lanes, NULL, 1));
    lanes_body(L, r, at);
    block_close(L);
}

/* A sum's lanes start from 0, those of a maximum from its first value, as often as one likes. */
static void start_lanes(Lower *L, Reduction *r)
{
    int64_t lanes = lane_count(r);
    r->lanes = local_array(L, machine_type(r->carry[0]), lanes, "lane");
    const KExpr  *first = r->op == OP_ADD ? scalar_zero(L->arena, r->carry[0]) : kx_temp(L->arena, r->acc[0]);
    const IxAtom *l = loop_open(L, 0, lanes, NULL, 1);
    store(L, r->lanes, ix_of(&L->ix, l), first);
    block_close(L);
}

static void join_lanes(Lower *L, const Reduction *r)
{
    const IxAtom *l = loop_open(L, 0, lane_count(r), NULL, 1);
    const KExpr  *acc = current(L, r->acc[0]), *lane = load_current(L, r->lanes, ix_of(&L->ix, l)), *out;
    combine(L, r, &acc, &lane, &out);
    assign(L, r->acc[0], out);
    block_close(L);
}

static void reduce_in_lanes(Lower *L, Reduction *first)
{
    int64_t  n = first->extents[first->n_reduced - 1], lanes = lane_count(first);
    LoopDim *dims = plan_dims(L, first->x, ROLE_LANES, first->n_reduced, first->extents);
    dims[first->n_reduced - 1].extent = n / lanes;
    for (Reduction *r = first; r; r = r->next)
        if (can_have_lanes(r))
            start_lanes(L, r);
    nest(L, first->n_reduced, dims, NULL, lanes_loop, first);
    if (n % lanes)
        nest(L, first->n_reduced - 1, dims, NULL, tail_loop, first);
    for (const Reduction *r = first; r; r = r->next)
        if (r->lanes)
            join_lanes(L, r);
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
    if (shape_count(s) == 1)
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

static void row_stage(Lower *L, void *cookie, const Ix *const *index)
{
    ReduceStage *s = cookie;
    reduce_row(L, s->first, index);
    for (const Reduction *r = s->first; r; r = r->next)
        for (int32_t k = 0; k < r->n; k++)
            store_result(L, r->x, r->to[k], index, row_result(L, r, k));
}

static void column_step(Lower *L, const Reduction *r, const Ix *j, const Ix *const *at)
{
    const KExpr **acc = ARENA_ARRAY(L->arena, const KExpr *, r->n), **out = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    for (int32_t k = 0; k < r->n; k++)
        acc[k] = load_current(L, r->block[k], j);
    combine(L, r, acc, elements(L, r, at), out);
    for (int32_t k = 0; k < r->n && r->n > 1; k++)
        out[k] = bind(L, out[k], "next");
    for (int32_t k = 0; k < r->n; k++)
        store(L, r->block[k], j, out[k]);
}

static void column_body(Lower *L, void *cookie, const Ix *const *index)
{
    ReduceStage *s = cookie;
    const Ix    *j = ix_of(&L->ix, loop_open(L, 0, s->width, NULL, 1));
    const Ix   **at = element_index(L, s->first, index);
    at[s->column] = ix_add(&L->ix, s->start, j);
    for (const Reduction *r = s->first; r; r = r->next)
        column_step(L, r, j, at);
    block_close(L);
}

static void start_block(Lower *L, Reduction *r, int64_t width)
{
    const KExpr **init = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    r->block = ARENA_ARRAY(L->arena, KArray *, r->n);
    for (int32_t k = 0; k < r->n; k++) {
        r->block[k] = local_array(L, r->carry[k], width, "acc");
        init[k] = start_value(L, r, k);
    }
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, width, NULL, 1));
    for (int32_t k = 0; k < r->n; k++)
        store(L, r->block[k], j, init[k]);
    block_close(L);
}

/* Results start .. start + width - 1 of one row of the result. */
static void column_block(Lower *L, ReduceStage *s)
{
    Reduction *first = s->first;
    for (Reduction *r = first; r; r = r->next)
        start_block(L, r, s->width);
    nest(L, first->n_reduced, plan_dims(L, first->x, ROLE_REDUCED, first->n_reduced, first->extents), NULL, column_body, s);
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, s->width, NULL, 1));
    first->at[s->column] = ix_add(&L->ix, s->start, j);
    const Ix **index = kept_index(L, first);
    for (const Reduction *r = first; r; r = r->next)
        for (int32_t k = 0; k < r->n; k++)
            store_result(L, r->x, r->to[k], index, scalar_convert(L->arena, r->carry[k], leaf_shape(r->x, k)->type, load(L, r->block[k], j)));
    block_close(L);
}

/* The widest divisor of n that fits a block, or the block with a rest. */
static int64_t block_width(int64_t n)
{
    if (n <= COLUMN_BLOCK)
        return n;
    for (int64_t w = COLUMN_BLOCK; w >= 64; w -= 16)
        if (n % w == 0)
            return w;
    return COLUMN_BLOCK;
}

static void column_stage(Lower *L, void *cookie, const Ix *const *index)
{
    ReduceStage *s = cookie;
    int64_t      n = s->first->in->dims[s->column], w = block_width(n);
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
    s.column = first->count > 1 ? fastest_kept(first) : -1;
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
