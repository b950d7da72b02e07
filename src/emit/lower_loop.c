/* A while that does the same for each element (element_loop.h): blocks of neighbours go through all trips before the next ones.
 *
 *     for (b = 0; b < N / 64; b++) {
 *         float h[64];
 *         for (j = 0; j < 64; j++)  h[j] = h0[b * 64 + j];
 *         for (t = 0; t < T; t++)
 *             for (j = 0; j < 64; j++)  h[j] = a * h[j] + x[t * N + b * 64 + j];
 *         for (j = 0; j < 64; j++)  out[b * 64 + j] = h[j];
 *     }
 *
 * Compilers make vectors of the loops over j and keep h in registers from trip to trip (gcc 12 and clang 14: 65536 elements, 1000 trips of x * a + y: 4.6 and 1.1 ms). Where trips read or write
 * rows of their own, blocks are longer, so that memory is gone through in longer pieces. Threads of a device have one element each. */
#include "emit/element_loop.h"
#include "emit/lower.h"

#include <string.h>

enum { BLOCK = 64, LONG_BLOCK = 1024, STATE_BYTES = 8192, HALF_BLOCK = 256, HALF_BYTES = 512 };

/* A leaf between trips: a scalar, or an element of each lane. */
typedef struct State {
    KTemp  *scalar;
    KArray *lanes;
} State;

typedef struct Looping {
    const Inst    *w, *param;
    ElementLoop    e;
    KArray *const *to; /* of each leaf; NULL: it is not wanted */
    State         *state;
    Map            memory, memo; /* of the body, while the rest is lowered, and the other way round */
    const Comp    *body;
} Looping;

/* Between what is around the loop and what is in it. */
static void cross(Lower *L, Looping *o)
{
    Map         memory = L->memory, memo = L->memo;
    const Comp *body = L->body;
    L->memory = o->memory;
    L->memo = o->memo;
    L->body = o->body;
    o->memory = memory;
    o->memo = memo;
    o->body = body;
}

static const Shape *leaf_shape(const Looping *o, int32_t k)
{
    return o->w->shape->elems[k];
}

static int32_t leaf_count(const Looping *o)
{
    return o->w->shape->n_elems;
}

static const char *name_of(const Looping *o, int32_t k)
{
    return o->e.leaf[k].read ? o->e.leaf[k].read->name : o->w->name;
}

static LeafKind kind_of(const Looping *o, int32_t k)
{
    return o->e.leaf[k].kind;
}

/* The leaf as the loop begins. */
static const KExpr *start_at(Lower *L, const Looping *o, int32_t k, const Ix *const *index)
{
    int32_t     leaf = k;
    const Inst *from = resolve(L, inst_operand(o->w, 0), &leaf);
    return value_at(L, from, leaf, index);
}

/* ---- scalars that all elements have in common ---- */

static void begin_alike(Lower *L, Looping *o)
{
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ALIKE)
            o->state[k].scalar = accumulator(L, start_at(L, o, k, NULL), machine_type(leaf_shape(o, k)->type), name_of(o, k));
}

static const KExpr *counted(Lower *L, Type type, int64_t init, int64_t step, const IxAtom *t)
{
    const Ix *x = ix_plus(&L->ix, ix_times(&L->ix, ix_of(&L->ix, t), step), init);
    return scalar_convert(L->arena, TYPE_S64, type, kx_index(L->arena, x));
}

/* In trip t. */
static void know_alike(Lower *L, Looping *o, const IxAtom *t)
{
    for (int32_t k = 0; k < o->e.numbers.n; k++) {
        const LoopNumber *n = &o->e.numbers.v[k];
        known_value(L, n->x, 0, NULL, counted(L, n->x->shape->type, n->init, n->step, t));
    }
    for (int32_t k = 0; k < leaf_count(o); k++) {
        const LoopLeaf *leaf = &o->e.leaf[k];
        if (leaf->kind == LEAF_ALIKE)
            known_value(L, o->param, k, NULL, frozen(L, current(L, o->state[k].scalar), name_of(o, k)));
        if (leaf->kind == LEAF_COUNT)
            known_value(L, o->param, k, NULL, counted(L, leaf_shape(o, k)->type, leaf->init, leaf->step, t));
    }
}

static const KExpr **next_alike(Lower *L, const Looping *o)
{
    const KExpr **next = ARENA_ARRAY(L->arena, const KExpr *, leaf_count(o));
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ALIKE)
            next[k] = frozen(L, value_at(L, o->e.leaf[k].value, 0, NULL), "next");
    return next;
}

static void assign_alike(Lower *L, const Looping *o, const KExpr *const *next)
{
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ALIKE)
            assign(L, o->state[k].scalar, next[k]);
}

/* Those that are results, by trips of their own. */
static void leave_alike(Lower *L, Looping *o)
{
    bool wanted = false;
    for (int32_t k = 0; k < leaf_count(o); k++)
        wanted |= kind_of(o, k) == LEAF_ALIKE && o->to[k];
    if (!wanted)
        return;
    block_open(L);
    begin_alike(L, o);
    const IxAtom *t = loop_open(L, 0, o->e.trips, NULL, 1);
    cross(L, o);
    know_alike(L, o, t);
    assign_alike(L, o, next_alike(L, o));
    cross(L, o);
    block_close(L);
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ALIKE && o->to[k])
            store_at(L, o->to[k], NULL, current(L, o->state[k].scalar));
    block_close(L);
}

/* ---- elements ---- */

/* The index of the same element in an array of those dimensions but for sizes of 1. */
static const Ix **index_in(Lower *L, const Looping *o, const Shape *s, const Ix *const *index)
{
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, s->rank);
    int32_t   *where = ARENA_ARRAY(L->arena, int32_t, s->rank);
    shape_unit_dims(s, o->e.shape, where);
    for (int32_t d = 0; d < s->rank; d++)
        at[d] = where[d] < 0 ? ix_const(&L->ix, 0) : index[where[d]];
    return at;
}

/* One trip of the element at index, in lane j. */
static void trip(Lower *L, const Looping *o, const Ix *const *index, const Ix *j)
{
    const KExpr **next = ARENA_ARRAY(L->arena, const KExpr *, leaf_count(o));
    for (int32_t k = 0; k < leaf_count(o); k++) {
        const State *s = &o->state[k];
        if (kind_of(o, k) == LEAF_ELEMENTS)
            known_value(L, o->param, k, index, frozen(L, s->lanes ? load_current(L, s->lanes, j) : current(L, s->scalar), name_of(o, k)));
    }
    for (int32_t k = 0; k < leaf_count(o); k++) {
        const Inst *x = o->e.leaf[k].value;
        if (kind_of(o, k) == LEAF_ELEMENTS)
            next[k] = frozen(L, value_at(L, x, 0, index), "next");
        if (kind_of(o, k) == LEAF_ROWS && o->to[k])
            next[k] = value_at(L, inst_operand(x, 1), 0, index_in(L, o, inst_operand(x, 1)->shape, index));
    }
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ROWS && o->to[k]) {
            const Inst *x = o->e.leaf[k].value;
            const Ix  **at = index_in(L, o, inst_operand(x, 1)->shape, index), **start = update_starts(L, x);
            for (int32_t d = 0; d < x->shape->rank; d++)
                at[d] = ix_add(&L->ix, at[d], start[d]);
            store_at(L, o->to[k], at, next[k]);
        }
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ELEMENTS && o->state[k].lanes)
            store(L, o->state[k].lanes, j, next[k]);
        else if (kind_of(o, k) == LEAF_ELEMENTS)
            assign(L, o->state[k].scalar, next[k]);
}

/* All trips; width 0: of the one element at index. */
static void trips(Lower *L, Looping *o, const Ix *const *index, int64_t width)
{
    const int32_t line = element_loop_line(o->e.shape);
    const Ix    **at = ARENA_ARRAY(L->arena, const Ix *, o->e.shape->rank), *j = NULL;
    const IxAtom *t = loop_open(L, 0, o->e.trips, NULL, 1);
    L->cur->from->in_turn = width > 0;
    memcpy(at, index, (size_t)o->e.shape->rank * sizeof *at);
    cross(L, o);
    know_alike(L, o, t);
    const KExpr **next = next_alike(L, o);
    if (width > 0) {
        j = ix_of(&L->ix, loop_open(L, 0, width, NULL, 1));
        at[line] = ix_add(&L->ix, index[line], j);
    }
    trip(L, o, at, j);
    if (width > 0)
        block_close(L);
    assign_alike(L, o, next);
    cross(L, o);
    block_close(L);
}

/* The lanes of a block from index on, from where its elements are to where they are wanted. */
static void block(Lower *L, Looping *o, const Ix *const *index, int64_t width)
{
    const int32_t line = element_loop_line(o->e.shape);
    const Ix    **at = ARENA_ARRAY(L->arena, const Ix *, o->e.shape->rank), *j;
    memcpy(at, index, (size_t)o->e.shape->rank * sizeof *at);
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ELEMENTS)
            o->state[k].lanes = local_array(L, leaf_shape(o, k)->type, width, name_of(o, k));
    begin_alike(L, o);
    j = ix_of(&L->ix, loop_open(L, 0, width, NULL, 1));
    at[line] = ix_add(&L->ix, index[line], j);
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ELEMENTS)
            store(L, o->state[k].lanes, j, start_at(L, o, k, at));
    block_close(L);
    trips(L, o, index, width);
    j = ix_of(&L->ix, loop_open(L, 0, width, NULL, 1));
    at[line] = ix_add(&L->ix, index[line], j);
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ELEMENTS && o->to[k])
            store_at(L, o->to[k], at, load_current(L, o->state[k].lanes, j));
    block_close(L);
}

static void element(Lower *L, Looping *o, const Ix *const *index)
{
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ELEMENTS)
            o->state[k].scalar = accumulator(L, start_at(L, o, k, index), machine_type(leaf_shape(o, k)->type), name_of(o, k));
    begin_alike(L, o);
    trips(L, o, index, 0);
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ELEMENTS && o->to[k])
            store_at(L, o->to[k], index, current(L, o->state[k].scalar));
}

/* Elements that go through trips together. What takes long in each is begun for many before the first is done; so is what is rounded to f16 between operations, as long as registers
 * hold the state (65536 elements, 1000 trips of x * a + y: with 64 of them 3.1 ms where the processor computes with f16 and 20 where it does not, with 256 0.82 and 9.5). */
static int64_t block_width(const Looping *o)
{
    int64_t bytes = 0;
    bool    longer = o->e.rows || o->e.dear, half = false;
    for (int32_t k = 0; k < leaf_count(o); k++)
        if (kind_of(o, k) == LEAF_ELEMENTS) {
            bytes += type_bytes(leaf_shape(o, k)->type);
            half |= leaf_shape(o, k)->type == TYPE_F16;
        }
    const int64_t most = longer ? STATE_BYTES : HALF_BYTES;
    int64_t       width = longer ? LONG_BLOCK : half ? HALF_BLOCK : BLOCK;
    while (width > BLOCK && width * bytes > most)
        width /= 2;
    return width;
}

static void line_body(Lower *L, Looping *o, const Ix **index, int64_t length)
{
    const int32_t line = element_loop_line(o->e.shape);
    const int64_t width = block_width(o);
    if (L->plan->plain) {
        index[line] = ix_of(&L->ix, loop_open(L, 0, length, NULL, 1));
        element(L, o, index);
        block_close(L);
        return;
    }
    if (length >= width) {
        index[line] = ix_times(&L->ix, ix_of(&L->ix, loop_open(L, 0, length / width, NULL, 1)), width);
        block(L, o, index, width);
        block_close(L);
    }
    if (length % width > 0) {
        if (length >= width)
            block_open(L);
        index[line] = ix_const(&L->ix, length / width * width);
        block(L, o, index, length % width);
        if (length >= width)
            block_close(L);
    }
}

void stage_element_loop(Lower *L, const Inst *x, KArray *const *to)
{
    Looping       o = { .w = x, .param = comp_param(while_body(x), 0), .to = to, .memory = map_new(L->arena), .memo = map_new(L->arena), .body = while_body(x) };
    const int32_t n = x->shape->n_elems;
    KArray      **same = ARENA_ARRAY(L->arena, KArray *, n);
    if (!element_loop_find(L->arena, x, &o.e))
        return;
    L->looped = true;
    const Shape  *s = o.e.shape;
    const int32_t line = element_loop_line(s);
    const Ix    **index = ARENA_ARRAY(L->arena, const Ix *, s->rank);
    o.state = ARENA_ARRAY(L->arena, State, n);
    for (int32_t k = 0; k < n; k++) {
        int32_t     leaf = k;
        const Inst *from = resolve(L, inst_operand(x, 0), &leaf);
        same[k] = kind_of(&o, k) == LEAF_SAME ? memory_of(L, from, leaf) : NULL;
    }
    map_put(&o.memory, o.param, same);
    for (int32_t d = 0; d < s->rank; d++)
        index[d] = ix_const(&L->ix, 0);
    if (o.e.flat)
        line_body(L, &o, index, shape_count(s));
    else {
        int32_t opened = 0;
        for (int32_t d = 0; d < line; d++)
            if (s->dims[d] > 1) {
                index[d] = ix_of(&L->ix, loop_open(L, 0, s->dims[d], NULL, 1));
                opened++;
            }
        line_body(L, &o, index, s->dims[line]);
        while (opened-- > 0)
            block_close(L);
    }
    leave_alike(L, &o);
}
