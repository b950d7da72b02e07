/* fft_body.h - the kernels of discrete Fourier transforms for one kind of float: TW, in vectors of VL. Z(x) names, TQ is a vector of FEW = 16 / sizeof(TW).
 *
 * Lanes are lines side by side: one stage goes from a to b for each factor p (m: product of the factors done, s = lanes * n / (m p)):
 *
 *     b[(k + m r) s + q] = sum over t < p of w(m p, t k) a[(k p + t) s + q] w(p, t r)        k < m, r < p, q < s
 *
 * A line alone is two such transforms of the columns and the rows of a matrix [first][second], which stays in a near cache: points j1 second + j2 become k1 + first k2. */

typedef TW Z(tq) __attribute__((vector_size(16)));
typedef TW Z(tqu) __attribute__((vector_size(16), aligned(sizeof(TW)), may_alias));
#define TQ  Z(tq)
#define TQU Z(tqu)

#if FEW == 4
#define FFT_LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define FFT_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define FFT_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define FFT_ODD(a, b)  __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define FFT_BACK(a)    __builtin_shufflevector(a, a, 3, 2, 1, 0)
#else
#define FFT_LOW(a, b)  __builtin_shufflevector(a, b, 0, 2)
#define FFT_HIGH(a, b) __builtin_shufflevector(a, b, 1, 3)
#define FFT_EVEN       FFT_LOW
#define FFT_ODD        FFT_HIGH
#define FFT_BACK(a)    __builtin_shufflevector(a, a, 1, 0)
#endif
#define LANES (VECTOR_BYTES / 16 * FEW)
#if LANES == 16
#define FFT_WIDE_LOW(a, b)  __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define FFT_WIDE_HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define FFT_WIDE_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define FFT_WIDE_ODD(a, b)  __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define FFT_WIDE_BACK(a)    __builtin_shufflevector(a, a, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#elif LANES == 8
#define FFT_WIDE_LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define FFT_WIDE_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define FFT_WIDE_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define FFT_WIDE_ODD(a, b)  __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define FFT_WIDE_BACK(a)    __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0)
#elif LANES == 4
#define FFT_WIDE_LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define FFT_WIDE_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define FFT_WIDE_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define FFT_WIDE_ODD(a, b)  __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define FFT_WIDE_BACK(a)    __builtin_shufflevector(a, a, 3, 2, 1, 0)
#else
#define FFT_WIDE_BACK FFT_BACK
#define FFT_WIDE_LOW  FFT_LOW
#define FFT_WIDE_HIGH FFT_HIGH
#define FFT_WIDE_EVEN FFT_LOW
#define FFT_WIDE_ODD  FFT_HIGH
#endif

/* Pairs in memory. */
INLINE void Z(wide_part)(const TW *x, VW *even, VW *odd)
{
    const VW a = *(const VWU *)x, b = *(const VWU *)(x + VL);
    *even = FFT_WIDE_EVEN(a, b);
    *odd = FFT_WIDE_ODD(a, b);
}

INLINE void Z(wide_join)(TW *x, VW even, VW odd)
{
    *(VWU *)x = FFT_WIDE_LOW(even, odd);
    *(VWU *)(x + VL) = FFT_WIDE_HIGH(even, odd);
}

INLINE void Z(few_part)(const TW *x, TQ *even, TQ *odd)
{
    const TQ a = *(const TQU *)x, b = *(const TQU *)(x + FEW);
    *even = FFT_EVEN(a, b);
    *odd = FFT_ODD(a, b);
}

INLINE void Z(few_join)(TW *x, TQ even, TQ odd)
{
    *(TQU *)x = FFT_LOW(even, odd);
    *(TQU *)(x + FEW) = FFT_HIGH(even, odd);
}

INLINE void Z(one_part)(const TW *x, TW *even, TW *odd)
{
    *even = x[0];
    *odd = x[1];
}

INLINE void Z(one_join)(TW *x, TW even, TW odd)
{
    x[0] = even;
    x[1] = odd;
}

/* Lanes in the other order. */
INLINE VW Z(wide_backward)(VW x)
{
    return FFT_WIDE_BACK(x);
}

INLINE TQ Z(few_backward)(TQ x)
{
    return FFT_BACK(x);
}

INLINE TW Z(one_backward)(TW x)
{
    return x;
}

#define L(x) Z(wide_##x)
#define T    VW
#define TU   VWU
#include "runtime/fft_lanes.h"
#define L(x) Z(few_##x)
#define T    TQ
#define TU   TQU
#include "runtime/fft_lanes.h"
#define L(x) Z(one_##x)
#define T    TW
#define TU   TW
#include "runtime/fft_lanes.h"

/* One stage, of which a or b may be pairs. */
INLINE void Z(stage_of)(const int p, const int in, const int out, int64_t n, int64_t m, int64_t s, const TW *roots, const TW *a, TW *b, int swap, TW scale)
{
    const int64_t turn = n / (m * p), row = turn * s, all = n * s;
    for (int64_t k = 0; k < m; k++) {
        TW        w[2 * FFT_MOST_FACTOR];
        const TW *from = a + k * p * row * (in ? 2 : 1);
        TW       *to = b + k * row * (out ? 2 : 1);
#define AT(q) p, in, out, from + (in ? 2 : 1) * (q), from + all + (q), row, to + (out ? 2 : 1) * (q), to + all + (q), m * row
/* the last vector is moved back */
#define ROW(w)                                                              \
    do {                                                                    \
        if (row >= VL)                                                      \
            ROLLED for (int64_t q = 0; q < row; q += VL)                    \
                Z(wide_butterfly)(AT(hlort_min(q, row - VL)), w, swap, scale); \
        else if (row >= FEW)                                                \
            ROLLED for (int64_t q = 0; q < row; q += FEW)                   \
                Z(few_butterfly)(AT(hlort_min(q, row - FEW)), w, swap, scale); \
        else                                                                \
            ROLLED for (int64_t q = 0; q < row; q++)                        \
                Z(one_butterfly)(AT(q), w, swap, scale);                    \
    } while (0)
        if (in || (k == 0 && p % 2 == 0)) { /* w is 1 */
            ROW(NULL);
            continue;
        }
        for (int t = 1; t < p; t++) {
            w[2 * t] = roots[k * t * turn];
            w[2 * t + 1] = roots[n + k * t * turn];
        }
        ROW(w);
#undef ROW
#undef AT
    }
}

#define STAGE(p)                                                                                                                     \
    APART void Z(stage_##p)(int64_t n, int64_t m, int64_t s, const TW *roots, const TW *a, TW *b)                                    \
    {                                                                                                                                \
        Z(stage_of)(p, 0, 0, n, m, s, roots, a, b, 0, 1);                                                                            \
    }
#define ENDS(p)                                                                                                                      \
    APART void Z(first_##p)(int64_t n, int64_t s, const TW *a, TW *b, int inverse)                                                   \
    {                                                                                                                                \
        if (inverse)                                                                                                                 \
            Z(stage_of)(p, 1, 0, n, 1, s, NULL, a, b, 1, 1);                                                                         \
        else                                                                                                                         \
            Z(stage_of)(p, 1, 0, n, 1, s, NULL, a, b, 0, 1);                                                                         \
    }                                                                                                                                \
    APART void Z(last_##p)(int64_t n, int64_t s, const TW *roots, const TW *a, TW *b, int inverse, TW scale)                         \
    {                                                                                                                                \
        if (inverse)                                                                                                                 \
            Z(stage_of)(p, 0, 1, n, n / p, s, roots, a, b, 1, scale);                                                                \
        else                                                                                                                         \
            Z(stage_of)(p, 0, 1, n, n / p, s, roots, a, b, 0, 1);                                                                    \
    }
STAGE(2)
STAGE(3)
STAGE(4)
STAGE(5)
STAGE(6)
STAGE(7)
STAGE(8)
STAGE(9)
STAGE(10)
STAGE(11)
STAGE(13)
ENDS(4)
ENDS(8)
#undef STAGE
#undef ENDS

/* A stage of a prime above FFT_MOST_FACTOR. */
APART void Z(stage_prime)(int64_t p, int64_t n, int64_t m, int64_t s, const TW *roots, const TW *a, TW *b)
{
    const int64_t turn = n / (m * p), row = turn * s, all = n * s;
    TW            c[2 * HLORT_FFT_PRIME], w[2 * HLORT_FFT_PRIME];
    for (int64_t t = 0; t < p; t++) {
        c[t] = roots[t * (n / p)];
        c[p + t] = roots[n + t * (n / p)];
    }
    for (int64_t k = 0; k < m; k++) {
        const TW *from = a + k * p * row;
        TW       *to = b + k * row;
        for (int64_t t = 1; t < p; t++) {
            w[2 * t] = roots[k * t * turn];
            w[2 * t + 1] = roots[n + k * t * turn];
        }
#define AT(q) p, from + (q), from + all + (q), row, to + (q), to + all + (q), m *row, w, c
        if (row >= VL)
            for (int64_t q = 0; q < row; q += VL)
                Z(wide_prime)(AT(hlort_min(q, row - VL)));
        else if (row >= FEW)
            for (int64_t q = 0; q < row; q += FEW)
                Z(few_prime)(AT(hlort_min(q, row - FEW)));
        else
            for (int64_t q = 0; q < row; q++)
                Z(one_prime)(AT(q));
#undef AT
    }
}

/* Transforms n points of s lanes in a, of which m is done, up to `end`; b is as large. Where they are then. */
static TW *Z(stages)(int64_t n, int64_t m, int64_t end, int64_t s, const TW *roots, TW *a, TW *b)
{
    static void (*const stage[])(int64_t, int64_t, int64_t, const TW *, const TW *, TW *) = {
        [2] = Z(stage_2), [3] = Z(stage_3), [4] = Z(stage_4), [5] = Z(stage_5), [6] = Z(stage_6), [7] = Z(stage_7), [8] = Z(stage_8), [9] = Z(stage_9), [10] = Z(stage_10), [11] = Z(stage_11), [13] = Z(stage_13),
    };
    for (int64_t p; m < end; m *= p) {
        p = hlort_fft_factor(n / m);
        if (p <= FFT_MOST_FACTOR)
            stage[p](n, m, s, roots, a, b);
        else
            Z(stage_prime)(p, n, m, s, roots, a, b);
        TW *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

/* to[column][row] = from[row][column] by[row][column] for matrices of rows x columns, of those from row r0 and column c0 on; by NULL: 1. Blocks at the lower and the right edge are moved back. */
static void Z(turn_few)(int64_t rows, int64_t columns, int64_t r0, int64_t c0, const TW *from, const TW *by, TW *to)
{
    const int64_t all = rows * columns;
    if (rows < FEW || columns < FEW) {
        for (int64_t k = 0; k < rows; k++)
            for (int64_t c = 0; c < columns; c++) {
                const int64_t at = k * columns + c;
                const TW      x = from[at], y = from[all + at];
                to[c * rows + k] = by ? x * by[at] - y * by[all + at] : x;
                to[all + c * rows + k] = by ? x * by[all + at] + y * by[at] : y;
            }
        return;
    }
    for (int64_t r1 = r0; r1 < rows; r1 += FEW) {
        const int64_t r = hlort_min(r1, rows - FEW);
        for (int64_t c1 = c0; c1 < columns; c1 += FEW) {
            const int64_t c = hlort_min(c1, columns - FEW);
            TQ re[FEW], im[FEW];
            UNROLL
            for (int k = 0; k < FEW; k++) {
                const int64_t at = (r + k) * columns + c;
                const TQ      x = *(const TQU *)(from + at), y = *(const TQU *)(from + all + at);
                re[k] = by ? x * *(const TQU *)(by + at) - y * *(const TQU *)(by + all + at) : x;
                im[k] = by ? x * *(const TQU *)(by + all + at) + y * *(const TQU *)(by + at) : y;
            }
            UNROLL
            for (int half = 1; half < FEW; half *= 2) { /* zip the first half with the second */
                TQ a[FEW], b[FEW];
                UNROLL
                for (int k = 0; k < FEW / 2; k++) {
                    a[2 * k] = FFT_LOW(re[k], re[k + FEW / 2]);
                    a[2 * k + 1] = FFT_HIGH(re[k], re[k + FEW / 2]);
                    b[2 * k] = FFT_LOW(im[k], im[k + FEW / 2]);
                    b[2 * k + 1] = FFT_HIGH(im[k], im[k + FEW / 2]);
                }
                UNROLL
                for (int k = 0; k < FEW; k++) {
                    re[k] = a[k];
                    im[k] = b[k];
                }
            }
            UNROLL
            for (int k = 0; k < FEW; k++) {
                *(TQU *)(to + (c + k) * rows + r) = re[k];
                *(TQU *)(to + all + (c + k) * rows + r) = im[k];
            }
        }
    }
}

/* Lanes of the first half of vectors between those of the second; log2(lanes) times, that turns a block. */
INLINE void Z(zip)(VW *x)
{
    VW y[LANES];
    UNROLL
    for (int k = 0; k < LANES / 2; k++) {
        y[2 * k] = FFT_WIDE_LOW(x[k], x[k + LANES / 2]);
        y[2 * k + 1] = FFT_WIDE_HIGH(x[k], x[k + LANES / 2]);
    }
    UNROLL
    for (int k = 0; k < LANES; k++)
        x[k] = y[k];
}

/* The real or the imaginary parts of a block as wide as a vector. */
INLINE void Z(turn_block)(int64_t rows, int64_t columns, int64_t at, int64_t all, int imaginary, const TW *from, const TW *by, TW *to)
{
    VW x[LANES];
    UNROLL
    for (int k = 0; k < LANES; k++, at += columns) {
        const VW re = *(const VWU *)(from + at), im = *(const VWU *)(from + all + at);
        if (!by)
            x[k] = imaginary ? im : re;
        else if (imaginary)
            x[k] = re * *(const VWU *)(by + all + at) + im * *(const VWU *)(by + at);
        else
            x[k] = re * *(const VWU *)(by + at) - im * *(const VWU *)(by + all + at);
    }
    UNROLL
    for (int half = 1; half < LANES; half *= 2)
        Z(zip)(x);
    UNROLL
    for (int k = 0; k < LANES; k++)
        *(VWU *)(to + (imaginary ? all : 0) + k * rows) = x[k];
}

/* Up to FEW rows or columns that blocks leave are turned in small ones. */
APART void Z(turn)(int64_t rows, int64_t columns, const TW *from, const TW *by, TW *to)
{
    const int64_t all = rows * columns, r1 = rows - (rows % VL <= FEW ? rows % VL : 0), c1 = columns - (columns % VL <= FEW ? columns % VL : 0);
    if (rows < VL || columns < VL) {
        Z(turn_few)(rows, columns, 0, 0, from, by, to);
        return;
    }
    for (int64_t r0 = 0; r0 < r1; r0 += VL) {
        const int64_t r = hlort_min(r0, rows - VL);
        for (int64_t c0 = 0; c0 < c1; c0 += VL) {
            const int64_t c = hlort_min(c0, columns - VL);
            if (by) {
                Z(turn_block)(rows, columns, r * columns + c, all, 0, from, by, to + c * rows + r);
                Z(turn_block)(rows, columns, r * columns + c, all, 1, from, by, to + c * rows + r);
            } else {
                Z(turn_block)(rows, columns, r * columns + c, all, 0, from, NULL, to + c * rows + r);
                Z(turn_block)(rows, columns, r * columns + c, all, 1, from, NULL, to + c * rows + r);
            }
        }
    }
    if (c1 < columns)
        Z(turn_few)(rows, columns, 0, c1, from, by, to);
    if (r1 < rows)
        Z(turn_few)(rows, columns, r1, 0, from, by, to);
}

/* Transforms the points of a line in a; b is as large. Where they end. */
static TW *Z(line)(const FftLength *l, TW *a, TW *b)
{
    if (l->second == 1)
        return Z(stages)(l->n, 1, l->n, 1, l->roots, a, b);
    TW *x = Z(stages)(l->first, 1, l->first, l->second, l->first_roots, a, b), *y = x == a ? b : a;
    Z(turn)(l->first, l->second, x, l->twist, y);
    return Z(stages)(l->second, 1, l->second, l->first, l->second_roots, y, x);
}

static int64_t Z(last_factor)(int64_t n)
{
    int64_t p = hlort_fft_factor(n);
    while (p < n) {
        n /= p;
        p = hlort_fft_factor(n);
    }
    return p;
}

/* n points, the first of which is number `at`. */
static void Z(load)(const FftPoints *p, int64_t at, int64_t n, int swap, TW *re, TW *im)
{
    const TW *x = (const TW *)p->re + at * p->step, *y = p->im ? (const TW *)p->im + at * p->step : NULL;
    int64_t   k = 0;
    if (swap) {
        TW *other = re;
        re = im;
        im = other;
    }
    if (p->step == 2 && y == x + 1) {
        for (; k + VL <= n; k += VL) {
            VW a, b;
            Z(wide_part)(x + 2 * k, &a, &b);
            *(VWU *)(re + k) = a;
            *(VWU *)(im + k) = b;
        }
        for (; k + FEW <= n; k += FEW) {
            TQ a, b;
            Z(few_part)(x + 2 * k, &a, &b);
            *(TQU *)(re + k) = a;
            *(TQU *)(im + k) = b;
        }
    }
    if (p->step == 1 && y)
        for (; k + FEW <= n; k += FEW) {
            *(TQU *)(re + k) = *(const TQU *)(x + k);
            *(TQU *)(im + k) = *(const TQU *)(y + k);
        }
    for (; k < n; k++) {
        re[k] = x[k * p->step];
        im[k] = y ? y[k * p->step] : 0;
    }
}

static void Z(store)(const FftPoints *p, int64_t at, int64_t n, int swap, const TW *re, const TW *im, TW scale)
{
    TW     *x = (TW *)p->re + at * p->step, *y = p->im ? (TW *)p->im + at * p->step : NULL;
    int64_t k = 0;
    if (swap) {
        const TW *other = re;
        re = im;
        im = other;
    }
    if (p->step == 1 && y)
        for (; k + FEW <= n; k += FEW) {
            *(TQU *)(x + k) = *(const TQU *)(re + k) * scale;
            *(TQU *)(y + k) = *(const TQU *)(im + k) * scale;
        }
    if (p->step == 2 && y == x + 1)
        for (; k + VL <= n; k += VL)
            Z(wide_join)(x + 2 * k, *(const VWU *)(re + k) * scale, *(const VWU *)(im + k) * scale);
    if (p->step == 2 && y == x + 1)
        for (; k + FEW <= n; k += FEW)
            Z(few_join)(x + 2 * k, *(const TQU *)(re + k) * scale, *(const TQU *)(im + k) * scale);
    for (; k < n; k++) {
        x[k * p->step] = re[k] * scale;
        if (y)
            y[k * p->step] = im[k] * scale;
    }
}

/* The spectrum x of 2 h real numbers, h + 1 points, from that of their h pairs z: points from .. end - 1 and h minus those, end at most h / 2 + 1. half: w(2 h, k).
 *
 *     x[k] = e + w(2 h, k) o, x[h - k] = conj(e - w(2 h, k) o)        e = (z[k] + conj z[h - k]) / 2, o = (z[k] - conj z[h - k]) / 2i */
static void Z(untangle)(int64_t h, int64_t from, int64_t end, const TW *zr, const TW *zi, const TW *half, TW *x, TW scale)
{
    const TW by = scale / 2;
    int64_t  k = from;
    if (k == 0) {
        x[0] = (zr[0] + zi[0]) * scale;
        x[2 * h] = (zr[0] - zi[0]) * scale;
        x[1] = x[2 * h + 1] = 0;
        k = 1;
    }
    for (; k + VL <= end && k + VL - 1 < h - k - VL + 1; k += VL)
        Z(wide_untangled)(h, k, zr, zi, half, x, by);
    for (; k + FEW <= end && k + FEW - 1 < h - k - FEW + 1; k += FEW)
        Z(few_untangled)(h, k, zr, zi, half, x, by);
    for (; k < end; k++)
        Z(one_untangled)(h, k, zr, zi, half, x, by);
}

/* And back: z[k] = e + i o, z[h - k] = conj e + i conj o, e = (x[k] + conj x[h - k]) / 2, o = (x[k] - conj x[h - k]) conj w(2 h, k) / 2. */
static void Z(tangle)(int64_t h, int64_t from, int64_t end, const TW *x, const TW *half, TW *zr, TW *zi)
{
    int64_t k = from;
    if (k == 0) { /* imaginary parts of the two ends reach no real number */
        zr[0] = (x[0] + x[2 * h]) * (TW)0.5;
        zi[0] = (x[0] - x[2 * h]) * (TW)0.5;
        k = 1;
    }
    for (; k + VL <= end && k + VL - 1 < h - k - VL + 1; k += VL)
        Z(wide_tangled)(h, k, x, half, zr, zi);
    for (; k + FEW <= end && k + FEW - 1 < h - k - FEW + 1; k += FEW)
        Z(few_tangled)(h, k, x, half, zr, zi);
    for (; k < end; k++)
        Z(one_tangled)(h, k, x, half, zr, zi);
}

/* The points of a line, and what they become. A real line of odd size is one of complex points. */
static void Z(begin)(const FftJob *j, int64_t line, TW *re, TW *im)
{
    const int64_t   n = j->length->n, to_half = j->side == FFT_TO_HALF, points = j->side == FFT_FROM_HALF ? j->size / 2 + 1 : n;
    const TW       *x = (const TW *)j->x + line * (to_half ? j->size : 2 * points);
    const FftPoints p = { (void *)x, to_half && n == j->size ? NULL : (void *)(x + 1), to_half && n == j->size ? 1 : 2 };
    if (j->side == FFT_FROM_HALF && n < j->size) { /* swapped */
        Z(tangle)(n, 0, n / 2 + 1, x, j->half, im, re);
        return;
    }
    Z(load)(&p, 0, j->side == FFT_FROM_HALF ? points : n, j->inverse, re, im);
    if (j->side == FFT_FROM_HALF) {
        re[0] = 0; /* swapped: the imaginary part of the first */
        for (int64_t k = points; k < n; k++) {
            re[k] = -re[n - k];
            im[k] = im[n - k];
        }
    }
}

static void Z(finish)(const FftJob *j, int64_t line, const TW *re, const TW *im)
{
    const int64_t   n = j->length->n, from_half = j->side == FFT_FROM_HALF, points = j->side == FFT_TO_HALF ? j->size / 2 + 1 : n;
    TW             *y = (TW *)j->y + line * (from_half ? j->size : 2 * points);
    const FftPoints p = { y, from_half && n == j->size ? NULL : y + 1, from_half && n == j->size ? 1 : 2 };
    if (j->side == FFT_TO_HALF && n < j->size) {
        Z(untangle)(n, 0, n / 2 + 1, re, im, j->half, y, (TW)j->scale);
        return;
    }
    Z(store)(&p, 0, points, j->inverse, re, im, (TW)j->scale);
    if (j->side == FFT_TO_HALF)
        y[1] = 0;
}

/* A line alone. Pairs of a line of complex numbers, or the pairs that a real one is, are read by the first stage, and likewise written by the last one. */
static void Z(alone)(const FftJob *j, int64_t line, TW *a, TW *b)
{
    const FftLength *l = j->length;
    const int64_t    n = l->n, first = hlort_fft_factor(l->first), last = l->second > 1 ? Z(last_factor)(l->second) : 0;
    const int        reads = first == 4 || first == 8, writes = last == 4 || last == 8;
    if (l->second == 1 || (!reads && !writes)) {
        Z(begin)(j, line, a, a + n);
        a = Z(line)(l, a, b);
        Z(finish)(j, line, a, a + n);
        return;
    }
    if (reads && (j->side == FFT_COMPLEX || (j->side == FFT_TO_HALF && n < j->size))) {
        const TW *x = (const TW *)j->x + line * 2 * n;
        (first == 4 ? Z(first_4) : Z(first_8))(l->first, l->second, x, a, j->inverse);
        TW *y = Z(stages)(l->first, first, l->first, l->second, l->first_roots, a, b);
        b = y == a ? b : a;
        a = y;
    } else {
        Z(begin)(j, line, a, a + n);
        TW *y = Z(stages)(l->first, 1, l->first, l->second, l->first_roots, a, b);
        b = y == a ? b : a;
        a = y;
    }
    Z(turn)(l->first, l->second, a, l->twist, b);
    if (writes && (j->side == FFT_COMPLEX || (j->side == FFT_FROM_HALF && n < j->size))) {
        TW *x = Z(stages)(l->second, 1, l->second / last, l->first, l->second_roots, b, a);
        (last == 4 ? Z(last_4) : Z(last_8))(l->second, l->first, l->second_roots, x, (TW *)j->y + line * 2 * n, j->inverse, (TW)j->scale);
    } else {
        a = Z(stages)(l->second, 1, l->second, l->first, l->second_roots, b, a);
        Z(finish)(j, line, a, a + n);
    }
}

/* to = x w for n points of some lanes, where x is from or, with in_sign -1, its conjugate; with out_sign -1 the conjugate of that. To may be from. */
INLINE void Z(times)(int64_t n, int64_t lanes, const TW *re, const TW *im, const TW *w, TW in_sign, TW out_sign, TW *to_re, TW *to_im)
{
    int64_t k = 0;
    for (; lanes == 1 && k + VL <= n; k += VL) {
        const VW x = *(const VWU *)(re + k), y = *(const VWU *)(im + k) * in_sign, c = *(const VWU *)(w + k), d = *(const VWU *)(w + n + k);
        *(VWU *)(to_re + k) = x * c - y * d;
        *(VWU *)(to_im + k) = (x * d + y * c) * out_sign;
    }
    for (; k < n; k++) {
        const TW c = w[k], d = w[n + k];
        int64_t  at = k * lanes;
        for (; at + VL <= (k + 1) * lanes; at += VL) {
            const VW x = *(const VWU *)(re + at), y = *(const VWU *)(im + at) * in_sign;
            *(VWU *)(to_re + at) = x * c - y * d;
            *(VWU *)(to_im + at) = (x * d + y * c) * out_sign;
        }
        for (; at < (k + 1) * lanes; at++) {
            const TW x = re[at], y = im[at] * in_sign;
            to_re[at] = x * c - y * d;
            to_im[at] = (x * d + y * c) * out_sign;
        }
    }
}

static TW *Z(around)(const FftLength *l, int64_t lanes, TW *a, TW *b)
{
    return lanes == 1 ? Z(line)(l, a, b) : Z(stages)(l->n, 1, l->n, lanes, l->roots, a, b);
}

/* The points of a line or, where l->around has roots, of several, [n][lanes], in place; memory has room for four times as many as around->n, of each. */
APART void Z(go_around)(const FftLength *l, int64_t lanes, TW *re, TW *im, TW *memory)
{
    const int64_t n = l->n, m = l->around->n, all = m * lanes;
    TW           *a = memory, *b = memory + 2 * all;
    Z(times)(n, lanes, re, im, l->chirp, 1, 1, a, a + all);
    for (int64_t k = n * lanes; k < all; k++)
        a[k] = a[all + k] = 0;
    TW *x = Z(around)(l->around, lanes, a, b), *y = x == a ? b : a;
    Z(times)(m, lanes, x, x + all, l->filter, 1, -1, x, x + all); /* the inverse transform is that of the conjugate, conjugate */
    x = Z(around)(l->around, lanes, x, y);
    Z(times)(n, lanes, x, x + all, l->chirp, -1, 1, re, im);
}

/* The points of the filter in x, which become their transform. */
static void Z(filter)(const FftJob *j, int64_t part, TW *memory)
{
    const int64_t n = j->length->n;
    TW           *x = j->y;
    (void)part;
    TW *y = Z(line)(j->length, x, memory);
    for (int64_t k = 0; k < 2 * n && y != x; k++)
        x[k] = y[k];
}

/* With so many lanes vectors are whole, or small ones; a single line that becomes a convolution is a matrix there. */
static int64_t Z(whole_lanes)(const FftLength *l, int64_t lanes)
{
    const int64_t small = hlort_ceildiv(lanes, FEW) * FEW, rest = small % VL;
    return l->around && lanes == 1 ? 1 : 2 * rest > VL ? small - rest + VL : small;
}

/* Points of lines that are next to each other, as those of one where pairs are read, and written, as they lie; of `all` lines there is room. */
static void Z(begin_lines)(const FftJob *j, int64_t line, int64_t lines, int64_t all, TW *a)
{
    const int64_t n = j->length->n;
    if (j->side == FFT_COMPLEX || (j->side == FFT_TO_HALF && n < j->size)) {
        const TW       *x = (const TW *)j->x + line * 2 * n;
        const FftPoints p = { (void *)x, (void *)(x + 1), 2 };
        Z(load)(&p, 0, lines * n, j->inverse, a, a + all * n);
    } else
        for (int64_t i = 0; i < lines; i++)
            Z(begin)(j, line + i, a + i * n, a + (all + i) * n);
    for (int64_t k = lines * n; k < all * n; k++)
        a[k] = a[all * n + k] = 0;
}

static void Z(finish_lines)(const FftJob *j, int64_t line, int64_t lines, int64_t all, const TW *a)
{
    const int64_t n = j->length->n;
    if (j->side == FFT_COMPLEX || (j->side == FFT_FROM_HALF && n < j->size)) {
        TW             *y = (TW *)j->y + line * 2 * n;
        const FftPoints p = { y, y + 1, 2 };
        Z(store)(&p, 0, lines * n, j->inverse, a, a + all * n, (TW)j->scale);
    } else
        for (int64_t i = 0; i < lines; i++)
            Z(finish)(j, line + i, a + i * n, a + (all + i) * n);
}

/* The rows of [rows][n], or columns of [n][rows], some together, where the convolution that they become has tables for lanes. */
static void Z(rows_around)(const FftLength *l, int64_t rows, TW *a, TW *b, TW *memory)
{
    const int64_t n = l->n, all = rows * n;
    if (!l->around->roots) {
        for (int64_t k = 0; k < rows; k++)
            Z(go_around)(l, 1, a + k * n, a + all + k * n, memory);
        Z(turn)(rows, n, a, NULL, b);
        return;
    }
    Z(turn)(rows, n, a, NULL, b);
    for (int64_t column = 0, lanes; column < rows; column += lanes) {
        lanes = hlort_min(FFT_LANES, rows - column);
        const int64_t   whole = Z(whole_lanes)(l, lanes);
        TW             *c = memory, *rest = c + 2 * n * whole;
        const FftPoints p = { b + column, b + all + column, 1 };
        for (int64_t k = 0; k < n; k++) {
            for (int64_t i = lanes; i < whole; i++)
                c[k * whole + i] = c[(n + k) * whole + i] = 0;
            Z(load)(&p, k * rows, lanes, 0, c + k * whole, c + (n + k) * whole);
        }
        Z(go_around)(l, whole, c, c + n * whole, rest);
        for (int64_t k = 0; k < n; k++)
            Z(store)(&p, k * rows, lanes, 0, c + k * whole, c + (n + k) * whole, 1);
    }
}

/* A line of two factors, of which the second one has large primes. */
static void Z(alone_around)(const FftJob *j, int64_t line, TW *a, TW *b)
{
    const FftLength *l = j->length;
    const int64_t    n = l->n;
    Z(begin)(j, line, a, a + n);
    TW *x = Z(stages)(l->first, 1, l->first, l->second, l->first_roots, a, b), *y = x == a ? b : a;
    Z(times)(n, 1, x, x + n, l->twist, 1, 1, x, x + n);
    Z(rows_around)(l->rows, l->first, x, y, b + 2 * n);
    Z(finish)(j, line, y, y + n);
}

/* Lines that are next to each other. Short ones, whose two factors would fill no vectors, are lanes; with the last ones zeros, so that vectors are whole. */
static void Z(lines)(const FftJob *j, int64_t part, TW *memory)
{
    const FftLength *l = j->length;
    const int64_t    n = l->n, end = hlort_min(j->count, (part + 1) * j->of_part);
    int64_t          k = part * j->of_part;
    TW              *a = memory, *b = memory + 2 * n * j->lanes;
    for (; l->rows && k < end; k++)
        Z(alone_around)(j, k, a, b);
    for (; l->around && j->lanes == 1 && k < end; k++) {
        Z(begin)(j, k, a, a + n);
        Z(go_around)(l, 1, a, a + n, b);
        Z(finish)(j, k, a, a + n);
    }
    for (; j->lanes > 1 && k < end; k += j->lanes) {
        const int64_t lines = hlort_min(j->lanes, end - k), lanes = Z(whole_lanes)(l, lines);
        Z(begin_lines)(j, k, lines, lanes, a);
        Z(turn)(lanes, n, a, NULL, b);
        if (l->around)
            Z(go_around)(l, lanes, b, b + n * lanes, memory + 4 * n * j->lanes);
        TW *x = l->around ? b : Z(stages)(n, 1, n, lanes, l->roots, b, a), *y = x == a ? b : a;
        Z(turn)(n, lanes, x, NULL, y);
        Z(finish_lines)(j, k, lines, lanes, y);
    }
    for (; k < end; k++)
        Z(alone)(j, k, a, b);
}

/* Some columns as matrices [first][second] of lanes: what is at hand of them at a time is one column or one row, which the first cache holds. */
static void Z(columns_apart)(const FftJob *j, const FftPoints *from, const FftPoints *to, int64_t there, int64_t lanes, TW *memory)
{
    const FftLength *l = j->length;
    const int64_t    first = l->first, second = l->second, n = l->n, row = second * lanes;
    TW              *a = memory + 2 * n * lanes, *b = a + 2 * hlort_max(first, second) * lanes;
    const TW        *twist = l->twist;
    for (int64_t c = 0; c < second; c++) {
        for (int64_t k = 0; k < first; k++) {
            for (int64_t i = there; i < lanes; i++)
                a[k * lanes + i] = a[(first + k) * lanes + i] = 0;
            Z(load)(from, (k * second + c) * j->inner, there, j->inverse, a + k * lanes, a + (first + k) * lanes);
        }
        const TW *x = Z(stages)(first, 1, first, lanes, l->first_roots, a, b);
        for (int64_t k = 0; k < first; k++) {
            const TW w[2] = { twist[k * second + c], twist[n + k * second + c] };
            TW      *at = memory + 2 * k * row + c * lanes;
            Z(times)(1, lanes, x + k * lanes, x + (first + k) * lanes, w, 1, 1, at, at + row);
        }
    }
    for (int64_t k = 0; k < first; k++) {
        const TW *x = Z(stages)(second, 1, second, lanes, l->second_roots, memory + 2 * k * row, a);
        for (int64_t c = 0; c < second; c++)
            Z(store)(to, (c * first + k) * j->inner, there, j->inverse, x + c * lanes, x + (second + c) * lanes, (TW)j->scale);
    }
}

/* Groups of columns: group g is lanes g % groups * lanes and on of matrix g / groups, [n][inner]. */
static void Z(columns)(const FftJob *j, int64_t part, TW *memory)
{
    const FftLength *l = j->length;
    const int64_t    n = l->n, groups = hlort_ceildiv(j->inner, j->lanes), end = hlort_min(j->count, (part + 1) * j->of_part);
    for (int64_t g = part * j->of_part; g < end; g++) {
        const int64_t   column = g % groups * j->lanes, there = hlort_min(j->lanes, j->inner - column), place = 2 * (g / groups * n * j->inner + column);
        const int64_t   whole = Z(whole_lanes)(l, there), lanes = whole <= j->lanes ? whole : there;
        const TW       *x = (const TW *)j->x + place;
        TW             *y = (TW *)j->y + place, *a = memory, *b = memory + 2 * n * lanes;
        const FftPoints from = { (void *)x, (void *)(x + 1), 2 }, to = { y, y + 1, 2 };
        if (l->twist) {
            Z(columns_apart)(j, &from, &to, there, lanes, memory);
            continue;
        }
        for (int64_t k = 0; k < n; k++) {
            for (int64_t i = there; i < lanes; i++)
                a[k * lanes + i] = a[(n + k) * lanes + i] = 0;
            Z(load)(&from, k * j->inner, there, j->inverse, a + k * lanes, a + (n + k) * lanes);
        }
        if (!l->around)
            a = Z(stages)(n, 1, n, lanes, l->roots, a, b);
        else if (l->around->roots || lanes == 1)
            Z(go_around)(l, lanes, a, a + n * lanes, b);
        else {
            Z(turn)(n, lanes, a, NULL, b);
            for (int64_t i = 0; i < there; i++)
                Z(go_around)(l, 1, b + i * n, b + (lanes + i) * n, b + 2 * n * lanes);
            Z(turn)(lanes, n, b, NULL, a);
        }
        for (int64_t k = 0; k < n; k++)
            Z(store)(&to, k * j->inner, there, j->inverse, a + k * lanes, a + (n + k) * lanes, (TW)j->scale);
    }
}

/* Of a long line, [first][second]: some columns, multiplied by w(n, row column) = w(n, row (first column of the block)) twist[row][lane]. */
static void Z(long_first)(const FftJob *j, int64_t part, TW *memory)
{
    const FftLength *l = j->length;
    const int64_t    n = l->first, lanes_of = j->lanes, column = part * lanes_of, lanes = hlort_min(lanes_of, l->second - column);
    TW              *a = memory, *b = memory + 2 * n * lanes, *re = j->between.re, *im = j->between.im;
    const TW        *twist = l->twist;
    for (int64_t k = 0; k < n; k++)
        Z(load)(&j->from, k * l->second + column, lanes, j->inverse, a + k * lanes, a + (n + k) * lanes);
    a = Z(stages)(n, 1, n, lanes, l->first_roots, a, b);
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = k * column % l->n, h = at / j->fine_n, f = at % j->fine_n;
        const double *c = j->coarse, *d = j->fine;
        const TW      wr = (TW)(c[h] * d[f] - c[j->coarse_n + h] * d[j->fine_n + f]), wi = (TW)(c[h] * d[j->fine_n + f] + c[j->coarse_n + h] * d[f]);
        const TW     *ar = a + k * lanes, *ai = a + (n + k) * lanes, *tr = twist + k * lanes_of, *ti = twist + (n + k) * lanes_of;
        TW           *to_re = re + k * l->second + column, *to_im = im + k * l->second + column;
        for (int64_t i = 0; i < lanes; i++) {
            const TW x = tr[i] * wr - ti[i] * wi, y = tr[i] * wi + ti[i] * wr;
            to_re[i] = ar[i] * x - ai[i] * y;
            to_im[i] = ar[i] * y + ai[i] * x;
        }
    }
}

/* Some rows. */
static void Z(long_second)(const FftJob *j, int64_t part, TW *memory)
{
    const FftLength *l = j->length;
    const int64_t    n = l->second, row = part * j->lanes, lanes = hlort_min(j->lanes, l->first - row);
    TW              *a = memory, *b = memory + 2 * n * lanes;
    for (int64_t k = 0; k < lanes; k++)
        Z(load)(&j->between, (row + k) * n, n, 0, b + k * n, b + (lanes + k) * n);
    for (int64_t k = 0; l->rows && k < lanes; k++)
        Z(go_around)(l->rows, 1, b + k * n, b + (lanes + k) * n, b + 2 * n * lanes);
    Z(turn)(lanes, n, b, NULL, a);
    if (!l->rows)
        a = Z(stages)(n, 1, n, lanes, l->second_roots, a, b);
    for (int64_t k = 0; k < n; k++)
        Z(store)(&j->to, k * l->first + row, lanes, j->inverse, a + k * lanes, a + (n + k) * lanes, (TW)j->scale);
}

/* Of a long real line. */
static void Z(long_untangle)(const FftJob *j, int64_t part, TW *memory)
{
    (void)memory;
    const int64_t h = j->length->n;
    Z(untangle)(h, part * j->of_part, hlort_min((part + 1) * j->of_part, h / 2 + 1), j->from.re, j->from.im, j->half, j->y, (TW)j->scale);
}

static void Z(long_tangle)(const FftJob *j, int64_t part, TW *memory)
{
    (void)memory;
    const int64_t h = j->length->n;
    Z(tangle)(h, part * j->of_part, hlort_min((part + 1) * j->of_part, h / 2 + 1), j->x, j->half, j->to.re, j->to.im);
}

static void Z(run)(const FftJob *j, int step, int64_t part, void *memory)
{
    static void (*const steps[FFT_STEPS])(const FftJob *, int64_t, TW *) = {
        [FFT_LINES] = Z(lines),         [FFT_COLUMNS] = Z(columns),        [FFT_LONG_FIRST] = Z(long_first), [FFT_LONG_SECOND] = Z(long_second),
        [FFT_UNTANGLE] = Z(long_untangle), [FFT_TANGLE] = Z(long_tangle), [FFT_FILTER] = Z(filter),
    };
    steps[step](j, part, memory);
}

#undef TQ
#undef TQU
#undef FFT_LOW
#undef FFT_HIGH
#undef FFT_EVEN
#undef FFT_ODD
#undef LANES
#undef FFT_WIDE_LOW
#undef FFT_WIDE_HIGH
#undef FFT_WIDE_EVEN
#undef FFT_WIDE_ODD
#undef FFT_WIDE_BACK
#undef FFT_BACK
#undef FEW
#undef Z
