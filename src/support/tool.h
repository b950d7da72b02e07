/* What every tool's main does alike: exit statuses, colour, standard streams, messages about the world.
 * Source: the command-line conventions of LLVM's and GNU's tools; diff's and FileCheck's exit statuses. */
#ifndef SUPPORT_TOOL_H
#define SUPPORT_TOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "support/buf.h"
#include "support/diag.h"
#include "support/options.h"

enum { EXIT_NO = 1 /* it ran and the answer is no */, EXIT_TROUBLE = 2 /* bad input, bad options, a write that failed */ };

/* A closed standard stream must not become the number of a file that is opened later: writes to it fail, as they would have.
 * The first call of main. */
void tool_guard_streams(void);

/* --color: auto is yes on a terminal that is not dumb, unless NO_COLOR is set. */
bool tool_color(const char *when);

/* What every tool is told about its messages: a member of its arguments, with the rows of its table for that. */
typedef struct MessageArgs {
    const char *color;
    int64_t     max_errors;
    bool        werror;
} MessageArgs;

#define MESSAGE_DEFAULTS {.color = "auto", .max_errors = 20}
#define MESSAGE_OPTIONS(at)                                                                                                              \
    {"max-errors", 0, OPT_INT, (at) + offsetof(MessageArgs, max_errors), "N", "stop after N errors, 0: never (default: 20)", "Messages"}, \
    {"Werror", 0, OPT_FLAG, (at) + offsetof(MessageArgs, werror), NULL, "treat warnings as errors", "Messages"},                          \
    {"color", 0, OPT_CHOICE, (at) + offsetof(MessageArgs, color), "auto|always|never", "colour in messages", "Messages"}

/* Rows that several tools have alike, for a member of their arguments. */
#define OUTPUT_OPTION(at) {"output", 'o', OPT_STRING, at, "FILE", "write there instead of stdout", "Output"}
#define VERIFY_OPTION(at) {"verify", 0, OPT_SWITCH, at, NULL, "apply the verifier's rules (default)", "Checks"}

bool tool_messages_good(const char *tool, const MessageArgs *m); /* the numbers are in range; else a message */
void tool_messages_begin(Diag *d, const MessageArgs *m);         /* d keeps to m from now on */
void tool_messages_print(Diag *d, const MessageArgs *m);   /* on stderr */

/* "x.hlo", or "<stdin>" for "-" and NULL. */
const char *tool_shown(const char *path);

/* "tool: error: text" on stderr; gives EXIT_TROUBLE. */
int tool_error(const char *tool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes the product to path ("-", NULL: stdout). False after a message; a reader that went away (EPIPE) needs none. */
bool tool_write(const char *tool, const Buf *b, const char *path);

/* What makes one tool of a table of options. args is its struct of options with the defaults in it; path is the one file, NULL: none was named. */
typedef struct ToolJob {
    bool (*check)(void *args, Arena *a, const char *path);         /* the options go together; false after a message */
    bool (*tell)(const void *args);                                /* prints on stdout what needs no input, true: that was all. NULL: there is no such thing */
    int (*run)(void *args, Arena *a, const char *path);            /* gives the exit status */
} ToolJob;

/* The whole main: reads the options, then does the job. Without a file and with a terminal as stdin it tells the usage and gives EXIT_TROUBLE. */
int tool_main(const ToolInfo *t, const ToolJob *job, void *args, int argc, char **argv);

/* The end of a main that printed through stdio: status, or EXIT_TROUBLE when the last write or the close failed. */
int tool_finish(const char *tool, int status);

#endif
