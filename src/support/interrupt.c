/* The one place with variables of the whole process: a signal handler has nothing else to write to. */
#include "config.h"

#include "support/interrupt.h"

#include <signal.h>
#include <stddef.h>

enum { N_SIGNALS = 3 };
static const int signals[N_SIGNALS] = { SIGHUP, SIGINT, SIGTERM };

static volatile sig_atomic_t caught; /* the signal, 0: none */
static struct sigaction      before[N_SIGNALS];
static int                   held; /* depth */

static void note(int signal)
{
    caught = signal;
}

void interrupt_hold(void)
{
    if (held++ > 0)
        return;
    for (int k = 0; k < N_SIGNALS; k++) {
        struct sigaction noting = { .sa_handler = note }; /* without SA_RESTART */
        sigemptyset(&noting.sa_mask);
        sigaction(signals[k], NULL, &before[k]);
        if (before[k].sa_handler != SIG_IGN)
            sigaction(signals[k], &noting, NULL);
    }
}

bool interrupt_seen(void)
{
    return held > 0 && caught != 0;
}

void interrupt_release(void)
{
    if (--held > 0)
        return;
    for (int k = 0; k < N_SIGNALS; k++)
        sigaction(signals[k], &before[k], NULL);
    int signal = caught;
    caught = 0;
    if (signal)
        raise(signal);
}
