/* layout-assignment - features are kept side by side in memory where convolutions and what lies between them would have them so.
 *
 *   %c = f32[8,64,56,56]{3,2,1,0} convolution(%x, %w), dim_labels=bf01_oi01->bf01           %c = f32[8,64,56,56]{1,3,2,0} convolution(%x, %w)
 *   %r = f32[8,64,56,56]{3,2,1,0} maximum(%c, %zero)                                =>      %r = f32[8,64,56,56]{1,3,2,0} maximum(%c, %zero)
 *   %d = f32[8,64,56,56]{3,2,1,0} convolution(%r, %v), dim_labels=bf01_oi01->bf01           %d = ... convolution(%r, %v)
 *
 * A convolution multiplies the features of a place with those of the kernel; where they lie apart, its routine brings them together first, and
 * takes them apart again when it writes. Dimensions keep their order in the text, only the layout says how they lie.
 *
 * A region is what such convolutions reach through elementwise instructions, pooling, padding, slices and concatenations: all of it gets the layout.
 * Copies stand at its borders, but for convolutions and reductions, which read any layout, and for constants, broadcasts and iotas, which are made in it.
 * A region is taken when convolutions would turn at least twice as many bytes as the copies. Parameters and results keep the layouts of the entry, and
 * what has a layout already is left alone, but for what attention makes of its scores (layout_scores.c), which {scores} does alone. */
#include "config.h"

#include "passes/layout_scores.h"
#include "passes/pass.h"
#include "passes/util.h"
#include "support/vec.h"

enum { LEAST_WORK = 1 << 15, LEAST_FEATURES = 16 }; /* multiplications, and features that are read: below them loops are as good in any layout */

typedef struct Region {
    Arena        *scratch;
    Comp         *comp;
    const Layout *layout;
    int32_t       rank;
    VEC(Inst *) members;
} Region;

/* ---- what belongs to a region ---- */

/* batch, spatial dimensions, features, from the outermost to the innermost one. NULL: the default order is that one. */
static const Layout *features_last(Arena *a, int64_t batch, int64_t feature, const int64_t *spatial, int32_t n)
{
    Ints order = ints_make(a, n + 2);
    *ints_at(order, 0) = feature;
    for (int32_t k = 0; k < n; k++)
        *ints_at(order, k + 1) = spatial[n - 1 - k];
    *ints_at(order, n + 1) = batch;
    return layout_from_order(a, order);
}

static const DimLabels *labels(const Inst *conv)
{
    return inst_attr(conv, ATTR_DIM_LABELS)->value.dim_labels;
}

static const Layout *wanted_layout(Arena *a, const Inst *conv)
{
    const DimLabels *l = labels(conv);
    return features_last(a, l->out_batch, l->out_feature, l->out_spatial, l->spatial);
}

static const Layout *wanted_of_operand(Arena *a, const Inst *conv)
{
    const DimLabels *l = labels(conv);
    return features_last(a, l->lhs_batch, l->lhs_feature, l->lhs_spatial, l->spatial);
}

static bool has_plain_array(const Inst *i)
{
    return shape_is_array(i->shape) && !i->shape->layout && !shape_is_dynamic(i->shape) && shape_count(i->shape) > 0;
}

/* Whose features a routine multiplies as a matrix. */
static bool is_large(const Inst *conv)
{
    const DimLabels *l = labels(conv);
    const Shape     *w = inst_operand(conv, 1)->shape;
    double           work = (double)shape_count(conv->shape) * (double)shape_count(w) / (double)w->dims[l->rhs_out];
    return inst_int(conv, ATTR_FEATURE_GROUP_COUNT, 1) == 1 && inst_int(conv, ATTR_BATCH_GROUP_COUNT, 1) == 1 && work >= LEAST_WORK &&
           w->dims[l->rhs_in] >= LEAST_FEATURES && conv->n_operands == 2;
}

/* Operands of i that have to lie as its result does: the first n. */
static int32_t alike(const Inst *i)
{
    switch (i->op) {
    case OP_CONVOLUTION: return 0;
    case OP_REDUCE_WINDOW: case OP_PAD: case OP_SLICE: case OP_BATCH_NORM_INFERENCE: return 1;
    default: return i->n_operands;
    }
}

static bool keeps_dims(const Inst *i)
{
    for (int32_t k = 0; k < i->n_operands; k++)
        if (inst_operand(i, k)->shape->rank != 0 && !shape_same_dims(inst_operand(i, k)->shape, i->shape))
            return false;
    return i->n_operands > 0;
}

static bool may_join(const Region *r, const Inst *i)
{
    if (i->aux || i->comp != r->comp || !has_plain_array(i) || i->shape->rank != r->rank || !inst_is_free(i))
        return false;
    switch (i->op) {
    case OP_CONVOLUTION: return layout_equal(wanted_layout(r->scratch, i), r->layout, r->rank);
    case OP_REDUCE_WINDOW: return i->n_operands == 2;
    case OP_PAD: case OP_SLICE: case OP_CONCATENATE: case OP_BATCH_NORM_INFERENCE: return true;
    default: return op_has(i->op, F_ELEMENTWISE) && keeps_dims(i);
    }
}

static bool is_member(const Region *r, const Inst *i)
{
    return i->aux == r;
}

static void join(Region *r, Inst *i)
{
    if (!may_join(r, i))
        return;
    i->aux = r;
    vec_push(r->scratch, &r->members, i);
}

static bool reads_as_it_writes(const Region *r, const Inst *conv)
{
    return inst_operand(conv, 0)->shape->rank == r->rank && layout_equal(wanted_of_operand(r->scratch, conv), r->layout, r->rank);
}

/* Everything that can be reached, both ways. */
static void grow(Region *r, Inst *seed)
{
    join(r, seed);
    for (int32_t at = 0; at < r->members.n; at++) {
        Inst *i = r->members.v[at];
        for (const Use *u = i->uses; u; u = u->next)
            if (u->index < alike(u->user) || (u->user->op == OP_CONVOLUTION && u->index == 0))
                join(r, u->user);
        for (int32_t k = 0; k < alike(i); k++)
            join(r, inst_operand(i, k));
        if (i->op == OP_CONVOLUTION && reads_as_it_writes(r, i))
            join(r, inst_operand(i, 0));
    }
}

/* ---- borders ---- */

/* Made in any layout. */
static bool is_made_anywhere(const Inst *i)
{
    return i->op == OP_BROADCAST || i->op == OP_IOTA || (i->op == OP_CONSTANT && !i->literal->elided);
}

static bool wants_layout(const Region *r, const Use *u)
{
    return is_member(r, u->user) && u->index < alike(u->user) && u->def->shape->rank == r->rank;
}

/* Reads what lies in any order: nothing stands at such a border. */
static bool reads_any(const Use *u)
{
    return (u->user->op == OP_CONVOLUTION && u->index == 0) || (u->user->op == OP_REDUCE && u->index < u->user->n_operands / 2);
}

/* Somebody outside wants member i in the default layout. */
static bool is_read_outside(const Region *r, const Inst *i)
{
    bool outside = r->comp->root == i;
    for (const Use *u = i->uses; u && !outside; u = u->next)
        outside = !is_member(r, u->user) && !reads_any(u);
    return outside;
}

/* Bytes that copies would move. */
static int64_t border_bytes(const Region *r)
{
    Map     seen = map_new(r->scratch);
    int64_t sum = 0;
    for (int32_t at = 0; at < r->members.n; at++) {
        const Inst *i = r->members.v[at];
        sum += is_read_outside(r, i) ? shape_bytes(i->shape) : 0;
        for (int32_t k = 0; k < i->n_operands; k++) {
            const Inst *o = inst_operand(i, k);
            if (!wants_layout(r, &i->operands[k]) || is_member(r, o) || is_made_anywhere(o) || map_has(&seen, o))
                continue;
            map_put(&seen, o, (void *)(uintptr_t)r);
            sum += shape_bytes(o->shape);
        }
    }
    return sum;
}

/* Bytes that convolutions need not turn. */
static int64_t turned_bytes(const Region *r)
{
    int64_t sum = 0;
    for (int32_t at = 0; at < r->members.n; at++) {
        const Inst *i = r->members.v[at];
        if (i->op != OP_CONVOLUTION || !is_large(i))
            continue;
        sum += shape_bytes(i->shape);
        if (is_member(r, inst_operand(i, 0)) && reads_as_it_writes(r, i))
            sum += shape_bytes(inst_operand(i, 0)->shape);
    }
    return sum;
}

/* ---- doing it ---- */

static Inst *copied(Inst *x, const Shape *shape)
{
    Inst *copy = inst_new(x->comp, x->next, OP_COPY, shape, 1, &x, NULL);
    copy->meta = x->meta;
    copy->loc = x->loc;
    return copy;
}

static bool is_read_inside_alone(const Region *r, const Inst *x)
{
    for (const Use *u = x->uses; u; u = u->next)
        if (!wants_layout(r, u))
            return false;
    return x != r->comp->root;
}

/* x in the layout of the region. */
static Inst *brought_in(const Region *r, Inst *x)
{
    const Shape *shape = shape_with_layout(x->comp->module->arena, x->shape, r->layout);
    if (!is_made_anywhere(x))
        return copied(x, shape);
    if (inst_is_free(x) && is_read_inside_alone(r, x)) {
        x->shape = shape;
        return x;
    }
    Inst *made = x->op == OP_CONSTANT ? inst_constant(x->comp, x->next, literal_ref(x->literal), NULL) : NULL;
    if (!made) {
        Inst **operands = mem_alloc(x->n_operands, sizeof *operands);
        for (int32_t k = 0; k < x->n_operands; k++)
            operands[k] = inst_operand(x, k);
        made = inst_clone_into(x->comp, x->next, x, x->n_operands, operands);
        mem_free(operands);
    }
    made->shape = shape;
    made->meta = x->meta;
    return made;
}

static void bring_in_operands(Region *r)
{
    Map inside = map_new(r->scratch);
    for (int32_t at = 0; at < r->members.n; at++) {
        Inst *i = r->members.v[at];
        for (int32_t k = 0; k < i->n_operands; k++) {
            Inst *o = inst_operand(i, k), *x = map_get(&inside, o);
            if (!wants_layout(r, &i->operands[k]) || is_member(r, o) || o->shape->layout)
                continue;
            if (!x)
                map_put(&inside, o, x = brought_in(r, o));
            inst_set_operand(i, k, x);
        }
    }
}

static void bring_out(const Region *r, Inst *i)
{
    if (!is_read_outside(r, i))
        return;
    Inst *copy = copied(i, i->shape);
    bool  root = r->comp->root == i;
    if (root)
        inst_replace(i, copy); /* the result keeps its name */
    for (Use *u = root ? copy->uses : i->uses, *next; u; u = next) {
        next = u->next;
        bool inside = u->user == copy || is_member(r, u->user) || reads_any(u);
        inst_set_operand(u->user, u->index, inside ? i : copy);
    }
}

static void assign_layout(Region *r)
{
    bring_in_operands(r);
    for (int32_t at = 0; at < r->members.n; at++)
        bring_out(r, r->members.v[at]);
    for (int32_t at = 0; at < r->members.n; at++) {
        Inst *i = r->members.v[at];
        i->shape = shape_with_layout(r->comp->module->arena, i->shape, r->layout);
    }
}

static void assign_from(PassCtx *cx, Inst *seed)
{
    const Layout *layout = wanted_layout(seed->comp->module->arena, seed);
    if (seed->aux || !layout || !is_large(seed))
        return;
    Region *r = ARENA_NEW(cx->scratch, Region);
    *r = (Region){.scratch = cx->scratch, .comp = seed->comp, .layout = layout, .rank = seed->shape->rank};
    grow(r, seed);
    int64_t turned = turned_bytes(r), moved = border_bytes(r);
    pass_remark(cx, seed, "%d instructions around %%%s %s features side by side: convolutions turn %lld bytes, copies %lld", r->members.n, seed->name,
                turned / 2 >= moved ? "have" : "could have", (long long)turned, (long long)moved);
    if (turned == 0 || turned / 2 < moved)
        return;
    cx->did_at = seed->name;
    assign_layout(r);
    cx->rewrites++;
}

bool pass_layout_assignment(Module *m, PassCtx *cx)
{
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next) {
        if (c->mark != COMP_FLOW)
            continue;
        for (Inst *i = c->first; i; i = i->next)
            i->aux = NULL;
        for (Inst *i = c->first; i && cx->rewrites < cx->limit && !pass_arg_is(cx, "scores"); i = i->next)
            if (i->op == OP_CONVOLUTION && has_plain_array(i) && inst_is_free(i))
                assign_from(cx, i);
        for (Inst *i = c->first; i && cx->rewrites < cx->limit; i = i->next)
            if (i->op == OP_DOT && layout_scores(cx, i)) {
                cx->did_at = i->name;
                cx->rewrites++;
            }
    }
    return cx->rewrites > 0;
}
