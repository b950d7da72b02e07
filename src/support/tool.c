#include "config.h"

#include "support/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tool_guard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            exit(EXIT_TROUBLE);
}

bool tool_color(const char *when)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    if (strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    return isatty(STDERR_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

bool tool_messages_good(const char *tool, const MessageArgs *m)
{
    bool good = m->max_errors >= 0 && m->max_errors <= 1000000;
    if (!good)
        tool_error(tool, "--max-errors expects a number from 0 to 1000000");
    return good;
}

void tool_messages_begin(Diag *d, const MessageArgs *m)
{
    d->max_errors = (int)m->max_errors;
    d->werror = m->werror;
}

void tool_messages_print(Diag *d, const MessageArgs *m)
{
    diag_print(d, stderr, tool_color(m->color));
}

const char *tool_shown(const char *path)
{
    return path && strcmp(path, "-") != 0 ? path : "<stdin>";
}

int tool_error(const char *tool, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "%s: error: ", tool);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return EXIT_TROUBLE;
}

bool tool_write(const char *tool, const Buf *b, const char *path)
{
    if (buf_write_file(b, path))
        return true;
    if (errno != EPIPE)
        tool_error(tool, "%s: %s", path && strcmp(path, "-") != 0 ? path : "<stdout>", strerror(errno));
    return false;
}

int tool_finish(const char *tool, int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout) && close(STDOUT_FILENO) == 0)
        return status;
    if (errno != EPIPE)
        tool_error(tool, "<stdout>: %s", strerror(errno));
    return EXIT_TROUBLE;
}

/* Dumps, times and counts are there, too; where to would one say that they are not? */
static bool messages_written(void)
{
    return fflush(stderr) == 0 && !ferror(stderr);
}

int tool_main(const ToolInfo *t, const ToolJob *job, void *args, int argc, char **argv)
{
    OptionList files = {0};
    int        status = EXIT_TROUBLE;
    tool_guard_streams();
    Arena        *a = arena_new();
    OptionsResult parsed = options_parse(t, argc, argv, args, a, &files);
    const char   *path = files.n ? files.v[0] : NULL;
    if (parsed == OPTIONS_DONE) {
        status = tool_finish(t->name, EXIT_SUCCESS);
    } else if (parsed == OPTIONS_RUN && job->check(args, a, path)) {
        if (job->tell && job->tell(args))
            status = tool_finish(t->name, EXIT_SUCCESS);
        else if (!path && isatty(STDIN_FILENO))
            fprintf(stderr, "usage: %s %s\n", t->name, t->usage);
        else
            status = job->run(args, a, path);
    }
    arena_free(a);
    return status == EXIT_SUCCESS && !messages_written() ? EXIT_TROUBLE : status;
}
