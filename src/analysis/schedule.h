/* The order in which a computation's instructions run. */
#ifndef ANALYSIS_SCHEDULE_H
#define ANALYSIS_SCHEDULE_H

#include "ir/inst.h"

/* The instructions that run: those that the root needs, those with an effect, and what these need. In stored order when the
 * module is scheduled, else in post-order, which finishes one operand before it begins the next; loop bodies update their state
 * late. In a; *n is set. */
const Inst **schedule_comp(Arena *a, const Comp *c, int32_t *n);

#endif
