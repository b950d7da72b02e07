/* Signals that ask a program to end, held off while something would be left behind: a half-written file, a compiler's folder.
 *
 *     interrupt_hold();
 *     ... make something, looking at interrupt_seen() now and then; give up when it is true
 *     ... clean up
 *     interrupt_release();        the program ends here if it was asked to
 *
 * Calls nest. SIGHUP, SIGINT and SIGTERM; one that is ignored stays ignored. */
#ifndef SUPPORT_INTERRUPT_H
#define SUPPORT_INTERRUPT_H

#include <stdbool.h>

void interrupt_hold(void);
bool interrupt_seen(void); /* blocking system calls return EINTR then */
void interrupt_release(void);

#endif
