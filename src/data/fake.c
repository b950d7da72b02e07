/* Made-up arguments. Each leaf of each ENTRY parameter is followed forward to what uses it: through tuples, calls, loops, branches,
 * fusions and conversions, and (for what constrains whole arrays of indices) through instructions that only move values. What is met
 * on the way constrains the values:
 *
 *   index of dynamic-slice, dynamic-update-slice    0 .. size - slice
 *   indices of gather, scatter                      0 .. the smallest (size - 1) of the indexed dimensions, ascending when sorted
 *   start of reduce, reduce-window, ...             what the body leaves alone: 0 for add, 1 for multiply
 *   keys of a sort of several operands              distinct
 *   size of set-dimension-size                     0 .. the bound
 *   sizes of ragged-dot's groups                    0 .. the rows
 *   sizes of dynamic-reshape                        the bounds
 *   branch number                                   0 .. branches - 1
 *   integer in a loop's condition                   0 .. 15, so that loops end
 *   integer that becomes a float                    -16 .. 15
 *   operand of log, sqrt, rsqrt, power, divisor     in [0.5, 1.5), so that results are numbers
 *   operand of cholesky, triangular-solve           with a heavy diagonal
 *   operand of dot, convolution over K terms        in [-1, 1) / sqrt(K), so that layers and recurrences do not blow up errors
 *
 * Floats without a constraint are uniform in [-1, 1), integers over their whole type. Another distribution takes the place of this and of the last
 * five rows, but the diagonal stays heavy. Source: reference operations 22. */
#include "config.h"

#include "data/fill.h"

#include <math.h>
#include <string.h>

#include "data/compare.h"

typedef struct Wish {
    bool    bounded, start, positive, distinct, sorted, diagonal, to_float, condition;
    int64_t bound;       /* largest value, when bounded */
    int64_t terms;       /* of the longest dot that it goes into */
    double  start_value;
} Wish;

/* A value on its way: leaf number `leaf` (depth first) of what i gives. moved: its elements are no longer in their places. */
typedef struct Flow {
    const Inst *i;
    int32_t     leaf;
    bool        moved;
} Flow;

typedef struct Walk {
    Arena *arena;
    Map   *starts; /* Shape -> where its elements begin, see element_starts */
    Map    seen;
    VEC(Flow) work;
    Wish   wish;
} Walk;

/* Every instruction gets a number in `mark` before the walk; the key of a flow is made of it. */
static void push(Walk *w, const Inst *i, int32_t leaf, bool moved)
{
    uint64_t key = ((uint64_t)i->mark << 24 | (uint32_t)leaf) << 1 | moved;
    if (map_get_u64(&w->seen, key + 1))
        return;
    map_put_u64(&w->seen, key + 1, w);
    vec_push(w->arena, &w->work, ((Flow){ i, leaf, moved }));
}

static void bound(Walk *w, int64_t max)
{
    if (max < 0)
        max = 0;
    if (!w->wish.bounded || max < w->wish.bound)
        w->wish.bound = max;
    w->wish.bounded = true;
}

/* Where the leaves of each element of a tuple shape begin, and behind the last one where they end. */
static const int32_t *element_starts(Walk *w, const Shape *s)
{
    int32_t *starts = map_get(w->starts, s);
    if (starts)
        return starts;
    starts = ARENA_ARRAY(w->arena, int32_t, s->n_elems + 1);
    for (int32_t e = 0; e < s->n_elems; e++)
        starts[e + 1] = starts[e] + shape_leaf_count(s->elems[e], true);
    map_put(w->starts, s, starts);
    return starts;
}

static void into_param(Walk *w, const Comp *c, int64_t k, int32_t leaf, bool moved)
{
    if (k < c->n_params)
        push(w, comp_param(c, k), leaf, moved);
}

static void at_dynamic_slice(Walk *w, const Inst *i, int32_t operand, int32_t first)
{
    const Shape *x = inst_operand(i, 0)->shape;
    Ints         sizes = inst_ints(i, ATTR_DYNAMIC_SLICE_SIZES);
    const Shape *update = i->op == OP_DYNAMIC_UPDATE_SLICE ? inst_operand(i, 1)->shape : NULL;
    if (operand < first)
        return;
    for (int32_t d = 0; d < x->rank; d++) {
        int64_t size = update ? update->dims[d] : d < sizes.n ? sizes.v[d] : 1;
        bool    single = inst_operand(i, operand)->shape->rank == 0; /* else the old form: one vector of all indices */
        if (!single || d == operand - first)
            bound(w, x->dims[d] - size);
    }
}

static void at_indices(Walk *w, const Inst *i, Ints dims)
{
    const Shape *x = inst_operand(i, 0)->shape;
    for (int32_t k = 0; k < dims.n; k++)
        bound(w, x->dims[dims.v[k]] - 1);
    w->wish.sorted |= inst_bool(i, ATTR_INDICES_ARE_SORTED);
}

static void at_start(Walk *w, const Inst *i, int32_t callee)
{
    Op op = inst_callee(i, callee)->root->op;
    w->wish.start |= op == OP_ADD || op == OP_MULTIPLY;
    w->wish.start_value = op == OP_MULTIPLY ? 1 : 0;
}

static void at_conditional(Walk *w, const Inst *i, int32_t operand, const Flow *f)
{
    if (operand == 0) {
        if (inst_operand(i, 0)->shape->type == TYPE_S32)
            bound(w, i->n_callees - 1);
        return;
    }
    into_param(w, inst_callee(i, operand - 1), 0, f->leaf, f->moved);
}

static bool is_loop_condition(const Comp *c)
{
    const Inst *call = c->aux;
    return call && call->op == OP_WHILE && while_condition(call) == c;
}

/* Positions matter no more once the values have been moved about. */
static bool whole(const Flow *f)
{
    return !f->moved;
}

/* The value is operand number `operand` of i. */
static void at_use(Walk *w, const Inst *i, int32_t operand, const Flow *f)
{
    switch (i->op) {
    case OP_TUPLE: push(w, i, element_starts(w, i->shape)[operand] + f->leaf, f->moved); return;
    case OP_GET_TUPLE_ELEMENT: {
        int64_t index = inst_int(i, ATTR_INDEX, 0);
        const int32_t *starts = element_starts(w, inst_operand(i, 0)->shape);
        if (f->leaf >= starts[index] && f->leaf < starts[index + 1])
            push(w, i, f->leaf - starts[index], f->moved);
        return;
    }
    case OP_CALL: case OP_FUSION: into_param(w, inst_callee(i, 0), operand, f->leaf, f->moved); return;
    case OP_WHILE:
        into_param(w, while_body(i), 0, f->leaf, f->moved);
        into_param(w, while_condition(i), 0, f->leaf, f->moved);
        push(w, i, f->leaf, f->moved);
        return;
    case OP_CONDITIONAL: at_conditional(w, i, operand, f); return;
    case OP_OPT_BARRIER: case OP_DOMAIN: push(w, i, f->leaf, f->moved); return;
    case OP_CONVERT:
        w->wish.to_float |= type_is_float(i->shape->type) || type_is_complex(i->shape->type);
        push(w, i, 0, f->moved);
        return;
    case OP_REDUCE_PRECISION: push(w, i, 0, f->moved); return;
    case OP_COPY: case OP_BITCAST: case OP_RESHAPE: case OP_TRANSPOSE: case OP_SLICE: case OP_REVERSE: case OP_SHUFFLE: case OP_BROADCAST:
    case OP_CONCATENATE: push(w, i, 0, i->op == OP_COPY ? f->moved : true); return;
    case OP_SELECT: case OP_CLAMP: /* out-of-range indices are wrapped or clamped by selects: follow the value */
        if (operand == (i->op == OP_CLAMP ? 1 : 2) || (i->op == OP_SELECT && operand == 1))
            push(w, i, 0, true);
        return;
    case OP_DYNAMIC_SLICE: at_dynamic_slice(w, i, operand, 1); if (operand == 0) push(w, i, 0, true); return;
    case OP_DYNAMIC_UPDATE_SLICE: at_dynamic_slice(w, i, operand, 2); return;
    case OP_GATHER:
        if (operand == 1)
            at_indices(w, i, inst_ints(i, ATTR_START_INDEX_MAP));
        else
            push(w, i, 0, true);
        return;
    case OP_SCATTER:
        if (operand == (i->n_operands - 1) / 2)
            at_indices(w, i, inst_ints(i, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS));
        return;
    case OP_REDUCE: case OP_REDUCE_WINDOW:
        if (whole(f) && operand >= i->n_operands / 2)
            at_start(w, i, 0);
        return;
    case OP_SELECT_AND_SCATTER:
        if (whole(f) && operand == 2)
            at_start(w, i, 1);
        return;
    case OP_SORT: w->wish.distinct |= whole(f) && operand == 0 && (i->n_operands > 1 || inst_bool(i, ATTR_IS_STABLE)); return;
    case OP_SET_DIMENSION_SIZE:
        if (operand == 1)
            bound(w, i->shape->dims[inst_ints(i, ATTR_DIMENSIONS).v[0]]);
        return;
    case OP_DYNAMIC_RESHAPE: /* made-up arrays have their full size */
        if (operand > 0) {
            w->wish.start = true;
            w->wish.start_value = (double)i->shape->dims[operand - 1];
        }
        return;
    case OP_LOG: case OP_LOG_PLUS_ONE: case OP_SQRT: case OP_RSQRT: case OP_CBRT: w->wish.positive = true; return;
    case OP_POWER: w->wish.positive |= operand == 0; return;
    case OP_DIVIDE: case OP_REMAINDER: w->wish.positive |= operand == 1; return;
    case OP_BATCH_NORM_INFERENCE: w->wish.positive |= operand == 4; return;
    case OP_RAGGED_DOT:
        if (operand == 2)
            bound(w, inst_operand(i, 0)->shape->dims[inst_ints(i, ATTR_LHS_RAGGED_DIMS).v[0]]);
        return;
    case OP_DOT: case OP_CONVOLUTION:
        if (inst_terms(i) > w->wish.terms)
            w->wish.terms = inst_terms(i);
        return;
    case OP_CHOLESKY: w->wish.diagonal |= whole(f); return;
    case OP_TRIANGULAR_SOLVE: w->wish.diagonal |= whole(f) && operand == 0; return;
    case OP_COMPARE: w->wish.condition |= is_loop_condition(i->comp); return;
    default: return; /* every other instruction computes something new: nothing is asked of its operands */
    }
}

/* The roots of called computations flow into the results of the calls; a loop's body also into its own parameter. */
static void at_root(Walk *w, const Flow *f)
{
    const Inst *call = f->i->comp->aux;
    if (f->i->comp->root != f->i || !call)
        return;
    if (call->op == OP_WHILE && while_condition(call) == f->i->comp)
        return;
    if (call->op == OP_CALL || call->op == OP_FUSION || call->op == OP_WHILE || call->op == OP_CONDITIONAL)
        push(w, call, f->leaf, f->moved);
}

/* Numbers every instruction, and gives every computation one of the instructions that call it. */
static void prepare(const Module *m)
{
    int64_t n = 0;
    for (Comp *c = m->first; c; c = c->next)
        c->aux = NULL;
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first; i; i = i->next) {
            i->mark = n++;
            for (int32_t k = 0; k < i->n_callees; k++)
                inst_callee(i, k)->aux = i;
        }
}

static Wish follow(Arena *a, Map *starts, const Inst *param, int32_t leaf)
{
    Walk w = { .arena = a, .starts = starts, .seen = map_new(a) };
    push(&w, param, leaf, false);
    while (w.work.n > 0) {
        Flow f = w.work.v[--w.work.n];
        for (const Use *u = f.i->uses; u; u = u->next)
            at_use(&w, u->user, u->index, &f);
        at_root(&w, &f);
    }
    return w.wish;
}

/* Values. */

static int64_t pick(uint64_t seed, int64_t i, int64_t n)
{
    return (int64_t)((fill_hash(seed, (uint64_t)i) >> 32) * (uint64_t)n >> 32);
}

static int64_t type_max(Type t)
{
    int bits = t == TYPE_PRED ? 1 : type_bits(t) - type_is_signed_int(t);
    return bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
}

/* Ascending numbers in 0 .. max with even gaps. */
static void fill_sorted(Literal *l, int64_t max)
{
    for (int64_t i = 0; i < l->count; i++)
        literal_set_s64(l, i, l->count > max ? i / (l->count / (max + 1) + 1) : i);
}

/* The numbers from `first` on, shuffled. */
static void fill_distinct(Literal *l, uint64_t seed)
{
    int64_t first = type_is_signed_int(l->type) ? -(l->count / 2) : 0;
    for (int64_t i = 0; i < l->count; i++)
        literal_set_s64(l, i, first + i);
    for (int64_t i = l->count - 1; i > 0; i--) {
        int64_t k = pick(seed, i, i + 1), v = literal_get_s64(l, i);
        literal_set_s64(l, i, literal_get_s64(l, k));
        literal_set_s64(l, k, v);
    }
}

static void fill_bits(Literal *l, uint64_t seed)
{
    for (int64_t i = 0; i < l->count; i++)
        literal_set_s64(l, i, (int64_t)(fill_hash(seed, (uint64_t)i) >> (l->type == TYPE_PRED ? 63 : 0)));
}

static void fill_integers(Literal *l, uint64_t seed, const Wish *w)
{
    int64_t top = type_max(l->type);
    if (w->bounded && w->sorted)
        fill_sorted(l, w->bound < top ? w->bound : top);
    else if (w->bounded)
        fill_int(l, seed, 0, (w->bound < top ? w->bound : top - 1) + 1);
    else if (w->distinct && l->count / (type_is_signed_int(l->type) ? 2 : 1) < top)
        fill_distinct(l, seed);
    else if (l->type == TYPE_PRED)
        fill_bits(l, seed);
    else if (w->condition)
        fill_int(l, seed, 0, top < 15 ? top : 16);
    else if (w->positive)
        fill_int(l, seed, 1, top < 15 ? top + 1 : 16);
    else if (w->to_float && type_is_signed_int(l->type))
        fill_int(l, seed, top < 15 ? -top - 1 : -16, top < 15 ? top + 1 : 16);
    else if (w->to_float)
        fill_int(l, seed, 0, top < 15 ? top + 1 : 16);
    else
        fill_bits(l, seed);
}

/* Adds twice the number of rows to the diagonal of the last two dimensions: more than a row's other values together. */
static void add_diagonal(Literal *l)
{
    int64_t n = l->rank >= 2 ? l->dims[l->rank - 1] : 0;
    if (n == 0 || l->dims[l->rank - 2] != n)
        return;
    for (int64_t i = 0; i < l->count; i += n * n)
        for (int64_t k = 0; k < n; k++) {
            int64_t at = i + k * n + k;
            literal_set_f64(l, at, literal_get_f64(l, at) + 2 * (double)n, 0);
        }
}

static void fill_floats(Literal *l, uint64_t seed, const Wish *w)
{
    if (w->positive)
        fill_uniform(l, seed, 0.5, 1);
    else
        fill_uniform(l, seed, w->terms > 1 ? 1 / sqrt((double)w->terms) : 1, 0);
    if (w->diagonal)
        add_diagonal(l);
}

/* What a leaf must be for the module to have a meaning; NULL: it may be anything. */
static const char *must_be(Arena *a, const Shape *s, const Wish *w)
{
    bool integer = !type_is_float(s->type) && !type_is_complex(s->type);
    return w->start                 ? arena_printf(a, "it must be %g, for what begins with it or is of that size", w->start_value)
           : w->bounded && integer  ? arena_printf(a, "it must be from 0 to %lld, as an index or a size", (long long)w->bound)
           : w->distinct && integer ? "its values must be distinct, as keys of a sort"
           : w->condition && integer ? "it ends a loop"
                                    : NULL;
}

static Literal *fake_leaf(const Shape *s, uint64_t seed, const Wish *w, const Dist *x)
{
    Literal *l = literal_for_shape(s, false);
    if (w->start)
        fill_const(l, w->start_value);
    else if (x->kind != DIST_NONE) {
        dist_fill(l, seed, x);
        if (w->diagonal)
            add_diagonal(l);
    } else if (type_is_float(s->type) || type_is_complex(s->type))
        fill_floats(l, seed, w);
    else
        fill_integers(l, seed, w);
    return l;
}

typedef struct Faker {
    Arena      *scratch;
    Map         starts;
    const Inst *param;
    uint64_t    seed;
    int32_t     leaf, array; /* of the parameter; of all arrays of all parameters */
    const FakeDists *dists;
    Diag       *diag;
} Faker;

/* The distribution for the array at hand: DIST_NONE where the constraints decide. False after reporting. */
static bool dist_for(Faker *f, const Shape *s, const Wish *w, Dist *x)
{
    const Dist *own = f->dists && f->dists->leaves ? &f->dists->leaves[f->array] : NULL;
    const char *must = must_be(f->scratch, s, w), *why = NULL;
    bool        named = own && own->kind != DIST_NONE;
    *x = named ? *own : f->dists ? f->dists->all : (Dist){DIST_NONE, 0, 0};
    if (x->kind != DIST_NONE && !must)
        why = dist_refused(x, s->type);
    if (named && must)
        why = must;
    if (must)
        x->kind = DIST_NONE;
    if (why)
        inst_error(f->diag, f->param, "arg%d (%s) cannot be made up so: %s", f->array, shape_text(f->scratch, s), why);
    return !why;
}

/* The value for shape s, a part of the parameter; NULL after reporting. Depth is that of the shape, which the reader limits. */
static Literal *fake_value(Faker *f, const Shape *s)
{
    if (s->type == TYPE_TOKEN) {
        f->leaf++;
        return literal_token();
    }
    if (!shape_is_tuple(s)) {
        if (!shape_is_array(s) || shape_count(s) < 0) {
            inst_error(f->diag, f->param, "no value can be made up for a parameter of this type");
            return NULL;
        }
        Dist x;
        Wish w = follow(f->scratch, &f->starts, f->param, f->leaf);
        if (!dist_for(f, s, &w, &x))
            return NULL;
        f->array++;
        return fake_leaf(s, fill_hash(f->seed, (uint64_t)f->param->param << 32 | (uint32_t)f->leaf++), &w, &x);
    }
    Literal *t = literal_tuple(s->n_elems, NULL);
    for (int32_t k = 0; k < s->n_elems; k++) {
        t->elems[k] = fake_value(f, s->elems[k]);
        if (!t->elems[k]) {
            literal_unref(t);
            return NULL;
        }
    }
    return t;
}

bool fake_arguments(const Module *m, uint64_t seed, const FakeDists *x, Literal **args, Diag *d)
{
    prepare(m);
    bool    ok = true;
    int32_t arrays = 0;
    for (int32_t k = 0; k < m->entry->n_params; k++) {
        Faker f = { .scratch = arena_new(), .param = comp_param(m->entry, k), .seed = seed, .array = arrays, .dists = x, .diag = d };
        f.starts = map_new(f.scratch);
        args[k] = fake_value(&f, f.param->shape);
        arena_free(f.scratch);
        arrays += shape_leaf_count(f.param->shape, false);
        ok &= args[k] != NULL;
    }
    return ok;
}
