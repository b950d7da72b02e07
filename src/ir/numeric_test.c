/* Number formats: every pattern of the narrow types, ties, ends of the range, text. */
#include "ir/numeric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

static const Type narrow[] = {TYPE_F4E2M1FN,  TYPE_F6E2M3FN,      TYPE_F6E3M2FN,   TYPE_F8E3M4, TYPE_F8E4M3,
                              TYPE_F8E4M3FN,  TYPE_F8E4M3B11FNUZ, TYPE_F8E4M3FNUZ, TYPE_F8E5M2, TYPE_F8E5M2FNUZ,
                              TYPE_F8E8M0FNU, TYPE_F16,           TYPE_BF16};
enum { N_NARROW = sizeof narrow / sizeof *narrow };

static uint64_t patterns(Type t) { return (uint64_t)1 << type_bits(t); }

/* Every pattern that is a number comes back from its value; values rise with the pattern. */
static void test_round_trip(void)
{
    for (int k = 0; k < N_NARROW; k++) {
        Type     t = narrow[k];
        double   before = -1;
        uint64_t half = t == TYPE_F8E8M0FNU ? patterns(t) : patterns(t) / 2;
        for (uint64_t x = 0; x < patterns(t); x++) {
            double v = float_decode(t, x);
            CHECK(float_is_nan(t, x) == (isnan(v) != 0));
            if (isnan(v)) {
                CHECK(float_is_nan(t, float_encode(t, v)));
                CHECK(t == TYPE_F8E8M0FNU || (signbit(v) != 0) == (x >= half));
                continue;
            }
            CHECK(float_encode(t, v) == x);
            CHECK(float_convert_from_f64(t, v) == x);
            if (x < half) {
                CHECK(v > before);
                before = v;
            }
        }
    }
    puts("ok round_trip");
}

/* Halfway between neighbours goes to the even pattern, a little beside it to the nearer one. */
static void test_ties(void)
{
    for (int k = 0; k < N_NARROW; k++) {
        Type t = narrow[k];
        if (t == TYPE_F8E8M0FNU)
            continue;
        for (uint64_t x = 0; x + 1 < patterns(t) / 2; x++) {
            double lo = float_decode(t, x), hi = float_decode(t, x + 1), middle = (lo + hi) / 2;
            if (isnan(hi) || isinf(hi) || isinf(lo) || isnan(lo))
                continue;
            CHECK(float_encode(t, middle) == ((x & 1) != 0 ? x + 1 : x));
            CHECK(float_encode(t, nextafter(middle, 0)) == x);
            CHECK(float_encode(t, nextafter(middle, INFINITY)) == x + 1);
        }
    }
    puts("ok ties");
}

/* What lies above the largest finite value: reference operations 1.3. */
static void test_overflow(void)
{
    CHECK(float_encode(TYPE_F8E5M2, 61440) == 0x7c && float_encode(TYPE_F8E5M2, nextafter(61440, 0)) == 0x7b);
    CHECK(float_encode(TYPE_F8E4M3, 248) == 0x78 && float_encode(TYPE_F8E4M3, -248) == 0xf8);
    CHECK(float_encode(TYPE_F8E3M4, 15.75) == 0x70 && float_encode(TYPE_F8E3M4, 15.7) == 0x6f);
    CHECK(float_encode(TYPE_F8E4M3FN, 464) == 0x7e && float_encode(TYPE_F8E4M3FN, nextafter(464, 500)) == 0x7f);
    CHECK(float_encode(TYPE_F8E4M3FN, -INFINITY) == 0xff);
    CHECK(float_encode(TYPE_F8E4M3FNUZ, 248) == 0x80 && float_encode(TYPE_F8E4M3FNUZ, 247.9) == 0x7f);
    CHECK(float_encode(TYPE_F8E4M3B11FNUZ, -31) == 0x80 && float_encode(TYPE_F8E5M2FNUZ, 61440) == 0x80);
    CHECK(float_encode(TYPE_F4E2M1FN, 1e300) == 7 && float_encode(TYPE_F6E2M3FN, -INFINITY) == 0x3f &&
          float_encode(TYPE_F6E3M2FN, 29) == 0x1f);
    CHECK(float_encode(TYPE_F16, 65520) == 0x7c00 && float_encode(TYPE_F16, 65519.99) == 0x7bff);
    CHECK(float_encode(TYPE_BF16, 3.4e38) == 0x7f80 && float_encode(TYPE_F32, 1e39) == 0x7f800000);
    CHECK(float_encode(TYPE_F8E4M3FN, -1e-9) == 0x80 && float_encode(TYPE_F8E4M3FNUZ, -1e-9) == 0);
    CHECK(float_encode(TYPE_F8E4M3, NAN) == 0x7c && float_encode(TYPE_F8E3M4, -NAN) == 0xf8 && float_encode(TYPE_F8E5M2, NAN) == 0x7e);
    CHECK(float_encode(TYPE_F4E2M1FN, NAN) == 8 && float_encode(TYPE_F8E5M2FNUZ, NAN) == 0x80);
    puts("ok overflow");
}

static void test_e8m0(void)
{
    CHECK(float_encode(TYPE_F8E8M0FNU, 1.5) == 128 && float_encode(TYPE_F8E8M0FNU, nextafter(1.5, 0)) == 127);
    CHECK(float_encode(TYPE_F8E8M0FNU, 0) == 0xff && float_encode(TYPE_F8E8M0FNU, -1) == 0xff);
    CHECK(float_encode(TYPE_F8E8M0FNU, 1e-300) == 0 && float_encode(TYPE_F8E8M0FNU, ldexp(1.49, 127)) == 0xfe);
    CHECK(float_encode(TYPE_F8E8M0FNU, ldexp(1.5, 127)) == 0xff && float_encode(TYPE_F8E8M0FNU, INFINITY) == 0xff);
    CHECK(float_decode(TYPE_F8E8M0FNU, 0) == 0x1p-127);
    puts("ok e8m0");
}

/* The fast paths say what the table says, for all patterns and for floats of every exponent near their ties. */
static void test_fast_paths(void)
{
    for (uint32_t x = 0; x < 0x10000; x++) {
        float a = f16_to_f32((uint16_t)x), b = bf16_to_f32((uint16_t)x);
        double c = float_decode(TYPE_F16, x), d = float_decode(TYPE_BF16, x);
        CHECK(isnan(a) ? isnan(c) : (double)a == c && !signbit(a) == !signbit(c));
        CHECK(isnan(b) ? isnan(d) : (double)b == d && !signbit(b) == !signbit(d));
    }
    uint32_t noise = 1;
    for (uint32_t x = 0; x < 1u << 22; x++) {
        static const uint32_t low[4] = {0, 1, 0xfff, 0x1000};
        uint32_t bits = x << 10 | low[x & 3];
        float    v;
        noise = noise * 1664525 + 1013904223;
        bits ^= (x & 4) != 0 ? noise >> 20 : 0;
        memcpy(&v, &bits, sizeof v);
        CHECK(f32_to_f16(v) == float_encode(TYPE_F16, (double)v));
        CHECK(f32_to_bf16(v) == float_encode(TYPE_BF16, (double)v));
    }
    puts("ok fast_paths");
}

static void test_conversions(void)
{
    CHECK(float_convert_from_f64(TYPE_BF16, 1 + 0x1p-8 + 0x1p-40) == 0x3f80); /* through f32: the tie is met there */
    CHECK(float_encode(TYPE_BF16, 1 + 0x1p-8 + 0x1p-40) == 0x3f81);
    CHECK(float_convert_from_s64(TYPE_F64, -3) == float_encode(TYPE_F64, -3));
    CHECK(float_convert_from_u64(TYPE_F32, UINT64_MAX) == 0x5f800000);
    CHECK(int_convert_from_f64(TYPE_S4, 100) == 7 && int_convert_from_f64(TYPE_S4, -100) == -8);
    CHECK(int_convert_from_f64(TYPE_S1, 5) == 0 && int_convert_from_f64(TYPE_S1, -5) == -1 && int_convert_from_f64(TYPE_U1, 5) == 1);
    CHECK(int_convert_from_f64(TYPE_U8, -3) == 0 && int_convert_from_f64(TYPE_U8, 255.9) == 255 &&
          int_convert_from_f64(TYPE_U8, NAN) == 0);
    CHECK(int_convert_from_f64(TYPE_S64, 1e30) == INT64_MAX && int_convert_from_f64(TYPE_S64, -1e30) == INT64_MIN);
    CHECK(int_convert_from_f64(TYPE_U64, INFINITY) == -1 && int_convert_from_f64(TYPE_U64, 0x1p63) == INT64_MIN);
    CHECK(int_convert_from_f64(TYPE_S32, -2.9) == -2 && int_convert_from_f64(TYPE_PRED, NAN) == 1 &&
          int_convert_from_f64(TYPE_PRED, -0.0) == 0);
    CHECK(int_wrap(TYPE_S4, 9) == -7 && int_wrap(TYPE_U2, -1) == 3 && int_wrap(TYPE_S1, 1) == -1 && int_wrap(TYPE_PRED, 256) == 1);
    CHECK(int_wrap(TYPE_U64, -1) == -1 && int_wrap(TYPE_S32, (int64_t)1 << 31) == INT32_MIN);
    puts("ok conversions");
}

static void test_nan(void)
{
    CHECK(nan_make(TYPE_F32, false, 0) == 0x7fc00000 && nan_make(TYPE_F32, true, 1) == 0xff800001);
    CHECK(nan_make(TYPE_F64, false, 0) == 0x7ff8000000000000 && nan_make(TYPE_BF16, true, 0) == 0xffc0);
    CHECK(nan_payload_bits(TYPE_F8E4M3) == 3 && nan_quiet_payload(TYPE_F8E4M3) == 4 && nan_payload_bits(TYPE_F8E4M3FN) == 0);
    CHECK(nan_make(TYPE_F8E4M3FN, true, 0) == 0xff && nan_make(TYPE_F8E5M2FNUZ, false, 0) == 0x80 &&
          nan_make(TYPE_F8E8M0FNU, true, 0) == 0xff);
    puts("ok nan");
}

static void expect(Type t, double v, const char *text)
{
    Buf b = {0};
    number_print_float(&b, t, float_encode(t, v), false);
    if (strcmp(b.p, text) != 0) {
        fprintf(stderr, "%s %a prints as %s, expected %s\n", type_name(t), v, b.p, text);
        exit(1);
    }
    buf_free(&b);
}

static void test_text(void)
{
    expect(TYPE_F32, 0.1, "0.1");
    expect(TYPE_F32, 1e6, "1e+06");
    expect(TYPE_F32, 1234567, "1234567");
    expect(TYPE_F32, -2.5, "-2.5");
    expect(TYPE_F32, 1.0 / 3, "0.333333343");
    expect(TYPE_F32, 1e-45, "1.4013e-45");
    expect(TYPE_F32, 3.4028234663852886e38, "3.40282347e+38");
    expect(TYPE_F32, 0.0001, "0.0001");
    expect(TYPE_F32, 0.00001, "1e-05");
    expect(TYPE_F32, 100, "100");
    expect(TYPE_F32, 16777216, "16777216");
    expect(TYPE_F64, 0.1, "0.1");
    expect(TYPE_F64, 1.0 / 3, "0.33333333333333331");
    expect(TYPE_F16, 0.1, "0.099976");
    expect(TYPE_BF16, 0.1, "0.1001");
    expect(TYPE_F8E5M2, 256, "2.6e+02");
    expect(TYPE_F8E4M3FNUZ, NAN, "-nan");
    expect(TYPE_F32, -0.0, "-0");
    expect(TYPE_F32, INFINITY, "inf");
    Buf b = {0};
    number_print_float(&b, TYPE_F32, 0xff800001, false);
    number_print_float(&b, TYPE_F16, 0x8000, true);
    CHECK(strcmp(b.p, "-nan(0x1)-0.0") == 0);
    buf_free(&b);
    puts("ok text");
}

static void expect_like_library(Type t, uint64_t bits, double v)
{
    bool single = t == TYPE_F32;
    Buf  b = {0};
    char want[40];
    snprintf(want, sizeof want, "%.*g", single ? 6 : 15, v);
    if (single ? (double)strtof(want, NULL) != v : strtod(want, NULL) != v)
        snprintf(want, sizeof want, "%.*g", single ? 9 : 17, v);
    number_print_float(&b, t, bits, false);
    if (strcmp(b.p, want) != 0) {
        fprintf(stderr, "%a prints as %s, expected %s\n", v, b.p, want);
        exit(1);
    }
    buf_free(&b);
}

/* The short cuts print what printf prints, for values of any size and for short ones, which meet ties. */
static void test_text_against_library(void)
{
    uint64_t noise = 7;
    for (int k = 0; k < 200000; k++) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t)(noise >> 32) & (k % 3 == 0 ? 0xffff0000 : UINT32_MAX);
        double   v = float_decode(TYPE_F32, bits), w = ldexp((double)(noise >> (11 + k % 40)), k / 7 % 140 - 100);
        if (!isnan(v) && !isinf(v) && v != 0)
            expect_like_library(TYPE_F32, bits, v);
        expect_like_library(TYPE_F64, float_encode(TYPE_F64, w), w);
        Buf  b = {0};
        char want[40];
        number_print_g(&b, 1 + k % 17, w);
        snprintf(want, sizeof want, "%.*g", 1 + k % 17, w);
        CHECK(strcmp(b.p, want) == 0);
        buf_free(&b);
    }
    puts("ok text_against_library");
}

int main(void)
{
    test_round_trip();
    test_ties();
    test_overflow();
    test_e8m0();
    test_fast_paths();
    test_conversions();
    test_nan();
    test_text();
    test_text_against_library();
    return 0;
}
