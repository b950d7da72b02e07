/* hlo-dis: a protocol buffer in, the module in it as HLO text out; the values that a snapshot has besides go into .npz files. */
#include "config.h"

#include <stddef.h>

#include "data/npz.h"
#include "proto/module_job.h"
#include "proto/proto.h"
#include "support/options.h"
#include "support/tool.h"
#include "support/vec.h"
#include "text/print.h"

typedef struct Args {
    const char *output, *arguments, *results;
    MessageArgs messages;
    Snapshot    values; /* what came with the module */
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

/* The arrays of a value under names prefix0, prefix1, ...; tokens are left out. l[0..n) is the value of
 * each partition, which an axis in front counts when there are several. */
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
    Literal *all = n == 1 ? literal_ref(l[0]) : literal_stack(n, l);
    if (!all)
        return false;
    vec_push(a, &v->names, arena_printf(a, "%s%d", prefix, v->values.n));
    vec_push(a, &v->values, (Literal *)(uintptr_t)literal_keep(a, all));
    return true;
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

static bool make(void *given, Arena *a, Module *m, Buf *out, Diag *d)
{
    const Args  *args = given;
    PrintOptions form = print_options_default();
    print_module(out, m, &form);
    return write_values(args, a, &args->values, d);
}

static int process_file(void *given, Arena *a, const char *path)
{
    Args *args = given;
    return module_job(&(ModuleJob){.tool = tool.name, .messages = &args->messages, .values = &args->values, .make = make, .output = args->output}, given, a, path);
}

static bool check_options(void *given, Arena *a, const char *path)
{
    const Args *args = given;
    (void)a, (void)path;
    return tool_messages_good(tool.name, &args->messages);
}

int main(int argc, char **argv)
{
    Args args = {.messages = MESSAGE_DEFAULTS};
    return tool_main(&tool, &(ToolJob){.check = check_options, .run = process_file}, &args, argc, argv);
}
