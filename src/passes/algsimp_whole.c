/* Rules of algsimp about whole instructions: empty results, tuples, reductions, contractions, control flow. */
#include "config.h"

#include "passes/algsimp.h"

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

/* ---- reductions ---- */

static bool keeps_everything(const Inst *i)
{
    Ints dims = inst_ints(i, ATTR_DIMENSIONS);
    for (int32_t k = 0; k < dims.n; k++)
        if (inst_operand(i, 0)->shape->dims[dims.v[k]] != 1)
            return false;
    return true;
}

/* Each result is op(c, one element): the initial value is not assumed to change nothing. The order of operands is that of the reducer,
 * whose first parameter is c: maximum(-0, 0) and maximum(0, -0) are not the same. */
Inst *rule_reduce_unit(Simp *s, Inst *i)
{
    if (i->n_operands != 2 || !keeps_everything(i))
        return NULL;
    const Comp *reducer = inst_callee(i, 0);
    Op          op = comp_binary_op(reducer);
    Inst       *x = inst_operand(i, 0), *c = inst_operand(i, 1);
    if (op == OP_COUNT || !op_has(op, F_COMMUTES) || x->shape->type != i->shape->type)
        return NULL;
    int64_t initial = inst_operand(reducer->root, 0)->param;
    Inst   *operands[2];
    operands[initial] = i->shape->rank ? simp_broadcast(s, i->shape, c, (Ints){NULL, 0}) : c;
    operands[1 - initial] = simp_reshape(s, i->shape, x);
    return simp_new(s, op, i->shape, 2, operands);
}

/* What stays must keep its order: else a transpose of the result would take its place. */
Inst *rule_reduce_transpose(Simp *s, Inst *i)
{
    Inst *t = inst_operand(i, 0);
    if (i->n_operands != 2 || t->op != OP_TRANSPOSE)
        return NULL;
    Ints    perm = inst_ints(t, ATTR_DIMENSIONS), dims = inst_ints(i, ATTR_DIMENSIONS), from = scratch_ints(s, dims.n);
    int64_t last = -1;
    for (int32_t k = 0; k < perm.n; k++)
        if (!ints_has(dims, k)) {
            if (perm.v[k] < last)
                return NULL;
            last = perm.v[k];
        }
    int32_t n = 0;
    for (int64_t d = 0; d < perm.n; d++) /* in increasing order */
        for (int32_t k = 0; k < perm.n; k++)
            if (perm.v[k] == d && ints_has(dims, k))
                *ints_at(from, n++) = d;
    Inst *operands[] = {inst_operand(t, 0), inst_operand(i, 1)};
    Inst *r = simp_like(s, i, i->shape, operands);
    inst_set_ints(r, ATTR_DIMENSIONS, from);
    return r;
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
            j = inst_constant(i->comp, i, literal_ref(b->literal), NULL);
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
    return simp_same(s, body->root->aux);
}

/* ---- dot ---- */

static bool plain_dot(const Inst *i)
{
    return i->n_operands == 2 && !inst_attr(i, ATTR_SPARSITY_CONFIG) && !inst_attr(i, ATTR_BLOCK_SCALING_CONFIG);
}

/* The operand spread over the result [batch..., lhs free..., rhs free...]; `at` is where its free dimensions start. */
static Inst *spread(Simp *s, const Inst *i, Inst *x, Ints batch, int64_t at)
{
    Ints dims = scratch_ints(s, x->shape->rank);
    for (int32_t k = 0; k < x->shape->rank; k++)
        *ints_at(dims, k) = -1;
    for (int32_t k = 0; k < batch.n; k++)
        *ints_at(dims, (int32_t)batch.v[k]) = k;
    for (int32_t k = 0; k < x->shape->rank; k++)
        if (dims.v[k] < 0)
            *ints_at(dims, k) = at++;
    return simp_broadcast(s, shape_with_type(s->arena, i->shape, x->shape->type), x, dims);
}

/* A dot's sum starts at 0, so that it never is -0. */
/* Floats below f32 are summed in f32 and rounded at the end, after the 0 was added: there a small negative product gives -0. */
Inst *rule_dot_outer(Simp *s, Inst *i)
{
    Type t = i->shape->type;
    Ints lhs_batch = inst_ints(i, ATTR_LHS_BATCH_DIMS), rhs_batch = inst_ints(i, ATTR_RHS_BATCH_DIMS);
    Inst *lhs = inst_operand(i, 0), *rhs = inst_operand(i, 1);
    if (!plain_dot(i) || inst_ints(i, ATTR_LHS_CONTRACTING_DIMS).n || lhs->shape->type != i->shape->type ||
        rhs->shape->type != i->shape->type)
        return NULL;
    if (type_is_complex(t) || (type_is_float(t) && t != TYPE_F32 && t != TYPE_F64) || shape_count(i->shape) <= 0)
        return NULL;
    Inst *operands[] = {spread(s, i, lhs, lhs_batch, lhs_batch.n), spread(s, i, rhs, rhs_batch, lhs->shape->rank)};
    Inst *product = simp_new(s, OP_MULTIPLY, i->shape, 2, operands);
    if (!type_is_float(t))
        return product;
    return simp_new(s, OP_ADD, i->shape, 2, (Inst *[]){product, simp_splat(s, i->shape, 0)});
}

Inst *rule_dot_empty(Simp *s, Inst *i)
{
    if (!plain_dot(i) || shape_count(inst_operand(i, 0)->shape) != 0 || shape_count(i->shape) <= 0)
        return NULL;
    return simp_splat(s, i->shape, 0);
}

static Ints through(Simp *s, Ints dims, Ints perm)
{
    Ints out = scratch_ints(s, dims.n);
    for (int32_t k = 0; k < dims.n; k++)
        *ints_at(out, k) = perm.v[dims.v[k]];
    return out;
}

/* Whether the dimensions of t that are neither batch nor contracting keep their order in the transposed array. */
static bool keeps_free_order(const Inst *t, Ints batch, Ints contracting)
{
    Ints    perm = inst_ints(t, ATTR_DIMENSIONS);
    int64_t last = -1;
    for (int32_t k = 0; k < perm.n; k++) {
        if (ints_has(batch, k) || ints_has(contracting, k))
            continue;
        if (perm.v[k] < last)
            return false;
        last = perm.v[k];
    }
    return true;
}

/* The dimension numbers name what the transpose would move. */
Inst *rule_dot_transpose(Simp *s, Inst *i)
{
    static const AttrId batch_ids[] = {ATTR_LHS_BATCH_DIMS, ATTR_RHS_BATCH_DIMS};
    static const AttrId contracting_ids[] = {ATTR_LHS_CONTRACTING_DIMS, ATTR_RHS_CONTRACTING_DIMS};
    for (int32_t side = 0; plain_dot(i) && side < 2; side++) {
        Inst *t = inst_operand(i, side);
        Ints  batch = inst_ints(i, batch_ids[side]), contracting = inst_ints(i, contracting_ids[side]);
        if (t->op != OP_TRANSPOSE || !keeps_free_order(t, batch, contracting))
            continue;
        Ints  perm = inst_ints(t, ATTR_DIMENSIONS);
        Inst *operands[] = {inst_operand(i, 0), inst_operand(i, 1)};
        operands[side] = inst_operand(t, 0);
        Inst *dot = simp_like(s, i, i->shape, operands);
        if (batch.n)
            inst_set_ints(dot, batch_ids[side], through(s, batch, perm));
        inst_set_ints(dot, contracting_ids[side], through(s, contracting, perm));
        return dot;
    }
    return NULL;
}

/* The free dimensions of the one side in front of those of the other, all else as it is: what the exchanged product has. */
static bool exchanges_sides(const Inst *t, const Inst *dot)
{
    Ints    perm = inst_ints(t, ATTR_DIMENSIONS);
    int32_t batch = inst_ints(dot, ATTR_LHS_BATCH_DIMS).n, contracted = inst_ints(dot, ATTR_LHS_CONTRACTING_DIMS).n;
    int32_t left = inst_operand(dot, 0)->shape->rank - batch - contracted, right = perm.n - batch - left;
    for (int32_t k = 0; k < perm.n; k++)
        if (perm.v[k] != (k < batch ? k : k < batch + right ? k + left : k - right))
            return false;
    return true;
}

Inst *rule_transpose_dot(Simp *s, Inst *i)
{
    const Inst *d = inst_operand(i, 0);
    if (d->op != OP_DOT || d->n_uses != 1 || !plain_dot(d) || i->shape->layout || d->shape->layout || !exchanges_sides(i, d))
        return NULL;
    Inst *dot = simp_like(s, d, i->shape, (Inst *[]){inst_operand(d, 1), inst_operand(d, 0)});
    Ints  precision = inst_ints(d, ATTR_OPERAND_PRECISION);
    if (inst_ints(d, ATTR_LHS_BATCH_DIMS).n) {
        inst_set_ints(dot, ATTR_LHS_BATCH_DIMS, inst_ints(d, ATTR_RHS_BATCH_DIMS));
        inst_set_ints(dot, ATTR_RHS_BATCH_DIMS, inst_ints(d, ATTR_LHS_BATCH_DIMS));
    }
    inst_set_ints(dot, ATTR_LHS_CONTRACTING_DIMS, inst_ints(d, ATTR_RHS_CONTRACTING_DIMS));
    inst_set_ints(dot, ATTR_RHS_CONTRACTING_DIMS, inst_ints(d, ATTR_LHS_CONTRACTING_DIMS));
    if (precision.n == 2) {
        Ints other = scratch_ints(s, 2);
        *ints_at(other, 0) = precision.v[1];
        *ints_at(other, 1) = precision.v[0];
        inst_set_ints(dot, ATTR_OPERAND_PRECISION, other);
    }
    return dot;
}

/* ---- sort, control flow ---- */

Inst *rule_sort_unit(Simp *s, Inst *i)
{
    int64_t dim = inst_ints(i, ATTR_DIMENSIONS).v[0];
    if (inst_operand(i, 0)->shape->dims[dim] > 1)
        return NULL;
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
