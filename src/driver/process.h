/* Running other programs, without a shell. */
#ifndef DRIVER_PROCESS_H
#define DRIVER_PROCESS_H

#include <stdbool.h>

#include "support/arena.h"
#include "support/buf.h"

/* The path of a program: name itself when it has a slash, else its place in PATH. NULL when there is none that may be run. */
const char *program_find(Arena *a, const char *name);

/* Runs argv (argv[0] is a path; ends with NULL) in folder dir (NULL: here) with nothing to read; what it writes to stdout and stderr is added to
 * output. Its exit status; 128 + n when signal n ended it; -1 with errno set when it could not be started. */
int program_run(const char *const *argv, const char *dir, Buf *output);
/* The same, but after so many seconds (0: any number) it is ended, with what it has started: -1 with ETIMEDOUT. */
int program_run_for(int64_t seconds, const char *const *argv, const char *dir, Buf *output);

#endif
