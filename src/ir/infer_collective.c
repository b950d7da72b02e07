/* Collectives. Sizes that depend on the number of participants are as written; that they agree with the groups is checked by the
 * verifier, which knows the module. Source: reference operations 16. */
#include "ir/infer_rules.h"

const Shape *infer_device_id(const Infer *x) { return shape_scalar(x->a, TYPE_U32); }

/* Operands are arrays, the result has their shapes: one, or a tuple. */
static const Shape *like_operands(const Infer *x)
{
    if (x->i->n_operands == 0)
        return infer_fail(x, "expects an operand");
    if (!infer_are_arrays(x))
        return NULL;
    return infer_one_or_tuple(x, x->i->n_operands, infer_operand_shapes(x, 0, x->i->n_operands));
}

/* (t, t) -> t for scalars of one type: arithmetic is that of the elements. */
static bool check_fold(const Infer *x)
{
    const Shape *r = callee_result(x, 0);
    if (!infer_callee_arity(x, 0, 2))
        return false;
    if (!shape_is_scalar(r))
        return infer_bad(x, "%%%s must return a scalar, returns %s", inst_callee(x->i, 0)->name, infer_text(x, r));
    for (int32_t k = 0; k < 2; k++)
        if (!shape_compatible(callee_param(x, 0, k), r))
            return infer_bad(x, "parameter %d of %%%s must be %s, is %s", k, inst_callee(x->i, 0)->name, infer_text(x, r),
                             infer_text(x, callee_param(x, 0, k)));
    for (int32_t k = 0; k < x->i->n_operands; k++)
        if (!type_same_kind(operand_shape(x, k)->type, r->type))
            return infer_bad(x, "%%%s works on %s, operand %d is %s", inst_callee(x->i, 0)->name, type_name(r->type), k,
                             infer_text(x, operand_shape(x, k)));
    return true;
}

const Shape *infer_all_reduce(const Infer *x)
{
    const Shape *s = like_operands(x);
    return s && check_fold(x) ? s : NULL;
}

const Shape *infer_all_reduce_done(const Infer *x) { return operand_shape(x, 0); }

/* An extra last operand s32[count] names the root where it is dynamic. */
static const Shape *rooted(const Infer *x)
{
    if (!inst_bool(x->i, ATTR_HAS_DYNAMIC_ROOT))
        return like_operands(x);
    int32_t n = x->i->n_operands - 1;
    if (n < 1)
        return infer_fail(x, "expects an operand and the root");
    if (!infer_are_arrays(x))
        return NULL;
    const Shape *root = operand_shape(x, n);
    if (root->type != TYPE_S32 || root->rank > 1)
        return infer_fail(x, "the root must be s32 of rank 0 or 1, got %s", infer_text(x, root));
    return infer_one_or_tuple(x, n, infer_operand_shapes(x, 0, n));
}

const Shape *infer_collective_broadcast(const Infer *x) { return rooted(x); }

const Shape *infer_collective_reduce(const Infer *x)
{
    const Shape *s = rooted(x);
    return s && check_fold(x) ? s : NULL;
}

/* Result k has the operand's dimensions but for the one that the participants share. */
static bool check_resized(const Infer *x, const Shape *s, const Shape *r, int64_t d)
{
    if (d < 0 || d >= s->rank)
        return infer_bad(x, "dimension %lld is out of range for %s", (long long)d, infer_text(x, s));
    bool ok = shape_is_array(r) && r->rank == s->rank && type_same_kind(r->type, s->type);
    for (int32_t k = 0; ok && k < s->rank; k++)
        ok = k == d ? r->dims[k] >= 0 : r->dims[k] == s->dims[k];
    return ok || infer_bad(x, "cannot make %s from %s along dimension %lld", infer_text(x, r), infer_text(x, s), (long long)d);
}

/* w is the written result: one array or a tuple. */
static const Shape *resized(const Infer *x, const Shape *w)
{
    int32_t n = x->i->n_operands;
    Ints    dims = inst_ints(x->i, ATTR_DIMENSIONS);
    if (n == 0)
        return infer_fail(x, "expects an operand");
    if (dims.n != 1)
        return infer_fail(x, "dimensions must name one dimension, got %d of them", dims.n);
    if (!infer_are_arrays(x))
        return NULL;
    if (n > 1 && (!shape_is_tuple(w) || w->n_elems != n))
        return infer_fail(x, "must return a tuple of %d arrays, not %s", n, infer_text(x, w));
    const Shape **elems = ARENA_ARRAY(x->a, const Shape *, n);
    for (int32_t k = 0; k < n; k++) {
        const Shape *r = n == 1 ? w : w->elems[k];
        if (!check_resized(x, operand_shape(x, k), r, dims.v[0]))
            return NULL;
        elems[k] = shape_with_type(x->a, r, operand_shape(x, k)->type);
    }
    return infer_one_or_tuple(x, n, elems);
}

const Shape *infer_all_gather(const Infer *x) { return resized(x, x->i->shape); }

/* (operand or tuple of operands, result) */
const Shape *infer_all_gather_start(const Infer *x)
{
    const Shape *w = x->i->shape;
    if (!shape_is_tuple(w) || w->n_elems != 2)
        return infer_fail(x, "must return (operands, result), not %s", infer_text(x, w));
    const Shape *r = resized(x, w->elems[1]);
    if (!r)
        return NULL;
    const Shape *elems[2] = {infer_one_or_tuple(x, x->i->n_operands, infer_operand_shapes(x, 0, x->i->n_operands)), r};
    return shape_tuple(x->a, 2, elems);
}

const Shape *infer_reduce_scatter(const Infer *x)
{
    const Shape *s = resized(x, x->i->shape);
    return s && check_fold(x) ? s : NULL;
}

/* Element 1 of the start's (operands, result, ...). */
const Shape *infer_collective_done(const Infer *x)
{
    const Shape *s = operand_shape(x, 0);
    if (!shape_is_tuple(s) || s->n_elems < 2)
        return infer_fail(x, "expects the result of a start, got %s", infer_text(x, s));
    return s->elems[1];
}

const Shape *infer_all_to_all(const Infer *x)
{
    const Attr *along = inst_attr(x->i, ATTR_DIMENSIONS);
    int32_t     n = x->i->n_operands;
    if (n == 0)
        return infer_fail(x, "expects an operand");
    if (!infer_are_arrays(x))
        return NULL;
    if (along) { /* one array, cut along the dimension */
        if (n != 1)
            return infer_fail(x, "with dimensions expects 1 operand, has %d", n);
        return infer_one_dimension(x, operand_shape(x, 0)->rank) < 0 ? NULL : operand_shape(x, 0);
    }
    for (int32_t k = 1; k < n; k++)
        if (!shape_compatible(operand_shape(x, 0), operand_shape(x, k)))
            return infer_fail(x, "operands must have one type, got %s and %s", infer_text(x, operand_shape(x, 0)),
                              infer_text(x, operand_shape(x, k)));
    return shape_tuple(x->a, n, infer_operand_shapes(x, 0, n));
}

const Shape *infer_ragged_all_to_all(const Infer *x)
{
    if (x->i->n_operands != 6)
        return infer_fail(x, "expects 6 operands, has %d", x->i->n_operands);
    if (!infer_are_arrays(x) || !infer_same_type(x, 0, 1))
        return NULL;
    const Shape *in = operand_shape(x, 0), *out = operand_shape(x, 1), *index = operand_shape(x, 2);
    if (in->rank == 0 || out->rank != in->rank)
        return infer_fail(x, "input and output must have one rank above 0, got %s and %s", infer_text(x, in), infer_text(x, out));
    if (index->rank < 1 || index->rank > 2 || !type_is_int(index->type))
        return infer_fail(x, "offsets and sizes must be integers of rank 1 or 2, got %s", infer_text(x, index));
    for (int32_t k = 3; k < 6; k++)
        if (!shape_compatible(index, operand_shape(x, k)))
            return infer_fail(x, "offsets and sizes must have one type, got %s and %s", infer_text(x, index),
                              infer_text(x, operand_shape(x, k)));
    return out;
}

/* The form in place, (in, out, in_offsets, out_offsets) with slice_sizes, returns out. */
static bool in_place(const Infer *x) { return inst_attr(x->i, ATTR_SLICE_SIZES) != NULL; }

static const Shape *permuted(const Infer *x)
{
    if (!in_place(x))
        return like_operands(x);
    if (x->i->n_operands != 4)
        return infer_fail(x, "with slice_sizes expects 4 operands, has %d", x->i->n_operands);
    return operand_shape(x, 1);
}

const Shape *infer_collective_permute(const Infer *x) { return permuted(x); }

/* (operands, result, context...), in place (in, out, context...): context as written */
const Shape *infer_collective_permute_start(const Infer *x)
{
    const Shape *w = x->i->shape, *r = permuted(x);
    int32_t      n = x->i->n_operands;
    if (!r)
        return NULL;
    if (!shape_is_tuple(w) || w->n_elems < 2)
        return infer_fail(x, "must return (operands, result, ...), not %s", infer_text(x, w));
    const Shape **elems = ARENA_ARRAY(x->a, const Shape *, w->n_elems);
    elems[0] = in_place(x) ? operand_shape(x, 0) : infer_one_or_tuple(x, n, infer_operand_shapes(x, 0, n));
    elems[1] = r;
    for (int32_t k = 2; k < w->n_elems; k++)
        elems[k] = w->elems[k];
    return shape_tuple(x->a, w->n_elems, elems);
}
