/* fft over the last dimensions, in c128. Source: reference operations 11.1.
 *
 *   FFT    X[k] = sum over n of x[n] e^(-2 pi i n k / l), axis by axis      IFFT   e^(+...), divided by the product of the lengths
 *   RFFT   of real values, the first l/2 + 1 outputs of the last axis       IRFFT  the missing half is the conjugate, the result is real
 *
 * A length p m with p its smallest prime factor is p transforms of length m, combined; a prime length is the definition itself. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "eval/arith.h"
#include "eval/engine.h"
#include "eval/walk.h"

EvalFn eval_fft;

typedef double _Complex Complex;

typedef struct Transform {
    int64_t  n;
    Complex *roots; /* roots[k] = e^(-+2 pi i k / n) */
    Complex *line, *out, *room;
} Transform;

static int64_t smallest_factor(int64_t n)
{
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

/* out[0..n) = transform of in[0], in[step], ... ; n divides t->n. */
static void transform(const Transform *t, const Complex *in, int64_t step, Complex *out, int64_t n)
{
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    int64_t p = smallest_factor(n), m = n / p, turn = t->n / n;
    for (int64_t r = 0; r < p; r++)
        transform(t, in + r * step, step * p, out + r * m, m);
    for (int64_t k = 0; k < m; k++) {
        for (int64_t q = 0; q < p; q++) {
            Complex sum = 0;
            for (int64_t r = 0; r < p; r++)
                sum += out[r * m + k] * t->roots[turn * (r * (k + q * m) % n)];
            t->room[q] = sum;
        }
        for (int64_t q = 0; q < p; q++)
            out[q * m + k] = t->room[q];
    }
}

/* e^(2 pi i k / n): quarter turns are exact. */
static Complex root(int64_t k, int64_t n)
{
    int64_t quarter = 4 * k / n;
    double angle = 3.14159265358979323846 / 2 * ((double)(4 * k - quarter * n) / (double)n), c = cos(angle), s = sin(angle);
    switch (quarter) {
    case 0: return make_c128(c, s);
    case 1: return make_c128(-s, c);
    case 2: return make_c128(-c, -s);
    default: return make_c128(s, -c);
    }
}

/* Every line of x [.., n, ..] along dim. */
static void transform_axis(Transform *t, Literal *x, int32_t dim, bool inverse)
{
    t->n = x->dims[dim];
    for (int64_t k = 0; k < t->n; k++)
        t->roots[k] = inverse ? root(k, t->n) : conj(root(k, t->n));
    Odometer lines = {.rank = x->rank, .arrays = 1};
    memcpy(lines.dims, x->dims, (size_t)x->rank * sizeof x->dims[0]);
    walk_strides(x->rank, x->dims, lines.stride[0]);
    int64_t step = lines.stride[0][dim];
    lines.dims[dim] = 1;
    do {
        Complex *at = (Complex *)x->data + lines.at[0];
        walk_copy_row(t->line, 1, at, step, t->n, sizeof(Complex));
        transform(t, t->line, 1, t->out, t->n);
        for (int64_t k = 0; k < t->n; k++)
            at[k * step] = inverse ? t->out[k] / (double)t->n : t->out[k];
    } while (walk_next(&lines));
}

/* The first elements of every line along the last dimension. hermitian: lines that are too short go on with conjugates, X[l-k] = conj X[k],
 * and what is its own conjugate is real. */
static Literal *resized(Eval *e, const Inst *i, Literal *x, int64_t length, bool hermitian)
{
    int64_t dims[WALK_RANK], n = x->dims[x->rank - 1];
    memcpy(dims, x->dims, (size_t)x->rank * sizeof dims[0]);
    dims[x->rank - 1] = length;
    Literal *r = eval_new(e, i, TYPE_C128, x->rank, dims);
    const Complex *from = x->data;
    Complex *to = r ? r->data : NULL;
    for (int64_t at = 0; r && at < r->count; at++) {
        int64_t k = at % length, line = at / length;
        to[at] = k < n ? from[line * n + k] : conj(from[line * n + length - k]);
        if (hermitian && (k == 0 || 2 * k == length))
            to[at] = creal(to[at]);
    }
    eval_drop(e, x);
    return r;
}

static Literal *run(Eval *e, const Inst *i, Transform *t, Literal *x, Word kind, int32_t axes)
{
    bool inverse = kind == FFT_IFFT || kind == FFT_IRFFT;
    int32_t last = x->rank - 1;
    int64_t length = inst_ints(i, ATTR_FFT_LENGTH).v[axes - 1];
    if (kind != FFT_IRFFT)
        transform_axis(t, x, last, inverse);
    if (kind == FFT_RFFT)
        x = resized(e, i, x, length / 2 + 1, false);
    for (int32_t d = last - 1; x && d > last - axes; d--)
        transform_axis(t, x, d, inverse);
    if (kind == FFT_IRFFT) {
        x = resized(e, i, x, length, true);
        if (x)
            transform_axis(t, x, last, inverse);
    }
    return x;
}

Literal *eval_fft(Eval *e, const Inst *i, Literal **x)
{
    Ints lengths = inst_ints(i, ATTR_FFT_LENGTH);
    int64_t longest = 1, work = 0;
    for (int32_t k = 0; k < lengths.n; k++) {
        longest = lengths.v[k] > longest ? lengths.v[k] : longest;
        int64_t factor_sum = 0;
        for (int64_t n = lengths.v[k]; n > 1; n /= smallest_factor(n))
            factor_sum += smallest_factor(n);
        work += factor_sum * x[0]->count;
    }
    Literal *values = eval_cast(e, i, x[0]->refs == 1 ? eval_move(x, 0) : eval_copy(e, i, x[0]), TYPE_C128);
    if (!values || values->count == 0 || !eval_work(e, i, work)) {
        eval_drop(e, values);
        return e->failed ? NULL : eval_new_for(e, i, i->shape);
    }
    Literal *memory = eval_new(e, i, TYPE_C128, 2, (int64_t[]){4, longest});
    if (memory) {
        Complex *m = memory->data;
        Transform t = {.roots = m, .line = m + longest, .out = m + 2 * longest, .room = m + 3 * longest};
        values = run(e, i, &t, values, inst_word(i, ATTR_FFT_TYPE), lengths.n);
    }
    eval_drop(e, memory);
    return eval_cast(e, i, values, i->shape->type);
}
