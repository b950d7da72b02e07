/* convert_operand_folding - dots and convolutions of narrow operands, whose products are of the wide type anyway.
 *
 *   %a = s32[2,3] convert(%x)      %b = s32[3,4] convert(%y)      %d = s32[2,4] dot(%a, %b), ...        (%x is s8[2,3], %y is s8[3,4])
 *     =>
 *   %d = s32[2,4] dot(%x, %y), ...
 *
 * Both operands widen one type, whose values the result's type has; between convert and operand there may be reshapes, transposes and slices. The opposite of
 * operand_upcaster, for whoever has products of narrow operands. */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"

enum { MAX_STEPS = 8 };

static bool only_moves(const Inst *i)
{
    return i->op == OP_RESHAPE || i->op == OP_TRANSPOSE || i->op == OP_SLICE;
}

/* The type that x widens, TYPE_COUNT when there is none. */
static Type widened(const Inst *x)
{
    for (int n = 0; n < MAX_STEPS && only_moves(x); n++)
        x = inst_operand(x, 0);
    if (x->op != OP_CONVERT || !inst_is_free(x))
        return TYPE_COUNT;
    Type from = inst_operand(x, 0)->shape->type, to = x->shape->type;
    if (type_is_float(to))
        return type_is_float(from) && type_bits(from) < type_bits(to) && (to == TYPE_F32 || to == TYPE_F64) ? from : TYPE_COUNT;
    if (!type_is_int(from) || !type_is_int(to) || type_bits(from) >= type_bits(to))
        return TYPE_COUNT;
    return type_is_unsigned_int(from) == type_is_unsigned_int(to) ? from : TYPE_COUNT;
}

/* x before it was widened, moved as it was after. */
static Inst *narrow(Inst *at, const Inst *x)
{
    const Inst *steps[MAX_STEPS];
    int         n = 0;
    for (; only_moves(x); x = inst_operand(x, 0))
        steps[n++] = x;
    Inst *v = inst_operand(x, 0);
    while (n-- > 0) {
        v = expand_op(at, steps[n]->op, shape_with_type(at->comp->module->arena, steps[n]->shape, v->shape->type), 1, &v);
        inst_take_attrs(v, steps[n]);
    }
    return v;
}

static Inst *fold(PassCtx *cx, Inst *i)
{
    (void)cx;
    if ((i->op != OP_DOT && i->op != OP_CONVOLUTION) || i->n_operands != 2 || inst_attr(i, ATTR_SPARSITY_CONFIG) ||
        inst_attr(i, ATTR_BLOCK_SCALING_CONFIG) || inst_attr(i, ATTR_ALGORITHM))
        return NULL;
    Type from = widened(inst_operand(i, 0));
    if (from == TYPE_COUNT || widened(inst_operand(i, 1)) != from || inst_operand(i, 0)->shape->type != i->shape->type ||
        inst_operand(i, 1)->shape->type != i->shape->type)
        return NULL;
    return expand_like(i, i->shape, 2, (Inst *[]){narrow(i, inst_operand(i, 0)), narrow(i, inst_operand(i, 1))});
}

bool pass_convert_operand_folding(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, fold);
}
