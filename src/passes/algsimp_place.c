/* Rules of algsimp about places that are computed: dynamic slices and updates through other instructions, gathers from few elements, scatters. Places are
 * moved back until what is cut or written lies within the array; what adds two of them up does so to each before. */
#include "config.h"

#include "passes/algsimp.h"

/* ---- places ---- */

static Inst **starts_of(Simp *s, const Inst *i)
{
    int32_t first = i->op == OP_DYNAMIC_SLICE ? 1 : 2, rank = inst_operand(i, 0)->shape->rank;
    Inst  **v = i->n_operands == first + rank ? ARENA_ARRAY(s->scratch, Inst *, rank + 1) : NULL; /* else they are one vector */
    for (int32_t k = 0; v && k < rank; k++)
        v[k] = inst_operand(i, first + k);
    return v;
}

static Inst *number(Simp *s, Type t, int64_t v)
{
    return simp_splat(s, shape_scalar(s->arena, t), v);
}

static Inst *update_at(Simp *s, Inst *x, Inst *u, Inst *const *starts)
{
    int32_t rank = x->shape->rank;
    Inst  **operands = ARENA_ARRAY(s->scratch, Inst *, rank + 2);
    operands[0] = x;
    operands[1] = u;
    for (int32_t k = 0; k < rank; k++)
        operands[k + 2] = starts[k];
    return simp_new(s, OP_DYNAMIC_UPDATE_SLICE, x->shape, rank + 2, operands);
}

/* Where a part of `size` of an array of `whole` elements really begins. */
static Inst *clamped(Simp *s, Inst *start, int64_t whole, int64_t size)
{
    if (splat_is(start, 0))
        return start;
    Type t = start->shape->type;
    return simp_new(s, OP_CLAMP, start->shape, 3, (Inst *[]){number(s, t, 0), start, number(s, t, whole - size)});
}

static Inst *plus(Simp *s, Inst *a, Inst *b)
{
    if (splat_is(a, 0) || splat_is(b, 0))
        return splat_is(a, 0) ? b : a;
    return simp_new(s, OP_ADD, a->shape, 2, (Inst *[]){a, b});
}

/* Sums of places within an array of such a size stay within the type. */
static bool can_add(const Inst *start, int64_t size)
{
    Type t = start->shape->type;
    return t == TYPE_S64 || t == TYPE_U64 || ((t == TYPE_S32 || t == TYPE_U32) && size <= INT32_MAX);
}

/* Two parts of the same array begin at the same places. */
static bool begin_alike(const Inst *x, const Inst *y)
{
    int32_t a = x->op == OP_DYNAMIC_SLICE ? 1 : 2, b = y->op == OP_DYNAMIC_SLICE ? 1 : 2, rank = inst_operand(x, 0)->shape->rank;
    if (x->n_operands != a + rank || y->n_operands != b + rank)
        return false;
    for (int32_t k = 0; k < rank; k++)
        if (inst_operand(x, a + k) != inst_operand(y, b + k) && !simp_same_splat(inst_operand(x, a + k), inst_operand(y, b + k)))
            return false;
    return true;
}

/* ---- dynamic slices ---- */

/* The places in x of places in its reshape. */
static Inst **through_reshape(Simp *s, Inst *const *starts, const int32_t *from, int32_t rank, int32_t x_rank)
{
    Inst **v = ARENA_ARRAY(s->scratch, Inst *, x_rank + 1);
    Inst  *zero = NULL;
    for (int32_t k = 0; k < x_rank; k++)
        v[k] = NULL;
    for (int32_t d = 0; d < rank; d++)
        if (from[d] >= 0)
            v[from[d]] = starts[d];
    for (int32_t k = 0; k < x_rank; k++)
        if (!v[k]) {
            zero = zero ? zero : number(s, rank ? starts[0]->shape->type : TYPE_S32, 0);
            v[k] = zero;
        }
    return v;
}

Inst *rule_dynamic_slice_reshape(Simp *s, Inst *i)
{
    const Inst *r = inst_operand(i, 0);
    Inst      **starts = r->op == OP_RESHAPE ? starts_of(s, i) : NULL;
    if (!starts || shape_count(i->shape) <= 0)
        return NULL;
    Inst    *x = inst_operand(r, 0);
    int32_t *from = ARENA_ARRAY(s->scratch, int32_t, r->shape->rank + 1), rank = x->shape->rank;
    if (!shape_unit_dims(r->shape, x->shape, from))
        return NULL;
    Ints sizes = scratch_ints(s, rank);
    for (int32_t k = 0; k < rank; k++)
        *ints_at(sizes, k) = 1;
    for (int32_t d = 0; d < r->shape->rank; d++)
        if (from[d] >= 0)
            *ints_at(sizes, from[d]) = i->shape->dims[d];
    Inst **v = through_reshape(s, starts, from, r->shape->rank, rank);
    return simp_reshape(s, i->shape, simp_dynamic_slice(s, simp_shape(s, i->shape->type, rank, sizes.v), x, v));
}

Inst *rule_dynamic_slice_transpose(Simp *s, Inst *i)
{
    const Inst *t = inst_operand(i, 0);
    Inst      **starts = t->op == OP_TRANSPOSE ? starts_of(s, i) : NULL;
    if (!starts || i->shape->layout || t->shape->layout)
        return NULL;
    Ints   perm = dimensions(t), sizes = scratch_ints(s, perm.n);
    Inst **v = ARENA_ARRAY(s->scratch, Inst *, perm.n + 1);
    for (int32_t k = 0; k < perm.n; k++) {
        v[perm.v[k]] = starts[k];
        *ints_at(sizes, (int32_t)perm.v[k]) = i->shape->dims[k];
    }
    Inst *x = simp_dynamic_slice(s, simp_shape(s, i->shape->type, sizes.n, sizes.v), inst_operand(t, 0), v);
    return simp_like(s, t, i->shape, &x);
}

/* One element of 0, 1, 2, ...: where it was cut; of 0, c, 2 c, ... as many c. */
Inst *rule_dynamic_slice_iota(Simp *s, Inst *i)
{
    const Inst *iota = inst_operand(i, 0), *scaled = iota->op == OP_MULTIPLY && is_scalar_broadcast(inst_operand(iota, 1)) ? iota : NULL;
    Type        t = i->shape->type;
    if (scaled)
        iota = inst_operand(scaled, 0);
    if (iota->op != OP_IOTA || i->shape->rank != 1 || i->n_operands != 2 || shape_count(i->shape) != 1 || (t != TYPE_S32 && t != TYPE_U32) ||
        inst_operand(i, 1)->shape->type != t || iota->shape->dims[0] > INT32_MAX)
        return NULL;
    Inst *place = clamped(s, inst_operand(i, 1), iota->shape->dims[0], 1);
    if (scaled)
        place = simp_new(s, OP_MULTIPLY, place->shape, 2, (Inst *[]){place, inst_operand(inst_operand(scaled, 1), 0)});
    return simp_reshape(s, i->shape, place);
}

/* A part of a part lies at the sum of both places. */
Inst *rule_dynamic_slice_part(Simp *s, Inst *i)
{
    const Inst *inner = inst_operand(i, 0);
    Inst      **outer = inner->op == OP_DYNAMIC_SLICE && inner->n_uses == 1 ? starts_of(s, i) : NULL, **first = outer ? starts_of(s, inner) : NULL;
    if (!first || i->shape->rank == 0)
        return NULL;
    Inst *x = inst_operand(inner, 0);
    for (int32_t k = 0; k < i->shape->rank; k++)
        if (outer[k]->shape->type != first[0]->shape->type || !can_add(outer[k], x->shape->dims[k]))
            return NULL;
    for (int32_t k = 0; k < i->shape->rank; k++)
        outer[k] = plus(s, clamped(s, first[k], x->shape->dims[k], inner->shape->dims[k]),
                        clamped(s, outer[k], inner->shape->dims[k], i->shape->dims[k]));
    return simp_dynamic_slice(s, i->shape, x, outer);
}

/* ---- updates ---- */

/* Of a part that is cut out, updated and put back only the update is put in. */
Inst *rule_update_part(Simp *s, Inst *i)
{
    const Inst *u = inst_operand(i, 1);
    if (u->op != OP_DYNAMIC_UPDATE_SLICE || u->n_uses != 1)
        return NULL;
    const Inst *cut = inst_operand(u, 0);
    if (cut->op != OP_DYNAMIC_SLICE || inst_operand(cut, 0) != inst_operand(i, 0) || !begin_alike(i, cut))
        return NULL;
    Inst **outer = starts_of(s, i), **inner = starts_of(s, u);
    Inst  *x = inst_operand(i, 0), *c = inst_operand(u, 1);
    if (!outer || !inner || x->shape->rank == 0)
        return NULL;
    for (int32_t k = 0; k < x->shape->rank; k++)
        if (inner[k]->shape->type != outer[0]->shape->type || !can_add(inner[k], x->shape->dims[k]))
            return NULL;
    for (int32_t k = 0; k < x->shape->rank; k++)
        outer[k] = plus(s, clamped(s, outer[k], x->shape->dims[k], u->shape->dims[k]), clamped(s, inner[k], u->shape->dims[k], c->shape->dims[k]));
    return update_at(s, x, c, outer);
}

/* reshape(update(x, u)) -> update(reshape(x), reshape(u)) where only sizes of 1 come and go: x may be written in place then. */
Inst *rule_reshape_update(Simp *s, Inst *i)
{
    const Inst *update = inst_operand(i, 0);
    Inst      **starts = update->op == OP_DYNAMIC_UPDATE_SLICE && update->n_uses == 1 ? starts_of(s, update) : NULL;
    int32_t    *from = ARENA_ARRAY(s->scratch, int32_t, i->shape->rank + 1);
    if (!starts || i->shape->layout || update->shape->layout || update->shape->rank == 0 || i->shape->rank == 0 || shape_count(i->shape) <= 0 ||
        !shape_unit_dims(i->shape, update->shape, from))
        return NULL;
    Inst  *u = inst_operand(update, 1), **v = ARENA_ARRAY(s->scratch, Inst *, i->shape->rank);
    Ints   sizes = scratch_ints(s, i->shape->rank);
    for (int32_t d = 0; d < i->shape->rank; d++) {
        v[d] = from[d] < 0 ? number(s, starts[0]->shape->type, 0) : starts[from[d]];
        *ints_at(sizes, d) = from[d] < 0 ? 1 : u->shape->dims[from[d]];
    }
    if (shape_count(u->shape) <= 0)
        return NULL;
    return update_at(s, simp_reshape(s, i->shape, inst_operand(update, 0)), simp_reshape(s, simp_shape(s, u->shape->type, sizes.n, sizes.v), u), v);
}

/* select(p, x, update(x, u)) -> update(x, select(p of the part, part of x, u)): x may be written in place, and less of it is read. */
Inst *rule_select_update(Simp *s, Inst *i)
{
    for (int32_t k = 1; k <= 2; k++) {
        const Inst *update = inst_operand(i, k);
        Inst       *x = inst_operand(i, 3 - k), *p = inst_operand(i, 0);
        if (update->op != OP_DYNAMIC_UPDATE_SLICE || update->n_uses != 1 || inst_operand(update, 0) != x || !shape_equal(x->shape, i->shape))
            continue;
        Inst  *u = inst_operand(update, 1), **starts = starts_of(s, update);
        Inst  *operands[3];
        if (!starts || shape_count(u->shape) >= shape_count(x->shape) || u->shape->type != x->shape->type)
            continue;
        operands[0] = p->shape->rank ? simp_dynamic_slice(s, simp_shape(s, TYPE_PRED, u->shape->rank, u->shape->dims), p, starts) : p;
        operands[k] = u;
        operands[3 - k] = simp_dynamic_slice(s, u->shape, x, starts);
        return update_at(s, x, simp_new(s, OP_SELECT, u->shape, 3, operands), starts);
    }
    return NULL;
}

/* x + update(zeros, u) -> update(x, part of x + u) */
static Inst *add_into_part(Simp *s, const Inst *i)
{
    for (int32_t k = 0; k < 2; k++) {
        const Inst *update = inst_operand(i, k);
        Inst       *x = inst_operand(i, 1 - k);
        if (update->op != OP_DYNAMIC_UPDATE_SLICE || update->n_uses != 1 || !splat_is(inst_operand(update, 0), 0) || !shape_equal(x->shape, i->shape))
            continue;
        Inst  *u = inst_operand(update, 1), **starts = starts_of(s, update);
        if (!starts || shape_count(u->shape) >= shape_count(x->shape) || u->shape->type != x->shape->type)
            continue;
        Inst *part = simp_dynamic_slice(s, u->shape, x, starts);
        return update_at(s, x, simp_new(s, OP_ADD, u->shape, 2, k == 0 ? (Inst *[]){u, part} : (Inst *[]){part, u}), starts);
    }
    return NULL;
}

Inst *rule_add_update(Simp *s, Inst *i)
{
    return type_is_int(i->shape->type) ? add_into_part(s, i) : NULL;
}

/* -0 + 0 is 0, and -0 where it is not added. */
Inst *rule_add_float_update(Simp *s, Inst *i)
{
    return type_is_float(i->shape->type) ? add_into_part(s, i) : NULL;
}

/* ---- gather ---- */

/* Every element is the only one that there is. */
Inst *rule_gather_unit(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0);
    if (shape_count(x->shape) != 1 || shape_count(i->shape) <= 0)
        return NULL;
    return simp_broadcast(s, i->shape, simp_reshape(s, shape_scalar(s->arena, x->shape->type), x), (Ints){NULL, 0});
}

enum { FEW = 4 };

/* gather(x, i) of scalars from at most four -> i >= 2 ? x[2] : i >= 1 ? x[1] : x[0] */
Inst *rule_gather_few(Simp *s, Inst *i)
{
    Inst   *x = inst_operand(i, 0), *indices = inst_operand(i, 1);
    int64_t n = x->shape->rank == 1 ? x->shape->dims[0] : 0;
    if (n < 2 || n > FEW || inst_ints(i, ATTR_OFFSET_DIMS).n || inst_ints(i, ATTR_OPERAND_BATCHING_DIMS).n || inst_ints(i, ATTR_SLICE_SIZES).v[0] != 1 ||
        inst_ints(i, ATTR_START_INDEX_MAP).n != 1 || shape_count(indices->shape) != shape_count(i->shape) || shape_count(i->shape) <= 0 || i->shape->layout ||
        indices->shape->layout)
        return NULL;
    Inst *at = simp_reshape(s, simp_shape(s, indices->shape->type, i->shape->rank, i->shape->dims), indices), *result = NULL;
    for (int64_t k = 0; k < n; k++) {
        SliceRange one = {k, k + 1, 1};
        Inst      *e = simp_slice(s, simp_shape(s, x->shape->type, 1, (int64_t[]){1}), x, &one);
        e = simp_reshape(s, shape_scalar(s->arena, x->shape->type), e);
        e = i->shape->rank ? simp_broadcast(s, i->shape, e, (Ints){NULL, 0}) : e;
        if (k == 0) {
            result = e;
            continue;
        }
        Inst *there = simp_new(s, OP_COMPARE, shape_with_type(s->arena, i->shape, TYPE_PRED), 2, (Inst *[]){at, simp_splat(s, at->shape, k)});
        inst_set_word(there, ATTR_DIRECTION, CMP_GE);
        result = simp_new(s, OP_SELECT, i->shape, 3, (Inst *[]){there, e, result});
    }
    return result;
}

/* Which dimension of `to` each one of `from` is where it stays alone, -1 where it is joined or split. */
static int32_t *whole_dims(Simp *s, const Shape *from, const Shape *to)
{
    int32_t *where = ARENA_ARRAY(s->scratch, int32_t, from->rank + 1);
    for (ShapeRun r = {0}; shape_next_run(from, to, &r);)
        for (int32_t d = r.from; d < r.from_end; d++)
            where[d] = r.from_end - r.from == 1 && r.to_end - r.to == 1 ? r.to : -1;
    return where;
}

/* The dimension of a gather's result that dimension d of the operand is as a whole, -1: there is none. */
static int64_t passed_through(const Inst *gather, int32_t d)
{
    Ints    offset = inst_ints(gather, ATTR_OFFSET_DIMS), collapsed = inst_ints(gather, ATTR_COLLAPSED_SLICE_DIMS);
    Ints    batch = inst_ints(gather, ATTR_OPERAND_BATCHING_DIMS);
    int32_t before = 0;
    if (ints_has(collapsed, d) || ints_has(batch, d) || inst_ints(gather, ATTR_SLICE_SIZES).v[d] != inst_operand(gather, 0)->shape->dims[d])
        return -1;
    for (int32_t k = 0; k < d; k++)
        before += !ints_has(collapsed, k) && !ints_has(batch, k);
    return offset.v[before];
}

static bool is_padded(PadDim p) { return p.lo || p.hi || p.interior; }

/* The dimension of the places that goes along with dimension d of the operand, -1. */
static int64_t batch_of_places(const Inst *gather, int32_t d)
{
    Ints batch = inst_ints(gather, ATTR_OPERAND_BATCHING_DIMS), places = inst_ints(gather, ATTR_START_INDICES_BATCHING_DIMS);
    for (int32_t k = 0; k < batch.n; k++)
        if (batch.v[k] == d)
            return places.v[k];
    return -1;
}

/* The dimension of a gather's result that dimension d of its places is. */
static int64_t result_of_places(const Inst *gather, int64_t d)
{
    int64_t vector = inst_int(gather, ATTR_INDEX_VECTOR_DIM, 0), before = d - (d > vector);
    for (int64_t k = 0;; k++)
        if (!ints_has(inst_ints(gather, ATTR_OFFSET_DIMS), k) && before-- == 0)
            return k;
}

/* The places of a gather without their padding, which is the same as that of the operand along batches and none elsewhere; those that the padding of the
 * operand is read by are thereby gone. Places that are not padded are themselves. NULL: another padding. */
static Inst *unpadded_places(Simp *s, const Inst *gather, const Inst *pad, const int32_t *where)
{
    Inst   *places = inst_operand(gather, 1);
    PadDim *same = ARENA_ARRAY(s->scratch, PadDim, places->shape->rank);
    bool    any = false;
    for (int32_t d = 0; d < pad->shape->rank; d++) {
        int64_t b = where[d] < 0 ? -1 : batch_of_places(gather, where[d]);
        if (b < 0 || !is_padded(simp_padding(pad)[d]))
            continue;
        same[b] = simp_padding(pad)[d];
        any = true;
    }
    if (!any)
        return places;
    for (int32_t k = 0; k < places->shape->rank && places->op == OP_PAD; k++) {
        PadDim p = simp_padding(places)[k];
        if (p.lo != same[k].lo || p.hi != same[k].hi || p.interior != same[k].interior)
            return NULL;
    }
    return places->op == OP_PAD ? inst_operand(places, 0) : NULL;
}

/* gather(pad(x)) that takes the padded dimensions whole, or goes along them with places that are padded alike -> pad(gather(x)), also where a reshape
 * between the two leaves these dimensions alone. */
Inst *rule_gather_pad(Simp *s, Inst *i)
{
    const Inst *r = inst_operand(i, 0), *pad = r->op == OP_RESHAPE ? inst_operand(r, 0) : r;
    if (pad->op != OP_PAD || shape_count(pad->shape) <= 0 || shape_count(i->shape) <= 0 || r->shape->layout || i->shape->layout)
        return NULL;
    Inst        *x = inst_operand(pad, 0);
    const Shape *whole = r->shape;
    int32_t     *where = whole_dims(s, pad->shape, whole);
    Ints         source = scratch_ints(s, whole->rank), sizes = scratch_ints(s, whole->rank), out = scratch_ints(s, i->shape->rank);
    PadDim      *v = ARENA_ARRAY(s->scratch, PadDim, i->shape->rank);
    Inst        *places = unpadded_places(s, i, pad, where);
    if (!places)
        return NULL;
    for (int32_t d = 0; d < whole->rank; d++) {
        *ints_at(source, d) = whole->dims[d];
        *ints_at(sizes, d) = inst_ints(i, ATTR_SLICE_SIZES).v[d];
    }
    for (int32_t d = 0; d < i->shape->rank; d++)
        *ints_at(out, d) = i->shape->dims[d];
    for (int32_t d = 0; d < pad->shape->rank; d++) {
        PadDim p = simp_padding(pad)[d];
        if (!is_padded(p))
            continue;
        int64_t batch = where[d] < 0 ? -1 : batch_of_places(i, where[d]);
        int64_t to = where[d] < 0 ? -1 : batch >= 0 ? result_of_places(i, batch) : passed_through(i, where[d]);
        if (to < 0)
            return NULL;
        *ints_at(source, where[d]) = *ints_at(out, (int32_t)to) = x->shape->dims[d];
        *ints_at(sizes, where[d]) = batch >= 0 ? 1 : x->shape->dims[d];
        v[to] = p;
    }
    Inst *part = simp_reshape(s, simp_shape(s, x->shape->type, source.n, source.v), x);
    Inst *g = simp_like(s, i, simp_shape(s, i->shape->type, out.n, out.v), (Inst *[]){part, places});
    inst_set_ints(g, ATTR_SLICE_SIZES, sizes);
    return simp_pad(s, i->shape, g, inst_operand(pad, 1), v);
}

/* ---- scatter ---- */

/* x + scatter(y, i, u) by addition -> scatter(x + y, i, u) */
static Inst *add_into_scatter(Simp *s, const Inst *i)
{
    for (int32_t k = 0; k < 2; k++) {
        const Inst *scatter = inst_operand(i, k);
        Inst       *x = inst_operand(i, 1 - k);
        if (scatter->op != OP_SCATTER || scatter->n_uses != 1 || scatter->n_operands != 3 || comp_binary_op(inst_callee(scatter, 0)) != OP_ADD ||
            !shape_equal(x->shape, i->shape) || !shape_equal(scatter->shape, i->shape))
            continue;
        Inst *sum = simp_new(s, OP_ADD, i->shape, 2, k == 0 ? (Inst *[]){inst_operand(scatter, 0), x} : (Inst *[]){x, inst_operand(scatter, 0)});
        return simp_like(s, scatter, i->shape, (Inst *[]){sum, inst_operand(scatter, 1), inst_operand(scatter, 2)});
    }
    return NULL;
}

Inst *rule_add_scatter(Simp *s, Inst *i)
{
    return type_is_int(i->shape->type) ? add_into_scatter(s, i) : NULL;
}

Inst *rule_add_float_scatter(Simp *s, Inst *i)
{
    return type_is_float(i->shape->type) ? add_into_scatter(s, i) : NULL;
}
