/* Which kernels of a program are worth a compiler's time: all but those that together do little of its work. A module of one kernel has none of these, a network
 * with a few large products and a hundred small kernels around them has many. */
#ifndef EMIT_EFFORT_H
#define EMIT_EFFORT_H

#include "emit/program.h"

/* Sets Function.minor. Only for kernels of one thread, when the steps and functions are there. */
void program_note_minor(Program *p);

#endif
