/* Variables of the whole process, as in interrupt.c: a signal handler has nothing else. Functions of POSIX that it may call, and no others. */
#include "config.h"

#include "support/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_SIGNALS = 5, STACK = 1 << 16 };
static const int signals[N_SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static const CrashFile *volatile watched;
static struct sigaction before[N_SIGNALS];
static stack_t          stack_before;
static const char *volatile late; /* what is said when the time is over */
static char             stack[STACK] __attribute__((aligned(16)));

static bool write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno != EINTR)
            return false;
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return true;
}

static bool write_file(const CrashFile *f)
{
    int fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool good = write_all(fd, f->text, f->n);
    good = close(fd) == 0 && good && rename(f->temporary, f->path) == 0;
    if (!good)
        unlink(f->temporary);
    return good;
}

static void give_back(void)
{
    for (int k = 0; k < N_SIGNALS; k++)
        sigaction(signals[k], &before[k], NULL);
}

/* A fault happens again once the handler has returned, an abort goes on by itself; what was sent is sent again. */
static void on_crash(int signal, siginfo_t *info, void *context)
{
    static const char failed[] = "error: the file of --crash-reproducer could not be written\n";
    const CrashFile  *f = watched;
    (void)context;
    watched = NULL;
    give_back();
    if (f && write_file(f))
        write_all(STDERR_FILENO, f->message, strlen(f->message));
    else if (f)
        write_all(STDERR_FILENO, failed, sizeof failed - 1);
    if (info->si_code <= 0)
        raise(signal);
}

static void take(void)
{
    stack_t          own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction act = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&act.sa_mask);
    sigaltstack(&own, &stack_before);
    for (int k = 0; k < N_SIGNALS; k++)
        sigaction(signals[k], &act, &before[k]);
}

void crash_watch(const CrashFile *f)
{
    bool was = watched != NULL;
    if (!f && was) {
        give_back();
        sigaltstack(&stack_before, NULL);
    }
    watched = f;
    if (f && !was)
        take();
}

static void on_alarm(int signal)
{
    (void)signal;
    if (late)
        write_all(STDERR_FILENO, late, strlen(late));
    abort();
}

void crash_timer(int64_t seconds, const char *message)
{
    struct sigaction act = {.sa_handler = on_alarm}, none = {.sa_handler = SIG_DFL};
    sigemptyset(&act.sa_mask);
    sigemptyset(&none.sa_mask);
    alarm(0);
    late = message;
    sigaction(SIGALRM, seconds > 0 ? &act : &none, NULL);
    alarm((unsigned)(seconds < UINT32_MAX ? seconds : UINT32_MAX));
}
