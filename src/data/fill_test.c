/* The streams against their published vectors. */
#include "config.h"

#include "data/fill.h"

#include <stdio.h>

#include "support/check.h"

static void test_hash(void)
{
    CHECK(fill_hash(0, 0) == 0xe220a8397b1dcdaf);
    CHECK(fill_hash(3, 1) == 0xaa76dd0138337051);
    CHECK(fill_hash(0xFFFFFF, 1000000000) == 0x836bb980ccb16447);
    puts("ok hash");
}

static void test_uniform(void)
{
    static const double want[] = { 0x1.e60cc4p-1, 0x1.054edcp+0, 0x1.02e676p+0 };
    int64_t             dims[] = { 3 };
    Literal            *l = literal_new(TYPE_F32, 1, dims);
    fill_uniform(l, 3, 0.0625, 1);
    for (int k = 0; k < 3; k++)
        CHECK(literal_get_f64(l, k) == want[k]); /* f32, seed 3 */
    literal_unref(l);
    l = literal_new(TYPE_C64, 1, dims);
    fill_uniform(l, 3, 0.0625, 1);
    CHECK(literal_get_f64(l, 0) == want[0] && literal_get_imag(l, 0) == want[1] && literal_get_f64(l, 1) == want[2]); /* complex */
    literal_unref(l);
    puts("ok uniform");
}

static void test_int(void)
{
    static const int want[] = { 1, 57, 57, 37, 53 };
    int64_t          dims[] = { 5 };
    Literal         *l = literal_new(TYPE_S32, 1, dims);
    fill_int(l, 7, -5, 100);
    for (int k = 0; k < 5; k++)
        CHECK(literal_get_s64(l, k) == want[k]); /* s32, seed 7 */
    literal_unref(l);
    puts("ok int");
}

int main(void)
{
    test_hash();
    test_uniform();
    test_int();
    return 0;
}
