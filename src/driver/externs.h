/* Libraries with functions for custom calls, as hlo_custom_call.h describes them. */
#ifndef DRIVER_EXTERNS_H
#define DRIVER_EXTERNS_H

#include "ir/extern_call.h"

/* Loads them; the first that has a function counts. Compiled modules that are loaded afterwards find the functions, too. They are closed with
 * the arena. NULL after reporting. */
const ExternCalls *externs_open(Arena *a, int n, const char *const *paths, Diag *d);

#endif
