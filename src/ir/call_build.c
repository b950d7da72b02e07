/* Instructions are built at the end of the body, one after the other. */
#include "ir/call_build.h"

Inst *build_refuse(Build *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    b->why = arena_vprintf(b->arena, fmt, ap);
    va_end(ap);
    return NULL;
}

bool build_known(const Inst *x, int64_t k, int64_t *v)
{
    if (x->op == OP_IOTA && x->shape->rank == 1) {
        *v = k;
        return true;
    }
    if (x->op == OP_BROADCAST && shape_is_scalar(inst_operand(x, 0)->shape)) {
        x = inst_operand(x, 0);
        k = 0;
    }
    if (x->op != OP_CONSTANT || x->literal->elided)
        return false;
    *v = literal_get_s64(x->literal, k);
    return true;
}

const Shape *build_dense(Build *b, Type t, const Shape *dims)
{
    return shape_array(b->module->arena, t, dims->rank, dims->dims);
}

Inst *build_unary(Build *b, Op op, Type t, Inst *x)
{
    return inst_new(b->body, NULL, op, build_dense(b, t, x->shape), 1, &x, NULL);
}

Inst *build_binary(Build *b, Op op, Inst *x, Inst *y)
{
    return inst_new(b->body, NULL, op, x->shape, 2, (Inst *const[]){ x, y }, NULL);
}

static Inst *spread(Build *b, const Shape *like, Literal *value)
{
    Inst *x = inst_constant(b->body, NULL, value, NULL);
    return like->rank == 0 ? x : inst_new(b->body, NULL, OP_BROADCAST, like, 1, &x, NULL);
}

Inst *build_whole(Build *b, const Shape *like, int64_t v)
{
    return spread(b, like, literal_from_s64(like->type, v));
}

Inst *build_real(Build *b, const Shape *like, double v)
{
    return spread(b, like, literal_from_f64(like->type, v));
}

Inst *build_compare(Build *b, Inst *x, Inst *y, Word direction)
{
    Inst *r = inst_new(b->body, NULL, OP_COMPARE, build_dense(b, TYPE_PRED, x->shape), 2, (Inst *const[]){ x, y }, NULL);
    inst_set_word(r, ATTR_DIRECTION, direction);
    return r;
}

Inst *build_select(Build *b, Inst *which, Inst *yes, Inst *no)
{
    return inst_new(b->body, NULL, OP_SELECT, yes->shape, 3, (Inst *const[]){ which, yes, no }, NULL);
}

Inst *build_tuple(Build *b, int32_t n, Inst *const *x)
{
    const Shape **shapes = ARENA_ARRAY(b->module->arena, const Shape *, n);
    for (int32_t k = 0; k < n; k++)
        shapes[k] = x[k]->shape;
    return inst_new(b->body, NULL, OP_TUPLE, shape_tuple(b->module->arena, n, shapes), n, x, NULL);
}

Inst *build_element(Build *b, Inst *whole, int32_t k)
{
    Inst *x = inst_new(b->body, NULL, OP_GET_TUPLE_ELEMENT, whole->shape->elems[k], 1, &whole, NULL);
    inst_set_int(x, ATTR_INDEX, k);
    return x;
}

bool build_takes(Build *b, int32_t n)
{
    if (b->call->n_operands == n)
        return true;
    build_refuse(b, "it takes %d operand%s, not %d", n, n == 1 ? "" : "s", b->call->n_operands);
    return false;
}

/* Operands are arrays of one type and, if same, of one shape. */
bool build_arrays(Build *b, bool same)
{
    for (int32_t k = 0; k < b->call->n_operands; k++) {
        const Shape *s = inst_operand(b->call, k)->shape, *first = inst_operand(b->call, 0)->shape;
        if (!shape_is_array(s) || (same && !shape_compatible(s, first))) {
            build_refuse(b, "it does not take %s as operand %d", shape_brief(b->arena, s), k);
            return false;
        }
    }
    return true;
}

const Shape *build_result(const Build *b, int32_t k)
{
    const Shape *s = b->call->shape;
    return shape_is_tuple(s) && k < s->n_elems ? s->elems[k] : s;
}
