/* Affine maps: what ranges let divisions become, and what is asked of loops that stand in the way. */
#include "emit/index.h"

#include "support/check.h"

typedef struct Asked {
    const IxAtom *loop;
    int64_t       inner;
    int           times;
} Asked;

static void note(void *cookie, const IxAtom *loop, int64_t inner)
{
    Asked *a = cookie;
    *a = (Asked){ loop, inner, a->times + 1 };
}

static const IxAtom *loop(IxCtx *cx, int64_t n)
{
    return ix_new_atom(cx, IX_LOOP, "i", 0, n - 1, 1, NULL);
}

static void test_arithmetic(IxCtx *cx)
{
    const Ix *i = ix_of(cx, loop(cx, 5)), *j = ix_of(cx, loop(cx, 7)), *x;
    int64_t   c, lo, hi;
    x = ix_add(cx, ix_times(cx, i, 7), ix_plus(cx, j, 3));
    CHECK(x->n == 2 && x->c == 3);
    ix_range(x, &lo, &hi);
    CHECK(lo == 3 && hi == 37);
    CHECK(ix_is_const(ix_add(cx, x, ix_times(cx, x, -1)), &c) && c == 0);
    CHECK(ix_equal(ix_add(cx, i, j), ix_add(cx, j, i)));
    CHECK(ix_is_const(ix_of(cx, ix_new_atom(cx, IX_LOOP, "one", 4, 4, 0, NULL)), &c) && c == 4);
    puts("ok arithmetic");
}

static void test_division(IxCtx *cx)
{
    const Ix *i = ix_of(cx, loop(cx, 5)), *j = ix_of(cx, loop(cx, 4)), *x = ix_add(cx, ix_times(cx, i, 4), j);
    int64_t   c;
    CHECK(ix_equal(ix_div(cx, x, 4), i));
    CHECK(ix_equal(ix_mod(cx, x, 4), j));
    CHECK(ix_is_const(ix_div(cx, j, 4), &c) && c == 0);
    CHECK(ix_equal(ix_div(cx, ix_plus(cx, x, -4), 4), ix_plus(cx, i, -1)));
    CHECK(ix_is_const(ix_div(cx, ix_plus(cx, j, -4), 4), &c) && c == -1); /* floor */
    CHECK(ix_equal(ix_mod(cx, ix_plus(cx, j, -4), 4), j));
    CHECK(ix_equal(ix_div(cx, ix_times(cx, i, 6), 3), ix_times(cx, i, 2)));
    CHECK(ix_equal(ix_div(cx, i, 3), ix_div(cx, i, 3))); /* what stays is one atom */
    CHECK(ix_div(cx, i, 3)->t[0].atom->kind == IX_DIV);
    const Ix *k = ix_plus(cx, ix_of(cx, loop(cx, 100)), 5), *parts = ix_add(cx, ix_times(cx, ix_div(cx, k, 45), 90), ix_times(cx, ix_mod(cx, k, 45), 2));
    CHECK(ix_equal(parts, ix_times(cx, k, 2))); /* what was divided comes together again */
    const Ix *q = ix_of(cx, loop(cx, 200)), *digits = ix_add(cx, ix_times(cx, ix_div(cx, q, 25), 50), ix_times(cx, ix_mod(cx, ix_div(cx, q, 5), 5), 10));
    CHECK(ix_equal(ix_add(cx, digits, ix_times(cx, ix_mod(cx, q, 5), 2)), ix_times(cx, q, 2)));
    CHECK(ix_equal(ix_add(cx, parts, i), ix_add(cx, i, ix_times(cx, k, 2))));
    const Ix *r = ix_add(cx, ix_times(cx, ix_of(cx, loop(cx, 12)), 16384), ix_add(cx, ix_times(cx, ix_of(cx, loop(cx, 256)), 64), ix_of(cx, loop(cx, 64)))), *three[3];
    const int64_t pixels[] = { 256, 256, 3 };
    ix_split(cx, r, 3, pixels, three);
    CHECK(ix_equal(ix_linear(cx, 3, three, pixels), r)); /* the parts of several divisions, which have different factors in common with what is divided, too */
    ix_split(cx, ix_plus(cx, ix_times(cx, r, 3), 5), 3, (const int64_t[]){ 1000, 36, 10 }, three);
    CHECK(ix_equal(ix_linear(cx, 3, three, (const int64_t[]){ 1000, 36, 10 }), ix_plus(cx, ix_times(cx, r, 3), 5)));
    CHECK(!ix_equal(ix_add(cx, ix_times(cx, ix_div(cx, k, 45), 44), ix_mod(cx, k, 45)), k));
    puts("ok division");
}

static void test_split(void)
{
    Arena *a = arena_new();
    Asked  asked = { 0 };
    IxCtx  cx = ix_context(a);
    cx.split = note;
    cx.cookie = &asked;
    const IxAtom *i = loop(&cx, 12);
    ix_mod(&cx, ix_of(&cx, i), 4);
    CHECK(asked.times == 1 && asked.loop == i && asked.inner == 4);
    ix_div(&cx, ix_times(&cx, ix_of(&cx, i), 2), 6); /* 2i / 6 = i / 3 */
    CHECK(asked.times == 2 && asked.inner == 3);
    ix_div(&cx, ix_of(&cx, i), 12);
    CHECK(asked.times == 2);
    arena_free(a);
    puts("ok split");
}

static void test_digits(IxCtx *cx)
{
    /* [3,8] as [6,4] through the loops 3 x 2 x 4: no division is left. */
    const Ix     *o = ix_of(cx, loop(cx, 3)), *h = ix_of(cx, loop(cx, 2)), *l = ix_of(cx, loop(cx, 4));
    const Ix     *from[2] = { o, ix_add(cx, ix_times(cx, h, 4), l) }, *to[2];
    const int64_t from_dims[2] = { 3, 8 }, to_dims[2] = { 6, 4 };
    ix_split(cx, ix_linear(cx, 2, from, from_dims), 2, to_dims, to);
    CHECK(ix_equal(to[0], ix_add(cx, ix_times(cx, o, 2), h)));
    CHECK(ix_equal(to[1], l));
    puts("ok digits");
}

/* [4,38,16] through 38 rounds of 64: digits of which the middle one was divided in parts are the whole again. */
static void test_digits_again(IxCtx *cx)
{
    const Ix     *i = ix_of(cx, loop(cx, 38)), *j = ix_of(cx, loop(cx, 64)), *x = ix_add(cx, ix_times(cx, i, 64), j), *to[3];
    const int64_t dims[3] = { 4, 38, 16 };
    ix_split(cx, x, 3, dims, to);
    CHECK(to[1]->t[0].atom->kind == IX_MOD);
    CHECK(ix_equal(ix_linear(cx, 3, to, dims), x));
    ix_split(cx, ix_plus(cx, x, -3), 3, dims, to);
    CHECK(ix_equal(ix_linear(cx, 3, to, dims), ix_plus(cx, x, -3)));
    ix_split(cx, x, 3, dims, to);
    to[1] = ix_plus(cx, to[1], 1);
    CHECK(ix_equal(ix_linear(cx, 3, to, dims), ix_plus(cx, x, 16)));
    puts("ok digits again");
}

/* What is less than the common factor of the rest decides nothing: (24i + j) / 888 = i / 37 for j < 24. */
static void test_low_part(IxCtx *cx)
{
    const Ix *i = ix_of(cx, loop(cx, 111)), *j = ix_of(cx, loop(cx, 24)), *x = ix_add(cx, ix_times(cx, i, 24), j);
    CHECK(ix_equal(ix_div(cx, x, 888), ix_div(cx, i, 37)));
    CHECK(ix_equal(ix_mod(cx, x, 888), ix_add(cx, ix_times(cx, ix_mod(cx, i, 37), 24), j)));
    CHECK(!ix_equal(ix_div(cx, ix_plus(cx, x, 1), 888), ix_div(cx, i, 37)));
    CHECK(!ix_equal(ix_mod(cx, ix_plus(cx, x, -1), 888), ix_add(cx, ix_times(cx, ix_mod(cx, i, 37), 24), ix_plus(cx, j, -1))));
    puts("ok low part");
}

static void test_replace(IxCtx *cx)
{
    const IxAtom *i = loop(cx, 12);
    const Ix     *j = ix_of(cx, loop(cx, 3)), *x = ix_mod(cx, ix_of(cx, i), 5);
    int64_t       c;
    CHECK(ix_has(x, i) && ix_coef(x, i) == 0);
    CHECK(ix_equal(ix_replace(cx, x, i, ix_plus(cx, j, 5)), j));
    CHECK(ix_is_const(ix_replace(cx, x, i, ix_const(cx, 11)), &c) && c == 1);
    puts("ok replace");
}

int main(void)
{
    Arena *a = arena_new();
    IxCtx  cx = ix_context(a);
    test_arithmetic(&cx);
    test_division(&cx);
    test_split();
    test_digits(&cx);
    test_digits_again(&cx);
    test_low_part(&cx);
    test_replace(&cx);
    arena_free(a);
    return 0;
}
