/* Values between memory and the domain that they are computed in. */
#include "eval/arith.h"
#include "ir/numeric.h"

#include <string.h>

#include "eval/engine.h"

Domain value_domain(Type t)
{
    switch (type_info[t].cls) {
    case CLASS_BOOLEAN: return DOMAIN_PRED;
    case CLASS_SIGNED: return DOMAIN_S64;
    case CLASS_UNSIGNED: return DOMAIN_U64;
    case CLASS_FLOAT: return t == TYPE_F64 ? DOMAIN_F64 : DOMAIN_F32;
    case CLASS_COMPLEX: return t == TYPE_C128 ? DOMAIN_C128 : DOMAIN_C64;
    case CLASS_TOKEN: case CLASS_OPAQUE: case CLASS_TUPLE: break;
    }
    die("%s has no values", type_name(t));
}

Type domain_type(Domain d)
{
    static const Type types[DOMAIN_COUNT] = {
        [DOMAIN_PRED] = TYPE_PRED, [DOMAIN_S32] = TYPE_S32, [DOMAIN_U32] = TYPE_U32, [DOMAIN_S64] = TYPE_S64, [DOMAIN_U64] = TYPE_U64, [DOMAIN_F32] = TYPE_F32,
        [DOMAIN_F64] = TYPE_F64, [DOMAIN_C64] = TYPE_C64, [DOMAIN_C128] = TYPE_C128,
    };
    return types[d];
}

#define LOAD(from, to, expr)                                                                                                    \
    do {                                                                                                                        \
        const from *src = p;                                                                                                    \
        to *dst = buffer;                                                                                                       \
        for (int64_t j = 0; j < n; j++) {                                                                                       \
            from v = src[j];                                                                                                    \
            dst[j] = (to)(expr);                                                                                                \
        }                                                                                                                       \
    } while (0)

/* Integers of any width, sign- or zero-extended: the same 64 bits in both domains. */
static void load_int(Type t, const void *p, int64_t n, void *buffer)
{
    bool is_signed = type_is_signed_int(t);
    switch (type_bytes(t)) {
    case 1:
        if (is_signed)
            LOAD(int8_t, int64_t, v);
        else
            LOAD(uint8_t, uint64_t, v);
        return;
    case 2:
        if (is_signed)
            LOAD(int16_t, int64_t, v);
        else
            LOAD(uint16_t, uint64_t, v);
        return;
    case 4:
        if (is_signed)
            LOAD(int32_t, int64_t, v);
        else
            LOAD(uint32_t, uint64_t, v);
        return;
    default:
        memcpy(buffer, p, (size_t)n * 8);
    }
}

/* Floats of 8 bits and fewer. A full block is worth a table of all patterns. */
static void load_tiny_float(Type t, const void *p, int64_t n, void *buffer)
{
    LOAD(uint8_t, float, float_decode(t, v));
}

static void load_f32(Type t, const void *p, int64_t n, void *buffer)
{
    switch (t) {
    case TYPE_F64: LOAD(double, float, v); return;
    case TYPE_F32: memcpy(buffer, p, (size_t)n * 4); return;
    case TYPE_BF16: LOAD(uint16_t, float, bf16_to_f32(v)); return;
    case TYPE_F16: LOAD(uint16_t, float, f16_to_f32(v)); return;
    default: load_tiny_float(t, p, n, buffer);
    }
}

static void load_f64(Type t, const void *p, int64_t n, void *buffer)
{
    switch (t) {
    case TYPE_F32: LOAD(float, double, v); return;
    case TYPE_BF16: LOAD(uint16_t, double, bf16_to_f32(v)); return;
    case TYPE_F16: LOAD(uint16_t, double, f16_to_f32(v)); return;
    default: LOAD(uint8_t, double, float_decode(t, v));
    }
}

/* A value of class integer or pred as the float domains have it. */
static void load_int_as_float(Domain d, Type t, const void *p, int64_t n, void *buffer)
{
    Block wide;
    for (int64_t j = 0; j < n; j += BLOCK) {
        int64_t m = n - j < BLOCK ? n - j : BLOCK;
        load_int(t, (const char *)p + j * type_bytes(t), m, &wide);
        for (int64_t b = 0; b < m; b++) {
            bool is_signed = type_is_signed_int(t);
            if (d == DOMAIN_F32)
                ((float *)buffer)[j + b] = is_signed ? (float)wide.i[b] : (float)(uint64_t)wide.i[b];
            else
                ((double *)buffer)[j + b] = is_signed ? (double)wide.i[b] : (double)(uint64_t)wide.i[b];
        }
    }
}

/* A real value with imaginary part 0, or c64 widened. buffer has room for twice the component's values. */
static void load_complex(Domain d, Type t, const void *p, int64_t n, void *buffer)
{
    if (t == TYPE_C64) {
        for (int64_t j = 0; j < 2 * n; j++)
            ((double *)buffer)[j] = ((const float *)p)[j];
        return;
    }
    Domain part = d == DOMAIN_C64 ? DOMAIN_F32 : DOMAIN_F64;
    Block re;
    for (int64_t j = 0; j < n; j += BLOCK) {
        int64_t m = n - j < BLOCK ? n - j : BLOCK;
        const void *v = value_load(part, t, (const char *)p + j * type_bytes(t), m, &re);
        for (int64_t b = 0; b < m; b++) {
            int64_t at = 2 * (j + b);
            if (part == DOMAIN_F32)
                ((float *)buffer)[at] = ((const float *)v)[b], ((float *)buffer)[at + 1] = 0;
            else
                ((double *)buffer)[at] = ((const double *)v)[b], ((double *)buffer)[at + 1] = 0;
        }
    }
}

const void *value_load(Domain d, Type t, const void *p, int64_t n, void *buffer)
{
    if (domain_type(d) == t || (d == DOMAIN_S64 && t == TYPE_U64) || (d == DOMAIN_U64 && t == TYPE_S64))
        return p;
    bool is_int = type_is_int(t) || t == TYPE_PRED;
    switch (d) {
    case DOMAIN_PRED: LOAD(uint8_t, uint8_t, v != 0); break;
    case DOMAIN_S64: case DOMAIN_U64: load_int(t, p, n, buffer); break;
    case DOMAIN_F32:
        if (is_int)
            load_int_as_float(d, t, p, n, buffer);
        else
            load_f32(t, p, n, buffer);
        break;
    case DOMAIN_F64:
        if (is_int)
            load_int_as_float(d, t, p, n, buffer);
        else
            load_f64(t, p, n, buffer);
        break;
    case DOMAIN_C64: case DOMAIN_C128: load_complex(d, t, p, n, buffer); break;
    case DOMAIN_S32: case DOMAIN_U32: case DOMAIN_COUNT: die("%s is not loaded into domain %d", type_name(t), (int)d);
    }
    return buffer;
}

#define STORE(from, to, expr)                                                                                                   \
    do {                                                                                                                        \
        const from *src = v;                                                                                                    \
        to *dst = p;                                                                                                            \
        for (int64_t j = 0; j < n; j++) {                                                                                       \
            from w = src[j];                                                                                                    \
            dst[j] = (to)(expr);                                                                                                \
        }                                                                                                                       \
    } while (0)

static void store_int(Type t, void *p, const void *v, int64_t n)
{
    switch (type_bytes(t)) {
    case 1:
        if (type_bits(t) < 8)
            STORE(int64_t, int8_t, int_wrap(t, w));
        else
            STORE(int64_t, int8_t, w);
        return;
    case 2: STORE(int64_t, int16_t, w); return;
    case 4: STORE(int64_t, int32_t, w); return;
    default: memcpy(p, v, (size_t)n * 8);
    }
}

static void store_f32(Type t, void *p, const void *v, int64_t n)
{
    switch (t) {
    case TYPE_BF16: STORE(float, uint16_t, f32_to_bf16(w)); return;
    case TYPE_F16: STORE(float, uint16_t, f32_to_f16(w)); return;
    case TYPE_F64: STORE(float, double, w); return;
    default: STORE(float, uint8_t, float_encode(t, (double)w));
    }
}

static void store_f64(Type t, void *p, const void *v, int64_t n)
{
    switch (t) {
    case TYPE_F32: STORE(double, float, w); return;
    case TYPE_BF16: STORE(double, uint16_t, f32_to_bf16((float)w)); return;
    case TYPE_F16: STORE(double, uint16_t, f32_to_f16((float)w)); return;
    default: STORE(double, uint8_t, float_encode(t, w));
    }
}

void value_store(Type t, void *p, Domain d, const void *v, int64_t n)
{
    if (p == v)
        return;
    if (domain_type(d) == t) {
        memcpy(p, v, (size_t)n * (size_t)type_bytes(t));
        return;
    }
    switch (d) {
    case DOMAIN_S64: case DOMAIN_U64: store_int(t, p, v, n); return;
    case DOMAIN_F32: store_f32(t, p, v, n); return;
    case DOMAIN_F64: store_f64(t, p, v, n); return;
    case DOMAIN_C128: /* c128 -> c64 */
        n *= 2;
        STORE(double, float, w);
        return;
    case DOMAIN_PRED: case DOMAIN_S32: case DOMAIN_U32: case DOMAIN_C64: case DOMAIN_COUNT: break;
    }
    die("%s does not hold a value of domain %d", type_name(t), (int)d);
}

int64_t value_total_key(Type t, const void *p, int64_t j)
{
    uint64_t v = 0;
    int bits = type_bits(t), bytes = type_bytes(t);
    memcpy(&v, (const char *)p + j * bytes, (size_t)bytes);
    if (t == TYPE_F8E8M0FNU)
        return (int64_t)v;
    int64_t s = (int64_t)(v << (64 - bits)) >> (64 - bits);
    return s >= 0 ? s : s ^ (int64_t)(UINT64_MAX >> (65 - bits));
}
