/* What every tool's main does alike: exit statuses, colour, standard streams, messages about the world.
 * Source: the command-line conventions of LLVM's and GNU's tools; diff's and FileCheck's exit statuses. */
#ifndef SUPPORT_TOOL_H
#define SUPPORT_TOOL_H

#include <stdbool.h>

#include "support/buf.h"

enum { EXIT_NO = 1 /* it ran and the answer is no */, EXIT_TROUBLE = 2 /* bad input, bad options, a write that failed */ };

/* A closed standard stream must not become the number of a file that is opened later: writes to it fail, as they would have.
 * The first call of main. */
void tool_guard_streams(void);

/* --color: auto is yes on a terminal that is not dumb, unless NO_COLOR is set. */
bool tool_color(const char *when);

/* "x.hlo", or "<stdin>" for "-" and NULL. */
const char *tool_shown(const char *path);

/* "tool: error: text" on stderr; gives EXIT_TROUBLE. */
int tool_error(const char *tool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes the product to path ("-", NULL: stdout). False after a message; a reader that went away (EPIPE) needs none. */
bool tool_write(const char *tool, const Buf *b, const char *path);

/* The end of a main that printed through stdio: status, or EXIT_TROUBLE when the last write or the close failed. */
int tool_finish(const char *tool, int status);

#endif
