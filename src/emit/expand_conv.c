/* A convolution whose features lie apart (channels first) as one of copies in which they are neighbours:
 *
 *     f16[8,32,14,14] convolution(x, w), dim_labels=bf01_oi01   =>   copy(convolution(copy(x), copy(w)))     layouts with features innermost
 *
 * Windows of the image are packed as rows of features then, or read in place, else a few pixels at a time: of f16 and bf16, whose elements are converted or paired on the way, where
 * lines of the result hold few pixels, and where windows overlap (measured, f32: 2 x 64 x 56 x 56 to 64 by 5 x 5 12.0 and 9.1 ms, 4 x 8 x 128 x 128 to 8 by 3 x 3 3.5 and 1.4, 4 x 16 x 128 x 128
 * to 64 by 4 x 4 that do not overlap 1.30 and 1.44).
 *
 * Windows of 3 of f16 that are worth fewer products (conv_call_fewer) are those of f32, of which the runtime has them. */
#include "emit/expand.h"

#include "analysis/memory.h"
#include "emit/conv_call.h"

enum { WORTH = 64 }; /* multiplications for each element that is converted */
enum { MOST_RANK = HLORT_MOST_SPATIAL + 2, LEAST_FEATURES = 8, MANY_TAPS = 16 /* with which fewer are read as well */, MOST_WINDOW = 5,
       FEW_PIXELS = 12, SOME_PIXELS = 16 /* of a line: where there are fewer products, where not */,
       SEVERAL = 2 /* windows that a pixel is in */ };

/* The layout in which these dimensions are the fastest ones and the others follow as they did. */
static const Shape *with_fastest(Arena *a, const Shape *s, int32_t n, const int64_t *first)
{
    int64_t order[MOST_RANK];
    int32_t at = 0;
    for (int32_t k = 0; k < n; k++)
        order[at++] = first[k];
    for (int32_t k = 0; k < s->rank; k++) {
        bool taken = false;
        for (int32_t e = 0; e < n; e++)
            taken |= layout_dim(s, k) == first[e];
        if (!taken)
            order[at++] = layout_dim(s, k);
    }
    return expand_ordered(a, s, order);
}

bool conv_turns(const Inst *i)
{
    ConvCall c;
    int64_t  line = 0, taps = 1, strides = 1;
    if (i->op != OP_CONVOLUTION || i->n_operands != 2 || !shape_is_array(i->shape))
        return false;
    const Shape *x = inst_operand(i, 0)->shape, *w = inst_operand(i, 1)->shape;
    if (i->shape->rank > MOST_RANK || shape_is_dynamic(i->shape) || !conv_call(i, x, w, i->shape, &c))
        return false;
    const hlort_conv *v = &c.v;
    for (int64_t d = 0; d < v->n_spatial; d++) {
        line = v->spatial[d].y == 1 || v->spatial[d].x == 1 ? v->spatial[d].out : line;
        taps *= v->spatial[d].window;
        strides *= v->spatial[d].stride;
        if (v->spatial[d].base_dilation > 1 || (v->spatial[d].window > MOST_WINDOW && 2 * v->spatial[d].window > v->spatial[d].out)) /* a filter's gradient reads the image as it lies */
            return false;
    }
    const bool half = c.in == TYPE_F16 || c.in == TYPE_BF16, real = half || c.in == TYPE_F32 || c.in == TYPE_F64;
    const bool apart = v->x_in != 1 || v->y_out != 1, fewer = conv_call_fewer(&c, i), again = !fewer && taps >= SEVERAL * strides;
    const bool some = half || (line > 0 && (again || line < (fewer ? FEW_PIXELS : SOME_PIXELS)));
    return real && some && apart && v->groups == 1 && (v->in >= LEAST_FEATURES || taps >= MANY_TAPS) && v->out >= LEAST_FEATURES && taps > 1;
}

bool conv_widens(const Inst *i)
{
    ConvCall     c;
    const Shape *x = inst_operand(i, 0)->shape, *w = inst_operand(i, 1)->shape;
    if (i->n_operands != 2 || !shape_is_array(i->shape) || i->shape->type != TYPE_F16 || x->type != TYPE_F16 || w->type != TYPE_F16 || shape_is_dynamic(i->shape))
        return false;
    Arena     *a = arena_new();
    const bool called = conv_call(i, shape_with_type(a, x, TYPE_F32), shape_with_type(a, w, TYPE_F32), shape_with_type(a, i->shape, TYPE_F32), &c);
    const bool widens = called && conv_call_fewer(&c, i) && conv_call_cost(&c) >= WORTH * (double)(shape_count(x) + shape_count(w) + shape_count(i->shape));
    arena_free(a);
    return widens;
}

/* x with these dimensions as the fastest ones, in front of i. */
static Inst *copied(Inst *i, Inst *x, int32_t n, const int64_t *first)
{
    const Shape *s = with_fastest(i->comp->module->arena, x->shape, n, first);
    if (shape_same_memory(s, x->shape))
        return x;
    x = inst_new(i->comp, i, OP_COPY, s, 1, &x, NULL);
    x->meta = i->meta;
    x->loc = i->loc;
    return x;
}

void expand_conv(Inst *i)
{
    const DimLabels *l = inst_attr(i, ATTR_DIM_LABELS)->value.dim_labels;
    Arena           *a = i->comp->module->arena;
    Inst            *of[2] = { inst_operand(i, 0), inst_operand(i, 1) };
    const int64_t    first[2][2] = { { l->lhs_feature }, { l->rhs_out, l->rhs_in } };
    for (int32_t k = 0; k < 2; k++)
        of[k] = copied(i, of[k], k + 1, first[k]);
    Inst *conv = inst_clone_into(i->comp, i, i, 2, of);
    conv->shape = with_fastest(a, i->shape, 1, &l->out_feature);
    Inst *back = conv;
    if (shape_same_memory(conv->shape, i->shape)) {
        conv->shape = i->shape;
    } else {
        back = inst_new(i->comp, i, OP_COPY, i->shape, 1, &conv, NULL);
        back->meta = i->meta;
        back->loc = i->loc;
    }
    inst_replace(i, back);
    inst_delete(i);
}
