/* Tokens, infeed and outfeed, send and recv, run-time sizes of dimensions. Source: reference operations 17 and 18. */
#include "ir/infer_rules.h"

static const Shape *token(const Infer *x) { return shape_scalar(x->a, TYPE_TOKEN); }

static bool is_token(const Infer *x, int32_t k)
{
    return shape_is_token(operand_shape(x, k)) ||
           infer_bad(x, "operand %d must be a token, got %s", k, infer_text(x, operand_shape(x, k)));
}

const Shape *infer_after_all(const Infer *x) { return token(x); }

/* (data, token): data is what is written */
static const Shape *data_and_token(const Infer *x, const Shape *data)
{
    const Shape *elems[2] = {data, token(x)};
    return shape_tuple(x->a, 2, elems);
}

const Shape *infer_infeed(const Infer *x)
{
    const Shape *w = x->i->shape;
    if (!is_token(x, 0))
        return NULL;
    if (!shape_is_tuple(w) || w->n_elems != 2)
        return infer_fail(x, "must return (data, token), not %s", infer_text(x, w));
    return data_and_token(x, w->elems[0]);
}

const Shape *infer_outfeed(const Infer *x)
{
    const Attr *a = inst_attr(x->i, ATTR_OUTFEED_SHAPE);
    if (!is_token(x, 1))
        return NULL;
    if (a && !shape_compatible(a->value.shape, operand_shape(x, 0)))
        return infer_fail(x, "outfeed_shape is %s, but the data are %s", infer_text(x, a->value.shape),
                          infer_text(x, operand_shape(x, 0)));
    return token(x);
}

/* (data, u32[], token) */
static const Shape *transfer_state(const Infer *x, const Shape *data)
{
    const Shape *elems[3] = {data, shape_scalar(x->a, TYPE_U32), token(x)};
    return shape_tuple(x->a, 3, elems);
}

const Shape *infer_send(const Infer *x) { return is_token(x, 1) ? transfer_state(x, operand_shape(x, 0)) : NULL; }

const Shape *infer_recv(const Infer *x)
{
    const Shape *w = x->i->shape;
    if (!is_token(x, 0))
        return NULL;
    if (!shape_is_tuple(w) || w->n_elems != 3)
        return infer_fail(x, "must return (data, u32[], token), not %s", infer_text(x, w));
    return transfer_state(x, w->elems[0]);
}

static bool is_transfer_state(const Infer *x)
{
    const Shape *s = operand_shape(x, 0);
    return (shape_is_tuple(s) && s->n_elems == 3 && shape_is_token(s->elems[2])) ||
           infer_bad(x, "operand 0 must be (data, u32[], token), got %s", infer_text(x, s));
}

const Shape *infer_send_done(const Infer *x) { return is_transfer_state(x) ? token(x) : NULL; }

const Shape *infer_recv_done(const Infer *x)
{
    return is_transfer_state(x) ? data_and_token(x, operand_shape(x, 0)->elems[0]) : NULL;
}

/* Sizes: the dimension whose size is an s32. */
static int32_t sized_dimension(const Infer *x)
{
    if (!infer_is_array(x, 0))
        return -1;
    const Shape *s = operand_shape(x, 0);
    int32_t      d = infer_one_dimension(x, s->rank);
    if (d >= 0 && s->dims[d] > INT32_MAX) {
        infer_bad(x, "dimension %d of %s does not fit s32", d, infer_text(x, s));
        return -1;
    }
    return d;
}

const Shape *infer_get_dimension_size(const Infer *x)
{
    return sized_dimension(x) < 0 ? NULL : shape_scalar(x->a, TYPE_S32);
}

const Shape *infer_set_dimension_size(const Infer *x)
{
    int32_t d = sized_dimension(x);
    if (d < 0)
        return NULL;
    const Shape *s = operand_shape(x, 0), *n = operand_shape(x, 1);
    if (!shape_is_scalar(n) || n->type != TYPE_S32)
        return infer_fail(x, "operand 1 must be s32[], got %s", infer_text(x, n));
    bool *dynamic = ARENA_ARRAY(x->a, bool, s->rank);
    for (int32_t k = 0; k < s->rank; k++)
        dynamic[k] = k == d || dim_is_dynamic(s, k);
    Shape *r = ARENA_NEW(x->a, Shape);
    *r = *s;
    r->dynamic = dynamic;
    return r;
}
