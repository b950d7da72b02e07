/* A large reduction to few elements, so that threads may share it: the outermost dimension in equal parts, a result for each of them, then those.
 *
 *     r = f32[] reduce(x, init)        =>        s = f32[64,16,1024] reshape(x)                 x: f32[1024,1024]
 *                                                p = f32[64] reduce(s, 0), dimensions={1,2}
 *                                                r = f32[] reduce(p, init), dimensions={0}
 *
 * The parts follow from the shape, so that the bits do not depend on the number of threads. A reduction at the end of a fusion keeps what is fused
 * into it. Narrow floats would round once more in between and stay as they are. */
#include "emit/expand.h"

#include "passes/util.h"

enum { LEAST = 1 << 19 /* elements */, MOST_RESULTS = 8192, LEAST_ROWS = 16 /* of a part that has many results */, LEAST_PARTS = 8, MOST_PARTS = 64 };

bool reduction_has_parts(const Inst *r)
{
    Type t = r->shape->type;
    if (t != TYPE_F32 && t != TYPE_F64 && t != TYPE_S32 && t != TYPE_U32 && t != TYPE_S64 && t != TYPE_U64)
        return false;
    switch (comp_binary_op(inst_callee(r, 0))) {
    case OP_ADD: case OP_MULTIPLY: case OP_MAXIMUM: case OP_MINIMUM: case OP_AND: case OP_OR: return true;
    default: return false;
    }
}

Inst *reduction_start_of_part(Inst *r)
{
    Type t = r->shape->type;
    Op   op = comp_binary_op(inst_callee(r, 0));
    if (op != OP_ADD && op != OP_MULTIPLY)
        return inst_operand(r, 1);
    double v = op == OP_MULTIPLY ? 1 : type_is_float(t) ? -0.0 : 0;
    return inst_constant(r->comp, r, literal_from_f64(t, v), NULL);
}

/* The number of parts: the largest that divides the outermost dimension, one that leaves a row whole vectors if any does. 0: none does. */
static int64_t parts_of(const Shape *in)
{
    enum { VECTORS = 64 };
    int64_t best = 0, n = in->dims[0];
    for (int64_t p = MOST_PARTS; p >= LEAST_PARTS; p--) {
        if (n % p != 0)
            continue;
        if (in->rank > 1 || n / p % VECTORS == 0)
            return p;
        best = best ? best : p;
    }
    return best;
}

static bool is_divided(const Inst *r)
{
    const Shape *in = r->op == OP_REDUCE && r->n_operands == 2 ? inst_operand(r, 0)->shape : NULL;
    if (!in || in->rank == 0 || !ints_has(inst_ints(r, ATTR_DIMENSIONS), 0) || shape_count(in) < LEAST || shape_count(r->shape) > MOST_RESULTS)
        return false;
    int64_t parts = parts_of(in);
    bool    long_parts = parts > 0 && shape_count(in) / parts >= LEAST_ROWS * shape_count(r->shape);
    return layout_is_row_major(in) && layout_is_row_major(r->shape) && long_parts && reduction_has_parts(r);
}

bool reduce_expands(const Inst *i)
{
    const Inst *r = i->op == OP_FUSION && i->n_callees == 1 ? inst_callee(i, 0)->root : i;
    if (!is_divided(r))
        return false;
    return r == i || inst_operand(r, 1)->op == OP_PARAMETER || inst_operand(r, 1)->op == OP_CONSTANT;
}

/* A result for each part, in front of r. */
static Inst *reduce_parts(Inst *r)
{
    Arena       *a = r->comp->module->arena;
    Inst        *x = inst_operand(r, 0);
    const Shape *in = x->shape, *out = r->shape;
    Ints         dims = inst_ints(r, ATTR_DIMENSIONS);
    int64_t      parts = parts_of(in), *split = ARENA_ARRAY(a, int64_t, in->rank + 1), *kept = ARENA_ARRAY(a, int64_t, out->rank + 1);
    int64_t     *reduced = ARENA_ARRAY(a, int64_t, dims.n);
    split[0] = kept[0] = parts;
    for (int32_t d = 0; d < in->rank; d++)
        split[d + 1] = d == 0 ? in->dims[0] / parts : in->dims[d];
    for (int32_t d = 0; d < out->rank; d++)
        kept[d + 1] = out->dims[d];
    for (int32_t k = 0; k < dims.n; k++)
        reduced[k] = dims.v[k] + 1;
    Inst *operands[] = { inst_new(r->comp, r, OP_RESHAPE, shape_array(a, in->type, in->rank + 1, split), 1, &x, NULL), reduction_start_of_part(r) };
    Inst *p = inst_new(r->comp, r, OP_REDUCE, shape_array(a, out->type, out->rank + 1, kept), 2, operands, NULL);
    Comp *by = inst_callee(r, 0);
    inst_set_ints(p, ATTR_DIMENSIONS, (Ints){ .v = reduced, .n = dims.n });
    inst_set_callees(p, 1, &by);
    operands[0]->meta = p->meta = r->meta;
    operands[0]->loc = p->loc = r->loc;
    return p;
}

/* The results of the parts as one, where i was. */
static void join_parts(Inst *i, const Inst *r, Inst *parts, Inst *start)
{
    Inst *joined = inst_new(i->comp, i, OP_REDUCE, r->shape, 2, (Inst *const[]){ parts, start }, NULL);
    Comp *by = inst_callee(r, 0);
    inst_set_ints(joined, ATTR_DIMENSIONS, (Ints){ .v = (const int64_t[]){ 0 }, .n = 1 });
    inst_set_callees(joined, 1, &by);
    joined->meta = i->meta;
    joined->loc = i->loc;
    inst_replace(i, joined);
    inst_delete(i);
}

/* The value that a fusion's reduction starts with, outside. */
static Inst *start_outside(Inst *i, const Inst *start)
{
    return start->op == OP_PARAMETER ? inst_operand(i, (int32_t)start->param) : inst_clone_into(i->comp, i, start, 0, NULL);
}

void expand_in_two(Inst *i, Inst *(*parts)(Inst *r), void (*join)(Inst *i, const Inst *r, Inst *parts, Inst *start))
{
    if (i->op != OP_FUSION) {
        join(i, i, parts(i), inst_operand(i, 1));
        return;
    }
    Comp *whole = inst_callee(i, 0), *body = comp_clone(whole, whole->name);
    Inst *start = start_outside(i, inst_operand(whole->root, 1));
    int32_t n = i->n_operands;
    Inst  **operands = ARENA_ARRAY(i->comp->module->arena, Inst *, n);
    for (int32_t k = 0; k < n; k++)
        operands[k] = inst_operand(i, k);
    body->root = parts(body->root);
    comp_sweep_dead(body, body->n_insts);
    Inst *f = inst_new(i->comp, i, OP_FUSION, body->root->shape, n, operands, NULL);
    inst_set_word(f, ATTR_FUSION_KIND, inst_word(i, ATTR_FUSION_KIND));
    inst_set_callees(f, 1, &body);
    f->meta = i->meta;
    f->loc = i->loc;
    join(i, whole->root, f, start);
}

void expand_reduction(Inst *i)
{
    expand_in_two(i, reduce_parts, join_parts);
}
