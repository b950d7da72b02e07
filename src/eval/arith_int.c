/* Integers and pred. p and q are the operands in 64 bits; the result is cut to the type's width when it is stored.
 * Nothing here traps or is undefined: sums wrap, x / 0 has all bits set, x % 0 is x, shifts by the width or more empty the value.
 * Source: reference operations 3. */
#include "eval/arith.h"

#include "eval/engine.h"

/* The low `bits` bits of a value, and these sign-extended. */
static uint64_t low_bits(uint64_t v, int bits)
{
    return bits == 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

static int64_t sign_extend(uint64_t v, int bits)
{
    return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static int leading_zeros(uint64_t v, int bits)
{
    v = low_bits(v, bits);
    return v == 0 ? bits : __builtin_clzll(v) - (64 - bits);
}

static int64_t divide(int64_t p, int64_t q)
{
    return q == 0 ? -1 : q == -1 ? (int64_t)(0 - (uint64_t)p) : p / q;
}

static int64_t remainder_of(int64_t p, int64_t q)
{
    return q == 0 ? p : q == -1 ? 0 : p % q;
}

static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t r = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            r *= base;
    return r;
}

static int64_t power_signed(int64_t p, int64_t q)
{
    if (q < 0)
        return p == 1;
    return (int64_t)power((uint64_t)p, (uint64_t)q);
}

static uint64_t shift_left(uint64_t p, uint64_t amount, int bits)
{
    return amount >= (uint64_t)bits ? 0 : p << amount;
}

static uint64_t shift_logical(uint64_t p, uint64_t amount, int bits)
{
    return amount >= (uint64_t)bits ? 0 : low_bits(p, bits) >> amount;
}

static int64_t shift_arithmetic(uint64_t p, uint64_t amount, int bits)
{
    int64_t v = sign_extend(p, bits);
    return amount >= (uint64_t)bits ? (v < 0 ? -1 : 0) : v >> amount;
}

#define U(v) ((uint64_t)(v))

/* Opcodes that mean the same for both signs. */
#define INT_ARITH(S, T)                                                                                                       \
    ARITH1(S##_negate, T, T, 0 - U(p))                                                                                         \
    ARITH1(S##_not, T, T, ~p)                                                                                                  \
    ARITH1(S##_popcnt, T, T, __builtin_popcountll(low_bits(U(p), k->bits)))                                                    \
    ARITH1(S##_clz, T, T, leading_zeros(U(p), k->bits))                                                                        \
    ARITH2(S##_add, T, T, U(p) + U(q))                                                                                         \
    ARITH2(S##_subtract, T, T, U(p) - U(q))                                                                                    \
    ARITH2(S##_multiply, T, T, U(p) * U(q))                                                                                    \
    ARITH2(S##_maximum, T, T, p < q ? q : p)                                                                                   \
    ARITH2(S##_minimum, T, T, q < p ? q : p)                                                                                   \
    ARITH2(S##_and, T, T, p & q)                                                                                               \
    ARITH2(S##_or, T, T, p | q)                                                                                                \
    ARITH2(S##_xor, T, T, p ^ q)                                                                                               \
    ARITH2(S##_shift_left, T, T, shift_left(U(p), U(q), k->bits))                                                              \
    ARITH2(S##_shift_logical, T, T, shift_logical(U(p), U(q), k->bits))                                                        \
    ARITH2(S##_shift_arithmetic, T, T, shift_arithmetic(U(p), U(q), k->bits))

INT_ARITH(s64, int64_t)
INT_ARITH(u64, uint64_t)
ARITH1(s64_abs, int64_t, int64_t, p < 0 ? 0 - U(p) : U(p))
ARITH1(s64_sign, int64_t, int64_t, (p > 0) - (p < 0))
ARITH2(s64_mulhi, int64_t, int64_t, ((__int128)p * q) >> k->bits)
ARITH2(u64_mulhi, uint64_t, uint64_t, ((unsigned __int128)p * q) >> k->bits)
ARITH2(s64_divide, int64_t, int64_t, divide(p, q))
ARITH2(u64_divide, uint64_t, uint64_t, q == 0 ? UINT64_MAX : p / q)
ARITH2(s64_remainder, int64_t, int64_t, remainder_of(p, q))
ARITH2(u64_remainder, uint64_t, uint64_t, q == 0 ? p : p % q)
ARITH2(s64_power, int64_t, int64_t, power_signed(p, q))
ARITH2(u64_power, uint64_t, uint64_t, power(p, q))

ARITH1(pred_not, uint8_t, uint8_t, !p)
ARITH2(pred_or, uint8_t, uint8_t, p | q)
ARITH2(pred_and, uint8_t, uint8_t, p & q)
ARITH2(pred_xor, uint8_t, uint8_t, p ^ q)

ArithFn *arith_int(Op op, Domain d)
{
#define BOTH(name) {[DOMAIN_S64] = s64_##name, [DOMAIN_U64] = u64_##name}
    static ArithFn *const table[OP_COUNT][DOMAIN_COUNT] = {
        [OP_ABS] = {[DOMAIN_S64] = s64_abs},
        [OP_SIGN] = {[DOMAIN_S64] = s64_sign},
        [OP_NEGATE] = BOTH(negate),
        [OP_NOT] = {[DOMAIN_PRED] = pred_not, [DOMAIN_S64] = s64_not, [DOMAIN_U64] = u64_not},
        [OP_POPCNT] = BOTH(popcnt),
        [OP_COUNT_LEADING_ZEROS] = BOTH(clz),
        [OP_ADD] = {[DOMAIN_PRED] = pred_or, [DOMAIN_S64] = s64_add, [DOMAIN_U64] = u64_add},
        [OP_SUBTRACT] = BOTH(subtract),
        [OP_MULTIPLY] = {[DOMAIN_PRED] = pred_and, [DOMAIN_S64] = s64_multiply, [DOMAIN_U64] = u64_multiply},
        [OP_MULHI] = BOTH(mulhi),
        [OP_DIVIDE] = BOTH(divide),
        [OP_REMAINDER] = BOTH(remainder),
        [OP_POWER] = BOTH(power),
        [OP_MAXIMUM] = {[DOMAIN_PRED] = pred_or, [DOMAIN_S64] = s64_maximum, [DOMAIN_U64] = u64_maximum},
        [OP_MINIMUM] = {[DOMAIN_PRED] = pred_and, [DOMAIN_S64] = s64_minimum, [DOMAIN_U64] = u64_minimum},
        [OP_AND] = {[DOMAIN_PRED] = pred_and, [DOMAIN_S64] = s64_and, [DOMAIN_U64] = u64_and},
        [OP_OR] = {[DOMAIN_PRED] = pred_or, [DOMAIN_S64] = s64_or, [DOMAIN_U64] = u64_or},
        [OP_XOR] = {[DOMAIN_PRED] = pred_xor, [DOMAIN_S64] = s64_xor, [DOMAIN_U64] = u64_xor},
        [OP_SHIFT_LEFT] = BOTH(shift_left),
        [OP_SHIFT_RIGHT_LOGICAL] = BOTH(shift_logical),
        [OP_SHIFT_RIGHT_ARITHMETIC] = BOTH(shift_arithmetic),
    };
#undef BOTH
    return table[op][d];
}
