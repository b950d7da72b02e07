/* Rules of algsimp about movement: each element of the result is some element of an operand. */
#include "config.h"

#include "passes/algsimp.h"

#include <string.h>

static bool is_iota(Ints x)
{
    for (int32_t k = 0; k < x.n; k++)
        if (x.v[k] != k)
            return false;
    return true;
}

/* ---- copy, bitcast ---- */

Inst *rule_copy_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_copy_copy(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_COPY)
        return NULL;
    Inst *x = inst_operand(inner, 0);
    return simp_new(s, OP_COPY, i->shape, 1, &x);
}

/* What is made for the copy alone may as well be made in its layout. */
Inst *rule_copy_layout(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0), *of[] = {x->n_operands == 1 ? inst_operand(x, 0) : NULL};
    if ((x->op != OP_TRANSPOSE && x->op != OP_BROADCAST && x->op != OP_RESHAPE) || x->n_uses != 1 || !inst_is_free(x))
        return NULL;
    return simp_like(s, x, i->shape, of);
}

Inst *rule_bitcast_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

/* The inner one only says where the same bytes are. */
Inst *rule_bitcast_pair(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_BITCAST || inner->n_control > 0)
        return NULL;
    Inst *x = inst_operand(inner, 0);
    return simp_new(s, OP_BITCAST, i->shape, 1, &x);
}

Inst *rule_bitcast_convert_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_bitcast_convert_pair(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_BITCAST_CONVERT)
        return NULL;
    Inst *x = inst_operand(inner, 0);
    if (!shape_same_dims(x->shape, i->shape) || !shape_same_dims(inner->shape, i->shape))
        return NULL; /* widths that change split or join elements */
    return simp_new(s, OP_BITCAST_CONVERT, i->shape, 1, &x);
}

/* ---- reshape ---- */

Inst *rule_reshape_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_reshape_reshape(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    return inner->op == OP_RESHAPE ? simp_reshape(s, i->shape, inst_operand(inner, 0)) : NULL;
}

Inst *rule_reshape_broadcast(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    Ints  sizes, dims;
    if (!is_broadcast(inner) || !broadcast_reshaped(s->scratch, inner, i->shape, &sizes, &dims))
        return NULL;
    Inst *x = simp_reshape(s, simp_shape(s, i->shape->type, sizes.n, sizes.v), inst_operand(inner, 0));
    return simp_broadcast(s, i->shape, x, dims);
}

static bool is_read_by_reshapes(const Inst *x)
{
    for (const Use *u = x->uses; u; u = u->next)
        if (u->user->op != OP_RESHAPE)
            return false;
    return x->comp->root != x;
}

/* Dimensions that are not of size 1 change places among themselves, as in the transpose; those of size 1 are put where the result has them.
 *
 *     reshape(transpose([1,4,7,5], {0,1,3,2}) -> [1,4,5,7]) -> [4,5,7]   =>   transpose(reshape([1,4,7,5]) -> [4,7,5], {0,2,1}) */
Inst *rule_reshape_transpose(Simp *s, Inst *i)
{
    Inst   *t = inst_operand(i, 0);
    int32_t rank = i->shape->rank;
    if (t->op != OP_TRANSPOSE || i->shape->layout || !is_read_by_reshapes(t)) /* how the transpose lies is nobody's concern any more */
        return NULL;
    Inst    *x = inst_operand(t, 0);
    Ints     perm = dimensions(t), sizes = scratch_ints(s, rank), order = scratch_ints(s, rank);
    int32_t *where = ARENA_ARRAY(s->scratch, int32_t, perm.n), *result = ARENA_ARRAY(s->scratch, int32_t, perm.n);
    if (x->shape->layout || !simp_unit_dims(t->shape, i->shape, where))
        return NULL;
    for (int32_t k = 0; k < perm.n; k++)
        result[perm.v[k]] = where[k];
    for (int32_t k = 0; k < rank; k++) {
        *ints_at(sizes, k) = 1;
        *ints_at(order, k) = k;
    }
    int32_t place = 0;
    for (int32_t d = 0; d < perm.n; d++) {
        if (result[d] < 0)
            continue;
        while (i->shape->dims[place] == 1)
            place++;
        *ints_at(sizes, place) = x->shape->dims[d];
        *ints_at(order, result[d]) = place++;
    }
    Inst *y = simp_reshape(s, simp_shape(s, i->shape->type, rank, sizes.v), x);
    Inst *turned = simp_new(s, OP_TRANSPOSE, i->shape, 1, &y);
    inst_set_ints(turned, ATTR_DIMENSIONS, order);
    return turned;
}

/* ---- transpose ---- */

Inst *rule_transpose_noop(Simp *s, Inst *i)
{
    return is_iota(dimensions(i)) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

Inst *rule_transpose_transpose(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_TRANSPOSE)
        return NULL;
    Ints  outer = dimensions(i), first = dimensions(inner), both = scratch_ints(s, outer.n);
    Inst *x = inst_operand(inner, 0);
    for (int32_t k = 0; k < outer.n; k++)
        *ints_at(both, k) = first.v[outer.v[k]];
    Inst *t = simp_new(s, OP_TRANSPOSE, i->shape, 1, &x);
    inst_set_ints(t, ATTR_DIMENSIONS, both);
    return t;
}

Inst *rule_transpose_unit(Simp *s, Inst *i)
{
    Ints    perm = dimensions(i);
    Inst   *x = inst_operand(i, 0);
    int64_t last = -1;
    if (is_iota(perm) || i->shape->layout || x->shape->layout)
        return NULL;
    for (int32_t k = 0; k < perm.n; k++)
        if (i->shape->dims[k] != 1) {
            if (perm.v[k] < last)
                return NULL;
            last = perm.v[k];
        }
    return simp_reshape(s, i->shape, x);
}

/* Result dimension k is the broadcast's perm[k]. */
Inst *rule_transpose_broadcast(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (!is_broadcast(inner))
        return NULL;
    Ints perm = dimensions(i), from = dimensions(inner), dims = scratch_ints(s, from.n);
    for (int32_t k = 0; k < from.n; k++)
        for (int32_t j = 0; j < perm.n; j++)
            if (perm.v[j] == from.v[k])
                *ints_at(dims, k) = j;
    return ints_increase(from) && !ints_increase(dims) ? NULL : simp_broadcast(s, i->shape, inst_operand(inner, 0), dims);
}

/* ---- broadcast ---- */

Inst *rule_broadcast_noop(Simp *s, Inst *i)
{
    return is_iota(dimensions(i)) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

Inst *rule_broadcast_reshape(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0);
    if (!ints_increase(dimensions(i)) || shape_count(x->shape) != shape_count(i->shape) || !is_broadcast(i))
        return NULL;
    return i->shape->rank > x->shape->rank ? simp_reshape(s, i->shape, x) : NULL;
}

Inst *rule_broadcast_broadcast(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (!is_broadcast(inner) || !is_broadcast(i))
        return NULL;
    Ints outer = dimensions(i), first = dimensions(inner), dims = scratch_ints(s, first.n);
    for (int32_t k = 0; k < first.n; k++)
        *ints_at(dims, k) = outer.v[first.v[k]];
    return simp_broadcast(s, i->shape, inst_operand(inner, 0), dims);
}

/*   broadcast x [1,8] -> [4,1,8], dimensions={1,2}   =>   reshape x [8], broadcast -> [4,1,8], dimensions={2} */
Inst *rule_broadcast_unit(Simp *s, Inst *i)
{
    Inst   *x = inst_operand(i, 0);
    Ints    from = dimensions(i), dims = scratch_ints(s, from.n), sizes = scratch_ints(s, from.n);
    int32_t n = 0;
    if (shape_count(x->shape) <= 0 || !is_broadcast(i))
        return NULL;
    for (int32_t k = 0; k < from.n; k++)
        if (x->shape->dims[k] != 1) {
            *ints_at(sizes, n) = x->shape->dims[k];
            *ints_at(dims, n++) = from.v[k];
        }
    if (n == from.n || shape_count(x->shape) == shape_count(i->shape))
        return NULL;
    Inst *small = simp_reshape(s, simp_shape(s, x->shape->type, n, sizes.v), x);
    return simp_broadcast(s, i->shape, small, (Ints){dims.v, n});
}

/* ---- annotations ---- */

Inst *rule_sharding_noop(Simp *s, Inst *i)
{
    static const char *const annotations[] = {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"};
    const char *target = inst_string(i, ATTR_CUSTOM_CALL_TARGET);
    if (!target || i->n_operands != 1 || i->comp->module->num_partitions != 1)
        return NULL;
    for (size_t k = 0; k < sizeof annotations / sizeof *annotations; k++)
        if (strcmp(target, annotations[k]) == 0)
            return simp_same(s, inst_operand(i, 0));
    return NULL;
}

/* All dimensions in another order. */
Inst *rule_broadcast_transpose(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0);
    Ints  dims = dimensions(i), perm = scratch_ints(s, dims.n);
    if (dims.n != i->shape->rank || is_iota(dims) || !is_broadcast(i) || shape_count(x->shape) != shape_count(i->shape))
        return NULL;
    for (int32_t k = 0; k < dims.n; k++)
        *ints_at(perm, (int32_t)dims.v[k]) = k;
    Inst *t = simp_new(s, OP_TRANSPOSE, i->shape, 1, &x);
    inst_set_ints(t, ATTR_DIMENSIONS, perm);
    return t;
}

/* bitcast-convert(concatenate(bitcast-convert(x), ...)) back to the type of x -> concatenate(x, ...) */
Inst *rule_bitcast_convert_concatenate(Simp *s, Inst *i)
{
    const Inst *c = inst_operand(i, 0);
    if (c->op != OP_CONCATENATE || c->n_uses != 1 || !shape_same_dims(c->shape, i->shape))
        return NULL;
    Inst **operands = ARENA_ARRAY(s->scratch, Inst *, c->n_operands);
    for (int32_t k = 0; k < c->n_operands; k++) {
        const Inst *b = inst_operand(c, k);
        if (b->op != OP_BITCAST_CONVERT || !shape_same_dims(inst_operand(b, 0)->shape, b->shape) || inst_operand(b, 0)->shape->type != i->shape->type)
            return NULL;
        operands[k] = inst_operand(b, 0);
    }
    Inst *r = simp_new(s, OP_CONCATENATE, i->shape, c->n_operands, operands);
    inst_set_ints(r, ATTR_DIMENSIONS, dimensions(c));
    return r;
}

/* Numbers are drawn in the order of the elements. */
Inst *rule_reshape_rng(Simp *s, Inst *i)
{
    const Inst *r = inst_operand(i, 0);
    if (r->op != OP_RNG || r->n_uses != 1 || i->shape->layout || r->shape->layout)
        return NULL;
    return simp_like(s, r, i->shape, (Inst *[]){inst_operand(r, 0), inst_operand(r, 1)});
}
