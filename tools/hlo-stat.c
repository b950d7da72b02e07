/* hlo-stat: what a module is made of and what it costs, as lines or as JSON. */
#include "config.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "analysis/stat.h"
#include "ir/verify.h"
#include "proto/module_job.h"
#include "support/options.h"
#include "support/tool.h"

typedef struct Args {
    const char *output;
    MessageArgs messages;
    bool        json, kernels;
} Args;

#define ARG(member) offsetof(Args, member)
static const Option options[] = {
    {"kernels", 0, OPT_FLAG, ARG(kernels), NULL, "list the kernels too: runs, bytes, flops, flops per byte, what and where", "Output"},
    {"json", 0, OPT_FLAG, ARG(json), NULL, "as one JSON object", "Output"},
    OUTPUT_OPTION(ARG(output)),
    MESSAGE_OPTIONS(ARG(messages)),
    {0},
};

static const ToolInfo tool = {
    .name = "hlo-stat",
    .summary = "count what a module is made of and what it costs",
    .usage = "[OPTION...] [FILE|-]",
    .options = options,
    .max_files = 1,
};

static double flops_per_byte(const KernelStat *k)
{
    return k->bytes > 0 ? (double)k->flops / (double)k->bytes : 0;
}

/* ---- lines ---- */

static void put_number(Buf *b, const char *what, int64_t n)
{
    buf_printf(b, "%-16s %" PRId64 "\n", what, n);
}

/* Also rounded, to be read. */
static void put_bytes(Buf *b, const char *what, int64_t n)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double                   x = (double)n / 1024;
    int                      k = 0;
    for (; x >= 1024 && k < 5; k++)
        x /= 1024;
    buf_printf(b, "%-16s %" PRId64, what, n);
    if (n >= 1024)
        buf_printf(b, " (%.1f %s)", x, units[k]);
    buf_putc(b, '\n');
}

typedef struct OpCount {
    Op      op;
    int64_t n;
} OpCount;

static int by_count(const void *x, const void *y)
{
    const OpCount *a = x, *b = y;
    return a->n != b->n ? (a->n < b->n ? 1 : -1) : (int)a->op - (int)b->op;
}

/* The most frequent first. */
static int32_t sort_opcodes(const Stat *s, OpCount out[static OP_COUNT])
{
    int32_t n = 0;
    for (Op op = 0; op < OP_COUNT; op++)
        if (s->of_op[op])
            out[n++] = (OpCount){op, s->of_op[op]};
    qsort(out, (size_t)n, sizeof *out, by_count);
    return n;
}

static void put_kernels(Buf *b, Arena *a, const Stat *s)
{
    buf_printf(b, "\n%10s %14s %14s %9s  kernel\n", "runs", "bytes", "flops", "per byte");
    for (int32_t k = 0; k < s->list.n; k++) {
        const KernelStat *x = &s->list.v[k];
        const char       *from = inst_source_line(a, x->inst);
        buf_printf(b, "%10" PRId64 " %14" PRId64 " %14" PRId64 " %9.3g  %s", x->runs, x->bytes, x->flops, flops_per_byte(x), op_name(x->inst->op));
        if (x->inst->op == OP_FUSION)
            buf_printf(b, " of %d", x->inst->callees[0]->n_insts - x->inst->callees[0]->n_params);
        buf_printf(b, " %%%s%s%s\n", x->inst->name, from ? "  " : "", from ? from : "");
    }
}

static void put_text(Buf *b, Arena *a, const Module *m, const Stat *s, bool kernels)
{
    OpCount ops[OP_COUNT];
    buf_printf(b, "%-16s %s\n", "module", m->name);
    put_number(b, "instructions", s->instructions);
    put_number(b, "computations", s->computations);
    put_number(b, "kernels", s->kernels);
    put_number(b, "  fusions", s->fusions);
    put_number(b, "  library calls", s->library_calls);
    put_bytes(b, "bytes moved", s->bytes);
    put_number(b, "flops", s->flops);
    put_bytes(b, "arguments", s->arguments);
    put_bytes(b, "results", s->results);
    put_bytes(b, "constants", s->constants);
    put_bytes(b, "temporaries", s->temporaries);
    if (s->worst)
        buf_printf(b, "%-16s %s %%%s\n", "  at", op_name(s->worst->op), s->worst->name);
    if (s->unknown_trips)
        buf_printf(b, "%-16s %" PRId64 " loops, counted as one trip each\n", "unknown trips", s->unknown_trips);
    if (s->elided)
        put_number(b, "elided constants", s->elided);
    for (int32_t k = 0; k < s->unknown_calls.n; k++)
        buf_printf(b, "%-16s %s\n", "unknown call", s->unknown_calls.v[k]);
    buf_puts(b, "\n");
    for (int32_t k = 0, n = sort_opcodes(s, ops); k < n; k++)
        buf_printf(b, "%10" PRId64 " %s\n", ops[k].n, op_name(ops[k].op));
    if (kernels)
        put_kernels(b, a, s);
}

/* ---- JSON ---- */

static void put_json(Buf *b, Arena *a, const Module *m, const Stat *s, bool kernels)
{
    const struct {
        const char *name;
        int64_t     n;
    } numbers[] = {
        {"instructions", s->instructions}, {"computations", s->computations}, {"kernels", s->kernels}, {"fusions", s->fusions},
        {"library_calls", s->library_calls}, {"bytes", s->bytes}, {"flops", s->flops}, {"argument_bytes", s->arguments},
        {"result_bytes", s->results}, {"constant_bytes", s->constants}, {"temporary_bytes", s->temporaries},
        {"loops_of_unknown_trips", s->unknown_trips}, {"elided_constants", s->elided},
    };
    OpCount ops[OP_COUNT];
    buf_puts(b, "{\"module\": ");
    buf_json(b, m->name);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        buf_printf(b, ",\n \"%s\": %" PRId64, numbers[k].name, numbers[k].n);
    buf_puts(b, ",\n \"unknown_calls\": [");
    for (int32_t k = 0; k < s->unknown_calls.n; k++) {
        buf_puts(b, k ? ", " : "");
        buf_json(b, s->unknown_calls.v[k]);
    }
    buf_puts(b, "],\n \"opcodes\": {");
    for (int32_t k = 0, n = sort_opcodes(s, ops); k < n; k++)
        buf_printf(b, "%s\"%s\": %" PRId64, k ? ", " : "", op_name(ops[k].op), ops[k].n);
    buf_puts(b, kernels ? "},\n \"list\": [" : "}");
    for (int32_t k = 0; k < s->list.n && kernels; k++) {
        const KernelStat *x = &s->list.v[k];
        const char       *from = inst_source_line(a, x->inst);
        buf_printf(b, "%s\n  {\"name\": ", k ? "," : "");
        buf_json(b, x->inst->name);
        buf_printf(b, ", \"opcode\": \"%s\", \"library\": %s, \"runs\": %" PRId64 ", \"bytes\": %" PRId64 ", \"flops\": %" PRId64,
                   op_name(x->inst->op), x->library ? "true" : "false", x->runs, x->bytes, x->flops);
        if (from) {
            buf_puts(b, ", \"source\": ");
            buf_json(b, from);
        }
        buf_putc(b, '}');
    }
    buf_puts(b, kernels ? "]}\n" : "}\n");
}

/* ---- the tool ---- */

static bool make(void *given, Arena *a, Module *m, Buf *out, Diag *d)
{
    const Args *args = given;
    Stat        s;
    if (!verify_module(m, d))
        return false;
    module_stat(a, m, &s);
    (args->json ? put_json : put_text)(out, a, m, &s, args->kernels);
    return true;
}

static int process_file(void *given, Arena *a, const char *path)
{
    const Args *args = given;
    return module_job(&(ModuleJob){.tool = tool.name, .messages = &args->messages, .make = make, .output = args->output}, given, a, path);
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
