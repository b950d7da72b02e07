/* solve.c - triangular systems: T X = B, or X T = B.
 *
 *     for blocks of 64 unknowns:  X of the block = B of the block - products with the blocks that are known      one product of matrices
 *         for blocks of 8:        likewise                                                                      another one
 *             one by one:         X[r] = (X[r] - sum over s of T[r, s] * X[s]) / T[r, r]
 *
 * Unknowns are the rows of X, where T is on its left, else its columns. X is B's copy at first. The other half of T is not read: anything may be there. */
#include "runtime/gemm.h"
#include "runtime/pool.h"
#include "runtime/vec.h"

#include <stddef.h>

enum { BLOCK = 64, LEAF = 8 };

/* One system. */
typedef struct Matrix {
    const hlort_solve *d;
    const void        *t;
    void              *x, *work;
    hlort_pool        *pool;
} Matrix;

typedef struct Place {
    void   *x;
    int64_t row;
} Place;

#define R       float
#define N(x)    HLORT_PASTE(x, f32)
#define PRODUCT GEMM_F32
#include "runtime/solve_body.h"

#define R       double
#define N(x)    HLORT_PASTE(x, f64)
#define PRODUCT GEMM_F64
#include "runtime/solve_body.h"

typedef struct Job {
    const hlort_solve *d;
    const char        *t, *b;
    char              *x;
    int64_t            bytes;
    hlort_pool        *pool; /* for one system */
    void (*block)(const Matrix *m, int64_t from, int64_t n);
} Job;

static void system_of(void *job, int64_t number, void *work)
{
    const Job         *j = job;
    const hlort_solve *d = j->d;
    const int64_t      size = d->rows * d->others * j->bytes;
    char              *x = j->x + number * size;
    const Matrix       m = { .d = d, .t = j->t + number * d->t_batch * j->bytes, .x = x, .work = work, .pool = j->pool };
    if (x != j->b + number * size)
        __builtin_memcpy(x, j->b + number * size, (uint64_t)size);
    j->block(&m, 0, d->rows);
}

/* Threads share the systems, where there are many, or each system's products. */
static void solve(Job *j, const hlort_how *how)
{
    const int64_t count = j->d->count;
    if (count >= 2 * pool_threads(how->pool) && count <= POOL_MOST_PARTS) {
        pool_run(how->pool, system_of, j, count, how->work);
        return;
    }
    j->pool = how->pool;
    for (int64_t k = 0; k < count; k++)
        system_of(j, k, how->work);
}

void hlort_solve_f32(const hlort_solve *d, const hlort_how *how, const float *t, const float *b, float *x)
{
    solve(&(Job){ .d = d, .t = (const char *)t, .b = (const char *)b, .x = (char *)x, .bytes = 4, .block = block_f32 }, how);
}

void hlort_solve_f64(const hlort_solve *d, const hlort_how *how, const double *t, const double *b, double *x)
{
    solve(&(Job){ .d = d, .t = (const char *)t, .b = (const char *)b, .x = (char *)x, .bytes = 8, .block = block_f64 }, how);
}
