/* Command-line options as data: one table makes the parser, --help, the man page's list and the shell completion.
 *
 *   static const Option options[] = {
 *       { "passes", 0, OPT_STRING, offsetof(Args, passes), "NAMES", "run these passes", "Passes" },
 *       ...
 *       { 0 }
 *   };
 *
 * Accepted: --name=value, --name value, -name=value, -o FILE, -oFILE, -O2, -- to end options, @FILE for more arguments. --help
 * and --version are added to every table. */
#ifndef SUPPORT_OPTIONS_H
#define SUPPORT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "support/arena.h"

typedef enum OptionKind {
    OPT_FLAG,   /* bool: --name sets it, --no-name clears it, --name=true|false */
    OPT_SWITCH, /* the same where true is the default, so that help shows --[no-]name */
    OPT_TOGGLE, /* int: 1 for --name, 0 for --no-name, the default -1 for neither */
    OPT_INT,    /* int64_t */
    OPT_DOUBLE, /* double */
    OPT_STRING, /* const char *, the last one counts */
    OPT_LIST,   /* OptionList: may repeat */
    OPT_LEVEL,  /* int: -O0 ... -O3 */
    OPT_CHOICE, /* const char *, one of the words in arg, separated by | */
    OPT_FORM,   /* likewise, but --name alone is the first word; the others need the = */
    OPT_MAYBE   /* const char *: "" for --name alone; a value needs the = */
} OptionKind;

typedef struct OptionList {
    int          n;
    const char **v;
} OptionList;

typedef struct Option {
    const char *name;   /* long name without dashes */
    char        letter; /* short form, 0: none */
    OptionKind  kind;
    size_t      offset; /* into the tool's argument struct */
    const char *arg;    /* how help shows the value; for OPT_CHOICE the words */
    const char *help;   /* one line, lower case, no full stop */
    const char *group;  /* heading in help; NULL: hidden from --help, shown by --help-hidden */
} Option;

typedef struct ToolInfo {
    const char   *name;     /* "hlo-opt" */
    const char   *summary;  /* one line */
    const char   *usage;    /* "[OPTION...] [FILE|-]" */
    const Option *options;  /* ends with a zero row */
    int           max_files;
} ToolInfo;

typedef enum { OPTIONS_RUN, OPTIONS_DONE /* help or version was printed: exit 0 */, OPTIONS_BAD /* reported: exit 2 */ } OptionsResult;

/* Fills *args (defaults already there) and the positional files. Messages go to stderr with the tool's name in front. */
OptionsResult options_parse(const ToolInfo *t, int argc, char **argv, void *args, Arena *a, OptionList *files);
void          options_help(const ToolInfo *t, FILE *to, bool hidden);
/* The mdoc lists of a man page and a bash completion function, from the same table. */
void          options_mdoc(const ToolInfo *t, FILE *to);
void          options_bash(const ToolInfo *t, FILE *to);

#endif
