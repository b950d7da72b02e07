/* fusion - join elementwise, movement and reduction instructions into kernels.
 *
 *   %b = f32[8,16] broadcast(%bias), dimensions={1}
 *   %s = f32[8,16] add(%x, %b)                              =>   ROOT %t = f32[8,16] fusion(%x, %bias), kind=kLoop
 *   ROOT %t = f32[8,16] tanh(%s)
 *
 * A group is one kernel: a root whose value is stored, and producers computed where they are used. A group asks a producer for
 * elements through contexts, one for each index map on the way from the root:
 *
 *   root ----same index----> add ----same index----> negate        negate and add have the context of the root
 *          \---transpose---> negate                                and negate one more
 *
 * Two transposes of the same kind ask for the same elements, and so do the indices of gathers that are put together for each element: the code computes
 * these once.
 *
 * A context counts the elements asked for. What a broadcast to the inner dimensions asks for is asked once a row, since the code
 * moves out of the inner loops what does not depend on them; so a row's sum can be computed inside the kernel that needs it in
 * every element:
 *
 *   root [rows, columns] <--- broadcast <--- divide [rows] <--- reduce [rows] <--- [rows, columns], a loop within the row
 *
 * Where a reduction down columns is wanted in the columns again (analysis/columns.h), a column takes the place of a row.
 *
 * Walking from users to producers, a producer is fused into all its users when every user is
 * in a group and what is computed twice costs less than storing it:
 *   movement and constants             always
 *   what several loops of one row of   always, for rows that fit the first caches: the code keeps the row (emit/lower_rows.c),
 *   one group need                     so each element is computed once
 *   reduce over the inner dimensions   when no more elements are asked for than it has, in one context, a row or an element of the root at a time, unless rows are so
 *                                      few and long that most of a device's units would have nothing to do
 *   exp, divide, ... (dear)            when no more elements are asked for than it has, or the device computes them again in less time than it takes to
 *                                      begin a kernel; of a device with many units, in half the time of storing and reading
 *   add, select, ... (cheap)           likewise, or when reading its operands again takes no longer than to write it and to read that: what is made of
 *                                      indices alone (a mask that compares two) reads none
 * Times are those of the device (analysis/device.h).
 * Groups have one root at first, so fusing never makes a cycle; further results join only where nothing outside stands between (fusion_join.c). A
 * producer that no group has swallowed whole stays, except that groups look through a stored broadcast to its smaller operand.
 *
 * A group may have a hero: a dot, a convolution, a reduce-window or a reduction of columns whose elements lead to one element of the root each.
 * The code computes the rest where the hero's element is finished (emit/lower_epilogue.c):
 *
 *   root <---same index--- add <---transpose--- dot                =>   fusion, kind=kOutput
 *
 * What ends such a chain is rather stored than computed again by several groups, since the dot would have to be stored else.
 *
 * A dynamic-update-slice is the root of a group, never inside of one; it asks for its update and its indices; what it updates stays outside, to be
 * written in place. A reduce-window that is a root asks for each element once for every window that covers it.
 *
 * A gather of single elements asks for one element of each row that its loops go over: the sums of rows that it needs (cross-entropy picks one
 * logarithm of a softmax a row) are made once a row, too.
 *
 * Two dots with the rows of a softmax between them become one kernel in the end (fusion_attention.c).
 *
 * Of the operands of a contraction one kind is fused, see is_vector_product.
 *
 * A transpose whose layout leaves every element where it was is a bitcast where it is only handed on: JAX writes the gradients of weights so.
 *
 * Not fused: what has effects or control edges, sorting, scatter, other operands of contractions; a reshape that is stored is a view of its
 * operand and costs nothing, so it does not take producers either. */
#include "config.h"

#include <string.h>

#include "analysis/columns.h"
#include "analysis/cost.h"
#include "passes/fusion.h"
#include "passes/util.h"

/* ---- what an instruction can be ---- */

static bool static_array(const Inst *i)
{
    return shape_is_array(i->shape) && !shape_is_dynamic(i->shape) && shape_count(i->shape) > 0;
}

double fusion_count(const Inst *i)
{
    const Shape *s = shape_is_tuple(i->shape) && i->shape->n_elems ? i->shape->elems[0] : i->shape;
    return shape_is_array(s) ? (double)shape_count(s) : 0;
}

static bool is_scalar_constant(const Inst *i)
{
    return i->op == OP_CONSTANT && shape_is_scalar(i->shape) && !i->literal->elided;
}

static bool plain_pad(const Inst *i)
{
    const Padding *p = inst_attr(i, ATTR_PADDING)->value.padding;
    for (int32_t k = 0; k < p->n; k++)
        if (p->v[k].lo < 0 || p->v[k].hi < 0 || p->v[k].interior)
            return false;
    return true;
}

static Role move_role(const Inst *i)
{
    const Inst *o = inst_operand(i, 0);
    switch (i->op) {
    case OP_RESHAPE:
        return !i->shape->layout && !o->shape->layout ? ROLE_VIEW : ROLE_MOVE;
    case OP_BROADCAST:
        return is_scalar_constant(o) ? ROLE_LEAF : ROLE_MOVE;
    case OP_BITCAST_CONVERT:
        return shape_same_dims(i->shape, o->shape) ? ROLE_ELEMENTWISE : ROLE_NONE;
    case OP_COPY:
        return ROLE_ELEMENTWISE;
    case OP_TRANSPOSE:
    case OP_REVERSE:
    case OP_SLICE:
    case OP_DYNAMIC_SLICE:
    case OP_GATHER:
        return ROLE_MOVE;
    case OP_PAD:
        return plain_pad(i) ? ROLE_MOVE : ROLE_NONE;
    case OP_CONCATENATE:
        return i->n_operands <= MAX_CONCAT ? ROLE_MOVE : ROLE_NONE;
    default:
        return ROLE_NONE;
    }
}

static Role role_of(const Inst *i)
{
    if (!inst_is_free(i))
        return ROLE_NONE;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (!static_array(inst_operand(i, k)))
            return ROLE_NONE;
    if (i->op == OP_REDUCE)
        return fusion_count(i) > 0 ? ROLE_REDUCE : ROLE_NONE;
    if (i->op == OP_REDUCE_WINDOW)
        return i->n_operands == 2 && static_array(i) ? ROLE_WINDOW : ROLE_NONE;
    if (i->op == OP_DYNAMIC_UPDATE_SLICE)
        return static_array(i) ? ROLE_UPDATE : ROLE_NONE;
    if (!static_array(i))
        return ROLE_NONE;
    if (i->op == OP_DOT || i->op == OP_CONVOLUTION)
        return i->n_operands == 2 && !inst_attr(i, ATTR_SPARSITY_CONFIG) ? ROLE_CONTRACT : ROLE_NONE;
    if (i->op == OP_IOTA || is_scalar_constant(i))
        return ROLE_LEAF;
    if (op_has(i->op, F_ELEMENTWISE))
        return ROLE_ELEMENTWISE;
    return op_has(i->op, F_MOVES) ? move_role(i) : ROLE_NONE;
}

/* ---- deciding ---- */

static double window_elements(const Inst *u)
{
    const Window *w = inst_window(u);
    double        n = 1;
    for (int32_t k = 0; k < w->n; k++)
        n *= (double)w->v[k].size;
    return n;
}

/* Elements of a gather that have one index, when they lie together in its result: then the index is computed once for all of them. */
static double slice_elements(const Inst *u)
{
    Ints   offset = inst_ints(u, ATTR_OFFSET_DIMS);
    double n = 1;
    for (int32_t k = 0; k < offset.n; k++) {
        if (offset.v[k] != u->shape->rank - offset.n + k)
            return 1;
        n *= (double)u->shape->dims[offset.v[k]];
    }
    return n;
}

static bool gathers_single(const Inst *u)
{
    Ints size = inst_ints(u, ATTR_SLICE_SIZES);
    for (int32_t k = 0; k < size.n; k++)
        if (size.v[k] != 1)
            return false;
    return true;
}

/* A vector times a matrix whose rows lie together along the sum, which is a routine's work no more than a sum of rows is: each element of the matrix is needed
 * once, so it may as well be converted there as be stored before.
 *
 *   c = f32[8,4] convert(w);  d = f32[1,8] dot(x, c), rhs_contracting_dims={1}      =>      d = fusion(x, w), kind=kOutput */
static bool is_vector_product(const Inst *u, int32_t k)
{
    const Shape *matrix = inst_operand(u, k)->shape;
    Ints         over = inst_ints(u, k ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS);
    return u->op == OP_DOT && over.n == 1 && !inst_ints(u, ATTR_LHS_BATCH_DIMS).n && matrix->rank == 2 && over.v[0] == 1 && !matrix->layout &&
           shape_count(u->shape) == matrix->dims[0] && u->shape->type == matrix->type && matrix->type == TYPE_F32;
}

/* The side of dot u that is a matrix in a narrower type, converted for it alone; -1: neither. */
static int32_t converted_side(const Inst *u)
{
    for (int32_t k = 0; k < 2 && u->op == OP_DOT; k++) {
        const Inst *c = inst_operand(u, k);
        if (c->op == OP_CONVERT && c->n_uses == 1 && type_bytes(inst_operand(c, 0)->shape->type) < type_bytes(c->shape->type) && is_vector_product(u, k))
            return k;
    }
    return -1;
}

/* The elements of operand k that u needs when `count` of its own are asked for. */
static double asked_of_operand(const Inst *u, int32_t k, double count)
{
    if (u->op == OP_REDUCE_WINDOW)
        return count * window_elements(u);
    if (u->op == OP_DYNAMIC_UPDATE_SLICE)
        return fusion_count(inst_operand(u, k));
    if (u->op == OP_GATHER && k == 1)
        return count * inst_ints(u, ATTR_START_INDEX_MAP).n / slice_elements(u);
    if (u->op == OP_REDUCE || u->op == OP_CONCATENATE || u->op == OP_DOT || (u->op == OP_PAD && k == 0))
        return count * fusion_count(inst_operand(u, k)) / fusion_count(u);
    return count;
}

/* Where the operand's dimensions come first in the order in which the loops of columns go: all those over columns, or the outer ones. */
static bool spreads_columns(const Inst *columns, const Inst *u)
{
    enum { MOST_RANK = 32 };
    Ints dims = inst_ints(u, ATTR_DIMENSIONS);
    bool reduced[MOST_RANK], left_out = false;
    if (u->shape->rank > MOST_RANK || !columns_are_of(columns, u->shape, reduced))
        return false;
    for (int32_t k = 0, d = 0; d < u->shape->rank; d++) {
        bool has = k < dims.n && dims.v[k] == d;
        k += has;
        if (u->shape->dims[d] == 1)
            continue;
        if (has && (reduced[d] || left_out))
            return false;
        left_out |= !has && !reduced[d];
    }
    return true;
}

/* A broadcast whose operand has its leading dimensions, sizes of 1 aside. */
static bool spreads_leading(const Inst *u)
{
    const Shape *to = u->shape;
    Ints         dims = inst_ints(u, ATTR_DIMENSIONS);
    int64_t      last = -1;
    for (int32_t k = 0; k < dims.n; k++)
        if (to->dims[dims.v[k]] != 1) {
            for (int64_t d = last + 1; d < dims.v[k]; d++)
                if (to->dims[d] != 1)
                    return false;
            if (dims.v[k] <= last)
                return false;
            last = dims.v[k];
        }
    return true;
}

static bool spreads_rows(const Inst *u, const Group *g)
{
    return g->columns && fusion_count(u) > fusion_count(g->columns) ? spreads_columns(g->columns, u) : spreads_leading(u);
}

/* A reshape that only adds or drops sizes of 1. */
static bool keeps_sizes(const Shape *a, const Shape *b)
{
    int32_t i = 0, j = 0;
    for (;;) {
        while (i < a->rank && a->dims[i] == 1)
            i++;
        while (j < b->rank && b->dims[j] == 1)
            j++;
        if (i == a->rank || j == b->rank)
            return i == a->rank && j == b->rank;
        if (a->dims[i++] != b->dims[j++])
            return false;
    }
}

/* The reduced dimensions are the inner ones: each result is a loop over what lies together. */
static bool reduces_inner(const Inst *u)
{
    const Shape *in = inst_operand(u, 0)->shape;
    Ints         dims = inst_ints(u, ATTR_DIMENSIONS);
    bool         inner = false;
    for (int32_t k = 0; k < in->rank; k++) {
        if (in->dims[k] == 1)
            continue;
        if (inner && !ints_has(dims, k))
            return false;
        inner |= ints_has(dims, k);
    }
    return inner && !in->layout;
}

static bool reduces_rows(const Inst *u, const Group *g)
{
    return g->columns ? columns_same(g->columns, u) : reduces_inner(u);
}

/* The context in which a group asks for one element in each of the first `count` iterations: the same one for everybody. */
static Context *row_context(Fuser *f, Group *g, double count)
{
    for (Context *c = g->rows; c; c = c->next)
        if (c->count == count)
            return c;
    Context *c = ARENA_NEW(f->scratch, Context);
    *c = (Context){.group = g, .count = count, .nested = true, .common = count, .next = g->rows};
    g->rows = c;
    return c;
}

/* Likewise the other way round: x is the one that everybody has from now on, unless they have one. */
static Context *known_row_context(Context *x)
{
    Group *g = x->group;
    for (Context *c = g->rows; c; c = c->next)
        if (c->count == x->count)
            return c;
    x->next = g->rows;
    g->rows = x;
    return x;
}

/* Dimension sizes that multiply to n are the last of s. */
static bool ends_with(const Shape *s, int64_t n)
{
    int64_t product = 1;
    for (int32_t d = s->rank; d-- > 0 && product < n;)
        product *= s->dims[d];
    return product == n;
}

/* Each element goes to one place. What lies together along the fastest dimension stays together in pieces of some size, so that the code that
 * writes it needs no division in its inner loop. */
static bool moves_whole(const Inst *u)
{
    enum { LEAST = 4, MOST = 96 };
    if (u->op == OP_TRANSPOSE)
        return true;
    const Shape *from = u->op == OP_RESHAPE ? inst_operand(u, 0)->shape : NULL, *to = u->shape;
    if (!from || from->rank == 0 || to->rank == 0)
        return false;
    int64_t many = from->dims[from->rank - 1], few = to->dims[to->rank - 1];
    if (many <= few)
        return ends_with(from, few);
    return few >= LEAST && few <= MOST && ends_with(to, many);
}

/* The loops of a reduction that is its group's root, or of the first one to a scalar, are around everything that it asks for. */
static bool has_outer_loops(const Inst *u, const Context *c)
{
    Group *g = c->group;
    if (fusion_is_result(u, g) && !fusion_is_row_result(u, g))
        return true;
    if (c->count == 1 && !g->outer)
        g->outer = u;
    return u == g->outer;
}

/* Gathers are loops that compilers make of vectors where they read the index, not where they compute it as well. So it is stored where many have the same (lgamma, which
 * looks up eleven coefficients of a polynomial, takes 5.9 us, and 11.0 with the places made in its loops), and on one unit where there are enough elements that
 * another kernel is nothing beside them (an image warped by an affine map 107 us, and 180). */
static bool stores_index(const Fuser *f, const Inst *u)
{
    enum { MOST_GATHERS = 4, MOST_ELEMENTS = 4096 };
    return inst_operand(u, 1)->n_uses > MOST_GATHERS || (f->cx->device->units <= 1 && fusion_count(u) > MOST_ELEMENTS);
}

/* Both ask for operand k at one and the same index wherever they are asked. */
static bool moves_alike(const Fuser *f, const Inst *u, const Inst *v, int32_t k)
{
    if (u->op != v->op || !shape_same_dims(u->shape, v->shape) || !shape_same_dims(inst_operand(u, k)->shape, inst_operand(v, k)->shape) ||
        !inst_attrs_equal(u, v))
        return false;
    switch (u->op) {
    case OP_BROADCAST: case OP_TRANSPOSE: case OP_RESHAPE: case OP_REVERSE: case OP_SLICE:
        return true;
    case OP_GATHER:
        return k == 1 ? !stores_index(f, u) : inst_operand(u, 1) == inst_operand(v, 1);
    default:
        return false;
    }
}

static Context *known_move(const Fuser *f, const Context *c, const Inst *u, int32_t k)
{
    enum { MOST = 16 };
    const Move *m = c->moves;
    for (int32_t n = 0; m && n < MOST; n++, m = m->next)
        if (m->operand == k && moves_alike(f, m->of, u, k))
            return m->to;
    return NULL;
}

/* Each element of the result has an index of its own, or several side by side. */
static bool has_index_each(const Fuser *f, const Inst *u)
{
    return u->op == OP_GATHER && !stores_index(f, u) && inst_ints(u, ATTR_OFFSET_DIMS).n == 0 && inst_int(u, ATTR_INDEX_VECTOR_DIM, 0) >= inst_operand(u, 1)->shape->rank - 1;
}

/* Where u, asked in context c, asks for operand k at the place of an element of c's; NULL: it does not. What lies side by side as the indices of a
 * gather is asked for at the places of its elements:
 *
 *   s = s32[n,2] concatenate(reshape(i), reshape(j)), dimensions={1};  g = f32[n] gather(x, s)      g at n needs i at n and j at n */
static Context *context_of_index(const Fuser *f, const Inst *u, int32_t k, Context *c)
{
    const Shape *o = inst_operand(u, k)->shape;
    if (u->op == OP_CONCATENATE && inst_ints(u, ATTR_DIMENSIONS).v[0] == o->rank - 1 && o->dims[o->rank - 1] == 1)
        return c->stacked;
    return k == 1 && has_index_each(f, u) && inst_ints(u, ATTR_START_INDEX_MAP).n == 1 ? c : NULL;
}

/* How u, asked in context c, asks for operand k at another index. */
static Context *new_context_through(Fuser *f, const Inst *u, int32_t k, Context *c)
{
    if (u->op == OP_REDUCE) {
        Context *shared = fusion_shared_context(f, u, c);
        if (shared)
            return shared;
    }
    const Inst *o = inst_operand(u, k);
    double      count = asked_of_operand(u, k, c->count);
    bool        rows = c->nested && u->op == OP_BROADCAST && spreads_rows(u, c->group) && c->count == fusion_count(u);
    if (rows && fusion_count(o) <= c->common)
        return row_context(f, c->group, fusion_count(o));
    bool loose = c->loose && u->op == OP_BROADCAST && spreads_rows(u, c->group);
    if (loose && c->count <= c->common)
        return row_context(f, c->group, c->count);
    Context *x = ARENA_NEW(f->scratch, Context);
    *x = (Context){.group = c->group, .count = rows ? fusion_count(o) : count, .nested = rows || loose, .common = c->common};
    x->whole = c->whole && moves_whole(u);
    x->windows = c->windows || u->op == OP_REDUCE_WINDOW;
    if (c->nested && u->op == OP_GATHER && k == 0)
        x->nested = x->loose = gathers_single(u);
    if (k == 1 && has_index_each(f, u))
        x->stacked = c;
    if (c->nested && u->op == OP_REDUCE) {
        bool outer = has_outer_loops(u, c);
        x->nested = reduces_rows(u, c->group);
        x->common = outer ? x->count : c->count < c->common ? c->count : c->common;
        if (x->nested && outer && u == c->group->outer)
            x = known_row_context(x);
    }
    if (u->op == OP_REDUCE)
        fusion_share_context(u, c, x);
    return x;
}

static Context *context_through(Fuser *f, const Inst *u, int32_t k, Context *c)
{
    Context *x = context_of_index(f, u, k, c);
    if (!x)
        x = known_move(f, c, u, k);
    if (x)
        return x;
    x = new_context_through(f, u, k, c);
    Move *m = ARENA_NEW(f->scratch, Move);
    *m = (Move){.of = u, .operand = k, .to = x, .next = c->moves};
    c->moves = m;
    return x;
}

bool fusion_takes_operand(const Inst *u, int32_t k)
{
    const Node *n = node(u);
    if (n->role == ROLE_CONTRACT)
        return n->n_contexts == 1 && n->contexts[0]->group->vector && k == converted_side(u);
    if (n->role == ROLE_NONE || (n->role == ROLE_VIEW && !n->fused))
        return false;
    if (u->op == OP_REDUCE || u->op == OP_REDUCE_WINDOW)
        return k < u->n_operands / 2;
    if (u->op == OP_DYNAMIC_UPDATE_SLICE)
        return k > 0;
    return true;
}

/* Numbers that follow from the index: to compute them again costs no more than to read them. */
static bool made_of_indices(const Inst *i)
{
    enum { MOST = 16 };
    const Inst *list[MOST] = {i};
    int32_t     n = 1;
    for (int32_t at = 0; at < n; at++) {
        const Inst *x = list[at];
        bool        free = x->op == OP_BROADCAST || (node(x)->role == ROLE_VIEW && keeps_sizes(x->shape, inst_operand(x, 0)->shape));
        if (inst_is_dear(x) || (node(x)->role != ROLE_ELEMENTWISE && !free))
            return false;
        for (int32_t k = 0; k < list[at]->n_operands; k++) {
            if (node(inst_operand(list[at], k))->role == ROLE_LEAF)
                continue;
            if (n == MOST)
                return false;
            list[n++] = inst_operand(list[at], k);
        }
    }
    return true;
}

/* What is made of indices is computed wherever it is needed, so there may be many: a mask is in the attention of each layer. */
static bool add_context(Fuser *f, const Inst *i, Context *c)
{
    Node *n = node(i);
    for (int32_t k = 0; k < n->n_contexts; k++)
        if (n->contexts[k] == c)
            return true;
    if (n->n_contexts == n->max_contexts) {
        if (n->max_contexts == MAX_INDEX_CONTEXTS || !made_of_indices(i))
            return false;
        Context **more = ARENA_ARRAY(f->scratch, Context *, MAX_INDEX_CONTEXTS);
        memcpy(more, n->contexts, (size_t)n->n_contexts * sizeof *more);
        n->contexts = more;
        n->max_contexts = MAX_INDEX_CONTEXTS;
    }
    n->contexts[n->n_contexts++] = c;
    return true;
}

bool fusion_add_contexts(Fuser *f, const Inst *u, int32_t k)
{
    const Node  *v = node(u);
    const Shape *from = inst_operand(u, k)->shape;
    bool same =
        v->role == ROLE_ELEMENTWISE ? shape_same_dims(u->shape, from) : u->op == OP_RESHAPE && keeps_sizes(u->shape, from);
    for (int32_t j = 0; j < v->n_contexts; j++) {
        Context *c = v->contexts[j];
        if (!add_context(f, inst_operand(u, k), same ? c : context_through(f, u, k, c)))
            return false;
    }
    return true;
}

static bool collect_contexts(Fuser *f, const Inst *i)
{
    for (const Use *u = i->uses; u; u = u->next)
        if (!fusion_takes_operand(u->user, u->index) || !fusion_add_contexts(f, u->user, u->index))
            return false;
    return i->n_uses > 0;
}

bool fusion_is_wanted(const Node *n, const Group *g)
{
    for (int32_t k = 0; k < n->n_wanting; k++)
        if (n->wanting[k] == g)
            return true;
    return false;
}

int32_t fusion_new_operands(const Inst *i, const Group *g)
{
    int32_t count = 0;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Node *o = node(inst_operand(i, k));
        count += o->role != ROLE_LEAF && !fusion_is_wanted(o, g);
    }
    return count;
}

static bool has_room(const Fuser *f, const Inst *i)
{
    const Node *n = node(i);
    for (int32_t k = 0; k < n->n_contexts; k++) {
        const Group *g = n->contexts[k]->group;
        if (g->size + 1 > f->max_size || g->operands - 1 + fusion_new_operands(i, g) > MAX_OPERANDS)
            return false;
    }
    return true;
}

void fusion_take_in(Group *g, const Inst *i)
{
    g->size++;
    g->reduces |= i->op == OP_REDUCE || i->op == OP_REDUCE_WINDOW;
    for (int32_t k = 0; k < i->n_operands; k++) {
        Node *o = node(inst_operand(i, k));
        if (o->role == ROLE_LEAF || fusion_is_wanted(o, g))
            continue;
        g->operands++;
        if (o->n_wanting < MAX_CONTEXTS)
            o->wanting[o->n_wanting++] = g;
    }
}

/* Bytes that computing i reads. A broadcast will be fused, so its operand counts. */
static double bytes_read(const Inst *i)
{
    double sum = 0;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        if (o->op == OP_BROADCAST)
            o = inst_operand(o, 0);
        sum += fusion_count(o) * type_bytes(o->shape->type);
    }
    return sum;
}

/* The largest of several values is subtracted before exp. When a value is computed twice, once contracted to a fused multiply-add
 * and once not, the difference could be positive; a maximum therefore reads what is stored. */
static bool feeds_maximum(const Inst *i)
{
    for (const Use *u = i->uses; u; u = u->next) {
        const Inst *v = u->user;
        Op          op = v->op == OP_REDUCE ? comp_binary_op(inst_callee(v, 0)) : OP_ADD;
        if ((op != OP_ADD && op != OP_MULTIPLY) || (v->op != OP_REDUCE && node(v)->fused && node(v)->chosen))
            return true;
    }
    return false;
}

static bool one_row_at_a_time(const Inst *i)
{
    const Node *n = node(i);
    return i->n_operands == 2 && n->n_contexts == 1 && n->contexts[0]->nested && n->contexts[0]->count == fusion_count(i) &&
           reduces_rows(i, n->contexts[0]->group);
}

/* Rows that the loops of one group go through one by one, each all of its elements of i. 0: i is asked for in another way. */
static double rows_of(const Inst *i)
{
    const Node *n = node(i);
    double      rows = fusion_count(i);
    for (int32_t k = 0; k < n->n_contexts; k++) {
        const Context *c = n->contexts[k];
        if (c->group != n->contexts[0]->group || !c->nested || c->count != fusion_count(i))
            return 0;
        rows = c->common < rows ? c->common : rows;
    }
    return rows;
}

/* Columns are kept some side by side; those of the root's type where its own will be, but for the first ones. */
static bool columns_fit(const Group *g, const Inst *i, double bytes)
{
    bool    there = i->shape->type == g->root->shape->type && fusion_count(i) == fusion_count(g->root) && g->kept == 0;
    int64_t together = columns_together(g->columns);
    double  side = there ? LEAST_COLUMNS : (double)(together < COLUMNS_WIDE ? together : COLUMNS_WIDE);
    return bytes * side * (there ? 1 : g->kept + 1) <= COLUMN_BYTES_LOCAL;
}

/* Several loops of one group, within the same row, need i, each every element once. */
static bool wanted_in_one_row(const Fuser *f, const Inst *i)
{
    const Node *n = node(i);
    double      rows = rows_of(i);
    if (n->n_contexts < 2 || n->role != ROLE_ELEMENTWISE || n->contexts[0]->group->kept == MAX_KEPT)
        return false;
    const Device *v = f->cx->device;
    double        most = v->row < KEPT_ROW_BYTES ? v->row : KEPT_ROW_BYTES, bytes = fusion_count(i) / rows * type_bytes(i->shape->type);
    if (n->contexts[0]->group->columns)
        return rows >= 1 && columns_fit(n->contexts[0]->group, i, bytes);
    if (v->shared > 0 && bytes * (n->contexts[0]->group->kept + 1) > v->shared - SHARED_BESIDE)
        return false;
    return rows >= 1 && bytes <= most && bytes * (n->contexts[0]->group->kept + 1) <= KEPT_ROW_BYTES;
}

/* Its producers are asked by the one loop that makes the row. */
static void keep_row(Fuser *f, Inst *i)
{
    Node    *n = node(i);
    double   rows = n->contexts[0]->common;
    Context *c = ARENA_NEW(f->scratch, Context);
    for (int32_t k = 1; k < n->n_contexts; k++)
        rows = n->contexts[k]->common < rows ? n->contexts[k]->common : rows;
    *c = (Context){.group = n->contexts[0]->group, .count = fusion_count(i), .nested = true, .common = rows};
    c->group->kept++;
    n->contexts[0] = c;
    n->n_contexts = 1;
}

static double elements_asked(const Inst *i)
{
    double sum = 0;
    for (int32_t k = 0; k < node(i)->n_contexts; k++)
        sum += node(i)->contexts[k]->count;
    return sum;
}

/* The last of what is made of a contraction's elements alone: to store it costs no more than to store the contraction. */
static bool ends_contraction(const Inst *i)
{
    enum { MOST = 24 };
    const Inst *chain[MOST] = {i};
    for (int32_t at = 0, n = 1; at < n; at++)
        for (int32_t k = 0; k < chain[at]->n_operands; k++) {
            const Inst *o = inst_operand(chain[at], k);
            Role        r = node(o)->role;
            if (o->n_uses != 1 || (r != ROLE_ELEMENTWISE && r != ROLE_CONTRACT && !moves_whole(o)))
                continue;
            if (r == ROLE_CONTRACT)
                return true;
            if (n < MOST)
                chain[n++] = o;
        }
    return false;
}

/* The value is the same wherever it is computed from the same operands: nothing is rounded, so nothing can be contracted. */
static bool is_exact(const Inst *i)
{
    switch (i->op) {
    case OP_ABS: case OP_AND: case OP_BITCAST_CONVERT: case OP_CLAMP: case OP_COMPARE: case OP_CONVERT: case OP_COPY: case OP_MAXIMUM: case OP_MINIMUM:
    case OP_NEGATE: case OP_NOT: case OP_OR: case OP_REDUCE_PRECISION: case OP_SELECT: case OP_SIGN: case OP_XOR:
        return !type_is_complex(i->shape->type);
    default:
        return node(i)->role == ROLE_MOVE || node(i)->role == ROLE_VIEW;
    }
}

/* What is computed with i each time, from it on to what is asked for once. */
static int32_t chain_of(const Inst *i)
{
    int32_t longest = 0;
    for (const Use *u = i->uses; u; u = u->next)
        longest = node(u->user)->chain > longest ? node(u->user)->chain : longest;
    return longest + 1;
}

static double larger_bytes(const Inst *i)
{
    double own = fusion_count(i) * type_bytes(i->shape->type), read = bytes_read(i);
    return read > own ? read : own;
}

/* Units that work on i at once in each of the loops that ask for it: those of rows have a row each. */
static double units_at(const Device *v, const Inst *i)
{
    const Node *n = node(i);
    double      least = v->units;
    for (int32_t k = 0; k < n->n_contexts && v->units > 1; k++) {
        const Context *c = n->contexts[k];
        double         rows = c->nested ? c->common : 1;
        least = rows < least ? rows : least;
    }
    return least > 1 ? least : 1;
}

/* ns to compute i's elements `again` times more, where they are asked for, which goes on while operands are read. */
static double again_ns(const Device *v, const Inst *i, double again)
{
    double each = inst_is_dear(i) ? v->dear : chain_of(i), rows = rows_of(i) > 1 ? rows_of(i) : 1; /* a row is read again soon */
    double reads = device_bytes_ns(v, again * bytes_read(i), larger_bytes(i) / rows), computes = device_unit_ns(v, again * fusion_count(i) * each) / units_at(v, i);
    return reads > computes ? reads : computes;
}

/* ns to store them instead and to read them as often, beside what a kernel more costs. */
static double stored_ns(const Device *v, const Inst *i, double again)
{
    return device_bytes_ns(v, (2 + again) * fusion_count(i) * type_bytes(i->shape->type), larger_bytes(i));
}

bool fusion_pays_beside(const Fuser *f, const Inst *i, int32_t loops)
{
    const Device *v = f->cx->device;
    if (inst_is_dear(i) || (node(i)->chosen && !is_exact(i)) || ends_contraction(i))
        return false;
    return again_ns(v, i, loops) <= v->launch + stored_ns(v, i, loops - 1);
}

/* Rows that are fewer than units, and long: their sums are better made in pieces by all units, and read by another kernel. */
bool fusion_starves(const Fuser *f, const Inst *i)
{
    enum { SHARES = 3 /* of the memory's rate that one unit alone can have */ };
    const Device *v = f->cx->device;
    const Inst   *x = inst_operand(i, 0);
    double        bytes = fusion_count(x) * type_bytes(x->shape->type), rows = fusion_count(i), waits = v->units / (SHARES * rows);
    return node(i)->role == ROLE_REDUCE && rows >= 1 && device_bytes_ns(v, bytes, bytes) * (waits - 2) > 2 * v->launch;
}

static bool pays(const Fuser *f, const Inst *i)
{
    enum { DEAR_AGAIN = 2 };
    const Node   *n = node(i);
    const Device *v = f->cx->device;
    double        own = fusion_count(i), asked = elements_asked(i), again = asked / own - 1;
    if (n->role == ROLE_REDUCE)
        return one_row_at_a_time(i) && !fusion_starves(f, i);
    if (asked <= own)
        return true;
    if (n->role == ROLE_ELEMENTWISE && ends_contraction(i))
        return false;
    if (!inst_is_dear(i) && (n->role == ROLE_MOVE || n->role == ROLE_VIEW || own == 1 || made_of_indices(i)))
        return true; /* scalars are computed before the loop */
    if (n->chosen && !is_exact(i))
        return false;
    double ns = again_ns(v, i, again);
    if (again > 2 && n->contexts[0]->windows)
        return ns <= v->launch;
    if (inst_is_dear(i)) /* what units do while others wait for memory costs little, but who knows how dear it is */
        return ns <= v->launch || (v->units > 1 && DEAR_AGAIN * ns <= stored_ns(v, i, again));
    return ns <= v->launch + stored_ns(v, i, again);
}

static void enter_groups(Inst *i)
{
    Node *n = node(i);
    n->fused = true;
    n->chain = elements_asked(i) > fusion_count(i) && n->role == ROLE_ELEMENTWISE ? chain_of(i) : 0;
    for (int32_t k = 0; k < n->n_contexts; k++) {
        Group *g = n->contexts[k]->group;
        bool   again = false;
        for (int32_t j = 0; j < k && !again; j++)
            again = n->contexts[j]->group == g;
        if (!again) {
            g->operands--;
            fusion_take_in(g, i);
        }
    }
}

/* A reduction behind root that goes down columns, and whose values root, or what it is made of, wants in the columns again; NULL, also when rows of as much come first. */
static const Inst *columns_behind(Fuser *f, const Inst *root)
{
    enum { MOST = 100 };
    int32_t number = ++f->searches;
    VEC(const Inst *) list = {0};
    vec_push(f->scratch, &list, root);
    for (int32_t at = 0; at < list.n && list.n <= MOST; at++) {
        const Inst *i = list.v[at];
        Role        role = node(i)->role;
        if (role == ROLE_REDUCE && fusion_count(inst_operand(i, 0)) >= fusion_count(root) && reduces_inner(i))
            return NULL;
        for (int32_t k = 0; role != ROLE_NONE && role != ROLE_CONTRACT && role != ROLE_WINDOW && k < i->n_operands; k++) {
            const Inst *o = inst_operand(i, k);
            if (node(o)->searched != number)
                vec_push(f->scratch, &list, o);
            node(o)->searched = number;
        }
    }
    for (int32_t at = 0; at < list.n; at++) {
        const Inst *r = list.v[at];
        bool        fits = node(r)->role == ROLE_REDUCE && reduces_columns(r) && (columns_are_of(r, root->shape, NULL) || columns_number(r, root->shape));
        for (int32_t k = 0; k < list.n && fits; k++)
            if (columns_repeat(r, list.v[k]) && columns_make(r, inst_operand(list.v[k], 0)))
                return r;
    }
    return NULL;
}

static void start_group(Fuser *f, Inst *i)
{
    Node    *n = node(i);
    Group   *g = ARENA_NEW(f->scratch, Group);
    Context *c = ARENA_NEW(f->scratch, Context);
    g->root = i;
    fusion_take_in(g, i);
    if (f->cx->device->shared == 0 && shape_is_array(i->shape))
        g->columns = columns_behind(f, i);
    bool row_major = shape_is_array(i->shape) && (!i->shape->layout || g->columns);
    *c = (Context){.group = g, .count = fusion_count(i), .nested = row_major, .common = fusion_count(i), .whole = true};
    g->rows = c;
    n->contexts[0] = c; /* instead of what was collected for a fused one */
    n->n_contexts = 1;
    g->all = c;
    vec_push(f->scratch, &f->groups, g);
    if (n->role == ROLE_REDUCE)
        vec_push(f->scratch, &f->reductions, g);
}

/* ---- what a kernel ends with ---- */

/* A contraction, a pooling or a reduction of columns whose elements the group wants one by one: the rest is computed where they are finished.
 * One such loop nest is in a group, and no reduction beside it but those that its loops make as well. */
static bool may_be_hero(Fuser *f, const Inst *i)
{
    const Node *n = node(i);
    if (n->role != ROLE_CONTRACT && n->role != ROLE_WINDOW && n->role != ROLE_REDUCE)
        return false;
    const Context *c = n->n_contexts == 1 ? n->contexts[0] : NULL;
    if (!c || !c->whole || !shape_is_array(i->shape))
        return false;
    const Group *g = c->group;
    return g->hero ? fusion_go_together(f, i, g->hero) : !g->reduces;
}

/* ---- remarks ---- */

/* The user that reads i from memory, NULL when all could take it in. */
static const Inst *reader_of(const Inst *i)
{
    for (const Use *u = i->uses; u; u = u->next)
        if (!fusion_takes_operand(u->user, u->index))
            return u->user;
    return NULL;
}

static void tell_stored(Fuser *f, const Inst *i, bool asked, bool room)
{
    if (!f->cx->remarks || i == i->comp->root || !i->n_uses)
        return;
    const Device *v = f->cx->device;
    const Inst *reader = reader_of(i);
    double      bytes = fusion_count(i) * type_bytes(i->shape->type);
    if (reader)
        pass_remark(f->cx, i, "%%%s is stored: %s %%%s reads it from memory", i->name, op_name(reader->op), reader->name);
    else if (!asked)
        pass_remark(f->cx, i, "%%%s is stored: it is asked for at more than %d kinds of indices", i->name, node(i)->max_contexts);
    else if (!room)
        pass_remark(f->cx, i, "%%%s is stored: a kernel would have more than %lld instructions or %d operands", i->name, (long long)f->max_size,
                    MAX_OPERANDS);
    else if (node(i)->role == ROLE_CONTRACT || node(i)->role == ROLE_WINDOW)
        pass_remark(f->cx, i, "%%%s is stored: not one kernel alone wants its elements, each for one of its own", i->name);
    else {
        double again = elements_asked(i) / fusion_count(i) - 1;
        pass_remark(f->cx, i, "%%%s is stored: it has %.0f elements (%.0f bytes), %d kernels or loops would compute %.0f%s; %s: again %.0f ns, stored %.0f ns, a kernel %.0f ns",
                    i->name, fusion_count(i), bytes, node(i)->n_contexts, elements_asked(i), inst_is_dear(i) ? ", which are dear" : "", v->name,
                    again_ns(v, i, again), stored_ns(v, i, again), v->launch);
    }
}

/* With the names of before the fusion took them over. */
static void tell_built(Fuser *f, const Group *g, const char *name, const char *hero)
{
    pass_remark(f->cx, g->root, "the kernel of %%%s: instructions %d, operands %d, results %d%s%s", name, g->size, g->operands, g->n_more + 1,
                hero ? "; it goes on with the elements of %" : "", hero ? hero : "");
}

static void decide(Fuser *f, Inst *i)
{
    Node *n = node(i);
    if (n->role == ROLE_NONE || n->role == ROLE_LEAF)
        return;
    n->chosen = feeds_maximum(i);
    bool asked = i != i->comp->root && n->role != ROLE_UPDATE && collect_contexts(f, i), room = asked && has_room(f, i);
    if (room) {
        bool inside = n->role != ROLE_WINDOW && n->role != ROLE_CONTRACT;
        bool keeps = inside && (inst_is_dear(i) || n->chosen) && wanted_in_one_row(f, i);
        if (!keeps && !(inside && pays(f, i)) && may_be_hero(f, i)) {
            n->contexts[0]->group->hero = i;
            enter_groups(i);
            return;
        }
        if (keeps || (inside && pays(f, i))) {
            enter_groups(i);
            if (keeps)
                keep_row(f, i);
            return;
        }
    }
    tell_stored(f, i, asked, room);
    if (n->role == ROLE_CONTRACT && converted_side(i) >= 0) {
        start_group(f, i);
        n->contexts[0]->group->vector = true;
        n->contexts[0]->group->hero = i;
    } else if (n->role == ROLE_VIEW || n->role == ROLE_CONTRACT)
        n->n_contexts = 0;
    else if (!fusion_join(f, i))
        start_group(f, i);
}

/* Every element of the transpose is where it was in its operand, and nobody but a tuple or a caller has the result: another name for the operand's memory. */
static bool only_renames(Arena *scratch, const Inst *t)
{
    const Inst *x = t->op == OP_TRANSPOSE ? inst_operand(t, 0) : NULL;
    if (!x || !static_array(t) || !inst_is_free(t))
        return false;
    for (const Use *u = t->uses; u; u = u->next)
        if (u->user->op != OP_TUPLE)
            return false;
    Ints     perm = inst_ints(t, ATTR_DIMENSIONS);
    int64_t *from = ARENA_ARRAY(scratch, int64_t, perm.n), *to = ARENA_ARRAY(scratch, int64_t, perm.n);
    shape_strides(x->shape, from);
    shape_strides(t->shape, to);
    for (int32_t k = 0; k < perm.n; k++)
        if (t->shape->dims[k] != 1 && to[k] != from[perm.v[k]])
            return false;
    return true;
}

static void rename_transposes(Comp *c, PassCtx *cx)
{
    for (Inst *i = c->first, *next; i; i = next) {
        next = i->next;
        if (cx->rewrites >= cx->limit || !only_renames(cx->scratch, i))
            continue;
        Inst *x = inst_operand(i, 0), *b = inst_new(c, i, OP_BITCAST, i->shape, 1, &x, NULL);
        b->meta = i->meta;
        b->loc = i->loc;
        cx->did_at = i->name;
        cx->rewrites++;
        inst_replace(i, b);
        inst_delete(i);
    }
}

static int64_t fuse_comp(Comp *c, PassCtx *cx, int64_t max_size, int64_t most)
{
    Fuser   f = {.scratch = cx->scratch, .cx = cx, .max_size = max_size};
    int32_t order = 0;
    for (Inst *i = c->first; i; i = i->next) {
        Node *n = ARENA_NEW(f.scratch, Node);
        n->role = role_of(i);
        n->order = order++;
        n->contexts = n->own;
        n->max_contexts = MAX_CONTEXTS;
        i->aux = n;
    }
    for (Inst *i = c->last; i; i = i->prev)
        decide(&f, i);
    fusion_attention(&f, c);
    if (!c->module->is_scheduled)
        fusion_bundle(&f);
    int64_t built = 0;
    bool    several = false;
    for (int32_t k = f.groups.n; k-- > 0 && built < most;) {
        const Group *g = f.groups.v[k];
        if (!g->root)
            continue;
        const char  *name = g->root->name, *hero = g->hero ? g->hero->name : NULL;
        if (!fusion_build(&f, g, k + 1))
            continue;
        cx->did_at = name;
        tell_built(&f, g, name, hero);
        built++;
        several |= g->n_more > 0;
    }
    if (several)
        fusion_restore_order(&f, c);
    if (built)
        comp_sweep_dead(c, c->n_insts);
    return built;
}

bool pass_fusion(Module *m, PassCtx *cx)
{
    int64_t max_size = pass_arg_int(cx, "max", MAX_SIZE);
    comps_mark_uses(m);
    for (Comp *c = m->last; c; c = c->prev)
        if (c->mark == COMP_FLOW) {
            rename_transposes(c, cx);
            cx->rewrites += fuse_comp(c, cx, max_size, cx->limit - cx->rewrites);
        }
    return cx->rewrites > 0;
}
