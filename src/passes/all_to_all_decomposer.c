/* all_to_all_decomposer - an array that is cut and put together again is exchanged as its parts.
 *
 *   %r = f32[4] all-to-all(%x), replica_groups={{0,1}}, dimensions={0}
 *     =>
 *   %a = f32[2] slice(%x), slice={[0:2]}      %b = f32[2] slice(%x), slice={[2:4]}
 *   %t = (f32[2], f32[2]) all-to-all(%a, %b), replica_groups={{0,1}}
 *   %r = f32[4] concatenate(%t.0, %t.1), dimensions={0}
 *
 * Where groups are written, since as many parts are made as a group has devices. */
#include "config.h"

#include "ir/groups.h"
#include "passes/expand.h"

static Inst *parts(PassCtx *cx, Inst *i)
{
    if (i->op != OP_ALL_TO_ALL || i->n_operands != 1 || !shape_is_array(i->shape) || i->comp->async_wrapped || !inst_ints(i, ATTR_DIMENSIONS).n)
        return NULL;
    Inst    *x = inst_operand(i, 0);
    int32_t  dim = (int32_t)inst_ints(i, ATTR_DIMENSIONS).v[0];
    bool     good;
    IntsList groups = group_lists(cx->scratch, i, &good);
    int32_t  n = good && groups.n && group_mode(i) != GROUP_CROSS_BOTH ? groups.v[0].n : 0;
    if (n == 0 || x->shape->dims[dim] % n)
        return NULL;
    int64_t       size = x->shape->dims[dim] / n, along = dim;
    Inst        **v = ARENA_ARRAY(cx->scratch, Inst *, n);
    const Shape **shapes = ARENA_ARRAY(cx->scratch, const Shape *, n);
    for (int32_t k = 0; k < n; k++) {
        v[k] = expand_slice(i, x, dim, k * size, (k + 1) * size);
        shapes[k] = v[k]->shape;
    }
    Inst *t = expand_like(i, shape_tuple(i->comp->module->arena, n, shapes), n, v);
    inst_drop_attr(t, ATTR_DIMENSIONS);
    for (int32_t k = 0; k < n; k++)
        v[k] = expand_element(i, t, k);
    Inst *r = expand_op(i, OP_CONCATENATE, i->shape, n, v);
    inst_set_ints(r, ATTR_DIMENSIONS, (Ints){&along, 1});
    return r;
}

bool pass_all_to_all_decomposer(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, parts);
}
