/* Rules of algsimp about parts of arrays: slice, reverse, pad, concatenate, and slices and updates at places that are computed. */
#include "config.h"

#include "passes/algsimp.h"

#include <string.h>

static Ints dims_of(const Shape *s)
{
    return (Ints){s->dims, s->rank};
}

/* ---- slice ---- */

Inst *simp_slice(Simp *s, const Shape *shape, Inst *x, const SliceRange *v)
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
    const SliceRange *out = simp_ranges(i), *in = simp_ranges(inner);
    SliceRange       *both = ARENA_ARRAY(s->scratch, SliceRange, i->shape->rank);
    for (int32_t k = 0; k < i->shape->rank; k++) {
        int64_t stride, last = i->shape->dims[k] - 1, from, to;
        if (i->shape->dims[k] == 0 || !size_mul(in[k].stride, out[k].stride, &stride) ||
            !size_mul(out[k].start, in[k].stride, &from) || !size_add(from, in[k].start, &from) || !size_mul(last, stride, &to) ||
            !size_add(to, from + 1, &to))
            return NULL;
        both[k] = (SliceRange){from, to, stride};
    }
    return simp_slice(s, i->shape, inst_operand(inner, 0), both);
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
        cut[k] = simp_ranges(i)[dims.v[k]];
        *ints_at(sizes, k) = i->shape->dims[dims.v[k]];
    }
    if (!ints_equal(sizes, dims_of(x->shape)))
        x = simp_slice(s, simp_shape(s, x->shape->type, sizes.n, sizes.v), x, cut);
    return simp_broadcast(s, i->shape, x, dims);
}

Inst *rule_slice_concatenate(Simp *s, Inst *i)
{
    Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_CONCATENATE)
        return NULL;
    int64_t           dim = dimensions(inner).v[0], start = 0;
    const SliceRange *v = simp_ranges(i);
    for (int32_t k = 0; k < inner->n_operands; k++) {
        Inst   *x = inst_operand(inner, k);
        int64_t end = start + x->shape->dims[dim];
        if (v[dim].start >= start && v[dim].limit <= end && v[dim].limit > v[dim].start) {
            SliceRange *cut = arena_copy(s->scratch, v, (size_t)i->shape->rank * sizeof *v);
            cut[dim].start -= start;
            cut[dim].limit -= start;
            return simp_slice(s, i->shape, x, cut);
        }
        start = end;
    }
    return NULL;
}

/* One way to say it: a stride of 1 where one element is taken, a limit behind the last element. */
Inst *rule_slice_form(Simp *s, Inst *i)
{
    const SliceRange *v = simp_ranges(i);
    SliceRange       *form = ARENA_ARRAY(s->scratch, SliceRange, i->shape->rank);
    bool              same = true;
    for (int32_t k = 0; k < i->shape->rank; k++) {
        int64_t n = i->shape->dims[k];
        if (n == 0)
            return NULL;
        form[k] = (SliceRange){v[k].start, v[k].start + (n - 1) * v[k].stride + 1, n == 1 ? 1 : v[k].stride};
        same &= form[k].limit == v[k].limit && form[k].stride == v[k].stride;
    }
    return same ? NULL : simp_slice(s, i->shape, inst_operand(i, 0), form);
}

/* Dimension k of the slice, n elements, lies within x, whose first element the pad has at lo: 1, where *cut says; within the padding: -1. */
static int slice_in_pad(const SliceRange *v, const PadDim *p, int64_t size, int64_t n, SliceRange *cut)
{
    int64_t step = p->interior + 1, first = v->start - p->lo, last = first + (n - 1) * v->stride;
    *cut = (SliceRange){first, v->limit - p->lo, v->stride};
    if (step == 1)
        return first >= 0 && cut->limit <= size ? 1 : cut->limit <= 0 || first >= size ? -1 : 0;
    if (n == 0 || (n > 1 && v->stride % step != 0))
        return 0;
    if (first % step != 0 || last < 0 || first > (size - 1) * step)
        return -1;
    *cut = (SliceRange){first / step, last / step + 1, n == 1 ? 1 : v->stride / step};
    return first >= 0 && last <= (size - 1) * step;
}

Inst *rule_slice_pad(Simp *s, Inst *i)
{
    const Inst *pad = inst_operand(i, 0);
    if (pad->op != OP_PAD)
        return NULL;
    Inst             *x = inst_operand(pad, 0);
    const PadDim     *p = simp_padding(pad);
    const SliceRange *v = simp_ranges(i);
    SliceRange       *cut = ARENA_ARRAY(s->scratch, SliceRange, i->shape->rank);
    bool              within = true;
    for (int32_t k = 0; k < i->shape->rank; k++) {
        int where = slice_in_pad(&v[k], &p[k], x->shape->dims[k], i->shape->dims[k], &cut[k]);
        if (where < 0)
            return simp_broadcast(s, i->shape, inst_operand(pad, 1), (Ints){NULL, 0});
        within &= where > 0;
    }
    return within ? simp_slice(s, i->shape, x, cut) : NULL;
}

/* Element k of the reversed dimension is element size - 1 - k. */
Inst *rule_slice_reverse(Simp *s, Inst *i)
{
    const Inst *r = inst_operand(i, 0);
    if (r->op != OP_REVERSE || r->n_uses != 1)
        return NULL;
    SliceRange *cut = arena_copy(s->scratch, simp_ranges(i), (size_t)i->shape->rank * sizeof *cut);
    Ints        dims = dimensions(r);
    for (int32_t k = 0; k < dims.n; k++) {
        int64_t     d = dims.v[k], n = i->shape->dims[d];
        SliceRange *v = &cut[d];
        int64_t     first = r->shape->dims[d] - 1 - (v->start + (n - 1) * v->stride);
        if (n == 0)
            return NULL;
        *v = (SliceRange){first, first + (n - 1) * v->stride + 1, v->stride};
    }
    Inst *x = simp_slice(s, i->shape, inst_operand(r, 0), cut);
    return simp_like(s, r, i->shape, &x);
}

/* Where all that is made of a transpose is cut, each cut is made first. */
Inst *rule_slice_transpose(Simp *s, Inst *i)
{
    const Inst *t = inst_operand(i, 0);
    if (t->op != OP_TRANSPOSE || t->comp->root == t || i->shape->layout || t->shape->layout)
        return NULL;
    for (const Use *u = t->uses; u; u = u->next)
        if (u->user->op != OP_SLICE)
            return NULL;
    Ints        perm = dimensions(t), sizes = scratch_ints(s, perm.n);
    SliceRange *cut = ARENA_ARRAY(s->scratch, SliceRange, perm.n);
    for (int32_t k = 0; k < perm.n; k++) {
        cut[perm.v[k]] = simp_ranges(i)[k];
        *ints_at(sizes, (int32_t)perm.v[k]) = i->shape->dims[k];
    }
    Inst *x = simp_slice(s, simp_shape(s, i->shape->type, sizes.n, sizes.v), inst_operand(t, 0), cut);
    return simp_like(s, t, i->shape, &x);
}

/* slice(reshape(x)) -> reshape(slice(x)) when the reshape only adds or drops sizes of 1. */
Inst *rule_slice_reshape(Simp *s, Inst *i)
{
    const Inst *r = inst_operand(i, 0);
    if (r->op != OP_RESHAPE || shape_count(i->shape) <= 0)
        return NULL;
    Inst       *x = inst_operand(r, 0);
    int32_t     rank = x->shape->rank, *where = ARENA_ARRAY(s->scratch, int32_t, rank);
    SliceRange *cut = ARENA_ARRAY(s->scratch, SliceRange, rank);
    Ints        sizes = scratch_ints(s, rank);
    if (!shape_unit_dims(x->shape, r->shape, where))
        return NULL;
    for (int32_t k = 0; k < rank; k++) {
        cut[k] = where[k] < 0 ? (SliceRange){0, 1, 1} : simp_ranges(i)[where[k]];
        *ints_at(sizes, k) = where[k] < 0 ? 1 : i->shape->dims[where[k]];
    }
    return simp_reshape(s, i->shape, simp_slice(s, simp_shape(s, i->shape->type, rank, sizes.v), x, cut));
}

/* slice(reshape(x)) of whole rows of x -> reshape(slice(x)) */
Inst *rule_slice_rows(Simp *s, Inst *i)
{
    const Inst       *r = inst_operand(i, 0);
    const SliceRange *v = simp_ranges(i);
    if (r->op != OP_RESHAPE || shape_count(i->shape) <= 0 || r->shape->rank == 0 || inst_operand(r, 0)->shape->rank == 0 || v[0].stride != 1)
        return NULL;
    for (int32_t k = 1; k < i->shape->rank; k++)
        if (i->shape->dims[k] != r->shape->dims[k])
            return NULL;
    Inst   *x = inst_operand(r, 0);
    int64_t row = shape_count(x->shape) / x->shape->dims[0], part = shape_count(r->shape) / r->shape->dims[0];
    if (v[0].start * part % row || v[0].limit * part % row || x->shape->dims[0] == 1)
        return NULL;
    SliceRange *cut = ARENA_ARRAY(s->scratch, SliceRange, x->shape->rank);
    Ints        sizes = ints_copy(s->scratch, dims_of(x->shape));
    for (int32_t k = 0; k < x->shape->rank; k++)
        cut[k] = (SliceRange){0, x->shape->dims[k], 1};
    cut[0] = (SliceRange){v[0].start * part / row, v[0].limit * part / row, 1};
    *ints_at(sizes, 0) = cut[0].limit - cut[0].start;
    return simp_reshape(s, i->shape, simp_slice(s, simp_shape(s, i->shape->type, sizes.n, sizes.v), x, cut));
}

/* The operands that the slice does not touch are left out, where nobody else needs the whole. */
Inst *rule_slice_concatenate_part(Simp *s, Inst *i)
{
    const Inst *c = inst_operand(i, 0);
    if (c->op != OP_CONCATENATE || c->n_uses != 1 || c->comp->root == c)
        return NULL;
    int64_t     dim = dimensions(c).v[0], start = 0, first = 0, size = 0;
    SliceRange *cut = arena_copy(s->scratch, simp_ranges(i), (size_t)i->shape->rank * sizeof *cut);
    Inst      **kept = ARENA_ARRAY(s->scratch, Inst *, c->n_operands);
    int32_t     n = 0;
    for (int32_t k = 0; k < c->n_operands; k++) {
        int64_t end = start + inst_operand(c, k)->shape->dims[dim];
        if (end > cut[dim].start && start < cut[dim].limit) {
            first = n ? first : start;
            size += end - start;
            kept[n++] = inst_operand(c, k);
        }
        start = end;
    }
    if (n < 2 || n == c->n_operands)
        return NULL;
    Ints sizes = ints_copy(s->scratch, dims_of(c->shape));
    *ints_at(sizes, (int32_t)dim) = size;
    cut[dim].start -= first;
    cut[dim].limit -= first;
    Inst *part = simp_new(s, OP_CONCATENATE, simp_shape(s, c->shape->type, sizes.n, sizes.v), n, kept);
    inst_set_ints(part, ATTR_DIMENSIONS, dimensions(c));
    return simp_slice(s, i->shape, part, cut);
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

/* What is reversed along dimensions that a broadcast made stays the same. */
Inst *rule_reverse_broadcast(Simp *s, Inst *i)
{
    Inst *b = inst_operand(i, 0);
    if (!is_broadcast(b))
        return NULL;
    Inst   *x = inst_operand(b, 0);
    Ints    dims = dimensions(i), from = dimensions(b), left = scratch_ints(s, dims.n);
    int32_t n = 0;
    for (int32_t k = 0; k < from.n; k++)
        if (ints_has(dims, from.v[k]))
            *ints_at(left, n++) = k;
    if (n == 0)
        return simp_same(s, b);
    Inst *r = simp_new(s, OP_REVERSE, x->shape, 1, &x);
    inst_set_ints(r, ATTR_DIMENSIONS, (Ints){left.v, n});
    return simp_broadcast(s, i->shape, r, from);
}

/* reverse(reshape(x)) -> reshape(reverse(x)) where only sizes of 1 come or go. */
Inst *rule_reverse_reshape(Simp *s, Inst *i)
{
    const Inst *r = inst_operand(i, 0);
    if (r->op != OP_RESHAPE || shape_count(i->shape) <= 0)
        return NULL;
    Inst    *x = inst_operand(r, 0);
    int32_t *where = ARENA_ARRAY(s->scratch, int32_t, x->shape->rank + 1), n = 0;
    Ints     dims = scratch_ints(s, x->shape->rank);
    if (!shape_unit_dims(x->shape, r->shape, where))
        return NULL;
    for (int32_t k = 0; k < x->shape->rank; k++)
        if (where[k] >= 0 && ints_has(dimensions(i), where[k]))
            *ints_at(dims, n++) = k;
    Inst *turned = simp_new(s, OP_REVERSE, x->shape, 1, &x);
    inst_set_ints(turned, ATTR_DIMENSIONS, (Ints){dims.v, n});
    return simp_reshape(s, i->shape, turned);
}

/* reverse(op(reverse(x), c)) -> op(reverse(reverse(x)), c), for everywhere the same c. */
Inst *rule_reverse_elementwise(Simp *s, Inst *i)
{
    const Inst *e = inst_operand(i, 0);
    if (!op_has(e->op, F_ELEMENTWISE) || e->n_operands != 2 || e->n_uses != 1 || e->op == OP_COMPARE)
        return NULL;
    for (int32_t k = 0; k < 2; k++) {
        Inst *x = inst_operand(e, k), *c = inst_operand(e, 1 - k);
        if (x->op != OP_REVERSE || (!splat_value(c) && !is_scalar_broadcast(c)) || !shape_equal(x->shape, i->shape) || !shape_equal(c->shape, i->shape))
            continue;
        Inst *operands[2];
        operands[k] = simp_like(s, i, i->shape, &x);
        operands[1 - k] = c;
        return simp_like(s, e, i->shape, operands);
    }
    return NULL;
}

Inst *simp_pad(Simp *s, const Shape *shape, Inst *x, Inst *value, const PadDim *v)
{
    Padding *p = ARENA_NEW(s->arena, Padding);
    *p = (Padding){.n = shape->rank, .v = arena_copy(s->arena, v, (size_t)shape->rank * sizeof *v)};
    for (int32_t k = 0; k < p->n; k++)
        p->three |= v[k].interior != 0;
    Inst *i = simp_new(s, OP_PAD, shape, 2, (Inst *[]){x, value});
    inst_set_attr(i, (Attr){.id = ATTR_PADDING, .value.padding = p});
    return i;
}

/* There is nothing between the elements of a dimension that has at most one. */
Inst *rule_pad_unit(Simp *s, Inst *i)
{
    Inst   *x = inst_operand(i, 0);
    PadDim *p = arena_copy(s->scratch, simp_padding(i), (size_t)i->shape->rank * sizeof *p);
    bool    any = false;
    for (int32_t k = 0; k < i->shape->rank; k++)
        if (p[k].interior && x->shape->dims[k] <= 1) {
            p[k].interior = 0;
            any = true;
        }
    return any ? simp_pad(s, i->shape, x, inst_operand(i, 1), p) : NULL;
}

bool simp_same_splat(const Inst *a, const Inst *b)
{
    const Literal *x = splat_value(a), *y = splat_value(b);
    return x && y && x->type == y->type && memcmp(x->data, y->data, (size_t)type_bytes(x->type)) == 0;
}

/* Every element of both is the same, known or not. */
static bool same_element(const Inst *a, const Inst *b)
{
    const Inst *x = is_scalar_broadcast(a) ? inst_operand(a, 0) : a, *y = is_scalar_broadcast(b) ? inst_operand(b, 0) : b;
    return (x == y && x->shape->rank == 0) || simp_same_splat(x, y);
}

/* Padding around padding of the same value, or around that value. */
Inst *rule_pad_pad(Simp *s, Inst *i)
{
    const Inst *inner = inst_operand(i, 0);
    Inst       *value = inst_operand(i, 1);
    if (same_element(inner, value))
        return simp_broadcast(s, i->shape, value, (Ints){NULL, 0});
    if (inner->op != OP_PAD || (inst_operand(inner, 1) != value && !simp_same_splat(inst_operand(inner, 1), value)))
        return NULL;
    const PadDim *out = simp_padding(i), *in = simp_padding(inner);
    PadDim       *both = ARENA_ARRAY(s->scratch, PadDim, i->shape->rank);
    for (int32_t k = 0; k < i->shape->rank; k++) {
        if (out[k].interior || out[k].lo < 0 || out[k].hi < 0 || in[k].lo < 0 || in[k].hi < 0 ||
            !size_add(out[k].lo, in[k].lo, &both[k].lo) || !size_add(out[k].hi, in[k].hi, &both[k].hi))
            return NULL;
        both[k].interior = in[k].interior;
    }
    return simp_pad(s, i->shape, inst_operand(inner, 0), value, both);
}

/* pad(broadcast(x)) -> broadcast(pad(broadcast(x))) without the dimensions that are neither padded nor of x */
Inst *rule_pad_broadcast(Simp *s, Inst *i)
{
    const Inst *b = inst_operand(i, 0);
    if (!is_broadcast(b) || b->n_uses != 1 || inst_operand(b, 0)->shape->rank == 0)
        return NULL;
    int32_t       rank = i->shape->rank, n = 0;
    const PadDim *p = simp_padding(i);
    Ints          from = dimensions(b), kept = scratch_ints(s, rank), before = scratch_ints(s, rank), after = scratch_ints(s, rank);
    Ints          dims = scratch_ints(s, from.n);
    PadDim       *small = ARENA_ARRAY(s->scratch, PadDim, rank);
    for (int32_t k = 0; k < rank; k++) {
        if (!ints_has(from, k) && !p[k].lo && !p[k].hi && !p[k].interior)
            continue;
        for (int32_t j = 0; j < from.n; j++)
            if (from.v[j] == k)
                *ints_at(dims, j) = n;
        small[n] = p[k];
        *ints_at(kept, n) = k;
        *ints_at(before, n) = b->shape->dims[k];
        *ints_at(after, n++) = i->shape->dims[k];
    }
    if (n == rank)
        return NULL;
    Inst *x = simp_broadcast(s, simp_shape(s, i->shape->type, n, before.v), inst_operand(b, 0), dims);
    x = simp_pad(s, simp_shape(s, i->shape->type, n, after.v), x, inst_operand(i, 1), small);
    return simp_broadcast(s, i->shape, x, (Ints){kept.v, n});
}

/* n places fewer at one end of elements that are `step` apart: how many elements go, and what is left of the places up to the next one. */
static int64_t taken(int64_t n, int64_t step, int64_t *places)
{
    int64_t elements = n / step + (n % step != 0);
    *places = elements * step - n;
    return elements;
}

/* One dimension: padding that takes nothing away, of the elements that are left. */
static void take_first(PadDim p, int64_t size, int64_t padded, SliceRange *cut, PadDim *rest)
{
    int64_t step = p.interior + 1, first = 0, last = 0;
    *rest = p;
    if (p.lo < 0)
        first = taken(-p.lo, step, &rest->lo);
    if (p.hi < 0)
        last = taken(-p.hi, step, &rest->hi);
    *cut = (SliceRange){first, size - last, 1};
    if (first + last < size)
        return;
    *cut = (SliceRange){0, 0, 1};
    *rest = (PadDim){padded, 0, 0};
}

/* Padding that takes away: what it takes is left out before, where that costs nothing. */
Inst *rule_pad_negative(Simp *s, Inst *i)
{
    const PadDim *p = simp_padding(i);
    const Shape  *x = inst_operand(i, 0)->shape;
    int32_t       rank = i->shape->rank;
    PadDim       *rest = ARENA_ARRAY(s->scratch, PadDim, rank);
    SliceRange   *cut = ARENA_ARRAY(s->scratch, SliceRange, rank);
    Ints          sizes = scratch_ints(s, rank);
    bool          any = false;
    for (int32_t k = 0; k < rank; k++) {
        if (p[k].interior == INT64_MAX || p[k].lo == INT64_MIN || p[k].hi == INT64_MIN)
            return NULL;
        take_first(p[k], x->dims[k], i->shape->dims[k], &cut[k], &rest[k]);
        *ints_at(sizes, k) = cut[k].limit - cut[k].start;
        any |= p[k].lo < 0 || p[k].hi < 0;
    }
    if (!any)
        return NULL;
    Inst *left = simp_slice(s, simp_shape(s, x->type, rank, sizes.v), inst_operand(i, 0), cut);
    return simp_pad(s, i->shape, left, inst_operand(i, 1), rest);
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
        const SliceRange *v = simp_ranges(o), *first = simp_ranges(inst_operand(i, 0));
        for (int32_t j = 0; j < i->shape->rank; j++)
            if (v[j].stride != 1 || (j != dim && (v[j].start != first[j].start || v[j].limit != first[j].limit)))
                return NULL;
        if (k > 0 && v[dim].start != simp_ranges(inst_operand(i, k - 1))[dim].limit)
            return NULL;
    }
    const Inst *first = inst_operand(i, 0);
    SliceRange *cut = arena_copy(s->scratch, simp_ranges(first), (size_t)i->shape->rank * sizeof *cut);
    cut[dim].limit = cut[dim].start + i->shape->dims[dim];
    return simp_slice(s, i->shape, inst_operand(first, 0), cut);
}

/* Operands that are concatenated along the same dimension give theirs. */
Inst *rule_concatenate_concatenate(Simp *s, Inst *i)
{
    Ints    dim = dimensions(i);
    int32_t n = 0, most = 0;
    bool    any = false;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        bool        nested = o->op == OP_CONCATENATE && ints_equal(dimensions(o), dim) && o->n_uses == 1;
        most += nested ? o->n_operands : 1;
        any |= nested;
    }
    if (!any)
        return NULL;
    Inst **all = ARENA_ARRAY(s->scratch, Inst *, most);
    for (int32_t k = 0; k < i->n_operands; k++) {
        Inst *o = inst_operand(i, k);
        bool  nested = o->op == OP_CONCATENATE && ints_equal(dimensions(o), dim) && o->n_uses == 1;
        for (int32_t j = 0; j < (nested ? o->n_operands : 1); j++)
            all[n++] = nested ? inst_operand(o, j) : o;
    }
    Inst *c = simp_new(s, OP_CONCATENATE, i->shape, n, all);
    inst_set_ints(c, ATTR_DIMENSIONS, dim);
    return c;
}

/* concatenate(x, broadcast(c)) -> pad(x, c) */
Inst *rule_concatenate_splat(Simp *s, Inst *i)
{
    int64_t dim = dimensions(i).v[0];
    if (i->n_operands != 2)
        return NULL;
    for (int32_t k = 0; k < 2; k++) {
        const Inst *b = inst_operand(i, k);
        if (!is_scalar_broadcast(b) || is_scalar_broadcast(inst_operand(i, 1 - k)))
            continue;
        PadDim *p = ARENA_ARRAY(s->scratch, PadDim, i->shape->rank);
        for (int32_t d = 0; d < i->shape->rank; d++)
            p[d] = (PadDim){0};
        *(k == 0 ? &p[dim].lo : &p[dim].hi) = b->shape->dims[dim];
        return simp_pad(s, i->shape, inst_operand(i, 1 - k), inst_operand(b, 0), p);
    }
    return NULL;
}

/* One value everywhere. */
Inst *rule_concatenate_equal(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0);
    for (int32_t k = 0; k < i->n_operands; k++)
        if (!is_scalar_broadcast(inst_operand(i, k)) || !same_element(x, inst_operand(i, k)))
            return NULL;
    return simp_broadcast(s, i->shape, inst_operand(x, 0), (Ints){NULL, 0});
}

/* The same operand again and again, of size 1 in that dimension, is a broadcast. */
Inst *rule_concatenate_same(Simp *s, Inst *i)
{
    Inst   *x = inst_operand(i, 0);
    int64_t dim = dimensions(i).v[0];
    if (i->n_operands < 2 || x->shape->dims[dim] != 1 || x->shape->layout)
        return NULL;
    for (int32_t k = 1; k < i->n_operands; k++)
        if (inst_operand(i, k) != x)
            return NULL;
    int32_t rank = i->shape->rank, n = 0;
    Ints    sizes = scratch_ints(s, rank), dims = scratch_ints(s, rank);
    for (int32_t k = 0; k < rank; k++)
        if (k != dim) {
            *ints_at(sizes, n) = i->shape->dims[k];
            *ints_at(dims, n++) = k;
        }
    Inst *small = simp_reshape(s, simp_shape(s, i->shape->type, n, sizes.v), x);
    return simp_broadcast(s, i->shape, small, (Ints){dims.v, n});
}

/* ---- dynamic slices ---- */

Inst *rule_dynamic_slice_whole(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 0)); /* starts are clamped to 0 */
}

/* The number of the first index operand of a dynamic-slice or dynamic-update-slice; -1: they are one vector. */
static int32_t first_start(const Inst *i)
{
    int32_t first = i->op == OP_DYNAMIC_SLICE ? 1 : 2;
    return i->n_operands == first + inst_operand(i, 0)->shape->rank ? first : -1;
}

/* Where the part has the whole size its place is 0, whatever is asked for. */
static Inst *without_idle_starts(Simp *s, const Inst *i, const Shape *part)
{
    int32_t first = first_start(i), rank = part->rank;
    bool    any = false;
    if (first < 0)
        return NULL;
    Inst **operands = ARENA_ARRAY(s->scratch, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        operands[k] = inst_operand(i, k);
    for (int32_t k = 0; k < rank; k++)
        if (part->dims[k] == inst_operand(i, 0)->shape->dims[k] && !splat_is(operands[first + k], 0)) {
            operands[first + k] = simp_splat(s, operands[first + k]->shape, 0);
            any = true;
        }
    return any ? simp_like(s, i, i->shape, operands) : NULL;
}

Inst *rule_dynamic_slice_idle(Simp *s, Inst *i)
{
    return without_idle_starts(s, i, i->shape);
}

Inst *rule_update_idle(Simp *s, Inst *i)
{
    return without_idle_starts(s, i, inst_operand(i, 1)->shape);
}

Inst *simp_dynamic_slice(Simp *s, const Shape *shape, Inst *x, Inst *const *starts)
{
    int32_t rank = x->shape->rank;
    Inst  **operands = ARENA_ARRAY(s->scratch, Inst *, rank + 1);
    operands[0] = x;
    for (int32_t k = 0; k < rank; k++)
        operands[k + 1] = starts[k];
    Inst *d = simp_new(s, OP_DYNAMIC_SLICE, shape, rank + 1, operands);
    inst_set_ints(d, ATTR_DYNAMIC_SLICE_SIZES, dims_of(shape));
    return d;
}

/* The dimensions of x are cut as those of the result that they became. */
Inst *rule_dynamic_slice_broadcast(Simp *s, Inst *i)
{
    Inst *b = inst_operand(i, 0);
    if (!is_broadcast(b) || first_start(i) < 0)
        return NULL;
    Inst  *x = inst_operand(b, 0), **starts = ARENA_ARRAY(s->scratch, Inst *, x->shape->rank);
    Ints   dims = dimensions(b), sizes = scratch_ints(s, dims.n);
    for (int32_t k = 0; k < dims.n; k++) {
        starts[k] = inst_operand(i, (int32_t)dims.v[k] + 1);
        *ints_at(sizes, k) = i->shape->dims[dims.v[k]];
    }
    if (!ints_equal(sizes, dims_of(x->shape)))
        x = simp_dynamic_slice(s, simp_shape(s, x->shape->type, sizes.n, sizes.v), x, starts);
    return simp_broadcast(s, i->shape, x, dims);
}

/* A slice of a slice, where in each dimension one of the two takes all: the other says the place. */
Inst *rule_dynamic_slice_twice(Simp *s, Inst *i)
{
    const Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_DYNAMIC_SLICE || first_start(i) < 0 || first_start(inner) < 0)
        return NULL;
    Inst  *x = inst_operand(inner, 0), **starts = ARENA_ARRAY(s->scratch, Inst *, x->shape->rank);
    Type   t = TYPE_COUNT; /* indices have one type */
    for (int32_t k = 0; k < x->shape->rank; k++) {
        if (inner->shape->dims[k] == x->shape->dims[k])
            starts[k] = inst_operand(i, k + 1);
        else if (i->shape->dims[k] == inner->shape->dims[k])
            starts[k] = inst_operand(inner, k + 1);
        else
            return NULL;
        if (t != TYPE_COUNT && starts[k]->shape->type != t)
            return NULL;
        t = starts[k]->shape->type;
    }
    return simp_dynamic_slice(s, i->shape, x, starts);
}

/* Each start is the same instruction, or the same number. */
static bool same_starts(const Inst *a, const Inst *b)
{
    int32_t from = first_start(a), other = first_start(b);
    if (from < 0 || other < 0)
        return false;
    for (int32_t k = 0; k < inst_operand(a, 0)->shape->rank; k++) {
        const Inst *x = inst_operand(a, from + k), *y = inst_operand(b, other + k);
        if (x != y && !simp_same_splat(x, y))
            return false;
    }
    return true;
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
    return simp_slice(s, i->shape, x, cut);
}

/* Writing back what is there, writing nothing. */
Inst *rule_update_nothing(Simp *s, Inst *i)
{
    Inst *x = inst_operand(i, 0), *u = inst_operand(i, 1);
    if (shape_count(u->shape) == 0 || same_element(x, u))
        return simp_same(s, x);
    return u->op == OP_DYNAMIC_SLICE && inst_operand(u, 0) == x && same_starts(i, u) ? simp_same(s, x) : NULL;
}

/* What is overwritten at once need not be written. */
Inst *rule_update_update(Simp *s, Inst *i)
{
    const Inst *inner = inst_operand(i, 0);
    if (inner->op != OP_DYNAMIC_UPDATE_SLICE || !shape_same_dims(inst_operand(inner, 1)->shape, inst_operand(i, 1)->shape) ||
        !same_starts(i, inner))
        return NULL;
    Inst **operands = ARENA_ARRAY(s->scratch, Inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
        operands[k] = k == 0 ? inst_operand(inner, 0) : inst_operand(i, k);
    return simp_like(s, i, i->shape, operands);
}

/* An update of what is everywhere the same, at a known place, is padding. */
Inst *rule_update_splat(Simp *s, Inst *i)
{
    Inst *b = inst_operand(i, 0), *u = inst_operand(i, 1);
    if (!is_scalar_broadcast(b) || first_start(i) < 0)
        return NULL;
    PadDim *p = ARENA_ARRAY(s->scratch, PadDim, i->shape->rank);
    for (int32_t k = 0; k < i->shape->rank; k++) {
        int64_t start, room = i->shape->dims[k] - u->shape->dims[k];
        if (!known_start(i, k + 1, &start))
            return NULL;
        start = start < 0 ? 0 : start > room ? room : start;
        p[k] = (PadDim){start, room - start, 0};
    }
    return simp_pad(s, i->shape, u, inst_operand(b, 0), p);
}

Inst *rule_update_whole(Simp *s, Inst *i)
{
    return simp_same(s, inst_operand(i, 1));
}
