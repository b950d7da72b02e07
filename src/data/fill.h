/* Arguments made up for a module. */
#ifndef DATA_FILL_H
#define DATA_FILL_H

#include "ir/inst.h"

/* The stream of the corpus's README: element i of the stream seed. */
uint64_t fill_hash(uint64_t seed, uint64_t i);
void fill_uniform(Literal *l, uint64_t seed, double scale, double offset);
void fill_int(Literal *l, uint64_t seed, int64_t lo, int64_t hi);
void fill_const(Literal *l, double v);

/* Constrained arguments for every ENTRY parameter (tuples as tuples): indices stay in range, sort keys are distinct where that
 * matters, reduction starts are identities (reference operations 22). One literal per parameter in args; false after reporting. */
bool fake_arguments(const Module *m, uint64_t seed, Literal **args, Diag *d);

#endif
