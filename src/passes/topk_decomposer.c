/* topk-decomposer - the first k of a line as the beginning of the sorted line.
 *
 *   %t = (f32[2,3], s32[2,3]) topk(%x), k=3, largest=true                      (%x is f32[2,8])
 *     =>
 *   %i = s32[2,8] iota(), iota_dimension=1
 *   %s = (f32[2,8], s32[2,8]) sort(%x, %i), dimensions={1}, is_stable=true, to_apply=%total_order_gt
 *   %v = f32[2,3] slice(...)      %p = s32[2,3] slice(...)      %t = (f32[2,3], s32[2,3]) tuple(%v, %p)
 *
 * In the total order of floats, as the opcode is defined; of equal values the first one comes first. */
#include "config.h"

#include "passes/expand.h"

/* (a, b, i, j) -> a before b, where i and j are their places. */
static Comp *comparator(const Inst *at, Type t, bool largest)
{
    Module      *m = at->comp->module;
    Comp        *c = comp_new(m, comp_unique_name(m, "before"));
    const Shape *value = shape_scalar(m->arena, t), *place = shape_scalar(m->arena, TYPE_S32);
    Inst        *x[] = {inst_parameter(c, NULL, 0, value, NULL), inst_parameter(c, NULL, 1, value, NULL)};
    inst_parameter(c, NULL, 2, place, NULL);
    inst_parameter(c, NULL, 3, place, NULL);
    c->root = inst_new(c, NULL, OP_COMPARE, shape_scalar(m->arena, TYPE_PRED), 2, x, NULL);
    inst_set_word(c->root, ATTR_DIRECTION, largest ? CMP_GT : CMP_LT);
    if (type_is_float(t))
        inst_set_word(c->root, ATTR_TYPE, CMP_TYPE_TOTALORDER);
    comp_move_before(c, at->comp);
    return c;
}

static Inst *decompose(PassCtx *cx, Inst *i)
{
    (void)cx;
    if (i->op != OP_TOPK || type_is_complex(inst_operand(i, 0)->shape->type) || shape_count(i->shape->elems[0]) <= 0)
        return NULL;
    Inst        *x = inst_operand(i, 0);
    Arena       *a = i->comp->module->arena;
    int32_t      last = x->shape->rank - 1;
    const Shape *places = shape_array(a, TYPE_S32, x->shape->rank, x->shape->dims), *both[] = {x->shape, places};
    Inst        *sort = expand_op(i, OP_SORT, shape_tuple(a, 2, both), 2, (Inst *[]){x, expand_iota(i, places, last)});
    Comp        *before = comparator(i, x->shape->type, inst_int(i, ATTR_LARGEST, 1) != 0);
    inst_set_ints(sort, ATTR_DIMENSIONS, (Ints){(int64_t[]){last}, 1});
    inst_set_int(sort, ATTR_IS_STABLE, 1);
    inst_set_callees(sort, 1, &before);
    Inst *parts[2];
    for (int32_t k = 0; k < 2; k++) {
        parts[k] = expand_slice(i, expand_element(i, sort, k), last, 0, i->shape->elems[k]->dims[last]);
        parts[k]->shape = i->shape->elems[k];
    }
    return expand_tuple(i, 2, parts);
}

bool pass_topk_decomposer(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, decompose);
}
