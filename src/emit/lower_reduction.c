/* What a reduction is, its steps, and its blocks:
 *
 * Sums of more than CHAIN numbers one after another are cut into blocks of at most that many, whose sums are added up in f64:
 *
 *   double total[16] = 0;  for b: { float lane[16] = 0;  for r: for l: lane[l] += x[(b*R + r)*16 + l];  for l: total[l] += lane[l]; }
 *
 * Dimensions that are neighbours in memory, of which the fastest one is short, are one loop where nothing depends on each of them alone. */
#include "emit/lower_reduction.h"

#include "analysis/softmax.h"

#include <math.h>

enum { MANY_SHARE = 8192, CHAIN = 256 /* numbers at most that are added one after another in f32 */, LONG_ROW = 1024,
       MOST_STEPS = 64 /* of what is looked through */, LEAST_LANES = 32, SHORT_LANES = 16 /* where there are many of them */, MANY_LANES = 256 /* elements at least of rows that have lanes, whose lanes are several vectors */ };

const Shape *reduction_shape(const Inst *x, int32_t k)
{
    return shape_is_tuple(x->shape) ? x->shape->elems[k] : x->shape;
}

static bool is_sum(const Reduction *r)
{
    return r->n == 1 && r->op == OP_ADD && (type_is_float(reduction_shape(r->x, 0)->type) || type_is_complex(reduction_shape(r->x, 0)->type));
}

/* Compilers make vectors of bytes, and none of _Bool: any of 1000 values 540 and 14 ns. */
static bool is_truth(const Reduction *r)
{
    return !r->plain && r->n == 1 && reduction_shape(r->x, 0)->type == TYPE_PRED && (r->op == OP_OR || r->op == OP_AND);
}

/* The choice of pairs that r makes. Of bytes with numbers of 64 bits compilers make no vectors. */
static Choice choice_made(const Reduction *r)
{
    if (r->plain || r->n != 2)
        return CHOICE_NONE;
    const Comp *c = inst_callee(r->x, 0);
    const Type  value = reduction_shape(r->x, 0)->type, number = reduction_shape(r->x, 1)->type;
    if (!(type_is_float(value) || type_is_int(value)) || !type_is_int(number) || type_bits(number) > 4 * type_bits(machine_type(value)))
        return CHOICE_NONE;
    for (int32_t k = 0; k < 2; k++)
        if (c->params[k]->shape->type != reduction_shape(r->x, k)->type || c->params[2 + k]->shape->type != reduction_shape(r->x, k)->type)
            return CHOICE_NONE;
    return choice_of(c);
}

/* For threads, which share a row: of floats and numbers of any size. */
static Choice choice_for_threads(const Reduction *r)
{
    const Comp *c = inst_callee(r->x, 0);
    if (!r->plain || r->n != 2 || !type_is_float(reduction_shape(r->x, 0)->type) || !type_is_int(reduction_shape(r->x, 1)->type))
        return CHOICE_NONE;
    for (int32_t k = 0; k < 4; k++)
        if (c->params[k]->shape->type != reduction_shape(r->x, k % 2)->type)
            return CHOICE_NONE;
    return choice_of(c);
}

/* One value, or pair, taken of parts in any order. */
bool reduction_can_have_lanes(const Reduction *r)
{
    Type t = reduction_shape(r->x, 0)->type;
    bool op = r->op == OP_ADD || r->op == OP_MULTIPLY || r->op == OP_MAXIMUM || r->op == OP_MINIMUM;
    bool one = r->n == 1 && op && !type_is_complex(t);
    const int64_t row = r->n_reduced > 0 ? r->extents[r->n_reduced - 1] : 0;
    const bool alone = shape_count(reduction_shape(r->x, 0)) == 1 && type_is_float(t); /* nothing else goes on meanwhile */
    return !r->plain && !r->down && !r->beside && (one || r->choice) && (row >= LEAST_LANES || (row >= SHORT_LANES && (r->count >= MANY_LANES || alone)));
}

/* Compilers make lanes of integers by themselves, but not of 16 bits what fills none of them, nor of pairs. */
static bool wants_lanes(const Reduction *r)
{
    const Type t = reduction_shape(r->x, 0)->type;
    const bool words = type_is_int(t) && type_bits(t) == 16 && (r->op == OP_MAXIMUM || r->op == OP_MINIMUM);
    const bool choice = r->choice && r->n_reduced > 0 && r->extents[r->n_reduced - 1] >= LEAST_LANES;
    return reduction_can_have_lanes(r) && (type_is_float(t) || words || choice);
}

/* Extremes of long rows of floats in memory, in a stage of their own: what is computed is not worth computing again. */
bool reduction_wants_sums(const Reduction *r)
{
    return wants_lanes(r) && type_is_float(reduction_shape(r->x, 0)->type) && r->to && r->extents[r->n_reduced - 1] >= LONG_ROW && r->extremes_of_memory;
}

bool reductions_want_lanes(const Reduction *r)
{
    for (; r; r = r->next)
        if (wants_lanes(r))
            return true;
    return false;
}

/* A fusion's loops read as many bytes as x has elements: gcc makes whole vectors of those, or none of the loop (sums of f64 where a mask is set, 200 x 1000 716 and 20 us). */
static bool reads_bytes(const Inst *x)
{
    const Comp *c = x->comp;
    bool        bytes = false;
    for (const Inst *i = c->first; i && x->op == OP_REDUCE; i = i->next)
        bytes |= i->op == OP_PARAMETER && shape_is_array(i->shape) && type_bits(i->shape->type) <= 8 && shape_count(i->shape) >= shape_count(inst_operand(x, 0)->shape);
    return bytes;
}

static bool sums_f64(const Reduction *r)
{
    while (r && reduction_shape(r->x, 0)->type != TYPE_F64)
        r = r->next;
    return r != NULL;
}

/* Eight vectors of 256 bits for all that the loops make of long rows, two for short ones. An extreme that reads a row for what follows needs half: faster loops wait for memory all the
 * same, which brings rows more slowly then (softmax of 2500 rows of 2000 2030 and 1860 us). */
int64_t reductions_lanes(const Reduction *first)
{
    const int64_t row = first->extents[first->n_reduced - 1];
    const bool    single = !first->fills && !(first->next && first->next->next), bytes = single && row >= 64 && sums_f64(first) && reads_bytes(first->x);
    const int64_t lanes = single && row >= (bytes ? 64 : MANY_LANES) ? 64 : 16;
    const bool    wide = !bytes && (reduction_shape(first->x, 0)->type == TYPE_F64 || ((first->next || first->paired) && lanes == 64));
    const bool    more = lanes == 64 && (reduction_wants_sums(first) || (first->shows_nan && first->extremes_of_memory));
    return lanes >> ((wide || first->choice) + more);
}

/* The fastest dimension of the operand when it is kept, else -1. */
int32_t reduction_column(const Reduction *r)
{
    for (int32_t k = 0; k < r->in->rank && !r->plain; k++) {
        int32_t d = (int32_t)layout_dim(r->in, k);
        if (r->in->dims[d] > 1)
            return ints_has(r->dims, d) || r->in->dims[d] < 4 ? -1 : d;
    }
    return -1;
}

/* Sums of floats round once at the end, and those of long chains are carried in f64; everything else in its own type. */
static Type carry_type(const Reduction *r, int32_t k)
{
    Type    t = reduction_shape(r->x, k)->type;
    int64_t chain = wants_lanes(r) && reduction_column(r) < 0 ? r->count / reductions_lanes(r) : r->count;
    if (is_truth(r))
        return TYPE_U8;
    if (!is_sum(r) || type_is_complex(t))
        return t;
    if (r->plain) /* the threads of a warp share a chain, those of a block a long one: rows.h */
        chain = r->count / (r->count > MANY_SHARE ? 256 : 32);
    return t == TYPE_F64 || chain > CHAIN ? TYPE_F64 : TYPE_F32;
}

/* How many of the fastest dimensions x reduces, one after another. */
static int32_t fastest_reduced(const Inst *x)
{
    const Shape *in = inst_operand(x, 0)->shape;
    int32_t      n = 0;
    while (n < in->rank && ints_has(inst_ints(x, ATTR_DIMENSIONS), layout_dim(in, n)))
        n++;
    return n;
}

static bool has_any(Ints dims, const Shape *in, int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        if (ints_has(dims, layout_dim(in, k)))
            return true;
    return false;
}

static bool same_order(const Shape *a, const Shape *b)
{
    bool same = a->rank == b->rank;
    for (int32_t k = 0; same && k < a->rank; k++)
        same = layout_dim(a, k) == layout_dim(b, k);
    return same;
}

/* How many of its operand's fastest dimensions the n fastest ones of the reshape x are, the last of them maybe in part. */
static int32_t before_reshape(const Inst *x, int32_t n)
{
    const Shape *from = inst_operand(x, 0)->shape;
    int64_t      count = 1, before = 1;
    int32_t      m = 0;
    for (int32_t k = 0; k < n; k++)
        count *= x->shape->dims[x->shape->rank - 1 - k];
    for (; m < from->rank && before < count; m++)
        before *= from->dims[from->rank - 1 - m];
    return m;
}

typedef struct Neighbours {
    Map     seen; /* Inst -> SeenAs of what has been looked through and is made of neighbours so far */
    int32_t left; /* steps */
} Neighbours;

typedef struct SeenAs {
    const Shape *in;
    int32_t      n;
} SeenAs;

static bool was_seen(Lower *L, Neighbours *s, const Inst *x, const Shape *in, int32_t n)
{
    SeenAs *as = map_get(&s->seen, x);
    if (as && as->in == in && as->n == n)
        return true;
    as = ARENA_NEW(L->arena, SeenAs);
    *as = (SeenAs){ in, n };
    map_put(&s->seen, x, as);
    return false;
}

/* The slice x takes all of its operand's n - 1 fastest dimensions, and neighbours along the next one. */
static bool slices_outside(const Inst *x, const Shape *in, int32_t n)
{
    const Shape *from = inst_operand(x, 0)->shape;
    bool         outside = same_order(from, in);
    for (int32_t k = 0; k < n && outside; k++) {
        const int64_t d = layout_dim(in, k);
        outside = k < n - 1 ? x->shape->dims[d] == from->dims[d] : x->op == OP_DYNAMIC_SLICE || inst_attr(x, ATTR_SLICE)->value.slices->v[d].stride == 1;
    }
    return outside;
}

/* Elements of x, an array as `in` is, that are neighbours along its n fastest dimensions are made of neighbours, whether those dimensions are one or several. */
static bool is_made_of_neighbours(Lower *L, const Inst *x, const Shape *in, int32_t n, Neighbours *s)
{
    int32_t leaf = 0;
    x = resolve(L, x, &leaf);
    if (memory_of(L, x, leaf))
        return shape_leaf(x->shape, leaf)->rank == 0 || same_order(shape_leaf(x->shape, leaf), in);
    if (!shape_is_array(x->shape) || x->shape->rank == 0)
        return shape_is_array(x->shape);
    if (x->op == OP_BROADCAST)
        return !has_any(inst_ints(x, ATTR_DIMENSIONS), in, n);
    if (x->op == OP_RESHAPE && layout_is_row_major(in) && layout_is_row_major(inst_operand(x, 0)->shape))
        return is_made_of_neighbours(L, inst_operand(x, 0), inst_operand(x, 0)->shape, before_reshape(x, n), s);
    if (was_seen(L, s, x, in, n))
        return true;
    if (x->op == OP_SLICE || x->op == OP_DYNAMIC_SLICE)
        return slices_outside(x, in, n) && is_made_of_neighbours(L, inst_operand(x, 0), inst_operand(x, 0)->shape, n, s);
    bool neighbours = op_has(x->op, F_ELEMENTWISE) && --s->left >= 0;
    for (int32_t k = 0; k < x->n_operands && neighbours; k++)
        neighbours = is_made_of_neighbours(L, inst_operand(x, k), in, n, s);
    return neighbours;
}

bool reduction_neighbours(Lower *L, const Inst *x, int32_t n)
{
    Neighbours s = { .seen = map_new(L->arena), .left = MOST_STEPS };
    return is_made_of_neighbours(L, x, x->shape, n, &s);
}

/* Rows of a few dimensions, of which the fastest one is short, are one long row, if all that the loops make is. The most of them, for x and the n others. */
static int32_t joined_dims(Lower *L, const Inst *x, int32_t n, const Inst *const *others)
{
    int32_t most = INT32_MAX;
    for (int32_t k = -1; k < n; k++) {
        const Inst  *r = k < 0 ? x : others[k];
        const Shape *in = inst_operand(r, 0)->shape;
        bool         joins = r->n_operands == 2 && type_is_float(r->shape->type) && in->rank > 0 && in->dims[layout_dim(in, 0)] < MANY_LANES;
        most = !joins ? 1 : fastest_reduced(r) < most ? fastest_reduced(r) : most;
    }
    for (; most > 1; most--) {
        bool neighbours = true;
        for (int32_t k = -1; k < n && neighbours; k++)
            neighbours = reduction_neighbours(L, inst_operand(k < 0 ? x : others[k], 0), most);
        if (neighbours)
            return most;
    }
    return 1;
}

/* A long row that is not there yet is kept by the loops of the sum, which wait for no addition while they compute it: two vectors of sums are enough. */
static bool fills_row(Lower *L, const Reduction *r)
{
    enum { LEAST_FILLED = 256 };
    const Type t = reduction_shape(r->x, 0)->type;
    return is_sum(r) && (t == TYPE_F32 || t == TYPE_F64) && wants_lanes(r) && reduction_column(r) < 0 && r->extents[r->n_reduced - 1] >= LEAST_FILLED &&
           row_is_to_come(L, inst_operand(r->x, 0), r->dims);
}

Reduction reduction_of(Lower *L, const Inst *x, bool paired, int32_t joined, bool alone)
{
    Reduction r = { .paired = paired, .x = x, .n = x->n_operands / 2, .in = inst_operand(x, 0)->shape, .dims = inst_ints(x, ATTR_DIMENSIONS), .count = 1, .plain = L->plan->plain, .beside = L->beside };
    int32_t  *order = major_order(L, r.in);
    r.reduced = ARENA_ARRAY(L->arena, int32_t, r.in->rank);
    r.extents = ARENA_ARRAY(L->arena, int64_t, r.in->rank);
    for (int32_t k = 0; k < r.in->rank; k++)
        if (ints_has(r.dims, order[k])) {
            r.extents[r.n_reduced] = r.in->dims[order[k]];
            r.count *= r.in->dims[order[k]];
            r.reduced[r.n_reduced++] = order[k];
        }
    r.joined = r.plain ? 1 : joined;
    r.n_reduced -= r.joined - 1;
    for (int32_t k = 1; k < r.joined; k++)
        r.extents[r.n_reduced - 1] *= r.extents[r.n_reduced - 1 + k];
    r.op = apply_operation(inst_callee(x, 0));
    r.down = L->columns && columns_same(L->columns, x);
    r.choice = choice_made(&r);
    r.shows_nan = L->body && !r.plain && x->comp == L->body && inst_shows_nan_anyway(x);
    r.extremes_of_memory = (r.op == OP_MAXIMUM || r.op == OP_MINIMUM) && is_cheap(L, inst_operand(x, 0));
    r.fills = alone && !paired && fills_row(L, &r);
    r.at = ARENA_ARRAY(L->arena, const Ix *, r.in->rank);
    r.acc = ARENA_ARRAY(L->arena, KTemp *, r.n);
    r.carry = ARENA_ARRAY(L->arena, Type, r.n);
    for (int32_t k = 0; k < r.n; k++)
        r.carry[k] = carry_type(&r, k);
    r.base = ARENA_ARRAY(L->arena, const Ix *, r.n_reduced);
    for (int32_t k = 0; k < r.n_reduced; k++)
        r.base[k] = ix_const(&L->ix, 0);
    return r;
}

/* Blocks of it are summed in f32. */
bool reduction_wants_blocks(const Reduction *r)
{
    return is_sum(r) && r->carry[0] == TYPE_F64 && reduction_shape(r->x, 0)->type != TYPE_F64;
}

bool reductions_want_blocks(const Reduction *r)
{
    for (; r; r = r->next)
        if (reduction_wants_blocks(r))
            return true;
    return false;
}

/* The reduction of x and of what its loops make besides. */
Reduction *reductions_of(Lower *L, const Inst *x, int32_t n, const Inst *const *others)
{
    Reduction    *first = ARENA_NEW(L->arena, Reduction);
    const int32_t joined = L->columns && columns_same(L->columns, x) ? 1 : joined_dims(L, x, n, others);
    *first = reduction_of(L, x, false, joined, n == 0);
    for (int32_t k = n; k-- > 0;) {
        Reduction *r = ARENA_NEW(L->arena, Reduction);
        *r = reduction_of(L, others[k], false, joined, false);
        r->next = first->next;
        first->next = r;
    }
    return first;
}

void reduction_set_kept(Reduction *r, const Ix *const *index)
{
    for (int32_t d = 0, k = 0; d < r->in->rank; d++)
        if (!ints_has(r->dims, d))
            r->at[d] = index[k++];
}

const KExpr *reduction_start(Lower *L, const Reduction *r, int32_t k)
{
    const Inst *init = inst_operand(r->x, r->n + k);
    return scalar_convert(L->arena, init->shape->type, r->carry[k], value_at(L, init, 0, NULL));
}

static bool is_plus_zero(const KExpr *x)
{
    if (x->kind == KX_CALL && x->n == 2)
        return kx_is_number(x, 0) && is_plus_zero(x->arg[0]) && is_plus_zero(x->arg[1]);
    return kx_is_number(x, 0) && !(x->kind == KX_FLOAT && signbit(x->f));
}

/* -0 + -0 is -0, which a 0 beside it would make 0. */
const KExpr *reduction_nothing(Lower *L, const Reduction *r, Type t)
{
    if (r->op == OP_MULTIPLY)
        return scalar_one(L->arena, t);
    if (type_is_int(t) || is_plus_zero(reduction_start(L, r, 0)))
        return scalar_zero(L->arena, t);
    const KExpr *zero = kx_float(L->arena, type_is_complex(t) ? type_component(t) : machine_type(t), -0.0);
    return type_is_complex(t) ? kx_call(L->arena, "__builtin_complex", t, 2, (const KExpr *const[]){ zero, zero }) : zero;
}

/* The larger or the smaller one, acc where either is NaN. */
const KExpr *reduction_extreme(Lower *L, const Reduction *r, const KExpr *acc, const KExpr *x)
{
    const char *fn = arena_printf(L->arena, "%s_%s", r->op == OP_MAXIMUM ? "larger" : "smaller", type_name(acc->type));
    return kx_call(L->arena, fn, acc->type, 2, (const KExpr *const[]){ acc, x });
}

/* acc' = body(acc, elements): out open. */
void reduction_combine(Lower *L, const Reduction *r, const KExpr *const *acc, const KExpr *const *x, const KExpr **out)
{
    const KExpr **args = ARENA_ARRAY(L->arena, const KExpr *, 2 * r->n);
    if (is_sum(r)) {
        out[0] = kx_binary(L->arena, KOP_ADD, acc[0]->type, acc[0], x[0]);
        return;
    }
    if (is_truth(r)) {
        out[0] = kx_binary(L->arena, r->op == OP_OR ? KOP_OR : KOP_AND, TYPE_U8, acc[0], x[0]);
        return;
    }
    if (r->shows_nan) {
        out[0] = reduction_extreme(L, r, acc[0], x[0]);
        return;
    }
    for (int32_t k = 0; k < r->n; k++) {
        args[k] = acc[k];
        args[r->n + k] = x[k];
    }
    apply(L, inst_callee(r->x, 0), args, out);
}

/* The elements at an index, those of a sum as sum_type. */
const KExpr **reduction_elements(Lower *L, const Reduction *r, Type sum_type, const Ix *const *at)
{
    const KExpr **x = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    for (int32_t k = 0; k < r->n; k++) {
        const Inst *from = inst_operand(r->x, k);
        Type        t = is_sum(r) ? sum_type : is_truth(r) ? TYPE_U8 : inst_callee(r->x, 0)->params[r->n + k]->shape->type;
        x[k] = scalar_convert(L->arena, from->shape->type, t, keep(L, from, value_at(L, from, 0, at)));
    }
    return x;
}

/* Elements of a choice, with names by which threads give each other theirs. */
static const KExpr *choice_element(Lower *L, const Reduction *r, int32_t k, const KExpr *x, Choice choice)
{
    KTemp *t = accumulator(L, x, machine_type(r->carry[k]), "element");
    t->assigned = false;
    t->element_of = r->acc[k];
    t->minds_nan = k == 0 && choice == CHOICE_OF_NUMBERS;
    return kx_temp(L->arena, t);
}

/* acc' of one of several, at element `at`. */
void reduction_step(Lower *L, const Reduction *r, const Ix *const *at)
{
    const KExpr **acc = ARENA_ARRAY(L->arena, const KExpr *, r->n), **out = ARENA_ARRAY(L->arena, const KExpr *, r->n);
    if (r->part) {
        assign(L, r->part, kx_binary(L->arena, KOP_ADD, TYPE_F32, current(L, r->part), reduction_elements(L, r, TYPE_F32, at)[0]));
        return;
    }
    for (int32_t k = 0; k < r->n; k++)
        acc[k] = current(L, r->acc[k]);
    const Choice  choice = choice_for_threads(r);
    const KExpr **x = reduction_elements(L, r, r->carry[0], at);
    for (int32_t k = 0; k < r->n && choice; k++)
        x[k] = choice_element(L, r, k, x[k], choice);
    reduction_combine(L, r, acc, x, out);
    for (int32_t k = 0; k < r->n && r->n > 1; k++)
        out[k] = bind(L, out[k], "next");
    for (int32_t k = 0; k < r->n; k++)
        assign(L, r->acc[k], out[k]);
}

const Ix **reduction_index(Lower *L, const Reduction *r, const Ix *const *index)
{
    const Ix **at = arena_copy(L->arena, r->at, (size_t)r->in->rank * sizeof *at);
    for (int32_t k = 0; k < r->n_reduced; k++)
        at[r->reduced[k]] = index[k];
    if (r->joined > 1) {
        const int32_t *dims = r->reduced + r->n_reduced - 1;
        const Ix     **digits = ARENA_ARRAY(L->arena, const Ix *, r->joined);
        int64_t       *sizes = ARENA_ARRAY(L->arena, int64_t, r->joined);
        for (int32_t k = 0; k < r->joined; k++)
            sizes[k] = r->in->dims[dims[k]];
        void (*split)(void *, const IxAtom *, int64_t, int64_t) = L->ix.split;
        L->ix.split = NULL; /* they come together again in whatever the elements are made of */
        ix_split(&L->ix, index[r->n_reduced - 1], r->joined, sizes, digits);
        L->ix.split = split;
        for (int32_t k = 0; k < r->joined; k++)
            at[dims[k]] = digits[k];
    }
    return at;
}

/* How many instructions give an element of x from what is in memory; more than `most`: too many. */
static int32_t steps_to(Lower *L, const Inst *x, int32_t most)
{
    int32_t leaf = 0, n = 1;
    x = resolve(L, x, &leaf);
    if (memory_of(L, x, leaf) || x->op == OP_CONSTANT || x->op == OP_IOTA)
        return 0;
    if (x->op == OP_REDUCE || x->op == OP_DOT || x->op == OP_CONVOLUTION || x->op == OP_REDUCE_WINDOW)
        return most + 1;
    for (int32_t k = 0; k < x->n_operands && n <= most; k++)
        n += steps_to(L, inst_operand(x, k), most - n);
    return n;
}

/* Elements of all that the loops make. */
bool reductions_are_cheap(Lower *L, const Reduction *first)
{
    enum { FEW_STEPS = 12 };
    int32_t steps = 0;
    for (const Reduction *r = first; r; r = r->next)
        for (int32_t k = 0; k < r->n && steps <= FEW_STEPS; k++)
            steps += steps_to(L, inst_operand(r->x, k), FEW_STEPS - steps);
    return steps <= FEW_STEPS;
}

/* ---- blocks ---- */

/* The largest divisor of n that is not much less than most, or most with a rest. */
static int64_t block_size(int64_t n, int64_t most)
{
    for (int64_t size = most; size > most / 2; size--)
        if (n % size == 0)
            return size;
    return most;
}

void blocks_cut(Blocks *b)
{
    int64_t rounds = 1, most = b->first->paired ? CHAIN / 2 : CHAIN; /* half the lanes, and blocks of the same size */
    for (int32_t k = b->first->n_reduced; k-- > 0; rounds *= b->extents[k])
        if (b->extents[k] > most / rounds) {
            b->d = k;
            b->size = block_size(b->extents[k], most / rounds);
            return;
        }
}

/* The loops of number `from` and later, size times around that one. */
static void block_loops(Lower *L, Blocks *b, int role, int32_t from, int64_t size)
{
    int32_t  n = b->first->n_reduced - from;
    int64_t *extents = arena_copy(L->arena, b->extents + from, (size_t)n * sizeof *extents);
    extents[0] = size;
    b->role = role;
    b->block(L, b, n, plan_dims(L, b->first->x, role, n, extents));
}

void blocks_set_base(Blocks *b, const Ix *const *before, const Ix *from)
{
    for (int32_t k = 0; k < b->d; k++)
        b->first->base[k] = before[k];
    b->first->base[b->d] = from;
}

static void full_block(Lower *L, void *cookie, const Ix *const *index)
{
    Blocks *b = cookie;
    blocks_set_base(b, index, ix_times(&L->ix, index[b->d], b->size));
    block_loops(L, b, ROLE_BLOCK, b->d, b->size);
}

static void rest_block(Lower *L, void *cookie, const Ix *const *index)
{
    Blocks *b = cookie;
    int64_t n = b->extents[b->d], rest = n % b->size;
    blocks_set_base(b, index, ix_const(&L->ix, n - rest));
    block_loops(L, b, ROLE_REST, b->d, rest);
}

/* Calls b->block for each block, or once for all of it. */
void blocks_each(Lower *L, Blocks *b)
{
    const Inst *x = b->first->x;
    if (b->d < 0) {
        block_loops(L, b, ROLE_REDUCED, 0, b->extents[0]);
        return;
    }
    int64_t *extents = arena_copy(L->arena, b->extents, (size_t)(b->d + 1) * sizeof *extents);
    extents[b->d] /= b->size;
    nest(L, b->d + 1, plan_dims(L, x, ROLE_BLOCKS, b->d + 1, extents), NULL, full_block, b);
    if (b->extents[b->d] % b->size)
        nest(L, b->d, plan_dims(L, x, ROLE_BEFORE_REST, b->d, extents), NULL, rest_block, b);
}

const Ix **blocks_place(Lower *L, const Blocks *b, const Reduction *r, const Ix *const *index, const Ix *lane)
{
    const Reduction *first = b->first;
    const Ix       **all = arena_copy(L->arena, first->base, (size_t)first->n_reduced * sizeof *all);
    int32_t          from = b->d < 0 ? 0 : b->d;
    for (int32_t k = from; k < first->n_reduced; k++)
        all[k] = ix_add(&L->ix, all[k], index[k - from]);
    if (lane)
        all[first->n_reduced - 1] = ix_add(&L->ix, ix_times(&L->ix, all[first->n_reduced - 1], reductions_lanes(first)), lane);
    return reduction_index(L, r->own_row ? r : first, all);
}
