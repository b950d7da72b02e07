/* dot_decomposer - every dot as a product of matrices.
 *
 *   ROOT %d = f32[2,3,7] dot(%x, %y), contracting {2} of x [2,3,5] and {1} of y [7,5]
 *   =>
 *   %a = f32[6,5] reshape(%x)
 *   %b = f32[5,7] transpose(%y), dimensions={1,0}
 *   %m = f32[6,7] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 *   ROOT %r = f32[2,3,7] reshape(%m)
 *
 * The form is [batch..., m, k] x [batch..., k, n] -> [batch..., m, n]: batch dimensions first and in order, one contracting dimension, at most one
 * free dimension a side (none where its size would be 1). Batch dimensions of size 1 go as well. Already so, in either order of m, n and k, is
 * left alone. Keeps: what is summed and in which order. No level runs it: the emitter takes dimension numbers as they are, and algsimp folds
 * transposes back into dots. */
#include "config.h"

#include "passes/expand.h"

#include "passes/util.h"

typedef struct Side {
    Inst *x;
    Ints  batch, contracting, free;
} Side;

static Ints free_dims(Arena *a, const Shape *s, Ints batch, Ints contracting)
{
    Ints    dims = ints_make(a, s->rank);
    int32_t n = 0;
    for (int32_t d = 0; d < s->rank; d++)
        if (!ints_has(batch, d) && !ints_has(contracting, d))
            *ints_at(dims, n++) = d;
    return (Ints){dims.v, n};
}

static Side side_of(Arena *a, const Inst *dot, int32_t k)
{
    Side s = {inst_operand(dot, k), inst_ints(dot, k ? ATTR_RHS_BATCH_DIMS : ATTR_LHS_BATCH_DIMS),
              inst_ints(dot, k ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS), {NULL, 0}};
    s.free = free_dims(a, s.x->shape, s.batch, s.contracting);
    return s;
}

static bool is_canonical(const Side *s)
{
    for (int32_t k = 0; k < s->batch.n; k++)
        if (s->batch.v[k] != k || s->x->shape->dims[k] == 1)
            return false;
    return s->contracting.n == 1 && s->free.n <= 1;
}

static int64_t size_of(const Side *s, Ints dims)
{
    int64_t n = 1;
    for (int32_t k = 0; k < dims.n; k++)
        n *= s->x->shape->dims[dims.v[k]];
    return n;
}

static Inst *made(const Inst *dot, Op op, const Shape *shape, Inst *x)
{
    Inst *i = inst_new(dot->comp, (Inst *)(uintptr_t)dot, op, shape, 1, &x, NULL);
    i->meta = dot->meta;
    i->loc = dot->loc;
    return i;
}

static Inst *reshaped(const Inst *dot, const Shape *shape, Inst *x)
{
    return shape_equal(shape, x->shape) ? x : made(dot, OP_RESHAPE, shape, x);
}

/* The operand as [batch..., first, second]; the sizes of 1 among batch, and a free group of size 1, are left out. */
static Inst *matrix(const Inst *dot, const Side *s, bool free_first, Arena *scratch)
{
    Arena       *a = dot->comp->module->arena;
    const Shape *x = s->x->shape;
    Ints         groups[] = {s->batch, free_first ? s->free : s->contracting, free_first ? s->contracting : s->free};
    Ints         perm = ints_make(scratch, x->rank), turned = ints_make(scratch, x->rank), sizes = ints_make(scratch, s->batch.n + 2);
    int32_t      n = 0, m = 0;
    bool         moved = false;
    for (int g = 0; g < 3; g++)
        for (int32_t k = 0; k < groups[g].n; k++) {
            moved |= groups[g].v[k] != n;
            *ints_at(turned, n) = x->dims[groups[g].v[k]];
            *ints_at(perm, n++) = groups[g].v[k];
        }
    Inst *t = s->x;
    if (moved) {
        t = made(dot, OP_TRANSPOSE, shape_array(a, x->type, n, turned.v), t);
        inst_set_ints(t, ATTR_DIMENSIONS, perm);
    }
    for (int32_t k = 0; k < s->batch.n; k++)
        if (x->dims[s->batch.v[k]] != 1)
            *ints_at(sizes, m++) = x->dims[s->batch.v[k]];
    for (int g = 1; g < 3; g++) {
        bool    is_free = (g == 1) == free_first;
        int64_t size = size_of(s, groups[g]);
        if (!is_free || size != 1)
            *ints_at(sizes, m++) = size;
    }
    return reshaped(dot, shape_array(a, x->type, m, sizes.v), t);
}

static bool may_decompose(const Inst *i)
{
    if (i->op != OP_DOT || i->n_operands != 2 || inst_attr(i, ATTR_SPARSITY_CONFIG) || inst_attr(i, ATTR_BLOCK_SCALING_CONFIG))
        return false;
    for (int32_t k = 0; k < 2; k++)
        if (inst_operand(i, k)->shape->layout || shape_count(inst_operand(i, k)->shape) < 0)
            return false;
    return !i->shape->layout && shape_count(i->shape) >= 0;
}

static Inst *decompose(PassCtx *cx, Inst *i)
{
    if (!may_decompose(i))
        return NULL;
    Side l = side_of(cx->scratch, i, 0), r = side_of(cx->scratch, i, 1);
    if (is_canonical(&l) && is_canonical(&r))
        return NULL;
    Arena  *a = i->comp->module->arena;
    Inst   *operands[] = {matrix(i, &l, true, cx->scratch), matrix(i, &r, false, cx->scratch)};
    int32_t batch = 0, n;
    for (int32_t k = 0; k < l.batch.n; k++)
        batch += l.x->shape->dims[l.batch.v[k]] != 1;
    Ints    sizes = ints_make(cx->scratch, batch + 2);
    int64_t rows = size_of(&l, l.free), columns = size_of(&r, r.free);
    for (n = 0; n < batch; n++)
        *ints_at(sizes, n) = operands[0]->shape->dims[n];
    if (rows != 1)
        *ints_at(sizes, n++) = rows;
    if (columns != 1)
        *ints_at(sizes, n++) = columns;
    Inst *dot = inst_clone_into(i->comp, i, i, 2, operands);
    inst_set_shape(dot, shape_array(a, i->shape->type, n, sizes.v));
    inst_drop_attr(dot, ATTR_LHS_BATCH_DIMS);
    inst_drop_attr(dot, ATTR_RHS_BATCH_DIMS);
    if (batch) {
        inst_set_ints(dot, ATTR_LHS_BATCH_DIMS, ints_iota(cx->scratch, batch));
        inst_set_ints(dot, ATTR_RHS_BATCH_DIMS, ints_iota(cx->scratch, batch));
    }
    inst_set_ints(dot, ATTR_LHS_CONTRACTING_DIMS, (Ints){(int64_t[]){batch + (rows != 1)}, 1});
    inst_set_ints(dot, ATTR_RHS_CONTRACTING_DIMS, (Ints){(int64_t[]){batch}, 1});
    return reshaped(i, i->shape, dot);
}

bool pass_dot_decomposer(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, decompose);
}
