/* Child processes by posix_spawn: no shell, so no quoting, and no copy of a large address space. */
#include "config.h"

#include "driver/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/interrupt.h"

extern char **environ;

static bool is_program(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

const char *program_find(Arena *a, const char *name)
{
    if (strchr(name, '/'))
        return is_program(name) ? name : NULL;
    const char *path = getenv("PATH");
    for (const char *p = path ? path : "/usr/bin:/bin"; *p; p += strcspn(p, ":"), p += *p == ':') {
        int         n = (int)strcspn(p, ":");
        const char *full = n ? arena_printf(a, "%.*s/%s", n, p, name) : name;
        if (is_program(full))
            return full;
    }
    return NULL;
}

static int spawn(const char *const *argv, const char *dir, int out, pid_t *pid)
{
    posix_spawn_file_actions_t f;
    posix_spawnattr_t          own_group; /* so that whatever it starts in turn can be ended too */
    int                        error = posix_spawn_file_actions_init(&f);
    if (error)
        return error;
    error = posix_spawnattr_init(&own_group);
    if (!error)
        error = posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
    if (!error)
        error = posix_spawn_file_actions_addopen(&f, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&f, out, STDOUT_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&f, out, STDERR_FILENO);
    if (!error && dir)
        error = posix_spawn_file_actions_addchdir_np(&f, dir);
    if (!error)
        error = posix_spawn(pid, argv[0], &f, &own_group, (char *const *)(uintptr_t)argv, environ);
    posix_spawnattr_destroy(&own_group);
    posix_spawn_file_actions_destroy(&f);
    return error;
}

/* A moment after which a program is ended; 0: never. */
typedef double Deadline;

static Deadline deadline_in(int64_t seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return seconds > 0 ? (double)(t.tv_sec + seconds) + (double)t.tv_nsec * 1e-9 : 0;
}

/* Ends the child and what it has started when it is time, or when we are told to end ourselves; true: it is time. */
static bool end_late(pid_t child, Deadline end)
{
    bool late = end > 0 && deadline_in(1) - 1 > end;
    if (late || interrupt_seen())
        kill(-child, SIGKILL);
    return late;
}

enum { LOOK_UP_MS = 200 };

/* Until the other ends are closed. A program that is told to end tells its child; it looks up now and then, since a signal may come just
 * before it starts to wait. True: it was late. */
static bool read_all(int fd, pid_t child, Deadline end, Buf *to)
{
    char          part[4096];
    struct pollfd one = { .fd = fd, .events = POLLIN };
    bool          late = false;
    for (;;) {
        late |= end_late(child, end);
        int     ready = poll(&one, 1, LOOK_UP_MS);
        ssize_t n = ready > 0 ? read(fd, part, sizeof part) : ready;
        if ((ready > 0 && n == 0) || (n < 0 && errno != EINTR))
            return late;
        if (n > 0)
            buf_put(to, part, (size_t)n);
    }
}

/* Its output is closed, but it may go on. */
static int wait_until(pid_t pid, Deadline end, bool *late, int *status)
{
    struct timespec nap = { 0, 2000000 };
    pid_t           ended;
    while ((ended = waitpid(pid, status, end > 0 ? WNOHANG : 0)) <= 0) {
        if (ended < 0 && errno != EINTR)
            return -1;
        *late |= end_late(pid, end);
        if (end > 0)
            nanosleep(&nap, NULL);
    }
    return 0;
}

static int run_and_wait(int64_t seconds, const char *const *argv, const char *dir, Buf *output)
{
    int   ends[2], status;
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    int error = spawn(argv, dir, ends[1], &pid);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        errno = error;
        return -1;
    }
    Deadline end = deadline_in(seconds);
    bool     late = read_all(ends[0], pid, end, output);
    close(ends[0]);
    if (wait_until(pid, end, &late, &status) < 0)
        return -1;
    if (late) {
        errno = ETIMEDOUT;
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int program_run(const char *const *argv, const char *dir, Buf *output)
{
    return program_run_for(0, argv, dir, output);
}

int program_run_for(int64_t seconds, const char *const *argv, const char *dir, Buf *output)
{
    interrupt_hold();
    int status = run_and_wait(seconds, argv, dir, output);
    int error = errno;
    interrupt_release();
    errno = error;
    return status;
}
