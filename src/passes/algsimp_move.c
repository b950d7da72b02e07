/* Rules of algsimp about movement: each element of the result is some element of an operand. */
#include "config.h"

#include "passes/algsimp.h"

#include <string.h>

static Ints dims_of(const Shape *s)
{
    return (Ints){s->dims, s->rank};
}

static Ints dimensions(const Inst *i)
{
    return inst_ints(i, ATTR_DIMENSIONS);
}

static Ints scratch_ints(Simp *s, int32_t n)
{
    return ints_make(s->scratch, n);
}

static bool is_iota(Ints x)
{
    for (int32_t k = 0; k < x.n; k++)
        if (x.v[k] != k)
            return false;
    return true;
}

/* ---- copy, bitcast ---- */

Inst *rule_copy_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_copy_copy(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_COPY)
        return NULL;
    Inst *x = inst_operand(inner, 0);
    return simp_new(s, OP_COPY, i->shape, 1, &x);
}

Inst *rule_bitcast_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_bitcast_convert_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_bitcast_convert_pair(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_BITCAST_CONVERT)
        return NULL;
    Inst *x = inst_operand(inner, 0);
    if (!shape_same_dims(x->shape, i->shape) || !shape_same_dims(inner->shape, i->shape))
        return NULL; /* widths that change split or join elements */
    return simp_new(s, OP_BITCAST_CONVERT, i->shape, 1, &x);
}

/* ---- reshape ---- */

Inst *rule_reshape_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_reshape_reshape(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    return inner->op == OP_RESHAPE ? simp_reshape(s, i->shape, inst_operand(inner, 0)) : NULL;
}

Inst *rule_reshape_broadcast(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    Ints  sizes, dims;
    if (!is_broadcast(inner) || !broadcast_reshaped(s->scratch, inner, i->shape, &sizes, &dims))
        return NULL;
    Inst *x = simp_reshape(s, simp_shape(s, i->shape->type, sizes.n, sizes.v), inst_operand(inner, 0));
    return simp_broadcast(s, i->shape, x, dims);
}

/* ---- transpose ---- */

Inst *rule_transpose_noop(Simp *s, Inst *i)
{
    return is_iota(dimensions(i)) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

Inst *rule_transpose_transpose(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_TRANSPOSE)
        return NULL;
    Ints  outer = dimensions(i), first = dimensions(inner), both = scratch_ints(s, outer.n);
    Inst *x = inst_operand(inner, 0);
    for (int32_t k = 0; k < outer.n; k++)
        *ints_at(both, k) = first.v[outer.v[k]];
    Inst *t = simp_new(s, OP_TRANSPOSE, i->shape, 1, &x);
    inst_set_ints(t, ATTR_DIMENSIONS, both);
    return t;
}

Inst *rule_transpose_unit(Simp *s, Inst *i)
{
    Ints    perm = dimensions(i);
    Inst   *x = inst_operand(i, 0);
    int64_t last = -1;
    if (is_iota(perm) || i->shape->layout || x->shape->layout)
        return NULL;
    for (int32_t k = 0; k < perm.n; k++)
        if (i->shape->dims[k] != 1) {
            if (perm.v[k] < last)
                return NULL;
            last = perm.v[k];
        }
    return simp_reshape(s, i->shape, x);
}

/* Result dimension k is the broadcast's perm[k]. */
Inst *rule_transpose_broadcast(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (!is_broadcast(inner))
        return NULL;
    Ints perm = dimensions(i), from = dimensions(inner), dims = scratch_ints(s, from.n);
    for (int32_t k = 0; k < from.n; k++)
        for (int32_t j = 0; j < perm.n; j++)
            if (perm.v[j] == from.v[k])
                *ints_at(dims, k) = j;
    return ints_increase(from) && !ints_increase(dims) ? NULL : simp_broadcast(s, i->shape, inst_operand(inner, 0), dims);
}

/* ---- broadcast ---- */

Inst *rule_broadcast_noop(Simp *s, Inst *i)
{
    return is_iota(dimensions(i)) ? simp_same(s, inst_operand(i, 0)) : NULL;
}

Inst *rule_broadcast_reshape(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0);
    if (!ints_increase(dimensions(i)) || shape_count(x->shape) != shape_count(i->shape) || !is_broadcast(i))
        return NULL;
    return i->shape->rank > x->shape->rank ? simp_reshape(s, i->shape, x) : NULL;
}

Inst *rule_broadcast_broadcast(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (!is_broadcast(inner) || !is_broadcast(i))
        return NULL;
    Ints outer = dimensions(i), first = dimensions(inner), dims = scratch_ints(s, first.n);
    for (int32_t k = 0; k < first.n; k++)
        *ints_at(dims, k) = outer.v[first.v[k]];
    return simp_broadcast(s, i->shape, inst_operand(inner, 0), dims);
}

/*   broadcast x [1,8] -> [4,1,8], dimensions={1,2}   =>   reshape x [8], broadcast -> [4,1,8], dimensions={2} */
Inst *rule_broadcast_unit(Simp *s, Inst *i)
{
    Inst   *x = inst_operand(i, 0);
    Ints    from = dimensions(i), dims = scratch_ints(s, from.n), sizes = scratch_ints(s, from.n);
    int32_t n = 0;
    if (shape_count(x->shape) <= 0 || !is_broadcast(i))
        return NULL;
    for (int32_t k = 0; k < from.n; k++)
        if (x->shape->dims[k] != 1) {
            *ints_at(sizes, n) = x->shape->dims[k];
            *ints_at(dims, n++) = from.v[k];
        }
    if (n == from.n || shape_count(x->shape) == shape_count(i->shape))
        return NULL;
    Inst *small = simp_reshape(s, simp_shape(s, x->shape->type, n, sizes.v), x);
    return simp_broadcast(s, i->shape, small, (Ints){dims.v, n});
}

/* ---- slice ---- */

static const SliceRange *ranges(const Inst *i)
{
    return inst_attr(i, ATTR_SLICE)->value.slices->v;
}

static Inst *new_slice(Simp *s, const Shape *shape, Inst *x, const SliceRange *v)
{
    Slices *all = ARENA_NEW(s->arena, Slices);
    *all = (Slices){shape->rank, arena_copy(s->arena, v, (size_t)shape->rank * sizeof *v)};
    Inst *i = simp_new(s, OP_SLICE, shape, 1, &x);
    inst_set_attr(i, (Attr){.id = ATTR_SLICE, .value.slices = all});
    return i;
}

Inst *rule_slice_noop(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_slice_slice(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_SLICE)
        return NULL;
    const SliceRange *out = ranges(i), *in = ranges(inner);
    SliceRange       *both = ARENA_ARRAY(s->scratch, SliceRange, i->shape->rank);
    for (int32_t k = 0; k < i->shape->rank; k++) {
        int64_t stride, last = i->shape->dims[k] - 1, from, to;
        if (i->shape->dims[k] == 0 || !size_mul(in[k].stride, out[k].stride, &stride) ||
            !size_mul(out[k].start, in[k].stride, &from) || !size_add(from, in[k].start, &from) || !size_mul(last, stride, &to) ||
            !size_add(to, from + 1, &to))
            return NULL;
        both[k] = (SliceRange){from, to, stride};
    }
    return new_slice(s, i->shape, inst_operand(inner, 0), both);
}

/* The dimensions of x are cut as those of the result that they became. */
Inst *rule_slice_broadcast(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (!is_broadcast(inner))
        return NULL;
    Inst       *x = inst_operand(inner, 0);
    Ints        dims = dimensions(inner), sizes = scratch_ints(s, dims.n);
    SliceRange *cut = ARENA_ARRAY(s->scratch, SliceRange, dims.n);
    for (int32_t k = 0; k < dims.n; k++) {
        cut[k] = ranges(i)[dims.v[k]];
        *ints_at(sizes, k) = i->shape->dims[dims.v[k]];
    }
    if (!ints_equal(sizes, dims_of(x->shape)))
        x = new_slice(s, simp_shape(s, x->shape->type, sizes.n, sizes.v), x, cut);
    return simp_broadcast(s, i->shape, x, dims);
}

Inst *rule_slice_concatenate(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_CONCATENATE)
        return NULL;
    int64_t           dim = dimensions(inner).v[0], start = 0;
    const SliceRange *v = ranges(i);
    for (int32_t k = 0; k < inner->n_operands; k++) {
        Inst   *x = inst_operand(inner, k);
        int64_t end = start + x->shape->dims[dim];
        if (v[dim].start >= start && v[dim].limit <= end && v[dim].limit > v[dim].start) {
            SliceRange *cut = arena_copy(s->scratch, v, (size_t)i->shape->rank * sizeof *v);
            cut[dim].start -= start;
            cut[dim].limit -= start;
            return new_slice(s, i->shape, x, cut);
        }
        start = end;
    }
    return NULL;
}

/* ---- reverse, pad, concatenate ---- */

Inst *rule_reverse_unit(Simp *s, Inst *i)
{
    Ints dims = dimensions(i);
    for (int32_t k = 0; k < dims.n; k++)
        if (i->shape->dims[dims.v[k]] != 1)
            return NULL;
    return simp_same(s, inst_operand(i, 0));
}

/* Dimensions reversed twice are not reversed. */
Inst *rule_reverse_reverse(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_REVERSE)
        return NULL;
    Ints    a = dimensions(i), b = dimensions(inner), once = scratch_ints(s, a.n + b.n);
    int32_t n = 0;
    for (int32_t k = 0; k < a.n; k++)
        if (!ints_has(b, a.v[k]))
            *ints_at(once, n++) = a.v[k];
    for (int32_t k = 0; k < b.n; k++)
        if (!ints_has(a, b.v[k]))
            *ints_at(once, n++) = b.v[k];
    Inst *x = inst_operand(inner, 0);
    if (n == 0 && simp_same(s, x))
        return x;
    Inst *r = simp_new(s, OP_REVERSE, i->shape, 1, &x);
    inst_set_ints(r, ATTR_DIMENSIONS, (Ints){once.v, n});
    return r;
}

Inst *rule_pad_noop(Simp *s, Inst *i)
{
    const Padding *p = inst_attr(i, ATTR_PADDING)->value.padding;
    for (int32_t k = 0; k < p->n; k++)
        if (p->v[k].lo || p->v[k].hi || (p->v[k].interior && i->shape->dims[k] > 1))
            return NULL;
    return simp_same(s, inst_operand(i, 0));
}

Inst *rule_pad_empty(Simp *s, Inst *i)
{
    if (shape_count(inst_operand(i, 0)->shape) != 0)
        return NULL;
    return simp_broadcast(s, i->shape, inst_operand(i, 1), (Ints){NULL, 0});
}

Inst *rule_concatenate_one(Simp *s, Inst *i)
{
    return i->n_operands == 1 ? simp_same(s, inst_operand(i, 0)) : NULL;
}

Inst *rule_concatenate_empty(Simp *s, Inst *i)
{
    Inst  **kept = ARENA_ARRAY(s->scratch, Inst *, i->n_operands);
    int32_t n = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (shape_count(inst_operand(i, k)->shape) != 0)
            kept[n++] = inst_operand(i, k);
    if (n == i->n_operands || n == 0)
        return NULL;
    Inst *c = simp_new(s, OP_CONCATENATE, i->shape, n, kept);
    inst_set_ints(c, ATTR_DIMENSIONS, dimensions(i));
    return c;
}

/* All operands are slices of one x, each going on where the one before ends. */
Inst *rule_concatenate_slices(Simp *s, Inst *i)
{
    int64_t dim = dimensions(i).v[0];
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        if (o->op != OP_SLICE || inst_operand(o, 0) != inst_operand(inst_operand(i, 0), 0))
            return NULL;
        const SliceRange *v = ranges(o), *first = ranges(inst_operand(i, 0));
        for (int32_t j = 0; j < i->shape->rank; j++)
            if (v[j].stride != 1 || (j != dim && (v[j].start != first[j].start || v[j].limit != first[j].limit)))
                return NULL;
        if (k > 0 && v[dim].start != ranges(inst_operand(i, k - 1))[dim].limit)
            return NULL;
    }
    const Inst *first = inst_operand(i, 0);
    SliceRange *cut = arena_copy(s->scratch, ranges(first), (size_t)i->shape->rank * sizeof *cut);
    cut[dim].limit = cut[dim].start + i->shape->dims[dim];
    return new_slice(s, i->shape, inst_operand(first, 0), cut);
}

/* ---- dynamic slices ---- */

Inst *rule_dynamic_slice_whole(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0)); /* starts are clamped to 0 */
}

/* Start number k as an instruction of its own: operands may also be one vector. Starts are read as s64, u64 too. */
static bool known_start(const Inst *i, int32_t k, int64_t *start)
{
    const Inst *o = inst_operand(i, k + 1);
    if (o->op != OP_CONSTANT || o->shape->rank != 0 || o->literal->elided)
        return false;
    *start = literal_get_s64(o->literal, 0);
    return true;
}

Inst *rule_dynamic_slice_known(Simp *s, Inst *i)
{
    Inst   *x = inst_operand(i, 0);
    int32_t rank = x->shape->rank;
    if (i->n_operands != rank + 1)
        return NULL;
    SliceRange *cut = ARENA_ARRAY(s->scratch, SliceRange, rank);
    for (int32_t k = 0; k < rank; k++) {
        int64_t start, room = x->shape->dims[k] - i->shape->dims[k];
        if (!known_start(i, k, &start))
            return NULL;
        start = start < 0 ? 0 : start > room ? room : start;
        cut[k] = (SliceRange){start, start + i->shape->dims[k], 1};
    }
    return new_slice(s, i->shape, x, cut);
}

Inst *rule_update_whole(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 1));
}

/* ---- annotations ---- */

Inst *rule_sharding_noop(Simp *s, Inst *i)
{
    static const char *const annotations[] = {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"};
    const char *target = inst_string(i, ATTR_CUSTOM_CALL_TARGET);
    if (!target || i->n_operands != 1 || i->comp->module->num_partitions != 1)
        return NULL;
    for (size_t k = 0; k < sizeof annotations / sizeof *annotations; k++)
        if (strcmp(target, annotations[k]) == 0)
            return simp_same(s, inst_operand(i, 0));
    return NULL;
}
