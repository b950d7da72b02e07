/* compare, select and clamp. Source: reference operations 3.2, 3.3. */
#include "eval/arith.h"

#include <complex.h>
#include <string.h>

/* compare: six directions in every domain; IEEE order for floats, so that NaN is only NE. Complex numbers have EQ and NE. */
#define EQUALITIES(S, T)                                                                                                        \
    ARITH2(S##_eq, T, uint8_t, p == q)                                                                                         \
    ARITH2(S##_ne, T, uint8_t, p != q)
#define ORDERS(S, T)                                                                                                            \
    EQUALITIES(S, T)                                                                                                            \
    ARITH2(S##_ge, T, uint8_t, p >= q)                                                                                         \
    ARITH2(S##_gt, T, uint8_t, p > q)                                                                                          \
    ARITH2(S##_le, T, uint8_t, p <= q)                                                                                         \
    ARITH2(S##_lt, T, uint8_t, p < q)

ORDERS(pred, uint8_t)
ORDERS(s32, int32_t)
ORDERS(u32, uint32_t)
ORDERS(s64, int64_t)
ORDERS(u64, uint64_t)
ORDERS(f32, float)
ORDERS(f64, double)
EQUALITIES(c64, float _Complex)
EQUALITIES(c128, double _Complex)

ArithFn *arith_compare(Word direction, Domain d)
{
#define ALL(name)                                                                                                               \
    {[DOMAIN_PRED] = pred_##name, [DOMAIN_S32] = s32_##name, [DOMAIN_U32] = u32_##name, [DOMAIN_S64] = s64_##name,              \
     [DOMAIN_U64] = u64_##name, [DOMAIN_F32] = f32_##name, [DOMAIN_F64] = f64_##name}
    static ArithFn *const table[][DOMAIN_COUNT] = {
        [CMP_EQ - CMP_EQ] = ALL(eq), [CMP_NE - CMP_EQ] = ALL(ne), [CMP_GE - CMP_EQ] = ALL(ge),
        [CMP_GT - CMP_EQ] = ALL(gt), [CMP_LE - CMP_EQ] = ALL(le), [CMP_LT - CMP_EQ] = ALL(lt),
    };
#undef ALL
    if (d == DOMAIN_C64)
        return direction == CMP_EQ ? c64_eq : direction == CMP_NE ? c64_ne : NULL;
    if (d == DOMAIN_C128)
        return direction == CMP_EQ ? c128_eq : direction == CMP_NE ? c128_ne : NULL;
    return table[direction - CMP_EQ][d];
}

/* By the keys that order as the total order does. */
void arith_compare_total(const Arith *k, void *out, const void *const *x, int64_t n)
{
    uint8_t *r = out;
    Word w = (Word)k->bits;
    for (int64_t j = 0; j < n; j++) {
        int64_t p = value_total_key(k->type[0], x[0], j), q = value_total_key(k->type[1], x[1], j);
        int order = (p > q) - (p < q);
        r[j] = w == CMP_EQ ? order == 0 : w == CMP_NE ? order != 0 : w == CMP_GE ? order >= 0 : w == CMP_GT ? order > 0
             : w == CMP_LE ? order <= 0 : order < 0;
    }
}

#define ARITH3(name, first, from, expr)                                                                                        \
    static void name(const Arith *k, void *out, const void *const *x, int64_t n)                                               \
    {                                                                                                                           \
        const first *a = x[0];                                                                                                  \
        const from *b = x[1], *c = x[2];                                                                                        \
        from *r = out;                                                                                                          \
        INDEPENDENT                                                                                                             \
        for (int64_t j = 0; j < n; j++) {                                                                                       \
            first o = a[j];                                                                                                     \
            from p = b[j], q = c[j];                                                                                            \
            r[j] = (expr);                                                                                                      \
        }                                                                                                                       \
    }

typedef struct Sixteen { uint64_t lo, hi; } Sixteen;
ARITH3(select1, uint8_t, uint8_t, o ? p : q)
ARITH3(select2, uint8_t, uint16_t, o ? p : q)
ARITH3(select4, uint8_t, uint32_t, o ? p : q)
ARITH3(select8, uint8_t, uint64_t, o ? p : q)
ARITH3(select16, uint8_t, Sixteen, o ? p : q)

ArithFn *arith_select(int bytes)
{
    switch (bytes) {
    case 1: return select1;
    case 2: return select2;
    case 4: return select4;
    case 8: return select8;
    default: return select16;
    }
}

/* clamp(lo, x, hi) = min(max(x, lo), hi): o is lo, p is x, q is hi. The first NaN of the three wins; hi wins over lo. */
#define CLAMP(p, o, q) ((p) < (o) ? ((q) < (o) ? (q) : (o)) : (q) < (p) ? (q) : (p))
#define CLAMP_FLOAT(p, o, q) ((o) != (o) ? (o) : (p) != (p) ? (p) : (q) != (q) ? (q) : CLAMP(p, o, q))
ARITH3(pred_clamp, uint8_t, uint8_t, CLAMP(p, o, q))
ARITH3(s32_clamp, int32_t, int32_t, CLAMP(p, o, q))
ARITH3(u32_clamp, uint32_t, uint32_t, CLAMP(p, o, q))
ARITH3(s64_clamp, int64_t, int64_t, CLAMP(p, o, q))
ARITH3(u64_clamp, uint64_t, uint64_t, CLAMP(p, o, q))
ARITH3(f32_clamp, float, float, CLAMP_FLOAT(p, o, q))
ARITH3(f64_clamp, double, double, CLAMP_FLOAT(p, o, q))

ArithFn *arith_clamp(Domain d)
{
    static ArithFn *const table[DOMAIN_COUNT] = {
        [DOMAIN_PRED] = pred_clamp, [DOMAIN_S32] = s32_clamp, [DOMAIN_U32] = u32_clamp, [DOMAIN_S64] = s64_clamp, [DOMAIN_U64] = u64_clamp,
        [DOMAIN_F32] = f32_clamp, [DOMAIN_F64] = f64_clamp,
    };
    return table[d];
}
