/* Double precision: which values and instructions are raised, how far results are from it, and which of two is worse. */
#include "config.h"

#include "driver/shadow_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "text/parse.h"

static Literal *row(Type t, int n, const double *v)
{
    int64_t  dims[] = {n};
    Literal *l = literal_new(t, 1, dims);
    for (int k = 0; k < n; k++)
        literal_set_f64(l, k, v[k], 0);
    return l;
}

static void test_values(void)
{
    static const double v[] = {0.5, -0.0, INFINITY, NAN};
    Literal *f = row(TYPE_BF16, 4, v), *r = shadow_raise(f);
    CHECK(r->type == TYPE_F64 && r->count == 4 && literal_get_f64(r, 0) == 0.5 && signbit(literal_get_f64(r, 1)) && isinf(literal_get_f64(r, 2)) &&
          isnan(literal_get_f64(r, 3)));
    literal_unref(r);
    Literal *i = literal_from_s64(TYPE_S32, 7), *same = shadow_raise(i);
    CHECK(same == i); /* integers stay */
    literal_unref(same);
    Literal *c = literal_from_f64(TYPE_C64, 2), *pair[] = {i, c}, *t = literal_tuple(2, pair);
    r = shadow_raise(t);
    CHECK(r->type == TYPE_TUPLE && r->elems[0]->type == TYPE_S32 && r->elems[1]->type == TYPE_C128 && literal_get_f64(r->elems[1], 0) == 2);
    literal_unref(r);
    literal_unref(t);
    literal_unref(f);
    puts("ok values");
}

static const Inst *named(const Module *m, const char *name)
{
    for (const Comp *c = m->first; c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next)
            if (strcmp(i->name, name) == 0)
                return i;
    return NULL;
}

static void test_module(void)
{
    static const char text[] = "HloModule m\n"
                               "ENTRY e {\n"
                               "  x = f32[2] parameter(0)\n"
                               "  n = s32[2] parameter(1)\n"
                               "  y = f32[2] add(x, x)\n"
                               "  cut = f32[2] reduce-precision(y), exponent_bits=8, mantissa_bits=7\n"
                               "  bits = s32[2] bitcast-convert(y)\n"
                               "  less = pred[2] compare(cut, x), direction=LT\n"
                               "  z = bf16[2] convert(y)\n"
                               "  more = s32[2] add(n, bits)\n"
                               "  ROOT r = (pred[2], bf16[2], s32[2]) tuple(less, z, more)\n"
                               "}\n";
    Arena  *a = arena_new();
    Diag    d;
    diag_init(&d, a);
    Module *m = parse_module(text, sizeof text - 1, &d), *raised;
    CHECK(m && d.errors == 0);
    raised = shadow_module(m);
    CHECK(named(m, "y")->shape->type == TYPE_F32); /* m itself is as it was */
    CHECK(named(raised, "x")->shape->type == TYPE_F64 && named(raised, "y")->shape->type == TYPE_F64 && named(raised, "z")->shape->type == TYPE_F64);
    CHECK(named(raised, "n")->shape->type == TYPE_S32 && named(raised, "more")->shape->type == TYPE_S32);
    const Inst *cut = named(raised, "cut"), *bits = named(raised, "bits");
    CHECK(cut->shape->type == TYPE_F32 && inst_operand(cut, 0)->op == OP_CONVERT && inst_operand(cut, 0)->shape->type == TYPE_F32);
    CHECK(inst_operand(named(raised, "less"), 0)->shape->type == TYPE_F64); /* and back, for its users */
    CHECK(bits->shape->type == TYPE_S32 && inst_operand(bits, 0)->shape->type == TYPE_F32);
    module_free(raised);
    module_free(m);
    arena_free(a);
    puts("ok module");
}

static Distance distance(Type t, int n, const double *v, const double *exact)
{
    Literal *x = row(t, n, v), *e = row(type_is_float(t) ? TYPE_F64 : t, n, exact);
    Distance d = distance_of(x, e);
    literal_unref(x);
    literal_unref(e);
    return d;
}

/* 3-4-5: the mean square of 3 and 4 is 12.5. */
static void test_distance(void)
{
    Distance d = distance(TYPE_F32, 2, (double[]){13, 16}, (double[]){10, 20});
    CHECK(d.finite == 2 && d.wrong == 0 && d.largest == 4 && d.at == 1 && d.mean == sqrt(12.5));
    d = distance(TYPE_F32, 4, (double[]){NAN, INFINITY, 1, INFINITY}, (double[]){NAN, INFINITY, INFINITY, -INFINITY});
    CHECK(d.finite == 0 && d.wrong == 2 && d.mean == 0); /* finite on one side alone; another infinity */
    d = distance(TYPE_F32, 2, (double[]){INFINITY, 1}, (double[]){1e39, 1});
    CHECK(d.wrong == 0 && d.finite == 1); /* 1e39 is an infinity of f32 */
    d = distance(TYPE_F32, 1, (double[]){INFINITY}, (double[]){1e38});
    CHECK(d.wrong == 1);
    d = distance(TYPE_S32, 3, (double[]){1, 2, 3}, (double[]){1, 5, 7});
    CHECK(d.wrong == 2 && d.mean == 0);
    puts("ok distance");
}

/* A worse result and a merely different one. */
static void test_worse(void)
{
    const double exact[] = {0, 0};
    Distance     near = distance(TYPE_F64, 2, (double[]){1, 0}, exact), other = distance(TYPE_F64, 2, (double[]){0, -1}, exact);
    Distance     twice = distance(TYPE_F64, 2, (double[]){2, 0}, exact), more = distance(TYPE_F64, 2, (double[]){0, 2.5}, exact);
    Distance     nan = distance(TYPE_F64, 2, (double[]){0, NAN}, exact), none = distance(TYPE_F64, 2, exact, exact);
    CHECK(distance_worse(&near, &other) == 0 && distance_worse(&near, &twice) == 0 && distance_worse(&twice, &near) == 0);
    CHECK(distance_worse(&more, &near) < 0 && distance_worse(&near, &more) > 0);
    CHECK(distance_worse(&near, &none) < 0 && distance_worse(&none, &near) > 0 && distance_worse(&none, &none) == 0);
    CHECK(distance_worse(&nan, &more) < 0 && distance_worse(&more, &nan) > 0); /* what is finite on one side alone counts first */
    puts("ok worse");
}

int main(void)
{
    test_values();
    test_module();
    test_distance();
    test_worse();
    return 0;
}
