/* Words to distributions, distributions to values. */
#include "config.h"

#include "data/dist.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/fill.h"
#include "ir/numeric.h"

/* ---- text ---- */

/* "(x,y)" with n numbers; nothing else when n is 0. */
static bool read_numbers(const char *s, int n, double *v)
{
    char *end;
    if (n == 0)
        return !*s;
    for (int k = 0; k < n; k++) {
        if (*s++ != (k == 0 ? '(' : ','))
            return false;
        v[k] = strtod(s, &end);
        if (end == s || !isfinite(v[k]))
            return false;
        s = end;
    }
    return s[0] == ')' && !s[1];
}

bool dist_parse(const char *text, Dist *out)
{
    static const struct { const char *name; DistKind kind; int numbers; } words[] = {
        {"uniform", DIST_UNIFORM, 2}, {"normal", DIST_NORMAL, 2}, {"large", DIST_LARGE, 0}, {"special", DIST_SPECIAL, 0}, {"const", DIST_CONST, 1},
    };
    size_t n = strcspn(text, "(");
    double v[2] = {0, 0};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strlen(words[k].name) == n && strncmp(words[k].name, text, n) == 0 && read_numbers(text + n, words[k].numbers, v)) {
            *out = (Dist){words[k].kind, v[0], v[1]};
            return words[k].kind == DIST_UNIFORM ? v[0] < v[1] : words[k].kind != DIST_NORMAL || v[1] >= 0;
        }
    return false;
}

/* ---- numbers ---- */

/* In [0, 1), a multiple of 2^-53. */
static double unit(uint64_t seed, uint64_t i)
{
    return (double)(fill_hash(seed, i) >> 11) * 0x1p-53;
}

/* Box and Muller, with two numbers for one. */
static double normal(uint64_t seed, uint64_t i)
{
    return sqrt(-2 * log(1 - unit(seed, 2 * i))) * cos(6.283185307179586 * unit(seed, 2 * i + 1));
}

static uint64_t below(uint64_t seed, uint64_t i, uint64_t n)
{
    return (uint64_t)((unsigned __int128)fill_hash(seed, i) * n >> 64);
}

/* ---- floats ---- */

/* A float of type t, or the part of a complex one. */
static double special_float(Type t, uint64_t seed, uint64_t i)
{
    int      man = type_info[t].man, exp = type_info[t].exp, width = type_bits(t);
    uint64_t smallest = UINT64_C(1) << man, infinity = ((UINT64_C(1) << exp) - 1) << man, one = (uint64_t)type_info[t].bias << man;
    uint64_t h = fill_hash(seed, 2 * i), sign = (h >> 63) << (width - 1);
    uint64_t patterns[] = {0, 1, smallest - 1, smallest, one - 1, one, one + 1, infinity - 1, infinity, infinity | smallest >> 1};
    if (width <= 8)
        return float_decode(t, h >> (64 - width));
    if (h & 1)
        return 2 * unit(seed, 2 * i + 1) - 1;
    return float_decode(t, patterns[below(seed, 2 * i + 1, sizeof patterns / sizeof *patterns)] | sign);
}

static double largest_float(Type t)
{
    bool     ieee = type_info[t].specials == SPECIALS_IEEE, sign = type_info[t].specials != SPECIALS_FNU;
    uint64_t bits = ieee ? ((UINT64_C(1) << type_info[t].exp) - 1) << type_info[t].man : UINT64_C(1) << (type_bits(t) - sign);
    double   v;
    do
        v = float_decode(t, --bits);
    while (!isfinite(v));
    return v;
}

/* 2 to a power between those of the smallest normal number and of the largest. */
static double large_float(Type t, uint64_t seed, uint64_t i)
{
    double low = 1 - type_info[t].bias, high = log2(largest_float(t));
    double v = exp2(low + unit(seed, 2 * i) * (high - low));
    return type_info[t].specials != SPECIALS_FNU && fill_hash(seed, 2 * i + 1) & 1 ? -v : v;
}

static double float_value(const Dist *x, Type t, uint64_t seed, uint64_t i)
{
    switch (x->kind) {
    case DIST_UNIFORM: return x->a + unit(seed, i) * (x->b - x->a);
    case DIST_NORMAL: return x->a + x->b * normal(seed, i);
    case DIST_LARGE: return large_float(t, seed, i);
    case DIST_SPECIAL: return special_float(t, seed, i);
    case DIST_CONST: return x->a;
    case DIST_NONE: break;
    }
    die("a distribution of no kind");
}

/* ---- integers ---- */

typedef __int128 Wide; /* holds every integer of s64 and of u64 */

static Wide lowest(Type t)
{
    return type_is_signed_int(t) ? -((Wide)1 << (type_bits(t) - 1)) : 0;
}

static Wide highest(Type t)
{
    return t == TYPE_PRED ? 1 : ((Wide)1 << (type_bits(t) - type_is_signed_int(t))) - 1;
}

static Wide clamped(Type t, double v)
{
    return v <= (double)lowest(t) ? lowest(t) : v >= (double)highest(t) ? highest(t) : (Wide)v;
}

/* The integers of A <= v < B that t has: *lo up to, not with, *hi. */
static bool integer_range(const Dist *x, Type t, Wide *lo, Wide *hi)
{
    double a = ceil(x->a), b = ceil(x->b);
    *lo = clamped(t, a);
    *hi = b > (double)highest(t) ? highest(t) + 1 : clamped(t, b);
    return *lo < *hi && a <= (double)highest(t);
}

static Wide special_integer(Type t, uint64_t seed, uint64_t i)
{
    Wide     lo = lowest(t), hi = highest(t), values[] = {lo, lo + 1, hi - 1, hi, 0, 1, lo < 0 ? -1 : 2};
    uint64_t h = fill_hash(seed, 2 * i);
    if (type_bits(t) <= 8)
        return lo + (Wide)below(seed, 2 * i, (uint64_t)(hi - lo + 1));
    return values[h & 1 ? 4 + below(seed, 2 * i + 1, 3) : below(seed, 2 * i + 1, 4)];
}

/* As many bits as chance says, and as chance sets them. */
static Wide large_integer(Type t, uint64_t seed, uint64_t i)
{
    int      bits = t == TYPE_PRED ? 1 : type_bits(t) - type_is_signed_int(t), n = (int)below(seed, 2 * i, (uint64_t)bits + 1);
    uint64_t h = fill_hash(seed, 2 * i + 1);
    Wide     v = n == 0 ? 0 : (Wide)(h >> (64 - n));
    return lowest(t) < 0 && fill_hash(seed, 2 * i) & 1 ? -v : v;
}

static Wide integer_value(const Dist *x, Type t, uint64_t seed, uint64_t i)
{
    Wide lo, hi;
    switch (x->kind) {
    case DIST_UNIFORM:
        integer_range(x, t, &lo, &hi);
        return lo + (Wide)((unsigned __int128)fill_hash(seed, i) * (unsigned __int128)(hi - lo) >> 64);
    case DIST_NORMAL: return clamped(t, nearbyint(x->a + x->b * normal(seed, i)));
    case DIST_LARGE: return large_integer(t, seed, i);
    case DIST_SPECIAL: return special_integer(t, seed, i);
    case DIST_CONST: return clamped(t, nearbyint(x->a));
    case DIST_NONE: break;
    }
    die("a distribution of no kind");
}

/* ---- arrays ---- */

const char *dist_refused(const Dist *x, Type t)
{
    Wide lo, hi;
    bool integer = !type_is_float(t) && !type_is_complex(t);
    return integer && x->kind == DIST_UNIFORM && !integer_range(x, t, &lo, &hi) ? "the type has no value in that range" : NULL;
}

void dist_fill(Literal *l, uint64_t seed, const Dist *x)
{
    Type part = type_component(l->type);
    bool complex = type_is_complex(l->type), real = complex || type_is_float(l->type);
    for (int64_t k = 0; k < l->count; k++) {
        uint64_t i = (uint64_t)k;
        if (complex)
            literal_set_f64(l, k, float_value(x, part, seed, 2 * i), float_value(x, part, seed, 2 * i + 1));
        else if (real)
            literal_set_f64(l, k, float_value(x, part, seed, i), 0);
        else
            literal_set_s64(l, k, (int64_t)(uint64_t)(unsigned __int128)integer_value(x, l->type, seed, i));
    }
}
