/* StableHLO's operations with sizes as operands, as custom calls whose result has a known shape: the sizes say what the result's shape says too. What
 * else an operand says, where a slice begins and its strides, is used. Source: StableHLO's specification, "dynamic_reshape",
 * "dynamic_broadcast_in_dim", "real_dynamic_slice"; XLA's xla/hlo/translate/hlo_to_mhlo/custom_call_importer.cc. */
#include "ir/call_build.h"

static bool known(Build *b)
{
    const Shape *s = b->call->shape, *x = inst_operand(b->call, 0)->shape;
    if (shape_is_array(s) && !shape_is_dynamic(s) && !shape_is_dynamic(x) && s->type == x->type)
        return true;
    build_refuse(b, "it does not make %s of %s", shape_brief(b->arena, s), shape_brief(b->arena, x));
    return false;
}

/* Operand k is a list of n integers; those that are known, if they must be these, are. */
static bool integers(Build *b, int32_t k, int32_t n, const int64_t *want)
{
    const Inst *x = inst_operand(b->call, k);
    bool        ok = type_is_int(x->shape->type) && x->shape->rank == 1 && x->shape->dims[0] == n;
    int64_t     v;
    for (int32_t d = 0; want && ok && d < n; d++)
        ok = !build_known(x, d, &v) || v == want[d];
    if (!ok)
        build_refuse(b, "its operand %d is not %d integers that its result agrees with", k, n);
    return ok;
}

Inst *mean_dynamic_reshape(Build *b)
{
    const Shape *s = b->call->shape;
    if (!build_takes(b, 2) || !build_arrays(b, false) || !known(b) || !integers(b, 1, s->rank, s->dims))
        return NULL;
    if (shape_count(s) != shape_count(b->in[0]->shape))
        return build_refuse(b, "it does not make %s of %s", shape_brief(b->arena, s), shape_brief(b->arena, b->in[0]->shape));
    return inst_new(b->body, NULL, OP_RESHAPE, build_dense(b, s->type, s), 1, b->in, NULL);
}

/* The operand without its dimensions of size 1 that the result has otherwise; dims are those that are left. */
static Inst *narrowed(Build *b, int64_t *dims, int32_t *n)
{
    const Shape *s = b->call->shape, *x = b->in[0]->shape;
    int64_t     *kept = ARENA_ARRAY(b->arena, int64_t, x->rank);
    *n = 0;
    for (int32_t k = 0; k < x->rank; k++) {
        if (x->dims[k] != s->dims[dims[k]] && x->dims[k] != 1)
            return build_refuse(b, "it does not make %s of %s", shape_brief(b->arena, s), shape_brief(b->arena, x));
        if (x->dims[k] == s->dims[dims[k]]) {
            kept[*n] = x->dims[k];
            dims[(*n)++] = dims[k];
        }
    }
    return inst_new(b->body, NULL, OP_RESHAPE, shape_array(b->module->arena, x->type, *n, kept), 1, b->in, NULL);
}

Inst *mean_dynamic_broadcast(Build *b)
{
    const Shape      *s = b->call->shape;
    const CallOption *o, *e;
    int32_t           n = 0;
    if (!build_takes(b, 2) || !build_arrays(b, false) || !known(b) || !integers(b, 1, s->rank, s->dims))
        return NULL;
    if (!call_options_read(b->arena, b->call, &b->options) || !(o = call_option(&b->options, "broadcast_dimensions")))
        return build_refuse(b, "its backend_config says no broadcast_dimensions");
    e = call_option_entries(b->arena, o, &n);
    int64_t *dims = ARENA_ARRAY(b->arena, int64_t, n);
    for (int32_t k = 0; k < n; k++) {
        dims[k] = e[k].number;
        if (!e[k].is_number || dims[k] < 0 || dims[k] >= s->rank || (k && dims[k] <= dims[k - 1]))
            return build_refuse(b, "its broadcast_dimensions are %s", o->text);
    }
    if (n != b->in[0]->shape->rank)
        return build_refuse(b, "its broadcast_dimensions are %s", o->text);
    Inst *x = narrowed(b, dims, &n);
    if (!x)
        return NULL;
    Inst *r = inst_new(b->body, NULL, OP_BROADCAST, build_dense(b, s->type, s), 1, &x, NULL);
    inst_set_ints(r, ATTR_DIMENSIONS, (Ints){ dims, n });
    return r;
}

/* Dimension d, of which start, limit and stride are all known. */
static bool fixed_range(Build *b, int32_t d, SliceRange *r)
{
    return build_known(inst_operand(b->call, 1), d, &r->start) && build_known(inst_operand(b->call, 2), d, &r->limit) &&
           build_known(inst_operand(b->call, 3), d, &r->stride);
}

static Inst *fixed_slice(Build *b, const SliceRange *r)
{
    const Shape *s = b->call->shape, *x = b->in[0]->shape;
    Slices      *v = ARENA_NEW(b->module->arena, Slices);
    for (int32_t d = 0; d < s->rank; d++) {
        int64_t from = r[d].start, to = r[d].limit, step = r[d].stride;
        if (from < 0 || to < from || to > x->dims[d] || step < 1 || (to - from) / step + ((to - from) % step != 0) != s->dims[d])
            return build_refuse(b, "its dimension %d goes from %lld to %lld in steps of %lld, which does not make %s of %s", d, (long long)from,
                                (long long)to, (long long)step, shape_brief(b->arena, s), shape_brief(b->arena, x));
    }
    *v = (Slices){ s->rank, r };
    Inst *y = inst_new(b->body, NULL, OP_SLICE, build_dense(b, s->type, s), 1, b->in, NULL);
    inst_set_attr(y, (Attr){ .id = ATTR_SLICE, .value.slices = v });
    return y;
}

/* Entry d of the list x as a scalar. */
static Inst *entry(Build *b, Inst *x, int32_t d)
{
    Arena      *a = b->module->arena;
    SliceRange *r = ARENA_NEW(a, SliceRange);
    Slices     *v = ARENA_NEW(a, Slices);
    *r = (SliceRange){ d, d + 1, 1 };
    *v = (Slices){ 1, r };
    Inst *one = inst_new(b->body, NULL, OP_SLICE, shape_array(a, x->shape->type, 1, (int64_t[]){ 1 }), 1, &x, NULL);
    inst_set_attr(one, (Attr){ .id = ATTR_SLICE, .value.slices = v });
    return inst_new(b->body, NULL, OP_RESHAPE, shape_scalar(a, x->shape->type), 1, &one, NULL);
}

static Inst *moving_slice(Build *b)
{
    const Shape *s = b->call->shape;
    Inst       **operands = ARENA_ARRAY(b->arena, Inst *, s->rank + 1);
    operands[0] = b->in[0];
    for (int32_t d = 0; d < s->rank; d++) {
        if (s->dims[d] > b->in[0]->shape->dims[d])
            return build_refuse(b, "it does not make %s of %s", shape_brief(b->arena, s), shape_brief(b->arena, b->in[0]->shape));
        operands[d + 1] = entry(b, b->in[1], d);
    }
    Inst *y = inst_new(b->body, NULL, OP_DYNAMIC_SLICE, build_dense(b, s->type, s), s->rank + 1, operands, NULL);
    inst_set_ints(y, ATTR_DYNAMIC_SLICE_SIZES, (Ints){ s->dims, s->rank });
    return y;
}

/* (operand, starts, limits, strides) */
Inst *mean_real_dynamic_slice(Build *b)
{
    const Shape *s = b->call->shape;
    if (!build_takes(b, 4) || !build_arrays(b, false) || !known(b))
        return NULL;
    if (s->rank != b->in[0]->shape->rank)
        return build_refuse(b, "it does not make %s of %s", shape_brief(b->arena, s), shape_brief(b->arena, b->in[0]->shape));
    for (int32_t k = 1; k < 4; k++)
        if (!integers(b, k, s->rank, NULL))
            return NULL;
    SliceRange *r = ARENA_ARRAY(b->module->arena, SliceRange, s->rank);
    bool        fixed = true;
    for (int32_t d = 0; d < s->rank; d++)
        fixed &= fixed_range(b, d, &r[d]);
    if (fixed)
        return fixed_slice(b, r);
    int64_t stride;
    for (int32_t d = 0; d < s->rank; d++)
        if (!build_known(inst_operand(b->call, 3), d, &stride) || stride != 1)
            return build_refuse(b, "strides that are computed, or are not 1 where the slice moves, are not supported");
    return moving_slice(b);
}
