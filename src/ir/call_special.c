/* Special functions that HLO has no opcode for, as ordinary arithmetic. All are computed in f64 and rounded once, whatever the type.
 *
 *   lgamma, digamma   Stirling's series at x + 10 and the recurrence back; x < 1/2 by reflection. DLMF 5.11.1, 5.11.2, 5.5.1 to 5.5.4
 *   zeta(s, q)        the sum over (q + k)^-s, its tail by Euler and Maclaurin. DLMF 25.11.5. NaN for s < 1 and for q < 0 that is no pole
 *   polygamma(n, x)   (-1)^(n+1) n! zeta(n + 1, x). DLMF 5.15.1, 25.11.12
 *   bessel_i1e        exp(-|x|) I1(x): the power series, from 25 on the asymptotic one. DLMF 10.25.2, 10.40.1
 *   erfc              Cephes' ndtr.c; exp(-x^2) in two factors, of which the first is exact in its argument
 *   erf_inv           Giles, "Approximating the erfinv function", GPU Computing Gems 2
 *   next_after        the neighbour among the bit patterns
 *
 * What poles and arguments outside of the domain give is what StableHLO's expansions say. */
#include <math.h>
#include <string.h>

#include "ir/call_build.h"

typedef struct Special {
    const char *name;
    int32_t     n;
    Inst     *(*one)(Build *b, Inst *x);
    Inst     *(*two)(Build *b, Inst *x, Inst *y);
} Special;

/* ---- arithmetic ---- */

static Inst *num(Build *b, const Inst *like, double v) { return build_real(b, like->shape, v); }
static Inst *add(Build *b, Inst *x, Inst *y) { return build_binary(b, OP_ADD, x, y); }
static Inst *sub(Build *b, Inst *x, Inst *y) { return build_binary(b, OP_SUBTRACT, x, y); }
static Inst *mul(Build *b, Inst *x, Inst *y) { return build_binary(b, OP_MULTIPLY, x, y); }
static Inst *quot(Build *b, Inst *x, Inst *y) { return build_binary(b, OP_DIVIDE, x, y); }
static Inst *call(Build *b, Op op, Inst *x) { return build_unary(b, op, x->shape->type, x); }
static Inst *less(Build *b, Inst *x, double v) { return build_compare(b, x, num(b, x, v), CMP_LT); }
static Inst *is(Build *b, Inst *x, double v) { return build_compare(b, x, num(b, x, v), CMP_EQ); }

/* c[0] x^(n-1) + ... + c[n-1] */
static Inst *polynomial(Build *b, Inst *x, const double *c, size_t n)
{
    Inst *r = num(b, x, c[0]);
    for (size_t k = 1; k < n; k++)
        r = add(b, mul(b, r, x), num(b, x, c[k]));
    return r;
}
#define POLYNOMIAL(b, x, c) polynomial(b, x, c, sizeof (c) / sizeof *(c))

/* ---- the gamma function's family ---- */

enum { SHIFT = 10 };

/* x, moved up by SHIFT where it is below. */
static Inst *shifted(Build *b, Inst *x)
{
    return build_select(b, less(b, x, SHIFT), add(b, x, num(b, x, SHIFT)), x);
}

static Inst *not_negative(Build *b, Inst *x, Inst **reflected)
{
    *reflected = less(b, x, 0.5);
    return build_select(b, *reflected, sub(b, num(b, x, 1), x), x);
}

/* x minus the nearest integer: sin and tan of pi x are those of pi r, but for the sign. */
static Inst *to_integer(Build *b, Inst *x)
{
    return sub(b, x, call(b, OP_ROUND_NEAREST_EVEN, x));
}

static Inst *lgamma_of(Build *b, Inst *x)
{
    static const double series[] = { 1.0 / 156, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12 };
    Inst *reflected, *z = not_negative(b, x, &reflected), *y = shifted(b, z), *inverse = quot(b, num(b, y, 1), y), *log_y = call(b, OP_LOG, y);
    Inst *product = z;
    for (int k = 1; k < SHIFT; k++)
        product = mul(b, product, add(b, z, num(b, z, k)));
    product = build_select(b, less(b, z, SHIFT), product, num(b, z, 1));
    Inst *tail = mul(b, inverse, POLYNOMIAL(b, mul(b, inverse, inverse), series));
    Inst *r = mul(b, log_y, sub(b, sub(b, y, num(b, y, 0.5)), quot(b, y, log_y)));
    r = add(b, r, add(b, num(b, r, 0.91893853320467274178), tail)); /* log(2 pi) / 2 */
    r = sub(b, r, call(b, OP_LOG, product));
    r = build_select(b, build_binary(b, OP_OR, is(b, x, 1), is(b, x, 2)), num(b, x, 0), r);
    Inst *sine = call(b, OP_ABS, call(b, OP_SINE, mul(b, to_integer(b, x), num(b, x, 3.14159265358979323846))));
    Inst *mirrored = sub(b, sub(b, num(b, x, 1.14472988584940017414), call(b, OP_LOG, sine)), r); /* log(pi) */
    return build_select(b, is(b, call(b, OP_ABS, x), INFINITY), num(b, x, INFINITY), build_select(b, reflected, mirrored, r));
}

static Inst *digamma_of(Build *b, Inst *x)
{
    static const double series[] = { 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12 };
    Inst *reflected, *z = not_negative(b, x, &reflected), *y = shifted(b, z), *inverse = quot(b, num(b, y, 1), y);
    Inst *sum = quot(b, num(b, z, 1), z);
    for (int k = 1; k < SHIFT; k++)
        sum = add(b, sum, quot(b, num(b, z, 1), add(b, z, num(b, z, k))));
    sum = build_select(b, less(b, z, SHIFT), sum, num(b, z, 0));
    Inst *square = mul(b, inverse, inverse);
    Inst *r = sub(b, call(b, OP_LOG, y), mul(b, inverse, num(b, y, 0.5)));
    r = sub(b, sub(b, r, mul(b, square, POLYNOMIAL(b, square, series))), sum);
    Inst *pi = num(b, x, 3.14159265358979323846), *offset = to_integer(b, x);
    Inst *mirrored = sub(b, r, quot(b, pi, call(b, OP_TAN, mul(b, pi, offset))));
    Inst *pole = build_binary(b, OP_AND, is(b, offset, 0), reflected);
    return build_select(b, pole, num(b, x, NAN), build_select(b, reflected, mirrored, r));
}

/* s (s + 1) ... (s + 2 j - 2) w^(-s - 2 j + 1) B_2j / (2 j)!, summed over j. */
static Inst *euler_maclaurin(Build *b, Inst *s, Inst *w, Inst *power)
{
    static const double bernoulli[] = { 1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0,
                                        1.0 / 74724249600.0, -3617.0 / 10670622842880000.0, 43867.0 / 5109094217170944000.0,
                                        -174611.0 / 802857662698291200000.0 };
    Inst *factor = quot(b, mul(b, power, s), w), *sum = num(b, s, 0), *square = mul(b, w, w);
    for (int j = 0; j < (int)(sizeof bernoulli / sizeof *bernoulli); j++) {
        sum = add(b, sum, mul(b, factor, num(b, s, bernoulli[j])));
        Inst *next = mul(b, add(b, s, num(b, s, 2 * j + 1)), add(b, s, num(b, s, 2 * j + 2)));
        factor = quot(b, mul(b, factor, next), square);
    }
    return sum;
}

static Inst *zeta_of(Build *b, Inst *s, Inst *q)
{
    Inst *minus = call(b, OP_NEGATE, s), *first = build_binary(b, OP_POWER, q, minus), *sum = first;
    for (int k = 1; k < SHIFT; k++)
        sum = add(b, sum, build_binary(b, OP_POWER, add(b, q, num(b, q, k)), minus));
    Inst *w = add(b, q, num(b, q, SHIFT)), *power = build_binary(b, OP_POWER, w, minus);
    sum = add(b, sum, quot(b, mul(b, power, w), sub(b, s, num(b, s, 1))));
    sum = add(b, sum, add(b, mul(b, power, num(b, s, 0.5)), euler_maclaurin(b, s, w, power)));
    sum = build_select(b, is(b, q, INFINITY), num(b, q, 0), build_select(b, is(b, s, INFINITY), first, sum));
    Inst *whole = build_compare(b, q, call(b, OP_FLOOR, q), CMP_EQ);
    Inst *outside = build_select(b, whole, num(b, q, INFINITY), num(b, q, NAN));
    sum = build_select(b, build_compare(b, q, num(b, q, 0), CMP_LE), outside, sum);
    sum = build_select(b, is(b, s, 1), num(b, s, INFINITY), sum);
    return build_select(b, less(b, s, 1), num(b, s, NAN), sum);
}

static Inst *polygamma_of(Build *b, Inst *n, Inst *x)
{
    Inst *next = add(b, n, num(b, n, 1)), *half = mul(b, next, num(b, n, 0.5));
    Inst *even = build_compare(b, half, call(b, OP_FLOOR, half), CMP_EQ);
    Inst *size = mul(b, call(b, OP_EXPONENTIAL, lgamma_of(b, next)), zeta_of(b, next, x));
    Inst *r = build_select(b, even, size, call(b, OP_NEGATE, size));
    r = build_select(b, is(b, n, 0), digamma_of(b, x), r);
    Inst *order = build_binary(b, OP_AND, build_compare(b, n, call(b, OP_FLOOR, n), CMP_EQ), build_compare(b, n, num(b, n, 0), CMP_GE));
    return build_select(b, order, r, num(b, n, NAN));
}

/* ---- Bessel's ---- */

/* x / 2 * sum over k of t^k / (k! (k + 1)!), t = (x / 2)^2 */
static Inst *i1_near(Build *b, Inst *x)
{
    Inst *half = mul(b, x, num(b, x, 0.5)), *t = mul(b, half, half), *sum = num(b, x, 1);
    for (int k = 45; k > 0; k--)
        sum = add(b, num(b, x, 1), mul(b, mul(b, t, num(b, x, 1.0 / (k * (k + 1.0)))), sum));
    return mul(b, mul(b, half, sum), call(b, OP_EXPONENTIAL, call(b, OP_NEGATE, x)));
}

/* 1 / sqrt(2 pi x) * (1 - (4 - 1) / (8 x) * (1 - (4 - 9) / (2 * 8 x) * (1 - (4 - 25) / (3 * 8 x) * ...))) */
static Inst *i1_far(Build *b, Inst *x)
{
    Inst *inverse = quot(b, num(b, x, 1), x), *sum = num(b, x, 1);
    for (int k = 30; k > 0; k--)
        sum = sub(b, num(b, x, 1), mul(b, mul(b, inverse, num(b, x, (4.0 - (2.0 * k - 1) * (2.0 * k - 1)) / (8.0 * k))), sum));
    return mul(b, sum, mul(b, num(b, x, 0.39894228040143267794), call(b, OP_RSQRT, x)));
}

static Inst *bessel_i1e_of(Build *b, Inst *x)
{
    Inst *size = call(b, OP_ABS, x);
    Inst *r = build_select(b, less(b, size, 25), i1_near(b, size), i1_far(b, size));
    return mul(b, call(b, OP_SIGN, x), r);
}

/* ---- the error function's family ---- */

static Inst *erfc_of(Build *b, Inst *x)
{
    static const double near_top[] = { 2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687, 4.86371970985681366614e1,
                                       1.96520832956077098242e2, 5.26445194995477358631e2, 9.34528527171957607540e2, 1.02755188689515710272e3,
                                       5.57535335369399327526e2 };
    static const double near_bottom[] = { 1, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2, 9.75708501743205489753e2,
                                          1.82390916687909736289e3, 2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2 };
    static const double far_top[] = { 5.64189583547755073984e-1, 1.27536670759978104416, 5.01905042251180477414, 6.16021097993053585195,
                                      7.40974269950448939160, 2.97886665372100240670 };
    static const double far_bottom[] = { 1, 2.26052863220117276590, 9.39603524938001434673, 1.20489539808096656605e1, 1.70814450747565897222e1,
                                         9.60896809063285878198, 3.36907645100081516050 };
    Inst *z = build_binary(b, OP_MINIMUM, call(b, OP_ABS, x), num(b, x, 30));
    Inst *high = build_unary(b, OP_CONVERT, TYPE_F64, build_unary(b, OP_CONVERT, TYPE_F32, z));
    Inst *low = mul(b, sub(b, high, z), add(b, high, z));
    Inst *e = mul(b, call(b, OP_EXPONENTIAL, call(b, OP_NEGATE, mul(b, high, high))), call(b, OP_EXPONENTIAL, low));
    Inst *top = build_select(b, less(b, z, 8), POLYNOMIAL(b, z, near_top), POLYNOMIAL(b, z, far_top));
    Inst *bottom = build_select(b, less(b, z, 8), POLYNOMIAL(b, z, near_bottom), POLYNOMIAL(b, z, far_bottom));
    Inst *tail = quot(b, mul(b, e, top), bottom);
    Inst *outer = build_select(b, less(b, x, 0), sub(b, num(b, x, 2), tail), tail);
    return build_select(b, less(b, z, 1), sub(b, num(b, x, 1), call(b, OP_ERF, x)), outer);
}

/* x times a polynomial of w = -log(1 - x^2), or of its root further out. */
static Inst *erf_inv_of(Build *b, Inst *x)
{
    static const double near[] = { -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17,
                                   -1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14,
                                   -8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
                                   1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
                                   -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512,
                                   -0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356 };
    static const double middle[] = { 2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
                                     1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05,
                                     -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
                                     0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107,
                                     0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635 };
    static const double far[] = { -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09, -3.7894654401267369937e-09,
                                  7.6157012080783393804e-09, -1.4960026627149240478e-08, 2.9147953450901080826e-08, -6.7711997758452339498e-08,
                                  2.2900482228026654717e-07, -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
                                  7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
                                  4.8499064014085844221 };
    Inst *one = num(b, x, 1), *w = call(b, OP_NEGATE, call(b, OP_LOG, mul(b, sub(b, one, x), add(b, one, x)))), *root = call(b, OP_SQRT, w);
    Inst *r = build_select(b, less(b, w, 16), POLYNOMIAL(b, sub(b, root, num(b, x, 3.25)), middle), POLYNOMIAL(b, sub(b, root, num(b, x, 5)), far));
    r = build_select(b, less(b, w, 6.25), POLYNOMIAL(b, sub(b, w, num(b, x, 3.125)), near), r);
    return mul(b, x, build_select(b, is(b, call(b, OP_ABS, x), 1), num(b, x, INFINITY), r));
}

/* ---- bits ---- */

/* Patterns without their sign rise with the magnitude: one up moves away from 0. From 0 it is the smallest number on y's side. */
static Inst *next_after_of(Build *b, Inst *x, Inst *y)
{
    Type  t = x->shape->type, bits = type_bits(t) == 16 ? TYPE_U16 : type_bits(t) == 32 ? TYPE_U32 : TYPE_U64;
    Inst *pattern = build_unary(b, OP_BITCAST_CONVERT, bits, x), *one = build_whole(b, pattern->shape, 1);
    Inst *up = build_binary(b, OP_ADD, pattern, one), *down = build_binary(b, OP_SUBTRACT, pattern, one);
    Inst *rises = build_compare(b, x, y, CMP_LT), *positive = build_compare(b, x, num(b, x, 0), CMP_GT);
    Inst *moved = build_select(b, build_compare(b, rises, positive, CMP_EQ), up, down);
    Inst *sign = build_binary(b, OP_SHIFT_LEFT, one, build_whole(b, pattern->shape, type_bits(t) - 1));
    moved = build_select(b, is(b, x, 0), build_select(b, rises, one, build_binary(b, OP_OR, sign, one)), moved);
    Inst *r = build_unary(b, OP_BITCAST_CONVERT, t, moved);
    r = build_select(b, build_compare(b, x, y, CMP_EQ), y, r);
    r = build_select(b, build_compare(b, y, y, CMP_NE), y, r);
    return build_select(b, build_compare(b, x, x, CMP_NE), x, r);
}

/* ---- calls ---- */

static const Special functions[] = {
    { "bessel_i1e", 1, bessel_i1e_of, NULL }, { "digamma", 1, digamma_of, NULL },     { "erf_inv", 1, erf_inv_of, NULL },
    { "erfc", 1, erfc_of, NULL },             { "lgamma", 1, lgamma_of, NULL },       { "next_after", 2, NULL, next_after_of },
    { "polygamma", 2, NULL, polygamma_of },   { "zeta", 2, NULL, zeta_of },
};

static Inst *in_f64(Build *b, Inst *x)
{
    return x->shape->type == TYPE_F64 ? x : build_unary(b, OP_CONVERT, TYPE_F64, x);
}

/* The row's argument is the function's name. */
Inst *mean_special(Build *b)
{
    const Special *f = functions;
    while (strcmp(f->name, b->argument) != 0)
        if (++f == functions + sizeof functions / sizeof *functions)
            die("no special function %s", b->argument);
    if (!build_takes(b, f->n) || !build_arrays(b, true))
        return NULL;
    Type t = b->in[0]->shape->type;
    if (!type_is_float(t) || (f->two == next_after_of && type_bits(t) < 16))
        return build_refuse(b, "it does not take %s", type_name(t));
    if (f->two == next_after_of)
        return next_after_of(b, b->in[0], b->in[1]);
    Inst *x = in_f64(b, b->in[0]), *r = f->one ? f->one(b, x) : f->two(b, x, in_f64(b, b->in[1]));
    return t == TYPE_F64 ? r : build_unary(b, OP_CONVERT, t, r);
}
