/* walk_body.h - the kernels of walk.h, once for all sets of instructions.
 *
 * Included after gemm_tile.h, with its names and its ROWS, for words that are elements. Rows are found from four places, by addresses that have a row's distance times 1, 2, 4 or 8
 * in them: a register for each row would be too many. */

INLINE TW K(walk_at)(int r, const TW *a0, const TW *a3, const TW *a5, const TW *a10, int64_t row)
{
    switch (r) {
    case 3: return *a3;
    case 5: return *a5;
    case 6: return a5[row];
    case 7: return a3[4 * row];
    case 9: return a5[4 * row];
    case 10: return *a10;
    case 11: return a3[8 * row];
    case 12: return a10[2 * row];
    case 13: return a5[8 * row];
    default: return a0[r * row];
    }
}

/* The compiler would make a place of each row. */
#define SAME_PLACE(p) __asm__("" : "+r"(p))

#define WALK(name, V, VU, LANES, VECTORS)                                                                                                   \
    INLINE void K(name)(int mr, const Walk *w)                                                                                              \
    {                                                                                                                                       \
        V             acc[MR][VECTORS];                                                                                                     \
        const int64_t row = w->a_row, step = w->a_step, c_row = w->c_row;                                                                   \
        TC           *c = w->c;                                                                                                             \
        UNROLL for (int r = 0; r < mr; r++) {                                                                                               \
            UNROLL for (int v = 0; v < VECTORS; v++) {                                                                                      \
                if (VECTORS > 1)                                                                                                            \
                    __builtin_prefetch(c + v * LANES, 1);                                                                                   \
                acc[r][v] = (V){ 0 };                                                                                                       \
            }                                                                                                                               \
            c += c_row;                                                                                                                     \
            SAME_PLACE(c);                                                                                                                  \
        }                                                                                                                                   \
        c = w->c;                                                                                                                           \
        ROLLED for (const WalkRun *run = w->runs, *end = run + w->n_runs; run < end; run++) {                                               \
            const TW *a0 = (const TW *)w->a + run->a, *a3 = a0 + 3 * row, *a5 = a0 + 5 * row, *a10 = a0 + 10 * row;                         \
            const TW *b = (const TW *)w->b + run->b * (VECTORS * LANES), *last = b + run->n * (VECTORS * LANES);                            \
            ROLLED for (; b < last; b += VECTORS * LANES) {                                                                                 \
                V x[VECTORS];                                                                                                               \
                UNROLL for (int v = 0; v < VECTORS; v++)                                                                                    \
                    x[v] = *(const VU *)(b + v * LANES);                                                                                    \
                UNROLL for (int r = 0; r < mr; r++) {                                                                                       \
                    const TW a = K(walk_at)(r, a0, a3, a5, a10, row);                                                                       \
                    UNROLL for (int v = 0; v < VECTORS; v++)                                                                                \
                        acc[r][v] += a * x[v];                                                                                              \
                }                                                                                                                           \
                a0 += step;                                                                                                                 \
                a3 += step;                                                                                                                 \
                a5 += step;                                                                                                                 \
                a10 += step;                                                                                                                \
                SAME_PLACE(a0);                                                                                                             \
                SAME_PLACE(a3);                                                                                                             \
                SAME_PLACE(a5);                                                                                                             \
                SAME_PLACE(a10);                                                                                                            \
            }                                                                                                                               \
        }                                                                                                                                   \
        if (w->add) {                                                                                                                       \
            UNROLL for (int r = 0; r < mr; r++) {                                                                                           \
                UNROLL for (int v = 0; v < VECTORS; v++)                                                                                    \
                    acc[r][v] += *(const VU *)(c + v * LANES);                                                                              \
                c += c_row;                                                                                                                 \
                SAME_PLACE(c);                                                                                                              \
            }                                                                                                                               \
            c = w->c;                                                                                                                       \
        }                                                                                                                                   \
        UNROLL for (int r = 0; r < mr; r++) {                                                                                               \
            UNROLL for (int v = 0; v < VECTORS; v++)                                                                                        \
                *(VU *)(c + v * LANES) = acc[r][v];                                                                                         \
            c += c_row;                                                                                                                     \
            SAME_PLACE(c);                                                                                                                  \
        }                                                                                                                                   \
    }

#if VL >= 8
typedef TC K(half) __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef TC K(halfu) __attribute__((vector_size(VECTOR_BYTES / 2), aligned(sizeof(TC)), may_alias));
WALK(walk_half, K(half), K(halfu), VL / 2, 1)
#endif
WALK(walk_vector, VC, VCU, VL, 1)
WALK(walk_panel, VC, VCU, VL, NV)
#undef WALK
#undef SAME_PLACE

#if VL >= 8
#define WALK_NARROW(r)                                          \
    APART void K(walk_half_##r)(const Walk *w)                  \
    {                                                           \
        K(walk_half)(r, w);                                     \
    }
#define WALK_HALF_OF(r) K(walk_half_##r)
#else
#define WALK_NARROW(r)
#define WALK_HALF_OF(r) 0
#endif
#define X(r)                                                    \
    WALK_NARROW(r)                                              \
    APART void K(walk_vector_##r)(const Walk *w)                \
    {                                                           \
        K(walk_vector)(r, w);                                   \
    }                                                           \
    APART void K(walk_panel_##r)(const Walk *w)                 \
    {                                                           \
        K(walk_panel)(r, w);                                    \
    }
ROWS(X)
#undef X

static void K(walk)(const Walk *w)
{
#define X(r) [r] = { WALK_HALF_OF(r), K(walk_vector_##r), K(walk_panel_##r) },
    static WalkFunction *const kernels[MR + 1][WALK_WIDTHS] = { ROWS(X) };
#undef X
    kernels[w->rows][w->width](w);
}
#undef WALK_NARROW
#undef WALK_HALF_OF

static const WalkKernels K(walk_kernels) = { K(walk), MR, { VL >= 8 ? VL / 2 : 0, VL, K(NR) } };
