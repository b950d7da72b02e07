/* Running windows for many threads, whose lines are long and few: sums of pieces, then what is before each piece, then the pieces again. Along lines of memory, where a block
 * does a piece, each adds up those before it by itself:
 *
 *     totals[line, piece] = sum of x[line, piece * length + i]
 *     acc = sum of totals[line, k], k < piece;  for each i: acc += x[line, piece * length + i], result[...] = acc */
#include "emit/lower_pool.h"

enum { ROLE_TOTALS = 301, ROLE_BEFORE, ROLE_PIECES, LEAST_PIECE = 32, LONG_LINE = 256, MANY_LINES = 4096 };
enum { ALONG_LINE = 8192, ALONG_LINES = 512, ALONG_PIECE = 2048, ALONG_BLOCKS = 1024 };

typedef struct Scan {
    Pool   *pool;
    int64_t n, length, pieces; /* elements along the line, of a piece; pieces */
    bool    along;             /* the line's elements are neighbours in memory */
    KArray *totals, *before;   /* one for each piece */
} Scan;

/* The index of element i of the line that index is in. */
static const Ix **along_line(Lower *L, const Scan *s, const Ix *const *index, const Ix *i)
{
    int32_t    rank = inst_operand(s->pool->x, 0)->shape->rank;
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, rank);
    for (int32_t d = 0; d < rank; d++)
        at[d] = index[d];
    at[s->pool->running] = s->pool->backwards ? ix_plus(&L->ix, ix_times(&L->ix, i, -1), s->n - 1) : i;
    return at;
}

/* A loop over the piece from its element `from` on, of which the last piece may have fewer. */
static const Ix *open_piece(Lower *L, const Scan *s, const Ix *piece, int64_t from)
{
    const Ix *i = ix_add(&L->ix, ix_times(&L->ix, piece, s->length), ix_of(&L->ix, loop_open(L, from, s->length, NULL, 1)));
    if (s->n % s->length != 0)
        if_open(L, kx_binary(L->arena, KOP_LT, TYPE_PRED, kx_index(L->arena, i), kx_int(L->arena, TYPE_S64, s->n)));
    return i;
}

static void close_piece(Lower *L, const Scan *s)
{
    if (s->n % s->length != 0)
        block_close(L);
    block_close(L);
}

static void add_element(Lower *L, const Scan *s, KTemp *acc, const KExpr *v)
{
    const KExpr *args[] = { current(L, acc), v }, *out;
    apply(L, inst_callee(s->pool->x, 0), args, &out);
    assign(L, acc, out);
}

static void total_of_piece(Lower *L, void *cookie, const Ix *const *index)
{
    Scan        *s = cookie;
    const Ix    *piece = index[s->pool->running];
    const KExpr *first = s->along ? pool_neutral(L, s->pool) : pool_operand(L, s->pool, 0, along_line(L, s, index, ix_times(&L->ix, piece, s->length)));
    KTemp       *acc = accumulator(L, first, machine_type(s->pool->types[0]), s->pool->x->name);
    const Ix    *i = open_piece(L, s, piece, s->along ? 0 : 1);
    add_element(L, s, acc, pool_operand(L, s->pool, 0, along_line(L, s, index, i)));
    close_piece(L, s);
    store_at(L, s->totals, index, current(L, acc));
}

static void add_totals(Lower *L, void *cookie, const Ix *const *index)
{
    Scan      *s = cookie;
    int32_t    rank = s->totals->shape->rank;
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, rank);
    KTemp     *acc = accumulator(L, pool_start(L, s->pool, 0), machine_type(s->pool->types[0]), s->pool->x->name);
    for (int32_t d = 0; d < rank; d++)
        at[d] = index[d];
    at[s->pool->running] = ix_of(&L->ix, loop_open(L, 0, s->pieces, NULL, 1));
    store_at(L, s->before, at, current(L, acc));
    add_element(L, s, acc, load(L, s->totals, shape_index(L, s->totals->shape, at)));
    block_close(L);
}

/* The sum of the pieces before this one. */
static const KExpr *before_piece(Lower *L, const Scan *s, const Ix *const *index)
{
    if (!s->along)
        return load(L, s->before, shape_index(L, s->before->shape, index));
    const int32_t rank = s->totals->shape->rank;
    const Ix    **at = ARENA_ARRAY(L->arena, const Ix *, rank), *piece = index[s->pool->running];
    KTemp        *acc = accumulator(L, pool_neutral(L, s->pool), machine_type(s->pool->types[0]), s->pool->x->name);
    for (int32_t d = 0; d < rank; d++)
        at[d] = index[d];
    at[s->pool->running] = ix_of(&L->ix, loop_open(L, 0, s->pieces, NULL, 1));
    if_open(L, kx_binary(L->arena, KOP_LT, TYPE_PRED, kx_index(L->arena, at[s->pool->running]), kx_index(L->arena, piece)));
    add_element(L, s, acc, load(L, s->totals, shape_index(L, s->totals->shape, at)));
    block_close(L);
    block_close(L);
    const KExpr *args[] = { pool_start(L, s->pool, 0), current(L, acc) }, *out;
    apply(L, inst_callee(s->pool->x, 0), args, &out);
    return out;
}

static void run_through_piece(Lower *L, void *cookie, const Ix *const *index)
{
    Scan *s = cookie;
    s->pool->acc[0] = accumulator(L, before_piece(L, s, index), machine_type(s->pool->types[0]), s->pool->x->name);
    const Ix **at = along_line(L, s, index, open_piece(L, s, index[s->pool->running], 0));
    add_element(L, s, s->pool->acc[0], pool_operand(L, s->pool, 0, at));
    pool_store(L, s->pool, at);
    if (L->cur->last->kind == KS_STORE)
        L->cur->last->apart = true; /* the last piece may end before the next line begins */
    close_piece(L, s);
}

/* So long that there are enough blocks, or longer where pieces then divide the line into packs. */
static int64_t length_along(int64_t n, int64_t lines)
{
    const int64_t pieces = lines < ALONG_BLOCKS / 2 ? ALONG_BLOCKS / lines : 2;
    int64_t       least = (n + pieces - 1) / pieces;
    least = least < ALONG_PIECE ? ALONG_PIECE : (least + 7) / 8 * 8;
    for (int64_t length = least; length < 2 * least; length += 4)
        if (n % length == 0)
            return length;
    return least;
}

static int64_t lines_of(const Pool *p)
{
    const Shape *s = p->to[0]->shape;
    return shape_count(s) / s->dims[p->running];
}

static bool runs_along(const Pool *p)
{
    const bool sums = apply_operation(inst_callee(p->x, 0)) == OP_ADD;
    return layout_dim(p->to[0]->shape, 0) == p->running && (sums || !type_is_complex(p->types[0]));
}

static void scan_pieces(Lower *L, Pool *p)
{
    const Shape  *shape = p->to[0]->shape;
    const int64_t n = shape->dims[p->running];
    int64_t      *extents = ARENA_ARRAY(L->arena, int64_t, shape->rank), *lines = ARENA_ARRAY(L->arena, int64_t, shape->rank);
    Scan          s = { .pool = p, .n = n, .length = LEAST_PIECE, .along = runs_along(p) };
    while (s.length * s.length < n)
        s.length *= 2;
    if (s.along)
        s.length = length_along(n, lines_of(p));
    s.pieces = (n + s.length - 1) / s.length;
    for (int32_t d = 0; d < shape->rank; d++) {
        extents[d] = d == p->running ? s.pieces : shape->dims[d];
        lines[d] = d == p->running ? 1 : shape->dims[d];
    }
    const Shape *pieces = shape_array(L->arena, p->types[0], shape->rank, extents);
    s.totals = stage_array(L, pieces, "totals");
    nest(L, shape->rank, plan_dims(L, p->x, ROLE_TOTALS, shape->rank, extents), major_order(L, pieces), total_of_piece, &s);
    if (!s.along) {
        s.before = stage_array(L, pieces, "before");
        nest(L, shape->rank, plan_dims(L, p->x, ROLE_BEFORE, shape->rank, lines), major_order(L, pieces), add_totals, &s);
    }
    nest(L, shape->rank, plan_dims(L, p->x, ROLE_PIECES, shape->rank, extents), major_order(L, pieces), run_through_piece, &s);
}

/* Lines that are long and few are more than a thread each should do, or a block if it goes along memory. */
static bool wants_pieces(const Lower *L, const Pool *p)
{
    if (!L->plan->plain || p->n != 1 || p->running < 0 || !pool_may_regroup(p))
        return false;
    const int64_t n = p->to[0]->shape->dims[p->running], lines = lines_of(p);
    return runs_along(p) ? n >= ALONG_LINE && lines > 0 && lines < ALONG_LINES : n >= LONG_LINE && lines < MANY_LINES;
}

bool pool_runs_in_pieces(Lower *L, Pool *p)
{
    if (!wants_pieces(L, p))
        return false;
    scan_pieces(L, p);
    return true;
}
