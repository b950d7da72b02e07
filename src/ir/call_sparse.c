/* Products of a sparse matrix by rows (CSR), as jaxlib's CPU library has them:
 *
 *     out[i, ...] = sum over k from starts[i] to starts[i + 1] - 1 of values[k] * dense[columns[k], ...]
 *
 *     values [N]   starts [I + 1]   columns [N]   dense [J] or [J, M]   ->   [I] or [I, M]
 *
 * What lies before starts[0] or behind starts[I] counts for nothing, whatever its column. The terms of a row are added in their order. The row of each
 * element is counted, so that the work is that of the elements: +1 at each start, added up. Source: jaxlib/cpu/sparse_kernels.cc. */
#include "ir/call_build.h"
#include "ir/infer.h"

static Comp *addition(Build *b, Type t)
{
    Comp        *c = comp_new(b->module, comp_unique_name(b->module, "add"));
    const Shape *s = shape_array(b->module->arena, t, 0, NULL);
    Inst        *x[] = { inst_parameter(c, NULL, 0, s, NULL), inst_parameter(c, NULL, 1, s, NULL) };
    c->root = inst_new(c, NULL, OP_ADD, s, 2, x, NULL);
    return c;
}

static void set_dims(Build *b, Inst *i, AttrId id, int32_t n, int64_t first)
{
    int64_t *v = ARENA_ARRAY(b->module->arena, int64_t, n);
    for (int32_t k = 0; k < n; k++)
        v[k] = first + k;
    inst_set_ints(i, id, (Ints){ v, n });
}

/* into with each slice of updates added at the place along dimension 0 that at names; those at no place are left out */
static Inst *add_at(Build *b, Inst *into, Inst *at, Inst *updates)
{
    Inst *r = inst_new(b->body, NULL, OP_SCATTER, into->shape, 3, (Inst *const[]){ into, at, updates }, NULL);
    set_dims(b, r, ATTR_UPDATE_WINDOW_DIMS, into->shape->rank - 1, 1);
    set_dims(b, r, ATTR_INSERTED_WINDOW_DIMS, 1, 0);
    set_dims(b, r, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, 1, 0);
    inst_set_int(r, ATTR_INDEX_VECTOR_DIM, 1);
    inst_set_attr(r, (Attr){ .id = ATTR_INDICES_ARE_SORTED, .value.i = 1 });
    inst_set_callees(r, 1, (Comp *const[]){ addition(b, into->shape->type) });
    return r;
}

/* x[k] summed up to k, itself included */
static Inst *running_sum(Build *b, Inst *x)
{
    Arena          *a = b->module->arena;
    const int64_t   n = x->shape->dims[0];
    WindowDim      *v = ARENA_NEW(a, WindowDim);
    Window         *w = ARENA_NEW(a, Window);
    Inst           *zero = inst_constant(b->body, NULL, literal_from_s64(x->shape->type, 0), NULL);
    Inst           *r = inst_new(b->body, NULL, OP_REDUCE_WINDOW, x->shape, 2, (Inst *const[]){ x, zero }, NULL);
    *v = (WindowDim){ .size = n, .stride = 1, .pad_lo = n - 1, .base_dilation = 1, .window_dilation = 1 };
    *w = (Window){ 1, v };
    inst_set_attr(r, (Attr){ .id = ATTR_WINDOW, .value.window = w });
    inst_set_callees(r, 1, (Comp *const[]){ addition(b, x->shape->type) });
    return r;
}

/* Slices of x along dimension 0. */
static Inst *take(Build *b, Inst *x, Inst *at)
{
    const int32_t rank = x->shape->rank;
    int64_t      *dims = ARENA_ARRAY(b->module->arena, int64_t, rank), *sizes = ARENA_ARRAY(b->module->arena, int64_t, rank);
    for (int32_t d = 0; d < rank; d++)
        dims[d] = sizes[d] = x->shape->dims[d];
    dims[0] = at->shape->dims[0];
    sizes[0] = 1;
    Inst *r = inst_new(b->body, NULL, OP_GATHER, shape_array(b->module->arena, x->shape->type, rank, dims), 2, (Inst *const[]){ x, at }, NULL);
    set_dims(b, r, ATTR_OFFSET_DIMS, rank - 1, 1);
    set_dims(b, r, ATTR_COLLAPSED_SLICE_DIMS, 1, 0);
    set_dims(b, r, ATTR_START_INDEX_MAP, 1, 0);
    inst_set_int(r, ATTR_INDEX_VECTOR_DIM, 1);
    inst_set_ints(r, ATTR_SLICE_SIZES, (Ints){ sizes, rank });
    return r;
}

static bool is_index(const Shape *s)
{
    return shape_is_array(s) && s->rank == 1 && (s->type == TYPE_S32 || s->type == TYPE_S64);
}

Inst *mean_sparse_product(Build *b)
{
    if (!build_takes(b, 4))
        return NULL;
    const Shape *values = b->in[0]->shape, *starts = b->in[1]->shape, *columns = b->in[2]->shape, *dense = b->in[3]->shape, *out = b->call->shape;
    if (!shape_is_array(values) || values->rank != 1 || values->type == TYPE_PRED)
        return build_refuse(b, "it does not take %s as values", shape_brief(b->arena, values));
    if (!is_index(starts) || starts->dims[0] < 1 || !is_index(columns) || columns->dims[0] != values->dims[0])
        return build_refuse(b, "it does not take %s and %s as places of %s", shape_brief(b->arena, starts), shape_brief(b->arena, columns),
                            shape_brief(b->arena, values));
    if (!shape_is_array(dense) || dense->rank < 1 || dense->rank > 2 || dense->type != values->type)
        return build_refuse(b, "it does not multiply %s and %s", shape_brief(b->arena, values), shape_brief(b->arena, dense));
    if (!shape_is_array(out) || out->type != values->type || out->rank != dense->rank || out->dims[0] != starts->dims[0] - 1 ||
        (out->rank == 2 && out->dims[1] != dense->dims[1]))
        return build_refuse(b, "%s is no result of %lld rows and %s", shape_brief(b->arena, out), (long long)(starts->dims[0] - 1),
                            shape_brief(b->arena, dense));
    const Shape *result = build_dense(b, out->type, out);
    Inst        *none = build_whole(b, result, 0);
    if (values->dims[0] == 0 || dense->dims[0] == 0)
        return none;
    Inst *one_each = build_whole(b, build_dense(b, starts->type, starts), 1);
    Inst *marks = add_at(b, build_whole(b, build_dense(b, starts->type, values), 0), b->in[1], one_each);
    Inst *begun = running_sum(b, marks);
    Inst *row = build_binary(b, OP_SUBTRACT, begun, build_whole(b, begun->shape, 1));
    Inst *terms = take(b, b->in[3], b->in[2]), *factor = b->in[0];
    if (dense->rank == 2) {
        factor = inst_new(b->body, NULL, OP_BROADCAST, terms->shape, 1, b->in, NULL);
        set_dims(b, factor, ATTR_DIMENSIONS, 1, 0);
    }
    return add_at(b, none, row, build_binary(b, OP_MULTIPLY, factor, terms));
}
