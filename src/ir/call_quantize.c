/* uniform_quantize and uniform_dequantize: an integer q stands for the number (q - zero_point) * scale. HLO has no quantized types: the call's
 * backend_config says what StableHLO's type said,
 *
 *     {expressed_type = f32, quantization_dimension = 1 : i64, scale = [0.5, 2.0], storage_max = 127, storage_min = -128, storage_type = i8, zero_point = [3, 0]}
 *
 *     quantize(x)   = convert(round_nearest_even(clamp(storage_min, x / scale + zero_point, storage_max))), in x's type
 *     dequantize(q) = convert(q - zero_point) * scale, in the result's type
 *
 * With a quantization_dimension there is a scale and a zero point for each index of that dimension. Source: StableHLO's specification, "quantize" and
 * "dequantize"; XLA's xla/hlo/translate/hlo_to_mhlo/custom_call_importer.cc. */
#include <string.h>

#include "ir/call_build.h"

typedef struct Quantized {
    const CallOption *scale, *zero; /* n of each */
    int32_t           n, dim;       /* dim -1: one for all */
    const CallOption *min, *max;    /* NULL: what the type can hold */
} Quantized;

static bool bad_option(Build *b, const char *name)
{
    build_refuse(b, "its %s is missing or not understood", name);
    return false;
}

static const CallOption *entries(Build *b, const char *name, int32_t *n)
{
    const CallOption *o = call_option(&b->options, name);
    *n = 0;
    return o ? call_option_entries(b->arena, o, n) : NULL;
}

static bool limit(Build *b, const char *name, const CallOption **out)
{
    *out = call_option(&b->options, name);
    return !*out || (*out)->is_number || bad_option(b, name);
}

/* The options of this call, or of the one that made its operand. */
static bool read_options(Build *b)
{
    const Inst *from = inst_operand(b->call, 0);
    if (!call_options_read(b->arena, b->call, &b->options))
        return bad_option(b, "backend_config");
    if (call_option(&b->options, "scale") || from->op != OP_CUSTOM_CALL)
        return true;
    return call_options_read(b->arena, from, &b->options) || bad_option(b, "operand's backend_config");
}

static bool read_quantized(Build *b, const Shape *s, Quantized *q)
{
    int32_t           n_zero;
    const CallOption *dim;
    if (!read_options(b) || !limit(b, "storage_min", &q->min) || !limit(b, "storage_max", &q->max))
        return false;
    dim = call_option(&b->options, "quantization_dimension");
    if (dim && (!dim->is_number || dim->number < -1 || dim->number >= s->rank))
        return bad_option(b, "quantization_dimension");
    q->dim = dim ? (int32_t)dim->number : -1;
    q->scale = entries(b, "scale", &q->n);
    q->zero = entries(b, "zero_point", &n_zero);
    if (!q->scale || q->n != (q->dim < 0 ? 1 : s->dims[q->dim]))
        return bad_option(b, "scale");
    if (!q->zero || n_zero != q->n)
        return bad_option(b, "zero_point");
    for (int32_t k = 0; k < q->n; k++) {
        if (!q->scale[k].is_real && !q->scale[k].is_number)
            return bad_option(b, "scale");
        if (!q->zero[k].is_number)
            return bad_option(b, "zero_point");
    }
    return true;
}

/* The numbers, each where its index of the dimension is. */
static Inst *spread(Build *b, const Quantized *q, const CallOption *v, const Shape *like)
{
    Literal *l = literal_new(like->type, q->dim < 0 ? 0 : 1, (int64_t[]){ q->n });
    for (int32_t k = 0; k < q->n; k++) {
        if (v[k].is_number && !type_is_float(like->type))
            literal_set_s64(l, k, v[k].number);
        else
            literal_set_f64(l, k, v[k].is_number ? (double)v[k].number : v[k].real, 0);
    }
    Inst *x = inst_constant(b->body, NULL, l, NULL);
    if (like->rank == 0)
        return x;
    Inst *r = inst_new(b->body, NULL, OP_BROADCAST, like, 1, &x, NULL);
    inst_set_ints(r, ATTR_DIMENSIONS, (Ints){ (int64_t[]){ q->dim }, q->dim >= 0 });
    return r;
}

static Inst *bound(Build *b, const Shape *like, const CallOption *given, int64_t limit)
{
    return build_real(b, like, (double)(given ? given->number : limit));
}

/* Operand and result have the same sizes; one has integers of at most 32 bits, the other floats. */
static bool is_pair(Build *b, const Shape *integers, const Shape *floats)
{
    bool ok = shape_is_array(integers) && shape_is_array(floats) && type_is_int(integers->type) && type_bits(integers->type) <= 32 &&
              type_is_float(floats->type) && shape_same_dims(integers, floats);
    if (!ok)
        build_refuse(b, "it does not make %s of %s", shape_brief(b->arena, b->call->shape), shape_brief(b->arena, inst_operand(b->call, 0)->shape));
    return ok;
}

Inst *mean_quantize(Build *b)
{
    Quantized    q;
    const Shape *out = b->call->shape;
    if (!build_takes(b, 1) || !is_pair(b, out, inst_operand(b->call, 0)->shape) || !read_quantized(b, out, &q))
        return NULL;
    int32_t      bits = type_bits(out->type);
    bool         is_signed = type_is_signed_int(out->type);
    const Shape *s = build_dense(b, b->in[0]->shape->type, out);
    Inst        *x = build_binary(b, OP_DIVIDE, b->in[0], spread(b, &q, q.scale, s));
    x = build_binary(b, OP_ADD, x, spread(b, &q, q.zero, s));
    Inst *low = bound(b, s, q.min, is_signed ? -(INT64_C(1) << (bits - 1)) : 0);
    Inst *high = bound(b, s, q.max, (INT64_C(1) << (bits - is_signed)) - 1);
    x = inst_new(b->body, NULL, OP_CLAMP, s, 3, (Inst *const[]){ low, x, high }, NULL);
    return build_unary(b, OP_CONVERT, out->type, build_unary(b, OP_ROUND_NEAREST_EVEN, s->type, x));
}

Inst *mean_dequantize(Build *b)
{
    Quantized    q;
    const Shape *out = b->call->shape;
    if (!build_takes(b, 1) || !is_pair(b, inst_operand(b->call, 0)->shape, out) || !read_quantized(b, out, &q))
        return NULL;
    Inst *x = build_unary(b, OP_CONVERT, TYPE_S64, b->in[0]);
    x = build_binary(b, OP_SUBTRACT, x, spread(b, &q, q.zero, x->shape));
    x = build_unary(b, OP_CONVERT, out->type, x);
    return build_binary(b, OP_MULTIPLY, x, spread(b, &q, q.scale, x->shape));
}
