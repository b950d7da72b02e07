/* gather_simplifier - gathers of one form: a matrix of places, a row each, for slices of the operand's first dimensions.
 *
 *   %g = f32[3,5] gather(%x, %i), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1    (%x f32[5,9], %i s32[3])
 *     =>
 *   %t = f32[9,5] transpose(%x)      %j = s32[3,1] reshape(%i)
 *   %s = f32[3,1,5] gather(%t, %j), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1
 *   %g = f32[3,5] reshape(%s)
 *
 * The dimensions that are looked up come first; no dimension is left out of slices; then what is gathered is brought into the order that was asked for.
 * Slices without elements are zeros where the result has some. Not gathers with dimensions of batches. */
#include "config.h"

#include "passes/expand.h"
#include "passes/places.h"
#include "passes/util.h"

static bool is_simple(const Inst *i)
{
    const Shape *indices = inst_operand(i, 1)->shape;
    Ints         map = inst_ints(i, ATTR_START_INDEX_MAP), offsets = inst_ints(i, ATTR_OFFSET_DIMS);
    if (indices->rank != 2 || inst_int(i, ATTR_INDEX_VECTOR_DIM, 0) != 1 || inst_ints(i, ATTR_COLLAPSED_SLICE_DIMS).n)
        return false;
    for (int32_t k = 0; k < map.n; k++)
        if (map.v[k] != k)
            return false;
    for (int32_t k = 0; k < offsets.n; k++)
        if (offsets.v[k] != k + 1)
            return false;
    return true;
}

/* [n, slice in the order of the operand] -> the result: slices without the collapsed dimensions, the rows as the dimensions of places, and each where
 * offset_dims has it. */
static Inst *arranged(PassCtx *cx, Inst *i, Inst *rows)
{
    Arena  *a = i->comp->module->arena;
    Ints    offsets = inst_ints(i, ATTR_OFFSET_DIMS), perm = ints_make(cx->scratch, i->shape->rank), sizes = ints_make(cx->scratch, i->shape->rank);
    int32_t rank = i->shape->rank, batch = rank - offsets.n, b = 0, o = 0;
    for (int32_t k = 0; k < rank; k++) {
        bool offset = ints_has(offsets, k);
        *ints_at(perm, k) = offset ? batch + o++ : b++;
        *ints_at(sizes, (int32_t)perm.v[k]) = i->shape->dims[k];
    }
    Inst *x = expand_reshape(i, shape_array(a, i->shape->type, rank, sizes.v), rows);
    return expand_reshape(i, i->shape, ints_increase(perm) ? x : expand_transpose(i, x, perm));
}

static Inst *simple(PassCtx *cx, Inst *i)
{
    if (i->op != OP_GATHER || inst_ints(i, ATTR_OPERAND_BATCHING_DIMS).n || shape_count(i->shape) <= 0)
        return NULL;
    if (ints_has(inst_ints(i, ATTR_SLICE_SIZES), 0)) /* a collapsed dimension: none is left of it */
        return expand_number(i, i->shape, 0);
    if (is_simple(i))
        return NULL;
    Arena  *a = i->comp->module->arena;
    Inst   *x = inst_operand(i, 0);
    int32_t rank = x->shape->rank;
    Ints    map = inst_ints(i, ATTR_START_INDEX_MAP), slice = inst_ints(i, ATTR_SLICE_SIZES), perm = places_first(cx->scratch, map, rank);
    Inst   *at = places_matrix(i, inst_operand(i, 1), inst_int(i, ATTR_INDEX_VECTOR_DIM, 0));
    Ints    sizes = ints_make(cx->scratch, rank), shape = ints_make(cx->scratch, rank + 1), back = ints_make(cx->scratch, rank + 1);
    *ints_at(shape, 0) = at->shape->dims[0];
    for (int32_t k = 0; k < rank; k++) {
        *ints_at(sizes, k) = *ints_at(shape, k + 1) = slice.v[perm.v[k]];
        *ints_at(back, (int32_t)perm.v[k] + 1) = k + 1;
    }
    x = ints_increase(perm) ? x : expand_transpose(i, x, perm);
    Inst *g = expand_op(i, OP_GATHER, shape_array(a, i->shape->type, rank + 1, shape.v), 2, (Inst *[]){x, at});
    Ints  all = ints_iota(a, rank + 1);
    inst_set_ints(g, ATTR_OFFSET_DIMS, (Ints){all.v + 1, rank});
    inst_set_ints(g, ATTR_COLLAPSED_SLICE_DIMS, (Ints){NULL, 0});
    inst_set_ints(g, ATTR_START_INDEX_MAP, (Ints){all.v, map.n});
    inst_set_int(g, ATTR_INDEX_VECTOR_DIM, 1);
    inst_set_ints(g, ATTR_SLICE_SIZES, sizes);
    if (inst_bool(i, ATTR_INDICES_ARE_SORTED))
        inst_set_int(g, ATTR_INDICES_ARE_SORTED, 1);
    return arranged(cx, i, ints_increase(perm) ? g : expand_transpose(i, g, back));
}

bool pass_gather_simplifier(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, simple);
}
