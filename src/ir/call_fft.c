/* Transforms as custom calls of jaxlib's CPU kernels before XLA had one of its own. Operand 0 is a constant of bytes that describes the transform, a
 * FlatBuffer (little endian; a table lies behind the offset in its first word; a table begins with the distance back to its vtable, whose entry
 * 4 + 2 * k says where in the table field k is, 0 for a field that has its default value, 0; a vector is an offset to its length and elements):
 *
 *     field          0        1         2      3           4            5     6        7
 *     pocketfft      dtype    fft_type  shape  strides_in  strides_out  axes  forward  scale      strides in bytes
 *     ducc_fft       dtype    fft_type  shape  strides_in  strides_out  axes  forward  scale      strides in elements
 *     dynamic_...    ndims    dtype     fft_type           axes         forward                   (that is fields 0 to 4)
 *
 * The call's values are those of an fft: the strides are those of dense arrays, the axes the last dimensions, the scale 1 forward and 1 / n back.
 * Another scale is a factor behind it. Source: jaxlib/cpu/ducc_fft.fbs, ducc_fft.py, pocketfft.fbs; the internals of FlatBuffers. */
#include <string.h>

#include "ir/call_build.h"

enum { MAX_AXES = 3, MAX_DIMS = 64 }; /* of the opcode fft; of a descriptor that is read */

typedef struct Bytes {
    const uint8_t *v;
    int64_t        n, table, vtable;
    bool           bad;
} Bytes;

typedef struct Descriptor {
    int64_t dtype, kind, n_dims, n_axes;
    int64_t shape[MAX_DIMS], strides_in[MAX_DIMS], strides_out[MAX_DIMS], axes[MAX_DIMS];
    bool    forward, sized; /* shape, strides and scale are given */
    double  scale;
} Descriptor;

enum { KIND_C2C, KIND_C2R, KIND_R2C };

/* ---- reading ---- */

static uint64_t number_at(Bytes *b, int64_t at, int32_t width)
{
    uint64_t v = 0;
    if (at < 0 || at > b->n - width) {
        b->bad = true;
        return 0;
    }
    for (int32_t k = 0; k < width; k++)
        v |= (uint64_t)b->v[at + k] << (8 * k);
    return v;
}

static void open_table(Bytes *b)
{
    b->table = (int64_t)number_at(b, 0, 4);
    b->vtable = b->table - (int32_t)number_at(b, b->table, 4);
}

/* Where field k is; -1: it has the value 0. */
static int64_t field_at(Bytes *b, int32_t k)
{
    int64_t entry = 4 + 2 * k, size = (int64_t)number_at(b, b->vtable, 2);
    int64_t at = entry + 2 <= size ? (int64_t)number_at(b, b->vtable + entry, 2) : 0;
    return at == 0 ? -1 : b->table + at;
}

static uint64_t field(Bytes *b, int32_t k, int32_t width)
{
    int64_t at = field_at(b, k);
    return at < 0 ? 0 : number_at(b, at, width);
}

/* The elements of field k, which are numbers of so many bytes; their count. */
static int64_t list(Bytes *b, int32_t k, int32_t width, int64_t *out)
{
    int64_t at = field_at(b, k);
    if (at < 0)
        return 0;
    at += (int64_t)number_at(b, at, 4);
    int64_t n = (int64_t)number_at(b, at, 4);
    b->bad |= n > MAX_DIMS;
    for (int64_t i = 0; i < n && !b->bad; i++) {
        out[i] = (int64_t)number_at(b, at + 4 + i * width, width);
        b->bad |= out[i] < 0;
    }
    return n;
}

static bool read_sized(Bytes *b, Descriptor *d)
{
    d->sized = true;
    d->dtype = (int64_t)field(b, 0, 1);
    d->kind = (int64_t)field(b, 1, 1);
    d->n_dims = list(b, 2, 8, d->shape);
    bool same = list(b, 3, 8, d->strides_in) == d->n_dims && list(b, 4, 8, d->strides_out) == d->n_dims;
    d->n_axes = list(b, 5, 4, d->axes);
    d->forward = field(b, 6, 1) != 0;
    uint64_t bits = field(b, 7, 8);
    memcpy(&d->scale, &bits, sizeof bits);
    return same && !b->bad;
}

static bool read_dynamic(Bytes *b, Descriptor *d)
{
    d->n_dims = (int64_t)field(b, 0, 4);
    d->dtype = (int64_t)field(b, 1, 1);
    d->kind = (int64_t)field(b, 2, 1);
    d->n_axes = list(b, 3, 4, d->axes);
    d->forward = field(b, 4, 1) != 0;
    return !b->bad;
}

static bool read_descriptor(Build *b, Descriptor *d, bool (*read)(Bytes *, Descriptor *))
{
    const Inst *x = inst_operand(b->call, 0);
    if (x->op != OP_CONSTANT || !shape_is_array(x->shape) || x->shape->type != TYPE_U8 || x->shape->rank != 1 || x->literal->elided) {
        build_refuse(b, "its operand 0 is not a constant of bytes");
        return false;
    }
    Bytes bytes = { .v = x->literal->data, .n = x->literal->count };
    *d = (Descriptor){ 0 };
    open_table(&bytes);
    if (!read(&bytes, d)) {
        build_refuse(b, "its operand 0 does not describe a transform");
        return false;
    }
    return true;
}

/* ---- what it says ---- */

/* Row-major, counted in units; a dimension of size 1 may have any. */
static bool dense_strides(const int64_t *strides, const Shape *s, int64_t unit)
{
    for (int32_t k = s->rank - 1; k >= 0; k--) {
        if (strides[k] != unit && s->dims[k] != 1)
            return false;
        if (__builtin_mul_overflow(unit, s->dims[k], &unit))
            return false;
    }
    return true;
}

static bool same_sizes(const Descriptor *d, const Shape *s)
{
    return memcmp(d->shape, s->dims, (size_t)s->rank * sizeof *d->shape) == 0;
}

static bool last_axes(const Descriptor *d)
{
    for (int64_t k = 0; k < d->n_axes; k++)
        if (d->axes[k] != d->n_dims - d->n_axes + k)
            return false;
    return d->n_axes > 0 && d->n_axes <= d->n_dims && d->n_axes <= MAX_AXES;
}

static bool sizes_fit(const Descriptor *d, const Shape *in, const Shape *out, bool bytes)
{
    const Shape *real = d->kind == KIND_C2R ? out : in;
    return same_sizes(d, real) && dense_strides(d->strides_in, in, bytes ? type_bytes(in->type) : 1) &&
           dense_strides(d->strides_out, out, bytes ? type_bytes(out->type) : 1);
}

static const char *transform_refused(const Descriptor *d, const Shape *in, const Shape *out, bool bytes)
{
    static const Type types[2][3][2] = { { { TYPE_C64, TYPE_C64 }, { TYPE_C64, TYPE_F32 }, { TYPE_F32, TYPE_C64 } },
                                         { { TYPE_C128, TYPE_C128 }, { TYPE_C128, TYPE_F64 }, { TYPE_F64, TYPE_C128 } } };
    if (d->dtype > 1 || d->kind > KIND_R2C || in->type != types[d->dtype][d->kind][0] || out->type != types[d->dtype][d->kind][1])
        return "its types are not those that operand 0 describes";
    if ((d->kind == KIND_C2R && d->forward) || (d->kind == KIND_R2C && !d->forward))
        return "a transform between real and complex numbers in that direction is not supported";
    if (d->n_dims != in->rank || d->n_dims != out->rank)
        return "its rank is not the one that operand 0 describes";
    if (!last_axes(d))
        return "a transform of other axes than the last one to three is not supported";
    if (d->sized && !sizes_fit(d, in, out, bytes))
        return "its sizes or strides are not those of the dense arrays that it takes and gives";
    return NULL;
}

/* ---- as instructions ---- */

static Inst *transform(Build *b, const Descriptor *d, bool bytes)
{
    const Shape *out = b->call->shape;
    Inst        *x = b->in[1];
    if (!shape_is_array(out))
        return build_refuse(b, "its result is no array");
    const char *why = transform_refused(d, x->shape, out, bytes);
    if (why)
        return build_refuse(b, "%s", why);
    const Shape *real = d->kind == KIND_C2R ? out : x->shape, *half = d->kind == KIND_C2R ? x->shape : out;
    for (int32_t k = 0; k < out->rank; k++) {
        bool halved = d->kind != KIND_C2C && k == out->rank - 1;
        if (half->dims[k] != (halved ? real->dims[k] / 2 + 1 : real->dims[k]) || real->dims[k] == 0)
            return build_refuse(b, "its result is %s, which is no transform of %s", shape_brief(b->arena, out), shape_brief(b->arena, x->shape));
    }
    Inst *y = inst_new(b->body, NULL, OP_FFT, build_dense(b, out->type, out), 1, &x, NULL);
    inst_set_word(y, ATTR_FFT_TYPE, d->kind == KIND_C2R ? FFT_IRFFT : d->kind == KIND_R2C ? FFT_RFFT : d->forward ? FFT_FFT : FFT_IFFT);
    inst_set_ints(y, ATTR_FFT_LENGTH, (Ints){ real->dims + real->rank - d->n_axes, (int32_t)d->n_axes });
    return y;
}

/* What the opcode divides by. */
static double divisor(const Descriptor *d, const Inst *y)
{
    double n = 1;
    Ints   lengths = inst_ints(y, ATTR_FFT_LENGTH);
    for (int32_t k = 0; k < lengths.n && !d->forward; k++)
        n *= (double)lengths.v[k];
    return n;
}

static Inst *everywhere(Build *b, Inst *scalar, Type t, const Shape *dims)
{
    Inst *x = build_unary(b, OP_CONVERT, t, scalar);
    return dims->rank == 0 ? x : inst_new(b->body, NULL, OP_BROADCAST, build_dense(b, t, dims), 1, &x, NULL);
}

/* y times a scalar of f64. */
static Inst *scaled(Build *b, Inst *y, Inst *factor)
{
    Type  t = type_component(y->shape->type);
    Inst *f = everywhere(b, factor, t, y->shape);
    if (!type_is_complex(y->shape->type))
        return build_binary(b, OP_MULTIPLY, y, f);
    Inst *parts[] = { build_binary(b, OP_MULTIPLY, build_unary(b, OP_REAL, t, y), f), build_binary(b, OP_MULTIPLY, build_unary(b, OP_IMAG, t, y), f) };
    return inst_new(b->body, NULL, OP_COMPLEX, y->shape, 2, parts, NULL);
}

static Inst *scaled_by(Build *b, const Descriptor *d, Inst *y, double scale)
{
    double n = divisor(d, y);
    if (scale == 1 / n)
        return y;
    return scaled(b, y, inst_constant(b->body, NULL, literal_from_f64(TYPE_F64, scale * n), NULL));
}

/* The row's argument says what strides are counted in. */
Inst *mean_fft(Build *b)
{
    Descriptor d;
    if (!build_takes(b, 2) || !build_arrays(b, false) || !read_descriptor(b, &d, read_sized))
        return NULL;
    Inst *y = transform(b, &d, strcmp(b->argument, "bytes") == 0);
    return y ? scaled_by(b, &d, y, d.scale) : NULL;
}

/* An operand of sizes that are known must be these; what is computed is taken to be what the shapes say. */
static bool says(Build *b, int32_t operand, const int64_t *want, int32_t n)
{
    const Inst *x = inst_operand(b->call, operand);
    bool        ok = type_is_int(x->shape->type) && x->shape->rank == 1 && x->shape->dims[0] == n;
    int64_t     v;
    for (int32_t k = 0; ok && k < n; k++)
        ok = !build_known(x, k, &v) || v == want[k];
    if (!ok)
        build_refuse(b, "its operand %d is not what its shapes say", operand);
    return ok;
}

static bool says_strides(Build *b, int32_t operand, const Shape *s)
{
    int64_t *strides = ARENA_ARRAY(b->arena, int64_t, s->rank), step = 1;
    for (int32_t k = s->rank - 1; k >= 0; k--) {
        strides[k] = step;
        step *= s->dims[k];
    }
    return says(b, operand, strides, s->rank);
}

/* (descriptor, operand, shape, strides in, strides out, scale), and the shape of the result where that was not known. */
Inst *mean_dynamic_fft(Build *b)
{
    Descriptor d;
    if ((b->call->n_operands != 7 && !build_takes(b, 6)) || !build_arrays(b, false) || !read_descriptor(b, &d, read_dynamic))
        return NULL;
    Inst *y = transform(b, &d, false), *scale;
    if (!y)
        return NULL;
    const Shape *in = b->in[1]->shape, *out = y->shape, *given = b->in[5]->shape;
    if (!says(b, 2, d.kind == KIND_C2R ? out->dims : in->dims, in->rank) || !says_strides(b, 3, in) || !says_strides(b, 4, out) ||
        (b->call->n_operands == 7 && !says(b, 6, out->dims, out->rank)))
        return NULL;
    if (given->type != TYPE_F64 || shape_count(given) != 1)
        return build_refuse(b, "its scale is %s, not one f64", shape_brief(b->arena, given));
    const Inst *constant = inst_operand(b->call, 5);
    if (constant->op == OP_CONSTANT && !constant->literal->elided)
        return scaled_by(b, &d, y, literal_get_f64(constant->literal, 0));
    scale = b->in[5];
    if (given->rank > 0)
        scale = inst_new(b->body, NULL, OP_RESHAPE, shape_scalar(b->module->arena, TYPE_F64), 1, &scale, NULL);
    return scaled(b, y, build_binary(b, OP_MULTIPLY, scale, build_real(b, scale->shape, divisor(&d, y))));
}
