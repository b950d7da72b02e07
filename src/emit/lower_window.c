/* Windows over an array: reduce-window, and the walk that select-and-scatter shares with it.
 *
 * Window element j of result o is x[p / base_dilation] with p = o*stride + j*window_dilation - pad_lo, where that divides and is inside;
 * what is not is skipped. When the array's fastest dimension has no window, a block of it is reduced at once, as reduce does with columns. */
#include "emit/lower.h"

enum { ROLE_OUT = 50, COLUMN_BLOCK = 256 };

typedef struct Walk {
    const Inst       *x;
    const Shape      *in;
    const Window     *window;
    const Ix *const  *out;   /* the result's index */
    const Ix        **at;    /* the array's */
    NestBody         *body;
    void             *cookie;
} Walk;

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
    Arena           *a = L->arena;
    int64_t          reach = (w->in->dims[d] - 1) * v->base_dilation + 1;
    bool             loops = v->size > 1;
    const Ix *j = loops ? ix_of(&L->ix, loop_open(L, 0, v->size, NULL, 1)) : ix_const(&L->ix, 0);
    const Ix *p = ix_plus(&L->ix, ix_add(&L->ix, ix_times(&L->ix, w->out[d], v->stride), ix_times(&L->ix, j, v->window_dilation)), -v->pad_lo);
    int       in = in_range(L, p, 0, reach);
    int64_t   least, most, hole = 0;
    const KExpr *cond = NULL, *x = kx_index(a, p);
    ix_range(p, &least, &most);
    if (in < 0 && least < 0)
        cond = kx_binary(a, KOP_GE, TYPE_PRED, x, kx_int(a, TYPE_S64, 0));
    if (in < 0 && most >= reach) {
        const KExpr *below = kx_binary(a, KOP_LT, TYPE_PRED, x, kx_int(a, TYPE_S64, reach));
        cond = cond ? kx_binary(a, KOP_LAND, TYPE_PRED, cond, below) : below;
    }
    const Ix *rest = ix_mod(&L->ix, p, v->base_dilation);
    if (!ix_is_const(rest, &hole)) {
        const KExpr *hit = kx_binary(a, KOP_EQ, TYPE_PRED, kx_index(a, rest), kx_int(a, TYPE_S64, 0));
        cond = cond ? kx_binary(a, KOP_LAND, TYPE_PRED, cond, hit) : hit;
    }
    if (in != 0 && hole == 0) {
        if (cond)
            if_open(L, cond);
        w->at[d] = ix_div(&L->ix, p, v->base_dilation);
        walk_from(L, w, d + 1);
        if (cond)
            block_close(L);
    }
    if (loops)
        block_close(L);
}

void over_window(Lower *L, const Inst *x, const Shape *in, const Window *window, const Ix *const *out, NestBody *body, void *cookie)
{
    Walk w = { x, in, window, out, ARENA_ARRAY(L->arena, const Ix *, in->rank), body, cookie };
    if (shape_count(in) > 0)
        walk_from(L, &w, 0);
}

typedef struct Pool {
    const Inst    *x;
    int32_t        n;
    KArray *const *to;
    Type          *types;  /* of the accumulators: the reducer's parameters */
    KTemp        **acc;
    KArray       **block;
    int32_t        column; /* the fastest dimension when it has no window, else -1 */
    int64_t        width;
    const Ix      *j;
} Pool;

static const KExpr *element(Lower *L, const Pool *p, int32_t k, const Ix *const *at)
{
    int32_t     leaf = 0;
    const Inst *x = inst_operand(p->x, k), *from = resolve(L, x, &leaf);
    return scalar_convert(L->arena, x->shape->type, inst_callee(p->x, 0)->params[p->n + k]->shape->type, keep(L, x, value_at(L, from, leaf, at)));
}

static const KExpr *start(Lower *L, const Pool *p, int32_t k)
{
    int32_t     leaf = 0;
    const Inst *x = inst_operand(p->x, p->n + k), *from = resolve(L, x, &leaf);
    return scalar_convert(L->arena, x->shape->type, p->types[k], value_at(L, from, leaf, NULL));
}

static const KExpr *result(Lower *L, const Pool *p, int32_t k, const KExpr *v)
{
    return scalar_convert(L->arena, p->types[k], p->to[k]->type, v);
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
    if (p->column >= 0) {
        j = ix_of(&L->ix, loop_open(L, 0, p->width, NULL, 1));
        index[p->column] = ix_add(&L->ix, index[p->column], j);
    }
    for (int32_t k = 0; k < p->n; k++) {
        args[k] = j ? load_current(L, p->block[k], j) : current(L, p->acc[k]);
        args[p->n + k] = element(L, p, k, index);
    }
    apply(L, inst_callee(p->x, 0), args, out);
    for (int32_t k = 0; k < p->n && p->n > 1; k++)
        out[k] = bind(L, out[k], "next");
    for (int32_t k = 0; k < p->n; k++) {
        if (j)
            store(L, p->block[k], j, out[k]);
        else
            assign(L, p->acc[k], out[k]);
    }
    if (j)
        block_close(L);
}

static void pool_scalar(Lower *L, void *cookie, const Ix *const *index)
{
    Pool *p = cookie;
    for (int32_t k = 0; k < p->n; k++)
        p->acc[k] = accumulator(L, start(L, p, k), machine_type(p->types[k]), p->x->name);
    over_window(L, p->x, inst_operand(p->x, 0)->shape, inst_window(p->x), index, pool_element, p);
    for (int32_t k = 0; k < p->n; k++)
        store_at(L, p->to[k], index, result(L, p, k, kx_temp(L->arena, p->acc[k])));
}

/* width results from index on along the column dimension. */
static void pool_columns(Lower *L, Pool *p, const Ix *const *index)
{
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, inst_operand(p->x, 0)->shape->rank);
    for (int32_t k = 0; k < p->n; k++)
        p->block[k] = local_array(L, p->types[k], p->width, p->x->name);
    const KExpr **init = ARENA_ARRAY(L->arena, const KExpr *, p->n);
    for (int32_t k = 0; k < p->n; k++)
        init[k] = start(L, p, k);
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, p->width, NULL, 1));
    for (int32_t k = 0; k < p->n; k++)
        store(L, p->block[k], j, init[k]);
    block_close(L);
    over_window(L, p->x, inst_operand(p->x, 0)->shape, inst_window(p->x), index, pool_element, p);
    j = ix_of(&L->ix, loop_open(L, 0, p->width, NULL, 1));
    for (int32_t d = 0; d < inst_operand(p->x, 0)->shape->rank; d++)
        at[d] = d == p->column ? ix_add(&L->ix, index[d], j) : index[d];
    for (int32_t k = 0; k < p->n; k++)
        store_at(L, p->to[k], at, result(L, p, k, load(L, p->block[k], j)));
    block_close(L);
}

static void pool_block(Lower *L, void *cookie, const Ix *const *index)
{
    Pool      *p = cookie;
    int32_t    rank = inst_operand(p->x, 0)->shape->rank;
    int64_t    n = inst_operand(p->x, 0)->shape->dims[p->column], w = tile_width(n, COLUMN_BLOCK / 3 * 2, 64);
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, rank);
    for (int32_t d = 0; d < rank; d++)
        at[d] = index[d];
    p->width = w;
    if (n > w)
        at[p->column] = ix_times(&L->ix, ix_of(&L->ix, loop_open(L, 0, n / w, NULL, 1)), w);
    pool_columns(L, p, at);
    if (n > w)
        block_close(L);
    if (n % w) {
        p->width = n % w;
        at[p->column] = ix_const(&L->ix, n / w * w);
        pool_columns(L, p, at);
    }
}

/* The fastest dimension, if the window leaves it alone. */
static int32_t free_column(const Inst *x)
{
    const Shape  *in = inst_operand(x, 0)->shape;
    const Window *w = inst_window(x);
    for (int32_t k = 0; k < in->rank; k++) {
        int32_t d = (int32_t)layout_dim(in, k);
        if (in->dims[d] == 1)
            continue;
        const WindowDim *v = &w->v[d];
        bool alone = v->size == 1 && v->stride == 1 && v->pad_lo == 0 && v->pad_hi == 0 && v->base_dilation == 1;
        return alone && in->dims[d] >= 4 ? d : -1;
    }
    return -1;
}

void stage_reduce_window(Lower *L, const Inst *x, KArray *const *to)
{
    Pool         p = { .x = x, .n = x->n_operands / 2, .to = to, .column = free_column(x) };
    const Shape *s = to[0]->shape;
    int64_t     *extents = ARENA_ARRAY(L->arena, int64_t, s->rank);
    p.acc = ARENA_ARRAY(L->arena, KTemp *, p.n);
    p.block = ARENA_ARRAY(L->arena, KArray *, p.n);
    p.types = ARENA_ARRAY(L->arena, Type, p.n);
    for (int32_t k = 0; k < p.n; k++)
        p.types[k] = inst_callee(x, 0)->params[k]->shape->type;
    for (int32_t d = 0; d < s->rank; d++)
        extents[d] = d == p.column ? 1 : s->dims[d];
    nest(L, s->rank, plan_dims(L, x, ROLE_OUT, s->rank, extents), major_order(L, s), p.column >= 0 ? pool_block : pool_scalar, &p);
}
