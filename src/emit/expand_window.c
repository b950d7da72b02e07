/* Windows that overlap by whole strides share what they have in common: a result for each stride, then windows over those.
 *
 *     r = reduce-window(x, init), window={size=1x32 stride=1x8}   =>   p = reduce-window(x, 0), window={size=1x8 stride=1x8}
 *                                                                      r = reduce-window(p, init), window={size=1x4}
 *
 * Padding in front stays where it is, what is behind the last window is cut off:  p[b] = x[b*8 - pad .. b*8 - pad + 7],  r[o] = p[o] + p[o+1] + p[o+2] + p[o+3].
 * The order of a sum is another one, with shorter chains; narrow floats would round once more in between and stay as they are. */
#include "emit/expand.h"

#include "ir/infer.h"
#include "passes/util.h"

enum { LEAST_WORK = 1 << 15 /* elements of all windows */ };

/* What is saved pays for the pass over the shared results: reading one counts as two. */
static bool is_shared(const WindowDim *v)
{
    const int64_t parts = v->stride > 1 && v->size % v->stride == 0 ? v->size / v->stride : 1;
    return parts > 1 && v->window_dilation == 1 && v->base_dilation == 1 && !v->reversal && (v->stride + parts + 2) * 4 <= v->size * 3;
}

/* The dimension whose windows share most; -1: none. */
static int32_t shared_dim(const Inst *r)
{
    const Window *w = inst_window(r);
    int32_t       best = -1;
    for (int32_t d = 0; d < w->n; d++)
        if (is_shared(&w->v[d]) && (best < 0 || w->v[d].size > w->v[best].size))
            best = d;
    return best;
}

bool window_expands(const Inst *i)
{
    const Inst *r = i->op == OP_FUSION && i->n_callees == 1 ? inst_callee(i, 0)->root : i;
    if (r->op != OP_REDUCE_WINDOW || r->n_operands != 2 || inst_operand(r, 0)->shape->type != r->shape->type || !reduction_has_parts(r) || shared_dim(r) < 0)
        return false;
    int64_t work = shape_count(r->shape);
    for (int32_t d = 0; d < inst_window(r)->n && work < LEAST_WORK; d++)
        work *= inst_window(r)->v[d].size;
    return work >= LEAST_WORK && (r == i || inst_operand(r, 1)->op == OP_PARAMETER || inst_operand(r, 1)->op == OP_CONSTANT);
}

static Inst *windows(Inst *at, const Inst *r, const Shape *shape, Inst *x, Inst *start, const WindowDim *v)
{
    Window *w = ARENA_NEW(at->comp->module->arena, Window);
    Inst   *p = inst_new(at->comp, at, OP_REDUCE_WINDOW, shape, 2, (Inst *const[]){ x, start }, NULL);
    Comp   *by = inst_callee(r, 0);
    *w = (Window){ shape->rank, v };
    inst_set_attr(p, (Attr){ .id = ATTR_WINDOW, .value.window = w });
    inst_set_callees(p, 1, &by);
    p->meta = at->meta;
    p->loc = at->loc;
    return p;
}

/* A result for each stride, in front of r. */
static Inst *stride_results(Inst *r)
{
    Arena        *a = r->comp->module->arena;
    Inst         *x = inst_operand(r, 0);
    const int32_t rank = x->shape->rank, d = shared_dim(r);
    const WindowDim of = inst_window(r)->v[d];
    WindowDim    *v = ARENA_ARRAY(a, WindowDim, rank);
    int64_t      *dims = ARENA_ARRAY(a, int64_t, rank);
    for (int32_t k = 0; k < rank; k++) {
        v[k] = (WindowDim){ .size = 1, .stride = 1, .base_dilation = 1, .window_dilation = 1 };
        dims[k] = x->shape->dims[k];
    }
    const int64_t n = r->shape->dims[d] - 1 + of.size / of.stride;
    v[d].size = v[d].stride = of.stride;
    v[d].pad_lo = of.pad_lo;
    v[d].pad_hi = n * of.stride - dims[d] - of.pad_lo;
    dims[d] = n;
    return windows(r, r, shape_array(a, x->shape->type, rank, dims), x, reduction_start_of_part(r), v);
}

/* Windows over them, where i was. */
static void join_strides(Inst *i, const Inst *r, Inst *parts, Inst *start)
{
    const int32_t rank = r->shape->rank, d = shared_dim(r);
    WindowDim    *v = ARENA_ARRAY(i->comp->module->arena, WindowDim, rank);
    for (int32_t k = 0; k < rank; k++)
        v[k] = inst_window(r)->v[k];
    v[d] = (WindowDim){ .size = v[d].size / v[d].stride, .stride = 1, .base_dilation = 1, .window_dilation = 1 };
    inst_replace(i, windows(i, r, r->shape, parts, start, v));
    inst_delete(i);
}

void expand_windows(Inst *i)
{
    expand_in_two(i, stride_results, join_strides);
}
