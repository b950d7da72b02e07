/* Windows over an array: reduce-window, and the walk that select-and-scatter shares with it.
 *
 * Window element j of result o is x[p / base_dilation] with p = base + j*window_dilation, base = o*stride - pad_lo, where that divides and is
 * inside; what is not is skipped. When the array's fastest dimension has no window, a block of it is reduced at once, as reduce does with
 * columns. Cumulative windows are one walk:
 *
 *   acc = init;  for i: acc = body(acc, x[i]);  result[i] = acc
 *
 * For many threads a long one is three: each piece's sum; what is before each piece; each piece from there on.
 *
 * Sums, products and extremes over windows that are wide along the fastest dimension have lanes, as reduce has along a row; where such windows are neighbours, a
 * block of them slides: of some neighbours' sums the sum of some times as many is made. Where every step rounds, neighbouring windows take their elements in turn:
 *
 *   acc[..] = init;  for j < size: for o < width: acc[o] = body(acc[o], x[o * stride + j * dilation]) */
#include "emit/lower_pool.h"

enum { ROLE_REST = 304 };
enum { ROLE_OUT = 50, COLUMN_BLOCK = 256, LEAST_WIDE = 16, MOST_LANES = 32, LEAST_WIDE_BODY = 32, LEAST_SLIDING = 4, LEAST_SLIDING_ALONE = 12, MOST_SLIDING = 1024,
       SLIDING_BLOCK = 1536 /* what is written may be read again when it has reached the first cache */ };

typedef struct Walk {
    const Inst       *x;
    const Shape      *in;
    const Window     *window;
    const Ix *const  *out;   /* the result's index */
    const Ix        **at;    /* the array's */
    NestBody         *body;
    void             *cookie;
    int64_t           lanes; /* of the last dimension's loop; 0: none */
    bool              wide;  /* body does so much that loops with bounds of their own cost nothing beside it */
    const Ix        **lane;  /* where body finds its lane */
} Walk;

static void walk_from(Lower *L, Walk *w, int32_t d);

/* Dimension d is at element `at` if cond holds (NULL: always), then the dimensions behind it. */
static void walk_at(Lower *L, Walk *w, int32_t d, const Ix *at, const KExpr *cond)
{
    w->at[d] = at;
    if (cond)
        if_open(L, cond);
    walk_from(L, w, d + 1);
    if (cond)
        block_close(L);
}

static const KExpr *both(Lower *L, const KExpr *x, const KExpr *y)
{
    return x && y ? kx_binary(L->arena, KOP_LAND, TYPE_PRED, x, y) : x ? x : y;
}

static const KExpr *compare_index(Lower *L, KOp op, const Ix *x, int64_t c)
{
    return kx_binary(L->arena, op, TYPE_PRED, kx_index(L->arena, x), kx_int(L->arena, TYPE_S64, c));
}

const Ix *clip(Lower *L, KOp op, const Ix *x, int64_t c, const char *name)
{
    int64_t least, most;
    ix_range(x, &least, &most);
    if (op == KOP_GT ? least >= c : most <= c)
        return x;
    if (op == KOP_GT ? most <= c : least >= c)
        return ix_const(&L->ix, c);
    const Type   t = L->plan->plain && least >= INT32_MIN && most <= INT32_MAX ? TYPE_S32 : TYPE_S64;
    const KExpr *v = bind(L, kx_select(L->arena, compare_index(L, op, x, c), kx_cast(L->arena, t, kx_index(L->arena, x)), kx_int(L->arena, t, c)), name);
    return ix_of(&L->ix, ix_new_atom(&L->ix, IX_VALUE, NULL, op == KOP_GT ? c : least, op == KOP_GT ? most : c, v->depth, v->temp));
}

/* The array with its holes. */
static int64_t reach_of(const Walk *w, int32_t d)
{
    return (w->in->dims[d] - 1) * w->window->v[d].base_dilation + 1;
}

/* The element at position p, if it is one: inside, which is known or not, and no hole. */
static void walk_position(Lower *L, Walk *w, int32_t d, const Ix *p, bool inside)
{
    const WindowDim *v = &w->window->v[d];
    int64_t          reach = reach_of(w, d), hole = 0, least, most;
    int              in = inside ? 1 : in_range(L, p, 0, reach);
    const KExpr     *cond = NULL;
    ix_range(p, &least, &most);
    if (in < 0 && least < 0)
        cond = compare_index(L, KOP_GE, p, 0);
    if (in < 0 && most >= reach)
        cond = both(L, cond, compare_index(L, KOP_LT, p, reach));
    const Ix *rest = ix_mod(&L->ix, p, v->base_dilation);
    if (!ix_is_const(rest, &hole))
        cond = both(L, cond, compare_index(L, KOP_EQ, rest, 0));
    if (in != 0 && hole == 0)
        walk_at(L, w, d, ix_div(&L->ix, p, v->base_dilation), cond);
}

/* Windows that may stick out: the loop has the bounds that keep it inside, over elements where the window has no gaps, else over window
 * positions. A test inside the loop would do too, but compilers make masks of tests, and gcc 12 then adds up wrong elements where several
 * sums share one. */
static void walk_inside(Lower *L, Walk *w, int32_t d, const Ix *base)
{
    const WindowDim *v = &w->window->v[d];
    int64_t          gap = v->window_dilation, hole = v->base_dilation, count = gap == 1 ? w->in->dims[d] : v->size;
    const Ix        *first, *last;
    if (gap == 1) { /* base <= i * hole < base + size */
        first = ix_div(&L->ix, ix_plus(&L->ix, base, hole - 1), hole);
        last = ix_div(&L->ix, ix_plus(&L->ix, base, v->size - 1), hole);
    } else { /* 0 <= base + i * gap < reach */
        first = ix_div(&L->ix, ix_plus(&L->ix, ix_times(&L->ix, base, -1), gap - 1), gap);
        last = ix_div(&L->ix, ix_plus(&L->ix, ix_times(&L->ix, base, -1), reach_of(w, d) - 1), gap);
    }
    const Ix *i, *from = clip(L, KOP_GT, first, 0, "first"), *end = clip(L, KOP_LT, ix_plus(&L->ix, last, 1), count, "end");
    if (!loop_between(L, from, end, &i))
        return;
    if (gap == 1)
        walk_at(L, w, d, i, NULL);
    else
        walk_position(L, w, d, ix_add(&L->ix, base, ix_times(&L->ix, i, gap)), true);
    block_close(L);
}

/* Is the window that starts at base inside, and is every position worth a visit? Where most windows are inside, the loops over the
 * results are asked to break where that changes: not for wide bodies, each of which would be compiled once for every side and corner. */
static bool walk_is_full(Lower *L, const Walk *w, int32_t d, const Ix *base)
{
    const WindowDim *v = &w->window->v[d];
    int64_t          reach = reach_of(w, d), span = (v->size - 1) * v->window_dilation, least, most;
    if (v->base_dilation > 1 && v->window_dilation == 1)
        return false;
    if (span * 4 <= reach && !w->wide)
        return in_range(L, base, 0, reach - span) == 1;
    ix_range(base, &least, &most);
    return least >= 0 && most < reach - span;
}

/* count elements from base on, the first one in lane 0. */
static void walk_lanes(Lower *L, Walk *w, int32_t d, const Ix *base, int64_t count)
{
    *w->lane = ix_of(&L->ix, loop_open(L, 0, count, NULL, 1));
    walk_at(L, w, d, ix_add(&L->ix, base, *w->lane), NULL);
    block_close(L);
}

/* All of a window's width: base + round * lanes + lane. */
static void walk_rounds(Lower *L, Walk *w, int32_t d, const Ix *base)
{
    int64_t   size = w->window->v[d].size, rounds = size / w->lanes;
    const Ix *round = ix_of(&L->ix, loop_open(L, 0, rounds, NULL, 1));
    walk_lanes(L, w, d, ix_add(&L->ix, base, ix_times(&L->ix, round, w->lanes)), w->lanes);
    block_close(L);
    if (size % w->lanes)
        walk_lanes(L, w, d, ix_plus(&L->ix, base, rounds * w->lanes), size % w->lanes);
}

static void walk_from(Lower *L, Walk *w, int32_t d)
{
    if (d == w->in->rank) {
        const Ix **at = ARENA_ARRAY(L->arena, const Ix *, w->in->rank);
        for (int32_t k = 0; k < w->in->rank; k++)
            at[k] = w->at[k];
        w->body(L, w->cookie, at);
        return;
    }
    const WindowDim *v = &w->window->v[d];
    const Ix        *base = ix_plus(&L->ix, ix_times(&L->ix, w->out[d], v->stride), -v->pad_lo);
    if (w->lanes && d == w->in->rank - 1) {
        walk_rounds(L, w, d, base);
    } else if (v->size == 1) {
        walk_position(L, w, d, base, false);
    } else if (walk_is_full(L, w, d, base)) {
        const Ix *j = ix_of(&L->ix, loop_open(L, 0, v->size, NULL, 1));
        walk_position(L, w, d, ix_add(&L->ix, base, ix_times(&L->ix, j, v->window_dilation)), true);
        block_close(L);
    } else
        walk_inside(L, w, d, base);
}

void over_window(Lower *L, const Inst *x, const Shape *in, const Window *window, const Ix *const *out, bool wide, NestBody *body, void *cookie)
{
    Walk w = { .x = x, .in = in, .window = window, .out = out, .at = ARENA_ARRAY(L->arena, const Ix *, in->rank), .body = body, .cookie = cookie, .wide = wide };
    if (shape_count(in) > 0)
        walk_from(L, &w, 0);
}

const KExpr *pool_operand(Lower *L, const Pool *p, int32_t k, const Ix *const *at)
{
    int32_t     leaf = 0;
    const Inst *x = inst_operand(p->x, k), *from = resolve(L, x, &leaf);
    return scalar_convert(L->arena, x->shape->type, inst_callee(p->x, 0)->params[p->n + k]->shape->type, keep(L, x, value_at(L, from, leaf, at)));
}

const KExpr *pool_start(Lower *L, const Pool *p, int32_t k)
{
    int32_t     leaf = 0;
    const Inst *x = inst_operand(p->x, p->n + k), *from = resolve(L, x, &leaf);
    return scalar_convert(L->arena, x->shape->type, p->types[k], value_at(L, from, leaf, NULL));
}

static const KExpr *result(Lower *L, const Pool *p, int32_t k, const KExpr *v)
{
    return scalar_convert(L->arena, p->types[k], p->to[k]->type, v);
}

/* Element number step of each window's along the column dimension. */
static const Ix *in_turn_at(Lower *L, const Pool *p, const Ix *first, const Ix *j, const Ix *step)
{
    const WindowDim *v = &inst_window(p->x)->v[p->column];
    return ix_add(&L->ix, ix_times(&L->ix, ix_add(&L->ix, first, j), v->stride), ix_times(&L->ix, step, v->window_dilation));
}

/* acc = body(acc, x[at]) */
static void pool_element(Lower *L, void *cookie, const Ix *const *at)
{
    Pool         *p = cookie;
    const KExpr **args = ARENA_ARRAY(L->arena, const KExpr *, 2 * p->n), **out = ARENA_ARRAY(L->arena, const KExpr *, p->n);
    const Ix    **index = ARENA_ARRAY(L->arena, const Ix *, inst_operand(p->x, 0)->shape->rank);
    const Ix     *j = NULL;
    for (int32_t d = 0; d < inst_operand(p->x, 0)->shape->rank; d++)
        index[d] = at[d];
    if (p->n_lanes) {
        args[0] = load_current(L, p->lanes, p->lane);
        args[1] = pool_operand(L, p, 0, index);
        apply(L, inst_callee(p->x, 0), args, out);
        store(L, p->lanes, p->lane, out[0]);
        return;
    }
    if (p->slides) {
        if (!loop_between(L, p->from, p->end, &j))
            return;
        index[p->column] = ix_add(&L->ix, p->base, j);
    } else if (p->in_turn) {
        const Ix *step = ix_of(&L->ix, loop_open(L, 0, inst_window(p->x)->v[p->column].size, NULL, 1));
        j = ix_of(&L->ix, loop_open(L, 0, p->width, NULL, 1));
        index[p->column] = in_turn_at(L, p, index[p->column], j, step);
    } else if (p->column >= 0) {
        j = ix_of(&L->ix, loop_open(L, 0, p->width, NULL, 1));
        index[p->column] = ix_add(&L->ix, index[p->column], j);
    }
    for (int32_t k = 0; k < p->n; k++) {
        args[k] = j ? load_current(L, p->block[k], j) : current(L, p->acc[k]);
        args[p->n + k] = pool_operand(L, p, k, index);
    }
    if (p->single)
        out[0] = args[1];
    else
        apply(L, inst_callee(p->x, 0), args, out);
    for (int32_t k = 0; k < p->n && (p->n > 1 || p->in_turn); k++)
        out[k] = bind(L, out[k], "next");
    for (int32_t k = 0; k < p->n; k++) {
        if (j)
            store(L, p->block[k], j, out[k]);
        else
            assign(L, p->acc[k], out[k]);
    }
    if (j)
        block_close(L);
    if (p->in_turn)
        block_close(L);
}

void pool_store(Lower *L, const Pool *p, const Ix *const *index)
{
    if (p->column < 0) {
        for (int32_t k = 0; k < p->n; k++)
            store_result(L, p->x, p->to[k], index, result(L, p, k, current(L, p->acc[k])));
        return;
    }
    int32_t    rank = p->to[0]->shape->rank;
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, rank), *j = ix_of(&L->ix, loop_open(L, 0, p->width, NULL, 1));
    for (int32_t d = 0; d < rank; d++)
        at[d] = d == p->column ? ix_add(&L->ix, index[d], j) : index[d];
    for (int32_t k = 0; k < p->n; k++)
        store_result(L, p->x, p->to[k], at, result(L, p, k, load_current(L, p->block[k], j)));
    block_close(L);
}

/* The accumulators hold what is before the first element. */
static void pool_windows(Lower *L, Pool *p, const Ix *const *index)
{
    const Shape *in = inst_operand(p->x, 0)->shape;
    if (p->running < 0) {
        over_window(L, p->x, in, p->window, index, p->column >= 0 && p->width >= LEAST_WIDE_BODY, pool_element, p);
        pool_store(L, p, index);
        return;
    }
    int64_t    n = in->dims[p->running];
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, in->rank), *i = ix_of(&L->ix, loop_open(L, 0, n, NULL, 1));
    for (int32_t d = 0; d < in->rank; d++)
        at[d] = index[d];
    at[p->running] = p->backwards ? ix_plus(&L->ix, ix_times(&L->ix, i, -1), n - 1) : i;
    pool_element(L, p, at);
    pool_store(L, p, at);
    block_close(L);
}

/* What changes nothing: of an extreme its first value, which may be taken as often as one likes. */
const KExpr *pool_neutral(Lower *L, const Pool *p)
{
    const Type t = p->types[0];
    switch (apply_operation(inst_callee(p->x, 0))) {
    case OP_ADD: return type_is_float(t) ? kx_float(L->arena, t, -0.0) : scalar_zero(L->arena, t);
    case OP_XOR: return scalar_zero(L->arena, t);
    case OP_MULTIPLY: return type_is_float(t) ? kx_float(L->arena, t, 1.0) : scalar_convert(L->arena, TYPE_S64, t, kx_int(L->arena, TYPE_S64, 1));
    default: return pool_start(L, p, 0);
    }
}

/* acc = body(acc, lane[l]) for all lanes, joined in halves before. */
static void join_lanes(Lower *L, Pool *p)
{
    enum { FEW = 4 };
    const KExpr *args[2], *out;
    int64_t      n = p->n_lanes;
    for (; n > FEW; n /= 2) {
        const Ix *l = ix_of(&L->ix, loop_open(L, 0, n / 2, NULL, 1));
        args[0] = load_current(L, p->lanes, l);
        args[1] = load_current(L, p->lanes, ix_plus(&L->ix, l, n / 2));
        apply(L, inst_callee(p->x, 0), args, &out);
        store(L, p->lanes, l, out);
        block_close(L);
    }
    const Ix *l = ix_of(&L->ix, loop_open(L, 0, n, NULL, 1));
    args[0] = current(L, p->acc[0]);
    args[1] = load_current(L, p->lanes, l);
    apply(L, inst_callee(p->x, 0), args, &out);
    assign(L, p->acc[0], out);
    block_close(L);
}

static void pool_in_lanes(Lower *L, Pool *p, const Ix *const *index)
{
    const Shape *in = inst_operand(p->x, 0)->shape;
    Walk         w = { .x = p->x, .in = in, .window = inst_window(p->x), .out = index, .at = ARENA_ARRAY(L->arena, const Ix *, in->rank), .body = pool_element,
                       .cookie = p, .lanes = p->n_lanes, .lane = &p->lane };
    p->lanes = local_array(L, p->types[0], p->n_lanes, "lane");
    const KExpr *first = pool_neutral(L, p);
    const Ix    *l = ix_of(&L->ix, loop_open(L, 0, p->n_lanes, NULL, 1));
    store(L, p->lanes, l, first);
    block_close(L);
    walk_from(L, &w, 0);
    join_lanes(L, p);
    pool_store(L, p, index);
}

static void pool_scalar(Lower *L, void *cookie, const Ix *const *index)
{
    Pool *p = cookie;
    for (int32_t k = 0; k < p->n; k++)
        p->acc[k] = accumulator(L, pool_start(L, p, k), machine_type(p->types[k]), p->x->name);
    if (p->n_lanes)
        pool_in_lanes(L, p, index);
    else
        pool_windows(L, p, index);
}

/* width results from index on along the column dimension. */
static void pool_columns(Lower *L, Pool *p, const Ix *const *index)
{
    for (int32_t k = 0; k < p->n; k++)
        p->block[k] = local_array(L, machine_type(p->types[k]), p->width, p->x->name);
    const KExpr **init = ARENA_ARRAY(L->arena, const KExpr *, p->n);
    for (int32_t k = 0; k < p->n; k++)
        init[k] = pool_start(L, p, k);
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, p->width, NULL, 1));
    for (int32_t k = 0; k < p->n; k++)
        store(L, p->block[k], j, init[k]);
    block_close(L);
    pool_windows(L, p, index);
}

/* How the sum of `size` neighbours is made: of `times` sums of `part` neighbours each, and what is left. An extreme may take elements twice. */
typedef struct Split {
    int64_t part, times, cost;
} Split;

static Split split_of(int64_t size, bool twice)
{
    enum { MOST = 7, STORE = 3, EXTREME = 3 /* which looks for NaN */ };
    const int64_t each = twice ? 1 + EXTREME : 1;
    Split         best = { 1, size, (size - 1) * each + STORE };
    for (int64_t times = 2; times <= MOST - 1 && times * 2 <= size; times++) {
        const int64_t part = size / times, rest = size % times;
        const Split   s = { part, times, (times - 1 + (twice && rest ? 1 : rest)) * each + STORE + split_of(part, twice).cost };
        if (s.cost < best.cost)
            best = s;
    }
    return best;
}

static const KExpr *join(Lower *L, const Pool *p, const KExpr *x, const KExpr *y)
{
    const KExpr *out;
    if (!x)
        return y;
    apply(L, inst_callee(p->x, 0), (const KExpr *const[]){ x, y }, &out);
    return out;
}

static bool is_extreme(const Pool *p)
{
    const Op op = apply_operation(inst_callee(p->x, 0));
    return op == OP_MAXIMUM || op == OP_MINIMUM;
}

/* to[j] = the sum of from[j] .. from[j + size - 1], and of begin unless that is NULL, for count elements. */
static void sum_neighbours(Lower *L, const Pool *p, KArray *to, const KExpr *begin, KArray *from, int64_t size, int64_t count)
{
    const bool    twice = is_extreme(p);
    const Split   s = split_of(size, twice);
    const int64_t rest = size - s.times * s.part;
    KArray       *parts = from;
    if (s.part > 1) {
        const int64_t n = count + size - s.part;
        parts = local_array(L, machine_type(p->types[0]), n, "sums");
        sum_neighbours(L, p, parts, NULL, from, s.part, n);
    }
    const Ix    *j = ix_of(&L->ix, loop_open(L, 0, count, NULL, 1));
    const KExpr *sum = begin;
    for (int64_t k = 0; k < s.times; k++)
        sum = join(L, p, sum, load_current(L, parts, ix_plus(&L->ix, j, k * s.part)));
    if (twice && rest)
        sum = join(L, p, sum, load_current(L, parts, ix_plus(&L->ix, j, size - s.part)));
    for (int64_t k = 0; k < rest && !twice; k++)
        sum = join(L, p, sum, load_current(L, from, ix_plus(&L->ix, j, s.times * s.part + k)));
    store(L, to, j, sum);
    block_close(L);
}

static void fill_local(Lower *L, KArray *to, int64_t count, const KExpr *v)
{
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, count, NULL, 1));
    store(L, to, j, v);
    block_close(L);
}

/* Block number index[p->column] of p->width windows: all dimensions but theirs first, for the elements that any of them has. */
static void slide(Lower *L, void *cookie, const Ix *const *block)
{
    Pool            *p = cookie;
    const Shape     *in = inst_operand(p->x, 0)->shape;
    const int32_t    m = p->column;
    const WindowDim *v = &inst_window(p->x)->v[m];
    const int64_t    width = p->width, all = width + v->size - 1;
    const Ix       **first = arena_copy(L->arena, block, (uint64_t)in->rank * sizeof *block), **index = arena_copy(L->arena, block, (uint64_t)in->rank * sizeof *block);
    KArray          *sums = local_array(L, machine_type(p->types[0]), all, "sums"), *to = local_array(L, machine_type(p->types[0]), width, p->x->name);
    first[m] = ix_const(&L->ix, 0);
    index[m] = ix_plus(&L->ix, ix_times(&L->ix, block[m], width), p->first);
    p->base = ix_plus(&L->ix, index[m], -v->pad_lo);
    p->from = clip(L, KOP_GT, ix_times(&L->ix, p->base, -1), 0, "from");
    p->end = clip(L, KOP_LT, ix_plus(&L->ix, ix_times(&L->ix, p->base, -1), in->dims[m]), all, "end");
    p->block[0] = sums;
    if (!p->single || v->pad_lo != 0 || v->pad_hi > 0)
        fill_local(L, sums, all, pool_neutral(L, p));
    over_window(L, p->x, in, p->window, first, true, pool_element, p);
    sum_neighbours(L, p, to, is_extreme(p) && !p->single ? NULL : pool_start(L, p, 0), sums, v->size, width);
    p->block[0] = to;
    pool_store(L, p, index);
}

static void pool_block(Lower *L, void *cookie, const Ix *const *index, int64_t width)
{
    Pool *p = cookie;
    p->width = width;
    pool_columns(L, p, index);
}

static void pool_blocks(Lower *L, void *cookie, const Ix *const *index)
{
    Pool *p = cookie;
    in_column_blocks(L, p->to[0]->shape, p->column, index, pool_block, p);
}

void in_column_blocks(Lower *L, const Shape *shape, int32_t column, const Ix *const *index, ColumnBody *body, void *cookie)
{
    int64_t    n = shape->dims[column], w = tile_width(n, COLUMN_BLOCK / 3 * 2, 64);
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, shape->rank);
    for (int32_t d = 0; d < shape->rank; d++)
        at[d] = index[d];
    if (n > w)
        at[column] = ix_times(&L->ix, ix_of(&L->ix, loop_open(L, 0, n / w, NULL, 1)), w);
    body(L, cookie, at, w);
    if (n > w)
        block_close(L);
    if (n % w) {
        at[column] = ix_const(&L->ix, n / w * w);
        body(L, cookie, at, n % w);
    }
}

static bool is_alone(const WindowDim *v)
{
    return v->size == 1 && v->stride == 1 && v->pad_lo == 0 && v->pad_hi == 0 && v->base_dilation == 1;
}

int32_t free_column(const Inst *x)
{
    const Shape  *in = inst_operand(x, 0)->shape;
    const Window *w = inst_window(x);
    for (int32_t k = 0; k < in->rank; k++) {
        int32_t d = (int32_t)layout_dim(in, k);
        if (in->dims[d] == 1)
            continue;
        return is_alone(&w->v[d]) && in->dims[d] >= 4 ? d : -1;
    }
    return -1;
}

/* May the elements be taken in any order? Narrow floats round too much for that. */
bool pool_may_regroup(const Pool *p)
{
    switch (apply_operation(inst_callee(p->x, 0))) {
    case OP_MINIMUM: case OP_MAXIMUM: case OP_AND: case OP_OR: case OP_XOR: return true;
    case OP_ADD: case OP_MULTIPLY: return !type_is_float(p->types[0]) || type_bits(p->types[0]) >= 32;
    default: return false;
    }
}

/* Lanes for windows that are wide along the fastest dimension and inside of it; compilers make lanes of integers by themselves. */
static int64_t lanes_of(const Lower *L, const Pool *p)
{
    const Shape     *in = inst_operand(p->x, 0)->shape;
    const WindowDim *v = in->rank > 0 ? &inst_window(p->x)->v[in->rank - 1] : NULL;
    Op               op = apply_operation(inst_callee(p->x, 0));
    int64_t          lanes = LEAST_WIDE / 2;
    if (!v || L->plan->plain || p->n != 1 || p->column >= 0 || p->running >= 0 || shape_count(in) == 0 || (p->types[0] != TYPE_F32 && p->types[0] != TYPE_F64))
        return 0;
    if (op != OP_ADD && op != OP_MULTIPLY && op != OP_MAXIMUM && op != OP_MINIMUM)
        return 0;
    if (layout_dim(in, 0) != in->rank - 1 || v->size < LEAST_WIDE || v->pad_lo != 0 || v->pad_hi > 0 || v->window_dilation != 1 || v->base_dilation != 1)
        return 0;
    while (lanes * 2 <= v->size && lanes < MOST_LANES)
        lanes *= 2;
    return lanes;
}

/* The window, along its last dimension of one element. */
static const Window *without_last(Lower *L, const Window *w)
{
    WindowDim *v = arena_copy(L->arena, w->v, (uint64_t)w->n * sizeof *v);
    Window    *one = ARENA_NEW(L->arena, Window);
    v[w->n - 1] = (WindowDim){ 1, 1, 0, 0, 1, 1, false };
    *one = (Window){ w->n, v };
    return one;
}

/* Sums of narrow floats over windows along the fastest dimension, inside of it and so many that they fill vectors. */
static void find_in_turn(Lower *L, Pool *p)
{
    const Shape  *in = inst_operand(p->x, 0)->shape;
    const int32_t m = in->rank - 1;
    if (m < 0 || L->plan->plain || p->column >= 0 || p->running >= 0 || shape_count(in) == 0 || pool_may_regroup(p) || !type_is_float(p->types[0]) || type_bits(p->types[0]) >= 32)
        return;
    const WindowDim *v = &p->window->v[m];
    if (v->size < 2 || v->pad_lo != 0 || v->pad_hi > 0 || v->base_dilation != 1 || p->to[0]->shape->dims[m] < LEAST_WIDE)
        return;
    if (layout_dim(in, 0) != m || layout_dim(p->to[0]->shape, 0) != m)
        return;
    p->window = without_last(L, p->window);
    p->column = m;
    p->in_turn = true;
}

/* Windows that are wide along the fastest dimension and neighbours along it, so many that they fill vectors. */
static void find_sliding(Lower *L, Pool *p)
{
    const Shape  *in = inst_operand(p->x, 0)->shape;
    const int32_t m = in->rank - 1;
    const Op      op = apply_operation(inst_callee(p->x, 0));
    p->window = inst_window(p->x);
    if (m < 0 || L->plan->plain || p->n != 1 || p->column >= 0 || p->running >= 0 || shape_count(in) == 0 || !pool_may_regroup(p))
        return;
    if ((op != OP_ADD && op != OP_MULTIPLY && op != OP_MAXIMUM && op != OP_MINIMUM) || type_is_complex(p->types[0]))
        return;
    const WindowDim *v = &p->window->v[m];
    if (v->size < LEAST_SLIDING || v->size > MOST_SLIDING || v->stride != 1 || v->window_dilation != 1 || v->base_dilation != 1 || p->to[0]->shape->dims[m] < LEAST_WIDE)
        return;
    if (layout_dim(in, 0) != m || layout_dim(p->to[0]->shape, 0) != m)
        return;
    const Window *window = without_last(L, p->window);
    p->single = true;
    for (int32_t d = 0; d < m; d++)
        p->single &= is_alone(&window->v[d]);
    if (p->single && v->size < LEAST_SLIDING_ALONE) {
        p->single = false;
        return;
    }
    p->window = window;
    p->column = m;
    p->slides = true;
}

static void slide_all(Lower *L, Pool *p, int64_t *extents)
{
    const Shape  *s = p->to[0]->shape;
    const int64_t n = s->dims[p->column];
    p->width = tile_width(n, SLIDING_BLOCK / 3 * 2, 64);
    extents[p->column] = n / p->width;
    nest(L, s->rank, plan_dims(L, p->x, ROLE_OUT, s->rank, extents), major_order(L, s), slide, p);
    p->first = n / p->width * p->width;
    p->width = n - p->first;
    extents[p->column] = 1;
    if (p->width > 0)
        nest(L, s->rank, plan_dims(L, p->x, ROLE_REST, s->rank, extents), major_order(L, s), slide, p);
}

/* Cumulative windows: each covers all that is up to its result's place, or, where the order does not matter, all that is from there on. */
static void find_running(Pool *p)
{
    const Shape  *in = inst_operand(p->x, 0)->shape;
    const Window *w = inst_window(p->x);
    p->running = -1;
    for (int32_t d = 0; d < in->rank; d++) {
        const WindowDim *v = &w->v[d];
        int64_t          n = in->dims[d];
        bool             plain = v->size == n && v->stride == 1 && v->window_dilation == 1 && v->base_dilation == 1;
        bool             up_to = plain && v->pad_lo == n - 1 && v->pad_hi == 0, from_on = plain && v->pad_lo == 0 && v->pad_hi == n - 1;
        if (is_alone(v))
            continue;
        if (p->running >= 0 || !(up_to || (from_on && pool_may_regroup(p)))) {
            p->running = -1;
            return;
        }
        p->running = d;
        p->backwards = !up_to;
    }
}

void stage_reduce_window(Lower *L, const Inst *x, KArray *const *to)
{
    Pool         p = { .x = x, .n = x->n_operands / 2, .to = to, .column = L->plan->plain ? -1 : free_column(x) };
    const Shape *s = to[0]->shape;
    int64_t     *extents = ARENA_ARRAY(L->arena, int64_t, s->rank);
    p.acc = ARENA_ARRAY(L->arena, KTemp *, p.n);
    p.block = ARENA_ARRAY(L->arena, KArray *, p.n);
    p.types = ARENA_ARRAY(L->arena, Type, p.n);
    for (int32_t k = 0; k < p.n; k++)
        p.types[k] = inst_callee(x, 0)->params[k]->shape->type;
    find_running(&p);
    if (pool_runs_in_pieces(L, &p))
        return;
    find_sliding(L, &p);
    find_in_turn(L, &p);
    p.n_lanes = lanes_of(L, &p);
    for (int32_t d = 0; d < s->rank; d++)
        extents[d] = d == p.column || d == p.running ? 1 : s->dims[d];
    if (p.slides) {
        slide_all(L, &p, extents);
        return;
    }
    nest(L, s->rank, plan_dims(L, x, ROLE_OUT, s->rank, extents), major_order(L, s), p.column >= 0 ? pool_blocks : pool_scalar, &p);
}
