/* dot: out[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n], dimensions in any order.
 *
 * Where one side (call it cols, the other rows) varies along a free dimension faster than along k, a tile of rows x columns of sums is
 * carried down k, vectorised over the columns:
 *
 *   float acc[4 * 64] = 0;  for k: a0..a3 = rows[..][k];  for j < 64: b = cols[k][j]; acc[j] += a0*b; acc[64 + j] += a1*b; ...
 *
 * Sums of few terms of a tile that is small as a whole, which many such products of a batch are, are written as such, so that they stay in registers:
 *
 *   for j < 4: out[0][j] = rows[0][0] * cols[0][j] + rows[0][1] * cols[1][j] + ...
 *
 * Columns that do not fill vectors have company there: those behind them in memory, whose sums nobody reads.
 *
 * Where k lies along the lines of both, cols that are small beside what they are used for are turned once, so that there are such columns (with a bias and tanh, one thread: 32 x 16 x 16
 * 1.96 and 0.4 us).
 *
 * Where both lie in memory like that, or the other side is turned since its columns fill no vector, eight rows at a time are multiplied by one of the other side, and their lanes are joined together:
 *
 *   dot_rows_f32(&sums[8*i], &rows[8*i*K], K, &cols[0], K)
 *
 * (one thread of an Emerald Rapids, 2000 times 24 x 24 by what it gave before: 174 and 91 us, f64 139 and 112; 1000 x 16 1.8 and 1.0 us, 128 x 1000 7.3 and 5.2.)
 *
 * Otherwise, and for targets that deal loops out to threads, each result is the sum along k of a row times a row, in lanes as reduce has them. bf16,
 * f16 and smaller are summed in f32. */
#include "emit/beside.h"
#include "emit/dot_call.h"
#include "emit/lower.h"

enum { ROLE_OUTER = 10, ROLE_K = 11, ROLE_TAIL = 12, ROLE_WIDE = 13 /* and the next one */, ROLE_STORE = 1000 /* + columns */ };
enum { LEAST_WIDE = 16, MOST_WIDE = 4096, /* elements of an operand */ MOST_BYTES = 65536, /* of one byte */ WIDE_USES = 16 };
enum { LEAST_TURNED = 4 /* rows and columns */, TERMS_FOR_ROW = 4 };
enum { AT_ONCE = DOT_ROWS_AT_ONCE /* dot_rows_f32's */, MOST_SUMS = 64,
       SAME_LINES = 2048 /* bytes: rows so far apart share few lines of the first cache (64 of 512 of f32 1.1 us one by one, and 1.4) */ };
enum { TILE_ROWS = 4, TILE_COLUMNS = 64, LANES = 16, VECTOR = 4, FEW_ROWS = 12,
       NARROW = 8, NARROW_ROWS = 8 /* so few columns are one vector: its additions wait for each other, those of other rows do not */ };

typedef struct Side {
    const Inst  *x;
    const Shape *shape;
    Ints         batch, contract;
    int32_t      n_free;
    int32_t     *free;   /* ascending */
    int32_t      first;  /* position of its free dimensions in the result */
    int64_t     *strides;
    int32_t      tiled;  /* number of the free dimension that is cut into tiles, -1: none */
    int64_t      tile;   /* elements of it at once */
    KArray      *wide;   /* all elements in the type of the products, in the order of wide_shape; NULL: they are converted where they are used */
    const Shape *wide_shape;
} Side;

typedef struct Dot {
    const Inst *x;
    Type        type;  /* of products and sums */
    Side        rows, cols;
    int32_t     n_batch, n_k;
    int64_t    *k_extents;
    int64_t     k_count;
    KArray     *to, *acc;
    int64_t     acc_row; /* from a row of acc to the next */
    /* where the tile being computed is */
    const Ix *const *outer; /* batch, rows' free, cols' free in result order; tiled ones at the first element */
    const Ix  **k;
    KTemp      *sum;
    bool        begun; /* what fills no lanes comes first */
    const Ix   *row;   /* of the tile, while it is stored */
    int64_t     step;  /* tiles have multiples of so many columns */
    bool        at_once; /* rows are made eight at a time */
    bool        beside; /* lanes are members of the batch */
    bool        few;   /* terms, rows and columns: a tile is all of a product */
    KArray     *wide_rows, *wide_cols; /* of such a tile: factors [row][k] and [k][column] whose type is a narrower one, NULL: as they lie */
} Dot;

static Side side(Lower *L, const Inst *x, int32_t operand, int32_t first)
{
    Side s = { .x = inst_operand(x, operand), .first = first, .tiled = -1, .tile = 1 };
    s.shape = s.wide_shape = s.x->shape;
    s.batch = inst_ints(x, operand ? ATTR_RHS_BATCH_DIMS : ATTR_LHS_BATCH_DIMS);
    s.contract = inst_ints(x, operand ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS);
    s.free = ARENA_ARRAY(L->arena, int32_t, s.shape->rank);
    for (int32_t d = 0; d < s.shape->rank; d++)
        if (!ints_has(s.batch, d) && !ints_has(s.contract, d))
            s.free[s.n_free++] = d;
    s.strides = ARENA_ARRAY(L->arena, int64_t, s.shape->rank);
    shape_strides(s.shape, s.strides);
    return s;
}

/* The free dimension that varies faster than every contracting one, -1: none. */
static int32_t fast_free(const Side *s)
{
    int32_t best = -1;
    for (int32_t f = 0; f < s->n_free; f++)
        if (s->shape->dims[s->free[f]] > 1 && (best < 0 || s->strides[s->free[f]] < s->strides[s->free[best]]))
            best = f;
    for (int32_t k = 0; k < s->contract.n && best >= 0; k++) {
        int64_t d = s->contract.v[k];
        if (s->shape->dims[d] > 1 && s->strides[d] < s->strides[s->free[best]])
            return -1;
    }
    return best;
}

static bool is_turned(const Side *s)
{
    return s->wide_shape != s->shape;
}

/* The last free dimension of some size. */
static int32_t last_free(const Side *s)
{
    for (int32_t f = s->n_free - 1; f >= 0; f--)
        if (s->shape->dims[s->free[f]] > 1)
            return f;
    return -1;
}

static bool is_in_memory(Lower *L, const Side *s)
{
    int32_t     leaf = 0;
    const Inst *from = resolve(L, s->x, &leaf);
    return memory_of(L, from, leaf) != NULL;
}

static const KExpr *converted_at(Lower *L, const Dot *d, const Side *s, const Ix *const *at)
{
    int32_t     leaf = 0;
    const Inst *from = resolve(L, s->x, &leaf);
    return scalar_convert(L->arena, s->shape->type, d->type, value_at(L, from, leaf, at));
}

/* Index of one operand: batch and free from the tile's position plus `off` along the tiled dimension, k from the loops. */
static const Ix **factor_index(Lower *L, const Dot *d, const Side *s, const Ix *off)
{
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, s->shape->rank);
    for (int32_t b = 0; b < s->batch.n; b++)
        at[s->batch.v[b]] = d->outer[b];
    for (int32_t f = 0; f < s->n_free; f++) {
        at[s->free[f]] = d->outer[s->first + f];
        if (f == s->tiled)
            at[s->free[f]] = ix_add(&L->ix, at[s->free[f]], off);
    }
    for (int32_t k = 0; k < s->contract.n; k++)
        at[s->contract.v[k]] = d->k[k];
    return at;
}

static const KExpr *factor(Lower *L, const Dot *d, const Side *s, const Ix *off)
{
    const Ix **at = factor_index(L, d, s, off);
    return s->wide ? load(L, s->wide, shape_index(L, s->wide_shape, at)) : converted_at(L, d, s, at);
}

static const KExpr *multiply_add(Lower *L, const Dot *d, const KExpr *sum, const KExpr *x, const KExpr *y)
{
    return scalar_binary(L->arena, OP_ADD, d->type, sum, scalar_binary(L->arena, OP_MULTIPLY, d->type, x, y));
}

/* Sets d->k to the k-th term. */
static void term(Lower *L, const Dot *d, int64_t k)
{
    for (int32_t i = d->n_k - 1; i >= 0; i--) {
        d->k[i] = ix_const(&L->ix, k % d->k_extents[i]);
        k /= d->k_extents[i];
    }
}

/* All terms of a sum, row r of the tile by column j. */
static const KExpr *whole_sum(Lower *L, const Dot *d, const Ix *r, const Ix *j)
{
    const KExpr *sum = scalar_zero(L->arena, d->type);
    for (int64_t k = 0; k < d->k_count; k++) {
        term(L, d, k);
        const KExpr *x = d->wide_rows ? load_current(L, d->wide_rows, ix_plus(&L->ix, ix_times(&L->ix, r, d->k_count), k)) : factor(L, d, &d->rows, r);
        const KExpr *y = d->wide_cols ? load_current(L, d->wide_cols, ix_plus(&L->ix, j, k * d->acc_row)) : factor(L, d, &d->cols, j);
        sum = multiply_add(L, d, sum, x, y);
    }
    return sum;
}

/* How many columns are computed: more than there are, to fill vectors, where all that is read lies in the operand. */
static int64_t few_width(Lower *L, const Dot *d)
{
    const Side  *s = &d->cols;
    const Shape *shape = s->shape;
    int64_t      n = s->tile, wide = n < 2 * VECTOR ? 2 * VECTOR : (n + VECTOR - 1) / VECTOR * VECTOR;
    const Ix   **at = ARENA_ARRAY(L->arena, const Ix *, shape->rank);
    if (n <= VECTOR || n % VECTOR == 0 || !is_in_memory(L, s) || s->strides[s->free[s->tiled]] != 1)
        return n;
    for (int32_t k = 0; k < shape->rank; k++)
        at[k] = ix_const(&L->ix, shape->dims[k] - 1);
    for (int32_t b = 0; b < s->batch.n; b++)
        at[s->batch.v[b]] = d->outer[b];
    return in_range(L, ix_plus(&L->ix, shape_index(L, shape, at), wide - n), 0, shape_count(shape)) == 1 ? wide : n;
}

/* One step down k of the whole tile. */
static void tile_step(Lower *L, void *cookie, const Ix *const *k)
{
    Dot          *d = cookie;
    const KExpr **a = ARENA_ARRAY(L->arena, const KExpr *, d->rows.tile);
    for (int32_t i = 0; i < d->n_k; i++)
        d->k[i] = k[i];
    for (int64_t r = 0; r < d->rows.tile; r++)
        a[r] = bind(L, factor(L, d, &d->rows, ix_const(&L->ix, r)), arena_printf(L->arena, "a%lld", (long long)r));
    const Ix    *j = d->cols.tile > 1 ? ix_of(&L->ix, loop_open(L, 0, d->cols.tile, NULL, 1)) : ix_const(&L->ix, 0);
    const KExpr *b = factor(L, d, &d->cols, j);
    if (d->rows.tile > 1)
        b = bind(L, b, "b");
    for (int64_t r = 0; r < d->rows.tile; r++) {
        const Ix *at = ix_plus(&L->ix, j, r * d->cols.tile);
        store(L, d->acc, at, multiply_add(L, d, load_current(L, d->acc, at), a[r], b));
    }
    if (d->cols.tile > 1)
        block_close(L);
}

static void store_value(Lower *L, const Dot *d, const Ix *row, const Ix *col, const KExpr *v)
{
    int32_t    rank = d->x->shape->rank;
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, rank);
    for (int32_t k = 0; k < rank; k++)
        at[k] = d->outer[k];
    if (d->rows.tiled >= 0)
        at[d->rows.first + d->rows.tiled] = ix_add(&L->ix, at[d->rows.first + d->rows.tiled], row);
    if (d->cols.tiled >= 0)
        at[d->cols.first + d->cols.tiled] = ix_add(&L->ix, at[d->cols.first + d->cols.tiled], col);
    store_result(L, d->x, d->to, at, scalar_convert(L->arena, d->type, d->x->shape->type, v));
}

static void store_column(Lower *L, void *cookie, const Ix *const *col)
{
    const Dot *d = cookie;
    store_value(L, d, d->row, col[0], load(L, d->acc, ix_add(&L->ix, ix_times(&L->ix, d->row, d->acc_row), col[0])));
}

/* All of one tile: clear, run down k, store. */
static void tile(Lower *L, Dot *d)
{
    int64_t   n = d->rows.tile * d->cols.tile;
    d->acc_row = d->cols.tile;
    d->acc = local_array(L, d->type, n, "acc");
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, n, NULL, 1));
    store(L, d->acc, j, scalar_zero(L->arena, d->type));
    block_close(L);
    if (d->k_count > 0)
        nest(L, d->n_k, plan_dims(L, d->x, ROLE_K, d->n_k, d->k_extents), NULL, tile_step, d);
    d->row = d->rows.tile > 1 ? ix_of(&L->ix, loop_open(L, 0, d->rows.tile, NULL, 1)) : ix_const(&L->ix, 0);
    nest(L, 1, plan_dims(L, d->x, ROLE_STORE + (int)d->cols.tile, 1, &d->cols.tile), NULL, store_column, d);
    if (d->rows.tile > 1)
        block_close(L);
}

static void store_sum(Lower *L, void *cookie, const Ix *const *col)
{
    const Dot *d = cookie;
    store_value(L, d, d->row, col[0], whole_sum(L, d, d->row, col[0]));
}

static void widen_term(Lower *L, void *cookie, const Ix *const *k)
{
    Dot *d = cookie;
    for (int32_t i = 0; i < d->n_k; i++)
        d->k[i] = k[i];
    const Ix *at = ix_add(&L->ix, ix_times(&L->ix, d->row, d->k_count), ix_linear(&L->ix, d->n_k, k, d->k_extents));
    store(L, d->wide_rows, at, factor(L, d, &d->rows, d->row));
}

/* Each factor is converted once. */
static void widen_few(Lower *L, Dot *d)
{
    d->wide_rows = d->rows.shape->type != d->type ? local_array(L, d->type, d->rows.tile * d->k_count, "rows") : NULL;
    d->wide_cols = d->cols.shape->type != d->type ? local_array(L, d->type, d->acc_row * d->k_count, "cols") : NULL;
    for (int64_t r = 0; r < d->rows.tile && d->wide_rows; r++) {
        d->row = ix_const(&L->ix, r);
        nest(L, d->n_k, plan_dims(L, d->x, ROLE_K, d->n_k, d->k_extents), NULL, widen_term, d);
    }
    for (int64_t k = 0; k < d->k_count && d->wide_cols; k++) {
        const Ix *j = ix_of(&L->ix, loop_open(L, 0, d->acc_row, NULL, 1));
        term(L, d, k);
        store(L, d->wide_cols, ix_plus(&L->ix, j, k * d->acc_row), factor(L, d, &d->cols, j));
        block_close(L);
    }
}

/* A tile of few sums of few terms: by rows, each of which is stored as it is made unless it is wider than the tile. */
static void few_tile(Lower *L, Dot *d)
{
    const int64_t width = few_width(L, d);
    const bool    aside = width > d->cols.tile;
    d->acc_row = width;
    widen_few(L, d);
    if (aside)
        d->acc = local_array(L, d->type, d->rows.tile * width, "acc");
    for (int64_t r = 0; r < d->rows.tile && aside; r++) {
        const Ix *j = ix_of(&L->ix, loop_open(L, 0, width, NULL, 1));
        store(L, d->acc, ix_plus(&L->ix, j, r * width), whole_sum(L, d, ix_const(&L->ix, r), j));
        block_close(L);
    }
    for (int64_t r = 0; r < d->rows.tile; r++) {
        d->row = ix_const(&L->ix, r);
        nest(L, 1, plan_dims(L, d->x, ROLE_STORE + (int)d->cols.tile, 1, &d->cols.tile), NULL, aside ? store_column : store_sum, d);
    }
}

static void tile_columns(Lower *L, Dot *d, const Ix **outer);

/* Calls next for each whole tile along the tiled dimension of s, then for the rest. */
static void along(Lower *L, Dot *d, Side *s, int64_t width, const Ix **outer, void (*next)(Lower *, Dot *, const Ix **))
{
    int64_t n = s->shape->dims[s->free[s->tiled]];
    int32_t at = s->first + s->tiled;
    if (n / width > 1)
        outer[at] = ix_times(&L->ix, ix_of(&L->ix, loop_open(L, 0, n / width, NULL, 1)), width);
    s->tile = width;
    if (n / width > 0)
        next(L, d, outer);
    if (n / width > 1)
        block_close(L);
    if (n % width) {
        s->tile = n % width;
        outer[at] = ix_const(&L->ix, n / width * width);
        next(L, d, outer);
    }
    outer[at] = ix_const(&L->ix, 0);
}

static void tile_here(Lower *L, Dot *d, const Ix **outer)
{
    d->outer = outer;
    if (d->few)
        few_tile(L, d);
    else
        tile(L, d);
}

/* A width that divides n if one is near the wanted, else the wanted. */
int64_t tile_width(int64_t n, int64_t wanted, int64_t least)
{
    if (n <= wanted + wanted / 2)
        return n;
    for (int64_t w = wanted + wanted / 2; w >= least; w--)
        if (n % w == 0)
            return w;
    return wanted;
}

static void tile_columns(Lower *L, Dot *d, const Ix **outer)
{
    int64_t n = d->cols.shape->dims[d->cols.free[d->cols.tiled]];
    int64_t wanted = d->rows.tile == 1 ? 4 * TILE_COLUMNS : TILE_COLUMNS;
    int64_t width = tile_width(n / d->step, (wanted + d->step - 1) / d->step, (wanted / 2 + d->step - 1) / d->step) * d->step;
    along(L, d, &d->cols, width, outer, tile_here);
}

static void tiled_body(Lower *L, void *cookie, const Ix *const *index)
{
    Dot       *d = cookie;
    int32_t    rank = d->x->shape->rank;
    const Ix **outer = ARENA_ARRAY(L->arena, const Ix *, rank);
    for (int32_t k = 0; k < rank; k++)
        outer[k] = index[k];
    if (d->rows.tiled < 0) {
        tile_columns(L, d, outer);
        return;
    }
    int64_t n = d->rows.shape->dims[d->rows.free[d->rows.tiled]];
    bool    narrow = d->cols.shape->dims[d->cols.free[d->cols.tiled]] <= NARROW;
    int64_t wanted = d->few ? FEW_ROWS : narrow ? NARROW_ROWS : TILE_ROWS;
    along(L, d, &d->rows, tile_width(n, wanted, narrow && !d->few ? NARROW_ROWS / 2 + 1 : 3), outer, tile_columns);
}

static const KExpr *row_product(Lower *L, Dot *d, const Ix *const *k, const Ix *last)
{
    const Ix *none = ix_const(&L->ix, 0);
    for (int32_t i = 0; i < d->n_k; i++)
        d->k[i] = k[i];
    if (last)
        d->k[d->n_k - 1] = last;
    return scalar_binary(L->arena, OP_MULTIPLY, d->type, factor(L, d, &d->rows, none), factor(L, d, &d->cols, none));
}

static void row_step(Lower *L, void *cookie, const Ix *const *k)
{
    Dot *d = cookie;
    assign(L, d->sum, scalar_binary(L->arena, OP_ADD, d->type, current(L, d->sum), row_product(L, d, k, NULL)));
}

/* lane[l] += the product at from + l, but for the first `known` ones, which are added elsewhere. begins: there is nothing in the lanes. */
static void add_lanes(Lower *L, Dot *d, const Ix *const *k, const Ix *from, int64_t known, bool begins)
{
    const Ix    *lane = ix_of(&L->ix, loop_open(L, 0, d->acc->count, NULL, 1));
    const KExpr *x = row_product(L, d, k, ix_add(&L->ix, from, lane));
    if (known > 0) {
        const KExpr *has = kx_binary(L->arena, KOP_LT, TYPE_PRED, kx_cast(L->arena, TYPE_S32, kx_index(L->arena, lane)), kx_int(L->arena, TYPE_S32, known));
        x = kx_select(L->arena, has, scalar_zero(L->arena, d->type), bind(L, x, "x"));
    }
    store(L, d->acc, lane, begins ? x : scalar_binary(L->arena, OP_ADD, d->type, load_current(L, d->acc, lane), x));
    block_close(L);
}

static void lanes_step(Lower *L, void *cookie, const Ix *const *k)
{
    Dot *d = cookie;
    add_lanes(L, d, k, ix_times(&L->ix, k[d->n_k - 1], d->acc->count), 0, false);
}

/* The rest of each row of k that fills no lanes, as the vector that ends with the row; one element by itself. */
static void tail_step(Lower *L, void *cookie, const Ix *const *k)
{
    Dot          *d = cookie;
    const int64_t n = d->k_extents[d->n_k - 1], lanes = d->acc->count;
    const Ix    **at = ARENA_ARRAY(L->arena, const Ix *, d->n_k);
    for (int32_t i = 0; i + 1 < d->n_k; i++)
        at[i] = k[i];
    at[d->n_k - 1] = ix_const(&L->ix, n - 1);
    if (n % lanes == 1)
        row_step(L, cookie, at);
    else
        add_lanes(L, d, at, ix_const(&L->ix, n - lanes), lanes - n % lanes, d->begun);
}

/* So many are joined by a call. */
static int64_t joined_lanes(const Dot *d)
{
    return d->type == TYPE_F32 ? LANES : LANES / 2;
}

/* Of a row of terms: several vectors of a long one, whose sums do not wait for each other; 0: none. */
static int64_t row_lanes(Lower *L, const Dot *d)
{
    enum { MOST = 4 * LANES, ROUNDS = 4 };
    const int64_t n = d->n_k ? d->k_extents[d->n_k - 1] : 0;
    int64_t       lanes = joined_lanes(d);
    if (L->plan->plain || !type_is_float(d->type) || n < lanes)
        return 0;
    while (lanes < MOST && n >= 2 * ROUNDS * lanes)
        lanes *= 2;
    return lanes;
}

static void join_lanes(Lower *L, Dot *d)
{
    for (int64_t n = d->acc->count / 2; n >= joined_lanes(d); n /= 2) {
        const Ix *l = ix_of(&L->ix, loop_open(L, 0, n, NULL, 1));
        store(L, d->acc, l, scalar_binary(L->arena, OP_ADD, d->type, load_current(L, d->acc, l), load_current(L, d->acc, ix_plus(&L->ix, l, n))));
        block_close(L);
    }
    const KExpr *place = kx_unary(L->arena, KOP_PLACE, d->type, load_current(L, d->acc, ix_const(&L->ix, 0))), *args[] = { current(L, d->sum), place };
    assign(L, d->sum, kx_call(L->arena, d->type == TYPE_F32 ? "sum_lanes_f32" : "sum_lanes_f64", d->type, 2, args));
}

/* 0 + x[0] y[0] + x[1] y[1] + ... */
static const KExpr *written_sum(Lower *L, Dot *d)
{
    const KExpr *sum = scalar_zero(L->arena, d->type);
    for (int64_t k = 0; k < d->k_count; k++) {
        const Ix *at = ix_const(&L->ix, k);
        sum = scalar_binary(L->arena, OP_ADD, d->type, sum, row_product(L, d, &at, NULL));
    }
    return sum;
}

static int64_t times_used(const Side *other)
{
    int64_t n = 1;
    for (int32_t f = 0; f < other->n_free; f++)
        n *= other->shape->dims[other->free[f]];
    return n;
}

/* The loops over k. Threads that share a vector's product want one loop with divisions in it, as of groups of weights, rather than several. */
static LoopDim *terms(Lower *L, const Dot *d)
{
    LoopDim *dims = plan_dims(L, d->x, ROLE_K, d->n_k, d->k_extents);
    for (int32_t k = 0; k < d->n_k; k++)
        dims[k].fixed = L->plan->plain && (times_used(&d->rows) == 1 || times_used(&d->cols) == 1);
    return dims;
}

/* sum over k of one row of each side, at d->outer. */
static void row_by_row(Lower *L, void *cookie, const Ix *const *index)
{
    Dot          *d = cookie;
    const int64_t last = d->n_k ? d->k_extents[d->n_k - 1] : 0, lanes = row_lanes(L, d);
    const Ix     *none = ix_const(&L->ix, 0);
    d->outer = index;
    if (d->beside && d->n_k == 1 && d->k_count <= DOT_FEW_TERMS) {
        store_value(L, d, none, none, written_sum(L, d));
        return;
    }
    d->sum = accumulator(L, scalar_zero(L->arena, d->type), machine_type(d->type), d->x->name);
    if (lanes == 0) {
        if (d->k_count > 0)
            nest(L, d->n_k, terms(L, d), NULL, row_step, d);
    } else {
        int64_t *extents = arena_copy(L->arena, d->k_extents, (size_t)d->n_k * sizeof *extents);
        extents[d->n_k - 1] = last / lanes;
        d->acc = local_array(L, d->type, lanes, "lane");
        d->begun = d->n_k == 1 && last % lanes > 1 && last >= 2 * lanes;
        const Ix *l = d->begun ? NULL : ix_of(&L->ix, loop_open(L, 0, lanes, NULL, 1));
        if (!d->begun) {
            store(L, d->acc, l, scalar_zero(L->arena, d->type));
            block_close(L);
        }
        if (d->begun)
            tail_step(L, d, NULL);
        if (d->k_count > 0)
            nest(L, d->n_k, plan_dims(L, d->x, ROLE_K, d->n_k, extents), NULL, lanes_step, d);
        if (last % lanes && d->k_count > 0 && !d->begun)
            nest(L, d->n_k - 1, plan_dims(L, d->x, ROLE_TAIL, d->n_k, d->k_extents), NULL, tail_step, d);
        join_lanes(L, d);
    }
    store_value(L, d, none, none, kx_temp(L->arena, d->sum));
}

/* ---- eight rows at a time ---- */

static const KExpr *row_place(Lower *L, const Dot *d, const Side *s, const Ix *off)
{
    int32_t     leaf = 0;
    const Inst *from = resolve(L, s->x, &leaf);
    KArray     *memory = s->wide ? s->wide : memory_of(L, from, leaf);
    return kx_unary(L->arena, KOP_PLACE, d->type, load(L, memory, shape_index(L, s->wide_shape, factor_index(L, d, s, off))));
}

/* The sums of AT_ONCE rows of the tile, from `row` on, by each column, into those from `row` + before on. */
static void sums_at_once(Lower *L, const Dot *d, const Ix *row, int64_t before)
{
    const Side   *s = &d->rows;
    const int64_t n = d->k_extents[0], columns = d->cols.tile;
    const Ix     *j = columns > 1 ? ix_of(&L->ix, loop_open(L, 0, columns, NULL, 1)) : ix_const(&L->ix, 0);
    const KExpr  *args[] = { row_place(L, d, s, row), kx_int(L->arena, TYPE_S64, s->strides[s->free[s->tiled]]), row_place(L, d, &d->cols, j), kx_int(L->arena, TYPE_S64, n) };
    const Ix     *to = ix_plus(&L->ix, ix_add(&L->ix, ix_times(&L->ix, j, d->acc_row), row), before);
    store(L, d->acc, to, kx_call(L->arena, d->type == TYPE_F32 ? "dot_rows_f32" : "dot_rows_f64", d->type, 4, args));
    L->cur->last->fill_work = 3 * n;
    if (columns > 1)
        block_close(L);
}

static void store_row(Lower *L, void *cookie, const Ix *const *at)
{
    const Dot *d = cookie;
    const Ix  *from = ix_plus(&L->ix, ix_add(&L->ix, ix_times(&L->ix, at[0], d->acc_row), at[1]), d->acc_row - d->rows.tile);
    store_value(L, d, at[1], at[0], load_current(L, d->acc, from));
}

/* A tile of rows, by one column or all. The last rows are those that end with the tile, of which some are there already, or before it. */
static void rows_at_once(Lower *L, Dot *d, const Ix **outer)
{
    const int64_t n = d->rows.tile, whole = n / AT_ONCE, before = n < AT_ONCE ? AT_ONCE - n : 0;
    d->outer = outer;
    d->k[0] = ix_const(&L->ix, 0);
    d->acc_row = before + n;
    d->acc = local_array(L, d->type, d->cols.tile * d->acc_row, "sums");
    if (whole > 0) {
        sums_at_once(L, d, whole > 1 ? ix_times(&L->ix, ix_of(&L->ix, loop_open(L, 0, whole, NULL, 1)), AT_ONCE) : ix_const(&L->ix, 0), 0);
        if (whole > 1)
            block_close(L);
    }
    if (n % AT_ONCE)
        sums_at_once(L, d, ix_const(&L->ix, n - AT_ONCE), before);
    nest(L, 2, plan_dims(L, d->x, ROLE_STORE, 2, (int64_t[]){ d->cols.tile, n }), NULL, store_row, d);
}

static void rows_body(Lower *L, void *cookie, const Ix *const *index)
{
    Dot          *d = cookie;
    const Ix    **outer = arena_copy(L->arena, index, (size_t)d->x->shape->rank * sizeof *outer);
    const int64_t n = d->rows.shape->dims[d->rows.free[d->rows.tiled]], blocks = MOST_SUMS / AT_ONCE;
    along(L, d, &d->rows, n <= MOST_SUMS + MOST_SUMS / 2 ? n : tile_width(n / AT_ONCE, blocks, blocks / 2) * AT_ONCE, outer, rows_at_once);
}

/* In memory, or so small that all of it may be converted first. */
static bool lies_along_k(Lower *L, const Dot *d, const Side *s)
{
    const bool small = type_is_float(s->shape->type) && shape_count(s->shape) <= MOST_WIDE;
    return s->strides[s->contract.v[0]] == 1 && (s->shape->type == d->type ? is_turned(s) || is_in_memory(L, s) : small);
}

static int64_t rows_of(const Side *s)
{
    const int32_t free = last_free(s);
    return free < 0 ? 1 : s->shape->dims[s->free[free]];
}

static bool has_row_sums(Lower *L, const Dot *d)
{
    return !L->plan->plain && (d->type == TYPE_F32 || d->type == TYPE_F64) && d->n_k == 1 && d->k_count * type_bytes(d->type) >= DOT_LEAST_LINE;
}

/* Whether sums are made AT_ONCE; the side with the most rows is then the one that has them. */
static bool find_rows(Lower *L, Dot *d)
{
    if (d->cols.tiled >= 0 || !has_row_sums(L, d) || !lies_along_k(L, d, &d->rows) || !lies_along_k(L, d, &d->cols))
        return false;
    if (rows_of(&d->cols) > rows_of(&d->rows)) {
        const Side rows = d->rows;
        d->rows = d->cols;
        d->cols = rows;
    }
    const int32_t free = last_free(&d->rows);
    if (rows_of(&d->rows) < AT_ONCE || d->rows.strides[d->rows.free[free]] * type_bytes(d->type) % SAME_LINES == 0)
        return false;
    d->rows.tiled = free;
    if (last_free(&d->cols) >= 0 && rows_of(&d->cols) * type_bytes(d->type) < DOT_VECTOR) {
        d->cols.tiled = last_free(&d->cols);
        d->cols.tile = rows_of(&d->cols);
    }
    return true;
}

/* ---- operands that are converted once ---- */

/* A good part of so many elements fills no vector. */
static bool is_ragged(int64_t n)
{
    return n % LANES > n / 8;
}

/* Floats of a byte always are. A vector of f16 or bf16 is converted by an instruction or two as it is loaded, which is worth it for elements that are used often; f16 one by one, and in loops
 * that are no whole vectors, take ten times as long. */
static bool is_worth_widening(Lower *L, const Dot *d, const Side *s, const Side *other)
{
    const Type    t = s->shape->type;
    const int64_t n = shape_count(s->shape), terms = d->n_k ? d->k_extents[d->n_k - 1] : 0;
    if (L->plan->plain || d->few || !type_is_float(t) || n < LEAST_WIDE || n > (type_bits(t) < 16 ? MOST_BYTES : MOST_WIDE))
        return false;
    if (type_bits(t) < 16)
        return true;
    if (d->cols.tiled < 0)
        return t == TYPE_F16 && terms < LANES;
    const bool along = s == &d->cols, singly = !along || is_ragged(s->shape->dims[s->free[s->tiled]]);
    return (t == TYPE_F16 && singly) || ((t == TYPE_F16 || t == TYPE_BF16) && along && times_used(other) >= WIDE_USES);
}

typedef struct Widening {
    const Dot *d;
    Side      *s;
} Widening;

static void widen_element(Lower *L, void *cookie, const Ix *const *at)
{
    const Widening *w = cookie;
    store(L, w->s->wide, shape_index(L, w->s->wide_shape, at), converted_at(L, w->d, w->s, at));
}

static void widen(Lower *L, Dot *d, Side *s, const Side *other, int role)
{
    int32_t      leaf = 0;
    const Inst  *from = resolve(L, s->x, &leaf);
    KArray      *memory = memory_of(L, from, leaf);
    const Shape *shape = s->shape;
    const bool   turned = is_turned(s);
    if (!turned && !(d->at_once && shape->type != d->type) && !is_worth_widening(L, d, s, other))
        return;
    KArray *wide = temp_array(L, shape_array(L->arena, d->type, 1, (int64_t[]){ shape_count(shape) }), turned ? "turned" : "wide");
    if (memory && !turned) { /* all of it is one row */
        const Ix *i = ix_of(&L->ix, loop_open(L, 0, shape_count(shape), NULL, 1));
        store(L, wide, i, scalar_convert(L->arena, shape->type, d->type, load(L, memory, i)));
        block_close(L);
        s->wide = wide;
        return;
    }
    Side own = *s;
    own.wide = wide;
    nest(L, shape->rank, plan_dims(L, d->x, role, shape->rank, shape->dims), major_order(L, s->wide_shape), widen_element, &(Widening){ d, &own });
    s->wide = wide;
}

/* ---- operands that are turned ---- */

static bool is_worth_turning(Lower *L, const Dot *d, const Side *s, const Side *other)
{
    const int32_t free = last_free(s);
    const int64_t rows = times_used(other);
    return !L->plan->plain && free >= 0 && shape_count(s->shape) <= DOT_MOST_TURNED && s->shape->dims[s->free[free]] >= LEAST_TURNED && rows >= LEAST_TURNED &&
           d->k_count <= rows * TERMS_FOR_ROW;
}

/* So few columns that they fill no vector, which lie along k, at least when they are turned, as the many rows do. */
static bool is_narrow(Lower *L, const Dot *d)
{
    return last_free(&d->cols) >= 0 && has_row_sums(L, d) && shape_count(d->cols.shape) <= DOT_MOST_TURNED && rows_of(&d->cols) * type_bytes(d->type) < DOT_VECTOR &&
           rows_of(&d->rows) >= AT_ONCE && lies_along_k(L, d, &d->rows);
}

/* With the free dimensions inside of all others, or outside. */
static void turn(Lower *L, Side *s, bool inside)
{
    const int32_t  rank = s->shape->rank;
    const int32_t *order = major_order(L, s->shape);
    int64_t       *minor = ARENA_ARRAY(L->arena, int64_t, rank);
    int32_t        at = 0;
    for (int32_t f = s->n_free - 1; f >= 0 && inside; f--)
        minor[at++] = s->free[f];
    for (int32_t k = rank - 1; k >= 0; k--)
        if (ints_has(s->contract, order[k]) || (inside && ints_has(s->batch, order[k])))
            minor[at++] = order[k];
    for (int32_t k = rank - 1; k >= 0 && !inside; k--)
        if (!ints_has(s->contract, order[k]))
            minor[at++] = order[k];
    Layout *l = ARENA_NEW(L->arena, Layout);
    *l = (Layout){ .minor_to_major = { minor, rank }, .tail_padding = 1 };
    s->wide_shape = shape_with_layout(L->arena, shape_array(L->arena, s->shape->type, rank, s->shape->dims), l);
    shape_strides(s->wide_shape, s->strides);
}

/* Operands that would have to be computed again for each use go to memory first; movement and conversion do not count, nor does what is used once where there are no vectors. */
bool is_cheap(Lower *L, const Inst *x)
{
    int32_t leaf = 0;
    for (;;) {
        x = resolve(L, x, &leaf);
        if (memory_of(L, x, leaf) || x->op == OP_CONSTANT || x->op == OP_IOTA)
            return true;
        switch (x->op) {
        case OP_CONVERT: case OP_BROADCAST: case OP_TRANSPOSE: case OP_RESHAPE: case OP_SLICE: case OP_REVERSE: case OP_COPY: case OP_BITCAST:
            x = inst_operand(x, 0);
            break;
        default: return false;
        }
    }
}

static Type sum_type(Type t)
{
    return type_is_float(t) ? (t == TYPE_F64 ? TYPE_F64 : TYPE_F32) : t;
}

/* Sums of few terms, of few columns in the place of the last free dimension. */
static bool is_few(const Dot *d)
{
    const Side *s = &d->cols;
    int32_t     free = last_free(s);
    bool        half = s->shape->type == TYPE_F16 || d->rows.shape->type == TYPE_F16; /* one by one they are converted slowly */
    return !half && !type_is_complex(d->type) && type_bits(d->type) >= 32 && d->k_count > 0 && d->k_count <= DOT_FEW_TERMS && free >= 0 &&
           s->shape->dims[s->free[free]] <= DOT_FEW_COLUMNS;
}

/* Products of many small matrices with three columns, which fill no vectors: lanes are members of the batch (beside.h). Of two columns, and of more, vectors of four are as good, of f64 those of three. */
static bool goes_beside(const Lower *L, const Dot *d)
{
    enum { COLUMNS = 3 };
    const Shape *s = d->x->shape;
    int64_t      members = 1;
    for (int32_t k = 0; k < d->n_batch; k++)
        members *= s->dims[k];
    return !L->plan->plain && !L->plan->not_beside && members >= BESIDE_ROWS && s->rank > d->n_batch && s->dims[s->rank - 1] == COLUMNS && type_bits(d->type) == 32 &&
           d->rows.shape->type == d->type && d->cols.shape->type == d->type && shape_count(d->rows.shape) < BESIDE_MOST * members &&
           shape_count(d->cols.shape) < BESIDE_MOST * members && shape_count(s) < BESIDE_MOST * members;
}

void stage_dot(Lower *L, const Inst *x, KArray *const *to)
{
    Dot d = { .x = x, .type = sum_type(x->shape->type), .to = to[0] };
    Side lhs = side(L, x, 0, 0), rhs = side(L, x, 1, 0);
    d.n_batch = lhs.batch.n;
    d.n_k = lhs.contract.n;
    lhs.first = d.n_batch;
    rhs.first = d.n_batch + lhs.n_free;
    for (int32_t k = 0; k < 2; k++)
        if (!is_cheap(L, inst_operand(x, k)) && !(L->plan->plain && times_used(k ? &lhs : &rhs) == 1))
            need_memory(L, inst_operand(x, k));
    if (L->again)
        return;
    d.k = ARENA_ARRAY(L->arena, const Ix *, d.n_k);
    d.k_extents = ARENA_ARRAY(L->arena, int64_t, d.n_k);
    d.k_count = 1;
    for (int32_t k = 0; k < d.n_k; k++)
        d.k_count *= d.k_extents[k] = lhs.shape->dims[lhs.contract.v[k]];
    bool swapped = fast_free(&rhs) < 0 && fast_free(&lhs) >= 0;
    d.rows = swapped ? rhs : lhs;
    d.cols = swapped ? lhs : rhs;
    const bool narrow = is_narrow(L, &d);
    d.beside = goes_beside(L, &d);
    L->beside |= d.beside;
    d.few = !L->plan->plain && !narrow && !d.beside && is_few(&d);
    if (narrow ? !lies_along_k(L, &d, &d.cols) : !d.beside && !d.few && fast_free(&d.cols) < 0 && is_worth_turning(L, &d, &d.cols, &d.rows))
        turn(L, &d.cols, !narrow);
    d.cols.tiled = L->plan->plain || d.beside ? -1 : d.few ? last_free(&d.cols) : fast_free(&d.cols);
    if (d.cols.tiled >= 0) {
        d.rows.tiled = last_free(&d.rows);
        d.step = epilogue_step(L, x, d.cols.first + d.cols.tiled);
    }
    d.at_once = !d.beside && find_rows(L, &d);
    widen(L, &d, &d.rows, &d.cols, ROLE_WIDE);
    widen(L, &d, &d.cols, &d.rows, ROLE_WIDE + 1);
    int32_t  rank = x->shape->rank;
    int64_t *extents = ARENA_ARRAY(L->arena, int64_t, rank);
    for (int32_t k = 0; k < rank; k++)
        extents[k] = x->shape->dims[k];
    if (d.rows.tiled >= 0)
        extents[d.rows.first + d.rows.tiled] = 1;
    if (d.cols.tiled >= 0)
        extents[d.cols.first + d.cols.tiled] = 1;
    LoopDim *dims = plan_dims(L, x, ROLE_OUTER, rank, extents);
    nest(L, rank, dims, NULL, d.at_once ? rows_body : d.cols.tiled >= 0 ? tiled_body : row_by_row, &d);
}
