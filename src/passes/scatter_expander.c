/* scatter_expander - a scatter of one update is an update in place.
 *
 *   %s = f32[8,4] scatter(%x, %at, %u), to_apply=%add, ...        (%at is s32[1], %u is f32[4])
 *     =>
 *   %i = s32[] reshape(%at)                    %w = f32[1,4] reshape(%u)               %old = f32[1,4] dynamic-slice(%x, %i, 0)
 *   %in = pred[] and(%i >= 0, %i <= 7)         %sum = f32[1,4] add(%old, %w)           %new = f32[1,4] select(%in, %sum, %old)
 *   %s = f32[8,4] dynamic-update-slice(%x, %new, %i, 0)
 *
 * An update that does not lie inside of the array counts for nothing, where dynamic-update-slice would move it inside: it writes back then what is
 * there. Of one array and one row of indices; the others stay, as in XLA's simple mode. */
#include "config.h"

#include "passes/expand.h"
#include "passes/util.h"

typedef struct Update {
    Inst        *at, *x;
    const Shape *window; /* one element or more in each dimension of x */
    Inst       **starts;
} Update;

static bool is_single(const Inst *i)
{
    if (i->op != OP_SCATTER || i->n_operands != 3 || inst_ints(i, ATTR_INPUT_BATCHING_DIMS).n || shape_count(i->shape) <= 0 || i->shape->layout)
        return false;
    Ints         to = inst_ints(i, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
    const Inst  *x = inst_operand(i, 0), *indices = inst_operand(i, 1), *u = inst_operand(i, 2);
    const Shape *p = comp_param(inst_callee(i, 0), 0)->shape;
    return to.n > 0 && shape_count(indices->shape) == to.n && x->shape->type == u->shape->type && p->type == x->shape->type &&
           inst_callee(i, 0)->root->shape->type == x->shape->type && shape_count(u->shape) > 0 && !indices->shape->layout && !u->shape->layout &&
           !x->shape->layout;
}

static const Shape *window_of(const Inst *i)
{
    const Shape *s = i->shape, *u = inst_operand(i, 2)->shape;
    Ints         inserted = inst_ints(i, ATTR_INSERTED_WINDOW_DIMS), window = inst_ints(i, ATTR_UPDATE_WINDOW_DIMS);
    Arena       *a = i->comp->module->arena;
    Ints         dims = ints_make(a, s->rank);
    for (int32_t d = 0, n = 0; d < s->rank; d++)
        *ints_at(dims, d) = ints_has(inserted, d) ? 1 : u->dims[window.v[n++]];
    return shape_array(a, s->type, s->rank, dims.v);
}

/* Index k of the row, in a type that the sizes of the array fit in. */
static Inst *start(Inst *i, int32_t k, int32_t n)
{
    Arena       *a = i->comp->module->arena;
    Inst        *indices = inst_operand(i, 1);
    Type         t = indices->shape->type;
    const Shape *row = shape_array(a, t, 1, (int64_t[]){n});
    Inst        *one = expand_slice(i, expand_reshape(i, row, indices), 0, k, k + 1);
    return expand_convert(i, OP_CONVERT, t == TYPE_S32 && shape_count(i->shape) <= INT32_MAX ? t : TYPE_S64, expand_reshape(i, shape_scalar(a, t), one));
}

static Inst *both(Inst *at, Inst *a, Inst *b)
{
    return a ? expand_binary(at, OP_AND, a, b) : b;
}

/* Whether the window lies inside; sets the starts. */
static Inst *inside(Update *u, PassCtx *cx)
{
    Ints  to = inst_ints(u->at, ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
    Inst *in = NULL;
    u->starts = ARENA_ARRAY(cx->scratch, Inst *, u->window->rank);
    for (int32_t k = 0; k < to.n; k++) {
        Inst   *s = start(u->at, k, to.n);
        int64_t d = to.v[k];
        u->starts[d] = s;
        in = both(u->at, in, expand_compare(u->at, s, expand_integer(u->at, s->shape, 0), CMP_GE));
        in = both(u->at, in, expand_compare(u->at, s, expand_integer(u->at, s->shape, u->x->shape->dims[d] - u->window->dims[d]), CMP_LE));
    }
    const Shape *type = u->starts[to.v[0]]->shape;
    for (int32_t d = 0; d < u->window->rank; d++)
        if (!u->starts[d])
            u->starts[d] = expand_integer(u->at, type, 0);
    return in;
}

/* What the window has afterwards: the combining computation applied to the old values and the update. */
static Inst *combined(const Update *u, Inst *old, Inst *with)
{
    Comp *body = inst_callee(u->at, 0);
    Op    op = comp_binary_op(body);
    if (body->root == comp_param(body, 1))
        return with;
    if (op != OP_COUNT) {
        bool first = inst_operand(body->root, 0) == comp_param(body, 0);
        return expand_binary(u->at, op, first ? old : with, first ? with : old);
    }
    Inst *map = expand_op(u->at, OP_MAP, u->window, 2, (Inst *[]){old, with});
    inst_set_ints(map, ATTR_DIMENSIONS, ints_iota(u->at->comp->module->arena, u->window->rank));
    inst_set_callees(map, 1, &body);
    return map;
}

static Inst *expand(PassCtx *cx, Inst *i)
{
    if (!is_single(i))
        return NULL;
    Update  u = {.at = i, .x = inst_operand(i, 0), .window = window_of(i)};
    int32_t rank = u.window->rank;
    Inst   *in = inside(&u, cx), *with = expand_reshape(i, u.window, inst_operand(i, 2));
    Inst  **operands = ARENA_ARRAY(cx->scratch, Inst *, rank + 2);
    operands[1] = u.x;
    for (int32_t d = 0; d < rank; d++)
        operands[d + 2] = u.starts[d];
    Inst *old = expand_op(i, OP_DYNAMIC_SLICE, u.window, rank + 1, operands + 1);
    Ints  sizes = ints_make(cx->scratch, rank);
    for (int32_t d = 0; d < rank; d++)
        *ints_at(sizes, d) = u.window->dims[d];
    inst_set_ints(old, ATTR_DYNAMIC_SLICE_SIZES, sizes);
    if (rank > 0)
        in = expand_broadcast(i, shape_with_type(i->comp->module->arena, u.window, TYPE_PRED), in, (Ints){NULL, 0});
    operands[0] = u.x;
    operands[1] = expand_op(i, OP_SELECT, u.window, 3, (Inst *[]){in, combined(&u, old, with), old});
    return expand_op(i, OP_DYNAMIC_UPDATE_SLICE, i->shape, rank + 2, operands);
}

bool pass_scatter_expander(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, expand);
}
