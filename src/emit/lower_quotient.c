/* Floats divided by what stays the same along a loop. Processors divide vectors at a sixth of the rate at which they multiply, so that loops in the caches wait for it; with c's reciprocal r
 * rounded,
 *
 *     q = x * r;   q + (x - q * c) * r
 *
 * by fused multiply-adds is the quotient, rounded once (Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point division when the divisor is known in advance"),
 * as far as nothing overflows and what is left of x is no subnormal. That is known of converted integers and what is made of them by constants: of images in bytes, in general. Of other
 * numbers what is left is computed 2^24 times as large, and where they have no bounds they take q itself where it is not finite. A divisor whose reciprocal might be a subnormal or infinite is made larger or smaller first, and so is the quotient at the end. */
#include "emit/lower.h"
#include "ir/numeric.h"

#include <limits.h>
#include <math.h>

enum { ROLE_DIVISOR = 90, FAR = 20 /* a constant divisor's exponent, at most */ };

/* Every value is a multiple of 2^least, and smaller than 2^most; it may be 0. */
typedef struct Grid {
    int least, most;
} Grid;

static Grid both(Grid a, Grid b)
{
    return (Grid){ a.least < b.least ? a.least : b.least, a.most > b.most ? a.most : b.most };
}

static int digits_of(Type t) { return t == TYPE_F64 ? 53 : 24; }

/* What x is as a constant, in the fusion or in front of it; NULL. */
static const Literal *constant_of(const Lower *L, const Inst *x)
{
    for (int32_t k = 0; L->body && x->op == OP_PARAMETER && k < L->inst->n_operands; k++)
        if (comp_param(L->body, k) == x)
            x = inst_operand(L->inst, k);
    return x->op == OP_CONSTANT && !x->literal->elided ? x->literal : NULL;
}

static bool constant_grid(const Literal *l, Grid *g)
{
    enum { MOST = 64 /* elements */ };
    bool known = l && l->count > 0 && l->count <= MOST;
    for (int64_t i = 0; known && i < l->count; i++) {
        double v = literal_get_f64(l, i);
        Grid   one = v == 0 ? (Grid){ 0, 0 } : (Grid){ ilogb(v) + 1 - digits_of(l->type), ilogb(v) + 1 };
        known = v - v == 0;
        *g = i == 0 ? one : both(*g, one);
    }
    return known;
}

/* The least and the largest exponent of the divisor x's numbers; false: it is no constant, or one of them is not positive, or far from 1. */
static bool divisor_range(const Lower *L, const Inst *x, int *least, int *most)
{
    enum { MOST = 64 /* elements */ };
    int32_t leaf = 0;
    for (x = resolve(L, x, &leaf); x->op == OP_BROADCAST || x->op == OP_RESHAPE; x = resolve(L, inst_operand(x, 0), &leaf))
        ;
    const Literal *l = constant_of(L, x);
    bool           fits = l && l->count > 0 && l->count <= MOST && type_is_float(l->type);
    *least = FAR, *most = -FAR;
    for (int64_t i = 0; fits && i < l->count; i++) {
        double v = literal_get_f64(l, i);
        int    e = v - v == 0 && v > 0 ? ilogb(v) : INT_MAX;
        fits = e > -FAR && e < FAR;
        *least = e < *least ? e : *least;
        *most = e > *most ? e : *most;
    }
    return fits;
}

/* Whether all elements of x lie on a grid, which is then *g. Rounding leaves multiples of 2^k what they are. */
static bool grid_of(const Lower *L, const Inst *x, int depth, Grid *g)
{
    enum { DEEPEST = 8 };
    int32_t leaf = 0;
    Grid    a, b;
    x = resolve(L, x, &leaf);
    if (depth == DEEPEST || !shape_is_array(x->shape) || (x->shape->type != TYPE_F32 && x->shape->type != TYPE_F64))
        return false;
    switch (x->op) {
    case OP_CONSTANT: case OP_PARAMETER: return constant_grid(constant_of(L, x), g);
    case OP_CONVERT: {
        Type t = inst_operand(x, 0)->shape->type;
        *g = (Grid){ 0, type_bits(t) + 1 };
        return type_is_int(t) || t == TYPE_PRED || grid_of(L, inst_operand(x, 0), depth + 1, g);
    }
    case OP_BROADCAST: case OP_RESHAPE: case OP_TRANSPOSE: case OP_REVERSE: case OP_SLICE: case OP_COPY: case OP_NEGATE: case OP_ABS:
        return grid_of(L, inst_operand(x, 0), depth + 1, g);
    case OP_DIVIDE: {
        int least, most;
        if (!divisor_range(L, inst_operand(x, 1), &least, &most) || !grid_of(L, inst_operand(x, 0), depth + 1, &a))
            return false;
        *g = (Grid){ a.least - most - digits_of(x->shape->type), a.most - least };
        return true;
    }
    case OP_ADD: case OP_SUBTRACT: case OP_MULTIPLY: case OP_MAXIMUM: case OP_MINIMUM: case OP_PAD:
        if (!grid_of(L, inst_operand(x, 0), depth + 1, &a) || !grid_of(L, inst_operand(x, 1), depth + 1, &b))
            return false;
        *g = both(a, b);
        if (x->op == OP_ADD || x->op == OP_SUBTRACT)
            g->most++;
        else if (x->op == OP_MULTIPLY)
            *g = (Grid){ a.least + b.least, a.most + b.most };
        return true;
    default: return false;
    }
}

enum { NOT_BELOW = 1, NOT_ABOVE = 2, BOUNDED = NOT_BELOW | NOT_ABOVE };

static int bounds_of_constant(const Literal *l)
{
    enum { MOST = 64 /* elements */, EXPONENT = 64 };
    int bounds = l && l->count > 0 && l->count <= MOST && type_is_float(l->type) ? BOUNDED : 0;
    for (int64_t i = 0; bounds && i < l->count; i++) {
        const double v = literal_get_f64(l, i);
        bounds = v - v == 0 && fabs(v) <= ldexp(1, EXPONENT) ? BOUNDED : 0;
    }
    return bounds;
}

/* On which sides of 0 all elements of x stay far from the largest numbers, if they are no NaN. */
static int bounds_of(const Lower *L, const Inst *x, int depth)
{
    enum { DEEPEST = 8 };
    int32_t leaf = 0;
    x = resolve(L, x, &leaf);
    if (depth == DEEPEST || !shape_is_array(x->shape) || !type_is_float(x->shape->type))
        return 0;
    switch (x->op) {
    case OP_CONSTANT: case OP_PARAMETER: return bounds_of_constant(constant_of(L, x));
    case OP_LOGISTIC: case OP_TANH: case OP_ERF: return BOUNDED;
    case OP_EXPONENTIAL: return NOT_BELOW;
    case OP_BROADCAST: case OP_RESHAPE: case OP_TRANSPOSE: case OP_REVERSE: case OP_SLICE: case OP_COPY: return bounds_of(L, inst_operand(x, 0), depth + 1);
    case OP_ABS: return NOT_BELOW | (bounds_of(L, inst_operand(x, 0), depth + 1) == BOUNDED ? NOT_ABOVE : 0);
    case OP_CLAMP: { /* the upper bound where that is below the lower one */
        const int low = bounds_of(L, inst_operand(x, 0), depth + 1), high = bounds_of(L, inst_operand(x, 2), depth + 1);
        return (low & high & NOT_BELOW) | (high & NOT_ABOVE);
    }
    case OP_MAXIMUM: case OP_MINIMUM: {
        const int a = bounds_of(L, inst_operand(x, 0), depth + 1), b = bounds_of(L, inst_operand(x, 1), depth + 1), either = x->op == OP_MAXIMUM ? NOT_BELOW : NOT_ABOVE;
        return ((a | b) & either) | (a & b & ~either);
    }
    default: return 0;
    }
}

/* Operations of vectors that i is; -1: it calls a function, and gcc 12 makes no vectors of a loop that has a choice and calls one. */
static int operations(const Inst *i)
{
    switch (i->op) {
    case OP_PARAMETER: case OP_CONSTANT: case OP_BROADCAST: case OP_RESHAPE: case OP_BITCAST: case OP_TRANSPOSE: case OP_SLICE: case OP_COPY: case OP_REVERSE: case OP_TUPLE: case OP_DIVIDE:
        return 0;
    case OP_ADD: case OP_SUBTRACT: case OP_MULTIPLY: case OP_NEGATE: case OP_ABS: case OP_SQRT: case OP_FLOOR: case OP_CEIL: case OP_ROUND_NEAREST_EVEN: case OP_COMPARE: case OP_SELECT:
    case OP_AND: case OP_OR: case OP_NOT: case OP_REDUCE:
        return 1;
    case OP_IOTA: case OP_CONVERT: return 2;
    case OP_MAXIMUM: case OP_MINIMUM: return 3;
    case OP_CLAMP: return 6;
    default: return -1;
    }
}

/* Elements of the largest array. */
static int64_t most_elements(const Lower *L)
{
    int64_t most = 0;
    for (int32_t k = 0; k < L->k->n_operands + L->k->n_results; k++)
        most = L->arrays.v[k]->count > most ? L->arrays.v[k]->count : most;
    return most;
}

/* Not once a row: alone a division takes no longer. */
static bool is_in_vectors(const Lower *L, const Inst *x)
{
    enum { LEAST = 64 /* elements */, ROW = 4 };
    return shape_is_array(x->shape) && shape_count(x->shape) >= LEAST && shape_count(x->shape) > most_elements(L) / ROW;
}

/* Whether divisions are what the loops wait for, which go on beside other operations: in the time of one there are 20 of those, 7 of which are a quotient. */
static bool waits_for_divisions(const Lower *L)
{
    enum { BESIDE = 10 };
    int64_t divisions = 0, others = 0;
    for (const Inst *i = L->body ? L->body->first : L->inst; i; i = L->body ? i->next : NULL) {
        const int n = operations(i);
        if (n < 0)
            return false;
        if (is_in_vectors(L, i)) {
            divisions += i->op == OP_DIVIDE;
            others += n;
        }
    }
    return others < BESIDE * divisions;
}

/* Trips of the innermost loop that index depends on. */
static int64_t innermost_trips(const Ix *const *index, int32_t rank)
{
    const int32_t depth = index_depth(index, rank);
    int64_t       trips = 0;
    for (int32_t d = 0; d < rank; d++)
        for (int32_t k = 0; k < index[d]->n; k++) {
            const IxAtom *i = index[d]->t[k].atom;
            if (i->kind == IX_LOOP && i->depth == depth && i->hi - i->lo + 1 > trips)
                trips = i->hi - i->lo + 1;
        }
    return trips;
}

/* What stays the same of a divisor. */
typedef struct Divisor {
    const KExpr *c, *inverse;
    const KExpr *scale; /* of the divisor, and of the quotient; NULL: 1 */
} Divisor;

/* The same of a small array's elements, each in an array of its own. */
typedef struct Divisors {
    KArray *c, *inverse, *scale;
} Divisors;

static const KExpr *scale_of(Lower *L, const KExpr *c)
{
    return bind(L, kx_call(L->arena, c->type == TYPE_F64 ? "div_scale_f64" : "div_scale_f32", c->type, 1, &c), "scale");
}

static const KExpr *inverse_of(Lower *L, const KExpr *c)
{
    return kx_binary(L->arena, KOP_DIV, c->type, scalar_one(L->arena, c->type), c);
}

/* ---- divisors that are the same in each row ---- */

static void divisors_body(Lower *L, void *cookie, const Ix *const *index)
{
    const Inst     *x = cookie;
    const Divisors *to = map_get(&L->divisors, x);
    const KExpr    *c = value_at(L, x, 0, index), *scale = scale_of(L, c), *scaled = bind(L, kx_binary(L->arena, KOP_MUL, c->type, c, scale), "divisor");
    store_at(L, to->c, index, scaled);
    store_at(L, to->inverse, index, inverse_of(L, scaled));
    store_at(L, to->scale, index, scale);
}

void quotients_begin(Lower *L)
{
    enum { SHARED = 1 << 14 /* elements that several threads may divide */ };
    KArray *(*const array)(Lower *, const Shape *, const char *) = most_elements(L) >= SHARED ? shared_array : stage_array;
    for (const Inst *i = L->body->first; i; i = i->next)
        if (map_has(&L->plan->divisors, i)) {
            Divisors *d = ARENA_NEW(L->arena, Divisors);
            const Shape *s = shape_array(L->arena, machine_type(i->shape->type), i->shape->rank, i->shape->dims);
            *d = (Divisors){ array(L, s, "divisor"), array(L, s, "inverse"), array(L, s, "scale") };
            map_put(&L->divisors, i, d);
            nest(L, s->rank, plan_dims(L, i, ROLE_DIVISOR, s->rank, s->dims), major_order(L, s), divisors_body, (void *)(uintptr_t)i);
        }
}

/* The divisor x is a parameter, much smaller than what is divided, repeated in rows that the innermost loop goes along. What comes from further away than the second cache is waited for
 * longer than divisions. */
static bool is_in_each_row(Lower *L, const Inst *x, int64_t elements, int64_t trips)
{
    enum { LANES = 16, MOST = 4096, ROWS = 16, SECOND_CACHE = 1 << 20 /* bytes */ };
    const Inst *of = x->op == OP_BROADCAST ? inst_operand(x, 0) : x;
    return of != x && of->op == OP_PARAMETER && L->body && !L->columns && !L->beside && !L->plan->tile_hero && trips >= LANES && shape_count(of->shape) <= MOST &&
           elements >= ROWS * shape_count(of->shape) && 2 * elements * type_bytes(of->shape->type) <= SECOND_CACHE && memory_of(L, of, 0) != NULL;
}

static const KExpr *load_divisor(Lower *L, KArray *from, const Inst *x, const Ix *const *index, const char *name)
{
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, from->shape->rank);
    for (int32_t d = 0; d < from->shape->rank; d++)
        at[d] = index[inst_ints(x, ATTR_DIMENSIONS).v[d]];
    return bind(L, kx_load(L->arena, from, shape_index(L, from->shape, at)), name);
}

/* False: this try has no such arrays. */
static bool divisor_in_row(Lower *L, const Inst *x, const Ix *const *index, Divisor *d)
{
    const Inst     *of = inst_operand(x, 0);
    const Divisors *from = map_get(&L->divisors, of);
    if (!from) {
        map_put(&L->plan->divisors, of, L->plan);
        L->again = true;
        return false;
    }
    *d = (Divisor){ load_divisor(L, from->c, x, index, "divisor"), load_divisor(L, from->inverse, x, index, "inverse"), load_divisor(L, from->scale, x, index, "scale") };
    return true;
}

/* ---- quotients ---- */

/* Made in front of the innermost loop, or of all; false: the divisor changes all the time. Loops over a few features are unrolled before compilers look for what stays the same. */
static bool divisor_of(Lower *L, const Inst *x, const KExpr *c, bool near_one, const Ix *const *index, Divisor *d)
{
    enum { FEW = 4, LANES = 16, LEAST = 256 /* trips, else without a rest */ };
    const Inst   *of = inst_operand(x, 1);
    const int64_t trips = innermost_trips(index, x->shape->rank);
    const bool    few = trips <= FEW && of->op == OP_BROADCAST && shape_count(inst_operand(of, 0)->shape) <= FEW;
    const bool    changes = c->depth >= index_depth(index, x->shape->rank);
    if (c->kind != KX_FLOAT && changes && is_in_each_row(L, of, shape_count(x->shape), trips))
        return divisor_in_row(L, of, index, d);
    if (c->kind == KX_FLOAT ? !near_one : changes ? !few || !near_one : trips < LEAST && trips % LANES != 0)
        return false;
    d->scale = near_one ? NULL : scale_of(L, c);
    d->c = near_one ? c : bind(L, kx_binary(L->arena, KOP_MUL, c->type, c, d->scale), "divisor");
    d->inverse = c->kind == KX_FLOAT ? inverse_of(L, c) : bind(L, inverse_of(L, d->c), "inverse");
    return true;
}

const KExpr *quotient(Lower *L, const Inst *x, const KExpr *const *args, const Ix *const *index)
{
    enum { MOST = 96 /* powers of two, of f32's 126 */ };
    const Type t = x->shape->type;
    int        least, most;
    Grid       g;
    Divisor    d;
    if (L->plan->plain || (t != TYPE_F32 && t != TYPE_F64 && t != TYPE_BF16) || !is_in_vectors(L, x))
        return NULL;
    bool near_one = divisor_range(L, inst_operand(x, 1), &least, &most);
    bool known = near_one && t != TYPE_BF16 && grid_of(L, inst_operand(x, 0), 0, &g) && g.least >= -MOST && g.most <= MOST;
    const bool bounded = near_one && !known && bounds_of(L, inst_operand(x, 0), 0) == BOUNDED;
    if ((!known && t != TYPE_BF16 && !waits_for_divisions(L)) || !divisor_of(L, x, args[1], near_one, index, &d))
        return NULL;
    const KExpr *q;
    if (t == TYPE_BF16) /* no quotient of two such numbers is so near to where the next one of bf16 begins that the reciprocal's error matters */
        q = kx_binary(L->arena, KOP_MUL, TYPE_F32, args[0], d.inverse);
    else
        q = kx_call(L->arena, arena_printf(L->arena, "%s_%s", known ? "div_known" : bounded ? "div_bounded" : "div_by", type_name(t)), t, 3, (const KExpr *const[]){ args[0], d.c, d.inverse });
    q = d.scale ? kx_binary(L->arena, KOP_MUL, machine_type(t), q, d.scale) : q;
    return t == TYPE_BF16 ? scalar_round_near(L->arena, t, q) : q;
}
