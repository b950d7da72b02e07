/* Literals: ownership, elements, comparison, text. */
#include "ir/literal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

static Literal *counting(Type t, int32_t rank, const int64_t *dims)
{
    Literal *l = literal_new(t, rank, dims);
    for (int64_t k = 0; k < l->count; k++)
        literal_set_s64(l, k, k);
    return l;
}

static void expect(Literal *l, const char *text)
{
    Buf b = {0};
    literal_print(&b, l, false);
    if (strcmp(b.p, text) != 0) {
        fprintf(stderr, "got      %s\nexpected %s\n", b.p, text);
        exit(1);
    }
    buf_free(&b);
    literal_unref(l);
}

static void test_ownership(void)
{
    Arena   *a = arena_new();
    Literal *l = counting(TYPE_S32, 1, (int64_t[]){3});
    CHECK((uintptr_t)l->data % 64 == 0);
    CHECK(literal_keep(a, literal_ref(l)) == l && l->refs == 2);
    Literal *mine = literal_own(l); /* shared: a copy */
    CHECK(mine != l && literal_equal(mine, l) && l->refs == 1);
    literal_set_s64(mine, 2, 9);
    CHECK(!literal_equal(mine, l) && literal_get_s64(l, 2) == 2);
    CHECK(literal_own(mine) == mine);
    literal_unref(mine);
    int32_t  outside[2] = {4, 5};
    Literal *borrowed = literal_borrow(TYPE_S32, 1, (int64_t[]){2}, outside);
    borrowed = literal_own(borrowed);
    CHECK(borrowed->data != outside && literal_get_s64(borrowed, 1) == 5);
    literal_unref(borrowed);
    arena_free(a);
    puts("ok ownership");
}

static void test_elements(void)
{
    static const Type ints[] = {TYPE_S1, TYPE_S2, TYPE_S4, TYPE_S8, TYPE_S16, TYPE_S32, TYPE_S64};
    for (size_t k = 0; k < sizeof ints / sizeof *ints; k++) {
        Literal *l = literal_from_s64(ints[k], -1);
        CHECK(literal_get_s64(l, 0) == -1 && literal_get_f64(l, 0) == -1);
        literal_unref(l);
        l = literal_from_s64((Type)(ints[k] - TYPE_S1 + TYPE_U1), -1);
        CHECK((uint64_t)literal_get_s64(l, 0) == UINT64_MAX >> (64 - type_bits(l->type)));
        literal_unref(l);
    }
    Literal *u = literal_from_s64(TYPE_U64, -1);
    CHECK(literal_get_f64(u, 0) == 0x1p64);
    literal_unref(u);
    Literal *c = literal_new_zero(TYPE_C64, 1, (int64_t[]){2});
    literal_set_f64(c, 1, 1.5, -2);
    CHECK(literal_get_f64(c, 1) == 1.5 && literal_get_imag(c, 1) == -2 && literal_get_f64(c, 0) == 0);
    literal_unref(c);
    Literal *h = literal_from_f64(TYPE_F16, 65519);
    CHECK(literal_get_f64(h, 0) == 65504 && literal_get_s64(h, 0) == 65504);
    literal_unref(h);
    Literal *p = literal_from_f64(TYPE_PRED, 0.5);
    CHECK(literal_get_s64(p, 0) == 1);
    literal_unref(p);
    puts("ok elements");
}

static void test_comparison(void)
{
    Literal *a = counting(TYPE_F32, 2, (int64_t[]){2, 3}), *b = counting(TYPE_F32, 2, (int64_t[]){2, 3});
    Literal *c = counting(TYPE_F32, 2, (int64_t[]){3, 2});
    CHECK(literal_equal(a, b) && literal_hash(a) == literal_hash(b));
    CHECK(!literal_equal(a, c));
    literal_set_f64(b, 0, -0.0, 0);
    CHECK(!literal_equal(a, b));
    CHECK(!literal_all_equal_bits(a));
    Literal *z = literal_new_zero(TYPE_F32, 2, (int64_t[]){4, 5});
    CHECK(literal_all_equal_bits(z) && literal_bytes(z) == 80);
    Arena       *arena = arena_new();
    const Shape *s = shape_array(arena, TYPE_F32, 2, (int64_t[]){2, 3});
    CHECK(literal_matches(a, s) && !literal_matches(c, s));
    Literal *e = literal_elided(s), *f = literal_elided(s);
    CHECK(e->data == NULL && e->count == 6 && literal_has_elided(e) && !literal_equal(e, f) && literal_equal(e, e));
    Literal *t = literal_tuple(2, (Literal *[]){a, e});
    CHECK(literal_has_elided(t) && shape_equal(literal_shape(arena, t)->elems[0], s));
    literal_unref(t);
    literal_unref(b), literal_unref(c), literal_unref(z), literal_unref(f);
    arena_free(arena);
    puts("ok comparison");
}

static void test_text(void)
{
    expect(literal_from_s64(TYPE_S8, -128), "-128");
    expect(literal_from_s64(TYPE_S64, INT64_MIN), "-9223372036854775808");
    expect(literal_from_s64(TYPE_U64, -1), "18446744073709551615");
    expect(literal_from_s64(TYPE_PRED, 1), "true");
    expect(counting(TYPE_PRED, 1, (int64_t[]){3}), "{0, 1, 1}");
    expect(counting(TYPE_S32, 1, (int64_t[]){0}), "{}");
    expect(counting(TYPE_S32, 2, (int64_t[]){2, 2}), "{ { 0, 1 }, { 2, 3 } }");
    expect(counting(TYPE_S32, 2, (int64_t[]){2, 1}), "{ {0}, {1} }");
    expect(counting(TYPE_S32, 2, (int64_t[]){2, 0}), "{ {}, {} }");
    expect(counting(TYPE_S32, 2, (int64_t[]){0, 2}), "{  }");
    expect(counting(TYPE_S32, 3, (int64_t[]){1, 2, 2}), "{ { { 0, 1 }, { 2, 3 } } }");
    expect(counting(TYPE_S32, 4, (int64_t[]){1, 1, 1, 2}), "{ { /*i0=0*/ { /*i1=0*/ { 0, 1 } } } }");
    expect(literal_from_f64(TYPE_C64, 1), "(1, 0)");
    expect(literal_tuple(2, (Literal *[]){literal_from_f64(TYPE_F32, 0.5), literal_tuple(0, NULL)}), "( 0.5, (  ) )");
    Arena *a = arena_new();
    expect(literal_elided(shape_array(a, TYPE_F32, 1, (int64_t[]){9})), "{...}");
    arena_free(a);
    puts("ok text");
}

int main(void)
{
    test_ownership();
    test_elements();
    test_comparison();
    test_text();
    return 0;
}
