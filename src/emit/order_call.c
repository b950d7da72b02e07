/* A transpose, or a copy to another layout, as dimensions that move: those of the result from the outermost to the innermost, dimensions that stay neighbours
 * as one, and short runs as one wider element:
 *
 *     bf16[8,128,12,64] -> [8,12,128,64]      axes 8, 12, 128 of runs of 64
 *     f32[100,50,2] -> [50,100,2]             axes 50, 100 of elements of 8 bytes */
#include "emit/order_call.h"

#include <string.h>

enum { LEAST = 4096, WIDEST = 16, MOST_RANK = 32, /* elements below which loops in the text are as good; bytes */
       THIN = 4 /* elements of a row, to or from: compilers interleave so few (8x3x224x224 of f32, features last: 1.3 ms by the runtime, 0.1) */,
       LONG = 32, LONG_BETWEEN = 16 /* elements of the other one, where neighbours come apart and where they come together */ };

static void widen(hlort_axes *x)
{
    const hlort_axis *last = x->n > 1 ? &x->axis[x->n - 1] : NULL;
    if (!last || last->from != 1 || last->count > WIDEST / x->bytes || (last->count & (last->count - 1)) != 0)
        return;
    x->bytes *= last->count;
    for (int64_t k = 0; k < x->n - 1; k++) {
        x->axis[k].to /= last->count;
        x->axis[k].from /= last->count;
    }
    x->axis[--x->n] = (hlort_axis){ 0 };
}

/* Neighbouring dimensions that were neighbours, too, are one. False: too many are left. */
static bool collapse(hlort_axes *x, const Shape *to, const int64_t *from)
{
    int64_t strides[MOST_RANK];
    shape_strides(to, strides);
    for (int32_t k = to->rank - 1; k >= 0; k--) {
        int64_t     d = layout_dim(to, k);
        hlort_axis *outer = x->n > 0 ? &x->axis[x->n - 1] : NULL;
        if (to->dims[d] == 1)
            continue;
        if (outer && outer->from == from[d] * to->dims[d])
            *outer = (hlort_axis){ outer->count * to->dims[d], strides[d], from[d] };
        else if (x->n < HLORT_MOST_AXES)
            x->axis[x->n++] = (hlort_axis){ to->dims[d], strides[d], from[d] };
        else
            return false;
    }
    return true;
}

/* A dimension so short beside a long one, as neighbours in the source or in the result, that loops which know its size are better. */
static bool is_thin(const hlort_axes *x)
{
    const hlort_axis *down = NULL, *across = NULL;
    for (int64_t k = 0; k < x->n; k++) {
        down = x->axis[k].to == 1 ? &x->axis[k] : down;
        across = x->axis[k].from == 1 ? &x->axis[k] : across;
    }
    if (!down || !across || down == across)
        return false;
    return (across->count <= THIN && down->from == across->count && down->count >= LONG) || (down->count <= THIN && across->to == down->count && across->count >= LONG_BETWEEN);
}

bool transpose_call(const Inst *i, const Shape *from, const Shape *to, OrderCall *out)
{
    const int64_t bits = type_bits(to->type);
    Ints          order = inst_ints(i, ATTR_DIMENSIONS);
    int64_t       own[MOST_RANK], strides[MOST_RANK]; /* the operand's, and in the result's order */
    *out = (OrderCall){ .symbol = "hlort_transpose", .n_operands = 1, .axes.bytes = bits / 8 };
    if (bits < 8 || from->type != to->type || to->rank > MOST_RANK || shape_count(to) < LEAST)
        return false;
    shape_strides(from, own);
    for (int32_t d = 0; d < to->rank; d++)
        strides[d] = own[i->op == OP_TRANSPOSE ? order.v[d] : d];
    if (!collapse(&out->axes, to, strides))
        return false;
    widen(&out->axes);
    return !is_thin(&out->axes);
}

bool order_call_equal(const OrderCall *x, const OrderCall *y)
{
    return x->symbol == y->symbol && x->n_operands == y->n_operands && x->positions == y->positions && memcmp(&x->axes, &y->axes, sizeof x->axes) == 0 && memcmp(&x->sort, &y->sort, sizeof x->sort) == 0;
}
