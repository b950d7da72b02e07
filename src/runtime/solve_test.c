/* Triangular systems whose numbers are small integers, diagonals of ones and twos: every step is exact, so the solution is B's own maker. The half of T that a solve
 * does not name is NaN, and so is a diagonal of ones that it does not read. */
#include "runtime/hlort.h"
#include "support/check.h"

#include <math.h>

enum { SYSTEMS = 3, MOST = 135, MOST_OTHERS = 19 };

static int next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (int)(*state >> 24);
}

/* Is T[r, c] read? */
static int is_named(const hlort_solve *d, int64_t r, int64_t c)
{
    const int64_t first = d->right ? r : c, second = d->right ? c : r; /* the second unknown needs the first */
    return r == c ? !d->unit : d->backward ? first > second : first < second;
}

static double value(const hlort_solve *d, const double *t, int64_t r, int64_t c)
{
    return r == c && d->unit ? 1 : is_named(d, r, c) ? t[r * d->t_row + c * d->t_col] : 0;
}

typedef struct System {
    double t[SYSTEMS][MOST * MOST], x[SYSTEMS][MOST * MOST_OTHERS], b[SYSTEMS][MOST * MOST_OTHERS];
} System;

static void make(const hlort_solve *d, System *s, uint32_t *state)
{
    for (int64_t k = 0; k < d->count; k++) {
        for (int64_t r = 0; r < d->rows; r++)
            for (int64_t c = 0; c < d->rows; c++)
                s->t[k][r * d->t_row + c * d->t_col] = !is_named(d, r, c) ? NAN : (double)(r == c ? 1 + next(state) % 2 : next(state) % 3 - 1);
        for (int64_t e = 0; e < d->rows * d->others; e++)
            s->x[k][e] = next(state) % 9 - 4;
        for (int64_t r = 0; r < d->rows; r++)
            for (int64_t o = 0; o < d->others; o++) {
                double sum = 0;
                for (int64_t p = 0; p < d->rows; p++)
                    sum += d->right ? s->x[k][o * d->rows + p] * value(d, s->t[k], p, r) : value(d, s->t[k], r, p) * s->x[k][p * d->others + o];
                s->b[k][d->right ? o * d->rows + r : r * d->others + o] = sum;
            }
    }
}

#define SOLVE(name, type, function)                                                                                          \
    static int name(const hlort_solve *d, const System *s, const hlort_how *how)                                             \
    {                                                                                                                        \
        const int64_t square = d->rows * d->rows, size = d->rows * d->others;                                                \
        type         *t = malloc((size_t)(d->count * square) * sizeof *t), *x = malloc((size_t)(d->count * size) * sizeof *x);             \
        int           same = 1;                                                                                              \
        for (int64_t k = 0; k < d->count; k++) {                                                                             \
            for (int64_t e = 0; e < square; e++)                                                                             \
                t[k * square + e] = (type)s->t[k][e];                                                                        \
            for (int64_t e = 0; e < size; e++)                                                                               \
                x[k * size + e] = (type)s->b[k][e];                                                                          \
        }                                                                                                                    \
        function(d, how, t, x, x);                                                                                           \
        for (int64_t k = 0; k < d->count; k++)                                                                               \
            for (int64_t e = 0; e < size; e++)                                                                               \
                same &= (double)x[k * size + e] == s->x[k][e];                                                               \
        free(t);                                                                                                             \
        free(x);                                                                                                             \
        return same;                                                                                                         \
    }
SOLVE(solve_f32, float, hlort_solve_f32)
SOLVE(solve_f64, double, hlort_solve_f64)
#undef SOLVE

static void check(const hlort_solve *d, System *s, uint32_t *state, hlort_pool *pool, void *work)
{
    make(d, s, state);
    CHECK(solve_f32(d, s, &(hlort_how){ .work = work, .pool = pool }));
    CHECK(solve_f64(d, s, &(hlort_how){ .work = work, .pool = pool }));
}

int main(void)
{
    static const int64_t rows[] = { 1, 7, 8, 9, 64, 65, MOST }, others[] = { 1, 4, MOST_OTHERS };
    uint32_t             state = 7;
    hlort_pool          *pool = hlort_pool_new(3);
    void                *work = aligned_alloc(64, HLORT_WORK_BYTES);
    System              *s = malloc(sizeof *s);
    for (int k = 0; k < 7; k++)
        for (int o = 0; o < 3; o++)
            for (int way = 0; way < 16; way++) {
                const int64_t n = rows[k], turned = way & 8;
                hlort_solve   d = { .count = o == 1 ? 1 : SYSTEMS, .rows = n, .others = others[o], .right = way & 1, .backward = way & 2, .unit = way & 4 };
                d.t_row = turned ? 1 : n;
                d.t_col = turned ? n : 1;
                d.t_batch = n * n;
                check(&d, s, &state, way % 3 ? pool : NULL, work);
            }
    hlort_pool_free(pool);
    free(work);
    free(s);
    return 0;
}
