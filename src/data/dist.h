/* Distributions of made-up values, as text names them:
 *
 *   uniform(A,B)   A <= v < B; integers likewise
 *   normal(M,S)    mean M, standard deviation S; integers rounded
 *   large          any sign and magnitude: uniform in the logarithm over the type's normal numbers; of integers, in the number of bits
 *   special        every other value is a special one, the rest is uniform(-1,1): zeros of both signs, the smallest and largest subnormal and normal
 *                  numbers, 1 and its neighbours, infinities, NaN; of integers the bounds, their neighbours, 0, 1, -1; of types of up to 8 bits any
 *                  pattern
 *   const(V)       V
 *
 * Floats are rounded to the type as convert does, integers beyond its range become its bounds. Element i depends on the seed and on i alone. */
#ifndef DATA_DIST_H
#define DATA_DIST_H

#include "ir/literal.h"

typedef enum DistKind { DIST_NONE, DIST_UNIFORM, DIST_NORMAL, DIST_LARGE, DIST_SPECIAL, DIST_CONST } DistKind;

typedef struct Dist {
    DistKind kind;
    double   a, b;
} Dist;

bool dist_parse(const char *text, Dist *out); /* false: it is none */
/* Why values of type t cannot be made so; NULL: they can. */
const char *dist_refused(const Dist *x, Type t);
void dist_fill(Literal *l, uint64_t seed, const Dist *x);

#endif
