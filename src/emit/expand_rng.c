/* rng(a, b) becomes a fusion of the numbers that Philox gives under the run's seed from the run's random state on:
 *
 *   state = rng-get-and-update-state(), delta=words + 1
 *   bits  = rng-bit-generator({seed, state}), algorithm=rng_philox
 *   uniform integers  a + bits mod (b - a), in the type's width; b = a: a + bits
 *   uniform floats    u = (the highest bits, as many as the mantissa has) 2^-mantissa; a (1 - u) + b u; what rounding takes out of [a, b) is a
 *   normal            a + b z, two z from two fractions: sqrt(-2 ln max(u, 1e-7)) times sin and cos of 2 pi v
 *
 * Floats are computed in f64 and rounded at the end. Source: reference operations 13.2. */
#include "emit/expand.h"

typedef struct Rng {
    const Inst *i;
    Comp       *c; /* of the fusion */
    Arena      *arena;
    Type        type, word;   /* of the result; of the bits, u32 or u64 */
    Inst       *a, *b, *key;  /* parameters; u64[3] */
} Rng;

static const Shape *of_type(const Rng *g, const Shape *s, Type t)
{
    return shape_array(g->arena, t, s->rank, s->dims);
}

static Inst *unary(Rng *g, Op op, Inst *x)
{
    return inst_new(g->c, NULL, op, x->shape, 1, &x, NULL);
}

static Inst *binary(Rng *g, Op op, Inst *x, Inst *y)
{
    return inst_new(g->c, NULL, op, x->shape, 2, (Inst *const[]){ x, y }, NULL);
}

static Inst *converted(Rng *g, Inst *x, Type t)
{
    return x->shape->type == t ? x : inst_new(g->c, NULL, OP_CONVERT, of_type(g, x->shape, t), 1, &x, NULL);
}

static Inst *compared(Rng *g, Inst *x, Inst *y, Word direction)
{
    Inst *r = inst_new(g->c, NULL, OP_COMPARE, of_type(g, x->shape, TYPE_PRED), 2, (Inst *const[]){ x, y }, NULL);
    inst_set_word(r, ATTR_DIRECTION, direction);
    return r;
}

static Inst *chosen(Rng *g, Inst *test, Inst *x, Inst *y)
{
    return inst_new(g->c, NULL, OP_SELECT, x->shape, 3, (Inst *const[]){ test, x, y }, NULL);
}

static Inst *spread(Rng *g, Inst *scalar, const Shape *s)
{
    Inst *x = inst_new(g->c, NULL, OP_BROADCAST, of_type(g, s, scalar->shape->type), 1, &scalar, NULL);
    inst_set_ints(x, ATTR_DIMENSIONS, (Ints){ NULL, 0 });
    return x;
}

static Inst *whole(Rng *g, const Shape *s, Type t, int64_t v)
{
    return spread(g, inst_constant(g->c, NULL, literal_from_s64(t, v), NULL), s);
}

static Inst *real(Rng *g, const Shape *s, double v)
{
    return spread(g, inst_constant(g->c, NULL, literal_from_f64(TYPE_F64, v), NULL), s);
}

static Inst *random_bits(Rng *g, const Shape *s)
{
    const Shape *bits = of_type(g, s, g->word), *results[] = { g->key->shape, bits };
    Inst        *both = inst_new(g->c, NULL, OP_RNG_BIT_GENERATOR, shape_tuple(g->arena, 2, results), 1, &g->key, NULL);
    inst_set_word(both, ATTR_RNG_ALGORITHM, RNG_PHILOX);
    Inst *x = inst_new(g->c, NULL, OP_GET_TUPLE_ELEMENT, bits, 1, &both, NULL);
    inst_set_int(x, ATTR_INDEX, 1);
    return x;
}

/* The highest n bits as a fraction. */
static Inst *fraction(Rng *g, Inst *bits, int n)
{
    Inst *high = binary(g, OP_SHIFT_RIGHT_LOGICAL, bits, whole(g, bits->shape, g->word, type_bits(g->word) - n));
    return binary(g, OP_MULTIPLY, converted(g, high, TYPE_F64), real(g, bits->shape, 1.0 / (double)((uint64_t)1 << n)));
}

static Inst *uniform_integers(Rng *g, const Shape *s)
{
    int      width = g->type == TYPE_PRED ? 1 : type_bits(g->type);
    int64_t  ones = width == 64 ? -1 : (int64_t)(((uint64_t)1 << width) - 1);
    Inst    *mask = whole(g, s, g->word, ones), *zero = whole(g, s, g->word, 0), *bits = random_bits(g, s);
    Inst    *a = spread(g, converted(g, g->a, g->word), s), *b = spread(g, converted(g, g->b, g->word), s);
    Inst    *size = binary(g, OP_AND, binary(g, OP_SUBTRACT, b, a), mask);
    Inst    *any = binary(g, OP_AND, bits, mask), *some = binary(g, OP_REMAINDER, bits, size);
    Inst    *v = binary(g, OP_ADD, a, chosen(g, compared(g, size, zero, CMP_EQ), any, some));
    if (g->type == TYPE_PRED)
        return compared(g, binary(g, OP_AND, v, mask), zero, CMP_NE);
    return converted(g, v, g->type);
}

static Inst *uniform_floats(Rng *g, const Shape *s)
{
    int   n = type_info[g->type].man;
    Inst *a = spread(g, converted(g, g->a, TYPE_F64), s), *b = spread(g, converted(g, g->b, TYPE_F64), s);
    Inst *u = n == 0 ? real(g, s, 0) : fraction(g, random_bits(g, s), n);
    Inst *between = binary(g, OP_ADD, binary(g, OP_MULTIPLY, a, binary(g, OP_SUBTRACT, real(g, s, 1), u)), binary(g, OP_MULTIPLY, b, u));
    Inst *v = chosen(g, compared(g, u, real(g, s, 0), CMP_EQ), a, between);
    Inst *rounded = converted(g, converted(g, v, g->type), TYPE_F64);
    Inst *outside = binary(g, OP_OR, compared(g, rounded, a, CMP_LT), compared(g, rounded, b, CMP_GE));
    return converted(g, chosen(g, binary(g, OP_AND, compared(g, a, b, CMP_LT), outside), a, rounded), g->type);
}

/* Column k of pairs, as it stands in them. */
static Inst *column(Rng *g, Inst *pairs, int64_t k)
{
    SliceRange *v = ARENA_ARRAY(g->arena, SliceRange, 2);
    Slices     *cut = ARENA_NEW(g->arena, Slices);
    int64_t     n = pairs->shape->dims[0];
    v[0] = (SliceRange){ 0, n, 1 };
    v[1] = (SliceRange){ k, k + 1, 1 };
    *cut = (Slices){ 2, v };
    Inst *x = inst_new(g->c, NULL, OP_SLICE, shape_array(g->arena, pairs->shape->type, 2, (const int64_t[]){ n, 1 }), 1, &pairs, NULL);
    inst_set_attr(x, (Attr){ .id = ATTR_SLICE, .value.slices = cut });
    return x;
}

/* Pairs of numbers in row-major order, the last of which may be left over. */
static Inst *normal_floats(Rng *g, const Shape *s)
{
    int64_t      count = shape_count(s), n = count / 2 + count % 2;
    const Shape *pairs = shape_array(g->arena, TYPE_F64, 2, (const int64_t[]){ n, 2 });
    Inst        *bits = random_bits(g, pairs), *u, *v, *both[2];
    int          digits = g->word == TYPE_U64 ? 52 : 23;
    u = fraction(g, column(g, bits, 0), digits);
    v = fraction(g, column(g, bits, 1), digits);
    u = binary(g, OP_MAXIMUM, u, real(g, u->shape, 1e-7));
    Inst *radius = unary(g, OP_SQRT, binary(g, OP_MULTIPLY, real(g, u->shape, -2), unary(g, OP_LOG, u)));
    Inst *angle = binary(g, OP_MULTIPLY, v, real(g, u->shape, 2 * 3.14159265358979323846));
    Inst *length = binary(g, OP_MULTIPLY, spread(g, converted(g, g->b, TYPE_F64), u->shape), radius);
    both[0] = binary(g, OP_MULTIPLY, length, unary(g, OP_SINE, angle));
    both[1] = binary(g, OP_MULTIPLY, length, unary(g, OP_COSINE, angle));
    Inst   *z = inst_new(g->c, NULL, OP_CONCATENATE, pairs, 2, both, NULL);
    int64_t one = 1, twice = 2 * n;
    inst_set_ints(z, ATTR_DIMENSIONS, (Ints){ &one, 1 });
    z = inst_new(g->c, NULL, OP_RESHAPE, shape_array(g->arena, TYPE_F64, 1, &twice), 1, &z, NULL);
    if (count < twice) {
        SliceRange *range = ARENA_NEW(g->arena, SliceRange);
        Slices     *cut = ARENA_NEW(g->arena, Slices);
        *range = (SliceRange){ 0, count, 1 };
        *cut = (Slices){ 1, range };
        z = inst_new(g->c, NULL, OP_SLICE, shape_array(g->arena, TYPE_F64, 1, &count), 1, &z, NULL);
        inst_set_attr(z, (Attr){ .id = ATTR_SLICE, .value.slices = cut });
    }
    z = inst_new(g->c, NULL, OP_RESHAPE, of_type(g, s, TYPE_F64), 1, &z, NULL);
    return converted(g, binary(g, OP_ADD, spread(g, converted(g, g->a, TYPE_F64), s), z), g->type);
}

/* The fusion's computation: parameters a, b, the random state, the seed. */
static Comp *numbers(Rng *g)
{
    const Inst *i = g->i;
    Module     *m = i->comp->module;
    int64_t     words[] = { 1, 2, 3 }, first = 0;
    g->c = comp_new(m, comp_unique_name(m, "rng"));
    comp_move_before(g->c, i->comp);
    g->a = inst_parameter(g->c, NULL, 0, inst_operand(i, 0)->shape, NULL);
    g->b = inst_parameter(g->c, NULL, 1, inst_operand(i, 1)->shape, NULL);
    Inst *state = inst_parameter(g->c, NULL, 2, shape_array(g->arena, TYPE_U64, 1, &words[1]), NULL);
    Inst *seed = inst_parameter(g->c, NULL, 3, shape_scalar(g->arena, TYPE_U64), NULL);
    seed = inst_new(g->c, NULL, OP_RESHAPE, shape_array(g->arena, TYPE_U64, 1, &words[0]), 1, &seed, NULL);
    g->key = inst_new(g->c, NULL, OP_CONCATENATE, shape_array(g->arena, TYPE_U64, 1, &words[2]), 2, (Inst *const[]){ seed, state }, NULL);
    inst_set_ints(g->key, ATTR_DIMENSIONS, (Ints){ &first, 1 });
    const Shape *s = shape_array(g->arena, g->type, i->shape->rank, i->shape->dims);
    Inst        *x = !type_is_float(g->type) ? uniform_integers(g, s)
                     : inst_word(i, ATTR_DISTRIBUTION) == RNG_UNIFORM ? uniform_floats(g, s) : normal_floats(g, s);
    g->c->root = inst_new(g->c, NULL, OP_COPY, i->shape, 1, &x, NULL); /* in the layout that is asked for */
    return g->c;
}

void expand_rng(Inst *i)
{
    Module *m = i->comp->module;
    Rng     g = { .i = i, .arena = m->arena, .type = i->shape->type };
    int64_t two = 2, words = shape_count(i->shape) * (type_bits(g.type) == 64 ? 2 : 1) + 1;
    g.word = type_bits(g.type) == 64 ? TYPE_U64 : TYPE_U32;
    Inst *state = inst_new(i->comp, i, OP_RNG_GET_AND_UPDATE_STATE, shape_array(m->arena, TYPE_U64, 1, &two), 0, NULL, NULL);
    Inst *seed = inst_new(i->comp, i, OP_CUSTOM_CALL, shape_scalar(m->arena, TYPE_U64), 0, NULL, NULL);
    inst_set_int(state, ATTR_DELTA, words);
    inst_set_attr(seed, (Attr){ .id = ATTR_CUSTOM_CALL_TARGET, .value.s = intern_str(m->strings, "GetRngSeed") });
    Comp *body = numbers(&g);
    Inst *f = inst_new(i->comp, i, OP_FUSION, i->shape, 4, (Inst *const[]){ inst_operand(i, 0), inst_operand(i, 1), state, seed }, NULL);
    inst_set_word(f, ATTR_FUSION_KIND, FUSION_LOOP);
    inst_set_callees(f, 1, &body);
    f->meta = state->meta = i->meta;
    f->loc = state->loc = seed->loc = i->loc;
    inst_replace(i, f);
    inst_delete(i);
}
