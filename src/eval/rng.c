/* rng: numbers of a distribution. Which ones is the backend's choice; here they are Philox under the run's seed, the counter being the run's
 * random state, which moves on by the 32-bit words that were asked for. So no two numbers of a run share a counter.
 * Source: reference operations 13.2.
 *
 *   uniform, integers  a + bits mod (b - a), all in the type's width; b = a: a + bits
 *   uniform, floats    a + (b - a) u, u in [0, 1) with as many bits as the type's mantissa; what rounding takes out of [a, b) becomes a
 *   normal             a + b z, two z from two uniforms: sqrt(-2 ln u) times sin and cos of 2 pi v */
#include <math.h>
#include <string.h>

#include "eval/arith.h"
#include "eval/engine.h"
#include "eval/random.h"
#include "ir/numeric.h"

EvalFn eval_rng;

typedef struct Stream {
    uint64_t          key;
    unsigned __int128 counter;
    uint32_t          words[4];
    int               next; /* of words, 4: none left */
} Stream;

static uint64_t draw(Stream *s, int bits)
{
    uint64_t v = 0;
    for (int got = 0; got < bits; got += 32) {
        if (s->next == 4) {
            random_philox(s->key, (uint64_t)s->counter, (uint64_t)(s->counter >> 64), s->words);
            s->counter++;
            s->next = 0;
        }
        v |= (uint64_t)s->words[s->next++] << got;
    }
    return v;
}

/* A multiple of 2^-bits in [0, 1). */
static double fraction(Stream *s, int width, int bits)
{
    return bits == 0 ? 0 : ldexp((double)(draw(s, width) >> (width - bits)), -bits);
}

static void put(Literal *r, int64_t j, uint64_t v)
{
    memcpy((char *)r->data + j * type_bytes(r->type), &v, (size_t)type_bytes(r->type));
}

static void uniform_integers(Stream *s, Literal *r, const Literal *a, const Literal *b)
{
    int width = r->type == TYPE_PRED ? 1 : type_bits(r->type);
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    uint64_t lo = (uint64_t)literal_get_s64(a, 0), size = ((uint64_t)literal_get_s64(b, 0) - lo) & mask;
    for (int64_t j = 0; j < r->count; j++) {
        uint64_t v = lo + (size == 0 ? draw(s, width) & mask : draw(s, width) % size);
        put(r, j, r->type == TYPE_PRED ? v & 1 : (uint64_t)int_wrap(r->type, (int64_t)v));
    }
}

static double rounded(Type t, double v)
{
    return float_decode(t, float_convert_from_f64(t, v));
}

static void put_float(Literal *r, int64_t j, double v)
{
    literal_set_f64(r, j, v, 0);
}

static void uniform_floats(Stream *s, Literal *r, double a, double b)
{
    int width = type_bits(r->type) == 64 ? 64 : 32, bits = type_info[r->type].man;
    for (int64_t j = 0; j < r->count; j++) {
        double u = fraction(s, width, bits), v = rounded(r->type, u == 0 ? a : a * (1 - u) + b * u); /* b - a may overflow */
        put_float(r, j, a < b && (v < a || v >= b) ? a : v);
    }
}

static void normal_floats(Stream *s, Literal *r, double a, double b)
{
    int width = type_bits(r->type) == 64 ? 64 : 32, bits = width == 64 ? 52 : 23;
    for (int64_t j = 0; j < r->count; j += 2) {
        double u = fraction(s, width, bits), v = fraction(s, width, bits);
        double radius = sqrt(-2 * log(u < 1e-7 ? 1e-7 : u)), angle = 2 * 3.14159265358979323846 * v;
        put_float(r, j, rounded(r->type, a + b * radius * sin(angle)));
        if (j + 1 < r->count)
            put_float(r, j + 1, rounded(r->type, a + b * radius * cos(angle)));
    }
}

Literal *eval_rng(Eval *e, const Inst *i, Literal **x)
{
    Literal *r = eval_new_for(e, i, i->shape);
    if (!r)
        return NULL;
    Stream s = {.key = e->options->seed, .counter = e->rng_state, .next = 4};
    e->rng_state += (unsigned __int128)r->count * (type_bits(r->type) == 64 ? 2 : 1) + 1; /* normal numbers come in pairs */
    if (!type_is_float(r->type))
        uniform_integers(&s, r, x[0], x[1]);
    else if (inst_word(i, ATTR_DISTRIBUTION) == RNG_UNIFORM)
        uniform_floats(&s, r, literal_get_f64(x[0], 0), literal_get_f64(x[1], 0));
    else
        normal_floats(&s, r, literal_get_f64(x[0], 0), literal_get_f64(x[1], 0));
    return r;
}
