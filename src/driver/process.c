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

/* Until the other ends are closed. A program that is told to end tells its child; it looks up now and then, since a signal may come just
 * before it starts to wait. */
static void read_all(int fd, pid_t child, Buf *to)
{
    enum { LOOK_UP_MS = 200 };
    char          part[4096];
    struct pollfd one = { .fd = fd, .events = POLLIN };
    for (;;) {
        if (interrupt_seen())
            kill(-child, SIGKILL);
        int     ready = poll(&one, 1, LOOK_UP_MS);
        ssize_t n = ready > 0 ? read(fd, part, sizeof part) : ready;
        if ((ready > 0 && n == 0) || (n < 0 && errno != EINTR))
            return;
        if (n > 0)
            buf_put(to, part, (size_t)n);
    }
}

static int run_and_wait(const char *const *argv, const char *dir, Buf *output)
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
    read_all(ends[0], pid, output);
    close(ends[0]);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int program_run(const char *const *argv, const char *dir, Buf *output)
{
    interrupt_hold();
    int status = run_and_wait(argv, dir, output);
    int error = errno;
    interrupt_release();
    errno = error;
    return status;
}
