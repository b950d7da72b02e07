/* rng-bit-generator-expander - random bits as the arithmetic that gives them.
 *
 *   (%s, %b) = (u64[2], u32[8]) rng-bit-generator(%k), algorithm=rng_three_fry
 *     =>
 *   counters = %k[1] + iota, the key is %k[0]; 20 rounds of add, rotate, xor;  %s = (%k[0], %k[1] + 4)
 *
 * Threefry2x32 and Philox4x32 (also for rng_default), bit by bit what the instruction gives. Only where what it gives is defined: a state u64[2], of
 * Philox also u64[3], and bits of an unsigned type. Source: reference operations 13.1. */
#include "config.h"

#include "analysis/random.h"
#include "passes/expand.h"
#include "passes/util.h"

typedef struct Words {
    Inst        *at;
    Arena       *arena;
    const Shape *shape; /* of the counters */
} Words;

static const Shape *of_type(const Words *w, Type t)
{
    return shape_array(w->arena, t, w->shape->rank, w->shape->dims);
}

static Inst *spread(const Words *w, Inst *scalar)
{
    return w->shape->rank ? expand_broadcast(w->at, of_type(w, scalar->shape->type), scalar, (Ints){NULL, 0}) : scalar;
}

static Inst *number(const Words *w, Type t, uint64_t v)
{
    return expand_integer(w->at, of_type(w, t), (int64_t)v);
}

static Inst *op(const Words *w, Op o, Inst *x, Inst *y)
{
    return expand_binary(w->at, o, x, y);
}

static Inst *low(const Words *w, Inst *x)
{
    return expand_convert(w->at, OP_CONVERT, TYPE_U32, x);
}

static Inst *high(const Words *w, Inst *x)
{
    return low(w, op(w, OP_SHIFT_RIGHT_LOGICAL, x, expand_integer(w->at, x->shape, 32)));
}

/* The 64 bits whose halves these are. */
static Inst *both(const Words *w, Inst *lower, Inst *upper)
{
    Inst *l = expand_convert(w->at, OP_CONVERT, TYPE_U64, lower), *u = expand_convert(w->at, OP_CONVERT, TYPE_U64, upper);
    return op(w, OP_OR, l, op(w, OP_SHIFT_LEFT, u, number(w, TYPE_U64, 32)));
}

/* Element k of the state, a scalar. */
static Inst *state_word(Inst *at, Inst *state, int64_t k)
{
    return expand_reshape(at, shape_scalar(at->comp->module->arena, TYPE_U64), expand_slice(at, state, 0, k, k + 1));
}

/* 0, 1, 2, ... in the order of the elements. */
static Inst *counting(const Words *w)
{
    int64_t n = shape_count(w->shape);
    return expand_reshape(w->at, of_type(w, TYPE_U64), expand_iota(w->at, shape_array(w->arena, TYPE_U64, 1, &n), 0));
}

/* Arrays of one shape, as the elements of a new dimension that follows `dim`, which goes into it. */
static Inst *woven(Inst *at, int32_t n, Inst *const *x, int32_t dim)
{
    Arena       *a = at->comp->module->arena;
    const Shape *s = x[0]->shape;
    Ints         one = ints_make(a, s->rank + 1), joined = ints_make(a, s->rank);
    Inst       **parts = ARENA_ARRAY(a, Inst *, n);
    int64_t      along = dim + 1;
    for (int32_t k = 0; k <= s->rank; k++)
        *ints_at(one, k) = k <= dim ? s->dims[k] : k == dim + 1 ? 1 : s->dims[k - 1];
    for (int32_t k = 0; k < s->rank; k++)
        *ints_at(joined, k) = k == dim ? n * s->dims[k] : s->dims[k];
    for (int32_t k = 0; k < n; k++)
        parts[k] = expand_reshape(at, shape_array(a, s->type, one.n, one.v), x[k]);
    *ints_at(one, dim + 1) = n;
    Inst *c = expand_op(at, OP_CONCATENATE, shape_array(a, s->type, one.n, one.v), n, parts);
    inst_set_ints(c, ATTR_DIMENSIONS, (Ints){&along, 1});
    return expand_reshape(at, shape_array(a, s->type, joined.n, joined.v), c);
}

static Inst *tuple_of(Inst *i, Inst *const *state, int32_t n, Inst *bits)
{
    Arena        *a = i->comp->module->arena;
    Inst        **parts = ARENA_ARRAY(a, Inst *, n);
    const Shape  *s = i->shape->elems[1];
    const int64_t size = n, zero = 0;
    for (int32_t k = 0; k < n; k++)
        parts[k] = expand_reshape(i, shape_array(a, TYPE_U64, 1, (const int64_t[]){1}), state[k]);
    Inst *next = expand_op(i, OP_CONCATENATE, shape_array(a, TYPE_U64, 1, &size), n, parts);
    inst_set_ints(next, ATTR_DIMENSIONS, (Ints){&zero, 1});
    bits = expand_reshape(i, s, expand_convert(i, OP_CONVERT, s->type, bits));
    return expand_op(i, OP_TUPLE, i->shape, 2, (Inst *[]){expand_reshape(i, i->shape->elems[0], next), bits});
}

/* ---- Threefry ---- */

static Inst *rotated(const Words *w, Inst *x, uint64_t by)
{
    return op(w, OP_OR, op(w, OP_SHIFT_LEFT, x, number(w, TYPE_U32, by)), op(w, OP_SHIFT_RIGHT_LOGICAL, x, number(w, TYPE_U32, 32 - by)));
}

static void threefry(const Words *w, Inst *key, Inst *counter, Inst **x)
{
    static const uint64_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    Inst *k0 = low(w, key), *k1 = high(w, key), *parity = expand_integer(w->at, k0->shape, 0x1BD11BDA);
    Inst *ks[] = {spread(w, k0), spread(w, k1), spread(w, op(w, OP_XOR, parity, op(w, OP_XOR, k0, k1)))};
    x[0] = op(w, OP_ADD, low(w, counter), ks[0]);
    x[1] = op(w, OP_ADD, high(w, counter), ks[1]);
    for (uint64_t i = 0; i < 5; i++) {
        for (int r = 0; r < 4; r++) {
            x[0] = op(w, OP_ADD, x[0], x[1]);
            x[1] = op(w, OP_XOR, rotated(w, x[1], rotations[i & 1][r]), x[0]);
        }
        x[0] = op(w, OP_ADD, x[0], ks[(i + 1) % 3]);
        x[1] = op(w, OP_ADD, x[1], op(w, OP_ADD, ks[(i + 2) % 3], number(w, TYPE_U32, i + 1)));
    }
}

static Inst *expand_threefry(Inst *i, Inst *state)
{
    const Shape *s = i->shape->elems[1];
    Words        w = {i, i->comp->module->arena, s};
    bool         wide = type_bits(s->type) == 64;
    int32_t      split = threefry_split_dim(s);
    if (s->rank && !wide) {
        Ints half = ints_copy(w.arena, (Ints){s->dims, s->rank});
        *ints_at(half, split) = s->dims[split] / 2 + s->dims[split] % 2;
        w.shape = shape_array(w.arena, TYPE_U32, half.n, half.v);
    }
    Inst *key = state_word(i, state, 0), *first = state_word(i, state, 1), *x[2];
    Inst *scalar = expand_integer(i, first->shape, shape_count(w.shape));
    threefry(&w, key, op(&w, OP_ADD, spread(&w, first), counting(&w)), x);
    Inst *bits = wide ? both(&w, x[0], x[1]) : s->rank ? woven(i, 2, x, split) : x[0];
    if (!wide && s->rank && bits->shape->dims[split] > s->dims[split])
        bits = expand_slice(i, bits, split, 0, s->dims[split]);
    return tuple_of(i, (Inst *[]){key, expand_binary(i, OP_ADD, first, scalar)}, 2, bits);
}

/* ---- Philox ---- */

static void philox(const Words *w, Inst *key, Inst *lower, Inst *upper, Inst **x)
{
    Inst *k0 = low(w, key), *k1 = high(w, key), *step0 = expand_integer(w->at, k0->shape, 0x9E3779B9), *step1 = expand_integer(w->at, k0->shape, 0xBB67AE85);
    x[0] = low(w, lower), x[1] = high(w, lower), x[2] = low(w, upper), x[3] = high(w, upper);
    for (int round = 0; round < 10; round++) {
        Inst *p = op(w, OP_MULTIPLY, number(w, TYPE_U64, 0xD2511F53), expand_convert(w->at, OP_CONVERT, TYPE_U64, x[0]));
        Inst *q = op(w, OP_MULTIPLY, number(w, TYPE_U64, 0xCD9E8D57), expand_convert(w->at, OP_CONVERT, TYPE_U64, x[2]));
        x[0] = op(w, OP_XOR, op(w, OP_XOR, high(w, q), x[1]), spread(w, k0));
        x[1] = low(w, q);
        x[2] = op(w, OP_XOR, op(w, OP_XOR, high(w, p), x[3]), spread(w, k1));
        x[3] = low(w, p);
        k0 = op(w, OP_ADD, k0, step0);
        k1 = op(w, OP_ADD, k1, step1);
    }
}

/* upper, and one more where lower has wrapped around since it was first. */
static Inst *carried(Inst *at, Inst *upper, Inst *lower, Inst *first)
{
    Inst *wrapped = expand_compare(at, lower, first, CMP_LT);
    return expand_binary(at, OP_ADD, upper, expand_convert(at, OP_CONVERT, TYPE_U64, wrapped));
}

static Inst *expand_philox(Inst *i, Inst *state)
{
    const Shape *s = i->shape->elems[1];
    Arena       *a = i->comp->module->arena;
    int32_t      words = (int32_t)state->shape->dims[0], each = type_bits(s->type) == 64 ? 2 : 4;
    int64_t      count = shape_count(s), n = count / each + (count % each != 0);
    Words        w = {i, a, shape_array(a, TYPE_U64, 1, &n)};
    Inst        *key = state_word(i, state, 0), *first = state_word(i, state, 1), *top = words == 3 ? state_word(i, state, 2) : key, *x[4];
    Inst        *begin = spread(&w, first), *lower = op(&w, OP_ADD, begin, counting(&w));
    philox(&w, key, lower, carried(i, spread(&w, top), lower, begin), x);
    if (each == 2) {
        x[0] = both(&w, x[0], x[1]);
        x[1] = both(&w, x[2], x[3]);
    }
    Inst *bits = woven(i, each, x, 0);
    if (count < each * n)
        bits = expand_slice(i, bits, 0, 0, count);
    bits = expand_reshape(i, shape_array(a, bits->shape->type, s->rank, s->dims), bits);
    Inst *next = expand_binary(i, OP_ADD, first, expand_integer(i, first->shape, n));
    return tuple_of(i, (Inst *[]){key, next, words == 3 ? carried(i, top, next, first) : NULL}, words, bits);
}

/* ---- the pass ---- */

static Inst *bits(PassCtx *cx, Inst *i)
{
    (void)cx;
    if (i->op != OP_RNG_BIT_GENERATOR)
        return NULL;
    Inst        *state = inst_operand(i, 0);
    const Shape *k = state->shape, *s = i->shape->elems[1];
    bool         fry = inst_word(i, ATTR_RNG_ALGORITHM) == RNG_THREE_FRY;
    if (k->type != TYPE_U64 || k->rank != 1 || (k->dims[0] != 2 && (fry || k->dims[0] != 3)) || !type_is_unsigned_int(s->type) || type_bits(s->type) < 8 ||
        shape_count(s) <= 0)
        return NULL;
    return fry ? expand_threefry(i, state) : expand_philox(i, state);
}

bool pass_rng_bit_generator_expander(Module *m, PassCtx *cx)
{
    return expand_each(m, cx, bits);
}
