/* reduce-scatter-creator - of a sum over devices only the part that is looked at.
 *
 *   %r = f32[8] all-reduce(%x), replica_groups={{0,1}}, to_apply=%add
 *   %i = u32[] replica-id()
 *   %o = u32[] multiply(%i, 4)                                                            (also element %i of a table of starts)
 *   %s = f32[4] dynamic-slice(%r, %o), dynamic_slice_sizes={4}
 *     =>
 *   %s = f32[4] reduce-scatter(%x), replica_groups={{0,1}}, dimensions={0}, to_apply=%add
 *
 * Device k of each group has to cut out part k of as many equal parts as the group has devices: the start is computed for each of them. One dimension is cut;
 * nobody else needs the whole sum. Floats are added up in another order by none of our backends, which fold in the order of the group. */
#include "config.h"

#include "ir/groups.h"
#include "passes/expand.h"
#include "passes/util.h"

enum { MAX_DEPTH = 16, MOST_IDS = 1024 };

/* What device has as the integer i; false: it is not known. Ids are of what the groups of the collective name. */
static bool value_on(const Inst *i, GroupMode mode, int64_t id, int depth, int64_t *v)
{
    if (depth == 0 || !type_is_int(i->shape->type))
        return false;
    int64_t a, b;
    switch (i->op) {
    case OP_CONSTANT:
        if (i->literal->elided || i->literal->count != 1)
            return false;
        *v = literal_get_s64(i->literal, 0);
        return true;
    case OP_REPLICA_ID:
        *v = id;
        return mode == GROUP_CROSS_REPLICA;
    case OP_PARTITION_ID:
        *v = id;
        return mode == GROUP_CROSS_PARTITION;
    case OP_RESHAPE: case OP_CONVERT: case OP_BROADCAST: case OP_COPY:
        return shape_count(i->shape) == 1 && value_on(inst_operand(i, 0), mode, id, depth - 1, v);
    case OP_ADD: case OP_MULTIPLY:
        if (!value_on(inst_operand(i, 0), mode, id, depth - 1, &a) || !value_on(inst_operand(i, 1), mode, id, depth - 1, &b))
            return false;
        return i->op == OP_ADD ? size_add(a, b, v) : size_mul(a, b, v);
    case OP_DYNAMIC_SLICE: {
        const Inst *table = inst_operand(i, 0);
        if (table->op != OP_CONSTANT || table->literal->elided || table->shape->rank != 1 || i->n_operands != 2 || shape_count(i->shape) != 1 ||
            !value_on(inst_operand(i, 1), mode, id, depth - 1, &a) || a < 0 || a >= table->literal->count)
            return false;
        *v = literal_get_s64(table->literal, a);
        return true;
    }
    default:
        return false;
    }
}

/* Each device of each group begins at its own part. */
static bool own_parts(const Inst *start, IntsList groups, GroupMode mode, int64_t part)
{
    for (int32_t g = 0; g < groups.n; g++)
        for (int32_t k = 0; k < groups.v[g].n; k++) {
            int64_t v;
            if (!value_on(start, mode, groups.v[g].v[k], MAX_DEPTH, &v) || v != k * part)
                return false;
        }
    return true;
}

/* The one dimension in which s has fewer elements than x, -1: none or several. */
static int32_t cut_dim(const Shape *x, const Shape *s)
{
    int32_t dim = -1;
    for (int32_t k = 0; k < x->rank; k++)
        if (x->dims[k] != s->dims[k]) {
            if (dim >= 0)
                return -1;
            dim = k;
        }
    return dim;
}

static bool is_whole_sum(const Inst *r)
{
    return r->op == OP_ALL_REDUCE && r->n_operands == 1 && r->n_uses == 1 && inst_is_free(r) && shape_equal(r->shape, inst_operand(r, 0)->shape) &&
           !r->comp->async_wrapped;
}

static Inst *scattered(PassCtx *cx, Inst *i)
{
    if (i->op != OP_DYNAMIC_SLICE || !is_whole_sum(inst_operand(i, 0)) || i->n_operands != 1 + i->shape->rank)
        return NULL;
    const Inst *r = inst_operand(i, 0);
    bool        good;
    IntsList    groups = group_lists(cx->scratch, r, &good);
    GroupMode   mode = group_mode(r);
    int64_t     dim = cut_dim(r->shape, i->shape);
    if (!good || groups.n == 0 || groups.n > MOST_IDS || dim < 0 || (mode != GROUP_CROSS_REPLICA && mode != GROUP_CROSS_PARTITION))
        return NULL;
    for (int32_t g = 0; g < groups.n; g++)
        if (groups.v[g].n > MOST_IDS || groups.v[g].n * i->shape->dims[dim] != r->shape->dims[dim])
            return NULL;
    if (!own_parts(inst_operand(i, (int32_t)dim + 1), groups, mode, i->shape->dims[dim]))
        return NULL;
    Inst *x = inst_operand(r, 0), *s = expand_op(i, OP_REDUCE_SCATTER, i->shape, 1, &x);
    for (int32_t k = 0; k < r->n_attrs; k++)
        inst_set_attr(s, r->attrs[k]);
    inst_set_ints(s, ATTR_DIMENSIONS, (Ints){&dim, 1});
    inst_set_callees(s, 1, r->callees);
    return s;
}

bool pass_reduce_scatter_creator(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, scattered);
}
