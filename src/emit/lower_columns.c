/* Down the columns a block of accumulators is carried along the rows, a few of them at a time, which memory brings beside each other:
 *
 *   for r: for j: acc[j] = acc[j] + x[4*r][j] + x[4*r + 1][j] + x[4*r + 2][j] + x[4*r + 3][j] */
#include "emit/lower_reduction.h"

enum { COLUMN_BYTES = 16384 /* of accumulators */, ROWS_ABREAST = 4, LEAST_BLOCKS = 4 /* of columns along a dimension, before it is one with the next */ };

typedef struct Columns {
    Reduction     *first;
    int32_t        joined;  /* so many of the fastest dimensions, all kept, are one */
    const int32_t *dims;    /* which, most major first */
    int64_t       *extents; /* of those in a block */
    int64_t        width;   /* of a block: all of them */
    const Ix      *start;   /* of a block, in the first of them */
} Columns;

/* The index of column j of the block. */
static void set_column(Lower *L, const Columns *s, const Ix *j, const Ix **index)
{
    const Ix **digits = ARENA_ARRAY(L->arena, const Ix *, s->joined);
    ix_split(&L->ix, j, s->joined, s->extents, digits);
    for (int32_t k = 0; k < s->joined; k++)
        index[s->dims[k]] = digits[k];
    index[s->dims[0]] = ix_add(&L->ix, index[s->dims[0]], s->start);
}

static const Ix **kept_index(Lower *L, const Reduction *r)
{
    const Ix **index = ARENA_ARRAY(L->arena, const Ix *, r->in->rank);
    for (int32_t d = 0, k = 0; d < r->in->rank; d++)
        if (!ints_has(r->dims, d))
            index[k++] = r->at[d];
    return index;
}

/* Rows that are computed at length are not computed in several places, nor are pairs that are chosen: compilers make branches of several choices. */
static int64_t rows_abreast(Lower *L, const Reduction *first)
{
    bool cheap = reductions_are_cheap(L, first);
    for (const Reduction *r = first; r; r = r->next)
        cheap &= r->n == 1;
    return cheap ? ROWS_ABREAST : 1;
}

/* acc[j] = acc[j] and one element of each of the rows at[0], at[1], ... */
static void column_step(Lower *L, const Reduction *r, const Ix *j, int64_t rows, const Ix **const *at)
{
    const KExpr **acc = ARENA_ARRAY(L->arena, const KExpr *, r->n), **out = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    for (int32_t k = 0; k < r->n; k++)
        acc[k] = load_current(L, r->block[k], j);
    for (int64_t row = 0; row < rows; row++) {
        reduction_combine(L, r, acc, reduction_elements(L, r, r->block[0]->type, at[row]), out);
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
    Columns  *s = b->cookie;
    int32_t       n = b->first->n_reduced - (b->d < 0 ? 0 : b->d);
    const Ix     *j = ix_of(&L->ix, loop_open(L, 0, s->width, NULL, 1)), ***at = ARENA_ARRAY(L->arena, const Ix **, b->abreast);
    for (int64_t row = 0; row < b->abreast; row++) {
        at[row] = blocks_place(L, b, b->first, row_index(L, b, index, n, row), NULL);
        set_column(L, s, j, at[row]);
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
            r->block[0] = lanes_new(L, TYPE_F32, r->total->count, reduction_nothing(L, r, TYPE_F32), "acc");
    column_loops(L, b, n, dims);
    for (Reduction *r = b->first; r; r = r->next)
        if (r->total)
            lanes_add(L, r->total, r->block[0]);
}

static void start_columns(Lower *L, Reduction *r, int64_t width, bool blocks)
{
    const KExpr **init = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    r->block = ARENA_ARRAY(L->arena, KArray *, r->n);
    for (int32_t k = 0; k < r->n; k++) {
        r->block[k] = local_array(L, machine_type(r->carry[k]), width, blocks ? "total" : "acc");
        init[k] = reduction_start(L, r, k);
    }
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, width, NULL, 1));
    for (int32_t k = 0; k < r->n; k++)
        store(L, r->block[k], j, init[k]);
    block_close(L);
    r->total = blocks ? r->block[0] : NULL;
}

/* The results of one block. */
static void column_block(Lower *L, Columns *s)
{
    Reduction *first = s->first;
    Blocks     b = { .first = first, .d = -1, .extents = first->extents, .block = column_rows, .cookie = s };
    if (reductions_want_blocks(first))
        blocks_cut(&b);
    for (Reduction *r = first; r; r = r->next)
        start_columns(L, r, s->width, reduction_wants_blocks(r) && b.d >= 0);
    blocks_each(L, &b);
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, s->width, NULL, 1));
    set_column(L, s, j, first->at);
    const Ix **index = kept_index(L, first);
    for (const Reduction *r = first; r; r = r->next)
        for (int32_t k = 0; k < r->n; k++) {
            KArray *from = r->total ? r->total : r->block[k];
            store_result(L, r->x, r->to[k], index, scalar_convert(L->arena, r->carry[k], reduction_shape(r->x, k)->type, load(L, from, j)));
        }
    block_close(L);
}

/* Accumulators of a block, at most. */
static int64_t most_columns(const Reduction *r)
{
    return COLUMN_BYTES / type_bytes(machine_type(reduction_shape(r->x, 0)->type));
}

/* The largest divisor of n that is not much less than most, in steps, or most with a rest. */
static int64_t block_width(int64_t n, int64_t most, int64_t step)
{
    if (n <= most)
        return n;
    for (int64_t w = most; w >= most / 4 && w > 0; w -= step)
        if (n % w == 0)
            return w;
    return most;
}

static void set_extent(Columns *s, int64_t first)
{
    s->extents[0] = first;
    s->width = 1;
    for (int32_t k = 0; k < s->joined; k++)
        s->width *= s->extents[k];
}

static void column_stage(Lower *L, void *cookie, const Ix *const *index)
{
    Columns      *s = cookie;
    const int64_t n = s->first->in->dims[s->dims[0]];
    int64_t       most = most_columns(s->first);
    for (int32_t k = 1; k < s->joined; k++)
        most /= s->extents[k];
    const int64_t w = block_width(n, most, s->joined > 1 ? 1 : 16);
    reduction_set_kept(s->first, index);
    set_extent(s, w);
    s->start = ix_const(&L->ix, 0);
    if (n > w)
        s->start = ix_times(&L->ix, ix_of(&L->ix, loop_open(L, 0, n / w, NULL, 1)), w);
    column_block(L, s);
    if (n > w)
        block_close(L);
    if (n % w) {
        set_extent(s, n % w);
        s->start = ix_const(&L->ix, n / w * w);
        column_block(L, s);
    }
}

/* Results lie as the operand does along its n fastest dimensions, which they keep. */
static bool keeps_order(const Reduction *r, int32_t n)
{
    const Shape *out = reduction_shape(r->x, 0);
    for (int32_t k = 0; k < n; k++) {
        int32_t d = (int32_t)layout_dim(r->in, k), before = 0;
        for (int32_t e = 0; e < d; e++)
            before += !ints_has(r->dims, e);
        if (ints_has(r->dims, d) || k >= out->rank || layout_dim(out, k) != before)
            return false;
    }
    return true;
}

/* How many of the fastest dimensions are one: what the loops make of neighbours lies side by side. */
static int32_t columns_joined(Lower *L, const Reduction *first)
{
    int32_t n = 1;
    int64_t width = first->in->dims[layout_dim(first->in, 0)];
    for (bool more = true; more && n < first->in->rank && width <= most_columns(first) / LEAST_BLOCKS; n += more) {
        width *= first->in->dims[layout_dim(first->in, n)];
        for (const Reduction *r = first; r && more; r = r->next)
            for (int32_t k = 0; k < r->n && more; k++)
                more = keeps_order(r, n + 1) && reduction_neighbours(L, inst_operand(r->x, k), n + 1);
    }
    return keeps_order(first, 1) ? n : 1;
}

void reduce_in_columns(Lower *L, Reduction *first, int32_t column)
{
    const Inst *x = first->x;
    int32_t     rank = reduction_shape(x, 0)->rank, joined = columns_joined(L, first), *dims = ARENA_ARRAY(L->arena, int32_t, joined);
    int64_t    *extents = ARENA_ARRAY(L->arena, int64_t, rank), *widths = ARENA_ARRAY(L->arena, int64_t, joined);
    Columns     s = { .first = first, .joined = joined, .dims = dims, .extents = widths };
    for (int32_t k = 0; k < joined; k++) {
        dims[k] = joined == 1 ? column : (int32_t)layout_dim(first->in, joined - 1 - k);
        widths[k] = first->in->dims[dims[k]];
    }
    for (int32_t d = 0, k = 0; d < first->in->rank; d++)
        if (!ints_has(first->dims, d)) {
            extents[k] = first->in->dims[d];
            for (int32_t i = 0; i < joined; i++)
                extents[k] = dims[i] == d ? 1 : extents[k];
            k++;
        }
    nest(L, rank, plan_dims(L, x, ROLE_COLUMN, rank, extents), major_order(L, reduction_shape(x, 0)), column_stage, &s);
}
