/* Integers and pred. p and q are the operands in 64 or 32 bits; the result is cut to the type's width when it is stored.
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

/* What depends on the sign. */
#define SIGNED_ARITH(S, T)                                                                                                    \
    INT_ARITH(S, T)                                                                                                             \
    ARITH1(S##_abs, T, T, p < 0 ? 0 - U(p) : U(p))                                                                             \
    ARITH1(S##_sign, T, T, (p > 0) - (p < 0))                                                                                  \
    ARITH2(S##_mulhi, T, T, ((__int128)p * q) >> k->bits)                                                                      \
    ARITH2(S##_divide, T, T, divide(p, q))                                                                                     \
    ARITH2(S##_remainder, T, T, remainder_of(p, q))                                                                            \
    ARITH2(S##_power, T, T, power_signed(p, q))
#define UNSIGNED_ARITH(S, T)                                                                                                  \
    INT_ARITH(S, T)                                                                                                             \
    ARITH2(S##_mulhi, T, T, ((unsigned __int128)p * q) >> k->bits)                                                             \
    ARITH2(S##_divide, T, T, q == 0 ? UINT64_MAX : p / q)                                                                      \
    ARITH2(S##_remainder, T, T, q == 0 ? p : p % q)                                                                            \
    ARITH2(S##_power, T, T, power(p, q))

SIGNED_ARITH(s32, int32_t)
SIGNED_ARITH(s64, int64_t)
UNSIGNED_ARITH(u32, uint32_t)
UNSIGNED_ARITH(u64, uint64_t)

ARITH1(pred_not, uint8_t, uint8_t, !p)
ARITH2(pred_or, uint8_t, uint8_t, p | q)
ARITH2(pred_and, uint8_t, uint8_t, p & q)
ARITH2(pred_xor, uint8_t, uint8_t, p ^ q)

ArithFn *arith_int(Op op, Domain d)
{
#define WITH_PRED(of_pred, name)                                                                                              \
    {[DOMAIN_PRED] = of_pred, [DOMAIN_S32] = s32_##name, [DOMAIN_U32] = u32_##name, [DOMAIN_S64] = s64_##name, [DOMAIN_U64] = u64_##name}
#define INTS(name) WITH_PRED(NULL, name)
    static ArithFn *const table[OP_COUNT][DOMAIN_COUNT] = {
        [OP_ABS] = {[DOMAIN_S32] = s32_abs, [DOMAIN_S64] = s64_abs},
        [OP_SIGN] = {[DOMAIN_S32] = s32_sign, [DOMAIN_S64] = s64_sign},
        [OP_NEGATE] = INTS(negate),
        [OP_NOT] = WITH_PRED(pred_not, not),
        [OP_POPCNT] = INTS(popcnt),
        [OP_COUNT_LEADING_ZEROS] = INTS(clz),
        [OP_ADD] = WITH_PRED(pred_or, add),
        [OP_SUBTRACT] = INTS(subtract),
        [OP_MULTIPLY] = WITH_PRED(pred_and, multiply),
        [OP_MULHI] = INTS(mulhi),
        [OP_DIVIDE] = INTS(divide),
        [OP_REMAINDER] = INTS(remainder),
        [OP_POWER] = INTS(power),
        [OP_MAXIMUM] = WITH_PRED(pred_or, maximum),
        [OP_MINIMUM] = WITH_PRED(pred_and, minimum),
        [OP_AND] = WITH_PRED(pred_and, and),
        [OP_OR] = WITH_PRED(pred_or, or),
        [OP_XOR] = WITH_PRED(pred_xor, xor),
        [OP_SHIFT_LEFT] = INTS(shift_left),
        [OP_SHIFT_RIGHT_LOGICAL] = INTS(shift_logical),
        [OP_SHIFT_RIGHT_ARITHMETIC] = INTS(shift_arithmetic),
    };
#undef INTS
#undef WITH_PRED
    return table[op][d];
}
