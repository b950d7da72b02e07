/* rng-bit-generator, bit exact: Threefry2x32 with 20 rounds and Philox4x32 with 10, on unsigned integers that wrap.
 * Source: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3.
 *
 * The state is {key, low} or, for Philox, {key, low, high}; with {key, low} the key doubles as the counter's high half and the carry is lost.
 * Every block of output comes from the counter plus the block's number, so that blocks are independent of each other. */
#include "analysis/random.h"
#include "emit/lower.h"

enum { ROLE_PAIRS = 70, ROLE_BLOCKS = 71 };
enum { AT_ONCE = 8, AT_ONCE_WORK = 150 /* as ranges.h counts */ }; /* blocks that philox_blocks makes */

typedef struct Random {
    const Inst  *x;
    KArray      *bits;
    const KExpr *key, *low, *high; /* the state; high is NULL where there are two words */
    int64_t      counters;         /* used */
    /* Threefry */
    int32_t      split; /* the dimension along which two elements share a counter */
    int64_t     *half;  /* the dimensions, split halved */
    /* Philox */
    int64_t      per_block; /* elements */
    int64_t      n;         /* of the blocks that are made at once */
} Random;

static const KExpr *u32(Arena *a, uint32_t v) { return kx_int(a, TYPE_U32, v); }

static const KExpr *binary32(Arena *a, KOp op, const KExpr *x, const KExpr *y)
{
    return kx_binary(a, op, TYPE_U32, x, y);
}

static const KExpr *low_half(Arena *a, const KExpr *x) { return kx_cast(a, TYPE_U32, x); }

static const KExpr *high_half(Arena *a, const KExpr *x)
{
    return kx_cast(a, TYPE_U32, kx_binary(a, KOP_SHR, TYPE_U64, x, kx_int(a, TYPE_U64, 32)));
}

/* low | high << 32 */
static const KExpr *join_halves(Arena *a, const KExpr *low, const KExpr *high)
{
    const KExpr *shifted = kx_binary(a, KOP_SHL, TYPE_U64, kx_cast(a, TYPE_U64, high), kx_int(a, TYPE_U64, 32));
    return kx_binary(a, KOP_OR, TYPE_U64, kx_cast(a, TYPE_U64, low), shifted);
}

/* base + n, where n counts counters. */
static const KExpr *counter_at(Lower *L, const KExpr *base, const Ix *n, const char *name)
{
    int64_t constant;
    if (ix_is_const(n, &constant) && constant == 0)
        return base;
    return bind(L, kx_binary(L->arena, KOP_ADD, TYPE_U64, base, kx_cast(L->arena, TYPE_U64, kx_index(L->arena, n))), name);
}

static void add_to(Lower *L, KTemp *t, const KExpr *x)
{
    assign(L, t, binary32(L->arena, KOP_ADD, current(L, t), x));
}

/* x1 = (x1 rotated left) ^ x0 after x0 += x1 */
static void threefry_round(Lower *L, KTemp *const *x, uint32_t by)
{
    Arena *a = L->arena;
    add_to(L, x[0], current(L, x[1]));
    const KExpr *left = binary32(a, KOP_SHL, current(L, x[1]), u32(a, by)), *right = binary32(a, KOP_SHR, current(L, x[1]), u32(a, 32 - by));
    assign(L, x[1], binary32(a, KOP_XOR, binary32(a, KOP_OR, left, right), current(L, x[0])));
}

/* The two words of one counter: 20 rounds, a subkey added after every four. */
static void threefry(Lower *L, const Random *g, const KExpr *counter, const KExpr *out[2])
{
    static const uint32_t rotations[2][4] = { { 13, 15, 26, 6 }, { 17, 29, 16, 24 } };
    Arena       *a = L->arena;
    const KExpr *key[3] = { bind(L, low_half(a, g->key), "key0"), bind(L, high_half(a, g->key), "key1") };
    key[2] = bind(L, binary32(a, KOP_XOR, binary32(a, KOP_XOR, u32(a, 0x1BD11BDA), key[0]), key[1]), "key2");
    KTemp *x[2] = { accumulator(L, binary32(a, KOP_ADD, low_half(a, counter), key[0]), TYPE_U32, "x0"),
                    accumulator(L, binary32(a, KOP_ADD, high_half(a, counter), key[1]), TYPE_U32, "x1") };
    for (uint32_t i = 0; i < 5; i++) {
        for (int r = 0; r < 4; r++)
            threefry_round(L, x, rotations[i & 1][r]);
        add_to(L, x[0], key[(i + 1) % 3]);
        add_to(L, x[1], binary32(a, KOP_ADD, key[(i + 2) % 3], u32(a, i + 1)));
    }
    out[0] = current(L, x[0]);
    out[1] = current(L, x[1]);
}

/* Wide elements: both words of a counter of its own. */
static void threefry_whole(Lower *L, void *cookie, const Ix *const *index)
{
    const Random *g = cookie;
    const KExpr  *v[2];
    const Shape  *s = g->bits->shape;
    threefry(L, g, counter_at(L, g->low, ix_linear(&L->ix, s->rank, index, s->dims), "counter"), v);
    store_at(L, g->bits, index, join_halves(L->arena, v[0], v[1]));
}

/* Elements 2j and 2j + 1 along the split dimension. */
static void threefry_pair(Lower *L, void *cookie, const Ix *const *index)
{
    const Random *g = cookie;
    const Shape  *s = g->bits->shape;
    Type          t = machine_type(s->type);
    const KExpr  *v[2];
    const Ix    **at = ARENA_ARRAY(L->arena, const Ix *, s->rank);
    threefry(L, g, counter_at(L, g->low, ix_linear(&L->ix, s->rank, index, g->half), "counter"), v);
    for (int32_t d = 0; d < s->rank; d++)
        at[d] = d == g->split ? ix_times(&L->ix, index[d], 2) : index[d];
    store_at(L, g->bits, at, kx_cast(L->arena, t, v[0]));
    if (s->rank == 0 || s->dims[g->split] == 1)
        return;
    bool odd = s->dims[g->split] % 2 != 0;
    at[g->split] = ix_plus(&L->ix, at[g->split], 1);
    if (odd)
        if_open(L, kx_binary(L->arena, KOP_LT, TYPE_PRED, kx_index(L->arena, at[g->split]), kx_int(L->arena, TYPE_S64, s->dims[g->split])));
    store_at(L, g->bits, at, kx_cast(L->arena, t, odd ? low_half(L->arena, v[1]) : v[1]));
    if (odd)
        block_close(L);
}

static void run_threefry(Lower *L, Random *g)
{
    const Shape *s = g->bits->shape;
    bool         whole = type_bits(s->type) == 64;
    g->split = threefry_split_dim(s);
    g->half = ARENA_ARRAY(L->arena, int64_t, s->rank);
    g->counters = 1;
    for (int32_t d = 0; d < s->rank; d++)
        g->counters *= g->half[d] = d == g->split && !whole ? s->dims[d] / 2 + s->dims[d] % 2 : s->dims[d];
    if (g->counters > 0)
        nest(L, s->rank, plan_dims(L, g->x, ROLE_PAIRS, s->rank, g->half), NULL, whole ? threefry_whole : threefry_pair, g);
}

/* Ten rounds on x0..x3, a loop. */
static void philox_rounds(Lower *L, KTemp *const *x, KTemp *const *k)
{
    Arena *a = L->arena;
    loop_open(L, 0, 10, NULL, 1);
    const KExpr *p = kx_binary(a, KOP_MUL, TYPE_U64, kx_int(a, TYPE_U64, 0xD2511F53), kx_cast(a, TYPE_U64, current(L, x[0])));
    const KExpr *q = kx_binary(a, KOP_MUL, TYPE_U64, kx_int(a, TYPE_U64, 0xCD9E8D57), kx_cast(a, TYPE_U64, current(L, x[2])));
    p = bind(L, p, "p");
    q = bind(L, q, "q");
    assign(L, x[0], binary32(a, KOP_XOR, binary32(a, KOP_XOR, high_half(a, q), current(L, x[1])), current(L, k[0])));
    assign(L, x[1], low_half(a, q));
    assign(L, x[2], binary32(a, KOP_XOR, binary32(a, KOP_XOR, high_half(a, p), current(L, x[3])), current(L, k[1])));
    assign(L, x[3], low_half(a, p));
    add_to(L, k[0], u32(a, 0x9E3779B9));
    add_to(L, k[1], u32(a, 0xBB67AE85));
    block_close(L);
}

/* The four words of block b. */
static void philox(Lower *L, const Random *g, const Ix *b, KTemp *x[4])
{
    static const char *const names[] = { "x0", "x1", "x2", "x3" };
    Arena       *a = L->arena;
    const KExpr *low = counter_at(L, g->low, b, "low"), *high = g->high ? g->high : g->key;
    if (low != g->low) /* the carry */
        high = bind(L, kx_binary(a, KOP_ADD, TYPE_U64, high, kx_cast(a, TYPE_U64, kx_binary(a, KOP_LT, TYPE_PRED, low, g->low))), "high");
    const KExpr *start[4] = { low_half(a, low), high_half(a, low), low_half(a, high), high_half(a, high) };
    for (int k = 0; k < 4; k++)
        x[k] = accumulator(L, start[k], TYPE_U32, names[k]);
    KTemp *key[2] = { accumulator(L, low_half(a, g->key), TYPE_U32, "key0"), accumulator(L, high_half(a, g->key), TYPE_U32, "key1") };
    philox_rounds(L, x, key);
}

/* Element `linear` in row-major order. */
static void store_bits(Lower *L, const Random *g, const Ix *linear, const KExpr *v)
{
    const Shape *s = g->bits->shape;
    if (layout_is_row_major(s)) {
        store(L, g->bits, linear, v);
        return;
    }
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, s->rank);
    ix_split(&L->ix, linear, s->rank, s->dims, at);
    store_at(L, g->bits, at, v);
}

/* The first n elements of block b. */
static void philox_store(Lower *L, const Random *g, const Ix *b, int64_t n)
{
    Arena *a = L->arena;
    KTemp *x[4];
    philox(L, g, b, x);
    for (int64_t k = 0; k < n; k++)
        store_bits(L, g, ix_plus(&L->ix, ix_times(&L->ix, b, g->per_block), k),
                   g->per_block == 4 ? kx_cast(a, machine_type(g->bits->shape->type), current(L, x[k])) : join_halves(a, current(L, x[2 * k]), current(L, x[2 * k + 1])));
}

/* The first n elements of as many blocks as are made at once, from number index[0] of those on. */
static void philox_at_once(Lower *L, void *cookie, const Ix *const *index)
{
    const Random *g = cookie;
    Arena        *a = L->arena;
    const bool    pairs = g->per_block == 2;
    const Type    t = pairs ? TYPE_U64 : TYPE_U32;
    const Ix     *number = index[0];
    KArray       *words = local_array(L, t, AT_ONCE * g->per_block, "words");
    const KExpr  *args[] = { g->key, g->low, g->high ? g->high : g->key, kx_index(a, ix_times(&L->ix, number, AT_ONCE)) };
    store(L, words, ix_const(&L->ix, 0), kx_call(a, pairs ? "philox_pairs" : "philox_blocks", t, 4, args));
    L->cur->last->fill_work = AT_ONCE_WORK;
    const Ix *k = ix_of(&L->ix, loop_open(L, 0, g->n, NULL, 1));
    store_bits(L, g, ix_add(&L->ix, ix_times(&L->ix, number, AT_ONCE * g->per_block), k), kx_cast(a, machine_type(g->bits->shape->type), load(L, words, k)));
    block_close(L);
}

static void philox_block(Lower *L, void *cookie, const Ix *const *index)
{
    const Random *g = cookie;
    philox_store(L, g, index[0], g->per_block);
}

static void run_philox(Lower *L, Random *g)
{
    int64_t n = g->bits->count, whole, rest;
    g->per_block = type_bits(g->bits->shape->type) == 64 ? 2 : 4;
    g->counters = n / g->per_block + (n % g->per_block > 0);
    g->n = g->per_block * (L->plan->plain ? 1 : AT_ONCE);
    whole = n / g->n;
    rest = n % g->n;
    if (whole > 0)
        nest(L, 1, plan_dims(L, g->x, ROLE_BLOCKS, 1, &whole), NULL, L->plan->plain ? philox_block : philox_at_once, g);
    if (rest == 0)
        return;
    const Ix *last = ix_const(&L->ix, whole);
    g->n = rest;
    if (L->plan->plain)
        philox_store(L, g, last, rest);
    else
        philox_at_once(L, g, &last);
}

static const KExpr *state_word(Lower *L, const Inst *state, int64_t k, const char *name)
{
    const Ix *at[1] = { ix_const(&L->ix, k) };
    int32_t   leaf = 0;
    state = resolve(L, state, &leaf);
    return bind(L, value_at(L, state, leaf, (const Ix *const *)arena_copy(L->arena, at, sizeof at)), name);
}

static void store_state(Lower *L, KArray *to, int64_t k, const KExpr *v)
{
    const Ix *at[1] = { ix_const(&L->ix, k) };
    store_at(L, to, at, v);
}

void stage_rng_bit_generator(Lower *L, const Inst *x, KArray *const *to)
{
    const Inst *state = inst_operand(x, 0);
    Arena      *a = L->arena;
    Random      g = { .x = x, .bits = to[1] };
    g.key = state_word(L, state, 0, "key");
    g.low = state_word(L, state, 1, "start");
    g.high = to[0]->count == 3 ? state_word(L, state, 2, "start_high") : NULL;
    if (inst_word(x, ATTR_RNG_ALGORITHM) == RNG_THREE_FRY)
        run_threefry(L, &g);
    else
        run_philox(L, &g);
    const KExpr *end = bind(L, kx_binary(a, KOP_ADD, TYPE_U64, g.low, kx_int(a, TYPE_U64, g.counters)), "end");
    store_state(L, to[0], 0, g.key);
    store_state(L, to[0], 1, end);
    if (g.high)
        store_state(L, to[0], 2, kx_binary(a, KOP_ADD, TYPE_U64, g.high, kx_cast(a, TYPE_U64, kx_binary(a, KOP_LT, TYPE_PRED, end, g.low))));
}
