/* rng-bit-generator, bit exact: Threefry2x32 with 20 rounds and Philox4x32 with 10. All arithmetic wraps.
 * rng-get-and-update-state: one counter of 128 bits for the whole run.
 * Source: reference operations 13.1, 13.3; Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3. */
#include <string.h>

#include "eval/engine.h"
#include "eval/random.h"
#include "eval/walk.h"

EvalFn eval_rng_bit_generator, eval_rng_state;

static uint32_t low(uint64_t v) { return (uint32_t)v; }
static uint32_t high(uint64_t v) { return (uint32_t)(v >> 32); }

static void threefry(uint64_t key, uint64_t counter, uint32_t x[2])
{
    static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    uint32_t ks[3] = {low(key), high(key), 0x1BD11BDA ^ low(key) ^ high(key)};
    x[0] = low(counter) + ks[0];
    x[1] = high(counter) + ks[1];
    for (uint32_t i = 0; i < 5; i++) {
        for (int r = 0; r < 4; r++) {
            int by = rotations[i & 1][r];
            x[0] += x[1];
            x[1] = (x[1] << by | x[1] >> (32 - by)) ^ x[0];
        }
        x[0] += ks[(i + 1) % 3];
        x[1] += ks[(i + 2) % 3] + i + 1;
    }
}

void random_philox(uint64_t key, uint64_t counter_low, uint64_t counter_high, uint32_t x[4])
{
    uint32_t k0 = low(key), k1 = high(key);
    x[0] = low(counter_low), x[1] = high(counter_low), x[2] = low(counter_high), x[3] = high(counter_high);
    for (int round = 0; round < 10; round++) {
        uint64_t p = UINT64_C(0xD2511F53) * x[0], q = UINT64_C(0xCD9E8D57) * x[2];
        x[0] = high(q) ^ x[1] ^ k0;
        x[1] = low(q);
        x[2] = high(p) ^ x[3] ^ k1;
        x[3] = low(p);
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
}

static void set(Literal *bits, int64_t j, uint64_t v)
{
    memcpy((char *)bits->data + j * type_bytes(bits->type), &v, (size_t)type_bytes(bits->type));
}

/* The dimension along which even and odd elements share a counter: the first of even size, else the first of the largest. */
static int32_t split_dim(const Literal *bits)
{
    int32_t largest = 0;
    for (int32_t d = 0; d < bits->rank; d++) {
        if (bits->dims[d] % 2 == 0)
            return d;
        if (bits->dims[d] > bits->dims[largest])
            largest = d;
    }
    return largest;
}

/* Words of 32 bits: the counter is the linear index among pairs. Gives the number of counters used. */
static uint64_t threefry_words(const uint64_t *state, Literal *bits)
{
    uint32_t x[2];
    if (bits->rank == 0) {
        threefry(state[0], state[1], x);
        set(bits, 0, x[0]);
        return 1;
    }
    int32_t split = split_dim(bits);
    Odometer half = {.rank = bits->rank, .arrays = 1};
    int64_t strides[WALK_RANK], count = 1;
    walk_strides(bits->rank, bits->dims, strides);
    for (int32_t d = 0; d < bits->rank; d++) {
        half.dims[d] = d == split ? bits->dims[d] / 2 + bits->dims[d] % 2 : bits->dims[d];
        half.stride[0][d] = d == split ? 2 * strides[d] : strides[d];
        count *= half.dims[d];
    }
    for (int64_t c = 0; c < count; c++, walk_next(&half)) {
        threefry(state[0], state[1] + (uint64_t)c, x);
        set(bits, half.at[0], x[0]);
        if (2 * half.index[split] + 1 < bits->dims[split])
            set(bits, half.at[0] + strides[split], x[1]);
    }
    return (uint64_t)count;
}

static void run_threefry(uint64_t *state, Literal *bits)
{
    if (type_bits(bits->type) < 64) {
        state[1] += threefry_words(state, bits);
        return;
    }
    for (int64_t j = 0; j < bits->count; j++) {
        uint32_t x[2];
        threefry(state[0], state[1]++, x);
        set(bits, j, x[0] | (uint64_t)x[1] << 32);
    }
}

/* state {key, low, high}, or {key, low} with the key doubling as the high half: then the carry is lost. */
static void run_philox(uint64_t *state, int64_t words, Literal *bits)
{
    uint64_t lo = state[1], hi = words == 3 ? state[2] : state[0];
    int64_t per_block = type_bits(bits->type) == 64 ? 2 : 4;
    for (int64_t j = 0; j < bits->count; j += per_block) {
        uint32_t x[4];
        random_philox(state[0], lo, hi, x);
        for (int64_t k = 0; k < per_block && j + k < bits->count; k++)
            set(bits, j + k, per_block == 4 ? x[k] : x[2 * k] | (uint64_t)x[2 * k + 1] << 32);
        lo++;
        hi += lo == 0;
    }
    state[1] = lo;
    if (words == 3)
        state[2] = hi;
}

Literal *eval_rng_bit_generator(Eval *e, const Inst *i, Literal **x)
{
    bool three_fry = inst_word(i, ATTR_RNG_ALGORITHM) == RNG_THREE_FRY;
    const Shape *s = i->shape->elems[1];
    if (x[0]->type != TYPE_U64 || x[0]->rank != 1 || (x[0]->count != 2 && (three_fry || x[0]->count != 3)))
        return eval_fail(e, i, "rng-bit-generator %%%s: the state must be u64[2]%s", i->name, three_fry ? "" : " or u64[3]");
    if (!type_is_unsigned_int(s->type) || type_bits(s->type) < 8)
        return eval_fail(e, i, "rng-bit-generator %%%s: the bits must be u8, u16, u32 or u64", i->name);
    Literal *r[] = {eval_take(e, i, x, 0), eval_new_for(e, i, s)};
    if (!e->failed && three_fry)
        run_threefry(r[0]->data, r[1]);
    else if (!e->failed)
        run_philox(r[0]->data, r[0]->count, r[1]);
    return eval_results(e, i, 2, r);
}

/* {low, high} before delta is added. */
Literal *eval_rng_state(Eval *e, const Inst *i, Literal **x)
{
    Literal *r = eval_new_for(e, i, i->shape);
    if (!r)
        return NULL;
    uint64_t words[] = {(uint64_t)e->rng_state, (uint64_t)(e->rng_state >> 64)};
    memcpy(r->data, words, sizeof words);
    e->rng_state += (unsigned __int128)inst_int(i, ATTR_DELTA, 0);
    return r;
}
