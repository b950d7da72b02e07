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
    const char *output, *arguments, *results;
    MessageArgs messages;
} Args;

#define ARG(member) offsetof(Args, member)
static const Option options[] = {
    {"output", 'o', OPT_STRING, ARG(output), "FILE", "write the text there instead of stdout", "Output"},
    {"args", 0, OPT_STRING, ARG(arguments), "FILE", "a snapshot's arguments, as .npz or .safetensors", "Output"},
    {"results", 0, OPT_STRING, ARG(results), "FILE", "a snapshot's results, as .npz or .safetensors", "Output"},
    MESSAGE_OPTIONS(ARG(messages)),
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

/* One array of each partition, on an axis in front. NULL when they differ in type or size. */
static Literal *stack(Arena *a, const Literal *const *parts, int32_t n)
{
    int64_t *dims = ARENA_ARRAY(a, int64_t, (int64_t)parts[0]->rank + 1);
    size_t   size = (size_t)literal_bytes(parts[0]);
    dims[0] = n;
    for (int32_t k = 0; k < parts[0]->rank; k++)
        dims[k + 1] = parts[0]->dims[k];
    for (int32_t p = 1; p < n; p++)
        if (parts[p]->type != parts[0]->type || parts[p]->rank != parts[0]->rank ||
            memcmp(parts[p]->dims, parts[0]->dims, (size_t)parts[0]->rank * sizeof *dims) != 0)
            return NULL;
    Literal *all = literal_new(parts[0]->type, parts[0]->rank + 1, dims);
    for (int32_t p = 0; p < n && size > 0; p++)
        memcpy((char *)all->data + (size_t)p * size, parts[p]->data, size);
    return (Literal *)(uintptr_t)literal_keep(a, all);
}

/* The arrays of a value under names prefix0, prefix1, ...; tokens are left out. l[0..n) is the value of each partition. */
static bool add_leaves(Arena *a, Leaves *v, const Literal *const *l, int32_t n, const char *prefix)
{
    const Literal **elems = ARENA_ARRAY(a, const Literal *, n);
    for (int32_t p = 1; p < n; p++)
        if ((l[p]->type == TYPE_TUPLE) != (l[0]->type == TYPE_TUPLE) || l[p]->n_elems != l[0]->n_elems)
            return false;
    for (int32_t k = 0; k < l[0]->n_elems; k++) {
        for (int32_t p = 0; p < n; p++)
            elems[p] = l[p]->elems[k];
        if (!add_leaves(a, v, elems, n, prefix))
            return false;
    }
    if (l[0]->type == TYPE_TUPLE || l[0]->type == TYPE_TOKEN)
        return true;
    Literal *value = n == 1 ? (Literal *)(uintptr_t)l[0] : stack(a, l, n);
    vec_push(a, &v->names, arena_printf(a, "%s%d", prefix, v->values.n));
    vec_push(a, &v->values, value);
    return value != NULL;
}

static bool add_arguments(Arena *a, Leaves *v, const Snapshot *s)
{
    const Literal **parts = ARENA_ARRAY(a, const Literal *, s->n_partitions);
    for (int32_t k = 0; k < s->n_args; k++) {
        for (int32_t p = 0; p < s->n_partitions; p++)
            parts[p] = s->args[p * s->n_args + k];
        if (!add_leaves(a, v, parts, s->n_partitions, "arg"))
            return false;
    }
    return true;
}

static bool write_leaves(Arena *a, const char *path, const Leaves *v, const char *what, Diag *d)
{
    if (!path)
        return true;
    if (v->values.n == 0) {
        diag_error(d, LOC_NONE, "there are no %s", what);
        return false;
    }
    return array_file_write(a, path, v->values.n, v->names.v, v->values.v, d);
}

static bool write_values(const Args *args, Arena *a, const Snapshot *s, Diag *d)
{
    Leaves in = {0}, out = {0};
    if (args->arguments && !add_arguments(a, &in, s)) {
        diag_error(d, LOC_NONE, "the partitions have arguments of different types or sizes");
        return false;
    }
    if (s->result)
        add_leaves(a, &out, &s->result, 1, "out");
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
    tool_messages_begin(&d, &args->messages);
    Module *m = module_input(&in, &d) ? module_read(&in, &s, &d) : NULL;
    bool    good = m && d.errors == 0;
    if (good)
        print_module(&out, m, &form);
    good = good && write_values(args, a, &s, &d) && d.errors == 0;
    tool_messages_print(&d, &args->messages);
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
    Args       args = {.messages = MESSAGE_DEFAULTS};
    OptionList files = {0};
    int        status = EXIT_TROUBLE;
    tool_guard_streams();
    Arena        *a = arena_new();
    OptionsResult parsed = options_parse(&tool, argc, argv, &args, a, &files);
    if (parsed == OPTIONS_DONE)
        status = tool_finish(tool.name, EXIT_SUCCESS);
    else if (parsed == OPTIONS_RUN && files.n == 0 && isatty(STDIN_FILENO))
        fprintf(stderr, "usage: hlo-dis %s\n", tool.usage);
    else if (parsed == OPTIONS_RUN && tool_messages_good(tool.name, &args.messages))
        status = process_file(&args, files.n ? files.v[0] : NULL);
    arena_free(a);
    return status;
}
