/* reduce. Along a row the accumulator is a scalar, or for sums, products and extremes of floats a set of lanes (lower_lanes.c); down the columns a block of them
 * (lower_columns.c). Long sums are cut into blocks (lower_reduction.c). The order is fixed by the shape.
 *
 * Extremes of long rows that a cache holds are made two at a time, so that two chains of them and of sums go on at once. From memory one stream is faster: what is
 * fetched ahead of a row is the next one.
 *
 * Of rows that lie in each other, two or three numbers of each of many points, all are made at once, or each would go through the memory of all.
 *
 * In a body that wants the results down the columns again (analysis/columns.h) a column is like a row, without lanes: columns.c puts columns beside each other.
 *
 * Reductions of a fusion that go over the same elements are made in the same loops, each with accumulators of its own (lower_together.c). */
#include "emit/lower_reduction.h"

#include "analysis/cost.h"
#include "emit/beside.h"

enum { SECOND_CACHE = 1 << 20 /* bytes */ };

/* The loops' body with scalar accumulators. */
static void row_body(Lower *L, void *cookie, const Ix *const *index)
{
    const Reduction *first = cookie;
    for (const Reduction *r = first; r; r = r->next)
        reduction_step(L, r, reduction_index(L, r->own_row ? r : first, index));
}

/* In memory what x is made of are bytes, and nothing dear is made of them; false, too, where more than *left instructions say so. */
static bool is_made_of_bytes(const Inst *x, int32_t *left)
{
    bool bytes = x->op == OP_BROADCAST || x->op == OP_RESHAPE || x->op == OP_BITCAST || x->op == OP_REVERSE || (op_has(x->op, F_ELEMENTWISE) && !inst_is_dear(x));
    for (int32_t k = 0; k < x->n_operands && bytes; k++)
        bytes = --*left > 0 && is_made_of_bytes(inst_operand(x, k), left);
    return bytes || x->op == OP_CONSTANT || x->op == OP_IOTA || (x->op == OP_PARAMETER && type_bits(x->shape->type) <= 8);
}

/* Rows of 4, 8 or 16 bytes come apart in vectors: compilers read whole ones of them and shuffle out which is first, which second, ... (4096 rows of 8 truth values to bits, one thread of
 * Zen 5, 3.6 and 0.3 us). */
static bool are_rows_of_bytes(const Inst *r, int64_t n)
{
    int32_t left = 32;
    return r->n_operands == 2 && (n == 4 || n == 8 || n == 16) && is_made_of_bytes(inst_operand(r, 0), &left);
}

/* A loop of few trips inside of another one keeps compilers from vectors of that, unless they unroll it early. */
static bool is_written_out(const Lower *L, const Reduction *first)
{
    enum { MOST_TERMS = 4, MOST_BODY = 100 };
    return !first->plain && !first->beside && !first->down && (first->count <= MOST_TERMS || are_rows_of_bytes(first->x, first->count)) && L->body && L->body->n_insts <= MOST_BODY;
}

static void row_written_out(Lower *L, Reduction *first)
{
    const Ix **index = ARENA_ARRAY(L->arena, const Ix *, first->n_reduced);
    for (int64_t i = 0; i < first->count; i++) {
        int64_t rest = i;
        for (int32_t k = first->n_reduced; k-- > 0; rest /= first->extents[k])
            index[k] = ix_const(&L->ix, rest % first->extents[k]);
        row_body(L, first, index);
    }
}

/* ---- columns, each of which has accumulators like a row ---- */

static void down_body(Lower *L, void *cookie, const Ix *const *index)
{
    const Blocks     *b = cookie;
    const Ix *const *at = blocks_place(L, b, b->first, index, NULL);
    for (const Reduction *r = b->first; r; r = r->next)
        reduction_step(L, r, at);
}

static void down_block(Lower *L, Blocks *b, int32_t n, LoopDim *dims)
{
    for (Reduction *r = b->first; r; r = r->next)
        r->part = reduction_wants_blocks(r) ? accumulator(L, reduction_nothing(L, r, TYPE_F32), TYPE_F32, "part") : NULL;
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
    blocks_cut(&b);
    blocks_each(L, &b);
}

int32_t index_depth(const Ix *const *index, int32_t rank)
{
    int32_t depth = 0;
    for (int32_t d = 0; d < rank; d++)
        if (ix_depth(index[d]) > depth)
            depth = ix_depth(index[d]);
    return depth;
}

/* What the row of r, whose elements many threads share, begins with instead of its start, which joins their sum or product once, at the end; NULL: it begins with its start. */
static const KExpr *late_start(Lower *L, const Reduction *r)
{
    const bool   sum = r->op == OP_ADD, product = r->op == OP_MULTIPLY;
    const KExpr *start = r->plain && r->n == 1 && r->count > 1 && (sum || product) && r->carry[0] != TYPE_PRED ? reduction_start(L, r, 0) : NULL;
    if (!start || kx_is_number(start, product ? 1 : 0))
        return NULL;
    return reduction_nothing(L, r, r->carry[0]);
}

static void declare_accumulators(Lower *L, const Reduction *r)
{
    const char  *name = map_has(&L->plan->materialise, r->x) || !L->body ? "acc" : r->x->name;
    const KExpr *late = late_start(L, r);
    for (int32_t k = 0; k < r->n; k++)
        r->acc[k] = accumulator(L, late ? late : reduction_start(L, r, k), machine_type(r->carry[k]), r->n > 1 ? arena_printf(L->arena, "%s_%d", name, k) : name);
}

/* The values of one row of each. */
static void reduce_row(Lower *L, Reduction *first, const Ix *const *index)
{
    KBlock     *cur = L->cur;
    const Inst *consumer = L->consumer;
    L->consumer = first->x;
    L->cur = block_for(L, index_depth(index, reduction_shape(first->x, 0)->rank));
    reduction_set_kept(first, index);
    for (Reduction *r = first; r; r = r->next)
        declare_accumulators(L, r);
    if (first->count > 0 && reductions_want_lanes(first))
        reduce_in_lanes(L, first);
    else if (first->count > 0 && first->down && reductions_want_blocks(first))
        reduce_down(L, first);
    else if (first->count > 0 && is_written_out(L, first))
        row_written_out(L, first);
    else if (first->count > 0)
        nest(L, first->n_reduced, plan_dims(L, first->x, ROLE_REDUCED, first->n_reduced, first->extents), NULL, row_body, first);
    L->consumer = consumer;
    L->cur = cur;
}

static const KExpr *row_result(Lower *L, const Reduction *r, int32_t k)
{
    const KExpr *v = kx_temp(L->arena, r->acc[k]);
    if (late_start(L, r))
        reduction_combine(L, r, (const KExpr *const[]){ reduction_start(L, r, k) }, (const KExpr *const[]){ v }, &v);
    return scalar_convert(L->arena, r->carry[k], reduction_shape(r->x, k)->type, v);
}

void reduce_at(Lower *L, const Inst *x, const Ix *const *index, const KExpr **out)
{
    const Inst *others[MOST_TOGETHER];
    int32_t     n = together_inline(L, x, index, others);
    Reduction  *first = reductions_of(L, x, n, others);
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
    const Shape *s = reduction_shape(x, 0), *in = inst_operand(x, 0)->shape;
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

/* Elements of a row: of the fastest dimensions, if r reduces them; some that are too many. */
static int64_t row_elements(const Inst *r)
{
    const Shape *in = inst_operand(r, 0)->shape;
    const Ints   dims = inst_ints(r, ATTR_DIMENSIONS);
    int64_t      n = 1;
    for (int32_t k = 0; k < in->rank && n <= BESIDE_MOST; k++) {
        const int32_t d = (int32_t)layout_dim(in, k);
        if (in->dims[d] != 1 && !ints_has(dims, d))
            break;
        n *= in->dims[d];
    }
    return n;
}

/* The fewest elements of a row. Of f16 compilers make no vectors, and of what rounds to bf16 none along such rows (one thread of an Emerald Rapids, 500 springs
 * in 3 dimensions, f16 16.6 and 5.9 us, bf16 18.9 and 8.3). */
static int64_t least_elements(const Inst *r, bool more)
{
    enum { LEAST = 2 };
    const Inst *x = inst_operand(r, 0);
    const Type  t = x->op == OP_CONVERT ? inst_operand(x, 0)->shape->type : x->shape->type;
    return r->n_operands > 2 || t == TYPE_F16 || (t == TYPE_BF16 && more) ? LEAST : BESIDE_LEAST;
}

/* From BESIDE_LANES elements on rows have lanes. Where those are full, or memory is what all wait for, that is better. */
bool reduces_short_rows(const Inst *r, bool more)
{
    enum { FULL = 16, CACHE = 8 << 20 };
    const Shape  *in = inst_operand(r, 0)->shape;
    const int64_t n = row_elements(r), bytes = type_bytes(in->type);
    const Op      op = apply_operation(inst_callee(r, 0));
    const bool    pairs = r->n_operands > 2, in_vectors = !type_is_float(in->type) && in->type != TYPE_PRED; /* along a row, by compilers */
    if (shape_count(reduction_shape(r, 0)) < BESIDE_ROWS || shape_count(in) == 0 || n < least_elements(r, more) || n > BESIDE_MOST)
        return false;
    if (pairs || (more && n < BESIDE_LANES))
        return true;
    if (!more && are_rows_of_bytes(r, n))
        return false;
    if (more)
        return bytes < 8 && n % FULL != 0 && shape_count(in) <= CACHE / bytes;
    return n < (in_vectors ? BESIDE_LANES / 2 : BESIDE_LANES) && (bytes < 8 || (op != OP_ADD && op != OP_MULTIPLY));
}

/* ---- stages ---- */

typedef struct ReduceStage {
    Reduction *first;
    int32_t    dim; /* the kept dimension of which several rows are made at once, or -1 */
} ReduceStage;

static void store_row(Lower *L, const Reduction *r, const Ix *const *index)
{
    for (int32_t k = 0; k < r->n; k++)
        store_result(L, r->x, r->to[k], index, row_result(L, r, k));
}

/* The reductions from first on at n places at[], in one pass. */
static void reduce_rows(Lower *L, Reduction *first, bool paired, int32_t n, const Ix *const *const *at)
{
    int32_t    reductions = 1;
    Reduction *end = first;
    for (; end->next; end = end->next)
        reductions++;
    Reduction *const last = end;
    for (int32_t c = 1; c < n; c++) {
        const Reduction *r = first;
        for (int32_t k = 0; k < reductions; k++, r = r->next) {
            Reduction *other = ARENA_NEW(L->arena, Reduction);
            *other = reduction_of(L, r->x, paired, r->joined, false);
            other->to = r->to;
            other->own_row = true;
            reduction_set_kept(other, at[c]);
            end = end->next = other;
        }
    }
    reduce_row(L, first, at[0]);
    const Reduction *r = first;
    for (int32_t c = 0; c < n; c++)
        for (int32_t k = 0; k < reductions; k++, r = r->next)
            store_row(L, r, at[c]);
    last->next = NULL;
}

static void row_stage(Lower *L, void *cookie, const Ix *const *index)
{
    ReduceStage *s = cookie;
    reduce_rows(L, s->first, false, 1, &index);
}

/* index with i in place d. */
static const Ix *const *index_with(Lower *L, const Reduction *r, const Ix *const *index, int32_t d, const Ix *i)
{
    const Ix **at = arena_copy(L->arena, index, (size_t)reduction_shape(r->x, 0)->rank * sizeof *at);
    at[d] = i;
    return at;
}

/* Rows 2 * i and 2 * i + 1 of the last kept dimension. */
static void two_rows(Lower *L, void *cookie, const Ix *const *index)
{
    ReduceStage     *s = cookie;
    const Ix        *even = ix_times(&L->ix, index[s->dim], 2);
    const Ix *const *at[] = { index_with(L, s->first, index, s->dim, even), index_with(L, s->first, index, s->dim, ix_plus(&L->ix, even, 1)) };
    reduce_rows(L, s->first, true, 2, at);
}

static void last_row(Lower *L, void *cookie, const Ix *const *index)
{
    ReduceStage *s = cookie;
    row_stage(L, s, index_with(L, s->first, index, s->dim, ix_const(&L->ix, reduction_shape(s->first->x, 0)->dims[s->dim] - 1)));
}

/* The kept dimension whose rows are made two at a time: the last one of some length, where extremes of long rows are in a cache; else -1. */
static int32_t paired_dim(Lower *L, const Reduction *r)
{
    const Shape  *out = reduction_shape(r->x, 0);
    const int64_t elements = r->count * shape_count(out);
    if (r->next || r->n > 1 || !reduction_wants_sums(r) || elements * type_bytes(r->in->type) > SECOND_CACHE || !reductions_are_cheap(L, r))
        return -1;
    for (int32_t d = out->rank; d-- > 0;)
        if (out->dims[d] > 1)
            return d;
    return -1;
}

static void stage_two_rows(Lower *L, ReduceStage *s)
{
    const Shape   *out = reduction_shape(s->first->x, 0);
    int64_t       *extents = arena_copy(L->arena, out->dims, (size_t)out->rank * sizeof *extents), n = extents[s->dim];
    KArray *const *to = s->first->to;
    *s->first = reduction_of(L, s->first->x, true, s->first->joined, false);
    s->first->to = to;
    extents[s->dim] = n / 2;
    nest(L, out->rank, plan_dims(L, s->first->x, ROLE_PAIRS, out->rank, extents), major_order(L, out), two_rows, s);
    extents[s->dim] = 1;
    if (n % 2)
        nest(L, out->rank, plan_dims(L, s->first->x, ROLE_LAST_ROW, out->rank, extents), major_order(L, out), last_row, s);
}

enum { MOST_ROWS = 3 };

/* The kept dimension, the fastest one of the operand, whose few rows are made at once; else -1. */
static int32_t narrow_dim(const Reduction *first)
{
    enum { LEAST_ELEMENTS = 16, MOST_REDUCTIONS = 2 };
    const Shape *in = first->in, *out = reduction_shape(first->x, 0);
    int32_t      d = -1, n = 0;
    for (int32_t k = 0; k < in->rank && d < 0; k++)
        if (in->dims[layout_dim(in, k)] > 1)
            d = (int32_t)layout_dim(in, k);
    bool fits = d >= 0 && !ints_has(first->dims, d) && in->dims[d] <= MOST_ROWS && first->count >= LEAST_ELEMENTS && !first->plain && !first->beside && !first->down && !first->fills;
    for (const Reduction *r = first; r; r = r->next) {
        fits &= r->n == 1 && (reduction_can_have_lanes(r) || r->op == OP_ADD || type_is_int(r->carry[0]));
        n++;
    }
    if (!fits || n > MOST_REDUCTIONS)
        return -1;
    int32_t at = 0;
    for (int32_t k = 0; k < d; k++)
        at += !ints_has(first->dims, k);
    return out->dims[at] == in->dims[d] ? at : -1;
}

static void narrow_rows(Lower *L, void *cookie, const Ix *const *index)
{
    const ReduceStage *s = cookie;
    const int32_t      n = (int32_t)reduction_shape(s->first->x, 0)->dims[s->dim];
    const Ix *const   *at[MOST_ROWS];
    for (int32_t c = 0; c < n; c++)
        at[c] = index_with(L, s->first, index, s->dim, ix_const(&L->ix, c));
    reduce_rows(L, s->first, false, n, at);
}

static void stage_narrow_rows(Lower *L, ReduceStage *s)
{
    const Shape *out = reduction_shape(s->first->x, 0);
    int64_t     *extents = arena_copy(L->arena, out->dims, (size_t)out->rank * sizeof *extents);
    extents[s->dim] = 1;
    nest(L, out->rank, plan_dims(L, s->first->x, ROLE_NARROW, out->rank, extents), major_order(L, out), narrow_rows, s);
}

/* Choices of pairs among a few elements of each row go side by side, as columns do: compilers make vectors of them. The dimension of the rows, else -1. */
static int32_t rows_side_by_side(const Reduction *first)
{
    enum { FEW_ELEMENTS = 16, MANY_ROWS = 64 };
    const Shape *in = first->in, *out = reduction_shape(first->x, 0);
    bool         fits = !first->plain && !first->down && first->n_reduced == 1 && first->count <= FEW_ELEMENTS && in->rank > 1 && out->rank > 0;
    for (const Reduction *r = first; r && fits; r = r->next)
        fits = r->n > 1;
    if (!fits || !ints_has(first->dims, layout_dim(in, 0)) || ints_has(first->dims, layout_dim(in, 1)))
        return -1;
    int32_t d = (int32_t)layout_dim(in, 1), k = 0;
    for (int32_t e = 0; e < d; e++)
        k += !ints_has(first->dims, e);
    return in->dims[d] >= MANY_ROWS && layout_dim(out, 0) == k ? d : -1;
}

void stage_reduce(Lower *L, int32_t n, const Inst *const *x, KArray *const *const *to)
{
    Reduction   *first = reductions_of(L, x[0], n - 1, x + 1);
    ReduceStage  s = {.first = first};
    const Shape *out = reduction_shape(x[0], 0);
    int32_t      at = 0;
    for (Reduction *r = first; r; r = r->next)
        r->to = to[at++];
    int32_t column = first->count > 1 && !first->down ? reduction_column(first) : -1;
    if (column < 0 && first->count > 1 && !L->beside)
        column = rows_side_by_side(first);
    if (column >= 0)
        reduce_in_columns(L, first, column);
    else if ((s.dim = paired_dim(L, first)) >= 0)
        stage_two_rows(L, &s);
    else if ((s.dim = narrow_dim(first)) >= 0)
        stage_narrow_rows(L, &s);
    else
        nest(L, out->rank, plan_dims(L, x[0], ROLE_KEPT, out->rank, out->dims), major_order(L, out), row_stage, &s);
}
