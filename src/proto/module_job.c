#include "proto/module_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/read.h"

int module_job(const ModuleJob *j, void *args, Arena *a, const char *path)
{
    const char *shown = tool_shown(path);
    Buf         in = { 0 }, out = { 0 };
    Diag        d;
    if (!buf_read_file(&in, path))
        return tool_error(j->tool, "%s: %s", shown, strerror(errno));
    diag_init(&d, a);
    diag_source(&d, shown, NULL, 0);
    tool_messages_begin(&d, j->messages);
    Module *m = module_input(&in, &d) ? module_read_in_place(&in, j->values, &d) : NULL;
    bool    good = m && d.errors == 0 && j->make(args, a, m, &out, &d) && d.errors == 0;
    tool_messages_print(&d, j->messages);
    good = good && (j->write ? j->write(args, &out) : tool_write(j->tool, &out, j->output));
    if (m)
        module_free(m);
    buf_free(&in);
    buf_free(&out);
    return good ? EXIT_SUCCESS : EXIT_TROUBLE;
}
