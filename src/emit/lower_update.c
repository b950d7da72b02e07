/* What changes a copy of its operand: dynamic-update-slice, scatter, select-and-scatter. The copy is left out at run time when the plan has
 * put the result where the operand is, and kernel_finish has found that the operand is not read afterwards. */
#include "analysis/memory.h"
#include "analysis/scatter.h"
#include "emit/lower.h"

#include <string.h>

enum { FEW = 32 /* updates that one thread may as well make */ };
enum { ROLE_COPY = 30, ROLE_UPDATE = 40, ROLE_WINDOW = 41, ROLE_LAST = 42, ROLE_NONE = 43 };

typedef struct Copy {
    const Inst *from;
    KArray     *to;
} Copy;

static void copy_body(Lower *L, void *cookie, const Ix *const *index)
{
    Copy       *c = cookie;
    int32_t     leaf = 0;
    const Inst *from = resolve(L, c->from, &leaf);
    Type        t = shape_leaf(from->shape, leaf)->type;
    store_at(L, c->to, index, scalar_convert(L->arena, t, c->to->type, value_at(L, from, leaf, index)));
}

const Inst *behind_bitcasts(const Lower *L, const Inst *x)
{
    while (!map_has(&L->memory, x) && (x->op == OP_BITCAST || x->op == OP_RESHAPE) && inst_forwards(x) == 0)
        x = inst_operand(x, 0);
    return x;
}

/* Result `to` starts as operand k, and nothing is copied where the result may be where the operand is. */
static void copy_operand(Lower *L, const Inst *x, int32_t k, KArray *to)
{
    Copy        c = { inst_operand(x, k), to };
    int32_t     leaf = 0;
    const Inst *from = resolve(L, behind_bitcasts(L, c.from), &leaf);
    KArray     *source = memory_of(L, from, leaf);
    bool        same = source && source->kind == KARRAY_PARAM && to->kind == KARRAY_PARAM && shape_same_memory(source->shape, to->shape);
    LoopDim    *dims = plan_dims(L, x, ROLE_COPY + k, to->shape->rank, to->shape->dims);
    if (same) {
        if_open(L, kx_distinct(L->arena, to, source));
        vec_push(L->arena, &L->in_place, ((InPlace){ to->param, source->param, is_placed_update(x) }));
    }
    nest(L, to->shape->rank, dims, major_order(L, to->shape), copy_body, &c);
    if (same)
        block_close(L);
}

typedef struct Update {
    const Inst *x;
    KArray     *to;
    const Ix  **starts;
} Update;

static void update_body(Lower *L, void *cookie, const Ix *const *index)
{
    Update     *u = cookie;
    const Inst *update = inst_operand(u->x, 1);
    const Ix  **at = ARENA_ARRAY(L->arena, const Ix *, u->x->shape->rank);
    int32_t     leaf = 0;
    for (int32_t d = 0; d < u->x->shape->rank; d++)
        at[d] = ix_add(&L->ix, u->starts[d], index[d]);
    update = resolve(L, update, &leaf);
    store_at(L, u->to, at, scalar_convert(L->arena, inst_operand(u->x, 1)->shape->type, u->to->type, value_at(L, update, leaf, index)));
}

/* The update before this one of the same array, which nobody else wants; NULL: none. */
static const Inst *update_before(Lower *L, const Inst *x)
{
    const Inst *before = inst_operand(x, 0);
    return before->op == OP_DYNAMIC_UPDATE_SLICE && before->n_uses == 1 && !map_has(&L->memory, before) ? before : NULL;
}

bool is_placed_update(const Inst *x)
{
    if (x->op != OP_DYNAMIC_UPDATE_SLICE || inst_operand(x, 0)->op == OP_DYNAMIC_UPDATE_SLICE)
        return false;
    for (int32_t k = 2; k < x->n_operands; k++)
        if (inst_operand(x, k)->op != OP_CONSTANT)
            return false;
    return true;
}

void stage_update(Lower *L, const Inst *x, KArray *const *to)
{
    VEC(Update) updates = { 0 };
    for (; x; x = L->body ? update_before(L, x) : NULL)
        vec_push(L->arena, &updates, ((Update){ .x = x, .to = to[0], .starts = update_starts(L, x) }));
    to[0]->rewritten = true;
    copy_operand(L, updates.v[updates.n - 1].x, 0, to[0]);
    for (int32_t k = updates.n - 1; k >= 0; k--) {
        Update      *u = &updates.v[k];
        const Shape *s = inst_operand(u->x, 1)->shape;
        if (shape_count(s) > 0)
            nest(L, s->rank, plan_dims(L, u->x, ROLE_UPDATE, s->rank, s->dims), major_order(L, s), update_body, u);
    }
}

/* Scatter. */
typedef struct Scatter {
    const Inst       *x;
    int32_t           n;
    const Inst       *indices;
    const Shape      *in, *update;
    KArray *const    *to;
    Ints              window_dims, inserted, batching, to_operand, index_batching;
    int64_t           vector;
    bool              apart;  /* no two updates meet, the text says */
    bool              single; /* a window is one element */
    KArray           *last;   /* NULL, or the number of the last update of each place, which alone is made, */
    bool              finds;  /* once that is found */
    const Ix *const  *g;   /* index of the updates, window dimensions at 0 */
    const Ix        **start;
} Scatter;

static void scatter_window(Lower *L, void *cookie, const Ix *const *index)
{
    Scatter      *s = cookie;
    const Ix    **at = ARENA_ARRAY(L->arena, const Ix *, s->in->rank), **from = ARENA_ARRAY(L->arena, const Ix *, s->update->rank);
    const KExpr **args = ARENA_ARRAY(L->arena, const KExpr *, 2 * s->n), **out = ARENA_ARRAY(L->arena, const KExpr *, s->n);
    const Comp   *body = inst_callee(s->x, 0);
    for (int32_t d = 0; d < s->update->rank; d++)
        from[d] = ints_has(s->window_dims, d) ? index[d] : s->g[d];
    for (int32_t d = 0, w = 0; d < s->in->rank; d++) {
        bool none = ints_has(s->inserted, d) || ints_has(s->batching, d);
        at[d] = none ? s->start[d] : ix_add(&L->ix, s->start[d], from[s->window_dims.v[w++]]);
    }
    for (int32_t k = 0; k < s->n; k++) {
        int32_t     leaf = 0;
        const Inst *u = inst_operand(s->x, s->n + 1 + k), *source = resolve(L, u, &leaf);
        Type        has = body->params[k]->shape->type, updated = body->params[s->n + k]->shape->type;
        args[k] = scalar_convert(L->arena, s->to[k]->type, has, load_current(L, s->to[k], shape_index(L, s->to[k]->shape, at)));
        args[s->n + k] = scalar_convert(L->arena, u->shape->type, updated, value_at(L, source, leaf, from));
    }
    apply(L, body, args, out);
    for (int32_t k = 0; k < s->n && s->n > 1; k++)
        out[k] = bind(L, out[k], "next");
    for (int32_t k = 0; k < s->n; k++) {
        const Shape *r = body->root->shape;
        store_at(L, s->to[k], at, scalar_convert(L->arena, shape_is_tuple(r) ? r->elems[k]->type : r->type, s->to[k]->type, out[k]));
        L->cur->last->apart = s->apart;
        if (s->single && !L->plan->plain) /* an element that was found */
            L->cur->last->value = kx_alone(L->arena, L->cur->last->value);
    }
}

/* The update at g by its number, from 1 on; where the place's last one is kept. */
static const KExpr *number_of(Lower *L, const Scatter *s)
{
    const Ix *at = ix_const(&L->ix, 1);
    int64_t   step = 1;
    for (int32_t d = s->update->rank; d-- > 0;) {
        if (ints_has(s->window_dims, d))
            continue;
        at = ix_add(&L->ix, at, ix_times(&L->ix, s->g[d], step));
        step *= s->update->dims[d];
    }
    return bind(L, kx_cast(L->arena, TYPE_S32, kx_index(L->arena, at)), "number");
}

static const Ix *last_at(Lower *L, const Scatter *s)
{
    return shape_index(L, s->last->shape, s->start);
}

/* One scatter position: its start, tested so that the whole window is inside, then the window. */
static void scatter_position(Lower *L, void *cookie, const Ix *const *index)
{
    Scatter     *s = cookie;
    Arena       *a = L->arena;
    const Ix   **pos = ARENA_ARRAY(a, const Ix *, s->indices->shape->rank + 1), **from = ARENA_ARRAY(a, const Ix *, s->update->rank);
    const KExpr *cond = NULL;
    int32_t      batch = 0, leaf = 0;
    const Inst  *indices = resolve(L, s->indices, &leaf);
    for (int32_t d = 0; d < s->update->rank; d++) {
        from[d] = index[d];
        if (ints_has(s->window_dims, d))
            continue;
        if (batch == s->vector)
            batch++;
        pos[batch++] = index[d];
    }
    s->g = from;
    for (int32_t d = 0; d < s->in->rank; d++)
        s->start[d] = ix_const(&L->ix, 0);
    for (int32_t j = 0; j < s->to_operand.n; j++) {
        int32_t    d = (int32_t)s->to_operand.v[j];
        int64_t    hi = s->in->dims[d] - scatter_window_size(s->x, d);
        const Ix **at = ARENA_ARRAY(a, const Ix *, s->indices->shape->rank);
        for (int32_t k = 0; k < s->indices->shape->rank; k++)
            at[k] = k == s->vector ? ix_const(&L->ix, j) : pos[k];
        const KExpr *v = value_at(L, indices, leaf, at);
        const Type   type = type_bits(v->type) <= 32 ? index_type(L, hi) : TYPE_S64, above = type == TYPE_S32 ? TYPE_U32 : TYPE_U64;
        KTemp       *t = accumulator(L, kx_cast(a, type, v), type, arena_printf(a, "%s_start%d", s->x->name, d));
        const KExpr *x = kx_temp(a, t);
        t->assigned = !L->plan->plain; /* for many threads it is a value that stays */
        const KExpr *inside = hi < 0 ? kx_int(a, TYPE_PRED, 0) : kx_binary(a, KOP_LE, TYPE_PRED, kx_cast(a, above, x), kx_int(a, above, hi)); /* negative is above, too */
        cond = cond ? kx_binary(a, KOP_LAND, TYPE_PRED, cond, inside) : inside;
        /* Not of(): even where only 0 is inside, the test has to be made. */
        s->start[d] = ix_of(&L->ix, ix_new_atom(&L->ix, IX_VALUE, NULL, 0, hi, x->depth, t));
    }
    for (int32_t j = 0; j < s->batching.n; j++)
        s->start[s->batching.v[j]] = pos[s->index_batching.v[j]];
    if (cond)
        if_open(L, cond);
    if (s->finds) {
        const KExpr *args[] = { load_current(L, s->last, last_at(L, s)), number_of(L, s) };
        store(L, s->last, last_at(L, s), kx_call(a, "max_s32", TYPE_S32, 2, args));
        if (cond)
            block_close(L);
        return;
    }
    if (s->last)
        if_open(L, kx_binary(a, KOP_EQ, TYPE_PRED, load(L, s->last, last_at(L, s)), number_of(L, s)));
    int64_t *extents = ARENA_ARRAY(a, int64_t, s->update->rank);
    for (int32_t d = 0; d < s->update->rank; d++)
        extents[d] = ints_has(s->window_dims, d) ? s->update->dims[d] : 1;
    nest(L, s->update->rank, plan_dims(L, s->x, ROLE_WINDOW, s->update->rank, extents), NULL, scatter_window, s);
    if (s->last)
        block_close(L);
    if (cond)
        block_close(L);
}

/* Updates that replace what is there, of which the last one of each place counts, have no order when it is known which that is. */
static bool wants_last(const Lower *L, const Scatter *s, int64_t positions, int64_t places)
{
    enum { MUCH = 16384 /* places for each update */ };
    return L->plan->plain && !s->apart && scatter_places_whole(s->x) && positions > FEW && positions < INT32_MAX && places / MUCH < positions && scatter_replaces(s->x);
}

static void forget_last(Lower *L, void *cookie, const Ix *const *index)
{
    const Scatter *s = cookie;
    store_at(L, s->last, index, kx_int(L->arena, TYPE_S32, 0));
}

/* What x is made of is rounded where it is made: computed at two places it may be two numbers. */
static bool is_rounded(Lower *L, const Inst *x)
{
    enum { MOST = 100 };
    VEC(const Inst *) list = { 0 };
    vec_push(L->arena, &list, x);
    for (int32_t at = 0; at < list.n && list.n < MOST; at++) {
        const Inst *i = list.v[at];
        if (map_has(&L->memory, i) || i->op == OP_CONSTANT)
            continue;
        if (shape_is_array(i->shape) && (type_is_float(i->shape->type) || type_is_complex(i->shape->type)) && op_has(i->op, F_ELEMENTWISE))
            return true;
        for (int32_t k = 0; k < i->n_operands; k++)
            vec_push(L->arena, &list, inst_operand(i, k));
    }
    return list.n >= MOST;
}

static void store_operand(Lower *L, const Inst *x)
{
    int32_t leaf = 0;
    if (L->body && !is_cheap(L, x))
        need_memory(L, resolve(L, x, &leaf));
}

/* Where one thread makes many updates, others make what it needs before. */
static void store_operands(Lower *L, const Scatter *s)
{
    store_operand(L, s->indices);
    for (int32_t k = 0; k < s->n; k++)
        store_operand(L, inst_operand(s->x, s->n + 1 + k));
}

static void find_last(Lower *L, Scatter *s, const int64_t *extents)
{
    int64_t *dims = ARENA_ARRAY(L->arena, int64_t, s->in->rank), positions = 1, places = 1;
    for (int32_t d = 0; d < s->in->rank; d++) {
        dims[d] = ints_has(s->to_operand, d) || ints_has(s->batching, d) ? s->in->dims[d] : 1;
        places *= dims[d];
    }
    for (int32_t d = 0; d < s->update->rank; d++)
        positions *= extents[d];
    if (!wants_last(L, s, positions, places)) {
        if (L->plan->plain && positions > FEW && !scatter_has_no_order(s->x, L->plan->any_order))
            store_operands(L, s);
        return;
    }
    if (is_rounded(L, s->indices))
        store_operand(L, s->indices);
    const Shape *all = shape_array(L->arena, TYPE_S32, s->in->rank, dims);
    s->last = stage_array(L, all, "last");
    s->last->rewritten = true;
    nest(L, all->rank, plan_dims(L, s->x, ROLE_NONE, all->rank, all->dims), NULL, forget_last, s);
    s->finds = true;
    nest(L, s->update->rank, plan_dims(L, s->x, ROLE_LAST, s->update->rank, extents), NULL, scatter_position, s);
    s->finds = false;
    s->apart = true;
}

/* Where threads update bytes in any order they exchange whole words: an array that is none is updated in working memory, which is. */
static KArray *in_words(Lower *L, const Scatter *s, KArray *to)
{
    enum { WORD = 4 };
    const bool any_order = L->plan->plain && s->n == 1 && !s->apart && shape_count(s->update) > FEW && scatter_has_no_order(s->x, L->plan->any_order);
    return any_order && type_bytes(storage_type(to->type)) == 1 && to->kind == KARRAY_PARAM && to->count % WORD != 0 ? shared_array(L, to->shape, s->x->name) : to;
}

void stage_scatter(Lower *L, const Inst *x, KArray *const *to)
{
    int32_t n = x->n_operands / 2;
    Scatter s = { .x = x, .n = n, .indices = inst_operand(x, n), .in = inst_operand(x, 0)->shape, .update = inst_operand(x, n + 1)->shape, .to = to };
    s.window_dims = inst_ints(x, ATTR_UPDATE_WINDOW_DIMS);
    s.inserted = inst_ints(x, ATTR_INSERTED_WINDOW_DIMS);
    s.batching = inst_ints(x, ATTR_INPUT_BATCHING_DIMS);
    s.to_operand = inst_ints(x, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
    s.index_batching = inst_ints(x, ATTR_SCATTER_INDICES_BATCHING_DIMS);
    s.vector = inst_int(x, ATTR_INDEX_VECTOR_DIM, 0);
    s.apart = inst_bool(x, ATTR_UNIQUE_INDICES) && scatter_places_whole(x);
    s.start = ARENA_ARRAY(L->arena, const Ix *, s.in->rank);
    KArray *words = in_words(L, &s, to[0]);
    if (words != to[0])
        s.to = &words;
    for (int32_t k = 0; k < n; k++) {
        s.to[k]->rewritten = true;
        copy_operand(L, x, k, s.to[k]);
    }
    int64_t *extents = ARENA_ARRAY(L->arena, int64_t, s.update->rank);
    for (int32_t d = 0; d < s.update->rank; d++)
        extents[d] = ints_has(s.window_dims, d) ? 1 : s.update->dims[d];
    s.single = true;
    for (int32_t w = 0; w < s.window_dims.n; w++)
        s.single &= s.update->dims[s.window_dims.v[w]] == 1;
    if (shape_count(s.update) == 0)
        return;
    find_last(L, &s, extents);
    nest(L, s.update->rank, plan_dims(L, x, ROLE_UPDATE, s.update->rank, extents), NULL, scatter_position, &s);
    copy_array(L, to[0], words);
}

/* select-and-scatter. */
typedef struct Pick {
    const Inst    *x;
    const Window  *window;
    KArray        *to;
    KTemp         *best, *at; /* value, and offset in the result; -1: none yet */
    const Ix     **index;
    bool           overlap;   /* of windows */
    KArray        *places;    /* `at` of each window */
    int32_t        column;    /* the fastest dimension, along which a row of windows picks at once */
    bool           strided;   /* they move along it; window is without that */
    int64_t        width;     /* of the row */
    KArray        *bests;     /* of the row's windows */
    const Ix *const *window_index; /* of the row's first window */
} Pick;

static void take_best(Lower *L, const Pick *p, const KExpr *v)
{
    assign(L, p->best, v);
    assign(L, p->at, kx_index(L->arena, shape_index(L, p->to->shape, p->index)));
}

static void pick_element(Lower *L, void *cookie, const Ix *const *index)
{
    Pick        *p = cookie;
    Arena       *a = L->arena;
    int32_t      leaf = 0;
    const Inst  *x = resolve(L, inst_operand(p->x, 0), &leaf);
    for (int32_t d = 0; d < p->to->shape->rank; d++)
        p->index[d] = index[d];
    const KExpr *v = bind(L, value_at(L, x, leaf, index), "candidate"), *better;
    if_open(L, kx_binary(a, KOP_LT, TYPE_PRED, current(L, p->at), kx_int(a, TYPE_S64, 0)));
    take_best(L, p, v);
    if_else(L);
    apply(L, inst_callee(p->x, 0), (const KExpr *const[]){ current(L, p->best), v }, &better);
    if_open(L, kx_unary(a, KOP_NOT, TYPE_PRED, better));
    take_best(L, p, v);
    block_close(L);
    block_close(L);
}

/* best and at, of the window at the source's index. */
static void pick_in_window(Lower *L, Pick *p, const Ix *const *index)
{
    Arena *a = L->arena;
    p->best = accumulator(L, scalar_zero(a, inst_operand(p->x, 0)->shape->type), machine_type(inst_operand(p->x, 0)->shape->type), "best");
    p->at = accumulator(L, kx_int(a, TYPE_S64, -1), TYPE_S64, "at");
    over_window(L, p->x, inst_operand(p->x, 0)->shape, p->window, index, false, pick_element, p);
}

/* What the scatter computation makes of an element of the source and of what is there, as the result has it. */
static const KExpr *scattered(Lower *L, const Pick *p, const Ix *const *index, const KExpr *there)
{
    Arena       *a = L->arena;
    int32_t      leaf = 0;
    const Inst  *source = resolve(L, inst_operand(p->x, 1), &leaf);
    const Comp  *body = inst_callee(p->x, 1);
    const KExpr *out, *v = value_at(L, source, leaf, index);
    apply(L, body, (const KExpr *const[]){ scalar_convert(a, source->shape->type, body->params[0]->shape->type, v), there }, &out);
    return scalar_convert(a, body->root->shape->type, p->to->type, out);
}

static void pick_source(Lower *L, void *cookie, const Ix *const *index)
{
    Pick  *p = cookie;
    Arena *a = L->arena;
    pick_in_window(L, p, index);
    if_open(L, kx_binary(a, KOP_GE, TYPE_PRED, current(L, p->at), kx_int(a, TYPE_S64, 0)));
    const Ix *at = ix_of(&L->ix, ix_new_atom(&L->ix, IX_VALUE, NULL, -1, p->to->count, p->at->depth, p->at));
    store(L, p->to, at, scattered(L, p, index, load_current(L, p->to, at)));
    L->cur->last->apart = !p->overlap;
    block_close(L);
}

/* ---- a row of windows: the best element of each, then what each element of the windows gets ---- */

static const Ix **beside(Lower *L, const Pick *p, const Ix *const *index, const Ix *j)
{
    const int32_t rank = p->to->shape->rank;
    const Ix    **at = ARENA_ARRAY(L->arena, const Ix *, rank);
    for (int32_t d = 0; d < rank; d++)
        at[d] = d == p->column ? ix_add(&L->ix, index[d], j) : index[d];
    return at;
}

/* The number of an element in the result, without what is beside it. */
static const KExpr *place_of(Lower *L, const Pick *p, const Ix *const *index)
{
    return kx_cast(L->arena, p->places->type, kx_index(L->arena, shape_index(L, p->to->shape, index)));
}

/* Window j of the row takes the element at `from` if it is better than what the window has. */
static void take_better(Lower *L, const Pick *p, const Ix *const *from, const Ix *j, const KExpr *place)
{
    Arena       *a = L->arena;
    int32_t      leaf = 0;
    const Inst  *x = resolve(L, inst_operand(p->x, 0), &leaf);
    const KExpr *v = bind(L, value_at(L, x, leaf, from), "candidate"), *best = load_current(L, p->bests, j), *at = load_current(L, p->places, j), *better;
    apply(L, inst_callee(p->x, 0), (const KExpr *const[]){ best, v }, &better);
    const KExpr *none = kx_binary(a, KOP_LT, TYPE_PRED, at, kx_int(a, p->places->type, 0));
    const KExpr *take = bind(L, kx_binary(a, KOP_OR, TYPE_PRED, none, kx_unary(a, KOP_NOT, TYPE_PRED, better)), "take");
    const KExpr *next = bind(L, kx_select(a, take, place, at), "at");
    store(L, p->bests, j, kx_select(a, take, v, best));
    store(L, p->places, j, next);
}

static void pick_along(Lower *L, void *cookie, const Ix *const *index)
{
    Pick        *p = cookie;
    const KExpr *place = bind(L, place_of(L, p, index), "place");
    const Ix    *j = ix_of(&L->ix, loop_open(L, 0, p->width, NULL, 1));
    take_better(L, p, beside(L, p, index, j), j, place);
    block_close(L);
}

static void scatter_along(Lower *L, void *cookie, const Ix *const *index)
{
    Pick        *p = cookie;
    Arena       *a = L->arena;
    int32_t      leaf = 0;
    const Inst  *init = resolve(L, inst_operand(p->x, 2), &leaf);
    const KExpr *place = bind(L, place_of(L, p, index), "place");
    const Ix    *j = ix_of(&L->ix, loop_open(L, 0, p->width, NULL, 1)), **at = beside(L, p, index, j);
    const KExpr *there = p->overlap ? load_current(L, p->to, shape_index(L, p->to->shape, at)) : scalar_convert(a, init->shape->type, p->to->type, value_at(L, init, leaf, NULL));
    const KExpr *chosen = kx_binary(a, KOP_EQ, TYPE_PRED, load_current(L, p->places, j), place), *v = scattered(L, p, beside(L, p, p->window_index, j), there);
    store_at(L, p->to, at, kx_select(a, chosen, v, there));
    block_close(L);
}

/* Windows that are neighbours along the fastest dimension and move along it: their elements number j, which are a stride apart. */
static void pick_strided(Lower *L, void *cookie, const Ix *const *index)
{
    Pick            *p = cookie;
    Arena           *a = L->arena;
    const int32_t    m = p->column;
    const WindowDim *v = &inst_window(p->x)->v[m];
    const Shape     *in = inst_operand(p->x, 0)->shape;
    const Ix        *j = ix_of(&L->ix, loop_open(L, 0, v->size, NULL, 1)), *k; /* p->width windows, of which those from .. end have an element j */
    const Ix        *base = ix_plus(&L->ix, ix_add(&L->ix, ix_times(&L->ix, p->window_index[m], v->stride), ix_times(&L->ix, j, v->window_dilation)), -v->pad_lo);
    const Ix        *from = ix_div(&L->ix, ix_plus(&L->ix, ix_times(&L->ix, base, -1), v->stride - 1), v->stride);
    const Ix        *last = ix_div(&L->ix, ix_plus(&L->ix, ix_times(&L->ix, base, -1), in->dims[m] - 1), v->stride);
    from = clip(L, KOP_GT, from, 0, "from");
    if (loop_between(L, from, clip(L, KOP_LT, ix_plus(&L->ix, last, 1), p->width, "end"), &k)) {
        const Ix **at = ARENA_ARRAY(a, const Ix *, in->rank);
        for (int32_t d = 0; d < in->rank; d++)
            at[d] = d == m ? ix_add(&L->ix, base, ix_times(&L->ix, k, v->stride)) : index[d];
        take_better(L, p, at, k, place_of(L, p, at));
        block_close(L);
    }
    block_close(L);
}

/* Each window's update goes where its best element is, one after the other. */
static void scatter_picked(Lower *L, const Pick *p)
{
    Arena       *a = L->arena;
    const Ix    *k = ix_of(&L->ix, loop_open(L, 0, p->width, NULL, 1));
    const KExpr *place = bind(L, kx_cast(a, TYPE_S64, load_current(L, p->places, k)), "place");
    if_open(L, kx_binary(a, KOP_GE, TYPE_PRED, place, kx_int(a, TYPE_S64, 0)));
    const Ix *at = ix_of(&L->ix, ix_new_atom(&L->ix, IX_VALUE, NULL, -1, p->to->count, place->depth, place->temp));
    store(L, p->to, at, scattered(L, p, beside(L, p, p->window_index, k), load_current(L, p->to, at)));
    L->cur->last->apart = !p->overlap;
    block_close(L);
    block_close(L);
}

static void pick_row(Lower *L, void *cookie, const Ix *const *index, int64_t width)
{
    Pick        *p = cookie;
    const Shape *in = inst_operand(p->x, 0)->shape;
    p->width = width;
    p->window_index = index;
    p->bests = local_array(L, machine_type(in->type), width, "best");
    p->places = local_array(L, p->to->count <= INT32_MAX ? TYPE_S32 : TYPE_S64, width, "at");
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, width, NULL, 1));
    store(L, p->bests, j, scalar_zero(L->arena, in->type));
    store(L, p->places, j, kx_int(L->arena, p->places->type, -1));
    block_close(L);
    if (p->strided) {
        const Ix **first = arena_copy(L->arena, index, (uint64_t)in->rank * sizeof *index);
        first[p->column] = ix_const(&L->ix, 0);
        over_window(L, p->x, in, p->window, first, true, pick_strided, p);
        scatter_picked(L, p);
        return;
    }
    over_window(L, p->x, in, p->window, index, true, pick_along, p);
    over_window(L, p->x, in, p->window, index, true, scatter_along, p);
}

static void pick_rows(Lower *L, void *cookie, const Ix *const *index)
{
    Pick *p = cookie;
    in_column_blocks(L, inst_operand(p->x, 1)->shape, p->column, index, pick_row, p);
}

/* ---- for many threads: each window's place, then each element's windows ---- */

static void note_place(Lower *L, void *cookie, const Ix *const *index)
{
    Pick *p = cookie;
    pick_in_window(L, p, index);
    store_at(L, p->places, index, current(L, p->at));
}

/* A number from 0 to count. */
static const Ix *bound(Lower *L, const KExpr *x, int64_t count, const char *name)
{
    x = frozen(L, x, name);
    return x->kind == KX_INT ? ix_const(&L->ix, x->i) : ix_of(&L->ix, ix_new_atom(&L->ix, IX_VALUE, NULL, 0, count, x->depth, x->temp));
}

/* The numbers of windows that may cover o along a dimension. Whether they do the places say. */
static const Ix *windows_over(Lower *L, const WindowDim *v, int64_t count, const Ix *o)
{
    Arena        *a = L->arena;
    const int64_t span = (v->size - 1) * v->window_dilation;
    const KExpr  *stride = kx_int(a, TYPE_S64, v->stride), *zero = kx_int(a, TYPE_S64, 0), *n = kx_int(a, TYPE_S64, count);
    const KExpr  *from = kx_binary(a, KOP_DIV, TYPE_S64, kx_index(a, ix_plus(&L->ix, o, v->pad_lo - span + v->stride - 1)), stride);
    const KExpr  *end = kx_binary(a, KOP_DIV, TYPE_S64, kx_index(a, ix_plus(&L->ix, o, v->pad_lo + v->stride)), stride);
    from = bind(L, from, "from");
    from = kx_select(a, kx_binary(a, KOP_GT, TYPE_PRED, from, zero), from, zero);
    end = bind(L, end, "end");
    end = kx_select(a, kx_binary(a, KOP_LT, TYPE_PRED, end, n), end, n);
    const Ix *i;
    return loop_between(L, bound(L, from, count, "from"), bound(L, end, count, "end"), &i) ? i : NULL;
}

static void gather_element(Lower *L, void *cookie, const Ix *const *index)
{
    Pick       *p = cookie;
    Arena      *a = L->arena;
    int32_t     leaf = 0, opened = 0;
    bool        covered = true;
    const Inst *init = resolve(L, inst_operand(p->x, 2), &leaf);
    const Ix  **at = ARENA_ARRAY(a, const Ix *, p->to->shape->rank), **own = ARENA_ARRAY(a, const Ix *, p->to->shape->rank);
    KTemp      *sum = accumulator(L, scalar_convert(a, init->shape->type, p->to->type, value_at(L, init, leaf, NULL)), machine_type(p->to->type), "sum");
    for (int32_t d = 0; d < p->to->shape->rank; d++) {
        const WindowDim *v = &p->window->v[d];
        const bool       alone = v->size == 1 && v->stride == 1 && v->pad_lo == 0;
        own[d] = index[d];
        at[d] = alone ? index[d] : windows_over(L, v, p->places->shape->dims[d], index[d]);
        if (!at[d]) { /* no window comes there */
            covered = false;
            break;
        }
        opened += !alone;
    }
    if (covered) {
        const KExpr *place = kx_index(a, shape_index(L, p->to->shape, own));
        if_open(L, kx_binary(a, KOP_EQ, TYPE_PRED, load(L, p->places, shape_index(L, p->places->shape, at)), place));
        assign(L, sum, scattered(L, p, at, current(L, sum)));
        block_close(L);
    }
    for (int32_t k = 0; k < opened; k++)
        block_close(L);
    store_at(L, p->to, index, current(L, sum));
}

static void fill_body(Lower *L, void *cookie, const Ix *const *index)
{
    Pick       *p = cookie;
    int32_t     leaf = 0;
    const Inst *init = resolve(L, inst_operand(p->x, 2), &leaf);
    store_at(L, p->to, index, scalar_convert(L->arena, init->shape->type, p->to->type, value_at(L, init, leaf, NULL)));
}

static bool windows_overlap(const Window *w)
{
    for (int32_t d = 0; d < w->n; d++)
        if (w->v[d].base_dilation != 1 || (w->v[d].size - 1) * w->v[d].window_dilation + 1 > w->v[d].stride)
            return true;
    return false;
}

/* Is every element in a window? */
static bool windows_cover(const Window *w, const Shape *in, const Shape *windows)
{
    for (int32_t d = 0; d < w->n; d++)
        if (w->v[d].size < w->v[d].stride || w->v[d].window_dilation != 1 || w->v[d].pad_lo < 0 ||
            (windows->dims[d] - 1) * w->v[d].stride + w->v[d].size - w->v[d].pad_lo < in->dims[d])
            return false;
    return true;
}

static bool is_dilated(const Window *w)
{
    for (int32_t d = 0; d < w->n; d++)
        if (w->v[d].base_dilation != 1)
            return true;
    return false;
}

/* Rows of windows beside each other pick together; where windows do not meet, each element is then written once. */
static void select_and_scatter_rows(Lower *L, Pick *p)
{
    const Shape *s = p->to->shape, *source = inst_operand(p->x, 1)->shape;
    int64_t     *extents = ARENA_ARRAY(L->arena, int64_t, s->rank);
    p->to->rewritten = p->overlap || p->strided || !windows_cover(p->window, s, source);
    if (p->to->rewritten)
        nest(L, s->rank, plan_dims(L, p->x, ROLE_COPY, s->rank, s->dims), major_order(L, s), fill_body, p);
    for (int32_t d = 0; d < s->rank; d++)
        extents[d] = d == p->column ? 1 : source->dims[d];
    nest(L, s->rank, plan_dims(L, p->x, ROLE_UPDATE, s->rank, extents), major_order(L, source), pick_rows, p);
}

/* Windows that move along the last dimension, which is the fastest one, by rows of them: compilers make vectors of that, where window after window would be branches
 * that nobody foresees. */
static void by_rows(Lower *L, Pick *p)
{
    enum { LEAST = 8 };
    const Shape *in = inst_operand(p->x, 0)->shape, *source = inst_operand(p->x, 1)->shape;
    const int32_t m = in->rank - 1;
    if (m < 0 || source->dims[m] < LEAST || p->window->v[m].base_dilation != 1 || !layout_is_row_major(in) || !layout_is_row_major(source) || !layout_is_row_major(p->to->shape))
        return;
    WindowDim *v = arena_copy(L->arena, p->window->v, (uint64_t)p->window->n * sizeof *v);
    v[m] = (WindowDim){ 1, 1, 0, 0, 1, 1, false };
    Window *rest = ARENA_NEW(L->arena, Window);
    *rest = (Window){ p->window->n, v };
    p->window = rest;
    p->column = m;
    p->strided = true;
}

void stage_select_and_scatter(Lower *L, const Inst *x, KArray *const *to)
{
    const Shape *s = x->shape, *source = inst_operand(x, 1)->shape;
    Pick         p = { .x = x, .window = inst_window(x), .to = to[0], .index = ARENA_ARRAY(L->arena, const Ix *, s->rank), .overlap = windows_overlap(inst_window(x)),
                       .column = L->plan->plain ? -1 : free_column(x) };
    if (L->plan->plain && p.overlap && !is_dilated(p.window) && shape_count(source) > 0) {
        p.places = stage_array(L, shape_with_type(L->arena, source, TYPE_S64), "places");
        nest(L, source->rank, plan_dims(L, x, ROLE_UPDATE, source->rank, source->dims), NULL, note_place, &p);
        nest(L, s->rank, plan_dims(L, x, ROLE_COPY, s->rank, s->dims), major_order(L, s), gather_element, &p);
        return;
    }
    if (p.column < 0 && !L->plan->plain)
        by_rows(L, &p);
    if (p.column >= 0 && shape_count(source) > 0) {
        select_and_scatter_rows(L, &p);
        return;
    }
    to[0]->rewritten = true;
    nest(L, s->rank, plan_dims(L, x, ROLE_COPY, s->rank, s->dims), major_order(L, s), fill_body, &p);
    if (shape_count(source) > 0)
        nest(L, source->rank, plan_dims(L, x, ROLE_UPDATE, source->rank, source->dims), NULL, pick_source, &p);
}
