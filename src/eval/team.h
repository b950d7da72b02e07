/* Several devices in one evaluation.
 *
 * Each has a thread, a stack and an Eval of its own, but one runs at a time: until it waits for others or ends; then the next ready one, by
 * number, runs. So all of them may share the module, the messages and each other's values, and the order is the same every time.
 *
 *   device 0   step step all-reduce ..........................  step step
 *   device 1                        step step all-reduce (both) .........  step step
 *
 * The last to come to a meeting does the work for all of its participants. When nobody is ready and somebody waits, they wait for each
 * other: an error that names where each of them is. */
#ifndef EVAL_TEAM_H
#define EVAL_TEAM_H

#include "eval/engine.h"

/* The participants of a collective, in the group's order. */
typedef struct Meeting {
    int32_t      n;
    Eval       **e;
    const Inst **i;      /* usually one instruction; several of one channel where the devices took different branches */
    Literal   ***x;      /* the operands of each */
    Literal    **result; /* for the collective to set, one reference each; NULL after eval_fail */
} Meeting;

typedef void MeetFn(const Meeting *m);

/* Comes to the meeting of the group at i and gives this device's result; group holds e->device. Alone it does not wait. */
Literal *team_meet(Eval *e, const Inst *i, Ints group, Literal **x, MeetFn *work);

/* Waits at i until another device calls team_wake for this one. False: somebody failed. */
bool team_wait(Eval *e, const Inst *i);
void team_wake(Team *t, int64_t device);
Eval *team_device(Team *t, int64_t device);

/* "device 5 (replica 1, partition 1)" */
const char *team_name(Arena *a, const Team *t, int64_t device);

#endif
