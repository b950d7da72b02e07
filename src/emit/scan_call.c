/* Which reduce-windows are running sums, products or extremes along the dimension whose elements are neighbours:
 *
 *     reduce-window(x[m,n], start), window={size=1xn pad=0_0x(n-1)_0}      lines m, count n
 *     ... pad=0_0x0_(n-1)                                                  backward
 *
 * Narrow floats are rounded at each step, for which some lines go side by side. Other functions may want their order: loops in the text do those. */
#include "emit/scan_call.h"

#include "emit/lower.h"

enum { LEAST_COUNT = 64, LEAST = 4096, LEAST_LINES = 4 }; /* elements of a line, of all, lines of narrow floats: below that loops in the text are as good */

static bool set_type(hlort_scan *d, Type t)
{
    switch (t) {
    case TYPE_F32: d->type = HLORT_SCAN_F32; return true;
    case TYPE_F64: d->type = HLORT_SCAN_F64; return true;
    case TYPE_S32: case TYPE_U32: d->type = HLORT_SCAN_S32; return true;
    case TYPE_S64: case TYPE_U64: d->type = HLORT_SCAN_S64; return true;
    case TYPE_F16: d->type = HLORT_SCAN_F16; return d->lines >= LEAST_LINES;
    case TYPE_BF16: d->type = HLORT_SCAN_BF16; return d->lines >= LEAST_LINES;
    default: return false;
    }
}

/* Extremes of numbers without sign are in another order. */
static bool set_kind(hlort_scan *d, const Comp *reducer, Type t)
{
    const bool signless = t == TYPE_U32 || t == TYPE_U64;
    switch (apply_operation(reducer)) {
    case OP_ADD: d->kind = HLORT_SCAN_ADD; return true;
    case OP_MULTIPLY: d->kind = HLORT_SCAN_MULTIPLY; return true;
    case OP_MINIMUM: d->kind = HLORT_SCAN_MINIMUM; return !signless;
    case OP_MAXIMUM: d->kind = HLORT_SCAN_MAXIMUM; return !signless;
    default: return false;
    }
}

/* All elements up to each one, or from each one on, along dimension d; along the others each for itself. */
static bool set_direction(hlort_scan *s, const Inst *i, int32_t d)
{
    const Window *w = inst_window(i);
    for (int32_t k = 0; k < w->n; k++) {
        const WindowDim *v = &w->v[k];
        const int64_t    n = k == d ? inst_operand(i, 0)->shape->dims[k] : 1;
        if (v->size != n || v->stride != 1 || v->window_dilation != 1 || v->base_dilation != 1 || v->pad_lo + v->pad_hi != n - 1 || (v->pad_lo != 0 && v->pad_hi != 0))
            return false;
    }
    s->backward = w->v[d].pad_hi > 0;
    return true;
}

bool scan_call(const Inst *i, ScanCall *out)
{
    hlort_scan *d = &out->d;
    *out = (ScanCall){ .symbol = "hlort_scan_lines" };
    if (i->n_operands != 2 || !shape_is_array(i->shape))
        return false;
    const Shape *x = inst_operand(i, 0)->shape;
    const Comp  *reducer = inst_callee(i, 0);
    const Type   t = x->type;
    const int32_t last = x->rank > 0 ? (int32_t)layout_dim(x, 0) : -1;
    if (last < 0 || i->shape->type != t || inst_operand(i, 1)->shape->type != t || reducer->params[0]->shape->type != t || reducer->params[1]->shape->type != t || reducer->root->shape->type != t ||
        !layout_equal(x->layout, i->shape->layout, x->rank) || x->dims[last] < LEAST_COUNT || shape_count(x) < LEAST)
        return false;
    d->count = x->dims[last];
    d->lines = shape_count(x) / d->count;
    return set_type(d, t) && set_kind(d, reducer, t) && set_direction(d, i, last);
}

bool scan_call_equal(const ScanCall *x, const ScanCall *y)
{
    return x->d.kind == y->d.kind && x->d.type == y->d.type && x->d.backward == y->d.backward && x->d.lines == y->d.lines && x->d.count == y->d.count;
}
