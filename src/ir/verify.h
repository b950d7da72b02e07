/* The verifier: what XLA checks after parsing. Structure, shapes (through infer_shape), called computations, aliases, schedule,
 * collectives, async pairs. Source: reference operations 2, 14 to 20. */
#ifndef IR_VERIFY_H
#define IR_VERIFY_H

#include "ir/inst.h"

/* Reports everything that is wrong, up to d->max_errors; true when nothing is. */
bool verify_module(const Module *m, Diag *d);

#endif
