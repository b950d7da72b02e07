/* dot-merger - products that share an operand are one product.
 *
 *   %a = f32[8,3] dot(%x, %u)                        %uv = f32[5,10] concatenate(%u, %v), dimensions={1}
 *   %b = f32[8,7] dot(%x, %v)              =>        %ab = f32[8,10] dot(%x, %uv)
 *                                                    %a = slice(%ab), columns [0:3]      %b = slice(%ab), columns [3:10]
 *
 * The shared operand is on one side of all of them, with the same dimensions contracted and in batches, the same types and precision; the other operands
 * have the same sizes but for one dimension that is not summed over, along which they are put together. None of them needs another's result, and what
 * is put together and its product have {bytes=N} at most. No level runs it: what is put together are weights most of the time, which each run would copy. */
#include "config.h"

#include "analysis/cost.h"
#include "passes/expand.h"
#include "passes/util.h"

typedef struct Merge {
    PassCtx *cx;
    int64_t  most_bytes;
    int32_t  side, dim; /* the shared operand, the dimension of the other one along which these are put together; -1: any that fits */
    int64_t  bytes;     /* of the others and the products */
    VEC(Inst *) dots;
} Merge;

/* ---- which ---- */

static bool is_mergeable(const Inst *i)
{
    if (i->op != OP_DOT || i->n_operands != 2 || inst_attr(i, ATTR_SPARSITY_CONFIG) || inst_attr(i, ATTR_BLOCK_SCALING_CONFIG) || i->shape->layout)
        return false;
    for (int32_t k = 0; k < 2; k++)
        if (inst_operand(i, k)->shape->layout || shape_is_dynamic(inst_operand(i, k)->shape))
            return false;
    return inst_is_value(i) && inst_is_free(i) && (i->n_uses || i->comp->root == i);
}

/* The place of dimension dim of an operand among those that the result has of it, -1: it is contracted or of the batch. */
static int32_t place_of(const Inst *dot, int32_t side, int32_t dim)
{
    Ints    batch = inst_ints(dot, side ? ATTR_RHS_BATCH_DIMS : ATTR_LHS_BATCH_DIMS);
    Ints    summed = inst_ints(dot, side ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS);
    int32_t place = 0;
    if (ints_has(batch, dim) || ints_has(summed, dim))
        return -1;
    for (int32_t d = 0; d < dim; d++)
        place += !ints_has(batch, d) && !ints_has(summed, d);
    return place;
}

/* The dimension along which d's operand could stand behind first's; -1: there is none. */
static int32_t common_dim(const Merge *g, const Inst *first, const Inst *d)
{
    int32_t      other = 1 - g->side, dim = g->dim;
    const Shape *a = inst_operand(first, other)->shape, *b = inst_operand(d, other)->shape;
    for (int32_t k = 0; k < a->rank; k++) {
        if (a->dims[k] == b->dims[k])
            continue;
        if (place_of(first, other, k) < 0 || (dim >= 0 && dim != k))
            return -1;
        dim = k;
    }
    for (int32_t k = 0; k < a->rank && dim < 0; k++)
        if (place_of(first, other, k) >= 0)
            dim = k;
    return dim;
}

static int64_t bytes_of(const Merge *g, const Inst *d)
{
    return cost_add(shape_bytes(inst_operand(d, 1 - g->side)->shape), shape_bytes(d->shape));
}

static bool is_like(const Merge *g, const Inst *first, const Inst *d)
{
    if (!is_mergeable(d) || inst_operand(d, g->side) != inst_operand(first, g->side))
        return false;
    const Inst *x = inst_operand(first, 1 - g->side), *y = inst_operand(d, 1 - g->side);
    return x->shape->type == y->shape->type && x->shape->rank == y->shape->rank && first->shape->type == d->shape->type && inst_attrs_equal(first, d) && common_dim(g, first, d) >= 0;
}

static void add(Merge *g, Inst *first, Inst *d)
{
    if (d != first)
        g->dim = common_dim(g, first, d);
    g->bytes = cost_add(g->bytes, bytes_of(g, d));
    vec_push(g->cx->scratch, &g->dots, d);
    d->mark = 1;
}

/* Marks what needs one of the products. */
static bool needs_marked(const Inst *i)
{
    bool needs = false;
    for (int32_t k = 0; k < i->n_operands && !needs; k++)
        needs = inst_operand(i, k)->mark;
    for (int32_t k = 0; k < i->n_control && !needs; k++)
        needs = i->control_preds[k]->mark;
    return needs;
}

static bool has_like(const Merge *g, const Inst *first)
{
    bool like = false;
    for (const Use *u = inst_operand(first, g->side)->uses; u && !like; u = u->next)
        like = u->user != first && u->index == g->side && is_like(g, first, u->user);
    return like;
}

/* Marks are 0 before and after. */
static void collect(Merge *g, Inst *first)
{
    g->dots.n = 0;
    g->bytes = 0;
    g->dim = -1;
    if (!has_like(g, first))
        return;
    add(g, first, first);
    for (Inst *i = first->next; i; i = i->next) {
        i->mark = needs_marked(i);
        if (!i->mark && is_like(g, first, i) && cost_add(g->bytes, bytes_of(g, i)) <= g->most_bytes)
            add(g, first, i);
    }
    for (Inst *i = first; i; i = i->next)
        i->mark = 0;
}

/* ---- one of them ---- */

static const Shape *longer(const Inst *i, const Shape *s, int32_t dim, int64_t size)
{
    Ints dims = ints_make(i->comp->module->arena, s->rank);
    for (int32_t d = 0; d < s->rank; d++)
        *ints_at(dims, d) = d == dim ? size : s->dims[d];
    return shape_array(i->comp->module->arena, s->type, s->rank, dims.v);
}

static Inst *put_together(const Merge *g, Inst *at, int64_t size)
{
    Inst **others = ARENA_ARRAY(g->cx->scratch, Inst *, g->dots.n);
    for (int32_t k = 0; k < g->dots.n; k++)
        others[k] = inst_operand(g->dots.v[k], 1 - g->side);
    Inst *all = expand_op(at, OP_CONCATENATE, longer(at, others[0]->shape, g->dim, size), g->dots.n, others);
    inst_set_ints(all, ATTR_DIMENSIONS, (Ints){(int64_t[]){g->dim}, 1});
    return all;
}

/* The dimension of the products that has the sizes of dimension g->dim. */
static int32_t product_dim(const Merge *g, const Inst *d)
{
    int32_t place = place_of(d, 1 - g->side, g->dim), batch = (int32_t)inst_ints(d, ATTR_LHS_BATCH_DIMS).n;
    if (g->side == 1)
        return batch + place;
    return batch + inst_operand(d, 0)->shape->rank - batch - (int32_t)inst_ints(d, ATTR_LHS_CONTRACTING_DIMS).n + place;
}

static void merge(const Merge *g)
{
    Inst   *at = g->dots.v[g->dots.n - 1];
    int64_t size = 0, start = 0;
    int32_t dim = product_dim(g, at);
    for (int32_t k = 0; k < g->dots.n; k++)
        size += inst_operand(g->dots.v[k], 1 - g->side)->shape->dims[g->dim];
    Inst *all = put_together(g, at, size), *shared = inst_operand(at, g->side);
    Inst *dot = expand_like(at, longer(at, at->shape, dim, size), 2, g->side ? (Inst *[]){all, shared} : (Inst *[]){shared, all});
    for (int32_t k = 0; k < g->dots.n; k++) {
        Inst   *d = g->dots.v[k];
        int64_t end = start + d->shape->dims[dim];
        Inst   *part = expand_slice(at, dot, dim, start, end);
        part->meta = d->meta;
        inst_replace(d, part);
        start = end;
    }
    Comp *c = at->comp;
    for (int32_t k = 0; k < g->dots.n; k++)
        inst_delete(g->dots.v[k]);
    comp_restore_order(c, g->cx->scratch); /* readers of the first ones stand before what they read */
}

static bool merge_one(Merge *g, Comp *c)
{
    for (Inst *i = c->first; i; i = i->next)
        i->mark = 0;
    for (Inst *i = c->first; i; i = i->next)
        for (g->side = 0; g->side < 2 && is_mergeable(i); g->side++) {
            collect(g, i);
            if (g->dots.n < 2)
                continue;
            g->cx->did_at = i->name;
            merge(g);
            return true;
        }
    return false;
}

bool pass_dot_merger(Module *m, PassCtx *cx)
{
    Merge g = {.cx = cx, .most_bytes = pass_arg_int(cx, "bytes", INT64_MAX)};
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        while ((c->mark & COMP_FLOW) && cx->rewrites < cx->limit && merge_one(&g, c))
            cx->rewrites++;
    return cx->rewrites > 0;
}
