/* What is known of computed values: the arithmetic of Facts. Bounds are of magnitudes; complex numbers are bounded by part. */
#include "driver/random_int.h"

#include <math.h>

#include "ir/numeric.h"

static double eps(Type t)
{
    return ldexp(1, -type_info[type_component(t)].man);
}

/* The largest finite value. */
static double largest(Type t)
{
    const TypeInfo *x = &type_info[type_component(t)];
    double          most = 0;
    if (x->bits > 8)
        return ldexp(2 - ldexp(1, -x->man), x->bias);
    for (uint64_t bits = 0; bits < UINT64_C(1) << x->bits; bits++) {
        double v = float_decode(t, bits);
        if (isfinite(v) && v > most)
            most = v;
    }
    return most;
}

double whole_limit(Type t)
{
    if (!is_arith_float(t) && !type_is_complex(t))
        return 0;
    double all = ldexp(2, type_info[type_component(t)].man), most = floor(largest(t));
    return all < most ? all : most;
}

bool is_arith_float(Type t)
{
    return type_is_float(t) && t != TYPE_F8E8M0FNU;
}

static double int_limit(Type t)
{
    return t == TYPE_PRED ? 1 : ldexp(1, type_bits(t) - type_is_signed_int(t));
}

Facts facts_whole(double bound)
{
    return (Facts){ .acc = WHOLE, .bound = bound };
}

Facts facts_int(Type t)
{
    return facts_whole(int_limit(t));
}

Facts facts_data(const Gen *g, Type t)
{
    if (!type_is_float(t) && !type_is_complex(t))
        return facts_int(t);
    if (g->specials || t == TYPE_F8E8M0FNU)
        return (Facts){ .acc = EXACT, .bound = INFINITY, .nan = true };
    return (Facts){ .acc = EXACT, .bound = 1.5 };
}

Facts facts_join(Facts a, Facts b)
{
    return (Facts){ a.acc > b.acc ? a.acc : b.acc, a.bound > b.bound ? a.bound : b.bound, a.error > b.error ? a.error : b.error,
                    a.nan || b.nan, a.vague || b.vague };
}

/* f holds before rounding; once: f.acc is kept by a single rounding. */
static Facts settled(Type t, Facts f, bool once)
{
    if (!type_is_float(t) && !type_is_complex(t))
        return facts_whole(f.bound < int_limit(t) ? f.bound : int_limit(t));
    if (f.acc == WHOLE && !(f.bound <= whole_limit(t)))
        f.acc = EXACT;
    else if (f.acc == WHOLE)
        once = true;
    if (f.acc == EXACT && !once)
        f.acc = ROUGH;
    if (f.acc == ROUGH)
        f.error += 2 * eps(t) * f.bound;
    if (!(f.bound < largest(t))) {
        f.bound = INFINITY;
        f.nan = true;
    }
    f.vague |= f.nan;
    return f;
}

Facts facts_add(Type t, Facts a, Facts b)
{
    Facts f = facts_join(a, b);
    f.bound = a.bound + b.bound;
    f.error = a.error + b.error;
    return settled(t, f, true);
}

/* The product of two floats of up to 11 significant bits is a float of 24, and rounding it keeps it from being joined with an addition. */
Facts facts_mul(Type t, Facts a, Facts b)
{
    Facts f = facts_join(a, b);
    bool  complex = type_is_complex(t);
    f.bound = a.bound * b.bound * (complex ? 2 : 1);
    f.error = (a.error * b.bound + b.error * a.bound) * (complex ? 2 : 1);
    if (isnan(f.bound) || isnan(f.error))
        f.bound = f.error = INFINITY;
    f.vague |= complex; /* a part that is a difference of equal products */
    return settled(t, f, type_bits(t) <= 16);
}

Facts facts_sum(Type t, Facts a, double n)
{
    a.bound *= n;
    a.error *= n;
    if (isnan(a.bound) || isnan(a.error))
        a.bound = a.error = 0;
    if (a.acc != WHOLE || a.bound > whole_limit(t))
        a.error += n * eps(t) * a.bound;
    a.vague |= type_is_float(t) || type_is_complex(t);
    return settled(t, a, n < 2);
}

Facts facts_convert(Type to, Type from, Facts f)
{
    if (!type_is_float(to) && !type_is_complex(to))
        return facts_int(to);
    if (to == TYPE_F8E8M0FNU)
        return (Facts){ .acc = f.acc, .bound = INFINITY, .nan = true, .error = f.acc == ROUGH ? INFINITY : 0 };
    f.vague |= f.nan || (type_is_complex(to) && !type_is_complex(from));
    return settled(to, f, true);
}

Facts facts_loop(Type t, Facts f)
{
    if (!type_is_float(t) && !type_is_complex(t))
        return facts_int(t);
    double small = whole_limit(t) < 16 ? whole_limit(t) : 16;
    if (f.acc == WHOLE && f.bound <= small && !type_is_complex(t))
        return (Facts){ .acc = WHOLE, .bound = small, .nan = true, .vague = true };
    return (Facts){ .acc = EXACT, .bound = INFINITY, .nan = true, .vague = true };
}

bool facts_within(Facts a, Facts b)
{
    return a.acc <= b.acc && a.bound <= b.bound && a.error <= b.error && a.nan <= b.nan && a.vague <= b.vague;
}
