/* softmax: the rows of a softmax as one would write them by hand, timed: what decomposed ones that were optimized are measured against.
 *
 * usage: softmax ROWS COLUMNS SECONDS       one thread; prints {"run_us": the least time of a run}
 *
 * Three loops over a row that the first cache holds, each of which compilers make vectors of: its maximum, exponentials and their sum, quotients. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* whatever the options of the build say */
#endif

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* e^x of x <= 0: 2^k e^r with |r| <= ln 2 / 2, e^r by a polynomial of degree 6. */
static inline float exp_below(float x)
{
    x = x < -87 ? -87 : x;
    const float   k = (x * 1.44269504f + 0x1.8p23f) - 0x1.8p23f, r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
    const float   p = 1 + r * (1 + r * (0.5f + r * (0.166666582f + r * (0.0416664667f + r * (0.00836995f + r * 0.00136989f)))));
    const int32_t bits = ((int32_t)k + 127) << 23;
    float         power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

static void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t columns)
{
    for (; rows > 0; rows--, x += columns, y += columns) {
        float most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < columns; j++)
            most = x[j] > most ? x[j] : most;
        for (int64_t j = 0; j < columns; j++)
            sum += y[j] = exp_below(x[j] - most);
        const float share = 1 / sum;
        for (int64_t j = 0; j < columns; j++)
            y[j] *= share;
    }
}

int main(int argc, char **argv)
{
    const int64_t rows = argc == 4 ? atoll(argv[1]) : 0, columns = argc == 4 ? atoll(argv[2]) : 0;
    if (rows <= 0 || columns <= 0 || rows > INT64_MAX / columns / (int64_t)sizeof(float)) {
        fputs("usage: softmax ROWS COLUMNS SECONDS\n", stderr);
        return 2;
    }
    const size_t bytes = ((size_t)(rows * columns) * sizeof(float) + 63) / 64 * 64;
    float       *x = aligned_alloc(64, bytes), *y = aligned_alloc(64, bytes);
    double       best = INFINITY;
    if (!x || !y) {
        fputs("softmax: no memory\n", stderr);
        return 2;
    }
    for (int64_t k = 0; k < rows * columns; k++)
        x[k] = (float)((uint32_t)k * 2654435761U >> 8) * 0x1p-22f - 2;
    for (double end = seconds() + atof(argv[3]); seconds() < end || best == INFINITY;) {
        const double start = seconds();
        softmax(x, y, rows, columns);
        const double took = seconds() - start;
        best = took < best ? took : best;
    }
    double sum = 0;
    for (int64_t k = 0; k < columns; k++)
        sum += (double)y[k];
    printf("{\"run_us\": %.3f, \"sum\": %.6f}\n", best * 1e6, sum);
    free(x), free(y);
    return 0;
}
