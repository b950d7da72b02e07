/* How often loops run. */
#ifndef ANALYSIS_LOOPS_H
#define ANALYSIS_LOOPS_H

#include "ir/inst.h"

/* A loop that counts: its condition compares element `index` of the state (or the state), which is init, init + step, init + 2 step,
 * ..., with a number that stays as it is. No value leaves the range of its type. */
typedef struct LoopCount {
    int64_t index, init, step, trips;
} LoopCount;

/* Counted from the instructions alone; false: it is not such a loop. */
bool while_counted(const Inst *w, LoopCount *out);

/* Element k of the state begins as the constant init and grows by step in each trip, wrapping around as integers of its type do. */
bool while_steps(const Inst *w, int64_t k, int64_t *init, int64_t *step);

/* The trips of a while: what its backend_config says ("known_trip_count"), or counted. -1: not known. */
int64_t while_trip_count(const Inst *w);

/* Of a loop of no more trips a device's program gets what is counted from a table: it is no kernel (emit/plan_control.c). */
enum { LOOPS_MOST_COUNTS = 4096 };

/* Element `index` of a body's state, which is a tuple, is a number between these in each trip. */
typedef struct Counter {
    int64_t index, lo, hi;
} Counter;

/* Notes it in the bodies of counted loops that nobody else calls, for int_range, until loops_forget_counters. What is noted lives in a. */
void loops_note_counters(Module *m, Arena *a);
void loops_forget_counters(Module *m);

#endif
