/* Writing a file that is there whole or not at all. */
#include "config.h"

#include "support/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/interrupt.h"

/* A link is followed, so that the file it names is replaced and not the link. */
static const char *resolve(Arena *a, const char *path)
{
    char *real = realpath(path, NULL);
    if (!real)
        return path;
    const char *kept = arena_strndup(a, real, strlen(real));
    free(real);
    return kept;
}

/* Held until outfile_close: a temporary does not stay behind. */
static void open_temporary(OutFile *f, Arena *a)
{
    interrupt_hold();
    f->temporary = arena_printf(a, "%s.XXXXXX", f->path);
    f->fd = mkostemp(f->temporary, O_CLOEXEC);
    if (f->fd < 0) {
        f->error = errno;
        f->temporary = NULL;
        interrupt_release();
        return;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(f->fd, 0666 & ~mask); /* mkostemp's own mode lets only the owner in */
}

void outfile_open(OutFile *f, Arena *a, const char *path)
{
    *f = (OutFile){ .fd = STDOUT_FILENO, .path = path };
    struct stat st;
    if (!strcmp(path, "-"))
        return;
    f->path = resolve(a, path);
    if (!stat(f->path, &st) && !S_ISREG(st.st_mode)) {
        f->fd = open(f->path, O_WRONLY | O_CLOEXEC);
        f->error = f->fd < 0 ? errno : 0;
        return;
    }
    open_temporary(f, a);
}

bool outfile_put(OutFile *f, const void *p, size_t n)
{
    const char *s = p;
    while (n && !f->error) {
        if (interrupt_seen()) {
            f->error = EINTR;
            break;
        }
        ssize_t done = write(f->fd, s, n);
        if (done < 0) {
            if (errno != EINTR)
                f->error = errno;
            continue;
        }
        s += done;
        n -= (size_t)done;
    }
    return !f->error;
}

/* close reports what a file system has kept back; of stdout a copy is closed, which leaves it open. */
static void close_now(OutFile *f)
{
    int fd = f->fd != STDOUT_FILENO ? f->fd : f->error ? -1 : dup(STDOUT_FILENO);
    if ((fd >= 0 && close(fd) < 0 && !f->error) || (fd < 0 && !f->error))
        f->error = errno;
}

bool outfile_close(OutFile *f)
{
    close_now(f);
    if (f->temporary && !f->error && rename(f->temporary, f->path) < 0)
        f->error = errno;
    if (f->temporary && f->error)
        unlink(f->temporary);
    if (f->temporary)
        interrupt_release();
    return !f->error;
}
