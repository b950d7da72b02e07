/* Arguments made up for a module. */
#ifndef DATA_FILL_H
#define DATA_FILL_H

#include "data/dist.h"
#include "ir/inst.h"

/* Streams of numbers, addressed by element: splitmix64 by counter.
 *   uniform: v = ((hash(seed, i) >> 40) * 2^-23 - 1) * scale + offset, in double, then to float, then to the type (f64: no rounding to
 *            float; complex: real part from element 2i, imaginary part from 2i + 1, both in double)
 *   int:     v = lo + (hash(seed, i) >> 32) * (hi - lo) >> 32 */
static inline uint64_t fill_hash(uint64_t seed, uint64_t i)
{
    uint64_t z = seed * 0xD1B54A32D192ED03u + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
void fill_uniform(Literal *l, uint64_t seed, double scale, double offset);
void fill_int(Literal *l, uint64_t seed, int64_t lo, int64_t hi);
void fill_const(Literal *l, double v);

/* How unconstrained values are made, where not as the head of fake.c says. */
typedef struct FakeDists {
    Dist        all;    /* of every argument; DIST_NONE: as ever */
    const Dist *leaves; /* of each argument, tuples flattened and tokens left out, before `all`; NULL: none has its own */
} FakeDists;

/* Constrained arguments for every ENTRY parameter (tuples as tuples): indices stay in range, sort keys are distinct where that
 * matters, reduction starts are identities (reference operations 22). A distribution that names one argument must not contradict what
 * that one is constrained to, which is an error. x may be NULL. One literal per parameter in args; false after reporting. */
bool fake_arguments(const Module *m, uint64_t seed, const FakeDists *x, Literal **args, Diag *d);

#endif
