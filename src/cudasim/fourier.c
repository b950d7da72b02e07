/* Fourier transforms as a device's library does them, by their definition, one dimension after the other, in double. */
#include "cudasim/sim.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

typedef struct Call {
    cudasim_transform t;
    void             *out;
    const void       *in;
} Call;

static int64_t product(const int64_t *size, int from, int to)
{
    int64_t n = 1;
    for (int k = from; k < to; k++)
        n *= size[k];
    return n;
}

/* Numbers of a complex array: of the last dimension only half is there when the other end is real. */
static int64_t kept(const cudasim_transform *t)
{
    const int64_t n = t->size[t->rank - 1];
    return t->from_real || t->to_real ? n / 2 + 1 : n;
}

static double real_at(const cudasim_transform *t, const void *p, int64_t i)
{
    return t->wide ? ((const double *)p)[i] : ((const float *)p)[i];
}

static void put_real(const cudasim_transform *t, void *p, int64_t i, double v)
{
    if (t->wide)
        ((double *)p)[i] = v;
    else
        ((float *)p)[i] = (float)v;
}

/* The input as numbers of the whole array; of a half the other half is not there yet. */
static void fill(const cudasim_transform *t, const void *in, int64_t all, double complex *x)
{
    const int64_t n = t->size[t->rank - 1], some = t->to_real ? kept(t) : n;
    for (int64_t i = 0; i < all; i++) {
        const int64_t at = i / n * some + i % n;
        x[i] = t->from_real ? real_at(t, in, i) : i % n < some ? CMPLX(real_at(t, in, 2 * at), real_at(t, in, 2 * at + 1)) : 0;
    }
}

/* The other half of each line of the last dimension, which becomes real: what stands alone is taken as real. */
static void mirror(const cudasim_transform *t, int64_t all, double complex *x)
{
    const int64_t n = t->size[t->rank - 1];
    for (int64_t i = 0; i < all; i += n) {
        x[i] = creal(x[i]);
        if (n % 2 == 0)
            x[i + n / 2] = creal(x[i + n / 2]);
        for (int64_t k = n / 2 + 1; k < n; k++)
            x[i + k] = conj(x[i + n - k]);
    }
}

/* Lines of n numbers, `stride` apart. */
static void transform_lines(double complex *x, int64_t all, int64_t n, int64_t stride, double sign, double complex *line, double complex *roots)
{
    for (int64_t k = 0; k < n; k++)
        roots[k] = cexp(CMPLX(0, sign * 2 * acos(-1) * (double)k / (double)n));
    for (int64_t first = 0; first < all; first++) {
        if (first / stride % n != 0)
            continue;
        for (int64_t k = 0; k < n; k++) {
            line[k] = 0;
            for (int64_t j = 0; j < n; j++)
                line[k] += x[first + j * stride] * roots[j * k % n];
        }
        for (int64_t k = 0; k < n; k++)
            x[first + k * stride] = line[k];
    }
}

static void transform_member(const cudasim_transform *t, int64_t member, void *out, const void *in, double complex *x, double complex *line)
{
    const int64_t all = product(t->size, 0, t->rank), n = t->size[t->rank - 1], half = all / n * kept(t), unit = t->wide ? 8 : 4;
    const char   *from = (const char *)in + member * (t->from_real ? all : 2 * half) * unit;
    char         *to = (char *)out + member * (t->to_real ? all : 2 * half) * unit;
    fill(t, from, all, x);
    for (int k = 0; k < t->rank; k++) {
        if (k + 1 == t->rank && t->to_real)
            mirror(t, all, x);
        transform_lines(x, all, t->size[k], product(t->size, k + 1, t->rank), t->inverse ? 1 : -1, line, line + t->size[k]);
    }
    for (int64_t i = 0; i < all && t->to_real; i++)
        put_real(t, to, i, creal(x[i]));
    for (int64_t i = 0; i < half && !t->to_real; i++) {
        const double complex v = x[i / kept(t) * n + i % kept(t)];
        put_real(t, to, 2 * i, creal(v));
        put_real(t, to, 2 * i + 1, cimag(v));
    }
}

static void run(void *cookie)
{
    const Call              *c = cookie;
    const cudasim_transform *t = &c->t;
    const int64_t            all = product(t->size, 0, t->rank), n = t->size[t->rank - 1];
    double complex          *x = malloc((size_t)(3 * all) * sizeof *x);
    if (!x)
        cudasim_fault(NULL, 0, "no memory for a library's transform");
    for (int64_t m = 0; m < t->batch && x; m++)
        transform_member(t, m, c->out, c->in, x, x + all);
    for (int64_t i = 0; i < t->batch * (all / n) * kept(t) * 2 && t->to_real; i++) /* its input is destroyed */
        put_real(t, (void *)(uintptr_t)c->in, i, NAN);
    free(x);
}

cudaError_t cudasim_enqueue_transform(const cudasim_transform *t, void *out, const void *in, cudaStream_t s)
{
    LOCKED;
    const Call    c = { *t, out, in };
    const int64_t all = product(t->size, 0, t->rank), half = 2 * (all / t->size[t->rank - 1]) * kept(t), unit = t->wide ? 8 : 4;
    const int64_t in_bytes = (t->from_real ? all : half) * t->batch * unit, out_bytes = (t->to_real ? all : half) * t->batch * unit;
    if (!cudasim_memory_is_device(in, (size_t)in_bytes) || !cudasim_memory_is_device(out, (size_t)out_bytes) || (in == out && (t->from_real || t->to_real)))
        return cudaErrorInvalidValue;
    return cudasim_enqueue_work(run, &c, sizeof c, s);
}
