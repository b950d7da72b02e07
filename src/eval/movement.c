/* Data movement: every result element is a copy of some operand element, so only strides and bytes matter.
 * o is an odometer over the elements that are copied; array 0 is the result, array 1 the operand. Source: reference operations 5. */
#include <string.h>

#include "eval/engine.h"
#include "eval/arith.h"
#include "eval/walk.h"

EvalFn eval_iota, eval_broadcast, eval_reshape, eval_transpose, eval_reverse, eval_shuffle, eval_slice, eval_pad, eval_concatenate, eval_bitcast,
    eval_bitcast_convert;

/* An odometer over dims whose result is row-major; the operand's strides are still to be set. */
static Odometer over(int32_t rank, const int64_t *dims)
{
    Odometer o;
    walk_start(&o, rank, dims);
    walk_strides(rank, dims, o.stride[0]);
    return o;
}

/* The values 0, 1, 2, ... converted to the type (narrow integers wrap), then spread over the other dimensions. */
Literal *eval_iota(Eval *e, const Inst *i, Literal **x)
{
    const Shape *s = i->shape;
    int64_t k = inst_int(i, ATTR_IOTA_DIMENSION, 0), n = s->dims[k];
    Literal *r = eval_new_for(e, i, s);
    if (!r || r->count == 0) /* n may be any number then */
        return r;
    Literal *line = eval_new(e, i, s->type, 1, &n);
    if (!line)
        return r;
    Arith convert = {.fn = arith_convert, .n = 1, .type = {TYPE_S64}, .out = s->type, .raw = true};
    int64_t numbers[BLOCK];
    const void *from[] = {numbers};
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        for (int64_t j = 0; j < m; j++)
            numbers[j] = at + j;
        arith_run(&convert, (char *)line->data + at * type_bytes(s->type), from, m);
    }
    Odometer o = over(s->rank, s->dims);
    o.stride[1][k] = 1;
    walk_copy(&o, r->data, line->data, type_bytes(s->type));
    eval_drop(e, line);
    return r;
}

/* out[o] = x[o[dims[0]], o[dims[1]], ...] */
Literal *eval_broadcast(Eval *e, const Inst *i, Literal **x)
{
    Ints dims = inst_ints(i, ATTR_DIMENSIONS);
    Literal *r = eval_new_for(e, i, i->shape);
    if (!r)
        return NULL;
    if (x[0]->count == 1) {
        walk_fill(r->data, r->count, x[0]->data, type_bytes(r->type));
        return r;
    }
    int64_t strides[WALK_RANK];
    walk_strides(x[0]->rank, x[0]->dims, strides);
    Odometer o = over(r->rank, r->dims);
    for (int32_t k = 0; k < dims.n; k++)
        o.stride[1][dims.v[k]] = strides[k];
    walk_copy(&o, r->data, x[0]->data, type_bytes(r->type));
    return r;
}

/* The same values in the same linear order under other dimensions. A literal's dimensions are part of it, so the data is copied. */
Literal *eval_reshape(Eval *e, const Inst *i, Literal **x)
{
    Literal *r = eval_result(e, i, x, 0);
    if (r && r->count > 0 && x[0])
        memcpy(r->data, x[0]->data, (size_t)literal_bytes(r));
    return r;
}

/* Result dimension k is operand dimension p[k]. */
Literal *eval_transpose(Eval *e, const Inst *i, Literal **x)
{
    Ints p = inst_ints(i, ATTR_DIMENSIONS);
    Literal *r = eval_new_for(e, i, i->shape);
    if (!r)
        return NULL;
    int64_t strides[WALK_RANK];
    walk_strides(x[0]->rank, x[0]->dims, strides);
    Odometer o = over(r->rank, r->dims);
    for (int32_t k = 0; k < r->rank; k++)
        o.stride[1][k] = strides[p.v[k]];
    walk_copy(&o, r->data, x[0]->data, type_bytes(r->type));
    return r;
}

Literal *eval_reverse(Eval *e, const Inst *i, Literal **x)
{
    Ints dims = inst_ints(i, ATTR_DIMENSIONS);
    Literal *r = eval_new_for(e, i, i->shape);
    if (!r)
        return NULL;
    Odometer o = over(r->rank, r->dims);
    walk_strides(r->rank, r->dims, o.stride[1]);
    for (int32_t k = 0; k < dims.n; k++) {
        int64_t d = dims.v[k];
        o.at[1] += o.stride[1][d] * (o.dims[d] - 1);
        o.stride[1][d] = -o.stride[1][d];
    }
    walk_copy(&o, r->data, x[0]->data, type_bytes(r->type));
    return r;
}

/* One dimension after the other: out_d reads o_d + shift, round the end. */
Literal *eval_shuffle(Eval *e, const Inst *i, Literal **x)
{
    Ints dims = inst_ints(i, ATTR_DIMENSIONS);
    Literal *r = NULL;
    for (int32_t k = 0; k < dims.n; k++) {
        Literal *from = r ? r : x[0];
        r = eval_new_for(e, i, i->shape);
        if (r && r->count > 0) {
            int64_t n = r->dims[dims.v[k]], shift = inst_shift(i, k), bytes = type_bytes(r->type);
            for (int32_t d = (int32_t)dims.v[k] + 1; d < r->rank; d++)
                bytes *= r->dims[d];
            for (int64_t row = 0; row < literal_bytes(r); row += n * bytes) {
                char       *to = (char *)r->data + row;
                const char *at = (const char *)from->data + row;
                memcpy(to, at + shift * bytes, (size_t)((n - shift) * bytes));
                memcpy(to + (n - shift) * bytes, at, (size_t)(shift * bytes));
            }
        }
        if (from != x[0])
            eval_drop(e, from);
        if (!r)
            return NULL;
    }
    return r;
}

/* out_k reads start_k + o_k * stride_k. */
Literal *eval_slice(Eval *e, const Inst *i, Literal **x)
{
    const Slices *s = inst_attr(i, ATTR_SLICE)->value.slices;
    Literal *r = eval_new_for(e, i, i->shape);
    if (!r)
        return NULL;
    int64_t strides[WALK_RANK];
    walk_strides(x[0]->rank, x[0]->dims, strides);
    Odometer o = over(r->rank, r->dims);
    for (int32_t k = 0; k < r->rank; k++) {
        o.at[1] += strides[k] * s->v[k].start;
        o.stride[1][k] = r->dims[k] > 1 ? strides[k] * s->v[k].stride : 0; /* a stride beyond the array is never taken */
    }
    walk_copy(&o, r->data, x[0]->data, type_bytes(r->type));
    return r;
}

/* The operand elements [*from, *to) of a dimension of size d that stay inside a result of size n when element j goes to lo + j * step. */
static void pad_range(int64_t d, int64_t n, int64_t lo, int64_t step, int64_t *from, int64_t *to)
{
    *from = lo < 0 ? -(lo / step) + (lo % step != 0) : 0;
    *to = n - lo > 0 ? (n - lo - 1) / step + 1 : 0;
    if (*to > d)
        *to = d;
    if (*from > *to)
        *from = *to;
}

Literal *eval_pad(Eval *e, const Inst *i, Literal **x)
{
    const Padding *p = inst_attr(i, ATTR_PADDING)->value.padding;
    Literal *r = eval_new_for(e, i, i->shape);
    if (!r)
        return NULL;
    walk_fill(r->data, r->count, x[1]->data, type_bytes(r->type));
    Odometer o = over(r->rank, r->dims);
    walk_strides(x[0]->rank, x[0]->dims, o.stride[1]);
    for (int32_t k = 0; k < r->rank; k++) {
        int64_t step = p->v[k].interior < INT64_MAX ? p->v[k].interior + 1 : INT64_MAX, from, to;
        pad_range(x[0]->dims[k], r->dims[k], p->v[k].lo, step, &from, &to);
        o.dims[k] = to - from;
        if (to == from)
            return r;
        o.at[0] += o.stride[0][k] * (p->v[k].lo + from * step);
        o.at[1] += o.stride[1][k] * from;
        o.stride[0][k] = to - from > 1 ? o.stride[0][k] * step : 0;
    }
    walk_copy(&o, r->data, x[0]->data, type_bytes(r->type));
    return r;
}

/* Operands one behind the other along k: each is a row of outer blocks. */
Literal *eval_concatenate(Eval *e, const Inst *i, Literal **x)
{
    int64_t k = inst_ints(i, ATTR_DIMENSIONS).v[0], at = 0;
    Literal *r = eval_new_for(e, i, i->shape);
    if (!r)
        return NULL;
    for (int32_t j = 0; j < i->n_operands; j++) {
        Odometer o = over(r->rank, r->dims);
        o.dims[k] = x[j]->dims[k];
        walk_strides(r->rank, x[j]->dims, o.stride[1]);
        o.at[0] = o.stride[0][k] * at;
        at += x[j]->dims[k];
        walk_copy(&o, r->data, x[j]->data, type_bytes(r->type));
    }
    return r;
}

/* Bits. Types below 8 bits keep a value a byte in our arrays; in memory they are packed, element 0 in the lowest bits. */

static int packed_bits(Type t)
{
    return type_bits(t) < 8 && 8 % type_bits(t) == 0 ? type_bits(t) : 8 * type_bytes(t);
}

static void pack(Type t, const void *values, int64_t n, uint8_t *memory)
{
    int bits = packed_bits(t);
    if (bits >= 8) {
        memcpy(memory, values, (size_t)(n * type_bytes(t)));
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        unsigned v = ((const uint8_t *)values)[j] & ((1u << bits) - 1);
        memory[j * bits / 8] = (uint8_t)(memory[j * bits / 8] | v << (j * bits % 8));
    }
}

static void unpack(Type t, const uint8_t *memory, int64_t n, void *values)
{
    int bits = packed_bits(t);
    if (bits >= 8) {
        memcpy(values, memory, (size_t)(n * type_bytes(t)));
        for (int64_t j = 0; j < n && (t == TYPE_PRED || type_bits(t) < 8); j++) /* a byte that has more than the value */
            ((uint8_t *)values)[j] = (uint8_t)(t == TYPE_PRED ? memory[j] != 0 : memory[j] & ((1u << type_bits(t)) - 1));
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        unsigned v = (unsigned)memory[j * bits / 8] >> (j * bits % 8) & ((1u << bits) - 1);
        bool negative = type_is_signed_int(t) && v >> (bits - 1);
        ((uint8_t *)values)[j] = (uint8_t)(negative ? v | ~0u << bits : v);
    }
}

/* to's values from the memory that from's values have. */
static Literal *reinterpret(Eval *e, const Inst *i, const Literal *from, Literal *to)
{
    int64_t bytes = from->count * type_bytes(from->type), room = to->count * type_bytes(to->type);
    if (room > bytes)
        bytes = room;
    Literal *memory = eval_new(e, i, TYPE_U8, 1, &bytes);
    if (!memory)
        return to;
    memset(memory->data, 0, (size_t)bytes);
    pack(from->type, from->data, from->count, memory->data);
    unpack(to->type, memory->data, to->count, to->data);
    eval_drop(e, memory);
    return to;
}

/* The new or vanishing minor dimension counts parts, the least significant first, which is the order of little-endian memory. */
Literal *eval_bitcast_convert(Eval *e, const Inst *i, Literal **x)
{
    Literal *r = eval_new_for(e, i, i->shape);
    return r ? reinterpret(e, i, x[0], r) : NULL;
}

/* Copies l between logical order and the order of its layout in memory. */
static Literal *laid_out(Eval *e, const Inst *i, const Shape *s, const Literal *l, bool to_memory)
{
    Literal *r = eval_new(e, i, l->type, l->rank, l->dims);
    if (!r)
        return NULL;
    Odometer o = over(l->rank, l->dims);
    int64_t memory[WALK_RANK];
    shape_strides(s, memory);
    walk_strides(l->rank, l->dims, o.stride[1]);
    memcpy(o.stride[to_memory ? 0 : 1], memory, (size_t)l->rank * sizeof memory[0]);
    walk_copy(&o, r->data, l->data, type_bytes(l->type));
    return r;
}

/* The operand's memory read with the result's type, dimensions and layout. */
Literal *eval_bitcast(Eval *e, const Inst *i, Literal **x)
{
    const Shape *from = inst_operand(i, 0)->shape;
    bool plain = layout_is_row_major(from) && layout_is_row_major(i->shape);
    Literal *r = eval_new_for(e, i, i->shape);
    if (!r || r->count == 0)
        return r;
    if (r->count * packed_bits(r->type) != x[0]->count * packed_bits(x[0]->type)) {
        eval_drop(e, r);
        return eval_fail(e, i, "bitcast %%%s: the operand and the result differ in bytes", i->name);
    }
    if (plain)
        return reinterpret(e, i, x[0], r);
    Literal *in = laid_out(e, i, from, x[0], true);
    if (in)
        reinterpret(e, i, in, r);
    eval_drop(e, in);
    Literal *out = e->failed ? NULL : laid_out(e, i, i->shape, r, false);
    eval_drop(e, r);
    return out;
}
