/* Lines against plain loops, on every set of instructions that this processor has, with one thread and with several, whose bits are the same. Numbers are such that no
 * sum is rounded but those of f16 and bf16, so that the order does not matter. Arrays are allocated to the byte: a sanitizer sees what is read beside them. */
#include "runtime/test_types.h"

#include <math.h>
#include <string.h>

static uint32_t random_of(uint32_t *state)
{
    return random_bits(state) >> 8;
}

/* What x[k] = element(bits) are, and what the line is then, as the definition has it. */
#define LINES(NAME, TYPE, WRAPS, ELEMENT, IS_NAN)                                                                             \
    static TYPE NAME##_joined(hlort_scan_kind kind, TYPE a, TYPE b)                                                           \
    {                                                                                                                         \
        switch (kind) {                                                                                                       \
        case HLORT_SCAN_ADD: return (TYPE)((WRAPS)a + (WRAPS)b);                                                              \
        case HLORT_SCAN_MULTIPLY: return (TYPE)((WRAPS)a * (WRAPS)b);                                                         \
        case HLORT_SCAN_MINIMUM: return IS_NAN(a) ? a : IS_NAN(b) || b < a ? b : a;                                           \
        default: return IS_NAN(a) ? a : IS_NAN(b) || b > a ? b : a;                                                           \
        }                                                                                                                     \
    }                                                                                                                         \
    static int NAME##_is(const TYPE *got, const TYPE *x, const hlort_scan *d, TYPE start)                                     \
    {                                                                                                                         \
        for (int64_t line = 0; line < d->lines; line++) {                                                                     \
            TYPE carry = start;                                                                                               \
            for (int64_t k = 0; k < d->count; k++) {                                                                          \
                const int64_t at = line * d->count + (d->backward ? d->count - 1 - k : k);                                    \
                carry = NAME##_joined(d->kind, carry, x[at]);                                                                 \
                if (got[at] != carry && !(IS_NAN(got[at]) && IS_NAN(carry)))                                                  \
                    return 0;                                                                                                 \
            }                                                                                                                 \
        }                                                                                                                     \
        return 1;                                                                                                             \
    }                                                                                                                         \
    static void NAME##_lines(const hlort_scan *d, hlort_pool *pool, uint32_t seed)                                            \
    {                                                                                                                         \
        const size_t size = (size_t)(d->lines * d->count) * sizeof(TYPE);                                                     \
        const TYPE   start = d->kind == HLORT_SCAN_MULTIPLY ? 1 : 2;                                                          \
        TYPE        *x = malloc(size + !size), *y = malloc(size + !size), *z = malloc(size + !size);                          \
        void        *work = malloc((size_t)hlort_scan_bytes(d) + 1);                                                          \
        for (int64_t k = 0; k < d->lines * d->count; k++) {                                                                   \
            const uint32_t bits = random_of(&seed);                                                                           \
            x[k] = d->kind == HLORT_SCAN_MULTIPLY ? (TYPE)(bits % 2 ? 1 : -1) : (TYPE)(ELEMENT);                              \
        }                                                                                                                     \
        for (int s = 0; s < N_SETS; s++) {                                                                                    \
            if (!has(sets[s]))                                                                                                \
                continue;                                                                                                     \
            hlort_scan_by(sets[s], d, &(hlort_how){ .work = work }, x, &start, y);                                            \
            CHECK(NAME##_is(y, x, d, start));                                                                                 \
            hlort_scan_by(sets[s], d, &(hlort_how){ .work = work, .pool = pool }, x, &start, z);                              \
            CHECK(size == 0 || memcmp(y, z, size) == 0);                                                                      \
        }                                                                                                                     \
        free(x), free(y), free(z), free(work);                                                                                \
    }

#define NEVER(x) ((void)(x), 0)
#define EXTREME(d) ((d)->kind >= HLORT_SCAN_MINIMUM)
LINES(f32, float, float, EXTREME(d) && bits % 4099 == 0 ? NAN : EXTREME(d) && bits % 513 == 0 ? -INFINITY : (float)(bits % 9) - 4, isnan)
LINES(f64, double, double, EXTREME(d) && bits % 4099 == 0 ? (double)NAN : (double)(bits % 9) - 4, isnan)
LINES(s32, int32_t, uint32_t, bits * 2654435761u, NEVER)
LINES(s64, int64_t, uint64_t, bits * 0x9e3779b97f4a7c15u, NEVER)

/* f16 and bf16: whole numbers, whose sums are rounded at every step. */
static uint16_t nan_of(Kind t)
{
    return t == F16 ? 0x7e00 : 0x7fc0;
}

static int is_narrow_nan(Kind t, uint16_t x)
{
    return (x & 0x7fff) > (t == F16 ? 0x7c00 : 0x7f80);
}

static int narrow_is(Kind t, const uint16_t *got, const uint16_t *x, const hlort_scan *d, double start)
{
    for (int64_t line = 0; line < d->lines; line++) {
        double carry = start;
        for (int64_t k = 0; k < d->count; k++) {
            const int64_t at = line * d->count + (d->backward ? d->count - 1 - k : k);
            carry = f64_joined(d->kind, carry, is_narrow_nan(t, x[at]) ? (double)NAN : get(t, x, at));
            carry = isnan(carry) ? carry : stored(t, carry);
            if (is_narrow_nan(t, got[at]) ? !isnan(carry) : get(t, got, at) != carry)
                return 0;
        }
    }
    return 1;
}

static void narrow_lines(Kind t, const hlort_scan *d, hlort_pool *pool, uint32_t seed)
{
    const size_t size = (size_t)(d->lines * d->count) * sizeof(uint16_t);
    uint16_t    *x = malloc(size + !size), *y = malloc(size + !size), *z = malloc(size + !size), start;
    put(t, &start, 0, 3);
    for (int64_t k = 0; k < d->lines * d->count; k++) {
        const uint32_t bits = random_of(&seed);
        put(t, x, k, d->kind == HLORT_SCAN_MULTIPLY ? (bits % 2 ? 1 : -1) : (int)(bits % 41) - 20);
        if (EXTREME(d) && bits % 4099 == 0)
            x[k] = nan_of(t);
    }
    for (int s = 0; s < N_SETS; s++) {
        if (!has(sets[s]))
            continue;
        hlort_scan_by(sets[s], d, &(hlort_how){ 0 }, x, &start, y);
        CHECK(narrow_is(t, y, x, d, 3));
        hlort_scan_by(sets[s], d, &(hlort_how){ .pool = pool }, x, &start, z);
        CHECK(size == 0 || memcmp(y, z, size) == 0);
    }
    free(x), free(y), free(z);
}

static void f16_lines(const hlort_scan *d, hlort_pool *pool, uint32_t seed)
{
    narrow_lines(F16, d, pool, seed);
}

static void bf16_lines(const hlort_scan *d, hlort_pool *pool, uint32_t seed)
{
    narrow_lines(BF16, d, pool, seed);
}

static void check(hlort_scan d, hlort_pool *pool, uint32_t seed)
{
    static void (*const lines[])(const hlort_scan *, hlort_pool *, uint32_t) = { f32_lines, f64_lines, s32_lines, s64_lines, f16_lines, bf16_lines };
    for (int type = 0; type < HLORT_SCAN_TYPES; type++)
        for (int kind = 0; kind < HLORT_SCAN_KINDS; kind++)
            for (int backward = 0; backward < 2; backward++) {
                d.type = (hlort_scan_type)type;
                d.kind = (hlort_scan_kind)kind;
                d.backward = backward;
                lines[type](&d, pool, seed);
            }
}

/* Sums that are rounded: the same bits for any number of threads all the same. */
static void check_rounding(hlort_pool *pool)
{
    enum { N = 5 * HLORT_SCAN_CHUNK + 77 };
    const hlort_scan d = { .kind = HLORT_SCAN_ADD, .type = HLORT_SCAN_F32, .lines = 1, .count = N };
    const float      start = 0.1f;
    float           *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y), *z = malloc(N * sizeof *z), work[64];
    uint32_t         state = 5;
    double           sum = start;
    for (int k = 0; k < N; k++)
        x[k] = (float)random_of(&state) * 1e-7f;
    hlort_scan_lines(&d, &(hlort_how){ .work = work }, x, &start, y);
    hlort_scan_lines(&d, &(hlort_how){ .work = work, .pool = pool }, x, &start, z);
    CHECK(memcmp(y, z, N * sizeof *y) == 0);
    for (int k = 0; k < N; k++) {
        sum += (double)x[k];
        CHECK(fabs((double)y[k] - sum) <= 1e-5 * sum); /* 3e-6 with vectors of 4 lanes */
    }
    free(x), free(y), free(z);
}

int main(void)
{
    static const int64_t counts[] = { 0, 1, 2, 3, 7, 15, 16, 31, 63, 64, 65, 127, 130, 1000 };
    hlort_pool          *pool = hlort_pool_new(3);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        check((hlort_scan){ .lines = 3, .count = counts[k] }, pool, (uint32_t)k);
    check((hlort_scan){ .lines = 0, .count = 5 }, pool, 1);
    check((hlort_scan){ .lines = 1, .count = HLORT_SCAN_CHUNK }, pool, 2);
    check((hlort_scan){ .lines = 2, .count = 3 * HLORT_SCAN_CHUNK + 5 }, pool, 3);
    check((hlort_scan){ .lines = 300, .count = 301 }, pool, 4);
    for (int64_t lines = 1; lines < 70; lines += 7)
        check((hlort_scan){ .lines = lines, .count = 75 }, pool, (uint32_t)lines);
    check_rounding(pool);
    hlort_pool_free(pool);
    return 0;
}
