/* tree_reduction_rewriter - long sums as sums of sums of 32.
 *
 *   %r = f32[] reduce(%x, 0), dimensions={0}        (%x is f32[1000])
 *     =>
 *   %w = f32[32] reduce-window(%x, 0), window={size=32 stride=32 pad=12_12}      %r = f32[] reduce(%w, 0), dimensions={0}
 *
 * Again and again until no dimension has more than 32: errors of rounding grow with the logarithm of the length then. Shorter ones are summed whole at once. Where
 * the initial value changes nothing, of one array that has elements. No level runs it: the backends reduce in blocks by themselves. */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"

enum { SIZE = 32 };

static bool changes_nothing(Op op, const Literal *c)
{
    if (!c || type_is_complex(c->type))
        return false;
    double v = type_is_float(c->type) ? literal_get_f64(c, 0) : (double)literal_get_s64(c, 0);
    return (op == OP_ADD && v == 0) || (op == OP_MULTIPLY && v == 1) || op == OP_MAXIMUM || op == OP_MINIMUM || op == OP_AND || op == OP_OR;
}

static Inst *as_tree(PassCtx *cx, Inst *i)
{
    if (i->op != OP_REDUCE || i->n_operands != 2 || inst_operand(i, 0)->shape->type != i->shape->type || inst_operand(i, 0)->shape->layout ||
        shape_count(inst_operand(i, 0)->shape) <= 0 ||
        !changes_nothing(comp_binary_op(inst_callee(i, 0)), splat_value(inst_operand(i, 1))))
        return NULL;
    Arena       *a = i->comp->module->arena;
    Inst        *x = inst_operand(i, 0), *c = inst_operand(i, 1);
    const Shape *s = x->shape;
    WindowDim   *v = ARENA_ARRAY(a, WindowDim, s->rank);
    Ints         sizes = ints_make(cx->scratch, s->rank), dims = inst_ints(i, ATTR_DIMENSIONS);
    bool         any = false;
    for (int32_t k = 0; k < s->rank; k++) {
        int64_t length = s->dims[k], size = !ints_has(dims, k) ? 1 : length < SIZE ? length : SIZE, n = length / size + (length % size != 0), more = n * size - length;
        v[k] = (WindowDim){.size = size, .stride = size, .pad_lo = more / 2, .pad_hi = more - more / 2, .base_dilation = 1, .window_dilation = 1};
        *ints_at(sizes, k) = n;
        any |= size < length && size > 1;
    }
    if (!any)
        return NULL;
    Window *window = ARENA_NEW(a, Window);
    *window = (Window){s->rank, v};
    Inst *w = expand_op(i, OP_REDUCE_WINDOW, shape_array(a, s->type, s->rank, sizes.v), 2, (Inst *[]){x, c});
    inst_set_attr(w, (Attr){.id = ATTR_WINDOW, .value.window = window});
    inst_set_callees(w, 1, i->callees);
    return expand_like(i, i->shape, 2, (Inst *[]){w, c});
}

bool pass_tree_reduction_rewriter(Module *m, PassCtx *cx)
{
    bool any = false;
    while (cx->rewrites < cx->limit) {
        int64_t before = cx->rewrites;
        expand_each(m, cx, as_tree);
        if (cx->rewrites == before)
            break;
        any = true;
    }
    return any;
}
