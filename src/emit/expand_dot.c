/* scaled-dot(lhs, rhs, lhs_scale, rhs_scale) becomes a fusion of a dot whose operands are multiplied by their scales first:
 *
 *   l = convert(lhs) * spread(convert(lhs_scale))    and r likewise, in the type that the dot computes in
 *   dot(l, r), rounded to the result's type
 *
 * Index j of a dimension of size d reads scale j / (d / c) when the scale has size c there: [c0, c1] is spread over [c0, d0 / c0, c1, d1 / c1].
 * A scalar scale stands for none. Source: reference operations 9.3. */
#include "emit/expand.h"

typedef struct Scaled {
    Comp  *c; /* of the fusion */
    Arena *arena;
    Type   type; /* computed in */
} Scaled;

static Inst *converted(const Scaled *s, Inst *x, Type t)
{
    if (x->shape->type == t)
        return x;
    return inst_new(s->c, NULL, OP_CONVERT, shape_array(s->arena, t, x->shape->rank, x->shape->dims), 1, &x, NULL);
}

/* The scale of every element of an array of shape x. */
static Inst *spread(const Scaled *s, Inst *scale, const Shape *x)
{
    int32_t  rank = x->rank;
    int64_t *dims = ARENA_ARRAY(s->arena, int64_t, 2 * (int64_t)rank), *at = ARENA_ARRAY(s->arena, int64_t, rank);
    bool     one = shape_count(scale->shape) == 1;
    if (one) {
        scale = inst_new(s->c, NULL, OP_RESHAPE, shape_scalar(s->arena, s->type), 1, &scale, NULL);
        scale = inst_new(s->c, NULL, OP_BROADCAST, shape_array(s->arena, s->type, rank, x->dims), 1, &scale, NULL);
        inst_set_ints(scale, ATTR_DIMENSIONS, (Ints){ NULL, 0 });
        return scale;
    }
    for (int32_t d = 0; d < rank; d++) {
        int64_t blocks = scale->shape->dims[d];
        dims[2 * d] = blocks;
        dims[2 * d + 1] = blocks > 0 ? x->dims[d] / blocks : 0;
        at[d] = 2 * d;
    }
    Inst *wide = inst_new(s->c, NULL, OP_BROADCAST, shape_array(s->arena, s->type, 2 * rank, dims), 1, &scale, NULL);
    inst_set_ints(wide, ATTR_DIMENSIONS, (Ints){ at, rank });
    return inst_new(s->c, NULL, OP_RESHAPE, shape_array(s->arena, s->type, rank, x->dims), 1, &wide, NULL);
}

static Inst *scaled(const Scaled *s, Inst *x, Inst *scale)
{
    x = converted(s, x, s->type);
    if (scale->shape->rank == 0)
        return x;
    Inst *operands[] = { x, spread(s, converted(s, scale, s->type), x->shape) };
    return inst_new(s->c, NULL, OP_MULTIPLY, x->shape, 2, operands, NULL);
}

void expand_scaled_dot(Inst *i)
{
    static const AttrId dims[] = { ATTR_LHS_BATCH_DIMS, ATTR_LHS_CONTRACTING_DIMS, ATTR_RHS_BATCH_DIMS, ATTR_RHS_CONTRACTING_DIMS };
    Module *m = i->comp->module;
    Type    t = i->shape->type;
    Scaled  s = { .c = comp_new(m, comp_unique_name(m, "scaled")), .arena = m->arena };
    s.type = type_is_float(t) ? TYPE_F64 : t; /* scales alone reach over all of f32 */
    Inst  **operands = ARENA_ARRAY(m->arena, Inst *, i->n_operands), **p = ARENA_ARRAY(m->arena, Inst *, i->n_operands);
    comp_move_before(s.c, i->comp);
    for (int32_t k = 0; k < i->n_operands; k++) {
        operands[k] = inst_operand(i, k);
        p[k] = inst_parameter(s.c, NULL, k, operands[k]->shape, NULL);
    }
    Inst *both[] = { scaled(&s, p[0], p[2]), scaled(&s, p[1], p[3]) };
    Inst *dot = inst_new(s.c, NULL, OP_DOT, shape_array(m->arena, s.type, i->shape->rank, i->shape->dims), 2, both, NULL);
    for (size_t k = 0; k < sizeof dims / sizeof *dims; k++)
        if (inst_attr(i, dims[k]))
            inst_set_ints(dot, dims[k], inst_ints(i, dims[k]));
    dot = inst_new(s.c, NULL, OP_CONVERT, i->shape, 1, &dot, NULL);
    s.c->root = dot;
    Inst *f = inst_new(i->comp, i, OP_FUSION, i->shape, i->n_operands, operands, NULL);
    inst_set_word(f, ATTR_FUSION_KIND, FUSION_OUTPUT);
    inst_set_callees(f, 1, &s.c);
    f->meta = i->meta;
    f->loc = i->loc;
    inst_replace(i, f);
    inst_delete(i);
}
