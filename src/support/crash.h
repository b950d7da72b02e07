/* A file that appears when the process dies of a bug: of a signal that it brought upon itself (a bad address, an abort), not of one that asks it to
 * end. Everything is made beforehand, so that the handler only writes: it takes no memory and has a stack of its own. */
#ifndef SUPPORT_CRASH_H
#define SUPPORT_CRASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct CrashFile {
    const char *path;      /* where it appears, whole */
    const char *temporary; /* where it is written */
    const char *text;
    size_t      n;
    const char *message;   /* then on stderr: whole lines */
} CrashFile;

/* From now on *f, which stays as it is until the next call; NULL: no file. */
void crash_watch(const CrashFile *f);

/* Unless it is called again before so many seconds have gone, says message (whole lines) on stderr and aborts. 0: no longer. */
void crash_timer(int64_t seconds, const char *message);

#endif
