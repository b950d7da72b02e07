/* cholesky and triangular-solve, matrix by matrix in f64 or c128. Source: reference operations 11.2, 11.3. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "eval/arith.h"
#include "eval/engine.h"

EvalFn eval_cholesky, eval_triangular_solve;

/* REAL(v) and CONJ(v) of the domain; SOLVE sees a and b through strides, so that sides and transposes are only strides.
 *
 * Cholesky by rows, a = l l^H:  l[j,k] = (a[j,k] - sum of l[j,p] conj l[k,p]) / l[k,k];  l[j,j] = sqrt(a[j,j] - sum of |l[j,p]|^2).
 * A pivot that is negative or NaN makes the whole matrix NaN; the other triangle is 0. ar and ac step to the next row and
 * column of the lower triangle: an upper one is read and written transposed (a = u^H u, u = l^H).
 *
 * Substitution solves t x = b for one column, t[r,c] at a[r*ar + c*ac], from the first row down (forward) or the last row up. */
#define LINALG(S, T)                                                                                                            \
    static void S##_cholesky(T *m, int64_t n, bool lower)                                                                       \
    {                                                                                                                           \
        int64_t r = lower ? n : 1, c = lower ? 1 : n;                                                                           \
        bool failed = false;                                                                                                    \
        for (int64_t j = 0; j < n; j++)                                                                                         \
            for (int64_t k = 0; k <= j; k++) {                                                                                  \
                T sum = m[j * r + k * c];                                                                                       \
                if (!lower)                                                                                                     \
                    sum = CONJ(sum);                                                                                            \
                for (int64_t p = 0; p < k; p++)                                                                                 \
                    sum -= m[j * r + p * c] * CONJ(m[k * r + p * c]);                                                           \
                failed = failed || (j == k && !(REAL(sum) >= 0));                                                               \
                m[j * r + k * c] = j == k ? (T)sqrt(REAL(sum)) : sum / m[k * r + k * c];                                        \
                if (j != k)                                                                                                     \
                    m[k * r + j * c] = 0;                                                                                       \
            }                                                                                                                   \
        for (int64_t j = 0; j < n * n; j++)                                                                                     \
            m[j] = failed ? (T)NAN : lower ? m[j] : CONJ(m[j]);                                                                 \
    }                                                                                                                           \
    static void S##_solve(const T *a, int64_t ar, int64_t ac, T *b, int64_t bs, int64_t n, bool forward, bool unit, bool conj_a) \
    {                                                                                                                           \
        for (int64_t step = 0; step < n; step++) {                                                                              \
            int64_t r = forward ? step : n - 1 - step;                                                                          \
            T sum = b[r * bs];                                                                                                  \
            for (int64_t s = 0; s < step; s++) {                                                                                \
                int64_t c = forward ? s : n - 1 - s;                                                                            \
                T v = a[r * ar + c * ac];                                                                                       \
                sum -= (conj_a ? CONJ(v) : v) * b[c * bs];                                                                      \
            }                                                                                                                   \
            T d = a[r * ar + r * ac];                                                                                           \
            b[r * bs] = unit ? sum : sum / (conj_a ? CONJ(d) : d);                                                              \
        }                                                                                                                       \
    }

#define REAL(v) (v)
#define CONJ(v) (v)
LINALG(f64, double)
#undef REAL
#undef CONJ
#define REAL(v) creal(v)
#define CONJ(v) make_c128(creal(v), 0 - cimag(v)) /* keeps the zeros of real numbers positive */
LINALG(c128, double _Complex)

static Type computing_type(Type t)
{
    return type_is_complex(t) ? TYPE_C128 : TYPE_F64;
}

/* x[k] as a new array of the type that is computed in. */
static Literal *working_copy(Eval *e, const Inst *i, Literal **x, int32_t k)
{
    return eval_cast(e, i, eval_take(e, i, x, k), computing_type(i->shape->type));
}

Literal *eval_cholesky(Eval *e, const Inst *i, Literal **x)
{
    int64_t n = x[0]->dims[x[0]->rank - 1], size = n * n;
    bool lower = inst_bool(i, ATTR_LOWER);
    Literal *m = working_copy(e, i, x, 0);
    for (int64_t at = 0; m && size > 0 && at < m->count && eval_work(e, i, n * size); at += size)
        if (m->type == TYPE_F64)
            f64_cholesky((double *)m->data + at, n, lower);
        else
            c128_cholesky((double _Complex *)m->data + at, n, lower);
    return eval_cast(e, i, m, i->shape->type);
}

/* op(a) x = b, or x op(a) = b, which is op(a)^T x^T = b^T. */
Literal *eval_triangular_solve(Eval *e, const Inst *i, Literal **x)
{
    bool left = inst_bool(i, ATTR_LEFT_SIDE), lower = inst_bool(i, ATTR_LOWER), unit = inst_bool(i, ATTR_UNIT_DIAGONAL);
    Word op = inst_word(i, ATTR_TRANSPOSE_A);
    bool turned = (op != TRANSPOSE_NO) != !left; /* t[r,c] is a[c,r] */
    int64_t n = x[0]->dims[x[0]->rank - 1], columns = x[1]->dims[x[1]->rank - 1], rows = x[1]->dims[x[1]->rank - 2];
    Literal *a = working_copy(e, i, x, 0), *b = working_copy(e, i, x, 1);
    int64_t others = left ? columns : rows, bs = left ? columns : 1, next = left ? 1 : columns;
    int64_t ar = turned ? 1 : n, ac = turned ? n : 1, matrices = a && n > 0 ? a->count / (n * n) : 0;
    for (int64_t m = 0; b && m < matrices && eval_work(e, i, n * n * others); m++)
        for (int64_t k = 0; k < others; k++) {
            int64_t at = m * rows * columns + k * next;
            if (b->type == TYPE_F64)
                f64_solve((double *)a->data + m * n * n, ar, ac, (double *)b->data + at, bs, n, lower != turned, unit, false);
            else
                c128_solve((double _Complex *)a->data + m * n * n, ar, ac, (double _Complex *)b->data + at, bs, n, lower != turned, unit,
                           op == TRANSPOSE_ADJOINT);
        }
    eval_drop(e, a);
    return eval_cast(e, i, b, i->shape->type);
}
