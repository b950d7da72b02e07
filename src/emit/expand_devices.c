/* Building blocks of the expansions for several devices. */
#include "emit/expand_devices.h"

#include <string.h>

#include "ir/tiling.h"

Inst *dev_made(const DeviceExpansion *x, Op op, const Shape *s, int32_t n, Inst *const *operands, const char *what)
{
    Module *m = x->i->comp->module;
    Inst   *y = inst_new(x->c, x->before, op, s, n, operands, inst_unique_name(m, arena_printf(x->arena, "%s.%s", x->i->name, what)));
    y->meta = x->i->meta;
    y->loc = x->i->loc;
    return y;
}

const Shape *dev_array(const DeviceExpansion *x, Type t, int32_t rank, const int64_t *dims)
{
    return shape_array(x->arena, t, rank, arena_copy(x->arena, dims, (size_t)rank * sizeof *dims));
}

Inst *dev_reshaped(const DeviceExpansion *x, Inst *y, int32_t rank, const int64_t *dims)
{
    return dev_made(x, OP_RESHAPE, dev_array(x, y->shape->type, rank, dims), 1, &y, "as");
}

Inst *dev_shaped(const DeviceExpansion *x, Inst *y, const Shape *want)
{
    if (!shape_same_dims(y->shape, want))
        y = dev_reshaped(x, y, want->rank, want->dims);
    return shape_equal(y->shape, want) ? y : dev_made(x, OP_COPY, want, 1, &y, "copy");
}

Inst *dev_tuple(const DeviceExpansion *x, int32_t n, Inst *const *v)
{
    const Shape **s = ARENA_ARRAY(x->arena, const Shape *, n);
    for (int32_t k = 0; k < n; k++)
        s[k] = v[k]->shape;
    return dev_made(x, OP_TUPLE, shape_tuple(x->arena, n, s), n, v, "all");
}

Inst *dev_converted(const DeviceExpansion *x, Inst *y, Type t)
{
    return y->shape->type == t ? y : dev_made(x, OP_CONVERT, dev_array(x, t, y->shape->rank, y->shape->dims), 1, &y, "convert");
}

Inst *dev_constant(const DeviceExpansion *x, Literal *l)
{
    Inst *y = inst_constant(x->c, x->before, l, NULL);
    y->loc = x->i->loc;
    return y;
}

Inst *dev_zeros(const DeviceExpansion *x, const Shape *s)
{
    return dev_constant(x, literal_for_shape(s, true));
}

Inst *dev_slice(const DeviceExpansion *x, Inst *y, const int64_t *from, const int64_t *end)
{
    int32_t     rank = y->shape->rank;
    int64_t    *dims = ARENA_ARRAY(x->arena, int64_t, rank);
    SliceRange *v = ARENA_ARRAY(x->arena, SliceRange, rank);
    Slices     *all = ARENA_NEW(x->arena, Slices);
    for (int32_t d = 0; d < rank; d++) {
        v[d] = (SliceRange){from[d], end[d], 1};
        dims[d] = end[d] - from[d];
    }
    *all = (Slices){rank, v};
    Inst *s = dev_made(x, OP_SLICE, shape_array(x->arena, y->shape->type, rank, dims), 1, &y, "slice");
    inst_set_attr(s, (Attr){.id = ATTR_SLICE, .value.slices = all});
    return s;
}

Inst *dev_padded(const DeviceExpansion *x, Inst *y, const int64_t *dims)
{
    int32_t  rank = y->shape->rank;
    PadDim  *v = ARENA_ARRAY(x->arena, PadDim, rank);
    Padding *all = ARENA_NEW(x->arena, Padding);
    bool     any = false;
    for (int32_t d = 0; d < rank; d++) {
        v[d] = (PadDim){0, dims[d] - y->shape->dims[d], 0};
        any |= v[d].hi > 0;
    }
    if (!any)
        return y;
    *all = (Padding){rank, v, false};
    Inst *operands[] = {y, dev_zeros(x, shape_scalar(x->arena, y->shape->type))};
    Inst *p = dev_made(x, OP_PAD, dev_array(x, y->shape->type, rank, dims), 2, operands, "padded");
    inst_set_attr(p, (Attr){.id = ATTR_PADDING, .value.padding = all});
    return p;
}

/* ---- exchanges ---- */

static const char *type_text(const DeviceExpansion *x)
{
    Buf b = {0};
    shape_print(&b, x->i->shape, false);
    buf_puts(&b, " (");
    for (int32_t k = 0; k < x->i->n_operands; k++) {
        buf_puts(&b, k > 0 ? ", " : "");
        shape_print(&b, inst_operand(x->i, k)->shape, false);
    }
    buf_putc(&b, ')');
    const char *text = arena_strndup(x->arena, b.p, b.n);
    buf_free(&b);
    return text;
}

Inst *dev_exchanged(DeviceExpansion *x, ExchangeKind kind, Inst *y)
{
    static const Op ops[] = {[EXCHANGE_GATHER] = OP_ALL_GATHER, [EXCHANGE_TRADE] = OP_ALL_TO_ALL,
                             [EXCHANGE_BROADCAST] = OP_COLLECTIVE_BROADCAST, [EXCHANGE_PERMUTE] = OP_COLLECTIVE_PERMUTE};
    static const char *const done[] = {[EXCHANGE_GATHER] = "gathered", [EXCHANGE_TRADE] = "traded", [EXCHANGE_BROADCAST] = "sent",
                                       [EXCHANGE_PERMUTE] = "sent"};
    const Shape *s = y->shape;
    int64_t      bytes = shape_bytes(s);
    if (kind == EXCHANGE_GATHER) {
        int64_t *dims = arena_copy(x->arena, s->dims, (size_t)s->rank * sizeof *dims);
        dims[0] = x->n;
        s = shape_array(x->arena, s->type, s->rank, dims);
    }
    Exchange *e = ARENA_NEW(x->arena, Exchange);
    *e = (Exchange){.kind = kind,
                    .step = x->steps++,
                    .channel = inst_int(x->i, ATTR_CHANNEL_ID, -1),
                    .bytes = kind == EXCHANGE_TRADE ? bytes / x->n : bytes,
                    .groups = x->groups,
                    .pairs = x->pairs,
                    .op = op_name(x->i->op),
                    .name = x->i->name,
                    .type = type_text(x)};
    Inst *z = dev_made(x, ops[kind], s, 1, &y, done[kind]);
    map_put(x->exchanges, z, e);
    return z;
}

Inst *dev_checked(const DeviceExpansion *x, Inst *y, Inst *ok, const char *failure)
{
    Exchange *e = ARENA_NEW(x->arena, Exchange);
    *e = (Exchange){.kind = EXCHANGE_CHECK, .op = op_name(x->i->op), .name = x->i->name, .failure = failure};
    Inst *z = dev_made(x, OP_ADD_DEPENDENCY, y->shape, 2, (Inst *const[]){y, ok}, "checked");
    map_put(x->exchanges, z, e);
    return z;
}

/* ---- numbers ---- */

Inst *dev_number(const DeviceExpansion *x, Ints v)
{
    int64_t  n = v.n;
    Literal *table = literal_new(TYPE_S32, 1, &n);
    for (int32_t k = 0; k < v.n; k++)
        literal_set_s64(table, k, v.v[k]);
    const Shape *u32 = shape_scalar(x->arena, TYPE_U32);
    Inst        *replica = dev_made(x, OP_REPLICA_ID, u32, 0, NULL, "replica");
    Inst        *partitions = dev_constant(x, literal_from_s64(TYPE_U32, x->on.partitions));
    Inst        *first = dev_made(x, OP_MULTIPLY, u32, 2, (Inst *const[]){replica, partitions}, "first");
    Inst        *partition = dev_made(x, OP_PARTITION_ID, u32, 0, NULL, "partition");
    Inst        *device = dev_made(x, OP_ADD, u32, 2, (Inst *const[]){first, partition}, "device");
    Inst        *one = dev_made(x, OP_DYNAMIC_SLICE, dev_array(x, TYPE_S32, 1, (const int64_t[]){1}), 2,
                                (Inst *const[]){dev_constant(x, table), device}, "entry");
    inst_set_ints(one, ATTR_DYNAMIC_SLICE_SIZES, (Ints){(const int64_t[]){1}, 1});
    return dev_reshaped(x, one, 0, NULL);
}
