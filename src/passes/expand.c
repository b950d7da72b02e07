/* New instructions stand in front of the one that they are for, so that operands stay before users and no pass meets its own work. */
#include "config.h"

#include "passes/expand.h"

#include "passes/util.h"

static bool reads_dynamic(const Inst *i)
{
    for (int32_t k = 0; k < i->n_operands; k++)
        if (shape_is_dynamic(inst_operand(i, k)->shape))
            return true;
    return false;
}

static void expand_one(PassCtx *cx, Inst *i, ExpandFn *expand)
{
    Inst *new_ = inst_is_free(i) && !reads_dynamic(i) ? expand(cx, i) : NULL;
    if (!new_)
        return;
    cx->did_at = i->name;
    inst_replace(i, new_);
    inst_delete_dead(i, cx->scratch);
    cx->rewrites++;
}

bool expand_each(Module *m, PassCtx *cx, ExpandFn *expand)
{
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next) {
        if (c->mark & (COMP_FUSED | COMP_OPAQUE))
            continue;
        for (Inst *i = c->first, *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            expand_one(cx, i, expand);
        }
    }
    return cx->rewrites > 0;
}

static Arena *arena_of(const Inst *at)
{
    return at->comp->module->arena;
}

static Inst *from(const Inst *at, Inst *i)
{
    i->meta = at->meta;
    i->loc = at->loc;
    return i;
}

Inst *expand_op(Inst *at, Op op, const Shape *shape, int32_t n, Inst *const *x)
{
    return from(at, inst_new(at->comp, at, op, shape, n, x, NULL));
}

Inst *expand_like(Inst *at, const Shape *shape, int32_t n, Inst *const *x)
{
    Inst *i = expand_op(at, at->op, shape, n, x);
    inst_take_attrs(i, at);
    inst_set_callees(i, at->n_callees, at->callees);
    return i;
}

Inst *expand_unary(Inst *at, Op op, Inst *x)
{
    return expand_op(at, op, x->shape, 1, &x);
}

Inst *expand_binary(Inst *at, Op op, Inst *x, Inst *y)
{
    return expand_op(at, op, x->shape, 2, (Inst *[]){x, y});
}

Inst *expand_convert(Inst *at, Op op, Type t, Inst *x)
{
    return x->shape->type == t ? x : expand_op(at, op, shape_with_type(arena_of(at), x->shape, t), 1, &x);
}

Inst *expand_reshape(Inst *at, const Shape *shape, Inst *x)
{
    return shape_equal(shape, x->shape) ? x : expand_op(at, OP_RESHAPE, shape, 1, &x);
}

Inst *expand_broadcast(Inst *at, const Shape *shape, Inst *x, Ints dims)
{
    Inst *b = expand_op(at, OP_BROADCAST, shape, 1, &x);
    inst_set_ints(b, ATTR_DIMENSIONS, dims);
    return b;
}

Inst *expand_transpose(Inst *at, Inst *x, Ints perm)
{
    const Shape *s = x->shape;
    Ints         dims = ints_make(arena_of(at), s->rank);
    for (int32_t k = 0; k < s->rank; k++)
        *ints_at(dims, k) = s->dims[perm.v[k]];
    Inst *t = expand_op(at, OP_TRANSPOSE, shape_array(arena_of(at), s->type, s->rank, dims.v), 1, &x);
    inst_set_ints(t, ATTR_DIMENSIONS, perm);
    return t;
}

Inst *expand_slice(Inst *at, Inst *x, int32_t dim, int64_t start, int64_t limit)
{
    const Shape *s = x->shape;
    Ints         dims = ints_make(arena_of(at), s->rank);
    SliceRange  *v = ARENA_ARRAY(arena_of(at), SliceRange, s->rank);
    for (int32_t k = 0; k < s->rank; k++) {
        v[k] = k == dim ? (SliceRange){start, limit, 1} : (SliceRange){0, s->dims[k], 1};
        *ints_at(dims, k) = v[k].limit - v[k].start;
    }
    Slices *slices = ARENA_NEW(arena_of(at), Slices);
    *slices = (Slices){s->rank, v};
    Inst *i = expand_op(at, OP_SLICE, shape_array(arena_of(at), s->type, s->rank, dims.v), 1, &x);
    inst_set_attr(i, (Attr){.id = ATTR_SLICE, .value.slices = slices});
    return i;
}

static Inst *splat(Inst *at, const Shape *like, Literal *v)
{
    Inst *c = from(at, inst_constant(at->comp, at, v, NULL));
    return like->rank == 0 ? c : expand_broadcast(at, like, c, (Ints){NULL, 0});
}

Inst *expand_number(Inst *at, const Shape *like, double v)
{
    return splat(at, like, literal_from_f64(like->type, v));
}

Inst *expand_integer(Inst *at, const Shape *like, int64_t v)
{
    return splat(at, like, literal_from_s64(like->type, v));
}

Inst *expand_compare(Inst *at, Inst *x, Inst *y, Word direction)
{
    Inst *c = expand_op(at, OP_COMPARE, shape_with_type(arena_of(at), x->shape, TYPE_PRED), 2, (Inst *[]){x, y});
    inst_set_word(c, ATTR_DIRECTION, direction);
    return c;
}

Inst *expand_iota(Inst *at, const Shape *shape, int32_t dim)
{
    Inst *i = expand_op(at, OP_IOTA, shape, 0, NULL);
    inst_set_int(i, ATTR_IOTA_DIMENSION, dim);
    return i;
}

Inst *expand_tuple(Inst *at, int32_t n, Inst *const *x)
{
    const Shape **shapes = ARENA_ARRAY(arena_of(at), const Shape *, n);
    for (int32_t k = 0; k < n; k++)
        shapes[k] = x[k]->shape;
    return expand_op(at, OP_TUPLE, shape_tuple(arena_of(at), n, shapes), n, x);
}

Inst *expand_element(Inst *at, Inst *tuple, int32_t k)
{
    Inst *e = expand_op(at, OP_GET_TUPLE_ELEMENT, tuple->shape->elems[k], 1, &tuple);
    inst_set_int(e, ATTR_INDEX, k);
    return e;
}

Comp *expand_reducer(const Inst *at, Op op, Type t)
{
    Module      *m = at->comp->module;
    const Shape *scalar = shape_scalar(m->arena, t);
    Comp        *c = comp_new(m, comp_unique_name(m, op_name(op)));
    Inst        *x[] = {inst_parameter(c, NULL, 0, scalar, NULL), inst_parameter(c, NULL, 1, scalar, NULL)};
    c->root = inst_new(c, NULL, op, scalar, 2, x, NULL);
    c->mark = COMP_EMBEDDED;
    comp_move_before(c, at->comp);
    return c;
}

Inst *expand_sum(Inst *at, const Shape *shape, Inst *x, Ints dims)
{
    Inst *zero = expand_integer(at, shape_scalar(arena_of(at), x->shape->type), 0);
    Inst *r = expand_op(at, OP_REDUCE, shape, 2, (Inst *[]){x, zero});
    Comp *add = expand_reducer(at, OP_ADD, x->shape->type);
    inst_set_ints(r, ATTR_DIMENSIONS, dims);
    inst_set_callees(r, 1, &add);
    return r;
}
