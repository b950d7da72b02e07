/* How often loops run. */
#ifndef ANALYSIS_LOOPS_H
#define ANALYSIS_LOOPS_H

#include "ir/inst.h"

/* The trips of a while: what its backend_config says ("known_trip_count"), or counted where the condition compares an integer of the
 * state, which starts from a constant and grows by a constant, with a constant or with a part of the state that stays as it is.
 * -1: not known. */
int64_t while_trip_count(const Inst *w);

#endif
