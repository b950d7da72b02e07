/* hlo-as: HLO text in, the same module as a protocol buffer out, alone or with values from files. */
#include "config.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "driver/snapshot_values.h"
#include "ir/verify.h"
#include "proto/proto.h"
#include "proto/module_job.h"
#include "support/options.h"
#include "support/tool.h"

typedef struct Args {
    const char *output, *format, *arguments, *results, *platform;
    int64_t     partitions;
    bool        verify, force;
    MessageArgs messages;
} Args;

#define ARG(member) offsetof(Args, member)
static const Option options[] = {
    OUTPUT_OPTION(ARG(output)),
    {"format", 0, OPT_CHOICE, ARG(format), "module|hlo|snapshot|unoptimized-snapshot", "which message (default: module, HloModuleProto)",
     "Output"},
    {"force", 'f', OPT_FLAG, ARG(force), NULL, "write to a terminal, too", "Output"},
    {"args", 0, OPT_STRING, ARG(arguments), "FILE", "a snapshot's arguments: .npz, .safetensors", "Values"},
    {"results", 0, OPT_STRING, ARG(results), "FILE", "a snapshot's results", "Values"},
    {"partitions", 0, OPT_INT, ARG(partitions), "N", "arguments have an axis of N in front (default: 1)", "Values"},
    {"platform", 0, OPT_STRING, ARG(platform), "NAME", "where a snapshot was taken, such as Host", "Values"},
    VERIFY_OPTION(ARG(verify)),
    MESSAGE_OPTIONS(ARG(messages)),
    {0},
};

static const ToolInfo tool = {
    .name = "hlo-as",
    .summary = "turn HLO text into a protocol buffer",
    .usage = "[OPTION...] [FILE|-]",
    .options = options,
    .max_files = 1,
};

static ProtoKind kind_of(const Args *args)
{
    static const char *const names[] = {"module", "hlo", "snapshot", "unoptimized-snapshot"}; /* in the order of ProtoKind */
    int                      k = 0;
    while (strcmp(names[k], args->format) != 0)
        k++;
    return (ProtoKind)k;
}

static bool has_values(const Args *args)
{
    return kind_of(args) == PROTO_SNAPSHOT || kind_of(args) == PROTO_UNOPTIMIZED_SNAPSHOT;
}

static bool write_snapshot(const Args *args, const Module *m, Buf *out, Diag *d)
{
    ValueFiles files = {args->arguments, args->results, (int32_t)args->partitions};
    Snapshot   s = {.kind = kind_of(args), .platform = args->platform};
    return snapshot_values(m, &files, &s, d) && snapshot_write(out, m, &s, d);
}

static bool make(void *given, Arena *a, Module *m, Buf *out, Diag *d)
{
    const Args *args = given;
    (void)a;
    return (!args->verify || verify_module(m, d)) && (has_values(args) ? write_snapshot(args, m, out, d) : proto_write(out, m, kind_of(args), d));
}

static int process_file(void *given, Arena *a, const char *path)
{
    const Args *args = given;
    return module_job(&(ModuleJob){.tool = tool.name, .messages = &args->messages, .make = make, .output = args->output}, given, a, path);
}

/* What the options ask for is checked before anything is read. */
static bool check_options(void *given, Arena *a, const char *path)
{
    const Args *args = given;
    (void)a, (void)path;
    enum { MAX_PARTITIONS = 1 << 20 };
    bool snapshot = kind_of(args) == PROTO_SNAPSHOT;
    bool to_stdout = !args->output || strcmp(args->output, "-") == 0;
    if (!tool_messages_good(tool.name, &args->messages))
        return false;
    if (!has_values(args) && (args->arguments || args->results || args->platform || args->partitions != 1)) {
        tool_error(tool.name, "--args, --results, --partitions and --platform are of snapshots alone: --format=snapshot");
        return false;
    }
    if (!snapshot && (args->results || args->platform)) {
        tool_error(tool.name, "--results and --platform are of --format=snapshot alone");
        return false;
    }
    if (args->partitions < 1 || args->partitions > MAX_PARTITIONS || (snapshot && args->partitions > 1)) {
        tool_error(tool.name, snapshot ? "several partitions are of --format=unoptimized-snapshot alone"
                                       : "--partitions expects a number from 1 to 1048576");
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
    Args args = {.format = "module", .messages = MESSAGE_DEFAULTS, .partitions = 1, .verify = true};
    return tool_main(&tool, &(ToolJob){.check = check_options, .run = process_file}, &args, argc, argv);
}
