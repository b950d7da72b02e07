/* The order in which a computation's instructions run. */
#ifndef ANALYSIS_SCHEDULE_H
#define ANALYSIS_SCHEDULE_H

#include "ir/inst.h"

/* The instructions that run: those that the root needs, those with an effect, and what these need. In stored order when the
 * module is scheduled, else in post-order, which finishes one operand before it begins the next; loop bodies update their state
 * late. In a; *n is set. */
const Inst **schedule_comp(Arena *a, const Comp *c, int32_t *n);

bool schedule_is_fixed(const Comp *c); /* the module has a schedule, or c has effects, whose order is that of the text */

/* Updates of a loop's state go to the end of its body, where a reader of the old value comes after them. */
void schedule_delay_updates(Arena *a, const Comp *c, const Inst **run, int32_t n);

/* These n instructions in an order that frees memory early. NULL where the order is fixed or control edges say something about it. */
const Inst **schedule_list(Arena *a, const Comp *c, const Inst *const *run, int32_t n);

/* The same n instructions, run in that order, but each that frees no more memory than it takes as late as it may. NULL likewise. */
const Inst **schedule_late(Arena *a, const Comp *c, const Inst *const *run, int32_t n);

#endif
