/* Windows that overlap by whole strides share what they have in common: a result for each stride, then windows over those.
 *
 *     r = reduce-window(x, init), window={size=1x32 stride=1x8}   =>   p = reduce-window(x, 0), window={size=1x8 stride=1x8}
 *                                                                      r = reduce-window(p, init), window={size=1x4}
 *
 * Padding in front stays where it is, what is behind the last window is cut off:  p[b] = x[b*8 - pad .. b*8 - pad + 7],  r[o] = p[o] + p[o+1] + p[o+2] + p[o+3].
 * The order of a sum is another one, with shorter chains; narrow floats would round once more in between and stay as they are.
 *
 * Windows that cover whole dimensions are reductions, whose rows have more forms (average pools over whole images):
 *
 *     r = f32[8,512,1,1] reduce-window(x, init), window={size=1x1x7x7}  =>  r = f32[8,512,1,1] reshape(f32[8,512] reduce(x, init), dimensions={2,3}) */
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

static bool is_whole(const Inst *r)
{
    const Window *w = inst_window(r);
    const Shape  *in = inst_operand(r, 0)->shape;
    bool          any = false;
    for (int32_t d = 0; d < w->n; d++) {
        const WindowDim *v = &w->v[d];
        if (v->pad_lo != 0 || v->pad_hi != 0 || v->base_dilation != 1 || v->window_dilation != 1 || (v->size == 1 ? v->stride != 1 : v->size != in->dims[d]))
            return false;
        any |= v->size > 1;
    }
    return any;
}

bool whole_window_expands(const Inst *i)
{
    return i->op == OP_REDUCE_WINDOW && i->n_operands == 2 && shape_is_array(i->shape) && inst_operand(i, 0)->shape->type == i->shape->type && reduction_has_parts(i) &&
           layout_is_row_major(i->shape) && layout_is_row_major(inst_operand(i, 0)->shape) && shape_count(inst_operand(i, 0)->shape) > 0 && is_whole(i);
}

void expand_whole_window(Inst *i)
{
    Arena       *a = i->comp->module->arena;
    const Shape *in = inst_operand(i, 0)->shape;
    int64_t     *kept = ARENA_ARRAY(a, int64_t, in->rank), *over = ARENA_ARRAY(a, int64_t, in->rank);
    int32_t      n_kept = 0, n_over = 0;
    Comp        *by = inst_callee(i, 0);
    for (int32_t d = 0; d < in->rank; d++) {
        if (inst_window(i)->v[d].size > 1)
            over[n_over++] = d;
        else
            kept[n_kept++] = in->dims[d];
    }
    Inst *r = inst_new(i->comp, i, OP_REDUCE, shape_array(a, i->shape->type, n_kept, kept), 2, (Inst *const[]){ inst_operand(i, 0), inst_operand(i, 1) }, NULL);
    inst_set_ints(r, ATTR_DIMENSIONS, (Ints){ .v = over, .n = n_over });
    inst_set_callees(r, 1, &by);
    Inst *as = inst_new(i->comp, i, OP_RESHAPE, i->shape, 1, &r, NULL);
    r->meta = as->meta = i->meta;
    r->loc = as->loc = i->loc;
    inst_replace(i, as);
    inst_delete(i);
}
