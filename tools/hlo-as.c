/* hlo-as: HLO text in, the same module as a protocol buffer out. */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ir/verify.h"
#include "proto/proto.h"
#include "proto/read.h"
#include "support/options.h"
#include "support/tool.h"

typedef struct Args {
    const char *output, *format, *color;
    int64_t     max_errors;
    bool        verify, force, werror;
} Args;

#define ARG(member) offsetof(Args, member)
static const Option options[] = {
    {"output", 'o', OPT_STRING, ARG(output), "FILE", "write there instead of stdout", "Output"},
    {"format", 0, OPT_CHOICE, ARG(format), "module|hlo", "HloModuleProto (default) or HloProto", "Output"},
    {"force", 'f', OPT_FLAG, ARG(force), NULL, "write to a terminal, too", "Output"},
    {"verify", 0, OPT_SWITCH, ARG(verify), NULL, "apply the verifier's rules (default)", "Checks"},
    {"max-errors", 0, OPT_INT, ARG(max_errors), "N", "stop after N errors, 0: never (default: 20)", "Messages"},
    {"Werror", 0, OPT_FLAG, ARG(werror), NULL, "treat warnings as errors", "Messages"},
    {"color", 0, OPT_CHOICE, ARG(color), "auto|always|never", "colour in messages", "Messages"},
    {0},
};

static const ToolInfo tool = {
    .name = "hlo-as",
    .summary = "turn HLO text into a protocol buffer",
    .usage = "[OPTION...] [FILE|-]",
    .options = options,
    .max_files = 1,
};

static bool process_module(const Args *args, const Module *m, Buf *out, Diag *d)
{
    ProtoKind kind = strcmp(args->format, "hlo") == 0 ? PROTO_HLO : PROTO_MODULE;
    return (!args->verify || verify_module(m, d)) && proto_write(out, m, kind, d) && d->errors == 0;
}

static int process_file(const Args *args, const char *path)
{
    const char *shown = tool_shown(path);
    Buf         in = {0}, out = {0};
    Diag        d;
    if (!buf_read_file(&in, path))
        return tool_error(tool.name, "%s: %s", shown, strerror(errno));
    Arena *a = arena_new();
    diag_init(&d, a);
    diag_source(&d, shown, NULL, 0);
    d.max_errors = (int)args->max_errors;
    d.werror = args->werror;
    Module *m = module_input(&in, &d) ? module_read(&in, NULL, &d) : NULL;
    bool    good = m && process_module(args, m, &out, &d);
    diag_print(&d, stderr, tool_color(args->color));
    good = good && tool_write(tool.name, &out, args->output);
    if (m)
        module_free(m);
    arena_free(a);
    buf_free(&in);
    buf_free(&out);
    return good ? EXIT_SUCCESS : EXIT_TROUBLE;
}

/* What the options ask for is checked before anything is read. */
static bool check_options(const Args *args)
{
    bool to_stdout = !args->output || strcmp(args->output, "-") == 0;
    if (args->max_errors < 0 || args->max_errors > 1000000) {
        tool_error(tool.name, "--max-errors expects a number from 0 to 1000000");
        return false;
    }
    if (to_stdout && !args->force && isatty(STDOUT_FILENO)) {
        tool_error(tool.name, "a protocol buffer is not for a terminal: name a file with -o, or give -f");
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    Args       args = {.format = "module", .color = "auto", .max_errors = 20, .verify = true};
    OptionList files = {0};
    int        status = EXIT_TROUBLE;
    tool_guard_streams();
    Arena        *a = arena_new();
    OptionsResult parsed = options_parse(&tool, argc, argv, &args, a, &files);
    if (parsed == OPTIONS_DONE)
        status = tool_finish(tool.name, EXIT_SUCCESS);
    else if (parsed == OPTIONS_RUN && files.n == 0 && isatty(STDIN_FILENO))
        fprintf(stderr, "usage: hlo-as %s\n", tool.usage);
    else if (parsed == OPTIONS_RUN && check_options(&args))
        status = process_file(&args, files.n ? files.v[0] : NULL);
    arena_free(a);
    return status;
}
