/* What the instructions of a computation can be for fusion, and through which contexts a group asks for them (fusion.c says what a context is). */
#include "config.h"

#include <string.h>

#include "analysis/columns.h"
#include "analysis/cost.h"
#include "passes/fusion.h"
#include "passes/util.h"

/* ---- what an instruction can be ---- */

bool fusion_is_static(const Inst *i)
{
    return shape_is_array(i->shape) && !shape_is_dynamic(i->shape) && shape_count(i->shape) > 0;
}

double fusion_count(const Inst *i)
{
    const Shape *s = shape_is_tuple(i->shape) && i->shape->n_elems ? i->shape->elems[0] : i->shape;
    return shape_is_array(s) ? (double)shape_count(s) : 0;
}

static bool is_number(const Inst *i)
{
    return i->op == OP_CONSTANT && shape_is_array(i->shape) && shape_count(i->shape) == 1 && !i->literal->elided;
}

static Role pad_role(const Inst *i, bool loops)
{
    const Padding *p = inst_attr(i, ATTR_PADDING)->value.padding;
    for (int32_t k = 0; k < p->n; k++)
        if (p->v[k].lo < 0 || p->v[k].hi < 0)
            return ROLE_NONE;
    return loops && fusion_parts(i) ? fusion_role_apart(i) : ROLE_MOVE;
}

/* All parts are whole rows of the result, and slices or made for it alone element by element: each would have a kernel of its own. */
static bool stacks_kernels(const Inst *i)
{
    for (int64_t d = 0; d < inst_ints(i, ATTR_DIMENSIONS).v[0]; d++)
        if (i->shape->dims[d] != 1)
            return false;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        if (o->op == OP_RESHAPE && o->n_uses == 1)
            o = inst_operand(o, 0);
        if (o->op != OP_SLICE && (!op_has(o->op, F_ELEMENTWISE) || o->n_uses != 1))
            return false;
    }
    return true;
}

/* Of many parts loops of a CPU are slower in a kernel than the routine that copies them, threads go over each part by itself anyway. */
static Role concatenate_role(const Inst *i, bool loops)
{
    bool takes = i->n_operands <= MAX_CONCAT || (i->n_operands <= MAX_STACK && (!loops || stacks_kernels(i)));
    return takes ? ROLE_MOVE : ROLE_NONE;
}

static Role move_role(const Inst *i, bool loops)
{
    const Inst *o = inst_operand(i, 0);
    switch (i->op) {
    case OP_RESHAPE:
        return !i->shape->layout && !o->shape->layout ? ROLE_VIEW : ROLE_MOVE;
    case OP_BROADCAST:
        return is_number(o) ? ROLE_LEAF : ROLE_MOVE;
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
        return pad_role(i, loops);
    case OP_CONCATENATE:
        return concatenate_role(i, loops);
    default:
        return ROLE_NONE;
    }
}

Role fusion_role(const Inst *i, bool loops)
{
    if (!inst_is_free(i))
        return ROLE_NONE;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (!fusion_is_static(inst_operand(i, k)))
            return ROLE_NONE;
    if (i->op == OP_REDUCE)
        return fusion_count(i) > 0 ? ROLE_REDUCE : ROLE_NONE;
    if (i->op == OP_REDUCE_WINDOW)
        return i->n_operands == 2 && fusion_is_static(i) ? ROLE_WINDOW : ROLE_NONE;
    if (i->op == OP_DYNAMIC_UPDATE_SLICE)
        return fusion_is_static(i) ? ROLE_UPDATE : ROLE_NONE;
    if (i->op == OP_SCATTER)
        return fusion_role_scatter(i, loops);
    if (!fusion_is_static(i))
        return ROLE_NONE;
    if (i->op == OP_DOT || i->op == OP_CONVOLUTION)
        return i->n_operands == 2 && !inst_attr(i, ATTR_SPARSITY_CONFIG) ? ROLE_CONTRACT : ROLE_NONE;
    if (i->op == OP_IOTA || is_number(i))
        return ROLE_LEAF;
    if (op_has(i->op, F_ELEMENTWISE))
        return ROLE_ELEMENTWISE;
    return op_has(i->op, F_MOVES) ? move_role(i, loops) : ROLE_NONE;
}

/* ---- how it asks for its operands ---- */

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

/* Computed for one user alone, which sees it with the dimensions it has or with others, as groups of a scale. */
static bool is_made_for_one(const Inst *i)
{
    if (node(i)->role == ROLE_VIEW && i->n_uses == 1)
        i = inst_operand(i, 0);
    return node(i)->role == ROLE_ELEMENTWISE && i->n_uses == 1;
}

/* The same for threads, of any type, in whatever order the matrix lies and whatever is computed of its elements, as of weights of 8 bits times a scale. */
static bool needs_each_once(const Inst *u, int32_t k)
{
    const Inst *made = inst_operand(u, k);
    Ints        over = inst_ints(u, k ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS);
    return u->op == OP_DOT && over.n == 1 && !inst_ints(u, ATTR_LHS_BATCH_DIMS).n && made->shape->rank == 2 && is_made_for_one(made) && shape_count(u->shape) > 1 &&
           shape_count(u->shape) == made->shape->dims[1 - over.v[0]];
}

/* The side of dot u that is a matrix which is made for it alone: in a narrower type, converted, or for threads whatever is computed; -1: neither. */
int32_t fusion_made_side(const Fuser *f, const Inst *u)
{
    for (int32_t k = 0; k < 2 && u->op == OP_DOT; k++) {
        const Inst *c = inst_operand(u, k);
        if (f->cx->device->shared > 0 && needs_each_once(u, k))
            return k;
        if (c->op == OP_CONVERT && c->n_uses == 1 && type_bytes(inst_operand(c, 0)->shape->type) < type_bytes(c->shape->type) && is_vector_product(u, k))
            return k;
    }
    return -1;
}

/* The elements of operand k that u needs when `count` of its own are asked for. */
static double asked_of_operand(const Fuser *f, const Inst *u, int32_t k, double count)
{
    if (u->op == OP_REDUCE_WINDOW)
        return count * window_elements(u);
    if (u->op == OP_DYNAMIC_UPDATE_SLICE)
        return fusion_count(inst_operand(u, k));
    if (u->op == OP_SCATTER)
        return fusion_scatter_asks(u, k, f->cx->device->shared == 0);
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

/* The reduced dimensions are the inner ones: each result is a loop over what lies together. */
bool fusion_reduces_inner(const Inst *u)
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

bool fusion_reduces_rows(const Inst *u, const Group *g)
{
    return g->columns ? columns_same(g->columns, u) : fusion_reduces_inner(u);
}

/* The context in which a group asks for one element in each of the first `count` iterations: the same one for everybody. */
static Context *row_context(Fuser *f, Group *g, double count)
{
    for (Context *c = g->rows; c; c = c->next)
        if (c->count == count)
            return c;
    Context *c = ARENA_NEW(f->scratch, Context);
    *c = (Context){.group = g, .count = count, .nested = true, .common = count, .leading = count, .next = g->rows};
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
bool fusion_moves_whole(const Inst *u)
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

/* Where many gathers have one index it is stored (lgamma, which looks up eleven coefficients of a polynomial, takes 5.9 us, and 11.0 with the places made in its loops), and on one
 * unit where there are enough elements that another kernel is nothing beside them: of long computations of places, choices among choices, compilers make branches instead of vectors
 * (an image warped by an affine map 101 us, and 239). */
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

/* The product of dimensions that come first in both, each being a whole one of either or made of such; not more than `most`. */
static double leading_alike(const Shape *a, const Shape *b, double most)
{
    double  alike = 1, of_a = 1, of_b = 1;
    int32_t i = 0, j = 0;
    while (of_a <= most && of_b <= most) {
        if (of_a == of_b)
            alike = of_a;
        if (of_a <= of_b ? i == a->rank : j == b->rank)
            break;
        if (of_a <= of_b)
            of_a *= (double)a->dims[i++];
        else
            of_b *= (double)b->dims[j++];
    }
    return alike;
}

/* Context.leading of operand k of u, which is asked for in c. */
static double leading_through(const Inst *u, int32_t k, const Context *c)
{
    const Shape *o = inst_operand(u, k)->shape, *s = u->op == OP_REDUCE ? o : u->shape;
    if (u->op == OP_RESHAPE)
        return leading_alike(u->shape, o, c->leading);
    if (u->op != OP_REDUCE && u->op != OP_BROADCAST && u->op != OP_TRANSPOSE)
        return 1;
    Ints   dims = inst_ints(u, ATTR_DIMENSIONS);
    double leading = 1;
    for (int32_t d = 0; d < s->rank && leading * (double)s->dims[d] <= c->leading; d++) {
        if (u->op == OP_REDUCE ? ints_has(dims, d) : d >= dims.n || dims.v[d] != d)
            break;
        leading *= (double)s->dims[d];
    }
    return leading;
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
    double      count = asked_of_operand(f, u, k, c->count);
    bool        rows = c->nested && u->op == OP_BROADCAST && spreads_rows(u, c->group) && c->count == fusion_count(u);
    if (rows && fusion_count(o) <= c->common)
        return row_context(f, c->group, fusion_count(o));
    bool loose = c->loose && u->op == OP_BROADCAST && spreads_rows(u, c->group);
    if (loose && c->count <= c->common)
        return row_context(f, c->group, c->count);
    Context *x = ARENA_NEW(f->scratch, Context);
    *x = (Context){.group = c->group, .count = rows ? fusion_count(o) : count, .nested = rows || loose, .common = c->common, .leading = leading_through(u, k, c)};
    x->whole = c->whole && fusion_moves_whole(u);
    x->apart = c->apart || node(u)->role == ROLE_APART;
    x->scattered = c->scattered || u->op == OP_SCATTER;
    x->windows = c->windows || u->op == OP_REDUCE_WINDOW;
    if (c->nested && u->op == OP_GATHER && k == 0)
        x->nested = x->loose = gathers_single(u);
    if (k == 1 && has_index_each(f, u))
        x->stacked = c;
    if (c->nested && u->op == OP_REDUCE) {
        bool outer = has_outer_loops(u, c);
        x->nested = fusion_reduces_rows(u, c->group);
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
        return n->n_contexts == 1 && n->contexts[0]->group->vector && k == n->contexts[0]->group->made;
    if (n->role == ROLE_NONE || ((n->role == ROLE_VIEW || n->role == ROLE_APART) && !n->fused) || (n->reads && k == 0))
        return false;
    if (u->op == OP_REDUCE || u->op == OP_REDUCE_WINDOW)
        return k < u->n_operands / 2;
    if (u->op == OP_SCATTER)
        return k >= u->n_operands / 2;
    if (u->op == OP_DYNAMIC_UPDATE_SLICE)
        return k > 0;
    return true;
}

/* Numbers that follow from the index: to compute them again costs no more than to read them. */
bool fusion_made_of_indices(const Inst *i)
{
    enum { MOST = 16 };
    const Inst *list[MOST] = {i};
    int32_t     n = 1;
    for (int32_t at = 0; at < n; at++) {
        const Inst *x = list[at];
        bool        free = x->op == OP_BROADCAST || (node(x)->role == ROLE_VIEW && shape_unit_dims(x->shape, inst_operand(x, 0)->shape, NULL));
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

/* A part of what is stored anyway, cut out with fixed limits: to read it there costs no more than to read a copy. */
static bool cuts_stored(const Inst *i)
{
    const Inst *x = i->op == OP_SLICE ? inst_operand(i, 0) : NULL;
    return x && node(x)->role == ROLE_NONE;
}

/* What is made of indices is computed wherever it is needed, so there may be many: a mask is in the attention of each layer. Likewise what repeats something smaller,
 * and components of vectors, which products of several ask for. */
static bool add_context(Fuser *f, const Inst *i, Context *c)
{
    Node *n = node(i);
    for (int32_t k = 0; k < n->n_contexts; k++)
        if (n->contexts[k] == c)
            return true;
    if (n->n_contexts == n->max_contexts) {
        if (n->max_contexts == MAX_INDEX_CONTEXTS || (i->op != OP_BROADCAST && !cuts_stored(i) && !fusion_made_of_indices(i)))
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
        v->role == ROLE_ELEMENTWISE ? shape_same_dims(u->shape, from) : u->op == OP_RESHAPE && shape_unit_dims(u->shape, from, NULL);
    for (int32_t j = 0; j < v->n_contexts; j++) {
        Context *c = v->contexts[j];
        if (!add_context(f, inst_operand(u, k), same ? c : context_through(f, u, k, c)))
            return false;
    }
    return true;
}

bool fusion_collect_contexts(Fuser *f, const Inst *i)
{
    for (const Use *u = i->uses; u; u = u->next)
        if (!fusion_takes_operand(u->user, u->index) || !fusion_add_contexts(f, u->user, u->index))
            return false;
    return i->n_uses > 0;
}
