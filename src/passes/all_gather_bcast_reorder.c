/* all-gather-bcast-reorder - what each device repeats is put together before it is repeated.
 *
 *   %b = f32[4,9] broadcast(%x), dimensions={0}                             %g = f32[8] all-gather(%x), dimensions={0}
 *   %r = f32[8,9] all-gather(%b), dimensions={0}                     =>     %r = f32[8,9] broadcast(%g), dimensions={0}
 *
 *   %b = f32[9,4] broadcast(%x), dimensions={0}                             %y = f32[9,1] reshape(%x)
 *   %r = f32[9,8] all-gather(%b), dimensions={1}                     =>     %g = f32[9,2] all-gather(%y), dimensions={1}
 *                                                                           %s = f32[9,2,4] broadcast(%g), dimensions={0,1}
 *                                                                           %r = f32[9,8] reshape(%s) */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"

static const Shape *array(const Inst *i, int32_t rank, const int64_t *dims)
{
    return shape_array(i->comp->module->arena, i->shape->type, rank, dims);
}

static Inst *gathered(Inst *i, Inst *x, int64_t parts, int64_t dim)
{
    int64_t *dims = ARENA_ARRAY(i->comp->module->arena, int64_t, x->shape->rank);
    for (int32_t d = 0; d < x->shape->rank; d++)
        dims[d] = d == dim ? parts * x->shape->dims[d] : x->shape->dims[d];
    Inst *g = expand_like(i, array(i, x->shape->rank, dims), 1, &x);
    inst_set_ints(g, ATTR_DIMENSIONS, (Ints){&dim, 1});
    return g;
}

/* x with a size of 1 put in where the parts will be, and where its dimensions and the parts are among those of the result, the gathered one of which is two. */
static Inst *with_parts(PassCtx *cx, Inst *i, const Inst *b, int64_t dim, int64_t parts)
{
    Inst    *x = inst_operand(b, 0);
    Ints     to = inst_ints(b, ATTR_DIMENSIONS), at = ints_make(cx->scratch, x->shape->rank + 1);
    int64_t *sizes = ARENA_ARRAY(cx->scratch, int64_t, x->shape->rank + 1), *split = ARENA_ARRAY(cx->scratch, int64_t, i->shape->rank + 1);
    int32_t  n = 0;
    int64_t  place = -1;
    for (int32_t d = 0; d <= x->shape->rank; d++) {
        if (place < 0 && (d == x->shape->rank || to.v[d] > dim)) {
            *ints_at(at, n) = dim;
            sizes[n] = 1;
            place = n++;
        }
        if (d < x->shape->rank) {
            *ints_at(at, n) = to.v[d] + (to.v[d] > dim);
            sizes[n++] = x->shape->dims[d];
        }
    }
    for (int32_t d = 0; d < i->shape->rank; d++)
        split[d + (d > dim)] = i->shape->dims[d];
    split[dim] = parts;
    split[dim + 1] = i->shape->dims[dim] / parts;
    Inst *g = gathered(i, expand_reshape(i, array(i, n, sizes), x), parts, place);
    return expand_reshape(i, i->shape, expand_broadcast(i, array(i, i->shape->rank + 1, split), g, at));
}

static Inst *reordered(PassCtx *cx, Inst *i)
{
    const Inst *b = i->op == OP_ALL_GATHER && i->n_operands == 1 && shape_is_array(i->shape) && !i->comp->async_wrapped ? inst_operand(i, 0) : NULL;
    if (!b || b->op != OP_BROADCAST || i->shape->layout || b->shape->layout || shape_count(b->shape) <= shape_count(inst_operand(b, 0)->shape))
        return NULL;
    int64_t dim = inst_ints(i, ATTR_DIMENSIONS).v[0];
    Ints    to = inst_ints(b, ATTR_DIMENSIONS);
    if (b->shape->dims[dim] == 0 || i->shape->dims[dim] % b->shape->dims[dim] != 0 || inst_operand(b, 0)->shape->layout)
        return NULL;
    int64_t parts = i->shape->dims[dim] / b->shape->dims[dim];
    for (int32_t k = 0; k < to.n; k++)
        if (to.v[k] == dim)
            return expand_broadcast(i, i->shape, gathered(i, inst_operand(b, 0), parts, k), to);
    return with_parts(cx, i, b, dim, parts);
}

bool pass_all_gather_bcast_reorder(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, reordered);
}
