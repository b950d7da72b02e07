/* An output file that exists whole or not at all: written under a temporary name beside its place, then renamed. Devices and pipes,
 * and "-" (stdout), are written directly. The first error is kept and everything after it does nothing. */
#ifndef SUPPORT_OUTFILE_H
#define SUPPORT_OUTFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "support/arena.h"

typedef struct OutFile {
    int         fd;
    int         error;     /* errno of the first failure, 0 */
    const char *path;      /* where it will be */
    char       *temporary; /* NULL: written in place */
} OutFile;

void outfile_open(OutFile *f, Arena *a, const char *path);
bool outfile_put(OutFile *f, const void *p, size_t n);
/* Puts it into its place, or closes it (stdout stays open); false when anything failed: nothing is left behind then. */
bool outfile_close(OutFile *f);

#endif
