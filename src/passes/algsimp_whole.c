/* Rules of algsimp about whole instructions: empty results, broadcasts before arithmetic, tuples, maps, sorts, control flow. */
#include "config.h"

#include "passes/algsimp.h"

#include <math.h>

#include "ir/groups.h"
#include "ir/numeric.h"

enum { MAX_BRACES = 4096 }; /* text for nothing at all */

Inst *rule_empty_result(Simp *s, Inst *i)
{
    if (i->op == OP_CONSTANT || !shape_is_array(i->shape) || shape_is_dynamic(i->shape) || shape_count(i->shape) != 0)
        return NULL;
    if (literal_braces(i->shape->rank, i->shape->dims) > MAX_BRACES)
        return NULL;
    Inst *c = inst_constant(i->comp, i, literal_for_shape(i->shape, true), NULL);
    c->shape = i->shape;
    return c;
}

/* ---- broadcasts before arithmetic ---- */

/* The operand that sets shape and dimensions: all others are broadcast alike, or scalars. NULL: they are not. */
static const Inst *common_broadcast(const Inst *i)
{
    const Inst *first = NULL;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        if (!is_broadcast(o) || !shape_same_dims(o->shape, i->shape))
            return NULL;
        if (inst_operand(o, 0)->shape->rank == 0)
            continue;
        if (first && (!shape_same_dims(inst_operand(first, 0)->shape, inst_operand(o, 0)->shape) ||
                      !ints_equal(inst_ints(first, ATTR_DIMENSIONS), inst_ints(o, ATTR_DIMENSIONS))))
            return NULL;
        first = o;
    }
    return first ? first : i->n_operands ? inst_operand(i, 0) : NULL;
}

/* add(broadcast(x), broadcast(y)) -> broadcast(add(x, y)): fewer elements to add. */
Inst *rule_broadcast_sink(Simp *s, Inst *i)
{
    if (!op_has(i->op, F_ELEMENTWISE))
        return NULL;
    const Inst *model = common_broadcast(i);
    if (!model)
        return NULL;
    const Shape *small = inst_operand(model, 0)->shape;
    if (shape_count(small) >= shape_count(i->shape))
        return NULL;
    Inst **operands = ARENA_ARRAY(s->scratch, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++) {
        Inst *x = inst_operand(inst_operand(i, k), 0);
        operands[k] = x->shape->rank == small->rank
                          ? x
                          : simp_broadcast(s, simp_shape(s, x->shape->type, small->rank, small->dims), x, (Ints){NULL, 0});
    }
    Inst *op = simp_like(s, i, simp_shape(s, i->shape->type, small->rank, small->dims), operands);
    return simp_broadcast(s, i->shape, op, inst_ints(model, ATTR_DIMENSIONS));
}

/* ---- tuples ---- */

Inst *rule_gte_tuple(Simp *s, Inst *i)
{
    Inst *t = inst_operand(i, 0);
    return t->op == OP_TUPLE ? simp_same(s, inst_operand(t, (int32_t)inst_int(i, ATTR_INDEX, 0))) : NULL;
}

Inst *rule_tuple_gte(Simp *s, Inst *i)
{
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *e = inst_operand(i, k);
        if (e->op != OP_GET_TUPLE_ELEMENT || inst_int(e, ATTR_INDEX, 0) != k ||
            inst_operand(e, 0) != inst_operand(inst_operand(i, 0), 0))
            return NULL;
    }
    return i->n_operands ? simp_same(s, inst_operand(inst_operand(i, 0), 0)) : NULL;
}

/* What needs no work before a barrier. */
static bool is_there(const Inst *i)
{
    return i->op == OP_CONSTANT || i->op == OP_PARAMETER || i->op == OP_IOTA || i->op == OP_BROADCAST;
}

/* Others need it too, or what a kernel makes beside it. */
static bool is_made_anyway(const Inst *i)
{
    const Inst *f = i->op == OP_GET_TUPLE_ELEMENT ? inst_operand(i, 0) : i;
    return i->n_uses != 1 || (f->op == OP_FUSION && f->n_uses != 1);
}

/* barrier(tuple(x, y)) of which only x is read, and y is made for nobody else or not at all -> barrier(tuple(x)) */
Inst *rule_barrier_unused(Simp *s, Inst *i)
{
    const Inst *t = inst_operand(i, 0);
    if (t->op != OP_TUPLE || t->n_uses != 1 || i->comp->root == i)
        return NULL;
    bool *kept = ARENA_ARRAY(s->scratch, bool, t->n_operands);
    for (const Use *u = i->uses; u; u = u->next) {
        if (u->user->op != OP_GET_TUPLE_ELEMENT)
            return NULL;
        kept[inst_int(u->user, ATTR_INDEX, 0)] = true;
    }
    Inst        **x = ARENA_ARRAY(s->scratch, Inst *, t->n_operands);
    const Shape **shapes = ARENA_ARRAY(s->arena, const Shape *, t->n_operands);
    int32_t       n = 0;
    for (int32_t k = 0; k < t->n_operands; k++) {
        const Inst *o = inst_operand(t, k);
        kept[k] |= (is_made_anyway(o) && !is_there(o)) || inst_has_effect(o);
        if (kept[k]) {
            shapes[n] = o->shape;
            x[n++] = inst_operand(t, k);
        }
    }
    if (n == t->n_operands)
        return NULL;
    const Shape *shape = shape_tuple(s->arena, n, shapes);
    Inst        *fewer = simp_new(s, OP_TUPLE, shape, n, x), *barrier = simp_like(s, i, shape, &fewer);
    Inst       **all = ARENA_ARRAY(s->scratch, Inst *, t->n_operands);
    for (int32_t k = 0, at = 0; k < t->n_operands; k++) {
        all[k] = inst_operand(t, k);
        if (!kept[k])
            continue;
        all[k] = simp_new(s, OP_GET_TUPLE_ELEMENT, shape->elems[at], 1, &barrier);
        inst_set_int(all[k], ATTR_INDEX, at++);
    }
    return simp_new(s, OP_TUPLE, i->shape, t->n_operands, all);
}

/* ---- map ---- */

static bool is_elementwise_body(const Comp *c)
{
    for (const Inst *i = c->first; i; i = i->next)
        if (!shape_is_scalar(i->shape) ||
            (i->op != OP_PARAMETER && i->op != OP_CONSTANT && (!op_has(i->op, F_ELEMENTWISE) || i->n_control || i->n_control_succs)))
            return false;
    return true;
}

Inst *rule_map_inline(Simp *s, Inst *i)
{
    const Comp *body = inst_callee(i, 0);
    if (!is_elementwise_body(body))
        return NULL;
    for (Inst *b = body->first; b; b = b->next) {
        const Shape *shape =
            shape_with_layout(s->arena, simp_shape(s, b->shape->type, i->shape->rank, i->shape->dims), i->shape->layout);
        Inst        *j;
        if (b->op == OP_PARAMETER) {
            j = inst_operand(i, (int32_t)b->param);
            if (j->shape->type != b->shape->type)
                j = simp_new(s, OP_CONVERT, shape, 1, &j);
        } else if (b->op == OP_CONSTANT) {
            j = simp_constant(s, b->shape, literal_ref(b->literal));
            if (i->shape->rank)
                j = simp_broadcast(s, shape, j, (Ints){NULL, 0});
        } else {
            Inst **operands = ARENA_ARRAY(s->scratch, Inst *, b->n_operands);
            for (int32_t k = 0; k < b->n_operands; k++)
                operands[k] = inst_operand(b, k)->aux;
            j = simp_like(s, b, shape, operands);
        }
        b->aux = j;
    }
    Inst *result = body->root->aux; /* a parameter may have another layout */
    return shape_equal(result->shape, i->shape) ? result : simp_new(s, result->shape->type == i->shape->type ? OP_COPY : OP_CONVERT, i->shape, 1, &result);
}

/* ---- sort, control flow ---- */

/* What a sort was given is sorted already. */
static Inst *sorted_before(Simp *s, const Inst *i)
{
    if (i->n_operands == 1)
        return simp_same(s, inst_operand(i, 0));
    Inst **operands = ARENA_ARRAY(s->scratch, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++) {
        operands[k] = inst_operand(i, k);
        if (!shape_equal(operands[k]->shape, i->shape->elems[k]))
            return NULL;
    }
    return simp_new(s, OP_TUPLE, i->shape, i->n_operands, operands);
}

Inst *rule_sort_unit(Simp *s, Inst *i)
{
    int64_t dim = inst_ints(i, ATTR_DIMENSIONS).v[0];
    return inst_operand(i, 0)->shape->dims[dim] > 1 ? NULL : sorted_before(s, i);
}

Inst *rule_while_never(Simp *s, Inst *i)
{
    return splat_is(while_condition(i)->root, 0) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

/* Operand 0 chooses: true is the first of two branches, an index out of range the last one. */
Inst *rule_conditional_known(Simp *s, Inst *i)
{
    const Inst *c = inst_operand(i, 0);
    if (c->op != OP_CONSTANT || c->literal->elided)
        return NULL;
    int64_t v = literal_get_s64(c->literal, 0);
    int32_t last = i->n_callees - 1, branch;
    if (c->shape->type == TYPE_PRED)
        branch = v ? 0 : 1;
    else
        branch = v < 0 || v > last ? last : (int32_t)v;
    if (branch > last || !shape_equal(inst_callee(i, branch)->root->shape, i->shape))
        return NULL;
    Inst *x = inst_operand(i, branch + 1);
    Comp *body = inst_callee(i, branch);
    Inst *call = simp_new(s, OP_CALL, i->shape, 1, &x);
    inst_set_callees(call, 1, &body);
    return call;
}

/* The place of a pred among branches: 0 is the first. */
Inst *rule_conditional_pred(Simp *s, Inst *i)
{
    Inst *index = inst_operand(i, 0);
    if (index->op != OP_CONVERT || inst_operand(index, 0)->shape->type != TYPE_PRED || i->n_callees != 2 || i->n_operands != 3)
        return NULL;
    Inst *c = simp_like(s, i, i->shape, (Inst *[]){inst_operand(index, 0), inst_operand(i, 2), inst_operand(i, 1)});
    inst_set_callees(c, 2, (Comp *[]){inst_callee(i, 1), inst_callee(i, 0)});
    return c;
}

/* One by one, so that each can be seen through. */
Inst *rule_constant_tuple(Simp *s, Inst *i)
{
    const Literal *l = i->literal;
    if (l->type != TYPE_TUPLE || literal_has_elided(l))
        return NULL;
    Inst **operands = ARENA_ARRAY(s->scratch, Inst *, l->n_elems);
    for (int32_t k = 0; k < l->n_elems; k++) {
        if (l->elems[k]->type == TYPE_TOKEN)
            return NULL;
        operands[k] = simp_constant(s, i->shape->elems[k], literal_ref(l->elems[k]));
    }
    return simp_new(s, OP_TUPLE, i->shape, l->n_elems, operands);
}

/* Elements that are all equal along the dimension are in any order. */
Inst *rule_sort_splat(Simp *s, Inst *i)
{
    int64_t dim = inst_ints(i, ATTR_DIMENSIONS).v[0];
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *x = inst_operand(i, k);
        if (!splat_value(x) && !(is_broadcast(x) && !ints_has(dimensions(x), dim)))
            return NULL;
    }
    return sorted_before(s, i);
}

/* What all devices have everywhere is what they get from each other. */
static Inst *exchanged_splat(Simp *s, const Inst *i)
{
    const Inst *x = i->n_operands == 1 ? inst_operand(i, 0) : NULL;
    if (!x || !shape_is_array(i->shape) || i->comp->async_wrapped || !is_broadcast(x) || inst_operand(x, 0)->op != OP_CONSTANT ||
        inst_operand(x, 0)->shape->rank != 0)
        return NULL;
    return simp_broadcast(s, i->shape, inst_operand(x, 0), (Ints){NULL, 0});
}

Inst *rule_all_gather_splat(Simp *s, Inst *i)
{
    return exchanged_splat(s, i);
}

Inst *rule_all_to_all_splat(Simp *s, Inst *i)
{
    return exchanged_splat(s, i);
}

/* How many devices each written group has; 0: not all as many, or none is written. */
static int64_t group_size(Simp *s, const Inst *i)
{
    bool     good;
    IntsList lists = group_lists(s->scratch, i, &good);
    int64_t  n = good && lists.n > 0 && group_mode(i) != GROUP_CROSS_BOTH ? lists.v[0].n : 0;
    for (int32_t k = 1; n && k < lists.n; k++)
        n = lists.v[k].n == n ? n : 0;
    return n;
}

/* n times the value, NULL where that would have to be rounded. */
static Literal *taken_times(const Literal *c, int64_t n)
{
    if (type_is_int(c->type))
        return literal_from_s64(c->type, int_wrap(c->type, (int64_t)((uint64_t)literal_get_s64(c, 0) * (uint64_t)n)));
    double v = type_is_float(c->type) ? literal_get_f64(c, 0) : NAN, product = v * (double)n;
    return (c->type == TYPE_F32 || c->type == TYPE_F64) && v == floor(v) && fabs(product) <= 0x1p24 && v != 0 ? literal_from_f64(c->type, product) : NULL;
}

/* all-reduce(c), c the same on all devices -> c for maxima and the like, n * c for sums over n devices. */
static Inst *reduced_splat(Simp *s, const Inst *i)
{
    const Inst    *x = i->n_operands == 1 ? inst_operand(i, 0) : NULL;
    const Literal *c = x && x->shape->type == i->shape->type && shape_is_array(i->shape) && !i->comp->async_wrapped ? splat_value(x) : NULL;
    Op             op = comp_binary_op(inst_callee(i, 0));
    int64_t        n = c && c->type == i->shape->type ? group_size(s, i) : 0;
    if (n == 0 || (op != OP_ADD && op != OP_MAXIMUM && op != OP_MINIMUM && op != OP_AND && op != OP_OR))
        return NULL;
    if (c->type == TYPE_PRED && op == OP_ADD)
        return NULL;
    Literal *v = op == OP_ADD ? taken_times(c, n) : simp_scalar(c);
    return v ? simp_splat_literal(s, i->shape, v) : NULL;
}

Inst *rule_all_reduce_splat(Simp *s, Inst *i)
{
    return reduced_splat(s, i);
}

/* The result lies as its operand does; the transpose of a dot moves nothing then, but who reads the sums beside arrays of the default layout has one of them across, and cannot be made in
 * its place. The dot can as well be made the other way round. */
Inst *rule_all_reduce_layout(Simp *s, Inst *i)
{
    Inst *t = inst_operand(i, 0), *d = t->op == OP_TRANSPOSE ? inst_operand(t, 0) : NULL;
    if (i->n_operands != 1 || !i->shape->layout || !d || t->n_uses != 1 || !inst_is_free(t) || d->op != OP_DOT || d->n_uses != 1 || d->shape->layout || !simp_exchanges_sides(t, d) ||
        !simp_seen_by_index(i))
        return NULL;
    const Shape *shape = simp_shape(s, i->shape->type, i->shape->rank, i->shape->dims);
    return simp_like(s, i, shape, (Inst *[]){simp_like(s, t, shape, (Inst *[]){inst_operand(t, 0)})});
}

Inst *rule_reduce_scatter_splat(Simp *s, Inst *i)
{
    return reduced_splat(s, i);
}
