/* Products of all shapes around the sizes of tiles, against the definition, bit for bit: floats round in every step, so the order shows. */
#include "eval/gemm.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"

enum { MOST = 40, DEEPEST = 520 };

#define TEST(T, type)                                                                                                           \
    static void test_##T(int64_t m, int64_t n, int64_t k)                                                                       \
    {                                                                                                                           \
        static T a[MOST * DEEPEST], b[DEEPEST * MOST], c[MOST * MOST], want[MOST * MOST];                                       \
        for (int64_t x = 0; x < m * k; x++)                                                                                     \
            a[x] = (T)(x * 37 % 101 - 50) / (T)7;                                                                               \
        for (int64_t x = 0; x < k * n; x++)                                                                                     \
            b[x] = (T)(x * 53 % 89 - 40) / (T)3;                                                                                \
        for (int64_t x = 0; x < m * n; x++)                                                                                     \
            c[x] = want[x] = (T)x / (T)9;                                                                                       \
        for (int64_t r = 0; r < m; r++)                                                                                         \
            for (int64_t d = 0; d < k; d++)                                                                                     \
                for (int64_t j = 0; j < n; j++) {                                                                               \
                    volatile T product = a[r * k + d] * b[d * n + j]; /* not contracted */                                      \
                    want[r * n + j] = want[r * n + j] + product;                                                                \
                }                                                                                                               \
        eval_gemm(type, m, n, k, a, b, c);                                                                                      \
        CHECK(memcmp(c, want, (size_t)(m * n) * sizeof(T)) == 0);                                                               \
    }
TEST(double, TYPE_F64)
TEST(uint64_t, TYPE_U64)

int main(void)
{
    static const int64_t rows[] = {0, 1, 3, 4, 5, 8, 11}, columns[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 40}, depths[] = {0, 1, 2, 7, 255, 256, 257, 520};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
        for (size_t j = 0; j < sizeof columns / sizeof columns[0]; j++)
            for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++) {
                test_double(rows[r], columns[j], depths[d]);
                test_uint64_t(rows[r], columns[j], depths[d]);
            }
    printf("ok gemm\n");
    return 0;
}
