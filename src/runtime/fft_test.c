/* Transforms beside sums in long double: every element of small ones, some of large ones; for any number of threads, and with tables that are kept, the same bits. */
#include "runtime/hlort.h"
#include "support/check.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { FEW = 30 }; /* elements of a large result that are checked, of each batch */

static const long double two_pi = 6.283185307179586476925286766559005768L;

static double next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (1 << 23) - 1;
}

typedef struct Array {
    int64_t count; /* of each batch */
    double *re, *im;
} Array;

static Array array_new(int64_t count, int64_t batch)
{
    const size_t bytes = (size_t)(count * batch) * sizeof(double);
    return (Array){ count, malloc(bytes), malloc(bytes) };
}

static void array_free(Array *a)
{
    free(a->re);
    free(a->im);
}

/* Places of the last axis in memory: half of them of a spectrum of real numbers. */
static int64_t last_places(const hlort_fft *d, bool spectrum)
{
    const int64_t n = d->size[d->axes - 1];
    return spectrum && d->kind >= HLORT_RFFT ? n / 2 + 1 : n;
}

static int64_t places(const hlort_fft *d, bool spectrum)
{
    int64_t n = last_places(d, spectrum);
    for (int64_t k = 0; k < d->axes - 1; k++)
        n *= d->size[k];
    return n;
}

/* e^(-2 pi i k / n), k < n, of each axis. */
typedef struct Turns {
    long double *re[HLORT_MOST_FFT_AXES], *im[HLORT_MOST_FFT_AXES];
} Turns;

static Turns turns_new(const hlort_fft *d)
{
    Turns t;
    for (int64_t a = 0; a < d->axes; a++) {
        t.re[a] = malloc((size_t)d->size[a] * sizeof(long double));
        t.im[a] = malloc((size_t)d->size[a] * sizeof(long double));
        for (int64_t k = 0; k < d->size[a]; k++) {
            t.re[a][k] = cosl(two_pi * (long double)k / (long double)d->size[a]);
            t.im[a][k] = -sinl(two_pi * (long double)k / (long double)d->size[a]);
        }
    }
    return t;
}

static void turns_free(const hlort_fft *d, Turns *t)
{
    for (int64_t a = 0; a < d->axes; a++) {
        free(t->re[a]);
        free(t->im[a]);
    }
}

/* Element `at` of a batch's result: the sum over all points of the whole array x. */
static void sum_of(const hlort_fft *d, const Turns *t, const double *re, const double *im, int64_t at, long double *to_re, long double *to_im)
{
    const bool inverse = d->kind == HLORT_IFFT || d->kind == HLORT_IRFFT;
    int64_t    k[HLORT_MOST_FFT_AXES], j[HLORT_MOST_FFT_AXES] = { 0 }, points = 1, rest = at;
    for (int64_t a = d->axes - 1; a >= 0; a--) {
        const int64_t n = a == d->axes - 1 ? last_places(d, d->kind == HLORT_RFFT) : d->size[a];
        k[a] = rest % n;
        rest /= n;
        points *= d->size[a];
    }
    *to_re = *to_im = 0;
    for (int64_t p = 0; p < points; p++) {
        long double c = 1, s = 0;
        for (int64_t a = 0; a < d->axes; a++) {
            const int64_t     turn = j[a] * k[a] % d->size[a];
            const long double r = c * t->re[a][turn] - s * t->im[a][turn];
            s = c * t->im[a][turn] + s * t->re[a][turn];
            c = r;
        }
        s = inverse ? -s : s;
        *to_re += re[p] * c - im[p] * s;
        *to_im += re[p] * s + im[p] * c;
        for (int64_t a = d->axes - 1; a >= 0; a--) {
            if (++j[a] < d->size[a])
                break;
            j[a] = 0;
        }
    }
    if (inverse) {
        *to_re /= (long double)points;
        *to_im /= (long double)points;
    }
}

/* A whole array: random numbers; of IRFFT the spectrum of a real array, all of it, whose stored half is what the library gets. */
static Array make(const hlort_fft *d, uint32_t *state)
{
    Array x = array_new(places(d, false), d->batch);
    for (int64_t k = 0; k < x.count * d->batch; k++) {
        x.re[k] = next(state);
        x.im[k] = d->kind == HLORT_RFFT ? 0 : next(state);
    }
    return x;
}

/* Where -k is. */
static int64_t opposite(const hlort_fft *d, int64_t at)
{
    int64_t to = 0, scale = 1;
    for (int64_t a = d->axes - 1; a >= 0; a--) {
        const int64_t k = at % d->size[a];
        at /= d->size[a];
        to += (d->size[a] - k) % d->size[a] * scale;
        scale *= d->size[a];
    }
    return to;
}

static void make_symmetric(const hlort_fft *d, Array *x)
{
    for (int64_t b = 0; b < d->batch; b++)
        for (int64_t k = 0; k < x->count; k++) {
            const int64_t at = b * x->count + k, other = b * x->count + opposite(d, k);
            x->re[other] = x->re[at];
            x->im[other] = at == other ? 0 : -x->im[at];
        }
}

#define CHECKED(name, type, function)                                                                                                        \
    static void name(const hlort_fft *d, const Array *x, hlort_pool *pool, double allowed)                                                   \
    {                                                                                                                                        \
        const bool    real_in = d->kind == HLORT_RFFT, real_out = d->kind == HLORT_IRFFT;                                                    \
        const int64_t row = d->size[d->axes - 1], kept = last_places(d, d->kind == HLORT_IRFFT), rows = x->count / row * d->batch;           \
        const int64_t to = places(d, d->kind == HLORT_RFFT), out = to * d->batch * (real_out ? 1 : 2);                                       \
        type *in = malloc((size_t)(rows * kept * 2) * sizeof *in), *y = malloc((size_t)out * sizeof *y), *again = malloc((size_t)out * sizeof *y); \
        void *work = aligned_alloc(64, (size_t)(hlort_fft_bytes(d, sizeof(type)) + 63) / 64 * 64);                                           \
        for (int64_t r = 0; r < rows; r++)                                                                                                   \
            for (int64_t k = 0; k < kept; k++) {                                                                                             \
                if (real_in)                                                                                                                 \
                    in[r * kept + k] = (type)x->re[r * row + k];                                                                             \
                else {                                                                                                                       \
                    in[2 * (r * kept + k)] = (type)x->re[r * row + k];                                                                       \
                    in[2 * (r * kept + k) + 1] = (type)x->im[r * row + k];                                                                   \
                }                                                                                                                            \
            }                                                                                                                                \
        function(d, &(hlort_how){ .work = work, .pool = pool }, in, y);                                                                      \
        function(d, &(hlort_how){ .work = work }, in, again);                                                                                \
        CHECK(memcmp(y, again, (size_t)out * sizeof *y) == 0);                                                                               \
        const int64_t bytes = hlort_fft_tables(d, sizeof(type));                                                                             \
        hlort_packed  tables = { .bytes = bytes, .memory = aligned_alloc(64, (size_t)bytes) };                                               \
        for (int kept_them = 0; kept_them < 2; kept_them++) {                                                                                \
            memset(again, 0, (size_t)out * sizeof *y);                                                                                       \
            function(d, &(hlort_how){ .work = work, .pool = pool, .packed = &tables }, in, again);                                           \
            CHECK(memcmp(y, again, (size_t)out * sizeof *y) == 0);                                                                           \
        }                                                                                                                                    \
        free(tables.memory);                                                                                                                 \
        double squares = 0;                                                                                                                  \
        for (int64_t k = 0; k < out; k++)                                                                                                    \
            squares += (double)y[k] * (double)y[k];                                                                                          \
        const double mean = sqrt(squares / (double)(to * d->batch)) + DBL_MIN;                                                               \
        Turns        turns = turns_new(d);                                                                                                   \
        for (int64_t b = 0; b < d->batch; b += d->batch > 1 ? d->batch - 1 : 1)                                            \
            for (int64_t k = 0; k < to; k += to > 100 ? 1 + to / FEW : 1) {                                                                  \
                long double re, im;                                                                                                          \
                sum_of(d, &turns, x->re + b * x->count, x->im + b * x->count, k, &re, &im);                                                  \
                const type *got = y + (b * to + k) * (real_out ? 1 : 2);                                                                     \
                CHECK(fabs((double)(re - got[0])) <= allowed * mean);                                                                        \
                CHECK(fabs((double)(im - (real_out ? im : got[1]))) <= allowed * mean);                                                      \
            }                                                                                                                                \
        turns_free(d, &turns);                                                                                                               \
        free(in);                                                                                                                            \
        free(y);                                                                                                                             \
        free(again);                                                                                                                         \
        free(work);                                                                                                                          \
    }
CHECKED(check_f32, float, hlort_fft_f32)
CHECKED(check_f64, double, hlort_fft_f64)
#undef CHECKED

static void check(hlort_fft d, uint32_t *state, hlort_pool *pool)
{
    for (int kind = HLORT_FFT; kind <= HLORT_IRFFT; kind++) {
        d.kind = (hlort_fft_kind)kind;
        if (!hlort_fft_takes(&d))
            continue;
        Array x = make(&d, state);
        if (kind == HLORT_IRFFT)
            make_symmetric(&d, &x);
        check_f32(&d, &x, pool, 2e-6);
        check_f64(&d, &x, pool, 5e-15);
        array_free(&x);
    }
}

/* ---- several callers of one text, whose tables the first one leaves ---- */

enum { CALLERS = 4, CALLS = 300 };

typedef struct Caller {
    const hlort_fft *d;
    hlort_packed    *tables;
    const float     *x, *y; /* y: what is right */
    int64_t          count; /* of y */
    bool             wrong;
} Caller;

static void *call_often(void *given)
{
    Caller      *c = given;
    const size_t bytes = (size_t)c->count * sizeof *c->y;
    void        *work = aligned_alloc(64, (size_t)(hlort_fft_bytes(c->d, sizeof *c->y) + 63) / 64 * 64);
    float       *y = malloc(bytes);
    for (int k = 0; k < CALLS; k++) {
        hlort_fft_f32(c->d, &(hlort_how){ .work = work, .packed = c->tables }, c->x, y);
        c->wrong |= memcmp(y, c->y, bytes) != 0;
    }
    free(work);
    free(y);
    return NULL;
}

static void check_callers(hlort_fft d, uint32_t *state)
{
    const int64_t count = 2 * d.batch * d.size[0], bytes = hlort_fft_tables(&d, sizeof(float));
    float        *x = malloc((size_t)count * sizeof *x), *y = malloc((size_t)count * sizeof *y);
    void         *work = aligned_alloc(64, (size_t)(hlort_fft_bytes(&d, sizeof *y) + 63) / 64 * 64);
    hlort_packed  tables = { .bytes = bytes, .memory = aligned_alloc(64, (size_t)bytes) };
    pthread_t     threads[CALLERS];
    Caller        callers[CALLERS];
    for (int64_t k = 0; k < count; k++)
        x[k] = (float)next(state);
    hlort_fft_f32(&d, &(hlort_how){ .work = work }, x, y);
    for (int k = 0; k < CALLERS; k++) {
        callers[k] = (Caller){ &d, &tables, x, y, count, false };
        CHECK(pthread_create(&threads[k], NULL, call_often, &callers[k]) == 0);
    }
    for (int k = 0; k < CALLERS; k++) {
        pthread_join(threads[k], NULL);
        CHECK(!callers[k].wrong);
    }
    free(x);
    free(y);
    free(work);
    free(tables.memory);
}

int main(void)
{
    static const int64_t lines[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 19, 23, 24, 26, 31, 32, 34, 60, 64, 77, 97, 100, 121, 127, 128, 131, 137, 139, 143, 144, 150, 169, 180, 192, 196, 210, 230, 243, 254, 256, 262, 343, 347, 394, 480, 500, 512, 625, 720, 899, 1000, 1001, 1024, 1025, 1397, 1572, 1966, 2039, 2096, 2187, 4096 };
    static const int64_t long_lines[] = { 6399, 12769, 16381, 16383, 20000, 32749, 65536, 65610, 77361, 131072, 200200, 16411, 2 * 16381, 38365, 81 * 773, 19683, 65537, 2 * 32779, 131101 };
    static const hlort_fft grids[] = {
        { .batch = 2, .axes = 2, .size = { 4, 6 } },   { .batch = 1, .axes = 2, .size = { 17, 16 } },   { .batch = 3, .axes = 2, .size = { 12, 19 } },
        { .batch = 1, .axes = 2, .size = { 1, 9 } },   { .batch = 2, .axes = 2, .size = { 9, 1 } },     { .batch = 1, .axes = 2, .size = { 64, 40 } },
        { .batch = 2, .axes = 3, .size = { 3, 4, 5 } }, { .batch = 1, .axes = 3, .size = { 8, 7, 34 } }, { .batch = 1, .axes = 3, .size = { 2, 37, 6 } },
        { .batch = 1, .axes = 2, .size = { 8192, 2 } }, { .batch = 2, .axes = 2, .size = { 131, 18 } }, { .batch = 1, .axes = 2, .size = { 271, 227 } }, { .batch = 1, .axes = 3, .size = { 2, 278, 33 } },
        { .batch = 1, .axes = 2, .size = { 16381, 3 } }, { .batch = 2, .axes = 2, .size = { 512, 21 } }, { .batch = 1, .axes = 2, .size = { 1536, 16 } }, { .batch = 1, .axes = 3, .size = { 2, 1024, 17 } },
    };
    uint32_t    state = 5;
    hlort_pool *pool = hlort_pool_new(3);
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        for (int64_t batch = 1; batch <= 37; batch += batch == 1 ? 2 : batch == 3 ? 4 : 30)
            check((hlort_fft){ .batch = batch, .axes = 1, .size = { lines[k] } }, &state, pool);
    for (size_t k = 0; k < sizeof long_lines / sizeof *long_lines; k++)
        check((hlort_fft){ .batch = k % 5 == 0 ? 2 : 1, .axes = 1, .size = { long_lines[k] } }, &state, pool);
    for (size_t k = 0; k < sizeof grids / sizeof *grids; k++)
        check(grids[k], &state, pool);
    check_callers((hlort_fft){ .kind = HLORT_FFT, .batch = 1, .axes = 1, .size = { 1009 } }, &state);
    check_callers((hlort_fft){ .kind = HLORT_FFT, .batch = 20, .axes = 1, .size = { 131 } }, &state);
    check_callers((hlort_fft){ .kind = HLORT_IFFT, .batch = 3, .axes = 1, .size = { 360 } }, &state);
    hlort_pool_free(pool);
    return 0;
}
