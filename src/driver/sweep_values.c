/* Values that find errors: bounds of types, neighbours of powers of two, zeros, subnormals, infinities, NaN. */
#include "driver/sweep.h"

#include <math.h>
#include <string.h>

#include "data/fill.h"
#include "ir/numeric.h"
#include "ir/shape.h"

enum { MOST_EDGES = 256 };

typedef struct Edges {
    int n;
    uint64_t v[MOST_EDGES];
} Edges;

static void add(Edges *e, uint64_t bits)
{
    if (e->n < MOST_EDGES)
        e->v[e->n++] = bits;
}

static void int_edges(Edges *e, Type t)
{
    int bits = type_bits(t);
    for (int64_t k = -3; k <= 3; k++) {
        add(e, (uint64_t)k);
        add(e, (uint64_t)((INT64_C(1) << (bits / 2)) + k));
        add(e, (UINT64_C(1) << (bits - 1)) + (uint64_t)k);
        add(e, (uint64_t)(bits + k));
    }
    for (int b = 5; b < bits; b += 6)
        add(e, UINT64_C(1) << b);
    add(e, 10);
    add(e, (uint64_t)-10);
    add(e, 1000003);
    add(e, UINT64_C(0x5555555555555555));
}

/* With both signs: patterns at the ends and in the middle of the range, and numbers that functions and conversions change their
 * ways at. */
static void float_edges(Edges *e, Type t)
{
    static const double numbers[] = {
        0.1,
        1.0 / 3,
        0.5,
        0.75,
        1.5,
        2,
        2.5,
        3,
        3.5,
        5,
        7,
        10,
        20.5,
        0.7071067811865476,
        1.5707963267948966,
        3.141592653589793,
        88.5,
        89.5,
        104,
        127.5,
        128,
        129,
        255.5,
        256,
        709.5,
        746,
        2047.5,
        32767.5,
        32768,
        65520,
        65536,
        8388607.5,
        16777217,
        2147483647,
        2147483648,
        4294967296,
        0x1p52,
        0x1p53,
        9223372036854775807.0,
        18446744073709551615.0,
        1e22,
        1e-3,
        1e-5,
        1e-8,
        1e-20,
    };
    int man = type_info[t].man, exp = type_info[t].exp, width = type_bits(t);
    uint64_t normal = UINT64_C(1) << man, infinity = ((UINT64_C(1) << exp) - 1) << man, one = (uint64_t)type_info[t].bias << man;
    uint64_t patterns[] = {0,
                           1,
                           2,
                           normal - 1,
                           normal,
                           normal + 1,
                           one - 1,
                           one,
                           one + 1,
                           one + normal - 1,
                           one + normal + 1,
                           infinity - 1,
                           infinity,
                           infinity | normal >> 1};
    for (uint64_t sign = 0; sign < 2; sign++) {
        for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++)
            add(e, patterns[k] | sign << (width - 1));
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            add(e, float_encode(t, sign ? -numbers[k] : numbers[k]));
    }
}

/* Parts of complex numbers: fewer, since all pairs of them are taken. */
static void part_edges(Edges *e, Type t)
{
    static const double numbers[] = {0, 1, 0.5, 2, 3.5, 40, 1e-3, 1e-30, 1e30, INFINITY};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        add(e, float_encode(t, numbers[k]));
        add(e, float_encode(t, -numbers[k]));
    }
    add(e, float_encode(t, NAN));
}

static Edges edges_of(Type t)
{
    Edges e = {0};
    if (t == TYPE_PRED || type_bits(t) <= 8) {
        for (uint64_t k = 0; k < (t == TYPE_PRED ? 2u : 1u << type_bits(t)); k++)
            add(&e, k);
    } else if (type_is_complex(t)) {
        part_edges(&e, type_component(t));
    } else if (type_is_float(t)) {
        float_edges(&e, t);
    } else {
        int_edges(&e, t);
    }
    return e;
}

int64_t values_single(Type t)
{
    return type_is_complex(t) ? 1024 : type_bits(t) <= 8 ? edges_of(t).n : type_bits(t) == 16 ? 65536 : 2048;
}

int64_t values_pairs(Type t)
{
    int64_t n = edges_of(t).n;
    return type_is_complex(t) ? 8192 : type_bits(t) <= 8 ? n * n : n * n + 1000;
}

/* The pattern of a real number as our arrays have it. */
static void put(Literal *l, int64_t at, Type t, uint64_t bits)
{
    if (type_is_int(t))
        bits = (uint64_t)int_wrap(t, (int64_t)bits);
    memcpy((char *)l->data + at * type_bytes(t), &bits, (size_t)type_bytes(t));
}

/* Any pattern, or a number of a size that arithmetic likes. */
static uint64_t random_pattern(Type t, uint64_t r)
{
    if (t == TYPE_PRED)
        return r >> 60 & 1;
    if (!type_is_float(t) || r % 3 == 0)
        return type_bits(t) == 64 ? r : r >> 3 & ((UINT64_C(1) << type_bits(t)) - 1);
    double m = 1 + ldexp((double)(r >> 12), -52);
    int scale = r % 3 == 1 ? 2 : 12;
    return float_encode(t, ldexp(r & 64 ? -m : m, (int)(r >> 3) % (2 * scale) - scale));
}

static uint64_t whole(Type t, int64_t v)
{
    if (t == TYPE_PRED)
        return v & 1;
    return type_is_float(t) ? float_encode(t, (double)v) : (uint64_t)v;
}

static uint64_t special(Type t, uint64_t r)
{
    static const double numbers[] = {NAN, INFINITY, -INFINITY, -0.0, 0};
    if (!type_is_float(t) || r % 7)
        return whole(t, (int64_t)((r >> 8) % 7) - 3);
    return float_encode(t, numbers[(r >> 8) % (sizeof numbers / sizeof *numbers)]);
}

/* Element i of n, of the real type t, or a part of a complex number (part 0 or 1). */
static uint64_t pattern(const Edges *e, Type t, Values v, uint64_t seed, int64_t i, int64_t n, int part, bool complex)
{
    uint64_t r = fill_hash(seed, (uint64_t)(complex ? 2 * i + part : i)), m = (uint64_t)e->n, k = (uint64_t)i,
             all = complex ? m * m : m;
    switch (v) {
    case VALUES_EDGES:
        if (!complex && type_bits(t) == 16 && n >= 65536)
            return k & 0xffff;
        return k < all ? e->v[part ? k / m : k % m] : random_pattern(t, r);
    case VALUES_FAST: return complex || k < all * all ? e->v[part ? k / m % m : k % m] : random_pattern(t, r);
    case VALUES_SLOW: return complex ? e->v[(r >> 8) % m] : k < all * all ? e->v[k / all] : random_pattern(t, r);
    case VALUES_SHUFFLE: return e->v[(r >> 8) % m];
    case VALUES_SMALL: return whole(t, (int64_t)((r >> 8) % 7) - 3);
    case VALUES_INDEX: return whole(t, (int64_t)((r >> 8) % 17) - 4);
    case VALUES_REAL:
        return type_is_float(t) ? float_encode(t, ldexp((double)(r >> 11), -52) - 1) : whole(t, (int64_t)((r >> 8) % 3) - 1);
    case VALUES_ABOVE: return type_is_float(t) ? float_encode(t, ldexp((double)(r >> 11), -53) + 0.5) : 1;
    case VALUES_SPECIAL: return special(t, r);
    case VALUES_DISTINCT:
        return whole(t, (int64_t)((k * 7919 + seed % 1000) % (uint64_t)(n > 0 ? n : 1)) - (type_is_unsigned_int(t) ? 0 : n / 2));
    }
    die("no such values");
}

void values_fill(Literal *l, Values v, uint64_t seed)
{
    bool complex = type_is_complex(l->type);
    Type t = type_component(l->type);
    Edges e = edges_of(l->type);
    for (int64_t i = 0; i < l->count; i++)
        for (int part = 0; part < 1 + complex; part++)
            put(l, complex ? 2 * i + part : i, t, pattern(&e, t, v, seed, i, l->count, part, complex));
}

void values_print(Buf *b, const Literal *l, int64_t i)
{
    if (type_is_complex(l->type))
        buf_printf(b, "(%.17g, %.17g)", literal_get_f64(l, i), literal_get_imag(l, i));
    else if (type_is_float(l->type))
        buf_printf(b, "%.17g", literal_get_f64(l, i));
    else if (l->type == TYPE_U64)
        buf_printf(b, "%llu", (unsigned long long)literal_get_s64(l, i));
    else
        buf_printf(b, "%lld", (long long)literal_get_s64(l, i));
}
