/* ragged-dot becomes a fusion over operands in one order, [batch, free, contracting] of lhs and [group, batch, contracting, free] of rhs. The ragged
 * dimension r stands in its list of lhs' dimensions behind `outer` positions and before `inner` elements; end[p, g] is the sum of the sizes
 * of groups 0..g for outer position p, at most the size of r, and group(p, r) how many ends are not above r: G where r lies in none.
 *
 *   r free         out[b, m, n]     sum over k of lhs[b, m, k] * rhs[group(m), b, k, n], 0 in no group
 *   r contracting  out[g, b, m, n]  dot of lhs and rhs, both 0 where group(k) is not g
 *   r batch        out[b, m, n]     dot of lhs and rhs, 0 in no group
 *
 * Negative sizes count as 0. Source: reference operations 9.2. */
#include "emit/expand.h"

typedef struct Ragged {
    const Inst *i;
    Comp       *c; /* of the fusion */
    Arena      *arena;
    Type        type; /* computed in */
    Ints        lhs_batch, lhs_contracting, lhs_free, rhs_batch, rhs_contracting, rhs_free, group;
    Ints        list; /* the one with the ragged dimension */
    int64_t     outer, length, inner, groups, batch, m, n, k;
} Ragged;

/* ---- building ---- */

static const Shape *array(const Ragged *r, Type t, int32_t rank, const int64_t *dims)
{
    return shape_array(r->arena, t, rank, dims);
}

static Inst *made(const Ragged *r, Op op, const Shape *s, int32_t n, Inst *const *operands)
{
    return inst_new(r->c, NULL, op, s, n, operands, NULL);
}

static Inst *with_dims(Inst *x, int32_t n, const int64_t *dims)
{
    inst_set_ints(x, ATTR_DIMENSIONS, (Ints){ dims, n });
    return x;
}

static Inst *converted(const Ragged *r, Inst *x, Type t)
{
    return x->shape->type == t ? x : made(r, OP_CONVERT, array(r, t, x->shape->rank, x->shape->dims), 1, &x);
}

static Inst *reshaped(const Ragged *r, Inst *x, int32_t rank, const int64_t *dims)
{
    return made(r, OP_RESHAPE, array(r, x->shape->type, rank, dims), 1, &x);
}

static Inst *spread(const Ragged *r, Inst *x, const Shape *to, int32_t n, const int64_t *at)
{
    return with_dims(made(r, OP_BROADCAST, array(r, x->shape->type, to->rank, to->dims), 1, &x), n, at);
}

static Inst *constant(const Ragged *r, Type t, int64_t v)
{
    return inst_constant(r->c, NULL, literal_from_s64(t, v), NULL);
}

static Inst *filled(const Ragged *r, const Shape *to, Type t, int64_t v)
{
    return spread(r, constant(r, t, v), to, 0, NULL);
}

static Inst *compared(const Ragged *r, Inst *x, Inst *y, Word direction)
{
    Inst *c = made(r, OP_COMPARE, array(r, TYPE_PRED, x->shape->rank, x->shape->dims), 2, (Inst *const[]){ x, y });
    inst_set_word(c, ATTR_DIRECTION, direction);
    return c;
}

/* x, or 0 where test fails. */
static Inst *kept(const Ragged *r, Inst *test, Inst *x)
{
    return made(r, OP_SELECT, x->shape, 3, (Inst *const[]){ test, x, filled(r, x->shape, x->shape->type, 0) });
}

static Inst *iota(const Ragged *r, const Shape *s, int64_t d)
{
    Inst *x = made(r, OP_IOTA, array(r, TYPE_S64, s->rank, s->dims), 0, NULL);
    inst_set_int(x, ATTR_IOTA_DIMENSION, d);
    return x;
}

static Comp *addition(const Ragged *r, Type t)
{
    Module      *m = r->i->comp->module;
    Comp        *c = comp_new(m, comp_unique_name(m, "add"));
    const Shape *s = shape_scalar(r->arena, t);
    comp_move_before(c, r->c);
    Inst *p[2] = { inst_parameter(c, NULL, 0, s, NULL), inst_parameter(c, NULL, 1, s, NULL) };
    c->root = inst_new(c, NULL, OP_ADD, s, 2, p, NULL);
    return c;
}

static Inst *summed(const Ragged *r, Inst *x, int64_t d)
{
    int64_t *dims = ARENA_ARRAY(r->arena, int64_t, x->shape->rank);
    Type     t = x->shape->type;
    Comp    *add = addition(r, t);
    for (int32_t k = 0, n = 0; k < x->shape->rank; k++)
        if (k != d)
            dims[n++] = x->shape->dims[k];
    Inst *s = made(r, OP_REDUCE, array(r, t, x->shape->rank - 1, dims), 2, (Inst *const[]){ x, constant(r, t, 0) });
    inst_set_callees(s, 1, &add);
    return with_dims(s, 1, &d);
}

/* x with its dimensions in the order of these lists, each list one dimension. */
static Inst *in_order(const Ragged *r, Inst *x, int32_t n_lists, const Ints *lists)
{
    int32_t  rank = 0;
    int64_t *order = ARENA_ARRAY(r->arena, int64_t, x->shape->rank), *dims = ARENA_ARRAY(r->arena, int64_t, x->shape->rank);
    int64_t *sizes = ARENA_ARRAY(r->arena, int64_t, n_lists);
    for (int32_t l = 0; l < n_lists; l++) {
        sizes[l] = 1;
        for (int32_t k = 0; k < lists[l].n; k++) {
            order[rank] = lists[l].v[k];
            dims[rank] = x->shape->dims[order[rank]];
            sizes[l] *= dims[rank++];
        }
    }
    x = with_dims(made(r, OP_TRANSPOSE, array(r, x->shape->type, rank, dims), 1, &x), rank, order);
    return converted(r, reshaped(r, x, n_lists, sizes), r->type);
}

/* ---- groups ---- */

/* end[rows, G], rows = 1 where one list of sizes holds for all. */
static Inst *ends(const Ragged *r, Inst *sizes)
{
    int64_t rows = shape_count(sizes->shape) / r->groups;
    if (sizes->shape->type == TYPE_U64)
        sizes = made(r, OP_MINIMUM, sizes->shape, 2, (Inst *const[]){ sizes, filled(r, sizes->shape, TYPE_U64, r->length) });
    sizes = reshaped(r, converted(r, sizes, TYPE_S64), 2, (const int64_t[]){ rows, r->groups });
    const Shape *s = sizes->shape, *wide = array(r, TYPE_S64, 3, (const int64_t[]){ rows, r->groups, r->groups });
    sizes = made(r, OP_CLAMP, s, 3, (Inst *const[]){ filled(r, s, TYPE_S64, 0), sizes, filled(r, s, TYPE_S64, r->length) });
    Inst *before = compared(r, iota(r, wide, 1), iota(r, wide, 2), CMP_LE); /* group d1 is not behind group d2 */
    Inst *sum = summed(r, kept(r, before, spread(r, sizes, wide, 2, (const int64_t[]){ 0, 1 })), 1);
    return made(r, OP_MINIMUM, s, 2, (Inst *const[]){ sum, filled(r, s, TYPE_S64, r->length) });
}

/* group[n] of the elements of `times` lists one after the other. */
static Inst *groups(const Ragged *r, Inst *sizes, int64_t times)
{
    const Shape *all = array(r, TYPE_S64, 4, (const int64_t[]){ times * r->outer, r->length, r->inner, r->groups });
    Inst        *end = ends(r, sizes);
    if (end->shape->dims[0] == 1)
        end = spread(r, reshaped(r, end, 1, &r->groups), all, 1, (const int64_t[]){ 3 });
    else
        end = spread(r, end, all, 2, (const int64_t[]){ 0, 3 });
    Inst   *passed = converted(r, compared(r, end, iota(r, all, 1), CMP_LE), TYPE_S64);
    int64_t n = times * r->outer * r->length * r->inner;
    return reshaped(r, summed(r, passed, 3), 1, &n);
}

/* ---- products ---- */

static Inst *product(const Ragged *r, Inst *lhs, Inst *rhs)
{
    int32_t  n = lhs->shape->rank - 2;
    int64_t *dims = ARENA_ARRAY(r->arena, int64_t, n + 2), *batch = ARENA_ARRAY(r->arena, int64_t, n), left = n + 1, right = n;
    for (int32_t k = 0; k < n; k++) {
        batch[k] = k;
        dims[k] = lhs->shape->dims[k];
    }
    dims[n] = r->m;
    dims[n + 1] = r->n;
    Inst *x = made(r, OP_DOT, array(r, r->type, n + 2, dims), 2, (Inst *const[]){ lhs, rhs });
    inst_set_ints(x, ATTR_LHS_BATCH_DIMS, (Ints){ batch, n });
    inst_set_ints(x, ATTR_RHS_BATCH_DIMS, (Ints){ batch, n });
    inst_set_ints(x, ATTR_LHS_CONTRACTING_DIMS, (Ints){ &left, 1 });
    inst_set_ints(x, ATTR_RHS_CONTRACTING_DIMS, (Ints){ &right, 1 });
    return x;
}

static Inst *rows_by_group(const Ragged *r, Inst *lhs, Inst *rhs, Inst *sizes)
{
    int64_t      vector[] = { r->batch, r->m, 1 }, wide[] = { r->batch, r->m, r->k, r->n };
    const Shape *all = array(r, r->type, 4, wide);
    Inst        *group = reshaped(r, groups(r, sizes, r->batch), 3, vector), *operands[] = { rhs, group };
    Inst        *chosen = made(r, OP_GATHER, all, 2, operands); /* its index is clamped, so rows in no group have some values too */
    inst_set_ints(chosen, ATTR_OFFSET_DIMS, (Ints){ (const int64_t[]){ 2, 3 }, 2 });
    inst_set_ints(chosen, ATTR_COLLAPSED_SLICE_DIMS, (Ints){ (const int64_t[]){ 0 }, 1 });
    inst_set_ints(chosen, ATTR_START_INDEX_MAP, (Ints){ (const int64_t[]){ 0 }, 1 });
    inst_set_ints(chosen, ATTR_OPERAND_BATCHING_DIMS, (Ints){ (const int64_t[]){ 1 }, 1 });
    inst_set_ints(chosen, ATTR_START_INDICES_BATCHING_DIMS, (Ints){ (const int64_t[]){ 0 }, 1 });
    inst_set_ints(chosen, ATTR_SLICE_SIZES, (Ints){ (const int64_t[]){ 1, 1, r->k, r->n }, 4 });
    inst_set_int(chosen, ATTR_INDEX_VECTOR_DIM, 2);
    Inst *terms = made(r, OP_MULTIPLY, all, 2, (Inst *const[]){ spread(r, lhs, all, 3, (const int64_t[]){ 0, 1, 2 }), chosen });
    Inst *sum = summed(r, terms, 2), *flat = reshaped(r, group, 2, vector);
    Inst *some = compared(r, flat, filled(r, flat->shape, TYPE_S64, r->groups), CMP_LT);
    return kept(r, spread(r, some, sum->shape, 2, (const int64_t[]){ 0, 1 }), sum);
}

static Inst *sums_by_group(const Ragged *r, Inst *lhs, Inst *rhs, Inst *sizes)
{
    int64_t      of_lhs[] = { r->groups, r->batch, r->m, r->k }, of_rhs[] = { r->groups, r->batch, r->k, r->n };
    const Shape *left = array(r, r->type, 4, of_lhs), *right = array(r, r->type, 4, of_rhs);
    const Shape *both = array(r, TYPE_S64, 3, (const int64_t[]){ r->groups, r->batch, r->k });
    Inst        *group = reshaped(r, groups(r, sizes, r->batch), 2, (const int64_t[]){ r->batch, r->k });
    Inst        *own = compared(r, spread(r, group, both, 2, (const int64_t[]){ 1, 2 }), iota(r, both, 0), CMP_EQ);
    lhs = kept(r, spread(r, own, left, 3, (const int64_t[]){ 0, 1, 3 }), spread(r, lhs, left, 3, (const int64_t[]){ 1, 2, 3 }));
    rhs = kept(r, spread(r, own, right, 3, (const int64_t[]){ 0, 1, 2 }), spread(r, rhs, right, 3, (const int64_t[]){ 1, 2, 3 }));
    return product(r, lhs, rhs);
}

static Inst *batches_in_groups(const Ragged *r, Inst *lhs, Inst *rhs, Inst *sizes)
{
    Inst *x = product(r, lhs, rhs), *group = groups(r, sizes, 1);
    Inst *some = compared(r, group, filled(r, group->shape, TYPE_S64, r->groups), CMP_LT);
    return kept(r, spread(r, some, x->shape, 1, (const int64_t[]){ 0 }), x);
}

/* ---- the instruction ---- */

/* Dimensions that no list names. */
static Ints others(Arena *a, int32_t rank, int32_t n_lists, const Ints *lists)
{
    int64_t *v = ARENA_ARRAY(a, int64_t, rank);
    int32_t  n = 0;
    for (int32_t d = 0; d < rank; d++) {
        bool named = false;
        for (int32_t l = 0; l < n_lists; l++)
            named |= ints_has(lists[l], d);
        if (!named)
            v[n++] = d;
    }
    return (Ints){ v, n };
}

static int64_t count(const Shape *s, Ints dims)
{
    int64_t n = 1;
    for (int32_t k = 0; k < dims.n; k++)
        n *= s->dims[dims.v[k]];
    return n;
}

static void read_dims(Ragged *r)
{
    const Inst  *i = r->i;
    const Shape *lhs = inst_operand(i, 0)->shape, *rhs = inst_operand(i, 1)->shape, *sizes = inst_operand(i, 2)->shape;
    int64_t      ragged = inst_ints(i, ATTR_LHS_RAGGED_DIMS).v[0];
    bool         behind = false;
    r->lhs_batch = inst_ints(i, ATTR_LHS_BATCH_DIMS);
    r->rhs_batch = inst_ints(i, ATTR_RHS_BATCH_DIMS);
    r->lhs_contracting = inst_ints(i, ATTR_LHS_CONTRACTING_DIMS);
    r->rhs_contracting = inst_ints(i, ATTR_RHS_CONTRACTING_DIMS);
    r->group = inst_ints(i, ATTR_RHS_GROUP_DIMS);
    r->lhs_free = others(r->arena, lhs->rank, 2, (const Ints[]){ r->lhs_batch, r->lhs_contracting });
    r->rhs_free = others(r->arena, rhs->rank, 3, (const Ints[]){ r->group, r->rhs_batch, r->rhs_contracting });
    r->list = ints_has(r->lhs_batch, ragged) ? r->lhs_batch : ints_has(r->lhs_contracting, ragged) ? r->lhs_contracting : r->lhs_free;
    r->outer = r->inner = 1;
    for (int32_t k = 0; k < r->list.n; k++)
        if (r->list.v[k] == ragged)
            behind = true;
        else
            *(behind ? &r->inner : &r->outer) *= lhs->dims[r->list.v[k]];
    r->length = lhs->dims[ragged];
    r->groups = sizes->dims[sizes->rank - 1];
    r->batch = count(lhs, r->lhs_batch);
    r->m = count(lhs, r->lhs_free);
    r->k = count(lhs, r->lhs_contracting);
    r->n = count(rhs, r->rhs_free);
}

static Comp *ragged_body(Ragged *r)
{
    const Inst *i = r->i;
    Inst       *p[3], *x;
    for (int32_t k = 0; k < 3; k++)
        p[k] = inst_parameter(r->c, NULL, k, inst_operand(i, k)->shape, NULL);
    if (r->groups == 0 || shape_count(i->shape) == 0 || r->length == 0) {
        r->c->root = filled(r, i->shape, i->shape->type, 0);
        return r->c;
    }
    Inst *lhs = in_order(r, p[0], 3, (const Ints[]){ r->lhs_batch, r->lhs_free, r->lhs_contracting });
    if (r->list.v == r->lhs_free.v)
        x = rows_by_group(r, lhs, in_order(r, p[1], 4, (const Ints[]){ r->group, r->rhs_batch, r->rhs_contracting, r->rhs_free }), p[2]);
    else {
        Inst *rhs = in_order(r, p[1], 3, (const Ints[]){ r->rhs_batch, r->rhs_contracting, r->rhs_free });
        x = r->list.v == r->lhs_batch.v ? batches_in_groups(r, lhs, rhs, p[2]) : sums_by_group(r, lhs, rhs, p[2]);
    }
    r->c->root = converted(r, reshaped(r, x, i->shape->rank, i->shape->dims), i->shape->type);
    return r->c;
}

void expand_ragged_dot(Inst *i)
{
    Module *m = i->comp->module;
    Type    t = i->shape->type;
    Ragged  r = { .i = i, .c = comp_new(m, comp_unique_name(m, "ragged")), .arena = m->arena };
    r.type = type_is_float(t) && type_bits(t) < 32 ? TYPE_F32 : t;
    comp_move_before(r.c, i->comp);
    read_dims(&r);
    Comp *body = ragged_body(&r);
    Inst *operands[] = { inst_operand(i, 0), inst_operand(i, 1), inst_operand(i, 2) };
    Inst *f = inst_new(i->comp, i, OP_FUSION, body->root->shape, 3, operands, NULL);
    inst_set_word(f, ATTR_FUSION_KIND, FUSION_LOOP);
    inst_set_callees(f, 1, &body);
    f->meta = i->meta;
    f->loc = i->loc;
    if (!shape_equal(f->shape, i->shape))
        f = inst_new(i->comp, i, OP_COPY, i->shape, 1, &f, NULL); /* in the layout that is asked for */
    inst_replace(i, f);
    inst_delete(i);
}
