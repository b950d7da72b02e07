/* hlo-codegen: HLO text in, source that computes it out. It emits what it reads: one kernel a fusion, one for every other
 * instruction that computes something. Nothing is written before the whole of it is known to be good. */
#include "config.h"

#include <string.h>

#include "driver/driver.h"
#include "emit/names.h"
#include "ir/verify.h"
#include "proto/module_job.h"
#include "support/options.h"
#include "support/outfile.h"
#include "support/tool.h"
#include "target-c/target_c.h"
#include "target-cuda/target_cuda.h"

typedef struct Args {
    const char *target, *emit, *name, *weights, *output, *fill_elided, *constants, *runtime, *convolutions, *libraries, *device;
    const Device *machine; /* device, read; NULL: not for CUDA */
    bool        deterministic, pack_constants, verify, stats, extern_calls, json;
    Devices     on;
    bool        standalone; /* what is emitted is one file in any case */
    const Program *with_weights; /* what has them; NULL: there are none to write */
    MessageArgs messages;
} Args;

#define ARG(member) offsetof(Args, member)
static const Option options[] = {
    OUTPUT_OPTION(ARG(output)),
    {"target", 0, OPT_CHOICE, ARG(target), "c|cuda", "the language (default: c)", "Output"},
    {"emit", 0, OPT_CHOICE, ARG(emit), "source|h|main|kernels|host|plan|none", "what of it (default: source)", "Output"},
    {"json", 0, OPT_FLAG, ARG(json), NULL, "the plan as one JSON object", "Output"},
    {"name", 0, OPT_STRING, ARG(name), "NAME", "prefix of exported names (default: module's)", "Output"},
    {"weights", 0, OPT_STRING, ARG(weights), "FILE", "put constants above 64 KiB there, with .incbin", "Output"},
    {"runtime", 0, OPT_CHOICE, ARG(runtime), "inline|library", "loops (default), or calls of libhlort.a, threads", "Output"},
    {"deterministic", 0, OPT_FLAG, ARG(deterministic), NULL, "cuda: floats of a scatter in order", "Output"},
    {"convolutions", 0, OPT_CHOICE, ARG(convolutions), "direct|auto", "as defined, or fewer products (default: auto)", "Output"},
    {"pack-constants", 0, OPT_SWITCH, ARG(pack_constants), NULL, "products pack them once (default)", "Output"},
    {"libraries", 0, OPT_CHOICE, ARG(libraries), "none|auto", "cuda: cuBLASLt and cuDNN (default: auto)", "Output"},
    {"device", 0, OPT_STRING, ARG(device), "D", "cuda: sm_90 (default), sm_80, sm_100 or a table", "Output"},
    {"standalone", 0, OPT_FLAG, ARG(standalone), NULL, "one file that needs nothing but libm", "Output"},
    {"extern-calls", 0, OPT_FLAG, ARG(extern_calls), NULL, "call functions for unknown custom calls", "Output"},
    {"replicas", 0, OPT_INT, ARG(on.replicas), "N", "for so many replicas (default: 1)", "Devices"},
    {"partitions", 0, OPT_INT, ARG(on.partitions), "N", "partitions of each replica (default: 1)", "Devices"},
    ELIDED_OPTIONS(ARG(fill_elided), ARG(constants)),
    VERIFY_OPTION(ARG(verify)),
    {"stats", 0, OPT_FLAG, ARG(stats), NULL, "show how many kernels and bytes, on stderr", "Messages"},
    MESSAGE_OPTIONS(ARG(messages)),
    {0},
};

static const ToolInfo tool = {
    .name = "hlo-codegen",
    .summary = "turn an HLO module into source code",
    .usage = "[OPTION...] [FILE|-]",
    .options = options,
    .max_files = 1,
};

static TargetCOptions options_for_c(const Args *args)
{
    return (TargetCOptions){ .weights = args->weights };
}

static bool is_cuda(const Args *args)
{
    return strcmp(args->target, "cuda") == 0;
}

static void put_cuda(const Args *args, const Program *p, Buf *b)
{
    static const struct { const char *emit; void (*put)(Buf *b, const Program *p); } forms[] = {
        { "source", target_cuda_source }, { "h", target_cuda_header }, { "main", target_cuda_main }, { "kernels", target_cuda_kernels }, { "host", target_cuda_host },
    };
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
        if (strcmp(args->emit, forms[k].emit) == 0)
            forms[k].put(b, p);
}

static void put_product(Args *args, const Program *p, Buf *out)
{
    TargetCOptions o = options_for_c(args);
    bool           text = strcmp(args->emit, "source") == 0, with_main = strcmp(args->emit, "main") == 0;
    if (strcmp(args->emit, "plan") == 0)
        (args->json ? program_report_json : program_report)(out, p);
    else if (is_cuda(args))
        put_cuda(args, p, out);
    else if (text)
        target_c_source(out, p, &o);
    else if (with_main)
        target_c_main(out, p, &o);
    else if (strcmp(args->emit, "h") == 0)
        target_c_header(out, p);
    if (!is_cuda(args) && (text || with_main) && target_c_has_weights(p, &o))
        args->with_weights = p;
}

/* The linker knows which there are. */
static bool any_function(void *cookie, const char *symbol)
{
    (void)cookie, (void)symbol;
    return true;
}

/* The program of --emit=main takes no arrays but its arguments. */
static bool main_supported(const Program *p, Diag *d)
{
    for (int32_t k = 0; k < p->n_steps; k++) {
        const Inst *i = p->steps[k]->inst;
        if (p->steps[k]->kind == STEP_EXCHANGE && p->steps[k]->exchange->step == 0)
            inst_error(d, i, "%s needs who calls the function: --emit=main has nothing for it (%%%s)", op_name(i->op), i->name);
    }
    return d->errors == 0;
}

static bool make(void *given, Arena *a, Module *m, Buf *out, Diag *d)
{
    Args *args = given;
    if (args->verify && !verify_module(m, d))
        return false;
    if (!elided_fill(m, args->fill_elided, args->constants, d))
        return false;
    PlanOptions    o = {.name = args->name, .has_function = args->extern_calls ? any_function : NULL, .on = args->on};
    o.runtime = o.ranges = strcmp(args->runtime, "library") == 0;
    o.direct_convolutions = strcmp(args->convolutions, "direct") == 0;
    o.plain_constants = !args->pack_constants;
    o.device = args->machine;
    o.any_order = is_cuda(args) && !args->deterministic;
    o.products = is_cuda(args) && strcmp(args->libraries, "auto") == 0;
    const Program *p = program_plan(a, m, &o, d);
    if (!p || d->errors > 0 || (is_cuda(args) && !target_cuda_supported(p, d)) ||
        (strcmp(args->emit, "main") == 0 && !main_supported(p, d)))
        return false;
    put_product(args, p, out);
    if (args->stats)
        fprintf(stderr, "hlo-codegen: %d kernels in %d functions, %d copies, %lld bytes of scratch\n", p->n_kernels, p->n_functions,
                p->n_copies, (long long)p->scratch_bytes);
    return true;
}

static bool to_outfile(void *to, const void *bytes, size_t n)
{
    return outfile_put(to, bytes, n);
}

static bool write_weights(const Args *args, const Program *p)
{
    OutFile        f;
    TargetCOptions o = options_for_c(args);
    Arena         *a = arena_new();
    outfile_open(&f, a, args->weights);
    target_c_weights(p, &o, to_outfile, &f);
    bool ok = outfile_close(&f);
    if (!ok)
        tool_error(tool.name, "%s: %s", args->weights, strerror(f.error));
    arena_free(a);
    return ok;
}

/* The weights come first: who sees the source may compile it. */
static bool write_product(const void *given, const Buf *out)
{
    const Args *args = given;
    if (args->with_weights && !write_weights(args, args->with_weights))
        return false;
    return strcmp(args->emit, "none") == 0 || tool_write(tool.name, out, args->output);
}

static int process_file(void *given, Arena *a, const char *path)
{
    const Args *args = given;
    return module_job(&(ModuleJob){.tool = tool.name, .messages = &args->messages, .make = make, .write = write_product}, given, a, path);
}

/* Options that are about C. */
static bool check_cuda(const Args *args)
{
    const char *bad = args->weights ? "--weights" : strcmp(args->runtime, "library") == 0 ? "--runtime=library" : NULL;
    if (bad)
        tool_error(tool.name, "%s is not for --target=cuda", bad);
    return !bad;
}

static bool check_options(void *given, Arena *a, const char *path)
{
    Args *args = given;
    (void)path;
    if (is_cuda(args) && !check_cuda(args))
        return false;
    if (!is_cuda(args) && args->device) {
        tool_error(tool.name, "--device is for --target=cuda");
        return false;
    }
    if (is_cuda(args) && !(args->machine = device_option(a, tool.name, args->device, "cuda", &args->messages)))
        return false;
    if (!is_cuda(args) && (strcmp(args->emit, "kernels") == 0 || strcmp(args->emit, "host") == 0)) {
        tool_error(tool.name, "--emit=%s is for --target=cuda", args->emit);
        return false;
    }
    if (args->on.replicas < 1 || args->on.replicas > MOST_DEVICES || args->on.partitions < 1 ||
        args->on.partitions > MOST_DEVICES / args->on.replicas) {
        tool_error(tool.name, "--replicas times --partitions must be from 1 to %d", MOST_DEVICES);
        return false;
    }
    if (devices_n(args->on) > 1 && strcmp(args->emit, "main") == 0) {
        tool_error(tool.name, "--emit=main makes a program for one device, not for --replicas or --partitions");
        return false;
    }
    if (args->json && strcmp(args->emit, "plan") != 0) {
        tool_error(tool.name, "--json is for --emit=plan");
        return false;
    }
    if (args->standalone && strcmp(args->runtime, "library") == 0) {
        tool_error(tool.name, "--standalone makes a file that needs no library, not one for --runtime=library");
        return false;
    }
    if (!tool_messages_good(tool.name, &args->messages))
        return false;
    if (args->weights && (!*args->weights || strcmp(args->weights, "-") == 0)) {
        tool_error(tool.name, "--weights expects the name of a file that the compiler can read");
        return false;
    }
    if (args->name && strcmp(args->name, c_prefix(a, args->name)) != 0) {
        tool_error(tool.name, "--name=%s is no C identifier; %s would be", args->name, c_prefix(a, args->name));
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    Args args = {.target = "c", .emit = "source", .runtime = "inline", .convolutions = "auto", .libraries = "auto", .pack_constants = true, .messages = MESSAGE_DEFAULTS, .verify = true, .on = {1, 1}};
    return tool_main(&tool, &(ToolJob){.check = check_options, .run = process_file}, &args, argc, argv);
}
