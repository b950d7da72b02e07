/* topk-rewriter - of a sort by value only the beginning of which is looked at, topk.
 *
 *   %i = s32[4,100] iota(), iota_dimension=1
 *   %s = (f32[4,100], s32[4,100]) sort(%x, %i), dimensions={1}, to_apply=%total_order_gt
 *   %v = f32[4,100] get-tuple-element(%s), index=0         %a = f32[4,5] slice(%v), slice={[0:4], [0:5]}
 *   %p = s32[4,100] get-tuple-element(%s), index=1         %b = s32[4,3] slice(%p), slice={[0:4], [0:3]}
 *     =>
 *   %t = (f32[4,5], s32[4,5]) topk(%x), k=5, largest=true
 *   %a = f32[4,5] get-tuple-element(%t), index=0
 *   %p = s32[4,5] get-tuple-element(%t), index=1           %b = s32[4,3] slice(%p), slice={[0:4], [0:3]}
 *
 * Values alone are sorted likewise. Where topk has the order of the comparison: the total order of floats, integers. Equal values are in the order of their places, as a
 * stable sort has them. Along a dimension that is not the last, topk is of a transpose and has its results transposed back, where few of many elements are wanted. */
#include "config.h"

#include "analysis/order.h"
#include "passes/expand.h"
#include "passes/util.h"

/* i is a sort of an array, and of positions maybe, by an order that topk has. */
static bool has_order(const Inst *i, Order *by)
{
    if (i->op != OP_SORT || i->n_operands > 2 || !inst_is_free(i) || !order_of(i, by))
        return false;
    const Type t = inst_operand(i, by->key)->shape->type;
    return !by->canonical && (by->total || !type_is_float(t)) && !type_is_complex(t);
}

/* How many of the first elements along dim the slices of x want; -1: something else wants x. */
static int64_t wanted(const Inst *x, int32_t dim)
{
    int64_t most = x == x->comp->root ? -1 : 0;
    for (const Use *u = x->uses; u && most >= 0; u = u->next) {
        const int64_t end = u->user->op == OP_SLICE ? inst_attr(u->user, ATTR_SLICE)->value.slices->v[dim].limit : -1;
        most = end < 0 || end > most ? end : most;
    }
    return most;
}

/* Likewise of the sort, an array or a tuple of them. */
static int64_t wanted_of_sort(const Inst *sort, int32_t dim)
{
    int64_t most = 0;
    if (!shape_is_tuple(sort->shape))
        return wanted(sort, dim);
    if (sort == sort->comp->root)
        return -1;
    for (const Use *u = sort->uses; u && most >= 0; u = u->next) {
        const int64_t end = u->user->op == OP_GET_TUPLE_ELEMENT && inst_is_free(u->user) ? wanted(u->user, dim) : -1;
        most = end < 0 || end > most ? end : most;
    }
    return most;
}

/* The slices of x are of y, which is its beginning. */
static void slice_beginning(const Inst *x, Inst *y)
{
    for (Use *u = x->uses, *next; u; u = next) {
        next = u->next;
        inst_set_operand(u->user, 0, y);
    }
}

enum { FEW = 4, MANY_ELEMENTS = 64 }; /* a quarter of 64 at least is worth the transposes */

/* Dimension `from` of `rank` goes to place `to`, the others keep their order. */
static Ints moved(Arena *a, int32_t rank, int32_t from, int32_t to)
{
    Ints perm = ints_copy(a, ints_iota(a, rank));
    for (int32_t k = 0, d = 0; k < rank; k++) {
        d += k != to && d == from;
        *ints_at(perm, k) = k == to ? from : d++;
    }
    return perm;
}

static Inst *topk_of(Inst *sort, const Order *by, int64_t k, int32_t dim)
{
    Inst        *x = inst_operand(sort, by->key);
    Arena       *a = sort->comp->module->arena;
    if (dim < x->shape->rank - 1)
        x = expand_transpose(sort, x, moved(a, x->shape->rank, dim, x->shape->rank - 1));
    int64_t     *dims = arena_copy(a, x->shape->dims, (size_t)x->shape->rank * sizeof *dims);
    dims[x->shape->rank - 1] = k;
    const Shape *both[] = { shape_array(a, x->shape->type, x->shape->rank, dims), shape_array(a, TYPE_S32, x->shape->rank, dims) };
    Inst        *t = expand_op(sort, OP_TOPK, shape_tuple(a, 2, both), 1, &x);
    inst_set_int(t, ATTR_K, k);
    inst_set_int(t, ATTR_LARGEST, by->descending);
    return t;
}

/* Result k of t, of the sort's dimensions. */
static Inst *result_of(Inst *sort, Inst *t, int32_t k, int32_t dim)
{
    Inst         *r = expand_element(sort, t, k);
    const int32_t last = r->shape->rank - 1;
    return dim < last ? expand_transpose(sort, r, moved(sort->comp->module->arena, r->shape->rank, last, dim)) : r;
}

static bool rewrite(PassCtx *cx, Inst *sort)
{
    Order by;
    if (!has_order(sort, &by))
        return false;
    const Shape  *s = inst_operand(sort, by.key)->shape;
    const int32_t dim = (int32_t)inst_ints(sort, ATTR_DIMENSIONS).v[0];
    if (shape_is_dynamic(s) || !layout_is_row_major(s))
        return false;
    const Inst   *other = sort->n_operands == 2 ? inst_operand(sort, 1 - by.key) : NULL;
    const int64_t k = wanted_of_sort(sort, dim);
    if (k <= 0 || k >= s->dims[dim] || (other && (other->shape->type != TYPE_S32 || !inst_counts_along(other, dim))))
        return false;
    if (dim < s->rank - 1 && (s->dims[dim] < MANY_ELEMENTS || k > s->dims[dim] / FEW))
        return false;
    Inst *t = topk_of(sort, &by, k, dim);
    pass_remark(cx, sort, "%%%s becomes topk, of %lld of %lld elements", sort->name, (long long)k, (long long)s->dims[dim]);
    for (Use *u = sort->uses, *next; other && u; u = next) {
        next = u->next;
        slice_beginning(u->user, result_of(sort, t, inst_int(u->user, ATTR_INDEX, 0) == by.key ? 0 : 1, dim));
        inst_delete(u->user);
    }
    if (!other)
        slice_beginning(sort, result_of(sort, t, 0, dim));
    inst_delete_dead(sort, cx->scratch);
    return true;
}

bool pass_topk_rewriter(Module *m, PassCtx *cx)
{
    int64_t before = cx->rewrites;
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c), *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            while (next && next->op == OP_GET_TUPLE_ELEMENT && inst_operand(next, 0) == i)
                next = next->next; /* goes with i */
            cx->rewrites += rewrite(cx, i);
        }
    return cx->rewrites > before;
}
