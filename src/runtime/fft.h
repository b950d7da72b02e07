/* fft.h - between fft.c, which takes a transform apart, and the kernels of each set of instructions (fft_body.h).
 *
 * Points in working memory are n real parts and behind them n imaginary ones: so are lines, tables, and the points of several lines side by side, [n][lanes].
 * Kernels transform forward; an inverse transform swaps the two parts of what it reads and of what it writes. w(n, k) = e^(-2 pi i k / n). */
#ifndef HLORT_FFT_H
#define HLORT_FFT_H

#include "runtime/gemm.h"

#include <stddef.h>

enum {
    FFT_MOST_FACTOR = 13,      /* of a butterfly that is text; those of larger primes are loops */
    FFT_LANES = 16,            /* lines that are transformed together, where they are not long */
    FFT_LINE_BYTES = 1 << 18,  /* of the points of a line that is transformed as one */
    FFT_MOST_BLOCK = 1 << 19,  /* bytes of the points of a block of lines, of which there are two */
    FFT_AROUND_BLOCK = 1 << 17 /* likewise, of around->n: of more it is one line after the other */
};

typedef struct FftLength {
    int64_t     n;
    int64_t     first, second; /* n = first * second, for a line by itself; second 1: it has no two such factors */
    const void *roots;         /* w(n, k), k < n: where lanes are other lines, or second is 1; of another one's `around` NULL where lines are alone */
    const void *first_roots, *second_roots; /* likewise, of the two */
    const void *twist;         /* w(n, j k), [first][columns]: columns is second, of a long line the lanes of a block */
    const struct FftLength *around; /* NULL, or where n has a prime factor above HLORT_FFT_PRIME hlort_fft_around(n), for */
    const void *chirp, *filter; /* X[k] = c[k] * sum over j of (x[j] c[j]) conj(c[k - j]), c[j] = w(2 n, j^2): c; conj(c) transformed, / around->n */
    const struct FftLength *rows; /* of a line of two factors: NULL, or `second` where that is such a length */
} FftLength;

/* Neighbours are step elements apart: 2 where real and imaginary parts alternate. im NULL: there are none. */
typedef struct FftPoints {
    void   *re, *im;
    int64_t step;
} FftPoints;

typedef enum FftSide { FFT_COMPLEX, FFT_TO_HALF, FFT_FROM_HALF } FftSide; /* real numbers to the first half of their spectrum, and back */

typedef struct FftJob {
    const FftLength *length;
    const void *x; /* of complex numbers, or real ones, as side says */
    void       *y;
    FftSide     side;
    int         inverse;
    double      scale;         /* of the result */
    int64_t     size;          /* lines: of a real line, of which an even one is size / 2 points */
    const void *half;          /* w(size, k), k <= size / 4, of an even real line, as for length */
    int64_t     count, of_part; /* lines; groups of lanes; blocks of a long line */
    int64_t     inner, lanes;  /* columns: neighbours of a point, so many of them together */
    /* a long line: */
    FftPoints   from, between, to;
    const double *coarse, *fine; /* w(n, k) = coarse[k / fine_n] * fine[k % fine_n] */
    int64_t     coarse_n, fine_n;
} FftJob;

/* What a part of a job is. */
typedef enum FftStep { FFT_LINES, FFT_COLUMNS, FFT_LONG_FIRST, FFT_LONG_SECOND, FFT_UNTANGLE, FFT_TANGLE, FFT_FILTER, FFT_STEPS } FftStep;

/* cos(2 pi k / p) and sin, for k <= p / 2, by p / 2 */
static const double fft_cosines[FFT_MOST_FACTOR / 2 + 1][FFT_MOST_FACTOR / 2 + 1] = {
    [1] = { 1, -0.50000000000000000000 },
    [2] = { 1, 0.30901699437494742410, -0.80901699437494742410 },
    [3] = { 1, 0.62348980185873353053, -0.22252093395631440429, -0.90096886790241912624 },
    [5] = { 1, 0.84125353283118116886, 0.41541501300188642553, -0.14231483827328514044, -0.65486073394528506406, -0.95949297361449738989 },
    [6] = { 1, 0.88545602565320989590, 0.56806474673115580251, 0.12053668025532305335, -0.35460488704253562597, -0.74851074817110109863, -0.97094181742605202716 },
};
static const double fft_sines[FFT_MOST_FACTOR / 2 + 1][FFT_MOST_FACTOR / 2 + 1] = {
    [1] = { 0, 0.86602540378443864676 },
    [2] = { 0, 0.95105651629515357212, 0.58778525229247312917 },
    [3] = { 0, 0.78183148246802980871, 0.97492791218182360702, 0.43388373911755812048 },
    [5] = { 0, 0.54064081745559758211, 0.90963199535451837141, 0.98982144188093273238, 0.75574957435425828377, 0.28173255684142969771 },
    [6] = { 0, 0.46472317204376854566, 0.82298386589365639458, 0.99270887409805399280, 0.93501624268541482344, 0.66312265824079520238, 0.23931566428755776715 },
};

#endif
