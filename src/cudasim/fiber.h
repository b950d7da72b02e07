/* Stacks to run on. A fiber is entered from the scheduler and left for it; it never enters another. */
#ifndef CUDASIM_FIBER_H
#define CUDASIM_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FIBER_BYTES = 1 << 20 }; /* of a stack */

typedef struct Fiber Fiber;

/* A fiber that calls body again and again, each time it is entered after body has returned. NULL without memory. */
Fiber *cudasim_fiber_new(void (*body)(void));
void   cudasim_fiber_enter(Fiber *f);
/* Back to the scheduler, in the middle of body: it goes on when the fiber is entered again. */
void   cudasim_fiber_leave(Fiber *f);
/* Forgets what body was in the middle of. Not from the fiber itself. */
void   cudasim_fiber_restart(Fiber *f);
uintptr_t cudasim_fiber_stack(const Fiber *f); /* where it begins */

#endif
