/* hlo-dis: a protocol buffer in, the module in it as HLO text out; the values that a snapshot has besides go into .npz files. */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/npz.h"
#include "proto/proto.h"
#include "proto/read.h"
#include "support/options.h"
#include "support/tool.h"
#include "support/vec.h"
#include "text/print.h"

typedef struct Args {
    const char *output, *arguments, *results, *color;
    int64_t     max_errors;
    bool        werror;
} Args;

#define ARG(member) offsetof(Args, member)
static const Option options[] = {
    {"output", 'o', OPT_STRING, ARG(output), "FILE", "write the text there instead of stdout", "Output"},
    {"args", 0, OPT_STRING, ARG(arguments), "FILE", "a snapshot's arguments, as .npz or .safetensors", "Output"},
    {"results", 0, OPT_STRING, ARG(results), "FILE", "a snapshot's results, as .npz or .safetensors", "Output"},
    {"max-errors", 0, OPT_INT, ARG(max_errors), "N", "stop after N errors, 0: never (default: 20)", "Messages"},
    {"Werror", 0, OPT_FLAG, ARG(werror), NULL, "treat warnings as errors", "Messages"},
    {"color", 0, OPT_CHOICE, ARG(color), "auto|always|never", "colour in messages", "Messages"},
    {0},
};

static const ToolInfo tool = {
    .name = "hlo-dis",
    .summary = "turn a protocol buffer into HLO text",
    .usage = "[OPTION...] [FILE|-]",
    .options = options,
    .max_files = 1,
};

typedef struct Leaves {
    VEC(Literal *) values;
    VEC(const char *) names;
} Leaves;

/* The arrays of a value under names prefix0, prefix1, ...; tokens are left out. */
static void add_leaves(Arena *a, Leaves *v, const Literal *l, const char *prefix)
{
    if (l->type == TYPE_TUPLE) {
        for (int32_t k = 0; k < l->n_elems; k++)
            add_leaves(a, v, l->elems[k], prefix);
    } else if (l->type != TYPE_TOKEN) {
        vec_push(a, &v->names, arena_printf(a, "%s%d", prefix, v->values.n));
        vec_push(a, &v->values, (Literal *)(uintptr_t)l);
    }
}

static bool write_leaves(Arena *a, const char *path, const Leaves *v, const char *what, Diag *d)
{
    if (!path)
        return true;
    if (v->values.n == 0) {
        diag_error(d, LOC_NONE, "%s has no %s", d->file, what);
        return false;
    }
    return array_file_write(a, path, v->values.n, v->names.v, v->values.v, d);
}

static bool write_values(const Args *args, Arena *a, const Snapshot *s, Diag *d)
{
    Leaves in = {0}, out = {0};
    for (int32_t k = 0; k < s->n_args; k++)
        add_leaves(a, &in, s->args[k], "arg");
    if (s->result)
        add_leaves(a, &out, s->result, "out");
    return write_leaves(a, args->arguments, &in, "arguments", d) && write_leaves(a, args->results, &out, "results", d);
}

static int process_file(const Args *args, const char *path)
{
    PrintOptions form = print_options_default();
    const char  *shown = tool_shown(path);
    Buf          in = {0}, out = {0};
    Snapshot     s = {0};
    Diag         d;
    if (!buf_read_file(&in, path))
        return tool_error(tool.name, "%s: %s", shown, strerror(errno));
    Arena *a = arena_new();
    diag_init(&d, a);
    diag_source(&d, shown, NULL, 0);
    d.max_errors = (int)args->max_errors;
    d.werror = args->werror;
    Module *m = module_input(&in, &d) ? module_read(&in, &s, &d) : NULL;
    bool    good = m && d.errors == 0;
    if (good)
        print_module(&out, m, &form);
    good = good && write_values(args, a, &s, &d) && d.errors == 0;
    diag_print(&d, stderr, tool_color(args->color));
    good = good && tool_write(tool.name, &out, args->output);
    if (m)
        module_free(m);
    arena_free(a);
    buf_free(&in);
    buf_free(&out);
    return good ? EXIT_SUCCESS : EXIT_TROUBLE;
}

int main(int argc, char **argv)
{
    Args       args = {.color = "auto", .max_errors = 20};
    OptionList files = {0};
    int        status = EXIT_TROUBLE;
    tool_guard_streams();
    Arena        *a = arena_new();
    OptionsResult parsed = options_parse(&tool, argc, argv, &args, a, &files);
    if (parsed == OPTIONS_DONE)
        status = tool_finish(tool.name, EXIT_SUCCESS);
    else if (parsed == OPTIONS_RUN && (args.max_errors < 0 || args.max_errors > 1000000))
        tool_error(tool.name, "--max-errors expects a number from 0 to 1000000");
    else if (parsed == OPTIONS_RUN && files.n == 0 && isatty(STDIN_FILENO))
        fprintf(stderr, "usage: hlo-dis %s\n", tool.usage);
    else if (parsed == OPTIONS_RUN)
        status = process_file(&args, files.n ? files.v[0] : NULL);
    arena_free(a);
    return status;
}
