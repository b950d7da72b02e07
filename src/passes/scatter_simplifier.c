/* scatter_simplifier - scatters of one form: a matrix of places, a row each, for updates of the operands' first dimensions.
 *
 *   %s = f32[5,9] scatter(%x, %i, %u), update_window_dims={1}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}      (%i s32[3], %u f32[3,5])
 *     =>
 *   %t = f32[9,5] transpose(%x)      %j = s32[3,1] reshape(%i)      %v = f32[3,1,5] reshape(%u)
 *   %r = f32[9,5] scatter(%t, %j, %v), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}
 *   %s = f32[5,9] transpose(%r)
 *
 * The dimensions that are looked up come first, no dimension is left out of the updates, whose rows follow each other as the places did. Not scatters with
 * dimensions of batches. */
#include "config.h"

#include "passes/expand.h"
#include "passes/places.h"
#include "passes/util.h"

static bool is_simple(const Inst *i, int32_t n)
{
    Ints map = inst_ints(i, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS), window = inst_ints(i, ATTR_UPDATE_WINDOW_DIMS);
    if (inst_operand(i, n)->shape->rank != 2 || inst_int(i, ATTR_INDEX_VECTOR_DIM, 0) != 1 || inst_ints(i, ATTR_INSERTED_WINDOW_DIMS).n)
        return false;
    for (int32_t k = 0; k < map.n; k++)
        if (map.v[k] != k)
            return false;
    for (int32_t k = 0; k < window.n; k++)
        if (window.v[k] != k + 1)
            return false;
    return true;
}

/* The update as rows, each a window over all dimensions of the operand in the order perm. */
static Inst *rows(PassCtx *cx, Inst *i, Inst *u, Ints perm, int64_t n)
{
    Arena  *a = i->comp->module->arena;
    Ints    window = inst_ints(i, ATTR_UPDATE_WINDOW_DIMS), inserted = inst_ints(i, ATTR_INSERTED_WINDOW_DIMS), order = ints_make(cx->scratch, u->shape->rank);
    Ints    sizes = ints_make(cx->scratch, perm.n + 1), turn = ints_make(cx->scratch, perm.n + 1);
    int32_t k = 0, w = 0;
    for (int32_t d = 0; d < u->shape->rank; d++)
        if (!ints_has(window, d))
            *ints_at(order, k++) = d;
    for (int32_t j = 0; j < window.n; j++)
        *ints_at(order, k++) = window.v[j];
    *ints_at(sizes, 0) = n;
    for (int32_t d = 0; d < perm.n; d++) {
        *ints_at(sizes, d + 1) = ints_has(inserted, d) ? 1 : u->shape->dims[window.v[w++]];
        *ints_at(turn, d + 1) = perm.v[d] + 1;
    }
    u = ints_increase(order) ? u : expand_transpose(i, u, order);
    u = expand_reshape(i, shape_array(a, u->shape->type, perm.n + 1, sizes.v), u);
    return ints_increase(perm) ? u : expand_transpose(i, u, turn);
}

static Inst *new_scatter(Inst *i, Inst *const *operands, const Shape *shape, int32_t rank, int32_t looked_up)
{
    Inst *s = expand_like(i, shape, i->n_operands, operands);
    Ints  all = ints_iota(i->comp->module->arena, rank + 1);
    inst_set_ints(s, ATTR_UPDATE_WINDOW_DIMS, (Ints){all.v + 1, rank});
    inst_set_ints(s, ATTR_INSERTED_WINDOW_DIMS, (Ints){NULL, 0});
    inst_set_ints(s, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, (Ints){all.v, looked_up});
    inst_set_int(s, ATTR_INDEX_VECTOR_DIM, 1);
    return s;
}

static Inst *simple(PassCtx *cx, Inst *i)
{
    int32_t n = i->op == OP_SCATTER ? i->n_operands / 2 : 0; /* arrays that are updated */
    if (n == 0 || inst_ints(i, ATTR_INPUT_BATCHING_DIMS).n || shape_count(inst_operand(i, 0)->shape) <= 0 || shape_count(inst_operand(i, n + 1)->shape) <= 0 ||
        is_simple(i, n))
        return NULL;
    Arena        *a = i->comp->module->arena;
    int32_t       rank = inst_operand(i, 0)->shape->rank;
    Ints          map = inst_ints(i, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS), perm = places_first(cx->scratch, map, rank), back = ints_make(cx->scratch, rank);
    Inst        **operands = ARENA_ARRAY(cx->scratch, Inst *, i->n_operands), **results = ARENA_ARRAY(cx->scratch, Inst *, n);
    const Shape **shapes = ARENA_ARRAY(a, const Shape *, n);
    for (int32_t k = 0; k < rank; k++)
        *ints_at(back, (int32_t)perm.v[k]) = k;
    operands[n] = places_matrix(i, inst_operand(i, n), inst_int(i, ATTR_INDEX_VECTOR_DIM, 0));
    for (int32_t k = 0; k < n; k++) {
        operands[k] = ints_increase(perm) ? inst_operand(i, k) : expand_transpose(i, inst_operand(i, k), perm);
        operands[n + 1 + k] = rows(cx, i, inst_operand(i, n + 1 + k), perm, operands[n]->shape->dims[0]);
        shapes[k] = operands[k]->shape;
    }
    Inst *s = new_scatter(i, operands, n == 1 ? shapes[0] : shape_tuple(a, n, shapes), rank, map.n);
    for (int32_t k = 0; k < n; k++) {
        const Shape *shape = n == 1 ? i->shape : i->shape->elems[k];
        results[k] = n == 1 ? s : expand_element(i, s, k);
        results[k] = ints_increase(perm) ? results[k] : expand_transpose(i, results[k], back);
        results[k] = expand_reshape(i, shape, results[k]);
    }
    return n == 1 ? results[0] : expand_op(i, OP_TUPLE, i->shape, n, results);
}

bool pass_scatter_simplifier(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, simple);
}
