/* Elementwise opcodes of the evaluator against arithmetic of its own: integers in 128 bits, floats by libm in long double and the
 * basic operations in 128 bits, patterns decoded and rounded here by the columns of types.def. Nothing of src/eval or
 * ir/numeric.c gives an expected value.
 *
 * Sums, products, quotients, roots and conversions are rounded correctly. Functions of f32 and f64 may be 1 ulp off. What is
 * narrower than f32 may be rounded through f32 (reference operations 1.2). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "driver/sweep.h"
#include "eval/eval.h"
#include "ir/shape.h"
#include "ir/verify.h"
#include "support/check.h"
#include "text/parse.h"

typedef long double Real;
#if LDBL_MANT_DIG == 113
typedef long double Quad;
#else
typedef __float128 Quad;
#endif
typedef __int128 Wide;

enum { SHOWN = 3 }; /* of one instruction */

static int failures;

/* ---- values of types ---- */

static uint64_t bits_of(const Literal *l, int64_t i)
{
    uint64_t v = 0;
    size_t n = (size_t)type_bytes(l->type);
    memcpy(&v, (const char *)l->data + (size_t)i * n, n);
    return v;
}

static bool has_infinity(Type t)
{
    return type_info[t].specials == SPECIALS_IEEE;
}

static Real quiet(void)
{
    return (Real)NAN;
}

static Real decode_e8m0(uint64_t v)
{
    return v == 255 ? quiet() : scalbnl(1, (int)v - 127);
}

static Real decode(Type t, uint64_t v)
{
    int man = type_info[t].man, exp = type_info[t].exp;
    uint64_t sign = v >> (exp + man) & 1, e = v >> man & ((1u << exp) - 1), f = v & ((UINT64_C(1) << man) - 1),
             top = (1u << exp) - 1;
    Real m = scalbnl((Real)f, -man);
    switch (type_info[t].specials) {
    case SPECIALS_FNU: return decode_e8m0(v);
    case SPECIALS_IEEE:
        if (e == top)
            return f ? quiet() : sign ? -(Real)INFINITY : (Real)INFINITY;
        break;
    case SPECIALS_FN:
        if (e == top && f == (UINT64_C(1) << man) - 1)
            return quiet();
        break;
    case SPECIALS_FNUZ:
        if (sign && e == 0 && f == 0)
            return quiet();
        break;
    case SPECIALS_FINITE:
    case SPECIALS_NONE: break;
    }
    Real x = e ? scalbnl(1 + m, (int)e - type_info[t].bias) : scalbnl(m, 1 - type_info[t].bias);
    return sign ? -x : x;
}

static Real largest(Type t)
{
    int top = (1 << type_info[t].exp) - 1 - type_info[t].bias, man = type_info[t].man;
    Real all = 2 - scalbnl(1, -man);
    if (has_infinity(t))
        return scalbnl(all, top - 1);
    return type_info[t].specials == SPECIALS_FN ? scalbnl(all - scalbnl(1, -man), top) : scalbnl(all, top);
}

static Real ulp_at(Type t, Real x)
{
    int least = 1 - type_info[t].bias, e = x == 0 || !isfinite(x) ? least : ilogbl(x);
    return scalbnl(1, (e < least ? least : e) - type_info[t].man);
}

/* To f8e8m0fnu: the nearest power of two, halves up; zero and what is negative are NaN. */
static Real round_e8m0(Real x)
{
    if (!(x > 0))
        return quiet();
    int e = isinf(x) ? 200 : ilogbl(x);
    if (isfinite(x) && x >= scalbnl(1.5L, e))
        e++;
    return e > 127 ? quiet() : scalbnl(1, e < -127 ? -127 : e);
}

/* The value of type t nearest to x, ties to even. */
static Real rounded(Type t, Real x)
{
    if (type_info[t].specials == SPECIALS_FNU)
        return round_e8m0(x);
    if (isnan(x))
        return type_info[t].specials == SPECIALS_FINITE ? 0 : x;
    Real u = ulp_at(t, x), r = isinf(x) ? x : rintl(x / u) * u, limit = largest(t);
    if (fabsl(r) > limit) {
        Real beyond = has_infinity(t) ? (Real)INFINITY : type_info[t].specials == SPECIALS_FINITE ? limit : quiet();
        r = signbit(x) ? -beyond : beyond;
    }
    if (r == 0 && type_info[t].specials == SPECIALS_FNUZ)
        return 0;
    return copysignl(r, x);
}

static bool narrow(Type t)
{
    return type_bits(t) < 32;
}

/* The sign of a zero counts where the type has one and NaN has not become it. */
static bool same(Type t, Real a, Real b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b && (a != 0 || type_info[t].specials == SPECIALS_FINITE || !signbit(a) == !signbit(b));
}

static bool is_rounded(Type t, Real got, Real exact)
{
    return same(t, got, rounded(t, exact)) || (narrow(t) && same(t, got, rounded(t, rounded(TYPE_F32, exact))));
}

static bool is_close(Type t, Real got, Real exact)
{
    return is_rounded(t, got, exact) ||
           (!narrow(t) && isfinite(got) && isfinite(exact) && fabsl(got - exact) <= ulp_at(t, exact));
}

/* ---- running one instruction ---- */

typedef struct Run {
    Literal *x[3], *result;
    int n, wrong;
} Run;

static Run run(const char *result, int n, const char *const *types, const Values *values, int64_t count, const char *op,
               const char *attributes)
{
    Arena *a = arena_new();
    Diag d;
    Run r = {.n = n};
    Buf b = {0};
    EvalOptions o = {.memory_limit = 1 << 30};
    buf_puts(&b, "HloModule t\nENTRY e {\n");
    for (int k = 0; k < n; k++)
        buf_printf(&b, "p%d = %s[%lld] parameter(%d)\n", k, types[k], (long long)count, k);
    buf_printf(&b, "ROOT r = %s[%lld] %s(", result, (long long)count, op);
    for (int k = 0; k < n; k++)
        buf_printf(&b, "%sp%d", k ? ", " : "", k);
    buf_printf(&b, ")%s\n}\n", attributes);
    diag_init(&d, a);
    diag_source(&d, "t.hlo", b.p, b.n);
    Module *m = parse_module(b.p, b.n, &d);
    CHECK(m && verify_module(m, &d));
    for (int k = 0; k < n; k++) {
        r.x[k] = literal_for_shape(comp_param(m->entry, k)->shape, true);
        values_fill(r.x[k], values[k], (uint64_t)k + 7);
    }
    r.result = eval_module(m, n, r.x, &o, &d);
    CHECK(r.result);
    module_free(m);
    arena_free(a);
    buf_free(&b);
    return r;
}

static void end(Run *r)
{
    for (int k = 0; k < r->n; k++)
        literal_unref(r->x[k]);
    literal_unref(r->result);
}

static void wrong(const char *op, Run *r, int64_t i, Real expected)
{
    Buf b = {0};
    failures++;
    if (r->wrong++ >= SHOWN)
        return;
    buf_printf(&b, "%s of %s:", op, type_name(r->x[0]->type));
    for (int k = 0; k < r->n; k++) {
        buf_putc(&b, ' ');
        values_print(&b, r->x[k], i);
    }
    buf_printf(&b, " gives %s ", type_name(r->result->type));
    values_print(&b, r->result, i);
    fprintf(stderr, "%s, expected %.22Lg\n", b.p, expected);
    buf_free(&b);
}

/* ---- floats ---- */

static Real sign(Real x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}
static Real logistic(Real x)
{
    return 1 / (1 + expl(-x));
} /* (in this form: below the point where exp(-x) overflows it is 0) */
static Real rsqrt(Real x)
{
    return 1 / sqrtl(x);
}
static Real negate(Real x)
{
    return -x;
}

typedef struct Function {
    const char *op;
    Real (*f)(Real);
    bool exact;
} Function;

static const Function functions[] = {
    {"abs", fabsl, true},
    {"negate", negate, true},
    {"sign", sign, true},
    {"floor", floorl, true},
    {"ceil", ceill, true},
    {"round-nearest-afz", roundl, true},
    {"round-nearest-even", rintl, true},
    {"acos", acosl, false},
    {"acosh", acoshl, false},
    {"asin", asinl, false},
    {"asinh", asinhl, false},
    {"atanh", atanhl, false},
    {"cbrt", cbrtl, false},
    {"cosine", cosl, false},
    {"cosh", coshl, false},
    {"erf", erfl, false},
    {"exp2", exp2l, false},
    {"exponential", expl, false},
    {"exponential-minus-one", expm1l, false},
    {"log", logl, false},
    {"log2", log2l, false},
    {"log-plus-one", log1pl, false},
    {"logistic", logistic, false},
    {"rsqrt", rsqrt, false},
    {"sine", sinl, false},
    {"sinh", sinhl, false},
    {"sqrt", sqrtl, false},
    {"tan", tanl, false},
    {"tanh", tanhl, false},
};

/* |got - sqrt(x)| by got^2 - x, where long double has too few digits to tell halves apart. */
static bool is_root(Type t, Real got, Real x)
{
    Quad g = got, excess = g * g - (Quad)x, allowed = g * (Quad)ulp_at(t, got);
    return t != TYPE_F64 || !(got > 0) || isinf(got) || (excess <= allowed && excess >= -allowed);
}

/* 1 / (1 + exp(-x)), each step in the type that is computed in: 3 ulp of that, and 0 where exp overflows. */
static bool is_logistic(Type t, Real got, Real x)
{
    Type at = narrow(t) ? TYPE_F32 : t;
    Real exact = logistic(x), off = 3 * ulp_at(at, exact), room = narrow(t) ? ulp_at(t, exact) / 2 : 0;
    if (isnan(exact) || isinf(rounded(at, expl(-x))))
        return is_rounded(t, got, isnan(exact) ? exact : 0);
    return is_rounded(t, got, exact) || fabsl(got - exact) <= off + room;
}

static void test_function(const Function *f, Type t)
{
    const char *type = type_name(t);
    const Values values = VALUES_EDGES;
    Run r = run(type, 1, &type, &values, values_single(t), f->op, "");
    for (int64_t i = 0; i < r.result->count; i++) {
        Real x = decode(t, bits_of(r.x[0], i)), got = decode(t, bits_of(r.result, i)), exact = f->f(x);
        bool good = f->exact ? is_rounded(t, got, exact) : f->f == logistic ? is_logistic(t, got, x) : is_close(t, got, exact);
        if (f->f == sqrtl)
            good = good && is_root(t, got, x);
        if (!good)
            wrong(f->op, &r, i, exact);
    }
    end(&r);
}

/* Exact to beyond twice the digits of f64, so that the second rounding does no harm. */
static Real quad(Type t, const char *op, Real x, Real y)
{
    Quad a = x, b = y, r = *op == 'a' ? a + b : *op == 's' ? a - b : *op == 'm' ? a * b : a / b;
    if (t != TYPE_F64 || !isfinite((Real)r) || r == 0)
        return (Real)r;
    Real head = (Real)r, u = ulp_at(t, head);
    Quad steps = r / u, whole = (Quad)rintl((Real)steps),
               rest = steps - whole; /* steps < 2^54: rintl of 64 bits may err at a half */
    if (rest > 0.5 || (rest == 0.5 && fmodl((Real)whole, 2) != 0))
        whole += 1;
    if (rest < -0.5 || (rest == -0.5 && fmodl((Real)whole, 2) != 0))
        whole -= 1;
    return (Real)(whole * u);
}

static Real extreme(Real x, Real y, bool top)
{
    if (isnan(x) || isnan(y))
        return quiet();
    return top ? (x < y ? y : x) : y < x ? y : x;
}

static Real two(Type t, const char *op, Real x, Real y)
{
    if (!strcmp(op, "maximum") || !strcmp(op, "minimum"))
        return extreme(x, y, op[1] == 'a');
    if (!strcmp(op, "power")) /* (powl does not know that -2^63 is even) */
        return x == 1 || y == 0 ? 1 : isinf(x) ? (Real)pow((double)x, (double)y) : powl(x, y);
    if (!strcmp(op, "atan2"))
        return atan2l(x, y);
    return !strcmp(op, "remainder") ? fmodl(x, y) : quad(t, op, x, y);
}

static void test_two_floats(const char *op, Type t)
{
    const char *types[] = {type_name(t), type_name(t)};
    const Values values[] = {VALUES_FAST, VALUES_SLOW};
    bool inexact = !strcmp(op, "power") || !strcmp(op, "atan2");
    Run r = run(types[0], 2, types, values, values_pairs(t), op, "");
    for (int64_t i = 0; i < r.result->count; i++) {
        Real x = decode(t, bits_of(r.x[0], i)), y = decode(t, bits_of(r.x[1], i)), got = decode(t, bits_of(r.result, i)),
             exact = two(t, op, x, y);
        if (!(inexact ? is_close(t, got, exact) : is_rounded(t, got, exact)))
            wrong(op, &r, i, exact);
    }
    end(&r);
}

/* ---- integers ---- */

static Wide number(Type t, uint64_t v)
{
    Wide n = v & (type_bits(t) == 64 ? UINT64_MAX : (UINT64_C(1) << type_bits(t)) - 1);
    return type_is_signed_int(t) && n >> (type_bits(t) - 1) ? n - ((Wide)1 << type_bits(t)) : n;
}

static Wide lowest(Type t)
{
    return type_is_signed_int(t) ? -((Wide)1 << (type_bits(t) - 1)) : 0;
}

static Wide highest(Type t)
{
    return t == TYPE_PRED ? 1 : lowest(t) + ((Wide)1 << type_bits(t)) - 1;
}

static Wide wrap(Type t, Wide n)
{
    Wide span = (Wide)1 << type_bits(t), r = n % span;
    r += r < 0 ? span : 0;
    return r > highest(t) ? r - span : r;
}

static Wide int_power(Type t, Wide x, Wide y)
{
    if (y < 0)
        return x == 1;
    Wide r = 1;
    for (int b = 63; b >= 0; b--) {
        r = wrap(TYPE_U64, (Wide)((unsigned __int128)wrap(TYPE_U64, r) * (unsigned __int128)wrap(TYPE_U64, r) & UINT64_MAX));
        if (y >> b & 1)
            r = wrap(TYPE_U64, (Wide)((unsigned __int128)r * (unsigned __int128)wrap(TYPE_U64, x) & UINT64_MAX));
    }
    return wrap(t, r);
}

static Wide shifted(Type t, const char *op, Wide x, Wide y)
{
    int bits = type_bits(t);
    Wide span = (Wide)1 << bits, plain = x < 0 ? x + span : x, amount = y < 0 ? y + span : y;
    Wide signed_x = plain >> (bits - 1) ? plain - span : plain;
    if (!strcmp(op, "shift-left"))
        return amount >= bits ? 0 : wrap(t, (Wide)((unsigned __int128)plain << amount & (unsigned __int128)(span - 1)));
    if (!strcmp(op, "shift-right-logical"))
        return amount >= bits ? 0 : wrap(t, plain >> amount);
    return wrap(t, amount >= bits ? (signed_x < 0 ? -1 : 0) : signed_x >> amount);
}

static Wide two_ints(Type t, const char *op, Wide x, Wide y)
{
    if (!strncmp(op, "shift", 5))
        return shifted(t, op, x, y);
    if (!strcmp(op, "add"))
        return wrap(t, x + y);
    if (!strcmp(op, "subtract"))
        return wrap(t, x - y);
    if (!strcmp(op, "multiply")) /* by halves of y, so that 128 bits do */
        return wrap(t, wrap(t, x * (y >> 32)) * ((Wide)1 << 32) + x * (y & UINT32_MAX));
    if (!strcmp(op, "divide"))
        return wrap(t, y == 0 ? -1 : x / y);
    if (!strcmp(op, "remainder"))
        return y == 0 ? x : x % y;
    if (!strcmp(op, "power"))
        return int_power(t, x, y);
    if (!strcmp(op, "maximum"))
        return x > y ? x : y;
    if (!strcmp(op, "minimum"))
        return x < y ? x : y;
    return wrap(t, *op == 'a' ? (x & y) : *op == 'o' ? (x | y) : (x ^ y));
}

static void test_two_ints(const char *op, Type t)
{
    const char *types[] = {type_name(t), type_name(t)};
    const Values values[] = {VALUES_FAST, VALUES_SLOW};
    Run r = run(types[0], 2, types, values, values_pairs(t), op, "");
    for (int64_t i = 0; i < r.result->count; i++) {
        Wide expected = two_ints(t, op, number(t, bits_of(r.x[0], i)), number(t, bits_of(r.x[1], i)));
        if (number(t, bits_of(r.result, i)) != expected)
            wrong(op, &r, i, (Real)expected);
    }
    end(&r);
}

static Wide one_int(Type t, const char *op, Wide x)
{
    Wide plain = x < 0 ? x + ((Wide)1 << type_bits(t)) : x;
    int ones = 0, zeros = 0;
    for (int b = 0; b < type_bits(t); b++) {
        ones += (int)(plain >> b & 1);
        zeros = plain >> b & 1 ? 0 : zeros + 1;
    }
    if (!strcmp(op, "popcnt"))
        return wrap(t, ones);
    if (!strcmp(op, "count-leading-zeros"))
        return wrap(t, zeros);
    if (!strcmp(op, "not"))
        return wrap(t, -x - 1);
    if (!strcmp(op, "sign"))
        return (x > 0) - (x < 0);
    return wrap(t, *op == 'n' || x < 0 ? -x : x);
}

static void test_one_int(const char *op, Type t)
{
    const char *type = type_name(t);
    const Values values = VALUES_EDGES;
    Run r = run(type, 1, &type, &values, values_single(t), op, "");
    for (int64_t i = 0; i < r.result->count; i++) {
        Wide expected = one_int(t, op, number(t, bits_of(r.x[0], i)));
        if (number(t, bits_of(r.result, i)) != expected)
            wrong(op, &r, i, (Real)expected);
    }
    end(&r);
}

/* ---- conversions ---- */

/* Long double has the 64 bits that every integer needs. f64 goes to f16 and bf16 through f32, integers go so to all narrow
 * floats. */
static Real converted(Type from, Type to, Real x)
{
    if (to == TYPE_PRED)
        return isnan(x) || x != 0;
    if (type_is_float(to))
        return rounded(
            to, narrow(to) && (!type_is_float(from) || (from == TYPE_F64 && type_bits(to) == 16)) ? rounded(TYPE_F32, x) : x);
    if (!type_is_float(from))
        return (Real)wrap(to, (Wide)x);
    if (isnan(x))
        return 0;
    return x <= (Real)lowest(to) ? (Real)lowest(to) : x >= (Real)highest(to) ? (Real)highest(to) : truncl(x);
}

static Real value_of(const Literal *l, int64_t i)
{
    uint64_t v = bits_of(l, i);
    return type_is_float(l->type) ? decode(l->type, v) : l->type == TYPE_PRED ? (Real)v : (Real)number(l->type, v);
}

static void test_convert(Type from, Type to)
{
    const char *type = type_name(from);
    const Values values = VALUES_EDGES;
    Run r = run(type_name(to), 1, &type, &values, values_single(from), "convert", "");
    for (int64_t i = 0; i < r.result->count; i++) {
        Real expected = converted(from, to, value_of(r.x[0], i)), got = value_of(r.result, i);
        if (type_is_float(to) ? !same(to, got, expected) : got != expected)
            wrong("convert", &r, i, expected);
    }
    end(&r);
}

static void test_compare(Type t)
{
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    for (int k = 0; k < 6; k++) {
        const char *types[] = {type_name(t), type_name(t)};
        const Values values[] = {VALUES_FAST, VALUES_SLOW};
        char attributes[32];
        snprintf(attributes, sizeof attributes, ", direction=%s", directions[k]);
        Run r = run("pred", 2, types, values, values_pairs(t), "compare", attributes);
        for (int64_t i = 0; i < r.result->count; i++) {
            Real x = value_of(r.x[0], i), y = value_of(r.x[1], i);
            bool expected[] = {x == y, x != y, x >= y, x > y, x <= y, x < y};
            if ((bits_of(r.result, i) != 0) != expected[k])
                wrong(directions[k], &r, i, expected[k]);
        }
        end(&r);
    }
}

/* ---- all of them ---- */

static bool is_real(Type t)
{
    return type_is_float(t) || type_is_int(t) || t == TYPE_PRED;
}

static void test_floats(void)
{
    static const char *const ops[] = {"add",   "subtract", "multiply", "divide", "remainder",
                                      "power", "atan2",    "maximum",  "minimum"};
    for (Type t = 0; t < TYPE_COUNT; t++) {
        if (!type_is_float(t))
            continue;
        for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
            test_function(&functions[k], t);
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            test_two_floats(ops[k], t);
    }
}

static void test_ints(void)
{
    static const char *const pairs[] = {"add",
                                        "subtract",
                                        "multiply",
                                        "divide",
                                        "remainder",
                                        "power",
                                        "maximum",
                                        "minimum",
                                        "and",
                                        "or",
                                        "xor",
                                        "shift-left",
                                        "shift-right-logical",
                                        "shift-right-arithmetic"};
    static const char *const singles[] = {"negate", "not", "popcnt", "count-leading-zeros", "abs", "sign"};
    for (Type t = 0; t < TYPE_COUNT; t++) {
        if (!type_is_int(t))
            continue;
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
            test_two_ints(pairs[k], t);
        for (size_t k = 0; k < (type_is_signed_int(t) ? 6 : 4); k++)
            test_one_int(singles[k], t);
    }
}

int main(void)
{
    test_floats();
    test_ints();
    for (Type from = 0; from < TYPE_COUNT; from++)
        for (Type to = 0; to < TYPE_COUNT; to++)
            if (is_real(from) && is_real(to))
                test_convert(from, to);
    for (Type t = 0; t < TYPE_COUNT; t++)
        if (is_real(t) && t != TYPE_F8E8M0FNU) /* that orders as a byte, NaN too */
            test_compare(t);
    if (failures)
        fprintf(stderr, "%d values are wrong\n", failures);
    return failures > 0;
}
