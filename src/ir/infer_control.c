/* while, conditional, call, fusion, custom-call, opt-barrier, asynchronous steps, copies.
 * Types between caller and callee agree exactly, layouts and dynamic marks aside. Source: reference operations 14, 15, 19. */
#include <string.h>

#include "ir/infer_rules.h"

static const char *callee_name(const Infer *x, int32_t k) { return inst_callee(x->i, k)->name; }

/* Parameter p of callee k takes s. */
static bool check_param(const Infer *x, int32_t k, int32_t p, const Shape *s)
{
    const Shape *q = callee_param(x, k, p);
    return shape_compatible(q, s) || infer_bad(x, "parameter %d of %%%s is %s, but gets %s", p, callee_name(x, k),
                                               infer_text(x, q), infer_text(x, s));
}

const Shape *infer_while(const Infer *x)
{
    const Shape *s = operand_shape(x, 0), *body = callee_result(x, 0), *cond = callee_result(x, 1);
    if (!infer_callee_arity(x, 0, 1) || !infer_callee_arity(x, 1, 1) || !check_param(x, 0, 0, s) || !check_param(x, 1, 0, s))
        return NULL;
    if (!shape_is_scalar(cond) || cond->type != TYPE_PRED)
        return infer_fail(x, "the condition %%%s must return pred[], returns %s", callee_name(x, 1), infer_text(x, cond));
    if (!shape_compatible(body, s))
        return infer_fail(x, "the body %%%s returns %s, but the state is %s", callee_name(x, 0), infer_text(x, body),
                          infer_text(x, s));
    return s;
}

/* Dynamic in one branch is dynamic in the result; of tuples only where both have the same structure, which has been checked. */
static const Shape *merge_branches(const Infer *x, const Shape *s, const Shape *t)
{
    if (!shape_is_tuple(s))
        return shape_is_array(s) ? infer_merge_dynamic(x, s, t) : s;
    const Shape **elems = ARENA_ARRAY(x->a, const Shape *, s->n_elems);
    for (int32_t k = 0; k < s->n_elems; k++)
        elems[k] = merge_branches(x, s->elems[k], t->elems[k]);
    return shape_tuple(x->a, s->n_elems, elems);
}

static bool check_selector(const Infer *x)
{
    const Shape *s = operand_shape(x, 0);
    if (!shape_is_scalar(s) || (s->type != TYPE_PRED && s->type != TYPE_S32))
        return infer_bad(x, "operand 0 must be pred[] or s32[], got %s", infer_text(x, s));
    if (s->type == TYPE_PRED && x->i->n_callees != 2)
        return infer_bad(x, "pred selects one of 2 branches, has %d", x->i->n_callees);
    return true;
}

const Shape *infer_conditional(const Infer *x)
{
    int32_t n = x->i->n_callees;
    if (n == 0)
        return infer_fail(x, "has no branch");
    if (x->i->n_operands != n + 1)
        return infer_fail(x, "expects an operand for each of %d branches, has %d", n, x->i->n_operands - 1);
    if (!check_selector(x))
        return NULL;
    const Shape *r = callee_result(x, 0);
    for (int32_t k = 0; k < n; k++) {
        const Shape *b = callee_result(x, k);
        if (!infer_callee_arity(x, k, 1) || !check_param(x, k, 0, operand_shape(x, k + 1)))
            return NULL;
        if (!shape_compatible(b, r))
            return infer_fail(x, "branches %%%s and %%%s return different types: %s and %s", callee_name(x, 0), callee_name(x, k),
                              infer_text(x, r), infer_text(x, b));
        if (shape_is_dynamic(b) && b != r)
            r = merge_branches(x, r, b);
    }
    return r;
}

static bool check_arguments(const Infer *x)
{
    if (!infer_callee_arity(x, 0, x->i->n_operands))
        return false;
    for (int32_t k = 0; k < x->i->n_operands; k++)
        if (!check_param(x, 0, k, operand_shape(x, k)))
            return false;
    return true;
}

const Shape *infer_call(const Infer *x) { return check_arguments(x) ? callee_result(x, 0) : NULL; }

const Shape *infer_fusion(const Infer *x) { return check_arguments(x) ? callee_result(x, 0) : NULL; }

const Shape *infer_opt_barrier(const Infer *x) { return operand_shape(x, 0); }

/* Asynchronous steps: ((arguments...), result, context...) */

/* The first two elements; the context is free. */
static bool is_async_shape(const Infer *x, const Shape *s)
{
    return (shape_is_tuple(s) && s->n_elems >= 2 && shape_is_tuple(s->elems[0])) ||
           infer_bad(x, "the type must be ((arguments), result, ...), got %s", infer_text(x, s));
}

/* The bound arguments are the first parameters of the wrapped computation, the result is (part of) its result. */
static bool check_wrapped(const Infer *x, const Shape *s)
{
    const Comp *c = inst_callee(x->i, 0);
    if (s->elems[0]->n_elems > c->n_params)
        return infer_bad(x, "%%%s has %d parameters, but %d arguments are bound", c->name, c->n_params, s->elems[0]->n_elems);
    for (int32_t k = 0; k < s->elems[0]->n_elems; k++)
        if (!check_param(x, 0, k, s->elems[0]->elems[k]))
            return false;
    return shape_compatible(s->elems[1], c->root->shape) ||
           infer_bad(x, "the result %s is not that of %%%s, %s", infer_text(x, s->elems[1]), c->name,
                     infer_text(x, c->root->shape));
}

const Shape *infer_async_start(const Infer *x)
{
    const Shape *s = x->i->shape;
    if (!is_async_shape(x, s))
        return NULL;
    if (s->elems[0]->n_elems != x->i->n_operands)
        return infer_fail(x, "%s has %d arguments, but there are %d operands", infer_text(x, s), s->elems[0]->n_elems,
                          x->i->n_operands);
    for (int32_t k = 0; k < x->i->n_operands; k++)
        if (!shape_compatible(s->elems[0]->elems[k], operand_shape(x, k)))
            return infer_fail(x, "argument %d is %s in the type, but operand %d is %s", k, infer_text(x, s->elems[0]->elems[k]),
                              k, infer_text(x, operand_shape(x, k)));
    return check_wrapped(x, s) ? s : NULL;
}

/* Binds more arguments: element 0 grows by the further operands. */
const Shape *infer_async_update(const Infer *x)
{
    const Inst *i = x->i;
    if (i->n_operands < 1)
        return infer_fail(x, "expects an operand");
    const Shape *s = i->shape, *p = operand_shape(x, 0);
    if (!is_async_shape(x, s) || !is_async_shape(x, p))
        return NULL;
    int32_t before = p->elems[0]->n_elems, more = i->n_operands - 1;
    if (s->elems[0]->n_elems != before + more)
        return infer_fail(x, "%d arguments were bound and %d are added, but the type is %s", before, more, infer_text(x, s));
    for (int32_t k = 0; k < before + more; k++) {
        const Shape *want = k < before ? p->elems[0]->elems[k] : operand_shape(x, k - before + 1);
        if (!shape_compatible(s->elems[0]->elems[k], want))
            return infer_fail(x, "argument %d is %s, not %s", k, infer_text(x, want), infer_text(x, s->elems[0]->elems[k]));
    }
    if (!shape_compatible(s->elems[1], p->elems[1]))
        return infer_fail(x, "the result changes from %s to %s", infer_text(x, p->elems[1]), infer_text(x, s->elems[1]));
    return s;
}

const Shape *infer_async_done(const Infer *x)
{
    const Shape *p = operand_shape(x, 0);
    return is_async_shape(x, p) ? p->elems[1] : NULL;
}

/* (destination, source, u32[] context) */
const Shape *infer_copy_start(const Infer *x)
{
    const Shape *s = operand_shape(x, 0), *elems[3] = {s, s, shape_scalar(x->a, TYPE_U32)};
    return shape_tuple(x->a, 3, elems);
}

const Shape *infer_copy_done(const Infer *x)
{
    const Shape *s = operand_shape(x, 0);
    if (!shape_is_tuple(s) || s->n_elems != 3)
        return infer_fail(x, "expects the result of copy-start, got %s", infer_text(x, s));
    return s->elems[0];
}

/* custom-call: the target's business, but for the layout constraints and the few targets that the verifier knows. */

static bool check_constraints(const Infer *x, const ShapeList *v)
{
    if (v->n != x->i->n_operands)
        return infer_bad(x, "operand_layout_constraints has %d entries for %d operands", v->n, x->i->n_operands);
    for (int32_t k = 0; k < v->n; k++)
        if (!shape_compatible(v->v[k], operand_shape(x, k)))
            return infer_bad(x, "operand_layout_constraints gives %s for operand %d, which is %s", infer_text(x, v->v[k]), k,
                             infer_text(x, operand_shape(x, k)));
    return true;
}

/* The same type with and without b(...). */
static bool same_but_buffer(const Shape *buffer, const Shape *array)
{
    Shape plain = *buffer;
    plain.buffer = false;
    return buffer->buffer && shape_is_array(array) && shape_compatible(&plain, array);
}

static const Shape *buffer_call(const Infer *x, const char *target)
{
    const Shape *w = x->i->shape;
    if (!strcmp(target, "CreateBuffer")) {
        if (x->i->n_operands != 0 || !w->buffer)
            return infer_fail(x, "CreateBuffer takes no operands and returns a buffer, here %d and %s", x->i->n_operands,
                              infer_text(x, w));
        return w;
    }
    bool pin = !strcmp(target, "Pin");
    if (x->i->n_operands != 1)
        return infer_fail(x, "%s expects 1 operand, has %d", target, x->i->n_operands);
    const Shape *s = operand_shape(x, 0);
    if (!same_but_buffer(pin ? w : s, pin ? s : w))
        return infer_fail(x, "%s makes %s of its operand's type, not %s from %s", target, pin ? "a buffer" : "an array",
                          infer_text(x, w), infer_text(x, s));
    return w;
}

const Shape *infer_custom_call(const Infer *x)
{
    const char *target = inst_string(x->i, ATTR_CUSTOM_CALL_TARGET);
    const Attr *constraints = inst_attr(x->i, ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    if (constraints && !check_constraints(x, constraints->value.shapes))
        return NULL;
    if (!strcmp(target, "CreateBuffer") || !strcmp(target, "Pin") || !strcmp(target, "Unpin"))
        return buffer_call(x, target);
    if (!strcmp(target, "GetRngSeed")) {
        if (x->i->n_operands != 0)
            return infer_fail(x, "GetRngSeed expects no operands, has %d", x->i->n_operands);
        return shape_scalar(x->a, TYPE_U64);
    }
    return x->i->shape;
}
