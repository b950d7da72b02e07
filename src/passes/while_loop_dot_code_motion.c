/* while-loop-dot-code-motion - products of the slices that trips take are one product before the loop.
 *
 *   %w = while(tuple(0, xs [t,m,k], a [k,n])):  dot(slice %i of xs, a) [m,n]
 *         =>
 *   %p = dot(xs, a) [t,m,n]
 *   %w = while(tuple(0, xs, a, %p)):  slice %i of %p
 *
 * Each trip read all of a for a few rows; what it reads now are the rows' products. So it is with what a recurrent net multiplies its inputs by. The slices may be taken in any
 * order, which the loop alone knows; but there have to be as many trips as slices, or some products would be for nothing. */
#include "config.h"

#include "analysis/cost.h"
#include "analysis/loops.h"
#include "passes/pass.h"
#include "passes/util.h"
#include "passes/while.h"

enum { MOST_ROWS = 64, LEAST_TRIPS = 4, LEAST_TERMS = 16, TERMS_A_ROW = 4, SOME_ROWS = 4, MOST_LARGER = 8, NEAR_BYTES = 32 << 10 /* in the first cache */, MOST_BYTES = 64 << 20 };

typedef struct Sliced {
    Inst   *dot, *slice; /* of the body; what is sliced is the slice's operand */
    int32_t side, along; /* which operand of dot the slice is, its dimension that is cut into single ones */
    Ints    contracting; /* of what is sliced */
} Sliced;

typedef VEC(Sliced) Found;

static const AttrId contracting_ids[] = {ATTR_LHS_CONTRACTING_DIMS, ATTR_RHS_CONTRACTING_DIMS};

/* No trip changes it, and it is there before the loop. */
static bool is_there_before(const Inst *w, const Inst *i)
{
    if (i->op == OP_CONSTANT)
        return true;
    if (i->op != OP_GET_TUPLE_ELEMENT || inst_operand(i, 0)->op != OP_PARAMETER)
        return false;
    const int64_t k = inst_int(i, ATTR_INDEX, 0);
    const Inst   *init = while_init(w, k);
    return while_keeps(w, k) && init && shape_equal(init->shape, i->shape);
}

static Inst *before_loop(Inst *w, const Inst *i)
{
    return i->op == OP_CONSTANT ? inst_clone_into(w->comp, w, i, 0, NULL) : while_init(w, inst_int(i, ATTR_INDEX, 0));
}

/* The one dimension of which a slice has a single place, all others being whole; -1: it is not so. */
static int32_t cut_dimension(const Inst *slice)
{
    const Shape *x = inst_operand(slice, 0)->shape;
    int32_t      along = -1;
    for (int32_t d = 0; d < x->rank; d++) {
        if (slice->shape->dims[d] == x->dims[d])
            continue;
        if (along >= 0 || slice->shape->dims[d] != 1)
            return -1;
        along = d;
    }
    return along;
}

/* Which dimension of a slice each one of `x` is, which is the slice or leaves sizes of 1 out, `along` too. */
static bool dimensions_of(const Sliced *s, const Shape *x, int64_t *of)
{
    const Shape *from = s->slice->shape;
    int32_t      n = 0;
    for (int32_t d = 0; d < from->rank; d++) {
        if (n < x->rank && x->dims[n] == from->dims[d] && (d != s->along || x->rank == from->rank))
            of[n++] = d;
        else if (from->dims[d] != 1)
            return false;
    }
    return n == x->rank;
}

static bool is_plain(const Inst *dot)
{
    return dot->op == OP_DOT && dot->n_operands == 2 && inst_is_free(dot) && !inst_attr(dot, ATTR_SPARSITY_CONFIG) && !inst_attr(dot, ATTR_BLOCK_SCALING_CONFIG) &&
           !inst_ints(dot, ATTR_LHS_BATCH_DIMS).n && !inst_ints(dot, ATTR_RHS_BATCH_DIMS).n && !dot->shape->layout && shape_count(dot->shape) > 0;
}

/* Few rows of many terms, as many in the loop as there are. On a CPU some rows by a matrix that stays in the first cache are left to the trips, which need no memory for the products of all
 * (25 trips of a GRU, 4 rows of 32 by 16 kB and by 8 kB, 45 and 40 us, 5 and 79 kB; an LSTM's one row of 60 by 58 kB 67 and 48 us). On a device each trip's product is a launch or two of its own, and its result is stored as all are: there any number
 * of rows does, unless a loop seems to have been made so that not all products are there at once, as of scores of attention. */
static bool pays(const Flow *f, const Inst *w, const Sliced *s)
{
    const Shape  *x = inst_operand(s->dot, s->side)->shape, *a = inst_operand(s->dot, 1 - s->side)->shape;
    const int64_t slices = inst_operand(s->slice, 0)->shape->dims[s->along], trips = while_trip_count(w);
    int64_t       terms = 1;
    for (int32_t k = 0; k < s->contracting.n; k++)
        terms *= inst_operand(s->slice, 0)->shape->dims[s->contracting.v[k]];
    if (slices < LEAST_TRIPS || trips < slices || terms < LEAST_TERMS || shape_count(a) < terms)
        return false;
    const int64_t rows = shape_count(x) / terms;
    const bool    few = rows <= MOST_ROWS && terms >= TERMS_A_ROW * rows, near = rows >= SOME_ROWS && shape_bytes(a) <= NEAR_BYTES;
    const bool    larger = shape_count(s->dot->shape) > MOST_LARGER * shape_count(x);
    return (f->device->shared > 0 ? few || !larger : few && !near) && cost_mul(shape_bytes(s->dot->shape), slices) <= MOST_BYTES;
}

static bool find_side(const Flow *f, const Inst *w, Inst *dot, int32_t side, Sliced *s)
{
    Inst *x = inst_operand(dot, side), *slice = x->op == OP_RESHAPE ? inst_operand(x, 0) : x;
    if (slice->op != OP_DYNAMIC_SLICE || !inst_is_free(slice) || slice->shape->layout || x->shape->layout || inst_operand(slice, 0)->shape->layout ||
        !is_there_before(w, inst_operand(slice, 0)) || !is_there_before(w, inst_operand(dot, 1 - side)) || inst_operand(dot, 1 - side)->shape->layout)
        return false;
    *s = (Sliced){.dot = dot, .slice = slice, .side = side, .along = cut_dimension(slice)};
    int64_t *of = ARENA_ARRAY(f->scratch, int64_t, x->shape->rank + 1);
    if (s->along < 0 || !dimensions_of(s, x->shape, of))
        return false;
    Ints was = inst_ints(dot, contracting_ids[side]);
    s->contracting = ints_make(f->scratch, was.n);
    for (int32_t k = 0; k < was.n; k++)
        *ints_at(s->contracting, k) = of[was.v[k]];
    return !ints_has(s->contracting, s->along) && pays(f, w, s);
}

static Found find(const Flow *f, const Inst *w)
{
    Found  found = {0};
    Sliced s;
    for (Inst *i = while_body(w)->first; i; i = i->next)
        if (is_plain(i) && (find_side(f, w, i, 0, &s) || find_side(f, w, i, 1, &s)))
            vec_push(f->scratch, &found, s);
    return found;
}

/* The product of all slices. *at is where their dimension is in it. */
static Inst *product(Inst *w, const Sliced *s, int32_t *at)
{
    Arena       *a = w->comp->module->arena;
    const Shape *x = inst_operand(s->slice, 0)->shape, *y = inst_operand(s->dot, 1 - s->side)->shape;
    Ints         other = inst_ints(s->dot, contracting_ids[1 - s->side]);
    int64_t     *dims = ARENA_ARRAY(a, int64_t, x->rank + y->rank);
    int32_t      n = 0;
    for (int32_t k = 0; k < 2; k++)
        for (int32_t d = 0; d < (k == s->side ? x : y)->rank; d++) {
            if (ints_has(k == s->side ? s->contracting : other, d))
                continue;
            if (k == s->side && d == s->along)
                *at = n;
            dims[n++] = (k == s->side ? x : y)->dims[d];
        }
    Inst *operands[2];
    operands[s->side] = before_loop(w, inst_operand(s->slice, 0));
    operands[1 - s->side] = before_loop(w, inst_operand(s->dot, 1 - s->side));
    Inst *p = inst_clone_into(w->comp, w, s->dot, 2, operands);
    inst_set_shape(p, shape_array(a, s->dot->shape->type, n, dims));
    inst_set_ints(p, contracting_ids[s->side], s->contracting);
    return p;
}

/* The slice of the product in the place of the product of the slice. */
static void take_slice(const Sliced *s, Inst *all, int32_t at, Arena *scratch)
{
    Arena  *a = s->dot->comp->module->arena;
    Inst   *index = inst_operand(s->slice, 1 + s->along);
    Inst   *zero = inst_constant(s->dot->comp, s->dot, literal_from_s64(index->shape->type, 0), NULL);
    zero->meta = s->dot->meta;
    Inst  **operands = ARENA_ARRAY(scratch, Inst *, all->shape->rank + 1);
    Ints    sizes = ints_make(scratch, all->shape->rank);
    operands[0] = all;
    for (int32_t d = 0; d < all->shape->rank; d++) {
        operands[1 + d] = d == at ? index : zero;
        *ints_at(sizes, d) = d == at ? 1 : all->shape->dims[d];
    }
    Inst *part = inst_new(s->dot->comp, s->dot, OP_DYNAMIC_SLICE, shape_array(a, all->shape->type, sizes.n, sizes.v), sizes.n + 1, operands, NULL);
    inst_set_ints(part, ATTR_DYNAMIC_SLICE_SIZES, sizes);
    part->meta = s->dot->meta;
    Inst *as = shape_equal(part->shape, s->dot->shape) ? part : inst_new(s->dot->comp, s->dot, OP_RESHAPE, s->dot->shape, 1, &part, NULL);
    as->meta = s->dot->meta;
    inst_replace(s->dot, as);
}

static int64_t move_out(Flow *f, Inst *w)
{
    if (!while_could_be_edited(f, w) || while_trip_count(w) < LEAST_TRIPS)
        return 0;
    Found found = find(f, w);
    if (!found.n || !while_editable(f, w))
        return 0;
    found = find(f, w); /* the body may be a copy now */
    Inst   **init = ARENA_ARRAY(f->scratch, Inst *, found.n);
    int32_t *at = ARENA_ARRAY(f->scratch, int32_t, found.n);
    for (int32_t k = 0; k < found.n; k++)
        init[k] = product(w, &found.v[k], &at[k]);
    int32_t first = while_append(f, w, found.n, init);
    for (int32_t k = 0; k < found.n; k++)
        take_slice(&found.v[k], inst_operand(while_body(w)->root, first + k), at[k], f->scratch);
    comp_sweep_dead(while_body(w), INT64_MAX);
    return found.n;
}

bool pass_while_loop_dot_code_motion(Module *m, PassCtx *cx)
{
    return while_pass_moves_out(m, cx, move_out, "products of the slices that trips take");
}
