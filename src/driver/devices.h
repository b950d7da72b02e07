/* Arrays of several devices in one process.
 *
 *   argument f32[8] given as f32[8]      every device gets it
 *   argument f32[8] given as f32[4,8]    each of 4 devices gets a row, device 0 the first
 *
 * Process (r, p) is number r * partitions + p and runs on the device of that number, or on the one that the assignment has in its place. */
#ifndef DRIVER_DEVICES_H
#define DRIVER_DEVICES_H

#include "driver/driver.h"

int64_t devices_count(Devices on); /* at least 1 */

/* "2,3,0,1": each of n devices once. False after reporting. */
bool devices_assignment(Arena *a, const char *text, int64_t n, Ints *out, Diag *d);

/* s with the axis of n devices in front. */
const Shape *devices_shape(Arena *a, const Shape *s, int64_t n);

/* The arguments of process p of e's: each of leaves, or its row of it. One reference each. */
void devices_deal(const Execution *e, Literal *const *leaves, int64_t p, Literal **own);

/* The results of all processes as one; consumes no reference. out as below. */
bool devices_collect(Arena *a, const Execution *e, Literal *const *leaves, Literal *const *const *all, Literal **out, Diag *d);

/* Evaluates e->module on its devices. leaves: the arguments, with or without the axis; out: the results, with the axis when e->axis says so,
 * or, if it says nothing, when an argument has it. Results without it must be the same on all devices, unless it is refused outright: then
 * they are those of the first. False after reporting. */
bool devices_evaluate(Arena *a, const Execution *e, Literal *const *leaves, const EvalOptions *o, Literal **out, Diag *d);

#endif
