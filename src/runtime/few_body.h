/* few_body.h - products with few rows and few columns, of long k: sums of many equations, X^T X and X^T y. Rows of A are neighbours, as are columns of B.
 *
 * Included by gemv_body.h where a word is an element, with its names. All sums stay in registers while k is gone through once for some rows and the columns of a vector. Where
 * rows are so few that their sums would wait for themselves, several k at a time have sums of their own. What is summed at once is not much, since long sums lose digits. */

enum {
    N(BOTH_ROWS) = 8, /* of a kernel, at most: as many sums do not wait for each other */
    N(BOTH_K) = 1024  /* steps of a sum */
};

/* `mr` rows by fewer columns than a vector has, or as many: of a vector's first lanes, or of all. */
#define BOTH(name, part)                                                                                                                  \
    typedef TC N(name##_lanes) __attribute__((vector_size(VL / (part) * (int)sizeof(TC))));                                               \
    INLINE void N(name##_step)(int mr, N(name##_lanes) *acc, const TE *a, int64_t a_row, const TE *b)                                     \
    {                                                                                                                                     \
        const VC        all = N(widen)(b);                                                                                                \
        N(name##_lanes) w;                                                                                                                \
        __builtin_memcpy(&w, &all, sizeof w);                                                                                             \
        IN_REGISTER(w);                                                                                                                   \
        UNROLL for (int r = 0; r < mr; r++)                                                                                               \
            acc[r] += N(widen1)(a[r * a_row]) * w;                                                                                        \
    }                                                                                                                                     \
    INLINE void N(name##_run)(int mr, int at_once, N(name##_lanes) *sum, const Gemm *g, const TE *a, const TE *b, int64_t row, int64_t k) \
    {                                                                                                                                     \
        for (int64_t p = 0, end; p < k; p = end) {                                                                                        \
            N(name##_lanes) acc[N(BOTH_ROWS)];                                                                                            \
            end = hlort_min(k, p + N(BOTH_K));                                                                                            \
            UNROLL for (int s = 0; s < mr * at_once; s++)                                                                                 \
                acc[s] = (N(name##_lanes)){ 0 };                                                                                          \
            ROLLED for (; p + at_once <= end; p += at_once, a += at_once * g->a_col, b += at_once * row)                                  \
                UNROLL for (int q = 0; q < at_once; q++)                                                                                  \
                    N(name##_step)(mr, acc + q * mr, a + q * g->a_col, g->a_row, b + q * row);                                            \
            ROLLED for (; p < end; p++, a += g->a_col, b += row)                                                                          \
                N(name##_step)(mr, acc, a, g->a_row, b);                                                                                  \
            UNROLL for (int s = mr; s < mr * at_once; s++)                                                                                \
                acc[s % mr] += acc[s];                                                                                                    \
            UNROLL for (int r = 0; r < mr; r++)                                                                                           \
                sum[r] += acc[r];                                                                                                         \
        }                                                                                                                                 \
    }                                                                                                                                     \
    INLINE void N(name)(int mr, int at_once, const Gemm *g, const TE *a, const N(Held) *h, TC *c, int64_t c_row, int64_t n)               \
    {                                                                                                                                     \
        N(name##_lanes) sum[N(BOTH_ROWS)];                                                                                                \
        TC              few[VL] __attribute__((aligned(64)));                                                                             \
        UNROLL for (int r = 0; r < mr; r++)                                                                                               \
            sum[r] = (N(name##_lanes)){ 0 };                                                                                              \
        N(name##_run)(mr, at_once, sum, g, a, h->b, g->b_row, h->rows);                                                                   \
        N(name##_run)(mr, 1, sum, g, a + h->rows * g->a_col, h->tail, VL, g->k - h->rows);                                                \
        UNROLL for (int r = 0; r < mr; r++) {                                                                                             \
            __builtin_memcpy(few, &sum[r], sizeof sum[r]);                                                                                \
            __builtin_memcpy(c + r * c_row, few, (uint64_t)n * sizeof *few);                                                              \
        }                                                                                                                                 \
    }                                                                                                                                     \
    APART void N(name##_rows)(const Gemm *g, const TE *a, const N(Held) *h, TC *c, int64_t c_row, int64_t rows, int64_t n)                \
    {                                                                                                                                     \
        for (; rows >= 8; rows -= 8, a += 8 * g->a_row, c += 8 * c_row)                                                                   \
            N(name)(8, 1, g, a, h, c, c_row, n);                                                                                          \
        for (; rows >= 4; rows -= 4, a += 4 * g->a_row, c += 4 * c_row)                                                                   \
            N(name)(4, 2, g, a, h, c, c_row, n);                                                                                          \
        if (rows == 3)                                                                                                                    \
            N(name)(3, 2, g, a, h, c, c_row, n);                                                                                          \
        else if (rows == 2)                                                                                                               \
            N(name)(2, 4, g, a, h, c, c_row, n);                                                                                          \
        else if (rows == 1)                                                                                                               \
            N(name)(1, 8, g, a, h, c, c_row, n);                                                                                          \
    }
BOTH(both_whole, 1)
#if VECTOR_BYTES >= 32
BOTH(both_half, 2)
#endif
#undef BOTH

static void N(both)(const Gemm *g)
{
    N(Work)      *w = g->work;
    N(Held)       h = { g->b, g->b, g->k };
    TC           *c = g->c ? (TC *)g->c : w->sums;
    const int64_t c_row = g->c ? g->c_row : g->n;
    if (g->n < VL)
        N(hold_tail)(g, &h, (TE *)(void *)w->b);
#if VECTOR_BYTES >= 32
    if (g->n <= VL / 2) {
        N(both_half_rows)(g, g->a, &h, c, c_row, g->m, g->n);
    } else
#endif
        for (int64_t j = 0; j < g->n; j += VL) { /* the last columns are summed twice where they do not fill a vector */
            const int64_t at = hlort_max(0, hlort_min(j, g->n - VL));
            h.b = (const TE *)g->b + at;
            N(both_whole_rows)(g, g->a, &h, c + at, c_row, g->m, hlort_min(VL, g->n));
        }
    if (g->epilogue)
        N(finish)(g, c, c_row, 0, 0, g->m, g->n);
}
